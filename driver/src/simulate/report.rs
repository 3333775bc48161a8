//! What the simulator found, as diagnostics in the source: what happened, where, who else, at which address, and a way out.

use super::memory::Memory;
use super::sources::{short, tidy};
use super::{Scene, Sources, locate};
use std::time::Duration;
use tilec_ir::codes;
use tilec_ir::diag::{Code, Diagnostic, Span};
use tilec_sim::{Memory as Space, ParseError, Place, Program, Report, ReportKind};

/// Which memory an opcode accesses, where it says so.
fn memory_of(instruction: &str) -> Option<Space> {
    if instruction.contains(".shared") || instruction.starts_with("ldmatrix") || instruction.starts_with("mbarrier") {
        Some(Space::Shared)
    } else if instruction.contains(".local") {
        Some(Space::Local)
    } else {
        None
    }
}

/// What an opcode does to memory, as a noun.
fn access(instruction: &str) -> &'static str {
    let mut words = instruction.split('.');
    match words.next().unwrap_or("") {
        "mbarrier" => match words.next().unwrap_or("") {
            "init" => "initialisation of an mbarrier",
            "inval" => "invalidation of an mbarrier",
            "arrive" | "arrive_drop" => "arrival at an mbarrier",
            "test_wait" | "try_wait" => "wait at an mbarrier",
            _ => "operation on an mbarrier",
        },
        "ld" | "ldmatrix" | "ldu" => "read",
        "st" => "write",
        "cp" => "asynchronous copy",
        "atom" | "red" => "atomic update",
        "wgmma" => "product of a warpgroup",
        "ret" | "exit" => "end of the block",
        _ => "access",
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

const MORE_FUEL: &str = "`--fuel N` gives each block more instructions";

fn way_out(report: &Report, from_tile: bool) -> Option<&'static str> {
    if from_tile {
        return match report.kind {
            ReportKind::Race if report.other_block.is_some() => {
                Some("blocks run in any order: no element may be written by one block and accessed by another")
            }
            ReportKind::OutOfBounds => Some(
                "a dimension that `check` leaves out is not tested: test it, or keep the promise in `where`; if the program \
                 does neither, this is a bug of tilec",
            ),
            ReportKind::Race => Some(
                "if the program has overlapping windows of a tensor, or strides that give two elements one address, that is what meets \
                 here; if not, the compiler should have ordered the two: it is a bug of tilec, please report it",
            ),
            ReportKind::Uninitialised | ReportKind::Undefined => Some(
                "give every register tile and buffer a value on every path that reads it; if the program does, it is a bug of tilec, \
                 please report it",
            ),
            ReportKind::Fuel => Some(MORE_FUEL),
            ReportKind::Launch | ReportKind::Cancelled => None,
            _ => {
                Some("the compiler should have proved that this cannot happen: it is a bug of tilec, please report it")
            }
        };
    }
    match report.kind {
        ReportKind::Race if report.other_block.is_some() => Some(
            "blocks run in any order and no barrier holds them: give each its own elements, use atomics, or let one set a flag after \
             a fence and the other read it before one",
        ),
        ReportKind::Race if is_one_write(report) => Some(
            "one instruction wrote different values to one address: let one thread write, or use an atomic; a `bar.sync` helps only \
             where the two writes are of different turns of a loop",
        ),
        ReportKind::Race if report.place.as_ref().is_some_and(ends_block) => Some(
            "let all blocks of the cluster meet in front of the end: `barrier.cluster.arrive` behind the access, `barrier.cluster.wait` \
             in front of `ret`",
        ),
        ReportKind::Race => Some("put a `bar.sync`, or the wait that the copy needs, between the two"),
        ReportKind::OutOfBounds => {
            Some("look at the predicate that should have switched this access off, and at its address")
        }
        ReportKind::ReadOnly => Some(
            "`access` in the launch contract says which tensors the kernel writes; the addresses in an array of pointers it never does",
        ),
        ReportKind::Misaligned => Some(
            "look at how the address is computed; where it is the start of a tensor in global memory, its `align` in the \
             launch contract says too little for this access",
        ),
        ReportKind::Uninitialised => Some("somebody has to write it first, with a barrier between"),
        ReportKind::Undefined => Some("initialise the register on every path"),
        ReportKind::Divergence => Some("take the instruction out of the branch, or branch alike in the whole warp"),
        ReportKind::Deadlock if report.address.is_some() => Some(
            "another thread has to set the flag, and its block has to be resident together with the one that waits",
        ),
        ReportKind::Deadlock => Some("every thread that a barrier counts has to arrive"),
        ReportKind::Fuel => Some(MORE_FUEL),
        ReportKind::Launch | ReportKind::Cancelled | ReportKind::Trap | ReportKind::Invalid => None,
    }
}

/// Whether a thread ends with the instruction, and its block with it.
fn ends_block(place: &Place) -> bool {
    access(&place.instruction) == "end of the block"
}

