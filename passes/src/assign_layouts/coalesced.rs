//! Coalesced layouts: neighbouring threads access neighbouring memory.

use tilec_ir::bits::Bits;
use tilec_ir::layout::{RegLayout, shape_bits};
use tilec_ir::target::WARP;

/// A thread owns `2^chunk` neighbours along `contiguous`; neighbouring threads own neighbouring chunks, and then the
/// other dimensions follow.
pub(crate) fn coalesced(dim_bits: &[u32], contiguous: usize, chunk: u32, threads: u32) -> Option<RegLayout> {
    coalesced_within(dim_bits, contiguous, chunk, threads, &[])
}

/// Like [`coalesced`], with at least `2^least` neighbours in a thread. If there are too few for all threads, some
/// threads are replicas.
pub(crate) fn coalesced_of(
    least: u32,
    dim_bits: &[u32],
    contiguous: usize,
    chunk: u32,
    threads: u32,
) -> Option<RegLayout> {
    let total: u32 = dim_bits.iter().sum();
    let enough = threads.min(total.saturating_sub(least.min(*dim_bits.get(contiguous)?)));
    let layout = coalesced(dim_bits, contiguous, chunk, enough)?;
    let mut thread = layout.thread().cols().to_vec();
    thread.resize(threads as usize, 0);
    RegLayout::new(layout.value().cols().to_vec(), thread, total)
}

/// Like [`coalesced_of`], with the elements along the dimensions `within` in one warp.
pub(crate) fn coalesced_within(
    dim_bits: &[u32],
    contiguous: usize,
    chunk: u32,
    threads: u32,
    within: &[usize],
) -> Option<RegLayout> {
    let total: u32 = dim_bits.iter().sum();
    let mut base = 0;
    let mut bases = Vec::new();
    for &bits in dim_bits {
        bases.push(base);
        base += bits;
    }
    let column = |dim: usize, bit: u32| 1u64 << (bases[dim] + bit);
    let mut order: Vec<u64> = (0..*dim_bits.get(contiguous)?).map(|b| column(contiguous, b)).collect();
    // The last of the other dimensions varies fastest.
    for dim in (0..dim_bits.len()).rev().filter(|&d| d != contiguous) {
        order.extend((0..dim_bits[dim]).map(|b| column(dim, b)));
    }
    let chunk = chunk.min(total.saturating_sub(threads)).min(dim_bits[contiguous]) as usize;
    let mut value: Vec<u64> = order.drain(..chunk).collect();
    let lanes = if within.is_empty() { threads } else { threads.min(WARP.ilog2()) };
    let owned = (lanes as usize).min(order.len());
    let mut thread: Vec<u64> = order.drain(..owned).collect();
    thread.resize(lanes as usize, 0);
    // Warps differ along the other dimensions, and are replicas if none is left.
    let fixed: u64 =
        within.iter().flat_map(|&d| (0..dim_bits[d]).map(move |b| (d, b))).fold(0, |a, (d, b)| a | column(d, b));
    let apart: Vec<u64> = order.iter().copied().filter(|c| c & fixed == 0).take((threads - lanes) as usize).collect();
    order.retain(|c| !apart.contains(c));
    thread.extend(apart);
    thread.resize(threads as usize, 0);
    value.extend(order);
    RegLayout::new(value, thread, total)
}

/// Like [`coalesced`], with the elements of a thread that are not of its chunk along the dimensions `along`.
pub(crate) fn coalesced_along(
    dim_bits: &[u32],
    (contiguous, chunk): (usize, u32),
    threads: u32,
    along: &[usize],
) -> Option<RegLayout> {
    let total: u32 = dim_bits.iter().sum();
    let chunk = chunk.min(total.saturating_sub(threads)).min(*dim_bits.get(contiguous)?);
    let mut rest = total.saturating_sub(threads + chunk);
    let mut part = dim_bits.to_vec();
    let mut value: Vec<u64> = Vec::new();
    for &dim in along {
        let own = rest.min(part[dim]);
        let base: u32 = dim_bits[..dim].iter().sum();
        value.extend((base..base + own).map(|bit| 1u64 << bit));
        part[dim] -= own;
        rest -= own;
    }
    // Threads divide blocks of these elements as they would divide elements.
    let blocks = coalesced(&part, contiguous, chunk, threads)?;
    let lift = |column: &u64| {
        let (mut out, mut from, mut to) = (0, 0, 0);
        for (&part, &all) in part.iter().zip(dim_bits) {
            out |= (column >> from & ((1 << part) - 1)) << (to + all - part);
            from += part;
            to += all;
        }
        out
    };
    let (mut own, thread): (Vec<u64>, Vec<u64>) =
        (blocks.value().cols().iter().map(lift).collect(), blocks.thread().cols().iter().map(lift).collect());
    own.extend(value);
    RegLayout::new(own, thread, total)
}

