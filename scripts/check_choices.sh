#!/usr/bin/env bash
# Compiles the examples with what is chosen for them, and has ptxas assemble the code: a spill, or wgmma that are serialised, is a failure.
#
#     scripts/check_choices.sh [target/release/tilec]      # every example in its documented variants, for every target
#     TARGETS=sm_80 FILTER=attention scripts/check_choices.sh
#     scripts/check_choices.sh --list                      # what would be compiled
#
# Where a person wrote the tile (`written` below), a spill is no failure if the compiler warned of it (W0406). Needs ptxas (`TILEC_PTXAS`, or what
# scripts/fetch_tools.sh fetched). As many run at once as there are processors (`JOBS`).
set -euo pipefail
cd "$(dirname "$0")/.."
list=0
[ "${1:-}" = --list ] && { list=1; shift; }
export TILEC_UNDER_TEST=${1:-target/release/tilec}
export PTXAS_13=${TILEC_PTXAS:-${TILEC_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/tilec/tools}/ptxas-13/ptxas}

# A line for each thing to compile: chosen or written, the target, the example, its options.
cases() {
    local target number types type size causal sizes order wide act
    for target in ${TARGETS:-sm_70 sm_75 sm_80 sm_86 sm_89 sm_90 sm_90a}; do
        number=${target//[^0-9]/}
        types=f16
        [ "$number" -ge 80 ] && types="f16 bf16"
        chosen() { echo "chosen $target $*"; }
        written() { echo "written $target $*"; }
        for act in f32 f16; do
            chosen copy -D "T=$act"
            chosen copy -D "T=$act,ALIGN=1"
            chosen transpose -D "T=$act"
            chosen softmax -D "T=$act"
        done
        chosen gemm_naive
        chosen gemm_naive -D T=f32
        written gemm_direct
        written gemm_direct -D Acc=f16
        written gemm_explicit
        chosen quantized
        chosen quantized -D LQ=col
        for wide in T=f32,ALIGN=4 T=f64,Acc=f64 T=i8,Acc=i32 T=i8,Acc=i32,ALIGN=16,LB=col Acc=f16; do
            chosen gemm -D "$wide"
            chosen gemm_splitk -D "$wide" --for M=256,N=256,K=16384,S=8
        done
        chosen gemm -D T=i8,Acc=i32,Scale=f32,Out=i8
        chosen gemm_fused -D T=i8,Acc=i32,ALIGN=16,LB=col
        if [ "$number" -ge 80 ]; then
            for wide in T=tf32,ALIGN=4 T=tf32,ALIGN=4,LB=col; do
                chosen gemm -D "$wide"
                chosen gemm_fused -D "$wide"
            done
        fi
        [ "$number" -ge 89 ] && chosen gemm -D T=e4m3,LB=col,ALIGN=16
        [ "$target" = sm_90a ] && chosen gemm -D T=e4m3,TB=e5m2,LB=col,ALIGN=16
        for type in $types; do
            chosen adam -D "T=$type"
            for order in LA=row,LB=row LA=row,LB=col LA=col,LB=row LA=col,LB=col,LC=col LB=col,Out=$type ALIGN=1 ALIGN_B=1; do
                chosen gemm -D "T=$type,$order"
            done
            for sizes in M=16,N=4096,K=4096 M=256,N=1024,K=4096 M=1024,N=1280,K=8192 M=4096,N=4096,K=4096; do
                chosen gemm -D "T=$type,LB=col" --for "$sizes"
                chosen gemm -D "T=$type,LB=col,Out=$type" --for "$sizes"
            done
            for act in 0 1 2 3 4 5 6 7; do
                chosen gemm_fused -D "T=$type,ACT=$act"
            done
            chosen gemm_fused -D "T=$type,ACT=3,LB=col"
            chosen gemm_fused -D "T=$type,ACT=3,ALIGN=1"
            for order in NCHW=0 NCHW=1 NCHW=1,ALIGN_Y=1 CALIGN=32 BK=64,CALIGN=64; do
                chosen conv -D "T=$type,$order"
            done
            chosen gemm_batched -D "T=$type"
            chosen gemm_batched -D "T=$type" --for Z=16,M=512,N=512,K=512
            chosen gemm_pointers -D "T=$type"
            chosen gemm_splitk -D "T=$type" --for M=256,N=256,K=16384,S=8
            chosen gemm_splitk_add -D "T=$type,S=8" --for M=256,N=256,K=16384
            chosen gemm_mixed -D "T=$type,TA=i8"
            chosen gemm_mixed -D "T=$type,TA=i8,ALIGN=16,LB=col"
            chosen gemm_softmax -D "T=$type"
            chosen gemm_rmsnorm -D "T=$type"
            chosen lora -D "T=$type"
            chosen back_to_back -D "T=$type"
            chosen swiglu -D "T=$type"
            for sizes in M=4096,N=14336,K=4096 M=2048,N=3584,K=8192 M=512,N=14336,K=4096 M=16,N=14336,K=4096; do
                chosen swiglu -D "T=$type,LB=col" --for "$sizes"
                chosen swiglu -D "T=$type" --for "$sizes"
            done
            for size in 64 80 96 128 192 256; do
                # Fragments of heads of 256 are more than Volta's threads hold.
                [ "$number" -lt 75 ] && [ "$size" -gt 128 ] && continue
                for causal in 0 1; do
                    chosen attention -D "T=$type,D=$size,CAUSAL=$causal"
                    chosen attention_lse -D "T=$type,D=$size,CAUSAL=$causal"
                done
                chosen attention -D "T=$type,D=$size,CAUSAL=1,CAP=1"
                [ "$size" -le 128 ] && written attention_backward -D "T=$type,D=$size,CAUSAL=1"
            done
            chosen attention -D "T=$type,CAP=1"
            chosen attention -D "T=$type,CAUSAL=1,WINDOW=512"
            chosen attention -D "T=$type,CAUSAL=1,WINDOW=512,CAP=1"
            chosen attention -D "T=$type,G=4"
            written attention_backward -D "T=$type,G=4"
            written attention_backward -D "T=$type,CAUSAL=1,WINDOW=512"
            if [ "$target" = sm_90a ]; then
                written flash_attention -D "T=$type"
                written swiglu -D "T=$type,BM=128,BN=128"
            fi
        done
        if [ "$target" = sm_90a ]; then
            for size in 64 128 256; do
                written attention_fp8 -D "BQ=128,BKV=128,D=$size"
                written attention_fp8 -D "BQ=128,BKV=128,D=$size,CAUSAL=1"
            done
            written attention_fp8 -D BQ=128,BKV=128,LV=row,COPY=1
        fi
    done | grep -e "${FILTER:-}" || true
}

check() { # chosen or written, target, example, options
    local who=$1 target=$2 example=$3 work said chosen spilled registers warned verdict=ok
    shift 3
    work=$(mktemp -d)
    # ptxas 13 has no Volta.
    local assembler=$PTXAS_13
    [ "$target" = sm_70 ] && assembler=${PTXAS_13/ptxas-13/ptxas-12.9}
    if ! "$TILEC_UNDER_TEST" "examples/$example.tile" --target "$target" "$@" --remarks -o "$work/k.ptx" 2> "$work/remarks"; then
        echo "FAILED $target $example $*: $(grep -m1 -E '^(error|thread)' "$work/remarks")"
    elif ! said=$("$assembler" -v -arch "$target" "$work/k.ptx" -o "$work/k.cubin" 2>&1); then
        echo "FAILED $target $example $*: $(tail -1 <<< "$said")"
    else
        chosen=$(grep -m1 -oE '^remark\[choose\]: .* on ' "$work/remarks" | sed -e 's/^remark\[choose\]: //' -e 's/ on $//' || true)
        spilled=$(grep -oE '[0-9]+ bytes spill stores' <<< "$said" | sort -rn | head -1)
        registers=$(grep -oE 'Used [0-9]+ registers' <<< "$said" | head -1)
        warned=$(grep -cE '^warning\[W0406\]' "$work/remarks" || true)
        if grep -q 'serialized' <<< "$said"; then
            verdict=FAILED
        elif [ "${spilled%% *}" != 0 ]; then
            # What is written may spill, if that is said.
            if [ "$who" = written ] && [ "$warned" != 0 ]; then verdict=warned; else verdict=FAILED; fi
        fi
        echo "$verdict $target $example $*: ${chosen:-as written}; $registers, $spilled"
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
echo "$(grep -c '^ok' "$results" || true) ok, $(grep -c '^warned' "$results" || true) spill with a warning, $(grep -c '^FAILED' "$results" || true) failed"
[ -s "$results" ] && ! grep -q '^FAILED' "$results"
