//! The error about a register tile that no thread can hold.
//!
//! A tile of the source is named. A tile that the compiler made is not in the source: then the place is the statement
//! for which it was made. A note has the name of the tile in the printed program.

use tilec_ir::codes;
use tilec_ir::diag::Diagnostic;
use tilec_ir::entities::Value;
use tilec_ir::kernel::{ExprData, Kernel};
use tilec_ir::target::{MAX_THREADS, REGISTERS_PER_THREAD};
use tilec_ir::types::Elem;
use tilec_ir::typing::resolve_view;

/// The error for a tile of these extents, which takes `words` registers of each of `threads` threads.
pub(super) fn error(k: &Kernel, value: Value, (shape, elem): (&[u64], Elem), words: u64, threads: u32) -> Diagnostic {
    let data = &k.values[value];
    let extents = shape.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    let what = if data.declared { format!("`{}`", data.name) } else { "a tile for this statement".to_owned() };
    let message = format!("{what} takes {words} registers of each thread, which has {REGISTERS_PER_THREAD}");
    let mut d = Diagnostic::error(codes::REGISTER_LIMIT, data.span, message);
    if !data.declared {
        let (name, elem) = (&data.name, elem.name());
        d = d.with_note(format!(
            "the compiler makes it: `{name}`, reg {elem}[{extents}] in the text of `--print-after assign-layouts`"
        ));
    }
    // The number of threads with which the tile takes half of a thread's registers. Without a written number, and
    // without products, `assign-layouts` has tried all.
    let item = k.schedule_item("threads");
    let multiplies = || k.exprs.values().any(|e| matches!(e, ExprData::Mma(_)));
    let more = u64::from(threads) * 2 * words.div_ceil(u64::from(REGISTERS_PER_THREAD));
    let more = more.next_power_of_two().min(MAX_THREADS.into());
    d = match item {
        _ if more <= u64::from(threads) || item.is_none() && !multiplies() => d.with_note("use a smaller tile"),
        Some(item) => d
            .with_note(format!("use a smaller tile, or more threads: `schedule {{ threads {more} }}`"))
            .with_fix(item, format!(" threads {more}")),
        None => d.with_note(format!("use a smaller tile, or more threads: `schedule {{ threads {more} }}`")),
    };
    // More threads do not help if each thread needs a whole row.
    if !is_operand(k, value) {
        return d;
    }
    let ty = format!("smem {}[{extents}]", elem.name());
    d.with_note(format!(
        "lanes repeat elements of a product's operand: it may be in shared memory, copied to `let s = {ty}`"
    ))
}

/// Whether a tile is an operand of a product.
fn is_operand(k: &Kernel, v: Value) -> bool {
    let takes = |e| resolve_view(k, e).is_some_and(|view| view.base == v);
    k.exprs.values().any(|e| matches!(e, ExprData::Mma(mma) if takes(mma.a) || takes(mma.b)))
}
