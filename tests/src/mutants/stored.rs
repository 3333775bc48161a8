//! PTX of other origin whose mutants are tried, for mechanisms that the compiler does not use yet.

use super::subject::{Case, Subject, expanded, poison_outputs};
use crate::problem::{Random, Run, Tensor};
use tilec::contract::{Access, Contract, Dimension, Param, ParamKind, SCHEMA, TensorParam, U32};
use tilec::expr;
use tilec_ir::types::Elem;

/// PTX of other origin.
pub(super) struct Stored {
    /// Its name, unique.
    pub(super) name: &'static str,
    ptx: &'static str,
    block: u32,
    /// Dynamic shared memory in bytes.
    smem: u32,
    grid: [&'static str; 3],
    params: &'static [Given],
    runs: &'static [&'static str],
    /// What it does.
    meaning: fn(&mut [Tensor]),
}

/// A parameter of stored PTX.
enum Given {
    /// Name, type, extents, strides, whether it is written.
    Tensor(&'static str, Elem, &'static [&'static str], &'static [&'static str], bool),
    Size(&'static str),
}

/// All of them.
pub(super) const STORED: &[Stored] = &[
    Stored {
        name: "ring-nvrtc",
        ptx: include_str!("../../../sim/tests/data/cuda/ring.ptx"),
        block: 128,
        smem: 0,
        grid: ["1", "1", "1"],
        params: &[
            Given::Tensor("a", Elem::F32, &["n", "512"], &["512", "1"], false),
            Given::Tensor("out", Elem::F32, &["n", "512"], &["512", "1"], true),
            Given::Size("n"),
        ],
        runs: &["n=11 range=1000 seed=7", "n=1..10/1 range=1000"],
        meaning: |t| {
            for (i, address) in t[0].clone().addresses().enumerate() {
                t[1].data[address] = t[0].data[i ^ 4] + if i % 4 == 0 { 1.0 } else { 0.0 };
            }
        },
    },
    Stored {
        name: "mbarrier-nvrtc",
        ptx: include_str!("../../../sim/tests/data/cuda/mbarrier_ring.ptx"),
        block: 128,
        smem: 0,
        grid: ["1", "1", "1"],
        params: &[
            Given::Tensor("a", Elem::F32, &["n", "384"], &["384", "1"], false),
            Given::Tensor("out", Elem::F32, &["n", "384"], &["384", "1"], true),
            Given::Size("n"),
        ],
        runs: &["n=14 range=1000 seed=7", "n=1..13/1 range=1000"],
        meaning: |t| {
            let [a, out] = t else { return };
            for row in 0..a.shape[0] {
                for word in 0..384 {
                    let at = out.at(row, word);
                    out.data[at] = a.data[a.at(row, (95 - word / 4) * 4 + word % 4)];
                }
            }
        },
    },
    Stored {
        name: "last-block-nvrtc",
        ptx: include_str!("../../../sim/tests/data/cuda/last_block.ptx"),
        block: 256,
        smem: 0,
        grid: ["ceildiv(n, 700)", "1", "1"],
        params: &[
            Given::Tensor("a", Elem::I32, &["n"], &["1"], false),
            Given::Tensor("parts", Elem::I32, &["ceildiv(n, 700)"], &["1"], true),
            Given::Tensor("out", Elem::I32, &["1"], &["1"], true),
            Given::Size("n"),
        ],
        runs: &["n=4500 range=1000 seed=2", "n=300 range=1000 seed=3", "n=1..7300/704 range=1000"],
        meaning: |t| {
            let [a, parts, out] = t else { return };
            let blocks = parts.data.len();
            parts.data.fill(0.0);
            for (i, v) in a.data.iter().enumerate() {
                parts.data[i / 256 % blocks] += v;
            }
            out.data[0] = a.data.iter().sum();
        },
    },
    Stored {
        name: "pipeline-nvrtc",
        ptx: include_str!("../../../sim/tests/data/cuda/gemm_pipeline.ptx"),
        block: 128,
        smem: 4 * 2 * 64 * 64,
        grid: ["ceildiv(n, 64)", "2", "1"],
        params: &[
            Given::Tensor("a", Elem::F16, &["128", "k"], &["k", "1"], false),
            Given::Tensor("b", Elem::F16, &["n", "k"], &["k", "1"], false),
            Given::Tensor("c", Elem::F32, &["128", "n"], &["n", "1"], true),
            Given::Size("n"),
            Given::Size("k"),
        ],
        runs: &["n=128 k=224 seed=2", "n=64 k=32 seed=3", "n=64 k=64 seed=4", "n=64 k=96 seed=5"],
        meaning: |t| {
            let [a, b, c] = t else { return };
            for i in 0..c.shape[0] {
                for j in 0..c.shape[1] {
                    let at = c.at(i, j);
                    c.data[at] = (0..a.shape[1]).map(|k| a.data[a.at(i, k)] * b.data[b.at(j, k)]).sum();
                }
            }
        },
    },
    Stored {
        name: "named-barriers",
        ptx: include_str!("../../mutants/named_barriers.ptx"),
        block: 96,
        smem: 0,
        grid: ["ceildiv(n, 5)", "1", "1"],
        params: &[
            Given::Tensor("a", Elem::F32, &["n", "64"], &["64", "1"], false),
            Given::Tensor("out", Elem::F32, &["n", "64"], &["64", "1"], true),
            Given::Size("n"),
        ],
        runs: &["n=13 range=1000 seed=7", "n=1..7/1 range=1000"],
        meaning: |t| {
            let [a, out] = t else { return };
            for row in 0..a.shape[0] {
                for column in 0..64 {
                    let at = out.at(row, column);
                    out.data[at] = a.data[a.at(row, 63 - column)];
                }
            }
        },
    },
];

impl Stored {
    /// The kernel with its problems.
    ///
    /// # Errors
    /// The text lacks a directive, or a size is none.
    pub(super) fn subject(&self) -> Result<Subject, String> {
        let texts = |l: &[&str]| l.iter().map(|s| Dimension::from(*s)).collect::<Vec<_>>();
        let param = |given: &Given| match given {
            Given::Tensor(name, elem, shape, strides, written) => Param {
                name: (*name).to_owned(),
                kind: ParamKind::Tensor(TensorParam {
                    elem: *elem,
                    align: 16,
                    access: if *written { Access::Write } else { Access::Read },
                    shape: texts(shape),
                    strides: texts(strides),
                    reads_gaps: false,
                    constant: false,
                    scratch: None,
                    may_alias: Vec::new(),
                }),
            },
            Given::Size(name) => Param { name: (*name).to_owned(), kind: ParamKind::Size { ty: U32::U32 } },
        };
        let directive = |name: &str| {
            let line = self.ptx.lines().find_map(|l| l.strip_prefix(name));
            line.map(|l| l.trim().to_owned()).ok_or_else(|| format!("no `{name}`"))
        };
        let entry = self.ptx.split_once(".entry").and_then(|(_, l)| l.split('(').next()).ok_or("no entry")?;
        let contract = Contract {
            schema: SCHEMA.to_owned(),
            entry: entry.trim().to_owned(),
            target: directive(".target")?,
            ptx_version: directive(".version")?,
            id: None,
            block: [self.block, 1, 1],
            cluster: [1; 3],
            programmatic: false,
            dynamic_smem_bytes: self.smem,
            grid: self.grid.map(str::to_owned),
            params: self.params.iter().map(param).collect(),
            requires: Vec::new(),
        };
        let mut cases = Vec::new();
        let runs: Vec<String> = self.runs.iter().map(|&r| r.to_owned()).collect();
        for (line, mode) in expanded(&runs)? {
            let run = Run::parse(&line)?;
            let value = |text: &str| {
                let value = expr::integer(text, &|name| run.integer(name).ok());
                value.map_err(|e| e.to_string())
            };
            let mut random = Random(run.seed);
            let mut before = Vec::new();
            for given in self.params {
                let Given::Tensor(name, _, shape, strides, _) = given else { continue };
                let list = |l: &[&str]| l.iter().map(|t| value(t)).collect::<Result<Vec<i64>, _>>();
                let mut tensor = Tensor::new(name, &list(shape)?, &list(strides)?)?;
                tensor.randomize(&mut random, run.range);
                before.push(tensor);
            }
            poison_outputs(&contract, &run, &mut before);
            let mut after = before.clone();
            (self.meaning)(&mut after);
            cases.push(Case { label: line, run, mode, before, after });
        }
        Ok(Subject { name: self.name.to_owned(), ptx: self.ptx.to_owned(), contract, cases })
    }
}
