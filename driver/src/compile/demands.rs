//! Checks code against the demands of its kernel: `require no spills, wgmma, registers <= 168`.
//!
//! A demand that does not hold is an error, at the demand. The error also shows the statements that violate it, with
//! the remarks of the passes about the missed fast path.

pub(crate) mod box_rows;
mod by_clock;
mod code;
pub(crate) mod combined;
mod figures;
pub(crate) mod loaded_again;
pub(crate) mod loop_copies;
mod order;
pub(crate) mod padding;
pub(crate) mod promises;
mod roofline;
pub(crate) mod tensor_core_types;
mod wasted;
pub(crate) mod way_out;

pub(crate) use code::{CompiledKernel, declined};
pub(crate) use figures::{estimated, unknown};
pub(crate) use roofline::idle;

use super::attribution;
use super::report_json::Assembler;
use super::unrepeated::unrepeated;
use crate::console::render::SourceFile;
pub(crate) use code::Broken;
use code::Code;
use promises::Tried;
pub(crate) use promises::Tried as PromisesTried;
use tilec_ir::atoms::{Atom, AtomRow};
use tilec_ir::codes;
use tilec_ir::demands::{Demand, Figure, Property, What};
use tilec_ir::diag::{Diagnostic, Severity, Span, counted};
use tilec_ir::kernel::Kernel;
use tilec_ir::missed_paths::FastPath;
use tilec_ir::target::Target;
use tilec_ptx::report::{CopyReport, Report};

/// Statements that an error shows, of those that break a demand.
const SHOWN: usize = 4;

/// The share of the bytes of sectors from which on they count as used, rounding aside.
const WHOLE_SECTORS: f64 = 0.999;
/// The share of a launch's bytes that an access may waste: a row of a bias, compared with the operands of a product.
const LITTLE: f64 = 0.01;

/// Whether code meets a demand.
#[derive(Clone, Debug)]
pub(crate) enum DemandStatus {
    /// It holds.
    Holds,
    /// Unknown on this machine; the text gives the reason.
    Unknown(Broken),
    /// It does not.
    Broken(Broken),
}

/// Whether a demand holds, written in the program or not.
pub(crate) fn judged(
    tile: CompiledKernel<'_>,
    report: &Report,
    (assembler, source): (Option<&Assembler>, &SourceFile),
    what: What,
) -> DemandStatus {
    if let Some(why) = unpredicted(tile, what) {
        return DemandStatus::Unknown(why);
    }
    let code = Code::new(tile, report, assembler);
    let broken = match (what.needs_assembler(), assembler) {
        (true, None) => {
            let why = "no assembler was found (`scripts/fetch_tools.sh`)".to_owned();
            return DemandStatus::Unknown(Broken::new(why));
        }
        _ if what.is_of_registers() => figures::with_registers(&code, assembler, what, source),
        _ => judge(&code, what),
    };
    match broken {
        None => DemandStatus::Holds,
        Some(broken) => {
            let spills = assembler.filter(|_| matches!(what, What::AtLeast(Figure::Roofline, _)));
            DemandStatus::Broken(match spills {
                Some(by) => figures::beside_spills(&code, by, source, broken),
                None => broken,
            })
        }
    }
}

/// Whether a target has a fast path at all.
pub(crate) fn has_path(target: Target, path: FastPath) -> bool {
    match path {
        FastPath::Wgmma | FastPath::TensorLoads | FastPath::StagedStores | FastPath::Producer => {
            target.has_tensor_copies()
        }
        FastPath::Asynchronous => target.has_asynchronous_copies(),
        FastPath::Ahead | FastPath::Wide | FastPath::Banks | FastPath::Overlap => true,
    }
}

/// That a target has no such path, with one that does.
pub(crate) fn lacking(target: Target, path: FastPath) -> Option<String> {
    let what = match path {
        FastPath::Wgmma => "wgmma products",
        FastPath::TensorLoads | FastPath::StagedStores => "TMA",
        FastPath::Asynchronous => "asynchronous copies (cp.async)",
        FastPath::Ahead => "loads ahead",
        FastPath::Wide => "accesses of 16 bytes",
        FastPath::Producer => "producer warps",
        FastPath::Banks => "layouts without bank conflicts",
        FastPath::Overlap => "overlap of the statements of a loop",
    };
    let other = Target::ALL.iter().copied().find(|&other| other.cc() > target.cc() && has_path(other, path))?;
    (!has_path(target, path)).then(|| format!("{} has no {what}: compile for {}", target.name(), other.name()))
}

