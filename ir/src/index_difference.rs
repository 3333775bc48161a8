//! Differences of indices that are known before the launch.

use crate::entities::{Expr, Value};
use crate::kernel::{ExprData, Kernel};
use crate::ops::Op;
use crate::print::print_expr;
use std::collections::BTreeMap;

/// An index as a number plus multiples of terms that are not examined further.
#[derive(Clone, Default)]
struct Linear {
    /// Terms by their text: values have different names.
    terms: BTreeMap<String, i64>,
    number: i64,
}

impl Linear {
    /// This index plus `by` times the other; `None`: a number does not fit.
    fn plus(mut self, other: &Linear, by: i64) -> Option<Linear> {
        self.number = self.number.checked_add(other.number.checked_mul(by)?)?;
        for (term, times) in &other.terms {
            let own = self.terms.entry(term.clone()).or_default();
            *own = own.checked_add(times.checked_mul(by)?)?;
        }
        self.terms.retain(|_, times| *times != 0);
        Some(self)
    }

    fn as_number(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.number)
    }
}

impl Kernel {
    /// The sum of the indices `b` minus that of the indices `a`, if it is a number whatever the values in them are.
    pub fn index_difference(&self, a: &[Expr], b: &[Expr]) -> Option<i64> {
        let mut all = Linear::default();
        for (side, by) in [(a, -1), (b, 1)] {
            for &e in side {
                all = all.plus(&linear(self, e)?, by)?;
            }
        }
        all.as_number()
    }
}

fn linear(k: &Kernel, e: Expr) -> Option<Linear> {
    k.by_names(e, |e, known| within(k, e, known))
}

/// The same, with the names in `e`.
fn within(k: &Kernel, e: Expr, known: &BTreeMap<Value, Option<Linear>>) -> Option<Linear> {
    let of = |e: Expr| within(k, e, known);
    match &k.exprs[e] {
        ExprData::Int(x) => return Some(Linear { number: *x, ..Linear::default() }),
        ExprData::Ref(v) => {
            if let Some(known) = known.get(v) {
                return known.clone();
            }
        }
        ExprData::Op { op, args } => match (op, &args[..]) {
            (Op::Add, &[a, b]) => return of(a)?.plus(&of(b)?, 1),
            (Op::Sub, &[a, b]) => return of(a)?.plus(&of(b)?, -1),
            (Op::Neg, &[a]) => return Linear::default().plus(&of(a)?, -1),
            (Op::Mul, &[a, b]) => {
                let (a, b) = (of(a)?, of(b)?);
                if let Some((number, other)) = a.as_number().map(|n| (n, &b)).or(b.as_number().map(|n| (n, &a))) {
                    return Linear::default().plus(other, number);
                }
            }
            _ => {}
        },
        _ => {}
    }
    Some(Linear { terms: BTreeMap::from([(print_expr(k, e), 1)]), number: 0 })
}
