//! The compile report as JSON, `tilec.report/1`: how each copy, shared-memory access and product was lowered. With an
//! assembler, also registers and instruction counts.

use super::program_times::ProgramTime;
use super::register_lines::{MostLive, Spilled};
use crate::assembler::{CalledSpills, Counts};
use crate::console::render::{JsonPlace, SourceFile};
use crate::contract::version::decimal_version;
use serde::Serialize;
use std::collections::BTreeMap;
use tilec_ir::diag::{Diagnostic, Span};
use tilec_ir::target::Target;
use tilec_passes::choose::{Choice, Prediction};
use tilec_ptx::report::Report;

/// The value of `schema`.
pub const SCHEMA: &str = "tilec.report/1";

/// The report of a file.
#[derive(Clone, Debug, Serialize)]
pub struct ReportFile {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Name of the source.
    pub file: String,
    /// Target.
    pub target: &'static str,
    /// `.version` of the PTX.
    pub ptx_version: String,
    /// A report per kernel, in source order.
    pub kernels: Vec<KernelReport>,
    /// The predicted times of programs of several launches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<ProgramTime>,
}

impl ReportFile {
    /// The report of a file from those of its kernels.
    pub fn new(target: Target, version: (u8, u8), source: &SourceFile, kernels: Vec<KernelReport>) -> ReportFile {
        ReportFile {
            schema: SCHEMA,
            file: source.name().to_owned(),
            target: target.name(),
            ptx_version: decimal_version(version),
            kernels,
            programs: Vec::new(),
        }
    }

    /// The same with the times of programs of several launches.
    pub fn with_programs(self, programs: Vec<ProgramTime>) -> ReportFile {
        ReportFile { programs, ..self }
    }

    /// As JSON.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("a report has only string keys");
        text.push('\n');
        text
    }
}

/// The report of a kernel.
#[derive(Clone, Debug, Serialize)]
pub struct KernelReport {
    /// Entry name.
    pub entry: String,
    /// Slots of the deepest channel; 1: not pipelined.
    pub stages: u32,
    /// Shared memory of a block, bytes.
    pub smem_bytes: u64,
    /// What is where in it.
    pub tiles: Vec<Tile>,
    /// Registers per thread that the kernel is estimated to need.
    pub estimated_registers: u32,
    /// Block-wide barriers in the text of the kernel.
    pub barriers: u32,
    /// Barriers in one iteration of the main loop.
    pub barriers_in_loop: u32,
    /// Extra wavefronts of all shared-memory accesses in the innermost loops.
    pub conflicts_in_loop: u32,
    /// Copies in program order.
    pub copies: Vec<Copy>,
    /// Shared-memory accesses in program order.
    pub shared: Vec<Shared>,
    /// Products in program order.
    pub mma: Vec<Mma>,
    /// What the model predicts; absent where it cannot see through the kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prediction: Option<Predicted>,
    /// The assembler's figures; absent if it was not requested or not found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assembler: Option<Assembler>,
}

/// What the model of `choose` predicts of a launch.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Predicted {
    /// The card.
    pub card: &'static str,
    /// The sizes.
    pub sizes: BTreeMap<String, i64>,
    /// Microseconds.
    pub us: f64,
    /// The term that is largest.
    pub limit: &'static str,
    /// Microseconds of each term; they overlap.
    pub terms: BTreeMap<&'static str, f64>,
    /// Blocks over what is resident at once.
    pub waves: f64,
    /// Blocks resident on a multiprocessor.
    pub blocks_per_multiprocessor: u64,
    /// The parameters that were chosen; absent if there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chosen: Option<BTreeMap<String, i64>>,
    /// The best of the other candidates; absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runner_up: Option<RunnerUp>,
}

/// The best of the other candidates.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RunnerUp {
    /// Its parameters.
    pub parameters: BTreeMap<String, i64>,
    /// How much longer it is predicted to take, as a share; below 0 where a rule decided.
    pub slower: f64,
    /// What decided: the term that grew most, or the rule.
    pub by: String,
}

/// Where a buffer or a channel is in shared memory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Tile {
    /// Buffer or channel.
    pub name: String,
    /// Its first byte, in its first slot.
    pub offset: u64,
    /// Bytes of one slot.
    pub bytes: u64,
    /// Slots; 1 for a buffer.
    pub slots: u64,
    /// Bytes from one slot to the next.
    pub stride: u64,
}

