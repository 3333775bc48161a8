//! `wmma`: tiles loaded into fragments, multiplied and stored by a whole warp (PTX 9.7.14.3 to 9.7.14.5).
//!
//! The manual leaves open which lane holds which element. Here it is what ptxas makes of these instructions for Turing and
//! later: the fragments of the `mma` they become, 16 rows (or, of the tile with 8 rows, 16 columns) to an instruction. Where a
//! fragment has more registers than the tile has elements the rest are copies. Registers that hold neighbours in memory
//! move together, up to 8 bytes, and that is what counts as an access.

mod moves;
mod product;

pub(crate) use moves::Move;
pub(crate) use product::Product;

use crate::exec::access::{addresses, for_lanes};
use crate::exec::warp::Warp;
use crate::exec::{Cta, Fail, Step};
use crate::numerics::Round;
use crate::numerics::half::Half;
use crate::numerics::mma::{self, Acc, Elem, Form, Generation, Layout, MmaError, Shape, layout};
use crate::parse::raw::Space;
use crate::program::{Addr, Area, R};
use crate::race::Who;
use crate::report::ReportKind;

/// Which operand a fragment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    A,
    B,
    /// C or D.
    C,
}

/// Rows, columns and depth of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    m: usize,
    n: usize,
    k: usize,
}

impl Extent {
    /// `m16n16k16`.
    fn from_word(word: &str) -> Option<Extent> {
        let (m, rest) = word.strip_prefix('m')?.split_once('n')?;
        let (n, k) = rest.split_once('k')?;
        Some(Extent { m: m.parse().ok()?, n: n.parse().ok()?, k: k.parse().ok()? })
    }

    /// Computed as the transposed product, for its columns are the longer side.
    fn swapped(self) -> bool {
        self.m == 8 && self.n == 32
    }
}

/// A tile spread over a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fragment {
    part: Part,
    extent: Extent,
    /// Bits of an element.
    bits: usize,
}

impl Fragment {
    fn rows(self) -> usize {
        if self.part == Part::B { self.extent.k } else { self.extent.m }
    }

    fn columns(self) -> usize {
        if self.part == Part::A { self.extent.k } else { self.extent.n }
    }

    /// Elements of a register.
    fn per(self) -> usize {
        (32 / self.bits).max(1)
    }

    /// Registers of different contents.
    fn registers(self) -> usize {
        self.rows() * self.columns() / (32 * self.per())
    }

    /// Row and column of element `e` of register `r`.
    fn place(self, lane: usize, r: usize, e: usize) -> (usize, usize) {
        let Extent { m, k, .. } = self.extent;
        let (per, swapped) = (self.per(), self.extent.swapped());
        match self.part {
            Part::C if m == 8 && !swapped => layout::n8_c(lane, r * per + e),
            Part::C => {
                let i = r * per + e;
                let (x, y) = layout::n8_c(lane, i % 4);
                match m {
                    8 => (y, x + i / 4 * 16),
                    32 => (x + i / 4 * 16, y),
                    _ => (x, y + i / 4 * 8),
                }
            }
            Part::A if m > 8 => {
                let each = 16 * k / (32 * per);
                let (x, depth) = layout::m16n8_a(per, lane, r % each, e);
                (x + r / each * 16, depth)
            }
            Part::B if swapped => {
                let each = 16 * k / (32 * per);
                let (x, depth) = layout::m16n8_a(per, lane, r % each, e);
                (depth, x + r / each * 16)
            }
            Part::A => {
                let (depth, x) = layout::n8_b(per, lane, r, e);
                (x, depth)
            }
            Part::B => {
                let each = (8 * k / (32 * per)).max(1);
                let (depth, x) = layout::n8_b(per, lane, r % each, e);
                (depth, x + r / each * 8)
            }
        }
    }

    /// Elements that lie side by side in memory, as ranges of the elements of a lane.
    fn groups(self, row_major: bool) -> Vec<(usize, usize)> {
        let place = |i: usize| {
            let (row, column) = self.place(0, i / self.per(), i % self.per());
            if row_major { (row, column) } else { (column, row) }
        };
        let all = self.registers() * self.per();
        let mut out = Vec::new();
        let mut start = 0;
        while start < all {
            let mut n = (64 / self.bits).min(all - start);
            let (line, first) = place(start);
            while n > 1 && !(n.is_power_of_two() && (1..n).all(|i| place(start + i) == (line, first + i))) {
                n -= 1;
            }
            out.push((start, n));
            start += n;
        }
        out
    }
}

fn bits(ty: &str) -> Option<usize> {
    Some(match ty {
        "f16" | "bf16" => 16,
        "tf32" | "f32" | "s32" => 32,
        "f64" => 64,
        "s8" | "u8" => 8,
        "s4" | "u4" => 4,
        "b1" => 1,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_element_has_one_place() {
        for (shape, types) in [
            ("m16n16k16", [16, 8].as_slice()),
            ("m8n32k16", &[16, 8]),
            ("m32n8k16", &[16, 8]),
            ("m16n16k8", &[32]),
            ("m8n8k4", &[64]),
            ("m8n8k32", &[4]),
            ("m8n8k128", &[1]),
        ] {
            let extent = Extent::from_word(shape).expect("a shape");
            let mut fragments = vec![Fragment { part: Part::C, extent, bits: 32 }];
            if types[0] == 16 {
                fragments.push(Fragment { part: Part::C, extent, bits: 16 });
            }
            for bits in types {
                fragments.extend([Part::A, Part::B].map(|part| Fragment { part, extent, bits: *bits }));
            }
            for f in fragments {
                let mut seen = BTreeSet::new();
                for lane in 0..32 {
                    for i in 0..f.registers() * f.per() {
                        let place = f.place(lane, i / f.per(), i % f.per());
                        assert!(place.0 < f.rows() && place.1 < f.columns(), "{f:?} {place:?}");
                        assert!(seen.insert(place), "{f:?} {place:?} twice");
                    }
                }
                assert_eq!(seen.len(), f.rows() * f.columns(), "{f:?}");
                for row_major in [true, false] {
                    assert_eq!(f.groups(row_major).iter().map(|g| g.1).sum::<usize>(), f.registers() * f.per());
                }
            }
        }
    }
}
