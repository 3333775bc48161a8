//! `tilec why IN.tile` without a place: what costs time, each with its line and what would change it.

use super::advice::{self, Given};
use super::answer::{Known, Part, unrepeated};
use super::faster::{self, Less};
use super::loss::{Loss, loss};
use super::{not, premise, said, ways_out};
use crate::compile::CompiledKernel;
use crate::compile::demands::{self, Broken, DemandStatus};
use tilec_ir::demands::{Figure, Property, What};
use tilec_ir::entities::Stmt;
use tilec_ir::kernel::{ExprData, Kernel, StmtData};
use tilec_ir::missed_paths::FastPath;
use tilec_ir::roles::{all_warps, first_warp, replicas};
use tilec_ir::target::WARP;
use tilec_ir::typing::resolve_view;
use tilec_passes::{RegisterTile, register_tiles};

/// Places, and ways out, that are shown of each loss; the question about it alone shows all.
const SHOWN: usize = 4;

/// The share of the predicted time in which the busiest unit is to work.
const BUSY: f64 = 0.9;

/// The share of the work that may be padding.
const PADDING: f64 = 0.05;

/// The answer: of each kernel the losses, those that cost most as a rule in front.
pub(super) fn overview(known: &Known<'_>) -> (Vec<String>, Vec<Part>) {
    let (mut about, mut parts) = (Vec::new(), Vec::new());
    for kernel in known.program.kernels.iter().filter(|k| known.judges(k)) {
        let name = &kernel.tile.kernel.name;
        let (mut holds, mut unknown, mut losses, mut open) = (Vec::new(), Vec::new(), 0, 0);
        for what in demands(known, kernel) {
            match not::judged(known, kernel, what) {
                DemandStatus::Holds => holds.push(format!("`{what}`")),
                DemandStatus::Unknown(why) => {
                    open += 1;
                    unknown.push(format!("`{what}`: {}", why.message));
                    unknown.extend(said::places_of(known, &why.places).into_iter().map(|place| format!("  {place}")));
                }
                DemandStatus::Broken(broken) => {
                    losses += 1;
                    parts.push(part_of(known, kernel, what, broken));
                }
            }
        }
        let judged = losses + holds.len();
        let faster = faster::of_auto(known, kernel);
        about.push(match losses {
            0 if !unknown.is_empty() => {
                let all = judged + open;
                let have = if open == 1 { "has" } else { "have" };
                format!("`{name}`: {judged} of {all} checks pass, and {open} {have} no result")
            }
            0 if faster.is_some() => format!("`{name}`: {judged} of {judged} checks pass"),
            0 => format!("`{name}`: no loss found; {judged} of {judged} checks pass"),
            1 => format!("`{name}`: 1 of {judged} checks fails"),
            _ => format!("`{name}`: {losses} of {judged} checks fail"),
        });
        let part = |title: &str, facts| Part { title: format!("{title} `{name}`"), facts, decisions: Vec::new() };
        // Of a kernel near the roofline, other values may be faster still.
        let near = holds.iter().any(|text| *text == format!("`{}`", What::AtLeast(Figure::Roofline, BUSY)));
        if near {
            let found = faster::of_parameters(known, kernel, Less::Time);
            let lines = advice::tried(known, kernel, found.advice, Given::NotSlower);
            let ways = lines.ways.into_iter().map(|text| format!("to change it: {text}"));
            parts.push(part(
                "Other values of compile-time parameters of",
                found.facts.into_iter().chain(ways).collect(),
            ));
        }
        if let Some(faster) = faster {
            about.push(format!("`{name}`: other values of `auto` parameters than those given are faster by the model"));
            parts.insert(0, part("Values given for `auto` parameters of", vec![faster]));
        }
        parts.push(part("Checks that pass for", holds));
        parts.push(part("Checks without a result for", unknown));
        parts.push(part("Which warps do what, in", warps(&kernel.tile.kernel)));
        parts.push(part("Threads without elements of their own, in", idle_threads(known, kernel)));
        let bounds = not::resident(known, kernel);
        parts.push(Part { title: format!("{}, in `{name}`", bounds.title), ..bounds });
    }
    parts.retain(|p| !p.facts.is_empty());
    (about, parts)
}

