//! Copies: rules 12 and 13.

use super::missing_dims::{lacking, window_of_sums, with_extents};
use super::structure::mentions;
use super::{atomics, gathers, matrices};
use crate::atomics::{combination, combined_types};
use crate::bits::Bits;
use crate::cluster::Uniform;
use crate::codes;
use crate::diag::{Diagnostic, Span};
use crate::entities::{Expr, Stmt, Value};
use crate::kernel::{CopyAttrs, ExprData, Mechanism, Slot, StmtData, ValueDef};
use crate::literal::Literal;
use crate::space::Space;
use crate::target::{MAX_TENSOR_RANK, is_asynchronous_access, is_shifted};
use crate::types::{Elem, ElemRef, Scratch};
use crate::typing::{ResolvedView, Type, ViewDim, candidate_elems, const_int, copy_shape, resolve_view, shape_text};
use crate::verify::context::{Cx, condition};
use crate::window_ends::own_end;

/// Bytes of the widest access of one thread (PTX ISA, `ld`, `st`: `.v4.b32`).
const MAX_ACCESS: u64 = 16;

pub(super) fn check(cx: &mut Cx<'_, '_>, s: Stmt, src: Expr, dst: Expr, attrs: &CopyAttrs) {
    let k = cx.k;
    let (from, to) = (cx.type_of(src), cx.type_of(dst));
    let (Some(from), Some(to)) = (from, to) else { return };
    let Some(target) = cx.types.resolve_view(dst) else {
        if matches!(k.exprs[dst], ExprData::View(_)) && to.rank() > 0 {
            unresolved(cx, dst);
        } else {
            let message = format!("a copy ends in memory or a register variable, found {}", to.describe(k));
            cx.error_at(
                codes::NOT_ASSIGNABLE,
                dst,
                message,
                "copy into a tensor window, a shared-memory buffer, a channel's `.put` slot, or a `var`",
            );
        }
        return;
    };
    leaves(cx, src);
    reshaped(cx, src, dst);
    gathers::check(cx, s, (src, dst), (&from, &to), attrs);
    if let Some(elem) = to.elem() {
        let storable = cx.types.storable(src, &from, elem);
        cx.ok(storable);
    }
    shapes(cx, s, (src, &from), (dst, &to));
    once(cx, s, &from, &target);
    attributes(cx, s, src, dst, attrs, &target, to.rank());
    atomics::check(cx, s, (src, dst), attrs, &target);
}

/// A reshaped tile is copied from one register variable to another of its type.
fn reshaped(cx: &mut Cx<'_, '_>, src: Expr, dst: Expr) {
    let k = cx.k;
    let (arg, is_numbered) = match k.exprs[src] {
        ExprData::Reshape { arg, ref numbered, .. } => (arg, numbered.is_some()),
        ExprData::Permute { arg, .. } => (arg, false),
        _ => return,
    };
    let elem = |e: Expr, of_buffer: bool| match k.exprs[e] {
        ExprData::Ref(v)
            if match k.values[v].def {
                ValueDef::Var(_) => !of_buffer,
                ValueDef::Smem(_) => of_buffer,
                _ => false,
            } =>
        {
            k.tile_ty(v).map(|t| t.elem)
        }
        _ => None,
    };
    let own = elem(arg, is_numbered);
    if own.is_none() || own != elem(dst, false) {
        let message = "a tile in another shape goes from a register variable to another of its type";
        cx.error_at(
            codes::BAD_COPY,
            src,
            message,
            "copy it to one: `var y = reg f32[16, 4]`, `copy reshape(x, [16, 4]) -> y`",
        );
    }
}

/// Reports a window that typing accepts and [`crate::typing::resolve_view`] does not.
pub(super) fn unresolved(cx: &mut Cx<'_, '_>, e: Expr) {
    let message = "an index or an end inside a window that starts elsewhere, or too many names for one window";
    cx.error_at(codes::BAD_VIEW, e, message, "write the window on the tensor or buffer itself");
}

