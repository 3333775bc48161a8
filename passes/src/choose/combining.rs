//! What is known of the atomic operations of a copy on memory ([`super::combined`]).

/// The atomic operations of a copy.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Combined {
    /// How often the launch combines a value with each element of the windows; `None`: indices from memory say it.
    pub same: Option<f64>,
    /// The share of the operations before which memory is read, and after which it is written.
    pub missed: f64,
}

/// Passes between memory and the cache for a line that is combined with.
pub(super) const BOTH_WAYS: f64 = 2.0;

impl Combined {
    /// Bytes between memory and the cache for as many that are combined with.
    pub fn moved(self, bytes: f64) -> f64 {
        BOTH_WAYS * self.missed * bytes
    }
}
