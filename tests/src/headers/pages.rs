//! The programs of `docs/c.md`, compiled as the page says, with a driver that has no device (`tests/c/libcuda.c`).

use super::folder::{Folder, exists};
use crate::golden;
use crate::programs::Test;
use tilec::c_header::{Image, header};
use tilec::{CompileOptions, Compiled, Target, compile};

/// A check in a prepared folder.
type Check = fn(&Folder) -> Result<(), String>;

/// One test for each program.
pub(super) fn tests() -> Vec<Test> {
    let all: [(&str, Check); 3] =
        [("first", first), ("without_a_driver", without_a_driver), ("several_files", several_files)];
    all.into_iter()
        .map(|(name, check)| {
            let run = move || if exists("gcc") { check(&prepared(name)?) } else { skipped() };
            (format!("c_header/page/{name}"), Box::new(run) as _)
        })
        .collect()
}

fn skipped() -> Result<(), String> {
    golden::skip("programs of docs/c.md", "there is no gcc");
    Ok(())
}

/// A folder with the header of the page's kernel, and a driver without a device.
fn prepared(name: &str) -> Result<Folder, String> {
    let folder = Folder::new(&format!("page-{name}"))?;
    let source = crate::root().join("examples/rms_norm.tile");
    let text = std::fs::read_to_string(&source).map_err(|e| format!("cannot read {}: {e}", source.display()))?;
    let options =
        |target| CompileOptions { source_name: "rms_norm.tile".to_owned(), target, ..CompileOptions::default() };
    let all: Vec<Compiled> = [Target::Sm70, Target::Sm80, Target::Sm90a]
        .into_iter()
        .map(|target| compile(&text, &options(target)).map_err(|e| e.to_string()))
        .collect::<Result<_, _>>()?;
    let files: Vec<_> = all.iter().map(Compiled::launch_file).collect();
    let images: Vec<Image<'_>> =
        all.iter().zip(&files).map(|(c, file)| Image { target: c.target, ptx: &c.ptx, file }).collect();
    folder.write("rms_norm.h", &header("rms_norm.tile", &images).map_err(|e| e.to_string())?)?;
    folder.gcc(&["-shared", "-fPIC", "-o", "libcuda.so.1"], &[&crate::root().join("tests/c/libcuda.c")])?;
    Ok(folder)
}

/// The block of C on the page that begins with a comment of this name.
fn block(name: &str) -> Result<String, String> {
    let page = crate::root().join("docs/c.md");
    let text = std::fs::read_to_string(&page).map_err(|e| format!("cannot read {}: {e}", page.display()))?;
    let begin = format!("```c\n/* {name}");
    let at = text.find(&begin).ok_or_else(|| format!("docs/c.md has no program `{name}`"))?;
    let rest = &text[at + "```c\n".len()..];
    let end = rest.find("```").ok_or("a block of docs/c.md has no end")?;
    Ok(rest[..end].to_owned())
}

/// A whole program: it loads, launches and copies back.
fn first(folder: &Folder) -> Result<(), String> {
    let main = folder.write("first.c", &block("first.c")?)?;
    folder.gcc(&["-std=c99", "-o", "first"], &[&main, &folder.path("libcuda.so.1")])?;
    let (said, calls) = folder.run_with_driver("first", true)?;
    let launches = calls.lines().filter(|line| line.starts_with("launch rms_norm ")).count();
    if said != "Y[0] = 0.000000\n" || launches != 1 {
        return Err(format!("first.c says `{said}`, and launches {launches} times"));
    }
    Ok(())
}

/// A program that opens the driver while it runs: it has no symbol of it, and starts without one.
fn without_a_driver(folder: &Folder) -> Result<(), String> {
    folder.write("driver_table.h", &block("driver_table.h")?)?;
    let main = folder.write("engine.c", &block("engine.c")?)?;
    folder.gcc(&["-std=c99", "-o", "engine"], &[&main, std::path::Path::new("-ldl")])?;
    let (said, calls) = folder.run_with_driver("engine", true)?;
    if said != "on the GPU\n" || !calls.contains("launch rms_norm ") {
        return Err(format!("engine.c with a driver says `{said}`, and calls\n{calls}"));
    }
    let (said, calls) = folder.run_with_driver("engine", false)?;
    if said != "no driver: on the CPU\n" || !calls.is_empty() {
        return Err(format!("engine.c without a driver says `{said}`, and calls\n{calls}"));
    }
    Ok(())
}

/// One file has the PTX, and others call.
fn several_files(folder: &Folder) -> Result<(), String> {
    let kernels = folder.write("kernels.c", "#define TILEC_DEFINE\n#include \"rms_norm.h\"\n")?;
    let main = folder.write(
        "main.c",
        "#define TILEC_DECLARE_ONLY
#include \"rms_norm.h\"
#include <stdio.h>
#include <string.h>
int main(void)
{
    static rms_norm_kernels k;
    rms_norm_args a = rms_norm_make(0x100000, 0x200000, 0x300000, 4, 2000);
    char text[200], cut[12];
    int code = rms_norm_launch(&k, NULL, &a);
    puts(rms_norm_kernels_kind(code) == TILEC_TARGET ? \"nothing is loaded\" : \"?\");
    code = rms_norm_kernels_load(&k, NULL, 0);
    puts(rms_norm_explain(rms_norm_launch(&k, NULL, &a), &a, text, sizeof text));
    a.N = 0;
    puts(rms_norm_explain(rms_norm_launch(&k, NULL, &a), &a, text, sizeof text));
    puts(rms_norm_explain(-1, &a, cut, sizeof cut));
    a.N = 1000;
    printf(\"%d %d\\n\", code, rms_norm_launch(&k, NULL, &a));
    return rms_norm_kernels_unload(&k);
}
",
    )?;
    folder.gcc(&["-std=c99", "-o", "both"], &[&kernels, &main, &folder.path("libcuda.so.1")])?;
    let (said, _) = folder.run_with_driver("both", true)?;
    let values = "(eps = 9.99999997e-07, M = 4, N = 2000, X_ld = packed, Y_ld = packed)";
    let zero = values.replace("2000", "0");
    let expected = [
        "nothing is loaded".to_owned(),
        format!("rms_norm (sm_80): requires N <= 1024 {values}"),
        format!("rms_norm (sm_80): `N` is 0: a kernel with `where N >= 0` takes it {zero}"),
        "rms_norm (s".to_owned(),
        "0 0".to_owned(),
    ];
    if said.lines().collect::<Vec<_>>() != expected {
        return Err(golden::differs(&expected.join("\n"), &said));
    }
    // A file that only declares has no PTX.
    folder.gcc(&["-std=c99", "-c", "-o", "main.o"], &[&main])?;
    let size = std::fs::metadata(folder.path("main.o")).map_err(|e| e.to_string())?.len();
    if size > 8192 {
        return Err(format!("a file that declares kernels has {size} bytes"));
    }
    if exists("g++") { folder.check_cpp_defined("rms_norm.h") } else { Ok(()) }
}
