//! `choose`: selects values for the compile-time parameters that are `auto`.
//!
//! The uses of a parameter determine its possible values: extents of a product's tiles, of warp tiles, of other tiles;
//! stages; rasterisation; threads. The search tests all combinations of powers of two against the rules of later passes. For
//! each legal combination the model (`choose::model`) predicts the time on the target's default card, for the sizes of
//! `--for` or large ones. The fastest is taken. Parameters that the command line gives keep their values, and the others are
//! chosen around them.
//!
//! Needs: parsed IR. Leaves: every parameter with a value as its default (the choice, or the value of the command line). Switched
//! off: tiles of 64 x 64 x 32 in warps of 32 x 32, one stage, no rasterisation, no `k_warps`; 64 along each dimension of other
//! tiles.

mod block;
mod box_rows;
mod cached;
mod cards;
mod choice_dependence;
mod choice_independent;
mod combinations;
mod combined;
mod combining;
mod copied_elements;
mod copies;
mod cost;
mod dispatch_rule;
mod domains;
mod exact_steps;
#[cfg(test)]
mod fit;
mod free_parameters;
mod illegal;
mod issue_counts;
mod kept;
mod kept_sectors;
mod literal_extents;
mod model;
mod other_values;
mod padding;
mod parameters;
pub(crate) mod predicted_losses;
mod prediction;
mod predictor;
mod product;
mod ranking;
mod registers;
mod roles;
mod search;
mod search_context;
mod search_result;
mod search_space;
mod several_products;
mod single_product;
mod sizes;
mod stage_count;
#[cfg(test)]
mod tests;
mod time_budget;
mod trial;
mod unit_work;
mod work;

pub use box_rows::BoxRows;
pub use cards::{CARDS, Card, Rates};
pub use combining::Combined;
pub use copied_elements::{Place, Unknown};
pub use dispatch_rule::{AtLeast, Branch, rule};
pub use free_parameters::{FreeParameter, free_parameters};
pub(crate) use issue_counts::known_int_in;
pub use issue_counts::{Runs, known_int, launched, most_on_multiprocessor, runs};
pub use kept::Kept;
pub use literal_extents::{LiteralExtent, literal_extents};
pub use model::launch::{Term, Terms};
pub(crate) use model::stream_k;
pub use other_values::{Other, with_other_values};
pub use padding::{ByData, Edge, Padding};
pub(crate) use parameters::value;
pub use parameters::{NAME, Role};
pub use prediction::{Added, Choice, Learned, Prediction, RejectReason, RunnerUp, Waits};
pub use predictor::Predictor;
pub use ranking::{Candidates, candidates};
pub use roles::{BlockTime, ChannelTime, HeldLoad, Launched, LoopTime, has_roles};
pub use search_result::Ranked;
pub use stage_count::depth;
pub use time_budget::TimeBudget;

use crate::analysis::uses::mentions;
use crate::specialize::given;
use crate::{Cx, Options};
use illegal::Illegal;
use parameters::{Auto, autos, bound, known_sizes, set};
use search_result::Failed;
use search_space::Space;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported, Sink};
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ConstValue, Kernel};
use tilec_ir::print::print_expr;

pub(crate) fn run(k: &mut Kernel, cx: &mut Cx<'_>) -> Result<(), Reported> {
    decide(k, cx).map(|_| ())
}

/// Runs this pass alone; a second run has nothing left to choose. Returns the choice and its reason, if the model
/// decided something.
///
/// # Errors
/// `Err` means that the sink holds at least one error.
pub fn apply(k: &mut Kernel, options: &Options, sink: &mut Sink) -> Result<Option<Choice>, Reported> {
    decide(k, &mut Cx::new(options, NAME, sink))
}

/// A kernel as the model sees it: operands of products that the target lacks are converted, as by `specialize`.
pub fn modelled(k: &Kernel, options: &Options) -> Kernel {
    let mut model = k.clone();
    crate::narrow_products::convert(&mut model, &choice_independent::bound(k), options.target);
    model
}

/// A specialised copy of a kernel with placeholder values for `auto` parameters. Properties that do not depend on these
/// parameters hold for the kernel.
///
/// # Errors
/// It cannot be specialised.
pub(crate) fn sketch(k: &Kernel, options: &Options) -> Result<Kernel, Reported> {
    let mut sink = Sink::new();
    let options = Options { defines: Vec::new(), sizes: Vec::new(), ..options.clone() };
    let mut k = k.clone();
    for auto in autos(&k, &mut Cx::new(&options, NAME, &mut sink))? {
        set(&mut k, auto.value, ConstValue::Int(auto.role.plain()));
    }
    crate::specialize::quietly(&mut k, &options)?;
    Ok(k)
}

