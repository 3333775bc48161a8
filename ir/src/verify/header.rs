//! Parameters, preconditions, grid and schedule: rules 4 to 8.

use super::tables;
use crate::cluster::{MAX_BLOCKS, MAX_BLOCKS_ASKED};
use crate::codes;
use crate::diag::Diagnostic;
use crate::entities::{Expr, Value};
use crate::fix_locations::FixLocation;
use crate::kernel::{ExprData, Kernel, ValueDef};
use crate::literal::whole_text;
use crate::numerics::cast::int_format;
use crate::ops::Op;
use crate::padded;
use crate::roles::MAX_OVERLAP;
use crate::target::MAX_THREADS;
use crate::types::{DimStride, Elem, ElemRef, Mode, Scratch, Strides, TensorTy};
use crate::typing::{Type, const_int, elem_name, factors};
use crate::verify::context::{Cx, is_launch};
use crate::verify::structure::{mentions, schedule_items};

/// Maximum number of dimensions of a tensor or a tile.
pub(super) const MAX_RANK: usize = 5;
/// Exclusive upper bound of run-time extents.
const MAX_EXTENT: i64 = (1 << 31) - 1;
/// Maximum number of padding lines in front of a tensor.
const MAX_PADDING: i64 = 1 << 30;
/// Grid axes of a launch (CUDA programming guide, "Thread Hierarchy").
const MAX_AXES: usize = 3;
const LAUNCH: &str = "sizes, strides, compile-time parameters and integers";

pub(super) fn check(cx: &mut Cx<'_, '_>) {
    let k = cx.k;
    for &v in &k.params {
        let data = &k.values[v];
        match &data.def {
            ValueDef::Tensor(t) => tensor(cx, &data.name, data.span, t),
            ValueDef::Scalar { elem, default: Some(e) } => default(cx, *elem, *e),
            ValueDef::Table(t) => tables::check(cx, &data.name, data.span, t),
            _ => {}
        }
    }
    tables::total_size(cx);
    k.requires.iter().for_each(|&e| precondition(cx, e));
    if k.grid.len() > MAX_AXES {
        let message = format!("a grid has at most {MAX_AXES} axes, found {}", k.grid.len());
        let span = k.values[k.grid[MAX_AXES].index].span;
        cx.report(
            Diagnostic::error(codes::BAD_GRID, span, message)
                .with_note("combine two axes: `x: M * N`, and `x / N` and `x % N` in the body"),
        );
    }
    for axis in &k.grid {
        cx.index_over(axis.extent, LAUNCH, is_launch);
        positive(cx, codes::BAD_GRID, "a grid extent", axis.extent, MAX_EXTENT);
    }
    schedule(cx);
}

fn positive(cx: &mut Cx<'_, '_>, code: crate::diag::Code, what: &str, e: Expr, max: i64) {
    if let Some(x) = const_int(cx.k, e)
        && !(1..=max).contains(&x)
    {
        let message = format!("{what} must be from 1 to {max}, found {x}");
        let d = Diagnostic::error(code, cx.k.expr_spans[e], message);
        cx.report(cx.with_number(d, e, x.clamp(1, max)));
    }
}

