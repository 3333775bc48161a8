//! Products that warpgroups compute: what becomes of a statement.

use super::warpgroup::{self, Way};
use super::{lost, promoted};
use crate::Cx;
use crate::analysis::uses::{all_stmts, place_of};
use crate::analysis::views::plain_var;
use crate::analysis::width::known_elem;
use crate::feeds;
use crate::refused::Refused;
use crate::select_mma::operands::{
    Operand, acc_shape, operand_name, reduced_along, scheduled_tile, stored_column_major,
};
use crate::select_mma::slices::insert_at;
use crate::select_mma::tiles::{NoTile, Owners, Unfit, Wanted};
use crate::specialize::odd_extents;
use tilec_ir::atoms::Atom;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported, Span};
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::handover::has_roles;
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, Mma, StmtData, ValueDef};
use tilec_ir::target::MAX_THREADS;
use tilec_ir::types::{Elem, ElemRef, TileTy};
use tilec_ir::typing::{fixed_shape, resolve_view};

/// A register tile that the buffer `e` is copied to, in front of the product `s`. What was converted on its way into the buffer is so on its way
/// out of it.
fn load_fragment(k: &mut Kernel, s: Stmt, e: Expr, elem: Elem) -> Expr {
    let span = k.expr_spans[e];
    let shape = fixed_shape(k, e).expect("an operand has extents");
    let name = format!("{}_frag", operand_name(k, e));
    let extents = shape.iter().map(|&n| k.int(n as i64, span)).collect();
    let tile = TileTy::registers(ElemRef::Known(elem), extents, None);
    let fragment = k.value(&name, span, ValueDef::Var(tile));
    let declared = k.stmt(StmtData::Var { value: fragment, init: None }, span);
    let place = place_of(k, s);
    let (mut src, mut conversion) = (e, None);
    let buffer = resolve_view(k, e).expect("an operand is a buffer").base;
    for fill in all_stmts(k, k.body) {
        if let StmtData::Copy { dst, .. } = k.stmts[fill]
            && matches!(k.exprs[dst], ExprData::Ref(v) if v == buffer)
        {
            conversion = conversion.or(warpgroup::unconvert(k, fill));
        }
    }
    match conversion.map(|e| k.exprs[e].clone()) {
        Some(ExprData::Lookup { table, .. }) => src = k.expr(ExprData::Lookup { table, index: e }, span),
        _ if known_elem(k, buffer) != elem => {
            src = k.expr(ExprData::Cast { elem: ElemRef::Known(elem), arg: e }, span);
        }
        _ => {}
    }
    let dst = k.value_ref(fragment, span);
    let copy = k.stmt(StmtData::Copy { src, dst, attrs: CopyAttrs::default() }, span);
    insert_at(k, place, vec![declared, copy]);
    k.value_ref(fragment, span)
}

/// Refuses extents that are no powers of two, where there is no product of warpgroups and why.
pub(super) fn refuse_odd_extents(k: &Kernel, cx: &mut Cx<'_>, why: &str) -> Result<(), Reported> {
    let mut result = Ok(());
    for d in odd_extents(k) {
        let note = format!(
            "products of warpgroups may have 192 rows, and {}, but there is none here: {why}",
            crate::analysis::wgmma::COLUMN_COUNTS
        );
        result = Err(cx.report(d.with_note(note)));
    }
    result
}

