//! Finding `ptxas` and `nvdisasm`.
//!
//! Looked at in this order, the first usable one wins:
//! 1. `TILEC_PTXAS` / `TILEC_NVDISASM`, a path to the executable;
//! 2. the absolute directories of `PATH`;
//! 3. `CUDA_HOME/bin`, then `/usr/local/cuda/bin`;
//! 4. the cache that `scripts/fetch_tools.sh` fills: `TILEC_TOOLS`, else `XDG_CACHE_HOME/tilec/tools`,
//!    else `HOME/.cache/tilec/tools`.
//!
//! A candidate is usable when it runs, tells its version, and that version knows the target: 12.9 is
//! the last that knows `sm_70`. Each refusal is kept with its reason, in the result as well as in the
//! error. A `TILEC_PTXAS` that is not usable ends the search: a named path is used, or it is an error.

use super::child::{self, PrivateDir};
use crate::assembler::tools::{Arch, NotFound, Refusal, Tool, ToolVersion, is_named};
use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

/// A usable tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Which tool.
    pub tool: Tool,
    /// Absolute path of the executable.
    pub path: PathBuf,
    /// The version it reports.
    pub version: ToolVersion,
    /// Places that come earlier in the search and were passed over.
    pub passed_over: Vec<Refusal>,
}

/// Finds `tool` for `arch`, by the process environment.
///
/// # Errors
/// [`NotFound`] when no place has a usable one.
pub fn find(tool: Tool, arch: Arch) -> Result<Found, NotFound> {
    find_with(tool, arch, &|name| env::var_os(name), &version_of)
}

type Variable<'a> = &'a dyn Fn(&str) -> Option<OsString>;
type AskVersion<'a> = &'a dyn Fn(Tool, &Path) -> Result<ToolVersion, String>;

/// [`find`] with the environment and the question for the version as parameters.
fn find_with(tool: Tool, arch: Arch, variable: Variable<'_>, ask: AskVersion<'_>) -> Result<Found, NotFound> {
    let mut looked = Vec::new();
    for (place, candidate) in candidates(tool, arch, variable) {
        let named = is_named(tool, &place);
        let tried = candidate.and_then(|path| {
            let version = ask(tool, &path)?;
            version.serves(arch)?;
            Ok((path, version))
        });
        match tried {
            Ok((path, version)) => {
                return Ok(Found { tool, path, version, passed_over: looked });
            }
            Err(reason) => looked.push(Refusal { place, reason }),
        }
        // If a path is given, only that tool is tried.
        if named {
            break;
        }
    }
    Err(NotFound { tool, arch, looked })
}

/// The places in order; a place without an executable comes with the reason.
fn candidates(tool: Tool, arch: Arch, variable: Variable<'_>) -> Vec<(String, Result<PathBuf, String>)> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    let mut places = Vec::new();

    let explicit = tool.variable();
    match set(explicit) {
        None => places.push((explicit.to_owned(), Err("not set".to_owned()))),
        Some(value) => places.push((shown(explicit, &value), executable(PathBuf::from(value)))),
    }

    let path = set("PATH").unwrap_or_default();
    let before = places.len();
    for dir in env::split_paths(&path).filter(|dir| dir.is_absolute()) {
        let file = dir.join(tool.name());
        // Only directories that have the file are worth a line of the report.
        if file.exists() {
            places.push((format!("PATH: {}", file.display()), executable(file)));
        }
    }
    if places.len() == before {
        places.push(("PATH".to_owned(), Err(format!("no {tool} in any of its directories"))));
    }

    match set("CUDA_HOME") {
        None => places.push(("CUDA_HOME".to_owned(), Err("not set".to_owned()))),
        Some(home) => {
            let file = Path::new(&home).join("bin").join(tool.name());
            places.push((shown("CUDA_HOME", &home), executable(file)));
        }
    }
    let usual = Path::new("/usr/local/cuda/bin").join(tool.name());
    places.push((usual.display().to_string(), executable(usual)));

    match cache(&set) {
        None => places.push(("cache".to_owned(), Err("TILEC_TOOLS, XDG_CACHE_HOME and HOME are not set".to_owned()))),
        Some(cache) => places.extend(tool.cache_folders(arch).map(|folder| {
            let file = cache.join(folder).join(tool.name());
            (file.display().to_string(), executable(file))
        })),
    }
    places
}

fn shown(name: &str, value: &OsStr) -> String {
    format!("{name}={}", value.display())
}

