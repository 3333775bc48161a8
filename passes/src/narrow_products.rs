//! Products of 8-bit floats on targets without an instruction for them: both operands are converted to f16, which is
//! exact, and multiplied as f16.
//!
//! ```text
//! acc = mma(a, transpose(b), acc)   ->   acc = mma(cast<f16>(a), transpose(cast<f16>(b)), acc)
//! ```

use crate::Cx;
use crate::analysis::uses::{all_stmts, stmt_exprs};
use crate::select_mma::best_atom;
use tilec_ir::atoms::Inputs;
use tilec_ir::codes;
use tilec_ir::diag::Diagnostic;
use tilec_ir::entities::Expr;
use tilec_ir::kernel::{ExprData, Kernel, Mma};
use tilec_ir::target::Target;
use tilec_ir::types::{Elem, ElemRef};
use tilec_ir::typing::type_of;

/// Warp tile for testing whether there is an instruction; every instruction fits it.
pub(crate) const ANY_TILE: (u64, u64, u64) = (64, 64, 64);

/// Converts the operands, with a warning for each product.
pub(crate) fn run(k: &mut Kernel, cx: &mut Cx<'_>) {
    let target = cx.options.target;
    for (e, inputs) in convert(k, &k.clone(), target) {
        let message = format!(
            "{} has no product of {inputs} inputs: both operands are converted to f16, which is exact",
            target.name()
        );
        let note =
            "targets from sm_89 on multiply 8-bit floats; here f16 in memory takes twice the bytes and no conversion";
        cx.warn(Diagnostic::warning(codes::SCALAR_PRODUCT, k.expr_spans[e], message).with_note(note));
    }
}

/// The same without a warning. `bound`: the kernel with known types. Returns the products.
pub(crate) fn convert(k: &mut Kernel, bound: &Kernel, target: Target) -> Vec<(Expr, Inputs)> {
    let known = |e: Expr| match type_of(bound, e).ok().and_then(|t| t.elem()) {
        Some(ElemRef::Known(elem)) => Some(elem),
        _ => None,
    };
    let mut found = Vec::new();
    for e in all_stmts(k, k.body).into_iter().flat_map(|s| stmt_exprs(k, s)) {
        let ExprData::Mma(m) = k.exprs[e] else { continue };
        let (Some(a), Some(b), Some(acc), None) = (known(m.a), known(m.b), known(m.c), m.atom) else { continue };
        let inputs = Inputs { a, b };
        let narrow = [a, b].iter().all(|elem| matches!(elem, Elem::E4M3 | Elem::E5M2));
        if narrow && best_atom(target, true, (inputs, acc), ANY_TILE).is_none() {
            found.push((e, inputs));
        }
    }
    for &(e, _) in &found {
        let ExprData::Mma(m) = k.exprs[e] else { continue };
        let (a, b) = (as_f16(k, m.a), as_f16(k, m.b));
        k.exprs[e] = ExprData::Mma(Mma { a, b, ..m });
    }
    found
}

/// The operand converted, within its transpositions.
fn as_f16(k: &mut Kernel, e: Expr) -> Expr {
    let span = k.expr_spans[e];
    match k.exprs[e] {
        ExprData::Transpose(arg) => {
            let arg = as_f16(k, arg);
            k.expr(ExprData::Transpose(arg), span)
        }
        _ => k.expr(ExprData::Cast { elem: ElemRef::Known(Elem::F16), arg: e }, span),
    }
}
