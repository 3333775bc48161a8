//! Compile settings: parameters, sizes and variants, of all files or of one.

/// Parameters, sizes and variants.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    pub(crate) defines: Vec<(String, String)>,
    pub(crate) sizes: Vec<Vec<(String, i64)>>,
    pub(crate) variants: Vec<String>,
}

impl Settings {
    /// Nothing set.
    pub fn new() -> Settings {
        Settings::default()
    }

    /// Sets a compile-time parameter, as `-D NAME=VALUE` does.
    #[must_use]
    pub fn define(mut self, name: &str, value: &str) -> Settings {
        self.defines.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Chooses `auto` parameters for these sizes, as `--for` does; several make variants.
    #[must_use]
    pub fn sizes(mut self, sizes: &[(&str, i64)]) -> Settings {
        self.sizes.push(sizes.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect());
        self
    }

    /// Compiles variants (`ALIGN=8/1`), as `--variant` does.
    #[must_use]
    pub fn variant(mut self, variant: &str) -> Settings {
        self.variants.push(variant.to_owned());
        self
    }

    /// These settings followed by `more`.
    pub(crate) fn and(&self, more: &Settings) -> Settings {
        let mut all = self.clone();
        all.defines.extend(more.defines.iter().cloned());
        all.sizes.extend(more.sizes.iter().cloned());
        all.variants.extend(more.variants.iter().cloned());
        all
    }
}
