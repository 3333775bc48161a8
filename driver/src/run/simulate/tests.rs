//! Whole simulations: reports, their text, and counts.

mod permissions;

use super::*;
use crate::CompileOptions;
use crate::Number;
use crate::console::render::SourceFile;
use crate::contract::launch_file::contracts;
use crate::run::{Aliases, Foreign, On, Ran, RunOptions, RunReport, run_foreign};
use std::process::Command;
use std::time::Duration;

const GEMM: &str = include_str!("../../../../examples/gemm.tile");

/// Runs PTX on the simulator.
pub(super) fn run(
    ptx: &str,
    json: &str,
    args: &[(&str, i64)],
    change: impl FnOnce(&mut RunOptions),
) -> Result<RunReport, String> {
    run_with(ptx, contracts(json, ptx).expect("a launch description").kernels, args, change)
}

/// The same with contracts from the compiler, because contracts with tensor maps cannot be written by hand.
fn run_with(
    ptx: &str,
    launches: Vec<Contract>,
    args: &[(&str, i64)],
    change: impl FnOnce(&mut RunOptions),
) -> Result<RunReport, String> {
    let foreign = Foreign { ptx: SourceFile::new("k.ptx", ptx), name: "k".to_owned(), launches };
    let args = args.iter().map(|(name, n)| ((*name).to_owned(), Number::Int(*n))).collect();
    let mut options = RunOptions { args, on: On::Simulator, ..RunOptions::default() };
    change(&mut options);
    run_foreign(&foreign, &options, &mut Command::new("nothing")).map_err(|d| d.to_string())
}

/// A kernel with a read-only tensor `a` and another `b`, both f32 [n], in blocks of 64.
pub(super) fn small(body: &str) -> String {
    format!(
        ".version 7.4\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u64 b, .param .u32 n)\n{{\n\
         .reg .pred %p<4>;\n.reg .b32 %r<8>;\n.reg .b64 %rd<8>;\n.shared .align 16 .b8 tile[1024];\n\
         ld.param.u64 %rd1, [a];\nld.param.u64 %rd2, [b];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd3, %r1, 4;\n\
         add.s64 %rd1, %rd1, %rd3;\nadd.s64 %rd2, %rd2, %rd3;\nmov.u32 %r2, tile;\nmad.lo.u32 %r2, %r1, 4, %r2;\n\
         {body}\nret;\n}}\n"
    )
}

pub(super) const LAUNCH: &str = r#"{"block": 64, "grid": 1, "params": [
    {"name": "a", "type": "f32", "shape": ["n"], "access": "read"},
    {"name": "b", "type": "f32", "shape": ["n", 2], "strides": [3, 2], "access": "write"},
    {"name": "n", "kind": "size"}]}"#;

#[test]
fn what_was_not_checked_is_said() {
    // Words far apart, each in a separate page, of a tensor that may be written.
    let reads = |pages: u32| {
        let body = format!(
            "mov.u32 %r3, 0;\nL:\nld.global.f32 %r4, [%rd1];\nadd.s64 %rd1, %rd1, 1024;\nadd.u32 %r3, %r3, 1;\n\
             setp.lt.u32 %p1, %r3, {pages};\n@%p1 bra L;"
        );
        let launch = LAUNCH.replace("[\"n\", 2]", "[64, 2]").replace("\"read\"", "\"read_write\"");
        let n = i64::from(pages) * 256;
        run(&small(&body), &launch, &[("n", n)], |_| ()).expect("no report").to_string()
    };
    assert!(reads(9000).contains("a race on global memory may have gone unseen"));
    assert!(!reads(4).contains("race"));
}

#[track_caller]
pub(super) fn reported(body: &str, needles: &[&str]) {
    let text = run(&small(body), LAUNCH, &[("n", 64)], |o| o.sim.fuel = 10_000).map(|r| r.to_string()).expect_err(body);
    for needle in needles {
        assert!(text.contains(needle), "no `{needle}` in\n{text}");
    }
}

