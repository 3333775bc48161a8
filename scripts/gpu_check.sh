#!/usr/bin/env bash
# Every GEMM problem of the case table, one problem in every operand order, and random ones, on a GPU, exactly.
#
#   scripts/gpu_check.sh [arguments of the gpu_check binary]
#
# Builds the binary where cargo is; elsewhere runs the one that was carried along (build it with
# `scripts/gpu_check.sh --build` and copy `target/release/gpu_check`, or set GPU_CHECK to where it is).
# It contains the programs, the compiler and the case table, and needs the CUDA driver only.
# Its last lines are `N passed, N failed`; exit status 0 only if everything was tried and passed.
set -euo pipefail
cd "$(dirname "$0")/.."

binary=${GPU_CHECK:-${CARGO_TARGET_DIR:-target}/release/gpu_check}
if [ -z "${GPU_CHECK:-}" ] && command -v cargo > /dev/null; then
    cargo build --release -p tilec-tests --bin gpu_check
fi
if [ "${1:-}" = --build ]; then exit; fi
if [ ! -x "$binary" ]; then
    echo "no cargo here, and no binary at $binary" >&2
    exit 2
fi
exec "$binary" "$@"
