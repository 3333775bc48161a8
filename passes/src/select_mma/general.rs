//! wgmma for products wherever they stand: in any loop, several of them, chained, beside any other statements.
//!
//! The instruction reads shared memory through the asynchronous proxy. Its operands are buffers that producer warps fill ([`crate::feeds`]), as they
//! lie or transposed; the first one may be a register tile instead (the second, of a product that is computed transposed). What decides whether the
//! kernel is made of wgmma is therefore not the form of its loops, but whether each of these buffers can be fed.
//!
//! All warpgroups share the rows of each product, or its columns where it is computed transposed. Their number is chosen here, unless
//! `threads` says it: so that a thread has registers for the tiles that it holds.
//!
//! Sums of 8-bit floats that a loop carries are added up in parts ([`promoted`](super::promoted)).
//!
//! The copies that producer warps will run are marked (`@(producer)`), so that what was decided stands in the text.

use super::from_registers;
use super::in_roles::{self, Product};
use super::lost;
use super::promoted;
use super::warpgroup;
use crate::Cx;
use crate::analysis::live;
use crate::analysis::uses::all_stmts;
use crate::analysis::views::plain_var;
use crate::assign_layouts::Reduced;
use crate::feeds::{self, Feed};
use crate::refused::Refused;
use crate::roles::{BESIDE, consumer_registers};
use crate::select_mma::operands::operand;
use tilec_ir::atoms::{Atom, Inputs};
use tilec_ir::diag::{Reported, Span};
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, Mma, StmtData, ValueDef};
use tilec_ir::loss::FastPath;
use tilec_ir::target::{WARP, WARPGROUP};
use tilec_ir::typing::resolve_view;

/// Numbers of warpgroups that are tried, best first: two hide one another's waits and leave each most registers.
const GROUPS: [u32; 4] = [2, 3, 1, 4];

/// A product of the kernel.
#[derive(Clone, Copy)]
struct Site {
    s: Stmt,
    src: Expr,
    acc: Value,
    mma: Mma,
    /// The second operand is in registers, or the first; `None`: both are in shared memory.
    registers: Option<bool>,
}

/// Chooses wgmma for all products of a kernel without roles, if it can be had for all of them. Gives back why there is none: of several products a remark
/// has said it, of a single one `asynchronous` may know better.
pub(super) fn select(k: &mut Kernel, cx: &mut Cx<'_>) -> Result<Option<Refused>, Reported> {
    if !cx.enabled || !cx.options.target.has_tensor_copies() {
        return Ok(None);
    }
    let stmts = all_stmts(k, k.body);
    // Of products in roles `in_roles` has seen already.
    let outside = |s: &&Stmt| !in_roles::in_role(k, **s);
    let products: Vec<(Stmt, Expr, Value, Mma)> =
        stmts.iter().filter(outside).filter_map(|&s| product_of(k, s)).collect();
    let several = products.len() > 1;
    if let Some(refused) = by_hand(k, &stmts, &products) {
        return Ok(several.then(|| none(k, cx, refused, &products)));
    }
    // Of a loop that copies and multiplies, and nothing else, `asynchronous` finds the tile of a warpgroup.
    let one_loop = products.len() == 1 && warpgroup::of_kernel(k, cx.options).is_some();
    if products.is_empty() || one_loop {
        return Ok(None);
    }
    let products: Vec<(Stmt, Expr, Value, Mma)> = products
        .into_iter()
        .map(|(s, src, acc, mut mma)| {
            from_registers::name(k, s, &mut mma);
            k.exprs[src] = ExprData::Mma(mma);
            (s, src, acc, mma)
        })
        .collect();
    let before = k.clone();
    let planned = match short_sums(k, cx, &products)? {
        Ok(short) => {
            let products = in_parts(k, &short, &products);
            plan(k, cx, &products)?.map(|planned| (planned, short))
        }
        Err(refused) => Err(refused),
    };
    let planned = planned.and_then(|((found, mut feeds), short)| {
        let buffers: Vec<Value> = feeds.iter().map(|f| f.buffer).collect();
        feeds.extend(beside(k, cx, &buffers));
        match feeds.is_empty() {
            true => Err(Refused::at(k.stmt_spans[products[0].0], NO_LOADS)),
            false => Ok(((found, feeds), short)),
        }
    });
    match planned {
        Ok(((found, feeds), short)) => {
            in_roles::settle(k, cx, found)?;
            for feed in feeds {
                k.plans[feed.fill].producer = true;
            }
            match (before.schedule.promote, short.iter().find_map(|s| s.parts)) {
                (None, None) => {}
                (None, Some(depth)) => k.schedule.promote = Some(k.int(depth as i64, k.name_span)),
                (asked, _) => k.schedule.promote = asked,
            }
            for Short { s, acc, atom, parts } in short {
                match parts {
                    Some(depth) => promoted::say(k, cx, k.stmt_spans[s], (atom, depth), acc),
                    None if before.schedule.promote.is_none() => promoted::say_none(cx, k.stmt_spans[s]),
                    None => {}
                }
            }
            Ok(None)
        }
        Err(refused) => {
            *k = before;
            // Of one product an operand may come from registers, or be converted there.
            let one = warpgroup::of_one_product(k, cx.options).is_some();
            Ok(match (one, several) {
                (true, _) => None,
                (false, true) => Some(none(k, cx, refused, &products)),
                (false, false) => Some(refused),
            })
        }
    }
}

