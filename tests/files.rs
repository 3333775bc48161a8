//! One test for every file of `tests/files`, every example, sketch and snippet, and every program of the case table.
//! `docs/testing.md` is the manual.

use libtest_mimic::{Arguments, Trial};
use std::process::ExitCode;
use tilec_tests::programs::Test;
use tilec_tests::test_file::{self, TestFile};
use tilec_tests::{cases, choices, fuzz, kinds, mutants, programs, root, silicon};

fn main() -> ExitCode {
    let args = Arguments::from_args();
    match tests() {
        Ok(tests) => {
            let trials = tests.into_iter().map(|(name, test)| Trial::test(name, move || Ok(test()?)));
            libtest_mimic::run(&args, trials.collect()).exit_code()
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn tests() -> Result<Vec<Test>, String> {
    let mut tests: Vec<Test> = Vec::new();
    for (path, name) in test_file::walk(&root().join("tests/files"))? {
        tests.push((name.clone(), Box::new(move || kinds::run(&TestFile::read(&path, &name)?))));
    }
    tests.extend(programs::tests()?);
    tests.extend(cases::tests()?);
    tests.extend(choices::tests());
    tests.extend(fuzz::tests());
    tests.extend(silicon::tests::tests());
    tests.extend(mutants::tests());
    Ok(tests)
}
