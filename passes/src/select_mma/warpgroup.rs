//! Products of warpgroups (`wgmma`): whether a product can be one.
//!
//! The instruction reads its operands from shared memory, through the same proxy through which tensor copies write. So it is
//! taken where the operands are buffers that producer warps can fill, which [`feeds`] says of every copy: there is nothing
//! between the two then but the barrier that the copies' bytes complete. What tensor copies cannot move threads fill. The copies
//! are marked for warps of their own (`@(producer)`).
//!
//! Needs: operands named as buffers. Decides: the instruction, and whether an operand comes from registers. Off: there are none.
//!
//! Of types other than those of 16 bits the instruction reads operands along the reduction alone. It takes one of its two, A, from registers as
//! well, and of 32 bits threads can read what they need of it from any buffer. So of tf32 one operand may lie otherwise, and the
//! product is computed transposed where that is the second:
//!
//! ```text
//! copy b -> b_frag; acc = mma<m64k8_tf32 swap>(a, b_frag, acc)
//! ```
//!
//! And of the other types one operand may be converted there: tensor copies do not convert, and threads do on the way from the buffer.

use crate::Options;
use crate::analysis::facts::{Facts, contiguous_dim};
use crate::analysis::reduction;
use crate::analysis::uses::{all_stmts, mentions, path_to, stmt_exprs};
pub(crate) use crate::analysis::wgmma::THREE;
use crate::analysis::wgmma::{ROWS, is_rows};
use crate::analysis::width::known_elem;
use crate::feeds;
use crate::refused::Refused;
use crate::roles::{ACCUMULATORS, consumer_registers, share};
use crate::select_mma::atoms::fits;
use crate::select_mma::operands::{Operand, described, known, stored_column_major};
use crate::tensor_copies;
use tilec_ir::atoms::{Atom, Inputs, Unit};
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, Mma, StmtData, ValueDef};
use tilec_ir::roles::PRODUCER_WARPS;
use tilec_ir::target::{MAX_THREADS, Target, WARP, WARPGROUP};
use tilec_ir::types::{Elem, ElemRef};
use tilec_ir::typing::resolve_view;

/// The instruction for inputs and sums of these types, whatever the tile.
pub(crate) fn atom(target: Target, (inputs, acc): (Inputs, Elem)) -> Option<Atom> {
    Atom::all().find(|a| {
        let row = a.row();
        row.asynchronous() && target.at_least(row.first) && row.types_for(inputs, acc).is_some()
    })
}

/// Whether the instruction reads operands that are contiguous along the other dimension as well as along the reduction.
pub(crate) fn reads_both_orders(input: Elem) -> bool {
    input.bytes() == 2
}

/// Whether the instruction's A may be in registers instead, where its order does not matter: threads read whole elements of a buffer, and of
/// less than 32 bits several of them would come from different rows.
pub(crate) fn reads_registers(input: Elem) -> bool {
    input.bytes() == 4
}

/// How a product of warpgroups is computed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Way {
    /// Transposed: rather so than not.
    pub(crate) swap: bool,
    /// The instruction's A comes from registers: then it is this operand, transposed or not.
    pub(crate) registers: bool,
}

/// How a product is computed, better transposed or not if the operands do not say: `None` if its operands are not along the reduction where
/// they have to be.
fn way(elem: Elem, (a, b): (bool, bool), preferred: bool) -> Option<Way> {
    match (a, b) {
        _ if reads_both_orders(elem) => Some(Way { swap: preferred, registers: false }),
        (true, true) => Some(Way { swap: preferred, registers: false }),
        (false, false) => None,
        _ => reads_registers(elem).then_some(Way { swap: a, registers: true }),
    }
}

/// How a product is computed of whose operands one, `buffer`, is converted from a tensor that is contiguous along its dimension `contiguous`.
fn converting(
    k: &Kernel,
    way: Way,
    mma: &Mma,
    (left, right): (Value, Value),
    (buffer, contiguous): (Value, Option<usize>),
) -> Result<Way, String> {
    let (swap, operand, reduced) = if buffer == left { (false, mma.a, 1) } else { (true, mma.b, 0) };
    let reduced = if matches!(k.exprs[operand], ExprData::Transpose(_)) { 1 - reduced } else { reduced };
    if left == right || way.registers && way.swap != swap || mma.swap && !swap {
        return Err("the operand that is converted would be the instruction's second".to_owned());
    }
    if contiguous != Some(reduced) {
        return Err("the operand that is converted is not contiguous along the reduction".to_owned());
    }
    Ok(Way { swap, registers: true })
}

