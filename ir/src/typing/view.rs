//! What a window looks at: aliases followed, windows of windows composed.

use super::types::{Extent, Type, Types, const_int, let_init, same_expr, type_of};
use crate::entities::{Expr, Value};
use crate::kernel::{ExprData, Kernel, Range, Slot, ValueDef};
use crate::layout::{RegLayout, shape_bits};
use crate::space::Space;

/// Aliases of aliases are followed this far.
const MAX_ALIASES: usize = 64;

/// A window of a tensor, buffer, channel slot or register variable, in coordinates of that base.
#[derive(Clone, PartialEq, Debug)]
pub struct ResolvedView {
    /// The tensor, buffer, channel or register variable.
    pub base: Value,
    /// For channels, the slot.
    pub slot: Option<Slot>,
    /// A dimension of the base each, in the base's order.
    pub dims: Vec<ViewDim>,
    /// The window is seen transposed: its dimension 0 is the second dimension it keeps of the base, and its
    /// dimension 1 the first.
    pub transposed: bool,
}

/// One dimension of the base of a window.
#[derive(Clone, PartialEq, Debug)]
pub enum ViewDim {
    /// A single index: the window does not have this dimension.
    Fixed(Expr),
    /// The window has this dimension.
    From {
        /// It starts at the sum of these; empty: 0.
        starts: Vec<Expr>,
        /// It ends before this (in coordinates of the base), besides at the extent of the base.
        end: Option<Expr>,
    },
    /// The window has this dimension, and its elements are where the integers of this register variable say.
    Gather(Expr),
}

impl ViewDim {
    /// What its first element is the sum of; nothing: 0. Of gathered elements: what all of them depend on.
    #[must_use]
    pub fn starts(&self) -> &[Expr] {
        match self {
            ViewDim::Fixed(e) | ViewDim::Gather(e) => std::slice::from_ref(e),
            ViewDim::From { starts, .. } => starts,
        }
    }
}

impl ResolvedView {
    /// The dimensions of the window along which elements are gathered or scattered, and the register tiles whose integers say where they are.
    pub fn gathered_dims(&self) -> Vec<(usize, Expr)> {
        let tile_of = |(w, d): (usize, usize)| match self.dims[d] {
            ViewDim::Gather(e) => Some((w, e)),
            ViewDim::Fixed(_) | ViewDim::From { .. } => None,
        };
        self.base_dims().into_iter().enumerate().filter_map(tile_of).collect()
    }

    /// Whether the tile of indices `numbers` of dimension `w` of the window has an index for each element, not for each
    /// coordinate along the dimension: it has the window's dimensions, and extends along another one than `w`.
    pub fn is_by_element(&self, k: &Kernel, w: usize, numbers: Expr) -> bool {
        let Ok(Type::Tile(tile)) = type_of(k, numbers) else { return false };
        is_by_element(&tile.shape, w, self.base_dims().len())
    }

    /// Whether some dimension of the window has an index for each element.
    pub fn gathers_by_element(&self, k: &Kernel) -> bool {
        self.gathered_dims().into_iter().any(|(w, numbers)| self.is_by_element(k, w, numbers))
    }

    /// Whether elements are gathered or scattered along a dimension of the window.
    pub fn is_gathered(&self) -> bool {
        self.dims.iter().any(|dim| matches!(dim, ViewDim::Gather(_)))
    }

    /// The base dimensions that the window has, in the order of the window's own dimensions.
    pub fn base_dims(&self) -> Vec<usize> {
        let is_kept = |&d: &usize| !matches!(self.dims[d], ViewDim::Fixed(_));
        let mut kept: Vec<usize> = (0..self.dims.len()).filter(is_kept).collect();
        if self.transposed {
            kept.reverse();
        }
        kept
    }

    /// What a window of these extents has of each dimension of its base: of those that it does not keep 1. `None` if they are extents of another rank.
    #[must_use]
    pub fn extents_of_base(&self, shape: &[u64]) -> Option<Vec<u64>> {
        let kept = self.base_dims();
        let mut extents = vec![1; self.dims.len()];
        kept.iter().zip(shape).for_each(|(&d, &n)| extents[d] = n);
        (kept.len() == shape.len()).then_some(extents)
    }

