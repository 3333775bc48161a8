//! What does not hold yet, and why.

/// Files that import one another in a circle.
pub(crate) struct Circle {
    /// One of them.
    pub(crate) file: &'static str,
    /// How many they are.
    pub(crate) files: usize,
    /// The reason for the exception.
    #[allow(dead_code, reason = "for the reader")]
    pub(crate) why: &'static str,
}

/// Circles that are still to be mended.
pub(crate) const CIRCLES: &[Circle] = &[];

/// Files of more lines than a file should have, and why.
pub(crate) const LONG_FILES: &[(&str, &str)] = &[];

/// Functions of more lines than a function should have: file, name, why.
pub(crate) const LONG_FUNCTIONS: &[(&str, &str, &str)] = &[];

/// Files of passes that choose the mechanism of a copy, and which.
pub(crate) const CHOOSE_MECHANISMS: &[(&str, &str)] = &[
    ("passes/src/pipeline/tile_statements.rs", "asynchronous copies, and what is asked for ahead"),
    ("passes/src/schedule_loops/channels.rs", "copies that producer warps do"),
    ("passes/src/unaligned.rs", "words, where nothing is written"),
    ("passes/src/vectorize.rs", "matrices and words"),
    ("passes/src/tile_scheduler/cluster.rs", "what blocks of a cluster share"),
];
