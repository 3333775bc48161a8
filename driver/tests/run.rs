//! `tilec run` on the simulator, as its users run it: PTX of anyone, tensors in files, counts, results in every order.

use crate::common::Dir;
use pretty_assertions::assert_eq;
use std::fs;

const COPY: &str = "kernel double(A: gmem f32[M, N], B: gmem f32[M, N]) where A_ld >= N, N <= 64 grid (b: M) {\n\
    var x = reg f32[1, 64]\n    copy A[b.., 0..] -> x\n    copy 2.0 * x -> B[b.., 0..]\n}\n";

fn floats(values: impl IntoIterator<Item = f32>) -> Vec<u8> {
    values.into_iter().flat_map(f32::to_le_bytes).collect()
}

/// The text between a line that opens a block of `kind` in the document and the line that closes it.
fn documented(kind: &str) -> String {
    let document = include_str!("../../docs/launch-contract.md");
    let (_, rest) = document.split_once(&format!("```{kind}\n")).expect("a block of that kind");
    rest.split_once("```").expect("closed").0.to_owned()
}

/// The example of docs/launch-contract.md.
#[test]
fn ptx_of_anyone_runs_from_a_description_by_hand() {
    let dir = Dir::new("by-hand");
    dir.file("saxpy.ptx", documented("ptx").as_bytes());
    dir.file("saxpy.json", documented("json").as_bytes());
    dir.file("x.bin", &floats((0..1000).map(|i| i as f32)));
    dir.file("y.bin", &floats((0..1000).map(|i| (1000 - i) as f32)));
    let args = "run saxpy.ptx --launch saxpy.json n=1000 --in x=x.bin --in y=y.bin --out y=result.bin --device sim";
    let args: Vec<&str> = args.split(' ').collect();
    let run = dir.tilec(&args);
    assert_eq!((run.status, run.stderr.as_str()), (0, ""));
    assert!(run.stdout.starts_with("saxpy for sm_70 on the simulator (arithmetic of Volta)\n"), "{}", run.stdout);
    assert!(
        run.stdout.contains("n = 1000, a = 2") && run.stdout.contains("executed 4 blocks of 256 threads"),
        "{}",
        run.stdout
    );
    assert_eq!(fs::read(dir.0.join("result.bin")).expect("written"), floats((0..1000).map(|i| (1000 + i) as f32)));
    let other = dir.tilec(&[&args[..], &["a=-1", "--counters", "json"]].concat());
    assert!(other.stderr.contains("a = -1"), "{}", other.stderr);
    let json: serde_json::Value = serde_json::from_str(&other.stdout).expect("nothing but JSON");
    assert_eq!((&json["schema"], &json["total"]["requests"]), (&"tilec.counters/1".into(), &96.into()));
    assert_eq!(fs::read(dir.0.join("result.bin")).expect("written"), floats((0..1000).map(|i| (1000 - 2 * i) as f32)));
}

#[test]
fn what_ptx_alone_cannot_do_is_said() {
    let dir = Dir::new("ptx-alone");
    dir.file("saxpy.ptx", documented("ptx").as_bytes());
    dir.file("saxpy.json", documented("json").as_bytes());
    dir.file("x.tile", COPY.as_bytes());
    let launch = ["run", "saxpy.ptx", "--launch", "saxpy.json", "n=5"];
    for (args, status, needle) in [
        (&["run", "saxpy.ptx", "n=5"][..], 2, "--launch FILE.json"),
        (&["run", "x.tile", "--launch", "saxpy.json"], 2, "`--launch` is for PTX"),
        (&[&launch[..], &["--check"]].concat(), 2, "`--out NAME=FILE`"),
        (&[&launch[..], &["-D", "A=1"]].concat(), 2, "`--define` is for compiling"),
        (&[&launch[..], &["--device", "cuda", "--counters"]].concat(), 2, "`--counters` is for the simulator"),
        (&[&launch[..], &["--kernel", "x"]].concat(), 1, "no kernel `x`; there are `saxpy`"),
        (&[&launch[..], &["--in", "x=none.bin"]].concat(), 1, "E0601"),
        (&[&launch[..], &["--in", "x=saxpy.ptx"]].concat(), 1, "E0616"),
        (&[&launch[..], &["--out", "z=z.bin", "--device", "sim"]].concat(), 1, "no tensor `z`"),
        (&["run", "saxpy.ptx", "--launch", "x.tile", "n=5"], 1, "E0615"),
        (&["run", "saxpy.ptx", "--launch", "saxpy.json"], 1, "E0608"),
    ] {
        let run = dir.tilec(args);
        assert_eq!(run.status, status, "{args:?}: {}", run.stderr);
        assert!(run.stderr.contains(needle), "{args:?}: {}", run.stderr);
    }
    assert_eq!(dir.names(), ["saxpy.json", "saxpy.ptx", "x.tile"]);
}

