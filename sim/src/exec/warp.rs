//! A warp: register files with an array of lanes for each register, and its threads as fragments that share a program
//! counter.
//!
//! Fragments split where lanes diverge, and join only at synchronising instructions. Every slot records the lanes in
//! which it is defined; an operation on undefined lanes gives undefined lanes.

use crate::counters::Counts;

use crate::exec::products::Products;
use crate::program::types::{L32, L64, R, SINK, TRUE};
use crate::program::{Entry, Special, Vote};
use std::fmt;

/// A 32-bit slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot32 {
    pub(crate) v: L32,
    /// Lanes in which it is defined.
    pub(crate) ok: u32,
}

/// A 64-bit slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot64 {
    pub(crate) v: L64,
    pub(crate) ok: u32,
}

/// A predicate: a bit for each lane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotP {
    pub(crate) v: u32,
    pub(crate) ok: u32,
}

/// Why a fragment waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    Ready,
    /// At a synchronising instruction that needs these lanes at the same place.
    Converge {
        need: u32,
        aligned: bool,
    },
    /// At a barrier; `red` is the result register of `bar.red`.
    Barrier {
        id: u8,
        red: Option<(Vote, R)>,
    },
    /// At the barrier of the cluster.
    Cluster,
    /// For registers that other warps release.
    Registers {
        more: u32,
    },
    /// After a failed wait for a phase of the mbarrier at this address.
    Poll {
        at: u32,
        want: AwaitedPhase,
    },
    /// For a flag that the instruction at `pc` reads; `exact`: it only continues when the flag changes.
    Flag {
        pc: u32,
        exact: bool,
    },
}

/// Lanes with a common program counter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frag {
    pub(crate) pc: u32,
    pub(crate) mask: u32,
    pub(crate) wait: Wait,
}

/// One warp.
#[derive(Clone, Debug)]
pub(crate) struct Warp {
    pub(crate) index: usize,
    pub(crate) w: Vec<Slot32>,
    pub(crate) l: Vec<Slot64>,
    pub(crate) p: Vec<SlotP>,
    pub(crate) frags: Vec<Frag>,
    /// Lanes that have not exited.
    pub(crate) live: u32,
    /// Asynchronous copies of each lane: see `exec::asynchronous`.
    pub(crate) copies: super::asynchronous::Queue,
    /// Bulk copies from shared memory, and asynchronous products.
    pub(crate) bulk: super::bulk::Stores,
    pub(crate) products: Products,
    /// The limit set by `setmaxnreg`.
    pub(crate) registers: Option<u32>,
    /// Fragments that may poll a flag.
    pub(super) watches: Vec<Watch>,
    /// Plain loads in loops that are known not to poll.
    pub(super) busy: Vec<u32>,
}

/// The values of special registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) block: [u32; 3],
    pub(crate) grid: [u32; 3],
    pub(crate) index: [u32; 3],
    pub(crate) dynamic: u32,
    pub(crate) shared: u32,
    /// Blocks of a cluster, whether the launch or the kernel requests it, and the start of the block's shared memory.
    pub(crate) cluster: [u32; 3],
    pub(crate) explicit: bool,
    pub(crate) base: u32,
}

/// Position of a thread in a block of this shape.
pub(crate) fn thread_of(block: [u32; 3], linear: u32) -> [u32; 3] {
    let (x, y) = (block[0].max(1), block[1].max(1));
    [linear % x, linear / x % y, linear / x / y]
}

