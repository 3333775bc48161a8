//! The whole run with the interpreter as device: launches, comparisons, rejections.

use super::*;
use crate::compile::options::CompileOptions;
use crate::compile::report_json::{KernelReport, Mma};
use crate::compile::{Optimized, optimize};
use crate::contract::number::Number;
use crate::contract::{Access, Contract, Dimension, I64, Param, ParamKind, TensorParam, U32};
use crate::run::bind::TensorPlan;
use crate::run::data;
use tilec_ir::target::Target;
use tilec_ir::types::Elem;

const GEMM: &str = "kernel gemm(A: gmem f16[M, K], B: gmem f16[K, N], C: gmem f32[M, N], alpha: f32 = 1.0)
    where K % 4 == 0
    grid (bm: ceildiv(M, 16), bn: ceildiv(N, 16))
{
    var acc = reg f32[16, 16] = 0.0
    let a = smem f16[16, 16]
    let b = smem f16[16, 16]
    for k in 0..K step 16 {
        copy A[bm * 16.., k..] -> a
        copy B[k.., bn * 16..] -> b
        acc = mma(a, b, acc)
    }
    copy alpha * acc -> C[bm * 16.., bn * 16..]
}";

/// The contract that lowering would write.
fn contract() -> Contract {
    let tensor = |name: &str, elem, access, shape: [&str; 2]| Param {
        name: name.to_owned(),
        kind: ParamKind::Tensor(TensorParam {
            reads_gaps: false,
            constant: false,
            scratch: None,
            elem,
            align: 16,
            access,
            shape: shape.map(Dimension::from).to_vec(),
            strides: vec![Dimension::One(format!("{name}_ld")), "1".into()],
            may_alias: Vec::new(),
        }),
    };
    let size = |name: &str| Param { name: name.to_owned(), kind: ParamKind::Size { ty: U32::U32 } };
    let stride = |name: &str, packed: &str| Param {
        name: name.to_owned(),
        kind: ParamKind::Stride { ty: I64::I64, packed: Some(packed.to_owned()) },
    };
    Contract {
        schema: crate::contract::SCHEMA.to_owned(),
        entry: "gemm".to_owned(),
        target: "sm_70".to_owned(),
        ptx_version: "6.4".to_owned(),
        id: None,
        block: [32, 1, 1],
        cluster: [1, 1, 1],
        programmatic: false,
        dynamic_smem_bytes: 0,
        grid: ["ceildiv(M, 16)".to_owned(), "ceildiv(N, 16)".to_owned(), "1".to_owned()],
        params: vec![
            tensor("A", Elem::F16, Access::Read, ["M", "K"]),
            tensor("B", Elem::F16, Access::Read, ["K", "N"]),
            tensor("C", Elem::F32, Access::Write, ["M", "N"]),
            size("M"),
            size("N"),
            size("K"),
            stride("A_ld", "K"),
            stride("B_ld", "N"),
            stride("C_ld", "N"),
            Param {
                name: "alpha".to_owned(),
                kind: ParamKind::Scalar { elem: Elem::F32, default: Some(Number::Float(1.0)) },
            },
        ],
        requires: vec!["K % 4 == 0".to_owned()],
    }
}

fn program() -> Compiled {
    let Optimized { source, target, mut kernels, diagnostics, .. } =
        optimize(GEMM, &CompileOptions::default()).expect("compiles");
    let mut report = KernelReport::new("gemm", &tilec_ptx::report::Report::default(), &source, &[]);
    report.mma.push(Mma::new("m8n8k4"));
    let kernel = CompiledKernel {
        contract: contract(),
        report,
        lowered: tilec_ptx::report::Report::default(),
        tile: kernels.remove(0),
    };
    let (kernels, dispatch, programs) = (vec![kernel], Vec::new(), Vec::new());
    Compiled {
        ptx: String::new(),
        ptx_version: (6, 4),
        kernels,
        dispatch,
        programs,
        ptx_lines: Vec::new(),
        places: Vec::new(),
        sequences: Vec::new(),
        texts: Vec::new(),
        diagnostics,
        source,
        target,
    }
}

type Memory = Vec<Vec<u8>>;
type Harm<'a> = &'a dyn Fn(&[TensorPlan], &mut [Vec<u8>]);
type Launch = Result<(Outcome, Memory), ChildError>;

