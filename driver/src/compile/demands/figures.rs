//! Figures: what code has, at which places most of it is, and the bound to reach.

use super::code::{Broken, Code, compared};
use super::way_out::{By, WayOut};
use super::{combined, order, roofline};
use crate::compile::attribution;
use crate::compile::report_json::Assembler;
use crate::console::render::SourceFile;
use tilec_ir::demands::{Figure, Property, What};
use tilec_ir::diag::{Span, counted};
use tilec_ir::kernel::ValueDef;
use tilec_ir::missed_paths::FastPath;
use tilec_ir::target::{REGISTERS_PER_THREAD, WARP, register_share};
use tilec_passes::MAX_SLOTS;
use tilec_passes::choose::{Kept, Prediction};
use tilec_passes::occupancy::Occupancy;

/// What registers have a part in: as assembled, else as estimated.
pub(super) fn with_registers(
    code: &Code<'_>,
    assembler: Option<&Assembler>,
    what: What,
    source: &SourceFile,
) -> Option<Broken> {
    match (what, assembler) {
        (What::AtMost(Figure::Resident, _) | What::AtLeast(Figure::Resident, _), _) => resident(code, assembler, what),
        (What::Has(Property::NoSpills), Some(by)) => spills(code, by, source),
        (What::AtMost(Figure::Registers, _) | What::AtLeast(Figure::Registers, _), Some(by)) => {
            registers(code, by, what, source)
        }
        _ => None,
    }
}

fn spills(code: &Code<'_>, by: &Assembler, source: &SourceFile) -> Option<Broken> {
    let (stored, loaded) = (by.spill_store_bytes, by.spill_load_bytes);
    let message = format!("a thread stores {stored} bytes of spilled registers and loads {loaded}");
    let mut notes = vec![format!("it has {} registers", by.registers)];
    notes.extend(by.called.iter().map(|f| {
        format!(
            "of these, a call of `{}` stores {} bytes and loads {}: a function of the assembler, which computes what the machine has no instruction for",
            f.function, f.stored, f.loaded
        )
    }));
    let places = by.spilled.iter().filter_map(|s| s.place(source)).collect();
    let fewer = WayOut::by_hand(fewer_registers(code));
    let change = resident_blocks_scheduled(code).into_iter().chain([fewer]).collect();
    (stored + loaded > 0).then(|| Broken { places, notes, change, ..Broken::new(message) })
}

/// A prediction that is too far from the roofline, for code that spills. The model does not know spills, so this names
/// them.
pub(super) fn beside_spills(code: &Code<'_>, by: &Assembler, source: &SourceFile, broken: Broken) -> Broken {
    let Some(spilled) = spills(code, by, source) else { return broken };
    let mut all = broken;
    all.places.extend(spilled.places);
    all.notes
        .push(format!("the prediction does not count spills: {} (`tilec why --not 'no spills'`)", spilled.message));
    all
}

/// A schedule that keeps several blocks resident, so that a thread has fewer registers, and whether the program or the
/// compiler set it.
fn resident_blocks_scheduled(code: &Code<'_>) -> Option<WayOut> {
    let k = code.tile.kernel;
    let blocks = k.schedule.min_ctas.and_then(|e| k.as_int(e)).filter(|&n| n > 1)?;
    // As many as a thread can have at all leave it no fewer.
    let share = register_share(code.report.threads, u32::try_from(blocks).unwrap_or(u32::MAX));
    if share >= REGISTERS_PER_THREAD {
        return None;
    }
    let text = match code.tile.specialized.schedule.min_ctas {
        Some(_) => format!(
            "`min_ctas {blocks}` in the program divides the registers of a multiprocessor among {blocks} blocks: a thread may have more with `min_ctas 1`"
        ),
        None => format!(
            "the compiler divides the registers of a multiprocessor among {blocks} blocks (`min_ctas {blocks}`): a thread may have more with `schedule {{ min_ctas 1 }}`"
        ),
    };
    Some(WayOut::new(text, By::Schedule("min_ctas", 1)))
}

fn registers(code: &Code<'_>, by: &Assembler, what: What, source: &SourceFile) -> Option<Broken> {
    let broken = compared(what, f64::from(by.registers), |x| format!("a thread has {x} registers"))?;
    let mut places: Vec<(Span, String)> = by.most_live.iter().filter_map(|m| m.place(source)).collect();
    let mut change = Vec::new();
    if let What::AtMost(_, wanted) = what {
        let (roles, taken) = attribution::roles(code.tile.specialized);
        match roles.is_empty() {
            true => {
                places.extend(attribution::registers(code.tile.kernel));
                change.push(WayOut::by_hand(fewer_registers(code)));
            }
            false => {
                places.splice(0..0, roles);
                let warps = code.report.threads / WARP;
                change.push(WayOut::by_hand(format!(
                    "roles share out the registers of the launch: warps times their `registers` come to {taken}, and {warps} warps of {wanted} to {}; have the roles take no more",
                    wanted * f64::from(warps)
                )));
            }
        }
    }
    Some(Broken { places, change, ..broken })
}

