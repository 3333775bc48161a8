//! Programs of this repository with a few words changed.

use super::input::Input;
use super::words::{is_number, is_space, is_word, split};
use crate::problem::{Random, Run};
use crate::programs::snippets;
use crate::test_file;
use std::collections::BTreeMap;
use tilec::{CompileOptions, Keep, Target};

const NUMBERS: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "4",
    "5",
    "7",
    "8",
    "12",
    "16",
    "17",
    "24",
    "32",
    "33",
    "48",
    "64",
    "96",
    "128",
    "255",
    "256",
    "257",
    "512",
    "1000",
    "1024",
    "4096",
    "65536",
    "1048576",
    "2147483647",
    "2147483648",
    "4294967296",
    "1099511627776",
    "4611686018427387904",
    "9223372036854775807",
    "-1",
    "-2",
    "-8",
    "-2147483648",
    "-9223372036854775807",
    "1.5",
    "0.0",
    "1e30",
    "inf",
    "nan",
    "-0.0",
];
const TYPES: &[&str] = &[
    "f16", "bf16", "tf32", "f32", "f64", "e4m3", "e5m2", "e2m1", "ue8m0", "i4", "u4", "i8", "u8", "i16", "u16", "i32",
    "u32", "i64", "u64", "bool",
];
const OPERATORS: &[&str] = &["+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!=", "&&", "||"];
const CALLS: &[&str] = &[
    "min",
    "max",
    "ceildiv",
    "abs",
    "exp2",
    "exp",
    "log2",
    "sqrt",
    "rsqrt",
    "tanh",
    "fast_tanh",
    "select",
    "sum",
    "maximum",
    "minimum",
    "product",
    "argmax",
    "scan_sum",
    "any",
    "iota",
    "transpose",
    "mma",
];
const ATTRIBUTES: &[&str] = &[
    " vec 1",
    " vec 2",
    " vec 4",
    " vec 8",
    " vec 16",
    " check ()",
    " check (0)",
    " check (1)",
    " check (0, 1)",
    " check (2)",
    " keep",
    " add",
    " min",
    " max",
    " threads (32,4):(1,32)",
    " threads ((8,16),8):((256,1),32)",
    " threads (128,1):(1,0)",
    " threads (128,8):(8,1)",
    " threads (256,16):(1,256)",
];
const ITEMS: &[&str] = &[
    "threads 32",
    "threads 64",
    "threads 96",
    "threads 128",
    "threads 256",
    "threads 1024",
    "stages 1",
    "stages 3",
    "stages 5",
    "stages 8",
    "stages 17",
    "warp_tile (16, 16)",
    "warp_tile (32, 32)",
    "warp_tile (64, 32)",
    "warp_tile (128, 128)",
    "warp_tile (48, 16)",
    "k_warps 2",
    "k_warps 4",
    "k_warps 64",
    "ctas 2",
    "ctas 4",
    "raster 1",
    "raster 3",
    "raster 8",
    "raster 1000000",
    "min_ctas 2",
    "min_ctas 33",
    "cluster (2)",
    "target sm_80",
];
const STATEMENTS: &[&str] = &[
    "barrier",
    "acc = acc + 1.0",
    "for q in 0..4 unroll {",
    "for q in 0..K step 16 {",
    "if beta == 0.0 {",
    "if M > 3 {",
    "}",
    "let q = smem f16[32, 32]",
    "var q = reg f32[32, 32] = 0.0",
    "var q = reg f64[16, 64] = 1.0",
    "copy a -> q",
    "copy q -> a",
    "acc = mma(a, b, acc)",
    "acc = mma(b, a, acc)",
    "acc = mma(transpose(a), b, acc)",
    "acc = mma(a, transpose(b), acc)",
    "let q = channel f16[64, 32] slots 16",
    "acquire a",
    "publish a",
    "wait a",
    "release a",
    "await acc, 0",
    "acc = transpose(acc)",
    "acc = acc * sum(acc, 0)",
    "acc = exp2(acc - maximum(acc, 1))",
    "acc = select(any(acc > 1.0, 1), acc, 0.0)",
    "acc = scan_sum(acc, 1)",
    "acc = scan_maximum(acc, 0, exclusive)",
    "acc = select(iota(acc, 1) == argmax(acc, 1), acc, 0.0)",
    "copy A[0.., 0..] -> acc",
    "copy acc -> C[0.., 0..] add",
    "acc = select(iota(acc, 0) < M, acc, 0.0)",
];

