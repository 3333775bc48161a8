//! Variants of a kernel in one file: one for each set of definitions, and for each choice for the sizes of `--for`.
//!
//! Definitions represent facts that are only known at launch (`ALIGN=8` if rows are aligned, otherwise `ALIGN=1`). The
//! preconditions decide which variant is launched, in the order given. A rule over sizes selects among choices.
//!
//! A kernel that accepts sizes of 0 (`where K >= 0`) also has a variant for each such size. These come first, and their
//! preconditions say that the size is 0.

use crate::compile::options::{CompileOptions, Sizes};
use crate::compile::parsed_program::ParsedKernel;
use crate::contract::{Case, Dispatch};
use std::collections::BTreeSet;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported, Sink};
use tilec_ir::entities::Value;
use tilec_ir::kernel::{ConstParam, ConstValue, Kernel, Module, ValueDef};
use tilec_ir::zero_sizes;
use tilec_passes::Options;
use tilec_passes::choose::{self, AtLeast, Branch, Choice, Prediction, Predictor};

/// Most characters of an entry name.
const LONGEST_NAME: usize = 64;

/// A kernel whose parameters all have values, and how to go on with it.
pub(crate) struct VariantPlan {
    /// The kernel, under the name of its entry.
    pub(crate) kernel: Kernel,
    /// What the kernel is called in the file, whose variant this may be.
    pub(crate) of: String,
    /// What it means; absent until [`plan`] is done, and of kernels that mean nothing by themselves.
    pub(crate) source_kernel: Option<ParsedKernel>,
    /// Options of the passes.
    pub(crate) options: Options,
    /// The values of its compile-time parameters, in order.
    pub(crate) parameters: Vec<(String, ConstValue)>,
    /// What this is a variant for: definitions (`ALIGN=8`), and sizes that are 0, or not.
    pub(crate) given: Vec<String>,
    /// The values that the compiler chose for `auto` parameters.
    pub(crate) chosen: Vec<(String, ConstValue)>,
    /// What was chosen, and why.
    pub(crate) choice: Option<Choice>,
    /// What is predicted of it.
    pub(crate) prediction: Option<Prediction>,
    /// Why there is none.
    pub(crate) unpredicted: Option<String>,
    /// The kernel in the form that the model sees.
    pub(crate) model: Kernel,
}

/// Conditions, all of which must hold.
type When = Vec<String>;

fn has_parameter(kernel: &Kernel, name: &str) -> bool {
    kernel.const_params.iter().any(|&p| kernel.values[p].name == name)
}

fn has_size(kernel: &Kernel, name: &str) -> bool {
    kernel.sizes.iter().any(|&v| kernel.values[v].name == name)
}

/// The error of definitions for a file whose kernels have no compile-time parameters. Other errors are found per kernel
/// (`specialize`).
pub(crate) fn without_parameters(module: &Module, options: &CompileOptions) -> Vec<Diagnostic> {
    let Some(first) = module.kernels.first().filter(|_| module.kernels.iter().all(|k| k.const_params.is_empty()))
    else {
        return Vec::new();
    };
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in options.defines.iter().chain(options.variants.iter().flatten()) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let own = match module.kernels.as_slice() {
        [_] => format!("kernel `{}` has", first.name),
        _ => "the kernels of this file have".to_owned(),
    };
    let wrong = names.into_iter().map(|name| {
        let message = format!("{own} no compile-time parameter `{name}`");
        let d = Diagnostic::error(codes::UNKNOWN_DEFINE, first.name_span, message);
        match (module.kernels.iter().any(|k| has_size(k, name)), options.caller.unknown_define(name)) {
            (true, _) => d.with_note(format!("`{name}` is a size: it is given at the launch")),
            (false, Some(note)) => d.with_note(note),
            (false, None) => {
                d.with_note(format!("there is none: one is written `kernel {}<{name} = ..>(..)`", first.name))
            }
        }
    });
    wrong.collect()
}

