//! CUDA kernels compiled by NVRTC 12.9 (`data/cuda`, source beside the PTX; `corpus` says what to launch): right ones compute
//! what they should, without a report, in any order; wrong ones are reported.
#![allow(clippy::unwrap_used, reason = "tests")]

pub mod corpus;

use corpus::{Case, Expect};
use std::collections::BTreeSet;
use tilec_sim::{Generation, Landing, Options, Order, ReportKind};

/// Orders of blocks, landings of copies and host threads that must agree.
fn ways() -> [Options; 4] {
    [
        (Order::Forward, 0, 1, Landing::Early),
        (Order::Reverse, 1, 1, Landing::Late),
        (Order::Seeded, 2, 1, Landing::Late),
        (Order::Forward, 3, 2, Landing::Early),
    ]
    .map(|(order, seed, threads, landing)| Options { order, seed, threads, landing, ..Options::default() })
}

fn case(name: &str) -> Case {
    corpus::all().into_iter().find(|c| c.name == name).unwrap()
}

#[test]
fn right_kernels_compute_what_they_should_in_any_order() {
    let mut failures = Vec::new();
    for case in corpus::all().iter().filter(|c| c.is_right()) {
        let mut first = None;
        for (i, options) in ways().iter().enumerate() {
            let got = match case.simulate(options) {
                Ok((outputs, _)) => outputs,
                Err(report) => {
                    failures.push(format!("{}, way {i}: {report}", case.name));
                    break;
                }
            };
            if let Err(error) = case.check(&got) {
                failures.push(format!("{}, way {i}: {error}", case.name));
                break;
            }
            if *first.get_or_insert_with(|| got.clone()) != got {
                failures.push(format!("{}, way {i}: the order changes the result", case.name));
                break;
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn wrong_kernels_are_reported() {
    let mut failures = Vec::new();
    for case in corpus::all() {
        let Expect::Report(kinds, says) = case.expect else { continue };
        for (i, options) in ways().iter().enumerate() {
            match case.simulate(options) {
                Ok(_) => failures.push(format!("{}, way {i}: no report", case.name)),
                Err(report) => {
                    let text = report.to_string();
                    if !kinds.contains(&report.kind) || !text.contains(says) {
                        failures.push(format!("{}, way {i}: expected {kinds:?} with `{says}`: {text}", case.name));
                    }
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn every_file_is_launched() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/cuda");
    let all = corpus::all();
    let names: BTreeSet<&str> = all.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names.len(), all.len(), "two cases have one name");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap();
        assert!(all.iter().any(|c| c.name.split(' ').next() == Some(stem)), "{} is not in the table", path.display());
        assert!(path.with_extension("cu").exists() && path.with_extension("ptx").exists(), "{stem} lacks a half");
    }
}

#[test]
fn products_of_integers_are_exact_on_every_generation() {
    for case in corpus::all().iter().filter(|c| c.name.contains("integers")) {
        for generation in [Generation::Volta, Generation::Turing, Generation::Ampere, Generation::Hopper] {
            let options = Options { generation: Some(generation), ..Options::default() };
            match case.simulate(&options) {
                Ok((outputs, _)) => case.check(&outputs).unwrap_or_else(|e| panic!("{}: {e}", case.name)),
                // An instruction that this generation lacks.
                Err(report) => assert!(report.kind == ReportKind::Invalid, "{}: {report}", case.name),
            }
        }
    }
}

/// Every barrier and every wait of a ring of asynchronous copies is needed.
#[test]
fn rings_need_every_wait() {
    let right = case("ring 11");
    for needle in ["bar.sync", "cp.async.wait_group"] {
        for (at, _) in right.ptx.match_indices(needle) {
            let end = at + right.ptx[at..].find(';').unwrap() + 1;
            let mutant = format!("{}{}", &right.ptx[..at], &right.ptx[end..]);
            let mutant = Case { ptx: mutant.into(), ..right.clone() };
            for landing in [Landing::Early, Landing::Late] {
                let kind =
                    mutant.simulate(&Options { landing, ..Options::default() }).map(|_| ()).expect_err(needle).kind;
                assert!(matches!(kind, ReportKind::Race | ReportKind::Uninitialised), "{kind:?}");
            }
        }
    }
}
