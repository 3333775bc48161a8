//! What is between the predicted time and the work of the busiest unit, by the model's own terms.

use super::by_clock::{self, computes};
use super::code::{Broken, Code, declined};
use super::loaded_again;
use super::loop_copies;
use super::way_out::{By, WayOut};
use super::{box_rows, combined};
use crate::compile::attribution;
use tilec_ir::atoms::Atom;
use tilec_ir::diag::{Span, counted};
use tilec_ir::iteration_time::IterationTime;
use tilec_ir::missed_paths::FastPath;
use tilec_passes::choose::{Card, Prediction, Term, TimeBudget};
use tilec_passes::occupancy::Occupancy;

/// Share of the time beyond the busiest unit from which on places and ways out of a term are said.
const ADVISED: f64 = 0.2;
/// How many times the minimum of bytes are moved from which on it is said that elements are loaded again.
const AGAIN: f64 = 1.05;
/// Share of the predicted time from which on the launch itself is what takes long.
const LAUNCH: f64 = 0.5;

/// A prediction that is too far from the work of the busiest unit: with what is between them, where, and what takes less.
pub(super) fn between(code: &Code<'_>, p: &Prediction, budget: &TimeBudget, broken: Broken) -> Broken {
    let mut notes = broken.notes;
    notes.push(sum(p, budget));
    if budget.part(Term::Launch) > LAUNCH * budget.total() {
        let change = vec![WayOut::by_hand(
            "there is little work for a launch: more of it in one launch, or launches in a CUDA graph",
        )];
        return Broken { notes, change, ..broken };
    }
    let (busiest, _) = p.busiest();
    let beside = || budget.parts().filter(|(term, _)| *term != busiest && *term != Term::Launch);
    let all: f64 = beside().map(|(_, us)| us).sum();
    let large: Vec<Term> = beside().filter(|(_, us)| *us > ADVISED * all).map(|(term, _)| term).collect();
    let (mut places, mut change, mut path) = (Vec::new(), Vec::new(), None);
    if let Some((note, ways)) = idle(p) {
        notes.push(note);
        change.extend(ways);
    }
    for (span, note, way) in combined::added_together(code.tile.specialized, p) {
        places.push((span, note));
        change.push(WayOut::by_hand(way));
    }
    for (span, note, way) in loop_copies::overwritten(code.tile.specialized) {
        places.push((span, note));
        change.push(WayOut::by_hand(way));
    }
    places.extend(iterations(code));
    places.extend(by_clock::iterations(code));
    // The busiest unit, too, has work that larger tiles would not have.
    let repeats =
        |term: &Term| *term == Term::L2 && p.atom.is_some() || *term == Term::Memory && p.bytes > AGAIN * p.least_bytes;
    if large.iter().chain([&busiest]).any(repeats) {
        places.extend(loaded_again::by_blocks(code.tile.specialized, p));
    }
    for term in large {
        let own = attribution::of_term(code.tile.kernel, code.report, p, term);
        let paced = |span: Span| {
            by_clock::variables(code).contains(&span)
                || code.tile.iteration_times.iter().any(|pace| pace.in_clocks && pace.variable == span)
        };
        let awaits = |span: Span| code.tile.awaited.iter().any(|own| own.variable == span);
        if term == Term::Latency {
            places.extend(code.awaited());
        }
        if term == Term::Ends && p.atom.is_none() {
            places.extend(loop_copies::awaited(code.tile.specialized));
        }
        if term == Term::Copies {
            places.extend(code.tile.copied.iter().map(|o| (o.span, o.reason())));
        }
        // Of loads that are repeated it is said why.
        let said = repeats(&term);
        let own = own.into_iter().filter(|_| !said);
        places.extend(own.filter(|&(span, _)| term != Term::Latency || !paced(span) && !awaits(span)));
        path = path.or_else(|| missed_path(code, term));
        notes.extend(reason(code, p, term));
        notes.extend(assumed(code, p).filter(|_| matches!(term, Term::Ends | Term::Latency)));
        change.extend(ways_out(code, p, term));
    }
    Broken { notes, places, change, path, ..broken }
}

