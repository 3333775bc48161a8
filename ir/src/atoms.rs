//! Matrix-product atoms: the instructions (or scalar code) that compute a small matrix product, one row each.
//!
//! A row describes, bit by bit, which element each lane holds. For a warp-wide product of `2^m x 2^n x 2^k` elements it
//! lists, for the register bits and the five lane bits of each operand, which coordinate bit they represent. All
//! layouts of larger tiles follow from the row: further registers repeat the atom over the tile.
//!
//! Facts: PTX ISA 9.7.14.5, "Matrix Fragments for mma". The verifier proves that fragments match a row, and its tests
//! compare a row with a lane-by-lane execution. Names are unique: where the manual gives one shape to several families
//! of types, the family is part of the name.

use crate::bits::Bits;
use crate::target::Target;
use crate::types::Elem;
use std::fmt;

/// A coordinate bit of an atom.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Bit {
    /// Bit of the row index.
    M(u8),
    /// Bit of the column index.
    N(u8),
    /// Bit of the reduction index.
    K(u8),
    /// None: lanes that differ in this bit hold the same element.
    Same,
}

/// The fragment of one operand of an atom: which element each register and lane holds.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Fragment {
    /// The name this variant has in the instruction (`row`, `col`), empty if there is one only.
    pub name: &'static str,
    /// Coordinate bit carried by each value bit, lowest first.
    pub value: &'static [Bit],
    /// Coordinate bit carried by each lane bit, lowest first.
    pub lane: [Bit; 5],
}

/// Element types of the operands of a product. Two types are as wide as each other where an instruction has them.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Inputs {
    /// Of A.
    pub a: Elem,
    /// Of B.
    pub b: Elem,
}

impl Inputs {
    /// Of one type.
    pub const fn both(elem: Elem) -> Inputs {
        Inputs { a: elem, b: elem }
    }

    /// Bits of an element of A or B; both have the same size.
    pub const fn size(self) -> Bits {
        self.a.size()
    }
}

impl fmt::Display for Inputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.a == self.b { f.write_str(self.a.name()) } else { write!(f, "{}·{}", self.a.name(), self.b.name()) }
    }
}

/// Element types of an atom.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct AtomTypes {
    /// A and B.
    pub inputs: Inputs,
    /// Accumulator.
    pub acc: Elem,
    /// Fragment of the accumulator.
    pub c: Fragment,
    /// The operand whose fragment consecutive instructions of a warp reuse, while that of the other operand changes.
    pub reused: Reused,
}

/// The operand whose fragment the tensor core keeps in its operand collector between instructions. Measured on an H200
/// under sustained load (docs/performance.md, "Turing and Ampere code"); results do not depend on it. For bytes, f64
/// and Volta the two choices were not compared.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Reused {
    /// A: 2 to 3 % more with f16 accumulation, 2 % and, with tall tiles, 14 % for `m16n8k8`.
    A,
    /// B: 1 to 3 % more for `m16n8k16` and tf32 with f32 accumulation.
    B,
}

/// A kind of bit in the order in which tile coordinate bits are assigned, lowest first.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum CoordBit {
    /// This bit of the atom's own coordinate.
    Atom(u8),
    /// A bit that numbers repetitions of the atom (a register bit).
    Repeat,
    /// As many repetition bits as make a run of 16 bytes of an input, at most two.
    Run,
}

/// A row of the atom table.
#[derive(Debug)]
pub struct AtomRow {
    /// Name in the text form.
    pub name: &'static str,
    /// Bits of the rows, columns and reduction indices that one warp-wide atom covers.
    pub log2_shape: (u32, u32, u32),
    /// Reduction extent of one instruction.
    pub k: u32,
    /// Type combinations.
    pub types: &'static [AtomTypes],
    /// Variants of the A operand.
    pub a: &'static [Fragment],
    /// Variants of the B operand.
    pub b: &'static [Fragment],
    /// Assignment of the bits of a tile coordinate (rows and columns alike), from the lowest. It gives a thread runs of
    /// consecutive accumulator elements. Further bits are repetitions, then warps.
    pub interleave: &'static [CoordBit],
    /// First target that has it.
    pub first: Target,
    /// Last compute capability on which it runs on the tensor cores (times ten); `u32::MAX`: all later ones.
    pub last_native_cc: u32,
    /// Tensor-core instruction, as against scalar code.
    pub tensor_core: bool,
    /// The unit that executes it, and where its operands are.
    pub unit: Unit,
    /// Precision of its f32 sums, if lower than that of f32.
    pub short_sums: Option<ShortSums>,
}

