//! Loop counters, and the code in front of and after a loop's body.

use super::ranged_ints::{Int, fits32};
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
    /// 32 bits, which also hold the index after the last iteration.
    Narrow,
    /// 32 bits, which hold every index of the loop, but not the index after the last iteration.
    Exact,
    /// 64 bits.
    Wide,
}

/// How a loop proceeds from one iteration to the next.
pub(super) struct Trips {
    pub(super) counter: Reg,
    /// The index in the loop's body.
    pub(super) index: Int,
    pub(super) width: Width,
    pub(super) start: Int,
    pub(super) end: Int,
    /// The step.
    pub(super) every: i64,
    /// Labels of the body, and after the loop.
    pub(super) head: Label,
    pub(super) skip: Label,
    /// Whether all threads execute the same iterations.
    pub(super) uniform: bool,
    /// The predicates of a `while` condition at the entry and at the end of the body; `None`: the index alone decides.
    pub(super) while_: Option<(Reg, Reg)>,
    /// The next index from the tile counter (`next .. from`).
    pub(super) next_tile: Option<Reg>,
}

impl Lower<'_> {
    /// Start, end and width of a loop's counter; `None`: 64 bits may not suffice.
    pub(super) fn width_of_loop(&mut self, start: Int, end: Int, step: i64) -> Option<(Int, Int, Width)> {
        let step = i128::from(step);
        let narrow = |x: Int| x.lo >= i128::from(i32::MIN) && x.hi + step <= i128::from(i32::MAX);
        // A loop that has an iteration starts below its end.
        let first = if narrow(start) { start } else { self.int_op(Op::Min, start, end).unwrap_or(start) };
        if narrow(first) && narrow(end) {
            return Some((first, end, Width::Narrow));
        }
        // A loop that has none ends at its start.
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

    /// Closes a loop whose body is in the innermost frame; the entry code is in the frame around it.
    pub(super) fn close_loop(&mut self, state: Option<LoopState>, trips: Trips) {
        let Trips { counter, index, width, start, end, every, head, skip, uniform, while_, next_tile: drawn } = trips;
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
            // Only its condition ends the loop.
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
        // The entry test follows everything that the body hoisted in front of the loop, so that later code may share
        // it.
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
