//! Persistent grids: each block computes several tiles of the output.
//!
//! ```text
//! grid (cta: min(ceildiv(M, 128) * ceildiv(N, 256), 132))
//! for tile in cta..ceildiv(M, 128) * ceildiv(N, 256) step 132 {
//!     let strip = tile / (ceildiv(M, 128) * 8)                     // 8 neighbouring columns of tiles
//!     let place = tile % (ceildiv(M, 128) * 8)
//!     let columns = max(1, min(8, ceildiv(N, 256) - strip * 8))
//!     let bm = min(place / columns, ceildiv(M, 128) - 1)
//!     let bn = min(strip * 8 + place % columns, ceildiv(N, 256) - 1)
//!     ..
//! }
//! ```
//!
//! Tiles that are computed at the same time are adjacent, in strips of `raster` columns, so that they share operands in
//! the second-level cache. In a cluster, `tile` counts groups of adjacent tiles, and `cta % 2` is the rank. The `min`s
//! of the indices never change a value; they are written for the analysis of ranges.

use super::cluster::Cluster;
use crate::Cx;
use crate::rewrite::{Map, Subst, clone_stmt};
use crate::roles;
use std::collections::BTreeMap;
use tilec_ir::diag::Span;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::extents::Ranges;
use tilec_ir::kernel::{ExprData, GridAxis, Kernel, Next, StmtData, ValueDef};
use tilec_ir::ops::Op;

/// Most tiles of a launch, except for one more for each block: indices have 31 bits.
const MOST: i64 = i32::MAX as i64;

/// Most tiles along axes after the second, as for grids that are not persistent.
const LAYERS: i64 = 65_535;

/// The distribution of tiles.
pub(super) struct Tiles {
    axes: Vec<GridAxis>,
    /// The index of a block.
    block: Value,
    cluster: Cluster,
    /// Most clusters of a launch; without clusters, blocks.
    groups: i64,
    /// How far the loop's step can exceed the last tile.
    reach: i64,
    /// Columns of a strip.
    columns: i64,
    /// Whether tiles are distributed from both ends alternately.
    both_ends: bool,
    /// If blocks take tile numbers, except the first one, from a counter.
    next: Option<Next>,
    /// The position of the statement for which the scheduler is made.
    span: Span,
    /// The position of the grid in the source, for messages about its index.
    at: Span,
    /// The position of the strips' width, if it is written.
    strips: Span,
}

/// The number of resident clusters of `blocks` blocks in a persistent grid.
pub(super) fn clusters(k: &Kernel, cx: &Cx<'_>, blocks: i64) -> i64 {
    let per_sm = k.schedule.min_ctas.and_then(|e| k.as_int(e)).unwrap_or(1).max(1);
    cx.options.usual_card().clusters(blocks) * per_sm
}

/// The position of the grid axes in the source; `None`: they are not written.
fn written(k: &Kernel) -> Option<Span> {
    let axes = k.grid.iter().flat_map(|axis| [k.values[axis.index].span, k.expr_spans[axis.extent]]);
    axes.filter(|span| !span.is_none()).reduce(Span::to)
}

impl Tiles {
    /// `None`: the kernel has no grid.
    pub(super) fn new(k: &mut Kernel, cx: &mut Cx<'_>, span: Span) -> Option<Tiles> {
        if k.grid.is_empty() {
            return None;
        }
        let at = written(k).unwrap_or(span);
        let strips = k.schedule.raster.map(|e| k.expr_spans[e]).filter(|span| !span.is_none()).unwrap_or(at);
        let cluster = Cluster::of(k, cx, span);
        let columns = k.schedule.raster.and_then(|e| k.as_int(e)).unwrap_or(1).clamp(1, 1024);
        let block = k.value("cta", at, ValueDef::Grid);
        let groups = clusters(k, cx, cluster.blocks()).max(1);
        let reach = groups * i64::from(roles::replicas(k));
        let axes = k.grid.clone();
        Some(Tiles { axes, block, cluster, groups, reach, columns, both_ends: false, next: None, span, at, strips })
    }

