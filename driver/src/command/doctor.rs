//! `tilec doctor`: which driver, card, assembler and libraries are found, where, and what each adds. None of it is needed to compile.

use crate::Target;
use crate::assembler::{Tool, find};
use crate::command::failure::Failure;
use crate::output::write_stdout;
use std::fmt::Write as _;

/// A part of the surroundings: found, or not found for a reason.
struct Part {
    name: String,
    /// What was found and where, or why it is missing; further lines are indented.
    found: Result<String, String>,
    /// Its use in the commands.
    adds: &'static str,
}

/// Prints the list. What is missing is no failure: the compiler needs none of it.
pub(crate) fn doctor_command() -> Result<(), Failure> {
    let mut parts = device();
    for tool in [Tool::Ptxas, Tool::Nvdisasm] {
        parts.extend(assembler(tool));
    }
    let mut out = format!(
        "tilec {} compiles, proves and simulates without other tools. It also uses:\n",
        env!("CARGO_PKG_VERSION")
    );
    for part in &parts {
        let (mark, label, said) = match &part.found {
            Ok(what) => ("found  ", "is:  ", what),
            Err(why) => ("missing", "why: ", why),
        };
        let said = said.trim().replace('\n', "\n           ");
        let _ = writeln!(out, "\n{mark}  {}\n    {label}  {said}\n    adds:  {}", part.name, part.adds);
    }
    Ok(write_stdout(out.as_bytes())?)
}

const DRIVER: &str =
    "`tilec run` on a GPU, times in `tilec bench` and `tilec tune`; without it `run` simulates, and `bench` counts";
const GPU: &str = "the card that `tilec run`, `bench` and `tune` use, and compile for";
const CUBLAS: &str = "comparison with cuBLAS in `tilec bench`";

/// The driver, its first card and cuBLAS: a line for each, whichever of them is there.
#[cfg(feature = "cuda")]
fn device() -> Vec<Part> {
    use crate::bench::cublas_places;
    use crate::cuda::{Cublas, CudaError, Device};

    let (driver, card) = match Device::open(0) {
        Ok(device) => {
            let (major, minor) = device.properties().driver_version;
            (Ok(format!("for CUDA {major}.{minor}")), Ok(card(&device)))
        }
        Err(error @ CudaError::NoDevice { .. }) => (Ok("the library is there".to_owned()), Err(error.to_string())),
        Err(error) => (Err(error.to_string()), Err("a card needs a driver".to_owned())),
    };
    let cublas = Cublas::installed(&cublas_places())
        .map(|(version, path)| format!("version {version}, {}", path.display()))
        .map_err(|error| error.to_string());
    parts(driver, card, cublas)
}

/// The name of a card, and the target to compile for.
#[cfg(feature = "cuda")]
fn card(device: &crate::cuda::Device) -> String {
    let card = device.properties();
    let (major, minor) = card.compute_capability;
    let compiled = Target::newest_on(major * 10 + minor).map_or_else(
        || "no target of tilec runs on it".to_owned(),
        |t| format!("compile for it with `--target {}`", t.name()),
    );
    format!(
        "{}, compute capability {major}.{minor}, {} multiprocessors, {:.0} GB; {compiled}",
        card.name,
        card.sm_count,
        card.total_memory_bytes as f64 / 1e9
    )
}

#[cfg(not(feature = "cuda"))]
fn device() -> Vec<Part> {
    let missing = || Err("this tilec was built without the feature `cuda`".to_owned());
    parts(missing(), missing(), missing())
}

fn parts(driver: Result<String, String>, card: Result<String, String>, cublas: Result<String, String>) -> Vec<Part> {
    [("CUDA driver", driver, DRIVER), ("GPU", card, GPU), ("cuBLAS", cublas, CUBLAS)]
        .map(|(name, found, adds)| Part { name: name.to_owned(), found, adds })
        .into()
}

/// A tool for each set of targets that one version of it serves.
fn assembler(tool: Tool) -> Vec<Part> {
    let adds = match tool {
        Tool::Ptxas => "`--emit cubin`, registers and spills in `--emit report` and `tilec xray`, `require no spills`",
        Tool::Nvdisasm => "machine code in `--emit sass` and `tilec xray`",
    };
    // Targets by what serves them, in order.
    let mut groups: Vec<(Vec<&str>, Result<String, String>)> = Vec::new();
    for target in Target::ALL {
        let found = match target.name().parse() {
            Ok(arch) => find(tool, arch)
                .map(|found| {
                    let v = found.version;
                    format!("version {}.{}.{}, {}", v.major, v.minor, v.build, found.path.display())
                })
                .map_err(|missing| missing.to_string()),
            Err(error) => Err(error.to_string()),
        };
        // A reason names the target in its first line, so only the reason for the first target is kept.
        match groups.iter_mut().find(|(_, known)| match (known, &found) {
            (Ok(known), Ok(found)) => known == found,
            (Err(_), Err(_)) => true,
            _ => false,
        }) {
            Some((targets, _)) => targets.push(target.name()),
            None => groups.push((vec![target.name()], found)),
        }
    }
    groups
        .into_iter()
        .map(|(targets, found)| Part { name: format!("{tool} for {}", targets.join(", ")), found, adds })
        .collect()
}
