//! Unaligned loads of 16 bytes (`unaligned`).
//!
//! The elements of an access begin anywhere in an aligned word of 16 bytes and reach into the next word. Both words are
//! loaded. When the tile is first read (*settled*), the right 16 of their 32 bytes are picked: pairs of registers by
//! one selection, single registers by another, bytes by funnel shifts. A thread's accesses are multiples of 16 bytes
//! apart, in memory and from one iteration to the next. So all of them have the same shift, which is computed in front
//! of the loop.
//!
//! Nothing outside the tensor is read. Words that contain its first or last byte may reach past it. If some words of a
//! warp are not inside the tensor, the other branch loads the elements separately and puts them at their places in the
//! words. One comparison suffices: words are at increasing addresses, so only the first and the last count. Elements
//! past the bounds along the contiguous dimension (the next row, or a gap between rows) are loaded too, and masked when
//! the tile is settled.

use super::accesses::{guard, load_op, vector};
use super::ranged_ints::Int;
use super::state::{Lower, Runs};
use super::tile::{Tile, groups};
use super::windows::{Access, GlobalWindow, WORD};
use crate::inst::{Class, Guard, Operand, Reg};
use crate::ops::Op as P;
use tilec_ir::diag::Reported;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, Mechanism, StmtData, View};
use tilec_ir::ops::Op;
use tilec_ir::space::Space;
use tilec_ir::target::is_shifted;
use tilec_ir::typing::{ResolvedView, resolve_view};

/// Registers of an access; two words have twice as many.
const OUT: usize = 4;
const RAW: usize = 2 * OUT;

/// The shift, decomposed; `None`: this part is always zero.
struct Amounts {
    /// Predicates of the shifts by 8 bytes and by 4 bytes.
    eight: Option<Reg>,
    four: Option<Reg>,
    /// The shift by less than 4 bytes, in bits.
    bits: Option<Reg>,
}

/// Element counts and addresses of the accesses, for both branches.
struct Loads<'a> {
    addresses: &'a [Operand],
    /// Whether an access is inside the bounds along the other dimensions.
    rows: &'a [Option<Reg>],
    when: Option<Reg>,
}

