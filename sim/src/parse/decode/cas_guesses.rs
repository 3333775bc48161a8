//! Plain loads whose value is the first guess of a compare-and-swap loop.
//!
//! `old = *p; do { assumed = old; old = atomicCAS(p, assumed, f(assumed)); } while (assumed != old);` reads `*p`
//! plainly while other threads update it. That is a race according to PTX ISA 8.7, and harmless: a stale value only
//! costs an iteration. The idiom is common (the CUDA Programming Guide has it for atomics on double), so such loads are
//! treated as relaxed. A load is recognised if the kernel has an `atom.cas` of its size whose address is written the
//! same way; registers that are copies of each other (`mov`, `cvta.to.global`) count as equal.

use crate::program::types::R;
use crate::program::{AtomOp, Base, Entry, Op, Special};
use crate::race::Strength;

/// Registers of one width, those that are copied to each other under one name.
struct Copies(Vec<R>);

impl Copies {
    fn root(&self, mut r: R) -> R {
        while self.0[r as usize] != r {
            r = self.0[r as usize];
        }
        r
    }

    fn new(slots: usize, copies: impl Iterator<Item = (R, R)>) -> Copies {
        let mut out = Copies((0..slots as R).collect());
        for (a, b) in copies {
            let (a, b) = (out.root(a), out.root(b));
            out.0[a.max(b) as usize] = a.min(b);
        }
        out
    }
}

/// Marks them; the swaps that they are for, in order.
pub(super) fn mark(entry: &mut Entry) -> Vec<usize> {
    let swaps = |op: &Op| match op {
        Op::Atom(atom) if atom.op == AtomOp::Cas => Some((atom.addr, atom.size)),
        _ => None,
    };
    if !entry.code.iter().any(|i| swaps(&i.op).is_some()) {
        return Vec::new();
    }
    let copies = |wide: bool| {
        entry.code.iter().filter_map(move |i| match i.op {
            Op::Mov64 { d, a } if wide => Some((d, a)),
            Op::Mov32 { d, a } if !wide => Some((d, a)),
            _ => None,
        })
    };
    let (narrow, wide) = (Copies::new(entry.n32, copies(false)), Copies::new(entry.n64, copies(true)));
    // A variable that is named is at an offset from where the shared memory of the block begins.
    let named = |r: R| entry.specials.contains(&(r, Special::SharedAt(0)));
    let place = |base: Base| match base {
        Base::None => (0, 0),
        Base::R32(r) if named(r) => (0, 0),
        Base::R64(r) if entry.shared64.iter().any(|(slot, _)| *slot == r) => (0, 0),
        Base::R32(r) => (1, narrow.root(r)),
        Base::R64(r) => (2, wide.root(r)),
    };
    let all = entry.code.iter().filter_map(|i| swaps(&i.op));
    let swapped: Vec<_> = all.map(|(addr, size)| (place(addr.base), addr.offset, size)).collect();
    let is_guess = |op: &Op| match op {
        Op::Ld(a) if a.n == 1 && a.order.strength == Strength::Weak => {
            swapped.contains(&(place(a.addr.base), a.addr.offset, a.size))
        }
        _ => false,
    };
    let guesses: Vec<usize> = (0..entry.code.len()).filter(|i| is_guess(&entry.code[*i].op)).collect();
    let guessed: Vec<_> = guesses
        .iter()
        .filter_map(|at| match &entry.code[*at].op {
            Op::Ld(a) => Some((place(a.addr.base), a.addr.offset, a.size)),
            _ => None,
        })
        .collect();
    let is_retried =
        |op: &Op| swaps(op).is_some_and(|(addr, size)| guessed.contains(&(place(addr.base), addr.offset, size)));
    let retried = (0..entry.code.len()).filter(|i| is_retried(&entry.code[*i].op)).collect();
    for at in guesses {
        if let Op::Ld(access) = &mut entry.code[at].op {
            access.order.strength = Strength::Wide;
            access.order.guess = true;
        }
    }
    retried
}
