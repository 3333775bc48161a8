//! Cache of checked launches: results that follow from shapes, strides, alignment and values are computed once.

use super::sequence::{Chosen, Steps};
#[cfg(feature = "cuda")]
use super::table::Values;
use crate::contract::number::Number;
use crate::error::LaunchError;
use crate::tensor::Argument;

/// The number of launches in the cache; the oldest is replaced.
const KEPT: usize = 64;
/// Addresses are distinguished by the multiples of powers of two that they are, up to this one: no kernel requests more.
const ALIGNMENTS: u32 = 16;

/// A launch that was checked.
pub(super) struct Known {
    hash: u64,
    key: Vec<u64>,
    #[cfg(feature = "cuda")]
    pub(super) values: Values,
    pub(super) chosen: Chosen,
    /// Bytes of memory that each tensor must have.
    needed: Vec<u64>,
    /// The addresses for which memory was found to be apart.
    apart: Vec<u64>,
    /// The device's copy of it.
    #[cfg(feature = "cuda")]
    pub(super) packed: super::packed_params::Packed,
}

/// The launches of a kernel that were checked.
#[derive(Default)]
pub(super) struct Checked {
    known: Vec<Known>,
    /// The one of the last launch.
    last: usize,
    /// The next to be replaced.
    oldest: usize,
    /// The key of the current launch.
    key: Vec<u64>,
    addresses: Vec<u64>,
}

/// The address that checks see; that of memory of the host is its own affair.
fn address(tensor: &Argument<'_>) -> u64 {
    tensor.address().unwrap_or(0)
}

impl Checked {
    /// The launch with these values and tensors, checked.
    ///
    /// # Errors
    /// A tensor or value does not fit, or a precondition does not hold.
    pub(super) fn get(
        &mut self,
        steps: &Steps,
        passed: &[Option<Number>],
        tensors: &[Argument<'_>],
    ) -> Result<&mut Known, LaunchError> {
        let hash = self.identify(passed, tensors);
        let is = |known: &Known, key: &[u64]| known.hash == hash && known.key == key;
        let found = match self.known.get(self.last) {
            Some(known) if is(known, &self.key) => Some(self.last),
            _ => self.known.iter().position(|known| is(known, &self.key)),
        };
        let enough = |known: &Known| known.needed.iter().zip(tensors).all(|(needed, t)| t.bytes >= *needed);
        let at = match found {
            // Memory that is too small is reported by the full check.
            Some(at) if enough(&self.known[at]) => {
                if self.known[at].apart != self.addresses {
                    if self.known[at].has_blocks() {
                        steps.check_overlaps(tensors)?;
                    }
                    self.known[at].apart.clone_from(&self.addresses);
                }
                at
            }
            _ => {
                let (_values, chosen) = steps.choose(passed, tensors)?;
                let made = Known {
                    hash,
                    key: self.key.clone(),
                    needed: steps.table.needed(tensors),
                    #[cfg(feature = "cuda")]
                    values: _values,
                    chosen,
                    apart: self.addresses.clone(),
                    #[cfg(feature = "cuda")]
                    packed: super::packed_params::Packed::default(),
                };
                self.keep(made)
            }
        };
        self.last = at;
        Ok(&mut self.known[at])
    }

    /// Makes the key of a launch, and a hash of it.
    fn identify(&mut self, passed: &[Option<Number>], tensors: &[Argument<'_>]) -> u64 {
        self.key.clear();
        self.addresses.clear();
        for tensor in tensors {
            let at = address(tensor);
            self.addresses.push(at);
            let aligned = u64::from(at.trailing_zeros().min(ALIGNMENTS));
            let rank = tensor.shape().len() as u64;
            self.key.push(tensor.elem as u64 | u64::from(tensor.writable) << 8 | rank << 16 | aligned << 32);
            self.key.extend_from_slice(tensor.shape());
            self.key.extend_from_slice(tensor.strides());
        }
        for value in passed {
            let (kind, bits) = match value {
                None => (0, 0),
                Some(Number::Int(x)) => (1, x.cast_unsigned()),
                Some(Number::Large(x)) => (2, *x),
                Some(Number::Float(x)) => (3, x.to_bits()),
            };
            self.key.extend_from_slice(&[kind, bits]);
        }
        // Equal keys are compared word by word; the hash only avoids most comparisons of different keys.
        self.key.iter().fold(0, |hash: u64, word| (hash.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// Puts a launch where there is room, or in the place of the oldest.
    fn keep(&mut self, made: Known) -> usize {
        if self.known.len() < KEPT {
            self.known.push(made);
            return self.known.len() - 1;
        }
        let at = self.oldest;
        self.oldest = (at + 1) % KEPT;
        self.known[at] = made;
        at
    }
}

impl Known {
    /// The addresses of the tensors.
    #[cfg(feature = "cuda")]
    pub(super) fn addresses(&self) -> &[u64] {
        &self.apart
    }

    /// Whether anything is launched.
    pub(super) fn has_blocks(&self) -> bool {
        self.chosen.iter().any(|(_, grid)| !grid.contains(&0))
    }
}
