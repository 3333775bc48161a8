//! `multiple n` of tensors as preconditions.
//!
//! Which dimension is contiguous may be a compile-time parameter (`A: gmem T[M, K] LA multiple 8`), so what the promise says is
//! known once that has a value: the extent of the contiguous dimension and every other stride are multiples of `n`.

use crate::Cx;
use crate::analysis::facts::{Stride, contiguous_dim, stride};
use crate::rewrite::same_expr;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported};
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{Kernel, ValueDef};
use tilec_ir::ops::Op;

/// Replaces the promises of all tensors. Leaves: `where` clauses that say the same, each once.
pub(super) fn expand(k: &mut Kernel, cx: &mut Cx<'_>) -> Result<(), Reported> {
    let mut result = Ok(());
    for v in k.params.clone() {
        let ValueDef::Tensor(t) = &mut k.values[v].def else { continue };
        let Some(promise) = t.multiple.take() else { continue };
        if let Err(d) = require(k, v, promise) {
            result = Err(cx.report(*d));
        }
    }
    result
}

fn require(k: &mut Kernel, tensor: Value, promise: Expr) -> Result<(), Box<Diagnostic>> {
    let span = k.expr_spans[promise];
    let name = k.values[tensor].name.clone();
    // What else it may be, the verifier refuses.
    let Some(n) = k.as_int(promise).filter(|&n| n > 1) else { return Ok(()) };
    let Some(contiguous) = contiguous_dim(k, tensor) else {
        let message = format!("`{name}` has no contiguous dimension, whose elements could come in groups of {n}");
        let note = "give a dimension stride 1, or promise what is true of the strides in `where`";
        return Err(Box::new(Diagnostic::error(codes::BAD_DEFINE, span, message).with_note(note)));
    };
    let never = |what: String| {
        let message = format!("`{name}` is never a multiple of {n}: {what}");
        let d = Diagnostic::error(codes::FALSE_PRECONDITION, span, message);
        Err(Box::new(d.with_note("a compile-time parameter has a value that the kernel does not allow")))
    };
    let shape = k.tensor_ty(tensor).map(|t| t.shape.clone()).unwrap_or_default();
    for (d, &extent) in shape.iter().enumerate() {
        let all = if d == contiguous {
            match k.as_int(extent) {
                Some(x) if x % n == 0 => continue,
                Some(x) => return never(format!("its contiguous dimension has {x} elements")),
                None => k.clone_expr(extent, &mut |_, _| None),
            }
        } else {
            match stride(k, tensor, d) {
                Some(Stride::Const(s)) if s % n == 0 => continue,
                Some(Stride::Const(s)) => return never(format!("dimension {d} has stride {s}")),
                Some(Stride::Value(v)) => k.value_ref(v, span),
                None => continue,
            }
        };
        let (divisor, zero) = (k.int(n, span), k.int(0, span));
        let rest = k.binary(Op::Rem, all, divisor, span);
        let condition = k.binary(Op::Eq, rest, zero, span);
        if !k.requires.iter().any(|&e| same_expr(k, e, condition)) {
            k.requires.push(condition);
        }
    }
    Ok(())
}
