//! Directives without effect on execution: `.loc` is kept for messages, `.pragma` and debug sections are dropped (PTX
//! 11.3, 11.5).

use super::cursor::Parser;
use super::error::Result;
use super::lex::Tok;

impl Parser<'_> {
    /// `.section name { ... }`: debug data, no meaning for execution.
    pub(super) fn section(&mut self) -> Result<()> {
        let open = self.pos();
        self.bump();
        self.bump();
        self.expect(b'{')?;
        loop {
            match self.bump() {
                Tok::Punct(b'}') => return Ok(()),
                Tok::End => return Err(open.error("this section is never closed")),
                _ => {}
            }
        }
    }

    /// `.loc file line col [, function_name label [+ n], inlined_at file line col]`.
    pub(super) fn line_info(&mut self) -> Result<()> {
        self.bump();
        let (file, line, _) = (self.int32()?, self.int32()?, self.int32()?);
        while self.eat(b',') {
            match self.name("`function_name` or `inlined_at`")? {
                "function_name" => {
                    self.name("a label")?;
                    if self.eat(b'+') {
                        self.int()?;
                    }
                }
                _ => {
                    self.int()?;
                    self.int()?;
                    self.int()?;
                }
            }
        }
        self.loc = (file, line);
        Ok(())
    }

    pub(super) fn pragma(&mut self) -> Result<()> {
        self.bump();
        loop {
            match self.bump() {
                Tok::Str(_) => {}
                _ => return Err(self.expected("a string")),
            }
            if !self.eat(b',') {
                return self.expect(b';');
            }
        }
    }
}
