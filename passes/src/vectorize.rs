//! `vectorize`: decides the access width of every copy that touches memory.
//!
//! A copy gets the largest power of two of elements that all of these allow:
//!
//! * 16 bytes;
//! * the run of adjacent elements that a thread has in the copy's register layout;
//! * for global memory, what the preconditions prove ([`crate::analysis::access_width::global_width`]);
//! * for shared memory, the alignment of the window.
//!
//! For an access of less than 16 bytes a remark names the missing fact. A width in the source (`vec 8`) that cannot be
//! proved is an error, unless it was written for layouts of a pass that is switched off.
//!
//! Needs: layouts. Switched off: one element per access.

use crate::Cx;
use crate::analysis::access_width::{
    MAX_ACCESS_BYTES, Width, elem_of, global_width, global_width_up_to, known_elem, shared_width, window_contiguous_dim,
};
use crate::analysis::contiguous_dim::smem_window_dim;
use crate::analysis::distribution::{copy_layout, owned_run};
use crate::analysis::facts::Facts;
use crate::analysis::uses::all_stmts;
use crate::analysis::views::{accessed_views, copy_shape, memory_views};
use crate::assign_layouts::log2_shape;
use crate::refusal::Refused;
use crate::roles::threads_of;
use crate::unaligned::Unaligned;
use tilec_ir::atomics::combination;
use tilec_ir::codes;
use tilec_ir::deferred_lets::Deferred;
use tilec_ir::diag::{Diagnostic, Reported, Span, counted, declare_where};
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::fix_locations::FixLocation;
use tilec_ir::kernel::{CopyAttrs, Kernel, Mechanism, StmtData};
use tilec_ir::layout::RegLayout;
use tilec_ir::layout::matrix::{MatrixLoad, matrix_load, row_elements};
use tilec_ir::missed_paths::FastPath;
use tilec_ir::print::{print_expr, print_place};
use tilec_ir::target::{Target, WARP};
use tilec_ir::types::Elem;
use tilec_ir::typing::{ResolvedView, ViewDim, resolve_view};

pub(crate) const NAME: &str = "vectorize";

