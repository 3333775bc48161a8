//! The layouts in which threads hold expressions.

use super::types::{Type, Types, fixed_shape};
use crate::combine::Combine;
use crate::entities::{Expr, Value};
use crate::kernel::{ExprData, Kernel, ValueDef};
use crate::layout::RegLayout;
use std::cell::OnceCell;
use std::collections::BTreeMap;

/// What names have, those that were looked at.
type Known = BTreeMap<Value, Option<RegLayout>>;

/// The layout in which threads hold an expression over register tiles: that of the largest one, of which smaller ones are repeated. A reduction has that of
/// what it reduces, without the dimension.
pub fn layout_of(k: &Kernel, e: Expr) -> Option<RegLayout> {
    // Few layouts depend on extents.
    let types = OnceCell::new();
    let types = || types.get_or_init(|| Types::of_expr(k, e));
    k.by_names(e, |e, known| of(k, &types, e, known))
}

fn of<'a, 'k: 'a>(k: &Kernel, types: &dyn Fn() -> &'a Types<'k>, e: Expr, known: &Known) -> Option<RegLayout> {
    let shape = |e: Expr| match types().type_of(e).ok()? {
        Type::Tile(t) => t.known_shape(),
        _ => None,
    };
    match &k.exprs[e] {
        ExprData::Ref(v) => match &k.values[*v].def {
            ValueDef::Var(t) if !t.shape.is_empty() => t.reg_layout.clone(),
            ValueDef::Let => known.get(v).cloned().flatten(),
            _ => None,
        },
        ExprData::View(_) => None,
        ExprData::Reduce { axis, parts, arg, .. } => {
            let layout = of(k, types, *arg, known)?;
            Some(layout.reduction(&shape(*arg)?, *axis as usize, *parts).ok()?.layout)
        }
        ExprData::Scan { axis, totals, arg, .. } => {
            let layout = of(k, types, *arg, known)?;
            layout.scan(&shape(*arg)?, *axis as usize, totals.map_or(0, |t| t.parts)).ok().map(|_| layout)
        }
        ExprData::Combine(combine) => {
            let layout = largest(combine.args.iter().filter_map(|&arg| of(k, types, arg, known)))?;
            let shape = whole(combine.args.iter().filter_map(|&arg| shape(arg)))?;
            layout.combined(&shape, combine.axis as usize, combine.operation).ok()
        }
        ExprData::Part { of, .. } => match k.exprs[*of] {
            ExprData::Ref(v) => known.get(&v).cloned().flatten(),
            _ => None,
        },
        _ => largest(k.children(e).into_iter().filter_map(|c| of(k, types, c, known))),
    }
}

fn largest(layouts: impl Iterator<Item = RegLayout>) -> Option<RegLayout> {
    layouts.reduce(|a, b| if b.out_bits() > a.out_bits() { b } else { a })
}

fn whole(shapes: impl Iterator<Item = Vec<u64>>) -> Option<Vec<u64>> {
    shapes.reduce(|a, b| a.iter().zip(&b).map(|(&x, &y)| x.max(y)).collect())
}

/// The layout in which threads hold the tuples that are combined: that of the largest component.
pub fn layout_of_tuples(k: &Kernel, combine: &Combine) -> Option<RegLayout> {
    largest(combine.args.iter().filter_map(|&arg| layout_of(k, arg)))
}

/// The extents of the tuples that are combined, if all are known.
pub fn shape_of_tuples(k: &Kernel, combine: &Combine) -> Option<Vec<u64>> {
    whole(combine.args.iter().filter_map(|&arg| fixed_shape(k, arg)))
}