fn tensor(cx: &mut Cx<'_, '_>, name: &str, span: crate::diag::Span, t: &TensorTy) {
    // A broadcast dimension has no addresses.
    let rank = t.shape.len() - t.repeats.len();
    if !(1..=MAX_RANK).contains(&rank) {
        let message = format!("tensor `{name}` has {rank} dimensions, expected 1 to {MAX_RANK}");
        cx.report(
            Diagnostic::error(codes::BAD_SHAPE, span, message)
                .with_note("pass a single number as a scalar parameter: `alpha: f32`"),
        );
    }
    if t.elem == ElemRef::Known(Elem::Bool) {
        let message = format!("tensor `{name}` has Boolean elements, which live in registers only");
        cx.report(Diagnostic::error(codes::BAD_SHAPE, span, message).with_note("use `u8`, and compare with 0"));
    }
    for (d, &e) in t.shape.iter().enumerate() {
        // If there are several modes, each one is checked below.
        if t.modes(d).is_none() {
            cx.index_over(e, LAUNCH, is_launch);
        }
        positive(cx, codes::BAD_SHAPE, "an extent", e, MAX_EXTENT);
    }
    if t.pointers && rank < 2 {
        let message = format!("tensor `{name}` of {rank} dimension(s) cannot be an array of pointers");
        cx.report(Diagnostic::error(codes::BAD_SHAPE, span, message).with_note(
            "the first dimension counts the addresses, the others are those of the tensors to which they point",
        ));
    }
    scratch(cx, name, span, t);
    let own = t.strided();
    let strided = own.len();
    match &t.strides {
        Strides::Ordered(_) => {
            if t.ld.len() != strided.saturating_sub(1) {
                let message = format!("tensor `{name}` of rank {rank} has {} leading strides", t.ld.len());
                cx.report(Diagnostic::error(codes::MALFORMED, span, message));
            }
        }
        Strides::Explicit(list) => {
            if list.len() != strided {
                let message = format!("tensor `{name}` has {strided} dimensions and {} strides", list.len());
                cx.report(Diagnostic::error(codes::BAD_SHAPE, span, message));
            }
            for (d, stride) in list.iter().enumerate() {
                if let DimStride::Modes(modes) = stride {
                    modes_of(cx, name, span, own.get(d).map(|&d| t.shape[d]), modes);
                }
            }
            for e in list.iter().flat_map(DimStride::strides) {
                cx.index_over(e, LAUNCH, is_launch);
                if let Some(x) = const_int(cx.k, e).filter(|&x| x < 0) {
                    cx.error_at(codes::BAD_SHAPE, e, format!("a stride is at least 0, found {x}"), "");
                }
            }
        }
    }
    padding(cx, name, span, t);
    if let Some(n) = t.multiple {
        cx.bounded(codes::BAD_SHAPE, "`multiple`", n, 1, MAX_EXTENT);
    }
    if let Some(align) = t.align.filter(|a| !a.is_power_of_two()) {
        let message = format!("the alignment of `{name}` must be a power of two, found {align}");
        cx.report(Diagnostic::error(codes::BAD_SHAPE, span, message));
    }
}

/// A precondition: conditions on values that the host knows at the launch.
fn precondition(cx: &mut Cx<'_, '_>, e: Expr) {
    let k = cx.k;
    if let Some((at, tensor)) = tensor_in(k, e) {
        let name = &k.values[tensor].name;
        let message = format!("a precondition reads `{name}`, whose elements the host does not have at the launch");
        let note = format!(
            "bound the number where it is used, `min({name}[0], 64)`, or ask in the kernel: `if {name}[0] <= 64 {{ .. }}`"
        );
        let d = Diagnostic::error(codes::BAD_PRECONDITION, k.expr_spans[at], message);
        cx.report(d.with_place(k.values[tensor].span, "declared here").with_note(note));
        return;
    }
    match cx.type_of(e) {
        Some(Type::Bool) => cx.check_value_kinds(e, LAUNCH, is_launch),
        Some(other) => {
            let message = format!("a precondition is a truth value, found {}", other.describe(k));
            let d = Diagnostic::error(codes::BAD_PRECONDITION, k.expr_spans[e], message);
            let d = d.with_note("compare: `where K % 8 == 0`");
            // A requested remainder is that of a multiple.
            let remainder = matches!(k.exprs[e], ExprData::Op { op: Op::Rem, .. });
            cx.report(if remainder { d.with_fix_around(k.expr_spans[e], "", " == 0") } else { d });
        }
        None => {}
    }
}

/// A tensor that an expression reads, and the position of the read.
fn tensor_in(k: &Kernel, e: Expr) -> Option<(Expr, Value)> {
    let mut found = None;
    mentions(k, e, &mut |at, v| {
        if found.is_none() && matches!(k.values[v].def, ValueDef::Tensor(_)) {
            found = Some((at, v));
        }
    });
    found
}

