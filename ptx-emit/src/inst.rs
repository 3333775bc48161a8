//! Registers, operands and instructions.
//!
//! An [`Inst`] is an [`Op`] (a row of the table), an optional guard and the operands in PTX order, destinations
//! first. Nothing here is checked on construction: [`crate::check`] compares instructions with their rows.

use crate::ops::Op;
use crate::target::{Sm, Version};
use cranelift_entity::entity_impl;
use cranelift_entity::packed_option::PackedOption;
use tilec_ir::entities::Stmt;

/// A typed virtual register of one function.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reg(u32);
entity_impl!(Reg, "reg");

/// A branch target of one function; its name is in [`crate::module::Function::labels`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(u32);
entity_impl!(Label, "label");

/// A register class: the type a register is declared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// `.pred`, printed `%p`.
    Pred,
    /// `.b16`, printed `%h`: f16, bf16, and 16-bit integers.
    B16,
    /// `.b32`, printed `%r`: 32-bit integers and packed pairs of 16-bit values.
    B32,
    /// `.b64`, printed `%rd`: 64-bit integers and addresses.
    B64,
    /// `.f32`, printed `%f`.
    F32,
    /// `.f64`, printed `%fd`.
    F64,
}

impl Class {
    /// Every class, in the order in which declarations are printed.
    pub const ALL: [Class; 6] = [Class::Pred, Class::B16, Class::B32, Class::B64, Class::F32, Class::F64];

    /// Its type in a `.reg` declaration.
    pub fn decl(self) -> &'static str {
        match self {
            Class::Pred => ".pred",
            Class::B16 => ".b16",
            Class::B32 => ".b32",
            Class::B64 => ".b64",
            Class::F32 => ".f32",
            Class::F64 => ".f64",
        }
    }

    /// The prefix of its registers' names.
    pub fn prefix(self) -> &'static str {
        match self {
            Class::Pred => "%p",
            Class::B16 => "%h",
            Class::B32 => "%r",
            Class::B64 => "%rd",
            Class::F32 => "%f",
            Class::F64 => "%fd",
        }
    }

    /// Size in bytes; 0 for predicates, which have no memory form.
    pub fn bytes(self) -> u32 {
        match self {
            Class::Pred => 0,
            Class::B16 => 2,
            Class::B32 | Class::F32 => 4,
            Class::B64 | Class::F64 => 8,
        }
    }
}

macro_rules! specials {
    ($($(#[$doc:meta])* $variant:ident $text:literal $class:ident $version:expr, $sm:expr;)*) => {
        /// A special register (PTX ISA section 10), readable by the `mov` rows that take one.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Special { $($(#[$doc])* $variant,)* }

        impl Special {
            /// Every special register of the table.
            pub const ALL: &[Special] = &[$(Special::$variant),*];

            /// Its name in PTX.
            pub fn text(self) -> &'static str {
                match self { $(Special::$variant => $text),* }
            }

            /// The class of its value.
            pub fn class(self) -> Class {
                match self { $(Special::$variant => Class::$class),* }
            }

            /// The first PTX version that has it; (6, 0) means that version or an earlier one.
            pub fn min_version(self) -> Version {
                match self { $(Special::$variant => $version),* }
            }

            /// The first target that has it; `sm_70` means that target or an earlier one.
            pub fn min_sm(self) -> Sm {
                match self { $(Special::$variant => Sm::plain($sm)),* }
            }
        }
    };
}

specials! {
    /// Thread index in the block, x.
    TidX "%tid.x" B32 (6, 0), 70;
    /// Thread index in the block, y.
    TidY "%tid.y" B32 (6, 0), 70;
    /// Thread index in the block, z.
    TidZ "%tid.z" B32 (6, 0), 70;
    /// Threads in the block, x.
    NtidX "%ntid.x" B32 (6, 0), 70;
    /// Threads in the block, y.
    NtidY "%ntid.y" B32 (6, 0), 70;
    /// Threads in the block, z.
    NtidZ "%ntid.z" B32 (6, 0), 70;
    /// Block index in the grid, x.
    CtaidX "%ctaid.x" B32 (6, 0), 70;
    /// Block index in the grid, y.
    CtaidY "%ctaid.y" B32 (6, 0), 70;
    /// Block index in the grid, z.
    CtaidZ "%ctaid.z" B32 (6, 0), 70;
    /// Blocks in the grid, x.
    NctaidX "%nctaid.x" B32 (6, 0), 70;
    /// Blocks in the grid, y.
    NctaidY "%nctaid.y" B32 (6, 0), 70;
    /// Blocks in the grid, z.
    NctaidZ "%nctaid.z" B32 (6, 0), 70;
    /// Lane of the thread in its warp, 0..32.
    LaneId "%laneid" B32 (6, 0), 70;
    /// Warp slot of the thread; may change while it runs, so for profiling only.
    WarpId "%warpid" B32 (6, 0), 70;
    /// Multiprocessor the thread runs on; may change, so for profiling only.
    SmId "%smid" B32 (6, 0), 70;
    /// Mask with the bits of all lower lanes.
    LanemaskLt "%lanemask_lt" B32 (6, 0), 70;
    /// Dynamic shared memory of the launch in bytes.
    DynamicSmemSize "%dynamic_smem_size" B32 (6, 0), 70;
    /// Cycle counter, low 32 bits.
    Clock "%clock" B32 (6, 0), 70;
    /// Cycle counter.
    Clock64 "%clock64" B64 (6, 0), 70;
    /// Global nanosecond timer.
    GlobalTimer "%globaltimer" B64 (6, 0), 70;
    /// Rank of the block in its cluster.
    ClusterCtaRank "%cluster_ctarank" B32 (7, 8), 90;
}

/// What an address counts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddrBase {
    /// A register: [`Class::B64`] for global memory, [`Class::B32`] for shared memory.
    Reg(Reg),
    /// The parameter with this index in [`crate::module::Function::params`].
    Param(u32),
    /// The shared array with this index in [`crate::module::Function::shared`].
    Shared(u32),
}

