#!/usr/bin/env bash
# The simulator's counts against the counters of a GPU, read by Nsight Compute.
#
#   scripts/ncu_counters.sh [--dry-run] [FOLDER]
#
# FOLDER (default: a new one under /tmp) gets the names that the profiler knows (query.txt), those it was asked for
# (metrics.txt), its table (ncu.csv), what the launches printed (launch.txt) and the comparison (counters.txt), which is also
# printed. `--dry-run` needs neither GPU nor profiler: the simulator's own counts stand in for the table.
# NCU names the profiler (default: `ncu`), CUDA_CORPUS the binary as for scripts/cuda_corpus.sh.
#
# Exit status 0 whatever the comparison says, and also where the profiler may not read counters: that is said, loudly.
set -uo pipefail
cd "$(dirname "$0")/.."

dry=
if [ "${1:-}" = --dry-run ]; then dry=1; shift; fi
out=${1:-$(mktemp -d /tmp/counters.XXXXXX)}
mkdir -p "$out" || exit 2
binary=${CUDA_CORPUS:-${CARGO_TARGET_DIR:-target}/release/cuda_corpus}
if [ -z "${CUDA_CORPUS:-}" ] && command -v cargo > /dev/null; then scripts/cuda_corpus.sh --build || exit 2; fi
if [ ! -x "$binary" ]; then
    echo "no cargo here, and no binary at $binary" >&2
    exit 2
fi
ncu=${NCU:-ncu}

refused() {
    echo
    echo "****************************************************************************"
    echo "NO COUNTERS WERE READ: $1"
    echo "****************************************************************************"
    exit 0
}

if [ -n "$dry" ]; then
    "$binary" --metrics > "$out/metrics.txt" || exit 2
    "$binary" --expected > "$out/ncu.csv" || exit 2
else
    command -v "$ncu" > /dev/null || refused "there is no \`$ncu\` here"
    "$ncu" --version | tail -n 2
    # What this profiler knows of this chip. The name of the chip keeps the query away from the device; counters of
    # instrumented code are listed apart by some versions, which others refuse.
    "$ncu" --query-metrics --chips gh100 > "$out/query.txt" 2>&1 || "$ncu" --query-metrics > "$out/query.txt" 2>&1
    "$ncu" --query-metrics --query-metrics-collection source --chips gh100 >> "$out/query.txt" 2>&1
    : > "$out/metrics.txt"
    "$binary" --metrics | while read -r name; do
        if grep -q -w -- "${name%%.*}" "$out/query.txt"; then
            echo "$name" >> "$out/metrics.txt"
        else
            echo "not known to this profiler: $name"
        fi
    done
    if [ ! -s "$out/metrics.txt" ]; then
        echo "the query names none of them (see $out/query.txt); asking for all of them"
        "$binary" --metrics > "$out/metrics.txt"
    fi
    for try in 1 2; do
        timeout -k 10 240 "$ncu" --clock-control none --csv --page raw --print-units base --log-file "$out/ncu.csv" \
            --metrics "$(paste -s -d , "$out/metrics.txt")" "$binary" --launch > "$out/launch.txt" 2>&1
        status=$?
        echo "profiler: exit status $status; $(grep -c ': right$' "$out/launch.txt") launches were right"
        if grep -q '^"ID"' "$out/ncu.csv" 2> /dev/null; then break; fi
        cat "$out/ncu.csv" 2> /dev/null | head -n 20
        tail -n 20 "$out/launch.txt"
        if grep -q ERR_NVGPUCTRPERM "$out/ncu.csv" "$out/launch.txt"; then
            refused "this user may not read the GPU's performance counters (ERR_NVGPUCTRPERM)"
        fi
        if [ "$try" = 2 ]; then refused "the profiler gave no table; its words are above"; fi
        # Counters of instrumented code need what not every machine allows.
        echo "once more without the counters of instrumented code"
        sed -i '/smsp__sass/d' "$out/metrics.txt"
    done
    grep -v ': right$' "$out/launch.txt" | tail -n 20
fi

"$binary" --counters "$out/ncu.csv" > "$out/counters.txt"
status=$?
cat "$out/counters.txt"
if [ "$status" -ne 0 ]; then echo "the comparison failed with status $status"; fi
echo "everything is in $out"
exit 0
