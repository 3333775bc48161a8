//! What expressions are to a loop over tiles.

use super::kind::{Kind, Pad, elementwise, extreme, function, matrix_product, mixed};
use super::scaled::selected;
use super::tiles::{Tiles, literal, pad_of};
use tilec_ir::entities::Expr;
use tilec_ir::kernel::{ExprData, Kernel, ValueDef};
use tilec_ir::loop_ends::{loop_variable, meaning};
use tilec_ir::ops::{Op, ReduceOp};
use tilec_ir::types::ElemRef;
use tilec_ir::typing::{Extent, ResolvedView, Type, ViewDim, resolve_view, same_product, type_of};

impl Tiles<'_> {
    pub(super) fn of(&mut self, e: Expr) -> Kind {
        let k = self.k;
        if let Some(view) =
            resolve_view(k, e).filter(|view| view.space(k).has_bounds() || k.tile_ty(view.base).is_some())
        {
            return self.window(&view);
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
            ExprData::Op { op, args } => {
                let kind = self.operator(e, *op, args);
                self.beside(kind, args)
            }
            ExprData::Cast { elem, arg } => {
                let kind = self.of(*arg);
                let wider = type_of(k, *arg).ok().and_then(|t| t.elem()).is_some_and(|from| is_wider(from, *elem));
                if wider { kind } else { rounded(kind) }
            }
            ExprData::Reduce { op, axis, parts: 0, arg } => {
                let kind = self.of(*arg);
                self.reduced(*op, *axis, kind)
            }
            ExprData::Reduce { arg, .. } => mixed(&[self.of(*arg)]),
            ExprData::Transpose(arg) => self.of(*arg).transposed(),
            ExprData::Iota { axis, like } => match type_of(k, *like) {
                Ok(Type::Tile(tile)) if tile.shape.get(*axis as usize).is_some_and(|x| self.is_of_tile(x)) => {
                    Kind::Number { axis: *axis, negative: false }
                }
                _ => Kind::Fixed,
            },
            ExprData::Lookup { index, .. } => elementwise(&[self.of(*index)], Pad::Finite),
            ExprData::Mma(m) => {
                let of_rank_two = type_of(k, m.c).is_ok_and(|t| t.rank() == 2);
                let (a, b, c) = (self.of(m.a), self.of(m.b), self.of(m.c));
                let product = matrix_product(a, b, self.padded);
                let product = if of_rank_two { product } else { mixed(&[product]) };
                // Extents that differ are for the types to say.
                let product = if self.fits(m.a, m.b) { product } else { Kind::Part(ReduceOp::Sum) };
                self.sum(product, c)
            }
            ExprData::Index(arg) => match self.of(*arg) {
                Kind::Zero | Kind::Fixed => Kind::Fixed,
                other => mixed(&[other]),
            },
            ExprData::View(_) => mixed(&k.children(e).into_iter().map(|child| self.of(child)).collect::<Vec<_>>()),
        }
    }

    /// Whether a product's operands are the same along the reduction.
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

    /// Whether an extent is that of a tile.
    pub(super) fn is_of_tile(&self, extent: &Extent) -> bool {
        let k = self.k;
        match *extent {
            Extent::Sym(e) => same_product(k, meaning(k, e), meaning(k, self.size)),
            Extent::Known(_) => false,
        }
    }

    /// A value for each position is combined only with what has one number along the tile, or one for each position, too.
    fn beside(&mut self, kind: Kind, args: &[Expr]) -> Kind {
        let (Kind::Each { axes, .. } | Kind::Share { axes, .. }) = kind else { return kind };
        let repeated = args.iter().any(|&e| self.along(e) & axes != 0 && self.of(e) == Kind::Fixed);
        if repeated { Kind::Other { carried: kind.is_carried() } } else { kind }
    }

    /// Along which dimensions, of those that are as long as a tile, elements differ.
    fn along(&self, e: Expr) -> u32 {
        let k = self.k;
        match &k.exprs[meaning(k, e)] {
            ExprData::Iota { axis, .. } => 1 << axis,
            ExprData::Op { args, .. } => args.iter().fold(0, |all, &arg| all | self.along(arg)),
            ExprData::Cast { arg, .. } => self.along(*arg),
            _ => match type_of(k, e) {
                Ok(Type::Tile(tile)) => {
                    let of_tile = (0..tile.shape.len()).filter(|&d| self.is_of_tile(&tile.shape[d]));
                    of_tile.fold(0, |all, d| all | 1 << d)
                }
                _ => 0,
            },
        }
    }

    fn operator(&mut self, e: Expr, op: Op, args: &[Expr]) -> Kind {
        let k = self.k;
        let kinds: Vec<Kind> = args.iter().map(|&e| self.of(e)).collect();
        match (op, kinds.as_slice(), args) {
            (Op::Add, &[a, b], _) => self.sum(a, b),
            (Op::Sub, &[a, b], _) => {
                let b = self.negated(b);
                self.sum(a, b)
            }
            (Op::Mul, _, &[a, b])
                if self.numbers && [(a, b), (b, a)].into_iter().any(|(t, size)| self.begins(t, size)) =>
            {
                Kind::Begin { negative: false }
            }
            (Op::Mul, &[a, b], &[x, y]) => self.product([a, b], [x, y]),
            // Integers are rounded.
            (Op::Div, &[Kind::Part(_), _], &[x, _]) if !is_float(k, x) => mixed(&kinds),
            (Op::Div, &[a, b], &[_, y]) => self.quotient(a, b, y),
            (Op::Max, &[a, b], _) => extreme(ReduceOp::Maximum, a, b, e),
            (Op::Min, &[a, b], _) => extreme(ReduceOp::Minimum, a, b, e),
            (Op::Fma, &[a, b, c], &[x, y, _]) => {
                let product = self.product([a, b], [x, y]);
                self.sum(product, c)
            }
            (Op::Neg, &[a], _) => self.negated(a),
            (Op::Exp | Op::Exp2, &[a], _) => self.exponential(op, a),
            (Op::Lt | Op::Le | Op::Gt | Op::Ge | Op::Eq | Op::Ne, &[a, b], &[x, y]) if self.guards([a, b], [x, y]) => {
                Kind::Guard
            }
            (Op::Lt | Op::Le, &[a, b], _) | (Op::Gt | Op::Ge, &[b, a], _) => elementwise(&[a, b], below(a, b)),
            (Op::And, &[a, b], _) => {
                elementwise(&[a, b], if a.pad().is_zero() || b.pad().is_zero() { Pad::Zero } else { Pad::Finite })
            }
            (Op::Select, &[c, a, b], _) if c.is_fixed() => a.join(b),
            (Op::Select, &[c, a, b], &[_, _, other]) => selected(c, a, b).unwrap_or_else(|| {
                let behind = if b == Kind::Fixed { literal(k, other).map_or(Pad::Finite, pad_of) } else { b.pad() };
                let pad = if c.pad().is_zero() { behind } else { a.join(b).pad() };
                elementwise(&[c, a, b], pad)
            }),
            (_, &[a], _) if op.is_function() || op == Op::Abs => function(op, a),
            _ => elementwise(&kinds, Pad::Finite),
        }
    }

    /// Whether a product is where the tile begins.
    fn begins(&self, number: Expr, size: Expr) -> bool {
        let k = self.k;
        loop_variable(k, number) == Some(self.var) && same_product(k, meaning(k, size), meaning(k, self.size))
    }

    fn reduced(&self, op: ReduceOp, axis: u32, kind: Kind) -> Kind {
        match kind {
            Kind::Each { axes, pad } if axes == 1 << axis => {
                if !self.padded || pad.is_neutral(op) {
                    Kind::Part(op)
                } else {
                    mixed(&[kind])
                }
            }
            Kind::Each { axes, pad } if axes >> axis & 1 == 0 => {
                let pad = if pad.is_zero() || pad == Pad::Any { pad } else { Pad::Finite };
                Kind::Each { axes, pad }
            }
            Kind::Share { axes, pad, scale } if axes == 1 << axis && op == ReduceOp::Sum => {
                if !self.padded || pad.is_zero() {
                    Kind::Share { axes: 0, pad: Pad::Zero, scale }
                } else {
                    mixed(&[kind])
                }
            }
            Kind::Zero | Kind::Fixed => kind,
            Kind::Part(own) if own == op => kind,
            _ => mixed(&[kind]),
        }
    }

    /// Whether a window along a tile is all of it, or what a loop in the loop that goes over all of it has in an iteration.
    fn is_slice(&self, dim: &ViewDim) -> bool {
        let ViewDim::From { starts, end: None } = dim else { return false };
        let whole = |&e: &Expr| loop_variable(self.k, e).is_some_and(|v| self.over_tile.contains(&v));
        starts.is_empty() || matches!(starts.as_slice(), [start] if whole(start))
    }

    fn window(&mut self, view: &ResolvedView) -> Kind {
        let k = self.k;
        let base = match k.values[view.base].def {
            ValueDef::Tensor(_) => Kind::Fixed,
            _ => self.kinds.get(&view.base).copied().unwrap_or(Kind::Fixed),
        };
        if is_whole(view) {
            return if view.transposed { base.transposed() } else { base };
        }
        let kept = view.kept();
        let mut axes = 0;
        for (d, dim) in view.dims.iter().enumerate() {
            let starts: Vec<Kind> = dim.starts().iter().map(|&e| self.of(e)).collect();
            let start = starts.into_iter().fold(Kind::Zero, |all, kind| self.sum(all, kind));
            let end = match dim {
                ViewDim::From { end: Some(end), .. } => self.of(*end),
                _ => Kind::Zero,
            };
            match (start, kept.iter().position(|&at| at == d)) {
                _ if !end.is_fixed() => return mixed(&[start, end, base]),
                (Kind::Zero | Kind::Fixed, _) => {}
                (Kind::Begin { negative: false }, Some(at)) => axes |= 1 << at,
                _ => return mixed(&[start, base]),
            }
        }
        match base {
            Kind::Fixed if axes == 0 && self.stored.contains(&view.base) => Kind::Other { carried: true },
            Kind::Fixed if axes == 0 => base,
            Kind::Fixed => Kind::Each { axes, pad: Pad::Zero },
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

/// What `a < b` is behind the end: a bound of positions from above, such as the end or a row's own position, is taken for a mask.
fn below(a: Kind, b: Kind) -> Pad {
    let other = |kind: Kind| !matches!(kind.pad(), Pad::Behind | Pad::Before);
    if a.pad() == Pad::Behind && other(b) || b.pad() == Pad::Before && other(a) { Pad::Zero } else { Pad::Finite }
}

fn is_float(k: &Kernel, e: Expr) -> bool {
    matches!(type_of(k, e).ok().and_then(|t| t.elem()), Some(ElemRef::Known(elem)) if elem.is_float())
}

/// What a part of a sum is once it is rounded: no part of the sum. Extremes are rounded as well before as after.
pub(super) fn rounded(kind: Kind) -> Kind {
    match kind {
        Kind::Part(ReduceOp::Sum) | Kind::Old(_) | Kind::Grown(..) | Kind::Scaled(..) => mixed(&[kind]),
        _ => kind,
    }
}

/// Whether every element of type `from` is one of type `to`.
pub(super) fn is_wider(from: ElemRef, to: ElemRef) -> bool {
    from == to
        || match (from, to) {
            (ElemRef::Known(from), ElemRef::Known(to)) => from.class() == to.class() && from.bits() < to.bits(),
            _ => false,
        }
}
