//! Sharing of tiles along the reduction: by stream-K through scratch memory ([`super::stream_k`]), or among the blocks of
//! a cluster ([`super::split_k`]).

use super::cluster::{cluster_shape, tiles as count};
use super::persistent::{Tiles, clusters};
use super::split_k::Split;
use super::split_product::{SplitProduct, least_steps, operand_size};
use super::stream_k::Stream;
use crate::Cx;
use crate::analysis::access_width::{elem_of, tile_shape};
use crate::analysis::index_operands::{can_be_spelled_out, of_extents, spelled_out};
use crate::analysis::uses::{all_stmts, depends};
use crate::analysis::views::reads_tensor;
use crate::analysis::{distinct, reduction, wgmma};
use crate::choose::stream_k::{HANDING, MOST, MOST_OF_WARPS, PAIR_BLOCKS, Work, in_pairs, of_warps, shared};
use crate::roles;
use tilec_ir::cluster;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported};
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::{Kernel, StmtData};
use tilec_ir::placement::{slots, tile_bytes};
use tilec_ir::types::ElemRef;
use tilec_ir::typing::resolve_view;

/// How blocks share tiles along the reduction.
pub(super) enum Sharing {
    /// A persistent grid, through scratch memory.
    Stream(Stream),
    /// The blocks of a cluster, through distributed shared memory.
    Split(Split),
}

/// The scheduled or gaining way to share tiles.
#[derive(Copy, Clone)]
struct Cut {
    gains: bool,
    /// Most blocks that share a tile.
    most: i64,
    /// The number of blocks of a cluster that share each tile, if they do.
    split: Option<i64>,
}

impl Sharing {
    /// `None`: each block computes whole tiles.
    pub(super) fn new(
        k: &mut Kernel,
        cx: &mut Cx<'_>,
        tiles: &Tiles,
        at: Result<Stmt, String>,
        loads_what_it_stores: bool,
    ) -> Result<Option<Sharing>, Reported> {
        let (streamed, split) = (k.schedule.stream_k, scheduled_blocks(k));
        let asked = split.map(|(e, _)| e).or(streamed);
        if split.is_none() && streamed.and_then(|e| k.as_int(e)) == Some(0) {
            return Ok(None);
        }
        if roles::ping_pong(k).is_some() {
            return match asked {
                Some(e) => Err(refused(k, cx, e, "warpgroups run ping-pong on whole tiles (`ping_pong`)")),
                None => Ok(None),
            };
        }
        if let Some((e, _)) = split.filter(|_| tiles.counts().1 > 1) {
            return Err(refused(k, cx, e, "the blocks of a cluster share operands (`cluster`)"));
        }
        // The proof that a role loads no tile that another one has stored assumes loops over whole tiles.
        let found = match loads_what_it_stores {
            true => {
                Err("the epilogue loads by TMA what it stores (`stage_stores 0` leaves that to threads)".to_owned())
            }
            false => at.and_then(|at| fits(k, at)).and_then(|found| match can_be_spelled_out(k, found.end) {
                true => Ok(found),
                false => Err("the end of its loop is computed by too many names to be written out".to_owned()),
            }),
        };
        let mut found = match (found, asked) {
            (Ok(found), _) => found,
            (Err(why), Some(e)) => return Err(refused(k, cx, e, &why)),
            (Err(_), None) => return Ok(None),
        };
        // The end is used in front of the body that declares its names.
        found.end = spelled_out(k, found.end);
        if let Some((e, parts)) = split {
            let (sums, free) =
                (cluster::bytes([(sums_bytes(&found), parts.unsigned_abs() - 1)].into_iter()), room(k, cx));
            if sums > free {
                let why = format!("sums take {sums} bytes of shared memory, and slots leave {free}");
                return Err(refused(k, cx, e, &why));
            }
            return Ok(Some(Sharing::Split(Split::new(k, cx, found, parts))));
        }
        let cut = cut(k, cx, tiles, &found);
        let usual = if wgmma::multiplies(k) { MOST } else { MOST_OF_WARPS };
        if let Some(parts) = cut.filter(|cut| streamed.is_none() && cut.gains).and_then(|cut| cut.split) {
            return Ok(Some(Sharing::Split(Split::new(k, cx, found, parts))));
        }
        let wanted = streamed.is_some() || cut.is_some_and(|cut| cut.gains);
        Ok(wanted.then(|| Sharing::Stream(Stream::new(k, cx, tiles, found, cut.map_or(usual, |cut| cut.most)))))
    }
}

