//! `ld` and `st` (PTX 9.7.9).

use super::access::{addresses, for_lanes, misaligned, outside};
use super::partial_loads::ALL_DEFINED;
use super::warp::Warp;
use crate::counters::Kind;
use crate::exec::cta::Cta;
use crate::exec::fail::{Fail, Step};
use crate::exec::warp::cut;
use crate::program::types::{L64, Space};
use crate::program::{Access, Area};
use crate::race::{FlagAccess, Issuer, LockStep, Strength};
use crate::report::ReportKind;

/// Whether all lanes access consecutive places of `bytes` bytes, which are addresses of a block's memory.
#[inline(always)]
fn in_a_row(at: &[u64; 32], mask: u32, bytes: u64) -> bool {
    let first = at[0];
    mask == u32::MAX
        && first & (bytes - 1) == 0
        && first < 1 << 20
        && at.iter().zip(0u64..).fold(true, |same, (a, lane)| same & (*a == first.wrapping_add(bytes * lane)))
}

/// Distributes the `N` words of each lane from lane order to register order.
#[inline(always)]
fn spread<const N: usize>(words: &[u32], out: &mut [[u32; 32]; 4]) {
    let (lanes, _) = words.as_chunks::<N>();
    let Ok(lanes) = <&[[u32; N]; 32]>::try_from(lanes) else { return };
    for (lane, own) in lanes.iter().enumerate() {
        for (k, word) in own.iter().enumerate() {
            out[k][lane] = *word;
        }
    }
}

