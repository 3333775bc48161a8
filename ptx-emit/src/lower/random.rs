//! Philox4x32-10, the words of `random` (`tilec_ir::numerics::philox`): ten rounds of two 32 x 32 bit products.
//!
//! All of it is pure, so elements of a thread that are words of one counter share it.

use super::state::Lower;
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;
use tilec_ir::numerics::philox::{FACTORS, ROUNDS, STEPS};

/// Words of a counter.
pub(super) const WORDS: i64 = 4;
/// The bits of a counter's number: 64 bits, less two for the word.
const COUNTERS: i64 = (1 << 62) - 1;

/// The position of an element in a sequence: the sum of a 64-bit register and a literal.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) own: Option<Reg>,
    pub(super) known: i64,
    /// Trailing zero bits of the register.
    pub(super) zeros: u32,
}

impl Place {
    /// A position that is a literal.
    pub(super) fn known(known: i64) -> Place {
        Place { own: None, known, zeros: i64::BITS }
    }
}

impl Lower<'_> {
    /// The word of a sequence at a position.
    pub(super) fn random_word(&mut self, seed: Reg, place: Place) -> Reg {
        let key = self.halves(seed);
        let Place { own, known, zeros } = place;
        let number = |lower: &mut Self, x: i64| lower.emit.pure(Class::B64, P::MovB64, [Operand::Imm(x)]);
        let Some(own) = own else {
            let counter = number(self, known >> 2 & COUNTERS);
            return self.philox(counter, key)[known.rem_euclid(WORDS) as usize];
        };
        if zeros >= WORDS.trailing_zeros() {
            // The low bits of the position are known, so the word is. Other elements use the other words of the
            // counter.
            let quarter = self.emit.pure(Class::B64, P::ShrU64, [own.into(), Operand::Imm(2)]);
            let counter = match known.div_euclid(WORDS) {
                0 => quarter,
                more => {
                    let sum = self.emit.pure(Class::B64, P::AddS64, [quarter.into(), Operand::Imm(more)]);
                    let all = number(self, COUNTERS);
                    self.emit.pure(Class::B64, P::AndB64, [sum.into(), all.into()])
                }
            };
            return self.philox(counter, key)[known.rem_euclid(WORDS) as usize];
        }
        let place = match known {
            0 => own,
            _ => self.emit.pure(Class::B64, P::AddS64, [own.into(), Operand::Imm(known)]),
        };
        let counter = self.emit.pure(Class::B64, P::ShrU64, [place.into(), Operand::Imm(2)]);
        let words = self.philox(counter, key);
        let low = self.emit.pure(Class::B32, P::CvtU32U64, [place.into()]);
        let mut bit = |bit: i64| {
            let bit = self.emit.pure(Class::B32, P::AndB32, [low.into(), Operand::Imm(bit)]);
            self.emit.pure(Class::Pred, P::SetpNeS32, [bit.into(), Operand::Imm(0)])
        };
        let (odd, upper) = (bit(1), bit(2));
        let pairs = [[words[0], words[1]], [words[2], words[3]]].map(|[even, other]| self.choose(odd, other, even));
        self.choose(upper, pairs[1], pairs[0])
    }

    /// The lower and the upper word.
    fn halves(&mut self, x: Reg) -> [Reg; 2] {
        let low = self.emit.pure(Class::B32, P::CvtU32U64, [x.into()]);
        let high = self.emit.pure(Class::B64, P::ShrU64, [x.into(), Operand::Imm(32)]);
        [low, self.emit.pure(Class::B32, P::CvtU32U64, [high.into()])]
    }

    /// The words of a counter whose upper half is zero.
    fn philox(&mut self, counter: Reg, mut key: [Reg; 2]) -> [Reg; 4] {
        let zero = self.emit.pure(Class::B32, P::MovB32, [Operand::Imm(0)]);
        let [low, high] = self.halves(counter);
        let mut words = [low, high, zero, zero];
        for _ in 0..ROUNDS {
            let [a, b, c, d] = words;
            let [x, y] = [(a, FACTORS[0]), (c, FACTORS[1])].map(|(word, factor)| {
                // The product of zero words in the first round is zero.
                if word == zero {
                    return [zero; 2];
                }
                let factor = Operand::Imm(i64::from(factor));
                let product = self.emit.pure(Class::B64, P::MulWideU32, [word.into(), factor]);
                self.halves(product)
            });
            let mut mixed = |product: Reg, word: Reg, key: Reg| {
                let others: Vec<Reg> = [product, word].into_iter().filter(|&w| w != zero).collect();
                others.into_iter().fold(key, |all, w| self.emit.pure(Class::B32, P::XorB32, [all.into(), w.into()]))
            };
            words = [mixed(y[1], b, key[0]), y[0], mixed(x[1], d, key[1]), x[0]];
            key = [0, 1].map(|i| {
                let step = Operand::Imm(i64::from(STEPS[i]));
                self.emit.pure(Class::B32, P::AddS32, [key[i].into(), step])
            });
        }
        words
    }
}
