//! Rows of tiles that are not stored.
//!
//! A tile's row `i * 64 + iota(s, 0)` may be past the last row of a result. A mask that compares columns with the row
//! needs to be right only for rows that are stored.

use super::atoms::{Atom, Inequalities, Stored};
use super::sum::Sum;
use crate::analysis::uses::all_stmts;
use tilec_ir::kernel::StmtData;
use tilec_ir::typing::{Type, ViewDim, resolve_view, type_of};

impl Inequalities<'_> {
    /// The stored windows of tensors, one entry for each dimension.
    pub(super) fn stores(&self) -> Vec<Stored> {
        let k = self.k;
        let mut found = Vec::new();
        for s in all_stmts(k, k.body) {
            let StmtData::Copy { src, dst, ref attrs } = k.stmts[s] else { continue };
            let Some(view) = resolve_view(k, dst).filter(|_| !attrs.is_prefetch()) else { continue };
            let (Some(tensor), Ok(Type::Tile(tile))) = (k.tensor_ty(view.base), type_of(k, src)) else { continue };
            let kept = view.base_dims();
            if kept.len() != tile.shape.len() {
                continue;
            }
            for (&d, &extent) in kept.iter().zip(&tile.shape) {
                let ViewDim::From { starts, end } = &view.dims[d] else { continue };
                let ends = [*end, Some(tensor.shape[d])].into_iter().flatten().filter_map(|e| self.sum(e)).collect();
                let own = self.starts(starts).zip(self.extent(extent));
                found.extend(own.map(|(start, extent)| Stored { start, extent, ends }));
            }
        }
        found
    }

    /// Inequalities `.. >= 0` that hold for the stored rows of a tile, for positions in `difference`. `along` is the
    /// position that is no row.
    pub(super) fn rows(&self, difference: &Sum, along: usize) -> Vec<Sum> {
        let mut found = Vec::new();
        for (product, &times) in &difference.terms {
            let &[place] = &product[..] else { continue };
            let atom = self.atoms.borrow()[place].clone();
            let Atom::Place(_, extent) = atom else { continue };
            if place == along {
                continue;
            }
            let begins = |stored: &&Stored| {
                let terms = &stored.start.terms;
                !terms.is_empty()
                    && terms.iter().all(|(p, by)| difference.terms.get(p) == by.checked_mul(times).as_ref())
            };
            let stored: Vec<&Stored> =
                self.stored.iter().filter(|stored| stored.extent == extent).filter(begins).collect();
            let Some(first) = stored.first() else { continue };
            let row = |of: &Stored| of.start.plus(&Sum::atom(place), 1);
            let all = |end: &Sum| {
                let bound = |of: &Stored, end: &Sum| end.plus(&row(of)?, -1);
                let own = bound(first, end);
                stored.iter().all(|other| other.ends.iter().any(|end| bound(other, end) == own))
            };
            let bound = |end: &Sum| end.plus(&row(first)?, -1)?.less_one();
            found.extend(first.ends.iter().filter(|end| all(end)).filter_map(bound));
        }
        found
    }
}
