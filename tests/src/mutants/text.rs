//! PTX text as statements: just enough of a scanner to change one place. It knows no instruction, so that it reads programs of
//! any target, and shares nothing with the compiler or the simulator.

use std::collections::BTreeMap;
use std::ops::Range;

/// A guard `@p` or `@!p`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    /// Whether `!` is in front.
    pub negated: bool,
    /// The predicate register.
    pub register: String,
}

/// An instruction.
#[derive(Clone, Debug)]
pub struct Statement {
    /// Its bytes in the text, from the guard to the semicolon.
    pub range: Range<usize>,
    /// Its guard.
    pub guard: Option<Guard>,
    /// Opcode with modifiers: `ld.global.v4.b32`.
    pub opcode: String,
    /// Operands, split at commas outside brackets.
    pub operands: Vec<String>,
}

/// Opcodes without a destination, by their first word; a first operand of any other is one.
const NO_DESTINATION: &[&str] = &[
    "st",
    "stmatrix",
    "red",
    "bar",
    "barrier",
    "bra",
    "brx",
    "ret",
    "exit",
    "trap",
    "membar",
    "fence",
    "cp",
    "nanosleep",
    "griddepcontrol",
    "prefetch",
];

impl Statement {
    /// The words of the opcode.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.opcode.split('.')
    }

    /// The first word of the opcode.
    pub fn root(&self) -> &str {
        self.words().next().unwrap_or_default()
    }

    /// Whether the opcode has the modifier `word`.
    pub fn has(&self, word: &str) -> bool {
        self.words().skip(1).any(|w| w == word)
    }

    /// Registers it writes.
    pub fn writes(&self) -> Vec<&str> {
        let silent = NO_DESTINATION.contains(&self.root())
            || (self.root() == "mbarrier" && !self.has("test_wait") && !self.has("try_wait") && !self.has("arrive"));
        match self.operands.first() {
            Some(first) if !silent => registers(first),
            _ => Vec::new(),
        }
    }

    /// Registers it reads, its guard included. A destination that is also an address or source is listed too.
    pub fn reads(&self) -> Vec<&str> {
        // The sums of a warpgroup's product are added to.
        let skip = usize::from(!self.writes().is_empty() && self.root() != "wgmma");
        let mut all: Vec<&str> = self.operands.iter().skip(skip).flat_map(|o| registers(o)).collect();
        all.extend(self.guard.as_ref().map(|g| g.register.as_str()));
        all
    }

    /// The operands in square brackets, with their index.
    pub fn addresses(&self) -> impl Iterator<Item = (usize, &str)> {
        self.operands.iter().enumerate().filter(|(_, o)| o.starts_with('[')).map(|(i, o)| (i, o.as_str()))
    }

    /// The statement with other parts.
    pub fn rewritten(&self, guard: Option<&Guard>, opcode: &str, operands: &[String]) -> String {
        let guard = guard.map_or(String::new(), |g| format!("@{}{} ", if g.negated { "!" } else { "" }, g.register));
        format!("{guard}{opcode} {};", operands.join(", "))
    }

    /// The statement with another opcode.
    pub fn with_opcode(&self, opcode: &str) -> String {
        self.rewritten(self.guard.as_ref(), opcode, &self.operands)
    }

    /// The statement with operand `i` replaced.
    pub fn with_operand(&self, i: usize, operand: String) -> String {
        let mut operands = self.operands.clone();
        operands[i] = operand;
        self.rewritten(self.guard.as_ref(), &self.opcode, &operands)
    }

    /// The text with the numbers of registers left out, so that it survives a change of the program elsewhere.
    pub fn shape(&self) -> String {
        let text = self.rewritten(self.guard.as_ref(), &self.opcode, &self.operands);
        let mut shape = String::with_capacity(text.len());
        let mut in_register = false;
        for c in text.trim_end_matches(';').trim_end().chars() {
            in_register = c == '%' || (in_register && c.is_ascii_alphanumeric());
            if !(in_register && c.is_ascii_digit()) {
                shape.push(c);
            }
        }
        shape
    }
}

/// The register names of an operand: virtual ones, not `%tid.x` and its like.
pub(super) fn registers(operand: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let bytes = operand.as_bytes();
    let mut at = 0;
    while let Some(start) = operand[at..].find('%').map(|i| at + i) {
        let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'$';
        let end = (start + 1..bytes.len()).find(|&i| !word(bytes[i])).unwrap_or(bytes.len());
        if bytes.get(end) != Some(&b'.') {
            found.push(&operand[start..end]);
        }
        at = end;
    }
    found
}

/// The instructions of a text.
#[derive(Clone, Debug, Default)]
pub(super) struct Body {
    /// In order.
    pub statements: Vec<Statement>,
    /// Labels, with the index of the statement that follows.
    pub labels: BTreeMap<String, usize>,
}

