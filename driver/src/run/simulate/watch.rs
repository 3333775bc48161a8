//! A simulation with a wall clock and, if it lasts, a progress line.

use crate::console::clock::Clock;
use crate::console::progress::Bar;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use tilec_sim::{Counters, Device, Launch, Options, Program, Progress, Report, ReportKind};

/// Interval between updates of the line.
const TICK: Duration = Duration::from_millis(200);
/// Shorter simulations draw nothing.
const QUIET: Duration = Duration::from_secs(1);

/// A simulation that ended without a result.
pub(super) struct Ended {
    /// The simulator's report.
    pub(super) report: Box<Report>,
    /// Whether it is the clock that ended it.
    pub(super) out_of_time: bool,
}

/// Runs a launch until the clock runs out; `bar`: the number of blocks, if progress is to be drawn.
pub(super) fn run(
    device: &mut Device,
    program: &Program,
    launch: &Launch,
    options: Options,
    clock: &Clock,
    bar: Option<u64>,
) -> Result<Counters, Ended> {
    let progress = Arc::new(Progress::default());
    let options = Options { progress: Some(Arc::clone(&progress)), ..options };
    let start = Instant::now();
    let result = std::thread::scope(|scope| {
        let (done, finished) = mpsc::channel::<()>();
        let worker = scope.spawn(move || {
            // Dropped at the end, also of a panic, which ends the wait below.
            let _done = done;
            device.run(program, launch, &options)
        });
        let mut line = Bar::new();
        loop {
            let now = Instant::now();
            let left = clock.deadline().map_or(TICK, |d| d.saturating_duration_since(now));
            if left.is_zero() || clock.is_stopped() {
                progress.cancel();
            }
            let tick = if progress.is_cancelled() { TICK } else { left.min(TICK) };
            if finished.recv_timeout(tick) == Err(mpsc::RecvTimeoutError::Disconnected) {
                break;
            }
            if let Some(all) = bar
                && start.elapsed() > QUIET
            {
                let done = progress.blocks();
                line.show(&status(done, all, start.elapsed()), done as f64 / all.max(1) as f64);
            }
        }
        line.clear();
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    result.map_err(|report| Ended { out_of_time: report.kind == ReportKind::Cancelled, report })
}

/// `12 / 40 blocks, 8.0 blocks/s, 4 s left`
fn status(done: u64, all: u64, elapsed: Duration) -> String {
    let rate = done as f64 / elapsed.as_secs_f64().max(1e-3);
    let left = match done {
        0 => String::new(),
        _ => format!(", {:.0} s left", (all.saturating_sub(done)) as f64 / rate),
    };
    format!("{done} / {all} blocks, {rate:.1} blocks/s{left}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_counts_rate_and_rest() {
        assert_eq!(status(10, 40, Duration::from_secs(5)), "10 / 40 blocks, 2.0 blocks/s, 15 s left");
        assert_eq!(status(0, 40, Duration::from_secs(5)), "0 / 40 blocks, 0.0 blocks/s");
    }
}
