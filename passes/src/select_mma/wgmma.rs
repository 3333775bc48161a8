//! Selects wgmma for products anywhere: one in a loop of copies, or several, chained, with other statements between them.
//!
//! The instruction reads shared memory through the async proxy, through which TMA loads write. Its operands are buffers that producer warps fill
//! ([`crate::producer_fills`]), transposed or not. The first one may be a register tile instead (the second, if the product is computed transposed), which is
//! computed, or loaded from a buffer (`operand_sources`). So a kernel uses wgmma if each of these buffers can be
//! fed; the form of its loops does not matter.
//!
//! All warpgroups share the rows of each product, or its columns if it is computed transposed (`tiles`). If the schedule does not give their number, it is chosen
//! so that a thread has registers for its tiles.
//!
//! Sums of 8-bit floats that a loop carries are promoted (`promotion`).
//!
//! Copies that producer warps will run are marked (`@(producer)`), so that the decision is in the text. If they gather rows, the producer has its own
//! tile of indices ([`gathered_rows`]).
//!
//! Needs: literal extents. Decides: instructions, operands in registers, tiles of warpgroups, threads. Off: there is no wgmma.

mod gathered_rows;
mod warpgroup_tiles;

use super::apply_wgmma::{DecidedProduct, apply};
use super::in_roles;
use super::operand_loads;
use super::operand_sources::{self, Loads, Product, product_of};
use super::stored_tiles::{self, StoredTile};
use super::warpgroup::{self, WgmmaForm};
use super::{from_registers, missed_wgmma, promotion, scale_factors};
use crate::Cx;
use crate::Options;
use crate::analysis::conditions::guarded;
use crate::analysis::reduction;
use crate::analysis::uses::{all_stmts, path_to};
use crate::analysis::views::plain_var;
use crate::producer_fills::{self, ProducerFill};
use crate::refusal::Refused;
use crate::select_mma::operands::{Operand, acc_shape, described, operand, stored_column_major};
use tilec_ir::atoms::{Atom, Inputs};
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported};
use tilec_ir::entities::{Stmt, Value};
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, Mma, StmtData};
use tilec_ir::missed_paths::FastPath;
use tilec_ir::target::{WARP, WARPGROUP};
use tilec_ir::typing::resolve_view;
use warpgroup_tiles::{ProductSite, divide_products};

/// Why a kernel does not use wgmma.
enum Stop {
    Refused(Refused),
    Reported(Reported),
}

impl From<Refused> for Stop {
    fn from(refused: Refused) -> Stop {
        Stop::Refused(refused)
    }
}

impl From<Reported> for Stop {
    fn from(reported: Reported) -> Stop {
        Stop::Reported(reported)
    }
}

/// The decisions for all products of a kernel.
struct KernelPlan {
    decided: Vec<DecidedProduct>,
    feeds: Vec<ProducerFill>,
    short: Vec<ShortAccumulator>,
    groups: u64,
}

/// Selects wgmma for all products of a kernel outside of roles, if it is possible for all of them. Otherwise returns
/// the reason, which has been reported.
pub(super) fn select(k: &mut Kernel, cx: &mut Cx<'_>) -> Result<Option<Refused>, Reported> {
    let stmts = all_stmts(k, k.body);
    // `in_roles` has handled products in roles.
    let open = |p: &Product| !in_roles::in_role(k, p.s) && !is_decided(k, &p.mma);
    let mut products: Vec<Product> = stmts.iter().filter_map(|&s| product_of(k, s)).filter(open).collect();
    if products.is_empty() || !cx.options.target.has_tensor_copies() {
        return Ok(None);
    }
    if !cx.enabled {
        return Ok(Some(Refused::by_request("`select-mma` is switched off")));
    }
    if let Some(refused) = by_hand(k, &stmts, &products) {
        return none(k, cx, refused, &products).map(Some);
    }
    products.iter_mut().for_each(|p| computed_operands(k, p));
    let before = k.clone();
    let (mut first, mut converted) = (None, true);
    for attempt in attempts(k, cx.options, &products) {
        let stored = match attempt {
            Attempt::Stored { all } => stored_tiles::add(k, cx.options, &products, all),
            Attempt::Registers | Attempt::Threads => Vec::new(),
        };
        let is_other = if matches!(attempt, Attempt::Stored { .. }) { !stored.is_empty() } else { converted };
        if !is_other {
            continue;
        }
        let loads = match operand_sources::plan(k, cx.options, &products, attempt != Attempt::Threads) {
            Ok(loads) => loads,
            Err(_) if !stored.is_empty() => {
                *k = before.clone();
                continue;
            }
            Err(refused) => return none(k, cx, first.unwrap_or(refused), &products).map(Some),
        };
        match plan(k, cx, products.clone(), &loads) {
            Ok(planned) => {
                stored.iter().for_each(|tile| remark_stored(k, cx, tile));
                return write(k, cx, before.schedule.promote.is_some(), planned).map(|()| None);
            }
            Err(Stop::Reported(reported)) => return Err(reported),
            Err(Stop::Refused(refused)) => {
                if stored.is_empty() {
                    first.get_or_insert(loads.refused.clone().unwrap_or(refused));
                    converted = !loads.converted.is_empty();
                }
                *k = before.clone();
            }
        }
    }
    none(k, cx, first.expect("something was refused"), &products).map(Some)
}

