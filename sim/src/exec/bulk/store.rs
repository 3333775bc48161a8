//! Bulk copies and reductions from shared to global memory, in groups of a thread.

use super::{MAX_FLYING, group_slots};
use crate::exec::access::for_lanes;
use crate::exec::asynchronous::Landing;
use crate::exec::atomic::combine;
use crate::exec::cta::Cta;
use crate::exec::fail::{Fail, Step};
use crate::exec::in_flight::{Plan, Reduce, Store};
use crate::exec::warp::Warp;
use crate::numerics::half::{self, Half};
use crate::numerics::single::Extremum;
use crate::program::types::{SINK, Space, Ty};
use crate::program::{Addr, Area, Atom, AtomOp, Base, VECTOR};
use crate::race::{Issuer, Known, Strength};
use crate::report::ReportKind;
use crate::tensor_map::TensorElement;

impl Reduce {
    pub(super) fn new(op: AtomOp, ty: Option<Ty>, element: Option<TensorElement>) -> Option<Reduce> {
        use TensorElement as E;
        let ty = match (ty, element) {
            (Some(ty), _) => ty,
            (None, Some(E::U8 | E::U16)) | (None, None) => return None,
            (None, Some(E::U32)) => Ty::U32,
            (None, Some(E::S32)) => Ty::S32,
            (None, Some(E::U64)) => Ty::U64,
            (None, Some(E::S64)) => Ty::S64,
            (None, Some(E::F16)) => Ty::F16,
            (None, Some(E::Bf16)) => Ty::BF16,
            (None, Some(E::F64)) => Ty::F64,
            (None, Some(_)) => Ty::F32,
        };
        let half = match ty {
            Ty::F16 => Some(Half::F16),
            Ty::BF16 => Some(Half::Bf16),
            _ => None,
        };
        let bits = matches!(ty, Ty::U32 | Ty::S32 | Ty::U64 | Ty::S64 | Ty::B32 | Ty::B64);
        let op = match (op, ty) {
            (AtomOp::Add, Ty::F16) => AtomOp::AddF16,
            (AtomOp::Add, Ty::BF16) => AtomOp::AddBF16,
            (AtomOp::Add, Ty::F32) => AtomOp::AddF32,
            (AtomOp::Add, Ty::F64) => AtomOp::AddF64,
            (AtomOp::Min | AtomOp::Max, _) if half.is_some() || bits => op,
            (AtomOp::Inc | AtomOp::Dec, Ty::U32) => op,
            (AtomOp::Add | AtomOp::And | AtomOp::Or | AtomOp::Xor, _) if bits => op,
            _ => return None,
        };
        let atom = Atom {
            op,
            signed: ty.signed(),
            area: Area::In(Space::Global),
            addr: Addr { base: Base::None, offset: 0 },
            size: ty.bytes() as u8,
            n: 1,
            dst: [SINK; VECTOR],
            src: [SINK; VECTOR],
            src2: SINK,
            order: crate::program::Semantics::default(),
        };
        Some(Reduce { atom, half: half.filter(|_| matches!(op, AtomOp::Min | AtomOp::Max)) })
    }

    /// Number of words of an element.
    pub(super) fn words(&self) -> usize {
        usize::from(self.atom.size / 4).max(1)
    }

    pub(super) fn apply(&self, old: u64, new: u64) -> u64 {
        let extremum = Extremum::default();
        match (self.half, self.atom.op) {
            (Some(ty), AtomOp::Min) => u64::from(half::min(ty, extremum, old as u16, new as u16)),
            (Some(ty), _) => u64::from(half::max(ty, extremum, old as u16, new as u16)),
            (None, _) => combine(&self.atom, Space::Global, old, new, 0),
        }
    }
}

