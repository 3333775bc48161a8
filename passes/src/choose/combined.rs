//! Atomic operations of copies on memory (`copy .. add`): traffic, and work of the second-level cache.
//!
//! The second-level cache combines values with memory. A line that is not in it is read from memory before, and written
//! later. If the line stays in the cache until the next addition to it, memory moves it once for both. Windows are compared
//! as those of loads are ([`super::cached`]). Where indices from memory say which elements these are, they count
//! as random.
//!
//! The cache combines a limited number of sectors per clock, and the values of one address one after the other.

use super::cached::{bytes_of, missed_at_random, neighbours};
use super::cards::Card;
use super::combining::{BOTH_WAYS, Combined};
use super::cost::Cost;
use super::model::launch::{L2_SHARE, Launch};
use super::search_context::SearchContext;
use super::work::{Env, Move, Work};
use tilec_ir::entities::Value;
use tilec_ir::target::SECTOR_BYTES;

/// The share of the second-level cache's rate at which it combines values. `embedding_backward.tile` with
/// 65536x1024 elements on an H200 adds 268 MB in 163.7 us: 905 bytes of 7500 per clock (docs/performance.md). For other
/// cards it is an assumption, and so is that a sector with one such element takes as long as a full one.
const RATE: f64 = 0.12;
/// Clocks of an operation on an address after another one on it. An assumption, not measured.
const AGAIN: f64 = 1.0;

impl Work<'_> {
    /// The least bytes between memory and the cache for tensors that values are combined with: each once in both
    /// directions.
    pub(super) fn least_combined(&self, env: &Env) -> f64 {
        let combined = |v: Value| self.moves().any(|m| m.combines && m.tensor == v);
        let own = self.tensors.iter().filter(|tensor| combined(tensor.value));
        BOTH_WAYS * own.map(|tensor| self.needed(env, tensor)).sum::<f64>()
    }
}

impl SearchContext<'_> {
    /// Finds what atomic operations of each part take.
    pub(super) fn combine(&self, env: &Env, cost: &mut Cost) {
        let work = self.work;
        for (region, part) in work.regions.iter().zip(&mut cost.parts) {
            part.combined = vec![None; region.moves.len()];
            (part.adds, part.swapped, part.sectors) = (0.0, 0.0, 0.0);
        }
        for tensor in &work.tensors {
            let own = |m: &Move| m.combines && m.tensor == tensor.value;
            if !work.moves().any(own) {
                continue;
            }
            let whole = tensor.elem.traffic(work.elements(env, &tensor.shape).unwrap_or(0) as f64);
            let of = self.combined(env, cost, &own, whole);
            for (region, part) in work.regions.iter().zip(&mut cost.parts) {
                for (i, m) in region.moves.iter().enumerate().filter(|(_, m)| own(m)) {
                    let Some(&bytes) = part.copied.get(i) else { continue };
                    part.combined[i] = Some(of);
                    part.adds += bytes;
                    part.swapped += of.moved(bytes);
                    part.sectors += self.sectors(env, m);
                }
            }
        }
    }

    /// The atomic operations on a tensor of `whole` bytes.
    fn combined(&self, env: &Env, cost: &Cost, own: &dyn Fn(&Move) -> bool, whole: f64) -> Combined {
        let work = self.work;
        let room = L2_SHARE * self.card.l2_size * 1e6;
        let copied: Vec<Vec<f64>> = cost.parts.iter().map(|part| part.copied.clone()).collect();
        let trips: Vec<f64> = cost.parts.iter().map(|part| part.trips).collect();
        let counts: Vec<i64> = work.k.grid.iter().map(|axis| work.int(env, axis.extent).unwrap_or(1).max(1)).collect();
        let Some(touched) = work.touched(env, own, &copied, &trips) else {
            let blocks: f64 = counts.iter().map(|&n| n as f64).product();
            let missed = missed_at_random(self.card, whole, blocks * bytes_of(work, cost, own));
            return Combined { same: None, missed };
        };
        let block: f64 = cost.parts.iter().map(|part| part.trips * (part.loads + part.stores)).sum();
        let inside = touched.distinct();
        let (mut distinct, mut missed, mut between) = (inside, inside, 1.0);
        for (axis, &count) in work.k.grid.iter().zip(&counts) {
            let [here, next] = neighbours(env, axis.index, count).map(|env| work.touched(&env, own, &copied, &trips));
            if let (Some(here), Some(next)) = (here.filter(|_| count > 1), next) {
                let common = here.in_common(&next);
                let share = (1.0 + (count - 1) as f64 * (1.0 - common)) / count as f64;
                distinct *= share;
                // Blocks that are neighbours along an axis run one sweep of the axes before it apart.
                missed *= if between * block <= room { share } else { 1.0 };
            }
            between *= count as f64;
        }
        Combined { same: Some(1.0 / distinct), missed }
    }

    /// Sectors that an execution of a copy combines with.
    fn sectors(&self, env: &Env, m: &Move) -> f64 {
        let run = m.contiguous.and_then(|d| self.work.extent(env, *m.shape.get(d)?)).unwrap_or(1);
        let runs = self.work.elements(env, &m.shape).unwrap_or(0) as f64 / run as f64;
        runs * (m.elem.bytes_of(run) as f64 / f64::from(SECTOR_BYTES)).ceil()
    }
}

/// Seconds in which the second-level cache combines the values of a launch.
pub(super) fn seconds(card: &Card, cost: &Cost, launch: &Launch) -> f64 {
    let blocks: f64 = launch.grid.iter().product();
    let sectors: f64 = blocks * cost.parts.iter().map(|part| part.trips * part.sectors).sum::<f64>();
    let bytes = sectors * f64::from(SECTOR_BYTES);
    let all = cost.parts.iter().flat_map(|part| &part.combined).flatten();
    let same = all.filter_map(|combined| combined.same).fold(0.0, f64::max);
    (bytes / (RATE * card.l2)).max(if bytes > 0.0 { AGAIN * same } else { 0.0 }) / (card.clock * 1e9)
}
