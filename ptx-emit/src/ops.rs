//! The PTX instruction table.
//!
//! One row per concrete opcode form: text, operands, effect, and the first PTX version and target that have it.
//! Rows of equal shape are in one group, which reads
//!
//! ```text
//! "section" since effect [destinations] [sources] "what it does" { Variant "mnemonic", ... }
//! ```
//!
//! The groups live in one file per family under `ops/`; each file hands its rows to the next, and
//! `define_ops!` makes the enum [`Op`] and its properties from all of them. A new instruction is a row.
//!
//! Sections are those of the PTX ISA 9.1 manual. `V6_0` (PTX 6.0, sm_70) stands for "there from the start":
//! nothing older is a target of ours. Every other row's version and target are the lowest that assemble;
//! `scripts/check_ptx_table.sh` has ptxas accept each row there and refuse it one step lower.

#[macro_use]
mod integer;
#[macro_use]
mod float;
#[macro_use]
mod convert;
#[macro_use]
mod memory;
#[macro_use]
mod warp;
#[macro_use]
mod wgmma;

use crate::inst::Class;
use crate::target::{Sm, Version};
use std::fmt;
use wgmma::{BYTE_COLUMNS, FLOAT_COLUMNS};

/// The state space of a memory operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Kernel parameters, by name.
    Param,
    /// Global memory, by 64-bit register.
    Global,
    /// Shared memory of the block, by name or 32-bit register.
    Shared,
    /// Constant memory, by 64-bit register.
    Const,
}

/// The operands that are legal in one position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A register of the class.
    Reg(Class),
    /// A register of the class or a literal of its width.
    RegOrImm(Class),
    /// This many registers of the class in braces.
    Vec(u8, Class),
    /// One of these column counts of a product. The opcode has it instead of `N` (`m64nNk16`); the operand list does
    /// not.
    Columns(&'static [u16]),
    /// Accumulator registers in braces: one register of the class for this many columns.
    Sums(u8, Class),
    /// A predicate or its complement.
    PredOrNot,
    /// A literal in `min..=max`.
    Range(i64, i64),
    /// One of these literals.
    OneOf(&'static [i64]),
    /// An address in the space, of an access of this many bytes.
    Addr(Space, u32),
    /// A special register of the class.
    Special(Class),
    /// The address of a shared array.
    SharedSym,
    /// The address of a parameter.
    ParamSym,
    /// The address of a table in constant memory.
    ConstSym,
    /// A predicate after an unused value: `_|%p`.
    Elected,
    /// `_`: no value.
    Sink,
    /// A tensor map, by a 64-bit register with its generic address, and this number of box coordinates.
    Tensor(u8),
    /// A tensor map alone.
    TensorMap,
    /// A branch target.
    Label,
}

impl Kind {
    /// The kind of this operand in a product of `columns` columns.
    pub fn with_columns(self, columns: u16) -> Kind {
        match self {
            // 128 registers at most: 256 columns, two for each.
            Kind::Sums(each, class) => Kind::Vec((columns / u16::from(each)) as u8, class),
            kind => kind,
        }
    }
}

/// What an instruction does besides computing its destinations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    Pure,
    /// Reads memory.
    Read,
    /// Writes memory.
    Write,
    /// Reads and writes memory.
    ReadWrite,
    /// Synchronises or orders threads or memory, or reads state that other threads change.
    Sync,
    /// Changes the control flow.
    Control,
}

/// The operands of a row, in PTX order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Destinations: registers the instruction writes.
    pub dsts: &'static [Kind],
    /// Everything else, addresses of stores included.
    pub srcs: &'static [Kind],
}

impl Signature {
    /// The number of operands.
    pub fn arity(&self) -> usize {
        self.dsts.len() + self.srcs.len()
    }

    /// Destinations, then sources.
    pub fn kinds(&self) -> impl Iterator<Item = Kind> + '_ {
        self.dsts.iter().chain(self.srcs).copied()
    }

    /// The column counts that a product may have.
    pub fn columns(&self) -> Option<&'static [u16]> {
        self.kinds().find_map(|kind| if let Kind::Columns(counts) = kind { Some(counts) } else { None })
    }
}

/// The lowest PTX version and target of a row.
#[derive(Clone, Copy)]
struct MinVersion {
    version: Version,
    sm: Sm,
}

const fn since(major: u8, minor: u8, sm: Sm) -> MinVersion {
    MinVersion { version: (major, minor), sm }
}

/// One row.
struct Row {
    mnemonic: &'static str,
    signature: Signature,
    since: MinVersion,
    effect: Effect,
    section: &'static str,
    summary: &'static str,
}

// Operand kinds under the short names that the rows use. `B32` is a register, `B32I` a register or a literal.
const P: Kind = Kind::Reg(Class::Pred);
const B16: Kind = Kind::Reg(Class::B16);
const B32: Kind = Kind::Reg(Class::B32);
const B64: Kind = Kind::Reg(Class::B64);
const F32: Kind = Kind::Reg(Class::F32);
const F64: Kind = Kind::Reg(Class::F64);
const B16I: Kind = Kind::RegOrImm(Class::B16);
const B32I: Kind = Kind::RegOrImm(Class::B32);
const B64I: Kind = Kind::RegOrImm(Class::B64);
const F32I: Kind = Kind::RegOrImm(Class::F32);
const F64I: Kind = Kind::RegOrImm(Class::F64);
const PN: Kind = Kind::PredOrNot;
const LABEL: Kind = Kind::Label;
const PARAM_SYM: Kind = Kind::ParamSym;
const ELECTED: Kind = Kind::Elected;
const SINK: Kind = Kind::Sink;
const TENSOR_MAP: Kind = Kind::TensorMap;
/// Register counts for `setmaxnreg`: 24 to 256 in steps of 8.
const REGISTER_COUNTS: [i64; 30] = {
    let mut counts = [0; 30];
    let mut i = 0;
    while i < counts.len() {
        counts[i] = 24 + 8 * i as i64;
        i += 1;
    }
    counts
};
const SHARED_SYM: Kind = Kind::SharedSym;
const CONST_SYM: Kind = Kind::ConstSym;
const SPECIAL32: Kind = Kind::Special(Class::B32);
const SPECIAL64: Kind = Kind::Special(Class::B64);