/// Where operands are converted that are converted on their way to a buffer.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Attempt {
    /// In registers, if possible.
    Registers,
    /// By threads, from buffers with the stored elements: `all`, or those that cannot be converted in registers.
    Stored { all: bool },
    /// By the threads that load them from global memory.
    Threads,
}

/// The attempts for a kernel, the best first. The model of loops that only accumulate a product knows no buffers with
/// stored elements.
fn attempts(k: &Kernel, options: &Options, products: &[Product]) -> Vec<Attempt> {
    if only_accumulated(k) {
        vec![Attempt::Registers, Attempt::Threads]
    } else if stored_tiles::is_for_some(k, options, products) {
        vec![Attempt::Stored { all: false }, Attempt::Stored { all: true }, Attempt::Registers, Attempt::Threads]
    } else {
        vec![Attempt::Registers, Attempt::Stored { all: true }, Attempt::Threads]
    }
}

fn remark_stored(k: &Kernel, cx: &mut Cx<'_>, tile: &StoredTile) {
    let name = &k.values[tile.buffer].name;
    cx.remark(tile.at, format!("`{name}` is converted from `{name}_stored`, into which TMA loads ahead"));
}

/// Whether a product's instruction is written, and its operands already match.
pub(super) fn is_decided(k: &Kernel, mma: &Mma) -> bool {
    mma.atom.is_some_and(|a| a.row().asynchronous()) && (in_roles::in_slots(k, mma) || operands_are_filled(k, mma))
}

/// Reports why a kernel has no wgmma; an error, if wgmma is written.
fn none(k: &Kernel, cx: &mut Cx<'_>, refused: Refused, products: &[Product]) -> Result<Refused, Reported> {
    if let Some(p) = products.iter().find(|p| p.mma.atom.is_some_and(|a| a.row().asynchronous())) {
        let message = format!("this cannot be a wgmma product: {}", refused.why);
        let d = Diagnostic::error(codes::NO_ATOM, k.stmt_spans[p.s], message);
        return Err(cx.report(d.with_note("name no instruction to have one chosen; `--remarks` says which")));
    }
    // A product with a written instruction and fragments in registers does not change.
    let laid_out = |m: &Mma| m.atom.is_some() && plain_var(k, m.a).is_some() && plain_var(k, m.b).is_some();
    if !products.iter().all(|p| laid_out(&p.mma)) {
        let what = if products.len() > 1 { "no product of this kernel is a wgmma" } else { missed_wgmma::ONE };
        let at: Vec<Stmt> = products.iter().map(|p| p.s).collect();
        missed_wgmma::report_missed(k, cx, what, &refused, &at);
    }
    Ok(refused)
}

/// Written roles, channels or instructions, which prevent automatic selection.
fn by_hand(k: &Kernel, stmts: &[Stmt], products: &[Product]) -> Option<Refused> {
    let at = |s: Stmt, why: &str| Some(Refused::by_request_at(k.stmt_spans[s], why));
    let operation = stmts.iter().find(|&&s| matches!(k.stmts[s], StmtData::Role { .. } | StmtData::Channel { .. }));
    if let Some(&s) = operation {
        return at(s, "the program has its own roles and channels, and this product is outside of the roles");
    }
    let written = |p: &Product| Some((p.s, p.mma.atom.filter(|a| !a.row().asynchronous())?.row().name));
    match (products.iter().find_map(written)?, products.len()) {
        ((s, name), 1) => at(s, &format!("`{name}` is written")),
        ((s, name), _) => {
            at(s, &format!("`{name}` is written for this one, and wgmma is chosen for all products or none"))
        }
    }
}