/// The resident blocks on which the time rests that blocks wait, if the code has others.
fn assumed(code: &Code<'_>, p: &Prediction) -> Option<String> {
    let is = code.resident();
    (code.assembled && is != p.resident).then(|| {
        format!(
            "this waiting is predicted for {} of {} on a multiprocessor, as the model assumes before there is code: by the code there are {} of {}",
            counted(p.resident as usize, "resident block"),
            counted(p.threads as usize, "thread"),
            counted(is as usize, "resident block"),
            counted(code.report.threads as usize, "thread"),
        )
    })
}

/// The predicted time as a sum, which says where work of a unit overlaps with others.
fn sum(p: &Prediction, budget: &TimeBudget) -> String {
    /// Microseconds that rounding may take.
    const ROUNDED: f64 = 0.1;
    let hidden = budget.parts().any(|(term, us)| 1e6 * p.terms.of(term) > us + ROUNDED);
    format!("{budget}{}", if hidden { "; of overlapping work, the part that adds time" } else { "" })
}

/// Blocks for each multiprocessor below which it is said that many are idle.
const IDLE: f64 = 0.5;

/// Multiprocessors without a block. `tilec why` itself tries other tiles.
pub(crate) fn idle(p: &Prediction) -> Option<(String, Vec<WayOut>)> {
    let sms = f64::from(Card::from_name(p.card)?.sms);
    let blocks = counted(p.blocks as usize, "block");
    match p.atom {
        None if p.blocks < IDLE * sms => Some((
            format!("{blocks} of {sms:.0} that multiprocessors could have one each: the others are idle"),
            vec![WayOut::by_hand(
                "more blocks, each with a part of a long loop (blocks store their parts, or add to the result: `copy .. add`)",
            )],
        )),
        Some(_) if p.blocks < sms => Some((
            format!(
                "the launch has {blocks} for {sms:.0} multiprocessors: {:.0} are idle; smaller tiles, or a reduction that several blocks share, make more blocks",
                sms - p.blocks.floor()
            ),
            Vec::new(),
        )),
        _ => None,
    }
}

/// What an iteration takes of each unit, where the schedule of a loop counts clocks: its order hides no more than that.
fn iterations(code: &Code<'_>) -> Vec<(Span, String)> {
    let of = |pace: &IterationTime| {
        let units: Vec<String> = pace.units.iter().map(|(unit, clocks)| format!("{unit} {clocks}")).collect();
        let awaits = code.tile.awaited.iter().any(|own| own.variable == pace.variable);
        let besides = if awaits { " besides its waits for loads" } else { "" };
        (
            pace.variable,
            format!(
                "by its schedule an iteration takes {} clocks{besides}, and works of these: {}",
                pace.clocks,
                units.join(", ")
            ),
        )
    };
    let mut all: Vec<(Span, String)> = Vec::new();
    for fact in code.tile.iteration_times.iter().filter(|pace| pace.in_clocks).map(of) {
        if !all.contains(&fact) {
            all.push(fact);
        }
    }
    all
}

/// The fast path whose loss a term is for.
fn missed_path(code: &Code<'_>, term: Term) -> Option<FastPath> {
    let paths: &[FastPath] = match term {
        Term::Latency => &[FastPath::Ahead, FastPath::Asynchronous, FastPath::Overlap],
        Term::Shared => &[FastPath::Banks, FastPath::Wgmma],
        Term::Products => &[FastPath::Wgmma],
        Term::Ends => &[FastPath::StagedStores],
        Term::Conflicts => &[FastPath::Banks],
        Term::L1 | Term::L2 | Term::Memory | Term::Barriers | Term::Uneven => &[],
        Term::Sectors | Term::Rows | Term::Combining | Term::Issue | Term::Copies | Term::Launch => &[],
    };
    paths.iter().copied().find(|&path| declined(code.tile, path).next().is_some())
}

