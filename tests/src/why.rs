//! `tilec why --not`: what it advises gives the property when it is followed, and what it names is there.

use tilec::why::{Answer, Question, why};
use tilec::{CompileOptions, Target};

fn ask(source: &str, target: Target, what: &str) -> Answer {
    let options = CompileOptions { source_name: "k.tile".to_owned(), target, ..CompileOptions::default() };
    why(source, &options, &Question::parse_not(what).expect("a property")).expect("an answer")
}

fn holds(answer: &Answer) -> bool {
    answer.about.iter().all(|line| line.contains(" meets "))
}

/// The changes that each decision advises.
fn advice(answer: &Answer) -> Vec<&str> {
    answer.parts.iter().flat_map(|p| &p.decisions).flat_map(|d| &d.change).map(String::as_str).collect()
}

/// The preconditions that are advised, in one `where`.
fn preconditions(answer: &Answer) -> String {
    let declared =
        |text: &&str| text.strip_prefix("declare `where ").and_then(|t| t.split('`').next()).map(str::to_owned);
    advice(answer).iter().filter_map(declared).collect::<Vec<_>>().join(", ")
}

const TENSORS: &str = "kernel k(A: gmem f32[M, N], B: gmem f32[M, N]) grid (i: ceildiv(M, 64), j: ceildiv(N, 64))";

#[test]
fn preconditions_that_are_advised_make_accesses_wide() {
    let matrix = [
        TENSORS,
        "var x = reg f32[64, 64]",
        "copy A[i * 64.., j * 64..] -> x",
        "copy x * 2.0 -> B[i * 64.., j * 64..]",
    ];
    let batch = [
        "kernel k(A: gmem f16[B, M, N], C: gmem f16[B, M, N]) grid (b: B, i: ceildiv(M, 64), j: ceildiv(N, 64))",
        "var x = reg f16[64, 64]",
        "copy A[b, i * 64.., j * 64..] -> x",
        "copy x * 2.0 -> C[b, i * 64.., j * 64..]",
    ];
    let vector = [
        "kernel k(A: gmem f32[B], C: gmem f32[B]) grid (b: ceildiv(B, 1024))",
        "var x = reg f32[1024]",
        "copy A[b * 1024..] -> x",
        "copy x * 2.0 -> C[b * 1024..]",
    ];
    for [header, body @ ..] in [matrix, batch, vector] {
        let program = |promise: &str| format!("{header}{promise} {{\n{}\n}}\n", body.join("\n"));
        for target in [Target::Sm70, Target::Sm80, Target::Sm90a] {
            let before = ask(&program(""), target, "vectorised");
            assert!(!holds(&before), "{before}");
            let promise = preconditions(&before);
            assert!(!promise.is_empty(), "{before}");
            let after = ask(&program(&format!(" where {promise}")), target, "vectorised");
            assert!(holds(&after), "`{promise}` is advised, and with it:\n{after}");
        }
    }
}

