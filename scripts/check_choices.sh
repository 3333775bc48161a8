#!/usr/bin/env bash
# Compiles the examples with what is chosen for them, and has ptxas assemble the code: a spill, or wgmma that are serialised, is a failure.
#
#     scripts/check_choices.sh [target/release/tilec]
#
# Needs ptxas (`TILEC_PTXAS`, or what scripts/fetch_tools.sh fetched).
set -euo pipefail
cd "$(dirname "$0")/.."
tilec=${1:-target/release/tilec}
ptxas=${TILEC_PTXAS:-$HOME/.cache/tilec/tools/ptxas-13/ptxas}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

check() { # target, example, options
    local target=$1 example=$2
    shift 2
    if ! "$tilec" "examples/$example.tile" --target "$target" "$@" --remarks -o "$work/k.ptx" 2>"$work/remarks"; then
        echo "FAILED $target $example $*: $(grep -m1 '^error' "$work/remarks")"
        failed=1
        return
    fi
    local assembler=$ptxas said chosen
    # ptxas 13 has no Volta.
    [ "$target" = sm_70 ] && assembler=${ptxas/ptxas-13/ptxas-12.9}
    said=$("$assembler" -v -arch "$target" "$work/k.ptx" -o "$work/k.cubin" 2>&1)
    chosen=$(grep -m1 -oE '^remark\[choose\]: .* on ' "$work/remarks" | sed -e 's/^remark\[choose\]: //' -e 's/ on $//')
    local spilled registers
    spilled=$(grep -oE '[0-9]+ bytes spill stores' <<<"$said" | sort -rn | head -1)
    registers=$(grep -oE 'Used [0-9]+ registers' <<<"$said" | head -1)
    local verdict=ok
    if [ "${spilled%% *}" != 0 ] || grep -q 'serialized' <<<"$said"; then
        verdict=FAILED
        failed=1
    fi
    echo "$verdict $target $example $*: $chosen; $registers, $spilled"
}

for target in ${TARGETS:-sm_70 sm_80 sm_90a}; do
    for type in f16 bf16; do
        [ "$target" = sm_70 ] && [ "$type" = bf16 ] && continue
        for size in 64 128 256; do
            [ "$target" = sm_70 ] && [ "$size" = 256 ] && continue
            for causal in 0 1; do
                check "$target" attention -D "T=$type,D=$size,CAUSAL=$causal"
                check "$target" attention_lse -D "T=$type,D=$size,CAUSAL=$causal"
            done
        done
        check "$target" attention -D "T=$type,D=128,CAUSAL=1,WINDOW=512"
        check "$target" attention -D "T=$type,D=128,CAP=1"
        check "$target" attention -D "T=$type,D=80,DT=128"
        check "$target" lora -D "T=$type"
        check "$target" back_to_back -D "T=$type"
        for sizes in M=4096,N=14336,K=4096 M=2048,N=3584,K=8192 M=512,N=14336,K=4096 M=16,N=14336,K=4096; do
            check "$target" swiglu -D "T=$type" -D LB=col --for "$sizes"
            check "$target" swiglu -D "T=$type" --for "$sizes"
        done
    done
done
exit $failed
