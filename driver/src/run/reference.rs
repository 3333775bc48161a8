//! The reference: the tile interpreter on the program as it was written.

use super::check::{Accuracy, Expected, Verdict, compare};
use super::facts::Facts;
use crate::bind::Number;
use crate::compile::CompiledKernel;
use crate::contract::ParamKind;
use crate::data;
use crate::program::BoundProgram;
use tilec_ir::diag::Diagnostic;
use tilec_ir::interp;

/// Compares what the kernels left with what the interpreter computes.
pub(super) fn verify(
    kernels: &[&CompiledKernel],
    facts: &Facts,
    bound: &BoundProgram,
    before: &[Vec<u8>],
    after: &[Vec<u8>],
    accuracy: Accuracy,
    notes: &mut Vec<String>,
) -> Result<Vec<(String, Verdict)>, Box<Diagnostic>> {
    let reference = interpret(kernels, bound, before, |x| x, |x| x)?;
    let whole = |x: f64| x.fract() == 0.0;
    let largest = reference.magnitudes.values().flatten().fold(0.0f64, |a, &b| a.max(b));
    let inputs_whole = bound.tensors.iter().zip(before).filter(|(t, _)| t.access.reads()).all(|(t, bytes)| {
        let mut all = true;
        t.for_each(|_, offset| all &= whole(data::get(t.elem, bytes, offset)));
        all
    });
    let scalars_whole = reference.scalars.values().all(|x| whole(*x));
    let exact = !facts.inexact_ops && inputs_whole && scalars_whole && largest < accuracy.exact_below;
    let terms = if exact {
        None
    } else {
        if facts.inexact_ops {
            notes.push("the bound covers sums of products, not exponentials and their kin".to_owned());
        } else if inputs_whole {
            let why =
                if scalars_whole { "the sums may exceed the exact range" } else { "a scalar is not a whole number" };
            notes.push(format!("compared within a bound and not exactly: {why}"));
        }
        // With every factor 1, the sum of magnitudes counts the terms.
        let one = |x: f64| if x == 0.0 { 0.0 } else { 1.0 };
        Some(interpret(kernels, bound, before, |_| 1.0, one)?.magnitudes)
    };
    let nothing: &[f64] = &[];
    let mut verdicts = Vec::new();
    for ((plan, before), after) in bound.tensors.iter().zip(before).zip(after) {
        let of = |map: &std::collections::BTreeMap<String, Vec<f64>>| map.get(&plan.name).cloned().unwrap_or_default();
        let magnitudes = terms.as_ref().map(|_| of(&reference.magnitudes)).unwrap_or_default();
        let terms = terms.as_ref().map(of).unwrap_or_default();
        let expected = Expected {
            values: reference.tensors.get(&plan.name).map_or(nothing, |t| &t.data),
            magnitudes: &magnitudes,
            terms: &terms,
            accuracy,
        };
        let verdict = compare(plan, before, after, &expected);
        // Inputs are compared too, and mentioned if they changed.
        if plan.access.writes() || !verdict.ok() {
            if verdict.weak {
                notes.push(format!("the bound for `{}` is wider than one missing product", plan.name));
            }
            verdicts.push((plan.name.clone(), verdict));
        }
    }
    Ok(verdicts)
}

/// Runs the interpreter on the kernels as written, one after the other; `element` and `scalar` change the inputs.
pub(super) fn interpret(
    kernels: &[&CompiledKernel],
    bound: &BoundProgram,
    before: &[Vec<u8>],
    element: impl Fn(f64) -> f64,
    scalar: impl Fn(f64) -> f64,
) -> Result<interp::Inputs, Box<Diagnostic>> {
    let mut inputs = interp::Inputs::default();
    for param in kernels.iter().flat_map(|k| &k.contract.params) {
        let name = param.name.clone();
        let value = bound.values.get(&name).copied().unwrap_or(Number::Int(0));
        match &param.kind {
            ParamKind::Size { .. } => {
                inputs.sizes.insert(name, value.to_i64().unwrap_or(0));
            }
            ParamKind::Stride { .. } => {
                inputs.strides.insert(name, value.to_i64().unwrap_or(0));
            }
            ParamKind::Scalar { elem, .. } => {
                inputs.scalars.insert(name, scalar(data::decode(*elem, data::encode(*elem, value.to_f64()))));
            }
            ParamKind::Tensor(_) | ParamKind::Pointers(_) | ParamKind::TensorMap(_) => {}
        }
    }
    for (plan, bytes) in bound.tensors.iter().zip(before) {
        let span = usize::try_from(plan.span).expect("the tensor is in memory");
        let values = (0..span).map(|i| element(data::get(plan.elem, bytes, i))).collect();
        inputs.tensors.insert(plan.name.clone(), interp::Tensor { elem: plan.elem, data: values });
    }
    let options = interp::Options { abs_sums: true, ..interp::Options::default() };
    for kernel in kernels {
        interp::run(&kernel.tile.specialized, &mut inputs, &options)?;
    }
    Ok(inputs)
}
