//! The statements that contribute to a figure of the model: the copies with most bytes, the products, the loop that
//! waits.
//!
//! The model predicts a kernel as a whole. The contribution of a statement is computed from the kernel and the
//! emitter's report: bytes of a copy's window, wavefronts of an access to shared memory.

use super::bank_conflicts::{self, Conflict};
use super::demands::{box_rows, combined};
use std::collections::BTreeMap;
use tilec_ir::diag::{Span, counted};
use tilec_ir::entities::{Block, Expr, Stmt};
use tilec_ir::facts::contiguous_dim;
use tilec_ir::kernel::{Kernel, StmtData};
use tilec_ir::layout::access::{BANK_BYTES, BANKS};
use tilec_ir::roles::all_warps;
use tilec_ir::target::WARP;
use tilec_ir::types::ElemRef;
use tilec_ir::typing::{copy_shape, resolve_view};
use tilec_passes::analysis::access_width::MAX_ACCESS_BYTES;
use tilec_passes::choose::{Card, Place, Prediction, Runs, Term};
use tilec_ptx::report::{CopyReport, Report};

/// Statements with what each has.
pub(super) type Places = Vec<(Span, String)>;

/// Of what copies are named for, the least share.
const NAMED: f64 = 0.01;

/// The copies with most bytes.
pub(super) fn copies(p: &Prediction) -> Places {
    largest_copies(p, |_| true)
}

/// How many times as much as it uses a copy moves, in sectors of its tensor.
pub(super) fn times(report: &Report, place: &Place) -> f64 {
    sectors_of(report, place).map(|c| 1.0 / used(c, place)).fold(1.0, f64::max)
}

/// The share of the bytes of its sectors that an access uses, with the sizes of a prediction.
pub(super) fn used(c: &CopyReport, place: &Place) -> f64 {
    if place.whole_runs { c.sector_use.max(c.sector_use_of_runs) } else { c.sector_use }
}

/// Instructions that a block issues at least, over all of its warps: of each statement, with what is around it.
pub(super) fn issued(k: &Kernel, report: &Report, p: &Prediction) -> Vec<(Runs, f64)> {
    by_runs(k, p, &report.half_slots).map(|(r, n)| (r, n / 2.0)).collect()
}

/// Of these, additions, products and multiply-adds of f32.
pub(super) fn f32_arithmetic(k: &Kernel, report: &Report, p: &Prediction) -> Vec<(Runs, f64)> {
    by_runs(k, p, &report.f32_arithmetic).collect()
}

/// What a block executes of each statement, over all of its warps.
fn by_runs<'a>(k: &Kernel, p: &Prediction, of: &'a BTreeMap<Stmt, u32>) -> impl Iterator<Item = (Runs, f64)> + use<'a> {
    let runs = tilec_passes::choose::runs(k, &p.sizes);
    of.iter().filter_map(move |(s, &n)| runs.get(s).map(|r| (*r, r.warps * f64::from(n))))
}

/// The loops that issue most; where lanes for f32 are the limit, those with most arithmetic of f32.
fn issuing(k: &Kernel, report: &Report, p: &Prediction) -> Places {
    let (all, of_f32) = (issued(k, report, p), f32_arithmetic(k, report, p));
    let sum_of = |all: &[(Runs, f64)]| all.iter().map(|(_, n)| n).sum::<f64>();
    let clocks = Card::from_name(p.card).map_or(1.0, Card::f32_clocks);
    let lanes_limit = clocks * sum_of(&of_f32) > sum_of(&all);
    let all = if lanes_limit { of_f32 } else { all };
    let sum = sum_of(&all);
    let mut loops: Vec<(Span, f64)> = Vec::new();
    for (runs, n) in all {
        let at = runs.within.unwrap_or(k.name_span);
        match loops.iter_mut().find(|(span, _)| *span == at) {
            Some((_, of)) => *of += n,
            None => loops.push((at, n)),
        }
    }
    loops.sort_by(|a, b| b.1.total_cmp(&a.1));
    let warps = f64::from(report.threads.div_ceil(WARP)).max(1.0);
    let text = |(at, n): (Span, f64)| {
        let (each, share) = (n / warps, 100.0 * n / sum);
        let text = match lanes_limit {
            true => format!(
                "computes at least {each:.0} additions, products and multiply-adds of f32 a warp, {share:.1} % of those of a block; each takes a scheduler of {} {clocks:.0} clocks",
                p.card
            ),
            false => format!("issues at least {each:.0} instructions a warp, {share:.1} % of what a block issues"),
        };
        (at, text)
    };
    loops.into_iter().filter(|(_, n)| *n > NAMED * sum).take(3).map(text).collect()
}