/// What a conversion converts: to another type, or to the numbers of a table.
pub(super) fn unconverted(k: &Kernel, e: Expr) -> Option<Expr> {
    match k.exprs[e] {
        ExprData::Cast { arg, .. } | ExprData::Lookup { index: arg, .. } => Some(arg),
        _ => None,
    }
}

/// Why a product is none of warpgroups; `Ok`: the instruction that computes it, in some tile, and how. `preferred`: better transposed.
///
/// The form of the loops around it does not matter: its operands are buffers that producer warps can fill, wherever their copies stand.
pub(super) fn possible(
    k: &Kernel,
    options: &Options,
    mma: &Mma,
    (a, b): (&Operand, &Operand),
    (acc, preferred): (Elem, bool),
) -> Result<(Atom, Way), Refused> {
    let atom = instruction(k, options, mma, (a, b), acc)?;
    let way = in_order(mma, (a, b), preferred)?;
    let buffers = (whole_buffer(k, mma.a)?, whole_buffer(k, mma.b)?);
    let fills = fills(k, [buffers.0, buffers.1])?;
    match converted(k, options, &fills, a.elem)? {
        None => {
            feeds::plan(k, options, &[buffers.0, buffers.1])?;
            Ok((atom, way))
        }
        Some(operand) => {
            let way = converting(k, way, mma, buffers, operand)?;
            // As it will be: what is converted on its way out of the buffer comes there as it is.
            let mut plain = k.clone();
            for &(fill, _) in &fills {
                unconvert(&mut plain, fill);
            }
            feeds::plan(&plain, options, &[buffers.0, buffers.1])?;
            Ok((atom, way))
        }
    }
}

/// The instruction for a product, if the target has one, and nothing that is written or switched off is in its way.
fn instruction(
    k: &Kernel,
    options: &Options,
    mma: &Mma,
    (a, b): (&Operand, &Operand),
    acc: Elem,
) -> Result<Atom, Refused> {
    let none = || format!("{} has none for these types", options.target.name());
    let atom = atom(options.target, (Inputs { a: a.elem, b: b.elem }, acc)).ok_or_else(none)?;
    if mma.atom.is_some_and(|written| written != atom) {
        return Err(Refused::asked("another instruction is written"));
    }
    if let Some(pass) = options.missing_for_roles() {
        return Err(Refused::asked(format!("`{pass}` is switched off")));
    }
    if !a.space.is_of_block() || !b.space.is_of_block() {
        return Err("its operands are not in shared memory".into());
    }
    if k.schedule.k_warps.and_then(|e| k.as_int(e)).is_some_and(|n| n > 1) {
        return Err(Refused::asked("warps share the reduction"));
    }
    Ok(atom)
}

/// How a product is computed of operands that lie as they do.
fn in_order(mma: &Mma, (a, b): (&Operand, &Operand), preferred: bool) -> Result<Way, Refused> {
    let way = way(a.elem, (a.k_contiguous, b.k_contiguous), preferred).ok_or_else(|| {
        let which = if reads_registers(a.elem) { "one of two operands" } else { "operands" };
        format!("{which} of other than 16 bits must be contiguous along the reduction")
    })?;
    if mma.swap && !way.swap {
        return Err(Refused::asked("`swap` is written, and the first operand is not contiguous along the reduction"));
    }
    Ok(way)
}

/// The buffer that an operand is, as it lies or transposed.
pub(super) fn whole_buffer(k: &Kernel, e: Expr) -> Result<Value, Refused> {
    match k.exprs[e] {
        ExprData::Transpose(whole) => whole_buffer(k, whole),
        ExprData::Ref(v) if matches!(k.values[v].def, ValueDef::Smem(_)) => match k.tile_ty(v) {
            Some(tile) if tile.smem_layout.is_some() => {
                Err(Refused::asked(format!("the layout of `{}` is written", k.values[v].name)))
            }
            _ => Ok(v),
        },
        _ => Err(Refused::at(k.expr_spans[e], "an operand is no whole buffer in shared memory")),
    }
}

