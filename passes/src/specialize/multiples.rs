//! `multiple n` of tensors as preconditions.
//!
//! The contiguous dimension may depend on a compile-time parameter (`A: gmem T[M, K] LA multiple 8`), so the promise is
//! resolved once that has a value: the extent of the contiguous dimension and every other stride are multiples of `n`.
//! In a dimension of several modes the innermost is contiguous, and the others have strides.

use crate::Cx;
use crate::analysis::facts::{Stride, contiguous_dim, strides};
use crate::rewrite::same_expr;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported};
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{Kernel, ValueDef};
use tilec_ir::ops::Op;
use tilec_ir::typing::factors;

/// Replaces the promises of all tensors by equivalent `where` clauses, each once.
pub(super) fn expand(k: &mut Kernel, cx: &mut Cx<'_>) -> Result<(), Reported> {
    let mut result = Ok(());
    for d in assume(k) {
        result = Err(cx.report(d));
    }
    result
}

/// [`expand`]; returns errors in the promises.
pub(crate) fn assume(k: &mut Kernel) -> Vec<Diagnostic> {
    let mut wrong = Vec::new();
    for v in k.params.clone() {
        let ValueDef::Tensor(t) = &mut k.values[v].def else { continue };
        let Some(promise) = t.multiple.take() else { continue };
        if let Err(d) = require(k, v, promise) {
            wrong.push(*d);
        }
    }
    wrong
}

fn require(k: &mut Kernel, tensor: Value, promise: Expr) -> Result<(), Box<Diagnostic>> {
    let span = k.expr_spans[promise];
    let name = k.values[tensor].name.clone();
    let n = match k.as_int(promise) {
        Some(n) if n < 1 => {
            let message = format!("`multiple` of `{name}` is {n}, not at least 1");
            let d = Diagnostic::error(codes::BAD_DEFINE, span, message);
            return Err(Box::new(d.with_note("`multiple 1` promises nothing: any row may begin at any element")));
        }
        Some(n) if n > 1 => n,
        _ => return Ok(()),
    };
    let Some(contiguous) = contiguous_dim(k, tensor) else {
        let message = format!("`{name}` has no contiguous dimension, whose elements could come in groups of {n}");
        let note = "give a dimension stride 1, or state the alignment of the strides in `where`";
        return Err(Box::new(Diagnostic::error(codes::BAD_DEFINE, span, message).with_note(note)));
    };
    let never = |what: String| {
        let message = format!("`{name}` is never a multiple of {n}: {what}");
        let d = Diagnostic::error(codes::FALSE_PRECONDITION, span, message);
        Err(Box::new(d.with_note("a compile-time parameter has a value that the kernel does not allow")))
    };
    let mut all: Vec<Expr> = Vec::new();
    let rank = k.tensor_ty(tensor).map_or(0, |t| t.shape.len());
    for d in 0..rank {
        let mut steps = strides(k, tensor, d).unwrap_or_default();
        if d == contiguous {
            steps.pop();
            let extent = k.tensor_ty(tensor).and_then(|t| match t.modes(d) {
                Some(modes) => modes.last().map(|m| m.extent),
                None => t.shape.get(d).copied(),
            });
            let Some(extent) = extent else { continue };
            match k.as_int(extent) {
                Some(x) if x % n == 0 => {}
                Some(x) => return never(format!("its contiguous dimension has {x} elements")),
                None => all.push(k.copy_expr(extent)),
            }
        }
        for step in steps {
            match step {
                Stride::Const(s) if s % n == 0 => {}
                Stride::Const(s) => return never(format!("dimension {d} has stride {s}")),
                Stride::Value(v) => all.push(k.value_ref(v, span)),
                Stride::Computed(e) => all.push(k.copy_expr(e)),
            }
        }
    }
    // Padding in front of the elements is a multiple of these strides.
    all.extend(
        k.tensor_ty(tensor).map_or(Vec::new(), |t| t.padded.clone()).iter().map(|p| k.value_ref(p.stride, span)),
    );
    // A product of extents is a multiple of what each factor is.
    let parts: Vec<_> = all.iter().map(|&e| factors(k, &[e])).collect();
    let follows = |i: usize| {
        let size = |j: usize| (parts[j].1.len(), parts[j].0);
        let part = |j: usize| parts[j].0 == 1 && size(j) < size(i);
        (0..parts.len()).any(|j| part(j) && parts[j].1.iter().all(|f| parts[i].1.contains(f)))
    };
    let needed: Vec<Expr> = (0..all.len()).filter(|&i| !follows(i)).map(|i| all[i]).collect();
    for all in needed {
        let (divisor, zero) = (k.int(n, span), k.int(0, span));
        let rest = k.binary(Op::Rem, all, divisor, span);
        let condition = k.binary(Op::Eq, rest, zero, span);
        if !k.requires.iter().any(|&e| same_expr(k, e, condition)) {
            k.requires.push(condition);
        }
    }
    Ok(())
}
