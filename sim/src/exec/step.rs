//! The inner loop: one fragment of a warp, instruction by instruction.
//!
//! Arithmetic runs on all 32 lanes at once and writes those that are active. What needs all of a warp, or lanes that are
//! elsewhere, stops the fragment: [`super::sync`] decides when it goes on.

use super::access::for_lanes;
use super::lanewise::extended;
use super::warp::{Frag, Wait, Warp};
use crate::exec::cta::Cta;
use crate::exec::fail::Fail;
use crate::exec::next::Next;
use crate::program::types::{L32, L64, LOCAL_WINDOW, PARAM_WINDOW, R, SHARED_WINDOW, SINK, Space, WINDOW_BYTES};
use crate::program::{BoolOp, Op, Relation};
use crate::report::{Cause, Report, ReportKind};

impl Cta<'_> {
    /// Runs fragment `at` until it stops or has executed `limit` instructions; how many it executed.
    pub(crate) fn fragment(&mut self, warp: &mut Warp, at: usize, limit: u32) -> Result<u32, Box<Report>> {
        self.rank = warp.index / self.cta_warps;
        let entry = self.entry;
        let code = entry.code.as_slice();
        let mut pc = warp.frags[at].pc as usize;
        let mask = warp.frags[at].mask;
        let mut used = 0;
        while used < limit {
            let Some(inst) = code.get(pc) else {
                let fail = Fail::new(ReportKind::Invalid, "execution ran past the end of the kernel");
                return Err(self.report(warp.index, pc, mask, *fail));
            };
            used += 1;
            if self.fuel == 0 {
                let fail = Fail::new(ReportKind::Fuel, "the block has used up its instructions: does it end at all?");
                return Err(self.report(warp.index, pc, mask, *fail));
            }
            self.fuel -= 1;
            let guard = &warp.p[inst.guard as usize];
            if guard.ok & mask != mask {
                let lane = (mask & !guard.ok).trailing_zeros() as usize;
                let fail = Fail::new(ReportKind::Undefined, "the predicate of this instruction is undefined").at(lane);
                return Err(self.report(warp.index, pc, mask, *self.with_origin(warp, pc, mask, fail)));
            }
            let active = mask & (guard.v ^ inst.flip);
            let counts = &mut self.counts[pc];
            counts.executed += 1;
            counts.lanes += u64::from(active.count_ones());
            if let Op::Bra { target, uni } = inst.op {
                if active == 0 {
                    pc += 1;
                } else if active == mask {
                    pc = target as usize;
                } else if uni {
                    let fail = Fail::new(ReportKind::Divergence, "lanes differ at a branch marked uniform")
                        .because(Cause::UniformBranch);
                    return Err(self.report(warp.index, pc, mask & !active, *fail));
                } else {
                    warp.frags[at] = Frag { pc: pc as u32 + 1, mask: mask & !active, wait: Wait::Ready };
                    warp.frags.push(Frag { pc: target, mask: active, wait: Wait::Ready });
                    return Ok(used);
                }
                continue;
            }
            warp.frags[at].pc = pc as u32;
            if let Some(touched) = entry.touches.get(pc)
                && !touched.is_empty()
                && active != 0
                && !matches!(inst.op, Op::Wgmma(_))
                && let Err(fail) = self.touch(warp, touched)
            {
                return Err(self.report(warp.index, pc, active, *fail));
            }
            match self.execute(warp, at, &inst.op, active, pc) {
                Ok(Next::Advance) => pc += 1,
                Ok(Next::Stop) => return Ok(used),
                Err(fail) => {
                    return Err(self.report(warp.index, pc, active, *self.with_origin(warp, pc, active, fail)));
                }
            }
        }
        warp.frags[at].pc = pc as u32;
        Ok(used)
    }

    /// One instruction but a branch, in the lanes of `m`.
    #[inline(always)]
    fn execute(&mut self, w: &mut Warp, at: usize, op: &Op, m: u32, pc: usize) -> Result<Next, Box<Fail>> {
        macro_rules! narrow {
            ($d:expr, $ok:expr, $call:expr) => {{
                let mut out: L32 = [0; 32];
                $call(&mut out);
                let ok = $ok;
                w.put32($d, m, &out, ok);
            }};
        }
        macro_rules! wide {
            ($d:expr, $ok:expr, $call:expr) => {{
                let mut out: L64 = [0; 32];
                $call(&mut out);
                let ok = $ok;
                w.put64($d, m, &out, ok);
            }};
        }
        macro_rules! w {
            ($r:expr) => {
                &w.w[$r as usize]
            };
        }
        macro_rules! l {
            ($r:expr) => {
                &w.l[$r as usize]
            };
        }
        match *op {
            Op::WW { f, d, a } => {
                let a = w!(a);
                narrow!(d, a.ok, |out| f(out, &a.v));
            }
            Op::WWW { f, d, a, b } => {
                let (a, b) = (w!(a), w!(b));
                narrow!(d, a.ok & b.ok, |out| f(out, &a.v, &b.v));
            }
            Op::WWWW { f, d, a, b, c } => {
                let (a, b, c) = (w!(a), w!(b), w!(c));
                narrow!(d, a.ok & b.ok & c.ok, |out| f(out, &a.v, &b.v, &c.v));
            }
            Op::Wwwww { f, d, s } => {
                let s = s.map(|r| w!(r));
                narrow!(d, s.iter().fold(u32::MAX, |ok, x| ok & x.ok), |out| f(out, s.map(|x| &x.v)));
            }
            Op::LL { f, d, a } => {
                let a = l!(a);
                wide!(d, a.ok, |out| f(out, &a.v));
            }
            Op::LLL { f, d, a, b } => {
                let (a, b) = (l!(a), l!(b));
                wide!(d, a.ok & b.ok, |out| f(out, &a.v, &b.v));
            }
            Op::LLLL { f, d, a, b, c } => {
                let (a, b, c) = (l!(a), l!(b), l!(c));
                wide!(d, a.ok & b.ok & c.ok, |out| f(out, &a.v, &b.v, &c.v));
            }
            Op::LW { f, d, a } => {
                let a = w!(a);
                wide!(d, a.ok, |out| f(out, &a.v));
            }
            Op::WL { f, d, a } => {
                let a = l!(a);
                narrow!(d, a.ok, |out| f(out, &a.v));
            }
            Op::LWW { f, d, a, b } => {
                let (a, b) = (w!(a), w!(b));
                wide!(d, a.ok & b.ok, |out| f(out, &a.v, &b.v));
            }
            Op::LLW { f, d, a, b } => {
                let (a, b) = (l!(a), w!(b));
                wide!(d, a.ok & b.ok, |out| f(out, &a.v, &b.v));
            }
            Op::LLWW { f, d, a, b, c } => {
                let (a, b, c) = (l!(a), w!(b), w!(c));
                wide!(d, a.ok & b.ok & c.ok, |out| f(out, &a.v, &b.v, &c.v));
            }
            Op::LWWL { f, d, a, b, c } => {
                let (a, b, c) = (w!(a), w!(b), l!(c));
                wide!(d, a.ok & b.ok & c.ok, |out| f(out, &a.v, &b.v, &c.v));
            }
            Op::Mov32 { d, a } => {
                let a = *w!(a);
                w.put32(d, m, &a.v, a.ok);
            }
            Op::Mov64 { d, a } => {
                let a = *l!(a);
                w.put64(d, m, &a.v, a.ok);
            }
            Op::Lop3 { d, a, b, c, lut } => {
                let (a, b, c) = (w!(a), w!(b), w!(c));
                let ok = a.ok & b.ok & c.ok;
                let v = std::array::from_fn(|i| lop3(a.v[i], b.v[i], c.v[i], lut));
                w.put32(d, m, &v, ok);
            }
            Op::SetW { f, p, q, a, b, with } => {
                let (a, b) = (w!(a), w!(b));
                let (v, ok) = (f(&a.v, &b.v), a.ok & b.ok);
                set(w, m, p, q, v, ok, with);
            }
            Op::SetL { f, p, q, a, b, with } => {
                let (a, b) = (l!(a), l!(b));
                let (v, ok) = (f(&a.v, &b.v), a.ok & b.ok);
                set(w, m, p, q, v, ok, with);
            }
            Op::SelW { d, a, b, p, neg } => {
                let (p, a, b) = (w.p[p as usize], w!(a), w!(b));
                let take = if neg { !p.v } else { p.v };
                let v = std::array::from_fn(|i| if take >> i & 1 != 0 { a.v[i] } else { b.v[i] });
                let ok = p.ok & ((take & a.ok) | (!take & b.ok));
                w.put32(d, m, &v, ok);
            }
            Op::SelL { d, a, b, p, neg } => {
                let (p, a, b) = (w.p[p as usize], l!(a), l!(b));
                let take = if neg { !p.v } else { p.v };
                let v = std::array::from_fn(|i| if take >> i & 1 != 0 { a.v[i] } else { b.v[i] });
                let ok = p.ok & ((take & a.ok) | (!take & b.ok));
                w.put64(d, m, &v, ok);
            }
            Op::Pred { f, d, a, b } => {
                let (a, b) = (w.p[a as usize], w.p[b as usize]);
                w.putp(d, m, f(a.v, b.v), a.ok & b.ok);
            }
            Op::Pack16 { d, a } => {
                let [x, y] = a.map(|r| w!(r));
                let ok = x.ok & y.ok;
                let v = std::array::from_fn(|i| (x.v[i] & 0xFFFF) | (y.v[i] << 16));
                w.put32(d, m, &v, ok);
            }
            Op::Unpack16 { d, a } => {
                let a = *w!(a);
                w.put32(d[0], m, &a.v.map(|x| x & 0xFFFF), a.ok);
                w.put32(d[1], m, &a.v.map(|x| x >> 16), a.ok);
            }
            Op::Ld(ref access) => {
                self.load(w, access, m, pc)?;
                if access.order.waits && m != 0 {
                    return Ok(self.looked(w, at));
                }
            }
            Op::St(ref access) => {
                self.store(w, access, m, pc)?;
                if self.gives_way && m != 0 && access.order.is_signal() {
                    return Ok(self.signal(w, at));
                }
            }
            Op::Nop => {}
            Op::GridWait => self.wait_for_grids(w, m),
            _ => return self.rare(w, at, op, m, pc),
        }
        Ok(Next::Advance)
    }

    /// The instructions that are neither arithmetic nor plain memory accesses, and rare arithmetic.
    #[inline(never)]
    fn rare(&mut self, w: &mut Warp, at: usize, op: &Op, m: u32, pc: usize) -> Result<Next, Box<Fail>> {
        match *op {
            Op::Map { map, d, wide, a, b, from_wide } => {
                let ((x, x_ok), (y, y_ok)) = (w.any(a, from_wide), w.any(b, from_wide));
                let v = std::array::from_fn(|i| map.apply(x[i], y[i]));
                w.put_any(d, wide, m, &v, x_ok & y_ok);
            }
            Op::MovVector { ref pairs, wide } => {
                let values: Vec<_> = pairs.iter().map(|&(_, s)| w.any(s, wide)).collect();
                for (&(d, _), (v, ok)) in pairs.iter().zip(&values) {
                    w.put_any(d, wide, m, v, *ok);
                }
            }
            Op::Carry(ref carry) => extended(w, carry, m),
            Op::Lanewise(ref op) => {
                let [(x, x_ok), (y, y_ok), (z, z_ok)] = op.s.map(|(r, wide)| w.any(r, wide));
                let v = std::array::from_fn(|i| op.f.apply(x[i], y[i], z[i]));
                w.put_any(op.d.0, op.d.1, m, &v, x_ok & y_ok & z_ok);
            }
            Op::Joined { ref inner, d, all, with: (how, p, negate) } => {
                self.execute(w, at, inner, m, pc)?;
                let (mut out, p) = (w.w[d as usize], w.p[p as usize]);
                let take = if negate { !p.v } else { p.v };
                for (i, v) in out.v.iter_mut().enumerate() {
                    *v = match (how, take >> i & 1 != 0) {
                        (BoolOp::And, false) => 0,
                        (BoolOp::Or, true) => all,
                        (BoolOp::Xor, true) => *v ^ all,
                        _ => *v,
                    };
                }
                w.put32(d, m, &out.v, out.ok & p.ok);
            }
            Op::SetPair { f, d, a, b, with } => {
                let (a, b) = (w.w[a as usize], w.w[b as usize]);
                for (f, d) in f.iter().zip(d) {
                    set(w, m, d, SINK, f(&a.v, &b.v), a.ok & b.ok, with);
                }
            }
            Op::Lop3Test(ref op) => {
                let [a, b, c] = op.s.map(|r| w.w[r as usize]);
                let ok = a.ok & b.ok & c.ok;
                let v: L32 = std::array::from_fn(|i| lop3(a.v[i], b.v[i], c.v[i], op.lut));
                let any = (0..32).fold(0, |any, i| any | u32::from(v[i] != 0) << i);
                set(w, m, op.p, SINK, any, ok, Some(op.with));
                w.put32(op.d, m, &v, ok);
            }
            Op::Bfi64 { d, a, at } => {
                let ([a, b], [pos, len]) = (a.map(|r| w.l[r as usize]), at.map(|r| w.w[r as usize]));
                let v = std::array::from_fn(|i| {
                    let (pos, len) = (pos.v[i], len.v[i]);
                    let ones = if len > 63 { u64::MAX } else { (1 << len) - 1 };
                    let mask = u64::checked_shl(ones, pos).unwrap_or(0);
                    (b.v[i] & !mask) | (a.v[i].checked_shl(pos).unwrap_or(0) & mask)
                });
                w.put64(d, m, &v, a.ok & b.ok & pos.ok & len.ok);
            }
            Op::SetWord { f, d, a, b, yes } => {
                let (p, ok) = match f {
                    Relation::Words(f) => {
                        let (a, b) = (&w.w[a as usize], &w.w[b as usize]);
                        (f(&a.v, &b.v), a.ok & b.ok)
                    }
                    Relation::Longs(f) => {
                        let (a, b) = (&w.l[a as usize], &w.l[b as usize]);
                        (f(&a.v, &b.v), a.ok & b.ok)
                    }
                };
                w.put32(d, m, &std::array::from_fn(|i| if p >> i & 1 != 0 { yes } else { 0 }), ok);
            }
            Op::Pack32 { d, a } => {
                let [x, y] = a.map(|r| w.w[r as usize]);
                let v = std::array::from_fn(|i| u64::from(x.v[i]) | u64::from(y.v[i]) << 32);
                w.put64(d, m, &v, x.ok & y.ok);
            }
            Op::Unpack32 { d, a } => {
                let a = w.l[a as usize];
                w.put32(d[0], m, &a.v.map(|x| x as u32), a.ok);
                w.put32(d[1], m, &a.v.map(|x| (x >> 32) as u32), a.ok);
            }
            Op::Pack64 { d, a } => {
                let s = a.map(|r| w.w[r as usize]);
                let v = std::array::from_fn(|i| {
                    (0..4).fold(0, |v, k: usize| v | u64::from(s[k].v[i] & 0xFFFF) << (16 * k))
                });
                w.put64(d, m, &v, s.iter().fold(u32::MAX, |ok, x| ok & x.ok));
            }
            Op::Unpack8 { d, a } => {
                let a = w.w[a as usize];
                for (k, r) in d.iter().enumerate() {
                    w.put32(*r, m, &a.v.map(|x| x >> (8 * k) & 0xFF), a.ok);
                }
            }
            Op::Unpack64 { d, a } => {
                let a = w.l[a as usize];
                for (k, r) in d.iter().enumerate() {
                    w.put32(*r, m, &a.v.map(|x| (x >> (16 * k)) as u32 & 0xFFFF), a.ok);
                }
            }
            Op::Atom(ref atom) => {
                self.atomic(w, atom, m, pc)?;
                if atom.order.waits && m != 0 {
                    return Ok(self.looked(w, at));
                }
                if self.gives_way && m != 0 && atom.order.is_signal() {
                    return Ok(self.signal(w, at));
                }
            }
            Op::CpAsync(ref copy) => self.copy_async(w, copy, m, pc)?,
            Op::CpCommit => {
                for_lanes!(lane in m => { w.copies.groups[lane] = w.copies.groups[lane].saturating_add(1); });
            }
            Op::CpWait(n) => self.copy_wait(w, n, m)?,
            Op::Bulk(ref copy) => self.bulk(w, copy, m, pc)?,
            Op::Remote(ref store) => self.remote(w, store, m, pc)?,
            Op::BulkCommit => Cta::bulk_commit(w, m),
            Op::BulkWait { n, read } => self.bulk_wait(w, n, read, m)?,
            Op::ProxyFence { init, global } => {
                if m != 0 && !global {
                    self.races.clocks.fence_proxy(w.index, m, w.live, init);
                }
            }
            Op::Mapa { d, a, rank, wide, generic } => self.mapa(w, (d, a, rank), (wide, generic), m)?,
            Op::CtaRank { d, a, wide, generic } => self.cta_rank(w, (d, a), (wide, generic), m)?,
            Op::MBar(ref op) => return self.mbarrier(w, at, op, m, pc),
            Op::PendingCount { d, state } => self.pending_counts(w, d, state, m)?,
            Op::Fence { scope, acquire, release } => {
                if m != 0 {
                    self.fence(w.index, m, w.live, (scope, acquire, release));
                }
            }
            Op::Clock { d, wide } => {
                let now = self.fuel.wrapping_neg();
                w.put_any(d, wide, m, &[now; 32], u32::MAX);
            }
            Op::IsSpace { space, p, a } => {
                let a = w.l[a as usize];
                let inside = |x: u64, start: u64| x.checked_sub(start).is_some_and(|o| o < WINDOW_BYTES);
                let test = |x: u64| match space {
                    Space::Shared => inside(x, SHARED_WINDOW) && (x - SHARED_WINDOW) / self.stride == self.rank as u64,
                    Space::Cluster => inside(x, SHARED_WINDOW),
                    Space::Local => inside(x, LOCAL_WINDOW),
                    Space::Param => inside(x, PARAM_WINDOW),
                    Space::Const => self.device.find(x).is_some_and(|alloc| alloc.constant),
                    Space::Global => [SHARED_WINDOW, LOCAL_WINDOW, PARAM_WINDOW].iter().all(|s| !inside(x, *s)),
                };
                let v = (0..32).fold(0, |v, i| v | u32::from(test(a.v[i])) << i);
                w.putp(p, m, v, a.ok);
            }
            Op::BraIndexed { index, ref targets } => return branch_indexed(w, at, index, targets, m, pc),
            Op::Exit => {
                if m == 0 {
                    return Ok(Next::Advance);
                }
                if w.products.is_busy() {
                    self.products_done(w)?;
                }
                self.alive[self.rank] -= m.count_ones();
                if self.ranks > 1 {
                    self.block_ends(w, m)?;
                }
                self.races.clocks.exit(w.index, m);
                w.retire(at, m);
                return Ok(Next::Stop);
            }
            Op::Discard { addr, area } => self.discard(w, addr, area, m, pc)?,
            Op::Assert(ref parts) => {
                if m != 0 {
                    return Err(self.failed_assertion(w, parts, m));
                }
            }
            Op::Trap => {
                if m != 0 {
                    return Err(Fail::new(ReportKind::Trap, "the kernel gave up"));
                }
            }
            _ => return self.synchronising(w, at, op, m, pc),
        }
        Ok(Next::Advance)
    }
}

