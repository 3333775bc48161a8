//! Random tests that do the same in every run: a failure stays until it is mended, and a change is not blamed for an old one.
//!
//! `TILEC_FUZZ_SEED=N` tries others.

use arbitrary::Unstructured;

/// Tries `property` on `runs` inputs of up to `most` bytes of randomness each. It gives an error where they are too few.
pub(crate) fn repeat(runs: u64, most: u32, mut property: impl FnMut(&mut Unstructured<'_>) -> arbitrary::Result<()>) {
    let first: u64 = std::env::var("TILEC_FUZZ_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(0);
    let mut done = 0;
    for run in 0..runs {
        // The upper half is the seed, the lower one the number of bytes: few at first, for small examples.
        let size = 32u64.saturating_mul(1 << (run / 8).min(20)).min(u64::from(most));
        let seed = (first << 20 | run).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32 << 32;
        arbtest::arbtest(|u: &mut Unstructured<'_>| {
            done += u64::from(property(u).is_ok());
            Ok(())
        })
        .seed(seed | size)
        .run();
    }
    assert!(2 * done > runs, "{done} of {runs} inputs suffice");
}