/// Checks that every window read can be resolved.
fn leaves(cx: &mut Cx<'_, '_>, src: Expr) {
    for e in windows(cx, src) {
        if matches!(cx.types.type_of(e), Ok(Type::View(_))) && cx.types.resolve_view(e).is_none() {
            unresolved(cx, e);
        }
    }
}

/// The references and windows that an expression reads.
pub(super) fn windows(cx: &Cx<'_, '_>, e: Expr) -> Vec<Expr> {
    let mut found = Vec::new();
    let mut stack = vec![e];
    while let Some(e) = stack.pop() {
        match &cx.k.exprs[e] {
            ExprData::Ref(_) | ExprData::View(_) => found.push(e),
            // The elements of `like` are not read.
            ExprData::Iota { .. } => {}
            _ => stack.extend(cx.k.children(e).into_iter().rev()),
        }
    }
    found
}

fn shapes(cx: &mut Cx<'_, '_>, s: Stmt, (src, from): (Expr, &Type), (dst, to): (Expr, &Type)) {
    let k = cx.k;
    let span = k.stmt_spans[s];
    if let (Type::Tile(a), Type::Tile(b)) = (from, to) {
        let agree =
            a.shape.len() == b.shape.len() && a.shape.iter().zip(&b.shape).all(|(&x, &y)| x.same(k, y) != Some(false));
        if !agree {
            let message = format!("this copy is from {} to {}", shape_text(k, &a.shape), shape_text(k, &b.shape));
            let same = "both sides of a copy have the same extents; take a window of the larger one: `a[0.., 8..]`";
            let note = lacking(cx, src, from, b.shape.len()).unwrap_or_else(|| same.to_owned());
            cx.report(Diagnostic::error(codes::SHAPE_MISMATCH, span, message).with_note(note));
        }
        return;
    }
    if from.rank() == 0 {
        // A scalar fills any destination with extents.
        if matches!(to, Type::View(v) if v.rank > 0) {
            let window = with_extents(k, dst, to.rank());
            no_extents(cx, span, &format!("write how many elements the window has: `{window}`"));
        }
        return;
    }
    if from.rank() != to.rank() {
        let message = format!("this copy is from {} to {}", from.describe(k), to.describe(k));
        let other = "write an index instead of a range for dimensions that the other side lacks: `A[b, i.., k..]`";
        let note = match (from, to) {
            (_, Type::Tile(t)) => lacking(cx, src, from, t.shape.len()),
            (Type::Tile(t), Type::View(v)) if t.shape.len() > v.rank => {
                let d = Diagnostic::error(codes::SHAPE_MISMATCH, span, message);
                let d = window_of_sums(k, d, dst, &t.shape, v.rank);
                return cx.report(d);
            }
            (_, Type::Scalar(_)) => lacking(cx, src, from, 0),
            _ => None,
        };
        let note = note.unwrap_or_else(|| other.to_owned());
        cx.report(Diagnostic::error(codes::SHAPE_MISMATCH, span, message).with_note(note));
    } else if matches!((from, to), (Type::View(_), Type::View(_))) {
        let read = windows(cx, src).into_iter().find(|&e| cx.type_of(e).is_some_and(|ty| ty.rank() == to.rank()));
        let window = with_extents(k, read.unwrap_or(dst), to.rank());
        no_extents(cx, span, &format!("one of the windows says how many elements there are: `{window}`"));
    }
}

/// Reports several elements that are stored to the only element along a broadcast dimension.
fn once(cx: &mut Cx<'_, '_>, s: Stmt, from: &Type, target: &ResolvedView) {
    let (Some(tensor), Type::Tile(tile)) = (cx.k.tensor_ty(target.base), from) else { return };
    // Elements that have indices of their own are apart, or combined.
    if target.gathers_by_element(cx.k) {
        return;
    }
    let kept = target.base_dims();
    let several = kept.iter().zip(&tile.shape).any(|(d, n)| tensor.repeats.contains(d) && n.known() != Some(1));
    if several && kept.len() == tile.shape.len() {
        let message =
            format!("several elements are stored to one of `{}`, which repeats", cx.k.values[target.base].name);
        cx.report(Diagnostic::error(codes::BAD_COPY, cx.k.stmt_spans[s], message).with_note(
            "along a dimension that repeats a tile that is stored has one element: reduce it first, `copy sum(x, 0) -> Y[_, j..]`",
        ));
    }
}

