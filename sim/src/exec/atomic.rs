//! `atom` and `red` (PTX 9.7.13.5).

use super::access::{addresses, for_lanes, outside};
use super::warp::Warp;
use crate::counters::Kind;
use crate::exec::cta::Cta;
use crate::exec::fail::{Fail, Step};
use crate::numerics::half::{self, Half};
use crate::numerics::single::Extremum;
use crate::numerics::{Mode, Round, double, packed2, single};
use crate::program::types::{L64, SINK, Space};
use crate::program::{Atom, AtomOp, VECTOR};
use crate::race::{FlagAccess, Issuer};
use crate::report::ReportKind;

impl Cta<'_> {
    /// `atom`, `red`: lane by lane.
    pub(crate) fn atomic(&mut self, warp: &mut Warp, atom: &Atom, mask: u32, pc: usize) -> Step {
        if mask == 0 {
            return Ok(());
        }
        let mut at = addresses(warp, atom.addr, mask)?;
        let (wide, n) = (atom.size == 8, usize::from(atom.n));
        let values: Vec<(L64, u32)> = atom.src[..n].iter().map(|&src| warp.any(src, wide)).collect();
        let (b, b_ok) = warp.any(atom.src2, wide);
        let ok = values.iter().fold(u32::MAX, |ok, value| ok & value.1);
        let ok = if atom.src2 == SINK { ok } else { ok & b_ok };
        if ok & mask != mask {
            let lane = (mask & !ok).trailing_zeros() as usize;
            return Err(Fail::new(ReportKind::Undefined, "the operand of an atomic is undefined").at(lane));
        }
        let mut old = [[0u64; 32]; VECTOR];
        let bytes = u64::from(atom.size);
        let seq = self.next_seq();
        let (index, live) = (warp.index, warp.live);
        let strength = atom.order.strength;
        self.strong_begins(&atom.order, (index, mask, live));
        self.by_space(atom.area, mask, &mut at, |cta, space, mask, at| {
            match space {
                Space::Shared | Space::Cluster if n > 1 => {
                    let lane = mask.trailing_zeros() as usize;
                    return Err(outside(
                        lane,
                        at[lane],
                        bytes * n as u64,
                        "global memory, where atomics on vectors work",
                    ));
                }
                Space::Shared | Space::Cluster => {
                    cta.count_shared(pc, mask, at, bytes, Kind::Other);
                    for_lanes!(lane in mask => {
                        let who = Issuer { warp: index, lane, pc: pc as u32, seq, strength, copy: false };
                        let was = cta.read_shared(who, at[lane], bytes)?;
                        let was = u64::from(was[0]) | u64::from(was[1]) << 32;
                        old[0][lane] = was;
                        let new = combine(atom, Space::Shared, was, values[0].0[lane], b[lane]);
                        cta.write_shared(who, at[lane], bytes, [new as u32, (new >> 32) as u32, 0, 0])?;
                    });
                    cta.strong_done(&atom.order, (index, mask, live), at, FlagAccess::Update);
                }
                Space::Global => {
                    cta.count_global(pc, mask, at, bytes * n as u64);
                    let meeting = cta.lock_grid(&atom.order, index, atom.returns());
                    cta.races.look_ahead((0..32).filter(|lane| mask >> lane & 1 != 0).map(|lane| at[lane]));
                    for_lanes!(lane in mask => {
                        let who = Issuer { warp: index, lane, pc: pc as u32, seq, strength, copy: false };
                        // The whole vector is aligned; its elements are updated one by one.
                        cta.writable(lane, at[lane], bytes * n as u64)?;
                        for (i, (a, _)) in values.iter().enumerate() {
                            let at = at[lane] + bytes * i as u64;
                            old[i][lane] = cta.update_global(atom, who, at, (a[lane], b[lane]))?;
                        }
                    });
                    cta.strong_access_done(meeting, &atom.order, (index, mask, live), at, FlagAccess::Update);
                    cta.strong_done(&atom.order, (index, mask, live), at, FlagAccess::Update);
                }
                Space::Local | Space::Param | Space::Const => {
                    let lane = mask.trailing_zeros() as usize;
                    return Err(outside(lane, at[lane], bytes, "memory that atomics work on"));
                }
            }
            Ok(())
        })?;
        for (&dst, old) in atom.dst.iter().zip(&old).filter(|(dst, _)| **dst != SINK) {
            warp.put_any(dst, wide, mask, old, u32::MAX);
        }
        Ok(())
    }

    /// Updates an element of global memory, and returns its old value.
    fn update_global(&mut self, atom: &Atom, who: Issuer, at: u64, (a, b): (u64, u64)) -> Result<u64, Box<Fail>> {
        let (lane, bytes) = (who.lane, u64::from(atom.size));
        self.read_global(who, at, bytes, true)?;
        if let Err(conflict) = self.races.write_global(who, at, bytes as usize, false) {
            return Err(self.global_race(conflict, lane, at, true));
        }
        let alloc = self.global(lane, at, bytes)?;
        let start = (at - alloc.base) as usize;
        if bytes == 8 {
            // The host has no atomic operation on pairs of words, so all of them share a lock.
            let _guard = self.lock.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let was = u64::from(alloc.word(start)) | u64::from(alloc.word(start + 4)) << 32;
            let new = combine(atom, Space::Global, was, a, b);
            alloc.put(start, 4, new as u32);
            alloc.put(start + 4, 4, (new >> 32) as u32);
            return Ok(was);
        }
        let shift = start % 4 * 8;
        let keep = if bytes == 4 { u32::MAX } else { 0xFFFF << shift };
        let was = alloc.update(start, |w| {
            let part = u64::from((w & keep) >> shift);
            let new = combine(atom, Space::Global, part, a, b) as u32;
            (w & !keep) | ((new << shift) & keep)
        });
        Ok(u64::from((was & keep) >> shift))
    }
}

