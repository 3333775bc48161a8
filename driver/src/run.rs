//! Running a kernel on a device and comparing its result with the interpreter's.
//!
//! The launch is made from the contract, the PTX and the values of the parameters alone, in a process of its own
//! ([`child`]). The reference is the tile interpreter on the program as it was written, compile-time parameters bound.

pub mod check;
pub mod child;
#[cfg(feature = "cuda")]
mod device;
mod facts;
#[cfg(test)]
mod tests;

use crate::bind::{Args, BindError, Bound, MAX_TENSOR_BYTES, Number, TensorPlan, bind};
use crate::compile::{Compiled, CompiledKernel, Diagnostics};
use crate::contract::ParamKind;
use crate::data::{self, Data};
use check::{Accuracy, Expected, Verdict, compare};
use child::{ChildError, Job, Launched, Outcome, Refused};
use facts::Facts;
use std::fmt;
use std::process::Command;
use std::time::Duration;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Span};
use tilec_ir::interp;

/// How to run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Which kernel; `None`: the only one of the file.
    pub kernel: Option<String>,
    /// Values of sizes, strides and scalars.
    pub args: Args,
    /// Compare with the interpreter.
    pub check: bool,
    /// Seed of the inputs.
    pub seed: u64,
    /// What inputs hold; `None`: whole numbers when comparing, else normally distributed ones.
    pub normal: Option<bool>,
    /// How often the kernel is timed.
    pub repeat: u32,
    /// Wall clock of the device's work.
    pub timeout: Duration,
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
        }
    }
}

/// What came out of a run. `Display` is what the command prints.
#[derive(Clone, Debug)]
pub struct RunReport {
    /// Entry name.
    pub entry: String,
    /// Target of the PTX.
    pub target: &'static str,
    /// The device and its times.
    pub launched: Launched,
    /// The value of every size, stride and scalar, in parameter order.
    pub values: Vec<(String, Number)>,
    /// Floating-point operations of the products; 0 for programs without.
    pub flops: f64,
    /// Bytes of the tensors read and written, each once.
    pub bytes: f64,
    /// The comparison of every tensor that was compared.
    pub verdicts: Vec<(String, Verdict)>,
    /// What else the reader should know.
    pub notes: Vec<String>,
}

impl RunReport {
    /// Whether all that was compared is right.
    pub fn ok(&self) -> bool {
        self.verdicts.iter().all(|(_, v)| v.ok())
    }

    /// Median of the times, milliseconds.
    pub fn median_ms(&self) -> Option<f64> {
        let mut times = self.launched.times_ms.clone();
        times.sort_by(f32::total_cmp);
        times.get(times.len() / 2).map(|t| f64::from(*t))
    }
}

impl fmt::Display for RunReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Launched { device, cc, .. } = &self.launched;
        writeln!(f, "{} for {} on {device} (sm_{cc})", self.entry, self.target)?;
        let values: Vec<String> = self.values.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        writeln!(f, "  {}", values.join(", "))?;
        if let Some(ms) = self.median_ms() {
            let seconds = (ms / 1e3).max(f64::MIN_POSITIVE);
            let rate = if self.flops > 0.0 {
                format!("{:.3} TFLOP/s", self.flops / seconds / 1e12)
            } else {
                format!("{:.1} GB/s", self.bytes / seconds / 1e9)
            };
            let n = self.launched.times_ms.len();
            writeln!(f, "  time {ms:.4} ms (median of {n}), {rate}")?;
        }
        for (name, v) in &self.verdicts {
            let verdict = if v.ok() { "ok" } else { "FAILED" };
            let Verdict { elements, wrong, largest_error, largest_bound, .. } = v;
            match (*wrong, *largest_bound > 0.0) {
                (0, false) => writeln!(f, "  {name}: {elements} elements, all exact: {verdict}")?,
                (0, true) => writeln!(
                    f,
                    "  {name}: {elements} elements, largest error {largest_error:.3e}, bound {largest_bound:.3e}: {verdict}"
                )?,
                (_, false) => writeln!(
                    f,
                    "  {name}: {wrong} of {elements} elements differ, largest error {largest_error:.3e}: {verdict}"
                )?,
                (_, true) => writeln!(
                    f,
                    "  {name}: {wrong} of {elements} elements differ too much, largest error {largest_error:.3e}, bound \
                     {largest_bound:.3e}: {verdict}"
                )?,
            }
            for line in &v.shown {
                writeln!(f, "    {line}")?;
            }
            if v.stray_bytes > 0 {
                writeln!(f, "    {} bytes outside the elements of `{name}` were written", v.stray_bytes)?;
            }
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "  note: {note}"))
    }
}

