#!/usr/bin/env bash
# Runs every example on a GPU at several sizes, ragged ones too, and compares with the interpreter.
#
#   scripts/gpu_examples.sh [TEXT]     # only commands that contain TEXT
#
# TILEC is the compiler's binary (default: target/release/tilec, built first where cargo is). Needs the CUDA driver only.
# A line per command, ok or FAILED with what it said; exit status 0 only if all passed.
set -uo pipefail
cd "$(dirname "$0")/.."

if [ -z "${TILEC:-}" ]; then
    TILEC=${CARGO_TARGET_DIR:-target}/release/tilec
    if command -v cargo > /dev/null; then cargo build --release -p tilec || exit 1; fi
fi
if ! command -v "$TILEC" > /dev/null; then
    echo "no binary at $TILEC" >&2
    exit 2
fi

only=${1:-}
passed=0
failed=0

# check EXAMPLE ARGUMENTS..
check() {
    local command="examples/$1.tile ${*:2}"
    if [[ $command != *"$only"* ]]; then return; fi
    local said
    # The arguments are words without spaces.
    # shellcheck disable=SC2086
    if said=$("$TILEC" run $command --check 2>&1); then
        echo "ok      $command"
        passed=$((passed + 1))
    else
        echo "FAILED  $command"
        sed 's/^/        /' <<< "$said"
        failed=$((failed + 1))
    fi
}

for T in f16 bf16 f32; do
    check copy -D T=$T M=1000 N=520
    check copy -D T=$T M=1 N=8 A_ld=16 B_ld=24
    check copy -D T=$T -D ALIGN=1 M=33 N=131 A_ld=140 B_ld=137
    check transpose -D T=$T M=1000 N=520
    check transpose -D T=$T M=8 N=136 A_ld=144 B_ld=80
    check transpose -D T=$T -D ALIGN=4 M=68 N=36 A_ld=44 B_ld=72
    check transpose -D T=$T -D ALIGN=1 M=67 N=131 A_ld=133 B_ld=71
    check transpose -D T=$T -D ALIGN=1 M=1 N=1
done

for more in "" "-D NCHW=1" "-D SH=2,DW=2" "-D T=f32,BK=16"; do
    check conv $more B=2 P=14 Q=20 R=3 S=3 C=64 O=136 xb=131072 xh=4096 xw=64
    check conv $more -D CALIGN=32 B=3 P=8 Q=8 R=1 S=5 C=96 O=64 xb=131072 xh=4608 xw=96
    check conv $more -D ALIGN=1 B=3 P=5 Q=7 R=3 S=2 C=3 O=19 xb=1013 xh=71 xw=3
    check conv $more -D ALIGN_Y=1 B=2 P=7 Q=7 R=3 S=3 C=16 O=40 xb=131072 xh=4096 xw=16
done

for more in "" "-D T=bf16" "--target sm_80" "--target sm_70"; do
    check conv2d $more -D SH=2,SW=1 B=2 H=14 W=20 P=7 Q=20 R=3 S=3 C=64 O=136 xb=17920 xh=1280 xw=64
    check conv2d $more -D ALIGN=1,PH=2 B=3 H=5 W=7 P=7 Q=8 R=3 S=2 C=3 O=19 xb=105 xh=21 xw=3
    check conv3d $more B=2 D=3 H=5 W=4 Z=3 P=5 Q=4 U=3 R=3 S=3 C=16 O=24 xb=960 xd=320 xh=64 xw=16
    check conv2d_weight_grad $more B=2 H=7 W=9 P=7 Q=9 R=3 S=3 C=64 O=72 xb=4032 xh=576 xw=64
    check conv2d_data_grad $more B=2 H=7 W=9 P=7 Q=9 R=3 S=3 C=72 O=64 eb=4032 eh=576 ew=64
    check conv2d_data_grad_steps $more -D SH=2,SW=2 B=2 H=7 W=9 P=4 Q=5 R=3 S=3 C=72 O=64 eb=1280 eh=320 ew=64 gb=4536 gh=648 gw=72
