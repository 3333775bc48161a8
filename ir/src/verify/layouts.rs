//! Layouts: rules 18 to 21.

use crate::codes;
use crate::ctas;
use crate::diag::{Diagnostic, Span};
use crate::entities::{Block, Stmt, Value};
use crate::fix_locations::FixLocation;
use crate::kernel::{ExprData, Kernel, Slot, StmtData, ValueDef};
use crate::layout::hardware::PANEL_BYTES;
use crate::layout::{Pitch, RegLayout, SmemLayout, extent_bits};
use crate::roles::PRODUCER_WARPS;
use crate::target::WARP;
use crate::types::{ElemRef, TileTy};
use crate::typing::{Extent, const_int, copy_shape};
use crate::verify::context::Cx;

/// log2 of a number above the elements of any tile; shifts by it are safe.
pub(super) const MAX_BITS: u32 = 31;

pub(super) fn check(cx: &mut Cx<'_, '_>) {
    let k = cx.k;
    let roles = k.blocks[k.body].iter().any(|&s| matches!(k.stmts[s], StmtData::Role { .. }));
    let threads = k.schedule.threads.and_then(|e| const_int(k, e)).filter(|_| !roles);
    let threads = threads.and_then(|t| t.checked_mul(ctas::ctas(k)));
    block(cx, k.body, threads);
}

/// Checks the statements of a block that `threads` threads run, if their number is known.
fn block(cx: &mut Cx<'_, '_>, b: Block, threads: Option<i64>) {
    for &s in &cx.k.blocks[b] {
        let k = cx.k;
        match &k.stmts[s] {
            StmtData::Var { value, .. } | StmtData::Alloc { value, .. } => {
                if let Some(t) = k.tile_ty(*value) {
                    // Registers of the producer belong to its threads, once its slots are known.
                    tile(cx, (s, *value), t, threads.filter(|_| !k.plans[s].producer));
                }
            }
            StmtData::Copy { .. } => copy(cx, s, threads),
            _ => {}
        }
        let inner = match &k.stmts[s] {
            StmtData::Role { warps, .. } => const_int(k, *warps).and_then(|w| w.checked_mul(32)),
            _ => threads,
        };
        for b in k.sub_blocks(s) {
            block(cx, b, inner);
        }
    }
}

/// log2 of each extent, rounded up, if all are known.
pub(super) fn dim_bits(k: &Kernel, t: &TileTy) -> Option<Vec<u32>> {
    t.shape.iter().map(|&e| Extent::of(k, e).known().map(extent_bits)).collect()
}

/// The number of threads, if it is a multiple of a warp. Other numbers are reported.
fn whole_warps(threads: Option<i64>) -> Option<u64> {
    threads.and_then(|t| u64::try_from(t).ok()).filter(|t| *t > 0 && t.is_multiple_of(u64::from(WARP)))
}

fn tile(cx: &mut Cx<'_, '_>, (s, v): (Stmt, Value), t: &TileTy, threads: Option<i64>) {
    let k = cx.k;
    let written = k.spot(k.stmt_spans[s], FixLocation::Layout);
    let span = k.values[v].span;
    let name = cx.name(v).to_owned();
    let is_reg = matches!(k.values[v].def, ValueDef::Var(_));
    if (is_reg && t.smem_layout.is_some()) || (!is_reg && t.reg_layout.is_some()) {
        let message = format!("tile `{name}` has the layout of another memory");
        cx.report(Diagnostic::error(codes::MALFORMED, span, message));
        return;
    }
    if t.reg_layout.is_none() && t.smem_layout.is_none() {
        return;
    }
    let Some(bits) = dim_bits(k, t) else { return };
    if bits.iter().sum::<u32>() > MAX_BITS {
        return; // Rule 9 has said so.
    }
    if is_uneven(cx, v, t, &bits, written) {
        return;
    }
    if let Some(layout) = &t.reg_layout {
        let shape: Option<Vec<u64>> = t.shape.iter().map(|&e| Extent::of(k, e).known()).collect();
        register(cx, (&name, span, written), layout, &shape.unwrap_or_default(), whole_warps(threads));
    }
    if let Some(layout) = &t.smem_layout {
        if layout.dim_bits() != bits {
            let extents: Vec<u64> = bits.iter().map(|b| 1 << b).collect();
            let message =
                format!("the layout of `{name}` is for extents {:?}, the tile has {extents:?}", layout.dims());
            let note = "a layout has a mode for each dimension of the tile, in its order";
            cx.report(Diagnostic::error(codes::LAYOUT_SIZE, span, message).with_note(note).with_left_out(written));
        } else if !layout.is_bijective() {
            let message = format!("the layout of `{name}` is not a bijection: {}", collision(layout));
            let note = "every element needs a place of its own, without gaps: the strides are the running products of the \
                        extents in some order";
            cx.report(Diagnostic::error(codes::LAYOUT_BIJECTION, span, message).with_note(note).with_left_out(written));
        } else if let Some(pitch) = layout.pitch() {
            panels(cx, (v, written), t, layout, pitch);
        }
    }
}

