//! `select-mma`: pick the instruction of every product and make its operands register fragments.
//!
//! `acc = mma(a, b, acc)` on shared-memory (or global) operands becomes a loop over slices of the reduction dimension
//! that copies a fragment of each operand into registers and multiplies the fragments:
//!
//! ```text
//! for kk in 0..32 step 8 unroll {
//!     copy a[.., kk..] -> a_frag
//!     copy b[kk.., ..] -> b_frag
//!     acc = mma<m8n8k4>(a_frag, b_frag, acc)
//! }
//! ```
//!
//! The slice is as deep as one 16-byte access where an operand is contiguous along the reduction, else one atom. The
//! product is computed transposed (`swap`) when the result is stored to a column-major tensor, so that threads own runs of
//! neighbouring elements of the output either way.
//!
//! With `k_warps` in the schedule the warps of a block share the reduction as well: see [`sliced`].
//!
//! Needs: literal extents. Breaks: nothing. Switched off: scalar multiply-add, never transposed.

mod asynchronous;
mod from_registers;
mod general;
mod in_roles;
mod scalar;
pub(crate) mod sliced;
pub(crate) mod warpgroup;
mod warps;
mod written;

use crate::Cx;
use crate::analysis::facts::contiguous_dim;
use crate::analysis::order::smem_contiguous;
use crate::analysis::uses::{all_stmts, mentions, path_to};
use crate::analysis::views::plain_var;
use crate::assign_layouts::{Reduced, accumulator_layout};
use crate::rewrite::inherit_stages;
use crate::roles::threads_of;
use tilec_ir::atoms::{Atom, AtomRow, Inputs, Unit};
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported, Span};
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, Mma, Range, StmtData, ValueDef, View};
use tilec_ir::target::{MAX_THREADS, Target, WARP, WARPGROUP};
use tilec_ir::types::{Elem, ElemRef, Space, TileTy};
use tilec_ir::typing::{fixed_shape, resolve_view, type_of};
use warps::{Share, Shares};

pub(crate) use warps::{Sharing, sharing};

pub(crate) const NAME: &str = "select-mma";

pub(crate) fn run(k: &mut Kernel, cx: &mut Cx<'_>) -> Result<(), Reported> {
    let scheduled = k.schedule.threads.is_some();
    if cx.options.target.has_tensor_copies() {
        in_roles::threads(k);
    }
    no_roles(k, cx)?;
    written_threads(k);
    in_roles::select(k, cx)?;
    general::select(k, cx)?;
    let cut = sliced::cut(k, cx)?;
    let mut shares = Shares::default();
    for s in all_stmts(k, k.body) {
        let StmtData::Assign { dst, src } = k.stmts[s] else { continue };
        let ExprData::Mma(mma) = k.exprs[src] else { continue };
        match mma.atom {
            None => select(k, cx, s, (dst, src, mma), &cut, &mut shares)?,
            // Its operands are slots or registers already: nothing is left to decide.
            Some(atom) if atom.row().asynchronous() && asynchronous::in_slots(k, &mma) => {
                // Of a scheduled kernel `expand` makes the roles.
                if !crate::analysis::wgmma::is_scheduled(k) {
                    in_roles::demand_role(k, cx, s, src)?;
                } else {
                    in_roles::check_scheduled(k, cx, (s, src, dst), mma)?;
                }
            }
            Some(atom) if atom.row().asynchronous() && general::fed(k, &mma) => {}
            // An instruction in the text; the operands may still have to be made fragments.
            Some(_) if plain_var(k, mma.a).is_none() && plain_var(k, mma.b).is_none() => {
                select(k, cx, s, (dst, src, mma), &cut, &mut shares)?;
            }
            Some(atom) => check_written(k, cx, (dst, src, &mma, atom), &mut shares)?,
        }
    }
    inherit_stages(k);
    let products = all_stmts(k, k.body).into_iter().any(|s| match k.stmts[s] {
        StmtData::Assign { src, .. } => {
            matches!(k.exprs[src], ExprData::Mma(m) if m.atom.is_some_and(|a| a.row().asynchronous()))
        }
        _ => false,
    });
    default_threads(k, cx, products)?;
    if !products {
        asynchronous::refuse_odd_extents(k, cx, "the kernel has no such product")?;
    }
    // Layouts in the text may be for another number of threads than the one chosen here.
    if scheduled { Ok(()) } else { cx.verify(k) }
}

