//! Clusters: blocks of adjacent tiles load a shared operand once, by multicast.
//!
//! Adjacent tiles along the rows of the output use the same columns of B; adjacent tiles along its columns use the same
//! rows of A. Each of two such blocks in a cluster requests half of the shared operand, and the hardware delivers both
//! halves to both blocks. So there is less traffic from the second-level cache, and fewer rows are requested.

use crate::analysis::access_width::{elem_of, tile_shape};
use crate::analysis::facts::contiguous_dim;
use crate::analysis::reduction;
use crate::analysis::uses::{all_stmts, depends, stmt_exprs};
use crate::analysis::views::memory_views;
use crate::choose::Card;
use crate::{Cx, thread_fills};
use tilec_ir::cluster::{self, Uniform};
use tilec_ir::diag::Span;
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::index::{self, OfKernel};
use tilec_ir::kernel::{ExprData, Kernel, Mechanism, StmtData, ValueDef};
use tilec_ir::layout::hardware::{Exchange, PERIOD, boxes};
use tilec_ir::ops::Op;
use tilec_ir::typing::{ResolvedView, ViewDim, resolve_view, same_product};

/// Elements of a tile from which on clusters gain.
const LARGE: u64 = 128 * 256;
/// The same limit if partial sums have factors, which are loaded through slots, too (e4m3 with scales on an H100:
/// 4096x4096x4096 117.5 us without clusters, 111.7 us with pairs; 4096x7168x16384 1003 and 841 us; 8192x8192x8192 in
/// tiles of 192x128 915 and 859 us). Plain sums of 8-bit products in such tiles were not measured.
const LARGE_SCALED: u64 = 128 * 128;
/// The same limit if tiles are so few that several blocks share each (512x1280x8192 of bf16 on an H200: 24.3 us without
/// clusters, 22.3 us with pairs).
const IN_PARTS: u64 = 128 * 64;
/// The same limit if rows cross cache lines, which are then requested twice.
const ACROSS_LINES: u64 = 64 * 128;
/// Bytes of a line of the second-level cache.
pub(crate) const LINE: u64 = 128;
/// Most blocks that load one operand for pairs to gain if all tiles are computed at once (319 kernels of bf16 on an
/// H200: 2 to 5 % for those with up to 8 blocks, 24 % at most; none of those with more blocks gains).
const READERS: i64 = 8;
/// Tiles along an axis from which on a surplus tile does not matter.
const FEW: i64 = 8;
/// Clocks for loading a row of a panel that crosses two lines (1000x1000x1000 on an H200).
const CROSSING: f64 = 4.5;
/// The relative gain that a larger cluster must have.
const GAIN: f64 = 0.05;

/// How the sums of a reduction tile are accumulated.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Sums {
    /// The instruction accumulates them, or they are added unchanged.
    Plain,
    /// They are multiplied by factors that are loaded with the tile, and then added.
    Scaled,
}

/// The properties of a loop by which clusters are chosen.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Sharing {
    pub(crate) sums: Sums,
    /// Rows of operands cross lines.
    pub(crate) across: bool,
    /// Whether blocks of a cluster may be neighbours along rows, and along columns ([`open_axes`]).
    pub(crate) open: [bool; 2],
}

/// Blocks of a cluster along rows and columns for tiles of `rows` x `cols`, without a schedule. `counts`: numbers of
/// tiles along both, if sizes are given.
pub(crate) fn choose((rows, cols): (u64, u64), of: Sharing, counts: [Option<i64>; 2], card: &Card) -> [i64; 2] {
    let along = best_cluster((rows, cols), of, counts, card);
    if along.iter().zip(of.open).any(|(&blocks, open)| blocks > 1 && !open) {
        return [1, 1];
    }
    // Blocks along the rows share the columns' operand, and vice versa: each loads whole swizzle periods of its rows
    // for both.
    let parts = |blocks: i64, shared: u64| shared.is_multiple_of(PERIOD * blocks.unsigned_abs());
    let whole = (along[0] == 1 || parts(along[0], cols)) && (along[1] == 1 || parts(along[1], rows));
    if whole { along } else { [1, 1] }
}