/// The errors of the demands that registers have no part in. `tried`: what preconditions do for one.
pub(super) fn broken(
    tile: CompiledKernel<'_>,
    report: &Report,
    tried: impl Fn(What, &[Diagnostic]) -> Tried,
) -> Vec<Diagnostic> {
    let code = Code::new(tile, report, None);
    let known = tile.kernel.demands.iter().filter(|d| !d.what.is_of_registers());
    let judged = |d: &Demand| match unpredicted(tile, d.what) {
        Some(why) => Some(unchecked(tile, *d, why)),
        None => judge(&code, d.what).map(|broken| {
            let asked = asked_for(tile, &broken);
            let said = diagnostic(tile, *d, broken);
            with_promises(said, &tried(d.what, &asked), !asked.is_empty())
        }),
    };
    let mut all: Vec<Diagnostic> = known.filter_map(judged).collect();
    // An error ends the compilation before there is machine code.
    if let Some(last) = all.iter_mut().rev().find(|d| d.severity == Severity::Error) {
        last.notes.extend(unjudged(tile.kernel));
    }
    all
}

/// Which demands are judged once the others hold: those that registers have a part in.
fn unjudged(k: &Kernel) -> Option<String> {
    let asked = k.demands.iter().filter(|d| d.what.is_of_registers());
    let names: Vec<String> = asked.map(|d| format!("`{d}`")).collect();
    let was = if names.len() == 1 { "was" } else { "were" };
    (!names.is_empty())
        .then(|| format!("{} {was} not judged: registers are known once the other demands hold", names.join(", ")))
}

/// What passes said of the fast path that is missing, with preconditions that they ask for.
pub(crate) fn asked_for(tile: CompiledKernel<'_>, broken: &Broken) -> Vec<Diagnostic> {
    let said = broken.path.into_iter().flat_map(|path| declined(tile, path));
    said.filter(|d| !d.needs.is_empty()).cloned().collect()
}

/// An error with what preconditions do for its demand; `asked`: passes ask for some.
fn with_promises(mut d: Diagnostic, tried: &Tried, asked: bool) -> Diagnostic {
    if let Some(text) = tried.in_words(asked) {
        d.notes.push(text);
    }
    if let Tried::Holds(_, edit) = tried {
        d.fix = d.fix.or_else(|| edit.as_deref().cloned());
    }
    d
}

/// Why a demand about a prediction can neither hold nor be broken: there is none, or what it depends on is known at run time only.
fn unpredicted(tile: CompiledKernel<'_>, what: What) -> Option<Broken> {
    let (What::AtMost(figure, _) | What::AtLeast(figure, _)) = what else { return None };
    if !matches!(figure, Figure::Roofline | Figure::Bytes | Figure::Padding) {
        return None;
    }
    match tile.prediction {
        Some(p) => unknown(p, what).map(|broken| by_clock::with_iterations(tile, p, broken)),
        None => {
            let why = tile.unpredicted.map_or(String::new(), |why| format!(": {why}"));
            Some(Broken::new(format!("the model cannot predict this kernel{why}")))
        }
    }
}

/// That a demand about a prediction was not checked.
fn unchecked(tile: CompiledKernel<'_>, demand: Demand, why: Broken) -> Diagnostic {
    let kernel = tile.kernel;
    let own = if demand.span.is_none() { kernel.name_span } else { demand.span };
    let message = format!("`{demand}` of `{}` was not checked: it is not known", kernel.name);
    let mut d = Diagnostic::warning(codes::DEMAND_UNCHECKED, own, message).with_note(why.message);
    for (span, text) in why.places.into_iter().filter(|(span, _)| !span.is_none()).take(SHOWN) {
        d = d.with_place(span, text);
    }
    d.with_note("`registers`, `shared memory` and `resident` are judged by the code")
}

/// A demand that does not hold, of a program that is looked at and not used.
pub(super) fn shown(mut d: Diagnostic) -> Diagnostic {
    d.severity = Severity::Warning;
    d
}

/// The errors of the demands that registers have a part in. Without an assembler those that can be estimated are judged.
pub(super) fn broken_by_registers(
    tile: CompiledKernel<'_>,
    report: &Report,
    (assembler, source): (Option<&Assembler>, &SourceFile),
) -> Vec<Diagnostic> {
    let code = Code::new(tile, report, assembler);
    let asked = tile.kernel.demands.iter().filter(|d| d.what.is_of_registers());
    let known = asked.filter(|d| assembler.is_some() || !d.what.needs_assembler());
    let broken = |d: &Demand| Some((*d, figures::with_registers(&code, assembler, d.what, source)?));
    known.filter_map(broken).map(|(d, b)| diagnostic(tile, d, b)).collect()
}