/// The warps of each role, and what they do; empty: all warps do the same.
fn warps(k: &Kernel) -> Vec<String> {
    let fact = |&s: &Stmt| {
        let StmtData::Role { name, body, .. } = &k.stmts[s] else { return None };
        let (first, count) = (first_warp(k, s)?, all_warps(k, s)?);
        let mut does: Vec<&str> = Vec::new();
        k.walk(*body, &mut |k, _, s| {
            let what = match &k.stmts[s] {
                StmtData::Copy { attrs, dst, .. } if attrs.is_tensor() => match resolve_view(k, *dst) {
                    Some(to) if to.space(k).is_of_block() => "TMA loads",
                    _ => "TMA stores",
                },
                StmtData::Copy { dst, .. } => match resolve_view(k, *dst).map(|to| to.space(k)) {
                    Some(to) if to.has_bounds() => "stores by threads",
                    Some(to) if to.is_of_block() => "copies to shared memory",
                    _ => return,
                },
                StmtData::Assign { src, .. } if matches!(k.exprs[*src], ExprData::Mma(_)) => "products",
                _ => return,
            };
            does.push(what);
        });
        unrepeated(&mut does);
        let warps =
            if count == 1 { format!("warp {first}") } else { format!("warps {first} to {}", first + count - 1) };
        let replicas = match replicas(k, s) {
            Some(n @ 2..) => format!(" in {n} replicas, which take tiles in turn"),
            _ => String::new(),
        };
        Some(format!("{warps}: role `{name}`{replicas}: {}", does.join(", ")))
    };
    k.blocks[k.body].iter().filter_map(fact).collect()
}

/// Where even the largest tile in registers has fewer elements than threads.
fn idle_threads(known: &Known<'_>, kernel: &CompiledKernel) -> Vec<String> {
    let k = &kernel.tile.kernel;
    let elements = |tile: &RegisterTile| tile.shape.iter().product::<u64>();
    let Some(largest) = register_tiles(k).into_iter().max_by_key(elements) else { return Vec::new() };
    let (own, threads) = (elements(&largest), largest.threads);
    if own >= threads || own < 2 {
        return Vec::new();
    }
    let name = &k.values[largest.value].name;
    // A block has a power of two of threads, in whole warps.
    let fewer = own.next_power_of_two().max(u64::from(WARP));
    if fewer >= threads {
        return Vec::new();
    }
    let text = format!("`threads {fewer}` in the schedule, or larger tiles");
    let way = ways_out::of_item(known, kernel, ("threads", fewer), &text);
    let ways = advice::tried(known, kernel, vec![way], Given::All).ways;
    let fact = format!(
        "the largest register tile, `{name}`, has {own} elements for {threads} threads: {} threads hold each",
        threads / own
    );
    std::iter::once(fact).chain(ways.into_iter().map(|text| format!("to change it: {text}"))).collect()
}

/// What is asked of a kernel. Tensor cores are for products, and loads ahead for loops that fill shared memory.
fn demands(known: &Known<'_>, kernel: &CompiledKernel) -> Vec<What> {
    let mut all = vec![What::AtLeast(Figure::Roofline, BUSY), What::AtMost(Figure::Padding, PADDING)];
    all.push(What::Has(Property::NoSpills));
    if !kernel.report.mma.is_empty() {
        all.push(What::Has(Property::TensorCores));
        if demands::has_path(known.program.target, FastPath::Wgmma) {
            all.push(What::Has(Property::Wgmma));
        }
    }
    if fills_buffers(&kernel.tile.specialized) {
        all.push(What::Has(Property::Pipelined));
    }
    all.extend([Property::NoBankConflicts, Property::Coalesced, Property::Vectorised].map(What::Has));
    all
}

/// Whether a loop brings tiles from tensors to shared memory.
fn fills_buffers(k: &Kernel) -> bool {
    let mut found = false;
    k.walk(k.body, &mut |k, _, s| {
        if let StmtData::For { body, .. } = k.stmts[s] {
            found |= premise::loads(k, body).0;
        }
    });
    found
}

/// One loss: where, and what would change it.
fn part_of(known: &Known<'_>, kernel: &CompiledKernel, what: What, broken: Broken) -> Part {
    let Loss { message, places: mut facts, facts: reasons, decisions, mut ways } =
        loss(known, kernel, what, broken, Given::NotSlower);
    let left = facts.len().saturating_sub(SHOWN);
    facts.truncate(SHOWN);
    if left > 0 {
        facts.push(format!("and {left} more"));
    }
    facts.extend(reasons);
    // Where nothing is known to change it, the reason is what there is to say.
    if ways.is_empty() {
        let mut said: Vec<String> = decisions.into_iter().flat_map(|d| d.says).map(|says| says.message).collect();
        unrepeated(&mut said);
        said.truncate(SHOWN);
        facts.extend(said);
    }
    ways.truncate(SHOWN);
    facts.extend(ways.into_iter().map(|text| format!("to change it: {text}")));
    facts.push(format!("more: --not '{what}'"));
    Part {
        title: format!("`{}` does not meet `{what}`: {message}", kernel.tile.kernel.name),
        facts,
        decisions: Vec::new(),
    }
}
