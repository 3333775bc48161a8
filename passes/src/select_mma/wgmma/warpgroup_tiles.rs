//! How warpgroups divide all products of a kernel: in the first way and number in which each product has a tile, and a
//! thread has registers for its tiles.

use crate::analysis::live_ranges;
use crate::analysis::reduction;
use crate::analysis::uses::{loop_body, path_to};
use crate::analysis::wgmma::COLUMN_COUNTS;
use crate::assign_layouts::Reduced;
use crate::refusal::Refused;
use crate::registers::overhead::{ACCUMULATORS, ADDRESSES};
use crate::roles::{consumer_registers, ping_pong};
use crate::select_mma::apply_wgmma::DecidedProduct;
use crate::select_mma::operand_sources::{self, Product};
use crate::select_mma::operands::scheduled_tile;
use crate::select_mma::promotion;
use crate::select_mma::tiles::{NoTile, Shared, WgmmaQuery, short_of};
use crate::select_mma::warpgroup::WgmmaForm;
use tilec_ir::atoms::Atom;
use tilec_ir::entities::Stmt;
use tilec_ir::kernel::{Kernel, StmtData};
use tilec_ir::target::{WARP, WARPGROUP};
use tilec_ir::types::Elem;
use tilec_ir::typing::product_depth;

/// A product, with facts about it and its preferred way.
pub(super) struct ProductSite {
    pub(super) product: Product,
    pub(super) atom: Atom,
    pub(super) elem: Elem,
    pub(super) shape: (u64, u64),
    /// Whether the second operand (true) or the first one is in registers; `None`: both are in shared memory.
    pub(super) registers: Option<bool>,
    /// The load to registers.
    pub(super) load: Option<operand_sources::Load>,
    /// Whether its result is stored to a column-major tensor.
    pub(super) column_major: bool,
    /// Depth of the promoted partial sums.
    pub(super) parts: Option<u64>,
}

/// The division of all products among warpgroups, with the first number of them that has enough registers.
/// `converting`: operands are converted in registers, although threads could convert them on the way to buffers.
pub(super) fn divide_products(
    k: &Kernel,
    sites: &[ProductSite],
    converting: bool,
) -> Result<(Vec<DecidedProduct>, u64), Refused> {
    let span = k.stmt_spans[sites[0].product.s];
    let threads = |groups: u64| groups * u64::from(WARPGROUP * WARP);
    let asked = k.schedule.threads.and_then(|e| k.as_int(e)).map(|n| u64::try_from(n).unwrap_or(0));
    // The division does not change what is reduced.
    let reduced = Reduced::of(k);
    let reduced: Vec<Vec<usize>> = sites.iter().map(|s| reduced.along(&[s.shape.0, s.shape.1])).collect();
    let wanted: Vec<WgmmaQuery<'_>> =
        sites.iter().zip(&reduced).map(|(site, reduced)| query(k, sites, site, reduced)).collect::<Result<_, _>>()?;
    // An exchange between warps in each iteration costs more than conversion in registers gains; after an accumulating
    // loop it is needed once.
    let exchanges = !converting || sites.iter().all(|s| in_reduction(k, s.product.s));
    let mut first: Option<Refused> = None;
    let allowed = |s: &Shared| asked.is_none_or(|n| n == threads(s.groups)) && (exchanges || !s.exchanged);
    for shared in Shared::all(sites.len() > 1).filter(allowed) {
        let tiled = wanted.iter().zip(sites).map(|(wanted, site)| {
            wanted.tiled(k, shared).map(|tiled| (wanted, site, tiled)).map_err(|why| (wanted, site, why))
        });
        let refused = match tiled.collect::<Result<Vec<_>, _>>() {
            Ok(found) => {
                match room(k, sites, shared, &found.iter().map(|(.., tiled)| tiled.tile).collect::<Vec<_>>()) {
                    Ok(()) => {
                        let decided = found.into_iter().map(|(wanted, site, tiled)| {
                            let repeats = shared.repeats(site.shape, tiled.tile);
                            site.decided(k, wanted, (tiled.form, tiled.tile), repeats)
                        });
                        return Ok((decided.collect(), shared.groups));
                    }
                    Err(refused) => refused.or_at(span),
                }
            }
            Err((wanted, site, why)) => no_tile(k, wanted, why).or_at(k.stmt_spans[site.product.s]),
        };
        first.get_or_insert(refused);
    }
    let none = || {
        let other = Shared::all(false).find(|&s| wanted.iter().all(|wanted| wanted.tiled(k, s).is_ok()));
        let why = match other {
            Some(other) => format!("its tiles take {} threads, the schedule says others", threads(other.groups)),
            None => "`threads` is not a multiple of 128 up to 512".to_owned(),
        };
        Refused::by_request_at(span, why)
    };
    Err(first.unwrap_or_else(none).asked_if(k.schedule.warp_tile.is_some()))
}