/// How a thread comes to have fewer registers.
fn fewer_registers(code: &Code<'_>) -> String {
    let largest = attribution::register_tiles(code.tile.kernel).into_iter().next();
    let most = largest.map_or(String::new(), |(words, text, _)| format!(" ({text} takes {words})"));
    format!(
        "a register tile is distributed over the threads{most}: smaller tiles, or more warps for one tile (a smaller `warp_tile`, more `threads`), take fewer registers"
    )
}

pub(super) fn shared_memory(code: &Code<'_>, what: What) -> Option<Broken> {
    let report = code.report;
    let broken = compared(what, report.smem_bytes as f64, |x| format!("a block has {x} bytes"))?;
    let less = "fewer slots (`stages`), smaller tiles, or elements of fewer bits take less".to_owned();
    let change = if let What::AtMost(..) = what { vec![WayOut::by_hand(less)] } else { Vec::new() };
    Some(Broken { places: attribution::buffers(code.tile.kernel, report), change, ..broken })
}

/// The slots of the deepest channel.
pub(super) fn stages(code: &Code<'_>, what: What) -> Option<Broken> {
    let (k, report) = (code.tile.kernel, code.report);
    let broken = compared(what, f64::from(report.stages), |x| match x as usize {
        0 | 1 => "no loop loads ahead: there is no channel of several slots".to_owned(),
        slots => format!("the deepest channel has {}", counted(slots, "slot")),
    })?;
    let What::AtLeast(_, wanted) = what else {
        return Some(Broken { places: attribution::buffers(k, report), ..broken });
    };
    let slot: u64 = report.tiles.iter().filter(|t| t.slots > 1).map(|t| t.bytes).sum();
    if slot == 0 {
        return Some(Broken { path: Some(FastPath::Ahead), ..broken });
    }
    let slots: u64 = report.tiles.iter().filter(|t| t.slots > 1).map(|t| t.bytes * t.slots).sum();
    let room = code.tile.target.smem_per_block().saturating_sub(report.smem_bytes.saturating_sub(slots));
    let fit = (room / slot).min(MAX_SLOTS);
    let note = format!(
        "a slot of all channels has {slot} bytes, and a block of {} has room for {fit} of them",
        code.tile.target.name()
    );
    let change = vec![match wanted {
        n if n > MAX_SLOTS as f64 => WayOut::by_hand(format!("a loop has at most {MAX_SLOTS} slots")),
        n if n <= fit as f64 && has_channels(code) => WayOut::by_hand(stages_text(code, n)),
        n if n <= fit as f64 => WayOut::new(stages_text(code, n), By::Schedule("stages", n as u64)),
        n => WayOut::by_hand(format!(
            "tiles of at most {} bytes together leave room for {n}; then {}",
            room / n as u64,
            stages_text(code, n)
        )),
    }];
    Some(Broken { places: attribution::buffers(k, report), notes: vec![note], change, ..broken })
}

/// Whether the program declares channels.
fn has_channels(code: &Code<'_>) -> bool {
    code.tile.specialized.values.values().any(|v| matches!(v.def, ValueDef::Channel { .. }))
}

/// The text for a number of stages: in the schedule, or at written channels.
fn stages_text(code: &Code<'_>, wanted: f64) -> String {
    if has_channels(code) {
        return format!("write `slots {wanted}` at the channels that the program declares");
    }
    let k = code.tile.kernel;
    let now = match k.schedule.stages.and_then(|e| k.as_int(e)) {
        Some(n) => format!(", which has {n} now"),
        None => String::new(),
    };
    format!("write `stages {wanted}` in the kernel's `schedule`{now}")
}

