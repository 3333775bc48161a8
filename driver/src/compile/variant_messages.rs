//! Merges the diagnostics of the variants of a kernel.

use crate::compile::variants::{VariantPlan, differing};
use tilec_ir::diag::{Diagnostic, Severity, Sink, Span};
use tilec_ir::missed_paths::FastPath;

/// What a variant is called among those of its kernel.
pub(super) struct Label {
    /// The kernel of the file.
    kernel: String,
    /// The values in which variants differ; empty: there is one alone.
    values: String,
    /// How many variants there are.
    of: usize,
}

/// What each is called among the variants of its kernel.
pub(super) fn labels(planned: &[VariantPlan]) -> Vec<Label> {
    let label = |one: &VariantPlan| {
        let kin: Vec<&VariantPlan> = planned.iter().filter(|other| other.of == one.of).collect();
        Label { kernel: one.of.clone(), values: differing(one, kin.iter().copied()), of: kin.len() }
    };
    planned.iter().map(label).collect()
}

/// Merges the diagnostics of kernels. A warning of several variants appears once, and names the variants if it is not
/// about all. A variant for unaligned rows misses fast paths on purpose: if another variant takes them, this stays a
/// remark.
pub(super) fn merge_variant_messages(labels: Vec<Label>, mut said: Vec<Sink>) -> Vec<Diagnostic> {
    let of_rows = |d: &Diagnostic| d.loss.as_ref().filter(|l| l.rows || l.path == FastPath::Wide).map(|l| l.path);
    let lost: Vec<Vec<(FastPath, Span)>> = said
        .iter()
        .map(|sink| sink.diagnostics().iter().filter_map(|d| Some((of_rows(d)?, d.span))).collect())
        .collect();
    let mut all: Vec<(Diagnostic, Vec<&str>, usize)> = Vec::new();
    for (label, sink) in labels.iter().zip(said.drain(..)) {
        let kin = || labels.iter().zip(&lost).filter(|(other, _)| other.kernel == label.kernel);
        for mut d in sink.into_diagnostics() {
            if of_rows(&d).is_some_and(|path| kin().any(|(_, lost)| !lost.contains(&(path, d.span)))) {
                d.to_remark();
            }
            let told = d.severity == Severity::Warning && !label.values.is_empty();
            let same = |(k, of, _): &&mut (Diagnostic, Vec<&str>, usize)| {
                told && !of.is_empty() && (k.code, k.span, &k.message) == (d.code, d.span, &d.message)
            };
            match all.iter_mut().find(same) {
                Some((_, of, _)) => of.extend((!of.contains(&&*label.values)).then_some(&*label.values)),
                None => all.push((d, told.then_some(&*label.values).into_iter().collect(), label.of)),
            }
        }
    }
    let named = |(d, of, all): (Diagnostic, Vec<&str>, usize)| match of.len() {
        0 => d,
        n if n == all => d,
        1 => d.with_note(format!("this is about the variant {}", of[0])),
        _ => d.with_note(format!("this is about the variants {}", of.join(", "))),
    };
    all.into_iter().map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilec_ir::codes;
    use tilec_ir::missed_paths::MissedPath;

    fn label(values: &str) -> Label {
        Label { kernel: "k".to_owned(), values: values.to_owned(), of: 2 }
    }

    fn said(message: &str, path: Option<FastPath>) -> Sink {
        let mut sink = Sink::new();
        let d = Diagnostic::remark("vectorize", Span::new(3, 7), message);
        let loss = path.map(|path| MissedPath { path, at: Vec::new(), room: false, rows: false, nanoseconds: None });
        sink.push(Diagnostic { loss, ..d });
        sink.warn_of(0, codes::NARROW, "10% longer".to_owned());
        sink
    }

    fn of(sinks: Vec<Sink>) -> Vec<(Severity, Option<String>)> {
        let labels = vec![label("ALIGN=8"), label("ALIGN=1")];
        merge_variant_messages(labels, sinks).into_iter().map(|d| (d.severity, d.notes.last().cloned())).collect()
    }

    #[test]
    fn a_warning_of_all_variants_stands_once() {
        let told = of(vec![said("narrow", None), said("narrow", None)]);
        assert_eq!(told, [(Severity::Warning, Some("10% longer".to_owned()))]);
        let told = of(vec![Sink::new(), said("narrow", None)]);
        assert_eq!(told, [(Severity::Warning, Some("this is about the variant ALIGN=1".to_owned()))]);
    }

    #[test]
    fn what_another_variant_does_not_lose_is_a_remark() {
        let wide = Some(FastPath::Wide);
        assert_eq!(of(vec![Sink::new(), said("narrow", wide)])[0].0, Severity::Remark);
        let told = of(vec![said("64 bits", wide), said("16 bits", wide)]);
        assert_eq!(told.iter().map(|(severity, _)| *severity).collect::<Vec<_>>(), [Severity::Warning; 2]);
        assert_eq!(of(vec![Sink::new(), said("late", Some(FastPath::Ahead))])[0].0, Severity::Warning);
    }
}