/// How a tensor core sums products of types for which it keeps fewer bits than f32 has. Products are aligned to the
/// largest of them and of the sum, truncated and added, and the sum is truncated again.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ShortSums {
    /// Products that are added at once.
    pub step: u32,
    /// Fraction bits that are kept, of either.
    pub bits: u32,
}

/// The threads that execute an instruction together, and where its operands are.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Unit {
    /// A warp, on fragments in registers.
    Warp,
    /// Four warps, on operands in shared memory that descriptors name, A in registers as well; the sums are there when they are awaited
    /// (`wgmma`). The coordinate bits that the warps of a group carry, lowest first.
    Warpgroup([Bit; 2]),
}

impl Unit {
    /// Bits of the warps that execute one instruction together.
    pub fn warp_bits(self) -> u32 {
        match self {
            Unit::Warp => 0,
            Unit::Warpgroup(bits) => bits.len() as u32,
        }
    }
}

use Bit::{K, M, N, Same};

/// Volta: four 8x8x4 products, one per quad pair, used as one 16x16x4 product: lane bit 2 picks the row half and lane
/// bit 3 the column half, so each A element is held twice and each B element twice.
static M8N8K4: AtomRow = AtomRow {
    name: "m8n8k4",
    log2_shape: (4, 4, 2),
    k: 4,
    types: &[
        AtomTypes {
            inputs: Inputs::both(Elem::F16),
            acc: Elem::F32,
            c: Fragment { name: "f32", value: &[N(0), M(1), N(2)], lane: [M(0), N(1), M(3), N(3), M(2)] },
            reused: Reused::B,
        },
        AtomTypes {
            inputs: Inputs::both(Elem::F16),
            acc: Elem::F16,
            c: Fragment { name: "f16", value: &[N(0), N(1), N(2)], lane: [M(0), M(1), M(3), N(3), M(2)] },
            reused: Reused::A,
        },
    ],
    a: &[
        Fragment { name: "row", value: &[K(0), K(1)], lane: [M(0), M(1), M(3), Same, M(2)] },
        Fragment { name: "col", value: &[M(0), M(1)], lane: [K(0), K(1), M(3), Same, M(2)] },
    ],
    b: &[
        Fragment { name: "row", value: &[N(0), N(1)], lane: [K(0), K(1), Same, N(3), N(2)] },
        Fragment { name: "col", value: &[K(0), K(1)], lane: [N(0), N(1), Same, N(3), N(2)] },
    ],
    interleave: &[CoordBit::Atom(0), CoordBit::Atom(1), CoordBit::Repeat, CoordBit::Atom(3), CoordBit::Atom(2)],
    first: Target::Sm70,
    last_native_cc: 75,
    tensor_core: true,
    unit: Unit::Warp,
    short_sums: None,
};

/// Accumulator of the m16n8 family: a thread owns pairs of neighbouring columns, in two rows eight apart.
const M16N8_C: Fragment = Fragment { name: "", value: &[N(0), M(3)], lane: [N(1), N(2), M(0), M(1), M(2)] };

/// Turing: one 16x8x8 product (PTX ISA 9.7.14.5.7).
static M16N8K8: AtomRow = AtomRow {
    name: "m16n8k8",
    log2_shape: (4, 3, 3),
    k: 8,
    types: &[
        AtomTypes { inputs: Inputs::both(Elem::F16), acc: Elem::F32, c: M16N8_C, reused: Reused::A },
        AtomTypes { inputs: Inputs::both(Elem::F16), acc: Elem::F16, c: M16N8_C, reused: Reused::A },
    ],
    a: &[Fragment { name: "row", value: &[K(0), M(3)], lane: [K(1), K(2), M(0), M(1), M(2)] }],
    b: &[Fragment { name: "col", value: &[K(0)], lane: [K(1), K(2), N(0), N(1), N(2)] }],
    interleave: &[],
    first: Target::Sm75,
    last_native_cc: u32::MAX,
    tensor_core: true,
    unit: Unit::Warp,
    short_sums: None,
};

