//! The number of blocks among which a reduction is split: an axis of the grid whose blocks add to the same elements, or leave
//! their parts to another kernel of the sequence.

use crate::compile::CompiledKernel;
use std::collections::BTreeSet;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{ConstValue, ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::typing::resolve_view;

/// The slices.
pub(super) struct Slices {
    /// The parameter or the size.
    pub(super) name: String,
    /// Its value.
    pub(super) now: i64,
    /// Whether it is a size of the launch.
    pub(super) is_size: bool,
}

/// The slices of a kernel; `made`: tensors that kernels make for each other.
pub(super) fn of(kernel: &CompiledKernel, made: &[String]) -> Option<Slices> {
    let k = &kernel.tile.source_kernel.as_ref()?.kernel;
    k.grid.iter().find_map(|axis| {
        let ExprData::Ref(v) = k.exprs[axis.extent] else { return None };
        let name = &k.values[v].name;
        let (now, is_size) = match k.values[v].def {
            ValueDef::ConstParam(_) => (parameter(kernel, name)?, false),
            _ if k.sizes.contains(&v) => (size(kernel, name)?, true),
            _ => return None,
        };
        let own = Slices { name: name.clone(), now, is_size };
        (splits(k, axis.index, made) && !is_prescribed(k, v, made)).then_some(own)
    })
}

fn parameter(kernel: &CompiledKernel, name: &str) -> Option<i64> {
    kernel.tile.parameters.iter().find_map(|(own, value)| match value {
        ConstValue::Int(x) if own == name => Some(*x),
        _ => None,
    })
}

/// A size of the prediction. Of other sizes than the given ones nothing is known.
fn size(kernel: &CompiledKernel, name: &str) -> Option<i64> {
    let p = kernel.tile.prediction.as_ref().filter(|p| p.sizes_given)?;
    p.sizes.iter().find(|(own, _)| own == name).map(|(_, x)| *x)
}

/// Whether an expression mentions one of these values.
fn mentions(k: &Kernel, e: Expr, values: &BTreeSet<Value>) -> bool {
    match &k.exprs[e] {
        ExprData::Ref(v) => values.contains(v),
        ExprData::View(view) if values.contains(&view.base) => true,
        _ => k.children(e).into_iter().any(|child| mentions(k, child, values)),
    }
}

/// Whether a tensor of the caller's has an extent with a value.
fn is_prescribed(k: &Kernel, v: Value, made: &[String]) -> bool {
    let wanted = BTreeSet::from([v]);
    let callers = k.params.iter().filter(|&&p| !made.contains(&k.values[p].name));
    let mut tensors = callers.filter_map(|&p| k.tensor_ty(p)).filter(|ty| ty.scratch.is_none());
    tensors.any(|ty| ty.shape.iter().any(|&e| mentions(k, e, &wanted)))
}

/// Whether blocks along an axis have loops over parts of a range, and what they store is added together: by memory, or
/// by a kernel that reads what each leaves.
fn splits(k: &Kernel, index: Value, made: &[String]) -> bool {
    let mut of_axis = BTreeSet::from([index]);
    let (mut loops, mut stores, mut others) = (false, 0, false);
    k.walk(k.body, &mut |k, _, s: Stmt| match &k.stmts[s] {
        StmtData::Let { value, init } if mentions(k, *init, &of_axis) => drop(of_axis.insert(*value)),
        StmtData::For { var, start, end, .. } => {
            let own = mentions(k, *start, &of_axis) || mentions(k, *end, &of_axis);
            loops |= own;
            if own {
                of_axis.insert(*var);
            }
        }
        StmtData::Copy { dst, attrs, .. } => {
            let Some(base) = resolve_view(k, *dst).map(|view| view.base).filter(|&v| k.tensor_ty(v).is_some()) else {
                return;
            };
            stores += 1;
            let is_made = made.contains(&k.values[base].name);
            others |= attrs.reduce.is_none() && !(is_made && mentions(k, *dst, &of_axis));
        }
        _ => {}
    });
    loops && stores > 0 && !others
}
