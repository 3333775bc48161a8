//! The decisions after a line: of the passes, by what they changed and said; of the emitter, by its report.

use super::advice::{self, Given};
use super::answer::{Decision, Known, Part, Says};
use super::question::PLACES;
use super::said::{Lines, decision, is_not_done, lines, place};
use super::{plain, premise, scheduled, window_lines};
use crate::compile::attribution;
use crate::compile::source_lines::Places;
use crate::compile::unrepeated::unrepeated;
use crate::compile::{CompiledKernel, explain};
use crate::console::render::{JsonPlace, SourceFile};
use crate::xray::Columns;
use std::collections::BTreeSet;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Span, counted};
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::print::print_expr;
use tilec_ir::typing::resolve_view;

/// Lines that are shown of a change, at most.
const SHOWN: usize = 6;
/// Lines that use a window, of those that are shown.
const USERS: usize = 2;

/// What a line stands for.
#[derive(Default)]
struct Meaning {
    /// Places, by number.
    places: BTreeSet<usize>,
    /// The statement of the last program.
    statement: Option<usize>,
    /// The line of PTX that it came from; 0: none.
    ptx: usize,
}

/// The program after a pass.
struct After<'a> {
    pass: &'static str,
    text: &'a [String],
    places: &'a [Option<usize>],
}

fn stages(columns: &Columns) -> Vec<After<'_>> {
    let (mut text, mut places): (&[String], &[Option<usize>]) = (&[], &[]);
    let of = |stage: &'_ crate::xray::Stage| stage.pass;
    let mut all = Vec::new();
    for stage in &columns.stages {
        if let Some(own) = &stage.text {
            (text, places) = (own, &stage.places);
        }
        all.push(After { pass: of(stage), text, places });
    }
    all
}

/// The answer about a line.
pub(super) fn of_line(known: &Known<'_>, column: &str, line: usize) -> Result<(Vec<String>, Vec<Part>), String> {
    let columns = &known.shown.columns;
    let stages = stages(columns);
    if column == "ptx"
        && columns.ptx_places.get(line - 1).is_some_and(Option::is_none)
        && let Some((what, instruction)) = plain::of_ptx(known, line)
    {
        let mut about = vec![format!("{column}:{line}: {}", columns.ptx[line - 1].trim())];
        about.extend(what);
        let Some(next) = instruction else { return Ok((about, Vec::new())) };
        about.push("the instruction after it:".to_owned());
        let (own, parts) = of_line(known, column, next)?;
        about.extend(own);
        return Ok((about, parts));
    }
    if column == "source"
        && columns.places.iter().all(|(first, last)| !(*first..=*last).contains(&line))
        && let Some((what, head)) = plain::of_source(known, line)
    {
        let mut about = vec![format!("{column}:{line}: {}", columns.source[line - 1].trim()), what];
        let Some(head) = head else { return Ok((about, Vec::new())) };
        let (own, parts) = of_line(known, column, head)?;
        about.extend(own);
        return Ok((about, parts));
    }
    if column == "source"
        && let Some((what, users)) = window_lines::used(known, line)
    {
        let about = vec![format!("{column}:{line}: {}", columns.source[line - 1].trim()), what];
        let mut parts = Vec::new();
        for user in users.into_iter().take(USERS) {
            let (own, more) = of_line(known, column, user)?;
            parts.push(Part { title: own.into_iter().take(1).collect(), ..Part::default() });
            parts.extend(more);
        }
        return Ok((about, parts));
    }
    let (text, meaning) = meaning(columns, &stages, column, line)?;
    let mut about = vec![format!("{column}:{line}: {}", text.trim())];
    if column == "sass" && meaning.ptx > 0 {
        about.push(format!("came from ptx:{}: {}", meaning.ptx, columns.ptx[meaning.ptx - 1].trim()));
    }
    let last = columns.stages.last().zip(stages.last());
    if let (Some(statement), Some((own, after))) = (meaning.statement, last)
        && let Some(at) = own.statements.iter().position(|s| *s == Some(statement))
    {
        about.push(format!("of {}:{}: {}", after.pass, at + 1, after.text[at].trim()));
    }
    let places: Vec<Lines> = meaning.places.iter().map(|&p| columns.places[p]).collect();
    if column != "source" {
        for &(first, end) in &places {
            let more = if end > first { " ..." } else { "" };
            let text = columns.source.get(first - 1).map_or("", |l| l.trim());
            about.push(format!("written at {}:{first}: {text}{more}", known.program.source.name()));
        }
    }
    let mut parts = Vec::new();
    if column == "sass" {
        parts.extend(scheduled::of(known, line));
        parts.extend(assembler(known, &places));
    }
    let own = Part {
        title: "Decisions of the passes (a pass keeps what the source contains: to keep a `+` line, copy it into the source; `--disable-pass NAME` leaves the simplest choice)"
            .to_owned(),
        facts: Vec::new(),
        decisions: decisions(known, &stages, &meaning.places, &places),
    };
    parts.push(own);
    parts.extend(emitted(known, &places));
    parts.extend(works_with(known, &stages, &places));
    parts.extend(around(known, &places));
    parts.retain(|p| !p.facts.is_empty() || !p.decisions.is_empty());
    if parts.is_empty() {
        parts.push(Part { title: "No pass changed this line or has a remark about it.".to_owned(), ..Part::default() });
    }
    Ok((about, parts))
}

