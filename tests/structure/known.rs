//! What does not hold yet, and why.

/// Files that import one another in a circle.
pub(crate) struct Circle {
    /// One of them.
    pub(crate) file: &'static str,
    /// How many they are.
    pub(crate) files: usize,
    /// Why it stands.
    #[allow(dead_code, reason = "for the reader")]
    pub(crate) why: &'static str,
}

const fn circle(file: &'static str, files: usize, why: &'static str) -> Circle {
    Circle { file, files, why }
}

/// Circles that are still to be mended.
pub(crate) const CIRCLES: &[Circle] = &[circle(
    "ptx-emit/src/lower/copy.rs",
    19,
    "lowering is one type, `Lower`, in many files: it parts where a machine-level text comes between",
)];

/// Files of more lines than a file should have, and why.
pub(crate) const LONG_FILES: &[(&str, &str)] = &[
    ("passes/src/barriers/tests.rs", "programs that are given and what the proof says"),
    ("ptx-emit/src/lower/copy.rs", "every copy there is; mechanisms can part"),
];

/// Functions of more lines than a function should have: file, name, why.
pub(crate) const LONG_FUNCTIONS: &[(&str, &str, &str)] = &[];