/// All instructions and labels of a PTX text with one kernel. Directives and comments are passed over.
pub(super) fn body(text: &str) -> Body {
    let clean = without_comments(text);
    let bytes = clean.as_bytes();
    let mut found = Body::default();
    let mut at = 0;
    // Instructions are in the body of a function: after a brace that follows its parameters.
    let mut depth = 0usize;
    while at < bytes.len() {
        match bytes[at] {
            b'{' => (depth, at) = (depth + 1, at + 1),
            b'}' => (depth, at) = (depth.saturating_sub(1), at + 1),
            b if b.is_ascii_whitespace() || b == b';' => at += 1,
            _ if depth == 0 => at += 1,
            b'.' => {
                let line = clean[at..].find('\n').map_or(bytes.len(), |i| at + i);
                let semicolon = clean[at..].find(';').map_or(bytes.len(), |i| at + i + 1);
                // `.loc` ends with its line, other directives with a semicolon.
                at = if clean[at..].starts_with(".loc") { line } else { semicolon };
            }
            _ => {
                let end = clean[at..].find(';').map_or(bytes.len(), |i| at + i + 1);
                let colon = clean[at..end].find(':').filter(|&i| {
                    clean[at..at + i].bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'$')
                });
                if let Some(colon) = colon {
                    found.labels.insert(clean[at..at + colon].to_owned(), found.statements.len());
                    at += colon + 1;
                    continue;
                }
                found.statements.push(statement(&clean[at..end], at..end));
                at = end;
            }
        }
    }
    found
}

fn statement(text: &str, range: Range<usize>) -> Statement {
    let mut rest = text.trim_end_matches(';').trim();
    let mut guard = None;
    if let Some(after) = rest.strip_prefix('@') {
        let (word, tail) = after.split_once(char::is_whitespace).unwrap_or((after, ""));
        let register = word.trim_start_matches('!');
        guard = Some(Guard { negated: register.len() < word.len(), register: register.to_owned() });
        rest = tail.trim();
    }
    let (opcode, tail) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let mut operands = Vec::new();
    let (mut depth, mut from) = (0, 0);
    for (i, c) in tail.char_indices() {
        match c {
            '{' | '[' | '(' => depth += 1,
            '}' | ']' | ')' => depth -= 1,
            ',' if depth == 0 => {
                operands.push(tail[from..i].trim().to_owned());
                from = i + 1;
            }
            _ => {}
        }
    }
    if !tail[from..].trim().is_empty() {
        operands.push(tail[from..].trim().to_owned());
    }
    Statement { range, guard, opcode: opcode.to_owned(), operands }
}

/// The text with spaces in place of comments.
fn without_comments(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = match &bytes[at..] {
            [b'/', b'/', ..] => bytes[at..].iter().position(|&b| b == b'\n').map_or(bytes.len(), |i| at + i),
            [b'/', b'*', ..] => text[at..].find("*/").map_or(bytes.len(), |i| at + i + 2),
            _ => {
                at += 1;
                continue;
            }
        };
        bytes[at..end].fill(b' ');
        at = end;
    }
    // Only whole comments became spaces, one for each byte.
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = ".version 7.0\n.visible .entry k(\n\t.param .u64 a\n)\n.maxntid 64, 1, 1\n{\n\t.reg .b32 %r<4>;\n\
        .loc 1 2 3 // a { comment;\n{ // inline asm\n@!%p1 ld.global.v2.b32 {%r1, %r2}, [%rd3+8]; }\n$L_1: bar.sync 0;\n\
        mov.u32 %r3, %tid.x;\n\tst.shared.b32 [%r1], %r2;\n\tret;\n}\n";

    #[test]
    fn statements_are_found_with_their_parts() {
        let Body { statements: all, labels } = body(TEXT);
        assert_eq!(labels.get("$L_1"), Some(&1));
        let opcodes: Vec<&str> = all.iter().map(|s| s.opcode.as_str()).collect();
        assert_eq!(opcodes, ["ld.global.v2.b32", "bar.sync", "mov.u32", "st.shared.b32", "ret"]);
        assert_eq!(all[0].guard, Some(Guard { negated: true, register: "%p1".into() }));
        assert_eq!(all[0].operands, ["{%r1, %r2}", "[%rd3+8]"]);
        assert_eq!((all[0].writes(), all[0].reads()), (vec!["%r1", "%r2"], vec!["%rd3", "%p1"]));
        assert_eq!(all[0].shape(), "@!%p ld.global.v2.b32 {%r, %r}, [%rd+8]");
        assert_eq!(all[2].reads(), Vec::<&str>::new());
        assert_eq!((all[3].writes(), all[3].reads()), (vec![], vec!["%r1", "%r2"]));
        assert_eq!(&TEXT[all[1].range.clone()], "bar.sync 0;");
    }
}
