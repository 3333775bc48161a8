//! Where an element goes, what takes the registers of a thread, what the barriers are for.

use super::answer::{Known, Part, Says};
use super::{chain, not, said};
use crate::compile::unrepeated::unrepeated;
use crate::compile::{CompiledKernel, attribution};
use crate::xray::{path, registers_of, registers_of_roles};
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, counted};
use tilec_ir::entities::Value;
use tilec_ir::kernel::{Kernel, StmtData};
use tilec_ir::print::print_head;
use tilec_ir::types::Scratch;
use tilec_passes::register_pressure;
use tilec_ptx::report::{ClusterBarrier, MbarrierReport, Report};

/// Tiles and lines that are shown, of those that take most.
const SHOWN: usize = 8;

/// What an answer is made of.
type Answered = (Vec<String>, Vec<Part>);

/// The way of an element.
pub(super) fn element(known: &Known<'_>, element: &path::Element) -> Result<Answered, String> {
    let path = path::path(known.program, element)?;
    let (ahead, behind) = path.in_order();
    let fact = |s: &path::Step| {
        let line = if s.line == 0 { String::new() } else { format!(" ({}:{})", known.program.source.name(), s.line) };
        format!("{:<13}  {}{line}\n    {}", s.at, s.what, s.text)
    };
    let part = |title: &str, steps: &[&path::Step]| {
        let mut facts: Vec<String> = steps.iter().map(|s| fact(s)).collect();
        if path.is_cut() {
            facts.push(format!("(these are the first {} steps that were found)", path.steps.len()));
        }
        Part { title: title.to_owned(), facts, decisions: Vec::new() }
    };
    let mut parts = vec![part("Path of the element", &ahead)];
    if !behind.is_empty() {
        parts.push(part("What the element is made of, in the order of execution", &behind));
    }
    let steps: Vec<&path::Step> = ahead.into_iter().chain(behind).collect();
    // The passes that decided its addresses, for the tiles on its path.
    let mut lines: Vec<usize> =
        steps.iter().filter(|s| matches!(s.at, "shared memory" | "registers") && s.line > 0).map(|s| s.line).collect();
    lines.dedup();
    let (mut seen, mut told): (_, Vec<Says>) = (Vec::new(), Vec::new());
    for line in lines {
        if seen.contains(&line) {
            continue;
        }
        seen.push(line);
        let Ok((_, own)) = chain::of_line(known, "source", line) else { continue };
        let Some(mut first) = own.into_iter().next() else { continue };
        // What is said of the whole kernel is said once, not of every line.
        first.decisions.retain(|d| {
            let changes = !d.before.is_empty() || !d.after.is_empty();
            changes || d.says.iter().any(|says| !told.contains(says))
        });
        if first.decisions.is_empty() {
            continue;
        }
        told.extend(first.decisions.iter().flat_map(|d| d.says.clone()));
        let text = known.shown.columns.source.get(line - 1).map_or("", |l| l.trim());
        parts.push(Part { title: format!("What decided line {line}: {text}"), ..first });
    }
    Ok((vec![element.to_string()], parts))
}

/// What takes the registers of a thread.
pub(super) fn register(known: &Known<'_>) -> Answered {
    let mut parts = Vec::new();
    let mut about = Vec::new();
    for kernel in &known.program.kernels {
        let (registers, from) = registers_of(kernel, known.shown.columns.machine.as_ref());
        about.push(format!("a thread of `{}` has {registers} registers ({from})", kernel.tile.kernel.name));
        parts.push(tiles(kernel));
        parts.extend(pressure(known, kernel));
        parts.extend(roles(&kernel.tile.kernel));
        parts.extend(most_in_use(known, kernel));
        parts.extend(spilled(known, kernel));
        let bounds = not::resident(known, kernel);
        parts.push(Part { title: format!("{}, in `{}`", bounds.title, kernel.tile.kernel.name), ..bounds });
    }
    parts.extend(said(known, "What the passes reported about registers", |d| {
        d.code == codes::SPILLED || matches!(d.kind, Some("schedule" | "assign-layouts"))
    }));
    parts.retain(|p| !p.facts.is_empty() || !p.decisions.is_empty());
    (about, parts)
}

