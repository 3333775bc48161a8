//! Copies of a candidate from and to global memory: access width, and whether they pass through registers.

use super::product::Shape;
use super::search_context::SearchContext;
use super::work::{Env, Move, Operand};
use crate::analysis::access_width::MAX_ACCESS_BYTES;
use crate::select_mma::transposes;
use crate::stage_stores::in_panels;
use crate::unaligned::takes_words;
use tilec_ir::layout::hardware::rows;

impl SearchContext<'_> {
    /// Elements that are moved; TMA moves whole rows of panels.
    pub(super) fn elements(&self, env: &Env, m: &Move) -> u64 {
        let all = self.work.elements(env, &m.shape).unwrap_or(0);
        let extent = m.contiguous.and_then(|d| self.work.extent(env, *m.shape.get(d)?)).unwrap_or(1);
        if self.warpgroups.is_none() || m.buffer.is_none() || extent.is_power_of_two() {
            return all;
        }
        let row = rows(extent, m.elem, false).map_or(1, |x| m.elem.per(x.row_bytes() as u32));
        all / extent.max(1) * extent.next_multiple_of(row.into())
    }

    /// Elements of an access that are known to be contiguous.
    fn width(&self, m: &Move) -> u64 {
        let boxed = self.warpgroups.is_some() && m.load && m.plain && m.boxed;
        let wide = self.supposed.wide.contains(&m.at) || boxed;
        if wide { m.elem.per(MAX_ACCESS_BYTES).into() } else { m.width }
    }

    /// Bytes of a thread's access.
    pub(super) fn access(&self, env: &Env, m: &Move, shapes: &[Shape]) -> u64 {
        if self.transposed(m, shapes) && !m.elem.shares_registers() {
            return m.elem.bytes_of(1);
        }
        if self.shifted(env, m, shapes) {
            return u64::from(MAX_ACCESS_BYTES);
        }
        let run = m.contiguous.and_then(|d| self.work.extent(env, *m.shape.get(d)?)).unwrap_or(1);
        m.elem.bytes_of(self.width(m).min(run)).clamp(1, 16)
    }

    /// Whether the tile is loaded in aligned words and shifted into place. Dimensions of several modes are excluded,
    /// because neighbours need not be contiguous in memory.
    pub(super) fn shifted(&self, env: &Env, m: &Move, shapes: &[Shape]) -> bool {
        let run = m.contiguous.and_then(|d| self.work.extent(env, *m.shape.get(d)?)).unwrap_or(1);
        m.load && m.plain && !m.modes && takes_words(m.elem, self.width(m), run) && !self.transposed(m, shapes)
    }

    /// Whether the tile is transposed on its way to shared memory, as products of some instructions require.
    pub(super) fn transposed(&self, m: &Move, shapes: &[Shape]) -> bool {
        let Some(buffer) = m.buffer else { return false };
        self.products().zip(shapes).any(|(product, shape)| {
            let mine = |o: &Operand| o.buffer == Some(buffer);
            let Some(operand) = product.operands.iter().find(|o| mine(o)) else { return false };
            match shape.atom.row().sums() {
                false => operand.along,
                true => !operand.along && transposes(shape.atom.row(), product.inputs.a),
            }
        })
    }

    /// Whether TMA can store a tile from a buffer: panels and their rows have no gaps.
    pub(super) fn stored_in_panels(&self, env: &Env, m: &Move) -> bool {
        let shape: Option<Vec<u64>> = m.shape.iter().map(|&e| self.work.extent(env, e)).collect();
        let (Some(shape), Some(dim)) = (shape, m.contiguous) else { return true };
        in_panels(&shape, dim, m.elem)
    }
}
