//! Tiles that exceed the registers of a thread, so that the assembler spills.

use crate::Cx;
use crate::registers::overhead::{LEAST, reasons};
use crate::registers::pressure::{PeakPressure, peak_of_role};
use crate::registers::thread::contexts;
use std::collections::BTreeMap;
use tilec_ir::codes;
use tilec_ir::deferred_lets::Deferred;
use tilec_ir::diag::Diagnostic;
use tilec_ir::kernel::Kernel;

/// Warns in each role at the statement with the highest pressure, if that is too high.
pub(super) fn warn(k: &Kernel, cx: &mut Cx<'_>) {
    let deferred = Deferred::of(k);
    for context in contexts(k) {
        let Some(PeakPressure { at, tiles, other: beside, code }) =
            peak_of_role(k, &deferred, &context, cx.options.target)
        else {
            continue;
        };
        let has = context.has;
        if tiles + beside <= has {
            continue;
        }
        let message = match tiles + LEAST > has {
            true => format!("the register tiles of a thread need {tiles} registers here; a thread has {has} in total"),
            false => format!(
                "the register tiles of a thread need {tiles} registers here, operands and addresses about {beside}; a thread has {has} in total"
            ),
        };
        let mut d = Diagnostic::warning(codes::SPILLED, k.stmt_spans[at], message);
        if tiles + LEAST <= has {
            let reasons: Vec<String> = reasons(&code).map(|(what, n)| format!("{what} ({n})")).collect();
            d = d.with_note(format!("the others hold: {}", reasons.join(", ")));
        }
        d = d.with_note(
            "the assembler spills the rest to local memory; smaller tiles, or more threads, leave more registers",
        );
        cx.warn(padded(k).into_iter().fold(d, Diagnostic::with_note));
    }
}

/// What says that an extent counts as the next power of two, for each extent that does.
fn padded(k: &Kernel) -> Vec<String> {
    let mut names: BTreeMap<(u64, u64), Vec<String>> = BTreeMap::new();
    for data in k.values.values() {
        for extents in &data.padded {
            names.entry(*extents).or_default().push(format!("`{}`", data.name));
        }
    }
    let note = |((from, to), names): ((u64, u64), Vec<String>)| {
        format!(
            "extent {from} counts as {to} ({}): extents that threads or warps divide are powers of two",
            names.join(", ")
        )
    };
    names.into_iter().map(note).collect()
}
