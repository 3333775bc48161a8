//! Instructions on mbarriers, as they are written.

use crate::program::operand::{Addr, Area};
use crate::program::types::R;

/// What an instruction does with an object.
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
    /// `p` tells whether the phase has completed: the one a state is of, or the one of a parity.
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
    /// `.relaxed`: nothing is published or learnt.
    pub(crate) relaxed: bool,
}
