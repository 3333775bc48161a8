//! Who knows what of whom: vector clocks of warps and of their copy engines.
//!
//! An agent's accesses carry its clock, which advances whenever it publishes what it has done. `rows[w][v]` is the clock of `v`
//! up to which all accesses of `v` are ordered before what `w` does next; for `w` itself it is the clock of the last
//! instruction at which its lanes waited for each other. Part of a warp may publish or learn something alone (one elected
//! lane arrives at an mbarrier, or waits for it): that is kept beside the rows until the warp synchronises. Where two such
//! parts meet they are joined to the later clock, which can hide a race between lanes of one warp, never invent one.

/// Warps and engines of a block: a warp's engine follows 32 later.
pub(crate) const AGENTS: usize = 64;

/// The agent that performs the asynchronous copies of `warp`.
pub(crate) const fn engine(warp: usize) -> usize {
    32 + warp
}

/// What is known of some lanes of an agent alone.
#[derive(Clone, Copy, Debug)]
struct Part {
    of: u8,
    clock: u32,
    lanes: u32,
}

/// Knowledge that can be handed on.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    all: [u32; AGENTS],
    parts: Vec<Part>,
}

impl Default for Known {
    fn default() -> Known {
        Known { all: [0; AGENTS], parts: Vec::new() }
    }
}

impl Known {
    /// Adds what another knows.
    pub(crate) fn join(&mut self, other: &Known) {
        self.join_row(&other.all);
        for part in &other.parts {
            self.join_part(*part, u32::MAX);
        }
    }

    fn join_row(&mut self, row: &[u32; AGENTS]) {
        for (a, b) in self.all.iter_mut().zip(row) {
            *a = (*a).max(*b);
        }
    }

    /// `live` are the lanes that make a whole.
    fn join_part(&mut self, part: Part, live: u32) {
        let all = &mut self.all[usize::from(part.of)];
        if part.clock <= *all {
            return;
        }
        let mut joined = part;
        if let Some(same) = self.parts.iter_mut().find(|p| p.of == part.of) {
            if same.clock > *all {
                (joined.clock, joined.lanes) = (part.clock.max(same.clock), part.lanes | same.lanes);
            }
            *same = joined;
        } else {
            self.parts.push(joined);
        }
        if joined.lanes & live == live {
            *all = joined.clock;
        }
    }

    fn covers(&self, of: usize, lane: usize, clock: u32) -> bool {
        let part = |p: &Part| usize::from(p.of) == of && p.lanes >> lane & 1 != 0 && clock <= p.clock;
        clock <= self.all[of] || self.parts.iter().any(part)
    }
}

/// The clocks of a block.
#[derive(Debug)]
pub(crate) struct Clocks {
    rows: Vec<Known>,
    now: [u32; AGENTS],
    /// What only some lanes of a warp have learnt.
    lanes: Vec<Option<Box<(u32, Known)>>>,
}

impl Clocks {
    pub(crate) fn new(warps: usize) -> Clocks {
        Clocks { rows: vec![Known::default(); warps], now: [1; AGENTS], lanes: vec![None; warps] }
    }

    /// Up to which clock of each agent `warp` is ordered after it.
    #[inline(always)]
    pub(crate) fn row(&self, warp: usize) -> &[u32; AGENTS] {
        &self.rows[warp].all
    }

    /// The clock of an agent's next access.
    #[inline(always)]
    pub(crate) fn now(&self, agent: usize) -> u32 {
        self.now[agent]
    }

    /// Whether an access of `lane` of `of` at `clock` is ordered before what `lane` of `warp` does now.
    pub(crate) fn ordered(&self, (warp, lane): (usize, usize), (of, of_lane): (usize, usize), clock: u32) -> bool {
        (warp, lane) == (of, of_lane)
            || self.rows[warp].covers(of, of_lane, clock)
            || self.lanes[warp].as_ref().is_some_and(|k| k.0 >> lane & 1 != 0 && k.1.covers(of, of_lane, clock))
    }

    /// The lanes of `warp` publish what they have done and know; `live` are all lanes that have not exited.
    pub(crate) fn release(&mut self, warp: usize, lanes: u32, live: u32, into: &mut Known) {
        into.join(&self.rows[warp]);
        if let Some(own) = &self.lanes[warp]
            && own.0 & lanes != 0
        {
            into.join(&own.1);
        }
        into.join_part(Part { of: warp as u8, clock: self.now[warp], lanes }, live);
        self.advance(warp);
    }

    /// The lanes of `warp` learn what was published.
    pub(crate) fn acquire(&mut self, warp: usize, lanes: u32, live: u32, from: &Known) {
        if lanes & live == live {
            self.rows[warp].join(from);
            // What all lanes know needs no second place.
            let Known { all, parts } = &mut self.rows[warp];
            parts.retain(|p| p.clock > all[usize::from(p.of)]);
        } else {
            let own = self.lanes[warp].get_or_insert_default();
            own.0 |= lanes;
            own.1.join(from);
        }
    }

    /// The lanes of `warp` wait for each other.
    pub(crate) fn synchronise(&mut self, warp: usize, lanes: u32, live: u32) {
        if lanes & live == live {
            if let Some(own) = self.lanes[warp].take() {
                self.rows[warp].join(&own.1);
            }
            self.rows[warp].all[warp] = self.now[warp];
            self.rows[warp].parts.retain(|p| usize::from(p.of) != warp);
            self.advance(warp);
        } else {
            let mut known = Known::default();
            self.release(warp, lanes, live, &mut known);
            self.acquire(warp, lanes, live, &known);
        }
    }

    fn advance(&mut self, agent: usize) {
        self.now[agent] = self.now[agent].saturating_add(1);
    }

    /// A new clock of the engine of `warp`, for copies that nobody has waited for yet.
    pub(crate) fn start_copies(&mut self, warp: usize) -> u32 {
        self.advance(engine(warp));
        self.now[engine(warp)]
    }

    /// What a copy engine publishes: that the copies of `lane` up to `clock` are done.
    pub(crate) fn copies_done(&self, warp: usize, lane: usize, clock: u32, live: u32, into: &mut Known) {
        into.join_part(Part { of: engine(warp) as u8, clock, lanes: 1 << lane }, live);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: u32 = u32::MAX;

    #[test]
    fn whole_warps_hand_everything_on() {
        let mut c = Clocks::new(2);
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
        let mut c = Clocks::new(2);
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
        let mut c = Clocks::new(2);
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
        let mut c = Clocks::new(2);
        let clock = c.now(0);
        let mut known = Known::default();
        for lane in 0..4 {
            c.release(0, 1 << lane, 0xF, &mut known);
        }
        c.acquire(1, ALL, ALL, &known);
        assert!((0..4).all(|lane| c.ordered((1, 0), (0, lane), clock)));
    }

    #[test]
    fn copies_are_known_by_lane() {
        let mut c = Clocks::new(1);
        let clock = c.start_copies(0);
        let mut known = Known::default();
        c.copies_done(0, 3, clock, ALL, &mut known);
        c.acquire(0, ALL, ALL, &known);
        assert!(c.ordered((0, 0), (engine(0), 3), clock));
        assert!(!c.ordered((0, 0), (engine(0), 4), clock));
    }
}
