//! Elements of a window that a copy does not read: those that a thread holds in another tile, and those outside of the tensor.

use super::graph::Node;
use super::spot::{Run, first, is_one};
use super::windows::{spaced, sum};
use super::{PathBuilder, element};
use crate::xray::registers::holder;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, StmtData};
use tilec_ir::typing::resolve_view;

impl PathBuilder<'_> {
    /// From where a thread takes elements of a load that it holds in other tiles (`held x (-1, 0)`), in words; `None`: it loads them.
    pub(super) fn taken(&self, s: Stmt, spot: &[Run]) -> Option<String> {
        let (t, attrs) = self.copy_at(s)?;
        // The program of the attributes: that after the last pass, unless no statement of it is the copy.
        let own = matches!(&self.k.stmts[s], StmtData::Copy { attrs: of, .. } if std::ptr::eq(of, attrs));
        let k: &Kernel = if own { self.k } else { self.last };
        let StmtData::Copy { dst, .. } = k.stmts[t] else { return None };
        if attrs.held.is_empty() {
            return None;
        }
        if !is_one(spot) {
            let all: Vec<String> = sources(k, attrs).map(|(tile, _)| format!("`{}`", k.values[tile].name)).collect();
            let names = all.join(" or ");
            return Some(format!("{}; a thread takes elements that it holds in {names} from there", self.moved(s)));
        }
        let tile = k.tile_ty(resolve_view(k, dst)?.base)?;
        let (layout, shape) = (tile.reg_layout.as_ref()?, k.const_shape(&tile.shape)?);
        let coords = first(spot);
        let (_, register, _) = holder(layout, &shape, &coords)?;
        let register = usize::try_from(register).ok()?;
        // The emitter takes the first tile that has it.
        sources(k, attrs).find_map(|(tile, offset)| {
            layout.held(&shape, offset).get(register).copied().flatten()?;
            let there: Option<Vec<u64>> =
                coords.iter().zip(offset).map(|(&at, &by)| at.checked_add_signed(by)).collect();
            let there = element(&k.values[tile].name, &there?);
            Some(format!("not loaded: the same thread takes it from {there}, which it holds in a register"))
        })
    }

    /// What is read in place of elements that lie outside of the tensor, in words; `None`: some may be inside.
    pub(super) fn outside(&self, node: &Node, window: Expr, spot: &[Run]) -> Option<String> {
        let k = self.k;
        let view = resolve_view(k, window)?;
        let extents = &k.tensor_ty(view.base)?.shape;
        let kept = view.base_dims();
        let is_outside = |d: usize| {
            let dim = &view.dims[d];
            let run = kept.iter().position(|&kept| kept == d).map_or(Some(Run::one(0)), |i| spot.get(i).copied());
            let (Some(run), Some(start), Some(p)) = (run, sum(&self.solver, k, dim, &node.numbers), spaced(k, dim))
            else {
                return false;
            };
            let at = |n: u64| i128::from(start) + i128::from(n) * i128::from(p.step);
            let extent = extents.get(d).and_then(|&e| self.solver.range(e, &node.numbers));
            at(run.to.saturating_sub(1)) < 0 || extent.is_some_and(|extent| at(run.from) >= extent.hi)
        };
        if !(0..view.dims.len()).any(is_outside) {
            return None;
        }
        let reads = match &k.stmts[node.stmt] {
            StmtData::Copy { attrs, .. } if attrs.keep => "the tile keeps what it has there (`keep`)".to_owned(),
            StmtData::Copy { attrs: CopyAttrs { fill: Some(_), .. }, .. } => {
                "the number behind `fill` is read there".to_owned()
            }
            _ => "0 is read there".to_owned(),
        };
        Some(format!("outside of the tensor: {reads}"))
    }
}

/// The tiles that have elements of a load, and how far they are from these.
fn sources<'k>(k: &'k Kernel, attrs: &'k CopyAttrs) -> impl Iterator<Item = (Value, &'k [i64])> {
    attrs.held.iter().filter_map(|held| match k.exprs[held.tile] {
        ExprData::Ref(tile) => Some((tile, &held.offset[..])),
        _ => None,
    })
}
