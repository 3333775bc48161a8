//! Code against what its kernel demands: `require no spills, wgmma, registers <= 168`.
//!
//! A demand that does not hold is an error, at the demand; the statements that break it are shown beside it, with what the
//! passes said of the fast path that they have not taken.

use super::report_json::Assembler;
use crate::contract::{Contract, ParamKind};
use tilec_ir::atoms::{Atom, AtomRow};
use tilec_ir::codes;
use tilec_ir::demands::{Demand, Figure, Property, What};
use tilec_ir::diag::{Diagnostic, Span, counted};
use tilec_ir::kernel::Kernel;
use tilec_ir::loss::FastPath;
use tilec_passes::choose::Prediction;
use tilec_ptx::report::Report;

/// Statements that an error shows, of those that break a demand.
const SHOWN: usize = 4;

/// What is known of a kernel that was lowered.
pub(super) struct Code<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) report: &'a Report,
    pub(super) contract: &'a Contract,
    pub(super) prediction: Option<&'a Prediction>,
    /// What was said on the way.
    pub(super) said: &'a [Diagnostic],
}

impl Code<'_> {
    /// Where the passes said that they have not taken a fast path.
    fn lost(&self, path: FastPath) -> Vec<(Span, String)> {
        let lost = self.said.iter().filter(|s| s.loss.as_ref().is_some_and(|l| l.path == path));
        lost.map(|s| (s.span, String::new())).collect()
    }
}

/// Why a demand does not hold.
struct Broken {
    message: String,
    /// Statements, with what each is.
    places: Vec<(Span, String)>,
    /// The fast path that is missing.
    path: Option<FastPath>,
    notes: Vec<String>,
}

impl Broken {
    fn new(message: impl Into<String>) -> Broken {
        Broken { message: message.into(), places: Vec::new(), path: None, notes: Vec::new() }
    }

    fn of(message: impl Into<String>, path: FastPath, places: Vec<(Span, String)>) -> Broken {
        Broken { path: Some(path), places, ..Broken::new(message) }
    }
}

/// The errors of the demands that can be judged without an assembler.
pub(super) fn broken(code: &Code<'_>, demands: &[Demand]) -> Vec<Diagnostic> {
    let known = demands.iter().filter(|d| !d.what.needs_assembler());
    known.filter_map(|d| judge(code, d.what).map(|broken| diagnostic(code.kernel, code.said, *d, broken))).collect()
}

/// The errors of the demands that only the assembler can judge.
pub(super) fn broken_by_assembler(
    (kernel, said): (&Kernel, &[Diagnostic]),
    assembler: &Assembler,
    demands: &[Demand],
) -> Vec<Diagnostic> {
    let asked = demands.iter().filter(|d| d.what.needs_assembler());
    asked.filter_map(|d| judge_assembled(assembler, d.what).map(|b| diagnostic(kernel, said, *d, b))).collect()
}

fn judge_assembled(assembler: &Assembler, what: What) -> Option<Broken> {
    let Assembler { registers, spill_store_bytes, spill_load_bytes, .. } = assembler;
    match what {
        What::Has(Property::NoSpills) if spill_store_bytes + spill_load_bytes > 0 => {
            let message =
                format!("a thread spills {spill_store_bytes} bytes and loads {spill_load_bytes} of them again");
            let mut broken = Broken::new(message);
            broken
                .notes
                .push(format!("it has {registers} registers; smaller tiles, or more warps for one, need fewer"));
            Some(broken)
        }
        What::AtMost(Figure::Registers, _) | What::AtLeast(Figure::Registers, _) => {
            compared(what, f64::from(*registers), |x| format!("a thread has {x} registers"))
        }
        _ => None,
    }
}

/// Whether a figure is on the wrong side; `text` says what it is.
fn compared(what: What, is: f64, text: impl Fn(f64) -> String) -> Option<Broken> {
    let holds = match what {
        What::AtMost(_, x) => is <= x,
        What::AtLeast(_, x) => is >= x,
        What::Has(_) => true,
    };
    (!holds).then(|| Broken::new(text(is)))
}

fn judge(code: &Code<'_>, what: What) -> Option<Broken> {
    let report = code.report;
    match what {
        What::Has(property) => lacks(code, property),
        What::AtMost(figure, _) | What::AtLeast(figure, _) => match figure {
            Figure::Registers => None,
            Figure::SharedMemory => {
                let mut broken = compared(what, report.smem_bytes as f64, |x| format!("a block has {x} bytes"))?;
                let mut tiles: Vec<_> = report.tiles.iter().map(|t| (t.bytes * t.slots, t)).collect();
                tiles.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
                broken.notes.extend(tiles.iter().take(SHOWN).map(|(bytes, t)| match t.slots {
                    1 => format!("`{}` has {bytes} bytes", t.name),
                    n => format!("`{}` has {bytes} bytes, {n} slots of {}", t.name, t.bytes),
                }));
                Some(broken)
            }
            Figure::Stages => {
                let broken = compared(what, f64::from(report.stages), |x| {
                    format!("the deepest channel has {}", counted(x as usize, "slot"))
                })?;
                Some(Broken { path: Some(FastPath::Ahead), ..broken })
            }
            Figure::Resident | Figure::Roofline | Figure::Bytes => predicted(code, figure, what),
        },
    }
}

