//! Every instruction that the simulator computes, on the simulator and on a GPU: equal bit for bit, or failed.
//!
//! ```text
//! silicon_check [--seconds N] [--threads N] [--only mma|arith] [--filter TEXT] [--factor X] [--seed N]
//!               [--report FILE] [--dry-run]
//! ```
//!
//! Matrix products get ten million results each, other instructions a million and all combinations of their edge values,
//! both times `--factor`. `--dry-run` needs no GPU: the second machine is the simulator with its blocks in another order,
//! and all kernels are assembled. What disagrees is printed with its operands; `--report` also gets every form.
//!
//! Status 0: everything was compared and agreed. 1: something disagreed, was refused, or time ran out. 3: a launch did not
//! end; CUDA has no way to stop a kernel.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tilec_tests::silicon::fragments::CLASSES;
use tilec_tests::silicon::gpu::Gpu;
use tilec_tests::silicon::probe::Probe;
use tilec_tests::silicon::run::{Amounts, Machine, Outcome, Simulator, check};
use tilec_tests::silicon::{forms, tests};

/// Seconds after which a launch counts as hanging.
const LAUNCH: u64 = 60;
/// Bytes of descriptions of a form in the report.
const DESCRIBED: usize = 50_000;
/// Forms whose differences are printed in full.
const SHOWN: usize = 60;

struct Args {
    seconds: u64,
    threads: usize,
    only: String,
    filter: String,
    factor: f64,
    seed: u64,
    report: Option<String>,
    dry: bool,
}

fn arguments() -> Result<Args, String> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut args = Args {
        seconds: 360,
        threads: cores,
        only: String::new(),
        filter: String::new(),
        factor: 1.0,
        seed: 1,
        report: None,
        dry: false,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        if word == "--dry-run" {
            args.dry = true;
            continue;
        }
        let value = words.next().ok_or_else(|| format!("`{word}` needs a value"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("`{value}` is not a number"));
        match word.as_str() {
            "--seconds" => args.seconds = number()?,
            "--threads" => args.threads = number()?.clamp(1, 64) as usize,
            "--only" if value == "mma" || value == "arith" => args.only = value,
            "--filter" => args.filter = value,
            "--factor" => args.factor = value.parse().map_err(|_| format!("`{value}` is not a number"))?,
            "--seed" => args.seed = number()?,
            "--report" => args.report = Some(value),
            _ => return Err(format!("unknown argument `{word} {value}`")),
        }
    }
    Ok(args)
}

fn main() -> ExitCode {
    let result = arguments().and_then(|args| go(&args));
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("silicon_check: {error}");
            ExitCode::FAILURE
        }
    }
}

/// State shared by the workers.
struct State<'a> {
    args: &'a Args,
    amounts: Amounts,
    queue: Mutex<VecDeque<Probe>>,
    done: Mutex<Vec<(Probe, Outcome, f64)>>,
    start: Instant,
}

/// Locks a mutex even if another thread panicked while holding it.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn go(args: &Args) -> Result<bool, String> {
    let start = Instant::now();
    let mut probes = forms::probes()?;
    probes.retain(|p| args.filter.split(',').any(|part| p.name.contains(part)));
    probes.retain(|p| args.only.is_empty() || (args.only == "mma") == p.product.is_some());
    // The long ones first.
    probes.sort_by_key(|p| p.product.is_none());
    let mut good = true;
    if args.dry {
        println!("dry run: the simulator twice");
        good &= assemble(&probes)?;
    } else {
        println!("device: {}", Gpu::open(0)?.describe());
    }
    let total = probes.len();
    let times = |n: f64| (n * args.factor) as u64;
    let edges = if args.factor < 1.0 { times(100_000.0) } else { u64::MAX };
    let amounts = Amounts { products: times(10_240_000.0), others: times(1_048_576.0), edges, seed: args.seed };
    println!("{total} forms, {} threads", args.threads);
    let state = State { args, amounts, queue: Mutex::new(probes.into()), done: Mutex::default(), start };
    let deadlines: Vec<AtomicU64> = (0..args.threads).map(|_| AtomicU64::new(0)).collect();
    std::thread::scope(|scope| {
        let workers: Vec<_> = deadlines.iter().map(|d| scope.spawn(|| work(&state, d))).collect();
        while !workers.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            std::thread::sleep(Duration::from_millis(100));
            let now = start.elapsed().as_secs();
            if deadlines.iter().map(|d| d.load(Ordering::Acquire)).any(|limit| limit != 0 && now > limit) {
                println!("FAILED a launch did not end within {LAUNCH} s; giving up");
                let _ = summary(&state, total);
                std::process::exit(3);
            }
        }
    });
    good &= summary(&state, total)?;
    Ok(good)
}

/// Has ptxas assemble every kernel.
fn assemble(probes: &[Probe]) -> Result<bool, String> {
    let mut good = true;
    for probes in probes.chunks(400) {
        let Some(messages) = tests::assemble(&probes.iter().collect::<Vec<_>>())? else {
            println!("not assembled: no ptxas for sm_90");
            return Ok(true);
        };
        good &= messages.is_empty();
        messages.iter().for_each(|m| println!("FAILED ptxas: {m}"));
    }
    println!("assembled");
    Ok(good)
}

/// The GPU, with a clock on its launches.
struct Timed<'a>(Gpu, &'a AtomicU64, Instant);

