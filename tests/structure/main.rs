//! Rules for the source text: no import cycles, limits for the lengths of functions and files, and requirements of the
//! registry on manifests.
//!
//! `docs/testing.md` has the rules. `known.rs` lists the exceptions. An exception that no longer applies must leave the
//! list.

mod circles;
mod known;
mod lex;
mod manifests;
mod modules;
mod sizes;

use circles::Arrows;
use known::{CHOOSE_MECHANISMS, CIRCLES, LONG_FILES, LONG_FUNCTIONS};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use tilec_ir::space::Space;

/// The folders of the workspace's crates.
const CRATES: [&str; 9] = ["core", "launch", "build", "ir", "passes", "ptx-emit", "sim", "driver", "tests"];
/// Crates in which calls of methods count as imports, if the type has `impl`s in several files. Other crates still have
/// cycles through methods: their parsers and interpreters are mutually recursive.
const THROUGH_METHODS: [&str; 1] = ["ptx-emit"];
const LONGEST_FUNCTION: usize = 100;
const LONGEST_FILE: usize = 800;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// The path below the workspace's root.
fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

fn verdict(faults: &[String]) {
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

/// What the circles of a crate's files have to do with the list: what is not on it, and what is on it for nothing.
fn faults(arrows: &Arrows, list: &[known::Circle], within: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let sets = circles::sets(arrows);
    let of = |set: &BTreeSet<String>| list.iter().find(|c| set.contains(c.file));
    for set in &sets {
        match of(set) {
            Some(known) if set.len() > known.files => {
                faults.push(format!(
                    "the circle of `{}` has {} files now, {} before",
                    known.file,
                    set.len(),
                    known.files
                ));
                faults.push(told(arrows, set));
            }
            Some(known) if set.len() < known.files => faults.push(format!(
                "the circle of `{}` has {} files now: say so in the list, which has {}",
                known.file,
                set.len(),
                known.files
            )),
            Some(_) => {}
            None => faults.push(told(arrows, set)),
        }
    }
    for known in list.iter().filter(|c| c.file.starts_with(within)) {
        if !sets.iter().any(|set| set.contains(known.file)) {
            faults.push(format!("`{}` is in no circle any more: take it off the list", known.file));
        }
    }
    faults
}

/// A shortest circle of a set, arrow by arrow with the names that it takes.
fn told(arrows: &Arrows, set: &BTreeSet<String>) -> String {
    let way = circles::shortest(arrows, set);
    let mut text = format!("a circle of files ({} are tangled with it):", set.len());
    for (i, from) in way.iter().enumerate() {
        let to = &way[(i + 1) % way.len()];
        let names: Vec<&str> = arrows[from][to].iter().map(String::as_str).collect();
        text += &format!("\n    {from} takes {} from {to}", names.join(", "));
    }
    text + "\n  move what both need to a file that imports neither"
}

#[test]
fn no_circle_of_files() -> Result<(), String> {
    let mut found = Vec::new();
    for name in CRATES {
        let read = modules::Crate::read(root(), &format!("{name}/src/lib.rs"))?;
        let arrows = circles::arrows(&read, THROUGH_METHODS.contains(&name));
        found.extend(faults(&arrows, CIRCLES, &format!("{name}/")));
    }
    verdict(&found);
    Ok(())
}

#[test]
fn functions_and_files_are_short() -> Result<(), String> {
    let mut found = Vec::new();
    let (mut functions, mut files) = (BTreeSet::new(), BTreeSet::new());
    for path in CRATES.iter().map(|name| sizes::rust_files(&root().join(name))).collect::<Result<Vec<_>, _>>()?.concat()
    {
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let file = shown(&path);
        let lines = text.lines().count();
        if lines > LONGEST_FILE {
            if !LONG_FILES.iter().any(|(known, _)| *known == file) {
                found.push(format!("{file} has {lines} lines, more than {LONGEST_FILE}: split it by idea"));
            }
            files.insert(file.clone());
        }
        for (name, line, lines) in sizes::functions(&text).into_iter().filter(|(.., lines)| *lines > LONGEST_FUNCTION) {
            if !LONG_FUNCTIONS.iter().any(|(known, function, _)| *known == file && *function == name) {
                found.push(format!("{file}:{line}: `{name}` has {lines} lines, more than {LONGEST_FUNCTION}"));
            }
            functions.insert((file.clone(), name));
        }
    }
    for (file, _) in LONG_FILES.iter().filter(|(file, _)| !files.contains(*file)) {
        found.push(format!("{file} is short, or gone: take it off the list"));
    }
    for (file, name, _) in LONG_FUNCTIONS {
        if !functions.contains(&((*file).to_owned(), (*name).to_owned())) {
            found.push(format!("`{name}` of {file} is short, or gone: take it off the list"));
        }
    }
    verdict(&found);
    Ok(())
}

/// The positions in a text, as path and line, of one of `names` followed by a variant; comments and tests do not count.
fn named(path: &Path, names: &[String]) -> Result<Vec<(String, usize, String)>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let end = text.find("#[cfg(test)]").unwrap_or(text.len());
    let code = |line: &str| line.split("//").next().unwrap_or_default().to_owned();
    let lines = text[..end].lines().enumerate();
    let found = lines.flat_map(|(i, line)| {
        let line = code(line);
        names.iter().filter(|name| line.contains(name.as_str())).map(|n| (i + 1, n.clone())).collect::<Vec<_>>()
    });
    Ok(found.map(|(line, name)| (shown(path), line, name)).collect())
}

