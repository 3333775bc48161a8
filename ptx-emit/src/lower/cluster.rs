//! Clusters: blocks that share TMA loads.
//!
//! A `multicast` copy is divided along the rows of its boxes among the blocks that need the same window. Each of these
//! blocks requests one part. The part is written to the same slot in all of them and counts at the `full` barrier of
//! each. A block may fill a slot only when that slot is empty in all blocks of the cluster, including those that do not
//! share the window. So a consumer warp that releases a slot arrives at the `empty` barriers of all blocks (PTX ISA
//! 9.7.13.15, `mapa` and `.shared::cluster`). Blocks start together, and each ends only when no other block will access
//! its shared memory.

use super::rings::Ring;
use super::state::Lower;
use crate::inst::{Class, Guard, Operand, Reg};
use crate::ops::Op as P;
use crate::report::ClusterBarrier;
use tilec_ir::cluster;
use tilec_ir::diag::Reported;

/// Most axes of a cluster.
const AXES: usize = 3;

impl Lower<'_> {
    /// Blocks of a cluster.
    pub(super) fn cluster_blocks(&self) -> u32 {
        self.emit.func.cluster.iter().product()
    }

    /// Takes the cluster from the schedule if blocks share loads or tiles. Otherwise a cluster would only restrict the
    /// grid.
    pub(super) fn set_cluster(&mut self) -> Result<(), Reported> {
        let k = self.k;
        let Some(&first) = k.schedule.cluster.first() else { return Ok(()) };
        if !tilec_ir::handover::shares_with_cluster(k) {
            return Ok(());
        }
        if !self.target.has_clusters() {
            return Err(self.lacks(first, "clusters; leave `cluster` out of the schedule"));
        }
        if self.raster() > 1 {
            return Err(self.unfit(first, "a cluster of blocks that are walked over in groups of columns (`raster`)"));
        }
        for axis in 0..AXES {
            self.emit.func.cluster[axis] =
                u32::try_from(cluster::along(k, axis)).expect("the verifier bounds clusters");
        }
        Ok(())
    }

    /// Whether blocks access one another's shared memory, so that they begin and end together.
    pub(super) fn blocks_meet(&self) -> bool {
        self.cluster_blocks() > 1
    }

    /// Says what a barrier of the cluster is for.
    pub(super) fn report_cluster_barrier(&mut self, what: ClusterBarrier) {
        self.report.cluster_barriers.push(what);
    }

    /// After all statements: no block ends while others may write to its memory.
    pub(super) fn leave_cluster(&mut self) {
        let open = self.rings.iter().any(|ring| !ring.drained && self.is_multicast(ring));
        if self.blocks_meet() && open {
            self.emit.comment("no block leaves while others may write to its memory");
            self.report_cluster_barrier(ClusterBarrier::EndOfLoads);
            self.emit.push(P::BarrierClusterArrive, []);
            self.emit.push(P::BarrierClusterWait, []);
        }
    }

    /// Whether slots of a ring are filled by multicast loads.
    pub(super) fn is_multicast(&self, ring: &Ring) -> bool {
        self.cluster_blocks() > 1 && ring.channels.iter().any(|&c| cluster::fills_by_multicast(self.k, c))
    }

    /// Arrives at a barrier in all blocks, a lane for each; `offset` is counted from `barrier`.
    pub(super) fn arrive_everywhere(&mut self, barrier: Reg, offset: i64) {
        let tid = self.block_tid();
        let lane = self.emit.pure(Class::B32, P::AndB32, [tid.into(), Operand::Imm(31)]);
        let own = self.emit.def(Class::B32, P::AddS32, [barrier.into(), Operand::Imm(offset)]);
        self.arrive_in_each(lane, own);
    }

    /// Arrives at the barrier at offset `own` in each block: the thread whose `number` is a block's rank arrives there.
    /// Threads with larger numbers do not arrive.
    pub(super) fn arrive_in_each(&mut self, number: Reg, own: Reg) {
        let blocks = Operand::Imm(i64::from(self.cluster_blocks()));
        let one_each = self.emit.pure(Class::Pred, P::SetpLtS32, [number.into(), blocks]);
        let guard = Some(Guard { reg: one_each, negated: false });
        let there = self.emit.reg(Class::B32);
        self.emit.push_if(guard, P::MapaSharedCluster, [there.into(), own.into(), number.into()]);
        self.emit.push_if(guard, P::MbarrierArriveCluster, [Operand::Sink, Operand::at(there, 0)]);
    }
}