/// Register tiles, and what a thread holds of each.
fn tiles(kernel: &CompiledKernel) -> Part {
    let k = &kernel.tile.kernel;
    let all = attribution::register_tiles(k).into_iter().take(SHOWN);
    let facts =
        all.map(|(words, text, _)| format!("{text} {} of a thread", counted(words as usize, "register"))).collect();
    Part { title: format!("Register tiles of `{}` (not all live at once)", k.name), facts, decisions: Vec::new() }
}

/// Where the model expects most registers, and for what.
fn pressure(known: &Known<'_>, kernel: &CompiledKernel) -> Option<Part> {
    let k = &kernel.tile.kernel;
    let mut facts = Vec::new();
    for p in register_pressure(k, known.program.target).into_iter().filter(|p| p.tiles > 0) {
        let place = said::places_of(known, &[(k.stmt_spans[p.at], String::new())]).concat();
        facts.push(format!("{} for tiles at {}", counted(p.tiles as usize, "register"), place.trim_end_matches(" ()")));
        facts.extend(p.others.iter().map(|(what, n)| format!("  {n} for {what}")));
    }
    let title = format!("Where most registers are expected, in `{}` (an estimate)", k.name);
    (!facts.is_empty()).then(|| Part { title, facts, decisions: Vec::new() })
}

/// Registers that roles are given.
fn roles(k: &Kernel) -> Option<Part> {
    let fact = |(name, n)| format!("threads of role `{name}` have {n} from `setmaxnreg` on");
    let facts: Vec<String> = registers_of_roles(k).into_iter().map(fact).collect();
    (!facts.is_empty()).then(|| Part { title: "Registers of roles".to_owned(), facts, decisions: Vec::new() })
}

/// The lines of the machine code at which most registers are in use.
fn most_in_use(known: &Known<'_>, kernel: &CompiledKernel) -> Option<Part> {
    let columns = &known.shown.columns;
    let text = columns.machine.as_ref()?;
    let (line, live) = text.most_live(&kernel.contract.entry)?;
    let mut facts = vec![format!("{live} hold a value at sass:{}: {}", line + 1, text.text[line].trim())];
    let ptx = usize::try_from(text.ptx[line]).unwrap_or(0);
    if ptx > 0 {
        facts.push(format!("which came from ptx:{ptx}: {}", columns.ptx[ptx - 1].trim()));
        if let Some(place) = columns.ptx_places[ptx - 1] {
            let first = columns.places[place].0;
            facts.push(format!("of source:{first}: {}", columns.source[first - 1].trim()));
        }
    }
    Some(Part { title: "Where most registers are in use".to_owned(), facts, decisions: Vec::new() })
}

/// The lines of the source that registers are spilled for, and the other things that the assembler says.
fn spilled(known: &Known<'_>, kernel: &CompiledKernel) -> Option<Part> {
    let columns = &known.shown.columns;
    let machine = columns.machine.as_ref()?;
    let (_, lines) = machine.spilled.iter().find(|(entry, _)| *entry == kernel.contract.entry)?;
    let text = |line: u32| columns.source.get((line as usize).wrapping_sub(1)).map_or("", |l| l.trim());
    let mut facts: Vec<String> =
        lines.iter().take(SHOWN).map(|s| format!("source:{}: {}: {}", s.line, s.in_words(), text(s.line))).collect();
    if lines.len() > SHOWN {
        facts.push(format!("and {} with fewer bytes", counted(lines.len() - SHOWN, "line")));
    }
    let title = "Registers that the assembler spills to local memory, by source line".to_owned();
    (!facts.is_empty()).then(|| Part { title, facts, decisions: Vec::new() })
}