/// A product whose instruction is written: if layouts are still to be found, the warp tile must allow them.
fn check_written(
    k: &mut Kernel,
    cx: &mut Cx<'_>,
    (acc, src, mma, atom): (Value, Expr, &Mma, Atom),
    shares: &mut Shares,
) -> Result<(), Reported> {
    // What a warp computes says the accumulator's layout then.
    if k.tile_ty(acc).is_some_and(|t| t.reg_layout.is_some()) {
        return Ok(());
    }
    let span = k.expr_spans[src];
    let (Some(shape), Some(depth)) = (acc_shape(k, acc), fixed_shape(k, mma.a).and_then(|s| s.get(1).copied())) else {
        return Err(cx.report(
            Diagnostic::error(codes::MMA_FORM, span, "the operands of this product have no fixed shape")
                .with_note("a product with a named instruction takes register tiles of fixed shape"),
        ));
    };
    let depth = depth / sliced::groups(k, acc);
    let (wm, wn) = match atom.row().unit {
        Unit::Warpgroup(_) => {
            let acc_bytes = known(k.tile_ty(acc).map(|t| t.elem)).map_or(4, |e| e.bytes());
            asynchronous::warp_tile(k, cx, shape, acc_bytes, span)?
        }
        Unit::Warp => {
            let share = shares.of(k, cx, acc, span)?;
            let inputs = [mma.a, mma.b].map(|e| type_of(k, e).ok().and_then(|t| known(t.elem())));
            if let [Some(a), Some(b)] = inputs {
                lay_out(k, acc, (atom, mma.swap), Inputs { a, b }, share);
            }
            share.tile
        }
    };
    let (rows, cols) = if mma.swap { (wn, wm) } else { (wm, wn) };
    let (m, n, kk) = atom.row().log2_shape;
    if rows < 1 << m || cols < 1 << n || depth < 1 << kk {
        return Err(cx.report(
            Diagnostic::error(
                codes::NO_ATOM,
                span,
                format!("`{}` does not fit a {wm}x{wn} warp tile and a reduction of {depth}", atom.row().name),
            )
            .with_note(format!(
                "a warp computes at least {}x{}x{} with it",
                1u64 << m,
                1u64 << n,
                1u64 << kk
            )),
        ));
    }
    Ok(())
}

/// The dimensions along which tiles of the extents of an accumulator are reduced: elements along them are those of one warp.
fn reduced_along(k: &Kernel, (bm, bn): (u64, u64)) -> Vec<usize> {
    Reduced::of(k).along(&[bm, bn])
}

/// What the operand `e` is made of.
struct Operand {
    elem: Elem,
    space: Space,
    /// Contiguous along the reduction dimension, as far as is known.
    k_contiguous: bool,
}

