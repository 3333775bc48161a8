//! Ways out of messages and demands, as changes of the program that can be tried.

use super::advice::{Advice, printed};
use super::answer::Known;
use super::programs::Change;
use super::tensor_orders::{self, OtherOrder};
use super::{by_parameters, channel_slots, element_types, moved, numbers, operands, steps, through_buffer};
use crate::compile::CompiledKernel;
use crate::compile::demands::way_out::{By, WayOut};
use tilec_ir::diag::{Diagnostic, Edit, Span, declare_where};
use tilec_ir::kernel::{ConstValue, Kernel};
use tilec_ir::parser::HEADER_CLAUSES;
use tilec_ir::types::Order;
use tilec_passes::required;

/// What a slot more than two is for: loads of one iteration run while those of the next are requested.
const SLOTS: i64 = 3;

/// A way out of a demand, in terms of the parameters that the program has for it.
pub(super) fn of_way_out(known: &Known<'_>, kernel: &CompiledKernel, way: &WayOut) -> Vec<Advice> {
    match way.by {
        By::Hand => vec![of_text(known, kernel, &way.text)],
        By::Question => vec![Advice::question(&way.text)],
        By::Schedule(word, value) => vec![of_item(known, kernel, (word, value), &way.text)],
        By::Slots(ref channel, n) => vec![channel_slots::of_channel(known, kernel, (channel, n), &way.text)],
        By::Resident(blocks) => resident(known, kernel, blocks),
        By::Step(copy, count) => vec![steps::advice(known, kernel, (copy, count), &way.text)],
        By::Order(ref tensor, order) => vec![of_order(known, kernel, (tensor, order), &way.text)],
        By::Elements(from, to) => vec![match element_types::change(known, kernel, (from, to)) {
            Some((option, change)) => Advice::by(format!("{option}{}", way.text), Some(change)),
            None => Advice::by_hand(&way.text),
        }],
        By::Buffer => {
            through_buffer::change(known, kernel).into_iter().map(|c| Advice::by(&way.text, Some(c))).collect()
        }
        // Other values are tried for every prediction.
        By::Parameters if numbers::of(known, kernel).is_empty() => vec![Advice::by_hand(&way.text)],
        By::Parameters => Vec::new(),
    }
}

/// What a message advises.
pub(super) fn of_diagnostic(known: &Known<'_>, kernel: &CompiledKernel, d: &Diagnostic) -> Vec<Advice> {
    let mut ways = Vec::new();
    for text in d.ways_out() {
        let declared = !d.needs.is_empty() && *text == declare_where(&d.needs);
        ways.push(match &d.fix {
            _ if declared => of_preconditions(known, kernel, &d.needs, ""),
            Some(edit) if d.needs.is_empty() => Advice::by(text, Change::of_edit(known.text(), edit)),
            _ => match operands::change(known, kernel, text, d.span)
                .or_else(|| moved::change(known, kernel, text, d.span))
            {
                Some(change) => Advice::by(text, Some(change)),
                None => of_text(known, kernel, text),
            },
        });
    }
    ways
}

/// Preconditions. `what`: what holds with them.
pub(super) fn of_preconditions(known: &Known<'_>, kernel: &CompiledKernel, needs: &str, what: &str) -> Advice {
    let k = &kernel.tile.specialized;
    let mut text = declare_where(needs);
    if k.clauses.iter().any(|(word, _)| word == "where") {
        text.push_str(", after a comma in the existing `where`");
    }
    text.push_str(what);
    let change = required(k, needs).and_then(|edit| Change::of_edit(known.text(), &edit));
    Advice::by(text, change)
}

/// Advice of a pass in words that say which change it is.
fn of_text(known: &Known<'_>, kernel: &CompiledKernel, text: &str) -> Advice {
    if let Some(advice) = of_words(known, kernel, text) {
        return advice;
    }
    let k = &kernel.tile.specialized;
    if let Some(word) = text.strip_prefix("leave `").and_then(|rest| rest.strip_suffix("` out of the schedule")) {
        return Advice::by(text, k.schedule_item(word).and_then(|span| Change::of_part(known.text(), span, "")));
    }
    Advice::by_hand(text)
}

/// A tensor in another order: by the parameter of its order, if it has one, or as it is declared.
fn of_order(known: &Known<'_>, kernel: &CompiledKernel, (tensor, order): (&str, Order), text: &str) -> Advice {
    match tensor_orders::with(known, kernel, tensor, order) {
        Some(OtherOrder { option: Some(option), change, .. }) => {
            Advice::by(format!("`-D {option}`: {text}"), Some(change))
        }
        Some(own) => Advice::by(text, Some(own.change)),
        None => Advice::by_hand(text),
    }
}

