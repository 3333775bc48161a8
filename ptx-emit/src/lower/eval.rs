//! Expressions: indices, conditions, and elements of tiles.
//!
//! The three are in one file because they call each other: an index may be a selection by a condition, a condition
//! compares numbers, and an element may be an index.

use super::arithmetic::compare_op;
use super::dims::Dims;
use super::operands::{Operands, repeated_elements};
use super::position_compare::{Counted, common, shared_literal};
use super::random::Place;
use super::ranged_ints::{Int, Repr, fits32};
use super::scope::{Kind, Scope};
use super::state::Lower;
use super::tile::{Tile, compute_class, is_unsigned};
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;
use tilec_ir::diag::Reported;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ExprData, Kernel, ValueDef};
use tilec_ir::layout::RegLayout;
use tilec_ir::names::Parts;
use tilec_ir::numerics::{cast, float_format};
use tilec_ir::ops::{Domain, Op};
use tilec_ir::types::{Elem, ElemRef};
use tilec_ir::typing::{Type, fixed_shape, let_init, scalar_shape, type_of};

/// Maximum number of terms of a number that is recomputed at each use. Longer ones are kept in registers.
const POSITION: u64 = 64;

/// Whether a number consists only of indices and positions in a tile, so that it may be recomputed at each use.
fn is_position(k: &Kernel, e: Expr) -> bool {
    let mut parts = Parts::of(k, e);
    while let Some(e) = parts.take() {
        match &k.exprs[e] {
            ExprData::Iota { .. } | ExprData::Int(_) => {}
            ExprData::Cast { .. } | ExprData::Op { op: Op::Add | Op::Sub | Op::Mul, .. } => parts.inside(e),
            ExprData::Ref(v) => match &k.values[*v].def {
                ValueDef::Let => parts.named(*v),
                ValueDef::Size | ValueDef::Stride | ValueDef::Grid | ValueDef::Loop => {}
                _ => return false,
            },
            _ => return false,
        }
    }
    k.unfolded(e, |_| true) <= POSITION
}

