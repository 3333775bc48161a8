//! How exact the functions of f32 are in compiled programs, on the simulator, against `f64`.
//!
//! The simulator rounds the approximate instructions correctly; a device may be off by what the PTX manual allows.

use crate::loops::erf;
use tilec::{CompileOptions, Target};
use tilec_sim::{Device, Launch, Options, Program};

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
