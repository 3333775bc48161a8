//! No text makes the parser panic or hang, and what it accepts survives printing.

use super::{SAMPLES, parsed};
use crate::diag::Sink;
use crate::parser::parse;
use crate::print::print_module;
use crate::random_tests::repeat;
use crate::structural_equality::same_module;

fn check(text: &str) {
    let mut sink = Sink::new();
    match parse(text, &mut sink) {
        Ok(module) => {
            assert_eq!(sink.error_count(), 0);
            let printed = print_module(&module);
            assert_eq!(same_module(&module, &parsed(&printed)), Ok(()), "{text}\n-- printed --\n{printed}");
        }
        Err(_) => assert!(sink.error_count() > 0),
    }
    for d in sink.diagnostics() {
        assert!(text.get(d.span.start as usize..d.span.end as usize).is_some(), "span inside the text");
    }
}

#[test]
fn any_bytes() {
    repeat(300, 1 << 16, |u| {
        let bytes: Vec<u8> = u.arbitrary()?;
        check(&String::from_utf8_lossy(&bytes));
        Ok(())
    });
}

/// Large hostile files take time in proportion to their size.
#[test]
fn large_files_end() {
    let n = 100_000;
    for piece in
        ["(", "{", "[", "-", "if a {", "let x = y ", "f(1) ", "kernel k(", "/*", "1+", "x", "$", "a: smeme f16[M,"]
    {
        for head in ["", "kernel k(", "kernel k() {", "kernel k() { let x = "] {
            let text = format!("{head}{}", piece.repeat(n / piece.len()));
            let mut sink = Sink::new();
            assert!(parse(&text, &mut sink).is_err());
        }
    }
    // Each of these names needs a number that nothing else in the file has.
    let many: String = (0..1300).map(|i| format!("if 1 == 1 {{ let k = {i} let k_{i} = k }} ")).collect();
    parsed(&format!("kernel k() {{ {many} }}"));
}

/// Words and signs in any order get much further than bytes.
#[test]
fn any_words() {
    let words: Vec<&str> =
        SAMPLES.iter().flat_map(|(_, s)| s.split_inclusive([' ', '(', ')', '[', ']', ','])).collect();
    repeat(300, 1 << 16, |u| {
        let mut text = String::from("kernel k(A: gmem f16[M, K], B: gmem f16[K, N]) {");
        for _ in 0..u.int_in_range(0..=200)? {
            text.push_str(u.choose(&words)?);
        }
        check(&text);
        Ok(())
    });
}

/// Samples with pieces deleted, doubled, swapped and overwritten.
#[test]
fn mutated_samples() {
    repeat(600, 1 << 12, |u| {
        let mut text = u.choose(SAMPLES)?.1.as_bytes().to_vec();
        for _ in 0..u.int_in_range(1..=4)? {
            let from = u.choose_index(text.len())?;
            let len = u.int_in_range(0..=12usize)?.min(text.len() - from);
            let piece = text[from..from + len].to_vec();
            match u.int_in_range(0..=3)? {
                0 => drop(text.drain(from..from + len)),
                1 => {
                    let to = u.choose_index(text.len())?;
                    text.splice(to..to, piece);
                }
                2 => text[from] = *u.choose(b"()[]{}<>.,:=-+*/%!&|0159aAmK_ \n\"$")?,
                _ => {
                    let to = u.choose_index(text.len())?;
                    let end = (to + len).min(text.len());
                    text.splice(to..end, piece);
                }
            }
            if text.is_empty() {
                break;
            }
        }
        check(&String::from_utf8_lossy(&text));
        Ok(())
    });
}
