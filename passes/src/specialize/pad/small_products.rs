//! Products whose tile has fewer rows or columns than the smallest instruction of their types has.
//!
//! ```text
//! let x = smem f16[1, 32]              ->   let x = smem f16[8, 32]
//! var acc = reg f32[1, 64] = 0.0       ->   var acc = reg f32[8, 64] = 0.0
//! copy X[i.., k..] -> x                ->   copy X[i..i + 1, k..] -> x
//! acc = mma(x, w, acc)                 ->   acc = mma(x, w, acc)
//! copy acc -> Y[i.., j..]              ->   copy acc -> Y[i..i + 1, j..]
//! ```
//!
//! Another dimension may have as many elements, in particular a single one, and stays as it is. So the dimensions that
//! have to grow together are found first: those of operands, of results, and of what is assigned to one another. They
//! get an extent that no other dimension has. If the program is well-typed with it, they are padded like other extents.
//!
//! Needs: literal extents. Decides: extents of tiles. If tiles cannot be padded, a remark has the reason, and
//! `select-mma` refuses the product.

use super::extent::Extent;
use super::{Unpadded, Windows, enlarge_to, windows_of};
use crate::Cx;
use crate::analysis::uses::{all_stmts, stmt_exprs};
use crate::analysis::views::{copy_shape, register_window};
use crate::select_mma::atoms::least_tile;
use crate::select_mma::operands::{acc_shape, known};
use tilec_ir::atoms::Inputs;
use tilec_ir::diag::{Diagnostic, Severity, Sink, Span};
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ExprData, Kernel, Mma, Range, StmtData, ValueDef};
use tilec_ir::target::Target;
use tilec_ir::typing::{fixed_shape, let_init, resolve_view, type_of};

/// Pads the tiles of such products. A written tile of a warp or instruction stays as it is.
pub(crate) fn run(k: &mut Kernel, cx: &mut Cx<'_>) {
    if k.schedule.warp_tile.is_some() {
        return;
    }
    let mut refused: Vec<(Value, usize)> = Vec::new();
    while let Some(small) = find(k, cx.options.target, |acc, dim| !refused.contains(&(acc, dim))) {
        let Small { acc, dim, count, to, span } = small;
        let mut padded = k.clone();
        match small.pad(&mut padded) {
            Ok(larger) => {
                *k = padded;
                for v in larger {
                    let name = &k.values[v].name;
                    let message = format!(
                        "`{name}` is padded from {count} to {to} elements: the smallest product of these types has so many"
                    );
                    cx.remark(span, message);
                }
            }
            Err(Unpadded { why, .. }) => {
                refused.push((acc, dim));
                cx.remark(
                    span,
                    format!("the tiles of this product are not padded from {count} to {to} elements: {why}"),
                );
            }
        }
    }
}

/// Adds to an error about the product with this accumulator why its tiles are not padded.
pub(crate) fn explained(k: &Kernel, target: Target, acc: Value, error: Diagnostic) -> Diagnostic {
    let refused = find(k, target, |v, _| v == acc).and_then(|small| small.pad(&mut k.clone()).err());
    let Some(Unpadded { why, at, .. }) = refused else { return error };
    let error = error.with_note(format!("the compiler does not pad its tiles: {why}"));
    match at {
        Some(at) => error.with_place(at, "here"),
        None => error,
    }
}

/// A dimension of a product that no instruction of its types is so small in.
struct Small {
    acc: Value,
    dim: usize,
    count: u64,
    to: u64,
    span: Span,
}

/// The first one of those accumulators and dimensions that `may` says.
fn find(k: &Kernel, target: Target, may: impl Fn(Value, usize) -> bool) -> Option<Small> {
    all_stmts(k, k.body).into_iter().find_map(|s| {
        let StmtData::Assign { dst: acc, src } = k.stmts[s] else { return None };
        let ExprData::Mma(Mma { a, b, atom: None, .. }) = k.exprs[src] else { return None };
        let tile = k.tile_ty(acc).filter(|tile| tile.reg_layout.is_none())?;
        let (elem, shape) = (known(Some(tile.elem))?, acc_shape(k, acc)?);
        let depth = fixed_shape(k, a).map(|s| s[1]).or_else(|| fixed_shape(k, b).map(|s| s[0]))?;
        let inputs = [a, b].map(|e| type_of(k, e).ok().and_then(|ty| known(ty.elem())));
        let [Some(a), Some(b)] = inputs else { return None };
        let least = least_tile(target, (Inputs { a, b }, elem), (shape.0, shape.1, depth))?;
        let first = tile.shape.len() - 2;
        let sides = [(first, shape.0, least.0), (first + 1, shape.1, least.1)];
        let (dim, count, to) = sides.into_iter().find(|&(dim, n, to)| n < to && may(acc, dim))?;
        Some(Small { acc, dim, count, to, span: k.expr_spans[src] })
    })
}