/// Pieces of a program, and its compile-time definitions.
type Sample = (Vec<String>, Vec<(String, String)>);

/// Programs to start from.
pub(super) struct Mutator {
    samples: Vec<Sample>,
    /// Lines of all samples.
    lines: Vec<Vec<String>>,
}

impl Mutator {
    /// Reads the programs of the repository; with `all`, also what the passes make of some of them.
    pub(super) fn new(all: bool) -> Result<Mutator, String> {
        let root = crate::root();
        let mut texts: BTreeMap<String, String> = BTreeMap::new();
        for (path, name) in ["tests/files", "examples", "docs"]
            .iter()
            .map(|d| test_file::walk(&root.join(d)))
            .collect::<Result<Vec<_>, _>>()?
            .into_iter()
            .flatten()
        {
            let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            texts.insert(name, text);
        }
        let language = std::fs::read_to_string(root.join("docs/language.md")).map_err(|e| e.to_string())?;
        for (line, snippet) in snippets(&language) {
            texts.insert(format!("language.md:{line}"), snippet);
        }
        let mut samples: Vec<Sample> = texts
            .values()
            .filter(|t| t.len() < 20_000)
            .map(|t| (split(t), Vec::new()))
            .filter(|s| !s.0.is_empty())
            .collect();
        let gemm = std::fs::read_to_string(root.join("examples/gemm.tile")).map_err(|e| e.to_string())?;
        let small = [("BM", "32"), ("BN", "32"), ("BK", "16"), ("WM", "32"), ("WN", "16")];
        let define = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|&(n, v)| (n.to_owned(), v.to_owned())).collect()
        };
        for (la, lb, lc, acc) in
            [("row", "row", "row", "f32"), ("col", "row", "col", "f16"), ("row", "col", "row", "f32")]
        {
            let mut defines = define(&small);
            defines.extend(define(&[("LA", la), ("LB", lb), ("LC", lc), ("Acc", acc)]));
            samples.push((split(&gemm), defines.clone()));
            if all || la == "col" {
                let options = CompileOptions { defines, keep: Keep::All, ..CompileOptions::default() };
                let done = tilec::optimize(&gemm, &options).map_err(|e| e.to_string())?;
                for (_, text) in done.texts.iter().chain(&done.kernels[0].texts) {
                    samples.push((split(text), Vec::new()));
                }
            }
        }
        let lines = samples.iter().flat_map(|(s, _)| lines(s)).collect();
        Ok(Mutator { samples, lines })
    }

    /// A program.
    pub(super) fn input(&self, random: &mut Random) -> Input {
        let (sample, defines) = &self.samples[random.below(self.samples.len() as u64) as usize];
        let mut words = sample.clone();
        let mut changes = 1;
        while changes < 12 && random.below(3) > 0 {
            changes += 1;
        }
        for _ in 0..changes {
            self.change(&mut words, random);
        }
        let target = random.of(&[Target::Sm70, Target::Sm70, Target::Sm70, Target::Sm75, Target::Sm80, Target::Sm90a]);
        let mut options = CompileOptions { target, verify_each: true, defines: defines.clone(), ..Default::default() };
        if random.below(3) == 0 {
            let names = ["BM", "BN", "BK", "WM", "WN", "STAGES", "RASTER", "ALIGN", "B"];
            for _ in 0..random.below(3) {
                options.defines.push((random.of(&names).to_owned(), random.of(NUMBERS).to_owned()));
            }
            let orders = [("LA", "col"), ("LB", "col"), ("LC", "col"), ("Acc", "f16"), ("T", "bf16"), ("T", "f32")];
            let (name, value) = random.of(&orders);
            options.defines.push((name.to_owned(), value.to_owned()));
        }
        if random.below(8) == 0 {
            for pass in crate::options::optional_passes() {
                if random.below(2) == 0 {
                    options.disabled.insert(pass.to_owned());
                }
            }
        }
        let run = Run::parse("").expect("an empty line is a run");
        Input { text: words.concat(), options, run, meant: false, tried: false }
    }

    fn change(&self, words: &mut Vec<String>, random: &mut Random) {
        let some = |words: &[String], random: &mut Random, wanted: &dyn Fn(&str) -> bool| {
            let places: Vec<usize> = (0..words.len()).filter(|&i| wanted(&words[i])).collect();
            (!places.is_empty()).then(|| random.of(&places))
        };
        let visible = |w: &str| !is_space(w);
        let Some(at) = some(words, random, &visible) else { return };
        let replace = |words: &mut Vec<String>, random: &mut Random, wanted: &dyn Fn(&str) -> bool, by: &[&str]| {
            if let Some(i) = some(words, random, wanted) {
                words[i] = random.of(by).to_owned();
            }
        };
        let kind = random.below(24);
        match kind {
            0 => {
                words.remove(at);
            }
            1 => words.insert(at, words[at].clone()),
            2 => {
                if let Some(other) = some(words, random, &visible) {
                    words.swap(at, other);
                }
            }
            3..=7 => replace(words, random, &is_number, NUMBERS),
            8 => {
                // A number by its double or half: still a power of two.
                if let Some(i) = some(words, random, &is_number)
                    && let Ok(n) = words[i].parse::<u64>()
                {
                    words[i] = if random.below(2) == 0 { n.saturating_mul(2) } else { n / 2 }.to_string();
                }
            }
            9..=10 => replace(words, random, &|w| TYPES.contains(&w), TYPES),
            11 => {
                let i = some(words, random, &|w| w == "row" || w == "col");
                if let Some(i) = i {
                    words[i] = if words[i] == "row" { "col" } else { "row" }.to_owned();
                }
            }
            12..=13 => {
                if let (Some(i), Some(j)) = (some(words, random, &is_word), some(words, random, &is_word)) {
                    words[i] = words[j].clone();
                }
            }
            14 => replace(words, random, &|w| OPERATORS.contains(&w), OPERATORS),
            15 => replace(words, random, &|w| CALLS.contains(&w), CALLS),
            16 => {
                // An attribute after a copy's destination.
                if let Some(i) = some(words, random, &|w| w == "->") {
                    let end = (i..words.len()).find(|&j| words[j].contains('\n')).unwrap_or(words.len());
                    words.insert(end, random.of(ATTRIBUTES).to_owned());
                }
            }
            17 => {
                if let Some(i) = some(words, random, &|w| w == "schedule") {
                    let open = (i..words.len()).find(|&j| words[j] == "{").unwrap_or(words.len() - 1);
                    words.insert(open + 1, format!(" {} ", random.of(ITEMS)));
                } else if let Some(i) = some(words, random, &|w| w == "{") {
                    words.insert(i, format!(" schedule {{ {} }} ", random.of(ITEMS)));
                }
            }
            18..=21 => self.change_lines(kind, words, random),
            22 => {
                // `x` becomes `x + 1` and the like.
                if let Some(i) = some(words, random, &|w| is_word(w) || is_number(w)) {
                    let (op, n) = (random.of(OPERATORS), random.of(NUMBERS));
                    words[i] = format!("({} {op} {n})", words[i]);
                }
            }
            _ => {
                if let Some(i) = some(words, random, &|w| w == "for" || w == "}" || w == "..") {
                    match words[i].as_str() {
                        "for" => words.insert(i, "barrier ".to_owned()),
                        "}" => words.insert(i, "} else {".to_owned()),
                        _ => words.insert(i + 1, random.of(NUMBERS).to_owned()),
                    }
                }
            }
        }
        if words.is_empty() {
            words.push(" ".to_owned());
        }
    }

    /// Lines move, come from other programs (19), or are written (20, 21).
    fn change_lines(&self, kind: u64, words: &mut Vec<String>, random: &mut Random) {
        let mut all = lines(words);
        match kind {
            18 => {
                let (i, j) = (random.below(all.len() as u64) as usize, random.below(all.len() as u64) as usize);
                match random.below(3) {
                    0 => {
                        all.remove(i);
                    }
                    1 => all.swap(i, j),
                    _ => all.insert(i, all[j].clone()),
                }
            }
            19 => {
                let line = &self.lines[random.below(self.lines.len() as u64) as usize];
                all.insert(random.below(all.len() as u64 + 1) as usize, line.clone());
            }
            _ => {
                let line = vec![random.of(STATEMENTS).to_owned(), "\n".to_owned()];
                all.insert(random.below(all.len() as u64 + 1) as usize, line);
            }
        }
        *words = all.concat();
    }
}

/// The pieces line by line.
fn lines(words: &[String]) -> Vec<Vec<String>> {
    words.split_inclusive(|w| w.contains('\n')).map(<[String]>::to_vec).collect()
}
