//! Stage and order of each statement of an iteration in the steady state.
//!
//! This file lists the operations for a tile; [`super::modulo`] places them. For a loop of asynchronous copies and products with four slots, the result is
//! the CUTLASS "multistage" main loop:
//!
//! ```text
//! stage 0     acquire; fill; publish                  after the fragments of the second slice
//! stage 2     wait; load the fragments of the first slice         in front of the last product
//! stage 3     slices: load fragments one slice ahead, multiply; release in front of the wait
//! ```
//!
//! If copies are asynchronous, or the loop has other statements than products, it is open: tiles loaded past the end are not multiplied. If all tiles pass through registers there is a
//! drain, and a tile is loaded and stored in front of the last product of the previous one.
//!
//! In a loop with asynchronous copies, tiles that pass through registers are loaded where the others are copied, and stored at the end. Tiles of unaligned rows are stored in the
//! next iteration, in front of the loads of the tile after them, and prefetched into the second-level cache even earlier.

use super::modulo::{Loop, Place, Places};
use super::tile_statements::{Build, Lane};
use crate::pipeline::loop_plan::Plan;
use tilec_ir::entities::{Stmt, Value};
use tilec_ir::kernel::ChannelOp;

/// The parts of an iteration, in program order.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Prefetch,
    Fetch,
    Acquire,
    Fill,
    Put,
    Publish,
    Wait,
    /// The fragments of the first slice.
    First,
    Rest,
}

/// A statement of the body.
pub(super) struct Timed {
    pub(super) stmt: Stmt,
    pub(super) stage: u32,
    part: Part,
}

/// The purpose of statements between two statements of the backbone; it decides their order there.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// Tiles in registers are shifted into place, and their registers refilled, while few other values are live.
    Shift,
    /// The next products wait for these.
    Fragments,
    Fill,
    /// Other threads wait for these after the next barrier.
    Store,
    Release,
    Wait,
    Compute,
}

/// A statement and its place; of equal places, the first one added comes first.
struct Placed {
    stmt: Stmt,
    place: Place,
    rank: Rank,
    part: Part,
}

/// The statements of an iteration, in the order of the steady state. `pairs`: double-buffered fragments.
pub(super) fn timed(build: &mut Build<'_>, plan: &Plan, pairs: &[(Value, Value)], of: &Loop) -> Vec<Timed> {
    let mut iteration = Iteration { places: of.places(), of, build, out: Vec::new() };
    iteration.tiles(plan.open());
    iteration.handover_statements();
    if plan.slices.is_empty() {
        iteration.rest(plan);
    } else {
        iteration.slices(plan, pairs);
    }
    iteration.sorted()
}

/// The same statements in program order: each follows those on which it depends.
pub(super) fn written(timed: &[Timed]) -> Vec<Stmt> {
    let mut list: Vec<&Timed> = timed.iter().collect();
    list.sort_by_key(|t| t.part);
    list.into_iter().map(|t| t.stmt).collect()
}

struct Iteration<'a, 'b> {
    build: &'a mut Build<'b>,
    of: &'a Loop,
    places: Places,
    out: Vec<Placed>,
}

impl Iteration<'_, '_> {
    fn add(&mut self, (place, rank, part): (Place, Rank, Part), stmts: Vec<Stmt>) {
        self.out.extend(stmts.into_iter().map(|stmt| Placed { stmt, place, rank, part }));
    }

    fn op(&mut self, place: Place, rank: Rank, op: ChannelOp) {
        let part = match op {
            ChannelOp::Acquire => Part::Acquire,
            ChannelOp::Publish => Part::Publish,
            ChannelOp::Wait => Part::Wait,
            ChannelOp::Release => Part::Rest,
        };
        let stmt = self.build.channel_op(op);
        self.add((place, rank, part), vec![stmt]);
    }

    /// Adds the statements that fill the slots.
    fn tiles(&mut self, open: bool) {
        let staged = self.build.lanes.iter().any(Lane::passing);
        let carried = self.build.lanes.iter().any(Lane::carried);
        let (fill, put) = (self.places.fill, self.places.put);
        // With a drain, nothing is loaded before the iteration that stores it.
        let fetch = if open { fill } else { put };
        if carried {
            self.op(fill, Rank::Shift, ChannelOp::Acquire);
            let shifted = self.build.put(Lane::carried);
            self.add((fill, Rank::Shift, Part::Put), shifted);
            let loads = self.build.fetch(Lane::carried);
            self.add((self.places.earlier(fill, 1), Rank::Shift, Part::Fetch), loads);
            let ask = self.build.prefetch();
            self.add((self.places.prefetch(), Rank::Shift, Part::Prefetch), ask);
        }
        let loads = self.build.fetch(Lane::passing);
        self.add((fetch, Rank::Fill, Part::Fetch), loads);
        if !carried {
            self.op(fetch, Rank::Fill, ChannelOp::Acquire);
        }
        let fills = self.build.fill();
        self.add((fill, Rank::Fill, Part::Fill), fills);
        let stored = self.build.put(Lane::passing);
        self.add((put, Rank::Store, Part::Put), stored);
        match staged {
            true => self.op(put, Rank::Store, ChannelOp::Publish),
            false => self.op(fill, Rank::Fill, ChannelOp::Publish),
        }
    }

    /// Statements that acquire, publish or release slots.
    fn handover_statements(&mut self) {
        self.op(self.places.release, Rank::Release, ChannelOp::Release);
        self.op(self.places.wait, Rank::Wait, ChannelOp::Wait);
    }

    /// The backbone of a loop with other statements than copies and products.
    fn rest(&mut self, plan: &Plan) {
        for (i, stmt) in self.build.unchanged_statements(&plan.rest).into_iter().enumerate() {
            self.add((self.places.step(i), Rank::Compute, Part::Rest), vec![stmt]);
        }
    }

    /// The backbone of products, and the loads of their fragments.
    fn slices(&mut self, plan: &Plan, pairs: &[(Value, Value)]) {
        for (i, slice) in plan.slices.iter().enumerate() {
            let parity = if plan.double_buffered { i % 2 } else { 0 };
            let part = if plan.double_buffered && i == 0 { Part::First } else { Part::Rest };
            let loads = self.build.loads(slice, pairs, parity);
            self.add((self.of.fragments(i), Rank::Fragments, part), loads);
            let products = self.build.copy_all(&slice.products, pairs, parity);
            self.add((self.places.step(i), Rank::Compute, Part::Rest), products);
        }
    }

    /// The statements in the order of the steady state, with their stages.
    fn sorted(self) -> Vec<Timed> {
        let Iteration { places, mut out, .. } = self;
        out.sort_by_key(|p| (places.time(p.place).0, p.rank));
        let iteration = |p: &Placed| places.time(p.place).1;
        let first = out.iter().map(iteration).min().expect("a loop does something");
        let stage = |p: &Placed| u32::try_from(iteration(p) - first).expect("it is none before the first");
        out.iter().map(|p| Timed { stmt: p.stmt, stage: stage(p), part: p.part }).collect()
    }
}
