//! What is between the predicted time and the work of the busiest unit, by the model's own terms.

use super::code::{Broken, Code, declined};
use crate::compile::attribution;
use tilec_ir::atoms::Atom;
use tilec_ir::diag::{Span, counted};
use tilec_ir::entities::{Expr, Value};
use tilec_ir::iteration_time::IterationTime;
use tilec_ir::kernel::{ExprData, Kernel, StmtData};
use tilec_ir::missed_paths::FastPath;
use tilec_ir::names::Parts;
use tilec_ir::typing::{ViewDim, resolve_view};
use tilec_passes::choose::{Card, Prediction, Term};
use tilec_passes::occupancy::Occupancy;

/// A term is reported from this share of the time beyond the busiest unit.
const NAMED: f64 = 0.05;
const ADVISED: f64 = 0.2;
/// Share of the predicted time from which on the launch itself is what takes long.
const LAUNCH: f64 = 0.5;

/// A prediction that is too far from the work of the busiest unit: with what is between them, where, and what takes less.
pub(super) fn between(code: &Code<'_>, p: &Prediction, broken: Broken) -> Broken {
    let (busiest, _) = p.busiest();
    let beside = p.beyond_busiest_unit();
    let all: f64 = beside.iter().map(|(_, seconds)| seconds).sum();
    let from = |share: f64| beside.iter().filter(move |(_, seconds)| *seconds > share * all).copied();
    let named: Vec<String> =
        from(NAMED).map(|(term, seconds)| format!("{} {:.1} us", words(term), 1e6 * seconds)).collect();
    let mut notes = broken.notes;
    let launch = p.seconds - p.terms.of(p.busiest().0) - all;
    if launch > LAUNCH * p.seconds {
        notes.push(format!("the launch itself takes {:.1} us of them", 1e6 * launch));
        let change =
            vec!["there is little work for a launch: more of it in one launch, or launches in a CUDA graph".to_owned()];
        return Broken { notes, change, ..broken };
    }
    if !named.is_empty() {
        notes.push(format!("in addition to {}: {}", busiest.name(), named.join(", ")));
    }
    notes.extend(iterations(code));
    let (mut places, mut change, mut path) = (Vec::new(), Vec::new(), None);
    if let Some((note, way)) = idle(p) {
        notes.push(note);
        change.push(way);
    }
    for (span, note, way) in added_together(code.tile.specialized, p) {
        places.push((span, note));
        change.push(way);
    }
    for (term, _) in from(ADVISED) {
        places.extend(attribution::of_term(code.tile.kernel, code.report, p, term));
        path = path.or_else(|| missed_path(code, term));
        change.extend(ways_out(code, p, term));
    }
    Broken { notes, places, change, path, ..broken }
}

/// Blocks for each multiprocessor below which it is said that many are idle.
const IDLE: f64 = 0.5;

/// Multiprocessors without a block, of a kernel without products: those of products are in the term of uneven waves.
fn idle(p: &Prediction) -> Option<(String, String)> {
    let sms = f64::from(Card::from_name(p.card).filter(|_| p.atom.is_none())?.sms);
    (p.blocks < IDLE * sms).then(|| {
        let blocks = counted(p.blocks as usize, "block");
        (
            format!("{blocks} of {sms:.0} that multiprocessors could have one each: the others are idle"),
            "more blocks: smaller tiles, or a part of a long loop for each block (blocks store their parts, or add to the result: `copy .. add`)".to_owned(),
        )
    })
}

/// Stores to which several blocks along an axis of the grid add, although the launch has enough blocks without it.
fn added_together(k: &Kernel, p: &Prediction) -> Vec<(Span, String, String)> {
    let mut out = Vec::new();
    k.walk(k.body, &mut |k, _, s| {
        let StmtData::Copy { dst, attrs, .. } = &k.stmts[s] else { return };
        let Some(view) = resolve_view(k, *dst).filter(|view| attrs.reduce.is_some() && k.tensor_ty(view.base).is_some())
        else {
            return;
        };
        let reads = |v: Value| view.dims.iter().flat_map(ViewDim::starts).any(|&e| depends_on(k, e, v));
        for axis in k.grid.iter().filter(|axis| !reads(axis.index)) {
            let Some(count) = k.as_int(axis.extent).filter(|&n| n > 1) else { continue };
            let waves = p.waves / count as f64;
            if waves < 1.0 {
                continue;
            }
            let (index, tensor) = (&k.values[axis.index].name, &k.values[view.base].name);
            out.push((
                k.stmt_spans[s],
                format!("{count} blocks along `{index}` add to the same elements of `{tensor}`"),
                format!(
                    "fewer blocks along `{index}`: without it the launch still has {waves:.1} waves, and stores `{tensor}` once"
                ),
            ));
        }
    });
    out
}