done

for more in "" "-D SH=2,SW=2,ALIGN=1" "-D DH=2,DW=2,PH=2,PW=2,ALIGN=1" "-D T=bf16,PH=0,PW=0"; do
    check conv2d $more B=3 H=15 W=17 C=72 O=136 R=3 S=3 P=7 Q=8 xb=18360 xh=1224 xw=72
    check conv2d $more --target sm_80 B=3 H=15 W=17 C=72 O=136 R=3 S=3 P=7 Q=8 xb=18360 xh=1224 xw=72
    check conv2d $more --target sm_90a B=1 H=7 W=7 C=8 O=8 R=1 S=3 P=3 Q=3 xb=392 xh=56 xw=8
done
for more in "" "-D STRIDE=2" "-D DILATION=2,PAD=2" "-D T=f16,ALIGN=8" "-D T=bf16,PAD=0"; do
    check depthwise $more B=3 H=15 W=37 C=72 R=3 P=7 Q=17
    check depthwise $more --target sm_90a B=1 H=7 W=7 C=8 -D S=3 R=1 P=3 Q=3
done
for T in f16 bf16 f32; do
    check max_pool -D T=$T B=3 H=15 W=37 C=72 P=8 Q=19
    check max_pool -D T=$T,ALIGN=8 --target sm_90a B=1 H=7 W=7 C=8 P=3 Q=3
    check stencil -D T=$T M=1000 N=517 rate=0.25
    check stencil -D T=$T --target sm_90a M=1 N=1 rate=0.25
done

for T in f16 f32; do
    check stencil -D T=$T,POINTS=9 M=1000 N=517 rate=0.25
    for points in 7 27; do
        check stencil3d -D T=$T,POINTS=$points Z=37 M=40 N=133 rate=0.25
        check stencil3d -D T=$T,POINTS=$points --target sm_90a Z=1 M=1 N=1 rate=0.25
    done
done
for target in sm_80 sm_90a; do
    check syrk --target $target M=520 K=136 alpha=2
    check syrk --target $target -D FULL=0 M=264 K=72
    check trmm --target $target M=520 N=136 alpha=2
    check gemm_complex --target $target M=264 N=136 K=72
    check gemm_complex --target $target -D CONJ=1,LB=col M=264 N=136 K=72
done

for LA in row col; do
    for LB in row col; do
        for LC in row col; do
            orders="-D LA=$LA -D LB=$LB -D LC=$LC"
            check gemm_naive $orders M=200 N=136 K=72
            check gemm_naive $orders -D ALIGN=1 M=67 N=45 K=33 A_ld=71 B_ld=69 C_ld=70
            check gemm $orders M=520 N=264 K=136
            check gemm $orders -D ALIGN=1 M=131 N=67 K=45 A_ld=140 B_ld=91 C_ld=133 alpha=2 beta=-1
            check gemm_direct $orders M=520 N=264 K=136
            check gemm_direct $orders -D ALIGN=2 M=130 N=66 K=46 A_ld=132 B_ld=94 C_ld=134 alpha=2 beta=-1
        done
    done
done

# Sums that memory adds up: by threads, and by the tensor memory accelerator out of a buffer.
staged="-D BM=128,BN=128,BK=64,WM=64,WN=128,STAGES=3"
for Acc in f16 f32; do
    check gemm_splitk_add -D Acc=$Acc M=264 N=136 K=1040
    check gemm_splitk_add -D Acc=$Acc,S=8 $staged --target sm_90a M=264 N=136 K=1040
done
check gemm_splitk_add -D T=i8,Acc=i32,ALIGN=16 M=264 N=144 K=1040
for LQ in row col; do
    check quantized -D LQ=$LQ M=264 N=144 K=336
    check quantized -D LQ=$LQ,BM=64,BN=64,BK=64,WM=64,WN=64,KW=1,STAGES=3,RASTER=1 --target sm_90a M=264 N=144 K=336
done