/// The cache folder of `scripts/fetch_tools.sh`.
fn cache(set: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let below = |name: &str, rest: &str| set(name).map(|root| Path::new(&root).join(rest));
    set("TILEC_TOOLS")
        .map(PathBuf::from)
        .or_else(|| below("XDG_CACHE_HOME", "tilec/tools"))
        .or_else(|| below("HOME", ".cache/tilec/tools"))
}

/// `path` when it is absolute and a file that may be executed.
fn executable(path: PathBuf) -> Result<PathBuf, String> {
    if !path.is_absolute() {
        return Err("not an absolute path".to_owned());
    }
    let meta = path.metadata().map_err(|_| "no such file".to_owned())?;
    if !meta.is_file() {
        return Err("not a file".to_owned());
    }
    #[cfg(unix)]
    if std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o111 == 0 {
        return Err("not executable".to_owned());
    }
    Ok(path)
}

/// Asks the tool for its version, once per path and process.
fn version_of(tool: Tool, path: &Path) -> Result<ToolVersion, String> {
    static ASKED: Mutex<BTreeMap<PathBuf, Result<ToolVersion, String>>> = Mutex::new(BTreeMap::new());
    // A poisoned lock only means that another thread died between two whole entries.
    let mut asked = ASKED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(known) = asked.get(path) {
        return known.clone();
    }
    let answer = PrivateDir::new()
        .and_then(|dir| child::run(tool, path, &["--version"], &dir, Duration::from_secs(10)))
        .map_err(|error| error.to_string())
        .and_then(|done| {
            ToolVersion::parse(&done.log).ok_or_else(|| format!("does not tell its version: {}", first_line(&done.log)))
        });
    asked.insert(path.to_owned(), answer.clone());
    answer
}

