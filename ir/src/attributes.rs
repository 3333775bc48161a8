//! Attributes of statements that describe how they run: attributes of copies, plans of statements, operations on
//! channels and signals.

use crate::atomics::Combining;
use crate::entities::Expr;
use crate::layout::RegLayout;
use crate::literal::Literal;
use crate::mechanism::Mechanism;

impl CopyAttrs {
    /// Those of a copy of a whole tile in fragment order, inside of its memory.
    pub fn of_fragment() -> CopyAttrs {
        CopyAttrs { mechanism: Mechanism::Fragment, check: Some(Vec::new()), ..CopyAttrs::default() }
    }

    /// Whether threads themselves combine with what is there: of what TMA combines no thread sees it.
    pub fn combined_by_threads(&self) -> bool {
        self.reduce.is_some() && self.is_by_threads()
    }

    /// The attributes of a copy by TMA.
    pub fn tensor() -> CopyAttrs {
        CopyAttrs { mechanism: Mechanism::Tensor { multicast: false }, ..CopyAttrs::default() }
    }

    /// Whether threads access the elements, each thread those of its layout, and check bounds.
    pub fn is_by_threads(&self) -> bool {
        self.mechanism.is_by_threads()
    }

    /// Whether elements may land, or be read, after the copy.
    pub fn lands_later(&self) -> bool {
        self.mechanism.lands_later()
    }

    /// For a copy in aligned words that are shifted into place: the number of elements to which the source is known to
    /// be aligned.
    pub fn unaligned(&self) -> Option<u32> {
        match self.mechanism {
            Mechanism::Words { aligned } => Some(aligned),
            _ => None,
        }
    }

    /// Whether it is a copy of matrices.
    pub fn is_matrix(&self) -> bool {
        self.mechanism == Mechanism::Matrices
    }

    /// Whether it is one by `cp.async`.
    pub fn is_asynchronous(&self) -> bool {
        self.mechanism == Mechanism::Asynchronous
    }

    /// Whether it is one by TMA.
    pub fn is_tensor(&self) -> bool {
        matches!(self.mechanism, Mechanism::Tensor { .. })
    }

    /// Whether several blocks of a cluster get it.
    pub fn is_multicast(&self) -> bool {
        self.mechanism == Mechanism::Tensor { multicast: true }
    }

    /// Whether the memory holds elements as registers do.
    pub fn is_fragment(&self) -> bool {
        self.mechanism == Mechanism::Fragment
    }

    /// Whether nothing is copied.
    pub fn is_prefetch(&self) -> bool {
        self.mechanism == Mechanism::Prefetch
    }
}

/// Another tile that has elements of a window.
#[derive(Clone, PartialEq, Debug)]
pub struct HeldElements {
    /// The tile.
    pub tile: Expr,
    /// What is added to the index of an element of the window, for each dimension.
    pub offset: Vec<i64>,
}

/// How a copy is done. All fields are optional; a pass or a plain default decides what is absent.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct CopyAttrs {
    /// What moves the elements.
    pub mechanism: Mechanism,
    /// Elements per memory access: `vec 8`.
    pub vec: Option<u32>,
    /// Which thread moves which element, for copies between two memories: `threads LAYOUT`.
    pub threads: Option<RegLayout>,
    /// Dimensions of the global side whose bounds are checked; `None`: all. `check ()` promises that none needs a
    /// check.
    pub check: Option<Vec<u32>>,
    /// The value of source elements outside the bounds; `None`: zero. `fill -inf`.
    pub fill: Option<Literal>,
    /// Elements that the bounds mask out keep what the destination registers held instead of becoming zero.
    pub keep: bool,
    /// If this scalar condition is false, all elements count as outside the bounds: `when k < K`.
    pub when: Option<Expr>,
    /// Combine with what is there, atomically: `add`.
    pub reduce: Option<Combining>,
    /// The buffer, or a window of it, that receives the old values: `add old s`. It receives zero for elements outside
    /// the bounds.
    pub old: Option<Expr>,
    /// No other store of the launch is to the elements that it stores to, nor itself another time: `apart`.
    pub apart: bool,
    /// Tiles from which threads take elements instead of loading them: `held x (-1, 0)`.
    pub held: Vec<HeldElements>,
}

/// The schedule of a statement: `@(producer, stage 1, cycle 512) s = ..`. It changes when a statement runs, never what
/// it computes.
///
/// A loop whose statements have stages is software-pipelined. With `S` stages, iteration `i` of the expanded loop runs
/// the statements of stage `s` of the original iteration `i - s`, in the order of their cycles. A prologue precedes it
/// and an epilogue drains it.
///
/// An open loop, `@(open) for ..`, has no epilogue: it runs until its last stage is done. Its other stages, which load
/// tiles, run past the end, where they read nothing.
///
/// In a ragged loop, `@(ragged) for ..`, the first tile is the one with fewer elements than a step, instead of the
/// last.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct StmtPlan {
    /// The warps of the producer role run it; else those of the consumer role.
    pub producer: bool,
    /// The pipeline stage: how many iterations of the expanded loop later than stage 0 it runs.
    pub stage: Option<u32>,
    /// When it is issued, in clocks from the beginning of an iteration of the expanded loop.
    pub cycle: Option<u32>,
    /// The consumer warpgroups run it one after the other: while one computes, the tensor cores execute the other's
    /// products.
    pub ordered: bool,
    /// For a loop: its stages before the last run past its end.
    pub open: bool,
    /// For a loop over a reduction: the first tile is the one with fewer elements than a step.
    pub ragged: bool,
}

impl StmtPlan {
    /// Whether something is decided.
    pub fn is_some(&self) -> bool {
        *self != StmtPlan::default()
    }
}

/// A channel operation; see [`crate::kernel::ValueDef::Channel`].
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ChannelOp {
    /// Producer: the next slot is free for writing.
    Acquire,
    /// Producer: the slot is full.
    Publish,
    /// Consumer: the next slot is full.
    Wait,
    /// Consumer: the slot is free again.
    Release,
}

impl ChannelOp {
    /// Every channel operation.
    pub const ALL: &'static [ChannelOp] =
        &[ChannelOp::Acquire, ChannelOp::Publish, ChannelOp::Wait, ChannelOp::Release];

    /// The word of the text form.
    pub fn token(self) -> &'static str {
        match self {
            ChannelOp::Acquire => "acquire",
            ChannelOp::Publish => "publish",
            ChannelOp::Wait => "wait",
            ChannelOp::Release => "release",
        }
    }
}

/// An operation on a signal between blocks; see [`crate::types::Scratch::Signals`].
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum SignalOp {
    /// Sets the signal once all threads of the block (of the role) have arrived: a block that awaits it sees their
    /// writes.
    Raise,
    /// All threads of the block (of the role) wait until the signal is set, and reset it.
    Await,
}

impl SignalOp {
    /// The word of the text form.
    pub fn token(self) -> &'static str {
        match self {
            SignalOp::Raise => "signal",
            SignalOp::Await => "await",
        }
    }
}
