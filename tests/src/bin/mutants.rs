//! Tries every mutant of every kernel and prints the table: per operator how many, what killed them, which are equivalent.
//!
//! ```text
//! cargo run --release -p tilec-tests --bin mutants [-- KERNEL ...] [--only NAME-PART ...] [--list] [--show NAME-PART]
//! ```
//!
//! `--only` tries no others than those whose name contains it; given several times, one of them. `--list` prints the fate of every
//! mutant, `--show` the changed text of those whose name contains it. Status 1: one survives that is not listed as equivalent,
//! or one is killed that is.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::PoisonError;
use tilec_sim::ReportKind;
use tilec_tests::mutants::equivalent::{self, Entry};
use tilec_tests::mutants::operators::OPERATORS;
use tilec_tests::mutants::run::{Bench, Killer};
use tilec_tests::mutants::{Fate, judge, programs, stale};

/// Whether a mutant belongs in a column.
type Column = fn(Killer) -> bool;

/// Columns of the table: what killed a mutant.
const COLUMNS: [(&str, Column); 8] = [
    ("race", |k| k == Killer::Report(ReportKind::Race)),
    ("init", |k| matches!(k, Killer::Report(ReportKind::Uninitialised | ReportKind::Undefined))),
    ("bounds", |k| matches!(k, Killer::Report(ReportKind::OutOfBounds | ReportKind::Misaligned))),
    ("deadlock", |k| matches!(k, Killer::Report(ReportKind::Deadlock | ReportKind::Divergence))),
    ("fuel", |k| k == Killer::Report(ReportKind::Fuel)),
    ("rule", |k| matches!(k, Killer::Report(ReportKind::Invalid | ReportKind::Launch | ReportKind::Trap))),
    ("result", |k| k == Killer::Result),
    ("refused", |k| k == Killer::Refused),
];

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("mutants: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<bool, String> {
    let (mut kernels, mut only, mut list, mut show) = (Vec::new(), Vec::new(), false, None);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--list" => list = true,
            "--only" => only.push(words.next().ok_or("--only needs a part of a name")?),
            "--show" => show = Some(words.next().ok_or("--show needs a part of a name")?),
            _ => kernels.push(word),
        }
    }
    let all = kernels.is_empty() && only.is_empty();
    if kernels.is_empty() {
        kernels.extend(programs::names().into_iter().map(str::to_owned));
    }
    let mut fates: Vec<Fate> = Vec::new();
    for kernel in &kernels {
        let mut bench = Bench::new(programs::subject(kernel)?)?;
        bench.mutants.retain(|m| only.is_empty() || only.iter().any(|part| m.name.to_string().contains(part)));
        if let Some(part) = &show {
            for m in bench.mutants.iter().filter(|m| m.name.to_string().contains(part.as_str())) {
                println!("// {}\n{}", m.name, m.ptx);
            }
            continue;
        }
        let tried = try_all(&bench)?;
        let survivors = tried.iter().filter(|(_, k)| k.is_none()).count();
        eprintln!("{kernel}: {} mutants, {survivors} survive", tried.len());
        fates.extend(tried);
    }
    if show.is_some() {
        return Ok(true);
    }
    if list {
        for (name, killer) in &fates {
            println!("{} | {name}", killer.map_or("survives".to_owned(), |k| format!("{k:?}")));
        }
    }
    let entries = equivalent::list()?;
    print!("{}", table(&fates, &entries));
    let mut good = true;
    let names: Vec<_> = fates.iter().map(|(n, _)| n.clone()).collect();
    for result in [judge(&fates, &entries), if all { stale(&names, &entries) } else { Ok(()) }] {
        if let Err(text) = result {
            println!("{text}");
            good = false;
        }
    }
    Ok(good)
}

/// Tries the mutants of a kernel on as many threads as there are cores; the fates are in the order of the text.
fn try_all(bench: &Bench) -> Result<Vec<Fate>, String> {
    let next = Mutex::new(0..bench.mutants.len());
    let done = Mutex::new(BTreeMap::new());
    let lock = |m: &Mutex<std::ops::Range<usize>>| m.lock().unwrap_or_else(PoisonError::into_inner).next();
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(i) = lock(&next) {
                    let fate = bench.try_mutant(&bench.mutants[i]);
                    done.lock().unwrap_or_else(PoisonError::into_inner).insert(i, fate);
                }
            });
        }
    });
    let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.into_iter().map(|(i, fate)| Ok((bench.mutants[i].name.clone(), fate?))).collect()
}

fn table(fates: &[Fate], entries: &[Entry]) -> String {
    let mut text = format!("{:12} {:>7}", "operator", "mutants");
    for (name, _) in COLUMNS {
        text += &format!(" {name:>8}");
    }
    text += &format!(" {:>10} {:>8} {:>7}\n", "equivalent", "survive", "score");
    let names = OPERATORS.iter().map(|o| Some(o.name)).chain([None]);
    for operator in names {
        let rows: Vec<&Fate> =
            fates.iter().filter(|(n, _)| operator.is_none_or(|o| n.change.split('/').next() == Some(o))).collect();
        let equivalent = rows.iter().filter(|(n, k)| k.is_none() && entries.iter().any(|e| e.fits(n))).count();
        let killed = rows.iter().filter(|(_, k)| k.is_some()).count();
        text += &format!("{:12} {:>7}", operator.unwrap_or("all"), rows.len());
        for (_, is) in COLUMNS {
            text += &format!(" {:>8}", rows.iter().filter(|(_, k)| k.is_some_and(is)).count());
        }
        let alive = rows.len() - killed - equivalent;
        let score = match killed + alive {
            0 => "-".to_owned(),
            n => format!("{:.1} %", 100.0 * killed as f64 / n as f64),
        };
        text += &format!(" {equivalent:>10} {alive:>8} {score:>7}\n");
    }
    text
}
