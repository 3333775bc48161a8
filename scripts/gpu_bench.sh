#!/usr/bin/env bash
# The figures of docs/performance.md, measured again: every type and operand order against cuBLAS, with what `auto` chooses for the H200.
#
#   scripts/gpu_bench.sh [SECTION ..]     # half, orders, half16, turing, types, fma, unaligned, reordered, registers, pending, ping_pong, small, more, hopper; all without one
#
# TILEC is the compiler's binary (default: target/release/tilec, built first where cargo is). Needs the CUDA driver, and cuBLAS to
# compare with. Ten minutes for everything.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ -z "${TILEC:-}" ]; then
    TILEC=${CARGO_TARGET_DIR:-target}/release/tilec
    if command -v cargo > /dev/null; then cargo build --release -p tilec; fi
fi

# bench FILE ARGUMENTS..: with the command in front of its table.
bench() {
    echo "\$ tilec bench $*"
    "$TILEC" bench "$@" || echo "exit status $?"
    echo
}

gemm() { bench examples/gemm.tile --card H200 "$@"; }

# Chosen for each size by itself.
each() {
    local sizes=$1
    shift
    for size in $sizes; do
        # `M=N=4096,K=512` is two arguments.
        # shellcheck disable=SC2086
        gemm --for "$size" "$@" ${size//,/ }
    done
}

half() {
    for T in f16 bf16; do
        each "M=N=K=4096 M=N=K=8192" --target sm_80 -D T=$T
    done
    gemm --target sm_80 -D BK=64,WM=64,WN=64,KW=1,STAGES=3,RASTER=8 --variant BM=256,BN=128 --variant BM=128,BN=256 M=N=K=4096,8192
}

orders() {
    for orders in LA=col LB=col LA=col,LB=col; do
        each "M=N=K=4096 M=N=K=8192" --target sm_80 -D T=f16,$orders
    done
}

half16() { each "M=N=K=4096 M=N=K=8192" --target sm_80 -D Acc=f16; }

turing() { each M=N=K=4096 --target sm_75; }

types() {
    each M=N=K=4096 --target sm_80 -D T=tf32,ALIGN=4
    each M=N=K=4096 --target sm_80 -D T=i8,Acc=i32,ALIGN=16,LB=col
    each M=N=K=4096 --target sm_90 -D T=f64,Acc=f64,ALIGN=2
}

fma() {
    for n in 128 192 256 384 512 768 1024 1536 2048 3072 4096 6144 8192 12288 16384; do
        each "M=N=$n,K=1024" --target sm_90 -D T=f32,ALIGN=4 --rounds 5
    done
}

# With sm_90a, operands are copied to aligned rows first (`align-rows`), as part of what is timed; without that pass beside it.
unaligned() {
    for T in bf16 f16; do
        each "M=1111,N=2222,K=3336 M=N=4095,K=4096" --target sm_90a -D T=$T,ALIGN_B=1,ALIGN_C=1 --variant "" --variant off=align-rows
        each M=N=K=4095 --target sm_90a -D T=$T,ALIGN=1 --variant "" --variant off=align-rows
    done
    each "M=1111,N=2222,K=3336 M=N=4095,K=4096" --target sm_80 -D T=bf16,ALIGN_B=1,ALIGN_C=1
}

# Operands that wgmma products do not read as they lie are copied to the other order first, as part of what is timed; without that pass
# beside it.
reordered() {
    for types in T=tf32,ALIGN=4 T=i8,Acc=i32,ALIGN=16 T=e4m3,Out=bf16,ALIGN=16; do
        each "M=N=K=1024 M=N=K=2048 M=N=K=4096 M=N=K=8192" --target sm_90a -D $types --variant "" --variant off=align-rows
    done
    for orders in LA=col LA=col,LB=col; do
        each M=N=K=4096 --target sm_90a -D T=tf32,ALIGN=4,$orders --variant "" --variant off=align-rows
    done
}

# tf32 with an operand from registers, its loads in front of the products or beside those of the step before; and copied in front of all.
registers() {
    local program
    program=$(mktemp --suffix .tile)
    sed 's/promote PROMOTE }/promote PROMOTE pending PENDING align_rows COPY }/; s/PROMOTE = 128,/PROMOTE = 128, PENDING = 0, COPY = 0,/' \
        examples/gemm.tile > "$program"
    for size in M=N=K=1024 M=N=K=2048 M=N=K=4096 M=N=K=8192; do
        bench "$program" --card H200 --for "$size" --target sm_90a -D T=tf32,ALIGN=4 --variant PENDING=0/1 --variant COPY=1 "$size"
    done
    rm -f -- "$program"
    # A of the same element type, by warpgroups, and converted in registers; before, converted in front of shared memory for products of warps.
    for size in M=N=K=1024 M=N=K=2048 M=N=K=4096 M=N=K=8192; do
        bench examples/gemm_mixed.tile --card H200 --for "$size" --target sm_90a -D TA=i8,ALIGN=16 --variant "" --variant TA=f16 "$size"
    done
}

# Products of a step pending while those of the next are issued, and not.
pending() {
    local program size
    program=$(mktemp --suffix .tile)
    sed 's/promote PROMOTE }/promote PROMOTE pending PENDING }/; s/PROMOTE = 128,/PROMOTE = 128, PENDING = 1,/' examples/gemm.tile > "$program"
    for size in M=N=K=1024 M=N=K=2048 M=N=K=4096 M=N=K=8192 M=N=K=16384 M=4096,N=6144,K=4096 M=2048,N=28672,K=4096 M=N=4096,K=14336 \
        M=128,N=6144,K=4096 M=64,N=4096,K=14336 M=16,N=4096,K=4096; do
        # `M=N=4096,K=512` is two arguments.
        # shellcheck disable=SC2086
        bench "$program" --card H200 --for "$size" --target sm_90a -D T=e4m3,LB=col,ALIGN=16,Out=bf16 --variant PENDING=0/1 ${size//,/ }
    done
    for size in M=N=K=512 M=N=K=1000 M=128,N=6144,K=4096 M=64,N=4096,K=14336; do
        # shellcheck disable=SC2086
        bench "$program" --card H200 --for "$size" --target sm_90a -D Out=f16 --variant PENDING=0/1 ${size//,/ }
    done
    rm -f -- "$program"
}

# Two warpgroups that take tiles in turns, and the tile that they share otherwise.
ping_pong() {
    local program fused size
    program=$(mktemp --suffix .tile)
    fused=$(mktemp --suffix .tile)
    sed 's/promote PROMOTE }/promote PROMOTE ping_pong PP }/; s/PROMOTE = 128,/PROMOTE = 128, PP = 0,/' examples/gemm.tile > "$program"
    sed 's/raster RASTER }/raster RASTER ping_pong PP }/; s/ACT = 1,/ACT = 1, PP = 0,/' examples/gemm_fused.tile > "$fused"
    local turns=(--variant PP=0 --variant PP=1,BM=128,BN=128,WM=128,WN=128,BK=64,STAGES=6
        --variant PP=1,BM=64,BN=256,WM=64,WN=256,BK=64,STAGES=4)
    for size in M=N=K=1000 M=N=K=2048 M=N=K=4096 M=N=8192,K=512 M=N=8192,K=1024 M=128,N=6144,K=4096; do
        # `M=N=4096,K=512` is two arguments.
        # shellcheck disable=SC2086
        bench "$program" --card H200 --for "$size" --target sm_90a -D Out=f16 "${turns[@]}" ${size//,/ }
    done
    for size in M=N=K=2048 M=N=K=4096 M=N=8192,K=1024; do
        # shellcheck disable=SC2086
        bench "$fused" --card H200 --for "$size" --target sm_90a -D ACT=2 "${turns[@]}" ${size//,/ }
        # shellcheck disable=SC2086
        bench "$program" --card H200 --for "$size" --target sm_90a -D T=e4m3,LB=col,ALIGN=16,Out=bf16 --variant PP=0 \
            --variant PP=1,BM=64,BN=128,WM=64,WN=128,BK=128,STAGES=8 \
            --variant PP=1,BM=128,BN=128,WM=128,WN=128,BK=128,STAGES=6,PROMOTE=0 ${size//,/ }
    done
    rm -f -- "$program" "$fused"
}

# Bias and gelu behind the product: nothing, the tanh form, and the same with the card's own tanh.
epilogue() {
    local program
    program=$(mktemp --suffix .tile)
    sed -e '/let c = C/,$d' -e 's/alpha: Scale = 1, beta: Scale = 0)/bias: gmem f32[M, N] strides (0, 1))/' -e 's/PROMOTE = 128,/PROMOTE = 128, ACT = 0,/' \
        examples/gemm.tile > "$program"
    cat >> "$program" << 'EOF'
    let x = cast<f32>(acc) + bias[bm * BM.., bn * BN..]
    let h = 0.5 * x
    let y = select(ACT == 1, h + h * tanh(x * (0.7978846 + 0.035677408 * (x * x))),
            select(ACT == 2, h + h * fast_tanh(x * (0.7978846 + 0.035677408 * (x * x))), x))
    copy cast<Out>(y) -> C[bm * BM.., bn * BN..]
}
EOF
    for _ in 1 2; do
        bench examples/gemm.tile --card H200 --for M=N=K=4096 --target sm_90a -D Out=f16 M=N=K=4096
        bench "$program" --card H200 --for M=N=K=4096 --target sm_90a -D Out=f16 --variant ACT=0/1/2 M=N=K=4096
    done
    rm -f -- "$program"
}

small() {
    each "M=N=K=512 M=N=K=1024 M=N=K=2048 M=16,N=4096,K=4096 M=64,N=4096,K=14336 M=128,N=6144,K=4096 M=512,N=4096,K=4096" --target sm_80
}

more() {
    bench examples/gemm_batched.tile --card H200 --for Z=16,M=N=K=1024 --target sm_80 Z=16 M=N=K=1024
    bench examples/gemm_splitk.tile --card H200 --for M=N=256,K=16384,S=16 --target sm_80 S=16 M=N=256 K=16384
    local conv=(B=32 P=Q=56 R=S=3 C=O=256 xb=861184 xh=14848 xw=256)
    for target in sm_80 sm_90a; do
        bench examples/conv.tile --card H200 --for B=32,P=Q=56,R=S=3,C=O=256 --target $target -D CALIGN=64,Out=f16 --variant BK=32/64 "${conv[@]}"
        for size in Z=1,M=N=K=4096 Z=8,M=N=K=2048 Z=16,M=N=K=1024; do
            # `Z=8,M=N=K=2048` is two arguments.
            # shellcheck disable=SC2086
            bench examples/gemm_pointers.tile --card H200 --for $size --target $target -D Out=f16 ${size//,/ }
        done
    done
    bench examples/gemm_batched.tile --card H200 --for Z=16,M=N=K=1024 --target sm_90a -D Out=f16 Z=16 M=N=K=1024
}

hopper() {
    for T in f16 bf16; do
        each "M=N=K=512 M=N=K=1024 M=N=K=2048 M=N=K=4096 M=N=K=8192 M=N=8192,K=1024 M=512,N=4096,K=4096 M=128,N=6144,K=4096" \
            --target sm_90a -D T=$T,Out=$T
    done
    for orders in LA=col LB=col LA=col,LB=col; do
        each "M=N=K=4096 M=N=K=8192" --target sm_90a -D Out=f16,$orders
    done
    each M=N=K=4096 --target sm_90a -D T=tf32,LB=col,ALIGN=4
    each M=N=K=4096 --target sm_90a -D T=i8,Acc=i32,ALIGN=16,LB=col
}

for section in "${@:-}"; do
    case $section in
        half | orders | half16 | turing | types | fma | unaligned | reordered | registers | pending | ping_pong | epilogue | small | more | hopper) "$section" ;;
        "") half && orders && half16 && turing && types && fma && unaligned && reordered && registers && pending && ping_pong && epilogue && small && more && hopper ;;
        *) echo "no section $section" >&2 && exit 2 ;;
    esac
done
