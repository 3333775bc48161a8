//! An instruction: the row of the table whose modifiers and operands fit.

use super::context::Cx;
use crate::parse::error::Result;
use crate::parse::modifiers::Mods;
use crate::parse::raw::RawInst;
use crate::parse::table::{self, limits, needs, order};
use crate::program::Op;
use crate::program::types::{R, TRUE};

impl<'a> Cx<'a, '_> {
    pub(super) fn guard(&mut self, raw: &RawInst<'a>) -> Result<(R, u32)> {
        Ok(match raw.guard {
            None => (TRUE, 0),
            Some((name, negate, pos)) => (self.pred(name, pos)?, if negate { u32::MAX } else { 0 }),
        })
    }

    pub(super) fn inst(&mut self, raw: &RawInst<'a>) -> Result<()> {
        self.mentioned.clear();
        let guard = self.guard(raw)?;
        let mut op = self.op(raw)?;
        if let (Op::Exit, "ret", Some(&target)) = (&op, raw.op, self.returns.last()) {
            op = Op::Bra { target, uni: raw.words.contains(&"uni") };
        }
        self.emit(op, guard, raw.name(), raw.spot())
    }

    fn op(&mut self, raw: &RawInst<'a>) -> Result<Op> {
        self.opcode = raw.op;
        let mut known = false;
        let mut furthest = 0;
        let mut failure = None;
        let guards = self.mentioned.len();
        for row in table::rows(raw.op) {
            known = true;
            let Some(words) = order::arrange(raw.op, row.mods, &raw.words) else {
                furthest = furthest.max(order::reach(row.mods, &raw.words));
                continue;
            };
            let mods = Mods { words: &words, pos: raw.pos };
            self.stack_param = false;
            self.mentioned.truncate(guards);
            self.need = needs::BASE;
            match self.args(row.args, &mods, raw).and_then(|args| (row.sem)(self, &mods, &args)) {
                Ok(op) => {
                    let need = needs::of(raw.op, &words, self.has.target).and(self.need);
                    self.has.check(need, raw.op, &words, raw.pos)?;
                    return Ok(op);
                }
                Err(e) => failure = Some(failure.unwrap_or(e)),
            }
        }
        if let Some(failure) = failure {
            return Err(failure);
        }
        let shown = raw.words.iter().map(|w| format!(".{w}")).collect::<String>();
        if let Some(why) = limits::of(raw.op, &raw.words) {
            return Err(raw.pos.limit(format!("`{}{shown}` cannot be executed here: {why}", raw.op)));
        }
        Err(raw.pos.limit(match raw.words.get(furthest) {
            _ if !known => format!("unknown instruction `{}{shown}`", raw.op),
            Some(word) => format!("`.{word}` does not fit here: no such form of `{}{shown}`", raw.op),
            None => format!("`{}{shown}` lacks a modifier", raw.op),
        }))
    }
}
