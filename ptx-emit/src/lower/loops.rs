//! What stands around the body of a loop.

use super::ints::Int;
use super::state::Lower;
use super::windows::LoopState;
use crate::inst::{Class, Guard, Label, Operand, Reg};
use crate::module::Item;
use crate::ops::Op as P;
use tilec_ir::ops::Op;

/// How a loop goes from one trip to the next.
pub(super) struct Trips {
    pub(super) counter: Reg,
    pub(super) start: Int,
    pub(super) end: Int,
    /// What the counter grows by.
    pub(super) every: i64,
    /// Labels of the body, and behind the loop.
    pub(super) head: Label,
    pub(super) skip: Label,
    /// Whether all threads make the same trips.
    pub(super) uniform: bool,
}

impl Lower<'_> {
    /// The end of a loop whose body stands in the innermost frame, and what leads into it in the one around that.
    pub(super) fn close_loop(&mut self, state: Option<LoopState>, trips: Trips) {
        let Trips { counter, start, end, every, head, skip, uniform } = trips;
        let branch = if uniform { P::BraUni } else { P::Bra };
        for (_, reg, advance) in state.map_or_else(Vec::new, |l| l.induced) {
            self.emit.push(P::AddS64, [reg.into(), reg.into(), advance]);
        }
        self.emit.push(P::AddS32, [counter.into(), counter.into(), Operand::Imm(every)]);
        let limit = self.as32(end);
        let more = self.emit.reg(Class::Pred);
        self.emit.push(P::SetpLtS32, [more.into(), counter.into(), limit]);
        self.emit.push_if(Some(Guard { reg: more, negated: false }), branch, [head.into()]);
        let inner = self.emit.pop_frame();
        self.emit.item(Item::Label(head));
        self.emit.item(Item::Pragma("nounroll"));
        self.emit.items(inner);
        let whole = self.emit.pop_frame();
        // After everything that the body had computed in front of the loop: later code may share it.
        if start.lo >= end.hi || start.hi >= end.lo {
            let none = self.int_compare(Op::Ge, start, end);
            self.emit.push_if(Some(Guard { reg: none, negated: false }), branch, [skip.into()]);
        }
        self.emit.items(whole);
        self.emit.item(Item::Label(skip));
    }
}