#[test]
fn reports_name_line_thread_and_place() {
    reported(
        "ld.global.u32 %r3, [%rd1+4];",
        &[
            "error[E0801]: a read outside every tensor, right after the end of `a`, f32 [64]",
            "k.ptx:18",
            "thread (63, 0, 0)",
        ],
    );
    reported("ld.global.u32 %r3, [%rd1+-4];", &["E0801", "4 bytes in front of `a`", "thread (0, 0, 0)"]);
    reported(
        "ld.global.u64 %rd5, [%rd1];",
        &[
            "E0802",
            "is not a multiple of the 8 bytes accessed",
            "`a[",
            "of f32 [64]",
            "its `align` in the launch contract",
        ],
    );
    reported("ld.shared.u32 %r3, [%r2+512];", &["E0803", "of `tile`", "was never written"]);
    reported("st.shared.u32 [%r2+1024], %r1;", &["E0801", "outside the 1024 bytes of shared memory"]);
    reported("st.global.u32 [%rd2], %r5;", &["E0804"]);
    reported(
        "st.shared.u32 [%r2], %r1;\nxor.b32 %r2, %r2, 128;\nld.shared.u32 %r3, [%r2];",
        &[
            "E0805",
            "k.ptx:",
            "this write, by thread",
            "the earlier read, by thread",
            "of `tile`",
            "`ld.shared.u32 %r3, [%r2];`",
        ],
    );
    reported("setp.eq.u32 %p1, %r1, 0;\n@%p1 bra L;\nbar.sync 0;\nL:\nbar.sync 0;", &["E0806"]);
    reported("setp.lt.u32 %p1, %r1, 32;\n@%p1 bar.sync 1, 96;", &["E0807", "wait at barrier 1"]);
    reported("L: bra L;", &["E0808", "`--fuel N`"]);
    reported("trap;", &["E0809"]);
    reported("frobnicate.u32 %r1;", &["E0812", "k.ptx:18", "--device cuda"]);
}

#[test]
fn reports_name_variables_of_the_module() {
    let table = ".global .align 8 .b32 table[4];";
    reported(
        &format!("{table} st.global.u32 [table+16], %r1;"),
        &["E0801", "a write outside all memory, right after the end of the variable `table`, 16 bytes"],
    );
    reported(&format!("{table} st.global.u32 [table+4], %r1;"), &["E0805", "byte 4 of the variable `table`, 16 bytes"]);
    reported(
        &format!("{table} mov.u64 %rd4, table; ld.global.u32 %r3, [%rd4+-8];"),
        &["8 bytes in front of the variable `table`"],
    );
    reported(&format!("{table} ld.global.u64 %rd4, [table+4];"), &["E0802", "byte 4 of the variable `table`"]);
    reported("mov.u64 %rd4, 8; ld.global.u32 %r3, [%rd4];", &["E0801", "the pointer is null"]);
    reported(
        ".shared .b32 first[4], second[4]; mov.u32 %r2, second; ld.shared.u32 %r3, [%r2+-4];",
        &["outside the variables of shared memory; `first` ends at 0x", ", `second` begins at 0x"],
    );
}

#[test]
fn of_several_instructions_on_a_line_the_one_is_underlined() {
    // Columns count characters, and the guard belongs to the instruction.
    let line = "/* ä */ mov.u32 %r3, 1; @%p1 add.u32 %r3, %r3, 1; L: st.global.u32 [%rd2], %r5; mov.u32 %r4, %r3;";
    let body = line.replace("st.", "setp.eq.u32 %p2, %r1, 0; @%p2 st.").replace("@%p1 add", "add");
    let column = body.split("@%p2").next().expect("text").chars().count();
    let store = "@%p2 st.global.u32 [%rd2], %r5;";
    let underlined = format!("   | {}{} by thread", " ".repeat(column), "^".repeat(store.len()));
    reported(&body, &["E0804", &underlined, &format!("instruction: PTX line 18: `{store}`\n")]);
    // Two writes of one line are two instructions.
    let two = "mov.u32 %r2, tile; setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [%r2], %r1; setp.eq.u32 %p2, %r1, 32; @%p2 st.shared.u32 [%r2], %r1;";
    reported(
        two,
        &["E0805", "put a `bar.sync` between the two", "write: PTX line 18: `@%p1 st.shared.u32 [%r2], %r1;`\n"],
    );
    // One that ends in another line is underlined to the end of its first.
    reported(
        "mov.u32 %r3, 1; st.global.u32 [%rd2],\n%r5;",
        &["E0804", "`st.global.u32 [%rd2],`", "| ^^^^^^^^^^^^^^^^^^^^^ by"].map(|s| s.trim_start_matches("| ")),
    );
}

