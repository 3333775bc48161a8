#!/usr/bin/env bash
# The attention figures of docs/performance.md: our programs against PyTorch's backends and cuDNN's frontend; plain source for sm_90a, then for sm_80,
# then the program with roles by hand.
#
#   scripts/gpu_attention.sh [OUT] [OPTION ..]      # CSV files in folder OUT (default: a new one under /tmp); options of gpu_attention.py
#
# TILEC is the compiler's binary (default: target/release/tilec). Some three minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-$(mktemp -d /tmp/attention.XXXXXX)}
shift || true
python3 scripts/gpu_attention.py --tag plain --file examples/attention.tile --define 'T={T}' --define 'D={D}' --causal-define CAUSAL=1 \
    --define BQ=128,BKV=128 --define-if D=64:BQ=192 --define-if D=256:BKV=80 --out "$out/attention" "$@"
python3 scripts/gpu_attention.py --tag sm_80 --target sm_80 --file examples/attention.tile --define 'T={T}' --define 'D={D}' --causal-define CAUSAL=1 \
    --define BQ=128,BKV=64 --define-if D=64:BKV=128 --head-sizes 64,128 --against flash --out "$out/attention_sm80" "$@"
python3 scripts/gpu_attention.py --tag roles --file examples/flash_attention.tile \
    --define 'T={T}' --define 'D={D}' --define-if D=256:BKV=80 --out "$out/attention_roles" "$@"
echo "everything is in $out"