/// `cut`: accumulators whose products are to be cut into slices, in whatever way suits, and what their sums are added to.
fn select(
    k: &mut Kernel,
    cx: &mut Cx<'_>,
    s: Stmt,
    (acc, src, mut mma): (Value, Expr, Mma),
    cut: &[(Value, Value)],
    shares: &mut Shares,
) -> Result<(), Reported> {
    let span = k.expr_spans[src];
    if !matches!(k.exprs[mma.c], ExprData::Ref(v) if v == acc) {
        return Err(not_in_place(k, cx, src, acc));
    }
    let (Some(shape), Some(acc_elem)) = (acc_shape(k, acc), known(k.tile_ty(acc).map(|t| t.elem))) else {
        return Err(cx.report(Diagnostic::error(codes::MMA_FORM, span, "the accumulator has no fixed shape")));
    };
    from_registers::name(k, s, &mut mma);
    let mut a = operand(k, cx, mma.a, 1)?;
    let mut b = operand(k, cx, mma.b, 0)?;
    let k_extent = fixed_shape(k, mma.a).map(|s| s[1]).or_else(|| fixed_shape(k, mma.b).map(|s| s[0]));
    let Some(k_extent) = k_extent else {
        return Err(cx.report(
            Diagnostic::error(codes::MMA_FORM, span, "the reduction extent of this product is not fixed")
                .with_note("copy at least one operand into a shared-memory or register tile of fixed shape first"),
        ));
    };
    let groups = sliced::groups(k, acc);
    if let Some((atom, way)) = asynchronous::choose(k, cx, s, acc, &mma, (&a, &b))? {
        return asynchronous::product(k, cx, s, src, (atom, way), mma, if way.swap { b.elem } else { a.elem });
    }
    let share = shares.of(k, cx, acc, span)?;
    let (wm, wn) = share.tile;
    let inputs = Inputs { a: a.elem, b: b.elem };
    let tile = (wm, wn, sliced::depth(k, cx, span, (inputs, acc_elem), (wm, wn, k_extent), groups)?);
    let cut = cut.iter().find(|&&(sums, _)| sums == acc).map(|&(_, whole)| whole);
    let column_major = cx.enabled && stored_column_major(k, cut.unwrap_or(acc));
    let types = (inputs, acc_elem);
    let (atom, swap) = match mma.atom {
        Some(atom) => {
            let atom = written::check(cx, span, atom, types, if mma.swap { transposed(tile) } else { tile })?;
            (atom, mma.swap || column_major && fits(atom, transposed(tile)))
        }
        None => {
            // Runs of a column are worth less than tensor cores.
            let whole =
                |tile| best_atom(cx.options.target, cx.enabled, types, tile).is_some_and(|a| a.row().tensor_core);
            let swap = mma.swap || column_major && (whole(transposed(tile)) || !whole(tile));
            (choose_atom(cx, span, types, if swap { transposed(tile) } else { tile })?, swap)
        }
    };
    let row = atom.row();
    if cx.enabled {
        let direction = if swap { ", transposed because the result is stored column-major" } else { "" };
        cx.remark(
            span,
            format!(
                "`{}` for {inputs} inputs and {} accumulation on {}, warp tile {wm}x{wn}{direction}",
                row.name,
                acc_elem.name(),
                cx.options.target.name()
            ),
        );
    }
    lay_out(k, acc, (atom, swap), inputs, share);
    if a.space == Space::Reg && b.space == Space::Reg {
        for (e, operand) in [(&mut mma.a, &a), (&mut mma.b, &b)] {
            if plain_var(k, *e).is_none() {
                *e = from_registers::operand(k, cx, s, *e, operand.elem, true);
            }
        }
        k.exprs[src] = ExprData::Mma(Mma { atom: Some(atom), swap, ..mma });
        return Ok(());
    }
    let names = [mma.a, mma.b].map(|e| format!("{}_frag", operand_name(k, e)));
    for (e, operand, first) in [(&mut mma.a, &mut a, true), (&mut mma.b, &mut b, false)] {
        if operand.space == Space::Reg {
            *e = from_registers::operand(k, cx, s, *e, operand.elem, from_registers::keeps(row, first != swap));
            *operand = self::operand(k, cx, *e, usize::from(first))?;
        }
    }
    if groups > 1 && cut.is_none() {
        return Err(cx.report(
            Diagnostic::error(codes::K_WARPS, span, "a product in slices takes register tiles")
                .with_note("accumulate in a tile of two dimensions, and write `k_warps` into the schedule"),
        ));
    }
    if cx.enabled && !row.sums() {
        for (e, operand, k_dim) in [(mma.a, &mut a, 1), (mma.b, &mut b, 0)] {
            scalar::order_operand(k, cx, e, k_dim);
            *operand = self::operand(k, cx, e, k_dim)?;
        }
    }
    // Every group of warps its own part of the slice.
    let along = [&a, &b].map(|o| (o.k_contiguous || transposes(row, o.elem)).then(|| o.elem.bytes()));
    let depth = slice_depth(row, along, tile.2) * groups;
    let fragments = [
        declare(k, s, &names[0], a.elem, &[shape.0, depth], span),
        declare(k, s, &names[1], b.elem, &[depth, shape.1], span),
    ];
    in_slices(k, s, (acc, Mma { atom: Some(atom), swap, ..mma }), fragments, (k_extent, depth));
    Ok(())
}

