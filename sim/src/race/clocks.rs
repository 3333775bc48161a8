//! Vector clocks of warps and of their copy engines.
//!
//! An agent's accesses carry its clock, which advances at every release. `rows[w][v]` is the clock of `v` up to which
//! all accesses of `v` happen before the next access of `w`. `rows[w][w]` is the clock of the last instruction at which
//! the lanes of `w` synchronised. Some lanes of a warp may release or acquire alone (one elected lane arrives at an
//! mbarrier, or waits for it): their clocks are kept per set of lanes until the warp synchronises. Two such sets of
//! lanes that release at the same place are joined at the later clock. This can hide a race between lanes of one warp,
//! but never reports a false one.
//!
//! A relaxed write publishes only what a fence precedes (PTX ISA 8.8: release pattern). What a relaxed read observed is
//! acquired only at a later fence (acquire pattern). Each agent therefore keeps three fronts: what happens before it,
//! the fenced part of that, and what it observed without a fence yet. Barriers pass on all three. A fence counts
//! whether the thread that writes the flag executed it, or another thread that synchronised with it at a barrier since.
//! That is how `__threadfence(); __syncthreads(); if (t == 0) atomicAdd(..)` works.

use super::async_agents::Slots;
use super::clock_front::{ANY, CLUSTER, DATA, Front, INITS, Known, OBJECTS, Part, WIDE, join_some};

/// The clocks of a block or cluster. Agents are numbered: warps, then their copy engines, then the agents of the async
/// proxy ([`mod@super::async_agents`]).
#[derive(Debug)]
pub(crate) struct Clocks {
    warps: usize,
    /// One row per agent, with an entry for every agent.
    rows: Vec<Known>,
    now: Vec<u32>,
    /// What only some lanes of a warp have acquired: disjoint sets of lanes.
    lanes: Vec<Vec<(u32, Known)>>,
    /// What lanes of a warp have observed without a fence since.
    unfenced: Vec<(u32, Front)>,
    /// What each warp had done before its last `fence.mbarrier_init`.
    inits: Vec<Option<Box<Front>>>,
    /// Exited lanes of each warp, and the number of barriers passed at that time.
    exited: Vec<u32>,
    exits: Vec<(usize, u32, u32)>,
    barriers: u32,
    /// Number of the last barrier that each warp has passed: of barriers shared with other warps, and of its own.
    passed: Vec<[u32; 2]>,
    /// How often each row has changed.
    changes: Vec<u32>,
    /// The agents of the async proxy.
    pub(super) slots: Slots,
}

/// The scope of a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Block,
    Cluster,
    Wide,
}

impl Clocks {
    /// `slots`: number of agents of the async proxy.
    pub(crate) fn new(warps: usize, slots: usize) -> Clocks {
        let agents = 2 * warps + slots;
        let row = Front { all: vec![0; agents], ..Front::default() };
        Clocks {
            warps,
            rows: vec![Known { front: row, ..Known::default() }; warps],
            now: vec![1; agents],
            lanes: vec![Vec::new(); warps],
            unfenced: vec![(0, Front::default()); warps],
            inits: vec![None; warps],
            exited: vec![0; warps],
            exits: Vec::new(),
            barriers: 0,
            passed: vec![[0; 2]; warps],
            changes: vec![0; warps],
            slots: Slots::new(2 * warps, slots),
        }
    }

    /// The agent that performs the asynchronous copies of `warp`.
    #[inline(always)]
    pub(crate) fn engine(&self, warp: usize) -> usize {
        self.warps + warp
    }

    /// Whether an agent is not a warp.
    #[inline(always)]
    pub(super) fn is_async_agent(&self, agent: usize) -> bool {
        agent >= self.warps
    }

    /// The thread that reports name for an access of an agent.
    pub(super) fn thread(&self, agent: usize, lane: usize) -> (usize, usize) {
        self.slots.thread(agent, lane).unwrap_or((agent % self.warps, lane))
    }

    /// For each agent, the clock up to which its accesses happen before `warp`.
    #[inline(always)]
    pub(crate) fn row(&self, warp: usize) -> &[u32] {
        &self.rows[warp].front.all
    }

    /// The clock of an agent's next access.
    #[inline(always)]
    pub(crate) fn now(&self, agent: usize) -> u32 {
        self.now[agent]
    }

    /// How many observations of other blocks `lane` of `warp` has acquired.
    #[inline(always)]
    pub(crate) fn foreign(&self, warp: usize, lane: usize) -> u32 {
        let row = self.rows[warp].front.foreign;
        if self.lanes[warp].is_empty() {
            return row;
        }
        self.alone(warp, 1 << lane).fold(row, |n, known| n.max(known.front.foreign))
    }

