//! Bank conflicts in buffers that no line of the source names: the line for which the compiler made each, why, and what would change it.

use super::advice::Advice;
use super::answer::Known;
use super::said::places_of;
use super::ways_out;
use crate::compile::CompiledKernel;
use crate::compile::unrepeated::unrepeated;
use tilec_ir::diag::Span;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData};
use tilec_ir::print::print_expr;
use tilec_ir::typing::resolve_view;

/// What a buffer is for.
enum Purpose {
    /// A TMA store reads it: the tensor.
    Stored(String),
    /// Warps pass partial results of a reduction.
    Parts(String),
    /// Threads exchange elements: what is stored to it, and what is loaded from it.
    Exchange(String, String),
}

/// What there is to say of such buffers.
#[derive(Default)]
pub(super) struct Made {
    pub(super) facts: Vec<String>,
    pub(super) advice: Vec<Advice>,
}

/// Buffers with conflicts that the program does not name.
pub(super) fn by_passes(known: &Known<'_>, kernel: &CompiledKernel) -> Made {
    let named = |name: &str| kernel.tile.specialized.values.values().any(|v| v.name == name);
    let mut made = Made::default();
    for s in kernel.lowered.shared.iter().filter(|s| s.conflicts() > 0 && !named(&s.buffer)) {
        let (fact, advice) = about(known, kernel, &s.buffer, s.span);
        made.facts.push(fact);
        made.advice.extend(advice);
    }
    unrepeated(&mut made.facts);
    if !made.facts.is_empty() && known.options.disabled.contains("swizzle") {
        made.advice.push(Advice::by_hand("`swizzle` is switched off (`--disable-pass`)"));
    }
    made
}

/// Why there is a buffer, where, and what would change it.
fn about(known: &Known<'_>, kernel: &CompiledKernel, buffer: &str, span: Span) -> (String, Option<Advice>) {
    let (k, written) = (&kernel.tile.kernel, &kernel.tile.specialized);
    let line = places_of(known, &[(span, String::new())]).concat();
    let line = line.trim_end_matches(" ()");
    let own = k.values.keys().find(|&v| k.values[v].name == buffer);
    let Some(purpose) = own.and_then(|v| purpose(k, written, v)) else {
        return (format!("the compiler made `{buffer}` for {line}"), None);
    };
    let (what, advice) = match purpose {
        Purpose::Stored(tensor) => (
            format!("a TMA store to `{tensor}` reads it, so rows of its box decide the layout"),
            ways_out::of_item(
                known,
                kernel,
                ("stage_stores", 0),
                "`stage_stores 0` in the schedule has threads store from registers",
            ),
        ),
        Purpose::Parts(reduction) => (
            format!("warps that share rows pass partial results of `{reduction}`"),
            Advice::by_hand("fewer `threads`, or tiles with more rows and fewer columns, have fewer warps for a row"),
        ),
        Purpose::Exchange(from, to) => (
            format!("{from} and {to} have different register layouts, and threads exchange elements"),
            Advice::by_hand(
                "write one `layout` on both tiles, or a buffer of your own between them (`let s = smem ..`), whose layout may be written; other `threads` or extents change the layouts, too",
            ),
        ),
    };
    (format!("the compiler made `{buffer}` for {line}: {what}"), Some(advice))
}

/// What a buffer of the last program is for, in names of the program as it is `written`.
fn purpose(k: &Kernel, written: &Kernel, v: Value) -> Option<Purpose> {
    let base = |e: Expr| resolve_view(k, e).map(|view| view.base);
    let (mut from, mut to, mut tensor) = (None, None, None);
    k.walk(k.body, &mut |k, _, s| {
        let StmtData::Copy { src, dst, attrs } = &k.stmts[s] else { return };
        if base(*dst) == Some(v) {
            from = from.or(Some(*src));
        }
        if base(*src) == Some(v) {
            to = to.or(Some(*dst));
            if attrs.is_tensor() {
                tensor = tensor.or(base(*dst));
            }
        }
    });
    if let Some(tensor) = tensor {
        return Some(Purpose::Stored(k.values[tensor].name.clone()));
    }
    let (from, to) = (from?, to?);
    let parts = base(from).and_then(|tile| reduction_of(k, tile));
    Some(match parts {
        Some(reduction) => Purpose::Parts(reduction),
        None => {
            // Tiles of passes have no name that anybody knows.
            let called = |e: Expr, other: &str| match base(e).map(|v| &k.values[v].name) {
                Some(name) if written.values.values().all(|v| v.name != *name) => other.to_owned(),
                _ => format!("`{}`", print_expr(k, e)),
            };
            Purpose::Exchange(called(from, "what is computed"), called(to, "what reads it"))
        }
    })
}

/// The reduction of whose parts a tile has the results.
fn reduction_of(k: &Kernel, tile: Value) -> Option<String> {
    let of = |e: Expr| matches!(k.exprs[e], ExprData::Reduce { parts, .. } if parts != 0).then(|| print_expr(k, e));
    k.statement_data().find_map(|s| match s {
        StmtData::Var { value, init: Some(init) } if *value == tile => of(*init),
        StmtData::Assign { dst, src } if *dst == tile => of(*src),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::{CompileOptions, compile};
    use tilec_ir::target::Target;

    #[test]
    fn partial_results_of_warps_are_named_by_their_reduction() {
        let source = include_str!("../../../examples/softmax_rows.tile");
        let program = compile(source, &CompileOptions { target: Target::Sm80, ..CompileOptions::default() });
        let kernel = program.expect("compiles").kernels.remove(0);
        let k = &kernel.tile.kernel;
        let buffer = k.values.keys().find(|&v| k.values[v].name == "top_parts_shared").expect("a buffer of parts");
        let Some(Purpose::Parts(reduction)) = purpose(k, &kernel.tile.specialized, buffer) else { panic!("parts") };
        assert!(reduction.starts_with("maximum(x, 1, parts"), "{reduction}");
    }
}
