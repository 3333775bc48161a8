//! C headers: those of every example, compiled by gcc and g++ and run against a driver that writes down its calls, which must be what the contract says
//! by the library's own evaluation.

mod expected;
mod problems;
mod program;

use crate::programs::Test;
use crate::{golden, test_file};
use problems::{Problem, problems};
use std::path::{Path, PathBuf};
use std::process::Command;
use tilec::c_header::{Image, header};
use tilec::{CompileOptions, Compiled, Target, compile};

/// The targets of each header.
const TARGETS: [Target; 3] = [Target::Sm70, Target::Sm80, Target::Sm90a];
/// Another way to compile an example: its name and that of the test, definitions, and values of `ALIGN` that are variants.
type Way = (&'static str, &'static str, &'static [(&'static str, &'static str)], &'static [&'static str]);
const MORE: [Way; 3] = [
    ("gemm", "variants", &[], &["8", "1"]),
    ("gemm_splitk", "variants", &[], &["8", "1"]),
    // Its tensor maps count pixels.
    ("conv2d", "im2col", &[("BK", "64"), ("CALIGN", "64")], &[]),
];
/// What gcc and g++ must have nothing to say about.
const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-pedantic", "-Werror"];

/// One test for each example, and for some with variants; and for the programs beside the driver that writes calls down.
///
/// # Errors
/// The directory cannot be read.
pub fn tests() -> Result<Vec<Test>, String> {
    let mut tests: Vec<Test> = Vec::new();
    // Kernels of the crate in `examples/rust` are launched by its own tests.
    let examples = test_file::walk(&crate::root().join("examples"))?;
    for (path, name) in examples.into_iter().filter(|(_, name)| !name.contains('/')) {
        let stem = name.trim_end_matches(".tile").to_owned();
        for (of, label, defines, alignments) in MORE.iter().filter(|(of, ..)| *of == stem) {
            let path = path.clone();
            let check = move || example(&path, of, label, defines, alignments);
            tests.push((format!("c_header/{stem}_{label}"), Box::new(check)));
        }
        tests.push((format!("c_header/{stem}"), Box::new(move || example(&path, &stem, "", &[], &[]))));
    }
    for (path, name) in test_file::walk(&crate::root().join("tests/c"))? {
        let stem = name.trim_end_matches(".tile").to_owned();
        tests.push((format!("c_header/own/{stem}"), Box::new(move || example(&path, &stem, "", &[], &[]))));
    }
    Ok(tests)
}

/// A folder that is removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Result<Folder, String> {
        let path = std::env::temp_dir().join(format!("tilec-header-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).map_err(|e| format!("cannot make {}: {e}", path.display()))?;
        Ok(Folder(path))
    }

    fn write(&self, name: &str, text: &str) -> Result<PathBuf, String> {
        let path = self.0.join(name);
        std::fs::write(&path, text).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
        Ok(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
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
fn exists(compiler: &str) -> bool {
    Command::new(compiler).arg("--version").output().is_ok_and(|o| o.status.success())
}

fn example(path: &Path, stem: &str, label: &str, defines: &[(&str, &str)], alignments: &[&str]) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
    let source = format!("examples/{stem}.tile");
    let variants = alignments.iter().map(|n| vec![("ALIGN".to_owned(), (*n).to_owned())]).collect::<Vec<_>>();
    // Some are for one target; what they are compiled for elsewhere is another matter.
    let all: Vec<Compiled> = TARGETS
        .into_iter()
        .filter_map(|target| {
            let variants = variants.clone();
            let defines = defines.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            let options = CompileOptions {
                source_name: source.clone(),
                target,
                defines,
                variants,
                report_accesses: false,
                verify_each: false,
                ..CompileOptions::default()
            };
            compile(&text, &options).ok()
        })
        .collect();
    if all.is_empty() {
        return Err(format!("{source} compiles for no target"));
    }
    check(stem, label, &source, &text, &all)
}

/// Writes the header and a program that launches everything in it, and compares its calls.
fn check(stem: &str, label: &str, source: &str, text: &str, all: &[Compiled]) -> Result<(), String> {
    let files: Vec<_> = all.iter().map(Compiled::launch_file).collect();
    let images: Vec<Image<'_>> =
        all.iter().zip(&files).map(|(c, file)| Image { target: c.target, ptx: &c.ptx, file }).collect();
    let made = header(source, &images).map_err(|e| e.to_string())?;
    let problems: Vec<Vec<Problem>> = images.iter().map(|image| problems(image, text)).collect();
    let expected: String = images
        .iter()
        .zip(&problems)
        .map(|(image, problems)| expected::calls(image, problems))
        .collect::<Result<_, _>>()?;
    // A device that runs none of it.
    let expected = expected + "refused\n";
    let launched = expected.lines().filter(|line| line.starts_with("launch ")).count();
    if launched < 2 * images.len() {
        return Err(format!("{launched} launches of {source} are too few to say anything"));
    }
    let folder = Folder::new(&format!("{stem}-{label}"))?;
    folder.write("kernels.h", &made)?;
    let main = folder.write("main.c", &program::text(stem, &images, &problems))?;
    if !exists("gcc") {
        golden::skip("C headers", "there is no gcc");
        return Ok(());
    }
    let own = crate::root().join("tests/c");
    let binary = folder.0.join("main");
    run(Command::new("gcc")
        .arg("-std=c99")
        .args(WARNINGS)
        .arg("-I")
        .arg(&own)
        .arg("-I")
        .arg(&folder.0)
        .arg("-o")
        .arg(&binary)
        .arg(&main)
        .arg(own.join("driver.c")))?;
    let found = run(&mut Command::new(&binary))?;
    if found != expected {
        return Err(golden::differs(&expected, &found));
    }
    if !exists("g++") {
        golden::skip("C headers as C++", "there is no g++");
        return Ok(());
    }
    let user = folder.write("user.cpp", "#include \"kernels.h\"\nint main() { return 0; }\n")?;
    run(Command::new("g++")
        .arg("-std=c++11")
        .args(WARNINGS)
        .arg("-fsyntax-only")
        .arg("-I")
        .arg(&own)
        .arg("-I")
        .arg(&folder.0)
        .arg(&user))
    .map(|_| ())
}