/// Makes the product `s` a loop over slices of a reduction of `extent`, `depth` deep, that copies fragments and multiplies them.
fn in_slices(k: &mut Kernel, s: Stmt, (acc, mma): (Value, Mma), fragments: [Value; 2], (extent, depth): (u64, u64)) {
    let span = match k.stmts[s] {
        StmtData::Assign { src, .. } => k.expr_spans[src],
        _ => k.stmt_spans[s],
    };
    let kk = k.value("kk", span, ValueDef::Loop);
    let mut stmts = Vec::new();
    for (fragment, operand, dim) in [(fragments[0], mma.a, 1), (fragments[1], mma.b, 0)] {
        let (src, dst) = (slice(k, operand, dim, kk, span), k.value_ref(fragment, span));
        stmts.push(k.stmt(StmtData::Copy { src, dst, attrs: CopyAttrs::default() }, span));
    }
    let [a, b] = fragments.map(|f| k.value_ref(f, span));
    let c = k.value_ref(acc, span);
    let product = k.expr(ExprData::Mma(Mma { a, b, c, ..mma }), span);
    stmts.push(k.stmt(StmtData::Assign { dst: acc, src: product }, k.stmt_spans[s]));
    let body = k.block(stmts);
    let [start, end, step] = [0, extent, depth].map(|n| k.int(n as i64, span));
    k.stmts[s] = StmtData::For { var: kk, start, end, step, unroll: true, body };
}

/// Gives an accumulator the layout of its share, if that is another than the schedule's: the text has no other place for it.
fn lay_out(k: &mut Kernel, acc: Value, (atom, swap): (Atom, bool), inputs: Inputs, share: Share) {
    if share.scheduled {
        return;
    }
    let layout = accumulator_layout(k, acc, (atom, swap), inputs, (share.tile, share.warps));
    if let Some(tile) = k.tile_ty_mut(acc).filter(|t| t.reg_layout.is_none()) {
        tile.reg_layout = layout;
    }
}

fn not_in_place(k: &Kernel, cx: &mut Cx<'_>, src: Expr, acc: Value) -> Reported {
    cx.report(Diagnostic::error(codes::MMA_FORM, k.expr_spans[src], "a product must accumulate in place").with_note(
        format!("write `{0} = mma(a, b, {0})` and combine the result in a statement of its own", k.values[acc].name),
    ))
}

/// The warp tile of the schedule; inside, `None` where it is not constant.
fn scheduled_tile(k: &Kernel) -> Option<Option<(u64, u64)>> {
    let int = |e: Expr| k.as_int(e).and_then(|x| u64::try_from(x).ok());
    k.schedule.warp_tile.map(|(m, n)| Some((int(m)?, int(n)?)))
}

fn known(elem: Option<ElemRef>) -> Option<Elem> {
    match elem? {
        ElemRef::Known(e) => Some(e),
        ElemRef::Param(_) => None,
    }
}

/// Rows and columns of an accumulator.
fn acc_shape(k: &Kernel, acc: Value) -> Option<(u64, u64)> {
    match k.const_shape(&k.tile_ty(acc)?.shape)?[..] {
        [m, n] | [_, m, n] => Some((m, n)),
        _ => None,
    }
}

