//! Single instructions against values computed by hand from the PTX manual: edge values, carries, special numbers.
#![allow(clippy::unwrap_used, reason = "tests")]

use tilec_sim::{Device, Launch, Options, Program, Report, ReportKind};

/// Runs a body of one warp on `sm_90` that leaves lane 0's result in `%r0`; with declarations of the module in front.
pub(crate) fn run(module: &str, body: &str) -> Result<u32, Box<Report>> {
    let text = format!(
        ".version 8.6\n.target sm_90\n.address_size 64\n{module}\n.visible .entry k(.param .u64 out)\n{{\n\
         .reg .pred %p<8>;\n.reg .b16 %h<8>;\n.reg .b32 %r<32>;\n.reg .f32 %f<8>;\n.reg .b64 %l<16>;\n.reg .f64 %d<8>;\n\
         .reg .b32 %t;\n.reg .b64 %out;\n.shared .align 16 .b8 sm[1024];\n\
         ld.param.u64 %out, [out];\nmov.u32 %t, %tid.x;\n{body}\n\
         setp.eq.u32 %p7, %t, 0;\n@%p7 st.global.u32 [%out], %r0;\nret;\n}}\n"
    );
    let program = Program::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut device = Device::new();
    let out = device.alloc(256).unwrap();
    device.upload(out, &[0; 256]).unwrap();
    let params = vec![out.to_le_bytes().to_vec()];
    let launch = Launch { entry: "k".into(), grid: [1; 3], block: [32, 1, 1], dynamic_smem: 0, params };
    device.run(&program, &launch, &Options::default())?;
    Ok(u32::from_le_bytes(device.download(out, 4).unwrap().try_into().unwrap()))
}

#[track_caller]
pub(crate) fn all(cases: &[(&str, u32)]) {
    for (body, want) in cases {
        let got = run("", body).unwrap_or_else(|r| panic!("{body}: {r}"));
        assert_eq!(got, *want, "{body}: {got:#x}, not {want:#x}");
    }
}

#[test]
fn carries_go_on() {
    all(&[
        // 0xffffffff * 2 = 0x1_fffffffe; its lower half and 3 carry.
        ("mov.b32 %r1, -1; mad.lo.cc.u32 %r2, %r1, 2, 3; addc.u32 %r0, 0, 0;", 1),
        ("mov.b32 %r1, -1; mad.lo.cc.u32 %r2, %r1, 2, 1; addc.u32 %r0, 0, 0;", 0),
        // -1 * 2 = -2, upper half -1, and 1 carry to 0.
        ("mov.b32 %r1, -1; mad.hi.cc.s32 %r2, %r1, 2, 1; addc.u32 %r0, %r2, 0;", 1),
        ("mov.b32 %r1, -1; add.cc.u32 %r2, %r1, 1; madc.lo.u32 %r0, 3, 5, 7;", 23),
        // The carry-in alone can produce the carry-out.
        ("mov.b32 %r1, -1; add.cc.u32 %r2, %r1, 1; madc.lo.cc.u32 %r2, 0, 0, -1; addc.u32 %r0, 0, 0;", 1),
        // 2^63 * 2 has the upper half 1; -1 and it carry.
        (
            "mov.b64 %l1, 0x8000000000000000; mad.hi.cc.u64 %l2, %l1, 2, -1; addc.u64 %l2, 0, 0; cvt.u32.u64 %r0, %l2;",
            1,
        ),
        ("mov.b64 %l1, -1; add.cc.u64 %l2, %l1, 1; addc.cc.u64 %l2, %l1, 0; addc.u32 %r0, 0, 0;", 1),
        ("mov.b64 %l1, 0; sub.cc.u64 %l2, %l1, 1; subc.u64 %l2, 5, 2; cvt.u32.u64 %r0, %l2;", 2),
        ("mov.b64 %l1, 0; sub.cc.s64 %l2, %l1, 0; subc.s64 %l2, 5, 2; cvt.u32.u64 %r0, %l2;", 3),
        ("mov.b64 %l1, -1; add.cc.u64 %l2, 0, 0; madc.hi.s64 %l2, %l1, %l1, 9; cvt.u32.u64 %r0, %l2;", 9),
    ]);
}

