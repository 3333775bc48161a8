//! Polling loads: strong loads in a loop that writes nothing to memory. A lane repeats such a load until it gets the
//! expected value, so the first values do not matter.
//!
//! Also determines whether blocks may wait for each other: a superset of the waiting loads is marked, for
//! `exec::polling`.

use crate::program::types::Space;
use crate::program::{Area, Atom, AtomOp, Entry, Inst, Op};

/// Plain loads are examined in loops of up to this many instructions.
const SHORT: usize = 64;

/// Nesting depth of loops at each instruction.
struct Loops(Vec<u32>);

impl Loops {
    /// Counts the loops that `wanted` accepts; a loop extends from the target of a backward branch to the branch.
    fn new(entry: &Entry, wanted: impl Fn(usize, usize) -> bool) -> Loops {
        let mut changes = vec![0i64; entry.code.len() + 1];
        for (at, inst) in entry.code.iter().enumerate() {
            if let Op::Bra { target, .. } = inst.op
                && target as usize <= at
                && wanted(target as usize, at)
            {
                changes[target as usize] += 1;
                changes[at + 1] -= 1;
            }
        }
        let mut depth = 0;
        let depths = changes[..entry.code.len()].iter().map(|change| {
            depth += change;
            depth as u32
        });
        Loops(depths.collect())
    }

    fn has(&self, at: usize) -> bool {
        self.0[at] > 0
    }
}

/// The number of instructions of a kind before each instruction.
fn count(entry: &Entry, is: impl Fn(&Op) -> bool) -> Vec<u32> {
    let mut n = 0;
    let before = |inst: &Inst| {
        let here = n;
        n += u32::from(is(&inst.op));
        here
    };
    let mut all: Vec<u32> = entry.code.iter().map(before).collect();
    all.push(n);
    all
}

/// Whether an atomic may leave the word as it was: compare and swap, an exchange, and what is applied to a neutral constant.
fn may_leave(entry: &Entry, atom: &Atom) -> bool {
    let constant = match atom.size {
        8 => entry.const64.iter().find(|c| c.0 == atom.src[0]).map(|c| c.1),
        _ => entry.const32.iter().find(|c| c.0 == atom.src[0]).map(|c| u64::from(c.1)),
    };
    let ones = if atom.size == 8 { u64::MAX } else { u64::from(u32::MAX) };
    match atom.op {
        AtomOp::Cas | AtomOp::Exch => true,
        AtomOp::Add | AtomOp::Or | AtomOp::Xor => constant == Some(0),
        AtomOp::Max if !atom.signed => constant == Some(0),
        AtomOp::And => constant == Some(ones),
        AtomOp::Min if !atom.signed => constant == Some(ones),
        _ => false,
    }
}

/// Whether the value that an instruction reads or leaves depends on the order of blocks. Integers may be added,
/// compared and masked in any order, if the old value is not used.
fn is_ordered(op: &Op) -> bool {
    let beyond = |area: Area| matches!(area, Area::Generic | Area::In(Space::Global));
    match op {
        Op::Ld(access) | Op::St(access) => {
            // Streaming loads bypass L1 too; the other loads are enough to detect that a block observes another one.
            beyond(access.area) && access.order.strength.is_strong() && !access.order.uncached
        }
        Op::Atom(atom) => {
            let sums =
                matches!(atom.op, AtomOp::Add | AtomOp::Min | AtomOp::Max | AtomOp::And | AtomOp::Or | AtomOp::Xor);
            beyond(atom.area) && (atom.returns() || !sums)
        }
        _ => false,
    }
}

/// Marks them. `retried`: atomics that are no waits, for their loop begins with a guess.
pub(super) fn mark(entry: &mut Entry, retried: &[usize]) {
    entry.ordered = entry.code.iter().any(|i| is_ordered(&i.op));
    let strong = |op: &Op| match op {
        Op::Ld(access) | Op::St(access) => access.order.strength.is_strong() && !access.order.guess,
        Op::Atom(atom) => atom.returns() || atom.order.acquire || atom.order.release,
        _ => false,
    };
    if !entry.code.iter().any(|i| strong(&i.op)) {
        return;
    }
    let stores = |op: &Op| matches!(op, Op::St(_) | Op::StMatrix { .. } | Op::CpAsync(_));
    let (stored, written) = (count(entry, stores), count(entry, |op| stores(op) || matches!(op, Op::Atom(_))));
    let all = Loops::new(entry, |_, _| true);
    let quiet = Loops::new(entry, |from, to| stored[from] == stored[to + 1]);
    let reading = Loops::new(entry, |from, to| written[from] == written[to + 1]);
    let short = Loops::new(entry, |from, to| written[from] == written[to + 1] && to - from < SHORT);
    let beyond = |area: Area| matches!(area, Area::Generic | Area::In(Space::Global));
    let may_wait = |at: usize, op: &Op| match op {
        // Past the first-level cache data is streamed, too.
        Op::Ld(access) if access.order.uncached => beyond(access.area) && strong(op) && short.has(at),
        Op::Ld(access) => beyond(access.area) && strong(op) && all.has(at),
        Op::Atom(atom) => {
            beyond(atom.area)
                && atom.returns()
                && quiet.has(at)
                && retried.binary_search(&at).is_err()
                && (may_leave(entry, atom) || atom.order.acquire)
        }
        _ => false,
    };
    let signals = |op: &Op| match op {
        Op::St(access) => beyond(access.area) && strong(op),
        Op::Atom(atom) => beyond(atom.area) && atom.order.release,
        _ => false,
    };
    // If a flag is written by a strong store, a plain load may poll it, incorrectly.
    let signalled = entry.code.iter().any(|i| signals(&i.op));
    let plain = |at: usize, op: &Op| matches!(op, Op::Ld(access) if signalled && beyond(access.area) && short.has(at));
    // Once blocks may wait, threads of a block may, for those that do.
    let within = |at: usize, op: &Op| match op {
        Op::Ld(access) => strong(op) && !beyond(access.area) && reading.has(at),
        _ => false,
    };
    let waits = |at: usize, op: &Op| may_wait(at, op) || plain(at, op);
    let any = entry.code.iter().enumerate().any(|(at, i)| waits(at, &i.op));
    let marked = |(at, i): (usize, &Inst)| any && (waits(at, &i.op) || within(at, &i.op));
    let marks: Vec<bool> = entry.code.iter().enumerate().map(marked).collect();
    entry.waits = any;
    for (at, inst) in entry.code.iter_mut().enumerate() {
        match &mut inst.op {
            Op::Ld(access) => {
                access.order.polls = reading.has(at);
                access.order.waits = marks[at];
            }
            Op::Atom(atom) => atom.order.waits = marks[at],
            _ => {}
        }
    }
}