/// The line itself, and what it stands for.
fn meaning(columns: &Columns, stages: &[After<'_>], column: &str, line: usize) -> Result<(String, Meaning), String> {
    let at = line - 1;
    let none = || format!("there is no line {line} in `{column}`");
    let mut m = Meaning::default();
    let text = match column {
        "source" => {
            let text = columns.source.get(at).ok_or_else(none)?;
            let here = columns.places.iter().enumerate().filter(|(_, (first, last))| (*first..=*last).contains(&line));
            // Of places within one another the smallest.
            let least = here.clone().map(|(_, (a, b))| b - a).min();
            m.places.extend(here.filter(|(_, (a, b))| Some(b - a) == least).map(|(p, _)| p));
            text
        }
        "ptx" | "sass" => {
            let (text, from) = match (column, &columns.machine) {
                ("ptx", _) => (columns.ptx.get(at).ok_or_else(none)?, line),
                (_, Some(machine)) => {
                    let text = machine.text.get(at).ok_or_else(none)?;
                    (text, usize::try_from(machine.ptx[at]).unwrap_or(0))
                }
                _ => {
                    return Err(
                        "there is no machine code: ptxas and nvdisasm were not found (`scripts/fetch_tools.sh`)"
                            .to_owned(),
                    );
                }
            };
            if from > 0 {
                m.places.extend(columns.ptx_places[from - 1]);
                (m.statement, m.ptx) = (columns.ptx_statements[from - 1], from);
            }
            text
        }
        pass => {
            let Some(i) = stages.iter().position(|s| s.pass == pass) else {
                let near = explain::nearest(pass, explain::pass_names())
                    .map_or(String::new(), |p| format!("; did you mean `{p}`?"));
                return Err(format!("`{pass}` is no pass{near}; there are {PLACES}"));
            };
            let text = stages[i].text.get(at).ok_or_else(none)?;
            m.places.extend(stages[i].places[at]);
            m.statement = columns.stages[i].statements.get(at).copied().flatten();
            text
        }
    };
    if m.places.is_empty() {
        return Err(format!(
            "line {line} of `{column}` belongs to no statement, so there is no decision about it: {}",
            text.trim()
        ));
    }
    Ok((text.clone(), m))
}

/// What the passes did to the lines of these places, and said there.
fn decisions(known: &Known<'_>, stages: &[After<'_>], wanted: &BTreeSet<usize>, places: &[Lines]) -> Vec<Decision> {
    let mut out = Vec::new();
    let mut before: Vec<&str> = Vec::new();
    for (i, stage) in stages.iter().enumerate() {
        let own = stage.places.iter().zip(stage.text).filter(|(p, _)| p.is_some_and(|p| wanted.contains(&p)));
        let after: Vec<&str> = own.map(|(_, text)| text.trim()).collect();
        let (gone, new) =
            if i == 0 { Default::default() } else { (without(&before, &after), without(&after, &before)) };
        let said = said(known, stage.pass, |lines| places.iter().any(|p| p.0 <= lines.0 && lines.1 <= p.1));
        before = after;
        if gone.is_empty() && new.is_empty() && said.is_empty() {
            continue;
        }
        let mut d = advised(known, stage.pass, &said);
        d.before = shortened(gone);
        d.after = shortened(new);
        out.push(d);
    }
    out
}