/// The gaining cluster shape, without regard to the parts of operands.
fn best_cluster((rows, cols): (u64, u64), of: Sharing, counts: [Option<i64>; 2], card: &Card) -> [i64; 2] {
    let Sharing { sums, across, open } = of;
    let larger = usize::from(cols < rows);
    // Scaled sums also gain from sharing the smaller operand if it is at least half as large (e4m3 with scales on an
    // H200: 4096x4096x4096 in tiles of 192x128 114.0 us without clusters, 108.9 us with pairs).
    let close = 2 * rows.min(cols) >= rows.max(cols);
    let axis = if sums == Sums::Scaled && !open[larger] && close { 1 - larger } else { larger };
    let mut pair = [1, 1];
    pair[axis] = 2;
    let few = |n: i64| n % 2 != 0 && n < FEW;
    // Tiles that several blocks share along the reduction come in whole clusters, and loading them takes longer than
    // their products.
    let parts = matches!(counts, [Some(down), Some(right)] if down * right * 2 <= i64::from(card.sms));
    if parts && !across {
        let even = counts[axis].is_some_and(|n| n % 2 == 0);
        return if even && rows * cols >= IN_PARTS { pair } else { [1, 1] };
    }
    if let (false, [Some(down), Some(right)]) = (across, counts)
        && let Some(found) = at_once((rows, cols), (down, right), card)
    {
        return found;
    }
    let least = match sums {
        _ if across => ACROSS_LINES,
        Sums::Scaled => LARGE_SCALED,
        Sums::Plain => LARGE,
    };
    if rows * cols < least {
        return [1, 1];
    }
    let (true, [Some(down), Some(right)]) = (across, counts) else {
        return if counts[axis].is_some_and(few) { [1, 1] } else { pair };
    };
    // Rounds of the persistent grid, each as long as the longest of the parallel activities while a row of a panel is
    // multiplied: 16-bit elements, or twice as many bytes at twice the rate.
    let depth = Exchange::Bytes128.row_bytes() as f64 / 2.0;
    let products = (rows * cols) as f64 * depth / card.warpgroups.max(1.0);
    let time = |[c0, c1]: [i64; 2]| {
        let clusters = (down + c0 - 1) / c0 * ((right + c1 - 1) / c1);
        let rounds = clusters as f64 / card.clusters(c0 * c1).max(1) as f64;
        let asked = rows as f64 / c1 as f64 + cols as f64 / c0 as f64;
        rounds.ceil() * (asked * CROSSING).max(products)
    };
    let mut best = ([1, 1], time([1, 1]));
    for along in [pair, [pair[1], pair[0]]] {
        if along.iter().zip(open).any(|(&blocks, open)| blocks > 1 && !open) {
            continue;
        }
        let takes = time(along);
        if takes < best.1 * (1.0 - GAIN) {
            best = (along, takes);
        }
    }
    best.0
}

/// Pairs that share the larger operand, if all tiles are computed at once and few blocks load each of its parts: these
/// request it at the same time, and the second-level cache combines the requests.
fn at_once((rows, cols): (u64, u64), (down, right): (i64, i64), card: &Card) -> Option<[i64; 2]> {
    let of_rows = rows as i64 * down > cols as i64 * right;
    let (readers, pair) = if of_rows { (right, [1, 2]) } else { (down, [2, 1]) };
    (down * right <= i64::from(card.sms) && readers % 2 == 0 && readers <= READERS).then_some(pair)
}

/// Blocks of a cluster along the rows and the columns of tiles.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Cluster {
    pub(super) along: [i64; 2],
}

impl Cluster {
    /// The scheduled cluster. By default: two blocks that share the larger operand if their tiles are large; if given
    /// rows cross lines, two blocks that share the operand with which fewer rounds, or less load time, result.
    ///
    /// A cluster wastes blocks if the number of tiles is odd, and some time at its start and end. On an H200 it gains a
    /// fifth if rows do not begin at multiples of 128 bytes, and otherwise at most from tiles of 128x256 on
    /// (docs/performance.md).
    pub(super) fn of(k: &Kernel, cx: &mut Cx<'_>, span: Span) -> Cluster {
        let scheduled = !k.schedule.cluster.is_empty();
        if scheduled && thread_fills::any(k, cx.options) {
            let message = "no clusters: threads of the producer fill slots, those of their own block";
            cx.remark_note(span, message, "write `cluster (1, 1)` in the schedule, or leave it out");
        }
        let along = within(k, cx, cluster_shape(k, cx), span);
        if scheduled {
            return Cluster { along };
        }
        let message = match along {
            [1, 1] => return Cluster { along },
            [down, right] => format!("clusters of {down} x {right} tiles, whose blocks share an operand"),
        };
        cx.remark_note(span, message, "`cluster (1, 1)` in the schedule leaves them out");
        Cluster { along }
    }

