//! The comment by which PTX names its contract, and lookups.

use super::requirements::{Contract, Param};
use crate::contract::hash::hash;
use tilec_core::hardware::MAX_BLOCKS;

/// The start of the PTX comment that names a contract.
const MARK: &str = "launch contract of ";
/// Hexadecimal digits of an id.
const ID_DIGITS: usize = 16;

impl Contract {
    /// Whether clusters have more blocks than every device runs at once, which the launch must request.
    pub fn has_large_clusters(&self) -> bool {
        self.cluster.iter().map(|&n| i64::from(n)).product::<i64>() > MAX_BLOCKS
    }

    /// With the id that follows from the contents.
    #[must_use]
    pub fn identified(mut self) -> Contract {
        self.id = None;
        let text = serde_json::to_string(&self).expect("a contract has only string keys");
        self.id = Some(hash(&[&text])[..ID_DIGITS].to_owned());
        self
    }

    /// The comment in the PTX that names its contract.
    pub fn mark(&self) -> Option<String> {
        Some(format!("{MARK}{}: {}", self.entry, self.id.as_ref()?))
    }

    /// The id of the contract of `entry` in this PTX, if there is one.
    pub fn id_in<'p>(ptx: &'p str, entry: &str) -> Option<&'p str> {
        let marks = ptx.lines().filter_map(|line| line.trim().strip_prefix("//")?.trim().strip_prefix(MARK));
        marks.filter_map(|mark| mark.split_once(": ")).find(|(of, _)| *of == entry).map(|(_, id)| id.trim())
    }

    /// The parameter called `name`.
    pub fn param(&self, name: &str) -> Option<&Param> {
        self.params.iter().find(|p| p.name == name)
    }
}
