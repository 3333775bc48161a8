//! The registers of an instruction, and the formats of what they hold.

/// A binary floating-point format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Float {
    /// Bits of the exponent.
    pub exponent: u32,
    /// Bits of the fraction.
    pub fraction: u32,
    /// Bits below the fraction that an instruction ignores.
    pub ignored: u32,
}

impl Float {
    /// `.f16`
    pub const F16: Float = Float::new(5, 10);
    /// `.bf16`
    pub const BF16: Float = Float::new(8, 7);
    /// `.f32`
    pub const F32: Float = Float::new(8, 23);
    /// `.f64`
    pub const F64: Float = Float::new(11, 52);
    /// `.tf32` in an f32
    pub const TF32: Float = Float { exponent: 8, fraction: 10, ignored: 13 };
    /// `.e4m3`
    pub const E4M3: Float = Float::new(4, 3);
    /// `.e5m2`
    pub const E5M2: Float = Float::new(5, 2);

    const fn new(exponent: u32, fraction: u32) -> Float {
        Float { exponent, fraction, ignored: 0 }
    }

    /// Bits of a value.
    pub const fn bits(self) -> u32 {
        1 + self.exponent + self.fraction + self.ignored
    }

    /// What is added to exponents.
    pub const fn bias(self) -> i64 {
        (1 << (self.exponent - 1)) - 1
    }

    /// The value with these fields; exponents beyond the format give subnormals, zeros and the largest number.
    pub fn make(self, negative: bool, exponent: i64, fraction: u64) -> u64 {
        let (width, mask) = (self.fraction, (1u64 << self.fraction) - 1);
        let biased = exponent + self.bias();
        let top = (1i64 << self.exponent) - 1;
        let magnitude = if biased >= top {
            // E4M3 has numbers at the top exponent, and no infinity: all but its NaN.
            ((top - 1) as u64) << width | mask
        } else if biased > 0 {
            (biased as u64) << width | fraction & mask
        } else {
            let shift = (1 - biased) as u32;
            if shift > width { 0 } else { (1 << width | fraction & mask) >> shift }
        };
        (u64::from(negative) << (self.exponent + width) | magnitude) << self.ignored
    }
}

/// What a part of an operand is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elem {
    /// Any bits, of this number.
    Int(u32),
    /// A number.
    Float(Float),
    /// One of few values, so that lanes agree now and then.
    Few,
    /// A source lane, or the clamp and mask of a shuffle.
    Lane,
    /// All lanes.
    AllLanes,
    /// Some lanes, the same in all of them.
    Members,
    /// A truth value.
    Truth,
}

/// Size of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// A predicate, stored as a word.
    Pred,
    /// 16 bits, stored as a word.
    B16,
    /// 32 bits.
    B32,
    /// 64 bits.
    B64,
}

impl Width {
    /// 32-bit words in memory.
    pub const fn words(self) -> usize {
        match self {
            Width::Pred | Width::B16 | Width::B32 => 1,
            Width::B64 => 2,
        }
    }
}

/// A register of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    /// Its size.
    pub width: Width,
    /// What it holds.
    pub elem: Elem,
    /// How many of them.
    pub per: usize,
}

impl Operand {
    /// Bits of one element.
    pub fn elem_bits(&self) -> u32 {
        match self.elem {
            Elem::Float(f) => f.bits(),
            Elem::Int(bits) => bits,
            Elem::Few | Elem::Lane | Elem::AllLanes | Elem::Members => 32,
            Elem::Truth => 1,
        }
    }
}

/// A register of lane `lane` in the words of one warp.
pub fn register(operands: &[Operand], words: &[u32], index: usize, lane: usize) -> u64 {
    let at: usize = operands[..index].iter().map(|o| 32 * o.width.words()).sum();
    match operands[index].width {
        Width::B64 => u64::from(words[at + 2 * lane]) | u64::from(words[at + 2 * lane + 1]) << 32,
        Width::B16 => u64::from(words[at + lane] as u16),
        Width::B32 | Width::Pred => u64::from(words[at + lane]),
    }
}