#[test]
fn integers() {
    all(&[
        // The lower 24 bits, as signed: 0xffffff is -1.
        ("mov.b32 %r1, 0x1ffffff; mad24.lo.s32 %r0, %r1, 5, 7;", 2),
        ("mov.b32 %r1, 0xff800000; mul24.lo.u32 %r0, %r1, 2;", 0x0100_0000),
        // Bits 47 to 16 of 0xffffff * 0xffffff = 0xfffffe000001.
        ("mov.b32 %r1, 0xffffff; mad24.hi.u32 %r0, %r1, %r1, 1;", 0xffff_fe01),
        ("mov.b32 %r1, 0x7fffff; mad24.hi.sat.s32 %r0, %r1, %r1, 0x7fffffff;", 0x7fff_ffff),
        ("mov.b32 %r1, 0x40000000; mad.hi.sat.s32 %r0, %r1, 16, 0x7fffffff;", 0x7fff_ffff),
        ("mov.b32 %r1, 0x80000000; mad.hi.sat.s32 %r0, %r1, 16, 0x80000000;", 0x8000_0000),
        ("mov.b64 %l1, 0x8000000000000000; sad.s64 %l2, %l1, 0x7fffffffffffffff, 3; cvt.u32.u64 %r0, %l2;", 2),
        ("mov.b64 %l1, 1; sad.u64 %l2, %l1, -1, 0; shr.u64 %l2, %l2, 32; cvt.u32.u64 %r0, %l2;", 0xffff_ffff),
        ("fns.b32 %r0, 0xb4, 0, 2;", 4),
        ("fns.b32 %r0, 0xb4, 31, -1;", 7),
        ("dp2a.lo.s32.u32 %r0, 0xfffe0003, 0x0705, 100;", 101),
        ("dp2a.hi.u32.s32 %r0, 0xfffe0003, 0xff010705, 0;", 3u32.wrapping_sub(0xfffe)),
        ("add.u16x2 %r0, 0xffff8000, 0x00018000;", 0),
        ("min.s16x2 %r0, 0xffff0005, 0x00010003;", 0xffff_0003),
        ("max.u16x2 %r0, 0xffff0005, 0x00010003;", 0xffff_0005),
        ("max.relu.s16x2 %r0, 0xffff0005, 0x80000003;", 5),
        ("min.relu.s32 %r0, -5, 3;", 0),
        ("cvt.pack.sat.u8.s32.b32 %r0, 300, -5, 0x12345678;", 0x5678_ff00),
        ("cvt.pack.sat.s16.s32 %r0, 40000, -40000;", 0x7fff_8000),
        ("slct.u32.s32 %r0, 1, 2, -1;", 2),
        ("slct.u32.s32 %r0, 1, 2, 0;", 1),
        ("mov.f32 %f0, 0f80000000; slct.u32.f32 %r0, 1, 2, %f0;", 1),
        ("mov.f32 %f0, 0f80000001; slct.u32.f32 %r0, 1, 2, %f0;", 2),
        ("mov.f32 %f0, 0f80000001; slct.ftz.u32.f32 %r0, 1, 2, %f0;", 1),
        ("mov.f32 %f0, 0f7fffffff; slct.u32.f32 %r0, 1, 2, %f0;", 2),
        ("mov.b64 %l1, 7; slct.b64.s32 %l2, 9, %l1, -1; cvt.u32.u64 %r0, %l2;", 7),
        ("setp.eq.u32 %p1, 0, 1; lop3.or.b32 %r2|%p0, 0xf1, 0x0f, 0, 0xc0, %p1; selp.u32 %r0, %r2, 99, %p0;", 1),
        ("setp.eq.u32 %p1, 0, 1; lop3.and.b32 %r2|%p0, 0xf1, 0x0f, 0, 0xc0, %p1; selp.u32 %r0, 1, 2, %p0;", 2),
        ("setp.eq.u32 %p1, 0, 1; lop3.and.b32 _|%p0, 0xf1, 0x0f, 0, 0xc0, !%p1; selp.u32 %r0, 1, 2, %p0;", 1),
        ("setp.eq.u32 %p1, 0, 0; set.lt.and.u32.s32 %r0, -1, 1, %p1;", u32::MAX),
        ("setp.eq.u32 %p1, 0, 0; set.lt.and.u32.s32 %r0, -1, 1, !%p1;", 0),
        ("setp.eq.u32 %p1, 0, 0; set.gt.or.f32.s32 %f0, -1, 1, %p1; mov.b32 %r0, %f0;", 0x3f80_0000),
        ("setp.eq.u32 %p1, 0, 0; set.lt.xor.u32.u32 %r0, 1, 2, %p1;", 0),
        ("set.lo.u32.u64 %r0, 1, 0x100000000;", u32::MAX),
        ("mov.f64 %d0, 0d7ff8000000000000; set.neu.s32.f64 %r0, %d0, %d0;", u32::MAX),
    ]);
}

