//! The texts of a program between passes.

use super::options::CompileOptions;
use super::source_lines::Place;
use super::stages;
use tilec_ir::kernel::Module;

/// Names of passes and the text after each.
pub(super) type Texts = Vec<(&'static str, String)>;

/// The texts after file passes, with the source line of each of their lines, if stored.
#[derive(Default)]
pub(super) struct FileTexts {
    pub(super) texts: Texts,
    pub(super) places: Vec<Vec<Place>>,
}

impl FileTexts {
    /// Keeps the text after `pass` if it was requested.
    pub(super) fn keep(&mut self, pass: &'static str, module: &Module, options: &CompileOptions) {
        if !options.keeps(pass) {
            return;
        }
        if options.keep_places {
            let (text, places) = stages::print_module_places(module);
            self.texts.push((pass, text));
            self.places.push(places);
        } else {
            self.texts.push((pass, tilec_ir::print::print_module(module)));
        }
    }
}

/// The texts of a file, and those of its kernels, pass by pass.
pub(super) fn joined(file: Texts, kernels: &[Texts], sequences: Vec<String>) -> Texts {
    let mut out = file;
    for (pass, _) in kernels.iter().flatten() {
        if out.iter().all(|(done, _)| done != pass) {
            let own = kernels.iter().flatten().filter(|(p, _)| p == pass).map(|(_, text)| text.clone());
            let text = join(own.chain(sequences.iter().cloned()));
            out.push((pass, text));
        }
    }
    out
}

/// Kernels of one file, each ended by a line feed, an empty line between them.
pub(super) fn join(kernels: impl Iterator<Item = String>) -> String {
    kernels.map(|k| format!("{}\n", k.trim_end())).collect::<Vec<_>>().join("\n")
}