    /// How often the clocks or fences of a warp have changed.
    pub(crate) fn changes(&self, warp: usize) -> u32 {
        self.changes[warp]
    }

    /// Whether strong writes of the warp may publish anything to other blocks.
    pub(crate) fn may_publish(&self, warp: usize) -> bool {
        self.rows[warp].fenced[WIDE].is_some() || self.lanes[warp].iter().any(|(_, known)| known.fenced[WIDE].is_some())
    }

    /// These lanes have observed what other blocks published, up to this number; a fence acquires it.
    pub(crate) fn see_others(&mut self, warp: usize, lanes: u32, number: u32) {
        let (waiting, seen) = &mut self.unfenced[warp];
        *waiting |= lanes;
        seen.foreign = seen.foreign.max(number);
    }

    /// What these lanes have acquired that their row does not include.
    fn alone(&self, warp: usize, lanes: u32) -> impl Iterator<Item = &Known> {
        self.lanes[warp].iter().filter(move |(mask, _)| mask & lanes != 0).map(|(_, known)| known)
    }

    /// Whether an access of `of_lane` of `of` at `clock` happens before the next access of `lane` of `warp`.
    pub(crate) fn ordered(&self, (warp, lane): (usize, usize), (of, of_lane): (usize, usize), clock: u32) -> bool {
        (warp, lane) == (of, of_lane)
            || self.rows[warp].front.covers(of, of_lane, clock)
            || self.alone(warp, 1 << lane).any(|k| k.front.covers(of, of_lane, clock))
    }

    /// Lanes exit. Exiting is no release: what they have not released before is ordered before nothing, even if all
    /// other lanes of the warp wait at a barrier.
    pub(crate) fn exit(&mut self, warp: usize, lanes: u32) {
        self.exited[warp] |= lanes;
        self.exits.push((warp, lanes, self.barriers));
    }

    /// Lanes of a warp pass a barrier that exited lanes may have missed.
    pub(crate) fn pass(&mut self, warp: usize, own: bool) {
        self.barriers = self.barriers.saturating_add(1);
        self.passed[warp][usize::from(own)] = self.barriers;
    }

    /// Whether a warp has passed a barrier that this lane would have reached, had it not exited.
    pub(crate) fn missed(&self, warp: usize, (of, lane): (usize, usize)) -> bool {
        let [all, own] = self.passed[warp];
        let last = if warp == of { all.max(own) } else { all };
        self.exits.iter().any(|(exited, lanes, then)| *exited == of && lanes >> lane & 1 != 0 && last > *then)
    }

    /// The lanes of a warp that have exited.
    pub(crate) fn exited(&self, warp: usize) -> u32 {
        self.exited[warp]
    }

    /// The lanes that must release for the release to cover the whole warp.
    fn whole(&self, warp: usize, live: u32) -> u32 {
        live | self.exited[warp]
    }

    /// The lanes of `warp` release; `live` are all lanes that have not exited.
    pub(crate) fn release(&mut self, warp: usize, lanes: u32, live: u32, into: &mut Known) {
        into.join(&self.rows[warp]);
        for known in self.alone(warp, lanes) {
            into.join(known);
        }
        let (waiting, seen) = &self.unfenced[warp];
        if waiting & lanes != 0 {
            join_some(&mut into.observed, Some(seen));
        }
        into.front.join_part(Part { of: warp as u16, clock: self.now[warp], lanes }, self.whole(warp, live));
        self.advance(warp);
        self.changes[warp] = self.changes[warp].wrapping_add(1);
    }

    /// The lanes of `warp` acquire what was published.
    pub(crate) fn acquire(&mut self, warp: usize, lanes: u32, live: u32, from: &Known) {
        self.changes[warp] = self.changes[warp].wrapping_add(1);
        if lanes & live == live {
            self.rows[warp].join(from);
            self.rows[warp].observed = None;
            // What all lanes have acquired needs no entry per lane.
            let Front { all, parts, .. } = &mut self.rows[warp].front;
            parts.retain(|p| all.get(usize::from(p.of)).is_none_or(|known| p.clock > *known));
        } else {
            self.acquire_lanes(warp, lanes, from);
        }
        if let Some(seen) = &from.observed {
            self.see(warp, lanes, seen);
        }
    }