/// Every kernel of `module` after `choose`, once for each variant, and the rule that selects a variant.
///
/// # Errors
/// No value can be chosen; the sink has the reason.
pub(crate) fn plan(
    module: &Module,
    options: &CompileOptions,
    sink: &mut Sink,
) -> Result<(Vec<VariantPlan>, Vec<Dispatch>), Reported> {
    let sequences = module.sequences.iter().map(|s| &s.name);
    let mut taken: BTreeSet<String> = module.kernels.iter().map(|k| &k.name).chain(sequences).cloned().collect();
    let (mut all, mut dispatch) = (Vec::new(), Vec::new());
    let mut result = Ok(());
    for kernel in &module.kernels {
        match variants(module, kernel, options, sink) {
            Ok((mut planned, cases)) => {
                if planned.len() > 1 {
                    for (i, one) in planned.iter_mut().enumerate() {
                        one.kernel.name = numbered(&kernel.name, i + 1, &mut taken);
                    }
                    let names = variant_labels(&planned);
                    let case = |(i, when): Ordered| {
                        let (entry, variant) = (planned[i].kernel.name.clone(), names[i].clone());
                        Case { entry, when, variant }
                    };
                    let cases = cases.into_iter().map(case).collect();
                    dispatch.push(Dispatch { kernel: kernel.name.clone(), cases });
                }
                all.extend(planned);
            }
            Err(reported) => result = Err(reported),
        }
    }
    result.map(|()| (all, dispatch))
}

/// What tells each of the variants of a kernel from the others: what it was requested, and the values that were chosen where several were requested by
/// the same words.
fn variant_labels(variants: &[VariantPlan]) -> Vec<String> {
    let name = |one: &VariantPlan| {
        let same = variants.iter().filter(|other| other.given == one.given);
        let chosen = differing(one, same.collect::<Vec<_>>());
        one.given.iter().chain((!chosen.is_empty()).then_some(&chosen)).cloned().collect::<Vec<_>>().join(" ")
    };
    variants.iter().map(name).collect()
}

/// The parameters of a variant that others have with other values.
pub(super) fn differing<'p>(one: &VariantPlan, others: impl IntoIterator<Item = &'p VariantPlan> + Clone) -> String {
    let differs = |value: &&(String, ConstValue)| others.clone().into_iter().any(|o| !o.parameters.contains(value));
    listed(&one.parameters.iter().filter(differs).cloned().collect::<Vec<_>>())
}

/// `NAME_1`, `NAME_2`, .., skipping what the file has.
fn numbered(name: &str, number: usize, taken: &mut BTreeSet<String>) -> String {
    (number..)
        .map(|i| {
            let suffix = format!("_{i}");
            let most = LONGEST_NAME - suffix.len();
            format!("{}{suffix}", &name[..name.len().min(most)])
        })
        .find(|name| taken.insert(name.clone()))
        .unwrap_or_default()
}

/// A variant, by its number, and when it is launched.
type Ordered = (usize, When);

/// Sizes of a kernel that may be 0, at most: of each set of them there is a variant.
const MAY_BE_ZERO: usize = 3;

/// The variants of a kernel for every set of the sizes that may be 0, the largest sets first, and at last that for none.
fn variants(
    module: &Module,
    kernel: &Kernel,
    options: &CompileOptions,
    sink: &mut Sink,
) -> Result<(Vec<VariantPlan>, Vec<Ordered>), Reported> {
    let sizes = zero_sizes::may_be_zero(kernel);
    if sizes.len() > MAY_BE_ZERO {
        let message = format!("{} sizes that may be 0, expected at most {MAY_BE_ZERO}", sizes.len());
        let d = Diagnostic::error(codes::BAD_PRECONDITION, kernel.name_span, message);
        return Err(sink.report(d.with_note("there is a kernel for each set of them; of the others leave `>= 0` out")));
    }
    let mut sets: Vec<Vec<Value>> = (0..1usize << sizes.len())
        .map(|set| sizes.iter().enumerate().filter(|(i, _)| set >> i & 1 == 1).map(|(_, &v)| v).collect())
        .collect();
    sets.sort_by_key(|set| std::cmp::Reverse(set.len()));
    let (mut planned, mut cases): (Vec<VariantPlan>, Vec<Ordered>) = (Vec::new(), Vec::new());
    for set in sets {
        let own = if sizes.is_empty() { None } else { Some(zero_sizes::with_zeros(kernel, &set)) };
        let mut options = options.clone();
        for sizes in &mut options.sizes {
            sizes.retain(|(name, _)| set.iter().all(|&v| kernel.values[v].name != *name));
        }
        let (mut more, when) = of_sizes(module, own.as_ref().unwrap_or(kernel), &options, sink)?;
        let is = |v: &Value| format!("{}{}", kernel.values[*v].name, if set.contains(v) { "=0" } else { ">=1" });
        more.iter_mut().for_each(|one| one.given.extend(sizes.iter().map(is)));
        cases.extend(when.into_iter().map(|(i, when)| (i + planned.len(), when)));
        planned.extend(more);
    }
    Ok((planned, cases))
}