/// Whether a product is in a loop that only accumulates it.
fn in_reduction(k: &Kernel, s: Stmt) -> bool {
    let inner = path_to(k, s).into_iter().rev().find_map(|(block, index)| loop_body(k, k.blocks[block][index]));
    inner.is_some_and(|body| reduction::of(k, body).is_ok())
}

/// The requirements for dividing a product.
fn query<'a>(
    k: &Kernel,
    sites: &[ProductSite],
    site: &ProductSite,
    reduced: &'a [usize],
) -> Result<WgmmaQuery<'a>, Refused> {
    let depth = product_depth(k, &site.product.mma).expect("an operand has extents");
    let (bm, bn) = site.shape;
    // Ping-pong warpgroups each compute a whole tile.
    let whole = ping_pong(k).map(|_| Some(site.shape));
    let scheduled = match scheduled_tile(k).or(whole) {
        Some(None) => return Err(Refused::by_request("the warp tile is not constant")),
        scheduled => scheduled.flatten().map(|(wm, wn)| (wm.min(bm), wn.min(bn))),
    };
    // Tiles that are computed from one another should be divided alike.
    let beside = |registers| sites.iter().any(|s| s.shape == site.shape && s.registers == Some(registers));
    let preferred = site.product.mma.swap || site.column_major || beside(true) && !beside(false);
    let way = WgmmaForm { swap: site.registers.unwrap_or(preferred), registers: site.registers.is_some() };
    let block = (bm, bn, depth);
    let (atom, acc, promoted) = (site.atom, site.elem, site.parts);
    Ok(WgmmaQuery { atom, form: way, fixed: false, written: false, block, acc, scheduled, promoted, reduced })
}

impl ProductSite {
    /// The decision for this product, with its explanation.
    fn decided(
        &self,
        k: &Kernel,
        wanted: &WgmmaQuery<'_>,
        (way, tile): (WgmmaForm, (u64, u64)),
        repeats: u64,
    ) -> DecidedProduct {
        let why = match (self.load, way.swap) {
            (Some(load), swap) => {
                let name = &k.values[load.buffer].name;
                let why = if load.converted { "it is converted" } else { "it is not contiguous along the reduction" };
                format!("{}: `{name}` comes from registers, for {why}", if swap { ", transposed" } else { "" })
            }
            (None, false) => String::new(),
            (None, true) if way.registers => ", transposed".to_owned(),
            (None, true) if self.column_major => ", transposed because the result is stored column-major".to_owned(),
            (None, true) if wanted.form.swap => ", transposed like the other product".to_owned(),
            (None, true) => ", transposed because the instruction has 64 rows".to_owned(),
        };
        let computed = way.registers && self.load.is_none();
        let operands = if computed { "one operand in registers" } else { "shared memory" };
        DecidedProduct {
            product: self.product,
            atom: self.atom,
            form: way,
            shape: self.shape,
            tile,
            repeats,
            operands,
            why,
        }
    }
}

const TIGHT: &str = "a thread has no room for the sums and their parts (`promote`)";