fn no_extents(cx: &mut Cx<'_, '_>, span: Span, note: &str) {
    let message = "neither side of this copy has extents";
    cx.report(Diagnostic::error(codes::NO_EXTENTS, span, message).with_note(note));
}

/// Rule 13.
fn attributes(
    cx: &mut Cx<'_, '_>,
    s: Stmt,
    src: Expr,
    dst: Expr,
    attrs: &CopyAttrs,
    target: &ResolvedView,
    rank: usize,
) {
    let k = cx.k;
    let span = k.stmt_spans[s];
    let to = target.space(k);
    let sources: Vec<(Expr, Space)> =
        windows(cx, src).into_iter().filter_map(|e| Some((e, space_of(cx, e)?))).collect();
    let mut bad = |word: &str, message: String, note: &str| {
        let d = Diagnostic::error(codes::BAD_COPY, span, message).with_note(note);
        cx.report(d.with_left_out(k.clause(span, word)));
    };
    if attrs.keep && to.is_memory() {
        bad(
            "keep",
            "`keep` is for copies into registers".to_owned(),
            "what memory holds is kept anyway where nothing is written",
        );
    }
    if let Some(fill) = attrs.fill {
        filled(cx, s, src, attrs, fill, to);
    }
    let mut bad = |word: &str, message: String, note: &str| {
        let d = Diagnostic::error(codes::BAD_COPY, span, message).with_note(note);
        cx.report(d.with_left_out(k.clause(span, word)));
    };
    if attrs.apart && !to.has_bounds() {
        bad(
            "apart",
            "`apart` is for copies into global memory".to_owned(),
            "it says that no other store of the launch is to these elements",
        );
    }
    let registers = to.in_registers() || sources.iter().any(|&(_, space)| space.in_registers());
    if attrs.threads.is_some() && registers && !attrs.is_prefetch() {
        bad(
            "threads",
            "`threads` is for copies between memories".to_owned(),
            "in this copy the layout of the register tile says which thread moves which element",
        );
    }
    let global = to.has_bounds() || sources.iter().any(|&(_, space)| space.has_bounds());
    bounds(cx, s, attrs, global, rank);
    match attrs.mechanism {
        Mechanism::Registers | Mechanism::Fragment => {}
        Mechanism::Words { aligned } => unaligned(cx, s, src, attrs, aligned, to),
        Mechanism::Matrices => matrices::check(cx, s, src, dst, attrs, to, &sources),
        Mechanism::Asynchronous => asynchronous(cx, s, src, dst, attrs, target),
        Mechanism::Tensor { multicast: for_all } => {
            tensor(cx, s, src, dst, attrs, target);
            if for_all {
                multicast(cx, s, src);
            }
        }
        Mechanism::Prefetch => prefetch(cx, s, src, attrs, to),
    }
    fragments(cx, s, src, dst, attrs);
    if let Some(vec) = attrs.vec {
        let mut sides = vec![dst];
        sides.extend(sources.iter().map(|&(e, _)| e));
        widths(cx, s, vec, &sides);
    }
}