#[test]
fn a_register_with_itself_is_zero() {
    // Nobody has written %r1, %l1, %h1 and %p1.
    all(&[
        ("xor.b32 %r0, %r1, %r1;", 0),
        ("sub.u32 %r0, %r1, %r1;", 0),
        ("sub.s32 %r0, %r1, %r1;", 0),
        ("xor.b64 %l2, %l1, %l1; cvt.u32.u64 %r0, %l2;", 0),
        ("sub.s64 %l2, %l1, %l1; cvt.u32.u64 %r0, %l2;", 0),
        ("xor.b16 %h0, %h1, %h1; mov.b32 %r0, {%h0, %h0};", 0),
        ("sub.s16 %h0, %h1, %h1; mov.b32 %r0, {%h0, %h0};", 0),
        ("xor.pred %p0, %p1, %p1; selp.u32 %r0, 1, 2, %p0;", 2),
        ("mov.u32 %r1, 5; sub.sat.s32 %r0, %r1, %r1;", 0),
    ]);
    for wrong in [
        "xor.b32 %r0, %r1, %r2;",
        "and.b32 %r0, %r1, %r1;",
        "add.s32 %r0, %r1, %r1;",
        "sub.f32 %f0, %f1, %f1; mov.b32 %r0, %f0;",
        "xor.pred %p0, %p1, %p2; selp.u32 %r0, 1, 2, %p0;",
    ] {
        assert_eq!(run("", wrong).expect_err(wrong).kind, ReportKind::Undefined, "{wrong}");
    }
}

#[test]
fn products_with_elements_outside() {
    let half =
        |text: &str| run("", &format!("{text} mov.b32 %r0, {{%h0, 0}};")).unwrap_or_else(|r| panic!("{text}: {r}"));
    for (ty, one, two) in [("f16", 0x3c00, 0x4000), ("bf16", 0x3f80, 0x4000)] {
        let fma = |how: &str, a: u32, b: u32, c: u32| {
            half(&format!(
                "mov.b16 %h1, {a}; mov.b16 %h2, {b}; mov.b16 %h3, {c}; fma.rn.oob{how}.{ty} %h0, %h1, %h2, %h3;"
            ))
        };
        // Either sign, in either factor, with any other operands; not in the addend.
        for outside in [0x7ff7, 0xfff7] {
            assert_eq!(fma("", outside, one, two), 0, "{ty}");
            assert_eq!(fma("", one, outside, two), 0, "{ty}");
            assert_eq!(fma("", outside, 0x7fff, 0x7fff), 0, "{ty}");
            assert_eq!(fma(".relu", outside, one, two | 0x8000), 0, "{ty}");
            assert_eq!(fma("", one, two, outside), 0x7fff, "{ty}");
        }
        assert_eq!(fma("", 0x7ff6, one, two), 0x7fff, "{ty}");
        assert_eq!(fma("", two, one, 0), two, "{ty}");
        assert_eq!(fma(".relu", two, one | 0x8000, 0), 0, "{ty}");
        assert_eq!(fma(".relu", two, one, 0), two, "{ty}");
    }
    let sat = "mov.b16 %h1, 0x7ff7; mov.b16 %h2, 0x4000; fma.rn.oob.sat.f16 %h0, %h2, %h2, %h2;";
    assert_eq!(half(sat), 0x3c00);
    all(&[
        ("mov.b32 %r1, 0x7ff73c00; mov.b32 %r2, 0x40004000; fma.rn.oob.f16x2 %r0, %r1, %r2, %r2;", 0x4400),
        ("mov.b32 %r1, 0x3f807ff7; mov.b32 %r2, 0x40004000; fma.rn.oob.relu.bf16x2 %r0, %r1, %r2, %r2;", 0x4080_0000),
    ]);
}

