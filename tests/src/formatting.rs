//! `tilec fmt` over every program of the repository.

use std::fs;
use std::path::{Path, PathBuf};
use tilec_ir::diag::Sink;
use tilec_ir::format::format;
use tilec_ir::parser::parse;
use tilec_ir::structural_equality::same_module;

/// Whether a file that is refused is to be: it has comments alone, or the code of its mistake is in it or is its name.
fn no_program(path: &Path, source: &str, sink: &Sink) -> bool {
    let name = path.file_stem().unwrap().to_string_lossy();
    let comments = source.lines().all(|l| l.trim().is_empty() || l.trim_start().starts_with("//"));
    comments || sink.diagnostics().iter().any(|d| source.contains(d.code.0) || name == d.code.0)
}

/// Every `.tile` file under a folder, in order; but for what was built.
fn programs(folder: &Path, out: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() && ["target", "node_modules", ".git"].iter().any(|built| path.ends_with(built)) {
            continue;
        }
        if path.is_dir() {
            programs(&path, out);
        } else if path.extension().is_some_and(|e| e == "tile") {
            out.push(path);
        }
    }
}

fn under(folder: &str) -> Vec<PathBuf> {
    let mut out = Vec::new();
    programs(&crate::root().join(folder), &mut out);
    assert!(!out.is_empty(), "{folder}");
    out
}

#[test]
fn examples_are_formatted() {
    for path in under("examples") {
        let source = fs::read_to_string(&path).unwrap();
        assert_eq!(format(&source, &mut Sink::new()), Ok(source), "{}: `tilec fmt` it", path.display());
    }
}

/// Every program of the repository can be formatted, formatting is idempotent, and the program is unchanged. A rejected
/// file is no program: it has no kernel, or an error that its own expectation names.
#[test]
fn formatting_is_done_once_and_keeps_programs() {
    let mut formatted = 0;
    for path in under("") {
        let source = fs::read_to_string(&path).unwrap();
        let mut sink = Sink::new();
        let Ok(module) = parse(&source, &mut sink) else {
            assert!(no_program(&path, &source, &sink), "{}: {:?}", path.display(), sink.diagnostics());
            continue;
        };
        let text = format(&source, &mut sink).unwrap_or_else(|_| panic!("{}", path.display()));
        assert_eq!(format(&text, &mut sink).as_ref(), Ok(&text), "{}", path.display());
        let again = parse(&text, &mut sink).unwrap_or_else(|_| panic!("{}:\n{text}", path.display()));
        assert_eq!(same_module(&module, &again), Ok(()), "{}", path.display());
        formatted += 1;
    }
    assert!(formatted > 500, "{formatted}");
}
