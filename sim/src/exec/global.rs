//! Accesses of threads to global memory: bounds, alignment, definedness, races.

use super::access::{addresses, for_lanes, misaligned, outside};
use super::warp::Warp;
use crate::counters;
use crate::exec::cta::Cta;
use crate::exec::fail::{Fail, Step};
use crate::memory::Alloc;
use crate::program::types::Space;
use crate::program::{Addr, Area};
use crate::race::{Conflict, Issuer, Strength};
use crate::report::ReportKind;

/// Addresses below this are taken for offsets from a null pointer.
const NULL_BYTES: u64 = 1 << 16;
/// Distances from which on a report omits them.
const FAR_BYTES: u64 = 1 << 32;

/// Why some bytes may not be stored to.
#[cold]
fn refused(alloc: &Alloc, lane: usize, address: u64, bytes: u64) -> Box<Fail> {
    if alloc.constant {
        return outside(lane, address, bytes, "writable memory: this is a constant").in_global(address);
    }
    if alloc.read_only {
        let message = format!("{bytes} bytes at {address:#x} are in memory that this launch only reads");
        return Fail::new(ReportKind::ReadOnly, message).at(lane).in_global(address);
    }
    let first = (address..address + bytes).find(|at| alloc.in_gap((at - alloc.base) as usize));
    in_gap(lane, address, bytes, first.unwrap_or(address))
}

/// Why some bytes may not be read, for the first such byte.
#[cold]
fn undefined(alloc: &Alloc, lane: usize, address: u64, bytes: u64) -> Box<Fail> {
    let offset = |at: &u64| (at - alloc.base) as usize;
    let first = (address..address + bytes).find(|at| !alloc.written(offset(at), 1)).unwrap_or(address);
    if alloc.in_gap(offset(&first)) {
        return in_gap(lane, address, bytes, first);
    }
    Fail::new(ReportKind::Uninitialised, format!("global address {first:#x} was never written"))
        .at(lane)
        .in_global(first)
}

/// The report of an access whose first byte in a gap is at `first`.
fn in_gap(lane: usize, address: u64, bytes: u64, first: u64) -> Box<Fail> {
    let message = format!("of the {bytes} bytes at {address:#x} byte {} is in a gap between elements", first - address);
    Fail::new(ReportKind::OutOfBounds, message).at(lane).in_global(first)
}

