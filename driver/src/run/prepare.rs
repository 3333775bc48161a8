//! Options of a run, and the preparation that device and interpreter share.

use crate::console::clock::Clock;
use crate::contract::number::{Args, Number};
use crate::contract::{Contract, LaunchFile};
use crate::run::bind::{BindError, MAX_TENSOR_BYTES, TensorPlan};
use crate::run::data::{self, Data};
use crate::run::elements::{Elements, NoElements};
use crate::run::facts::Facts;
use crate::run::program::{Aliases, BoundProgram};
use crate::run::simulate::SimOptions;
use std::collections::BTreeMap;
use std::time::Duration;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Span};

/// Where to run.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum On {
    /// The first CUDA device; the simulator if there is none.
    #[default]
    Auto,
    /// The first CUDA device.
    Cuda,
    /// The simulator.
    Simulator,
}

/// How to run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Which kernel or sequence; `None`: the only sequence of the file, or its only kernel.
    pub kernel: Option<String>,
    /// Values of sizes, strides and scalars.
    pub args: Args,
    /// Compare with the interpreter.
    pub check: bool,
    /// Seed of the inputs.
    pub seed: u64,
    /// Contents of inputs; `None`: integers when comparing, else normally distributed numbers.
    pub normal: Option<bool>,
    /// Number of timed launches.
    pub repeat: u32,
    /// Wall clock of making the tensors and of the kernels; on a GPU these have it for themselves.
    pub timeout: Duration,
    /// Where to run.
    pub on: On,
    /// How to simulate.
    pub sim: SimOptions,
    /// Elements of tensors that are not to be made up: raw bytes in row-major order of the index, without gaps.
    pub inputs: BTreeMap<String, Elements>,
    /// Tensors that are to be at the address of others, as far as the contract allows it.
    pub aliases: Aliases,
}

impl Default for RunOptions {
    fn default() -> RunOptions {
        RunOptions {
            kernel: None,
            args: Args::new(),
            check: false,
            seed: 0,
            normal: None,
            repeat: 10,
            timeout: Duration::from_secs(120),
            on: On::Auto,
            sim: SimOptions::default(),
            inputs: BTreeMap::new(),
            aliases: Aliases::new(),
        }
    }
}

/// The bytes of all tensors; an error, if these are too many.
pub(crate) fn too_large(bound: &BoundProgram) -> Result<u64, Box<Diagnostic>> {
    let bytes = bound.tensors.iter().fold(0u64, |sum, t| sum.saturating_add(t.bytes()));
    if bytes <= MAX_TENSOR_BYTES {
        return Ok(bytes);
    }
    let message = format!("the tensors have {bytes} bytes together, the limit is {MAX_TENSOR_BYTES}");
    Err(Box::new(Diagnostic::error(codes::TOO_BIG_TO_RUN, Span::default(), message)))
}

/// The value of every size, stride and scalar, in the order of the parameters.
pub(crate) fn values(launches: &[&Contract], bound: &BoundProgram) -> Vec<(String, Number)> {
    let mut all: Vec<(String, Number)> = Vec::new();
    for param in launches.iter().flat_map(|c| &c.params) {
        if let Some(value) = bound.values.get(&param.name)
            && all.iter().all(|(name, _)| *name != param.name)
        {
            all.push((param.name.clone(), *value));
        }
    }
    all
}

