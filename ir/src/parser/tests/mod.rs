//! Tests of the text form: round iterations, errors, bounds, hostile input.

mod errors;
mod fuzz;
mod grammar;
mod habits;
mod reference;
mod round_trip;

use super::parse;
use crate::diag::{Diagnostic, Sink};
use crate::kernel::Module;

/// Programs that use all of the language between them.
pub(crate) const SAMPLES: &[(&str, &str)] = &[
    ("gemm", include_str!("../../../../examples/gemm.tile")),
    ("flash_attention", include_str!("../../../../examples/flash_attention.tile")),
    ("hopper_gemm", include_str!("../../../../docs/sketches/hopper_gemm.tile")),
    ("lowered", include_str!("lowered.tile")),
    ("corners", include_str!("corners.tile")),
];

/// Parses what must parse.
pub(super) fn parsed(source: &str) -> Module {
    let mut sink = Sink::new();
    let module = parse(source, &mut sink);
    let found: Vec<String> = sink.diagnostics().iter().map(|d| shown(source, d)).collect();
    module.unwrap_or_else(|_| panic!("{}", found.join("\n")))
}

/// Parses what must not parse.
pub(super) fn errors(source: &str) -> Vec<Diagnostic> {
    let mut sink = Sink::new();
    assert!(parse(source, &mut sink).is_err(), "this parses: {source}");
    sink.into_diagnostics()
}

/// Code, message and place.
pub(super) fn shown(source: &str, d: &Diagnostic) -> String {
    format!("{} {} at `{}`", d.code, d.message, &source[d.span.start as usize..d.span.end as usize])
}
