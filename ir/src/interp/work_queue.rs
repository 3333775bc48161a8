//! Loops over drawn numbers: `for tile in cta..tiles step 132 next turns from drawn`.
//!
//! The interpreter runs roles and blocks one after the other: the first block's loops draw all numbers that are no
//! block's first one. The result does not depend on which block takes which number.

use super::Numbers;
use crate::codes;
use crate::entities::Value;
use crate::interp::machine::{Binding, Fail, Machine, fail};
use crate::kernel::Next;

impl Machine<'_> {
    /// In front of a loop up to `end`.
    pub(super) fn begin_draws(&mut self, next: Next, end: i64) -> Result<(), Fail> {
        let Binding::Global(counter) = self.env[next.counter] else {
            let message = format!("`{}` is not a tensor", self.k.values[next.counter].name);
            return Err(fail(codes::ILL_FORMED, self.at, message));
        };
        let draws = self.draws.entry(next.channel).or_default();
        (draws.counter, draws.last, draws.now) = (counter, end - 1, None);
        Ok(())
    }

    /// Takes a number when a slot of `channel` is published, if the channel carries a work queue.
    pub(super) fn draw(&mut self, channel: Value) -> Result<(), Fail> {
        let Some(draws) = self.draws.get_mut(&channel) else { return Ok(()) };
        let Numbers::Floats(data) = &mut self.globals[draws.counter].data else {
            return Err(fail(codes::ILL_FORMED, self.at, "a counter is u32"));
        };
        let Some(count) = data.first_mut() else {
            return Err(fail(codes::OUT_OF_BOUNDS, self.at, "a counter without an element"));
        };
        let old = *count as i64;
        *count = if old >= draws.last { 0.0 } else { (old + 1) as f64 };
        draws.queue_numbers.push_back(old);
        draws.now = Some(old);
        Ok(())
    }

    /// Reads the number in the released slot of `channel`, if the channel carries a work queue.
    pub(super) fn receive(&mut self, channel: Value) {
        if let Some(draws) = self.draws.get_mut(&channel) {
            draws.now = draws.queue_numbers.pop_front();
        }
    }

    /// The number that the ending iteration drew or read.
    pub(super) fn next_number(&mut self, next: Next) -> Result<i64, Fail> {
        let now = self.draws.get_mut(&next.channel).and_then(|draws| draws.now.take());
        now.ok_or_else(|| {
            let message =
                format!("no number was handed over by `{}` in this iteration", self.k.values[next.channel].name);
            fail(codes::CHANNEL, self.at, message)
        })
    }
}