/// The tensors as they are before the launch, with their guards.
pub(crate) fn contents(
    bound: &BoundProgram,
    facts: &Facts,
    options: &RunOptions,
    clock: &mut Clock,
) -> Result<Vec<Vec<u8>>, Box<Diagnostic>> {
    let normal = options.normal.unwrap_or(!options.check);
    let kind = if normal { Data::Normal } else { Data::Int { limit: if facts.f16_accumulators { 2 } else { 4 } } };
    let error = |message: String| Diagnostic::error(codes::BAD_TENSOR_FILE, Span::default(), message);
    for name in options.inputs.keys() {
        if bound.tensors.iter().all(|t| t.name != *name) {
            let names: Vec<String> = bound.tensors.iter().map(|t| format!("`{}`", t.name)).collect();
            return Err(Box::new(error(format!("no tensor `{name}`; there are {}", names.join(", ")))));
        }
    }
    let mut one = |t: &TensorPlan| {
        let made = match options.inputs.get(&t.name) {
            Some(given) => {
                let expected = t.elem.bytes_of(t.count());
                let packed = given.read(t.elem, t.count()).map_err(|why| match why {
                    NoElements::Size(bytes) => {
                        error(format!("the file for `{}` has {bytes} bytes, expected {expected}", t.name))
                            .with_note(format!("`{}` is {} [{}]", t.name, t.elem.name(), t.grouped(&t.shape)))
                    }
                    NoElements::Count(n) => error(format!("`{}` is given {n} numbers, expected {}", t.name, t.count()))
                        .with_note(format!("`{}` is {} [{}]", t.name, t.elem.name(), t.grouped(&t.shape))),
                    NoElements::Unreadable(path, e) => {
                        let message = format!("cannot read `{}`: {e}", path.display());
                        Diagnostic::error(codes::NOT_READABLE, Span::default(), message)
                    }
                })?;
                data::unpacked(t, &packed, clock).expect("as many bytes as the elements have")
            }
            None if t.access.reads() => data::filled(t, options.seed, kind, clock),
            None => data::poisoned(t, clock),
        };
        clock.check().map(|()| made)
    };
    let mut all: Vec<Vec<u8>> = bound.tensors.iter().map(&mut one).collect::<Result<_, _>>()?;
    for (over, under) in &options.aliases {
        let at = |name: &str| bound.tensors.iter().position(|t| t.name == name);
        if let (Some(over), Some(under)) = (at(over), at(under)) {
            all[over] = all[under].clone();
        }
    }
    Ok(all)
}

/// The launches of a launch file (called `place` in messages), and their name: the kernel or program of that name, else
/// the only program, else the only kernel. One of several variants is named by its own name.
///
/// # Errors
/// If there is no such kernel or program, or more than one, or a rule that is not an expression.
pub fn launches<'f>(
    file: &'f LaunchFile,
    name: Option<&str>,
    args: &Args,
    place: &str,
) -> Result<(String, Vec<&'f Contract>), Vec<Diagnostic>> {
    let error = |message: String| vec![Diagnostic::error(codes::BAD_ARGUMENT, Span::default(), message)];
    let there = || file.names().iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
    let Some(wanted) = name.or(file.only()) else {
        if file.kernels.is_empty() {
            return Err(error(format!("the {place} has no kernel")));
        }
        let several = format!("the {place} has several kernels or sequences: {}", there());
        return Err(error(several).into_iter().map(|d| d.with_note("choose one with `--kernel NAME`")).collect());
    };
    let launches = file.launches(wanted, args).map_err(|e| e.iter().map(diagnostic).collect::<Vec<_>>())?;
    match launches.as_deref() {
        // A kernel is named by its entry, which identifies the variant.
        Some([one]) if file.programs.iter().all(|p| p.name != wanted) => Ok((one.entry.clone(), vec![one])),
        Some(all) => Ok((wanted.to_owned(), all.to_vec())),
        None => Err(error(format!("the {place} has no kernel `{wanted}`; there are {}", there()))),
    }
}

pub(crate) fn diagnostic(error: &BindError) -> Diagnostic {
    let (code, note) = match error {
        BindError::Unknown { .. } | BindError::Value { .. } => (codes::BAD_ARGUMENT, None),
        BindError::Missing { names } => {
            let example: Vec<String> = names.iter().map(|n| format!("{n}=..")).collect();
            (codes::MISSING_ARGUMENT, Some(format!("add `{}` to the command", example.join(" "))))
        }
        BindError::Unmet { .. } => (
            codes::UNMET_PRECONDITION,
            Some("the compiled code relies on this precondition, so the kernel was not launched; see `tilec explain E0609`".to_owned()),
        ),
        BindError::Overlap(overlap) => (
            codes::BAD_ARGUMENT,
            Some(format!(
                "give `{}={}` or more, or leave it out for a tensor without gaps",
                overlap.stride, overlap.least
            )),
        ),
        BindError::Expression { .. } => (codes::BAD_ARGUMENT, None),
        BindError::Grid { .. } | BindError::Extent { .. } => (codes::TOO_BIG_TO_RUN, None),
    };
    let d = Diagnostic::error(code, Span::default(), error.to_string());
    if let Some(note) = note { d.with_note(note) } else { d }
}

/// Bytes that a tensor moves if every element is read once and written once, as it is used.
pub(crate) fn traffic(t: &TensorPlan) -> f64 {
    let uses = u64::from(t.access.reads()) + u64::from(t.access.writes());
    t.elem.size().traffic(t.count() as f64) * uses as f64
}
