//! Other numbers of slots of written channels.

use super::advice::Advice;
use super::answer::Known;
use super::by_parameters;
use super::programs::Change;
use crate::compile::CompiledKernel;
use tilec_ir::diag::counted;
use tilec_ir::entities::Expr;
use tilec_ir::kernel::{ExprData, Kernel, ValueDef};

/// The number of slots of a channel of the source.
fn slots(k: &Kernel, channel: &str) -> Option<Expr> {
    k.values.values().filter(|v| v.name == channel).find_map(|v| match v.def {
        ValueDef::Channel { slots, .. } => Some(slots),
        _ => None,
    })
}

/// A channel with so many slots: by the parameter that the source has there, else in the source.
pub(super) fn of_channel(known: &Known<'_>, kernel: &CompiledKernel, (channel, n): (&str, u64), text: &str) -> Advice {
    let Some(written) = &kernel.tile.source_kernel else { return Advice::by_hand(text) };
    let k = &written.kernel;
    let Some(slots) = slots(k, channel) else { return Advice::by_hand(text) };
    if let Some(name) = by_parameters::parameter(k, slots) {
        return Advice::by(format!("`-D {name}={n}`"), Some(Change::of_values(&[(name, n.to_string())])));
    }
    let is_number = matches!(k.exprs[slots], ExprData::Int(_));
    let change = is_number.then(|| Change::of_part(known.text(), k.expr_spans[slots], &n.to_string())).flatten();
    Advice::by(text, change)
}

/// One slot more and one less of each channel that has several; those of one parameter are changed together.
pub(super) fn beside(known: &Known<'_>, kernel: &CompiledKernel) -> Vec<(String, Advice)> {
    let Some(block) = &kernel.tile.block_time else { return Vec::new() };
    let mut all: Vec<(String, Advice)> = Vec::new();
    for channel in &block.channels {
        for n in [channel.slots + 1, channel.slots.saturating_sub(1)].into_iter().filter(|&n| n > 0) {
            let text =
                format!("`slots {n}` for `{}`, which has {}", channel.name, counted(channel.slots as usize, "slot"));
            let advice = of_channel(known, kernel, (&channel.name, n), &text);
            let words = match advice.is_option() {
                true => advice.text().to_owned(),
                false => format!("`slots {n}` for `{}`", channel.name),
            };
            if all.iter().all(|(own, _)| *own != words) {
                all.push((words, advice));
            }
        }
    }
    all
}
