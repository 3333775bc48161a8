//! Reports of the simulator as diagnostics in the source: what happened, where, the other access, the address, and a
//! remedy.

use super::memory::Memory;
use super::remedies::{allowance, ends_block, is_ordered, way_out};
use super::sources::{short, tidy};
use super::{Sources, locate};
use crate::run::simulate::remedies::access;
use crate::run::simulate::report_context::ReportContext;
use std::time::Duration;
use tilec_ir::codes;
use tilec_ir::diag::{Code, Diagnostic, Severity, Span};
use tilec_sim::{Cause, Memory as Space, ParseError, Place, Program, Report, ReportKind};

/// The memory that an opcode accesses, if it names one.
fn memory_of(instruction: &str) -> Option<Space> {
    if instruction.contains(".shared") || instruction.starts_with("ldmatrix") || instruction.starts_with("mbarrier") {
        Some(Space::Shared)
    } else if instruction.contains(".local") {
        Some(Space::Local)
    } else {
        None
    }
}

fn code(kind: ReportKind) -> Code {
    match kind {
        ReportKind::Launch => codes::SIM_LAUNCH,
        ReportKind::OutOfBounds | ReportKind::ReadOnly => codes::SIM_OUT_OF_BOUNDS,
        ReportKind::Misaligned => codes::SIM_MISALIGNED,
        ReportKind::Uninitialised => codes::SIM_UNINITIALISED,
        ReportKind::Undefined => codes::SIM_UNDEFINED,
        ReportKind::Race => codes::SIM_RACE,
        ReportKind::Divergence => codes::SIM_DIVERGENCE,
        ReportKind::Deadlock => codes::SIM_DEADLOCK,
        ReportKind::Fuel => codes::SIM_FUEL,
        ReportKind::Cancelled => codes::LAUNCH_TIMEOUT,
        ReportKind::Trap => codes::SIM_TRAP,
        ReportKind::Invalid => codes::SIM_INVALID,
    }
}

/// The span of a place in what carets point into.
fn span(scene: &ReportContext<'_>, place: &Place) -> Span {
    let source = scene.origin.source;
    if scene.origin.is_ptx {
        let from = |column: u32| source.line_span(place.ptx_line as usize, column as usize).unwrap_or_default();
        let [first, end] = place.columns.map(from);
        return Span { start: first.start, end: first.end.min(end.start).max(first.start) };
    }
    let line = match &place.source {
        Some((file, line)) if file == source.name() => *line,
        _ => return Span::default(),
    };
    let line = line as usize;
    let whole = source.line_span(line, 1).unwrap_or_default();
    let text = &source.text()[source.clamp(whole)];
    let indent = text.chars().take_while(|c| c.is_whitespace()).count();
    source.line_span(line, indent + 1).unwrap_or_default()
}

fn thread([x, y, z]: [u32; 3]) -> String {
    format!("thread ({x}, {y}, {z})")
}

fn block([x, y, z]: [u32; 3]) -> String {
    format!("block ({x}, {y}, {z})")
}

/// The PTX line of an instruction with its text, and the source line it belongs to.
fn ptx_line(scene: &ReportContext<'_>, sources: &mut Sources, what: &str, place: &Place) -> String {
    let line = scene.ptx.lines().nth(place.ptx_line.saturating_sub(1) as usize).unwrap_or("");
    let [first, end] = place.columns.map(|column| column as usize - 1);
    let text: String = line.chars().take(end).skip(first).collect();
    let mut out = format!("{what}: PTX line {}: `{}`", place.ptx_line, short(&tidy(&text)));
    if scene.origin.is_ptx
        && let Some((file, line)) = &place.source
    {
        out += &match sources.line(file, *line) {
            Some(text) => format!(", from {file}:{line}: `{text}`"),
            None => format!(", from {file}:{line}"),
        };
    }
    out
}

/// The diagnostic of a report; `at`: the memory, if there is any yet.
pub(super) fn diagnostic(
    scene: &ReportContext<'_>,
    at: Option<(&Memory, &Program)>,
    report: &Report,
) -> Box<Diagnostic> {
    let mut d = described(scene, at, report);
    d.notes.extend(allowance(report).filter(|_| scene.origin.is_ptx));
    d
}

