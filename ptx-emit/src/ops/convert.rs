//! Rows: moves, packing and conversions.

macro_rules! convert_rows {
    ([$($done:tt)*] $next:ident $($rest:ident)*) => { $next! { [$($done)*

        "9.7.9.3" V6_0 Pure [P] [P] "copy" { MovPred "mov.pred" }
        "9.7.9.3" V6_0 Pure [B16] [B16I] "copy" { MovB16 "mov.b16" }
        "9.7.9.3" V6_0 Pure [B32] [B32I] "copy" { MovB32 "mov.b32" }
        "9.7.9.3" V6_0 Pure [B64] [B64I] "copy" { MovB64 "mov.b64" }
        "9.7.9.3" V6_0 Pure [F32] [F32I] "copy" { MovF32 "mov.f32" }
        "9.7.9.3" V6_0 Pure [F64] [F64I] "copy" { MovF64 "mov.f64" }
        "9.7.9.3" V6_0 Pure [B32] [F32] "the bits of a float" { MovB32F32 "mov.b32" }
        "9.7.9.3" V6_0 Pure [F32] [B32] "a float from its bits" { MovF32B32 "mov.b32" }
        "9.7.9.3" V6_0 Pure [B64] [F64] "the bits of a float" { MovB64F64 "mov.b64" }
        "9.7.9.3" V6_0 Pure [F64] [B64] "a float from its bits" { MovF64B64 "mov.b64" }
        "9.7.9.3" V6_0 Pure [B32] [SPECIAL32] "read of a special register" { MovSpecialU32 "mov.u32" }
        "9.7.9.3" V6_0 Pure [B64] [SPECIAL64] "read of a special register" { MovSpecialU64 "mov.u64" }
        "9.7.9.3" V6_0 Pure [B32] [SHARED_SYM] "address of a shared array" { MovSharedU32 "mov.u32" }
        "9.7.9.3" V6_0 Pure [B64] [SHARED_SYM] "address of a shared array" { MovSharedU64 "mov.u64" }
        "9.7.9.4" V6_0 Pure [B32] [vec(2, B16)] "packing, low half first" { PackB32B16 "mov.b32" }
        "9.7.9.4" V6_0 Pure [F32] [vec(2, B16)] "the bits of a number from its halves, low half first" { PackF32B16 "mov.b32" }
        "9.7.9.4" V6_0 Pure [vec(2, B16)] [B32] "unpacking, low half first" { UnpackB32B16 "mov.b32" }
        "9.7.9.4" V6_0 Pure [B64] [vec(2, B32)] "packing, low half first" { PackB64B32 "mov.b64" }
        "9.7.9.4" V6_0 Pure [vec(2, B32)] [B64] "unpacking, low half first" { UnpackB64B32 "mov.b64" }
        "9.7.9.4" V6_0 Pure [B64] [vec(4, B16)] "packing, low quarter first" { PackB64B16 "mov.b64" }
        "9.7.9.4" V6_0 Pure [vec(4, B16)] [B64] "unpacking, low quarter first" { UnpackB64B16 "mov.b64" }
        "9.7.9.20" V6_0 Pure [B64] [B64] "generic address to space address" {
            CvtaToGlobalU64 "cvta.to.global.u64", CvtaToSharedU64 "cvta.to.shared.u64",
        }

        "9.7.9.21" V6_0 Pure [F32] [B16] "f16 to f32, exact" { CvtF32F16 "cvt.f32.f16" }
        "9.7.9.21" V6_0 Pure [B16] [F32] "f32 to f16" { CvtRnF16F32 "cvt.rn.f16.f32" }
        "9.7.9.21" V6_0 Pure [F64] [B16] "f16 to f64, exact" { CvtF64F16 "cvt.f64.f16" }
        "9.7.9.21" V6_0 Pure [B16] [F64] "f64 to f16" { CvtRnF16F64 "cvt.rn.f16.f64" }
        "9.7.9.21" V6_0 Pure [F64] [F32] "f32 to f64, exact" { CvtF64F32 "cvt.f64.f32" }
        "9.7.9.21" V6_0 Pure [F32] [F64] "f64 to f32, to nearest even or toward zero" {
            CvtRnF32F64 "cvt.rn.f32.f64", CvtRzF32F64 "cvt.rz.f32.f64",
        }
        "9.7.9.21" V6_0 Pure [F32] [F32] "rounding to an integral float: nearest even, zero, down, up; or clamping to 0..1" {
            CvtRniF32F32 "cvt.rni.f32.f32", CvtRziF32F32 "cvt.rzi.f32.f32",
            CvtRmiF32F32 "cvt.rmi.f32.f32", CvtRpiF32F32 "cvt.rpi.f32.f32",
            CvtSatF32F32 "cvt.sat.f32.f32",
        }
        "9.7.9.21" V6_0 Pure [F64] [F64] "rounding to an integral float: nearest even, down, up" {
            CvtRniF64F64 "cvt.rni.f64.f64", CvtRmiF64F64 "cvt.rmi.f64.f64", CvtRpiF64F64 "cvt.rpi.f64.f64",
        }
        "9.7.9.21" V7_0_SM80 Pure [B32] [F32, F32] "two f32 to packed 16-bit floats, `a` in the high half" {
            CvtRnF16x2F32 "cvt.rn.f16x2.f32", CvtRnBf16x2F32 "cvt.rn.bf16x2.f32",
        }
        "9.7.9.21" V7_0_SM80 Pure [B16] [F32] "f32 to bf16" { CvtRnBf16F32 "cvt.rn.bf16.f32" }
        "9.7.9.21" V7_1_SM80 Pure [F32] [B16] "bf16 to f32, exact" { CvtF32Bf16 "cvt.f32.bf16" }
        "9.7.9.21" V7_0_SM80 Pure [B32] [F32] "f32 to tf32" { CvtRnaTf32F32 "cvt.rna.tf32.f32" }
        "9.7.9.21" V8_1_SM89 Pure [B16] [F32, F32] "two f32 to packed fp8, `a` in the high byte" {
            CvtRnSatfiniteE4m3x2F32 "cvt.rn.satfinite.e4m3x2.f32",
            CvtRnSatfiniteE5m2x2F32 "cvt.rn.satfinite.e5m2x2.f32",
        }
        "9.7.9.21" V8_1_SM89 Pure [B32] [B16] "two packed fp8 to f16, exact" {
            CvtRnF16x2E4m3x2 "cvt.rn.f16x2.e4m3x2", CvtRnF16x2E5m2x2 "cvt.rn.f16x2.e5m2x2",
        }

        "9.7.9.21" V6_0 Pure [F32] [B32] "32-bit integer to f32" {
            CvtRnF32S32 "cvt.rn.f32.s32", CvtRnF32U32 "cvt.rn.f32.u32",
        }
        "9.7.9.21" V6_0 Pure [F32] [B64] "64-bit integer to f32, to nearest even or toward zero" {
            CvtRnF32S64 "cvt.rn.f32.s64", CvtRnF32U64 "cvt.rn.f32.u64", CvtRzF32S64 "cvt.rz.f32.s64",
            CvtRzF32U64 "cvt.rz.f32.u64",
        }
        "9.7.9.21" V6_0 Pure [F64] [B32] "32-bit integer to f64, exact" {
            CvtRnF64S32 "cvt.rn.f64.s32", CvtRnF64U32 "cvt.rn.f64.u32",
        }
        "9.7.9.21" V6_0 Pure [F64] [B64] "64-bit integer to f64" {
            CvtRnF64S64 "cvt.rn.f64.s64", CvtRnF64U64 "cvt.rn.f64.u64",
        }
        "9.7.9.21" V6_0 Pure [B16] [B32] "32-bit integer to f16" {
            CvtRnF16S32 "cvt.rn.f16.s32", CvtRnF16U32 "cvt.rn.f16.u32",
        }
        "9.7.9.21" V6_0 Pure [B16] [B64] "64-bit integer to f16" {
            CvtRnF16S64 "cvt.rn.f16.s64", CvtRnF16U64 "cvt.rn.f16.u64",
        }
        "9.7.9.21" V6_0 Pure [B32] [F32] "f32 to 32-bit integer, saturating: toward zero, nearest even, down, up" {
            CvtRziS32F32 "cvt.rzi.s32.f32", CvtRziU32F32 "cvt.rzi.u32.f32",
            CvtRniS32F32 "cvt.rni.s32.f32", CvtRniU32F32 "cvt.rni.u32.f32",
            CvtRmiS32F32 "cvt.rmi.s32.f32", CvtRpiS32F32 "cvt.rpi.s32.f32",
        }
        "9.7.9.21" V6_0 Pure [B64] [F32] "f32 to 64-bit integer, toward zero or nearest even, saturating" {
            CvtRniS64F32 "cvt.rni.s64.f32", CvtRniU64F32 "cvt.rni.u64.f32", CvtRziS64F32 "cvt.rzi.s64.f32", CvtRziU64F32 "cvt.rzi.u64.f32",
        }
        "9.7.9.21" V6_0 Pure [B32] [F64] "f64 to 32-bit integer, toward zero or nearest even, saturating" {
            CvtRniS32F64 "cvt.rni.s32.f64", CvtRniU32F64 "cvt.rni.u32.f64", CvtRziS32F64 "cvt.rzi.s32.f64", CvtRziU32F64 "cvt.rzi.u32.f64",
        }
        "9.7.9.21" V6_0 Pure [B64] [F64] "f64 to 64-bit integer, toward zero or nearest even, saturating" {
            CvtRniS64F64 "cvt.rni.s64.f64", CvtRniU64F64 "cvt.rni.u64.f64", CvtRziS64F64 "cvt.rzi.s64.f64", CvtRziU64F64 "cvt.rzi.u64.f64",
        }
        "9.7.9.21" V6_0 Pure [B32] [B16] "f16 to 32-bit integer, toward zero, saturating" {
            CvtRziS32F16 "cvt.rzi.s32.f16", CvtRziU32F16 "cvt.rzi.u32.f16",
        }
        "9.7.9.21" V6_0 Pure [B64] [B16] "f16 to 64-bit integer, toward zero, saturating" {
            CvtRziS64F16 "cvt.rzi.s64.f16", CvtRziU64F16 "cvt.rzi.u64.f16",
        }
        "9.7.9.21" V6_0 Pure [B64] [B32] "32-bit integer to 64 bits, by sign or zeros" {
            CvtS64S32 "cvt.s64.s32", CvtU64U32 "cvt.u64.u32",
        }
        "9.7.9.21" V6_0 Pure [B32] [B64] "low half of a 64-bit integer" {
            CvtS32S64 "cvt.s32.s64", CvtU32U64 "cvt.u32.u64",
        }
        "9.7.9.21" V6_0 Pure [B32] [B16] "16-bit integer to 32 bits, by sign or zeros" {
            CvtS32S16 "cvt.s32.s16", CvtU32U16 "cvt.u32.u16",
        }
        "9.7.9.21" V6_0 Pure [B16] [B32] "low half of a 32-bit integer" { CvtU16U32 "cvt.u16.u32" }
        "9.7.9.21" V6_0 Pure [B32] [B32] "low byte of a register to 32 bits, by sign or zeros; or a clamp to a byte" {
            CvtS32S8 "cvt.s32.s8", CvtU32U8 "cvt.u32.u8",
            CvtSatS8S32 "cvt.sat.s8.s32", CvtSatU8S32 "cvt.sat.u8.s32",
        }
    ] $($rest)* } };
}