check gemm_naive -D T=f32 M=72 N=136 K=40
check gemm_naive -D Acc=f16 M=72 N=136 K=40
check gemm_direct -D Acc=f16 M=136 N=72 K=64 beta=1

for LA in row col; do
    for LB in row col; do
        orders="-D LA=$LA -D LB=$LB"
        for name in gemm_batched gemm_pointers; do
            check $name $orders Z=3 M=264 N=136 K=72
            check $name $orders -D LC=col -D ALIGN=1 Z=5 M=67 N=45 K=33 alpha=2 beta=-1
        done
        check gemm_batched $orders Z=4 M=136 N=72 K=40 A_ld0=0 beta=1
    done
done
check gemm_fused --target sm_80 M=264 N=136 K=72 beta=2 --alias D=C

for T in f16 bf16; do
    check gemm_mixed -D T=$T M=264 N=136 K=72 beta=2
    check gemm_mixed -D T=$T -D TA=u8 -D LB=col -D ALIGN=1 M=67 N=45 K=33 beta=1
    check gemm_mxfp4 -D T=$T M=17 N=160 K=384
    check gemm_mxfp4 -D T=$T -D LW=row M=3 N=160 K=384
    for G in 64 128; do
        check gemm_w4a16 -D T=$T -D G=$G M=17 N=160 K=384
        check gemm_w4a16 --target sm_90a -D T=$T -D G=$G -D BM=16 -D BN=64 -D BK=64 -D WM=16 -D WN=64 -D STAGES=4 -D CTAS=4 M=3 N=160 K=2048
        check gemm_w4a16 -D T=$T -D G=$G -D TW=i4 -D LW=row M=3 N=160 K=384
        check gemm_w8a16 -D T=$T -D G=$G M=17 N=136 K=384
    done
    check gemm_mixed -D T=$T -D TA=$T -D TB=i8 M=72 N=136 K=264
done

for N in 128 272; do
    check gemm_fp8_scaled --target sm_90a M=201 N=$N K=400 scale_a_ld=204 scale_b_ld=4
    check gemm_fp8_scaled --target sm_90a -D BM=192 -D BN=128 -D WM=64 -D WN=128 -D STAGES=4 -D RASTER=4 M=200 N=$N K=1040 scale_b_ld=12
    check gemm_fp8_scaled --target sm_90a -D BM=128 -D BN=128 -D WM=64 -D WN=128 -D STAGES=5 -D RASTER=8 M=300 N=$N K=1040 scale_b_ld=12
    check gemm_fp8_scaled -D T=bf16 -D BK=64 -D ALIGN_S=1 M=67 N=$N K=400
    check gemm_int8_requant M=100 N=$N K=96 P=64 zero_h=3 zero_d=-5
done

for S in 1 3 8 40; do
    check gemm_splitk S=$S M=264 N=136 K=1048 alpha=2 beta=-1
    check gemm_splitk -D LA=col -D LC=col -D ALIGN=1 S=$S M=67 N=45 K=333 beta=1
    check gemm_splitk -D T=bf16 -D Out=bf16 S=$S M=72 N=520 K=264
done

# Warpgroups and TMA copies.
for LA in row col; do
    for LB in row col; do
        for T in f16 bf16; do
            orders="--target sm_90a -D T=$T -D LA=$LA -D LB=$LB"
            check gemm $orders M=520 N=264 K=136
            check gemm $orders -D LC=col -D Out=$T M=1000 N=72 K=1048 alpha=2 beta=-1
            check gemm $orders -D BM=128,BN=256,BK=64,WM=64,WN=256,STAGES=4,KW=1,RASTER=8 M=2056 N=4104 K=72 beta=1
        done
        check gemm --target sm_90a -D LA=$LA -D LB=$LB -D Acc=f16 M=264 N=520 K=200
        check gemm --target sm_90a -D LA=$LA -D LB=$LB -D T=f32,ALIGN=4 M=264 N=520 K=200
    done
