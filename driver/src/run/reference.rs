//! The reference: the tile interpreter on the program as it was written, before any pass.

use super::check::{Expected, Verdict, compare};
use super::facts::Facts;
use crate::compile::ParsedKernel;
use crate::contract::number::Number;
use crate::contract::{Contract, ParamKind};
use crate::run::data;
use crate::run::program::BoundProgram;
use tilec_ir::diag::Diagnostic;
use tilec_ir::interp::{self, Numbers};

/// A program as it was written, and what it is run on.
pub(super) struct Reference<'a> {
    /// The launch contracts of the compiled kernels.
    pub(super) contracts: &'a [&'a Contract],
    /// The source kernels, run one after the other.
    pub(super) meant: Vec<&'a ParsedKernel>,
    pub(super) bound: &'a BoundProgram,
}

impl Reference<'_> {
    /// Compares what the kernels left with what the interpreter computes in this way.
    pub(super) fn verify(
        &self,
        facts: &Facts,
        (before, after): (&[Vec<u8>], &[Vec<u8>]),
        how: &interp::Options,
        notes: &mut Vec<String>,
    ) -> Result<Vec<(String, Verdict)>, Box<Diagnostic>> {
        let reference = self.interpret(before, how)?;
        let bound = self.bound;
        let (nothing, sure): (Numbers, &[f64]) = (Numbers::default(), &[]);
        let mut verdicts = Vec::new();
        for ((plan, before), after) in bound.tensors.iter().zip(before).zip(after) {
            let errors = reference.errors.get(&plan.name);
            let expected = Expected {
                values: reference.tensors.get(&plan.name).map_or(&nothing, |t| &t.data),
                errors: errors.map_or(sure, |e| &e.largest),
                drowned: errors.is_some_and(|e| e.drowned),
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
        if verdicts.iter().any(|(_, v)| v.largest_bound > 0.0 || v.without_bound > 0) && !facts.inexact_ops {
            notes.extend(why_inexact(&reference, bound, before).map(|why| format!("compared within a bound: {why}")));
        }
        Ok(verdicts)
    }

    /// Runs the interpreter on the kernels, one after the other.
    pub(super) fn interpret(
        &self,
        before: &[Vec<u8>],
        how: &interp::Options,
    ) -> Result<interp::Inputs, Box<Diagnostic>> {
        let bound = self.bound;
        let mut inputs = interp::Inputs::default();
        for param in self.contracts.iter().flat_map(|contract| &contract.params) {
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
                    inputs.scalars.insert(name, data::element(*elem, data::encode_number(*elem, value)));
                }
                ParamKind::Tensor(_) | ParamKind::Pointers(_) | ParamKind::TensorMap(_) => {}
            }
        }
        for (plan, bytes) in bound.tensors.iter().zip(before) {
            let span = usize::try_from(plan.span).expect("the tensor is in memory");
            let values = data::numbers(plan.elem, bytes, span);
            inputs.tensors.insert(plan.name.clone(), interp::Tensor { elem: plan.elem, data: values });
        }
        for written in &self.meant {
            inputs.consts.clone_from(&written.parameters);
            interp::run(&written.kernel, &mut inputs, how)?;
        }
        Ok(inputs)
    }
}

/// Why whole numbers have no exact result.
fn why_inexact(reference: &interp::Inputs, bound: &BoundProgram, before: &[Vec<u8>]) -> Option<&'static str> {
    let whole = |x: f64| x.fract() == 0.0;
    let read = bound.tensors.iter().zip(before).filter(|(t, _)| t.access.reads());
    let inputs_whole = read.fold(true, |mut all, (t, bytes)| {
        t.for_each(|_, offset| all &= whole(data::get(t.elem, bytes, offset)));
        all
    });
    let scalars_whole = reference.scalars.values().all(|x| whole(x.to_f64()));
    inputs_whole.then_some(match scalars_whole {
        true => "the sums may exceed the exact range, or fractions are multiplied and added",
        false => "a scalar is not a whole number",
    })
}
