//! Entries for fuzzers: any bytes, and no panic, no hang, no pile of memory.
//!
//! The folder `fuzz` of the repository makes a libFuzzer program of each ([`TARGETS`]); `cargo test` gives each a fixed number of
//! inputs, cut and pasted from programs of the repository by a seeded generator.

use super::failure::guarded;
use super::time::long;
use crate::oracle;
use crate::problem::Random;
use std::fmt::Write as _;
use tilec::bind::{self, Args, Number};
use tilec::{CompileOptions, Contract, Target};
use tilec_sim::{Device, Landing, Launch, Options, Order, Program};

/// An entry, its name, and how many inputs a test gives it.
pub struct Entry {
    /// Name of the libFuzzer program.
    pub name: &'static str,
    /// Runs the target on the bytes.
    pub run: fn(&[u8]),
    /// Bytes in front of the text, for options.
    pub header: usize,
    /// The source of its inputs.
    corpus: Corpus,
    /// Inputs of the test: about a second.
    inputs: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Corpus {
    Ptx,
    Tile,
    Contract,
}

/// Every entry.
pub const TARGETS: [Entry; 5] = [
    Entry { name: "ptx_parse", run: ptx_parse, header: 0, corpus: Corpus::Ptx, inputs: 2500 },
    Entry { name: "ptx_execute", run: ptx_execute, header: 2, corpus: Corpus::Ptx, inputs: 3000 },
    Entry { name: "tile_parse", run: tile_parse, header: 0, corpus: Corpus::Tile, inputs: 7000 },
    Entry { name: "compile", run: compile, header: 2, corpus: Corpus::Tile, inputs: 350 },
    Entry { name: "contract", run: contract, header: 0, corpus: Corpus::Contract, inputs: 8000 },
];

/// The PTX parser.
pub fn ptx_parse(data: &[u8]) {
    if let Err(error) = Program::parse(&String::from_utf8_lossy(data)) {
        assert!(error.line > 0 && !error.message.is_empty());
    }
}

/// The PTX executor: two small blocks, little fuel. The first two bytes choose order, landing and threads.
pub fn ptx_execute(data: &[u8]) {
    let [how, threads, text @ ..] = data else { return };
    let Ok(program) = Program::parse(&String::from_utf8_lossy(text)) else { return };
    let mut device = Device::new();
    let Ok(memory) = device.alloc(4096) else { return };
    if device.upload(memory, &[0; 4096]).is_err() {
        return;
    }
    let entry = program.entries().next().unwrap_or("k").to_owned();
    let sizes = program.params(&entry).unwrap_or_default();
    // Declared sizes are as hostile as the rest.
    if sizes.iter().sum::<u64>() > 1 << 16 {
        return;
    }
    let fill = |bytes: &u64| match bytes {
        8 => memory.to_le_bytes().to_vec(),
        n => vec![8; *n as usize],
    };
    let params = sizes.iter().map(fill).collect();
    let block = [1 + u32::from(threads % 128), 1 + u32::from(threads / 128), 1];
    let launch = Launch { entry, grid: [2, 1, 1], block, dynamic_smem: 64, params };
    let options = Options {
        fuel: 5_000,
        seed: u64::from(how >> 2),
        landing: if how & 1 == 0 { Landing::Early } else { Landing::Late },
        order: if how & 2 == 0 { Order::Seeded } else { Order::Reverse },
        ..Options::default()
    };
    if let Err(report) = device.run(&program, &launch, &options) {
        assert!(!report.to_string().is_empty());
    }
}

/// The parser and the verifier of the language; what verifies prints as itself.
pub fn tile_parse(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(module) = oracle::parse(text) {
        let printed: String = module.kernels.iter().fold(String::new(), |t, k| t + &tilec_ir::print::print(k) + "\n");
        let again = oracle::parse(&printed).unwrap_or_else(|e| panic!("printed, it does not parse: {e}\n{printed}"));
        let twice: String = again.kernels.iter().fold(String::new(), |t, k| t + &tilec_ir::print::print(k) + "\n");
        assert_eq!(printed, twice);
    }
}

/// The whole compiler. The first byte chooses the target, the second the passes that are off.
pub fn compile(data: &[u8]) {
    let [target, off, text @ ..] = data else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let targets = [Target::Sm70, Target::Sm75, Target::Sm80, Target::Sm90a];
    let mut options = CompileOptions {
        target: targets[usize::from(*target) % targets.len()],
        verify_each: true,
        ..Default::default()
    };
    for (i, pass) in crate::options::optional_passes().enumerate() {
        if off >> (i % 8) & 1 == 1 {
            options.disabled.insert(pass.to_owned());
        }
    }
    match tilec::compile(text, &options) {
        Ok(done) => {
            assert!(done.ptx.len() < 32 << 20);
            if let Err(e) = Program::parse(&done.ptx) {
                panic!("the simulator refuses the PTX: {e}");
            }
            assert!(Contract::from_json(&done.launch_json()).is_ok());
        }
        Err(refusal) => assert!(refusal.errors > 0 && !refusal.to_string().is_empty()),
    }
}

/// The launch contract: read, written, and bound to sizes.
pub fn contract(data: &[u8]) {
    let Ok(contracts) = Contract::from_json(&String::from_utf8_lossy(data)) else { return };
    let json = tilec::contract::to_json(&contracts);
    let again = Contract::from_json(&json).map(|c| tilec::contract::to_json(&c));
    assert_eq!(again.ok().as_deref(), Some(json.as_str()), "a contract reads back as it was written");
    for contract in &contracts {
        for value in [1i64, 64, i64::MAX] {
            let args: Args = contract.params.iter().map(|p| (p.name.clone(), Number::Int(value))).collect();
            if let Err(errors) = bind::bind(contract, &args) {
                assert!(!errors.is_empty() && errors.iter().all(|e| !e.to_string().is_empty()));
            }
        }
    }
}

/// Pieces that make mutants reach further than random bytes do.
const PIECES: &[&str] = &[
    "%r0",
    "%p1",
    "%rd0",
    "4294967295",
    "-1",
    "0x7fffffffffffffff",
    "9223372036854775808",
    "0",
    "bar.sync 1;",
    "@!%p0 ",
    "{",
    "}",
    "(",
    "ret;",
    ".b32",
    ".v4",
    "bra L;",
    "L:",
    "bar.warp.sync 3;",
    "exit;",
    "ld.shared.u32 %r0, [%r1+100000];",
    "call f, (%r0);",
    ".reg .b64 q<4294967295>;",
    ".shared .b8 huge[4294967295];",
    "\u{fe}",
    "0f",
    "/*",
    "//",
    "vote.sync.all.pred %p0, %p1, 15;",
    "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32",
    "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32",
    "smem",
    "reg",
    "gmem",
    "f16",
    "[4096, 4096]",
    "for k in 0..K step 1 {",
    "copy A -> B",
    "mma(a, b, acc)",
    "barrier",
    "channel",
    "where",
    "schedule",
    "..",
    "->",
    "\"",
    "\\u0000",
    "null",
    "[]",
    "{}",
    "1e999",
    "\"grid\":",
    "M / 0",
    "M % 0",
    "M * 9223372036854775807",
    "((((((((",
    "-9223372036854775808",
];

/// Texts to start from.
fn corpus(kind: Corpus) -> Result<Vec<String>, String> {
    let root = crate::root();
    let read = |folder: &str, extension: &str| -> Result<Vec<String>, String> {
        let entries = std::fs::read_dir(root.join(folder)).map_err(|e| format!("{folder}: {e}"))?;
        let mut paths: Vec<_> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
        paths.sort();
        let texts = paths.iter().filter(|p| p.extension().is_some_and(|x| x == extension));
        texts.map(|p| std::fs::read_to_string(p).map_err(|e| format!("{}: {e}", p.display()))).collect()
    };
    let mut texts = Vec::new();
    match kind {
        Corpus::Ptx => {
            for folder in ["sim/tests/data", "sim/tests/data/cuda"] {
                texts.extend(read(folder, "ptx")?);
            }
        }
        Corpus::Tile => {
            for folder in ["examples", "docs/sketches", "tests/files/parse", "tests/files/pass", "tests/files/diag"] {
                texts.extend(read(folder, "tile")?);
            }
        }
        Corpus::Contract => {
            for text in read("examples", "tile")? {
                if let Ok(done) = tilec::compile(&text, &CompileOptions::default()) {
                    texts.push(done.launch_json());
                }
            }
        }
    }
    if texts.is_empty() { Err("nothing to start from".to_owned()) } else { Ok(texts) }
}

/// A few changes to one of the texts.
fn mutate(texts: &[String], random: &mut Random) -> Vec<u8> {
    let pick = |random: &mut Random| texts[random.below(texts.len() as u64) as usize].as_bytes().to_vec();
    let mut data = pick(random);
    let most = random.of(&[1, 1, 1, 2, 6]);
    for _ in 0..random.between(1, most) {
        let at = random.below(data.len() as u64 + 1) as usize;
        let reach = 1 << random.below(9);
        let end = (at + random.below(reach) as usize).min(data.len());
        match random.below(9) {
            0 => data.truncate(at.max(1)),
            1 => drop(data.drain(at..end)),
            2 => {
                let part = data[at..end].to_vec();
                data.splice(at..at, part);
            }
            3 => {
                let other = pick(random);
                let from = random.below(other.len() as u64) as usize;
                let to = (from + random.below(200) as usize).min(other.len());
                data.splice(at..end.min(at + 40), other[from..to].iter().copied());
            }
            4 => {
                if let Some(byte) = data.get_mut(at) {
                    *byte = random.bits() as u8;
                }
            }
            5 | 6 => {
                // A line goes, or comes twice.
                let start = data[..at].iter().rposition(|b| *b == b'\n').map_or(0, |n| n + 1);
                let end = data[at..].iter().position(|b| *b == b'\n').map_or(data.len(), |n| at + n + 1);
                let line = data[start..end].to_vec();
                data.splice(start..end, if random.below(2) == 0 { Vec::new() } else { line.repeat(2) });
            }
            _ => drop(data.splice(at..at, random.of(PIECES).bytes())),
        }
    }
    data
}

/// Gives an entry its inputs.
pub(super) fn smoke(entry: &Entry) -> Result<(), String> {
    let seed = std::env::var("TILEC_FUZZ_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    let times = long().map_or(1, |seconds| seconds as usize);
    let texts = corpus(entry.corpus)?;
    let mut random = Random(seed);
    let mut failures = String::new();
    for number in 0..entry.inputs * times {
        let mut data: Vec<u8> = (0..entry.header).map(|_| random.bits() as u8).collect();
        // The programs themselves first.
        match texts.get(number) {
            Some(text) => data.extend_from_slice(text.as_bytes()),
            None => data.extend(mutate(&texts, &mut random)),
        }
        if let Err(failure) = guarded(|| (entry.run)(&data)) {
            let _ = writeln!(failures, "{}: {}\n{}\n", failure.class, failure.message, String::from_utf8_lossy(&data));
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(failures) }
}