pub(crate) fn run(k: &mut Kernel, cx: &mut Cx<'_>) -> Result<(), Reported> {
    let facts = Facts::new(k);
    let deferred = Deferred::of(k);
    let mut result = Ok(());
    for s in all_stmts(k, k.body) {
        let StmtData::Copy { src, dst, attrs } = k.stmts[s].clone() else {
            if cx.enabled {
                read_in_expression(k, cx, &facts, &deferred, s);
            }
            continue;
        };
        // TMA copies have no accesses of threads.
        if !attrs.is_by_threads() {
            result = result.and(describable(k, cx, &facts, s, src, dst));
            continue;
        }
        // The width of these copies is fixed by their kind.
        if attrs.is_matrix() || attrs.is_prefetch() || attrs.is_fragment() {
            continue;
        }
        let views = [accessed_views(k, &deferred, src), memory_views(k, dst)].concat();
        if views.is_empty() {
            continue;
        }
        let (Some(layout), Some(shape)) = (copy_layout(k, src, dst, &attrs), copy_shape(k, src, dst)) else {
            panic!("bug: `{}` is copied in no layout", print_expr(k, src))
        };
        let provable = combined(k, cx, &attrs, dst, narrowest(k, &facts, &views, Some(&layout), &shape));
        let span = k.stmt_spans[s];
        let what = format!("copy `{}` -> `{}`", print_place(k, src), print_place(k, dst));
        if let Some(aligned) = attrs.unaligned() {
            result = result.and(written_unaligned(k, cx, &facts, s, &what, aligned));
            continue;
        }
        let shifted = crate::unaligned::applies(k, &facts, s, src, dst, &attrs, &shape);
        let through_registers = !crate::thread_fills::is_one(k, cx.options, &facts, s);
        let shifted = shifted.filter(|_| cx.enabled && attrs.vec.is_none() && through_registers);
        if let Some(of) = shifted.filter(|of| shiftable(&layout, &shape, of)) {
            let n = of.aligned;
            let said = format!(
                "{what} loads aligned words and shifts them: accesses are aligned to {}",
                counted(n as usize, "element")
            );
            report_narrow(k, cx, s, &said, &provable);
            if let StmtData::Copy { attrs, .. } = &mut k.stmts[s] {
                (attrs.vec, attrs.mechanism) = (Some(of.vec), Mechanism::Words { aligned: of.aligned });
            }
            continue;
        }
        let vec = match width(k, cx, &facts, &attrs, (&views, &shape), &provable, (span, &what)) {
            Ok(vec) => vec,
            Err(reported) => {
                result = Err(reported);
                continue;
            }
        };
        let by_threads = !k.plans[s].producer;
        if by_threads && vec == 1 && attrs.reduce.is_none() && shares_bytes(k, dst) {
            result = result.and(half_stored(k, cx, &facts, (span, &what), (dst, &shape), &provable));
            continue;
        }
        // An asynchronous copy has no form of less than 4 bytes.
        let too_narrow = attrs.is_asynchronous() && widest(k, &views, vec) < 32;
        if too_narrow && cx.options.plain_layouts() {
            cx.remark(span, format!("{what} goes through registers: layouts are plain: {}", provable.why));
        } else if too_narrow {
            let message = format!("{what} cannot be `async`: it moves less than 4 bytes at a time");
            let mut d = Diagnostic::error(codes::BAD_COPY, span, message).with_note(provable.why.clone());
            if !provable.missing.is_empty() {
                d = d.with_note(declare_where(&provable.missing));
            }
            result = Err(cx.report(d.with_note("without `async` the copy goes through registers")));
            continue;
        }
        // Lanes that exchange elements have no condition, and no operation, of their own.
        let plain = CopyAttrs { vec: None, ..attrs.clone() } == CopyAttrs::default();
        let matrices = if plain && stored_as_matrices(k, cx, &facts, &deferred, src, dst, &layout, &shape) {
            resolve_view(k, dst)
        } else if plain && as_matrices(k, cx, &facts, src, dst, &layout, &shape) {
            resolve_view(k, src)
        } else {
            None
        };
        let matrices = matrices.filter(|_| cx.enabled);
        if cx.enabled && attrs.vec.is_none() && matrices.is_none() {
            say(k, cx, (s, &what), (&views, &layout), vec, &provable);
        }
        let matrix = attrs.vec.is_none() && matrices.is_some();
        let row = matrices.and_then(|v| elem_of(k, v.base)).and_then(matrix_row).unwrap_or(vec);
        if let StmtData::Copy { attrs, .. } = &mut k.stmts[s] {
            attrs.vec = Some(if matrix { row } else { vec });
            if matrix {
                attrs.mechanism = Mechanism::Matrices;
            } else if too_narrow {
                attrs.mechanism = Mechanism::Registers;
            }
        }
    }
    result
}

/// Remarks on narrow tensor reads in assigned expressions: they are element by element, because only copies are
/// vectorised.
fn read_in_expression(k: &Kernel, cx: &mut Cx<'_>, facts: &Facts, deferred: &Deferred, s: Stmt) {
    let (tile, e) = match k.stmts[s] {
        StmtData::Assign { dst, src } => (dst, src),
        StmtData::Var { value, init: Some(init) } => (value, init),
        _ => return,
    };
    let mut views = accessed_views(k, deferred, e);
    views.retain(|v| k.tensor_ty(v.base).is_some());
    let layout = k.tile_ty(tile).and_then(|t| t.reg_layout.clone());
    let shape = k.tile_ty(tile).and_then(|t| k.const_shape(&t.shape));
    let (Some(view), Some(layout), Some(shape)) = (views.first(), layout, shape) else { return };
    // A window inside a reduction has another shape than the tile.
    if views.iter().any(|v| v.base_dims().len() != shape.len()) {
        return;
    }
    let provable = narrowest(k, facts, &views, Some(&layout), &shape);
    let what = format!("`{}` is read one element at a time", k.values[view.base].name);
    let refused = match provable.elems > 1 {
        true => Refused::at(k.stmt_spans[s], "it is in an expression that is assigned")
            .help("copy the window into a register tile in front of it: `copy X[..] -> x`"),
        false if provable.why.is_empty() => return,
        false => Refused::at(k.stmt_spans[s], provable.why.clone()).missing(&provable.missing),
    };
    refused.report(k, cx, &what, (FastPath::Wide, Vec::new()));
}