/// Lines of one list that the other does not have, as often.
fn without<'a>(of: &[&'a str], other: &[&'a str]) -> Vec<&'a str> {
    let mut rest: Vec<&str> = other.to_vec();
    let mut out = Vec::new();
    for &line in of {
        match rest.iter().position(|l| *l == line) {
            Some(at) => drop(rest.swap_remove(at)),
            None => out.push(line),
        }
    }
    out
}

fn shortened(mut lines: Vec<&str>) -> Vec<String> {
    let more = lines.len().saturating_sub(SHOWN);
    lines.truncate(SHOWN);
    let mut out: Vec<String> = lines.into_iter().map(str::to_owned).collect();
    if more > 0 {
        out.push(format!("(and {more} more lines)"));
    }
    out
}

/// The remarks and warnings of a pass about lines of the source that `about` takes.
fn said<'a>(known: &Known<'a>, pass: &str, about: impl Fn(Lines) -> bool) -> Vec<&'a Diagnostic> {
    let source = &known.program.source;
    let all = known.program.diagnostics.iter().filter(|d| d.kind == Some(pass) && !d.span.is_none());
    all.filter(|d| about(lines(source, d.span))).collect()
}

/// The same, with what would change it.
pub(super) fn advised(known: &Known<'_>, by: &'static str, said: &[&Diagnostic]) -> Decision {
    let mut decision = decision(known, by, said);
    let of_kernels = known.program.kernels.iter().filter(|k| known.judges(k));
    for kernel in of_kernels {
        let own = said.iter().filter(|d| is_not_done(d) && is_in(known, kernel, d.span));
        let own: Vec<Diagnostic> = own.map(|d| (*d).clone()).collect();
        let mut facts = Vec::new();
        let advice = premise::advised(known, kernel, &own, &mut facts);
        let tried = advice::tried(known, kernel, advice, Given::All);
        facts.extend(tried.facts);
        decision.says.extend(facts.into_iter().map(|text| Says { message: text, ..place(known, Span::default()) }));
        decision.change.extend(tried.ways);
    }
    unrepeated(&mut decision.change);
    decision
}

/// Whether a place is in the source of a kernel: no other kernel begins between them.
fn is_in(known: &Known<'_>, kernel: &CompiledKernel, span: Span) -> bool {
    let begin = |k: &CompiledKernel| k.tile.specialized.name_span.start;
    let before = known.program.kernels.iter().map(begin).filter(|&at| at <= span.start);
    before.max().is_none_or(|at| at == begin(kernel))
}

/// Statements of a kernel after the last pass that came from these lines.
fn statements(k: &Kernel, source: &SourceFile, places: &[Lines]) -> Vec<Stmt> {
    let of = Places::new(k);
    let mut found = Vec::new();
    k.walk(k.body, &mut |_, _, s| {
        let span = of.of_statement(Some(s)).span;
        if !span.is_none() && places.contains(&lines(source, span)) {
            found.push(s);
        }
    });
    found
}

fn values(k: &Kernel, e: Expr, found: &mut BTreeSet<Value>) {
    match &k.exprs[e] {
        ExprData::Ref(v) => drop(found.insert(*v)),
        ExprData::View(view) => drop(found.insert(view.base)),
        _ => {}
    }
    k.children(e).into_iter().for_each(|c| values(k, c, found));
}

