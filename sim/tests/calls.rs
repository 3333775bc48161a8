//! Functions: arguments and results in memory and in registers, nesting, divergence, barriers; and what is refused.
#![allow(clippy::unwrap_used, reason = "tests")]

use tilec_sim::{Device, Launch, Options, Program, Report, ReportKind};

/// `twice` by `.param`, `sum` of a structure, `third` by registers, `pick` that returns in two places.
const FUNCS: &str = "
.func (.param .b32 func_retval0) twice(.param .b32 twice_param_0)
;
.func (.param .b32 func_retval0) twice(
    .param .b32 twice_param_0
)
{
    .reg .b32 %r<4>;
    ld.param.u32 %r1, [twice_param_0];
    shl.b32 %r2, %r1, 1;
    st.param.b32 [func_retval0+0], %r2;
    ret;
}
.func (.param .align 8 .b8 func_retval0[16]) sum(.param .align 8 .b8 s[16])
.noreturn
;
.func (.param .align 8 .b8 func_retval0[16]) sum(.param .align 8 .b8 s[16])
{
    .local .align 8 .b8 depot[8];
    .reg .b64 %SP, %rd<4>;
    mov.u64 %SP, depot;
    ld.param.u64 %rd0, [s];
    ld.param.u64 %rd1, [s+8];
    st.local.u64 [%SP], %rd1;
    ld.local.u64 %rd2, [depot];
    add.s64 %rd0, %rd0, %rd2;
    st.param.v2.b64 [func_retval0], {%rd0, %rd1};
    ret;
}
.visible .func (.reg .b32 %out) third(.reg .b32 %a, .reg .b32 %b, .reg .b32 %c)
{
    .shared .b32 kept;
    .reg .pred %p;
    setp.eq.u32 %p, %a, 0;
    @%p st.shared.u32 [kept], %c;
    bar.sync 0;
    ld.shared.u32 %out, [kept];
    bar.sync 0;
    add.u32 %out, %out, %b;
}
.func (.param .b32 r) pick(.param .b32 x)
{
    .reg .pred %p;
    .reg .b32 %r<4>;
    ld.param.u32 %r0, [x];
    and.b32 %r1, %r0, 1;
    setp.eq.u32 %p, %r1, 0;
    @%p bra EVEN;
    st.param.b32 [r], 1000;
    ret;
EVEN:
    { .param .b32 param0; .param .b32 retval0;
      st.param.b32 [param0], %r0;
      call.uni (retval0), twice, (param0);
      ld.param.b32 %r2, [retval0]; }
    st.param.b32 [r], %r2;
    ret;
}
.func down(.param .b32 a) .noreturn ;
";

fn module(body: &str) -> String {
    format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n{FUNCS}\n.visible .entry k(.param .u64 out)\n{{\n\
         .reg .pred %p<4>;\n.reg .b32 %r<16>, %t;\n.reg .b64 %rd<8>, %out, %mine;\nld.param.u64 %out, [out];\n\
         mov.u32 %t, %tid.x;\nmul.wide.u32 %mine, %t, 4;\nadd.s64 %mine, %out, %mine;\n{body}\n\
         st.global.u32 [%mine], %r0;\nret;\n}}\n"
    )
}

fn run(body: &str) -> Result<Vec<u32>, Box<Report>> {
    let text = module(body);
    let program = Program::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut device = Device::new();
    let out = device.alloc(256).unwrap();
    let params = vec![out.to_le_bytes().to_vec()];
    let launch = Launch { entry: "k".into(), grid: [1; 3], block: [64, 1, 1], dynamic_smem: 0, params };
    device.run(&program, &launch, &Options::default())?;
    Ok(device.download(out, 256).unwrap().chunks(4).map(|c| u32::from_le_bytes(c.try_into().unwrap())).collect())
}

/// Calls a function of one word.
fn call(name: &str, argument: &str, result: &str) -> String {
    format!(
        "{{ .param .b32 param0; .param .b32 retval0; st.param.b32 [param0+0], {argument};\n\
         call.uni (retval0), {name}, (param0);\nld.param.b32 {result}, [retval0+0]; }}\n"
    )
}