/// Why warpgroups cannot compute a product.
fn no_tile(k: &Kernel, wanted: &WgmmaQuery<'_>, why: NoTile) -> Refused {
    match why {
        NoTile::Deep { depth, most } => return promotion::deep(depth, most),
        NoTile::Instruction { wanted, has } => return short_of(wanted, has),
        NoTile::Shape => {}
    }
    if wanted.sums() > 1 && (WgmmaQuery { promoted: None, ..*wanted }).is_possible() {
        return Refused::room(TIGHT);
    }
    if let (Some((rows, cols)), Some((e, _))) = (wanted.scheduled, k.schedule.warp_tile)
        && (WgmmaQuery { scheduled: None, ..*wanted }).is_possible()
    {
        let why = format!(
            "`warp_tile` gives a warp {rows} x {cols}, and `wgmma` needs a multiple of 64 rows (columns, if transposed) for each warpgroup"
        );
        return Refused::by_request_at(k.expr_spans[e], why).help("leave `warp_tile` out of the schedule");
    }
    if wanted.form.registers {
        let dim = if wanted.form.swap { "columns" } else { "rows" };
        return format!(
            "an operand comes from registers: `wgmma` needs a multiple of 64 {dim} for each warpgroup, 8 to 256 of the others, and a thread has {ACCUMULATORS} registers for \
             all"
        )
        .into();
    }
    let ((rows, cols, depth), step) = (wanted.block, u64::from(wanted.atom.row().k));
    let deep = depth.next_multiple_of(step);
    if deep != depth && (WgmmaQuery { block: (rows, cols, deep), ..*wanted }).is_possible() {
        let why = format!("`wgmma` reduces {step} elements at a time, and tiles have {depth} along the reduction");
        return Refused::from(why).help(&format!("tiles with {deep} elements along the reduction, not {depth}"));
    }
    if (WgmmaQuery { reduced: &[], ..*wanted }).is_possible() {
        return "the tile is reduced along a dimension that would be split across warps".into();
    }
    let why: Refused = format!("`wgmma` needs a multiple of 64 rows and {COLUMN_COUNTS}, or the same transposed; 192 rows are three warpgroups with 64 rows and all columns each").into();
    match larger(wanted) {
        Some((rows, cols)) => {
            let (own_rows, own_cols, _) = wanted.block;
            why.help(&format!(
                "the result has {own_rows} x {own_cols} elements: make it, and its operands, {rows} x {cols} (extents of the tiles, steps of windows and the grid)"
            ))
        }
        None => why,
    }
}

/// The smallest extents, none smaller than those of the product, that warpgroups could compute.
fn larger(wanted: &WgmmaQuery<'_>) -> Option<(u64, u64)> {
    let (rows, cols, depth) = wanted.block;
    let up = |n: u64, of: u64| n.next_multiple_of(of);
    let mut all: Vec<(u64, u64)> =
        [8, 16, 64].into_iter().flat_map(|of| [(up(rows, 64), up(cols, of)), (up(rows, of), up(cols, 64))]).collect();
    all.sort_by_key(|&(rows, cols)| rows * cols);
    all.into_iter().find(|&(rows, cols)| (WgmmaQuery { block: (rows, cols, depth), ..*wanted }).is_possible())
}

/// Checks that a thread has registers for the tiles that are live at the same time where products are computed. If only
/// accumulators are live, other instructions would need the registers, too.
fn room(k: &Kernel, sites: &[ProductSite], shared: Shared, tiles: &[(u64, u64)]) -> Result<(), Refused> {
    let around = |s: &ProductSite| {
        let mut path = path_to(k, s.product.s).into_iter().rev().map(|(block, index)| k.blocks[block][index]);
        path.find(|&s| matches!(k.stmts[s], StmtData::For { unroll: false, .. })).unwrap_or(s.product.s)
    };
    let places: Vec<Stmt> = sites.iter().map(around).collect();
    let groups = shared.groups;
    // A tile that is no part of a divided product is replicated in each warpgroup.
    let split = |tile: &live_ranges::Tile| {
        sites
            .iter()
            .zip(tiles)
            .any(|(site, &own)| tile.shape == [site.shape.0, site.shape.1] && shared.repeats(site.shape, own) == 1)
    };
    let held = live_ranges::peak_within(k, &places, |tile| if shared.beside && !split(tile) { 1 } else { groups });
    let warps = u32::try_from(groups).expect("a few warpgroups") * WARPGROUP;
    let own = u64::try_from(consumer_registers(k, warps)).unwrap_or(0);
    let plain = sites.iter().all(|s| s.parts.is_none() && s.registers.is_none());
    if held + ADDRESSES <= own || plain && sites.len() == 1 && held <= ACCUMULATORS {
        return Ok(());
    }
    Err(Refused::room(format!(
        "a thread of {groups} warpgroup(s) would hold {held} registers of tiles and {ADDRESSES} for addresses, and has {own}"
    )))
}