#[test]
fn comparisons_as_words() {
    // 0x7e00 and 0x7fc0 are NaN, 1 the smallest subnormal number of either.
    let half = |compare: &str, d: &str, ty: &str, a: u32, b: u32| {
        let d = if matches!(d, "%r0") { "%r0" } else { "%h0" };
        let out = if d == "%h0" { "mov.b32 %r0, {%h0, 0};" } else { "" };
        let text = format!("mov.b16 %h1, {a}; mov.b16 %h2, {b}; setp.eq.u32 %p1, 0, 0; {compare}.{ty} {d}, %h1, %h2");
        let text = if compare.contains("and") || compare.contains("xor") { text + ", !%p1;" } else { text + ";" };
        run("", &(text + out)).unwrap_or_else(|r| panic!("{compare}: {r}"))
    };
    for (compare, d, ty, a, b, want) in [
        ("set.lt.u32", "%r0", "f16", 0x3c00, 0x4000, u32::MAX),
        ("set.lt.s32", "%r0", "f16", 0x4000, 0x3c00, 0),
        ("set.eq.s32", "%r0", "f16", 0x8000, 0, u32::MAX),
        ("set.neu.s32", "%r0", "f16", 0x7e00, 0x7e00, u32::MAX),
        ("set.ne.u32", "%r0", "f16", 0x7e00, 0x7e00, 0),
        ("set.gt.u32", "%r0", "f16", 1, 0, u32::MAX),
        ("set.gt.ftz.u32", "%r0", "f16", 1, 0, 0),
        ("set.gt.and.u32", "%r0", "f16", 1, 0, 0),
        ("set.gt.xor.s16", "%h0", "f16", 1, 0, 0xffff),
        ("set.lt.u16", "%h0", "f16", 0x3c00, 0x4000, 0xffff),
        ("set.lt.f16", "%h0", "f16", 0x3c00, 0x4000, 0x3c00),
        ("set.lt.bf16", "%h0", "f16", 0x3c00, 0x4000, 0x3f80),
        ("set.nan.u32", "%r0", "bf16", 0x7fc0, 0, u32::MAX),
        ("set.num.s32", "%r0", "bf16", 0x7fc0, 0, 0),
        ("set.ge.u16", "%h0", "bf16", 0x3f80, 0x3f80, 0xffff),
        ("set.gt.bf16", "%h0", "bf16", 1, 0, 0x3f80),
        ("set.lt.bf16", "%h0", "s16", 0xffff, 0, 0x3f80),
        ("set.lt.f16", "%h0", "u16", 0xffff, 0, 0),
        ("set.hi.f16", "%h0", "u16", 0xffff, 0, 0x3c00),
        ("set.eq.and.f16", "%h0", "b16", 7, 7, 0),
    ] {
        let got = half(compare, d, ty, a, b);
        assert_eq!(got, want, "{compare}.{ty} of {a:#x}, {b:#x}: {got:#x}, not {want:#x}");
    }
    let half =
        |text: &str| run("", &format!("{text} mov.b32 %r0, {{%h0, 0}};")).unwrap_or_else(|r| panic!("{text}: {r}"));
    assert_eq!(half("set.lt.f16.s32 %h0, -1, 0;"), 0x3c00);
    assert_eq!(half("set.lt.bf16.u64 %h0, 1, 0x100000000;"), 0x3f80);
    assert_eq!(half("mov.f32 %f0, 0f00000001; set.gt.f16.f32 %h0, %f0, 0f00000000;"), 0x3c00);
    assert_eq!(half("mov.f32 %f0, 0f00000001; set.gt.ftz.f16.f32 %h0, %f0, 0f00000000;"), 0);
    assert_eq!(half("mov.f32 %f0, 0f00000001; set.gt.bf16.f32 %h0, %f0, 0f00000000;"), 0x3f80);
    assert_eq!(half("mov.f64 %d0, 0dfff0000000000000; set.ltu.f16.f64 %h0, %d0, 0d0000000000000000;"), 0x3c00);
    all(&[
        ("mov.b32 %r2, 0; mov.b32 %r1, 0x3c007e00; set.equ.s32.f16x2 %r0, %r1, %r2;", 0x0000_ffff),
        ("mov.b32 %r2, 0; mov.b32 %r1, 0x3c007e00; set.gt.u32.f16x2 %r0, %r1, %r2;", 0xffff_0000),
        ("mov.b32 %r2, 0; mov.b32 %r1, 0x00010001; set.gt.ftz.s32.f16x2 %r0, %r1, %r2;", 0),
        ("mov.b32 %r2, 0; mov.b32 %r1, 0x3c007e00; set.gt.f16x2.f16x2 %r0, %r1, %r2;", 0x3c00_0000),
        ("mov.b32 %r2, 0; mov.b32 %r1, 0x3f800001; set.gt.s32.bf16x2 %r0, %r1, %r2;", u32::MAX),
        ("mov.b32 %r2, 0; mov.b32 %r1, 0x80000001; set.gt.bf16x2.bf16x2 %r0, %r1, %r2;", 0x3f80),
        (
            "setp.eq.u32 %p1, 0, 0; mov.b32 %r2, 0; mov.b32 %r1, 0x80000001; set.gt.xor.bf16x2.bf16x2 %r0, %r1, %r2, %p1;",
            0x3f80_0000,
        ),
    ]);
}

