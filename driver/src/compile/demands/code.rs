//! The code that demands are checked against, and the messages for a demand that does not hold.

use super::way_out::WayOut;
use crate::compile::copied_operands::CopiedOperand;
use crate::compile::report_json::Assembler;
use tilec_ir::demands::What;
use tilec_ir::diag::{Diagnostic, Span};
use tilec_ir::iteration_time::IterationTime;
use tilec_ir::kernel::{Kernel, StmtData};
use tilec_ir::missed_paths::FastPath;
use tilec_ir::target::Target;
use tilec_ir::typing::resolve_view;
use tilec_passes::caller::Caller;
use tilec_passes::choose::{BlockTime, Card, LoopTime, Prediction, most_on_multiprocessor};
use tilec_passes::occupancy::Occupancy;
use tilec_passes::timeline::{AwaitedLoad, AwaitedLoads};
use tilec_ptx::report::Report;

/// A kernel after the passes.
#[derive(Copy, Clone)]
pub(crate) struct CompiledKernel<'a> {
    pub(crate) kernel: &'a Kernel,
    /// The kernel before the passes. Its schedule has only what the source has.
    pub(crate) specialized: &'a Kernel,
    pub(crate) target: Target,
    /// The prediction, with the launches that copy its operands.
    pub(crate) prediction: Option<&'a Prediction>,
    /// The operands that launches in front of it copy.
    pub(crate) copied: &'a [CopiedOperand],
    /// Why there is no prediction.
    pub(crate) unpredicted: Option<&'a str>,
    /// What an iteration of each scheduled loop takes.
    pub(crate) iteration_times: &'a [IterationTime],
    /// Loads to registers that iterations wait for.
    pub(crate) awaited: &'a [AwaitedLoads],
    /// Of written roles, what a block takes.
    pub(crate) block_time: Option<&'a BlockTime>,
    /// Of loops that run as often as data say, what an iteration takes.
    pub(crate) open_loops: &'a [LoopTime],
    /// Remarks of the passes about missed fast paths.
    pub(crate) missed: &'a [Diagnostic],
    /// The caller that messages address.
    pub(crate) caller: Caller,
}

/// What is known of a kernel that was lowered.
pub(super) struct Code<'a> {
    pub(super) tile: CompiledKernel<'a>,
    pub(super) report: &'a Report,
    /// Registers of a thread: as assembled, else as estimated.
    pub(super) registers: u32,
    /// Whether an assembler counted them.
    pub(super) assembled: bool,
}

impl<'a> Code<'a> {
    pub(super) fn new(tile: CompiledKernel<'a>, report: &'a Report, assembler: Option<&Assembler>) -> Code<'a> {
        let registers = assembler.map_or(report.estimated_registers, |by| by.registers);
        Code { tile, report, registers, assembled: assembler.is_some() }
    }

    /// What the resources of a multiprocessor have room for.
    pub(super) fn occupancy(&self) -> Occupancy {
        let (threads, registers) = (u64::from(self.report.threads), u64::from(self.registers));
        Occupancy::new(self.tile.target, threads, registers, self.report.smem_bytes)
    }

    /// Blocks that the grid has at most for each multiprocessor, if it is limited.
    pub(super) fn launched(&self) -> Option<u64> {
        let predicted = self.tile.prediction.and_then(|p| Card::from_name(p.card));
        most_on_multiprocessor(self.tile.kernel, predicted.unwrap_or_else(|| Card::of(self.tile.target)))
    }

    /// Blocks that are resident on a multiprocessor: for which there is room, and which are launched.
    pub(super) fn resident(&self) -> u64 {
        self.occupancy().resident().min(self.launched().unwrap_or(u64::MAX))
    }

    /// The statements for which a pass has missed this fast path.
    pub(super) fn lost(&self, path: FastPath) -> Vec<(Span, String)> {
        lost(self.tile, path).map(|d| (d.span, String::new())).collect()
    }

    /// The same, also of what the program itself gave up.
    pub(super) fn declined(&self, path: FastPath) -> Vec<(Span, String)> {
        declined(self.tile, path).map(|d| (d.span, String::new())).collect()
    }

    /// The loads to registers that iterations wait for.
    pub(super) fn awaited(&self) -> Vec<(Span, String)> {
        let text = |own: &AwaitedLoads, load: &AwaitedLoad| {
            let (waits, all) = (own.waits / own.times, own.iteration / own.times);
            format!("`{}` is loaded to registers, and an iteration waits for it: {waits} of {all} clocks", load.tensor)
        };
        let all = self.tile.awaited.iter();
        all.flat_map(|own| own.loads.iter().map(move |load| (load.span, text(own, load)))).collect()
    }

    /// Whether a copy brings a tile from a tensor into shared memory by TMA.
    pub(super) fn has_tensor_load(&self) -> bool {
        let k = self.tile.kernel;
        k.statement_data().any(|s| match s {
            StmtData::Copy { dst, attrs, .. } if attrs.is_tensor() => {
                resolve_view(k, *dst).is_some_and(|to| k.tensor_ty(to.base).is_none())
            }
            _ => false,
        })
    }
}

/// The remarks about a missed fast path.
pub(super) fn lost(tile: CompiledKernel<'_>, path: FastPath) -> impl Iterator<Item = &Diagnostic> {
    tile.missed.iter().filter(move |d| d.loss.as_ref().is_some_and(|l| l.path == path))
}

/// The remarks about a missed fast path, even if the program requests something else.
pub(crate) fn declined(tile: CompiledKernel<'_>, path: FastPath) -> impl Iterator<Item = &Diagnostic> {
    tile.missed.iter().filter(move |d| d.declined == Some(path))
}

/// Why a demand does not hold.
#[derive(Clone, Debug)]
pub(crate) struct Broken {
    /// How not.
    pub(crate) message: String,
    /// Statements, with what each is.
    pub(crate) places: Vec<(Span, String)>,
    /// The fast path that is missing.
    pub(crate) path: Option<FastPath>,
    /// More of it.
    pub(crate) notes: Vec<String>,
    /// What would have it hold.
    pub(crate) change: Vec<WayOut>,
}

impl Broken {
    pub(super) fn new(message: impl Into<String>) -> Broken {
        Broken { message: message.into(), places: Vec::new(), path: None, notes: Vec::new(), change: Vec::new() }
    }

    pub(super) fn of(message: impl Into<String>, path: FastPath, places: Vec<(Span, String)>) -> Broken {
        Broken { path: Some(path), places, ..Broken::new(message) }
    }
}

/// Whether a figure violates its bound; `text` describes the figure.
pub(super) fn compared(what: What, is: f64, text: impl Fn(f64) -> String) -> Option<Broken> {
    let holds = match what {
        What::AtMost(_, x) => is <= x,
        What::AtLeast(_, x) => is >= x,
        What::Has(_) => true,
    };
    (!holds).then(|| Broken::new(text(is)))
}
