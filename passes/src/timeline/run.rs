//! The roles run: each warpgroup its steps in order, as soon as what it waits for is there. Of those that can go on, the one that can first does.

use super::data::{Event, Row, SlotUse, Timeline, Turn, Unit};
use super::program::{Act, Node, Program, Role, Step};
use super::reach::Reach;
use crate::choose::Card;
use crate::schedule_loops::LATENCY;
use std::collections::{BTreeMap, VecDeque};
use tilec_ir::entities::{Stmt, Value};
use tilec_ir::kernel::{ChannelOp, Kernel};
use tilec_ir::placement::slots;
use tilec_ir::target::WARPGROUP;

/// Bytes of shared memory that TMA stores read per clock.
const STORED: u64 = 64;

/// What a warpgroup does next.
#[derive(Copy, Clone, Debug)]
enum Task {
    Step(usize),
    /// Enters an ordered statement after so many have left it; the step is its own.
    Enter {
        id: usize,
        after: u64,
        step: usize,
    },
    Leave {
        id: usize,
    },
    /// An iteration of a loop begins; `first`: the first one since the loop was reached.
    Turn {
        at: Stmt,
        first: bool,
    },
}

/// A warpgroup.
struct Actor {
    role: usize,
    replica: u32,
    group: u32,
    tasks: Vec<Task>,
    at: usize,
    now: u64,
    /// Slots that it waited for and has not released: channel and use, the oldest first.
    held: VecDeque<(Value, u64)>,
    /// The use of each channel that it waited for last, and that it fills.
    uses: BTreeMap<Value, u64>,
    fills: BTreeMap<Value, u64>,
    /// When all that its warps hold on the way to memory has landed.
    held_until: u64,
    /// The iteration in which it is.
    iteration: u64,
    barriers: u64,
    /// Iterations of loops that it has begun.
    begun: u64,
    reach: Reach,
}

/// A channel: its uses are numbered, use n is of slot n modulo their number.
#[derive(Default)]
struct Channel {
    slots: u64,
    /// Warpgroups that fill a slot, and that read it.
    fillers: u64,
    readers: u64,
    /// Of each use how many have published it, when the last did, and when its bytes landed.
    full: BTreeMap<u64, (u64, u64)>,
    landed: BTreeMap<u64, u64>,
    /// Of each use how many have released it, and when the last did.
    free: BTreeMap<u64, (u64, u64)>,
    /// When each use was acquired first, and when the first reader went on with it.
    acquired: BTreeMap<u64, u64>,
    read: BTreeMap<u64, u64>,
}

impl Channel {
    fn full(&self, at: u64) -> Option<u64> {
        let &(times, when) = self.full.get(&at)?;
        (times >= self.fillers).then(|| when.max(self.landed.get(&at).copied().unwrap_or(0)))
    }

    fn free(&self, at: u64) -> Option<u64> {
        let Some(before) = at.checked_sub(self.slots) else { return Some(0) };
        let &(times, when) = self.free.get(&before)?;
        (times >= self.readers).then_some(when)
    }

    /// Its uses that are filled.
    fn uses(&self, channel: Value) -> impl Iterator<Item = SlotUse> {
        self.acquired.iter().filter_map(move |(&number, &acquired)| {
            Some(SlotUse {
                channel,
                number,
                slot: number % self.slots.max(1),
                acquired,
                full: self.full(number)?,
                read: self.read.get(&number).copied(),
                released: self.free(number + self.slots),
            })
        })
    }
}

struct Run<'a> {
    program: &'a Program,
    actors: Vec<Actor>,
    channels: BTreeMap<Value, Channel>,
    /// The next use that a warpgroup of a role fills or reads: replicas take them alternately.
    next: BTreeMap<(Value, usize, u32, bool), u64>,
    /// When each has left an ordered statement.
    left: Vec<Vec<u64>>,
    /// When warps of a role (a replica) have passed a barrier.
    passed: BTreeMap<(usize, u32, u64), u64>,
    /// When the products of a sum are complete, or stores have read a buffer, by warpgroup.
    pending: BTreeMap<(usize, Value), Vec<u64>>,
    /// When loaded elements are in registers.
    loaded: BTreeMap<(usize, Value), u64>,
    /// When each unit has done all that was asked of it.
    busy: BTreeMap<Unit, u64>,
    rate: u64,
    latency: u64,
    events: Vec<Event>,
    units: Vec<(Unit, Event)>,
    turns: Vec<Turn>,
}