    /// Distributes tiles from both ends alternately ([`Tiles::number`]), for tiles with different durations.
    pub(super) fn deal_from_both_ends(&mut self) {
        self.both_ends = self.cluster.blocks() == 1;
    }

    /// Makes blocks take tile numbers from a counter, in the order of the grid ([`super::work_queue`]).
    pub(super) fn draw(&mut self, next: Next) {
        (self.both_ends, self.next) = (false, Some(next));
    }

    /// The number of tiles along an axis; with clusters, of groups of adjacent tiles.
    fn extent(&self, k: &mut Kernel, axis: usize) -> Expr {
        let Some(own) = self.axes.get(axis) else { return k.int(1, self.at) };
        let tiles = k.copy_expr(own.extent);
        match self.cluster.along.get(axis) {
            Some(&c) if c > 1 => {
                let by = k.int(c, self.at);
                k.binary(Op::CeilDiv, tiles, by, self.at)
            }
            _ => tiles,
        }
    }

    /// The tile of a block within the group `unit` along an axis.
    fn member(&self, k: &mut Kernel, unit: Expr, axis: usize) -> Expr {
        let [rows, cols] = self.cluster.along;
        let (c, inner) = match axis {
            0 => (rows, 1),
            1 => (cols, rows),
            _ => return unit,
        };
        if c == 1 {
            return unit;
        }
        let span = self.at;
        let block = k.value_ref(self.block, span);
        let all = k.int(self.cluster.blocks(), span);
        let mut rank = k.binary(Op::Rem, block, all, span);
        if inner > 1 {
            let by = k.int(inner, span);
            rank = k.binary(Op::Div, rank, by, span);
        } else if cols > 1 {
            let by = k.int(c, span);
            rank = k.binary(Op::Rem, rank, by, span);
        }
        let c = k.int(c, span);
        let first = k.binary(Op::Mul, unit, c, span);
        k.binary(Op::Add, first, rank, span)
    }

    /// Tiles of the output.
    pub(super) fn tiles(&self, k: &mut Kernel) -> Expr {
        self.product(k, self.axes.len())
    }

    /// The number of tiles along the first axes.
    fn product(&self, k: &mut Kernel, axes: usize) -> Expr {
        let mut all = self.extent(k, 0);
        for axis in 1..axes {
            if axis > 1 {
                // Products of extents fit 31 bits because of a precondition.
                let most = k.int(MOST - self.reach, self.at);
                all = k.binary(Op::Min, all, most, self.at);
            }
            let more = self.extent(k, axis);
            all = k.binary(Op::Mul, all, more, self.at);
        }
        all
    }

    /// Adds the precondition that tiles do not exceed the index range, for any number of axes.
    fn limits(&self, k: &mut Kernel) {
        let mut all = self.extent(k, 0);
        for axis in 1..self.axes.len().max(2) {
            let more = self.extent(k, axis);
            all = k.binary(Op::Mul, all, more, self.at);
            let (product, most) = (k.copy_expr(all), k.int(MOST - self.reach, self.at));
            let within = k.binary(Op::Le, product, most, self.at);
            k.requires.push(within);
        }
        for axis in 2..self.axes.len() {
            let (extent, most) = (self.extent(k, axis), k.int(LAYERS, self.at));
            let within = k.binary(Op::Le, extent, most, self.at);
            k.requires.push(within);
        }
    }

    /// The group of a block; without clusters, the block itself.
    pub(super) fn group(&self, k: &mut Kernel) -> Expr {
        let block = k.value_ref(self.block, self.at);
        match self.cluster.blocks() {
            1 => block,
            each => {
                let by = k.int(each, self.at);
                k.binary(Op::Div, block, by, self.at)
            }
        }
    }

