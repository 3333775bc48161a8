//! Which conditions and indices are invariant, and which are equal to one another.

use crate::rewrite::same_expr;
use std::collections::{BTreeMap, BTreeSet};
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::index_values::is_constant;
use tilec_ir::kernel::{ExprData, Kernel, Range, StmtData, ValueDef};
use tilec_ir::loop_ends::meaning;
use tilec_ir::names::Parts;
use tilec_ir::typing::let_init;

/// Whether a name has one value in the whole launch.
pub(crate) fn is_of_launch(k: &Kernel, v: Value) -> bool {
    matches!(k.values[v].def, ValueDef::Size | ValueDef::Stride | ValueDef::Scalar { .. })
}

/// Whether a condition has one value in the whole run of a block.
pub(crate) fn is_fixed(k: &Kernel, e: Expr) -> bool {
    let moves = |e: Expr| match &k.exprs[e] {
        ExprData::Ref(v) => {
            !is_of_launch(k, *v) && !matches!(k.values[*v].def, ValueDef::Grid) && let_init(k, *v).is_none()
        }
        ExprData::Int(_) | ExprData::Float(_) | ExprData::Op { .. } => false,
        // Elements of tensors that are never written.
        ExprData::Index(arg) => !is_constant(k, *arg),
        ExprData::View(_) | ExprData::Cast { .. } | ExprData::Bits { .. } => !is_constant(k, e),
        _ => true,
    };
    !k.has_part(e, moves)
}

/// The block with the work of a kernel: its body, or the body of an `if` around everything but names and declarations,
/// such as a check whether the block has work. The condition has one value in a block.
pub(crate) fn guarded(k: &Kernel) -> Block {
    let mut block = k.body;
    loop {
        let names = |s: &Stmt| {
            matches!(k.stmts[*s], StmtData::Let { .. } | StmtData::Alloc { .. } | StmtData::Var { init: None, .. })
        };
        let work: Vec<Stmt> = k.blocks[block].iter().copied().filter(|s| !names(s)).collect();
        match work[..] {
            [only] => match k.stmts[only] {
                StmtData::If { cond, then, otherwise: None, .. } if is_fixed(k, cond) => block = then,
                _ => return block,
            },
            _ => return block,
        }
    }
}

/// The loop variables on which the value of a condition depends, if it depends on nothing else, and the names in it.
pub(crate) fn changes_with(k: &Kernel, e: Expr) -> Option<BTreeSet<Value>> {
    let mut all = BTreeSet::new();
    let mut parts = Parts::of(k, e);
    while let Some(e) = parts.take() {
        match k.exprs[e] {
            ExprData::Ref(v) => match k.values[v].def {
                ValueDef::Loop => drop(all.insert(v)),
                ValueDef::Let => {
                    let_init(k, v)?;
                    all.insert(v);
                }
                _ if is_fixed(k, e) => continue,
                _ => return None,
            },
            ExprData::Int(_) | ExprData::Float(_) | ExprData::Op { .. } | ExprData::Index(_) => {}
            ExprData::View(_) | ExprData::Cast { .. } | ExprData::Bits { .. } if is_constant(k, e) => {}
            _ => return None,
        }
        parts.inside(e);
    }
    Some(all)
}

/// Whether two index expressions have the same value; names are replaced by what they name.
pub(crate) fn alike(k: &Kernel, a: Expr, b: Expr, same: &[(Value, Value)]) -> bool {
    Alike { k, same, named: BTreeMap::new(), numbers: BTreeMap::new() }.indices(a, b)
}

/// [`alike`] for numbers in indices. Register variables never match, because they may have changed between the two.
pub(crate) fn numbers_alike(k: &Kernel, a: Expr, b: Expr, same: &[(Value, Value)]) -> bool {
    Alike { k, same, named: BTreeMap::new(), numbers: BTreeMap::new() }.scalars(a, b)
}

