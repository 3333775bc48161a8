//! Replaces `auto` in a source by values; the rest of the text is unchanged.

use tilec_ir::kernel::{Kernel, Module, ValueDef};

/// The values for a kernel.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Edit {
    /// The kernel.
    pub(super) kernel: String,
    /// Defaults of its compile-time parameters.
    pub(super) values: Vec<(String, String)>,
    /// Items that are put into a schedule that does not have them.
    pub(super) items: Vec<String>,
}

/// `source`, from which `module` was parsed, with these edits; parameters that a kernel does not have are none of its business.
pub(super) fn rewrite(source: &str, module: &Module, edits: &[Edit]) -> String {
    let mut changes: Vec<(usize, usize, String)> = Vec::new();
    for edit in edits {
        let Some(kernel) = module.kernels.iter().find(|k| k.name == edit.kernel) else { continue };
        for &p in &kernel.const_params {
            let value = &kernel.values[p];
            let Some((_, text)) = edit.values.iter().rev().find(|(name, _)| *name == value.name) else { continue };
            if matches!(value.def, ValueDef::ConstParam(_)) {
                changes.push(default(source, value.span.end as usize, text));
            }
        }
        let missing = |item: &&String| match item.split(' ').next() {
            Some("cluster") => kernel.schedule.cluster.is_empty(),
            Some("split_k") => kernel.schedule.split_k.is_none(),
            Some("stream_k") => kernel.schedule.stream_k.is_none(),
            Some("align_rows") => kernel.schedule.align_rows.is_none(),
            Some("stage_stores") => kernel.schedule.stage_stores.is_none(),
            _ => false,
        };
        let items: Vec<&str> = edit.items.iter().filter(missing).map(String::as_str).collect();
        if !items.is_empty() {
            changes.push(scheduled(source, kernel, &items.join(" ")));
        }
    }
    changes.sort();
    let mut text = String::with_capacity(source.len() + 64);
    let mut from = 0;
    for (start, end, new) in changes {
        text.push_str(&source[from..start]);
        text.push_str(&new);
        from = end;
    }
    text.push_str(&source[from..]);
    text
}

/// The change of a default, or the new one, of the parameter whose name ends at `at`.
fn default(source: &str, at: usize, value: &str) -> (usize, usize, String) {
    let mut end = at;
    let mut tokens = Tokens { source, at };
    while let Some((start, stop)) = tokens.next() {
        match &source[start..stop] {
            "=" => {
                let Some((start, mut stop)) = tokens.next() else { break };
                if &source[start..stop] == "-" {
                    stop = tokens.next().map_or(stop, |(_, stop)| stop);
                }
                return (start, stop, value.to_owned());
            }
            "," | ">" => break,
            _ => end = stop,
        }
    }
    (end, end, format!(" = {value}"))
}

/// Items put at the end of the schedule, or a schedule after the parameters.
fn scheduled(source: &str, kernel: &Kernel, item: &str) -> (usize, usize, String) {
    let span = kernel.schedule.span;
    if !span.is_none() {
        let brace = (span.end as usize).saturating_sub(1);
        let gap = if source[..brace].ends_with(char::is_whitespace) { "" } else { " " };
        return (brace, brace, format!("{gap}{item} "));
    }
    let (mut depth, mut end) = (0usize, kernel.name_span.end as usize);
    for (start, stop) in (Tokens { source, at: end }) {
        match &source[start..stop] {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            _ => continue,
        }
        end = stop;
        if depth == 0 {
            break;
        }
    }
    (end, end, format!(" schedule {{ {item} }}"))
}

/// The spans of the tokens that the parser read: words, numbers, and signs of one character.
struct Tokens<'s> {
    source: &'s str,
    at: usize,
}