/// The copies that fill these buffers, each with its own.
fn fills(k: &Kernel, buffers: [Value; 2]) -> Result<Vec<(Stmt, Value)>, Refused> {
    let mut found = Vec::new();
    for s in all_stmts(k, k.body) {
        let StmtData::Copy { dst, attrs, .. } = &k.stmts[s] else { continue };
        let Some(buffer) = resolve_view(k, *dst).map(|to| to.base).filter(|v| buffers.contains(v)) else { continue };
        if *attrs != CopyAttrs::default() {
            let why = format!("how `{}` is copied is written", k.values[buffer].name);
            return Err(Refused::asked_at(k.stmt_spans[s], why));
        }
        found.push((s, buffer));
    }
    Ok(found)
}

/// The buffer that copies convert into, and the dimension along which their tensor is contiguous; `None`: none does.
fn converted(
    k: &Kernel,
    options: &Options,
    fills: &[(Stmt, Value)],
    elem: Elem,
) -> Result<Option<(Value, Option<usize>)>, Refused> {
    let facts = Facts::new(k);
    let mut found: Option<(Value, Option<usize>)> = None;
    for &(fill, buffer) in fills {
        let StmtData::Copy { src, attrs, .. } = &k.stmts[fill] else { unreachable!("a fill is a copy") };
        let Some(arg) = unconverted(k, *src) else { continue };
        let (name, at) = (&k.values[buffer].name, k.stmt_spans[fill]);
        let Some(from) = resolve_view(k, arg).filter(|v| k.tensor_ty(v.base).is_some()) else {
            return Err(Refused::at(at, format!("what is converted into `{name}` is no window of a tensor")));
        };
        tensor_copies::fits_unconverted(k, &facts, options.target, &from, buffer, attrs)
            .map_err(|refused| refused.or_at(at))?;
        if known_elem(k, from.base).bytes() > elem.bytes() {
            return Err(Refused::at(at, format!("`{name}` is converted from a wider type")));
        }
        let contiguous = contiguous_dim(k, from.base).and_then(|d| from.kept().iter().position(|&kept| kept == d));
        match found.replace((buffer, contiguous)) {
            Some((other, _)) if other != buffer => return Err(Refused::at(at, "both operands are converted")),
            Some(_) => return Err(Refused::at(at, format!("`{name}` is filled by several copies that convert"))),
            None => {}
        }
    }
    let Some((buffer, _)) = found else { return Ok(None) };
    let name = &k.values[buffer].name;
    if fills.iter().filter(|&&(_, other)| other == buffer).count() > 1 {
        return Err(format!("one of the copies into `{name}` converts, and another does not").into());
    }
    // Its elements become those of the tensor: whoever else reads it would have to convert them.
    let reads = |&s: &Stmt| stmt_exprs(k, s).iter().any(|&e| mentions(k, e, buffer));
    if all_stmts(k, k.body).iter().filter(|s| reads(s)).count() > 2 {
        return Err(format!("`{name}` is converted for a product, and used by more than that").into());
    }
    Ok(found)
}

/// Has a copy fill its buffer with elements as they are in the tensor, which those of the buffer then are, if it converts: how it did.
pub(super) fn unconvert(k: &mut Kernel, fill: Stmt) -> Option<Expr> {
    let StmtData::Copy { src, dst, .. } = k.stmts[fill] else { unreachable!("a fill is a copy") };
    let arg = unconverted(k, src)?;
    let conversion = src;
    let from = resolve_view(k, arg).expect("a window of a tensor is converted").base;
    let stored = known_elem(k, from);
    let buffer = resolve_view(k, dst).expect("a fill is of a buffer").base;
    if let StmtData::Copy { src, .. } = &mut k.stmts[fill] {
        *src = arg;
    }
    k.tile_ty_mut(buffer).expect("a buffer is a tile").elem = ElemRef::Known(stored);
    Some(conversion)
}

/// How the product of a specialised kernel that has one alone is computed by warpgroups, in whatever tile; `None`: by warps, or it has several.
pub(super) fn of_one_product(k: &Kernel, options: &Options) -> Option<Way> {
    let mut all = all_stmts(k, k.body).into_iter().filter_map(|s| product_of(k, s));
    let product = all.next().filter(|_| all.next().is_none())?;
    way_of(k, options, product)
}

