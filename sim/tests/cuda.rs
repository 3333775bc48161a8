//! CUDA kernels compiled by NVRTC 12.9 (`data/cuda`, source beside the PTX): right ones compute what they should, without a
//! report, in any order; wrong ones are reported.
#![allow(clippy::unwrap_used, reason = "tests")]

use tilec_sim::{Device, Landing, Launch, Options, Order, Program, Report, ReportKind};

/// What a launch needs beside its kernel.
struct Shape {
    grid: [u32; 3],
    block: [u32; 3],
    dynamic: u32,
    n: i32,
}

/// Runs `kernel(in, out, n)`; the contents of `out`, which starts as zeros.
fn run(name: &str, ptx: &str, input: &[u8], out: usize, s: &Shape, options: &Options) -> Result<Vec<u8>, Box<Report>> {
    let program = Program::parse(ptx).unwrap_or_else(|e| panic!("{name}: {e}"));
    let mut device = Device::new();
    let a = device.alloc(input.len() as u64).unwrap();
    device.upload(a, input).unwrap();
    let b = device.alloc(out as u64).unwrap();
    device.upload(b, &vec![0; out]).unwrap();
    let params = vec![a.to_le_bytes().to_vec(), b.to_le_bytes().to_vec(), s.n.to_le_bytes().to_vec()];
    let launch = Launch { entry: name.into(), grid: s.grid, block: s.block, dynamic_smem: s.dynamic, params };
    device.run(&program, &launch, options)?;
    device.download(b, out)
}

/// As [`run`] in several orders, which must agree.
#[track_caller]
fn agreed(name: &str, ptx: &str, input: &[u8], out: usize, shape: &Shape) -> Vec<u8> {
    let mut first: Option<Vec<u8>> = None;
    for (order, seed, threads, landing) in [
        (Order::Forward, 0, 1, Landing::Early),
        (Order::Reverse, 1, 1, Landing::Late),
        (Order::Seeded, 2, 1, Landing::Late),
        (Order::Forward, 3, 2, Landing::Early),
    ] {
        let options = Options { order, seed, threads, landing, ..Options::default() };
        let got = run(name, ptx, input, out, shape, &options).unwrap_or_else(|r| panic!("{name}: {r}"));
        assert!(first.as_ref().is_none_or(|f| *f == got), "{name}: the order changes the result");
        first = Some(got);
    }
    first.unwrap()
}

fn bytes<const N: usize, T>(values: impl IntoIterator<Item = T>, f: impl Fn(T) -> [u8; N]) -> Vec<u8> {
    values.into_iter().flat_map(f).collect()
}

fn floats(b: &[u8]) -> Vec<f32> {
    b.chunks(4).map(|c| f32::from_le_bytes(c.try_into().unwrap())).collect()
}

fn ints(b: &[u8]) -> Vec<i32> {
    b.chunks(4).map(|c| i32::from_le_bytes(c.try_into().unwrap())).collect()
}

macro_rules! ptx {
    ($name:literal) => {
        include_str!(concat!("data/cuda/", $name, ".ptx"))
    };
}

#[test]
fn sums() {
    let n = 1000;
    let input = bytes((0..n).map(|i| (i % 17) as f32), f32::to_le_bytes);
    let shape = Shape { grid: [3, 1, 1], block: [128, 1, 1], dynamic: 16, n };
    let want: i32 = (0..n).map(|i| i % 17).sum();
    assert_eq!(floats(&agreed("reduce", ptx!("reduce"), &input, 4, &shape))[0], want as f32);
}

#[test]
fn prefix_sums() {
    let n = 200;
    let input = bytes((0..n).map(|i| i * 7 % 23), i32::to_le_bytes);
    let shape = Shape { grid: [1, 1, 1], block: [256, 1, 1], dynamic: 0, n };
    let got = ints(&agreed("scan", ptx!("scan"), &input, 4 * n as usize, &shape));
    let mut sum = 0;
    for (i, v) in got.iter().enumerate() {
        sum += i as i32 * 7 % 23;
        assert_eq!(*v, sum);
    }
}

