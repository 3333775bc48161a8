//! The table and the JSON of a measurement that never took place.

use super::super::limits::tests::h200;
use super::super::protocol::Series;
use super::*;
use crate::contract::number::Number;
use pretty_assertions::assert_eq;

fn args(size: i64) -> Args {
    ["M", "N", "K"].map(|name| (name.to_owned(), Number::Int(size))).into()
}

fn series(us: &[f64], reference: Option<usize>) -> Series {
    Series {
        us: us.to_vec(),
        launches: 100,
        sets: 4,
        check: Check { exact: 2048, bounded: 2048, against_cublas: 9, worst: 1e-4, ..Check::default() },
        reference,
        flops: 2.0 * 4096f64.powi(3),
        bytes: 1e8,
    }
}

fn report(ladder: bool) -> BenchReport {
    let variant = |label: &str| VariantReport {
        label: label.to_owned(),
        target: "sm_80".to_owned(),
        atom: "m16n8k16".to_owned(),
        unit: Some(Unit::Half),
    };
    let job = Job { args: args(4096), programs: vec![0, 2], rounds: 3, seconds: 1.0, seed: 0 };
    let wrong = Check { wrong: 3, shown: vec!["C[0, 0] = 1, expected 2".to_owned()], ..Check::default() };
    let measured = Measured {
        programs: vec![
            Ok(series(&[400.0, 440.0, 420.0], Some(0))),
            Ok(Series { check: wrong, ..series(&[200.0, 220.0, 210.0], Some(0)) }),
        ],
        references: vec![Reference {
            us: vec![200.0, 220.0, 210.0],
            choice: (1, 8),
            looked_us: vec![215.0, 205.0],
            refused: None,
        }],
        notes: vec!["a note".to_owned()],
    };
    let uses: Vec<Use> = (0..3).map(|program| Use { program, chosen: Vec::new() }).collect();
    let other = Job { args: args(8192), ..job.clone() };
    BenchReport {
        schema: SCHEMA,
        date: None,
        command: None,
        entry: "gemm".to_owned(),
        machine: Some(h200()),
        cublas: Some(Library { version: Some("13.0.2".to_owned()), file: None, absent: None }),
        variants: vec![variant("BM=128"), variant("BM=96"), variant("BM=256")],
        ladder,
        rounds: 3,
        simulated: None,
        problems: vec![
            Problem::new(&job, &uses, vec![(1, "`M % 96 == 0` does not hold".to_owned())], Ok(measured)),
            Problem::new(&other, &uses, Vec::new(), Err("the kernel did not finish within 120 s".to_owned())),
        ],
    }
}

#[test]
fn the_table_lines_up_and_says_what_is_wrong() {
    let report = report(false);
    let expected = [
        "gemm on NVIDIA H200 (sm_90, 132 multiprocessors, 1.98 GHz, 4.92 TB/s, CUDA 13.0), cuBLAS 13.0.2",
        "",
        "M=4096 N=4096 K=4096",
        "              us  spread           rate        limit  cuBLAS                checked",
        "  cuBLAS  210.00    4.8%  654.5 TFLOP/s  61% compute                        way 2 of 8",
        "  BM=128  420.00    4.8%  327.2 TFLOP/s  31% compute   0.500  0.500..0.500  2048 exact, all equal cuBLAS, error \
         1.0e-4 of the bound",
        "  BM=96   not measured: `M % 96 == 0` does not hold",
        "  BM=256  210.00    4.8%  654.5 TFLOP/s  61% compute   1.000  1.000..1.000  WRONG: 3 elements",
        "    BM=256: C[0, 0] = 1, expected 2",
        "  note: a note",
        "",
        "M=8192 N=8192 K=8192",
        "  not measured: the kernel did not finish within 120 s",
        "",
        "BM=128: geometric mean 0.500 of cuBLAS, least 0.500 (problems: 1)",
        "",
        "BM=256: geometric mean 1.000 of cuBLAS, least 1.000 (problems: 1)",
        "",
    ];
    assert_eq!(report.to_string(), expected.join("\n"));
    assert!(!report.ok());
}

