//! Rows of TMA boxes that take longer than their bytes: which copies load them, why, and what would have longer rows.

use super::loop_copies::depends_on;
use super::way_out::{By, WayOut};
use tilec_ir::diag::Span;
use tilec_ir::facts::contiguous_dim;
use tilec_ir::kernel::{Kernel, StmtData};
use tilec_ir::types::{ElemRef, Order};
use tilec_ir::typing::{ResolvedView, ViewDim, copy_shape, resolve_view};
use tilec_passes::choose::{BoxRows, Place, Prediction};

/// Rows that take so many times the time of their bytes count as full.
const FULL: f64 = 1.001;

/// The loads whose rows take longer, the longest in front.
fn slow(p: &Prediction) -> Vec<(&Place, BoxRows)> {
    let all = p.places.iter().filter_map(|place| Some((place, place.rows?)));
    let mut slow: Vec<_> = all.filter(|(_, rows)| rows.times() > FULL).collect();
    let beyond = |(place, rows): &(&Place, BoxRows)| place.bytes * (rows.times() - 1.0);
    slow.sort_by(|a, b| beyond(b).total_cmp(&beyond(a)));
    slow
}

/// The copies, each with its rows.
pub(crate) fn places(p: &Prediction) -> Vec<(Span, String)> {
    let text = |(place, rows): (&Place, BoxRows)| {
        let (of, line) = (&place.of, BoxRows::LINE);
        let mut why: Vec<String> = Vec::new();
        if rows.bytes < BoxRows::LEAST {
            why.push(format!(
                "rows of the TMA box of `{of}` have {} bytes; a row takes as long as one of {}",
                rows.bytes,
                BoxRows::LEAST
            ));
        } else if rows.begins_inside() {
            why.push(format!(
                "windows of `{of}` have rows of {} bytes, and boxes that begin inside of a line of {line} cross its end",
                rows.bytes
            ));
        }
        if rows.crosses {
            why.push(format!(
                "rows of `{of}` are {} bytes apart, no multiple of {line}: rows of its TMA box cross lines, and take twice the time",
                rows.pitch
            ));
        }
        (place.span, format!("{}: {:.2} times the time of its bytes", why.join("; "), rows.times()))
    };
    let mut all: Vec<(Span, String)> = Vec::new();
    for place in slow(p).into_iter().map(text) {
        if !all.contains(&place) {
            all.push(place);
        }
    }
    all
}

/// What has longer rows.
pub(crate) fn ways_out(k: &Kernel, p: &Prediction) -> Vec<WayOut> {
    let mut ways: Vec<WayOut> = Vec::new();
    for (place, rows) in slow(p) {
        if rows.bytes < BoxRows::LINE {
            ways.extend(longer(k, place, rows));
        }
        if rows.crosses {
            ways.push(WayOut::by_hand(format!(
                "rows of `{}` at multiples of {} bytes: pad them (`{0}_ld`), or copy them in front (`multiple`)",
                place.of,
                BoxRows::LINE
            )));
        }
    }
    let mut seen: Vec<WayOut> = Vec::new();
    ways.retain(|way| {
        let is_new = !seen.contains(way);
        seen.push(way.clone());
        is_new
    });
    ways
}

/// Longer rows: more elements along the contiguous dimension, or another dimension that is contiguous.
fn longer(k: &Kernel, place: &Place, rows: BoxRows) -> Vec<WayOut> {
    let Some((at, view, shape)) = window(k, place) else { return Vec::new() };
    let (Some(own), Some(tensor)) = (contiguous_dim(k, view.base), k.tensor_ty(view.base)) else { return Vec::new() };
    let ElemRef::Known(elem) = tensor.elem else { return Vec::new() };
    let (name, kept) = (&place.of, view.base_dims());
    let variable = variable(k, at, &view.dims[own]);
    let lengths = [BoxRows::LEAST, BoxRows::LINE].into_iter().filter(|&bytes| bytes > rows.bytes);
    let mut ways: Vec<WayOut> = lengths
        .map(|bytes| {
            let count = u64::from(elem.per(bytes as u32));
            match &variable {
                Some(variable) => WayOut::new(
                    format!(
                        "steps of {count} elements along `{variable}`: rows of its TMA boxes then have {bytes} bytes"
                    ),
                    By::Step(place.span, count),
                ),
                None => WayOut::new(
                    format!("windows of `{name}` with {count} elements along dimension {own}: rows of {bytes} bytes"),
                    By::Parameters,
                ),
            }
        })
        .collect();
    let extent = |d: usize| kept.iter().position(|&kept| kept == d).map_or(1, |i| shape[i]);
    let other = (0..tensor.shape.len()).filter(|&d| d != own).max_by_key(|&d| extent(d));
    if let Some(other) = other.filter(|&d| elem.bytes_of(extent(d)) > rows.bytes && tensor.shape.len() == 2) {
        let order = if other == 1 { Order::Row } else { Order::Col };
        ways.push(WayOut::new(
            format!(
                "`{name}` in the order `{}`: the box has {} elements along dimension {other}",
                order.name(),
                extent(other)
            ),
            By::Order(name.clone(), order),
        ));
    }
    ways
}

/// The variable of the loop around a copy with which a window moves along a dimension.
fn variable(k: &Kernel, at: Span, dim: &ViewDim) -> Option<String> {
    let around = k.statements().into_iter().filter_map(|s| match k.stmts[s] {
        StmtData::For { var, .. } if k.stmt_spans[s].start <= at.start && at.end <= k.stmt_spans[s].end => Some(var),
        _ => None,
    });
    let moves = around.filter(|&v| dim.starts().iter().any(|&e| depends_on(k, e, v)));
    moves.last().map(|v| k.values[v].name.clone())
}

/// The window of a tensor that a copy loads, and its extents.
fn window(k: &Kernel, place: &Place) -> Option<(Span, ResolvedView, Vec<u64>)> {
    k.statements().into_iter().find_map(|s| {
        let StmtData::Copy { src, dst, .. } = k.stmts[s] else { return None };
        let view = resolve_view(k, src).filter(|view| k.values[view.base].name == place.of)?;
        (k.stmt_spans[s] == place.span).then_some(())?;
        Some((k.stmt_spans[s], view, copy_shape(k, src, dst)?))
    })
}
