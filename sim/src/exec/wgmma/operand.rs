//! Matrices in shared memory, as a descriptor defines them (PTX 9.7.15.5.1): the addresses of their elements.
//!
//! Memory consists of units of 16 bytes. Along K (`across` not set), the K elements of a row are two units. Otherwise a
//! unit holds eight adjacent rows for one k. Eight units at the distance of a row of the swizzle pattern, or contiguous
//! without a swizzle, are a core matrix. The two offsets of the descriptor are the distances of core matrices.

use crate::exec::fail::{Fail, Step};
use crate::exec::scratch::Scratch;
use crate::numerics::mma::Elem;
use crate::numerics::mma::wide::Row;
use crate::report::ReportKind;

/// A matrix in shared memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// The start of the block's shared memory.
    base: u64,
    /// The start of the matrix in it.
    start: u64,
    leading: u64,
    stride: u64,
    /// Bytes of a row of the swizzle pattern; 16 without a swizzle.
    span: u64,
    /// Rows of the pattern in front of the first row.
    phase: u64,
    across: bool,
    /// The first row that counts.
    from: usize,
}

/// Addresses in a descriptor have 18 bits.
const WINDOW: u64 = 1 << 18;

impl Layout {
    /// The matrix of a descriptor of a block whose shared memory begins at `base`.
    pub(super) fn new(descriptor: u64, across: bool, base: u64) -> Result<Layout, Box<Fail>> {
        let field = |at: u32| (descriptor >> at & 0x3FFF) << 4;
        const UNUSED: u64 = 3 << 14 | 3 << 30 | 7 << 46 | 0x3FF << 52;
        if descriptor & UNUSED != 0 {
            let message = format!("{descriptor:#018x} is no descriptor of a matrix: bits are set that have no meaning");
            return Err(Fail::new(ReportKind::Invalid, message));
        }
        let span = [16, 128, 64, 32][(descriptor >> 62) as usize];
        let phase = descriptor >> 49 & 7;
        if span == 16 && phase != 0 {
            let message = format!("the descriptor {descriptor:#018x} has a base offset and no swizzle");
            return Err(Fail::new(ReportKind::Invalid, message));
        }
        let start = field(0).wrapping_sub(base) % WINDOW;
        Ok(Layout { base, start, leading: field(16), stride: field(32), span, phase, across, from: 0 })
    }

    /// The same matrix from this row on.
    pub(super) fn from(self, row: usize) -> Layout {
        Layout { from: row, ..self }
    }

    /// The address of a unit: along K, unit `x` of row `y`; otherwise rows `8 y..` at k = `x`.
    fn unit(&self, x: usize, y: usize) -> u64 {
        let (x, y) = (x as u64, y as u64);
        let offset = match (self.across, self.span) {
            (false, 16) => y / 8 * self.stride + x * self.leading + y % 8 * 16,
            (false, span) => y / 8 * self.stride + y % 8 * span + x * 16,
            (true, 16) => y * self.stride + x / 8 * self.leading + x % 8 * 16,
            (true, span) => y / (span / 16) * self.leading + x / 8 * self.stride + x % 8 * span + y % (span / 16) * 16,
        };
        let at = self.base + (self.start + offset) % WINDOW;
        let rows = (at >> 7).wrapping_sub(self.phase);
        at ^ (rows << 4 & (self.span - 16))
    }

    /// The units of `n` rows from `first` on, with `k` columns.
    pub(super) fn units(&self, first: usize, n: usize, k: usize, mut f: impl FnMut(u64) -> Step) -> Step {
        if self.across {
            for y in first / 8..(first + n) / 8 {
                (0..k).try_for_each(|x| f(self.unit(x, y)))?;
            }
        } else {
            for y in first..first + n {
                (0..2).try_for_each(|x| f(self.unit(x, y)))?;
            }
        }
        Ok(())
    }

    /// The rows as they are now.
    pub(super) fn gather(&self, shared: &Scratch, ty: Elem, rows: &mut [Row]) -> Step {
        let read = |at: u64| -> Result<&[u32], Box<Fail>> {
            shared.words(at as usize, 4).ok_or_else(|| {
                let at = shared.undefined(at as usize, 16) as u64;
                let message = format!("an asynchronous product reads shared address {at:#x}, which was never written");
                Fail::new(ReportKind::Uninitialised, message).in_shared(at)
            })
        };
        if !self.across {
            for (y, row) in rows.iter_mut().enumerate() {
                for (x, half) in row.chunks_exact_mut(4).enumerate() {
                    half.copy_from_slice(read(self.unit(x, self.from + y))?);
                }
            }
            return Ok(());
        }
        // Only 16-bit types can be transposed.
        debug_assert_eq!(ty.per_register(), 2, "others have no transposed form");
        for (y, eight) in rows.chunks_exact_mut(8).enumerate() {
            for x in 0..16 {
                let words = read(self.unit(x, self.from / 8 + y))?;
                for (i, row) in eight.iter_mut().enumerate() {
                    let bits = words[i / 2] >> (16 * (i % 2)) & 0xFFFF;
                    let shift = 16 * (x % 2);
                    row[x / 2] = row[x / 2] & !(0xFFFF << shift) | bits << shift;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn descriptor(start: u64, leading: u64, stride: u64, mode: u64) -> u64 {
        start >> 4 | (leading >> 4) << 16 | (stride >> 4) << 32 | mode << 62
    }

    #[test]
    fn swizzled_rows_are_those_of_tensor_copies() {
        for (mode, span, mask) in [(1, 128, 0x70), (2, 64, 0x30), (3, 32, 0x10)] {
            let layout = Layout::new(descriptor(0x1000, 16, 8 * span, mode), false, 0).expect("it is legal");
            for y in 0..64 {
                for x in 0..2 {
                    let plain = 0x1000 + span * y as u64 + 16 * x as u64;
                    assert_eq!(layout.unit(x, y), plain ^ (plain >> 3 & mask), "{span} {x} {y}");
                }
            }
        }
        // Further along K within the row of the pattern.
        let layout = Layout::new(descriptor(0x1060, 16, 1024, 1), false, 0).expect("it is legal");
        let plain = 0x1060 + 128 * 3 + 16;
        assert_eq!(layout.unit(1, 3), plain ^ (plain >> 3 & 0x70));
    }

    #[test]
    fn across_k_eight_rows_lie_together() {
        // 64 rows by 16 of k: a panel of 128 bytes.
        let layout = Layout::new(descriptor(0, 2048, 1024, 1), true, 0).expect("it is legal");
        assert_eq!(layout.unit(0, 0), 0);
        assert_eq!(layout.unit(1, 0), 128 + 16);
        assert_eq!(layout.unit(8, 1), 1024 + 16);
        assert_eq!(layout.unit(0, 9), 2048 + 16);
        let plain = Layout::new(descriptor(0, 256, 128, 0), true, 0).expect("it is legal");
        assert_eq!((plain.unit(9, 0), plain.unit(0, 3)), (256 + 16, 384));
    }

    #[test]
    fn other_blocks_of_a_cluster_have_their_own_window() {
        let base = 0x5_0000;
        let layout = Layout::new(descriptor((base + 0x400) & 0x3_FFFF, 16, 1024, 1), false, base).expect("it is legal");
        assert_eq!(layout.unit(0, 0), base + 0x400);
        assert!(Layout::new(1 << 14, false, 0).is_err());
        assert!(Layout::new(1 << 49, false, 0).is_err());
    }
}
