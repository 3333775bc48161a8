//! `cvt` between floats and integers, and f64 forms of `mma`: values computed by hand from the PTX manual.
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::instructions::{all, double, run};
use tilec_sim::Program;

/// A conversion of bits into a register of 16 bits, from one of `from` (`f`, `h`, `r`).
fn to_half(cvt: &str, from: &str, bits: u64) -> u32 {
    let load = match from {
        "f" => format!("mov.b32 %f1, {bits:#x};"),
        "h" => format!("mov.b16 %h1, {bits:#x};"),
        "d" => format!("mov.b64 %d1, {bits:#x};"),
        "l" => format!("mov.b64 %l1, {bits:#x};"),
        _ => format!("mov.b32 %r1, {bits:#x};"),
    };
    let body = format!("{load} cvt.{cvt} %h0, %{from}1; cvt.u32.u16 %r0, %h0;");
    run("", &body).unwrap_or_else(|r| panic!("{body}: {r}"))
}

#[track_caller]
fn halves(cases: &[(&str, &str, u64, u32)]) {
    for &(cvt, from, bits, want) in cases {
        let got = to_half(cvt, from, bits);
        assert_eq!(got, want, "cvt.{cvt} of {bits:#x}: {got:#x}, not {want:#x}");
    }
}

#[test]
fn clamped_halves() {
    let (one_and_half, minus_one, infinity, minus_infinity, nan) =
        (0x3fc0_0000, 0xbf80_0000, 0x7f80_0000, 0xff80_0000, 0x7fc0_0000);
    halves(&[
        ("rn.relu.f16.f32", "f", one_and_half, 0x3e00),
        ("rn.relu.f16.f32", "f", minus_one, 0),
        ("rz.relu.f16.f32", "f", 0x8000_0000, 0),
        ("rn.relu.f16.f32", "f", nan, 0x7fff),
        ("rn.relu.f16.f32", "f", infinity, 0x7c00),
        // 65520 is halfway from the largest f16, 65504, to what would be the next number.
        ("rn.f16.f32", "f", 0x477f_f000, 0x7c00),
        ("rn.satfinite.f16.f32", "f", 0x477f_f000, 0x7bff),
        ("rn.satfinite.f16.f32", "f", minus_infinity, 0xfbff),
        ("rz.satfinite.f16.f32", "f", infinity, 0x7bff),
        ("rn.satfinite.f16.f32", "f", nan, 0x7fff),
        ("rn.satfinite.relu.f16.f32", "f", minus_infinity, 0),
        ("rn.relu.satfinite.f16.f32", "f", infinity, 0x7bff),
        ("rn.satfinite.bf16.f32", "f", 0x7f7f_ffff, 0x7f7f),
        ("rn.satfinite.bf16.f32", "f", minus_infinity, 0xff7f),
        ("rz.satfinite.relu.bf16.f32", "f", minus_infinity, 0),
        ("rz.satfinite.relu.bf16.f32", "f", infinity, 0x7f7f),
    ]);
    all(&[
        ("mov.b32 %f0, 0x7f800000; mov.b32 %f1, 0xff800000; cvt.rn.satfinite.f16x2.f32 %r0, %f0, %f1;", 0x7bff_fbff),
        (
            "mov.b32 %f0, 0x7f800000; mov.b32 %f1, 0xff800000; cvt.rz.satfinite.relu.f16x2.f32 %r0, %f0, %f1;",
            0x7bff_0000,
        ),
        ("mov.b32 %f0, 0x7f800000; mov.b32 %f1, 0xff800000; cvt.rz.satfinite.bf16x2.f32 %r0, %f0, %f1;", 0x7f7f_ff7f),
        ("mov.b32 %f0, 0xff800000; mov.b32 %f1, 0x3f800000; cvt.rn.relu.satfinite.bf16x2.f32 %r0, %f0, %f1;", 0x3f80),
    ]);
}