/// Runs a kernel of `program`. `launcher` is the command that does [`child::serve`].
///
/// # Errors
/// Arguments that do not fit, unmet preconditions, no device, a launch that fails or does not end, no reference result.
/// A result that is wrong is no error: see [`RunReport::ok`].
pub fn run(program: &Compiled, options: &RunOptions, launcher: &mut Command) -> Result<RunReport, Diagnostics> {
    run_with(program, options, |job, tensors| child::launch(launcher, job, tensors, options.timeout))
}

/// [`run`] with the launch as a function.
fn run_with(
    program: &Compiled,
    options: &RunOptions,
    launch: impl FnOnce(Job, Vec<Vec<u8>>) -> Result<(Outcome, Vec<Vec<u8>>), ChildError>,
) -> Result<RunReport, Diagnostics> {
    let fail = |list: Vec<Diagnostic>| Diagnostics { source: program.source.clone(), errors: list.len(), list };
    let kernel = select(program, options.kernel.as_deref()).map_err(|d| fail(vec![*d]))?;
    let bound =
        bind(&kernel.contract, &options.args).map_err(|errors| fail(errors.iter().map(diagnostic).collect()))?;
    let bytes = bound.tensors.iter().fold(0u64, |sum, t| sum.saturating_add(t.bytes()));
    if bytes > MAX_TENSOR_BYTES {
        let message = format!("the tensors have {bytes} bytes together, the limit is {MAX_TENSOR_BYTES}");
        return Err(fail(vec![Diagnostic::error(codes::TOO_BIG_TO_RUN, Span::default(), message)]));
    }
    let facts = Facts::of(&kernel.tile.specialized);
    let normal = options.normal.unwrap_or(!options.check);
    let inputs = if normal { Data::Normal } else { Data::Int { limit: if facts.f16_accumulators { 2 } else { 4 } } };
    let before: Vec<Vec<u8>> = bound
        .tensors
        .iter()
        .map(|t| if t.access.reads() { data::filled(t, options.seed, inputs) } else { data::poisoned(t) })
        .collect();
    let job = Job {
        contract: kernel.contract.clone(),
        args: bound.values.clone(),
        ptx: program.ptx.clone(),
        repeat: options.repeat,
        tensors: before.iter().map(Vec::len).collect(),
    };
    let (launched, after) = match launch(job, before.clone()) {
        Ok((Outcome { result: Ok(launched), .. }, after)) => (launched, after),
        Ok((Outcome { result: Err(refused), .. }, _)) => return Err(fail(vec![refusal(&refused)])),
        Err(e) => {
            let code = match e {
                ChildError::Timeout(_) => codes::LAUNCH_TIMEOUT,
                ChildError::Start(_) | ChildError::Died { .. } => codes::LAUNCH_FAILED,
            };
            return Err(fail(vec![Diagnostic::error(code, Span::default(), e.to_string())]));
        }
    };
    let mut report = RunReport {
        entry: kernel.contract.entry.clone(),
        target: program.target.name(),
        values: kernel
            .contract
            .params
            .iter()
            .filter_map(|p| Some((p.name.clone(), *bound.values.get(&p.name)?)))
            .collect(),
        flops: facts.flops(&bound, &kernel.contract),
        bytes: bound.tensors.iter().map(traffic).sum(),
        verdicts: Vec::new(),
        notes: Vec::new(),
        launched,
    };
    let atom = kernel.report.mma.first().map_or("", |m| m.atom.as_str());
    if atom == "m8n8k4" && report.launched.cc >= 80 {
        report.notes.push("this GPU emulates m8n8k4 with scalar code: its time says nothing about Volta".to_owned());
    }
    if options.check {
        let accuracy = Accuracy::of(atom, facts.f16_accumulators, report.launched.cc);
        report.verdicts =
            verify(kernel, &facts, &bound, &before, &after, accuracy, &mut report.notes).map_err(|d| fail(vec![*d]))?;
    }
    Ok(report)
}

