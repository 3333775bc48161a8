//! Rewrites the product so that it reads the copy of an operand.

use super::operands::Operand;
use crate::analysis::uses::mentions;
use crate::specialize::roots;
use tilec_ir::diag::Span;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ExprData, Kernel, Range, ValueDef};
use tilec_ir::ops::Op;
use tilec_ir::types::{DimStride, ElemRef, Order, OrderRef, Strides, TensorTy};
use tilec_ir::typing::same_product;

/// The order of the copy: that of the tensor, or the transposed one.
pub(super) fn order(ty: &TensorTy, operand: &Operand) -> OrderRef {
    match ty.strides {
        Strides::Ordered(order) if !operand.reordered() => order,
        _ if operand.along + 1 == ty.shape.len() => OrderRef::Known(Order::Row),
        _ => OrderRef::Known(Order::Col),
    }
}

/// The dimensions that are rounded up: the contiguous one. If a parameter of the kernel decides which one that is, both
/// dimensions of a matrix.
pub(super) fn rounded(ty: &TensorTy, operand: &Operand) -> Vec<usize> {
    match order(ty, operand) {
        OrderRef::Known(_) => vec![operand.along],
        OrderRef::Param(_) => (ty.shape.len().saturating_sub(2)..ty.shape.len()).collect(),
    }
}

/// `ceildiv(e, n) * n`.
pub(super) fn round_up(k: &mut Kernel, e: Expr, n: u32, span: Span) -> Expr {
    let (a, b) = (k.int(i64::from(n), span), k.int(i64::from(n), span));
    let groups = k.binary(Op::CeilDiv, e, a, span);
    k.binary(Op::Mul, groups, b, span)
}

/// The names of the strides of a tensor with `rank` dimensions, as the parser gives them.
pub(super) fn stride_names(tensor: &str, rank: usize) -> Vec<String> {
    match rank {
        2 => vec![format!("{tensor}_ld")],
        n => (0..n.saturating_sub(1)).map(|i| format!("{tensor}_ld{i}")).collect(),
    }
}

/// The run-time strides of a tensor.
pub(super) fn own_strides(k: &Kernel, ty: &TensorTy) -> Vec<Value> {
    let mut all = ty.ld.clone();
    if let Strides::Explicit(list) = &ty.strides {
        for e in list.iter().flat_map(DimStride::strides) {
            crate::analysis::uses::for_each_ref(k, e, &mut |v| {
                if matches!(k.values[v].def, ValueDef::Stride) && !all.contains(&v) {
                    all.push(v);
                }
            });
        }
    }
    all
}

/// The type of a copy whose rows are multiples of `multiple` elements.
pub(super) fn aligned(elem: ElemRef, shape: Vec<Expr>, order: OrderRef, ld: Vec<Value>, multiple: Expr) -> TensorTy {
    let strides = Strides::Ordered(order);
    TensorTy {
        elem,
        shape,
        repeats: Vec::new(),
        padded: Vec::new(),
        strides,
        ld,
        pointers: false,
        scratch: None,
        align: None,
        multiple: Some(multiple),
        constant: false,
    }
}

/// Makes the kernel read `rows` instead of the operand.
pub(super) fn read_copy(k: &mut Kernel, rows: &str, operand: &Operand) -> Result<(), String> {
    let v = operand.tensor;
    let Some(ty) = k.tensor_ty(v).cloned() else { return Err("it is not a tensor".to_owned()) };
    let span = k.values[v].span;
    let strides = own_strides(k, &ty);
    let name = k.values[v].name.clone();
    let mut shape = ty.shape.clone();
    for d in rounded(&ty, operand) {
        shape[d] = round_up(k, shape[d], operand.multiple, span);
    }
    for d in rounded(&ty, operand) {
        extend_window_ends(k, (v, d), ty.shape[d], shape[d]);
    }
    let multiple = k.int(i64::from(operand.multiple), span);
    let ld = stride_names(rows, shape.len()).iter().map(|name| k.value(name, span, ValueDef::Stride)).collect();
    k.values[v].name = rows.to_owned();
    let copied = aligned(ty.elem, shape, order(&ty, operand), ld, multiple);
    k.values[v].def = ValueDef::Tensor(copied);
    k.strides = first_mentioned(k);
    k.sizes = still_mentioned(k);
    // Preconditions on strides that only the operand has move to the copy.
    let lost = |k: &Kernel, e: Expr| strides.iter().any(|s| !k.strides.contains(s) && mentions(k, e, *s));
    let requires = std::mem::take(&mut k.requires);
    k.requires = requires.into_iter().filter(|&e| !lost(k, e)).collect();
    match roots(k).into_iter().any(|e| lost(k, e)) {
        true => Err(format!("the kernel computes with a stride of `{name}`")),
        false => Ok(()),
    }
}

/// Windows that ended at the tensor's extent now end at that of the copy, whose padding is zero.
fn extend_window_ends(k: &mut Kernel, (tensor, dim): (Value, usize), old: Expr, new: Expr) {
    let ends: Vec<Expr> = k
        .exprs
        .values()
        .filter_map(|e| match e {
            ExprData::View(view) if view.base == tensor => match view.ranges.get(dim)? {
                Range::From { end, .. } => *end,
                Range::At(_) | Range::Gather(_) => None,
            },
            _ => None,
        })
        .collect();
    for end in ends {
        extend_end(k, end, old, new);
    }
}

/// Replaces the old extent by the new one in an end that is the extent, a minimum or maximum of it, or a selection.
fn extend_end(k: &mut Kernel, e: Expr, old: Expr, new: Expr) {
    if same_product(k, e, old) {
        let copy = k.copy_expr(new);
        k.exprs[e] = k.exprs[copy].clone();
        return;
    }
    let ExprData::Op { op, args } = k.exprs[e].clone() else { return };
    let through = match op {
        Op::Min | Op::Max => &args[..],
        Op::Select => &args[1..],
        _ => &[],
    };
    through.iter().for_each(|&arg| extend_end(k, arg, old, new));
}

/// The sizes that are still mentioned, without those that only an operand mentioned, such as the lines of a padded one.
fn still_mentioned(k: &Kernel) -> Vec<Value> {
    let roots = roots(k);
    k.sizes.iter().copied().filter(|&v| roots.iter().any(|&e| mentions(k, e, v))).collect()
}

/// The strides of all tensors in the order of the text.
fn first_mentioned(k: &Kernel) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    for ty in k.params.iter().filter_map(|&p| k.tensor_ty(p)) {
        for v in own_strides(k, ty) {
            if !all.contains(&v) {
                all.push(v);
            }
        }
    }
    all
}
