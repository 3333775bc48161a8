//! C headers: those of every example, compiled by gcc and g++ and run against a driver that writes down its calls, which must be what the contract says
//! by the library's own evaluation.

mod bundled;
mod compiled;
mod expected;
mod folder;
mod overlap;
mod pages;
mod problems;
mod program;
mod simulated;

use crate::programs::Test;
use crate::{golden, test_file};
use compiled::{TARGETS, compiled};
use folder::{Folder, exists};
use problems::{Problem, problems};
use std::path::Path;
use tilec::Compiled;
use tilec::c_header::{Image, bundle_reader, header};
use tilec::contract::{Contract, ParamKind};
use tilec_launch::Bundle;

/// Another way to compile an example: its name and that of the test, definitions, and values of `ALIGN` that are variants.
type Way = (&'static str, &'static str, &'static [(&'static str, &'static str)], &'static [&'static str]);
const MORE: [Way; 3] = [
    ("gemm", "variants", &[], &["8", "1"]),
    ("gemm_splitk", "variants", &[], &["8", "1"]),
    // Its tensor maps count pixels.
    ("conv2d", "im2col", &[("BK", "64"), ("CALIGN", "64")], &[]),
];
/// One test for each example, for some with variants, and for programs with the recording driver.
///
/// # Errors
/// If the directory cannot be read.
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
    tests.push(("c_header/overlap".to_owned(), Box::new(overlap::check)));
    for target in TARGETS {
        tests.push((format!("c_header/simulated/{}", target.name()), Box::new(move || simulated::programs(target))));
    }
    tests.push(("c_header/simulated/active".to_owned(), Box::new(simulated::active)));
    tests.push(("c_header/simulated/nearest".to_owned(), Box::new(simulated::nearest)));
    tests.push(("c_header/simulated/mistakes".to_owned(), Box::new(simulated::mistakes)));
    tests.extend(pages::tests());
    for (path, name) in test_file::walk(&crate::root().join("tests/c"))? {
        let stem = name.trim_end_matches(".tile").to_owned();
        tests.push((format!("c_header/own/{stem}"), Box::new(move || example(&path, &stem, "", &[], &[]))));
    }
    Ok(tests)
}

fn example(path: &Path, stem: &str, label: &str, defines: &[(&str, &str)], alignments: &[&str]) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
    let source = format!("examples/{stem}.tile");
    let all = compiled(&source, &text, defines, alignments);
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
    // Before anything is loaded, after it is unloaded, and on a device that runs none of it.
    let nothing = |of: &[Problem]| "no target\n".repeat(of.len());
    let mut expected = problems.first().map_or_else(String::new, |first| nothing(first));
    for (image, problems) in images.iter().zip(&problems) {
        expected += &expected::calls(image, problems)?;
        expected += &nothing(problems);
    }
    expected += "no target\n";
    let launched = expected.lines().filter(|line| line.starts_with("launch ")).count();
    if launched < 2 * images.len() {
        return Err(format!("{launched} launches of {source} are too few to say anything"));
    }
    every_call_is_hooked(&made)?;
    every_call_is_hooked(&bundle_reader())?;
    let folder = Folder::new(&format!("{stem}-{label}"))?;
    bundled(&folder, source, &images, &problems)?;
    folder.write("kernels.h", &made)?;
    let main = folder.write("main.c", &program::text(stem, &images, &problems))?;
    if !exists("gcc") {
        golden::skip("C headers", "there is no gcc");
        return Ok(());
    }
    let found = folder.run_c(&main, None)?;
    if found != expected {
        return Err(golden::differs(&expected, &found));
    }
    if !exists("g++") {
        golden::skip("C headers as C++", "there is no g++");
        return Ok(());
    }
    folder.check_cpp("kernels.h")
}

/// Every call of the driver is one that `TILEC_CU` may redirect.
fn every_call_is_hooked(header: &str) -> Result<(), String> {
    for (i, line) in header.lines().enumerate() {
        for (at, _) in line.match_indices("cu") {
            let rest = &line[at..];
            let word = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').map_or(rest, |end| &rest[..end]);
            let begins = !line[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
            let call = begins
                && word[2..].starts_with(|c: char| c.is_ascii_uppercase())
                && rest[word.len()..].starts_with('(');
            if call {
                return Err(format!("line {} of the header calls {word} without TILEC_CU", i + 1));
            }
        }
    }
    Ok(())
}

/// Launches the same out of a bundle, by its launch table.
fn bundled(folder: &Folder, source: &str, images: &[Image<'_>], problems: &[Vec<Problem>]) -> Result<(), String> {
    let mut bundle = Bundle::default();
    for image in images {
        bundle.add(image.target.name(), image.file, image.ptx, None).map_err(|e| e.to_string())?;
    }
    let asked: Vec<Vec<Problem>> = images
        .iter()
        .zip(problems)
        .map(|(image, problems)| problems.iter().filter_map(|problem| bundled::asked(image, problem)).collect())
        .collect();
    let calls = images.iter().zip(&asked).map(|(image, problems)| expected::calls(image, problems));
    // Launch tables do not support arrays of addresses; every request for them is rejected.
    let pointers = |c: &Contract| c.params.iter().any(|p| matches!(p.kind, ParamKind::Pointers(_)));
    let without = images.iter().all(|image| !image.file.kernels.iter().any(pointers));
    let expected = calls.collect::<Result<String, String>>()? + "refused\n";
    let path = folder.path("kernels.tilec");
    std::fs::write(&path, bundle.to_bytes()).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
    folder.write("tilec_bundle.h", &bundle_reader())?;
    let main = folder.write("bundled.c", &bundled::text(images, &asked))?;
    if !exists("gcc") {
        return Ok(());
    }
    let found = folder.run_c(&main, Some(&path))?;
    if without && found != expected {
        return Err(format!("launched out of a bundle of {source}:\n{}", golden::differs(&expected, &found)));
    }
    if !without && found.contains("launch ") && found != expected {
        return Err(format!("a launch table of {source} launches arrays of addresses"));
    }
    if exists("g++") { folder.check_cpp("tilec_bundle.h") } else { Ok(()) }
}
