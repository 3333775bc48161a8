//! One test for every file of `tests/files`, every example, sketch and snippet, and every program of the case table.
//! `docs/testing.md` is the manual.

use libtest_mimic::{Arguments, Trial};
use std::process::ExitCode;
use std::time::Instant;
use tilec_tests::programs::Test;
use tilec_tests::test_file::{self, TestFile};
use tilec_tests::{cases, chains, choices, documented, fuzz, kinds, mutants, programs, root, silicon};

fn main() -> ExitCode {
    let args = Arguments::from_args();
    match tests() {
        Ok(tests) => {
            let trials = tests.into_iter().map(|(name, test)| {
                let shown = name.clone();
                Trial::test(name, move || Ok(timed(&shown, test)?))
            });
            libtest_mimic::run(&args, trials.collect()).exit_code()
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// With `TILEC_TEST_TIMES=1` a line of the seconds that a test took, to find what is slow: of time, and of the processor on Linux.
/// The latter includes child processes, and other tests unless there is `--test-threads=1`.
fn timed(name: &str, test: Box<dyn FnOnce() -> Result<(), String> + Send>) -> Result<(), String> {
    let (start, used) = (Instant::now(), processor_seconds());
    let result = test();
    if std::env::var_os("TILEC_TEST_TIMES").is_some() {
        let used = processor_seconds() - used;
        eprintln!("time: {:.2} {used:.2} {name}", start.elapsed().as_secs_f64());
    }
    result
}

/// Seconds of the processor that this process and its ended children have used; 0 where that is unknown.
fn processor_seconds() -> f64 {
    // The name, in brackets, may have spaces. Of the fields behind it the 12th to 15th are in ticks, of which a second has 100.
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(") ").next().unwrap_or_default().split(' ').skip(11).take(4);
    fields.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

fn tests() -> Result<Vec<Test>, String> {
    let mut tests: Vec<Test> = Vec::new();
    for (path, name) in test_file::walk(&root().join("tests/files"))? {
        tests.push((name.clone(), Box::new(move || kinds::run(&TestFile::read(&path, &name)?))));
    }
    tests.extend(programs::tests()?);
    tests.extend(cases::tests()?);
    tests.extend(chains::tests());
    tests.extend(choices::tests());
    tests.extend(fuzz::tests());
    tests.extend(silicon::tests::tests());
    tests.extend(mutants::tests());
    tests.extend(documented::tests()?);
    #[cfg(feature = "cuda")]
    tests.extend(tilec_tests::headers::tests()?);
    Ok(tests)
}