/// The same without how it is let pass.
fn described(scene: &ReportContext<'_>, at: Option<(&Memory, &Program)>, report: &Report) -> Box<Diagnostic> {
    let mut sources = Sources::new(scene.origin.source);
    let (title, details) = report.message.split_once('\n').unwrap_or((&report.message, ""));
    let Some(place) = &report.place else {
        return Box::new(Diagnostic::error(code(report.kind), Span::default(), title));
    };
    let what = access(&place.instruction);
    let here = report.memory.or_else(|| memory_of(&place.instruction));
    let space = match here {
        Some(Space::Shared) => "shared",
        Some(Space::Local) => "local",
        Some(Space::Global) | None => "global",
    };
    let located = report.address.and_then(|address| match here {
        Some(Space::Shared) => locate::shared(scene, at.map(|(_, p)| p), address),
        Some(Space::Local) => None,
        Some(Space::Global) | None => at.and_then(|(m, p)| locate::global(scene, m, p, address)),
    });
    let elsewhere = !matches!(here, Some(Space::Shared | Space::Local));
    let message = match (report.kind, &report.other, &located) {
        // A block of a cluster ends, and with it its shared memory.
        (ReportKind::Race, Some(_), _) if ends_block(place) || is_ordered(report) => title.to_owned(),
        (ReportKind::Race, Some(other), _) => {
            let theirs = access(&other.instruction);
            match report.other_block {
                None => format!(
                    "data race on {space} memory: nothing orders {} {what} after {} {theirs}",
                    article(what),
                    article(theirs)
                ),
                Some(_) => format!(
                    "data race on {space} memory between blocks: nothing orders {} {what} and {} {theirs}",
                    article(what),
                    article(theirs)
                ),
            }
        }
        (ReportKind::OutOfBounds, _, Some(located)) if elsewhere => {
            let all = if located.contains(locate::OF_VARIABLE) { "all memory" } else { "every tensor" };
            format!("{} {what} outside {all}, {located}", article(what))
        }
        (ReportKind::ReadOnly, _, Some(located)) => {
            format!("{} {what} to memory that the kernel only reads by its launch contract: {located}", article(what))
        }
        (ReportKind::Uninitialised, _, Some(located)) if elsewhere => {
            format!("{} {what} of uninitialised memory: {located}", article(what))
        }
        _ => title.to_owned(),
    };
    let main = span(scene, place);
    let label = match (&report.other, report.other_block) {
        (Some(_), None) => format!("this {what}, by {}", thread(place.thread)),
        (Some(_), Some(_)) => format!("this {what}, by {} of {}", thread(place.thread), block(report.block)),
        _ => format!("by {}", thread(place.thread)),
    };
    let mut d = Diagnostic::error(code(report.kind), main, message).with_label(label);
    if let Some(other) = &report.other {
        let theirs = access(&other.instruction);
        let theirs = match report.other_block {
            None => format!("the earlier {theirs}"),
            Some(_) => format!("the other {theirs}"),
        };
        let other_span = span(scene, other);
        let of = report.other_block.map_or_else(String::new, |b| format!(" of {}", block(b)));
        let text = format!("{theirs}, by {}{of}", thread(other.thread));
        if !other_span.is_none() {
            d = d.with_place(other_span, text);
        }
        d = d.with_note(ptx_line(scene, &mut sources, &format!("this {what}"), place));
        d = d.with_note(ptx_line(scene, &mut sources, &theirs, other));
    } else {
        d = d.with_note(ptx_line(scene, &mut sources, "instruction", place));
    }
    let mut whereabouts = format!("in {}, {}", block(report.block), thread(place.thread));
    match (&report.other, report.other_block) {
        (Some(other), None) => whereabouts += &format!(" and {}", thread(other.thread)),
        (Some(other), Some(b)) => whereabouts += &format!(", and in {}, {}", block(b), thread(other.thread)),
        (None, _) => {}
    }
    if let Some(address) = report.address {
        whereabouts += &format!(", at {}", address_text(here, address));
        if let Some(located) = located {
            whereabouts += &format!(": {located}");
        }
    }
    d = d.with_note(whereabouts);
    for line in details.lines().map(str::trim).filter(|l| !l.is_empty()) {
        d = d.with_note(line);
    }
    let either_way = report.cause == Some(Cause::Unordered) && report.other_block.is_none() && !ends_block(place);
    if report.kind == ReportKind::Race && report.other.is_some() && either_way {
        d = d.with_note("which of the two came first was chance: in another run it may be the other");
    }
    d.notes.extend(at.filter(|_| elsewhere).and_then(|at| permission(scene, at, report)));
    if let Some(way_out) = way_out(report, !scene.origin.is_ptx) {
        d = d.with_note(way_out);
    }
    Box::new(d)
}

