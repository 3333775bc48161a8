//! Names of kernels and parameters as names of Rust.

/// Words that are no names of Rust (keywords of all editions), and names that launchers use themselves.
const TAKEN: [&str; 58] = [
    "abstract",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "const",
    "continue",
    "crate",
    "do",
    "dyn",
    "else",
    "enum",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "let",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "pub",
    "ref",
    "return",
    "self",
    "static",
    "struct",
    "super",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    "union",
    "unsafe",
    "unsized",
    "use",
    "virtual",
    "where",
    "while",
    "yield",
    "launch",
    "check",
    "kernel",
    "tensors",
    "values",
    "max_active_clusters",
];

/// A name of a parameter in lower case that is none of `before`; where it would be, or is a word of Rust, with `_` after it.
pub(crate) fn parameter(name: &str, before: &[String]) -> String {
    let mut own = name.to_ascii_lowercase();
    while TAKEN.contains(&own.as_str()) || before.contains(&own) {
        own.push('_');
    }
    own
}

/// The name of a type: `gemm_splitk` is `GemmSplitk`.
pub(crate) fn type_name(name: &str) -> String {
    let mut out = String::new();
    for part in name.split('_') {
        let mut letters = part.chars();
        out.extend(letters.next().map(|c| c.to_ascii_uppercase()));
        out.extend(letters);
    }
    // A type needs a letter in front.
    if out.starts_with(|c: char| c.is_ascii_alphabetic()) { out } else { format!("Kernel{out}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn names_are_names_of_rust() {
        assert_eq!(type_name("gemm_splitk"), "GemmSplitk");
        assert_eq!(type_name("_3x"), "Kernel3x");
        assert_eq!(parameter("A", &[]), "a");
        assert_eq!(parameter("a", &["a".to_owned(), "a_".to_owned()]), "a__");
        assert_eq!(parameter("type", &[]), "type_");
    }
}