/// Checks that panels with a pitch do not overlap, and that the swizzle permutes elements within a panel.
fn panels(cx: &mut Cx<'_, '_>, (v, written): (Value, Option<Span>), t: &TileTy, layout: &SmemLayout, pitch: Pitch) {
    let k = cx.k;
    let (span, name) = (k.values[v].span, cx.name(v).to_owned());
    let shape: Option<Vec<u64>> = t.shape.iter().map(|&e| Extent::of(k, e).known()).collect();
    if shape.is_some_and(|shape| layout.span(&shape).is_none()) {
        let message = format!("panels of `{name}` overlap: one begins {} elements after the other", pitch.stride);
        let note = "the stride that is not a power of two counts panels, and each panel ends before the next begins";
        cx.report(Diagnostic::error(codes::LAYOUT_BIJECTION, span, message).with_note(note).with_left_out(written));
    } else if let ElemRef::Known(elem) = t.elem
        && !elem.size().makes_up(pitch.stride, PANEL_BYTES)
    {
        let message = format!("panels of `{name}` begin at no multiples of {PANEL_BYTES} bytes");
        let note = "of rows of 128 bytes a panel has a multiple of 8";
        cx.report(Diagnostic::error(codes::LAYOUT_SIZE, span, message).with_note(note).with_left_out(written));
    }
}

/// Reports a tile whose extent is not a power of two, if threads hold different registers of it.
fn is_uneven(cx: &mut Cx<'_, '_>, v: Value, t: &TileTy, bits: &[u32], written: Option<Span>) -> bool {
    let k = cx.k;
    let shape: Option<Vec<u64>> = t.shape.iter().map(|&e| Extent::of(k, e).known()).collect();
    let (Some(shape), Some(layout)) = (shape, &t.reg_layout) else { return false };
    let odd = t.shape.iter().zip(&shape).find(|(_, n)| !n.is_power_of_two());
    // Layouts for other extents, or that miss elements, are reported elsewhere.
    let Some((&e, n)) = odd.filter(|_| layout.out_bits() == bits.iter().sum() && layout.covers_tile()) else {
        return false;
    };
    if layout.is_even(&shape) {
        return false;
    }
    let name = cx.name(v);
    let message = format!(
        "the layout of `{name}` has gaps: extent {n} is not a power of two, and threads have different registers of it"
    );
    let note = "an extent counts as the next power of two, and elements beyond it do not exist; leave the layout out to have the compiler choose one";
    let d = Diagnostic::error(codes::LAYOUT_EXTENT, k.expr_spans[e], message).with_note(note);
    cx.report(d.with_left_out(written));
    true
}

/// The reason why a shared-memory layout is not a bijection.
fn collision(layout: &SmemLayout) -> String {
    match layout.map().kernel().first() {
        Some(&index) => {
            let mut coords = Vec::new();
            let mut rest = index;
            for &bits in layout.dim_bits() {
                coords.push((rest & ((1u64 << bits) - 1)).to_string());
                rest >>= bits;
            }
            let zero = vec!["0"; coords.len()].join(", ");
            format!("elements ({zero}) and ({}) share a place", coords.join(", "))
        }
        None => format!("2^{} elements are spread over 2^{} places", layout.map().in_bits(), layout.offset_bits()),
    }
}

