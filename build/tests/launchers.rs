//! Kernels of the examples, compiled and launched on the simulator with tensors of the host; and launchers as text.

use pretty_assertions::assert_eq;
use std::path::{Path, PathBuf};
use tilec::compile::bundle::{Cubins, bundle};
use tilec::{CompileOptions, Target};
use tilec_build::{Build, Settings};
use tilec_launch::element::{F16, F32};
use tilec_launch::remedies::OTHER_ORDER;
use tilec_launch::{Bundle, Device, Kernel, Module, Number, StreamRef, Tensor, TensorMut};

const GEMM: &str = include_str!("../../examples/gemm.tile");
const SPLIT: &str = include_str!("../../examples/gemm_splitk.tile");

fn compiled(source: &str, targets: &[Target], variants: &[&str]) -> Bundle {
    let variants = variants.iter().map(|v| vec![("ALIGN".to_owned(), (*v).to_owned())]).collect();
    let options = CompileOptions { variants, report_accesses: false, ..CompileOptions::default() };
    let made = bundle(source, &options, targets, Cubins::None).unwrap_or_else(|d| panic!("{d}"));
    // The test uses the bundle as read back.
    Bundle::from_bytes(&made.bundle.to_bytes()).expect("our own bundle")
}

/// Small whole numbers as f16: the bits, and the numbers.
fn halves(n: usize, seed: usize) -> (Vec<u16>, Vec<f32>) {
    let number = |i: usize| ((i * 7 + seed * 3) % 5) as f32 - 2.0;
    let bits = |x: f32| match x.abs() as u32 {
        0 => 0,
        1 => 0x3c00,
        _ => 0x4000,
    } | if x < 0.0 { 0x8000 } else { 0 };
    let numbers: Vec<f32> = (0..n).map(number).collect();
    (numbers.iter().map(|x| bits(*x)).collect(), numbers)
}

/// `alpha * A·B + beta * C` of row-major matrices, in f64.
fn product(a: &[f32], b: &[f32], c: &[f32], [m, n, k]: [usize; 3], alpha: f32, beta: f32) -> Vec<f32> {
    let sum = |i: usize, j: usize| (0..k).map(|x| f64::from(a[i * k + x]) * f64::from(b[x * n + j])).sum::<f64>();
    let one = |at: usize| f64::from(alpha) * sum(at / n, at % n) + f64::from(beta) * f64::from(c[at]);
    (0..m * n).map(|at| one(at) as f32).collect()
}

fn gemm(kernel: &Kernel, [m, n, k]: [usize; 3]) {
    let ((a, a_numbers), (b, b_numbers)) = (halves(m * k, 1), halves(k * n, 2));
    let before: Vec<f32> = (0..m * n).map(|i| (i % 3) as f32).collect();
    let mut c = before.clone();
    let mut tensors = [
        Tensor::<F16, 2>::host(&a, [m, k]).argument(),
        Tensor::<F16, 2>::host(&b, [k, n]).argument(),
        TensorMut::<F32, 2>::host(&mut c, [m, n]).argument(),
    ];
    let values = [Some(Number::Float(2.0)), Some(Number::Float(-1.0))];
    kernel.launch(StreamRef::DEFAULT, &values, &mut tensors).unwrap_or_else(|e| panic!("{m} {n} {k}: {e}"));
    drop(tensors);
    assert_eq!(c, product(&a_numbers, &b_numbers, &before, [m, n, k], 2.0, -1.0), "{m} {n} {k}");
}

#[test]
fn kernels_compute_on_every_generation() {
    let bundle = compiled(GEMM, &[Target::Sm70, Target::Sm80, Target::Sm90a], &[]);
    for (device, target) in [("sm_75", "sm_70"), ("sm_86", "sm_80"), ("sm_90", "sm_90a")] {
        let device = Device::simulator(device).expect("a target");
        let module = Module::load(&device, &bundle).expect("it runs one of them");
        assert_eq!(module.target(), target);
        let kernel = Kernel::load(&module, "gemm", &["A", "B", "C"], &["alpha", "beta"]).expect("the kernel");
        gemm(&kernel, [24, 40, 16]);
    }
    assert!(Module::load(&Device::simulator("sm_60").expect("a target"), &bundle).is_err());
}