    /// The rank of the block in its group.
    pub(super) fn rank(&self, k: &mut Kernel) -> Expr {
        match self.cluster.blocks() {
            1 => k.int(0, self.at),
            each => {
                let (block, by) = (k.value_ref(self.block, self.at), k.int(each, self.at));
                k.binary(Op::Rem, block, by, self.at)
            }
        }
    }

    /// Tiles along an axis.
    pub(super) fn along(&self, k: &mut Kernel, axis: usize) -> Expr {
        match self.axes.get(axis) {
            Some(own) => k.copy_expr(own.extent),
            None => k.int(1, self.at),
        }
    }

    /// The most groups of a launch, and the blocks of one.
    pub(super) fn counts(&self) -> (i64, i64) {
        (self.groups, self.cluster.blocks())
    }

    /// The position of the statement for which the scheduler is made.
    pub(super) fn span(&self) -> Span {
        self.span
    }

    /// The position of the grid in the source.
    pub(super) fn written_at(&self) -> Span {
        self.at
    }

    /// The first axis of the grid.
    pub(super) fn first_axis(&self) -> &GridAxis {
        &self.axes[0]
    }

    /// The index of a block.
    pub(super) fn block(&self) -> Value {
        self.block
    }

    /// The loop over the tiles of a block.
    pub(super) fn walk(&self, k: &mut Kernel, stmts: &[Stmt]) -> Vec<Stmt> {
        let span = self.at;
        let tile = k.value("tile", span, ValueDef::Loop);
        let body = self.tile(k, tile, stmts, Map::default());
        let body = k.block(body);
        let start = self.group(k);
        let end = self.bounded_tiles(k);
        let step = k.int(self.groups, span);
        vec![k.stmt(
            StmtData::For { var: tile, start, end, step, cond: None, next: self.next, unroll: false, body },
            span,
        )]
    }

    /// The number of tiles of the output, bounded by the index range.
    pub(super) fn bounded_tiles(&self, k: &mut Kernel) -> Expr {
        let all = self.tiles(k);
        let most = k.int(MOST - self.reach, self.at);
        k.binary(Op::Min, all, most, self.at)
    }