#[test]
fn what_the_source_decides_is_named_and_leaving_it_out_helps() {
    let widths = |vec: &str| {
        format!(
            "kernel k(A: gmem f32[M, N] multiple 4, B: gmem f32[M, N] multiple 4) grid (i: ceildiv(M, 64), j: ceildiv(N, 64)) {{\n\
             var x = reg f32[64, 64]\ncopy A[i * 64.., j * 64..] -> x{vec}\ncopy x * 2.0 -> B[i * 64.., j * 64..]\n}}\n"
        )
    };
    let layouts = |layout: &str| {
        format!(
            "kernel k(A: gmem f32[M, N] multiple 4, B: gmem f32[N, M] multiple 4) grid (i: ceildiv(M, 64), j: ceildiv(N, 64)) {{\n\
             let s = smem f32[64, 64]{layout}\ncopy A[i * 64.., j * 64..] -> s\ncopy transpose(s) -> B[j * 64.., i * 64..]\n}}\n"
        )
    };
    let products = |warp_tile: &str| {
        format!(
            "kernel k(A: gmem f16[M, K] multiple 8, B: gmem f16[K, N] multiple 8, C: gmem f32[M, N] multiple 4)\n\
             grid (i: ceildiv(M, 64), j: ceildiv(N, 64)) schedule {{ {warp_tile}stages 3 }} {{\n\
             let a = smem f16[64, 64]\nlet b = smem f16[64, 64]\nvar acc = reg f32[64, 64] = 0.0\n\
             for k in 0..K step 64 {{\ncopy A[i * 64.., k..] -> a\ncopy B[k.., j * 64..] -> b\nacc = mma(a, b, acc)\n}}\n\
             copy acc -> C[i * 64.., j * 64..]\n}}\n"
        )
    };
    let wide = (widths(" vec 1"), widths(""), Target::Sm80, "vectorised", "leave `vec` out");
    let banks = (
        layouts(" layout (64,64):(64,1)"),
        layouts(""),
        Target::Sm80,
        "no bank conflicts",
        "leave `layout` of `s` out",
    );
    let warps = (products("warp_tile (32, 32) "), products(""), Target::Sm90a, "wgmma", "leave `warp_tile` out");
    for (before, after, target, what, advised) in [wide, banks, warps] {
        let answer = ask(&before, target, what);
        assert!(!holds(&answer) && advice(&answer).iter().any(|text| text.starts_with(advised)), "{answer}");
        let answer = ask(&after, target, what);
        assert!(holds(&answer), "{answer}");
    }
}

#[test]
fn every_loop_counts_and_no_precondition_is_advised_that_does_not_help() {
    let product = "kernel k(A: gmem f16[M, K] multiple 8, B: gmem f16[K, N] multiple 8, C: gmem f32[M, N] multiple 4)\n\
                   grid (i: ceildiv(M, 64), j: ceildiv(N, 64)) {\n\
                   let a = smem f16[64, 64]\nlet b = smem f16[64, 64]\nvar acc = reg f32[64, 64] = 0.0\n\
                   for k in 0..K step 64 {\ncopy A[i * 64.., k..] -> a\ncopy B[k.., j * 64..] -> b\nacc = mma(a, b, acc)\n}\n\
                   let t = smem f16[64, 64]\n\
                   for n in 0..K step 64 {\n@(stage 0, cycle 0) copy A[i * 64.., n..] -> t\n@(stage 0, cycle 1) acc = acc + cast<f32>(t)\n}\n\
                   copy acc -> C[i * 64.., j * 64..]\n}\n";
    let answer = ask(product, Target::Sm80, "pipelined");
    assert!(!holds(&answer), "one loop has slots, the other has none: {answer}");
    assert!(answer.to_string().contains("its stages are written"), "{answer}");
    // Windows that do not begin at a multiple of 16 bytes are never wide.
    let shifted = "kernel k(A: gmem f32[M, N] multiple 4, B: gmem f32[M, N] multiple 4) grid (i: ceildiv(M, 64), j: ceildiv(N, 64)) {\n\
                   var x = reg f32[64, 64]\ncopy A[i * 64.., j * 64 - 1..] -> x\ncopy x -> B[i * 64.., j * 64..]\n}\n";
    let answer = ask(shifted, Target::Sm70, "vectorised");
    assert!(!holds(&answer) && preconditions(&answer).is_empty(), "{answer}");
    assert!(answer.to_string().contains("`j * 64 - 1` is not always a multiple of 4"), "{answer}");
}

#[test]
fn windows_in_expressions_are_judged_like_copies() {
    let program = |body: &str| {
        format!(
            "kernel k(A: gmem f32[M, N] multiple 4, B: gmem f32[64, 64] multiple 4) grid (b: 1) {{\n\
             var acc = reg f32[64, 64] = 0.0\nfor i in 0..M step 64 {{\n{body}\n}}\ncopy acc -> B[0.., 0..]\n}}\n"
        )
    };
    let loaded = ask(&program("acc = acc + A[i.., 0..]"), Target::Sm80, "vectorised");
    assert!(holds(&loaded), "it is copied into a tile first, as a copy is: {loaded}");
    // Shared memory in expressions counts.
    let columns =
        "let s = smem f32[32, 32] layout (32,32):(32,1)\ncopy A[i.., 0..] -> s\ncopy transpose(s) * 2.0 -> B[0.., 0..]";
    let answer = ask(&program(columns), Target::Sm80, "no bank conflicts");
    assert!(!holds(&answer), "{answer}");
}