#[test]
fn variants_are_dispatched_by_sizes() {
    let bundle = compiled(GEMM, &[Target::Sm80], &["8", "1"]);
    let module = Module::load(&Device::simulator("sm_80").expect("a target"), &bundle).expect("it runs");
    let kernel = Kernel::load(&module, "gemm", &["A", "B", "C"], &["alpha", "beta"]).expect("the kernel");
    let entry = |sizes: [usize; 3], odd: u64| {
        let [m, n, k] = sizes;
        let bytes = 1 << 20;
        let tensors = [
            Tensor::<F16, 2>::at(4096 + odd, bytes, [m, k]).argument(),
            Tensor::<F16, 2>::at(1 << 24, bytes, [k, n]).argument(),
            TensorMut::<F32, 2>::at(1 << 25, bytes, [m, n]).argument(),
        ];
        kernel.check(&[None, None], &tensors).map(|entries| entries.concat()).map_err(|e| e.to_string())
    };
    assert_eq!(entry([16, 16, 16], 0).as_deref(), Ok("gemm_1"));
    assert_eq!(entry([16, 17, 13], 0).as_deref(), Ok("gemm_2"));
    assert_eq!(entry([16, 16, 16], 2).as_deref(), Ok("gemm_2"), "an address that the first variant does not take");
    assert_eq!(entry([0, 16, 16], 0).as_deref(), Ok(""), "nothing to launch");
    gemm(&kernel, [17, 13, 3]);
    gemm(&kernel, [16, 24, 32]);
}

/// The first of these wants one thing of 4 rows of 4 elements, the second two.
const TWO: &str = "kernel two<A = 1, B = 1>(X: gmem f32[M, N], Y: gmem f32[M, N]) where M % A == 0, N % B == 0
    grid (m: M, n: ceildiv(N, 128)) {
    copy X[m, n * 128..+128] -> Y[m, n * 128..]
}
";

#[test]
fn the_nearest_variant_is_named_by_its_parameters() {
    let define = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let variants = vec![vec![define("A", "8")], vec![define("A", "3"), define("B", "5")]];
    let options = CompileOptions { variants, report_accesses: false, ..CompileOptions::default() };
    let made = bundle(TWO, &options, &[Target::Sm80], Cubins::None).unwrap_or_else(|d| panic!("{d}"));
    let module = Module::load(&Device::simulator("sm_80").expect("a target"), &made.bundle).expect("it runs");
    let kernel = Kernel::load(&module, "two", &["X", "Y"], &[]).expect("the kernel");
    let refused = |m: usize, n: usize, at: u64| {
        let tensors = [
            Tensor::<F32, 2>::at(at, 1 << 20, [m, n]).argument(),
            TensorMut::<F32, 2>::at(1 << 25, 1 << 20, [m, n]).argument(),
        ];
        kernel.check(&[], &tensors).map(|entries| entries.concat()).map_err(|e| e.to_string())
    };
    assert_eq!(refused(8, 4, 1 << 24).as_deref(), Ok("two_1"));
    let nearest = |variant: &str, why: &str| Err(format!("no variant fits; `{variant}` came nearest: {why}"));
    assert_eq!(refused(4, 4, 1 << 24), nearest("A=8", "`M % 8 == 0` does not hold: M = 4"));
    assert_eq!(refused(4, 5, 1 << 24), nearest("A=3 B=5", "`M % 3 == 0` does not hold: M = 4"));
    let (align, odd) = (4, (1 << 24) + 2);
    let misaligned = format!("tensor `X`: its address is not a multiple of {align} bytes");
    assert_eq!(refused(8, 4, odd), nearest("A=8", &misaligned));
}

