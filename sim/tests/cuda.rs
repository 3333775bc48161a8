//! CUDA kernels compiled by NVRTC 12.9. `data/cuda` has the source and the PTX, `corpus` the launches. Correct kernels
//! compute the expected results without a report, in any order. Wrong ones are reported.
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::corpus::{self, Case, Expect};
use std::collections::BTreeSet;
use tilec_sim::{Generation, Landing, Options, Order, ReportKind};

/// A case of each kernel with barriers or waits.
const SYNCHRONISED: &[&str] = &[
    "gemm_tiled 40x53x37",
    "gemm_blocked 128x64x40",
    "gemm_wmma 64x96x96 reals",
    "gemm_mma 64x32x192 reals",
    "gemm_pipeline 64x128x224 reals",
    "ring 11",
    "mbarrier_ring 9",
    "ldmatrix pitch 80",
    "reduce",
    "scan",
    "histogram",
    "softmax",
    "online_softmax 100",
    "compact",
    "last_block",
    "lookback",
    "split_turns",
    "transpose 45",
    "transpose_xor 96",
    "transpose_plain 96",
    "stencil",
    "bitonic",
    "atomics",
];

/// What is taken out of them.
const NEEDED: &[&str] = &[
    "bar.sync",
    "bar.warp.sync",
    "cp.async.wait_group",
    "cp.async.commit_group",
    "cp.async.mbarrier.arrive",
    "mbarrier.arrive.shared",
    "mbarrier.init",
    "membar.gl",
];

/// Orders of blocks, landings of copies and host threads that must agree.
fn ways() -> [Options; 5] {
    [
        (Order::Forward, 0, 1, Landing::Early),
        (Order::Reverse, 1, 1, Landing::Late),
        (Order::Seeded, 2, 1, Landing::LateReads),
        (Order::Reverse, 3, 1, Landing::Latest),
        (Order::Forward, 4, 2, Landing::Early),
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

/// Without the text from `at` to the next semicolon.
fn without(case: &Case, at: usize) -> Case {
    let end = at + case.ptx[at..].find(';').unwrap() + 1;
    Case { ptx: format!("{}{}", &case.ptx[..at], &case.ptx[end..]).into(), ..case.clone() }
}

/// Every barrier and every wait of every kernel is needed: without it the simulator reports something in one of the ways.
#[test]
fn every_synchronisation_is_needed() {
    let (mut mutants, mut survivors) = (0, Vec::new());
    for name in SYNCHRONISED {
        let right = case(name);
        let (_, counters) = right.simulate(&Options::default()).unwrap();
        for needle in NEEDED {
            for (at, _) in right.ptx.match_indices(needle) {
                let line = right.ptx[..at].matches('\n').count() as u32 + 1;
                // The sizes of the test do not reach all parts of loops that the compiler has unrolled.
                if !counters.rows.iter().any(|r| r.ptx_line == line && r.counts.executed > 0) {
                    continue;
                }
                let mutant = without(&right, at);
                let caught = ways().into_iter().any(|options| {
                    let report = mutant.simulate(&Options { fuel: 1 << 18, ..options }).map(|_| ()).err();
                    assert!(report.as_ref().is_none_or(|r| r.kind != ReportKind::Launch), "{name}: {report:?}");
                    report.is_some()
                });
                mutants += 1;
                if !caught {
                    survivors.push(format!("{name}: {needle} at line {line}"));
                }
            }
        }
    }
    println!("{mutants} mutants");
    assert!(survivors.is_empty(), "{}", survivors.join("\n"));
}
