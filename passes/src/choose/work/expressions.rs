//! Windows of tensors that expressions outside of copies read.

use super::{Reader, Reads, Work};
use crate::analysis::uses::for_each_ref;
use std::collections::BTreeSet;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::ExprData;
use tilec_ir::names::Parts;
use tilec_ir::typing::{fixed_shape, resolve_view};

impl Reader<'_> {
    /// All names on which an expression depends.
    pub(super) fn named(&self, e: Expr, out: &mut BTreeSet<Value>) {
        let mut parts = Parts::of(self.sketch, e);
        while let Some(e) = parts.take() {
            for_each_ref(self.sketch, e, &mut |v| {
                if out.insert(v) {
                    parts.named(v);
                }
            });
            parts.inside(e);
        }
    }

    /// Counts windows of tensors that are read in assignments and named expressions, as copies of them count: both become loads.
    pub(super) fn windows(&self, work: &mut Work<'_>) {
        for Reads { at, region, of, name, to } in std::mem::take(&mut work.expressions) {
            // A name of a window is one for what reads it.
            let alias = name.is_some() && resolve_view(self.sketch, of).is_some();
            if alias || name.is_some_and(|v| work.copied.contains(&v)) {
                continue;
            }
            let mut rest = vec![of];
            while let Some(e) = rest.pop() {
                let Some(view) = resolve_view(self.sketch, e) else {
                    // Only the extents of an `iota`'s operand matter. What has a name is loaded where it is named.
                    let is_leaf = matches!(self.sketch.exprs[e], ExprData::Ref(_) | ExprData::Iota { .. });
                    rest.extend(self.sketch.children(e).into_iter().filter(|_| !is_leaf));
                    continue;
                };
                let shape = self.extents(e, to).filter(|shape| !shape.is_empty());
                if let Some(shape) = shape.filter(|_| view.space(self.sketch).has_bounds()) {
                    work.regions[region].moves.extend(self.moved((at, true), e, &shape, None));
                }
            }
        }
    }

    /// The extents of a window in an expression: those of the tile that it is assigned to, where they agree; else literals.
    fn extents(&self, e: Expr, to: Option<Value>) -> Option<Vec<Expr>> {
        let whole = to.and_then(|v| self.k.tile_ty(v)).map(|t| t.shape.clone());
        let Some(own) = fixed_shape(self.sketch, e) else { return whole };
        let of_tile = |d: usize| {
            let shape = whole.as_ref().filter(|shape| shape.len() == own.len())?;
            (self.sketch.as_int(shape[d]).and_then(|n| u64::try_from(n).ok()) == Some(own[d])).then_some(shape[d])
        };
        let literal =
            |n: u64| self.k.exprs.keys().find(|&e| self.k.as_int(e).is_some_and(|x| u64::try_from(x) == Ok(n)));
        own.iter().enumerate().map(|(d, &n)| of_tile(d).or_else(|| literal(n))).collect()
    }
}