    /// Where a window of these extents begins in its base, if all of it is at a constant place within the base. `None` also for
    /// a window that ends sooner, or has not all dimensions.
    #[must_use]
    pub fn constant_start(&self, k: &Kernel, shape: &[u64]) -> Option<Vec<u64>> {
        let whole = k.const_shape(&k.tile_ty(self.base)?.shape)?;
        let extents = self.extents_of_base(shape).filter(|_| shape.len() == whole.len())?;
        let number = |e: Expr| u64::try_from(const_int(k, e)?).ok();
        let start = |(d, n): (&ViewDim, u64)| {
            let ViewDim::From { starts, end } = d else { return None };
            let start = starts.iter().try_fold(0u64, |sum, &e| sum.checked_add(number(e)?))?;
            let end = end.map_or(Some(n), number)?.min(n);
            Some((start, end))
        };
        let places = self.dims.iter().zip(whole).map(start).collect::<Option<Vec<(u64, u64)>>>()?;
        let fits =
            places.iter().zip(extents).all(|(&(start, end), n)| start.checked_add(n).is_some_and(|last| last <= end));
        fits.then(|| places.into_iter().map(|(start, _)| start).collect())
    }

    /// Whether two windows of a program have the same elements in the same places: what they begin and end at is written alike.
    #[must_use]
    pub fn is_same(&self, k: &Kernel, other: &ResolvedView) -> bool {
        let alike = |a: &[Expr], b: &[Expr]| a.len() == b.len() && a.iter().zip(b).all(|(&x, &y)| same_expr(k, x, y));
        let dims = self.dims.iter().zip(&other.dims).all(|pair| match pair {
            (ViewDim::From { starts: a, end: x }, ViewDim::From { starts: b, end: y }) => {
                alike(a, b) && alike(x.as_slice(), y.as_slice())
            }
            (ViewDim::Fixed(_), ViewDim::Fixed(_)) | (ViewDim::Gather(_), ViewDim::Gather(_)) => {
                alike(pair.0.starts(), pair.1.starts())
            }
            _ => false,
        });
        (self.base, self.slot, self.transposed, self.dims.len())
            == (other.base, other.slot, other.transposed, other.dims.len())
            && dims
    }

    /// The memory the base lives in.
    pub fn space(&self, k: &Kernel) -> Space {
        k.values[self.base].def.space()
    }

    /// Narrows the window by ranges, one per dimension of the window. `None` if their number is wrong, or for an index or
    /// an end counted from a start that is not 0: those need a sum that is not an expression of the program.
    fn narrow(&mut self, k: &Kernel, ranges: &[Range]) -> Option<()> {
        let kept = self.base_dims();
        if kept.len() != ranges.len() {
            return None;
        }
        for (&d, r) in kept.iter().zip(ranges) {
            let ViewDim::From { starts, end } = &mut self.dims[d] else { return None };
            let from_zero = starts.iter().all(|&s| const_int(k, s) == Some(0)) && end.is_none();
            match *r {
                Range::At(i) if from_zero => self.dims[d] = ViewDim::Fixed(i),
                Range::Gather(e) if from_zero => self.dims[d] = ViewDim::Gather(e),
                Range::At(_) | Range::Gather(_) => return None,
                Range::From { start, end: inner } => {
                    if inner.is_some() {
                        if !from_zero {
                            return None;
                        }
                        *end = inner;
                    }
                    if from_zero {
                        starts.clear();
                    }
                    starts.push(start);
                }
            }
        }
        if self.base_dims().len() != 2 {
            // Fewer than two dimensions are left: their order no longer matters.
            self.transposed = false;
        }
        Some(())
    }
}

/// Whether a tile of indices of this shape has an index for each element of a window of `rank` dimensions, whose dimension `w` it
/// names.
#[must_use]
pub fn is_by_element(shape: &[Extent], w: usize, rank: usize) -> bool {
    shape.len() == rank && shape.iter().enumerate().any(|(d, &n)| d != w && n != Extent::Known(1))
}

