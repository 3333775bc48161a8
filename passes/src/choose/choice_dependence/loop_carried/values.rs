//! Abstract values of expressions in a loop over tiles.

use super::super::tile_groups::{divides, group_of};
use super::super::uniform::is_uniform;
use super::dependence_kind::{Kind, elementwise, extreme, matrix_product, mixed};
use super::tiles::Tiles;
use crate::analysis::past_end::{self, Pad};
use crate::analysis::uses::mentions;
use crate::rewrite::same_expr;
use tilec_ir::combine::Combine;
use tilec_ir::entities::Expr;
use tilec_ir::kernel::{ExprData, Kernel, ValueDef};
use tilec_ir::loop_ends::{loop_variable, meaning};
use tilec_ir::ops::{Op, ReduceOp};
use tilec_ir::types::{Elem, ElemRef};
use tilec_ir::typing::{Extent, ResolvedView, Type, ViewDim, resolve_view, same_product, type_of};

impl Tiles<'_> {
    pub(super) fn of(&mut self, e: Expr) -> Kind {
        let k = self.k;
        if let Some(view) =
            resolve_view(k, e).filter(|view| view.space(k).has_bounds() || k.tile_ty(view.base).is_some())
        {
            return self.window(e, &view);
        }
        match &k.exprs[e] {
            ExprData::Int(0) => Kind::Zero,
            ExprData::Float(bits) if f64::from_bits(*bits) == 0.0 => Kind::Zero,
            ExprData::Int(_) | ExprData::Float(_) => Kind::Fixed,
            ExprData::Ref(v) if *v == self.var => {
                if self.numbers {
                    Kind::Other { carried: false }
                } else {
                    Kind::Begin { negative: false }
                }
            }
            ExprData::Ref(v) => self.kinds.get(v).copied().unwrap_or(Kind::Fixed),
            ExprData::Op { .. } if self.is_group(e) => Kind::Group,
            ExprData::Op { op, args } => {
                let kind = self.operator(e, *op, args);
                self.combined(kind, args)
            }
            ExprData::Cast { elem, arg } => {
                let kind = self.of(*arg);
                match type_of(k, *arg).ok().and_then(|t| t.elem()) {
                    Some(from) => converted(kind, from, *elem),
                    None => kind,
                }
            }
            ExprData::Reduce { op, axis, parts: 0, arg } => {
                let kind = self.reshaped_operand(*arg);
                let along = self.is_along_tile(*arg, *axis);
                self.reduced(*op, *axis, kind, along)
            }
            ExprData::Reduce { arg, .. } => mixed(&[self.reshaped_operand(*arg)]),
            ExprData::Scan { axis, arg, .. } => {
                let kind = self.reshaped_operand(*arg);
                match kind {
                    _ if self.is_along_tile(*arg, *axis) => mixed(&[kind]),
                    Kind::Zero | Kind::Fixed => Kind::Fixed,
                    Kind::Each { axes, .. } if axes >> axis & 1 == 0 => Kind::Each { axes, pad: Pad::UNKNOWN },
                    _ => mixed(&[kind]),
                }
            }
            ExprData::Combine(combine) => self.tuples(combine),
            ExprData::Part { of, .. } => self.of(*of),
            ExprData::Transpose(arg) => self.reshaped_operand(*arg).transposed(),
            ExprData::Reshape { arg, .. } | ExprData::Permute { arg, .. } => match self.reshaped_operand(*arg) {
                Kind::Zero | Kind::Fixed => Kind::Fixed,
                other => mixed(&[other]),
            },
            ExprData::Concat { args, .. } => {
                mixed(&args.iter().map(|&arg| self.reshaped_operand(arg)).collect::<Vec<_>>())
            }
            ExprData::Iota { axis, like } => match type_of(k, *like) {
                Ok(Type::Tile(tile)) if tile.shape.get(*axis as usize).is_some_and(|x| self.is_of_tile(x)) => {
                    Kind::Number { axis: *axis, negative: false }
                }
                _ => Kind::Fixed,
            },
            ExprData::Round { arg, word, .. } => elementwise(&[self.of(*arg), self.of(*word)], Pad::UNKNOWN),
            ExprData::Lookup { index: arg, .. } | ExprData::Bits { arg, .. } => {
                elementwise(&[self.of(*arg)], Pad::UNKNOWN)
            }
            ExprData::Mma(m) => {
                let of_rank_two = type_of(k, m.c).is_ok_and(|t| t.rank() == 2);
                let (a, b, c) = (self.reshaped_operand(m.a), self.reshaped_operand(m.b), self.reshaped_operand(m.c));
                let along = self.is_along_tile(m.a, 1) || self.is_along_tile(m.b, 0);
                let product = matrix_product(a, b, self.padded, along);
                let product = if of_rank_two { product } else { mixed(&[product]) };
                // The type checker reports extents that differ.
                let product = if self.fits(m.a, m.b) { product } else { Kind::Part(ReduceOp::Sum) };
                self.sum(product, c, Pad::UNKNOWN)
            }
            ExprData::Index(arg) => match self.of(*arg) {
                Kind::Zero | Kind::Fixed => Kind::Fixed,
                other => mixed(&[other]),
            },
            ExprData::View(_) => mixed(&k.children(e).into_iter().map(|child| self.of(child)).collect::<Vec<_>>()),
        }
    }

    /// Tuples that are combined along a dimension: an element for each position along the other dimensions.
    fn tuples(&mut self, combine: &Combine) -> Kind {
        let along = combine.args.iter().any(|&arg| self.is_along_tile(arg, combine.axis));
        let kinds: Vec<Kind> = combine.args.iter().map(|&arg| self.reshaped_operand(arg)).collect();
        match elementwise(&kinds, Pad::UNKNOWN) {
            kind @ Kind::Fixed if !along => kind,
            kind @ Kind::Each { axes, .. } if !along && axes >> combine.axis & 1 == 0 => kind,
            _ => mixed(&kinds),
        }
    }

    /// Whether an index is the number of the group that contains the tile.
    fn is_group(&self, e: Expr) -> bool {
        let of_loop = group_of(self.k, e).filter(|&(v, _)| v == self.var && !self.numbers);
        of_loop.is_some_and(|(_, group)| divides(self.k, self.size, group))
    }

    /// The kind of an operand with another shape.
    fn reshaped_operand(&mut self, e: Expr) -> Kind {
        let shape = self.shape.take();
        let kind = self.of(e);
        self.shape = shape;
        kind
    }

    /// Whether the operands of a product have the same extent along the reduction.
    fn fits(&self, a: Expr, b: Expr) -> bool {
        let k = self.k;
        match (type_of(k, a), type_of(k, b)) {
            (Ok(Type::Tile(a)), Ok(Type::Tile(b))) => match (a.shape.get(1), b.shape.first()) {
                (Some(&Extent::Sym(a)), Some(&Extent::Sym(b))) => same_product(k, meaning(k, a), meaning(k, b)),
                _ => true,
            },
            _ => true,
        }
    }

    /// Whether an extent equals the tile's.
    pub(super) fn is_of_tile(&self, extent: &Extent) -> bool {
        let k = self.k;
        match *extent {
            Extent::Sym(e) => same_product(k, meaning(k, e), meaning(k, self.size)),
            Extent::Known(_) => false,
        }
    }

    /// Whether a tile has the loop tile's number of elements along this axis.
    fn is_along_tile(&self, e: Expr, axis: u32) -> bool {
        match type_of(self.k, e) {
            Ok(Type::Tile(tile)) => tile.shape.get(axis as usize).is_some_and(|extent| self.is_of_tile(extent)),
            _ => false,
        }
    }

    /// A value for each position can only be combined with one that has a single number along the tile, or also one for
    /// each position.
    fn combined(&mut self, kind: Kind, args: &[Expr]) -> Kind {
        let (Kind::Each { axes, .. } | Kind::Share { axes, .. }) = kind else { return kind };
        let differs = |&e: &Expr| {
            let along = (0..32).filter(|d| axes >> d & 1 == 1);
            along.into_iter().any(|d| self.is_along_tile(e, d) && !is_uniform(self.k, e, d))
        };
        let among: Vec<Expr> = args.iter().copied().filter(differs).collect();
        let repeated = among.into_iter().any(|e| self.of(e) == Kind::Fixed);
        if repeated { Kind::Other { carried: kind.is_carried() } } else { kind }
    }

    fn operator(&mut self, e: Expr, op: Op, args: &[Expr]) -> Kind {
        let k = self.k;
        let kinds: Vec<Kind> = args.iter().map(|&e| self.of(e)).collect();
        let pads: Vec<Pad> = kinds.iter().zip(args).map(|(&kind, &e)| self.pad(kind, e)).collect();
        let compared = |op: Op, sides: [Expr; 2]| self.compared(op, sides, &kinds);
        let pad = past_end::operator(k, op, args, &pads, &compared);
        match (op, kinds.as_slice(), args) {
            (Op::Add, &[a, b], _) => self.sum(a, b, pad),
            (Op::Sub, &[a, b], _) => {
                let b = self.negated(b);
                self.sum(a, b, pad)
            }
            (Op::Mul, _, &[a, b])
                if self.numbers && [(a, b), (b, a)].into_iter().any(|(t, size)| self.begins(t, size)) =>
            {
                Kind::Begin { negative: false }
            }
            (Op::Mul, &[a, b], &[x, y]) => self.product([a, b], [x, y], pad),
            // Integer division rounds.
            (Op::Div, &[Kind::Part(_), _], &[x, _]) if !is_float(k, x) => mixed(&kinds),
            (Op::Div, &[a, _], _) if past_end::is_rounded(k, args) && !a.pad().is_zero() => elementwise(&kinds, pad),
            (Op::Div, &[a, b], &[x, y]) => self.quotient([a, b], [x, y], pad),
            (Op::Max, &[a, b], _) => extreme(ReduceOp::Maximum, [a, b], pad, e),
            (Op::Min, &[a, b], _) => extreme(ReduceOp::Minimum, [a, b], pad, e),
            (Op::Fma, &[a, b, c], &[x, y, _]) => {
                let product =
                    self.product([a, b], [x, y], past_end::operator(k, Op::Mul, &args[..2], &pads[..2], &compared));
                self.sum(product, c, product.pad().plus(pads[2]))
            }
            (Op::Neg, &[a], _) => self.negated(a),
            (Op::Exp | Op::Exp2, &[a @ Kind::Exponent(_)], _) => self.exponential(op, a),
            (Op::Select, &[c, a, b], &[_, x, y]) => self.selected([c, a, b], [x, y], pad),
            (Op::Lt | Op::Le | Op::Gt | Op::Ge | Op::Eq | Op::Ne, &[a, b], &[x, y]) => {
                let guard = self.guard(op, [a, b], [x, y]);
                guard.unwrap_or_else(|| elementwise(&kinds, pad))
            }
            _ => elementwise(&kinds, pad),
        }
    }

    /// The result of a comparison for elements past the end of the range.
    fn compared(&self, op: Op, sides: [Expr; 2], kinds: &[Kind]) -> Option<bool> {
        let along = kinds.iter().find_map(|kind| match kind {
            Kind::Each { axes, .. } if axes.count_ones() == 1 => Some(axes.trailing_zeros()),
            _ => None,
        });
        self.known.compared(op, sides, self.behind.as_ref()?, along?)
    }

    /// Whether a product is the start of the tile.
    fn begins(&self, number: Expr, size: Expr) -> bool {
        let k = self.k;
        loop_variable(k, number) == Some(self.var) && same_product(k, meaning(k, size), meaning(k, self.size))
    }

    /// A reduction; `along`: over as many elements as the tile has.
    fn reduced(&self, op: ReduceOp, axis: u32, kind: Kind, along: bool) -> Kind {
        match kind {
            // Other reductions have no partial results to combine.
            Kind::Each { axes, .. } if axes >> axis & 1 == 1 && !op.has_partials() => mixed(&[kind]),
            Kind::Each { axes, pad } if axes == 1 << axis => {
                if !self.padded || pad.is_neutral(op) {
                    Kind::Part(op)
                } else {
                    mixed(&[kind])
                }
            }
            Kind::Each { axes, pad } if axes >> axis & 1 == 0 => Kind::Each { axes, pad: pad.reduced(op) },
            Kind::Share { axes, pad, scale } if axes == 1 << axis && op == ReduceOp::Sum => {
                if !self.padded || pad.is_zero() {
                    Kind::Share { axes: 0, pad: Pad::ZERO, scale }
                } else {
                    mixed(&[kind])
                }
            }
            Kind::Zero => kind,
            // The number of terms would depend on the choice.
            _ if along => mixed(&[kind]),
            Kind::Fixed => kind,
            Kind::Part(own) if own == op && op.has_partials() => kind,
            _ => mixed(&[kind]),
        }
    }

    /// Whether a window along a tile is all of it, or a slice in an inner loop that covers all of it.
    fn is_slice(&self, dim: &ViewDim) -> bool {
        let ViewDim::From { starts, end: None } = dim else { return false };
        let whole = |&e: &Expr| loop_variable(self.k, e).is_some_and(|v| self.over_tile.contains(&v));
        starts.is_empty() || matches!(starts.as_slice(), [start] if whole(start))
    }

    /// The dimensions along which a window of a tensor begins where the tile begins and has the tile's extent. `None`:
    /// the window depends on something else that varies.
    pub(super) fn moves(&mut self, e: Expr, view: &ResolvedView) -> Option<u32> {
        let own = match type_of(self.k, e) {
            Ok(Type::Tile(tile)) => Some(tile.shape),
            _ => None,
        };
        let shape = self.shape.clone().or(own);
        let kept = view.base_dims();
        let mut axes = 0;
        for (d, dim) in view.dims.iter().enumerate() {
            let end = match dim {
                ViewDim::From { end: Some(end), .. } => self.of(*end),
                _ => Kind::Zero,
            };
            match (self.start(dim), kept.iter().position(|&at| at == d)) {
                (Kind::Zero | Kind::Fixed | Kind::Group, _) if end.is_fixed() => {}
                (Kind::Begin { negative: false }, Some(at)) if end.is_fixed() => {
                    let extent = shape.as_ref().and_then(|shape| shape.get(at));
                    if view.space(self.k).has_bounds()
                        && extent.is_some_and(|extent| !self.is_part_of_tile(dim, extent))
                    {
                        return None;
                    }
                    axes |= 1 << at;
                }
                _ => return None,
            }
        }
        Some(axes)
    }

    /// The kind of a window's start along a dimension.
    fn start(&mut self, dim: &ViewDim) -> Kind {
        let starts: Vec<Kind> = dim.starts().iter().map(|&e| self.of(e)).collect();
        starts.into_iter().fold(Kind::Zero, |all, kind| self.sum(all, kind, Pad::UNKNOWN))
    }

    /// Whether an extent is the tile's, or that of a slice in an inner loop that covers the tile.
    fn is_part_of_tile(&self, dim: &ViewDim, extent: &Extent) -> bool {
        let mentions = |&e: &Expr| self.over_tile.iter().any(|&v| mentions(self.k, meaning(self.k, e), v));
        self.is_of_tile(extent) || dim.starts().iter().any(mentions)
    }

    /// Whether the loop stores to other elements of a tensor than a moving window reads, along these dimensions.
    fn stores_elsewhere(&self, view: &ResolvedView, axes: u32) -> bool {
        let kept = view.base_dims();
        let same = |a: &ViewDim, b: &ViewDim| {
            let (a, b) = (a.starts(), b.starts());
            a.len() == b.len()
                && a.iter().zip(b).all(|(&x, &y)| same_expr(self.k, meaning(self.k, x), meaning(self.k, y)))
        };
        let moving = || (0..kept.len()).filter(|at| axes >> at & 1 == 1).map(|at| kept[at]);
        let stores = self.stored.iter().filter(|stored| stored.base == view.base);
        stores.into_iter().any(|stored| !moving().all(|d| same(&stored.dims[d], &view.dims[d])))
    }

    fn window(&mut self, e: Expr, view: &ResolvedView) -> Kind {
        let k = self.k;
        let base = match k.values[view.base].def {
            ValueDef::Tensor(_) => Kind::Fixed,
            _ => self.kinds.get(&view.base).copied().unwrap_or(Kind::Fixed),
        };
        if is_whole(view) {
            return if view.transposed { base.transposed() } else { base };
        }
        let Some(axes) = self.moves(e, view) else { return mixed(&[base]) };
        let kept = view.base_dims();
        match base {
            Kind::Fixed if self.stores_elsewhere(view, axes) => Kind::Other { carried: true },
            Kind::Fixed if axes == 0 && self.stored.iter().any(|stored| stored.base == view.base) => {
                Kind::Other { carried: true }
            }
            Kind::Fixed if axes == 0 && view.dims.iter().any(|dim| self.start(dim) == Kind::Group) => Kind::Group,
            Kind::Fixed if axes == 0 => base,
            Kind::Fixed => Kind::Each { axes, pad: Pad::ZERO },
            Kind::Each { axes: own, .. } if axes == 0 && kept.len() == view.dims.len() => {
                let moving = |d: &usize| own >> d & 1 == 1;
                let slices = (0..view.dims.len()).filter(moving).all(|d| self.is_slice(&view.dims[d]));
                let kind = if slices { base } else { Kind::Other { carried: false } };
                if view.transposed { kind.transposed() } else { kind }
            }
            Kind::Zero | Kind::Part(_) if axes == 0 => base,
            _ => mixed(&[base]),
        }
    }
}