/// A register tile's layout. `written`: its position in the text.
fn register(
    cx: &mut Cx<'_, '_>,
    (name, span, written): (&str, Span, Option<Span>),
    layout: &RegLayout,
    shape: &[u64],
    threads: Option<u64>,
) {
    let bits: u32 = shape.iter().map(|&n| extent_bits(n)).sum();
    if layout.out_bits() != bits {
        let message = format!(
            "the layout of `{name}` is for {} elements, the tile has {}",
            1u64 << layout.out_bits(),
            1u64 << bits
        );
        let note = "a register layout `(threads, values):(..)` gives positions in column-major order of the whole tile";
        cx.report(Diagnostic::error(codes::LAYOUT_SIZE, span, message).with_note(note).with_left_out(written));
    } else if !layout.covers_tile() {
        let held = 1u64 << layout.map().rank();
        let message = format!("the layout of `{name}` holds {held} of {} elements", 1u64 << bits);
        let note = "threads times registers must reach every element at least once";
        cx.report(Diagnostic::error(codes::LAYOUT_COVER, span, message).with_note(note).with_left_out(written));
    }
    let own = layout.threads(shape).unwrap_or(1 << layout.thread_bits());
    // For a layout of other extents, only the number of bits can be checked.
    let fits = |t: u64| if layout.out_bits() == bits { layout.is_for(shape, t) } else { own == t };
    if let Some(threads) = threads.filter(|&t| !fits(t)) {
        let message = format!("the layout of `{name}` is for {own} threads, the block has {threads}");
        let note = "a thread mode of stride 0 repeats the tile over further threads";
        cx.report(Diagnostic::error(codes::LAYOUT_THREADS, span, message).with_note(note).with_left_out(written));
    }
}

/// The threads that run a copy. Producer warps fill slots, also before they have a role.
fn running(k: &Kernel, s: Stmt, threads: Option<i64>) -> Option<i64> {
    let slot = match k.stmts[s] {
        StmtData::Copy { dst, .. } => matches!(&k.exprs[dst], ExprData::View(v) if v.slot == Some(Slot::Put)),
        _ => false,
    };
    if k.plans[s].producer && slot { Some(i64::from(PRODUCER_WARPS * WARP)) } else { threads }
}

/// Rule 21.
fn copy(cx: &mut Cx<'_, '_>, s: Stmt, threads: Option<i64>) {
    let k = cx.k;
    let StmtData::Copy { src, dst, attrs } = &k.stmts[s] else { return };
    let layout_of = |e| match k.exprs[e] {
        ExprData::Ref(v) => k.tile_ty(v).and_then(|t| t.reg_layout.as_ref()),
        _ => None,
    };
    let span = k.stmt_spans[s];
    if let (Some(a), Some(b)) = (layout_of(*src), layout_of(*dst))
        && a.thread_bits() != b.thread_bits()
    {
        let message = format!(
            "this copy is from a tile over {} threads to one over {}",
            1u64 << a.thread_bits(),
            1u64 << b.thread_bits()
        );
        let note = "a thread mode of stride 0 repeats a tile over further threads";
        cx.report(Diagnostic::error(codes::LAYOUT_THREADS, span, message).with_note(note));
    }
    let (Some(layout), Some(shape)) = (&attrs.threads, copy_shape(k, *src, *dst)) else { return };
    let Some(elems) = shape.iter().try_fold(1u64, |n, &x| n.checked_mul(x)) else { return };
    let bits: u32 = shape.iter().map(|&n| extent_bits(n)).sum();
    if layout.out_bits() != bits || !layout.covers_tile() {
        let message = format!("the threads of this copy move {} of {elems} elements", 1u64 << layout.map().rank());
        let note = "`threads (threads, values):(..)` gives positions in column-major order of the whole tile";
        cx.report(
            Diagnostic::error(codes::LAYOUT_COVER, span, message)
                .with_note(note)
                .with_left_out(k.clause(span, "threads")),
        );
    } else if let Some((own, t)) = layout.threads(&shape).zip(whole_warps(running(k, s, threads)))
        && !layout.is_for(&shape, t)
    {
        let message = format!("this copy is spread over {own} threads, and {t} run it");
        let note = "a thread mode of stride 0 has further threads repeat what others move";
        cx.report(
            Diagnostic::error(codes::LAYOUT_THREADS, span, message)
                .with_note(note)
                .with_left_out(k.clause(span, "threads")),
        );
    }
}
