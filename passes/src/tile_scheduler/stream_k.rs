//! Stream-K (Osama et al. 2023): blocks share tiles along the reduction, so that all have the same work.
//!
//! If tiles do not divide evenly among the blocks, some blocks idle while the last tiles are computed. So blocks first share
//! the remaining tiles: the steps of these tiles along the reduction, one tile after the other, are divided into equal segments, one for each block. Then each block computes as
//! many whole tiles as the others.
//!
//! ```text
//! let workers = min(132, max(tiles, min(tiles, 132) * min(steps / 8, 4)))
//! let rounds = tiles / workers
//! let rest = tiles - rounds * workers
//! let each = min(min(workers / max(rest, 1), 4), steps / 8)                      // workers for a tile that is left over
//! let shared = select(rounds == 0 || each >= 2, rest, 0)
//! let sharers = select(each < 2, workers, max(shared * each, 1))
//! let worker = workers - 1 - cta
//! let from = min(worker * (shared * steps) / sharers, shared * steps)            // this block's segment
//! let to = min((worker + 1) * (shared * steps) / sharers, shared * steps)
//! let first = from / steps
//! let parts = ceildiv(to, steps) - first                                         // tiles that it covers
//! for unit in 0..parts + ceildiv(tiles - shared - worker, workers) {
//!     let tile = select(unit < parts, first + unit, shared + worker + (unit - parts) * workers)
//!     let begin = ..                                                             // of the tile's steps, 0 where it has it from the start
//!     let stop = ..
//!     for k in begin * 64..min(K, stop * 64) step 64 { .. }
//!     if begin > 0 {
//!         copy acc -> acc_sums[cta, 0.., 0..] fragment
//!         signal acc_ready[cta]
//!     } else {
//!         for peer in peers..cta { await acc_ready[peer] }
//!         for peer in peers..cta { copy acc + acc_sums[peer, 0.., 0..] -> acc fragment }     // three others of a small tile at a time
//!         ..
//!     }
//! }
//! ```
//!
//! A segment begins in the middle of at most one tile, so each block has one part of the scratch memory `acc_sums`, and
//! one signal. The block that has the beginning of a tile waits for those that have the rest. They compute it first,
//! and have lower block indices, so that they started earlier. If there are also rounds of whole tiles, segments are
//! equal parts of a tile. So blocks read the same part of the operands at about the same time. Otherwise these would
//! not stay in the second-level cache. The sums are added in a fixed order. In clusters, the blocks of a cluster have
//! equal segments of adjacent tiles.
//!
//! Redundant `min` and `max` are written for the analysis of ranges.

use super::index_builder::{IndexBuilder, Term};
use super::persistent::Tiles;
use super::split_product::{SplitProduct, least_steps};
use crate::Cx;
use crate::analysis::wgmma;
use crate::choose::stream_k::MOST;
use crate::rewrite::{Map, Subst};
use tilec_ir::diag::Span;
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, Range, SignalOp, StmtData, ValueDef, View};
use tilec_ir::ops::Op;
use tilec_ir::types::{DimStride, Elem, ElemRef, Scratch, Strides, TensorTy};

/// How blocks share tiles.
pub(super) struct Stream {
    /// Placeholder names for the first step of a unit and the one after its last, until they are declared.
    begin: Value,
    stop: Value,
    /// Placeholder for the first group of blocks with another part of the tile.
    peers: Value,
    /// Elements of a step, and of the reduction; least steps of a segment.
    step: i64,
    least: i64,
    /// Most blocks that share a tile.
    most: i64,
    /// Whether partial sums of other blocks are read several at a time, in a loop.
    groups: bool,
    reduction: Expr,
    acc: Value,
    sums: Value,
    ready: Value,
    /// Whether one statement adds the partial sums of all sharing blocks.
    adds_all_at_once: bool,
    span: Span,
}

/// Most elements of a tile for which partial sums of several blocks are added at a time: with more, reading takes
/// longer than waiting, and the code would be twice as long.
const FEW: i64 = 128 * 128;

