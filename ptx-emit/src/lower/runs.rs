//! Loads of 16 bytes that are not aligned (`unaligned`).
//!
//! The elements of an access begin anywhere in an aligned word of 16 bytes and reach into the next one. Both words are loaded;
//! where the tile is first read (*settled*), the right 16 of their 32 bytes are picked: pairs of registers by one selection,
//! single ones by another, bytes by funnel shifts. A thread's accesses are multiples of 16 bytes apart, in memory and from
//! one iteration to the next, so what they are shifted by is one number per thread, known in front of the loop.
//!
//! Nothing outside the tensor is read. Words that hold its first or its last byte may reach past it: a thread that finds its
//! words not all inside takes the other branch, which loads the elements by themselves and puts them where they would be in the
//! words. One comparison tells: words are at increasing addresses, so that the first and the last count. What follows the
//! bounds along the contiguous dimension (the next row, or what lies between rows) is loaded with the rest, and masked where
//! the tile is settled.

use super::Lower;
use super::accesses::{guard, load_op, vector};
use super::copy::Access;
use super::global::{GlobalWindow, WORD};
use super::index::Int;
use super::tiles::{Tile, groups};
use crate::inst::{Class, Guard, Operand, Reg};
use crate::ops::Op as P;
use tilec_ir::diag::Reported;
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::ops::Op;
use tilec_ir::types::Space;
use tilec_ir::typing::{ResolvedView, let_init};

/// Registers of an access, and of the two words that cover it.
const OUT: usize = 4;
const RAW: usize = 2 * OUT;

/// Words as they were loaded.
#[derive(Clone, Debug)]
pub(super) struct Runs {
    tile: Tile,
    /// Register indices of the elements of each access, in address order.
    groups: Vec<Vec<usize>>,
    /// The words of each access.
    words: Vec<Vec<Reg>>,
    /// Bytes of the first word in front of the access.
    shift: Reg,
    /// Bytes that the shift is a multiple of.
    known: u32,
    /// Elements of each access that are inside the bounds along the contiguous dimension, 0 to all; `None`: all.
    inside: Vec<Option<Reg>>,
}

