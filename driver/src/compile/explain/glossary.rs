//! The words of the glossary, for `tilec explain`. The page of the documentation is their only source.

/// `docs/glossary.md`.
const PAGE: &str = include_str!("glossary.md");

/// Every word with its other names, and what it means.
pub(super) fn all() -> Vec<(Vec<String>, String)> {
    let rows = PAGE.lines().filter(|line| line.starts_with("| **"));
    rows.filter_map(|line| line.trim_start_matches("| ").trim_end_matches(" |").split_once(" | ")).map(row).collect()
}

fn row((names, meaning): (&str, &str)) -> (Vec<String>, String) {
    let plain = |text: &str| text.replace("**", "").replace('`', "");
    (plain(names).split(", ").map(str::to_owned).collect(), unlinked(&meaning.replace("**", ""), "docs"))
}

/// A text of a page in a folder, with the addresses of its links in words. Code in backquotes has no links.
pub(super) fn unlinked(text: &str, folder: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['[', '`']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = match (code(rest), link(rest)) {
            (Some(length), _) => {
                out.push_str(&rest[..length]);
                length
            }
            (None, Some((name, address, length))) => {
                out.push_str(&format!("{name}: {}", in_folder(folder, address)));
                length
            }
            (None, None) => {
                out.push_str(&rest[..1]);
                1
            }
        };
        rest = &rest[length..];
    }
    out + rest
}

/// The length of the code in backquotes with which a text begins.
fn code(text: &str) -> Option<usize> {
    let inside = text.strip_prefix('`')?;
    inside.find('`').map(|end| end + 2)
}

/// The link `[name](address)` with which a text begins, and its length.
fn link(text: &str) -> Option<(&str, &str, usize)> {
    let (name, rest) = text.strip_prefix('[')?.split_once("](")?;
    let (address, _) = rest.split_once(')')?;
    Some((name, address, name.len() + address.len() + "[]()".len()))
}

/// The path of a page that a page in a folder names.
fn in_folder(folder: &str, address: &str) -> String {
    match (address.strip_prefix("../"), folder.rsplit_once('/')) {
        (Some(rest), Some((above, _))) => in_folder(above, rest),
        (Some(rest), None) => rest.to_owned(),
        (None, _) => format!("{folder}/{address}"),
    }
}

/// The rows of a word, however it is written: `bank conflict`, `bank-conflicts`.
pub(super) fn of(word: &str) -> Vec<(Vec<String>, String)> {
    let folded = |text: &str| text.to_lowercase().replace('-', " ");
    let word = folded(word);
    let is = |name: &String| {
        let name = folded(name);
        word == name || word.strip_suffix('s') == Some(name.as_str())
    };
    all().into_iter().filter(|(names, _)| names.iter().any(is)).collect()
}