/// The instruction of warpgroups for a product, if it is one; sets the warp tile and the thread count. `none`: why the products of the kernel are none
/// (`general`), which is said already where there are several.
pub(super) fn choose(
    k: &mut Kernel,
    cx: &mut Cx<'_>,
    s: Stmt,
    acc: Value,
    mma: &Mma,
    operands: (&Operand, &Operand),
    none: Option<&Refused>,
) -> Result<Option<(Atom, Way)>, Reported> {
    let span = k.stmt_spans[s];
    let (Some(shape), Some(elem)) = (acc_shape(k, acc), warpgroup::acc_elem(k, acc)) else { return Ok(None) };
    if !cx.enabled || !cx.options.target.has_tensor_copies() {
        refuse_odd_extents(k, cx, "`select-mma` is switched off")?;
        return Ok(None);
    }
    // Said already (`in_roles`).
    if mma.atom.is_none() && super::in_roles::in_role(k, s) {
        return Ok(None);
    }
    if let (None, Some(why), true) = (mma.atom, none, several(k)) {
        refuse_odd_extents(k, cx, &why.why)?;
        return Ok(None);
    }
    let preferred = mma.swap || stored_column_major(k, acc);
    let found = warpgroup::possible(k, cx.options, mma, operands, (elem, preferred))
        .and_then(|(atom, way)| tiled(k, mma, (atom, way), (shape, elem)));
    let (atom, tile, way) = match found {
        Ok(found) => found,
        Err(refused) if mma.atom.is_some_and(|a| a.row().asynchronous()) => {
            let message = format!("this cannot be a product of warpgroups: {}", refused.why);
            return Err(cx.report(
                Diagnostic::error(codes::NO_ATOM, span, message)
                    .with_note("name no instruction to have one chosen; `--remarks` says which"),
            ));
        }
        Err(refused) => {
            // Whole buffers are asked for in a loop that does nothing else; what else an operand may be `general` has tried.
            let whole = [mma.a, mma.b].into_iter().all(|e| warpgroup::whole_buffer(k, e).is_ok());
            let refused = none.filter(|_| !whole).cloned().unwrap_or(refused);
            refuse_odd_extents(k, cx, &refused.why)?;
            lost::say(k, cx, lost::ONE, &refused, &[s]);
            return Ok(None);
        }
    };
    if k.schedule.warp_tile.is_none() {
        k.schedule.warp_tile = Some((k.int(tile.0 as i64, span), k.int(tile.1 as i64, span)));
    }
    warp_tile(k, cx, shape, elem.bytes(), span)?;
    if let Some(depth) = warpgroup::promoted_of(k, atom, elem).filter(|_| k.schedule.promote.is_none()) {
        k.schedule.promote = Some(k.int(depth as i64, span));
    }
    say(k, cx, span, mma, operands, (atom, tile, way), preferred);
    Ok(Some((atom, way)))
}

/// The tile of a warpgroup for a product by an instruction, and whether it is computed transposed in the end; or why there is none.
fn tiled(
    k: &Kernel,
    mma: &Mma,
    (atom, way): (Atom, Way),
    (shape, elem): ((u64, u64), Elem),
) -> Result<(Atom, (u64, u64), Way), Refused> {
    let depth = fixed_shape(k, mma.a).map(|s| s[1]);
    // Who takes tiles in turns computes each by itself.
    let whole = crate::roles::ping_pong(k).map(|_| Some(shape));
    let scheduled = match scheduled_tile(k).or(whole) {
        Some(None) => return Err(Refused::asked("the warp tile is not constant")),
        scheduled => scheduled.flatten(),
    };
    let reduced = reduced_along(k, shape);
    let promoted = warpgroup::promoted_of(k, atom, elem);
    let block = (shape.0, shape.1, depth.unwrap_or(1));
    let wanted = Wanted { atom, way, block, acc: elem, scheduled, promoted, reduced: &reduced };
    let asked = scheduled.is_some();
    let tiled = wanted.plan(k).map_err(|why| match why {
        NoTile::Deep { depth, most } => promoted::deep(depth, most),
        NoTile::Shape => no_tile(&wanted).into(),
        NoTile::Instruction { wanted, has } => Refused::room(format!(
            "an instruction of so many columns takes {wanted} registers, and threads of so many warps start with {has}"
        )),
    });
    let tiled = tiled.map_err(|refused| refused.asked_if(asked))?;
    match tiled.has_room {
        false if tiled.sums > 1 => Err(Refused::room(TIGHT).asked_if(asked)),
        false if way.registers => {
            Err(Refused::room("a thread has no room for the sums and the operand").asked_if(asked))
        }
        _ => Ok((atom, tiled.tile, tiled.way)),
    }
}

const TIGHT: &str = "a thread has no room for the sums and their parts (`promote`)";