/// What the barriers are for.
pub(super) fn barrier(known: &Known<'_>) -> Answered {
    let mut about = Vec::new();
    let mut parts = Vec::new();
    for kernel in &known.program.kernels {
        let (k, r) = (&kernel.tile.kernel, &kernel.report);
        let barriers = match (r.barriers, r.barriers_in_loop) {
            (0, _) => "no barrier of all threads of a block or role".to_owned(),
            (n, in_loops) => {
                let all = format!("{} of all threads of a block or role", counted(n as usize, "barrier"));
                if in_loops == 0 {
                    format!("{all}, outside of loops")
                } else {
                    format!("{all}, {in_loops} of them in loops")
                }
            }
        };
        about.push(format!("`{}` has {barriers}", k.name));
        parts.extend(mbarriers(k, &kernel.lowered));
        parts.extend(of_clusters(&kernel.lowered));
        parts.extend(signals(k));
    }
    parts.extend(said(known, "What each barrier is for", |d| matches!(d.kind, Some("barriers" | "hand-over"))));
    (about, parts)
}

/// The mbarriers, by what completes a phase of them.
fn mbarriers(k: &Kernel, report: &Report) -> Option<Part> {
    let one =
        |m: &MbarrierReport| format!("{} at byte {}: {}", counted(m.count as usize, "mbarrier"), m.offset, m.kind);
    let mut facts: Vec<String> = report.mbarriers.iter().map(one).collect();
    if !facts.is_empty() && !report.cluster_barriers.contains(&ClusterBarrier::Initialised) {
        let text = "one thread initialises them; a barrier of all threads of the block follows (`bar.sync 0` at the beginning), so none waits for one that is not initialised";
        facts.push(text.to_owned());
    }
    let mut waits: Vec<String> = Vec::new();
    k.walk(k.body, &mut |k, _, s| {
        if let StmtData::Channel { .. } = &k.stmts[s] {
            let text = format!("`{}`", print_head(k, s));
            if !waits.contains(&text) {
                waits.push(text);
            }
        }
    });
    if !waits.is_empty() {
        facts.push(format!("operations on channels: {}", waits.join(", ")));
    }
    let title = match report.mbarriers.is_empty() {
        true => "Channels without mbarriers: slots change hands at barriers of the block",
        false => "Barriers in shared memory (mbarrier)",
    };
    (!facts.is_empty()).then(|| Part { title: title.to_owned(), facts, decisions: Vec::new() })
}

/// The barriers of all blocks of a cluster.
fn of_clusters(report: &Report) -> Option<Part> {
    let facts = report.cluster_barriers.iter().map(ToString::to_string).collect::<Vec<_>>();
    let title = "Barriers of the blocks of a cluster (`barrier.cluster`)".to_owned();
    (!facts.is_empty()).then(|| Part { title, facts, decisions: Vec::new() })
}

/// The signals in global memory.
fn signals(k: &Kernel) -> Option<Part> {
    let is_signals = |v: &Value| k.tensor_ty(*v).and_then(|t| t.scratch) == Some(Scratch::Signals);
    let fact = |v: Value| {
        format!(
            "`{}`: `signal` stores 1 by `st.release.gpu` after a barrier of the threads; in `await` one thread polls by `ld.acquire.gpu`, stores 0, and the threads meet",
            k.values[v].name
        )
    };
    let facts: Vec<String> = k.params.iter().copied().filter(is_signals).map(fact).collect();
    let title = "Signals between blocks, in global memory".to_owned();
    (!facts.is_empty()).then(|| Part { title, facts, decisions: Vec::new() })
}

/// What passes said, of those messages that are `wanted`.
fn said(known: &Known<'_>, title: &str, wanted: impl Fn(&Diagnostic) -> bool) -> Option<Part> {
    let all: Vec<&Diagnostic> = known.program.diagnostics.iter().filter(|d| wanted(d)).collect();
    let mut by: Vec<&'static str> = all.iter().map(|d| d.kind.unwrap_or(d.code.0)).collect();
    unrepeated(&mut by);
    let decision = |by: &&'static str| {
        let own: Vec<&Diagnostic> = all.iter().copied().filter(|d| d.kind.unwrap_or(d.code.0) == *by).collect();
        chain::advised(known, by, &own)
    };
    let decisions = by.iter().map(decision).collect();
    (!all.is_empty()).then(|| Part { title: title.to_owned(), facts: Vec::new(), decisions })
}
