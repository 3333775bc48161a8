//! The functions of the passes after `choose`. The pipeline runs all of them; `choose` runs some on candidates.

use crate::table::{PASSES, PassInfo};
use crate::{
    Cx, assign_layouts, barriers, contract, defer_reductions, expand, hand_over, overlap_launches, pipeline,
    place_shared, predicate, residue, reuse_loads, schedule, schedule_loops, select_mma, skip_scaling, specialize,
    stage_stores, swizzle, vectorize,
};
use tilec_ir::diag::Reported;
use tilec_ir::kernel::Kernel;

/// The function of a pass.
pub(crate) type Run = fn(&mut Kernel, &mut Cx<'_>) -> Result<(), Reported>;

/// The function of a pass of [`PASSES`].
///
/// # Panics
/// The pass is not one of those after `choose`.
pub(crate) fn of(pass: &PassInfo) -> Run {
    match pass.name {
        specialize::NAME => specialize::run,
        select_mma::NAME => select_mma::run,
        stage_stores::NAME => stage_stores::run,
        assign_layouts::NAME => assign_layouts::run,
        defer_reductions::NAME => defer_reductions::run,
        vectorize::NAME => vectorize::run,
        swizzle::NAME => swizzle::run,
        schedule_loops::NAME => schedule_loops::run,
        expand::NAME => expand::run,
        pipeline::NAME => pipeline::run,
        residue::NAME => residue::run,
        predicate::NAME => predicate::run,
        schedule::NAME => schedule::run,
        reuse_loads::NAME => reuse_loads::run,
        overlap_launches::NAME => overlap_launches::run,
        contract::NAME => contract::run,
        hand_over::NAME => hand_over::run,
        place_shared::NAME => place_shared::run,
        skip_scaling::NAME => skip_scaling::run,
        barriers::NAME => barriers::run,
        other => panic!("bug: the pass `{other}` does nothing"),
    }
}

/// The passes from `first` to `last`, inclusive, in their order.
pub(crate) fn between(first: &str, last: &str) -> impl Iterator<Item = (&'static PassInfo, Run)> {
    let place = |name: &str| PASSES.iter().position(|pass| pass.name == name);
    let (Some(first), Some(last)) = (place(first), place(last)) else {
        panic!("bug: no passes `{first}` and `{last}`")
    };
    PASSES[first..=last].iter().map(|pass| (pass, of(pass)))
}
