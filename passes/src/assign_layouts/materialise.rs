//! Expressions that are materialised in register tiles of their own.

use crate::analysis::uses::place_of;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::layout::RegLayout;
use tilec_ir::rounding::{computed_in, is_rounded};
use tilec_ir::types::{ElemRef, TileTy};
use tilec_ir::typing::type_of;

/// The element type of a tile for the value of an expression without a name: the type in which it is computed.
pub(super) fn unrounded(k: &Kernel, e: Expr) -> ElemRef {
    match type_of(k, e).ok().and_then(|t| t.elem()).expect("a tile has an element type") {
        ElemRef::Known(elem) if !is_rounded(k, e) => ElemRef::Known(computed_in(elem)),
        elem => elem,
    }
}

/// A tile that an expression moves into.
pub(super) struct NewTile<'a> {
    pub(super) elem: ElemRef,
    pub(super) shape: &'a [u64],
    pub(super) layout: RegLayout,
    pub(super) what: &'a str,
    /// It is a part of the value, not the value: it has the type in which it is computed, also where a name for the value has another one.
    pub(super) is_part: bool,
}

/// The value of a name, and its type.
#[derive(Clone, Copy)]
pub(super) struct Named {
    init: Expr,
    elem: ElemRef,
}

/// The name that a statement defines. It keeps its type ([`keep_type`]) when parts of its value become tiles, because
/// these have the type in which they are computed.
pub(super) fn named(k: &Kernel, at: Stmt) -> Option<Named> {
    match k.stmts[at] {
        StmtData::Let { init, .. } => type_of(k, init).ok().and_then(|t| t.elem()).map(|elem| Named { init, elem }),
        _ => None,
    }
}

/// Converts the value of a name to the name's type, if the type has changed.
pub(super) fn keep_type(k: &mut Kernel, named: Option<Named>) {
    let Some(Named { init, elem }) = named else { return };
    if type_of(k, init).ok().and_then(|t| t.elem()) != Some(elem) {
        let whole = k.exprs[init].clone();
        let arg = k.expr(whole, k.expr_spans[init]);
        k.exprs[init] = ExprData::Cast { elem, arg };
    }
}

/// Moves an expression to a tile of its own in front of the statement `at`, which then refers to the tile. Returns the
/// tile, the statement that computes it, and the expression there.
pub(super) fn own_tile(k: &mut Kernel, at: Stmt, e: Expr, own: NewTile<'_>) -> (Value, Stmt, Expr) {
    let NewTile { mut elem, shape, layout, what, is_part } = own;
    let span = k.expr_spans[e];
    let named = named(k, at);
    if let Some(Named { elem: of, .. }) = named.filter(|named| named.init == e && !is_part) {
        elem = of;
    }
    let ty = tile(k, at, elem, shape, Some(layout));
    let moved = k.exprs[e].clone();
    let moved = k.expr(moved, span);
    let name = match k.stmts[at] {
        StmtData::Let { value, .. } | StmtData::Var { value, .. } | StmtData::Assign { dst: value, .. } => {
            format!("{}_{what}", k.values[value].name)
        }
        _ => what.to_owned(),
    };
    let v = k.value(&name, span, ValueDef::Var(ty));
    k.exprs[e] = ExprData::Ref(v);
    keep_type(k, named);
    let memory = !crate::analysis::views::memory_views(k, moved).is_empty();
    let decl = k.stmt(StmtData::Var { value: v, init: (!memory).then_some(moved) }, span);
    let (mut stmts, mut computes) = (vec![decl], decl);
    if memory {
        // Copies read memory as wide as they can.
        let dst = k.value_ref(v, span);
        computes = k.stmt(StmtData::Copy { src: moved, dst, attrs: CopyAttrs::default() }, span);
        stmts.push(computes);
    }
    let (block, index) = place_of(k, at);
    k.blocks[block].splice(index..index, stmts);
    (v, computes, moved)
}

/// The type of a tile.
pub(super) fn tile(k: &mut Kernel, at: Stmt, elem: ElemRef, shape: &[u64], layout: Option<RegLayout>) -> TileTy {
    let span = k.stmt_spans[at];
    let shape = shape.iter().map(|&n| k.int(n as i64, span)).collect();
    TileTy::registers(elem, shape, layout)
}
