//! An extent that is padded.

/// An extent of tiles that is padded.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Extent {
    /// As it is in the tiles. No other extent is equal.
    pub(super) own: u64,
    /// Number of elements that count.
    pub(super) count: u64,
    /// The padded extent.
    pub(super) to: u64,
}

impl Extent {
    /// Padded to the next power of two.
    pub(super) fn odd(n: u64) -> Extent {
        Extent { own: n, count: n, to: n.next_power_of_two() }
    }
}
