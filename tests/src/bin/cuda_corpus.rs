//! The corpus of CUDA kernels on a GPU and on the simulator, and the simulator's counts against the GPU's counters.
//!
//! ```text
//! cuda_corpus [--filter TEXT] [--dry-run]      every right kernel on both, compared; a table
//! cuda_corpus --launch                         every kernel whose counts are compared, once, for a profiler
//! cuda_corpus --metrics                        the counters that the profiler should be requested, a line each
//! cuda_corpus --expected                       the simulator's counts in the profiler's form
//! cuda_corpus --counters FILE                  the profiler's table (`ncu --csv --page raw`) against the simulator's
//! ```
//!
//! Status 0: all agreed (`--counters`: the comparison was made, whatever it says). 1: something disagreed or failed. 3: a
//! launch did not end; CUDA has no way to stop a kernel. `--dry-run` needs no GPU: the simulator, its blocks in another order,
//! is in for one.

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tilec::cuda::Device;
use tilec_sim::{Generation, Landing, Options, Order};
use tilec_tests::corpus::{self, Agreement, Case};
use tilec_tests::corpus_gpu::{self, Comparison};
use tilec_tests::counters::{compare, csv, launches, metrics};

/// Seconds after which a launch counts as hanging. Under a profiler one launch is many.
const LAUNCH: u64 = 120;

enum Mode {
    Compare { filter: String, dry: bool },
    Launch,
    Metrics,
    Expected,
    Counters(String),
}

fn arguments() -> Result<Mode, String> {
    let (mut filter, mut dry) = (String::new(), false);
    let mut mode = None;
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("`{word}` needs a value"));
        match word.as_str() {
            "--filter" => filter = value()?,
            "--dry-run" => dry = true,
            "--launch" => mode = Some(Mode::Launch),
            "--metrics" => mode = Some(Mode::Metrics),
            "--expected" => mode = Some(Mode::Expected),
            "--counters" => mode = Some(Mode::Counters(value()?)),
            _ => return Err(format!("unknown argument `{word}`")),
        }
    }
    Ok(mode.unwrap_or(Mode::Compare { filter, dry }))
}

fn main() -> ExitCode {
    let done = match arguments() {
        Ok(Mode::Compare { filter, dry }) => agree(&filter, dry),
        Ok(Mode::Launch) => launch_all(),
        Ok(Mode::Metrics) => {
            metrics::METRICS.iter().flat_map(|m| m.names.iter().chain(&m.less)).for_each(|name| println!("{name}"));
            Ok(true)
        }
        Ok(Mode::Expected) => expected().map(|e| {
            print!("{}", compare::csv(&e));
            true
        }),
        Ok(Mode::Counters(file)) => counters(&file),
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("cuda_corpus: {error}");
            ExitCode::FAILURE
        }
    }
}

/// When the launch in progress must have ended, in milliseconds after `START`; 0: none.
static DEADLINE: AtomicU64 = AtomicU64::new(0);

/// Ends the process when a launch is overdue.
fn watch() -> Instant {
    let start = Instant::now();
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_millis(200));
            let limit = DEADLINE.load(Ordering::Acquire);
            if limit != 0 && start.elapsed().as_millis() as u64 > limit {
                println!("FAILED: the launch did not end within {LAUNCH} seconds; giving up");
                std::process::exit(3);
            }
        }
    });
    start
}

/// A launch under the watch.
fn watched(start: Instant, device: &Device, case: &Case) -> Result<Vec<Vec<u8>>, String> {
    DEADLINE.store(start.elapsed().as_millis() as u64 + LAUNCH * 1000, Ordering::Release);
    let result = corpus_gpu::launch(device, case);
    DEADLINE.store(0, Ordering::Release);
    result
}

/// Opens the GPU and prints its name.
fn open() -> Result<(Device, Option<Generation>), String> {
    let device = Device::open(0).map_err(|e| e.to_string())?;
    let p = device.properties();
    let (major, minor) = p.compute_capability;
    println!("device: {}, sm_{major}{minor}", p.name);
    let generation = Generation::of_sm(major * 10 + minor);
    Ok((device, generation))
}

fn agree(filter: &str, dry: bool) -> Result<bool, String> {
    let start = watch();
    let (device, generation) = if dry {
        println!("dry run: the simulator in another order stands in for the GPU");
        (None, Some(Generation::Hopper))
    } else {
        let (device, generation) = open()?;
        (Some(device), generation)
    };
    let mut options = Options { generation, ..Options::default() };
    options.threads = std::thread::available_parallelism().map_or(1, usize::from);
    let other = Options { order: Order::Reverse, landing: Landing::Late, seed: 7, ..options.clone() };
    let cases: Vec<Case> = corpus::all().into_iter().filter(|c| c.is_right() && c.name.contains(filter)).collect();
    let (mut equal, mut near, mut failed, mut words) = (0, 0, 0, 0);
    for case in &cases {
        let one = || -> Result<Comparison, String> {
            let (simulated, _) = case.simulate(&options).map_err(|e| format!("simulator: {e}"))?;
            case.check(&simulated).map_err(|e| format!("simulator: {e}"))?;
            let real = match &device {
                Some(device) => watched(start, device, case).map_err(|e| format!("GPU: {e}"))?,
                None => case.simulate(&other).map_err(|e| format!("simulator: {e}"))?.0,
            };
            let comparison = corpus_gpu::compare(case, &simulated, &real)?;
            case.check(&real).map_err(|e| format!("GPU: {e}"))?;
            Ok(comparison)
        };
        match one() {
            Ok(c) if c.different == 0 => {
                equal += 1;
                words += c.words;
                println!("{:44} {:>7} words   equal", case.name, c.words);
            }
            Ok(c) => {
                near += 1;
                words += c.words;
                let why = match case.agreement {
                    Agreement::Relative(limit, why) => format!("each value within {limit:e}: {why}"),
                    Agreement::OfLargest(limit, why) => format!("within {limit:e} of the largest value: {why}"),
                    Agreement::Bits => String::new(),
                };
                println!(
                    "{:44} {:>7} words   {} differ, by {:.1e} at most ({why})",
                    case.name, c.words, c.different, c.distance
                );
            }
            Err(error) => {
                failed += 1;
                println!("{:44} FAILED  {error}", case.name);
                if error.contains("fault") {
                    println!("after a fault the driver refuses everything: the rest was not tried");
                    break;
                }
            }
        }
    }
    let untried = cases.len() - equal - near - failed;
    println!(
        "{} launches: {equal} equal, {near} near, {failed} failed, {untried} not tried; {words} words",
        cases.len()
    );
    Ok(failed == 0 && untried == 0)
}

fn launch_all() -> Result<bool, String> {
    let start = watch();
    let (device, _) = open()?;
    let mut failed = 0;
    for (i, counted) in launches::launches()?.iter().enumerate() {
        let case = &counted.case;
        let done = watched(start, &device, case).and_then(|outputs| case.check(&outputs));
        println!("launch {i} {}: {}", case.name, done.as_ref().err().map_or("right", |e| e.as_str()));
        failed += usize::from(done.is_err());
    }
    Ok(failed == 0)
}

fn expected() -> Result<Vec<compare::Expected>, String> {
    compare::expected(launches::launches()?)
}

fn counters(file: &str) -> Result<bool, String> {
    let text = std::fs::read_to_string(file).map_err(|e| format!("{file}: {e}"))?;
    let measured = csv::read(&text)?;
    println!("    {:32} {:>8} {:>8}", "count", "expected", "measured");
    let (table, _) = compare::table(&expected()?, &measured)?;
    print!("{table}");
    Ok(true)
}
