//! Requirements of a kernel on its generated code: `require no spills, wgmma, registers <= 168`.
//!
//! Parser, printer and the driver, which checks the code, take the spelling from this table alone.

use crate::diag::Span;
use std::fmt;

/// A demand, and where it is written.
#[derive(Clone, Copy, Debug)]
pub struct Demand {
    /// What is demanded.
    pub what: What,
    /// Where; none: on the command line.
    pub span: Span,
}

/// A requirement.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum What {
    /// A property that code has or has not.
    Has(Property),
    /// A figure that is at most this.
    AtMost(Figure, f64),
    /// A figure that is at least this.
    AtLeast(Figure, f64),
}

/// A property of code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Property {
    /// The assembler reports no spills.
    NoSpills,
    /// Every access to shared memory takes the minimum number of wavefronts for its width.
    NoBankConflicts,
    /// Every product is one of warpgroups (`wgmma`).
    Wgmma,
    /// Every product runs on tensor cores.
    TensorCores,
    /// Loops load tiles into shared memory only by TMA.
    Tma,
    /// Loads run ahead of their use: a channel has two slots or more.
    Pipelined,
    /// Every access to global memory is 16 bytes wide.
    Vectorised,
    /// Accesses of warps to global memory use all bytes of the sectors that they touch.
    Coalesced,
}

/// A figure of code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Figure {
    /// Registers per thread, as reported by the assembler.
    Registers,
    /// Bytes of shared memory of a block.
    SharedMemory,
    /// Slots of the deepest channel.
    Stages,
    /// Blocks that are resident on a multiprocessor, by registers and shared memory of the code.
    Resident,
    /// The share of the predicted time in which the busiest of tensor cores, memory and caches works.
    Roofline,
    /// Bytes of memory traffic that the model predicts, divided by those of reading and writing each tensor once.
    Bytes,
    /// The share of the work that is beyond the edges of tensors, because tiles do not divide sizes.
    Padding,
}

/// Spellings of properties.
pub const PROPERTIES: &[(&str, Property)] = &[
    ("no spills", Property::NoSpills),
    ("no bank conflicts", Property::NoBankConflicts),
    ("wgmma", Property::Wgmma),
    ("tensor cores", Property::TensorCores),
    ("tma", Property::Tma),
    ("pipelined", Property::Pipelined),
    ("vectorised", Property::Vectorised),
    ("coalesced", Property::Coalesced),
];

/// Spellings of figures, and of the unit after their numbers.
pub const FIGURES: &[(&str, Figure, &str)] = &[
    ("registers", Figure::Registers, ""),
    ("shared memory", Figure::SharedMemory, ""),
    ("stages", Figure::Stages, ""),
    ("resident", Figure::Resident, ""),
    ("predicted", Figure::Roofline, "roofline"),
    ("bytes", Figure::Bytes, "minimum"),
    ("padding", Figure::Padding, ""),
];

impl What {
    /// Whether only an assembler can tell.
    pub fn needs_assembler(self) -> bool {
        matches!(
            self,
            What::Has(Property::NoSpills) | What::AtMost(Figure::Registers, _) | What::AtLeast(Figure::Registers, _)
        )
    }
}

impl What {
    /// Whether registers have a part in it: judged when the code is assembled, or by an estimate.
    pub fn is_of_registers(self) -> bool {
        self.needs_assembler() || matches!(self, What::AtMost(Figure::Resident, _) | What::AtLeast(Figure::Resident, _))
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (figure, sign, number) = match *self {
            What::Has(property) => {
                let (name, _) = PROPERTIES.iter().find(|(_, p)| *p == property).ok_or(fmt::Error)?;
                return f.write_str(name);
            }
            What::AtMost(figure, x) => (figure, "<=", x),
            What::AtLeast(figure, x) => (figure, ">=", x),
        };
        let (name, _, unit) = FIGURES.iter().find(|(_, m, _)| *m == figure).ok_or(fmt::Error)?;
        // As a number that parses, however large.
        if number.fract() == 0.0 && number < 1e15 {
            write!(f, "{name} {sign} {number}")?;
        } else {
            write!(f, "{name} {sign} {number:?}")?;
        }
        if unit.is_empty() { Ok(()) } else { write!(f, " {unit}") }
    }
}

impl fmt::Display for Demand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.what.fmt(f)
    }
}