#[test]
fn what_was_checked_is_compared() {
    let bundle = compiled(GEMM, &[Target::Sm80], &["8", "1"]);
    let module = Module::load(&Device::simulator("sm_80").expect("a target"), &bundle).expect("it runs");
    let kernel = Kernel::load(&module, "gemm", &["A", "B", "C"], &["alpha", "beta"]).expect("the kernel");
    let check = |m: usize, stride: usize, bytes: usize, at: [u64; 3], beta: Option<Number>| {
        let [a, b, c] = at;
        let tensors = [
            Tensor::<F16, 2>::at(a, bytes, [m, 16]).with_strides([stride, 1]).argument(),
            Tensor::<F16, 2>::at(b, 1 << 20, [16, 32]).argument(),
            TensorMut::<F32, 2>::at(c, 1 << 20, [m, 32]).argument(),
        ];
        kernel.check(&[None, beta], &tensors).map(|entries| entries.concat()).map_err(|e| e.to_string())
    };
    let apart = [1 << 20, 1 << 24, 1 << 25];
    // Twice each: the second time from what is remembered.
    for _ in 0..2 {
        assert_eq!(check(4, 16, 128, apart, None).as_deref(), Ok("gemm_1"));
        assert_eq!(
            check(4, 16, 127, apart, None),
            Err("tensor `A`: its memory has 127 bytes, expected 128".to_owned()),
            "the same shape in less memory"
        );
        let shared = "tensor `C`: it is written, and shares memory with `A`, which the contract does not allow";
        assert_eq!(check(4, 16, 128, [1 << 20, 1 << 24, (1 << 20) + 16], None), Err(shared.to_owned()));
        assert_eq!(check(4, 17, 1 << 10, apart, None).as_deref(), Ok("gemm_2"), "another stride");
        assert_eq!(check(4, 16, 128, [(1 << 20) + 2, 1 << 24, 1 << 25], None).as_deref(), Ok("gemm_2"), "alignment");
        assert_eq!(check(4, 16, 128, apart, Some(Number::Float(0.5))).as_deref(), Ok("gemm_1"));
        // The stride of one row says nothing.
        for stride in [0, 1, 16, 17, 1 << 40] {
            assert_eq!(check(1, stride, 32, apart, None).as_deref(), Ok("gemm_1"), "{stride}");
        }
    }
    // More than are remembered.
    for m in (1..300).chain(1..300) {
        assert_eq!(check(m, 16, m * 32, apart, None).as_deref(), Ok("gemm_1"));
        assert!(check(m, 16, m * 32 - 1, apart, None).is_err());
    }
}

#[test]
fn programs_have_their_temporaries() {
    let bundle = compiled(SPLIT, &[Target::Sm80], &[]);
    let file = bundle.launch_file("sm_80").expect("a launch file");
    let module = Module::load(&Device::simulator("sm_80").expect("a target"), &bundle).expect("it runs");
    let program = &file.programs[0];
    let named = |c: &tilec_launch::Contract| {
        c.params.iter().filter(|p| p.kind.tensor().is_some()).map(|p| p.name.clone()).collect::<Vec<_>>()
    };
    let mut tensors: Vec<String> = file.kernels.iter().flat_map(named).collect();
    tensors.sort();
    tensors.dedup();
    tensors.retain(|t| program.temporaries.iter().all(|own| own.name != *t));
    assert_eq!(tensors, ["A", "B", "C"]);
    let kernel = Kernel::load(&module, &program.name, &["A", "B", "C"], &["S"]).expect("the program");
    let [m, n, k] = [16, 24, 64];
    let ((a, a_numbers), (b, b_numbers)) = (halves(m * k, 3), halves(k * n, 4));
    let mut c = vec![0.0f32; m * n];
    let mut tensors = [
        Tensor::<F16, 2>::host(&a, [m, k]).argument(),
        Tensor::<F16, 2>::host(&b, [k, n]).argument(),
        TensorMut::<F32, 2>::host(&mut c, [m, n]).argument(),
    ];
    kernel.launch(StreamRef::DEFAULT, &[Some(Number::Int(2))], &mut tensors).unwrap_or_else(|e| panic!("{e}"));
    drop(tensors);
    assert_eq!(c, product(&a_numbers, &b_numbers, &vec![0.0; m * n], [m, n, k], 1.0, 0.0));
}

