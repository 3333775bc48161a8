//! Copies whose rows are not known to be multiples of 16 bytes (`unaligned`), and their thread layouts.
//!
//! This is for copies to shared memory that have no 16-byte accesses only because of the alignment of the tensor.
//! Threads load the aligned words that cover the accesses, and shift them in registers. The shift must be the same for
//! all accesses of a thread, so that it can be computed in front of the loop. So the rows of a thread are a multiple of
//! 16 apart (for elements of one byte; of 8 for two bytes, ..), for any distance between rows.

use crate::analysis::access_width::{MAX_ACCESS_BYTES, elem_of, global_width, known_elem, window_contiguous_dim};
use crate::analysis::contiguous_dim::smem_window_dim;
use crate::analysis::facts::{Facts, contiguous_dim};
use crate::analysis::uses::path_to;
use crate::analysis::views::plain_var;
use crate::assign_layouts::log2_shape;
use crate::registers::overhead::{ADDRESSES, SHIFTED};
use tilec_ir::bits::Bits;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::extents::begins_in_front;
use tilec_ir::kernel::{CopyAttrs, Kernel, Mechanism, StmtData, ValueDef};
use tilec_ir::layout::RegLayout;
use tilec_ir::target::{REGISTERS_PER_THREAD, is_shifted};
use tilec_ir::typing::resolve_view;

/// An access that is assembled from aligned words.
pub(crate) struct Unaligned {
    /// Elements of an access: 16 bytes.
    pub(crate) vec: u32,
    /// Number of elements that are known to be aligned.
    pub(crate) aligned: u32,
    /// The contiguous dimension.
    pub(crate) dim: usize,
}

impl Unaligned {
    /// Registers of the words that cover a thread's accesses.
    pub(crate) fn registers(&self, layout: &RegLayout) -> u64 {
        let words = u64::from(2 * MAX_ACCESS_BYTES / 4);
        (1u64 << layout.value_bits().min(32)) / u64::from(self.vec) * words
    }
}

/// Registers of a thread that remain next to the tiles of products (accumulators, and two sets of fragments) and the
/// addresses of `copies` copies.
pub(crate) fn room(k: &Kernel, copies: u64) -> u64 {
    let mut taken = ADDRESSES + SHIFTED * copies.saturating_sub(1);
    for (v, data) in k.values.iter() {
        let ValueDef::Var(tile) = &data.def else { continue };
        let Some(layout) = &tile.reg_layout else { continue };
        let words = known_elem(k, v).words(1 << layout.value_bits().min(32));
        let loaded = k.statement_data().any(|s| {
            matches!(s, StmtData::Copy { src, dst, .. }
                if plain_var(k, *dst) == Some(v) && resolve_view(k, *src).is_some_and(|view| smem(k, view.base)))
        });
        taken += words * (1 + u64::from(loaded));
    }
    u64::from(REGISTERS_PER_THREAD).saturating_sub(taken)
}

fn smem(k: &Kernel, v: Value) -> bool {
    k.values[v].def.space().is_of_block()
}

/// Whether only the alignment of the tensor prevents 16-byte accesses in a copy of a tile of this shape.
pub(crate) fn applies(
    k: &Kernel,
    facts: &Facts,
    s: Stmt,
    src: Expr,
    dst: Expr,
    attrs: &CopyAttrs,
    shape: &[u64],
) -> Option<Unaligned> {
    // Outside of loops, the words would be awaited at once. Elements next to the window must not be written meanwhile.
    if !in_a_loop(k, s)
        || written(k, resolve_view(k, src)?.base)
        || attrs.keep
        || attrs.fill.is_some()
        || attrs.reduce.is_some()
        || attrs.mechanism != Mechanism::Registers
    {
        return None;
    }
    let (from, to) = (resolve_view(k, src)?, resolve_view(k, dst)?);
    let tensor = k.tensor_ty(from.base)?;
    if !smem(k, to.base) || !tensor.padded.is_empty() || (0..tensor.shape.len()).any(|d| tensor.modes(d).is_some()) {
        return None;
    }
    let elem = elem_of(k, from.base).filter(|&e| elem_of(k, to.base) == Some(e))?;
    contiguous_dim(k, from.base)?;
    let dim = window_contiguous_dim(k, &from).filter(|&d| smem_window_dim(k, &to) == Some(d))?;
    let vec = elem.per(MAX_ACCESS_BYTES);
    // The words of a row are limited to the row. Gathered rows have no common distance.
    if begins_in_front(k, &from) || from.is_gathered() {
        return None;
    }
    let aligned = global_width(k, facts, &from, shape).elems;
    takes_words(elem.size(), u64::from(aligned), *shape.get(dim)?).then_some(Unaligned { vec, aligned, dim })
}

/// Whether accesses to rows of `run` elements, with alignment of `aligned` elements, are assembled from aligned words.
pub(crate) fn takes_words(elem: Bits, aligned: u64, run: u64) -> bool {
    let full = u64::from(elem.per(MAX_ACCESS_BYTES));
    is_shifted(elem) && aligned < full && run >= full
}

/// Whether some copy writes a tensor.
fn written(k: &Kernel, tensor: Value) -> bool {
    k.statement_data().any(
        |s| matches!(s, StmtData::Copy { dst, .. } if resolve_view(k, *dst).is_some_and(|view| view.base == tensor)),
    )
}

/// Whether a statement is in a loop at run time.
fn in_a_loop(k: &Kernel, s: Stmt) -> bool {
    let looped = |&(b, i): &(_, usize)| matches!(k.stmts[k.blocks[b][i]], StmtData::For { unroll: false, .. });
    path_to(k, s).iter().any(looped)
}

/// Neighbouring threads load neighbouring accesses of a row, and rows up to a multiple of `vec`; the rest of either
/// belongs to the thread itself, or to other threads. `None`: there are too few threads.
pub(crate) fn layout(shape: &[u64], of: &Unaligned, threads: u32) -> Option<RegLayout> {
    let bits = log2_shape(shape);
    let total: u32 = bits.iter().sum();
    let columns = |dim: usize| {
        let base: u32 = bits[..dim].iter().sum();
        (base..base + bits[dim]).map(|b| 1u64 << b).collect::<Vec<u64>>()
    };
    let run = of.vec.ilog2() as usize;
    let along = columns(of.dim);
    let (run, accesses) = along.split_at_checked(run)?;
    let (mut near, mut far) = (Vec::new(), Vec::new());
    // The last of the other dimensions varies fastest.
    for dim in (0..bits.len()).rev().filter(|&d| d != of.dim) {
        let rows = columns(dim);
        let (low, high) = rows.split_at(rows.len().min(of.vec.ilog2() as usize));
        near.extend_from_slice(low);
        far.extend_from_slice(high);
    }
    let room = (threads as usize).checked_sub(near.len())?;
    let (first, rest) = accesses.split_at(accesses.len().min(room));
    let mut thread: Vec<u64> = [first, &near, rest, &far].concat();
    let own: Vec<u64> = thread.split_off(thread.len().min(threads as usize));
    thread.resize(threads as usize, 0);
    RegLayout::new([run, &own].concat(), thread, total)
}
