//! What the clock of written roles says: what iterations take, what they wait for, and what would have them wait less.

use super::code::{Broken, Code, CompiledKernel};
use super::way_out::{By, WayOut};
use tilec_ir::diag::{Span, counted};
use tilec_ir::entities::Expr;
use tilec_ir::kernel::{ExprData, Kernel, StmtData};
use tilec_ir::typing::{resolve_view, type_of};
use tilec_passes::choose::{BlockTime, Card, ChannelTime, HeldLoad, LoopTime, Prediction};

fn loops<'a>(code: &Code<'a>) -> impl Iterator<Item = &'a LoopTime> {
    code.tile.block_time.into_iter().flat_map(|block| &block.loops)
}

/// The variables of the loops.
pub(super) fn variables(code: &Code<'_>) -> Vec<Span> {
    loops(code).map(|own| own.variable).collect()
}

/// What an iteration of each loop takes.
pub(super) fn iterations(code: &Code<'_>) -> Vec<(Span, String)> {
    loops(code).map(|own| (own.variable, iteration(own))).collect()
}

/// What an iteration takes, and what units work in it.
pub(crate) fn iteration(own: &LoopTime) -> String {
    let work = &own.work;
    let units = [
        ("tensor cores", work.tensor),
        ("special functions", work.special),
        ("issue slots", work.issue),
        ("bytes loaded", work.loaded),
    ];
    let units = units.into_iter().filter(|(_, n)| *n > 0.0).map(|(name, n)| format!("{name} {n:.0}"));
    format!(
        "by the clock of the roles an iteration of `{}` takes {:.0} clocks, and works of these: {}",
        own.role,
        own.clocks,
        units.collect::<Vec<_>>().join(", ")
    )
}

/// What an iteration of a loop costs that runs as often as data say, beside that its number is not known.
pub(super) fn with_iterations(tile: CompiledKernel<'_>, p: &Prediction, broken: Broken) -> Broken {
    let card = Card::from_name(p.card);
    let us = |clocks: f64| card.map_or(0.0, |card| clocks / (card.clock * 1e3));
    let text = |own: &LoopTime| {
        // Other blocks may load the same bytes, which then pass from memory once.
        let memory = card.filter(|_| own.work.loaded > 0.0).map_or(String::new(), |card| {
            let all = own.work.loaded * f64::from(card.sms);
            format!(
                "; memory takes {:.2} us for that of {} blocks that load different bytes",
                all / (card.dram * 1e3),
                card.sms
            )
        });
        format!(
            "an iteration takes {:.2} us of a block alone on a multiprocessor of {}: {}{memory}",
            us(own.clocks),
            p.card,
            iteration(own)
        )
    };
    let mut places = broken.places;
    places.extend(tile.open_loops.iter().map(|own| (own.variable, text(own))));
    Broken { places, ..broken }
}

/// What iterations wait for.
pub(super) fn reason(code: &Code<'_>) -> Option<String> {
    let block = code.tile.block_time?;
    let text = match block.waits_for_slots() {
        true => "iterations wait for slots to be filled: loads do not run far enough ahead",
        false if block.waits_for_held() => {
            "a role waits for what its threads load before they store it to a slot, and the others wait for the slot"
        }
        false if computes(code.tile.specialized, &variables(code)) => {
            "a role does its statements one after the other: it waits for products, and the tensor cores wait for what it computes between them"
        }
        false => {
            "no arithmetic is between the products of an iteration: it waits for slots, issues its products, and waits for them"
        }
    };
    Some(text.to_owned())
}

/// What would have iterations wait less.
pub(super) fn latency(code: &Code<'_>) -> Vec<WayOut> {
    let Some(block) = code.tile.block_time else { return Vec::new() };
    if block.waits_for_slots() {
        return deepest(block).map(more_slots).collect();
    }
    if block.waits_for_held() {
        return vec![by_tensor_copies()];
    }
    let text = "issue the product of the next iteration in front of the arithmetic of this one (a second tile of sums, `await` with 1 pending), or let two groups of warps alternate (`ordered`): the tensor cores then work while a role computes";
    let computes = computes(code.tile.specialized, &variables(code));
    computes.then(|| WayOut::by_hand(text)).into_iter().collect()
}

/// The channels whose slots are too few.
fn deepest(block: &BlockTime) -> impl Iterator<Item = &ChannelTime> {
    let alone = block.channels.iter().any(|own| own.waits > 0);
    block.channels.iter().filter(move |own| own.waits > 0 || !alone)
}

fn more_slots(own: &ChannelTime) -> WayOut {
    let text =
        format!("`slots {}` for `{}`, which has {}", own.slots + 1, own.name, counted(own.slots as usize, "slot"));
    WayOut::new(text, By::Slots(own.name.clone(), own.slots + 1))
}

fn by_tensor_copies() -> WayOut {
    WayOut::by_hand("load slots by `copy .. tma`: nobody waits for these loads but the readers of the slot")
}

/// The loads that a role waits for before it stores what it has loaded.
pub(super) fn held(code: &Code<'_>) -> (Vec<(Span, String)>, Vec<WayOut>) {
    let Some(block) = code.tile.block_time.filter(|block| block.waits_for_held()) else { return Default::default() };
    let text = |load: &HeldLoad| {
        let tensors: Vec<String> = load.tensors.iter().map(|name| format!("`{name}`")).collect();
        format!(
            "threads of `{}` hold what they load of {} until they store it: without that a block takes {:.0} of {:.0} clocks",
            load.role,
            tensors.join(", "),
            block.landed,
            block.clocks
        )
    };
    (block.held.iter().map(|load| (load.span, text(load))).collect(), vec![by_tensor_copies()])
}

/// The loads into channels with one slot that iterations wait for: they do not run ahead.
pub(super) fn single_slots(code: &Code<'_>) -> (Vec<(Span, String)>, Vec<WayOut>) {
    let all = code.tile.block_time.into_iter().flat_map(|block| &block.channels);
    let single: Vec<&ChannelTime> = all.filter(|own| own.slots == 1 && own.waits > 0).collect();
    let text = |own: &ChannelTime| {
        format!("`{}` has 1 slot: an iteration waits {} clocks longer for it than with 2", own.name, own.waits)
    };
    let places = single.iter().flat_map(|own| own.fills.iter().map(|&span| (span, text(own))));
    (places.collect(), single.iter().map(|own| more_slots(own)).collect())
}

/// Whether loops with these variables compute elements of tiles by other means than products.
pub(super) fn computes(k: &Kernel, variables: &[Span]) -> bool {
    let is_tile = |k: &Kernel, e: Expr| resolve_view(k, e).is_none() && type_of(k, e).is_ok_and(|ty| ty.rank() > 0);
    let mut found = false;
    k.walk(k.body, &mut |k, _, s| {
        let StmtData::For { var, body, .. } = k.stmts[s] else { return };
        if !variables.contains(&k.values[var].span) {
            return;
        }
        k.walk(body, &mut |k, _, s| {
            found |= match &k.stmts[s] {
                StmtData::Assign { src, .. } => match &k.exprs[*src] {
                    ExprData::Mma(mma) => is_tile(k, mma.a) || is_tile(k, mma.b),
                    _ => true,
                },
                StmtData::Let { init, .. } => is_tile(k, *init),
                _ => false,
            };
        });
    });
    found
}
