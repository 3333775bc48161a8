//! Emitted GEMM kernels: exact on integers at ragged sizes, no report; without any one barrier, a report.

#![allow(clippy::unwrap_used, reason = "tests")]

use tilec_sim::{Counters, Device, Launch, Options, Order, Program, Report, ReportKind};

/// An f16 that holds a small integer.
fn half(v: i32) -> u16 {
    if v == 0 {
        return 0;
    }
    let (sign, m) = if v < 0 { (0x8000, v.unsigned_abs()) } else { (0, v.unsigned_abs()) };
    let e = m.ilog2();
    (sign | ((e + 15) << 10) | ((m << (10 - e)) & 0x3FF)) as u16
}

fn from_half(h: u16) -> f32 {
    let (e, m) = (i32::from(h >> 10 & 31), f32::from(h & 0x3FF));
    let v = if e == 0 { m * 2f32.powi(-24) } else { (m + 1024.0) * 2f32.powi(e - 25) };
    if h & 0x8000 != 0 { -v } else { v }
}

/// One case: orders of A and B (`true` is column-major), f16 accumulators.
#[derive(Clone, Copy)]
struct Case {
    a_col: bool,
    b_col: bool,
    f16: bool,
    /// Rows and columns of a block's tile.
    tile: usize,
    m: usize,
    n: usize,
    k: usize,
}

/// Runs `ptx` on a case; the largest error and the counts.
fn run(ptx: &str, case: Case, options: &Options) -> Result<(f32, Counters), Box<Report>> {
    let Case { a_col, b_col, f16, tile, m, n, k } = case;
    let program = Program::parse(ptx).unwrap_or_else(|e| panic!("{e}"));
    let a = |i: usize, k: usize| ((i * 7 + k * 3) % 5) as i32 - 2;
    let b = |k: usize, j: usize| ((k * 5 + j * 11) % 7) as i32 - 3;
    let pack = |col: bool, rows: usize, cols: usize, f: &dyn Fn(usize, usize) -> i32| -> Vec<u8> {
        let at = |x: usize| if col { f(x % rows, x / rows) } else { f(x / cols, x % cols) };
        (0..rows * cols).flat_map(|x| half(at(x)).to_le_bytes()).collect()
    };
    let mut device = Device::new();
    let mut put = |data: &[u8]| -> u64 {
        let at = device.alloc(data.len() as u64).unwrap();
        device.upload(at, data).unwrap();
        at
    };
    let (da, db) = (put(&pack(a_col, m, k, &a)), put(&pack(b_col, k, n, &b)));
    let size = if f16 { 2 } else { 4 };
    let dc = device.alloc((m * n * size) as u64).unwrap();
    let mut params: Vec<Vec<u8>> = [da, db, dc].map(|p| p.to_le_bytes().to_vec()).into();
    params.extend([1.0f32, 0.0].map(|v| v.to_le_bytes().to_vec()));
    params.extend([m, k, n].map(|v| (v as u32).to_le_bytes().to_vec()));
    let (a_ld, b_ld) = (if a_col { m } else { k }, if b_col { k } else { n });
    params.extend([a_ld, b_ld, n].map(|v| (v as i64).to_le_bytes().to_vec()));
    let (gm, gn) = (m.div_ceil(tile) as u32, n.div_ceil(tile) as u32);
    let grid = [gm * 8, gn.div_ceil(8), 1];
    let launch = Launch { entry: "gemm".into(), grid, block: [128, 1, 1], dynamic_smem: 0, params };
    let counters = device.run(&program, &launch, options)?;
    let c = device.download(dc, m * n * size).unwrap();
    let mut worst = 0f32;
    for i in 0..m {
        for j in 0..n {
            let want: i32 = (0..k).map(|x| a(i, x) * b(x, j)).sum();
            let at = (i * n + j) * size;
            let got = if f16 {
                from_half(u16::from_le_bytes([c[at], c[at + 1]]))
            } else {
                f32::from_le_bytes([c[at], c[at + 1], c[at + 2], c[at + 3]])
            };
            worst = worst.max((got - want as f32).abs());
        }
    }
    Ok((worst, counters))
}