#[test]
fn what_no_pass_decided_has_a_reason_and_costs_are_no_advice() {
    let product = |promise: &str| {
        format!(
            "kernel k(A: gmem f16[M, K], B: gmem f16[K, N], C: gmem f32[M, N])\n\
             where K % 8 == 0, N % 8 == 0{promise} grid (i: ceildiv(M, 128), j: ceildiv(N, 128)) schedule {{ align_rows 0 }} {{\n\
             let a = smem f16[128, 64]\nlet b = smem f16[64, 128]\nvar acc = reg f32[128, 128] = 0.0\n\
             for k in 0..K step 64 {{\ncopy A[i * 128.., k..] -> a\ncopy B[k.., j * 128..] -> b\nacc = mma(a, b, acc)\n}}\n\
             copy acc -> C[i * 128.., j * 128..]\n}}\n"
        )
    };
    for what in ["wgmma", "tma"] {
        let answer = ask(&product(""), Target::Sm90a, what);
        assert!(!holds(&answer), "{answer}");
        let [one] = advice(&answer)[..] else { panic!("one premise is missing: {answer}") };
        assert!(one.starts_with("declare `where A_ld % 8 == 0"), "{answer}");
        assert!(!answer.to_string().contains("this could be faster"), "{answer}");
    }
    assert!(holds(&ask(&product(", A_ld % 8 == 0, B_ld % 8 == 0"), Target::Sm90a, "tma")));
    let rows = include_str!("../../examples/softmax.tile");
    let answer = ask(rows, Target::Sm90a, "pipelined").to_string();
    assert!(answer.contains("loads straight to registers"), "{answer}");
    let answer = ask(rows, Target::Sm90a, "tma").to_string();
    assert!(answer.contains("the kernel has no product"), "{answer}");
}

#[test]
fn what_is_not_predicted_is_neither_held_nor_broken_and_residency_is_judged_by_the_code() {
    // Rows of 48 in tiles of 64: the model does not see through it.
    let source = "kernel k(A: gmem f16[M, K] multiple 8, B: gmem f16[K, N] multiple 8, C: gmem f32[M, N] multiple 8)\n\
                  grid (i: ceildiv(M, 48), j: ceildiv(N, 64)) {\nlet a = smem f16[64, 24]\nlet b = smem f16[24, 64]\nvar acc = reg f32[64, 64] = 0.0\n\
                  for k in 0..K step 24 {\ncopy A[i * 64.., k..] -> a\ncopy B[k.., j * 64..] -> b\nacc = mma(a, b, acc)\n}\ncopy acc -> C[i * 64.., j * 64..]\n}\n";
    for what in ["bytes <= 1.1 * minimum", "predicted >= 0.9 * roofline"] {
        let answer = ask(source, Target::Sm80, what);
        assert!(answer.about.iter().all(|line| line.contains("cannot be checked for")), "{answer}");
        let demanding = source.replacen("\ngrid", &format!("\nrequire {what} grid"), 1);
        let options = CompileOptions { target: Target::Sm80, ..CompileOptions::default() };
        let compiled = tilec::compile(&demanding, &options).expect("a warning");
        assert!(compiled.diagnostics.iter().any(|d| d.code.0 == "W0602"), "{what}");
    }
    let asked = |blocks: u64| {
        let demanding = source.replacen("\ngrid", &format!("\nrequire resident >= {blocks} grid"), 1);
        let options = CompileOptions { target: Target::Sm80, ..CompileOptions::default() };
        let mut compiled = tilec::compile(&demanding, &options).expect("registers are not judged yet");
        tilec::compile::machine_code::check_demands(&mut compiled).is_ok()
    };
    assert!(asked(2) && !asked(30), "four blocks are resident");
    let answer = ask(source, Target::Sm80, "resident 30").to_string();
    assert!(answer.contains("to change it: at most") && answer.contains("4 slots of"), "{answer}");
}

