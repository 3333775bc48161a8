//! Rows: wgmma products with operands in shared memory, or A in registers (sm_90a).
//!
//! A product has 64 rows. One row of the table serves every column count `N`: the count is an operand that the printer
//! puts into the opcode, and it determines the number of accumulator registers.
//!
//! Operands: accumulator registers, which are read too; columns; descriptors of A and B, or the registers of A and the
//! descriptor of B; the predicate whether to add the old value. Then, for floats, the signs of A and B; then, for
//! 16-bit elements, whether A, if it has a descriptor, and B are transposed (0: contiguous along the reduction).

/// Columns of a product of floats: the multiples of 8 up to 256.
pub(super) const FLOAT_COLUMNS: [u16; 32] = {
    let mut columns = [0; 32];
    let mut i = 0;
    while i < columns.len() {
        columns[i] = 8 * (i as u16 + 1);
        i += 1;
    }
    columns
};

/// Columns of a product of bytes: above 32 only multiples of 16.
pub(super) const BYTE_COLUMNS: [u16; 18] =
    [8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256];

macro_rules! wgmma_rows {
    ([$($done:tt)*] $next:ident $($rest:ident)*) => { $next! { [$($done)*

        "9.7.15.7" V8_0_SM90A Sync [] [] "orders accumulator registers before a wgmma, or closes a group of wgmma" {
            WgmmaFence "wgmma.fence.sync.aligned", WgmmaCommitGroup "wgmma.commit_group.sync.aligned",
        }
        "9.7.15.7" V8_0_SM90A Sync [] [range(0, 7)] "waits until at most this many wgmma groups are pending" {
            WgmmaWaitGroup "wgmma.wait_group.sync.aligned",
        }
        "9.7.15.5" V8_0_SM90A Read [sums(2, F32)] [columns(&FLOAT_COLUMNS), B64, B64, P, one_of(&[-1, 1]), one_of(&[-1, 1]), range(0, 1), range(0, 1)] "wgmma product, 16-bit floats in and f32 out" {
            WgmmaM64k16F32F16 "wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16",
            WgmmaM64k16F32Bf16 "wgmma.mma_async.sync.aligned.m64nNk16.f32.bf16.bf16",
        }
        "9.7.15.5" V8_0_SM90A Read [sums(4, B32)] [columns(&FLOAT_COLUMNS), B64, B64, P, one_of(&[-1, 1]), one_of(&[-1, 1]), range(0, 1), range(0, 1)] "wgmma product, f16 in and out" {
            WgmmaM64k16F16F16 "wgmma.mma_async.sync.aligned.m64nNk16.f16.f16.f16",
        }
        "9.7.15.5" V8_0_SM90A Read [sums(2, F32)] [columns(&FLOAT_COLUMNS), B64, B64, P, one_of(&[-1, 1]), one_of(&[-1, 1])] "wgmma product, tf32 or fp8 in and f32 out" {
            WgmmaM64k8F32Tf32 "wgmma.mma_async.sync.aligned.m64nNk8.f32.tf32.tf32",
            WgmmaM64k32F32E4m3 "wgmma.mma_async.sync.aligned.m64nNk32.f32.e4m3.e4m3",
            WgmmaM64k32F32E5m2 "wgmma.mma_async.sync.aligned.m64nNk32.f32.e5m2.e5m2",
            WgmmaM64k32F32E4m3E5m2 "wgmma.mma_async.sync.aligned.m64nNk32.f32.e4m3.e5m2",
            WgmmaM64k32F32E5m2E4m3 "wgmma.mma_async.sync.aligned.m64nNk32.f32.e5m2.e4m3",
        }
        "9.7.15.5" V8_0_SM90A Read [sums(4, B32)] [columns(&FLOAT_COLUMNS), B64, B64, P, one_of(&[-1, 1]), one_of(&[-1, 1])] "wgmma product, fp8 in and f16 out" {
            WgmmaM64k32F16E4m3 "wgmma.mma_async.sync.aligned.m64nNk32.f16.e4m3.e4m3",
            WgmmaM64k32F16E5m2 "wgmma.mma_async.sync.aligned.m64nNk32.f16.e5m2.e5m2",
            WgmmaM64k32F16E4m3E5m2 "wgmma.mma_async.sync.aligned.m64nNk32.f16.e4m3.e5m2",
            WgmmaM64k32F16E5m2E4m3 "wgmma.mma_async.sync.aligned.m64nNk32.f16.e5m2.e4m3",
        }
        "9.7.15.5" V8_0_SM90A Read [sums(2, B32)] [columns(&BYTE_COLUMNS), B64, B64, P] "wgmma product, bytes in and s32 out" {
            WgmmaM64k32S32S8 "wgmma.mma_async.sync.aligned.m64nNk32.s32.s8.s8",
            WgmmaM64k32S32U8 "wgmma.mma_async.sync.aligned.m64nNk32.s32.u8.u8",
        }
        "9.7.15.5" V8_4_SM90A Read [sums(2, B32)] [columns(&BYTE_COLUMNS), B64, B64, P] "wgmma product, bytes with and without signs in and s32 out" {
            WgmmaM64k32S32S8U8 "wgmma.mma_async.sync.aligned.m64nNk32.s32.s8.u8",
            WgmmaM64k32S32U8S8 "wgmma.mma_async.sync.aligned.m64nNk32.s32.u8.s8",
        }
        "9.7.15.5" V8_0_SM90A Read [sums(2, F32)] [columns(&FLOAT_COLUMNS), vec(4, B32), B64, P, one_of(&[-1, 1]), one_of(&[-1, 1]), range(0, 1)] "wgmma product, A in registers, 16-bit floats in and f32 out" {
            WgmmaRegsM64k16F32F16 "wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16",
            WgmmaRegsM64k16F32Bf16 "wgmma.mma_async.sync.aligned.m64nNk16.f32.bf16.bf16",
        }
        "9.7.15.5" V8_0_SM90A Read [sums(4, B32)] [columns(&FLOAT_COLUMNS), vec(4, B32), B64, P, one_of(&[-1, 1]), one_of(&[-1, 1]), range(0, 1)] "wgmma product, A in registers, f16 in and out" {
            WgmmaRegsM64k16F16F16 "wgmma.mma_async.sync.aligned.m64nNk16.f16.f16.f16",
        }
        "9.7.15.5" V8_0_SM90A Read [sums(2, F32)] [columns(&FLOAT_COLUMNS), vec(4, B32), B64, P, one_of(&[-1, 1]), one_of(&[-1, 1])] "wgmma product, A in registers, tf32 or fp8 in and f32 out" {
            WgmmaRegsM64k8F32Tf32 "wgmma.mma_async.sync.aligned.m64nNk8.f32.tf32.tf32",
            WgmmaRegsM64k32F32E4m3 "wgmma.mma_async.sync.aligned.m64nNk32.f32.e4m3.e4m3",
            WgmmaRegsM64k32F32E5m2 "wgmma.mma_async.sync.aligned.m64nNk32.f32.e5m2.e5m2",
            WgmmaRegsM64k32F32E4m3E5m2 "wgmma.mma_async.sync.aligned.m64nNk32.f32.e4m3.e5m2",
            WgmmaRegsM64k32F32E5m2E4m3 "wgmma.mma_async.sync.aligned.m64nNk32.f32.e5m2.e4m3",
        }
        "9.7.15.5" V8_0_SM90A Read [sums(4, B32)] [columns(&FLOAT_COLUMNS), vec(4, B32), B64, P, one_of(&[-1, 1]), one_of(&[-1, 1])] "wgmma product, A in registers, fp8 in and f16 out" {
            WgmmaRegsM64k32F16E4m3 "wgmma.mma_async.sync.aligned.m64nNk32.f16.e4m3.e4m3",
            WgmmaRegsM64k32F16E5m2 "wgmma.mma_async.sync.aligned.m64nNk32.f16.e5m2.e5m2",
            WgmmaRegsM64k32F16E4m3E5m2 "wgmma.mma_async.sync.aligned.m64nNk32.f16.e4m3.e5m2",
            WgmmaRegsM64k32F16E5m2E4m3 "wgmma.mma_async.sync.aligned.m64nNk32.f16.e5m2.e4m3",
        }
        "9.7.15.5" V8_0_SM90A Read [sums(2, B32)] [columns(&BYTE_COLUMNS), vec(4, B32), B64, P] "wgmma product, A in registers, bytes in and s32 out" {
            WgmmaRegsM64k32S32S8 "wgmma.mma_async.sync.aligned.m64nNk32.s32.s8.s8",
            WgmmaRegsM64k32S32U8 "wgmma.mma_async.sync.aligned.m64nNk32.s32.u8.u8",
        }
        "9.7.15.5" V8_4_SM90A Read [sums(2, B32)] [columns(&BYTE_COLUMNS), vec(4, B32), B64, P] "wgmma product, A in registers, bytes with and without signs in and s32 out" {
            WgmmaRegsM64k32S32S8U8 "wgmma.mma_async.sync.aligned.m64nNk32.s32.s8.u8",
            WgmmaRegsM64k32S32U8S8 "wgmma.mma_async.sync.aligned.m64nNk32.s32.u8.s8",
        }
    ] $($rest)* } };
}