/// Whether a copy stores elements that share bytes to memory.
fn shares_bytes(k: &Kernel, dst: Expr) -> bool {
    memory_views(k, dst).iter().any(|to| known_elem(k, to.base).size().whole_bytes().is_none())
}

/// Refuses a store of a part of a byte, because another thread would store the rest of it.
fn half_stored(
    k: &Kernel,
    cx: &mut Cx<'_>,
    facts: &Facts,
    (span, what): (Span, &str),
    (dst, shape): (Expr, &[u64]),
    provable: &Width,
) -> Result<(), Reported> {
    let name = resolve_view(k, dst).map_or_else(String::new, |to| k.values[to.base].name.clone());
    let message = format!("{what} stores single elements of `{name}`, which share bytes");
    let mut d = Diagnostic::error(codes::NOT_VECTORIZABLE, span, message);
    // The reason against a whole byte, not against the widest access.
    let to = resolve_view(k, dst).filter(|to| k.tensor_ty(to.base).is_some());
    let whole = to.as_ref().map(|to| {
        let elem = known_elem(k, to.base);
        global_width_up_to(k, facts, to, shape, (elem, u64::from(elem.per(1))))
    });
    let why = whole.map(|whole| whole.why).filter(|why| !why.is_empty()).unwrap_or_else(|| provable.why.clone());
    if !why.is_empty() {
        d = d.with_note(why);
    }
    let way = match provable.missing.as_str() {
        "" if to.is_none() => {
            "two threads would store halves of a byte. A register tile has windows at any place: copy the buffer into one (`copy s -> r`), change a window of that \
               (`copy x -> r[.., 1..]`), and store all of it (`copy r -> s`)"
        }
        "" => {
            "two threads or blocks would store halves of a byte: along the contiguous dimension begin and end the stored window at even places, and put the odd \
               place into what is read (`copy X[i.., j - 1..] -> Y[i.., j..]`), which begins anywhere; extents and other strides are even"
        }
        _ => {
            "a thread stores whole bytes: write `multiple 2` or more after the tensor, and begin windows at even positions"
        }
    };
    let written = resolve_view(k, dst).filter(|_| !provable.missing.is_empty()).and_then(|to| {
        let name = k.values[to.base].span;
        let promised = k.tensor_ty(to.base).is_none_or(|t| t.multiple.is_some());
        k.fix_locations.iter().find(|(spot, at)| *spot == FixLocation::Tensor && at.start == name.start && !promised)
    });
    let d = d.with_note(way);
    Err(cx.report(match written {
        Some((_, tensor)) => d.with_fix(Span { start: tensor.end, end: tensor.end }, " multiple 2"),
        None => d,
    }))
}

/// The width of a copy that combines in memory: at most the elements that an instruction combines.
fn combined(k: &Kernel, cx: &Cx<'_>, attrs: &CopyAttrs, dst: Expr, width: Width) -> Width {
    let to = resolve_view(k, dst).and_then(|to| Some((to.space(k), elem_of(k, to.base)?)));
    let Some((op, (space, elem))) = attrs.reduce.zip(to) else { return width };
    let most = combination(op, elem).and_then(|c| c.widest_in(space, cx.options.target)).unwrap_or(1);
    // Old values are returned one by one.
    let most = if attrs.old.is_some() { 1 } else { most };
    // Wider accesses than the instruction has would not help.
    if width.elems < most || most >= elem.per(MAX_ACCESS_BYTES) {
        return width;
    }
    let why = format!("an instruction combines {} of {} with memory", counted(most as usize, "element"), elem.name());
    Width { elems: most, why, ..Width::default() }
}

