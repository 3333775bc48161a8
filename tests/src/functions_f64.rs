//! How exact the functions of f64 are in compiled programs, on the simulator: against results of 80 digits,
//! and many more against the host's library.

use tilec::{CompileOptions, Target};
use tilec_sim::{Device, Launch, Options, Program};

/// Exact results, rounded to nearest.
const EXACT: &str = include_str!("functions_f64/exact.txt");
/// A function of one number.
type OfNumber = fn(f64) -> f64;

/// Inputs of a launch.
const COUNT: usize = 1024;

/// The results of `e`, an expression of `x`, at `inputs`, of which there are `COUNT` at most.
fn values(target: Target, e: &str, inputs: &[f64]) -> Vec<f64> {
    let source = format!(
        "kernel f(X: gmem f64[N], Y: gmem f64[N]) grid (b: ceildiv(N, 1024)) {{
            var x = reg f64[1024]
            copy X[b * 1024..] -> x
            copy {e} -> Y[b * 1024..]
        }}"
    );
    let done = tilec::compile(&source, &CompileOptions { target, ..CompileOptions::default() }).unwrap();
    let program = Program::parse(&done.ptx).unwrap();
    let mut device = Device::new();
    let bytes = 8 * inputs.len();
    let [x, y] = [(); 2].map(|()| device.alloc(bytes as u64).unwrap());
    device.upload(x, &inputs.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>()).unwrap();
    let params = vec![x.to_le_bytes().to_vec(), y.to_le_bytes().to_vec(), (inputs.len() as u32).to_le_bytes().to_vec()];
    let launch = Launch { entry: "f".to_owned(), grid: [1, 1, 1], block: [128, 1, 1], dynamic_smem: 0, params };
    device.run(&program, &launch, &Options::default()).unwrap();
    let out = device.download(y, bytes).unwrap();
    out.chunks(8).map(|b| f64::from_bits(b.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b)))).collect()
}

/// How many numbers of f64 lie between two of one sign.
fn apart(a: f64, b: f64) -> u64 {
    if a == b || (a.is_nan() && b.is_nan()) { 0 } else { a.to_bits().abs_diff(b.to_bits()) }
}

/// A row of the table: the operand, and the exact result as the sum of two.
fn row(line: &str) -> [f64; 3] {
    let mut words = line.split(' ').skip(1).map(|w| f64::from_bits(u64::from_str_radix(w, 16).unwrap()));
    [(); 3].map(|()| words.next().unwrap())
}

#[test]
fn functions_of_f64_are_within_the_documented_error() {
    for e in ["exp(x)", "exp2(x)", "log(x)", "log2(x)", "rsqrt(x)", "tanh(x)", "fast_tanh(x)"] {
        let name = format!("{} ", e.trim_start_matches("fast_"));
        let rows: Vec<[f64; 3]> = EXACT.lines().filter(|l| l.starts_with(&name)).map(row).collect();
        assert_eq!(rows.len(), 100, "{e}");
        let inputs: Vec<f64> = rows.iter().map(|r| r[0]).collect();
        for target in [Target::Sm70, Target::Sm80, Target::Sm90a] {
            for (&[x, exact, rest], y) in rows.iter().zip(values(target, e, &inputs)) {
                let unit = f64::from_bits(exact.abs().to_bits() + 1) - exact.abs();
                let error = ((y - exact) - rest).abs() / unit;
                assert!(error <= 2.0, "{e} of {x:e}: {y:e} for {exact:e}, off by {error}");
            }
        }
    }
}

#[test]
fn functions_of_f64_agree_with_the_host_everywhere() {
    let rows: [(&str, OfNumber, f64, f64); 8] = [
        ("exp(x)", f64::exp, -745.5, 710.0),
        ("exp(x)", f64::exp, -1.0, 1.0),
        ("exp2(x)", f64::exp2, -1075.5, 1024.5),
        ("exp2(x)", f64::exp2, -1.5, 1.5),
        ("log(x)", f64::ln, 0.5, 2.0),
        ("log(x)", f64::ln, 1e-310, 1e-307),
        ("log2(x)", f64::log2, 0.5, 2.0),
        ("log2(x)", f64::log2, 1.0, 1e300),
    ];
    for (e, host, low, high) in rows {
        let inputs: Vec<f64> = (0..COUNT).map(|i| low + (high - low) * (i as f64 / COUNT as f64)).collect();
        for (x, y) in inputs.iter().zip(values(Target::Sm70, e, &inputs)) {
            assert!(apart(host(*x), y) <= 2, "{e} of {x:e}: {y:e} for {:e}", host(*x));
        }
    }
}

#[test]
fn special_values_of_f64_functions_are_those_of_ieee_754() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let rows: [(&str, &[(f64, f64)]); 6] = [
        ("exp(x)", &[(inf, inf), (-inf, 0.0), (nan, nan), (0.0, 1.0), (1e300, inf), (-1e300, 0.0)]),
        ("exp2(x)", &[(inf, inf), (-inf, 0.0), (nan, nan), (-0.0, 1.0), (1024.0, inf), (-1074.0, 5e-324)]),
        ("log(x)", &[(inf, inf), (0.0, -inf), (-0.0, -inf), (-1.0, nan), (-inf, nan), (nan, nan), (1.0, 0.0)]),
        ("log2(x)", &[(inf, inf), (0.0, -inf), (-5e-324, nan), (nan, nan), (8.0, 3.0), (5e-324, -1074.0)]),
        ("rsqrt(x)", &[(inf, 0.0), (0.0, inf), (-0.0, -inf), (-1.0, nan), (nan, nan), (0.25, 2.0)]),
        (
            "tanh(x)",
            &[(inf, 1.0), (-inf, -1.0), (nan, nan), (0.0, 0.0), (-0.0, -0.0), (5e-324, 5e-324), (-1e-310, -1e-310)],
        ),
    ];
    for (e, rows) in rows {
        let inputs: Vec<f64> = rows.iter().map(|r| r.0).collect();
        for (&(x, exact), y) in rows.iter().zip(values(Target::Sm90a, e, &inputs)) {
            let same = exact.is_nan() && y.is_nan() || exact.to_bits() == y.to_bits();
            assert!(same, "{e} of {x:e}: {y:e} for {exact:e}");
        }
    }
}
