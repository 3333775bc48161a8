//! `cp.async`: issue, groups, landing.
//!
//! Reads of the source happen at issue. A copy in flight is a write ordered before nothing; one that has landed counts as a
//! write by the thread that waited for it, at the moment it waited: other threads need a barrier after that, as on the
//! device. In the late mode the destination is moreover undefined until then, an independent way to catch an early reader.

use super::access::{addresses, for_lanes};
use super::asynchronous::{Copy, Landing};
use super::warp::Warp;
use super::{Cta, Fail, Step};
use crate::program::CpAsync;
use crate::race::Who;
use crate::report::ReportKind;

impl Cta<'_> {
    /// Issues a copy in every lane of `m`.
    pub(crate) fn copy_async(&mut self, w: &mut Warp, copy: &CpAsync, m: u32, pc: usize) -> Step {
        if m == 0 {
            return Ok(());
        }
        let dst = addresses(w, copy.dst, m)?;
        let src = addresses(w, copy.src, m)?;
        let size = u64::from(copy.size);
        self.count_shared(pc, m, &dst, size);
        self.count_global(pc, m, &src, size);
        let seq = self.next_seq();
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
                if (p.v >> lane & 1 != 0) != negate {
                    n = 0;
                }
            }
            let mut bytes = [0u32; 4];
            let reader = Who { warp: w.index, lane, pc: pc as u32, seq, strong: false, copy: false };
            if n == size {
                bytes = self.read_global(reader, src[lane], size)?;
            } else {
                for i in 0..n {
                    let byte = self.read_global(reader, src[lane] + i, 1)?[0] & 0xFF;
                    bytes[i as usize / 4] |= byte << (i % 4 * 8);
                }
            }
            // From here until the wait nobody may touch the destination, and whoever still reads the old contents races too.
            let who = Who { warp: w.index, lane, pc: pc as u32, seq, strong: false, copy: true };
            self.write_shared(who, dst[lane], size, bytes)?;
            if self.landing == Landing::Late {
                self.shared.poison(dst[lane] as usize, size as usize);
            }
            let group = w.copies.groups[lane];
            let copy = Copy { lane: lane as u8, group, pc: pc as u32, dst: dst[lane], bytes, size: copy.size };
            w.copies.flying.push(copy);
        });
        Ok(())
    }

    /// Waits in every lane of `m` until at most `n` of its newest groups are in flight; `None` for all copies.
    pub(crate) fn copy_wait(&mut self, w: &mut Warp, n: Option<u32>, m: u32) {
        let seq = self.next_seq();
        let mut flying = std::mem::take(&mut w.copies.flying);
        flying.retain(|copy| {
            let lane = usize::from(copy.lane);
            let done = match n {
                None => true,
                Some(n) => copy.group < w.copies.groups[lane].saturating_sub(n),
            };
            if m >> lane & 1 == 0 || !done {
                return true;
            }
            let who = Who { warp: w.index, lane, pc: copy.pc, seq, strong: false, copy: false };
            self.races.land(who, copy.dst as usize, usize::from(copy.size));
            self.settle(copy);
            false
        });
        w.copies.flying = flying;
    }

    /// Lands what nobody waited for, at the end of the kernel.
    pub(crate) fn land_all(&mut self, w: &mut Warp) {
        for copy in std::mem::take(&mut w.copies.flying) {
            self.settle(&copy);
        }
    }

    /// The bytes of a late copy appear.
    fn settle(&mut self, copy: &Copy) {
        if self.landing == Landing::Late {
            for i in 0..usize::from(copy.size).div_ceil(4) {
                self.shared.put(copy.dst as usize + i * 4, 4, copy.bytes[i]);
            }
        }
    }
}