/// Buffers and register tiles that the statements name: their layouts, slots and places are decisions of their own.
fn works_with(known: &Known<'_>, stages: &[After<'_>], places: &[Lines]) -> Vec<Part> {
    let columns = &known.shown.columns;
    let source = &known.program.source;
    let mut out: Vec<Part> = Vec::new();
    for kernel in &known.program.kernels {
        let k = &kernel.tile.kernel;
        let mut named = BTreeSet::new();
        for s in statements(k, source, places) {
            k.stmts[s].exprs().into_iter().for_each(|e| values(k, e, &mut named));
            if let StmtData::Assign { dst, .. } = k.stmts[s] {
                named.insert(dst);
            }
        }
        let mut tensors = BTreeSet::new();
        for v in named {
            match &k.values[v].def {
                ValueDef::Var(_) | ValueDef::Smem(_) | ValueDef::Channel { .. } => {}
                ValueDef::Tensor(_) => {
                    tensors.insert(v);
                    continue;
                }
                ValueDef::Let => {
                    tensors.extend(k.let_init(v).and_then(|init| resolve_view(k, init)).map(|view| view.base));
                    continue;
                }
                _ => continue,
            }
            let span = k.values[v].span;
            let own = if span.is_none() { continue } else { lines(source, span) };
            if places.contains(&own) {
                continue;
            }
            let wanted: BTreeSet<usize> =
                columns.places.iter().enumerate().filter(|(_, p)| **p == own).map(|(i, _)| i).collect();
            let title = format!("About `{}`, which the line uses", k.values[v].name);
            let decisions = decisions(known, stages, &wanted, &[own]);
            if out.iter().all(|p| p.title != title) {
                out.push(Part { title, facts: Vec::new(), decisions });
            }
        }
        out.extend(promised(k, &tensors));
    }
    out
}

/// Preconditions about the extents and strides of tensors: what widths and dropped bounds checks rest on.
fn promised(k: &Kernel, tensors: &BTreeSet<Value>) -> Option<Part> {
    let mut own = BTreeSet::new();
    for &v in tensors {
        let Some(tensor) = k.tensor_ty(v) else { continue };
        tensor.exprs().into_iter().for_each(|e| values(k, e, &mut own));
        own.extend(&tensor.ld);
    }
    let about = |e: Expr| {
        let mut named = BTreeSet::new();
        values(k, e, &mut named);
        named.iter().any(|v| own.contains(v))
    };
    let facts: Vec<String> =
        k.requires.iter().filter(|&&e| about(e)).map(|&e| format!("`{}`", print_expr(k, e))).collect();
    (!facts.is_empty()).then(|| Part {
        title: "Preconditions on the sizes here (`where`, `multiple`): others give other code".to_owned(),
        facts,
        decisions: Vec::new(),
    })
}

/// The demands of the program that do not hold, which is shown all the same.
pub(super) fn broken(known: &Known<'_>) -> Option<Part> {
    let code = codes::BROKEN_DEMAND;
    let said: Vec<&Diagnostic> = known.program.diagnostics.iter().filter(|d| d.code == code).collect();
    (!said.is_empty()).then(|| Part {
        title: "Demands (`require`) that the code does not meet, so the program does not compile".to_owned(),
        facts: Vec::new(),
        decisions: vec![advised(known, code.0, &said)],
    })
}

/// What was decided of the loops and the kernel around these lines.
fn around(known: &Known<'_>, places: &[Lines]) -> Option<Part> {
    let source = &known.program.source;
    // The kernels that something of these lines is in.
    let has = |k: &&Kernel| {
        let spans = k.stmt_spans.values().chain([&k.name_span]).filter(|s| !s.is_none());
        spans.map(|&s| lines(source, s)).any(|l| places.iter().any(|p| l.0 <= p.1 && p.0 <= l.1))
            || places.contains(&lines(source, Places::new(k).of_statement(None).span))
    };
    let kernels = known.program.kernels.iter().map(|k| &k.tile.kernel);
    let headers: Vec<Lines> = kernels.filter(has).map(|k| lines(source, k.name_span)).collect();
    let encloses = |l: Lines| {
        let inside = |p: &Lines| p.0 <= l.0 && l.1 <= p.1;
        let wider = |p: &Lines| l.0 <= p.0 && p.1 <= l.1;
        !places.iter().any(inside) && (places.iter().any(wider) || headers.contains(&l))
    };
    let passes = explain::pass_names();
    let found = passes.into_iter().map(|pass| (pass, said(known, pass, encloses))).filter(|(_, said)| !said.is_empty());
    let decisions: Vec<Decision> = found.map(|(pass, said)| advised(known, pass, &said)).collect();
    (!decisions.is_empty()).then(|| Part {
        title: "About the enclosing loops and the kernel".to_owned(),
        facts: Vec::new(),
        decisions,
    })
}