/// Checks that no written schedule item or switched-off pass prevents wgmma.
fn allowed(k: &Kernel, options: &Options) -> Result<(), Refused> {
    if let Some(pass) = options.missing_for_roles() {
        return Err(Refused::by_request(format!("`{pass}` is switched off")));
    }
    if k.schedule.k_warps.and_then(|e| k.as_int(e)).is_some_and(|n| n > 1) {
        return Err(Refused::by_request("warps share the reduction"));
    }
    Ok(())
}

/// Whether each product of a kernel is in a loop that only accumulates it, directly in the kernel's body or inside one
/// condition.
pub(crate) fn only_accumulated(k: &Kernel) -> bool {
    let outer = guarded(k);
    all_stmts(k, k.body).into_iter().filter(|&s| product_of(k, s).is_some()).all(|s| {
        let [.., (block, at), (body, _)] = path_to(k, s)[..] else { return false };
        let looped = matches!(k.stmts[k.blocks[block][at]], StmtData::For { unroll: false, .. });
        block == outer && looped && reduction::of(k, body).is_ok()
    })
}

/// How products are computed, if all products of a specialised kernel can use wgmma with some tile. Each is in a loop
/// that only accumulates it, with operands from producer warps.
pub(crate) fn of_kernel(k: &Kernel, options: &Options) -> Option<WgmmaForm> {
    let mut k = k.clone();
    let mut products: Vec<Product> = all_stmts(&k, k.body).into_iter().filter_map(|s| product_of(&k, s)).collect();
    products.iter_mut().for_each(|p| computed_operands(&mut k, p));
    let k = &k;
    if !only_accumulated(k) {
        return None;
    }
    for p in &products {
        let elem = |e, dim| described(k, e, dim).map(|o| o.elem);
        let inputs = Inputs { a: elem(p.mma.a, 1)?, b: elem(p.mma.b, 0)? };
        warpgroup::instruction(options, &p.mma, (inputs, warpgroup::acc_elem(k, p.acc)?)).ok()?;
    }
    allowed(k, options).ok()?;
    let loads = operand_sources::plan(k, options, &products, true).ok()?;
    let last = *products.last()?;
    let preferred = last.mma.swap || stored_column_major(k, last.acc);
    let (mut loaded, buffers) = (k.clone(), operand_sources::buffers(k, &products));
    operand_sources::load(&mut loaded, &mut products, &loads);
    if buffers.iter().any(|&v| producer_fills::by_threads(&loaded, v)) {
        return None;
    }
    let feeds = producer_fills::plan(&loaded, options, &buffers).ok()?;
    if feeds.iter().any(|f| written(&loaded, f.fill)) {
        return None;
    }
    let load = loads.of.last().copied().flatten().map(|load| load.second);
    let computed = [last.mma.a, last.mma.b].iter().position(|&e| plain_var(k, e).is_some()).map(|i| i == 1);
    let second = load.or(computed);
    Some(WgmmaForm { swap: second.unwrap_or(preferred), registers: second.is_some() })
}

/// Makes computed operands of a product register tiles, and loads their inputs to other tiles.
pub(super) fn computed_operands(k: &mut Kernel, p: &mut Product) {
    from_registers::name(k, p.s, &mut p.mma);
    k.exprs[p.src] = ExprData::Mma(p.mma);
    operand_loads::write_out(k, &p.mma);
}

/// A product for which the instruction keeps fewer bits of the sums than the accumulator has.
struct ShortAccumulator {
    s: Stmt,
    acc: Value,
    atom: Atom,
    /// Depth of the partial sums; `None`: they stay in the instruction.
    parts: Option<u64>,
}

