//! The extensions of window syntax: a number of elements, `i..+n`, their distance, `i.. step n`, and dimensions along
//! which a vector is broadcast, `_`.
//!
//! The parser records them and replaces them by equivalent forms ([`super::implicit_tiles`], [`super::strided`],
//! [`super::broadcast_vectors`]); no other code sees them.

use crate::diag::Span;
use crate::entities::{Expr, Value};
use crate::kernel::{ExprData, Kernel, Mma, Range, ValueDef, View};
use crate::typing::{Extent, Type, is_by_element, let_init, type_of};
use std::collections::{BTreeMap, BTreeSet};

/// The sign of a dimension along which a tensor is broadcast.
pub(super) const REPEATS: &str = "_";

/// The notes on one range of a window.
#[derive(Copy, Clone, PartialEq, Debug, Default)]
pub(super) struct RangeNote {
    /// The number of elements: `i..+n`.
    pub(super) extent: Option<Expr>,
    /// Where that is written, if it may be left out: `+n`.
    pub(super) written: Option<Span>,
    /// How far elements are apart: `i.. step n`.
    pub(super) step: Option<Expr>,
    /// The elements repeat: `_`.
    pub(super) repeats: bool,
    /// For `i..` and `..`, which give only a start: their position in the source.
    pub(super) open: Option<Span>,
}

impl RangeNote {
    /// Whether it is more than where elements begin and end.
    pub(super) fn is_more(&self) -> bool {
        self.extent.is_some() || self.step.is_some() || self.repeats
    }
}

/// The notes on the windows of a kernel that have any: one per range.
pub(super) type Notes = BTreeMap<Expr, Vec<RangeNote>>;

/// A dimension of a window.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Dim {
    /// Its extent, if a range gives it: `i..+n`.
    pub(super) extent: Option<Extent>,
    /// Where that is written: `+n`.
    pub(super) written: Option<Span>,
    /// How many elements a tile of integers numbers.
    pub(super) gathered: Option<Extent>,
    /// How many elements the place has from the window's first on, if that is all of them: `s[0..]` of shared memory or a register tile.
    pub(super) all: Option<Extent>,
    /// The elements repeat.
    pub(super) repeats: bool,
}

impl Dim {
    /// The extent that the window gives.
    pub(super) fn given_extent(&self) -> Option<Extent> {
        self.extent.or(self.gathered)
    }
}

/// A window, or all of what has windows.
#[derive(Clone, Debug)]
pub(super) struct Window {
    /// The tensor or place, with names of windows resolved.
    pub(super) base: Value,
    /// The dimensions that it has.
    pub(super) dims: Vec<Dim>,
    /// The expressions whose notes tell this.
    pub(super) from: Vec<Expr>,
}

impl Window {
    /// Whether it is one of these.
    pub(super) fn is_among(&self, windows: &BTreeSet<Expr>) -> bool {
        self.from.iter().any(|e| windows.contains(e))
    }
}

/// How many names of names are looked up.
const NAMES: usize = 64;

/// The window `e`; `None` if it is not a window, or all of a place with its own extents.
pub(super) fn window(k: &Kernel, notes: &Notes, e: Expr) -> Option<Window> {
    within(k, notes, e, NAMES)
}

fn within(k: &Kernel, notes: &Notes, e: Expr, names: usize) -> Option<Window> {
    let names = names.checked_sub(1)?;
    match &k.exprs[e] {
        ExprData::Ref(v) => whole(k, notes, *v, names),
        ExprData::View(view) if view.ranges.is_empty() => whole(k, notes, view.base, names),
        ExprData::View(view) => {
            let base = match k.values[view.base].def {
                ValueDef::Let => whole(k, notes, view.base, names).map_or(view.base, |window| window.base),
                ValueDef::Tensor(_) | ValueDef::Var(_) | ValueDef::Smem(_) | ValueDef::Channel { .. } => view.base,
                _ => return None,
            };
            let said = notes.get(&e);
            let by_element = by_element(k, view);
            let mut kept = 0;
            let dims = view.ranges.iter().enumerate().filter_map(|(d, range)| {
                let along = by_element.as_ref().and_then(|all| all.get(kept).copied().flatten());
                kept += usize::from(!matches!(*range, Range::At(at) if indices(k, at).is_none()));
                let said = said.map_or_else(RangeNote::default, |said| said[d]);
                let extent = said.extent.map(|n| Extent::of(k, n));
                match *range {
                    Range::From { start, end } => {
                        let begins = end.is_none() && said.step.is_none() && k.as_int(start) == Some(0);
                        let all = k.tile_ty(base).filter(|t| begins && t.shape.len() == view.ranges.len());
                        let all = all.map(|t| Extent::of(k, t.shape[d]));
                        // Elements with indices of their own do not repeat.
                        let repeats = said.repeats && along.is_none();
                        Some(Dim { extent, written: said.written, all, gathered: along, repeats })
                    }
                    Range::At(at) | Range::Gather(at) => {
                        let own = indices(k, at)?;
                        let n = along.or_else(|| own.into_iter().find(|n| n.known() != Some(1)));
                        Some(Dim { gathered: n.or(Some(Extent::Known(1))), ..Dim::default() })
                    }
                }
            });
            Some(Window { base, dims: dims.collect(), from: vec![e] })
        }
        ExprData::Transpose(arg) => {
            let mut window = within(k, notes, *arg, names).filter(|window| window.dims.len() == 2)?;
            window.dims.reverse();
            Some(window)
        }
        _ => None,
    }
}

