//! Polling loops: which fragments poll a flag, when a block lets others run, and what polling costs.
//!
//! After a load that may poll a flag ([`crate::program::Semantics::waits`]), its fragment is watched. It continues
//! instruction by instruction, until it has an effect that others could notice, or returns to the load. If it returns
//! with the same registers as the last time, and has read the same values, it repeats for ever unless memory that it
//! has read changes. So it sleeps until that happens. When all fragments of a block sleep or wait for each other,
//! another block runs ([`super::resident`]).
//!
//! Unsuccessful iterations are not counted, because their number depends on the order of execution and on the machine.
//! Only the successful poll counts. If a loop is known to poll, iterations that saw the flag change but continued to
//! wait are not counted, either. If others take part in the iterations (lanes that diverge and converge, or other warps
//! at a barrier), all iterations count.
//!
//! A loop that counts its iterations never returns to the same state. After [`PATIENCE`] iterations it lets others run,
//! and continues when nothing else can; its iterations count.

use super::access::{addresses, for_lanes, window};
use super::warp::{Frag, Wait, Warp};
use crate::counters::Counts;
use crate::exec::cta::Cta;
use crate::exec::outcome::Next;
use crate::exec::warp::{PolledValues, Turn, Watch};
use crate::program::types::{SHARED_WINDOW, Space};
use crate::program::{Addr, Area, Op};
use crate::report::{Place, Report};

/// Most instructions of a polling iteration.
const MAX_TURN: usize = 256;
/// Iterations of a loop with changing registers before others run.
const PATIENCE: u32 = 16;

fn same_path(one: &[(u32, Counts)], other: &[(u32, Counts)]) -> bool {
    one.iter().map(|step| step.0).eq(other.iter().map(|step| step.0))
}

/// Whether an instruction has no effect on others, or only waits for them.
fn is_quiet(op: &Op) -> bool {
    !matches!(
        op,
        Op::St(_)
            | Op::StMatrix { .. }
            | Op::CpAsync(_)
            | Op::CpCommit
            | Op::CpWait(_)
            | Op::MBar(_)
            | Op::Bulk(_)
            | Op::Remote(_)
            | Op::BulkCommit
            | Op::BulkWait { .. }
            | Op::Wgmma(_)
            | Op::WgmmaFence
            | Op::WgmmaCommit
            | Op::WgmmaWait(_)
            | Op::WmmaMove(_)
            | Op::WmmaMma(_)
            | Op::Mma(_)
            | Op::MaxRegisters { .. }
            | Op::ClusterArrive { .. }
            | Op::ClusterWait { .. }
            | Op::Discard { .. }
            | Op::GridWait
            | Op::Exit
            | Op::Trap
            | Op::Assert(_)
    )
}

impl Warp {
    /// A hash of the registers of some lanes.
    pub(super) fn state(&self, mask: u32) -> u64 {
        let mut hash = 0xCBF2_9CE4_8422_2325u64;
        let mut mix = |v: u64| hash = (hash ^ v ^ hash >> 29).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        for slot in &self.w {
            mix(u64::from(slot.ok & mask));
            for_lanes!(lane in mask & slot.ok => { mix(u64::from(slot.v[lane])); });
        }
        for slot in &self.l {
            mix(u64::from(slot.ok & mask));
            for_lanes!(lane in mask & slot.ok => { mix(slot.v[lane]); });
        }
        for slot in &self.p {
            mix(u64::from(slot.ok & mask) << 32 | u64::from(slot.v & slot.ok & mask));
        }
        hash
    }

    fn watch(&self, mask: u32) -> Option<usize> {
        self.watches.iter().position(|watch| watch.mask & mask == watch.mask)
    }

    /// The watched lanes of a fragment, if any: it runs instruction by instruction.
    #[inline]
    pub(super) fn watched_lanes(&self, mask: u32) -> Option<u32> {
        if self.watches.is_empty() { None } else { self.watch(mask).map(|slot| self.watches[slot].mask) }
    }
}