/// Ampere: one 16x8x16 product (PTX ISA 9.7.14.5.8).
static M16N8K16: AtomRow = AtomRow {
    name: "m16n8k16",
    log2_shape: (4, 3, 4),
    k: 16,
    types: &[
        AtomTypes { inputs: Inputs::both(Elem::F16), acc: Elem::F32, c: M16N8_C, reused: Reused::B },
        AtomTypes { inputs: Inputs::both(Elem::F16), acc: Elem::F16, c: M16N8_C, reused: Reused::A },
        AtomTypes { inputs: Inputs::both(Elem::BF16), acc: Elem::F32, c: M16N8_C, reused: Reused::B },
    ],
    a: &[Fragment { name: "row", value: &[K(0), M(3), K(3)], lane: [K(1), K(2), M(0), M(1), M(2)] }],
    b: &[Fragment { name: "col", value: &[K(0), K(3)], lane: [K(1), K(2), N(0), N(1), N(2)] }],
    interleave: &[],
    first: Target::Sm80,
    last_native_cc: u32::MAX,
    tensor_core: true,
    unit: Unit::Warp,
    short_sums: None,
};

/// Accumulator of the m8n8 family: pairs of neighbouring columns of one row.
const M8N8_C: Fragment = Fragment { name: "", value: &[N(0)], lane: [N(1), N(2), M(0), M(1), M(2)] };

/// Ampere: one 16x8x8 product of tf32, a 32-bit register per element (PTX ISA 9.7.14.5.7).
static M16N8K8_TF32: AtomRow = AtomRow {
    name: "m16n8k8_tf32",
    log2_shape: (4, 3, 3),
    k: 8,
    types: &[AtomTypes { inputs: Inputs::both(Elem::TF32), acc: Elem::F32, c: M16N8_C, reused: Reused::B }],
    a: &[Fragment { name: "row", value: &[M(3), K(2)], lane: [K(0), K(1), M(0), M(1), M(2)] }],
    b: &[Fragment { name: "col", value: &[K(2)], lane: [K(0), K(1), N(0), N(1), N(2)] }],
    interleave: &[],
    first: Target::Sm80,
    last_native_cc: u32::MAX,
    tensor_core: true,
    unit: Unit::Warp,
    short_sums: None,
};

/// A sum of products of 8-bit elements.
const fn of_8_bits(a: Elem, b: Elem, acc: Elem, c: Fragment) -> AtomTypes {
    AtomTypes { inputs: Inputs { a, b }, acc, c, reused: Reused::B }
}

/// Products of bytes, with signs or without.
const fn bytes(c: Fragment) -> [AtomTypes; 4] {
    use Elem::{I8, I32, U8};
    [of_8_bits(I8, I8, I32, c), of_8_bits(U8, U8, I32, c), of_8_bits(I8, U8, I32, c), of_8_bits(U8, I8, I32, c)]
}

/// Products of 8-bit floats.
const fn floats_of_8_bits(c: Fragment) -> [AtomTypes; 8] {
    use Elem::{E4M3, E5M2, F16, F32};
    [
        of_8_bits(E4M3, E4M3, F32, c),
        of_8_bits(E5M2, E5M2, F32, c),
        of_8_bits(E4M3, E5M2, F32, c),
        of_8_bits(E5M2, E4M3, F32, c),
        of_8_bits(E4M3, E4M3, F16, c),
        of_8_bits(E5M2, E5M2, F16, c),
        of_8_bits(E4M3, E5M2, F16, c),
        of_8_bits(E5M2, E4M3, F16, c),
    ]
}

/// A of the 16x8x32 products of 8-bit elements, four to a register (PTX ISA 9.7.14.5.10).
const M16N8K32_A: &[Fragment] =
    &[Fragment { name: "row", value: &[K(0), K(1), M(3), K(4)], lane: [K(2), K(3), M(0), M(1), M(2)] }];

/// Their B.
const M16N8K32_B: &[Fragment] =
    &[Fragment { name: "col", value: &[K(0), K(1), K(4)], lane: [K(2), K(3), N(0), N(1), N(2)] }];