#[test]
fn what_lanes_leave_of_sectors_is_asked_for() {
    let program = |body: &str| {
        format!(
            "kernel k(X: gmem f32[M, N] multiple 4, Y: gmem f32[N, M] multiple 4) grid (i: ceildiv(M, 32), j: ceildiv(N, 32)) {{\n{body}\n}}\n"
        )
    };
    let direct = program("copy transpose(X[i * 32..+32, j * 32..+32]) -> Y[j * 32.., i * 32..]");
    let answer = ask(&direct, Target::Sm80, "coalesced");
    assert!(!holds(&answer) && answer.to_string().contains("through shared memory"), "{answer}");
    let staged = program(
        "let s = smem f32[32, 32]\ncopy X[i * 32.., j * 32..] -> s\ncopy transpose(s) -> Y[j * 32.., i * 32..]",
    );
    assert!(holds(&ask(&staged, Target::Sm80, "coalesced")));
}

/// Where a window starts and ends, and its step, say which parts of sectors are used; a start that the launch alone knows is taken for the worst.
#[test]
fn windows_that_begin_and_end_in_sectors_use_parts_of_them() {
    for (extent, window, columns, expected) in [
        ("N", "0..", 64, None),
        ("N", "1..", 64, Some("uses 80 %")),
        ("N", "4..", 64, Some("uses 89 %")),
        ("N", "8..", 64, None),
        ("N", "i * 8 + 16..", 64, None),
        ("N", "o..", 64, Some("uses 80 %")),
        ("N", "0..20", 64, Some("uses 83 %")),
        ("20", "0..", 32, Some("uses 83 %")),
        ("N", "0..", 48, None),
        ("N", "0.. step 2", 64, Some("uses 50 %")),
        ("N", "2 * iota(c, 0)", 64, Some("uses 50 %")),
    ] {
        let counted = match window.contains("iota") {
            true => format!("var c = reg i32[{columns}] = 0\nc = {window}\n"),
            false => String::new(),
        };
        let window = if counted.is_empty() { window } else { "c" };
        let source = format!(
            "kernel k(A: gmem f32[M, {extent}] multiple 4, B: gmem f32[M, N] multiple 8, o: i32) grid (i: ceildiv(M, 64)) {{\n\
             {counted}var x = reg f32[64, {columns}]\ncopy A[i * 64.., {window}] -> x\ncopy x -> B[i * 64.., 0..]\n}}\n"
        );
        let answer = ask(&source, Target::Sm80, "coalesced");
        match expected {
            None => assert!(holds(&answer), "{source}{answer}"),
            Some(text) => assert!(!holds(&answer) && answer.to_string().contains(text), "{source}{answer}"),
        }
    }
}

/// What a schedule leaves between products is a loss, with the units of an iteration; and what is predicted of the whole is no less for it.
#[test]
fn what_a_schedule_does_not_hide_is_a_loss() {
    let source = include_str!("../../examples/attention.tile");
    let options =
        CompileOptions { source_name: "k.tile".to_owned(), target: Target::Sm90a, ..CompileOptions::default() };
    let text = why(source, &options, &Question::Overview).expect("an answer").to_string();
    assert!(text.contains("`attention` does not meet `predicted >= 0.9 roofline`"), "{text}");
    assert!(text.contains("by its schedule an iteration takes") && text.contains("special functions"), "{text}");
    assert!(text.contains("latency") && !text.contains("no loss found"), "{text}");
}

/// Where roles are written with their registers, these are what a bound is about, and not tiles.
#[test]
fn registers_of_written_roles_are_named() {
    let source = include_str!("../../examples/flash_attention.tile");
    let text = ask(source, Target::Sm90a, "resident >= 2").to_string();
    assert!(text.contains("4 warps of role `producer` have 24 registers a thread"), "{text}");
    assert!(text.contains("`min_ctas 2`, and roles that share out at most 80 registers a thread"), "{text}");
    assert!(text.contains("come to 2016, and may come to 960"), "{text}");
}

