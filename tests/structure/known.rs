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
pub(crate) const CIRCLES: &[Circle] = &[
    circle(
        "passes/src/choose/search.rs",
        9,
        "the search and what it checks share its types; `choose` is being rebuilt",
    ),
    circle("passes/src/choose/model.rs", 2, "the model and that of warpgroups share their types"),
    circle(
        "ptx-emit/src/lower/copy.rs",
        19,
        "lowering is one type, `Lower`, in many files: it parts where a machine-level text comes between",
    ),
];

/// Files of more lines than a file should have, and why.
pub(crate) const LONG_FILES: &[(&str, &str)] = &[
    ("passes/src/barriers/tests.rs", "programs that are given and what the proof says"),
    ("passes/src/choose/block.rs", "repeats what passes know about legality; `choose` is being rebuilt"),
    ("ptx-emit/src/lower/copy.rs", "every copy there is; mechanisms can part"),
];

/// Functions of more lines than a function should have: file, name, why.
pub(crate) const LONG_FUNCTIONS: &[(&str, &str, &str)] = &[
    ("passes/src/choose/block.rs", "block", "`choose` is being rebuilt"),
    ("passes/src/choose/model/warpgroups.rs", "time", "`choose` is being rebuilt"),
];