    /// The statements for the tile with a number.
    pub(super) fn tile(&self, k: &mut Kernel, tile: Value, stmts: &[Stmt], mut map: Map) -> Vec<Stmt> {
        let span = self.at;
        let mut body = Vec::new();
        let name = |k: &mut Kernel, body: &mut Vec<Stmt>, name: &str, init: Expr| {
            let span = k.expr_spans[init];
            let value = k.value(name, span, ValueDef::Let);
            body.push(k.stmt(StmtData::Let { value, init }, span));
            value
        };
        let mut rest = match self.both_ends {
            true => {
                let number = self.number(k, tile);
                name(k, &mut body, "number", number)
            }
            false => tile,
        };
        // The last axis is outermost; the first two are handled below.
        let mut found: Vec<(usize, Value)> = Vec::new();
        for axis in (2..self.axes.len()).rev() {
            let mut inner = self.product(k, axis);
            // Bounded because of the precondition; 64-bit division is slow.
            let most = k.int(MOST - self.reach, span);
            inner = k.binary(Op::Min, inner, most, span);
            inner = divisor(k, inner);
            let (at, by) = (k.value_ref(rest, span), k.copy_expr(inner));
            let quotient = k.binary(Op::Div, at, by, span);
            let index = self.bounded(k, quotient, axis);
            let title = k.values[self.axes[axis].index].name.clone();
            let index = name(k, &mut body, &title, index);
            found.push((axis, index));
            let at = k.value_ref(rest, span);
            let left = k.binary(Op::Rem, at, inner, span);
            rest = name(k, &mut body, "rest", left);
        }
        if self.axes.len() >= 2 {
            let span = self.strips;
            let g = k.int(self.columns, span);
            let rows = self.extent(k, 0);
            let few = divided(k, rows, self.columns);
            let mut strip_tiles = k.binary(Op::Mul, rows, g, span);
            if !few {
                // A strip with more tiles than there are has all tiles. Bounded, because 64-bit division is slow.
                let most = k.int(MOST - self.reach, span);
                strip_tiles = k.binary(Op::Min, strip_tiles, most, span);
            }
            let strip_tiles = divisor(k, strip_tiles);
            let (at, by) = (k.value_ref(rest, span), k.copy_expr(strip_tiles));
            let strip = k.binary(Op::Div, at, by, span);
            let strip = name(k, &mut body, "strip", strip);
            let at = k.value_ref(rest, span);
            let place = k.binary(Op::Rem, at, strip_tiles, span);
            let place = name(k, &mut body, "place", place);
            let first = |k: &mut Kernel| {
                let (s, g) = (k.value_ref(strip, span), k.int(self.columns, span));
                k.binary(Op::Mul, s, g, span)
            };
            let (all, start) = (self.extent(k, 1), first(k));
            let left = k.binary(Op::Sub, all, start, span);
            let g = k.int(self.columns, span);
            let fewer = k.binary(Op::Min, g, left, span);
            let one = k.int(1, span);
            let columns = k.binary(Op::Max, one, fewer, span);
            let columns = name(k, &mut body, "columns", columns);
            let span = self.at;
            let (at, by) = (k.value_ref(place, span), k.value_ref(columns, span));
            let row = k.binary(Op::Div, at, by, span);
            let row = self.bounded(k, row, 0);
            let row = self.member(k, row, 0);
            let title = k.values[self.axes[0].index].name.clone();
            found.push((0, name(k, &mut body, &title, row)));
            let (at, by) = (k.value_ref(place, span), k.value_ref(columns, span));
            let within = k.binary(Op::Rem, at, by, span);
            let start = first(k);
            let col = k.binary(Op::Add, start, within, span);
            let col = self.bounded(k, col, 1);
            let col = self.member(k, col, 1);
            let title = k.values[self.axes[1].index].name.clone();
            found.push((1, name(k, &mut body, &title, col)));
        } else {
            found.push((0, rest));
        }
        for (axis, value) in found {
            map.0.push((self.axes[axis].index, Subst::Value(value)));
        }
        body.extend(stmts.iter().map(|&s| clone_stmt(k, s, &mut map)).collect::<Vec<_>>());
        body
    }

    /// The tile of a block in a round, if tiles are distributed from both ends: in even rounds from the first tile on,
    /// in odd rounds from the last tile backwards.
    ///
    /// The total time of two rounds is then the same for all blocks if the time of a tile grows along an axis, as in
    /// causal attention. Tiles of one round are still neighbours, which share operands in the second-level cache.
    fn number(&self, k: &mut Kernel, tile: Value) -> Expr {
        let span = self.at;
        let at = |k: &mut Kernel, op: Op, by: i64| {
            let (tile, by) = (k.value_ref(tile, span), k.int(by, span));
            k.binary(op, tile, by, span)
        };
        let (turn, place) = (at(k, Op::Div, self.groups), at(k, Op::Rem, self.groups));
        let pair = at(k, Op::Div, 2 * self.groups);
        let blocks = k.int(self.groups, span);
        let before = k.binary(Op::Mul, pair, blocks, span);
        let front = k.binary(Op::Add, before, place, span);
        let (all, one) = (self.bounded_tiles(k), k.int(1, span));
        let last = k.binary(Op::Sub, all, one, span);
        let same = k.copy_expr(front);
        let back = k.binary(Op::Sub, last, same, span);
        let zero = k.int(0, span);
        let back = k.binary(Op::Max, zero, back, span);
        let (two, zero) = (k.int(2, span), k.int(0, span));
        let odd = k.binary(Op::Rem, turn, two, span);
        let even = k.binary(Op::Eq, odd, zero, span);
        k.expr(ExprData::Op { op: Op::Select, args: vec![even, front, back] }, span)
    }

