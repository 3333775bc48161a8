//! The time that rows of the boxes take which TMA loads.
//!
//! A multiprocessor loads 64 bytes per clock from the second-level cache. A row of 64 bytes takes a clock, a row that
//! crosses the end of a line of 128 bytes twice the time of one inside of it (docs/notes/tma.md). That a row of 32 bytes
//! takes as long as one of 64 is an assumption. The time is none of memory: what is left of a line is in the cache when
//! the next box asks for it.

use super::work::{Env, Move, Work};
use crate::tile_scheduler::cluster::LINE;

/// The rows of a copy's boxes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct BoxRows {
    /// Bytes of a row of the window.
    pub bytes: u64,
    /// Bytes from a row of the tensor to the next.
    pub pitch: u64,
    /// Whether rows of the tensor begin inside of lines.
    pub crosses: bool,
}

impl BoxRows {
    /// Bytes of a line.
    pub const LINE: u64 = LINE;
    /// Bytes that pass in the time of a shorter row.
    pub const LEAST: u64 = 64;

    /// Whether boxes are longer than a row of their window, and begin inside of lines: of windows of 96 bytes, boxes of
    /// 128 bytes begin at each multiple of 32, and three in four cross the end of a line.
    pub fn begins_inside(self) -> bool {
        !self.bytes.is_power_of_two() && self.bytes < LINE
    }

    /// The time that rows take, relative to that of their bytes in whole lines.
    pub fn times(self) -> f64 {
        let short = (BoxRows::LEAST as f64 / self.bytes as f64).max(1.0);
        // Boxes begin at multiples of `apart`.
        let apart = 1u64 << self.bytes.trailing_zeros().min(LINE.ilog2());
        let divided = if self.begins_inside() { 2.0 - apart as f64 / LINE as f64 } else { 1.0 };
        short * divided * if self.crosses { 2.0 } else { 1.0 }
    }
}

impl Work<'_> {
    /// The rows of a copy's boxes; `None`: no dimension of its window is contiguous.
    pub(super) fn box_rows(&self, env: &Env, m: &Move) -> Option<BoxRows> {
        let run = m.contiguous.and_then(|d| self.extent(env, *m.shape.get(d)?))?;
        let pitch = m.pitch.and_then(|e| self.int(env, e)).unwrap_or(0).unsigned_abs();
        // A single row crosses one line at most.
        let several = self.elements(env, &m.shape) != Some(run);
        let crosses = several && !m.elem.makes_up(pitch, LINE);
        Some(BoxRows { bytes: m.elem.bytes_of(run), pitch: m.elem.bytes_of(pitch), crosses })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_rows_and_rows_across_lines_take_longer() {
        let times = |bytes, crosses| BoxRows { bytes, pitch: 0, crosses }.times();
        assert_eq!([256, 128, 64, 32, 16].map(|bytes| times(bytes, false)), [1.0, 1.0, 1.0, 2.0, 4.0]);
        assert_eq!([128, 32].map(|bytes| times(bytes, true)), [2.0, 4.0]);
        // Boxes of a line at multiples of 32 and of 16 bytes.
        assert_eq!([96, 112].map(|bytes| times(bytes, false)), [1.75, 1.875]);
    }
}