impl Small {
    /// Pads the dimension and all that have to grow with it; returns the tiles.
    fn pad(&self, k: &mut Kernel) -> Result<Vec<Value>, Unpadded> {
        let largest = k.values.keys().filter_map(|v| k.const_shape(&k.tile_ty(v)?.shape)).flatten().max().unwrap_or(1);
        let mut group = Group { k, count: self.count, own: largest.max(self.to) + 1, grown: false };
        group.grow(self.acc, self.dim);
        group.close();
        let own = group.own;
        let refused = |why: String, at: Option<Span>| Err(Unpadded { why, counts: false, at });
        if let Some(at) = ill_typed(k) {
            let why = "they are repeated, reshaped, joined or indices where that takes the written extent";
            return refused(why.to_owned(), Some(at));
        }
        if let Some((name, at)) = cut(k, own) {
            return refused(format!("a window of the register tile `{name}` has as many elements"), Some(at));
        }
        let extent = Extent { own, count: self.count, to: self.to };
        let larger = enlarge_to(k, Windows::Any, &[extent])?;
        if let Some(at) = ill_typed(k) {
            return refused("what is computed of them takes the written extent".to_owned(), Some(at));
        }
        Ok(larger.into_iter().map(|(v, ..)| v).collect())
    }
}

/// Where a kernel is not well-typed.
fn ill_typed(k: &Kernel) -> Option<Span> {
    let mut sink = Sink::default();
    tilec_ir::verify::verify(k, &mut sink).err()?;
    sink.diagnostics().iter().find(|d| d.severity == Severity::Error).map(|d| d.span)
}

/// A register tile of which a window has the extent `own`, but not the tile itself.
fn cut(k: &Kernel, own: u64) -> Option<(String, Span)> {
    let windows = all_stmts(k, k.body).into_iter().flat_map(|s| windows_of(k, s));
    windows.into_iter().find_map(|(e, shape)| {
        let view = register_window(k, e)?;
        let whole = k.const_shape(&k.tile_ty(view.base)?.shape)?;
        let part = |(w, &d): (usize, &usize)| (shape.get(w) == Some(&own)) != (whole.get(d) == Some(&own));
        view.base_dims().iter().enumerate().any(part).then(|| (k.values[view.base].name.clone(), k.expr_spans[e]))
    })
}

/// The dimensions that grow together.
struct Group<'a> {
    k: &'a mut Kernel,
    /// Their extent in the source.
    count: u64,
    /// The extent that they get, which no other dimension has.
    own: u64,
    /// Whether a dimension was added.
    grown: bool,
}