/// The same where it is known which sizes are 0.
fn of_sizes(
    module: &Module,
    kernel: &Kernel,
    options: &CompileOptions,
    sink: &mut Sink,
) -> Result<(Vec<VariantPlan>, Vec<Ordered>), Reported> {
    // A name that no kernel has goes to all of them, so that it is refused.
    let refused = |has: fn(&Kernel, &str) -> bool, name: &str| !module.kernels.iter().any(|k| has(k, name));
    let (mut planned, mut cases): (Vec<VariantPlan>, Vec<Ordered>) = (Vec::new(), Vec::new());
    let (no_definitions, no_sizes) = ([Vec::new()], [Sizes::new()]);
    for more in if options.variants.is_empty() { &no_definitions[..] } else { &options.variants } {
        let mut pass_options = options.pass_options();
        pass_options.defines = options.defines.iter().chain(more).cloned().collect();
        pass_options.defines.retain(|(name, _)| has_parameter(kernel, name) || refused(has_parameter, name));
        let mut own: Vec<VariantPlan> = Vec::new();
        let mut served: Vec<Sizes> = Vec::new();
        for sizes in if options.sizes.is_empty() { &no_sizes[..] } else { &options.sizes } {
            pass_options.sizes.clone_from(sizes);
            pass_options.sizes.retain(|(name, _)| has_size(kernel, name) || refused(has_size, name));
            let mut one = choose_for(kernel, &pass_options, options.disabled_in_choice.as_ref(), sink)?;
            let own_words = more.iter().filter(|(name, _)| has_parameter(kernel, name));
            one.given = own_words.map(|(name, value)| format!("{name}={value}")).collect();
            served.push(pass_options.sizes.clone());
            let known = |p: &VariantPlan| p.parameters == one.parameters;
            if !own.iter().any(known) && !planned.iter().any(known) {
                own.push(one);
            }
        }
        let rule = rule_of_variants(kernel, &own, &served);
        let mut places: Vec<Option<usize>> = vec![None; own.len()];
        let mut own: Vec<Option<VariantPlan>> = own.into_iter().map(Some).collect();
        for Branch { when, variant } in rule {
            let place = *places[variant].get_or_insert_with(|| {
                planned.extend(own[variant].take());
                planned.len() - 1
            });
            cases.push((place, needed(&when).map(condition).collect()));
        }
        for left in own.into_iter().flatten() {
            let message = format!("no variant for {}: others are as fast at these sizes", listed(&left.parameters));
            sink.push(Diagnostic::remark(choose::NAME, kernel.name_span, message));
        }
    }
    Ok((planned, cases))
}

/// A rule for variants that differ in what was chosen.
fn rule_of_variants(kernel: &Kernel, variants: &[VariantPlan], sizes: &[Sizes]) -> Vec<Branch> {
    let models: Vec<Kernel> = variants.iter().map(|v| choose::modelled(&v.kernel, &v.options)).collect();
    let predictors: Option<Vec<Predictor<'_>>> =
        models.iter().zip(variants).map(|(model, v)| Predictor::new(model, &v.options)).collect();
    match predictors {
        Some(predictors) if variants.len() > 1 => choose::rule(kernel, &predictors, sizes),
        _ => (0..variants.len().min(1)).map(|variant| Branch { when: Vec::new(), variant }).collect(),
    }
}

/// The conditions without those that others imply: a size is at least 1, so a product is at least what a part of it is.
fn needed(when: &[AtLeast]) -> impl Iterator<Item = &AtLeast> {
    let within = |a: &AtLeast, b: &AtLeast| a.sizes.iter().all(|s| b.sizes.contains(s));
    let implied = move |i: usize, c: &AtLeast| {
        let by = |(j, other): (usize, &AtLeast)| {
            let stronger = within(other, c) && other.value >= c.value;
            // Of two that imply each other the first stays.
            j != i && stronger && (j < i || !(within(c, other) && c.value >= other.value))
        };
        when.iter().enumerate().any(by)
    };
    when.iter().enumerate().filter(move |&(i, c)| !implied(i, c)).map(|(_, c)| c)
}