/// Why there is no tile.
fn no_tile(wanted: &Wanted<'_>) -> String {
    let way = wanted.way;
    if wanted.sums() > 1 && wanted.tile(1, wanted.reduced).is_some() {
        return TIGHT.to_owned();
    }
    if way.registers {
        let dim = if way.swap { "columns" } else { "rows" };
        return format!(
            "the operand that is not contiguous along the reduction comes from registers: a warpgroup computes 64 {dim} or a multiple, 8 to 256 \
             of the others, and a thread has {} registers for all",
            crate::roles::ACCUMULATORS
        );
    }
    if wanted.tile(1, &[]).is_some() {
        return "the tile is reduced along a dimension of which several warps would have elements".to_owned();
    }
    format!(
        "a warpgroup computes 64 rows or a multiple, and {}, or transposed; of 192 rows 64, and all columns",
        crate::analysis::wgmma::COLUMN_COUNTS
    )
}

/// Says which instruction a product has, in which tile, and why an operand comes from registers.
fn say(
    k: &Kernel,
    cx: &mut Cx<'_>,
    span: Span,
    mma: &Mma,
    (a, b): (&Operand, &Operand),
    (atom, (wm, wn), way): (Atom, (u64, u64), Way),
    preferred: bool,
) {
    let why = match (way.swap, preferred) {
        _ if way.registers => "",
        (false, _) => "",
        (true, true) => ", transposed because the result is stored column-major",
        (true, false) => ", transposed because the instruction has 64 rows",
    };
    let name = atom.row().name;
    let message = format!("`{name}` on shared memory, {wm}x{wn} of a warpgroup of 128 threads{why}");
    if !way.registers {
        return cx.remark(span, message);
    }
    let (e, transposed) = if way.swap { (mma.b, ", transposed") } else { (mma.a, "") };
    let name = resolve_view(k, e).map_or_else(String::new, |v| k.values[v.base].name.clone());
    let converted = !warpgroup::reads_registers(a.elem) || a.k_contiguous && b.k_contiguous;
    let why = if converted { "it is converted" } else { "it is not contiguous along the reduction" };
    cx.remark(span, format!("{message}{transposed}: `{name}` comes from registers, for {why}"));
}

/// Whether a kernel has more than one product.
pub(super) fn several(k: &Kernel) -> bool {
    let product =
        |&s: &Stmt| matches!(k.stmts[s], StmtData::Assign { src, .. } if matches!(k.exprs[src], ExprData::Mma(_)));
    all_stmts(k, k.body).iter().filter(|s| product(s)).count() > 1
}

/// Whether both operands are slots of channels, or buffers that the threads of a role fill which multiplies them, or the instruction's A is a register tile.
pub(super) fn in_slots(k: &Kernel, mma: &Mma) -> bool {
    let base = |e: Expr| resolve_view(k, e).map(|v| v.base);
    let slot = |e: Expr| base(e).is_some_and(|v| matches!(k.values[v].def, ValueDef::Channel { .. }));
    let own =
        |e: Expr| base(e).is_some_and(|v| matches!(k.values[v].def, ValueDef::Smem(_)) && feeds::by_threads(k, v));
    let (a, b) = if mma.swap { (mma.b, mma.a) } else { (mma.a, mma.b) };
    let decided = |e: Expr| slot(e) || own(e);
    let in_roles = slot(a) || slot(b) || has_roles(k);
    in_roles && (decided(a) || plain_var(k, a).is_some()) && decided(b)
}

