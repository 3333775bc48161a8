#!/usr/bin/env bash
# Holds the warning of tiles that exceed a thread's registers (W0406) against what ptxas spills, with tiles that are written.
#
#     scripts/check_spill_warnings.sh [target/release/tilec]     # some 540 settings of the examples, for sm_70, sm_80 and sm_90a
#     TARGETS=sm_80 FILTER=attention scripts/check_spill_warnings.sh
#     scripts/check_spill_warnings.sh --list                     # what would be compiled
#
# A line for each: `both` (warned of, and spills), `none`, `missed` (spills without a warning) or `false` (a warning, and nothing spills), with the bytes,
# the registers and what the warning counted; then how many there are of each. Settings that the compiler refuses are `refused`. More than LIMIT (8) misses, or false warnings, are a failure.
# Needs ptxas (`TILEC_PTXAS`, or what scripts/fetch_tools.sh fetched). As many run at once as there are processors (`JOBS`).
set -euo pipefail
cd "$(dirname "$0")/.."
list=0
[ "${1:-}" = --list ] && { list=1; shift; }
export TILEC_UNDER_TEST=${1:-target/release/tilec}
export PTXAS_13=${TILEC_PTXAS:-${TILEC_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/tilec/tools}/ptxas-13/ptxas}

# A line for each thing to compile: the target, the program, its options.
cases() {
    local target tile warp type order size act
    for target in ${TARGETS:-sm_70 sm_80 sm_90a}; do
        of() { echo "$target examples/$1.tile -D $2"; }
        if [ "$target" != sm_90a ]; then
            for tile in BM=64,BN=64,BK=32 BM=128,BN=128,BK=32 BM=128,BN=128,BK=64 BM=256,BN=128,BK=32 BM=64,BN=64,BK=64 BM=64,BN=128,BK=16; do
                for warp in WM=64,WN=64 WM=64,WN=32 WM=32,WN=64; do
                    of gemm "$tile,$warp"
                done
                of gemm "$tile,WM=64,WN=64,LB=col"
                of gemm "$tile,WM=64,WN=64,LA=col"
            done
            for order in Acc=f16 ALIGN=1 ALIGN_B=1 LA=col,LB=col,LC=col KW=2 Out=f16 T=i8,Acc=i32 T=i8,Acc=i32,ALIGN=16,LB=col T=f32,ALIGN=4; do
                of gemm "BM=128,BN=128,BK=32,WM=64,WN=64,$order"
                of gemm "BM=128,BN=64,BK=32,WM=64,WN=32,$order"
            done
            of gemm BM=128,BN=256,BK=32,WM=64,WN=128
            of gemm BM=128,BN=256,BK=32,WM=64,WN=128,Acc=f16
            of gemm BM=256,BN=256,BK=32,WM=64,WN=64
            of gemm BM=64,BN=64,BK=32,WM=32,WN=32,T=f64,Acc=f64
            of gemm BM=64,BN=64,BK=16,WM=64,WN=32,T=f64,Acc=f64
            for act in 1 2 3 7; do
                of gemm_fused "BM=128,BN=128,BK=32,WM=64,WN=64,ACT=$act"
                of gemm_fused "BM=128,BN=64,BK=32,WM=64,WN=32,ACT=$act"
            done
            of gemm_fused BM=128,BN=128,BK=32,WM=64,WN=64,LB=col
            of gemm_fused BM=128,BN=128,BK=32,WM=64,WN=64,ALIGN=1
            for tile in BM=128,BN=128 BM=128,BN=64; do
                of conv "$tile,WM=64,WN=64"
                of conv "$tile,WM=64,WN=64,NCHW=1"
                of conv "$tile,WM=64,WN=32,ALIGN=1"
                of gemm_batched "$tile,BK=32,WM=64,WN=64"
                of gemm_mixed "$tile,BK=32,WM=64,WN=64"
                of gemm_splitk "$tile,BK=32,WM=64,WN=64"
                of quantized "$tile,BK=32,WM=64,WN=64"
            done
        else
            for tile in BM=128,BN=128,BK=64 BM=128,BN=256,BK=64 BM=256,BN=128,BK=64 BM=64,BN=256,BK=64 BM=192,BN=176,BK=64 BM=192,BN=192,BK=64 BM=256,BN=192,BK=64; do
                of gemm "$tile"
                of gemm "$tile,LB=col,Out=f16"
                of gemm "$tile,Acc=f16"
                of gemm "$tile,ALIGN=1"
                of conv "${tile%,*},BK=64,CALIGN=64"
                for act in 1 2 3 7; do
                    of gemm_fused "$tile,ACT=$act"
                done
            done
            for tile in BM=128,BN=128,BK=32 BM=128,BN=256,BK=32 BM=256,BN=128,BK=32; do
                of gemm "$tile,T=tf32,ALIGN=4"
                of gemm "$tile,T=tf32,ALIGN=4,LB=col"
            done
            of gemm BM=128,BN=256,BK=128,T=e4m3,LB=col,ALIGN=16
            of gemm BM=128,BN=128,BK=128,T=e4m3,LB=col,ALIGN=16
            of gemm BM=128,BN=256,BK=128,T=i8,Acc=i32,ALIGN=16,LB=col
        fi
        for size in 64 96 128 192 256; do
            for tile in BQ=64,BKV=32 BQ=64,BKV=64 BQ=128,BKV=32 BQ=128,BKV=64 BQ=128,BKV=128; do
                of attention "D=$size,$tile"
                of attention "D=$size,$tile,CAUSAL=1"
            done
            of attention_lse "D=$size,BQ=128,BKV=64"
            of attention "D=$size,BQ=128,BKV=64,CAUSAL=1,CAP=1"
            of attention "D=$size,BQ=64,BKV=64,CAUSAL=1,WINDOW=512"
        done
        of attention D=192,DV=128
        of attention D=192,DV=128,CAUSAL=1
        of attention D=192,DV=128,BQ=64,BKV=64
        of attention D=192,DV=128,BQ=128,BKV=64
        for tile in BM=64,BN=64,BK=32 BM=128,BN=64,BK=32 BM=128,BN=64,BK=64 BM=128,BN=128,BK=32 BM=128,BN=128,BK=64 BM=256,BN=128,BK=32; do
            of swiglu "$tile"
            of swiglu "$tile,LB=col"
            of lora "$tile"
        done
        for tile in BM=64,BN=64,BK=32,BP=64 BM=128,BN=64,BK=32,BP=64 BM=128,BN=128,BK=32,BP=64 BM=128,BN=128,BK=64,BP=128; do
            of back_to_back "$tile"
        done
        for tile in BM=64,BN=64 BM=64,BN=128 BM=128,BN=128 BM=64,BN=256; do
            of gemm_softmax "$tile"
            of gemm_rmsnorm "$tile"
        done
        for size in 64 96 128; do
            of attention_backward "D=$size"
            of attention_backward "D=$size,CAUSAL=1"
        done
        echo "$target tests/files/diag/spilled_two_loops.tile"
    done | grep -e "${FILTER:-}" || true
}