impl Iterator for Tokens<'_> {
    type Item = (usize, usize);

    fn next(&mut self) -> Option<(usize, usize)> {
        self.skip();
        let rest = &self.source[self.at..];
        let first = rest.chars().next()?;
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = if word(first) { rest.find(|c| !word(c)).unwrap_or(rest.len()) } else { first.len_utf8() };
        let start = self.at;
        self.at += length;
        Some((start, self.at))
    }
}

impl Tokens<'_> {
    /// Skips white space and comments.
    fn skip(&mut self) {
        loop {
            let rest = &self.source[self.at..];
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            if trimmed.starts_with("//") {
                self.at += trimmed.find('\n').unwrap_or(trimmed.len());
            } else if trimmed.starts_with("/*") {
                self.at += nested(trimmed);
            } else {
                return;
            }
        }
    }
}

/// Bytes of the comment that `text` begins with; comments nest.
fn nested(text: &str) -> usize {
    let (mut depth, mut at) = (0usize, 0);
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest.starts_with(b"*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use tilec_ir::diag::Sink;

    fn rewritten(source: &str, values: &[(&str, &str)], cluster: Option<[i64; 2]>) -> String {
        let module = tilec_ir::parser::parse(source, &mut Sink::new()).expect("it parses");
        let values: Vec<(String, String)> =
            values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let items: Vec<String> = cluster.iter().map(|[rows, cols]| format!("cluster ({rows}, {cols})")).collect();
        let edit = |k: &Kernel| Edit { kernel: k.name.clone(), values: values.clone(), items: items.clone() };
        let text = rewrite(source, &module, &module.kernels.iter().map(edit).collect::<Vec<_>>());
        tilec_ir::parser::parse(&text, &mut Sink::new()).expect("it parses again");
        text
    }

    const BODY: &str = "(A: gmem f32[N]) grid (b: N) { copy 0.0 -> A[b..] }";

    #[test]
    fn defaults_are_replaced_and_all_else_stays() {
        let source = format!(
            "// BM = auto\nkernel a<T: f16 | /* = , */ bf16 /* > /* < */ */ = f16, // T\n  BM=auto,BN  =  // why\n auto, Z: int, \
             S = -3, L: layout = row, É: int>{BODY}\nkernel b<BM = BN_0>{BODY}"
        )
        .replace("É", "E1")
        .replace("kernel b<BM = BN_0>", "/* ü */ kernel b<BN_0 = 4, BM = BN_0>");
        let values = [
            ("T", "bf16"),
            ("BM", "128"),
            ("BN", "64"),
            ("Z", "-1"),
            ("S", "5"),
            ("L", "col"),
            ("E1", "2"),
            ("Q", "9"),
        ];
        let expected = format!(
            "// BM = auto\nkernel a<T: f16 | /* = , */ bf16 /* > /* < */ */ = bf16, // T\n  BM=128,BN  =  // why\n 64, Z: int = -1, \
             S = 5, L: layout = col, E1: int = 2>{BODY}\n/* ü */ kernel b<BN_0 = 4, BM = 128>{BODY}"
        );
        assert_eq!(rewritten(&source, &values, None), expected);
        assert_eq!(rewritten(&source, &[], None), source);
    }

    #[test]
    fn clusters_go_into_the_schedule() {
        let kernel = |clauses: &str| {
            format!("kernel a(A: gmem f32[N] strides (1)) {clauses}grid (b: N) {{ copy 0.0 -> A[b..] }}")
        };
        for (before, after) in [
            ("", "schedule { cluster (2, 1) } "),
            ("schedule { raster 8 } ", "schedule { raster 8 cluster (2, 1) } "),
            ("schedule {raster 8} ", "schedule {raster 8 cluster (2, 1) } "),
            ("schedule {} ", "schedule { cluster (2, 1) } "),
            ("schedule { cluster (1, 2) } ", "schedule { cluster (1, 2) } "),
        ] {
            let text = rewritten(&kernel(before), &[], Some([2, 1]));
            assert_eq!(text.replace("  ", " "), kernel(after).replace("  ", " "));
        }
    }
}
