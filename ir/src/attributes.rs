//! What statements say about *how*: attributes of copies, plans of statements, operations on channels and signals.

use crate::combining::Combining;
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

    /// Whether threads address the elements, each those that a layout says, and check their bounds.
    pub fn is_by_threads(&self) -> bool {
        self.mechanism.is_by_threads()
    }

    /// Whether elements may land, or be read, after the copy.
    pub fn lands_later(&self) -> bool {
        self.mechanism.lands_later()
    }

    /// Of a copy in aligned words that are shifted into place: how many elements are known to be aligned.
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

/// How a copy is done. Everything is optional; what is absent is decided by a pass or by the plain default.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct CopyAttrs {
    /// What moves the elements.
    pub mechanism: Mechanism,
    /// Elements per memory access: `vec 8`.
    pub vec: Option<u32>,
    /// Which thread moves which element, for copies between two memories: `threads LAYOUT`.
    pub threads: Option<RegLayout>,
    /// Dimensions of the global side whose bounds are checked; `None`: all of them. `check ()` promises that none is
    /// needed.
    pub check: Option<Vec<u32>>,
    /// What elements of the source outside the bounds read as; `None`: zero. `fill -inf`.
    pub fill: Option<Literal>,
    /// Elements that the bounds mask out keep what the destination registers held instead of becoming zero.
    pub keep: bool,
    /// Where this scalar condition does not hold, nothing is inside the bounds: `when k < K`.
    pub when: Option<Expr>,
    /// Combine with what is there, atomically: `add`.
    pub reduce: Option<Combining>,
    /// The buffer, or a window of it, that what was there goes to: `add old s`. Elements outside the bounds leave zero there.
    pub old: Option<Expr>,
    /// No other store of the launch is to the elements that it stores to, nor itself another time: `apart`.
    pub apart: bool,
}

/// The schedule of a statement: `@(producer, stage 1, cycle 512) s = ..`. It changes when a statement runs, never what it computes.
///
/// A loop whose statements have stages is software-pipelined. With `S` stages, iteration `i` of the expanded loop runs the statements of
/// stage `s` of the original iteration `i - s`, in the order of their cycles. In front of it stands the prologue, after it the drain.
///
/// An open loop, `@(open) for ..`, has no drain: it runs until its last stage is done, and its other stages, which move tiles, run on past the end, where they read nothing.
///
/// The first tile of a ragged loop, `@(ragged) for ..`, is the one with fewer elements than a step, instead of the last.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct StmtPlan {
    /// The warps of the producer role run it; else those of the consumer role do.
    pub producer: bool,
    /// The pipeline stage: how many iterations of the expanded loop later than stage 0 it runs.
    pub stage: Option<u32>,
    /// When it is issued, in clocks from the beginning of an iteration of the expanded loop.
    pub cycle: Option<u32>,
    /// The warpgroups of the consumer run it one after the other: while one computes, the other's products have the tensor cores.
    pub ordered: bool,
    /// Of a loop: the stages in front of the last run on past its end.
    pub open: bool,
    /// Of a loop over a reduction: the first tile is the one with fewer elements than a step.
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

/// What is done to a signal between blocks; see [`crate::types::Scratch::Signals`].
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum SignalOp {
    /// It goes up once all threads of the block (of the role) have come here: a block that awaits it sees their writes.
    Raise,
    /// All threads of the block (of the role) wait until it is up, and it goes down.
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
