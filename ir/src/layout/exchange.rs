//! Data movement when a register tile changes its layout.
//!
//! Both layouts are linear over the bits of a thread's number and of a register's number. So is the lane and register
//! from which a thread takes an element of the new layout, if its warp holds it: solving one system for each column
//! gives both ([`Gather`]). If a column has no solution, elements cross warps and must go through shared memory
//! ([`Reach::Block`]). Replicated elements may be taken from any thread that holds them.

use super::f2::{F2Map, rank};
use super::tile::RegLayout;
use crate::target::WARP;

/// How far elements move to a new layout.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Reach {
    /// In their own registers.
    Thread,
    /// In registers of lanes of their warp.
    Warp,
    /// In other warps.
    Block,
}

/// The place of each element of a new layout in an old one, inside a warp.
///
/// Thread `t` finds its register `v` in the register `reg_of_thread · t ^ reg_of_value · v` of the lane
/// `lane_of_thread · t ^ lane_of_value · v` of its own warp.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gather {
    /// Lane bits, by bit of the thread's number.
    pub lane_of_thread: Vec<u64>,
    /// Register bits, by bit of the thread's number.
    pub reg_of_thread: Vec<u64>,
    /// Lane bits, by bit of the new register's number.
    pub lane_of_value: Vec<u64>,
    /// Register bits, by bit of the new register's number.
    pub reg_of_value: Vec<u64>,
}

impl Gather {
    /// Whether every thread finds its elements in its own lane.
    pub fn stays_in_lane(&self) -> bool {
        let own = |(i, &c): (usize, &u64)| c == if i < LANE_BITS { 1 << i } else { 0 };
        self.lane_of_thread.iter().enumerate().all(own) && self.lane_of_value.iter().all(|&c| c == 0)
    }

    /// Registers of the old layout that lanes of a warp need for one register of the new layout: a power of two.
    pub fn choices(&self) -> u64 {
        1 << rank(&self.reg_of_thread)
    }
}

/// Bits of a lane's number.
const LANE_BITS: usize = WARP.ilog2() as usize;

impl RegLayout {
    /// The sources of the elements of the layout `to` of the same tile; `None` if some are in another warp, or if the
    /// layouts are of different tiles or threads.
    pub fn gather(&self, to: &RegLayout) -> Option<Gather> {
        if self.out_bits() != to.out_bits() || self.thread_bits() != to.thread_bits() {
            return None;
        }
        let lanes = self.thread().cols().len().min(LANE_BITS);
        let (lane, value) = (&self.thread().cols()[..lanes], self.value().cols());
        // The solution prefers columns in front: elements stay in their lane, or in their register, where possible.
        let by_lane = F2Map::new([lane, value].concat(), self.out_bits())?;
        let by_value = F2Map::new([value, lane].concat(), self.out_bits())?;
        let mut found = Gather {
            lane_of_thread: Vec::new(),
            reg_of_thread: Vec::new(),
            lane_of_value: Vec::new(),
            reg_of_value: Vec::new(),
        };
        for (i, (&own, &wanted)) in self.thread().cols().iter().zip(to.thread().cols()).enumerate() {
            let x = match (i < lanes, own == wanted) {
                (true, true) => 1 << i,
                // Of lanes that repeat each other the own one has what the first has.
                (true, false) if own == 0 => by_lane.solve(wanted)? | 1 << i,
                (true, false) => by_lane.solve(wanted)?,
                // The threads of another warp have the bit of its number already.
                (false, _) => by_lane.solve(wanted ^ own)?,
            };
            found.lane_of_thread.push(x & ((1 << lanes) - 1));
            found.reg_of_thread.push(x >> lanes);
        }
        for &wanted in to.value().cols() {
            let x = by_value.solve(wanted)?;
            found.reg_of_value.push(x & ((1 << value.len()) - 1));
            found.lane_of_value.push(x >> value.len());
        }
        Some(found)
    }

    /// Swaps of a register bit with a lane bit, in sequence, that turn this layout into `to` up to the order of
    /// registers. `None` if other moves are needed.
    pub fn swaps(&self, to: &RegLayout) -> Option<Vec<(usize, u32)>> {
        if self.value_bits() != to.value_bits() || self.thread_bits() != to.thread_bits() {
            return None;
        }
        let mut value = self.value().cols().to_vec();
        let mut swaps = Vec::new();
        for (l, (&have, &want)) in (0..).zip(self.thread().cols().iter().zip(to.thread().cols())) {
            if have == want {
                continue;
            }
            let v = value.iter().position(|&c| c == want).filter(|_| l < WARP.ilog2())?;
            value[v] = have;
            swaps.push((v, l));
        }
        to.value().cols().iter().all(|c| value.contains(c)).then_some(swaps)
    }

