//! The threads of a block, and the tile of each warp for every product.
//!
//! A kernel has one number of threads, and each of its products has its own warp tile. The `warp_tile` of the schedule
//! applies to products that it divides among this number of warps; for the others, the warps divide the accumulator as
//! evenly as they can. A warp has whole rows of an accumulator that is reduced along them, or becomes the left operand
//! of another product. So no data moves between warps. If an operand has too few rows to give each warp some, the warps
//! divide the columns, and all compute the operand. If an accumulator is too small for all warps, the remaining warps
//! are replicas.
//!
//! Without `threads` and `warp_tile`, the number of warps follows from the registers for the kernel's tiles, and tiles
//! that no product has count, too. A tile that is not the schedule's is in the text as the layout of its accumulator.

mod register_use;
mod warp_tile;

use super::from_registers::computed;
use super::k_warps;
use crate::Cx;
use crate::analysis::uses::{all_stmts, for_each_ref};
use crate::assign_layouts::Reduced;
use crate::select_mma::atoms::divides;
use crate::select_mma::operands::{acc_shape, known, scheduled_tile};
use crate::select_mma::tiles::{Owners, TileMisfit};
pub(crate) use crate::select_mma::warps::warp_tile::usual_tile;
use crate::select_mma::warps::warp_tile::{LEAST, Product, fits, warp_tile, warps_in};
use tilec_ir::atoms::Inputs;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported, Span};
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ExprData, Kernel, Mma, StmtData, ValueDef};
use tilec_ir::target::{MAX_THREADS, REGISTERS_PER_THREAD, WARP};
use tilec_ir::typing::{fixed_shape, product_depth, resolve_view, type_of};

/// Registers of a thread for addresses, predicates and temporaries.
const TEMPORARIES: u64 = 28;
/// A warp's share of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    /// Rows and columns.
    pub(super) tile: (u64, u64),
    /// Warps that share one part of the reduction.
    pub(super) warps: u64,
    /// Whether the schedule gives this tile, for all products of the kernel.
    pub(super) scheduled: bool,
}

/// The shares of all products of a kernel.
#[derive(Default)]
pub(super) struct Shares {
    decided: Option<Vec<(Value, Share)>>,
}

impl Shares {
    /// The share of the product with this accumulator. The first call decides all shares and the thread count.
    pub(super) fn of(&mut self, k: &mut Kernel, cx: &mut Cx<'_>, acc: Value, span: Span) -> Result<Share, Reported> {
        if self.decided.is_none() {
            self.decided = Some(decide(k, cx, span)?);
        }
        let found = self.decided.iter().flatten().find(|&&(v, _)| v == acc).map(|&(_, share)| share);
        found.ok_or_else(|| {
            let message = "warps cannot divide this product among them as the schedule says: an instruction of other threads is written for it";
            let note = "leave the instruction out, `mma(a, b, acc)`, or `k_warps` and `warp_tile`";
            cx.report(Diagnostic::error(codes::NO_ATOM, span, message).with_note(note))
        })
    }
}

/// The division of a kernel's products among warps, and the registers of a thread.
#[derive(Clone, Debug)]
pub(crate) struct Sharing {
    /// Threads of the block.
    pub(crate) threads: u64,
    /// Accumulators, with rows and columns of each warp's tile.
    pub(crate) tiles: Vec<(Value, (u64, u64))>,
    /// Registers of a thread for simultaneously live tiles, and for fragments.
    pub(crate) registers: u64,
}

/// The division of products without an instruction among warps; `None`: there are none.
pub(crate) fn sharing(k: &mut Kernel, cx: &mut Cx<'_>) -> Result<Option<Sharing>, Reported> {
    let products = products(k);
    let Some(first) = products.first() else { return Ok(None) };
    let shares = decide(k, cx, first.span)?;
    let threads = k.schedule.threads.and_then(|e| k.as_int(e)).and_then(|t| u64::try_from(t).ok()).unwrap_or(0);
    let registers = register_use::registers(k, cx, &products, (threads / u64::from(WARP)).max(1)) + TEMPORARIES;
    let tiles = shares.into_iter().map(|(v, share)| (v, share.tile)).collect();
    Ok(Some(Sharing { threads, tiles, registers }))
}

