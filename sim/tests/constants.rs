//! Constant expressions, addresses as initial values, and vectors of registers, as programs.
#![allow(clippy::unwrap_used, reason = "tests")]

use tilec_sim::{Device, Launch, Options, Program};

/// What a warp's lane 0 stores: a body that leaves it in `%r0`, with declarations of the module in front.
fn run(module: &str, body: &str) -> u32 {
    let text = format!(
        ".version 8.6\n.target sm_90\n.address_size 64\n{module}\n.visible .entry k(.param .u64 out)\n{{\n\
         .reg .pred %p;\n.reg .b32 %r<8>;\n.reg .f32 %f<8>;\n.reg .b64 %l<8>;\n.reg .b64 %out;\n.reg .b32 %t;\n\
         .shared .align 16 .b8 sm[256];\nld.param.u64 %out, [out];\n{body}\n\
         mov.u32 %t, %tid.x;\nsetp.eq.u32 %p, %t, 0;\n@%p st.global.u32 [%out], %r0;\nret;\n}}\n"
    );
    let program = Program::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut device = Device::new();
    let out = device.alloc(256).unwrap();
    device.upload(out, &[0; 256]).unwrap();
    let params = vec![out.to_le_bytes().to_vec()];
    let launch = Launch { entry: "k".into(), grid: [1; 3], block: [32, 1, 1], dynamic_smem: 0, params };
    device.run(&program, &launch, &Options::default()).unwrap_or_else(|r| panic!("{r}\n{text}"));
    u32::from_le_bytes(device.download(out, 4).unwrap().try_into().unwrap())
}

#[test]
fn constants_are_computed_wherever_they_stand() {
    for (body, want) in [
        ("mov.u32 %r0, (3 + 4) * 2;", 14),
        ("mov.u32 %r0, 2 ? 1 << 4 : 5;", 16),
        ("mov.u32 %r1, 40; add.u32 %r0, %r1, WARP_SZ * -1 + 34;", 42),
        ("mov.f32 %f0, 1.5; fma.rn.f32 %f0, %f0, 2.0 * 3.0, -(1.0); cvt.rzi.u32.f32 %r0, %f0;", 8),
        ("mov.b64 %l0, {1 + 2, 3 * 4}; mov.b64 {%r1, %r0}, %l0;", 12),
        ("mov.pred %p, !0; selp.u32 %r0, 1 | 2, 4, %p;", 3),
        ("mov.u32 %r1, sm; mov.u32 %r2, sm + 4 * 3 - 2; sub.u32 %r0, %r2, %r1;", 10),
        (
            "mov.u32 %r1, sm; mov.u32 %r2, %tid.x; shl.b32 %r3, %r2, 2; add.u32 %r1, %r1, %r3; add.u32 %r2, %r2, 5; \
             st.shared.u32 [%r1 + 16 / 4 * 2], %r2; bar.sync 0 + 0; ld.shared.u32 %r0, [sm + (3 << 2)];",
            6,
        ),
        ("mov.u32 %r1, 9; shfl.sync.idx.b32 %r0|%p, %r1, 1 | 2, 31, ~0;", 9),
        ("lop3.b32 %r0, 12, 10, 0, 0xF0 & 0xCC;", 8),
    ] {
        assert_eq!(run("", body), want, "{body}");
    }
}

