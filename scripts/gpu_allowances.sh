#!/usr/bin/env bash
# Whether hardware does what compilers expect where `tilec run --allow` lets errors pass: each kernel as it stands and with
# what the PTX ISA asks for must give the same bytes.
#
#   scripts/gpu_allowances.sh [--device sim]     TILEC=path/of/tilec
#
# `--device sim` runs a small case on the simulator, where the version without the fence must be refused unless it is allowed.
set -euo pipefail
cd "$(dirname "$0")/.."
tilec=${TILEC:-target/release/tilec}
where=${2:-cuda}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
steps=4000 blocks=1056 repeats=20
if [ "$where" = sim ]; then steps=5 blocks=2 repeats=1; fi

kernel=scripts/gpu/cp_async_proxy
sed 's#// FENCE#fence.proxy.async;#' $kernel.ptx > "$dir/fenced.ptx"
# Small whole numbers: every sum is exact, in whatever order.
python3 - "$dir/x.bin" $((steps + blocks)) <<'PY'
import random, struct, sys
halves = [struct.pack("<e", v) for v in range(-2, 3)]
rng = random.Random(1)
with open(sys.argv[1], "wb") as f:
    for _ in range(int(sys.argv[2])):
        f.write(b"".join(rng.choices(halves, k=2048)))
PY
run() { "$tilec" run "$1" --launch $kernel.json steps=$steps blocks=$blocks --in x="$dir/x.bin" --device "$where" "${@:2}" > "$dir/log" 2>&1; }
run "$dir/fenced.ptx" --out y="$dir/fenced.bin" || { cat "$dir/log"; exit 1; }
allow=()
if [ "$where" = sim ]; then
    if run $kernel.ptx; then echo "the simulator takes it without --allow"; exit 1; fi
    grep -q 'cp-async-proxy' "$dir/log"
    allow=(--allow cp-async-proxy)
fi
for i in $(seq $repeats); do
    run $kernel.ptx "${allow[@]}" --out y="$dir/plain.bin" || { cat "$dir/log"; exit 1; }
    cmp "$dir/fenced.bin" "$dir/plain.bin" || { echo "cp-async-proxy: run $i differs"; exit 1; }
done
if [ "$where" = cuda ]; then card=" on $(nvidia-smi --query-gpu=name --format=csv,noheader)"; else card=""; fi
echo "cp-async-proxy: $repeats runs of $((blocks * steps)) steps equal those with a fence$card"