/// The interpreter alone gives what the simulator gives, and runs what cannot be compiled.
#[test]
fn the_interpreter_is_a_device() {
    let dir = Dir::new("run-interp");
    dir.file("x.tile", include_bytes!("../../examples/gemm.tile"));
    let problem = ["run", "x.tile", "M=40", "N=24", "K=16", "--data", "int"];
    for device in ["sim", "interp"] {
        let file = format!("C={device}.bin");
        let run = dir.tilec(&[&problem[..], &["--device", device, "--out", &file]].concat());
        assert_eq!(run.status, 0, "{}", run.stderr);
        assert_eq!(run.stdout.contains("in the interpreter"), device == "interp", "{}", run.stdout);
    }
    assert_eq!(fs::read(dir.0.join("sim.bin")).expect("written"), fs::read(dir.0.join("interp.bin")).expect("written"));
    let placed = "kernel placed(X: gmem f32[M, N], Y: gmem f32[M, N]) where N <= 16 grid (i: M) {
        var x = reg f32[8, 16]
        var y = reg f32[16]
        copy X[0.., 0..] -> x
        copy x[i % 8, 0..] -> y
        copy y -> Y[i, 0..]
    }";
    dir.file("placed.tile", placed.as_bytes());
    dir.file("x.bin", &floats((0..32).map(|i| i as f32)));
    let run = ["run", "placed.tile", "M=2", "N=16", "--in", "X=x.bin", "--out", "Y=y.bin"];
    let sim = dir.tilec(&[&run[..], &["--device", "sim"]].concat());
    assert_eq!((sim.status, sim.stderr.as_str()), (0, ""));
    let there = fs::read(dir.0.join("y.bin")).expect("written");
    let run = dir.tilec(&[&run[..], &["--device", "interp"]].concat());
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert_eq!(fs::read(dir.0.join("y.bin")).expect("written"), floats((0..32).map(|i| i as f32)));
    assert_eq!(there, floats((0..32).map(|i| i as f32)));
    for (more, needle) in [
        (&["--counters"][..], "`--counters` is for the simulator"),
        (&["--check"], "compares with the interpreter, which is what runs here"),
        (&["--alias", "C=A"], "`--alias`"),
    ] {
        let run = dir.tilec(&[&problem[..], &["--device", "interp"], more].concat());
        assert!(run.status == 2 && run.stderr.contains(needle), "{more:?}: {}", run.stderr);
    }
}

/// A loop that never ends is ended by the clock, with one code wherever it runs.
#[test]
fn endless_loops_run_out_of_time() {
    let dir = Dir::new("run-endless");
    let endless = "kernel endless(X: gmem i32[n]) grid (b: 1) {
        var t = reg i32[] = 0
        while t < n { t = min(t, 0) }
        copy t -> X[0]
    }";
    dir.file("x.tile", endless.as_bytes());
    for (device, who) in [("interp", "the interpreter did not finish within 1 s"), ("sim", "within 1 s")] {
        let run = dir.tilec(&["run", "x.tile", "n=1", "--device", device, "--timeout", "1"]);
        assert_eq!(run.status, 1, "{device}: {}", run.stderr);
        assert!(run.stderr.contains("E0613") && run.stderr.contains(who), "{device}: {}", run.stderr);
    }
}

/// PTX is launched as the contract of the same compilation says, also after its code was edited.
#[test]
fn a_launch_file_of_another_compilation_is_refused() {
    let dir = Dir::new("run-other");
    dir.file("x.tile", include_bytes!("../../examples/gemm.tile"));
    for (name, more) in
        [("a", &["-D", "BM=64"][..]), ("b", &["-D", "BM=128"]), ("c", &["-D", "BM=64", "--target", "sm_75"])]
    {
        for suffix in ["ptx", "json"] {
            let made = dir.tilec(&[&["x.tile", "-o", &format!("{name}.{suffix}")], more].concat());
            assert_eq!(made.status, 0, "{}", made.stderr);
        }
    }
    let launch = |ptx: &str, json: &str| {
        let problem = ["M=136", "N=72", "K=136", "--device", "sim"];
        dir.tilec(&[&["run", ptx, "--launch", json], &problem[..]].concat())
    };
    assert_eq!(launch("a.ptx", "a.json").status, 0);
    for (ptx, json, needle) in [
        ("a.ptx", "b.json", "is launched by the contract"),
        ("b.ptx", "a.json", "is launched by the contract"),
        ("c.ptx", "a.json", "`.target sm_75`, the description is for sm_70"),
    ] {
        let run = launch(ptx, json);
        assert_eq!(run.status, 1, "{ptx} {json}: {}", run.stdout);
        let said = ["error[E0618]", needle, "with the same options"];
        assert!(said.iter().all(|s| run.stderr.contains(s)), "{ptx} {json}: {}", run.stderr);
    }
    let text = fs::read_to_string(dir.0.join("a.ptx")).expect("written");
    dir.file("edited.ptx", text.replacen("bar.sync", "// bar.sync", 1).as_bytes());
    let race = launch("edited.ptx", "a.json");
    assert!(race.status == 1 && race.stderr.contains("race"), "{}{}", race.stdout, race.stderr);
}

