//! Who knows what of whom: vector clocks of warps and of their copy engines.
//!
//! An agent's accesses carry its clock, which advances whenever it publishes what it has done. `rows[w][v]` is the clock of `v`
//! up to which all accesses of `v` are ordered before what `w` does next; for `w` itself it is the clock of the last
//! instruction at which its lanes waited for each other. Part of a warp may publish or learn something alone (one elected
//! lane arrives at an mbarrier, or waits for it): that is kept beside the rows, by lanes, until the warp synchronises. Where two
//! such parts of one warp are published at one place they are joined to the later clock, which can hide a race between
//! lanes of one warp, never invent one.
//!
//! A relaxed write publishes only what a fence came after (PTX ISA 8.8: release pattern), and what a relaxed read saw is known
//! only after a fence (acquire pattern). So beside what is known stands what of it has been fenced, and what has been seen and
//! not been fenced. Barriers pass on all three: a fence counts whether the thread that writes the flag executed it or one
//! that met it at a barrier since, which is how `__threadfence(); __syncthreads(); if (t == 0) atomicAdd(..)` works.

use super::front::{ANY, CLUSTER, DATA, Front, INITS, Known, OBJECTS, Part, WIDE, join_some};
use super::slots::Slots;

/// The clocks of a block or cluster: of its warps, of their copy engines, which have the numbers after the last warp, and after those
/// of what works beside the warps ([`super::slots`]).
#[derive(Debug)]
pub(crate) struct Clocks {
    warps: usize,
    /// Each with a place for every agent.
    rows: Vec<Known>,
    now: Vec<u32>,
    /// What only some lanes of a warp have learnt: disjoint sets of lanes.
    lanes: Vec<Vec<(u32, Known)>>,
    /// What lanes of a warp have seen and no fence has followed.
    unfenced: Vec<(u32, Front)>,
    /// What each warp did before a fence for initialised mbarriers.
    inits: Vec<Option<Box<Front>>>,
    /// Lanes of each warp that have exited, together and when: after so many barriers.
    exited: Vec<u32>,
    exits: Vec<(usize, u32, u32)>,
    barriers: u32,
    /// Which the last was that each warp has passed, of several warps and of its own.
    passed: Vec<[u32; 2]>,
    /// How often each row has changed.
    changes: Vec<u32>,
    /// What works beside the warps.
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
    /// `slots`: how many agents there are for what works beside the warps.
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
    pub(super) fn is_beside(&self, agent: usize) -> bool {
        agent >= self.warps
    }

    /// The thread an access of an agent is said to be of.
    pub(super) fn thread(&self, agent: usize, lane: usize) -> (usize, usize) {
        self.slots.thread(agent, lane).unwrap_or((agent % self.warps, lane))
    }

    /// Up to which clock of each agent `warp` is ordered after it.
    #[inline(always)]
    pub(crate) fn row(&self, warp: usize) -> &[u32] {
        &self.rows[warp].front.all
    }

    /// The clock of an agent's next access.
    #[inline(always)]
    pub(crate) fn now(&self, agent: usize) -> u32 {
        self.now[agent]
    }

    /// How much `lane` of `warp` knows of other blocks.
    #[inline(always)]
    pub(crate) fn foreign(&self, warp: usize, lane: usize) -> u32 {
        let row = self.rows[warp].front.foreign;
        if self.lanes[warp].is_empty() {
            return row;
        }
        self.alone(warp, 1 << lane).fold(row, |n, known| n.max(known.front.foreign))
    }

    /// How often what a warp knows, or has to tell, has changed.
    pub(crate) fn changes(&self, warp: usize) -> u32 {
        self.changes[warp]
    }

    /// Whether strong writes of the warp may tell other blocks something.
    pub(crate) fn tells_others(&self, warp: usize) -> bool {
        self.rows[warp].fenced[WIDE].is_some() || self.lanes[warp].iter().any(|(_, known)| known.fenced[WIDE].is_some())
    }

    /// These lanes have read what other blocks published: everything up to this number, to be known after a fence.
    pub(crate) fn see_others(&mut self, warp: usize, lanes: u32, number: u32) {
        let (waiting, seen) = &mut self.unfenced[warp];
        *waiting |= lanes;
        seen.foreign = seen.foreign.max(number);
    }