/// Dimensions with bounds checks, and the condition of the copy.
fn bounds(cx: &mut Cx<'_, '_>, s: Stmt, attrs: &CopyAttrs, global: bool, rank: usize) {
    let k = cx.k;
    let span = k.stmt_spans[s];
    let mut bad = |word: &str, message: String, note: &str| {
        let d = Diagnostic::error(codes::BAD_COPY, span, message).with_note(note);
        cx.report(d.with_left_out(k.clause(span, word)));
    };
    if let Some(dims) = &attrs.check {
        for (i, &d) in dims.iter().enumerate() {
            if !global {
                bad("check", "`check` without a global side".to_owned(), "only accesses to global memory are checked");
                break;
            }
            if d as usize >= rank {
                bad("check", format!("`check` names dimension {d} of {rank}"), "dimensions count from 0");
            }
            if dims[..i].contains(&d) {
                bad("check", format!("`check` names dimension {d} twice"), "");
            }
        }
    }
    if let Some(cond) = attrs.when {
        if !global {
            bad("when", "`when` without a global side".to_owned(), "only accesses to global memory have bounds");
        }
        condition(cx, cond);
    }
}

/// The access width, for each side that is in memory.
fn widths(cx: &mut Cx<'_, '_>, s: Stmt, vec: u32, sides: &[Expr]) {
    let k = cx.k;
    let span = k.stmt_spans[s];
    let mut bad = |message: String, note: &str| {
        cx.report(Diagnostic::error(codes::BAD_COPY, span, message).with_note(note));
    };
    if !vec.is_power_of_two() {
        bad(format!("`vec` must be a power of two, found {vec}"), "accesses are 1, 2, 4, 8 or 16 elements wide");
        return;
    }
    for &e in sides {
        if space_of(cx, e).is_none_or(|space| space.in_registers()) {
            continue;
        }
        let Some(elem) = cx.types.type_of(e).ok().and_then(|t| t.elem()) else { continue };
        let bytes = smallest(cx, elem).bytes_of(vec.into());
        if bytes > MAX_ACCESS {
            let message = format!("`vec {vec}` makes accesses of {bytes} bytes, expected at most {MAX_ACCESS}");
            let d = Diagnostic::error(codes::BAD_COPY, span, message)
                .with_place(k.expr_spans[e], "this side")
                .with_note(format!("use `vec {}`", u64::from(vec) * MAX_ACCESS / bytes));
            cx.report(d);
            return;
        }
    }
}

/// The memory from which a register tile could be loaded.
fn prefetch(cx: &mut Cx<'_, '_>, s: Stmt, src: Expr, attrs: &CopyAttrs, to: Space) {
    let k = cx.k;
    let from = cx.types.resolve_view(src);
    let plain = CopyAttrs { threads: None, check: None, when: None, mechanism: Mechanism::Registers, ..attrs.clone() };
    let mut bad = |message: String, note: &str| {
        cx.report(Diagnostic::error(codes::BAD_COPY, k.stmt_spans[s], message).with_note(note));
    };
    if to.is_memory() || from.as_ref().is_none_or(|v| !v.space(k).has_bounds()) {
        bad(
            "`prefetch` is for windows of global memory that are loaded into registers".to_owned(),
            "name the register tile: its extents are those of the window",
        );
    }
    if plain != CopyAttrs::default() {
        bad(
            "`prefetch` can be combined only with `threads`, `check` and `when`".to_owned(),
            "nothing is copied: the lines of the window are prefetched into the cache",
        );
    }
}

