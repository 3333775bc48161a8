//! Programs in C on the simulator, in the place of the driver: headers and bundles with real results, and what a program hears of its mistakes.

use super::compiled::header_and_bundle;
use super::folder::{Folder, exists};

use crate::golden;
use tilec::c_header::Image;
use tilec::compile::bundle::{Cubins, bundle};
use tilec::{CompileOptions, Target};
use tilec_launch::Bundle;

/// `scripts/gpu_c/main.c`, which `scripts/gpu_c.sh` runs on a GPU: products and rows against sums on the host.
pub(super) fn programs(target: Target) -> Result<(), String> {
    if !exists("gcc") {
        golden::skip("C on the simulator", "there is no gcc");
        return Ok(());
    }
    let folder = Folder::new(&format!("simulated-{}", target.name()))?;
    for stem in ["gemm", "gemm_splitk", "softmax"] {
        let (header, bundle) = header_and_bundle(stem)?;
        folder.write(&format!("{stem}.h"), &header)?;
        let path = folder.path(&format!("{stem}.tilec"));
        std::fs::write(&path, bundle).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
    }
    folder.write("tilec_bundle.h", &tilec::c_header::bundle_reader())?;
    let text = std::fs::read_to_string(crate::root().join("scripts/gpu_c/main.c")).map_err(|e| e.to_string())?;
    let main = folder.write("main.c", &text)?;
    let arguments = [folder.path("gemm.tilec"), folder.path("gemm_splitk.tilec"), "small".into()];
    let said = folder.run_simulated(&main, target.name(), &arguments.each_ref().map(AsRef::as_ref))?;
    // Six products by headers and bundles, a softmax, and a size that is refused.
    let equal = said.lines().filter(|line| line.contains(": 0 of ")).count();
    if equal == 7 && said.ends_with("all equal\n") { Ok(()) } else { Err(said) }
}

/// `tests/c/active.c`: how many clusters share the rows of a gradient, of one block and of two.
pub(super) fn active() -> Result<(), String> {
    if !exists("gcc") {
        golden::skip("C on the simulator", "there is no gcc");
        return Ok(());
    }
    let read = |path: &str| std::fs::read_to_string(crate::root().join(path)).map_err(|e| format!("{path}: {e}"));
    let source = read("examples/rms_norm_backward.tile")?;
    let clusters = source.replacen("    grid (s: S)\n", "    grid (s: S)\n    schedule { ctas 2 }\n", 1);
    let cases = [(&source, Target::Sm80, 4), (&clusters, Target::Sm90a, 2), (&source, Target::Sm90a, 4)];
    for (i, (source, target, expected)) in cases.into_iter().enumerate() {
        let folder = Folder::new(&format!("active-{i}"))?;
        let defines = vec![("BN".to_owned(), "128".to_owned())];
        let options = CompileOptions { target, defines, ..CompileOptions::default() };
        let compiled = tilec::compile(source, &options).map_err(|d| d.to_string())?;
        let image = Image { target, ptx: &compiled.ptx, file: &compiled.launch_file() };
        let header = tilec::c_header::header("rms_norm_backward.tile", &[image]).map_err(|e| e.to_string())?;
        folder.write("rms_norm_backward.h", &header)?;
        let mut bundle = Bundle::default();
        bundle.add(target.name(), image.file, image.ptx, None).map_err(|e| e.to_string())?;
        let path = folder.path("rms_norm_backward.tilec");
        std::fs::write(&path, bundle.to_bytes()).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
        folder.write("tilec_bundle.h", &tilec::c_header::bundle_reader())?;
        let main = folder.write("active.c", &read("tests/c/active.c")?)?;
        let said = folder.run_simulated(&main, target.name(), &[&path])?;
        if said != format!("{expected} clusters, equal\n") {
            return Err(said);
        }
    }
    Ok(())
}

/// The first kernel takes one tensor of 4 rows of 4 elements, the second takes two.
const TWO: &str = "kernel two<A = 1, B = 1>(X: gmem f32[M, N], Y: gmem f32[M, N]) where M % A == 0, N % B == 0
    grid (m: M, n: ceildiv(N, 128)) {
    copy X[m, n * 128..+128] -> Y[m, n * 128..]
}
";

