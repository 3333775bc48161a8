//! `tilec why IN.tile` without a place: what costs time, each with its line and what would change it.

use super::advice::{self, Given};
use super::answer::{Known, Part};
use super::faster::{self, Less};
use super::loss::{Loss, loss};
use super::{costs, launches, masked, not, premise, road_end, said, source_changes, ways_out};
use crate::compile::CompiledKernel;
use crate::compile::demands::{self, Broken, DemandStatus};
use crate::compile::unrepeated::unrepeated;
use tilec_ir::demands::{Figure, Property, What};
use tilec_ir::entities::Stmt;
use tilec_ir::kernel::{ExprData, Kernel, StmtData};
use tilec_ir::missed_paths::FastPath;
use tilec_ir::roles::{all_warps, first_warp, replicas};
use tilec_ir::target::WARP;
use tilec_ir::typing::resolve_view;
use tilec_passes::choose::Term;
use tilec_passes::{RegisterTile, register_tiles};

/// Places, and ways out, that are shown of each loss; the question about it alone shows all.
const SHOWN: usize = 4;

/// The share of the predicted time in which the busiest unit is to work.
const BUSY: f64 = 0.9;

/// How much more than the minimum of bytes may be moved.
const BYTES: f64 = 1.05;

/// The share of the work that may be padding.
const PADDING: f64 = 0.05;

/// A property that does not hold, or something else that costs time.
struct Costs {
    /// Microseconds of the predicted time; `None`: the model has no number.
    us: Option<f64>,
    part: Part,
}

/// How a fact begins that is a way out.
const WAY_OUT: &str = "to change it: ";

/// Whether a fact is a way out that may lower the predicted time: it was not tried, or does.
fn may_help(fact: &str) -> bool {
    fact.starts_with(WAY_OUT) && !fact.contains("does not change the predicted time") && !fact.contains(": slower")
}

/// Whether a fact is a way out that was tried, and lowers the predicted time.
fn gains(fact: &str) -> bool {
    fact.starts_with(WAY_OUT) && fact.contains("(tried: predicted ")
}

impl Costs {
    fn has_way_out(&self) -> bool {
        self.part.facts.iter().any(|fact| may_help(fact))
    }

    /// Whether it has part of the predicted time.
    fn is_timed(&self) -> bool {
        self.us.is_some_and(|us| us >= costs::SHOWN)
    }
}

