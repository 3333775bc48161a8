//! Tiles that blocks of a cluster share out (`ctas`).
//!
//! Threads of all blocks of the cluster count: lowering sees one block of so many threads, and the number of a thread has that of its block in
//! the cluster above that in its block ([`tilec_ir::cluster::ctas`]). Buffers are small, what is left of rows: each block has all of them. What is
//! stored goes to the shared memory of every block (PTX ISA 9.7.9.23, `mapa`), loads read that of the own one, and barriers are
//! those of the cluster (PTX ISA 9.7.13.3), or wait for the bytes that all blocks store in front of them ([`tilec_ir::ctas::counted`]). A block's memory may be written
//! when the block has begun, and until it ends.
//!
//! An mbarrier that counts bytes completes one phase: thread 0 says at the beginning how many there will be. They lie behind the buffers.

use super::accesses::{cluster_store, guard};
use super::state::Lower;
use crate::inst::{AddrBase, Class, Guard, Operand, Reg};
use crate::module::Item;
use crate::ops::Op as P;
use tilec_ir::ctas;
use tilec_ir::diag::Reported;
use tilec_ir::entities::Stmt;
use tilec_ir::kernel::StmtData;
use tilec_ir::placement::BARRIER_BYTES;

impl Lower<'_> {
    /// Blocks that share out the tiles of one.
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

    /// Finds out where the other blocks must have begun.
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
        Ok(())
    }

    /// Says that the block has begun, its mbarriers ready.
    pub(super) fn ready_ctas(&mut self) {
        if self.writes_first.is_none() {
            return;
        }
        if !self.counted.is_empty() {
            self.emit.comment("mbarriers count the bytes that blocks of the cluster store to this one's memory");
            let tid = self.block_tid();
            let other = self.emit.pure(Class::Pred, P::SetpNeS32, [tid.into(), Operand::Imm(0)]);
            let ready = self.emit.label("ready");
            self.emit.push_if(Some(Guard { reg: other, negated: false }), P::Bra, [ready.into()]);
            let all: Vec<(u64, u64)> = self.counted.iter().map(|(counted, offset)| (*offset, counted.bytes)).collect();
            for (offset, bytes) in all {
                let at = Operand::shared(0, offset as i64);
                self.emit.push(P::MbarrierInit, [at.clone(), Operand::Imm(1)]);
                let state = self.emit.reg(Class::B64);
                self.emit.push(P::MbarrierArriveExpectTx, [state.into(), at, Operand::Imm(bytes as i64)]);
            }
            self.emit.push(P::FenceMbarrierInit, []);
            self.emit.item(Item::Label(ready));
        }
        self.emit.comment("this block has begun: others may store to its memory");
        self.emit.push(P::BarrierClusterArriveRelaxedAligned, []);
    }

    /// Where shared memory ends, with the mbarriers that count stores behind `used` bytes.
    pub(super) fn place_counted(&mut self, used: u64) -> u64 {
        let counted = ctas::counted(self.k);
        let first = used.next_multiple_of(BARRIER_BYTES);
        let end = first + counted.len() as u64 * BARRIER_BYTES;
        if counted.is_empty() || end > self.target.smem_per_block() {
            return used;
        }
        self.counted = (0..).zip(counted).map(|(i, counted)| (counted, first + i * BARRIER_BYTES)).collect();
        end
    }

    /// A barrier of the threads of all blocks: where their stores are counted, until these are there.
    pub(super) fn ctas_barrier(&mut self, s: Stmt) {
        let Some(&(_, offset)) = self.counted.iter().find(|(counted, _)| counted.barrier == s) else {
            return self.cluster_barrier();
        };
        let again = self.emit.label("stored");
        self.emit.item(Item::Label(again));
        let operands = [Operand::shared(0, offset as i64), Operand::Imm(0)];
        let done = self.emit.def(Class::Pred, P::MbarrierTryWaitParityCluster, operands);
        self.emit.push_if(Some(Guard { reg: done, negated: true }), P::Bra, [again.into()]);
    }

    /// In front of the first statement that stores to the memory of other blocks: they have begun.
    pub(super) fn meet_ctas(&mut self, s: Stmt) {
        let own = self.counted.iter().find(|(counted, _)| counted.stores.contains(&s));
        self.counts = own.map(|&(_, offset)| offset);
        if self.writes_first == Some(s) {
            self.emit.comment("all blocks of the cluster have begun");
            self.emit.push(P::BarrierClusterWaitAligned, []);
        }
    }

    /// Behind all statements: nobody leaves while others may write to its memory.
    pub(super) fn end_ctas(&mut self) {
        if self.writes_first.is_none() {
            return;
        }
        let list = &self.k.blocks[self.k.body];
        let last = list.iter().rposition(|&s| ctas::stores_shared(self.k, s)).map_or(0, |last| last + 1);
        if !list[last..].iter().any(|&s| matches!(self.k.stmts[s], StmtData::Barrier)) {
            self.emit.comment("no block leaves while others may write to its memory");
            self.cluster_barrier();
        }
    }

    /// A barrier of all threads of the cluster.
    pub(super) fn cluster_barrier(&mut self) {
        self.emit.push(P::BarrierClusterArriveAligned, []);
        self.emit.push(P::BarrierClusterWaitAligned, []);
    }

    /// Stores to memory; to shared memory in all blocks that share out tiles.
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
        for rank in 0..self.ctas() {
            let rank = Operand::Imm(i64::from(rank));
            let there = self.emit.pure(Class::B32, P::MapaSharedCluster, [own.into(), rank.clone()]);
            let mut operands = vec![Operand::at(there, offset), value.clone()];
            if let Some(offset) = self.counts {
                let base = self.emit.pure(Class::B32, P::MovSharedU32, [Operand::SharedSym(0)]);
                let base = self.emit.pure(Class::B32, P::MapaSharedCluster, [base.into(), rank]);
                operands.push(Operand::at(base, offset as i64));
            }
            self.emit.push_if(guard(pred), op, operands);
        }
        Ok(())
    }
}