/// A device that computes with the interpreter and then does `harm`.
fn device(program: &Compiled, harm: impl FnOnce(&[TensorPlan], &mut [Vec<u8>])) -> impl FnOnce(Job, Memory) -> Launch {
    move |job, mut tensors| {
        let contracts: Vec<&Contract> = job.launches.iter().collect();
        let bound = bind_program(&contracts, &job.args).expect("the parent bound it");
        let meant = program.kernels.iter().filter_map(|k| k.tile.source_kernel.as_ref()).collect();
        let how = interp::Options { accuracy: Some(accuracy("m8n8k4", false, 70, None)), ..interp::Options::default() };
        let reference = Reference { contracts: &contracts, meant, bound: &bound };
        let result = reference.interpret(&tensors, &how).expect("defined");
        for (plan, bytes) in bound.tensors.iter().zip(&mut tensors).filter(|(p, _)| p.access.writes()) {
            plan.for_each(|_, i| data::set_exact(plan.elem, bytes, i, result.tensors[&plan.name].data.get(i).unwrap()));
        }
        harm(&bound.tensors, &mut tensors);
        let launched = Launched { device: "test".to_owned(), cc: 70, times_ms: vec![3.0, 1.0, 2.0] };
        Ok((Outcome { result: Ok(launched), tensors: Vec::new() }, tensors))
    }
}

fn options(args: &[(&str, f64)]) -> RunOptions {
    let args = args.iter().map(|&(name, x)| (name.to_owned(), Number::Float(x))).collect();
    RunOptions { args, check: true, ..RunOptions::default() }
}

const SIZES: [(&str, f64); 4] = [("M", 19.0), ("N", 21.0), ("K", 36.0), ("C_ld", 30.0)];

#[test]
fn whole_numbers_are_compared_exactly() {
    let program = program();
    let report = run_with(&program, &options(&SIZES), device(&program, |_, _| ())).expect("runs");
    assert!(report.ok(), "{report}");
    assert_eq!(report.flops, 2.0 * 19.0 * 21.0 * 36.0);
    assert_eq!(report.median_ms(), Some(2.0));
    let text = report.to_string();
    assert!(text.contains("C: 399 elements, all exact: ok"), "{text}");
    assert!(text.contains("A_ld = 36") && text.contains("TFLOP/s"), "{text}");
}

#[test]
fn a_wrong_element_a_stray_write_and_a_changed_input_fail() {
    let program = program();
    let run = |harm: Harm<'_>| run_with(&program, &options(&SIZES), device(&program, harm)).expect("runs");
    let wrong = run(&|plans, t| data::set(plans[2].elem, &mut t[2], 31, 0.5));
    assert!(!wrong.ok() && wrong.to_string().contains("C[1, 1] = 0.5, expected"), "{wrong}");
    let stray = run(&|plans, t| data::set(plans[2].elem, &mut t[2], 25, 0.0));
    assert!(!stray.ok() && stray.to_string().contains("outside the elements of `C`"), "{stray}");
    let past = run(&|_, t| *t[2].last_mut().expect("not empty") = 0);
    assert!(!past.ok() && past.to_string().contains("1 bytes outside the elements of `C`"), "{past}");
    let input = run(&|plans, t| data::set(plans[0].elem, &mut t[0], 0, 100.0));
    assert!(!input.ok() && input.to_string().contains("A[0, 0] = 100"), "{input}");
}

#[test]
fn real_numbers_are_compared_within_the_bound() {
    let program = program();
    let run = |error: f64| {
        let normal = RunOptions { normal: Some(true), ..options(&SIZES) };
        let harm = move |plans: &[TensorPlan], t: &mut [Vec<u8>]| {
            let x = data::get(plans[2].elem, &t[2], 0);
            data::set(plans[2].elem, &mut t[2], 0, x + error);
        };
        run_with(&program, &normal, device(&program, harm)).expect("runs")
    };
    let near = run(1e-5);
    let (_, verdict) = &near.verdicts[0];
    assert!(near.ok() && verdict.largest_bound > 1e-5 && !verdict.weak, "{near}");
    // 36 products with a magnitude near 0.8 each: the bound is far below one of them.
    assert!(verdict.largest_bound < 2e-3, "{near}");
    assert!(!run(1e-2).ok());
}

#[test]
fn a_fraction_times_an_exact_sum_is_exact() {
    let program = program();
    let args = [&SIZES[..], &[("alpha", 0.1)]].concat();
    let report = run_with(&program, &options(&args), device(&program, |_, _| ())).expect("runs");
    assert!(report.ok() && report.to_string().contains("all exact"), "{report}");
}

/// There is no device.
fn nobody(_: Job, _: Memory) -> Launch {
    let refused = Refused { no_device: true, reason: "no library".to_owned() };
    Ok((Outcome { result: Err(refused), tensors: Vec::new() }, Vec::new()))
}

