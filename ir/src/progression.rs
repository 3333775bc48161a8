//! Indices in a register tile that form an arithmetic progression: `rows = i * 64 + 2 * iota(rows, 0)`.
//!
//! Windows with a step gather such indices, and programs may, too. The step gives the distance in memory between the
//! gathered elements.

use crate::entities::{Expr, Value};
use crate::kernel::{ExprData, Kernel, StmtData, ValueDef};
use crate::ops::Op;
use crate::types::{Elem, ElemRef};
use crate::typing::type_of;

/// Numbers of a tile of one dimension: what the first is, and the step.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Progression {
    /// From one to the next.
    pub step: i64,
    /// The first is the sum of these, each times a number,
    pub terms: Vec<(Expr, i64)>,
    /// and of this.
    pub constant: i64,
}

impl Progression {
    fn plus(mut self, other: Progression) -> Option<Progression> {
        self.step = self.step.checked_add(other.step)?;
        self.constant = self.constant.checked_add(other.constant)?;
        self.terms.extend(other.terms);
        Some(self)
    }

    fn times(mut self, by: i64) -> Option<Progression> {
        self.step = self.step.checked_mul(by)?;
        self.constant = self.constant.checked_mul(by)?;
        for (_, times) in &mut self.terms {
            *times = times.checked_mul(by)?;
        }
        Some(self)
    }
}

/// The progression that a tile of indices holds wherever it is read, elements apart that name nothing (below zero); `None`: it holds other numbers, or it is not known.
pub fn progression(k: &Kernel, tile: Value) -> Option<Progression> {
    if !matches!(&k.values[tile].def, ValueDef::Var(t) if t.shape.len() == 1) {
        return None;
    }
    let mut held: Option<Progression> = None;
    for s in k.statements() {
        match k.stmts[s] {
            // Zeros until all of it is set.
            StmtData::Var { value, .. } if value == tile => {}
            StmtData::Assign { dst, src } if dst == tile => {
                // What leaves some of them out keeps the others.
                held = match (cut(k, tile, src), &held) {
                    (true, Some(_)) => held,
                    (false, None) => Some(of(k, src)?),
                    _ => return None,
                };
            }
            _ if crate::modified_values::changes(k, s, tile)
                && !matches!(k.stmts[s], StmtData::For { .. } | StmtData::If { .. }) =>
            {
                return None;
            }
            _ => {}
        }
    }
    held
}

/// Whether an expression is the tile itself, or below zero.
fn cut(k: &Kernel, tile: Value, e: Expr) -> bool {
    let ExprData::Op { op: Op::Select, args } = &k.exprs[e] else { return false };
    matches!(k.exprs[args[1]], ExprData::Ref(v) if v == tile) && k.as_int(args[2]).is_some_and(|n| n < 0)
}

fn of(k: &Kernel, e: Expr) -> Option<Progression> {
    let single = |e: Expr| type_of(k, e).is_ok_and(|ty| ty.rank() == 0);
    match &k.exprs[e] {
        ExprData::Int(n) => Some(Progression { constant: *n, ..Progression::default() }),
        ExprData::Iota { axis: 0, .. } => Some(Progression { step: 1, ..Progression::default() }),
        // Narrower ones wrap around.
        ExprData::Cast { elem: ElemRef::Known(Elem::I32 | Elem::I64 | Elem::U32 | Elem::U64), arg } => of(k, *arg),
        ExprData::Op { op: Op::Add, args } => of(k, args[0])?.plus(of(k, args[1])?),
        ExprData::Op { op: Op::Sub, args } => of(k, args[0])?.plus(of(k, args[1])?.times(-1)?),
        ExprData::Op { op: Op::Mul, args } if !single(e) => match (k.as_int(args[0]), k.as_int(args[1])) {
            (Some(n), _) => of(k, args[1])?.times(n),
            (_, Some(n)) => of(k, args[0])?.times(n),
            _ => None,
        },
        _ if single(e) => Some(Progression { terms: vec![(e, 1)], ..Progression::default() }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::print::print_expr;

    #[test]
    fn counted_rows_are_progressions_and_loaded_ones_are_not() {
        let source = "kernel t(A: gmem f32[M, N], P: gmem i32[M]) grid (b: 4) {
            var a = reg i32[64] = 0  a = b * 64 + 2 * iota(a, 0)  a = select(a < M, a, -1)
            var c = reg i32[64] = 0  c = 5 - iota(c, 0) * 3
            var d = reg i32[64]  copy P[b * 64..] -> d
            var e = reg i32[64] = 0  e = iota(e, 0)  for j in 0..4 { e = e + 1 }
            var f = reg i32[64] = 0  f = iota(f, 0) * iota(f, 0)
        }";
        let module = crate::parser::parse(source, &mut crate::diag::Sink::new()).expect("it parses");
        let k = &module.kernels[0];
        let of = |name: &str| progression(k, k.values.keys().find(|&v| k.values[v].name == name).expect("a tile"));
        let a = of("a").expect("counted");
        assert_eq!((a.step, a.constant), (2, 0));
        let terms: Vec<_> = a.terms.iter().map(|&(e, n)| (print_expr(k, e), n)).collect();
        assert_eq!(terms, [("b * 64".to_owned(), 1)]);
        assert_eq!(of("c"), Some(Progression { step: -3, terms: Vec::new(), constant: 5 }));
        assert_eq!(["d", "e", "f"].map(of), [None, None, None]);
    }
}