/// Says of three problems which variant of `two` came nearest, out of a bundle.
const TWO_OF_A_BUNDLE: &str = "#include <tilec_bundle.h>
#include <stdio.h>
static void say(const tilec_bundle *b, CUdeviceptr at, int64_t m, int64_t n)
{
    const int64_t shape[] = {m, n};
    char text[400] = \"\";
    tilec_bundle_tensor t[2];
    tilec_bundle_args args;
    memset(&args, 0, sizeof args);
    t[0] = tilec_bundle_packed(\"X\", \"f32\", at, 2, shape);
    t[1] = tilec_bundle_packed(\"Y\", \"f32\", at + 4096, 2, shape);
    args.tensors = t;
    args.tensor_count = 2;
    if (tilec_bundle_launch(b, \"two\", NULL, &args, text, sizeof text) < 0)
        puts(text);
}
int main(int count, char **names)
{
    CUdevice device;
    CUcontext context;
    CUdeviceptr memory;
    tilec_bundle b;
    char text[400];
    if (count != 2 || cuInit(0) != 0 || cuDeviceGet(&device, 0) != 0 || cuDevicePrimaryCtxRetain(&context, device) != 0)
        return 1;
    if (cuCtxSetCurrent(context) != 0 || cuMemAlloc(&memory, 8192) != 0)
        return 1;
    if (tilec_bundle_open(&b, names[1], text, sizeof text) != 0) {
        puts(text);
        return 1;
    }
    say(&b, memory, 4, 4);
    say(&b, memory, 4, 5);
    say(&b, memory + 2, 8, 4);
    tilec_bundle_close(&b);
    return 0;
}
";

/// The variant that came nearest where none fits, by a header and out of a bundle.
pub(super) fn nearest() -> Result<(), String> {
    if !exists("gcc") {
        golden::skip("C on the simulator", "there is no gcc");
        return Ok(());
    }
    let folder = Folder::new("nearest")?;
    let define = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let variants = vec![vec![define("A", "8")], vec![define("A", "3"), define("B", "5")]];
    let options = CompileOptions { target: Target::Sm80, variants, ..CompileOptions::default() };
    let compiled = tilec::compile(TWO, &options).map_err(|d| d.to_string())?;
    let image = Image { target: Target::Sm80, ptx: &compiled.ptx, file: &compiled.launch_file() };
    let header = tilec::c_header::header("two.tile", &[image]).map_err(|e| e.to_string())?;
    folder.write("two.h", &header)?;
    let main = "#include \"two.h\"\n
        static void say(const two_kernels *k, CUdeviceptr at, int m, int n)\n{\n    char text[400];
            two_args args = two_make(at, at + 4096, m, n);\n    int code = two_launch(k, NULL, &args);
            puts(two_explain(code, &args, text, sizeof text));\n}\n
        int main(void)\n{\n    CUdevice device;\n    CUcontext context;\n    CUdeviceptr memory;\n    two_kernels k;
            cuInit(0);\n    cuDeviceGet(&device, 0);\n    cuDevicePrimaryCtxRetain(&context, device);
            cuCtxSetCurrent(context);\n    cuMemAlloc(&memory, 8192);
            if (two_kernels_load(&k, NULL, 0) != 0)\n        return 1;
            say(&k, memory, 4, 4);\n    say(&k, memory, 4, 5);\n    say(&k, memory + 2, 8, 4);\n    return 0;\n}\n";
    let said = folder.run_simulated(&folder.write("nearest.c", main)?, "sm_80", &[])?;
    let expected = "two (sm_80): no variant fits; `A=8` came nearest: requires M % 8 == 0 (M = 4, N = 4, X_ld = packed, Y_ld = packed)
two (sm_80): no variant fits; `A=3 B=5` came nearest: requires M % 3 == 0 (M = 4, N = 5, X_ld = packed, Y_ld = packed)
two (sm_80): no variant fits; `A=8` came nearest: the address of `X` must be a multiple of 4 (M = 8, N = 4, X_ld = packed, Y_ld = packed)
";
    if said != expected {
        return Err(said);
    }
    let made = bundle(TWO, &options, &[Target::Sm80], Cubins::None).map_err(|d| d.to_string())?;
    let path = folder.path("two.tilec");
    std::fs::write(&path, made.bundle.to_bytes()).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
    folder.write("tilec_bundle.h", &tilec::c_header::bundle_reader())?;
    let said = folder.run_simulated(&folder.write("bundled.c", TWO_OF_A_BUNDLE)?, "sm_80", &[&path])?;
    let expected =
        "two: requires M % 8 == 0\ntwo: requires M % 3 == 0\nX: its address is not aligned as the kernel wants\n";
    if said == expected { Ok(()) } else { Err(said) }
}

/// Return values and messages of calls with errors.
pub(super) fn mistakes() -> Result<(), String> {
    if !exists("gcc") {
        golden::skip("C on the simulator", "there is no gcc");
        return Ok(());
    }
    let folder = Folder::new("mistakes")?;
    let text = std::fs::read_to_string(crate::root().join("tests/c/mistakes.c")).map_err(|e| e.to_string())?;
    let said = folder.run_simulated(&folder.write("mistakes.c", &text)?, "sm_80", &[])?;
    let expected = [
        "cuModuleGetFunction: the module has no kernel `nothing`",
        "cuModuleLoadData: PTX for sm_90a does not run on this device, sm_80 (TILEC_SIM_TARGET)",
        "cuLaunchKernel: `store`: 65536 bytes of dynamic shared memory, 49152 are permitted",
        "cuLaunchKernel: out of bounds: ",
        "of block (0, 0, 0)",
        "cuEventElapsedTime: the simulator has no clock",
    ];
    let missing: Vec<&str> = expected.into_iter().filter(|text| !said.contains(text)).collect();
    if missing.is_empty() && said.ends_with("fine\n") { Ok(()) } else { Err(format!("missing: {missing:?}\n{said}")) }
}