fn branch_indexed(w: &mut Warp, at: usize, index: R, targets: &[u32], m: u32, pc: usize) -> Result<Next, Box<Fail>> {
    let slot = w.w[index as usize];
    if slot.ok & m != m {
        return Err(Fail::new(ReportKind::Undefined, "the index of a branch is undefined"));
    }
    let rest = w.frags[at].mask & !m;
    w.frags.remove(at);
    for (i, target) in targets.iter().enumerate() {
        let lanes = (0..32).fold(0, |v, lane| v | u32::from(slot.v[lane] as usize == i) << lane) & m;
        if lanes != 0 {
            w.frags.push(Frag { pc: *target, mask: lanes, wait: Wait::Ready });
        }
    }
    if rest != 0 {
        w.frags.push(Frag { pc: pc as u32 + 1, mask: rest, wait: Wait::Ready });
    }
    let wild = (0..32).find(|lane| m >> lane & 1 != 0 && slot.v[*lane] as usize >= targets.len());
    match wild {
        Some(lane) => Err(Fail::new(ReportKind::Invalid, "the index of a branch has no target").at(lane)),
        None => Ok(Next::Stop),
    }
}

fn lop3(a: u32, b: u32, c: u32, lut: u8) -> u32 {
    let mut out = 0;
    for i in 0..8u32 {
        if lut >> i & 1 != 0 {
            let x = if i & 4 != 0 { a } else { !a };
            let y = if i & 2 != 0 { b } else { !b };
            let z = if i & 1 != 0 { c } else { !c };
            out |= x & y & z;
        }
    }
    out
}

/// Writes `setp`: `p` gets the comparison, `q` its complement, both joined with a predicate (PTX 9.7.6.2).
fn set(w: &mut Warp, m: u32, p: R, q: R, v: u32, ok: u32, with: Option<(BoolOp, R, bool)>) {
    let (mut yes, mut no, mut ok) = (v, !v, ok);
    if let Some((op, r, negate)) = with {
        let c = w.p[r as usize];
        let c_v = if negate { !c.v } else { c.v };
        ok &= c.ok;
        let join = |x: u32| match op {
            BoolOp::And => x & c_v,
            BoolOp::Or => x | c_v,
            BoolOp::Xor => x ^ c_v,
        };
        (yes, no) = (join(yes), join(no));
    }
    w.putp(p, m, yes, ok);
    w.putp(q, m, no, ok);
}