    /// What these lanes know beside their row.
    fn alone(&self, warp: usize, lanes: u32) -> impl Iterator<Item = &Known> {
        self.lanes[warp].iter().filter(move |(mask, _)| mask & lanes != 0).map(|(_, known)| known)
    }

    /// Whether an access of `lane` of `of` at `clock` is ordered before what `lane` of `warp` does now.
    pub(crate) fn ordered(&self, (warp, lane): (usize, usize), (of, of_lane): (usize, usize), clock: u32) -> bool {
        (warp, lane) == (of, of_lane)
            || self.rows[warp].front.covers(of, of_lane, clock)
            || self.alone(warp, 1 << lane).any(|k| k.front.covers(of, of_lane, clock))
    }

    /// Lanes exit. Nobody is told of it: what they have not published before nobody knows, though all others of the warp be
    /// at a barrier.
    pub(crate) fn exit(&mut self, warp: usize, lanes: u32) {
        self.exited[warp] |= lanes;
        self.exits.push((warp, lanes, self.barriers));
    }

    /// Lanes of a warp pass a barrier, where others may be missed that have exited.
    pub(crate) fn pass(&mut self, warp: usize, own: bool) {
        self.barriers = self.barriers.saturating_add(1);
        self.passed[warp][usize::from(own)] = self.barriers;
    }

    /// Whether a warp has passed a barrier at which a lane, perhaps of another one, would have been, had it not exited.
    pub(crate) fn missed(&self, warp: usize, (of, lane): (usize, usize)) -> bool {
        let [all, own] = self.passed[warp];
        let last = if warp == of { all.max(own) } else { all };
        self.exits.iter().any(|(exited, lanes, then)| *exited == of && lanes >> lane & 1 != 0 && last > *then)
    }

    /// The lanes of a warp that have exited.
    pub(crate) fn exited(&self, warp: usize) -> u32 {
        self.exited[warp]
    }

    /// The lanes that must have published something for it to be of the whole warp.
    fn whole(&self, warp: usize, live: u32) -> u32 {
        live | self.exited[warp]
    }

    /// The lanes of `warp` publish what they have done and know; `live` are all lanes that have not exited.
    pub(crate) fn release(&mut self, warp: usize, lanes: u32, live: u32, into: &mut Known) {
        into.join(&self.rows[warp]);
        for known in self.alone(warp, lanes) {
            into.join(known);
        }
        let (waiting, seen) = &self.unfenced[warp];
        if waiting & lanes != 0 {
            join_some(&mut into.seen, Some(seen));
        }
        into.front.join_part(Part { of: warp as u16, clock: self.now[warp], lanes }, self.whole(warp, live));
        self.advance(warp);
        self.changes[warp] = self.changes[warp].wrapping_add(1);
    }

    /// The lanes of `warp` learn what was published.
    pub(crate) fn acquire(&mut self, warp: usize, lanes: u32, live: u32, from: &Known) {
        self.changes[warp] = self.changes[warp].wrapping_add(1);
        if lanes & live == live {
            self.rows[warp].join(from);
            self.rows[warp].seen = None;
            // What all lanes know needs no second place.
            let Front { all, parts, .. } = &mut self.rows[warp].front;
            parts.retain(|p| all.get(usize::from(p.of)).is_none_or(|known| p.clock > *known));
        } else {
            self.learn_apart(warp, lanes, from);
        }
        if let Some(seen) = &from.seen {
            self.see(warp, lanes, seen);
        }
    }

    /// Whether `lane` of `warp` would learn of accesses by what was published.
    pub(crate) fn would_learn(&self, (warp, lane): (usize, usize), live: u32, from: &Known) -> bool {
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

    fn learn_apart(&mut self, warp: usize, lanes: u32, from: &Known) {
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
        own.iter_mut().for_each(|(_, known)| known.seen = None);
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
            let seen = known.seen.take();
            // All of them know the same now.
            let own = &mut self.lanes[warp];
            own.iter_mut().for_each(|(mask, _)| *mask &= !lanes);
            own.retain(|(mask, _)| *mask != 0);
            own.push((lanes, known));
            if let Some(seen) = seen {
                self.see(warp, lanes, &seen);
            }
        }
    }

    /// These lanes have read by strong accesses what somebody published; they know it after a fence.
    pub(crate) fn see(&mut self, warp: usize, lanes: u32, what: &Front) {
        let (waiting, seen) = &mut self.unfenced[warp];
        *waiting |= lanes;
        seen.join(what);
    }