check() { # target, program, options
    local target=$1 program=$2 work said spilled registers warned counted
    shift 2
    work=$(mktemp -d)
    # ptxas 13 has no Volta.
    local assembler=$PTXAS_13
    [ "$target" = sm_70 ] && assembler=${PTXAS_13/ptxas-13/ptxas-12.9}
    if ! "$TILEC_UNDER_TEST" "$program" --target "$target" "$@" -o "$work/k.ptx" 2> "$work/said"; then
        echo "refused $target $program $*: $(grep -m1 -E '^(error|thread)' "$work/said")"
    elif ! said=$("$assembler" -v -arch "$target" "$work/k.ptx" -o "$work/k.cubin" 2>&1); then
        echo "FAILED $target $program $*: $(tail -1 <<< "$said")"
    else
        spilled=$(grep -oE '[0-9]+ bytes spill stores' <<< "$said" | sort -rn | head -1)
        registers=$(grep -oE 'Used [0-9]+ registers' <<< "$said" | sort -rn -k2 | head -1)
        counted=$(grep -m1 -E '^warning\[W0406\]' "$work/said" | sed -e 's/^[^:]*: //' || true)
        warned=${counted:+1}
        case "${warned:-0}${spilled%% *}" in
            00) echo "none $target $program $*: $registers" ;;
            10) echo "false $target $program $*: $registers; $counted" ;;
            0*) echo "missed $target $program $*: $registers, $spilled" ;;
            *) echo "both $target $program $*: $registers, $spilled; $counted" ;;
        esac
    fi
    rm -rf "$work"
}
export -f check

if [ "$list" = 1 ]; then
    cases
    exit
fi
results=$(mktemp)
trap 'rm -f -- "$results"' EXIT
cases | xargs -P "${JOBS:-$(nproc)}" -d '\n' -I{} bash -c 'set -f; check {}' | tee "$results"
count() { grep -c "^$1 " "$results" || true; }
echo "$(count both) spill with a warning, $(count missed) without; $(count false) warnings of what does not spill; $(count none) neither, $(count refused) refused, $(count FAILED) failed"
[ -s "$results" ] && [ "$(count FAILED)" = 0 ] && [ "$(count missed)" -le "${LIMIT:-8}" ] && [ "$(count false)" -le "${LIMIT:-8}" ]