/// Accesses of 16 bytes to global memory that consist of aligned words.
fn unaligned(cx: &mut Cx<'_, '_>, s: Stmt, src: Expr, attrs: &CopyAttrs, aligned: u32, to: Space) {
    let k = cx.k;
    let from = cx.types.resolve_view(src);
    let elem = cx.types.type_of(src).ok().and_then(|t| t.elem());
    let mut bad = |message: String, note: &str| {
        cx.report(Diagnostic::error(codes::BAD_COPY, k.stmt_spans[s], message).with_note(note));
    };
    if to.has_bounds() || from.as_ref().is_none_or(|v| !v.space(k).has_bounds()) {
        let message = "`unaligned` loads a window of global memory into registers or shared memory".to_owned();
        bad(message, "stores, and loads of other things, are as wide as they are aligned");
    }
    let written = |base: Value| {
        k.statement_data().any(|s| {
            matches!(s, StmtData::Copy { dst, .. } if crate::typing::resolve_view(k, *dst).is_some_and(|v| v.base == base))
        })
    };
    if let Some(base) = from.as_ref().map(|v| v.base).filter(|&base| k.tensor_ty(base).is_some() && written(base)) {
        bad(
            format!("`unaligned` with `{}`, which the kernel writes", k.values[base].name),
            "words next to the window are loaded with it, and must not change meanwhile",
        );
    }
    if attrs.keep || attrs.reduce.is_some() {
        bad(
            "`unaligned` cannot be combined with `keep`, `add`, `min` or `max`".to_owned(),
            "the elements are loaded in words that others share, and shifted in registers",
        );
    }
    let Some(ElemRef::Known(elem)) = elem else { return };
    let (size, wide) = (elem.size(), elem.per(MAX_ACCESS as u32));
    if !is_shifted(size) {
        bad(
            format!("`unaligned` with elements of {size}"),
            "elements of 1, 2 or 4 bytes are shifted; without `unaligned` accesses are as wide as they are aligned",
        );
    } else if let Some(vec) = attrs.vec.filter(|&vec| vec != wide) {
        let message = format!("`unaligned` with accesses of {vec} elements of {size}");
        let d = Diagnostic::error(codes::BAD_COPY, k.stmt_spans[s], message);
        let d = d.with_note("unaligned accesses are of 16 bytes: leave `vec` out");
        cx.report(d.with_left_out(k.clause(k.stmt_spans[s], "vec")));
    } else if !aligned.is_power_of_two() || aligned >= wide {
        bad(
            format!("`unaligned {aligned}` must be a power of two below the {wide} elements of an access"),
            "it says how many elements are known to be aligned; if all are, the access is not `unaligned`",
        );
    }
}

/// Elements outside the bounds read as a number of the tensor's type. Copies by hardware only support zero.
fn filled(cx: &mut Cx<'_, '_>, s: Stmt, src: Expr, attrs: &CopyAttrs, fill: Literal, to: Space) {
    let k = cx.k;
    let mut bad = |message: String, note: &str| {
        cx.report(Diagnostic::error(codes::BAD_COPY, k.stmt_spans[s], message).with_note(note));
    };
    let from = resolve_view(k, src).filter(|view| view.space(k).has_bounds());
    let Some(tensor) = from.and_then(|view| k.tensor_ty(view.base)).filter(|_| !to.has_bounds()) else {
        return bad(
            "`fill` is for copies of a window of a tensor into a tile".to_owned(),
            "copy into a register tile, which may be of an expression (`copy max(m, X[i.., j..]) -> m fill -inf`), and store that",
        );
    };
    if attrs.keep || attrs.reduce.is_some() || attrs.is_fragment() {
        bad(
            "`fill` cannot be combined with `keep`, `fragment`, `add`, `min` or `max`".to_owned(),
            "it says what the destination holds where the window is outside the bounds",
        );
    }
    if !fill.is_zero() && (attrs.is_asynchronous() || attrs.is_tensor() || attrs.unaligned().is_some()) {
        bad(
            "`async`, `tma` and `unaligned` fill with zero".to_owned(),
            "without them threads load the elements and put the number in the place of those outside the bounds",
        );
    }
    if let ElemRef::Known(elem) = tensor.elem
        && fill.value(elem).is_none()
    {
        bad(
            format!("the tensor's type {} has no such number as its `fill`", elem.name()),
            "elements outside the bounds read as if the tensor had them, before they are converted",
        );
    }
}