/// The text of a condition.
fn condition(least: &AtLeast) -> String {
    format!("{} >= {}", least.sizes.join(" * "), least.value)
}

/// The integers among parameters, as they are given.
pub(super) fn listed(parameters: &[(String, ConstValue)]) -> String {
    let integers = parameters.iter().filter_map(|(name, value)| match value {
        ConstValue::Int(x) => Some(format!("{name}={x}")),
        _ => None,
    });
    integers.collect::<Vec<_>>().join(" ")
}

/// Runs `choose` on a copy of the kernel.
fn choose_for(
    kernel: &Kernel,
    options: &Options,
    disabled: Option<&BTreeSet<String>>,
    sink: &mut Sink,
) -> Result<VariantPlan, Reported> {
    let mut kernel = kernel.clone();
    let autos: Vec<String> =
        kernel.const_params.iter().filter(|&&p| is_auto(&kernel, p)).map(|&p| kernel.values[p].name.clone()).collect();
    let choice = match disabled {
        Some(disabled) => {
            let mut as_if = options.clone();
            as_if.disabled.clone_from(disabled);
            choose::apply(&mut kernel, &as_if, sink)?
        }
        None => choose::apply(&mut kernel, options, sink)?,
    };
    let model = choose::modelled(&kernel, options);
    let prediction = match &choice {
        Some(choice) => {
            let p = choice.prediction.clone();
            Some(Predictor::new(&model, options).map_or(p.clone(), |of| of.located(p)))
        }
        // Kernels with roles are predicted from their code.
        None if choose::has_roles(&model) => None,
        None => Predictor::new(&model, options).and_then(|p| p.predict()),
    };
    let seen = prediction.is_some() || choose::has_roles(&model);
    let unseen = if seen { None } else { Predictor::unseen(&model, options) };
    let parameters = values_of_parameters(&kernel);
    let open = |name: &String| autos.contains(name) && !options.defines.iter().any(|(given, _)| given == name);
    let chosen = parameters.iter().filter(|(name, _)| open(name)).cloned().collect();
    let depth = prediction.as_ref().and_then(|p| choose::depth(&model, options, p));
    let options = Options { chosen: choice.is_some(), depth, ..options.clone() };
    let of = kernel.name.clone();
    Ok(VariantPlan {
        kernel,
        of,
        source_kernel: None,
        options,
        parameters,
        given: Vec::new(),
        chosen,
        choice,
        prediction,
        unpredicted: unseen,
        model,
    })
}

/// Whether the compiler chooses the value of a parameter, unless it is given.
fn is_auto(kernel: &Kernel, p: Value) -> bool {
    matches!(kernel.values[p].def, ValueDef::ConstParam(ConstParam { default: Some(ConstValue::Auto { .. }), .. }))
}

/// The defaults of the compile-time parameters, those that are other parameters replaced by their values.
fn values_of_parameters(kernel: &Kernel) -> Vec<(String, ConstValue)> {
    let mut values: Vec<(String, ConstValue)> = Vec::new();
    for &p in &kernel.const_params {
        let ValueDef::ConstParam(ConstParam { default: Some(default), .. }) = kernel.values[p].def else { continue };
        let value = match default {
            ConstValue::Same(earlier) => {
                let of = |(name, _): &&(String, ConstValue)| *name == kernel.values[earlier].name;
                values.iter().find(of).map_or(default, |(_, value)| *value)
            }
            value => value,
        };
        values.push((kernel.values[p].name.clone(), value));
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn implied_conditions_are_left_out() {
        let least = |sizes: &[&str], value| AtLeast { sizes: sizes.iter().map(|s| (*s).to_owned()).collect(), value };
        let text = |when: &[AtLeast]| needed(when).map(condition).collect::<Vec<_>>().join(", ");
        assert_eq!(text(&[least(&["M"], 64), least(&["M"], 512), least(&["K"], 64)]), "M >= 512, K >= 64");
        assert_eq!(text(&[least(&["M", "N"], 64), least(&["M"], 64)]), "M >= 64");
        assert_eq!(text(&[least(&["M", "N"], 65), least(&["M"], 64)]), "M * N >= 65, M >= 64");
        assert_eq!(text(&[least(&["M"], 64), least(&["M"], 64)]), "M >= 64");
    }
}
