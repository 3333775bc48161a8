//! Loads, stores and atomics: every access is checked for bounds, alignment and definedness, and on shared memory for
//! races.

use super::warp::Warp;
use crate::counters::Kind;
use crate::exec::cta::Cta;
use crate::exec::fail::{Fail, Step};
use crate::program::bulk::Direction;
use crate::program::types::{LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, Space, WINDOW_BYTES};
use crate::program::{Addr, Area, Base, Op};
use crate::race::{Conflict, Issuer};
use crate::report::{Cause, ReportKind};

/// The lanes of a mask, lowest first.
macro_rules! for_lanes {
    ($lane:ident in $mask:expr => $body:block) => {
        let mut left: u32 = $mask;
        while left != 0 {
            let $lane = left.trailing_zeros() as usize;
            left &= left - 1;
            $body
        }
    };
}
pub(crate) use for_lanes;

/// The addresses of the lanes; an undefined one is an error.
pub(crate) fn addresses(warp: &Warp, addr: Addr, mask: u32) -> Result<[u64; 32], Box<Fail>> {
    let (out, ok) = match addr.base {
        Base::None => ([addr.offset as u64; 32], u32::MAX),
        Base::R32(r) => {
            let slot = &warp.w[r as usize];
            (slot.v.map(|v| u64::from(v.wrapping_add(addr.offset as u32))), slot.ok)
        }
        Base::R64(r) => {
            let slot = &warp.l[r as usize];
            (slot.v.map(|v| v.wrapping_add_signed(addr.offset)), slot.ok)
        }
    };
    if ok & mask != mask {
        let lane = (mask & !ok).trailing_zeros() as usize;
        return Err(Fail::new(ReportKind::Undefined, "the address depends on an undefined register").at(lane));
    }
    Ok(out)
}

/// The state space of a generic address, and the address in it.
pub(super) fn window(address: u64) -> (Space, u64) {
    for (start, space) in [(SHARED_WINDOW, Space::Shared), (LOCAL_WINDOW, Space::Local), (PARAM_WINDOW, Space::Param)] {
        if let Some(offset) = address.checked_sub(start).filter(|o| *o < WINDOW_BYTES) {
            return (space, offset);
        }
    }
    (Space::Global, address)
}

/// The report of a misaligned address.
pub(super) fn misaligned(lane: usize, address: u64, bytes: u64) -> Box<Fail> {
    let message = format!("address {address:#x} is not a multiple of the {bytes} bytes accessed");
    Fail::new(ReportKind::Misaligned, message).at(lane).address(address)
}

pub(super) fn outside(lane: usize, address: u64, bytes: u64, what: &str) -> Box<Fail> {
    let message = format!("{bytes} bytes at {address:#x} are outside {what}");
    Fail::new(ReportKind::OutOfBounds, message).at(lane).address(address)
}

