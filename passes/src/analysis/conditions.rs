//! Which conditions and indices are invariant, and which are equal to one another.

use crate::rewrite::same_expr;
use std::collections::BTreeSet;
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, Range, StmtData, ValueDef};
use tilec_ir::typing::let_init;
use tilec_ir::values::is_constant;

/// Whether a name has one value in a launch.
pub(crate) fn is_of_launch(k: &Kernel, v: Value) -> bool {
    matches!(k.values[v].def, ValueDef::Size | ValueDef::Stride | ValueDef::Scalar { .. })
}

/// Whether a condition has one value throughout a run of a block of threads.
pub(crate) fn is_fixed(k: &Kernel, e: Expr) -> bool {
    let own = match &k.exprs[e] {
        ExprData::Ref(v) => {
            let init = let_init(k, *v);
            is_of_launch(k, *v)
                || matches!(k.values[*v].def, ValueDef::Grid)
                || init.is_some_and(|init| is_fixed(k, init))
        }
        ExprData::Int(_) | ExprData::Float(_) | ExprData::Op { .. } => true,
        // Of elements of tensors that nobody writes.
        ExprData::Index(arg) => is_constant(k, *arg),
        ExprData::View(_) | ExprData::Cast { .. } | ExprData::Bits { .. } => is_constant(k, e),
        _ => false,
    };
    own && k.children(e).into_iter().all(|c| is_fixed(k, c))
}

/// The block of what a kernel does: its body, or what stands under a condition around all of that but names and declarations, such as whether there is work for
/// a block. The condition has one value throughout.
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

/// The variables of loops with which the value of a condition changes, if it changes with nothing else, and the names in it.
pub(crate) fn changes_with(k: &Kernel, e: Expr) -> Option<BTreeSet<Value>> {
    let mut all = BTreeSet::new();
    if let ExprData::Ref(v) = k.exprs[e] {
        match k.values[v].def {
            ValueDef::Loop => all.extend([v]),
            ValueDef::Let => {
                all.extend(changes_with(k, let_init(k, v)?)?);
                all.extend([v]);
            }
            _ if is_fixed(k, e) => {}
            _ => return None,
        }
        return Some(all);
    }
    match k.exprs[e] {
        ExprData::Int(_) | ExprData::Float(_) | ExprData::Op { .. } | ExprData::Index(_) => {}
        ExprData::View(_) | ExprData::Cast { .. } | ExprData::Bits { .. } if is_constant(k, e) => {}
        _ => return None,
    }
    for child in k.children(e) {
        all.extend(changes_with(k, child)?);
    }
    Some(all)
}

/// Whether two index expressions have the same value: names stand for what they name.
pub(crate) fn alike(k: &Kernel, a: Expr, b: Expr, same: &[(Value, Value)]) -> bool {
    let resolved = |mut e: Expr| {
        while let ExprData::Ref(v) = k.exprs[e]
            && let Some(init) = let_init(k, v)
        {
            e = init;
        }
        e
    };
    let (a, b) = (resolved(a), resolved(b));
    match (&k.exprs[a], &k.exprs[b]) {
        (ExprData::Ref(v), ExprData::Ref(w)) => v == w || same.contains(&(*v, *w)),
        (ExprData::Op { op: x, args: p }, ExprData::Op { op: y, args: q }) => {
            x == y && p.len() == q.len() && p.iter().zip(q).all(|(&e, &f)| alike(k, e, f, same))
        }
        (&ExprData::Index(x), &ExprData::Index(y)) => numbers_alike(k, x, y, same),
        _ => same_expr(k, a, b),
    }
}

/// The same of numbers that indices are made of. What a register variable holds is no such thing: it may have changed between the two.
pub(crate) fn numbers_alike(k: &Kernel, a: Expr, b: Expr, same: &[(Value, Value)]) -> bool {
    match (&k.exprs[a], &k.exprs[b]) {
        (ExprData::Ref(v), ExprData::Ref(w)) if v == w => is_constant(k, a),
        (ExprData::Ref(v), ExprData::Ref(w)) => {
            let inits = let_init(k, *v).zip(let_init(k, *w));
            inits.is_some_and(|(x, y)| numbers_alike(k, x, y, same))
        }
        (ExprData::View(v), ExprData::View(w)) => {
            let at = |(x, y): (&Range, &Range)| match (x, y) {
                (Range::At(x), Range::At(y)) => alike(k, *x, *y, same),
                _ => false,
            };
            let ranges = || v.ranges.iter().zip(&w.ranges).all(at);
            v.base == w.base && v.ranges.len() == w.ranges.len() && is_constant(k, a) && ranges()
        }
        (ExprData::Cast { elem: x, arg: p }, ExprData::Cast { elem: y, arg: q })
        | (ExprData::Bits { elem: x, arg: p }, ExprData::Bits { elem: y, arg: q }) => {
            x == y && numbers_alike(k, *p, *q, same)
        }
        (ExprData::Op { op: x, args: p }, ExprData::Op { op: y, args: q }) => {
            x == y && p.len() == q.len() && p.iter().zip(q).all(|(&e, &f)| numbers_alike(k, e, f, same))
        }
        _ => alike(k, a, b, same) && matches!(k.exprs[a], ExprData::Int(_) | ExprData::Float(_) | ExprData::Index(_)),
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