#[test]
fn integers_to_floats() {
    halves(&[
        ("rn.sat.f16.s32", "r", 7, 0x3c00),
        ("rn.sat.f16.s32", "r", 0xffff_fffd, 0),
        // Beyond f16 before it is clamped.
        ("rp.sat.f16.u32", "r", 0xffff_ffff, 0x3c00),
        // Between 256 and 512 the unit of bf16 is 2.
        ("rn.bf16.s32", "r", 257, 0x4380),
        ("rp.bf16.s32", "r", 257, 0x4381),
        ("rz.bf16.s32", "r", 0xffff_feff, 0xc380),
        ("rm.bf16.s32", "r", 0xffff_feff, 0xc381),
        ("rn.bf16.u16", "h", 259, 0x4382),
        ("rn.bf16.s16", "h", 0xffff, 0xbf80),
        ("rn.bf16.u64", "l", u64::MAX, 0x5f80),
        ("rz.bf16.u64", "l", u64::MAX, 0x5f7f),
    ]);
    all(&[
        ("mov.b64 %l1, -1; cvt.rn.sat.f32.u64 %f0, %l1; mov.b32 %r0, %f0;", 0x3f80_0000),
        ("mov.b64 %l1, -1; cvt.rn.sat.f32.s64 %f0, %l1; mov.b32 %r0, %f0;", 0),
        ("mov.b32 %r1, 1; cvt.rm.ftz.sat.f32.s8 %f0, %r1; mov.b32 %r0, %f0;", 0x3f80_0000),
        // 2^24 + 1 is between two f32.
        ("mov.b32 %r1, 0x1000001; cvt.rz.ftz.f32.s32 %f0, %r1; mov.b32 %r0, %f0;", 0x4b80_0000),
        ("mov.b32 %r1, 0x1000001; cvt.rp.ftz.f32.u32 %f0, %r1; mov.b32 %r0, %f0;", 0x4b80_0001),
        (".reg .b8 %c; cvt.s8.s32 %c, -2; cvt.rn.bf16.s8 %h0, %c; cvt.u32.u16 %r0, %h0;", 0xc000),
        (".reg .b8 %c; cvt.s8.s32 %c, -2; cvt.rn.bf16.u8 %h0, %c; cvt.u32.u16 %r0, %h0;", 0x437e),
    ]);
    assert_eq!(double("cvt.rn.sat.f64.s32 %d0, 5;", true), 0x3ff0_0000);
    assert_eq!(double("cvt.rp.sat.f64.s64 %d0, -5;", true), 0);
}

#[test]
fn bf16_to_integers() {
    all(&[
        // 2.5 and -2.5.
        ("mov.b16 %h1, 0x4020; cvt.rni.s32.bf16 %r0, %h1;", 2),
        ("mov.b16 %h1, 0x4020; cvt.rpi.u32.bf16 %r0, %h1;", 3),
        ("mov.b16 %h1, 0xc020; cvt.rmi.s32.bf16 %r0, %h1;", -3i32 as u32),
        ("mov.b16 %h1, 0xc020; cvt.rzi.s32.bf16 %r0, %h1;", -2i32 as u32),
        ("mov.b16 %h1, 0xc020; cvt.rzi.u32.bf16 %r0, %h1;", 0),
        ("mov.b16 %h1, 0x7f80; cvt.rni.u16.bf16 %h0, %h1; cvt.u32.u16 %r0, %h0;", 0xffff),
        // 300 does not fit 8 bits.
        (".reg .b8 %c; mov.b16 %h1, 0x4396; cvt.rni.u8.bf16 %c, %h1; cvt.u32.u8 %r0, %c;", 255),
        ("mov.b16 %h1, 0xff80; cvt.rni.s64.bf16 %l0, %h1; shr.u64 %l0, %l0, 32; cvt.u32.u64 %r0, %l0;", 0x8000_0000),
    ]);
}