/// Padding. Each mode must clearly step along the padded strides or not. The tensor has a single address.
fn padding(cx: &mut Cx<'_, '_>, name: &str, span: crate::diag::Span, t: &TensorTy) {
    if t.padded.is_empty() {
        return;
    }
    let k = cx.k;
    if t.pointers || t.scratch.is_some() || !t.repeats.is_empty() {
        let message = format!("`{name}` is padded, and an array of pointers, scratch memory, or repeats");
        cx.report(
            Diagnostic::error(codes::BAD_SHAPE, span, message).with_note("padded tensors are inputs at one address"),
        );
    }
    let Strides::Explicit(list) = &t.strides else {
        let message = format!("`{name}` is padded and has no strides of its own");
        cx.report(Diagnostic::error(codes::MALFORMED, span, message));
        return;
    };
    for (i, p) in t.padded.iter().enumerate() {
        cx.index_over(p.extent, LAUNCH, is_launch);
        cx.index_over(p.behind, LAUNCH, is_launch);
        positive(cx, codes::BAD_SHAPE, "an extent", p.extent, MAX_EXTENT);
        if let Some(x) = const_int(k, p.behind).filter(|x| !(-MAX_PADDING..=MAX_PADDING).contains(x)) {
            let message = format!("at most {MAX_PADDING} lines of padding are in front of a tensor, found {x}");
            cx.error_at(codes::BAD_SHAPE, p.behind, message, "");
        }
        if t.padded[..i].iter().any(|other| other.stride == p.stride) {
            let message = format!("`{name}` is padded along `{}` twice", k.values[p.stride].name);
            cx.report(Diagnostic::error(codes::BAD_SHAPE, span, message));
        }
    }
    for e in list.iter().flat_map(DimStride::strides).filter(|&e| !padded::is_clear(k, t, e)) {
        cx.error_at(
            codes::BAD_SHAPE,
            e,
            "this stride does not say how many padded lines a step is",
            "write a product of one padded stride and the number of lines: `SH * h`",
        );
    }
}

/// Memory that is neither an input nor a result.
fn scratch(cx: &mut Cx<'_, '_>, name: &str, span: crate::diag::Span, t: &TensorTy) {
    let Some(scratch) = t.scratch else { return };
    let k = cx.k;
    let message = match scratch {
        _ if t.pointers => format!("scratch memory `{name}` is an array of pointers"),
        Scratch::Elements => return,
        Scratch::Cluster => return of_cluster(cx, name, span, t),
        Scratch::Signals if t.elem != ElemRef::Known(Elem::U32) || t.shape.len() != 1 => {
            format!("the signals `{name}` are not a tensor of one dimension of u32")
        }
        Scratch::Signals => {
            let read = k.expressions().into_iter().find(|&e| {
                let named = match &k.exprs[e] {
                    ExprData::Ref(v) => Some(*v),
                    ExprData::View(view) => Some(view.base),
                    _ => None,
                };
                named.is_some_and(|v| k.tensor_ty(v).is_some_and(|of| std::ptr::eq(of, t)))
            });
            let Some(e) = read else { return };
            let message = format!("`{name}` holds signals: they are raised and awaited, not read");
            cx.error_at(codes::BAD_SIGNAL, e, message, "write `signal s[i]`, or `await s[i]`");
            return;
        }
    };
    let d = Diagnostic::error(codes::BAD_SIGNAL, span, message).with_note(
        "write `sums: gmem f32[n, 128, 128] strides (16384, 128, 1) scratch`, `ready: gmem u32[n] strides (1) signals`",
    );
    let word = k.spots_behind(span, FixLocation::Scratch).next();
    cx.report(d.with_left_out(word));
}

/// Distributed shared memory: whole tiles of words, in a cluster whose blocks pass them on.
fn of_cluster(cx: &mut Cx<'_, '_>, name: &str, span: crate::diag::Span, t: &TensorTy) {
    let k = cx.k;
    let (message, note) = match t.elem {
        _ if t.shape.len() < 2 => (
            format!("the distributed shared memory `{name}` has no dimension that counts tiles"),
            "write one in front of the extents of a tile: `sums: dsmem f32[3, 64, 64]`",
        ),
        ElemRef::Known(elem) if elem.bits() != 32 => (
            format!("the distributed shared memory `{name}` has elements of {} bits", elem.bits()),
            "elements have 32 bits there: `f32`, `i32` or `u32`",
        ),
        _ if k.schedule.cluster.is_empty() => (
            format!("`{name}` is memory of a cluster, and the schedule has none"),
            "write `cluster (2)` into the schedule: two blocks along the first axis of the grid",
        ),
        _ => return,
    };
    cx.report(Diagnostic::error(codes::BAD_SIGNAL, span, message).with_note(note));
}

