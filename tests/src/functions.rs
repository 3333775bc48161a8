//! Accuracy of the functions of f32 in compiled programs, on the simulator, compared with `f64`.
//!
//! The simulator rounds the approximate instructions correctly; a device may be off by as much as the PTX manual
//! allows.

use crate::loops::erf;
use tilec::{CompileOptions, Target};
use tilec_sim::{Device, Launch, Options, Program};

/// A function of one number.
type OfNumber = fn(f32) -> f32;

/// Inputs of a launch: whole blocks of it.
const COUNT: usize = 8192;

/// The results of `e`, an expression of `x`, at some numbers from `low` to `high`.
fn values(e: &str, low: f32, high: f32) -> Vec<(f32, f32)> {
    let source = format!(
        "kernel f(X: gmem f32[N], Y: gmem f32[N]) grid (b: ceildiv(N, 1024)) {{
            var x = reg f32[1024]
            copy X[b * 1024..] -> x
            copy {e} -> Y[b * 1024..]
        }}"
    );
    let options = CompileOptions { target: Target::Sm70, ..CompileOptions::default() };
    let done = tilec::compile(&source, &options).unwrap();
    let program = Program::parse(&done.ptx).unwrap();
    let mut device = Device::new();
    let bytes = 4 * COUNT;
    let [x, y] = [(); 2].map(|()| device.alloc(bytes as u64).unwrap());
    let inputs: Vec<f32> = (0..COUNT).map(|i| low + (high - low) * (i as f32 / COUNT as f32)).collect();
    device.upload(x, &inputs.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>()).unwrap();
    let params = vec![x.to_le_bytes().to_vec(), y.to_le_bytes().to_vec(), (COUNT as u32).to_le_bytes().to_vec()];
    let grid = [COUNT as u32 / 1024, 1, 1];
    let launch = Launch { entry: "f".to_owned(), grid, block: [128, 1, 1], dynamic_smem: 0, params };
    device.run(&program, &launch, &Options::default()).unwrap();
    let out = device.download(y, bytes).unwrap();
    let out = out.chunks(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
    inputs.into_iter().zip(out).collect()
}

/// Units in the last place of a number as an f32.
fn ulp(x: f64) -> f64 {
    f64::from(f32::from_bits((x.abs() as f32).to_bits() + 1)) - f64::from(x.abs() as f32)
}

/// The largest error, in units in the last place of the exact result.
fn worst(e: &str, exact: impl Fn(f64) -> f64, low: f32, high: f32) -> f64 {
    let error = |(x, y): (f32, f32)| (f64::from(y) - exact(f64::from(x))).abs() / ulp(exact(f64::from(x)));
    values(e, low, high).into_iter().map(error).fold(0.0, f64::max)
}

#[test]
fn erf_is_within_the_documented_error() {
    let near = worst("erf(x)", erf, 1e-3, 1.0);
    let far = worst("erf(x)", erf, 1.0, 4.5);
    assert!(near <= 1.1 && far <= 1.1, "{near} {far}");
    assert!(worst("erf(x)", erf, -4.5, -1e-3) <= 1.1);
    assert!(values("erf(x)", 5.0, 1e6).iter().all(|&(_, y)| y == 1.0));
    assert!(values("erf(x - x / 0.0 * 0.0)", 0.5, 1.5).iter().all(|(_, y)| y.is_nan()));
}

#[test]
fn logarithms_are_within_the_documented_error() {
    for (e, exact) in [("log2(x)", f64::log2 as fn(f64) -> f64), ("log(x)", f64::ln)] {
        let relative = |(x, y): (f32, f32)| (f64::from(y) / exact(f64::from(x)) - 1.0).abs();
        let far = [(2.0, 1e6), (1e-6, 0.5)].into_iter().flat_map(|(low, high)| values(e, low, high));
        assert!(far.map(relative).fold(0.0, f64::max) <= 1.5 * 2f64.powi(-22), "{e}");
        let absolute = |(x, y): (f32, f32)| (f64::from(y) - exact(f64::from(x))).abs();
        assert!(values(e, 0.5, 2.0).into_iter().map(absolute).fold(0.0, f64::max) <= 2f64.powi(-22), "{e}");
        assert!(values(e, -2.0, -1.0).iter().all(|(_, y)| y.is_nan()), "{e}");
    }
}