    pub(super) fn blocks(self) -> i64 {
        self.along[0] * self.along[1]
    }
}

/// Blocks of a cluster along rows and columns: as scheduled, or the default. `within` may reduce them.
pub(super) fn cluster_shape(k: &Kernel, cx: &Cx<'_>) -> [i64; 2] {
    if k.grid.len() < 2 {
        return [1, 1];
    }
    // Threads fill only slots of their own block.
    if thread_fills::any(k, cx.options) {
        return [1, 1];
    }
    if !k.schedule.cluster.is_empty() {
        return [cluster::along(k, 0), cluster::along(k, 1)];
    }
    // With `split_k`, the blocks of a cluster share one tile.
    if cluster::split(k).is_some_and(|n| n > 1) {
        return [1, 1];
    }
    // Blocks that share slots must fill and empty them equally often.
    let placed = |e: Expr| k.grid.iter().any(|axis| depends(k, e, axis.index));
    let unequal = |s: Stmt| match k.stmts[s] {
        StmtData::For { start, end, .. } => placed(start) || placed(end),
        StmtData::If { cond, .. } => {
            placed(cond)
                && k.sub_blocks(s).into_iter().any(|b| all_stmts(k, b).into_iter().any(|s| k.plans[s].producer))
        }
        _ => false,
    };
    if all_stmts(k, k.body).into_iter().any(unequal) {
        return [1, 1];
    }
    let Some((rows, cols)) = tile(k) else { return [1, 1] };
    let counts = [0, 1].map(|axis| tiles(k, cx, k.grid[axis].extent));
    let scaled = reduction::of_kernel(k).ok().and_then(|(_, reduction)| reduction.part);
    let sums = if scaled.is_some_and(|part| !part.factors.is_empty()) { Sums::Scaled } else { Sums::Plain };
    let of = Sharing { sums, across: across_lines(k, cx), open: open_axes(k) };
    choose((rows, cols), of, counts, cx.options.usual_card())
}

/// The axes of the grid along which a cluster may have a surplus tile: that tile reads no single element outside of a
/// tensor.
pub(crate) fn open_axes(k: &Kernel) -> [bool; 2] {
    [0, 1].map(|axis| axis < k.grid.len() && read_beyond(k, axis, 2).is_none())
}

/// `along`, with one block along axes where surplus tiles of the last cluster would have side effects.
fn within(k: &Kernel, cx: &mut Cx<'_>, mut along: [i64; 2], span: Span) -> [i64; 2] {
    for (axis, blocks) in along.iter_mut().enumerate().filter(|(_, blocks)| **blocks > 1) {
        if let Some(tensor) = stored_beyond(k, axis, *blocks) {
            let (name, index) = (&k.values[tensor].name, &k.values[k.grid[axis].index].name);
            let message = format!(
                "no clusters along `{index}`: the last one may have tiles beyond the grid, and nothing says that their stores to `{name}` are outside"
            );
            cx.remark_note(
                span,
                message,
                format!("store to a window that begins at `{index}` times the extent of the tile"),
            );
            *blocks = 1;
        } else if let Some(tensor) = read_beyond(k, axis, *blocks) {
            let (name, index) = (&k.values[tensor].name, &k.values[k.grid[axis].index].name);
            let message = format!(
                "no clusters along `{index}`: the last one may have tiles beyond the grid, which would read `{name}` at a single index outside"
            );
            cx.remark_note(
                span,
                message,
                format!("a window of a range that begins at `{index}` times the extent of the tile reads zeros there"),
            );
            *blocks = 1;
        }
    }
    along
}