impl Lower<'_> {
    /// Loads the words that cover the accesses of a window into registers.
    pub(super) fn load_runs(
        &mut self,
        (s, src): (Stmt, Expr),
        from: &ResolvedView,
        tile: &Tile,
        attrs: &CopyAttrs,
        only: Option<Reg>,
        into: Option<Value>,
    ) -> Result<Runs, Reported> {
        let vec = attrs.vec.unwrap_or(1);
        let elem = self.elem(from.base).filter(|e| *e == tile.elem && from.space(self.k).has_bounds());
        let Some(elem) = elem.filter(|e| vec == e.per(WORD as u32) && is_shifted(e.size()) && !attrs.keep) else {
            return Err(self.unfit(src, "an unaligned access that is no plain load of 16 bytes"));
        };
        let Some(dim) = self.contiguous(from) else {
            return Err(self.unfit(src, "unaligned accesses without a contiguous dimension"));
        };
        let runs = match into {
            Some(value) => self.runs[value].clone().filter(|r| r.dim == dim),
            None => self.new_runs(tile, dim, attrs),
        };
        let Some(runs) = runs else {
            return Err(self.unfit(src, "an unaligned access wider than the run of elements that a thread owns"));
        };
        let groups = runs.groups.clone();
        let mut w = self.unplaced_window(from, &tile.layout, &tile.dim_bits, attrs.check.as_deref())?;
        let firsts: Vec<usize> = groups.iter().map(|g| g[0]).collect();
        let coordinate = |w: &GlobalWindow, d: usize, v: usize| {
            (tile.layout.at(0, v as u64) >> w.dims[d].shift) & ((1 << w.dims[d].bits) - 1)
        };
        for d in 0..w.dims.len() {
            let step = w.dims[d].stride.as_const().unwrap_or(1).wrapping_mul(w.bytes);
            let several = self.k.tensor_ty(from.base).is_some_and(|t| t.modes(w.dims[d].dim).is_some());
            let fits = |&v: &usize| {
                let c = coordinate(&w, d, v);
                c & w.dims[d].reach == 0 && (c as i64).wrapping_mul(step) % WORD == 0
            };
            if several || !firsts.iter().all(fits) {
                return Err(self.unfit(src, "unaligned accesses of a thread that are not multiples of 16 bytes apart"));
            }
        }
        w.rounded = true;
        let pointer = self.block_pointer(&mut w, &vec![0; tile.dim_bits.len()])?;
        let shift = w.shift.expect("the pointer has been rounded");
        self.emit.push(P::MovB32, [runs.shift.into(), shift.into()]);
        let tail = std::mem::replace(&mut w.dims[dim].checked, false);
        let rows = self.bounds(from, &w, &tile.layout, &firsts, only)?;
        let when = attrs.when.map(|cond| self.condition(cond)).transpose()?;
        let mut counted: Vec<Reg> = Vec::new();
        for (&v, count) in firsts.iter().zip(&runs.inside) {
            let Some(count) = count.filter(|count| !counted.contains(count)) else { continue };
            let c = Int::constant(coordinate(&w, dim, v) as i64);
            let n = if tail { self.elements_inside(src, &w, dim, c, vec)? } else { Operand::Imm(i64::from(vec)) };
            self.emit.push(P::MovB32, [count.into(), n]);
            counted.push(count);
        }
        let last: Vec<u64> =
            (0..w.dims.len()).map(|d| firsts.iter().map(|&v| coordinate(&w, d, v)).max().unwrap_or(0)).collect();
        let room = self.room(src, from, &w, dim, &last, rows.first().copied().flatten())?;
        let base = self.base(from)?;
        let mut addresses = Vec::with_capacity(groups.len());
        for &v in &firsts {
            addresses.push(self.global_address(&mut w, &tile.layout, v)?);
        }
        let distance = self.emit.pure(Class::B64, P::SubS64, [pointer.into(), base.into()]);
        let within = self.emit.pure(Class::Pred, P::SetpLtU64, [distance.into(), room.into()]);
        let within = self.emit.and(Some(within), when).map(|lane| self.all_lanes(lane));
        let access = Access::global(w, tile, groups);
        self.report_copy(s, src, from, &access, elem, attrs, false);
        let loads = Loads { addresses: &addresses, rows: &rows, when };
        let (narrow, done) = (self.emit.label("narrow"), self.emit.label("loaded"));
        self.emit.push_frame();
        self.load_words(&runs, &loads);
        let wide_items = self.emit.pop_frame();
        self.emit.push_frame();
        self.load_elements(&runs, &loads);
        let narrow_items = self.emit.pop_frame();
        self.emit.push_if(within.map(|reg| Guard { reg, negated: true }), P::BraUni, [narrow.into()]);
        self.emit.items(wide_items);
        self.emit.push(P::BraUni, [done.into()]);
        self.emit.item(crate::module::Item::Label(narrow));
        self.emit.items(narrow_items);
        self.emit.item(crate::module::Item::Label(done));
        Ok(runs)
    }

    /// The number of elements inside the bounds among `vec` elements from coordinate `c` along `dim`.
    fn elements_inside(
        &mut self,
        src: Expr,
        w: &GlobalWindow,
        dim: usize,
        c: Int,
        vec: u32,
    ) -> Result<Operand, Reported> {
        let all = Int::constant(i64::from(vec));
        let at = self.int_op(Op::Add, w.dims[dim].first, c);
        // A window that ends far below zero has no elements, like one that ends at zero.
        let limit = w.dims[dim].limit;
        let left = at.and_then(|at| {
            let whole = self.int_op(Op::Sub, limit, at);
            whole
                .or_else(|| self.int_op(Op::Max, limit, Int::constant(0)).and_then(|end| self.int_op(Op::Sub, end, at)))
        });
        let some = left.and_then(|left| self.int_op(Op::Max, left, Int::constant(0)));
        let n = some.and_then(|some| self.int_op(Op::Min, some, all));
        match n {
            Some(n) => Ok(self.as32(n)),
            None => Err(self.overflow(src, None)),
        }
    }

    /// Registers for the words of a tile; `None`: its threads do not own whole accesses.
    fn new_runs(&mut self, tile: &Tile, dim: usize, attrs: &CopyAttrs) -> Option<Runs> {
        let (vec, aligned) = (attrs.vec.unwrap_or(1), attrs.unaligned().unwrap_or(1));
        let groups = groups(&tile.layout, &tile.dim_bits, dim, vec.ilog2())?;
        if !groups.iter().all(|g| self.registers_of(tile, g).is_some_and(|r| r.len() == OUT)) {
            return None;
        }
        let words = groups.iter().map(|_| (0..RAW).map(|_| self.emit.mutable(Class::B32)).collect()).collect();
        let shift = self.emit.mutable(Class::B32);
        // Accesses at the same coordinate along the dimension share one count.
        let base: u32 = tile.dim_bits[..dim].iter().sum();
        let place = |g: &[usize]| tile.layout.at(0, g[0] as u64) >> base & ((1 << tile.dim_bits[dim]) - 1);
        let mut counts: Vec<(u64, Reg)> = Vec::new();
        let checked = attrs.check.as_ref().is_none_or(|c| c.contains(&(dim as u32)));
        let inside = groups
            .iter()
            .map(|g| {
                let found = counts.iter().find(|(p, _)| *p == place(g)).map(|(_, r)| *r);
                checked.then(|| {
                    found.unwrap_or_else(|| {
                        let count = self.emit.mutable(Class::B32);
                        counts.push((place(g), count));
                        count
                    })
                })
            })
            .collect();
        Some(Runs {
            tile: tile.clone(),
            groups,
            dim,
            words,
            shift,
            known: tile.elem.bytes_of(aligned.into()) as u32,
            inside,
        })
    }

    /// Defines the registers of a tile that is loaded in words, initialised to zero.
    pub(super) fn declare_runs(&mut self, value: Value, tile: &Tile, zeroed: bool) -> Result<(), Reported> {
        let k = self.k;
        let (mut loads, mut others) = (Vec::new(), Vec::new());
        k.walk(k.body, &mut |k, _, s| match &k.stmts[s] {
            StmtData::Copy { src, dst, attrs } if !attrs.is_prefetch() && refers(k, *dst, value) => {
                if attrs.unaligned().is_some() { loads.push((*src, attrs.clone())) } else { others.push(s) }
            }
            StmtData::Assign { dst, .. } if *dst == value => others.push(s),
            _ => {}
        });
        let Some((src, mut attrs)) = loads.first().cloned() else { return Ok(()) };
        if let Some(&s) = others.first() {
            return Err(self.unsupported_at(k.stmt_spans[s], "writing a register tile that is also loaded unaligned"));
        }
        if let Some(aligned) = loads.iter().filter_map(|(_, a)| a.unaligned()).min() {
            attrs.mechanism = Mechanism::Words { aligned };
        }
        // Which bounds one of the loads checks.
        let rank = tile.dim_bits.len() as u32;
        attrs.check = Some(
            (0..rank).filter(|d| loads.iter().any(|(_, a)| a.check.as_ref().is_none_or(|c| c.contains(d)))).collect(),
        );
        let dim = resolve_view(k, src).and_then(|view| self.contiguous(&view));
        let Some(runs) = dim.and_then(|dim| self.new_runs(tile, dim, &attrs)) else {
            return Err(self.unfit(src, "an unaligned access wider than the run of elements that a thread owns"));
        };
        if zeroed {
            runs.words.iter().flatten().for_each(|&r| self.zero_reg(r));
            self.zero_reg(runs.shift);
            for &count in runs.inside.iter().flatten() {
                self.zero_reg(count);
            }
        }
        self.runs[value] = Some(runs);
        Ok(())
    }

    /// The distance in bytes from the thread's first to its last word. If the first word's offset in the tensor is
    /// below the result, all words are inside. `last`: register coordinates of the last access. Threads without a row
    /// have no words outside.
    fn room(
        &mut self,
        src: Expr,
        view: &ResolvedView,
        w: &GlobalWindow,
        dim: usize,
        last: &[u64],
        row: Option<Reg>,
    ) -> Result<Reg, Reported> {
        let shape = self.k.tensor_ty(view.base).map_or_else(Vec::new, |t| t.shape.clone());
        let one = Int::constant(1);
        // Elements from the first to the last element (inclusive), and to the first element of the thread's last
        // access.
        let mut elements = self.emit.pure(Class::B64, P::MovB64, [Operand::Imm(1)]);
        for (d, &extent) in shape.iter().enumerate() {
            let (extent, stride) = (self.index(extent)?, self.stride(view.base, d)?);
            let Some(steps) = self.int_op(Op::Sub, extent, one) else {
                return Err(self.unsupported(src, "this extent"));
            };
            elements = self.step(P::AddS64, elements, steps, stride);
        }
        for (here, &c) in w.dims.iter().zip(last) {
            let mut steps = Int::constant(c as i64);
            if here.dim != w.dims[dim].dim && here.checked && c > 0 {
                let left = self.int_op(Op::Sub, here.limit, one).and_then(|l| self.int_op(Op::Sub, l, here.first));
                let left = left.and_then(|l| self.int_op(Op::Max, l, Int::constant(0)));
                let Some(least) = left.and_then(|l| self.int_op(Op::Min, l, steps)) else {
                    return Err(self.unsupported(src, "this window"));
                };
                steps = least;
            }
            elements = self.step(P::SubS64, elements, steps, here.stride);
        }
        let log2 = Operand::Imm(w.bytes.ilog2().into());
        let bytes = self.emit.pure(Class::B64, P::ShlB64, [elements.into(), log2]);
        let room = self.emit.pure(Class::B64, P::SubS64, [bytes.into(), Operand::Imm(2 * WORD - 1)]);
        let room = self.emit.pure(Class::B64, P::MaxS64, [room.into(), Operand::Imm(0)]);
        Ok(match row {
            Some(row) => self.emit.pure(Class::B64, P::SelpB64, [room.into(), Operand::Imm(-1), row.into()]),
            None => room,
        })
    }

    /// `at` plus or minus `steps · stride`: a distance between elements of a tensor, which fits 64 bits.
    fn step(&mut self, op: P, at: Reg, steps: Int, stride: Int) -> Reg {
        if steps.as_const() == Some(0) || stride.as_const() == Some(0) {
            return at;
        }
        let by = match (steps.as_const(), stride.as_const()) {
            (_, Some(1)) => self.as64(steps),
            (Some(1), _) => self.as64(stride),
            _ => {
                let (a, b) = (self.in64(steps), self.as64(stride));
                self.emit.pure(Class::B64, P::MulLoS64, [a.into(), b]).into()
            }
        };
        self.emit.pure(Class::B64, op, [at.into(), by])
    }

    /// Loads whole words: all are inside the tensor.
    fn load_words(&mut self, runs: &Runs, loads: &Loads<'_>) {
        let op = load_op(Space::Gmem, Class::B32, OUT).expect("there are loads of 16 bytes");
        for ((words, address), &row) in runs.words.iter().zip(loads.addresses).zip(loads.rows) {
            if row.is_some() {
                words.iter().for_each(|&r| self.zero_reg(r));
            }
            for (i, half) in words.chunks(OUT).enumerate() {
                let at = moved(address, i as i64 * WORD);
                self.emit.push_if(guard(row), op, [vector(half.to_vec()), at]);
            }
        }
    }

    /// Loads elements separately, in pieces of known alignment, and puts them at their places in the words.
    fn load_elements(&mut self, runs: &Runs, loads: &Loads<'_>) {
        let shift = runs.shift;
        let offset = self.emit.def(Class::B64, P::CvtU64U32, [shift.into()]);
        let elem = runs.tile.elem;
        let pieces = WORD as u32 / runs.known;
        let amounts = self.amounts(runs);
        for (g, words) in runs.words.iter().enumerate() {
            let Operand::Addr { base: crate::inst::AddrBase::Reg(at), offset: immediate } = loads.addresses[g] else {
                panic!("bug: global memory without an address in a register");
            };
            let at = self.emit.def(Class::B64, P::AddS64, [at.into(), offset.into()]);
            let mut count = match runs.inside[g] {
                Some(n) => Operand::Reg(n),
                None => Operand::Imm(i64::from(elem.per(WORD as u32))),
            };
            for p in [loads.rows[g], loads.when].into_iter().flatten() {
                count = self.emit.def(Class::B32, P::SelpB32, [count, Operand::Imm(0), p.into()]).into();
            }
            let out: Vec<Reg> = (0..OUT).map(|_| self.emit.mutable(Class::B32)).collect();
            out.iter().for_each(|&r| self.zero_reg(r));
            let mut parts: Vec<Reg> = Vec::new();
            for i in 0..pieces {
                let first = i64::from(i * elem.per(runs.known));
                let there = match &count {
                    Operand::Imm(_) => None,
                    n => Some(self.emit.def(Class::Pred, P::SetpGtS32, [n.clone(), Operand::Imm(first)])),
                };
                let address = Operand::at(at, immediate + i64::from(i * runs.known));
                let word = (i * runs.known / 4) as usize;
                let (op, dst) = match runs.known {
                    8 => (P::LdGlobalV2B32, vector(vec![out[word], out[word + 1]])),
                    4 => (P::LdGlobalB32, out[word].into()),
                    _ => {
                        let (class, op) =
                            if runs.known == 2 { (Class::B16, P::LdGlobalB16) } else { (Class::B32, P::LdGlobalU8) };
                        let part = self.emit.mutable(class);
                        self.zero_reg(part);
                        parts.push(part);
                        (op, part.into())
                    }
                };
                self.emit.push_if(guard(there), op, [dst, address]);
            }
            match runs.known {
                2 => {
                    for (&r, halves) in out.iter().zip(parts.chunks(2)) {
                        self.emit.push(P::PackB32B16, [r.into(), Operand::Vec(halves.to_vec())]);
                    }
                }
                1 => {
                    for (&r, bytes) in out.iter().zip(parts.chunks(4)) {
                        for (i, &byte) in bytes.iter().enumerate() {
                            let up = Operand::Imm(8 * i as i64);
                            let byte = self.emit.def(Class::B32, P::ShlB32, [byte.into(), up]);
                            self.emit.push(P::OrB32, [r.into(), r.into(), byte.into()]);
                        }
                    }
                }
                _ => {}
            }
            self.undo_shift(&amounts, &out, words);
        }
    }

    /// Puts the registers of an access at their places in the two words: the inverse of [`Lower::shift_loaded`].
    fn undo_shift(&mut self, amounts: &Amounts, out: &[Reg], words: &[Reg]) {
        let zero = || Operand::Imm(0);
        let mut parts: Vec<Operand> = out.iter().map(|&r| r.into()).collect();
        let at = |parts: &[Operand], i: usize| parts.get(i).cloned().unwrap_or_else(zero);
        if let Some(bits) = amounts.bits {
            parts = (0..=OUT)
                .map(|i| {
                    let low = i.checked_sub(1).map_or_else(zero, |i| at(&parts, i));
                    self.emit.def(Class::B32, P::ShfLWrapB32, [low, at(&parts, i), bits.into()]).into()
                })
                .collect();
        }
        for (distance, by) in [(1, amounts.four), (2, amounts.eight)] {
            let Some(by) = by else { continue };
            parts = (0..parts.len() + distance)
                .map(|i| {
                    let low = i.checked_sub(distance).map_or_else(zero, |i| at(&parts, i));
                    self.emit.def(Class::B32, P::SelpB32, [low, at(&parts, i), by.into()]).into()
                })
                .collect();
        }
        for (i, &r) in words.iter().enumerate() {
            self.emit.push(P::MovB32, [r.into(), at(&parts, i)]);
        }
    }

    /// Whether a predicate holds in all lanes. The branch must be uniform, because the code after it needs all lanes.
    fn all_lanes(&mut self, lane: Reg) -> Reg {
        self.emit.def(Class::Pred, P::VoteSyncAllPred, [lane.into(), Operand::Imm(0xffff_ffff)])
    }

    /// The decomposed shift: predicates for 8 and 4 bytes, and the bits (funnel shifts use the lowest five).
    fn amounts(&mut self, runs: &Runs) -> Amounts {
        let by = |cx: &mut Self, bytes: u32| {
            (runs.known <= bytes).then(|| {
                let bit = cx.emit.pure(Class::B32, P::AndB32, [runs.shift.into(), Operand::Imm(bytes.into())]);
                cx.emit.pure(Class::Pred, P::SetpNeS32, [bit.into(), Operand::Imm(0)])
            })
        };
        let (eight, four) = (by(self, 8), by(self, 4));
        let bits =
            (runs.known < 4).then(|| self.emit.pure(Class::B32, P::ShlB32, [runs.shift.into(), Operand::Imm(3)]));
        Amounts { eight, four, bits }
    }

    /// Shifts the loaded words into place, and zeroes elements outside the bounds.
    pub(super) fn shift_loaded(&mut self, runs: &Runs) {
        let mut settled: Vec<Vec<Reg>> = Vec::with_capacity(runs.groups.len());
        let finer = |bytes: u32| usize::from(runs.known < bytes);
        let amounts = self.amounts(runs);
        for (group, words) in runs.groups.iter().zip(&runs.words) {
            let regs = self.registers_of(&runs.tile, group).expect("asked when they were loaded");
            let mut parts = words.clone();
            // A finer shift afterwards needs one register more.
            for (distance, by, wanted) in
                [(2, amounts.eight, OUT + finer(8) + finer(4)), (1, amounts.four, OUT + finer(4))]
            {
                if let Some(by) = by {
                    parts = (0..wanted)
                        .map(|i| {
                            let picked = vec![parts[i + distance].into(), parts[i].into(), by.into()];
                            self.emit.def(Class::B32, P::SelpB32, picked)
                        })
                        .collect();
                }
            }
            if let Some(bits) = amounts.bits {
                parts = (0..OUT)
                    .map(|i| {
                        let pair = vec![parts[i].into(), parts[i + 1].into(), bits.into()];
                        self.emit.def(Class::B32, P::ShfRWrapB32, pair)
                    })
                    .collect();
            }
            let words = self.emit.func.regs[regs[0]] == Class::B32;
            let out: Vec<Reg> = if words { regs } else { (0..OUT).map(|_| self.emit.mutable(Class::B32)).collect() };
            for (&to, &part) in out.iter().zip(&parts) {
                self.emit.push(P::MovB32, [to.into(), part.into()]);
            }
            settled.push(out);
        }
        self.mask(runs, &settled);
        for (group, out) in runs.groups.iter().zip(&settled) {
            let regs = self.registers_of(&runs.tile, group).expect("asked when they were loaded");
            for (&to, &word) in regs.iter().zip(out).filter(|(to, word)| to != word) {
                self.emit.push(P::MovF32B32, [to.into(), word.into()]);
            }
        }
    }

    /// Zeroes elements past the bounds, in threads that have such elements.
    fn mask(&mut self, runs: &Runs, settled: &[Vec<Reg>]) {
        let elem = runs.tile.elem;
        let mut counts: Vec<Reg> = Vec::new();
        counts.extend(runs.inside.iter().flatten());
        counts.sort_unstable();
        counts.dedup();
        let mut all = None;
        for &n in &counts {
            let whole = Operand::Imm(elem.per(WORD as u32).into());
            let whole = self.emit.pure(Class::Pred, P::SetpGeS32, [n.into(), whole]);
            all = self.emit.and(all, Some(whole));
        }
        let Some(all) = all else { return };
        let all = self.all_lanes(all);
        let done = self.emit.label("masked");
        self.emit.push_if(guard(Some(all)), P::BraUni, [done.into()]);
        self.emit.push_frame();
        for &n in &counts {
            let scale = Operand::Imm(elem.size().log2().into());
            let bits = self.emit.def(Class::B32, P::ShlB32, [n.into(), scale]);
            for i in 0..OUT {
                let bits = self.emit.def(Class::B32, P::SubS32, [bits.into(), Operand::Imm(32 * i as i64)]);
                let bits = self.emit.def(Class::B32, P::MaxS32, [bits.into(), Operand::Imm(0)]);
                let ones = self.emit.def(Class::B32, P::MovB32, [Operand::Imm(-1)]);
                // A shift by 32 or more gives zero.
                let outside = self.emit.def(Class::B32, P::ShlB32, [ones.into(), bits.into()]);
                let kept = self.emit.def(Class::B32, P::NotB32, [outside.into()]);
                for (out, _) in settled.iter().zip(&runs.inside).filter(|(_, inside)| **inside == Some(n)) {
                    self.emit.push(P::AndB32, [out[i].into(), out[i].into(), kept.into()]);
                }
            }
        }
        let items = self.emit.pop_frame();
        self.emit.items(items);
        self.emit.item(crate::module::Item::Label(done));
    }

    /// Settles the tiles that a statement reads.
    pub(super) fn shift_operands(&mut self, s: Stmt) {
        let read: Vec<Runs> =
            self.runs.iter().filter_map(|(v, runs)| runs.as_ref().filter(|_| reads(self.k, s, v)).cloned()).collect();
        for runs in &read {
            self.shift_loaded(runs);
        }
    }
}

/// An address plus an offset in bytes.
fn moved(address: &Operand, by: i64) -> Operand {
    match address {
        Operand::Addr { base, offset } => Operand::Addr { base: *base, offset: offset + by },
        other => other.clone(),
    }
}

/// Whether a statement, without nested ones, reads a register tile.
fn reads(k: &Kernel, s: Stmt, value: Value) -> bool {
    match &k.stmts[s] {
        StmtData::Copy { src: e, .. }
        | StmtData::Assign { src: e, .. }
        | StmtData::Var { init: Some(e), .. }
        | StmtData::Let { init: e, .. } => refers(k, *e, value),
        _ => false,
    }
}

/// Whether an expression refers to a value, directly or through a name.
fn refers(k: &Kernel, e: Expr, value: Value) -> bool {
    k.has_part(e, |e| matches!(k.exprs[e], ExprData::Ref(v) | ExprData::View(View { base: v, .. }) if v == value))
}
