//! mbarrier instructions as decoded.

use crate::program::operand::{Addr, Area};
use crate::program::types::R;

/// What an instruction does with an mbarrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Init {
        count: R,
    },
    Inval,
    ExpectTx {
        bytes: R,
    },
    CompleteTx {
        bytes: R,
    },
    Arrive {
        state: R,
        count: Option<R>,
        expect: Option<R>,
        drop: bool,
        incomplete: bool,
    },
    /// Sets `p` to whether the phase has completed: that of a state token, or of a parity.
    Wait {
        p: R,
        state: R,
        parity: bool,
    },
    /// `cp.async.mbarrier.arrive`.
    Copies {
        counted: bool,
    },
}

/// One of the instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MBar {
    pub(crate) what: What,
    pub(crate) area: Area,
    pub(crate) addr: Addr,
    /// `.relaxed`: neither releases nor acquires.
    pub(crate) relaxed: bool,
}
