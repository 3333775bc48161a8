//! Tiles in other shapes (`copy reshape(x, [16, 4, 8]) -> y`): registers have other names, whatever threads hold.
//!
//! A layout is a map over the bits of an element's number. In row-major order these are the same bits in every shape, if extents are powers of two; another extent counts as the
//! next power of two, so it may only be the outermost part of a dimension: 24 rows of 64 are 24 x 4 of 16, or 3 x 8 x 64, but 8 x 3 are no 24 elements of that kind.

use crate::Cx;
use crate::analysis::uses::all_stmts;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported};
use tilec_ir::kernel::{ExprData, Kernel, StmtData};
use tilec_ir::typing::fixed_shape;

/// Refuses shapes whose elements have no bits in common.
pub(super) fn check(k: &Kernel, cx: &mut Cx<'_>) -> Result<(), Reported> {
    let mut result = Ok(());
    for s in all_stmts(k, k.body) {
        let StmtData::Copy { src, .. } = k.stmts[s] else { continue };
        let ExprData::Reshape { arg, .. } = k.exprs[src] else { continue };
        let (Some(from), Some(to)) = (fixed_shape(k, arg), fixed_shape(k, src)) else { continue };
        if !same_bits(&from, &to) {
            let message = format!("not compiled to PTX yet: {from:?} in the shape {to:?}");
            let d = Diagnostic::error(codes::NOT_LOWERED, k.expr_spans[src], message);
            let d = d.with_note(
                "extents that are split or joined are powers of two, but for the outermost part of each dimension",
            );
            result = Err(cx.report(d.with_note(
                "store the tile to a tensor, or to shared memory row by row, and load it in the other shape",
            )));
        }
    }
    result
}

/// Whether the number of an element has the same bits in both shapes, where extents count as the next power of two.
fn same_bits(from: &[u64], to: &[u64]) -> bool {
    let ((mut a, mut b), mut left) = ((from.iter().rev(), to.iter().rev()), (1u64, 1u64));
    loop {
        if left.0 == 1 {
            left.0 = match a.find(|&&n| n != 1) {
                Some(&n) => n,
                None => return left.1 == 1 && b.all(|&n| n == 1),
            };
        }
        if left.1 == 1 {
            left.1 = match b.find(|&&n| n != 1) {
                Some(&n) => n,
                None => return false,
            };
        }
        let inner = left.0.min(left.1);
        if !left.0.is_multiple_of(inner) || !left.1.is_multiple_of(inner) {
            return false;
        }
        left = (left.0 / inner, left.1 / inner);
        if left != (1, 1) && !inner.is_power_of_two() {
            return false;
        }
    }
}

/// Has shapes be those of the tiles that are copied to.
pub(super) fn follow(k: &mut Kernel) {
    for s in all_stmts(k, k.body) {
        let StmtData::Copy { src, dst, .. } = k.stmts[s] else { continue };
        let (ExprData::Reshape { arg, .. }, Some(shape)) = (&k.exprs[src], fixed_shape(k, dst)) else { continue };
        let (arg, span) = (*arg, k.expr_spans[src]);
        let shape = shape.into_iter().map(|n| k.int(n as i64, span)).collect();
        k.exprs[src] = ExprData::Reshape { arg, shape };
    }
}

#[cfg(test)]
mod tests {
    use super::same_bits;

    #[test]
    fn extents_that_are_no_powers_of_two_are_outermost() {
        let yes: [(&[u64], &[u64]); 8] = [
            (&[16, 64], &[16, 4, 16]),
            (&[24, 64], &[3, 8, 64]),
            (&[24, 64], &[24, 4, 16]),
            (&[3, 8], &[24]),
            (&[8, 24], &[8, 3, 8]),
            (&[12, 8], &[3, 32]),
            (&[7], &[1, 7, 1]),
            (&[1], &[1, 1]),
        ];
        for (from, to) in yes {
            assert!(same_bits(from, to) && same_bits(to, from), "{from:?} {to:?}");
        }
        let no: [(&[u64], &[u64]); 4] = [(&[8, 3], &[24]), (&[6, 4], &[8, 3]), (&[4, 6], &[24]), (&[6, 35], &[10, 21])];
        for (from, to) in no {
            assert!(!same_bits(from, to) && !same_bits(to, from), "{from:?} {to:?}");
        }
    }
}
