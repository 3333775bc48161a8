//! Messages that several checks of roles use.

use tilec_ir::codes;
use tilec_ir::diag::Diagnostic;
use tilec_ir::entities::{Stmt, Value};
use tilec_ir::kernel::{Kernel, Slot, ValueDef};

pub(super) fn took(slot: Slot) -> &'static str {
    match slot {
        Slot::Put => "acquired",
        Slot::Get => "waited for",
    }
}

/// The statement that ends the use of a slot, for messages.
pub(super) fn ended(slot: Slot) -> &'static str {
    match slot {
        Slot::Put => "published",
        Slot::Get => "released",
    }
}

pub(super) fn fault(k: &Kernel, s: Stmt, message: String) -> Diagnostic {
    Diagnostic::error(codes::HAZARD, k.stmt_spans[s], message)
        .with_note("a producer acquires, fills and publishes a slot (`acquire` .. `publish`); a consumer waits for it, reads and releases it (`wait` .. `release`)")
}

/// The slots of a channel.
pub(super) fn slots(k: &Kernel, channel: Value) -> Option<usize> {
    match k.values[channel].def {
        ValueDef::Channel { slots, .. } => k.as_int(slots).and_then(|n| usize::try_from(n).ok()),
        _ => None,
    }
}