/// `k_dim`: which dimension of the operand is the reduction.
fn operand(k: &Kernel, cx: &mut Cx<'_>, e: Expr, k_dim: usize) -> Result<Operand, Reported> {
    let span = k.expr_spans[e];
    let unsupported = |cx: &mut Cx<'_>| {
        Err(cx.report(
            Diagnostic::error(codes::MMA_FORM, span, "this operand of a product is neither a tile nor a view of one")
                .with_note("compute it into a register tile first: `var p = reg f16[..]`, `copy e -> p`"),
        ))
    };
    let Some(view) = resolve_view(k, e) else { return unsupported(cx) };
    let (elem, space) = match &k.values[view.base].def {
        ValueDef::Var(t) => (known(Some(t.elem)), Space::Reg),
        ValueDef::Smem(t) | ValueDef::Channel { tile: t, .. } => (known(Some(t.elem)), Space::Smem),
        ValueDef::Tensor(t) => (known(Some(t.elem)), Space::Gmem),
        _ => return unsupported(cx),
    };
    let Some(elem) = elem else { return unsupported(cx) };
    let dim = if view.transposed { 1 - k_dim } else { k_dim };
    let contiguous = match space {
        Space::Gmem => contiguous_dim(k, view.base),
        Space::Smem => smem_contiguous(k, view.base),
        Space::Reg => None,
    };
    Ok(Operand { elem, space, k_contiguous: contiguous == Some(dim) })
}

fn operand_name(k: &Kernel, e: Expr) -> String {
    resolve_view(k, e).map_or_else(|| "operand".into(), |v| k.values[v.base].name.to_lowercase())
}

/// Whether tiles of an operand that are not contiguous along the reduction are made so on their way into shared memory.
pub(crate) fn transposes(row: &AtomRow, elem: Elem) -> bool {
    row.sums() && elem.bits() == 8
}

/// Elements of the reduction that one fragment holds. `along`: bytes of an element of each operand that is contiguous along
/// the reduction.
pub(crate) fn slice_depth(row: &AtomRow, along: [Option<u32>; 2], k_extent: u64) -> u64 {
    let natural = u64::from(row.k);
    let wide = |bytes: Option<u32>| match bytes {
        None => natural,
        Some(bytes) if row.sums() => u64::from(16 / bytes.max(1)).max(natural),
        // Scalar products hold k-slices in registers of their own: two at a time keep them few.
        Some(_) => 2,
    };
    along.map(wide).into_iter().max().unwrap_or(natural).min(k_extent)
}

/// The best instruction for a product in a warp tile of `wm x wn` and a reduction of `k_extent`; without `tensor_cores` plain
/// multiply-add.
pub(crate) fn best_atom(
    target: Target,
    tensor_cores: bool,
    (inputs, acc): (Inputs, Elem),
    (wm, wn, k_extent): (u64, u64, u64),
) -> Option<Atom> {
    Atom::all().find(|atom| {
        let row = atom.row();
        let there = !row.asynchronous()
            && target.at_least(row.first)
            && (!row.sums() || tensor_cores && target.cc() <= row.last_native_cc);
        there && row.types_for(inputs, acc).is_some() && fits(*atom, (wm, wn, k_extent))
    })
}

/// The warp tile as the instruction sees it that computes the transposed product.
fn transposed((wm, wn, depth): (u64, u64, u64)) -> (u64, u64, u64) {
    (wn, wm, depth)
}

/// Whether a warp tile is at least as large as an instruction.
fn fits(atom: Atom, (wm, wn, depth): (u64, u64, u64)) -> bool {
    let (m, n, k) = atom.row().log2_shape;
    wm >= 1 << m && wn >= 1 << n && depth >= 1 << k
}