/// The distribution of tiles and steps, as names in the kernel's text.
struct WorkSplit {
    /// Tiles of the output, and steps of each.
    count: Value,
    steps: Value,
    workers: Value,
    /// The number of shared tiles, of blocks that share them, and of their steps.
    shared: Value,
    sharers: Value,
    work: Value,
    /// The number of the worker, and the start and end of its steps.
    worker: Value,
    from: Value,
    to: Value,
    /// The first tile of which it has steps, and their number.
    first: Value,
    parts: Value,
    /// The number of tiles that it computes, completely or in part.
    end: Expr,
}

impl Stream {
    pub(super) fn new(k: &mut Kernel, cx: &mut Cx<'_>, tiles: &Tiles, found: SplitProduct, most: i64) -> Stream {
        let SplitProduct { acc, elem, shape: (rows, cols), step, end, span, .. } = found;
        let (groups, each) = tiles.counts();
        let blocks = groups * each;
        let name = k.values[acc].name.clone();
        let strides = [rows * cols, cols, 1];
        let sums = tensor(k, span, (&format!("{name}_sums"), elem, Scratch::Elements), &[blocks, rows, cols], &strides);
        let ready = tensor(k, span, (&format!("{name}_ready"), Elem::U32, Scratch::Signals), &[blocks], &[1]);
        let mut stands = |name: &str| k.value(name, span, ValueDef::Let);
        let (begin, stop, peers) = (stands("begin"), stands("stop"), stands("peers"));
        // Sums and products of steps fit 31 bits.
        let (all, longest) = (k.copy_expr(end), k.int(most_steps(groups) * step, span));
        let within = k.binary(Op::Le, all, longest, span);
        k.requires.push(within);
        let bytes = elem.bytes_of((blocks * rows * cols).unsigned_abs());
        let message = format!(
            "stream-K: blocks share tiles along the reduction, for equal work; scratch memory has {blocks} partial sums of \
             {rows} x {cols}, {bytes} bytes"
        );
        cx.remark_note(span, message, "`stream_k 0` in the schedule leaves each tile to one block");
        let least = least_steps(k, step);
        let adds_all_at_once = rows * cols <= FEW;
        let groups = adds_all_at_once && most > MOST && wgmma::multiplies(k);
        Stream {
            begin,
            stop,
            peers,
            step,
            least,
            most,
            groups,
            reduction: end,
            acc,
            sums,
            ready,
            adds_all_at_once,
            span,
        }
    }

    /// The bounds of a unit along the reduction, in elements.
    pub(super) fn bounds(&self, k: &mut Kernel) -> (Expr, Expr) {
        let all = k.copy_expr(self.reduction);
        let mut m = IndexBuilder { k, span: self.span, stmts: Vec::new() };
        let start = m.op(Op::Mul, self.begin, self.step);
        let end = m.op(Op::Mul, self.stop, self.step);
        (start, m.op(Op::Min, all, end))
    }

