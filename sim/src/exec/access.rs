//! Loads, stores and atomics: every access checked for bounds, alignment, definedness, and on shared memory for races.

use super::warp::Warp;
use super::{Cta, Fail, Step};
use crate::counters::Kind;
use crate::parse::raw::Space;
use crate::program::{Access, Addr, Area, Base, L64, LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, WINDOW_BYTES};
use crate::race::{Conflict, Who};
use crate::report::ReportKind;

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

/// Whether all lanes access neighbouring places of `bytes` bytes, which exist as addresses of a block's memory.
#[inline(always)]
fn in_a_row(at: &[u64; 32], mask: u32, bytes: u64) -> bool {
    let first = at[0];
    mask == u32::MAX
        && first & (bytes - 1) == 0
        && first < 1 << 20
        && at.iter().zip(0u64..).fold(true, |same, (a, lane)| same & (*a == first.wrapping_add(bytes * lane)))
}

/// Which memory a generic address lies in, and the address there.
pub(super) fn window(address: u64) -> (Space, u64) {
    for (start, space) in [(SHARED_WINDOW, Space::Shared), (LOCAL_WINDOW, Space::Local), (PARAM_WINDOW, Space::Param)] {
        if let Some(offset) = address.checked_sub(start).filter(|o| *o < WINDOW_BYTES) {
            return (space, offset);
        }
    }
    (Space::Global, address)
}

