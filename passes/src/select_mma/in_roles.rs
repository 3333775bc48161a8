//! Products in roles by hand, on slots that tensor copies or threads fill.
//!
//! Who writes roles has said who loads and who multiplies; what is left to decide is the instruction, that of warpgroups, wherever the product stands:
//! both operands are slots that the role has waited for (`a.get`, `transpose(b.get)`), or one is a register tile, the instruction's A, whose
//! other operand is a slot. The statement stays as it is, and so does the `await` that its author wrote: the proof of roles holds
//! it against the releases of the slots and the next use of the registers.
//!
//! A role's warpgroups share the rows of each of its products, or the columns where it is computed transposed. `warp_tile` is the largest tile of one of them;
//! each product has as much of it as its accumulator.

use super::lost;
use super::warpgroup::{self, Way};
use crate::Cx;
use crate::analysis::uses::{all_stmts, path_to};
use crate::analysis::views::plain_var;
use crate::assign_layouts::Reduced;
use crate::assign_layouts::warpgroup_accumulator;
use crate::refused::Refused;
use crate::select_mma::operands::{Operand, acc_shape, operand, scheduled_tile};

use crate::thread_fills::fills_slot;
use tilec_ir::atoms::{Atom, Inputs};
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported};
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, Mma, Slot, StmtData, ValueDef};
use tilec_ir::target::{WARP, WARPGROUP};

use tilec_ir::typing::{fixed_shape, resolve_view};

/// What a person can do where warpgroups do not share out a product.
const TILE: &str = "`warp_tile (64, 64)` in the schedule, say, is what each of them computes, in multiples of 64 rows";

/// Whether a role holds register tiles, or copies other than into slots of channels.
pub(super) fn holds_registers(k: &Kernel, role: Stmt) -> bool {
    let holds = |&s: &Stmt| match &k.stmts[s] {
        StmtData::Var { .. } => true,
        StmtData::Copy { attrs, .. } => attrs.is_by_threads() && !fills_slot(k, s),
        _ => false,
    };
    k.sub_blocks(role).into_iter().any(|b| all_stmts(k, b).iter().any(holds))
}

/// The threads of a role (of a replica).
pub(super) fn threads_of(k: &Kernel, role: Stmt) -> Option<i64> {
    let StmtData::Role { warps, .. } = k.stmts[role] else { return None };
    k.as_int(warps)?.checked_mul(i64::from(WARP))
}

/// Without a scheduled thread count, that of the roles that hold register tiles, where they agree.
pub(super) fn threads(k: &mut Kernel) {
    if k.schedule.threads.is_some() {
        return;
    }
    let roles = all_stmts(k, k.body).into_iter().filter(|&s| matches!(k.stmts[s], StmtData::Role { .. }));
    let own: Option<Vec<i64>> = roles.filter(|&s| holds_registers(k, s)).map(|s| threads_of(k, s)).collect();
    if let Some(&[first, ref rest @ ..]) = own.as_deref()
        && rest.iter().all(|&t| t == first)
    {
        k.schedule.threads = Some(k.int(first, k.name_span));
    }
}

/// A product whose instruction is found.
pub(super) struct Product {
    s: Stmt,
    src: Expr,
    mma: Mma,
    atom: Atom,
    way: Way,
    shape: (u64, u64),
    /// What a warpgroup computes of it.
    tile: (u64, u64),
}

/// Chooses the instruction of products in roles, and the tile of a warpgroup.
pub(super) fn select(k: &mut Kernel, cx: &mut Cx<'_>) -> Result<(), Reported> {
    if !cx.options.target.has_tensor_copies() {
        return Ok(());
    }
    let (mut found, mut reduced) = (Vec::new(), None);
    for s in all_stmts(k, k.body) {
        let StmtData::Assign { dst, src } = k.stmts[s] else { continue };
        let ExprData::Mma(mma) = k.exprs[src] else { continue };
        if !in_role(k, s) || laid_out(k, dst) || mma.atom.is_some_and(|a| !a.row().asynchronous()) {
            continue;
        }
        let Some(registers) = in_slots(k, &mma) else {
            if mma.atom.is_none() {
                continue;
            }
            let message = "this cannot be a product of warpgroups: an operand is no whole slot that copies fill";
            return Err(cx.report(Diagnostic::error(codes::NO_ATOM, k.expr_spans[src], message).with_note(
                "both operands are slots (`a.get`) of channels that copies fill, or one is and the other is a register tile",
            )));
        };
        let reduced = reduced.get_or_insert_with(|| Reduced::of(k));
        match product(k, cx, (s, src, dst), mma, (registers, reduced))? {
            Ok(product) => found.push(product),
            Err(refused) if mma.atom.is_some() => {
                let message = format!("this cannot be a product of warpgroups: {}", refused.why);
                return Err(cx.report(Diagnostic::error(codes::NO_ATOM, k.expr_spans[src], message).with_note(TILE)));
            }
            Err(refused) if registers.is_some() => {
                let message = format!("no product of warpgroups (`wgmma`): {}", refused.why);
                return Err(cx.report(Diagnostic::error(codes::MMA_FORM, k.expr_spans[src], message).with_note(
                    "of a product with one operand in registers and the other in a slot the instruction is that of warpgroups; or copy both into register tiles",
                )));
            }
            Err(refused) => lost::say(k, cx, lost::ONE, &refused, &[s]),
        }
    }
    settle(k, cx, found)
}

