//! Which sums are contracted with a product, so that both are rounded once: `a * b + c` of numbers that are computed in f32 is `fma(a, b, c)`.
//!
//! The interpreter accepts both roundings. In `a * b + c * d` the first product is contracted, and the other one is rounded. Numbers of f64 are rounded twice, unless
//! the program writes `fma`.

use crate::entities::Expr;
use crate::kernel::{ExprData, Kernel};
use crate::ops::{Domain, Op};
use crate::types::{Elem, ElemClass, ElemRef};
use crate::typing::{Type, type_of};

/// The sums of a kernel that take in a product: each with the factors and the other term.
pub fn contracted(k: &Kernel) -> Vec<(Expr, [Expr; 3])> {
    let mut found = Vec::new();
    let mut roots = Vec::new();
    k.walk(k.body, &mut |k, _, s| roots.extend(k.stmts[s].exprs()));
    for e in roots {
        visit(k, e, None, &mut found);
    }
    found
}

/// `within`: the element type that literals take.
fn visit(k: &Kernel, e: Expr, within: Option<Elem>, found: &mut Vec<(Expr, [Expr; 3])>) {
    let within = match &k.exprs[e] {
        // Windows begin at indices.
        ExprData::View(_) => return,
        ExprData::Op { op, args } if matches!(op.domain(), Domain::Compare | Domain::Logic) => {
            args.iter().find_map(|&arg| match type_of(k, arg).ok()?.elem() {
                Some(ElemRef::Known(elem)) => Some(elem),
                _ => None,
            })
        }
        ExprData::Op { .. }
        | ExprData::Cast { .. }
        | ExprData::Bits { .. }
        | ExprData::Round { .. }
        | ExprData::Reduce { .. }
        | ExprData::Scan { .. } => match type_of(k, e) {
            Ok(Type::Index) => return,
            Ok(ty) => match ty.elem() {
                Some(ElemRef::Known(elem)) => Some(elem),
                _ => within,
            },
            Err(_) => return,
        },
        _ => within,
    };
    if let ExprData::Op { op: Op::Add, args } = &k.exprs[e]
        && let &[a, b] = &args[..]
        && in_f32(within)
    {
        let product = |e: Expr| match &k.exprs[e] {
            ExprData::Op { op: Op::Mul, args } if computed_in_f32(k, e) => Some([args[0], args[1]]),
            _ => None,
        };
        let fused = [(a, b), (b, a)].into_iter().find_map(|(x, term)| product(x).map(|[f, g]| [f, g, term]));
        found.extend(fused.map(|parts| (e, parts)));
    }
    for child in k.children(e) {
        let typed = matches!(k.exprs[e], ExprData::Cast { .. } | ExprData::Bits { .. } | ExprData::Round { .. });
        let own = if typed { None } else { within };
        visit(k, child, own, found);
    }
}

/// Whether numbers of this type are computed in f32; literals by themselves are.
fn in_f32(elem: Option<Elem>) -> bool {
    elem.is_none_or(|elem| elem != Elem::F64 && elem.class() == ElemClass::Float)
}

/// Whether a product is one of numbers that are computed in f32, and not of indices.
fn computed_in_f32(k: &Kernel, e: Expr) -> bool {
    match type_of(k, e) {
        Ok(Type::Index) | Err(_) => false,
        Ok(ty) => match ty.elem() {
            Some(ElemRef::Known(elem)) => in_f32(Some(elem)),
            Some(ElemRef::Param(_)) => false,
            None => true,
        },
    }
}
