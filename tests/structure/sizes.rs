//! Lines of functions.

use crate::lex::{Kind, tokens};
use std::path::{Path, PathBuf};

/// Name, first line and number of lines of every function with a body.
pub(crate) fn functions(text: &str) -> Vec<(String, usize, usize)> {
    let tokens = tokens(text);
    let mut found = Vec::new();
    for (i, token) in tokens.iter().enumerate() {
        let Some(name) = tokens.get(i + 1).and_then(|next| next.name()).filter(|_| token.is_name("fn")) else {
            continue;
        };
        let (mut depth, mut body) = (0, false);
        for end in &tokens[i..] {
            match end.kind {
                Kind::Mark('{') if depth == 0 => (depth, body) = (1, true),
                Kind::Mark('(' | '[' | '{') => depth += 1,
                Kind::Mark(')' | ']' | '}') => depth -= 1,
                // A declaration in a trait.
                Kind::Mark(';') if depth == 0 => break,
                _ => {}
            }
            if body && depth == 0 {
                found.push((name.to_owned(), token.line, end.line + 1 - token.line));
                break;
            }
        }
    }
    found
}

/// All Rust files below a folder, in order.
pub(crate) fn rust_files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut entries = std::fs::read_dir(folder).map_err(failed)?.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.path();
        if path.is_dir() && entry.file_name() != "target" {
            files.extend(rust_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(files)
}

#[test]
fn functions_end_with_their_braces() {
    let text = "trait T {\n fn a();\n fn b(x: [u8; { 3 }]) {\n  // }\n }\n}\nfn c() { '}'; \"}\"; || {\n}\n}\n";
    let expected = [("b", 3, 3), ("c", 7, 3)].map(|(name, line, lines)| (name.to_owned(), line, lines));
    assert_eq!(functions(text), expected);
}
