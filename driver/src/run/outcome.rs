//! The report of a run, as text.

use super::check::Verdict;
use super::child::Launched;
use crate::contract::number::Number;
use crate::run::bind::TensorPlan;
use crate::run::simulate::{Simulated, generation_name};
use std::fmt;
use tilec_ir::diag::Diagnostic;

/// The result of a run. `Display` is what the command prints.
#[derive(Clone, Debug)]
pub struct RunReport {
    /// Entry name.
    pub entry: String,
    /// Target of the PTX.
    pub target: String,
    /// Where it ran, and what was measured there.
    pub ran: Ran,
    /// The value of every size, stride and scalar, in parameter order.
    pub values: Vec<(String, Number)>,
    /// Floating-point operations of the products; 0 for programs without.
    pub flops: f64,
    /// Bytes of the tensors read and written, each once.
    pub bytes: f64,
    /// The comparison of every tensor that was compared.
    pub verdicts: Vec<(String, Verdict)>,
    /// Further notes for the reader.
    pub notes: Vec<String>,
    /// Violations that the run permits.
    pub warnings: Vec<Diagnostic>,
    /// The tensors as the kernel left them, with their guards.
    pub tensors: Vec<(TensorPlan, Vec<u8>)>,
}

/// Where a kernel ran.
#[derive(Clone, Debug)]
pub enum Ran {
    /// On a GPU, with its times.
    Cuda(Launched),
    /// On the simulator, with its counts.
    Simulator(Box<Simulated>),
    /// Nowhere: the interpreter computed what the program means.
    Interpreter,
}

impl Ran {
    /// Compute capability times ten of the device, or of the imitated one; 0: none.
    pub fn compute_capability(&self) -> u32 {
        match self {
            Ran::Cuda(launched) => launched.cc,
            Ran::Simulator(simulated) => crate::run::simulate::compute_capability(simulated.generation),
            Ran::Interpreter => 0,
        }
    }
}

impl RunReport {
    /// Whether all that was compared is right.
    pub fn ok(&self) -> bool {
        self.verdicts.iter().all(|(_, v)| v.ok())
    }

    /// Median of the times, milliseconds.
    pub fn median_ms(&self) -> Option<f64> {
        let Ran::Cuda(launched) = &self.ran else { return None };
        let mut times = launched.times_ms.clone();
        times.sort_by(f32::total_cmp);
        times.get(times.len() / 2).map(|t| f64::from(*t))
    }
}

impl fmt::Display for RunReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RunReport { entry, target, .. } = self;
        match &self.ran {
            Ran::Cuda(Launched { device, cc, .. }) => writeln!(f, "{entry} for {target} on {device} (sm_{cc})")?,
            Ran::Simulator(simulated) => {
                let why = if simulated.why.is_some() { ", as no GPU was found" } else { "" };
                let generation = generation_name(simulated.generation);
                writeln!(f, "{entry} for {target} on the simulator (arithmetic of {generation}){why}")?;
            }
            Ran::Interpreter => writeln!(f, "{entry} in the interpreter, as it is written")?,
        }
        let values: Vec<String> = self.values.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        if !values.is_empty() {
            writeln!(f, "  {}", values.join(", "))?;
        }
        if let Ran::Simulator(simulated) = &self.ran {
            match simulated.launches.is_empty() {
                true => writeln!(f, "  nothing to launch: there are no blocks")?,
                false => writeln!(f, "  {simulated}")?,
            }
        }
        if let (Some(ms), Ran::Cuda(launched)) = (self.median_ms(), &self.ran) {
            let seconds = (ms / 1e3).max(f64::MIN_POSITIVE);
            let rate = if self.flops > 0.0 {
                format!("{:.3} TFLOP/s", self.flops / seconds / 1e12)
            } else {
                format!("{:.1} GB/s", self.bytes / seconds / 1e9)
            };
            let n = launched.times_ms.len();
            writeln!(f, "  time {ms:.4} ms (median of {n}), {rate}")?;
        }
        for (name, v) in &self.verdicts {
            writeln!(f, "  {name}: {}", summary(v))?;
            for line in &v.shown {
                writeln!(f, "    {line}")?;
            }
            if let (count @ 1.., Some(first)) = &v.unwritten {
                writeln!(f, "    warning: nothing writes {count} of them, of which `{name}[{first}]` is the first")?;
            }
            if v.unbounded > 0 {
                let what = if v.compares_nothing() { "nothing was compared" } else { "these were not compared" };
                let (count, all) = (v.unbounded, v.elements);
                writeln!(f, "    {count} of {all} elements differ, and their bound is no finite number: {what}")?;
            } else if v.without_bound > 0 {
                writeln!(f, "    {} of {} elements have no finite bound; they are equal", v.without_bound, v.elements)?;
            }
            if v.stray_bytes > 0 {
                writeln!(f, "    {} bytes outside the elements of `{name}` were written", v.stray_bytes)?;
            }
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "  note: {note}"))
    }
}

/// The line of a comparison: how many elements were compared, and how far they differ.
fn summary(v: &Verdict) -> String {
    let Verdict { elements, wrong, largest_error, largest_bound, unbounded, unwritten: (unwritten, _), .. } = v;
    // What nothing writes is equal on both sides: it is no result.
    let compared = match (unbounded, unwritten) {
        (0, 0) => format!("{elements} elements"),
        (0, _) => format!("{} of {elements} elements written", elements - unwritten),
        _ => format!("{} of {elements} elements compared", elements.saturating_sub(unbounded + unwritten)),
    };
    let verdict = match (v.ok(), v.only_infinities()) {
        (false, _) => "FAILED".to_owned(),
        (true, Some(which)) => format!("ok, but all elements are {which}"),
        (true, None) => "ok".to_owned(),
    };
    let error = format!("largest error {largest_error:.3e}");
    match (*wrong, *largest_bound > 0.0) {
        (0, false) if *unbounded == 0 && v.without_bound == 0 => format!("{compared}, all exact: {verdict}"),
        (0, false) => format!("{compared}, {error}: {verdict}"),
        (0, true) => format!("{compared}, {error}, bound {largest_bound:.3e}: {verdict}"),
        (_, false) => format!("{wrong} of {elements} elements differ, {error}: {verdict}"),
        (_, true) => {
            format!("{wrong} of {elements} elements differ too much, {error}, bound {largest_bound:.3e}: {verdict}")
        }
    }
}
