//! The threads of a kernel, where they are no power of two.

use super::log2_shape;
use tilec_ir::kernel::Kernel;
use tilec_ir::layout::{RegLayout, extent_bits};

/// The threads that share out tiles: a power of two of them, or several such groups.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Threads {
    /// Log2 of the threads of a group.
    bits: u32,
    /// How many groups there are, an odd number.
    groups: u64,
}

impl Threads {
    /// Those of the schedule.
    pub(crate) fn of(k: &Kernel) -> Threads {
        let threads = k.schedule.threads.and_then(|e| k.as_int(e)).unwrap_or(128);
        let threads = u64::try_from(threads).unwrap_or(128).max(32);
        let bits = threads.trailing_zeros();
        Threads { bits, groups: threads >> bits }
    }

    pub(crate) fn count(self) -> u64 {
        self.groups << self.bits
    }

    /// The layout of a tile that `make` finds for tiles and a power of two of threads. Several groups share out an extent of as many units;
    /// where there is none all of them have the same elements.
    pub(crate) fn share_out(self, shape: &[u64], make: &dyn Fn(&[u64], u32) -> Option<RegLayout>) -> Option<RegLayout> {
        if self.groups == 1 {
            // Of an extent that is no power of two the last threads may get nothing: then they repeat what others have.
            let mut bits = self.bits;
            let mut layout = make(shape, bits)?;
            while bits > 0 && layout.threads(shape).is_some_and(|n| n < 1 << bits) {
                bits -= 1;
                layout = make(shape, bits)?;
            }
            return repeated(layout, self.bits - bits);
        }
        let numbers = extent_bits(self.groups);
        let Some(dim) = shape.iter().position(|n| n >> n.trailing_zeros() == self.groups) else {
            return repeated(make(shape, self.bits)?, numbers);
        };
        let mut part = shape.to_vec();
        part[dim] = 1 << shape[dim].trailing_zeros();
        let one = make(&part, self.bits)?;
        // The bits of the number of a group are those above the unit.
        let at = log2_shape(&part[..=dim]).iter().sum::<u32>();
        let lift = |c: &u64| (c >> at) << (at + numbers) | c & ((1 << at) - 1);
        let numbered = (0..numbers).map(|i| 1u64 << (at + i));
        let thread = one.thread().cols().iter().map(lift).chain(numbered).collect();
        RegLayout::new(one.value().cols().iter().map(lift).collect(), thread, one.out_bits() + numbers)
    }
}

/// The same layout with further threads, told by so many bits of their numbers, that repeat what others have.
fn repeated(layout: RegLayout, bits: u32) -> Option<RegLayout> {
    let thread = [layout.thread().cols(), &vec![0; bits as usize]].concat();
    RegLayout::new(layout.value().cols().to_vec(), thread, layout.out_bits())
}