impl Cta<'_> {
    /// Splits the lanes by the memory they access, and calls `f` for each part.
    pub(crate) fn by_space(
        &mut self,
        area: Area,
        mask: u32,
        addresses: &mut [u64; 32],
        mut f: impl FnMut(&mut Self, Space, u32, &[u64; 32]) -> Step,
    ) -> Step {
        match area {
            Area::In(Space::Cluster) => {
                self.check_reachable(mask, addresses)?;
                f(self, Space::Shared, mask, addresses)
            }
            Area::In(space) => {
                if space == Space::Shared {
                    self.check_own(mask, addresses)?;
                }
                f(self, space, mask, addresses)
            }
            Area::Generic => {
                let mut left = mask;
                let generic = *addresses;
                while left != 0 {
                    let first = window(generic[left.trailing_zeros() as usize]).0;
                    let mut part = 0;
                    for_lanes!(lane in left => {
                        let (space, address) = window(generic[lane]);
                        if space == first {
                            part |= 1 << lane;
                            addresses[lane] = address;
                        }
                    });
                    if first == Space::Shared {
                        self.check_reachable(part, addresses)?;
                    }
                    f(self, first, part, addresses)?;
                    left &= !part;
                }
                Ok(())
            }
        }
    }

    /// Addresses of shared memory, given there or in the generic window.
    pub(crate) fn shared_addresses(&self, w: &Warp, addr: Addr, area: Area, mask: u32) -> Result<[u64; 32], Box<Fail>> {
        let mut at = addresses(w, addr, mask)?;
        if area == Area::Generic {
            for_lanes!(lane in mask => {
                match at[lane].checked_sub(SHARED_WINDOW).filter(|o| *o < WINDOW_BYTES) {
                    Some(offset) => at[lane] = offset,
                    None => {
                        let message = format!("{:#x} is no address of shared memory", at[lane]);
                        return Err(Fail::new(ReportKind::OutOfBounds, message).at(lane).address(at[lane]));
                    }
                }
            });
        }
        match area {
            Area::In(Space::Shared) => self.check_own(mask, &at)?,
            _ => self.check_reachable(mask, &at)?,
        }
        Ok(at)
    }

    pub(crate) fn check_shared(&self, lane: usize, address: u64, bytes: u64) -> Result<usize, Box<Fail>> {
        self.check_aligned(lane, address, bytes)
    }

    /// A race of an access to shared memory at an address.
    pub(crate) fn race(&self, conflict: Conflict, lane: usize, address: usize, writes: bool) -> Box<Fail> {
        let address = address + conflict.byte;
        let (mine, theirs) = (if writes { "write" } else { "read" }, if conflict.wrote { "write" } else { "read" });
        let message = format!(
            "this {mine} of shared address {address:#x} and an earlier {theirs} by another thread are not ordered by any \
             barrier"
        );
        let message = match conflict.copy {
            true => {
                format!("this {mine} touches shared address {address:#x}, the destination of a copy nobody waited for")
            }
            false => message,
        };
        let fail = Fail::new(ReportKind::Race, message).because(self.cause(conflict));
        fail.at(lane).in_shared(address as u64).against(conflict)
    }

    /// What is missing on the other side of a race.
    pub(crate) fn cause(&self, other: Conflict) -> Cause {
        // A `cp.async` that its own thread has awaited is not visible to other threads yet.
        let pending = self.pending(other.pc as usize).filter(|cause| other.copy || *cause == Cause::CopyPending);
        pending.unwrap_or(Cause::Unordered)
    }

    /// The kind of wait that an asynchronous instruction needs, if it is one.
    pub(crate) fn pending(&self, pc: usize) -> Option<Cause> {
        match &self.entry.code.get(pc)?.op {
            Op::CpAsync(_) => Some(Cause::CopyPending),
            Op::Wgmma(_) => Some(Cause::ProductPending),
            Op::Remote(_) => Some(Cause::LoadPending),
            Op::Bulk(bulk) => Some(match bulk.direction {
                Direction::Load { .. } | Direction::Between { .. } => Cause::LoadPending,
                Direction::Store | Direction::Reduce { .. } | Direction::Prefetch => Cause::StorePending,
            }),
            _ => None,
        }
    }

    /// Reads up to 16 bytes of shared memory.
    pub(crate) fn read_shared(&mut self, who: Issuer, address: u64, bytes: u64) -> Result<[u32; 4], Box<Fail>> {
        let at = self.check_shared(who.lane, address, bytes)?;
        self.check_no_mbarrier(who.lane, at, bytes)?;
        let mut out = [0; 4];
        let n = bytes.min(4) as usize;
        for (i, word) in out.iter_mut().enumerate().take((bytes as usize).div_ceil(4)) {
            let at = at + i * 4;
            if let Err(conflict) = self.races.read(who, at, n) {
                return Err(self.race(conflict, who.lane, at, false));
            }
            match self.shared.get(at, n) {
                Some(v) => *word = v,
                None => {
                    let at = self.shared.undefined(at, n);
                    let message = format!("shared address {at:#x} was never written");
                    return Err(Fail::new(ReportKind::Uninitialised, message).at(who.lane).in_shared(at as u64));
                }
            }
        }
        Ok(out)
    }

    /// Writes up to 16 bytes of shared memory.
    pub(crate) fn write_shared(&mut self, who: Issuer, address: u64, bytes: u64, data: [u32; 4]) -> Step {
        let at = self.check_shared(who.lane, address, bytes)?;
        self.check_no_mbarrier(who.lane, at, bytes)?;
        let n = bytes.min(4) as usize;
        for (i, word) in data.iter().enumerate().take((bytes as usize).div_ceil(4)) {
            let at = at + i * 4;
            let same = self.shared.put(at, n, *word);
            if let Err(conflict) = self.races.write(who, at, n, same) {
                return Err(self.race(conflict, who.lane, at, true));
            }
        }
        Ok(())
    }

    fn check_no_mbarrier(&self, lane: usize, at: usize, bytes: u64) -> Step {
        if self.touches_mbarrier(at, bytes as usize) {
            let message = format!(
                "{bytes} bytes at shared address {at:#x} touch an mbarrier, which only its own instructions may"
            );
            return Err(Fail::new(ReportKind::Invalid, message).at(lane).in_shared(at as u64));
        }
        Ok(())
    }

    /// Announces a later write of up to 16 bytes of shared memory; `same`: an earlier announced write has the same
    /// value.
    pub(crate) fn claim_shared(&mut self, who: Issuer, address: u64, bytes: u64, same: bool) -> Step {
        let at = self.check_shared(who.lane, address, bytes)?;
        self.check_no_mbarrier(who.lane, at, bytes)?;
        for at in (at..at + bytes as usize).step_by(4) {
            if let Err(conflict) = self.races.write(who, at, 4, same) {
                return Err(self.race(conflict, who.lane, at, true));
            }
        }
        Ok(())
    }

    pub(crate) fn count_shared(&mut self, pc: usize, mask: u32, addresses: &[u64; 32], bytes: u64, kind: Kind) {
        let (wavefronts, ideal) = self.banks.wavefronts(pc, addresses, mask, bytes, kind);
        let counts = &mut self.counts[pc];
        counts.wavefronts += wavefronts;
        counts.ideal_wavefronts += ideal;
        counts.bytes += bytes * u64::from(mask.count_ones());
    }
}
