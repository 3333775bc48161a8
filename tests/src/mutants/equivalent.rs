//! The list of mutants that no test can notice, `tests/mutants/equivalent.txt`, each with the reason why.
//!
//! ```text
//! because: the reason, which holds for all entries up to the next one
//!     and may go on in indented lines
//! KERNEL | OPERATOR/VARIANT | INDEX | STATEMENT
//! ```
//!
//! The index may be a list, `0,3-5`, and `*` for all of them. Kernel and statement may end in `*`, and then fit whatever begins so: a rule
//! about what the compiler makes in many kernels is one line. Every mutant that fits must survive, so that a rule that takes in too
//! much is found out.

use super::run::Name;

/// An entry of the list.
#[derive(Clone, Debug)]
pub struct Entry {
    kernel: String,
    change: String,
    /// Ranges of indices, both ends included; none: all.
    indices: Vec<(usize, usize)>,
    statement: String,
    /// Why no result can differ.
    pub reason: String,
    /// Line of the list, from 1.
    pub line: usize,
}

impl Entry {
    /// Whether the entry is about this mutant.
    pub fn fits(&self, name: &Name) -> bool {
        matches(&self.kernel, &name.kernel)
            && self.change == name.change
            && (self.indices.is_empty() || self.indices.iter().any(|&(a, b)| (a..=b).contains(&name.index)))
            && matches(&self.statement, &name.statement)
    }
}

/// Whether `text` is `pattern`, or begins with what is before the `*` at its end.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => text.starts_with(start),
        None => text == pattern,
    }
}

/// The list in the tree.
///
/// # Errors
/// It is not in the form above.
pub fn list() -> Result<Vec<Entry>, String> {
    let path = crate::root().join("tests/mutants/equivalent.txt");
    let text = std::fs::read_to_string(&path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
    parse(&text)
}

fn parse(text: &str) -> Result<Vec<Entry>, String> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut reason = String::new();
    for (number, line) in text.lines().enumerate() {
        let line_number = number + 1;
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(text) = line.strip_prefix("because:") {
            reason = text.trim().to_owned();
        } else if line.starts_with(' ') {
            reason = format!("{reason} {}", line.trim());
        } else {
            let fields: Vec<&str> = line.splitn(4, " | ").map(str::trim).collect();
            let [kernel, change, index, statement] = fields[..] else {
                return Err(format!("equivalent.txt:{line_number}: not `KERNEL | CHANGE | INDEX | STATEMENT`"));
            };
            if reason.len() < 20 {
                return Err(format!("equivalent.txt:{line_number}: no reason stands before this entry"));
            }
            let mut indices = Vec::new();
            for part in index.split(',').filter(|p| *p != "*") {
                let (from, to) = part.split_once('-').unwrap_or((part, part));
                let (Ok(from), Ok(to)) = (from.parse(), to.parse()) else {
                    return Err(format!("equivalent.txt:{line_number}: `{part}` is no index"));
                };
                indices.push((from, to));
            }
            entries.push(Entry {
                kernel: kernel.to_owned(),
                change: change.to_owned(),
                indices,
                statement: statement.to_owned(),
                reason: reason.clone(),
                line: line_number,
            });
        }
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_and_fit() {
        let text = "# list\nbecause: a long enough reason,\n    in two lines\na | b/c | 2,5-7 | add.s32 %r, %r, 1 | 2\nx* | b/c | * | ret\n";
        let all = parse(text).unwrap();
        assert_eq!(all[0].reason, "a long enough reason, in two lines");
        let name = |kernel: &str, index, statement: &str| Name {
            kernel: kernel.into(),
            change: "b/c".into(),
            index,
            statement: statement.into(),
        };
        assert!(
            all[0].fits(&name("a", 2, "add.s32 %r, %r, 1 | 2")) && !all[0].fits(&name("a", 1, "add.s32 %r, %r, 1 | 2"))
        );
        assert!(all[1].fits(&name("xyz", 7, "ret")) && !all[1].fits(&name("y", 7, "ret")));
        let rule = &parse("because: a long enough reason\n* | b/c | * | @%p bra $L_masked*\n").unwrap()[0];
        assert!(rule.fits(&name("any", 3, "@%p bra $L_masked_2")) && !rule.fits(&name("any", 3, "@%p bra $L_mask")));
        assert!(parse("because: short\na | b | 0 | c\n").is_err() && parse("a | b | 0 | c\n").is_err());
        assert!(parse("because: a long enough reason\na | b | c\n").is_err());
    }
}
