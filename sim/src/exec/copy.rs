//! `cp.async`: issue, groups, landing.
//!
//! A copy in flight is a write that is ordered before nothing. A landed copy counts as a write by the thread that
//! waited for it, at the time of the wait: other threads need a barrier after that, as on the device. If only an
//! mbarrier tracks the landing, it is a write of the warp's copy engine, and threads that wait for the mbarrier are
//! ordered after it.

use super::access::{addresses, for_lanes};
use super::asynchronous::{Arrival, Copy, Landing};
use super::warp::Warp;
use crate::counters::{self, copies::Form};
use crate::exec::cta::Cta;
use crate::exec::fail::{Fail, Step};
use crate::program::CpAsync;
use crate::race::{Issuer, Known, Strength};
use crate::report::ReportKind;

impl Cta<'_> {
    /// Issues a copy in every lane of `m`.
    pub(crate) fn copy_async(&mut self, w: &mut Warp, copy: &CpAsync, m: u32, pc: usize) -> Step {
        if m == 0 {
            return Ok(());
        }
        let dst = addresses(w, copy.dst, m)?;
        self.check_own(m, &dst)?;
        let src = addresses(w, copy.src, m)?;
        let size = u64::from(copy.size);
        let mut reads = 0u32;
        let seq = self.next_seq();
        let clock = self.races.clocks.start_copies(w.index);
        for_lanes!(lane in m => {
            let mut n = size;
            if let Some(r) = copy.src_size {
                let slot = &w.w[r as usize];
                if slot.ok >> lane & 1 == 0 {
                    return Err(Fail::new(ReportKind::Undefined, "the size of a copy is undefined").at(lane));
                }
                n = u64::from(slot.v[lane]);
                if n > size {
                    let message = format!("a copy of {size} bytes cannot read {n}");
                    return Err(Fail::new(ReportKind::Invalid, message).at(lane));
                }
            }
            if let Some((p, negate)) = copy.ignore {
                let p = &w.p[p as usize];
                if p.ok >> lane & 1 == 0 {
                    let message = "the predicate that ignores the source of a copy is undefined";
                    return Err(Fail::new(ReportKind::Undefined, message).at(lane));
                }
                if (p.v >> lane & 1 != 0) != negate {
                    n = 0;
                }
            }
            if n > 0 {
                reads |= 1 << lane;
            }
            let mut copy = Copy {
                lane: lane as u8,
                group: w.copies.groups[lane],
                pc: pc as u32,
                seq,
                src: src[lane],
                read: n as u8,
                dst: dst[lane],
                bytes: [0; 4],
                size: copy.size,
                clock,
            };
            copy.bytes = self.read_source(w.index, &copy, true)?;
            // From here until the wait, any access to the destination is a race, and so are unordered earlier reads of
            // it.
            let who = Issuer { warp: w.index, lane, pc: pc as u32, seq, strength: Strength::Weak, copy: true };
            if let Err(fail) = self.claim_shared(who, dst[lane], size, false) {
                if fail.kind != ReportKind::Race || !self.is_repeated(w, &copy) {
                    return Err(fail);
                }
                self.claim_shared(who, dst[lane], size, true)?;
            }
            if self.landing == Landing::Early {
                self.finish_copy(&copy);
            } else if self.landing.poisons() {
                self.shared.poison(dst[lane] as usize, size as usize);
            }
            w.copies.pending[lane] += 1;
            w.copies.flying.push(copy);
        });
        let form = Form { bytes: size, cached: copy.cached, partial: copy.partial };
        self.count_copy(pc, m, reads, &src, &dst, form);
        Ok(())
    }

    /// Whether another lane copies the same bytes to the same place; only checked if there is a conflict.
    #[cold]
    fn is_repeated(&self, w: &Warp, copy: &Copy) -> bool {
        let mut there = w.copies.flying.iter().filter(|other| other.dst == copy.dst).peekable();
        if there.peek().is_some() {
            return there.any(|other| other.repeats(copy));
        }
        let words = copy.bytes.iter().enumerate().take(usize::from(copy.size) / 4);
        words.into_iter().all(|(i, word)| self.shared.get(copy.dst as usize + 4 * i, 4) == Some(*word))
    }

    /// Counts the copies of the lanes of `m`, of which those in `reads` read their source.
    fn count_copy(&mut self, pc: usize, m: u32, reads: u32, src: &[u64; 32], dst: &[u64; 32], form: Form) {
        let cost = counters::copies::cost(src, dst, m, reads, form);
        let counts = &mut self.counts[pc];
        let named = form.bytes * u64::from(reads.count_ones());
        counts.wavefronts += cost.wavefronts;
        counts.ideal_wavefronts += cost.ideal;
        counts.parted += cost.parted;
        counts.requests += u64::from(reads != 0);
        counts.sectors += cost.sectors;
        counts.ideal_sectors += cost.sectors.min(named.div_ceil(32));
        counts.global_bytes += named;
        counts.bytes += named + form.bytes * u64::from(m.count_ones());
    }

    /// The current bytes at a copy's source, which is read once.
    fn read_source(&mut self, warp: usize, copy: &Copy, noted: bool) -> Result<[u32; 4], Box<Fail>> {
        let (n, size) = (u64::from(copy.read), u64::from(copy.size));
        let lane = usize::from(copy.lane);
        let who = Issuer { warp, lane, pc: copy.pc, seq: copy.seq, strength: Strength::Weak, copy: true };
        if n == size {
            return self.read_global(who, copy.src, size, noted);
        }
        let mut bytes = [0u32; 4];
        for i in 0..n {
            let byte = self.read_global(who, copy.src.wrapping_add(i), 1, noted)?[0] & 0xFF;
            bytes[i as usize / 4] |= byte << (i % 4 * 8);
        }
        Ok(bytes)
    }

    /// Waits in every lane of `m` until at most `n` of its newest groups are in flight; `None` for all copies.
    pub(crate) fn copy_wait(&mut self, w: &mut Warp, n: Option<u32>, m: u32) -> Step {
        let done = |w: &Warp, copy: &Copy| {
            let lane = usize::from(copy.lane);
            m >> lane & 1 != 0 && n.is_none_or(|n| copy.group < w.copies.groups[lane].saturating_sub(n))
        };
        let mut known = Known::default();
        let (mut landed, mut lanes) = (Vec::new(), 0u32);
        let flying = std::mem::take(&mut w.copies.flying);
        for copy in flying {
            if done(w, &copy) {
                lanes |= 1 << copy.lane;
                w.copies.pending[usize::from(copy.lane)] -= 1;
                landed.push(copy);
            } else {
                w.copies.flying.push(copy);
            }
        }
        for copy in &landed {
            let lane = usize::from(copy.lane);
            // If a later arrival at an mbarrier is pending, its waiters are ordered after the copy by that.
            let arrivals = &w.copies.arrivals[lane];
            let tells = arrivals.get(arrivals.partition_point(|clock| *clock < copy.clock)).copied();
            let (at, size) = (copy.dst as usize, usize::from(copy.size));
            let clock = match tells {
                Some(clock) => {
                    self.races.land_at_mbarrier((w.index, copy.lane), copy.seq, clock, at, size);
                    clock
                }
                None => {
                    self.races.land((w.index, copy.lane), copy.seq, at, size);
                    copy.clock
                }
            };
            self.land(w.index, copy)?;
            w.copies.landed[lane] = w.copies.landed[lane].max(clock);
        }
        // The thread now also sees copies that landed by an mbarrier, and that their sources have been read.
        if n.is_none_or(|n| n == 0) {
            lanes |= m;
        }
        for_lanes!(lane in lanes => {
            if w.copies.landed[lane] > 0 {
                self.races.clocks.copies_done(w.index, lane, w.copies.landed[lane], u32::MAX, &mut known);
            }
        });
        if lanes != 0 {
            self.races.clocks.acquire(w.index, lanes, w.live, &known);
        }
        Ok(())
    }

    /// Lands the copies of a lane that precede an arrival at an mbarrier, and arrives.
    pub(crate) fn arrive_after_copies(&mut self, w: &mut Warp, arrival: Arrival) -> Step {
        let flying = if w.copies.pending[arrival.lane] > 0 { std::mem::take(&mut w.copies.flying) } else { Vec::new() };
        for copy in flying {
            if usize::from(copy.lane) != arrival.lane || copy.clock > arrival.clock {
                w.copies.flying.push(copy);
                continue;
            }
            w.copies.pending[arrival.lane] -= 1;
            let (at, size) = (copy.dst as usize, usize::from(copy.size));
            self.races.land_at_mbarrier((w.index, copy.lane), copy.seq, arrival.clock, at, size);
            self.land(w.index, &copy)?;
            w.copies.landed[arrival.lane] = arrival.clock;
        }
        let mut known = Known::default();
        self.races.clocks.copies_done(w.index, arrival.lane, arrival.clock, u32::MAX, &mut known);
        self.arrive_from_engine(arrival, &known)
    }

    /// Lands copies that no thread has awaited, at the end of the kernel.
    pub(crate) fn land_unawaited(&mut self, w: &mut Warp) -> Result<(), (u32, Box<Fail>)> {
        for copy in std::mem::take(&mut w.copies.flying) {
            self.land(w.index, &copy).map_err(|e| (copy.pc, e))?;
        }
        Ok(())
    }

    /// Writes the bytes of a late copy.
    fn land(&mut self, warp: usize, copy: &Copy) -> Step {
        if self.landing == Landing::Early {
            return Ok(());
        }
        let mut copy = *copy;
        if self.landing.reads_late() {
            copy.bytes = self.read_source(warp, &copy, false)?;
        }
        self.finish_copy(&copy);
        Ok(())
    }

    fn finish_copy(&mut self, copy: &Copy) {
        for i in 0..usize::from(copy.size).div_ceil(4) {
            self.shared.put(copy.dst as usize + i * 4, 4, copy.bytes[i]);
        }
    }
}