impl Cta<'_> {
    /// After a load that may poll a flag.
    #[inline(never)]
    pub(super) fn after_poll(&self, w: &mut Warp, at: usize) -> Next {
        w.frags[at].pc += 1;
        let (mask, pc) = (w.frags[at].mask, w.frags[at].pc - 1);
        if w.watch(mask).is_none() && !w.busy.contains(&pc) {
            let frags = &w.frags;
            w.watches.retain(|watch| frags.iter().any(|f| f.mask & watch.mask == watch.mask));
            let new = Watch {
                mask,
                pc,
                turn: Turn::new(),
                polled: Vec::new(),
                last: None,
                path: None,
                woken: false,
                restless: 0,
                joint: false,
            };
            w.watches.push(new);
        }
        Next::Stop
    }

    /// Runs the fragment with these watched lanes; returns the number of executed instructions.
    pub(super) fn watched(&mut self, warp: &mut Warp, lanes: u32, limit: u32) -> Result<u32, Box<Report>> {
        let entry = self.entry;
        let mut used = 0;
        while used < limit {
            let ready = |f: &Frag| f.mask & lanes == lanes && f.wait == Wait::Ready;
            let Some(at) = warp.frags.iter().position(ready) else { break };
            let mask = warp.frags[at].mask;
            // If watched lanes have joined, only the first group stays watched.
            let mut first = true;
            warp.watches.retain(|watch| watch.mask & mask != watch.mask || std::mem::take(&mut first));
            let Some(slot) = warp.watch(mask).filter(|slot| warp.watches[*slot].mask == lanes) else { break };
            let pc = warp.frags[at].pc;
            let quiet = entry.code.get(pc as usize).filter(|inst| is_quiet(&inst.op));
            let Some(inst) = quiet.filter(|_| warp.watches[slot].turn.len() < MAX_TURN) else {
                warp.watches.swap_remove(slot);
                break;
            };
            let guard = warp.p[inst.guard as usize];
            let look = self.memory_before(warp, &inst.op, mask & (guard.v ^ inst.flip));
            let before = self.counts[pc as usize];
            used += self.fragment(warp, at, 1)?;
            let mut cost = self.counts[pc as usize];
            cost.subtract(&before);
            let Some(frag) = warp.frags.iter().find(|f| f.mask & lanes == lanes) else {
                warp.watches.swap_remove(slot);
                break;
            };
            let others = frag.mask != lanes || matches!(frag.wait, Wait::Converge { .. });
            let watch = &mut warp.watches[slot];
            watch.joint |= others || matches!(inst.op, Op::Bar(_));
            watch.turn.push((pc, cost));
            if let Some(mut look) = look {
                let was = look.data;
                self.read_again(&mut look);
                if was != look.data {
                    // Others may notice the effect.
                    warp.watches.swap_remove(slot);
                    break;
                }
                watch.polled.push(look);
            }
            if pc == watch.pc {
                self.returned_to_load(warp, slot);
            }
        }
        Ok(used)
    }

    /// The memory that the instruction reads in the lanes of `m`.
    fn memory_before(&self, warp: &Warp, op: &Op, m: u32) -> Option<PolledValues> {
        let (addr, area, bytes): (Addr, Area, u64) = match op {
            Op::Ld(access) => (access.addr, access.area, u64::from(access.size) * u64::from(access.n)),
            Op::Atom(atom) => (atom.addr, atom.area, u64::from(atom.size) * u64::from(atom.n)),
            _ => return None,
        };
        let shared = match area {
            Area::In(Space::Shared | Space::Cluster) => SHARED_WINDOW,
            Area::In(Space::Global) | Area::Generic => 0,
            Area::In(_) => return None,
        };
        // The instruction itself will report an invalid address.
        let mut at = addresses(warp, addr, m).ok()?;
        at.iter_mut().for_each(|at| *at = at.wrapping_add(shared));
        let mut look = PolledValues { lanes: m, at, bytes, data: [[0; 4]; 32] };
        self.read_again(&mut look);
        Some(look).filter(|look| look.lanes != 0)
    }

    /// Reads memory again, without recording accesses.
    fn read_again(&self, look: &mut PolledValues) {
        for_lanes!(lane in look.lanes => { look.data[lane] = self.peek(look.at[lane], look.bytes); });
    }

    fn peek(&self, address: u64, bytes: u64) -> [u32; 4] {
        let n = bytes.min(4) as usize;
        let cut = if n == 4 { u32::MAX } else { (1 << (8 * n)) - 1 };
        let mut out = [0; 4];
        let words = out.iter_mut().take((bytes as usize).div_ceil(4)).zip((0..).step_by(4));
        match window(address) {
            (Space::Global, at) => {
                let Some(alloc) = self.device.find(at).filter(|alloc| alloc.holds(at, bytes)) else { return out };
                let start = (at - alloc.base) as usize;
                words.for_each(|(word, i)| *word = alloc.word(start + i) >> ((start + i) % 4 * 8) & cut);
            }
            (Space::Shared, at) if at + bytes <= self.shared.bytes => {
                words.for_each(|(word, i)| *word = self.shared.get(at as usize + i, n).unwrap_or(0));
            }
            _ => {}
        }
        out
    }

    /// The fragment has returned to its load.
    fn returned_to_load(&mut self, warp: &mut Warp, slot: usize) {
        let lanes = warp.watches[slot].mask;
        let state = warp.state(lanes);
        let watch = &mut warp.watches[slot];
        let (turn, looks) = (std::mem::take(&mut watch.turn), std::mem::take(&mut watch.polled));
        if std::mem::take(&mut watch.woken) {
            watch.last = None;
            return;
        }
        let known = watch.path.as_ref().is_some_and(|path| same_path(path, &turn));
        let as_before = |last: &(Turn, u64)| last.1 == state && same_path(&last.0, &turn);
        let exact = watch.last.as_ref().is_some_and(as_before);
        let before = watch.last.take();
        let sleep = if exact && watch.joint {
            // The effects of other participants in these iterations are not known here.
            true
        } else if exact {
            let path = turn.clone();
            let earlier = before.filter(|_| !known);
            watch.path = Some(path);
            self.take_back(&turn);
            if let Some((turn, _)) = &earlier {
                self.take_back(turn);
            }
            // It will poll once more.
            self.take_back(&turn[turn.len() - 1..]);
            true
        } else if known && !watch.joint {
            self.take_back(&turn);
            false
        } else {
            watch.restless += 1;
            let plain = |op: &Op| matches!(op, Op::Ld(access) if !access.order.strength.is_strong());
            if watch.restless == 2 && plain(&self.entry.code[watch.pc as usize].op) {
                warp.busy.push(watch.pc);
                warp.watches.swap_remove(slot);
                return;
            }
            watch.restless.is_multiple_of(PATIENCE)
        };
        watch.last = Some((turn, state));
        if sleep {
            watch.polled = looks;
            watch.woken = exact;
            let (pc, joint) = (watch.pc, watch.joint);
            if let Some(frag) = warp.frags.iter_mut().find(|f| f.mask & lanes == lanes) {
                frag.wait = Wait::Flag { pc, exact: exact && !joint };
                frag.pc = if exact { pc } else { frag.pc };
            }
        }
    }

    fn take_back(&mut self, turn: &[(u32, Counts)]) {
        for (pc, cost) in turn {
            self.counts[*pc as usize].subtract(cost);
        }
    }

    /// Whether memory that the fragment has read has changed.
    fn has_changed(&self, warp: &Warp, frag: &Frag) -> bool {
        let Some(slot) = warp.watch(frag.mask) else { return true };
        warp.watches[slot].polled.iter().any(|look| {
            (0..32).any(|lane| look.lanes >> lane & 1 != 0 && self.peek(look.at[lane], look.bytes) != look.data[lane])
        })
    }

    /// Whether memory that a sleeping fragment has read has changed.
    pub(super) fn any_changed(&self, warps: &[Warp]) -> bool {
        let sleeps = |f: &&Frag| matches!(f.wait, Wait::Flag { .. });
        warps.iter().any(|w| w.frags.iter().filter(sleeps).any(|frag| self.has_changed(w, frag)))
    }

    /// Wakes fragments whose flags have changed. The result says whether there was one.
    pub(super) fn wake_changed(&self, warps: &mut [Warp]) -> bool {
        if !self.any_changed(warps) {
            return false;
        }
        for warp in warps {
            for i in 0..warp.frags.len() {
                let frag = warp.frags[i];
                // An iteration of several warps needs all of them.
                if matches!(frag.wait, Wait::Flag { exact, .. } if !exact || self.has_changed(warp, &frag)) {
                    wake(warp, i);
                }
            }
        }
        true
    }

    /// Wakes fragments that may continue by themselves. The result says whether there was one.
    pub(super) fn wake_independent(&self, warps: &mut [Warp]) -> bool {
        let mut any = false;
        for warp in warps {
            for i in 0..warp.frags.len() {
                if matches!(warp.frags[i].wait, Wait::Flag { exact: false, .. }) {
                    wake(warp, i);
                    any = true;
                }
            }
        }
        any
    }

    /// The flag for which a sleeping fragment waits, for a report: its text and place.
    pub(super) fn flag_text(&self, warp: &Warp, frag: &Frag, pc: u32) -> (String, Place) {
        let look = warp.watch(frag.mask).and_then(|slot| warp.watches[slot].polled.last());
        let lane = look.map_or(frag.mask, |look| look.lanes).trailing_zeros() as usize & 31;
        let place = self.place(pc as usize, warp.index, lane);
        let what = look.map_or("for a flag".to_owned(), |look| {
            let (space, at) = window(look.at[lane]);
            let space = if space == Space::Shared { "shared" } else { "global" };
            let value = match look.bytes {
                ..4 => u64::from(look.data[lane][0]) & ((1 << (8 * look.bytes)) - 1),
                4 => u64::from(look.data[lane][0]),
                _ => u64::from(look.data[lane][0]) | u64::from(look.data[lane][1]) << 32,
            };
            format!("for {space} address {at:#x} to change, which holds {value}")
        });
        let [x, y, z] = place.thread;
        let text = format!("{what}: `{}` at PTX line {} by thread ({x}, {y}, {z})", place.instruction, place.ptx_line);
        (text, place)
    }

    /// The address of the flag that a fragment waits for.
    pub(super) fn flag_address(&self, warp: &Warp, frag: &Frag) -> Option<u64> {
        let look = warp.watch(frag.mask).and_then(|slot| warp.watches[slot].polled.last())?;
        matches!(frag.wait, Wait::Flag { .. }).then(|| window(look.at[look.lanes.trailing_zeros() as usize & 31]).1)
    }
}

/// Makes the fragment poll again.
fn wake(warp: &mut Warp, at: usize) {
    let mask = warp.frags[at].mask;
    warp.frags[at].wait = Wait::Ready;
    if let Some(slot) = warp.watch(mask) {
        warp.watches[slot].polled.clear();
    }
}
