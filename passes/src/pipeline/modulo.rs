//! A modulo schedule of a loop whose warps issue all of its statements.
//!
//! The computations of an iteration keep their source order, one statement after the other: the *backbone*, slices of
//! products or other computations. All other statements serve the backbone. They are placed in the gaps between its
//! statements in the order of swing modulo scheduling (Llosa, González, Ayguadé and Valero, 1996):
//!
//! 1. Statements for which the backbone waits are as late as their latency allows, the last first. Fragments of a slice
//!    are loaded in front of the products of the previous slice, when their registers are free. The wait for a slot is in
//!    front of its first fragments, or after the last reads of the previous slot.
//! 2. A statement that frees a slot is at the next wait: the barrier there shows that all threads have read the slot,
//!    so no other barrier is needed.
//! 3. A statement that fills a slot is as early as a slot is free: after the first product from the barrier on, which
//!    keeps the tensor cores busy meanwhile, if registers suffice for addresses and operands; otherwise right after the
//!    barrier.
//!
//! Gaps are counted from the iteration in which a tile is computed. Gap `g` is in front of backbone statement `g`
//! modulo their number, and negative gaps belong to earlier iterations. An iteration of the steady state has each
//! statement once, for tiles of different iterations, given by their stages.

/// Latency in clocks of fragment loads from shared memory (A100: 33, Abdelkhalik et al., *Demystifying the Nvidia
/// Ampere Architecture*, 2022).
const FRAGMENTS: u64 = 33;
/// Iterations by which unaligned rows are prefetched to the second-level cache before their loads.
const PREFETCHED: i64 = 3;

/// A statement of the backbone.
#[derive(Copy, Clone, Debug)]
pub(super) struct Step {
    /// Clocks that it takes.
    pub(super) clocks: u64,
    /// Whether tensor cores still work on it when the next statement is issued.
    pub(super) product: bool,
    /// Registers of a thread that hold tiles during it.
    pub(super) registers: u64,
}

/// A loop to be scheduled.
pub(super) struct Loop {
    pub(super) backbone: Vec<Step>,
    /// Slots of a buffer.
    pub(super) slots: i64,
    /// Whether slices alternate between two sets of registers for fragments.
    pub(super) double_buffered: bool,
    /// Registers of a thread for tiles at the statements that fill slots.
    pub(super) tile_registers: u64,
}

/// A place between two statements of the backbone.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Place {
    gap: i64,
    /// Directly in front of the next statement of the backbone, instead of directly after the last one.
    ahead: bool,
}

/// The places of the statements of an iteration.
pub(super) struct Places {
    steps: i64,
    pub(super) wait: Place,
    pub(super) release: Place,
    /// Direct copies to a slot.
    pub(super) fill: Place,
    /// Stores from staging registers to a slot, which other warps see after the same barrier.
    pub(super) put: Place,
}

impl Loop {
    pub(super) fn places(&self) -> Places {
        let steps = i64::try_from(self.backbone.len()).expect("an iteration is short");
        let wait = Place { gap: self.fragments(0).gap, ahead: false };
        // The next wait after the last read of the slot.
        let release = Place { gap: wait.gap + steps, ..wait };
        let free = release.gap - self.slots * steps;
        let fill = Place { gap: self.filled(free), ahead: true };
        let put = Place { gap: free + steps, ahead: false };
        Places { steps, wait, release, fill, put }
    }

    /// The gap in which fragments of slice `i` are loaded: as late as latency allows, but after the products that read
    /// the same registers.
    pub(super) fn fragments(&self, slice: usize) -> Place {
        let i = i64::try_from(slice).expect("an iteration is short");
        let others = if self.double_buffered { 2 } else { 1 };
        let free = i - others + 1;
        let mut gap = i;
        let mut left = FRAGMENTS;
        while gap > free && left > 0 {
            gap -= 1;
            left = left.saturating_sub(self.step(gap).clocks);
        }
        Place { gap, ahead: true }
    }

    fn step(&self, gap: i64) -> Step {
        let steps = i64::try_from(self.backbone.len()).expect("an iteration is short");
        self.backbone[usize::try_from(gap.rem_euclid(steps)).expect("it is none below zero")]
    }

