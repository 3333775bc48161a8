//! What element types may be, before parameters are bound.

use crate::kernel::{ConstKind, Kernel, ValueDef};
use crate::types::{Elem, ElemClass, ElemRef};

/// The possible element types of a reference, once its parameter is bound.
pub fn candidate_elems(k: &Kernel, elem: ElemRef) -> Vec<Elem> {
    match elem {
        ElemRef::Known(e) => vec![e],
        ElemRef::Param(v) => match &k.values[v].def {
            ValueDef::ConstParam(p) => match &p.kind {
                ConstKind::Elem(list) if !list.is_empty() => list.clone(),
                _ => Elem::ALL.to_vec(),
            },
            _ => Elem::ALL.to_vec(),
        },
    }
}

/// Whether elements of a type may be of this class.
pub(super) fn may_be(k: &Kernel, e: ElemRef, class: ElemClass) -> bool {
    match e {
        ElemRef::Known(e) => e.class() == class,
        ElemRef::Param(_) => candidate_elems(k, e).into_iter().any(|e| e.class() == class),
    }
}

/// Whether elements of a type may be whole numbers.
pub fn may_count(k: &Kernel, e: ElemRef) -> bool {
    may_be(k, e, ElemClass::Int)
}
