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

/// Circles that are still to be mended.
pub(crate) const CIRCLES: &[Circle] = &[];

/// Files of more lines than a file should have, and why.
pub(crate) const LONG_FILES: &[(&str, &str)] = &[];

/// Functions of more lines than a function should have: file, name, why.
pub(crate) const LONG_FUNCTIONS: &[(&str, &str, &str)] = &[];