#[test]
fn bf16_to_and_from_other_floats() {
    halves(&[
        // Subnormal numbers of f32 are flushed with every rounding.
        ("rz.ftz.bf16.f32", "f", 0x0001_2345, 0),
        ("rz.bf16.f32", "f", 0x0001_2345, 1),
        ("rm.ftz.bf16.f32", "f", 0x8040_0000, 0x8000),
        ("rz.ftz.bf16.f32", "f", 0x3f80_ffff, 0x3f80),
        ("rn.ftz.bf16.f32", "f", 0x3f80_ffff, 0x3f81),
        ("rp.bf16.f32", "f", 1, 1),
        ("rm.bf16.f32", "f", 0xbf80_0001, 0xbf81),
        // 1 + 2^-10, then ties to even: 1 + 2^-8 and 1 + 3·2^-8.
        ("rn.bf16.f16", "h", 0x3c01, 0x3f80),
        ("rp.bf16.f16", "h", 0x3c01, 0x3f81),
        ("rn.bf16.f16", "h", 0x3c04, 0x3f80),
        ("bf16.f16", "h", 0x3c0c, 0x3f82),
        ("rn.bf16.f16", "h", 0x7bff, 0x4780),
        ("rz.bf16.f16", "h", 0x7bff, 0x477f),
        ("rz.bf16.f16", "h", 1, 0x3380),
        // 2^16 is beyond f16; 2^-25 is half of its smallest number.
        ("f16.bf16", "h", 0x4780, 0x7c00),
        ("rz.f16.bf16", "h", 0x4780, 0x7bff),
        ("rn.f16.bf16", "h", 0x3300, 0),
        ("rp.f16.bf16", "h", 0x3300, 1),
        ("rm.f16.bf16", "h", 0xffc0, 0x7fff),
        // 1 + 2^-8 + 2^-50 is beyond the tie, which f32 does not see.
        ("rn.bf16.f64", "d", 0x3ff0_1000_0000_0004, 0x3f81),
        ("rm.bf16.f64", "d", 0xbff0_1000_0000_0004, 0xbf81),
        ("rni.bf16.bf16", "h", 0x4020, 0x4000),
        ("rpi.bf16.bf16", "h", 0xbf00, 0x8000),
        ("bf16.bf16", "h", 0x1234, 0x1234),
    ]);
    all(&[
        ("mov.b16 %h1, 0x8001; cvt.rz.ftz.f32.bf16 %f0, %h1; mov.b32 %r0, %f0;", 0x8000_0000),
        ("mov.b16 %h1, 0x8001; cvt.rz.f32.bf16 %f0, %h1; mov.b32 %r0, %f0;", 0x8001_0000),
        ("mov.b16 %h1, 0x3fc0; cvt.rn.ftz.f32.bf16 %f0, %h1; mov.b32 %r0, %f0;", 0x3fc0_0000),
    ]);
    assert_eq!(double("mov.b16 %h1, 0x3fc0; cvt.f64.bf16 %d0, %h1;", true), 0x3ff8_0000);
    // The smallest number, 2^-133.
    assert_eq!(double("mov.b16 %h1, 1; cvt.rp.f64.bf16 %d0, %h1;", true), 0x37a0_0000);
}

#[test]
fn what_ptxas_makes_wrong_is_not_executed() {
    let refused = |target: &str, line: &str| {
        let text = format!(
            ".version 8.6\n.target {target}\n.address_size 64\n.visible .entry k() {{\n\
             .reg .b16 %h; .reg .f32 %f;\n{line}\nret; }}"
        );
        Program::parse(&text).unwrap_err().message
    };
    let flushed = refused("sm_89", "cvt.ftz.f32.bf16 %f, %h;");
    assert!(
        flushed.contains("needs sm_90 (this is sm_89)") && flushed.contains("reads the number as f16"),
        "{flushed}"
    );
    let clamped = refused("sm_75", "cvt.rn.satfinite.f16.f32 %h, %f;");
    assert!(clamped.contains("needs sm_80 (this is sm_75)"), "{clamped}");
}

