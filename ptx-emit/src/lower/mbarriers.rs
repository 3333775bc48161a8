//! Channels between roles: a pair of mbarriers for each slot.
//!
//! `full` completes a phase when the producer has arrived and the expected bytes have landed. If threads fill channels
//! of the ring, each of them arrives as well: for `cp.async` when its copies have landed (`cp.async.mbarrier.arrive`).
//! `empty` completes a phase when every consumer warp has arrived. A waiting thread keeps the parity of the next phase,
//! which flips each time the ring wraps. A new barrier counts as having completed the phase of parity 1, so the
//! producer finds all slots empty (PTX ISA 9.7.13.15). If slots of a channel are filled for all blocks of a cluster,
//! `empty` counts the consumer warps of all blocks ([`super::cluster`]).
//!
//! The addresses of the barriers and their arrival counts follow from the IR: for each ring first the `full` barriers,
//! then the `empty` ones.

use super::rings::{Barriers, Ring};
use super::state::Lower;
use crate::inst::{Class, Guard, Operand};
use crate::module::Item;
use crate::ops::Op as P;
use crate::report::{ClusterBarrier, MbarrierKind, MbarrierReport};
use tilec_ir::handover::has_roles;
use tilec_ir::kernel::ChannelOp;
use tilec_ir::placement::BARRIER_BYTES;