impl Warp {
    /// Warp `local` of its block, with the number `index` in the cluster.
    pub(crate) fn new(entry: &Entry, index: usize, local: usize, threads: u32, shape: &Shape) -> Warp {
        let first = local as u32 * 32;
        let lanes = threads.saturating_sub(first).min(32);
        let live = if lanes == 32 { u32::MAX } else { (1 << lanes) - 1 };
        let mut warp = Warp {
            index,
            w: vec![Slot32 { v: [0; 32], ok: 0 }; entry.n32],
            l: vec![Slot64 { v: [0; 32], ok: 0 }; entry.n64],
            p: vec![SlotP { v: 0, ok: 0 }; entry.npred],
            frags: vec![Frag { pc: 0, mask: live, wait: Wait::Ready }],
            live,
            copies: super::asynchronous::Queue::default(),
            bulk: super::bulk::Stores::default(),
            products: Products::default(),
            registers: None,
            watches: Vec::new(),
            busy: Vec::new(),
        };
        for &(slot, value) in &entry.const32 {
            warp.w[slot as usize] = Slot32 { v: [value; 32], ok: u32::MAX };
        }
        for &(slot, value) in &entry.const64 {
            warp.l[slot as usize] = Slot64 { v: [value; 32], ok: u32::MAX };
        }
        for &(slot, value) in &entry.shared64 {
            warp.l[slot as usize] = Slot64 { v: [value + u64::from(shape.base); 32], ok: u32::MAX };
        }
        if let Some(slot) = entry.clustered {
            warp.p[slot as usize] = SlotP { v: if shape.explicit { u32::MAX } else { 0 }, ok: u32::MAX };
        }
        warp.p[TRUE as usize] = SlotP { v: u32::MAX, ok: u32::MAX };
        for &(slot, special) in &entry.specials {
            let v = std::array::from_fn(|lane| special_value(special, first + lane as u32, threads, shape));
            warp.w[slot as usize] = Slot32 { v, ok: u32::MAX };
        }
        warp
    }

    /// Writes the lanes in `mask` of a 32-bit slot; `ok` says which of them are defined.
    #[inline(always)]
    pub(crate) fn put32(&mut self, d: R, mask: u32, v: &L32, ok: u32) {
        let slot = &mut self.w[d as usize];
        if mask == u32::MAX {
            slot.v = *v;
            slot.ok = ok;
            return;
        }
        for lane in 0..32 {
            if mask >> lane & 1 != 0 {
                slot.v[lane] = v[lane];
            }
        }
        slot.ok = (slot.ok & !mask) | (ok & mask);
    }

    /// Writes the lanes in `mask` of a 64-bit slot.
    #[inline(always)]
    pub(crate) fn put64(&mut self, d: R, mask: u32, v: &L64, ok: u32) {
        let slot = &mut self.l[d as usize];
        if mask == u32::MAX {
            slot.v = *v;
            slot.ok = ok;
            return;
        }
        for lane in 0..32 {
            if mask >> lane & 1 != 0 {
                slot.v[lane] = v[lane];
            }
        }
        slot.ok = (slot.ok & !mask) | (ok & mask);
    }

    /// Writes the lanes in `mask` of a predicate.
    #[inline(always)]
    pub(crate) fn putp(&mut self, d: R, mask: u32, v: u32, ok: u32) {
        if d == SINK {
            return;
        }
        let slot = &mut self.p[d as usize];
        slot.v = (slot.v & !mask) | (v & mask);
        slot.ok = (slot.ok & !mask) | (ok & mask);
    }

    /// A slot of either file as 64-bit lanes.
    pub(crate) fn any(&self, r: R, wide: bool) -> (L64, u32) {
        if wide {
            let slot = &self.l[r as usize];
            (slot.v, slot.ok)
        } else {
            let slot = &self.w[r as usize];
            (slot.v.map(u64::from), slot.ok)
        }
    }

    /// Writes a slot of either file.
    pub(crate) fn put_any(&mut self, r: R, wide: bool, mask: u32, v: &L64, ok: u32) {
        if wide {
            self.put64(r, mask, v, ok);
        } else {
            self.put32(r, mask, &v.map(|x| x as u32), ok);
        }
    }

    /// Joins fragments that wait for each other at the same place. The result says whether one became ready.
    pub(crate) fn converge(&mut self) -> bool {
        let mut moved = false;
        let mut i = 0;
        while i < self.frags.len() {
            let here = self.frags[i];
            if let Wait::Converge { need, .. } = here.wait {
                let mut union = 0;
                for f in &self.frags {
                    if f.pc == here.pc && matches!(f.wait, Wait::Converge { .. }) {
                        union |= f.mask;
                    }
                }
                if union & need & self.live == need & self.live {
                    self.frags.retain(|f| f.pc != here.pc || !matches!(f.wait, Wait::Converge { .. }));
                    self.frags.push(Frag { pc: here.pc, mask: union, wait: Wait::Ready });
                    moved = true;
                    i = 0;
                    continue;
                }
            }
            i += 1;
        }
        moved
    }

