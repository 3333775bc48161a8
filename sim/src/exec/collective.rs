//! Exchanges among the lanes of a warp: `shfl`, `vote`, `match`, `redux`, `ldmatrix`, `movmatrix`.

use super::access::for_lanes;
use super::atomic::reduce;
use super::warp::Warp;
use crate::counters::Kind;
use crate::exec::cta::Cta;
use crate::exec::fail::{Fail, Step};
use crate::numerics::mma::layout;
use crate::program::types::{R, SINK};
use crate::program::{Addr, Area, Op, Shfl, Vote};
use crate::race::{Issuer, Strength};
use crate::report::ReportKind;

impl Cta<'_> {
    /// Executes one of these instructions in the lanes `m`, which include every live lane that it needs.
    pub(crate) fn collective(&mut self, w: &mut Warp, op: &Op, m: u32, pc: usize) -> Step {
        match *op {
            Op::Shfl { mode, d, p, a, b, c, mask } => shuffle(w, m, mode, [d, p, a, b, c, mask]),
            Op::Vote { what, d, p, neg, mask } => {
                let p = w.p[p as usize];
                let v = if neg { !p.v } else { p.v };
                let members = w.w[mask as usize].v;
                let per_lane = |lane: usize| (v & members[lane] & m, members[lane] & m);
                if what == Vote::Ballot {
                    let ok = (0..32).fold(0, |ok, i| ok | u32::from(members[i] & m & !p.ok == 0) << i);
                    w.put32(d, m, &std::array::from_fn(|i| per_lane(i).0), ok);
                    return Ok(());
                }
                let (mut out, mut ok) = (0, 0);
                for_lanes!(lane in m => {
                    let (yes, all) = per_lane(lane);
                    let holds = match what {
                        Vote::All => yes == all,
                        Vote::Any => yes != 0,
                        _ => yes == 0 || yes == all,
                    };
                    out |= u32::from(holds) << lane;
                    ok |= u32::from(all & !p.ok == 0) << lane;
                });
                w.putp(d, m, out, ok);
                Ok(())
            }
            Op::MatchAny { d, a, wide, mask } => {
                let (v, ok) = w.any(a, wide);
                let members = w.w[mask as usize].v;
                let mut out = [0; 32];
                for_lanes!(lane in m => {
                    for_lanes!(other in members[lane] & m => {
                        out[lane] |= u32::from(v[lane] == v[other]) << other;
                    });
                });
                w.put32(d, m, &out, if ok & m == m { u32::MAX } else { 0 });
                Ok(())
            }
            Op::MatchAll { d, p, a, wide, mask } => {
                let (v, ok) = w.any(a, wide);
                let members = w.w[mask as usize].v;
                let (mut out, mut flags) = ([0; 32], 0);
                for_lanes!(lane in m => {
                    let group = members[lane] & m;
                    let equal = (0..32).all(|other| group >> other & 1 == 0 || v[lane] == v[other]);
                    if equal {
                        out[lane] = group;
                        flags |= 1 << lane;
                    }
                });
                let ok = if ok & m == m { u32::MAX } else { 0 };
                w.put32(d, m, &out, ok);
                w.putp(p, m, flags, ok);
                Ok(())
            }
            Op::Redux { op, signed, d, a, mask } => {
                let a = w.w[a as usize];
                let members = w.w[mask as usize].v;
                let mut out = [0; 32];
                for_lanes!(lane in m => {
                    let mut group = members[lane] & m;
                    let mut acc = a.v[group.trailing_zeros() as usize & 31];
                    group &= group.wrapping_sub(1);
                    for_lanes!(other in group => { acc = reduce(op, signed, acc, a.v[other]); });
                    out[lane] = acc;
                });
                w.put32(d, m, &out, if a.ok & m == m { u32::MAX } else { 0 });
                Ok(())
            }
            Op::Elect { d, p, mask } => {
                // The machine selects any lane, but always the same one for a mask (PTX 9.7.13.16): here the lowest.
                let members = w.w[mask as usize].v;
                let leader: [u32; 32] = std::array::from_fn(|lane| (members[lane] & m).trailing_zeros() & 31);
                let chosen = (0..32).fold(0, |v, lane| v | u32::from(leader[lane as usize] == lane) << lane);
                w.put32(d, m, &leader, u32::MAX);
                w.putp(p, m, chosen, u32::MAX);
                Ok(())
            }
            Op::StMatrix { addr, area, n, trans, s } => self.stmatrix(w, addr, area, n, trans, s, pc),
            Op::LdMatrix { addr, area, n, trans, strict, d } => {
                if strict {
                    // Up to sm_75 every lane must give a valid address, used or not.
                    let at = self.shared_addresses(w, addr, area, u32::MAX)?;
                    (0..32).try_for_each(|lane| self.check_shared(lane, at[lane], 16).map(|_| ()))?;
                }
                self.ldmatrix(w, addr, area, n, trans, d, pc)
            }
            Op::MovMatrix { d, a } => {
                let a = w.w[a as usize];
                let v = layout::transpose_matrix(&a.v);
                w.put32(d, m, &v, if a.ok == u32::MAX { u32::MAX } else { 0 });
                Ok(())
            }
            _ => Err(Fail::new(ReportKind::Invalid, "this instruction cannot be executed")),
        }
    }

    /// `stmatrix`: lane `8j + i` gives the address of row `i` of matrix `j` (PTX 9.7.14.5.16). The lanes whose
    /// registers hold the elements are the writers.
    #[expect(clippy::too_many_arguments, reason = "the operands of one instruction")]
    fn stmatrix(&mut self, w: &mut Warp, addr: Addr, area: Area, n: u8, trans: bool, s: [R; 4], pc: usize) -> Step {
        let lanes = if n == 4 { u32::MAX } else { (1u32 << (8 * n)) - 1 };
        let at = self.shared_addresses(w, addr, area, lanes)?;
        self.count_shared(pc, lanes, &at, 16, Kind::Other);
        let seq = self.next_seq();
        for (j, source) in s.iter().enumerate().take(usize::from(n)) {
            let slot = w.w[*source as usize];
            if slot.ok != u32::MAX {
                return Err(Fail::new(ReportKind::Undefined, "a register of `stmatrix` is undefined")
                    .at((!slot.ok).trailing_zeros() as usize));
            }
            for (i, row) in layout::store_matrix(trans, &slot.v).iter().enumerate() {
                let lane = 8 * j + i;
                self.check_shared(lane, at[lane], 16)?;
                let who = Issuer { warp: w.index, lane, pc: pc as u32, seq, strength: Strength::Weak, copy: false };
                for k in 0..4 {
                    let (low, high) = (u32::from(row[2 * k]), u32::from(row[2 * k + 1]));
                    let to = at[lane] + 4 * k as u64;
                    let [one, other] = holders(trans, i, k);
                    if one == other {
                        self.write_shared(Issuer { lane: one, ..who }, to, 4, [low | high << 16, 0, 0, 0])?;
                    } else {
                        self.write_shared(Issuer { lane: one, ..who }, to, 2, [low, 0, 0, 0])?;
                        self.write_shared(Issuer { lane: other, ..who }, to + 2, 2, [high, 0, 0, 0])?;
                    }
                }
            }
        }
        Ok(())
    }

    /// `ldmatrix`: lane `8j + i` gives the address of row `i` of matrix `j` (PTX 9.7.14.5.15). The manual does not say
    /// which lane reads. So the lane with the address and all lanes that get elements must be ordered after earlier
    /// writes.
    #[expect(clippy::too_many_arguments, reason = "the operands of one instruction")]
    fn ldmatrix(&mut self, w: &mut Warp, addr: Addr, area: Area, n: u8, trans: bool, d: [R; 4], pc: usize) -> Step {
        let lanes = if n == 4 { u32::MAX } else { (1u32 << (8 * n)) - 1 };
        let at = self.shared_addresses(w, addr, area, lanes)?;
        self.count_shared(pc, lanes, &at, 16, Kind::Other);
        let seq = self.next_seq();
        for (j, dst) in d.iter().enumerate().take(usize::from(n)) {
            let mut rows = [[0u16; 8]; 8];
            for (i, row) in rows.iter_mut().enumerate() {
                let lane = 8 * j + i;
                let who = Issuer { warp: w.index, lane, pc: pc as u32, seq, strength: Strength::Weak, copy: false };
                let words = self.read_row(who, at[lane], [0, 1, 2, 3].map(|k| holders(trans, i, k)))?;
                *row = std::array::from_fn(|k| (words[k / 2] >> (16 * (k % 2))) as u16);
            }
            w.put32(*dst, u32::MAX, &layout::load_matrix(trans, &rows), u32::MAX);
        }
        Ok(())
    }

    /// Four words at an address of the lane `who`, each read by that lane and two others.
    fn read_row(&mut self, who: Issuer, address: u64, readers: [[usize; 2]; 4]) -> Result<[u32; 4], Box<Fail>> {
        let at = self.check_shared(who.lane, address, 16)?;
        let mut out = [0; 4];
        if let Some(words) = self.shared.words(at, 4) {
            out.copy_from_slice(words);
            if self.races.read_row(who, at, readers.map(|[a, b]| 1 << who.lane | 1 << a | 1 << b)) {
                return Ok(out);
            }
        }
        for (k, lanes) in readers.into_iter().enumerate() {
            for lane in [who.lane, lanes[0], lanes[1]] {
                out[k] = self.read_shared(Issuer { lane, ..who }, address + 4 * k as u64, 4)?[0];
            }
        }
        Ok(out)
    }
}