/// `vectorised` is about global memory: narrow accesses between shared memory and registers are not named.
#[test]
fn accesses_of_shared_memory_are_no_widths_of_tensors() {
    let source = "kernel k(A: gmem f32[M, N], B: gmem f32[M, N]) grid (i: ceildiv(M, 64)) {\n\
                  let s = smem f32[64, 64]\nvar x = reg f32[64, 64]\nvar y = reg f32[64, 64]\n\
                  copy A[i * 64.., 0..64] -> x\ncopy x -> s\ncopy transpose(s) -> y\ncopy y -> B[i * 64.., 0..64]\n}\n";
    let answer = ask(source, Target::Sm80, "vectorised");
    let text = answer.to_string();
    assert!(!holds(&answer) && text.contains("`A[i * 64.., 0..]` -> `x`"), "{text}");
    assert!(!text.contains("`x` -> `s`") && !text.contains("transpose(s)` ->"), "{text}");
}

/// A precondition that would leave an access as narrow as it is, is no advice: what is in the way then is said.
#[test]
fn preconditions_that_do_not_widen_are_no_advice() {
    let source = "kernel total(Parts: gmem u32[32, K], Counts: gmem u32[K]) grid (v: ceildiv(K, 128)) {\n\
                  var counts = reg u32[128] = 0\nvar part = reg u32[128]\n\
                  for p in 0..32 {\ncopy Parts[p, v * 128..] -> part\ncounts = counts + part\n}\n\
                  copy counts -> Counts[v * 128..]\n}\n";
    let answer = ask(source, Target::Sm80, "vectorised");
    assert!(!holds(&answer) && preconditions(&answer).is_empty(), "{answer}");
    let text = answer.to_string();
    assert!(text.contains("with `where K % 4 == 0`, a thread holds 1 element"), "{text}");
    assert!(text.contains("to change it: a larger tile, or fewer threads: of 32"), "{text}");
    assert!(!text.contains("to change it: declare"), "{text}");
}

#[test]
fn the_change_that_declares_preconditions_mends_the_warning() {
    for header in [
        "grid (i: ceildiv(M, 64), j: ceildiv(N, 64)) schedule { warp_tile (32, 32) }",
        "where M % 2 == 0 grid (i: ceildiv(M, 64), j: ceildiv(N, 64)) schedule { warp_tile (32, 32) }",
    ] {
        let mut source = format!(
            "kernel k(A: gmem f16[M, K], B: gmem f16[K, N], C: gmem f32[M, N] multiple 4) {header} {{\n\
             let a = smem f16[64, 32]\nlet b = smem f16[32, 64]\nvar acc = reg f32[64, 64] = 0.0\n\
             for k in 0..K step 32 {{\ncopy A[i * 64.., k..] -> a\ncopy B[k.., j * 64..] -> b\nacc = mma(a, b, acc)\n}}\n\
             copy acc -> C[i * 64.., j * 64..]\n}}\n"
        );
        let options = CompileOptions { target: Target::Sm80, ..CompileOptions::default() };
        let mut mended = 0;
        loop {
            let compiled = tilec::compile(&source, &options).expect("it compiles");
            let Some(d) = compiled.diagnostics.iter().find(|d| d.code.0 == "W0409") else { break };
            let fix = d.fix.as_ref().expect("a change");
            assert!(fix.means.is_some(), "it narrows what is accepted");
            let text = fix.new_text(&source);
            source.replace_range(fix.span.start as usize..fix.span.end as usize, &text);
            mended += 1;
            assert!(mended < 4, "{source}");
        }
        assert!(mended > 0, "{source}");
    }
}