/// A tensor that a tile beyond the grid along `axis` would read at a single, possibly invalid index, with `blocks`
/// blocks of a cluster along it.
fn read_beyond(k: &Kernel, axis: usize, blocks: i64) -> Option<Value> {
    let (index, extent) = (k.grid[axis].index, k.grid[axis].extent);
    if k.as_int(extent).is_some_and(|n| n % blocks == 0) {
        return None;
    }
    let placed = |view: &ResolvedView| {
        k.tensor_ty(view.base).is_some()
            && view.dims.iter().any(|dim| matches!(dim, ViewDim::Fixed(e) if depends(k, *e, index)))
    };
    // Stores are checked in `stored_beyond`.
    let read = |s: Stmt| match k.stmts[s] {
        StmtData::Copy { src, .. } => vec![src],
        _ => stmt_exprs(k, s).to_vec(),
    };
    let exprs = all_stmts(k, k.body).into_iter().flat_map(read);
    exprs.flat_map(|e| memory_views(k, e)).find(placed).map(|view| view.base)
}

/// A tensor to which a tile beyond the grid along `axis` might store, with `blocks` blocks of a cluster along it. A
/// tile stores nothing there if its window begins at the tile index times the tile extent by which the grid divides the
/// dimension.
fn stored_beyond(k: &Kernel, axis: usize, blocks: i64) -> Option<Value> {
    let (index, extent) = (k.grid[axis].index, k.grid[axis].extent);
    if k.as_int(extent).is_some_and(|n| n % blocks == 0) {
        return None;
    }
    let binary = |e: Expr, wanted: Op| match &k.exprs[e] {
        ExprData::Op { op, args } if *op == wanted => <[Expr; 2]>::try_from(&args[..]).ok(),
        _ => None,
    };
    let is_index = |e: Expr| matches!(k.exprs[e], ExprData::Ref(v) if v == index);
    let (whole, unit) = match binary(extent, Op::CeilDiv) {
        Some([whole, unit]) => (whole, k.as_int(unit)),
        None => (extent, Some(1)),
    };
    let factor = |e: Expr| match binary(e, Op::Mul) {
        Some([a, b]) if is_index(a) => k.as_int(b),
        Some([a, b]) if is_index(b) => k.as_int(a),
        _ => is_index(e).then_some(1),
    };
    all_stmts(k, k.body).into_iter().find_map(|s| match k.stmts[s] {
        StmtData::Copy { dst, .. } => {
            let to = resolve_view(k, dst)?;
            let tensor = k.tensor_ty(to.base)?;
            let outside = to.dims.iter().zip(&tensor.shape).any(|(dim, &n)| match dim {
                ViewDim::From { starts, .. } => {
                    let mut all = Vec::new();
                    starts.iter().for_each(|&e| terms(k, e, &mut all));
                    let far = all.iter().any(|&e| factor(e) >= unit && unit.is_some());
                    far && all.iter().all(|&e| factor(e).is_some_and(|f| f >= 0) || counts_up(k, e))
                        && same_product(k, n, whole)
                }
                ViewDim::Fixed(_) | ViewDim::Gather(_) => false,
            });
            (!outside).then_some(to.base)
        }
        StmtData::Signal { signals, .. } => Some(signals),
        _ => None,
    })
}

/// The terms of a sum.
fn terms(k: &Kernel, e: Expr, out: &mut Vec<Expr>) {
    match &k.exprs[e] {
        ExprData::Op { op: Op::Add, args } => args.iter().for_each(|&a| terms(k, a, out)),
        _ => out.push(e),
    }
}

/// Whether an index is certainly not negative: a number, or a loop variable or grid index from such a number.
fn counts_up(k: &Kernel, e: Expr) -> bool {
    match k.exprs[e] {
        ExprData::Int(x) => x >= 0,
        ExprData::Ref(v) => match k.values[v].def {
            ValueDef::Grid | ValueDef::Size => true,
            ValueDef::Loop => k.statement_data().any(|s| match *s {
                StmtData::For { var, start, .. } => var == v && k.as_int(start).is_some_and(|x| x >= 0),
                _ => false,
            }),
            _ => false,
        },
        _ => false,
    }
}

/// Rows and columns of the tile of a wgmma product.
fn tile(k: &Kernel) -> Option<(u64, u64)> {
    all_stmts(k, k.body).into_iter().find_map(|s| {
        let StmtData::Assign { dst, src } = k.stmts[s] else { return None };
        let ExprData::Mma(_) = k.exprs[src] else { return None };
        match k.const_shape(&k.tile_ty(dst)?.shape)?[..] {
            [rows, cols] => Some((rows, cols)),
            _ => None,
        }
    })
}

