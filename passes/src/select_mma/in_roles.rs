//! Products in roles of the source, on slots that TMA or threads fill.
//!
//! The roles already define which warps load and which multiply. This file selects the wgmma instruction:
//! both operands are slots that the role has waited for (`a.get`, `transpose(b.get)`), or one is a register tile, the instruction's A, whose
//! other operand is a slot. The statement stays where it is, and so does the written `await`. The proof of roles checks
//! it against the releases of the slots and the next use of the registers.
//!
//! A role's warpgroups share the rows of each of its products, or the columns if it is computed transposed. `warp_tile` is the largest tile of a warpgroup;
//! each product uses as much of it as its accumulator has.

use super::apply_wgmma::{DecidedProduct, apply};
use super::missed_wgmma;
use super::operand_sources::{self, Product};
use super::tiles::{NoTile, Shared, Tiled, WgmmaQuery, short_of};
use super::warpgroup::{self, WgmmaForm};
use crate::Cx;
use crate::analysis::uses::{all_stmts, path_to};
use crate::analysis::views::plain_var;
use crate::assign_layouts::Reduced;
use crate::producer_fills;
use crate::refusal::Refused;
use crate::select_mma::operands::{Operand, acc_shape, operand, scheduled_tile};

use crate::thread_fills::fills_slot;
use tilec_ir::atoms::Inputs;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported};
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::handover::has_roles;
use tilec_ir::kernel::{ExprData, Kernel, Mma, Slot, StmtData, ValueDef};
use tilec_ir::target::{WARP, WARPGROUP};

use tilec_ir::typing::{fixed_shape, product_depth, resolve_view};

/// The way out if warpgroups cannot divide a product.
const TILE: &str = "`warp_tile (64, 64)` in the schedule, say, is what each of them computes, in multiples of 64 rows";

/// Whether a role has register tiles, or copies to anything but slots of channels.
pub(super) fn holds_registers(k: &Kernel, role: Stmt) -> bool {
    let holds = |&s: &Stmt| match &k.stmts[s] {
        StmtData::Var { .. } => true,
        StmtData::Copy { attrs, .. } => attrs.is_by_threads() && !fills_slot(k, s),
        _ => false,
    };
    k.sub_blocks(role).into_iter().any(|b| all_stmts(k, b).iter().any(holds))
}

/// Whether every register tile in a role has a written layout, and its only copies between memories are to slots.
pub(super) fn has_written_layouts(k: &Kernel, role: Stmt) -> bool {
    let open = |&s: &Stmt| match &k.stmts[s] {
        StmtData::Var { value, .. } => k.tile_ty(*value).is_none_or(|t| t.reg_layout.is_none()),
        StmtData::Copy { src, dst, attrs } => {
            let registers = [*src, *dst].into_iter().any(|e| plain_var(k, e).is_some());
            attrs.is_by_threads() && !fills_slot(k, s) && !registers
        }
        _ => false,
    };
    !k.sub_blocks(role).into_iter().any(|b| all_stmts(k, b).iter().any(open))
}

/// The number of threads of a role (of one replica).
pub(super) fn threads_of(k: &Kernel, role: Stmt) -> Option<i64> {
    let StmtData::Role { warps, .. } = k.stmts[role] else { return None };
    k.as_int(warps)?.checked_mul(i64::from(WARP))
}

/// Sets the thread count, if it is not scheduled, to that of the roles with register tiles, if they agree.
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

/// Selects the instruction of products in roles, and the tile of a warpgroup.
pub(super) fn select(k: &mut Kernel, cx: &mut Cx<'_>) -> Result<(), Reported> {
    if !cx.options.target.has_tensor_copies() {
        return Ok(());
    }
    let (mut found, mut reduced) = (Vec::new(), None);
    for s in all_stmts(k, k.body) {
        let StmtData::Assign { dst, src } = k.stmts[s] else { continue };
        let ExprData::Mma(mma) = k.exprs[src] else { continue };
        if !in_role(k, s) || tile_has_layout(k, dst) || mma.atom.is_some_and(|a| !a.row().asynchronous()) {
            continue;
        }
        let Some(registers) = of_slots(k, &mma) else {
            if mma.atom.is_none() {
                continue;
            }
            let message = "this cannot be a wgmma product: an operand is not a slot that copies fill, or a window of one that begins where wgmma can read it";
            return Err(cx.report(Diagnostic::error(codes::NO_ATOM, k.expr_spans[src], message).with_note(
                "both operands are slots (`a.get`) of channels that copies fill, or one is and the other is a register tile",
            )));
        };
        let reduced = reduced.get_or_insert_with(|| Reduced::of(k));
        match product(k, cx, Product { s, src, acc: dst, mma }, (registers, reduced))? {
            Ok(product) => found.push(product),
            Err(refused) if mma.atom.is_some() => {
                let message = format!("this cannot be a wgmma product: {}", refused.why);
                return Err(cx.report(Diagnostic::error(codes::NO_ATOM, k.expr_spans[src], message).with_note(TILE)));
            }
            Err(refused) if registers.is_some() => {
                let message = format!("no wgmma product: {}", refused.why);
                return Err(cx.report(Diagnostic::error(codes::MMA_FORM, k.expr_spans[src], message).with_note(
                    "a product with one operand in registers and the other in a slot must be wgmma; or copy both into register tiles",
                )));
            }
            Err(refused) => missed_wgmma::report_missed(k, cx, missed_wgmma::ONE, &refused, &[s]),
        }
    }
    apply(k, cx, found)
}

