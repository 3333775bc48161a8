//! No program makes the verifier panic, overflow or take long.

use super::errors;
use crate::diag::Sink;
use crate::parser::parse;
use crate::random_tests::repeat;
use crate::verify::verify;
use arbitrary::Unstructured;

const SAMPLES: &[&str] = &[
    include_str!("../../../../examples/gemm.tile"),
    include_str!("../../../../examples/flash_attention.tile"),
    include_str!("../../../../docs/sketches/hopper_gemm.tile"),
    include_str!("../../parser/tests/lowered.tile"),
    include_str!("../../parser/tests/corners.tile"),
];

/// Words, numbers and signs of a text, with what is between them.
fn tokens(text: &str) -> Vec<&str> {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = if word(first) { rest.find(|c| !word(c)).unwrap_or(rest.len()) } else { first.len_utf8() };
        let (token, tail) = rest.split_at(end);
        out.push(token);
        rest = tail;
    }
    out
}

#[test]
fn changed_samples_never_panic() {
    let mut verified = 0u32;
    repeat(300, 1 << 12, |u: &mut Unstructured<'_>| {
        let sample = tokens(u.choose(SAMPLES)?);
        let mut text = sample.clone();
        for _ in 0..u.int_in_range(1..=3)? {
            let at = u.choose_index(text.len())?;
            // Words stand for words, so that many results parse.
            let is_word = |t: &str| t.chars().all(|c| c.is_alphanumeric() || c == '_');
            let from: Vec<&str> = sample.iter().copied().filter(|t| is_word(t) == is_word(text[at])).collect();
            let hostile = ["0", "1", "64", "4294967296", "9223372036854775807", "transpose", "mma", "get", "put"];
            text[at] = if is_word(text[at]) && u.ratio(1, 3)? { u.choose(&hostile)? } else { u.choose(&from)? };
        }
        let mut sink = Sink::new();
        if let Ok(module) = parse(&text.concat(), &mut sink) {
            for k in &module.kernels {
                let _ = verify(k, &mut sink);
                verified += 1;
            }
        }
        Ok(())
    });
    assert!(verified > 20, "most changed samples should parse, {verified} did");
}

#[test]
fn long_chains_of_windows_are_refused_quickly() {
    let mut source = "kernel t(A: gmem f32[M, N]) { let w0 = A[0.., 0..]\n".to_owned();
    for i in 1..4000 {
        source += &format!("let w{i} = w{}[1.., 1..]\n", i - 1);
    }
    source += "}";
    let found = errors(&source);
    assert!(found.len() >= 100, "only the errors that are kept count: {}", found.len());
    assert!(found.iter().all(|f| f.starts_with("E0226")), "{}", found[0]);
}

#[test]
fn absurd_extents_do_not_overflow() {
    let source = "kernel t() {
        var t = reg f32[4611686018427387904, 4611686018427387904] layout (32,4):(1,32)
        let s = smem f32[4611686018427387904, 4611686018427387904] layout (32,4):(1,32)
        var a = reg f16[4611686018427387904, 2] layout (32,4):(1,32)
        var b = reg f16[2, 2] layout (4,1):(1,4)
        a = mma<m8n8k4>(a, b, a)
        let x = 9223372036854775807 + 1 - -9223372036854775807
    }";
    let found = errors(source);
    assert_eq!(found.iter().map(|f| &f[..5]).collect::<Vec<_>>(), ["E0234"; 4], "{found:#?}");
}
