//! mbarrier objects (PTX 9.7.13.15): phase, pending arrivals, and expected bytes, exactly.
//!
//! An object is in eight bytes of shared memory, which only these instructions may access while it exists. An arrival
//! publishes the thread's clock to the phase; threads that see the phase complete learn it. After a failed wait, a
//! fragment sleeps until the phase completes or nothing else can run. But each warp first fails several times at every
//! wait ([`Cta::fails_again`]): `try_wait` has an unspecified time limit, so a program that only tries a few times is
//! wrong. So is one that ignores the result, although the phase may be complete in this order of execution. So these
//! failures occur in either case ([`Cta::early_waits`]).

use super::access::for_lanes;
use super::asynchronous::{Arrival, Landing};
use super::warp::{Wait, Warp};
use crate::exec::barriers::{Arrivals, Object};
use crate::exec::cta::Cta;
use crate::exec::fail::{Fail, Step};
use crate::exec::outcome::Next;
use crate::exec::warp::AwaitedPhase;
use crate::program::mbarrier::{MBar, What};
use crate::program::types::{R, SINK};
use crate::race::{Conflict, Issuer, Known, Races, Strength};
use crate::report::{Cause, ReportKind};

/// The largest count of arrivals and of bytes (PTX 9.7.13.15.2).
const MAX_COUNT: u32 = (1 << 20) - 1;

/// Failures of a wait before its warp sleeps, without a completed phase in between; at most twice as many.
const LEAST_FAILURES: u32 = 32;

/// The opaque state of an arrival: a mark, whether it was `.noComplete`, the object, the phase, and the pending count.
#[derive(Clone, Copy)]
struct State {
    incomplete: bool,
    at: u32,
    phase: u32,
    pending: u32,
}

const MARK: u64 = 0xB4;
/// The bits of an address that are in a state: they distinguish the objects of a block.
const STATE_WINDOW: u32 = 0x3_FFF8;

impl State {
    fn pack(self) -> u64 {
        let (at, phase) = (u64::from(self.at / 8) & 0x7FFF, u64::from(self.phase) & 0xF_FFFF);
        MARK << 56 | u64::from(self.incomplete) << 55 | at << 40 | phase << 20 | u64::from(self.pending)
    }

    fn unpack(v: u64) -> Option<State> {
        let (at, phase, pending) = (v >> 40 & 0x7FFF, v >> 20 & 0xF_FFFF, v & 0xF_FFFF);
        let incomplete = v >> 55 & 1 != 0;
        let state = State { incomplete, at: at as u32 * 8, phase: phase as u32, pending: pending as u32 };
        (v >> 56 == MARK).then_some(state)
    }
}

fn invalid(lane: usize, at: u32, message: String) -> Box<Fail> {
    Fail::new(ReportKind::Invalid, message).at(lane).in_shared(u64::from(at))
}

/// `mbarrier.pending_count` of one lane.
fn pending_count(lane: usize, state: u64) -> Result<u32, Box<Fail>> {
    match State::unpack(state) {
        Some(state) if state.incomplete => Ok(state.pending),
        _ => {
            let message = "this is not the state of an arrival with `.noComplete`";
            Err(Fail::new(ReportKind::Invalid, message).at(lane))
        }
    }
}

/// The value of a register in a lane.
fn value(w: &Warp, lane: usize, r: R, what: &str) -> Result<u32, Box<Fail>> {
    let slot = &w.w[r as usize];
    if slot.ok >> lane & 1 == 0 {
        return Err(Fail::new(ReportKind::Undefined, format!("the {what} is undefined")).at(lane));
    }
    Ok(slot.v[lane])
}