const fn vec(lanes: u8, element: Kind) -> Kind {
    match element {
        Kind::Reg(class) => Kind::Vec(lanes, class),
        _ => panic!("a vector has register elements"),
    }
}
const fn columns(counts: &'static [u16]) -> Kind {
    Kind::Columns(counts)
}
const fn sums(columns: u8, element: Kind) -> Kind {
    match element {
        Kind::Reg(class) => Kind::Sums(columns, class),
        _ => panic!("sums are in registers"),
    }
}
const fn range(min: i64, max: i64) -> Kind {
    Kind::Range(min, max)
}
const fn one_of(values: &'static [i64]) -> Kind {
    Kind::OneOf(values)
}
const fn tensor(rank: u8) -> Kind {
    Kind::Tensor(rank)
}
const fn param(bytes: u32) -> Kind {
    Kind::Addr(Space::Param, bytes)
}
const fn global(bytes: u32) -> Kind {
    Kind::Addr(Space::Global, bytes)
}
const fn shared(bytes: u32) -> Kind {
    Kind::Addr(Space::Shared, bytes)
}
const fn constant(bytes: u32) -> Kind {
    Kind::Addr(Space::Const, bytes)
}

const V6_0: MinVersion = since(6, 0, Sm::plain(70));
const V6_2: MinVersion = since(6, 2, Sm::plain(70));
const V6_3: MinVersion = since(6, 3, Sm::plain(70));
const V6_4: MinVersion = since(6, 4, Sm::plain(70));
const V6_5: MinVersion = since(6, 5, Sm::plain(70));
const V6_5_SM75: MinVersion = since(6, 5, Sm::plain(75));
const V7_0_SM75: MinVersion = since(7, 0, Sm::plain(75));
const V7_0_SM80: MinVersion = since(7, 0, Sm::plain(80));
const V7_1_SM80: MinVersion = since(7, 1, Sm::plain(80));
const V7_7: MinVersion = since(7, 7, Sm::plain(70));
const V7_8_SM90: MinVersion = since(7, 8, Sm::plain(90));
const V8_0_SM90: MinVersion = since(8, 0, Sm::plain(90));
const V8_0_SM90A: MinVersion = since(8, 0, Sm::exact(90));
const V8_1_SM89: MinVersion = since(8, 1, Sm::plain(89));
const V8_4_SM89: MinVersion = since(8, 4, Sm::plain(89));
const V8_4_SM90A: MinVersion = since(8, 4, Sm::exact(90));
const V8_7_SM89: MinVersion = since(8, 7, Sm::plain(89));
const V8_1_SM90: MinVersion = since(8, 1, Sm::plain(90));

macro_rules! define_ops {
    ([$(
        $section:literal $since:ident $effect:ident $dsts:tt $srcs:tt $summary:literal {
            $($variant:ident $mnemonic:literal),* $(,)?
        }
    )*]) => {
        /// A row of the instruction table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Op {
            $($(
                #[doc = concat!("`", $mnemonic, "`: ", $summary, " (PTX ISA ", $section, ").")]
                $variant,
            )*)*
        }

        impl Op {
            /// Every row, in table order.
            pub const ALL: &[Op] = &[$($(Op::$variant,)*)*];
        }

        /// The rows, indexed by [`Op`].
        static ROWS: &[Row] = &[$($(
            Row {
                mnemonic: $mnemonic,
                signature: Signature { dsts: &$dsts, srcs: &$srcs },
                since: $since,
                effect: Effect::$effect,
                section: $section,
                summary: $summary,
            },
        )*)*];
    };
}

integer_rows! { [] float_rows convert_rows memory_rows warp_rows wgmma_rows define_ops }

impl Op {
    fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// The opcode with all its modifiers, with an `N` for columns that are an operand (`m64nNk16`). Forms that differ only in operands share it.
    pub fn mnemonic(self) -> &'static str {
        self.row().mnemonic
    }

    /// The operands it takes.
    pub fn signature(self) -> Signature {
        self.row().signature
    }

    /// The first PTX version that has it; (6, 0) means that version or an earlier one.
    pub fn min_version(self) -> Version {
        self.row().since.version
    }

    /// The first target that has it; `sm_70` means that target or an earlier one.
    pub fn min_sm(self) -> Sm {
        self.row().since.sm
    }

    /// Its section in the PTX ISA 9.1 manual.
    pub fn section(self) -> &'static str {
        self.row().section
    }

    /// What it does besides computing its destinations.
    pub fn effect(self) -> Effect {
        self.row().effect
    }

    /// What it does, in a phrase.
    pub fn summary(self) -> &'static str {
        self.row().summary
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.mnemonic())
    }
}