/// Ampere: one 16x8x32 product of bytes.
static M16N8K32_I8: AtomRow = AtomRow {
    name: "m16n8k32_i8",
    log2_shape: (4, 3, 5),
    k: 32,
    types: &bytes(M16N8_C),
    a: M16N8K32_A,
    b: M16N8K32_B,
    interleave: &[],
    first: Target::Sm80,
    last_native_cc: u32::MAX,
    tensor_core: true,
    unit: Unit::Warp,
    short_sums: None,
};

/// Ada: one 16x8x32 product of 8-bit floats. Hopper computes it with f16 instructions.
static M16N8K32_F8: AtomRow = AtomRow {
    name: "m16n8k32_f8",
    log2_shape: (4, 3, 5),
    k: 32,
    types: &floats_of_8_bits(M16N8_C),
    a: M16N8K32_A,
    b: M16N8K32_B,
    interleave: &[],
    first: Target::Sm89,
    last_native_cc: u32::MAX,
    tensor_core: true,
    unit: Unit::Warp,
    short_sums: None,
};

/// Turing: one 8x8x16 product of bytes (PTX ISA 9.7.14.5.4).
static M8N8K16: AtomRow = AtomRow {
    name: "m8n8k16",
    log2_shape: (3, 3, 4),
    k: 16,
    types: &bytes(M8N8_C),
    a: &[Fragment { name: "row", value: &[K(0), K(1)], lane: [K(2), K(3), M(0), M(1), M(2)] }],
    b: &[Fragment { name: "col", value: &[K(0), K(1)], lane: [K(2), K(3), N(0), N(1), N(2)] }],
    interleave: &[],
    first: Target::Sm75,
    last_native_cc: u32::MAX,
    tensor_core: true,
    unit: Unit::Warp,
    short_sums: None,
};

/// Ampere: one 8x8x4 product of f64 (PTX ISA 9.7.14.5.1, "f64").
static M8N8K4_F64: AtomRow = AtomRow {
    name: "m8n8k4_f64",
    log2_shape: (3, 3, 2),
    k: 4,
    types: &[AtomTypes { inputs: Inputs::both(Elem::F64), acc: Elem::F64, c: M8N8_C, reused: Reused::B }],
    a: &[Fragment { name: "row", value: &[], lane: [K(0), K(1), M(0), M(1), M(2)] }],
    b: &[Fragment { name: "col", value: &[], lane: [K(0), K(1), N(0), N(1), N(2)] }],
    interleave: &[],
    first: Target::Sm80,
    last_native_cc: u32::MAX,
    tensor_core: true,
    unit: Unit::Warp,
    short_sums: None,
};

/// Hopper: one 16x8x8 product of f64, a register pair per element (PTX ISA 9.7.14.5.7).
const M16N8K8_F64: AtomRow = AtomRow {
    name: "m16n8k8_f64",
    log2_shape: (4, 3, 3),
    k: 8,
    types: &[AtomTypes { inputs: Inputs::both(Elem::F64), acc: Elem::F64, c: M16N8_C, reused: Reused::B }],
    a: &[Fragment { name: "row", value: &[M(3), K(2)], lane: [K(0), K(1), M(0), M(1), M(2)] }],
    b: &[Fragment { name: "col", value: &[K(2)], lane: [K(0), K(1), N(0), N(1), N(2)] }],
    interleave: &[],
    first: Target::Sm90,
    last_native_cc: u32::MAX,
    tensor_core: true,
    unit: Unit::Warp,
    short_sums: None,
};

/// Hopper: twice as deep (PTX ISA 9.7.14.5.8).
static M16N8K16_F64: AtomRow = AtomRow {
    name: "m16n8k16_f64",
    log2_shape: (4, 3, 4),
    k: 16,
    a: &[Fragment { name: "row", value: &[M(3), K(2), K(3)], lane: [K(0), K(1), M(0), M(1), M(2)] }],
    b: &[Fragment { name: "col", value: &[K(2), K(3)], lane: [K(0), K(1), N(0), N(1), N(2)] }],
    ..M16N8K8_F64
};

/// Hopper: half as deep (PTX ISA 9.7.14.5.6).
static M16N8K4_F64: AtomRow = AtomRow {
    name: "m16n8k4_f64",
    log2_shape: (4, 3, 2),
    k: 4,
    a: &[Fragment { name: "row", value: &[M(3)], lane: [K(0), K(1), M(0), M(1), M(2)] }],
    b: &[Fragment { name: "col", value: &[], lane: [K(0), K(1), N(0), N(1), N(2)] }],
    ..M16N8K8_F64
};