impl Machine for Timed<'_> {
    fn load(&mut self, probe: &Probe, ptx: &str, words: [usize; 2]) -> Result<(), String> {
        self.0.load(probe, ptx, words)
    }

    fn run(&mut self, input: &[u32], results: usize, sets: u32) -> Result<Vec<u32>, String> {
        self.1.store(self.2.elapsed().as_secs() + LAUNCH, Ordering::Release);
        let result = self.0.run(input, results, sets);
        self.1.store(0, Ordering::Release);
        result
    }
}

fn work(state: &State<'_>, deadline: &AtomicU64) {
    let mut device: Box<dyn Machine> = if state.args.dry {
        Box::new(Simulator::new(tilec_sim::Order::Reverse, state.args.seed))
    } else {
        match Gpu::open(0) {
            Ok(gpu) => Box::new(Timed(gpu, deadline, state.start)),
            Err(error) => return println!("FAILED worker: {error}"),
        }
    };
    let mut simulator = Simulator::default();
    while state.start.elapsed().as_secs() < state.args.seconds {
        let Some(probe) = lock(&state.queue).pop_front() else { return };
        let begin = Instant::now();
        let outcome = check(&probe, &mut simulator, device.as_mut(), &state.amounts);
        let seconds = begin.elapsed().as_secs_f64();
        let mut done = lock(&state.done);
        let shown = done.iter().filter(|(_, o, _)| !o.passed()).count() < SHOWN;
        let fault = outcome.failure.as_ref().is_some_and(|f| f.contains("FAULT"));
        if !outcome.passed() {
            println!("{}", line(&probe, &outcome, seconds));
            if shown {
                // One of each class here, all in the report.
                let mut seen = Vec::new();
                for text in &outcome.described {
                    let class = text.split(' ').next().unwrap_or("");
                    if !seen.contains(&class) && seen.len() < 3 {
                        seen.push(class);
                        print!("    {text}");
                    }
                }
            }
        } else if probe.product.is_some() {
            println!("{}", line(&probe, &outcome, seconds));
        }
        done.push((probe, outcome, seconds));
        let count = done.len();
        if count.is_multiple_of(200) {
            println!("[{:3} s] {count} forms done", state.start.elapsed().as_secs());
        }
        drop(done);
        if fault {
            println!("a fault: the driver refuses everything afterwards, so this worker stops");
            return;
        }
    }
}

fn line(probe: &Probe, outcome: &Outcome, seconds: f64) -> String {
    let mut text = if outcome.passed() { "ok     ".to_owned() } else { "FAILED ".to_owned() };
    let _ = write!(text, "{}: {} compared, {} wrong", probe.name, outcome.results, outcome.wrong);
    if outcome.inexact.0 > 0 {
        let (count, ulps) = outcome.inexact;
        let _ = write!(text, ", {count} not the simulator's, at most {ulps:.1} ulp away");
    }
    if outcome.wrong > 0 && probe.product.is_some() {
        let classes = CLASSES.iter().zip(outcome.by_class).filter(|(_, n)| *n > 0);
        let _ = write!(text, " ({})", classes.map(|((_, c), n)| format!("{c} {n}")).collect::<Vec<_>>().join(", "));
    }
    if let Some(failure) = &outcome.failure {
        let _ = write!(text, "; {failure}");
    }
    let _ = write!(text, " [{seconds:.1} s]");
    text
}

/// Prints the sums by opcode and writes the report.
fn summary(state: &State<'_>, total: usize) -> Result<bool, String> {
    let mut done = lock(&state.done);
    done.sort_by(|a, b| (a.0.product.is_none(), &a.0.name).cmp(&(b.0.product.is_none(), &b.0.name)));
    let mut sums = BTreeMap::<&str, (usize, usize, u64, u64, f64)>::new();
    let mut report = String::new();
    for (probe, outcome, seconds) in done.iter() {
        let sum = sums.entry(probe.opcode()).or_default();
        sum.0 += 1;
        sum.1 += usize::from(!outcome.passed());
        sum.2 += outcome.results;
        sum.3 += outcome.wrong;
        sum.4 = sum.4.max(outcome.inexact.1);
        let _ = writeln!(report, "{}", line(probe, outcome, *seconds));
        let mut room = DESCRIBED;
        for text in &outcome.described {
            if room > text.len() {
                room -= text.len();
                let _ = write!(report, "    {text}");
            }
        }
    }
    println!("{:10} {:>6} {:>7} {:>14} {:>10} {:>9}", "opcode", "forms", "failed", "compared", "wrong", "ulps");
    for (opcode, (forms, failed, results, wrong, ulps)) in &sums {
        println!("{opcode:10} {forms:6} {failed:7} {results:14} {wrong:10} {ulps:9.1}");
    }
    let failed = done.iter().filter(|(_, o, _)| !o.passed()).count();
    let untried = total - done.len();
    let compared: u64 = done.iter().map(|(_, o, _)| o.results).sum();
    let seconds = state.start.elapsed().as_secs();
    println!(
        "{} forms agree, {failed} failed, {untried} not tried; {compared} results compared in {seconds} s",
        done.len() - failed
    );
    if let Some(path) = &state.args.report {
        std::fs::write(path, report).map_err(|e| format!("cannot write {path}: {e}"))?;
    }
    Ok(failed == 0 && untried == 0)
}