/// The scheduled number of blocks of a cluster that share each tile, if more than one.
fn scheduled_blocks(k: &Kernel) -> Option<(Expr, i64)> {
    k.schedule.split_k.zip(cluster::split(k).filter(|&n| n > 1))
}

/// Bytes of the accumulator of a tile.
fn sums_bytes(found: &SplitProduct) -> u64 {
    found.elem.bytes_of((found.shape.0 * found.shape.1).unsigned_abs())
}

/// Free bytes of shared memory next to slots and buffers; 0 if the schedule excludes distributed shared memory.
fn room(k: &Kernel, cx: &Cx<'_>) -> u64 {
    if cluster::split(k) == Some(1) {
        return 0;
    }
    let bytes = |v: Value| tile_bytes(k, v).zip(slots(k, v)).map_or(0, |(bytes, slots)| bytes * slots);
    let used: u64 = k.values.keys().map(bytes).sum();
    roles::slots_room(k, cx.options.target).saturating_sub(used)
}

/// The error that tiles cannot be shared as scheduled.
pub(crate) fn refused(k: &Kernel, cx: &mut Cx<'_>, e: Expr, why: &str) -> Reported {
    let message = format!("blocks cannot share tiles here: {why}");
    let note = "`stream_k` and `split_k` are for one product in roles (sm_90a) whose reduction begins at 0 and is as long for all tiles";
    cx.report(Diagnostic::error(codes::BAD_SCHEDULE, k.expr_spans[e], message).with_note(note))
}

/// The accumulator of a loop whose iterations blocks can share; otherwise the reason.
fn fits(k: &Kernel, at: Stmt) -> Result<SplitProduct, String> {
    let StmtData::For { start, end, step, cond, body, .. } = k.stmts[at] else { unreachable!("it is a loop") };
    if cond.is_some() {
        return Err("how often it runs is known only while it does".to_owned());
    }
    if k.as_int(start) != Some(0) || !of_extents(k, end) {
        return Err("the reduction is not the same for all tiles, from 0".to_owned());
    }
    let Some(step) = k.as_int(step).filter(|&n| n > 0) else { return Err("its step is not known".to_owned()) };
    let step_of = reduction::of(k, body)?;
    let acc = step_of.sums;
    if !reduction::begins_at_zero(k, at, acc) {
        return Err(format!("`{}` does not begin at zero, but partial sums must", k.values[acc].name));
    }
    let untyped = "the accumulator has no type";
    let tile = k.tile_ty(acc).ok_or(untyped)?;
    let ElemRef::Known(elem) = tile.elem else { return Err(untyped.to_owned()) };
    let shape = k.const_shape(&tile.shape).ok_or(untyped)?;
    let &[rows, cols] = shape.as_slice() else { return Err("warps share the reduction (`k_warps`)".to_owned()) };
    let extents = i64::try_from(rows).ok().zip(i64::try_from(cols).ok()).ok_or(untyped)?;
    let computed =
        step_of.load.filter(|load| !load.of.is_empty()).map_or(0, |load| tile_shape(k, load.tile).iter().product());
    Ok(SplitProduct { acc, elem, shape: extents, step, end, sides: sides(k, body), computed, span: k.stmt_spans[at] })
}

/// The best way for the given sizes.
fn cut(k: &mut Kernel, cx: &Cx<'_>, tiles: &Tiles, found: &SplitProduct) -> Option<Cut> {
    let all = tiles.tiles(k);
    let axes = [tiles.along(k, 0), tiles.along(k, 1)];
    sharing_gain(k, cx, found, (count(k, cx, all)?, axes), tiles.counts())
}