/// The kernel to run.
fn select<'a>(program: &'a Compiled, name: Option<&str>) -> Result<&'a CompiledKernel, Box<Diagnostic>> {
    let names = || program.kernels.iter().map(|k| format!("`{}`", k.contract.entry)).collect::<Vec<_>>().join(", ");
    let error = |message: String| Box::new(Diagnostic::error(codes::BAD_ARGUMENT, Span::default(), message));
    match (name, program.kernels.as_slice()) {
        (Some(name), _) => {
            program.kernel(name).ok_or_else(|| error(format!("no kernel `{name}`; there are {}", names())))
        }
        (None, [only]) => Ok(only),
        (None, []) => Err(error("the file has no kernel".to_owned())),
        (None, _) => Err(Box::new(
            error(format!("the file has several kernels: {}", names())).with_note("choose one with `--kernel NAME`"),
        )),
    }
}

fn diagnostic(error: &BindError) -> Diagnostic {
    let (code, note) = match error {
        BindError::Unknown { .. } | BindError::Value { .. } => (codes::BAD_ARGUMENT, None),
        BindError::Missing { names } => {
            let example: Vec<String> = names.iter().map(|n| format!("{n}=..")).collect();
            (codes::MISSING_ARGUMENT, Some(format!("add `{}` to the command", example.join(" "))))
        }
        BindError::Unmet { .. } => (
            codes::UNMET_PRECONDITION,
            Some("the kernel was compiled on this promise and was not launched; see `tilec explain E0609`".to_owned()),
        ),
        BindError::Expression { .. } => (codes::BAD_ARGUMENT, None),
        BindError::Grid { .. } | BindError::Extent { .. } => (codes::TOO_BIG_TO_RUN, None),
    };
    let d = Diagnostic::error(code, Span::default(), error.to_string());
    if let Some(note) = note { d.with_note(note) } else { d }
}

fn refusal(refused: &Refused) -> Diagnostic {
    if refused.no_device {
        Diagnostic::error(codes::NO_GPU, Span::default(), format!("no GPU was found: {}", refused.reason))
            .with_note("compiling needs no GPU: `tilec IN.tile -o OUT.ptx`")
    } else {
        Diagnostic::error(codes::LAUNCH_FAILED, Span::default(), format!("the launch failed: {}", refused.reason))
    }
}

/// Bytes that a tensor moves if every element is read once and written once, as it is used.
fn traffic(t: &TensorPlan) -> f64 {
    let uses = u64::from(t.access.reads()) + u64::from(t.access.writes());
    t.count() as f64 * f64::from(t.elem.bytes()) * uses as f64
}