/// The phase that a lane waits for at the object `here`.
fn awaited_phase(w: &Warp, lane: usize, here: u32, state: R, parity: bool) -> Result<AwaitedPhase, Box<Fail>> {
    if parity {
        return Ok(AwaitedPhase::Parity(value(w, lane, state, "parity")? & 1));
    }
    let slot = &w.l[state as usize];
    if slot.ok >> lane & 1 == 0 {
        return Err(Fail::new(ReportKind::Undefined, "the state is undefined").at(lane));
    }
    match State::unpack(slot.v[lane]) {
        Some(s) if s.at == here & STATE_WINDOW => Ok(AwaitedPhase::Phase(s.phase)),
        Some(s) => {
            let message = format!("this state is of the mbarrier at {:#x}, not of the one at {here:#x}", s.at);
            Err(invalid(lane, here, message))
        }
        None => Err(invalid(lane, here, "this is no state of an mbarrier".to_owned())),
    }
}

impl Cta<'_> {
    /// Whether these bytes contain an object.
    pub(crate) fn touches_mbarrier(&self, at: usize, n: usize) -> bool {
        let (first, end) = (at as u32, (at + n) as u32);
        !self.mbarriers.is_empty() && self.mbarriers.range(first.saturating_sub(7)..end).next().is_some()
    }

    /// `mbarrier.pending_count`.
    pub(crate) fn pending_counts(&mut self, w: &mut Warp, d: R, state: R, m: u32) -> Step {
        let slot = w.l[state as usize];
        let mut out = [0; 32];
        for_lanes!(lane in m => {
            if slot.ok >> lane & 1 == 0 {
                return Err(Fail::new(ReportKind::Undefined, "the state is undefined").at(lane));
            }
            out[lane] = pending_count(lane, slot.v[lane])?;
        });
        w.put32(d, m, &out, u32::MAX);
        Ok(())
    }

    /// Executes an instruction on an object in every lane of `m`, lowest first.
    pub(crate) fn mbarrier(
        &mut self,
        w: &mut Warp,
        frag: usize,
        op: &MBar,
        m: u32,
        pc: usize,
    ) -> Result<Next, Box<Fail>> {
        if m == 0 {
            return Ok(Next::Advance);
        }
        let at = self.shared_addresses(w, op.addr, op.area, m)?;
        let seq = if matches!(op.what, What::Wait { .. }) { 0 } else { self.next_seq() };
        let (mut states, mut waits, mut last) = ([0u64; 32], 0u32, None);
        for_lanes!(lane in m => {
            let here = self.check_shared(lane, at[lane], 8)? as u32;
            let who = Issuer { warp: w.index, lane, pc: pc as u32, seq, strength: Strength::Block, copy: false };
            match op.what {
                What::Init { count } => {
                    self.initialise(who, here, value(w, lane, count, "count of an mbarrier")?)?;
                    continue;
                }
                What::Inval => {
                    self.invalidate(who, here)?;
                    continue;
                }
                _ => {}
            }
            // All users of the object must be ordered after its initialisation.
            self.object(lane, here)?;
            self.use_object(who, here)?;
            match op.what {
                What::Init { .. } | What::Inval => {}
                What::ExpectTx { bytes } => {
                    self.transact(lane, here, i64::from(value(w, lane, bytes, "number of bytes")?))?;
                }
                What::CompleteTx { bytes } => {
                    self.transact(lane, here, -i64::from(value(w, lane, bytes, "number of bytes")?))?;
                }
                What::Arrive { count, expect, drop, incomplete, .. } => {
                    if let Some(bytes) = expect {
                        self.transact(lane, here, i64::from(value(w, lane, bytes, "number of bytes")?))?;
                    }
                    let count = count.map_or(Ok(1), |r| value(w, lane, r, "count of arrivals"))?;
                    if !op.relaxed
                        && let Some(object) = self.mbarriers.get_mut(&here)
                    {
                        self.races.clocks.release(w.index, 1 << lane, w.live, &mut object.known);
                    }
                    states[lane] = self.arrive((w.index, lane, pc), here, count, drop, incomplete)?;
                }
                What::Wait { state, parity, .. } => {
                    let want = awaited_phase(w, lane, here, state, parity)?;
                    if self.is_over(lane, here, want)? {
                        waits |= 1 << lane;
                    } else {
                        last = Some((here, want));
                    }
                }
                What::Copies { counted } => self.arrive_behind_copies(w, who, here, counted)?,
            }
        });
        match op.what {
            What::Arrive { state, .. } if state != SINK => w.put64(state, m, &states, u32::MAX),
            What::Wait { p, .. } => {
                let early = self.early_waits(w, waits, &at, pc);
                waits &= !early;
                w.putp(p, m, waits, u32::MAX);
                self.learn(w, op, waits, &at);
                if let (0, 0, Some((at, want))) = (early, waits, last)
                    && !self.fails_again(w.index, pc)
                {
                    w.frags[frag].pc = pc as u32 + 1;
                    w.frags[frag].wait = Wait::Poll { at, want };
                    return Ok(Next::Stop);
                }
            }
            _ => {}
        }
        Ok(Next::Advance)
    }

    /// `mbarrier.init`.
    fn initialise(&mut self, who: Issuer, here: u32, count: u32) -> Step {
        if count == 0 || count > MAX_COUNT {
            let message = format!("an mbarrier of {count} arrivals: 1 to {MAX_COUNT} are possible");
            return Err(invalid(who.lane, here, message));
        }
        if self.touches_mbarrier(here as usize, 8) {
            let message = format!("shared address {here:#x} holds an mbarrier already: invalidate it first");
            return Err(invalid(who.lane, here, message));
        }
        self.claim_object(Issuer { strength: Strength::Weak, ..who }, here)?;
        let (known, done) = (Known::default(), Known::default());
        let arrivals = Arrivals::default();
        let object = Object { expected: count, pending: count, tx: 0, announced: 0, arrivals, phase: 0, known, done };
        self.mbarriers.insert(here, object);
        self.mbarrier_events += 1;
        Ok(())
    }

    /// `mbarrier.inval`.
    fn invalidate(&mut self, who: Issuer, here: u32) -> Step {
        self.object(who.lane, here)?;
        self.mbarriers.remove(&here);
        self.claim_object(Issuer { strength: Strength::Weak, ..who }, here)?;
        self.mbarrier_events += 1;
        Ok(())
    }

    /// Whether the awaited phase is complete.
    fn is_over(&mut self, lane: usize, here: u32, want: AwaitedPhase) -> Result<bool, Box<Fail>> {
        let object = self.object(lane, here)?;
        match want {
            AwaitedPhase::Parity(p) => Ok(object.phase & 1 != p),
            AwaitedPhase::Phase(p) => match (object.phase & 0xF_FFFF).wrapping_sub(p) & 0xF_FFFF {
                0 => Ok(false),
                1 => Ok(true),
                n => {
                    let message = format!(
                        "a wait for phase {p}, {n} phases ago: only the current and the last one can be told apart"
                    );
                    Err(invalid(lane, here, message))
                }
            },
        }
    }

    /// `cp.async.mbarrier.arrive`: an arrival once the thread's copies have landed.
    fn arrive_behind_copies(&mut self, w: &mut Warp, who: Issuer, here: u32, counted: bool) -> Step {
        let object = self.object(who.lane, here)?;
        if !counted {
            object.pending += 1;
            if object.pending > MAX_COUNT {
                return Err(invalid(who.lane, here, format!("more than {MAX_COUNT} arrivals are pending")));
            }
        }
        let clock = self.races.clocks.now(self.races.clocks.engine(w.index));
        let arrival = Arrival { warp: w.index, lane: who.lane, pc: who.pc, at: here, clock };
        if self.landing == Landing::Early {
            self.arrive_after_copies(w, arrival)?;
        } else {
            w.copies.arrivals[who.lane].push_back(clock);
            self.arrivals.push_back(arrival);
        }
        // Later copies are not covered by this arrival.
        self.races.clocks.start_copies(w.index);
        Ok(())
    }

    /// Whether a warp continues immediately after a failed wait: at each wait several times, by a number that depends
    /// on the seed, and then never again, so that loops cost little.
    fn fails_again(&mut self, warp: usize, pc: usize) -> bool {
        let left = self.failures_left(warp, pc);
        let again = *left > 0;
        *left -= u32::from(again);
        again
    }

    fn failures_left(&mut self, warp: usize, pc: usize) -> &mut u32 {
        let mixed = self.seed.wrapping_mul(31).wrapping_add(7 * warp as u64 + 13 * pc as u64 + self.block);
        let all = LEAST_FAILURES + (mixed % u64::from(LEAST_FAILURES)) as u32;
        self.failures.entry((warp, pc as u32)).or_insert(all)
    }

    /// The lanes whose phase is complete but whose wait is not ordered after its end, so they may have waited too
    /// early. Their wait may still fail, so that programs that ignore the result are found in every order. But if
    /// copies land at once, a kernel with copies gets the true result, so that results which depend on it differ from
    /// those of other landing modes.
    fn early_waits(&mut self, w: &Warp, lanes: u32, at: &[u64; 32], pc: usize) -> u32 {
        let told = self.landing == Landing::Early && self.entry.copies;
        if lanes == 0 || told || *self.failures_left(w.index, pc) == 0 {
            return 0;
        }
        let clocks = &self.races.clocks;
        let mut early = 0;
        for_lanes!(lane in lanes => {
            let object = self.mbarriers.get(&(at[lane] as u32));
            let learns = object.is_some_and(|object| clocks.acquires_more((w.index, lane), w.live, &object.done));
            early |= u32::from(learns) << lane;
        });
        if early != 0 {
            self.fails_again(w.index, pc);
        }
        early
    }

    /// The lanes whose wait succeeded learn the clocks of the completed phases.
    fn learn(&mut self, w: &Warp, op: &MBar, lanes: u32, at: &[u64; 32]) {
        if op.relaxed {
            return;
        }
        let mut left = lanes;
        while left != 0 {
            let here = at[left.trailing_zeros() as usize];
            let same = (0..32).fold(0, |same, lane| same | u32::from(at[lane] == here) << lane) & left;
            left &= !same;
            if let Some(object) = self.mbarriers.get(&(here as u32)) {
                self.races.clocks.acquire(w.index, same, w.live, &object.done);
            }
        }
    }

    /// Removes the eight bytes of an object from ordinary use, or returns them, undefined.
    fn claim_object(&mut self, who: Issuer, at: u32) -> Step {
        for word in [at as usize, at as usize + 4] {
            if let Err(conflict) = self.races.write(who, word, 4, false) {
                return Err(self.race(conflict, who.lane, word, true));
            }
            self.races.set_apart(word);
        }
        self.shared.poison(at as usize, 8);
        Ok(())
    }

    /// A use of an object by a thread, which must be ordered after its initialisation.
    pub(crate) fn use_object(&mut self, who: Issuer, at: u32) -> Step {
        let used = self.races.use_object(who, at as usize);
        self.object_used(who, at, used)
    }

    /// The same for a store that the object counts when it lands.
    pub(crate) fn know_object(&mut self, who: Issuer, at: u32) -> Step {
        let known = self.races.knows_object(who, at as usize);
        self.object_used(who, at, known)
    }

    fn object_used(&mut self, who: Issuer, at: u32, used: Result<(), (usize, Conflict)>) -> Step {
        used.map_err(|(word, conflict)| {
            if !conflict.wrote || self.rank_of(conflict.warp) == self.rank_of(who.warp) {
                return self.race(conflict, who.lane, word, false);
            }
            let message = format!(
                "this thread does not know of the initialisation of the mbarrier at {at:#x} by another block of the cluster: a barrier of \
                 the cluster says so, with `.release` or behind `fence.mbarrier_init.release.cluster`"
            );
            let fail = Fail::new(ReportKind::Race, message).because(Cause::InitFence);
            fail.at(who.lane).in_shared(u64::from(at)).against(conflict)
        })
    }

    fn object(&mut self, lane: usize, at: u32) -> Result<&mut Object, Box<Fail>> {
        self.mbarriers.get_mut(&at).ok_or_else(|| {
            invalid(
                lane,
                at,
                format!("there is no mbarrier at shared address {at:#x}: it was not initialised, or is invalidated"),
            )
        })
    }

    /// Checks that the object exists that a copy completes.
    pub(crate) fn require_object(&mut self, lane: usize, at: u32) -> Step {
        self.object(lane, at).map(|_| ())
    }

    /// Counts landed bytes at an object; its waiters learn the clocks `tells`.
    pub(crate) fn count_landed(
        &mut self,
        lane: usize,
        at: u32,
        bytes: u32,
        tells: impl FnOnce(&Races, &mut Known),
    ) -> Step {
        let Some(object) = self.mbarriers.get_mut(&at) else {
            let message = format!("a bulk copy counts at the mbarrier at {at:#x}, which is gone");
            return Err(invalid(lane, at, message));
        };
        tells(&self.races, &mut object.known);
        self.transact(lane, at, -i64::from(bytes))
    }

    fn transact(&mut self, lane: usize, at: u32, bytes: i64) -> Step {
        let object = self.object(lane, at)?;
        object.tx += bytes;
        object.announced += bytes.max(0);
        if object.tx.unsigned_abs() > u64::from(MAX_COUNT) {
            let message = format!("{} bytes are expected at an mbarrier, which counts to {MAX_COUNT}", object.tx);
            return Err(invalid(lane, at, message));
        }
        if bytes < 0 {
            self.complete(at);
        }
        Ok(())
    }

    /// An arrival of a lane by the instruction at an index.
    fn arrive(
        &mut self,
        by: (usize, usize, usize),
        at: u32,
        count: u32,
        drop: bool,
        incomplete: bool,
    ) -> Result<u64, Box<Fail>> {
        let (_, lane, _) = by;
        let object = self.object(lane, at)?;
        if count == 0 || count > object.pending {
            let message = format!("{count} arrivals at the mbarrier at {at:#x}, in {object}");
            return Err(invalid(lane, at, message));
        }
        if incomplete && count == object.pending {
            let message = format!("an arrival with `.noComplete` completes the mbarrier at {at:#x}, in {object}");
            return Err(invalid(lane, at, message));
        }
        let state = State { incomplete, at, phase: object.phase, pending: object.pending };
        object.pending -= count;
        object.arrivals.add(by, count);
        if drop {
            // Arrivals beyond `expected` came from copies, so the subtraction saturates.
            object.expected = object.expected.saturating_sub(count);
        }
        self.complete(at);
        Ok(state.pack())
    }

    /// A delayed arrival after copies have landed.
    pub(crate) fn arrive_from_engine(&mut self, arrival: Arrival, known: &Known) -> Step {
        let Arrival { warp, lane, pc, at, .. } = arrival;
        self.object(lane, at)?.known.join(known);
        self.arrive((warp, lane, pc as usize), at, 1, false, false).map(|_| ())
    }

    /// Ends the phase if nothing is pending.
    fn complete(&mut self, at: u32) {
        self.mbarrier_events += 1;
        let Some(object) = self.mbarriers.get_mut(&at) else { return };
        if object.pending == 0 && object.tx == 0 {
            object.phase = object.phase.wrapping_add(1);
            self.races.phase_ends(at, &mut object.known);
            object.done = std::mem::take(&mut object.known);
            object.pending = object.expected;
            object.announced = 0;
            object.arrivals.next();
            self.completed.push(at);
        }
    }

    /// Wakes the fragments whose phases have completed.
    pub(crate) fn wake(&mut self, warps: &mut [Warp]) {
        for at in std::mem::take(&mut self.completed) {
            for frag in warps.iter_mut().flat_map(|w| &mut w.frags) {
                if matches!(frag.wait, Wait::Poll { at: here, .. } if here == at) {
                    frag.wait = Wait::Ready;
                }
            }
        }
    }
}
