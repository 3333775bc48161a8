//! The tokens of a text, one after the other.

use super::error::{ParseError, Result};
use super::lex::{Pos, Tok, lex};
use crate::program::types::Ty;

/// Two tokens of lookahead; what it reads is in the files of this folder.
pub(super) struct Parser<'a> {
    pub(super) toks: Vec<(Tok<'a>, Pos)>,
    pub(super) at: usize,
    /// The last `.loc`.
    pub(super) loc: (u32, u32),
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str) -> Result<Parser<'a>> {
        Ok(Parser { toks: lex(text)?, at: 0, loc: (0, 0) })
    }

    pub(super) fn peek(&self) -> Tok<'a> {
        self.toks[self.at].0
    }

    pub(super) fn pos(&self) -> Pos {
        self.toks[self.at].1
    }

    pub(super) fn bump(&mut self) -> Tok<'a> {
        let tok = self.peek();
        if self.at + 1 < self.toks.len() {
            self.at += 1;
        }
        tok
    }

    pub(super) fn is(&self, c: u8) -> bool {
        self.peek() == Tok::Punct(c)
    }

    pub(super) fn eat(&mut self, c: u8) -> bool {
        let found = self.is(c);
        if found {
            self.bump();
        }
        found
    }

    pub(super) fn expect(&mut self, c: u8) -> Result<()> {
        if self.eat(c) { Ok(()) } else { Err(self.expected(&format!("`{}`", char::from(c)))) }
    }

    pub(super) fn expected(&self, what: &str) -> ParseError {
        self.pos().error(format!("expected {what}, found {}", self.peek().show()))
    }

    pub(super) fn eat_dot(&mut self, word: &str) -> bool {
        let found = self.peek() == Tok::Dot(word);
        if found {
            self.bump();
        }
        found
    }

    pub(super) fn name(&mut self, what: &str) -> Result<&'a str> {
        match self.peek() {
            Tok::Name(name) => {
                self.bump();
                Ok(name)
            }
            _ => Err(self.expected(what)),
        }
    }

    pub(super) fn int(&mut self) -> Result<u64> {
        match self.peek() {
            Tok::Int(v) | Tok::Uint(v) => {
                self.bump();
                Ok(v)
            }
            _ => Err(self.expected("an integer")),
        }
    }

    pub(super) fn int32(&mut self) -> Result<u32> {
        let pos = self.pos();
        let v = self.int()?;
        u32::try_from(v).map_err(|_| pos.error(format!("{v} does not fit 32 bits")))
    }

    /// `.v2`, `.v4`: the elements of each variable or register of a declaration.
    pub(super) fn elements(&mut self) -> u32 {
        if self.eat_dot("v2") {
            2
        } else if self.eat_dot("v4") {
            4
        } else {
            1
        }
    }

    pub(super) fn ty(&mut self) -> Result<Ty> {
        if let Tok::Dot(word) = self.peek()
            && let Some(ty) = Ty::from_word(word)
        {
            self.bump();
            return Ok(ty);
        }
        Err(self.expected("a type"))
    }
}