/// Elements of an access: the written width, if it is provable, or the largest provable one.
fn width(
    k: &Kernel,
    cx: &mut Cx<'_>,
    facts: &Facts,
    attrs: &CopyAttrs,
    (views, shape): (&[ResolvedView], &[u64]),
    provable: &Width,
    (span, what): (Span, &str),
) -> Result<u32, Reported> {
    // Elements that share bytes are accessed as whole bytes.
    let least = views.iter().map(|v| known_elem(k, v.base).per(1)).max().unwrap_or(1).min(provable.elems);
    match attrs.vec {
        Some(asked)
            if asked > provable.elems && cx.options.plain_layouts() && asked <= promised(k, facts, views, shape) =>
        {
            cx.remark(span, format!("{what} is narrower than written: layouts are plain: {}", provable.why));
            Ok(provable.elems)
        }
        Some(asked) if asked > provable.elems => {
            let message = format!("{what} cannot move {asked} elements per access, only {}", provable.elems);
            let mut d = Diagnostic::error(codes::NOT_VECTORIZABLE, span, message).with_note(provable.why.clone());
            if !provable.missing.is_empty() {
                d = d.with_note(declare_where(&provable.missing));
            }
            if let Some(note) = combines(k, cx.options.target, attrs, (views, shape), asked) {
                d = Diagnostic { notes: vec![note], ..d };
            }
            Err(cx.report(d.with_left_out(k.clause(span, "vec"))))
        }
        Some(asked) => Ok(asked),
        None if cx.enabled || attrs.is_asynchronous() => Ok(provable.elems),
        None => {
            cx.remark(span, format!("{what} moves one element per access: the pass is switched off"));
            Ok(least)
        }
    }
}

/// Why a copy that combines in memory does not combine so many elements at once, if that is the target's instructions
/// or the number of elements of a thread.
fn combines(
    k: &Kernel,
    target: Target,
    attrs: &CopyAttrs,
    (views, shape): (&[ResolvedView], &[u64]),
    asked: u32,
) -> Option<String> {
    let to = views.iter().find(|view| k.tensor_ty(view.base).is_some()).or(views.first())?;
    let row = combination(attrs.reduce?, known_elem(k, to.base))?;
    let (op, elem) = (row.op.word(), row.elem.name());
    if !to.space(k).has_bounds() {
        return Some(format!("an instruction combines one element of shared memory by `{op}`"));
    }
    if row.widest(target).is_none_or(|most| most < asked) {
        let elements = counted(asked as usize, "element");
        let first = row.threads.iter().find(|(elems, _)| *elems >= asked).map(|(_, first)| first.name());
        let later = first.map_or_else(|| "no target has".to_owned(), |first| format!("{first} has"));
        return Some(format!(
            "{} has no instruction that combines {elements} of {elem} by `{op}`; {later}",
            target.name()
        ));
    }
    let threads = u64::from(threads_of(k));
    let each = shape.iter().product::<u64>() / threads.max(1);
    (each < u64::from(asked)).then(|| {
        format!(
            "a thread holds {} of the tile: give the kernel fewer threads (`threads {}`), or use a larger tile",
            counted(each.max(1) as usize, "element"),
            (threads * each.max(1) / u64::from(asked)).max(u64::from(WARP))
        )
    })
}

/// Refuses a TMA copy of a tensor for which the host cannot encode a tensor map.
fn describable(k: &Kernel, cx: &mut Cx<'_>, facts: &Facts, s: Stmt, src: Expr, dst: Expr) -> Result<(), Reported> {
    let views = [resolve_view(k, src), resolve_view(k, dst)].into_iter().flatten();
    for view in views.filter(|v| k.tensor_ty(v.base).is_some()) {
        let inside = || Some((crate::tensor_copies::begins_inside_group(k, facts, &view)?, String::new()));
        let Some((why, missing)) = crate::tensor_copies::no_descriptor(k, facts, view.base).or_else(inside) else {
            continue;
        };
        let what = format!("copy `{}` -> `{}`", print_place(k, src), print_place(k, dst));
        let message = format!("{what} cannot be `tma`: {why}");
        let mut d = Diagnostic::error(codes::BAD_COPY, k.stmt_spans[s], message);
        if !missing.is_empty() {
            d = d.with_note(declare_where(&missing));
        }
        return Err(cx.report(d.with_note("without `tma` threads copy the elements")));
    }
    Ok(())
}

