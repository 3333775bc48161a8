//! When the statements of an iteration run: their stages, and their order in the steady state.
//!
//! Where copies are asynchronous, tiles are filled `slots - 1` iterations ahead, and the loop is open: what is fetched past the end nobody multiplies.
//! One barrier an iteration, behind the wait, shows this tile to all threads, and stands between the last reads of a slot and the next copy into it
//! (CUTLASS calls the shape "multistage"):
//!
//! ```text
//! stage 0              acquire; fill; publish
//! stage slots - 2      wait; load the first fragments
//! stage slots - 1      slices: load fragments one slice ahead, multiply; release in front of the last product
//! ```
//!
//! Where all tiles pass through registers, there is a drain, and a tile is fetched and stored in front of the last product of the one before ("two-stage pipelined"):
//!
//! ```text
//! stage 0              slices of the tile before but for the last product; fetch; put; wait; load the first fragments
//! stage 1              ..
//! ```
//!
//! Beside asynchronous copies, what passes through registers is loaded where the others are filled, and stored at the end. Tiles of unaligned rows are stored in the
//! next iteration, in front of the loads of the tile after them, and the second-level cache is asked for them earlier still.

use super::pieces::{Build, Lane};
use crate::pipeline::planned::Plan;
use tilec_ir::entities::{Stmt, Value};
use tilec_ir::kernel::ChannelOp;

/// Iterations by which the second-level cache is asked for unaligned rows in front of their loads.
const PREFETCHED: u32 = 3;

/// The parts of an iteration, in the order in which the text has them.
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

/// The pipeline stages of what an iteration does.
struct Stages {
    /// Tiles of unaligned rows are loaded into registers.
    carried: u32,
    /// A slot is filled.
    fill: u32,
    /// It is waited for.
    wait: u32,
    /// It is read.
    last: u32,
}

impl Stages {
    fn of(plan: &Plan, carried: bool) -> Stages {
        let ahead = u32::try_from(plan.stages - 1).expect("a few slots");
        let fill = if carried { PREFETCHED + 1 } else { 0 };
        Stages { carried: fill.saturating_sub(1), fill, wait: fill + ahead - 1, last: fill + ahead }
    }
}

/// A statement of the body.
pub(super) struct Timed {
    pub(super) stmt: Stmt,
    pub(super) stage: u32,
    part: Part,
}

/// The statements of the body in the order of the steady state.
pub(super) struct Order<'a, 'b> {
    build: &'a mut Build<'b>,
    stages: Stages,
    out: Vec<Timed>,
}

/// The statements of an iteration, in the order in which one of the steady state runs them. `pairs`: fragments that are loaded in turns.
pub(super) fn timed(build: &mut Build<'_>, plan: &Plan, pairs: &[(Value, Value)]) -> Vec<Timed> {
    let carried = build.lanes.iter().any(Lane::carried);
    let mut order = Order { stages: Stages::of(plan, carried), build, out: Vec::new() };
    match plan.open() {
        true => order.open(plan, pairs),
        false => order.products(plan, pairs, &mut |_| {}, &mut |order| order.through_registers()),
    }
    order.out
}

/// The same statements in the order of the text: each runs behind those that it depends on.
pub(super) fn written(timed: &[Timed]) -> Vec<Stmt> {
    let mut list: Vec<&Timed> = timed.iter().collect();
    list.sort_by_key(|t| t.part);
    list.into_iter().map(|t| t.stmt).collect()
}

impl Order<'_, '_> {
    fn add(&mut self, stage: u32, part: Part, stmts: Vec<Stmt>) {
        self.out.extend(stmts.into_iter().map(|stmt| Timed { stmt, stage, part }));
    }

    fn op(&mut self, op: ChannelOp) {
        let (stage, part) = match op {
            ChannelOp::Acquire => (self.stages.fill, Part::Acquire),
            ChannelOp::Publish => (self.stages.fill, Part::Publish),
            ChannelOp::Wait => (self.stages.wait, Part::Wait),
            ChannelOp::Release => (self.stages.last, Part::Rest),
        };
        let stmt = self.build.channel_op(op);
        self.add(stage, part, vec![stmt]);
    }

    fn fetch(&mut self, stage: u32, which: fn(&Lane) -> bool) {
        let stmts = self.build.fetch(which);
        self.add(stage, Part::Fetch, stmts);
    }

    fn put(&mut self, which: fn(&Lane) -> bool) {
        let stmts = self.build.put(which);
        self.add(self.stages.fill, Part::Put, stmts);
    }

    fn open(&mut self, plan: &Plan, pairs: &[(Value, Value)]) {
        let staged = self.build.lanes.iter().any(Lane::passing);
        let carried = self.build.lanes.iter().any(Lane::carried);
        // In front of the fragments of the next slice: fewer registers hold anything while tiles are shifted.
        if carried {
            self.op(ChannelOp::Acquire);
            self.put(Lane::carried);
            self.fetch(self.stages.carried, Lane::carried);
            let ask = self.build.prefetch();
            self.add(0, Part::Prefetch, ask);
        }
        let mut fill = |order: &mut Self| {
            order.fetch(order.stages.fill, Lane::passing);
            if !carried {
                order.op(ChannelOp::Acquire);
            }
            let fills = order.build.fill();
            order.add(order.stages.fill, Part::Fill, fills);
            if !staged {
                order.op(ChannelOp::Publish);
            }
        };
        let mut turn = |order: &mut Self| {
            if staged {
                order.put(Lane::passing);
                order.op(ChannelOp::Publish);
            }
            order.op(ChannelOp::Release);
            order.op(ChannelOp::Wait);
        };
        self.products(plan, pairs, &mut fill, &mut turn);
    }

    /// Everything that happens between two tiles that pass through registers.
    fn through_registers(&mut self) {
        self.fetch(self.stages.fill, Lane::passing);
        self.op(ChannelOp::Acquire);
        self.put(Lane::passing);
        self.op(ChannelOp::Publish);
        self.op(ChannelOp::Release);
        self.op(ChannelOp::Wait);
    }

    /// The products of a tile, and what stands among them: what fills slots, and what lies between two tiles.
    fn products(
        &mut self,
        plan: &Plan,
        pairs: &[(Value, Value)],
        fill: &mut dyn FnMut(&mut Self),
        turn: &mut dyn FnMut(&mut Self),
    ) {
        let last = self.stages.last;
        if !plan.double_buffered {
            fill(self);
            let rest = self.build.kept(&plan.rest);
            self.add(last, Part::Rest, rest);
            for slice in &plan.slices {
                let stmts =
                    [self.build.loads(slice, pairs, 0), self.build.copy_all(&slice.products, pairs, 0)].concat();
                self.add(last, Part::Rest, stmts);
            }
            turn(self);
            return;
        }
        for (i, slice) in plan.slices.iter().enumerate() {
            match plan.slices.get(i + 1) {
                Some(next) => {
                    let loads = self.build.loads(next, pairs, (i + 1) % 2);
                    self.add(last, Part::Rest, loads);
                }
                None => {
                    turn(self);
                    let first = self.build.loads(&plan.slices[0], pairs, 0);
                    self.add(self.stages.wait, Part::First, first);
                }
            }
            if i == 0 {
                // Behind the fragments of the next slice, which the next products need first.
                fill(self);
            }
            let products = self.build.copy_all(&slice.products, pairs, i % 2);
            self.add(last, Part::Rest, products);
        }
    }
}
