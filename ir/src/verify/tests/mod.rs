//! Tests of the verifier: every rule is broken once, and the sample programs keep them all.

mod hostile;
mod layouts;
mod rules;
mod structure;

use super::verify;
use crate::diag::Sink;
use crate::kernel::Kernel;
use crate::parser::parse;
use pretty_assertions::assert_eq;

/// The errors of a program that parses, as `CODE at source text: message`.
fn errors(source: &str) -> Vec<String> {
    let mut sink = Sink::new();
    let module =
        parse(source, &mut sink).unwrap_or_else(|_| panic!("does not parse: {:?}\n{source}", sink.diagnostics()));
    for kernel in &module.kernels {
        let before = sink.error_count();
        let result = verify(kernel, &mut sink);
        assert_eq!(result.is_err(), sink.error_count() > before, "errors are reported, never silent");
    }
    let text = |s: crate::diag::Span| &source[s.start as usize..s.end as usize];
    about_form(&sink).map(|d| format!("{} at `{}`: {}", d.code, text(d.span), d.message)).collect()
}

/// All but what is said of contents: samples are about the form of programs, and leave registers unwritten for brevity
/// (`tests/files/verify/read_unwritten.tile` is about contents).
fn about_form(sink: &Sink) -> impl Iterator<Item = &crate::diag::Diagnostic> {
    sink.diagnostics().iter().filter(|d| d.code != crate::codes::READ_UNWRITTEN)
}

/// The only kernel of a program that parses.
fn kernel(source: &str) -> Kernel {
    parse(source, &mut Sink::new()).unwrap().kernels.remove(0)
}

/// The codes that the verifier reports for a kernel.
fn codes(k: &Kernel) -> Vec<&'static str> {
    let mut sink = Sink::new();
    let result = verify(k, &mut sink);
    assert_eq!(result.is_err(), sink.error_count() > 0);
    about_form(&sink).map(|d| d.code.0).collect()
}

#[test]
fn the_samples_verify() {
    for (name, source) in [
        ("gemm", include_str!("../../../../examples/gemm.tile")),
        ("flash_attention", include_str!("../../../../examples/flash_attention.tile")),
        ("hopper_gemm", include_str!("../../../../docs/sketches/hopper_gemm.tile")),
    ] {
        assert_eq!(errors(source), Vec::<String>::new(), "{name}");
    }
}
