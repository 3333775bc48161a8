#!/usr/bin/env bash
# What a launch costs on the host beside the bare call of the driver: docs/rust.md. On a machine with a GPU:
#
#     scripts/gpu_launch.sh                    builds what it needs
#     TILEC=path LAUNCH_COST=path scripts/gpu_launch.sh
set -eu
cd "$(dirname "$0")/.."
if [ -z "${TILEC:-}" ]; then cargo build --quiet --release -p tilec; TILEC=target/release/tilec; fi
if [ -z "${LAUNCH_COST:-}" ]; then
    cargo build --quiet --release -p tilec-launch --example launch_cost
    LAUNCH_COST=target/release/examples/launch_cost
fi
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader || true
for target in sm_80 sm_90a; do
    "$TILEC" examples/gemm.tile --target $target --for M=N=K=256 -o "$folder/gemm.tilec"
    "$LAUNCH_COST" "$folder/gemm.tilec" gemm 'A:M,K;B:K,N;C:M,N' alpha,beta M=256 N=256 K=256
done
"$TILEC" examples/gemm.tile --target sm_80 --variant ALIGN=8/1 --for M=N=K=256 -o "$folder/variants.tilec"
"$LAUNCH_COST" "$folder/variants.tilec" gemm 'A:M,K;B:K,N;C:M,N' alpha,beta M=256 N=256 K=256
"$LAUNCH_COST" "$folder/variants.tilec" gemm 'A:M,K;B:K,N;C:M,N' alpha,beta M=256 N=255 K=251
