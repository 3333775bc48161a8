#!/usr/bin/env bash
# The attention figures of docs/performance.md: our programs against PyTorch's backends and cuDNN's frontend.
#
#   scripts/gpu_attention.sh [OUT] [OPTION ..]      # CSV files in folder OUT (default: a new one under /tmp); options of gpu_attention.py
#
# TILEC is the compiler's binary (default: target/release/tilec). Some two minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-$(mktemp -d /tmp/attention.XXXXXX)}
shift || true
python3 scripts/gpu_attention.py --tag roles --file examples/flash_attention.tile \
    --define 'T={T}' --define 'D={D}' --define-if D=256:BKV=64 --out "$out/attention" "$@"
echo "everything is in $out"
