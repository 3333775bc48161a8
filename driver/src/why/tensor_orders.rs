//! Tensors in the other order, `row` or `col`: by the parameter that the source has for it, or where the tensor is declared.

use super::answer::Known;
use super::programs::Change;
use crate::compile::CompiledKernel;
use tilec_ir::diag::Span;
use tilec_ir::entities::Value;
use tilec_ir::fix_locations::FixLocation;
use tilec_ir::kernel::Kernel;
use tilec_ir::types::{Order, OrderRef, Strides};

/// A tensor in another order.
pub(super) struct OtherOrder {
    /// The parameter and its value: `LA=col`.
    pub(super) option: Option<String>,
    /// The tensor and its order, in words.
    pub(super) words: String,
    pub(super) change: Change,
}

/// The tensor `name` in an order; `None`: the source says neither `row` nor `col` of it.
pub(super) fn with(known: &Known<'_>, kernel: &CompiledKernel, name: &str, order: Order) -> Option<OtherOrder> {
    let k = &kernel.tile.source_kernel.as_ref()?.kernel;
    let v = k.params.iter().copied().find(|&v| k.values[v].name == name)?;
    let words = format!("`{name}` declared as `{}`", order.name());
    let Strides::Ordered(now) = k.tensor_ty(v)?.strides else { return None };
    let (option, change) = match now {
        OrderRef::Param(parameter) => {
            let parameter = &k.values[parameter].name;
            let option = format!("{parameter}={}", order.name());
            (Some(option), Change::of_values(&[(parameter, order.name().to_owned())]))
        }
        OrderRef::Known(_) => (None, declared(known, k, v, order)?),
    };
    Some(OtherOrder { option, words, change })
}

/// All tensors of a kernel with two dimensions or more, each in the order that it does not have.
pub(super) fn all(known: &Known<'_>, kernel: &CompiledKernel) -> Vec<OtherOrder> {
    let k = &kernel.tile.specialized;
    let other = |&v: &Value| {
        let ty = k.tensor_ty(v).filter(|ty| ty.shape.len() > 1 && ty.scratch.is_none())?;
        let Strides::Ordered(OrderRef::Known(now)) = ty.strides else { return None };
        let order = if now == Order::Row { Order::Col } else { Order::Row };
        with(known, kernel, &k.values[v].name, order)
    };
    let mut orders: Vec<OtherOrder> = k.params.iter().filter_map(other).collect();
    // A parameter may be that of several tensors.
    let mut seen: Vec<Change> = Vec::new();
    orders.retain(|own| {
        let is_new = !seen.contains(&own.change);
        seen.push(own.change.clone());
        is_new
    });
    orders
}

/// Where a tensor is declared, from its name to its order.
pub(super) fn declaration(k: &Kernel, v: Value) -> Option<Span> {
    let begins = |span: &Span| span.start == k.values[v].span.start && !span.is_none();
    k.fix_locations.iter().filter(|(what, _)| *what == FixLocation::Tensor).map(|(_, span)| *span).find(begins)
}

/// The order in the declaration of a tensor, behind its extents.
fn declared(known: &Known<'_>, k: &Kernel, v: Value, order: Order) -> Option<Change> {
    let span = declaration(k, v)?;
    let text = known.text().get(span.start as usize..span.end as usize)?;
    let behind = text.find(']')? + 1;
    let rest = &text[behind..];
    let word = rest.trim_start();
    let at = |offset: usize| Some(span.start + u32::try_from(offset).ok()?);
    let own = [Order::Row, Order::Col].into_iter().map(Order::name);
    let written = own.into_iter().find(|name| word.split(|c: char| !c.is_alphanumeric()).next() == Some(name));
    match written {
        Some(name) => {
            let start = behind + (rest.len() - word.len());
            Change::of_part(known.text(), Span { start: at(start)?, end: at(start + name.len())? }, order.name())
        }
        None => {
            Change::of_part(known.text(), Span { start: at(behind)?, end: at(behind)? }, &format!(" {}", order.name()))
        }
    }
}