    /// How far elements move from this layout to `to`, of the same tile and threads.
    pub fn reach(&self, to: &RegLayout) -> Reach {
        match self.gather(to) {
            Some(gather) if gather.stays_in_lane() => Reach::Thread,
            Some(_) => Reach::Warp,
            None => Reach::Block,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(value: &[u64], thread: &[u64], out: u32) -> RegLayout {
        RegLayout::new(value.to_vec(), thread.to_vec(), out).expect("a layout")
    }

    fn apply(cols: &[u64], x: u64) -> u64 {
        cols.iter().enumerate().fold(0, |a, (i, c)| if x >> i & 1 == 1 { a ^ c } else { a })
    }

    /// Checks for each element that its source holds what the new layout needs.
    fn check(from: &RegLayout, to: &RegLayout) {
        let gather = from.gather(to).expect("inside a warp");
        for t in 0..1u64 << to.thread_bits() {
            for v in 0..1u64 << to.value_bits() {
                let lane = apply(&gather.lane_of_thread, t) ^ apply(&gather.lane_of_value, v);
                let reg = apply(&gather.reg_of_thread, t) ^ apply(&gather.reg_of_value, v);
                assert!(lane < 32 && reg < 1 << from.value_bits());
                assert_eq!(from.at(t & !31 | lane, reg), to.at(t, v), "thread {t}, register {v}");
            }
        }
    }

    /// Layouts of one tile of 2^9 elements over two warps, with bits distributed in every order of a few generators.
    fn family() -> Vec<RegLayout> {
        let bit = |i: usize| 1u64 << i;
        let mut all = Vec::new();
        let mut order: Vec<usize> = (0..9).collect();
        for step in 0..40 {
            let cols: Vec<u64> = order.iter().map(|&i| bit(i)).collect();
            all.push(layout(&cols[..3], &cols[3..], 9));
            // A lane that moves along two bits, and threads that repeat others.
            let mut mixed = cols.clone();
            mixed[3] ^= cols[0];
            mixed[1] ^= cols[2];
            all.push(layout(&mixed[..3], &mixed[3..], 9));
            all.push(layout(&cols[..4], &[&cols[4..], &[0]].concat(), 9));
            order.rotate_left(1 + step % 3);
            order.swap(step % 9, (step * 5 + 2) % 9);
        }
        all
    }

    #[test]
    fn a_gather_finds_every_element() {
        let all = family();
        let mut reaches = [0; 3];
        for from in &all {
            for to in &all {
                reaches[from.reach(to) as usize] += 1;
                if from.gather(to).is_some() {
                    check(from, to);
                }
            }
        }
        assert!(reaches.iter().all(|&n| n > 0), "{reaches:?}");
    }

    #[test]
    fn warps_keep_what_is_theirs() {
        let from = layout(&[1], &[2, 4, 8, 16, 32, 64], 7);
        assert_eq!(from.reach(&from), Reach::Thread);
        assert_eq!(from.reach(&layout(&[2], &[1, 4, 8, 16, 32, 64], 7)), Reach::Warp);
        assert_eq!(from.reach(&layout(&[64], &[2, 4, 8, 16, 32, 1], 7)), Reach::Block);
        // If all lanes have the element, each takes its own. In the other direction, a shuffle is necessary.
        let (repeated, spread) = (layout(&[1, 2], &[0, 0, 0, 0, 0, 4], 3), layout(&[], &[1, 2, 0, 0, 0, 4], 3));
        assert_eq!(repeated.reach(&spread), Reach::Thread);
        assert_eq!(spread.reach(&repeated), Reach::Warp);
        check(&repeated, &spread);
        check(&spread, &repeated);
        // A tile that all warps have is near everywhere.
        let everywhere = layout(&[1], &[2, 4, 8, 16, 32, 0], 6);
        check(&everywhere, &layout(&[], &[2, 4, 8, 16, 32, 1], 6));
        // Other tiles, and other threads.
        assert_eq!(from.gather(&layout(&[1], &[2, 4, 8, 16, 32, 0], 6)), None);
        assert_eq!(from.gather(&layout(&[1, 64], &[2, 4, 8, 16, 32], 7)), None);
    }
}
