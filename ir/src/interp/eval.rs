//! Expressions: values, the extents of expressions without their own, and scalar values.
//!
//! A view has no extents of its own: it takes those of the other operands. Known extents ([`Machine::known_shape`]) are
//! therefore found first, and passed down to the views ([`Machine::eval`]'s `want`).

use super::numbers::moved;
use super::tile::{Tile, join_shapes, rounds_in_registers};
use super::{Number, arith};
use crate::codes;
use crate::diag::Span;
use crate::entities::{Expr, Value};
use crate::index::{self, Scalar};
use crate::interp::bounds::{Bound, spread_of};
use crate::interp::machine::{Binding, Fail, Machine, fail};
use crate::interp::product::MmaShapes;
use crate::interp::window::{Root, Window};
use crate::kernel::{ExprData, Mma, Range, ValueDef};
use crate::numerics::{FloatFormat, cast, float_format, philox};
use crate::ops::Op;
use crate::types::{Elem, ElemClass, ElemRef};
use std::rc::Rc;

/// Nesting of expressions that is evaluated; the parser allows less.
const MAX_DEPTH: u32 = 200;

/// The value of an expression.
#[derive(Clone, Debug)]
pub(super) enum Val {
    /// A number of index arithmetic.
    Index(i64),
    /// A scalar or tile.
    Tile(Rc<Tile>),
}

impl Val {
    fn tile(tile: Tile) -> Val {
        Val::Tile(Rc::new(tile))
    }

    /// As a tile; an index becomes a scalar that adapts.
    pub(super) fn into_tile(self) -> Rc<Tile> {
        match self {
            Val::Index(x) => Rc::new(Tile::weak(Elem::I64, x)),
            Val::Tile(t) => t,
        }
    }
}

