//! Products of one step that are pending while those of the next are issued.
//!
//! A warpgroup that waits for the products of a step before it asks for those of the next leaves the tensor cores idle in between, unless another
//! one has work for them. So the first step is taken out of the loop, and each later one waits for the products in front of its own:
//!
//! ```text
//! if end > start {
//!     wait a, b; acc = mma<m64k16>(a.get, b.get, acc)
//!     for k in start + 64..end step 64 { wait a, b; acc = mma<m64k16>(a.get, b.get, acc); await acc, 1; release a, b }
//!     await acc, 0; release a, b
//! }
//! ```
//!
//! `release` gives back the older slot, whose products are done. Sums that are promoted take turns in two parts, so that one is added to the
//! accumulator while the other is computed; iterations then have two steps, and one may be left over:
//!
//! ```text
//! if end > start {
//!     var part = reg f32[..]; var part_1 = reg f32[..]
//!     wait a, b; part = 0; part = mma(a.get, b.get, part)
//!     for k in start + 128..end - 128 step 256 {
//!         wait a, b; part_1 = 0; part_1 = mma(a.get, b.get, part_1); await part, 1; release a, b; acc = acc + part
//!         wait a, b; part = 0; part = mma(a.get, b.get, part); await part_1, 1; release a, b; acc = acc + part_1
//!     }
//!     if ceildiv(end - start, 128) % 2 == 0 {
//!         wait a, b; part_1 = 0; part_1 = mma(a.get, b.get, part_1); await part, 1; release a, b; acc = acc + part
//!         await part_1, 0; release a, b; acc = acc + part_1
//!     } else {
//!         await part, 0; release a, b; acc = acc + part
//!     }
//! }
//! ```
//!
//! An operand that comes from registers takes turns in two tiles in the same way, for its registers are read until the products are awaited: those of
//! the next step are loaded meanwhile.
//!
//! The role that fills the slots has the same form, for the proof that both walk past the same ones. The branch is left out where there is a step for
//! certain.

use super::channel_op;
use crate::Cx;
use crate::analysis::width::elem_of;
use crate::rewrite::{Map, Subst, clone_expr, clone_stmt};
use crate::roles::{consumer_registers, ping_pong};
use crate::select_mma::warpgroup::{ACCUMULATORS, BESIDE, acc_elem, promoted_of};
use tilec_ir::atoms::Atom;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported, Span};
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::{ChannelOp, ExprData, Kernel, Mma, StmtData, ValueDef};
use tilec_ir::ops::Op;
use tilec_ir::target::WARP;

/// The product of a step.
pub(super) struct Product {
    acc: Value,
    src: Expr,
    mma: Mma,
    /// Names that the step declares.
    names: Vec<Stmt>,
    /// The copy of an operand into registers, and the tile that it fills.
    load: Option<(Stmt, Value)>,
    promoted: bool,
}

/// What the products of a step have to themselves until they are awaited.
#[derive(Copy, Clone, Default)]
struct Own {
    /// A part of the sums.
    part: Option<Value>,
    /// An operand in registers.
    fragment: Option<Value>,
}

/// What is done for the steps of a loop, in a role.
pub(super) enum Part<'a> {
    /// These statements, for each.
    Fill(&'a [Stmt]),
    /// The product on slots of these channels.
    Multiply(&'a Product, &'a [Value]),
}

/// The product, if one is to be pending while the next is issued: as the schedule says, else where additions would wait for it.
pub(super) fn wanted(
    k: &Kernel,
    cx: &mut Cx<'_>,
    products: &[Stmt],
    (slots, warps): (u64, u32),
    span: Span,
) -> Result<Option<Product>, Reported> {
    let asked = k.schedule.pending;
    if asked.and_then(|e| k.as_int(e)) == Some(0) {
        return Ok(None);
    }
    let found = product(k, products).and_then(|product| match room(k, &product, warps) {
        _ if slots < 2 => Err("the channels have one slot, which it reads".to_owned()),
        false if product.load.is_some() => Err("a thread has no room for the sums and an operand, twice".to_owned()),
        false => Err("a thread has no room for the sums and two parts of them (`promote`)".to_owned()),
        true => Ok(product),
    });
    match (found, asked) {
        (Ok(product), asked) => {
            let gains = asked.is_some() || product.promoted || ping_pong(k).is_some();
            if gains {
                let message = format!(
                    "products of a step are pending while those of the next are issued, on two of the {slots} slots"
                );
                cx.remark_note(span, message, "`pending 0` in the schedule has each step wait for its own");
            }
            Ok(gains.then_some(product))
        }
        (Err(why), Some(e)) => Err(refused(k, cx, e, &why)),
        (Err(why), None) => {
            if promotes(k, products) {
                cx.remark(span, format!("no product is pending while the next is issued: {why}"));
            }
            Ok(None)
        }
    }
}

