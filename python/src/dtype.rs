//! Element types as libraries of arrays name them.

use tilec_ir::types::Elem;

/// What an element is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Dtype {
    F16,
    BF16,
    F32,
    F64,
    E4M3,
    E5M2,
    E8M0,
    /// Two numbers of four bits.
    E2M1x2,
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    Bool,
}

/// The names of the types in libraries.
const NAMES: [(Dtype, &str); 17] = [
    (Dtype::F16, "float16"),
    (Dtype::BF16, "bfloat16"),
    (Dtype::F32, "float32"),
    (Dtype::F64, "float64"),
    (Dtype::E4M3, "float8_e4m3fn"),
    (Dtype::E5M2, "float8_e5m2"),
    (Dtype::E8M0, "float8_e8m0fnu"),
    (Dtype::E2M1x2, "float4_e2m1fn_x2"),
    (Dtype::I8, "int8"),
    (Dtype::U8, "uint8"),
    (Dtype::I16, "int16"),
    (Dtype::U16, "uint16"),
    (Dtype::I32, "int32"),
    (Dtype::U32, "uint32"),
    (Dtype::I64, "int64"),
    (Dtype::U64, "uint64"),
    (Dtype::Bool, "bool"),
];

impl Dtype {
    /// The type that libraries call so: `float16`, `torch.bfloat16`.
    pub(crate) fn named(name: &str) -> Option<Dtype> {
        let name = name.rsplit('.').next().unwrap_or(name);
        NAMES.iter().find(|(_, known)| *known == name).map(|(dtype, _)| *dtype)
    }

    /// The name of the type in libraries.
    pub(crate) fn name(self) -> &'static str {
        NAMES.iter().find(|(dtype, _)| *dtype == self).map_or("unknown", |(_, name)| name)
    }

    /// The type of an array interface: `<f2`.
    pub(crate) fn of_typestr(typestr: &str) -> Option<Dtype> {
        Some(match typestr.trim_start_matches(['<', '|', '=']) {
            "f2" => Dtype::F16,
            "f4" => Dtype::F32,
            "f8" => Dtype::F64,
            "i1" => Dtype::I8,
            "u1" => Dtype::U8,
            "i2" => Dtype::I16,
            "u2" => Dtype::U16,
            "i4" => Dtype::I32,
            "u4" => Dtype::U32,
            "i8" => Dtype::I64,
            "u8" => Dtype::U64,
            "b1" => Dtype::Bool,
            _ => return None,
        })
    }

    /// The type of a DLPack tensor.
    pub(crate) fn of_dlpack(code: u8, bits: u8) -> Option<Dtype> {
        Some(match (code, bits) {
            (0, 8) => Dtype::I8,
            (0, 16) => Dtype::I16,
            (0, 32) => Dtype::I32,
            (0, 64) => Dtype::I64,
            (1, 8) => Dtype::U8,
            (1, 16) => Dtype::U16,
            (1, 32) => Dtype::U32,
            (1, 64) => Dtype::U64,
            (2, 16) => Dtype::F16,
            (2, 32) => Dtype::F32,
            (2, 64) => Dtype::F64,
            (4, 16) => Dtype::BF16,
            (6, 8) => Dtype::Bool,
            (10, 8) => Dtype::E4M3,
            (12, 8) => Dtype::E5M2,
            (14, 8) => Dtype::E8M0,
            _ => return None,
        })
    }

    /// Bytes of an element.
    pub(crate) fn bytes(self) -> i64 {
        match self {
            Dtype::E4M3 | Dtype::E5M2 | Dtype::E8M0 | Dtype::E2M1x2 | Dtype::I8 | Dtype::U8 | Dtype::Bool => 1,
            Dtype::F16 | Dtype::BF16 | Dtype::I16 | Dtype::U16 => 2,
            Dtype::F32 | Dtype::I32 | Dtype::U32 => 4,
            Dtype::F64 | Dtype::I64 | Dtype::U64 => 8,
        }
    }

    /// Whether an array of these holds elements that a kernel calls so. Types that few libraries have may come as integers of their size.
    pub(crate) fn holds(self, elem: Elem) -> bool {
        match elem {
            Elem::F16 => self == Dtype::F16,
            Elem::BF16 => matches!(self, Dtype::BF16 | Dtype::U16),
            Elem::TF32 | Elem::F32 => self == Dtype::F32,
            Elem::F64 => self == Dtype::F64,
            Elem::E4M3 => matches!(self, Dtype::E4M3 | Dtype::U8),
            Elem::E5M2 => matches!(self, Dtype::E5M2 | Dtype::U8),
            Elem::UE8M0 => matches!(self, Dtype::E8M0 | Dtype::U8),
            Elem::E2M1 => matches!(self, Dtype::E2M1x2 | Dtype::U8),
            Elem::I4 | Elem::U4 => matches!(self, Dtype::U8 | Dtype::I8),
            Elem::I8 => self == Dtype::I8,
            Elem::U8 => matches!(self, Dtype::U8 | Dtype::Bool),
            Elem::Bool => self == Dtype::Bool,
            Elem::I16 => self == Dtype::I16,
            Elem::U16 => self == Dtype::U16,
            Elem::I32 => self == Dtype::I32,
            Elem::U32 => self == Dtype::U32,
            Elem::I64 => self == Dtype::I64,
            Elem::U64 => matches!(self, Dtype::U64 | Dtype::I64),
        }
    }
}
