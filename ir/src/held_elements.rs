//! Elements that a thread already holds when it loads a window, because it has loaded another window of the tensor.
//!
//! ```text
//! copy X[i * 16.., j * 64..] -> x
//! copy X[i * 16 - 1.., j * 64..] -> up held x (-1, 0)
//! ```
//!
//! Element `e` of `up` is element `e + (-1, 0)` of `x`. A thread that has it in a register of `x` does not load it again.

use crate::entities::{Block, Expr, Stmt, Value};
use crate::kernel::{ExprData, Kernel, StmtData};
use crate::layout::{RegLayout, shape_bits};
use crate::literal::Literal;
use crate::mechanism::Mechanism;
use crate::modified_values::changes;
use crate::names::Parts;
use crate::types::{ElemRef, TensorTy};
use crate::typing::{ResolvedView, ViewDim, resolve_view};

/// A load of a window of a tensor into all of a register tile, by the threads that hold it.
#[derive(Clone, Debug)]
pub struct PlainLoad {
    /// The tile.
    pub tile: Value,
    /// The window.
    pub view: ResolvedView,
    /// The value of elements outside of the tensor.
    pub fill: Option<Literal>,
}

impl PlainLoad {
    /// The load that a statement is.
    pub fn of(k: &Kernel, s: Stmt) -> Option<PlainLoad> {
        let StmtData::Copy { src, dst, attrs } = &k.stmts[s] else { return None };
        let ExprData::Ref(tile) = k.exprs[*dst] else { return None };
        let view = resolve_view(k, *src)?;
        let plain = attrs.mechanism == Mechanism::Registers && !attrs.keep && attrs.when.is_none();
        let registers = k.values[tile].def.space().in_registers() && k.tile_ty(tile).is_some();
        let same_type = || k.tile_ty(tile).map(|t| t.elem) == k.tensor_ty(view.base).map(|t| t.elem);
        // Smaller elements share registers, from which they would be extracted.
        let wide = |t: &TensorTy| matches!(t.elem, ElemRef::Known(elem) if elem.bits() >= 16);
        let global = k.tensor_ty(view.base).is_some_and(wide);
        (plain && registers && global && same_type()).then_some(PlainLoad { tile, view, fill: attrs.fill })
    }

    /// What is added to the index of an element of this window for its index in the window of `other`, if that is known
    /// before the launch.
    pub fn offset_in(&self, k: &Kernel, other: &PlainLoad) -> Option<Vec<i64>> {
        if self.fill == other.fill { offset_between(k, &self.view, &other.view) } else { None }
    }

    /// Whether the tile has the elements of the window until the statement at `to`, after the load at `from` in a block.
    pub fn lasts(&self, k: &Kernel, block: Block, from: usize, to: usize) -> bool {
        let mut read = vec![self.tile];
        for dim in &self.view.dims {
            let ends = match dim {
                ViewDim::From { end, .. } => *end,
                _ => None,
            };
            for &e in dim.starts().iter().chain(&ends) {
                let mut parts = Parts::of(k, e);
                while let Some(e) = parts.take() {
                    if let ExprData::Ref(v) = k.exprs[e] {
                        read.push(v);
                    }
                    parts.inside(e);
                }
            }
        }
        let between = &k.blocks[block][from + 1..to];
        !between.iter().any(|&s| read.iter().any(|&v| !matches!(k.stmts[s], StmtData::Let { .. }) && changes(k, s, v)))
    }
}

/// The difference of the indices of one element in two windows of the tensor, if it is known before the launch.
pub fn offset_between(k: &Kernel, own: &ResolvedView, other: &ResolvedView) -> Option<Vec<i64>> {
    if own.base != other.base || own.transposed != other.transposed || own.base_dims() != other.base_dims() {
        return None;
    }
    let mut offset = vec![0; own.dims.len()];
    for (d, sides) in other.dims.iter().zip(&own.dims).enumerate() {
        offset[d] = match sides {
            (ViewDim::Fixed(a), ViewDim::Fixed(b)) => k.index_difference(&[*a], &[*b]).filter(|&n| n == 0)?,
            (ViewDim::From { starts: a, end: from }, ViewDim::From { starts: b, end: to }) => {
                let same_end = match (from, to) {
                    (None, None) => true,
                    (Some(from), Some(to)) => k.index_difference(&[*from], &[*to]) == Some(0),
                    _ => false,
                };
                k.index_difference(a, b).filter(|_| same_end)?
            }
            _ => return None,
        };
    }
    Some(own.base_dims().into_iter().map(|d| offset[d]).collect())
}

/// Whether the kernel only reads a tensor.
pub fn is_only_read(k: &Kernel, tensor: Value) -> bool {
    k.statements().iter().all(|&s| !stores_to(k, s, tensor))
}

/// Whether a statement itself stores to a tensor.
fn stores_to(k: &Kernel, s: Stmt, tensor: Value) -> bool {
    let StmtData::Copy { dst, ref attrs, .. } = k.stmts[s] else { return false };
    let of = |e: Expr| resolve_view(k, e).is_some_and(|view| view.base == tensor);
    of(dst) || attrs.old.is_some_and(of)
}

impl RegLayout {
    /// For each register of a tile with these extents, the register of the same thread that holds the element `offset`
    /// further; `None`: another thread has it, or the tile ends before it.
    pub fn held(&self, shape: &[u64], offset: &[i64]) -> Vec<Option<usize>> {
        let (bits, registers) = (shape_bits(shape), 1usize << self.value_bits());
        let mask = |cols: &[u64]| cols.iter().fold(0, |all, c| all | c);
        let (threads, values) = (mask(self.thread().cols()), mask(self.value().cols()));
        if threads & values != 0 || bits.len() != offset.len() {
            return vec![None; registers];
        }
        let at = |v: usize| self.at(0, v as u64);
        let of = |v: usize| {
            let (mut target, mut base) = (0u64, 0);
            for ((&bits, &extent), &by) in bits.iter().zip(shape).zip(offset) {
                let mask = (1u64 << bits) - 1;
                let along = i64::try_from(at(v) >> base & mask).ok()?.checked_add(by)?;
                let along = u64::try_from(along).ok().filter(|&n| n <= mask)?;
                // The last thread has it inside of the extent.
                if along + (threads >> base & mask) >= extent {
                    return None;
                }
                target |= along << base;
                base += bits;
            }
            (target & !values == 0).then(|| (0..registers).find(|&w| at(w) == target))?
        };
        (0..registers).map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_in_registers_of_the_thread_are_held() {
        // 8x16: a thread has two rows and four columns, as register = row + 2 * column.
        let layout = RegLayout::new(vec![1, 8, 16], vec![2, 4, 32, 64], 7).expect("a layout");
        let shape = [8, 16];
        assert_eq!(layout.held(&shape, &[0, 0]), (0..8).map(Some).collect::<Vec<_>>());
        // The row below: of the first of two rows.
        let below: Vec<Option<usize>> = (0..8).map(|v| (v % 2 == 0).then_some(v + 1)).collect();
        assert_eq!(layout.held(&shape, &[1, 0]), below);
        let left: Vec<Option<usize>> = (0..8).map(|v: usize| v.checked_sub(2)).collect();
        assert_eq!(layout.held(&shape, &[0, -1]), left);
        assert_eq!(layout.held(&shape, &[2, 0]), vec![None; 8]);
        assert_eq!(layout.held(&shape, &[0, 4]), vec![None; 8]);
        // Of 7 rows, the last thread lacks the second one.
        assert_eq!(layout.held(&[7, 16], &[1, 0]), vec![None; 8]);
    }
}