#[test]
fn resident_blocks_are_those_of_the_figures_below() {
    let rows = include_str!("../../examples/layer_norm.tile");
    for n in [1, 8, 16, 20, 32] {
        let answer = ask(rows, Target::Sm80, &format!("resident {n}"));
        let facts: Vec<&String> = answer.parts.iter().flat_map(|p| &p.facts).collect();
        let resident =
            facts.iter().find_map(|f| f.strip_prefix("resident on a multiprocessor of sm_80: ")).expect("it is there");
        let blocks: u64 = resident.split(' ').next().and_then(|n| n.parse().ok()).expect("a number");
        assert_eq!(holds(&answer), blocks >= n, "{answer}");
    }
}

/// The parts of a predicted time are one sum, whatever bounds the program.
#[test]
fn the_parts_of_a_predicted_time_add_up() {
    let programs = [
        (include_str!("../../examples/gemm.tile"), Target::Sm80),
        (include_str!("../../examples/gemm.tile"), Target::Sm90a),
        (include_str!("../../examples/gemm_w4a16.tile"), Target::Sm90a),
        (include_str!("../../examples/softmax.tile"), Target::Sm80),
        (include_str!("../../examples/topk.tile"), Target::Sm90a),
        (include_str!("../../examples/sort.tile"), Target::Sm90a),
        (include_str!("../../examples/attention.tile"), Target::Sm90a),
        (include_str!("../../examples/attention.tile"), Target::Sm80),
        (include_str!("../../examples/conv2d.tile"), Target::Sm90a),
    ];
    let tenths = |number: &str| (number.parse::<f64>().expect("a number") * 10.0).round() as u64;
    for (source, target) in programs {
        let answer = ask(source, target, "predicted >= 1 roofline");
        let predicted = answer.about[0].split_once(" roofline`: ").expect("it does not hold").1;
        let predicted = tenths(predicted.split_once(" us are predicted").expect("a prediction").0);
        let sum = answer.parts.iter().flat_map(|p| &p.facts).find(|fact| fact.contains(" us = ")).expect("a sum");
        let (total, parts) = sum.split_once(" us = ").expect("a sum");
        let parts = parts.split(';').next().expect("the parts").split(" + ");
        let added: u64 = parts.map(|part| tenths(part.split_once(' ').expect("a number and a name").0)).sum();
        assert_eq!((tenths(total), added), (predicted, predicted), "{answer}");
    }
}

/// What binds is named by the model's own terms, and figures say the bound to reach, the lines, and what to write.
#[test]
fn figures_that_are_too_far_have_a_way_out() {
    let product = |schedule: &str, promise: &str| {
        format!(
            "kernel k(A: gmem f16[M, K]{promise}, B: gmem f16[K, N]{promise}, C: gmem f32[M, N] multiple 4)\n\
             grid (i: ceildiv(M, 128), j: ceildiv(N, 128)) schedule {{ warp_tile (64, 64) {schedule} }} {{\n\
             let a = smem f16[128, 32]\nlet b = smem f16[32, 128]\nvar acc = reg f32[128, 128] = 0.0\n\
             for k in 0..K step 32 {{\ncopy A[i * 128.., k..] -> a\ncopy B[k.., j * 128..] -> b\nacc = mma(a, b, acc)\n}}\n\
             copy acc -> C[i * 128.., j * 128..]\n}}\n"
        )
    };
    let answer = ask(&product("stages 1", ""), Target::Sm80, "predicted >= 0.9 roofline").to_string();
    assert!(answer.contains(" shared memory + ") && answer.contains(" latency + "), "{answer}");
    assert!(
        answer.contains("leave `stages` out: the model predicts")
            && answer.contains("loads of the loop have 2 bytes each"),
        "{answer}"
    );
    assert!(
        !answer.contains("wavefronts"),
        "accesses that take as few wavefronts as can be are not in the way: {answer}"
    );
    let answer = ask(&product("stages 2", " multiple 8"), Target::Sm80, "stages >= 3").to_string();
    assert!(answer.contains("write `stages 3` in the kernel's `schedule`, which has 2 now"), "{answer}");
    assert!(holds(&ask(&product("stages 3", " multiple 8"), Target::Sm80, "stages >= 3")));
    let answer = ask(&product("stages 1", " multiple 8"), Target::Sm80, "pipelined");
    assert!(advice(&answer).iter().any(|text| text.starts_with("leave `stages` out: the model predicts")), "{answer}");
    let rows = ask(include_str!("../../examples/softmax.tile"), Target::Sm80, "pipelined");
    assert!(advice(&rows).iter().any(|text| text.starts_with("copy the tiles through a buffer")), "{rows}");
}

