//! `defer-reductions`: keeps partial results in each lane inside a loop, and reduces them across lanes after it.
//!
//! ```text
//! var l = reg f32[64, 1] layout ((4,8,4),2):((0,1,16),8) partial sum (0, 1) = 0.0
//! for .. {
//!     l = l * a + sum(p, 1)
//! }
//! var l_whole = reg f32[64, 1] layout ((4,8,4),2):((0,1,16),8)
//! copy l -> l_whole
//! copy o * (1.0 / l_whole) -> O[..]
//! ```
//!
//! A reduction of a row that four lanes hold takes two dependent shuffles and two operations in every iteration. If
//! the loop only adds up the results, each lane adds up its own part, and the shuffles are after the loop.
//!
//! The assembler computes late what nothing waits for, and keeps the reduced elements in registers until then. If tiles leave few registers,
//! reductions stay in the loop (4 spills on sm_80 for 128x128 rows and 128 threads).
//!
//! Needs: layouts (`assign-layouts`). Decides: which register tiles hold partial results ([`Partial`]), and where they are combined. Off: every
//! reduction is complete at once.

use crate::Cx;
use crate::analysis::live_ranges::{elements_per_thread, ranges, registers};
use crate::analysis::uses::{all_stmts, for_each_ref, mentions, path_to, place_of, stmt_exprs};
use crate::analysis::wgmma::is_scheduled;
use crate::assign_layouts::Threads;
use crate::registers::overhead::ADDRESSES;
use crate::roles::consumer_registers;
use tilec_ir::diag::Reported;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::layout::RegLayout;
use tilec_ir::ops::ReduceOp;
use tilec_ir::partial_sums::{accumulated, is_zero};
use tilec_ir::rounding::computed_in;
use tilec_ir::target::{REGISTERS_PER_THREAD, WARP, register_share};
use tilec_ir::types::{ElemRef, Partial};
use tilec_ir::typing::{fixed_shape, layout_of, let_init};

pub(crate) const NAME: &str = "defer-reductions";

pub(crate) fn run(k: &mut Kernel, cx: &mut Cx<'_>) -> Result<(), Reported> {
    if !cx.enabled {
        return Ok(());
    }
    for plan in plan(k) {
        if has_room(k, &plan) {
            apply(k, cx, plan);
        } else {
            let name = &k.values[plan.value].name;
            let why =
                format!("`{name}` is reduced across lanes in every iteration: register tiles leave few registers");
            cx.remark(k.values[plan.value].span, why);
        }
    }
    Ok(())
}

/// Whether a thread has registers for the elements of a reduction until all of their readers are done.
fn has_room(k: &Kernel, plan: &Plan) -> bool {
    let threads = Threads::of(k).count();
    let warps = u32::try_from(threads / u64::from(WARP)).expect("bug: a block has too many threads");
    let room = match is_scheduled(k) {
        true => u64::try_from(consumer_registers(k, warps)).expect("bug: a thread has a negative number of registers"),
        false => u64::from(register_share(warps * WARP, 1).min(REGISTERS_PER_THREAD)),
    };
    let ranges = ranges(k);
    let needed = |&(s, arg): &(Stmt, Expr)| {
        let at = ranges.position(s).expect("bug: a statement of the kernel has a place in its text");
        let (names, tiles) = named(k, arg);
        let beside = ranges.tiles.iter().filter(|r| {
            let lives = r.from <= at && at < r.to;
            // Tiles that are computed from the same elements.
            let made = all_stmts(k, k.body).into_iter().any(|s| match k.stmts[s] {
                StmtData::Copy { src, dst, .. } => {
                    mentions(k, dst, r.value) && names.iter().any(|&v| mentions(k, src, v))
                }
                _ => false,
            });
            (lives || made) && !names.contains(&r.value) && !tiles.contains(&r.value)
        });
        // Elements are computed in at least 32 bits.
        let elements = layout_of(k, arg)
            .zip(fixed_shape(k, arg))
            .map_or(0, |(layout, shape)| elements_per_thread(&layout, &shape));
        elements + beside.map(|r| registers(k, r.value, &r.tile, threads)).sum::<u64>()
    };
    plan.reduced.iter().map(needed).max().unwrap_or(0) + ADDRESSES <= room
}

/// The names in an expression, and the tiles from which it is computed.
fn named(k: &Kernel, e: Expr) -> (Vec<Value>, Vec<Value>) {
    let (mut names, mut tiles) = (Vec::new(), Vec::new());
    let mut rest = vec![e];
    while let Some(e) = rest.pop() {
        for_each_ref(k, e, &mut |v| match let_init(k, v) {
            Some(init) if !names.contains(&v) => {
                names.push(v);
                rest.push(init);
            }
            Some(_) => {}
            None => tiles.push(v),
        });
    }
    (names, tiles)
}

/// A tile whose partial sums can stay in the lanes.
struct Plan {
    value: Value,
    partial: Partial,
    /// The last statement that changes it. (A position would become invalid as soon as a plan is applied.)
    last: Stmt,
    /// Later statements that read the tile.
    reads: Vec<Stmt>,
    /// The reductions, with their statements.
    reduced: Vec<(Stmt, Expr)>,
}

fn plan(k: &Kernel) -> Vec<Plan> {
    let declared = all_stmts(k, k.body).into_iter().filter_map(|s| match k.stmts[s] {
        StmtData::Var { value, .. } => Some((s, value)),
        _ => None,
    });
    declared.filter_map(|(s, value)| candidate(k, s, value)).collect()
}

