//! The transfer function of a statement: its preconditions, and the state after it.

use super::report::Fault;
use super::ring::{Cell, FaultKind, Ring};
use super::uses::uses;
use super::{Run, State};
use crate::analysis::access_width::slots_of;
use crate::barriers::disjoint::is_marked_apart;
use crate::barriers::hazard_kind::Kind;
use crate::barriers::prove::report::Trace;
use std::collections::BTreeMap;
use tilec_ir::entities::{Stmt, Value};
use tilec_ir::kernel::{ChannelOp, Slot, StmtData, ValueDef};
use tilec_ir::memory_reuse::Overlays;
use tilec_ir::tensor_store::{is_stored, tensor_store};

impl Run<'_> {
    /// Executes a statement that owns no block.
    pub(super) fn step(&self, s: Stmt, state: &mut State, trace: &mut Trace) -> Result<(), Fault> {
        let k = self.k;
        self.access(s, state, trace)?;
        self.touch(s, state, trace)?;
        match &k.stmts[s] {
            // A buffer that no TMA store reads needs no wait; lowering emits none.
            StmtData::Await { value, pending, .. } if is_stored(k, *value) => {
                let read = state.storing.len().saturating_sub(*pending as usize);
                for v in state.storing.drain(..read) {
                    // One thread knows.
                    if let Some(cell) = state.buffers.get_mut(&v) {
                        cell.read = true;
                    }
                }
            }
            // Threads synchronise at a signal, too.
            StmtData::Barrier | StmtData::Signal { .. } => {
                state.touched.clear();
                state.buffers.values_mut().for_each(Cell::pass_barrier);
                state.rings.values_mut().for_each(Ring::pass_barrier);
            }
            StmtData::Alloc { value, .. } => {
                let past = end_reused(&self.overlays, *value, state, trace)?;
                match k.values[*value].def {
                    ValueDef::Smem(_) => {
                        let cell = state.buffers.entry(*value).or_default();
                        cell.filled = false;
                        cell.follow(past);
                    }
                    ValueDef::Channel { .. } => {
                        let slots = u32::try_from(slots_of(k, *value)).expect("the verifier bounds slots");
                        let ring = state.rings.entry(*value).or_insert_with(|| Ring::new(slots));
                        ring.restart();
                        if past != Cell::default() {
                            (0..slots).for_each(|n| ring.cells.entry(n).or_default().follow(past));
                        }
                    }
                    _ => {}
                }
            }
            StmtData::Channel { op, channels, pending } => {
                for &value in channels {
                    channel(*op, value, s, state, trace)?;
                }
                match op {
                    ChannelOp::Publish if channels.iter().any(|&v| k.fills_asynchronously(v)) => state.close_group(),
                    ChannelOp::Wait if channels.iter().any(|&v| k.fills_asynchronously(v)) => {
                        state.complete_groups(pending.unwrap_or(0) as usize);
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn access(&self, s: Stmt, state: &mut State, trace: &mut Trace) -> Result<(), Fault> {
        let mut uses = uses(self.k, s);
        uses.retain(|u| self.concerns(u.value));
        // Cells that this statement read, and whether it did so only element by element, and no statement before it in
        // this epoch.
        let mut own: BTreeMap<(Value, Option<u32>), bool> = BTreeMap::new();
        for u in &uses {
            let (cell, slot) = match u.slot {
                None => (state.buffers.get_mut(&u.value), None),
                Some(which) => {
                    let ring = state.rings.get_mut(&u.value);
                    let slot = ring.as_ref().and_then(|r| match which {
                        Slot::Put => r.filling_slot(),
                        Slot::Get => r.get_slot(),
                    });
                    let why = if which == Slot::Put { FaultKind::NotAcquired } else { FaultKind::NotWaited };
                    let Some(n) = slot else {
                        return Err(Fault { value: u.value, slot: None, rule: why, other: None });
                    };
                    (ring.map(|r| r.cells.entry(n).or_default()), slot)
                }
            };
            let fault = |why, other| Fault { value: u.value, slot, rule: why, other };
            let Some(cell) = cell else { return Err(fault(FaultKind::NotAllocated, None)) };
            let last = trace.last.entry((u.value, slot)).or_default();
            if cell.flying {
                return Err(fault(if u.write { FaultKind::WrittenInFlight } else { FaultKind::InFlight }, last.0));
            }
            if u.write {
                if u.slot.is_none() && state.storing.contains(&u.value) {
                    return Err(fault(FaultKind::WrittenWhileStored, last.1));
                }
                if u.combines.is_some() && !cell.filled {
                    return Err(fault(FaultKind::Unwritten, None));
                }
                let commutes = u.combines.is_some() && cell.combined == u.combines;
                if cell.written || cell.combined.is_some() && !commutes {
                    let rule =
                        if u.combines.is_some() { FaultKind::ReadAfterWrite } else { FaultKind::WriteAfterWrite };
                    return Err(fault(rule, last.0));
                }
                if cell.read && !(u.own && own.get(&(u.value, slot)) == Some(&true)) {
                    return Err(fault(FaultKind::WriteAfterRead, last.1));
                }
                let written = !u.flying && u.combines.is_none();
                *cell = Cell { filled: true, written, flying: u.flying, combined: u.combines, ..*cell };
                if let (true, Some(slot)) = (u.flying, slot) {
                    state.open.push((u.value, slot));
                }
                last.0 = Some(s);
            } else {
                if !cell.filled {
                    return Err(fault(FaultKind::Unwritten, None));
                }
                if cell.written || cell.combined.is_some() {
                    return Err(fault(FaultKind::ReadAfterWrite, last.0));
                }
                let fresh = !cell.read;
                own.entry((u.value, slot)).and_modify(|o| *o &= u.own).or_insert(fresh && u.own);
                cell.read = true;
                last.1 = Some(s);
            }
        }
        if let Some((buffer, _)) = tensor_store(self.k, s) {
            state.storing.retain(|&v| v != buffer);
            state.storing.push(buffer);
        }
        Ok(())
    }

    /// What a statement does to tensors.
    fn touch(&self, s: Stmt, state: &mut State, trace: &mut Trace) -> Result<(), Fault> {
        for &earlier in &state.touched {
            if let Some(&(value, kind)) = self.meetings.between(earlier, s).first() {
                let why = match kind {
                    Kind::ReadAfterWrite => FaultKind::ReadAfterWrite,
                    Kind::WriteAfterRead => FaultKind::WriteAfterRead,
                    Kind::WriteAfterWrite => FaultKind::WriteAfterWrite,
                };
                return Err(Fault { value, slot: None, rule: why, other: Some(earlier) });
            }
        }
        state.touched.extend(self.meetings.is_earlier(s).then_some(s));
        let by_tma = tensor_store(self.k, s).is_some();
        for (value, stores) in self.touches(s) {
            let touched = state.tensors.entry(value).or_default();
            let last = trace.last.entry((value, None)).or_default();
            let fault = |why, other| Fault { value, slot: None, rule: why, other };
            let apart = stores && is_marked_apart(self.k, s);
            if stores && by_tma {
                if touched.written && !apart {
                    return Err(fault(FaultKind::StoredTwice, last.0));
                }
                touched.stored = true;
            } else if touched.stored && !apart {
                return Err(fault(FaultKind::UsedAfterStore, last.0));
            } else if stores && !apart {
                touched.written = true;
            }
            if stores {
                last.0 = Some(s);
            } else {
                last.1 = Some(s);
            }
        }
        Ok(())
    }
}

/// Ends the buffers whose memory `value` reuses. Returns the accesses of this epoch to that memory.
fn end_reused(overlays: &Overlays, value: Value, state: &mut State, trace: &mut Trace) -> Result<Cell, Fault> {
    let mut past = Cell::default();
    for other in overlays.sharing(value) {
        let mut cells = Vec::new();
        cells.extend(state.buffers.remove(&other).map(|cell| (None, cell)));
        if let Some(ring) = state.rings.remove(&other) {
            cells.extend(ring.cells.into_iter().map(|(n, cell)| (Some(n), cell)));
        }
        for (slot, cell) in cells {
            let last = trace.last.get(&(other, slot)).copied().unwrap_or_default();
            if cell.flying {
                return Err(Fault { value: other, slot, rule: FaultKind::TakenInFlight, other: last.0 });
            }
            if slot.is_none() && state.storing.contains(&other) {
                return Err(Fault { value: other, slot, rule: FaultKind::TakenWhileStored, other: last.1 });
            }
            past.follow(cell);
            let kept = trace.last.entry((value, None)).or_default();
            *kept = (kept.0.or(last.0), kept.1.or(last.1));
        }
    }
    Ok(past)
}

fn channel(op: ChannelOp, value: Value, s: Stmt, state: &mut State, trace: &mut Trace) -> Result<(), Fault> {
    let absent = Fault { value, slot: None, rule: FaultKind::NotAllocated, other: None };
    let ring = state.rings.get_mut(&value).ok_or(absent)?;
    let held = |slot: Option<u32>| slot.and_then(|n| trace.acquired.get(&(value, n)).copied());
    let result = match op {
        ChannelOp::Acquire => {
            ring.acquire().map_err(|why| (why, Some(ring.head), held(ring.filling_slot().or(Some(ring.head)))))
        }
        ChannelOp::Publish => ring.publish().map_err(|why| (why, None, None)),
        ChannelOp::Wait => ring.wait().map_err(|why| (why, ring.filling_slot(), held(ring.filling_slot()))),
        ChannelOp::Release => ring.release().map_err(|why| (why, None, None)),
    };
    match result {
        Err((why, slot, other)) => Err(Fault { value, slot, rule: why, other }),
        Ok(()) => {
            if op == ChannelOp::Acquire
                && let Some(slot) = ring.filling_slot()
            {
                trace.acquired.insert((value, slot), s);
            }
            Ok(())
        }
    }
}