fn decide(k: &mut Kernel, cx: &mut Cx<'_>, span: Span) -> Result<Vec<(Value, Share)>, Reported> {
    let products = products(k);
    let first = products.first().expect("a product asks");
    let written = match scheduled_tile(k) {
        Some(None) => {
            return Err(cx.report(Diagnostic::error(codes::WARP_TILE, span, "the warp tile is not constant")));
        }
        tile => tile.flatten(),
    };
    if let Some(tile) = written.filter(|&tile| products.iter().all(|p| !divided(p, tile))) {
        return Err(does_not_divide(k, cx, tile, first.shape));
    }
    let threads = k.schedule.threads.and_then(|e| k.as_int(e)).and_then(|t| u64::try_from(t).ok());
    let threads = match (threads, written) {
        (Some(threads), _) => threads,
        (None, Some(tile)) => {
            let p = products.iter().find(|p| keeps_whole(p, tile)).or(products.iter().find(|p| divided(p, tile)));
            p.map_or(1, |p| warps_in(p.shape, tile) * p.groups) * u64::from(WARP)
        }
        (None, None) => enough_warps(k, cx, &products) * first.groups * u64::from(WARP),
    };
    if threads > u64::from(MAX_THREADS) {
        return Err(too_many_threads(k, cx, first, written, threads));
    }
    let mut shares = Vec::new();
    for p in &products {
        let warps = (threads / u64::from(WARP) / p.groups).max(1);
        // A single product has the schedule's tile, even if it contradicts the thread count.
        let only = products.len() == 1;
        let fits =
            |&tile: &(u64, u64)| divided(p, tile) && (only || keeps_whole(p, tile) && warps_in(p.shape, tile) == warps);
        let tile = written.filter(fits);
        let share = Share { tile: tile.unwrap_or_else(|| warp_tile(p, warps)), warps, scheduled: tile.is_some() };
        check(k, cx, p, share, threads)?;
        shares.push((p.acc, share));
    }
    if let Some(tile) = written {
        check_scheduled_tile(k, cx, &products, &shares, (tile, threads))?;
    }
    if k.schedule.threads.is_none() {
        k.schedule.threads = Some(k.int(threads as i64, span));
    }
    if k.schedule.warp_tile.is_none() {
        let (tile, warps) = (shares[0].1.tile, shares[0].1.warps);
        k.schedule.warp_tile = Some((k.int(tile.0 as i64, span), k.int(tile.1 as i64, span)));
        for ((_, share), p) in shares.iter_mut().zip(&products) {
            share.scheduled = share.tile == tile && share.warps == warps && warps_in(p.shape, tile) == warps;
        }
    }
    // If all layouts are made here, all products have the same distribution of rows.
    let scheduled = shares.iter().all(|(_, share)| share.scheduled);
    shares.iter_mut().for_each(|(_, share)| share.scheduled = scheduled);
    Ok(shares)
}

/// Whether an accumulator divides into such tiles.
fn divided(p: &Product, (wm, wn): (u64, u64)) -> bool {
    divides(wm, p.shape.0, false) && divides(wn, p.shape.1, false)
}

/// Whether it does, and a warp has whole rows or columns where required.
fn keeps_whole(p: &Product, tile: (u64, u64)) -> bool {
    divided(p, tile) && (!p.whole[0] || tile.0 == p.shape.0) && (!p.whole[1] || tile.1 == p.shape.1)
}

