//! The element types that tiles and buffers store in place of types that they cannot store.
//!
//! ```text
//! copy cast<i8>(x) -> x_exchange                      // threads store no part of a byte
//! copy cast<u4>(x_exchange) -> x_exchanged
//! ```

use crate::bool_storage::{as_condition, as_number};
use tilec_ir::entities::Expr;
use tilec_ir::kernel::{ExprData, Kernel};
use tilec_ir::types::{Elem, ElemRef};
use tilec_ir::typing::type_of;

/// The element type of a buffer for tiles of this type: it has whole bytes and all numbers of the type.
pub(crate) fn in_memory(elem: ElemRef) -> ElemRef {
    match elem {
        ElemRef::Known(known) if known.size().whole_bytes().is_none() => {
            ElemRef::Known(if known.is_float() { Elem::F16 } else { Elem::I8 })
        }
        _ => elem,
    }
}

/// The value that is stored to such a buffer.
pub(super) fn stored(k: &mut Kernel, elem: ElemRef, tile: Expr) -> Expr {
    converted(k, elem, tile, in_memory(elem))
}

/// The tile's elements from a buffer in the stored type.
pub(super) fn loaded(k: &mut Kernel, elem: ElemRef, buffer: Expr) -> Expr {
    converted(k, in_memory(elem), buffer, elem)
}

fn converted(k: &mut Kernel, from: ElemRef, arg: Expr, to: ElemRef) -> Expr {
    if from == to { arg } else { k.expr(ExprData::Cast { elem: to, arg }, k.expr_spans[arg]) }
}

pub(super) fn is_truth(k: &Kernel, e: Expr) -> bool {
    type_of(k, e).ok().and_then(|t| t.elem()) == Some(ElemRef::Known(Elem::Bool))
}

/// The expression in a type that a tile can hold: conditions, which only predicates hold, become numbers 0 or 1.
pub(super) fn in_storage_type(k: &mut Kernel, e: Expr) -> Expr {
    if !is_truth(k, e) {
        return e;
    }
    let own = k.expr(k.exprs[e].clone(), k.expr_spans[e]);
    let number = as_number(k, own);
    let truth = as_condition(k, number);
    k.exprs[e] = k.exprs[truth].clone();
    number
}