#[test]
fn common_variables_and_attributes() {
    let load = "ld.global.u32 %r1, [q + 4]; add.u32 %r0, %r1, 7;";
    assert_eq!(run(".common .global .align 8 .b32 q[2];", load), 7);
    assert_eq!(run(".visible .common .global .v2 .u32 q;", load), 7);
    assert_eq!(run(".common .global .b32 q[2] = {1, 2};", load), 9);
    assert_eq!(run(".global .attribute(.managed) .align 8 .b32 q[2] = {1, 2};", load), 9);
    assert_eq!(run(".attribute(.managed) .global .b32 q[2] = {1, 2};", load), 9);
    assert_eq!(run(".visible .global .align 4 .attribute(.managed, .unified(19, 0x5f)) .b32 q[2];", load), 7);
    for (wrong, why) in [
        (".const .attribute(.managed) .b32 q;", "4:19: `.managed` goes with variables of `.global` alone"),
        (".attribute(.managed) .shared .b32 q;", "4:1: attributes go with variables of `.global` alone"),
        (".func .attribute(.managed) q() { ret; }", "4:18: `.managed` goes with"),
        (".global .attribute(.other) .b32 q;", "4:20: expected `.managed` or `.unified`, found `.other`"),
        (".global .attribute(.unified(1)) .b32 q;", "4:30: expected `,`"),
        (".common .const .b32 q;", "`.global` alone"),
        (".common .shared .b32 q;", "`.global` alone"),
        (".common .entry q() { ret; }", "`.global` alone"),
        (".extern .common .global .b32 q;", "not with `.extern`"),
    ] {
        let text = format!(".version 8.0\n.target sm_80\n.address_size 64\n{wrong}\n");
        let error = Program::parse(&text).unwrap_err();
        assert!(error.to_string().contains(why) && !error.limit, "{wrong}: {error}");
    }
}

#[test]
fn initial_values_are_where_their_braces_put_them() {
    let load = |name: &str, at: usize| format!("ld.global.u32 %r0, [{name} + {at}];");
    for (variable, at, want) in [
        (".global .u32 q[2][3] = {{1}, {4, 5}};", 12, 4),
        (".global .u32 q[2][3] = {{1}, {4, 5}};", 16, 5),
        (".global .u32 q[2][3] = {{1}, {4, 5}};", 4, 0),
        (".global .u32 q[][2] = {{}, {3, 2 < 3 ? 7 : 8}};", 12, 7),
        (".global .v2 .u32 q[2] = {{1, 2}, {3, 4}};", 8, 3),
        (".global .align 4 .u8 q[4] = {300, -1, 1 + 1, 0x103 % 256};", 0, 0x0302_ff2c),
        (".global .f32 q = 0.5 + 0.25;", 0, 0x3f40_0000),
        (".global .b32 q[2] = {1.0, 0f40000000};", 4, 0x4000_0000),
        (".global .b64 q = 1.0;", 4, 0x3ff0_0000),
    ] {
        assert_eq!(run(variable, &load("q", at)), want, "{variable} {at}");
    }
}

#[test]
fn initial_values_may_be_addresses() {
    let at = |name: &str| format!("ld.global.u64 %l0, [{name}]; ld.global.u32 %r0, [%l0];");
    let data = ".global .u32 a[4] = {10, 11, 12, 13};\n.const .u32 c[2] = {20, 21};\n";
    for (variable, name, want) in [
        (".global .u64 p = a;", "p", 10),
        (".global .u64 p = a + 4 * 2;", "p", 12),
        (".global .u64 p[2] = {a, generic(a) + 4};", "p + 8", 11),
        (".global .u64 p[3][1] = {{a}, {}, {a + 12}};", "p + 16", 13),
        (".global .u64 p = generic(c) + 4;", "p", 21),
        (
            ".global .align 8 .u8 p[8] = {0xff(a), 0xff00(a), 0xff0000(a), 0xff000000(a), 0xff00000000(a), \
             0xff0000000000(a), 0xff000000000000(a), 0xff00000000000000(generic(a))};",
            "p",
            10,
        ),
    ] {
        assert_eq!(run(&format!("{data}{variable}"), &at(name)), want, "{variable}");
    }
    // A list of pointers to pointers, and a variable of the body.
    let chain = format!("{data}.global .u64 p = a + 8;\n.global .u64 q = p;\n");
    assert_eq!(run(&chain, "ld.global.u64 %l0, [q]; ld.global.u64 %l1, [%l0]; ld.global.u32 %r0, [%l1];"), 12);
    assert_eq!(run(data, &format!("{{ .global .u32 a = 99; .global .u64 p = a; {} }}", at("p"))), 99);
}