/// What takes the time of a term.
fn reason(code: &Code<'_>, p: &Prediction, term: Term) -> Option<String> {
    let asynchronous = |atom: &str| Atom::from_name(atom).is_some_and(|a| a.row().asynchronous());
    let text = match term {
        Term::Shared if code.report.mma.iter().any(|m| !asynchronous(&m.atom)) => {
            "each warp loads its rows and columns of both tiles into registers"
        }
        Term::L1 => "a block loads the same elements again, for other elements of its result",
        Term::L2 if p.atom.is_some() => "a block loads its rows and columns of the operands for itself",
        Term::Memory if p.bytes > AGAIN * p.least_bytes => {
            return Some(format!(
                "{:.2} times the bytes of the tensors are moved: tiles load elements again",
                p.bytes / p.least_bytes.max(1.0)
            ));
        }
        Term::Combining => {
            "the second-level cache combines values with memory: a limited number of sectors per clock, and those of one address one after the other"
        }
        Term::Copies => "operands are copied by launches in front of the kernel (`align-rows`)",
        Term::Barriers => "warps synchronise in every iteration",
        Term::Ends if p.atom.is_some() => {
            "a block has no products in flight while it fills its pipeline and stores its result"
        }
        Term::Ends if p.places.iter().any(|place| place.global && !place.store) => {
            "a block waits for what it loads before it stores"
        }
        Term::Latency if !code.tile.awaited.is_empty() => "iterations wait for what threads load to registers",
        Term::Latency if code.tile.block_time.is_some() => return by_clock::reason(code),
        Term::Latency => {
            let scheduled = scheduled(code);
            if scheduled.is_empty() || computes(code.tile.specialized, &scheduled) {
                return None;
            }
            "no arithmetic is between the products of an iteration: it waits for slots, issues its products, and waits for them"
        }
        _ => return None,
    };
    Some(text.to_owned())
}

/// The variables of loops whose schedule counts clocks.
fn scheduled(code: &Code<'_>) -> Vec<Span> {
    code.tile.iteration_times.iter().filter(|pace| pace.in_clocks).map(|pace| pace.variable).collect()
}

/// What takes less time of a term. Other values of parameters `tilec why` tries itself.
fn ways_out(code: &Code<'_>, p: &Prediction, term: Term) -> Vec<WayOut> {
    let report = code.report;
    match term {
        Term::Latency => latency(code, p),
        Term::Shared => {
            let conflicts = report.shared.iter().any(|s| s.conflicts() > 0);
            let text = "`tilec why --not 'no bank conflicts'` shows what prevents a conflict-free layout";
            if conflicts { vec![WayOut::new(text, By::Question)] } else { Vec::new() }
        }
        Term::L1 | Term::L2 | Term::Memory | Term::Barriers | Term::Uneven | Term::Launch => Vec::new(),
        Term::Products => {
            let scalar = report.mma.iter().any(|m| Atom::from_name(&m.atom).is_none_or(|a| !a.row().tensor_core));
            match scalar {
                true => {
                    vec![WayOut::new("`tilec why --not 'tensor cores'` says why the products have none", By::Question)]
                }
                false => one_more_block(code, p).into_iter().map(resident_warps).collect(),
            }
        }
        Term::Ends => ends(code, p),
        Term::Copies => code.tile.copied.iter().map(|o| WayOut::new(o.way_out(), By::Parameters)).collect(),
        Term::Sectors => {
            vec![WayOut::new(
                "`tilec why --not coalesced` says which accesses use parts of sectors, and why",
                By::Question,
            )]
        }
        Term::Rows => box_rows::ways_out(code.tile.specialized, p),
        Term::Combining => combined::ways_out(p),
        Term::Issue => {
            vec![WayOut::by_hand(
                "instruction issue takes longer than memory: fewer instructions for each element are faster (wider accesses, packed 16-bit types, less arithmetic)",
            )]
        }
        Term::Conflicts => {
            vec![WayOut::new(
                "`tilec why --not 'no bank conflicts'` shows what prevents a conflict-free layout",
                By::Question,
            )]
        }
    }
}

