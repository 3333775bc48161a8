//! The time limit of a run, checked while tensors are filled, which may take longer than the kernel. Another thread may end the
//! run before.

use crate::console::progress::Bar;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Span};

/// Elements between two checks of the clock.
const EVERY: u64 = 1 << 16;
/// Work that takes less time shows no bar.
const QUIET: Duration = Duration::from_secs(1);

/// A limit for all that a run does up to the end of its kernels.
#[derive(Debug)]
pub struct Clock {
    start: Instant,
    limit: Duration,
    stop: Option<Arc<AtomicBool>>,
    bar: Option<Bar>,
    what: String,
    done: u64,
    all: u64,
    unlooked: u64,
    expired: bool,
}

impl Clock {
    /// Starts; `progress`: long work draws a bar on standard error.
    pub fn new(limit: Duration, progress: bool) -> Clock {
        Clock {
            start: Instant::now(),
            limit,
            stop: None,
            bar: progress.then(Bar::new),
            what: String::new(),
            done: 0,
            all: 1,
            unlooked: 0,
            expired: false,
        }
    }

    /// The time is also over once `stop` is true.
    #[must_use]
    pub fn stoppable(self, stop: Arc<AtomicBool>) -> Clock {
        Clock { stop: Some(stop), ..self }
    }

    /// Whether a stop was requested.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.as_ref().is_some_and(|stop| stop.load(Relaxed))
    }

    /// Begins something else: `what` is done to `all` elements.
    pub(crate) fn begin(&mut self, what: String, all: u64) {
        (self.what, self.done, self.all, self.unlooked) = (what, 0, all.max(1), 0);
    }

    /// Counts an element. Returns false if time has run out; then [`Clock::check`] has the error.
    pub(crate) fn more(&mut self) -> bool {
        self.more_of(1)
    }

    /// The same for several elements at once.
    pub(crate) fn more_of(&mut self, elements: usize) -> bool {
        self.unlooked = self.unlooked.saturating_add(elements as u64);
        if self.unlooked >= EVERY {
            self.look();
        }
        !self.expired
    }

    fn look(&mut self) {
        self.done += std::mem::take(&mut self.unlooked);
        let elapsed = self.start.elapsed();
        self.expired |= elapsed >= self.limit || self.is_stopped();
        if let Some(bar) = self.bar.as_mut().filter(|_| elapsed > QUIET) {
            bar.show(&self.what, self.done as f64 / self.all as f64);
        }
    }

    /// When the time is over.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.start.checked_add(self.limit)
    }

    /// All of the time.
    pub(crate) fn limit(&self) -> Duration {
        self.limit
    }

    /// Ends what was begun.
    ///
    /// # Errors
    /// The time was over before its end.
    pub(crate) fn check(&mut self) -> Result<(), Box<Diagnostic>> {
        if let Some(bar) = &mut self.bar {
            bar.clear();
        }
        if !self.expired {
            return Ok(());
        }
        let message = match self.is_stopped() {
            true => format!("the launch was stopped: {}", self.what),
            false => format!("the launch was not ready within {} s: {}", self.limit.as_secs(), self.what),
        };
        let d = Diagnostic::error(codes::LAUNCH_TIMEOUT, Span::default(), message);
        Err(Box::new(d.with_note("choose smaller sizes, or a larger `--timeout`")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_ends_when_the_time_is_over() {
        let mut clock = Clock::new(Duration::ZERO, false);
        clock.begin("filling `A`".to_owned(), u64::MAX);
        let done = (0..u64::MAX).take_while(|_| clock.more()).count();
        assert!(done < EVERY as usize, "{done}");
        let said = clock.check().expect_err("no time was left");
        assert!(said.message.contains("within 0 s: filling `A`"), "{}", said.message);
        let stop = Arc::new(AtomicBool::new(true));
        let mut clock = Clock::new(Duration::from_secs(1000), false).stoppable(Arc::clone(&stop));
        clock.begin("filling `A`".to_owned(), u64::MAX);
        assert!((0..u64::MAX).take_while(|_| clock.more()).count() < EVERY as usize);
        assert!(clock.check().expect_err("it was stopped").message.contains("was stopped"));
        let mut clock = Clock::new(Duration::from_secs(1000), false);
        assert!((0..3 * EVERY).all(|_| clock.more()) && clock.check().is_ok());
    }
}
