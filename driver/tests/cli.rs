//! The command as its users run it: exit status, streams, files.

use crate::common::{Dir, command, run};
use pretty_assertions::assert_eq;
use std::fs;
use std::path::Path;
use std::process::Stdio;

fn json_lines(text: &str) -> Vec<serde_json::Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("every line is JSON")).collect()
}

#[test]
fn usage_errors_are_2() {
    let dir = Dir::new("usage");
    dir.file("x.tile", b"");
    for args in [
        &[][..],
        &["--no-such-flag"],
        &["x.tile", "--target", "sm_71"],
        &["x.tile", "-D", "BM"],
        &["x.tile", "--emit", "elf"],
        &["x.tile", "--disable-pass", "vectorise"],
        &["x.tile", "--disable-pass", "specialize"],
        &["x.tile", "--enable-pass", "vectorise"],
        &["x.tile", "--enable-pass", "vectorize"],
        &["explian", "E0101"],
        &["benchh"],
        &["x.tile", "--print-after", "nothing"],
        &["x.tile", "--deny", "everything"],
        &["x.tile", "-o", "x.tile", "--emit", "ptx"],
    ] {
        let run = dir.tilec(args);
        assert_eq!(run.status, 2, "{args:?}: {}", run.stderr);
        assert!(!run.stderr.is_empty() && run.stdout.is_empty(), "{args:?}");
    }
    assert!(dir.tilec(&["x.tile", "--disable-pass", "vectorise"]).stderr.contains("`vectorize`"));
    assert!(dir.tilec(&["x.tile", "--enable-pass", "vectorize"]).stderr.contains("`vectorize` is on already"));
    assert!(dir.tilec(&["benchh"]).stderr.contains("did you mean `bench`?"));
    assert_eq!(dir.names(), ["x.tile"]);
    assert_eq!(fs::read(dir.0.join("x.tile")).expect("still there"), b"");
}

/// Whatever the source is called, and whatever is to be written.
#[test]
fn the_source_is_not_written_over() {
    let dir = Dir::new("source");
    let source = copy_kernel("k");
    dir.file("k.tile", source.as_bytes());
    let mut names = vec!["k.tile", "./k.tile"];
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("k.tile", dir.0.join("symbolic.tile")).expect("symlink");
        fs::hard_link(dir.0.join("k.tile"), dir.0.join("hard.tile")).expect("link");
        names.extend(["symbolic.tile", "hard.tile"]);
    }
    for name in names {
        for args in [&["k.tile", "-o", name][..], &["k.tile", "--emit", "ptx", "-o", name], &[name, "-o", "k.tile"]] {
            let run = dir.tilec(args);
            assert_eq!(run.status, 2, "{args:?}: {}", run.stderr);
            assert!(run.stderr.contains("both the source and the output"), "{args:?}: {}", run.stderr);
        }
        assert_eq!(fs::read(dir.0.join("k.tile")).expect("still there"), source.as_bytes(), "{name}");
    }
    assert_eq!(dir.tilec(&["k.tile", "-o", "other.tile"]).status, 0);
}

#[test]
fn help_and_tables_are_0() {
    let dir = Dir::new("help");
    for args in [&["--help"][..], &["--version"], &["targets"], &["explain"], &["explain", "E0101"], &["explain", "-"]]
    {
        let run = dir.tilec(args);
        assert_eq!((run.status, run.stderr.as_str()), (0, ""), "{args:?}");
        assert!(!run.stdout.is_empty());
    }
    assert!(dir.tilec(&["targets"]).stdout.contains("sm_90a"));
}

#[test]
fn the_surroundings_are_said() {
    let run = Dir::new("doctor").tilec(&["doctor"]);
    assert_eq!((run.status, run.stderr.as_str()), (0, ""));
    let text = run.stdout;
    // Each part is found or missing, says what it is or why it is not there, and what it adds.
    for part in ["CUDA driver", "GPU", "cuBLAS", "ptxas for sm_", "nvdisasm for sm_"] {
        let heads = text.lines().filter(|l| (l.starts_with("found ") || l.starts_with("missing ")) && l.contains(part));
        assert!(heads.count() >= 1, "{part} in {text}");
    }
    let count = |label: &str| text.lines().filter(|l| l.trim_start().starts_with(label)).count();
    assert_eq!(count("is: ") + count("why: "), count("adds: "), "{text}");
}

#[test]
fn explaining_nothing_known_is_1() {
    let run = Dir::new("explain").tilec(&["explain", "swizle"]);
    assert_eq!((run.status, run.stdout.as_str()), (1, ""));
    assert!(run.stderr.contains("`swizzle`"), "{}", run.stderr);
}