/// The upper or lower word of an f64 result.
pub(crate) fn double(body: &str, upper: bool) -> u32 {
    let shift = if upper { 32 } else { 0 };
    let text = format!("{body} mov.b64 %l0, %d0; shr.u64 %l0, %l0, {shift}; cvt.u32.u64 %r0, %l0;");
    run("", &text).unwrap_or_else(|r| panic!("{body}: {r}"))
}

#[test]
fn directed_roundings() {
    let single = |body: &str| run("", &format!("{body} mov.b32 %r0, %f0;")).unwrap_or_else(|r| panic!("{body}: {r}"));
    // A third is between 0x3eaaaaaa and 0x3eaaaaab.
    assert_eq!(single("div.rz.f32 %f0, 1.0, 3.0;"), 0x3eaa_aaaa);
    assert_eq!(single("div.rp.f32 %f0, 1.0, 3.0;"), 0x3eaa_aaab);
    assert_eq!(single("div.rm.f32 %f0, -1.0, 3.0;"), 0xbeaa_aaab);
    assert_eq!(single("rcp.rm.f32 %f0, 3.0;"), 0x3eaa_aaaa);
    assert_eq!(single("rcp.rp.f32 %f0, 3.0;"), 0x3eaa_aaab);
    // The root of two is 0x3fb504f3.33...
    assert_eq!(single("sqrt.rz.f32 %f0, 2.0;"), 0x3fb5_04f3);
    assert_eq!(single("sqrt.rp.f32 %f0, 2.0;"), 0x3fb5_04f4);
    assert_eq!(single("sqrt.rm.f32 %f0, -1.0;"), 0x7fff_ffff);
    assert_eq!(single("div.rz.f32 %f0, 0f7f7fffff, 0.5;"), 0x7f7f_ffff, "overflow toward zero");
    assert_eq!(single("div.rp.f32 %f0, 0f7f7fffff, 0.5;"), 0x7f80_0000);
    assert_eq!(single("div.rp.ftz.f32 %f0, 0f00800000, 2.0;"), 0);
    assert_eq!(single("div.rz.f32 %f0, 1.0, 0.0;"), 0x7f80_0000);
    assert_eq!(double("div.rz.f64 %d0, 1.0, 3.0;", false), 0x5555_5555);
    assert_eq!(double("div.rp.f64 %d0, 1.0, 3.0;", false), 0x5555_5556);
    // One and 2^-60.
    assert_eq!(double("add.rp.f64 %d0, 1.0, 0d3c30000000000000;", false), 1);
    assert_eq!(double("add.rz.f64 %d0, 1.0, 0d3c30000000000000;", false), 0);
    assert_eq!(double("sub.rz.f64 %d0, 1.0, 0d3c30000000000000;", true), 0x3fef_ffff);
    assert_eq!(double("add.rm.f64 %d0, 1.0, -1.0;", true), 0x8000_0000);
    assert_eq!(double("fma.rp.f64 %d0, 1.0, 1.0, 0d0000000000000001;", false), 1);
    assert_eq!(double("mul.rp.f64 %d0, 0d0010000000000000, 0d3fe0000000000001;", false), 1);
    assert_eq!(double("sqrt.rp.f64 %d0, 2.0;", false), 0x667f_3bcd);
    assert_eq!(double("sqrt.rm.f64 %d0, 2.0;", false), 0x667f_3bcc);
    assert_eq!(double("rcp.rm.f64 %d0, 3.0;", false), 0x5555_5555);
    assert_eq!(double("copysign.f64 %d0, -0.0, 2.0;", true), 0xc000_0000);
}

