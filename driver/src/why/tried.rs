//! Advice that is tried out: the program with the preconditions that messages ask for. What a layout keeps narrow stays so whatever is declared.

use super::answer::{Known, unrepeated};
use super::chain::places_of;
use super::faster::{FASTER, predicted};
use crate::compile::demands::padding;
use crate::compile::{CompileOptions, Compiled, CompiledKernel, compile};
use crate::xray;
use tilec_ir::diag::{Diagnostic, Edit, Span, declare_where};
use tilec_ir::kernel::StmtData;
use tilec_ir::layout::access::BANK_BYTES;
use tilec_ir::missed_paths::FastPath;
use tilec_ir::types::ElemRef;
use tilec_ir::typing::resolve_view;
use tilec_passes::choose::{Edge, Prediction};
use tilec_ptx::report::CopyReport;

/// Dimensions for which other tiles are tried, and tiles of each.
const EDGES: usize = 3;
const TILES: usize = 4;

/// A program with more preconditions.
struct Tried {
    program: Compiled,
    /// The kernel in it.
    kernel: usize,
    /// Where the preconditions stand, and how long they are.
    at: u32,
    long: u32,
}

/// What passes said of widths, without the preconditions with which an access is as narrow as before; what is in the way then is said in their place.
pub(super) fn of_widths(known: &Known<'_>, kernel: &CompiledKernel, said: Vec<&Diagnostic>) -> Vec<Diagnostic> {
    let mut said: Vec<Diagnostic> = said.into_iter().cloned().collect();
    let Some(tried) = tried(known, kernel, &said) else { return said };
    for d in said.iter_mut().filter(|d| !d.needs.is_empty()) {
        let own = tried.moved(d.span);
        let (before, after) =
            (narrowest(&kernel.lowered.copies, d.span), narrowest(&tried.kernel().lowered.copies, own));
        // Words that are shifted into place are as wide; without a remark the access is what was asked for.
        if before.is_none() || after.is_none() || after > before || tried.why(own).is_none() {
            continue;
        }
        let needs = std::mem::take(&mut d.needs);
        let declared = declare_where(&needs);
        d.notes.retain(|note| *note != declared);
        d.notes.extend(tried.said(own).into_iter().flat_map(Diagnostic::ways_out).cloned());
        d.fix = None;
        let why = tried.why(own).map_or_else(|| "the access is as narrow".to_owned(), str::to_owned);
        d.message = format!("{}; with `where {needs}`, {why}", d.message);
    }
    said
}

/// Smaller tiles along the dimensions with padding, compiled: what the model predicts with each, and with how much padding. Facts, and what would change it.
pub(super) fn of_tiles(known: &Known<'_>, kernel: &CompiledKernel) -> (Vec<String>, Vec<String>) {
    let (mut facts, mut change) = (Vec::new(), Vec::new());
    let Some(p) = &kernel.tile.prediction else { return (facts, change) };
    let mut seen: Vec<&str> = Vec::new();
    for edge in &p.padding.edges {
        let Some(name) = edge.parameter.as_deref().filter(|_| edge.free && edge.own_end.is_none()) else {
            change.push(padding::other_tile(edge));
            continue;
        };
        if seen.contains(&name) || seen.len() >= EDGES {
            continue;
        }
        seen.push(name);
        match of_parameter(known, kernel, p, (name, edge)) {
            Ok(text) => change.push(text),
            Err(text) => facts.push(text),
        }
    }
    (facts, change)
}

/// What smaller values of a parameter, along an edge, have: what would change the padding, or why nothing does.
fn of_parameter(
    known: &Known<'_>,
    kernel: &CompiledKernel,
    p: &Prediction,
    (name, edge): (&str, &Edge),
) -> Result<String, String> {
    let tried: Vec<u64> = padding::smaller_tiles(edge).take(TILES).collect();
    let with_tile = |tile: u64| {
        let tile = i64::try_from(tile).ok()?;
        predicted(known, kernel, p, &[(name.to_owned(), tile)])
    };
    let all = tried.iter().filter_map(|&tile| Some((tile, with_tile(tile)?)));
    let less = all.filter(|(_, own)| own.padding.share < p.padding.share);
    let Some((tile, best)) = less.min_by(|a, b| a.1.seconds.total_cmp(&b.1.seconds)) else {
        let values: Vec<String> = tried.iter().map(ToString::to_string).collect();
        let sizes = format!("sizes that are multiples of {} have no padding", edge.tile);
        return match values[..] {
            [] => Ok(sizes),
            _ => Err(format!("with `{name}` of {} there is no less padding (tried): {sizes}", values.join(", "))),
        };
    };
    let (us, now) = (1e6 * best.seconds, 1e6 * p.seconds);
    let share = padding::counted_work(&best.padding);
    // As it is printed, it is no slower.
    if format!("{us:.1}") == format!("{now:.1}") {
        return Ok(format!(
            "with `-D {name}={tile}` {share} are padding, and {us:.1} us are predicted, as without it (tried)"
        ));
    }
    if us < now {
        return Ok(format!(
            "with `-D {name}={tile}` {share} are padding, and {us:.1} us are predicted, not {now:.1} (tried)"
        ));
    }
    Err(format!(
        "with `-D {name}={tile}` {share} are padding, but {us:.1} us are predicted, not {now:.1} (tried): smaller tiles lose more than padding does"
    ))
}