/// The smallest number of warps whose registers hold the kernel's tiles. Warps without a part of a product are
/// replicas there, so they are added only if tiles of other extents do not fit.
fn enough_warps(k: &Kernel, cx: &Cx<'_>, products: &[Product]) -> u64 {
    let used = |p: &Product, warps: u64| warps_in(p.shape, warp_tile(p, warps));
    let usual = |p: &Product| warps_in(p.shape, usual_tile(p.shape, p.whole));
    let most = u64::from(MAX_THREADS / WARP) / products.iter().map(|p| p.groups).max().unwrap_or(1);
    let mut warps = products.iter().map(usual).max().unwrap_or(1).min(most.max(1));
    loop {
        let tight = register_use::registers(k, cx, products, warps) + TEMPORARIES > u64::from(REGISTERS_PER_THREAD);
        let others = || register_use::of_others(k, products, warps) + TEMPORARIES;
        let helps =
            products.iter().any(|p| used(p, 2 * warps) > used(p, warps)) || others() > u64::from(REGISTERS_PER_THREAD);
        if !tight || !helps || 2 * warps > most {
            return warps;
        }
        warps *= 2;
    }
}

/// The products of a kernel for warps, one for each accumulator without a layout.
fn products(k: &Kernel) -> Vec<Product> {
    let (mut found, mut reduced): (Vec<Product>, Option<Reduced>) = (Vec::new(), None);
    let mut all: Vec<(Value, Mma, Span)> = Vec::new();
    for s in all_stmts(k, k.body) {
        let StmtData::Assign { dst, src } = k.stmts[s] else { continue };
        let ExprData::Mma(mma) = k.exprs[src] else { continue };
        if !mma.atom.is_some_and(|a| a.row().asynchronous()) {
            all.push((dst, mma, k.expr_spans[src]));
        }
    }
    for &(acc, mma, span) in &all {
        let Some(shape) = acc_shape(k, acc) else { continue };
        let Some(elem) = k.tile_ty(acc).and_then(|t| known(Some(t.elem))) else { continue };
        if found.iter().any(|p| p.acc == acc) {
            continue;
        }
        let reduced = reduced.get_or_insert_with(|| Reduced::of(k)).along(&[shape.0, shape.1]);
        let inputs = [mma.a, mma.b].map(|e| type_of(k, e).ok().and_then(|t| known(t.elem())));
        let types = if let [Some(a), Some(b)] = inputs { Some((Inputs { a, b }, elem)) } else { None };
        found.push(Product {
            acc,
            shape,
            elem: elem.size(),
            groups: k_warps::groups(k, acc),
            whole: fits_whole(shape, [reduced.contains(&0), reduced.contains(&1)]),
            types,
            depth: depth(k, &mma),
            span,
        });
    }
    // Where rows (columns) are whole because an operand is computed, and because the accumulator is one.
    let (mut by_operand, mut by_use) = (vec![[false; 2]; found.len()], vec![[false; 2]; found.len()]);
    for (acc, mma, _) in all {
        for (e, other, along) in [(mma.a, mma.b, 1), (mma.b, mma.a, 0)] {
            if !computed(k, e) || computed(k, other) {
                continue;
            }
            // The product's rows (columns) are those of the operand, and its reduction is in one warp.
            let sources = sources(k, e);
            for (i, p) in found.iter().enumerate() {
                by_operand[i][along] |= p.acc == acc && !warps_divide(p, along);
                let transposed = resolve_view(k, e).is_some_and(|v| v.transposed);
                by_use[i][if transposed { 1 - along } else { along }] |= sources.contains(&p.acc);
            }
        }
    }
    for ((p, by_operand), by_use) in found.iter_mut().zip(by_operand).zip(by_use) {
        // What a warp has no room for is exchanged between warps.
        let least = |extent: u64, whole: bool| if whole { extent } else { extent.min(LEAST) };
        for needed in [by_use, by_operand] {
            let both = [0, 1].map(|d| p.whole[d] || needed[d]);
            if fits(p.elem.words(least(p.shape.0, both[0]) * least(p.shape.1, both[1]))) {
                p.whole = both;
            }
        }
    }
    found
}