/// The product as the instruction computes it, with an operand in registers in front of it; the copies that fill its operands are the producer's.
pub(super) fn product(
    k: &mut Kernel,
    cx: &mut Cx<'_>,
    s: Stmt,
    src: Expr,
    (atom, way): (Atom, Way),
    mma: Mma,
    elem: Elem,
) -> Result<(), Reported> {
    let mut mma = Mma { atom: Some(atom), swap: way.swap, ..mma };
    if way.registers {
        let e = if way.swap { &mut mma.b } else { &mut mma.a };
        *e = load_fragment(k, s, *e, elem);
    }
    k.exprs[src] = ExprData::Mma(mma);
    let buffers: Vec<Value> = [mma.a, mma.b].into_iter().filter_map(|e| fed_from(k, s, e)).collect();
    let feeds = feeds::plan(k, cx.options, &buffers)
        .unwrap_or_else(|refused| panic!("bug: operands of a wgmma that cannot be fed: {}", refused.why));
    for feed in feeds {
        k.plans[feed.fill].producer = true;
    }
    let StmtData::Assign { dst: acc, .. } = k.stmts[s] else { unreachable!("a product is assigned") };
    if let Some(depth) = warpgroup::acc_elem(k, acc).and_then(|elem| warpgroup::promoted_of(k, atom, elem)) {
        promoted::sum_apart(k, s);
        promoted::say(k, cx, k.stmt_spans[s], (atom, depth), acc);
    }
    Ok(())
}

/// The buffer that an operand of the product `s` is, or that it is loaded from in front of it.
fn fed_from(k: &Kernel, s: Stmt, e: Expr) -> Option<Value> {
    let base = resolve_view(k, e)?.base;
    if matches!(k.values[base].def, ValueDef::Smem(_)) {
        return Some(base);
    }
    let (block, index) = place_of(k, s);
    k.blocks[block][..index].iter().rev().find_map(|&load| match k.stmts[load] {
        StmtData::Copy { src, dst, .. } if plain_var(k, dst) == Some(base) => {
            resolve_view(k, warpgroup::unconverted(k, src).unwrap_or(src)).map(|v| v.base)
        }
        _ => None,
    })
}

/// The tile of a warpgroup: as scheduled, else of 64 rows and columns; sets the thread count.
pub(super) fn warp_tile(
    k: &mut Kernel,
    cx: &mut Cx<'_>,
    (bm, bn): (u64, u64),
    acc_bytes: u32,
    span: Span,
) -> Result<(u64, u64), Reported> {
    let mut refuse = |at: Span, message: String, note: &str| {
        Err(cx.report(Diagnostic::error(codes::WARP_TILE, at, message).with_note(note)))
    };
    let (wm, wn) = match scheduled_tile(k) {
        Some(Some(tile)) => tile,
        Some(None) => return refuse(span, "the warp tile is not constant".to_owned(), "give it numbers"),
        None => (bm.min(64), bn.min(64)),
    };
    let threads = k.schedule.threads.and_then(|e| k.as_int(e));
    // A number that is none of threads is none that a tile takes either.
    let written = threads.map(|t| u64::try_from(t).unwrap_or(0));
    let needed = match Owners::Warpgroups.fit((bm, bn), (wm, wn), acc_bytes, written) {
        Ok(needed) => needed,
        Err(Unfit::Divides) => {
            let at = k.schedule.warp_tile.map_or(span, |(m, n)| k.expr_spans[m].to(k.expr_spans[n]));
            let note = "both extents must be powers of two and at most those of the accumulator";
            return refuse(at, format!("warp tile {wm}x{wn} does not divide the {bm}x{bn} accumulator"), note);
        }
        Err(Unfit::Registers(registers)) => {
            let message = format!("a {wm}x{wn} warp tile needs {registers} accumulator registers per thread");
            return refuse(span, message, "a thread has 255 registers; use more warps (a smaller `warp_tile`)");
        }
        Err(Unfit::TooMany(needed)) => {
            let message =
                format!("{bm}x{bn} in {wm}x{wn} warp tiles needs {needed} threads, a block has at most {MAX_THREADS}");
            return refuse(span, message, "enlarge `warp_tile`");
        }
        Err(Unfit::Threads(needed)) => {
            let t = threads.expect("threads are written");
            let message = format!("{bm}x{bn} in {wm}x{wn} warp tiles takes {needed} threads, the schedule says {t}");
            return refuse(span, message, "remove `threads` or change `warp_tile`");
        }
    };
    if threads.is_none() {
        k.schedule.threads = Some(k.int(needed as i64, span));
    }
    if k.schedule.warp_tile.is_none() {
        k.schedule.warp_tile = Some((k.int(wm as i64, span), k.int(wn as i64, span)));
    }
    Ok((wm, wn))
}