#[test]
fn arguments_and_results_pass() {
    let twice = call("twice", "%t", "%r1") + &call("twice", "%r1", "%r0");
    assert!(run(&twice).unwrap().iter().enumerate().all(|(i, v)| *v == 4 * i as u32));
    let sum = "{ .param .align 8 .b8 param0[16]; .param .align 8 .b8 retval0[16]; cvt.u64.u32 %rd0, %t;\n\
               st.param.b64 [param0], %rd0; st.param.b64 [param0+8], 5; call.uni (retval0), sum, (param0);\n\
               ld.param.v2.b64 {%rd1, %rd2}, [retval0]; } add.s64 %rd1, %rd1, %rd2; cvt.u32.u64 %r0, %rd1;";
    assert!(run(sum).unwrap().iter().enumerate().all(|(i, v)| *v == i as u32 + 10));
    // Registers, constants, and one place of the function's shared variable for both calls.
    let third = "call (%r1), third, (%t, 5, 100); call (%r2), third, (%t, %r1, 7); mov.u32 %r0, %r2;";
    assert!(run(third).unwrap().iter().all(|v| *v == 112));
    // A register where the function has memory.
    assert!(run("call (%r0), twice, (%t);").unwrap().iter().enumerate().all(|(i, v)| *v == 2 * i as u32));
}

#[test]
fn lanes_return_by_themselves() {
    let want = |i: usize| if i % 2 == 1 { 1000 } else { 2 * i as u32 };
    let out = run(&call("pick", "%t", "%r0")).unwrap();
    assert!(out.iter().enumerate().all(|(i, v)| *v == want(i)));
    let guarded = "mov.u32 %r0, 7; setp.lt.u32 %p0, %t, 10; @%p0 call (%r0), pick, (%t);";
    let out = run(guarded).unwrap();
    assert!(out.iter().enumerate().all(|(i, v)| *v == if i < 10 { want(i) } else { 7 }));
    let exits = "setp.lt.u32 %p0, %t, 0; @%p0 call down, (%t); mov.u32 %r0, 1;";
    assert!(run(exits).unwrap().iter().all(|v| *v == 1));
    assert_eq!(run(&exits.replace("%t, 0;", "%t, 1;")).unwrap_err().kind, ReportKind::Trap);
}

#[test]
fn a_missing_result_is_undefined() {
    let text = module(&call("twice", "%t", "%r0")).replace("st.param.b32 [func_retval0+0], %r2;", "");
    let program = Program::parse(&text).unwrap();
    let mut device = Device::new();
    let params = vec![device.alloc(256).unwrap().to_le_bytes().to_vec()];
    let launch = Launch { entry: "k".into(), grid: [1; 3], block: [32, 1, 1], dynamic_smem: 0, params };
    let report = device.run(&program, &launch, &Options::default()).map(|_| ()).expect_err("nothing was returned");
    assert_eq!(report.kind, ReportKind::Uninitialised, "{report}");
}

#[test]
fn a_function_has_other_names() {
    let named = |line: &str| {
        let declared = ".visible .func (.param .b32 r) other(.param .b32 x);\n";
        module("call (%r0), other, (%t);").replace(".func down", &format!("{declared}{line}\n.func down"))
    };
    let program = Program::parse(&named(".alias other, twice;")).unwrap();
    let mut device = Device::new();
    let out = device.alloc(256).unwrap();
    let params = vec![out.to_le_bytes().to_vec()];
    let launch = Launch { entry: "k".into(), grid: [1; 3], block: [32, 1, 1], dynamic_smem: 0, params };
    device.run(&program, &launch, &Options::default()).unwrap();
    let words = device.download(out, 128).unwrap();
    assert!(words.chunks(4).enumerate().all(|(i, c)| c == (2 * i as u32).to_le_bytes()));
    for (line, says) in [
        (".alias nobody, twice;", ":8: `nobody` is not declared as a function"),
        (".alias other, nobody;", ":15: unknown function `nobody`"),
        (".alias twice, pick;", ":8: `twice` has a body of its own"),
        (".alias other, other;", ":15: `other` has no body"),
        (".alias other, sum;", ":8: `other` and `sum` differ in their parameters or results"),
        (".alias other;", ":13: expected `,`"),
    ] {
        let error = Program::parse(&named(line)).map(|_| ()).expect_err(line).to_string();
        assert!(error.contains(says), "{line}: {error}");
    }
}