/// Writes down the instructions of products, and the tile of a warpgroup.
pub(super) fn settle(k: &mut Kernel, cx: &mut Cx<'_>, found: Vec<Product>) -> Result<(), Reported> {
    if found.is_empty() {
        return Ok(());
    }
    if let Some(e) = k.schedule.k_warps.filter(|&e| k.as_int(e) != Some(1)) {
        let message = "`k_warps` in a kernel whose roles multiply by warpgroups: each has the whole reduction";
        let d = Diagnostic::error(codes::BAD_SCHEDULE, k.expr_spans[e], message);
        return Err(cx.report(d.with_note("leave `k_warps` out, or deal the reduction out to roles by hand")));
    }
    if k.schedule.warp_tile.is_none() {
        let largest = |of: fn(&Product) -> u64| found.iter().map(of).max().unwrap_or(1);
        let (wm, wn) = (largest(|p| p.tile.0), largest(|p| p.tile.1));
        let span = k.name_span;
        k.schedule.warp_tile = Some((k.int(wm as i64, span), k.int(wn as i64, span)));
    }
    let scheduled = scheduled_tile(k).flatten().unwrap_or((1, 1));
    for p in found {
        if let Some((warps, first)) = misplaced(k, p.s) {
            let message =
                format!("the warps of this role begin with the block's warp {first}, in the middle of a warpgroup");
            let d = Diagnostic::error(codes::BAD_ROLE, k.expr_spans[warps], message);
            return Err(cx.report(d.with_note(
                "a role whose products are those of warpgroups begins at a multiple of 4 warps: give the roles in front of it as many, or put it in front",
            )));
        }
        let span = k.stmt_spans[p.s];
        let decided = Mma { atom: Some(p.atom), swap: p.way.swap, ..p.mma };
        if cut(scheduled, p.shape) != p.tile && !own_layout(k, &p, &decided) {
            let ((m, n), (wm, wn)) = (p.shape, p.tile);
            let message = format!(
                "products of these roles share their accumulators out differently: a warpgroup has {wm}x{wn} of this one of {m}x{n}"
            );
            let d = Diagnostic::error(codes::WARP_TILE, span, message);
            return Err(
                cx.report(d.with_note("one `warp_tile` is for all: compute all of them transposed (`swap`), or none"))
            );
        }
        if p.mma.atom.is_none() {
            let where_from = if p.way.registers { "one operand in registers" } else { "shared memory" };
            let turned = if p.way.swap { ", transposed" } else { "" };
            let ((wm, wn), name) = (p.tile, p.atom.row().name);
            cx.remark(span, format!("`{name}` on {where_from}, {wm}x{wn} of a warpgroup of 128 threads{turned}"));
        }
        k.exprs[p.src] = ExprData::Mma(decided);
    }
    Ok(())
}

/// Gives an accumulator of which a warpgroup has another tile than the schedule's a layout that says so; `false`: an operand in registers would not go with it.
fn own_layout(k: &mut Kernel, p: &Product, decided: &Mma) -> bool {
    let StmtData::Assign { dst, .. } = k.stmts[p.s] else { unreachable!("a product is assigned") };
    let layout = warpgroup_accumulator(k, dst, decided, p.tile).filter(|_| !p.way.registers);
    let Some((layout, tile)) = layout.zip(k.tile_ty_mut(dst)) else { return false };
    tile.reg_layout.get_or_insert(layout);
    true
}

