//! Distinct bytes of an index range of a tensor, because windows of a padded tensor overlap.

use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::Kernel;
use tilec_ir::padded::memory;

/// The extents of a tensor in memory: for a padded tensor those of its lines, which several indices address.
pub(crate) fn in_memory(k: &Kernel, tensor: Value) -> Vec<Expr> {
    let Some(t) = k.tensor_ty(tensor) else { return Vec::new() };
    match t.padded.is_empty() {
        true => t.shape.clone(),
        false => memory(k, t).into_iter().map(|(extent, _)| extent).collect(),
    }
}

/// Elements in memory divided by indexed elements, over all tensors; 1 if sizes are not known.
pub(crate) fn distinct_fraction(k: &Kernel, count: &dyn Fn(Expr) -> Option<i64>) -> f64 {
    let all = |extents: &[Expr]| extents.iter().try_fold(1.0, |n, &e| Some(n * count(e)? as f64));
    let of = |extents: &dyn Fn(Value) -> Vec<Expr>| {
        let tensors = k.params.iter().filter(|&&v| k.tensor_ty(v).is_some());
        tensors.map(|&v| all(&extents(v))).sum::<Option<f64>>()
    };
    let indexed = |v: Value| k.tensor_ty(v).map_or(Vec::new(), |t| t.shape.clone());
    match (of(&|v| in_memory(k, v)), of(&indexed)) {
        (Some(own), Some(all)) if all > 0.0 => (own / all).min(1.0),
        _ => 1.0,
    }
}
