//! Fragments of `wmma`, the position of each element in them, and the instructions as decoded.

use super::*;
use crate::numerics::Round;
use crate::numerics::mma::{Acc, Elem, layout};

/// Which operand a fragment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    A,
    B,
    /// C or D.
    C,
}

/// Rows, columns and depth of an `mma`: M, N, K.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
}

impl Extent {
    /// `m16n16k16`.
    pub(crate) fn from_word(word: &str) -> Option<Extent> {
        let (m, rest) = word.strip_prefix('m')?.split_once('n')?;
        let (n, k) = rest.split_once('k')?;
        Some(Extent { m: m.parse().ok()?, n: n.parse().ok()?, k: k.parse().ok()? })
    }

    /// Whether it is computed as the transposed product, because M < N.
    pub(crate) fn swapped(self) -> bool {
        self.m == 8 && self.n == 32
    }
}

/// A matrix tile distributed over a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fragment {
    pub(crate) part: Part,
    pub(crate) extent: Extent,
    /// Bits of an element.
    pub(crate) bits: usize,
}

impl Fragment {
    pub(crate) fn rows(self) -> usize {
        if self.part == Part::B { self.extent.k } else { self.extent.m }
    }

    pub(crate) fn columns(self) -> usize {
        if self.part == Part::A { self.extent.k } else { self.extent.n }
    }

    /// Elements per register.
    pub(crate) fn per(self) -> usize {
        (32 / self.bits).max(1)
    }

    /// Number of registers with distinct contents.
    pub(crate) fn registers(self) -> usize {
        self.rows() * self.columns() / (32 * self.per())
    }

    /// Row and column of element `e` of register `r`.
    pub(crate) fn place(self, lane: usize, r: usize, e: usize) -> (usize, usize) {
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

    /// Elements that are contiguous in memory, as ranges of a lane's elements.
    pub(crate) fn groups(self, row_major: bool) -> Vec<(usize, usize)> {
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

pub(crate) fn bits(ty: &str) -> Option<usize> {
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

/// `wmma.load` or `wmma.store`.
#[derive(Clone, Debug)]
pub(crate) struct Move {
    pub(crate) fragment: Fragment,
    pub(crate) row_major: bool,
    pub(crate) addr: Addr,
    pub(crate) area: Area,
    /// Distance of rows or columns, in elements; `None`: the matrix is packed.
    pub(crate) stride: Option<R>,
    pub(crate) regs: Vec<R>,
    pub(crate) store: bool,
    pub(crate) groups: Vec<(usize, usize)>,
}

impl Move {
    /// From the modifiers `load a sync aligned layout shape [space] type`.
    pub(crate) fn from_words(words: &[&str], addr: Addr, area: Area, regs: Vec<R>, stride: Option<R>) -> Option<Move> {
        let part = match *words.get(1)? {
            "a" => Part::A,
            "b" => Part::B,
            _ => Part::C,
        };
        let fragment = Fragment { part, extent: Extent::from_word(words.get(5)?)?, bits: bits(words.last()?)? };
        let row_major = *words.get(4)? == "row";
        let n = fragment.registers();
        if n == 0 || regs.is_empty() || !regs.len().is_multiple_of(n) {
            return None;
        }
        let groups = fragment.groups(row_major);
        // Memory is addressed in bytes.
        if groups.iter().any(|(_, n)| n * fragment.bits < 8) {
            return None;
        }
        Some(Move { fragment, row_major, addr, area, stride, regs, store: words.first() == Some(&"store"), groups })
    }
}

/// The arithmetic of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Float { ab: Elem, c: Acc, d: Acc },
    Integer { a_signed: bool, b_signed: bool, satfinite: bool },
    Bits { and: bool },
    Double(Round),
}

/// `wmma.mma`.
#[derive(Clone, Debug)]
pub(crate) struct Product {
    pub(crate) kind: Kind,
    pub(crate) extent: Extent,
    /// Bits of an element of A and B.
    pub(crate) bits: usize,
    pub(crate) d: Vec<R>,
    pub(crate) a: Vec<R>,
    pub(crate) b: Vec<R>,
    pub(crate) c: Vec<R>,
}

impl Product {
    /// From the modifiers `mma [op popc] sync aligned alayout blayout shape types`.
    pub(crate) fn from_words(words: &[&str], [d, a, b, c]: [Vec<R>; 4]) -> Option<Product> {
        let extent = words.iter().find_map(|w| Extent::from_word(w))?;
        let types: Vec<&str> = words.iter().copied().filter(|w| bits(w).is_some()).collect();
        let acc = |w: &str| if w == "f16" { Acc::F16 } else { Acc::F32 };
        let (kind, bits) = match *types.as_slice() {
            [d, c] => (Kind::Float { ab: Elem::F16, c: acc(c), d: acc(d) }, 16),
            [_, "bf16", _, _] => (Kind::Float { ab: Elem::Bf16, c: Acc::F32, d: Acc::F32 }, 16),
            [_, "tf32", _, _] => (Kind::Float { ab: Elem::Tf32, c: Acc::F32, d: Acc::F32 }, 32),
            [_, "f64", _, _] => {
                let round = words.iter().find_map(|w| match *w {
                    "rz" => Some(Round::Zero),
                    "rm" => Some(Round::Down),
                    "rp" => Some(Round::Up),
                    _ => None,
                });
                (Kind::Double(round.unwrap_or(Round::Nearest)), 64)
            }
            [_, "b1", _, _] => (Kind::Bits { and: words.contains(&"and") }, 1),
            [_, a, b, _] => {
                let satfinite = words.contains(&"satfinite");
                (Kind::Integer { a_signed: a.starts_with('s'), b_signed: b.starts_with('s'), satfinite }, bits(a)?)
            }
            _ => return None,
        };
        Some(Product { kind, extent, bits, d, a, b, c })
    }
}
