//! An open file and its analysis.

use crate::Target;
use crate::editor::analysis::Analysis;
use lsp_types::Uri;

/// A file that is open.
pub(crate) struct Open {
    pub(crate) uri: Uri,
    pub(crate) analysis: Analysis,
    /// The target of texts that name none.
    pub(crate) target: Target,
    /// The version that the editor counts.
    pub(crate) editor_version: Option<i32>,
}

/// The message of a panic.
pub(crate) const BUG: &str = concat!(
    "this is a bug in tilec ",
    env!("CARGO_PKG_VERSION"),
    "; please report it with the source, at ",
    env!("CARGO_PKG_REPOSITORY"),
    "/issues"
);