/// Compiled for real, so that there is PTX.
fn compiled() -> Compiled {
    crate::compile(GEMM, &CompileOptions::default()).expect("compiles")
}

#[test]
fn without_a_device_the_simulator_runs_it_and_says_so() {
    let report = run_with(&compiled(), &options(&SIZES), nobody).expect("runs");
    assert!(report.ok(), "{report}");
    let text = report.to_string();
    assert!(text.starts_with("gemm for sm_70 on the simulator (arithmetic of Volta), as no GPU was found\n"), "{text}");
    assert!(text.contains("C: 399 elements, all exact: ok") && text.contains("executed 4 blocks"), "{text}");
    assert!(!text.contains("time"), "{text}");
}

#[test]
fn a_device_that_fails_is_not_replaced() {
    let refused = Refused { no_device: false, reason: "it is on fire".to_owned() };
    let broken = |_, _| Ok((Outcome { result: Err(refused), tensors: Vec::new() }, Vec::new()));
    let error = run_with(&compiled(), &options(&SIZES), broken).expect_err("failed").to_string();
    assert!(error.contains("E0612") && error.contains("it is on fire"), "{error}");
}

#[test]
fn the_simulator_is_taken_when_asked_for() {
    let here = RunOptions { on: On::Simulator, normal: Some(true), ..options(&SIZES) };
    let report = run_with(&compiled(), &here, |_, _| panic!("launched")).expect("runs");
    assert!(report.ok() && report.to_string().contains("within") || report.to_string().contains("bound"), "{report}");
    assert!(!report.to_string().contains("no GPU"), "{report}");
}

#[test]
fn inputs_from_files_are_computed_with() {
    let sizes = [("M", 2.0), ("N", 2.0), ("K", 4.0), ("C_ld", 3.0)];
    let half = |x: f64| data::encode(Elem::F16, x).to_le_bytes()[..2].to_vec();
    let mut given = RunOptions { on: On::Simulator, ..options(&sizes) };
    given.inputs.insert("A".to_owned(), Elements::Bytes([1., 2., 3., 4., 5., 6., 7., 8.].map(half).concat()));
    given.inputs.insert("B".to_owned(), Elements::Bytes([1., 0., 0., 1., 1., 0., 0., 1.].map(half).concat()));
    let report = run_with(&compiled(), &given, |_, _| panic!("launched")).expect("runs");
    assert!(report.ok(), "{report}");
    let (plan, bytes) = report.tensors.iter().find(|(t, _)| t.name == "C").expect("there");
    let c: Vec<u8> = [4f32, 6., 12., 14.].iter().flat_map(|x| x.to_le_bytes()).collect();
    assert_eq!(data::packed(plan, bytes), c);
    for (name, length) in [("A", 3), ("D", 16), ("C", 3)] {
        let mut bad = given.clone();
        bad.inputs.insert(name.to_owned(), Elements::Bytes(vec![0; length]));
        let error = run_with(&compiled(), &bad, |_, _| panic!("launched")).expect_err(name).to_string();
        assert!(error.contains("E0616") && error.contains(&format!("`{name}`")), "{error}");
    }
}

#[test]
fn nothing_is_launched_when_something_is_wrong() {
    let program = program();
    for (args, code) in [
        (&[("M", 8.0)][..], "E0608"),
        (&[("M", 8.0), ("N", 8.0), ("K", 6.0)], "E0609"),
        (&[("M", 8.0), ("N", 8.0), ("K", 0.0)], "E0607"),
        (&[("M", 2e9), ("N", 8.0), ("K", 8000.0)], "E0610"),
    ] {
        let result = run_with(&program, &options(args), |_, _| panic!("launched"));
        let error = result.expect_err("refused").to_string();
        assert!(error.contains(code), "{error}");
    }
    let other = RunOptions { kernel: Some("other".to_owned()), ..options(&SIZES) };
    assert!(run_with(&program, &other, |_, _| panic!("launched")).is_err());
    let gpu = RunOptions { on: On::Cuda, ..options(&SIZES) };
    let error = run_with(&program, &gpu, nobody).expect_err("no device").to_string();
    assert!(error.contains("E0611") && error.contains("no library"), "{error}");
    assert_eq!(Target::Sm70, program.target);
}