/// Plans wgmma for all products of a kernel. If it fails, the kernel is partly changed.
fn plan(k: &mut Kernel, cx: &mut Cx<'_>, mut products: Vec<Product>, loads: &Loads) -> Result<KernelPlan, Stop> {
    allowed(k, cx.options)?;
    operand_sources::load(k, &mut products, loads);
    let (mut sites, mut short) = (Vec::new(), Vec::new());
    for (p, load) in products.iter().zip(&loads.of) {
        let site = site(k, cx, *p, *load)?;
        if warpgroup::promoted_of(k, site.atom, site.elem).is_some() {
            let parts =
                promotion::parts(k, p.s, (p.acc, &p.mma), site.atom).map_err(|why| why.or_at(k.stmt_spans[p.s]))?;
            short.push(ShortAccumulator { s: p.s, acc: p.acc, atom: site.atom, parts });
            sites.push(ProductSite { parts, ..site });
        } else {
            sites.push(site);
        }
    }
    for site in sites.iter_mut().filter(|site| site.parts.is_some()) {
        promotion::sum_separately(k, site.product.s);
        site.product = product_of(k, site.product.s).expect("it is a product");
    }
    let feeds = producer_copies(k, cx, &products, loads)?;
    let (decided, groups) = divide_products(k, &sites, !loads.converted.is_empty())?;
    Ok(KernelPlan { decided, feeds, short, groups })
}

/// The copies of the producer warps.
fn producer_copies(
    k: &Kernel,
    cx: &mut Cx<'_>,
    products: &[Product],
    loads: &Loads,
) -> Result<Vec<ProducerFill>, Refused> {
    let buffers = loads.buffers.iter().copied().fold(operand_sources::buffers(k, products), operand_sources::with);
    let (own, fed): (Vec<Value>, Vec<Value>) = buffers.into_iter().partition(|&v| producer_fills::by_threads(k, v));
    if let Some((&v, s)) = own.iter().find_map(|v| Some((v, partly(k, *v)?))) {
        let why = format!("part of `{}` is written, which a product reads", k.values[v].name);
        return Err(Refused::at(k.stmt_spans[s], why));
    }
    let mut feeds = producer_fills::plan(k, cx.options, &fed)?;
    if let Some(feed) = feeds.iter().find(|f| written(k, f.fill)) {
        let why = format!("how `{}` is copied is written", k.values[feed.buffer].name);
        return Err(Refused::by_request_at(k.stmt_spans[feed.fill], why));
    }
    feeds.extend(other_buffers(k, cx, &fed));
    if feeds.is_empty() {
        return Err(Refused::at(k.stmt_spans[products[0].s], NO_LOADS));
    }
    Ok(feeds)
}

/// The reason if there is nothing to load for producer warps.
const NO_LOADS: &str = "threads compute all that its products read: there is nothing for producer warps to load";

/// A statement that writes a part of a buffer.
fn partly(k: &Kernel, buffer: Value) -> Option<Stmt> {
    all_stmts(k, k.body).into_iter().find(|&s| match k.stmts[s] {
        StmtData::Copy { dst, .. } => {
            resolve_view(k, dst).is_some_and(|to| to.base == buffer) && !matches!(k.exprs[dst], ExprData::Ref(_))
        }
        _ => false,
    })
}

/// Copies to buffers that are no operands, such as a tile with one number for each row, which TMA can load as well:
/// otherwise the consumer threads would wait for them.
fn other_buffers(k: &Kernel, cx: &mut Cx<'_>, operands: &[Value]) -> Vec<ProducerFill> {
    let mut found = Vec::new();
    let allocated = |s: Stmt| match k.stmts[s] {
        StmtData::Alloc { value, .. } if !operands.contains(&value) => Some(value),
        _ => None,
    };
    for buffer in all_stmts(k, k.body).into_iter().filter_map(allocated) {
        // Boxes of other extents must be those of operands, or rows.
        let shape = k.tile_ty(buffer).and_then(|tile| k.const_shape(&tile.shape));
        let is_line = |s: &[u64]| s.iter().filter(|&&n| n > 1).count() <= 1;
        let odd = shape.is_none_or(|s| !s.iter().all(|n| n.is_power_of_two()) && !is_line(&s));
        match producer_fills::plan(k, cx.options, &[buffer]) {
            // Computed buffers are filled by threads.
            _ if odd || producer_fills::by_threads(k, buffer) => {}
            Ok(feeds) if feeds.iter().all(|f| f.mechanism == producer_fills::How::Tensor && !written(k, f.fill)) => {
                found.extend(feeds)
            }
            Ok(feeds) => {
                let why = feeds.iter().find_map(|f| f.refused.clone());
                if let Some(refused) = why.filter(|_| !feeds.iter().any(|f| written(k, f.fill))) {
                    let what = format!("the threads that multiply fill `{}`", k.values[buffer].name);
                    refused.report(k, cx, &what, (FastPath::Producer, operand_sources::fills(k, buffer)));
                }
            }
            Err(refused) => {
                let name = &k.values[buffer].name;
                let what = format!("the threads that multiply fill `{name}`");
                refused.report(k, cx, &what, (FastPath::Producer, operand_sources::fills(k, buffer)));
            }
        }
    }
    found
}