    /// The acquiring half of a fence, whose scope is `wide` if it is more than the block: the lanes know what they have seen.
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
            // What other blocks published waits for a wider fence.
            front.foreign = 0;
        }
        self.acquire(warp, now, live, &Known { front, ..Known::default() });
    }

    /// The releasing half: what the lanes have done and know is fenced.
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

    /// What a strong write of `lane` shows to those who see it: what it knows and a fence has followed, `wide` if others than
    /// those of the block are to see it.
    pub(crate) fn published(&self, warp: usize, lane: usize, live: u32, wide: bool) -> Option<Front> {
        self.fenced_of(warp, lane, live, if wide { WIDE } else { ANY })
    }

    /// What a lane knows and fences of this kind have followed.
    fn fenced_of(&self, warp: usize, lane: usize, live: u32, level: usize) -> Option<Front> {
        let row = &self.rows[warp];
        let mut fenced = row.fenced[level].as_deref().cloned();
        for known in self.alone(warp, 1 << lane) {
            if let Some(more) = known.fenced[level].as_deref() {
                fenced.get_or_insert_default().join(more);
            }
        }
        let fenced = fenced?;
        // Fences of other lanes of the warp may cover what this lane does not know.
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
            // Of other lanes no more than it knows: of those that it has waited for in a part of its warp, up to there.
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

    /// The lanes arrive and publish no more than fences of the cluster have followed, and the mbarriers that they have
    /// initialised before a fence for these.
    pub(crate) fn release_fenced(&mut self, warp: usize, lanes: u32, live: u32, into: &mut Known) {
        for lane in (0..32).filter(|lane| lanes >> lane & 1 != 0) {
            let Some(front) = self.fenced_of(warp, lane, live, CLUSTER) else { continue };
            into.front.join(&front);
            join_some(&mut into.fenced[ANY], Some(&front));
            join_some(&mut into.fenced[CLUSTER], Some(&front));
            join_some(&mut into.fenced[WIDE], self.published(warp, lane, live, true).as_ref());
            for known in std::iter::once(&self.rows[warp]).chain(self.alone(warp, 1 << lane)) {
                // Whoever requests these requests the order, too.
                join_some(&mut into.fenced[DATA], known.fenced[DATA].as_deref());
                join_some(&mut into.fenced[OBJECTS], known.fenced[OBJECTS].as_deref());
            }
        }
        join_some(&mut into.fenced[INITS], self.inits[warp].as_deref());
    }

    /// A proxy fence of the lanes: what they have done and know the async proxy sees too, of initialised mbarriers alone or
    /// of everything.
    pub(crate) fn fence_proxy(&mut self, warp: usize, lanes: u32, live: u32, inits: bool) {
        let (mut known, clock) = (Known::default(), self.now[warp]);
        self.release(warp, lanes, live, &mut known);
        let fenced = &mut self.rows[warp].fenced;
        join_some(&mut fenced[OBJECTS], Some(&known.front));
        if inits {
            // Of its own initialisations alone.
            let (own, whole) = (Part { of: warp as u16, clock, lanes }, self.whole(warp, live));
            self.inits[warp].get_or_insert_default().join_part(own, whole);
        } else {
            join_some(&mut fenced[DATA], Some(&known.front));
        }
    }

    /// Whether a proxy fence is between an access of `of` at `clock` and what `lane` of `warp` does now.
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

    /// Up to where a proxy fence of all lanes is between others and `warp`.
    #[inline(always)]
    pub(super) fn proxy_row(&self, warp: usize) -> Option<&[u32]> {
        self.rows[warp].fenced[DATA].as_ref().map(|front| &*front.all)
    }

    /// The next moment of something that works beside the warps.
    pub(crate) fn advance(&mut self, agent: usize) {
        self.now[agent] = self.now[agent].saturating_add(1);
    }

    /// A new clock of the engine of `warp`, for copies that nobody has waited for yet.
    pub(crate) fn start_copies(&mut self, warp: usize) -> u32 {
        self.advance(self.engine(warp));
        self.now[self.engine(warp)]
    }

    /// What a copy engine publishes: that the copies of `lane` up to `clock` are done.
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
        // After the lanes waited for each other, one of them speaks for all.
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