impl Cta<'_> {
    /// The common load: whole words of shared memory to 32-bit slots.
    fn load_words(&mut self, warp: &mut Warp, access: &Access, mask: u32, pc: usize) -> Step {
        let n = usize::from(access.n);
        let at = addresses(warp, access.addr, mask)?;
        self.check_own(mask, &at)?;
        let bytes = 4 * u64::from(access.n);
        let seq = self.next_seq();
        self.count_shared(pc, mask, &at, bytes, Kind::Load);
        let (mut out, mut ok) = ([[0u32; 32]; 4], ALL_DEFINED);
        let mut left = mask;
        if in_a_row(&at, mask, bytes) {
            let who = Issuer { warp: warp.index, lane: 0, pc: pc as u32, seq, strength: Strength::Weak, copy: false };
            if let Some(words) = self.shared.words(at[0] as usize, 32 * n) {
                // From the first lane that failed on, lanes are handled one by one.
                let done = self.races.read_line(who, at[0] as usize, n);
                match n {
                    1 => out[0].copy_from_slice(words),
                    2 => spread::<2>(words, &mut out),
                    _ => spread::<4>(words, &mut out),
                }
                left = u32::MAX.checked_shl(done as u32).unwrap_or(0);
            }
        }
        for_lanes!(lane in left => {
            let who = Issuer { warp: warp.index, lane, pc: pc as u32, seq, strength: Strength::Weak, copy: false };
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
                let whole = self.read_shared(who, at[lane], bytes);
                let place = (warp.index, lane, pc, at[lane]);
                let words = self.or_in_parts(whole, access, place, "shared", &mut ok, |cta, at, n| {
                    cta.read_shared(who, at, n)
                })?;
                for (out, word) in out.iter_mut().zip(words) {
                    out[lane] = word;
                }
            }
        });
        for ((r, v), ok) in access.regs.iter().zip(&out).zip(ok).take(n) {
            warp.put32(*r, mask, v, ok);
        }
        Ok(())
    }

    /// The common store: whole words of defined 32-bit slots to shared memory.
    fn store_words(&mut self, warp: &Warp, access: &Access, mask: u32, pc: usize) -> Step {
        let n = usize::from(access.n);
        let at = addresses(warp, access.addr, mask)?;
        self.check_own(mask, &at)?;
        let bytes = 4 * u64::from(access.n);
        let seq = self.next_seq();
        self.count_shared(pc, mask, &at, bytes, Kind::Other);
        let mut left = mask;
        if in_a_row(&at, mask, bytes) && at[0] < self.shared.bytes && self.shared.bytes - at[0] >= 32 * bytes {
            let who = Issuer { warp: warp.index, lane: 0, pc: pc as u32, seq, strength: Strength::Weak, copy: false };
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
            let who = Issuer { warp: warp.index, lane, pc: pc as u32, seq, strength: Strength::Weak, copy: false };
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
        let strength = access.order.strength;
        if access.area == Area::In(Space::Shared) && access.size == 4 && !access.wide && strength == Strength::Weak {
            return self.load_words(warp, access, mask, pc);
        }
        let mut at = addresses(warp, access.addr, mask)?;
        let bytes = u64::from(access.size) * u64::from(access.n);
        let (mut data, mut ok) = ([[0u32; 4]; 32], ALL_DEFINED);
        let seq = self.next_seq();
        let (index, live) = (warp.index, warp.live);
        self.by_space(access.area, mask, &mut at, |cta, space, mask, at| {
            match space {
                Space::Shared | Space::Cluster => {
                    cta.count_shared(pc, mask, at, bytes, Kind::Load);
                    let step = LockStep { seq, pc: pc as u32, lanes: mask, writes: false, at: *at };
                    cta.check_step(&access.order, index, step, at, bytes)?;
                    for_lanes!(lane in mask => {
                        let who = Issuer { warp: index, lane, pc: pc as u32, seq, strength, copy: false };
                        let whole = cta.read_shared(who, at[lane], bytes);
                        let place = (index, lane, pc, at[lane]);
                        let read = |cta: &mut Self, at, n| cta.read_shared(who, at, n);
                        data[lane] = cta.or_in_parts(whole, access, place, "shared", &mut ok, read)?;
                    });
                    cta.strong_done(&access.order, (index, mask, live), at, FlagAccess::Load);
                }
                Space::Global | Space::Const => {
                    cta.count_global(pc, mask, at, bytes);
                    let meeting = cta.lock_grid(&access.order, index, true);
                    for_lanes!(lane in mask => {
                        let who = Issuer { warp: index, lane, pc: pc as u32, seq, strength, copy: false };
                        let whole = cta.read_global(who, at[lane], bytes, true);
                        let place = (index, lane, pc, at[lane]);
                        let read = |cta: &mut Self, at, n| cta.read_global(who, at, n, true);
                        data[lane] = cta.or_in_parts(whole, access, place, "global", &mut ok, read)?;
                        if access.order.constant {
                            cta.check_constant(lane, at[lane], bytes)?;
                        }
                    });
                    cta.strong_access_done(meeting, &access.order, (index, mask, live), at, FlagAccess::Load);
                    cta.strong_done(&access.order, (index, mask, live), at, FlagAccess::Load);
                }
                Space::Param => {
                    for_lanes!(lane in mask => {
                        data[lane] = cta.read_param(lane, at[lane], bytes)?;
                    });
                }
                Space::Local => {
                    for_lanes!(lane in mask => {
                        let whole = cta.read_local(index, lane, at[lane], bytes);
                        let place = (index, lane, pc, at[lane]);
                        let read = |cta: &mut Self, at, n| cta.read_local(index, lane, at, n);
                        data[lane] = cta.or_in_parts(whole, access, place, "local", &mut ok, read)?;
                    });
                }
            }
            Ok(())
        })?;
        for i in 0..usize::from(access.n) {
            let size = usize::from(access.size);
            if size == 4 && !access.wide {
                let v = std::array::from_fn(|lane| data[lane][i]);
                warp.put32(access.regs[i], mask, &v, ok[i]);
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
            warp.put_any(access.regs[i], access.wide, mask, &v, ok[i]);
        }
        Ok(())
    }

    fn read_local(&mut self, warp: usize, lane: usize, address: u64, bytes: u64) -> Result<[u32; 4], Box<Fail>> {
        let memory = self.local(warp, lane, address, bytes)?;
        let (start, n) = (address as usize, bytes.min(4) as usize);
        let mut out = [0; 4];
        for (i, word) in out.iter_mut().enumerate().take((bytes as usize).div_ceil(4)) {
            let Some(v) = memory.get(start + i * 4, n) else {
                let first = memory.undefined(start + i * 4, n);
                let message = format!("local address {first:#x} was never written");
                return Err(Fail::new(ReportKind::Uninitialised, message).at(lane));
            };
            *word = v;
        }
        Ok(out)
    }

    fn read_param(&self, lane: usize, address: u64, bytes: u64) -> Result<[u32; 4], Box<Fail>> {
        let n = self.params.len() as u64;
        if address >= n || bytes > n - address {
            return Err(outside(lane, address, bytes, &format!("the {n} bytes of parameters")).address(address.max(n)));
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
            let what = format!("the {size} bytes of local memory");
            return Err(outside(lane, address, bytes, &what).address(address.max(size)));
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
        let strength = access.order.strength;
        if access.area == Area::In(Space::Shared) && access.size == 4 && !access.wide && strength == Strength::Weak {
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
        self.strong_begins(&access.order, (index, mask, live));
        self.by_space(access.area, mask, &mut at, |cta, space, mask, at| {
            match space {
                Space::Shared | Space::Cluster => {
                    cta.count_shared(pc, mask, at, bytes, Kind::Other);
                    let step = LockStep { seq, pc: pc as u32, lanes: mask, writes: true, at: *at };
                    cta.check_step(&access.order, index, step, at, bytes)?;
                    for_lanes!(lane in mask => {
                        let who = Issuer { warp: index, lane, pc: pc as u32, seq, strength, copy: false };
                        cta.write_shared(who, at[lane], bytes, data[lane])?;
                    });
                    cta.strong_done(&access.order, (index, mask, live), at, FlagAccess::Store);
                }
                Space::Global => {
                    cta.count_global(pc, mask, at, bytes);
                    let meeting = cta.lock_grid(&access.order, index, false);
                    for_lanes!(lane in mask => {
                        let who = Issuer { warp: index, lane, pc: pc as u32, seq, strength, copy: false };
                        cta.write_global(who, at[lane], bytes, data[lane])?;
                    });
                    cta.strong_access_done(meeting, &access.order, (index, mask, live), at, FlagAccess::Store);
                    cta.strong_done(&access.order, (index, mask, live), at, FlagAccess::Store);
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
