//! Sorts of rows that several warps, and blocks of a cluster, share.
//!
//! A sort is a network of comparisons between elements whose indices differ by a mask ([`tilec_ir::combine::exchanges`]). Comparisons by the lower bits stay within warps: these are bits of
//! registers and lanes. For comparisons by higher bits elements are exchanged, so that these bits become register or lane bits, and lower bits select warps:
//!
//! ```text
//! var v_x = reg f32[1, 4096] layout bits 12 thread(..) value(..) = x
//! let v_0 = sort (v_x) along 1 steps (0, 55) with ..            // rows of 1024 within warps
//! var v_x_0 = reg f32[1, 4096] layout .. = v_0.0
//! copy v_x_0 -> v_x_shared
//! var v_x_1 = reg f32[1, 4096] layout ..                        // the bits 10 and 11 are registers'
//! copy v_x_shared -> v_x_1
//! let v_1 = sort (v_x_1) along 1 steps (55, 56) with ..
//! ..
//! let v = sort (v_x_6) along 1 steps (68, 78) with ..
//! ```
//!
//! The first comparison of a block of `2^k` elements is of the first with the last. In the layout for it one column is the whole mask `2^k - 1`: the bit that selects the half of the
//! block mirrors the upper half.
//!
//! Needs: a thread count. Decides: the layouts of sorted rows, and the number of pieces in which elements are exchanged, so that their buffers fit. A sort within
//! one warp is left unchanged. So is a sort in which lanes of several warps would have no element.

use super::materialise::tile;
use super::threads::Threads;
use crate::Cx;
use crate::analysis::uses::{all_stmts, place_of};
use crate::analysis::views::memory_views;
use tilec_ir::combine::{Combine, How, comparisons, component, exchanges};
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, Range, StmtData, ValueDef, View};
use tilec_ir::layout::{RegLayout, shape_bits};
use tilec_ir::target::WARP;
use tilec_ir::types::ElemRef;
use tilec_ir::typing::{fixed_shape, shape_of_tuples, type_of};

/// The comparisons that are made in one layout.
struct Stage {
    layout: RegLayout,
    from: u32,
    to: u32,
}

/// The roles of the bits of an element's index along a row.
struct Shared {
    /// Bits of the extents in front of the row's dimension, of the row, and of the whole tile.
    base: u32,
    row: u32,
    all: u32,
    /// The lowest bits of the row, which are register or lane bits unless displaced; the first of them are register
    /// bits.
    within: u32,
    registers: u32,
    /// The highest bits of the row, which are always register bits: pieces that are exchanged one after the other.
    pieces: u32,
}

/// Rewrites the sorts of rows that warps share.
pub(super) fn distribute_sorts(k: &mut Kernel, cx: &mut Cx<'_>, threads: Threads) {
    for s in all_stmts(k, k.body) {
        let StmtData::Let { value, init } = k.stmts[s] else { continue };
        let ExprData::Combine(combine) = &k.exprs[init] else { continue };
        if combine.operation != (How::Sort { steps: None }) {
            continue;
        }
        let combine = (**combine).clone();
        let Some(shape) = shape_of_tuples(k, &combine) else { continue };
        let moving: Vec<usize> = (0..combine.args.len()).filter(|&i| moves(k, &combine, i)).collect();
        let whole = |&i: &usize| fixed_shape(k, combine.args[i]).is_some_and(|own| own == shape);
        if !moving.iter().all(whole) {
            continue;
        }
        let bytes: u64 = moving.iter().map(|&i| bytes_of(k, combine.first[i])).sum();
        let most = cx.options.target.smem_per_block() / 4 * 3;
        let Some(shared) = Shared::of(&shape, combine.axis as usize, threads, bytes, most) else { continue };
        let stages = shared.stages();
        let message = format!(
            "`{}`: sorted rows span warps; elements are exchanged {} times through shared memory",
            k.values[value].name,
            stages.len() - 1
        );
        cx.remark(k.expr_spans[init], message);
        Work { s, value, init, combine, shape, moving, pieces: shared.pieces, buffers: Vec::new() }.write(k, &stages);
    }
}

/// Whether a component differs along the row.
fn moves(k: &Kernel, combine: &Combine, i: usize) -> bool {
    fixed_shape(k, combine.args[i]).is_some_and(|shape| shape.get(combine.axis as usize).is_some_and(|&n| n > 1))
}

fn bytes_of(k: &Kernel, v: Value) -> u64 {
    match component(k, v) {
        ElemRef::Known(elem) => elem.size().bytes_of(1),
        ElemRef::Param(_) => u64::from(u64::BITS / u8::BITS),
    }
}

