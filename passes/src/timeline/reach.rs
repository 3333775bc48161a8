//! Which loads by threads do not run ahead: a product of the iteration that issues them multiplies their elements.
//!
//! Followed from statement to statement, through registers, buffers, and slots of channels.

use super::program::{Act, Step};
use std::collections::{BTreeMap, BTreeSet};
use tilec_ir::entities::Value;

/// A load by its step, and the iteration that issued it.
type Issued = (usize, u64);

/// What a warpgroup has loaded, and where it is.
#[derive(Default)]
pub(super) struct Reach {
    /// The loads whose elements a value has; of a channel, the value in the slot of this use.
    within: BTreeMap<(Value, u64), BTreeSet<Issued>>,
    /// The loads that products of their iterations multiply.
    pub(super) multiplied: BTreeSet<usize>,
}

impl Reach {
    /// A step in an iteration. `read` and `filled`: the use of each channel that it reads, and that it fills.
    pub(super) fn step(
        &mut self,
        (number, step): (usize, &Step),
        iteration: u64,
        (read, filled): (&BTreeMap<Value, u64>, &BTreeMap<Value, u64>),
    ) {
        if matches!(step.act, Act::Channel(..)) {
            return;
        }
        let slot = |uses: &BTreeMap<Value, u64>, v: Value| (v, uses.get(&v).copied().unwrap_or(0));
        let sources = step.reads.iter().filter_map(|&v| self.within.get(&slot(read, v)));
        let mut all: BTreeSet<Issued> = sources.flatten().copied().collect();
        if matches!(step.act, Act::Load { threads: true, .. }) {
            all.insert((number, iteration));
        }
        if matches!(step.act, Act::Product { .. }) {
            self.multiplied.extend(all.iter().filter(|(_, issued)| *issued == iteration).map(|(load, _)| *load));
        }
        for &v in &step.writes {
            // Part of a value may be written.
            self.within.entry(slot(filled, v)).or_default().extend(&all);
        }
    }
}
