//! The time of blocks whose loops of wgmma have a modulo schedule: a persistent grid with one block per multiprocessor.
//!
//! An iteration takes the clocks of the schedule, at the rate that the power of the card sustains. Or it takes the time
//! of its tiles' transfer from the second-level cache.

use super::launch::{L2_PORT, SHARED, Terms, Time};
use super::warpgroups::FITTED;
use crate::choose::cards::Card;

/// A loop.
#[derive(Copy, Clone, Debug)]
pub(in crate::choose) struct Loop {
    pub(in crate::choose) trips: f64,
    /// Clocks of an iteration, by the schedule; 0: it has none.
    pub(in crate::choose) length: f64,
    /// Clocks of the tensor cores in an iteration at full utilisation.
    pub(in crate::choose) product: f64,
    /// Number of warpgroups whose products have operands computed in the iteration.
    pub(in crate::choose) groups: f64,
    /// Bytes that an iteration loads.
    pub(in crate::choose) loads: f64,
    /// Bytes of shared memory that its products read and its copies move.
    pub(in crate::choose) shared: f64,
}

/// What is to be done.
#[derive(Copy, Clone, Debug)]
pub(in crate::choose) struct Tiles {
    /// Tiles of the output.
    pub(in crate::choose) tiles: f64,
    /// Whether tiles have different durations, so that no multiprocessor waits for whole tiles of others at the end.
    pub(in crate::choose) even: bool,
    /// Clocks of a tile outside of its loops.
    pub(in crate::choose) ends: f64,
    /// Bytes of all tensors.
    pub(in crate::choose) bytes: f64,
}

/// Clocks that each warpgroup adds to an iteration beyond the schedule: waits, and products that do not start at once.
/// (Attention on an H200, causal, D 128, L 8192: 913 us in tiles of 128x128, 1143 us in 128x64, 1076 us in 192x64; the
/// schedules alone predict 972, 1084 and 921 us.)
pub(in crate::choose) const AROUND: f64 = 100.0;

/// The time of a launch.
pub(in crate::choose) fn time(card: &Card, of: &Tiles, all: impl Iterator<Item = Loop>) -> Time {
    let (clock, sms, tiles) = (card.clock * 1e9, f64::from(card.sms), of.tiles);
    let (mut products, mut waits, mut l2, mut loops) = (0.0, 0.0, 0.0, 0.0);
    for Loop { trips, length, product, groups, loads, shared } in all {
        let feed = loads / L2_PORT.min(card.l2 / sms);
        // Products at full rate exceed the power limit of the card, and so do transfers at the same time.
        let length = if length > 0.0 { length + AROUND * groups } else { 0.0 };
        let issued = length / FITTED.sustained + FITTED.power * shared / SHARED + FITTED.moving * feed;
        if length > 0.0 {
            // In the schedule, products wait for computations between them.
            let working = (product / length).min(1.0);
            products += trips * issued * working;
            waits += trips * issued * (1.0 - working);
            loops += trips * issued.max(feed);
        }
        l2 += trips * feed;
    }
    let ends = of.ends + FITTED.landing;
    let rounds = if of.even { (tiles / sms).max(1.0) } else { (tiles / sms).ceil() };
    let memory = of.bytes / (card.dram * 1e9);
    let working = rounds * (loops + ends) / clock;
    let terms = Terms {
        products: tiles / sms * products / clock,
        latency: tiles / sms * waits / clock,
        l2: tiles / sms * l2 / clock,
        memory,
        ends: rounds * ends / clock,
        uneven: (rounds - tiles / sms).max(0.0) * loops / clock,
        launch: FITTED.launch,
        ..Terms::default()
    };
    let (seconds, waves) = (FITTED.launch + working.max(memory), tiles / sms);
    Time { seconds, working, awaited: 0.0, terms, tiles, blocks: tiles, waves, bytes: of.bytes, least_bytes: of.bytes }
}