/// Whether warps divide an accumulator along the rows (`along` 1), or columns, of an operand that all of them compute:
/// there is no other way to divide it, and it is too large for one warp.
fn warps_divide(p: &Product, along: usize) -> bool {
    let (bm, bn) = p.shape;
    [bm, bn][1 - along] <= LEAST && !fits(bm * bn)
}

/// The extent of the tile of the reduction.
fn depth(k: &Kernel, mma: &Mma) -> u64 {
    product_depth(k, mma).expect("an operand has extents")
}

/// The dimensions along which a warp must have a whole accumulator of these extents that is reduced along `reduced`;
/// none if that is too large for a warp.
fn fits_whole((bm, bn): (u64, u64), reduced: [bool; 2]) -> [bool; 2] {
    let least = |all: u64, whole: bool| if whole { all } else { all.min(LEAST) };
    let too_much = !fits(least(bm, reduced[0]) * least(bn, reduced[1]));
    if too_much { [false; 2] } else { reduced }
}

/// The register tiles with the extents of `e`, transposed or not, from which it is computed.
fn sources(k: &Kernel, e: Expr) -> Vec<Value> {
    let Some(shape) = fixed_shape(k, e) else { return Vec::new() };
    let alike = |v: Value| {
        let own = match &k.values[v].def {
            ValueDef::Var(t) => k.const_shape(&t.shape),
            ValueDef::Let => tilec_ir::typing::let_init(k, v).and_then(|e| fixed_shape(k, e)),
            _ => None,
        };
        own.is_some_and(|own| own == shape || own.iter().rev().eq(shape.iter()))
    };
    let mut found = Vec::new();
    let see = |e: Expr, found: &mut Vec<Value>| {
        for_each_ref(k, e, &mut |v| {
            if alike(v) && !found.contains(&v) {
                found.push(v);
            }
        });
    };
    see(e, &mut found);
    let stmts = all_stmts(k, k.body);
    let mut done = 0;
    while done < found.len() {
        let v = found[done];
        done += 1;
        for &s in &stmts {
            match k.stmts[s] {
                StmtData::Assign { dst, src } if dst == v && !matches!(k.exprs[src], ExprData::Mma(_)) => {
                    see(src, &mut found);
                }
                StmtData::Var { value, init: Some(init) } | StmtData::Let { value, init } if value == v => {
                    see(init, &mut found);
                }
                StmtData::Copy { src, dst, .. } if resolve_view(k, dst).is_some_and(|view| view.base == v) => {
                    see(src, &mut found);
                }
                _ => {}
            }
        }
    }
    found
}

/// Remarks on products that do not have the schedule's tile; an error if none has.
fn check_scheduled_tile(
    k: &Kernel,
    cx: &mut Cx<'_>,
    products: &[Product],
    shares: &[(Value, Share)],
    ((wm, wn), threads): ((u64, u64), u64),
) -> Result<(), Reported> {
    let why = |p: &Product| {
        let (bm, bn) = p.shape;
        if !divided(p, (wm, wn)) {
            format!("it does not divide the {bm}x{bn} accumulator")
        } else if !keeps_whole(p, (wm, wn)) {
            let what = if p.whole[1] { "rows" } else { "columns" };
            format!(
                "a warp has whole {what} of `{}`, which is reduced along them or an operand of a product",
                k.values[p.acc].name
            )
        } else {
            let needed = warps_in(p.shape, (wm, wn)) * p.groups * u64::from(WARP);
            format!("{bm}x{bn} in such tiles takes {needed} threads, and the kernel has {threads}")
        }
    };
    if shares.iter().all(|(_, share)| !share.scheduled) {
        let at = k.schedule.warp_tile.map_or(products[0].span, |(m, n)| k.expr_spans[m].to(k.expr_spans[n]));
        let mut d = Diagnostic::error(codes::WARP_TILE, at, format!("no product can have a warp tile of {wm}x{wn}"));
        for p in products {
            d = d.with_place(p.span, why(p));
        }
        let d = d.with_note("leave `warp_tile` out to have one chosen for each product");
        return Err(cx.report(d.with_left_out(k.schedule_item("warp_tile"))));
    }
    for (p, (_, share)) in products.iter().zip(shares).filter(|(_, (_, share))| !share.scheduled) {
        let (m, n) = share.tile;
        cx.remark(p.span, format!("a warp computes {m}x{n}, not the schedule's {wm}x{wn}: {}", why(p)));
    }
    Ok(())
}

