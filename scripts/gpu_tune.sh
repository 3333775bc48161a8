#!/usr/bin/env bash
# What the model chooses against what measuring finds: `tilec tune` for the sizes of docs/performance.md, f16, sm_90a.
#
#   scripts/gpu_tune.sh [SECONDS [M,N,K=..]]     # seconds for each size (default: 20), and other sizes
#
# TILEC is the compiler's binary (default: target/release/tilec, built first where cargo is). The winners, the results so far and
# the report as JSON go to OUT (default: a directory of its own that is named at the end). What is in OUT already is not measured again.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ -z "${TILEC:-}" ]; then
    TILEC=${CARGO_TARGET_DIR:-target}/release/tilec
    if command -v cargo > /dev/null; then cargo build --release -p tilec; fi
fi
SECONDS_EACH=${1:-20}
SIZES=${2:-M,N,K=512x512x512,1024x1024x1024,2048x2048x2048,4096x4096x4096,8192x8192x8192,16384x16384x16384,16x4096x4096,64x4096x14336,128x6144x4096,512x4096x4096,2048x28672x4096,4096x4096x14336,4096x6144x4096,8192x8192x1024,4096x128256x4096,520x264x136,1000x1000x1000,4104x4104x4104}
OUT=${OUT:-$(mktemp -d)}
mkdir -p "$OUT"

# Each size by itself, so that the table grows, and one that fails is only one. Results are stored as halves.
IFS=, read -ra sizes <<< "${SIZES#*=}"
status=0
for size in "${sizes[@]}"; do
    "$TILEC" tune examples/gemm.tile --target sm_90a --card H200 -D Out=f16 --seconds "$SECONDS_EACH" \
        --cache "$OUT" -o "$OUT" --format json "M,N,K=$size" > "$OUT/$size.json" || { echo "$size: exit status $?"; status=1; }
done

python3 - "$OUT" "${sizes[@]}" << 'EOF'
import json, os, sys
out, sizes = sys.argv[1], sys.argv[2:]
within = total = 0
print(f"{'M x N x K':>18} {'chosen us':>10} {'tuned us':>10} {'gain':>6}  {'seen':>9} {'s':>4}  tuned")
for size in sizes:
    try:
        report = json.load(open(os.path.join(out, size + ".json")))
    except (OSError, ValueError):
        continue
    for p in report["problems"]:
        gain = p["gain"]["median"] if "gain" in p else float("nan")
        total += 1
        within += gain <= 1.05
        us = [(p[k].get("time") or {}).get("median", float("nan")) for k in ("chosen", "tuned")]
        same = p["chosen"]["words"] == p["tuned"]["words"]
        print(f"{size:>18} {us[0]:10.2f} {us[1]:10.2f} {gain:6.3f}  {p['measured']:>4}/{p['candidates']:<4} {p['seconds']:4.0f}  "
              + ("as chosen: " if same else "") + p["tuned"]["words"])
        for d in p["dropped"]:
            print(f"{'':>18} dropped {d['values']}: {d['why'][:160]}")
print(f"the model's choice is within 5 % of the tuned one on {within} of {total} sizes")
EOF
echo "winners, results and reports: $OUT"
exit $status