/// Narrower accesses of the wide copies to and from buffers with conflicts, compiled: with which no conflict remains there.
pub(super) fn of_conflicts(known: &Known<'_>, kernel: &CompiledKernel) -> Vec<String> {
    let k = &kernel.tile.specialized;
    let in_conflict = |name: &str| kernel.lowered.shared.iter().any(|s| s.buffer == name && s.conflicts() > 0);
    let mut facts = Vec::new();
    for s in k.statements() {
        let StmtData::Copy { src, dst, attrs } = &k.stmts[s] else { continue };
        let buffer = [*src, *dst].into_iter().filter_map(|e| resolve_view(k, e)).find_map(|view| {
            let name = &k.values[view.base].name;
            (view.space(k).is_of_block() && in_conflict(name)).then(|| (view.base, name.clone()))
        });
        let Some((base, name)) = buffer.filter(|_| attrs.vec.is_none()) else { continue };
        let span = k.stmt_spans[s];
        let wide = kernel.lowered.shared.iter().any(|a| a.span == span && u64::from(a.access_bytes) > BANK_BYTES);
        let Some(ElemRef::Known(elem)) = k.values[base].def.elem() else { continue };
        let bits = u64::from(elem.size().get());
        if !wide || span.is_none() {
            continue;
        }
        let n = (8 * BANK_BYTES / bits.max(1)).max(1);
        let mut source = known.program.source.text().to_owned();
        source.insert_str(span.end as usize, &format!(" vec {n}"));
        let Ok(program) = xray::compiled(&source, known.options) else { continue };
        let entry = &kernel.contract.entry;
        let Some(own) = program.kernels.iter().find(|k| k.contract.entry == *entry) else { continue };
        if own.lowered.shared.iter().all(|s| s.buffer != name || s.conflicts() == 0) {
            let line = places_of(known, &[(span, String::new())]).concat();
            facts.push(format!(
                "to change it: with `vec {n}` at {}, accesses of {BANK_BYTES} bytes, `{name}` has no conflicts (tried)",
                line.trim_end_matches(" ()")
            ));
        }
    }
    unrepeated(&mut facts);
    facts
}

/// The compiler's own values of the `auto` parameters that are given, if a shorter time is predicted with them.
pub(super) fn of_auto(known: &Known<'_>, kernel: &CompiledKernel) -> Option<String> {
    let (name, now) = (&kernel.tile.kernel.name, kernel.tile.prediction.as_ref()?.seconds);
    let without = |dropped: &dyn Fn(&(String, String)) -> bool| {
        let mut options = CompileOptions { show_broken: true, report_accesses: true, ..known.options.clone() };
        options.defines.retain(|given| !dropped(given));
        let program = compile(known.program.source.text(), &options).ok()?;
        program.kernels.into_iter().find(|k| k.tile.kernel.name == *name)
    };
    // Which of the given numbers are `auto` shows a program without any of them.
    let chosen = |k: &CompiledKernel| k.tile.choice.clone().map_or_else(Vec::new, |choice| choice.values);
    let open = chosen(&without(&|(_, text)| text.parse::<i64>().is_ok())?);
    let is_open = |(name, _): &(String, String)| open.iter().any(|(own, _)| own == name);
    if !known.options.defines.iter().any(is_open) {
        return None;
    }
    let other = without(&is_open)?;
    let own = other.tile.prediction.as_ref()?.seconds;
    let values: Vec<String> = chosen(&other).iter().map(|(name, value)| format!("{name}={value}")).collect();
    (own < FASTER * now).then(|| {
        format!(
            "with the compiler's values of `auto` parameters ({}) {:.1} us are predicted, not {:.1} (tried)",
            values.join(" "),
            1e6 * own,
            1e6 * now
        )
    })
}

/// The bytes of the narrowest accesses of a statement to global memory.
pub(super) fn narrowest(copies: &[CopyReport], span: Span) -> Option<u32> {
    copies.iter().filter(|c| c.span == span && c.global_bytes > 0).map(|c| c.global_bytes).min()
}

/// The program with all preconditions that messages ask for; `None`: none do, or it is none then.
fn tried(known: &Known<'_>, kernel: &CompiledKernel, said: &[Diagnostic]) -> Option<Tried> {
    let (first, Edit { span, text, .. }) =
        said.iter().find_map(|d| Some((d, d.fix.as_ref().filter(|_| !d.needs.is_empty())?)))?;
    let clause = text.strip_suffix(&*first.needs)?;
    let mut all: Vec<&str> = said.iter().flat_map(|d| d.needs.split(", ")).filter(|need| !need.is_empty()).collect();
    unrepeated(&mut all);
    // In front of another clause with a space between.
    let text = format!("{clause}{} ", all.join(", "));
    let mut source = known.program.source.text().to_owned();
    source.insert_str(span.start as usize, &text);
    let program = xray::compiled(&source, known.options).ok()?;
    let entry = &kernel.contract.entry;
    let number = program.kernels.iter().position(|k| k.contract.entry == *entry)?;
    Some(Tried { program, kernel: number, at: span.start, long: u32::try_from(text.len()).ok()? })
}

impl Tried {
    fn kernel(&self) -> &CompiledKernel {
        &self.program.kernels[self.kernel]
    }

    /// Where something is that was elsewhere.
    fn moved(&self, span: Span) -> Span {
        let place = |at: u32| if at >= self.at { at + self.long } else { at };
        Span { start: place(span.start), end: place(span.end) }
    }

    /// Why accesses of a statement are narrow.
    fn why(&self, span: Span) -> Option<&str> {
        self.said(span)?.why.as_deref()
    }

    /// What is said of that.
    fn said(&self, span: Span) -> Option<&Diagnostic> {
        let demanding = self.kernel().tile.demanding();
        crate::compile::demands::declined(demanding, FastPath::Wide).find(|d| d.span == span)
    }
}
