//! The number of active clusters: the size that the host chooses when blocks share the rows of a gradient.

use pretty_assertions::assert_eq;
use tilec::compile::bundle::{Cubins, bundle};
use tilec::{CompileOptions, Target};
use tilec_launch::element::F32;
use tilec_launch::{Bundle, Device, Kernel, LaunchError, Module, Number, StreamRef, Tensor, TensorMut};

const GRADIENTS: &str = include_str!("../../examples/rms_norm_backward.tile");
const TENSORS: [&str; 5] = ["X", "dY", "W", "dX", "dW"];

fn gradients(source: &str, target: Target, variants: &[&str]) -> Kernel {
    let variants = variants.iter().map(|v| vec![("ALIGN".to_owned(), (*v).to_owned())]).collect();
    let defines = vec![("BN".to_owned(), "128".to_owned())];
    let options = CompileOptions { variants, defines, report_accesses: false, ..CompileOptions::default() };
    let made = bundle(source, &options, &[target], Cubins::None).unwrap_or_else(|d| panic!("{d}"));
    let made = Bundle::from_bytes(&made.bundle.to_bytes()).expect("our own bundle");
    let module = Module::load(&Device::simulator(target.name()).expect("a target"), &made).expect("it runs");
    Kernel::load(&module, "rms_norm_backward", &TENSORS, &["S", "eps"]).expect("the kernel")
}

/// Rows and columns of the problem, and calls `act` with its tensors; gives the gradients of `W`.
fn with_tensors<T>([m, n]: [usize; 2], act: impl FnOnce(&mut [tilec_launch::Argument<'_>]) -> T) -> (T, Vec<f32>) {
    let numbers = |seed: usize| (0..m * n).map(|i| ((i * 7 + seed) % 5) as f32 - 2.0).collect::<Vec<f32>>();
    let (x, dy, w) = (numbers(1), numbers(2), vec![1.0f32; n]);
    let (mut dx, mut dw) = (vec![0.0f32; m * n], vec![0.0f32; n]);
    let mut tensors = [
        Tensor::<F32, 2>::host(&x, [m, n]).argument(),
        Tensor::<F32, 2>::host(&dy, [m, n]).argument(),
        Tensor::<F32, 1>::host(&w, [n]).argument(),
        TensorMut::<F32, 2>::host(&mut dx, [m, n]).argument(),
        TensorMut::<F32, 1>::host(&mut dw, [n]).argument(),
    ];
    let done = act(&mut tensors);
    drop(tensors);
    (done, dw)
}

fn active(kernel: &Kernel, sizes: [usize; 2], values: &[Option<Number>]) -> Result<u32, LaunchError> {
    with_tensors(sizes, |tensors| kernel.max_active_clusters(values, tensors)).0
}

#[test]
fn the_first_launch_whose_grid_the_caller_chooses_is_asked_for() {
    let blocks = gradients(GRADIENTS, Target::Sm80, &[]);
    let clusters = GRADIENTS.replacen("    grid (s: S)\n", "    grid (s: S)\n    schedule { ctas 2 }\n", 1);
    let clusters = gradients(&clusters, Target::Sm90a, &[]);
    // Not given, 0, and given.
    for values in [[None, None], [Some(Number::Int(0)), None], [Some(Number::Int(64)), None]] {
        assert_eq!(active(&blocks, [5, 100], &values).expect("a block fits"), 4);
        assert_eq!(active(&clusters, [5, 100], &values).expect("a cluster fits"), 2);
    }
    // The second launch, whose grid follows from the tensors, has no clusters: asked first, it is not the one that answers.
    let swapped = GRADIENTS.replacen("kernel rms_norm_weights", "kernel last", 1);
    let swapped = swapped.replacen("{ rms_norm_rows, rms_norm_weights }", "{ first, rms_norm_rows, last }", 1);
    let first = "kernel first(dX: gmem f32[M, N], W: gmem f32[N]) grid (m: M, n: ceildiv(N, 128)) {\n    \
        var w = reg f32[1, 128]\n    copy W[_, n * 128..] -> w\n    copy w -> dX[m.., n * 128..]\n}\n\n";
    let swapped = swapped.replacen("    grid (s: S)\n", "    grid (s: S)\n    schedule { ctas 2 }\n", 1);
    let three = gradients(&format!("{first}{swapped}"), Target::Sm90a, &[]);
    assert_eq!(active(&three, [5, 100], &[None, None]).expect("a cluster fits"), 2);
}

#[test]
fn so_many_share_the_rows() {
    let kernel = gradients(GRADIENTS, Target::Sm80, &["4", "1"]);
    let sums = |blocks: u32| {
        let launch = |tensors: &mut [tilec_launch::Argument<'_>]| {
            kernel.launch(StreamRef::DEFAULT, &[Some(Number::Int(blocks.into())), None], tensors)
        };
        let (done, sums) = with_tensors([9, 52], launch);
        done.unwrap_or_else(|e| panic!("{e}"));
        sums
    };
    let blocks = active(&kernel, [9, 52], &[None, None]).expect("a block fits");
    let (one, many) = (sums(1), sums(blocks));
    assert!(one.iter().zip(&many).all(|(x, y)| (x - y).abs() < 1e-4), "{one:?} {many:?}");
    // Another variant, and sizes that none takes.
    assert_eq!(active(&kernel, [9, 51], &[None, None]).expect("a block fits"), 4);
    let error = active(&kernel, [9, 129], &[None, None]).expect_err("too long a row").to_string();
    assert!(error.contains("`N <= 128` does not hold: N = 129"), "{error}");
}