fn judge(code: &Code<'_>, what: What) -> Option<Broken> {
    match what {
        What::Has(property) => lacks(code, property),
        What::AtMost(figure, _) | What::AtLeast(figure, _) => match figure {
            Figure::Registers | Figure::Resident => None,
            Figure::SharedMemory => figures::shared_memory(code, what),
            Figure::Stages => figures::stages(code, what),
            Figure::Roofline | Figure::Bytes | Figure::Padding => figures::predicted(code, figure, what),
        },
    }
}

fn lacks(code: &Code<'_>, property: Property) -> Option<Broken> {
    let report = code.report;
    let products = |wrong: &dyn Fn(&AtomRow) -> bool| -> Vec<(Span, String)> {
        let wrong = report.mma.iter().filter(|m| Atom::from_name(&m.atom).is_none_or(|atom| wrong(atom.row())));
        wrong.map(|m| (m.span, format!("`{}`", m.atom))).collect()
    };
    match property {
        Property::NoSpills => None,
        Property::NoBankConflicts => {
            let at = report.shared.iter().filter(|s| s.conflicts() > 0);
            let at: Vec<_> = at
                .map(|s| {
                    let access = if s.store { "store to" } else { "load from" };
                    (
                        s.span,
                        format!(
                            "a {access} `{}` takes {} wavefronts, not {}",
                            s.buffer, s.wavefronts, s.ideal_wavefronts
                        ),
                    )
                })
                .collect();
            (!at.is_empty()).then(|| Broken::of("accesses to shared memory conflict", FastPath::Banks, at))
        }
        Property::Wgmma | Property::TensorCores if report.mma.is_empty() => {
            Some(Broken::new("the kernel has no product"))
        }
        Property::Wgmma => {
            let at = products(&|row| !row.asynchronous());
            (!at.is_empty()).then(|| Broken::of("not every `mma` compiles to `wgmma`", FastPath::Wgmma, at))
        }
        Property::TensorCores => {
            let at = products(&|row| !row.tensor_core);
            let note = "`tilec explain W0401` says what tensor cores take".to_owned();
            let message = "not every `mma` runs on tensor cores".to_owned();
            (!at.is_empty()).then(|| Broken {
                places: at,
                notes: vec![note],
                change: tensor_core_types::ways_out(code),
                ..Broken::new(message)
            })
        }
        Property::Tma => {
            // What goes through registers fills shared memory in the program alone.
            let has = code.has_tensor_load();
            let mut at = attribution::filled_by_threads(code.tile.kernel);
            if !has && at.is_empty() {
                at = attribution::filled_by_threads(code.tile.specialized);
            }
            let message = if has { "not every load is a TMA load" } else { "no load is a TMA load" };
            // TMA loads need wgmma products. If no pass reports on the loads, the reason is why the products are not
            // wgmma.
            let of_products = code.tile.target.has_tensor_copies()
                && code.declined(FastPath::TensorLoads).is_empty()
                && !code.declined(FastPath::Wgmma).is_empty();
            let path = if of_products { FastPath::Wgmma } else { FastPath::TensorLoads };
            (!has || !at.is_empty()).then(|| Broken::of(message, path, at))
        }
        Property::Pipelined => pipelined(code),
        Property::Coalesced => {
            // Of one sector alone, no other order of the lanes uses more.
            let loses = |c: &&CopyReport| {
                let wastes = c.global_bytes > 0 && c.sectors > 1 && c.sector_use < WHOLE_SECTORS;
                wastes && wasted::share(code, c).is_none_or(|share| share > LITTLE)
            };
            let apart = report.copies.iter().filter(loses);
            let text = |share: f64, tensor: &str| {
                format!("uses {:.0} % of the bytes of the sectors of `{tensor}`", 100.0 * share)
            };
            let at: Vec<_> = apart.map(|c| (c.span, text(c.sector_use, &c.tensor))).collect();
            let (notes, change) = order::of_sectors(code.tile.kernel, report.copies.iter().filter(loses));
            let message = "an access of a warp leaves bytes of its sectors unused";
            (!at.is_empty()).then(|| Broken { places: at, notes, change, ..Broken::new(message) })
        }
        Property::Vectorised => {
            let narrow = report.copies.iter().filter(|c| c.global_bytes > 0 && c.global_bytes < 16 && !c.single);
            let mut at: Vec<_> =
                narrow.map(|c| (c.span, format!("{} at a time", counted(c.global_bytes as usize, "byte")))).collect();
            // Words that are shifted into place are 16 bytes wide, and still take longer.
            // Between shared memory and registers nothing is demanded.
            let seen: Vec<Span> = at.iter().map(|(span, _)| *span).collect();
            let global = |span: &Span| report.copies.iter().any(|c| c.global_bytes > 0 && c.span == *span);
            let lost = code.lost(FastPath::Wide).into_iter();
            at.extend(lost.filter(|(span, _)| !seen.contains(span) && global(span)));
            (!at.is_empty()).then(|| Broken::of("not every access is 16 bytes wide", FastPath::Wide, at))
        }
    }
}

