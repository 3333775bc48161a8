//! Whether elements in the padding of tiles are zero.

use crate::analysis::uses::all_stmts;
use std::collections::BTreeMap;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData};
use tilec_ir::numerics::float_format;
use tilec_ir::ops::Op;
use tilec_ir::types::{Elem, ElemRef};
use tilec_ir::typing::{ResolvedView, let_init, resolve_view, type_of};

/// Whether an expression is zero in the padding along a dimension; `None`: along all dimensions.
pub(super) fn zero(k: &Kernel, e: Expr, along: Option<usize>) -> bool {
    zero_within(k, e, along, &mut PadQuery::default())
}

/// A number that is certainly within the type's range, as large as possible.
fn greatest_of(elem: Option<ElemRef>) -> f64 {
    let of = |elem: Elem| float_format(elem).map_or(f64::INFINITY, |format| format.max_finite());
    match elem {
        Some(ElemRef::Known(elem)) => of(elem),
        _ => 1.0,
    }
}

/// What was requested.
#[derive(Default)]
struct PadQuery {
    /// Tiles, and the dimension that was examined.
    tiles: Vec<(Value, usize)>,
    /// Names of expressions, and whether they are zero.
    names: BTreeMap<(Value, Option<usize>), bool>,
}

/// [`zero`], with results for tiles and names in `asked`.
fn zero_within(k: &Kernel, e: Expr, along: Option<usize>, asked: &mut PadQuery) -> bool {
    let literal = |e: Expr| match k.exprs[e] {
        ExprData::Int(x) => Some(x as f64),
        ExprData::Float(bits) => Some(f64::from_bits(bits)),
        _ => None,
    };
    match &k.exprs[e] {
        _ if literal(e).is_some() => literal(e) == Some(0.0),
        ExprData::Cast { arg, .. } => zero_within(k, *arg, along, asked),
        ExprData::Transpose(arg) if resolve_view(k, e).is_none() => zero_within(k, *arg, along.map(|d| 1 - d), asked),
        ExprData::Reshape { arg, numbered: None, .. } | ExprData::Permute { arg, .. } => {
            zero_within(k, *arg, None, asked)
        }
        // Elements that do not exist read as zero, and the result may have more elements than the tile.
        ExprData::Reshape { shape, numbered: Some(of), .. } => {
            let within = |((&n, &extent), &at): ((&Expr, &u64), &i64)| {
                at >= 0 && k.as_int(n).is_some_and(|n| at + extent as i64 <= n)
            };
            shape.iter().zip(&of.to).zip(&of.at).all(within)
        }
        ExprData::Op { op: Op::Mul, args } => {
            // Zero times a number is zero, unless the number overflows to infinity in the type.
            let elem = type_of(k, e).ok().and_then(|ty| ty.elem());
            let factor = |e: Expr| literal(e).is_some_and(|x| x.abs() <= greatest_of(elem));
            args.iter().any(|&arg| literal(arg).is_none())
                && args.iter().all(|&arg| factor(arg) || zero_within(k, arg, along, asked))
        }
        ExprData::Op { op: Op::Add | Op::Sub | Op::Neg | Op::Max | Op::Min, args } => {
            args.iter().all(|&arg| zero_within(k, arg, along, asked))
        }
        ExprData::Ref(v) if let_init(k, *v).is_some_and(|init| resolve_view(k, init).is_none()) => {
            if let Some(&known) = asked.names.get(&(*v, along)) {
                return known;
            }
            let zero = let_init(k, *v).is_some_and(|init| zero_within(k, init, along, asked));
            asked.names.insert((*v, along), zero);
            zero
        }
        _ => resolve_view(k, e).is_some_and(|view| {
            let dims = along_of(&view, along);
            // A scalar is broadcast along all dimensions, so it is not zero in the padding.
            !dims.is_empty()
                && !dims.iter().any(|&d| repeats(k, &view, d))
                && (k.tensor_ty(view.base).is_some() || dims.iter().all(|&d| filled(k, view.base, d, asked)))
        }),
    }
}

/// The base dimensions of a window that correspond to its dimension `along`, or all of them.
fn along_of(view: &ResolvedView, along: Option<usize>) -> Vec<usize> {
    let kept = view.base_dims();
    match along {
        Some(along) => kept.get(along).copied().into_iter().collect(),
        None => kept,
    }
}

/// Whether a dimension is broadcast (extent 1 or stride 0): then elements in the padding are not zero.
fn repeats(k: &Kernel, view: &ResolvedView, d: usize) -> bool {
    match k.tensor_ty(view.base) {
        Some(tensor) => tensor.repeats.contains(&d),
        None => k.tile_ty(view.base).is_some_and(|tile| tile.shape.get(d).is_some_and(|&n| k.as_int(n) == Some(1))),
    }
}

/// Whether a tile is filled only by copies of values that are zero in the padding along `d`.
fn filled(k: &Kernel, v: Value, d: usize, asked: &mut PadQuery) -> bool {
    if asked.tiles.contains(&(v, d)) {
        return true;
    }
    asked.tiles.push((v, d));
    all_stmts(k, k.body).into_iter().all(|s| match k.stmts[s] {
        StmtData::Copy { src, dst, ref attrs } => match resolve_view(k, dst).filter(|to| to.base == v) {
            None => true,
            Some(to) => {
                // Along dimensions that the window drops, the copy fills one position, which is not padding.
                let along = along_of(&to, None).iter().position(|&own| own == d);
                attrs.fill.is_none() && along.is_none_or(|along| zero_within(k, src, Some(along), asked))
            }
        },
        StmtData::Assign { dst, .. } => dst != v,
        StmtData::Var { value, init } => value != v || init.is_none_or(|init| zero_within(k, init, Some(d), asked)),
        _ => true,
    })
}
