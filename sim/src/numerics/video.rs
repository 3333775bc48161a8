//! The video instructions on bytes, halves and words (PTX ISA 9.7.18): `vadd`, `vmad`, `vset2`, `vabsdiff4` and others.
//!
//! The manual computes with 33 bits and more; a result that is not clamped is cut to 32 bits before the third operand is added.
//! Forms in which a GPU does otherwise than the manual are refused where they are read (`parse::sem::video`).

/// A byte, a half or all of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Select {
    /// Bits of the part.
    pub bits: u32,
    /// Position of its lowest bit.
    pub at: u32,
}

impl Select {
    /// All of a word.
    pub const WORD: Select = Select { bits: 32, at: 0 };

    /// The part that a selector such as `b2` or `h1` names.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Select> {
        let (kind, index) = word.split_at_checked(1)?;
        let bits = match kind {
            "b" => 8,
            "h" => 16,
            _ => return None,
        };
        let index: u32 = index.parse().ok().filter(|i| i * bits < 32)?;
        (word.len() == 2).then_some(Select { bits, at: index * bits })
    }

    fn mask(self) -> u32 {
        (u32::MAX >> (32 - self.bits)) << self.at
    }

    fn extract(self, x: u32, signed: bool) -> i64 {
        let top = x << (32 - self.bits - self.at);
        if signed { i64::from(top as i32 >> (32 - self.bits)) } else { i64::from(top >> (32 - self.bits)) }
    }

    fn clamp(self, x: i128, signed: bool) -> i128 {
        let n = self.bits;
        if signed { x.clamp(-(1 << (n - 1)), (1 << (n - 1)) - 1) } else { x.clamp(0, (1 << n) - 1) }
    }
}

/// The operation on two parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the variants are PTX's own names")]
pub enum Operation {
    Add,
    Sub,
    AbsDiff,
    Min,
    Max,
    Average,
    ShiftLeft {
        clamp: bool,
    },
    ShiftRight {
        clamp: bool,
    },
    Set(Comparison),
    /// A product and a sum: which operand is negated, whether one is added, and the shift of the result.
    Mad {
        negate_product: bool,
        negate_addend: bool,
        plus_one: bool,
        signed: bool,
        shift: u32,
    },
}

/// A comparison of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the variants are PTX's own names")]
pub enum Comparison {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Comparison {
    fn holds(self, a: i64, b: i64) -> bool {
        match self {
            Comparison::Eq => a == b,
            Comparison::Ne => a != b,
            Comparison::Lt => a < b,
            Comparison::Le => a <= b,
            Comparison::Gt => a > b,
            Comparison::Ge => a >= b,
        }
    }
}

impl Operation {
    /// The result before clamping; `c` is of use for a product alone.
    fn apply(self, a: i64, b: i64, c: u32) -> i128 {
        let small = |x: i64| i128::from(x);
        let amount = |clamp: bool| if clamp { b.clamp(0, 32) } else { b & 31 };
        match self {
            Operation::Add => small(a + b),
            Operation::Sub => small(a - b),
            Operation::AbsDiff => small((a - b).abs()),
            Operation::Min => small(a.min(b)),
            Operation::Max => small(a.max(b)),
            // Halves go away from zero up to one half, toward zero for negative sums.
            Operation::Average => small(if a + b >= 0 { (a + b + 1) >> 1 } else { (a + b) >> 1 }),
            Operation::ShiftLeft { clamp } => small(a) << amount(clamp),
            Operation::ShiftRight { clamp } => small(a) >> amount(clamp),
            Operation::Set(comparison) => i128::from(comparison.holds(a, b)),
            Operation::Mad { negate_product, negate_addend, plus_one, signed, shift } => {
                let product = small(a) * small(b);
                let addend = if signed { i128::from(c as i32) } else { i128::from(c) };
                let product = if negate_product { -product } else { product };
                let addend = if negate_addend { -addend } else { addend };
                (product + addend + i128::from(plus_one)) >> shift
            }
        }
    }
}

/// A scalar video instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Video {
    /// What is computed.
    pub operation: Operation,
    /// The part of each source and whether it is signed.
    pub a: (Select, bool),
    /// Likewise.
    pub b: (Select, bool),
    /// Whether the result is signed.
    pub signed: bool,
    /// `.sat`
    pub sat: bool,
    /// Whether the third operand is added.
    pub add: bool,
}

