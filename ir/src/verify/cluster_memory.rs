//! Rule 33: an entry of distributed shared memory is passed on once.
//!
//! Its mbarrier goes through one phase: a second `signal` would complete the next one, which nobody awaits. So statements that pass entries on stand in no loop but one over the
//! entries.

use crate::codes;
use crate::diag::Diagnostic;
use crate::entities::{Block, Expr, Stmt, Value};
use crate::kernel::{ExprData, Kernel, StmtData};
use crate::types::TensorTy;
use crate::typing::{ViewDim, resolve_view};
use crate::verify::cx::Cx;

pub(super) fn check(cx: &mut Cx<'_, '_>) {
    let k = cx.k;
    if crate::cluster::memory(k).next().is_none() {
        return;
    }
    let mut found = Vec::new();
    again(k, k.body, &mut Vec::new(), &mut found);
    for (s, memory, around) in found {
        let (name, var) = (&k.values[memory].name, &k.values[around].name);
        let message = format!("a tile of `{name}` is passed again in each iteration over `{var}`");
        let d = Diagnostic::error(codes::BAD_SIGNAL, k.stmt_spans[s], message);
        cx.report(d.with_note(format!(
            "a launch passes each tile of `dsmem` once: index `{name}` by `{var}`, or move this behind the loop"
        )));
    }
}

/// Statements that pass on one entry in several iterations of a loop: what it is of, and the loop's variable.
fn again(k: &Kernel, block: Block, around: &mut Vec<Value>, found: &mut Vec<(Stmt, Value, Value)>) {
    for &s in &k.blocks[block] {
        if let Some((memory, index)) = entry(k, s)
            && let Some(&var) = around.iter().find(|&&var| !counts(k, index, var))
        {
            found.push((s, memory, var));
        }
        let var = match k.stmts[s] {
            StmtData::For { var, .. } => Some(var),
            _ => None,
        };
        around.extend(var);
        for b in k.sub_blocks(s) {
            again(k, b, around, found);
        }
        if var.is_some() {
            around.pop();
        }
    }
}

/// The entry that a statement stores, signals or awaits.
fn entry(k: &Kernel, s: Stmt) -> Option<(Value, Expr)> {
    let in_cluster = |v: Value| k.tensor_ty(v).is_some_and(TensorTy::is_of_cluster);
    match k.stmts[s] {
        StmtData::Signal { signals, index, .. } => in_cluster(signals).then_some((signals, index)),
        StmtData::Copy { dst, .. } => {
            let to = resolve_view(k, dst).filter(|to| in_cluster(to.base))?;
            match to.dims.first() {
                Some(&ViewDim::Fixed(index)) => Some((to.base, index)),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Whether an index is a loop's variable, or so much more or less.
fn counts(k: &Kernel, index: Expr, var: Value) -> bool {
    match &k.exprs[index] {
        ExprData::Ref(v) => *v == var,
        ExprData::Op { op: crate::ops::Op::Add | crate::ops::Op::Sub, args } => {
            args.iter().filter(|&&a| counts(k, a, var)).count() == 1
        }
        _ => false,
    }
}
