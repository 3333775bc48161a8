//! Bandwidth of a multiprocessor from the second-level cache and from memory, in bytes per clock.
//!
//! Fitted to the kernels of `h200.csv` for sm_90a (fit.rs). Products of few rows show the limits best. 72 blocks that
//! each load 1 MB of weights take as long as 128 such blocks, and 40 blocks with 2 MB take less: neighbouring
//! multiprocessors share the number of outstanding loads.

use crate::choose::cards::Card;

/// The limits.
#[derive(Copy, Clone, Debug)]
pub(in crate::choose) struct Supply {
    /// From the second-level cache: one multiprocessor at most, one with an idle neighbour, and all together.
    pub(in crate::choose) port: f64,
    pub(in crate::choose) lone: f64,
    pub(in crate::choose) cache: f64,
    /// All together for more than one or two rounds, when the card is at its power limit.
    pub(in crate::choose) steady: f64,
    /// From memory: two neighbouring multiprocessors together, and one with an idle neighbour.
    pub(in crate::choose) pair: f64,
    pub(in crate::choose) single: f64,
    /// If blocks read common operands at different times: the share of repeated loads that comes from memory if the
    /// operands exceed the cache, and the remaining share of the cache's rate.
    pub(in crate::choose) again: f64,
    pub(in crate::choose) slower: f64,
}

/// Found by `fit.rs` for the H200, and rounded; `steady` is set by hand ([`ROUNDS`]).
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

/// Rounds of tiles up to which the second-level cache keeps its full rate (1164x9216x16384 of bf16 on an H200, tiles of
/// 64x256 in six rounds: 37 bytes per clock and multiprocessor; 256x2560x4864 in one round: 50).
const ROUNDS: f64 = 2.0;
/// The share of the second-level cache that keeps operands.
const OPERANDS_OF_CACHE: f64 = 0.6;

/// Whether some of `active` multiprocessors are neighbours, which share their outstanding loads.
fn have_neighbours(card: &Card, active: f64) -> bool {
    active > f64::from(card.sms) / 2.0
}

impl Supply {
    /// The rate of one of `active` multiprocessors from the second-level cache over `rounds` rounds. `apart`: they read
    /// common operands at different times.
    pub(in crate::choose) fn cache_rate(&self, card: &Card, active: f64, apart: bool, rounds: f64) -> f64 {
        let most = if have_neighbours(card, active) { self.port } else { self.lone };
        let shared_rate = if rounds > ROUNDS { self.steady } else { self.cache };
        most.min(shared_rate / active.max(1.0)) * if apart { self.slower } else { 1.0 }
    }

    /// The rate of one of `active` multiprocessors from memory, by its own limit.
    pub(in crate::choose) fn memory_rate(&self, card: &Card, active: f64) -> f64 {
        if have_neighbours(card, active) { self.pair / 2.0 } else { self.single }
    }

    /// Bytes from memory if `readers` blocks load each operand at different times; `once`: bytes if they loaded at the
    /// same time; `operands`: bytes of all operands.
    pub(in crate::choose) fn read_again(&self, card: &Card, operands: f64, once: f64, readers: f64) -> f64 {
        if operands <= OPERANDS_OF_CACHE * card.l2_size * 1e6 {
            once
        } else {
            once * (1.0 + self.again * (readers - 1.0))
        }
    }

    /// Clocks in which `tiles` blocks each load `bytes` from memory, `places` blocks at a time.
    pub(in crate::choose) fn rounds(&self, card: &Card, bytes: f64, tiles: f64, places: f64) -> f64 {
        let full = (tiles / places).floor();
        let rest = tiles - full * places;
        let last = if rest > 0.0 { bytes / self.memory_rate(card, rest) } else { 0.0 };
        full * bytes / self.memory_rate(card, places) + last
    }
}
