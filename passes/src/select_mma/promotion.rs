//! Promotion of sums of 8-bit floats, of which the instruction keeps fewer bits than an f32 accumulator (`promote`).
//!
//! ```text
//! var part = reg f32[64, 64] = 0
//! part = mma<m64k32_f8>(a, b, part)
//! acc = acc + part
//! ```
//!
//! Each tile of the reduction is summed separately, and added to the accumulator in f32. By default this is done for
//! loop-carried sums that only products change. An accumulator that is reset in each iteration is only as deep as a
//! tile. If the loop also rescales an accumulator (`o = o * a` of attention), its sums stay in the instruction.

use super::warpgroup;
use crate::Cx;
use crate::analysis::uses::{all_stmts, loop_body, path_to, place_of};
use crate::refusal::Refused;
use tilec_ir::atoms::Atom;
use tilec_ir::diag::Span;
use tilec_ir::entities::{Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, Mma, StmtData, ValueDef};
use tilec_ir::ops::Op;
use tilec_ir::typing::{product_depth, resolve_view};

/// The depth of the partial sums of product `s`; `None`: sums stay in the instruction. `Err`: partial sums are
/// required, and a tile of the reduction is deeper.
pub(super) fn parts(k: &Kernel, s: Stmt, (acc, mma): (Value, &Mma), atom: Atom) -> Result<Option<u64>, Refused> {
    let Some(most) = warpgroup::acc_elem(k, acc).and_then(|elem| warpgroup::promoted_of(k, atom, elem)) else {
        return Ok(None);
    };
    let asked = k.schedule.promote.is_some();
    let carried = carried(k, s, acc);
    let depth = product_depth(k, mma).unwrap_or(1);
    match carried {
        Some(true) => {}
        Some(false) if asked => {}
        None if asked && depth > most => {}
        _ => return Ok(None),
    }
    if depth > most { Err(deep(depth, most)) } else { Ok(Some(most)) }
}

/// Why sums cannot be promoted.
pub(super) fn deep(depth: u64, most: u64) -> Refused {
    Refused::from(format!(
        "a tile of the reduction is {depth} deep, and its sums are added to the accumulator every {most} (`promote`)"
    ))
}

/// Whether only products change an accumulator that the innermost loop around the product `s` carries; `None`: no loop
/// carries it.
fn carried(k: &Kernel, s: Stmt, acc: Value) -> Option<bool> {
    let body = path_to(k, s).into_iter().rev().find_map(|(block, index)| loop_body(k, k.blocks[block][index]))?;
    let inside = all_stmts(k, body);
    if inside.iter().any(|&t| matches!(k.stmts[t], StmtData::Var { value, .. } if value == acc)) {
        return None;
    }
    let changes = |t: Stmt| match k.stmts[t] {
        StmtData::Assign { dst, src } => dst == acc && !matches!(k.exprs[src], ExprData::Mma(_)),
        StmtData::Copy { dst, .. } => resolve_view(k, dst).is_some_and(|to| to.base == acc),
        _ => false,
    };
    Some(!inside.into_iter().any(changes))
}

/// Makes the product `s` sum to a separate tile, which is then added to the accumulator.
pub(super) fn sum_separately(k: &mut Kernel, s: Stmt) {
    let StmtData::Assign { dst: acc, src } = k.stmts[s] else { unreachable!("a product is assigned") };
    let ExprData::Mma(mma) = k.exprs[src] else { unreachable!("it is a product") };
    let Some(tile) = k.tile_ty(acc).cloned() else { unreachable!("an accumulator is a tile") };
    let span = k.stmt_spans[s];
    let part = k.value("part", span, ValueDef::Var(tile));
    let (zero, c) = (k.int(0, span), k.value_ref(part, span));
    let begin = k.stmt(StmtData::Var { value: part, init: Some(zero) }, span);
    k.exprs[src] = ExprData::Mma(Mma { c, ..mma });
    k.stmts[s] = StmtData::Assign { dst: part, src };
    let (whole, more) = (k.value_ref(acc, span), k.value_ref(part, span));
    let sum = k.binary(Op::Add, whole, more, span);
    let add = k.stmt(StmtData::Assign { dst: acc, src: sum }, span);
    let (block, index) = place_of(k, s);
    k.blocks[block].insert(index + 1, add);
    k.blocks[block].insert(index, begin);
}

/// Remarks that sums are promoted.
pub(super) fn remark_promoted(k: &Kernel, cx: &mut Cx<'_>, span: Span, (atom, depth): (Atom, u64), acc: Value) {
    let message = format!(
        "`{}` keeps fewer bits than f32: sums of at most {depth} products are added to `{}`",
        atom.row().name,
        k.values[acc].name
    );
    cx.remark_note(span, message, "`promote 0` in the schedule leaves the sums to the instruction");
}

/// Remarks that sums stay in the instruction.
pub(super) fn remark_not_promoted(cx: &mut Cx<'_>, span: Span) {
    let message = "sums of 8-bit floats stay in the instruction, which keeps 14 bits (`promote 0`)".to_owned();
    cx.remark_note(span, message, "for a long reduction, accumulate in a separate tile and add it to an f32 tile");
}