#[test]
fn a_race_says_whether_blocks_or_threads_met() {
    let blocks = LAUNCH.replace("\"grid\": 1", "\"grid\": 2").replace("[3, 2]", "[2, 1]");
    let text =
        run(&small("st.global.u32 [%rd2], %r1;"), &blocks, &[("n", 64)], |_| ()).map(|_| ()).expect_err("a race");
    for part in [
        "error[E0805]: data race on global memory between blocks: nothing orders a write and a write",
        "this write, by thread (0, 0, 0) of block (1, 0, 0)",
        "the other write, by thread (0, 0, 0) of block (0, 0, 0)",
        "in block (1, 0, 0), thread (0, 0, 0), and in block (0, 0, 0), thread (0, 0, 0), at address",
        "`b[0, 0]` of f32 [64, 2]",
        "no barrier orders them",
    ] {
        assert!(text.contains(part), "`{part}` is not in\n{text}");
    }
    assert!(!text.contains("bar.sync"), "{text}");
    let one = "st.shared.u32 [%r2], %r1;\nxor.b32 %r2, %r2, 128;\nld.shared.u32 %r3, [%r2];";
    reported(one, &["put a `bar.sync`", "which of the two came first was chance", "in block (0, 0, 0), thread"]);
}

#[test]
fn a_race_within_one_instruction_needs_one_writer() {
    let one = "mov.u32 %r2, tile;\nst.shared.u32 [%r2], %r1;";
    reported(one, &["nothing orders a write after a write", "let one thread write, or use an atomic"]);
}

#[test]
fn a_race_of_mbarriers_names_their_operations() {
    let both = "mov.u32 %r2, tile;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 mbarrier.init.shared.b64 [%r2], 64;\n\
                mbarrier.arrive.shared.b64 %rd3, [%r2];";
    reported(both, &["data race on shared memory", "arrival at an mbarrier", "initialisation of an mbarrier"]);
}

#[test]
fn a_launch_that_does_not_fit_is_refused() {
    let ret = small("");
    let refused = |json: &str| run(&ret, json, &[("n", 64)], |_| ()).expect_err(json);
    let other = refused(&LAUNCH.replace("\"block\"", "\"entry\": \"x\", \"block\""));
    assert!(other.contains("E0618") && other.contains("no `.entry x`"), "{other}");
    assert!(refused(&LAUNCH.replace("64", "2048")).contains("E0813"));
    let fewer = LAUNCH.replace("{\"name\": \"n\", \"kind\": \"size\"}", "{\"name\": \"n\", \"type\": \"i64\"}");
    let wider = "parameter 2 has 4 bytes in the PTX, `n` of the description has 8";
    assert!(refused(&fewer).contains(wider), "{}", refused(&fewer));
    assert!(refused(&LAUNCH.replace("\"block\"", "\"cluster\": 2, \"block\"")).contains("cluster"));
}

/// Tensors are made under the clock too.
#[test]
fn the_clock_ends_what_is_not_ready() {
    let text = run(&small(""), LAUNCH, &[("n", 1 << 18)], |o| o.timeout = Duration::ZERO).expect_err("no time");
    assert!(text.contains("E0613") && text.contains("not ready within 0 s: making room for `a`"), "{text}");
}