#[test]
fn vectors_of_registers() {
    let data = ".global .align 16 .u32 a[4] = {10, 11, 12, 13};";
    for (body, want) in [
        (".reg .v4 .u32 v; ld.global.v4.u32 v, [a]; add.u32 %r0, v.y, v.w;", 24),
        (".reg .v4 .u32 v; ld.global.v4.u32 v, [a]; add.u32 %r0, v.g, v.a;", 24),
        (".reg .v4 .u32 v<3>; ld.global.v4.u32 v2, [a]; mov.v4.u32 v0, v2; sub.u32 %r0, v0.z, v2.x;", 2),
        // All at once: nothing is overwritten before it is read.
        (
            ".reg .v2 .u32 v; mov.v2.u32 v, {3, 5}; mov.v2.u32 v, {v.y, v.x}; shl.b32 %r1, v.x, 8; add.u32 %r0, %r1, v.y;",
            0x503,
        ),
        (
            ".reg .v2 .b32 v; mov.b64 %l0, 0x700000009; mov.b64 v, %l0; sub.u32 v.x, v.x, v.y; mov.b64 %l1, v; cvt.u32.u64 %r0, %l1;",
            2,
        ),
        (".reg .v4 .b16 h; mov.b64 h, 0x0004000300020001; mov.b32 %r0, {h.w, h.z};", 0x0003_0004),
        (".reg .v2 .f64 d; mov.v2.f64 d, {1.5, 2.5}; add.f64 d.x, d.x, d.y; cvt.rzi.u32.f64 %r0, d.x;", 4),
        (
            ".shared .v4 .b32 s[2]; .reg .v4 .b32 v; .reg .pred %q; mov.v4.b32 v, {1, 2, 3, 4}; mov.u32 %r1, %tid.x; \
             setp.eq.u32 %q, %r1, 0; @%q st.shared.v4.b32 [s + 16], v; bar.sync 0; ld.shared.b32 %r0, [s + 24];",
            3,
        ),
        ("{ .reg .v2 .u32 v; mov.u32 v.x, 1; { .reg .u32 v; mov.u32 v, 2; } mov.u32 %r0, v.x; }", 1),
        (
            ".reg .v4 .b32 m; .reg .v4 .f32 d; .reg .v2 .b32 n; mov.v4.b32 m, {0x3c003c00, 0x3c003c00, 0x3c003c00, 0x3c003c00}; \
             mov.v2.b32 n, {0x3c003c00, 0x3c003c00}; mov.v4.f32 d, {1.0, 1.0, 1.0, 1.0}; \
             mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 d, m, n, d; cvt.rzi.u32.f32 %r0, d.w;",
            17,
        ),
    ] {
        assert_eq!(run(data, body), want, "{body}");
    }
}

#[test]
fn what_a_vector_is_not_is_said() {
    let refused = |body: &str| {
        let text = format!(
            ".version 8.6\n.target sm_90\n.address_size 64\n.entry k()\n{{\n.reg .b32 %r<4>;\n{body}\nret;\n}}\n"
        );
        Program::parse(&text).unwrap_err().to_string()
    };
    for (body, says) in [
        (".reg .v4 .u32 v; mov.u32 %r0, v;", "7:31: only untyped registers are packed, not U32"),
        (".reg .v4 .u32 v; add.u32 %r0, v, 1;", "`v` is a vector of 4 registers: here goes one of them, such as `v.x`"),
        (".reg .v2 .u32 v; mov.u32 %r0, v.z;", "`v` has 2 elements, `z` is none of them"),
        (".reg .v2 .u32 v; ld.shared.u32 %r0, [v];", "`v` is a vector of 2 registers"),
        (".reg .v4 .b64 v;", "a vector has at most 16 bytes"),
        (".reg .v2 .pred v;", "predicates make no vector"),
        (".global .u64 p = q; .global .u32 q;", "`q` is no variable that is declared further up"),
        (".shared .u32 s; .global .u64 p = s;", "`s` is in Shared memory, where it has no address before the launch"),
        (".global .u64 p = k;", "`k` is code: calls through a pointer are not supported"),
        (".global .u32 q; .global .s64 p = q;", "an address is no initial value of a S64"),
        (".global .u32 q; .global .u8 p = 0x1fe(q);", "0x1fe is no mask of one byte of an address"),
        (".global .u32 q[2] = {1, 2, 3};", "too many values for `q`"),
        (".global .v2 .u32 q[2] = {{1}, {2, 3}};", "a vector of `q` has fewer values than elements"),
        (".global .f32 q = 3;", "an integer is no initial value of a F32"),
    ] {
        let error = refused(body);
        assert!(error.contains(says), "{body}: {error}");
    }
}
