//! Elements past the end of a tensor that enter a reduction and change its result (W0412).
//!
//! Windows read as zero past the end, or as `fill` says. A reduction of a tile takes such elements in with the others, which is harmless where they are neutral: a sum of
//! zeros, an extreme of what is masked. Each tile is followed through the kernel: what its elements past the end are along a dimension ([`Pad`]), and which window brought
//! them in. What operators make of them, and what is neutral, is the rule by which choices are judged as well (E0435).
//!
//! A window has none where its start, and the ends that limit it, are known to be multiples of its extent, or far enough apart. Where the analysis loses a tile (reshapes,
//! joins, tuples that a program combines by itself), nothing is said.

mod flow;
mod found;
mod report;

use super::ends::drop_idle;
use super::pad::direct;
use crate::Cx;
use flow::Flow;
use found::Past;
use tilec_ir::kernel::Kernel;

/// Warns of reductions that take elements past the end in.
pub(super) fn check(k: &Kernel, cx: &mut Cx<'_>) {
    // Without ends of windows that cut nothing off.
    let mut whole = k.clone();
    drop_idle(&mut whole);
    let found = Flow::of(&whole);
    let mut said: Vec<Past> = Vec::new();
    for one in found {
        // A mask of the first mends the others.
        let place = |past: &Past| (direct(&whole, past.window), past.dim);
        if said.iter().all(|past| place(past) != place(&one.past)) {
            said.push(one.past);
            cx.warn(report::warning(&whole, &one));
        }
    }
}
