#!/usr/bin/env bash
# Every instruction that the simulator computes, on the simulator and on a GPU, bit for bit.
#
#   scripts/silicon_check.sh [arguments of the silicon_check binary]
#
# Builds the binary where cargo is; elsewhere runs the one that was carried along (build it with
# `scripts/silicon_check.sh --build` and copy `target/release/silicon_check`, or set SILICON_CHECK to where it is).
# It contains the simulator and the kernels, and needs the CUDA driver only; with `--dry-run`, not even that.
set -euo pipefail
cd "$(dirname "$0")/.."

binary=${SILICON_CHECK:-${CARGO_TARGET_DIR:-target}/release/silicon_check}
if [ -z "${SILICON_CHECK:-}" ] && command -v cargo > /dev/null; then
    cargo build --release -p tilec-tests --bin silicon_check
fi
if [ "${1:-}" = --build ]; then exit; fi
if [ ! -x "$binary" ]; then
    echo "no cargo here, and no binary at $binary" >&2
    exit 2
fi
exec "$binary" "$@"