    /// Removes lanes; a fragment without lanes is removed.
    pub(crate) fn retire(&mut self, at: usize, lanes: u32) {
        self.live &= !lanes;
        self.frags[at].mask &= !lanes;
        self.frags[at].pc += 1;
        if self.frags[at].mask == 0 {
            self.frags.remove(at);
        }
    }
}

fn special_value(special: Special, thread: u32, threads: u32, shape: &Shape) -> u32 {
    let lane = thread % 32;
    match special {
        Special::Tid(axis) => thread_of(shape.block, thread)[usize::from(axis)],
        Special::NTid(axis) => shape.block[usize::from(axis)],
        Special::CtaId(axis) => shape.index[usize::from(axis)],
        Special::NCtaId(axis) => shape.grid[usize::from(axis)],
        Special::LaneId => lane,
        Special::WarpId => thread / 32,
        Special::NWarpId => threads.div_ceil(32),
        Special::LaneMaskEq => 1 << lane,
        Special::LaneMaskLt => (1 << lane) - 1,
        Special::LaneMaskLe => u32::MAX >> (31 - lane),
        Special::LaneMaskGt => !(u32::MAX >> (31 - lane)),
        Special::LaneMaskGe => !((1 << lane) - 1),
        Special::DynamicSharedBytes => shape.dynamic,
        Special::TotalSharedBytes => shape.shared,
        Special::ClusterId(axis) => shape.index[usize::from(axis)] / shape.cluster[usize::from(axis)],
        Special::NClusterId(axis) => shape.grid[usize::from(axis)] / shape.cluster[usize::from(axis)],
        Special::ClusterCtaId(axis) => shape.index[usize::from(axis)] % shape.cluster[usize::from(axis)],
        Special::ClusterNCtaId(axis) => shape.cluster[usize::from(axis)],
        Special::ClusterRank => {
            let [x, y, z]: [u32; 3] = std::array::from_fn(|axis| shape.index[axis] % shape.cluster[axis]);
            x + shape.cluster[0] * (y + shape.cluster[1] * z)
        }
        Special::ClusterSize => shape.cluster.iter().product(),
        Special::SharedAt(offset) => shape.base + offset,
        Special::Zero => 0,
        Special::One => 1,
    }
}

/// Free registers of a block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pool {
    pub(crate) free: u32,
}

/// The elements that a thread last found unwritten at a vector load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unwritten {
    /// The start of the vector, and the name of its memory.
    pub(crate) address: u64,
    pub(crate) memory: &'static str,
    /// A bit for each element.
    pub(crate) elements: u8,
}

/// The values that a fragment has read, by lane.
#[derive(Clone, Debug)]
pub(crate) struct PolledValues {
    pub(crate) lanes: u32,
    /// Generic addresses.
    pub(crate) at: [u64; 32],
    pub(crate) bytes: u64,
    pub(crate) data: [[u32; 4]; 32],
}

/// The instructions of an iteration with their costs.
pub(crate) type Turn = Vec<(u32, Counts)>;

/// Lanes that may be polling in a loop.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    /// The lanes, which stay together while others join and leave, and the polling load.
    pub(crate) mask: u32,
    pub(crate) pc: u32,
    /// The instructions executed and values read since the last poll.
    pub(crate) turn: Turn,
    pub(crate) polled: Vec<PolledValues>,
    /// The previous iteration, and a hash of the registers at its end.
    pub(crate) last: Option<(Turn, u64)>,
    /// The iterations of the loop, once it is known to poll.
    pub(crate) path: Option<Turn>,
    /// Whether the next poll is the first one after sleeping.
    pub(crate) woken: bool,
    /// Number of iterations with changed registers.
    pub(crate) restless: u32,
    /// Whether other fragments or warps take part in the iterations.
    pub(crate) joint: bool,
}

/// The phase a fragment waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AwaitedPhase {
    Phase(u32),
    Parity(u32),
}

impl fmt::Display for AwaitedPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AwaitedPhase::Phase(n) => write!(f, "phase {n}"),
            AwaitedPhase::Parity(n) => write!(f, "a phase of parity {n}"),
        }
    }
}

pub(crate) fn cut(v: u32, size: usize) -> u32 {
    if size >= 4 { v } else { v & ((1 << (size * 8)) - 1) }
}