/// Whether loads of all loops run ahead.
fn pipelined(code: &Code<'_>) -> Option<Broken> {
    let report = code.report;
    let at = code.declined(FastPath::Ahead);
    let message = if report.stages < 2 { "no load runs ahead of its use" } else { "not every loop loads ahead" };
    let specialized = code.tile.specialized;
    let stages = specialized.schedule.stages.and_then(|e| specialized.as_int(e));
    let one = stages.filter(|&n| n < 2).and_then(|_| specialized.schedule_item("stages"));
    let mut at = at;
    at.extend(one.map(|item| (item, "the schedule says `stages 1`".to_owned())));
    at.extend(code.awaited());
    let (single, mut change) = by_clock::single_slots(code);
    let (held, ways) = by_clock::held(code);
    at.extend(single.into_iter().chain(held));
    change.extend(ways);
    // Of written roles the clock says whether loads run ahead: also slots of several channels do that.
    let none = report.stages < 2 && code.tile.block_time.is_none();
    let message = if code.tile.block_time.is_some() { "not every loop loads ahead" } else { message };
    (none || !at.is_empty()).then(|| Broken { change, ..Broken::of(message, FastPath::Ahead, at) })
}

fn diagnostic(tile: CompiledKernel<'_>, demand: Demand, broken: Broken) -> Diagnostic {
    let kernel = tile.kernel;
    let own = if demand.span.is_none() { kernel.name_span } else { demand.span };
    let message = format!("kernel `{}` does not meet `require {}`: {}", kernel.name, demand, broken.message);
    let mut d = Diagnostic::error(codes::BROKEN_DEMAND, own, message);
    let mut places = broken.places;
    unrepeated(&mut places);
    for (span, text) in places.iter().take(SHOWN) {
        if !span.is_none() {
            d = d.with_place(*span, text.clone());
        }
    }
    if places.len() > SHOWN {
        d = d.with_note(format!("and {} more", places.len() - SHOWN));
    }
    // A width that is written is one to leave out.
    if broken.path == Some(FastPath::Wide) {
        d = d.with_left_out(places.iter().find_map(|(span, _)| kernel.clause(*span, "vec")));
    }
    if let Some(lacking) = broken.path.and_then(|path| lacking(tile.target, path)) {
        d = d.with_note(lacking);
    }
    // The remarks of the passes about the missed fast path. For access widths: only those at these statements.
    let of_these =
        |d: &&Diagnostic| broken.path != Some(FastPath::Wide) || places.iter().any(|(span, _)| *span == d.span);
    for remark in broken.path.into_iter().flat_map(|path| declined(tile, path)).filter(of_these).take(SHOWN) {
        let by = remark.kind.unwrap_or(remark.code.0);
        d = d.with_note(format!("{by}: {}", remark.message));
        d.notes.extend(remark.notes.iter().cloned());
    }
    d.notes.extend(broken.notes);
    d.notes.extend(broken.change.into_iter().map(|way| way.text).filter(|text| !text.is_empty()));
    if broken.path == Some(FastPath::Wgmma) && d.notes.is_empty() {
        d.notes.push("`tilec explain W0407` says what wgmma takes".to_owned());
    }
    d
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::register_lines::{MostLive, Spilled};
    use crate::compile::{CompileOptions, optimize};

    /// A demand is judged by what accesses became, whether a report is requested or not.
    #[test]
    fn widths_are_judged_without_a_report() {
        let program = |vec: &str| {
            format!(
                "kernel k(A: gmem f32[M, N] multiple 4, B: gmem f32[M, N] multiple 4) grid (i: ceildiv(M, 64)) require vectorised {{\n\
                 var x = reg f32[64, 64]\ncopy A[i * 64.., 0..] -> x{vec}\ncopy x -> B[i * 64.., 0..]\n}}\n"
            )
        };
        for report_accesses in [false, true] {
            let options = CompileOptions { report_accesses, ..CompileOptions::default() };
            let refused = crate::compile::compile(&program(" vec 1"), &options).expect_err("4 bytes at a time");
            let broken = refused.list.iter().find(|d| d.code == codes::BROKEN_DEMAND).expect("it is not vectorised");
            let fix = broken.fix.as_ref().expect("the width that is written is left out");
            assert_eq!(fix.text, "");
            assert!(crate::compile::compile(&program(""), &options).is_ok());
        }
    }

    #[test]
    fn registers_and_spills_are_what_the_assembler_says() {
        // Products are judged when the code is made.
        let source = "kernel k(X: gmem f32[M]) require no spills, registers <= 168, registers >= 32, wgmma {}";
        let tile = optimize(source, &CompileOptions::default()).expect("a program").kernels.remove(0);
        let assembler = |registers, spilled| Assembler {
            version: String::new(),
            registers,
            spill_store_bytes: spilled,
            spill_load_bytes: 2 * spilled,
            called: Vec::new(),
            spilled: vec![Spilled { line: 1, stored: spilled, loaded: 2 * spilled }],
            most_live: Some(MostLive { line: 1, registers: registers - 1 }),
            stack_bytes: 0,
            total: None,
            main_loop: None,
        };
        let said = |assembler: Assembler| -> Vec<String> {
            let demanding = CompiledKernel {
                copied: &[],
                kernel: &tile.kernel,
                specialized: &tile.specialized,
                target: Target::Sm70,
                prediction: None,
                unpredicted: None,
                iteration_times: &[],
                awaited: &[],
                block_time: None,
                open_loops: &[],
                missed: &[],
                caller: Default::default(),
            };
            let by = (Some(&assembler), &SourceFile::new("k.tile", source));
            let list = broken_by_registers(demanding, &Report::default(), by);
            assert!(list.iter().all(|d| d.code == codes::BROKEN_DEMAND && d.labels.len() == 1), "{list:?}");
            list.into_iter().map(|d| d.message).collect()
        };
        assert_eq!(said(assembler(168, 0)), [""; 0]);
        assert_eq!(
            said(assembler(169, 0)),
            ["kernel `k` does not meet `require registers <= 168`: a thread has 169 registers"]
        );
        assert_eq!(
            said(assembler(31, 0)),
            ["kernel `k` does not meet `require registers >= 32`: a thread has 31 registers"]
        );
        let spilled =
            "kernel `k` does not meet `require no spills`: a thread stores 8 bytes of spilled registers and loads 16";
        assert_eq!(said(assembler(100, 8)), [spilled]);
    }

    #[test]
    fn spills_of_blocks_that_share_registers_name_the_schedule() {
        let said = |schedule: &str, chosen: bool, threads: u32| {
            let source = format!("kernel k(X: gmem f32[M]) {schedule} require no spills {{}}");
            let tile = optimize(&source, &CompileOptions::default()).expect("a program").kernels.remove(0);
            let mut tile = tile;
            if chosen {
                tile.specialized.schedule.min_ctas = None;
            }
            let demanding = CompiledKernel {
                copied: &[],
                kernel: &tile.kernel,
                specialized: &tile.specialized,
                target: Target::Sm70,
                prediction: None,
                unpredicted: None,
                iteration_times: &[],
                awaited: &[],
                block_time: None,
                open_loops: &[],
                missed: &[],
                caller: Default::default(),
            };
            let assembler = Assembler {
                version: String::new(),
                registers: 80,
                spill_store_bytes: 28,
                spill_load_bytes: 28,
                called: Vec::new(),
                spilled: Vec::new(),
                most_live: None,
                stack_bytes: 0,
                total: None,
                main_loop: None,
            };
            let by = (Some(&assembler), &SourceFile::new("k.tile", source.as_str()));
            let list = broken_by_registers(demanding, &Report { threads, ..Report::default() }, by);
            list[0].notes.iter().find(|note| note.contains("divides the registers")).cloned().unwrap_or_default()
        };
        let written = said("schedule { min_ctas 3 }", false, 256);
        assert!(
            written.starts_with("`min_ctas 3` in the program divides the registers of a multiprocessor among 3 blocks"),
            "{written}"
        );
        assert!(written.ends_with("a thread may have more with `min_ctas 1`"), "{written}");
        let chosen = said("schedule { min_ctas 3 }", true, 256);
        assert!(
            chosen.starts_with("the compiler divides the registers of a multiprocessor among 3 blocks"),
            "{chosen}"
        );
        assert_eq!(said("schedule { min_ctas 1 }", false, 256), "");
        // As many registers as a thread can have at all.
        assert_eq!(said("schedule { min_ctas 3 }", false, 64), "");
    }
}
