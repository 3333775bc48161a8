//! Value numbering: instructions whose results can be shared, found by opcode and operands.
//!
//! The table has open addressing, and all keys are in one vector, so a lookup allocates nothing. Entries are never
//! removed: the caller decides whether a result may still be used.

use crate::inst::{Reg, Special};
use crate::ops::Op;

/// An operand, or a part of one.
#[derive(Clone, Copy, Debug)]
pub(super) enum Key {
    Reg(Reg),
    NotPred(Reg),
    Imm(i64),
    F32(u32),
    F64(u64),
    /// A register of a vector, which [`Key::End`] ends.
    Element(Reg),
    End,
    Special(Special),
    Shared(u32),
    Param(u32, i64),
    ParamSym(u32),
    ConstSym(u32),
    At(Reg, i64),
}

impl Key {
    /// Two words that identify the operand.
    fn words(self) -> [u64; 2] {
        let tagged = |tag: u64, low: u32, high: i64| [tag << 32 | u64::from(low), high as u64];
        match self {
            Key::Reg(r) => tagged(1, r.as_u32(), 0),
            Key::NotPred(r) => tagged(2, r.as_u32(), 0),
            Key::Imm(x) => tagged(3, 0, x),
            Key::F32(bits) => tagged(4, bits, 0),
            Key::F64(bits) => tagged(5, 0, bits as i64),
            Key::Element(r) => tagged(6, r.as_u32(), 0),
            Key::End => tagged(7, 0, 0),
            Key::Special(s) => tagged(8, s as u32, 0),
            Key::Shared(i) => tagged(9, i, 0),
            Key::Param(i, offset) => tagged(10, i, offset),
            Key::ParamSym(i) => tagged(11, i, 0),
            Key::ConstSym(i) => tagged(13, i, 0),
            Key::At(r, offset) => tagged(12, r.as_u32(), offset),
        }
    }
}

/// A known instruction: the position of its key, and its result.
#[derive(Clone, Copy)]
struct Entry {
    start: u32,
    len: u32,
    hash: u64,
    result: Reg,
}

/// No entry.
const EMPTY: u32 = u32::MAX;

/// Initial number of slots, a power of two.
const SLOTS: usize = 256;

/// The table. [`Known::begin`] and [`Known::operand`] write a key; [`Known::find`] and [`Known::insert`] use it.
#[derive(Default)]
pub(super) struct Known {
    words: Vec<u64>,
    entries: Vec<Entry>,
    /// Indices of entries; at most half of the slots are in use.
    slots: Vec<u32>,
    /// Start of the current key in `words`.
    start: usize,
    hash: u64,
}

impl Known {
    /// Begins the key of an instruction.
    pub(super) fn begin(&mut self, op: Op) {
        self.words.truncate(self.start);
        self.hash = 0;
        self.word(op as u64);
    }

    /// Appends an operand to the current key.
    pub(super) fn operand(&mut self, key: Key) {
        let [first, second] = key.words();
        self.word(first);
        self.word(second);
    }

    fn word(&mut self, word: u64) {
        // The hash function of Firefox and rustc ("FxHash").
        self.hash = (self.hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
        self.words.push(word);
    }

    /// The result of the instruction with the current key, if there is one that is `usable`.
    pub(super) fn find(&self, usable: impl Fn(Reg) -> bool) -> Option<Reg> {
        self.probe().map(|at| self.entries[at].result).filter(|&result| usable(result))
    }

    /// Records the result of the instruction with the current key.
    pub(super) fn insert(&mut self, result: Reg) {
        if let Some(at) = self.probe() {
            self.entries[at].result = result;
            return;
        }
        if self.slots.len() < 2 * (self.entries.len() + 1) {
            self.grow();
        }
        let (start, len) = (self.start as u32, (self.words.len() - self.start) as u32);
        let slot = self.free(self.hash);
        self.slots[slot] = self.entries.len() as u32;
        self.entries.push(Entry { start, len, hash: self.hash, result });
        self.start = self.words.len();
    }

    /// Forgets all of them.
    pub(super) fn clear(&mut self) {
        *self = Known::default();
    }

    /// The entry with the current key.
    fn probe(&self) -> Option<usize> {
        let spelled = &self.words[self.start..];
        let mut slot = self.first(self.hash)?;
        loop {
            let number = self.slots[slot];
            if number == EMPTY {
                return None;
            }
            let entry = self.entries[number as usize];
            let words = &self.words[entry.start as usize..][..entry.len as usize];
            if entry.hash == self.hash && words == spelled {
                return Some(number as usize);
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    /// The first slot to search for a hash; `None`: the table has no slots yet.
    fn first(&self, hash: u64) -> Option<usize> {
        (!self.slots.is_empty()).then(|| (hash >> 32) as usize & (self.slots.len() - 1))
    }

    /// The first free slot for a hash.
    fn free(&self, hash: u64) -> usize {
        let mut slot = self.first(hash).expect("the table has grown");
        while self.slots[slot] != EMPTY {
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        slot
    }

    fn grow(&mut self) {
        self.slots = vec![EMPTY; (2 * self.slots.len()).max(SLOTS)];
        for number in 0..self.entries.len() {
            let slot = self.free(self.entries[number].hash);
            self.slots[slot] = number as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranelift_entity::EntityRef;

    fn spell(known: &mut Known, x: i64, y: i64) {
        known.begin(Op::AddS32);
        known.operand(Key::Imm(x));
        known.operand(Key::Imm(y));
    }

    #[test]
    fn what_was_inserted_is_found_and_nothing_else() {
        let mut known = Known::default();
        for i in 0..2000usize {
            spell(&mut known, i as i64 / 50, i as i64 % 50);
            assert_eq!(known.find(|_| true), None);
            known.insert(Reg::new(i));
        }
        for i in 0..2000usize {
            spell(&mut known, i as i64 / 50, i as i64 % 50);
            assert_eq!(known.find(|_| true), Some(Reg::new(i)));
            assert_eq!(known.find(|_| false), None);
        }
        spell(&mut known, 7, 50);
        assert_eq!(known.find(|_| true), None);
        known.clear();
        spell(&mut known, 1, 1);
        assert_eq!(known.find(|_| true), None);
    }

    #[test]
    fn a_result_that_is_not_usable_is_replaced() {
        let mut known = Known::default();
        spell(&mut known, 1, 2);
        known.insert(Reg::new(3));
        spell(&mut known, 1, 2);
        known.insert(Reg::new(4));
        spell(&mut known, 1, 2);
        assert_eq!(known.find(|_| true), Some(Reg::new(4)));
    }

    #[test]
    fn vectors_end_somewhere() {
        let regs = |known: &mut Known, lengths: [usize; 2]| {
            known.begin(Op::AddS32);
            for length in lengths {
                (0..length).for_each(|_| known.operand(Key::Element(Reg::new(0))));
                known.operand(Key::End);
            }
        };
        let mut known = Known::default();
        regs(&mut known, [1, 2]);
        known.insert(Reg::new(1));
        regs(&mut known, [2, 1]);
        assert_eq!(known.find(|_| true), None);
    }
}