/// Runs the roles; `None`: they do not end.
pub(super) fn run(k: &Kernel, card: &Card, program: Program) -> Option<Timeline> {
    run_with(k, card, program, &|_| 0)
}

/// The same with more slots of channels.
pub(super) fn run_with(k: &Kernel, card: &Card, program: Program, more: &dyn Fn(Value) -> u64) -> Option<Timeline> {
    let actors: Vec<Actor> = program.roles.iter().enumerate().flat_map(|(i, role)| actors(i, role)).collect();
    let rate = (card.l2 / f64::from(card.sms)) as u64;
    let mut run = Run {
        channels: channels(k, &program, more),
        program: &program,
        actors,
        next: BTreeMap::new(),
        left: vec![Vec::new(); program.ordered],
        passed: BTreeMap::new(),
        pending: BTreeMap::new(),
        loaded: BTreeMap::new(),
        busy: BTreeMap::new(),
        rate: rate.max(1),
        latency: card.latency as u64,
        events: Vec::new(),
        units: Vec::new(),
        turns: Vec::new(),
    };
    loop {
        let ready = (0..run.actors.len()).filter_map(|i| Some((run.ready(i)?, i)));
        let Some((when, i)) = ready.min() else { break };
        run.step(i, when);
    }
    if run.actors.iter().any(|a| a.at < a.tasks.len()) {
        return None;
    }
    let row = |a: &Actor| {
        let role = &program.roles[a.role];
        let warps = role.warps.min(if role.groups() > 1 { WARPGROUP } else { role.warps });
        Row {
            role: role.name.clone(),
            warps,
            warpgroup: (role.groups() > 1).then_some(a.group),
            replica: (role.replicas > 1).then_some(a.replica),
            elected: role.elected,
        }
    };
    let rows = run.actors.iter().map(row).collect();
    let multiplied = run.actors.iter().flat_map(|a| a.reach.multiplied.iter().copied()).collect();
    let (mut events, mut units, turns) = (run.events, run.units, run.turns);
    events.sort_by_key(|e| (e.row, e.begin, e.end));
    units.sort_by_key(|(unit, e)| (*unit, e.row, e.begin));
    let (iterations, loaded, latency) = (program.iterations, run.rate, run.latency);
    let slots = run.channels.iter().flat_map(|(&c, channel)| channel.uses(c)).collect();
    Some(Timeline { rows, lines: program.lines, events, units, slots, turns, multiplied, iterations, loaded, latency })
}

/// The warpgroups of a role with their tasks.
fn actors(role: usize, of: &Role) -> Vec<Actor> {
    let mut all = Vec::new();
    for replica in 0..of.replicas {
        // One lane is of the first warpgroup.
        for group in 0..if of.elected { 1 } else { of.groups() } {
            let mut tasks = Flat { of, replica, group, visits: BTreeMap::new(), turn: None, tasks: Vec::new() };
            tasks.nodes(&of.body, true);
            all.push(Actor {
                role,
                replica,
                group,
                tasks: tasks.tasks,
                at: 0,
                now: 0,
                held: VecDeque::new(),
                uses: BTreeMap::new(),
                fills: BTreeMap::new(),
                held_until: 0,
                iteration: 0,
                barriers: 0,
                begun: 0,
                reach: Reach::default(),
            });
        }
    }
    all
}

/// The tasks of a warpgroup, one after the other.
struct Flat<'a> {
    of: &'a Role,
    replica: u32,
    group: u32,
    /// How often it has come to each ordered statement.
    visits: BTreeMap<usize, u64>,
    /// The iteration of the loop whose iterations the replicas share.
    turn: Option<u64>,
    tasks: Vec<Task>,
}