/// How many blocks are resident, by the code.
fn resident(code: &Code<'_>, assembler: Option<&Assembler>, what: What) -> Option<Broken> {
    let report = code.report;
    let (registers, from) = match assembler {
        Some(by) => (by.registers, "by the assembler"),
        None => (report.estimated_registers, "estimated"),
    };
    let (target, threads, smem) = (code.tile.target, u64::from(report.threads), report.smem_bytes);
    let is = code.occupancy();
    let few = code.launched().filter(|&n| n < is.resident());
    let mut broken = compared(what, code.resident() as f64, |x| {
        let limits = if few.is_some() { "the grid".to_owned() } else { is.limits().join(" and ") };
        format!("{} of {threads} threads on a multiprocessor, limited by {limits}", counted(x as usize, "block"))
    })?;
    broken.notes.extend(few.map(|n| {
        format!(
            "there is room for {}, and the persistent grid has {n} for each multiprocessor",
            counted(is.resident() as usize, "block")
        )
    }));
    broken
        .notes
        .push(format!("a thread has {registers} registers ({from}), and a block {smem} bytes of shared memory"));
    let What::AtLeast(_, wanted) = what else { return Some(broken) };
    broken.change.push(WayOut::new("", By::Resident(wanted.ceil() as u64)));
    let room = |registers, smem| Occupancy::new(target, threads, registers, smem);
    if (is.registers as f64) < wanted {
        let most = (1..=u64::from(REGISTERS_PER_THREAD)).rev().find(|&n| room(n, 0).registers as f64 >= wanted);
        let (roles, taken) = attribution::roles(code.tile.specialized);
        let written = !roles.is_empty();
        broken.places.extend(if written { roles } else { attribution::registers(code.tile.kernel) });
        broken.change.push(WayOut::by_hand(match most {
            Some(n) if written => {
                let share = n * threads / u64::from(WARP);
                format!(
                    "`min_ctas {wanted}`, and roles that share out at most {n} registers a thread: warps times their `registers` come to {taken}, and may come to {share}"
                )
            }
            Some(n) => format!("at most {n} registers a thread; {}", fewer_registers(code)),
            None => format!("fewer threads: {threads} of so many blocks have no registers at all"),
        }));
    }
    if (is.shared as f64) < wanted {
        let most = target.smem_of_each(wanted.ceil() as u64);
        broken.places.extend(attribution::buffers(code.tile.kernel, report));
        let text = format!("at most {most} bytes of shared memory a block: fewer slots (`stages`) or smaller tiles");
        broken.change.push(WayOut::by_hand(text));
    }
    if (is.warps as f64) < wanted {
        let text = format!("fewer threads than {threads} a block (a larger `warp_tile`, fewer `threads`)");
        broken.change.push(WayOut::by_hand(text));
    }
    if (is.blocks as f64) < wanted {
        broken.notes.push(format!(
            "a multiprocessor of {} has {} slots for blocks, and no more",
            target.name(),
            is.blocks
        ));
    }
    Some(broken)
}

/// What keeps a figure from being predicted: loops that run as often as data say.
pub(crate) fn unknown(p: &Prediction, what: What) -> Option<Broken> {
    let (What::AtMost(figure, _) | What::AtLeast(figure, _)) = what else { return None };
    if figure == Figure::Padding {
        return super::padding::by_data(p, what);
    }
    let of = p.unknown.filter(|of| of.moves || figure == Figure::Roofline)?;
    let what = match of.moves {
        true => {
            "the number of iterations of a loop that moves tiles is known at run time only, so the bytes moved are not known"
        }
        false => "the number of iterations of a loop is known at run time only, so its time is not known",
    };
    Some(Broken { places: vec![(of.span, "runs as often as data say".to_owned())], ..Broken::new(what) })
}

/// That bytes of gathered elements are estimated.
pub(crate) fn estimated(p: &Prediction) -> Option<String> {
    let first = p.places.iter().find(|place| place.gathered)?;
    Some(format!(
        "estimated: indices in memory say which elements of `{}` are accessed, and they count as random",
        first.of
    ))
}

/// A demand on what the model predicts.
pub(super) fn predicted(code: &Code<'_>, figure: Figure, what: What) -> Option<Broken> {
    let p = code.tile.prediction?;
    let mut broken = match figure {
        Figure::Bytes => bytes(code, p, what),
        Figure::Padding => super::padding::padding(p, what),
        Figure::Roofline => {
            let ((unit, share), budget) = (p.busiest(), p.budget());
            let broken = compared(what, share, |x| {
                let (us, works, x) = (budget.total(), budget.part(unit), (100.0 * x).floor() / 100.0);
                format!(
                    "{us:.1} us are predicted, {x:.2} of the roofline: the busiest unit ({}) works {works:.1} us",
                    unit.name()
                )
            });
            broken.map(|b| roofline::between(code, p, &budget, b))
        }
        _ => unreachable!("bug: nothing predicted"),
    }?;
    let sizes: Vec<String> = p.sizes.iter().map(|(name, n)| format!("{name}={n}")).collect();
    if figure != Figure::Padding {
        broken.notes.extend(estimated(p));
    }
    let way = code.tile.caller.sizes();
    let given = if p.sizes_given { String::new() } else { format!("; {way} gives others") };
    broken.notes.push(match sizes[..] {
        [] => format!("predicted for {}", p.card),
        _ => format!("predicted for {} with {}{given}", p.card, sizes.join(" ")),
    });
    Some(broken)
}

