//! Rows: products of a warpgroup on operands in shared memory, or of A in registers (`wgmma`), of sm_90a alone.
//!
//! Operands: accumulator registers, which are read too; descriptors of A and B, or the registers of A and the descriptor of B; whether to
//! add the old value. Then, for floats, the signs of A and B; then, for elements of 16 bits, whether A, if it has a descriptor, and B are
//! transposed (0: contiguous along the reduction).
//! Integer products have 24 and multiples of 16 columns, all others multiples of 8; here are the powers of two.

macro_rules! wgmma_rows {
    ([$($done:tt)*] $next:ident $($rest:ident)*) => { $next! { [$($done)*

        "9.7.15.7" V8_0_SM90A Sync [] [] "orders accumulator registers before a wgmma, or closes a group of wgmma" {
            WgmmaFence "wgmma.fence.sync.aligned", WgmmaCommitGroup "wgmma.commit_group.sync.aligned",
        }
        "9.7.15.7" V8_0_SM90A Sync [] [range(0, 7)] "waits until at most this many wgmma groups are pending" {
            WgmmaWaitGroup "wgmma.wait_group.sync.aligned",
        }
        "9.7.15.5" V8_0_SM90A Read [vec(4, F32)] [B64, B64, P, one_of(&[-1, 1]), one_of(&[-1, 1]), range(0, 1), range(0, 1)] "64x8x16 product of a warpgroup, 16-bit floats in and f32 out" {
            WgmmaM64n8k16F32F16 "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16",
            WgmmaM64n8k16F32Bf16 "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16",
        }
        "9.7.15.5" V8_0_SM90A Read [vec(2, B32)] [B64, B64, P, one_of(&[-1, 1]), one_of(&[-1, 1]), range(0, 1), range(0, 1)] "64x8x16 product of a warpgroup, f16 in and out" {
            WgmmaM64n8k16F16F16 "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16",
        }
        "9.7.15.5" V8_0_SM90A Read [vec(4, F32)] [B64, B64, P, one_of(&[-1, 1]), one_of(&[-1, 1])] "64x8 product of a warpgroup, tf32 or fp8 in and f32 out" {
            WgmmaM64n8k8F32Tf32 "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32",
            WgmmaM64n8k32F32E4m3 "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3",
            WgmmaM64n8k32F32E5m2 "wgmma.mma_async.sync.aligned.m64n8k32.f32.e5m2.e5m2",
        }
        "9.7.15.5" V8_0_SM90A Read [vec(4, B32)] [B64, B64, P] "64x8x32 product of a warpgroup, bytes in and s32 out" {
            WgmmaM64n8k32S32S8 "wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8",
            WgmmaM64n8k32S32U8 "wgmma.mma_async.sync.aligned.m64n8k32.s32.u8.u8",
        }
        "9.7.15.5" V8_0_SM90A Read [vec(8, F32)] [B64, B64, P, one_of(&[-1, 1]), one_of(&[-1, 1]), range(0, 1), range(0, 1)] "64x16x16 product of a warpgroup, 16-bit floats in and f32 out" {
            WgmmaM64n16k16F32F16 "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16",
            WgmmaM64n16k16F32Bf16 "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16",
        }
        "9.7.15.5" V8_0_SM90A Read [vec(4, B32)] [B64, B64, P, one_of(&[-1, 1]), one_of(&[-1, 1]), range(0, 1), range(0, 1)] "64x16x16 product of a warpgroup, f16 in and out" {
            WgmmaM64n16k16F16F16 "wgmma.mma_async.sync.aligned.m64n16k16.f16.f16.f16",
        }
        "9.7.15.5" V8_0_SM90A Read [vec(8, F32)] [B64, B64, P, one_of(&[-1, 1]), one_of(&[-1, 1])] "64x16 product of a warpgroup, tf32 or fp8 in and f32 out" {
            WgmmaM64n16k8F32Tf32 "wgmma.mma_async.sync.aligned.m64n16k8.f32.tf32.tf32",
            WgmmaM64n16k32F32E4m3 "wgmma.mma_async.sync.aligned.m64n16k32.f32.e4m3.e4m3",
            WgmmaM64n16k32F32E5m2 "wgmma.mma_async.sync.aligned.m64n16k32.f32.e5m2.e5m2",
        }
        "9.7.15.5" V8_0_SM90A Read [vec(8, B32)] [B64, B64, P] "64x16x32 product of a warpgroup, bytes in and s32 out" {
            WgmmaM64n16k32S32S8 "wgmma.mma_async.sync.aligned.m64n16k32.s32.s8.s8",
            WgmmaM64n16k32S32U8 "wgmma.mma_async.sync.aligned.m64n16k32.s32.u8.u8",
        }
        "9.7.15.5" V8_0_SM90A Read [vec(16, F32)] [B64, B64, P, one_of(&[-1, 1]), one_of(&[-1, 1]), range(0, 1), range(0, 1)] "64x32x16 product of a warpgroup, 16-bit floats in and f32 out" {
            WgmmaM64n32k16F32F16 "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16",
            WgmmaM64n32k16F32Bf16 "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16",
        }
        "9.7.15.5" V8_0_SM90A Read [vec(8, B32)] [B64, B64, P, one_of(&[-1, 1]), one_of(&[-1, 1]), range(0, 1), range(0, 1)] "64x32x16 product of a warpgroup, f16 in and out" {
            WgmmaM64n32k16F16F16 "wgmma.mma_async.sync.aligned.m64n32k16.f16.f16.f16",
        }
        "9.7.15.5" V8_0_SM90A Read [vec(16, F32)] [B64, B64, P, one_of(&[-1, 1]), one_of(&[-1, 1])] "64x32 product of a warpgroup, tf32 or fp8 in and f32 out" {
            WgmmaM64n32k8F32Tf32 "wgmma.mma_async.sync.aligned.m64n32k8.f32.tf32.tf32",
            WgmmaM64n32k32F32E4m3 "wgmma.mma_async.sync.aligned.m64n32k32.f32.e4m3.e4m3",
            WgmmaM64n32k32F32E5m2 "wgmma.mma_async.sync.aligned.m64n32k32.f32.e5m2.e5m2",
        }
        "9.7.15.5" V8_0_SM90A Read [vec(16, B32)] [B64, B64, P] "64x32x32 product of a warpgroup, bytes in and s32 out" {
            WgmmaM64n32k32S32S8 "wgmma.mma_async.sync.aligned.m64n32k32.s32.s8.s8",
            WgmmaM64n32k32S32U8 "wgmma.mma_async.sync.aligned.m64n32k32.s32.u8.u8",
        }
        "9.7.15.5" V8_0_SM90A Read [vec(32, F32)] [B64, B64, P, one_of(&[-1, 1]), one_of(&[-1, 1]), range(0, 1), range(0, 1)] "64x64x16 product of a warpgroup, 16-bit floats in and f32 out" {
            WgmmaM64n64k16F32F16 "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16",
            WgmmaM64n64k16F32Bf16 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16",
        }
        "9.7.15.5" V8_0_SM90A Read [vec(16, B32)] [B64, B64, P, one_of(&[-1, 1]), one_of(&[-1, 1]), range(0, 1), range(0, 1)] "64x64x16 product of a warpgroup, f16 in and out" {
            WgmmaM64n64k16F16F16 "wgmma.mma_async.sync.aligned.m64n64k16.f16.f16.f16",
        }
        "9.7.15.5" V8_0_SM90A Read [vec(32, F32)] [B64, B64, P, one_of(&[-1, 1]), one_of(&[-1, 1])] "64x64 product of a warpgroup, tf32 or fp8 in and f32 out" {
            WgmmaM64n64k8F32Tf32 "wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32",
            WgmmaM64n64k32F32E4m3 "wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3",
            WgmmaM64n64k32F32E5m2 "wgmma.mma_async.sync.aligned.m64n64k32.f32.e5m2.e5m2",
        }
        "9.7.15.5" V8_0_SM90A Read [vec(32, B32)] [B64, B64, P] "64x64x32 product of a warpgroup, bytes in and s32 out" {
            WgmmaM64n64k32S32S8 "wgmma.mma_async.sync.aligned.m64n64k32.s32.s8.s8",
            WgmmaM64n64k32S32U8 "wgmma.mma_async.sync.aligned.m64n64k32.s32.u8.u8",
        }
        "9.7.15.5" V8_0_SM90A Read [vec(64, F32)] [B64, B64, P, one_of(&[-1, 1]), one_of(&[-1, 1]), range(0, 1), range(0, 1)] "64x128x16 product of a warpgroup, 16-bit floats in and f32 out" {
            WgmmaM64n128k16F32F16 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16",
            WgmmaM64n128k16F32Bf16 "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16",
        }
        "9.7.15.5" V8_0_SM90A Read [vec(32, B32)] [B64, B64, P, one_of(&[-1, 1]), one_of(&[-1, 1]), range(0, 1), range(0, 1)] "64x128x16 product of a warpgroup, f16 in and out" {
            WgmmaM64n128k16F16F16 "wgmma.mma_async.sync.aligned.m64n128k16.f16.f16.f16",
        }
        "9.7.15.5" V8_0_SM90A Read [vec(64, F32)] [B64, B64, P, one_of(&[-1, 1]), one_of(&[-1, 1])] "64x128 product of a warpgroup, tf32 or fp8 in and f32 out" {
            WgmmaM64n128k8F32Tf32 "wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32",
            WgmmaM64n128k32F32E4m3 "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3",
            WgmmaM64n128k32F32E5m2 "wgmma.mma_async.sync.aligned.m64n128k32.f32.e5m2.e5m2",
        }
        "9.7.15.5" V8_0_SM90A Read [vec(64, B32)] [B64, B64, P] "64x128x32 product of a warpgroup, bytes in and s32 out" {
            WgmmaM64n128k32S32S8 "wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8",
            WgmmaM64n128k32S32U8 "wgmma.mma_async.sync.aligned.m64n128k32.s32.u8.u8",
        }
        "9.7.15.5" V8_0_SM90A Read [vec(128, F32)] [B64, B64, P, one_of(&[-1, 1]), one_of(&[-1, 1]), range(0, 1), range(0, 1)] "64x256x16 product of a warpgroup, 16-bit floats in and f32 out" {
            WgmmaM64n256k16F32F16 "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16",
            WgmmaM64n256k16F32Bf16 "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16",
        }
        "9.7.15.5" V8_0_SM90A Read [vec(64, B32)] [B64, B64, P, one_of(&[-1, 1]), one_of(&[-1, 1]), range(0, 1), range(0, 1)] "64x256x16 product of a warpgroup, f16 in and out" {
            WgmmaM64n256k16F16F16 "wgmma.mma_async.sync.aligned.m64n256k16.f16.f16.f16",
        }
        "9.7.15.5" V8_0_SM90A Read [vec(128, F32)] [B64, B64, P, one_of(&[-1, 1]), one_of(&[-1, 1])] "64x256 product of a warpgroup, tf32 or fp8 in and f32 out" {
            WgmmaM64n256k8F32Tf32 "wgmma.mma_async.sync.aligned.m64n256k8.f32.tf32.tf32",
            WgmmaM64n256k32F32E4m3 "wgmma.mma_async.sync.aligned.m64n256k32.f32.e4m3.e4m3",
            WgmmaM64n256k32F32E5m2 "wgmma.mma_async.sync.aligned.m64n256k32.f32.e5m2.e5m2",
        }
        "9.7.15.5" V8_0_SM90A Read [vec(128, B32)] [B64, B64, P] "64x256x32 product of a warpgroup, bytes in and s32 out" {
            WgmmaM64n256k32S32S8 "wgmma.mma_async.sync.aligned.m64n256k32.s32.s8.s8",
            WgmmaM64n256k32S32U8 "wgmma.mma_async.sync.aligned.m64n256k32.s32.u8.u8",
        }
        "9.7.15.5" V8_0_SM90A Read [vec(4, F32)] [vec(4, B32), B64, P, one_of(&[-1, 1]), one_of(&[-1, 1]), range(0, 1)] "64x8x16 product of a warpgroup, A in registers, 16-bit floats in and f32 out" {
            WgmmaRegsM64n8k16F32F16 "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16",
            WgmmaRegsM64n8k16F32Bf16 "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16",
        }
        "9.7.15.5" V8_0_SM90A Read [vec(2, B32)] [vec(4, B32), B64, P, one_of(&[-1, 1]), one_of(&[-1, 1]), range(0, 1)] "64x8x16 product of a warpgroup, A in registers, f16 in and out" {
            WgmmaRegsM64n8k16F16F16 "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16",
        }
        "9.7.15.5" V8_0_SM90A Read [vec(4, F32)] [vec(4, B32), B64, P, one_of(&[-1, 1]), one_of(&[-1, 1])] "64x8 product of a warpgroup, A in registers, tf32 or fp8 in and f32 out" {
            WgmmaRegsM64n8k8F32Tf32 "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32",
            WgmmaRegsM64n8k32F32E4m3 "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3",
            WgmmaRegsM64n8k32F32E5m2 "wgmma.mma_async.sync.aligned.m64n8k32.f32.e5m2.e5m2",
        }
        "9.7.15.5" V8_0_SM90A Read [vec(4, B32)] [vec(4, B32), B64, P] "64x8x32 product of a warpgroup, A in registers, bytes in and s32 out" {
            WgmmaRegsM64n8k32S32S8 "wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8",
            WgmmaRegsM64n8k32S32U8 "wgmma.mma_async.sync.aligned.m64n8k32.s32.u8.u8",
        }
        "9.7.15.5" V8_0_SM90A Read [vec(8, F32)] [vec(4, B32), B64, P, one_of(&[-1, 1]), one_of(&[-1, 1]), range(0, 1)] "64x16x16 product of a warpgroup, A in registers, 16-bit floats in and f32 out" {
            WgmmaRegsM64n16k16F32F16 "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16",
            WgmmaRegsM64n16k16F32Bf16 "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16",
        }
        "9.7.15.5" V8_0_SM90A Read [vec(4, B32)] [vec(4, B32), B64, P, one_of(&[-1, 1]), one_of(&[-1, 1]), range(0, 1)] "64x16x16 product of a warpgroup, A in registers, f16 in and out" {
            WgmmaRegsM64n16k16F16F16 "wgmma.mma_async.sync.aligned.m64n16k16.f16.f16.f16",
        }
        "9.7.15.5" V8_0_SM90A Read [vec(8, F32)] [vec(4, B32), B64, P, one_of(&[-1, 1]), one_of(&[-1, 1])] "64x16 product of a warpgroup, A in registers, tf32 or fp8 in and f32 out" {
            WgmmaRegsM64n16k8F32Tf32 "wgmma.mma_async.sync.aligned.m64n16k8.f32.tf32.tf32",
            WgmmaRegsM64n16k32F32E4m3 "wgmma.mma_async.sync.aligned.m64n16k32.f32.e4m3.e4m3",
            WgmmaRegsM64n16k32F32E5m2 "wgmma.mma_async.sync.aligned.m64n16k32.f32.e5m2.e5m2",
        }
        "9.7.15.5" V8_0_SM90A Read [vec(8, B32)] [vec(4, B32), B64, P] "64x16x32 product of a warpgroup, A in registers, bytes in and s32 out" {
            WgmmaRegsM64n16k32S32S8 "wgmma.mma_async.sync.aligned.m64n16k32.s32.s8.s8",
            WgmmaRegsM64n16k32S32U8 "wgmma.mma_async.sync.aligned.m64n16k32.s32.u8.u8",
        }
        "9.7.15.5" V8_0_SM90A Read [vec(16, F32)] [vec(4, B32), B64, P, one_of(&[-1, 1]), one_of(&[-1, 1]), range(0, 1)] "64x32x16 product of a warpgroup, A in registers, 16-bit floats in and f32 out" {
            WgmmaRegsM64n32k16F32F16 "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16",
            WgmmaRegsM64n32k16F32Bf16 "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16",
        }
        "9.7.15.5" V8_0_SM90A Read [vec(8, B32)] [vec(4, B32), B64, P, one_of(&[-1, 1]), one_of(&[-1, 1]), range(0, 1)] "64x32x16 product of a warpgroup, A in registers, f16 in and out" {
            WgmmaRegsM64n32k16F16F16 "wgmma.mma_async.sync.aligned.m64n32k16.f16.f16.f16",
        }
        "9.7.15.5" V8_0_SM90A Read [vec(16, F32)] [vec(4, B32), B64, P, one_of(&[-1, 1]), one_of(&[-1, 1])] "64x32 product of a warpgroup, A in registers, tf32 or fp8 in and f32 out" {
            WgmmaRegsM64n32k8F32Tf32 "wgmma.mma_async.sync.aligned.m64n32k8.f32.tf32.tf32",
            WgmmaRegsM64n32k32F32E4m3 "wgmma.mma_async.sync.aligned.m64n32k32.f32.e4m3.e4m3",
            WgmmaRegsM64n32k32F32E5m2 "wgmma.mma_async.sync.aligned.m64n32k32.f32.e5m2.e5m2",
        }
        "9.7.15.5" V8_0_SM90A Read [vec(16, B32)] [vec(4, B32), B64, P] "64x32x32 product of a warpgroup, A in registers, bytes in and s32 out" {
            WgmmaRegsM64n32k32S32S8 "wgmma.mma_async.sync.aligned.m64n32k32.s32.s8.s8",
            WgmmaRegsM64n32k32S32U8 "wgmma.mma_async.sync.aligned.m64n32k32.s32.u8.u8",
        }
        "9.7.15.5" V8_0_SM90A Read [vec(32, F32)] [vec(4, B32), B64, P, one_of(&[-1, 1]), one_of(&[-1, 1]), range(0, 1)] "64x64x16 product of a warpgroup, A in registers, 16-bit floats in and f32 out" {
            WgmmaRegsM64n64k16F32F16 "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16",
            WgmmaRegsM64n64k16F32Bf16 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16",
        }
        "9.7.15.5" V8_0_SM90A Read [vec(16, B32)] [vec(4, B32), B64, P, one_of(&[-1, 1]), one_of(&[-1, 1]), range(0, 1)] "64x64x16 product of a warpgroup, A in registers, f16 in and out" {
            WgmmaRegsM64n64k16F16F16 "wgmma.mma_async.sync.aligned.m64n64k16.f16.f16.f16",
        }
        "9.7.15.5" V8_0_SM90A Read [vec(32, F32)] [vec(4, B32), B64, P, one_of(&[-1, 1]), one_of(&[-1, 1])] "64x64 product of a warpgroup, A in registers, tf32 or fp8 in and f32 out" {
            WgmmaRegsM64n64k8F32Tf32 "wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32",
            WgmmaRegsM64n64k32F32E4m3 "wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3",
            WgmmaRegsM64n64k32F32E5m2 "wgmma.mma_async.sync.aligned.m64n64k32.f32.e5m2.e5m2",
        }
        "9.7.15.5" V8_0_SM90A Read [vec(32, B32)] [vec(4, B32), B64, P] "64x64x32 product of a warpgroup, A in registers, bytes in and s32 out" {
            WgmmaRegsM64n64k32S32S8 "wgmma.mma_async.sync.aligned.m64n64k32.s32.s8.s8",
            WgmmaRegsM64n64k32S32U8 "wgmma.mma_async.sync.aligned.m64n64k32.s32.u8.u8",
        }
        "9.7.15.5" V8_0_SM90A Read [vec(64, F32)] [vec(4, B32), B64, P, one_of(&[-1, 1]), one_of(&[-1, 1]), range(0, 1)] "64x128x16 product of a warpgroup, A in registers, 16-bit floats in and f32 out" {
            WgmmaRegsM64n128k16F32F16 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16",
            WgmmaRegsM64n128k16F32Bf16 "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16",
        }
        "9.7.15.5" V8_0_SM90A Read [vec(32, B32)] [vec(4, B32), B64, P, one_of(&[-1, 1]), one_of(&[-1, 1]), range(0, 1)] "64x128x16 product of a warpgroup, A in registers, f16 in and out" {
            WgmmaRegsM64n128k16F16F16 "wgmma.mma_async.sync.aligned.m64n128k16.f16.f16.f16",
        }
        "9.7.15.5" V8_0_SM90A Read [vec(64, F32)] [vec(4, B32), B64, P, one_of(&[-1, 1]), one_of(&[-1, 1])] "64x128 product of a warpgroup, A in registers, tf32 or fp8 in and f32 out" {
            WgmmaRegsM64n128k8F32Tf32 "wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32",
            WgmmaRegsM64n128k32F32E4m3 "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3",
            WgmmaRegsM64n128k32F32E5m2 "wgmma.mma_async.sync.aligned.m64n128k32.f32.e5m2.e5m2",
        }
        "9.7.15.5" V8_0_SM90A Read [vec(64, B32)] [vec(4, B32), B64, P] "64x128x32 product of a warpgroup, A in registers, bytes in and s32 out" {
            WgmmaRegsM64n128k32S32S8 "wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8",
            WgmmaRegsM64n128k32S32U8 "wgmma.mma_async.sync.aligned.m64n128k32.s32.u8.u8",
        }
        "9.7.15.5" V8_0_SM90A Read [vec(128, F32)] [vec(4, B32), B64, P, one_of(&[-1, 1]), one_of(&[-1, 1]), range(0, 1)] "64x256x16 product of a warpgroup, A in registers, 16-bit floats in and f32 out" {
            WgmmaRegsM64n256k16F32F16 "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16",
            WgmmaRegsM64n256k16F32Bf16 "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16",
        }
        "9.7.15.5" V8_0_SM90A Read [vec(64, B32)] [vec(4, B32), B64, P, one_of(&[-1, 1]), one_of(&[-1, 1]), range(0, 1)] "64x256x16 product of a warpgroup, A in registers, f16 in and out" {
            WgmmaRegsM64n256k16F16F16 "wgmma.mma_async.sync.aligned.m64n256k16.f16.f16.f16",
        }
        "9.7.15.5" V8_0_SM90A Read [vec(128, F32)] [vec(4, B32), B64, P, one_of(&[-1, 1]), one_of(&[-1, 1])] "64x256 product of a warpgroup, A in registers, tf32 or fp8 in and f32 out" {
            WgmmaRegsM64n256k8F32Tf32 "wgmma.mma_async.sync.aligned.m64n256k8.f32.tf32.tf32",
            WgmmaRegsM64n256k32F32E4m3 "wgmma.mma_async.sync.aligned.m64n256k32.f32.e4m3.e4m3",
            WgmmaRegsM64n256k32F32E5m2 "wgmma.mma_async.sync.aligned.m64n256k32.f32.e5m2.e5m2",
        }
        "9.7.15.5" V8_0_SM90A Read [vec(128, B32)] [vec(4, B32), B64, P] "64x256x32 product of a warpgroup, A in registers, bytes in and s32 out" {
            WgmmaRegsM64n256k32S32S8 "wgmma.mma_async.sync.aligned.m64n256k32.s32.s8.s8",
            WgmmaRegsM64n256k32S32U8 "wgmma.mma_async.sync.aligned.m64n256k32.s32.u8.u8",
        }
    ] $($rest)* } };
}
