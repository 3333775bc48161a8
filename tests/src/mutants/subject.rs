//! A kernel whose mutants are tried, its problems, and the modes in which it runs on them.

use crate::problem::{Run, Tensor};
use tilec::contract::{Access, Contract, ParamKind};
use tilec_sim::{Landing, Order};

/// A kernel and its problems.
pub struct Subject {
    /// Its name, unique.
    pub name: String,
    /// The PTX.
    pub ptx: String,
    /// How it is launched.
    pub contract: Contract,
    /// In the order in which they are tried.
    pub cases: Vec<Case>,
}

/// Memory before and after a launch.
pub struct Case {
    /// Sizes and scalars, and what is special about the data.
    pub label: String,
    /// Sizes and scalars.
    pub run: Run,
    /// The only mode in which it is tried, of [`MODES`]; all of them if absent.
    pub mode: Option<usize>,
    /// Memory before.
    pub before: Vec<Tensor>,
    /// Memory after.
    pub after: Vec<Tensor>,
}

/// Modes of execution, tried in this order on each problem; one of them on the problems of a sweep.
pub const MODES: &[(Landing, Order)] = &[
    (Landing::Early, Order::Forward),
    (Landing::Latest, Order::Reverse),
    (Landing::Late, Order::Seeded),
    (Landing::LateReads, Order::Forward),
];

/// Run lines with sweeps expanded: the problems of a sweep use the modes in rotation.
pub(super) fn expanded(runs: &[String]) -> Result<Vec<(String, Option<usize>)>, String> {
    let mut all = Vec::new();
    for line in runs {
        let Some(word) = line.split(' ').find(|w| w.contains("..")) else {
            all.push((line.clone(), None));
            continue;
        };
        let parts: Vec<&str> = word.split(['=', '/']).flat_map(|w| w.split("..")).collect();
        let number = |text: &str| text.parse::<usize>().map_err(|e| format!("`{word}`: {e}"));
        let [name, from, to, step] = parts[..] else { return Err(format!("`{word}` is not NAME=A..B/STEP")) };
        for (i, value) in (number(from)?..=number(to)?).step_by(number(step)?.max(1)).enumerate() {
            all.push((line.replace(word, &format!("{name}={value} seed={value}")), Some(i % MODES.len())));
        }
    }
    Ok(all)
}

/// Tensors that are only written start as NaN, and so does `C` if its factor `beta` is zero.
pub(super) fn poison_outputs(contract: &Contract, run: &Run, tensors: &mut [Tensor]) {
    for tensor in tensors {
        let kind = contract.param(&tensor.name).map(|p| &p.kind);
        let written = kind.and_then(ParamKind::tensor).is_some_and(|t| t.access == Access::Write);
        if written || (tensor.name == "C" && run.value("beta") == Some(0.0)) {
            tensor.poison();
        }
    }
}