#[test]
fn unreadable_and_binary_sources_are_diagnostics() {
    let dir = Dir::new("sources");
    dir.file("binary.tile", b"kernel\n \xff\xfe");
    for (args, code) in [(&["missing.tile"][..], "E0601"), (&["."], "E0601"), (&["binary.tile"], "E0602")] {
        let run = dir.tilec(args);
        assert_eq!(run.status, 1, "{args:?}");
        assert!(run.stderr.contains(&format!("error[{code}]")), "{}", run.stderr);
        assert!(run.stderr.ends_with("1 error\n"), "{}", run.stderr);
        let json = dir.tilec(&[args, &["--error-format", "json"]].concat());
        let lines = json_lines(&json.stderr);
        assert_eq!((json.status, lines.len()), (1, 1));
        assert_eq!(lines[0]["code"], code);
    }
    assert!(dir.tilec(&["binary.tile"]).stderr.contains("line 2"));
}

#[test]
fn a_file_called_like_a_subcommand_needs_a_path() {
    let dir = Dir::new("names");
    dir.file("targets", b"\xff");
    assert_eq!(dir.tilec(&["targets"]).status, 0);
    let run = dir.tilec(&["./targets"]);
    assert_eq!(run.status, 1);
    assert!(run.stderr.contains("E0602"), "{}", run.stderr);
}

#[test]
fn errors_leave_the_old_output_alone() {
    let dir = Dir::new("old");
    dir.file("x.tile", b"this is no kernel");
    dir.file("x.ptx", b"old");
    let run = dir.tilec(&["x.tile", "-o", "x.ptx"]);
    assert_eq!((run.status, run.stdout.as_str()), (1, ""));
    assert_eq!(fs::read(dir.0.join("x.ptx")).expect("still there"), b"old");
    assert_eq!(dir.names(), ["x.ptx", "x.tile"]);
}

#[test]
fn diagnostics_are_plain_text_where_no_terminal_is() {
    let dir = Dir::new("color");
    dir.file("x.tile", b"this is no kernel");
    let run = dir.tilec(&["x.tile"]);
    assert!(run.stderr.contains("error") && !run.stderr.contains('\u{1b}'), "{}", run.stderr);
}

#[test]
fn standard_input_is_a_source() {
    let run = run(command().arg("-"), b"this is no kernel");
    assert_eq!(run.status, 1, "{}", run.stderr);
}

#[test]
fn a_bug_is_101_and_asks_to_be_reported() {
    let dir = Dir::new("bug");
    let run = dir.tilec(&["__bug"]);
    assert_eq!((run.status, run.stdout.as_str()), (101, ""));
    assert!(run.stderr.contains("this is a bug in tilec") && run.stderr.contains("/issues"), "{}", run.stderr);
    assert!(run.stderr.contains("asked for by `__bug`"), "{}", run.stderr);
}

#[cfg(unix)]
#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut child = command().arg("targets").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("ends");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.status.success());
}

#[test]
fn absurd_sources_end_quickly() {
    let dir = Dir::new("absurd");
    for (name, content) in [
        ("large.tile", vec![b'x'; 3 << 20]),
        ("deep.tile", [b"kernel k() { let a = ".to_vec(), vec![b'('; 200_000]].concat()),
        ("wide.tile", "é".repeat(1 << 19).into_bytes()),
    ] {
        let path: &Path = &dir.file(name, &content);
        let run = run(command().arg(path), b"");
        assert_eq!(run.status, 1, "{name}: {}", run.stderr.chars().take(500).collect::<String>());
        assert!(run.stderr.len() < 20_000, "{name}");
    }
}

/// A program that compiles through all passes; `name` is that of the kernel.
fn copy_kernel(name: &str) -> String {
    format!(
        "kernel {name}<BN = 1024>(A: gmem f32[N], B: gmem f32[N]) grid (b: ceildiv(N, BN)) {{\n    \
         var x = reg f32[BN]\n    copy A[b * BN..] -> x\n    copy 2.0 * x -> B[b * BN..]\n}}\n"
    )
}