/// Compares what the kernel left with what the interpreter computes.
fn verify(
    kernel: &CompiledKernel,
    facts: &Facts,
    bound: &Bound,
    before: &[Vec<u8>],
    after: &[Vec<u8>],
    accuracy: Accuracy,
    notes: &mut Vec<String>,
) -> Result<Vec<(String, Verdict)>, Box<Diagnostic>> {
    let reference = interpret(kernel, bound, before, |x| x, |x| x)?;
    let whole = |x: f64| x.fract() == 0.0;
    let largest = reference.magnitudes.values().flatten().fold(0.0f64, |a, &b| a.max(b));
    let inputs_whole = bound.tensors.iter().zip(before).filter(|(t, _)| t.access.reads()).all(|(t, bytes)| {
        let mut all = true;
        t.for_each(|_, offset| all &= whole(data::get(t.elem, bytes, offset)));
        all
    });
    let scalars_whole = reference.scalars.values().all(|x| whole(*x));
    let exact = !facts.inexact_ops && inputs_whole && scalars_whole && largest < accuracy.exact_below;
    let terms = if exact {
        None
    } else {
        if facts.inexact_ops {
            notes.push("the bound covers sums of products, not exponentials and their kin".to_owned());
        } else if inputs_whole {
            let why =
                if scalars_whole { "the sums may exceed the exact range" } else { "a scalar is not a whole number" };
            notes.push(format!("compared within a bound and not exactly: {why}"));
        }
        // With every factor 1, the sum of magnitudes counts the terms.
        let one = |x: f64| if x == 0.0 { 0.0 } else { 1.0 };
        Some(interpret(kernel, bound, before, |_| 1.0, one)?.magnitudes)
    };
    let nothing: &[f64] = &[];
    let mut verdicts = Vec::new();
    for ((plan, before), after) in bound.tensors.iter().zip(before).zip(after) {
        let of = |map: &std::collections::BTreeMap<String, Vec<f64>>| map.get(&plan.name).cloned().unwrap_or_default();
        let magnitudes = terms.as_ref().map(|_| of(&reference.magnitudes)).unwrap_or_default();
        let terms = terms.as_ref().map(of).unwrap_or_default();
        let expected = Expected {
            values: reference.tensors.get(&plan.name).map_or(nothing, |t| &t.data),
            magnitudes: &magnitudes,
            terms: &terms,
            accuracy,
        };
        let verdict = compare(plan, before, after, &expected);
        // Inputs are compared too, and mentioned if they changed.
        if plan.access.writes() || !verdict.ok() {
            if verdict.weak {
                notes.push(format!("the bound for `{}` is wider than one missing product", plan.name));
            }
            verdicts.push((plan.name.clone(), verdict));
        }
    }
    Ok(verdicts)
}

/// Runs the interpreter on the program as written; `element` and `scalar` change the inputs.
fn interpret(
    kernel: &CompiledKernel,
    bound: &Bound,
    before: &[Vec<u8>],
    element: impl Fn(f64) -> f64,
    scalar: impl Fn(f64) -> f64,
) -> Result<interp::Inputs, Box<Diagnostic>> {
    let mut inputs = interp::Inputs::default();
    for param in &kernel.contract.params {
        let name = param.name.clone();
        let value = bound.values.get(&name).copied().unwrap_or(Number::Int(0));
        match &param.kind {
            ParamKind::Size { .. } => {
                inputs.sizes.insert(name, value.to_i64().unwrap_or(0));
            }
            ParamKind::Stride { .. } => {
                inputs.strides.insert(name, value.to_i64().unwrap_or(0));
            }
            ParamKind::Scalar { elem, .. } => {
                inputs.scalars.insert(name, scalar(data::decode(*elem, data::encode(*elem, value.to_f64()))));
            }
            ParamKind::Tensor { .. } => {}
        }
    }
    for (plan, bytes) in bound.tensors.iter().zip(before) {
        let span = usize::try_from(plan.span).expect("the tensor is in memory");
        let values = (0..span).map(|i| element(data::get(plan.elem, bytes, i))).collect();
        inputs.tensors.insert(plan.name.clone(), interp::Tensor { elem: plan.elem, data: values });
    }
    let options = interp::Options { abs_sums: true, ..interp::Options::default() };
    interp::run(&kernel.tile.specialized, &mut inputs, &options)?;
    Ok(inputs)
}

/// What the child does: the launch, on the first device.
///
/// # Errors
/// There is no device, or the launch fails.
pub fn work(job: &Job, tensors: &mut [Vec<u8>]) -> Result<Launched, Refused> {
    #[cfg(feature = "cuda")]
    return device::work(job, tensors);
    #[cfg(not(feature = "cuda"))]
    {
        let _ = (job, tensors);
        Err(Refused { no_device: true, reason: "this tilec was built without the feature `cuda`".to_owned() })
    }
}