/// A tensor's own elements may be replaced; nothing else that is read, and no other output.
#[test]
fn outputs_do_not_replace_what_is_read() {
    let dir = Dir::new("run-replace");
    let (ptx, json) = (documented("ptx"), documented("json"));
    dir.file("saxpy.ptx", ptx.as_bytes());
    dir.file("saxpy.json", json.as_bytes());
    dir.file("x.tile", COPY.as_bytes());
    dir.file("e.bin", &floats([1.0; 5]));
    let launch = ["run", "saxpy.ptx", "--launch", "saxpy.json", "n=5", "--device", "sim"];
    for (args, what) in [
        (&[&launch[..], &["--out", "y=saxpy.ptx"]].concat(), "the program"),
        (&[&launch[..], &["--out", "y=./saxpy.json"]].concat(), "the launch description"),
        (&[&launch[..], &["--in", "x=e.bin", "--out", "y=e.bin"]].concat(), "the elements of `x`"),
        (&[&launch[..], &["--out", "x=new.bin", "--out", "y=new.bin"]].concat(), "that of `x`"),
        (&vec!["run", "x.tile", "--out", "B=x.tile"], "the program"),
    ] {
        let run = dir.tilec(args);
        assert_eq!(run.status, 2, "{args:?}: {}", run.stderr);
        assert!(run.stderr.contains(&format!("is both an output and {what}")), "{args:?}: {}", run.stderr);
    }
    for (file, text) in [("saxpy.ptx", ptx), ("saxpy.json", json), ("x.tile", COPY.to_owned())] {
        assert_eq!(fs::read_to_string(dir.0.join(file)).expect("still there"), text);
    }
    let own = dir.tilec(&[&launch[..], &["--in", "x=e.bin", "--in", "y=e.bin", "--out", "y=e.bin"]].concat());
    assert_eq!(own.status, 2, "it is `x` too: {}", own.stderr);
    let own = dir.tilec(&[&launch[..], &["a=0", "--in", "y=e.bin", "--out", "y=e.bin"]].concat());
    assert_eq!(own.status, 0, "{}", own.stderr);
    assert_eq!(fs::read(dir.0.join("e.bin")).expect("written"), floats([1.0; 5]));
}

#[test]
fn tile_programs_take_and_give_tensors_whatever_the_strides() {
    let dir = Dir::new("tensors");
    dir.file("x.tile", COPY.as_bytes());
    dir.file("a.bin", &floats((0..6).map(|i| i as f32)));
    let run = dir.tilec(
        &"run x.tile M=2 N=3 A_ld=8 B_ld=5 --in A=a.bin --out B=b.bin --check --device sim"
            .split(' ')
            .collect::<Vec<_>>(),
    );
    assert_eq!((run.status, run.stderr.as_str()), (0, ""));
    assert!(run.stdout.contains("B: 6 elements, all exact: ok"), "{}", run.stdout);
    assert_eq!(fs::read(dir.0.join("b.bin")).expect("written"), floats((0..6).map(|i| 2.0 * i as f32)));
}

#[test]
fn neither_order_nor_threads_nor_landing_change_anything() {
    let dir = Dir::new("orders");
    dir.file("x.tile", COPY.as_bytes());
    let run = |more: &str| {
        let args = format!("run x.tile M=9 N=50 --out B=b.bin --device sim --counters=json {more}");
        let run = dir.tilec(&args.split_whitespace().collect::<Vec<_>>());
        assert_eq!(run.status, 0, "{more}: {}", run.stderr);
        (run.stdout, fs::read(dir.0.join("b.bin")).expect("written"))
    };
    let first = run("");
    for more in ["--sim-order reverse", "--sim-order seeded", "--sim-threads 3", "--sim-landing latest", "--fuel 1000"]
    {
        assert_eq!(run(more), first, "{more}");
    }
    assert!(run("--imitate hopper").0.contains("\"imitated\": \"hopper\""));
    let older =
        dir.tilec(&["run", "x.tile", "M=9", "N=50", "--target", "sm_80", "--device", "sim", "--imitate", "volta"]);
    assert!(
        older.status == 1 && older.stderr.contains("Volta devices do not run code for `sm_80`"),
        "{}",
        older.stderr
    );
}