/// A copy.
#[derive(Clone, Debug, Serialize)]
pub struct Copy {
    #[serde(flatten)]
    pub(crate) place: Option<JsonPlace>,
    /// What is read.
    pub src: String,
    /// What is written.
    pub dst: String,
    /// Bytes of one global access of a thread; 0: none.
    pub global_bytes: u32,
    /// Bytes of one shared access of a thread; 0: none.
    pub shared_bytes: u32,
    /// Accesses per thread.
    pub accesses: u32,
    /// Share of the bytes of the touched global sectors that a full warp access uses, 0 to 1.
    pub sector_use: f64,
    /// Sectors of 32 bytes that a full warp access touches; 0: no global access.
    pub sectors: u32,
    /// Why the access is less than 16 bytes wide; empty if it is not.
    pub why: String,
    /// In an innermost loop.
    pub in_loop: bool,
}

/// A shared-memory access by a warp.
#[derive(Clone, Debug, Serialize)]
pub struct Shared {
    #[serde(flatten)]
    pub(crate) place: Option<JsonPlace>,
    /// Buffer or channel.
    pub buffer: String,
    /// `load` or `store`.
    pub access: &'static str,
    /// Bytes per thread.
    pub bytes: u32,
    /// Accesses per thread.
    pub accesses: u32,
    /// Wavefronts of a conflict-free access of this width.
    pub ideal_wavefronts: u32,
    /// Wavefronts it takes.
    pub wavefronts: u32,
    /// The difference.
    pub conflicts: u32,
    /// Indices in registers name the elements, so conflicts depend on data, and the counts are the least.
    pub by_index: bool,
    /// In an innermost loop.
    pub in_loop: bool,
}

/// A product.
#[derive(Clone, Debug, Serialize)]
pub struct Mma {
    #[serde(flatten)]
    pub(crate) place: Option<JsonPlace>,
    /// Atom.
    pub atom: String,
    /// Instructions per warp.
    pub per_warp: u32,
    /// Groups of warps that share the reduction.
    pub k_warps: u32,
    /// Products that are summed up before the sum is added to an accumulator, if not all of a reduction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promoted: Option<u64>,
    /// In an innermost loop.
    pub in_loop: bool,
}

#[cfg(test)]
impl Mma {
    /// A product for tests of what reads a report.
    pub(crate) fn new(atom: &str) -> Mma {
        Mma { place: None, atom: atom.to_owned(), per_warp: 1, k_warps: 1, promoted: None, in_loop: true }
    }
}

/// Bytes of the widest access.
const WIDEST: u32 = 16;

/// Why a copy is less than 16 bytes wide; empty if it is not.
fn why_narrow(copy: &tilec_ptx::report::CopyReport, remarks: &[Diagnostic]) -> String {
    if copy.global_bytes.max(copy.shared_bytes) >= WIDEST {
        return String::new();
    }
    let remark = remarks.iter().find(|d| d.kind == Some("vectorize") && d.span == copy.span);
    match remark {
        Some(d) => {
            let reason = d.why.as_deref().unwrap_or(&d.message);
            std::iter::once(reason).chain(d.notes.iter().map(String::as_str)).collect::<Vec<_>>().join("; ")
        }
        None => "as written".to_owned(),
    }
}

/// The assembler's figures for a kernel.
#[derive(Clone, Debug, Serialize)]
pub struct Assembler {
    /// Its version.
    pub version: String,
    /// 32-bit registers per thread.
    pub registers: u32,
    /// Bytes of register values spilled, stores.
    pub spill_store_bytes: u64,
    /// Bytes of register values spilled, loads.
    pub spill_load_bytes: u64,
    /// Of these, those of functions that the code calls out of line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub called: Vec<CalledSpills>,
    /// The lines of the source that it spilled for, most bytes first; absent without a disassembler.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub spilled: Vec<Spilled>,
    /// Where most registers hold a value; absent without a disassembler.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_live: Option<MostLive>,
    /// Bytes of stack frame.
    pub stack_bytes: u64,
    /// Instructions by kind of the whole kernel; absent without a disassembler.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<Counts>,
    /// The same of the main loop; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub main_loop: Option<Counts>,
}

