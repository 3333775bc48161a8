//! Steps that divide a range, so that windows are never cut.
//!
//! The windows of a loop over a part of a tensor end with the loop. If the part is a whole number of tiles, these
//! windows are full tiles, which TMA and wide accesses can copy. Other windows are cut element by element. So for the
//! step of such a loop, the search keeps only values with the fewest cut windows.

use super::parameters::Auto;
use crate::analysis::uses::mentions;
use crate::specialize;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ConstValue, ExprData, Kernel, Range, StmtData};
use tilec_ir::loop_ends::loop_variable;

/// Keeps the values of each parameter with which the fewest windows are cut; `values`: values or placeholders of all
/// parameters.
pub(super) fn keep(k: &Kernel, values: &[(Value, ConstValue)], autos: &[Auto], domains: &mut [Vec<i64>]) {
    for (auto, domain) in autos.iter().zip(domains) {
        if domain.len() < 2 || !steps_over_part(k, auto.value) {
            continue;
        }
        let cut: Vec<usize> = domain
            .iter()
            .map(|&x| {
                let mut values = values.to_vec();
                values.iter_mut().filter(|(p, _)| *p == auto.value).for_each(|(_, v)| *v = ConstValue::Int(x));
                count(k, &values)
            })
            .collect();
        let fewest = cut.iter().copied().min();
        let mut cut = cut.into_iter();
        domain.retain(|_| cut.next() == fewest);
    }
}

/// The windows of a kernel that begin at a loop variable and end with the loop.
fn cut_windows(k: &Kernel) -> impl Iterator<Item = Value> {
    let ranges = |e: Expr| match &k.exprs[e] {
        ExprData::View(view) => view.ranges.clone(),
        _ => Vec::new(),
    };
    k.expressions().into_iter().flat_map(ranges).filter_map(|range| match range {
        Range::From { start, end: Some(_) } => loop_variable(k, start),
        _ => None,
    })
}

/// Whether the parameter is the step of a loop over a part of a tensor.
fn steps_over_part(k: &Kernel, parameter: Value) -> bool {
    let mut variables = cut_windows(k);
    let own = |v: Value| {
        k.stmts
            .values()
            .any(|s| matches!(*s, StmtData::For { var, step, .. } if var == v && mentions(k, step, parameter)))
    };
    variables.any(own)
}

/// The number of windows that are cut with these values.
fn count(k: &Kernel, values: &[(Value, ConstValue)]) -> usize {
    let mut sketch = k.clone();
    specialize::substitute(&mut sketch, values);
    sketch.const_params.clear();
    specialize::fold(&mut sketch);
    // `specialize` reports promises that do not hold.
    let _ = specialize::assume(&mut sketch);
    specialize::drop_idle(&mut sketch);
    cut_windows(&sketch).count()
}
