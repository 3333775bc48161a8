//! Whether elements of a tile are the same along a dimension.

use crate::analysis::uses::all_stmts;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData};
use tilec_ir::loop_ends::meaning;
use tilec_ir::typing::{Extent, Type, resolve_view, type_of};

/// Whether elements are provably equal along the dimension: one number for all, or a value computed from such tiles.
pub(super) fn is_uniform(k: &Kernel, e: Expr, axis: u32) -> bool {
    uniform(k, e, axis, &mut Vec::new())
}

fn uniform(k: &Kernel, e: Expr, axis: u32, within: &mut Vec<Value>) -> bool {
    match type_of(k, e) {
        Ok(Type::Tile(tile)) if tile.shape.get(axis as usize) == Some(&Extent::Known(1)) => return true,
        Ok(Type::Tile(_) | Type::View(_)) => {}
        Ok(Type::Index | Type::Float | Type::Bool | Type::Scalar(_)) => return true,
        Err(_) => return false,
    }
    match &k.exprs[meaning(k, e)] {
        ExprData::Ref(v) => {
            within.contains(v) || {
                within.push(*v);
                let same = holds(k, *v, axis, within);
                within.pop();
                same
            }
        }
        ExprData::Op { args, .. } => args.iter().all(|&arg| uniform(k, arg, axis, within)),
        ExprData::Cast { arg, .. }
        | ExprData::Bits { arg, .. }
        | ExprData::Index(arg)
        | ExprData::Lookup { index: arg, .. }
        | ExprData::Reduce { arg, .. } => uniform(k, *arg, axis, within),
        ExprData::Round { arg, word, .. } => [*arg, *word].into_iter().all(|arg| uniform(k, arg, axis, within)),
        ExprData::Scan { axis: own, arg, .. } => *own != axis && uniform(k, *arg, axis, within),
        ExprData::Iota { axis: own, .. } => *own != axis,
        ExprData::Transpose(arg) => axis < 2 && uniform(k, *arg, 1 - axis, within),
        ExprData::Permute { arg, order } => order.get(axis as usize).is_some_and(|&own| uniform(k, *arg, own, within)),
        ExprData::Int(_) | ExprData::Float(_) => true,
        ExprData::Mma(_)
        | ExprData::View(_)
        | ExprData::Combine(_)
        | ExprData::Part { .. }
        | ExprData::Reshape { .. }
        | ExprData::Concat { .. } => false,
    }
}

/// Whether all values that a variable ever holds are equal along the dimension.
fn holds(k: &Kernel, v: Value, axis: u32, within: &mut Vec<Value>) -> bool {
    let mut found = false;
    let same = all_stmts(k, k.body).into_iter().all(|s| match k.stmts[s] {
        StmtData::Var { value, init } if value == v => {
            found = true;
            init.is_none_or(|init| uniform(k, init, axis, within))
        }
        StmtData::Assign { dst, src } if dst == v => uniform(k, src, axis, within),
        StmtData::Copy { dst, .. } => resolve_view(k, dst).is_none_or(|view| view.base != v),
        _ => true,
    });
    found && same
}