#[test]
fn what_does_not_fit_is_refused() {
    let bundle = compiled(GEMM, &[Target::Sm80], &[]);
    let module = Module::load(&Device::simulator("sm_80").expect("a target"), &bundle).expect("it runs");
    let missing = |tensors: &[&str], values: &[&str]| match Kernel::load(&module, "gemm", tensors, values) {
        Ok(_) => "loaded".to_owned(),
        Err(error) => error.to_string(),
    };
    assert_eq!(missing(&["A", "B"], &[]), "tensor `C`: the kernel takes it, and the launcher does not pass it");
    assert_eq!(missing(&["A", "B", "C"], &["gamma"]), "the kernel has no size, stride or scalar `gamma`");
    let kernel = Kernel::load(&module, "gemm", &["A", "B", "C"], &["alpha", "beta"]).expect("the kernel");
    let (a, b) = (vec![0u16; 16 * 16], vec![0u16; 16 * 24]);
    let refused = |a_shape: [usize; 2], b_shape: [usize; 2], strides: [usize; 2]| {
        let mut c = vec![0.0f32; 16 * 24];
        let mut tensors = [
            Tensor::<F16, 2>::host(&a, a_shape).with_strides(strides).argument(),
            Tensor::<F16, 2>::host(&b, b_shape).argument(),
            TensorMut::<F32, 2>::host(&mut c, [16, 24]).argument(),
        ];
        kernel.launch(StreamRef::DEFAULT, &[None, None], &mut tensors).map_err(|e| e.to_string())
    };
    assert_eq!(refused([16, 16], [16, 24], [16, 1]), Ok(()));
    assert_eq!(
        refused([16, 8], [16, 24], [8, 1]),
        Err("tensor `B`: its shape is [16, 24], expected [K, N] = [8, 24]; `A: [M, K]` has K = 8".to_owned())
    );
    assert_eq!(
        refused([16, 16], [16, 24], [24, 1]),
        Err("tensor `A`: its memory has 512 bytes, expected 752".to_owned())
    );
    assert_eq!(
        refused([16, 16], [16, 24], [16, 2]),
        Err(format!("tensor `A`: its strides are [16, 2], in elements, expected [A_ld, 1]; {OTHER_ORDER}"))
    );
    let unmet = refused([16, 7], [7, 24], [7, 1]).expect_err("no multiples of 8");
    assert!(unmet.contains("`K % 8 == 0` does not hold: K = 7"), "{unmet}");
    let (wrong, mut c) = (vec![0.0f32; 256], vec![0.0f32; 384]);
    let mut tensors = [
        Tensor::<F32, 2>::host(&wrong, [16, 16]).argument(),
        Tensor::<F16, 2>::host(&b, [16, 24]).argument(),
        TensorMut::<F32, 2>::host(&mut c, [16, 24]).argument(),
    ];
    let error = kernel.launch(StreamRef::DEFAULT, &[None, None], &mut tensors).expect_err("f32");
    assert_eq!(error.to_string(), "tensor `A`: its elements are f32, expected f16");
    tensors[0] = Tensor::<F16, 2>::host(&a, [16, 16]).argument();
    tensors[2] = Tensor::<F32, 2>::host(&wrong, [16, 24]).argument();
    let error = kernel.launch(StreamRef::DEFAULT, &[None, None], &mut tensors).expect_err("read only");
    assert_eq!(error.to_string(), "tensor `C`: it is written, and was passed to be read");
}