/// A dimension of several modes, and its extent.
fn modes_of(cx: &mut Cx<'_, '_>, name: &str, span: crate::diag::Span, whole: Option<Expr>, modes: &[Mode]) {
    if !(2..=MAX_RANK).contains(&modes.len()) {
        let message = format!("a dimension of `{name}` has {} extents, expected 1 to {MAX_RANK}", modes.len());
        cx.report(Diagnostic::error(codes::BAD_SHAPE, span, message).with_note("neighbours may be one: `(H * W, C)`"));
    }
    for mode in modes {
        cx.index_over(mode.extent, LAUNCH, is_launch);
        positive(cx, codes::BAD_SHAPE, "an extent", mode.extent, MAX_EXTENT);
    }
    let extents: Vec<Expr> = modes.iter().map(|m| m.extent).collect();
    let product = whole.is_some_and(|whole| factors(cx.k, &[whole]) == factors(cx.k, &extents));
    if !product {
        let message = format!("the extent of a dimension of `{name}` is not the product of those of its modes");
        cx.report(Diagnostic::error(codes::MALFORMED, span, message));
    }
}

/// Rule 5.
fn default(cx: &mut Cx<'_, '_>, elem: ElemRef, e: Expr) {
    let k = cx.k;
    let literal = match &k.exprs[e] {
        ExprData::Op { op: Op::Neg, args } => args.first().copied().unwrap_or(e),
        // A number that only u64 has.
        ExprData::Cast { elem: ElemRef::Known(Elem::U64), arg } => *arg,
        _ => e,
    };
    if !matches!(k.exprs[literal], ExprData::Int(_) | ExprData::Float(_)) {
        cx.error_at(
            codes::BAD_SCALAR_DEFAULT,
            e,
            "the default of a scalar must be a literal",
            "write a number, such as `1.0`",
        );
        return;
    }
    let fraction = matches!(k.exprs[literal], ExprData::Float(_));
    if fraction && matches!(elem, ElemRef::Known(known) if !known.is_float()) {
        let message = format!("a scalar of type {} cannot have this default", elem_name(k, elem));
        let d = Diagnostic::error(codes::BAD_SCALAR_DEFAULT, k.expr_spans[e], message).with_note("write an integer");
        let whole = match k.exprs[e] {
            ExprData::Float(bits) => whole_text(bits),
            _ => None,
        };
        cx.report(match whole {
            Some(x) => d.with_fix(k.expr_spans[e], x),
            None => d,
        });
        return;
    }
    let whole = match k.exprs[e] {
        ExprData::Cast { arg, .. } => k.as_int(arg).map(|x| i128::from(x.cast_unsigned())),
        _ => const_int(k, e).map(i128::from),
    };
    if let (ElemRef::Known(elem), Some(x)) = (elem, whole)
        && let Some(format) = int_format(elem)
    {
        // The launch contract has defaults of 63 bits and a sign.
        let (least, most) = (format.min(), format.max().min(i128::from(i64::MAX)));
        if (least..=most).contains(&x) {
            return;
        }
        let message = format!("a scalar of type {} cannot have this default", elem.name());
        let note = match most == format.max() {
            true => format!("its numbers are those from {least} to {most}"),
            false => format!("a default is one from {least} to {most}; larger ones are given at the launch"),
        };
        let d = Diagnostic::error(codes::BAD_SCALAR_DEFAULT, k.expr_spans[e], message);
        cx.report(d.with_note(note).with_fix(k.expr_spans[e], x.clamp(least, most).to_string()));
    }
}