/// The warning of an error that was let pass.
pub(super) fn allowed(scene: &ReportContext<'_>, at: (&Memory, &Program), report: &Report) -> Diagnostic {
    let mut d = *described(scene, Some(at), report);
    (d.code, d.severity) = (codes::SIM_ALLOWED, Severity::Warning);
    d
}

/// How the launch contract relates to a rejected read.
fn permission(scene: &ReportContext<'_>, (memory, program): (&Memory, &Program), report: &Report) -> Option<String> {
    let (address, place) = (report.address?, report.place.as_ref()?);
    let name = locate::tensor(scene, memory, address)?;
    let tensor = scene.contract.param(name).and_then(|p| p.kind.tensor())?;
    match report.kind {
        ReportKind::Uninitialised if !tensor.access.reads() => {
            Some(format!("by its launch contract the kernel does not read `{name}`: what it held before is nothing"))
        }
        // The compiler reports this itself.
        ReportKind::OutOfBounds
            if scene.origin.is_ptx
                && access(&place.instruction) == "read"
                && locate::global(scene, memory, program, address).is_some_and(|l| l.contains(locate::IN_A_GAP)) =>
        {
            Some(format!(
                "a kernel that loads whole words and drops what is between the elements says so: `reads_gaps` of `{name}` in \
                 the launch contract"
            ))
        }
        _ => None,
    }
}

fn address_text(memory: Option<Space>, address: u64) -> String {
    match memory {
        Some(Space::Shared) => format!("shared address {address:#x}"),
        Some(Space::Local) => format!("local address {address:#x}"),
        Some(Space::Global) | None => format!("address {address:#x}"),
    }
}

fn article(noun: &str) -> &'static str {
    if noun.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" }
}

/// A simulation that the clock ended.
pub(super) fn out_of_time(scene: &ReportContext<'_>, report: &Report, limit: Duration) -> Box<Diagnostic> {
    let mut d = diagnostic(scene, None, report);
    d.message = format!("the simulation did not finish within {} s", limit.as_secs());
    d.label = report.place.as_ref().map_or_else(String::new, |p| format!("{} was here", thread(p.thread)));
    d.notes.push("choose smaller sizes, more `--sim-threads`, or a larger `--timeout`".to_owned());
    d.notes.push("does the kernel end at all? `--fuel 1000000` gives each block a million instructions, and says where the last of them was".to_owned());
    d
}

/// PTX that does not parse.
pub(super) fn unknown_ptx(scene: &ReportContext<'_>, error: &ParseError) -> Box<Diagnostic> {
    let ParseError { line, col, message, limit } = error;
    let (line, column) = (*line as usize, *col as usize);
    let text = tidy(scene.ptx.lines().nth(line.saturating_sub(1)).unwrap_or(""));
    let d = if scene.origin.is_ptx {
        let span = scene.origin.source.line_span(line, column).unwrap_or_default();
        Diagnostic::error(codes::SIM_PTX, span, message)
    } else {
        let message = format!("the simulator does not understand the PTX: {message}");
        Diagnostic::error(codes::SIM_PTX, Span::default(), message).with_note(format!("PTX line {line}: `{text}`"))
    };
    Box::new(if *limit { d.with_note("`--device cuda` runs what the simulator does not know") } else { d })
}

/// Results that depend on when copies land.
pub(super) fn landing(difference: &str) -> Box<Diagnostic> {
    let message = format!("the result depends on when asynchronous copies complete: {difference}");
    Box::new(
        Diagnostic::error(codes::SIM_LANDING, Span::default(), message)
            .with_note("look for a `cp.async.wait_group` that is missing or leaves too many groups pending"),
    )
}
