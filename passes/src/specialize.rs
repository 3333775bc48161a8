//! `specialize`: binds compile-time parameters and folds constants.
//!
//! References to compile-time parameters become literals, in place; types and orders likewise. Then every expression is
//! folded bottom-up. Preconditions that always hold are dropped, and preconditions that cannot hold are errors.
//!
//! Needs: parsed IR. Leaves: no compile-time parameter; promises of tensors as preconditions; literal tile extents;
//! ends of windows only if they cut something off; `transpose` of register tiles only in copies between them and in
//! products; a target in the schedule.

mod bind;
mod coalesce;
mod conditions;
mod counted_loops;
mod loaded_tiles;
mod loop_steps;
mod loops;
mod misaligned_windows;
mod multiples;
mod nibble_windows;
pub(crate) mod pad;
mod padded_windows;
mod past_end;
mod proposed;
mod reshaped;
mod single_row;
mod store_races;
mod tested_indices;
mod transposed;
mod uncovered_elements;
mod window_ends;
mod zero_init;
mod zero_sizes;

pub(crate) use bind::{given, substitute};
pub(crate) use multiples::assume;
pub(crate) use window_ends::drop_idle;

use crate::analysis::fold::fold_tree;
use crate::analysis::uses::{all_stmts, for_each_read, stmt_exprs};
use crate::analysis::wgmma::{COLUMN_COUNTS, ROWS, is_columns};
use crate::{Cx, Options};
use cranelift_entity::{EntitySet, SecondaryMap};
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported, Sink};
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::fix_locations::FixLocation;
use tilec_ir::index::{self, OfKernel};
use tilec_ir::kernel::{ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::ops::Op;
use tilec_ir::target::Target;
use tilec_ir::types::{DimStride, Strides};
use tilec_ir::typing::resolve_view;

pub(crate) const NAME: &str = "specialize";

/// Runs the pass for another pass, and drops its messages.
///
/// # Errors
/// The pass refuses the kernel.
pub(crate) fn quietly(k: &mut Kernel, options: &Options) -> Result<(), Reported> {
    let mut sink = Sink::new();
    run(k, &mut Cx::new(options, NAME, &mut sink).without_warnings())
}

pub(crate) fn run(k: &mut Kernel, cx: &mut Cx<'_>) -> Result<(), Reported> {
    let bindings = bind::bind(k, cx)?;
    // The text before folding, because a violated precondition would read `16 == 0` afterwards.
    let written: Vec<String> = k.requires.iter().map(|&e| tilec_ir::print::print_expr(k, e)).collect();
    substitute(k, &bindings);
    k.const_params.clear();
    fold(k);
    let is_decided = k.schedule.target.is_some();
    // A text with decisions shows which indices are tested.
    if !is_decided {
        tested_indices::mark(k);
    }
    conditions::converted(k);
    counted_loops::turns(k);
    coalesce::run(k);
    check_requires(k, cx, &written)?;
    multiples::expand(k, cx)?;
    if zero_sizes::literals(k) {
        fold(k);
        zero_sizes::drop_idle(k).into_iter().for_each(|b| forget(k, b));
    }
    if zero_sizes::single_blocks(k) {
        fold(k);
    }
    loops::bound(k);
    check_divisors(k, cx)?;
    check_target(k, cx)?;
    check_limits(k, cx)?;
    crate::narrow_products::run(k, cx);
    let stay = pad::of_products(k, cx.options.target);
    reshaped::by_numbers(k, &stay);
    if cx.heard {
        // The program from which a text with decisions was made was examined.
        if !is_decided {
            past_end::check(k, cx);
        }
        uncovered_elements::check(k, cx);
        misaligned_windows::check(k, cx);
    }
    pad::small_products::run(k, cx);
    check_extents(k, cx, &stay)?;
    check_written(k, cx)?;
    loop_steps::check(k, cx);
    store_races::check(k, cx);
    drop_idle(k);
    drop_zero_fills(k);
    single_row::check(k, cx);
    loaded_tiles::assignments_to_copies(k);
    nibble_windows::through_registers(k, cx);
    transposed::remove_transpositions(k);
    conditions::store_as_numbers(k);
    // Rules about extents and layouts can only be checked now that parameters have values.
    cx.verify(k)
}

/// All root expressions of the kernel.
pub(crate) fn roots(k: &Kernel) -> Vec<Expr> {
    let mut out: Vec<Expr> = k.requires.clone();
    out.extend(k.grid.iter().map(|g| g.extent));
    let s = &k.schedule;
    out.extend(s.warp_tile.iter().flat_map(|&(a, b)| [a, b]));
    out.extend(
        [
            s.threads,
            s.k_warps,
            s.ctas,
            s.stages,
            s.raster,
            s.promote,
            s.pending,
            s.ping_pong,
            s.min_ctas,
            s.align_rows,
            s.stage_stores,
            s.stream_k,
            s.split_k,
            s.queue,
            s.overlap,
        ]
        .into_iter()
        .flatten(),
    );
    out.extend(s.cluster.iter().copied());
    for data in k.values.values() {
        match &data.def {
            ValueDef::Tensor(t) => out.extend(t.exprs()),
            ValueDef::Var(t) | ValueDef::Smem(t) => out.extend(t.shape.iter().copied()),
            ValueDef::Channel { tile, slots } => {
                out.extend(tile.shape.iter().copied());
                out.push(*slots);
            }
            _ => {}
        }
    }
    k.walk(k.body, &mut |k, _, s| match &k.stmts[s] {
        StmtData::Let { init, .. } => out.push(*init),
        StmtData::Var { init, .. } => out.extend(*init),
        StmtData::Assign { src, .. } => out.push(*src),
        StmtData::Copy { src, dst, attrs } => out.extend([*src, *dst].into_iter().chain(attrs.when)),
        StmtData::For { start, end, step, .. } => out.extend([*start, *end, *step]),
        StmtData::If { cond, .. } => out.push(*cond),
        StmtData::Signal { index, .. } => out.push(*index),
        StmtData::Role { warps, replicas, registers, .. } => {
            out.push(*warps);
            out.extend(*replicas);
            out.extend(*registers);
        }
        StmtData::Alloc { .. }
        | StmtData::Channel { .. }
        | StmtData::Barrier
        | StmtData::Fence
        | StmtData::Await { .. }
        | StmtData::Ordered { .. } => {}
    });
    out
}

/// Folds every expression, and branches on known conditions.
pub(crate) fn fold(k: &mut Kernel) {
    for root in roots(k) {
        fold_tree(k, root);
    }
    fold_branches(k);
}

/// Replaces branches and selections on known conditions by the selected side.
fn fold_branches(k: &mut Kernel) {
    for e in roots(k) {
        fold_selections(k, e);
    }
    let mut pending = vec![k.body];
    while let Some(block) = pending.pop() {
        let mut kept = Vec::new();
        let mut rest: Vec<Stmt> = std::mem::take(&mut k.blocks[block]);
        rest.reverse();
        while let Some(s) = rest.pop() {
            if let StmtData::If { cond, then, otherwise } = k.stmts[s]
                && let Some(holds) = constant_truth(k, cond)
            {
                let (taken, dropped) = if holds { (Some(then), otherwise) } else { (otherwise, Some(then)) };
                let inner = taken.map(|b| std::mem::take(&mut k.blocks[b])).unwrap_or_default();
                rest.extend(inner.into_iter().rev());
                dropped.into_iter().for_each(|b| forget(k, b));
                continue;
            }
            pending.extend(k.sub_blocks(s));
            kept.push(s);
        }
        k.blocks[block] = kept;
    }
}

/// Drops fill values of zero, which is the default.
fn drop_zero_fills(k: &mut Kernel) {
    for data in k.stmts.values_mut() {
        if let StmtData::Copy { attrs, .. } = data {
            attrs.fill = attrs.fill.filter(|fill| !fill.is_zero());
        }
    }
}

/// Removes the tiles and buffers that a dropped block declares.
fn forget(k: &mut Kernel, block: Block) {
    for s in all_stmts(k, block) {
        if let StmtData::Var { value, .. } | StmtData::Alloc { value, .. } = k.stmts[s] {
            k.values[value].def = ValueDef::Let;
        }
    }
}

/// Replaces `select(c, a, b)` with a known condition by `a` or `b`, if it has the type of the whole.
fn fold_selections(k: &mut Kernel, e: Expr) {
    for child in k.children(e) {
        fold_selections(k, child);
    }
    let ExprData::Op { op: Op::Select, args } = &k.exprs[e] else { return };
    let (cond, a, b) = (args[0], args[1], args[2]);
    let Some(holds) = constant_truth(k, cond) else { return };
    let chosen = if holds { a } else { b };
    let ty = |e: Expr| tilec_ir::typing::type_of(k, e).ok();
    if ty(chosen).is_some() && ty(chosen) == ty(e) {
        k.exprs[e] = k.exprs[chosen].clone();
        k.expr_spans[e] = k.expr_spans[chosen];
    }
}

/// A precondition without the decided operands of `
/// ` and `&&`.
fn open_part(k: &Kernel, e: Expr) -> Expr {
    let ExprData::Op { op: op @ (Op::Or | Op::And), args } = &k.exprs[e] else { return e };
    let idle = Some(*op == Op::And);
    match (constant_truth(k, args[0]), constant_truth(k, args[1])) {
        (truth, None) if truth == idle => open_part(k, args[1]),
        (None, truth) if truth == idle => open_part(k, args[0]),
        _ => e,
    }
}

/// Drops preconditions that hold for every launch; refuses those that hold for none.
fn check_requires(k: &mut Kernel, cx: &mut Cx<'_>, written: &[String]) -> Result<(), Reported> {
    let mut kept = Vec::new();
    let mut result = Ok(());
    for (e, text) in std::mem::take(&mut k.requires).into_iter().zip(written) {
        match constant_truth(k, e) {
            Some(true) => {}
            Some(false) => {
                result = Err(cx.report(
                    Diagnostic::error(
                        codes::FALSE_PRECONDITION,
                        k.expr_spans[e],
                        format!("precondition `{text}` never holds"),
                    )
                    .with_note("a compile-time parameter has a value that the kernel does not allow"),
                ));
            }
            None => kept.push(open_part(k, e)),
        }
    }
    k.requires = kept;
    result
}

/// Refuses tiles and buffers that are read but never written, whose contents are undefined.
fn check_written(k: &Kernel, cx: &mut Cx<'_>) -> Result<(), Reported> {
    let (mut written, mut read) = (EntitySet::new(), SecondaryMap::<Value, Option<Stmt>>::new());
    for s in all_stmts(k, k.body) {
        let mut reads = stmt_exprs(k, s);
        match k.stmts[s] {
            StmtData::Var { value, init: Some(_) } => _ = written.insert(value),
            StmtData::Assign { dst, .. } => _ = written.insert(dst),
            StmtData::Copy { src, dst, ref attrs } => {
                if let Some(view) = resolve_view(k, dst) {
                    written.insert(view.base);
                    reads = [src].into_iter().collect();
                }
                if let Some(old) = attrs.old.and_then(|old| resolve_view(k, old)) {
                    written.insert(old.base);
                }
            }
            _ => {}
        }
        for e in reads {
            for_each_read(k, e, &mut |v| read[v] = read[v].or(Some(s)));
        }
    }
    let mut result = Ok(());
    for (v, data) in k.values.iter() {
        let place = matches!(data.def, ValueDef::Var(_) | ValueDef::Smem(_));
        let Some(reader) = read[v].filter(|_| place && !written.contains(v)) else { continue };
        result = Err(cx.report(
            Diagnostic::error(
                codes::UNWRITTEN,
                k.stmt_spans[reader],
                format!("`{}` is read, and nothing is ever stored to it", data.name),
            )
            .with_place(data.span, format!("`{}` is declared here", data.name))
            .with_note(match data.def {
                ValueDef::Var(_) => "give it an initial value (`= 0.0`), or copy into it first",
                _ => "copy into it first",
            }),
        ));
    }
    result
}

/// The truth of a condition, if literals decide it.
fn constant_truth(k: &Kernel, e: Expr) -> Option<bool> {
    index::truth(&OfKernel::new(k, |_| None), e)
}

/// Checks that divisors are positive: `x % 0` is undefined, so preconditions must not use it.
fn check_divisors(k: &Kernel, cx: &mut Cx<'_>) -> Result<(), Reported> {
    let mut result = Ok(());
    let mut stack = roots(k);
    while let Some(e) = stack.pop() {
        stack.extend(k.children(e));
        let ExprData::Op { op: op @ (Op::Div | Op::Rem | Op::CeilDiv), args } = &k.exprs[e] else { continue };
        let integers = matches!(tilec_ir::typing::type_of(k, e), Ok(tilec_ir::typing::Type::Index));
        let Some(divisor) = k.as_int(args[1]).filter(|&d| integers && d <= 0) else { continue };
        result = Err(cx.report(
            Diagnostic::error(
                codes::BAD_DIVISOR,
                k.expr_spans[e],
                format!("`{}` divides by {divisor}", tilec_ir::print::print_expr(k, e)),
            )
            .with_label(format!("the divisor of `{}` must be at least 1", op.token()))
            .with_note(format!(
                "a compile-time parameter used as a divisor has an impossible value; set it with {}",
                cx.options.caller.defines()
            )),
        ));
    }
    result
}

/// Most columns for rasterisation.
const MAX_RASTER: i64 = 1024;
/// The largest literal stride in elements, as for run-time strides.
const MAX_STRIDE: i64 = 1 << 40;

fn check_limits(k: &Kernel, cx: &mut Cx<'_>) -> Result<(), Reported> {
    let mut result = Ok(());
    if let Some(e) = k.schedule.raster
        && let Some(g) = k.as_int(e).filter(|g| !(1..=MAX_RASTER).contains(g))
    {
        let d = Diagnostic::error(codes::BAD_DEFINE, k.expr_spans[e], format!("`raster {g}`"));
        result = Err(cx.report(d.with_note(format!("rasterisation groups 1 to {MAX_RASTER} columns"))));
    }
    for data in k.values.values() {
        let ValueDef::Tensor(t) = &data.def else { continue };
        let Strides::Explicit(list) = &t.strides else { continue };
        for e in list.iter().flat_map(DimStride::strides) {
            if let Some(s) = k.as_int(e).filter(|s| !(0..=MAX_STRIDE).contains(s)) {
                let d = Diagnostic::error(codes::BAD_DEFINE, k.expr_spans[e], format!("a stride of {s} elements"));
                result = Err(cx.report(d.with_note("strides are from 0 to 2^40 elements")));
            }
        }
    }
    result
}

fn check_target(k: &mut Kernel, cx: &mut Cx<'_>) -> Result<(), Reported> {
    match k.schedule.target {
        Some(t) if t != cx.options.target => Err(cx.report(
            Diagnostic::error(
                codes::TARGET_MISMATCH,
                k.schedule.span,
                format!(
                    "the schedule was made for {}, {} requests {}",
                    t.name(),
                    cx.options.caller.target_source(),
                    cx.options.target.name()
                ),
            )
            .with_note(format!(
                "compile with {}, or remove `target` from the schedule",
                cx.options.caller.target(t.name())
            ))
            .with_left_out(k.schedule_item("target")),
        )),
        _ => {
            k.schedule.target = Some(cx.options.target);
            Ok(())
        }
    }
}

/// Checks that tile extents are positive literals and powers of two from here on, because layouts are linear over
/// address bits. Columns of wgmma products may be others; `select-mma` refuses them if it finds no wgmma. `stay`:
/// extents of possible wgmma operands, which `select-mma` checks.
fn check_extents(k: &mut Kernel, cx: &mut Cx<'_>, stay: &[u64]) -> Result<(), Reported> {
    let mut result = Ok(());
    for d in padded_windows::leaving(k) {
        result = Err(cx.report(d));
    }
    let stays = pad::extents(k, cx, pad::Windows::Any, stay);
    for d in bad_extents(k, cx.options.target, stay) {
        result = Err(cx.report(match &stays {
            // Larger tiles are no way out if the number of elements matters.
            Some(pad::Unpadded { why, counts: true, .. }) => Diagnostic { notes: Vec::new(), ..d }
                .with_note(
                    "write the next power of two as its extent, and mask the elements beyond: `select(iota(x, 1) < 100, x, -inf)`",
                )
                .with_note(format!("the compiler does not pad it: {why}")),
            Some(pad::Unpadded { why, .. }) => d.with_note(format!("the compiler does not pad it: {why}")),
            None => d,
        }));
    }
    for data in k.values.values() {
        let (ValueDef::Var(t) | ValueDef::Smem(t) | ValueDef::Channel { tile: t, .. }) = &data.def else { continue };
        for &e in t.shape.iter().filter(|&&e| k.as_int(e).is_none()) {
            let bad = format!("tile extent `{}` is not known at compile time", tilec_ir::print::print_expr(k, e));
            result = Err(cx.report(extent_error(data.span, &data.name, &bad)));
        }
    }
    result
}

/// Extents of tiles that are known and never legal, except those in `stay`.
pub(crate) fn bad_extents(k: &Kernel, target: Target, stay: &[u64]) -> Vec<Diagnostic> {
    let mut wrong = wrong_extents(k, |x| is_extent(x, stay.contains(&x)));
    if target.has_tensor_copies() {
        let counts = format!("`wgmma` may have {COLUMN_COUNTS}, and its operands multiples of {ROWS}");
        wrong = wrong.into_iter().map(|d| d.with_note(counts.clone())).collect();
    }
    wrong
}

/// Known tile extents that are no powers of two.
pub(crate) fn odd_extents(k: &Kernel) -> Vec<Diagnostic> {
    wrong_extents(k, |x| is_extent(x, false))
}

/// Whether a tile may have this extent. `warpgroups`: it may belong to a wgmma product.
pub(crate) fn is_extent(n: u64, warpgroups: bool) -> bool {
    n.is_power_of_two() || warpgroups && (is_columns(n) || n.is_multiple_of(ROWS))
}

fn wrong_extents(k: &Kernel, right: impl Fn(u64) -> bool) -> Vec<Diagnostic> {
    let mut wrong = Vec::new();
    for data in k.values.values() {
        let (ValueDef::Var(t) | ValueDef::Smem(t) | ValueDef::Channel { tile: t, .. }) = &data.def else { continue };
        for x in t.shape.iter().filter_map(|&e| k.as_int(e)).filter(|&x| !u64::try_from(x).is_ok_and(&right)) {
            let d = extent_error(data.span, &data.name, &format!("tile extent {x} is not a power of two"));
            // A tile without its own layout is padded.
            let laid_out = t.reg_layout.is_some() || t.smem_layout.is_some();
            let layout = k.spots_behind(data.span, FixLocation::Layout).next().filter(|_| laid_out);
            wrong.push(d.with_left_out(layout));
        }
    }
    wrong
}

fn extent_error(span: tilec_ir::diag::Span, name: &str, bad: &str) -> Diagnostic {
    Diagnostic::error(codes::TILE_EXTENT, span, format!("`{name}`: {bad}")).with_note(
        "this tile is not padded to the next power of two; write that extent: elements outside the tensor read as \
         zero and are not written",
    )
}
