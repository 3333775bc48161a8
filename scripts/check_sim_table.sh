#!/usr/bin/env bash
# Has ptxas judge the simulator's instruction table, and the probes of sim/tests/data/verdicts.txt.
#
# Every spelling of the table (those of very large rows thinned out) goes to ptxas and to the simulator for every target and
# PTX version: what one refuses the other must refuse. In the probes ptxas confirms the verdict column.
#
#     TILEC_PTXAS=/path/to/ptxas scripts/check_sim_table.sh [--probes]        (ptxas 12.9: the last that knows sm_70)
set -euo pipefail
cd "$(dirname "$0")/.."

ptxas=${TILEC_PTXAS:-ptxas}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# refusals FILE TARGET: the lines that ptxas refuses; that it refuses some is no failure.
refusals() {
    { "$ptxas" -arch="$2" -O0 -o /dev/null "$1" 2>&1 || true; } | sed -n 's/.*, line \([0-9]*\); \(error\|fatal\) .*/\1/p' | sort -un
}

if [ "${1:-}" != --probes ]; then
    cargo build --quiet -p tilec-sim --example forms
    forms=${CARGO_TARGET_DIR:-target}/debug/examples/forms
    least() { case $1 in sm_70) echo 6.0 ;; sm_72) echo 6.1 ;; sm_75) echo 6.3 ;; sm_80) echo 7.0 ;; sm_86) echo 7.1 ;; sm_87) echo 7.4 ;; sm_90a) echo 8.0 ;; *) echo 7.8 ;; esac; }
    for target in sm_70 sm_72 sm_75 sm_80 sm_86 sm_87 sm_89 sm_90 sm_90a; do
        for version in 6.0 6.1 6.2 6.3 6.4 6.5 7.0 7.1 7.2 7.3 7.4 7.5 7.6 7.7 7.8 8.0 8.1 8.2 8.3 8.4 8.5 8.6 8.7 8.8; do
            [ "$(printf '%s\n' "$version" "$(least $target)" | sort -V | head -1)" = "$(least $target)" ] || continue
            "$forms" "$target" "$version" "$work/all.ptx" "$work/verdicts"
            # Instructions start at line 7 of the module.
            refusals "$work/all.ptx" "$target" | awk '{print $1 - 6}' > "$work/refused"
            awk 'NR == FNR {refused[$1] = 1; next} {print ((FNR in refused) ? "no" : "ok"), $0}' "$work/refused" "$work/verdicts" \
                | paste -d' ' - <(sed -n '7,$p' "$work/all.ptx" | head -n "$(wc -l < "$work/verdicts")") \
                | awk -v where="$target $version" '$1 != $2 {print where ": ptxas " $1 ", the simulator " $2 ": " substr($0, 7)}' > "$work/differ"
            head -20 "$work/differ"
            failures=$((failures + $(wc -l < "$work/differ")))
        done
    done
fi

# The probes: TARGET VERSION VERDICT LINE, where a line stands in the kernel of probe.ptx, or is a module of its own after `module`.
probes=0
while IFS= read -r probe; do
    case $probe in '' | '#'*) continue ;; esac
    read -r target version verdict line <<< "$probe"
    probes=$((probes + 1))
    case $line in
        'module '*) body=$(printf '%b' "${line#module }") ;;
        *) body=$(LINE=$line awk '{ if ($0 == "//LINE") print ENVIRON["LINE"]; else print }' sim/tests/data/probe.ptx) ;;
    esac
    printf '.version %s\n.target %s\n.address_size 64\n%s\n' "$version" "$target" "$body" > "$work/probe.ptx"
    said=no
    if "$ptxas" -arch="$target" -o /dev/null "$work/probe.ptx" > "$work/log" 2>&1; then said=ok; fi
    # `limit`: legal PTX that the simulator says it does not execute.
    wanted=${verdict/limit/ok}
    if [ "$said" != "$wanted" ]; then
        echo "$target $version: ptxas says $said, the table $verdict: $line ($(head -1 "$work/log"))"
        failures=$((failures + 1))
    fi
done < sim/tests/data/verdicts.txt
echo "$probes probes; $failures differ"
[ "$failures" -eq 0 ]