/// Rule 8.
fn schedule(cx: &mut Cx<'_, '_>) {
    let k = cx.k;
    for (what, e) in schedule_items(k) {
        let max = match what {
            "`threads`" => i64::from(MAX_THREADS),
            "`min_ctas`" | "`k_warps`" => 32,
            "`cluster`" | "`split_k`" => MAX_BLOCKS,
            "`ctas`" => MAX_BLOCKS_ASKED,
            "`pending`" | "`ping_pong`" | "`align_rows`" | "`stage_stores`" | "`stream_k`" | "`queue`" => 1,
            "`overlap`" => MAX_OVERLAP,
            _ => 1 << 20,
        };
        let min = i64::from(max > 1 && !["`promote`", "`overlap`"].contains(&what));
        cx.bounded(codes::BAD_SCHEDULE, what, e, min, max);
    }
    if let Some(e) = k.schedule.threads
        && let Some(x) = const_int(k, e)
        && x % 32 != 0
    {
        let message = format!("`threads` must be a multiple of 32, found {x}");
        let d =
            Diagnostic::error(codes::BAD_SCHEDULE, k.expr_spans[e], message).with_note("threads run in warps of 32");
        let near = x.clamp(32, i64::from(MAX_THREADS)).unsigned_abs().next_power_of_two();
        cx.report(d.with_fix_of_item(k.schedule_item("threads"), format!("threads {near}")));
    }
    if let Some(e) = k.schedule.k_warps
        && let Some(x) = const_int(k, e)
        && x > 0
        && x.count_ones() != 1
    {
        let message = format!("`k_warps` must be a power of two, found {x}");
        let d = Diagnostic::error(codes::BAD_SCHEDULE, k.expr_spans[e], message);
        let d = d.with_note("the reduction of a product is cut in halves, quarters, ..");
        cx.report(d.with_fix_of_item(k.schedule_item("k_warps"), format!("k_warps {}", 1u64 << x.ilog2())));
    }
    if let Some(e) = k.schedule.split_k
        && let Some(x) = const_int(k, e)
        && x > 0
        && x.count_ones() != 1
    {
        let message = format!("`split_k` must be 1, 2, 4 or 8, found {x}");
        let d = Diagnostic::error(codes::BAD_SCHEDULE, k.expr_spans[e], message);
        let d = d.with_note("the blocks of a cluster share a tile: `split_k 2` cuts the reduction in two");
        cx.report(d.with_fix_of_item(k.schedule_item("split_k"), format!("split_k {}", 1u64 << x.ilog2())));
    }
    cluster(cx);
}

/// The blocks of a cluster: at most as many as every device supports, along existing grid axes.
fn cluster(cx: &mut Cx<'_, '_>) {
    let k = cx.k;
    let axes = k.grid.len().min(MAX_AXES);
    if let Some(&beyond) = k.schedule.cluster.get(axes) {
        let message = format!("a cluster has at most the {axes} axes of its grid, found {}", k.schedule.cluster.len());
        let note = "a cluster is so many neighbouring blocks along each axis: `grid (i: .., j: ..)`, `cluster (2, 1)`";
        let d = Diagnostic::error(codes::BAD_SCHEDULE, k.expr_spans[beyond], message).with_note(note);
        cx.report(d.with_left_out(k.schedule_item("cluster")));
        return;
    }
    let Some(along) = k.schedule.cluster.iter().map(|&e| const_int(k, e)).collect::<Option<Vec<i64>>>() else { return };
    // Axes that are too long by themselves have been reported.
    if along.iter().any(|n| !(1..=MAX_BLOCKS).contains(n)) {
        return;
    }
    let blocks = along.iter().fold(1, |all: i64, &n| all.saturating_mul(n));
    if let Some(&first) = k.schedule.cluster.first().filter(|_| blocks > MAX_BLOCKS || blocks.count_ones() != 1) {
        let message = format!("a cluster of {blocks} blocks");
        let note = "a cluster has 1, 2, 4 or 8 blocks in total; 8 is the largest size that every device supports";
        let d = Diagnostic::error(codes::BAD_SCHEDULE, k.expr_spans[first], message).with_note(note);
        cx.report(d.with_left_out(k.schedule_item("cluster")));
    }
}