#[test]
fn sigmoid_and_gelu_are_near() {
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let silu = |x: f64| x * sigmoid(x);
    let gelu = |x: f64| 0.5 * x * (1.0 + erf(x * std::f64::consts::FRAC_1_SQRT_2));
    for (e, exact) in [
        ("1.0 / (1.0 + exp(-x))", &sigmoid as &dyn Fn(f64) -> f64),
        ("x / (1.0 + exp(-x))", &silu),
        ("0.5 * x * (1.0 + erf(0.70710678 * x))", &gelu),
    ] {
        let error = |(x, y): (f32, f32)| (f64::from(y) - exact(f64::from(x))).abs();
        let worst = values(e, -9.0, 9.0).into_iter().map(error).fold(0.0, f64::max);
        assert!(worst < 1e-6, "{e}: {worst}");
    }
}

#[test]
fn sine_and_cosine_are_within_the_documented_error_of_every_number() {
    for (e, exact) in [("sin(x)", f64::sin as fn(f64) -> f64), ("cos(x)", f64::cos)] {
        for (low, high) in
            [(1e-30, 1e-3), (0.0, 1.6), (1.5, 20.0), (20.0, 1e3), (6e4, 7e4), (1e5, 1e9), (1e20, 1e25), (1e38, 3.4e38)]
        {
            assert!(worst(e, exact, low, high) <= 2.0, "{e} {low} {high}: {}", worst(e, exact, low, high));
            assert!(worst(e, exact, -high, -low) <= 2.0, "{e} {low} {high}");
        }
        // Numbers of every exponent, the nearest of all to a multiple of pi/2 among them.
        for i in -126..=127 {
            let p = 2f32.powi(i);
            assert!(worst(e, exact, p, p * 1.999) <= 2.0, "{e} 2^{i}");
        }
        let nearest = 16_367_173.0 * 2f32.powi(72);
        assert!(worst(e, exact, nearest, nearest) <= 2.0, "{e} {nearest}");
        for bad in ["x / 0.0)", "x / 0.0 * 0.0)"] {
            let e = format!("{}{bad}", e.trim_end_matches("x)"));
            assert!(values(&e, 1.0, 2.0).iter().all(|(_, y)| y.is_nan()), "{e}");
        }
    }
    let zero = values("sin(x * -0.0)", 1.0, 2.0);
    assert!(zero.iter().all(|(_, y)| y.to_bits() == (-0f32).to_bits()));
}

#[test]
fn whole_numbers_near_a_number_are_exact() {
    let rows: [(&str, OfNumber); 3] =
        [("floor(x)", f32::floor), ("ceil(x)", f32::ceil), ("round(x)", f32::round_ties_even)];
    for (e, exact) in rows {
        // Halves among them, and numbers without a fraction.
        for (low, high) in [(-1024.0, 1024.0), (-2e9, 2e9), (-1e-40, 1e-40), (8e6, 9e6)] {
            let same = |&(x, y): &(f32, f32)| exact(x).to_bits() == y.to_bits();
            assert!(values(e, low, high).iter().all(same), "{e} {low} {high}");
        }
    }
}

#[test]
fn tanh_is_within_the_documented_error() {
    // The simulator's `ex2` and `rcp` are exact; what they may be off by on a device adds half a unit.
    for (low, high) in [(1e-30, 1e-3), (1e-3, 0.5), (0.5, 1.14), (1.14, 1.2), (1.2, 3.0), (3.0, 12.0), (-12.0, -1e-3)] {
        let worst = worst("tanh(x)", f64::tanh, low, high);
        assert!(worst <= 1.53, "{low} to {high}: {worst}");
    }
    assert!(values("tanh(x)", 10.0, 1e30).iter().all(|&(_, y)| y == 1.0));
    assert!(values("tanh(-x / 0.0)", 0.5, 1.5).iter().all(|&(_, y)| y == -1.0));
    assert!(values("tanh(x - x / 0.0 * 0.0)", 0.5, 1.5).iter().all(|(_, y)| y.is_nan()));
}

#[test]
fn fast_tanh_is_near() {
    for (x, y) in values("fast_tanh(x)", -12.0, 12.0) {
        assert!((f64::from(y) - f64::from(x).tanh()).abs() <= 2f64.powi(-22), "{x}");
    }
}