    /// Whether acquiring `from` would order more accesses before `lane` of `warp`.
    pub(crate) fn acquires_more(&self, (warp, lane): (usize, usize), live: u32, from: &Known) -> bool {
        let alone = self.whole(warp, live) == 1 << lane;
        let row = &self.rows[warp].front;
        let covers = |of: usize, of_lane: usize, clock: u32| {
            row.covers(of, of_lane, clock) || self.alone(warp, 1 << lane).any(|k| k.front.covers(of, of_lane, clock))
        };
        let whole = |(of, clock): (usize, &u32)| {
            *clock > row.of(of)
                && !(alone && of == warp)
                && !self.alone(warp, 1 << lane).any(|k| k.front.of(of) >= *clock)
        };
        let part = |p: &Part| {
            let of = usize::from(p.of);
            (0..32).any(|l| p.lanes >> l & 1 != 0 && (of, l) != (warp, lane) && !covers(of, l, p.clock))
        };
        from.front.all.iter().enumerate().any(whole) || from.front.parts.iter().any(part)
    }

    fn acquire_lanes(&mut self, warp: usize, lanes: u32, from: &Known) {
        let own = &mut self.lanes[warp];
        let mut rest = lanes;
        let mut divided = Vec::new();
        for (mask, known) in own.iter_mut() {
            let both = *mask & lanes;
            rest &= !both;
            if both == *mask {
                known.join(from);
            } else if both != 0 {
                let mut known = known.clone();
                known.join(from);
                divided.push((both, known));
                *mask &= !both;
            }
        }
        own.append(&mut divided);
        if rest != 0 {
            own.push((rest, from.clone()));
        }
        own.iter_mut().for_each(|(_, known)| known.observed = None);
    }

    /// The lanes of `warp` wait for each other.
    pub(crate) fn synchronise(&mut self, warp: usize, lanes: u32, live: u32) {
        self.pass(warp, true);
        self.changes[warp] = self.changes[warp].wrapping_add(1);
        if lanes & live == live {
            for (_, known) in std::mem::take(&mut self.lanes[warp]) {
                self.rows[warp].join(&known);
            }
            if self.unfenced[warp].0 != 0 {
                self.unfenced[warp].0 |= lanes;
            }
            let whole = self.whole(warp, live);
            let front = &mut self.rows[warp].front;
            front.join_part(Part { of: warp as u16, clock: self.now[warp], lanes }, whole);
            let met = front.all[warp];
            front.parts.retain(|p| usize::from(p.of) != warp || p.clock > met);
            self.advance(warp);
        } else {
            let mut known = Known::default();
            self.release(warp, lanes, live, &mut known);
            let seen = known.observed.take();
            // All of them have acquired the same now.
            let own = &mut self.lanes[warp];
            own.iter_mut().for_each(|(mask, _)| *mask &= !lanes);
            own.retain(|(mask, _)| *mask != 0);
            own.push((lanes, known));
            if let Some(seen) = seen {
                self.see(warp, lanes, &seen);
            }
        }
    }

    /// Strong reads of these lanes have observed what was published; a later fence acquires it.
    pub(crate) fn see(&mut self, warp: usize, lanes: u32, what: &Front) {
        let (waiting, seen) = &mut self.unfenced[warp];
        *waiting |= lanes;
        seen.join(what);
    }

    /// The acquire side of a fence; `wide`: its scope exceeds the block. The lanes acquire what they have observed.
    pub(crate) fn fence_after(&mut self, warp: usize, lanes: u32, live: u32, wide: bool) {
        let (waiting, seen) = &mut self.unfenced[warp];
        let now = *waiting & lanes;
        if now == 0 {
            return;
        }
        let mut front = seen.clone();
        if wide || front.foreign == 0 {
            *waiting &= !lanes;
            if *waiting == 0 {
                *seen = Front::default();
            }
        } else {
            // Publications of other blocks need a fence of wider scope.
            front.foreign = 0;
        }
        self.acquire(warp, now, live, &Known { front, ..Known::default() });
    }

    /// The release side of a fence: everything before it in the lanes counts as fenced.
    pub(crate) fn fence_before(&mut self, warp: usize, lanes: u32, live: u32, scope: Scope) {
        let mut known = Known::default();
        self.release(warp, lanes, live, &mut known);
        let levels: &[usize] = match scope {
            Scope::Block => &[ANY],
            Scope::Cluster => &[ANY, CLUSTER],
            Scope::Wide => &[ANY, CLUSTER, WIDE],
        };
        for level in levels {
            join_some(&mut self.rows[warp].fenced[*level], Some(&known.front));
        }
    }

    /// What a strong write of `lane` publishes: everything that a fence has followed; `wide`: to other blocks too.
    pub(crate) fn published(&self, warp: usize, lane: usize, live: u32, wide: bool) -> Option<Front> {
        self.fenced_of(warp, lane, live, if wide { WIDE } else { ANY })
    }