/// Outputs at the address of an input: no race in any order, and only where the contract says so.
#[test]
fn outputs_stand_on_inputs_where_the_contract_says_so() {
    let dir = Dir::new("in-place");
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/gemm_fused.tile");
    let run = |more: &str| {
        let args = format!("run {example} M=72 N=40 K=24 --check --device sim {more}");
        dir.tilec(&args.split_whitespace().collect::<Vec<_>>())
    };
    for target in ["sm_70", "sm_80"] {
        for order in ["forward", "reverse", "seeded"] {
            let done = run(&format!("beta=2 --alias D=C --target {target} --sim-order {order}"));
            assert_eq!((done.status, done.stderr.as_str()), (0, ""), "{target} {order}");
            assert!(done.stdout.contains("D: 2880 elements, all exact: ok"), "{}", done.stdout);
        }
    }
    let refused = run("beta=2 --alias D=bias");
    assert!(refused.status == 1 && refused.stderr.contains("`D` may be at the address of C"), "{}", refused.stderr);
    let apart = run("beta=2 --alias D=C C_ld=48");
    assert!(apart.status == 1 && apart.stderr.contains("are at different addresses"), "{}", apart.stderr);
    assert!(run("--alias D=X").stderr.contains("no tensor `X`"));

    // Of 128 threads several hold an element: one of them reads it and writes it.
    dir.file(
        "replicas.tile",
        b"kernel replicas(C: gmem f32[M, 8], D: gmem f32[M, 8]) grid (i: ceildiv(M, 8)) schedule { threads 128 } {\n\
          var x = reg f32[8, 8] = 1.0\n    copy x + C[i * 8.., 0..] -> D[i * 8.., 0..]\n}\n",
    );
    for order in ["forward", "reverse", "seeded"] {
        let args = format!("run replicas.tile M=20 --alias D=C --check --device sim --sim-order {order}");
        let done = dir.tilec(&args.split_whitespace().collect::<Vec<_>>());
        assert_eq!((done.status, done.stderr.as_str()), (0, ""), "{order}");
    }
}

/// Matrices after an array of pointers are apart, and are one packed tensor in files.
#[test]
fn arrays_of_pointers_are_packed_in_files() {
    let dir = Dir::new("pointers");
    let program = "kernel double(A: gmem f32[Z, M, N] pointers, B: gmem f32[Z, M, N] pointers) where N <= 64 grid (b: M, z: Z) {\n\
        var x = reg f32[1, 64]\n    copy A[z, b.., 0..] -> x\n    copy 2.0 * x -> B[z, b.., 0..]\n}\n";
    dir.file("x.tile", program.as_bytes());
    dir.file("a.bin", &floats((0..24).map(|i| i as f32)));
    let args = "run x.tile Z=4 M=2 N=3 A_ld=8 B_ld=5 --in A=a.bin --out B=b.bin --check --device sim";
    let run = dir.tilec(&args.split(' ').collect::<Vec<_>>());
    assert_eq!((run.status, run.stderr.as_str()), (0, ""));
    assert!(run.stdout.contains("B: 24 elements, all exact: ok"), "{}", run.stdout);
    assert_eq!(fs::read(dir.0.join("b.bin")).expect("written"), floats((0..24).map(|i| 2.0 * i as f32)));

    // The same from PTX and a description by hand; and where it goes wrong, the message has the matrix and the element.
    let compile = |more: &[&str]| dir.tilec(&[&["x.tile"], more].concat());
    assert_eq!((compile(&["-o", "x.ptx"]).status, compile(&["-o", "x.json"]).status), (0, 0));
    let args = "run x.ptx --launch x.json Z=4 M=2 N=3 --in A=a.bin --out B=c.bin --device sim";
    let by_hand = dir.tilec(&args.split(' ').collect::<Vec<_>>());
    assert_eq!((by_hand.status, by_hand.stderr.as_str()), (0, ""));
    assert_eq!(fs::read(dir.0.join("c.bin")).expect("written"), floats((0..24).map(|i| 2.0 * i as f32)));
    let json = fs::read_to_string(dir.0.join("x.json")).expect("written");
    let shape = "\"Z\",\n        \"M\",\n        \"N\"";
    assert!(json.contains("\"kind\": \"pointers\"") && json.contains(shape), "{json}");
    dir.file("short.json", json.replacen(shape, "\"Z\",\n        \"1\",\n        \"N\"", 1).as_bytes());
    let args = "run x.ptx --launch short.json Z=4 M=2 N=3 --device sim";
    let short = dir.tilec(&args.split(' ').collect::<Vec<_>>());
    assert!(short.stderr.contains("`A[0, .., ..]`, f32 [4, 1, 3] by pointers"), "{}", short.stderr);
    dir.file("few.json", json.replacen(shape, &shape.replace('Z', "Z - 1"), 1).as_bytes());
    let args = "run x.ptx --launch few.json Z=4 M=2 N=3 --device sim";
    let few = dir.tilec(&args.split(' ').collect::<Vec<_>>());
    assert!(few.stderr.contains("after the end of the 3 addresses of the array `A`"), "{}", few.stderr);
}

