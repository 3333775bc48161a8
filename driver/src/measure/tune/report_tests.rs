//! The table and the text of the winner.

use super::*;
use pretty_assertions::assert_eq;

fn schedule(words: &str, us: &[f64]) -> Schedule {
    Schedule {
        values: BTreeMap::new(),
        clusters: BTreeMap::new(),
        stage_stores: BTreeMap::new(),
        stream_k: BTreeMap::new(),
        split_k: BTreeMap::new(),
        words: words.to_owned(),
        predicted_us: 207.25,
        us: us.to_vec(),
        time: Summary::of(us),
    }
}

fn report() -> TuneReport {
    let machine = Machine {
        name: "NVIDIA H200".to_owned(),
        cc: 90,
        driver: "13.0".to_owned(),
        sm_count: 132,
        clock_khz: 1_980_000,
        memory_clock_khz: 1,
        memory_bus_bits: 1,
        l2_bytes: 1,
    };
    let options = CompileOptions { target: tilec_ir::target::Target::Sm90a, ..CompileOptions::default() };
    let mut report = TuneReport::new("gemm", &machine, &options);
    let tuned = Tuned {
        args: [("M".to_owned(), 4096.into())].into(),
        candidates: 72,
        measured: 60,
        cached: 12,
        left: 3,
        dropped: vec![Out { values: "BM=64".to_owned(), why: "3 elements are wrong".to_owned() }],
        chosen: schedule("BM=128", &[200.0, 200.0, 202.0]),
        tuned: schedule("BM=256 cluster (2, 1)", &[190.0, 190.0, 191.0]),
        gain: Summary::of(&[200.0 / 190.0]),
        unchecked: Some("too large".to_owned()),
        seconds: 41.2,
        notes: Vec::new(),
        file: Some("gemm-M4096.tile".to_owned()),
        text: "kernel gemm\n".to_owned(),
    };
    let stays = Tuned { tuned: tuned.chosen.clone(), gain: Summary::of(&[1.0]), ..tuned.clone() };
    report.problems = vec![tuned, stays];
    report
}

#[test]
fn the_table_says_what_was_gained() {
    let text = report().to_string();
    for said in [
        "gemm for sm_90a on NVIDIA H200 (sm_90, CUDA 13.0), predicted for H200\n",
        "\nM=4096: 60 of 72 candidates measured (12 of them before), 3 not measured for lack of time, 41 s\n",
        "  chosen     200.00    0.5%     207.25  BM=128\n",
        "  tuned      190.00    0.3%     207.25  BM=256 cluster (2, 1)\n  1.053 times as fast",
        "  dropped: BM=64: 3 elements are wrong\n",
        "  written to gemm-M4096.tile\n",
        "the model's own choice stays\n",
        "\nthe model's own choice is within 5 % of the tuned one on 1 of 2\n",
    ] {
        assert!(text.contains(said), "{said}\n{text}");
    }
    let json: serde_json::Value = serde_json::from_str(&report().to_json()).expect("JSON");
    assert_eq!((&json["schema"], &json["problems"][0]["measured"]), (&SCHEMA.into(), &60.into()));
}

/// Whatever names hold, the comment is a comment, and the program is the last of it.
#[test]
fn the_text_is_a_comment_and_the_program() {
    let report = report();
    let text = report.problems[0].text("a\nb.tile", &report, &["tilec tune x\r\n.tile M=4096".to_owned()]);
    let (comment, program) = text.split_once("\n\n").expect("an empty line between them");
    assert!(comment.lines().all(|line| line.starts_with("//")), "{text}");
    assert_eq!(program, "kernel gemm\n");
    for said in [
        "// a b.tile, tuned for M=4096 on NVIDIA H200, sm_90a.\n",
        "// BM=256 cluster (2, 1): 190.0 us measured, 207.2 us predicted.\n",
        "// The model chooses BM=128: 200.0 us measured, 207.2 us predicted.\n//\n//     tilec tune",
    ] {
        assert!(text.contains(said), "{said}\n{text}");
    }
    let stays = report.problems[1].text("x.tile", &report, &[]);
    assert!(stays.contains("// The model chooses the same.\n"), "{stays}");
}