/// Whether rows of an operand, without padding, start at other addresses than multiples of a line, if their length is
/// known. A tile of one row (a vector of scales) requests at most one line more.
fn across_lines(k: &Kernel, cx: &Cx<'_>) -> bool {
    k.statement_data().any(|s| {
        let StmtData::Copy { src, dst, attrs } = s else { return false };
        let Some(from) = resolve_view(k, *src).filter(|_| attrs.is_tensor()) else { return false };
        let Some(along) = contiguous_dim(k, from.base) else { return false };
        let to = resolve_view(k, *dst).and_then(|to| k.const_shape(&k.tile_ty(to.base)?.shape));
        if to.is_some_and(|shape| shape.iter().product::<u64>() == shape.get(along).copied().unwrap_or(1)) {
            return false;
        }
        let length = || tiles(k, cx, *k.tensor_ty(from.base)?.shape.get(along)?);
        let elem = elem_of(k, from.base);
        length().zip(elem).is_some_and(|(n, elem)| !elem.size().makes_up(n.unsigned_abs(), LINE))
    })
}

/// The number of tiles along an axis, if the sizes are given.
pub(super) fn tiles(k: &Kernel, cx: &Cx<'_>, e: Expr) -> Option<i64> {
    let size = |e: Expr| match &k.exprs[e] {
        ExprData::Ref(v) => {
            let name = &k.values[*v].name;
            cx.options.sizes.iter().rev().find(|(n, _)| n == name).map(|&(_, x)| x)
        }
        _ => None,
    };
    index::int(&OfKernel::new(k, size), e)
}

/// Whether the tile of a TMA load divides into equal parts for `blocks` blocks: each requests a part of the rows of its
/// boxes.
fn has_parts(k: &Kernel, s: Stmt, blocks: u64) -> bool {
    let StmtData::Copy { dst, .. } = k.stmts[s] else { unreachable!("a TMA copy") };
    let to = resolve_view(k, dst).expect("a TMA copy fills a slot").base;
    let layout = k.tile_ty(to).and_then(|tile| tile.smem_layout.clone());
    let boxes = layout.zip(elem_of(k, to)).and_then(|(layout, elem)| boxes(&layout, &tile_shape(k, to), elem.size()));
    boxes.is_some_and(|boxes| boxes.shared_rows(blocks).is_some())
}

/// Makes the blocks of a cluster share the copies under `block` whose windows are equal in all of them.
pub(crate) fn multicast(k: &mut Kernel, cx: &mut Cx<'_>, block: Block) {
    if cluster::blocks(k) == 1 {
        return;
    }
    let mut same = Uniform::new(k);
    let mut shared: Vec<Stmt> = Vec::new();
    for s in all_stmts(k, block) {
        let StmtData::Copy { src, ref attrs, .. } = k.stmts[s] else { continue };
        let Some(from) = resolve_view(k, src).filter(|_| attrs.is_tensor()) else { continue };
        let apart = same.window(&from);
        if apart != same.all() {
            if !has_parts(k, s, cluster::blocks(k).unsigned_abs() >> apart.count_ones()) {
                let name = &k.values[from.base].name;
                let message = format!(
                    "each block of a cluster loads `{name}` for itself: a share of the tile would have fewer than {PERIOD} rows"
                );
                cx.remark(k.stmt_spans[s], message);
                continue;
            }
            shared.push(s);
            let (all, name) = (cluster::blocks(k), &k.values[from.base].name);
            let message = match all >> apart.count_ones() {
                blocks if blocks == all => format!(
                    "TMA multicast: each of the {blocks} blocks of a cluster loads 1/{blocks} of the window of `{name}` for all of them"
                ),
                blocks => format!(
                    "TMA multicast: {blocks} blocks of a cluster of {all} share a window of `{name}`; each loads 1/{blocks} of it for all of them"
                ),
            };
            cx.remark(k.stmt_spans[s], message);
        }
    }
    for s in shared {
        if let StmtData::Copy { attrs, .. } = &mut k.stmts[s] {
            attrs.mechanism = Mechanism::Tensor { multicast: true };
        }
    }
}
