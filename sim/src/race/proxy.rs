//! The async proxy: bulk copies and wgmma, which access memory asynchronously to the warps that issue them.
//!
//! Each operation has its own agent. The writes of copies are released to the phase of the mbarrier that they complete:
//! a thread that observes the end of the phase acquires them. The reads of copies are released to the bulk groups of
//! the thread that waits for them; the reads of wgmma to the groups of the warp. Until then these accesses are ordered
//! before nothing.
//!
//! Ordinary accesses use the generic proxy (PTX ISA 8.2.1). The async proxy observes their writes only after a proxy
//! fence, by the writer before its release or by a thread that acquired it.

use super::access::{Conflict, Issuer, Strength};
use super::async_agents::Slot;
use super::block::{Permitted, Races};
use super::clock_front::{DATA, INITS, Known, OBJECTS, Part};
use super::shadow_cell::{self, Cell, NOBODY, Read};

/// Why the async proxy may not access a word.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ProxyError {
    Race(Conflict),
    /// Ordered, but without a proxy fence in between.
    Unfenced(Conflict),
    /// As `Unfenced`, for a read of wgmma.
    UnfencedProduct(Conflict),
}

impl Races {
    /// The agent for this operation, issued by `warp`.
    pub(crate) fn slot(&mut self, what: Slot, warp: usize) -> usize {
        let slots = &mut self.clocks.slots;
        let next = slots.all.len();
        let number = *slots.known.entry(what).or_insert(next % slots.count);
        if next < slots.count && number == next {
            slots.all.push((what, warp));
        }
        if let Some(slot) = slots.all.get_mut(number) {
            slot.1 = if let Slot::Products(first) = slot.0 { first } else { warp };
        }
        if let Some(owner) = self.sets.owners.get_mut(number) {
            *owner = warp as u16;
        }
        self.clocks.slots.first + number
    }

    /// The clock of an agent's next operation.
    pub(crate) fn start(&mut self, agent: usize) -> u32 {
        self.clocks.advance(agent);
        self.clocks.now(agent)
    }

    /// Whether the async proxy observes the last write of a cell.
    #[inline(always)]
    fn seen(&self, cell: &Cell, who: Issuer) -> Result<(), ProxyError> {
        let (writer, clock) = (usize::from(cell.write_agent), cell.write_clock);
        if cell.write_agent == NOBODY {
            return Ok(());
        }
        let slots = &self.clocks.slots;
        if !cell.flying && self.clocks.row(who.warp).get(writer).is_some_and(|known| clock <= *known) {
            if slots.has(writer) {
                return Ok(());
            }
            if self.clocks.proxy_row(who.warp).is_some_and(|row| row.get(writer).is_some_and(|known| clock <= *known)) {
                return Ok(());
            }
        }
        if let Some(conflict) = shadow_cell::unordered_write(&self.clocks, cell, who) {
            return Err(ProxyError::Race(conflict));
        }
        let lane = usize::from(cell.write_lane);
        if slots.has(writer) || self.clocks.fenced_for_proxy((who.warp, who.lane), (writer, lane), clock, DATA) {
            return Ok(());
        }
        let (warp, lane) = self.clocks.thread(writer, lane);
        Err(ProxyError::Unfenced(Conflict {
            warp,
            lane,
            pc: cell.write_pc,
            wrote: true,
            copy: self.clocks.is_async_agent(writer),
            constant: false,
            byte: 0,
        }))
    }

    /// As [`Races::seen`], for the byte at `at` that `agent` reads; permitted errors are recorded and pass.
    #[inline(always)]
    fn admitted(&mut self, cell: &Cell, who: Issuer, agent: usize, at: usize) -> Result<(), (usize, ProxyError)> {
        let Err(offence) = self.seen(cell, who) else { return Ok(()) };
        let slots = &self.clocks.slots;
        let of = agent.checked_sub(slots.first).and_then(|i| slots.all.get(i)).map(|(slot, _)| *slot);
        match offence {
            ProxyError::Unfenced(other) if matches!(of, Some(Slot::Products(_))) => {
                if !self.allowed.get(other.pc as usize).is_some_and(|allowed| *allowed) {
                    return Err((at, ProxyError::UnfencedProduct(other)));
                }
                let passed = Permitted { warp: who.warp, lane: who.lane, at, other };
                self.passed.entry((who.pc, other.pc)).or_insert(passed);
                Ok(())
            }
            offence => Err((at, offence)),
        }
    }

