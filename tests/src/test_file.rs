//! A test file: what it requests, and the expectations that are in it.
//!
//! ```text
//! //@ KIND arguments
//! //@ key: value
//! ...the program...
//! //@ output NAME
//! // expected text, line by line
//! ```
//!
//! The first line names the kind. Keys may stand anywhere before the first `//@ output`. Everything from there on is
//! expected output, and `TILEC_BLESS=1` rewrites it. The program is the whole file: all this is comments to it, and so
//! places in messages are places in the file.

use std::fs;
use std::path::{Path, PathBuf};

/// The mark of a line that is for the harness.
const MARK: &str = "//@";

/// A test file.
#[derive(Clone, Debug)]
pub struct TestFile {
    /// Where it is.
    pub path: PathBuf,
    /// Folder and name, such as `parse/empty.tile`.
    pub name: String,
    /// All of it.
    pub text: String,
    /// The first word of the first line.
    pub kind: String,
    /// The other words.
    pub args: Vec<String>,
    /// Keys and values, in order.
    pub keys: Vec<(String, String)>,
    /// Expected texts and their names; the name may be empty.
    pub outputs: Vec<(String, String)>,
    /// Where in the text the first output starts.
    body_end: usize,
}

/// The words of a line. Those between single quotes are one.
fn words(line: &str) -> Vec<String> {
    let (mut out, mut quoted) = (Vec::new(), false);
    let mut word: Option<String> = None;
    for c in line.chars() {
        match c {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            c if c.is_whitespace() && !quoted => out.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    out.extend(word);
    out
}

impl TestFile {
    /// Reads the file `path`, called `name`.
    ///
    /// # Errors
    /// The file cannot be read, or is not in the form above.
    pub fn read(path: &Path, name: &str) -> Result<TestFile, String> {
        let text = fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
        TestFile::parse(path, name, text)
    }

    fn parse(path: &Path, name: &str, text: String) -> Result<TestFile, String> {
        let (mut keys, mut outputs) = (Vec::new(), Vec::<(String, String)>::new());
        let mut words = words(text.lines().next().and_then(|l| l.strip_prefix(MARK)).unwrap_or("")).into_iter();
        let kind = words.next().ok_or("the first line must be `//@ KIND arguments`")?;
        let args = words.collect();
        let mut at = 0;
        let mut body_end = text.len();
        for (number, line) in text.split_inclusive('\n').enumerate() {
            let start = at;
            at += line.len();
            let line = line.trim_end_matches(['\n', '\r']);
            let here = |what: &str| format!("{name}:{}: {what}", number + 1);
            match line.strip_prefix(MARK).map(str::trim) {
                _ if number == 0 => {}
                Some(rest) if rest == "output" || rest.starts_with("output ") => {
                    body_end = body_end.min(start);
                    outputs.push((rest["output".len()..].trim().to_owned(), String::new()));
                }
                Some(_) if !outputs.is_empty() => return Err(here("a key after the first `//@ output`")),
                Some(rest) => {
                    let (key, value) = rest.split_once(':').ok_or_else(|| here("expected `//@ key: value`"))?;
                    keys.push((key.trim().to_owned(), value.trim().to_owned()));
                }
                None => {
                    let Some((_, output)) = outputs.last_mut() else { continue };
                    let text = line.strip_prefix("//").ok_or_else(|| here("expected output lines start with `//`"))?;
                    output.push_str(text.strip_prefix(' ').unwrap_or(text));
                    output.push('\n');
                }
            }
        }
        Ok(TestFile { path: path.to_owned(), name: name.to_owned(), kind, args, keys, outputs, body_end, text })
    }

    /// The values of `key`, in order.
    pub fn values<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.keys.iter().filter(move |(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// The value of `key`, if it is there.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.keys.iter().rev().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// Whether the first line has this word as an argument.
    pub fn flag(&self, word: &str) -> bool {
        self.args.iter().any(|a| a == word)
    }

    /// Refuses keys that the kind does not have, so that a misspelt one is not ignored.
    ///
    /// # Errors
    /// Names the key.
    pub fn allow_keys(&self, allowed: &[&str]) -> Result<(), String> {
        match self.keys.iter().find(|(k, _)| !allowed.contains(&k.as_str())) {
            None => Ok(()),
            Some((key, _)) => Err(format!("`{}` has no key `{key}`; it knows: {}", self.kind, allowed.join(", "))),
        }
    }

    /// The program to compile and its name: this file, or the one that the key `source` names, from the root.
    ///
    /// # Errors
    /// That file cannot be read.
    pub fn program(&self) -> Result<(String, String), String> {
        let Some(other) = self.value("source") else { return Ok((self.name.clone(), self.text.clone())) };
        let path = crate::root().join(other);
        let text = fs::read_to_string(&path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
        Ok((other.to_owned(), text))
    }

    /// The file with these expected outputs.
    pub fn with_outputs(&self, outputs: &[(String, String)]) -> String {
        let mut text = self.text[..self.body_end].to_owned();
        if !text.ends_with('\n') {
            text.push('\n');
        }
        for (name, output) in outputs {
            text += format!("{MARK} output {name}").trim_end();
            text.push('\n');
            for line in output.lines() {
                text += format!("// {line}").trim_end();
                text.push('\n');
            }
        }
        text
    }
}

/// The test files below `dir`, sorted by name, as path and name.
///
/// # Errors
/// A directory cannot be read.
pub fn walk(dir: &Path) -> Result<Vec<(PathBuf, String)>, String> {
    fn into(dir: &Path, prefix: &str, found: &mut Vec<(PathBuf, String)>) -> std::io::Result<()> {
        let mut entries = fs::read_dir(dir)?.collect::<Result<Vec<_>, _>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if entry.file_type()?.is_dir() {
                into(&entry.path(), &format!("{name}/"), found)?;
            } else if name.ends_with(".tile") {
                found.push((entry.path(), name));
            }
        }
        Ok(())
    }
    let mut found = Vec::new();
    into(dir, "", &mut found).map_err(|e| format!("cannot read {}: {e}", dir.display()))?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    const FILE: &str = "//@ pass vectorize -D T=f16\n//@ run: M=1\nkernel k() { }\n//@ expect: a == 1\n\
                        //@ output vectorize\n// one\n//\n//   two\n//@ output\n// three\n";

    fn parse(text: &str) -> Result<TestFile, String> {
        TestFile::parse(Path::new("x.tile"), "x.tile", text.to_owned())
    }

    #[test]
    fn all_parts_are_read_and_written_back() {
        let file = parse(FILE).unwrap();
        assert_eq!((file.kind.as_str(), file.args.len()), ("pass", 3));
        assert_eq!(file.values("run").collect::<Vec<_>>(), ["M=1"]);
        assert_eq!(file.value("expect"), Some("a == 1"));
        let outputs =
            [("vectorize".to_owned(), "one\n\n  two\n".to_owned()), (String::new(), "three\n".to_owned())].to_vec();
        assert_eq!(file.outputs, outputs);
        assert_eq!(file.with_outputs(&outputs), FILE);
    }

    #[test]
    fn blessing_adds_and_removes_outputs() {
        let file = parse("//@ parse\nkernel k() { }").unwrap();
        assert_eq!(file.with_outputs(&[]), "//@ parse\nkernel k() { }\n");
        let blessed = file.with_outputs(&[(String::new(), "a\n".to_owned())]);
        assert_eq!(blessed, "//@ parse\nkernel k() { }\n//@ output\n// a\n");
        assert_eq!(parse(&blessed).unwrap().outputs, [(String::new(), "a\n".to_owned())]);
    }

    #[test]
    fn malformed_files_are_refused() {
        for text in ["", "kernel k() { }", "//@", "//@ parse\n//@ nonsense\n", "//@ parse\n//@ output\nkernel\n"] {
            assert!(parse(text).is_err(), "{text:?}");
        }
        let file = parse("//@ parse\n//@ rnu: M=1\n").unwrap();
        assert!(file.allow_keys(&["run"]).unwrap_err().contains("rnu"));
    }
}