fn choose_atom(
    cx: &mut Cx<'_>,
    span: Span,
    (inputs, acc): (Inputs, Elem),
    (wm, wn, k_extent): (u64, u64, u64),
) -> Result<Atom, Reported> {
    let target = cx.options.target;
    let best = best_atom(target, cx.enabled, (inputs, acc), (wm, wn, k_extent));
    if let Some(atom) = best.filter(|atom| atom.row().tensor_core) {
        return Ok(atom);
    }
    if let Some(atom) = best {
        if cx.enabled {
            let message = format!(
                "no tensor-core product of {} has {inputs} inputs with {} accumulation in a {wm}x{wn}x{k_extent} warp tile: {}",
                target.name(),
                acc.name(),
                if atom.row().sums() { "scalar sums of four products" } else { "scalar multiply-add" }
            );
            if !matches!(inputs.a, Elem::F32 | Elem::F64) {
                cx.warn(Diagnostic::warning(codes::SCALAR_PRODUCT, span, message).with_note(available(target)));
            } else {
                cx.remark(span, message);
            }
        }
        return Ok(atom);
    }
    Err(cx.report(
        Diagnostic::error(
            codes::NO_ATOM,
            span,
            format!(
                "no product of {inputs} inputs with {} accumulation for a {wm}x{wn}x{k_extent} warp tile on {}",
                acc.name(),
                target.name()
            ),
        )
        .with_note(available(target)),
    ))
}

/// The tensor-core products that a target has natively for these types and a warp tile of `wm x wn`, of any depth.
fn tensor_cores(target: Target, inputs: Inputs, acc: Elem, (wm, wn): (u64, u64)) -> impl Iterator<Item = Atom> {
    Atom::all().filter(move |atom| {
        let row = atom.row();
        let (m, n, _) = row.log2_shape;
        let native =
            !row.asynchronous() && target.at_least(row.first) && target.cc() <= row.last_native_cc && row.tensor_core;
        native && row.types_for(inputs, acc).is_some() && wm >= 1 << m && wn >= 1 << n
    })
}

/// The products of a target, from the atom table.
pub(crate) fn available(target: Target) -> String {
    let rows = Atom::all().map(Atom::row).filter(|r| target.at_least(r.first) && target.cc() <= r.last_native_cc);
    let list: Vec<String> = rows
        .map(|r| {
            let (m, n, k) = r.log2_shape;
            let types: Vec<String> = r.types.iter().map(|t| format!("{}→{}", t.inputs, t.acc.name())).collect();
            format!("{} ({}; warp tiles from {}x{}x{})", r.name, types.join(", "), 1 << m, 1 << n, 1 << k)
        })
        .collect();
    format!("{} has {}", target.name(), list.join("; "))
}

/// Whether a block tile of extent `b` splits into tiles of extent `w` of warps, or of warpgroups.
pub(crate) fn divides(w: u64, b: u64, warpgroups: bool) -> bool {
    let shared_out = b.is_power_of_two() || warpgroups && warpgroup::is_rows(b);
    w > 0 && (w == b || w.is_power_of_two() && shared_out && b.is_multiple_of(w))
}

/// Registers of a thread that hold the accumulator of a warp tile.
pub(crate) fn accumulator_registers(wm: u64, wn: u64, acc_bytes: u32) -> u64 {
    (wm.saturating_mul(wn) / u64::from(WARP)).saturating_mul(u64::from(acc_bytes)) / 4
}

/// Layouts of roles are for the threads of each, and nothing here knows more than one number of threads: the role that holds
/// register tiles has as many as the schedule says.
fn no_roles(k: &Kernel, cx: &mut Cx<'_>) -> Result<(), Reported> {
    let threads = k.schedule.threads.and_then(|e| k.as_int(e));
    let tensor_copies = cx.options.target.has_tensor_copies();
    for s in all_stmts(k, k.body) {
        if !tensor_copies && k.plans[s].is_some() {
            let target = cx.options.target.name();
            let message = format!(
                "not compiled to PTX for {target} yet: stages, and what is the producer's, are for sm_90a alone"
            );
            let d = Diagnostic::error(codes::NOT_LOWERED, k.stmt_spans[s], message);
            return Err(cx.report(d.with_note(
                "leave `@(..)` out: loops of copies and products are pipelined by the compiler, on every target",
            )));
        }
        if let StmtData::Role { .. } = k.stmts[s] {
            let holds = in_roles::holds_registers(k, s);
            let own = in_roles::threads_of(k, s);
            if tensor_copies && (!holds || own.is_some() && own == threads) {
                continue;
            }
            let why = match (tensor_copies, own, threads) {
                (false, ..) => "roles are compiled for sm_90a alone".to_owned(),
                (true, Some(own), Some(threads)) => format!(
                    "a role of {own} threads with register tiles, or copies through registers, beside a schedule of {threads} threads"
                ),
                (true, ..) => {
                    "a role with register tiles, or copies through registers, where the schedule says no `threads`"
                        .to_owned()
                }
            };
            return Err(cx.report(
                Diagnostic::error(
                    codes::NOT_LOWERED,
                    k.stmt_spans[s],
                    format!("not compiled to PTX for {} yet: {why}", cx.options.target.name()),
                )
                .with_note("write producer and consumer as one loop; the compiler overlaps them, in roles of its own on sm_90a")
                .with_note("the program is valid: `tilec run --device interp` runs it; `tilec explain E0501` lists what is compiled"),
            ));
        }
    }
    Ok(())
}

