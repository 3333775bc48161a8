//! Every GEMM problem of the case table, one problem in every order, and random ones, on a GPU: exact or failed.
//!
//!     gpu_check [--seconds N] [--launch-seconds N] [--random N] [--seed N] [--threads N] [--filter TEXT]
//!
//! One process. Worker threads take programs from a queue and have the driver assemble them (that is most of the time);
//! launches are one at a time, so that a fault has one possible cause. A fault ends the process with status 4, since the
//! driver refuses everything afterwards; a launch that does not end, with status 3: CUDA has no way to stop a kernel.
//! Status 1: a problem failed, or time ran out before all were tried.

use std::collections::VecDeque;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tilec::Target;
use tilec::cuda::Device;
use tilec_tests::cases::{self, Problem, Program};
use tilec_tests::device;

/// Failures that are printed in full.
const SHOWN: usize = 30;

struct Args {
    seconds: u64,
    launch_seconds: u64,
    random: usize,
    seed: u64,
    threads: usize,
    filter: String,
}

fn arguments() -> Result<Args, String> {
    let mut args = Args { seconds: 480, launch_seconds: 20, random: 640, seed: 1, threads: 8, filter: String::new() };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("`{word}` needs a value"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("`{value}` is not a number"));
        match word.as_str() {
            "--seconds" => args.seconds = number()?,
            "--launch-seconds" => args.launch_seconds = number()?,
            "--random" => args.random = number()? as usize,
            "--seed" => args.seed = number()?,
            "--threads" => args.threads = number()?.clamp(1, 64) as usize,
            "--filter" => args.filter = value,
            _ => return Err(format!("unknown argument `{word}`")),
        }
    }
    Ok(args)
}

/// State shared by the workers.
struct State {
    queue: Mutex<VecDeque<(Program, Vec<Problem>)>>,
    passed: AtomicUsize,
    failures: Mutex<Vec<String>>,
    start: Instant,
    seconds: u64,
    /// Held while a kernel runs.
    device: Mutex<()>,
}

/// A worker's launch in progress: when it must have ended, in milliseconds after the start; 0: none.
type Deadline = Arc<(AtomicU64, Mutex<String>)>;

fn main() -> ExitCode {
    let args = match arguments() {
        Ok(args) => args,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    match check(&args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("gpu_check: {error}");
            ExitCode::FAILURE
        }
    }
}

fn check(args: &Args) -> Result<bool, String> {
    let cc = {
        let device = Device::open(0).map_err(|e| e.to_string())?;
        let p = device.properties();
        let (major, minor) = p.compute_capability;
        println!("device: {}, sm_{major}{minor}", p.name);
        major * 10 + minor
    };
    let mut problems = cases::orders();
    problems.extend(cases::tables()?.into_iter().flat_map(|(_, problems)| problems));
    problems.extend(cases::random(args.random, args.seed));
    problems.retain(|p| p.name.contains(&args.filter));
    // Code for one architecture only runs on no later one.
    let runs = |t: Target| if t == Target::Sm90a { cc == t.cc() } else { cc >= t.cc() };
    let meant = problems.len();
    problems.retain(|p| runs(p.program.target));
    if problems.len() < meant {
        println!("{} problems are for other devices", meant - problems.len());
    }
    let total = problems.len();
    let mut groups = cases::by_program(problems);
    // The largest groups first: at the end no worker waits long for another.
    groups.sort_by_key(|(_, problems)| std::cmp::Reverse(problems.len()));
    println!("{total} problems, {} programs, {} threads", groups.len(), args.threads);
    let state = State {
        queue: Mutex::new(groups.into()),
        passed: AtomicUsize::new(0),
        failures: Mutex::new(Vec::new()),
        start: Instant::now(),
        seconds: args.seconds,
        device: Mutex::new(()),
    };
    let deadlines: Vec<Deadline> = (0..args.threads).map(|_| Deadline::default()).collect();
    watch(deadlines.clone(), state.start);
    std::thread::scope(|scope| {
        for deadline in &deadlines {
            let state = &state;
            scope.spawn(move || {
                if let Err(error) = work(state, deadline, args.launch_seconds) {
                    state.fail(format!("worker: {error}"));
                }
            });
        }
    });
    let failed = lock(&state.failures).len();
    let passed = state.passed.load(Ordering::Relaxed);
    let untried = total - (passed + failed).min(total);
    println!("{passed} passed, {failed} failed");
    if untried > 0 {
        println!("{untried} not tried: time ran out or a worker stopped");
    }
    Ok(failed == 0 && untried == 0)
}

/// Locks a mutex even if another thread panicked while holding it.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn fail(&self, message: String) {
        let mut failures = lock(&self.failures);
        failures.push(message.clone());
        if failures.len() <= SHOWN {
            println!("FAILED {message}");
        }
    }

    fn late(&self) -> bool {
        self.start.elapsed().as_secs() >= self.seconds
    }
}

fn work(state: &State, deadline: &Deadline, launch_seconds: u64) -> Result<(), String> {
    let device = Device::open(0).map_err(|e| e.to_string())?;
    loop {
        let Some((program, problems)) = lock(&state.queue).pop_front() else { return Ok(()) };
        if state.late() {
            return Ok(());
        }
        let begin = Instant::now();
        let load = || -> Result<_, String> {
            let done = tilec::compile(&program.source(), &program.options()).map_err(|e| e.to_string())?;
            device::Loaded::new(&device, &done)
        };
        let on_device = match load() {
            Ok(loaded) => loaded,
            Err(error) => {
                // Once in full; the others must not vanish from the count.
                for (i, problem) in problems.iter().enumerate() {
                    let why = if i == 0 { error.as_str() } else { "the program does not load" };
                    state.fail(format!("{}: {why}", problem.name));
                }
                continue;
            }
        };
        let loaded = begin.elapsed();
        let (mut good, all) = (0, problems.len());
        for problem in problems {
            if state.late() {
                return Ok(());
            }
            let alone = lock(&state.device);
            *lock(&deadline.1) = problem.name.clone();
            let limit = state.start.elapsed() + Duration::from_secs(launch_seconds);
            deadline.0.store(limit.as_millis() as u64, Ordering::Release);
            let result = device::run(&device, &on_device, &problem);
            deadline.0.store(0, Ordering::Release);
            if let Err(error) = device.synchronize() {
                let passed = state.passed.load(Ordering::Relaxed);
                println!("FAULT {} ({}): {error}\n{:?}", problem.name, program.name(), problem.run().values);
                println!("{passed} passed, then a fault; the rest was not tried");
                std::process::exit(4);
            }
            drop(alone);
            match result {
                Ok(()) => {
                    good += 1;
                    state.passed.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) => state.fail(format!("{}: {error}", problem.name)),
            }
        }
        let (at, left) = (state.start.elapsed().as_secs(), lock(&state.queue).len());
        let name = program.name();
        println!("[{at:3} s] {name}: {good}/{all} (loaded in {:.1} s); {left} programs left", loaded.as_secs_f64());
    }
}

/// Ends the process when a launch is overdue.
fn watch(deadlines: Vec<Deadline>, start: Instant) {
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_millis(200));
            let now = start.elapsed().as_millis() as u64;
            for deadline in &deadlines {
                let limit = deadline.0.load(Ordering::Acquire);
                if limit != 0 && now > limit {
                    println!("FAILED {}: it did not end within its time; giving up", lock(&deadline.1));
                    std::process::exit(3);
                }
            }
        }
    });
}