/// A file that git ignores is on one machine only: a clean clone would not compile. Only what tools write may be ignored.
#[test]
fn no_source_is_ignored() -> Result<(), String> {
    let mut git = std::process::Command::new("git");
    git.current_dir(root()).args(["ls-files", "--others", "--ignored", "--exclude-standard"]).args(CRATES);
    let listed = git.output().ok().filter(|listed| listed.status.success());
    let Some(listed) = listed else {
        let line = "skipped: files that git ignores: this is no checkout, or there is no git\n";
        return std::io::stderr().write_all(line.as_bytes()).map_err(|e| e.to_string());
    };
    let written = ["target", "__pycache__", "node_modules"];
    let files = String::from_utf8_lossy(&listed.stdout);
    let ignored = files.lines().filter(|file| !file.split('/').any(|part| written.contains(&part)));
    verdict(&ignored.map(|file| format!("git ignores {file}: except it in .gitignore")).collect::<Vec<_>>());
    Ok(())
}

/// A pass, its file, its test and its row in the list of passes have one name.
#[test]
fn passes_have_one_name() -> Result<(), String> {
    let architecture = std::fs::read_to_string(root().join("docs/architecture.md")).map_err(|e| e.to_string())?;
    let mut missing = Vec::new();
    for pass in tilec_passes::PASSES {
        let name = pass.name;
        let source = format!("passes/src/{}.rs", name.replace('-', "_"));
        for file in [source, format!("tests/files/pass/{name}.tile"), format!("docs/passes/{name}.md")] {
            if !root().join(&file).is_file() {
                missing.push(format!("`{name}` has no {file}"));
            }
        }
        if !architecture.contains(&format!("| [`{name}`](passes/{name}.md) |")) {
            missing.push(format!("`{name}` has no row in docs/architecture.md that names its page"));
        }
    }
    verdict(&missing);
    Ok(())
}

/// Passes and the driver query properties of memory spaces and mechanisms. Only the pass that chooses a new one may
/// name it.
#[test]
fn passes_name_no_space_and_no_mechanism() -> Result<(), String> {
    let (mut found, mut chose) = (Vec::new(), BTreeSet::new());
    let spaces: Vec<String> = Space::ALL.iter().map(|space| format!("Space::{space:?}")).collect();
    let mechanisms = ["Mechanism::".to_owned()];
    for folder in ["passes/src", "driver/src"] {
        for path in sizes::rust_files(&root().join(folder))? {
            let file = shown(&path);
            for (file, line, name) in named(&path, &spaces)? {
                found.push(format!("{file}:{line} names `{name}`: ask what the space can do (`ir/src/space.rs`)"));
            }
            let chooses = CHOOSE_MECHANISMS.iter().any(|(known, _)| *known == file);
            for (file, line, _) in named(&path, &mechanisms)? {
                chose.insert(file.clone());
                if !chooses {
                    found.push(format!("{file}:{line} names a mechanism: ask what it can do (`ir/src/mechanism.rs`)"));
                }
            }
        }
    }
    for (file, _) in CHOOSE_MECHANISMS.iter().filter(|(file, _)| !chose.contains(*file)) {
        found.push(format!("{file} chooses no mechanism any more: take it off the list"));
    }
    verdict(&found);
    Ok(())
}

/// A crate of a few files, in a separate folder.
fn house(name: &str, files: &[(&str, &str)]) -> Result<Arrows, String> {
    let folder = std::env::temp_dir().join(format!("tilec-structure-{}-{name}", std::process::id()));
    for (path, text) in files {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap_or(&folder)).map_err(|error| error.to_string())?;
        std::fs::write(path, text).map_err(|error| error.to_string())?;
    }
    let read = modules::Crate::read(&folder, "lib.rs");
    std::fs::remove_dir_all(&folder).map_err(|error| error.to_string())?;
    Ok(circles::arrows(&read?, true))
}