#[test]
fn parameters_of_functions_have_a_space_of_their_own() {
    let text = module(&call("twice", "%t", "%r0"));
    let marked = text
        .replace(".version 8.0", ".version 8.3")
        .replace("ld.param.u32 %r1, [twice_param_0]", "ld.param::func.u32 %r1, [twice_param_0]")
        .replace("st.param.b32 [func_retval0+0], %r2", "st.param::func.b32 [func_retval0+0], %r2")
        .replace("ld.param.b32 %r0, [retval0+0]", "ld.param::func.b32 %r0, [retval0+0]")
        .replace("ld.param.u64 %out", "ld.param::entry.u64 %out");
    assert!(marked.matches("::func").count() == 3 && marked.contains("::entry") && marked.contains(".version 8.3"));
    let program = Program::parse(&marked).unwrap();
    let mut device = Device::new();
    let out = device.alloc(256).unwrap();
    let params = vec![out.to_le_bytes().to_vec()];
    let launch = Launch { entry: "k".into(), grid: [1; 3], block: [32, 1, 1], dynamic_smem: 0, params };
    device.run(&program, &launch, &Options::default()).unwrap();
    let words = device.download(out, 128).unwrap();
    assert!(words.chunks(4).enumerate().all(|(i, c)| c == (2 * i as u32).to_le_bytes()));
    let wrong = marked.replace("ld.param::entry.u64 %out", "ld.param::func.u64 %out");
    let error = Program::parse(&wrong).unwrap_err().to_string();
    assert!(error.contains("one of the kernel is `.param::entry`"), "{error}");
}

#[test]
fn what_cannot_be_called_is_refused() {
    for (body, needle) in [
        ("call nobody, (%t);", "unknown function"),
        ("call (%r0), twice, (%t, %t);", "takes 1 arguments"),
        ("call twice, (%t);", "gives 1 results"),
        ("call (%r0), twice, (%rd0);", "works on"),
        ("{ .param .b64 p; call (%r0), twice, (p); }", "has 8 bytes"),
        ("call (%r0), %rd0, (%t), proto;", "pointer"),
        (
            "P: .callprototype (.param .b32 _) _ (.param .b32 _); call (%r0), %rd0, (%t), P;",
            "`%rd0`: calls through a pointer",
        ),
        ("P: .calltargets twice, pick; call (%r0), %rd0, (%t), P;", "`%rd0`: calls through a pointer"),
        ("P: .callprototype _ .noreturn; mov.u64 %rd0, twice;", "calls through a pointer are not executed"),
        ("call;", "needs the name"),
        ("call.full twice;", "no modifier"),
        ("call (%r0), sum, (%t);", "variable in `.param`"),
    ] {
        let error = Program::parse(&module(body)).map(|_| ()).expect_err(body);
        assert!(error.message.contains(needle), "{body}: {error}");
    }
    let cycle = module("call f; mov.u32 %r0, 0;")
        .replace(".func down", ".func g;\n.func f { call g; }\n.func g { call f; }\n.func down");
    assert!(Program::parse(&cycle).unwrap_err().message.contains("recursion"));
    let external = module("call (%r0), e, (%t);")
        .replace(".func down", ".extern .func (.param .b32 r) e(.param .b32 x);\n.func down");
    assert!(Program::parse(&external).unwrap_err().message.contains("linking"));
    // Each function calls the next twice: the kernel would be too long.
    let mut many = String::from(".func f0 { membar.cta; }\n");
    for i in 1..40 {
        many += &format!(".func f{i} {{ call f{0}; call f{0}; }}\n", i - 1);
    }
    let error = Program::parse(&module("call f39;").replace(".func down", &(many + ".func down"))).unwrap_err();
    assert!(error.message.contains("too many instructions"), "{error}");
}
