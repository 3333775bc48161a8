//! Buffers for the stored elements of operands that are converted on their way to shared memory.
//!
//! TMA does not convert. This is for operands that cannot be converted in registers (`operand_sources`). TMA loads the
//! stored elements into a buffer of their own, and threads convert them on the way to the operand's buffer. So loads
//! run ahead of the products, and threads do not wait for global memory:
//!
//! ```text
//! copy V[..] -> v_stored; copy cast<f16>(v_stored) -> v          // was: copy cast<f16>(V[..]) -> v
//! ```
//!
//! This is not done if shared memory does not suffice for two slots of the stored elements.

use super::operand_sources::{Product, buffers, convertible, fills, unconverted};
use crate::Options;
use crate::analysis::access_width::{known_elem, tile_shape};
use crate::analysis::facts::Facts;
use crate::analysis::uses::{all_stmts, place_of};
use crate::select_mma::k_slices::insert_at;
use crate::tensor_copies;
use tilec_ir::diag::Span;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::types::{Elem, ElemRef, TileTy};
use tilec_ir::typing::resolve_view;

/// An operand whose stored elements get a buffer.
pub(super) struct StoredTile {
    pub(super) at: Span,
    pub(super) buffer: Value,
}

/// Makes such buffers for the operands that cannot be converted in registers, or for `all` operands that are converted.
pub(super) fn add(k: &mut Kernel, options: &Options, products: &[Product], all: bool) -> Vec<StoredTile> {
    let found = wanted(k, options, products, all);
    let own: u64 = found.iter().map(|(buffer, fills)| bits(k, *buffer, fills[0].stored)).sum();
    let all: u64 = all_stmts(k, k.body).into_iter().map(|s| allocated(k, s)).sum();
    if (all + 2 * own) / 8 > options.target.smem_per_block() {
        return Vec::new();
    }
    let add = |(buffer, fills): (Value, Vec<ConvertingFill>)| {
        let at = k.stmt_spans[fills[0].s];
        load_stored(k, buffer, &fills);
        StoredTile { at, buffer }
    };
    found.into_iter().map(add).collect()
}

/// Whether an operand cannot be converted in registers.
pub(super) fn is_for_some(k: &Kernel, options: &Options, products: &[Product]) -> bool {
    !wanted(k, options, products, false).is_empty()
}

fn wanted(k: &Kernel, options: &Options, products: &[Product], all: bool) -> Vec<(Value, Vec<ConvertingFill>)> {
    let mut found = Vec::new();
    for buffer in buffers(k, products) {
        let Some(converted) = converting_fills(k, options, buffer) else { continue };
        if all || convertible(k, options, products, buffer).is_err() {
            found.push((buffer, converted));
        }
    }
    found
}

/// A copy of a tensor's window that converts.
struct ConvertingFill {
    s: Stmt,
    window: Expr,
    stored: Elem,
}

/// The copies that fill a buffer, if all of them convert windows that TMA could load, from one narrower type.
fn converting_fills(k: &Kernel, options: &Options, buffer: Value) -> Option<Vec<ConvertingFill>> {
    let facts = Facts::new(k);
    let found = fills(k, buffer).into_iter().map(|s| {
        let StmtData::Copy { src, dst, ref attrs } = k.stmts[s] else { return None };
        let window = unconverted(k, src)?;
        let from = resolve_view(k, window).filter(|from| k.tensor_ty(from.base).is_some())?;
        let whole = matches!(k.exprs[dst], ExprData::Ref(_)) && *attrs == CopyAttrs::default();
        let fits = tensor_copies::fits_unconverted(k, &facts, options.target, &from, buffer, attrs).is_ok();
        let stored = known_elem(k, from.base);
        (whole && fits && stored.bits() < known_elem(k, buffer).bits()).then_some(ConvertingFill { s, window, stored })
    });
    let found: Vec<ConvertingFill> = found.collect::<Option<_>>()?;
    let first = found.first()?.stored;
    found.iter().all(|fill| fill.stored == first).then_some(found)
}

fn bits(k: &Kernel, buffer: Value, elem: Elem) -> u64 {
    tile_shape(k, buffer).iter().product::<u64>() * u64::from(elem.bits())
}

/// Bits of the buffer that a statement allocates.
fn allocated(k: &Kernel, s: Stmt) -> u64 {
    match &k.stmts[s] {
        StmtData::Alloc { value, over } if over.is_empty() => bits(k, *value, known_elem(k, *value)),
        _ => 0,
    }
}

/// Loads the stored elements to a new buffer, and converts them from there.
fn load_stored(k: &mut Kernel, buffer: Value, fills: &[ConvertingFill]) {
    let span = k.values[buffer].span;
    let name = format!("{}_stored", k.values[buffer].name);
    let shape = tile_shape(k, buffer).iter().map(|&n| k.int(n as i64, span)).collect();
    let elem = ElemRef::Known(fills[0].stored);
    let stored = k.value(&name, span, ValueDef::Smem(TileTy::registers(elem, shape, None)));
    let declared = k.stmt(StmtData::Alloc { value: stored, over: Vec::new() }, span);
    let allocates = |&s: &Stmt| matches!(k.stmts[s], StmtData::Alloc { value, .. } if value == buffer);
    let own = all_stmts(k, k.body).into_iter().find(allocates).expect("bug: a buffer that nothing allocates");
    let place = place_of(k, own);
    insert_at(k, place, vec![declared]);
    for fill in fills {
        let at = k.stmt_spans[fill.s];
        let dst = k.value_ref(stored, at);
        let load = k.stmt(StmtData::Copy { src: fill.window, dst, attrs: CopyAttrs::default() }, at);
        let StmtData::Copy { src: converts, .. } = k.stmts[fill.s] else { unreachable!("a fill is a copy") };
        let read = k.value_ref(stored, k.expr_spans[fill.window]);
        let converted = match k.exprs[converts].clone() {
            ExprData::Cast { elem, .. } => ExprData::Cast { elem, arg: read },
            ExprData::Lookup { table, .. } => ExprData::Lookup { table, index: read },
            _ => unreachable!("the copy converts"),
        };
        let src = k.expr(converted, k.expr_spans[converts]);
        if let StmtData::Copy { src: own, .. } = &mut k.stmts[fill.s] {
            *own = src;
        }
        let place = place_of(k, fill.s);
        insert_at(k, place, vec![load]);
    }
}