/// Whether both sides of a race are writes of one instruction.
fn is_one_write(report: &Report) -> bool {
    match (&report.place, &report.other) {
        (Some(this), Some(other)) => this.ptx_line == other.ptx_line && access(&this.instruction) == "write",
        _ => false,
    }
}

/// The span of a place in what carets point into.
fn span(scene: &Scene<'_>, place: &Place) -> Span {
    let source = scene.origin.source;
    let line = match &place.source {
        _ if scene.origin.is_ptx => place.ptx_line,
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

/// Where an instruction stands in the PTX, with its text, and for PTX which source line it belongs to.
fn ptx_line(scene: &Scene<'_>, sources: &mut Sources, what: &str, place: &Place) -> String {
    let text = scene.ptx.lines().nth(place.ptx_line.saturating_sub(1) as usize).unwrap_or("");
    let mut out = format!("{what}: PTX line {}: `{}`", place.ptx_line, short(&tidy(text)));
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
pub(super) fn diagnostic(scene: &Scene<'_>, at: Option<(&Memory, &Program)>, report: &Report) -> Box<Diagnostic> {
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
        Some(Space::Global) | None => at.and_then(|(m, _)| locate::global(scene, m, address)),
    });
    let elsewhere = !matches!(here, Some(Space::Shared | Space::Local));
    let message = match (report.kind, &report.other, &located) {
        // A block of a cluster ends, and with it its shared memory.
        (ReportKind::Race, Some(_), _) if ends_block(place) => title.to_owned(),
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
            format!("{} {what} outside every tensor, {located}", article(what))
        }
        (ReportKind::ReadOnly, _, Some(located)) => {
            format!("{} {what} to memory that the kernel only reads by its launch contract: {located}", article(what))
        }
        (ReportKind::Uninitialised, _, Some(located)) if elsewhere => {
            format!("{} {what} of memory that nobody wrote: {located}", article(what))
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
    if report.kind == ReportKind::Race && report.other.is_some() && report.other_block.is_none() && !ends_block(place) {
        d = d.with_note("which of the two came first was chance: in another run it may be the other");
    }
    d.notes.extend(at.filter(|_| elsewhere).and_then(|(memory, _)| permission(scene, memory, report)));
    if let Some(way_out) = way_out(report, !scene.origin.is_ptx) {
        d = d.with_note(way_out);
    }
    Box::new(d)
}

/// What the launch contract has to do with a read that it does not allow.
fn permission(scene: &Scene<'_>, memory: &Memory, report: &Report) -> Option<String> {
    let (address, place) = (report.address?, report.place.as_ref()?);
    let name = locate::tensor(scene, memory, address)?;
    let tensor = scene.contract.param(name).and_then(|p| p.kind.tensor())?;
    match report.kind {
        ReportKind::Uninitialised if !tensor.access.reads() => {
            Some(format!("by its launch contract the kernel does not read `{name}`: what it held before is nothing"))
        }
        // The compiler says it itself where it is so.
        ReportKind::OutOfBounds
            if scene.origin.is_ptx
                && access(&place.instruction) == "read"
                && locate::global(scene, memory, address).is_some_and(|l| l.contains(locate::IN_A_GAP)) =>
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
pub(super) fn out_of_time(scene: &Scene<'_>, report: &Report, limit: Duration) -> Box<Diagnostic> {
    let mut d = diagnostic(scene, None, report);
    d.message = format!("the simulation did not finish within {} s", limit.as_secs());
    d.label = report.place.as_ref().map_or_else(String::new, |p| format!("{} was here", thread(p.thread)));
    d.notes.push("choose smaller sizes, more `--sim-threads`, or a larger `--timeout`".to_owned());
    d
}

/// PTX that does not parse.
pub(super) fn unknown_ptx(scene: &Scene<'_>, error: &ParseError) -> Box<Diagnostic> {
    let ParseError { line, col, message } = error;
    let (line, column) = (*line as usize, *col as usize);
    let text = tidy(scene.ptx.lines().nth(line.saturating_sub(1)).unwrap_or(""));
    let d = if scene.origin.is_ptx {
        let span = scene.origin.source.line_span(line, column).unwrap_or_default();
        Diagnostic::error(codes::SIM_PTX, span, message)
    } else {
        let message = format!("the simulator does not understand the PTX: {message}");
        Diagnostic::error(codes::SIM_PTX, Span::default(), message).with_note(format!("PTX line {line}: `{text}`"))
    };
    Box::new(d.with_note("`--device cuda` runs what the simulator does not know"))
}

/// Results that depend on when copies land.
pub(super) fn landing(difference: &str) -> Box<Diagnostic> {
    let message = format!("the result depends on when asynchronous copies land: {difference}");
    Box::new(
        Diagnostic::error(codes::SIM_LANDING, Span::default(), message)
            .with_note("look for a wait that is missing or lets too many groups fly: `cp.async.wait_group`"),
    )
}