#[test]
fn texts_after_passes_are_programs() {
    let dir = Dir::new("dumps");
    dir.file("x.tile", copy_kernel("double").as_bytes());
    let alone = dir.tilec(&["x.tile", "--print-after", "specialize", "-D", "BN=256"]);
    assert_eq!((alone.status, alone.stderr.as_str()), (0, ""));
    assert!(alone.stdout.starts_with("// ---- after specialize\nkernel double("), "{}", alone.stdout);
    assert!(alone.stdout.contains("256") && !alone.stdout.contains("1024"), "{}", alone.stdout);

    let all = dir.tilec(&["x.tile", "--print-after", "all"]).stdout;
    let headers: Vec<&str> = all.lines().filter_map(|l| l.strip_prefix("// ---- after ")).collect();
    assert_eq!(headers[..4], ["parse", "flatten-loops", "align-rows", "choose"]);
    assert!(headers.len() > 5, "{headers:?}");

    // The result goes to standard output, so the texts do not.
    let both = dir.tilec(&["x.tile", "--print-after", "specialize", "--emit", "tile"]);
    assert!(both.stdout.starts_with("kernel double(") && both.stderr.starts_with("// ---- after specialize"));

    // The last text is the result, and compiles to itself.
    let again = run(command().args(["-", "--emit", "tile"]), both.stdout.as_bytes());
    assert_eq!((again.status, again.stdout), (0, both.stdout), "{}", again.stderr);
}

#[test]
fn a_result_named_by_its_suffix_is_one_whole_file() {
    let dir = Dir::new("suffix");
    dir.file("x.tile", copy_kernel("double").as_bytes());
    let run = dir.tilec(&["x.tile", "-o", "y.tile"]);
    assert_eq!((run.status, run.stdout.as_str(), run.stderr.as_str()), (0, "", ""));
    let text = fs::read_to_string(dir.0.join("y.tile")).expect("written");
    assert!(text.starts_with("kernel double(") && text.ends_with("}\n"), "{text}");
    assert_eq!(dir.names(), ["x.tile", "y.tile"]);
    assert_eq!(dir.tilec(&["x.tile", "-o", "no/such/y.tile"]).status, 1);
}