fn first_line(text: &str) -> String {
    text.trim().lines().next().unwrap_or("no output").chars().take(200).collect()
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    const V12_9: ToolVersion = ToolVersion { major: 12, minor: 9, build: 86 };
    const V13_5: ToolVersion = ToolVersion { major: 13, minor: 5, build: 37 };

    fn arch(text: &str) -> Arch {
        text.parse().unwrap()
    }

    /// A folder with executables that are never run.
    struct Fake(PathBuf);

    impl Fake {
        fn new(name: &str, files: &[&str]) -> Fake {
            let root = env::temp_dir().join(format!("tilec-find-{}-{name}", std::process::id()));
            for file in files {
                let file = root.join(file);
                std::fs::create_dir_all(file.parent().unwrap()).unwrap();
                std::fs::write(&file, "").unwrap();
                let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
                std::fs::set_permissions(&file, mode).unwrap();
            }
            Fake(root)
        }

        fn vars<'a>(&'a self, set: &'a [(&str, &str)]) -> impl Fn(&str) -> Option<OsString> + 'a {
            move |name| {
                let (_, value) = set.iter().find(|(key, _)| *key == name)?;
                Some(value.replace('~', &self.0.display().to_string()).into())
            }
        }
    }

    impl Drop for Fake {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    /// Takes the version from the name of the folder.
    fn by_folder(_: Tool, path: &Path) -> Result<ToolVersion, String> {
        // The folder alone: the temporary folder above it carries a process id, which may contain any digits.
        let folder = path.parent().and_then(Path::file_name).map_or_else(String::new, |n| n.to_string_lossy().into());
        if folder.contains("broken") {
            return Err("does not run".to_owned());
        }
        Ok(if folder.contains("13") { V13_5 } else { V12_9 })
    }

    #[test]
    fn versions_are_read_from_what_the_tools_print() {
        let said =
            "ptxas: NVIDIA (R) Ptx optimizing assembler\nCuda compilation tools, release 12.9, V12.9.86\nBuild x\n";
        assert_eq!(ToolVersion::parse(said), Some(V12_9));
        for bad in ["", "V", "V12", "V12.9", "V12.x.1", "V99999999999.1.1", "release 12.9"] {
            assert_eq!(ToolVersion::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn only_releases_before_13_serve_volta() {
        assert!(V12_9.serves(arch("sm_70")).is_ok());
        assert!(V13_5.serves(arch("sm_70")).is_err());
        assert!(V13_5.serves(arch("sm_75")).is_ok());
        assert!(V12_9.serves(arch("sm_110")).is_err());
        assert!(ToolVersion { major: 11, minor: 7, build: 0 }.serves(arch("sm_90")).is_err());
    }

    #[test]
    fn the_order_is_variable_path_cuda_home_cache() {
        let fake = Fake::new("order", &["env/ptxas", "path/ptxas", "home/bin/ptxas", "cache/ptxas-12.9/ptxas"]);
        let all = [
            ("TILEC_PTXAS", "~/env/ptxas"),
            ("PATH", "~/none:~/path"),
            ("CUDA_HOME", "~/home"),
            ("TILEC_TOOLS", "~/cache"),
        ];
        let expected = ["env/ptxas", "path/ptxas", "home/bin/ptxas", "cache/ptxas-12.9/ptxas"];
        for (skip, expected) in expected.iter().enumerate() {
            let found = find_with(Tool::Ptxas, arch("sm_70"), &fake.vars(&all[skip..]), &by_folder).unwrap();
            assert_eq!(found.path, fake.0.join(expected));
        }
    }

    #[test]
    fn a_version_that_cannot_serve_is_passed_over_and_said() {
        let fake = Fake::new("version", &["path13/ptxas", "cache/ptxas-12.9/ptxas", "cache/ptxas-13/ptxas"]);
        let set = [("PATH", "~/path13"), ("TILEC_TOOLS", "~/cache")];
        let volta = find_with(Tool::Ptxas, arch("sm_70"), &fake.vars(&set), &by_folder).unwrap();
        assert_eq!(volta.version, V12_9);
        assert!(
            volta.passed_over.iter().any(|r| r.place.contains("path13") && r.reason.contains("no longer knows sm_70"))
        );
        let turing = find_with(Tool::Ptxas, arch("sm_75"), &fake.vars(&set), &by_folder).unwrap();
        assert_eq!(turing.version, V13_5);
    }

    #[test]
    fn a_named_tool_that_is_not_there_is_not_replaced_by_another() {
        let fake = Fake::new("named", &["path/ptxas", "cache/ptxas-12.9/ptxas", "data"]);
        for (named, reason) in
            [("~/nowhere/ptxas", "no such file"), ("relative/ptxas", "not an absolute path"), ("~/path", "not a file")]
        {
            let set = [("TILEC_PTXAS", named), ("PATH", "~/path"), ("TILEC_TOOLS", "~/cache")];
            let failure = find_with(Tool::Ptxas, arch("sm_70"), &fake.vars(&set), &by_folder).unwrap_err();
            assert_eq!(failure.looked.len(), 1, "{failure}");
            let text = failure.to_string();
            assert!(text.contains("TILEC_PTXAS=") && text.contains(reason) && text.contains("unset it"), "{text}");
        }
    }

    #[test]
    fn a_named_tool_that_does_not_serve_is_not_replaced_by_another() {
        let fake = Fake::new("named-useless", &["broken/ptxas", "env13/ptxas", "cache/ptxas-12.9/ptxas"]);
        for (named, reason) in [("~/broken/ptxas", "does not run"), ("~/env13/ptxas", "no longer knows sm_70")] {
            let set = [("TILEC_PTXAS", named), ("TILEC_TOOLS", "~/cache")];
            let failure = find_with(Tool::Ptxas, arch("sm_70"), &fake.vars(&set), &by_folder).unwrap_err();
            let text = failure.to_string();
            assert!(failure.is_named() && text.contains("TILEC_PTXAS=") && text.contains(reason), "{text}");
        }
        let unset = find_with(Tool::Ptxas, arch("sm_70"), &|_| None, &|_, _| Err("no".to_owned())).unwrap_err();
        assert!(!unset.is_named());
    }

    #[test]
    fn failure_names_every_place_and_reason() {
        let fake = Fake::new("failure", &["broken/nvdisasm", "data"]);
        let set = [("PATH", "relative:~/broken"), ("CUDA_HOME", "~/nowhere"), ("XDG_CACHE_HOME", "~")];
        let failure = find_with(Tool::Nvdisasm, arch("sm_70"), &fake.vars(&set), &|tool, path| {
            // Whatever this machine has in /usr/local/cuda is not part of the test.
            if path.starts_with("/usr") { Err("does not run".to_owned()) } else { by_folder(tool, path) }
        })
        .unwrap_err();
        let text = failure.to_string();
        for part in [
            "broken/nvdisasm: does not run",
            "nowhere: no such file",
            "/usr/local/cuda/bin/nvdisasm: ",
            "tilec/tools/nvdisasm-12/nvdisasm: no such file",
            "tilec/tools/nvdisasm-13/nvdisasm: no such file",
            "scripts/fetch_tools.sh",
        ] {
            assert!(text.contains(part), "`{part}` not in:\n{text}");
        }
        let empty = find_with(Tool::Ptxas, arch("sm_70"), &|_| None, &|_, _| Err("no".to_owned())).unwrap_err();
        assert!(empty.to_string().contains("TILEC_PTXAS: not set"));
    }
}