/// The search for unwritten elements stops at the deadline: a tensor may have far more elements than memory.
#[test]
fn the_clock_ends_the_look_behind_a_launch() {
    let launch = LAUNCH.replace("[\"n\", 2], \"strides\": [3, 2]", "[\"n\", \"n\", \"n\"], \"strides\": [0, 0, 1]");
    let timed = |o: &mut RunOptions| o.timeout = Duration::from_millis(500);
    run(&small(""), &launch, &[("n", 100_000)], timed).expect("it ends");
}

#[test]
fn the_clock_ends_what_does_not_end() {
    let timed = |o: &mut RunOptions| (o.timeout, o.sim.fuel) = (Duration::from_millis(50), u64::MAX);
    let text = run(&small("L: bra L;"), LAUNCH, &[("n", 64)], timed).expect_err("endless");
    assert!(text.contains("E0613") && text.contains("was here") && text.contains("`bra L;`"), "{text}");
}

/// A program without a race may still depend on when copies land: it tests whether one has, and stores the result.
#[test]
fn results_may_not_depend_on_when_copies_land() {
    let body = "mad.lo.u32 %r3, %r1, 4, %r2;\nmbarrier.init.shared.b64 [%r3+512], 1;\n\
                cp.async.ca.shared.global [%r2], [%rd1], 4;\n\
                cp.async.mbarrier.arrive.noinc.shared.b64 [%r3+512];\n\
                mbarrier.test_wait.parity.shared.b64 %p1, [%r3+512], 0;\n\
                selp.b32 %r4, 1, 0, %p1;\nst.global.u32 [%rd2], %r4;\ncp.async.wait_all;";
    let json = LAUNCH.replace("[3, 2]", "[2, 1]");
    let text = run(&small(body), &json, &[("n", 64)], |_| ()).map(|r| r.to_string()).expect_err("two results");
    assert!(text.contains("E0811") && text.contains("`b[0, 0]`"), "{text}");
    // Asking until the answer is yes, all is well in every way.
    let waits = body.replacen("selp", "@!%p1 bra W;\nselp", 1).replacen("mbarrier.test", "W:\nmbarrier.test", 1);
    let equal = run(&small(&waits), &json, &[("n", 64)], |_| ()).expect("waits").to_string();
    assert!(equal.contains("equal in 4 runs"), "{equal}");
    let once =
        run(&small(body), &json, &[("n", 64)], |o| o.sim.landings = Landings::One(Landing::Late)).expect("one landing");
    assert!(!once.to_string().contains("runs that differ"), "{once}");
}

/// The source of a copy may not change before the copy has landed.
#[test]
fn the_source_of_a_copy_is_read_until_it_lands() {
    let body = "mov.u32 %r4, 7;\nst.global.u32 [%rd2], %r4;\ncp.async.ca.shared.global [%r2], [%rd2], 4;\n\
                mov.u32 %r4, 9;\nst.global.u32 [%rd2], %r4;\ncp.async.wait_all;";
    let json = LAUNCH.replace("[3, 2]", "[2, 1]");
    let text = run(&small(body), &json, &[("n", 64)], |_| ()).map(|r| r.to_string()).expect_err("a race");
    assert!(text.contains("E0805") && text.contains("the earlier asynchronous copy"), "{text}");
}

fn compiled(disabled: &[&str]) -> crate::Compiled {
    let mut options = CompileOptions { source_name: "gemm.tile".to_owned(), ..CompileOptions::default() };
    options.disabled = disabled.iter().map(|s| (*s).to_owned()).collect();
    crate::compile(GEMM, &options).expect("compiles")
}

const SIZES: [(&str, i64); 3] = [("M", 136), ("N", 72), ("K", 72)];