/// `cp.async` (PTX ISA, section "Data Movement and Conversion Instructions: cp.async") copies whole elements, 4, 8 or
/// 16 bytes at a time, from global to shared memory.
fn asynchronous(cx: &mut Cx<'_, '_>, s: Stmt, src: Expr, dst: Expr, attrs: &CopyAttrs, target: &ResolvedView) {
    let k = cx.k;
    let mut bad = |message: String, note: &str| {
        cx.report(Diagnostic::error(codes::BAD_COPY, k.stmt_spans[s], message).with_note(note));
    };
    let to_slot = matches!(k.values[target.base].def, ValueDef::Channel { .. }) && target.slot != Some(Slot::Get);
    if !to_slot {
        bad(
            "`async` is for copies into a channel's slot".to_owned(),
            "what waits for the copy is the `wait` of its channel: `copy A[i.., k..] -> ring.put async`",
        );
    }
    if attrs.keep || attrs.reduce.is_some() {
        bad(
            "`async` cannot be combined with `keep`, `add`, `min` or `max`".to_owned(),
            "the elements are moved as they are",
        );
    }
    let from = cx.types.resolve_view(src);
    if from.as_ref().is_none_or(|v| !v.space(k).has_bounds()) {
        let message = "`async` copies a window of global memory".to_owned();
        let note = "without `async` any expression is copied, through registers";
        cx.report(Diagnostic::error(codes::BAD_COPY, k.stmt_spans[s], message).with_note(note));
        return;
    }
    let elems = [src, dst].map(|e| cx.types.type_of(e).ok().and_then(|t| t.elem()));
    if let [Some(ElemRef::Known(a)), Some(ElemRef::Known(b))] = elems {
        let mut bad = |message: String, note: &str| {
            cx.report(Diagnostic::error(codes::BAD_COPY, k.stmt_spans[s], message).with_note(note));
        };
        if a != b {
            bad(
                format!("`async` cannot convert {} to {}", a.name(), b.name()),
                "copy without `async`, which converts in registers",
            );
        } else if let Some(vec) = attrs.vec
            && !is_asynchronous_access(a.size(), vec)
        {
            let bytes = a.bytes_of(vec.into());
            bad(
                format!("`async` with accesses of {bytes} bytes, expected 4, 8 or 16"),
                "copy without `async`, or make wider accesses possible: declare what divides the strides",
            );
        }
    }
}

/// Scratch memory with elements in register order. All copies have the mark, and move whole tiles.
fn fragments(cx: &mut Cx<'_, '_>, s: Stmt, src: Expr, dst: Expr, attrs: &CopyAttrs) {
    let k = cx.k;
    let mut windows = Vec::new();
    let mut stack = vec![src, dst];
    while let Some(e) = stack.pop() {
        match cx.types.resolve_view(e).filter(|v| v.space(k).has_bounds()) {
            Some(view) => windows.push(view),
            None => stack.extend(k.children(e)),
        }
    }
    let lies_so = |v: Value| {
        k.statement_data().any(|t| match t {
            StmtData::Copy { src, dst, attrs } if attrs.is_fragment() => {
                let mut found = false;
                [*src, *dst].into_iter().for_each(|e| mentions(k, e, &mut |_, w| found |= w == v));
                found
            }
            _ => false,
        })
    };
    let mut bad = |message: String, note: &str| {
        cx.report(Diagnostic::error(codes::BAD_COPY, k.stmt_spans[s], message).with_note(note));
    };
    if attrs.is_fragment() && attrs.reduce.is_some() {
        let message = "`fragment` cannot be combined with `add`, `min` or `max`".to_owned();
        bad(message, "blocks exchange elements through scratch memory, and each element is stored by one block");
    }
    for view in windows {
        let name = &k.values[view.base].name;
        let Some(tensor) = k.tensor_ty(view.base) else { continue };
        if !attrs.is_fragment() {
            if tensor.is_of_cluster() {
                bad(
                    format!("a copy of `{name}`, which is distributed shared memory, without `fragment`"),
                    "write `fragment` after the copy: tiles have the order in which threads hold them in registers",
                );
            } else if tensor.scratch.is_some() && lies_so(view.base) {
                let message = format!("another copy stores elements of `{name}` in fragment order");
                bad(message, "write `fragment` after all copies of the tensor, or after none");
            }
            continue;
        }
        let zero = |starts: &[Expr]| starts.iter().all(|&e| const_int(k, e) == Some(0));
        let whole = view.dims.iter().enumerate().all(|(d, dim)| match dim {
            ViewDim::Fixed(_) => d == 0,
            ViewDim::From { starts, end } => d > 0 && zero(starts) && end.is_none(),
            ViewDim::Gather(_) => false,
        });
        if !tensor.scratch.is_some_and(Scratch::has_elements) || tensor.pointers || !whole || view.transposed {
            bad(
                format!("`fragment` on `{name}`, which is no whole tile of scratch memory"),
                "write `sums: gmem f32[n, 64, 64] strides (4096, 64, 1) scratch`, and `copy acc -> sums[i, 0.., 0..] fragment`",
            );
        }
        let extents = |of: &[Expr]| of.iter().map(|&e| const_int(k, e)).collect::<Option<Vec<i64>>>();
        let own: Option<Vec<i64>> = extents(tensor.shape.get(1..).unwrap_or_default());
        let moved: Option<Vec<i64>> =
            copy_shape(k, src, dst).map(|n| n.into_iter().filter_map(|n| i64::try_from(n).ok()).collect::<Vec<_>>());
        if let (Some(own), Some(moved)) = (own, moved)
            && own != moved
        {
            let text = |n: &[i64]| n.iter().map(i64::to_string).collect::<Vec<_>>().join(" x ");
            bad(
                format!("`fragment` copies {} elements of `{name}`, whose tiles have {}", text(&moved), text(&own)),
                "copy a whole tile of the same extents; those of register tiles are padded to powers of two, so declare both with powers of two",
            );
        }
    }
}

