//! Distributed shared memory: blocks of a cluster pass tiles to the last block.
//!
//! The tiles are at the end of the last block's shared memory, with an mbarrier for each entry of the first dimension.
//! Every block reserves this space, so addresses are the same in all. A block stores its tile by `st.async`, 16 bytes
//! at a time in the order of its registers. The mbarrier counts these bytes (PTX ISA 9.7.9.12), and `signal` arrives
//! with their number. `await` waits for the first phase, because each entry is written once.
//!
//! ```text
//! mbarrier.init [entry], 1                                        // every block, before the cluster meets
//! st.async.v4 [tile of the last block], {..}, [entry of the last block]
//! mbarrier.arrive.expect_tx.shared::cluster _, [entry of the last block], bytes      // one thread: `signal`
//! mbarrier.try_wait.parity [entry], 0                             // every thread: `await`
//! ld.shared.v4 {..}, [tile]
//! ```
//!
//! The last block ends when it has all tiles, and no block stores to another one.

use super::accesses::{cluster_store, guard};
use super::ranged_ints::Int;
use super::state::Lower;
use crate::inst::{AddrBase, Class, Guard, Operand, Reg};
use crate::ops::Op as P;
use crate::report::{ClusterBarrier, MbarrierKind, MbarrierReport, TileReport};
use tilec_ir::cluster::{self, MemoryPlace};
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported};
use tilec_ir::entities::{Block, Expr, Value};
use tilec_ir::kernel::{SignalOp, StmtData};
use tilec_ir::ops::Op;
use tilec_ir::placement::BARRIER_BYTES;
use tilec_ir::typing::resolve_view;

