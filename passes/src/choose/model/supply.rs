//! What multiprocessors get from the second-level cache and from memory, in bytes per clock.
//!
//! Fitted to the kernels of `h200.csv` for sm_90a (fit.rs). Products of few rows show the limits best. 72 blocks, each loading 1 MB of weights, take as long as
//! 128 that load as much each, and 40 blocks with 2 MB take less: neighbouring multiprocessors share what can be on its way from memory.

use crate::choose::cards::Card;

/// The limits.
#[derive(Copy, Clone, Debug)]
pub(in crate::choose) struct Supply {
    /// From the second-level cache: one multiprocessor at most, one whose neighbour rests, and all together.
    pub(in crate::choose) port: f64,
    pub(in crate::choose) lone: f64,
    pub(in crate::choose) cache: f64,
    /// All together for longer than a round or two: the card is at its limit of power then.
    pub(in crate::choose) steady: f64,
    /// From memory: two neighbouring multiprocessors together, and one whose neighbour rests.
    pub(in crate::choose) pair: f64,
    pub(in crate::choose) single: f64,
    /// Where blocks that share operands come past them at different times: of what they load again, the share that comes from memory if the operands
    /// do not fit the cache, and the share of the cache's rate that is left.
    pub(in crate::choose) again: f64,
    pub(in crate::choose) slower: f64,
}

/// Found by `fit.rs` for the H200, and rounded, but for `steady`, which is set by hand ([`ROUNDS`]).
pub(in crate::choose) static SUPPLY: Supply = Supply {
    port: 64.0,
    lone: 94.6,
    cache: 9000.0,
    steady: 6000.0,
    pair: 39.523,
    single: 80.0,
    again: 0.203,
    slower: 0.657,
};

/// Rounds of tiles up to which the second-level cache gives what it can (1164x9216x16384 of bf16 on an H200, tiles of 64x256 in six rounds: 37 bytes a clock
/// and multiprocessor; 256x2560x4864 in one: 50).
const ROUNDS: f64 = 2.0;
/// Share of the second-level cache in which operands stay.
const STAYS: f64 = 0.6;

/// Whether of so many multiprocessors that work some are neighbours, which share what is on its way.
fn have_neighbours(card: &Card, active: f64) -> bool {
    active > f64::from(card.sms) / 2.0
}

impl Supply {
    /// What one of `active` multiprocessors gets from the second-level cache in so many rounds. `apart`: they come past shared operands at different
    /// times.
    pub(in crate::choose) fn cache_rate(&self, card: &Card, active: f64, apart: bool, rounds: f64) -> f64 {
        let most = if have_neighbours(card, active) { self.port } else { self.lone };
        let together = if rounds > ROUNDS { self.steady } else { self.cache };
        most.min(together / active.max(1.0)) * if apart { self.slower } else { 1.0 }
    }

    /// What one of `active` multiprocessors gets from memory, as far as it limits that itself.
    pub(in crate::choose) fn memory_rate(&self, card: &Card, active: f64) -> f64 {
        if have_neighbours(card, active) { self.pair / 2.0 } else { self.single }
    }

    /// Bytes from memory where `readers` blocks load each operand at different times; `once`: bytes if they did so together, of `operands` in all.
    pub(in crate::choose) fn read_again(&self, card: &Card, operands: f64, once: f64, readers: f64) -> f64 {
        if operands <= STAYS * card.l2_size * 1e6 { once } else { once * (1.0 + self.again * (readers - 1.0)) }
    }

    /// Clocks in which `tiles` blocks load so many bytes each from memory, `places` at a time.
    pub(in crate::choose) fn rounds(&self, card: &Card, bytes: f64, tiles: f64, places: f64) -> f64 {
        let full = (tiles / places).floor();
        let rest = tiles - full * places;
        let last = if rest > 0.0 { bytes / self.memory_rate(card, rest) } else { 0.0 };
        full * bytes / self.memory_rate(card, places) + last
    }
}