/// The warps of the role of a statement, and the first of them, where that is no first one of a group.
fn misplaced(k: &Kernel, s: Stmt) -> Option<(Expr, i64)> {
    let path = path_to(k, s);
    let warps = |s: Stmt| match k.stmts[s] {
        StmtData::Role { warps, replicas, .. } => Some((warps, replicas)),
        _ => None,
    };
    let all = |s: Stmt| {
        let (warps, replicas) = warps(s)?;
        k.as_int(warps)?.checked_mul(replicas.map_or(Some(1), |e| k.as_int(e))?)
    };
    let (at, (own, _)) = path.iter().find_map(|&(block, i)| Some(((block, i), warps(k.blocks[block][i])?)))?;
    let before = k.blocks[at.0][..at.1].iter().filter_map(|&s| all(s)).sum::<i64>();
    (before % i64::from(WARPGROUP) != 0).then_some((own, before))
}

/// A tile that is no larger than the accumulator.
fn cut((wm, wn): (u64, u64), (bm, bn): (u64, u64)) -> (u64, u64) {
    (wm.min(bm), wn.min(bn))
}

/// Whether a statement stands in a role.
pub(super) fn in_role(k: &Kernel, s: Stmt) -> bool {
    let path = path_to(k, s);
    path.iter().any(|&(block, index)| matches!(k.stmts[k.blocks[block][index]], StmtData::Role { .. }))
}

/// Refuses a product of warpgroups on slots that stands in no role: who fills slots beside it would be the same threads.
pub(super) fn demand_role(k: &Kernel, cx: &mut Cx<'_>, s: Stmt, src: Expr) -> Result<(), Reported> {
    if in_role(k, s) {
        return Ok(());
    }
    let message = "a product of warpgroups on slots stands in a role";
    Err(cx.report(Diagnostic::error(codes::NO_ATOM, k.expr_spans[src], message).with_note(
        "one role fills the slots and another multiplies (`role consumer warps 4 { .. }`); or multiply buffers, and the compiler makes the roles",
    )))
}

/// Checks a product on slots whose instruction and stage are written, and that stands in no role yet: the warpgroups share out its sums.
pub(super) fn check_scheduled(
    k: &mut Kernel,
    cx: &mut Cx<'_>,
    (s, src, acc): (Stmt, Expr, Value),
    mma: Mma,
) -> Result<(), Reported> {
    if laid_out(k, acc) {
        return Ok(());
    }
    if k.schedule.warp_tile.is_none() {
        let span = k.expr_spans[src];
        let message =
            "a product with a stage that is written is shared out as the schedule says, which has no `warp_tile`";
        return Err(cx.report(Diagnostic::error(codes::BAD_SCHEDULE, span, message).with_note(TILE)));
    }
    if k.schedule.threads.is_none() {
        k.schedule.threads = Some(k.int(i64::from(WARPGROUP * WARP), k.name_span));
    }
    let [a, b] = [mma.a, mma.b].map(|e| plain_var(k, e).is_some());
    let registers = (a || b).then_some(b);
    match product(k, cx, (s, src, acc), mma, (registers, &Reduced::of(k)))? {
        Ok(_) => Ok(()),
        Err(refused) => {
            let message = format!("this cannot be a product of warpgroups: {}", refused.why);
            Err(cx.report(Diagnostic::error(codes::NO_ATOM, k.expr_spans[src], message).with_note(TILE)))
        }
    }
}

fn laid_out(k: &Kernel, acc: Value) -> bool {
    k.tile_ty(acc).is_none_or(|t| t.reg_layout.is_some())
}

/// `Some` if the operands are whole slots that copies fill, or one is and the other is a register tile: inside, whether that is the second one.
fn in_slots(k: &Kernel, mma: &Mma) -> Option<Option<bool>> {
    let slot = |e: Expr| {
        resolve_view(k, e).is_some_and(|v| {
            let whole = v.slot == Some(Slot::Get) && fixed_shape(k, e).is_some();
            whole
                && matches!(k.values[v.base].def, ValueDef::Channel { .. })
                && (k.fills_by_tensor_copies(v.base) || k.fills_by_threads(v.base))
        })
    };
    match (slot(mma.a), slot(mma.b)) {
        (true, true) => Some(None),
        (false, true) if plain_var(k, mma.a).is_some() => Some(Some(false)),
        (true, false) if plain_var(k, mma.b).is_some() => Some(Some(true)),
        _ => None,
    }
}

/// How warpgroups compute a product; inside, why they do not. `registers`: the second operand is in registers, or the first; `reduced`:
/// the tiles of the kernel that are reduced.
pub(super) fn product(
    k: &mut Kernel,
    cx: &mut Cx<'_>,
    (s, src, acc): (Stmt, Expr, Value),
    mma: Mma,
    (registers, reduced): (Option<bool>, &Reduced),
) -> Result<Result<Product, Refused>, Reported> {
    assert_eq!(k.exprs[mma.c], ExprData::Ref(acc), "bug: a product that does not add to what it is assigned to");
    let (a, b) = (operand(k, cx, mma.a, 1)?, operand(k, cx, mma.b, 0)?);
    Ok(way(k, cx, acc, &mma, (&a, &b), (registers, reduced)).map(|(atom, way, shape, tile)| Product {
        s,
        src,
        mma,
        atom,
        way,
        shape,
        tile,
    }))
}