/// Both matrices have the row stride `ld`, which `X` gives: rows of another length in `Y` are a wrong shape, not a wrong stride.
#[test]
fn a_wrong_shape_is_reported_before_strides() {
    let source = "kernel add(v: gmem f32[N], X: gmem f32[M, N] strides (ld, 1), Y: gmem f32[M, N] strides (ld, 1))
        grid (i: M, j: ceildiv(N, 64)) {
        copy X[i, j * 64..+64] + v[j * 64..] -> Y[i, j * 64..]
    }";
    let bundle = compiled(source, &[Target::Sm80], &[]);
    let module = Module::load(&Device::simulator("sm_80").expect("a target"), &bundle).expect("it runs");
    let kernel = Kernel::load(&module, "add", &["v", "X", "Y"], &[]).expect("the kernel");
    let v = vec![0.0f32; 96];
    let added = |n: usize, x_shape: [usize; 2], y_shape: [usize; 2]| {
        let (x, mut y) = (vec![0.0f32; x_shape.iter().product()], vec![0.0f32; y_shape.iter().product()]);
        let mut tensors = [
            Tensor::<F32, 1>::host(&v, [n]).argument(),
            Tensor::<F32, 2>::host(&x, x_shape).argument(),
            TensorMut::<F32, 2>::host(&mut y, y_shape).argument(),
        ];
        kernel.launch(StreamRef::DEFAULT, &[], &mut tensors).map_err(|e| e.to_string())
    };
    assert_eq!(added(80, [4, 80], [4, 80]), Ok(()));
    let expected = "tensor `Y`: its shape is [4, 72], expected [M, N] = [4, 80]; `v: [N]` has N = 80";
    assert_eq!(added(80, [4, 80], [4, 72]), Err(expected.to_owned()));
    let expected =
        "tensor `Y`: its shape is [80, 4], expected [M, N] = [4, 80]; `X: [M, N]` has M = 4; `v: [N]` has N = 80";
    assert_eq!(added(80, [4, 80], [80, 4]), Err(expected.to_owned()));
    let v = Tensor::<F32, 2>::host(&v, [8, 10]).argument();
    let (x, mut y) = (vec![0.0f32; 40], vec![0.0f32; 40]);
    let (x, y) =
        (Tensor::<F32, 2>::host(&x, [4, 10]).argument(), TensorMut::<F32, 2>::host(&mut y, [4, 10]).argument());
    let error = kernel.launch(StreamRef::DEFAULT, &[], &mut [v, x, y]).expect_err("of two dimensions");
    assert_eq!(error.to_string(), "tensor `v`: its shape is [8, 10], expected [N]");
}