/// Like [`coalesced`], with all elements along the dimensions `own` in each thread.
pub(crate) fn coalesced_owning(
    dim_bits: &[u32],
    contiguous: usize,
    chunk: u32,
    threads: u32,
    own: &[usize],
) -> Option<RegLayout> {
    let shared: Vec<u32> =
        dim_bits.iter().enumerate().map(|(d, &bits)| if own.contains(&d) { 0 } else { bits }).collect();
    let layout = coalesced(&shared, contiguous, chunk, threads)?;
    owning_rest(&layout, &shared, dim_bits)
}

/// A layout of the first `part` coordinate bits of each dimension, with all further bits in registers.
fn owning_rest(layout: &RegLayout, part: &[u32], dim_bits: &[u32]) -> Option<RegLayout> {
    let lift = |column: &u64| {
        let (mut out, mut from, mut to) = (0, 0, 0);
        for (&part, &all) in part.iter().zip(dim_bits) {
            out |= (column >> from & ((1 << part) - 1)) << to;
            from += part;
            to += all;
        }
        out
    };
    let mut value: Vec<u64> = layout.value().cols().iter().map(lift).collect();
    let mut base = 0;
    for (&part, &bits) in part.iter().zip(dim_bits) {
        value.extend((base + part..base + bits).map(|bit| 1u64 << bit));
        base += bits;
    }
    RegLayout::new(value, layout.thread().cols().iter().map(lift).collect(), dim_bits.iter().sum())
}

/// A thread owns a block: `2^run` neighbours along each of two dimensions, so that it can access memory of either order
/// in wide pieces and transpose in registers. Neighbouring threads own neighbouring blocks along `first`, then along
/// `second`. Blocks narrower than 16 bytes are combined along `second` by every eighth thread: a swizzle keeps pieces
/// of 16 bytes together, so only this order can spread the stores of a warp over all banks.
/// Runs have `2^least` neighbours at least: with fewer elements than threads need, some threads have the elements of others.
fn blocked(
    dim_bits: &[u32],
    (first, second): (usize, usize),
    (least, run): (u32, u32),
    threads: u32,
    elem: Bits,
) -> Option<RegLayout> {
    let total: u32 = dim_bits.iter().sum();
    let enough = (total.saturating_sub(threads) / 2).max(least);
    let run = run.min(enough).min(dim_bits[first]).min(dim_bits[second]);
    let columns = |dim: usize| {
        let base: u32 = dim_bits[..dim].iter().sum();
        (base..base + dim_bits[dim]).map(|b| 1u64 << b).collect::<Vec<u64>>()
    };
    let (along, across) = (columns(first), columns(second));
    let (along_run, along_rest) = along.split_at(run as usize);
    let (across_run, across_rest) = across.split_at(run as usize);
    let missing = elem.per(super::transposing_copies::WIDE).ilog2().saturating_sub(run);
    let words = elem.per(4) <= 1 << run;
    let (near, far) = along_rest.split_at(along_rest.len().min(super::transposing_copies::UNITS as usize));
    let (piece, beyond) = across_rest.split_at(if words { across_rest.len().min(missing as usize) } else { 0 });
    let mut rest = [near, piece, far, beyond].concat();
    for dim in (0..dim_bits.len()).rev().filter(|&d| d != first && d != second) {
        rest.extend(columns(dim));
    }
    let owned = (threads as usize).min(rest.len());
    let mut thread: Vec<u64> = rest.drain(..owned).collect();
    thread.resize(threads as usize, 0);
    RegLayout::new([along_run, across_run, &rest].concat(), thread, total)
}

/// Like [`blocked`], if all threads can have the same number of elements of a tile of these extents. Else threads divide the
/// largest power of two that divides each extent, and each has its part of all such units.
pub(crate) fn blocked_evenly(
    shape: &[u64],
    dims: (usize, usize),
    runs: (u32, u32),
    threads: u32,
    elem: Bits,
) -> Option<RegLayout> {
    let bits = shape_bits(shape);
    blocked(&bits, dims, runs, threads, elem).filter(|layout| layout.is_even(shape)).or_else(|| {
        let unit: Vec<u32> = shape.iter().zip(&bits).map(|(n, &bits)| n.trailing_zeros().min(bits)).collect();
        owning_rest(&blocked(&unit, dims, runs, threads, elem)?, &unit, &bits)
    })
}