/// Without a scheduled thread count, that of the first layout in the text: it must be the same in all of them.
fn written_threads(k: &mut Kernel) {
    if k.schedule.threads.is_some() {
        return;
    }
    let of_tiles = k.values.values().find_map(|data| match &data.def {
        ValueDef::Var(t) if !t.shape.is_empty() => {
            let threads = t.reg_layout.as_ref()?.threads(&k.const_shape(&t.shape).expect("specialised"));
            Some((threads?, data.span))
        }
        _ => None,
    });
    let of_copies = || {
        all_stmts(k, k.body).into_iter().find_map(|s| match &k.stmts[s] {
            StmtData::Copy { attrs, .. } => Some((1 << attrs.threads.as_ref()?.thread_bits(), k.stmt_spans[s])),
            _ => None,
        })
    };
    let found = of_tiles.or_else(of_copies);
    if let Some((threads, span)) = found.and_then(|(n, span)| Some((i64::try_from(n).ok()?, span))) {
        k.schedule.threads = Some(k.int(threads, span));
    }
}

/// Threads of a kernel that does no more than reduce a row or two: a row is one warp's, and others would repeat it.
fn fewer_warps(k: &Kernel, cx: &mut Cx<'_>) -> Option<i64> {
    let shares = |d: &ValueDef| matches!(d, ValueDef::Smem(_) | ValueDef::Channel { .. });
    let others = k.values.values().any(|d| shares(&d.def))
        || k.expressions().into_iter().map(|e| &k.exprs[e]).any(|e| matches!(e, ExprData::Mma(_)));
    let roles = k.blocks[k.body].iter().any(|&s| matches!(k.stmts[s], StmtData::Role { .. }));
    if !cx.enabled || others || roles {
        return None;
    }
    let rows = Reduced::of(k).rows().filter(|&n| n <= 2)?;
    let threads = i64::from(WARP) * i64::try_from(rows.max(1)).ok()?;
    let message = format!("{threads} threads: a warp for each row that is reduced, for more would repeat these");
    cx.remark_note(
        k.name_span,
        message,
        "tiles of more rows have more warps; `threads` in the schedule says how many there are",
    );
    Some(threads)
}

/// Kernels without products still need a thread count. `warpgroups`: there are products of these, of which three may share a tile.
fn default_threads(k: &mut Kernel, cx: &mut Cx<'_>, warpgroups: bool) -> Result<(), Reported> {
    let span = k.name_span;
    if k.schedule.threads.is_none() {
        let threads = fewer_warps(k, cx).unwrap_or(128);
        k.schedule.threads = Some(k.int(threads, span));
    }
    let threads = i64::from(threads_of(k));
    let three = warpgroups && threads == 3 * i64::from(WARPGROUP * WARP);
    if threads < 32 || threads > i64::from(MAX_THREADS) || threads.count_ones() != 1 && !three {
        return Err(cx.report(
            Diagnostic::error(
                codes::THREADS,
                k.schedule.threads.map_or(span, |e| k.expr_spans[e]),
                format!("{threads} threads per block"),
            )
            .with_note("the thread count is a power of two from 32 to 1024, or 384 where three warpgroups multiply"),
        ));
    }
    Ok(())
}