/// A folder that is deleted on drop.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("tilec-build-{}-{name}", std::process::id()));
        // Process numbers are reused: a run that was stopped may have left a folder of this name.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(path.join("out")).expect("a folder");
        Folder(path)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.join(name), text).expect("a file");
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).expect("a file")
    }

    fn out(&self) -> PathBuf {
        self.0.join("out")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const SCALE: &str = "kernel scale<T: f16 | f32 = f32>(A: gmem T[M, N], B: gmem T[M, N], shift: f32, factor: f32 = 2.0)
    grid (m: M, b: ceildiv(N, 256)) {
    var x = reg T[1, 256]
    copy A[m.., b * 256..] -> x
    copy factor * cast<f32>(x) + shift -> B[m.., b * 256..]
}
";

#[test]
fn launchers_are_written_and_only_when_needed() {
    let folder = Folder::new("written");
    folder.write("scale.tile", SCALE);
    folder.write("other.txt", "none of ours");
    let build = Build::new(&folder.0).targets(&["sm_70", "sm_90a"]);
    let built = build.generate(&folder.out()).unwrap_or_else(|e| panic!("{e}"));
    let source = folder.0.join("scale.tile");
    assert_eq!((&built.sources, &built.compiled), (&vec![source.clone()], &vec![source.clone()]));
    let text = folder.read("out/kernels.rs");
    for part in [
        "pub struct Scale {",
        "a: ::tilec_launch::Tensor<'a, ::tilec_launch::element::F32, 2>",
        "b: ::tilec_launch::TensorMut<'a, ::tilec_launch::element::F32, 2>, shift: f32)",
        "pub fn factor(mut self, factor: f32) -> Self {",
        "sm_70, sm_90a",
        "| `A` | f32 | `[M, N]` | `[A_ld, 1]` | read |",
        "    pub scale: Scale,\n}",
        "let scale_module = scale_module(device)?;",
        "Ok(Launchers {\n            scale: Scale::of(&scale_module)?,\n        })",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let bytes = std::fs::read(folder.out().join("scale.launcher.tilec")).expect("a bundle");
    assert_eq!(Bundle::from_bytes(&bytes).expect("a bundle").targets(), ["sm_70", "sm_90a"]);

    assert!(build.generate(&folder.out()).expect("again").compiled.is_empty());
    assert_eq!(folder.read("out/kernels.rs"), text, "what was compiled before gives the same text");
    folder.write("scale.tile", &SCALE.replace("2.0", "3.0"));
    assert_eq!(build.generate(&folder.out()).expect("changed").compiled, std::slice::from_ref(&source));
    let other = build.define("T", "f16");
    assert_eq!(other.generate(&folder.out()).expect("other options").compiled, [source]);
    assert!(folder.read("out/kernels.rs").contains("element::F16"));
}

/// Cargo shows the warnings of the last run of a build script, which need not have compiled the file.
#[test]
fn warnings_are_kept_with_what_was_compiled() {
    let folder = Folder::new("warnings");
    folder.write("scale.tile", &SCALE.replace("grid (m: M,", "grid (m: M, twice: 2,"));
    folder.write("other.tile", &SCALE.replace("scale", "other"));
    let build = Build::new(&folder.0);
    let first = build.generate(&folder.out()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(first.warnings.len(), 1, "{:?}", first.warnings);
    assert!(first.warnings[0].contains("warning[W0411]"), "{:?}", first.warnings);
    folder.write("other.tile", &SCALE.replace("scale", "changed"));
    let second = build.generate(&folder.out()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(second.compiled, [folder.0.join("other.tile")]);
    assert_eq!(second.warnings, first.warnings);
}

/// A file that is written again makes cargo compile the crate again.
#[test]
fn equal_files_are_not_written_again() {
    let folder = Folder::new("equal");
    folder.write("scale.tile", SCALE);
    let build = Build::new(&folder.0);
    let times = || {
        ["kernels.rs", "scale.launcher.rs", "scale.launcher.tilec"].map(|name| {
            let file = std::fs::File::open(folder.out().join(name)).expect("a file");
            file.metadata().and_then(|m| m.modified()).expect("its time")
        })
    };
    build.generate(&folder.out()).unwrap_or_else(|e| panic!("{e}"));
    let long_ago = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    for name in ["kernels.rs", "scale.launcher.rs", "scale.launcher.tilec"] {
        let file = std::fs::File::options().append(true).open(folder.out().join(name)).expect("a file");
        file.set_modified(long_ago).expect("another time");
    }
    build.generate(&folder.out()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(times(), [long_ago; 3]);
}

#[test]
fn settings_of_a_file_are_of_that_file_alone() {
    let folder = Folder::new("settings");
    folder.write("scale.tile", SCALE);
    folder.write("other.tile", &SCALE.replace("scale", "other"));
    let all = Build::new(&folder.0);
    all.generate(&folder.out()).unwrap_or_else(|e| panic!("{e}"));
    let one = all.clone().file("scale", Settings::new().define("T", "f16"));
    assert_eq!(one.generate(&folder.out()).expect("other settings").compiled, [folder.0.join("scale.tile")]);
    assert!(folder.read("out/scale.launcher.rs").contains("element::F16"));
    assert!(!folder.read("out/other.launcher.rs").contains("element::F16"));
    let error = all.file("scael", Settings::new()).generate(&folder.out()).expect_err("no such file").to_string();
    assert!(error.starts_with("settings of `scael`: there is no scael.tile in "), "{error}");
}

#[test]
fn mistakes_are_shown_in_their_file() {
    let folder = Folder::new("mistakes");
    folder.write("scale.tile", &SCALE.replace("copy A[m..", "copy X[m.."));
    let error = Build::new(&folder.0).generate(&folder.out()).expect_err("a mistake").to_string();
    assert!(error.contains("scale.tile:4:10") && error.contains('^') && error.contains("X"), "{error}");
    folder.write("scale.tile", SCALE);
    folder.write("twice.tile", SCALE);
    let error = Build::new(&folder.0).generate(&folder.out()).expect_err("two of one name").to_string();
    assert!(error.contains("a launcher `Scale` is there already"), "{error}");
    folder.write("again.tile", &SCALE.replace("scale", "launchers"));
    let error = Build::new(&folder.0).generate(&folder.out()).expect_err("a name of ours").to_string();
    assert!(error.contains("`launchers`: `Launchers` is the struct of all launchers"), "{error}");
    let error = Build::new(&folder.0).targets(&["sm_1"]).generate(&folder.out()).expect_err("a target").to_string();
    assert_eq!(error, "`sm_1` is no target of tilec");
    assert!(Build::new(folder.0.join("out")).generate(&folder.out()).is_err(), "no file");
    let error = Build::new(folder.0.join("kernel")).generate(&folder.out()).expect_err("no folder").to_string();
    assert!(error.starts_with("the folder of kernels /") && error.contains("`Build::new(\"kernels\")`"), "{error}");
}

/// Errors say how a build script spells the options of the command that they name, and where more is said.
#[test]
fn errors_speak_of_the_build_script() {
    let folder = Folder::new("messages");
    folder.write("scale.tile", SCALE);
    let error = Build::new(&folder.0).define("ALIGN", "8").generate(&folder.out()).expect_err("no such").to_string();
    assert!(!error.contains("tilec explain"), "a crate has no command: {error}");
    let explained = error.lines().find(|line| line.starts_with("E0401: ")).expect("the code is explained");
    let (_, anchor) = explained.split_once("/blob/main/docs/diagnostics.md#").expect("the page");
    let headings = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/diagnostics.md"));
    let headings = headings.expect("the page");
    let heading = headings.lines().find_map(|line| line.strip_prefix("### E0401: ")).expect("the code");
    assert_eq!(anchor, format!("e0401-{}", heading.replace(' ', "-")));
    assert!(error.contains("`.file(\"NAME\", Settings::new().define(..))`"), "{error}");
    folder.write("scale.tile", &SCALE.replacen("<T:", "<BN: int, T:", 1));
    let error = Build::new(&folder.0).generate(&folder.out()).expect_err("no value").to_string();
    assert!(error.contains("`-D NAME=VALUE` is `.define(\"NAME\", \"VALUE\")` of `Build`"), "{error}");
}

/// The code that `docs/rust.md` shows is in the files of the example, which `scripts/rust_example.sh` builds and tests.
#[test]
fn the_document_shows_the_example() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let document = std::fs::read_to_string(root.join("docs/rust.md")).expect("the document");
    let example = std::fs::read_to_string(root.join("examples/rust/src/lib.rs")).expect("the example");
    let mut seen = 0;
    for block in document.split("```").skip(1).step_by(2) {
        let Some(("rust", snippet)) = block.split_once('\n') else { continue };
        seen += 1;
        assert!(example.contains(snippet.trim_end()), "{snippet}");
    }
    assert_eq!(seen, 3);
}