/// Whether a thread owns whole accesses, all with the same shift.
fn shiftable(layout: &RegLayout, shape: &[u64], of: &Unaligned) -> bool {
    let bits = log2_shape(shape);
    let base = |d: usize| bits[..d].iter().sum::<u32>();
    let multiples = (0..layout.value_bits()).all(|i| {
        let column = layout.value_col(i);
        (0..bits.len()).filter(|&d| d != of.dim).all(|d| {
            let coordinate = column >> base(d) & ((1 << bits[d]) - 1);
            coordinate.is_multiple_of(u64::from(of.vec))
        })
    });
    multiples && owned_run(layout, &bits, of.dim) >= of.vec.ilog2()
}

/// Checks a written `unaligned`, and sets the width of the access.
fn written_unaligned(
    k: &mut Kernel,
    cx: &mut Cx<'_>,
    facts: &Facts,
    s: Stmt,
    what: &str,
    aligned: u32,
) -> Result<(), Reported> {
    let StmtData::Copy { src, dst, attrs } = k.stmts[s].clone() else { unreachable!("it is a copy") };
    let view = resolve_view(k, src).expect("the verifier has `unaligned` on loads of windows alone");
    let shape = copy_shape(k, src, dst).expect("a copy has extents");
    let elem = known_elem(k, view.base);
    let provable = global_width(k, facts, &view, &shape);
    if provable.elems < aligned {
        let message = format!("{what} is aligned to {}, not {aligned}", counted(provable.elems as usize, "element"));
        let d = Diagnostic::error(codes::NOT_VECTORIZABLE, k.stmt_spans[s], message).with_note(provable.why);
        let d = d.with_left_out(k.clause(k.stmt_spans[s], "unaligned"));
        return Err(cx.report(d));
    }
    if let StmtData::Copy { attrs: set, .. } = &mut k.stmts[s] {
        set.vec = attrs.vec.or(Some(elem.per(MAX_ACCESS_BYTES)));
    }
    Ok(())
}

/// Elements in a row of the 8x8 matrices of `ldmatrix`; `None` for types that do not fill its registers.
fn matrix_row(elem: Elem) -> Option<u32> {
    let fits = elem.bits() <= 16 || elem == Elem::TF32;
    fits.then(|| row_elements(elem.bits())).flatten()
}

/// Whether a copy from shared memory to a fragment can use `ldmatrix`: sm_75, rows of 16 bytes.
fn as_matrices(
    k: &Kernel,
    cx: &Cx<'_>,
    facts: &Facts,
    src: Expr,
    dst: Expr,
    layout: &RegLayout,
    shape: &[u64],
) -> bool {
    let (Some(view), Some(tile)) = (resolve_view(k, src), resolve_view(k, dst).filter(|v| v.space(k).in_registers()))
    else {
        return false;
    };
    let (from, to) = (elem_of(k, view.base), elem_of(k, tile.base));
    let Some((elem, row)) = from.and_then(|e| Some((e, matrix_row(e)?))) else { return false };
    if !cx.options.target.has_matrix_loads() || from != to {
        return false;
    }
    let bits = log2_shape(shape);
    let Some(dim) = smem_window_dim(k, &view) else { return false };
    matrix_rows(k, &view, layout, &bits).is_some() && shared_width(k, facts, &view, elem, shape, Some(dim)).elems >= row
}