impl Lower<'_> {
    /// The elements of `e` in `class`. They are computed in the class of their own type, and then widened if `class` is
    /// wider.
    pub(super) fn eval(
        &mut self,
        e: Expr,
        operands: &Operands,
        group: &[usize],
        class: Class,
    ) -> Result<Vec<Reg>, Reported> {
        let wide = matches!(class, Class::B64 | Class::F64);
        // An expression of literals has no type of its own and is computed in the class that the other operand needs.
        if wide
            && let Kind::Number(own @ (Class::B32 | Class::F32)) = self.kind_of(e)?
            && let Some(elem) = self.elem_of_expr(e)
        {
            let xs = self.eval_as(e, operands, group, own)?;
            return Ok(xs.into_iter().map(|x| self.widened(x, elem, class)).collect());
        }
        self.eval_as(e, operands, group, class)
    }

    /// The elements of `e`, computed in `class` throughout.
    fn eval_as(&mut self, e: Expr, operands: &Operands, group: &[usize], class: Class) -> Result<Vec<Reg>, Reported> {
        if let Some((_, regs)) = operands.loaded.iter().find(|(x, _)| *x == e) {
            return Ok(operands.of_group(regs, group).into_iter().map(|r| self.convert(r, class)).collect());
        }
        if let Some((_, tile)) = operands.tiles.iter().find(|(x, _)| *x == e) {
            return Ok(group
                .iter()
                .map(|&v| {
                    let x = self.get(tile, v);
                    self.convert(x, class)
                })
                .collect());
        }
        match self.k.exprs[e].clone() {
            ExprData::Int(_) | ExprData::Index(_) => self.eval_index(e, group, class),
            ExprData::Float(bits) => Ok(vec![self.literal(f64::from_bits(bits), class); group.len()]),
            ExprData::Ref(v) => self.eval_ref(e, v, operands, group, class),
            ExprData::Cast { elem: ElemRef::Known(elem), arg } => {
                // An index is evaluated directly in the class of the cast's result, which holds it.
                let inner = match self.kind_of(arg)? {
                    Kind::Index => compute_class(elem),
                    Kind::Number(class) => class,
                };
                let xs = self.eval(arg, operands, group, inner)?;
                let from = self.elem_of_expr(arg);
                let xs = self.rounded(e, xs, (from, elem))?;
                Ok(xs.into_iter().map(|x| self.convert(x, class)).collect())
            }
            ExprData::Bits { elem: ElemRef::Known(elem), arg } => {
                let own = self.class_of_expr(arg)?;
                let xs = self.eval(arg, operands, group, own)?;
                let from = self.elem_of_expr(arg).expect("bug: what has bits has a type, which is verified");
                let raw = self.stored_form(e, xs, from)?;
                let xs: Vec<Reg> = raw.into_iter().map(|raw| self.read_as(raw, (from, elem))).collect();
                Ok(xs.into_iter().map(|x| self.convert(x, class)).collect())
            }
            ExprData::Round { elem: ElemRef::Known(elem), arg, word } => {
                let xs = self.eval(arg, operands, group, Class::F32)?;
                let words = self.eval(word, operands, group, Class::B32)?;
                let format = float_format(elem).expect("bug: it makes floats, which is verified");
                let xs = xs.into_iter().zip(words).map(|(x, word)| self.round_at_random(x, word, &format)).collect();
                let xs = self.rounded(e, xs, (Some(Elem::F32), elem))?;
                Ok(xs.into_iter().map(|x| self.convert(x, class)).collect())
            }
            ExprData::Iota { axis, .. } => {
                let mut out = Vec::new();
                for &v in group {
                    let index = match self.counts_one(e) {
                        true => Int::constant(0),
                        false => self.coordinate(&operands.scope, axis as usize, v),
                    };
                    let r = self.in32(index);
                    out.push(self.convert(r, class));
                }
                Ok(out)
            }
            ExprData::Lookup { table, index } => {
                let own = match self.kind_of(index)? {
                    Kind::Index => Class::B32,
                    Kind::Number(class) => class,
                };
                let at = self.eval(index, operands, group, own)?;
                let of = self.elem_of_expr(index);
                let xs = at.into_iter().map(|at| self.element(table, at, of)).collect::<Vec<_>>();
                Ok(xs.into_iter().map(|x| self.convert(x, class)).collect())
            }
            ExprData::Op { op, args } => match op.domain() {
                Domain::Select => {
                    let conds = self.eval_bool(args[0], operands, group)?;
                    let (a, b) =
                        (self.eval(args[1], operands, group, class)?, self.eval(args[2], operands, group, class)?);
                    Ok((0..group.len()).map(|i| self.choose(conds[i], a[i], b[i])).collect())
                }
                Domain::Numeric | Domain::Integer | Domain::Float => {
                    self.eval_repeated(e, (op, &args), operands, group, class)
                }
                Domain::Compare | Domain::Logic => Err(self.unsupported(e, "a truth value used as a number")),
            },
            ExprData::Cast { .. } | ExprData::Bits { .. } | ExprData::Round { .. } => {
                Err(self.unsupported(e, "this cast"))
            }
            ExprData::Reduce { .. } | ExprData::Scan { .. } => self.eval_reduced(e, operands, group, class),
            ExprData::Part { .. } => {
                let (v, index) = self.k.part_of(e).expect("bug: a component is of tuples, which is verified");
                let tile = self.tuples[v][index].clone();
                self.eval_tile(e, (v, &tile), operands, group, class)
            }
            ExprData::Combine(_) => unreachable!("bug: tuples are named, which is verified"),
            ExprData::Transpose(_) => Err(self.unsupported(e, "transposed register tiles")),
            ExprData::Permute { .. } | ExprData::Reshape { .. } | ExprData::Concat { .. } => {
                unreachable!("bug: it stands in a copy by itself, which is verified")
            }
            ExprData::Mma(_) => Err(self.unsupported(e, "a product inside an expression")),
            ExprData::View(_) => match self.elements[e] {
                Some(r) => Ok(vec![self.convert(r, class); group.len()]),
                None => Err(self.unsupported(e, "this window")),
            },
        }
    }

    /// A numeric operation; subexpressions that are equal for several elements are computed once.
    fn eval_repeated(
        &mut self,
        e: Expr,
        (op, args): (Op, &[Expr]),
        operands: &Operands,
        group: &[usize],
        class: Class,
    ) -> Result<Vec<Reg>, Reported> {
        let places = operands.repeated.borrow_mut().places(self.k, e, &operands.scope, group);
        let Some(places) = places else { return self.eval_numeric(e, (op, args), operands, group, class) };
        let known = |place: u64| operands.repeated.borrow().get(e, place, class);
        let mut missing: Vec<(u64, usize)> = Vec::new();
        for (&place, &v) in places.iter().zip(group) {
            if known(place).is_none() && missing.iter().all(|(p, _)| *p != place) {
                missing.push((place, v));
            }
        }
        let elements: Vec<usize> = missing.iter().map(|(_, v)| *v).collect();
        if !elements.is_empty() {
            let regs = self.eval_numeric(e, (op, args), operands, &elements, class)?;
            for ((place, _), reg) in missing.into_iter().zip(regs) {
                operands.repeated.borrow_mut().set(e, place, class, reg);
            }
        }
        let found: Option<Vec<Reg>> = places.into_iter().map(known).collect();
        Ok(found.unwrap_or_else(|| panic!("bug: a part of an expression was computed at no place")))
    }

    fn eval_numeric(
        &mut self,
        e: Expr,
        (op, args): (Op, &[Expr]),
        operands: &Operands,
        group: &[usize],
        class: Class,
    ) -> Result<Vec<Reg>, Reported> {
        if self.kind_of(e)? == Kind::Index {
            return self.eval_index(e, group, class);
        }
        if let (Op::Random, &[seed, place]) = (op, args) {
            let seeds = self.eval_wide(seed, operands, group)?;
            let places = self.places(place, operands, group)?;
            let words: Vec<Reg> =
                seeds.into_iter().zip(places).map(|(seed, place)| self.random_word(seed, place)).collect();
            return Ok(words.into_iter().map(|x| self.widened(x, Elem::U32, class)).collect());
        }
        let mut parts = Vec::new();
        for &a in args {
            parts.push(self.eval(a, operands, group, class)?);
        }
        let elem = self.elem_of_expr(e);
        let unsigned = elem.is_some_and(|elem| is_unsigned(elem, class));
        let mut out = Vec::new();
        for i in 0..group.len() {
            let xs: Vec<Reg> = parts.iter().map(|p| p[i]).collect();
            if unsigned && op == Op::Abs {
                out.push(xs[0]);
                continue;
            }
            if let Some(elem) = elem
                && let Some(r) = self.integer(op, elem, args, &xs)
            {
                out.push(r);
                continue;
            }
            match self.arithmetic(op, (class, unsigned), &xs) {
                Some(r) => out.push(r),
                None => return Err(self.unsupported(e, "this operator on elements of this type")),
            }
        }
        Ok(out)
    }

    /// Integers widened to 64 bits, in registers that do not change: what is computed from equal ones is shared.
    fn eval_wide(&mut self, e: Expr, operands: &Operands, group: &[usize]) -> Result<Vec<Reg>, Reported> {
        let class = match self.kind_of(e)? {
            Kind::Index => return self.eval_index(e, group, Class::B64),
            Kind::Number(class) => class,
        };
        let elem = self.elem_of_expr(e).expect("bug: a whole number has a type, which is verified");
        // A scalar is one value for all elements.
        let read = if scalar_shape(self.k, e).is_some() { &group[..group.len().min(1)] } else { group };
        let mut fixed: Vec<(Reg, Reg)> = Vec::new();
        for x in self.eval(e, operands, read, class)? {
            let copied = match fixed.iter().find(|(own, _)| *own == x) {
                Some(&(_, copied)) => copied,
                None => self.emit.immutable_copy(x),
            };
            fixed.push((x, copied));
        }
        let xs: Vec<Reg> = fixed.into_iter().map(|(_, x)| self.widened(x, elem, Class::B64)).collect();
        Ok((0..group.len()).map(|i| xs[i.min(xs.len() - 1)]).collect())
    }

    /// Integers modulo 2^64, each split into a register part per thread and a literal per element, as far as sums of
    /// positions allow it.
    fn places(&mut self, e: Expr, operands: &Operands, group: &[usize]) -> Result<Vec<Place>, Reported> {
        let elem = self.elem_of_expr(e);
        if self.kind_of(e)? == Kind::Index {
            if let Some(c) = self.index(e)?.as_const() {
                return Ok(vec![Place::known(c); group.len()]);
            }
            let zeros = self.facts.divisor(self.k, e).trailing_zeros().max(self.zeros(e, &operands.scope));
            let own = self.eval_index(e, group, Class::B64)?;
            return Ok(own.into_iter().map(|x| Place { own: Some(x), known: 0, zeros }).collect());
        }
        // In an operand that is repeated along dimensions, coordinates are not those of this tile.
        let whole = fixed_shape(self.k, e).is_some_and(|shape| shape == operands.scope.dim_bits.extents());
        match self.k.exprs[e].clone() {
            ExprData::Cast { elem: ElemRef::Known(Elem::I64 | Elem::U64), arg }
                if self.kind_of(arg)? == Kind::Index || self.elem_of_expr(arg).is_some_and(cast::is_int) =>
            {
                return self.places(arg, operands, group);
            }
            ExprData::Ref(v) if whole => {
                if let Some(init) = let_init(self.k, v).filter(|&init| is_position(self.k, init)) {
                    return self.places(init, operands, group);
                }
            }
            ExprData::Op { op: op @ (Op::Add | Op::Sub), args } if elem.is_some_and(Elem::is_wide) => {
                let (a, b) = (self.places(args[0], operands, group)?, self.places(args[1], operands, group)?);
                return Ok(a.into_iter().zip(b).map(|(a, b)| self.sum_of_places(op, a, b)).collect());
            }
            ExprData::Iota { .. } | ExprData::Op { op: Op::Add | Op::Sub, .. } if whole => {
                if let Some(counted) = self.counted(e, &operands.scope, group)?
                    && (0..group.len()).all(|i| {
                        let (own, known) = (counted.own[i], i128::from(counted.known[i]));
                        fits32(own.lo + known, own.hi + known)
                    })
                {
                    let zeros = self.zeros_of_thread(e, &operands.scope);
                    let place = |(own, known): (Int, i64)| match own.as_const() {
                        Some(c) => Place::known(c + known),
                        None => Place { own: Some(self.in64(own)), known, zeros },
                    };
                    return Ok(counted.own.into_iter().zip(counted.known).map(place).collect());
                }
            }
            _ => {}
        }
        let zeros = self.zeros(e, &operands.scope);
        let own = self.eval_wide(e, operands, group)?;
        Ok(own.into_iter().map(|x| Place { own: Some(x), known: 0, zeros }).collect())
    }

    fn sum_of_places(&mut self, op: Op, a: Place, b: Place) -> Place {
        let instr = if op == Op::Add { P::AddS64 } else { P::SubS64 };
        let own = match (a.own, b.own) {
            (own, None) => own,
            (None, own) if op == Op::Add => own,
            (x, Some(y)) => {
                let x = x.map_or(Operand::Imm(0), Operand::Reg);
                Some(self.emit.pure(Class::B64, instr, [x, y.into()]))
            }
        };
        let known = if op == Op::Add { a.known.wrapping_add(b.known) } else { a.known.wrapping_sub(b.known) };
        Place { own, known, zeros: a.zeros.min(b.zeros) }
    }

    /// Trailing zero bits of the thread's part of a sum of positions: an `iota` contributes bits of the thread's
    /// number.
    fn zeros_of_thread(&self, e: Expr, scope: &Scope) -> u32 {
        match &self.k.exprs[e] {
            ExprData::Int(_) => i64::BITS,
            ExprData::Iota { axis, .. } => scope.zeros_along(*axis as usize, false),
            ExprData::Op { op: Op::Add | Op::Sub, args } if self.counts(e) => {
                self.zeros_of_thread(args[0], scope).min(self.zeros_of_thread(args[1], scope))
            }
            _ => self.facts.divisor(self.k, e).trailing_zeros(),
        }
    }

    /// Trailing zero bits of an integer, in all elements.
    fn zeros(&self, e: Expr, scope: &Scope) -> u32 {
        match &self.k.exprs[e] {
            ExprData::Iota { axis, .. } => scope.zeros_along(*axis as usize, true),
            ExprData::Cast { arg, .. } if self.elem_of_expr(*arg).is_none_or(cast::is_int) => self.zeros(*arg, scope),
            ExprData::Op { op: Op::Add | Op::Sub, args } => self.zeros(args[0], scope).min(self.zeros(args[1], scope)),
            ExprData::Op { op: Op::Mul, args } => self.zeros(args[0], scope) + self.zeros(args[1], scope),
            ExprData::Ref(v) => match let_init(self.k, *v).filter(|&init| scalar_shape(self.k, init).is_some()) {
                Some(init) => self.zeros(init, scope),
                None => self.facts.divisor(self.k, e).trailing_zeros(),
            },
            ExprData::Op { op: Op::Shl, args } => {
                let by = self.k.as_int(args[1]).and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
                self.zeros(args[0], scope).saturating_add(by)
            }
            _ => self.facts.divisor(self.k, e).trailing_zeros(),
        }
    }

    /// Whether `e` is an `iota` along a dimension of extent 1: then it is zero for all elements.
    fn counts_one(&self, e: Expr) -> bool {
        match self.k.exprs[e] {
            ExprData::Iota { axis, like } => {
                fixed_shape(self.k, like).and_then(|shape| shape.get(axis as usize).copied()) == Some(1)
            }
            _ => false,
        }
    }

    fn eval_ref(
        &mut self,
        e: Expr,
        v: Value,
        operands: &Operands,
        group: &[usize],
        class: Class,
    ) -> Result<Vec<Reg>, Reported> {
        if let Some(tile) = self.tiles[v].clone() {
            return self.eval_tile(e, (v, &tile), operands, group, class);
        }
        if let Some((_, regs)) = operands.named.iter().find(|(w, _)| *w == v) {
            return Ok(operands.of_group(regs, group).into_iter().map(|r| self.convert(r, class)).collect());
        }
        if let Some(r) = self.scalars[v] {
            // Literals have no type, and their register is one of f32.
            let init = match self.k.values[v].def {
                ValueDef::Local(init) => Some(init),
                _ => let_init(self.k, v),
            };
            if class == Class::F64
                && let (Ok(Type::Float), Some(init)) = (type_of(self.k, e), init)
            {
                return self.eval(init, operands, group, class);
            }
            let x = self.convert(r, class);
            return Ok(vec![x; group.len()]);
        }
        if self.ints[v].is_some() {
            return self.eval_index(e, group, class);
        }
        if let (ValueDef::Let, Some(init)) = (&self.k.values[v].def, let_init(self.k, v)) {
            return self.eval(init, operands, group, class);
        }
        Err(self.unsupported(e, "this value"))
    }

    /// Elements of a register tile.
    fn eval_tile(
        &mut self,
        e: Expr,
        (v, tile): (Value, &Tile),
        operands: &Operands,
        group: &[usize],
        class: Class,
    ) -> Result<Vec<Reg>, Reported> {
        if tile.dim_bits.is_empty() {
            let x = self.get(tile, 0);
            let x = self.convert(x, class);
            return Ok(vec![x; group.len()]);
        }
        let own = match tile.layout == operands.scope.layout {
            true => self.get_all(tile, group),
            false => match repeated_elements((&tile.layout, &tile.dim_bits), &operands.scope, group) {
                Some(elements) => elements.into_iter().map(|i| self.get(tile, i)).collect(),
                None => return Err(self.different_layouts(e, v, tile, operands)),
            },
        };
        Ok(own.into_iter().map(|x| self.convert(x, class)).collect())
    }

    fn eval_index(&mut self, e: Expr, group: &[usize], class: Class) -> Result<Vec<Reg>, Reported> {
        let x = self.index(e)?;
        // Only the low 32 bits of a literal fit the register.
        if let Some(c) = x.as_const().filter(|_| class == Class::B32) {
            return Ok(vec![self.int_literal(i64::from(c as i32), class); group.len()]);
        }
        // Next to 32-bit integers, only the low bits of a larger index count, as for a literal.
        let narrow = class == Class::B32 || super::ranged_ints::fits32(x.lo, x.hi);
        if let Some(c) = x.as_const() {
            return Ok(vec![self.int_literal(c, class); group.len()]);
        }
        let r = if narrow { self.in32(x) } else { self.in64(x) };
        let r = self.convert(r, class);
        Ok(vec![r; group.len()])
    }

    /// Truth values of a group.
    pub(super) fn eval_bool(&mut self, e: Expr, operands: &Operands, group: &[usize]) -> Result<Vec<Reg>, Reported> {
        if let ExprData::Ref(v) = self.k.exprs[e]
            && let Some(init) = self.deferred.init(v)
        {
            let known = operands.truths.borrow().iter().find(|(w, of, _)| *w == v && of == group).cloned();
            if let Some((.., truths)) = known {
                return Ok(truths);
            }
            let truths = self.eval_bool(init, operands, group)?;
            operands.truths.borrow_mut().push((v, group.to_vec(), truths.clone()));
            return Ok(truths);
        }
        if let ExprData::Ref(v) = self.k.exprs[e] {
            return self.named_conditions(e, v, operands, group);
        }
        if let ExprData::Reduce { .. } = self.k.exprs[e] {
            return self.eval_reduced(e, operands, group, Class::Pred);
        }
        let ExprData::Op { op, args } = self.k.exprs[e].clone() else {
            return Err(self.unsupported(e, "this condition"));
        };
        let mut out = Vec::new();
        match op.domain() {
            Domain::Logic => {
                let mut parts = Vec::new();
                for &a in &args {
                    parts.push(self.eval_bool(a, operands, group)?);
                }
                for i in 0..group.len() {
                    let srcs: Vec<Operand> = parts.iter().map(|p| p[i].into()).collect();
                    let instr = match op {
                        Op::And => P::AndPred,
                        Op::Or => P::OrPred,
                        _ => P::NotPred,
                    };
                    out.push(self.emit.pure(Class::Pred, instr, srcs));
                }
            }
            Domain::Compare => {
                if self.kind_of(args[0])? == Kind::Index && self.kind_of(args[1])? == Kind::Index {
                    let (a, b) = (self.index(args[0])?, self.index(args[1])?);
                    return Ok(vec![self.int_compare(op, a, b); group.len()]);
                }
                if let &[a, b] = &args[..]
                    && let Some(found) = self.compare_counted(op, [a, b], &operands.scope, group)?
                {
                    return Ok(found);
                }
                if let &[a, b] = &args[..]
                    && let Some(found) = self.equals_counted(op, [a, b], operands, group)?
                {
                    return Ok(found);
                }
                let classes = [self.kind_of(args[0])?, self.kind_of(args[1])?];
                // The wider of the two types.
                let class = match classes {
                    [Kind::Index, Kind::Number(class)] | [Kind::Number(class), Kind::Index] => class,
                    [_, Kind::Number(class @ (Class::B64 | Class::F64))] | [Kind::Number(class), _] => class,
                    [Kind::Index, Kind::Index] => Class::F32,
                };
                let (a, b) = (self.eval(args[0], operands, group, class)?, self.eval(args[1], operands, group, class)?);
                let unsigned = args.iter().any(|&x| self.elem_of_expr(x).is_some_and(|elem| is_unsigned(elem, class)));
                for i in 0..group.len() {
                    match compare_op(op, (class, unsigned)) {
                        Some(instr) => out.push(self.emit.pure(Class::Pred, instr, [a[i].into(), b[i].into()])),
                        None => return Err(self.unsupported(e, "this comparison")),
                    }
                }
            }
            _ => return Err(self.unsupported(e, "this condition")),
        }
        Ok(out)
    }

    /// Truth values that a `let` defines.
    fn named_conditions(
        &mut self,
        e: Expr,
        v: Value,
        operands: &Operands,
        group: &[usize],
    ) -> Result<Vec<Reg>, Reported> {
        if let Some(holds) = self.scalars[v] {
            return Ok(vec![holds; group.len()]);
        }
        let Some(tile) = self.tiles[v].clone() else { return Err(self.unsupported(e, "this condition")) };
        if tile.layout == operands.scope.layout {
            return Ok(group.iter().map(|&i| tile.regs[i]).collect());
        }
        match repeated_elements((&tile.layout, &tile.dim_bits), &operands.scope, group) {
            Some(elements) => Ok(elements.into_iter().map(|i| tile.regs[i]).collect()),
            None => Err(self.different_layouts(e, v, &tile, operands)),
        }
    }

    /// A condition that is equal in all threads.
    pub(super) fn condition(&mut self, e: Expr) -> Result<Reg, Reported> {
        if let ExprData::Ref(v) = self.k.exprs[e]
            && let Some(holds) = self.scalars[v]
        {
            return Ok(holds);
        }
        let ExprData::Op { op, args } = self.k.exprs[e].clone() else {
            return Err(self.unsupported(e, "this condition"));
        };
        let indices = op.domain() == Domain::Compare
            && self.kind_of(args[0])? == Kind::Index
            && self.kind_of(args[1])? == Kind::Index;
        if indices {
            let (a, b) = (self.index(args[0])?, self.index(args[1])?);
            return Ok(self.int_compare(op, a, b));
        }
        if op.domain() == Domain::Logic {
            let mut parts = Vec::new();
            for &a in &args {
                parts.push(Operand::Reg(self.condition(a)?));
            }
            let instr = match op {
                Op::And => P::AndPred,
                Op::Or => P::OrPred,
                _ => P::NotPred,
            };
            return Ok(self.emit.pure(Class::Pred, instr, parts));
        }
        let scope = Scope {
            layout: RegLayout::new(Vec::new(), vec![0; self.thread_bits as usize], 0).expect("a scalar's layout"),
            dim_bits: Dims::of(&[]),
        };
        let operands = Operands::new(scope);
        Ok(self.eval_bool(e, &operands, &[0])?[0])
    }

    /// A scalar expression in its class.
    pub(super) fn scalar(&mut self, e: Expr) -> Result<Reg, Reported> {
        let class = self.class_of_expr(e)?;
        self.scalar_in(e, class)
    }

    /// A scalar expression, converted to `class`.
    pub(super) fn scalar_in(&mut self, e: Expr, class: Class) -> Result<Reg, Reported> {
        let scope = Scope {
            layout: RegLayout::new(Vec::new(), vec![0; self.thread_bits as usize], 0).expect("a scalar's layout"),
            dim_bits: Dims::of(&[]),
        };
        let operands = Operands::new(scope);
        Ok(self.eval(e, &operands, &[0], class)?[0])
    }

    /// The value of an index expression.
    pub(super) fn index(&mut self, e: Expr) -> Result<Int, Reported> {
        match self.k.exprs[e].clone() {
            ExprData::Int(x) => Ok(Int::constant(x)),
            ExprData::Ref(v) => {
                if let Some(int) = self.ints[v] {
                    return Ok(int);
                }
                if let ValueDef::Let = self.k.values[v].def
                    && let Some(init) = let_init(self.k, v)
                {
                    return self.index(init);
                }
                Err(self.unsupported(e, "this is not an index"))
            }
            ExprData::Index(arg) => self.index_of(arg),
            ExprData::Op { op: Op::Select, args } => {
                let holds = self.condition(args[0])?;
                let (a, b) = (self.index(args[1])?, self.index(args[2])?);
                let (lo, hi) = (a.lo.min(b.lo), a.hi.max(b.hi));
                let narrow = fits32(lo, hi);
                let (x, y) = if narrow { (self.as32(a), self.as32(b)) } else { (self.as64(a), self.as64(b)) };
                let (class, op) = if narrow { (Class::B32, P::SelpB32) } else { (Class::B64, P::SelpB64) };
                let reg = self.emit.pure(class, op, [x, y, holds.into()]);
                Ok(Int { repr: if narrow { Repr::R32(reg) } else { Repr::R64(reg) }, lo, hi })
            }
            ExprData::Op { op, args } => {
                let a = self.index(args[0])?;
                if matches!(op, Op::Neg | Op::Abs) {
                    let negative = self.int_op(Op::Sub, Int::constant(0), a);
                    let value = match op {
                        Op::Neg => negative,
                        _ => negative.and_then(|negative| self.int_op(Op::Max, a, negative)),
                    };
                    return value.ok_or(()).map_err(|()| self.overflow(e, None));
                }
                if args.len() == 1
                    && let Some(x) = self.int_of_bits(op, a)
                {
                    return Ok(x);
                }
                let b = match args.get(1) {
                    Some(&b) => self.index(b)?,
                    None => return Err(self.unsupported(e, "this operator does not work on indices")),
                };
                if op == Op::Mul
                    && let Some(bound) = self.bound_of_product(e)
                {
                    return Ok(self.bounded_product(a, b, bound));
                }
                match op {
                    Op::Mul => match self.known_op(e, op, [a, b]) {
                        Some(product) => Ok(product),
                        None => self
                            .promised_product(e, [(args[0], a), (args[1], b)])
                            .ok_or(())
                            .map_err(|()| self.overflow(e, None)),
                    },
                    Op::Add
                    | Op::Sub
                    | Op::Div
                    | Op::Rem
                    | Op::CeilDiv
                    | Op::Min
                    | Op::Max
                    | Op::Shl
                    | Op::Shr
                    | Op::BitAnd
                    | Op::BitOr
                    | Op::BitXor => {
                        self.known_op(e, op, [a, b]).ok_or(()).map_err(|()| self.overflow(e, Some((op, b))))
                    }
                    _ => Err(self.unsupported(e, "this operator does not work on indices")),
                }
            }
            _ => Err(self.unsupported(e, "this is not an index")),
        }
    }

    /// The index that is the value of a number in a register.
    fn index_of(&mut self, number: Expr) -> Result<Int, Reported> {
        if self.kind_of(number)? == Kind::Index {
            return self.index(number);
        }
        let reg = self.scalar(number)?;
        let reg = self.emit.immutable_copy(reg);
        let elem = self.elem_of_expr(number).expect("bug: an index is made of an integer, which is verified");
        Ok(self.whole_number(reg, elem))
    }

    /// Compares two sums of indices and coordinates for each element; `None`: other operands.
    fn compare_counted(
        &mut self,
        op: Op,
        [a, b]: [Expr; 2],
        scope: &Scope,
        group: &[usize],
    ) -> Result<Option<Vec<Reg>>, Reported> {
        if ![a, b].into_iter().any(|e| self.counts(e)) {
            return Ok(None);
        }
        let Some(a) = self.counted(a, scope, group)? else { return Ok(None) };
        let Some(b) = self.counted(b, scope, group)? else { return Ok(None) };
        let divisor = common(a.divisor, b.divisor);
        let mut found = Vec::new();
        for i in 0..group.len() {
            // If both sides fit 32 bits, the tile's arithmetic does not wrap.
            let fits = |own: Int, known: i64| fits32(own.lo + i128::from(known), own.hi + i128::from(known));
            if !fits(a.own[i], a.known[i]) || !fits(b.own[i], b.known[i]) {
                return Ok(None);
            }
            let Some(less) = self.int_op(Op::Sub, b.own[i], a.own[i]).filter(|d| fits32(d.lo, d.hi)) else {
                return Ok(None);
            };
            let literal = shared_literal(op, a.known[i] - b.known[i], divisor);
            found.push(self.int_compare(op, Int::constant(literal), less));
        }
        Ok(Some(found))
    }

    /// `==` or `!=` of coordinates and a number for each element, `iota(x, 1) == label`. The thread's part of the
    /// coordinate is subtracted from the number, once if a row has one number. 32-bit integers wrap, so no range is
    /// needed. `None`: other operands.
    fn equals_counted(
        &mut self,
        op: Op,
        [a, b]: [Expr; 2],
        operands: &Operands,
        group: &[usize],
    ) -> Result<Option<Vec<Reg>>, Reported> {
        let instr = match op {
            Op::Eq => P::SetpEqS32,
            Op::Ne => P::SetpNeS32,
            _ => return Ok(None),
        };
        let (count, number) = if self.counts(a) { (a, b) } else { (b, a) };
        if !self.counts(count) || self.elem_of_expr(number) != Some(Elem::I32) {
            return Ok(None);
        }
        let Some(counted) = self.counted(count, &operands.scope, group)? else { return Ok(None) };
        if !counted.own.iter().all(|own| fits32(own.lo, own.hi))
            || !counted.known.iter().all(|&n| fits32(n.into(), n.into()))
        {
            return Ok(None);
        }
        let numbers = self.eval(number, operands, group, Class::B32)?;
        let mut found = Vec::new();
        for ((own, known), number) in counted.own.into_iter().zip(counted.known).zip(numbers) {
            let rest = match own.as_const() {
                Some(0) => number,
                _ => {
                    let own = self.in32(own);
                    self.emit.pure(Class::B32, P::SubS32, [number.into(), own.into()])
                }
            };
            found.push(self.emit.pure(Class::Pred, instr, [rest.into(), Operand::Imm(known)]));
        }
        Ok(Some(found))
    }

    fn counted(&mut self, e: Expr, scope: &Scope, group: &[usize]) -> Result<Option<Counted>, Reported> {
        if self.kind_of(e)? == Kind::Index {
            let index = self.index(e)?;
            return Ok(Some(match index.as_const() {
                Some(known) => Counted::same(known, group.len()),
                None => {
                    let divisor = self.facts.divisor(self.k, e);
                    Counted { own: vec![index; group.len()], known: vec![0; group.len()], divisor }
                }
            }));
        }
        if self.elem_of_expr(e) != Some(Elem::I32) {
            return Ok(None);
        }
        match self.k.exprs[e].clone() {
            ExprData::Iota { .. } if self.counts_one(e) => Ok(Some(Counted::same(0, group.len()))),
            ExprData::Iota { axis, .. } => Ok(self.coordinates(scope, axis as usize, group)),
            ExprData::Op { op: op @ (Op::Add | Op::Sub), args } => {
                let &[x, y] = &args[..] else { return Ok(None) };
                let Some(x) = self.counted(x, scope, group)? else { return Ok(None) };
                let Some(y) = self.counted(y, scope, group)? else { return Ok(None) };
                let divisor = common(x.divisor, y.divisor);
                let mut sum = Counted { own: Vec::new(), known: Vec::new(), divisor };
                for i in 0..group.len() {
                    let Some(own) = self.int_op(op, x.own[i], y.own[i]) else { return Ok(None) };
                    sum.own.push(own);
                    sum.known.push(if op == Op::Add { x.known[i] + y.known[i] } else { x.known[i] - y.known[i] });
                }
                Ok(Some(sum))
            }
            _ => Ok(None),
        }
    }
}
