//! `wmma`: tiles of every shape and type, in every order, from shared, global and generic memory, multiply as they should.
#![allow(clippy::unwrap_used, reason = "tests")]

use tilec_sim::{Device, Generation, Launch, Options, Program, Report, ReportKind};

/// How elements are stored and what a small integer looks like in them.
#[derive(Clone, Copy, PartialEq)]
enum Ty {
    F16,
    Bf16,
    F32,
    F64,
    S8,
    U8,
    S32,
    S4,
    B1,
}

impl Ty {
    fn of(name: &str) -> Ty {
        match name {
            "f16" => Ty::F16,
            "bf16" => Ty::Bf16,
            "f32" | "tf32" => Ty::F32,
            "f64" => Ty::F64,
            "s8" => Ty::S8,
            "u8" => Ty::U8,
            "s32" => Ty::S32,
            "s4" => Ty::S4,
            _ => Ty::B1,
        }
    }

    fn bits(self) -> usize {
        match self {
            Ty::B1 => 1,
            Ty::S4 => 4,
            Ty::S8 | Ty::U8 => 8,
            Ty::F16 | Ty::Bf16 => 16,
            Ty::F32 | Ty::S32 => 32,
            Ty::F64 => 64,
        }
    }

    fn encode(self, v: i32) -> u64 {
        match self {
            Ty::F64 => f64::from(v).to_bits(),
            Ty::F32 => u64::from((v as f32).to_bits()),
            Ty::Bf16 => u64::from((v as f32).to_bits() >> 16),
            Ty::F16 if v == 0 => 0,
            Ty::F16 => {
                let (m, sign) = (v.unsigned_abs(), if v < 0 { 0x8000 } else { 0 });
                let e = m.ilog2();
                u64::from(sign | (e + 15) << 10 | (m << 10 >> e & 0x3FF))
            }
            _ => v as u64 & ((1 << self.bits()) - 1),
        }
    }

    fn decode(self, bits: u64) -> i32 {
        match self {
            Ty::F64 => f64::from_bits(bits) as i32,
            Ty::F32 => f32::from_bits(bits as u32) as i32,
            Ty::F16 if bits & 0x7FFF == 0 => 0,
            Ty::F16 => {
                let m = (bits & 0x3FF | 0x400) as f32 * 2f32.powi((bits >> 10 & 31) as i32 - 25);
                if bits & 0x8000 != 0 { -m as i32 } else { m as i32 }
            }
            _ => bits as u32 as i32,
        }
    }
}

/// A tile in memory: its lines are `stride` elements apart.
fn pack(ty: Ty, rows: usize, columns: usize, row: bool, stride: usize, f: impl Fn(usize, usize) -> i32) -> Vec<u8> {
    let lines = if row { rows } else { columns };
    let mut out = vec![0u8; lines * stride * ty.bits() / 8];
    for r in 0..rows {
        for c in 0..columns {
            let at = if row { r * stride + c } else { c * stride + r } * ty.bits();
            let v = ty.encode(f(r, c));
            for bit in 0..ty.bits() {
                out[(at + bit) / 8] |= ((v >> bit & 1) as u8) << ((at + bit) % 8);
            }
        }
    }
    out
}

struct Case {
    shape: (usize, usize, usize),
    ab: &'static str,
    c: &'static str,
    d: &'static str,
    /// `true`: row.
    orders: [bool; 4],
    /// Elements between lines beyond the tile, for A and B.
    pad: usize,
    space: &'static str,
    /// Registers of A, B, C, D.
    regs: [usize; 4],
    words: &'static str,
}

fn list(name: &str, n: usize) -> String {
    let all: Vec<String> = (0..n).map(|i| format!("{name}{i}")).collect();
    format!("{{{}}}", all.join(", "))
}