pub(super) fn is_whole(view: &ResolvedView) -> bool {
    view.dims.iter().all(|dim| matches!(dim, ViewDim::From { starts, end: None } if starts.is_empty()))
}

fn is_float(k: &Kernel, e: Expr) -> bool {
    matches!(type_of(k, e).ok().and_then(|t| t.elem()), Some(ElemRef::Known(elem)) if elem.is_float())
}

/// The kind of a value after conversion. A rounded partial sum is no partial sum any more; extremes may be rounded
/// before or after.
pub(super) fn converted(kind: Kind, from: ElemRef, to: ElemRef) -> Kind {
    let float =
        |elem| matches!(elem, ElemRef::Known(elem) if Elem::is_float(elem)) || matches!(elem, ElemRef::Param(_));
    let to_integer = float(from) && !float(to);
    match kind {
        _ if is_wider(from, to) => kind,
        Kind::Part(ReduceOp::Sum) | Kind::Old(_) | Kind::Grown(..) | Kind::Scaled(..) | Kind::Spread { .. } => {
            mixed(&[kind])
        }
        Kind::Zero | Kind::Fixed | Kind::Group | Kind::Part(_) => kind,
        Kind::Each { axes, pad } if to_integer => Kind::Each { axes, pad: pad.growing(f64::round_ties_even) },
        _ if to_integer => mixed(&[kind]),
        _ => kind,
    }
}

/// Whether type `to` has all numbers of type `from`.
fn is_wider(from: ElemRef, to: ElemRef) -> bool {
    from == to
        || match (from, to) {
            (ElemRef::Known(from), ElemRef::Known(to)) => from.class() == to.class() && from.bits() < to.bits(),
            _ => false,
        }
}