/// `.multicast::cluster` (PTX ISA 9.7.9.27): one window for several blocks of a cluster.
fn multicast(cx: &mut Cx<'_, '_>, s: Stmt, src: Expr) {
    let k = cx.k;
    let mut bad = |message: String, note: &str| {
        cx.report(Diagnostic::error(codes::BAD_COPY, k.stmt_spans[s], message).with_note(note));
    };
    if k.schedule.cluster.is_empty() {
        bad("there is no cluster whose blocks would get this".to_owned(), "write `cluster (2, 1)` into the schedule");
        return;
    }
    if k.schedule.cluster.iter().any(|&e| const_int(k, e).is_none()) {
        return;
    }
    let mut same = Uniform::new(k);
    let Some(from) = resolve_view(k, src) else { return };
    if same.window(&from) == same.all()
        && let Some(&e) = from.dims.iter().flat_map(ViewDim::starts).find(|&&e| !same.expr(e))
    {
        let d = Diagnostic::error(
            codes::BAD_COPY,
            k.expr_spans[e],
            "the blocks of a cluster would all copy different windows",
        );
        cx.report(d.with_note(
            "of the index `g` of a grid axis with `c` blocks to a cluster, only `g / c` is the same in all of them",
        ));
    }
}

/// `cp.async.bulk.tensor` (PTX ISA 9.7.9.27): whole boxes of a tensor, without conversion.
fn tensor(cx: &mut Cx<'_, '_>, s: Stmt, src: Expr, dst: Expr, attrs: &CopyAttrs, target: &ResolvedView) {
    let k = cx.k;
    let from = cx.types.resolve_view(src);
    let elems = [src, dst].map(|e| cx.types.type_of(e).ok().and_then(|t| t.elem()));
    let mut bad = |message: &str, note: &str| {
        cx.report(Diagnostic::error(codes::BAD_COPY, k.stmt_spans[s], message).with_note(note));
    };
    let whole = |v: &ResolvedView| {
        !v.transposed && v.dims.iter().all(|d| matches!(d, ViewDim::From { starts, end: None } if starts.is_empty()))
    };
    // A load from a tensor into a slot, or a store of a buffer to a tensor.
    let stores = target.space(k).has_bounds();
    let to_slot = matches!(k.values[target.base].def, ValueDef::Channel { .. }) && target.slot != Some(Slot::Get);
    if !(stores || to_slot && whole(target)) {
        bad(
            "`tma` is for copies into a whole slot of a channel, or of a whole buffer to a tensor",
            "what waits for the copy is the `wait` of its channel: `copy A[i.., k..] -> ring.put tma`; or `await`: `copy s -> C[i.., j..] tma`",
        );
    }
    if stores && !from.as_ref().is_some_and(|v| matches!(k.values[v.base].def, ValueDef::Smem(_)) && whole(v)) {
        bad(
            "a `tma` copy to a tensor stores a whole buffer of shared memory",
            "first copy the values into a buffer: `let s = smem f16[64, 64]`, `copy x -> s`, `copy s -> C[i.., j..] tma`",
        );
        return;
    }
    if let Some(op) = attrs.reduce.filter(|_| stores)
        && let Some(ElemRef::Known(elem)) = elems[1]
        && !combination(op, elem).is_some_and(|c| c.tma)
    {
        let (word, types) = (op.word(), combined_types(op, |c| c.tma));
        let note = match combination(op, elem).is_some_and(|c| !c.threads.is_empty()) {
            true => "without `tma` threads combine the elements".to_owned(),
            false => format!("TMA has `{word}` for elements of {types}"),
        };
        bad(&format!("TMA has no `{word}` for elements of {}", elem.name()), &note);
    }
    if attrs.keep
        || attrs.reduce.is_some() && !stores
        || attrs.when.is_some()
        || attrs.vec.is_some()
        || attrs.threads.is_some()
        || attrs.check.is_some()
    {
        bad(
            "`tma` can be combined only with `add`, `min` and `max`, for stores",
            "the hardware moves boxes of the tensor as they are, and no thread moves an element",
        );
    }
    let global = if stores { Some(target) } else { from.as_ref().filter(|v| v.space(k).has_bounds()) };
    let Some(global) = global else {
        bad("`tma` copies a window of global memory", "without `tma` any expression is copied, through registers");
        return;
    };
    let ended = match stores {
        true if global.dims.iter().any(|d| matches!(d, ViewDim::From { end: Some(_), .. })) => {
            Err("has an end of its own")
        }
        true => Ok(None),
        false => own_end(k, global),
    };
    if let Err(why) = ended {
        bad(
            &format!("`tma` does not copy this window: it {why}"),
            "the descriptor knows the end of the tensor; copy without `tma`, which checks the bounds of the window",
        );
    }
    if let Some(t) = k.tensor_ty(global.base)
        && (t.pointers || t.shape.len() > MAX_TENSOR_RANK || (0..t.shape.len()).any(|d| t.modes(d).is_some()))
        && (stores || crate::padded::im2col(k, global.base).is_err())
    {
        bad(
            "`tma` copies from and to tensors of up to five dimensions, of one mode each, at one address, and from images with padding",
            "copy without `tma`, element by element",
        );
    }
    if let [Some(ElemRef::Known(a)), Some(ElemRef::Known(b))] = elems
        && a != b
    {
        bad("`tma` cannot convert elements", "copy without `tma`, which converts in registers");
    }
}

fn smallest(cx: &Cx<'_, '_>, elem: ElemRef) -> Bits {
    candidate_elems(cx.k, elem).into_iter().map(Elem::size).min().unwrap_or(Elem::U8.size())
}

/// The memory of a reference or window; `None` for scalars.
fn space_of(cx: &Cx<'_, '_>, e: Expr) -> Option<Space> {
    if let Some(view) = cx.types.resolve_view(e) {
        return (!view.dims.is_empty()).then(|| view.space(cx.k));
    }
    let ExprData::Ref(v) = cx.k.exprs[e] else { return None };
    is_register_tile(cx, v).then_some(Space::Reg)
}

fn is_register_tile(cx: &Cx<'_, '_>, v: Value) -> bool {
    match &cx.k.values[v].def {
        ValueDef::Var(t) => !t.shape.is_empty(),
        ValueDef::Let => matches!(cx.types.let_type(v), Some(Type::Tile(_))),
        _ => false,
    }
}
