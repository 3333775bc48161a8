//! Ways out: what would have a demand hold, and how that can be tried.

use tilec_ir::diag::Span;
use tilec_ir::types::{Elem, Order};

/// A way out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct WayOut {
    /// The advice.
    pub(crate) text: String,
    /// How it can be tried.
    pub(crate) by: By,
}

/// How a way out is followed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum By {
    /// Somebody has to rewrite the program, or to launch it in another way.
    Hand,
    /// It names a question that has the way out.
    Question,
    /// An item of the schedule with this value.
    Schedule(&'static str, u64),
    /// A written channel with so many slots.
    Slots(String, u64),
    /// So many blocks on a multiprocessor, by whatever means.
    Resident(u64),
    /// The loop around the copy at this place takes steps of so many elements.
    Step(Span, u64),
    /// A tensor is declared in this order.
    Order(String, Order),
    /// Operands of products of one type are declared of another one.
    Elements(Elem, Elem),
    /// Loops load to shared memory, and not straight to registers.
    Buffer,
    /// Other values of parameters, which `tilec why` tries itself.
    Parameters,
}

impl WayOut {
    pub(crate) fn new(text: impl Into<String>, by: By) -> WayOut {
        WayOut { text: text.into(), by }
    }

    /// One that takes a person.
    pub(crate) fn by_hand(text: impl Into<String>) -> WayOut {
        WayOut::new(text, By::Hand)
    }
}