/// The answer: of all kernels the losses, those that cost most in front, then what else is known of each kernel.
pub(super) fn overview(known: &Known<'_>) -> (Vec<String>, Vec<Part>) {
    let mut about = launches::sums(known);
    let (mut losses, mut front, mut parts) = (Vec::new(), Vec::new(), Vec::new());
    for kernel in known.program.kernels.iter().filter(|k| known.judges(k)) {
        let name = &kernel.tile.kernel.name;
        let part = |title: &str, facts| Part { title: format!("{title} `{name}`"), facts, decisions: Vec::new() };
        let Judged { holds, unknown, open, failed, losses: own } = judged(known, kernel);
        let checks = holds.len() + failed;
        let faster = faster::of_auto(known, kernel);
        let far = road_end::far(known, kernel).filter(|_| own.is_empty());
        about.push(match own.len() {
            0 if !unknown.is_empty() => {
                let have = if open == 1 { "has" } else { "have" };
                format!("`{name}`: {checks} of {} checks pass, and {open} {have} no result", checks + open)
            }
            0 if faster.is_some() => format!("`{name}`: {checks} of {checks} checks pass"),
            0 => match &far {
                Some((binds, _)) => format!("`{name}`: {checks} of {checks} checks pass; {binds}"),
                None => format!("`{name}`: no loss found; {checks} of {checks} checks pass"),
            },
            _ if failed == 0 && !kernel.tile.copied.is_empty() => {
                format!("`{name}`: {checks} of {checks} checks pass, and operands are copied")
            }
            _ if failed == 0 => format!("`{name}`: {checks} of {checks} checks pass, and other work costs time"),
            _ if failed == 1 => format!("`{name}`: 1 of {checks} checks fails"),
            _ => format!("`{name}`: {failed} of {checks} checks fail"),
        });
        about.extend(in_common(kernel, &own));
        // Of a kernel near the roofline, other values may be faster still.
        let near = holds.iter().any(|text| *text == format!("`{}`", What::AtLeast(Figure::Roofline, BUSY)));
        let others = if near { other_values(known, kernel) } else { Vec::new() };
        let idle = idle_threads(known, kernel);
        let mut all = own.iter().flat_map(|loss| &loss.part.facts).chain(&others).chain(&idle);
        let helps = own.iter().any(|loss| loss.is_timed() && loss.has_way_out())
            || others.iter().any(|f| may_help(f))
            || all.any(|fact| gains(fact));
        if let Some(faster) = faster {
            about.push(format!("`{name}`: other values of `auto` parameters than those given are faster by the model"));
            front.push(part("Values given for `auto` parameters of", vec![faster]));
        } else if !helps {
            let open = own.iter().any(|loss| loss.us.is_none() && loss.has_way_out());
            parts.extend(road_end::of(known, kernel, source_changes::in_words(known, kernel), open));
        } else {
            parts.extend(far.map(|(_, part)| part));
        }
        losses.extend(own);
        parts.push(part("Other values of parameters and extents of", others));
        parts.push(part("Checks that pass for", holds));
        parts.push(part("Checks without a result for", unknown));
        parts.push(part("Which warps do what, in", warps(&kernel.tile.kernel)));
        parts.push(part("Threads without elements of their own, in", idle));
        let bounds = not::resident(known, kernel);
        parts.push(Part { title: format!("{}, in `{name}`", bounds.title), ..bounds });
    }
    let title = "Tensors that several launches read (which is no part of the losses above)".to_owned();
    parts.push(Part { title, facts: launches::read_again(known), decisions: Vec::new() });
    // Losses without a number are last, in the order of the checks.
    losses.sort_by(|a, b| b.us.unwrap_or(-1.0).total_cmp(&a.us.unwrap_or(-1.0)));
    let mut all: Vec<Part> = front.into_iter().chain(losses.into_iter().map(|loss| loss.part)).chain(parts).collect();
    all.retain(|p| !p.facts.is_empty());
    (about, all)
}

/// That losses have time in common, if their parts add up to more than the predicted time.
fn in_common(kernel: &CompiledKernel, losses: &[Costs]) -> Option<String> {
    let total = kernel.tile.whole()?.budget().total();
    let sum: f64 = losses.iter().filter_map(|loss| loss.us).sum();
    (sum > total + costs::SHOWN).then(|| {
        format!("the losses have time in common: their parts add up to {sum:.1} us, and the launch takes {total:.1} us")
    })
}

/// Other values of parameters of a kernel that is near the roofline.
fn other_values(known: &Known<'_>, kernel: &CompiledKernel) -> Vec<String> {
    let mut found = faster::of_parameters(known, kernel, Less::Time);
    found.advice.extend(source_changes::of_source(known, kernel).faster);
    let lines = advice::tried(known, kernel, found.advice, Given::Faster);
    let ways: Vec<String> = lines.ways.into_iter().map(|text| format!("{WAY_OUT}{text}")).collect();
    let p = kernel.tile.prediction.as_ref().filter(|_| !ways.is_empty());
    let idle = p.and_then(demands::idle).map(|(note, _)| note);
    idle.into_iter().chain(found.facts).chain(ways).collect()
}

/// The checks of a kernel.
struct Judged {
    holds: Vec<String>,
    unknown: Vec<String>,
    /// Checks without a result, and checks that fail.
    open: usize,
    failed: usize,
    /// The latter, and what else costs time.
    losses: Vec<Costs>,
}

