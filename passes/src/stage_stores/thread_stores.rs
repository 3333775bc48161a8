//! Tiles that threads store from the buffer, a piece at a time, because TMA cannot.
//!
//! ```text
//! for i in 0..128 step 16 {
//!     var piece = reg f16[16, 256]
//!     copy c_tile[i.., 0..] -> piece
//!     copy piece -> C[bm * 128 + i.., bn * 256..]
//! }
//! ```
//!
//! With unaligned rows, threads store single elements. In the layout of the accumulator a store of a warp has a few adjacent elements in each of
//! eight rows; from the buffer all lanes have adjacent elements of one row. A piece needs few registers, for any size of the tile.
//! A matrix that the store reads is loaded in the same way, into the buffer that the results use afterwards.

use super::loads::range;
use tilec_ir::diag::Span;
use tilec_ir::entities::{Stmt, Value};
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, Range, StmtData, ValueDef, View};
use tilec_ir::types::{Elem, ElemRef, TileTy};
use tilec_ir::typing::ResolvedView;

/// Elements of a thread in one piece.
const EACH: u64 = 16;
/// The shortest row of a piece: half a warp has neighbours.
const SHORTEST: u64 = 16;

/// Rows and columns of a tile, in the order of its memory.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Pieces {
    /// The dimension along which memory is contiguous.
    pub(super) along: usize,
    /// Extents of a tile and of a piece: powers of two, so that all threads have a share.
    pub(super) tile: [u64; 2],
    pub(super) piece: [u64; 2],
}

/// The pieces of a tile; `None`: its rows are too short, or it has too few elements for the threads.
pub(super) fn of(tile: &[u64], along: usize, threads: u64) -> Option<Pieces> {
    let &[rows, cols] = tile else { return None };
    let part = |n: u64| 1u64 << n.trailing_zeros();
    let mut piece = [part(rows), part(cols)];
    piece[along] = piece[along].min(threads.next_power_of_two());
    piece[1 - along] = piece[1 - along].min(EACH * threads / piece[along]);
    let fits = piece[along] >= SHORTEST && (piece[0] * piece[1]).is_multiple_of(threads);
    fits.then_some(Pieces { along, tile: [rows, cols], piece })
}

/// Where a piece goes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Destination {
    /// From the tensor to the buffer.
    Load,
    /// From the buffer to the tensor.
    Store,
}

impl Pieces {
    /// The loops that move a tile between `buffer`, with elements of `elem`, and a window of a tensor.
    pub(super) fn copy(
        &self,
        k: &mut Kernel,
        way: Destination,
        (buffer, elem): (Value, Elem),
        window: &ResolvedView,
        span: Span,
    ) -> Vec<Stmt> {
        let starts: Vec<Option<Value>> = (0..2)
            .map(|d| (self.piece[d] < self.tile[d]).then(|| k.value(["i", "j"][d], span, ValueDef::Loop)))
            .collect();
        let mut stmts = self.piece(k, way, (buffer, elem), window, &starts, span);
        for d in [self.along, 1 - self.along] {
            if let Some(var) = starts[d] {
                let body = k.block(stmts);
                let [start, end, step] = [0, self.tile[d], self.piece[d]].map(|n| k.int(n as i64, span));
                stmts =
                    vec![k.stmt(
                        StmtData::For { var, start, end, step, cond: None, next: None, unroll: false, body },
                        span,
                    )];
            }
        }
        stmts
    }

    /// Moves the piece that begins at `starts`.
    fn piece(
        &self,
        k: &mut Kernel,
        way: Destination,
        (buffer, elem): (Value, Elem),
        window: &ResolvedView,
        starts: &[Option<Value>],
        span: Span,
    ) -> Vec<Stmt> {
        let shape = self.piece.map(|n| k.int(n as i64, span)).to_vec();
        let elem = ElemRef::Known(elem);
        let tile = TileTy::registers(elem, shape, None);
        let piece = k.value("piece", span, ValueDef::Var(tile));
        let mut ranges = Vec::new();
        for &start in starts {
            let start = match start {
                Some(v) => k.value_ref(v, span),
                None => k.int(0, span),
            };
            ranges.push(Range::From { start, end: None });
        }
        let own = k.expr(ExprData::View(View { base: buffer, slot: None, ranges }), span);
        let kept = window.base_dims();
        let mut ranges = Vec::new();
        for (d, dim) in window.dims.iter().enumerate() {
            let start = kept.iter().position(|&kept| kept == d).and_then(|i| starts[i]);
            let more = start.map(|v| k.value_ref(v, span));
            ranges.push(range(k, dim, more, span));
        }
        let theirs = k.expr(ExprData::View(View { base: window.base, slot: None, ranges }), span);
        let (src, dst) = if way == Destination::Load { (theirs, own) } else { (own, theirs) };
        let (into, from) = (k.value_ref(piece, span), k.value_ref(piece, span));
        let load = StmtData::Copy { src, dst: into, attrs: CopyAttrs::default() };
        let store = StmtData::Copy { src: from, dst, attrs: CopyAttrs::default() };
        vec![k.stmt(StmtData::Var { value: piece, init: None }, span), k.stmt(load, span), k.stmt(store, span)]
    }
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn pieces_are_shared_out_and_make_up_the_tile() {
        for threads in [128, 256, 512] {
            for rows in [64, 128, 256] {
                for cols in (16..=256).step_by(16) {
                    let Some(p) = of(&[rows, cols], 1, threads) else { continue };
                    assert!(p.tile.iter().zip(&p.piece).all(|(t, p)| t % p == 0 && p.is_power_of_two()), "{p:?}");
                    assert_eq!(p.piece[0] * p.piece[1] % threads, 0, "{p:?}");
                    assert!(p.piece[0] * p.piece[1] / threads <= 16, "{p:?}");
                }
            }
        }
    }

    #[test]
    fn a_row_of_a_piece_is_as_long_as_columns_allow() {
        let piece = |tile: &[u64], along| of(tile, along, 256).map(|p| p.piece);
        assert_eq!(piece(&[128, 256], 1), Some([16, 256]));
        assert_eq!(piece(&[128, 192], 1), Some([64, 64]));
        assert_eq!(piece(&[128, 176], 1), Some([128, 16]));
        assert_eq!(piece(&[256, 128], 0), Some([256, 16]));
        assert_eq!(piece(&[128, 8], 1), None);
    }
}