    /// The code after the products of a unit; `rest` is the epilogue for a complete sum.
    pub(super) fn finish(&self, k: &mut Kernel, tiles: &Tiles, rest: Vec<Stmt>) -> Stmt {
        let span = self.span;
        let window = |k: &mut Kernel, at: Expr| {
            let mut ranges = vec![Range::At(at)];
            for _ in 0..2 {
                ranges.push(Range::From { start: k.int(0, span), end: None });
            }
            k.expr(ExprData::View(View { base: self.sums, slot: None, ranges }), span)
        };
        let own = k.value_ref(tiles.block(), span);
        let (src, dst) = (k.value_ref(self.acc, span), window(k, own));
        let leave = k.stmt(StmtData::Copy { src, dst, attrs: CopyAttrs::of_fragment() }, span);
        let index = k.value_ref(tiles.block(), span);
        let raise = k.stmt(StmtData::Signal { op: SignalOp::Raise, signals: self.ready, index }, span);
        let then = k.block(vec![leave, raise]);

        // All signals are awaited first, and then all sums are read: alternating would serialise the latencies.
        let groups = |k: &mut Kernel, body: &mut dyn FnMut(&mut Kernel, Value) -> Stmt| {
            let peer = k.value("peer", span, ValueDef::Loop);
            let s = body(k, peer);
            let body = k.block(vec![s]);
            let (start, end, step) = (k.value_ref(self.peers, span), tiles.group(k), k.int(1, span));
            k.stmt(StmtData::For { var: peer, start, end, step, cond: None, next: None, unroll: false, body }, span)
        };
        let wait = groups(k, &mut |k, peer| {
            let peer = k.value_ref(peer, span);
            let index = self.block_of(k, tiles, peer);
            k.stmt(StmtData::Signal { op: SignalOp::Await, signals: self.ready, index }, span)
        });
        let add = |k: &mut Kernel, peers: Vec<Expr>| {
            let mut src = k.value_ref(self.acc, span);
            for peer in peers {
                let at = self.block_of(k, tiles, peer);
                let more = window(k, at);
                src = k.binary(Op::Add, src, more, span);
            }
            let dst = k.value_ref(self.acc, span);
            k.stmt(StmtData::Copy { src, dst, attrs: CopyAttrs::of_fragment() }, span)
        };
        let mut add_up = groups(k, &mut |k, peer| {
            let peer = k.value_ref(peer, span);
            add(k, vec![peer])
        });
        if self.groups {
            let sums = self.add_groups(k, tiles, &add);
            return self.either(k, then, [vec![wait], sums, rest].concat());
        }
        let counts = if self.most > MOST { vec![MOST, self.most] } else { vec![self.most] };
        for count in counts.into_iter().filter(|_| self.adds_all_at_once) {
            let mut peers = Vec::new();
            for i in 0..count - 1 {
                let mut m = IndexBuilder { k, span, stmts: Vec::new() };
                peers.push(m.op(Op::Add, self.peers, i));
            }
            let most = add(k, peers);
            let (then, otherwise) = (k.block(vec![most]), k.block(vec![add_up]));
            let group = tiles.group(k);
            let mut m = IndexBuilder { k, span, stmts: Vec::new() };
            let all = m.op(Op::Sub, group, self.peers);
            let cond = m.compare(Op::Eq, all, count - 1);
            add_up = k.stmt(StmtData::If { cond, then, otherwise: Some(otherwise) }, span);
        }
        let whole = [vec![wait, add_up], rest].concat();
        self.either(k, then, whole)
    }

    /// Adds the partial sums of all other blocks, [`MOST`] at a time, and then one by one.
    fn add_groups(&self, k: &mut Kernel, tiles: &Tiles, add: &dyn Fn(&mut Kernel, Vec<Expr>) -> Stmt) -> Vec<Stmt> {
        let span = self.span;
        let repeat = |k: &mut Kernel, start: Expr, end: Expr, count: i64| {
            let peer = k.value("peer", span, ValueDef::Loop);
            let mut m = IndexBuilder { k, span, stmts: Vec::new() };
            let peers = (0..count).map(|i| m.op(Op::Add, peer, i)).collect();
            let s = add(k, peers);
            let (body, step) = (k.block(vec![s]), k.int(count, span));
            k.stmt(StmtData::For { var: peer, start, end, step, cond: None, next: None, unroll: false, body }, span)
        };
        let (own, again) = (tiles.group(k), tiles.group(k));
        let mut m = IndexBuilder { k, span, stmts: Vec::new() };
        let all = m.op(Op::Sub, own, self.peers);
        let whole = m.op(Op::Div, all, MOST);
        let whole = m.op(Op::Mul, whole, MOST);
        let whole = m.op(Op::Add, self.peers, whole);
        let whole = m.name("whole", whole);
        let mut stmts = std::mem::take(&mut m.stmts);
        let (start, end) = (k.value_ref(self.peers, span), k.value_ref(whole, span));
        stmts.push(repeat(k, start, end, MOST));
        let start = k.value_ref(whole, span);
        stmts.push(repeat(k, start, again, 1));
        stmts
    }

    /// The block of a group that has another part of the same tile.
    fn block_of(&self, k: &mut Kernel, tiles: &Tiles, group: Expr) -> Expr {
        let rank = tiles.rank(k);
        let mut m = IndexBuilder { k, span: self.span, stmts: Vec::new() };
        let first = m.op(Op::Mul, group, tiles.counts().1);
        m.op(Op::Add, first, rank)
    }

    fn either(&self, k: &mut Kernel, part: Block, whole: Vec<Stmt>) -> Stmt {
        let otherwise = Some(k.block(whole));
        let mut m = IndexBuilder { k, span: self.span, stmts: Vec::new() };
        let cond = m.compare(Op::Gt, self.begin, 0);
        k.stmt(StmtData::If { cond, then: part, otherwise }, self.span)
    }

