//! Messages of one program for several targets: each once, with the targets that have it.

use crate::compile::Diagnostics;
use crate::console::render::SourceFile;
use tilec_ir::diag::Diagnostic;
use tilec_ir::target::Target;

/// Messages of compilations of one source.
#[derive(Default)]
pub(crate) struct SeveralTargets {
    targets: usize,
    said: Vec<(Diagnostic, Vec<Target>)>,
}

impl SeveralTargets {
    /// Adds those of another target.
    pub(crate) fn add(&mut self, target: Target, list: Vec<Diagnostic>) {
        self.targets += 1;
        for diagnostic in list {
            match self.said.iter_mut().find(|(known, _)| *known == diagnostic) {
                Some((_, targets)) => targets.push(target),
                None => self.said.push((diagnostic, vec![target])),
            }
        }
    }

    /// All messages; those that not every target has name their targets.
    pub(crate) fn list(self, source: SourceFile) -> Diagnostics {
        let named = |(mut d, targets): (Diagnostic, Vec<Target>)| {
            if targets.len() < self.targets {
                let names: Vec<&str> = targets.iter().map(|target| target.name()).collect();
                d.message = format!("for {}: {}", names.join(", "), d.message);
            }
            d
        };
        Diagnostics { source, list: self.said.into_iter().map(named).collect(), errors: 0 }
    }
}
