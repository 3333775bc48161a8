//! `st.async`, `red.async` (PTX 9.7.9.12, 9.7.13.7): stores of registers to the shared memory of a block of the
//! cluster. An mbarrier there counts the bytes as for a bulk copy, but the store does not use the async proxy.

use crate::exec::access::for_lanes;
use crate::exec::cta::Cta;
use crate::exec::fail::{Fail, Step};
use crate::exec::in_flight::{Load, Piece, Plan, Reduce};
use crate::exec::warp::Warp;
use crate::program::bulk::Remote;
use crate::race::{Issuer, Slot, Strength};
use crate::report::ReportKind;
use std::rc::Rc;

impl Cta<'_> {
    /// Issues a store or reduction in every lane of `m`.
    pub(crate) fn remote(&mut self, w: &Warp, op: &Remote, m: u32, pc: usize) -> Step {
        if m == 0 {
            return Ok(());
        }
        let to = self.shared_addresses(w, op.to, op.area, m)?;
        let barriers = self.shared_addresses(w, op.barrier, op.area, m)?;
        let values: Vec<_> = op.regs.iter().take(usize::from(op.n)).map(|r| w.any(*r, op.wide)).collect();
        let reduce = op.reduce.and_then(|(op, ty)| Reduce::new(op, Some(ty), None));
        // Reductions are strong accesses, so several of them to one place are no race.
        let strength = if reduce.is_some() { Strength::Block } else { Strength::Weak };
        let (size, n) = (usize::from(op.size), usize::from(op.size) * usize::from(op.n));
        let seq = self.next_seq();
        for_lanes!(lane in m => {
            let who = Issuer { warp: w.index, lane, pc: pc as u32, seq, strength, copy: true };
            let mut data = [0u8; 16];
            for ((value, ok), bytes) in values.iter().zip(data.chunks_mut(size)) {
                if ok >> lane & 1 == 0 {
                    return Err(Fail::new(ReportKind::Undefined, "the value stored is undefined").at(lane));
                }
                bytes.copy_from_slice(&value[lane].to_le_bytes()[..size]);
            }
            let at = self.check_shared(lane, to[lane], n as u64)?;
            self.check_span(lane, to[lane], n as u64)?;
            let object = self.check_shared(lane, barriers[lane], 8)? as u32;
            if to[lane] / self.stride != barriers[lane] / self.stride {
                let message =
                    format!("the destination {at:#x} of a store and its mbarrier {object:#x} are in different blocks");
                return Err(Fail::new(ReportKind::Invalid, message).at(lane).in_shared(barriers[lane]));
            }
            self.require_object(lane, object)?;
            self.know_object(Issuer { strength: Strength::Block, copy: false, ..who }, object)?;
            let agent = self.races.slot(Slot::Phase(object), w.index);
            let clock = self.races.clocks.start_copies(w.index);
            self.races
                .remote_claim(who, agent, at, n)
                .map_err(|(at, conflict)| self.race(conflict, lane, at, true))?;
            if reduce.is_none() && self.landing.poisons() {
                self.shared.poison(at, n);
            }
            let piece = Piece { shared: at as u32, global: 0, from: 0, to: n as u8 };
            let plan = Plan {
                pieces: vec![piece],
                fill: [0; 16],
                span: (at as u32, n as u32),
                reach: 0,
                element: None,
                from_shared: false,
                width: n as u8,
            };
            let (plan, data) = (Rc::new(plan), Some(Rc::new(vec![data])));
            self.issue(Load { issuer: who, agent, object, plan, shift: 0, data, clock, reduce })?;
        });
        Ok(())
    }
}