    /// The front of a lane that fences of this level have followed.
    fn fenced_of(&self, warp: usize, lane: usize, live: u32, level: usize) -> Option<Front> {
        let row = &self.rows[warp];
        let mut fenced = row.fenced[level].as_deref().cloned();
        for known in self.alone(warp, 1 << lane) {
            if let Some(more) = known.fenced[level].as_deref() {
                fenced.get_or_insert_default().join(more);
            }
        }
        let fenced = fenced?;
        // Fences of other lanes of the warp may cover what this lane has not acquired.
        let mut known = row.front.clone();
        for more in self.alone(warp, 1 << lane) {
            known.join(&more.front);
        }
        let all = fenced.all.iter().zip(&known.all).map(|(fenced, known)| *fenced.min(known)).collect();
        let mut out = Front { all, foreign: fenced.foreign.min(known.foreign), ..Front::default() };
        let mut own = fenced.of(warp);
        for part in &fenced.parts {
            if usize::from(part.of) == warp && part.lanes >> lane & 1 != 0 {
                own = own.max(part.clock);
            }
            // For other lanes, no more than this lane has acquired: those it synchronised with, up to that clock.
            let of = usize::from(part.of);
            let (mut lanes, mut clock) = (0, 0);
            for l in (0..32).filter(|l| part.lanes >> l & 1 != 0) {
                let up_to = known.up_to(of, l).min(part.clock);
                if up_to > out.of(of) {
                    (lanes, clock) = (lanes | 1 << l, clock.max(up_to));
                }
            }
            if lanes != 0 {
                out.join_part(Part { lanes, clock, ..*part }, u32::MAX);
            }
        }
        out.join_part(Part { of: warp as u16, clock: own, lanes: 1 << lane }, self.whole(warp, live));
        Some(out)
    }

    /// The lanes arrive and publish what cluster fences have followed, and the mbarriers that they initialised before
    /// an mbarrier-init fence.
    pub(crate) fn release_fenced(&mut self, warp: usize, lanes: u32, live: u32, into: &mut Known) {
        for lane in (0..32).filter(|lane| lanes >> lane & 1 != 0) {
            let Some(front) = self.fenced_of(warp, lane, live, CLUSTER) else { continue };
            into.front.join(&front);
            join_some(&mut into.fenced[ANY], Some(&front));
            join_some(&mut into.fenced[CLUSTER], Some(&front));
            join_some(&mut into.fenced[WIDE], self.published(warp, lane, live, true).as_ref());
            for known in std::iter::once(&self.rows[warp]).chain(self.alone(warp, 1 << lane)) {
                // An acquire of this front acquires the fenced fronts too.
                join_some(&mut into.fenced[DATA], known.fenced[DATA].as_deref());
                join_some(&mut into.fenced[OBJECTS], known.fenced[OBJECTS].as_deref());
            }
        }
        join_some(&mut into.fenced[INITS], self.inits[warp].as_deref());
    }

    /// A proxy fence of the lanes: the async proxy observes what happened before it. `inits`: initialised mbarriers
    /// only.
    pub(crate) fn fence_proxy(&mut self, warp: usize, lanes: u32, live: u32, inits: bool) {
        let (mut known, clock) = (Known::default(), self.now[warp]);
        self.release(warp, lanes, live, &mut known);
        let fenced = &mut self.rows[warp].fenced;
        join_some(&mut fenced[OBJECTS], Some(&known.front));
        if inits {
            // Only its own initialisations.
            let (own, whole) = (Part { of: warp as u16, clock, lanes }, self.whole(warp, live));
            self.inits[warp].get_or_insert_default().join_part(own, whole);
        } else {
            join_some(&mut fenced[DATA], Some(&known.front));
        }
    }

    /// Whether a proxy fence is between an access of `of` at `clock` and the next access of `lane` of `warp`.
    pub(crate) fn fenced_for_proxy(
        &self,
        (warp, lane): (usize, usize),
        (of, of_lane): (usize, usize),
        clock: u32,
        level: usize,
    ) -> bool {
        let covers = |known: &Known| known.fenced[level].as_ref().is_some_and(|f| f.covers(of, of_lane, clock));
        covers(&self.rows[warp]) || self.alone(warp, 1 << lane).any(covers)
    }

    /// For each agent, the clock up to which a proxy fence of all lanes precedes `warp`.
    #[inline(always)]
    pub(super) fn proxy_row(&self, warp: usize) -> Option<&[u32]> {
        self.rows[warp].fenced[DATA].as_ref().map(|front| &*front.all)
    }