/// A demand on what the model predicts.
fn predicted(code: &Code<'_>, figure: Figure, what: What) -> Option<Broken> {
    let Some(p) = code.prediction else {
        return Some(Broken::new("nothing is predicted of this kernel, so nothing can be held against it"));
    };
    let sizes: Vec<String> = p.sizes.iter().map(|(name, n)| format!("{name}={n}")).collect();
    let mut broken = match figure {
        Figure::Resident => compared(what, p.resident as f64, |x| {
            format!("{x} blocks of {} threads and {} bytes are resident on a multiprocessor", p.threads, p.shared)
        }),
        Figure::Bytes => compared(what, p.bytes / p.least_bytes.max(1.0), |x| {
            format!("{:.0} bytes pass, {x:.2} times the {:.0} of the tensors", p.bytes, p.least_bytes)
        }),
        _ => {
            let t = &p.terms;
            let busiest = [t.products, t.memory, t.l2, t.shared].into_iter().fold(0.0, f64::max);
            compared(what, busiest / p.seconds, |x| {
                format!("{:.1} us are predicted, {x:.2} of the roofline; most of it {}", p.seconds * 1e6, t.limit())
            })
        }
    }?;
    let given = if p.sizes_given { "" } else { "; `--for` gives others" };
    broken.notes.push(format!("predicted for {} with {}{given}", p.card, sizes.join(" ")));
    Some(broken)
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
            (!at.is_empty()).then(|| Broken::of("not every product is one of warpgroups", FastPath::Wgmma, at))
        }
        Property::TensorCores => {
            let at = products(&|row| !row.tensor_core);
            (!at.is_empty()).then(|| Broken::of("not every product runs on tensor cores", FastPath::Wgmma, at))
        }
        Property::Tma => {
            let by_threads = report.copies.iter().filter(|c| c.in_loop && c.global_bytes > 0 && c.shared_bytes > 0);
            let at: Vec<_> = by_threads.map(|c| (c.span, "loaded by threads".to_owned())).collect();
            let has = code.contract.params.iter().any(|p| matches!(p.kind, ParamKind::TensorMap(_)));
            let message = if has { "not every load is one of TMA" } else { "no load is one of TMA" };
            (!has || !at.is_empty()).then(|| Broken::of(message, FastPath::TensorLoads, at))
        }
        Property::Pipelined => {
            let at = code.lost(FastPath::Ahead);
            let message =
                if report.stages < 2 { "no load runs ahead of its use" } else { "not every loop loads ahead" };
            (report.stages < 2 || !at.is_empty()).then(|| Broken::of(message, FastPath::Ahead, at))
        }
        Property::Vectorised => {
            let narrow = report.copies.iter().filter(|c| c.global_bytes > 0 && c.global_bytes < 16);
            let mut at: Vec<_> = narrow.map(|c| (c.span, format!("{} bytes at a time", c.global_bytes))).collect();
            at.extend(
                code.lost(FastPath::Wide)
                    .into_iter()
                    .filter(|(span, _)| !report.copies.iter().any(|c| c.span == *span && c.global_bytes < 16)),
            );
            (!at.is_empty()).then(|| Broken::of("not every access is 16 bytes wide", FastPath::Wide, at))
        }
    }
}

fn diagnostic(kernel: &Kernel, said: &[Diagnostic], demand: Demand, broken: Broken) -> Diagnostic {
    let own = if demand.span.is_none() { kernel.name_span } else { demand.span };
    let message = format!("`{}` is required of `{}`: {}", demand, kernel.name, broken.message);
    let mut d = Diagnostic::error(codes::BROKEN_DEMAND, own, message);
    let mut places = broken.places;
    places.dedup();
    for (span, text) in places.iter().take(SHOWN) {
        if !span.is_none() {
            d = d.with_place(*span, text.clone());
        }
    }
    if places.len() > SHOWN {
        d = d.with_note(format!("and {} more", places.len() - SHOWN));
    }
    // What the passes said of the fast path that is missing.
    let lost = said.iter().filter(|s| s.loss.as_ref().is_some_and(|l| Some(l.path) == broken.path));
    for remark in lost.take(SHOWN) {
        let by = remark.kind.unwrap_or(remark.code.0);
        d = d.with_note(format!("{by}: {}", remark.message));
        d.notes.extend(remark.notes.iter().cloned());
    }
    d.notes.extend(broken.notes);
    if broken.path == Some(FastPath::Wgmma) && d.notes.is_empty() {
        d.notes.push("`tilec explain W0407` says what wgmma takes".to_owned());
    }
    d
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_and_spills_are_what_the_assembler_says() {
        let kernel = Kernel::new("k");
        let assembler = |registers, spilled| Assembler {
            version: String::new(),
            registers,
            spill_store_bytes: spilled,
            spill_load_bytes: 2 * spilled,
            stack_bytes: 0,
            total: None,
            main_loop: None,
        };
        let demand = |what| Demand { what, span: Span::default() };
        let demands = [
            demand(What::Has(Property::NoSpills)),
            demand(What::AtMost(Figure::Registers, 168.0)),
            demand(What::AtLeast(Figure::Registers, 32.0)),
            // Judged when the code was made.
            demand(What::Has(Property::Wgmma)),
        ];
        let said = |assembler: Assembler| -> Vec<String> {
            let list = broken_by_assembler((&kernel, &[]), &assembler, &demands);
            assert!(list.iter().all(|d| d.code == codes::BROKEN_DEMAND), "{list:?}");
            list.into_iter().map(|d| d.message).collect()
        };
        assert_eq!(said(assembler(168, 0)), [""; 0]);
        assert_eq!(said(assembler(169, 0)), ["`registers <= 168` is required of `k`: a thread has 169 registers"]);
        assert_eq!(said(assembler(31, 0)), ["`registers >= 32` is required of `k`: a thread has 31 registers"]);
        let spilled = "`no spills` is required of `k`: a thread spills 8 bytes and loads 16 of them again";
        assert_eq!(said(assembler(100, 8)), [spilled]);
    }
}
