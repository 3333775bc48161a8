//! Operands of products that are computed in registers.
//!
//! In `o = mma(p, v, o)` with a register tile `p` and a buffer `v`, `p` is copied to a tile in the layout of the instruction's operand, of which
//! slices of the reduction take windows. If the layouts differ, lanes exchange elements. If they are the same, as for 16-bit
//! operands that were accumulators of `m16n8` products, registers are renamed.
//!
//! ```text
//! copy p -> p_operand
//! for kk in 0..64 step 16 unroll {
//!     copy p_operand[0.., kk..] -> p_frag
//!     copy v[kk.., 0..] -> v_frag
//!     o = mma<m16n8k16>(p_frag, v_frag, o)
//! }
//! ```
//!
//! If lanes repeat each other's elements of an operand (`m8n8k4`, scalar products), a thread would have to hold many times its own elements. Then
//! the operand goes through a buffer. If both operands are in registers, they stay there as long as a thread has room for them.

use super::atoms::accumulator_registers;
use crate::Cx;
use crate::analysis::uses::{for_each_ref, place_of};
use crate::analysis::views::memory_views;
use crate::select_mma::k_slices::{declare, declare_beside, insert_at};
use crate::select_mma::operands::{known, operand_name};
use tilec_ir::atoms::{AtomRow, Bit, Fragment, Inputs};
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, Mma, StmtData, ValueDef};
use tilec_ir::target::{REGISTERS_PER_THREAD, WARP};
use tilec_ir::types::{Elem, ElemRef, TileTy};
use tilec_ir::typing::{fixed_shape, resolve_view, type_of};

/// Computes operands that are expressions to register tiles, in front of the product `s`.
pub(super) fn name(k: &mut Kernel, s: Stmt, mma: &mut Mma) {
    let [a, b, c] = [mma.a, mma.b, mma.c].map(|e| fixed_shape(k, e));
    // The extents of windows follow from the other operand and the sums.
    let depth = a.as_ref().and_then(|a| a.last()).or(b.as_ref().and_then(|b| b.first())).copied();
    let Some((depth, &[.., rows, columns])) = depth.zip(c.as_deref()) else { return };
    for (e, shape) in [(&mut mma.a, [rows, depth]), (&mut mma.b, [depth, columns])] {
        if resolve_view(k, *e).is_none() {
            *e = named(k, s, *e, shape);
        }
    }
}

/// A register tile of these extents for the value of an expression, transposed if the whole expression is.
fn named(k: &mut Kernel, s: Stmt, e: Expr, [rows, columns]: [u64; 2]) -> Expr {
    let span = k.expr_spans[e];
    if let ExprData::Transpose(arg) = k.exprs[e] {
        let arg = named(k, s, arg, [columns, rows]);
        return k.expr(ExprData::Transpose(arg), span);
    }
    let elem = type_of(k, e).ok().and_then(|t| known(t.elem())).expect("an operand has an element type");
    let shape = fixed_shape(k, e).unwrap_or_else(|| vec![rows, columns]);
    let name = format!("{}_{}", first_tile(k, e), elem.name());
    // A tile that is computed from buffers belongs to one iteration, so `expand` may double it.
    let tile = match memory_views(k, e).is_empty() {
        true => declare(k, s, &name, elem, &shape, span),
        false => declare_beside(k, s, &name, elem, &shape, span),
    };
    // The copy converts like a cast between floats or between integers.
    let class = |arg: Expr| type_of(k, arg).ok().and_then(|t| known(t.elem())).map(Elem::class);
    let source = match k.exprs[e] {
        ExprData::Cast { arg, .. } if class(arg) == Some(elem.class()) => arg,
        _ => e,
    };
    copy(k, s, source, tile);
    k.value_ref(tile, span)
}

/// The name of the first tile that an expression mentions.
fn first_tile(k: &Kernel, e: Expr) -> String {
    let mut name = None;
    for_each_ref(k, e, &mut |v| {
        let tile = k.tile_ty(v).is_some() || matches!(k.values[v].def, ValueDef::Let);
        name = name.take().or_else(|| tile.then(|| k.values[v].name.clone()));
    });
    name.unwrap_or_else(|| "operand".to_owned())
}

