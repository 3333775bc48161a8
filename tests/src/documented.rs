//! The commands that examples/README.md and the head comments of examples give: each of them succeeds, from the root of a fresh clone.
//!
//! `run` takes place on the simulator, whatever the machine has; what a command writes goes to a folder that is removed. `bench` needs a GPU: only its file is looked for.

use crate::kinds::command::{Scratch, binary};
use crate::programs::Test;
use crate::test_file;
use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};

/// The page that lists the examples.
const PAGE: &str = "examples/README.md";

/// One test for the commands of each example.
///
/// # Errors
/// A file cannot be read, or a command names no example.
pub fn tests() -> Result<Vec<Test>, String> {
    let read =
        |path: &std::path::Path| fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()));
    let mut of_example: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (path, name) in test_file::walk(&crate::root().join("examples"))? {
        if !name.contains('/') {
            of_example.insert(format!("examples/{name}"), in_comments(&read(&path)?));
        }
    }
    for line in in_tables(&read(&crate::root().join(PAGE))?) {
        let named = line.split_whitespace().find(|word| of_example.contains_key(*word));
        let all = named
            .and_then(|path| of_example.get_mut(path))
            .ok_or_else(|| format!("{PAGE}: `{line}` names no file in examples"))?;
        if !all.contains(&line) {
            all.push(line);
        }
    }
    let test = |(path, all): (String, Vec<String>)| -> Test {
        let stem = path.trim_start_matches("examples/").trim_end_matches(".tile").to_owned();
        (format!("commands/{stem}"), Box::new(move || all.iter().try_for_each(|line| succeeds(&path, line))))
    };
    Ok(of_example.into_iter().map(test).collect())
}

/// The commands of a head comment: its lines that begin with `tilec`.
fn in_comments(text: &str) -> Vec<String> {
    let comments = text.lines().take_while(|l| l.starts_with("//")).map(|l| l.trim_start_matches('/').trim());
    comments.filter(|l| l.starts_with("tilec ")).map(str::to_owned).collect()
}

/// The commands in the rows of a page's tables: those in a cell of their own.
fn in_tables(text: &str) -> Vec<String> {
    let cells = text.lines().filter(|l| l.starts_with('|')).flat_map(|l| l.split(" | "));
    let codes = cells.filter_map(|cell| cell.trim_end_matches('|').trim().strip_prefix('`')?.strip_suffix('`'));
    codes.filter(|code| code.starts_with("tilec ")).map(str::to_owned).collect()
}

/// Runs a command of the example at `path`.
fn succeeds(path: &str, line: &str) -> Result<(), String> {
    let mut words = line.split_whitespace().skip(1).map(|w| w.trim_matches('\'').to_owned()).collect::<Vec<_>>();
    if !words.iter().any(|word| word == path) {
        return Err(format!("`{line}` is of another file than {path}"));
    }
    match words.first().map(String::as_str) {
        Some("bench") => return Ok(()),
        Some("run") => words.extend(["--device".to_owned(), "sim".to_owned()]),
        _ => {}
    }
    let out = Scratch::new(line).map_err(|e| format!("cannot make a folder: {e}"))?;
    for at in 1..words.len() {
        if words[at - 1] == "-o" {
            words[at] = out.path().join(&words[at]).display().to_string();
        }
    }
    let done = Command::new(binary()?)
        .args(&words)
        .current_dir(crate::root())
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("cannot run tilec: {e}"))?;
    match done.status.success() {
        true => Ok(()),
        false => Err(format!("`{line}` ends with {}:\n{}", done.status, String::from_utf8_lossy(&done.stderr))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn commands_are_found() {
        let comments = "// x, tilec y\n//\n//     tilec run examples/x.tile M=5 --check\nkernel\n// tilec run x\n";
        assert_eq!(in_comments(comments), ["tilec run examples/x.tile M=5 --check"]);
        let page = "`tilec a`\n| file | command |\n| [x](x.tile) | `v`, `w` | `tilec examples/x.tile -o x.ptx` |\n";
        assert_eq!(in_tables(page), ["tilec examples/x.tile -o x.ptx"]);
        assert!(succeeds("examples/x.tile", "tilec examples/y.tile").is_err(), "of another file");
    }
}