/// Loads A, B and C, multiplies, and stores D; through shared memory if the case requires it.
fn program(case: &Case, bytes: [usize; 4]) -> String {
    let (m, n, k) = case.shape;
    let shape = format!("m{m}n{n}k{k}");
    let order = |i: usize| if case.orders[i] { "row" } else { "col" };
    let stride = |i: usize, rows: usize, columns: usize| (if case.orders[i] { columns } else { rows }) + case.pad;
    let (sa, sb) = (stride(0, m, k), stride(1, k, n));
    let space = match case.space {
        "generic" => "",
        "shared" => ".shared",
        _ => ".global",
    };
    let mut text = ".version 8.0\n.target sm_80\n.address_size 64\n.shared .align 128 .b8 sm[16384];\n\
         .visible .entry k(.param .u64 p)\n{\n.reg .pred %p;\n.reg .b32 %r<4>, %i;\n.reg .b64 %a<8>;\n\
         .reg .b32 A<8>, B<8>, C<8>, D<8>;\n.reg .b64 XA<2>, XB<2>, XC<2>, XD<2>;\n\
         ld.param.u64 %a0, [p];\ncvta.to.global.u64 %a0, %a0;\nmov.u64 %a4, sm;\n"
        .to_owned();
    let total: usize = bytes[..3].iter().sum();
    if case.space == "shared" {
        text += &format!(
            "mov.u32 %r0, %tid.x; mul.wide.u32 %a1, %r0, 4; add.s64 %a2, %a0, %a1; add.s64 %a3, %a4, %a1;\n\
             L: ld.global.u32 %r1, [%a2]; st.shared.u32 [%a3], %r1; add.s64 %a2, %a2, 128; add.s64 %a3, %a3, 128;\n\
             add.s64 %a1, %a1, 128; setp.lt.u64 %p, %a1, {total}; @%p bra L; bar.warp.sync -1;\n"
        );
    }
    let base = if case.space == "shared" { "%a4" } else { "%a0" };
    let v = |name: &str, ty: &str, n: usize| list(&format!("{}{name}", if ty == "f64" { "X" } else { "" }), n);
    let (a, b) = (v("A", case.ab, case.regs[0]), v("B", case.ab, case.regs[1]));
    let (c, d) = (v("C", case.c, case.regs[2]), v("D", case.d, case.regs[3]));
    let sync = "sync.aligned";
    text += &format!("wmma.load.a.{sync}.{}.{shape}{space}.{} {a}, [{base}], {sa};\n", order(0), case.ab);
    text += &format!("wmma.load.b.{sync}.{}.{shape}{space}.{} {b}, [{base}+{}], {sb};\n", order(1), case.ab, bytes[0]);
    let at = bytes[0] + bytes[1];
    text += &format!("wmma.load.c.{sync}.{}.{shape}{space}.{} {c}, [{base}+{at}];\n", order(2), case.c);
    text += &format!("wmma.{} {d}, {a}, {b}, {c};\n", case.words.replace("SHAPE", &shape));
    text += &format!("wmma.store.d.{sync}.{}.{shape}.global.{} [%a0+{total}], {d};\nret;\n}}\n", order(3), case.d);
    text
}

fn run(case: &Case, generation: Generation) -> Result<(), Box<Report>> {
    let (m, n, k) = case.shape;
    let (ab, ct, dt) = (Ty::of(case.ab), Ty::of(case.c), Ty::of(case.d));
    let low =
        |v: usize, span: usize| (v % span) as i32 - if ab == Ty::U8 || ab == Ty::B1 { 0 } else { span as i32 / 2 };
    let span = if ab == Ty::B1 { 2 } else { 5 };
    let a = |i: usize, x: usize| low(i * 7 + x * 3 + i * x, span);
    let b = |x: usize, j: usize| low(x * 5 + j * 11 + x * j / 3, span);
    let c = |i: usize, j: usize| (i * 3 + j) as i32 - 20;
    let line = |i: usize, rows: usize, columns: usize, pad: usize| (if case.orders[i] { columns } else { rows }) + pad;
    let parts = [
        pack(ab, m, k, case.orders[0], line(0, m, k, case.pad), a),
        pack(ab, k, n, case.orders[1], line(1, k, n, case.pad), b),
        pack(ct, m, n, case.orders[2], line(2, m, n, 0), c),
    ];
    let d_bytes = m * n * dt.bits() / 8;
    let text = program(case, [parts[0].len(), parts[1].len(), parts[2].len(), d_bytes]);
    let program = Program::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut device = Device::new();
    let total: usize = parts.iter().map(Vec::len).sum();
    let memory = device.alloc((total + d_bytes) as u64).unwrap();
    device.upload(memory, &parts.concat()).unwrap();
    let params = vec![memory.to_le_bytes().to_vec()];
    let launch = Launch { entry: "k".into(), grid: [1; 3], block: [32, 1, 1], dynamic_smem: 0, params };
    device.run(&program, &launch, &Options { generation: Some(generation), ..Options::default() })?;
    let d = device.download(memory + total as u64, d_bytes).unwrap();
    for i in 0..m {
        for j in 0..n {
            let product = |x: usize| match case.words.contains("popc") {
                true if case.words.contains("xor") => a(i, x) ^ b(x, j),
                _ => a(i, x) * b(x, j),
            };
            let want = c(i, j) + (0..k).map(product).sum::<i32>();
            let at = (if case.orders[3] { i * n + j } else { j * m + i }) * dt.bits() / 8;
            let mut raw = [0; 8];
            raw[..dt.bits() / 8].copy_from_slice(&d[at..at + dt.bits() / 8]);
            let got = dt.decode(u64::from_le_bytes(raw));
            assert_eq!(got, want, "{} {:?} ({i}, {j}) on {generation:?}", case.words, case.orders);
        }
    }
    Ok(())
}

