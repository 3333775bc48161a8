//! Kernels whose thread count is not a power of two.

use super::log2_shape;
use crate::Cx;
use crate::analysis::facts::Facts;
use crate::analysis::uses::path_to;
use crate::roles::threads_of;
use crate::thread_fills;
use tilec_ir::ctas;
use tilec_ir::entities::Stmt;
use tilec_ir::kernel::{Kernel, StmtData};
use tilec_ir::layout::{RegLayout, extent_bits};
use tilec_ir::roles::PRODUCER_WARPS;
use tilec_ir::target::WARP;

/// The threads that divide tiles: an odd number of groups, each a power of two of threads.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Threads {
    /// Log2 of the threads of a group.
    bits: u32,
    /// The number of groups, which is odd.
    groups: u64,
    /// Log2 of the factor by which threads were added as replicas.
    idle: u32,
}

impl Threads {
    /// The threads of the schedule, including all blocks of a cluster that share tiles.
    pub(crate) fn of(k: &Kernel) -> Threads {
        let threads = u64::from(threads_of(k)) * ctas::ctas(k).unsigned_abs();
        let bits = threads.trailing_zeros();
        Threads { bits, groups: threads >> bits, idle: 0 }
    }

    /// The threads that fill a slot: those of the role that contains the copy, or of the producer that will get it; the
    /// others are replicas until then. `None`: another copy.
    pub(crate) fn that_fill(k: &Kernel, cx: &Cx<'_>, facts: &Facts, s: Stmt) -> Option<Threads> {
        if thread_fills::fills_slot(k, s) {
            let own = u64::from(own_role(k, s)?) * u64::from(WARP);
            let bits = own.trailing_zeros();
            return Some(Threads { bits, groups: own >> bits, idle: 0 });
        }
        let bits = (PRODUCER_WARPS * WARP).ilog2();
        let idle = extent_bits(Threads::of(k).count()).saturating_sub(bits);
        thread_fills::is_one(k, cx.options, facts, s).then_some(Threads { bits, groups: 1, idle })
    }

    pub(crate) fn count(self) -> u64 {
        self.groups << self.bits
    }

    /// The layout of a scalar: every thread holds it.
    pub(crate) fn scalar(self) -> Option<RegLayout> {
        self.distribute(&[], &|_, threads| RegLayout::new(Vec::new(), vec![0; threads as usize], 0))
    }

    /// The layout of a tile, from `make`, which finds layouts for a power of two of threads. Several groups divide an
    /// extent that is a multiple of their number; if there is none, all groups have the same elements.
    pub(crate) fn distribute(
        self,
        shape: &[u64],
        make: &dyn Fn(&[u64], u32) -> Option<RegLayout>,
    ) -> Option<RegLayout> {
        self.distribute_within(shape, &[], make)
    }

    /// [`Self::distribute`], with the elements along the dimensions `within` in one group.
    pub(crate) fn distribute_within(
        self,
        shape: &[u64],
        within: &[usize],
        make: &dyn Fn(&[u64], u32) -> Option<RegLayout>,
    ) -> Option<RegLayout> {
        if self.groups == 1 {
            // If the extent is no power of two, the last threads may have no element; then fewer threads divide it, and
            // the rest are replicas.
            let mut bits = self.bits;
            let mut layout = make(shape, bits)?;
            while bits > 0 && layout.threads(shape).is_some_and(|n| n < 1 << bits) {
                bits -= 1;
                layout = make(shape, bits)?;
            }
            return repeated(layout, self.bits - bits + self.idle);
        }
        let numbers = extent_bits(self.groups);
        let units = |&d: &usize| !within.contains(&d) && shape[d] >> shape[d].trailing_zeros() == self.groups;
        let Some(dim) = (0..shape.len()).find(units) else {
            return repeated(make(shape, self.bits)?, numbers);
        };
        let mut part = shape.to_vec();
        part[dim] = 1 << shape[dim].trailing_zeros();
        let one = make(&part, self.bits)?;
        // Bits of the group number are above those of the unit.
        let at = log2_shape(&part[..=dim]).iter().sum::<u32>();
        let lift = |c: &u64| (c >> at) << (at + numbers) | c & ((1 << at) - 1);
        let numbered = (0..numbers).map(|i| 1u64 << (at + i));
        let thread = one.thread().cols().iter().map(lift).chain(numbered).collect();
        RegLayout::new(one.value().cols().iter().map(lift).collect(), thread, one.out_bits() + numbers)
    }
}

/// The same layout with `bits` more bits of thread number; these threads are replicas.
fn repeated(layout: RegLayout, bits: u32) -> Option<RegLayout> {
    let thread = [layout.thread().cols(), &vec![0; bits as usize]].concat();
    RegLayout::new(layout.value().cols().to_vec(), thread, layout.out_bits())
}

/// The warps of the role that contains a statement.
fn own_role(k: &Kernel, s: Stmt) -> Option<u32> {
    path_to(k, s).iter().find_map(|&(block, i)| match k.stmts[k.blocks[block][i]] {
        StmtData::Role { warps, .. } => k.as_int(warps).and_then(|n| u32::try_from(n).ok()),
        _ => None,
    })
}
