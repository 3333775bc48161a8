//! Merges contiguous modes of a dimension: a mode whose stride is the span of the next one. Modes of extent 1 are
//! dropped.
//!
//! Fewer modes need fewer divisions at run time, and a dimension with one mode is a plain one. The order of the
//! elements does not change, so only the type of the tensor does.

use tilec_ir::diag::Span;
use tilec_ir::entities::Expr;
use tilec_ir::kernel::{Kernel, ValueDef};
use tilec_ir::ops::Op;
use tilec_ir::types::{DimStride, Mode, Strides};
use tilec_ir::typing::factors;

/// Merges the modes of all tensors.
pub(super) fn run(k: &mut Kernel) {
    for v in k.params.clone() {
        let Some(t) = k.tensor_ty(v) else { continue };
        let Strides::Explicit(mut list) = t.strides.clone() else { continue };
        let (mut shape, own) = (t.shape.clone(), t.strided());
        for (stride, &dim) in list.iter_mut().zip(&own) {
            let size = &mut shape[dim];
            let DimStride::Modes(modes) = stride else { continue };
            let count = modes.len();
            let mut kept: Vec<Mode> = Vec::new();
            for mode in modes.clone() {
                if k.as_int(mode.extent) == Some(1) {
                    continue;
                }
                let spanned = factors(k, &[mode.extent, mode.stride]);
                let continues = |outer: &Mode| {
                    factors(k, &[outer.stride]) == spanned || (spanned.0 == 0 && k.as_int(outer.stride) == Some(0))
                };
                match kept.pop_if(|outer| continues(outer)) {
                    Some(outer) => {
                        let span = k.expr_spans[outer.extent];
                        let extent = k.binary(Op::Mul, outer.extent, mode.extent, span);
                        kept.push(Mode { extent, stride: mode.stride });
                    }
                    None => kept.push(mode),
                }
            }
            if kept.len() > 1 && kept.len() < count {
                *size = product(k, &kept).unwrap_or(*size);
            }
            *stride = match kept[..] {
                [] => DimStride::One(k.int(0, Span::default())),
                [one] => DimStride::One(one.stride),
                _ => DimStride::Modes(kept),
            };
        }
        if let ValueDef::Tensor(t) = &mut k.values[v].def {
            t.strides = Strides::Explicit(list);
            t.shape = shape;
        }
    }
}

/// The size of a dimension with these modes, in the same form as the parser gives a tuple, because the order of factors
/// affects what is provable.
fn product(k: &mut Kernel, modes: &[Mode]) -> Option<Expr> {
    let (first, rest) = modes.split_first()?;
    let span = k.expr_spans[first.extent];
    let mut product = k.copy_expr(first.extent);
    for mode in rest {
        let factor = k.copy_expr(mode.extent);
        product = k.binary(Op::Mul, product, factor, span);
    }
    Some(product)
}