/// Whether an index depends on a variable, through names too.
fn depends_on(k: &Kernel, e: Expr, v: Value) -> bool {
    let mut parts = Parts::of(k, e);
    let mut found = false;
    while let Some(e) = parts.take() {
        parts.inside(e);
        found |= matches!(k.exprs[e], ExprData::Ref(w) if w == v);
    }
    found
}

/// What an iteration takes of each unit, where the schedule of a loop counts clocks: its order hides no more than that.
fn iterations(code: &Code<'_>) -> Vec<String> {
    let of = |pace: &IterationTime| {
        let units: Vec<String> = pace.units.iter().map(|(unit, clocks)| format!("{unit} {clocks}")).collect();
        format!("by its schedule an iteration takes {} clocks, and works of these: {}", pace.clocks, units.join(", "))
    };
    code.tile.iteration_times.iter().filter(|pace| pace.in_clocks).map(of).collect()
}

/// A term as a share of the time beyond the busiest unit.
fn words(term: Term) -> String {
    match Term::UNITS.contains(&term) {
        true => format!("the part of {} that does not overlap", term.name()),
        false => term.name().to_owned(),
    }
}

/// The fast path whose loss a term is for.
fn missed_path(code: &Code<'_>, term: Term) -> Option<FastPath> {
    let paths: &[FastPath] = match term {
        Term::Latency => &[FastPath::Ahead, FastPath::Asynchronous, FastPath::Overlap],
        Term::Shared => &[FastPath::Banks, FastPath::Wgmma],
        Term::Products => &[FastPath::Wgmma],
        Term::Ends => &[FastPath::StagedStores],
        Term::Conflicts => &[FastPath::Banks],
        Term::L2 | Term::Memory | Term::Barriers | Term::Uneven | Term::Sectors | Term::Issue => &[],
    };
    paths.iter().copied().find(|&path| declined(code.tile, path).next().is_some())
}

/// What takes less time of a term.
fn ways_out(code: &Code<'_>, p: &Prediction, term: Term) -> Vec<String> {
    let (k, report) = (code.tile.kernel, code.report);
    match term {
        Term::Latency => latency(code, p),
        Term::Shared => {
            let conflicts = report.shared.iter().any(|s| s.conflicts() > 0);
            let products = report.mma.iter().any(|m| Atom::from_name(&m.atom).is_none_or(|a| !a.row().asynchronous()));
            let mut out = Vec::new();
            if conflicts {
                out.push("`tilec why --not 'no bank conflicts'` shows what prevents a conflict-free layout".to_owned());
            }
            if products {
                out.push("each warp loads its rows and columns of both tiles into registers: a larger `warp_tile` loads less for each product".to_owned());
            }
            out
        }
        Term::L2 if p.atom.is_some() => {
            let cluster = match code.tile.target.has_tensor_copies() && k.schedule.cluster.is_empty() {
                true => "; blocks of a `cluster` load their common operand once",
                false => "",
            };
            vec![format!(
                "a block loads its rows and columns of the operands for itself: larger tiles load less for each product{cluster}"
            )]
        }
        Term::Memory if p.bytes > 1.05 * p.least_bytes => vec![format!(
            "{:.2} times the bytes of the tensors are moved: larger tiles, or another `raster`, reload less",
            p.bytes / p.least_bytes.max(1.0)
        )],
        Term::L2 | Term::Memory => Vec::new(),
        Term::Products => {
            let scalar = report.mma.iter().any(|m| Atom::from_name(&m.atom).is_none_or(|a| !a.row().tensor_core));
            match scalar {
                true => vec!["`tilec why --not 'tensor cores'` says why the products have none".to_owned()],
                false => one_more_block(code, p)
                    .map(|n| {
                        format!("more resident warps hide the latency of products (`tilec why --not 'resident {n}'`)")
                    })
                    .into_iter()
                    .collect(),
            }
        }
        Term::Barriers => {
            vec![
                "warps synchronise in every iteration: deeper tiles along the reduction have fewer iterations"
                    .to_owned(),
            ]
        }
        Term::Ends => ends(code, p),
        Term::Sectors => {
            vec!["`tilec why --not coalesced` says which accesses use parts of sectors, and why".to_owned()]
        }
        Term::Issue => {
            vec!["instruction issue takes longer than memory: fewer instructions for each element are faster (wider accesses, packed 16-bit types, less arithmetic)".to_owned()]
        }
        Term::Conflicts => {
            vec!["`tilec why --not 'no bank conflicts'` shows what prevents a conflict-free layout".to_owned()]
        }
        Term::Uneven => vec![format!(
            "{} of blocks that are resident at once: {}{}",
            attribution::waves(p),
            match p.waves < 1.0 {
                true => "smaller tiles are more blocks for the idle multiprocessors",
                false => "tiles of another size divide more evenly",
            },
            match code.tile.target.has_tensor_copies() && p.atom.is_some() && p.blocks <= p.tiles {
                true => ", and `stream_k 1` shares the last tiles",
                false => "",
            }
        )],
    }
}