/// A name, files with their text, and the files that are in a circle.
type Case = (&'static str, &'static [(&'static str, &'static str)], &'static [&'static str]);

#[test]
fn circles_are_seen_whatever_the_path() -> Result<(), String> {
    let cases: [Case; 8] = [
        (
            "straight",
            &[
                ("lib.rs", "mod a; mod b;"),
                ("a.rs", "use crate::b::{self, y}; pub fn x() { y() }"),
                ("b.rs", "pub fn y() { super::a::x() }"),
            ],
            &["a.rs", "b.rs"],
        ),
        (
            "parent and child",
            &[
                ("lib.rs", "mod a;"),
                ("a.rs", "mod c; pub struct S; fn f() { c::g() }"),
                ("a/c.rs", "use super::S; pub fn g() -> S { S }"),
            ],
            &["a.rs", "a/c.rs"],
        ),
        (
            "handed on",
            &[
                ("lib.rs", "mod a; mod b; mod face;"),
                ("face.rs", "pub use crate::b::y as z;"),
                ("a.rs", "use crate::face::*; pub fn x() { z() }"),
                ("b.rs", "use crate::a; pub fn y() { a::x() }"),
            ],
            &["a.rs", "b.rs"],
        ),
        (
            "through a third",
            &[
                ("lib.rs", "mod a; mod b; mod c;"),
                ("a.rs", "pub fn x() { crate::b::y() }"),
                ("b.rs", "use super::c::w; pub fn y() { w() }"),
                ("c.rs", "use crate::{a::{x as v}}; pub fn w() { v() }"),
            ],
            &["a.rs", "b.rs", "c.rs"],
        ),
        (
            "tests, texts and comments do not count",
            &[
                ("lib.rs", "mod a; mod b;"),
                ("a.rs", "use crate::b::y; pub fn x() { y() }"),
                (
                    "b.rs",
                    "pub fn y() { \"crate::a::x\"; } // crate::a::x\n#[cfg(test)] mod tests { use crate::a::x; fn t() { x() } }",
                ),
            ],
            &[],
        ),
        (
            "a face is in none",
            &[
                ("lib.rs", "mod a; mod b; pub use a::x; pub use b::T;"),
                ("a.rs", "use crate::T; pub fn x() -> T { T }"),
                ("b.rs", "pub struct T;"),
            ],
            &[],
        ),
        (
            "through methods",
            &[
                ("lib.rs", "mod a; mod b; mod s;"),
                ("s.rs", "pub struct S<'a>(&'a u8);"),
                ("a.rs", "use super::s::S; impl S<'_> { pub fn x(&self) { self.y() } }"),
                ("b.rs", "use crate::s::S; impl<'a> S<'a> { pub fn y(&self) { self.x() } }"),
            ],
            &["a.rs", "b.rs"],
        ),
        (
            "methods of traits and of other types are in none",
            &[
                ("lib.rs", "mod a; mod b; mod s;"),
                ("s.rs", "pub struct S; pub struct R; pub trait T { fn t(&self); }"),
                ("a.rs", "use crate::s::S; impl S { pub fn x(&self) { self.y(); self.t() } }"),
                (
                    "b.rs",
                    "use crate::s::{R, S, T}; impl R { fn y(&self) { self.x() } } impl T for S { fn t(&self) { self.x() } }",
                ),
            ],
            &[],
        ),
    ];
    for (name, files, circle) in cases {
        let arrows = house(&name.replace(' ', "-"), files)?;
        let sets = circles::sets(&arrows);
        let found: Vec<&str> = sets.iter().flatten().map(String::as_str).collect();
        assert_eq!(found, circle, "{name}");
        assert_eq!(sets.first().map_or(0, |set| circles::shortest(&arrows, set).len()), circle.len(), "{name}");
    }
    Ok(())
}

#[test]
fn the_list_shrinks() -> Result<(), String> {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "pub fn x() { crate::b::y() }"),
        ("b.rs", "pub fn y() { crate::a::x() }"),
    ];
    let arrows = house("list", &files)?;
    let list = |file, files| [known::Circle { file, files, why: "" }];
    let said = |list: &[known::Circle]| faults(&arrows, list, "").join("\n");
    assert_eq!(said(&list("a.rs", 2)), "");
    assert!(said(&list("a.rs", 3)).contains("has 2 files now"), "{}", said(&list("a.rs", 3)));
    assert!(said(&list("a.rs", 1)).contains("a.rs takes y from b.rs"), "{}", said(&list("a.rs", 1)));
    assert!(said(&list("c.rs", 2)).contains("take it off the list"), "{}", said(&list("c.rs", 2)));
    assert!(said(&[]).contains("b.rs takes x from a.rs"), "{}", said(&[]));
    Ok(())
}
