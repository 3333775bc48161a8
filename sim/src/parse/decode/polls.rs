//! Loads that wait for others: strong ones in a loop that writes nothing to memory. What a lane reads there it reads again until
//! it likes it, and it does not matter what is there at first.

use crate::program::{Entry, Op};

/// Marks them.
pub(super) fn mark(entry: &mut Entry) {
    let strong = |op: &Op| matches!(op, Op::Ld(access) if access.order.strength.is_strong());
    if !entry.code.iter().any(|i| strong(&i.op)) {
        return;
    }
    let writes = |op: &Op| matches!(op, Op::St(_) | Op::StMatrix { .. } | Op::Atom(_) | Op::CpAsync(_));
    let loops: Vec<(usize, usize)> = entry
        .code
        .iter()
        .enumerate()
        .filter_map(|(at, inst)| match inst.op {
            Op::Bra { target, .. } if target as usize <= at => Some((target as usize, at)),
            _ => None,
        })
        .filter(|&(from, to)| !entry.code[from..=to].iter().any(|i| writes(&i.op)))
        .collect();
    for (at, inst) in entry.code.iter_mut().enumerate() {
        if let Op::Ld(access) = &mut inst.op {
            access.order.polls = loops.iter().any(|&(from, to)| (from..=to).contains(&at));
        }
    }
}