impl Shared {
    /// The division of rows along `axis`. An element has `bytes`, and a block can exchange at most `most` bytes.
    /// `None`: a warp has whole rows, or a row has too few elements.
    fn of(shape: &[u64], axis: usize, threads: Threads, bytes: u64, most: u64) -> Option<Shared> {
        let bits = shape_bits(shape);
        let count = threads.count();
        if !count.is_power_of_two() || !shape.iter().all(|n| n.is_power_of_two()) {
            return None;
        }
        let (all, row, threads, lanes) = (bits.iter().sum::<u32>(), bits[axis], count.ilog2(), WARP.ilog2());
        let rows = all - row;
        let outside = threads.saturating_sub(lanes + rows);
        if outside == 0 || row < lanes + outside {
            return None;
        }
        let registers = row - lanes - outside;
        let pieces = (0..=registers).find(|&p| bytes << all >> p <= most).unwrap_or(registers);
        let (within, registers) = (row - outside - pieces, registers - pieces);
        Some(Shared { base: bits[..axis].iter().sum(), row, all, within, registers, pieces })
    }

    /// The end of the row bits that select neither registers in all layouts nor pieces.
    fn moved(&self) -> u32 {
        self.row - self.pieces
    }

    /// The comparisons of each layout.
    fn stages(&self) -> Vec<Stage> {
        let mut stages: Vec<(Option<std::ops::Range<u32>>, bool, u32)> = Vec::new();
        let mut number = 0;
        for block in 1..=self.row {
            for (i, mask) in exchanges(self.row).skip(number as usize).take(block as usize).enumerate() {
                let top = mask.ilog2().min(self.moved() - 1);
                let group = |top: u32| (top + 1).saturating_sub(self.within).max(self.within)..top + 1;
                let (wanted, mirrored) = match i {
                    _ if top < self.within => (None, false),
                    0 => (Some(group(top)), true),
                    // Comparisons between registers in every layout.
                    _ if mask.ilog2() >= self.moved() => match stages.last() {
                        Some((last, mirrored, _)) => (last.clone(), *mirrored),
                        None => (None, false),
                    },
                    _ => match stages.last() {
                        // The mirroring bit is not an index bit by itself, so comparisons after it need another layout.
                        Some((Some(last), mirrored, _))
                            if last.contains(&top) && !(*mirrored && top + 1 == last.end) =>
                        {
                            (Some(last.clone()), *mirrored)
                        }
                        _ => (Some(group(top)), false),
                    },
                };
                match stages.last_mut() {
                    Some(last) if last.0 == wanted && last.1 == mirrored => last.2 += 1,
                    _ => stages.push((wanted, mirrored, 1)),
                }
            }
            number += block;
        }
        debug_assert_eq!(number, comparisons(self.row));
        let mut from = 0;
        let stage = |(group, mirrored, n): (Option<std::ops::Range<u32>>, bool, u32)| {
            let (first, to) = (from, from + n);
            from = to;
            Stage { layout: self.layout(group, mirrored), from: first, to }
        };
        stages.into_iter().map(stage).collect()
    }

    /// The layout in which the row bits `group` are register or lane bits. `mirrored`: the highest of them selects
    /// between elements that mirror each other.
    fn layout(&self, group: Option<std::ops::Range<u32>>, mirrored: bool) -> RegLayout {
        let mut place: Vec<u32> = (0..self.row).collect();
        // Displaces the highest register bits first, so that threads keep neighbours.
        let displaced = (0..self.registers).rev().chain((self.registers..self.within).rev());
        let highest = group.as_ref().map(|g| g.end - 1);
        for (bit, other) in group.into_iter().flatten().zip(displaced) {
            place.swap(bit as usize, other as usize);
        }
        let column = |at: u32| {
            let bit = place[at as usize];
            let mask = if mirrored && Some(bit) == highest { (1u64 << (bit + 1)) - 1 } else { 1 << bit };
            mask << self.base
        };
        let rows = (0..self.base).chain(self.base + self.row..self.all).map(|bit| 1u64 << bit);
        let thread = (self.registers..self.moved()).map(column).chain(rows).collect();
        let value = (0..self.registers).chain(self.moved()..self.row).map(column).collect();
        RegLayout::new(value, thread, self.all).expect("bug: every bit of a number is somewhere")
    }
}