/// One operand, in the position its row gives it.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// A register.
    Reg(Reg),
    /// The complement of a predicate, `!%p`; legal only where the row allows it.
    NotPred(Reg),
    /// An integer literal.
    Imm(i64),
    /// A single-precision literal, printed by its bits.
    F32(f32),
    /// A double-precision literal, printed by its bits.
    F64(f64),
    /// Registers in braces, low element first.
    Vec(Vec<Reg>),
    /// The number of columns of a product, which is part of the opcode.
    Columns(u16),
    /// A memory operand, `[base+offset]`, offset in bytes.
    Addr {
        /// What the offset is added to.
        base: AddrBase,
        /// Bytes, in the signed 24 bits of the hardware's load and store instructions.
        offset: i64,
    },
    /// A special register.
    Special(Special),
    /// A branch target.
    Label(Label),
    /// The address of the shared array with this index, as a value.
    SharedSym(u32),
    /// The address of the parameter with this index, as a value.
    ParamSym(u32),
    /// The address of the table with this index, as a value.
    ConstSym(u32),
    /// A predicate after an unused value, `_|%p`.
    Elected(Reg),
    /// `_`: no value.
    Sink,
    /// A tensor map, by its generic address in a [`Class::B64`] register, and the coordinates of a box's first element
    /// in [`Class::B32`] registers, innermost dimension first. Without coordinates: the map alone.
    Tensor {
        /// The address of the map.
        map: Reg,
        /// Coordinates.
        at: Vec<Reg>,
    },
}

impl From<Reg> for Operand {
    fn from(reg: Reg) -> Operand {
        Operand::Reg(reg)
    }
}

impl From<i64> for Operand {
    fn from(value: i64) -> Operand {
        Operand::Imm(value)
    }
}

impl From<f32> for Operand {
    fn from(value: f32) -> Operand {
        Operand::F32(value)
    }
}

impl From<f64> for Operand {
    fn from(value: f64) -> Operand {
        Operand::F64(value)
    }
}

impl From<Vec<Reg>> for Operand {
    fn from(regs: Vec<Reg>) -> Operand {
        Operand::Vec(regs)
    }
}

impl From<Special> for Operand {
    fn from(special: Special) -> Operand {
        Operand::Special(special)
    }
}

impl From<Label> for Operand {
    fn from(label: Label) -> Operand {
        Operand::Label(label)
    }
}

impl Operand {
    /// `[reg+offset]`, offset in bytes.
    pub fn at(reg: Reg, offset: i64) -> Operand {
        Operand::Addr { base: AddrBase::Reg(reg), offset }
    }

    /// `[param+offset]`: parameter by index, offset in bytes.
    pub fn param(index: u32, offset: i64) -> Operand {
        Operand::Addr { base: AddrBase::Param(index), offset }
    }

    /// `[array+offset]`: shared array by index, offset in bytes.
    pub fn shared(index: u32, offset: i64) -> Operand {
        Operand::Addr { base: AddrBase::Shared(index), offset }
    }

    /// Calls `visit` with every register the operand names.
    pub fn for_each_reg(&self, mut visit: impl FnMut(Reg)) {
        match self {
            Operand::Reg(reg) | Operand::NotPred(reg) | Operand::Elected(reg) => visit(*reg),
            Operand::Tensor { map, at } => {
                visit(*map);
                at.iter().copied().for_each(visit);
            }
            Operand::Vec(regs) => regs.iter().copied().for_each(visit),
            Operand::Addr { base: AddrBase::Reg(reg), .. } => visit(*reg),
            Operand::Addr { base: AddrBase::Param(_) | AddrBase::Shared(_), .. }
            | Operand::Imm(_)
            | Operand::Columns(_)
            | Operand::F32(_)
            | Operand::F64(_)
            | Operand::Special(_)
            | Operand::Label(_)
            | Operand::SharedSym(_)
            | Operand::ParamSym(_)
            | Operand::ConstSym(_)
            | Operand::Sink => {}
        }
    }
}

/// The predicate that guards an instruction: `@%p` or `@!%p`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    /// A [`Class::Pred`] register.
    pub reg: Reg,
    /// Whether the instruction runs where the predicate is false.
    pub negated: bool,
}

/// One instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct Inst {
    /// The table row.
    pub op: Op,
    /// The guard, if any.
    pub guard: Option<Guard>,
    /// Operands in PTX order, destinations first.
    pub operands: Vec<Operand>,
    /// The statement that it implements (the first one if several share it); none: it belongs to the kernel as a whole.
    pub origin: PackedOption<Stmt>,
}

impl Inst {
    /// An instruction that belongs to no statement.
    pub fn new(op: Op, guard: Option<Guard>, operands: impl Into<Vec<Operand>>) -> Inst {
        Inst { op, guard, operands: operands.into(), origin: None.into() }
    }

    /// The number of columns, if the opcode of the product has several.
    pub fn columns(&self) -> Option<u16> {
        self.operands.iter().find_map(|operand| if let Operand::Columns(n) = operand { Some(*n) } else { None })
    }
}