done
check gemm --target sm_90a -D T=tf32 -D LB=col -D ALIGN=4 M=264 N=136 K=200
check gemm --target sm_90a -D T=i8 -D Acc=i32 -D LB=col -D ALIGN=16 M=272 N=144 K=208
for types in T=i8,TB=u8 T=u8,TB=i8; do
    check gemm --target sm_90a -D $types,Acc=i32,LB=col,ALIGN=16 M=272 N=144 K=208 beta=1
    check gemm --target sm_90a -D $types,Acc=i32,LB=col,LC=col,ALIGN=16 M=144 N=272 K=400
    check gemm --target sm_80 -D $types,Acc=i32,ALIGN=16 M=272 N=144 K=208
    check gemm --target sm_75 -D $types,Acc=i32,ALIGN=16 M=80 N=48 K=112
    check gemm --target sm_70 -D $types,Acc=i32,ALIGN=4 M=68 N=36 K=44
done
check gemm --target sm_90a -D ALIGN=1 M=67 N=45 K=33
# Few rows, clusters of rows across lines, results stored by TMA, launches one after the other.
for rows in 1 8 16 40 64; do check gemm --target sm_90a -D Out=f16 --for M=$rows,N=520,K=1024 M=$rows N=520 K=1024; done
check gemm --target sm_90a -D Out=f16 --for M=N=K=1000 M=1000 N=1000 K=1000 beta=1
check gemm --target sm_90a -D Out=f16 --for M=N=1000,K=4104 M=1000 N=1000 K=4104
check gemm --target sm_90a -D Out=f16,BM=64,BN=64,BK=64,WM=64,WN=64,STAGES=4,KW=1,RASTER=8 M=1544 N=1032 K=200
check gemm --target sm_90a -D Out=f16,BM=128,BN=256,BK=64,WM=64,WN=256,STAGES=3,KW=1,RASTER=8 M=2056 N=4104 K=72
for T in e4m3 e5m2; do
    check gemm --target sm_90a -D T=$T,LB=col,ALIGN=16,Out=bf16 M=528 N=272 K=400
    check gemm --target sm_90a -D T=$T,LB=col,ALIGN=16,Out=$T,PROMOTE=0 M=272 N=528 K=1040 alpha=0.125
    check gemm --target sm_90a -D T=$T,LB=col,ALIGN=16 --for M=16,N=512,K=2048 M=16 N=512 K=2048
    check gemm --target sm_90a -D T=$T,ALIGN=16 M=144 N=272 K=208
    check gemm --target sm_90a -D T=$T,Acc=f16,LB=col,ALIGN=16 M=528 N=272 K=400
    check gemm --target sm_90a -D T=$T,Acc=f16,LB=col,LC=col,ALIGN=16 M=272 N=528 K=1040 alpha=0.125 beta=1
    check gemm --target sm_89 -D T=$T,Acc=f16,LB=col,ALIGN=16 M=272 N=144 K=208
done
for types in T=e4m3,TB=e5m2 T=e5m2,TB=e4m3; do
    for Acc in f16 f32; do
        check gemm --target sm_90a -D $types,Acc=$Acc,LB=col,ALIGN=16 M=528 N=272 K=400
        check gemm --target sm_90a -D $types,Acc=$Acc,LB=col,LC=col,ALIGN=16 M=144 N=272 K=208 beta=1
        check gemm --target sm_89 -D $types,Acc=$Acc,LB=col,ALIGN=16 M=272 N=144 K=208
    done
    check gemm --target sm_90a -D $types,ALIGN=1 M=131 N=67 K=45
