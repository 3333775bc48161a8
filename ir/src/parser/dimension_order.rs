//! Transposes of tiles of more than two dimensions, and orders of two dimensions.
//!
//! `transpose(x)` of a batch of matrices exchanges the last two dimensions: `permute(x, [0, 2, 1])`. For two dimensions
//! `permute(x, [1, 0])` is `transpose(x)`, which also takes windows of memory as they are.

use super::window_notes::{Notes, rank};
use crate::entities::Expr;
use crate::kernel::{ExprData, Kernel};

/// Writes each as the other, where the number of dimensions says so.
pub(super) fn write_out(k: &mut Kernel, notes: &Notes) {
    let moves = |e: &Expr| matches!(k.exprs[*e], ExprData::Transpose(_) | ExprData::Permute { .. });
    for e in k.exprs.keys().filter(moves).collect::<Vec<_>>() {
        match k.exprs[e] {
            ExprData::Transpose(arg) => {
                let n = rank(k, notes, arg) as u32;
                if n > 2 {
                    let order = (0..n - 2).chain([n - 1, n - 2]).collect();
                    k.exprs[e] = ExprData::Permute { arg, order };
                }
            }
            ExprData::Permute { arg, ref order } if *order == [1, 0] && rank(k, notes, arg) == 2 => {
                k.exprs[e] = ExprData::Transpose(arg);
            }
            _ => {}
        }
    }
}