/// What the emitter says of these lines.
fn emitted(known: &Known<'_>, places: &[Lines]) -> Option<Part> {
    let here = |p: &Option<JsonPlace>| {
        p.as_ref().is_some_and(|p| places.iter().any(|&(first, last)| (first..=last).contains(&p.line)))
    };
    let mut facts: Vec<String> = Vec::new();
    for CompiledKernel { report, lowered, tile, .. } in &known.program.kernels {
        for c in report.copies.iter().filter(|c| here(&c.place)) {
            let (of, bytes) = if c.global_bytes > 0 { ("global", c.global_bytes) } else { ("shared", c.shared_bytes) };
            let mut text = format!(
                "`{}` -> `{}`: {} a thread of {} to {of} memory",
                c.src,
                c.dst,
                accesses(c.accesses),
                counted(bytes as usize, "byte")
            );
            if c.global_bytes > 0 {
                text.push_str(&format!("; {:.0} % of the bytes of its sectors are used", 100.0 * c.sector_use));
            }
            if !c.why.is_empty() {
                text.push_str(&format!("; not 16 bytes because {}", c.why));
            }
            facts.push(text);
        }
        for s in report.shared.iter().filter(|s| here(&s.place)) {
            let least = match s.wavefronts > s.ideal_wavefronts {
                _ if s.by_index => " or more, as its indices say".to_owned(),
                true => format!("; without bank conflicts it takes {}", s.ideal_wavefronts),
                false => ", as few as its width needs".to_owned(),
            };
            facts.push(format!(
                "a {} of {} a thread at `{}` takes {}{least}",
                s.access,
                counted(s.bytes as usize, "byte"),
                s.buffer,
                counted(s.wavefronts as usize, "wavefront")
            ));
        }
        let at = |span: Span| known.program.source.position(span.start as usize).line;
        let of_line = |line: usize| places.iter().any(|&(first, last)| (first..=last).contains(&line));
        let own = lowered.shared.iter().filter(|s| !s.span.is_none() && of_line(at(s.span)));
        facts.extend(own.filter_map(|s| attribution::divided(&tile.kernel, s)));
        for m in report.mma.iter().filter(|m| here(&m.place)) {
            facts.push(format!("`{}`: {} instructions a warp", m.atom, m.per_warp));
        }
    }
    let mut seen = BTreeSet::new();
    facts.retain(|f| seen.insert(f.clone()));
    (!facts.is_empty()).then(|| Part {
        title: "What the PTX emitter generated for the line".to_owned(),
        facts,
        decisions: Vec::new(),
    })
}

fn accesses(n: u32) -> String {
    if n == 1 { "1 access".to_owned() } else { format!("{n} accesses") }
}

/// What the assembler says of these lines, or of the whole kernel.
fn assembler(known: &Known<'_>, places: &[Lines]) -> Option<Part> {
    let machine = known.shown.columns.machine.as_ref()?;
    let here = |line: usize| places.iter().any(|&(first, last)| (first..=last).contains(&line));
    let said = machine.remarks.iter().filter(|r| here(r.line) || r.places.iter().any(|(line, _)| here(*line)));
    let facts: Vec<String> = said.flat_map(|r| std::iter::once(&r.message).chain(&r.notes)).cloned().collect();
    let title = "What the assembler says about it".to_owned();
    (!facts.is_empty()).then(|| Part { title, facts, decisions: Vec::new() })
}