/// If any barrier is removed, a report names both sides of the race.
#[test]
fn every_barrier_that_is_removed_is_missed() {
    let program = compiled(&[]);
    let json = program.launch_json();
    run(&program.ptx, &json, &SIZES, |_| ()).expect("all of them there");
    let barriers: Vec<usize> = program.ptx.match_indices("bar.sync").map(|(at, _)| at).collect();
    assert!(barriers.len() >= 2);
    for at in barriers {
        let mut ptx = program.ptx.clone();
        ptx.replace_range(at..at + 2, "//");
        let text = run(&ptx, &json, &SIZES, |_| ()).expect_err("a race");
        for needle in ["error[E0805]: data race on shared memory: nothing orders a ", "the earlier ", "of `gemm_smem`"]
        {
            assert!(text.contains(needle), "{text}");
        }
        assert!(text.contains("ld.shared.v4.b32") && text.contains("st.shared.v4.b32"), "{text}");
        assert!(text.contains("from gemm.tile:"), "{text}");
    }
}

const ROLE_BUFFER: &str = include_str!("../../../../tests/files/interp/role_buffer_sm_90a.tile");

/// The same for the barriers of a role, which its threads alone wait at.
#[test]
fn every_barrier_of_a_role_that_is_removed_is_missed() {
    let options = CompileOptions { target: tilec_ir::target::Target::Sm90a, ..CompileOptions::default() };
    let program = crate::compile(ROLE_BUFFER, &options).expect("compiles");
    let run = |ptx: &str| run_with(ptx, program.contracts(), &[("M", 136), ("K", 200)], |_| ());
    run(&program.ptx).expect("all of them there");
    let barriers: Vec<usize> = program.ptx.match_indices("bar.sync\t2, 256").map(|(at, _)| at).collect();
    assert_eq!(barriers.len(), 2, "{}", program.ptx);
    for at in barriers {
        let mut ptx = program.ptx.clone();
        ptx.replace_range(at..at + 2, "//");
        // The first slot is read before anybody has written it.
        let text = run(&ptx).expect_err("a race");
        let seen =
            ["data race on shared memory: nothing orders a ", "was never written"].iter().any(|w| text.contains(w));
        assert!(seen && text.contains("of `k_smem`"), "{text}");
    }
}

const TENSOR_STORE: &str = include_str!("../../../../tests/files/interp/tensor_store_sm_90a.tile");

/// A TMA store needs the wait for its reading, the fence before it, and the barriers around it.
#[test]
fn what_orders_a_tensor_store_is_missed() {
    let options = CompileOptions { target: tilec_ir::target::Target::Sm90a, ..CompileOptions::default() };
    let program = crate::compile(TENSOR_STORE, &options).expect("compiles");
    let run = |ptx: &str| run_with(ptx, program.contracts(), &[("M", 136), ("K", 200)], |_| ());
    run(&program.ptx).expect("all of it there");
    let kinds = [
        ("bar.sync\t2, 128", 2, ""),
        ("fence.proxy.async.shared::cta", 1, "no `fence.proxy.async` follows its ordinary write"),
        ("cp.async.bulk.wait_group.read", 2, ""),
    ];
    for (what, count, said) in kinds {
        let places: Vec<usize> = program.ptx.match_indices(what).map(|(at, _)| at).collect();
        assert_eq!(places.len(), count, "{what}: {}", program.ptx);
        for at in places {
            let line = program.ptx[..at].rfind('\n').map_or(0, |n| n + 1);
            let mut ptx = program.ptx.clone();
            ptx.replace_range(line..line + 2, "//");
            let text = run(&ptx).expect_err(what);
            let seen =
                ["nothing orders a ", "was never written", "fence", "shared memory"].iter().any(|w| text.contains(w));
            assert!(seen && text.contains(said), "{what}: {text}");
        }
    }
}