done
# Columns that are odd multiples of 8, and fewer pieces of B than threads.
for BN in 24 40 72 200; do
    for LB in row col; do
        check gemm --target sm_90a -D BM=128,BN=$BN,BK=64,WM=64,WN=$BN,STAGES=2,KW=1,RASTER=8,LB=$LB,Out=f16 M=264 N=520 K=200 beta=1
        check gemm --target sm_90a -D BM=128,BN=$BN,BK=64,WM=64,WN=$BN,STAGES=2,KW=1,RASTER=8,LB=$LB,LC=col,Acc=f16 M=264 N=520 K=200
    done
    check gemm --target sm_90a -D BM=64,BN=$BN,BK=32,WM=64,WN=$BN,STAGES=3,KW=1,RASTER=8,LB=col,T=tf32,ALIGN=4 M=264 N=520 K=200
    # Sums that are promoted are there twice: 200 columns would take 200 registers of a thread.
    if [ $BN -lt 200 ]; then
        check gemm --target sm_90a -D BM=64,BN=$BN,BK=128,WM=64,WN=$BN,STAGES=3,KW=1,RASTER=8,LB=col,T=e4m3,ALIGN=16 M=272 N=528 K=400
    fi
done
check gemm --target sm_90a -D BM=64,BN=24,BK=128,WM=64,WN=24,STAGES=3,KW=1,RASTER=8,LB=col,T=i8,Acc=i32,ALIGN=16 M=272 N=528 K=400
check gemm --target sm_90a -D BM=256,BN=48,BK=64,WM=64,WN=48,STAGES=2,KW=1,RASTER=8,LB=col M=520 N=264 K=136
for activation in 0 2; do
    check gemm_fused --target sm_90a -D ACT=$activation M=264 N=136 K=72 beta=2
done
for name in gemm_batched gemm_pointers; do check $name --target sm_90a Z=3 M=264 N=136 K=72; done
check gemm_splitk --target sm_90a S=3 M=264 N=136 K=1048
for T in f16 bf16; do
    check flash_attention --target sm_90a -D T=$T Z=2 H=3 L=1000 scale_log2=0.0625
    check flash_attention --target sm_90a -D T=$T,D=64,BKV=64 Z=1 H=2 L=777
    check softmax -D T=$T,ALIGN=8 M=1000 N=8192
    for target in sm_75 sm_80 sm_90a; do
        check attention --target $target -D T=$T Z=2 H=2 L=520 scale_log2=0.0625
        check attention --target $target -D T=$T,D=64,CAUSAL=1,WINDOW=200,G=2,CAP=1 Z=1 H=4 L=777 scale_log2=0.0625
    done
    check attention --target sm_80 -D T=$T,D=80,CAUSAL=1 Z=1 H=2 L=301 scale_log2=0.0625
    check attention_lse --target sm_80 -D T=$T Z=1 H=2 L=301 scale_log2=0.0625
done
for target in sm_75 sm_80 sm_90a; do
    check swiglu --target $target M=520 N=264 K=136
    check swiglu --target $target -D LB=col M=257 N=136 K=264
    check back_to_back --target $target M=520 N=64 K=136 P=264
    check gemm_softmax --target $target M=520 N=40 K=136
    check gemm_rmsnorm --target $target M=520 N=56 K=136
    check lora --target $target M=520 N=264 K=136 R=40
