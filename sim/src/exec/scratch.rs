//! Memory of a block or a thread that is undefined until written: words, with four bits for each that mark defined
//! bytes.

/// Shared memory of a block, or local memory of a thread.
#[derive(Clone, Debug)]
pub(crate) struct Scratch {
    pub(crate) bytes: u64,
    words: Vec<u32>,
    init: Vec<u8>,
}

impl Scratch {
    pub(crate) fn new(bytes: u64) -> Scratch {
        let n = bytes.div_ceil(4) as usize;
        Scratch { bytes, words: vec![0; n], init: vec![0; n] }
    }

    /// The `n` bytes (1, 2 or 4, within a word) at `at`, if all are defined.
    #[inline(always)]
    pub(crate) fn get(&self, at: usize, n: usize) -> Option<u32> {
        let (word, shift) = (at / 4, at % 4);
        let need = ((1u8 << n) - 1) << shift;
        if self.init[word] & need != need {
            return None;
        }
        let v = self.words[word] >> (shift * 8);
        Some(if n == 4 { v } else { v & ((1 << (n * 8)) - 1) })
    }

    /// The first of the `n` bytes at `at` that is not defined.
    pub(crate) fn undefined(&self, at: usize, n: usize) -> usize {
        (at..at + n).find(|byte| self.init.get(byte / 4).is_none_or(|word| word >> (byte % 4) & 1 == 0)).unwrap_or(at)
    }

    /// `n` whole words at `at`, if they exist and are defined.
    #[inline(always)]
    pub(crate) fn words(&self, at: usize, n: usize) -> Option<&[u32]> {
        let range = at / 4..at / 4 + n;
        let defined = self.init.get(range.clone())?.iter().all(|i| *i == 0xF);
        if defined { self.words.get(range) } else { None }
    }

    /// Writes whole words, which exist.
    #[inline(always)]
    pub(crate) fn put_words(&mut self, at: usize, data: &[u32]) {
        let range = at / 4..at / 4 + data.len();
        self.words[range.clone()].copy_from_slice(data);
        self.init[range].fill(0xF);
    }

    /// Writes the low `n` bytes of `value`. The result says whether memory held equal, defined bytes already.
    #[inline(always)]
    pub(crate) fn put(&mut self, at: usize, n: usize, value: u32) -> bool {
        let same = self.get(at, n) == Some(if n == 4 { value } else { value & ((1 << (n * 8)) - 1) });
        let (word, shift) = (at / 4, at % 4);
        let mask = if n == 4 { u32::MAX } else { ((1u32 << (n * 8)) - 1) << (shift * 8) };
        self.words[word] = (self.words[word] & !mask) | ((value << (shift * 8)) & mask);
        self.init[word] |= ((1u8 << n) - 1) << shift;
        same
    }

    /// Makes bytes undefined, because a copy to them is in flight.
    pub(crate) fn poison(&mut self, at: usize, n: usize) {
        for byte in at..at + n {
            self.init[byte / 4] &= !(1 << (byte % 4));
        }
    }
}