    /// Advances the clock of an agent of the async proxy.
    pub(crate) fn advance(&mut self, agent: usize) {
        self.now[agent] = self.now[agent].saturating_add(1);
    }

    /// A new clock of the engine of `warp`, for copies that no thread has waited for yet.
    pub(crate) fn start_copies(&mut self, warp: usize) -> u32 {
        self.advance(self.engine(warp));
        self.now[self.engine(warp)]
    }

    /// What a copy engine releases: the copies of `lane` up to `clock` are complete.
    pub(crate) fn copies_done(&self, warp: usize, lane: usize, clock: u32, live: u32, into: &mut Known) {
        into.front.join_part(Part { of: self.engine(warp) as u16, clock, lanes: 1 << lane }, live);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: u32 = u32::MAX;

    #[test]
    fn whole_warps_hand_everything_on() {
        let mut c = Clocks::new(2, 0);
        let clock = c.now(0);
        assert!(!c.ordered((1, 0), (0, 5), clock));
        let mut known = Known::default();
        c.release(0, ALL, ALL, &mut known);
        c.acquire(1, ALL, ALL, &known);
        assert!(c.ordered((1, 0), (0, 5), clock));
        assert!(!c.ordered((1, 0), (0, 5), c.now(0)), "what it does afterwards is not ordered");
        assert!(!c.ordered((0, 1), (0, 5), clock), "publishing does not synchronise the lanes");
        c.synchronise(0, ALL, ALL);
        assert!(c.ordered((0, 1), (0, 5), clock));
    }

    #[test]
    fn one_lane_speaks_for_itself() {
        let mut c = Clocks::new(2, 0);
        let clock = c.now(0);
        let mut known = Known::default();
        c.release(0, 1, ALL, &mut known);
        c.acquire(1, ALL, ALL, &known);
        assert!(c.ordered((1, 9), (0, 0), clock));
        assert!(!c.ordered((1, 9), (0, 1), clock), "lane 1 published nothing");
        // After the lanes synchronised, a release by one lane covers them all.
        c.synchronise(0, ALL, ALL);
        c.release(0, 1, ALL, &mut known);
        c.acquire(1, ALL, ALL, &known);
        assert!(c.ordered((1, 9), (0, 1), clock));
    }

    #[test]
    fn one_lane_learns_for_itself() {
        let mut c = Clocks::new(2, 0);
        let clock = c.now(0);
        let mut known = Known::default();
        c.release(0, ALL, ALL, &mut known);
        c.acquire(1, 4, ALL, &known);
        assert!(c.ordered((1, 2), (0, 7), clock));
        assert!(!c.ordered((1, 3), (0, 7), clock));
        c.synchronise(1, 0b1100, ALL);
        assert!(c.ordered((1, 3), (0, 7), clock), "lane 3 waited for lane 2");
        assert!(!c.ordered((1, 5), (0, 7), clock));
        c.synchronise(1, ALL, ALL);
        assert!(c.ordered((1, 5), (0, 7), clock));
    }

    #[test]
    fn lanes_that_speak_one_by_one_are_a_whole() {
        let mut c = Clocks::new(2, 0);
        let clock = c.now(0);
        let mut known = Known::default();
        for lane in 0..4 {
            c.release(0, 1 << lane, 0xF, &mut known);
        }
        c.acquire(1, ALL, ALL, &known);
        assert!((0..4).all(|lane| c.ordered((1, 0), (0, lane), clock)));
    }

    #[test]
    fn lanes_that_have_exited_published_nothing_more() {
        let mut c = Clocks::new(2, 0);
        let (mut known, before) = (Known::default(), c.now(0));
        c.release(0, ALL, ALL, &mut known);
        let clock = c.now(0);
        c.exit(0, 1 << 5);
        let live = !(1 << 5);
        c.synchronise(0, live, live);
        c.release(0, live, live, &mut known);
        c.acquire(1, ALL, ALL, &known);
        for thread in [(0, 0), (1, 0)] {
            assert!(c.ordered(thread, (0, 6), clock));
            assert!(!c.ordered(thread, (0, 5), clock), "it was not there any more");
        }
        assert!(c.ordered((1, 0), (0, 5), before), "it was there before");
    }

    #[test]
    fn copies_are_known_by_lane() {
        let mut c = Clocks::new(1, 0);
        let clock = c.start_copies(0);
        let mut known = Known::default();
        c.copies_done(0, 3, clock, ALL, &mut known);
        c.acquire(0, ALL, ALL, &known);
        assert!(c.ordered((0, 0), (c.engine(0), 3), clock));
        assert!(!c.ordered((0, 0), (c.engine(0), 4), clock));
    }
}