/// Whether the accumulator ends up in a column-major tensor.
fn stored_column_major(k: &Kernel, acc: Value) -> bool {
    all_stmts(k, k.body).into_iter().any(|s| {
        let StmtData::Copy { src, dst, .. } = k.stmts[s] else { return false };
        if !mentions(k, src, acc) {
            return false;
        }
        let Some(view) = resolve_view(k, dst) else { return false };
        if k.tensor_ty(view.base).is_none() {
            return false;
        }
        let kept: Vec<usize> = view
            .dims
            .iter()
            .enumerate()
            .filter(|(_, d)| matches!(d, tilec_ir::typing::ViewDim::From { .. }))
            .map(|(d, _)| d)
            .collect();
        let first = contiguous_dim(k, view.base) == kept.first().copied() && kept.len() == 2;
        first != view.transposed && kept.len() == 2
    })
}

/// Declares a register tile before the outermost statement around `at`.
pub(crate) fn declare(k: &mut Kernel, at: Stmt, name: &str, elem: Elem, shape: &[u64], span: Span) -> Value {
    let shape = shape.iter().map(|&x| k.int(x as i64, span)).collect();
    let ty =
        TileTy { elem: ElemRef::Known(elem), shape, order: None, reg_layout: None, partial: None, smem_layout: None };
    let value = k.value(name, span, ValueDef::Var(ty));
    let decl = k.stmt(StmtData::Var { value, init: None }, span);
    insert_before_outermost(k, at, decl);
    value
}

/// Inserts statements at a place in a block.
fn insert_at(k: &mut Kernel, (block, index): (Block, usize), new: Vec<Stmt>) {
    k.blocks[block].splice(index..index, new);
}

/// Inserts a statement before the outermost statement around `at` (inside its role, if it has one).
pub(crate) fn insert_before_outermost(k: &mut Kernel, at: Stmt, new: Stmt) {
    let path = path_to(k, at);
    let place = path.iter().copied().find(|&(b, i)| !matches!(k.stmts[k.blocks[b][i]], StmtData::Role { .. }));
    match place {
        Some((block, index)) => k.blocks[block].insert(index, new),
        None => k.blocks[k.body].push(new),
    }
}

/// `e` from `kk` on along dimension `dim`: a window of whatever view `e` is.
fn slice(k: &mut Kernel, e: Expr, dim: usize, kk: Value, span: Span) -> Expr {
    match k.exprs[e].clone() {
        ExprData::Transpose(inner) => {
            let inner = slice(k, inner, 1 - dim, kk, span);
            k.expr(ExprData::Transpose(inner), span)
        }
        ExprData::View(View { base, slot, ranges }) if !ranges.is_empty() => {
            let mut kept = 0;
            let ranges = ranges
                .into_iter()
                .map(|r| match r {
                    Range::At(e) => Range::At(e),
                    Range::From { start, end } => {
                        let hit = kept == dim;
                        kept += 1;
                        if hit {
                            let r = k.value_ref(kk, span);
                            Range::From { start: k.binary(tilec_ir::ops::Op::Add, start, r, span), end }
                        } else {
                            Range::From { start, end }
                        }
                    }
                })
                .collect();
            k.expr(ExprData::View(View { base, slot, ranges }), span)
        }
        ExprData::View(View { base, slot, .. }) => window(k, base, slot, dim, kk, span),
        ExprData::Ref(base) => window(k, base, None, dim, kk, span),
        _ => e,
    }
}

fn window(
    k: &mut Kernel,
    base: Value,
    slot: Option<tilec_ir::kernel::Slot>,
    dim: usize,
    kk: Value,
    span: Span,
) -> Expr {
    let ranges = (0..2)
        .map(|d| {
            let start = if d == dim { k.value_ref(kk, span) } else { k.int(0, span) };
            Range::From { start, end: None }
        })
        .collect();
    k.expr(ExprData::View(View { base, slot, ranges }), span)
}