    /// The gap in which slots are filled that are free from a barrier on. A later gap would shorten the time in which
    /// tiles can land.
    fn filled(&self, barrier: i64) -> i64 {
        let steps = i64::try_from(self.backbone.len()).expect("an iteration is short");
        // After the barrier, registers hold values carried between iterations. After a product, which the assembler
        // mixes with later code, they also hold its operands.
        let least = self.backbone.iter().map(|step| step.registers).min().expect("a loop does something");
        let behind = (barrier + 1..=barrier + steps).find(|&gap| self.step(gap - 1).product);
        match behind {
            Some(gap) if self.step(gap - 1).registers <= self.tile_registers.max(least) && gap < barrier + steps => gap,
            _ => barrier,
        }
    }
}

impl Places {
    /// The place of a statement of the backbone.
    pub(super) fn step(&self, i: usize) -> Place {
        Place { gap: i64::try_from(i).expect("an iteration is short"), ahead: true }
    }

    /// A place `n` iterations earlier.
    pub(super) fn earlier(&self, place: Place, n: i64) -> Place {
        Place { gap: place.gap - n * self.steps, ..place }
    }

    /// The place of prefetches of unaligned rows.
    pub(super) fn prefetch(&self) -> Place {
        self.earlier(self.fill, PREFETCHED + 1)
    }

    /// The time of a place in an iteration of the steady state, and its iteration relative to the one that computes its
    /// tile.
    pub(super) fn time(&self, place: Place) -> (i64, i64) {
        let at = 2 * place.gap + i64::from(place.ahead) - 1;
        (at.rem_euclid(2 * self.steps), at.div_euclid(2 * self.steps))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn product(clocks: u64) -> Step {
        Step { clocks, product: true, registers: 100 }
    }

    /// The times of places in an iteration of the steady state, and their iterations, counted from the first one.
    fn times(of: &Loop, places: &[Place]) -> Vec<(i64, i64)> {
        let of = of.places();
        let times: Vec<(i64, i64)> = places.iter().map(|&place| of.time(place)).collect();
        let first = times.iter().map(|t| t.1).min().unwrap_or(0);
        times.into_iter().map(|(at, iteration)| (at, iteration - first)).collect()
    }

    #[test]
    fn products_of_slices_make_a_multistage_loop() {
        let of = Loop { backbone: vec![product(100); 4], slots: 4, double_buffered: true, tile_registers: 200 };
        let p = of.places();
        let fragments: Vec<Place> = (0..4).map(|i| of.fragments(i)).collect();
        let places = [vec![p.fill, p.wait, p.release], fragments].concat();
        // Slots are filled in front of the first product, three iterations ahead, and waited for in front of the last
        // product of the previous iteration.
        assert_eq!(times(&of, &places), [(0, 0), (5, 2), (5, 3), (6, 2), (0, 3), (2, 3), (4, 3)]);
        assert!(p.release == Place { gap: p.wait.gap + 4, ..p.wait }, "one barrier frees a slot and shows another");
    }

    #[test]
    fn one_set_of_fragments_is_loaded_behind_the_products_that_read_it() {
        let of = Loop { backbone: vec![product(100); 3], slots: 2, double_buffered: false, tile_registers: 200 };
        assert_eq!((0..3).map(|i| of.fragments(i).gap).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(of.places().wait, Place { gap: 0, ahead: false });
    }

    #[test]
    fn slots_are_filled_behind_a_product_which_the_tensor_cores_are_busy_with() {
        let other = Step { clocks: 200, product: false, registers: 60 };
        let of = Loop {
            backbone: vec![other, product(100), other, product(100)],
            slots: 2,
            double_buffered: false,
            tile_registers: 200,
        };
        // After the product of the previous iteration.
        assert_eq!(of.places().fill, Place { gap: 2 - 4, ahead: true });
        let crowded = Loop { tile_registers: 90, backbone: of.backbone.clone(), ..of };
        assert_eq!(crowded.places().fill, Place { gap: -4, ahead: true }, "products leave no registers for addresses");
        let nothing = Loop { backbone: vec![other; 3], ..crowded };
        assert_eq!(nothing.places().fill, Place { gap: -3, ahead: true }, "as soon as a slot is free");
    }
}
