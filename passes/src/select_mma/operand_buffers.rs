//! Operands of products that are computed from memory into a buffer, without a register tile.
//!
//! An operand in registers that goes through a buffer may itself be too large for the registers of the threads. If it
//! is computed from windows of memory alone, one copy computes it from there into the buffer:
//!
//! ```text
//! copy b -> b_read   copy max(b_read, 1.0) -> b_f32   copy b_f32 -> b_shared   ->   copy max(b, 1.0) -> b_shared
//! ```

use crate::analysis::uses::{all_stmts, for_each_ref, place_of, stmt_exprs};
use crate::analysis::views::{has_registers, plain_var};
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{CopyAttrs, Kernel, StmtData, ValueDef};
use tilec_ir::types::ElemRef;

/// Most registers of a thread for a tile on the way to a buffer.
const MOST: u64 = 128;

/// Has the buffer filled by what fills `tile`, an operand of the product `s` alone, if the tile would take too many
/// registers of each of `threads` threads. Returns whether it did.
pub(super) fn fill(k: &mut Kernel, s: Stmt, (tile, buffer): (Value, Value), threads: u64) -> bool {
    let ValueDef::Var(ty) = &k.values[tile].def else { return false };
    let (Some(shape), ElemRef::Known(elem)) = (k.const_shape(&ty.shape), ty.elem) else { return false };
    if elem.words(shape.iter().product::<u64>() / threads.max(1)) <= MOST {
        return false;
    }
    if ty.reg_layout.is_some() || mentions(k, s, tile) > 1 {
        return false;
    }
    let Some(computed) = filled_alone(k, s, tile, s) else { return false };
    let StmtData::Copy { src, .. } = k.stmts[computed] else { return false };
    let mut inputs = Vec::new();
    for_each_ref(k, src, &mut |v| {
        if k.tile_ty(v).is_some_and(|ty| !ty.shape.is_empty()) && matches!(k.values[v].def, ValueDef::Var(_)) {
            inputs.push(v);
        }
    });
    inputs.sort_unstable();
    inputs.dedup();
    let mut loads = Vec::new();
    for &v in &inputs {
        match filled_alone(k, s, v, computed).map(|load| (load, &k.stmts[load])) {
            Some((load, &StmtData::Copy { src, .. })) if !has_registers(k, src) => loads.push((v, load, src)),
            _ => return false,
        }
    }
    let src = k.clone_expr(src, &mut |k, v| {
        let window = loads.iter().find(|&&(own, ..)| own == v)?.2;
        Some(k.copy_expr(window))
    });
    let dst = k.value_ref(buffer, k.expr_spans[src]);
    k.stmts[computed] = StmtData::Copy { src, dst, attrs: CopyAttrs::default() };
    for v in inputs.iter().copied().chain([tile]) {
        k.values[v].def = ValueDef::Let;
    }
    let is_gone = |k: &Kernel, at: Stmt| match k.stmts[at] {
        StmtData::Var { value, .. } => value == tile || inputs.contains(&value),
        _ => loads.iter().any(|&(_, load, _)| load == at),
    };
    for block in k.blocks.keys().collect::<Vec<_>>() {
        let stays = k.blocks[block].iter().copied().filter(|&at| !is_gone(k, at)).collect();
        k.blocks[block] = stays;
    }
    true
}

/// The copy that fills a register tile, if it is the only one and only `reader` reads the tile. Between the copy and
/// the product `s` there may be only fills of register tiles.
fn filled_alone(k: &Kernel, s: Stmt, tile: Value, reader: Stmt) -> Option<Stmt> {
    let mut fills = Vec::new();
    for at in all_stmts(k, k.body) {
        match &k.stmts[at] {
            StmtData::Copy { dst, attrs, .. } if plain_var(k, *dst) == Some(tile) => {
                if *attrs != CopyAttrs::default() {
                    return None;
                }
                fills.push(at);
            }
            StmtData::Var { value, init: None } if *value == tile => {}
            StmtData::Var { value, init: Some(_) } if *value == tile => return None,
            _ if ![reader, s].contains(&at) && mentions(k, at, tile) > 0 => return None,
            _ => {}
        }
    }
    let &[fill] = &fills[..] else { return None };
    let ((block, from), (other, to)) = (place_of(k, fill), place_of(k, s));
    let quiet = |at: Stmt| match k.stmts[at] {
        StmtData::Var { init: None, .. } => true,
        StmtData::Copy { dst, .. } => plain_var(k, dst).is_some(),
        _ => false,
    };
    let between = (block == other && from < to).then(|| &k.blocks[block][from + 1..to])?;
    between.iter().all(|&at| quiet(at)).then_some(fill)
}

/// How often a statement mentions a tile.
fn mentions(k: &Kernel, s: Stmt, v: Value) -> usize {
    let mut found = usize::from(matches!(k.stmts[s], StmtData::Assign { dst, .. } if dst == v));
    let mut see = |e: Expr| for_each_ref(k, e, &mut |own| found += usize::from(own == v));
    stmt_exprs(k, s).into_iter().for_each(&mut see);
    found
}