/// Whether blocks will share tiles of the loop `at`, as far as this is known before the decision.
pub(crate) fn expected(k: &Kernel, cx: &Cx<'_>, at: Stmt) -> bool {
    match k.schedule.stream_k.and_then(|e| k.as_int(e)) {
        _ if scheduled_blocks(k).is_some() => true,
        Some(streamed) => streamed == 1,
        None => {
            let Ok(found) = fits(k, at) else { return false };
            let [down, across] = match k.grid.as_slice() {
                [] | [_] => return false,
                [down, across, ..] => [down.extent, across.extent],
            };
            let along = cluster_shape(k, cx);
            let each: i64 = along.iter().product();
            // Clusters are complete, even if some of their blocks have no tile.
            let units = |(axis, extent): (usize, Expr)| {
                let (n, blocks) = (count(k, cx, extent)?, along.get(axis).copied().unwrap_or(1));
                Some(n.checked_add(blocks - 1)? / blocks)
            };
            let tiles =
                k.grid.iter().map(|axis| axis.extent).enumerate().try_fold(1i64, |n, axis| n.checked_mul(units(axis)?));
            let groups = clusters(k, cx, each);
            tiles
                .and_then(|n| sharing_gain(k, cx, &found, (n, [down, across]), (groups, each)))
                .is_some_and(|cut| cut.gains)
        }
    }
}

/// Whether blocks gain, and how. `counts`: groups of blocks, and blocks of one; a group has as many tiles as blocks.
fn sharing_gain(
    k: &Kernel,
    cx: &Cx<'_>,
    found: &SplitProduct,
    (all, axes): (i64, [Expr; 2]),
    (groups, each): (i64, i64),
) -> Option<Cut> {
    let [down, across] = axes.map(|e| count(k, cx, e).map(|n| n as f64));
    let (down, across, reduction) = (down?, across?, count(k, cx, found.end)? as f64);
    let (rows, cols) = (found.shape.0 as f64, found.shape.1 as f64);
    let elem = operand_size(k);
    // Each batch has its own operands.
    let layers = (all as f64 * each as f64 / (down * across)).max(1.0);
    let (step, steps) = (found.step as f64, (reduction / found.step as f64).ceil());
    let [own, other] = found.sides.unwrap_or([elem.traffic(rows * step), elem.traffic(cols * step)]);
    let work = Work {
        tiles: all as f64,
        steps,
        shape: (rows, cols),
        bytes: own + other,
        row: elem.traffic(step),
        computed: found.computed as f64,
        operands: layers * (down * own + across * other) * reduction / step,
        distinct: distinct::distinct_fraction(k, &|e| count(k, cx, e)),
        blocks: each as f64,
        readers: down.min(across),
        room: room(k, cx) as f64,
    };
    let (card, groups) = (cx.options.usual_card(), groups as f64);
    if !wgmma::multiplies(k) {
        let each = of_warps(work.steps, least_steps(k, found.step) as f64, groups / work.tiles, None);
        let split = in_pairs(card, each, work.tiles, rows * cols, work.room).then_some(PAIR_BLOCKS as i64);
        return Some(Cut { gains: each > 1.0, most: MOST_OF_WARPS, split });
    }
    let shared = shared(card, &work, groups, &HANDING);
    Some(Cut { gains: shared.gains, most: shared.most, split: shared.paired.then_some(PAIR_BLOCKS as i64) })
}

/// Bytes of each operand that an iteration of a loop loads for a tile, before conversion. `None`: a window depends on
/// both indices of the tile, or on neither.
fn sides(k: &Kernel, body: Block) -> Option<[f64; 2]> {
    let [down, across, ..] = k.grid.as_slice() else { return None };
    let mut sides = [0.0; 2];
    for s in all_stmts(k, body) {
        let StmtData::Copy { src, dst, .. } = k.stmts[s] else { continue };
        let Some(to) = resolve_view(k, dst).filter(|to| to.space(k).is_of_block()) else { continue };
        if !reads_tensor(k, src) {
            continue;
        }
        let side = match [down, across].map(|axis| depends(k, src, axis.index)) {
            [true, false] => 0,
            [false, true] => 1,
            _ => return None,
        };
        let elements: u64 = k.const_shape(&k.tile_ty(to.base)?.shape)?.iter().product();
        sides[side] += elem_of(k, to.base)?.size().traffic(elements as f64);
    }
    (sides.iter().all(|&bytes| bytes > 0.0)).then_some(sides)
}
