//! Indices and conditions as sums.

use super::atoms::{Atom, Inequalities};
use super::sum::{Cases, Sum};
use crate::analysis::conditions::{alike, numbers_alike};
use crate::analysis::uses::all_stmts;
use std::collections::{BTreeMap, BTreeSet};
use tilec_ir::entities::{Expr, Value};
use tilec_ir::index_values::is_constant;
use tilec_ir::kernel::{ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::names::Parts;
use tilec_ir::numerics::cast::int_format;
use tilec_ir::ops::Op;
use tilec_ir::types::{Elem, ElemRef};
use tilec_ir::typing::{Extent, Type, fixed_shape, let_init, resolve_view, type_of};

/// Most terms of a sum; longer sums are unknown.
const TERMS: usize = 32;

/// The values of variables that are written once, by their declaration or by a copy of one element.
pub(super) fn single_writes(k: &Kernel) -> BTreeMap<Value, Expr> {
    let stmts = all_stmts(k, k.body);
    let (mut held, mut again) = (BTreeMap::new(), BTreeSet::new());
    for &s in &stmts {
        let (v, e) = match k.stmts[s] {
            StmtData::Var { value, init: Some(init) } => (value, Some(init)),
            StmtData::Assign { dst, .. } => (dst, None),
            StmtData::Copy { src, dst, ref attrs } if !attrs.is_prefetch() => {
                let Some(view) = resolve_view(k, dst) else { continue };
                again.extend(attrs.old.and_then(|old| resolve_view(k, old)).map(|old| old.base));
                let one = is_constant(k, src) && type_of(k, src).is_ok_and(|ty| ty.rank() == 0);
                (view.base, Some(src).filter(|_| one && attrs.when.is_none() && attrs.reduce.is_none()))
            }
            _ => continue,
        };
        if held.insert(v, e).is_some() {
            again.insert(v);
        }
    }
    let once = |(v, e): (Value, Option<Expr>)| Some((v, e.filter(|_| !again.contains(&v))?));
    held.into_iter().filter_map(once).collect()
}

/// Parameters that are extents of tiles.
pub(super) fn extents(k: &Kernel) -> BTreeSet<Value> {
    let shapes = k.values.keys().filter_map(|v| k.tile_ty(v)).flat_map(|tile| tile.shape.iter().copied());
    let parameter = |e: Expr| match k.exprs[e] {
        ExprData::Ref(v) if matches!(k.values[v].def, ValueDef::ConstParam(_)) => Some(v),
        _ => None,
    };
    shapes.filter_map(parameter).collect()
}

/// Pairs of variables of loops with equal ranges in two roles: a consumer takes from a channel what the producer put in
/// during the same iteration.
pub(super) fn same(k: &Kernel) -> Vec<(Value, Value)> {
    let mut loops: Vec<(usize, Value, [Expr; 3])> = Vec::new();
    let mut same = Vec::new();
    let roles = all_stmts(k, k.body).into_iter().filter_map(|s| match k.stmts[s] {
        StmtData::Role { body, .. } => Some(body),
        _ => None,
    });
    for (role, body) in roles.enumerate() {
        for s in all_stmts(k, body) {
            let StmtData::For { var, start, end, step, .. } = k.stmts[s] else { continue };
            let own = [start, end, step];
            let like = |other: &[Expr; 3]| own.iter().zip(other).all(|(&a, &b)| alike(k, a, b, &same));
            let others = loops.iter().filter(|(of, _, other)| *of != role && like(other));
            let pairs: Vec<(Value, Value)> = others.flat_map(|&(_, v, _)| [(var, v), (v, var)]).collect();
            same.extend(pairs);
            loops.push((role, var, own));
        }
    }
    same
}

/// Whether an element type can represent all indices of a tensor.
fn counts(elem: ElemRef) -> bool {
    match elem {
        ElemRef::Known(Elem::F32 | Elem::F64) => true,
        ElemRef::Known(elem) => int_format(elem).is_some_and(|format| format.max() >= i128::from(i32::MAX)),
        ElemRef::Param(_) => false,
    }
}

impl Inequalities<'_> {
    pub(super) fn atom(&self, found: impl Fn(&Atom) -> bool, new: impl FnOnce() -> Atom) -> usize {
        let at = self.atoms.borrow().iter().position(found);
        at.unwrap_or_else(|| {
            self.atoms.borrow_mut().push(new());
            self.atoms.borrow().len() - 1
        })
    }

    /// The atom for the position of an element along a dimension.
    pub(super) fn place(&self, axis: u32, extent: Sum) -> usize {
        let same = |atom: &Atom| matches!(atom, Atom::Place(own, of) if *own == axis && *of == extent);
        self.atom(same, || Atom::Place(axis, extent.clone()))
    }

    fn value(&self, e: Expr) -> Sum {
        let (k, pairs) = (self.k, &self.same);
        let like = |own: Expr| alike(k, own, e, pairs) || numbers_alike(k, own, e, pairs);
        let same = |atom: &Atom| matches!(atom, Atom::Of(own) if like(*own));
        Sum::atom(self.atom(same, || Atom::Of(e)))
    }

    pub(super) fn extent(&self, extent: Extent) -> Option<Sum> {
        match extent {
            Extent::Known(n) => Some(Sum::number(i128::from(n))),
            Extent::Sym(e) => self.sum(e),
        }
    }

    /// An index, or an integer for each element of a tile, as a sum; `None`: it is no sum, or may differ between uses.
    pub(super) fn sum(&self, e: Expr) -> Option<Sum> {
        if let Some(sum) = self.sums.borrow().get(&e) {
            return sum.clone();
        }
        // Names first, in order of definition, so that a chain of names needs no recursion.
        let known = |v: Value| self.k.definition(v).is_some_and(|init| self.sums.borrow().contains_key(&init));
        for (_, init) in self.k.names_below(e, known) {
            let sum = self.added(init);
            self.sums.borrow_mut().insert(init, sum);
        }
        let sum = self.added(e);
        self.sums.borrow_mut().insert(e, sum.clone());
        sum
    }

    fn added(&self, e: Expr) -> Option<Sum> {
        let k = self.k;
        let sum = match &k.exprs[e] {
            ExprData::Int(x) => Sum::number(i128::from(*x)),
            ExprData::Ref(v) => match (let_init(k, *v).or_else(|| self.constants.get(v).copied()), &k.values[*v].def) {
                (Some(init), _) => self.sum(init)?,
                (None, ValueDef::Var(_)) => return None,
                _ => self.value(e),
            },
            ExprData::Cast { elem, arg } if counts(*elem) && self.is_integer(*arg) => self.sum(*arg)?,
            ExprData::Index(arg) => self.sum(*arg)?,
            ExprData::Iota { axis, like } => {
                let extent = match type_of(k, *like) {
                    Ok(Type::Tile(tile)) => *tile.shape.get(*axis as usize)?,
                    _ => Extent::Known(*fixed_shape(k, *like)?.get(*axis as usize)?),
                };
                Sum::atom(self.place(*axis, self.extent(extent)?))
            }
            ExprData::View(_) if is_constant(k, e) && type_of(k, e).is_ok_and(|ty| ty.rank() == 0) => self.value(e),
            ExprData::Op { op, args } => self.operator(e, *op, args)?,
            _ => return None,
        };
        (sum.terms.len() <= TERMS).then_some(sum)
    }

    fn operator(&self, e: Expr, op: Op, args: &[Expr]) -> Option<Sum> {
        let sums = || args.iter().map(|&arg| self.sum(arg)).collect::<Option<Vec<Sum>>>();
        match op {
            Op::Add | Op::Sub => {
                let sums = sums()?;
                sums.first()?.plus(sums.get(1)?, if op == Op::Add { 1 } else { -1 })
            }
            Op::Mul => {
                let sums = sums()?;
                sums.first()?.times(sums.get(1)?)
            }
            Op::Neg => Sum::default().plus(sums()?.first()?, -1),
            Op::Select => {
                self.sum(args[1])?;
                self.sum(args[2])?;
                Some(self.value(e))
            }
            Op::Fma => None,
            _ if args.iter().all(|&arg| self.is_integer(arg)) => {
                sums()?;
                Some(self.value(e))
            }
            _ => None,
        }
    }

    /// Whether one side is a position along a dimension, and the other was read from memory.
    pub(super) fn is_label(&self, sides: [Expr; 2], axis: u32) -> bool {
        let position = |e: Expr| {
            let atoms = self.sum(e).map(|sum| sum.atoms().collect::<Vec<usize>>()).unwrap_or_default();
            atoms.into_iter().any(|atom| matches!(self.atoms.borrow()[atom], Atom::Place(own, _) if own == axis))
        };
        let [x, y] = sides;
        position(x) && self.is_read(y) || position(y) && self.is_read(x)
    }

    /// Whether an expression consists of values from memory.
    fn is_read(&self, e: Expr) -> bool {
        let k = self.k;
        let mut parts = Parts::of(k, e);
        while let Some(e) = parts.take() {
            match k.exprs[e] {
                ExprData::View(_) => return true,
                ExprData::Ref(v) => match (let_init(k, v), self.constants.get(&v), &k.values[v].def) {
                    (Some(_), ..) => parts.named(v),
                    (None, Some(&init), _) if parts.once(v) => parts.also(init),
                    (None, Some(_), _) => {}
                    (None, None, def) if matches!(def, ValueDef::Var(_)) || def.space().has_bounds() => return true,
                    _ => {}
                },
                _ => parts.inside(e),
            }
        }
        false
    }

    /// Whether an expression is an integer, so that its quotients are rounded.
    fn is_integer(&self, e: Expr) -> bool {
        match type_of(self.k, e) {
            Ok(Type::Index) => true,
            Ok(other) => matches!(other.elem(), Some(ElemRef::Known(elem)) if int_format(elem).is_some()),
            Err(_) => false,
        }
    }

    /// Whether a condition compares indices without remainders.
    pub(crate) fn is_known(&self, e: Expr) -> bool {
        let remainder = |e: Expr| has_remainder(self.k, e);
        !remainder(e) && self.condition(e, true).iter().any(|case| !case.is_empty())
    }

    /// A condition as cases of inequalities `.. >= 0`; empty if nothing is known.
    pub(super) fn condition(&self, e: Expr, holds: bool) -> Cases {
        if let Some(cases) = self.conditions.borrow().get(&(e, holds)) {
            return cases.clone();
        }
        let known = |v: Value| self.k.definition(v).is_some_and(|e| self.conditions.borrow().contains_key(&(e, holds)));
        for (_, init) in self.k.names_below(e, known) {
            for holds in [!holds, holds] {
                let cases = self.cases(init, holds);
                self.conditions.borrow_mut().insert((init, holds), cases);
            }
        }
        let cases = self.cases(e, holds);
        self.conditions.borrow_mut().insert((e, holds), cases.clone());
        cases
    }

    fn cases(&self, e: Expr, holds: bool) -> Cases {
        let k = self.k;
        let nothing = || vec![Vec::new()];
        let e = match k.exprs[e] {
            ExprData::Ref(v) => match let_init(k, v) {
                Some(init) => return self.condition(init, holds),
                None => e,
            },
            _ => e,
        };
        let ExprData::Op { op, args } = &k.exprs[e] else { return nothing() };
        match (op, holds) {
            (Op::Not, _) => self.condition(args[0], !holds),
            (Op::And, true) | (Op::Or, false) => {
                let (a, b) = (self.condition(args[0], holds), self.condition(args[1], holds));
                if a.len() * b.len() > CASES {
                    return nothing();
                }
                let both = |x: &Vec<Sum>, y: &Vec<Sum>| {
                    let mut all = x.clone();
                    // The facts of a named condition are merged.
                    all.extend(y.iter().filter(|sum| !x.contains(sum)).cloned());
                    all.truncate(SAID);
                    all
                };
                a.iter().flat_map(|x| b.iter().map(move |y| both(x, y))).collect()
            }
            (Op::And, false) | (Op::Or, true) => {
                let mut all = self.condition(args[0], holds);
                let more = self.condition(args[1], holds);
                let new: Cases = more.into_iter().filter(|case| !all.contains(case)).collect();
                all.extend(new);
                if all.len() > SAID { nothing() } else { all }
            }
            _ => self.comparison(*op, [args[0], *args.get(1).unwrap_or(&args[0])], holds).unwrap_or_else(nothing),
        }
    }

    fn comparison(&self, op: Op, [x, y]: [Expr; 2], holds: bool) -> Option<Cases> {
        let op = match (op, holds) {
            (_, true) => op,
            (Op::Lt, _) => Op::Ge,
            (Op::Le, _) => Op::Gt,
            (Op::Gt, _) => Op::Le,
            (Op::Ge, _) => Op::Lt,
            (Op::Eq, _) => Op::Ne,
            (Op::Ne, _) => Op::Eq,
            _ => return None,
        };
        if !matches!(op, Op::Lt | Op::Le | Op::Gt | Op::Ge | Op::Eq | Op::Ne) {
            return None;
        }
        let (x, y) = (self.sum(x)?, self.sum(y)?);
        let (up, down) = (y.plus(&x, -1)?, x.plus(&y, -1)?);
        Some(match op {
            Op::Lt => vec![vec![up.less_one()?]],
            Op::Le => vec![vec![up]],
            Op::Gt => vec![vec![down.less_one()?]],
            Op::Ge => vec![vec![down]],
            Op::Eq => vec![vec![up, down]],
            _ => vec![vec![up.less_one()?], vec![down.less_one()?]],
        })
    }
}

fn has_remainder(k: &Kernel, e: Expr) -> bool {
    k.has_part(e, |e| matches!(k.exprs[e], ExprData::Op { op: Op::Rem, .. }))
}

/// Most cases of a condition; a condition with more is unknown.
const CASES: usize = 8;

/// Most inequalities of a case, and most cases of a disjunction.
const SAID: usize = 64;