    /// The number of groups of blocks in a launch.
    pub(super) fn workers(&self, k: &mut Kernel, tiles: &Tiles) -> Expr {
        let (all, again, steps) = (tiles.tiles(k), tiles.tiles(k), self.steps(k));
        let mut m = IndexBuilder { k, span: self.span, stmts: Vec::new() };
        self.workers_of(&mut m, tiles, (all, again), steps)
    }

    fn workers_of(
        &self,
        m: &mut IndexBuilder<'_>,
        tiles: &Tiles,
        (all, again): (impl Term, impl Term),
        steps: impl Term,
    ) -> Expr {
        let (groups, _) = tiles.counts();
        let few = m.op(Op::Min, again, groups);
        let segments = self.segments(m, steps);
        let wanted = m.op(Op::Mul, few, segments);
        let wanted = m.op(Op::Max, all, wanted);
        m.op(Op::Min, groups, wanted)
    }

    /// The number of blocks that may share a tile.
    fn segments(&self, m: &mut IndexBuilder<'_>, steps: impl Term) -> Expr {
        let segments = m.op(Op::Div, steps, self.least);
        m.op(Op::Min, segments, self.most)
    }

    /// Steps of a tile.
    fn steps(&self, k: &mut Kernel) -> Expr {
        let (all, step) = (k.copy_expr(self.reduction), k.int(self.step, self.span));
        k.binary(Op::CeilDiv, all, step, self.span)
    }

    /// The statements for every unit of a block.
    pub(super) fn walk(&self, k: &mut Kernel, tiles: &Tiles, stmts: &[Stmt]) -> Vec<Stmt> {
        let span = self.span;
        let mut m = IndexBuilder { k, span, stmts: Vec::new() };
        let WorkSplit { count, steps, workers, shared, sharers, work, worker, from, to, first, parts, end } =
            self.emit_work_split(&mut m, tiles);
        let mut out = std::mem::take(&mut m.stmts);

        let unit = m.k.value("unit", span, ValueDef::Loop);
        let part = m.op(Op::Add, first, unit);
        let round = m.op(Op::Sub, unit, parts);
        let round = m.op(Op::Mul, round, workers);
        let behind = m.op(Op::Add, shared, worker);
        let own = m.op(Op::Add, behind, round);
        let is_part = m.compare(Op::Lt, unit, parts);
        let tile = m.select(is_part, part, own);
        let last = m.op(Op::Sub, count, 1);
        let tile = m.within(0, tile, last);
        let tile = m.name("tile", tile);
        // The start of the tile's steps among all shared steps.
        let nth = m.op(Op::Min, unit, parts);
        let nth = m.op(Op::Add, first, nth);
        let at = m.op(Op::Mul, nth, steps);
        let at = m.name("at", at);
        let begin = m.op(Op::Sub, from, at);
        let begin = m.within(0, begin, steps);
        let begin = m.name("begin", begin);
        let stop = m.op(Op::Sub, to, at);
        let stop = m.within(0, stop, steps);
        let is_part = m.compare(Op::Lt, unit, parts);
        let stop = m.select(is_part, stop, steps);
        let stop = m.name("stop", stop);
        // Workers from 0 up to this one begin in front of the tile's end; those with the rest of the tile are among
        // them.
        let end_of_tile = m.op(Op::Add, at, steps);
        let product = m.op(Op::Mul, end_of_tile, sharers);
        let some = m.op(Op::Max, work, 1);
        let others = m.op(Op::CeilDiv, product, some);
        let peers = m.op(Op::Sub, workers, others);
        let peers = m.op(Op::Max, peers, 0);
        let is_part = m.compare(Op::Lt, unit, parts);
        let peers = m.select(is_part, peers, workers);
        let peers = m.name("peers", peers);
        let mut body = std::mem::take(&mut m.stmts);
        let declared = [(self.begin, begin), (self.stop, stop), (self.peers, peers)];
        let map = Map(declared.map(|(stands, for_it)| (stands, Subst::Value(for_it))).into());
        body.extend(tiles.tile(k, tile, stmts, map));
        let body = k.block(body);
        let (start, step) = (k.int(0, span), k.int(1, span));
        out.push(
            k.stmt(StmtData::For { var: unit, start, end, step, cond: None, next: None, unroll: false, body }, span),
        );
        out
    }