/// Whether a copy from registers to shared memory can use `stmatrix` with 16-bit elements: sm_90.
#[expect(clippy::too_many_arguments, reason = "a copy and what is known of it")]
fn stored_as_matrices(
    k: &Kernel,
    cx: &Cx<'_>,
    facts: &Facts,
    deferred: &Deferred,
    src: Expr,
    dst: Expr,
    layout: &RegLayout,
    shape: &[u64],
) -> bool {
    let Some(view) = resolve_view(k, dst).filter(|v| v.space(k).is_of_block()) else { return false };
    let Some(elem) = elem_of(k, view.base).filter(|e| e.bits() == 16) else { return false };
    // If blocks of a cluster share tiles, each stores to all of them, word by word.
    if tilec_ir::ctas::ctas(k) > 1
        || !cx.options.target.has_matrix_stores()
        || !accessed_views(k, deferred, src).is_empty()
    {
        return false;
    }
    let bits = log2_shape(shape);
    let Some(dim) = smem_window_dim(k, &view) else { return false };
    let row = matrix_row(elem).unwrap_or(u32::MAX);
    matrix_rows(k, &view, layout, &bits).is_some() && shared_width(k, facts, &view, elem, shape, Some(dim)).elems >= row
}

/// The rows whose addresses lanes give when a window is read or written as matrices.
pub(crate) fn matrix_rows(k: &Kernel, view: &ResolvedView, layout: &RegLayout, bits: &[u32]) -> Option<MatrixLoad> {
    let dim = smem_window_dim(k, view)?;
    let base: u32 = bits.get(..dim)?.iter().sum();
    let elem = elem_of(k, view.base)?;
    // A matrix is accessed as a whole. Lanes that give the addresses of its rows do not hold the indices of gathered ones.
    if view.is_gathered() || view.dims.iter().any(|d| matches!(d, ViewDim::From { end: Some(_), .. })) {
        return None;
    }
    if *bits.get(dim)? < matrix_row(elem)?.ilog2() {
        return None;
    }
    matrix_load(layout, 1 << base, elem.bits())
}

fn say(
    k: &Kernel,
    cx: &mut Cx<'_>,
    (s, what): (Stmt, &str),
    (views, layout): (&[ResolvedView], &RegLayout),
    vec: u32,
    provable: &Width,
) {
    let bits = widest(k, views, vec);
    if bits >= 8 * MAX_ACCESS_BYTES || provable.why.is_empty() {
        return;
    }
    let what = format!("{what} is {bits} bits wide");
    match provable.all_of_thread {
        true => {
            let full = views.iter().filter_map(|v| elem_of(k, v.base)).map(|e| e.per(MAX_ACCESS_BYTES)).max();
            let refused = Refused::at(k.stmt_spans[s], provable.why.clone());
            let fewer = fewer_threads(k, layout, full.unwrap_or(1)).filter(|_| !combined_elsewhere(k, s));
            let refused = match fewer {
                Some(help) => refused.help(&help),
                None => refused,
            };
            refused.report(k, cx, &what, (FastPath::Wide, Vec::new()));
        }
        false => match provable.inside.filter(|&v| loads(k, s, v)) {
            Some(v) => {
                let refused = Refused::at(k.stmt_spans[s], provable.why.clone());
                refused.help(&aligned_window(k, v, &provable.why)).report(k, cx, &what, (FastPath::Wide, Vec::new()));
            }
            None => report_narrow(k, cx, s, &what, provable),
        },
    }
}

/// Whether the register tile that a copy fills is combined with memory, too: there lanes side by side are to hold
/// elements side by side, so that they share sectors.
fn combined_elsewhere(k: &Kernel, s: Stmt) -> bool {
    let StmtData::Copy { dst, .. } = k.stmts[s] else { return false };
    let Some(tile) = resolve_view(k, dst).map(|to| to.base).filter(|&v| k.tensor_ty(v).is_none()) else { return false };
    k.statement_data().any(|s| match s {
        StmtData::Copy { src, attrs, .. } if attrs.reduce.is_some() => {
            let mut names = false;
            crate::analysis::uses::for_each_ref(k, *src, &mut |v| names |= v == tile);
            names
        }
        _ => false,
    })
}

/// Whether a copy loads a window of a tensor.
fn loads(k: &Kernel, s: Stmt, tensor: Value) -> bool {
    match k.stmts[s] {
        StmtData::Copy { src, .. } => resolve_view(k, src).is_some_and(|from| from.base == tensor),
        _ => false,
    }
}

