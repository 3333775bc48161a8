//! `cli ARGS`: the `tilec` command itself, run from the root. `{file}` in an argument is this file, `{out}` an empty folder.
//!
//! `//@ exit: 1` is the expected status (0 if not given), `//@ stdin: {file}` feeds a file. What it writes to `stdout` and `stderr` is
//! expected output, unless `//@ check:` and `//@ not:` look at both together; `//@ leaves: NAME` names every file it leaves in
//! `{out}`.

use super::checks::checks;
use crate::golden;
use crate::test_file::TestFile;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::{fs, io};

pub(super) fn run(file: &TestFile) -> Result<(), String> {
    file.allow_keys(&["exit", "stdin", "check", "not", "leaves"])?;
    let out = Scratch::new(&file.name).map_err(|e| format!("cannot make a folder: {e}"))?;
    let root = crate::root();
    let path = format!("tests/files/{}", file.name);
    let expand = |word: &str| word.replace("{file}", &path).replace("{out}", &out.0.display().to_string());
    let stdin = match file.value("stdin") {
        Some(name) => fs::File::open(root.join(expand(name))).map_err(|e| e.to_string())?.into(),
        None => Stdio::null(),
    };
    let done = Command::new(binary()?)
        .args(file.args.iter().map(|a| expand(a)))
        .current_dir(&root)
        .env_remove("TILEC_BLESS")
        .env("NO_COLOR", "1")
        .stdin(stdin)
        .output()
        .map_err(|e| format!("cannot run tilec: {e}"))?;
    let hide = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(&out.0.display().to_string(), "{out}");
    let (stdout, stderr) = (hide(&done.stdout), hide(&done.stderr));
    let wanted: i32 = file.value("exit").unwrap_or("0").parse().map_err(|_| "`exit` is not a number")?;
    if done.status.code() != Some(wanted) {
        return Err(format!("{}, expected {wanted}\n{stdout}\n{stderr}", done.status));
    }
    let mut left: Vec<String> = fs::read_dir(&out.0)
        .and_then(|entries| entries.map(|e| Ok(e?.file_name().to_string_lossy().into_owned())).collect())
        .map_err(|e: io::Error| e.to_string())?;
    left.sort();
    let leaves: Vec<&str> = file.values("leaves").flat_map(str::split_whitespace).collect();
    if left != leaves {
        return Err(format!("it leaves the files {left:?}, expected {leaves:?}"));
    }
    if checks(file, &format!("{stdout}{stderr}"))? {
        return golden::check(file, &[]);
    }
    let outputs = [("stdout", stdout), ("stderr", stderr)].map(|(n, t)| (n.to_owned(), t));
    golden::check(file, &outputs.into_iter().filter(|(_, t)| !t.is_empty()).collect::<Vec<_>>())
}

/// An empty folder of one test, removed at the end.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> io::Result<Scratch> {
        let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let dir = std::env::temp_dir().join(format!("tilec-test-{}-{name}", std::process::id()));
        // Process numbers are reused: a run that was stopped may have left a folder of this name.
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir)?;
        Ok(Scratch(dir))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Files that cannot be removed stay in the system's temporary folder.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The `tilec` command: `TILEC_BIN`, else built, once, as the tests are.
pub(crate) fn binary() -> Result<PathBuf, String> {
    static BINARY: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    BINARY.get_or_init(build).clone()
}

fn build() -> Result<PathBuf, String> {
    if let Some(path) = std::env::var_os("TILEC_BIN") {
        return Ok(path.into());
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let done = Command::new(cargo)
        .args(["build", "--quiet", "--profile", "test", "-p", "tilec", "--bin", "tilec", "--message-format", "json"])
        .current_dir(crate::root())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|e| format!("cannot run cargo: {e}"))?;
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    let messages = said.lines().filter_map(|l| serde_json::from_str::<serde_json::Value>(l).ok());
    let mut executables = messages.filter_map(|m| m.get("executable")?.as_str().map(PathBuf::from));
    executables.next_back().filter(|_| done.status.success()).ok_or_else(|| "cannot build tilec".to_owned())
}