/// A sort that is rewritten as several.
struct Work {
    s: Stmt,
    value: Value,
    init: Expr,
    combine: Combine,
    shape: Vec<u64>,
    /// The components that differ along the row.
    moving: Vec<usize>,
    pieces: u32,
    /// The buffer through which each of them is exchanged.
    buffers: Vec<Value>,
}

impl Work {
    fn write(mut self, k: &mut Kernel, stages: &[Stage]) {
        let mut front = Vec::new();
        let mut tiles: Vec<Value> =
            self.moving.clone().into_iter().map(|i| self.first(k, i, &stages[0].layout, &mut front)).collect();
        for (n, pair) in stages.windows(2).enumerate() {
            let sorted = self.part(k, &tiles, &pair[0]);
            let named = self.named(k, &format!("{}", n));
            front.push(k.stmt(StmtData::Let { value: named, init: sorted }, k.stmt_spans[self.s]));
            tiles = self.exchanged(k, named, (&pair[0].layout, &pair[1].layout), &mut front);
        }
        let last = &stages[stages.len() - 1];
        let sorted = self.part(k, &tiles, last);
        k.exprs[self.init] = k.exprs[sorted].clone();
        let (block, index) = place_of(k, self.s);
        k.blocks[block].splice(index..index, front);
    }

    fn named(&self, k: &mut Kernel, what: &str) -> Value {
        let (name, span) = (format!("{}_{what}", k.values[self.value].name), k.stmt_spans[self.s]);
        k.value(&name, span, ValueDef::Let)
    }

    /// A tile of a component.
    fn tile(&self, k: &mut Kernel, i: usize, what: &str, shape: &[u64], layout: Option<RegLayout>) -> Value {
        let of = self.combine.first[i];
        let ty = tile(k, self.s, component(k, of), shape, layout.clone());
        let name = format!("{}_{what}", k.values[of].name);
        let def = if layout.is_some() { ValueDef::Var(ty) } else { ValueDef::Smem(ty) };
        k.value(&name, k.stmt_spans[self.s], def)
    }

    /// The initial tile of a component.
    fn first(&self, k: &mut Kernel, i: usize, layout: &RegLayout, front: &mut Vec<Stmt>) -> Value {
        let (arg, elem) = (self.combine.args[i], component(k, self.combine.first[i]));
        let value = self.tile(k, i, "unsorted", &self.shape.clone(), Some(layout.clone()));
        let arg = match type_of(k, arg).ok().and_then(|t| t.elem()) {
            Some(own) if own != elem => k.expr(ExprData::Cast { elem, arg }, k.expr_spans[arg]),
            _ => arg,
        };
        let (span, in_memory) = (k.stmt_spans[self.s], !memory_views(k, arg).is_empty());
        front.push(k.stmt(StmtData::Var { value, init: (!in_memory).then_some(arg) }, span));
        if in_memory {
            let dst = k.value_ref(value, span);
            front.push(k.stmt(StmtData::Copy { src: arg, dst, attrs: CopyAttrs::default() }, span));
        }
        value
    }

    /// The sort of these tiles by the comparisons of one stage.
    fn part(&self, k: &mut Kernel, tiles: &[Value], stage: &Stage) -> Expr {
        let span = k.expr_spans[self.init];
        let again = k.copy_expr(self.init);
        let ExprData::Combine(combine) = k.exprs[again].clone() else { unreachable!("bug: a sort is one") };
        let mut args = combine.args.clone();
        for (&i, &v) in self.moving.iter().zip(tiles) {
            args[i] = k.value_ref(v, span);
        }
        let how = How::Sort { steps: Some((stage.from, stage.to)) };
        k.expr(ExprData::Combine(Box::new(Combine { operation: how, args, ..*combine })), span)
    }