/// The new value of an atomic (PTX 9.7.13.5).
pub(super) fn combine(atom: &Atom, space: Space, old: u64, a: u64, b: u64) -> u64 {
    let bits = u32::from(atom.size) * 8;
    let sx = |v: u64| ((v << (64 - bits)) as i64) >> (64 - bits);
    let new = match atom.op {
        AtomOp::Add => old.wrapping_add(a),
        AtomOp::Inc => {
            if old as u32 >= a as u32 {
                0
            } else {
                old + 1
            }
        }
        AtomOp::Dec => {
            if old as u32 == 0 || old as u32 > a as u32 {
                a
            } else {
                old - 1
            }
        }
        AtomOp::Min if atom.signed => sx(old).min(sx(a)) as u64,
        AtomOp::Max if atom.signed => sx(old).max(sx(a)) as u64,
        AtomOp::Min => old.min(a),
        AtomOp::Max => old.max(a),
        AtomOp::And => old & a,
        AtomOp::Or => old | a,
        AtomOp::Xor => old ^ a,
        AtomOp::Exch => a,
        AtomOp::Cas => {
            if old == a {
                b
            } else {
                old
            }
        }
        // f32 sums flush subnormals in global memory, but not in shared memory (PTX ISA, `atom`; measured on an H200).
        AtomOp::AddF32 => {
            let mode = Mode { ftz: space == Space::Global, ..Mode::RN };
            u64::from(single::add(mode, old as u32, a as u32))
        }
        // Measured on an H200: the second-level cache does not change a NaN.
        AtomOp::AddF64 if space == Space::Global && double::is_nan(old) => old,
        AtomOp::AddF64 => double::add(Round::Nearest, old, a),
        AtomOp::AddF16 => u64::from(half::add(Half::F16, Mode::RN, old as u16, a as u16)),
        AtomOp::AddBF16 => u64::from(half::add(Half::Bf16, Mode::RN, old as u16, a as u16)),
        AtomOp::AddF16x2 => u64::from(packed2(old as u32, a as u32, |x, y| half::add(Half::F16, Mode::RN, x, y))),
        AtomOp::AddBF16x2 => u64::from(packed2(old as u32, a as u32, |x, y| half::add(Half::Bf16, Mode::RN, x, y))),
        AtomOp::MinF16 => half_extreme(Half::F16, half::min, old as u32, a as u32),
        AtomOp::MaxF16 => half_extreme(Half::F16, half::max, old as u32, a as u32),
        AtomOp::MinBF16 => half_extreme(Half::Bf16, half::min, old as u32, a as u32),
        AtomOp::MaxBF16 => half_extreme(Half::Bf16, half::max, old as u32, a as u32),
        AtomOp::MinF16x2 => half_extremes(Half::F16, half::min, old as u32, a as u32),
        AtomOp::MaxF16x2 => half_extremes(Half::F16, half::max, old as u32, a as u32),
        AtomOp::MinBF16x2 => half_extremes(Half::Bf16, half::min, old as u32, a as u32),
        AtomOp::MaxBF16x2 => half_extremes(Half::Bf16, half::max, old as u32, a as u32),
    };
    if bits == 64 { new } else { new & ((1 << bits) - 1) }
}

/// The minimum or maximum of two halves.
type HalfExtreme = fn(Half, Extremum, u16, u16) -> u16;

fn half_extreme(ty: Half, f: HalfExtreme, old: u32, a: u32) -> u64 {
    u64::from(f(ty, Extremum::default(), old as u16, a as u16))
}

fn half_extremes(ty: Half, f: HalfExtreme, old: u32, a: u32) -> u64 {
    u64::from(packed2(old, a, |x, y| f(ty, Extremum::default(), x, y)))
}

/// The combination of `redux.sync`.
pub(crate) fn reduce(op: AtomOp, signed: bool, a: u32, b: u32) -> u32 {
    match op {
        AtomOp::Min if signed => (a as i32).min(b as i32) as u32,
        AtomOp::Max if signed => (a as i32).max(b as i32) as u32,
        AtomOp::Min => a.min(b),
        AtomOp::Max => a.max(b),
        AtomOp::And => a & b,
        AtomOp::Or => a | b,
        AtomOp::Xor => a ^ b,
        _ => a.wrapping_add(b),
    }
}