fn orders() -> impl Iterator<Item = [bool; 4]> {
    (0..16).map(|i| std::array::from_fn(|b| i >> b & 1 != 0))
}

/// The modifiers of a product.
fn words(orders: [bool; 4], types: &str) -> &'static str {
    let order = |row: bool| if row { "row" } else { "col" };
    format!("mma.sync.aligned.{}.{}.SHAPE.{types}", order(orders[0]), order(orders[1])).leak()
}

const SHAPES: [(usize, usize, usize); 3] = [(16, 16, 16), (8, 32, 16), (32, 8, 16)];

#[test]
fn halves() {
    for (i, orders) in orders().enumerate() {
        for shape in SHAPES {
            for (d, c) in [("f32", "f32"), ("f16", "f16"), ("f32", "f16"), ("f16", "f32")] {
                let regs = |ty| if ty == "f16" { 4 } else { 8 };
                let (ab, words) = ("f16", words(orders, &format!("{d}.{c}")));
                let space = ["shared", "global", "generic"][i % 3];
                let case =
                    Case { shape, ab, c, d, orders, pad: 8 * (i % 2), space, regs: [8, 8, regs(c), regs(d)], words };
                for device in [Generation::Volta, Generation::Turing, Generation::Ampere, Generation::Hopper] {
                    run(&case, device).unwrap_or_else(|r| panic!("{words}: {r}"));
                }
            }
        }
    }
}

#[test]
fn other_types() {
    for orders in orders() {
        for (shape, [a, b]) in SHAPES.into_iter().zip([[4, 4], [2, 8], [8, 2]]) {
            let words = words(orders, "f32.bf16.bf16.f32");
            let (ab, c) = ("bf16", "f32");
            let case = Case { shape, ab, c, d: c, orders, pad: 16, space: "shared", regs: [a, b, 8, 8], words };
            run(&case, Generation::Ampere).unwrap_or_else(|r| panic!("{words}: {r}"));
            assert_eq!(run(&case, Generation::Turing).unwrap_err().kind, ReportKind::Invalid);
        }
        for (shape, [a, b]) in SHAPES.into_iter().zip([[2, 2], [1, 4], [4, 1]]) {
            for ab in ["s8", "u8"] {
                let words = words(orders, &format!("s32.{ab}.{ab}.s32"));
                let case =
                    Case { shape, ab, c: "s32", d: "s32", orders, pad: 16, space: "global", regs: [a, b, 8, 8], words };
                run(&case, Generation::Turing).unwrap_or_else(|r| panic!("{words}: {r}"));
            }
        }
        let (ab, c) = ("tf32", "f32");
        let tf32 = words(orders, "f32.tf32.tf32.f32");
        let shape = (16, 16, 8);
        let case = Case { shape, ab, c, d: c, orders, pad: 4, space: "generic", regs: [4, 4, 8, 8], words: tf32 };
        run(&case, Generation::Hopper).unwrap_or_else(|r| panic!("{tf32}: {r}"));
        let f64s = words(orders, "rn.f64.f64.f64.f64");
        let (shape, ab, regs) = ((8, 8, 4), "f64", [1, 1, 2, 2]);
        let case = Case { shape, ab, c: ab, d: ab, orders, pad: 2, space: "shared", regs, words: f64s };
        run(&case, Generation::Ampere).unwrap_or_else(|r| panic!("{f64s}: {r}"));
        let orders = [true, false, orders[2], orders[3]];
        for (ab, k, words) in [
            ("s4", 32, "mma.sync.aligned.row.col.SHAPE.s32.s4.s4.s32"),
            ("b1", 128, "mma.xor.popc.sync.aligned.row.col.SHAPE.s32.b1.b1.s32"),
            ("b1", 128, "mma.and.popc.sync.aligned.row.col.SHAPE.s32.b1.b1.s32"),
        ] {
            let regs = [1, 1, 2, 2];
            let case = Case { shape: (8, 8, k), ab, c: "s32", d: "s32", orders, pad: 0, space: "shared", regs, words };
            run(&case, Generation::Turing).unwrap_or_else(|r| panic!("{words}: {r}"));
        }
    }
}