/// Whether there are products whose sums are promoted.
fn promotes(k: &Kernel, stmts: &[Stmt]) -> bool {
    stmts.iter().any(|&s| match k.stmts[s] {
        StmtData::Assign { dst, src } => match k.exprs[src] {
            ExprData::Mma(mma) => is_promoted(k, mma.atom, dst),
            _ => false,
        },
        _ => false,
    })
}

/// Whether the sums of products that are added to `acc` are promoted.
fn is_promoted(k: &Kernel, atom: Option<Atom>, acc: Value) -> bool {
    atom.zip(acc_elem(k, acc)).is_some_and(|(atom, elem)| promoted_of(k, atom, elem).is_some())
}

/// That `pending 1` cannot be had.
pub(super) fn refused(k: &Kernel, cx: &mut Cx<'_>, e: Expr, why: &str) -> Reported {
    let message = format!("no product can be pending while the next is issued: {why}");
    let note = "`pending` is for one product of warpgroups a step (sm_90a), on slots of which there are two at least";
    cx.report(Diagnostic::error(codes::BAD_SCHEDULE, k.expr_spans[e], message).with_note(note))
}

/// The only product of a step, behind which there is nothing but the wait for it.
fn product(k: &Kernel, stmts: &[Stmt]) -> Result<Product, String> {
    let mut found = None;
    let mut names = Vec::new();
    let mut load = None;
    for &s in stmts {
        match k.stmts[s] {
            StmtData::Let { .. } if found.is_none() => names.push(s),
            StmtData::Copy { dst, .. } if found.is_none() && load.is_none() => match k.exprs[dst] {
                ExprData::Ref(v) if matches!(k.values[v].def, ValueDef::Var(_)) => load = Some((s, v)),
                _ => return Err("a step does more than one product".to_owned()),
            },
            StmtData::Assign { dst, src } if found.is_none() => match k.exprs[src] {
                ExprData::Mma(mma) if matches!(k.exprs[mma.c], ExprData::Ref(v) if v == dst) => {
                    found = Some((dst, src, mma));
                }
                _ => return Err("a step does more than one product".to_owned()),
            },
            StmtData::Await { value, .. } if found.is_some_and(|(acc, ..)| acc == value) => {}
            _ => return Err("a step does more than one product".to_owned()),
        }
    }
    let (acc, src, mma) = found.ok_or("a step has no product")?;
    let promoted = is_promoted(k, mma.atom, acc);
    let reads =
        |(_, v): (Stmt, Value)| [mma.a, mma.b].into_iter().any(|e| matches!(k.exprs[e], ExprData::Ref(w) if w == v));
    if load.is_some_and(|load| !reads(load)) {
        return Err("a step does more than one product".to_owned());
    }
    Ok(Product { acc, src, mma, names, load, promoted })
}

/// Whether a thread has registers for the sums, for two parts of them if they are promoted, and for two of an operand that comes from registers.
fn room(k: &Kernel, product: &Product, warps: u32) -> bool {
    if !product.in_turns() {
        return true;
    }
    let words = |v: Value| {
        let elements = k.tile_ty(v).and_then(|t| k.const_shape(&t.shape)).map(|s| s.iter().product::<u64>())?;
        Some(elements * u64::from(elem_of(k, v)?.bytes()) / 4)
    };
    let fragment = product.load.map_or(Some(0), |(_, v)| words(v));
    let Some((sums, fragment)) = words(product.acc).zip(fragment) else { return false };
    let parts = if product.promoted { 3 } else { 1 };
    let tiles = (parts * sums + 2 * fragment) / u64::from(warps.max(1) * WARP);
    let own = u64::try_from(consumer_registers(k, warps)).unwrap_or(0);
    let most = if fragment > 0 { IN_TURNS } else { ACCUMULATORS };
    tiles <= most && tiles + BESIDE <= own
}

/// Registers of a thread that sums and two tiles of an operand may take: with 192 the assembler (12.9) runs one product after the other.
const IN_TURNS: u64 = 160;

/// What builds the steps of one role.
struct Steps<'k> {
    k: &'k mut Kernel,
    span: Span,
    part: Part<'k>,
    var: Value,
}