impl Lower<'_> {
    /// Places the tiles of distributed shared memory after `used` bytes, and returns the end of shared memory.
    pub(super) fn place_cluster_memory(&mut self, used: u64) -> u64 {
        let mut end = used;
        for memory in cluster::memory(self.k).collect::<Vec<_>>() {
            let place = MemoryPlace::after(end, cluster::tiles(self.k, memory).expect("specialised"));
            self.cluster_places.push((memory, place));
            let name = self.k.values[memory].name.clone();
            let MemoryPlace { offset, bytes, count, .. } = place;
            self.report.tiles.push(TileReport { name, offset, bytes, slots: count, stride: bytes });
            end = place.end();
        }
        assert!(end <= used + cluster::memory_bytes(self.k), "bug: distributed shared memory has too few bytes");
        end
    }

    pub(super) fn cluster_place(&self, memory: Value) -> Option<MemoryPlace> {
        self.cluster_places.iter().find(|&&(v, _)| v == memory).map(|&(_, place)| place)
    }

    /// Initialises the mbarriers of all entries.
    pub(super) fn ready_cluster_memory(&mut self) {
        if self.cluster_places.is_empty() {
            return;
        }
        self.emit.comment("mbarriers of tiles that other blocks of the cluster pass");
        for (memory, place) in self.cluster_places.clone() {
            let kind = MbarrierKind::PassedTile { memory: self.k.values[memory].name.clone(), bytes: place.bytes };
            self.report.mbarriers.push(MbarrierReport { kind, offset: place.barriers, count: place.count });
            for i in 0..place.count {
                let at = Operand::shared(0, (place.barriers + i * BARRIER_BYTES) as i64);
                self.emit.push(P::MbarrierInit, [at, Operand::Imm(1)]);
            }
        }
    }

    /// Whether statements store to distributed shared memory.
    pub(super) fn passes_tiles(&self, body: Block) -> bool {
        let mut found = false;
        self.k.walk(body, &mut |k, _, s| match k.stmts[s] {
            StmtData::Copy { dst, .. } => {
                found |= resolve_view(k, dst).is_some_and(|to| k.tensor_ty(to.base).is_some_and(|t| t.is_of_cluster()));
            }
            StmtData::Signal { op: SignalOp::Raise, signals, .. } => {
                found |= k.tensor_ty(signals).is_some_and(|t| t.is_of_cluster());
            }
            _ => {}
        });
        found
    }

    /// In front of a role that stores to another block: waits until all blocks have initialised their mbarriers.
    pub(super) fn sync_cluster(&mut self, body: Block) {
        if self.meets_later && self.passes_tiles(body) {
            self.emit.comment("all blocks of the cluster have begun");
            self.report_cluster_barrier(ClusterBarrier::InitialisedBeforeTiles);
            self.emit.push(P::BarrierClusterWaitAligned, []);
        }
    }

    /// The address of an entry's datum in this block's memory; entries are `bytes` apart.
    ///
    /// # Errors
    /// The index may be out of range.
    pub(super) fn entry_address(
        &mut self,
        (memory, place): (Value, MemoryPlace),
        (first, bytes): (u64, u64),
        index: Expr,
    ) -> Result<Reg, Reported> {
        let at = self.index(index)?;
        if at.lo < 0 || at.hi >= i128::from(place.count) {
            let name = &self.k.values[memory].name;
            let message = format!("an index of `{name}` that may be beyond its {} tiles", place.count);
            let d = Diagnostic::error(codes::INDEX_OVERFLOW, self.k.expr_spans[index], message);
            let note =
                format!("its range is {}..={}: bound it, by `min(INDEX, {})` say", at.lo, at.hi, place.count - 1);
            return Err(self.sink.report(d.with_note(note)));
        }
        let base = self.emit.pure(Class::B32, P::MovSharedU32, [Operand::SharedSym(0)]);
        let offset = self.int_op(Op::Mul, at, Int::constant(bytes as i64)).expect("shared memory is small");
        let offset = self.int_op(Op::Add, offset, Int::constant(first as i64)).expect("shared memory is small");
        let offset = self.as32(offset);
        Ok(self.emit.pure(Class::B32, P::AddS32, [base.into(), offset]))
    }

    /// The mbarrier of an entry in this block's memory.
    pub(super) fn entry_barrier(
        &mut self,
        (memory, place): (Value, MemoryPlace),
        index: Expr,
    ) -> Result<Reg, Reported> {
        self.entry_address((memory, place), (place.barriers, BARRIER_BYTES), index)
    }

    /// The same address in the last block of the cluster.
    pub(super) fn in_last_block(&mut self, own: Reg) -> Reg {
        let last = Operand::Imm(i64::from(self.cluster_blocks()) - 1);
        self.emit.pure(Class::B32, P::MapaSharedCluster, [own.into(), last])
    }

    /// `signal` and `await` of an entry.
    pub(super) fn signal_in_cluster(
        &mut self,
        op: SignalOp,
        (memory, place): (Value, MemoryPlace),
        index: Expr,
    ) -> Result<(), Reported> {
        let own = self.entry_barrier((memory, place), index)?;
        match op {
            SignalOp::Raise => {
                let there = self.in_last_block(own);
                let tid = self.tid();
                let first = self.emit.pure(Class::Pred, P::SetpEqS32, [tid.into(), Operand::Imm(0)]);
                let guard = Some(Guard { reg: first, negated: false });
                let bytes = Operand::Imm(place.bytes as i64);
                self.emit.push_if(
                    guard,
                    P::MbarrierArriveExpectTxCluster,
                    [Operand::Sink, Operand::at(there, 0), bytes],
                );
            }
            SignalOp::Await => {
                let zero = self.emit.pure(Class::B32, P::MovB32, [Operand::Imm(0)]);
                self.wait_for(Operand::at(own, 0), zero, "wait_tile");
            }
        }
        Ok(())
    }

    /// Emits a store, to the last block of the cluster if the statement passes a tile to it.
    pub(super) fn store_or_pass(
        &mut self,
        pred: Option<Reg>,
        op: P,
        address: Operand,
        value: Operand,
    ) -> Result<(), Reported> {
        match self.passed {
            Some(barrier) => self.store_to_last(pred, op, &address, (value, barrier)),
            None => self.put(pred, op, address, value)?,
        }
        Ok(())
    }

    /// The form of store `op` that writes to the last block and is counted by its mbarrier.
    pub(super) fn store_to_last(
        &mut self,
        pred: Option<Reg>,
        op: P,
        address: &Operand,
        (value, barrier): (Operand, Reg),
    ) {
        let (Some(op), &Operand::Addr { base: AddrBase::Reg(own), offset }) = (cluster_store(op, true), address) else {
            panic!("bug: what is passed has an address in shared memory");
        };
        let (there, barrier) = (self.in_last_block(own), self.in_last_block(barrier));
        self.emit.push_if(guard(pred), op, [Operand::at(there, offset), value, Operand::at(barrier, 0)]);
    }
}