/// Whether a statement is in a role.
pub(super) fn in_role(k: &Kernel, s: Stmt) -> bool {
    let path = path_to(k, s);
    path.iter().any(|&(block, index)| matches!(k.stmts[k.blocks[block][index]], StmtData::Role { .. }))
}

/// Refuses a wgmma product on slots outside of roles, because the same threads would also have to fill the slots.
pub(super) fn demand_role(k: &Kernel, cx: &mut Cx<'_>, s: Stmt, src: Expr) -> Result<(), Reported> {
    if in_role(k, s) {
        return Ok(());
    }
    let message = "a wgmma product on slots must be in a role";
    Err(cx.report(Diagnostic::error(codes::NO_ATOM, k.expr_spans[src], message).with_note(
        "one role fills the slots and another multiplies (`role consumer warps 4 { .. }`); or multiply buffers, and the compiler makes the roles",
    )))
}

/// Checks a product on slots with written instruction and stage, outside of roles: warpgroups must be able to divide
/// its accumulator.
pub(super) fn check_scheduled(
    k: &mut Kernel,
    cx: &mut Cx<'_>,
    (s, src, acc): (Stmt, Expr, Value),
    mma: Mma,
) -> Result<(), Reported> {
    if tile_has_layout(k, acc) {
        return Ok(());
    }
    if k.schedule.warp_tile.is_none() {
        let span = k.expr_spans[src];
        let message = "a product with a written stage needs a `warp_tile` in the schedule";
        return Err(cx.report(Diagnostic::error(codes::BAD_SCHEDULE, span, message).with_note(TILE)));
    }
    if k.schedule.threads.is_none() {
        k.schedule.threads = Some(k.int(i64::from(WARPGROUP * WARP), k.name_span));
    }
    let [a, b] = [mma.a, mma.b].map(|e| plain_var(k, e).is_some());
    let registers = (a || b).then_some(b);
    match product(k, cx, Product { s, src, acc, mma }, (registers, &Reduced::of(k)))? {
        Ok(_) => Ok(()),
        Err(refused) => {
            let message = format!("this cannot be a wgmma product: {}", refused.why);
            Err(cx.report(Diagnostic::error(codes::NO_ATOM, k.expr_spans[src], message).with_note(TILE)))
        }
    }
}

fn tile_has_layout(k: &Kernel, acc: Value) -> bool {
    k.tile_ty(acc).is_none_or(|t| t.reg_layout.is_some())
}

/// Whether both operands are slots of channels or buffers that the role's own threads fill, or the instruction's A is a
/// register tile.
pub(super) fn in_slots(k: &Kernel, mma: &Mma) -> bool {
    let base = |e: Expr| resolve_view(k, e).map(|v| v.base);
    let slot = |e: Expr| base(e).is_some_and(|v| matches!(k.values[v].def, ValueDef::Channel { .. }));
    let own = |e: Expr| {
        base(e).is_some_and(|v| matches!(k.values[v].def, ValueDef::Smem(_)) && producer_fills::by_threads(k, v))
    };
    let (a, b) = if mma.swap { (mma.b, mma.a) } else { (mma.a, mma.b) };
    let decided = |e: Expr| slot(e) || own(e);
    let in_roles = slot(a) || slot(b) || has_roles(k);
    in_roles && (decided(a) || plain_var(k, a).is_some()) && decided(b)
}