/// The report on a tile program with this PTX instead of its own.
fn report_of(program: &crate::Compiled, ptx: String, sizes: &[(&str, i64)]) -> String {
    let contract = program.kernels[0].contract.clone();
    let args = sizes.iter().map(|(name, n)| ((*name).to_owned(), Number::Int(*n))).collect();
    let bound = bind_program(&[&contract], &args).expect("fits");
    let mut clock = Clock::new(Duration::from_secs(60), false);
    let tensors = bound
        .tensors
        .iter()
        .map(|t| crate::run::data::filled(t, 0, crate::run::data::Data::Normal, &mut clock))
        .collect();
    let job = Job { launches: vec![contract], args, ptx, repeat: 0, aliases: Aliases::new(), tensors: Vec::new() };
    let origin = Origin { source: &program.source, is_ptx: false, tiles: vec![&program.kernels[0].report.tiles] };
    let found = simulate(&job, tensors, &origin, &SimOptions::default(), &mut clock).expect_err("a race");
    crate::Diagnostics::one(program.source.clone(), *found).to_string()
}

/// PTX without the lines that have one of these in them.
fn without(ptx: &str, lines: &[&str]) -> String {
    let kept: Vec<&str> = ptx.lines().filter(|l| !lines.iter().any(|w| l.contains(w))).collect();
    assert!(kept.len() < ptx.lines().count(), "{lines:?}: {ptx}");
    kept.join("\n") + "\n"
}

/// A report names the memory that an instruction touched, which its text does not tell.
#[test]
fn reports_of_the_accelerator_name_the_memory() {
    let source = GEMM.replace("promote PROMOTE", "promote PROMOTE stage_stores 1 cluster (2, 1)");
    let defines = "Out=f16,BM=64,BN=64,BK=64,WM=64,WN=64,KW=1,STAGES=3,RASTER=1";
    let options = CompileOptions {
        source_name: "gemm.tile".to_owned(),
        target: tilec_ir::target::Target::Sm90a,
        defines: defines.split(',').filter_map(|d| d.split_once('=')).map(|(n, v)| (n.into(), v.into())).collect(),
        ..CompileOptions::default()
    };
    let program = crate::compile(&source, &options).expect("compiles");
    let sizes = [("M", 128), ("N", 64), ("K", 136)];
    // A product that reads its slot before anybody has waited.
    let text = report_of(&program, without(&program.ptx, &["bra\t$L_wait_full"]), &sizes);
    let of_a = |rank: u32| format!("of slot 0 (of 3) of `a` in block {rank} of the cluster");
    let slot = [of_a(0), of_a(1), of_a(0).replace("`a`", "`b`"), of_a(1).replace("`a`", "`b`")]
        .iter()
        .any(|w| text.contains(w.as_str()));
    assert!(
        text.contains("data race on shared memory: nothing orders a") && text.contains("wgmma product") && slot,
        "{text}"
    );
    // Two stores to one window.
    let store = program.ptx.lines().find(|l| l.contains("cp.async.bulk.tensor.2d.global")).expect("a store");
    let text = report_of(&program, program.ptx.replace(store, &format!("{store}\n{store}")), &sizes);
    assert!(
        text.contains("data race on global memory: nothing orders an asynchronous copy") && text.contains("`C["),
        "{text}"
    );
    // A block that ends while the other one reaches into it.
    let ptx = without(&program.ptx, &["bra\t$L_wait_empty_"]);
    let text = report_of(&program, ptx, &sizes);
    assert!(text.contains("of the cluster ends, and nothing orders"), "{text}");
    assert!(text.contains("this end of the block") && !text.contains("global memory"), "{text}");
}

/// The same from a tile program: carets into its lines, and the tile that the address is in.
#[test]
fn reports_of_tile_programs_point_into_them() {
    let program = compiled(&[]);
    let mut ptx = program.ptx.clone();
    let at = ptx.rfind("bar.sync").expect("a barrier");
    ptx.replace_range(at..at + 2, "//");
    let text = report_of(&program, ptx, &SIZES);
    let line = |what: &str| GEMM.lines().position(|l| l.contains(what)).expect("there") + 1;
    // Which of the two comes first is up to the schedule.
    let product = format!("{} |         acc = mma(a, b, acc)", line("acc = mma("));
    assert!(text.contains("E0805") && text.contains("--> gemm.tile:") && text.contains(&product), "{text}");
    let copy = format!("{} |         copy A[bm * BM.., k..] -> a", line("-> a  "));
    assert!(text.contains(&copy) && text.contains("the earlier "), "{text}");
    assert!(text.contains(" (of 2) of `a`") && text.contains("a bug of tilec"), "{text}");
}

