//! Advice that is tried out: preconditions that messages ask for, tiles with less padding, narrower accesses.

use super::advice::Advice;
use super::answer::Known;
use super::faster::Found;
use super::numbers;
use super::programs::Change;
use super::said::places_of;
use super::trials::{Effect, Trial, effect, restrictions};
use crate::compile::CompiledKernel;
use crate::compile::demands::padding;
use crate::compile::implied::without_implied;
use crate::compile::unrepeated::unrepeated;
use tilec_ir::diag::{Diagnostic, Edit, Span, declare_where};
use tilec_ir::kernel::StmtData;
use tilec_ir::layout::access::BANK_BYTES;
use tilec_ir::missed_paths::FastPath;
use tilec_ir::types::ElemRef;
use tilec_ir::typing::resolve_view;
use tilec_passes::choose::{Edge, Prediction};
use tilec_passes::required;
use tilec_ptx::report::CopyReport;

/// Dimensions for which other tiles are tried, and tiles of each.
const EDGES: usize = 3;
const TILES: usize = 4;

/// A program with more preconditions.
struct Tried {
    trial: Trial,
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

/// The preconditions of a list that the given sizes allow, and what is to say of the others.
pub(super) fn possible<'n>(
    known: &Known<'_>,
    kernel: &CompiledKernel,
    needs: &[&'n str],
) -> (Vec<&'n str>, Vec<String>) {
    let k = &kernel.tile.specialized;
    let with = |needs: &str| required(k, needs).and_then(|edit| Change::of_edit(known.text(), &edit));
    let compiles = |needs: &str| with(needs).is_none_or(|change| known.trials.program(&change).is_some());
    if known.options.sizes.is_empty() || needs.is_empty() || compiles(&needs.join(", ")) {
        return (needs.to_vec(), Vec::new());
    }
    let (met, others): (Vec<&str>, Vec<&str>) = needs.iter().copied().partition(|need| compiles(need));
    let says = |need: &&str| format!("`where {need}` would change it, but the given sizes contradict it (tried)");
    (met, others.iter().map(says).collect())
}

/// Smaller tiles along the dimensions with padding, compiled: what the model predicts with each, and with how much padding.
pub(super) fn of_tiles(known: &Known<'_>, kernel: &CompiledKernel) -> Found {
    let mut found = Found::default();
    let Some(p) = &kernel.tile.prediction else { return found };
    let free = numbers::free(known, kernel);
    let mut seen: Vec<&str> = Vec::new();
    for edge in &p.padding.edges {
        let name = edge.parameter.as_deref();
        if let Some((_, Some(own))) = &edge.own_end {
            let change = Change::of_values(&[(own, edge.tile.to_string())]);
            found.advice.push(Advice::by(padding::other_tile(edge), Some(change)));
            continue;
        }
        let is_free = edge.free || free.iter().any(|p| Some(&*p.name) == name);
        let Some(name) = name.filter(|_| is_free && edge.own_end.is_none()) else {
            match edge.free {
                true => found.advice.push(Advice::by_hand(padding::other_tile(edge))),
                false => found.facts.push(padding::other_tile(edge)),
            }
            continue;
        };
        if seen.contains(&name) || seen.len() >= EDGES {
            continue;
        }
        seen.push(name);
        of_parameter(known, kernel, p, (name, edge), &mut found);
    }
    unrepeated(&mut found.facts);
    found
}

/// What smaller values of a parameter, along an edge, have: what would change the padding, or why nothing does.
fn of_parameter(
    known: &Known<'_>,
    kernel: &CompiledKernel,
    p: &Prediction,
    (name, edge): (&str, &Edge),
    found: &mut Found,
) {
    let tried: Vec<u64> = padding::smaller_tiles(edge).take(TILES).collect();
    let with = |tile: u64| Change::of_values(&[(name, tile.to_string())]);
    known.trials.prepare(&tried.iter().map(|&tile| with(tile)).collect::<Vec<_>>());
    let all: Vec<(u64, Effect)> =
        tried.iter().filter_map(|&tile| Some((tile, effect(known, kernel, &with(tile))?))).collect();
    let is_other = all.is_empty();
    let less = all.into_iter().filter(|(_, own)| own.prediction.padding.share < p.padding.share);
    let Some((tile, best)) = less.min_by(|a, b| a.1.then.total_cmp(&b.1.then)) else {
        let values: Vec<String> = tried.iter().map(ToString::to_string).collect();
        let sizes = format!("sizes that are multiples of {} have no padding", edge.tile);
        found.facts.push(match values[..] {
            [] => sizes,
            _ if is_other => format!(
                "with `{name}` of {} the kernel does not compile or leaves elements out (tried): {sizes}",
                values.join(", ")
            ),
            _ => format!("with `{name}` of {} there is no less padding (tried): {sizes}", values.join(", ")),
        });
        return;
    };
    let share = padding::counted_work(&best.prediction.padding);
    if best.then > best.now && !best.is_same() {
        found.facts.push(format!(
            "with `-D {name}={tile}` {share} are padding ({}): smaller tiles lose more than padding does",
            best.in_words()
        ));
        return;
    }
    let best = best.assembled(known, kernel, &with(tile));
    let restricted = restrictions(known, kernel, &with(tile));
    found.advice.push(Advice::tried(format!("`-D {name}={tile}`: {share} are padding{restricted}"), &best));
}

/// Narrower accesses of the wide copies to and from buffers with conflicts, compiled: with which no conflict remains there.
pub(super) fn of_conflicts(known: &Known<'_>, kernel: &CompiledKernel) -> Vec<Advice> {
    let k = &kernel.tile.specialized;
    let in_conflict = |name: &str| kernel.lowered.shared.iter().any(|s| s.buffer == name && s.conflicts() > 0);
    let mut ways = Vec::new();
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
        let end = Span { start: span.end, end: span.end };
        let Some(change) = Change::of_part(known.text(), end, &format!(" vec {n}")) else { continue };
        let Some(own) = Trial::of(known, kernel, &change) else { continue };
        if own.kernel().lowered.shared.iter().all(|s| s.buffer != name || s.conflicts() == 0) {
            let line = places_of(known, &[(span, String::new())]).concat();
            let text = format!(
                "`vec {n}` at {}: with accesses of {BANK_BYTES} bytes `{name}` has no conflicts",
                line.trim_end_matches(" ()")
            );
            ways.push(Advice::by(text, Some(change)));
        }
    }
    ways
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
    without_implied(&mut all);
    // In front of another clause with a space between.
    let text = format!("{clause}{} ", all.join(", "));
    let at = Span { start: span.start, end: span.start };
    let trial = Trial::of(known, kernel, &Change::of_part(known.text(), at, &text)?)?;
    Some(Tried { trial, at: span.start, long: u32::try_from(text.len()).ok()? })
}

impl Tried {
    fn kernel(&self) -> &CompiledKernel {
        self.trial.kernel()
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