impl Steps<'_> {
    fn int(&mut self, n: i64) -> Expr {
        self.k.int(n, self.span)
    }

    fn copy(&mut self, e: Expr) -> Expr {
        self.k.clone_expr(e, &mut |_, _| None)
    }

    fn op(&mut self, op: Op, a: Expr, b: Expr) -> Expr {
        self.k.binary(op, a, b, self.span)
    }

    fn compare(&mut self, op: Op, a: Expr, b: Expr) -> Expr {
        self.k.expr(ExprData::Op { op, args: vec![a, b] }, self.span)
    }

    /// A step at `at`, whose products stay pending: they add to the accumulator, or begin a part of the sums.
    fn step(&mut self, at: Expr, own: Own) -> Vec<Stmt> {
        let mut map = Map(vec![(self.var, Subst::Expr(at))]);
        let span = self.span;
        match self.part {
            Part::Fill(stmts) => stmts.iter().map(|&s| clone_stmt(self.k, s, &mut map)).collect(),
            Part::Multiply(product, channels) => {
                let mut out = vec![channel_op(self.k, ChannelOp::Wait, channels, span)];
                out.extend(product.names.iter().map(|&s| clone_stmt(self.k, s, &mut map)).collect::<Vec<_>>());
                if let (Some((load, from)), Some(fragment)) = (product.load, own.fragment) {
                    map.0.push((from, Subst::Value(fragment)));
                    out.push(clone_stmt(self.k, load, &mut map));
                }
                if let Some(part) = own.part {
                    let zero = self.int(0);
                    out.push(self.k.stmt(StmtData::Assign { dst: part, src: zero }, span));
                }
                let dst = own.part.unwrap_or(product.acc);
                let of = self.k.expr_spans[product.src];
                let c = self.k.value_ref(dst, of);
                let (a, b) = (clone_expr(self.k, product.mma.a, &map), clone_expr(self.k, product.mma.b, &map));
                let src = self.k.expr(ExprData::Mma(Mma { a, b, c, ..product.mma }), of);
                out.push(self.k.stmt(StmtData::Assign { dst, src }, span));
                out
            }
        }
    }

    /// Waits for the oldest products, while so many later ones are pending; adds the part of the sums that they are, if one.
    fn settle(&mut self, own: Own, pending: u32) -> Vec<Stmt> {
        let span = self.span;
        let Part::Multiply(product, channels) = self.part else { return Vec::new() };
        let wait =
            self.k.stmt(StmtData::Await { value: own.part.unwrap_or(product.acc), pending, after: Vec::new() }, span);
        let mut out = vec![wait, channel_op(self.k, ChannelOp::Release, channels, span)];
        if let Some(part) = own.part {
            let (whole, more) = (self.k.value_ref(product.acc, span), self.k.value_ref(part, span));
            let src = self.op(Op::Add, whole, more);
            out.push(self.k.stmt(StmtData::Assign { dst: product.acc, src }, span));
        }
        out
    }

    /// What the products of every other step have to themselves: of an operand the first ones have the tile that there is. Declarations go to `out`.
    fn new_own(&mut self, first: bool, out: &mut Vec<Stmt>) -> Own {
        let Part::Multiply(product, _) = self.part else { return Own::default() };
        let part = if product.promoted { self.declare_like(product.acc, "part", out) } else { None };
        let fragment = match product.load {
            Some((_, tile)) if first => Some(tile),
            Some((_, tile)) => {
                let name = self.k.values[tile].name.clone();
                self.declare_like(tile, &name, out)
            }
            None => None,
        };
        Own { part, fragment }
    }

    fn declare_like(&mut self, tile: Value, name: &str, out: &mut Vec<Stmt>) -> Option<Value> {
        let tile = self.k.tile_ty(tile).cloned()?;
        let value = self.k.value(name, self.span, ValueDef::Var(tile));
        out.push(self.k.stmt(StmtData::Var { value, init: None }, self.span));
        Some(value)
    }

    /// A loop of its own variable.
    fn looped(&mut self, [start, end, step]: [Expr; 3], body: impl FnOnce(&mut Self, Value) -> Vec<Stmt>) -> Stmt {
        let name = self.k.values[self.var].name.clone();
        let var = self.k.value(&name, self.span, ValueDef::Loop);
        let body = body(self, var);
        let body = self.k.block(body);
        self.k.stmt(StmtData::For { var, start, end, step, unroll: false, body }, self.span)
    }

    fn at(&mut self, var: Value) -> Expr {
        self.k.value_ref(var, self.span)
    }

    /// Where the first step begins: in front of the end, as `min` says for whoever reasons about ranges.
    fn first(&mut self, start: Expr, end: Expr) -> Expr {
        let (from, to) = (self.copy(start), self.copy(end));
        if self.k.as_int(start).is_some() { from } else { self.op(Op::Min, from, to) }
    }

    /// One step after the other into the same sums.
    fn in_one(&mut self, [start, end, step]: [Expr; 3]) -> Vec<Stmt> {
        let at = self.first(start, end);
        let mut out = self.step(at, Own::default());
        let first = self.op(Op::Add, start, step);
        let (end, step) = (self.copy(end), self.copy(step));
        out.push(self.looped([first, end, step], |steps, var| {
            let at = steps.at(var);
            let mut body = steps.step(at, Own::default());
            body.extend(steps.settle(Own::default(), 1));
            body
        }));
        out.extend(self.settle(Own::default(), 0));
        out
    }

    /// Two parts of the sums, or two tiles of an operand, in turns.
    fn in_two(&mut self, [start, end, step]: [Expr; 3], each: i64) -> Vec<Stmt> {
        let mut out = Vec::new();
        let [one, two] = [true, false].map(|first| self.new_own(first, &mut out));
        let at = self.first(start, end);
        out.extend(self.step(at, one));
        let (first, last) = (self.op(Op::Add, start, step), self.op(Op::Sub, end, step));
        let double = self.int(2 * each);
        out.push(self.looped([first, last, double], |steps, var| {
            let at = steps.at(var);
            let mut body = steps.step(at, two);
            body.extend(steps.settle(one, 1));
            let (at, by) = (steps.at(var), steps.int(each));
            let at = steps.op(Op::Add, at, by);
            body.extend(steps.step(at, one));
            body.extend(steps.settle(two, 1));
            body
        }));
        // Where their number is even a step is left over.
        let known =
            self.k.as_int(start).zip(self.k.as_int(end)).map(|(start, end)| (end - start + each - 1) / each % 2 == 0);
        let at = self.last(start, end, each);
        let mut rest = self.step(at, two);
        rest.extend(self.settle(one, 1));
        rest.extend(self.settle(two, 0));
        let done = self.settle(one, 0);
        match known {
            Some(true) => out.extend(rest),
            Some(false) => out.extend(done),
            None => {
                let even = self.even(start, end, each);
                let (then, otherwise) = (self.k.block(rest), (!done.is_empty()).then(|| self.k.block(done)));
                out.push(self.k.stmt(StmtData::If { cond: even, then, otherwise }, self.span));
            }
        }
        out
    }

    /// Whether there are an even number of steps.
    fn even(&mut self, start: Expr, end: Expr, each: i64) -> Expr {
        let (from, to) = (self.copy(start), self.copy(end));
        let all = self.op(Op::Sub, to, from);
        let by = self.int(each);
        let steps = self.op(Op::CeilDiv, all, by);
        let (two_steps, none_left) = (self.int(2), self.int(0));
        let odd = self.op(Op::Rem, steps, two_steps);
        self.compare(Op::Eq, odd, none_left)
    }

    /// Where the last step begins: counted from `end`, so that it is plainly in front of that.
    fn last(&mut self, start: Expr, end: Expr, each: i64) -> Expr {
        if let (Some(start), Some(end)) = (self.k.as_int(start), self.k.as_int(end)) {
            return self.int(end - 1 - (end - start - 1).max(0) % each);
        }
        let (from, to) = (self.copy(start), self.copy(end));
        let all = self.op(Op::Sub, to, from);
        let one = self.int(1);
        let all = self.op(Op::Sub, all, one);
        let by = self.int(each);
        let rest = self.op(Op::Rem, all, by);
        let (to, one) = (self.copy(end), self.int(1));
        let to = self.op(Op::Sub, to, one);
        self.op(Op::Sub, to, rest)
    }
}