/// Why producer warps have nothing to do.
const NO_LOADS: &str = "threads compute all that its products read: there is nothing for producer warps to load";

/// Says why a kernel has no wgmma.
fn none(k: &Kernel, cx: &mut Cx<'_>, refused: Refused, products: &[(Stmt, Expr, Value, Mma)]) -> Refused {
    let at: Vec<Stmt> = products.iter().map(|p| p.0).collect();
    lost::say(k, cx, "no product of this kernel is a wgmma", &refused, &at);
    refused
}

/// What of a kernel's roles, channels and instructions a person wrote: nothing is chosen beside that.
fn by_hand(k: &Kernel, stmts: &[Stmt], products: &[(Stmt, Expr, Value, Mma)]) -> Option<Refused> {
    let at = |s: Stmt, why: &str| Some(Refused::asked_at(k.stmt_spans[s], why));
    let operation = stmts.iter().find(|&&s| matches!(k.stmts[s], StmtData::Role { .. } | StmtData::Channel { .. }));
    if let Some(&s) = operation {
        return at(s, "roles and channels are written, and a product outside of the roles is not theirs");
    }
    let (s, name) = products.iter().find_map(|&(s, .., m)| Some((s, m.atom?.row().name)))?;
    at(s, &format!("`{name}` is written for this one, and wgmma is chosen for all products or none"))
}

fn product_of(k: &Kernel, s: Stmt) -> Option<(Stmt, Expr, Value, Mma)> {
    let StmtData::Assign { dst, src } = k.stmts[s] else { return None };
    match k.exprs[src] {
        ExprData::Mma(mma) => Some((s, src, dst, mma)),
        _ => None,
    }
}

/// A product whose sums the instruction would keep in fewer bits than its accumulator has.
struct Short {
    s: Stmt,
    acc: Value,
    atom: Atom,
    /// How deep the parts are that they are added up in; `None`: they stay in the instruction.
    parts: Option<u64>,
}

/// The products whose sums the instruction would keep in fewer bits; inside, why one of them is none of warpgroups.
fn short_sums(
    k: &Kernel,
    cx: &mut Cx<'_>,
    products: &[(Stmt, Expr, Value, Mma)],
) -> Result<Result<Vec<Short>, Refused>, Reported> {
    let mut short = Vec::new();
    for &(s, _, acc, mma) in products {
        let (a, b) = (operand(k, cx, mma.a, 1)?, operand(k, cx, mma.b, 0)?);
        let Some(elem) = warpgroup::acc_elem(k, acc) else { continue };
        let atom = mma.atom.or_else(|| warpgroup::atom(cx.options.target, (Inputs { a: a.elem, b: b.elem }, elem)));
        let Some(atom) = atom.filter(|&atom| warpgroup::promoted_of(k, atom, elem).is_some()) else { continue };
        match promoted::parts(k, s, (acc, &mma), atom) {
            Ok(parts) => short.push(Short { s, acc, atom, parts }),
            Err(refused) => return Ok(Err(refused.or_at(k.stmt_spans[s]))),
        }
    }
    Ok(Ok(short))
}

/// Has products sum into tiles of their own whose sums are added up in parts; what remains stays in the instruction. Gives back all products.
fn in_parts(k: &mut Kernel, short: &[Short], products: &[(Stmt, Expr, Value, Mma)]) -> Vec<(Stmt, Expr, Value, Mma)> {
    for product in short.iter().filter(|s| s.parts.is_some()) {
        promoted::sum_apart(k, product.s);
    }
    if !short.is_empty() {
        k.schedule.promote = Some(k.int(0, k.name_span));
    }
    products.iter().filter_map(|&(s, ..)| product_of(k, s)).collect()
}