/// What a kernel only writes, in parts, may hold something before.
#[test]
fn outputs_are_given_elements() {
    let dir = Dir::new("given-outputs");
    let program = "kernel scatter(X: gmem f32[4], at: gmem i32[4], Y: gmem f32[8]) {\n\
        var x = reg f32[4]\n    var p = reg i32[4]\n    copy X[0..] -> x\n    copy at[0..] -> p\n    copy x -> Y[p]\n}\n";
    dir.file("x.tile", program.as_bytes());
    dir.file("y.bin", &floats((0..8).map(|i| i as f32)));
    for how in ["--device sim --check", "--device sim", "--device interp"] {
        let args = format!("run x.tile --in X=[10,11,12,13] --in at=[6,0,-1,3] --in Y=y.bin --out Y=out.bin {how}");
        let done = dir.tilec(&args.split(' ').collect::<Vec<_>>());
        assert_eq!((done.status, done.stderr.as_str()), (0, ""), "{how}");
        assert!(!done.stdout.contains("nothing writes"), "{}", done.stdout);
        let out = fs::read(dir.0.join("out.bin")).expect("written");
        assert_eq!(out, floats([11.0, 1.0, 2.0, 13.0, 4.0, 5.0, 10.0, 7.0].into_iter()), "{how}");
    }
}

/// A sequence is one command, from the program and from PTX with its contract; kernels may be launched by themselves.
#[test]
fn sequences_run_in_order() {
    let dir = Dir::new("sequence");
    let program = "kernel double(A: gmem f32[M, N], W: gmem f32[M, N]) where N <= 64 grid (b: M) {\n\
        var x = reg f32[1, 64]\n    copy A[b.., 0..] -> x\n    copy 2.0 * x -> W[b.., 0..]\n}\n\
        kernel shift(W: gmem f32[M, N], B: gmem f32[M, N], d: f32 = 1.0) where N <= 64 grid (b: M) {\n\
        var x = reg f32[1, 64]\n    copy W[b.., 0..] -> x\n    copy x + d -> B[b.., 0..]\n}\n\
        sequence both { double, shift }\n";
    dir.file("x.tile", program.as_bytes());
    dir.file("a.bin", &floats((0..6).map(|i| i as f32)));
    let run = |args: &str| dir.tilec(&args.split_whitespace().collect::<Vec<_>>());
    let written = |name: &str| fs::read(dir.0.join(name)).expect("written");
    for more in ["", "--sim-order reverse", "--sim-order seeded --seed 3", "W_ld=7 B_ld=5"] {
        let done = run(&format!(
            "run x.tile M=2 N=3 d=0.5 --in A=a.bin --out B=b.bin --out W=w.bin --check --device sim {more}"
        ));
        assert_eq!((done.status, done.stderr.as_str()), (0, ""), "{more}");
        assert!(done.stdout.starts_with("both for sm_70 on the simulator"), "{}", done.stdout);
        assert!(done.stdout.contains("double: executed 2 blocks") && done.stdout.contains("shift: executed 2 blocks"));
        assert!(done.stdout.contains("B: 6 elements") && !done.stdout.contains("W: "), "{}", done.stdout);
        assert_eq!(written("b.bin"), floats((0..6).map(|i| 2.0 * i as f32 + 0.5)));
        assert_eq!(written("w.bin"), floats((0..6).map(|i| 2.0 * i as f32)));
    }
    assert_eq!((run("x.tile -o x.ptx").status, run("x.tile -o x.json").status), (0, 0));
    let json: serde_json::Value = serde_json::from_slice(&written("x.json")).expect("JSON");
    assert_eq!(
        json["programs"],
        serde_json::json!([{"name": "both", "launches": ["double", "shift"], "temporaries": [
            {"name": "W", "align": 4, "bytes": "((M - 1) * W_ld + N - 1 + 1) * 4"}]}])
    );
    let done = run("run x.ptx --launch x.json M=2 N=3 --in A=a.bin --out B=c.bin --device sim");
    assert_eq!((done.status, done.stderr.as_str()), (0, ""));
    assert_eq!(written("c.bin"), floats((0..6).map(|i| 2.0 * i as f32 + 1.0)));
    let counted = run("run x.ptx --launch x.json M=2 N=3 --counters json");
    let counters: serde_json::Value = serde_json::from_str(&counted.stdout).expect("JSON");
    assert_eq!(counters["launches"][1]["entry"], "shift");

    let alone = run("run x.tile --kernel shift M=2 N=3 --in W=a.bin --out B=d.bin --check --device sim");
    assert!(alone.status == 0 && alone.stdout.starts_with("shift for sm_70"), "{}", alone.stderr);
    assert_eq!(written("d.bin"), floats((0..6).map(|i| i as f32 + 1.0)));
    for (args, needle) in [
        ("run x.tile M=2 N=3 --kernel triple", "no kernel `triple`; there are `both`, `double`, `shift`"),
        ("run x.tile M=2 N=3 e=2", "it has `M`, `N`, `A_ld`, `W_ld`, `d` and `B_ld`"),
        ("run x.tile N=3", "no value for `M`"),
    ] {
        let refused = run(args);
        assert!(refused.status == 1 && refused.stderr.contains(needle), "{args}: {}", refused.stderr);
    }

    // Elements that the first kernel leaves alone are nothing to the second.
    dir.file("less.tile", program.replace("-> W[b.., 0..]\n}", "-> W[b.., 0..N - 1]\n}").as_bytes());
    let less = run("run less.tile M=2 N=3 --device sim");
    assert!(less.stderr.contains("uninitialised memory: `W[0, 2]` of f32 [2, 3]"), "{}", less.stderr);
    // And without an order there is no sequence.
    dir.file("none.tile", program.replace("sequence both { double, shift }", "").as_bytes());
    assert!(run("run none.tile M=2 N=3").stderr.contains("several kernels or sequences: `double`, `shift`"));
}