done
check softmax M=37 N=1000
for target in sm_80 sm_90a; do
    for rows in softmax_rows softmax_backward rms_norm layer_norm cross_entropy; do
        for n in 1 17 1000 4093; do
            check $rows --target $target -D BN=4096,ALIGN=1 M=37 N=$n
        done
        check $rows --target $target -D T=bf16,BN=16384,ALIGN=8 M=9 N=16384
        if [ "$target" = sm_90a ]; then check $rows --target $target -D BN=131072,ALIGN=1 M=9 N=70001; fi
    done
    check paged_attention --target $target Z=3 L=70 N=9 G=4
    check moe_grouped --target $target R=300 E=5 K=136 N=264
    check moe_masked --target $target R=300 E=5 K=136 N=264
    for causal in 0 1; do check attention_varlen --target $target -D CAUSAL=$causal N=300 Z=5 H=2 scale_log2=0.0625; done
    check paged_decode --target $target Z=3 H=8 B=9 C=4 S=3 scale_log2=0.0625
    check mla_decode_heads --target $target Z=3 H=17 B=9 C=4 S=3 scale_log2=0.03125
    check mla_decode --target $target Z=3 H=17 B=9 C=4 S=3 scale_log2=0.03125
    for n in 1 17 1000 4093 70001; do
        check argmax --target $target -D ALIGN=1 M=37 N=$n
        check cumsum --target $target -D ALIGN=1 M=37 N=$n
    done
    check argmax --target $target -D T=bf16,BN=16384,ALIGN=8 M=9 N=16384
    for n in 1 17 1000 4093; do
        check log_softmax --target $target -D BN=4096,ALIGN=1 M=37 N=$n
        check welford --target $target -D ALIGN=1 M=37 N=$n
        check linear_scan --target $target -D ALIGN=1 M=37 N=$n
        for norm in rms_norm_backward layer_norm_backward; do
            check $norm --target $target -D BN=4096,ALIGN=1 M=37 S=5 N=$n
        done
    done
    for n in 1 17 500; do check sort --target $target -D BN=512,ALIGN=1 M=37 N=$n; done
    for n in 3000 4093; do check sort --target $target -D BM=1,BN=4096,ALIGN=1 M=5 N=$n; done
    check sort --target $target -D T=bf16,BM=1,BN=16384,ALIGN=1 M=3 N=16381
    if [ "$target" = sm_90a ]; then check sort --target $target -D BM=1,BN=32768,ALIGN=1 M=2 N=32749; fi
    for n in 1 17 500; do check sort_16bit --target $target -D BN=512,ALIGN=1 M=37 N=$n; done
    check sort_16bit --target $target -D T=f16,BM=1,BN=16384,ALIGN=1 M=3 N=16381
    check topk_sort --target $target -D BN=4096,ALIGN=1 M=37 N=4093 K=100
    check topk --target $target -D BN=4096,ALIGN=1 M=37 N=4093
    check rotary --target $target L=37 H=3
    for m in 1 17 1000; do
        check embedding --target $target -D ALIGN=1 M=$m V=7 N=263
        check work_queue --target $target M=$m L=$((m * 300)) R=$((m + 1))
        check histogram --target $target -D ALIGN=1 N=$((m * 300)) K=$m
        check cross_entropy_backward --target $target -D ALIGN=1 M=$m N=2501
        check dropout --target $target -D ALIGN=1 M=$m N=263
        check dropout --target $target M=$m N=264
        check adam_rounded --target $target -D ALIGN=1 N=$m rate=0.5 beta1=0.5 beta2=0.5 epsilon=1
        check adam8 --target $target -D ALIGN=1 R=$m rate=0.5 epsilon=1
        check embedding_backward --target $target -D ALIGN=1 M=$m V=7 N=263
        check gemm_gathered --target $target M=$m L=37 N=72 K=136
    done
done
check conv2d --target sm_90a -D BK=64,CALIGN=64,SH=2 B=2 H=14 W=20 P=7 Q=20 R=3 S=3 C=64 O=136 xb=17920 xh=1280 xw=64
check conv3d --target sm_90a -D BK=64,CALIGN=64 B=2 D=3 H=5 W=4 Z=3 P=5 Q=4 U=3 R=3 S=3 C=64 O=24 xb=3840 xd=1280 xh=256 xw=64
check conv2d_weight_grad --target sm_90a -D BK=64,CALIGN=64 B=2 H=7 W=9 P=7 Q=9 R=3 S=3 C=64 O=72 xb=4032 xh=576 xw=64
check conv2d_data_grad --target sm_90a -D BK=64 B=2 H=7 W=9 P=7 Q=9 R=3 S=3 C=72 O=64 eb=4032 eh=576 ew=64
check conv --target sm_90a B=2 P=14 Q=20 R=3 S=3 C=64 O=136 xb=131072 xh=4096 xw=64

check gemm_explicit M=520 N=264 K=136
check gemm_explicit M=1 N=8 K=8
check gemm_explicit M=131 N=72 K=40 A_ld=48 B_ld=80 C_ld=88 alpha=-1 beta=2
check gemm_explicit M=257 N=136 K=264 alpha=3 beta=1

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