/// The accesses of global memory that a copy became.
fn sectors_of<'a>(report: &'a Report, place: &'a Place) -> impl Iterator<Item = &'a CopyReport> {
    let own = |c: &&CopyReport| (c.span, &c.tensor) == (place.span, &place.of);
    report.copies.iter().filter(own).filter(|c| c.global_bytes > 0 && c.sector_use > 0.0)
}

/// The copies that move most of what nothing uses.
fn wasteful_copies(p: &Prediction, report: &Report) -> Places {
    let waste = |place: &Place| place.bytes * (times(report, place) - 1.0);
    let own: Vec<Place> = p.places.iter().filter(|place| place.global).cloned().collect();
    let all: f64 = own.iter().map(waste).sum();
    let text = |(place, waste): (Place, f64)| {
        let (share, times) = (100.0 * waste / all, times(report, &place));
        let text = format!(
            "{} `{}`, and uses {:.0} % of the bytes of its sectors: {share:.1} % of the unused bytes",
            if place.store { "stores" } else { "loads" },
            place.of,
            100.0 / times
        );
        (place.span, text)
    };
    by_size(own, waste).into_iter().filter(|(_, waste)| *waste > NAMED * all).take(3).map(text).collect()
}

/// The statements with most bank conflicts.
fn conflicts(k: &Kernel, report: &Report, p: &Prediction) -> Places {
    let own = bank_conflicts::of_block(k, report, p);
    let all: f64 = own.iter().map(|c| c.wavefronts).sum();
    let text = |c: Conflict| {
        let text = format!(
            "a {} `{}` takes {:.0} times the wavefronts of its width: {:.1} % of the conflicts",
            if c.store { "store to" } else { "load from" },
            c.buffer,
            c.times,
            100.0 * c.wavefronts / all
        );
        (c.span, text)
    };
    let named = own.into_iter().filter(|c| c.wavefronts > NAMED * all && !c.span.is_none());
    named.take(3).map(text).collect()
}

/// The statements that a term of the predicted time is for.
pub(super) fn of_term(k: &Kernel, report: &Report, p: &Prediction, term: Term) -> Places {
    let waiting = |what: &str| -> Places { loops(k).into_iter().map(|s| (s, what.to_owned())).collect() };
    match term {
        Term::Copies | Term::Launch => Places::new(),
        Term::Memory | Term::L2 | Term::L1 => copies(p),
        Term::Sectors => wasteful_copies(p, report),
        Term::Rows => box_rows::places(p),
        Term::Combining => combined::places(p),
        Term::Conflicts => conflicts(k, report, p),
        Term::Issue => issuing(k, report, p),
        Term::Products => report.mma.iter().map(|m| (m.span, format!("`{}`", m.atom))).collect(),
        Term::Shared => {
            let mut all: Vec<_> = report.shared.iter().collect();
            all.sort_by_key(|s| (!s.in_loop, std::cmp::Reverse(s.conflicts()), std::cmp::Reverse(s.wavefronts)));
            all.iter().take(2).map(|s| accesses(s)).collect()
        }
        Term::Latency => waiting("waits for loads and dependent instructions"),
        Term::Barriers => waiting("barriers in each iteration"),
        Term::Ends => largest_copies(p, |place| place.store),
        Term::Uneven => {
            let axes = k.grid.iter().map(|axis| k.expr_spans[axis.extent]).filter(|s| !s.is_none());
            axes.take(1).map(|s| (s, waves(p))).collect()
        }
    }
}

/// The waves that tiles are: `16 tiles are 0.12 waves`.
pub(super) fn waves(p: &Prediction) -> String {
    let tiles = format!("{:.0} {}", p.tiles, if p.tiles == 1.0 { "tile" } else { "tiles" });
    match p.blocks > p.tiles {
        true => format!("{tiles}, shared by {:.0} blocks, are {:.2} waves", p.blocks, p.waves),
        false => {
            let are = if p.tiles == 1.0 { "is" } else { "are" };
            format!("{tiles} {are} {:.2} waves", p.waves)
        }
    }
}

/// The buffers and channels with most bytes of shared memory.
pub(super) fn buffers(k: &Kernel, report: &Report) -> Places {
    let mut tiles: Vec<_> = report.tiles.iter().map(|t| (t.bytes * t.slots, t)).collect();
    tiles.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
    let place = |(bytes, t): (u64, &tilec_ptx::report::TileReport)| {
        let value = k.values.values().find(|v| v.name == t.name)?;
        let slots = if t.slots > 1 { format!(", {} slots of {}", t.slots, t.bytes) } else { String::new() };
        Some((value.span, format!("`{}` has {bytes} bytes{slots}", t.name)))
    };
    tiles.into_iter().filter_map(place).collect()
}