    /// An index, clamped to its axis. An axis that may be empty has one index here: the range of the index is then as it was.
    fn bounded(&self, k: &mut Kernel, index: Expr, axis: usize) -> Expr {
        let mut extent = self.extent(k, axis);
        if Ranges::new(k).of(extent).is_none_or(|range| range.lo < 1) {
            extent = divisor(k, extent);
        }
        let one = k.int(1, self.at);
        let last = k.binary(Op::Sub, extent, one, self.at);
        let index = k.binary(Op::Min, index, last, self.at);
        if axis < 2 {
            return index;
        }
        let most = k.int(LAYERS - 1, self.at);
        k.binary(Op::Min, index, most, self.at)
    }

    /// The number of blocks if each tile has one block: one for each group of tiles, up to the limit.
    pub(super) fn workers(&self, k: &mut Kernel) -> Expr {
        // With a counter, the number of tiles in front of the loop's end.
        let all = if self.next.is_some() { self.bounded_tiles(k) } else { self.tiles(k) };
        let groups = k.int(self.groups, self.at);
        k.binary(Op::Min, all, groups, self.at)
    }

    /// The grid with this number of groups of blocks.
    pub(super) fn launch(&self, k: &mut Kernel, cx: &mut Cx<'_>, workers: Expr) {
        let mut extent = workers;
        let each = self.cluster.blocks();
        if each > 1 {
            let by = k.int(each, self.at);
            extent = k.binary(Op::Mul, extent, by, self.at);
            k.schedule.cluster = vec![k.int(each, self.at)];
        } else {
            k.schedule.cluster.clear();
        }
        self.limits(k);
        k.grid = vec![GridAxis { index: self.block, extent }];
        k.schedule.raster = None;
        let how = if self.next.is_some() { " that draw tiles from a queue" } else { "" };
        let message = format!(
            "persistent grid: at most {} blocks{how}, rasterised in strips of {} tile column(s)",
            self.groups * each,
            self.columns
        );
        cx.remark(self.span, message);
    }
}

/// A divisor or an extent that is at least 1: if it would be zero, there are no tiles and no divisions.
fn divisor(k: &mut Kernel, e: Expr) -> Expr {
    if positive(k, e) {
        return e;
    }
    let span = k.expr_spans[e];
    let one = k.int(1, span);
    k.binary(Op::Max, one, e, span)
}

/// Whether `times` times an index fits 31 bits, because the index counts tiles of at least `times` elements of a size.
fn divided(k: &Kernel, e: Expr, times: i64) -> bool {
    match &k.exprs[e] {
        ExprData::Op { op: Op::CeilDiv | Op::Div, args } => {
            matches!(k.exprs[args[0]], ExprData::Ref(v) if matches!(k.values[v].def, ValueDef::Size))
                && k.as_int(args[1]).is_some_and(|n| n >= times)
        }
        ExprData::Ref(v) => times == 1 && matches!(k.values[*v].def, ValueDef::Size),
        ExprData::Int(_) => true,
        _ => false,
    }
}

/// Whether an index is at least 1, because sizes are.
fn positive(k: &Kernel, e: Expr) -> bool {
    fn of(k: &Kernel, e: Expr, known: &BTreeMap<Value, bool>) -> bool {
        match &k.exprs[e] {
            ExprData::Int(n) => *n > 0,
            ExprData::Ref(v) => match k.values[*v].def {
                ValueDef::Size => true,
                ValueDef::Let => known.get(v).is_some_and(|&positive| positive),
                _ => false,
            },
            ExprData::Op { op: Op::Mul | Op::Min, args } => args.iter().all(|&a| of(k, a, known)),
            ExprData::Op { op: Op::Max, args } => args.iter().any(|&a| of(k, a, known)),
            ExprData::Op { op: Op::CeilDiv, args } => of(k, args[0], known),
            _ => false,
        }
    }
    k.by_names(e, |e, known| of(k, e, known))
}