/// How many elements of each access are loaded, and where from: what both branches need.
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
        s: Stmt,
        src: Expr,
        from: &ResolvedView,
        tile: &Tile,
        attrs: &CopyAttrs,
        only: Option<Reg>,
    ) -> Result<Runs, Reported> {
        let (vec, aligned) = (attrs.vec.unwrap_or(1), attrs.unaligned.unwrap_or(1));
        let elem = self.elem(from.base).filter(|e| *e == tile.elem && from.space(self.k) == Space::Gmem);
        let Some(elem) = elem.filter(|e| i64::from(vec * e.bytes()) == WORD && e.bytes() <= 4 && !attrs.keep) else {
            return Err(self.unsupported(src, "an unaligned access that is no plain load of 16 bytes"));
        };
        let parts = self.contiguous(from).and_then(|dim| {
            let groups = groups(&tile.layout, &tile.dim_bits, dim, vec.ilog2())?;
            groups.iter().all(|g| self.registers_of(tile, g).is_some_and(|r| r.len() == OUT)).then_some((dim, groups))
        });
        let Some((dim, groups)) = parts else {
            return Err(self.unsupported(src, "an unaligned access wider than the run of elements that a thread owns"));
        };
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
                return Err(self.unsupported(src, "unaligned accesses of a thread that are not multiples of 16 bytes apart"));
            }
        }
        w.rounded = true;
        let pointer = self.block_pointer(&mut w, &vec![0; tile.dim_bits.len()])?;
        let shift = w.shift.expect("the pointer has been rounded");
        let tail = std::mem::replace(&mut w.dims[dim].checked, false);
        let rows = self.bounds(from, &w, &tile.layout, &firsts, only)?;
        let when = attrs.when.map(|cond| self.condition(cond)).transpose()?;
        let mut inside = Vec::with_capacity(groups.len());
        for &v in &firsts {
            let c = Int::constant(coordinate(&w, dim, v) as i64);
            inside.push(if tail { self.elements_inside(&w, dim, c, vec) } else { None });
        }
        let last: Vec<u64> =
            (0..w.dims.len()).map(|d| firsts.iter().map(|&v| coordinate(&w, d, v)).max().unwrap_or(0)).collect();
        let room = self.room(src, from, &w, dim, &last, rows.first().copied().flatten())?;
        let base = self.base(from)?;
        let mut addresses = Vec::with_capacity(groups.len());
        for &v in &firsts {
            addresses.push(self.global_address(&mut w, &tile.layout, v)?);
        }
        let distance = self.emit.pure(Class::B64, P::SubS64, vec![pointer.into(), base.into()]);
        let within = self.emit.pure(Class::Pred, P::SetpLtU64, vec![distance.into(), room.into()]);
        let within = self.emit.and(Some(within), when);
        let words: Vec<Vec<Reg>> =
            groups.iter().map(|_| (0..RAW).map(|_| self.emit.mutable(Class::B32)).collect()).collect();
        let access = Access::global(w, tile, groups);
        self.report_copy(s, src, from, &access, elem, attrs, false);
        let known = aligned * elem.bytes();
        let runs = Runs { tile: tile.clone(), groups: access.groups, words, shift, known, inside };
        let loads = Loads { addresses: &addresses, rows: &rows, when };
        let (narrow, done) = (self.emit.label("narrow"), self.emit.label("loaded"));
        self.emit.push_frame();
        self.load_words(&runs, &loads);
        let wide_items = self.emit.pop_frame();
        self.emit.push_frame();
        self.load_elements(&runs, &loads);
        let narrow_items = self.emit.pop_frame();
        self.emit.push_if(within.map(|reg| Guard { reg, negated: true }), P::Bra, vec![narrow.into()]);
        self.emit.items(wide_items);
        self.emit.push(P::BraUni, vec![done.into()]);
        self.emit.item(crate::module::Item::Label(narrow));
        self.emit.items(narrow_items);
        self.emit.item(crate::module::Item::Label(done));
        Ok(runs)
    }

    /// How many of `vec` elements, the first at coordinate `c` along `dim`, are inside the bounds; `None`: all of them.
    fn elements_inside(&mut self, w: &GlobalWindow, dim: usize, c: Int, vec: u32) -> Option<Reg> {
        let at = self.int_op(Op::Add, w.dims[dim].first, c)?;
        let left = self.int_op(Op::Sub, w.dims[dim].limit, at)?;
        let some = self.int_op(Op::Max, left, Int::constant(0))?;
        let n = self.int_op(Op::Min, some, Int::constant(i64::from(vec)))?;
        (n.lo < i128::from(vec)).then(|| self.in32(n))
    }

    /// Distances of the thread's first word from the first byte of the tensor that are less than this have all words inside
    /// the tensor. `last`: register coordinates of the last of them. Threads without a row have none outside.
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
        // Elements from the first to the last, that included, and to the first of the thread's last access.
        let mut elements = self.emit.pure(Class::B64, P::MovB64, vec![Operand::Imm(1)]);
        for (d, &extent) in shape.iter().enumerate() {
            let (extent, stride) = (self.index(extent)?, self.stride(view.base, d)?);
            let Some(steps) = self.int_op(Op::Sub, extent, one) else { return Err(self.unsupported(src, "this extent")) };
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
        let bytes = self.emit.pure(Class::B64, P::ShlB64, vec![elements.into(), log2]);
        let room = self.emit.pure(Class::B64, P::SubS64, vec![bytes.into(), Operand::Imm(2 * WORD - 1)]);
        let room = self.emit.pure(Class::B64, P::MaxS64, vec![room.into(), Operand::Imm(0)]);
        Ok(match row {
            Some(row) => self.emit.pure(Class::B64, P::SelpB64, vec![room.into(), Operand::Imm(-1), row.into()]),
            None => room,
        })
    }

    /// `at` plus or minus `steps · stride`: a distance between elements of a tensor, which fits 64 bits as addresses do.
    fn step(&mut self, op: P, at: Reg, steps: Int, stride: Int) -> Reg {
        if steps.as_const() == Some(0) || stride.as_const() == Some(0) {
            return at;
        }
        let by = match (steps.as_const(), stride.as_const()) {
            (_, Some(1)) => self.as64(steps),
            (Some(1), _) => self.as64(stride),
            _ => {
                let (a, b) = (self.in64(steps), self.as64(stride));
                self.emit.pure(Class::B64, P::MulLoS64, vec![a.into(), b]).into()
            }
        };
        self.emit.pure(Class::B64, op, vec![at.into(), by])
    }

    /// All words are inside the tensor.
    fn load_words(&mut self, runs: &Runs, loads: &Loads<'_>) {
        let op = load_op(Space::Gmem, Class::B32, OUT).expect("there are loads of 16 bytes");
        for ((words, address), &row) in runs.words.iter().zip(loads.addresses).zip(loads.rows) {
            if row.is_some() {
                words.iter().for_each(|&r| self.zero_reg(r));
            }
            for (i, half) in words.chunks(OUT).enumerate() {
                let at = moved(address, i as i64 * WORD);
                self.emit.push_if(guard(row), op, vec![vector(half.to_vec()), at]);
            }
        }
    }

    /// Elements by themselves, in pieces that are known to be aligned, put where they are in the words.
    fn load_elements(&mut self, runs: &Runs, loads: &Loads<'_>) {
        let shift = runs.shift;
        let offset = self.emit.def(Class::B64, P::CvtU64U32, vec![shift.into()]);
        let elem_bytes = runs.tile.elem.bytes();
        let pieces = WORD as u32 / runs.known;
        for (g, words) in runs.words.iter().enumerate() {
            let Operand::Addr { base: crate::inst::AddrBase::Reg(at), offset: immediate } = loads.addresses[g] else {
                continue;
            };
            let at = self.emit.def(Class::B64, P::AddS64, vec![at.into(), offset.into()]);
            let mut count = match runs.inside[g] {
                Some(n) => Operand::Reg(n),
                None => Operand::Imm(i64::from(WORD as u32 / elem_bytes)),
            };
            for p in [loads.rows[g], loads.when].into_iter().flatten() {
                count = self.emit.def(Class::B32, P::SelpB32, vec![count, Operand::Imm(0), p.into()]).into();
            }
            let out: Vec<Reg> = (0..OUT).map(|_| self.emit.mutable(Class::B32)).collect();
            out.iter().for_each(|&r| self.zero_reg(r));
            let mut parts: Vec<Reg> = Vec::new();
            for i in 0..pieces {
                let first = i64::from(i * runs.known / elem_bytes);
                let there = match &count {
                    Operand::Imm(_) => None,
                    n => Some(self.emit.def(Class::Pred, P::SetpGtS32, vec![n.clone(), Operand::Imm(first)])),
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
                self.emit.push_if(guard(there), op, vec![dst, address]);
            }
            match runs.known {
                2 => {
                    for (&r, halves) in out.iter().zip(parts.chunks(2)) {
                        self.emit.push(P::PackB32B16, vec![r.into(), Operand::Vec(halves.to_vec())]);
                    }
                }
                1 => {
                    for (&r, bytes) in out.iter().zip(parts.chunks(4)) {
                        for (i, &byte) in bytes.iter().enumerate() {
                            let up = Operand::Imm(8 * i as i64);
                            let byte = self.emit.def(Class::B32, P::ShlB32, vec![byte.into(), up]);
                            self.emit.push(P::OrB32, vec![r.into(), r.into(), byte.into()]);
                        }
                    }
                }
                _ => {}
            }
            self.unshift(runs, &out, words);
        }
    }

    /// Puts the registers of an access where they are in the two words: the inverse of what [`Lower::settle`] does.
    fn unshift(&mut self, runs: &Runs, out: &[Reg], words: &[Reg]) {
        let zero = || Operand::Imm(0);
        let mut parts: Vec<Operand> = out.iter().map(|&r| r.into()).collect();
        let at = |parts: &[Operand], i: usize| parts.get(i).cloned().unwrap_or_else(zero);
        if runs.known < 4 {
            let bits = self.bits(runs.shift);
            parts = (0..=OUT)
                .map(|i| {
                    let low = i.checked_sub(1).map_or_else(zero, |i| at(&parts, i));
                    self.emit.def(Class::B32, P::ShfLWrapB32, vec![low, at(&parts, i), bits.into()]).into()
                })
                .collect();
        }
        for (distance, bytes) in [(1, 4u32), (2, 8)] {
            if runs.known > bytes {
                continue;
            }
            let by = self.shifted_by(runs.shift, bytes);
            parts = (0..parts.len() + distance)
                .map(|i| {
                    let low = i.checked_sub(distance).map_or_else(zero, |i| at(&parts, i));
                    self.emit.def(Class::B32, P::SelpB32, vec![low, at(&parts, i), by.into()]).into()
                })
                .collect();
        }
        for (i, &r) in words.iter().enumerate() {
            self.emit.push(P::MovB32, vec![r.into(), at(&parts, i)]);
        }
    }

    /// The shift in bits: funnel shifts look at the lowest five.
    fn bits(&mut self, shift: Reg) -> Reg {
        self.emit.pure(Class::B32, P::ShlB32, vec![shift.into(), Operand::Imm(3)])
    }

    /// Whether the shift has the bit `bytes`.
    fn shifted_by(&mut self, shift: Reg, bytes: u32) -> Reg {
        let bit = self.emit.pure(Class::B32, P::AndB32, vec![shift.into(), Operand::Imm(i64::from(bytes))]);
        self.emit.pure(Class::Pred, P::SetpNeS32, vec![bit.into(), Operand::Imm(0)])
    }

    /// Shifts what was loaded into place, and makes zeros of what is outside the bounds.
    pub(super) fn settle(&mut self, runs: &Runs) {
        let mut settled: Vec<Vec<Reg>> = Vec::with_capacity(runs.groups.len());
        let finer = |bytes: u32| usize::from(runs.known < bytes);
        for (group, words) in runs.groups.iter().zip(&runs.words) {
            let regs = self.registers_of(&runs.tile, group).expect("asked when they were loaded");
            let mut parts = words.clone();
            // What finer shifts need is one register more.
            for (distance, bytes, wanted) in [(2, 8u32, OUT + finer(8) + finer(4)), (1, 4, OUT + finer(4))] {
                if runs.known <= bytes {
                    let by = self.shifted_by(runs.shift, bytes);
                    parts = (0..wanted)
                        .map(|i| {
                            let picked = vec![parts[i + distance].into(), parts[i].into(), by.into()];
                            self.emit.def(Class::B32, P::SelpB32, picked)
                        })
                        .collect();
                }
            }
            if runs.known < 4 {
                let bits = self.bits(runs.shift);
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
                self.emit.push(P::MovB32, vec![to.into(), part.into()]);
            }
            settled.push(out);
        }
        self.mask(runs, &settled);
        for (group, out) in runs.groups.iter().zip(&settled) {
            let regs = self.registers_of(&runs.tile, group).expect("asked when they were loaded");
            for (&to, &word) in regs.iter().zip(out).filter(|(to, word)| to != word) {
                self.emit.push(P::MovF32B32, vec![to.into(), word.into()]);
            }
        }
    }

    /// Zeros of the elements past the bounds, where a thread has such.
    fn mask(&mut self, runs: &Runs, settled: &[Vec<Reg>]) {
        let elem_bytes = i64::from(runs.tile.elem.bytes());
        let mut counts: Vec<Reg> = Vec::new();
        counts.extend(runs.inside.iter().flatten());
        counts.sort_unstable();
        counts.dedup();
        let mut all = None;
        for &n in &counts {
            let whole = Operand::Imm(WORD / elem_bytes);
            let whole = self.emit.pure(Class::Pred, P::SetpGeS32, vec![n.into(), whole]);
            all = self.emit.and(all, Some(whole));
        }
        let Some(all) = all else { return };
        let done = self.emit.label("masked");
        self.emit.push_if(guard(Some(all)), P::Bra, vec![done.into()]);
        self.emit.push_frame();
        for &n in &counts {
            let scale = Operand::Imm((8 * elem_bytes).ilog2().into());
            let bits = self.emit.def(Class::B32, P::ShlB32, vec![n.into(), scale]);
            for i in 0..OUT {
                let bits = self.emit.def(Class::B32, P::SubS32, vec![bits.into(), Operand::Imm(32 * i as i64)]);
                let bits = self.emit.def(Class::B32, P::MaxS32, vec![bits.into(), Operand::Imm(0)]);
                let ones = self.emit.def(Class::B32, P::MovB32, vec![Operand::Imm(-1)]);
                // A shift by 32 or more leaves nothing.
                let outside = self.emit.def(Class::B32, P::ShlB32, vec![ones.into(), bits.into()]);
                let kept = self.emit.def(Class::B32, P::NotB32, vec![outside.into()]);
                for (out, _) in settled.iter().zip(&runs.inside).filter(|(_, inside)| **inside == Some(n)) {
                    self.emit.push(P::AndB32, vec![out[i].into(), out[i].into(), kept.into()]);
                }
            }
        }
        let items = self.emit.pop_frame();
        self.emit.items(items);
        self.emit.item(crate::module::Item::Label(done));
    }

    /// Settles the tiles that a statement reads, or writes other than by an unaligned load.
    pub(super) fn settle_for(&mut self, s: Stmt) {
        let mut at = 0;
        while at < self.unsettled.len() {
            let value = self.unsettled[at].0;
            if overwrites(self.k, s, value) {
                self.unsettled.remove(at);
            } else if mentions(self.k, s, value) {
                let (_, runs) = self.unsettled.remove(at);
                self.settle(&runs);
            } else {
                at += 1;
            }
        }
    }

    /// Settles the tiles loaded since there were `outer` unsettled ones.
    pub(super) fn settle_from(&mut self, outer: usize) {
        while self.unsettled.len() > outer
            && let Some((_, runs)) = self.unsettled.pop()
        {
            self.settle(&runs);
        }
    }
}