const PRODUCT: &str = "kernel product<ALIGN = 8, BM = auto, BN = auto, BK = auto, WM = auto, WN = auto, STAGES = auto>(\n    \
    A: gmem f16[M, K] multiple ALIGN, B: gmem f16[K, N] multiple ALIGN, C: gmem f32[M, N] multiple ALIGN)\n    \
    grid (i: ceildiv(M, BM), j: ceildiv(N, BN))\n    schedule { warp_tile (WM, WN) stages STAGES }\n{\n    \
    let a = smem f16[BM, BK]\n    let b = smem f16[BK, BN]\n    var acc = reg f32[BM, BN] = 0\n    \
    for k in 0..K step BK {\n        copy A[i * BM.., k..] -> a\n        copy B[k.., j * BN..] -> b\n        \
    acc = mma(a, b, acc)\n    }\n    copy acc -> C[i * BM.., j * BN..]\n}\n";

/// Variants for sizes and alignments in one file: each problem is launched with the one that the contract says, from the source and
/// from the files alike, and the result is right.
#[test]
fn the_variant_for_the_problem_is_launched() {
    let dir = Dir::new("variants");
    dir.file("x.tile", PRODUCT.as_bytes());
    let options = ["--target", "sm_80", "--for", "M=N=K=4096", "--for", "M=N=K=128", "--variant", "ALIGN=8/1"];
    for out in ["x.ptx", "x.json"] {
        let built = dir.tilec(&[&["x.tile", "-o", out], &options[..]].concat());
        assert_eq!((built.status, built.stderr.as_str()), (0, ""));
    }
    let text = fs::read_to_string(dir.0.join("x.json")).expect("written");
    let file = tilec::contract::LaunchFile::from_json(&text).expect("a launch file");
    assert_eq!(file.to_json(), text);
    let [dispatch] = &file.dispatch[..] else { panic!("{text}") };
    assert_eq!((dispatch.kernel.as_str(), file.kernels.len() >= 3), ("product", true), "{text}");
    let mut launched = Vec::new();
    for problem in [["M=2048", "N=64", "K=8"], ["M=40", "N=72", "K=24"], ["M=41", "N=7", "K=9"]] {
        let entry = |run: &crate::common::Run| run.stdout.split(' ').next().unwrap_or("").to_owned();
        let run = dir.tilec(&[&["run", "x.tile", "--check", "--device", "sim"][..], &problem, &options].concat());
        assert_eq!((run.status, run.stderr.as_str()), (0, ""), "{}", run.stdout);
        assert!(run.stdout.contains("all exact: ok"), "{}", run.stdout);
        let foreign = dir.tilec(&[&["run", "x.ptx", "--launch", "x.json", "--device", "sim"][..], &problem].concat());
        assert_eq!((foreign.status, entry(&foreign)), (0, entry(&run)), "{}", foreign.stderr);
        launched.push(entry(&run));
    }
    // The last has rows of odd lengths, which only what was compiled with ALIGN=1 takes.
    assert_ne!(launched[0], launched[2]);
    assert_ne!(launched[1], launched[2]);
    // One of them on demand, which may not fit.
    let first = dispatch.cases[0].entry.as_str();
    let one =
        dir.tilec(&["run", "x.ptx", "--launch", "x.json", "--kernel", first, "M=41", "N=7", "K=9", "--device", "sim"]);
    assert!(one.status == 1 && one.stderr.contains("E0609"), "{}", one.stderr);
}