#[test]
fn kinds_and_pairs_of_floats() {
    let test = |kind: &str, ty: &str, bits: &str| {
        let register = if ty == "f32" { "%f0" } else { "%d0" };
        let body = format!("mov.{ty} {register}, {bits}; testp.{kind}.{ty} %p0, {register}; selp.u32 %r0, 1, 0, %p0;");
        run("", &body).unwrap_or_else(|r| panic!("{body}: {r}"))
    };
    for (bits, yes) in [
        ("0f7f800000", "infinite number"),
        ("0f7f800001", "notanumber"),
        ("0f80000000", "finite number normal"),
        ("0f00000001", "finite number subnormal"),
        ("0fbf800000", "finite number normal"),
    ] {
        for kind in ["finite", "infinite", "number", "notanumber", "normal", "subnormal"] {
            assert_eq!(test(kind, "f32", bits), u32::from(yes.split(' ').any(|y| y == kind)), "{kind} {bits}");
        }
    }
    assert_eq!(test("subnormal", "f64", "0d800fffffffffffff"), 1);
    assert_eq!(test("notanumber", "f64", "0dfff8000000000000"), 1);
    let pair = "selp.u32 %r1, 1, 0, %p0; selp.u32 %r2, 2, 0, %p1; add.u32 %r0, %r1, %r2;";
    let pairs = |text: &str| run("", &format!("{text} {pair}")).unwrap_or_else(|r| panic!("{text}: {r}"));
    // Lower halves 1 and 2, upper halves NaN and 1.
    assert_eq!(pairs("mov.b32 %r1, 0x7e003c00; mov.b32 %r2, 0x3c004000; setp.lt.f16x2 %p0|%p1, %r1, %r2;"), 1);
    assert_eq!(pairs("mov.b32 %r1, 0x7e003c00; mov.b32 %r2, 0x3c004000; setp.ltu.f16x2 %p0|%p1, %r1, %r2;"), 3);
    assert_eq!(pairs("mov.b32 %r1, 0x3f800000; mov.b32 %r2, 0x3f803f80; setp.eq.bf16x2 %p0|%p1, %r1, %r2;"), 2);
    assert_eq!(
        pairs(
            "setp.ne.u32 %p2, 0, 0; mov.b32 %r1, 0x00010000; mov.b32 %r2, 0x00000000; setp.eq.or.f16x2 %p0|%p1, %r1, %r2, %p2;"
        ),
        1
    );
    assert_eq!(
        pairs(
            "setp.ne.u32 %p2, 0, 0; mov.b32 %r1, 0x00010000; mov.b32 %r2, 0x00000000; setp.eq.or.ftz.f16x2 %p0|%p1, %r1, %r2, %p2;"
        ),
        3
    );
    let single = |body: &str| run("", &format!("{body} mov.b32 %r0, %f0;")).unwrap_or_else(|r| panic!("{body}: {r}"));
    assert_eq!(single("min.xorsign.abs.f32 %f0, -2.0, 3.0;"), (-2f32).to_bits());
    assert_eq!(single("max.xorsign.abs.f32 %f0, -2.0, -3.0;"), 3f32.to_bits());
    assert_eq!(single("max.NaN.xorsign.abs.f32 %f0, 0fffffffff, -3.0;"), 0x7fff_ffff);
    assert_eq!(single("max.xorsign.abs.f32 %f0, 0f7fffffff, -3.0;"), (-3f32).to_bits());
    all(&[
        ("mov.b32 %r1, 0xc0003c00; mov.b32 %r2, 0x3c00c200; max.xorsign.abs.f16x2 %r0, %r1, %r2;", 0xc000_c200),
        ("mov.b32 %r1, 0xc0003f80; mov.b32 %r2, 0x3f80c040; min.xorsign.abs.bf16x2 %r0, %r1, %r2;", 0xbf80_bf80),
    ]);
}

