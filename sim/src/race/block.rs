//! The race detector's state of a running block.

use super::access::{Conflict, Issuer};
use super::block_sync::{BlockSync, Logs};
use super::clocks::Clocks;
use super::flags::{FlagAccess, Flags};
use super::global::Global;
use super::grid::Grid;
use super::lockstep::{Step, Steps};
use super::shadow_cell::Sets;
use super::shared::Shared;
use std::collections::BTreeMap;

/// A permitted violation: warp and lane, shared address, and the access it conflicts with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Permitted {
    pub(crate) warp: usize,
    pub(crate) lane: usize,
    pub(crate) at: usize,
    pub(crate) other: Conflict,
}

/// Clocks and shadow memory of a block.
#[derive(Debug)]
pub(crate) struct Races {
    pub(crate) clocks: Clocks,
    pub(super) shared: Shared,
    pub(super) sets: Sets,
    /// What strong accesses have published through flag words.
    flags: Flags,
    pub(super) global: Global,
    /// Lanes of each warp that have read with `.cg` (past L1) since their last barrier.
    pub(crate) uncached: Vec<u32>,
    /// For each instruction, whether wgmma may read what it wrote without a proxy fence; empty: for none.
    pub(crate) allowed: Vec<bool>,
    /// Where that happened, keyed by the two instructions.
    pub(crate) passed: BTreeMap<(u32, u32), Permitted>,
    /// What this block publishes to other blocks and acquires from them.
    contacts: BlockSync,
    steps: Steps,
}

impl Races {
    /// `beside`: number of agents of the async proxy, without the copy engines of the warps.
    pub(crate) fn new(warps: usize, shared_bytes: usize, beside: usize) -> Races {
        Races {
            clocks: Clocks::new(warps, beside),
            shared: Shared::new(shared_bytes),
            sets: Sets::new(warps, beside),
            flags: Flags::default(),
            global: Global::default(),
            uncached: vec![0; warps],
            allowed: Vec::new(),
            passed: BTreeMap::new(),
            contacts: BlockSync::default(),
            steps: Steps::new(warps),
        }
    }

    /// Fast path of [`Races::read`] for whole words; returns whether it applied and the read is recorded.
    #[inline(always)]
    pub(crate) fn read_words(&mut self, who: Issuer, at: usize, words: usize) -> bool {
        self.shared.read_words(&self.clocks, &mut self.sets, who, at, words)
    }

    /// Fast path of [`Races::write`] for whole words; if it returns false, the caller must check the write again.
    #[inline(always)]
    pub(crate) fn write_words(&mut self, who: Issuer, at: usize, words: usize) -> bool {
        self.shared.write_words(&self.clocks, who, at, words)
    }

    /// [`Races::read_words`] of four words on behalf of several lanes: `lanes[i]` read word `i`.
    pub(crate) fn read_row(&mut self, who: Issuer, at: usize, lanes: [u32; 4]) -> bool {
        self.shared.read_row(&self.clocks, &mut self.sets, who, at, lanes)
    }

    /// [`Races::read_words`] of 32 lanes, `words` consecutive words each, starting at `at`; returns how many leading
    /// lanes are recorded.
    #[inline(always)]
    pub(crate) fn read_line(&mut self, who: Issuer, at: usize, words: usize) -> usize {
        self.shared.read_line(&self.clocks, &mut self.sets, who, at, words)
    }

    /// [`Races::write_words`] of 32 lanes, likewise.
    #[inline(always)]
    pub(crate) fn write_line(&mut self, who: Issuer, at: usize, words: usize) -> usize {
        self.shared.write_line(&self.clocks, who, at, words)
    }

    /// A read of `n` bytes of shared memory at `at`, within one word.
    pub(crate) fn read(&mut self, who: Issuer, at: usize, n: usize) -> Result<(), Conflict> {
        self.shared.read(&self.clocks, &mut self.sets, who, at, n)
    }

    /// A write; `same` says that the bytes do not change by it.
    pub(crate) fn write(&mut self, who: Issuer, at: usize, n: usize, same: bool) -> Result<(), Conflict> {
        self.shared.write(&self.clocks, &mut self.sets, who, at, n, same)
    }

    /// A read of up to 16 bytes of global memory, aligned to their number; the conflict with its address.
    #[inline]
    pub(crate) fn read_global(&mut self, who: Issuer, address: u64, n: usize) -> Result<(), Conflict> {
        self.global.read(&self.clocks, &mut self.sets, who, address, n)
    }

    /// A write; `same` says that the bytes do not change by it.
    #[inline]
    pub(crate) fn write_global(&mut self, who: Issuer, address: u64, n: usize, same: bool) -> Result<(), Conflict> {
        self.global.write(&self.clocks, &mut self.sets, who, (address, n), same)
    }