impl Cta<'_> {
    pub(crate) fn global(&self, lane: usize, address: u64, bytes: u64) -> Result<&Alloc, Box<Fail>> {
        match self.device.find(address) {
            Some(alloc) if alloc.holds(address, bytes) => {
                if address & (bytes - 1) != 0 {
                    Err(misaligned(lane, address, bytes).in_global(address))
                } else {
                    Ok(alloc)
                }
            }
            found => {
                let near = match self.device.nearest(address) {
                    _ if address < NULL_BYTES => {
                        "every allocation: the pointer is null, or an offset without one".to_owned()
                    }
                    Some((first, n)) if first.abs_diff(address) > FAR_BYTES => {
                        format!("every allocation, far from all of them; the nearest has {n} bytes at {first:#x}")
                    }
                    Some((first, n)) if address >= first => {
                        format!("every allocation; the nearest has {n} bytes, and this is byte {}", address - first)
                    }
                    Some((first, n)) => {
                        format!("every allocation; the nearest has {n} bytes and starts {} later", first - address)
                    }
                    None => "global memory: nothing is allocated".to_owned(),
                };
                // The first byte that is outside.
                let inside = found.is_some_and(|alloc| alloc.holds(address, 1));
                let end = found.map_or(address, Alloc::end);
                Err(outside(lane, address, bytes, &near).in_global(if inside { end } else { address }))
            }
        }
    }

    /// The same, for a store.
    pub(crate) fn writable(&self, lane: usize, address: u64, bytes: u64) -> Result<&Alloc, Box<Fail>> {
        let alloc = self.global(lane, address, bytes)?;
        match alloc.takes((address - alloc.base) as usize, bytes as usize) {
            true => Ok(alloc),
            false => Err(refused(alloc, lane, address, bytes)),
        }
    }

    pub(crate) fn count_global(&mut self, pc: usize, mask: u32, addresses: &[u64; 32], bytes: u64) {
        let counts = &mut self.counts[pc];
        let sectors = counters::sectors(addresses, mask);
        let named = bytes * u64::from(mask.count_ones());
        counts.requests += 1;
        counts.sectors += sectors;
        counts.ideal_sectors += sectors.min(named.div_ceil(32));
        counts.global_bytes += named;
        counts.bytes += named;
    }

    /// Reads up to 16 bytes of global memory; only reads with `noted` take part in race checks.
    pub(crate) fn read_global(
        &mut self,
        who: Issuer,
        address: u64,
        bytes: u64,
        noted: bool,
    ) -> Result<[u32; 4], Box<Fail>> {
        let lane = who.lane;
        let early = self.after_other_grids(who);
        let alloc = self.global(lane, address, bytes)?;
        if !alloc.unchanging {
            early?;
        }
        let start = (address - alloc.base) as usize;
        let mut out = [0; 4];
        let n = bytes.min(4) as usize;
        let mut defined = true;
        for (i, word) in out.iter_mut().enumerate().take((bytes as usize).div_ceil(4)) {
            let at = start + i * 4;
            defined &= alloc.written(at, n);
            *word = alloc.word(at) >> (at % 4 * 8);
        }
        // Read-only memory has no races.
        if noted && !alloc.read_only {
            self.races.publish_accesses(self.grid, self.block, false);
            if let Err(conflict) = self.races.read_global(who, address, bytes as usize) {
                return Err(self.global_race(conflict, lane, address, false));
            }
        }
        if defined { Ok(out) } else { Err(undefined(self.global(lane, address, bytes)?, lane, address, bytes)) }
    }

    /// After a read of constant data: no thread of the block may have written the bytes (PTX ISA, `ld.global.nc`).
    pub(crate) fn check_constant(&mut self, lane: usize, address: u64, bytes: u64) -> Step {
        match self.races.read_constant(address, bytes as usize) {
            Ok(()) => Ok(()),
            Err(conflict) => Err(self.global_race(conflict, lane, address, false)),
        }
    }

    /// A race of an access at an address.
    pub(super) fn global_race(&self, conflict: Conflict, lane: usize, address: u64, writes: bool) -> Box<Fail> {
        let address = address + conflict.byte as u64;
        let (mine, theirs) = (if writes { "write" } else { "read" }, if conflict.wrote { "write" } else { "read" });
        let who = if conflict.copy { "an asynchronous copy nobody waited for" } else { "another thread" };
        let message = format!(
            "this {mine} of global address {address:#x} and an earlier {theirs} by {who} of the block are not ordered by any \
             barrier"
        );
        let constant = format!(
            "this {mine} of global address {address:#x} and a {theirs} by another instruction, one of them `.nc` or `ldu`: that is for data \
             which nobody writes while the kernel runs"
        );
        let (kind, message) = match conflict.constant {
            true => (ReportKind::Invalid, constant),
            false => (ReportKind::Race, message),
        };
        Fail::new(kind, message).because(self.cause(conflict)).at(lane).in_global(address).against(conflict)
    }

    /// Writes up to 16 bytes of global memory.
    pub(crate) fn write_global(&mut self, who: Issuer, address: u64, bytes: u64, data: [u32; 4]) -> Step {
        self.after_other_grids(who)?;
        let alloc = self.writable(who.lane, address, bytes)?;
        let start = (address - alloc.base) as usize;
        let mut same = true;
        let n = bytes.min(4) as usize;
        let cut = if n == 4 { u32::MAX } else { (1 << (8 * n)) - 1 };
        for i in 0..(bytes as usize).div_ceil(4) {
            let at = start + i * 4;
            same &= alloc.word(at) >> (at % 4 * 8) & cut == data[i] & cut;
            alloc.put(at, n, data[i]);
        }
        self.races.publish_accesses(self.grid, self.block, false);
        match self.races.write_global(who, address, bytes as usize, same) {
            Ok(()) => Ok(()),
            Err(conflict) => Err(self.global_race(conflict, who.lane, address, true)),
        }
    }

    /// `discard`: the 128 bytes at each lane's address become undefined (PTX 9.7.9.18), which is a write of them.
    pub(crate) fn discard(&mut self, w: &Warp, addr: Addr, area: Area, mask: u32, pc: usize) -> Step {
        let mut at = addresses(w, addr, mask)?;
        let (warp, seq) = (w.index, self.next_seq());
        self.by_space(area, mask, &mut at, |cta, space, mask, at| {
            for_lanes!(lane in mask => {
                if space != Space::Global {
                    return Err(outside(lane, at[lane], 128, "global memory, which alone is discarded"));
                }
                let who = Issuer { warp, lane, pc: pc as u32, seq, strength: Strength::Weak, copy: false };
                for part in (at[lane]..).step_by(16).take(8) {
                    cta.write_global(who, part, 16, [0; 4])?;
                }
                let alloc = cta.global(lane, at[lane], 128)?;
                alloc.forget((at[lane] - alloc.base) as usize, 128);
            });
            Ok(())
        })
    }
}
