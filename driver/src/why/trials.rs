//! What a change of the program does: which kernel it makes, and what the model predicts of it.

use super::answer::Known;
use super::programs::Change;
use crate::compile::unrepeated::unrepeated;
use crate::compile::{Compiled, CompiledKernel, machine_code, parallel};
use std::collections::BTreeSet;
use std::sync::Arc;
use tilec_ir::codes;
use tilec_ir::diag::Code;
use tilec_ir::kernel::Kernel;
use tilec_ir::print::print_expr;
use tilec_ir::target::REGISTERS_PER_THREAD;
use tilec_passes::choose::Prediction;
use tilec_passes::occupancy::Occupancy;

/// Of the predicted time, the part below which another program counts as faster.
pub(super) const FASTER: f64 = 0.99;

/// Of the time of a kernel, the part that is neglected of a change of other launches.
const NEGLIGIBLE: f64 = 0.001;

/// Launches beside a kernel.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Beside {
    Nothing,
    /// Copies of its operands in front of it.
    Copies,
    /// All others of its sequence, because the change makes these faster or slower.
    Sequence,
}

/// A kernel of a changed program.
pub(super) struct Trial {
    program: Arc<Compiled>,
    kernel: usize,
}

impl Trial {
    /// The kernel that the change makes of `kernel`; `None`: the program does not compile.
    pub(super) fn of(known: &Known<'_>, kernel: &CompiledKernel, change: &Change) -> Option<Trial> {
        let program = known.trials.program(change)?;
        let kernel = same_in(known, kernel, &program)?;
        Some(Trial { program, kernel })
    }

    pub(super) fn program(&self) -> &Compiled {
        &self.program
    }

    pub(super) fn kernel(&self) -> &CompiledKernel {
        &self.program.kernels[self.kernel]
    }
}

/// The kernel of another program that was made from the same one. Of several variants it is the one with the same number.
fn same_in(known: &Known<'_>, kernel: &CompiledKernel, program: &Compiled) -> Option<usize> {
    let name = kernel.tile.written_name();
    let own = known.program.kernels.iter().filter(|k| k.tile.written_name() == name);
    let number = own.into_iter().position(|k| std::ptr::eq(k, kernel)).unwrap_or(0);
    let all: Vec<usize> =
        (0..program.kernels.len()).filter(|&i| program.kernels[i].tile.written_name() == name).collect();
    all.get(number).or(all.first()).copied()
}

/// The kernels that are launched for one kernel of the source: in front of it those that bring its operands into order.
pub(super) fn launched(program: &Compiled, kernel: usize) -> &[CompiledKernel] {
    let is_helper = |k: &CompiledKernel| k.tile.source_kernel.is_none();
    let first = program.kernels[..kernel].iter().rposition(|k| !is_helper(k)).map_or(0, |at| at + 1);
    match is_helper(&program.kernels[kernel]) {
        true => &program.kernels[kernel..=kernel],
        false => &program.kernels[first..=kernel],
    }
}

/// The predicted seconds of all launches for a kernel.
fn seconds(program: &Compiled, kernel: usize) -> Option<f64> {
    launched(program, kernel).iter().map(|k| k.tile.prediction.as_ref()?.known_seconds()).sum()
}

/// What a change does to the predicted time.
#[derive(Clone, Debug)]
pub(super) struct Effect {
    /// Seconds without it, and with it.
    pub(super) now: f64,
    pub(super) then: f64,
    /// The prediction with it.
    pub(super) prediction: Prediction,
    /// Which other launches are in these seconds.
    beside: Beside,
    /// Whether a pass expects spills.
    pub(super) expects_spills: bool,
    /// Bytes that the assembler spills with it.
    spilled: Option<u64>,
    /// Those that it spills without.
    spilled_now: u64,
}

/// What a change does; `None`: the program does not compile, computes something else, has no room for its threads, or
/// nothing is predicted for the same sizes.
pub(super) fn effect(known: &Known<'_>, kernel: &CompiledKernel, change: &Change) -> Option<Effect> {
    let trial = Trial::of(known, kernel, change)?;
    let same = change.preserves() || covers(known.program, &trial.program);
    if !same || !has_room(&trial) {
        return None;
    }
    let at = known.program.kernels.iter().position(|k| std::ptr::eq(k, kernel))?;
    let (mut now, mut then) = (seconds(known.program, at)?, seconds(&trial.program, trial.kernel)?);
    let own = kernel.tile.prediction.as_ref()?;
    let kept = |p: &Prediction| -> Vec<(String, i64)> {
        p.sizes.iter().filter(|(name, _)| !change.has_size(name)).cloned().collect()
    };
    let prediction = trial.kernel().tile.prediction.clone().filter(|p| kept(p) == kept(own))?;
    let with_copies = launched(known.program, at).len() + launched(&trial.program, trial.kernel).len() > 2;
    let mut beside = if with_copies { Beside::Copies } else { Beside::Nothing };
    if let Some((others_now, others_then)) = others(known.program, at).zip(others(&trial.program, trial.kernel))
        && (others_now - others_then).abs() > NEGLIGIBLE * now
    {
        (now, then, beside) = (now + others_now, then + others_then, Beside::Sequence);
    }
    let expects_spills = expects_spills(known.program, &trial.program);
    Some(Effect { now, then, prediction, beside, expects_spills, spilled: None, spilled_now: 0 })
}