    /// The async proxy reads `n` bytes on behalf of `who`: `lanes` of `agent` at `clock`. An error carries its first
    /// byte.
    pub(crate) fn async_read(
        &mut self,
        who: Issuer,
        (agent, clock, lanes): (usize, u32, u32),
        at: usize,
        n: usize,
    ) -> Result<(), (usize, ProxyError)> {
        for word in at / 4..(at + n).div_ceil(4) {
            let cell = self.shared.words[word];
            if cell.is_split() {
                for byte in (4 * word).max(at)..(4 * word + 4).min(at + n) {
                    let Some(cell) = self.shared.bytes.get(byte).copied() else { continue };
                    self.admitted(&cell, who, agent, byte)?;
                    let fresh = Read { clock, pc: who.pc, lanes, strength: Strength::Weak };
                    let cell = &mut self.shared.bytes[byte];
                    shadow_cell::read_as(&self.clocks, &mut self.sets, cell, who, agent, fresh)
                        .map_err(|e| (byte, ProxyError::Race(e)))?;
                }
                continue;
            }
            self.admitted(&cell, who, agent, 4 * word)?;
            let row = self.clocks.row(who.warp);
            let cell = &mut self.shared.words[word];
            let reader = usize::from(cell.read_agent);
            if reader == agent && !cell.read_strength.is_strong() {
                // As `Read::then`; lanes are never acquired without the clock that covers them all.
                let alone = cell.read_lanes == lanes || cell.read_clock <= row[agent];
                cell.read_lanes = if alone { lanes } else { cell.read_lanes | lanes };
                (cell.read_clock, cell.read_pc) = (clock.max(cell.read_clock), who.pc);
            } else if cell.read_agent == NOBODY || row.get(reader).is_some_and(|known| cell.read_clock <= *known) {
                (cell.read_agent, cell.read_clock, cell.read_pc) = (agent as u16, clock, who.pc);
                (cell.read_lanes, cell.read_strength) = (lanes, Strength::Weak);
            } else {
                let fresh = Read { clock, pc: who.pc, lanes, strength: Strength::Weak };
                shadow_cell::read_as(&self.clocks, &mut self.sets, cell, who, agent, fresh)
                    .map_err(|e| (4 * word, ProxyError::Race(e)))?;
            }
        }
        Ok(())
    }

    /// The async proxy will write whole words on behalf of `who`; until [`Races::async_land`] any access to them is a
    /// race.
    pub(crate) fn async_claim(
        &mut self,
        who: Issuer,
        agent: usize,
        at: usize,
        n: usize,
    ) -> Result<(), (usize, ProxyError)> {
        let who = Issuer { copy: true, ..who };
        for at in (at..at + n).step_by(4) {
            let cell = self.shared.words[at / 4];
            if cell.is_split() {
                for byte in at..at + 4 {
                    let Some(cell) = self.shared.bytes.get(byte).copied() else { continue };
                    self.seen(&cell, who).map_err(|e| (byte, e))?;
                }
            } else {
                self.seen(&cell, who).map_err(|e| (at, e))?;
            }
            let known = self.clocks.row(who.warp).get(usize::from(cell.read_agent));
            let fresh = cell.read_agent == NOBODY || known.is_some_and(|known| cell.read_clock <= *known);
            if cell.is_split() || !fresh {
                self.shared
                    .write(&self.clocks, &mut self.sets, who, at, 4, false)
                    .map_err(|e| (at, ProxyError::Race(e)))?;
            }
            let written = Cell { write_agent: agent as u16, ..Cell::written(who, 0) };
            self.shared.each(at, 4, |cell| *cell = written);
        }
        Ok(())
    }

    /// As [`Races::async_claim`], for a write that does not use the async proxy.
    pub(crate) fn remote_claim(
        &mut self,
        who: Issuer,
        agent: usize,
        at: usize,
        n: usize,
    ) -> Result<(), (usize, Conflict)> {
        for at in (at..at + n).step_by(4) {
            self.shared.write(&self.clocks, &mut self.sets, who, at, 4, false).map_err(|e| (at, e))?;
            let written = Cell { write_agent: agent as u16, ..Cell::written(who, 0) };
            self.shared.each(at, 4, |cell| *cell = written);
        }
        Ok(())
    }