/// A tile that the producer's threads load beside one of TMA breaks `tma`, and is named.
#[test]
fn loads_of_threads_beside_tma_are_named() {
    let product = |rows: &str| {
        format!(
            "kernel k(A: gmem f16[M, K] multiple 8, B: gmem f16[K, N] multiple 8, L: gmem i32[M], C: gmem f32[M, N] multiple 4)\n\
             grid (i: ceildiv(M, 128), j: ceildiv(N, 128)) {{\nlet a = smem f16[128, 64]\nlet b = smem f16[64, 128]\n\
             var acc = reg f32[128, 128] = 0.0\nlet rows = reg i32[128] = copy L[i * 128..]\n\
             for k in 0..K step 64 {{\ncopy A[{rows}, k..] -> a\ncopy B[k.., j * 128..] -> b\nacc = mma(a, b, acc)\n}}\n\
             copy acc -> C[i * 128.., j * 128..]\n}}\n"
        )
    };
    let answer = ask(&product("rows"), Target::Sm90a, "tma");
    assert!(!holds(&answer) && answer.to_string().contains("not every load is a TMA load"), "{answer}");
    assert!(answer.to_string().contains("copy A[rows, k..] -> a (loaded by threads)"), "{answer}");
    assert!(holds(&ask(&product("i * 128.."), Target::Sm90a, "tma")));
}

/// Only stores that several blocks make to the same elements are warned of.
#[test]
fn stores_of_several_blocks_to_one_place_are_warned_of() {
    let program = |axes: &str, store: &str| {
        format!(
            "kernel k(X: gmem f32[M, N] multiple 4, S: gmem f32[M], n: gmem i32[M]) grid (i: ceildiv(M, 32), j: {axes}) {{\n\
             var x = reg f32[32, 64]\ncopy X[i * 32.., j * 64..] -> x\n{store}\n}}\n"
        )
    };
    let all = "ceildiv(N, 64)";
    for (axes, store, raced) in [
        (all, "copy sum(x, 1) -> S[i * 32.., _]", true),
        (all, "let s = X[i * 32.., 0..]\ncopy x -> s", true),
        (all, "copy sum(x, 1) -> S[i * 32.., _] add", false),
        (all, "if j == 0 {\ncopy sum(x, 1) -> S[i * 32.., _]\n}", false),
        (all, "copy sum(x, 1) -> S[i * 32 + j.., _]", false),
        (all, "if n[i] > 0 {\ncopy sum(x, 1) -> S[i * 32.., _]\n}", true),
        (all, "if n[j] > 0 {\ncopy sum(x, 1) -> S[i * 32.., _]\n}", false),
        (all, "if N <= 64 {\ncopy sum(x, 1) -> S[i * 32.., _]\n}", false),
        ("1", "copy sum(x, 1) -> S[i * 32.., _]", false),
    ] {
        let options = CompileOptions { target: Target::Sm80, ..CompileOptions::default() };
        let source = program(axes, store);
        let said = match tilec::compile(&source, &options) {
            Ok(compiled) => compiled.diagnostics,
            Err(refused) => panic!("{source}{:?}", refused.list),
        };
        assert_eq!(said.iter().any(|d| d.code.0 == "W0411"), raced, "{source}");
    }
}

