//! What another thread may see of a launch while it runs, and how it ends one.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Shared between [`Device::run`](crate::Device::run), through [`Options::progress`](crate::Options), and a thread that
/// watches it: blocks finished so far, and the wish that it stop.
#[derive(Debug, Default)]
pub struct Progress {
    blocks: AtomicU64,
    cancelled: AtomicBool,
}

impl Progress {
    /// Blocks that have ended.
    pub fn blocks(&self) -> u64 {
        self.blocks.load(Relaxed)
    }

    /// Asks the launch to stop. It does so within a few milliseconds, with a report that says where it was.
    pub fn cancel(&self) {
        self.cancelled.store(true, Relaxed);
    }

    /// Whether someone asked it to stop.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Relaxed)
    }

    pub(crate) fn block_done(&self) {
        self.blocks.fetch_add(1, Relaxed);
    }
}
