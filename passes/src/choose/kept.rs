//! Caches that keep sectors of which an iteration uses a part ([`super::kept_sectors`]).

/// Where the next iterations find the rest of the sectors that an iteration uses in part.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Kept {
    /// They load something else.
    #[default]
    Nowhere,
    /// The first-level cache.
    L1,
    /// The second-level cache.
    L2,
}
