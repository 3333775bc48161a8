//! Register numbers, lane values, types, state spaces and source positions.

/// A register slot of one of the three files; which one follows from the instruction.
pub(crate) type R = u32;

/// The lanes of a 32-bit slot.
pub(crate) type L32 = [u32; 32];

/// The lanes of a 64-bit slot.
pub(crate) type L64 = [u64; 32];

/// The slot of unused results.
pub(crate) const SINK: R = 0;

/// The predicate that is always true.
pub(crate) const TRUE: R = 1;

/// Window of shared memory in the generic address space.
pub(crate) const SHARED_WINDOW: u64 = 0x7F10_0000_0000_0000;

/// Window of local memory in the generic address space.
pub(crate) const LOCAL_WINDOW: u64 = 0x7F20_0000_0000_0000;

/// Window of kernel parameters in the generic address space.
pub(crate) const PARAM_WINDOW: u64 = 0x7F30_0000_0000_0000;

/// Bytes in each of the windows.
pub(crate) const WINDOW_BYTES: u64 = 1 << 32;

/// Where an instruction is in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    pub(crate) line: u32,
    /// Its first column and the one after its semicolon (a large number if the semicolon is in another line).
    pub(crate) columns: [u32; 2],
    /// `.loc`: file number and line, zero if none.
    pub(crate) loc: (u32, u32),
}

/// A scalar type (PTX 5.2); `Pred` is `.pred`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the variants are PTX's own type names")]
pub(crate) enum Ty {
    Pred,
    B8,
    B16,
    B32,
    B64,
    B128,
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    F16,
    F16x2,
    BF16,
    BF16x2,
    U16x2,
    S16x2,
    TF32,
    E4M3x2,
    E5M2x2,
    F32,
    F64,
}

impl Ty {
    /// The type a dotted word names.
    pub(crate) fn from_word(word: &str) -> Option<Ty> {
        Some(match word {
            "pred" => Ty::Pred,
            "b8" => Ty::B8,
            "b16" => Ty::B16,
            "b32" => Ty::B32,
            "b64" => Ty::B64,
            "b128" => Ty::B128,
            "u8" => Ty::U8,
            "u16" => Ty::U16,
            "u32" => Ty::U32,
            "u64" => Ty::U64,
            "s8" => Ty::S8,
            "s16" => Ty::S16,
            "s32" => Ty::S32,
            "s64" => Ty::S64,
            "f16" => Ty::F16,
            "f16x2" => Ty::F16x2,
            "bf16" => Ty::BF16,
            "bf16x2" => Ty::BF16x2,
            "u16x2" => Ty::U16x2,
            "s16x2" => Ty::S16x2,
            "tf32" => Ty::TF32,
            "e4m3" | "e5m2" => Ty::B8,
            "e4m3x2" => Ty::E4M3x2,
            "e5m2x2" => Ty::E5M2x2,
            "f32" => Ty::F32,
            "f64" => Ty::F64,
            _ => return None,
        })
    }

    /// Size of a value in memory, in bytes; a predicate has none.
    pub(crate) fn bytes(self) -> u32 {
        match self {
            Ty::Pred => 0,
            Ty::B8 | Ty::U8 | Ty::S8 => 1,
            Ty::B16 | Ty::U16 | Ty::S16 | Ty::F16 | Ty::BF16 | Ty::E4M3x2 | Ty::E5M2x2 => 2,
            Ty::B32 | Ty::U32 | Ty::S32 | Ty::F16x2 | Ty::BF16x2 | Ty::U16x2 | Ty::S16x2 | Ty::TF32 | Ty::F32 => 4,
            Ty::B64 | Ty::U64 | Ty::S64 | Ty::F64 => 8,
            Ty::B128 => 16,
        }
    }

    /// Whether arithmetic on it is signed.
    pub(crate) fn signed(self) -> bool {
        matches!(self, Ty::S8 | Ty::S16 | Ty::S32 | Ty::S64)
    }

    /// Whether a register of type `reg` may hold an operand of this type of the same size (PTX 9.4.1, Table 26).
    /// Integers, floats, and formats that only untyped registers hold do not mix.
    pub(crate) fn agrees(self, reg: Ty) -> bool {
        #[derive(PartialEq)]
        enum Class {
            Bits,
            Int,
            Float,
            Packed,
            Pred,
        }
        let class = |t: Ty| match t {
            Ty::Pred => Class::Pred,
            Ty::U8 | Ty::U16 | Ty::U32 | Ty::U64 | Ty::S8 | Ty::S16 | Ty::S32 | Ty::S64 => Class::Int,
            Ty::F16 | Ty::F32 | Ty::F64 => Class::Float,
            Ty::F16x2 | Ty::BF16 | Ty::BF16x2 | Ty::TF32 | Ty::E4M3x2 | Ty::E5M2x2 | Ty::U16x2 | Ty::S16x2 => {
                Class::Packed
            }
            Ty::B8 | Ty::B16 | Ty::B32 | Ty::B64 | Ty::B128 => Class::Bits,
        };
        let (a, b) = (class(self), class(reg));
        a == b || (a == Class::Bits && b != Class::Pred) || (b == Class::Bits && a != Class::Pred)
    }
}

/// State spaces of variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the variants are PTX's own state spaces")]
pub(crate) enum Space {
    Param,
    Shared,
    Global,
    Const,
    Local,
    /// Shared memory of any block of the cluster.
    Cluster,
}