#[test]
fn too_much_memory_is_refused_before_it_is_taken() {
    let text = run(&small(""), LAUNCH, &[("n", 1 << 28)], |_| ()).map(|r| r.to_string()).expect_err("4 GiB");
    assert!(text.contains("E0610"), "{text}");
}

fn counted(program: &crate::Compiled) -> Counters {
    let report = run(&program.ptx, &program.launch_json(), &SIZES, |_| ()).expect("runs");
    match report.ran {
        Ran::Simulator(mut simulated) => simulated.launches.remove(0).counters,
        Ran::Cuda(_) | Ran::Interpreter => panic!("not simulated?"),
    }
}

#[test]
fn counts_show_conflicts_on_their_line() {
    let line = GEMM.lines().position(|l| l.contains("acc = mma(")).expect("there") + 1;
    let program = compiled(&[]);
    let table = counts::table(&counted(&program), &program.source, &program.ptx, 1);
    assert!(table.ends_with("no bank conflicts\n") && !table.contains("conflicts  "), "{table}");
    assert!(table.contains("copy A[bm * BM.., k..] -> a\n"), "{table}");
    let program = compiled(&["swizzle"]);
    let counters = counted(&program);
    let table = counts::table(&counters, &program.source, &program.ptx, 1);
    let marked: Vec<&str> = table.lines().filter(|l| l.starts_with('!')).collect();
    assert_eq!(marked.len(), 2, "the line and the total\n{table}");
    assert!(marked[0].trim_start_matches('!').trim_start().starts_with(&line.to_string()), "{table}");
    assert!(marked[0].ends_with("acc = mma(a, b, acc)") && marked[0].contains("(4.0x)"), "{table}");
    assert!(table.contains(&format!("  line {line}: ")), "{table}");
    let lines = counts::lines(&counters, &program.source, &program.ptx);
    let sum = |f: fn(&counts::Line) -> u64| lines.iter().map(f).sum::<u64>();
    assert_eq!(sum(|l| l.counts.executed), counters.instructions);
    assert_eq!((sum(|l| l.products), sum(|l| l.barriers)), (counters.mma, counters.barriers));
}

#[test]
fn ptx_without_source_lines_is_counted_by_its_own() {
    let body = "mul.lo.u32 %r3, %r1, 16;\nmov.u32 %r2, tile;\nadd.u32 %r3, %r2, %r3;\n\
                st.shared.v4.u32 [%r3], {%r1, %r1, %r1, %r1};\nbar.sync 0;\nshl.b32 %r4, %r1, 7;\nand.b32 %r4, %r4, 992;\n\
                add.u32 %r2, %r2, %r4;\nld.shared.u32 %r5, [%r2];";
    let text = small(body).replace("sm_80", "sm_70");
    let report = run(&text, LAUNCH, &[("n", 64)], |_| ());
    let Ok(RunReport { ran: Ran::Simulator(simulated), .. }) = report else { panic!("{report:?}") };
    let source = SourceFile::new("k.ptx", text.as_str());
    let table = counts::table(&simulated.launches[0].counters, &source, &text, 1);
    assert!(table.contains("bar.sync 0;") && table.contains("everything else"), "{table}");
    let json: serde_json::Value =
        serde_json::from_str(&counts_json::json(&simulated, "sm_70", &source, &text)).expect("JSON");
    assert_eq!(json["schema"], "tilec.counters/1");
    assert_eq!(json["imitated"], "volta");
    assert_eq!(json["total"]["barriers"], 2);
    assert_eq!(json["total"]["conflicts"], 14);
    let load = json["instructions"].as_array().expect("a list").iter().find(|i| i["instruction"] == "ld.shared.u32");
    assert!(load.is_some_and(|i| i["conflicts"] == 14 && i["file"].is_null()), "{json:#}");
}