/// Whether attributes for a copy by threads are written.
pub(super) fn written(k: &Kernel, fill: Stmt) -> bool {
    matches!(&k.stmts[fill], StmtData::Copy { attrs, .. } if *attrs != CopyAttrs::default())
}

/// The facts about a product.
fn site(
    k: &Kernel,
    cx: &mut Cx<'_>,
    product: Product,
    load: Option<operand_sources::Load>,
) -> Result<ProductSite, Stop> {
    let Product { acc, mma, .. } = product;
    assert_eq!(k.exprs[mma.c], ExprData::Ref(acc), "bug: a product that does not add to what it is assigned to");
    let (a, b) = (operand(k, cx, mma.a, 1)?, operand(k, cx, mma.b, 0)?);
    let (Some(shape), Some(elem)) = (acc_shape(k, acc), warpgroup::acc_elem(k, acc)) else {
        return Err(Refused::from("the accumulator has no fixed shape").into());
    };
    let of = |o: &Operand| o.elem;
    let atom = warpgroup::instruction(cx.options, &mma, (Inputs { a: of(&a), b: of(&b) }, elem))
        .map_err(|refused| refused.or_at(k.stmt_spans[product.s]))?;
    let registers = [mma.a, mma.b].iter().position(|&e| plain_var(k, e).is_some()).map(|i| i == 1);
    if mma.swap && registers == Some(false) {
        return Err(Refused::by_request("`swap` is written, and the first operand is in registers").into());
    }
    let column_major = stored_column_major(k, acc);
    Ok(ProductSite { product, atom, elem, shape, registers, load, column_major, parts: None })
}

/// Writes the decisions. `asked`: the schedule gives the depth of promotion.
fn write(k: &mut Kernel, cx: &mut Cx<'_>, asked: bool, planned: KernelPlan) -> Result<(), Reported> {
    if k.schedule.threads.is_none() {
        let threads = planned.groups * u64::from(WARPGROUP * WARP);
        k.schedule.threads = Some(k.int(threads as i64, k.stmt_spans[planned.decided[0].product.s]));
    }
    for decided in &planned.decided {
        scale_factors::read_in_front(k, decided);
        for s in scale_factors::load_through_slots(k, cx.options, decided) {
            k.plans[s].producer = true;
        }
    }
    apply(k, cx, planned.decided)?;
    for feed in planned.feeds {
        k.plans[feed.fill].producer = true;
        gathered_rows::numbers_of_producer(k, feed.fill);
    }
    if !asked && !planned.short.is_empty() {
        let depth = planned.short.iter().find_map(|s| s.parts).unwrap_or(0);
        k.schedule.promote = Some(k.int(depth as i64, k.name_span));
    }
    for ShortAccumulator { s, acc, atom, parts } in planned.short {
        match parts {
            Some(depth) => promotion::remark_promoted(k, cx, k.stmt_spans[s], (atom, depth), acc),
            None if !asked => promotion::remark_not_promoted(cx, k.stmt_spans[s]),
            None => {}
        }
    }
    Ok(())
}

/// Whether the operands of a product are buffers that producer warps or the role's own threads fill, or one is and the
/// other is a register tile.
fn operands_are_filled(k: &Kernel, mma: &Mma) -> bool {
    let producers = k.plans.values().any(|p| p.producer);
    let fed = |v: Value| {
        k.statements().into_iter().any(|s| match &k.stmts[s] {
            StmtData::Copy { dst, .. } => k.plans[s].producer && matches!(k.exprs[*dst], ExprData::Ref(b) if b == v),
            _ => false,
        }) || producers && producer_fills::by_threads(k, v)
    };
    [mma.a, mma.b]
        .into_iter()
        .all(|e| plain_var(k, e).is_some() || resolve_view(k, e).is_some_and(|view| fed(view.base)))
}
