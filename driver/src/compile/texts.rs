//! The texts of a program between passes.

/// Names of passes and the text after each.
pub(super) type Texts = Vec<(&'static str, String)>;

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
