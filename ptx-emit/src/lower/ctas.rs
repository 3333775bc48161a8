//! Tiles that blocks of a cluster share (`ctas`).
//!
//! Lowering sees one block with the threads of all blocks of the cluster. In the number of a thread, the rank of its
//! block in the cluster is above the thread's number in its block ([`tilec_ir::ctas`]). Buffers hold partial
//! results of rows, so they are small, and each block has all of them. Stores go to the shared memory of every block
//! (PTX ISA 9.7.9.23, `mapa`), and loads read the block's own. Barriers are those of the cluster (PTX ISA 9.7.13.3), or
//! wait for the bytes that all blocks store in front of them ([`tilec_ir::ctas::counted`]). A block's memory may be
//! written from its start until its end.
//!
//! An mbarrier that counts bytes completes one phase: thread 0 sets the expected bytes at the start. The mbarriers are
//! after the buffers. In a loop, iterations alternate between two sets of buffers and mbarriers; the second set is
//! after all others. Thread 0 sets the expected bytes again when those of an iteration have arrived. The mbarrier also
//! counts an arrival of each block, which shows that this block has read the data of the previous iteration. `st.async`
//! does not order earlier accesses of its thread.
//!
//! ```text
//! barrier.sync 0                                  // the first barrier of the loop: this block has read the buffers of the iteration before
//! slot = slot ^ stride; parity = parity ^ (slot == 0)
//! thread of each block's number: mbarrier.arrive [mbarrier + slot of that block]
//! st.async [buffer + slot of a block], .., [mbarrier + slot of that block]     // lanes that hold the same element: one block each
//! mbarrier.try_wait [mbarrier + slot], parity     // the second one
//! thread 0: mbarrier.arrive.expect_tx [mbarrier + slot]
//! ld.shared [buffer + slot]
//! ```

use super::accesses::{cluster_store, guard};
use super::counted_stores::{CountedAt, DoubleBuffer};
use super::state::Lower;
use super::store_distribution::LaneStores;
use crate::inst::{AddrBase, Class, Guard, Label, Operand, Reg};
use crate::module::Item;
use crate::ops::Op as P;
use crate::report::{ClusterBarrier, MbarrierKind, MbarrierReport};
use tilec_ir::ctas;
use tilec_ir::diag::Reported;
use tilec_ir::entities::{Stmt, Value};
use tilec_ir::kernel::{Kernel, StmtData};
use tilec_ir::placement::{BARRIER_BYTES, ROW_ALIGN};
use tilec_ir::typing::resolve_view;