/// The stored kernels with their orders, accumulator, and the multiple that extents must be of.
const KERNELS: [(&str, &str, bool, bool, bool, usize); 4] = [
    ("rr_f32", include_str!("data/gemm_rr_f32.ptx"), false, false, false, 8),
    ("rr_f32_plain", include_str!("data/gemm_rr_f32_plain.ptx"), false, false, false, 8),
    ("cc_f16_unaligned", include_str!("data/gemm_cc_f16_unaligned.ptx"), true, true, true, 1),
    ("cr_f16_single", include_str!("data/gemm_cr_f16_single.ptx"), true, false, true, 2),
];

fn case(i: usize, m: usize, n: usize, k: usize) -> Case {
    let (_, _, a_col, b_col, f16, align) = KERNELS[i];
    let up = |v: usize| v.next_multiple_of(align);
    Case { a_col, b_col, f16, tile: 64, m: up(m), n: up(n), k: up(k) }
}

#[test]
fn products_are_exact_at_ragged_sizes() {
    for (i, (name, ptx, ..)) in KERNELS.iter().enumerate() {
        for (m, n, k) in [(1, 1, 1), (67, 35, 17), (33, 130, 40), (64, 64, 16)] {
            match run(ptx, case(i, m, n, k), &Options::default()) {
                Ok((worst, _)) => assert_eq!(worst, 0.0, "{name} {m}x{n}x{k}"),
                Err(report) => panic!("{name} {m}x{n}x{k}: {report}"),
            }
        }
    }
}

#[test]
fn order_seed_and_threads_change_nothing() {
    let reference = run(KERNELS[0].1, case(0, 130, 70, 40), &Options::default()).unwrap();
    for (order, seed, threads) in
        [(Order::Reverse, 0, 1), (Order::Seeded, 7, 1), (Order::Seeded, 8, 2), (Order::Forward, 99, 3)]
    {
        let options = Options { order, seed, threads, ..Options::default() };
        let (worst, counters) = run(KERNELS[0].1, case(0, 130, 70, 40), &options).unwrap();
        assert_eq!(worst, 0.0);
        assert_eq!(counters, reference.1);
    }
}

#[test]
fn every_barrier_is_missed() {
    for (i, (name, ptx, ..)) in KERNELS.iter().enumerate() {
        let barriers: Vec<usize> = ptx.match_indices("bar.sync").map(|(at, _)| at).collect();
        assert!(barriers.len() >= 2, "{name} has {} barriers", barriers.len());
        for at in barriers {
            let end = at + ptx[at..].find(';').unwrap() + 1;
            let mutant = format!("{}{}", &ptx[..at], &ptx[end..]);
            let report = run(&mutant, case(i, 67, 67, 100), &Options::default()).map(|_| ()).expect_err(name);
            assert!(matches!(report.kind, ReportKind::Race | ReportKind::Uninitialised), "{name}: {report}");
            let place = report.place.as_ref().expect("a race has a place");
            assert!(place.source.is_some() && place.ptx_line > 0 && report.address.is_some(), "{report}");
        }
    }
}

#[test]
fn an_access_past_the_end_is_reported() {
    // Fewer rows of A than the kernel's argument says.
    let ptx = KERNELS[0].1.replacen("ld.param.u32\t%r0, [gemm_M]", "mov.u32\t%r0, 131", 1);
    assert_ne!(ptx, KERNELS[0].1);
    let report = run(&ptx, case(0, 100, 64, 16), &Options::default()).map(|_| ()).expect_err("rows do not exist");
    assert_eq!(report.kind, ReportKind::OutOfBounds, "{report}");
}

#[test]
fn counts_follow_from_the_shape() {
    let (_, counters) = run(KERNELS[0].1, case(0, 128, 128, 64), &Options::default()).unwrap();
    // Four blocks of four warps; a warp computes 32x32x64 in products of four 8x8x4 each.
    assert_eq!(counters.mma, 4 * 4 * (32 * 32 * 64) / (4 * 8 * 8 * 4));
    let (loads, stores) = (counters.sum("ld.shared"), counters.sum("st.shared"));
    assert_eq!((loads.conflicts(), stores.conflicts()), (0, 0), "swizzled");
    let (_, plain) = run(KERNELS[1].1, case(1, 128, 128, 64), &Options::default()).unwrap();
    assert!(plain.sum("ld.shared").conflicts() > 0, "not swizzled");
    // Every element of A is loaded by two columns of blocks, of B by two rows.
    assert_eq!(counters.sum("ld.global").bytes, 2 * 2 * 128 * 64 * 2);
    assert_eq!(counters.sum("st.global").bytes, 128 * 128 * 4);
}