/// Whether all products of a specialised kernel are of warpgroups, each in a loop that does nothing but add it up, in whatever tile; and how they are
/// computed.
pub(crate) fn of_kernel(k: &Kernel, options: &Options) -> Option<Way> {
    let mut found = None;
    for s in all_stmts(k, k.body) {
        let Some(product) = product_of(k, s) else { continue };
        let [(_, at), (body, _)] = path_to(k, s)[..] else { return None };
        let looped = matches!(k.stmts[k.blocks[k.body][at]], StmtData::For { unroll: false, .. });
        if !looped || reduction::of(k, body).is_err() {
            return None;
        }
        found = Some(way_of(k, options, product)?);
    }
    found
}

fn product_of(k: &Kernel, s: Stmt) -> Option<(Value, Mma)> {
    let StmtData::Assign { dst, src } = k.stmts[s] else { return None };
    match k.exprs[src] {
        ExprData::Mma(mma) => Some((dst, mma)),
        _ => None,
    }
}

fn way_of(k: &Kernel, options: &Options, (acc, mma): (Value, Mma)) -> Option<Way> {
    let (a, b) = (described(k, mma.a, 1)?, described(k, mma.b, 0)?);
    let preferred = mma.swap || stored_column_major(k, acc);
    possible(k, options, &mma, (&a, &b), (acc_elem(k, acc)?, preferred)).ok().map(|(_, way)| way)
}

/// How deep the sums of a product may get before they are added to an accumulator, where the schedule says nothing.
pub(crate) const PROMOTE: u64 = 128;

/// How deep the sums of products by `atom` may get in the tensor core before they are added to the accumulator (`scheduled`: as the schedule
/// says); `None`: as deep as the reduction, in the accumulator itself. Sums in f16 have fewer bits than the instruction keeps: nothing is lost
/// that parts of them would save.
pub(crate) fn promoted(atom: Atom, acc: Elem, scheduled: Option<u64>) -> Option<u64> {
    atom.row().short_sums.filter(|_| acc == Elem::F32)?;
    Some(scheduled.unwrap_or(PROMOTE)).filter(|&depth| depth > 0)
}

/// The same as the schedule of a specialised kernel says.
pub(crate) fn promoted_of(k: &Kernel, atom: Atom, acc: Elem) -> Option<u64> {
    promoted(atom, acc, k.schedule.promote.and_then(|e| k.as_int(e)).and_then(|n| u64::try_from(n).ok()))
}

/// Rows and columns of a warpgroup, of an accumulator of `bm x bn` and a reduction of `depth`: as scheduled, else halves of its rows (a third,
/// of other than a power of two), or all of it. With them whether the product is computed transposed: as preferred, or else, since an instruction has 64 rows, if the tile has
/// fewer; with A in registers as it has to be. `None`: the instruction does not compute such tiles. `sums`: registers that hold one, two if
/// parts of it are summed beside it. `reduced`: dimensions along which tiles like the accumulator are reduced, so that a warp has all
/// elements along them if it can: those of a row of the instruction.
pub(crate) fn tile(
    atom: Atom,
    scheduled: Option<(u64, u64)>,
    (bm, bn, depth): (u64, u64, u64),
    way: Way,
    (acc, sums): (Elem, u64),
    reduced: &[usize],
) -> Option<((u64, u64), bool)> {
    let ways = if way.registers { [way.swap; 2] } else { [way.swap, !way.swap] };
    let whole_rows = |swap: &bool| reduced.iter().all(|&d| d == usize::from(!swap));
    let found = ways.into_iter().filter(whole_rows).find_map(|swap| {
        let (rows, cols) = if swap { (bn, bm) } else { (bm, bn) };
        let part = if rows.is_power_of_two() { rows / 2 } else { ROWS };
        let parts = if swap { (bm, part) } else { (part, bn) };
        let tiles = scheduled.map_or([parts, (bm, bn)], |t| [t; 2]);
        // Columns of other than a power of two are those of one warpgroup, and so are all columns where rows are no power of two.
        let whole = |&(wm, wn): &(u64, u64)| {
            let (own_rows, own_cols) = if swap { (wn, wm) } else { (wm, wn) };
            let odd = !rows.is_power_of_two();
            (own_cols == cols || reduced.is_empty() && cols.is_power_of_two() && !odd) && (!odd || own_rows == ROWS)
        };
        let steps = depth.is_multiple_of(1 << atom.row().log2_shape.2);
        let tiles = tiles.map(|t| Some(t).filter(whole).filter(|_| is_rows(rows) && steps));
        // Those that fill the slots need a place in the block, too.
        let room = |(wm, wn): (u64, u64)| {
            let groups = (bm / wm.max(1)).saturating_mul(bn / wn.max(1));
            groups.saturating_mul(u64::from(WARPGROUP)) <= u64::from(MAX_THREADS / WARP - PRODUCER_WARPS)
        };
        let fits = |&t: &(u64, u64)| {
            room(t) && works(atom, t, swap, tiles_of(atom, (t, depth), Way { swap, ..way }, (acc, sums)))
        };
        tiles.into_iter().flatten().find(fits).map(|t| (t, swap))
    });
    // Otherwise what is reduced is exchanged between warps first (`assign-layouts`), if threads can share out the tile in another way.
    found.or_else(|| {
        let exchanged = !reduced.is_empty();
        exchanged.then(|| tile(atom, scheduled, (bm, bn, depth), way, (acc, sums), &[])).flatten()
    })
}