/// Decides as if no size were 0: a choice that is legal then is also legal without the products that a size of 0
/// removes.
fn decide(k: &mut Kernel, cx: &mut Cx<'_>) -> Result<Option<Choice>, Reported> {
    let own = k.requires.clone();
    k.requires = tilec_ir::zero_sizes::nonzero_preconditions(k);
    let result = decide_for_all(k, cx);
    k.requires = own;
    result
}

fn decide_for_all(k: &mut Kernel, cx: &mut Cx<'_>) -> Result<Option<Choice>, Reported> {
    known_sizes(k, cx)?;
    for p in k.const_params.clone() {
        if let Some(value) = given(k, cx, p) {
            set(k, p, value);
        }
    }
    let autos = autos(k, cx)?;
    if autos.is_empty() || !bound(k) {
        // `specialize` reports parameters without a value.
        return Ok(None);
    }
    let model = modelled(k, cx.options);
    choice_independent::check(&model, cx, &autos)?;
    choice_dependence::check(k, cx, &autos)?;
    let mut reason = None;
    let space = Space::new(&model, cx.options, &autos);
    let contradiction = space.as_ref().ok().and_then(Space::contradiction);
    let found = space.and_then(|space| if cx.enabled { search::best(space) } else { search::plain(space) });
    let values: Vec<(Value, i64)> = match found {
        Ok(found) => {
            if let Some(choice) = &found.choice {
                cx.remark_note(k.name_span, choice.to_string(), choice.note());
            }
            if found.crowded && cx.enabled {
                let why = "no candidate leaves a thread registers for its tiles and addresses: the assembler may spill";
                cx.remark(k.name_span, why);
            }
            reason = found.choice;
            found.values
        }
        Err(Failed::Opaque(why)) => {
            if cx.enabled {
                cx.warn(unpredicted(k, cx, &autos, &why));
            }
            plain(&autos)
        }
        // No choice makes the precondition true. Errors about given sizes and parameters name it.
        Err(_) if let Some(e) = contradiction => {
            if cx.enabled && !are_given(&model, cx.options, e) {
                let why = format!("`{}` does not hold with the sizes that are assumed", print_expr(&model, e));
                cx.warn(unpredicted(k, cx, &autos, &why));
            }
            plain(&autos)
        }
        // The given values are wrong by themselves; `specialize` will report where, for any choice.
        Err(Failed::NoneLegal(Illegal::Extent | Illegal::Precondition)) => plain(&autos),
        Err(Failed::NoneLegal(why)) => return Err(none_legal(k, cx, &autos, why.why())),
        Err(Failed::Refused(why)) => return Err(none_legal(k, cx, &autos, &why)),
    };
    for (p, value) in values {
        set(k, p, ConstValue::Int(value));
    }
    choice_independent::name_chosen(k, cx, &autos)?;
    Ok(reason)
}

/// Whether all sizes of an expression are given.
fn are_given(k: &Kernel, options: &Options, e: Expr) -> bool {
    let is_given = |v: Value| options.sizes.iter().any(|(name, _)| *name == k.values[v].name);
    k.sizes.iter().all(|&v| !mentions(k, e, v) || is_given(v))
}

/// The warning about values that are not chosen by the model.
fn unpredicted(k: &Kernel, cx: &Cx<'_>, autos: &[Auto], why: &str) -> Diagnostic {
    let values: Vec<String> = plain(autos).iter().map(|&(v, x)| format!("{}={x}", k.values[v].name)).collect();
    let message =
        format!("no model predicts this kernel, so {} are not chosen, but plain values: {why}", values.join(", "));
    let note = format!("give values with {}, and measure which are fastest", cx.options.caller.defines());
    Diagnostic::warning(codes::UNPREDICTED, k.name_span, message).with_note(note)
}

fn none_legal(k: &Kernel, cx: &mut Cx<'_>, autos: &[Auto], why: &str) -> Reported {
    let names: Vec<String> = autos.iter().map(|a| format!("`{}`", k.values[a.value].name)).collect();
    let message = format!("no value of {} is legal with the others", names.join(", "));
    let d = Diagnostic::error(codes::NO_CHOICE, k.values[autos[0].value].span, message);
    cx.report(d.with_note(format!("of the candidate that got furthest: {why}")).with_note(format!(
        "give other values with {}: given values are kept, and the others are chosen around them",
        cx.options.caller.defines()
    )))
}

fn plain(autos: &[Auto]) -> Vec<(Value, i64)> {
    autos.iter().map(|a| (a.value, a.role.plain())).collect()
}
