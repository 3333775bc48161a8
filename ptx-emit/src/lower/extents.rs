//! Products of sizes that preconditions bound.

use super::ints::{MAX_BLOCKS_X, MAX_BLOCKS_YZ, MAX_SIZE, raster};
use tilec_ir::entities::Expr;
use tilec_ir::kernel::{ExprData, Kernel};
use tilec_ir::ops::Op;
use tilec_ir::typing::{factors, positive};

/// A product of which the launch contract demands that it is at most so much, and of which each factor is at least 1.
pub(super) struct Extent {
    pub(super) literal: i128,
    pub(super) others: Vec<String>,
    pub(super) most: i128,
}

impl Extent {
    pub(super) fn of(k: &Kernel, e: Expr, most: i128) -> Extent {
        let (literal, others) = factors(k, &[e]);
        Extent { literal, others, most }
    }

    /// Every extent of a tensor that is computed from others.
    pub(super) fn all(k: &Kernel) -> Vec<Extent> {
        let shapes = k.params.iter().filter_map(|&v| k.tensor_ty(v)).flat_map(|t| t.shape.iter().copied());
        let computed = shapes.filter(|&e| matches!(k.exprs[e], ExprData::Op { op: Op::Mul, .. }));
        computed.map(|e| Extent::of(k, e, MAX_SIZE)).collect()
    }

    /// What the launch contract bounds: by preconditions (`where Z * H <= 65535`), and as extents of the grid, of which an axis counts columns in
    /// groups of `raster`.
    pub(super) fn promised(k: &Kernel) -> Vec<Extent> {
        let columns = MAX_BLOCKS_YZ * i128::from(raster(k));
        let blocks = k.grid.iter().map(|axis| axis.extent).zip([MAX_BLOCKS_X, columns, MAX_BLOCKS_YZ]);
        let mut found: Vec<Extent> =
            blocks.filter(|&(e, _)| positive(k, e)).map(|(e, most)| Extent::of(k, e, most)).collect();
        let mut work = k.requires.clone();
        while let Some(e) = work.pop() {
            let ExprData::Op { op, args } = &k.exprs[e] else { continue };
            let (product, most) = match (op, &args[..]) {
                (Op::And, _) => {
                    work.extend(args);
                    continue;
                }
                (Op::Le, &[x, n]) => (x, k.as_int(n)),
                (Op::Lt, &[x, n]) => (x, k.as_int(n).and_then(|n| n.checked_sub(1))),
                (Op::Ge, &[n, x]) => (x, k.as_int(n)),
                (Op::Gt, &[n, x]) => (x, k.as_int(n).and_then(|n| n.checked_sub(1))),
                _ => continue,
            };
            if let Some(most) = most.filter(|_| positive(k, product)) {
                found.push(Extent::of(k, product, i128::from(most)));
            }
        }
        found
    }

    /// Whether a product of some of its factors is one of these: each of them is at least 1.
    pub(super) fn covers(&self, literal: i128, others: &[String]) -> bool {
        let mut mine = self.others.iter();
        // Both are sorted.
        (0..=self.literal).contains(&literal) && others.iter().all(|o| mine.any(|m| m == o))
    }
}

/// The least bound of a product of these factors.
pub(super) fn least(bounds: &[Extent], (literal, others): (i128, &[String])) -> Option<i128> {
    bounds.iter().filter(|x| x.covers(literal, others)).map(|x| x.most).min()
}