/// Hopper: products of 64 rows by four warps, 16 rows each. Both operands are in shared memory, or A in registers (PTX
/// ISA 9.7.15.5). An instruction has as many columns as the tile, 8 to 256. The row describes 8 columns; larger
/// instructions repeat it.
const M64K16: AtomRow = AtomRow {
    name: "m64k16",
    log2_shape: (6, 3, 4),
    k: 16,
    types: &[
        AtomTypes { inputs: Inputs::both(Elem::F16), acc: Elem::F32, c: M16N8_C, reused: Reused::B },
        AtomTypes { inputs: Inputs::both(Elem::F16), acc: Elem::F16, c: M16N8_C, reused: Reused::B },
        AtomTypes { inputs: Inputs::both(Elem::BF16), acc: Elem::F32, c: M16N8_C, reused: Reused::B },
    ],
    a: &[Fragment { name: "", value: &[K(0), M(3), K(3)], lane: [K(1), K(2), M(0), M(1), M(2)] }],
    b: &[],
    interleave: &[],
    first: Target::Sm90a,
    last_native_cc: 90,
    tensor_core: true,
    unit: Unit::Warpgroup([M(4), M(5)]),
    short_sums: None,
};

/// The same of tf32.
static M64K8_TF32: AtomRow = AtomRow {
    name: "m64k8_tf32",
    log2_shape: (6, 3, 3),
    k: 8,
    types: &[AtomTypes { inputs: Inputs::both(Elem::TF32), acc: Elem::F32, c: M16N8_C, reused: Reused::B }],
    a: &[Fragment { name: "", value: &[M(3), K(2)], lane: [K(0), K(1), M(0), M(1), M(2)] }],
    ..M64K16
};

/// A of products of 8-bit elements, in registers.
const M64K32_A: &[Fragment] =
    &[Fragment { name: "", value: &[K(0), K(1), M(3), K(4)], lane: [K(2), K(3), M(0), M(1), M(2)] }];

/// The same of bytes.
static M64K32_I8: AtomRow =
    AtomRow { name: "m64k32_i8", log2_shape: (6, 3, 5), k: 32, types: &bytes(M16N8_C), a: M64K32_A, ..M64K16 };

/// As `M64K16` for 8-bit floats, whose f32 sums have 14 bits (docs/numerics.md).
static M64K32_F8: AtomRow = AtomRow {
    name: "m64k32_f8",
    log2_shape: (6, 3, 5),
    k: 32,
    types: &floats_of_8_bits(M16N8_C),
    a: M64K32_A,
    short_sums: Some(ShortSums { step: 32, bits: 13 }),
    ..M64K16
};

/// Scalar multiply-add, one element per thread and step: 4 rows by 8 columns of lanes. A thread owns 16-byte runs of
/// each operand, in pieces that are four (eight) runs apart. Neighbouring lanes differ in the row and the next bits in
/// the column. Each operand is then the same in lanes one or two apart, and its 16-byte loads take two wavefronts, not
/// four (measured: docs/performance.md, "Counters against the H200").
const FMA: AtomRow = AtomRow {
    name: "fma",
    log2_shape: (2, 3, 0),
    k: 1,
    types: &[
        AtomTypes { inputs: Inputs::both(Elem::F16), acc: Elem::F32, c: FMA_C, reused: Reused::B },
        AtomTypes { inputs: Inputs::both(Elem::F16), acc: Elem::F16, c: FMA_C, reused: Reused::B },
        AtomTypes { inputs: Inputs::both(Elem::BF16), acc: Elem::F32, c: FMA_C, reused: Reused::B },
        AtomTypes { inputs: Inputs::both(Elem::TF32), acc: Elem::F32, c: FMA_C, reused: Reused::B },
        AtomTypes { inputs: Inputs::both(Elem::F32), acc: Elem::F32, c: FMA_C, reused: Reused::B },
        AtomTypes { inputs: Inputs::both(Elem::F64), acc: Elem::F64, c: FMA_C, reused: Reused::B },
        AtomTypes { inputs: Inputs::both(Elem::I8), acc: Elem::I32, c: FMA_C, reused: Reused::B },
        AtomTypes { inputs: Inputs::both(Elem::U8), acc: Elem::I32, c: FMA_C, reused: Reused::B },
        AtomTypes { inputs: Inputs { a: Elem::I8, b: Elem::U8 }, acc: Elem::I32, c: FMA_C, reused: Reused::B },
        AtomTypes { inputs: Inputs { a: Elem::U8, b: Elem::I8 }, acc: Elem::I32, c: FMA_C, reused: Reused::B },
    ],
    a: &[Fragment { name: "", value: &[], lane: [M(0), Same, Same, Same, M(1)] }],
    b: &[Fragment { name: "", value: &[], lane: [Same, N(0), N(1), N(2), Same] }],
    interleave: &[CoordBit::Run, CoordBit::Atom(0), CoordBit::Atom(1), CoordBit::Atom(2)],
    first: Target::Sm70,
    last_native_cc: u32::MAX,
    tensor_core: false,
    unit: Unit::Warp,
    short_sums: None,
};