/// The fewest preconditions with which a property holds are found by trying: with them it does.
#[test]
fn the_fewest_preconditions_are_tried() {
    let program = |promise: &str| {
        format!(
            "kernel g(A: gmem f16[M, K], B: gmem f16[K, N], C: gmem f32[M, N] multiple 4){promise}\n\
             grid (i: ceildiv(M, 128), j: ceildiv(N, 128)) schedule {{ align_rows 0 }} {{\n\
             let a = smem f16[128, 64]\nlet b = smem f16[64, 128]\nvar acc = reg f32[128, 128] = 0.0\n\
             for k in 0..K step 64 {{\ncopy A[i * 128.., k..] -> a\ncopy B[k.., j * 128..] -> b\nacc = mma(a, b, acc)\n}}\n\
             copy acc -> C[i * 128.., j * 128..]\n}}\n"
        )
    };
    let before = ask(&program(""), Target::Sm90a, "wgmma").to_string();
    let needs = "A_ld % 8 == 0, B_ld % 8 == 0";
    assert!(before.contains(&format!("declare `where {needs}`: `wgmma` holds with it (tried: ")), "{before}");
    let after = ask(&program(&format!(" where {needs}")), Target::Sm90a, "wgmma");
    assert!(holds(&after), "{after}");
    // What no precondition changes is not promised to.
    let small = ask(&program(""), Target::Sm80, "wgmma").to_string();
    assert!(!small.contains("holds with it (tried"), "{small}");
}

/// Iterations that are peeled off repeat remarks. What remained of a repeated one would seem to belong to the one in front
/// of it: the load of `a` is no read that a `write after read` waits for.
#[test]
fn remarks_are_repeated_with_their_places_or_not_at_all() {
    let source = "kernel k(A: gmem f16[M, K] multiple 8, B: gmem f16[K, N] multiple 8, C: gmem f32[M, N] multiple 4)
    grid (i: ceildiv(M, 64), j: ceildiv(N, 64))
    schedule { stages 1 }
{
    let a = smem f16[64, 64] layout (64,64):(64,1)
    let b = smem f16[64, 64]
    var acc = reg f32[64, 64] = 0.0
    for k in 0..K step 64 {
        copy A[i * 64.., k..] -> a
        copy B[k.., j * 64..] -> b
        acc = mma(a, b, acc)
    }
    copy acc -> C[i * 64.., j * 64..]
}
";
    let options = CompileOptions { target: Target::Sm80, ..CompileOptions::default() };
    let answer = why(source, &options, &Question::parse("barrier").expect("a question")).expect("an answer");
    let says: Vec<(&str, &str)> = answer
        .parts
        .iter()
        .flat_map(|p| &p.decisions)
        .flat_map(|d| &d.says)
        .map(|s| (s.message.as_str(), s.source.as_str()))
        .collect();
    let at = says.iter().position(|(m, _)| m.contains("`a` write after read")).expect("a barrier");
    let earlier: Vec<_> = says[at + 1..].iter().take_while(|(m, _)| *m == "the earlier access").collect();
    assert_eq!(earlier, [&("the earlier access", "acc = mma(a, b, acc)")], "{answer}");
}

/// The microseconds in front of what a loss is; `None`: it is not in the predicted time.
fn microseconds(title: &str) -> Option<Option<f64>> {
    match title.split_once(" us of ") {
        Some((us, _)) => us.parse().ok().map(Some),
        None => title.starts_with("not in the predicted time: ").then_some(None),
    }
}

#[test]
fn losses_are_in_the_order_of_what_they_cost() {
    let programs = [("stencil", "BM", "1", Target::Sm90a), ("gemm_splitk", "ALIGN", "1", Target::Sm80)];
    for (name, parameter, value, target) in programs {
        let source = source_of(name);
        let defines = vec![(parameter.to_owned(), value.to_owned())];
        let options = CompileOptions { source_name: "k.tile".to_owned(), target, defines, ..CompileOptions::default() };
        let answer = why(&source, &options, &Question::Overview).expect("an answer");
        let costs: Vec<Option<f64>> = answer.parts.iter().filter_map(|part| microseconds(&part.title)).collect();
        assert!(costs.len() > 1, "{answer}");
        let number = |cost: &Option<f64>| cost.unwrap_or(-1.0);
        assert!(costs.windows(2).all(|pair| number(&pair[0]) >= number(&pair[1])), "{answer}");
    }
}

fn source_of(example: &str) -> String {
    std::fs::read_to_string(crate::root().join(format!("examples/{example}.tile"))).expect("an example")
}
