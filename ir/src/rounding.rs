//! Where numbers are rounded to their type.
//!
//! Elements of fewer bits than a register are computed in a wider type ([`computed_in`]), and what has no name stays in it: `x * y + z` of f16 is rounded to f32
//! twice, and to f16 not at all. What has a name has its type: a `let` rounds as a `cast` to the type of its initialiser does, and so do variables, memory and
//! operands of products. So it does not matter how often a name is read, nor whether registers hold it or it is computed where it is read.

use crate::entities::Expr;
use crate::kernel::{ExprData, Kernel};
use crate::numerics::cast;
use crate::ops::Op;
use crate::types::{Elem, ElemClass, ElemRef};
use crate::typing::type_of;

/// The type in which elements are computed.
pub fn computed_in(elem: Elem) -> Elem {
    match elem {
        Elem::F16 | Elem::BF16 | Elem::TF32 | Elem::E4M3 | Elem::E5M2 | Elem::E2M1 | Elem::UE8M0 => Elem::F32,
        Elem::I8 | Elem::U8 | Elem::I4 | Elem::U4 | Elem::I16 | Elem::U16 => Elem::I32,
        Elem::F32 | Elem::F64 | Elem::I32 | Elem::U32 | Elem::I64 | Elem::U64 | Elem::Bool => elem,
    }
}

/// Whether the elements of an expression are numbers of its type as they are computed, so that rounding them changes nothing.
pub fn is_rounded(k: &Kernel, e: Expr) -> bool {
    match type_of(k, e).ok().and_then(|ty| ty.elem()) {
        Some(ElemRef::Known(elem)) => elem == computed_in(elem) || is_of(k, e, elem),
        // Indices and literals take the type of what they meet.
        Some(ElemRef::Param(_)) | None => true,
    }
}

/// Whether `round_random` makes numbers of a type: of fewer digits than those of f32, and of both signs.
pub fn rounds_at_random(elem: Elem) -> bool {
    matches!(elem, Elem::F16 | Elem::BF16 | Elem::TF32 | Elem::E4M3 | Elem::E5M2 | Elem::E2M1)
}

/// Whether the elements of an expression, in what is of this narrow type, are numbers of the type.
fn is_of(k: &Kernel, e: Expr, elem: Elem) -> bool {
    let typed = |e: Expr| type_of(k, e).is_ok_and(|ty| ty.elem() == Some(ElemRef::Known(elem)));
    match &k.exprs[e] {
        ExprData::Int(x) => cast::int_format(elem).is_some_and(|f| (f.min()..=f.max()).contains(&i128::from(*x))),
        ExprData::Float(bits) => {
            let x = f64::from_bits(*bits);
            elem.class() == ElemClass::Float && cast::to_float(elem, x).to_bits() == x.to_bits()
        }
        ExprData::Ref(_)
        | ExprData::View(_)
        | ExprData::Cast { .. }
        | ExprData::Bits { .. }
        | ExprData::Round { .. }
        | ExprData::Lookup { .. }
        | ExprData::Mma(_) => typed(e),
        ExprData::Transpose(arg) | ExprData::Reshape { arg, .. } | ExprData::Permute { arg, .. } => {
            is_of(k, *arg, elem)
        }
        ExprData::Concat { args, .. } => args.iter().all(|&arg| is_of(k, arg, elem)),
        ExprData::Reduce { op, arg, .. } => op.is_extreme() && is_of(k, *arg, elem),
        ExprData::Scan { op, exclusive, arg, .. } => op.is_extreme() && !exclusive && is_of(k, *arg, elem),
        ExprData::Op { op: Op::Min | Op::Max, args } => args.iter().all(|&arg| is_of(k, arg, elem)),
        ExprData::Op { op: Op::Select, args } => args[1..].iter().all(|&arg| is_of(k, arg, elem)),
        ExprData::Op { op: Op::Neg | Op::Abs, args } => {
            elem.class() == ElemClass::Float && cast::has_negatives(elem) && is_of(k, args[0], elem)
        }
        ExprData::Op { .. }
        | ExprData::Iota { .. }
        | ExprData::Index(_)
        | ExprData::Combine(_)
        | ExprData::Part { .. } => false,
    }
}