/// The number of tiles in front of an element, which depends on their size, though the author promises otherwise.
#[test]
fn a_result_that_depends_on_what_was_chosen_is_found_out() {
    let text = "kernel counted<BN = auto promised>(X: gmem f32[8, N], Y: gmem f32[8, N]) {
        var x = reg f32[8, BN]
        var n = reg f32[8, BN] = 0.0
        for k in 0..N step BN {
            copy X[0.., k..] -> x
            copy x + n -> Y[0.., k..]
            n = n + 1.0
        }
    }";
    let here = RunOptions { on: On::Simulator, ..options(&[("N", 600.0)]) };
    let never = |_, _| panic!("launched");
    let counted = crate::compile(text, &CompileOptions::default()).expect("compiles");
    let report = run_with(&counted, &here, never).expect("runs");
    assert!(!report.ok(), "{report}");
    let same = text.replace("n = n + 1.0", "n = n + 0.0");
    let report = run_with(&crate::compile(&same, &CompileOptions::default()).expect("compiles"), &here, never);
    assert!(report.expect("runs").ok());
    // A parameter given by the user keeps its value in the reference.
    let defines = vec![("BN".to_owned(), "64".to_owned())];
    let given = crate::compile(text, &CompileOptions { defines, ..CompileOptions::default() }).expect("compiles");
    assert!(run_with(&given, &here, never).expect("runs").ok());
}

/// A kernel that accepts sizes of 0 has several variants, and the launch file selects one. The variant for other sizes
/// is the same as without it.
#[test]
fn sizes_of_zero_have_variants_of_their_own() {
    let text = |promise: &str| {
        format!(
            "kernel sums(X: gmem f32[M, K], Z: gmem f32[M, L], Y: gmem f32[M]) {promise} grid (i: ceildiv(M, 16)) {{
                var x = reg f32[16, 64]
                var s = reg f32[16, 1] = 1.0
                for k in 0..K step 64 {{
                    copy X[i * 16.., k..] -> x
                    s = s + sum(x, 1)
                }}
                for l in 0..L step 64 {{
                    copy Z[i * 16.., l..] -> x
                    s = s + sum(x, 1)
                }}
                copy s -> Y[i * 16.., _]
            }}"
        )
    };
    let compiled = |promise| crate::compile(&text(promise), &CompileOptions::default()).expect("compiles");
    let (both, plain) = (compiled("where K >= 0, 0 <= L"), compiled(""));
    let file = both.launch_file();
    assert_eq!(file.kernels.len(), 4);
    for again in ["where K >= 0 && L >= 0", "where K >= 0, L >= 0, 0 <= K", "where (M >= 1 && K >= 0) && L >= 0"] {
        assert_eq!(compiled(again).launch_file().kernels.len(), 4, "{again}");
    }
    let last = file.kernels.last().expect("there");
    assert_eq!(last.requires, plain.launch_file().kernels[0].requires);
    let never = |_, _| panic!("launched");
    for (k, l, zeros) in [
        (0.0, 0.0, vec!["K == 0", "L == 0"]),
        (0.0, 5.0, vec!["K == 0"]),
        (70.0, 0.0, vec!["L == 0"]),
        (70.0, 5.0, vec![]),
    ] {
        let here = RunOptions { on: On::Simulator, check: true, ..options(&[("M", 17.0), ("K", k), ("L", l)]) };
        let launched = file.launches("sums", &here.args).expect("fits").expect("is there");
        let own: Vec<&String> = launched[0].requires.iter().filter(|c| c.ends_with(" == 0")).collect();
        assert_eq!(own, zeros, "K={k} L={l}");
        assert!(run_with(&both, &here, never).expect("runs").ok(), "K={k} L={l}");
    }
    let here = RunOptions { on: On::Simulator, ..options(&[("M", 17.0), ("K", 0.0), ("L", 5.0)]) };
    assert!(run_with(&plain, &here, never).expect_err("K is at least 1").to_string().contains("E0607"));
}

/// The reference is the source: a wrong kernel after the first passes is found, even if the PTX agrees with it.
#[test]
fn the_reference_is_the_source() {
    let options = CompileOptions { source_name: "x.tile".to_owned(), ..CompileOptions::default() };
    let wrong = crate::compile(&GEMM.replace("alpha * acc", "alpha * acc + 1.0"), &options).expect("compiles");
    let right = crate::compile(GEMM, &options).expect("compiles");
    let written = right.kernels[0].tile.source_kernel.clone();
    let mut altered = wrong.clone();
    altered.kernels[0].tile.source_kernel = written;
    let on_simulator = RunOptions { on: On::Simulator, ..self::options(&SIZES) };
    for (program, ok) in [(&right, true), (&wrong, true), (&altered, false)] {
        let report = run_with(program, &on_simulator, nobody).expect("runs");
        assert_eq!(report.ok(), ok, "{report}");
    }
}