type Planned = (Vec<Product>, Vec<Feed>);

fn plan(
    k: &mut Kernel,
    cx: &mut Cx<'_>,
    products: &[(Stmt, Expr, Value, Mma)],
) -> Result<Result<Planned, Refused>, Reported> {
    if let Some(pass) = cx.options.missing_for_roles() {
        return Ok(Err(Refused::asked_at(k.stmt_spans[products[0].0], format!("`{pass}` is switched off"))));
    }
    if k.schedule.k_warps.and_then(|e| k.as_int(e)).is_some_and(|n| n > 1) {
        return Ok(Err(Refused::asked_at(k.stmt_spans[products[0].0], "warps share the reduction")));
    }
    let mut sites = Vec::new();
    let mut buffers = Vec::new();
    for &(s, src, acc, mma) in products {
        match site(k, (s, src, acc), mma, &mut buffers) {
            Ok(site) => sites.push(site),
            Err(refused) => return Ok(Err(refused)),
        }
    }
    let (own, fed): (Vec<Value>, Vec<Value>) = buffers.into_iter().partition(|&v| feeds::by_threads(k, v));
    if let Some((&v, s)) = own.iter().find_map(|v| Some((v, partly(k, *v)?))) {
        let why = format!("part of `{}` is written, which a product reads", k.values[v].name);
        return Ok(Err(Refused::at(k.stmt_spans[s], why)));
    }
    let feeds = match feeds::plan(k, cx.options, &fed) {
        Ok(feeds) => feeds,
        Err(refused) => return Ok(Err(refused)),
    };
    if let Some(feed) = feeds.iter().find(|f| written(k, f.fill)) {
        let why = format!("how `{}` is copied is written", k.values[feed.buffer].name);
        return Ok(Err(Refused::asked_at(k.stmt_spans[feed.fill], why)));
    }
    Ok(shared_out(k, cx, &sites)?.map(|found| (found, feeds)))
}

/// A statement that writes some of a buffer.
fn partly(k: &Kernel, buffer: Value) -> Option<Stmt> {
    all_stmts(k, k.body).into_iter().find(|&s| match k.stmts[s] {
        StmtData::Copy { dst, .. } => {
            resolve_view(k, dst).is_some_and(|to| to.base == buffer) && !matches!(k.exprs[dst], ExprData::Ref(_))
        }
        _ => false,
    })
}

/// The copies into other buffers than operands that the accelerator can do as well, such as a tile with one number for each row: threads that
/// multiply would wait for them.
fn beside(k: &Kernel, cx: &mut Cx<'_>, operands: &[Value]) -> Vec<Feed> {
    let mut found = Vec::new();
    let allocated = |s: Stmt| match k.stmts[s] {
        StmtData::Alloc { value, .. } if !operands.contains(&value) => Some(value),
        _ => None,
    };
    for buffer in all_stmts(k, k.body).into_iter().filter_map(allocated) {
        match feeds::plan(k, cx.options, &[buffer]) {
            // What threads compute is theirs.
            _ if feeds::by_threads(k, buffer) => {}
            Ok(feeds) if feeds.iter().all(|f| f.how == feeds::How::Tensor && !written(k, f.fill)) => {
                found.extend(feeds)
            }
            Ok(_) => {}
            Err(refused) => {
                let name = &k.values[buffer].name;
                let what = format!("the threads that multiply fill `{name}`");
                refused.say(k, cx, &what, (FastPath::Producer, fills(k, buffer)));
            }
        }
    }
    found
}

/// The copies into a buffer.
fn fills(k: &Kernel, buffer: Value) -> Vec<Stmt> {
    let into = |&s: &Stmt| matches!(k.stmts[s], StmtData::Copy { dst, .. } if resolve_view(k, dst).is_some_and(|to| to.base == buffer));
    all_stmts(k, k.body).into_iter().filter(into).collect()
}

/// Whether a person wrote how threads do a copy.
fn written(k: &Kernel, fill: Stmt) -> bool {
    matches!(&k.stmts[fill], StmtData::Copy { attrs, .. } if *attrs != tilec_ir::kernel::CopyAttrs::default())
}

