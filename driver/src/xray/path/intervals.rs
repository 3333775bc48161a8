//! What indices can be in a box of numbers of grid indices and loops.

use std::collections::BTreeMap;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::extents::Ranges;
use tilec_ir::index::Interval;
use tilec_ir::kernel::{ExprData, Kernel, ValueDef};
use tilec_ir::ops::Op;

/// The numbers of grid axes and loops at which a window has an element.
pub(in crate::xray) type Numbers = BTreeMap<Value, i64>;

/// Numbers of a variable without a known end.
pub(super) const END: i64 = 1 << 31;

/// A loop.
pub(super) struct Bounds {
    pub(super) start: Expr,
    pub(super) end: Expr,
    pub(super) step: Expr,
    /// Numbers are drawn at run time.
    pub(super) drawn: bool,
}

/// What the indices of a kernel are made of.
pub(super) struct Indices<'k> {
    k: &'k Kernel,
    pub(super) loops: BTreeMap<Value, Bounds>,
    /// What sizes can be that are not known.
    sizes: BTreeMap<Value, Interval>,
}

impl<'k> Indices<'k> {
    /// Whether memory says where a loop begins.
    pub(super) fn begins_by_data(&self, v: Value) -> bool {
        let reads = |e: Expr| self.k.has_part(e, |part| matches!(self.k.exprs[part], ExprData::Index(_)));
        self.loops.get(&v).is_some_and(|b| b.drawn || reads(b.start) || reads(b.step))
    }

    /// Whether all numbers are in question for the variable of a loop of which memory says where it begins.
    pub(super) fn is_by_one(&self, v: Value) -> bool {
        self.loops.get(&v).is_some_and(|b| !b.drawn && self.k.as_int(b.step) == Some(1))
    }

    /// Those of a kernel, without its loops yet.
    pub(super) fn new(k: &'k Kernel) -> Indices<'k> {
        let ranges = Ranges::new(k);
        let mut sizes = BTreeMap::new();
        for (e, data) in k.exprs.iter() {
            if let ExprData::Ref(v) = data
                && matches!(k.values[*v].def, ValueDef::Size | ValueDef::Stride)
                && !sizes.contains_key(v)
                && let Some(range) = ranges.of(e)
            {
                sizes.insert(*v, range);
            }
        }
        Indices { k, loops: BTreeMap::new(), sizes }
    }
}

/// Values of indices in a box: of grid indices, and of loops by the number of the turn.
pub(super) struct Eval<'e, 'k> {
    pub(super) indices: &'e Indices<'k>,
    pub(super) fixed: &'e Numbers,
    pub(super) turns: &'e BTreeMap<Value, (i64, i64)>,
}

fn point(n: i128) -> Interval {
    Interval::new(n, n)
}

impl Eval<'_, '_> {
    pub(super) fn of(&self, e: Expr) -> Option<Interval> {
        self.indices.k.by_names(e, |e, known| self.node(e, known))
    }

    /// The extent of a grid axis.
    pub(super) fn extent(&self, index: Value) -> Option<Interval> {
        self.of(self.indices.k.grid.iter().find(|axis| axis.index == index)?.extent)
    }

    pub(super) fn sum(&self, terms: &[(Expr, i64)], constant: i64) -> Option<Interval> {
        terms.iter().try_fold(point(i128::from(constant)), |sum, &(e, times)| {
            let own = Interval::of(Op::Mul, self.of(e)?, point(i128::from(times)))?;
            Interval::of(Op::Add, sum, own)
        })
    }