/// `Some` if the operands are slots that copies fill, or windows that wgmma reads, or one is and the other is a register tile; the inner
/// value says whether the second operand is the register tile.
fn of_slots(k: &Kernel, mma: &Mma) -> Option<Option<bool>> {
    let slot = |e: Expr| {
        let second = e == mma.b;
        resolve_view(k, e).is_some_and(|v| {
            let is_read = fixed_shape(k, e).is_some() || operand_sources::windows::readable(k, mma, second).is_ok();
            v.slot == Some(Slot::Get)
                && is_read
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

/// How warpgroups compute a product, or why they cannot. `registers`: the second operand (true) or the first is in
/// registers; `reduced`: the reduced tiles of the kernel.
fn product(
    k: &Kernel,
    cx: &mut Cx<'_>,
    product: Product,
    (registers, reduced): (Option<bool>, &Reduced),
) -> Result<Result<DecidedProduct, Refused>, Reported> {
    let Product { acc, mma, .. } = product;
    assert_eq!(k.exprs[mma.c], ExprData::Ref(acc), "bug: a product that does not add to what it is assigned to");
    let (a, b) = (operand(k, cx, mma.a, 1)?, operand(k, cx, mma.b, 0)?);
    Ok(decide(k, cx, product, (&a, &b), (registers, reduced)))
}

fn decide(
    k: &Kernel,
    cx: &Cx<'_>,
    product: Product,
    (a, b): (&Operand, &Operand),
    (registers, reduced): (Option<bool>, &Reduced),
) -> Result<DecidedProduct, Refused> {
    let (target, Product { acc, mma, .. }) = (cx.options.target, product);
    let (Some(shape), Some(elem)) = (acc_shape(k, acc), warpgroup::acc_elem(k, acc)) else {
        return Err("the accumulator has no fixed shape".into());
    };
    let atom = mma.atom.or_else(|| warpgroup::atom(target, (Inputs { a: a.elem, b: b.elem }, elem)));
    let atom = atom.ok_or_else(|| format!("{} has none for these types", target.name()))?;
    if mma.atom.is_none() && warpgroup::promoted_of(k, atom, elem).is_some() {
        return Err(
            "in hand-written roles the program itself promotes sums of 8-bit floats: name the instruction, or write `promote 0`"
                .into(),
        );
    }
    if mma.swap && registers == Some(false) {
        return Err(Refused::by_request("`swap` is written, and the first operand is in registers"));
    }
    let along = |o: &Operand| o.space.in_registers() || o.k_contiguous || warpgroup::reads_both_orders(o.elem);
    if !along(a) || !along(b) {
        return Err("slots of other than 16 bits must be contiguous along the reduction".into());
    }
    let groups = u64::from(WARPGROUP * WARP);
    let threads = u64::from(crate::roles::threads_of(k));
    if threads == 0 || !threads.is_multiple_of(groups) {
        return Err(Refused::by_request(format!(
            "the role has {threads} threads, which is not a multiple of 128 (a warpgroup)"
        )));
    }
    let (parts, (bm, bn)) = (threads / groups, shape);
    let depth = product_depth(k, &mma).expect("an operand has extents");
    let step = 1u64 << atom.row().log2_shape.2;
    if !depth.is_multiple_of(step) {
        return Err(format!("its reduction is {depth} deep, which is not a multiple of {step}").into());
    }
    let reduced = reduced.along(&[bm, bn]);
    let scheduled = match scheduled_tile(k) {
        Some(None) => return Err(Refused::by_request("the warp tile is not constant")),
        scheduled => scheduled.flatten().map(|(wm, wn)| (wm.min(bm), wn.min(bn))),
    };
    let way = WgmmaForm { swap: registers.unwrap_or(mma.swap), registers: registers.is_some() };
    let (fixed, block, written) = (mma.swap || mma.atom.is_some(), (bm, bn, depth), mma.atom.is_some());
    let wanted =
        WgmmaQuery { atom, form: way, fixed, written, block, acc: elem, scheduled, promoted: None, reduced: &reduced };
    let mut short = None;
    for shared in Shared::all(true).filter(|s| s.groups == parts && !s.beside) {
        match wanted.tiled(k, shared) {
            Ok(Tiled { tile, form: way, .. }) => {
                let operands = if way.registers { "one operand in registers" } else { "shared memory" };
                let why = if way.swap { ", transposed" } else { "" }.to_owned();
                return Ok(DecidedProduct { product, atom, form: way, shape, tile, repeats: 1, operands, why });
            }
            Err(NoTile::Instruction { wanted, has }) => short = short.or(Some((wanted, has))),
            Err(NoTile::Shape | NoTile::Deep { .. }) => {}
        }
    }
    if let Some((wanted, has)) = short {
        return Err(short_of(wanted, has));
    }
    let what = format!("a multiple of 64 rows and {}, or the same transposed", crate::analysis::wgmma::COLUMN_COUNTS);
    Err(match (scheduled, &reduced[..]) {
        (Some((wm, wn)), _) => Refused::by_request(format!(
            "{bm}x{bn} cannot be divided into tiles of {wm}x{wn} (`warp_tile`) for {parts} warpgroup(s) of the role; each computes {what}"
        )),
        (None, []) => format!("{bm}x{bn} cannot be divided among {parts} warpgroup(s) of the role; each computes {what}").into(),
        (None, _) => format!(
            "{bm}x{bn} cannot be divided among {parts} warpgroup(s) of the role so that a warp has all elements of a reduced row; each computes {what}"
        )
        .into(),
    })
}
