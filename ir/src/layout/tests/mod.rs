//! Postconditions of the layout algebra, at every coordinate.
//!
//! Random cases come from a fixed sequence, so a run is the same everywhere and a test may insist on how
//! many of its cases reached the postcondition.

use arbitrary::Unstructured;

mod access;
mod convert;
mod cute;
mod f2;
mod hardware;
mod search;
mod swizzle;
mod tile;

/// Runs `check` on `n` reproducible sources of random choices.
fn cases(n: u64, mut check: impl FnMut(&mut Unstructured<'_>) -> arbitrary::Result<()>) {
    // Marsaglia's xorshift64, from a fixed non-zero seed.
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for case in 0..n {
        let bytes: Vec<u8> = std::iter::repeat_with(|| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        })
        .take(512)
        .collect();
        check(&mut Unstructured::new(&bytes)).unwrap_or_else(|e| panic!("case {case}: {e}"));
    }
}