#[test]
fn several_kernels_each_take_the_definitions_they_declare() {
    let dir = Dir::new("several");
    let other = copy_kernel("other").replace("<BN = 1024>", "").replace("BN", "512");
    dir.file("x.tile", format!("{}\n{other}", copy_kernel("one")).as_bytes());
    let run = dir.tilec(&["x.tile", "--emit", "tile", "-D", "BN=256"]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert!(run.stdout.contains("kernel one(") && run.stdout.contains("kernel other("), "{}", run.stdout);
    assert!(run.stdout.contains("256") && run.stdout.contains("512"), "{}", run.stdout);
    let unknown = dir.tilec(&["x.tile", "--emit", "tile", "-D", "NO=1"]);
    assert_eq!(unknown.status, 1);
    assert!(unknown.stderr.contains("`NO`"), "{}", unknown.stderr);
}

#[test]
fn remarks_are_shown_on_request_and_denied_by_kind() {
    let dir = Dir::new("remarks");
    dir.file("x.tile", copy_kernel("double").as_bytes());
    let args = ["x.tile", "--emit", "tile", "--error-format", "json"];
    assert_eq!(dir.tilec(&args).stderr, "");
    let remarks = json_lines(&dir.tilec(&[&args[..], &["--remarks"]].concat()).stderr);
    assert!(!remarks.is_empty() && remarks.iter().all(|r| r["severity"] == "remark"), "{remarks:?}");
    let kind = remarks[0]["code"].as_str().expect("a kind").to_owned();
    let denied = dir.tilec(&[&args[..], &["--deny", &kind, "-o", "y.tile"]].concat());
    assert_eq!(denied.status, 1);
    let lines = json_lines(&denied.stderr);
    assert!(lines.iter().all(|l| l["severity"] == "error" && l["code"] == kind.as_str()), "{lines:?}");
    assert_eq!(dir.names(), ["x.tile"], "nothing is written");
    // Every kind that a pass uses can be denied.
    for remark in &remarks {
        let kind = remark["code"].as_str().expect("a kind");
        assert_eq!(dir.tilec(&[&args[..], &["--deny", kind]].concat()).status, 1, "{kind}");
    }
}

#[test]
fn same_input_same_bytes() {
    let dir = Dir::new("same");
    dir.file("x.tile", copy_kernel("double").as_bytes());
    let args = ["x.tile", "--print-after", "all", "--remarks"];
    let first = dir.tilec(&args);
    let second = dir.tilec(&args);
    assert_eq!((first.stdout, first.stderr), (second.stdout, second.stderr));
}

#[test]
fn wrong_arguments_of_a_run_are_usage() {
    let dir = Dir::new("run");
    dir.file("x.tile", copy_kernel("double").as_bytes());
    for args in [&["N"][..], &["N=x"], &["N=1", "N=2"], &["N=1", "--device", "tpu"], &["N=1", "--timeout", "0"]] {
        let run = dir.tilec(&[&["run", "x.tile"], args].concat());
        assert_eq!(run.status, 2, "{args:?}: {}", run.stderr);
    }
}

#[test]
fn a_measurement_that_cannot_be_made_is_refused_before_it_begins() {
    let dir = Dir::new("bench");
    dir.file("x.tile", include_bytes!("../../examples/gemm.tile"));
    for (args, status, said) in [
        (&["M=N=K=1:2"][..], 2, "expected FROM:TO:+STEP"),
        (&["M=N=K=8", "M=8"], 2, "`M` has two values"),
        (&["M=N=K=8", "--variant", "target=sm_71"], 2, "no target `sm_71`"),
        (&["M=N=K=8", "--variant", "BM=64", "--ablate"], 2, "--ablate"),
        (&["M=N=K=8", "--for", "M=8", "--for", "M=9", "--ablate"], 2, "give --for once"),
        (&["M=N=K=8", "--rounds", "0"], 2, "--rounds"),
        (&["M=N=K=8", "--seconds", "0"], 2, "expected seconds"),
        (&["M=N=8"], 1, "E0608"),
        (&[], 1, "E0608"),
        (&["M=N=K=8", "Q=1"], 1, "E0607"),
        (&["M=N=K=7"], 1, "E0609"),
        (&["M=N=K=8", "--variant", "BM=64/0"], 1, "in the variant `BM=0`"),
        (&["M=N=K=8", "--kernel", "other"], 1, "no kernel `other`"),
    ] {
        let run = dir.tilec(&[&["bench", "x.tile"], args].concat());
        assert_eq!(run.status, status, "{args:?}: {}", run.stderr);
        assert!(run.stderr.contains(said) && run.stdout.is_empty(), "{args:?}: {}", run.stderr);
    }
}

#[test]
fn a_measurement_is_a_table_or_counts() {
    let dir = Dir::new("bench-table");
    dir.file("x.tile", include_bytes!("../../examples/gemm.tile"));
    let args = ["bench", "x.tile", "M=N=K=64,72", "--variant", "STAGES=1/2", "--against", "none", "--seconds", "0.01"];
    let run = dir.tilec(&args);
    assert_eq!(run.status, 0, "{}{}", run.stdout, run.stderr);
    for said in ["gemm on ", "M=64 N=64 K=64\n", "M=72 N=72 K=72\n", "STAGES=1 ", "STAGES=2 "] {
        assert!(run.stdout.contains(said), "{said}: {}", run.stdout);
    }
    let json = dir.tilec(&[&args[..], &["--format", "json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!((&json["schema"], json["problems"].as_array().map(Vec::len)), (&"tilec.bench/1".into(), Some(2)));
    for problem in json["problems"].as_array().expect("a list") {
        for row in problem["rows"].as_array().expect("a list") {
            assert_eq!(row["chosen"][0]["sizes"]["M"], problem["args"]["M"], "chosen for the problem");
            let compared = ["interpreted", "exact"].map(|how| row["check"][how].as_u64().unwrap_or(0));
            assert!(compared.iter().sum::<u64>() >= 64 * 64 && row["check"]["wrong"] == 0, "{row}");
        }
    }
    let ladder = dir.tilec(&["bench", "x.tile", "M=N=K=64", "--ablate", "--against", "none", "--seconds", "0.01"]);
    assert_eq!(ladder.status, 0, "{}{}", ladder.stdout, ladder.stderr);
    assert_eq!(ladder.stdout.matches("  chosen: BM=").count(), 1, "one tile for all rungs: {}", ladder.stdout);
}

#[test]
fn a_search_that_cannot_be_made_is_refused_before_it_begins() {
    let dir = Dir::new("tune");
    let source = include_bytes!("../../examples/gemm.tile");
    dir.file("x.tile", source);
    fs::create_dir(dir.0.join("d")).expect("a directory");
    dir.file("d/x-M8-N8-K8.tile", b"");
    let whole = "BM=64,BN=64,BK=32,WM=32,WN=32,KW=1,STAGES=2,RASTER=1";
    for (args, status, said) in [
        (&["M=N=K=1:2"][..], 2, "expected FROM:TO:+STEP"),
        (&["M=N=K=8", "--for", "M=8"], 2, "without `--for`"),
        (&["M=N=K=8", "--disable-pass", "choose"], 2, "leave it on"),
        (&["M=N=K=8", "--seconds", "0"], 2, "expected seconds"),
        (&["M=N=K=8", "--cache", "c", "--no-cache"], 2, "--no-cache"),
        (&["M=N=K=8", "--variant", "BM=64"], 2, "--variant"),
        (&["M=N=K=8", "-o", "x.tile"], 2, "`x.tile` is both the source and the output"),
        (&["M=N=K=8", "-o", "./d/../x.tile"], 2, "both the source and the output"),
        (&["M=N=K=8,16", "-o", "y.tile"], 2, "2 problems have a file each, and `y.tile` is no directory"),
        (&["M=N=K=8,16", "-o", "-"], 2, "is no directory"),
        (&["M=N=K=8", "-o", "no/y.tile"], 1, "its directory is not there"),
        (&["M=N=8"], 1, "E0608"),
        (&["M=N=K=8", "Q=1"], 1, "E0607"),
        (&["M=N=K=7"], 1, "E0609"),
        (&["M=N=K=65536", "-D", "T=f32"], 1, "E0610"),
        (&["M=N=K=8", "--kernel", "other"], 1, "no kernel `other`"),
        (&["M=N=K=8", "-D", whole], 1, "nothing is left to choose for `gemm`"),
        (&["M=N=K=8", "-D", "BM=0"], 1, "E0234"),
        (&["M=N=K=8", "--cache", "x.tile"], 1, "it is there and holds something else"),
    ] {
        let run = dir.tilec(&[&["tune", "x.tile"], args].concat());
        assert_eq!(run.status, status, "{args:?}: {}", run.stderr);
        assert!(run.stderr.contains(said) && run.stdout.is_empty(), "{args:?}: {}", run.stderr);
    }
    assert_eq!(fs::read(dir.0.join("x.tile")).expect("still there"), source);
    assert_eq!(dir.names(), ["d", "x.tile"]);
    let help = dir.tilec(&["tune", "--help"]);
    assert!(help.status == 0 && help.stdout.contains("--no-cache"), "{}", help.stdout);
    assert!(dir.tilec(&["tuen"]).stderr.contains("did you mean `tune`?"));
}

/// With a GPU a program comes out that compiles; without one it is said what to do instead, and nothing is written.
#[test]
fn a_search_writes_a_program_or_says_that_there_is_no_gpu() {
    let dir = Dir::new("tune-run");
    dir.file("x.tile", include_bytes!("../../examples/gemm.tile"));
    let run = dir.tilec(&["tune", "x.tile", "M=N=K=64", "--target", "sm_80", "--seconds", "1", "--cache", "c.jsonl"]);
    if run.status == 0 {
        assert!(run.stdout.contains("written to x-M64-N64-K64.tile"), "{}", run.stdout);
        let text = fs::read_to_string(dir.0.join("x-M64-N64-K64.tile")).expect("it was written");
        assert!(text.starts_with("// x.tile, tuned for M=64 N=64 K=64 on ") && !text.contains("= auto"), "{text}");
        assert_eq!(dir.tilec(&["x-M64-N64-K64.tile", "--target", "sm_80", "-o", "y.ptx"]).status, 0);
        assert!(fs::read_to_string(dir.0.join("c.jsonl")).expect("results are kept").contains("\"tune\":1"));
        return;
    }
    assert_eq!(run.status, 1, "{}", run.stderr);
    for said in ["E0611", "no GPU was found", "--for M=..,N=..,K=.."] {
        assert!(run.stderr.contains(said), "{said}: {}", run.stderr);
    }
    assert!(run.stdout.is_empty());
    assert_eq!(dir.names(), ["c.jsonl", "x.tile"]);
}

/// A named assembler is not replaced by another one, and a report without it is an error.
#[test]
fn a_named_assembler_that_cannot_be_used_is_said() {
    let dir = Dir::new("named-assembler");
    dir.file("x.tile", include_bytes!("../../examples/copy.tile"));
    dir.file("no-assembler", b"text");
    let named = dir.0.join("no-assembler");
    for emit in ["report", "cubin"] {
        let mut command = command();
        command.current_dir(&dir.0).env("TILEC_PTXAS", &named).args(["x.tile", "--emit", emit, "-o", "out"]);
        let said = run(&mut command, b"");
        assert_eq!(said.status, 1, "{emit}: {}", said.stderr);
        assert!(
            said.stderr.contains("E0604") && said.stderr.contains("`TILEC_PTXAS` names no ptxas"),
            "{}",
            said.stderr
        );
    }
    assert_eq!(dir.names(), ["no-assembler", "x.tile"]);
}