impl Lower<'_> {
    /// The number of blocks that share a tile.
    pub(super) fn ctas(&self) -> u32 {
        u32::try_from(ctas::ctas(self.k)).expect("the verifier bounds clusters")
    }

    /// The thread's number among those of the cluster.
    pub(super) fn cluster_tid(&mut self, tid: Reg) -> Reg {
        let rank = self.cluster_rank();
        let bits = Operand::Imm(i64::from(self.block_threads.ilog2()));
        let first = self.emit.pure(Class::B32, P::ShlB32, [rank.into(), bits]);
        self.emit.pure(Class::B32, P::OrB32, [first.into(), tid.into()])
    }

    /// Sets the cluster, and finds the first statement in front of which the other blocks must have begun.
    pub(super) fn begin_ctas(&mut self) -> Result<(), Reported> {
        if self.ctas() == 1 {
            return Ok(());
        }
        if !self.target.has_clusters() {
            let at = self.k.schedule.ctas.expect("several blocks are asked for");
            return Err(self.lacks(at, "clusters; leave `ctas` out of the schedule"));
        }
        self.emit.func.cluster = [self.ctas(), 1, 1];
        let list = &self.k.blocks[self.k.body];
        self.writes_first = list.iter().copied().find(|&s| ctas::stores_shared(self.k, s));
        let before = list.iter().take_while(|&&s| Some(s) != self.writes_first);
        self.meets_at_start = before.copied().any(|s| has_barrier(self.k, s));
        Ok(())
    }

    /// Initialises the counting mbarriers, and signals that the block has begun.
    pub(super) fn ready_ctas(&mut self) {
        if self.writes_first.is_none() {
            return;
        }
        if !self.counted.is_empty() {
            self.emit.comment("mbarriers count the bytes that blocks of the cluster store to this one's memory");
            let ready = self.skip_unless_first("ready");
            for CountedAt { of, offset, in_turns } in self.counted.clone() {
                let kind = MbarrierKind::PartialRows { bytes: of.bytes };
                let arrivals = 1 + in_turns.as_ref().map_or(0, |_| i64::from(self.ctas()));
                let second = in_turns.map(|turns| offset + turns.stride);
                for offset in [Some(offset), second].into_iter().flatten() {
                    self.report.mbarriers.push(MbarrierReport { kind: kind.clone(), offset, count: 1 });
                    let at = Operand::shared(0, offset as i64);
                    self.emit.push(P::MbarrierInit, [at.clone(), Operand::Imm(arrivals)]);
                    self.expect(at, of.bytes);
                }
            }
            self.emit.push(P::FenceMbarrierInit, []);
            self.emit.item(Item::Label(ready));
            self.begin_iterations();
        }
        self.emit.comment("this block has begun: others may store to its memory");
        self.emit.push(P::BarrierClusterArriveRelaxedAligned, []);
        if self.meets_at_start {
            // The next barrier of the cluster comes before the first store, and a thread must not arrive at two.
            self.report_cluster_barrier(ClusterBarrier::Begun);
            self.emit.push(P::BarrierClusterWaitAligned, []);
        }
    }

    /// Emits a branch past code that only thread 0 runs, and returns its label.
    fn skip_unless_first(&mut self, label: &str) -> Label {
        let tid = self.block_tid();
        let other = self.emit.pure(Class::Pred, P::SetpNeS32, [tid.into(), Operand::Imm(0)]);
        let behind = self.emit.label(label);
        self.emit.push_if(Some(Guard { reg: other, negated: false }), P::Bra, [behind.into()]);
        behind
    }

    /// Sets the number of bytes that an mbarrier expects.
    fn expect(&mut self, at: Operand, bytes: u64) {
        let state = self.emit.reg(Class::B64);
        self.emit.push(P::MbarrierArriveExpectTx, [state.into(), at, Operand::Imm(bytes as i64)]);
    }

    /// Defines the registers of double-buffered iterations (set offset and parity), so that the first iteration flips
    /// them to the first set.
    fn begin_iterations(&mut self) {
        for i in 0..self.counted.len() {
            let Some(stride) = self.counted[i].in_turns.as_ref().map(|turns| turns.stride) else { continue };
            let (slot, parity) = (self.emit.mutable(Class::B32), self.emit.mutable(Class::B32));
            self.emit.push(P::MovB32, [slot.into(), Operand::Imm(stride as i64)]);
            self.emit.push(P::MovB32, [parity.into(), Operand::Imm(1)]);
            if let Some(turns) = &mut self.counted[i].in_turns {
                turns.registers = Some((slot, parity));
            }
        }
    }

    /// The offset of the current iteration's copy of a double-buffered buffer.
    pub(super) fn double_buffer_offset(&self, buffer: Value) -> Option<Reg> {
        let own = |turns: &&DoubleBuffer| turns.buffers.contains(&buffer);
        self.counted.iter().filter_map(|counted| counted.in_turns.as_ref()).find(own)?.slot()
    }

    /// Places the mbarriers that count stores after `used` bytes, then the second sets of double-buffered loops.
    /// Returns the end of shared memory.
    pub(super) fn place_counted(&mut self, used: u64) -> u64 {
        let (mut end, mut placed) = (used, Vec::new());
        for of in ctas::counted(self.k) {
            let offset = end.next_multiple_of(BARRIER_BYTES);
            let in_turns = of.begins.map(|_| {
                let stored = |&s: &Stmt| match self.k.stmts[s] {
                    StmtData::Copy { dst, .. } => resolve_view(self.k, dst).map(|to| to.base),
                    _ => None,
                };
                let buffers: Vec<Value> = of.stores.iter().filter_map(stored).collect();
                let offsets = buffers.iter().filter_map(|&v| self.k.shared_places[v]).map(|place| place.offset);
                let first = offsets.min().expect("bug: what is stored to blocks has a place");
                let stride = (offset + BARRIER_BYTES - first).next_multiple_of(ROW_ALIGN);
                DoubleBuffer { buffers, stride, registers: None }
            });
            let next = offset + BARRIER_BYTES + in_turns.as_ref().map_or(0, |turns| turns.stride);
            if next <= self.target.smem_per_block() {
                end = next;
                placed.push(CountedAt { of, offset, in_turns });
            }
        }
        self.counted = placed;
        end
    }

    /// A barrier of the threads of all blocks. If their stores are counted, it waits for the bytes of these stores.
    pub(super) fn ctas_barrier(&mut self, s: Stmt) {
        if let Some(counted) = self.counted.iter().find(|counted| counted.of.begins == Some(s)).cloned() {
            let turns = counted.in_turns.expect("bug: a loop counts without buffers that take turns");
            return self.next_of_turns(&turns, counted.offset);
        }
        let Some(CountedAt { of, offset, in_turns }) = self.counted.iter().find(|c| c.of.barrier == s).cloned() else {
            return self.cluster_barrier();
        };
        let registers = in_turns.and_then(|turns| turns.registers);
        let (at, parity) = match registers {
            Some((slot, parity)) => {
                let base = self.emit.pure(Class::B32, P::MovSharedU32, [Operand::SharedSym(0)]);
                let at = self.emit.def(Class::B32, P::AddS32, [base.into(), slot.into()]);
                (Operand::at(at, offset as i64), parity.into())
            }
            None => (Operand::shared(0, offset as i64), Operand::Imm(0)),
        };
        // Formally, a wait for stores of other blocks must acquire at cluster scope. These stores are to shared memory,
        // which no cache holds. The wider scope would make the assembler invalidate L1 and wait for every load
        // (docs/notes/rows.md).
        self.wait_for(at.clone(), parity, "stored");
        if registers.is_some() {
            let expected = self.skip_unless_first("expected");
            self.expect(at, of.bytes);
            self.emit.item(Item::Label(expected));
        }
    }

    /// Begins an iteration: the threads of this block have read the buffers of the previous iteration and signal this
    /// to each block.
    fn next_of_turns(&mut self, turns: &DoubleBuffer, offset: u64) {
        let (slot, parity) = turns.registers.expect("bug: an iteration that has not begun");
        self.emit.push(P::BarSync, [Operand::Imm(0)]);
        self.emit.push(P::XorB32, [slot.into(), slot.into(), Operand::Imm(turns.stride as i64)]);
        let first = self.emit.def(Class::Pred, P::SetpEqS32, [slot.into(), Operand::Imm(0)]);
        let guard = Some(Guard { reg: first, negated: false });
        self.emit.push_if(guard, P::XorB32, [parity.into(), parity.into(), Operand::Imm(1)]);
        let tid = self.block_tid();
        let base = self.emit.pure(Class::B32, P::MovSharedU32, [Operand::SharedSym(0)]);
        let own = self.emit.def(Class::B32, P::AddS32, [base.into(), slot.into()]);
        let own = self.emit.def(Class::B32, P::AddS32, [own.into(), Operand::Imm(offset as i64)]);
        self.arrive_in_each(tid, own);
    }

    /// In front of the first statement that stores to the memory of other blocks: waits until they have begun.
    pub(super) fn sync_ctas(&mut self, s: Stmt) {
        self.counts = self.counted.iter().position(|counted| counted.of.stores.contains(&s));
        if self.writes_first == Some(s) && !self.meets_at_start {
            self.emit.comment("all blocks of the cluster have begun");
            self.report_cluster_barrier(ClusterBarrier::BegunBeforeStore);
            self.emit.push(P::BarrierClusterWaitAligned, []);
        }
    }

    /// Emitted after all statements: no block ends while others may write to its memory.
    pub(super) fn end_ctas(&mut self) {
        if self.writes_first.is_none() {
            return;
        }
        let list = &self.k.blocks[self.k.body];
        let last = list.iter().rposition(|&s| ctas::stores_shared(self.k, s)).map_or(0, |last| last + 1);
        if !list[last..].iter().any(|&s| matches!(self.k.stmts[s], StmtData::Barrier)) {
            self.emit.comment("no block leaves while others may write to its memory");
            self.report_cluster_barrier(ClusterBarrier::EndOfStores);
            // Nothing is read after it, so no thread waits for the stores.
            self.emit.push(P::BarrierClusterArriveRelaxedAligned, []);
            self.emit.push(P::BarrierClusterWaitAligned, []);
        }
    }

    /// A barrier of all threads of the cluster.
    pub(super) fn cluster_barrier(&mut self) {
        self.report_cluster_barrier(ClusterBarrier::Stored);
        self.emit.push(P::BarrierClusterArriveAligned, []);
        self.emit.push(P::BarrierClusterWaitAligned, []);
    }

    /// The rank of the `turn`-th block that the thread stores to.
    fn rank_in_turn(&mut self, turn: u32) -> Operand {
        match self.lane_stores {
            None => Operand::Imm(i64::from(turn)),
            Some(LaneStores { first, .. }) if turn == 0 => first.into(),
            Some(LaneStores { first, blocks }) => {
                let group = Operand::Imm(i64::from(turn * blocks));
                self.emit.pure(Class::B32, P::OrB32, [first.into(), group]).into()
            }
        }
    }

    /// Emits a store; a store to shared memory goes to all blocks that share tiles.
    pub(super) fn put(&mut self, pred: Option<Reg>, op: P, address: Operand, value: Operand) -> Result<(), Reported> {
        let any = cluster_store(op, self.counts.is_some()).filter(|_| self.ctas() > 1);
        let (Some(op), &Operand::Addr { base, offset }) = (any, &address) else {
            self.emit.push_if(guard(pred), op, [address, value]);
            return Ok(());
        };
        let own = match base {
            AddrBase::Reg(reg) => reg,
            AddrBase::Shared(array) => self.emit.pure(Class::B32, P::MovSharedU32, [Operand::SharedSym(array)]),
            AddrBase::Param(_) => panic!("bug: parameters are not stored to"),
        };
        let turns = self.ctas() / self.lane_stores.map_or(1, |dealt| dealt.blocks);
        for turn in 0..turns {
            let rank = self.rank_in_turn(turn);
            let there = self.emit.pure(Class::B32, P::MapaSharedCluster, [own.into(), rank.clone()]);
            let mut operands = vec![Operand::at(there, offset), value.clone()];
            if let Some(counts) = self.counts {
                let offset = self.counted[counts].offset;
                let mut base = self.emit.pure(Class::B32, P::MovSharedU32, [Operand::SharedSym(0)]);
                if let Some(slot) = self.counted[counts].in_turns.as_ref().and_then(DoubleBuffer::slot) {
                    base = self.emit.pure(Class::B32, P::AddS32, [base.into(), slot.into()]);
                }
                let base = self.emit.pure(Class::B32, P::MapaSharedCluster, [base.into(), rank]);
                operands.push(Operand::at(base, offset as i64));
            }
            self.emit.push_if(guard(pred), op, operands);
        }
        Ok(())
    }
}

/// Whether a statement is a barrier, or has one inside.
fn has_barrier(k: &Kernel, s: Stmt) -> bool {
    matches!(k.stmts[s], StmtData::Barrier)
        || k.sub_blocks(s).into_iter().any(|b| k.blocks[b].iter().any(|&inner| has_barrier(k, inner)))
}
