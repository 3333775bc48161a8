//! Copies: selects how a copy is done.
//!
//! Every copy moves elements through a register layout. It has two halves: loading a window into a tile (`load`), and
//! storing values to a window (`store`). A copy from memory to memory loads all of its elements before it stores the
//! first.

use super::dims::Dims;
use super::scope::Scope;
use super::state::{Lower, NO_WHOLE_TILE};
use super::store::Source;
use super::tile::Tile;
use tilec_ir::diag::Reported;
use tilec_ir::entities::{Expr, Stmt};
use tilec_ir::kernel::{CopyAttrs, ExprData};
use tilec_ir::tensor_store::tensor_store;
use tilec_ir::types::{Elem, ElemRef};
use tilec_ir::typing::{ResolvedView, ViewDim, fixed_shape, layout_of, resolve_view, scalar_shape};

impl Lower<'_> {
    pub(super) fn copy(&mut self, s: Stmt, src: Expr, dst: Expr, attrs: &CopyAttrs) -> Result<(), Reported> {
        if attrs.is_tensor() {
            return match tensor_store(self.k, s) {
                Some(_) => self.store_tensor(s, src, attrs.reduce),
                None => self.load_tensor(s, src),
            };
        }
        if let ExprData::Reshape { arg, numbered: Some(numbered), .. } = &self.k.exprs[src] {
            let tile = self.tile_of(dst).expect("bug: elements are numbered into what is no register variable");
            return self.load_numbered(src, *arg, &tile, numbered);
        }
        // Registers to registers: a change of layout.
        if let Some(to) = self.target_registers(src, dst)?
            && let Some(mut from) = self.named_registers(src, to.dim_bits.extents())?
        {
            if let ExprData::Ref(v) = self.k.exprs[src]
                && let Some(partial) = self.k.tile_ty(v).and_then(|t| t.partial.clone())
            {
                from = self.combine_partials(src, &from, &partial)?;
            }
            return self.relayout(dst, &from, &to);
        }
        let Some(to) = resolve_view(self.k, dst) else { return Err(self.unsupported(dst, "this destination")) };
        if to.space(self.k).in_registers() {
            let Some(tile) = self.target_registers(src, dst)? else {
                return Err(self.unsupported(dst, "this window of a register tile as a destination"));
            };
            if let Some(from) = resolve_view(self.k, src).filter(|v| v.space(self.k).is_memory()) {
                if attrs.is_prefetch() {
                    return self.prefetch(src, &from, &tile, attrs);
                }
                if attrs.unaligned().is_some()
                    && let ExprData::Ref(value) = self.k.exprs[dst]
                {
                    return self.load_runs((s, src), &from, &tile, attrs, None, Some(value)).map(drop);
                }
                let only = match self.k.exprs[dst] {
                    ExprData::Ref(v) if self.is_loaded_once(v, &from) => self.replica_predicate(&tile.layout),
                    _ => None,
                };
                return self.load(s, src, &from, &tile, attrs, only);
            }
            let value = self.without_cast(src, Some(tile.elem));
            // 4-bit elements are converted a register at a time.
            if let Some(from) = resolve_view(self.k, value).filter(|v| v.space(self.k).is_memory())
                && self.elem(from.base).is_some_and(|elem| elem.bits() == 4)
            {
                return self.load(s, value, &from, &tile, attrs, None);
            }
            return self.copy_elementwise(dst, &tile, value, attrs);
        }
        let Some(shape) = self.copy_shape(src, dst) else {
            return Err(self.unsupported(src, "a copy without extents"));
        };
        let bits = Dims::of(&shape);
        let layout = match &attrs.threads {
            Some(l) => l.clone(),
            None => match layout_of(self.k, src) {
                Some(l) => l,
                None => return Err(self.without_layout(src, "a copy without a thread layout")),
            },
        };
        if layout.out_bits() != bits.iter().sum() {
            return Err(self.unsupported(src, NO_WHOLE_TILE));
        }
        if let Some(from) = resolve_view(self.k, src).filter(|v| v.space(self.k).is_memory()) {
            if attrs.is_asynchronous() {
                return self.copy_asynchronously(s, (src, &from), (dst, &to), &layout, &bits, attrs);
            }
            // Memory to memory, through registers.
            let Some(elem) = self.elem(from.base) else { return Err(self.unsupported(src, "this element type")) };
            let Some(tile) = self.new_tile(elem, layout, bits, true) else {
                return Err(self.unsupported(src, "elements of this type in registers"));
            };
            let only = if to.space(self.k).has_bounds() { self.replica_predicate(&tile.layout) } else { None };
            if attrs.unaligned().is_some() {
                let runs = self.load_runs((s, src), &from, &tile, attrs, only, None)?;
                self.shift_loaded(&runs);
            } else {
                self.load(s, src, &from, &tile, attrs, only)?;
            }
            return self.store(s, dst, &to, &Source::Tile(&tile), attrs);
        }
        let scope = Scope { layout, dim_bits: bits };
        let value = self.without_cast(src, self.elem(to.base));
        self.store(s, dst, &to, &Source::Elementwise(value, &scope), attrs)
    }

    /// The operand of a cast to `to`: a copy itself converts to the type of its destination.
    fn without_cast(&self, mut e: Expr, to: Option<Elem>) -> Expr {
        while let ExprData::Cast { elem: ElemRef::Known(elem), arg } = self.k.exprs[e]
            && Some(elem) == to
        {
            e = arg;
        }
        e
    }

    /// The extents of the tile that a copy moves: those of a whole tile on either side, else those of the expression.
    pub(super) fn copy_shape(&self, src: Expr, dst: Expr) -> Option<Vec<u64>> {
        let whole = |e: Expr| matches!(self.k.exprs[e], ExprData::Ref(_)).then(|| fixed_shape(self.k, e)).flatten();
        let tile = whole(dst).or_else(|| fixed_shape(self.k, src)).or_else(|| fixed_shape(self.k, dst));
        tile.or_else(|| scalar_shape(self.k, dst))
    }

    /// The destination registers of a copy: a whole tile, or a window of one.
    fn target_registers(&mut self, src: Expr, dst: Expr) -> Result<Option<Tile>, Reported> {
        if let Some(tile) = self.tile_of(dst) {
            return Ok(Some(tile));
        }
        let view = resolve_view(self.k, dst).filter(|v| v.space(self.k).in_registers());
        match view.zip(self.copy_shape(src, dst)) {
            Some((view, shape)) => self.window_of_tile(&view, &shape),
            None => Ok(None),
        }
    }

    /// The registers that `e` names: a whole tile, or a window of a tile with these extents, possibly transposed.
    fn named_registers(&mut self, e: Expr, shape: &[u64]) -> Result<Option<Tile>, Reported> {
        if let Some(tile) = self.tile_of(e) {
            return Ok(Some(tile));
        }
        if let ExprData::Reshape { arg, .. } = self.k.exprs[e] {
            return Ok(self.tile_of(arg).and_then(|tile| tile.reshaped(shape)));
        }
        if let ExprData::Permute { arg, order } = &self.k.exprs[e] {
            return Ok(self.tile_of(*arg).and_then(|tile| tile.permuted(order)));
        }
        let view = resolve_view(self.k, e).filter(|v| v.space(self.k).in_registers());
        match (view, shape) {
            (Some(view), &[rows, columns]) if view.transposed => {
                let lying = ResolvedView { transposed: false, ..view };
                Ok(self.window_of_tile(&lying, &[columns, rows])?.and_then(Tile::transposed))
            }
            (Some(view), _) => self.window_of_tile(&view, shape),
            (None, _) => Ok(None),
        }
    }

    /// A window of a register tile at constant indices: some of its registers. Variables of unrolled loops are
    /// constants.
    fn window_of_tile(&mut self, view: &ResolvedView, shape: &[u64]) -> Result<Option<Tile>, Reported> {
        let mut starts = Vec::new();
        for dim in &view.dims {
            if matches!(dim, ViewDim::Gather(_) | ViewDim::From { end: Some(_), .. }) {
                return Ok(None);
            }
            let mut start = Some(0u64);
            for &part in dim.starts() {
                let at = self.index(part)?.as_const().and_then(|at| u64::try_from(at).ok());
                start = start.zip(at).and_then(|(sum, at)| sum.checked_add(at));
            }
            starts.extend(start);
        }
        let Some(extents) = view.extents_of_base(shape) else { return Ok(None) };
        // A start that is not constant is missing here, so the lengths differ and there is no window.
        let window = self.tiles[view.base].as_ref().and_then(|tile| tile.window(&starts, &extents));
        // Dimensions that the window drops have extent 1 and take no index bits.
        Ok(window.map(|window| Tile { dim_bits: Dims::of(shape), ..window }))
    }
}