#[test]
fn sums_clamp_when_told() {
    let text = |sat: &str| {
        format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{{\n.reg .b32 %r<20>;\n\
             .reg .b64 %a;\nld.param.u64 %a, [p];\nmov.b32 %r0, 0x7F7F7F7F;\nmov.b32 %r1, 0x7FFFFFF0;\n\
             wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.s8.s32{sat} {}, {{%r0, %r0}}, {{%r0, %r0}}, \
             {{%r1, %r1, %r1, %r1, %r1, %r1, %r1, %r1}};\nst.global.u32 [%a], %r10;\nret;\n}}\n",
            "{%r10, %r11, %r12, %r13, %r14, %r15, %r16, %r17}"
        )
    };
    for (sat, want) in [(".satfinite", i32::MAX), ("", (0x7FFF_FFF0u32 + 16 * 127 * 127) as i32)] {
        let program = Program::parse(&text(sat)).unwrap_or_else(|e| panic!("{e}"));
        let mut device = Device::new();
        let memory = device.alloc(4).unwrap();
        let params = vec![memory.to_le_bytes().to_vec()];
        let launch = Launch { entry: "k".into(), grid: [1; 3], block: [32, 1, 1], dynamic_smem: 0, params };
        device.run(&program, &launch, &Options::default()).unwrap_or_else(|r| panic!("{r}"));
        assert_eq!(device.download(memory, 4).unwrap(), want.to_le_bytes());
    }
}

/// A load of A from a packed tile in shared memory that lanes wrote, with what a test changes.
fn load(before: &str, sync: &str, address: &str) -> Result<(), Box<Report>> {
    let text = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{{\n.reg .pred %p;\n.reg .b32 %r<20>, %i;\n\
         .shared .align 128 .b8 sm[2048];\nmov.u32 %r0, %tid.x;\nmov.u32 %r1, sm;\nshl.b32 %r2, %r0, 6;\n\
         add.u32 %r3, %r1, %r2;\nmov.u32 %i, 0;\nL: st.shared.v4.u32 [%r3], {{%r0, %r0, %r0, %r0}};\nadd.u32 %r3, %r3, 16;\n\
         add.u32 %i, %i, 1;\nsetp.lt.u32 %p, %i, 4;\n@%p bra L;\nmov.u32 %r4, 16;\n{sync}\n{before}\n\
         wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {{%r10, %r11, %r12, %r13, %r14, %r15, %r16, %r17}}, {address}, %r4;\n\
         ret;\n}}\n"
    );
    let program = Program::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let launch = Launch { entry: "k".into(), grid: [1; 3], block: [32, 1, 1], dynamic_smem: 0, params: vec![] };
    Device::new().run(&program, &launch, &Options::default()).map(|_| ())
}

#[test]
fn misuse_is_reported() {
    let sync = "bar.warp.sync -1;";
    load("", sync, "[%r1]").unwrap_or_else(|r| panic!("{r}"));
    load("mov.u32 %r4, 24;", sync, "[%r1+64]").unwrap_or_else(|r| panic!("a padded tile: {r}"));
    for (before, sync, address, kind) in [
        ("", "", "[%r1]", ReportKind::Race),
        ("", sync, "[%r1+16]", ReportKind::Misaligned),
        ("mov.u32 %r4, 20;", sync, "[%r1]", ReportKind::Misaligned),
        ("", sync, "[%r1+1568]", ReportKind::OutOfBounds),
        ("mov.u32 %r4, %r0;", sync, "[%r1]", ReportKind::Invalid),
        ("add.u32 %r4, %r4, %r9;", sync, "[%r1]", ReportKind::Undefined),
        ("shl.b32 %r5, %r0, 5; add.u32 %r1, %r1, %r5;", sync, "[%r1]", ReportKind::Invalid),
        ("setp.lt.u32 %p, %r0, 4; @%p ret;", sync, "[%r1]", ReportKind::Divergence),
    ] {
        let report = load(before, sync, address).expect_err(before);
        assert_eq!(report.kind, kind, "{before} {address}: {report}");
    }
}
