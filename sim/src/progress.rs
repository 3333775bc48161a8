//! Progress and cancellation of a launch, for another thread.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// State shared between [`Device::run`](crate::Device::run), through [`Options::progress`](crate::Options), and a
/// thread that watches it: the number of finished blocks, and a request to stop.
#[derive(Debug, Default)]
pub struct Progress {
    blocks: AtomicU64,
    cancelled: AtomicBool,
}

impl Progress {
    /// Number of finished blocks.
    pub fn blocks(&self) -> u64 {
        self.blocks.load(Relaxed)
    }

    /// Requests that the launch stop. It stops within a few milliseconds, with a report of the place where it was.
    pub fn cancel(&self) {
        self.cancelled.store(true, Relaxed);
    }

    /// Whether a stop was requested.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Relaxed)
    }

    pub(crate) fn block_done(&self) {
        self.blocks.fetch_add(1, Relaxed);
    }
}