impl Flat<'_> {
    fn nodes(&mut self, nodes: &[Node], outside: bool) {
        for node in nodes {
            match node {
                Node::Step(i) => self.tasks.push(Task::Step(*i)),
                Node::Loop { at, trips, body, .. } if outside && self.of.replicas > 1 => {
                    let first = u64::from(self.replica);
                    for turn in (first..*trips).step_by(self.of.replicas as usize) {
                        self.turn = Some(turn);
                        self.iteration(*at, turn == first, body);
                    }
                    self.turn = None;
                }
                Node::Loop { at, trips, body, .. } => (0..*trips).for_each(|n| self.iteration(*at, n == 0, body)),
                Node::Ordered { id, step, body } => {
                    let groups = u64::from(self.of.groups());
                    let visit = self.visits.entry(*id).or_default();
                    let after = self.turn.map_or(*visit * groups + u64::from(self.group), |turn| turn * groups);
                    *visit += 1;
                    let (id, step) = (*id, *step);
                    self.tasks.push(Task::Enter { id, after, step });
                    self.nodes(body, outside);
                    self.tasks.push(Task::Leave { id });
                }
            }
        }
    }

    fn iteration(&mut self, at: Stmt, first: bool, body: &[Node]) {
        self.tasks.push(Task::Turn { at, first });
        self.nodes(body, false);
    }
}

/// The channels with who fills and who reads them.
fn channels(k: &Kernel, program: &Program, more: &dyn Fn(Value) -> u64) -> BTreeMap<Value, Channel> {
    let mut all: BTreeMap<Value, Channel> = BTreeMap::new();
    for role in &program.roles {
        let mut steps = Vec::new();
        role.body.iter().for_each(|node| node.steps(&mut steps));
        let mut seen = Vec::new();
        for i in steps {
            let Act::Channel(op, on) = &program.steps[i].act else { continue };
            for &c in on {
                let slots = slots(k, c).unwrap_or(1) + more(c);
                let channel = all.entry(c).or_insert_with(|| Channel { slots, ..Channel::default() });
                if seen.contains(&(*op, c)) {
                    continue;
                }
                seen.push((*op, c));
                let groups = u64::from(if role.elected { 1 } else { role.groups() });
                match op {
                    ChannelOp::Publish => channel.fillers += groups,
                    ChannelOp::Release => channel.readers += groups,
                    ChannelOp::Acquire | ChannelOp::Wait => {}
                }
            }
        }
    }
    all
}