/// The window of a whole tensor, or the one for which a name stands.
fn whole(k: &Kernel, notes: &Notes, v: Value, names: usize) -> Option<Window> {
    match &k.values[v].def {
        ValueDef::Tensor(t) => Some(Window { base: v, dims: vec![Dim::default(); t.shape.len()], from: Vec::new() }),
        ValueDef::Let => within(k, notes, let_init(k, v)?, names).filter(|window| k.tensor_ty(window.base).is_some()),
        _ => None,
    }
}

/// The extents of a tile of integers that names elements of a window.
fn indices(k: &Kernel, at: Expr) -> Option<Vec<Extent>> {
    match type_of(k, at) {
        Ok(Type::Tile(t)) => Some(t.shape),
        _ => None,
    }
}

/// The extents that tiles with an index for each element give the dimensions of a window, where they are not 1; `None`: no such tile
/// names its elements.
fn by_element(k: &Kernel, view: &View) -> Option<Vec<Option<Extent>>> {
    let named = |range: &Range| match *range {
        Range::At(at) | Range::Gather(at) => indices(k, at),
        Range::From { .. } => None,
    };
    let kept = view.ranges.iter().filter(|r| matches!(r, Range::From { .. }) || named(r).is_some());
    let kept: Vec<Option<Vec<Extent>>> = kept.map(named).collect();
    let rank = kept.len();
    let mut given = vec![None; rank];
    let mut any = false;
    for (w, shape) in kept.iter().enumerate() {
        let Some(shape) = shape.as_ref().filter(|shape| is_by_element(shape, w, rank)) else { continue };
        any = true;
        for (d, &n) in shape.iter().enumerate() {
            // Along its own dimension a tile has all indices, be it one.
            if d == w || given[d].is_none() && n != Extent::Known(1) {
                given[d] = Some(n);
            }
        }
    }
    any.then_some(given)
}

/// The parts of an expression that are combined element by element: what is read, reduced or multiplied.
pub(super) fn leaves(k: &Kernel, e: Expr, found: &mut Vec<Expr>) {
    match &k.exprs[e] {
        ExprData::Op { args, .. } => args.iter().for_each(|&arg| leaves(k, arg, found)),
        ExprData::Cast { arg, .. } | ExprData::Bits { arg, .. } | ExprData::Lookup { index: arg, .. } => {
            leaves(k, *arg, found)
        }
        ExprData::Round { arg, word, .. } => [*arg, *word].into_iter().for_each(|arg| leaves(k, arg, found)),
        ExprData::Int(_) | ExprData::Float(_) | ExprData::Index(_) => {}
        ExprData::Ref(_)
        | ExprData::View(_)
        | ExprData::Transpose(_)
        | ExprData::Reshape { .. }
        | ExprData::Permute { .. }
        | ExprData::Concat { .. }
        | ExprData::Reduce { .. }
        | ExprData::Scan { .. }
        | ExprData::Combine(_)
        | ExprData::Part { .. }
        | ExprData::Iota { .. }
        | ExprData::Mma(_) => found.push(e),
    }
}

/// The rank of `e`, including missing dimensions of its operands.
pub(super) fn rank(k: &Kernel, notes: &Notes, e: Expr) -> usize {
    rank_within(k, notes, e, NAMES, &mut BTreeMap::new())
}

/// `known`: of names that were looked up, each of which counts once however often it is read.
fn rank_within(k: &Kernel, notes: &Notes, e: Expr, names: usize, known: &mut BTreeMap<Value, usize>) -> usize {
    let mut most = |all: &[Expr]| all.iter().map(|&e| rank_within(k, notes, e, names, &mut *known)).max().unwrap_or(0);
    match &k.exprs[e] {
        ExprData::Ref(v) if matches!(k.values[*v].def, ValueDef::Let) => {
            if let Some(&rank) = known.get(v) {
                return rank;
            }
            let rank = match (let_init(k, *v), names.checked_sub(1)) {
                (Some(init), Some(names)) => rank_within(k, notes, init, names, known),
                _ => 0,
            };
            known.insert(*v, rank);
            rank
        }
        ExprData::Ref(v) => match &k.values[*v].def {
            ValueDef::Tensor(t) => t.shape.len(),
            _ => k.tile_ty(*v).map_or(0, |t| t.shape.len()),
        },
        ExprData::View(view) if view.ranges.is_empty() => {
            k.tile_ty(view.base).map_or_else(|| k.tensor_ty(view.base).map_or(0, |t| t.shape.len()), |t| t.shape.len())
        }
        ExprData::View(_) => window(k, notes, e).map_or(0, |window| window.dims.len()),
        ExprData::Op { args, .. } | ExprData::Concat { args, .. } => most(args),
        ExprData::Round { arg, word, .. } => most(&[*arg, *word]),
        ExprData::Reshape { shape, .. } => shape.len(),
        ExprData::Permute { order, .. } => order.len(),
        ExprData::Combine(combine) => most(&combine.args),
        ExprData::Cast { arg, .. }
        | ExprData::Bits { arg, .. }
        | ExprData::Lookup { index: arg, .. }
        | ExprData::Reduce { arg, .. }
        | ExprData::Scan { arg, .. }
        | ExprData::Part { of: arg, .. }
        | ExprData::Transpose(arg)
        | ExprData::Iota { like: arg, .. }
        | ExprData::Mma(Mma { c: arg, .. }) => rank_within(k, notes, *arg, names, known),
        ExprData::Int(_) | ExprData::Float(_) | ExprData::Index(_) => 0,
    }
}