/// Whether there is a step for certain: sizes are at least 1.
fn begins(k: &Kernel, start: Expr, end: Expr) -> bool {
    let least = match k.exprs[end] {
        ExprData::Ref(v) if matches!(k.values[v].def, ValueDef::Size) => Some(1),
        _ => k.as_int(end),
    };
    k.as_int(start).zip(least).is_some_and(|(start, least)| start < least)
}

/// The statements in place of the loop `at`, whose step is `each`.
pub(super) fn steps(k: &mut Kernel, at: Stmt, part: Part<'_>, in_turns: bool) -> Vec<Stmt> {
    let StmtData::For { var, start, end, step, .. } = k.stmts[at] else { return vec![at] };
    let span = k.stmt_spans[at];
    let mut steps = Steps { k, span, part, var };
    let bounds = [start, end, step].map(|e| steps.copy(e));
    let list = match steps.k.as_int(step).filter(|_| in_turns) {
        Some(each) => steps.in_two(bounds, each),
        None => steps.in_one(bounds),
    };
    if begins(steps.k, start, end) {
        return list;
    }
    let (start, end) = (steps.copy(start), steps.copy(end));
    let some = steps.compare(Op::Gt, end, start);
    let then: Block = steps.k.block(list);
    vec![k.stmt(StmtData::If { cond: some, then, otherwise: None }, span)]
}

impl Product {
    /// Whether something of a step's is used until its products are awaited, so that the next step needs another.
    pub(super) fn in_turns(&self) -> bool {
        self.promoted || self.load.is_some()
    }
}