    /// Tiles in the layout of the next stage, with the results of the last one.
    fn exchanged(
        &mut self,
        k: &mut Kernel,
        sorted: Value,
        (from, to): (&RegLayout, &RegLayout),
        front: &mut Vec<Stmt>,
    ) -> Vec<Value> {
        let span = k.stmt_spans[self.s];
        let mut piece = self.shape.clone();
        piece[self.combine.axis as usize] >>= self.pieces;
        if self.buffers.is_empty() {
            for &i in &self.moving {
                let buffer = self.tile(k, i, "shared", &piece, None);
                front.push(k.stmt(StmtData::Alloc { value: buffer, over: Vec::new() }, span));
                self.buffers.push(buffer);
            }
        }
        let (mut before, mut behind) = (Vec::new(), Vec::new());
        for &i in &self.moving {
            let own = self.tile(k, i, "ordered", &self.shape, Some(from.clone()));
            let of = k.value_ref(sorted, span);
            let part = k.expr(ExprData::Part { of, index: i as u32 }, span);
            front.push(k.stmt(StmtData::Var { value: own, init: Some(part) }, span));
            let next = self.tile(k, i, "exchanged", &self.shape, Some(to.clone()));
            front.push(k.stmt(StmtData::Var { value: next, init: None }, span));
            before.push(own);
            behind.push(next);
        }
        for at in 0..1u64 << self.pieces {
            for (n, &i) in self.moving.iter().enumerate() {
                let src = self.piece(k, i, (before[n], from), (at, &piece), (front, true));
                let dst = k.value_ref(self.buffers[n], span);
                front.push(k.stmt(StmtData::Copy { src, dst, attrs: CopyAttrs::default() }, span));
            }
            for (n, &i) in self.moving.iter().enumerate() {
                let src = k.value_ref(self.buffers[n], span);
                if self.pieces == 0 {
                    let dst = k.value_ref(behind[n], span);
                    front.push(k.stmt(StmtData::Copy { src, dst, attrs: CopyAttrs::default() }, span));
                    continue;
                }
                let part = self.piece(k, i, (behind[n], to), (at, &piece), (front, false));
                let copy = StmtData::Copy { src, dst: part, attrs: CopyAttrs::default() };
                let window = front.pop().expect("a piece comes from a tile");
                front.push(k.stmt(copy, span));
                front.push(window);
            }
        }
        behind
    }

    /// A piece of a tile's row, in a tile of its own if there are several. The last statement copies it from or to the
    /// tile.
    fn piece(
        &self,
        k: &mut Kernel,
        i: usize,
        (whole, layout): (Value, &RegLayout),
        (at, shape): (u64, &[u64]),
        (front, reads): (&mut Vec<Stmt>, bool),
    ) -> Expr {
        let span = k.stmt_spans[self.s];
        if self.pieces == 0 {
            return k.value_ref(whole, span);
        }
        let (bits, own) = (shape_bits(&self.shape), shape_bits(shape));
        let (of_piece, _) = layout.window(&bits, &vec![0; bits.len()], &own).expect("bug: pieces are registers");
        let part = self.tile(k, i, "piece", shape, Some(of_piece));
        front.push(k.stmt(StmtData::Var { value: part, init: None }, span));
        let axis = self.combine.axis as usize;
        let starts: Vec<u64> = (0..shape.len()).map(|d| if d == axis { at * shape[axis] } else { 0 }).collect();
        let ranges = starts.iter().map(|&at| Range::From { start: k.int(at as i64, span), end: None }).collect();
        let window = k.expr(ExprData::View(View { base: whole, slot: None, ranges }), span);
        let tile = k.value_ref(part, span);
        let (src, dst) = if reads { (window, tile) } else { (tile, window) };
        front.push(k.stmt(StmtData::Copy { src, dst, attrs: CopyAttrs::default() }, span));
        k.value_ref(part, span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every comparison is made, in order, in a layout that holds each element once and both elements of the comparison
    /// in one warp. Pieces are whole registers.
    fn check(row: u32, outside: u32, pieces: u32, (base, behind): (u32, u32)) {
        let within = row - outside - pieces;
        let registers = within - WARP.ilog2();
        let shared = Shared { base, row, all: base + row + behind, within, registers, pieces };
        let shape = [1 << base, 1 << row, 1 << behind];
        let mut next = 0;
        for stage in shared.stages() {
            assert_eq!(stage.from, next, "row {row}, outside {outside}, pieces {pieces}");
            next = stage.to;
            assert!(stage.layout.map().is_bijective());
            let found = stage.layout.sorted(&shape, 1, Some((stage.from, stage.to)));
            assert!(found.is_ok(), "row {row}, outside {outside}, pieces {pieces}: {found:?} from {}", stage.from);
            let piece = [base, row - pieces, behind];
            assert!(stage.layout.window(&[base, row, behind], &[0; 3], &piece).is_some());
        }
        assert_eq!(next, comparisons(row));
    }

    #[test]
    fn stages_make_all_comparisons() {
        for outside in 1..=8 {
            for registers in 0..=6 {
                for pieces in 0..=registers.min(4) {
                    check(outside + registers + WARP.ilog2(), outside, pieces, (0, 0));
                }
            }
        }
        check(9, 2, 1, (1, 0));
        check(9, 2, 0, (0, 2));
    }
}