impl KernelReport {
    /// The report of the kernel `entry` of `source`.
    ///
    /// Why an access is narrow is in the remarks of the `vectorize` pass about the same statement.
    pub fn new(entry: &str, report: &Report, source: &SourceFile, remarks: &[Diagnostic]) -> KernelReport {
        let place = |span: Span| JsonPlace::new(source, span);
        KernelReport {
            entry: entry.to_owned(),
            stages: report.stages,
            smem_bytes: report.smem_bytes,
            tiles: report
                .tiles
                .iter()
                .map(|t| Tile {
                    name: t.name.clone(),
                    offset: t.offset,
                    bytes: t.bytes,
                    slots: t.slots,
                    stride: t.stride,
                })
                .collect(),
            estimated_registers: report.estimated_registers,
            barriers: report.barriers,
            barriers_in_loop: report.barriers_in_loop,
            conflicts_in_loop: report
                .shared
                .iter()
                .filter(|s| s.in_loop)
                .fold(0, |sum, s| sum.saturating_add(s.all_conflicts())),
            copies: report
                .copies
                .iter()
                .map(|c| Copy {
                    place: place(c.span),
                    src: c.src.clone(),
                    dst: c.dst.clone(),
                    global_bytes: c.global_bytes,
                    shared_bytes: c.shared_bytes,
                    accesses: c.accesses,
                    sector_use: c.sector_use,
                    sectors: c.sectors,
                    why: why_narrow(c, remarks),
                    in_loop: c.in_loop,
                })
                .collect(),
            shared: report
                .shared
                .iter()
                .map(|s| Shared {
                    place: place(s.span),
                    buffer: s.buffer.clone(),
                    access: if s.store { "store" } else { "load" },
                    bytes: s.access_bytes,
                    accesses: s.accesses,
                    ideal_wavefronts: s.ideal_wavefronts,
                    wavefronts: s.wavefronts,
                    conflicts: s.conflicts(),
                    by_index: s.by_index,
                    in_loop: s.in_loop,
                })
                .collect(),
            mma: report
                .mma
                .iter()
                .map(|m| Mma {
                    place: place(m.span),
                    atom: m.atom.clone(),
                    per_warp: m.per_warp,
                    k_warps: m.k_warps,
                    promoted: m.promoted,
                    in_loop: m.in_loop,
                })
                .collect(),
            prediction: None,
            assembler: None,
        }
    }

    /// The same with what was predicted and chosen.
    pub fn predicted(mut self, prediction: Option<&Prediction>, choice: Option<&Choice>) -> KernelReport {
        let micro = |seconds: f64| seconds * 1e6;
        self.prediction = prediction.map(|p| Predicted {
            card: p.card,
            sizes: p.sizes.iter().cloned().collect(),
            us: micro(p.seconds),
            limit: p.terms.limit(),
            terms: p.terms.shown().map(|(term, seconds)| (term.name(), micro(seconds))).collect(),
            waves: p.waves,
            blocks_per_multiprocessor: p.resident,
            chosen: choice.map(|c| c.values.iter().cloned().collect()),
            runner_up: choice.and_then(|c| c.runner_up.as_ref()).map(|r| RunnerUp {
                parameters: r.values.iter().cloned().collect(),
                slower: r.slower,
                by: r.by.words().to_owned(),
            }),
        });
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilec_ptx::report::{CopyReport, SharedReport};

    #[test]
    fn spans_become_lines_and_conflicts_are_summed_over_loops() {
        let source = SourceFile::new("k.tile", "kernel k\n  copy A -> a\n");
        let shared = |wavefronts, in_loop| SharedReport {
            span: Span::new(11, 22),
            stmt: None,
            accesses: 2,
            buffer: "a".to_owned(),
            store: true,
            access_bytes: 16,
            ideal_wavefronts: 4,
            wavefronts,
            lanes: Vec::new(),
            by_index: false,
            in_loop,
        };
        let report = Report {
            copies: vec![CopyReport {
                span: Span::new(11, 22),
                src: "A".to_owned(),
                dst: "a".to_owned(),
                global_bytes: 16,
                shared_bytes: 16,
                accesses: 4,
                sector_use: 1.0,
                sector_use_of_runs: 1.0,
                sectors: 4,
                tensor: "A".to_owned(),
                lanes: Vec::new(),
                gathered: false,
                single: false,
                why: String::new(),
                in_loop: true,
            }],
            shared: vec![shared(8, true), shared(5, true), shared(32, false)],
            ..Report::default()
        };
        let kernel = KernelReport::new("k", &report, &source, &[]);
        let text = ReportFile::new(Target::Sm70, (6, 4), &source, vec![kernel]).to_json();
        let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(json["schema"], "tilec.report/1");
        let kernel = &json["kernels"][0];
        assert_eq!(kernel["conflicts_in_loop"], 10);
        assert_eq!(kernel["copies"][0]["line"], 2);
        assert_eq!(kernel["copies"][0]["column"], 3);
        assert_eq!(kernel["shared"][2]["conflicts"], 28);
        assert!(kernel.get("assembler").is_none());
    }
}