/// The lanes that hold the two halves of word `k` of row `i` of a matrix.
fn holders(trans: bool, i: usize, k: usize) -> [usize; 2] {
    if trans { [8 * k + i / 2, 8 * k + 4 + i / 2] } else { [4 * i + k; 2] }
}

/// The source lane of `shfl` for `lane`, and whether it is in range (the result predicate): `c` has the clamp in its
/// low five bits and the segment mask eight bits higher.
pub(super) fn source_lane(mode: Shfl, lane: usize, b: u32, c: u32) -> (usize, bool) {
    let own = lane as u32;
    let (b, clamp, segment) = (b & 31, c & 31, c >> 8 & 31);
    let max = (own & segment) | (clamp & !segment);
    let min = own & segment;
    let (from, inside) = match mode {
        Shfl::Up => (own.wrapping_sub(b), own as i32 - b as i32 >= max as i32),
        Shfl::Down => (own + b, own + b <= max),
        Shfl::Bfly => (own ^ b, own ^ b <= max),
        Shfl::Idx => {
            let from = min | (b & !segment);
            (from, from <= max)
        }
    };
    (if inside { from & 31 } else { own } as usize, inside)
}

/// `shfl.sync` (PTX 9.7.9.6).
fn shuffle(w: &mut Warp, m: u32, mode: Shfl, [d, p, a, b, c, mask]: [R; 6]) -> Step {
    let (av, bv, cv) = (w.w[a as usize], w.w[b as usize], w.w[c as usize]);
    if bv.ok & cv.ok & m != m {
        let lane = (m & !(bv.ok & cv.ok)).trailing_zeros() as usize;
        return Err(Fail::new(ReportKind::Undefined, "the lane to read from is undefined").at(lane));
    }
    let members = w.w[mask as usize].v;
    let (mut out, mut valid, mut ok) = ([0; 32], 0u32, 0u32);
    for_lanes!(lane in m => {
        let (from, inside) = source_lane(mode, lane, bv.v[lane], cv.v[lane]);
        out[lane] = av.v[from];
        valid |= u32::from(inside) << lane;
        // A lane outside the membermask, or one that has exited, gives an undefined value.
        let there = members[lane] & m & (1 << from) != 0;
        ok |= u32::from(there && av.ok >> from & 1 != 0) << lane;
    });
    w.put32(d, m, &out, ok);
    if p != SINK {
        w.putp(p, m, valid, u32::MAX);
    }
    Ok(())
}