fn resident_warps(blocks: u64) -> WayOut {
    let text = format!("more resident warps hide the latency of products (`tilec why --not 'resident {blocks}'`)");
    WayOut::new(text, By::Resident(blocks))
}

/// Resident blocks from which on one more hides little.
const MANY: u64 = 8;

/// One block more than are resident, if a multiprocessor has places for it and the launch has blocks for it.
fn one_more_block(code: &Code<'_>, p: &Prediction) -> Option<u64> {
    let is = code.occupancy();
    let more = is.resident() + 1;
    (more <= is.warps.min(is.blocks).min(MANY) && p.waves > 1.0).then_some(more)
}

/// What hides the ends of a block.
fn ends(code: &Code<'_>, p: &Prediction) -> Vec<WayOut> {
    if p.atom.is_none() && p.places.iter().all(|place| !place.global || place.store) {
        return Vec::new();
    }
    let another = one_more_block(code, p).map(|n| {
        let text = format!("another resident block hides that (`tilec why --not 'resident {n}'` says what it takes)");
        WayOut::new(text, By::Resident(n))
    });
    let straight = p.atom.is_none() && !loop_copies::straight(code.tile.specialized).is_empty();
    let through = straight.then(|| {
        let text = "copy the tiles of the loop through a buffer (`let s = smem ..` in front of it), whose slots are loaded ahead";
        WayOut::new(text, By::Buffer)
    });
    another.into_iter().chain(through).collect()
}

/// Whether channels with a slot more run further ahead: copies land by themselves, and as many blocks stay resident.
fn one_more_slot_fits(code: &Code<'_>) -> bool {
    let (report, target) = (code.report, code.tile.target);
    let slots = report.tiles.iter().filter(|t| t.slots == u64::from(report.stages));
    let more: u64 = slots.map(|t| t.bytes).sum();
    let resident =
        |shared| Occupancy::new(target, u64::from(report.threads), u64::from(code.registers), shared).resident();
    let shared = report.smem_bytes + more;
    target.has_asynchronous_copies()
        && shared <= target.smem_per_block()
        && resident(shared) >= resident(report.smem_bytes)
}

/// What waits for loads, and how it would wait less.
fn latency(code: &Code<'_>, p: &Prediction) -> Vec<WayOut> {
    let report = code.report;
    let mut out = Vec::new();
    if code.tile.block_time.is_some() {
        return by_clock::latency(code);
    }
    // Loads of a scheduled loop run ahead by themselves: what is waited for is arithmetic, if there is any.
    let scheduled = scheduled(code);
    if !scheduled.is_empty() {
        out.extend(computes(code.tile.specialized, &scheduled).then(|| {
            WayOut::by_hand("products wait for what is computed of the sums in front of them: less arithmetic for each element has them wait less (`tilec why FILE source:LINE` of a product says what overlaps it)")
        }));
        return out;
    }
    if report.stages >= 2 && one_more_slot_fits(code) {
        let text = format!(
            "`stages {}` in the schedule: the deepest channel has {}, and more run further ahead",
            report.stages + 1,
            counted(report.stages as usize, "slot"),
        );
        out.push(WayOut::new(text, By::Schedule("stages", u64::from(report.stages) + 1)));
    }
    let narrow =
        report.copies.iter().filter(|c| c.in_loop && (1..16).contains(&c.global_bytes)).map(|c| c.global_bytes);
    if let Some(bytes) = narrow.min() {
        let text = format!(
            "loads of the loop have {} each: wider ones are fewer (`tilec why --not vectorised`)",
            counted(bytes as usize, "byte")
        );
        out.push(WayOut::new(text, By::Question));
    }
    if let Some(2) = one_more_block(code, p) {
        let text = "another resident block works while this one waits (`tilec why --not 'resident 2'`)";
        out.push(WayOut::new(text, By::Resident(2)));
    }
    out
}
