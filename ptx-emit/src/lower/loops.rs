//! What is around the body of a loop.

use super::ints::{Int, fits32};
use super::state::Lower;
use super::windows::LoopState;
use crate::inst::{Class, Guard, Label, Operand, Reg};
use crate::module::Item;
use crate::ops::Op as P;
use tilec_ir::kernel::ENDLESS;
use tilec_ir::ops::Op;

/// How wide the counter of a loop is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Width {
    /// 32 bits, which hold what the last trip makes of it, too.
    Narrow,
    /// 32 bits, which hold every index of the loop, but not what comes after the last one.
    Exact,
    /// 64 bits.
    Wide,
}

/// How a loop goes from one iteration to the next.
pub(super) struct Trips {
    pub(super) counter: Reg,
    /// The loop's index in it.
    pub(super) index: Int,
    pub(super) width: Width,
    pub(super) start: Int,
    pub(super) end: Int,
    /// What the counter grows by.
    pub(super) every: i64,
    /// Labels of the body, and after the loop.
    pub(super) head: Label,
    pub(super) skip: Label,
    /// Whether all threads make the same iterations.
    pub(super) uniform: bool,
    /// What holds where the loop is entered at all, and where it goes on; `None`: its index alone says it.
    pub(super) while_: Option<(Reg, Reg)>,
    /// What the next index is after the step, where it is drawn.
    pub(super) drawn: Option<Reg>,
}

impl Lower<'_> {
    /// Start and end of a loop as it is counted, and how wide it counts; `None`: 64 bits may not suffice.
    pub(super) fn width_of_loop(&mut self, start: Int, end: Int, step: i64) -> Option<(Int, Int, Width)> {
        let step = i128::from(step);
        let narrow = |x: Int| x.lo >= i128::from(i32::MIN) && x.hi + step <= i128::from(i32::MAX);
        // Where the loop has an iteration it starts in front of its end.
        let first = if narrow(start) { start } else { self.int_op(Op::Min, start, end).unwrap_or(start) };
        if narrow(first) && narrow(end) {
            return Some((first, end, Width::Narrow));
        }
        // And where it has none, it ends where it starts.
        let end = self.int_op(Op::Max, start, end)?;
        let fits = |x: Int| fits32(x.lo, x.hi);
        if fits(start) && fits(end) && step <= i128::from(i32::MAX) {
            return Some((start, end, Width::Exact));
        }
        (start.lo - step >= i128::from(i64::MIN) && end.hi + step <= i128::from(i64::MAX)).then_some((
            start,
            end,
            Width::Wide,
        ))
    }

    /// The end of a loop whose body is in the innermost frame, and what leads into it in the one around that.
    pub(super) fn close_loop(&mut self, state: Option<LoopState>, trips: Trips) {
        let Trips { counter, index, width, start, end, every, head, skip, uniform, while_, drawn } = trips;
        let branch = if uniform { P::BraUni } else { P::Bra };
        for (_, reg, advance) in state.map_or_else(Vec::new, |l| l.induced) {
            self.emit.push(P::AddS64, [reg.into(), reg.into(), advance]);
        }
        let endless = end.as_const() == Some(ENDLESS);
        let more = match width {
            _ if drawn.is_some() => {
                let drawn = drawn.map_or(Operand::Imm(0), Operand::from);
                self.emit.push(P::AddS32, [counter.into(), drawn, Operand::Imm(every)]);
                let limit = self.as32(end);
                let more = self.emit.reg(Class::Pred);
                self.emit.push(P::SetpLtS32, [more.into(), counter.into(), limit]);
                Some(more)
            }
            // Its condition alone ends it.
            Width::Exact | Width::Wide if endless => {
                let add = if width == Width::Wide { P::AddS64 } else { P::AddS32 };
                self.emit.push(add, [counter.into(), counter.into(), Operand::Imm(every)]);
                None
            }
            Width::Narrow => {
                self.emit.push(P::AddS32, [counter.into(), counter.into(), Operand::Imm(every)]);
                let limit = self.as32(end);
                let more = self.emit.reg(Class::Pred);
                self.emit.push(P::SetpLtS32, [more.into(), counter.into(), limit]);
                Some(more)
            }
            Width::Exact | Width::Wide => {
                let last = self.int_op(Op::Sub, end, Int::constant(every)).expect("the step of a loop fits its index");
                let more = self.int_compare(Op::Lt, index, last);
                let add = if width == Width::Wide { P::AddS64 } else { P::AddS32 };
                self.emit.push(add, [counter.into(), counter.into(), Operand::Imm(every)]);
                Some(more)
            }
        };
        let more = match (more, while_) {
            (Some(more), Some((_, goes_on))) => self.emit.def(Class::Pred, P::AndPred, [more.into(), goes_on.into()]),
            (more, while_) => more.or(while_.map(|w| w.1)).unwrap_or_else(|| panic!("bug: a loop that does not end")),
        };
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
        if let Some((enters, _)) = while_ {
            self.emit.push_if(Some(Guard { reg: enters, negated: true }), branch, [skip.into()]);
        }
        self.emit.items(whole);
        self.emit.item(Item::Label(skip));
    }
}
