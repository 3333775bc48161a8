//! Ways out in terms of compile-time parameters, where the source writes these: a schedule that says `stages STAGES` is
//! changed by `-D STAGES=3`, tensors that say `multiple ALIGN` by `-D ALIGN=8`, and what the model chose is said to be
//! its choice.

use super::answer::Known;
use super::other_values::OtherValues;
use crate::compile::CompiledKernel;
use crate::compile::demands::{self, DemandStatus};
use std::collections::BTreeSet;
use tilec_ir::demands::What;
use tilec_ir::entities::Expr;
use tilec_ir::kernel::{ConstValue, ExprData, Kernel, ValueDef};
use tilec_ir::types::Order;

/// What a slot more than two is for: loads of one iteration run while those of the next are requested.
const SLOTS: i64 = 3;

/// The largest alignment in elements: 16 bytes of 4 bits.
const ALIGNED: i64 = 32;

/// The parameter that an expression is.
fn parameter(k: &Kernel, e: Expr) -> Option<&str> {
    match k.exprs[e] {
        ExprData::Ref(v) if matches!(k.values[v].def, ValueDef::ConstParam(_)) => Some(&k.values[v].name),
        _ => None,
    }
}

/// A way out that names a clause of the schedule, in terms of the parameters of this clause.
pub(super) fn in_words(kernel: &CompiledKernel, text: String) -> String {
    let Some(written) = &kernel.tile.source_kernel else { return text };
    let (k, schedule) = (&written.kernel, &written.kernel.schedule);
    if let Some(name) = schedule.stages.and_then(|e| parameter(k, e)) {
        if text == "write `stages 2` or more, or leave `stages` out" {
            return format!("`-D {name}={SLOTS}`, or 2 and more slots as there is room for");
        }
        if let Some((count, rest)) = text.strip_prefix("write `stages ").and_then(|t| t.split_once('`')) {
            return format!("`-D {name}={count}`{}", rest.strip_prefix(" in the kernel's `schedule`").unwrap_or(rest));
        }
    }
    let tile: Vec<&str> =
        schedule.warp_tile.iter().flat_map(|&(rows, cols)| [rows, cols]).filter_map(|e| parameter(k, e)).collect();
    if text == "leave `warp_tile` out of the schedule" && !tile.is_empty() {
        return of_warp_tile(kernel, &tile);
    }
    text
}

fn of_warp_tile(kernel: &CompiledKernel, names: &[&str]) -> String {
    let number = |name: &&str| {
        kernel.tile.parameters.iter().find_map(|(own, value)| match value {
            ConstValue::Int(x) if own == name => Some(format!("{name}={x}")),
            _ => None,
        })
    };
    let values = names.iter().filter_map(number).collect::<Vec<_>>().join(" ");
    let is_chosen = |name: &&str| kernel.tile.chosen.iter().any(|(own, _)| own == name);
    match &kernel.tile.choice {
        Some(choice) if names.iter().all(is_chosen) => format!(
            "nothing, for the sizes of the prediction: {values} are chosen by the model, of {} legal candidates; `-D` gives others",
            choice.candidates
        ),
        _ if names.iter().all(is_chosen) => {
            format!("{values} are chosen by the compiler, without a prediction: `-D` gives others")
        }
        _ => format!("other values than {values} (`-D`)"),
    }
}

/// The value of an alignment parameter with which a property holds that does not hold now, as an option.
pub(super) fn aligned(known: &Known<'_>, kernel: &CompiledKernel, what: What) -> Option<String> {
    let k = &kernel.tile.source_kernel.as_ref()?.kernel;
    let names: BTreeSet<&str> = k
        .params
        .iter()
        .filter_map(|&v| k.tensor_ty(v)?.multiple)
        .flat_map(|e| k.children(e).into_iter().chain([e]).filter_map(|e| parameter(k, e)).collect::<Vec<_>>())
        .collect();
    names.into_iter().find_map(|name| {
        let now = kernel.tile.parameters.iter().find_map(|(own, value)| match value {
            ConstValue::Int(x) if own == name => Some(*x),
            _ => None,
        })?;
        let larger =
            std::iter::successors(Some(now.max(1)), |n| n.checked_mul(2)).skip(1).take_while(|&n| n <= ALIGNED);
        larger
            .into_iter()
            .find(|&value| holds(known, kernel, what, (name, &value.to_string())))
            .map(|n| format!("-D {name}={n}"))
    })
}

/// The other order of a tensor with which a property holds that does not hold now, as an option.
pub(super) fn ordered(known: &Known<'_>, kernel: &CompiledKernel, what: What) -> Option<String> {
    kernel.tile.parameters.iter().find_map(|(name, value)| {
        let other = match value {
            ConstValue::Order(Order::Row) => Order::Col,
            ConstValue::Order(Order::Col) => Order::Row,
            _ => return None,
        };
        holds(known, kernel, what, (name, other.name())).then(|| format!("-D {name}={}", other.name()))
    })
}

/// Whether a property holds with another value of a parameter.
fn holds(known: &Known<'_>, kernel: &CompiledKernel, what: What, (name, value): (&str, &str)) -> bool {
    OtherValues::of(known, kernel, &[(name, value.to_owned())]).is_some_and(|other| {
        let own = other.kernel();
        let judged = demands::judged(own.tile.demanding(), &own.lowered, (None, &other.program.source), what);
        matches!(judged, DemandStatus::Holds)
    })
}