impl Video {
    /// The result for one lane.
    #[must_use]
    pub fn apply(self, a: u32, b: u32, c: u32) -> u32 {
        let result = self.operation.apply(self.a.0.extract(a, self.a.1), self.b.0.extract(b, self.b.1), c);
        let result = if self.sat { Select::WORD.clamp(result, self.signed) } else { result } as u32;
        if self.add { result.wrapping_add(c) } else { result }
    }
}

/// A video instruction on two halves or four bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Simd {
    /// The operation on each part.
    pub operation: Operation,
    /// Bits of a part.
    pub bits: u32,
    /// For each part of the result, lowest first, the part of `a` (then `b`) that is its operand.
    pub a: [u8; 4],
    /// Likewise of the second source.
    pub b: [u8; 4],
    /// Whether the parts of the sources are signed.
    pub sources_signed: (bool, bool),
    /// Whether those of the result are.
    pub signed: bool,
    /// `.sat`
    pub sat: bool,
    /// Which parts of the result are computed, one bit each.
    pub mask: u8,
    /// Whether the results are added to the third operand, rather than merged into it.
    pub add: bool,
}

impl Simd {
    /// The result for one lane.
    #[must_use]
    pub fn apply(self, a: u32, b: u32, c: u32) -> u32 {
        let per = 32 / self.bits;
        let part = |select: u8, signed: bool| {
            let (word, index) = if u32::from(select) < per { (a, select) } else { (b, select - per as u8) };
            Select { bits: self.bits, at: u32::from(index) * self.bits }.extract(word, signed)
        };
        let mut out = c;
        for i in 0..per as usize {
            if self.mask >> i & 1 == 0 {
                continue;
            }
            let to = Select { bits: self.bits, at: i as u32 * self.bits };
            let (x, y) = (part(self.a[i], self.sources_signed.0), part(self.b[i], self.sources_signed.1));
            let result = self.operation.apply(x, y, 0);
            let result = if self.sat { to.clamp(result, self.signed) } else { result } as u32;
            out =
                if self.add { out.wrapping_add(result) } else { (out & !to.mask()) | ((result << to.at) & to.mask()) };
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn video(operation: Operation, a: (&str, bool), b: (&str, bool)) -> Video {
        let select = |(word, signed)| (Select::from_word(word).unwrap_or(Select::WORD), signed);
        Video { operation, a: select(a), b: select(b), signed: true, sat: false, add: false }
    }

    #[test]
    fn selectors() {
        assert_eq!(Select::from_word("b3"), Some(Select { bits: 8, at: 24 }));
        assert_eq!(Select::from_word("h1"), Some(Select { bits: 16, at: 16 }));
        assert_eq!([Select::from_word("h2"), Select::from_word("b4"), Select::from_word("b")], [None; 3]);
    }

    #[test]
    fn parts_are_extended_and_clamped() {
        // 0xff is -1 in byte 1 of a; the upper half of b is 0x8000.
        let add = video(Operation::Add, ("b1", true), ("h1", true));
        assert_eq!(add.apply(0xff00, 0x8000_1234, 0), 0xffff_7fff);
        let word = video(Operation::Add, ("", true), ("", true));
        assert_eq!(word.apply(0x7fff_ffff, 1, 0), 0x8000_0000);
        assert_eq!(Video { sat: true, ..word }.apply(0x7fff_ffff, 1, 0), 0x7fff_ffff);
        assert_eq!(video(Operation::AbsDiff, ("b0", false), ("b0", false)).apply(3, 250, 0), 247);
        assert_eq!(Video { add: true, ..word }.apply(2, 3, 10), 15);
    }

    #[test]
    fn shifts_and_comparisons() {
        let shift = |operation, a, b| video(operation, ("", true), ("", false)).apply(a, b, 0);
        assert_eq!(shift(Operation::ShiftLeft { clamp: true }, 1, 32), 0);
        assert_eq!(shift(Operation::ShiftLeft { clamp: false }, 1, 33), 2);
        assert_eq!(shift(Operation::ShiftRight { clamp: true }, 0x8000_0000, 4_000_000_000), u32::MAX);
        assert_eq!(shift(Operation::ShiftRight { clamp: false }, 0x8000_0000, 63), u32::MAX);
        // -1 as signed is below 1, 0xffffffff as unsigned is not.
        let less = Operation::Set(Comparison::Lt);
        assert_eq!(video(less, ("", true), ("", false)).apply(u32::MAX, 1, 0), 1);
        assert_eq!(video(less, ("", false), ("", false)).apply(u32::MAX, 1, 0), 0);
    }

    #[test]
    fn multiply_and_add() {
        let mad = |negate_product, negate_addend, plus_one, shift, sat| Video {
            sat,
            ..video(
                Operation::Mad { negate_product, negate_addend, plus_one, signed: true, shift },
                ("", true),
                ("", true),
            )
        };
        assert_eq!(mad(false, false, false, 0, false).apply(7, 9, 1), 64);
        assert_eq!(mad(true, false, false, 0, false).apply(7, 9, 1) as i32, -62);
        assert_eq!(mad(false, true, false, 0, false).apply(7, 9, 1), 62);
        assert_eq!(mad(false, false, true, 7, false).apply(7, 9, 64), 1);
        assert_eq!(mad(false, false, false, 15, false).apply(0x8000_0000, 2, 0) as i32, -0x2_0000);
        assert_eq!(mad(false, false, false, 0, true).apply(0x7fff_ffff, 2, 0), 0x7fff_ffff);
    }

    fn simd(operation: Operation, bits: u32) -> Simd {
        let (a, b) = if bits == 16 { ([0, 1, 0, 0], [2, 3, 0, 0]) } else { ([0, 1, 2, 3], [4, 5, 6, 7]) };
        Simd { operation, bits, a, b, sources_signed: (true, true), signed: true, sat: false, mask: 15, add: false }
    }

    #[test]
    fn parts_are_independent() {
        let add = simd(Operation::Add, 16);
        assert_eq!(add.apply(0x7fff_ffff, 0x0001_0001, 0), 0x8000_0000);
        assert_eq!(Simd { sat: true, ..add }.apply(0x7fff_ffff, 0x0001_0001, 0), 0x7fff_0000);
        assert_eq!(Simd { mask: 2, ..add }.apply(0x0003_0005, 0x0001_0001, 0x9999_9999), 0x0004_9999);
        // Both sources from the halves of a, crossed.
        let crossed = Simd { a: [1, 0, 0, 0], b: [0, 0, 0, 0], ..add };
        assert_eq!(crossed.apply(0x0010_0001, 0xdead_beef, 0), 0x0002_0011);
        let difference = Simd { sources_signed: (false, false), add: true, ..simd(Operation::AbsDiff, 8) };
        assert_eq!(difference.apply(0x00ff_0a10, 0xff00_0b0e, 5), 5 + 255 + 255 + 1 + 2);
        let average = simd(Operation::Average, 8);
        // (3 + 4 + 1) >> 1, (-3 - 4) >> 1, (-1 + 0) >> 1, (1 + 0 + 1) >> 1
        assert_eq!(average.apply(0x01ff_fd03, 0x0000_fc04, 0), 0x01ff_fc04);
        let set = simd(Operation::Set(Comparison::Lt), 8);
        assert_eq!(set.apply(0x01ff_fd03, 0x0000_fc04, 0), 0x0001_0001);
    }
}
