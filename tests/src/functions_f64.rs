//! Accuracy of the functions of f64 in compiled programs, on the simulator: compared with results of 80 digits, and
//! many more with the host's library.

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
    values_of_two(target, e, inputs, inputs)
}

/// The results of `e`, an expression of `x` and `y`.
fn values_of_two(target: Target, e: &str, inputs: &[f64], seconds: &[f64]) -> Vec<f64> {
    let source = format!(
        "kernel f(X: gmem f64[N], Y: gmem f64[N], Z: gmem f64[N]) grid (b: ceildiv(N, 1024)) {{
            var x = reg f64[1024]
            var y = reg f64[1024]
            copy X[b * 1024..] -> x
            copy Y[b * 1024..] -> y
            copy {e} -> Z[b * 1024..]
        }}"
    );
    let done = tilec::compile(&source, &CompileOptions { target, ..CompileOptions::default() }).unwrap();
    let program = Program::parse(&done.ptx).unwrap();
    let mut device = Device::new();
    let bytes = 8 * inputs.len();
    let [x, y, z] = [(); 3].map(|()| device.alloc(bytes as u64).unwrap());
    for (at, numbers) in [(x, inputs), (y, seconds)] {
        device.upload(at, &numbers.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>()).unwrap();
    }
    let mut params: Vec<Vec<u8>> = [x, y, z].iter().map(|p| p.to_le_bytes().to_vec()).collect();
    params.push((inputs.len() as u32).to_le_bytes().to_vec());
    let launch = Launch { entry: "f".to_owned(), grid: [1, 1, 1], block: [128, 1, 1], dynamic_smem: 0, params };
    device.run(&program, &launch, &Options::default()).unwrap();
    let out = device.download(z, bytes).unwrap();
    out.chunks(8).map(|b| f64::from_bits(b.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b)))).collect()
}

/// Number of f64 values between two values of one sign.
fn apart(a: f64, b: f64) -> u64 {
    if a == b || (a.is_nan() && b.is_nan()) { 0 } else { a.to_bits().abs_diff(b.to_bits()) }
}

/// The numbers of rows of the table: operands, and the exact result as the sum of two.
fn rows<const N: usize>(name: &str) -> Vec<[f64; N]> {
    let row = |line: &str| {
        let mut words = line.split(' ').skip(1).map(|w| f64::from_bits(u64::from_str_radix(w, 16).unwrap()));
        [(); N].map(|()| words.next().unwrap())
    };
    let rows: Vec<[f64; N]> = EXACT.lines().filter(|l| l.split(' ').next() == Some(name)).map(row).collect();
    assert_eq!(rows.len(), 100, "{name}");
    rows
}

/// By how many units in the last place `y` is off.
fn units(y: f64, [exact, rest]: [f64; 2]) -> f64 {
    let unit = f64::from_bits(exact.abs().to_bits() + 1) - exact.abs();
    ((y - exact) - rest).abs() / unit
}

#[test]
fn functions_of_f64_are_within_the_documented_error() {
    let functions =
        ["exp(x)", "exp2(x)", "log(x)", "log2(x)", "rsqrt(x)", "tanh(x)", "fast_tanh(x)", "sin(x)", "cos(x)", "erf(x)"];
    for e in functions {
        let rows = rows::<3>(e.trim_start_matches("fast_"));
        let inputs: Vec<f64> = rows.iter().map(|r| r[0]).collect();
        for target in [Target::Sm70, Target::Sm80, Target::Sm90a] {
            for (&[x, exact, rest], y) in rows.iter().zip(values(target, e, &inputs)) {
                let error = units(y, [exact, rest]);
                assert!(error <= 2.0, "{e} of {x:e}: {y:e} for {exact:e}, off by {error}");
            }
        }
    }
}

#[test]
fn powers_of_f64_are_within_the_documented_error() {
    let rows = rows::<4>("pow(x,y)");
    let [xs, ys] = [0, 1].map(|i| rows.iter().map(|r| r[i]).collect::<Vec<f64>>());
    for target in [Target::Sm70, Target::Sm80, Target::Sm90a] {
        for (&[x, y, exact, rest], z) in rows.iter().zip(values_of_two(target, "pow(x, y)", &xs, &ys)) {
            let error = units(z, [exact, rest]);
            assert!(error <= 2.0, "{x:e} to the power of {y:e}: {z:e} for {exact:e}, off by {error}");
        }
    }
}

/// Every pair of numbers for which IEEE 754 defines the power, and some others as the host computes them.
#[test]
fn special_powers_of_f64_are_those_of_ieee_754() {
    let (inf, nan, odd) = (f64::INFINITY, f64::NAN, 9_007_199_254_740_991.0);
    let sizes = [0.0, 5e-324, 1e-300, 0.5, 1.0, 1.5, 2.0, 3.0, 7.0, odd, odd + 1.0, 1e300, f64::MAX, inf, nan];
    let numbers: Vec<f64> = sizes.iter().flat_map(|&x| [x, -x]).collect();
    let pairs: Vec<[f64; 2]> = numbers.iter().flat_map(|&x| numbers.iter().map(move |&y| [x, y])).collect();
    let [xs, ys] = [0, 1].map(|i| pairs.iter().map(|p| p[i]).collect::<Vec<f64>>());
    for (&[x, y], z) in pairs.iter().zip(values_of_two(Target::Sm80, "pow(x, y)", &xs, &ys)) {
        let host = x.powf(y);
        let same =
            z.is_nan() && host.is_nan() || z.is_sign_negative() == host.is_sign_negative() && apart(host, z) <= 2;
        assert!(same, "{x:e} to the power of {y:e}: {z:e} for {host:e}");
    }
}

/// The interpreter's error function, of which the host has none.
#[test]
fn the_error_function_of_the_reference_is_near() {
    for [x, exact, rest] in rows::<3>("erf(x)") {
        let error = units(tilec_ir::numerics::erf(x), [exact, rest]);
        assert!(error <= 1.5, "{x:e}: off by {error}");
    }
}

#[test]
fn functions_of_f64_agree_with_the_host_everywhere() {
    let rows: [(&str, OfNumber, f64, f64); 14] = [
        ("sin(x)", f64::sin, -10.0, 10.0),
        ("cos(x)", f64::cos, -10.0, 10.0),
        ("sin(x)", f64::sin, 1.0e9, 1.2e9),
        ("cos(x)", f64::cos, 1e300, 1e308),
        ("sin(x)", f64::sin, 0.0, 1e-307),
        ("cos(x)", f64::cos, 1e5, 1e6),
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
    let tiny = 5e-324;
    let rows: [(&str, &[(f64, f64)]); 9] = [
        ("sin(x)", &[(inf, nan), (-inf, nan), (nan, nan), (0.0, 0.0), (-0.0, -0.0), (tiny, tiny), (-tiny, -tiny)]),
        ("cos(x)", &[(inf, nan), (-inf, nan), (nan, nan), (0.0, 1.0), (-0.0, 1.0), (tiny, 1.0), (-1e-300, 1.0)]),
        ("erf(x)", &[(inf, 1.0), (-inf, -1.0), (nan, nan), (0.0, 0.0), (-0.0, -0.0), (tiny, tiny), (6.0, 1.0)]),
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
