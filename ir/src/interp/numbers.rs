//! Elements of either representation.

pub use tilec_core::numbers::{Number, Numbers};

/// Applies the same operation to elements of any representation, and returns them in that representation.
macro_rules! moved {
    ($numbers:expr, $data:ident => $e:expr) => {
        match $numbers {
            $crate::interp::Numbers::Floats($data) => $crate::interp::Numbers::Floats($e),
            $crate::interp::Numbers::Wide($data) => $crate::interp::Numbers::Wide($e),
        }
    };
}
pub(super) use moved;