/// An address moved by some bytes.
fn moved(address: &Operand, by: i64) -> Operand {
    match address {
        Operand::Addr { base, offset } => Operand::Addr { base: *base, offset: offset + by },
        other => other.clone(),
    }
}

/// Whether a statement loads all of a register tile, and reads nothing of it.
fn overwrites(k: &Kernel, s: Stmt, value: Value) -> bool {
    let StmtData::Copy { dst, attrs, .. } = &k.stmts[s] else { return false };
    attrs.unaligned.is_some() && matches!(k.exprs[*dst], ExprData::Ref(v) if v == value)
}

/// Whether a statement or one inside it has a value in its expressions, or assigns it.
fn mentions(k: &Kernel, s: Stmt, value: Value) -> bool {
    let within = |e: &Expr| refers(k, *e, value);
    let own = match &k.stmts[s] {
        StmtData::Copy { src, dst, .. } => within(src) || within(dst),
        StmtData::Assign { src, dst } => within(src) || *dst == value,
        StmtData::Var { init: Some(e), .. } | StmtData::Let { init: e, .. } => within(e),
        _ => false,
    };
    let inside = |b: Block| k.blocks[b].iter().any(|&s| mentions(k, s, value));
    own || k.sub_blocks(s).into_iter().any(inside)
}

fn refers(k: &Kernel, e: Expr, value: Value) -> bool {
    let own = match &k.exprs[e] {
        ExprData::Ref(v) => {
            *v == value
                || matches!(k.values[*v].def, ValueDef::Let) && let_init(k, *v).is_some_and(|init| refers(k, init, value))
        }
        ExprData::View(view) => view.base == value,
        _ => false,
    };
    own || k.children(e).into_iter().any(|c| refers(k, c, value))
}