    /// Emits the distribution: the shared work, and a worker's part of it.
    fn emit_work_split(&self, m: &mut IndexBuilder<'_>, tiles: &Tiles) -> WorkSplit {
        let (groups, _) = tiles.counts();
        let (all_tiles, all_steps, group) = (tiles.bounded_tiles(m.k), self.steps(m.k), tiles.group(m.k));
        let count = m.name("tiles", all_tiles);
        let steps = m.op(Op::Min, all_steps, most_steps(groups));
        let steps = m.name("steps", steps);
        let workers = self.workers_of(m, tiles, (count, count), steps);
        let workers = m.name("workers", workers);
        let rounds = m.op(Op::Div, count, workers);
        let rounds = m.name("rounds", rounds);
        let whole = m.op(Op::Mul, rounds, workers);
        let rest = m.op(Op::Sub, count, whole);
        let rest = m.within(0, rest, groups);
        let rest = m.name("rest", rest);
        let some = m.op(Op::Max, rest, 1);
        let each = m.op(Op::Div, workers, some);
        let segments = self.segments(m, steps);
        let each = m.op(Op::Min, each, segments);
        let each = m.name("each", each);
        let (none, several) = (m.compare(Op::Eq, rounds, 0), m.compare(Op::Ge, each, 2));
        let either = m.compare(Op::Or, none, several);
        let shared = m.select(either, rest, 0);
        let shared = m.name("shared", shared);
        let aligned = m.op(Op::Mul, shared, each);
        let aligned = m.op(Op::Max, aligned, 1);
        let apart = m.compare(Op::Lt, each, 2);
        let sharers = m.select(apart, workers, aligned);
        let sharers = m.name("sharers", sharers);
        let work = m.op(Op::Mul, shared, steps);
        let work = m.name("work", work);
        let last = m.op(Op::Sub, workers, 1);
        let worker = m.op(Op::Sub, last, group);
        let worker = m.op(Op::Max, worker, 0);
        let worker = m.name("worker", worker);
        let share = m.op(Op::Mul, worker, work);
        let from = m.op(Op::Div, share, sharers);
        let from = m.op(Op::Min, from, work);
        let from = m.name("from", from);
        let next = m.op(Op::Add, worker, 1);
        let share = m.op(Op::Mul, next, work);
        let to = m.op(Op::Div, share, sharers);
        let to = m.op(Op::Min, to, work);
        let to = m.name("to", to);
        let first = m.op(Op::Div, from, steps);
        let first = m.op(Op::Min, first, groups);
        let first = m.name("first", first);
        let behind = m.op(Op::CeilDiv, to, steps);
        let parts = m.op(Op::Sub, behind, first);
        let parts = m.within(0, parts, groups);
        let parts = m.name("parts", parts);
        let behind = m.op(Op::Add, shared, worker);
        let own = m.op(Op::Sub, count, behind);
        let own = m.op(Op::Max, own, 0);
        let whole = m.op(Op::CeilDiv, own, workers);
        let end = m.op(Op::Add, parts, whole);
        let end = m.op(Op::Min, end, i64::from(i32::MAX) - 2 * groups);
        WorkSplit { count, steps, workers, shared, sharers, work, worker, from, to, first, parts, end }
    }
}

/// Most steps of a tile for this number of groups.
fn most_steps(groups: i64) -> i64 {
    (i64::from(i32::MAX) / (8 * groups * groups)).max(1)
}

/// Declares a tensor in scratch memory.
pub(super) fn tensor(
    k: &mut Kernel,
    span: Span,
    (name, elem, scratch): (&str, Elem, Scratch),
    extents: &[i64],
    strides: &[i64],
) -> Value {
    let shape = extents.iter().map(|&n| k.int(n, span)).collect();
    let strides = strides.iter().map(|&n| DimStride::One(k.int(n, span))).collect();
    let ty = TensorTy {
        elem: ElemRef::Known(elem),
        shape,
        repeats: Vec::new(),
        padded: Vec::new(),
        strides: Strides::Explicit(strides),
        ld: Vec::new(),
        pointers: false,
        scratch: Some(scratch),
        align: None,
        multiple: None,
        constant: false,
    };
    let value = k.value(name, span, ValueDef::Tensor(ty));
    k.params.push(value);
    value
}