#[test]
fn histograms() {
    let input: Vec<u8> = (0..1000u32).map(|i| (i * i % 251) as u8).collect();
    let shape = Shape { grid: [4, 1, 1], block: [96, 1, 1], dynamic: 0, n: 1000 };
    let got = ints(&agreed("histogram", ptx!("histogram"), &input, 1024, &shape));
    for (value, count) in got.iter().enumerate() {
        assert_eq!(*count as usize, input.iter().filter(|v| usize::from(**v) == value).count());
    }
}

#[test]
fn transposes() {
    let n = 45usize;
    let input = bytes((0..n * n).map(|i| i as f32), f32::to_le_bytes);
    let shape = Shape { grid: [2, 2, 1], block: [32, 8, 1], dynamic: 0, n: n as i32 };
    let got = floats(&agreed("transpose", ptx!("transpose"), &input, 4 * n * n, &shape));
    assert!((0..n * n).all(|i| got[i] == (i % n * n + i / n) as f32));
}

#[test]
fn softmax_of_rows() {
    let n = 70usize;
    let value = |i: usize| ((i * 37 % 101) as f32 - 50.0) / 8.0;
    let input = bytes((0..3 * n).map(value), f32::to_le_bytes);
    let shape = Shape { grid: [3, 1, 1], block: [64, 1, 1], dynamic: 0, n: n as i32 };
    let got = floats(&agreed("softmax", ptx!("softmax"), &input, 4 * 3 * n, &shape));
    for row in 0..3 {
        let exps: Vec<f64> = (0..n).map(|i| f64::from(value(row * n + i)).exp()).collect();
        let sum: f64 = exps.iter().sum();
        for (i, e) in exps.iter().enumerate() {
            let relative = (f64::from(got[row * n + i]) - e / sum).abs() / (e / sum);
            assert!(relative < 1e-5, "row {row} element {i}: {relative}");
        }
    }
}

#[test]
fn rings_of_asynchronous_copies() {
    for n in [1, 2, 5] {
        let input = bytes((0..n * 512).map(|i| i as f32), f32::to_le_bytes);
        let shape = Shape { grid: [1, 1, 1], block: [128, 1, 1], dynamic: 0, n };
        let got = floats(&agreed("ring", ptx!("ring"), &input, 2048 * n as usize, &shape));
        for (i, v) in got.iter().enumerate() {
            assert_eq!(*v, (i ^ 4) as f32 + if i % 4 == 0 { 1.0 } else { 0.0 });
        }
    }
    // Every barrier and every wait is needed.
    let ptx = ptx!("ring");
    let shape = Shape { grid: [1, 1, 1], block: [128, 1, 1], dynamic: 0, n: 11 };
    let input = vec![0; 2048 * 11];
    for needle in ["bar.sync", "cp.async.wait_group"] {
        for (at, _) in ptx.match_indices(needle) {
            let end = at + ptx[at..].find(';').unwrap() + 1;
            let mutant = format!("{}{}", &ptx[..at], &ptx[end..]);
            for landing in [Landing::Early, Landing::Late] {
                let options = Options { landing, ..Options::default() };
                let kind =
                    run("ring", &mutant, &input, 2048 * 11, &shape, &options).map(|_| ()).expect_err(needle).kind;
                assert!(matches!(kind, ReportKind::Race | ReportKind::Uninitialised), "{kind:?}");
            }
        }
    }
}

#[test]
fn wrong_kernels_are_reported() {
    let input = vec![0; 1024];
    let shape = Shape { grid: [1, 1, 1], block: [256, 1, 1], dynamic: 0, n: 256 };
    let racy = run("racy", ptx!("racy"), &input, 1024, &shape, &Options::default()).map(|_| ()).expect_err("a race");
    assert!(matches!(racy.kind, ReportKind::Race | ReportKind::Uninitialised), "{racy}");
    assert!(racy.place.as_ref().is_some_and(|p| p.source.is_some()), "{racy}");
    let outside = run("outside", ptx!("outside"), &input, 1024, &shape, &Options::default())
        .map(|_| ())
        .expect_err("out of bounds");
    assert_eq!(outside.kind, ReportKind::OutOfBounds, "{outside}");
    assert_eq!(outside.place.unwrap().thread, [255, 0, 0]);
}