fn does_not_divide(k: &Kernel, cx: &mut Cx<'_>, (wm, wn): (u64, u64), (bm, bn): (u64, u64)) -> Reported {
    let (m, n) = k.schedule.warp_tile.expect("it was written");
    cx.report(
        Diagnostic::error(
            codes::WARP_TILE,
            k.expr_spans[m].to(k.expr_spans[n]),
            format!("warp tile {wm}x{wn} does not divide the {bm}x{bn} accumulator"),
        )
        .with_note("both extents must be powers of two and at most those of the accumulator")
        .with_left_out(k.schedule_item("warp_tile")),
    )
}

/// The text about groups of warps that share a reduction.
fn of_groups(groups: u64) -> String {
    if groups > 1 { format!(", {groups} groups of them,") } else { String::new() }
}

fn too_many_threads(k: &Kernel, cx: &mut Cx<'_>, p: &Product, written: Option<(u64, u64)>, threads: u64) -> Reported {
    let ((bm, bn), (wm, wn)) = (p.shape, written.unwrap_or(p.shape));
    let times = of_groups(p.groups);
    cx.report(
        Diagnostic::error(
            codes::WARP_TILE,
            p.span,
            format!(
                "{bm}x{bn} in {wm}x{wn} warp tiles{times} needs {threads} threads, a block has at most {MAX_THREADS}"
            ),
        )
        .with_note(if p.groups > 1 { "enlarge `warp_tile` or lower `k_warps`" } else { "enlarge `warp_tile`" })
        .with_left_out(k.schedule_item(if p.groups > 1 { "k_warps" } else { "warp_tile" })),
    )
}

/// Refuses a share that no thread can hold, or a schedule with contradictory threads and warp tile.
fn check(k: &Kernel, cx: &mut Cx<'_>, p: &Product, share: Share, threads: u64) -> Result<(), Reported> {
    let ((bm, bn), (wm, wn), times) = (p.shape, share.tile, of_groups(p.groups));
    let written = share.scheduled.then_some(threads);
    let (message, note) = match (Owners::Warps { groups: p.groups }).fit(p.shape, share.tile, p.elem, written) {
        Ok(_) => return Ok(()),
        Err(TileMisfit::Registers(registers)) => (
            format!("a {wm}x{wn} warp tile needs {registers} accumulator registers per thread"),
            "a thread has 255 registers; use more warps (a smaller `warp_tile`)",
        ),
        Err(TileMisfit::Threads(needed)) => (
            format!("{bm}x{bn} in {wm}x{wn} warp tiles{times} takes {needed} threads, the schedule says {threads}"),
            "remove `threads` or change `warp_tile`",
        ),
        Err(TileMisfit::TooMany(needed)) => return Err(too_many_threads(k, cx, p, Some(share.tile), needed)),
        // Extents that are no powers of two are refused separately.
        Err(TileMisfit::Divides) => return Ok(()),
    };
    let d = Diagnostic::error(codes::WARP_TILE, p.span, message).with_note(note);
    Err(cx.report(d.with_left_out(written.and_then(|_| k.schedule_item("warp_tile")))))
}