#[test]
fn the_ladder_shows_gains() {
    let text = report(true).to_string();
    let line = text.lines().find(|l| l.contains("BM=256")).expect("a row");
    assert!(line.contains("x2.00"), "{line}");
}

#[test]
fn json_has_every_round() {
    let json: serde_json::Value = serde_json::from_str(&report(false).to_json()).expect("JSON");
    assert_eq!(json["schema"], SCHEMA);
    assert_eq!(json["machine"]["sm_count"], 132);
    let rows = &json["problems"][0]["rows"];
    assert_eq!(rows[0]["us"], serde_json::json!([400.0, 440.0, 420.0]));
    assert_eq!((&rows[0]["ratio"]["median"], &rows[0]["check"]["exact"]), (&0.5.into(), &2048.into()));
    assert_eq!(rows[1]["failed"], "`M % 96 == 0` does not hold");
    assert_eq!(json["problems"][0]["references"][0]["choice"], serde_json::json!([1, 8]));
    assert_eq!(json["problems"][0]["args"]["M"], 4096);
    assert_eq!(json["problems"][1]["failed"], "the kernel did not finish within 120 s");
}

#[test]
fn counts_stand_in_for_times() {
    let counts =
        Counts { blocks: 4, instructions: 1000, products: 64, barriers: 8, wavefronts: 90, conflicts: 2, sectors: 77 };
    let check = Check { interpreted: 4096, ..Check::default() };
    let rows = vec![Row::counted(0, Ok((counts, check))), Row::counted(2, Err("too large".to_owned()))];
    let mut report = report(false);
    report.machine = None;
    report.simulated = Some("no library".to_owned());
    report.problems = vec![Problem { args: args(64), rows, references: Vec::new(), failed: None, notes: Vec::new() }];
    let text = report.to_string();
    assert!(text.starts_with("gemm on the simulator, counts by warp and no times: no library\n\nM=64"), "{text}");
    assert!(
        text.lines().any(|l| l.split_whitespace().eq([
            "BM=128",
            "4",
            "1000",
            "64",
            "8",
            "90",
            "2",
            "77",
            "4096",
            "by",
            "the",
            "interpreter"
        ])),
        "{text}"
    );
    assert!(text.contains("BM=256  too large"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&report.to_json()).expect("JSON");
    assert_eq!(json["problems"][0]["rows"][0]["counts"]["conflicts"], 2);
}

#[test]
fn what_was_chosen_and_what_nobody_compared_is_said() {
    let chosen = |bm: i64| Chosen {
        kernel: "gemm".to_owned(),
        values: vec![("BM".to_owned(), bm), ("BN".to_owned(), 64)],
        card: "H200",
        sizes: [("M".to_owned(), 4096)].into(),
        predicted_us: 205.04,
    };
    let mut some = report(false);
    let skipped = || Check { skipped: Some("too large".to_owned()), ..Check::default() };
    for (row, bm) in some.problems[0].rows.iter_mut().zip([64, 128, 128]) {
        row.chosen = vec![chosen(bm)];
    }
    some.problems[0].rows[2].check = skipped();
    let text = some.to_string();
    assert!(text.contains("  chosen for BM=128: BM=64 BN=64 (for M=4096 on H200: 205.0 us predicted)\n"), "{text}");
    assert!(text.contains("  chosen for BM=96, BM=256: BM=128 BN=64 ("), "{text}");
    assert!(text.ends_with("\nnot compared with a reference: M=4096 N=4096 K=4096 (BM=256)\n"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&some.to_json()).expect("JSON");
    assert_eq!(json["problems"][0]["rows"][1]["chosen"][0]["values"][0], serde_json::json!(["BM", 128]));
    for row in &mut some.problems[0].rows {
        row.chosen = vec![chosen(64)];
        (row.failed, row.check) = (None, skipped());
    }
    let text = some.to_string();
    assert!(text.contains("  chosen: BM=64 BN=64 ("), "{text}");
    assert!(text.ends_with("\nnot compared with a reference: M=4096 N=4096 K=4096\n"), "{text}");
}
