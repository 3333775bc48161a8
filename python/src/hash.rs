//! A hash of words for tables that every launch reads. The keys are the program's own, so no attacker chooses them.

use std::hash::{BuildHasherDefault, Hasher};

/// Multiplies and turns, word by word.
#[derive(Default)]
pub(crate) struct Words(u64);

/// How tables make one.
pub(crate) type ByWords = BuildHasherDefault<Words>;

impl Hasher for Words {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn finish(&self) -> u64 {
        // Tables take the low bits, into which multiplication carries nothing from above.
        self.0 ^ self.0 >> 32
    }
}
