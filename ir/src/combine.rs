//! Reductions, scans and sorts of tuples along a dimension, with a combination of the program.
//!
//! ```text
//! let s = reduce (x, 1.0) along 1 with (m1, l1), (m2, l2) {
//!     let m = max(m1, m2)
//!     give m, l1 * exp(m1 - m) + l2 * exp(m2 - m)
//! }
//! ```
//!
//! Two tuples become one. The first has the lower index along the dimension. For a sort the program says whether the first belongs
//! in front. The order of combination follows from the indices of the elements, in every layout
//! ([`crate::kernel::ExprData::Combine`]). Blocks of 2, 4, 8, .. elements begin at multiples of their size. The tuple of a block is
//! that of its lower half combined with that of its upper half. So the combination need not be commutative, and needs no neutral
//! element.

use crate::entities::{Expr, Value};
use crate::kernel::{ExprData, Kernel, ValueDef};
use crate::ops::Op;
use crate::small_list::SmallList;
use crate::types::ElemRef;

pub use crate::tuples::{Combine, How};

impl Combine {
    /// The operands, the initial values, the totals, the definitions of locals, and the results: all expressions in the
    /// order of the text.
    pub fn children(&self, k: &Kernel) -> SmallList<Expr> {
        self.args.iter().chain(&self.front).chain(&self.totals).copied().chain(self.body(k)).collect()
    }

    /// The computation on two tuples: definitions of locals, and the results.
    pub fn body(&self, k: &Kernel) -> Vec<Expr> {
        self.locals.iter().map(|&v| local(k, v)).chain(self.results.iter().copied()).collect()
    }
}

/// The definition of a local.
///
/// # Panics
/// If `v` is not a local of a combination.
pub fn local(k: &Kernel, v: Value) -> Expr {
    match k.values[v].def {
        ValueDef::Local(init) => init,
        ref other => panic!("bug: a local is {other:?}"),
    }
}

/// The type of a component.
///
/// # Panics
/// It is none.
pub fn component(k: &Kernel, v: Value) -> ElemRef {
    match k.values[v].def {
        ValueDef::Element { elem } => elem,
        ref other => panic!("bug: a component is {other:?}"),
    }
}

/// Literals that a `select` chooses from take the type of their component, as other literals do.
pub fn type_literals(k: &mut Kernel, e: Expr, elem: ElemRef) {
    let ExprData::Op { op: Op::Select, args } = k.exprs[e].clone() else { return };
    for arm in args.into_iter().skip(1) {
        if matches!(k.exprs[arm], ExprData::Int(_) | ExprData::Float(_)) {
            let literal = k.exprs[arm].clone();
            let arg = k.expr(literal, k.expr_spans[arm]);
            k.exprs[arm] = ExprData::Cast { elem, arg };
        } else {
            type_literals(k, arm, elem);
        }
    }
}

/// The network of a sort of `2^bits` elements, as one XOR mask per step: a step compares elements whose indices differ
/// in the mask. In blocks of 2, 4, 8, .. elements, the first step compares the first element with the last, the second
/// with the last but one, and so on. The next steps compare elements a half of the block apart, then a quarter, and so
/// on.
pub fn exchanges(bits: u32) -> impl Iterator<Item = u32> {
    (1..=bits).flat_map(|k| std::iter::once((1 << k) - 1).chain((0..k - 1).rev().map(|j| 1 << j)))
}

/// Bits of an element's index in a row of `n` elements that is sorted. If the length is no power of two, the row is
/// sorted by the network of the next one. Comparisons that have an element past the end of the row are left out.
pub fn row_bits(n: u64) -> u32 {
    u64::BITS - n.saturating_sub(1).leading_zeros()
}

/// The steps of a sort of `2^bits` elements from `steps.0` to before `steps.1`.
pub fn exchanges_of(bits: u32, steps: Option<(u32, u32)>) -> impl Iterator<Item = u32> {
    let (from, to) = steps.unwrap_or((0, u32::MAX));
    exchanges(bits).skip(from as usize).take(to.saturating_sub(from) as usize)
}

/// Number of steps of a sort of `2^bits` elements.
pub fn comparisons(bits: u32) -> u32 {
    bits * (bits + 1) / 2
}

impl Kernel {
    /// The combination that an expression is, or that the `let` it names is defined as.
    pub fn tuples(&self, e: Expr) -> Option<&Combine> {
        match &self.exprs[e] {
            ExprData::Combine(combine) => Some(combine),
            ExprData::Ref(v) => match &self.exprs[self.let_init(*v)?] {
                ExprData::Combine(combine) => Some(combine),
                _ => None,
            },
            _ => None,
        }
    }

    /// The `let` of tuples of which an expression is a component, and which.
    pub fn part_of(&self, e: Expr) -> Option<(Value, usize)> {
        let ExprData::Part { of, index } = self.exprs[e] else { return None };
        match self.exprs[of] {
            ExprData::Ref(v) => Some((v, index as usize)),
            _ => None,
        }
    }

    /// Copies what combines tuples, with names of its own; `subst` as in [`Kernel::clone_expr`].
    pub(crate) fn clone_combine(
        &mut self,
        combine: &Combine,
        subst: &mut dyn FnMut(&mut Kernel, Value) -> Option<Expr>,
    ) -> Combine {
        let mut renamed: Vec<(Value, Value)> = Vec::new();
        let args = combine.args.iter().map(|&e| self.clone_expr(e, subst)).collect();
        let front = combine.front.iter().map(|&e| self.clone_expr(e, subst)).collect();
        let totals = combine.totals.iter().map(|&e| self.clone_expr(e, subst)).collect();
        let mut again = |k: &mut Kernel, list: &[Value], renamed: &mut Vec<(Value, Value)>| -> Vec<Value> {
            let own = |&v: &Value| {
                let data = k.values[v].clone();
                let def = match data.def {
                    ValueDef::Local(init) => {
                        let names = renamed.clone();
                        let mut named = |k: &mut Kernel, v: Value| match names.iter().find(|(old, _)| *old == v) {
                            Some(&(_, new)) => Some(k.value_ref(new, data.span)),
                            None => subst(k, v),
                        };
                        ValueDef::Local(k.clone_expr(init, &mut named))
                    }
                    other => other,
                };
                let new = k.value(&data.name, data.span, def);
                renamed.push((v, new));
                new
            };
            list.iter().map(own).collect()
        };
        let first = again(self, &combine.first, &mut renamed);
        let second = again(self, &combine.second, &mut renamed);
        let locals = again(self, &combine.locals, &mut renamed);
        let mut named = |k: &mut Kernel, v: Value| match renamed.iter().find(|(old, _)| *old == v) {
            Some(&(_, new)) => Some(k.value_ref(new, k.values[new].span)),
            None => subst(k, v),
        };
        let results = combine.results.iter().map(|&e| self.clone_expr(e, &mut named)).collect();
        Combine {
            operation: combine.operation,
            axis: combine.axis,
            args,
            front,
            totals,
            first,
            second,
            locals,
            results,
        }
    }
}