    /// Prefetches the shadow cells of these addresses of global memory.
    pub(crate) fn look_ahead(&self, addresses: impl Iterator<Item = u64>) {
        self.global.look_ahead(addresses);
    }

    /// Sets the moment ([`Logs::moment`]) of the next strong accesses, and whether their threads observe the old value.
    pub(crate) fn at_moment(&mut self, moment: u64, sees: bool) {
        self.global.moment = (moment, sees);
    }

    /// A read of these bytes of global memory as constants, after [`Races::read_global`].
    pub(crate) fn read_constant(&mut self, address: u64, n: usize) -> Result<(), Conflict> {
        self.global.read_constant(&self.sets, address, n)
    }

    /// A strong access of `lane` to the flag at `address`: an offset in shared memory or an address of global memory.
    pub(crate) fn touch(&mut self, (warp, lane, live): (usize, usize, u32), address: u64, touch: FlagAccess) {
        if touch != FlagAccess::Store {
            for known in self.flags.seen(address) {
                self.clocks.see(warp, 1 << lane, known);
            }
        }
        if touch != FlagAccess::Load {
            let what = self.clocks.published(warp, lane, live, false);
            if what.is_some() || !self.flags.is_empty() {
                self.flags.put(address, what, touch);
            }
        }
    }

    /// Remembers a strong access of a warp. Called before the access is checked.
    pub(crate) fn record_strong(&mut self, warp: usize, step: Step) {
        self.steps.record_strong(warp, step);
    }

    /// The access that a strong access of a lane to shared byte `at` depends on in lockstep ([`Steps::with`]).
    pub(crate) fn in_step_with(&self, thread: (usize, usize), at: usize, writes: bool) -> Option<Conflict> {
        self.steps.with(&self.clocks, &self.sets, thread, self.shared.cell(at)?, writes)
    }

    /// A strong access of a thread of `block` to a flag in global memory with a scope beyond the block: publishes to
    /// and acquires from other blocks.
    pub(crate) fn access_global_flag(
        &mut self,
        logs: &mut Logs,
        (warp, lane, live): (usize, usize, u32),
        (block, address, touch): (u64, u64, FlagAccess),
    ) {
        if touch != FlagAccess::Store
            && let Some(number) = self.contacts.see(logs, block, address)
        {
            self.clocks.see_others(warp, 1 << lane, number);
        }
        if touch != FlagAccess::Load {
            let by = ((warp * 32 + lane) as u32, self.clocks.changes(warp));
            let clocks = &self.clocks;
            self.contacts.write(logs, (block, address, touch), by, || clocks.published(warp, lane, live, true));
        }
    }

    /// Adds this block's accesses to global memory to the grid: when they are many, or at the end of the block.
    #[inline]
    pub(crate) fn publish_accesses(&mut self, grid: Option<&Grid>, block: u64, end: bool) {
        if !end && !self.global.is_full() {
            return;
        }
        // Later accesses of the block are not compared with these.
        self.global.forgot |= !end;
        if let Some(grid) = grid {
            grid.add(block, &self.global, &self.sets, &self.contacts, end);
        }
        self.global.clear();
    }

    /// Approximate host memory of the state, in bytes.
    pub(crate) fn host_bytes(&self) -> u64 {
        self.global.host_bytes()
    }

    /// Whether accesses to global memory were dropped for lack of room.
    pub(crate) fn forgot(&self) -> bool {
        self.global.forgot
    }

    /// Excludes bytes that belong to no variable from the fast paths.
    pub(crate) fn forbid(&mut self, start: usize, end: usize) {
        self.shared.forbid(&mut self.sets, start, end);
    }

    /// Excludes a word from the fast paths: it holds an object, such as an mbarrier, not a number.
    pub(crate) fn set_apart(&mut self, at: usize) {
        self.shared.divide(&mut self.sets, at / 4);
    }

    /// The copy `seq` of this thread has landed and the thread has waited: from now on it is a write of the thread.
    /// Conflicting accesses in between have been reported already.
    pub(crate) fn land(&mut self, (warp, lane): (usize, u8), seq: u32, at: usize, n: usize) {
        let clock = self.clocks.now(warp);
        self.shared.each(at, n, |cell| {
            if cell.flying && (cell.write_seq, cell.write_lane) == (seq, lane) {
                (cell.flying, cell.write_clock) = (false, clock);
            }
        });
    }

    /// The copy has landed but only its mbarrier observes that: it is a write of the engine at `clock`.
    pub(crate) fn land_at_mbarrier(&mut self, (warp, lane): (usize, u8), seq: u32, clock: u32, at: usize, n: usize) {
        let engine = self.clocks.engine(warp) as u16;
        self.shared.each(at, n, |cell| {
            if cell.flying && (cell.write_seq, cell.write_lane) == (seq, lane) {
                (cell.flying, cell.write_clock, cell.write_agent) = (false, clock, engine);
            }
        });
    }
}
