//! Locations of cuBLAS: names for the loader, then the directories of toolkits and Python wheels.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// File names, newest first; the loader looks along its own paths for these.
#[cfg(not(windows))]
const NAMES: &[&str] = &["libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11", "libcublasLt.so"];
#[cfg(windows)]
const NAMES: &[&str] = &["cublasLt64_13.dll", "cublasLt64_12.dll", "cublasLt64_11.dll"];

/// The variable that names the file, or the directory that it is in.
pub(super) const VARIABLE: &str = "TILEC_CUBLAS";

/// Candidates to open, in order. If `TILEC_CUBLAS` is set, it is the only one.
pub fn candidates() -> Vec<PathBuf> {
    from(|name| std::env::var_os(name).map(PathBuf::from))
}

fn from(variable: impl Fn(&str) -> Option<PathBuf>) -> Vec<PathBuf> {
    let set = |name: &str| variable(name).filter(|path| !path.as_os_str().is_empty());
    if let Some(named) = set(VARIABLE) {
        return if named.is_dir() { in_directory(&named) } else { vec![named] };
    }
    let mut all: Vec<PathBuf> = NAMES.iter().map(PathBuf::from).collect();
    for root in ["CUDA_HOME", "CUDA_PATH"].iter().filter_map(|name| set(name)).chain(["/usr/local/cuda".into()]) {
        for lib in ["lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib", "bin"] {
            all.extend(in_directory(&root.join(lib)));
        }
    }
    let mut prefixes: Vec<PathBuf> = ["VIRTUAL_ENV", "CONDA_PREFIX"].iter().filter_map(|name| set(name)).collect();
    // The prefix of every python on the PATH: `PREFIX/bin/python3`.
    let path = variable("PATH").unwrap_or_default();
    for bin in std::env::split_paths(path.as_os_str()).filter(|bin| bin.join("python3").exists()) {
        let real = std::fs::canonicalize(bin.join("python3")).unwrap_or_else(|_| bin.join("python3"));
        prefixes.extend([bin.parent(), real.parent().and_then(Path::parent)].into_iter().flatten().map(Path::to_owned));
    }
    prefixes.extend(["/usr", "/usr/local", "/opt/conda", "/opt/venv"].map(PathBuf::from));
    prefixes.extend(set("HOME").map(|home| home.join(".local")));
    let mut sites: Vec<PathBuf> = set("PYTHONPATH").map(|p| std::env::split_paths(&p).collect()).unwrap_or_default();
    for prefix in prefixes {
        for python in directories(&prefix.join("lib"), "python3") {
            sites.extend(["site-packages", "dist-packages"].map(|packages| python.join(packages)));
        }
    }
    for site in sites {
        // nvidia-cublas-cu12 is one package of several, nvidia-cublas for CUDA 13 shares a directory.
        all.extend(in_directory(&site.join("nvidia/cublas/lib")));
        for toolkit in directories(&site.join("nvidia"), "cu") {
            all.extend(in_directory(&toolkit.join("lib")));
        }
        all.extend(in_directory(&site.join("torch/lib")));
    }
    let mut seen = std::collections::BTreeSet::new();
    all.retain(|path| seen.insert(path.clone()));
    all
}

/// The libraries in a directory.
fn in_directory(directory: &Path) -> Vec<PathBuf> {
    NAMES.iter().map(|name| directory.join(name)).filter(|path| path.exists()).collect()
}

/// Directories in `parent` whose names begin with `prefix`, in order.
fn directories(parent: &Path, prefix: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(parent) else { return Vec::new() };
    let named = |path: &PathBuf| path.file_name().and_then(OsStr::to_str).is_some_and(|name| name.starts_with(prefix));
    let mut found: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).filter(named).collect();
    found.sort();
    found
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn wheels_and_toolkits_are_found_and_the_variable_rules() {
        let root = std::env::temp_dir().join(format!("tilec-cublas-{}", std::process::id()));
        let make = |path: &str| {
            let file = root.join(path);
            std::fs::create_dir_all(file.parent().expect("a directory")).expect("writable");
            std::fs::write(&file, b"").expect("writable");
            file
        };
        let wheel = make("venv/lib/python3.12/site-packages/nvidia/cu13/lib/libcublasLt.so.13");
        let old = make("venv/lib/python3.12/site-packages/nvidia/cublas/lib/libcublasLt.so.12");
        let toolkit = make("cuda/lib64/libcublasLt.so.13");
        let environment = |name: &str| match name {
            "CUDA_HOME" => Some(root.join("cuda")),
            "VIRTUAL_ENV" => Some(root.join("venv")),
            _ => None,
        };
        let found = from(environment);
        assert_eq!(found[0], PathBuf::from("libcublasLt.so.13"), "the loader's own paths come first");
        let place = |path: &PathBuf| found.iter().position(|f| f == path).unwrap_or_else(|| panic!("{found:?}"));
        assert!(place(&toolkit) < place(&old) && place(&old) < place(&wheel));
        let named = |value: PathBuf| from(move |name| (name == VARIABLE).then(|| value.clone()));
        assert_eq!(named(root.join("cuda/lib64")), std::slice::from_ref(&toolkit));
        assert_eq!(named(toolkit.clone()), [toolkit]);
        assert_eq!(named(root.join("nowhere.so")), [root.join("nowhere.so")]);
        std::fs::remove_dir_all(&root).expect("ours");
    }
}