/// Whether the fragments of an `mma.sync` operand (the instruction's first or second) can come from a register tile: no
/// lane repeats another lane's elements.
pub(crate) fn keeps(row: &AtomRow, first: bool) -> bool {
    let variants = if first { row.a } else { row.b };
    row.sums() && variants.iter().all(|f| !f.lane.contains(&Bit::Same))
}

/// Whether a thread has room for both operands of a product in registers, next to its sums: operands of which lanes
/// repeat elements may be many times the thread's own. `warp`: the instruction's rows, columns and depth in a warp.
pub(super) fn room(
    row: &AtomRow,
    (inputs, acc): (Inputs, Elem),
    swap: bool,
    (rows, columns, depth): (u64, u64, u64),
) -> bool {
    if keeps(row, true) && keeps(row, false) {
        return true;
    }
    let [first, second] = if swap { [inputs.b, inputs.a] } else { [inputs.a, inputs.b] };
    let words = |fragments: &[Fragment], elem: Elem, lines: u64| {
        let repeated = |f: &Fragment| f.lane.iter().filter(|bit| **bit == Bit::Same).count();
        let repeats = 1u64 << fragments.iter().map(repeated).max().unwrap_or(0);
        elem.size().bytes_of(lines.saturating_mul(depth).saturating_mul(repeats) / u64::from(WARP)) / 4
    };
    let sums = accumulator_registers(rows, columns, acc.size());
    words(row.a, first, rows) + words(row.b, second, columns) + sums <= u64::from(MAX_OPERANDS)
}

/// Registers of a thread for both operands and the sums of a product; the others are addresses and copies.
const MAX_OPERANDS: u32 = REGISTERS_PER_THREAD / 4 * 3;

/// The register tile `e` as source of fragments for the product `s`: a tile in registers if `keeps`, else a buffer.
pub(super) fn operand(k: &mut Kernel, cx: &mut Cx<'_>, s: Stmt, e: Expr, elem: Elem, keeps: bool) -> Expr {
    let span = k.expr_spans[e];
    let name = operand_name(k, e);
    let inner = match k.exprs[e] {
        ExprData::Transpose(inner) if !keeps => inner,
        _ => e,
    };
    let shape = fixed_shape(k, inner).expect("the verifier gives a register tile extents");
    let to = if keeps {
        declare(k, s, &format!("{name}_operand"), elem, &shape, span)
    } else {
        let message =
            format!("`{name}` is multiplied from shared memory: in its fragment several lanes hold the same element");
        cx.remark(span, message);
        buffer(k, s, &format!("{name}_shared"), elem, &shape)
    };
    copy(k, s, inner, to);
    let named = k.value_ref(to, span);
    if inner == e { named } else { k.expr(ExprData::Transpose(named), span) }
}

/// Declares a buffer in front of the outermost statement around `s`.
fn buffer(k: &mut Kernel, s: Stmt, name: &str, elem: Elem, shape: &[u64]) -> Value {
    let span = k.stmt_spans[s];
    let shape = shape.iter().map(|&x| k.int(x as i64, span)).collect();
    let ty = TileTy::registers(ElemRef::Known(elem), shape, None);
    let value = k.value(name, span, ValueDef::Smem(ty));
    let decl = k.stmt(StmtData::Alloc { value, over: Vec::new() }, span);
    crate::select_mma::k_slices::insert_before_outermost(k, s, decl);
    value
}

/// Copies `e` to a tile, in front of the statement `s`.
fn copy(k: &mut Kernel, s: Stmt, e: Expr, to: Value) {
    let dst = k.value_ref(to, k.expr_spans[e]);
    let copy = k.stmt(StmtData::Copy { src: e, dst, attrs: CopyAttrs::default() }, k.expr_spans[e]);
    let place = place_of(k, s);
    insert_at(k, place, vec![copy]);
}

/// Whether an operand of a product is computed, not read from memory.
pub(super) fn computed(k: &Kernel, e: Expr) -> bool {
    resolve_view(k, e).is_none_or(|v| v.space(k).in_registers())
}