impl Run<'_> {
    /// When a warpgroup can do its next task; `None`: it has none, or nobody knows yet.
    fn ready(&self, i: usize) -> Option<u64> {
        let a = &self.actors[i];
        let when = match *a.tasks.get(a.at)? {
            Task::Leave { .. } | Task::Turn { .. } => 0,
            Task::Enter { id, after, .. } => match after.checked_sub(1) {
                None => 0,
                Some(last) => *self.left[id].get(usize::try_from(last).ok()?)?,
            },
            Task::Step(s) => self.step_ready(i, &self.program.steps[s])?,
        };
        Some(when.max(a.now))
    }

    fn step_ready(&self, i: usize, step: &Step) -> Option<u64> {
        let a = &self.actors[i];
        if self.skips(a, step) {
            return Some(0);
        }
        let loaded = step.reads.iter().filter_map(|&v| self.loaded.get(&(i, v))).max().copied().unwrap_or(0);
        let own = match &step.act {
            Act::Channel(op @ (ChannelOp::Acquire | ChannelOp::Wait), on) => {
                let fills = *op == ChannelOp::Acquire;
                let mut last = 0;
                for &c in on {
                    let at = self.next.get(&(c, a.role, a.group, fills)).copied().unwrap_or(0);
                    let channel = self.channels.get(&c)?;
                    last = last.max(if fills { channel.free(at)? } else { channel.full(at)? });
                }
                last
            }
            Act::Await { value, pending } => {
                let all = self.pending.get(&(i, *value)).map_or(&[][..], |list| &list[..]);
                let counted = all.len().saturating_sub(*pending as usize);
                all[..counted].iter().max().copied().unwrap_or(0)
            }
            Act::Barrier => self.barrier(i)?,
            _ => 0,
        };
        Some(own.max(loaded))
    }

    /// When all warps of a role (a replica) are at the barrier.
    fn barrier(&self, i: usize) -> Option<u64> {
        let a = &self.actors[i];
        if let Some(&when) = self.passed.get(&(a.role, a.replica, a.barriers)) {
            return Some(when);
        }
        let mates = self.actors.iter().filter(|m| (m.role, m.replica) == (a.role, a.replica));
        mates.map(|m| {
            let there = matches!(m.tasks.get(m.at), Some(Task::Step(s)) if matches!(self.program.steps[*s].act, Act::Barrier));
            (there && m.barriers == a.barriers).then_some(m.now)
        })
        .try_fold(0, |last, when| Some(when?.max(last)))
    }

    /// Whether another warpgroup has the lane that executes the step. At a channel all threads arrive.
    fn skips(&self, a: &Actor, step: &Step) -> bool {
        step.elected && a.group > 0 && !matches!(step.act, Act::Channel(..))
    }

    /// Does the next task of a warpgroup.
    fn step(&mut self, i: usize, when: u64) {
        let (task, now) = (self.actors[i].tasks[self.actors[i].at], self.actors[i].now);
        self.actors[i].at += 1;
        let step = match task {
            Task::Leave { id } => {
                self.left[id].push(now);
                return;
            }
            Task::Turn { at, first } => {
                self.actors[i].begun += 1;
                self.turns.push(Turn { row: i, at, begin: now, first });
                return;
            }
            Task::Enter { step, .. } => {
                let iteration = self.actors[i].iteration;
                self.event(i, step, iteration, (now, when), true);
                self.actors[i].now = when;
                return;
            }
            Task::Step(step) => step,
        };
        let program = self.program;
        let of = &program.steps[step];
        if self.skips(&self.actors[i], of) {
            return;
        }
        self.count(i, of, when);
        let iteration = self.iteration(i, of);
        let a = &mut self.actors[i];
        a.reach.step((step, of), a.begun, (&a.uses, &a.fills));
        self.event(i, step, iteration, (now, when), true);
        let end = self.act(i, (step, iteration), when);
        self.event(i, step, iteration, (when, end), false);
        self.actors[i].now = end;
        if let Act::Channel(op @ (ChannelOp::Publish | ChannelOp::Release), on) = &of.act {
            on.iter().for_each(|&c| self.hand_over(i, *op, c, end));
        }
    }

    fn event(&mut self, row: usize, step: usize, iteration: u64, (begin, end): (u64, u64), waits: bool) {
        if end > begin {
            self.events.push(Event { row, number: step + 1, iteration, begin, end, waits });
        }
    }

    /// Takes the next slots that a step acquires or waits for, at this clock.
    fn count(&mut self, i: usize, step: &Step, when: u64) {
        let a = &mut self.actors[i];
        let Act::Channel(op @ (ChannelOp::Acquire | ChannelOp::Wait), on) = &step.act else { return };
        for &c in on {
            let next = self.next.entry((c, a.role, a.group, *op == ChannelOp::Acquire)).or_default();
            let at = *next;
            *next += 1;
            if *op == ChannelOp::Wait { &mut a.uses } else { &mut a.fills }.insert(c, at);
            if let Some(channel) = self.channels.get_mut(&c) {
                let of = if *op == ChannelOp::Wait { &mut channel.read } else { &mut channel.acquired };
                let first = of.entry(at).or_insert(when);
                *first = when.min(*first);
            }
            if *op == ChannelOp::Wait {
                a.held.push_back((c, at));
            }
            if self.program.roles[a.role].first == Some(c) {
                a.iteration = at;
            }
        }
    }

    /// The iteration that a step belongs to: that of the slots that it uses, else that of its warpgroup.
    fn iteration(&self, i: usize, step: &Step) -> u64 {
        let a = &self.actors[i];
        let counting = &self.program.roles[a.role].counting;
        let c = step.channels.iter().find(|c| counting.contains(c));
        let released = match (&step.act, c) {
            (Act::Channel(ChannelOp::Release, _), Some(c)) => a.held.iter().find(|(held, _)| held == c).map(|h| h.1),
            _ => None,
        };
        let of = |c: &Value| a.uses.get(c).or_else(|| a.fills.get(c)).copied();
        released.or_else(|| c.and_then(of)).unwrap_or(a.iteration)
    }

    /// Has a unit work for so long; returns from when to when.
    fn occupy(&mut self, unit: Unit, i: usize, (step, iteration): (usize, u64), from: u64, clocks: u64) -> (u64, u64) {
        let busy = self.busy.entry(unit).or_default();
        let begin = from.max(*busy);
        let end = begin + clocks;
        *busy = end;
        if clocks > 0 {
            let event = Event { row: i, number: step + 1, iteration, begin, end, waits: false };
            self.units.push((unit, event));
        }
        (begin, end)
    }

    /// Does what a step does; returns when its warpgroup goes on.
    fn act(&mut self, i: usize, at: (usize, u64), when: u64) -> u64 {
        let program = self.program;
        let step = &program.steps[at.0];
        let issued = when + step.cost.issue;
        let special = match step.cost.special {
            0 => when,
            clocks => self.occupy(Unit::SpecialFunctions, i, at, when, clocks).1,
        };
        match step.act {
            Act::Product { sum, asynchronous } => {
                let from = if asynchronous { issued } else { when };
                let (_, end) = self.occupy(Unit::TensorCores, i, at, from, step.cost.tensor);
                if !asynchronous {
                    return issued.max(end);
                }
                self.pending.entry((i, sum)).or_default().push(end + LATENCY);
            }
            Act::Load { into, bytes, held, .. } => {
                let clocks = bytes / self.rate;
                let (_, end) = self.occupy(Unit::Loads, i, at, when + self.latency, clocks);
                if held {
                    let next = self.next_is_held(i);
                    let a = &mut self.actors[i];
                    a.held_until = end.max(a.held_until);
                    return if next { issued } else { issued.max(a.held_until) };
                }
                let fill = self.actors[i].fills.get(&into).copied();
                match (self.channels.get_mut(&into), fill) {
                    (Some(channel), Some(fill)) => {
                        let landed = channel.landed.entry(fill).or_default();
                        *landed = end.max(*landed);
                    }
                    _ => _ = self.loaded.insert((i, into), end),
                }
            }
            Act::Store { from, bytes } => {
                let (_, end) = self.occupy(Unit::Stores, i, at, issued, bytes / STORED);
                self.pending.entry((i, from)).or_default().push(end);
            }
            Act::Barrier => {
                let a = &mut self.actors[i];
                self.passed.insert((a.role, a.replica, a.barriers), when);
                a.barriers += 1;
            }
            Act::Other | Act::Await { .. } | Act::Channel(..) => {}
        }
        issued.max(special)
    }

    /// Whether the next task of a warpgroup is a load that its warps hold, too: the assembler requests both before it
    /// stores what the first one brings.
    fn next_is_held(&self, i: usize) -> bool {
        let a = &self.actors[i];
        match a.tasks.get(a.at) {
            Some(Task::Step(next)) => self.program.is_held(*next),
            _ => false,
        }
    }

    /// Publishes or releases a slot.
    fn hand_over(&mut self, i: usize, op: ChannelOp, c: Value, when: u64) {
        let a = &mut self.actors[i];
        let at = match op {
            ChannelOp::Release => {
                let oldest = a.held.iter().position(|(held, _)| *held == c);
                oldest.and_then(|n| a.held.remove(n)).map(|h| h.1)
            }
            _ => a.fills.get(&c).copied(),
        };
        let (Some(at), Some(channel)) = (at, self.channels.get_mut(&c)) else { return };
        let of = if op == ChannelOp::Release { &mut channel.free } else { &mut channel.full };
        let (times, last) = of.entry(at).or_default();
        *times += 1;
        *last = when.max(*last);
    }
}