#[test]
fn video_instructions() {
    all(&[
        ("vabsdiff4.u32.u32.u32.add %r0, 0x00ff0a10, 0xff000b0e, 5;", 518),
        ("vadd.s32.s32.s32.sat %r0, 0x7fffffff, 1;", 0x7fff_ffff),
        ("mov.b32 %r1, 0xff00; mov.b32 %r2, 0x80001234; vadd.s32.s32.s32 %r0, %r1.b1, %r2.h1;", 0xffff_7fff),
        ("mov.b32 %r1, 9; vmad.s32.s32.s32 %r0, 7, -%r1, 1;", 0xffff_ffc2),
        ("vset.s32.u32.lt %r0, -1, 1;", 1),
        ("mov.b32 %r0, 0x9999; vadd2.s32.s32.s32 %r0.h1, 0x00030005, 0x00010001, %r0;", 0x0004_9999),
        ("vshr.u32.s32.u32.clamp.add %r0, 0x80000000, 40, 2;", 1),
    ]);
}

#[test]
fn one_lane_is_elected() {
    all(&[
        ("elect.sync %r1|%p0, -1; selp.u32 %r2, 10, 0, %p0; add.u32 %r0, %r1, %r2;", 10),
        // Lane 0 is no member of the others' group.
        (
            "setp.eq.u32 %p1, %t, 0; mov.b32 %r0, 7; @!%p1 elect.sync %r0|%p0, 0xfffffffe;\n\
             bar.warp.sync -1; shfl.sync.idx.b32 %r0, %r0, 5, 31, -1;",
            1,
        ),
    ]);
}

#[test]
fn matrices_of_small_integers() {
    let a = "mov.b32 %r1, 0x77777777; mov.b32 %r2, -1; mov.b32 %r3, 5;";
    let s4 = "mma.sync.aligned.m8n8k32.row.col.s32.s4.u4.s32 {%r0, %r4}, {%r2}, {%r1}, {%r3, %r3};";
    let b1 = "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.and.popc {%r0, %r4}, {%r2}, {%r1}, {%r3, %r3};";
    all(&[(&format!("{a} {s4}"), 5u32.wrapping_sub(7 * 32)), (&format!("{a} {b1}"), 5 + 96)]);
}

#[test]
fn stored_matrices_are_loaded_back() {
    let body = "mov.u32 %r1, sm; and.b32 %r2, %t, 7; shl.b32 %r2, %r2, 4; add.u32 %r1, %r1, %r2; mov.u32 %r3, %t;\n\
        stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%r1], {%r3}; bar.warp.sync -1;\n\
        ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r4}, [%r1]; sub.u32 %r5, %r4, %t; redux.sync.or.b32 %r0, %r5, -1;\n\
        ld.shared.b16 %h0, [sm+16]; cvt.u32.u16 %r6, %h0; shl.b32 %r6, %r6, 8; or.b32 %r0, %r0, %r6;";
    // Row 1 of the transposed matrix begins with the upper half of lane 0, which is zero.
    all(&[(body, 0)]);
}