/// How a window that begins inside of a full access is loaded in full ones.
fn aligned_window(k: &Kernel, tensor: Value, why: &str) -> String {
    let (name, full) = (&k.values[tensor].name, known_elem(k, tensor).per(MAX_ACCESS_BYTES));
    format!(
        "{why}: load the window of `{name}` from the multiple of {full} in front of it to its own end (`a..b`) into a buffer (`let s = smem ..`), and take its elements from there (`copy s[1..] -> ..`)"
    )
}

/// The number of threads of which each holds as many elements as an access moves, if that is fewer than there are. Which
/// larger tile helps `tilec why` finds by trial.
fn fewer_threads(k: &Kernel, layout: &RegLayout, full: u32) -> Option<String> {
    let threads = 1u64 << layout.out_bits().saturating_sub(full.ilog2());
    let own = 1u64 << layout.thread_bits();
    // Warps of products are as many as their tiles need.
    (own > threads && threads >= u64::from(WARP) && !crate::select_mma::products(k)).then(|| {
        let elements = counted(full as usize, "element");
        format!(
            "a larger tile, or fewer threads: of {threads} (`threads {threads}` in the schedule) each holds {elements}"
        )
    })
}

/// Reports why accesses are narrow: a loss, if a precondition would make them wide.
fn report_narrow(k: &Kernel, cx: &mut Cx<'_>, s: Stmt, what: &str, provable: &Width) {
    let at = if provable.missing.is_empty() { Vec::new() } else { vec![s] };
    let refused = Refused::at(k.stmt_spans[s], provable.why.clone()).missing(&provable.missing);
    refused.report(k, cx, what, (FastPath::Wide, at));
}

/// Bits of an access of `vec` elements to the memory with the widest elements.
fn widest(k: &Kernel, views: &[ResolvedView], vec: u32) -> u32 {
    views.iter().filter_map(|v| elem_of(k, v.base)).map(|e| e.bits() * vec).max().unwrap_or(0)
}

// The width that the text allows in some layout.
fn promised(k: &Kernel, facts: &Facts, views: &[ResolvedView], shape: &[u64]) -> u32 {
    narrowest(k, facts, views, None, shape).elems
}

/// The widest access that all views, and the layout if there is one, allow.
fn narrowest(k: &Kernel, facts: &Facts, views: &[ResolvedView], layout: Option<&RegLayout>, shape: &[u64]) -> Width {
    let bits = log2_shape(shape);
    let mut best: Option<(Width, bool)> = None;
    for view in views {
        let elem = known_elem(k, view.base);
        let global = k.tensor_ty(view.base).is_some();
        let (mut width, dim) = if global {
            (global_width(k, facts, view, shape), window_contiguous_dim(k, view))
        } else {
            let dim = smem_window_dim(k, view);
            (shared_width(k, facts, view, elem, shape, dim), dim)
        };
        let mut by_layout = false;
        if let Some(dim) = dim.filter(|&d| d < bits.len()) {
            let run = layout.map_or(width.elems, |layout| 1 << owned_run(layout, &bits, dim));
            if run < width.elems {
                let name = &k.values[view.base].name;
                let held = layout.map_or(u32::MAX, |layout| 1 << layout.value_bits().min(31));
                let all_of_thread = held == run;
                let why = match run {
                    _ if all_of_thread => format!("a thread holds {} of `{name}`", counted(held as usize, "element")),
                    1 => {
                        format!("elements of `{name}` that a thread holds are not neighbours in memory in this layout")
                    }
                    _ => format!("a thread holds {run} neighbouring elements of `{name}` in this layout"),
                };
                width = Width { elems: run, why, all_of_thread, ..Width::default() };
                by_layout = true;
            }
        } else {
            width.elems = 1;
        }
        // Layouts follow from facts about tensors: with equal widths, the missing fact is the reason.
        let first = |b: &(Width, bool)| width.elems < b.0.elems || width.elems == b.0.elems && b.1 && !by_layout;
        if best.as_ref().is_none_or(first) {
            best = Some((width, by_layout));
        }
    }
    best.map(|(width, _)| width).unwrap_or(Width { elems: 1, ..Width::default() })
}