/// Resident blocks from which on one more hides little.
const MANY: u64 = 8;

/// One block more than are resident, if a multiprocessor has places for it and the launch has blocks for it.
fn one_more_block(code: &Code<'_>, p: &Prediction) -> Option<u64> {
    let report = code.report;
    let (threads, registers) = (u64::from(report.threads), u64::from(code.registers));
    let is = Occupancy::new(code.tile.target, threads, registers, report.smem_bytes);
    let more = is.resident() + 1;
    (more <= is.warps.min(is.blocks).min(MANY) && p.waves > 1.0).then_some(more)
}

/// What hides the ends of a block.
fn ends(code: &Code<'_>, p: &Prediction) -> Vec<String> {
    let another = one_more_block(code, p)
        .map(|n| format!("another resident block hides that (`tilec why --not 'resident {n}'`)"));
    let (what, longer) = match p.atom {
        Some(_) => (
            "a block has no products in flight while it fills its pipeline and stores its result",
            Some("a longer reduction has fewer prologues and epilogues".to_owned()),
        ),
        None if p.places.iter().all(|place| !place.global || place.store) => return Vec::new(),
        None => ("a block waits for what it loads before it stores", None),
    };
    let ways: Vec<String> = another.into_iter().chain(longer).collect();
    if ways.is_empty() { Vec::new() } else { vec![format!("{what}: {}", ways.join(", or "))] }
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
fn latency(code: &Code<'_>, p: &Prediction) -> Vec<String> {
    let report = code.report;
    let mut out = Vec::new();
    // Its loads run ahead by themselves, and what is waited for is arithmetic.
    if code.tile.iteration_times.iter().any(|pace| pace.in_clocks) {
        out.push(
            "products wait for what is computed of the sums in front of them: less arithmetic for each element, or tiles of another size, have them wait less (`tilec why FILE source:LINE` of a product says what overlaps it)"
                .to_owned(),
        );
        return out;
    }
    if report.stages >= 2 && one_more_slot_fits(code) {
        out.push(format!(
            "the deepest channel has {}: more run further ahead (`tilec why --not 'stages >= {}'`)",
            counted(report.stages as usize, "slot"),
            report.stages + 1
        ));
    }
    let narrow =
        report.copies.iter().filter(|c| c.in_loop && (1..16).contains(&c.global_bytes)).map(|c| c.global_bytes);
    if let Some(bytes) = narrow.min() {
        out.push(format!(
            "loads of the loop have {} each: wider ones are fewer (`tilec why --not vectorised`)",
            counted(bytes as usize, "byte")
        ));
    }
    if let Some(2) = one_more_block(code, p) {
        out.push("another resident block works while this one waits (`tilec why --not 'resident 2'`)".to_owned());
    }
    out
}
