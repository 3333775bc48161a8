#!/usr/bin/env bash
# The corpus of CUDA kernels on a GPU and on the simulator, compared.
#
#   scripts/cuda_corpus.sh [arguments of the cuda_corpus binary]
#
# Builds the binary where cargo is; elsewhere runs the one that was carried along (build it with
# `scripts/cuda_corpus.sh --build` and copy `target/release/cuda_corpus`, or set CUDA_CORPUS to where it is).
# It contains the kernels and the simulator, and needs the CUDA driver only; with `--dry-run`, not even that.
set -euo pipefail
cd "$(dirname "$0")/.."

binary=${CUDA_CORPUS:-${CARGO_TARGET_DIR:-target}/release/cuda_corpus}
if [ -z "${CUDA_CORPUS:-}" ] && command -v cargo > /dev/null; then
    cargo build --release -p tilec-tests --bin cuda_corpus
fi
if [ "${1:-}" = --build ]; then exit; fi
if [ ! -x "$binary" ]; then
    echo "no cargo here, and no binary at $binary" >&2
    exit 2
fi
exec "$binary" "$@"