fn works(atom: Atom, (wm, wn): (u64, u64), swap: bool, registers: u64) -> bool {
    let (rows, cols) = if swap { (wn, wm) } else { (wm, wn) };
    let whole = matches!(atom.row().unit, Unit::Warpgroup(_));
    let extents = rows.is_power_of_two() && atom.row().has_columns(cols);
    whole && extents && fits(atom, (rows, cols, u64::from(atom.row().k))) && registers <= ACCUMULATORS
}

/// Registers of a thread that hold so many sums of `wm x wn`, and A, `depth` deep, where that comes from registers.
pub(crate) fn tiles_of(atom: Atom, ((wm, wn), depth): ((u64, u64), u64), way: Way, (acc, sums): (Elem, u64)) -> u64 {
    let lanes = 32u64 << atom.row().unit.warp_bits();
    let input = atom.row().types.first().map_or(4, |t| u64::from(t.inputs.bytes()));
    let rows = if way.swap { wn } else { wm };
    let fragment = if way.registers { rows * depth * input } else { 0 };
    (sums * wm * wn * u64::from(acc.bytes()) + fragment) / lanes / 4
}

/// Warps of a block whose warpgroups compute `wm x wn` each.
fn warps((bm, bn): (u64, u64), (wm, wn): (u64, u64)) -> u32 {
    let warps = (bm / wm.max(1) * (bn / wn.max(1))).saturating_mul(u64::from(WARPGROUP));
    u32::try_from(warps).unwrap_or(MAX_THREADS).min(MAX_THREADS / WARP)
}

/// Registers of a thread of the warpgroups of a block that compute `wm x wn` each.
pub(crate) fn room(k: &Kernel, block: (u64, u64), tile: (u64, u64)) -> Option<u64> {
    u64::try_from(consumer_registers(k, warps(block, tile))).ok()
}

/// Registers that the assembler wants for an instruction beside its sums, and those of A that comes from registers (ptxas 12.9 and 13.0; else
/// it stops with C7602).
const INSTRUCTION: u64 = 26;
const LEFT: u64 = 4;

/// That a thread of a block starts with the registers of an instruction: that it is given more later does not count. `Err`: what is wanted, and what
/// it starts with.
pub(crate) fn assembles(
    k: &Kernel,
    block: (u64, u64),
    tile: (u64, u64),
    way: Way,
    acc: Elem,
) -> Result<(), (u64, u64)> {
    let cols = if way.swap { tile.0 } else { tile.1 };
    let sums = ROWS * cols * u64::from(acc.bytes()) / u64::from(WARPGROUP * WARP) / 4;
    let wanted = sums + INSTRUCTION + if way.registers { LEFT } else { 0 };
    let has = u64::try_from(share(k, warps(block, tile))).unwrap_or(0);
    if wanted <= has { Ok(()) } else { Err((wanted, has)) }
}

/// The element type of an accumulator.
pub(crate) fn acc_elem(k: &Kernel, acc: Value) -> Option<Elem> {
    known(k.tile_ty(acc).map(|t| t.elem))
}