/// An address with its memory: out of bounds and alignment failures.
pub(super) fn misaligned(lane: usize, address: u64, bytes: u64) -> Box<Fail> {
    let message = format!("address {address:#x} is no multiple of the {bytes} bytes accessed");
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
            Area::In(space) => f(self, space, mask, addresses),
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
        Ok(at)
    }

    pub(crate) fn check_shared(&self, lane: usize, address: u64, bytes: u64) -> Result<usize, Box<Fail>> {
        if address >= self.shared.bytes || bytes > self.shared.bytes - address {
            return Err(outside(lane, address, bytes, &format!("the {} bytes of shared memory", self.shared.bytes)));
        }
        if address & (bytes - 1) != 0 {
            return Err(misaligned(lane, address, bytes));
        }
        Ok(address as usize)
    }

    pub(crate) fn race(&self, conflict: Conflict, lane: usize, address: usize, writes: bool) -> Box<Fail> {
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
        let mut fail = Fail::new(ReportKind::Race, message).at(lane).address(address as u64);
        fail.other = Some(conflict);
        fail
    }

    /// Reads up to 16 bytes of shared memory.
    pub(crate) fn read_shared(&mut self, who: Who, address: u64, bytes: u64) -> Result<[u32; 4], Box<Fail>> {
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
                    let message = format!("shared address {at:#x} was never written");
                    return Err(Fail::new(ReportKind::Uninitialised, message).at(who.lane).address(at as u64));
                }
            }
        }
        Ok(out)
    }

    /// Writes up to 16 bytes of shared memory.
    pub(crate) fn write_shared(&mut self, who: Who, address: u64, bytes: u64, data: [u32; 4]) -> Step {
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
            return Err(Fail::new(ReportKind::Invalid, message).at(lane).address(at as u64));
        }
        Ok(())
    }

    /// Announces a write of up to 16 bytes of shared memory that will happen later.
    pub(crate) fn claim_shared(&mut self, who: Who, address: u64, bytes: u64) -> Step {
        let at = self.check_shared(who.lane, address, bytes)?;
        self.check_no_mbarrier(who.lane, at, bytes)?;
        for at in (at..at + bytes as usize).step_by(4) {
            if let Err(conflict) = self.races.write(who, at, 4, false) {
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

    /// The common load: whole words of shared memory to 32-bit slots.
    fn load_words(&mut self, warp: &mut Warp, access: &Access, mask: u32, pc: usize) -> Step {
        let n = usize::from(access.n);
        let at = addresses(warp, access.addr, mask)?;
        let bytes = 4 * u64::from(access.n);
        let seq = self.next_seq();
        self.count_shared(pc, mask, &at, bytes, Kind::Load);
        let mut out = [[0u32; 32]; 4];
        let mut left = mask;
        if in_a_row(&at, mask, bytes) {
            let who = Who { warp: warp.index, lane: 0, pc: pc as u32, seq, strong: false, copy: false };
            if let Some(words) = self.shared.words(at[0] as usize, 32 * n) {
                // The lanes from the first that is not done on are done one by one.
                let done = self.races.read_line(who, at[0] as usize, n);
                match n {
                    1 => out[0].copy_from_slice(words),
                    _ => {
                        for (lane, own) in words.chunks_exact(n).enumerate() {
                            for (out, word) in out.iter_mut().zip(own) {
                                out[lane] = *word;
                            }
                        }
                    }
                }
                left = u32::MAX.checked_shl(done as u32).unwrap_or(0);
            }
        }
        for_lanes!(lane in left => {
            let who = Who { warp: warp.index, lane, pc: pc as u32, seq, strong: false, copy: false };
            let here = at[lane] as usize;
            let aligned = at[lane] & (bytes - 1) == 0 && at[lane] < self.shared.bytes;
            let fast = match self.shared.words(here, n) {
                Some(words) if aligned && self.races.read_words(who, here, n) => {
                    for (out, word) in out.iter_mut().zip(words) {
                        out[lane] = *word;
                    }
                    true
                }
                _ => false,
            };
            if !fast {
                let words = self.read_shared(who, at[lane], bytes)?;
                for (out, word) in out.iter_mut().zip(words) {
                    out[lane] = word;
                }
            }
        });
        for (r, v) in access.regs.iter().zip(&out).take(n) {
            warp.put32(*r, mask, v, u32::MAX);
        }
        Ok(())
    }

    /// The common store: whole words of defined 32-bit slots to shared memory.
    fn store_words(&mut self, warp: &Warp, access: &Access, mask: u32, pc: usize) -> Step {
        let n = usize::from(access.n);
        let at = addresses(warp, access.addr, mask)?;
        let bytes = 4 * u64::from(access.n);
        let seq = self.next_seq();
        self.count_shared(pc, mask, &at, bytes, Kind::Other);
        let mut left = mask;
        if in_a_row(&at, mask, bytes) && at[0] < self.shared.bytes && self.shared.bytes - at[0] >= 32 * bytes {
            let who = Who { warp: warp.index, lane: 0, pc: pc as u32, seq, strong: false, copy: false };
            let done = self.races.write_line(who, at[0] as usize, n);
            if n == 1 {
                self.shared.put_words(at[0] as usize, &warp.w[access.regs[0] as usize].v[..done]);
            } else {
                let mut data = [0u32; 128];
                for (k, r) in access.regs.iter().enumerate().take(n) {
                    for (lane, v) in warp.w[*r as usize].v.iter().enumerate() {
                        data[lane * n + k] = *v;
                    }
                }
                self.shared.put_words(at[0] as usize, &data[..done * n]);
            }
            left = u32::MAX.checked_shl(done as u32).unwrap_or(0);
        }
        for_lanes!(lane in left => {
            let who = Who { warp: warp.index, lane, pc: pc as u32, seq, strong: false, copy: false };
            let here = at[lane] as usize;
            let inside = at[lane] < self.shared.bytes && bytes <= self.shared.bytes - at[lane];
            let mut data = [0u32; 4];
            for (word, r) in data.iter_mut().zip(&access.regs).take(n) {
                *word = warp.w[*r as usize].v[lane];
            }
            if inside && at[lane] & (bytes - 1) == 0 && self.races.write_words(who, here, n) {
                self.shared.put_words(here, &data[..n]);
            } else {
                self.write_shared(who, at[lane], bytes, data)?;
            }
        });
        Ok(())
    }

    /// `ld`.
    pub(crate) fn load(&mut self, warp: &mut Warp, access: &Access, mask: u32, pc: usize) -> Step {
        if mask == 0 {
            return Ok(());
        }
        if access.area == Area::In(Space::Shared) && access.size == 4 && !access.wide && !access.strong {
            return self.load_words(warp, access, mask, pc);
        }
        let mut at = addresses(warp, access.addr, mask)?;
        let bytes = u64::from(access.size) * u64::from(access.n);
        let mut data = [[0u32; 4]; 32];
        let seq = self.next_seq();
        let (index, live) = (warp.index, warp.live);
        self.by_space(access.area, mask, &mut at, |cta, space, mask, at| {
            match space {
                Space::Shared => {
                    cta.count_shared(pc, mask, at, bytes, Kind::Load);
                    for_lanes!(lane in mask => {
                        let who = Who { warp: index, lane, pc: pc as u32, seq, strong: access.strong, copy: false };
                        data[lane] = cta.read_shared(who, at[lane], bytes)?;
                        if access.strong {
                            cta.races.synchronise(index, lane, live, at[lane] as u32 / 4);
                        }
                    });
                }
                Space::Global | Space::Const => {
                    cta.count_global(pc, mask, at, bytes);
                    for_lanes!(lane in mask => {
                        let who = Who { warp: index, lane, pc: pc as u32, seq, strong: access.strong, copy: false };
                        data[lane] = cta.read_global(who, at[lane], bytes, true)?;
                        if access.strong {
                            cta.races.synchronise_globally(index, lane, live, at[lane]);
                            cta.races.learn(access.ordered, cta.moments);
                        }
                    });
                }
                Space::Param => {
                    for_lanes!(lane in mask => {
                        data[lane] = cta.read_param(lane, at[lane], bytes)?;
                    });
                }
                Space::Local => {
                    for_lanes!(lane in mask => {
                        let memory = cta.local(index, lane, at[lane], bytes)?;
                        let start = at[lane] as usize;
                        for i in 0..(bytes as usize).div_ceil(4) {
                            let Some(v) = memory.get(start + i * 4, bytes.min(4) as usize) else {
                                let message = format!("local address {:#x} was never written", start + i * 4);
                                return Err(Fail::new(ReportKind::Uninitialised, message).at(lane));
                            };
                            data[lane][i] = v;
                        }
                    });
                }
            }
            Ok(())
        })?;
        for i in 0..usize::from(access.n) {
            let size = usize::from(access.size);
            if size == 4 && !access.wide {
                let v = std::array::from_fn(|lane| data[lane][i]);
                warp.put32(access.regs[i], mask, &v, u32::MAX);
                continue;
            }
            let v: L64 = std::array::from_fn(|lane| {
                let d = &data[lane];
                let bits = match size {
                    8 => u64::from(d[2 * i]) | u64::from(d[2 * i + 1]) << 32,
                    4 => u64::from(d[i]),
                    _ => {
                        let at = i * size;
                        u64::from(d[at / 4] >> (at % 4 * 8)) & ((1 << (size * 8)) - 1)
                    }
                };
                let unused = 64 - 8 * size as u32;
                if access.signed { ((bits << unused) as i64 >> unused) as u64 } else { bits }
            });
            warp.put_any(access.regs[i], access.wide, mask, &v, u32::MAX);
        }
        Ok(())
    }

    fn read_param(&self, lane: usize, address: u64, bytes: u64) -> Result<[u32; 4], Box<Fail>> {
        let n = self.params.len() as u64;
        if address >= n || bytes > n - address {
            return Err(outside(lane, address, bytes, &format!("the {n} bytes of parameters")));
        }
        if address & (bytes - 1) != 0 {
            return Err(misaligned(lane, address, bytes));
        }
        let mut out = [0u32; 4];
        for i in 0..bytes as usize {
            out[i / 4] |= u32::from(self.params[address as usize + i]) << (i % 4 * 8);
        }
        Ok(out)
    }

    fn local(
        &mut self,
        warp: usize,
        lane: usize,
        address: u64,
        bytes: u64,
    ) -> Result<&mut super::scratch::Scratch, Box<Fail>> {
        let size = self.entry.local_bytes;
        if address >= size || bytes > size - address {
            return Err(outside(lane, address, bytes, &format!("the {size} bytes of local memory")));
        }
        if address & (bytes - 1) != 0 {
            return Err(misaligned(lane, address, bytes));
        }
        Ok(&mut self.locals[warp * 32 + lane])
    }

    /// `st`.
    pub(crate) fn store(&mut self, warp: &mut Warp, access: &Access, mask: u32, pc: usize) -> Step {
        if mask == 0 {
            return Ok(());
        }
        if access.area == Area::In(Space::Shared) && access.size == 4 && !access.wide && !access.strong {
            let n = usize::from(access.n);
            if access.regs.iter().take(n).all(|r| warp.w[*r as usize].ok & mask == mask) {
                return self.store_words(warp, access, mask, pc);
            }
        }
        let mut at = addresses(warp, access.addr, mask)?;
        let size = usize::from(access.size);
        let bytes = u64::from(access.size) * u64::from(access.n);
        let mut data = [[0u32; 4]; 32];
        for i in 0..usize::from(access.n) {
            let r = access.regs[i];
            let ok = if access.wide { warp.l[r as usize].ok } else { warp.w[r as usize].ok };
            if ok & mask != mask {
                let lane = (mask & !ok).trailing_zeros() as usize;
                return Err(Fail::new(ReportKind::Undefined, "the value stored is undefined").at(lane));
            }
            if access.wide {
                let v = &warp.l[r as usize].v;
                for lane in 0..32 {
                    match size {
                        8 => (data[lane][2 * i], data[lane][2 * i + 1]) = (v[lane] as u32, (v[lane] >> 32) as u32),
                        4 => data[lane][i] = v[lane] as u32,
                        _ => data[lane][i * size / 4] |= cut(v[lane] as u32, size) << (i * size % 4 * 8),
                    }
                }
            } else {
                let v = &warp.w[r as usize].v;
                for lane in 0..32 {
                    match size {
                        4 => data[lane][i] = v[lane],
                        _ => data[lane][i * size / 4] |= cut(v[lane], size) << (i * size % 4 * 8),
                    }
                }
            }
        }
        let seq = self.next_seq();
        let (index, live) = (warp.index, warp.live);
        self.by_space(access.area, mask, &mut at, |cta, space, mask, at| {
            match space {
                Space::Shared => {
                    cta.count_shared(pc, mask, at, bytes, Kind::Other);
                    for_lanes!(lane in mask => {
                        let who = Who { warp: index, lane, pc: pc as u32, seq, strong: access.strong, copy: false };
                        cta.write_shared(who, at[lane], bytes, data[lane])?;
                        if access.strong {
                            cta.races.synchronise(index, lane, live, at[lane] as u32 / 4);
                        }
                    });
                }
                Space::Global => {
                    cta.count_global(pc, mask, at, bytes);
                    for_lanes!(lane in mask => {
                        let who = Who { warp: index, lane, pc: pc as u32, seq, strong: access.strong, copy: false };
                        if access.strong {
                            cta.races.publish(index, access.ordered, cta.moments);
                        }
                        cta.write_global(who, at[lane], bytes, data[lane])?;
                        if access.strong {
                            cta.races.synchronise_globally(index, lane, live, at[lane]);
                        }
                    });
                }
                Space::Local => {
                    for_lanes!(lane in mask => {
                        let memory = cta.local(index, lane, at[lane], bytes)?;
                        for i in 0..(bytes as usize).div_ceil(4) {
                            memory.put(at[lane] as usize + i * 4, bytes.min(4) as usize, data[lane][i]);
                        }
                    });
                }
                Space::Param | Space::Const => {
                    let lane = mask.trailing_zeros() as usize;
                    return Err(outside(lane, at[lane], bytes, "writable memory"));
                }
            }
            Ok(())
        })
    }
}

pub(super) fn cut(v: u32, size: usize) -> u32 {
    if size >= 4 { v } else { v & ((1 << (size * 8)) - 1) }
}
