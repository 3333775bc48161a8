//! Register tiles for expressions.

use super::types::{Extent, Type, type_of};
use crate::entities::Expr;
use crate::kernel::Kernel;
use crate::types::TileTy;

/// The type of a register tile that holds what an expression is, without a layout; `None`: it is not a tile, or has no type.
pub fn register_tile(k: &mut Kernel, e: Expr) -> Option<TileTy> {
    let Ok(Type::Tile(ty)) = type_of(k, e) else { return None };
    let span = k.expr_spans[e];
    let extent = |&extent: &Extent| match extent {
        Extent::Known(n) => k.int(n.cast_signed(), span),
        Extent::Sym(e) => k.copy_expr(e),
    };
    let shape = ty.shape.iter().map(extent).collect();
    Some(TileTy::registers(ty.elem, shape, None))
}