/// The share of a launch's bytes from which on partly used sectors of a store are said.
const LITTLE: f64 = 0.01;

/// Reads of a tensor beyond which it is said how often it is read.
const AGAIN: f64 = 1.01;

fn bytes(code: &Code<'_>, p: &Prediction, what: What) -> Option<Broken> {
    let broken = compared(what, p.bytes / p.least_bytes.max(1.0), |x| {
        // Rounded away from what is demanded, so that the number breaks the demand as it is read.
        let times = (100.0 * x).ceil() / 100.0;
        format!("{:.0} bytes are moved, {times:.2} times the {:.0} of the tensors", p.bytes, p.least_bytes)
    })?;
    let (mut notes, mut wider, mut repeats) = (Vec::new(), Vec::new(), false);
    for (tensor, times) in p.reads.iter().filter(|(_, times)| *times > AGAIN) {
        let unused = moved_for_used(code, p, tensor).min(*times);
        let reads = times / unused;
        let gathered = p.places.iter().any(|place| place.gathered && !place.store && place.of == *tensor);
        repeats |= reads > AGAIN && !gathered;
        if reads > AGAIN && gathered {
            notes.push(format!(
                "`{tensor}` is read {reads:.2} times from memory: of what indices name again, the cache holds a part"
            ));
        } else if reads > AGAIN {
            notes.push(format!("`{tensor}` is read {reads:.2} times from memory"));
        }
        if unused > AGAIN {
            notes.push(format!(
                "accesses to `{tensor}` use {:.0} % of the bytes of their sectors, and move all of them",
                100.0 / unused
            ));
            let own = code.report.copies.iter().filter(|c| c.tensor == *tensor && c.sector_use < 1.0);
            wider.extend(own.filter_map(|c| order::wider(code.tile.kernel, c)));
        }
    }
    let mut change: Vec<WayOut> = Vec::new();
    let (again, ways) = combined::again(p);
    let mut together = Vec::new();
    if !again.is_empty() {
        for (span, note, way) in combined::added_together(code.tile.specialized, p) {
            together.push((span, note));
            change.push(WayOut::by_hand(way));
        }
    }
    notes.extend(again);
    let stores = p.places.iter().filter(|place| place.global && place.store && place.combined.is_none());
    for place in stores.filter(|place| attribution::times(code.report, place) > AGAIN) {
        let unused = attribution::times(code.report, place);
        if place.bytes * (unused - 1.0) > LITTLE * p.bytes {
            notes.push(format!(
                "stores to `{}` use {:.0} % of the bytes of their sectors, and move all of them",
                place.of,
                100.0 / unused
            ));
            let own = code.report.copies.iter().filter(|c| (c.span, &c.tensor) == (place.span, &place.of));
            wider.extend(own.filter_map(|c| order::wider(code.tile.kernel, c)));
        }
    }
    // Of windows that overlap, nothing is loaded twice in a block.
    let edges = p.places.iter().any(|place| place.global && place.once < 1.0);
    for way in ways.into_iter().chain(wider) {
        change.extend((!change.contains(&way)).then_some(way));
    }
    match (what, p.atom) {
        (What::AtMost(..), None) if edges => {
            let text = "larger blocks: of windows that overlap, a smaller share is beyond the edges of a block";
            change.push(WayOut::new(text, By::Parameters));
        }
        (What::AtMost(..), None) if repeats => {
            change.push(WayOut::by_hand("load each tensor once, and keep what is used again in registers"));
        }
        _ => {}
    }
    let places = together.into_iter().chain(attribution::copies(p)).collect();
    Some(Broken { places, notes, change, ..broken })
}

/// Bytes of the sectors that loads of a tensor touch, for each byte that they use.
fn moved_for_used(code: &Code<'_>, p: &Prediction, tensor: &str) -> f64 {
    let own = || p.places.iter().filter(|place| place.global && !place.store && place.of == tensor);
    let (used, moved) = own().fold((0.0, 0.0), |(used, moved), place| {
        // The rest of a sector is in a cache when the next iteration wants it.
        let times = if place.kept == Kept::Nowhere { attribution::times(code.report, place) } else { 1.0 };
        (used + place.bytes, moved + place.bytes * times)
    });
    if used > 0.0 { moved / used } else { 1.0 }
}