    pub(super) fn value(&self, v: Value) -> Option<Interval> {
        if let Some(&n) = self.fixed.get(&v) {
            return Some(point(i128::from(n)));
        }
        let turns = self.turns.get(&v).map(|&(lo, hi)| Interval::new(i128::from(lo), i128::from(hi)));
        match self.indices.k.values[v].def {
            ValueDef::Size | ValueDef::Stride => self.indices.sizes.get(&v).copied(),
            ValueDef::Grid => turns.or_else(|| {
                let last = self.extent(v).map_or(i128::from(END), |n| n.hi - 1);
                Some(Interval::new(0, last))
            }),
            ValueDef::Loop => {
                let b = self.indices.loops.get(&v).filter(|b| !b.drawn)?;
                // It takes every number between bounds that are not known.
                if self.indices.begins_by_data(v) {
                    return turns.filter(|_| self.indices.is_by_one(v));
                }
                let (start, step) = (self.of(b.start)?, self.of(b.step)?);
                match turns {
                    Some(turns) => Interval::of(Op::Add, start, Interval::of(Op::Mul, turns, step)?),
                    None => Some(Interval::of_loop(start, self.of(b.end)?, step.lo.max(1))),
                }
            }
            _ => None,
        }
    }

    fn node(&self, e: Expr, known: &BTreeMap<Value, Option<Interval>>) -> Option<Interval> {
        let of = |e: Expr| self.node(e, known);
        match &self.indices.k.exprs[e] {
            ExprData::Int(n) => Some(point(i128::from(*n))),
            ExprData::Ref(v) => self.value(*v).or_else(|| known.get(v).copied().flatten()),
            ExprData::Index(arg) => of(*arg),
            ExprData::Op { op, args } => match (op, &args[..]) {
                (Op::Select, &[cond, a, b]) => match of(cond) {
                    Some(Interval { lo: 1, .. }) => of(a),
                    Some(Interval { hi: 0, .. }) => of(b),
                    _ => {
                        let (a, b) = (of(a)?, of(b)?);
                        Some(Interval::new(a.lo.min(b.lo), a.hi.max(b.hi)))
                    }
                },
                (Op::Neg, &[a]) => of(a).map(|a| Interval::new(-a.hi, -a.lo)),
                (Op::Not, &[a]) => of(a).map(|a| Interval::new(1 - a.hi, 1 - a.lo)),
                (&op, &[a]) => Interval::of_one(op, of(a)?),
                (Op::And, &[a, b]) => {
                    let (a, b) = (of(a).unwrap_or(Interval::new(0, 1)), of(b).unwrap_or(Interval::new(0, 1)));
                    Some(Interval::new(a.lo.min(b.lo), a.hi.min(b.hi)))
                }
                (Op::Or, &[a, b]) => {
                    let (a, b) = (of(a).unwrap_or(Interval::new(0, 1)), of(b).unwrap_or(Interval::new(0, 1)));
                    Some(Interval::new(a.lo.max(b.lo), a.hi.max(b.hi)))
                }
                (&op, &[a, b]) => binary(op, of(a)?, of(b)?),
                _ => None,
            },
            _ => None,
        }
    }
}

fn binary(op: Op, a: Interval, b: Interval) -> Option<Interval> {
    let truth = |sure: bool, never: bool| match (sure, never) {
        (true, _) => point(1),
        (_, true) => point(0),
        _ => Interval::new(0, 1),
    };
    let equal = || truth(a.lo == a.hi && a == b, a.hi < b.lo || b.hi < a.lo);
    Some(match op {
        Op::Lt => truth(a.hi < b.lo, a.lo >= b.hi),
        Op::Le => truth(a.hi <= b.lo, a.lo > b.hi),
        Op::Gt => truth(a.lo > b.hi, a.hi <= b.lo),
        Op::Ge => truth(a.lo >= b.hi, a.hi < b.lo),
        Op::Eq => equal(),
        Op::Ne => {
            let Interval { lo, hi } = equal();
            Interval::new(1 - hi, 1 - lo)
        }
        // Within one period the remainder grows with the number.
        Op::Rem if b.lo == b.hi && b.lo > 0 && a.lo.div_euclid(b.lo) == a.hi.div_euclid(b.lo) => {
            Interval::new(a.lo.rem_euclid(b.lo), a.hi.rem_euclid(b.lo))
        }
        _ => Interval::of(op, a, b)?,
    })
}
