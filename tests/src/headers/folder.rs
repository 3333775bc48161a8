//! Folders with programs of C, which compilers read.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Warnings of gcc and g++ that must not occur.
const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-pedantic", "-Werror"];

/// A folder that is removed in the end.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new(name: &str) -> Result<Folder, String> {
        let path = std::env::temp_dir().join(format!("tilec-header-{}-{name}", std::process::id()));
        // Process numbers are reused: a run that was stopped may have left a folder of this name.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).map_err(|e| format!("cannot make {}: {e}", path.display()))?;
        Ok(Folder(path))
    }

    pub(super) fn write(&self, name: &str, text: &str) -> Result<PathBuf, String> {
        let path = self.0.join(name);
        std::fs::write(&path, text).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
        Ok(path)
    }
}

impl Folder {
    /// Compiles a program with the driver that writes its calls down, and runs it.
    pub(super) fn run_c(&self, main: &Path, argument: Option<&Path>) -> Result<String, String> {
        let own = crate::root().join("tests/c");
        let binary = main.with_extension("run");
        let mut gcc = Command::new("gcc");
        gcc.arg("-std=c99").args(WARNINGS).arg("-I").arg(&own).arg("-I").arg(&self.0).arg("-o").arg(&binary);
        run(gcc.arg(main).arg(own.join("driver.c")))?;
        run(Command::new(&binary).args(argument))
    }

    /// Compiles a program and runs it on the simulator, with `libcuda` instead of the driver, as a device of `target`.
    /// Standard error comes before standard output.
    pub(super) fn run_simulated(&self, main: &Path, target: &str, arguments: &[&Path]) -> Result<String, String> {
        let driver = self.path("libcuda.so.1");
        if !driver.exists() {
            let made = simulated_driver()?;
            std::fs::copy(&made, &driver).map_err(|e| format!("cannot copy {}: {e}", made.display()))?;
        }
        let binary = main.with_extension("run");
        let mut gcc = Command::new("gcc");
        gcc.arg("-std=c99").args(WARNINGS).arg("-I").arg(&self.0).arg("-isystem").arg(crate::root().join("tests/c"));
        run(gcc.arg("-o").arg(&binary).arg(main).arg("-L").arg(&self.0).args(["-l:libcuda.so.1", "-lm"]))?;
        let mut program = Command::new(&binary);
        program.args(arguments).env("LD_LIBRARY_PATH", &self.0).env("TILEC_SIM_TARGET", target);
        let output = program.output().map_err(|e| format!("cannot run {program:?}: {e}"))?;
        let said = [output.stderr, output.stdout].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        if output.status.success() { Ok(said) } else { Err(format!("{program:?} failed:\n{said}")) }
    }

    /// Compiles files in this folder, without warnings.
    pub(super) fn gcc(&self, options: &[&str], files: &[&Path]) -> Result<(), String> {
        let mut gcc = Command::new("gcc");
        gcc.current_dir(&self.0).args(WARNINGS).arg("-I").arg(crate::root().join("tests/c")).arg("-I").arg(".");
        run(gcc.args(options).args(files)).map(|_| ())
    }

    /// Runs a program of this folder with or without the recording driver: returns its output and its driver calls.
    pub(super) fn run_with_driver(&self, name: &str, driver: bool) -> Result<(String, String), String> {
        let calls = self.0.join("calls");
        let _ = std::fs::remove_file(&calls);
        let libraries = if driver { self.0.as_path() } else { Path::new("/nonexistent") };
        let mut program = Command::new(self.0.join(name));
        let said = run(program.current_dir(&self.0).env("LD_LIBRARY_PATH", libraries).env("TEST_CALLS", &calls))?;
        Ok((said, std::fs::read_to_string(&calls).unwrap_or_default()))
    }

    /// Has a C++ compiler read a header.
    pub(super) fn check_cpp(&self, header: &str) -> Result<(), String> {
        self.read_by_cpp(&format!("#include \"{header}\"\nint main() {{ return 0; }}\n"))
    }

    /// The same for a header whose functions are defined in another file.
    pub(super) fn check_cpp_defined(&self, header: &str) -> Result<(), String> {
        self.read_by_cpp(&format!("#define TILEC_DEFINE\n#include \"{header}\"\n"))?;
        self.read_by_cpp(&format!("#define TILEC_DECLARE_ONLY\n#include \"{header}\"\n"))
    }

    fn read_by_cpp(&self, text: &str) -> Result<(), String> {
        let user = self.write("user.cpp", text)?;
        let mut cpp = Command::new("g++");
        cpp.arg("-std=c++11")
            .args(WARNINGS)
            .arg("-Wold-style-cast")
            .arg("-fsyntax-only")
            .arg("-I")
            .arg(crate::root().join("tests/c"));
        run(cpp.arg("-I").arg(&self.0).arg(&user)).map(|_| ())
    }
}

impl Folder {
    /// A file in it.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The library that replaces the driver: cargo builds it next to the tests, because this package depends on it.
fn simulated_driver() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|e| e.to_string())?;
    let made = own.with_file_name("libtilec_libcuda.so");
    if made.exists() { Ok(made) } else { Err(format!("{} is not there", made.display())) }
}

/// Runs a program, and gives what it writes to standard output.
fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|e| format!("cannot run {command:?}: {e}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let first: Vec<&str> = said.lines().take(30).collect();
        return Err(format!("{command:?} failed:\n{}", first.join("\n")));
    }
    String::from_utf8(output.stdout).map_err(|e| e.to_string())
}

/// Whether a compiler is there.
pub(super) fn exists(compiler: &str) -> bool {
    Command::new(compiler).arg("--version").output().is_ok_and(|o| o.status.success())
}