fn judged(known: &Known<'_>, kernel: &CompiledKernel) -> Judged {
    let mut all = Judged { holds: Vec::new(), unknown: Vec::new(), open: 0, failed: 0, losses: Vec::new() };
    for what in demands(known, kernel) {
        match not::judged(known, kernel, what) {
            DemandStatus::Holds => all.holds.push(format!("`{what}`")),
            // Of a kernel without a prediction, that of the time says why.
            DemandStatus::Unknown(_) if is_of_bytes(what) => {}
            DemandStatus::Unknown(why) => {
                all.open += 1;
                all.unknown.push(format!("`{what}`: {}", why.message));
                let places = said::places_of(known, &why.places);
                all.unknown.extend(places.into_iter().map(|place| format!("  {place}")));
            }
            DemandStatus::Broken(broken) => {
                let us = costs::of_loss(kernel, what);
                // Tiles of products are loaded again, which costs nothing while products hide it.
                let has_products = !kernel.report.mma.is_empty();
                if is_of_bytes(what) && has_products && us.is_none_or(|us| us < costs::SHOWN) {
                    continue;
                }
                all.failed += 1;
                all.losses.push(Costs { us, part: part_of(known, kernel, what, broken, us) });
            }
        }
    }
    if let Some((us, message, facts)) = launches::copies(known, kernel) {
        let title = format!("{}: `{}`: {message}", costs::in_words(kernel, us), kernel.tile.kernel.name);
        all.losses.push(Costs { us, part: Part { title, facts, decisions: Vec::new() } });
    }
    if let Some((us, message, facts)) = masked::of(known, kernel) {
        let title = format!("{}: `{}`: {message}", costs::in_words(kernel, Some(us)), kernel.tile.kernel.name);
        all.losses.push(Costs { us: Some(us), part: Part { title, facts, decisions: Vec::new() } });
    }
    all.losses.extend([Term::Rows, Term::Combining].into_iter().filter_map(|term| of_term(known, kernel, term)));
    all
}

/// A term of the predicted time for which no property stands: rows of TMA boxes that take longer than their bytes, and atomic
/// operations.
fn of_term(known: &Known<'_>, kernel: &CompiledKernel, term: Term) -> Option<Costs> {
    let p = kernel.tile.whole().filter(|p| p.unknown.is_none())?;
    let us = p.budget().part(term);
    let (message, places, ways) = match term {
        Term::Rows => (
            "rows of TMA boxes are short, or cross lines",
            demands::box_rows::places(p),
            demands::box_rows::ways_out(&kernel.tile.specialized, p),
        ),
        _ => (
            "atomic operations take longer than what other units do",
            demands::combined::places(p),
            demands::combined::ways_out(p),
        ),
    };
    if us < costs::SHOWN || places.is_empty() {
        return None;
    }
    let advice = ways.iter().flat_map(|way| ways_out::of_way_out(known, kernel, way)).collect();
    let lines = advice::tried(known, kernel, advice, Given::NotSlower);
    let mut facts = said::places_of(known, &places);
    facts.extend(lines.facts);
    facts.extend(lines.ways.into_iter().take(SHOWN).map(|text| format!("{WAY_OUT}{text}")));
    let (cost, name) = (costs::in_words(kernel, Some(us)), &kernel.tile.kernel.name);
    let title = format!("{cost}: `{name}`: {message}");
    Some(Costs { us: Some(us), part: Part { title, facts, decisions: Vec::new() } })
}

fn is_of_bytes(what: What) -> bool {
    matches!(what, What::AtMost(Figure::Bytes, _))
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
    std::iter::once(fact).chain(ways.into_iter().map(|text| format!("{WAY_OUT}{text}"))).collect()
}

/// What is asked of a kernel. Tensor cores are for products, and loads ahead for loops that fill shared memory.
fn demands(known: &Known<'_>, kernel: &CompiledKernel) -> Vec<What> {
    let mut all = vec![What::AtLeast(Figure::Roofline, BUSY), What::AtMost(Figure::Padding, PADDING)];
    all.extend([What::AtMost(Figure::Bytes, BYTES), What::Has(Property::NoSpills)]);
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
fn part_of(known: &Known<'_>, kernel: &CompiledKernel, what: What, broken: Broken, us: Option<f64>) -> Part {
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
    facts.extend(ways.into_iter().map(|text| format!("{WAY_OUT}{text}")));
    facts.push(format!("more: --not '{what}'"));
    let (cost, name) = (costs::in_words(kernel, us), &kernel.tile.kernel.name);
    let title = format!("{cost}: `{name}` does not meet `{what}`: {message}");
    Part { title, facts, decisions: Vec::new() }
}