    /// The write `seq` has happened.
    pub(crate) fn async_land(&mut self, agent: usize, seq: u32, at: usize, n: usize) {
        let clock = self.clocks.now(agent);
        self.shared.each(at, n, |cell| {
            if cell.flying && cell.write_seq == seq && usize::from(cell.write_agent) == agent {
                (cell.flying, cell.write_clock) = (false, clock);
            }
        });
    }

    /// Attributes the last write to global memory to `agent` at `clock`.
    pub(crate) fn async_global(&mut self, address: u64, n: usize, agent: usize, clock: u32) {
        self.global.reattribute_write((address, n), (agent, clock));
    }

    /// Releases the operations of `lanes` of an agent up to `clock` into `into`.
    pub(crate) fn async_done(&self, agent: usize, clock: u32, lanes: u32, into: &mut Known) {
        into.front.join_part(Part { of: agent as u16, clock, lanes }, u32::MAX);
    }

    /// A phase ends: the writes of its copies are released, and later copies belong to the next phase.
    pub(crate) fn phase_ends(&mut self, object: u32, into: &mut Known) {
        if let Some(slot) = self.clocks.slots.known.get(&Slot::Phase(object)) {
            let agent = self.clocks.slots.first + slot;
            self.async_done(agent, self.clocks.now(agent), u32::MAX, into);
            self.clocks.advance(agent);
        }
    }

    /// A thread uses the mbarrier in these eight bytes: its initialisation must happen before.
    pub(crate) fn use_object(&mut self, who: Issuer, at: usize) -> Result<(), (usize, Conflict)> {
        let thread = (who.warp, who.lane);
        for word in [at, at + 4] {
            let Err(conflict) = self.read(who, word, 4) else { continue };
            // The words of an mbarrier are tracked byte by byte.
            let cells = self.shared.bytes.get_mut(word..word + 4).unwrap_or_default();
            let clocks = &self.clocks;
            let published = |cell: &Cell| {
                let writer = (usize::from(cell.write_agent), usize::from(cell.write_lane));
                clocks.fenced_for_proxy(thread, writer, cell.write_clock, INITS)
            };
            if cells.is_empty() || !cells.iter().all(published) {
                return Err((word, conflict));
            }
            let fresh = Read { clock: clocks.now(who.warp), pc: who.pc, lanes: 1 << who.lane, strength: who.strength };
            cells
                .iter_mut()
                .for_each(|cell| shadow_cell::note_read(clocks, &mut self.sets, cell, who, who.warp, fresh));
        }
        Ok(())
    }

    /// A copy outside the async proxy will use the mbarrier in these eight bytes. The initialisation must happen before
    /// the issuing thread; the use ends when the copied data has landed.
    pub(crate) fn knows_object(&self, who: Issuer, at: usize) -> Result<(), (usize, Conflict)> {
        for word in [at, at + 4] {
            let cell = self.shared.bytes.get(word).copied().unwrap_or(self.shared.words[word / 4]);
            let writer = (usize::from(cell.write_agent), usize::from(cell.write_lane));
            let known = cell.write_agent == NOBODY
                || self.clocks.ordered((who.warp, who.lane), writer, cell.write_clock)
                || self.clocks.fenced_for_proxy((who.warp, who.lane), writer, cell.write_clock, INITS);
            if !known {
                let (warp, lane) = self.clocks.thread(writer.0, writer.1);
                let pc = cell.write_pc;
                return Err((word, Conflict { warp, lane, pc, wrote: true, copy: false, constant: false, byte: 0 }));
            }
        }
        Ok(())
    }

    /// Whether the async proxy observes the object whose initialisation wrote this word, on behalf of `who`.
    pub(crate) fn object_seen(&self, who: Issuer, at: usize) -> Result<(), Conflict> {
        let cell = self.shared.bytes.get(at).copied().unwrap_or(self.shared.words[at / 4]);
        let (writer, lane) = (usize::from(cell.write_agent), usize::from(cell.write_lane));
        let fenced =
            |level| self.clocks.fenced_for_proxy((who.warp, who.lane), (writer, lane), cell.write_clock, level);
        if cell.write_agent == NOBODY || fenced(OBJECTS) || fenced(INITS) {
            return Ok(());
        }
        let (warp, lane) = self.clocks.thread(writer, lane);
        Err(Conflict { warp, lane, pc: cell.write_pc, wrote: true, copy: false, constant: false, byte: 0 })
    }
}
