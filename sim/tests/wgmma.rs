//! `wgmma` against sums: every type, every swizzle, both orders of A and B in shared memory, with the operands brought by TMA copies.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fmt::Write as _;
use tilec_sim::{Device, Landing, Launch, Options, Program, Swizzle, TensorElement, TensorMap};

#[derive(Clone, Copy, Debug)]
struct Case {
    /// Types of D, A and B as the instruction names them.
    types: [&'static str; 3],
    /// Bytes of an element, and of a row of the swizzle's pattern; 16 without one.
    size: usize,
    span: usize,
    n: usize,
    /// Whether neighbours of A and B in memory are those along M and N.
    across: [bool; 2],
}

/// The bits of a small integer in a type.
fn encode(ty: &str, v: i32) -> u32 {
    let float = |bias: i32, fraction: u32, width: u32| {
        if v == 0 {
            return 0;
        }
        let m = v.unsigned_abs();
        let e = m.ilog2();
        let sign = u32::from(v < 0) << (width - 1);
        sign | ((e as i32 + bias) as u32) << fraction | (m << fraction >> e) & ((1 << fraction) - 1)
    };
    match ty {
        "f16" => float(15, 10, 16),
        "bf16" => float(127, 7, 16),
        "tf32" => float(127, 23, 32),
        "e4m3" => float(7, 3, 8),
        "e5m2" => float(15, 2, 8),
        _ => v as u32 & 0xFF,
    }
}

fn decode(ty: &str, bits: u32) -> i32 {
    match ty {
        "f32" => f32::from_bits(bits) as i32,
        "s32" => bits as i32,
        _ => {
            let (e, m) = ((bits >> 10 & 31) as i32, f64::from(bits & 0x3FF) + 1024.0);
            let v = if e == 0 { 0.0 } else { m * f64::from(e - 25).exp2() };
            (if bits & 0x8000 != 0 { -v } else { v }) as i32
        }
    }
}

fn a(ty: &str, i: usize, k: usize) -> i32 {
    let v = ((i * 7 + k * 3 + i * k) % 5) as i32 - 2;
    if ty == "u8" { v + 2 } else { v }
}

fn b(ty: &str, j: usize, k: usize) -> i32 {
    let v = ((j * 11 + k * 5 + j * k) % 3) as i32 - 1;
    if ty == "u8" { v + 1 } else { v }
}

/// Panels of shared memory: `rows` of `span` bytes each.
struct Operand {
    panels: usize,
    rows: usize,
    descriptor: u64,
}

/// How an operand of `mn` rows by `k` columns is in shared memory (PTX 9.7.15.5.1).
fn operand(case: &Case, mn: usize, k: usize, across: bool) -> Operand {
    let mode = [(16, 0u64), (32, 3), (64, 2), (128, 1)].iter().find(|(span, _)| *span == case.span).unwrap().1;
    let (length, rows) = if across { (mn * case.size, k) } else { (k * case.size, mn) };
    let panels = length.div_ceil(case.span);
    let panel = (case.span * rows) as u64;
    let (leading, stride) = match (across, case.span) {
        // Cores of eight units: to the next along K, and to the next eight rows.
        (false, 16) => (panel, 128),
        (false, span) => (16, 8 * span as u64),
        (true, 16) => (128, panel),
        (true, span) => (panel, 8 * span as u64),
    };
    Operand { panels, rows, descriptor: leading >> 4 << 16 | stride >> 4 << 32 | mode << 62 }
}

fn kernel(case: &Case, a: &Operand, b: &Operand, k: usize) -> String {
    let per = if case.types[0] == "f16" { case.n / 4 } else { case.n / 2 };
    let bytes = |o: &Operand| o.panels * o.rows * case.span;
    // B on a border of the pattern.
    let b_at = bytes(a).next_multiple_of(1024);
    let mut loads = String::new();
    for (operand, map, at, columns) in [(a, "ma", 0, case.across[0]), (b, "mb", b_at, case.across[1])] {
        let _ = columns;
        writeln!(loads, "mov.b64 %rd0, {map}; cvta.param.u64 %rd0, %rd0;").unwrap();
        for panel in 0..operand.panels {
            let to = at + panel * operand.rows * case.span;
            writeln!(
                loads,
                "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1+{to}], [%rd0, {{{}, 0}}], [bar];",
                panel * case.span / case.size
            )
            .unwrap();
        }
    }
    let list: Vec<String> = (0..per).map(|i| format!("%d{i}")).collect();
    let flags = match case.size {
        2 => format!(", 1, 1, {}, {}", u8::from(case.across[0]), u8::from(case.across[1])),
        _ if case.types[0] == "s32" => String::new(),
        _ => ", 1, 1".to_owned(),
    };
    let [d, ta, tb] = case.types;
    let mut stores = String::new();
    for i in 0..per {
        writeln!(stores, "st.global.b32 [%rd7+{}], %d{i};", 4 * i).unwrap();
    }
    format!(
        ".version 8.4\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 dyn[];\n\
         .visible .entry k(.param .align 64 .b8 ma[128], .param .align 64 .b8 mb[128], .param .u64 out)\n{{\n\
         .reg .pred %p<4>; .reg .b32 %r<16>, %d<128>; .reg .b64 %rd<16>; .shared .align 8 .b64 bar;\n\
         mov.u32 %r0, %tid.x; mov.u32 %r1, dyn; setp.ne.u32 %p0, %r0, 0; @%p0 bra R;\n\
         mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster;\n\
         mbarrier.arrive.expect_tx.shared.b64 _, [bar], {total};\n{loads}R: bar.sync 0;\n\
         L: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra L;\n\
         shr.u32 %r2, %r1, 4; cvt.u64.u32 %rd1, %r2; or.b64 %rd2, %rd1, {ad:#x}; add.s64 %rd1, %rd1, {bo}; or.b64 %rd3, %rd1, {bd:#x};\n\
         wgmma.fence.sync.aligned;\n\
         wgmma.mma_async.sync.aligned.m64n{n}k{k}.{d}.{ta}.{tb} {{{regs}}}, %rd2, %rd3, 0{flags};\n\
         wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n\
         ld.param.u64 %rd6, [out]; mul.wide.u32 %rd7, %r0, {row}; add.s64 %rd7, %rd7, %rd6;\n{stores}ret;\n}}\n",
        total = bytes(a) + bytes(b),
        ad = a.descriptor,
        bd = b.descriptor,
        bo = b_at / 16,
        n = case.n,
        regs = list.join(","),
        row = 4 * per,
    )
}

fn check(case: Case) {
    let k = 32 / case.size;
    let [d, ta, tb] = case.types;
    let (left, right) = (operand(&case, 64, k, case.across[0]), operand(&case, case.n, k, case.across[1]));
    let text = kernel(&case, &left, &right, k);
    let program = Program::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut device = Device::new();
    let mut map = |mn: usize, across: bool, rows: usize, bits: &dyn Fn(usize, usize) -> u32| {
        // Rows are whole multiples of 16 bytes, and at least a row of the pattern.
        let inner = if across { mn } else { k };
        let outer = if across { k } else { mn };
        let mut data = Vec::new();
        for y in 0..outer {
            for x in 0..inner {
                let v = if across { bits(x, y) } else { bits(y, x) };
                data.extend_from_slice(&v.to_le_bytes()[..case.size]);
            }
        }
        let at = device.alloc(data.len() as u64).unwrap();
        device.upload(at, &data).unwrap();
        let element = match case.size {
            1 => TensorElement::U8,
            2 => TensorElement::U16,
            _ => TensorElement::U32,
        };
        let swizzle = match case.span {
            16 => Swizzle::None,
            32 => Swizzle::Bytes32,
            64 => Swizzle::Bytes64,
            _ => Swizzle::Bytes128,
        };
        let sizes = [(case.span / case.size) as u32, rows as u32];
        let map = TensorMap { swizzle, ..TensorMap::packed(element, at, &[inner as u64, outer as u64], &sizes) };
        map.encode().unwrap().to_vec()
    };
    let ma = map(64, case.across[0], left.rows, &|i, k| encode(ta, a(ta, i, k)));
    let mb = map(case.n, case.across[1], right.rows, &|j, k| encode(tb, b(tb, j, k)));
    let per = if d == "f16" { case.n / 4 } else { case.n / 2 };
    let out = device.alloc((128 * 4 * per) as u64).unwrap();
    let params = vec![ma, mb, out.to_le_bytes().to_vec()];
    let launch = Launch { entry: "k".into(), grid: [1; 3], block: [128, 1, 1], dynamic_smem: 128 << 10, params };
    for landing in [Landing::Early, Landing::Latest] {
        let options = Options { landing, fuel: 1_000_000, ..Options::default() };
        device.run(&program, &launch, &options).unwrap_or_else(|r| panic!("{case:?} {landing:?}: {r}\n{text}"));
        let words = device.download(out, 512 * per).unwrap();
        for thread in 0..128 {
            let (w, lane) = (thread / 32, thread % 32);
            for i in 0..case.n / 2 {
                let (m, n) = (16 * w + lane / 4 + 8 * (i >> 1 & 1), 8 * (i >> 2) + 2 * (lane % 4) + (i & 1));
                let want: i32 = (0..k).map(|x| a(ta, m, x) * b(tb, n, x)).sum();
                let word = |r: usize| {
                    let at = 4 * (per * thread + r);
                    u32::from_le_bytes(words[at..at + 4].try_into().unwrap())
                };
                let bits = if d == "f16" { word(i / 2) >> (16 * (i % 2)) & 0xFFFF } else { word(i) };
                assert_eq!(decode(d, bits), want, "{case:?} {landing:?} m {m} n {n}");
            }
        }
    }
}

const SPANS: [usize; 4] = [16, 32, 64, 128];

#[test]
fn every_type_along_k() {
    for (types, size) in [
        (["f32", "f16", "f16"], 2),
        (["f16", "f16", "f16"], 2),
        (["f32", "bf16", "bf16"], 2),
        (["f32", "tf32", "tf32"], 4),
        (["f32", "e4m3", "e5m2"], 1),
        (["f16", "e5m2", "e5m2"], 1),
        (["f16", "e5m2", "e4m3"], 1),
        (["f32", "e4m3", "e4m3"], 1),
        (["s32", "s8", "s8"], 1),
        (["s32", "u8", "s8"], 1),
        (["s32", "u8", "u8"], 1),
    ] {
        // Not powers of two, too: bytes have fewer counts of columns.
        let odd = if types[0] == "s32" { [24, 80, 160, 208] } else { [24, 72, 160, 200] };
        for n in [8, 64].into_iter().chain(odd) {
            check(Case { types, size, span: 32, n, across: [false; 2] });
        }
    }
}

#[test]
fn every_swizzle_in_both_orders() {
    for span in SPANS {
        for across in [[false, false], [true, false], [false, true], [true, true]] {
            // Along K a row has 32 bytes; boxes of the wider patterns have more, the rest is outside and is zero.
            for n in [64, 72, 128, 200, 256] {
                check(Case { types: ["f32", "f16", "f16"], size: 2, span, n, across });
            }
        }
    }
}