/// Of the kernels of a sequence each is launched as the variant that fits.
#[test]
fn sequences_launch_variants() {
    let dir = Dir::new("sequence-variants");
    dir.file("x.tile", include_bytes!("../../examples/gemm_splitk.tile"));
    let options = "--target sm_80 -D BM=32 -D BN=32 -D WM=16 -D WN=16 --variant ALIGN=8/1";
    let run = |args: &str| dir.tilec(&args.split_whitespace().collect::<Vec<_>>());
    for out in ["x.ptx", "x.json"] {
        assert_eq!(run(&format!("x.tile -o {out} {options}")).status, 0);
    }
    let text = fs::read_to_string(dir.0.join("x.json")).expect("written");
    let file = tilec::contract::LaunchFile::from_json(&text).expect("a launch file");
    assert_eq!(file.programs[0].launches, ["partial", "reduce"]);
    assert_eq!(file.programs[0].temporaries[0].align, 16);
    for (problem, number) in [("M=40 N=24 K=72 S=2", 1), ("M=41 N=23 K=70 S=2", 2)] {
        let both = [format!("  partial_{number}: executed"), format!("  reduce_{number}: executed")];
        let source = run(&format!("run x.tile {problem} --check --device sim {options}"));
        assert!(source.status == 0 && source.stdout.contains("all exact: ok"), "{}{}", source.stdout, source.stderr);
        let foreign = run(&format!("run x.ptx --launch x.json {problem} --device sim"));
        assert_eq!((foreign.status, foreign.stderr.as_str()), (0, ""));
        for line in &both {
            assert!(source.stdout.contains(line) && foreign.stdout.contains(line), "{line}: {}", foreign.stdout);
        }
    }
    let incomplete = run("run x.ptx --launch x.json M=1 --device sim");
    assert!(incomplete.status == 1 && incomplete.stderr.contains("no value for"), "{}", incomplete.stderr);
}

#[test]
fn variants_that_cannot_be_are_said() {
    let dir = Dir::new("no-variants");
    dir.file("x.tile", PRODUCT.as_bytes());
    // Variants of what a sequence launches pass on the same.
    let sequence = format!(
        "{PRODUCT}\nkernel after<Q = 2>(C: gmem f32[M, N], D: gmem f32[Q, M, N]) grid (i: 1) {{}}\n\
         kernel last<Q = 2>(D: gmem f32[Q, M, N]) grid (i: 1) {{}}\n\
         sequence both {{ product, after, last }}\n"
    );
    dir.file("s.tile", sequence.as_bytes());
    let refused = dir.tilec(&["s.tile", "--variant", "Q=2/3"]);
    assert!(refused.status == 1 && refused.stderr.contains("different shapes"), "{}", refused.stderr);
    for (args, status, needle) in [
        (&["--variant", "target=sm_75/sm_80"][..], 2, "variants in one file are for one target"),
        (&["--variant", "ALIGN=8/8"], 2, "is there twice"),
        (&["--for", "M=0"], 2, "a size from 1 to 2^31 - 1"),
        (&["--for", "M=1,M=2"], 2, "`M` has two sizes"),
        (&["--for", "L=8"], 1, "E0432"),
        (&["--card", "GTX"], 2, "V100"),
    ] {
        let run = dir.tilec(&[&["x.tile"], args].concat());
        assert_eq!(run.status, status, "{args:?}: {}", run.stderr);
        assert!(run.stderr.contains(needle), "{args:?}: {}", run.stderr);
    }
}

/// What the compiler writes for TMA copies, roles and shared tiles runs from its two files alone: tensor maps and scratch memory are described there.
#[test]
fn launch_files_describe_tensor_maps_and_scratch_memory() {
    let dir = Dir::new("tensor-maps");
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/files/interp/gemm_sm_90a_stream_k.tile");
    let tile = "-D BM=64 -D BN=16 -D BK=64 -D WM=64 -D WN=16 -D STAGES=2 -D RASTER=2 -D KW=1 -D Out=f16";
    let run = |args: String| {
        let done = dir.tilec(&args.split_whitespace().collect::<Vec<_>>());
        assert_eq!(done.status, 0, "{args}: {}", done.stderr);
        done.stdout
    };
    run(format!("{example} --target sm_90a {tile} -o x.ptx"));
    run(format!("{example} --target sm_90a {tile} -o x.json"));
    let contract = fs::read_to_string(dir.0.join("x.json")).expect("written");
    assert!(contract.contains("\"tensor_map\"") && contract.contains("\"signals\""), "{contract}");
    let size = "M=72 N=24 K=1096 beta=1 --seed 5 --device sim";
    run(format!("run {example} --target sm_90a {tile} {size} --out C=tile.bin"));
    run(format!("run x.ptx --launch x.json {size} --out C=ptx.bin"));
    let result = |name: &str| fs::read(dir.0.join(name)).expect("written");
    assert_eq!(result("tile.bin"), result("ptx.bin"));
}