/// An item of the schedule with a value: by the parameter that the source has there, else in the source.
pub(super) fn of_item(known: &Known<'_>, kernel: &CompiledKernel, (word, value): (&str, u64), text: &str) -> Advice {
    if let Some(name) = by_parameters::of_item(kernel, word) {
        return Advice::by(format!("`-D {name}={value}`"), Some(Change::of_values(&[(name, value.to_string())])));
    }
    let edit = scheduled(&kernel.tile.specialized, word, value);
    Advice::by(text, edit.and_then(|edit| Change::of_edit(known.text(), &edit)))
}

/// The change of the source that gives an item of the schedule a value.
fn scheduled(k: &Kernel, word: &str, value: u64) -> Option<Edit> {
    let edit = |span: Span, text: String| Some(Edit { span, text, behind: None, means: None });
    if let Some(item) = k.schedule_item(word) {
        return edit(item, format!(" {word} {value}"));
    }
    let behind = k.clauses.iter().filter(|(_, c)| k.schedule.span.start <= c.start && c.end <= k.schedule.span.end);
    if let Some((_, last)) = behind.max_by_key(|(_, c)| c.end).filter(|_| !k.schedule.span.is_none()) {
        return edit(Span { start: last.end, end: last.end }, format!(" {word} {value}"));
    }
    let headers = k.clauses.iter().filter(|(word, _)| HEADER_CLAUSES.contains(&word.as_str()));
    let at = headers.min_by_key(|(_, c)| c.start)?.1.start;
    edit(Span { start: at, end: at }, format!(" schedule {{ {word} {value} }}"))
}

/// What has so many blocks resident, as far as it is faster: fewer registers, or fewer slots.
fn resident(known: &Known<'_>, kernel: &CompiledKernel, blocks: u64) -> Vec<Advice> {
    let least = of_item(known, kernel, ("min_ctas", blocks), &format!("`min_ctas {blocks}` in the schedule"));
    let slots = u64::from(kernel.report.stages);
    let fewer = (slots > 2).then(|| slots - 1).into_iter().chain((slots > 3).then_some(2));
    let fewer = fewer.map(|n| of_item(known, kernel, ("stages", n), &format!("`stages {n}` in the schedule")));
    let tried = std::iter::once(least).chain(fewer).map(|advice| advice.judged(known, kernel));
    let faster =
        tried.filter(|advice| advice.gain().is_some_and(|(now, then)| then < now && printed(then) != printed(now)));
    faster.collect()
}

/// Advice of a pass that names a clause of the schedule, in terms of the parameters of this clause.
pub(super) fn of_words(known: &Known<'_>, kernel: &CompiledKernel, text: &str) -> Option<Advice> {
    if text == "write `stages 2` or more, or leave `stages` out" {
        let slots = u64::try_from(SLOTS).unwrap_or(2);
        let text = format!("`stages {slots}` in the schedule, or 2 and more slots as there is room for");
        return Some(of_item(known, kernel, ("stages", slots), &text));
    }
    let count = text.strip_prefix("write `stages ").and_then(|rest| rest.split_once('`')).map(|(count, _)| count);
    if let Some(count) = count.and_then(|count| count.parse().ok()) {
        return Some(of_item(known, kernel, ("stages", count), text));
    }
    if text != "leave `warp_tile` out of the schedule" {
        return None;
    }
    let written = kernel.tile.source_kernel.as_ref()?;
    let (k, schedule) = (&written.kernel, &written.kernel.schedule);
    let tile: Vec<&str> = schedule
        .warp_tile
        .iter()
        .flat_map(|&(rows, cols)| [rows, cols])
        .filter_map(|e| by_parameters::parameter(k, e))
        .collect();
    (!tile.is_empty()).then(|| of_warp_tile(known, kernel, &tile))
}

fn of_warp_tile(known: &Known<'_>, kernel: &CompiledKernel, names: &[&str]) -> Advice {
    let number = |name: &&str| {
        kernel.tile.parameters.iter().find_map(|(own, value)| match value {
            ConstValue::Int(x) if own == name => Some(format!("{name}={x}")),
            _ => None,
        })
    };
    let values = names.iter().filter_map(number).collect::<Vec<_>>().join(" ");
    let is_chosen = |name: &&str| kernel.tile.chosen.iter().any(|(own, _)| own == name);
    match &kernel.tile.choice {
        Some(choice) if names.iter().all(is_chosen) => Advice::question(format!(
            "{values} are chosen by the model, for the sizes of the prediction, of {} legal candidates; `-D` gives others",
            choice.candidates
        )),
        _ if names.iter().all(is_chosen) => {
            Advice::question(format!("{values} are chosen by the compiler, without a prediction: `-D` gives others"))
        }
        _ => {
            let item = kernel.tile.specialized.schedule_item("warp_tile");
            let change = item.and_then(|span| Change::of_part(known.text(), span, ""));
            Advice::by(format!("other values than {values} (`-D`), or no `warp_tile` in the schedule"), change)
        }
    }
}