/// The predicted seconds of the other launches of sequences; `None`: there are none, or one has no prediction.
fn others(program: &Compiled, kernel: usize) -> Option<f64> {
    if program.sequences.is_empty() {
        return None;
    }
    let own = launched(program, kernel);
    let is_own = |k: &CompiledKernel| own.iter().any(|other| std::ptr::eq(other, k));
    program.kernels.iter().filter(|k| !is_own(k)).map(|k| k.tile.prediction.as_ref()?.known_seconds()).sum()
}

/// Whether a program computes what another one does, as far as windows that leave elements out show it: it has no other
/// ones, and no more sums over what is past an end.
fn covers(program: &Compiled, other: &Compiled) -> bool {
    let told = |p: &Compiled, code: Code| -> BTreeSet<String> {
        p.diagnostics.iter().filter(|d| d.code == code).map(|d| d.message.clone()).collect()
    };
    told(other, codes::NOT_COVERED).is_subset(&told(program, codes::NOT_COVERED))
        && told(other, codes::PAST_END).len() <= told(program, codes::PAST_END).len()
}

/// Whether threads have the registers that are estimated.
fn has_room(trial: &Trial) -> bool {
    let own = trial.kernel();
    let (threads, registers) = (u64::from(own.lowered.threads), own.report.estimated_registers);
    registers <= REGISTERS_PER_THREAD
        && Occupancy::new(trial.program.target, threads, registers.into(), own.report.smem_bytes).resident() > 0
}

/// Whether a pass expects the assembler to spill more in another program.
fn expects_spills(program: &Compiled, other: &Compiled) -> bool {
    let warned = |p: &Compiled| p.diagnostics.iter().filter(|d| d.code == codes::SPILLED).count();
    warned(other) > warned(program)
}

/// The preconditions that a kernel has with a change and does not have without it.
pub(super) fn restrictions(known: &Known<'_>, kernel: &CompiledKernel, change: &Change) -> String {
    let Some(trial) = Trial::of(known, kernel, change) else { return String::new() };
    let all = |k: &Kernel| -> Vec<String> { k.requires.iter().map(|&e| print_expr(k, e)).collect() };
    let own = all(&kernel.tile.specialized);
    let mut more = all(&trial.kernel().tile.specialized);
    more.retain(|need| !own.contains(need));
    unrepeated(&mut more);
    match more[..] {
        [] => String::new(),
        _ => format!(", for sizes with `{}`", more.join(", ")),
    }
}

/// Assembles several programs at the same time, for the bytes that they spill.
pub(super) fn prepare_spills(known: &Known<'_>, kernel: &CompiledKernel, changes: &[Change]) {
    let mut open: Vec<(Change, Trial)> = Vec::new();
    for change in changes {
        if known.trials.spilled.borrow().contains_key(change) || open.iter().any(|(other, _)| other == change) {
            continue;
        }
        open.extend(Trial::of(known, kernel, change).map(|trial| (change.clone(), trial)));
    }
    let spilled = parallel::map(open, |(change, trial)| {
        let bytes = machine_code::spilled_bytes(&trial.program, &trial.kernel().contract.entry);
        (change, bytes)
    });
    known.trials.spilled.borrow_mut().extend(spilled);
}

impl Effect {
    /// Whether less time is predicted, spills apart.
    pub(super) fn is_faster(&self) -> bool {
        self.then < FASTER * self.now && !self.is_same()
    }

    /// Whether the same time is predicted, as it is printed.
    pub(super) fn is_same(&self) -> bool {
        let printed = |seconds: f64| format!("{:.1}", 1e6 * seconds);
        printed(self.then) == printed(self.now)
    }

    /// Bytes that the assembler spills with it, if there is one.
    pub(super) fn spilled(&self) -> Option<u64> {
        self.spilled
    }

    /// Whether more registers are spilled than without.
    pub(super) fn spills(&self) -> bool {
        self.spilled.map_or(self.expects_spills, |bytes| bytes > self.spilled_now)
    }

    /// With what the assembler spills, where there is an assembler.
    pub(super) fn assembled(mut self, known: &Known<'_>, kernel: &CompiledKernel, change: &Change) -> Effect {
        prepare_spills(known, kernel, std::slice::from_ref(change));
        self.spilled = known.trials.spilled.borrow().get(change).copied().flatten();
        let now = kernel.report.assembler.as_ref();
        self.spilled_now = now.map_or(0, |by| by.spill_store_bytes + by.spill_load_bytes);
        self
    }

    /// `tried: predicted 50.7 us -> 28.7 us`.
    pub(super) fn in_words(&self) -> String {
        let (now, then) = (1e6 * self.now, 1e6 * self.then);
        let time = match self.is_same() {
            true => "does not change the predicted time".to_owned(),
            false if then > now => format!("slower: predicted {now:.1} us -> {then:.1} us"),
            false => format!("predicted {now:.1} us -> {then:.1} us"),
        };
        let others = match self.beside {
            Beside::Nothing => "",
            Beside::Copies => ", with the copies in front of the kernel",
            Beside::Sequence => " for all launches of the sequence",
        };
        let spilled = match self.spilled {
            _ if !self.spills() => String::new(),
            Some(bytes) => {
                format!("; the assembler then spills {bytes} bytes a thread, which the prediction does not count")
            }
            None => "; registers are expected to be spilled then, which the prediction does not count".to_owned(),
        };
        format!("tried: {time}{others}{spilled}")
    }
}