impl Cta<'_> {
    /// Issues a bulk store, or a reduction.
    pub(super) fn store_bulk(
        &mut self,
        w: &mut Warp,
        who: Issuer,
        plan: Plan,
        reduce: Option<(AtomOp, Option<Ty>)>,
    ) -> Step {
        let lane = who.lane;
        let reduce = match reduce {
            None => None,
            Some((op, ty)) => match Reduce::new(op, ty, plan.element) {
                Some(reduce) => Some(reduce),
                None => {
                    let message = format!("elements of {:?} have no such reduction ({op:?})", plan.element);
                    return Err(Fail::new(ReportKind::Invalid, message).at(lane));
                }
            },
        };
        self.check_span(lane, u64::from(plan.span.0), u64::from(plan.span.1).max(plan.reach))?;
        if w.bulk.flying.len() >= MAX_FLYING {
            let message =
                format!("{MAX_FLYING} bulk copies of a warp are on their way, and nobody has waited for all of them");
            return Err(Fail::new(ReportKind::Invalid, message).at(lane));
        }
        let [reads, writes] = group_slots(who.warp).map(|slot| self.races.slot(slot, who.warp));
        let clocks = [self.races.start(reads), self.races.start(writes)];
        // A reduction is a strong access, so several of them to one place are no race.
        let strength = if reduce.is_some() { Strength::Wide } else { Strength::Weak };
        let writer = Issuer { strength, copy: false, ..who };
        for piece in plan.pieces.iter().filter(|p| p.from < p.to) {
            let (at, n) = (piece.shared as usize + usize::from(piece.from), usize::from(piece.to - piece.from));
            self.races
                .async_read(who, (reads, clocks[0], 1 << lane), at, n)
                .map_err(|e| self.proxy_error(e, lane, false))?;
            let (mut at, end) = (u64::from(piece.from), u64::from(piece.to));
            while at < end {
                let address = piece.global.wrapping_add(at);
                let n = [16, 8, 4, 2].into_iter().find(|n| address % n == 0 && at + n <= end).unwrap_or(1);
                self.note_write(writer, address, n, (writes, clocks[1]))?;
                at += n;
            }
        }
        let (group, plan) = (w.bulk.groups[lane], std::rc::Rc::new(plan));
        let mut store = Store { issuer: who, group, plan, reduce, data: None, read: false, written: false, clocks };
        if !self.landing.reads_late() {
            store.data = Some(self.read_stored(&store)?);
        }
        if self.landing == Landing::Early {
            self.write_stored(&mut store)?;
        }
        w.bulk.flying.push(store);
        Ok(())
    }

    /// Records a write of global memory that may happen later.
    fn note_write(&mut self, who: Issuer, address: u64, n: u64, (agent, clock): (usize, u32)) -> Step {
        self.writable(who.lane, address, n)?;
        self.races.publish_accesses(self.grid, self.block, false);
        if let Err(conflict) = self.races.write_global(who, address, n as usize, false) {
            return Err(self.global_race(conflict, who.lane, address, true));
        }
        self.races.async_global(address, n as usize, agent, clock);
        Ok(())
    }

    /// The current bytes in shared memory.
    fn read_stored(&self, store: &Store) -> Result<Vec<[u8; 16]>, Box<Fail>> {
        let mut out = Vec::with_capacity(store.plan.pieces.len());
        for piece in &store.plan.pieces {
            let mut bytes = [0; 16];
            for i in piece.from..piece.to {
                let at = piece.shared as usize + usize::from(i);
                match self.shared.get(at, 1) {
                    Some(v) => bytes[usize::from(i)] = v as u8,
                    None => {
                        let message = format!("shared address {at:#x} was never written");
                        let fail = Fail::new(ReportKind::Uninitialised, message);
                        return Err(fail.at(store.issuer.lane).in_shared(at as u64));
                    }
                }
            }
            out.push(bytes);
        }
        Ok(out)
    }

    /// Writes the bytes that a store has read.
    fn write_stored(&mut self, store: &mut Store) -> Step {
        if store.written {
            return Ok(());
        }
        let data = match store.data.take() {
            Some(data) => data,
            None => self.read_stored(store)?,
        };
        store.written = true;
        let lane = store.issuer.lane;
        for (piece, bytes) in store.plan.pieces.iter().zip(&data).filter(|(p, _)| p.from < p.to) {
            let first = piece.global.wrapping_add(u64::from(piece.from));
            let alloc = self.global(lane, first, 1)?;
            let start = (first - alloc.base) as usize;
            let bytes = &bytes[usize::from(piece.from)..usize::from(piece.to)];
            let Some(reduce) = store.reduce else {
                alloc.fill(start, bytes);
                continue;
            };
            let size = usize::from(reduce.atom.size);
            for (i, new) in bytes.chunks_exact(size).enumerate() {
                let at = start + i * size;
                if let Some(byte) = (at..at + size).find(|byte| !alloc.written(*byte, 1)) {
                    let byte = alloc.base + byte as u64;
                    let message = format!("global address {byte:#x} was never written");
                    return Err(Fail::new(ReportKind::Uninitialised, message).at(lane).in_global(byte));
                }
                let new = new.iter().rev().fold(0u64, |v, b| v << 8 | u64::from(*b));
                if size == 8 {
                    // One lock for all, as for other atomics of this size.
                    let _guard = self.lock.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    let sum = reduce.apply(u64::from(alloc.word(at)) | u64::from(alloc.word(at + 4)) << 32, new);
                    alloc.put(at, 4, sum as u32);
                    alloc.put(at + 4, 4, (sum >> 32) as u32);
                } else {
                    let (shift, keep) = (at % 4 * 8, if size == 4 { u32::MAX } else { 0xFFFF });
                    alloc.update(at, |word| {
                        let sum = reduce.apply(u64::from(word >> shift & keep), new) as u32;
                        word & !(keep << shift) | (sum & keep) << shift
                    });
                }
            }
        }
        Ok(())
    }

    /// `cp.async.bulk.commit_group`.
    pub(crate) fn bulk_commit(w: &mut Warp, m: u32) {
        for_lanes!(lane in m => { w.bulk.groups[lane] = w.bulk.groups[lane].saturating_add(1); });
    }

    /// Waits until at most `n` of the newest groups of each lane are in flight, or with `read`, until the others have
    /// read their sources.
    pub(crate) fn bulk_wait(&mut self, w: &mut Warp, n: u32, read: bool, m: u32) -> Step {
        let agents = group_slots(w.index).map(|slot| self.races.slot(slot, w.index));
        let (mut known, mut lanes) = (Known::default(), 0);
        for mut store in std::mem::take(&mut w.bulk.flying) {
            let lane = store.issuer.lane;
            let waits = m >> lane & 1 != 0 && store.group < w.bulk.groups[lane].saturating_sub(n);
            if !waits {
                w.bulk.flying.push(store);
                continue;
            }
            lanes |= 1 << lane;
            store.read = true;
            self.races.async_done(agents[0], store.clocks[0], 1 << lane, &mut known);
            if read {
                if store.data.is_none() && !store.written {
                    store.data = Some(self.read_stored(&store)?);
                }
                w.bulk.flying.push(store);
            } else {
                self.races.async_done(agents[1], store.clocks[1], 1 << lane, &mut known);
                self.write_stored(&mut store)?;
            }
        }
        if lanes != 0 {
            self.races.clocks.acquire(w.index, lanes, w.live, &known);
        }
        Ok(())
    }

    /// At the end of the block: no store may still read its shared memory; pending writes to global memory are
    /// executed.
    pub(crate) fn end_stores(&mut self, w: &mut Warp) -> Result<(), (u32, u32, Box<Fail>)> {
        for mut store in std::mem::take(&mut w.bulk.flying) {
            let (pc, lanes) = (store.issuer.pc, 1 << store.issuer.lane);
            if !store.read {
                let message = match store.group < w.bulk.groups[store.issuer.lane] {
                    true => {
                        "the block ends while this copy may still read its shared memory: nobody waited for the group"
                    }
                    false => {
                        "the block ends while this copy may still read its shared memory: it is in no committed group"
                    }
                };
                return Err((pc, lanes, Fail::new(ReportKind::Invalid, message).at(store.issuer.lane)));
            }
            self.write_stored(&mut store).map_err(|fail| (pc, lanes, fail))?;
        }
        Ok(())
    }
}
