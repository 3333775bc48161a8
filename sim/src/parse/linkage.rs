//! Linkage directives: `.common`, `.alias`, and those for calls through pointers (PTX 5.4.8, 7.1, 11.4.5, 11.6.4).
//! There is one module and one memory here, so most of them have no effect.

use super::cursor::Parser;
use super::error::Result;
use super::lex::{Pos, Tok};
use super::raw::{RawAlias, RawVar};

impl<'a> Parser<'a> {
    /// The variables after `.common`. Of several modules one has them, which for one module makes no difference.
    pub(super) fn common(&mut self, external: bool) -> Result<Vec<RawVar<'a>>> {
        if external || !matches!(self.peek(), Tok::Dot("global" | "attribute")) {
            return Err(self.pos().error("`.common` goes with variables of `.global` alone, and not with `.extern`"));
        }
        self.variables(false)
    }

    /// `.alias name, function;`.
    pub(super) fn alias(&mut self) -> Result<RawAlias<'a>> {
        self.bump();
        let pos = self.pos();
        let name = self.name("the name of a function")?;
        self.expect(b',')?;
        let of_pos = self.pos();
        let of = self.name("the name of a function")?;
        self.expect(b';')?;
        Ok(RawAlias { name, pos, of, of_pos })
    }

    /// `.callprototype (results) _ (params) directives;`: the signature of a call through a pointer.
    pub(super) fn prototype(&mut self) -> Result<()> {
        if self.is(b'(') {
            self.formals()?;
        }
        self.name("`_`")?;
        if self.is(b'(') {
            self.formals()?;
        }
        while self.eat_dot("noreturn") {}
        self.expect(b';')
    }

    /// `.calltargets f, g;`: the possible targets of a call through a pointer.
    pub(super) fn call_targets(&mut self) -> Result<Vec<(&'a str, Pos)>> {
        let mut out = Vec::new();
        loop {
            let pos = self.pos();
            out.push((self.name("the name of a function")?, pos));
            if !self.eat(b',') {
                self.expect(b';')?;
                return Ok(out);
            }
        }
    }
}
