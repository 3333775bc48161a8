//! How long to try.

/// Seconds of a long run, if one is requested.
pub(super) fn long() -> Option<u64> {
    std::env::var("TILEC_FUZZ_SECONDS").ok()?.parse().ok()
}
