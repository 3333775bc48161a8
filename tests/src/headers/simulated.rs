//! Programs in C on the simulator, in the place of the driver: headers and bundles with real results, and what a program hears of its mistakes.

use super::compiled::header_and_bundle;
use super::folder::{Folder, exists};

use crate::golden;
use tilec::Target;

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

/// What calls return, and say, when a program is wrong.
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
