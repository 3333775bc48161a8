//! Element types.

use crate::bits::Bits;

macro_rules! elems {
    ($($(#[doc = $doc:literal])+ $variant:ident $name:literal $bits:literal $class:ident;)+) => {
        /// An element type.
        #[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Elem { $($(#[doc = $doc])+ $variant,)+ }

        impl Elem {
            /// Every element type.
            pub const ALL: &'static [Elem] = &[$(Elem::$variant,)+];

            /// The name of the text form.
            pub fn name(self) -> &'static str {
                match self { $(Elem::$variant => $name,)+ }
            }

            /// Size of one element in bits, as stored.
            pub const fn bits(self) -> u32 {
                match self { $(Elem::$variant => $bits,)+ }
            }

            /// Float, integer or Boolean.
            pub fn class(self) -> ElemClass {
                match self { $(Elem::$variant => ElemClass::$class,)+ }
            }
        }
    };
}

/// The kind of number an element is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ElemClass {
    /// Floating point.
    Float,
    /// Two's complement or unsigned integer.
    Int,
    /// True or false.
    Bool,
}

elems! {
    /// IEEE 754 binary16.
    F16 "f16" 16 Float;
    /// bfloat16: the upper half of a binary32.
    BF16 "bf16" 16 Float;
    /// TensorFloat-32: binary32 storage, 10 fraction bits used.
    TF32 "tf32" 32 Float;
    /// IEEE 754 binary32.
    F32 "f32" 32 Float;
    /// IEEE 754 binary64.
    F64 "f64" 64 Float;
    /// 8-bit float, 4 exponent bits, 3 fraction bits, no infinities.
    E4M3 "e4m3" 8 Float;
    /// 8-bit float, 5 exponent bits, 2 fraction bits.
    E5M2 "e5m2" 8 Float;
    /// 4-bit float, 2 exponent bits, 1 fraction bit, all of them numbers; two to a byte.
    E2M1 "e2m1" 4 Float;
    /// A power of two from 2^-127 to 2^127, or NaN: the scale of a block.
    UE8M0 "ue8m0" 8 Float;
    /// Signed integer of four bits, two to a byte.
    I4 "i4" 4 Int;
    /// Unsigned integer of four bits, two to a byte.
    U4 "u4" 4 Int;
    /// Signed byte.
    I8 "i8" 8 Int;
    /// Unsigned byte.
    U8 "u8" 8 Int;
    /// Signed 16-bit integer.
    I16 "i16" 16 Int;
    /// Unsigned 16-bit integer.
    U16 "u16" 16 Int;
    /// Signed 32-bit integer.
    I32 "i32" 32 Int;
    /// Unsigned 32-bit integer.
    U32 "u32" 32 Int;
    /// Signed 64-bit integer.
    I64 "i64" 64 Int;
    /// Unsigned 64-bit integer.
    U64 "u64" 64 Int;
    /// Boolean; lives in registers only.
    Bool "bool" 8 Bool;
}

impl Elem {
    /// What one element takes, as stored.
    pub const fn size(self) -> Bits {
        Bits::new(self.bits())
    }

    /// Bytes that a run of `count` elements takes, the last of which may be filled in part.
    pub const fn bytes_of(self, count: u64) -> u64 {
        self.size().bytes_of(count)
    }

    /// Registers of 32 bits that `count` elements take, side by side.
    pub const fn words(self, count: u64) -> u64 {
        self.size().words(count)
    }

    /// Elements that an access of `bytes` moves; one that is larger than that takes several accesses.
    pub const fn per(self, bytes: u32) -> u32 {
        self.size().per(bytes)
    }

    /// Bytes of an element with its own address. Elements that share bytes have none: asking for it is a bug.
    pub const fn addressed_bytes(self) -> u32 {
        self.size().whole_bytes().expect("bug: the address of an element that shares its byte")
    }

    /// The element type called `name`.
    pub fn from_name(name: &str) -> Option<Elem> {
        Elem::ALL.iter().copied().find(|e| e.name() == name)
    }

    /// Whether it is an integer type with numbers that no f64 holds.
    pub fn is_wide(self) -> bool {
        self.class() == ElemClass::Int && self.bits() > 53
    }

    /// Whether it is a floating-point type.
    pub fn is_float(self) -> bool {
        self.class() == ElemClass::Float
    }
}
