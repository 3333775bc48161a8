//! Broken programs end in a result or a report, never in a panic or without end.

use super::tensor;
use crate::diag::Sink;
use crate::interp::inputs::{Inputs, Options};
use crate::interp::{SumAccuracy, run};
use crate::parser::parse;
use crate::random_tests::repeat;
use crate::types::Elem;
use arbitrary::Unstructured;

const SEEDS: &[&str] = &[
    "kernel t(X: gmem f32[M, 8], Y: gmem i8[M, 8] col, b: f32 = 1.5, i: i32 = 3) where M % 2 == 0 grid (g: ceildiv(M, 4)) {
        let s = smem f16[4, 8]
        let c = channel f16[4, 8] slots 2
        var acc = reg f32[4, 4] = 0.0
        var n = reg i32[4, 1] = 7
        let x = X[g * 4.., 1..8]
        copy x * b -> s
        acquire c
        copy s -> c.put
        copy X[g * 4.., 0..] -> c.put keep check (0)
        publish c
        for k in 0..M step 2 {
            wait c
            acc = mma(s, transpose(c.get), acc)
            if k + 1 < M && b > 0.5 { n = n * 3 + i - max(n, k) } else { n = abs(-n) / 2 }
            release c
            acquire c
            copy s[0.., 0..] -> c.put
            publish c
        }
        let p = exp2(acc - maximum(acc, 1)) / sum(acc, 0)
        copy select(iota(p, 1) < i, cast<f16>(p), n) -> Y[g * 4.., 2..6] check (0)
        copy n % 5 -> X[0.., g..] add
    }",
    "kernel u(X: gmem i32[2, M, 3] strides (1, s, 0), Y: gmem u8[M]) grid (g: 2, h: M) {
        role a warps 1 { let v = X[g, h, 1] copy v * v + X[g, h, 0] -> Y[h] }
        role b warps 2 registers 40 { barrier copy ceildiv(g - 7, h + 1) % 3 -> Y[h] add }
    }",
];

/// The words and signs of a program.
fn tokens(source: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut word = false;
    for c in source.chars() {
        let in_word = c.is_alphanumeric() || c == '_' || c == '.';
        match tokens.last_mut() {
            Some(last) if in_word && word => last.push(c),
            _ => tokens.push(c.to_string()),
        }
        word = in_word;
    }
    tokens
}

fn mutated(u: &mut Unstructured<'_>) -> arbitrary::Result<String> {
    let seed = tokens(u.choose(SEEDS)?);
    let mut tokens = seed.clone();
    for _ in 0..u.int_in_range(1..=3)? {
        let (at, other) = (u.choose_index(tokens.len())?, u.choose_index(seed.len())?);
        match u.int_in_range(0..=3)? {
            0 => tokens[at] = seed[other].clone(),
            1 => {
                tokens[at] = (*u.choose(&["0", "1", "-1", "9223372036854775807", "3000000000", "0.0", "1e300"])?).into()
            }
            2 => drop(tokens.remove(at)),
            _ => tokens.insert(at, seed[other].clone()),
        }
    }
    Ok(tokens.concat())
}

#[test]
fn seeds_mean_something() {
    for seed in SEEDS {
        super::result(&super::kernel(seed), inputs_for(seed));
    }
}

fn inputs() -> Inputs {
    Inputs::default().size("M", 6).stride("s", 2).tensor("X", tensor(Elem::F32, 48)).tensor("Y", tensor(Elem::I8, 48))
}

#[test]
fn mutated_programs_end() {
    let mut ran = 0;
    repeat(200, 1 << 12, |u| {
        let source = mutated(u)?;
        if let Ok(module) = parse(&source, &mut Sink::new()) {
            let accuracy = SumAccuracy::new(64.0, 2f64.powi(-11));
            for accuracy in [None, Some(accuracy)] {
                let opts = Options { fuel: 20_000, memory: 4096, accuracy, ..Options::default() };
                // A verdict is not wanted: only that there is one.
                let _ = run(&module.kernels[0], &mut inputs_for(&source), &opts);
            }
            ran += 1;
        }
        Ok(())
    });
    assert!(ran > 20, "hardly any mutant parses");
}

/// Inputs of the seed that a mutant comes from.
fn inputs_for(source: &str) -> Inputs {
    let mut inputs = inputs();
    if source.contains("u8") {
        inputs = inputs.tensor("X", tensor(Elem::I32, 48)).tensor("Y", tensor(Elem::U8, 48));
    }
    inputs
}