impl Machine<'_> {
    /// The value of `e` as a tile.
    pub(super) fn tile(&mut self, e: Expr, want: Option<&[usize]>) -> Result<Rc<Tile>, Fail> {
        Ok(self.eval(e, want)?.into_tile())
    }

    /// The value of `e` as an index.
    pub(super) fn index(&mut self, e: Expr) -> Result<i64, Fail> {
        // The fill value of a copy applies to moved elements, not to numbers that compute addresses.
        let fill = self.fill.take();
        let found = self.index_unfilled(e);
        self.fill = fill;
        found
    }

    fn index_unfilled(&mut self, e: Expr) -> Result<i64, Fail> {
        if let ExprData::Index(arg) = self.k.exprs[e] {
            let around = std::mem::replace(&mut self.of_index, true);
            let value = self.eval(arg, Some(&[]));
            self.of_index = around;
            return match value? {
                Val::Index(x) => Ok(x),
                Val::Tile(t) => Ok(index::of_value(self.scalar(&t, arg)?.to_i128())),
            };
        }
        match self.eval(e, Some(&[]))? {
            Val::Index(x) => Ok(x),
            Val::Tile(t) => {
                let not_index = || fail(codes::ILL_FORMED, self.span(e), "this is not an index");
                let x = self.scalar(&t, e)?.to_i128();
                let x = i64::try_from(x).ok().filter(|_| t.elem.class() == ElemClass::Int);
                x.ok_or_else(not_index)
            }
        }
    }

    /// The extents and the integers of a tile, which number elements of a window.
    pub(super) fn numbers(&mut self, e: Expr) -> Result<(Vec<usize>, Vec<i64>), Fail> {
        let t = self.tile(e, None)?;
        if t.poison.as_ref().is_some_and(|poison| poison.contains(&true)) {
            return Err(fail(codes::UNWRITTEN, self.span(e), "an index of this tile was never written"));
        }
        (0..t.data.len())
            .map(|i| t.data.get(i).map(|x| index::of_value(x.to_i128())))
            .collect::<Option<Vec<i64>>>()
            .map(|numbers| (t.shape.clone(), numbers))
            .ok_or_else(|| fail(codes::ILL_FORMED, self.span(e), "these are no indices"))
    }

    /// The value of `e` as a truth value.
    pub(super) fn truth(&mut self, e: Expr) -> Result<bool, Fail> {
        let t = self.tile(e, Some(&[]))?;
        Ok(self.scalar(&t, e)?.to_f64() != 0.0)
    }

    fn scalar(&self, t: &Tile, e: Expr) -> Result<Number, Fail> {
        match (t.data.get(0).filter(|_| t.data.len() == 1), &t.poison) {
            (_, Some(p)) if p.contains(&true) => {
                Err(fail(codes::UNWRITTEN, self.span(e), "this depends on an element that was never written"))
            }
            (Some(x), _) => Ok(x),
            _ => Err(fail(codes::ILL_FORMED, self.span(e), "this is a tile where a scalar is needed")),
        }
    }

    /// The value of `e`. Views in it take the extents `want`, if their surroundings do not say.
    pub(super) fn eval(&mut self, e: Expr, want: Option<&[usize]>) -> Result<Val, Fail> {
        if self.depth >= MAX_DEPTH {
            return Err(fail(codes::ILL_FORMED, self.span(e), "this expression is nested too deeply"));
        }
        self.depth += 1;
        let value = self.eval_node(e, want);
        self.depth -= 1;
        value
    }

    fn eval_node(&mut self, e: Expr, want: Option<&[usize]>) -> Result<Val, Fail> {
        let k = self.k;
        let span = self.span(e);
        match &k.exprs[e] {
            ExprData::Int(x) => Ok(Val::Index(*x)),
            ExprData::Float(bits) => Ok(Val::tile(Tile::weak(Elem::F32, f64::from_bits(*bits)))),
            ExprData::Ref(v) => match &self.env[*v] {
                Binding::Index(x) => Ok(Val::Index(*x)),
                Binding::Tile(t) => Ok(Val::Tile(t.clone())),
                Binding::Alias(_) | Binding::Global(_) => self.read(e, want),
                Binding::Channel(_) => Err(self.not_a_value(*v, span, "is a channel: write `.put` or `.get`")),
                Binding::Tuples(_) => Err(self.not_a_value(*v, span, "is a name of tuples: name a component")),
                Binding::Unset => Err(self.not_a_value(*v, span, "has no value here")),
            },
            ExprData::View(_) => self.read(e, want),
            ExprData::Op { op, args } => self.op(e, *op, args, want),
            ExprData::Cast { elem, arg } => {
                let elem = self.elem(*elem, span)?;
                let mut t = self.tile(*arg, want)?;
                self.work(t.data.len(), span)?;
                self.round(Rc::make_mut(&mut t), elem);
                Ok(Val::Tile(t))
            }
            ExprData::Bits { elem, arg } => {
                let elem = self.elem(*elem, span)?;
                let mut t = self.tile(*arg, want)?;
                self.work(t.data.len(), span)?;
                let t = Rc::make_mut(&mut t);
                let own = t.elem;
                self.round(t, own);
                t.read_as(elem);
                Ok(Val::tile(t.clone()))
            }
            ExprData::Round { elem, arg, word } => self.rounded_at_random(e, *elem, [*arg, *word], want),
            ExprData::Index(_) => Ok(Val::Index(self.index(e)?)),
            ExprData::Reduce { op, axis, parts, arg } => {
                let t = self.tile(*arg, None)?;
                self.work(t.data.len(), span)?;
                Ok(Val::tile(self.reduce(*op, (*axis as usize, *parts), &t, span)?))
            }
            ExprData::Scan { op, axis, exclusive, totals, arg } => {
                let t = self.tile(*arg, None)?;
                self.work(t.data.len(), span)?;
                let totals = totals.map(|totals| self.tile(totals.tile, None)).transpose()?;
                Ok(Val::tile(self.scan(*op, (*axis as usize, *exclusive), &t, totals.as_deref(), span)?))
            }
            ExprData::Combine(_) => Err(fail(codes::ILL_FORMED, span, "tuples are combined, and no `let` names them")),
            ExprData::Part { .. } => {
                let part = k.part_of(e).and_then(|(v, index)| match &self.env[v] {
                    Binding::Tuples(tiles) => tiles.get(index).cloned(),
                    _ => None,
                });
                part.map(Val::Tile).ok_or_else(|| fail(codes::ILL_FORMED, span, "this is no component of tuples"))
            }
            ExprData::Transpose(_) if self.window(e)?.is_some_and(|w| matches!(w.root, Root::Global(_))) => {
                self.read(e, want)
            }
            ExprData::Transpose(arg) => {
                let want = want.map(|w| w.iter().rev().copied().collect::<Vec<_>>());
                let t = self.tile(*arg, want.as_deref())?;
                self.work(t.data.len(), span)?;
                Ok(Val::tile(self.transpose(&t, span)?))
            }
            ExprData::Permute { .. } | ExprData::Reshape { .. } => self.rearranged(e, want),
            ExprData::Concat { .. } => {
                Err(fail(codes::ILL_FORMED, span, "concatenated tiles that are not written out"))
            }
            ExprData::Iota { axis, like } => {
                let shape = self.known_shape(*like)?.or_else(|| want.map(<[usize]>::to_vec));
                let shape = shape.ok_or_else(|| self.no_extents(span))?;
                self.iota(*axis as usize, &shape, span).map(Val::tile)
            }
            ExprData::Lookup { table, index } => {
                let at = self.tile(*index, want)?;
                self.work(at.data.len(), span)?;
                self.lookup(*table, &at, span).map(Val::tile)
            }
            ExprData::Mma(m) => {
                let shapes = self.mma_shapes(m, want)?;
                let [a, b] = self.operands(m, &shapes)?;
                let c = self.tile(m.c, shapes.c.as_deref())?;
                self.mma(&a, &b, c, span).map(Val::Tile)
            }
        }
    }

    /// The operands of a product: elements of their type, with or without a name.
    pub(super) fn operands(&mut self, m: &Mma, shapes: &MmaShapes) -> Result<[Rc<Tile>; 2], Fail> {
        let a = self.tile(m.a, shapes.a.as_deref())?;
        let b = self.tile(m.b, shapes.b.as_deref())?;
        Ok([a, b].map(|operand| self.as_elements(operand)))
    }

    /// The value as elements of its type.
    pub(super) fn as_elements(&self, mut tile: Rc<Tile>) -> Rc<Tile> {
        if !tile.weak && !tile.exact && rounds_in_registers(tile.elem) {
            let elem = tile.elem;
            self.round(Rc::make_mut(&mut tile), elem);
        }
        tile
    }

    /// Rounds elements to a type, as a `cast` does and what has a name.
    pub(super) fn round(&self, tile: &mut Tile, elem: Elem) {
        // For formats with fewer bits than f32: sums and other results are rounded to f32 in only one way.
        let narrower = float_format(elem).is_some_and(|to| {
            let wider = |from: FloatFormat| to.mantissa_bits < from.mantissa_bits;
            let loses = !tile.exact || float_format(tile.elem).is_some_and(wider);
            to.mantissa_bits < FloatFormat::F32.mantissa_bits && tile.elem.is_float() && loses
        });
        tile.convert(elem);
        if narrower && self.opts.rerounded && self.opts.accuracy.is_some() {
            tile.rounded_apart();
        }
    }

    fn not_a_value(&self, v: Value, span: Span, why: &str) -> Fail {
        fail(codes::ILL_FORMED, span, format!("`{}` {why}", self.k.values[v].name))
    }

    fn no_extents(&self, span: Span) -> Fail {
        fail(codes::ILL_FORMED, span, "this window has no extents")
    }

    /// Reads a view or a tensor.
    fn read(&mut self, e: Expr, want: Option<&[usize]>) -> Result<Val, Fail> {
        let span = self.span(e);
        let Some(w) = self.window(e)? else {
            return Err(fail(codes::ILL_FORMED, span, "this is not a view"));
        };
        let Some(shape) = self.own_shape(e, &w).or_else(|| want.map(<[usize]>::to_vec)) else {
            return Err(self.no_extents(span));
        };
        let check = self.check.clone();
        self.load(&w, &shape, check.as_deref()).map(Val::tile)
    }

    /// The extents of a window by itself: none for a single element, those of the place for a whole place.
    pub(super) fn own_shape(&self, e: Expr, w: &Window) -> Option<Vec<usize>> {
        if w.axes.is_empty() {
            return Some(Vec::new());
        }
        let whole = match &self.k.exprs[e] {
            ExprData::Ref(_) => true,
            ExprData::View(view) => view.ranges.is_empty(),
            ExprData::Transpose(arg) => {
                let mut shape = self.own_shape(*arg, w)?;
                shape.reverse();
                return Some(shape);
            }
            _ => false,
        };
        let place = self.place(w.root, self.span(e)).ok()?;
        (whole && place.shape.len() == w.axes.len()).then(|| place.shape.clone())
    }

    /// The extents of `e`, unless it is made of views and scalars only.
    pub(super) fn known_shape(&mut self, e: Expr) -> Result<Option<Vec<usize>>, Fail> {
        let k = self.k;
        Ok(match &k.exprs[e] {
            ExprData::Int(_) | ExprData::Float(_) | ExprData::Index(_) => Some(Vec::new()),
            ExprData::Ref(v) => match &self.env[*v] {
                Binding::Index(_) | Binding::Unset | Binding::Channel(_) | Binding::Tuples(_) => Some(Vec::new()),
                Binding::Tile(t) => Some(t.shape.clone()),
                Binding::Alias(w) => w.axes.is_empty().then(Vec::new),
                Binding::Global(g) => self.globals[*g].shape.is_empty().then(Vec::new),
            },
            ExprData::Op { args, .. } => self.known_join(args, self.span(e))?,
            ExprData::Cast { arg, .. } | ExprData::Bits { arg, .. } | ExprData::Lookup { index: arg, .. } => {
                self.known_shape(*arg)?
            }
            ExprData::Round { arg, word, .. } => self.known_join(&[*arg, *word], self.span(e))?,
            ExprData::Iota { like: arg, .. } | ExprData::Scan { arg, .. } => self.known_shape(*arg)?,
            ExprData::Reduce { axis, parts, arg, .. } => self.known_shape(*arg)?.map(|mut shape| {
                shape.iter_mut().skip(*axis as usize).take(1).for_each(|n| *n = 1 << parts.count_ones());
                shape
            }),
            ExprData::Part { .. } => k.part_of(e).and_then(|(v, index)| match &self.env[v] {
                Binding::Tuples(tiles) => tiles.get(index).map(|t| t.shape.clone()),
                _ => None,
            }),
            ExprData::Combine(_) | ExprData::Concat { .. } => None,
            ExprData::Reshape { shape, .. } => Some(self.shape(shape, self.span(e))?),
            ExprData::Transpose(arg) => self.known_shape(*arg)?.map(|mut shape| {
                shape.reverse();
                shape
            }),
            ExprData::Permute { arg, order } => {
                self.known_shape(*arg)?.map(|shape| order.iter().map(|&axis| shape[axis as usize]).collect())
            }
            ExprData::Mma(m) => self.mma_shapes(m, None)?.c,
            ExprData::View(view) => {
                if view.ranges.is_empty() {
                    match self.window(e)? {
                        Some(w) => self.own_shape(e, &w),
                        None => None,
                    }
                } else {
                    view.ranges.iter().all(|r| matches!(r, Range::At(_))).then(Vec::new)
                }
            }
        })
    }

    /// The joint extents of the operands that have extents; `None` if only scalars have, and some operand is a view.
    fn known_join(&mut self, args: &[Expr], span: Span) -> Result<Option<Vec<usize>>, Fail> {
        let mut known: Vec<usize> = Vec::new();
        let mut all = true;
        for &arg in args {
            match self.known_shape(arg)? {
                Some(shape) => known = self.join(&known, &shape, span)?,
                None => all = false,
            }
        }
        Ok((all || !known.is_empty()).then_some(known))
    }

    pub(super) fn join(&self, a: &[usize], b: &[usize], span: Span) -> Result<Vec<usize>, Fail> {
        join_shapes(a, b).ok_or_else(|| {
            fail(codes::ILL_FORMED, span, format!("tiles of extents {a:?} and {b:?} do not go together"))
        })
    }

    fn op(&mut self, e: Expr, op: Op, args: &[Expr], want: Option<&[usize]>) -> Result<Val, Fail> {
        let span = self.span(e);
        if args.len() != op.arity() {
            return Err(fail(codes::ILL_FORMED, span, "wrong number of operands"));
        }
        let known = self.known_join(args, span)?;
        let around = around(known.as_deref(), want);
        let inner = around.as_deref();
        let scalar = known.as_ref().is_some_and(|shape| shape.is_empty());
        // For scalars, unused operands are not evaluated, since they could fail.
        match (op, args) {
            (Op::Select, &[c, a, b]) if scalar => {
                let chosen = if self.truth(c)? { a } else { b };
                return self.eval(chosen, inner);
            }
            (Op::And, &[a, b]) if scalar => {
                let both = self.truth(a)? && self.truth(b)?;
                return Ok(Val::tile(Tile::truth(both)));
            }
            (Op::Or, &[a, b]) if scalar => {
                let either = self.truth(a)? || self.truth(b)?;
                return Ok(Val::tile(Tile::truth(either)));
            }
            _ => {}
        }
        let mut vals = Vec::with_capacity(args.len());
        for &arg in args {
            vals.push(self.eval(arg, inner)?);
        }
        if op == Op::Random {
            return self.random(vals, span);
        }
        match vals[..] {
            [Val::Index(a)] => return self.index_op(op, a, 0, span),
            [Val::Index(a), Val::Index(b)] => return self.index_op(op, a, b, span),
            _ => {}
        }
        let mut tiles: Vec<Rc<Tile>> = vals.into_iter().map(Val::into_tile).collect();
        let mut shape = Vec::new();
        for t in &tiles {
            shape = self.join(&shape, &t.shape, span)?;
        }
        let n = self.count(&shape, span)?;
        self.work(n, span)?;
        let operands = if op == Op::Select { &tiles[1..] } else { &tiles[..] };
        let mut elem = arith::common_elem(operands);
        let mut weak = operands.iter().all(|t| t.weak);
        if weak && op == Op::Select && !shape.is_empty() {
            // A choice by a tile of conditions is a tile, of 32 bits.
            (weak, elem) = (false, if elem.is_float() { Elem::F32 } else { Elem::I32 });
        }
        for t in &mut tiles {
            if t.weak && t.elem != Elem::Bool {
                let t = Rc::make_mut(t);
                if weak {
                    t.data = std::mem::take(&mut t.data).to_representation(elem);
                    t.elem = elem;
                } else {
                    t.adopt(elem);
                }
            } else if elem.is_wide() && t.elem.class() == ElemClass::Int && t.elem != elem {
                let t = Rc::make_mut(t);
                t.data = std::mem::take(&mut t.data).to_representation(elem);
                t.elem = elem;
            }
            if t.shape != shape {
                *t = Rc::new(t.broadcast(&shape));
            }
        }
        let tiles: Vec<&Tile> = tiles.iter().map(|t| &**t).collect();
        let out = arith::elementwise(op, elem, shape, &tiles, self.opts.accuracy.is_some());
        let mut out = out.map_err(|why| fail(codes::INDEX_ARITHMETIC, span, why.to_string()))?;
        out.weak = weak && op != Op::Select && out.elem != Elem::Bool;
        Ok(Val::tile(out))
    }

    /// Random words of sequences; seeds and positions are 64-bit numbers.
    fn random(&mut self, operands: Vec<Val>, span: Span) -> Result<Val, Fail> {
        let mut tiles: Vec<Tile> = operands.into_iter().map(|v| Tile::clone(&v.into_tile())).collect();
        let shape = tiles.iter().try_fold(Vec::new(), |shape, t| self.join(&shape, &t.shape, span))?;
        let n = self.count(&shape, span)?;
        self.work(n, span)?;
        for t in &mut tiles {
            t.convert(Elem::U64);
            *t = t.broadcast(&shape);
        }
        let data = tiles[0].integers().zip(tiles[1].integers());
        let data: Vec<f64> = data.map(|(seed, place)| f64::from(philox::random(seed as u64, place as u64))).collect();
        let mut out = Tile::new(Elem::U32, shape, data.into());
        out.exact = true;
        out.poison = arith::poison(Op::Random, &tiles.iter().collect::<Vec<_>>());
        if tiles.iter().any(|t| t.bound.is_some()) {
            let errors: Vec<_> = tiles.iter().filter_map(Tile::errors).collect();
            let off = |i: usize| if errors.iter().all(|b| b.error[i] == 0.0) { 0.0 } else { f64::INFINITY };
            out.bound = Bound::of((0..n).map(off).collect(), errors.iter().any(|b| b.drowned));
        }
        Ok(Val::tile(out))
    }

    /// Numbers rounded up or down as words say.
    fn rounded_at_random(
        &mut self,
        e: Expr,
        elem: ElemRef,
        args: [Expr; 2],
        want: Option<&[usize]>,
    ) -> Result<Val, Fail> {
        let span = self.span(e);
        let elem = self.elem(elem, span)?;
        let format = float_format(elem).ok_or_else(|| fail(codes::ILL_FORMED, span, "not a type of floats"))?;
        let known = self.known_join(&args, span)?;
        let around = around(known.as_deref(), want);
        let inner = around.as_deref();
        let mut x = Tile::clone(&self.eval(args[0], inner)?.into_tile());
        let mut words = Tile::clone(&self.eval(args[1], inner)?.into_tile());
        let shape = self.join(&x.shape, &words.shape, span)?;
        let n = self.count(&shape, span)?;
        self.work(n, span)?;
        if x.weak {
            x.adopt(Elem::F32);
        }
        words.convert(Elem::U32);
        let (x, words) = (x.broadcast(&shape), words.broadcast(&shape));
        let round = |x: f64, word: i128| cast::to_float(elem, format.round_at_random(x, word as u32));
        let of_number = |x: &f64| f64::from(*x as f32);
        let numbers: Vec<f64> = x.data.floats().iter().map(of_number).collect();
        let data: Vec<f64> = numbers.iter().zip(words.integers()).map(|(&x, word)| round(x, word)).collect();
        let mut out = Tile::new(elem, shape, data.into());
        out.exact = true;
        out.poison = arith::poison(Op::Random, &[&x, &words]);
        if x.bound.is_some() || words.bound.is_some() {
            let none = || Bound::none(n);
            let (of_x, of_words) = (x.errors().unwrap_or_else(none), words.errors().unwrap_or_else(none));
            let within = words.integers().enumerate().map(|(i, word)| match of_words.error[i] {
                0.0 => spread_of(numbers[i], of_x.error[i], |x| round(x, word)).1,
                _ => f64::INFINITY,
            });
            out.bound = Bound::of(within.collect(), of_x.drowned || of_words.drowned);
        }
        Ok(Val::tile(out))
    }

    fn index_op(&self, op: Op, a: i64, b: i64, span: Span) -> Result<Val, Fail> {
        let value = match op {
            Op::Neg | Op::Abs | Op::BitNot | Op::Popcount => index::unary(op, a),
            _ if op.is_function() => {
                let x = Tile::weak(Elem::F32, a as f64);
                let out = arith::elementwise(op, Elem::F32, Vec::new(), &[&x], self.opts.accuracy.is_some());
                let mut out = out.map_err(|why| fail(codes::INDEX_ARITHMETIC, span, why.to_string()))?;
                out.weak = true;
                return Ok(Val::tile(out));
            }
            Op::And | Op::Or | Op::Not | Op::Select => {
                return Err(fail(codes::ILL_FORMED, span, "an index is no truth value"));
            }
            _ => index::binary(op, a, b),
        };
        match value {
            Ok(Scalar::Int(x)) => Ok(Val::Index(x)),
            Ok(Scalar::Truth(x)) => Ok(Val::tile(Tile::truth(x))),
            Err(why) => Err(fail(codes::INDEX_ARITHMETIC, span, why.to_string())),
        }
    }

    /// The elements of a tile in other places: in another shape, or with the dimensions in another order.
    fn rearranged(&mut self, e: Expr, want: Option<&[usize]>) -> Result<Val, Fail> {
        let (k, span) = (self.k, self.span(e));
        match &k.exprs[e] {
            ExprData::Permute { arg, order } => {
                let own = want.filter(|want| want.len() == order.len()).map(|want| {
                    let mut own = vec![0; want.len()];
                    order.iter().zip(want).for_each(|(&axis, &n)| own[axis as usize] = n);
                    own
                });
                let t = self.tile(*arg, own.as_deref())?;
                self.work(t.data.len(), span)?;
                Ok(Val::tile(super::combine::permuted(&t, order)))
            }
            ExprData::Reshape { arg, shape, numbered: Some(numbered) } => {
                let own = self.known_shape(*arg)?;
                let t = self.tile(*arg, own.as_deref())?;
                let shape = self.shape(shape, span)?;
                self.work(self.count(&shape, span)?, span)?;
                Ok(Val::tile(super::combine::numbered(&t, shape, numbered)))
            }
            ExprData::Reshape { arg, shape, numbered: None } => {
                let t = self.tile(*arg, None)?;
                self.work(t.data.len(), span)?;
                let shape = self.shape(shape, span)?;
                if shape.iter().product::<usize>() != t.data.len() {
                    return Err(fail(codes::ILL_FORMED, span, "a tile of another number of elements"));
                }
                Ok(Val::tile(Tile { shape, ..Tile::clone(&t) }))
            }
            _ => Err(fail(codes::ILL_FORMED, span, "no tile in other places")),
        }
    }

    fn transpose(&self, t: &Tile, span: Span) -> Result<Tile, Fail> {
        let [m, n] = t.shape[..] else {
            return Err(fail(codes::ILL_FORMED, span, "only a tile of two dimensions can be transposed"));
        };
        Ok(Tile {
            poison: t.poison.as_ref().map(|p| flip(p, m, n)),
            bound: t.moved_bound(|e| flip(e, m, n)),
            exact: t.exact,
            ..Tile::new(t.elem, vec![n, m], moved!(&t.data, data => flip(data, m, n)))
        })
    }

    /// Elements of a table; what is outside of it is zero.
    fn lookup(&mut self, table: Value, at: &Tile, span: Span) -> Result<Tile, Fail> {
        let ValueDef::Table(ty) = &self.k.values[table].def else {
            return Err(fail(codes::ILL_FORMED, span, "this is no table"));
        };
        let elem = self.elem(ty.elem, span)?;
        let element = |i: i128| usize::try_from(i).ok().and_then(|i| ty.values.get(i)?.value(elem)).unwrap_or(0.0);
        let data: Vec<f64> = at.integers().map(element).collect();
        Ok(Tile { exact: true, poison: at.poison.clone(), ..Tile::new(elem, at.shape.clone(), data.into()) })
    }

    fn iota(&mut self, axis: usize, shape: &[usize], span: Span) -> Result<Tile, Fail> {
        let Some(&extent) = shape.get(axis) else {
            return Err(fail(codes::ILL_FORMED, span, format!("there is no axis {axis} to count along")));
        };
        let n = self.count(shape, span)?;
        self.work(n, span)?;
        let inner: usize = shape[axis + 1..].iter().product();
        let data: Vec<f64> = (0..n).map(|i| (i / inner % extent) as f64).collect();
        Ok(Tile { exact: true, ..Tile::new(Elem::I32, shape.to_vec(), data.into()) })
    }
}

/// The transposed `m x n` matrix.
fn flip<T: Copy>(data: &[T], m: usize, n: usize) -> Vec<T> {
    (0..n).flat_map(|j| (0..m).map(move |i| data[i * n + j])).collect()
}

/// The extents that views in an operation take: those of the other operands; an extent of 1 is replaced by the wanted
/// one.
fn around(known: Option<&[usize]>, want: Option<&[usize]>) -> Option<Vec<usize>> {
    match (known.filter(|shape| !shape.is_empty()), want) {
        (Some(own), Some(want)) => Some(join_shapes(own, want).unwrap_or_else(|| own.to_vec())),
        (own, want) => own.or(want).map(<[usize]>::to_vec),
    }
}