/// Values of the next sequence have no effect, although its rows are part of the same tiles: TMA loads of values stop where a sequence ends (`ended` in the contract).
#[test]
fn nan_of_a_neighbouring_sequence_reaches_no_other() {
    const WIDTH: usize = 64;
    // Tokens of three sequences; all of the second one is NaN.
    let (ends, tokens) = ([0, 20, 45, 70], 70);
    let dir = Dir::new("neighbours");
    let halves = [0x0000_u16, 0x3c00, 0xbc00, 0x3800, 0xb400];
    for (name, seed) in [("q.bin", 1), ("k.bin", 2), ("v.bin", 3)] {
        let number =
            |i: usize| if (ends[1]..ends[2]).contains(&(i / WIDTH)) { 0x7e00 } else { halves[i * i * seed % 7 % 5] };
        let bytes: Vec<u8> = (0..tokens * WIDTH).flat_map(|i| number(i).to_le_bytes()).collect();
        dir.file(name, &bytes);
    }
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/attention_varlen.tile");
    let tile = "--target sm_90a -D D=64 -D BQ=64 -D BKV=32";
    let not_numbers = |more: &str| {
        let sizes = "N=70 Z=3 H=1 scale_log2=0.03125 --in cu_seqlens=[0,20,45,70] --in Q=q.bin --in K=k.bin --in V=v.bin --out O=o.bin";
        let args = format!("run {example} {tile} {sizes} --device sim --check {more}");
        let done = dir.tilec(&args.split_whitespace().collect::<Vec<_>>());
        assert_eq!(done.status, 0, "{args}: {}", done.stderr);
        let result = fs::read(dir.0.join("o.bin")).expect("written");
        let nan = |half: &[u8]| u16::from_le_bytes([half[0], half[1]]) & 0x7fff > 0x7c00;
        let rows = result.chunks(2 * WIDTH).map(|row| row.chunks(2).any(nan)).enumerate();
        rows.filter_map(|(row, nan)| nan.then_some(row)).collect::<Vec<usize>>()
    };
    let contract = dir.tilec(&format!("{example} {tile} --emit launch").split_whitespace().collect::<Vec<_>>());
    assert!(contract.stdout.contains("\"ended\""), "{} {}", contract.stdout, contract.stderr);
    for causal in [0, 1] {
        assert_eq!(not_numbers(&format!("-D CAUSAL={causal}")), (ends[1]..ends[2]).collect::<Vec<usize>>());
    }
    // Without the end the neighbour's rows weigh nothing, but are no numbers.
    assert!(not_numbers("-D CLEAN=1").contains(&0));
}

/// Sizes of 0, and tensors without elements: what is read of them is zero, and every loop ends.
#[test]
fn tensors_without_elements() {
    let dir = Dir::new("empty");
    let program = "kernel empty(X: gmem f32[M, N], t: gmem i32[K], Y: gmem f32[M]) grid (i: M) {\n    \
        var s = reg f32[1, 64]\n    copy X[i.., 0..] -> s\n    var acc = reg f32[1, 1] = 0.0\n    acc = acc + sum(s, 1)\n    \
        for k in 0..t[0] step 64 {\n        copy X[i.., k..] -> s\n        acc = acc + sum(s, 1)\n    }\n    copy acc -> Y[i.., _]\n}\n";
    dir.file("x.tile", program.as_bytes());
    dir.file("ones.bin", &floats([1.0; 15]));
    for target in ["sm_70", "sm_80", "sm_90a"] {
        let run = |more: &str| {
            let args = format!("run x.tile --target {target} --device sim --check {more}");
            dir.tilec(&args.split_whitespace().collect::<Vec<_>>())
        };
        // Rows without elements sum up to nothing.
        let none = run("M=3 N=0 K=1 --in t=[100] --out Y=y.bin");
        assert_eq!(none.status, 0, "{}", none.stderr);
        assert_eq!(fs::read(dir.0.join("y.bin")).expect("written"), floats([0.0; 3]));
        let nothing = run("M=0 N=5 K=1");
        assert!(nothing.status == 0 && nothing.stdout.contains("nothing to launch"), "{}", nothing.stderr);
        // An element that there is not counts as zero.
        let outside = run("M=3 N=5 K=0 --in X=ones.bin --out Y=y.bin");
        assert_eq!(outside.status, 0, "{}", outside.stderr);
        assert_eq!(fs::read(dir.0.join("y.bin")).expect("written"), floats([5.0; 3]));
    }
}