/// Where the operands of a product are; buffers go to `buffers`.
fn site(k: &Kernel, (s, src, acc): (Stmt, Expr, Value), mma: Mma, buffers: &mut Vec<Value>) -> Result<Site, Refused> {
    let mut shared = Vec::new();
    for e in [mma.a, mma.b] {
        let whole = match k.exprs[e] {
            ExprData::Transpose(inner) => inner,
            _ => e,
        };
        match k.exprs[whole] {
            ExprData::Ref(v) if matches!(k.values[v].def, ValueDef::Smem(_)) => {
                shared.push(true);
                if !buffers.contains(&v) {
                    buffers.push(v);
                }
            }
            _ if plain_var(k, e).is_some() => shared.push(false),
            _ => {
                let why = "this operand is neither a whole buffer in shared memory nor a register tile";
                let help = "copy what is multiplied into a buffer of its own";
                return Err(Refused::at(k.expr_spans[e], why).help(help));
            }
        }
    }
    let registers = match shared[..] {
        [true, true] => None,
        [false, true] => Some(false),
        [true, false] => Some(true),
        _ => {
            let why = "both operands are in registers; wgmma reads the second from shared memory";
            let help = "copy the second operand into a buffer (`smem`)";
            return Err(Refused::at(k.expr_spans[src], why).help(help));
        }
    };
    Ok(Site { s, src, acc, mma, registers })
}

/// How warpgroups share out all products, in the first number of them that has registers for the tiles.
fn shared_out(k: &mut Kernel, cx: &mut Cx<'_>, sites: &[Site]) -> Result<Result<Vec<Product>, Refused>, Reported> {
    let span = k.stmt_spans[sites[0].s];
    let scheduled = k.schedule.threads.and_then(|e| k.as_int(e));
    let mut first: Option<Refused> = None;
    // Who has how much of a tile does not change what is reduced.
    let reduced = Reduced::of(k);
    for groups in GROUPS {
        let threads = i64::from(groups * WARPGROUP * WARP);
        if scheduled.is_some_and(|n| n != threads) {
            continue;
        }
        if scheduled.is_none() {
            k.schedule.threads = Some(k.int(threads, span));
        }
        let refused = match all_of(k, cx, sites, &reduced)? {
            Err(refused) => refused,
            Ok(found) => match room(k, groups, span) {
                Ok(()) => return Ok(Ok(found)),
                Err(refused) => refused,
            },
        };
        first.get_or_insert(refused);
    }
    let none = || Refused::asked_at(span, "`threads` is no multiple of 128 up to 512");
    Ok(Err(first.unwrap_or_else(none)))
}

fn all_of(
    k: &mut Kernel,
    cx: &mut Cx<'_>,
    sites: &[Site],
    reduced: &Reduced,
) -> Result<Result<Vec<Product>, Refused>, Reported> {
    let mut found = Vec::new();
    for site in sites {
        match in_roles::product(k, cx, (site.s, site.src, site.acc), site.mma, (site.registers, reduced))? {
            Ok(product) => found.push(product),
            Err(refused) => return Ok(Err(refused.or_at(k.stmt_spans[site.s]))),
        }
    }
    Ok(Ok(found))
}

/// Whether a thread of so many warpgroups has registers for the tiles that live at the same time.
fn room(k: &Kernel, groups: u32, span: Span) -> Result<(), Refused> {
    let tiles = live::most_of_warpgroups(k, u64::from(groups));
    let own = u64::try_from(consumer_registers(k, groups * WARPGROUP)).unwrap_or(0);
    if tiles + BESIDE <= own {
        return Ok(());
    }
    let why = format!(
        "a thread of {groups} warpgroup(s) would hold {tiles} registers of tiles and {BESIDE} beside them, and has {own}"
    );
    Err(Refused::room(why).or_at(span))
}

/// Whether the operands of a product are buffers that producer warps or the threads that multiply fill, or one is and the other is a register tile.
pub(super) fn fed(k: &Kernel, mma: &Mma) -> bool {
    let producers = k.plans.values().any(|p| p.producer);
    let fed = |v: Value| {
        k.statements().into_iter().any(|s| match &k.stmts[s] {
            StmtData::Copy { dst, .. } => k.plans[s].producer && matches!(k.exprs[*dst], ExprData::Ref(b) if b == v),
            _ => false,
        }) || producers && feeds::by_threads(k, v)
    };
    [mma.a, mma.b]
        .into_iter()
        .all(|e| plain_var(k, e).is_some() || resolve_view(k, e).is_some_and(|view| fed(view.base)))
}
