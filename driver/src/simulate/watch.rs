//! A simulation with a wall clock and, if it lasts, a progress line.

use crate::output::write_stderr;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use tilec_sim::{Counters, Device, Launch, Options, Program, Progress, Report, ReportKind};

/// How often the line is drawn anew.
const TICK: Duration = Duration::from_millis(200);
/// Shorter simulations draw nothing.
const QUIET: Duration = Duration::from_secs(1);
/// Cells of the bar.
const CELLS: u64 = 30;

/// A simulation that ended without a result.
pub(super) struct Ended {
    /// What the simulator says.
    pub(super) report: Box<Report>,
    /// Whether it is the clock that ended it.
    pub(super) out_of_time: bool,
}

/// Runs a launch until `deadline`; `bar`: the number of blocks, if progress is to be drawn.
pub(super) fn run(
    device: &mut Device,
    program: &Program,
    launch: &Launch,
    options: Options,
    deadline: Option<Instant>,
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
        let mut drawn = false;
        loop {
            let now = Instant::now();
            let left = deadline.map_or(TICK, |d| d.saturating_duration_since(now));
            if left.is_zero() {
                progress.cancel();
            }
            let tick = if progress.is_cancelled() { TICK } else { left.min(TICK) };
            if finished.recv_timeout(tick) == Err(mpsc::RecvTimeoutError::Disconnected) {
                break;
            }
            if let Some(all) = bar
                && start.elapsed() > QUIET
            {
                drawn = true;
                write_stderr(&format!("\r{}\x1b[K", line(progress.blocks(), all, start.elapsed())));
            }
        }
        if drawn {
            write_stderr("\r\x1b[K");
        }
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    result.map_err(|report| Ended { out_of_time: report.kind == ReportKind::Cancelled, report })
}

/// `simulating [#####.....] 12 / 40 blocks, 8.0 blocks/s, 4 s left`
fn line(done: u64, all: u64, elapsed: Duration) -> String {
    let full = u64::try_from(u128::from(done) * u128::from(CELLS) / u128::from(all.max(1))).unwrap_or(CELLS).min(CELLS);
    let bar: String = (0..CELLS).map(|i| if i < full { '#' } else { '.' }).collect();
    let rate = done as f64 / elapsed.as_secs_f64().max(1e-3);
    let left = match done {
        0 => String::new(),
        _ => format!(", {:.0} s left", (all.saturating_sub(done)) as f64 / rate),
    };
    format!("simulating [{bar}] {done} / {all} blocks, {rate:.1} blocks/s{left}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_counts_rate_and_rest() {
        let text = line(10, 40, Duration::from_secs(5));
        assert_eq!(
            text,
            format!("simulating [{}{}] 10 / 40 blocks, 2.0 blocks/s, 15 s left", "#".repeat(7), ".".repeat(23))
        );
        assert!(line(0, 40, Duration::from_secs(5)).ends_with("0 / 40 blocks, 0.0 blocks/s"));
        assert!(line(40, 40, Duration::ZERO).contains(&"#".repeat(30)));
    }
}