#[test]
fn discarded_memory_is_undefined() {
    let discard = "discard.global.L2 [%out], 128;";
    let body =
        |more: &str| format!("setp.ne.u32 %p1, %t, 0; @%p1 bra END; {discard} {more} ld.global.u32 %r0, [%out]; END:");
    let text = body("").replace("END:", "END: mov.b32 %r0, 0;");
    assert_eq!(run("", &text).unwrap_err().kind, ReportKind::Uninitialised);
    let text = body("st.global.u32 [%out], 5;").replace("END:", "END: mov.b32 %r0, 0;");
    assert_eq!(run("", &text).unwrap(), 0);
    let text = "setp.ne.u32 %p1, %t, 0; @%p1 bra END; discard.global.L2 [%out+4], 128; END: mov.b32 %r0, 0;";
    assert_eq!(run("", text).unwrap_err().kind, ReportKind::Misaligned);
}

const ASSERT: &str = ".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e) .noreturn;\n\
    .global .b8 what[6] = {110, 32, 62, 32, 48, 0};\n.global .b8 file[5] = {97, 46, 99, 117, 0};\n.global .b8 name[2] = {102, 0};";

#[test]
fn a_failed_assertion_says_what_failed() {
    let body = |n: u32| {
        format!(
            "mov.b32 %r0, {n}; setp.ne.u32 %p0, %r0, 0;\n@%p0 bra OK;\n{{ .param .b64 p0; .param .b64 p1; .param .b32 p2;\n\
             .param .b64 p3; .param .b64 p4;\nmov.u64 %l0, what; cvta.global.u64 %l0, %l0; st.param.b64 [p0], %l0;\n\
             mov.u64 %l1, file; cvta.global.u64 %l1, %l1; st.param.b64 [p1], %l1; st.param.b32 [p2], 42;\n\
             mov.u64 %l2, name; cvta.global.u64 %l2, %l2; st.param.b64 [p3], %l2; st.param.b64 [p4], 1;\n\
             call.uni __assertfail, (p0, p1, p2, p3, p4); }}\nOK:"
        )
    };
    assert_eq!(run(ASSERT, &body(3)).unwrap(), 3);
    let report = run(ASSERT, &body(0)).unwrap_err();
    assert_eq!(report.kind, ReportKind::Trap);
    assert!(report.message.contains("assertion `n > 0` failed in `f` (a.cu:42)"), "{report}");
}

#[test]
fn vprintf_prints_nothing_and_gives_zero() {
    let module =
        ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n.global .b8 text[3] = {104, 105, 0};";
    let body = "{ .param .b64 p0; .param .b64 p1; .param .b32 q; mov.u64 %l0, text; cvta.global.u64 %l0, %l0;\n\
        st.param.b64 [p0], %l0; st.param.b64 [p1], 0; call.uni (q), vprintf, (p0, p1); ld.param.b32 %r0, [q]; }\n\
        add.u32 %r0, %r0, 4;";
    assert_eq!(run(module, body).unwrap(), 4);
}

#[test]
fn variables_have_generic_addresses() {
    all(&[("st.shared.u32 [sm+4], 6; bar.warp.sync -1; ld.u32 %r0, [sm+4];", 6)]);
    assert_eq!(run(".global .align 4 .u32 g = 8;", "ld.u32 %r0, [g];").unwrap(), 8);
    let local = ".local .align 4 .b8 mine[8]; st.local.u32 [mine+4], 9; ld.u32 %r0, [mine+4];";
    assert_eq!(run("", local).unwrap(), 9);
}

#[test]
fn hints_for_caches_change_nothing() {
    all(&[(
        "createpolicy.fractional.L2::evict_last.b64 %l0, 1.0; setp.ne.u32 %p0, %t, 0; @%p0 mov.b32 %r0, 0; @%p0 bra END;\n\
         st.global.L2::cache_hint.u32 [%out], 3, %l0; atom.global.add.L2::cache_hint.u32 %r1, [%out], 4, %l0;\n\
         ld.global.L1::evict_last.L2::cache_hint.u32 %r0, [%out], %l0; END:",
        7,
    )]);
}