/// The plan for a tile. `None`: a lane needs the complete value in every iteration, or no other lane has a part.
fn candidate(k: &Kernel, declaration: Stmt, value: Value) -> Option<Plan> {
    let tile = k.tile_ty(value).filter(|t| !t.shape.is_empty() && t.partial.is_none())?;
    let layout = tile.reg_layout.as_ref()?;
    let mut changes = Vec::new();
    for s in all_stmts(k, k.body) {
        if let StmtData::Assign { dst, src } = k.stmts[s]
            && dst == value
        {
            changes.push((s, src));
        }
    }
    let op = changes.iter().find_map(|&(_, src)| reduction(k, src))?;
    // A sum in a type narrower than the computed one is rounded, or saturates, in every iteration; partial sums would
    // give another result.
    let narrow = matches!(tile.elem, ElemRef::Known(elem) if elem != computed_in(elem));
    if narrow && op == ReduceOp::Sum {
        return None;
    }
    let mut lanes: Option<Vec<u32>> = None;
    let mut reduced = Vec::new();
    for &(s, src) in &changes {
        for e in accumulated(k, value, op, src)? {
            let ExprData::Reduce { axis, parts, arg, .. } = k.exprs[e] else { unreachable!("a reduction") };
            let own = lanes_of(k, (arg, axis, parts), layout)?;
            reduced.push((s, arg));
            if lanes.get_or_insert_with(|| own.clone()) != &own {
                return None;
            }
        }
    }
    let lanes = lanes.filter(|lanes| !lanes.is_empty())?;
    if let StmtData::Var { init: Some(e), .. } = k.stmts[declaration]
        && op == ReduceOp::Sum
        && !is_zero(k, e)
    {
        return None;
    }
    let last = behind_all(k, declaration, &changes)?;
    let read = all_stmts(k, k.body).into_iter().filter(|&s| s != declaration && !changes.iter().any(|&(c, _)| c == s));
    let reads: Vec<Stmt> = read.filter(|&s| reads(k, s, value)).collect();
    let whole = |&s: &Stmt| follows(k, s, last) && !writes(k, s, value);
    reads.iter().all(whole).then_some(Plan { value, partial: Partial { op, lanes }, last, reads, reduced })
}

/// The last statement of the declaration's block that changes the tile, if some change is in a loop.
fn behind_all(k: &Kernel, declaration: Stmt, changes: &[(Stmt, Expr)]) -> Option<Stmt> {
    let (block, mut last) = place_of(k, declaration);
    let mut looped = false;
    for &(s, _) in changes {
        let path = path_to(k, s);
        let depth = path.iter().position(|&(b, _)| b == block)?;
        last = last.max(path[depth].1);
        looped |= path[depth..].iter().any(|&(b, i)| matches!(k.stmts[k.blocks[b][i]], StmtData::For { .. }));
    }
    looped.then(|| k.blocks[block][last])
}

/// Whether a statement is after another one, in its block or inside a later statement of it.
fn follows(k: &Kernel, s: Stmt, other: Stmt) -> bool {
    let (block, last) = place_of(k, other);
    path_to(k, s).iter().any(|&(b, i)| b == block && i > last)
}

fn reads(k: &Kernel, s: Stmt, v: Value) -> bool {
    stmt_exprs(k, s).into_iter().any(|e| mentions(k, e, v))
}

fn writes(k: &Kernel, s: Stmt, v: Value) -> bool {
    matches!(k.stmts[s], StmtData::Copy { dst, .. } if mentions(k, dst, v))
}

/// The operator of the first reduction in an expression.
fn reduction(k: &Kernel, e: Expr) -> Option<ReduceOp> {
    match k.exprs[e] {
        ExprData::Reduce { op, .. } => Some(op),
        _ => k.children(e).into_iter().find_map(|c| reduction(k, c)),
    }
}

/// The bits of the lane number that distinguish reduced elements, if the result has the layout of the tile.
fn lanes_of(k: &Kernel, (arg, axis, parts): (Expr, u32, u32), layout: &RegLayout) -> Option<Vec<u32>> {
    let reduction = layout_of(k, arg)?.reduction(&fixed_shape(k, arg)?, axis as usize, parts).ok()?;
    (reduction.layout == *layout).then_some(reduction.lanes)
}

fn apply(k: &mut Kernel, cx: &mut Cx<'_>, plan: Plan) {
    let Plan { value, partial, last, reads, .. } = plan;
    let (block, last) = place_of(k, last);
    let (span, name) = (k.values[value].span, k.values[value].name.clone());
    cx.remark(span, format!("each lane keeps a partial `{name}`; lanes are combined after the loop"));
    let tile = k.tile_ty(value).cloned().expect("bug: a plan is for a tile");
    let whole = k.value(&format!("{name}_whole"), span, ValueDef::Var(tile));
    if let Some(tile) = k.tile_ty_mut(value) {
        tile.partial = Some(partial);
    }
    for s in reads {
        for e in stmt_exprs(k, s) {
            replace(k, e, value, whole);
        }
    }
    let declare = k.stmt(StmtData::Var { value: whole, init: None }, span);
    let (src, dst) = (k.value_ref(value, span), k.value_ref(whole, span));
    let copy = k.stmt(StmtData::Copy { src, dst, attrs: CopyAttrs::default() }, span);
    k.blocks[block].splice(last + 1..last + 1, [declare, copy]);
}

/// Replaces one tile by another.
fn replace(k: &mut Kernel, e: Expr, from: Value, to: Value) {
    match &mut k.exprs[e] {
        ExprData::Ref(v) if *v == from => *v = to,
        ExprData::View(view) if view.base == from => view.base = to,
        _ => {}
    }
    for child in k.children(e) {
        replace(k, child, from, to);
    }
}
