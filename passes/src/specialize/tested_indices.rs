//! Single indices that may be outside of their extent are tested.
//!
//! `X[i - 1, j..]` names a row that does not exist if `i` is 0. Such a window reads as zero and is not written, like one at a number from memory. The pass writes
//! the index as such a number, `X[index(i - 1), j..]`, which later passes and the lowering test. An index that is inside for all admissible launches stays as it
//! is: by the bounds of its loop or axis, by preconditions, or by the conditions around the statement.

use crate::analysis::inequalities::{Given, Inequalities};
use crate::analysis::uses::stmt_exprs;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use tilec_ir::entities::{Block, Expr};
use tilec_ir::extents::Ranges;
use tilec_ir::index_values::is_of_value;
use tilec_ir::kernel::{ExprData, Kernel, Range, StmtData};
use tilec_ir::ops::Op;
use tilec_ir::typing::{ViewDim, resolve_view, same_product};

/// Marks the indices that may be outside.
pub(super) fn mark(k: &mut Kernel) {
    let mut search =
        Search { k, ranges: Ranges::new(k), inequalities: OnceCell::new(), given: Vec::new(), found: BTreeMap::new() };
    search.block(k.body);
    for (window, places) in search.found {
        for place in places {
            let ExprData::View(view) = &k.exprs[window] else { unreachable!("it is a window") };
            let Range::At(at) = view.ranges[place] else { unreachable!("it is a single index") };
            let span = k.expr_spans[at];
            let tested = k.expr(ExprData::Index(at), span);
            if let ExprData::View(view) = &mut k.exprs[window] {
                view.ranges[place] = Range::At(tested);
            }
        }
    }
}

struct Search<'k> {
    k: &'k Kernel,
    ranges: Ranges<'k>,
    inequalities: OnceCell<Inequalities<'k>>,
    /// Conditions that hold here.
    given: Vec<Given>,
    /// Windows, and which of their ranges may be outside.
    found: BTreeMap<Expr, Vec<usize>>,
}

impl Search<'_> {
    fn block(&mut self, b: Block) {
        let k = self.k;
        for &s in &k.blocks[b] {
            let conditions = self.given.len();
            if let StmtData::Copy { attrs, .. } = &k.stmts[s] {
                self.given.extend(attrs.when.map(|when| (when, true)));
            }
            stmt_exprs(k, s).into_iter().for_each(|e| self.visit(e));
            self.given.truncate(conditions);
            if let StmtData::If { cond, then, otherwise } = k.stmts[s] {
                for (block, holds) in [(Some(then), true), (otherwise, false)] {
                    self.given.push((cond, holds));
                    block.into_iter().for_each(|b| self.block(b));
                    self.given.pop();
                }
                continue;
            }
            k.sub_blocks(s).into_iter().for_each(|b| self.block(b));
        }
    }

    fn visit(&mut self, e: Expr) {
        let k = self.k;
        // Elements of which indices are made are always tested.
        if matches!(k.exprs[e], ExprData::Index(_)) {
            return;
        }
        k.children(e).into_iter().for_each(|child| self.visit(child));
        let ExprData::View(view) = &k.exprs[e] else { return };
        let Some(resolved) = resolve_view(k, e) else { return };
        let Some(tensor) = k.tensor_ty(resolved.base).filter(|tensor| tensor.scratch.is_none()) else { return };
        let outside = |place: usize| {
            let Range::At(at) = view.ranges[place] else { return false };
            let dim = resolved.dims.iter().position(|dim| *dim == ViewDim::Fixed(at));
            dim.is_some_and(|d| !is_of_value(k, at) && !self.is_inside(at, tensor.shape[d]))
        };
        let places: Vec<usize> = (0..view.ranges.len()).filter(|&place| outside(place)).collect();
        if !places.is_empty() {
            self.found.insert(e, places);
        }
    }

    /// Whether `0 <= index < extent` in all admissible launches.
    fn is_inside(&self, index: Expr, extent: Expr) -> bool {
        let k = self.k;
        // `extent - 1 - x`, which counts down.
        if let ExprData::Op { op: Op::Sub, args } = &k.exprs[index]
            && let ExprData::Op { op: Op::Sub, args: last } = &k.exprs[args[0]]
            && k.as_int(last[1]) == Some(1)
            && same_product(k, last[0], extent)
        {
            return self.is_inside(args[1], extent);
        }
        let inequalities = || self.inequalities.get_or_init(|| Inequalities::new(k));
        let not_negative = self.ranges.of(index).is_some_and(|range| range.lo >= 0);
        let not_negative = not_negative || inequalities().is_at_least(index, None, &self.given);
        not_negative
            && (self.ranges.is_below(index, extent) || inequalities().is_at_least(extent, Some(index), &self.given))
    }
}
