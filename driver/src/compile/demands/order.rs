//! Which dimension of a tensor is innermost, and which one suits a window: for accesses that use a part of their sectors.

use super::way_out::{By, WayOut};
use tilec_ir::diag::counted;
use tilec_ir::entities::Value;
use tilec_ir::facts::contiguous_dim;
use tilec_ir::kernel::{Kernel, StmtData};
use tilec_ir::target::SECTOR_BYTES;
use tilec_ir::types::{ElemRef, Order};
use tilec_ir::typing::{ResolvedView, ViewDim, copy_shape, resolve_view};
use tilec_ptx::report::CopyReport;

/// Why accesses use a part of their sectors, and what would use more.
pub(super) fn of_sectors<'c>(k: &Kernel, copies: impl Iterator<Item = &'c CopyReport>) -> (Vec<String>, Vec<WayOut>) {
    let (mut notes, mut change): (Vec<String>, Vec<WayOut>) = (Vec::new(), Vec::new());
    let mut lanes = false;
    for c in copies {
        let inside = begins_inside(c);
        // Of what is gathered, and of whole rows, no order of the lanes uses more.
        lanes |= !c.gathered && inside.is_none();
        let (reason, way) = innermost(k, c).map_or((None, None), |(reason, way)| (Some(reason), way));
        // The other order is in front: it takes no change of the program.
        let ways = way.into_iter().chain(wider(k, c));
        for note in [reason, inside].into_iter().flatten() {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        for way in ways {
            change.extend((!change.contains(&way)).then_some(way));
        }
    }
    let lanes = lanes && change.is_empty();
    change.extend(lanes.then(|| {
        WayOut::by_hand("neighbouring lanes of a warp should have neighbours along the contiguous dimension: where another access of the statement has \
         another order, go through shared memory (`let s = smem ..`, `copy X[..] -> s`); windows of one column have no such neighbours, and windows \
         that end inside of a sector of 32 bytes use a part of it")
    }));
    (notes, change)
}

/// Why an access uses a part of its sectors, by the order of the tensor, and what would use more; `None`: the order is not the reason.
fn innermost(k: &Kernel, c: &CopyReport) -> Option<(String, Option<WayOut>)> {
    let (view, shape) = window(k, c)?;
    let v = view.base;
    if c.gathered {
        let way = "indices along another dimension gather whole rows; or load whole rows into shared memory, and gather there";
        return Some((
            format!(
                "elements of `{}` are gathered along its innermost dimension, so each takes a sector of its own",
                c.tensor
            ),
            Some(WayOut::by_hand(way)),
        ));
    }
    let tensor = k.tensor_ty(v)?;
    let ElemRef::Known(elem) = tensor.elem else { return None };
    let rank = tensor.shape.len();
    let kept = view.base_dims();
    let extent = |d: usize| kept.iter().position(|&kept| kept == d).map_or(1, |i| shape[i]);
    // Along a dimension with indices from memory, neighbours in the window are none in memory.
    let gathered = |d: &usize| matches!(view.dims[*d], ViewDim::Gather(_));
    let others = || (0..rank).filter(|d| !tensor.repeats.contains(d) && !gathered(d));
    let widest = others().max_by_key(|&d| extent(d))?;
    let name = &c.tensor;
    let Some(own) = contiguous_dim(k, v) else {
        let way = format!(
            "with dimension {widest} of `{name}` innermost, of which the window has {}, neighbouring lanes share sectors",
            counted(extent(widest) as usize, "element")
        );
        return Some((format!("no dimension of `{name}` is innermost (has stride 1)"), Some(WayOut::by_hand(way))));
    };
    if tensor.modes(own).is_some() {
        let way = "a known divisor of the last mode's extent (`where C % 16 == 0`, or a parameter for it) makes longer runs sure";
        return Some((
            format!("dimension {own} of `{name}` has several modes, and each access is sure of its own elements only"),
            Some(WayOut::by_hand(way)),
        ));
    }
    let is = format!("`{name}` is `{}`, so dimension {own} is innermost", order(own, rank));
    let other = |d: usize| match order(d, rank) {
        "strides" => format!("with dimension {d} innermost (`strides`)"),
        word => format!("as `{word}`, with dimension {d} innermost"),
    };
    let by = |d: usize| match order(d, rank) {
        "row" => By::Order(name.clone(), Order::Row),
        "col" => By::Order(name.clone(), Order::Col),
        _ => By::Hand,
    };
    let few = elem.bytes_of(extent(own)) < u64::from(SECTOR_BYTES);
    if few && widest != own {
        let (few, many) = (counted(extent(own) as usize, "element"), extent(widest));
        let way = format!(
            "`{name}` declared {}, of which the window has {many}: neighbouring lanes share sectors",
            other(widest)
        );
        return Some((format!("{is}, and the window has {few} along it"), Some(WayOut::new(way, by(widest)))));
    }
    // Lanes side by side that are in different rows have their neighbours along another dimension.
    let apart = c.lanes.windows(2).filter(|pair| pair[0].0 != pair[1].0).count();
    if few || 2 * apart < c.lanes.len() {
        return None;
    }
    let along = others().filter(|&d| d != own && extent(d) > 1).max_by_key(|&d| extent(d))?;
    let way = format!("`{name}` declared {}, in the order of the other access", other(along));
    Some((
        format!(
            "{is}, and neighbouring lanes have elements along dimension {along}, as another access of the statement wants; a copy through shared memory (`let s = smem ..`) keeps both orders"
        ),
        Some(WayOut::new(way, by(along))),
    ))
}

/// Of a window with less than a sector along the contiguous dimension: the one that has a sector there.
pub(super) fn wider(k: &Kernel, c: &CopyReport) -> Option<WayOut> {
    let (view, shape) = window(k, c)?;
    let own = contiguous_dim(k, view.base).filter(|_| !c.gathered)?;
    let tensor = k.tensor_ty(view.base).filter(|t| t.modes(own).is_none())?;
    let ElemRef::Known(elem) = tensor.elem else { return None };
    let at = view.base_dims().iter().position(|&kept| kept == own);
    let extent = at.map_or(1, |i| shape[i]);
    let whole = u64::from(elem.per(SECTOR_BYTES));
    (extent < whole).then(|| {
        WayOut::by_hand(format!(
            "windows of `{}` with {whole} elements or more along dimension {own}, not {extent}: they use whole sectors of {SECTOR_BYTES} bytes",
            c.tensor
        ))
    })
}

/// That rows of a window begin inside of a sector, if adjacent lanes have adjacent elements. Then nothing else wastes bytes of sectors.
fn begins_inside(c: &CopyReport) -> Option<String> {
    let (sector, own) = (u64::from(SECTOR_BYTES), u64::from(c.global_bytes));
    let beside = |pair: &[(u64, u64)]| pair[0].0 != pair[1].0 || pair[0].1 + own == pair[1].1;
    let mut lanes = c.lanes.clone();
    lanes.sort_unstable();
    lanes.dedup();
    if c.gathered || !lanes.windows(2).all(beside) {
        return None;
    }
    // Rows that have a sector or more each.
    let rows = lanes.chunk_by(|a, b| a.0 == b.0);
    let short = rows.clone().any(|row| row.len() as u64 * own < sector);
    let at = rows.map(|row| row[0].1 % sector).find(|&at| at > 0).filter(|_| !short)?;
    Some(format!(
        "rows of the window of `{}` begin inside of a sector, at byte {at} of {SECTOR_BYTES}: each row touches a sector more, and uses a part of the first and of the last",
        c.tensor
    ))
}

/// The window of a tensor that a copy accesses, and its extents.
fn window(k: &Kernel, c: &CopyReport) -> Option<(ResolvedView, Vec<u64>)> {
    let mut found = None;
    k.walk(k.body, &mut |k, _, s| {
        let StmtData::Copy { src, dst, .. } = k.stmts[s] else { return };
        if found.is_some() || k.stmt_spans[s] != c.span {
            return;
        }
        let named = |view: &ResolvedView| {
            let is_it = |v: Value| k.tensor_ty(v).is_some() && k.values[v].name == c.tensor;
            is_it(view.base)
        };
        let view = [src, dst].into_iter().filter_map(|e| resolve_view(k, e)).find(named);
        found = view.zip(copy_shape(k, src, dst));
    });
    found
}

/// The word for the order in which a dimension is innermost.
fn order(d: usize, rank: usize) -> &'static str {
    match rank.checked_sub(d) {
        Some(1) => "row",
        Some(2) => "col",
        _ => "strides",
    }
}
