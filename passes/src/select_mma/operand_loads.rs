//! Loads of the inputs of a computed operand: each buffer to its own register tile.
//!
//! A computed operand may read several windows of shared memory with different orders and widths, such as weights and a
//! row of scales. Each of them is first copied to a register tile:
//!
//! ```text
//! copy w -> w_read
//! copy s -> s_read
//! copy cast<f32>(w_read) * s_read -> b
//! ```
//!
//! So each is read with its full width, broadcast inputs are read once, and layouts are inferred for each. Operands
//! whose only shared-memory inputs are broadcast do not change.

use crate::analysis::access_width::known_elem;
use crate::analysis::uses::{all_stmts, place_of};
use crate::analysis::views::plain_var;
use crate::select_mma::k_slices::{declare_beside, insert_at};
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, Mma, StmtData, ValueDef};
use tilec_ir::typing::{fixed_shape, resolve_view};

/// Loads the inputs of a product's computed operands to tiles of their own, in front of the statements that compute
/// them.
pub(super) fn write_out(k: &mut Kernel, mma: &Mma) {
    for e in [mma.a, mma.b] {
        let inner = match k.exprs[e] {
            ExprData::Transpose(inner) => inner,
            _ => e,
        };
        let Some(tile) = plain_var(k, inner) else { continue };
        for s in all_stmts(k, k.body) {
            if let Some(src) = computes(k, s, tile) {
                split(k, s, src);
            }
        }
    }
}

/// The expression by which a statement computes a register tile.
fn computes(k: &Kernel, s: Stmt, tile: Value) -> Option<Expr> {
    match k.stmts[s] {
        StmtData::Copy { src, dst, ref attrs } => {
            let plain = attrs.is_by_threads() && !attrs.keep && attrs.when.is_none() && attrs.fill.is_none();
            (plain && plain_var(k, dst) == Some(tile)).then_some(src)
        }
        StmtData::Assign { dst, src } => (dst == tile).then_some(src),
        StmtData::Var { value, init } => init.filter(|_| value == tile),
        _ => None,
    }
}

/// Copies the windows of shared memory in `e` to tiles in front of `s`, unless `e` is a single window, possibly
/// converted.
fn split(k: &mut Kernel, s: Stmt, e: Expr) {
    if window(k, converted(k, e)).is_some() {
        return;
    }
    let mut windows = Vec::new();
    find(k, e, &mut windows);
    // Broadcast rows next to register tiles are read where they are needed, because tiles for them would take
    // registers.
    let shape = fixed_shape(k, e);
    if shape.is_none() || !windows.iter().any(|&at| fixed_shape(k, at) == shape) {
        return;
    }
    for at in windows {
        let span = k.expr_spans[at];
        let view = resolve_view(k, at).expect("a window was found");
        let Some(shape) = fixed_shape(k, at) else { continue };
        let (elem, name) = (known_elem(k, view.base), format!("{}_read", k.values[view.base].name));
        let tile = declare_beside(k, s, &name, elem, &shape, span);
        let src = k.expr(k.exprs[at].clone(), span);
        let dst = k.value_ref(tile, span);
        let copy = k.stmt(StmtData::Copy { src, dst, attrs: CopyAttrs::default() }, span);
        let place = place_of(k, s);
        insert_at(k, place, vec![copy]);
        k.exprs[at] = ExprData::Ref(tile);
    }
}

/// What is converted.
fn converted(k: &Kernel, e: Expr) -> Expr {
    match k.exprs[e] {
        ExprData::Cast { arg, .. } => converted(k, arg),
        _ => e,
    }
}

/// The window of shared memory that is the whole expression.
fn window(k: &Kernel, e: Expr) -> Option<Expr> {
    let view = resolve_view(k, e)?;
    matches!(k.values[view.base].def, ValueDef::Smem(_)).then_some(e)
}

fn find(k: &Kernel, e: Expr, out: &mut Vec<Expr>) {
    if let Some(e) = window(k, e) {
        out.push(e);
    } else if resolve_view(k, e).is_none() {
        for child in k.children(e) {
            find(k, child, out);
        }
    }
}
