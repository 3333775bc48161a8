//! The statements of a body (PTX 4.3, 9.1): declarations, labels, instructions and their operands as written.
//!
//! No recursion but for vectors and lists of operands, whose depth is one, and constant expressions ([`super::constant`]).

use super::constant::Value;
use super::cursor::Parser;
use super::error::Result;
use super::lex::Pos;
use super::lex::Tok;
use super::raw::{RawArg, RawInst, RawReg, RawStmt};

impl<'a> Parser<'a> {
    /// Statements up to the brace that closes the kernel.
    pub(super) fn body(&mut self) -> Result<Vec<RawStmt<'a>>> {
        let mut out = Vec::new();
        let mut depth = 0u32;
        loop {
            let pos = self.pos();
            match self.peek() {
                Tok::Punct(b'{') => {
                    self.bump();
                    depth += 1;
                    out.push(RawStmt::Open);
                }
                Tok::Punct(b'}') => {
                    self.bump();
                    if depth == 0 {
                        return Ok(out);
                    }
                    depth -= 1;
                    out.push(RawStmt::Close);
                }
                Tok::Dot("reg") => self.registers(&mut out)?,
                Tok::Dot("shared" | "local" | "global" | "const" | "param" | "attribute") => {
                    out.extend(self.variables(false)?.into_iter().map(RawStmt::Var));
                }
                Tok::Dot("loc") => self.line_info()?,
                Tok::Dot("pragma") => self.pragma()?,
                Tok::Dot(word) => return Err(pos.limit(format!("unknown directive `.{word}` in a body"))),
                Tok::Name(name) if self.toks[self.at + 1].0 == Tok::Punct(b':') => {
                    self.bump();
                    self.bump();
                    if self.eat_dot("branchtargets") {
                        let targets = self.targets()?;
                        out.push(RawStmt::Targets(name, targets, pos));
                    } else if self.eat_dot("callprototype") {
                        self.prototype()?;
                    } else if self.eat_dot("calltargets") {
                        self.call_targets()?;
                    } else {
                        out.push(RawStmt::Label(name, pos));
                    }
                }
                Tok::Name(_) | Tok::Punct(b'@') => {
                    let inst = self.instruction()?;
                    out.push(RawStmt::Inst(inst));
                }
                _ => return Err(self.expected("a statement")),
            }
        }
    }

    /// The labels of `.branchtargets`.
    fn targets(&mut self) -> Result<Vec<(&'a str, Pos)>> {
        let mut out = Vec::new();
        loop {
            let pos = self.pos();
            out.push((self.name("a label")?, pos));
            if !self.eat(b',') {
                self.expect(b';')?;
                return Ok(out);
            }
        }
    }

    fn registers(&mut self, out: &mut Vec<RawStmt<'a>>) -> Result<()> {
        self.bump();
        let pos = self.pos();
        let elements = self.elements();
        let ty = self.ty()?;
        if elements > 1 && !(1..=16).contains(&(elements * ty.bytes())) {
            let what = if ty.bytes() == 0 { "predicates make no vector" } else { "a vector has at most 16 bytes" };
            return Err(pos.error(what));
        }
        loop {
            let pos = self.pos();
            let name = self.name("a register name")?;
            let mut count = None;
            if self.eat(b'<') {
                count = Some(self.int32()?);
                self.expect(b'>')?;
            }
            out.push(RawStmt::Reg(RawReg { ty, elements, name, count, pos }));
            if !self.eat(b',') {
                return self.expect(b';');
            }
        }
    }

    fn instruction(&mut self) -> Result<RawInst<'a>> {
        let pos = self.pos();
        let mut guard = None;
        if self.eat(b'@') {
            let negate = self.eat(b'!');
            let at = self.pos();
            guard = Some((self.name("a predicate")?, negate, at));
        }
        let op = self.name("an opcode")?;
        let mut words = Vec::new();
        while let Tok::Dot(word) = self.peek() {
            self.bump();
            words.push(word);
        }
        let mut args = Vec::new();
        if !self.eat(b';') {
            loop {
                args.push(self.operand(op == "call")?);
                if !self.eat(b',') {
                    self.expect(b';')?;
                    break;
                }
            }
        }
        let end = self.toks[self.at.saturating_sub(1)].1;
        Ok(RawInst { guard, op, words, args, pos, end, loc: self.loc })
    }

    /// `lists`: whether parentheses hold operands, as those of a call do, and not a constant expression.
    fn operand(&mut self, lists: bool) -> Result<RawArg<'a>> {
        let pos = self.pos();
        if self.eat(b'{') {
            let mut items = Vec::new();
            loop {
                items.push(self.simple()?);
                if !self.eat(b',') {
                    self.expect(b'}')?;
                    return Ok(RawArg::Vector(items, pos));
                }
            }
        }
        if lists && self.eat(b'(') {
            let mut items = Vec::new();
            while !self.eat(b')') {
                if !items.is_empty() {
                    self.expect(b',')?;
                }
                items.push(self.simple()?);
            }
            return Ok(RawArg::List(items, pos));
        }
        if self.eat(b'[') {
            let base = match self.peek() {
                Tok::Name(name) if !self.at_constant() => {
                    self.bump();
                    Some(name)
                }
                _ => None,
            };
            // A negative offset is written `+-4`; the assembler takes no `-4` after a name.
            let offset = if base.is_some() && !self.eat(b'+') { 0 } else { self.integer()? as i64 };
            if let Some(map) = base
                && self.eat(b',')
            {
                self.expect(b'{')?;
                let mut at = vec![self.simple()?];
                while self.eat(b',') {
                    at.push(self.simple()?);
                }
                self.expect(b'}')?;
                self.expect(b']')?;
                return Ok(RawArg::Tensor(map, offset, at, pos));
            }
            self.expect(b']')?;
            return Ok(RawArg::Memory(base, offset, pos));
        }
        let first = self.simple()?;
        if !matches!(first, RawArg::Dotted(..)) && self.eat(b'|') {
            let second = self.simple()?;
            return Ok(RawArg::Pair(Box::new(first), Box::new(second), pos));
        }
        Ok(first)
    }

    fn simple(&mut self) -> Result<RawArg<'a>> {
        let pos = self.pos();
        if self.at_constant() {
            return Ok(match self.constant()? {
                Value::Signed(v) => RawArg::Int(v as u64, pos),
                Value::Unsigned(v) => RawArg::Int(v, pos),
                Value::Float(v) => RawArg::F64(v.to_bits(), pos),
            });
        }
        match self.bump() {
            Tok::Punct(b'!') => Ok(RawArg::Not(self.name("a predicate")?, pos)),
            Tok::Punct(b'-') => match self.bump() {
                Tok::Name(name) => {
                    let field = if let Tok::Dot(field) = self.peek() { field } else { "" };
                    if !field.is_empty() {
                        self.bump();
                    }
                    Ok(RawArg::Negated(name, field, pos))
                }
                other => Err(pos.error(format!("expected a number, found {}", other.show()))),
            },
            Tok::F32(v) => Ok(RawArg::F32(v, pos)),
            Tok::Name("_") => Ok(RawArg::Sink(pos)),
            Tok::Name(name) => match self.peek() {
                Tok::Dot(field) => {
                    self.bump();
                    Ok(RawArg::Dotted(name, field, pos))
                }
                Tok::Punct(b'+') => {
                    self.bump();
                    Ok(RawArg::Sum(name, self.integer()? as i64, pos))
                }
                _ => Ok(RawArg::Name(name, pos)),
            },
            other => Err(pos.error(format!("expected an operand, found {}", other.show()))),
        }
    }
}