/// The register tiles that take most, where they are declared.
pub(super) fn registers(k: &Kernel) -> Places {
    let tiles = register_tiles(k).into_iter().filter(|(.., span)| !span.is_none());
    let text =
        |(words, text, span)| (span, format!("{text} takes {} of a thread", counted(words as usize, "register")));
    tiles.map(text).take(3).collect()
}

/// Roles whose registers are written, and what all of them take: warps, each times the registers of its threads.
pub(super) fn roles(k: &Kernel) -> (Places, u64) {
    let (mut places, mut all) = (Vec::new(), 0);
    for s in k.statements() {
        let StmtData::Role { name, registers: Some(registers), .. } = &k.stmts[s] else { continue };
        let count = k.as_int(*registers).and_then(|n| u64::try_from(n).ok());
        let (Some(count), Some(warps)) = (count, all_warps(k, s)) else { continue };
        all += count * u64::from(warps);
        let own = k.expr_spans[*registers];
        let span = if own.is_none() { k.stmt_spans[s] } else { own };
        places.push((
            span,
            format!("{} of role `{name}` have {count} registers a thread", counted(warps as usize, "warp")),
        ));
    }
    (places, all)
}

/// Register tiles by the registers that a thread has for each, most first: registers, the tile in words, where it is declared.
pub(crate) fn register_tiles(k: &Kernel) -> Vec<(u64, String, Span)> {
    let text = |tile: tilec_passes::RegisterTile| {
        let (shape, value) = (tile.shape.iter().map(u64::to_string).collect::<Vec<_>>(), &k.values[tile.value]);
        let elem = tile.elem.map_or("", |elem| elem.name());
        (tile.registers, format!("`{}`, {elem}[{}],", value.name, shape.join(", ")), value.span)
    };
    let mut all: Vec<(u64, String, Span)> = tilec_passes::register_tiles(k).into_iter().map(text).collect();
    all.sort_by_key(|(words, ..)| std::cmp::Reverse(*words));
    all
}

/// Copies in loops by which threads fill shared memory from tensors, TMA apart.
pub(super) fn filled_by_threads(k: &Kernel) -> Places {
    let mut out: Places = Vec::new();
    walk(k, k.body, false, &mut |s, in_loop| {
        let StmtData::Copy { src, dst, attrs } = &k.stmts[s] else { return };
        let fills = resolve_view(k, *dst).is_some_and(|to| to.space(k).is_of_block()) && is_tensor(k, *src);
        let place = (k.stmt_spans[s], "loaded by threads".to_owned());
        if in_loop && fills && !attrs.is_tensor() && !out.contains(&place) {
            out.push(place);
        }
    });
    out
}

/// What an access to shared memory takes, and where it is.
pub(crate) fn accesses(s: &tilec_ptx::report::SharedReport) -> (Span, String) {
    let access = if s.store { "a store to" } else { "a load from" };
    let least = match s.conflicts() {
        0 => ", as few as its width needs".to_owned(),
        _ => format!(", not {}", s.ideal_wavefronts),
    };
    let wavefronts = counted(s.wavefronts as usize, "wavefront");
    (s.span, format!("{access} `{}` takes {wavefronts} a warp{least}", s.buffer))
}

/// That an asynchronous copy takes wavefronts in addition to those for its banks, because rows of its window are shorter than a line of shared memory.
pub(crate) fn divided(k: &Kernel, s: &tilec_ptx::report::SharedReport) -> Option<String> {
    if !s.store || s.access_bytes < MAX_ACCESS_BYTES {
        return None;
    }
    let row_bytes = k.statements().into_iter().find_map(|t| {
        let StmtData::Copy { src, dst, attrs } = &k.stmts[t] else { return None };
        let to = resolve_view(k, *dst).filter(|to| k.stmt_spans[t] == s.span && k.values[to.base].name == s.buffer)?;
        let from = resolve_view(k, *src).filter(|_| attrs.is_asynchronous())?;
        let along = contiguous_dim(k, from.base).and_then(|d| from.base_dims().iter().position(|&kept| kept == d))?;
        let ElemRef::Known(elem) = k.values[to.base].def.elem()? else { return None };
        Some(elem.bytes_of(*copy_shape(k, *src, *dst)?.get(along)?))
    })?;
    // A line of shared memory is one word of every bank.
    const LINE: u64 = BANKS * BANK_BYTES;
    (row_bytes % LINE != 0).then(|| {
        format!(
            "wavefronts are counted by banks. `cp.async` moves rows of {row_bytes} bytes to `{}`, parts of lines of {LINE}, and may take further wavefronts: these are no bank conflicts (`parted` in `tilec run --counters`)",
            s.buffer
        )
    })
}