impl Group<'_> {
    /// Adds a dimension of a tile, if it has that number of elements.
    fn grow(&mut self, v: Value, d: usize) {
        let (ValueDef::Var(tile) | ValueDef::Smem(tile)) = &self.k.values[v].def else { return };
        if tile.shape.get(d).is_none_or(|&n| self.k.as_int(n) != Some(self.count.cast_signed())) {
            return;
        }
        let own = self.k.int(self.own.cast_signed(), self.k.values[v].span);
        if let Some(tile) = self.k.tile_ty_mut(v) {
            tile.shape[d] = own;
            self.grown = true;
        }
    }

    /// Adds all dimensions that must have the extent of one that is in the group.
    fn close(&mut self) {
        let stmts = all_stmts(self.k, self.k.body);
        loop {
            self.grown = false;
            for &s in &stmts {
                match self.k.stmts[s] {
                    StmtData::Assign { dst: value, src } | StmtData::Var { value, init: Some(src) } => {
                        let shape = self.k.tile_ty(value).and_then(|tile| self.k.const_shape(&tile.shape));
                        self.moved(src, shape.as_deref(), &mut |group, w| group.grow(value, w));
                    }
                    StmtData::Copy { src, dst, .. } => {
                        let shape = copy_shape(self.k, src, dst);
                        self.moved(src, shape.as_deref(), &mut |group, w| group.reach(dst, w, true));
                    }
                    _ => {}
                }
                for e in stmt_exprs(self.k, s) {
                    self.within(e);
                }
            }
            if !self.grown {
                return;
            }
        }
    }

    /// What moves `src` to a tile of these extents. `dst`: adds a dimension of that tile.
    fn moved(&mut self, src: Expr, shape: Option<&[u64]>, dst: &mut dyn FnMut(&mut Self, usize)) {
        let Some(shape) = shape else { return };
        let from = fixed_shape(self.k, src).filter(|from| from.len() == shape.len());
        for (w, &n) in shape.iter().enumerate() {
            let own = from.as_ref().map(|from| from[w]);
            if n == self.own || own == Some(self.own) {
                dst(self, w);
                self.reach(src, w, own != Some(self.own));
            }
        }
    }

    /// Adds the dimensions that follow from those inside an expression.
    fn within(&mut self, e: Expr) {
        let children = self.k.children(e);
        children.iter().for_each(|&child| self.within(child));
        if let ExprData::Mma(mma) = self.k.exprs[e] {
            self.product(mma);
            return;
        }
        // Operands of different extents have no common one yet.
        let shapes: Vec<Vec<u64>> = children.iter().filter_map(|&child| fixed_shape(self.k, child)).collect();
        for (w, n) in shapes.iter().flat_map(|shape| shape.iter().enumerate()) {
            if *n == self.own {
                self.reach(e, w, false);
            }
        }
    }

    /// Rows, columns and depth of a product.
    fn product(&mut self, Mma { a, b, c, .. }: Mma) {
        let [of_a, of_b, of_c] = [a, b, c].map(|e| fixed_shape(self.k, e));
        let Some(first) = of_c.as_ref().and_then(|shape| shape.len().checked_sub(2)) else { return };
        let has = |shape: &Option<Vec<u64>>, d: usize| shape.as_ref().and_then(|shape| shape.get(d)) == Some(&self.own);
        let sides = [
            [(a, 0, has(&of_a, 0)), (c, first, has(&of_c, first))],
            [(b, 1, has(&of_b, 1)), (c, first + 1, has(&of_c, first + 1))],
            [(a, 1, has(&of_a, 1)), (b, 0, has(&of_b, 0))],
        ];
        for side in sides.into_iter().filter(|side| side.iter().any(|&(.., own)| own)) {
            side.into_iter().for_each(|(e, d, own)| self.reach(e, d, !own));
        }
    }

    /// Adds the dimensions of tiles that are dimension `w` of an expression. `all`: also single elements, which would
    /// otherwise be broadcast.
    fn reach(&mut self, e: Expr, w: usize, all: bool) {
        if self.count == 1 && !all {
            return;
        }
        if let Some(view) = resolve_view(self.k, e) {
            if let Some(&d) = view.base_dims().get(w) {
                self.grow(view.base, d);
                self.numbers(e, d);
            }
            return;
        }
        let rank = |k: &Kernel, e: Expr| fixed_shape(k, e).map(|shape| shape.len());
        match self.k.exprs[e].clone() {
            ExprData::Ref(v) => {
                if let Some(init) = let_init(self.k, v) {
                    self.reach(init, w, all);
                }
            }
            ExprData::Transpose(arg) if w < 2 => self.reach(arg, 1 - w, all),
            ExprData::Reduce { axis, arg, .. } | ExprData::Scan { axis, arg, .. } if axis as usize != w => {
                self.reach(arg, w, all);
            }
            ExprData::Iota { like, .. } => self.reach(like, w, all),
            ExprData::Mma(mma) => self.reach(mma.c, w, all),
            ExprData::Op { .. }
            | ExprData::Cast { .. }
            | ExprData::Bits { .. }
            | ExprData::Round { .. }
            | ExprData::Lookup { .. } => {
                let children = self.k.children(e);
                let own = children.iter().filter_map(|&child| rank(self.k, child)).max();
                for child in children {
                    if rank(self.k, child) == own {
                        self.reach(child, w, all);
                    }
                }
            }
            _ => {}
        }
    }

    /// Adds the numbers of gathered rows along dimension `d` of a window.
    fn numbers(&mut self, e: Expr, d: usize) {
        let ExprData::View(view) = &self.k.exprs[e] else { return };
        let Some(&Range::Gather(rows)) = view.ranges.get(d) else { return };
        if let ExprData::Ref(v) = self.k.exprs[rows]
            && let Some(shape) = self.k.tile_ty(v).and_then(|tile| self.k.const_shape(&tile.shape))
            && let Some(d) = shape.iter().position(|&n| n == self.count)
        {
            self.grow(v, d);
        }
    }
}
