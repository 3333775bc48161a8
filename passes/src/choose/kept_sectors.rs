//! Sectors of which an iteration uses a part, and the next iterations of the same block the rest.
//!
//! A row of a window may be shorter than a sector of 32 bytes, and the windows of the iterations adjacent. Then the next
//! iterations find the rest of the sector in the first-level cache, if that holds what all resident blocks load in an
//! iteration, in lines. Else they find it in the second-level cache, if that holds the sectors of all blocks that run
//! at once. So memory moves a sector once.

use super::cards::Card;
use super::cost::Cost;
use super::kept::Kept;
use super::model::launch::L2_SHARE;
use super::search_context::SearchContext;
use super::work::{Env, Move, Region, Work};
use crate::analysis::access_width::MAX_ACCESS_BYTES;
use crate::tile_scheduler::cluster::LINE;
use tilec_ir::index;
use tilec_ir::target::SECTOR_BYTES;

impl SearchContext<'_> {
    /// Finds where sectors of each copy are kept. Returns the bytes of each copy from which the sectors that a cache holds
    /// are left out.
    pub(super) fn keep_sectors(&self, env: &Env, cost: &mut Cost) -> Vec<Vec<f64>> {
        let work = self.work;
        let blocks: f64 =
            work.k.grid.iter().map(|axis| work.int(env, axis.extent).unwrap_or(1).max(1) as f64).product();
        let sms = f64::from(self.card.sms);
        let resident = (cost.resident as f64).min((blocks / sms).ceil());
        let first = (self.card.first_level() - resident * cost.block.shared as f64).max(0.0);
        let second = L2_SHARE * self.card.l2_size * 1e6;
        let (mut all, all_blocks) = (Vec::new(), blocks.min(sms * resident));
        for (region, part) in work.regions.iter().zip(&mut cost.parts) {
            let loads = || region.moves.iter().filter(|m| m.load);
            let lines: f64 = loads().map(|m| work.in_units(env, m, LINE as f64)).sum();
            let sectors: f64 = loads().map(|m| work.in_units(env, m, f64::from(SECTOR_BYTES))).sum();
            part.kept = vec![Kept::Nowhere; region.moves.len()];
            let mut copied = part.copied.clone();
            for (i, m) in region.moves.iter().enumerate() {
                // Asynchronous copies of 16 bytes pass the first-level cache by.
                let passes_by = m.buffer.is_some()
                    && m.plain
                    && self.target.has_asynchronous_copies()
                    && self.access(env, m, &[]) == u64::from(MAX_ACCESS_BYTES);
                let Some(distinct) = work.of_each_sector(env, region, m) else { continue };
                part.kept[i] = match () {
                    _ if !passes_by && resident * lines <= first => Kept::L1,
                    _ if all_blocks * sectors <= second => Kept::L2,
                    _ => continue,
                };
                let Some(bytes) = copied.get_mut(i) else { continue };
                let again = *bytes * (1.0 - distinct);
                *bytes -= again;
                part.cached += again;
                part.near += if part.kept[i] == Kept::L1 { again } else { 0.0 };
            }
            all.push(copied);
        }
        all
    }
}

impl Work<'_> {
    /// The share of the sectors of a load that an iteration does not have in common with the next ones, if its rows are
    /// parts of sectors and the windows of iterations are adjacent.
    fn of_each_sector(&self, env: &Env, region: &Region, m: &Move) -> Option<f64> {
        let (&v, &[start, end, step]) = region.variables.last().zip(region.loops.last())?;
        let [start, end, step] = [start, end, step].map(|e| self.int(env, e));
        let (start, step) = (start?, step?);
        if !m.load || index::trips(start, end?, step)? < 2 {
            return None;
        }
        let window = |at: i64| {
            let mut env = env.clone();
            env[v] = Some(at);
            self.window(&env, m)
        };
        let along = m.innermost?;
        let apart = window(start)?.apart(&window(start.checked_add(step)?)?, along)?;
        let run = m.contiguous.and_then(|d| self.extent(env, *m.shape.get(d)?)).unwrap_or(1);
        let sector = f64::from(SECTOR_BYTES);
        let moved = m.elem.traffic(apart.abs());
        // Windows with gaps between them leave bytes unused.
        (moved > 0.0 && moved <= m.elem.traffic(run as f64) && m.elem.bytes_of(run) < u64::from(SECTOR_BYTES))
            .then(|| moved / sector)
    }

    /// Bytes of what a load touches in an iteration, in units of so many.
    fn in_units(&self, env: &Env, m: &Move, unit: f64) -> f64 {
        let run = m.contiguous.and_then(|d| self.extent(env, *m.shape.get(d)?)).unwrap_or(1);
        let runs = self.elements(env, &m.shape).unwrap_or(0) as f64 / run as f64;
        runs * (m.elem.bytes_of(run) as f64 / unit).ceil() * unit
    }
}

impl Card {
    /// Bytes of the first-level cache and shared memory of a multiprocessor together (CUDA C++ Programming Guide, technical
    /// specifications; tuning guides of the architectures).
    fn first_level(&self) -> f64 {
        1024.0
            * match self.cc {
                70 => 128.0,
                75 => 96.0,
                80 => 192.0,
                86 | 89 => 128.0,
                _ => 256.0,
            }
    }
}
