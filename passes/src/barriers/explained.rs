//! Remarks on the hazards that each barrier resolves: those for which it is placed, and those that it resolves, too.

use super::accesses::{Accesses, How, Scope};
use super::placement::{Hazard, Placed, Placement, without};
use crate::Cx;
use crate::analysis::uses::path_to;
use tilec_ir::diag::{Diagnostic, Span};
use tilec_ir::entities::{Stmt, Value};
use tilec_ir::kernel::{Kernel, StmtData};
use tilec_ir::memory_reuse::Overlays;
use tilec_ir::print::print_head;

/// Barriers of a kernel of which all hazards are found, at most.
const MOST: usize = 16;

/// A remark for each barrier.
pub(super) fn remarks(k: &Kernel, cx: &mut Cx<'_>, placement: &Placement) {
    let (accesses, overlays) = (Accesses::of(k, Scope::Block), Overlays::of(k));
    for placed in &placement.barriers {
        let mut hazards: Vec<(Stmt, Hazard)> = placed.hazards.iter().map(|&h| (placed.before, h)).collect();
        if hazards.is_empty() {
            continue;
        }
        if !placement.cautious && placement.barriers.len() <= MOST {
            let known = |h: &Hazard| placed.hazards.iter().any(|own| (own.value, own.kind) == (h.value, h.kind));
            let all = without(k, &placement.barriers, placed.before);
            hazards.extend(all.into_iter().filter(|(_, h)| !known(h)));
        }
        let span = |placed: &Placed| k.stmt_spans[placed.before];
        let several = placement.barriers.iter().filter(|other| span(other) == span(placed)).count() > 1;
        let which = if several { named(k, placed.before) } else { "this".to_owned() };
        cx.sink.push(remark(cx.pass, (k, &accesses, &overlays), (placed, &which), &hazards));
    }
}

/// A statement of the program after the passes, and whether it is in a loop: one line of the source may have several.
fn named(k: &Kernel, s: Stmt) -> String {
    let loops = path_to(k, s).into_iter().rev().filter_map(|(block, at)| match k.stmts[k.blocks[block][at]] {
        StmtData::For { var, .. } if k.blocks[block][at] != s => {
            Some(format!("in each iteration of `{}`", k.values[var].name))
        }
        _ => None,
    });
    let place = loops.into_iter().next().unwrap_or_else(|| "outside of loops".to_owned());
    format!("`{}`, {place}", print_head(k, s).trim_end_matches(" {"))
}

fn remark(
    pass: &'static str,
    (k, accesses, overlays): (&Kernel, &Accesses, &Overlays),
    (placed, which): (&Placed, &str),
    hazards: &[(Stmt, Hazard)],
) -> Diagnostic {
    let mut why: Vec<String> = Vec::new();
    let mut places: Vec<(Span, &str)> = Vec::new();
    let own = k.stmt_spans[placed.before];
    for &(later, h) in hazards {
        let shared = shared_with(k, accesses, overlays, h);
        let of = match &shared[..] {
            [] => String::new(),
            names => {
                let names: Vec<String> = names.iter().map(|&v| format!("`{}`", k.values[v].name)).collect();
                format!(" of {}, in the same shared memory", names.join(", "))
            }
        };
        let text = format!("`{}` {}{of}", k.values[h.value].name, h.kind.text());
        if !why.contains(&text) {
            why.push(text);
        }
        let values = if shared.is_empty() { vec![h.value] } else { shared };
        let first = h.earlier.map_or_else(Vec::new, |s| accessed(k, accesses, s, (&values, false)));
        let earlier = first.into_iter().map(|span| (span, "the earlier access"));
        let second = if later == placed.before { Vec::new() } else { accessed(k, accesses, later, (&[h.value], true)) };
        let later = second.into_iter().map(|span| (span, "the later access")).filter(|(span, _)| *span != own);
        for place in earlier.chain(later) {
            if !places.contains(&place) {
                places.push(place);
            }
        }
    }
    let remark = Diagnostic::remark(pass, own, format!("barrier before {which}: {}", why.join(", ")));
    places.into_iter().fold(remark, |remark, (span, text)| remark.with_place(span, text))
}

/// The buffers and channels in the memory of the later access that the earlier one accesses, if these are others.
fn shared_with(k: &Kernel, accesses: &Accesses, overlays: &Overlays, h: Hazard) -> Vec<Value> {
    let Some(earlier) = h.earlier else { return Vec::new() };
    let own = |v: Value| match &k.stmts[earlier] {
        StmtData::Channel { channels, .. } => channels.contains(&v),
        _ => accesses.of_stmt(earlier).iter().any(|a| a.value == v),
    };
    if own(h.value) {
        return Vec::new();
    }
    let mut all = overlays.sharing(h.value);
    all.retain(|&v| own(v));
    all
}

/// Where an access is: of slots that are released where they are read, and of those that are acquired where they are written.
fn accessed(k: &Kernel, accesses: &Accesses, s: Stmt, (values, write): (&[Value], bool)) -> Vec<Span> {
    if !matches!(k.stmts[s], StmtData::Channel { .. }) {
        return vec![k.stmt_spans[s]];
    }
    let mut found = Vec::new();
    k.walk(k.body, &mut |k, _, t| {
        let here = accesses.of_stmt(t).iter().any(|a| (a.how != How::Read) == write && values.contains(&a.value));
        if here && !found.contains(&k.stmt_spans[t]) {
            found.push(k.stmt_spans[t]);
        }
    });
    if found.is_empty() { vec![k.stmt_spans[s]] } else { found }
}