impl Lower<'_> {
    /// One thread prefetches the tensor maps and initialises the mbarriers of all rings; then they are made visible to
    /// the other threads.
    pub(super) fn ready_barriers(&mut self) {
        let rings: Vec<(u64, Barriers)> = self.rings.iter().filter_map(|r| Some((r.slots, r.barriers?))).collect();
        let barriers = !rings.is_empty() || !self.ordered.is_empty() || !self.cluster_places.is_empty();
        if !barriers && self.maps.is_empty() {
            return;
        }
        if !self.maps.is_empty() {
            self.emit.comment("descriptors of the tensors, made by the host");
        }
        let maps = self.map_addresses();
        let tid = self.block_tid();
        let other = self.emit.pure(Class::Pred, P::SetpNeS32, [tid.into(), Operand::Imm(0)]);
        // One branch around all of them. The assembler (ptxas 13.0) would make a branch of each guarded instruction,
        // with a fence, and compute the base address of shared memory anew. The first TMA load would wait for that.
        let ready = self.emit.label("ready");
        self.emit.push_if(Some(Guard { reg: other, negated: false }), P::Bra, [ready.into()]);
        for map in maps {
            self.emit.push(P::PrefetchTensormap, [Operand::Tensor { map, at: Vec::new() }]);
        }
        if !barriers {
            self.emit.item(Item::Label(ready));
            return;
        }
        if !rings.is_empty() {
            let what =
                "barriers of the channels: `full` for the bytes of a slot, `empty` for the warps that release it";
            self.emit.comment(what);
        }
        self.report_ring_barriers();
        for &(slots, Barriers { offset, full, empty }) in &rings {
            for i in 0..2 * slots {
                let at = Operand::shared(0, (offset + i * BARRIER_BYTES) as i64);
                let count = i64::from(if i < slots { full } else { empty });
                self.emit.push(P::MbarrierInit, [at, Operand::Imm(count)]);
            }
        }
        self.ready_turns();
        self.ready_cluster_memory();
        self.emit.push(P::FenceMbarrierInit, []);
        self.emit.item(Item::Label(ready));
        if self.blocks_meet() {
            // Only the barriers must be visible, and the fence in front has published them. `.release` would also wait
            // for all other outstanding stores.
            self.emit.push(P::BarrierClusterArriveRelaxedAligned, []);
            // TMA loads into this block's own slots need not wait for the other blocks.
            self.meets_later = has_roles(self.k) && !self.rings.iter().any(|ring| self.is_multicast(ring));
            match self.meets_later {
                true => self.meet_at_start(),
                false => {
                    self.report_cluster_barrier(ClusterBarrier::Initialised);
                    self.emit.push(P::BarrierClusterWaitAligned, []);
                }
            }
        } else {
            self.meet_at_start();
        }
    }

    /// All threads of the block see its initialised barriers.
    fn meet_at_start(&mut self) {
        self.emit.push(P::BarSync, [Operand::Imm(0)]);
        self.report.barriers += 1;
    }

    /// The channel operation itself, in front of the advance to the next slot. `asks` guards the lane that publishes
    /// the bytes of TMA loads; `None`: every thread that executes this.
    pub(super) fn operate(&mut self, op: ChannelOp, ring: &Ring, asks: Option<Guard>) {
        if ring.barriers.is_none() {
            return;
        }
        let empty = (ring.slots * BARRIER_BYTES) as i64;
        match op {
            ChannelOp::Acquire => {
                let turn = ring.known_turn(ring.put_turn);
                self.wait_for(Operand::at(turn.barrier, empty), turn.parity, "wait_empty");
            }
            ChannelOp::Wait => {
                let turn = ring.known_turn(ring.get_turn);
                self.wait_for(Operand::at(turn.barrier, 0), turn.parity, "wait_full");
            }
            ChannelOp::Publish => {
                let turn = ring.known_turn(ring.put_turn);
                let full = || Operand::at(turn.barrier, 0);
                if ring.fill.tensor {
                    let state = self.emit.reg(Class::B64);
                    let bytes = Operand::Imm(ring.filling as i64);
                    self.emit.push_if(asks, P::MbarrierArriveExpectTx, [state.into(), full(), bytes]);
                }
                if ring.fill.asynchronous > 0 {
                    self.emit.push(P::CpAsyncMbarrierArriveNoinc, [full()]);
                }
                if ring.fill.stored + ring.fill.idle_threads > 0 {
                    self.emit.def(Class::B64, P::MbarrierArrive, [full()]);
                }
            }
            ChannelOp::Release => {
                let turn = ring.known_turn(ring.get_turn);
                if ring.read {
                    // One lane arrives for its warp after all lanes have read.
                    self.emit.push(P::BarWarpSync, [Operand::Imm(0xffff_ffff)]);
                }
                let barrier = ring.oldest.unwrap_or(turn.barrier);
                if self.is_multicast(ring) {
                    self.arrive_everywhere(barrier, empty);
                } else {
                    let lane = self.first_lane();
                    let state = self.emit.reg(Class::B64);
                    let guard = Some(Guard { reg: lane, negated: false });
                    self.emit.push_if(guard, P::MbarrierArrive, [state.into(), Operand::at(barrier, empty)]);
                }
                if let Some(oldest) = ring.oldest {
                    self.next_oldest(ring, oldest);
                }
            }
        }
    }

    /// Says of the mbarriers of channels what each is for.
    fn report_ring_barriers(&mut self) {
        for ring in &self.rings {
            let Some(Barriers { offset, full, empty }) = ring.barriers else { continue };
            let channels: Vec<String> = ring.channels.iter().map(|&v| self.k.values[v].name.clone()).collect();
            let slots = ring.slots;
            let full = MbarrierKind::Full { channels: channels.clone(), slots, arrivals: full.into() };
            let empty = MbarrierKind::Empty { channels, slots, arrivals: empty.into() };
            for (kind, offset) in [(full, offset), (empty, offset + ring.slots * BARRIER_BYTES)] {
                self.report.mbarriers.push(MbarrierReport { kind, offset, count: ring.slots });
            }
        }
    }

    /// Readies the barriers of statements that are `ordered`.
    fn ready_turns(&mut self) {
        for turns in self.ordered.values() {
            let kind = MbarrierKind::Turn { arrivals: u64::from(turns.arrivals) };
            self.report.mbarriers.push(MbarrierReport { kind, offset: turns.offset, count: turns.replicas.into() });
        }
        for turns in self.ordered.values() {
            for i in 0..u64::from(turns.replicas) {
                let at = Operand::shared(0, (turns.offset + i * BARRIER_BYTES) as i64);
                self.emit.push(P::MbarrierInit, [at, Operand::Imm(i64::from(turns.arrivals))]);
            }
        }
    }
}