/// Bytes of a block; `cut`: blocks at the edges of tensors have fewer.
fn in_bytes(each: f64, cut: bool) -> String {
    match cut {
        true => format!("{each:.1} bytes on average"),
        false => format!("{each:.0} bytes"),
    }
}

/// Of the copies that are requested those with most bytes of tensors, and their shares of what all move.
fn largest_copies(p: &Prediction, asked: impl Fn(&Place) -> bool) -> Places {
    let own: Vec<Place> = p.places.iter().filter(|place| place.global).cloned().collect();
    // What windows of an iteration have in common is moved once.
    let once = |place: &Place| place.bytes * place.once;
    let all: f64 = own.iter().map(once).sum();
    let windows = by_size(own.clone(), |place| place.bytes);
    let text = |(place, bytes): (Place, f64)| {
        let does = match place.combined {
            Some(_) => "combines",
            None if place.store => "stores",
            None => "loads",
        };
        let (each, share) = (bytes / p.tiles.max(1.0), 100.0 * bytes / all);
        let unit = if p.blocks == p.tiles { "block" } else { "tile" };
        let same = |w: &&(Place, f64)| (w.0.span, w.0.store, &w.0.of) == (place.span, place.store, &place.of);
        let whole = windows.iter().find(same).map_or(bytes, |w| w.1) / p.tiles.max(1.0);
        let of = &place.of;
        let text = match whole > 1.001 * each {
            true => format!(
                "windows of {} of `{of}` a {unit}; with what windows have in common once, {}, {share:.1} % of what it moves",
                in_bytes(whole, place.cut),
                in_bytes(each, place.cut)
            ),
            false => {
                let often =
                    place.combined.and_then(combined::often).map_or(String::new(), |often| format!(", {often}"));
                format!("{does} {} of `{of}` a {unit}, {share:.1} % of what it moves{often}", in_bytes(each, place.cut))
            }
        };
        (place.span, text)
    };
    let most = by_size(own, once).into_iter().filter(|(place, _)| asked(place));
    most.filter(|(_, bytes)| *bytes > NAMED * all).take(3).map(text).collect()
}

/// The statements of the source by what they have, most first: what a statement does several times is one.
fn by_size(places: Vec<Place>, size: impl Fn(&Place) -> f64) -> Vec<(Place, f64)> {
    let mut out: Vec<(Place, f64)> = Vec::new();
    for place in places.into_iter().filter(|place| !place.span.is_none()) {
        let same = |(p, _): &&mut (Place, f64)| (p.span, p.store, &p.of) == (place.span, place.store, &place.of);
        let own = size(&place);
        match out.iter_mut().find(same) {
            Some((first, sum)) => {
                first.cut |= place.cut;
                *sum += own;
            }
            None => out.push((place, own)),
        }
    }
    out.sort_by(|a, b| b.1.total_cmp(&a.1));
    out
}

/// Whether a copy reads or writes a tensor there.
fn is_tensor(k: &Kernel, e: Expr) -> bool {
    resolve_view(k, e).is_some_and(|view| k.tensor_ty(view.base).is_some())
}

/// The variables of the innermost loops in which copies or products are: a loop over tiles is the grid's.
fn loops(k: &Kernel) -> Vec<Span> {
    let mut out: Vec<Span> = Vec::new();
    walk(k, k.body, false, &mut |s, _| {
        let StmtData::For { var, body, unroll: false, .. } = &k.stmts[s] else { return };
        let works = |&s: &Stmt| matches!(k.stmts[s], StmtData::Copy { .. } | StmtData::Assign { .. });
        let span = k.values[*var].span;
        let mut around = false;
        walk(k, *body, true, &mut |s, _| around |= matches!(k.stmts[s], StmtData::For { unroll: false, .. }));
        if !around && k.blocks[*body].iter().any(works) && !span.is_none() && !out.contains(&span) {
            out.push(span);
        }
    });
    out
}

fn walk(k: &Kernel, block: Block, in_loop: bool, each: &mut dyn FnMut(Stmt, bool)) {
    for &s in &k.blocks[block] {
        each(s, in_loop);
        let inner = in_loop || matches!(k.stmts[s], StmtData::For { .. });
        for sub in k.sub_blocks(s) {
            walk(k, sub, inner, each);
        }
    }
}