/// A comparison of two expressions.
struct Alike<'k> {
    k: &'k Kernel,
    same: &'k [(Value, Value)],
    /// Results for names of indices.
    named: BTreeMap<(Expr, Expr), bool>,
    /// Results for names of numbers.
    numbers: BTreeMap<(Expr, Expr), bool>,
}

impl Alike<'_> {
    fn indices(&mut self, a: Expr, b: Expr) -> bool {
        let k = self.k;
        let resolved = (meaning(k, a), meaning(k, b));
        if resolved == (a, b) {
            return self.resolved(a, b);
        }
        if let Some(&known) = self.named.get(&resolved) {
            return known;
        }
        let alike = self.resolved(resolved.0, resolved.1);
        self.named.insert(resolved, alike);
        alike
    }

    fn resolved(&mut self, a: Expr, b: Expr) -> bool {
        let k = self.k;
        match (&k.exprs[a], &k.exprs[b]) {
            (ExprData::Ref(v), ExprData::Ref(w)) => v == w || self.same.contains(&(*v, *w)),
            (ExprData::Op { op: x, args: p }, ExprData::Op { op: y, args: q }) => {
                x == y && p.len() == q.len() && p.iter().zip(q).all(|(&e, &f)| self.indices(e, f))
            }
            (&ExprData::Index(x), &ExprData::Index(y)) => self.scalars(x, y),
            _ => same_expr(k, a, b),
        }
    }

    fn scalars(&mut self, a: Expr, b: Expr) -> bool {
        let k = self.k;
        match (&k.exprs[a], &k.exprs[b]) {
            (ExprData::Ref(v), ExprData::Ref(w)) if v == w => is_constant(k, a),
            (ExprData::Ref(v), ExprData::Ref(w)) => {
                let inits = let_init(k, *v).zip(let_init(k, *w));
                let Some((x, y)) = inits else { return false };
                if let Some(&known) = self.numbers.get(&(x, y)) {
                    return known;
                }
                let alike = self.scalars(x, y);
                self.numbers.insert((x, y), alike);
                alike
            }
            (ExprData::View(v), ExprData::View(w)) => {
                let mut at = |(x, y): (&Range, &Range)| match (x, y) {
                    (Range::At(x), Range::At(y)) => self.indices(*x, *y),
                    _ => false,
                };
                let mut ranges = || v.ranges.iter().zip(&w.ranges).all(&mut at);
                v.base == w.base && v.ranges.len() == w.ranges.len() && is_constant(k, a) && ranges()
            }
            (ExprData::Cast { elem: x, arg: p }, ExprData::Cast { elem: y, arg: q })
            | (ExprData::Bits { elem: x, arg: p }, ExprData::Bits { elem: y, arg: q }) => {
                x == y && self.scalars(*p, *q)
            }
            (ExprData::Op { op: x, args: p }, ExprData::Op { op: y, args: q }) => {
                x == y && p.len() == q.len() && p.iter().zip(q).all(|(&e, &f)| self.scalars(e, f))
            }
            _ => self.indices(a, b) && matches!(k.exprs[a], ExprData::Int(_) | ExprData::Float(_) | ExprData::Index(_)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::alike;
    use tilec_ir::diag::Sink;
    use tilec_ir::kernel::StmtData;

    #[test]
    fn names_of_names_stand_for_what_these_name() {
        let source = "kernel t(A: gmem f32[M, 4])\n    grid (i: M)\n{\n    let a = i\n    let b = a\n    let c = i + 1\n    let d = c\n    let e = a + 1\n}\n";
        let k = tilec_ir::parser::parse(source, &mut Sink::new()).expect("a program").kernels.remove(0);
        let inits: Vec<_> = k
            .statements()
            .into_iter()
            .filter_map(|s| match k.stmts[s] {
                StmtData::Let { init, .. } => Some(init),
                _ => None,
            })
            .collect();
        assert!(alike(&k, inits[0], inits[1], &[]));
        assert!(alike(&k, inits[3], inits[4], &[]));
        assert!(!alike(&k, inits[1], inits[3], &[]));
    }
}