type Chosen = (Atom, Way, (u64, u64), (u64, u64));

fn way(
    k: &Kernel,
    cx: &Cx<'_>,
    acc: Value,
    mma: &Mma,
    (a, b): (&Operand, &Operand),
    (registers, reduced): (Option<bool>, &Reduced),
) -> Result<Chosen, Refused> {
    let target = cx.options.target;
    let (Some(shape), Some(elem)) = (acc_shape(k, acc), warpgroup::acc_elem(k, acc)) else {
        return Err("the accumulator has no fixed shape".into());
    };
    let atom = mma.atom.or_else(|| warpgroup::atom(target, (Inputs { a: a.elem, b: b.elem }, elem)));
    let atom = atom.ok_or_else(|| format!("{} has none for these types", target.name()))?;
    if mma.atom.is_none() && warpgroup::promoted_of(k, atom, elem).is_some() {
        return Err(
            "in roles by hand the program itself adds sums of 8-bit floats up in parts (`promote`): name the instruction, or write `promote 0`"
                .into(),
        );
    }
    if mma.swap && registers == Some(false) {
        return Err(Refused::asked("`swap` is written, and the first operand is in registers"));
    }
    let along = |o: &Operand| o.space.in_registers() || o.k_contiguous || warpgroup::reads_both_orders(o.elem);
    if !along(a) || !along(b) {
        return Err("slots of other than 16 bits must be contiguous along the reduction".into());
    }
    let groups = u64::from(WARPGROUP * WARP);
    let threads = u64::from(crate::roles::threads_of(k));
    if threads == 0 || !threads.is_multiple_of(groups) {
        return Err(Refused::asked(format!("the role has {threads} threads, which are no warpgroups of 128")));
    }
    let (parts, (bm, bn)) = (threads / groups, shape);
    let depth = fixed_shape(k, mma.a).expect("an operand has extents")[1];
    let step = 1u64 << atom.row().log2_shape.2;
    if !depth.is_multiple_of(step) {
        return Err(format!("its reduction is {depth} deep, which is no multiple of {step}").into());
    }
    let reduced = reduced.along(&[bm, bn]);
    let swap = registers.unwrap_or(mma.swap);
    let ways = if registers.is_some() || mma.swap || mma.atom.is_some() { vec![swap] } else { vec![false, true] };
    let scheduled = match scheduled_tile(k) {
        Some(None) => return Err(Refused::asked("the warp tile is not constant")),
        scheduled => scheduled.flatten().map(|t| cut(t, shape)),
    };
    for swap in ways {
        let way = Way { swap, registers: registers.is_some() };
        let own = scheduled.unwrap_or(if swap { (bm, bn / parts) } else { (bm / parts, bn) });
        // It may be found to go the other way round alone.
        let found = warpgroup::tile(atom, Some(own), (bm, bn, depth), way, (elem, 1), &reduced);
        let fits = found.is_some_and(|(_, found)| found == swap) && own.0 > 0 && own.1 > 0;
        if fits && bm / own.0 * (bn / own.1) == parts {
            let assembles = warpgroup::assembles(k, shape, own, way, elem);
            if let (Err((wanted, has)), None) = (assembles, mma.atom) {
                return Err(Refused::room(format!(
                    "an instruction of so many columns takes {wanted} registers, and threads of so many warps start with {has}"
                )));
            }
            return Ok((atom, way, shape, own));
        }
    }
    let what = format!("64 rows or a multiple, and {}, or transposed", crate::analysis::wgmma::COLUMN_COUNTS);
    Err(match (scheduled, &reduced[..]) {
        (Some((wm, wn)), _) => Refused::asked(format!(
            "{parts} warpgroup(s) of the role do not share out {bm}x{bn} in tiles of {wm}x{wn} (`warp_tile`); each computes {what}"
        )),
        (None, []) => format!("{parts} warpgroup(s) of the role do not share out {bm}x{bn}; each computes {what}").into(),
        (None, _) => format!(
            "{parts} warpgroup(s) of the role do not share out {bm}x{bn} so that a warp has all elements along what is reduced; each computes {what}"
        )
        .into(),
    })
}