#[test]
fn products_of_f64_are_rounded_as_told() {
    // Every product is 2^-60: too small to move 1 but where the rounding takes the next number, at each of the k steps.
    let product = |shape: &str, [a, b, c]: [usize; 3], round: &str, factor: &str| {
        let list = |n: usize, register: &str| vec![register; n].join(", ");
        let d = ["%d0", "%d4", "%d5", "%d6"][..c].join(", ");
        let (a, b, c) = (list(a, "%d1"), list(b, "%d2"), list(c, "%d3"));
        double(
            &format!(
                "mov.f64 %d1, 1.0; mov.f64 %d2, {factor}; mov.f64 %d3, 1.0;\n\
                 mma.sync.aligned.{shape}.row.col{round}.f64.f64.f64.f64 {{{d}}}, {{{a}}}, {{{b}}}, {{{c}}};"
            ),
            false,
        )
    };
    let (small, negative) = ("0d3c30000000000000", "0dbc30000000000000");
    for (shape, registers, k) in
        [("m8n8k4", [1, 1, 2], 4u32), ("m16n8k4", [2, 1, 4], 4), ("m16n8k8", [4, 2, 4], 8), ("m16n8k16", [8, 4, 4], 16)]
    {
        for (round, up, down) in [("", 0, 0), (".rn", 0, 0), (".rz", 0, k), (".rm", 0, k), (".rp", k, 0)] {
            assert_eq!(product(shape, registers, round, small), up, "{shape}{round}");
            assert_eq!(product(shape, registers, round, negative), down.wrapping_neg(), "{shape}{round} downwards");
        }
    }
}

#[test]
fn bytes_and_words() {
    all(&[
        // The first register is the lowest byte.
        (
            ".reg .b8 %c<4>; mov.b32 %r1, 0x80ff7f01; mov.b32 {%c0, %c1, %c2, %c3}, %r1;\n\
             cvt.s32.s8 %r2, %c3; cvt.u32.u8 %r3, %c2; cvt.u32.u8 %r4, %c1; cvt.u32.u8 %r5, %c0;\n\
             add.u32 %r0, %r2, %r3; mad.lo.u32 %r0, %r4, 256, %r0; mad.lo.u32 %r0, %r5, 0x100000, %r0;",
            0x10_0000 + 0x7f00 + 0xff - 0x80,
        ),
        (
            ".reg .b8 %c<4>; mov.b32 %r1, 0x80ff7f01; mov.b32 {%c0, _, %c2, %c3}, %r1;\n\
             mov.b32 %r0, {%c3, %c2, 0x23, %c0};",
            0x0123_ff80,
        ),
        (
            ".reg .b8 %c<2>; mov.b16 %h1, 0x1234; mov.b16 {%c0, %c1}, %h1; mov.b16 %h0, {%c1, %c0}; cvt.u32.u16 %r0, %h0;",
            0x3412,
        ),
    ]);
}

#[test]
fn special_registers_have_four_elements() {
    all(&[
        // One block of 32 threads, of which this is the last one's sum.
        (
            "mov.v4.u32 {%r1, %r2, %r3, %r4}, %ntid; mad.lo.u32 %r0, %r1, 1000, %r2; mad.lo.u32 %r0, %r3, 10, %r0;\n\
             mad.lo.u32 %r0, %r4, 100000, %r0;",
            32_011,
        ),
        (
            "mov.v4.b32 {%r1, _, %r3, %r4}, %tid; shfl.sync.idx.b32 %r1, %r1, 31, 31, -1; add.u32 %r0, %r3, %r4;\n\
             mad.lo.u32 %r0, %r1, 10, %r0;",
            310,
        ),
        ("mov.b32 %r0, 5; mov.u32 %r0, %tid.w;", 0),
        ("mov.b32 %r0, 5; mov.u32 %r0, %ntid.w;", 0),
        ("mov.b32 %r0, 5; mov.u32 %r0, %cluster_nctaid.w;", 0),
    ]);
}

#[test]
fn half_a_special_register() {
    // The mask of the highest lane has bit 31 alone, whose lower half is nothing.
    all(&[
        ("mov.u16 %h0, %lanemask_le; cvt.u32.u16 %r1, %h0; shfl.sync.idx.b32 %r0, %r1, 31, 31, -1;", 0xffff),
        (
            "mov.u16 %h0, %lanemask_eq; setp.eq.u16 %p0, %h0, 0; selp.u32 %r1, 1, 0, %p0; shfl.sync.idx.b32 %r0, %r1, 31, 31, -1;",
            1,
        ),
    ]);
}