/// What `e` looks at, if it is a place, a tensor, a window of one, such a thing transposed, or a `let` that names a window
/// of global memory.
pub fn resolve_view(k: &Kernel, e: Expr) -> Option<ResolvedView> {
    resolve(k, &|v| let_init(k, v), e, MAX_ALIASES)
}

impl Types<'_> {
    /// [`resolve_view`], without searching the program for each `let`.
    pub fn resolve_view(&self, e: Expr) -> Option<ResolvedView> {
        resolve(self.k, &|v| self.init(v), e, MAX_ALIASES)
    }
}

/// Finds the initialiser of a `let`.
type Inits<'a> = &'a dyn Fn(Value) -> Option<Expr>;

fn resolve(k: &Kernel, inits: Inits<'_>, e: Expr, fuel: usize) -> Option<ResolvedView> {
    let fuel = fuel.checked_sub(1)?;
    match &k.exprs[e] {
        ExprData::Ref(v) => whole(k, inits, *v, None, fuel),
        ExprData::View(v) => {
            let mut view = whole(k, inits, v.base, v.slot, fuel)?;
            if !v.ranges.is_empty() {
                view.narrow(k, &v.ranges)?;
            }
            Some(view)
        }
        ExprData::Transpose(arg) => {
            let mut view = resolve(k, inits, *arg, fuel)?;
            if view.base_dims().len() != 2 {
                return None;
            }
            view.transposed = !view.transposed;
            Some(view)
        }
        _ => None,
    }
}

/// All of a value, or what it is an alias of.
fn whole(k: &Kernel, inits: Inits<'_>, v: Value, slot: Option<Slot>, fuel: usize) -> Option<ResolvedView> {
    let rank = match &k.values[v].def {
        ValueDef::Tensor(t) => t.shape.len(),
        ValueDef::Var(t) | ValueDef::Smem(t) => t.shape.len(),
        ValueDef::Channel { tile, .. } => {
            slot?;
            tile.shape.len()
        }
        ValueDef::Let => {
            let view = resolve(k, inits, inits(v)?, fuel)?;
            return (view.space(k).has_bounds() && slot.is_none()).then_some(view);
        }
        _ => return None,
    };
    Some(ResolvedView {
        base: v,
        slot,
        dims: vec![ViewDim::From { starts: Vec::new(), end: None }; rank],
        transposed: false,
    })
}

/// The layout of a window of these extents of a register tile, and which registers it has; `None` where its place is not known, or
/// threads have no whole part of it.
pub fn window_of_registers(k: &Kernel, view: &ResolvedView, shape: &[u64]) -> Option<(RegLayout, Vec<usize>)> {
    let start = |d: &ViewDim| match d {
        ViewDim::From { end: Some(_), .. } | ViewDim::Gather(_) => None,
        _ => d.starts().iter().try_fold(0, |sum: u64, &e| sum.checked_add(u64::try_from(const_int(k, e)?).ok()?)),
    };
    let starts = view.dims.iter().map(start).collect::<Option<Vec<u64>>>()?;
    window_of_registers_at(k, view, &starts, shape)
}

/// The same of a window that begins at `starts`, a number for each dimension of the tile.
pub fn window_of_registers_at(
    k: &Kernel,
    view: &ResolvedView,
    starts: &[u64],
    shape: &[u64],
) -> Option<(RegLayout, Vec<usize>)> {
    let tile = k.tile_ty(view.base).filter(|_| view.space(k).in_registers() && !view.transposed)?;
    let extents = view.extents_of_base(shape)?;
    tile.reg_layout.as_ref()?.window(&shape_bits(&k.const_shape(&tile.shape)?), starts, &shape_bits(&extents))
}

/// The extents that `copy src -> dst` moves: those of the side that has some, empty for a single element. `None` if
/// neither has, or they are not numbers yet.
pub fn copy_shape(k: &Kernel, src: Expr, dst: Expr) -> Option<Vec<u64>> {
    let (from, to) = (type_of(k, src).ok()?, type_of(k, dst).ok()?);
    match (&from, &to) {
        (_, Type::Tile(t)) | (Type::Tile(t), _) => t.known_shape(),
        _ => (from.rank() == 0 && to.rank() == 0).then(Vec::new),
    }
}