/// The same where 8-bit floats can be converted.
static FMA_F8: AtomRow = AtomRow { name: "fma_f8", types: &floats_of_8_bits(FMA_C), first: Target::Sm89, ..FMA };

/// Scalar sums of four products of bytes: lanes and runs of the scalar multiply-add, four neighbours along the reduction to a
/// register.
static DP4A: AtomRow = AtomRow {
    name: "dp4a",
    log2_shape: (2, 3, 2),
    k: 4,
    types: &bytes(FMA_C),
    a: &[Fragment { name: "", value: &[K(0), K(1)], lane: [M(0), Same, Same, Same, M(1)] }],
    b: &[Fragment { name: "", value: &[K(0), K(1)], lane: [Same, N(0), N(1), N(2), Same] }],
    ..FMA
};

const FMA_C: Fragment = Fragment { name: "", value: &[], lane: [M(0), N(0), N(1), N(2), M(1)] };

/// Best first; the scalar rows last.
static TABLE: &[&AtomRow] = &[
    &M64K16,
    &M64K8_TF32,
    &M64K32_I8,
    &M64K32_F8,
    &M16N8K32_I8,
    &M8N8K16,
    &M16N8K32_F8,
    &M16N8K8_TF32,
    &M16N8K8_F64,
    &M16N8K16_F64,
    &M16N8K4_F64,
    &M8N8K4_F64,
    &M16N8K16,
    &M16N8K8,
    &M8N8K4,
    &DP4A,
    &FMA,
    &FMA_F8,
];

/// An atom: an index into the table.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Atom(u8);

impl Atom {
    /// Every atom, best first.
    pub fn all() -> impl Iterator<Item = Atom> {
        (0..TABLE.len()).map(|i| Atom(i as u8))
    }

    /// Its row.
    pub fn row(self) -> &'static AtomRow {
        TABLE[usize::from(self.0)]
    }

    /// The atom called `name`.
    pub fn from_name(name: &str) -> Option<Atom> {
        Atom::all().find(|a| a.row().name == name)
    }
}

impl AtomRow {
    /// Whether its B is in shared memory, A there or in registers, and its sums awaited.
    pub fn asynchronous(&self) -> bool {
        self.unit != Unit::Warp
    }

    /// Whether an instruction sums several products, so that fragments hold neighbours along the reduction.
    pub fn sums(&self) -> bool {
        self.k > 1
    }

    /// Whether wgmma has an instruction with `n` columns (PTX ISA 9.7.15.2): multiples of 8 up to 256; for bytes,
    /// multiples of 16 above 32.
    pub fn has_columns(&self, n: u64) -> bool {
        let bytes = self.types.iter().all(|t| t.acc == Elem::I32);
        let unit = if bytes && n > 32 { 16 } else { 8 };
        self.asynchronous() && n > 0 && n <= 256 && n.is_multiple_of(unit)
    }

    /// The row of the type table for these element types. If A and B have different types, the row matches in either
    /// order, because the transposed product uses the same instruction.
    pub fn types_for(&self, inputs: Inputs, acc: Elem) -> Option<&'static AtomTypes> {
        self.types.iter().find(|t| t.inputs == inputs && t.acc == acc)
    }
}
