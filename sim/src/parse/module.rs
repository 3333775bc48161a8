//! Modules and their directives (PTX 4.3, 5, 11): tokens to a [`RawModule`]. Bodies are in [`super::statement`].
//!
//! Two tokens of lookahead, no recursion but in constant expressions, whose depth is bounded. What carries no meaning for execution
//! (`.loc`, `.pragma`, debug sections) is read and dropped by name; any other directive is an error.

use super::ParseError;
use super::lex::{Pos, Tok, lex};
use super::raw::{RawEntry, RawFormal, RawFunc, RawModule, RawReg};
use super::table::needs;
use crate::program::types::Ty;

pub(super) struct Parser<'a> {
    pub(super) toks: Vec<(Tok<'a>, Pos)>,
    pub(super) at: usize,
    /// The last `.loc`.
    pub(super) loc: (u32, u32),
}

pub(super) type Result<T> = std::result::Result<T, ParseError>;

/// Reads a whole module.
pub(crate) fn parse_module(text: &str) -> Result<RawModule<'_>> {
    let mut p = Parser { toks: lex(text)?, at: 0, loc: (0, 0) };
    p.module()
}

impl<'a> Parser<'a> {
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

    /// A constant expression that is an integer, as its bits.
    pub(super) fn integer(&mut self) -> Result<u64> {
        let pos = self.pos();
        self.constant()?.integer(pos)
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

    fn module(&mut self) -> Result<RawModule<'a>> {
        let mut module = RawModule::default();
        loop {
            let pos = self.pos();
            let word = match self.peek() {
                Tok::End => break,
                Tok::Dot(word) => word,
                _ => return Err(self.expected("a directive")),
            };
            match word {
                "version" => {
                    self.bump();
                    // The lexer reads `6.4` as a decimal float.
                    let v = match self.bump() {
                        Tok::F64(bits) => f64::from_bits(bits),
                        other => return Err(pos.error(format!("expected a version, found {}", other.show()))),
                    };
                    let tenths = (v * 10.0).round();
                    let version = ((tenths / 10.0) as u32, (tenths % 10.0) as u32);
                    if (v * 10.0 - tenths).abs() > 1e-6 || !needs::exists(version) {
                        let (major, minor) = needs::NEWEST;
                        return Err(pos.error(format!("no such PTX version: {v}; the newest known is {major}.{minor}")));
                    }
                    module.version = version;
                }
                "target" => {
                    self.bump();
                    module.target = self.name("a target")?;
                    while self.eat(b',') {
                        let pos = self.pos();
                        let option = self.name("a target option")?;
                        if !matches!(option, "debug" | "texmode_independent" | "texmode_unified") {
                            return Err(pos.error(format!("unknown target option `{option}`")));
                        }
                    }
                }
                "address_size" => {
                    self.bump();
                    if self.int()? != 64 {
                        return Err(pos.error("only 64-bit addresses are supported"));
                    }
                }
                "file" => {
                    self.bump();
                    let n = self.int32()?;
                    let Tok::Str(name) = self.bump() else { return Err(pos.error("expected a file name")) };
                    while self.eat(b',') {
                        self.int()?;
                    }
                    module.files.push((n, name));
                }
                "section" => self.section()?,
                "alias" => {
                    let alias = self.alias()?;
                    module.aliases.push(alias);
                }
                "loc" => self.line_info()?,
                "pragma" => self.pragma()?,
                "entry" | "func" | "visible" | "weak" | "extern" | "common" | "global" | "const" | "shared"
                | "attribute" => {
                    let (mut external, mut common) = (false, false);
                    loop {
                        if self.eat_dot("extern") {
                            external = true;
                        } else if self.eat_dot("common") {
                            common = true;
                        } else if !(self.eat_dot("visible") || self.eat_dot("weak")) {
                            break;
                        }
                    }
                    if common {
                        module.vars.extend(self.common(external)?);
                    } else if self.eat_dot("entry") {
                        let entry = self.entry()?;
                        module.entries.push(entry);
                    } else if self.eat_dot("func") {
                        let func = self.func()?;
                        module.funcs.push(func);
                    } else {
                        let vars = self.variables(external)?;
                        module.vars.extend(vars);
                    }
                }
                _ => return Err(pos.limit(format!("unknown directive `.{word}`"))),
            }
        }
        if module.version == (0, 0) || module.target.is_empty() {
            return Err(Pos { line: 1, col: 1 }.error("the module lacks `.version` or `.target`"));
        }
        Ok(module)
    }

    /// `.section name { ... }`: debug data, no meaning for execution.
    fn section(&mut self) -> Result<()> {
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

    fn entry(&mut self) -> Result<RawEntry<'a>> {
        let pos = self.pos();
        let name = self.name("a kernel name")?;
        let mut entry = RawEntry {
            name,
            params: Vec::new(),
            max_threads: None,
            required_threads: None,
            min_blocks: None,
            max_registers: None,
            cluster: None,
            explicit_cluster: false,
            max_cluster_rank: None,
            body: vec![],
            pos,
        };
        if self.eat(b'(') && !self.eat(b')') {
            loop {
                if !self.eat_dot("param") {
                    return Err(self.expected("`.param`"));
                }
                let var = self.parameter()?;
                entry.params.push(var);
                if !self.eat(b',') {
                    self.expect(b')')?;
                    break;
                }
            }
        }
        loop {
            let pos = self.pos();
            match self.peek() {
                Tok::Dot("maxntid") => {
                    self.bump();
                    entry.max_threads = Some(self.triple()?);
                }
                Tok::Dot("reqntid") => {
                    self.bump();
                    entry.required_threads = Some(self.triple()?);
                }
                Tok::Dot("maxnctapersm") => {
                    self.bump();
                    self.int()?;
                }
                Tok::Dot("minnctapersm") => {
                    self.bump();
                    entry.min_blocks = Some(self.int32()?);
                }
                Tok::Dot("maxnreg") => {
                    self.bump();
                    entry.max_registers = Some(self.int32()?);
                }
                Tok::Dot("reqnctapercluster") => {
                    self.bump();
                    entry.cluster = Some(self.triple()?);
                }
                Tok::Dot("explicitcluster") => {
                    self.bump();
                    entry.explicit_cluster = true;
                }
                Tok::Dot("maxclusterrank") => {
                    self.bump();
                    entry.max_cluster_rank = Some(self.int32()?);
                }
                Tok::Dot("pragma") => self.pragma()?,
                Tok::Punct(b'{') => break,
                _ => return Err(pos.error(format!("expected the body of `{name}`, found {}", self.peek().show()))),
            }
            if entry.max_threads.is_some() && entry.required_threads.is_some() {
                return Err(pos.error("a kernel has `.maxntid` or `.reqntid`, not both"));
            }
            if entry.cluster.is_some() && entry.max_cluster_rank.is_some() {
                return Err(pos.error("a kernel has `.reqnctapercluster` or `.maxclusterrank`, not both"));
            }
        }
        self.bump();
        entry.body = self.body()?;
        Ok(entry)
    }

    /// `.func (results) name (params) directives { body }`, or `;` instead of a body.
    fn func(&mut self) -> Result<RawFunc<'a>> {
        self.attributes(None)?;
        let results = if self.is(b'(') { self.formals()? } else { Vec::new() };
        let pos = self.pos();
        let name = self.name("a function name")?;
        let params = if self.is(b'(') { self.formals()? } else { Vec::new() };
        let mut noreturn = false;
        loop {
            match self.peek() {
                Tok::Dot("noreturn") => {
                    self.bump();
                    noreturn = true;
                }
                Tok::Dot("pragma") => self.pragma()?,
                Tok::Punct(b';') => {
                    self.bump();
                    return Ok(RawFunc { name, results, params, noreturn, body: None, pos });
                }
                Tok::Punct(b'{') => {
                    self.bump();
                    let body = Some(self.body()?);
                    return Ok(RawFunc { name, results, params, noreturn, body, pos });
                }
                _ => return Err(self.expected(&format!("the body of `{name}` or `;`"))),
            }
        }
    }

    /// `(.param .b32 a, .reg .b32 b)`.
    pub(super) fn formals(&mut self) -> Result<Vec<RawFormal<'a>>> {
        self.expect(b'(')?;
        let mut out = Vec::new();
        if self.eat(b')') {
            return Ok(out);
        }
        loop {
            if self.eat_dot("param") {
                out.push(RawFormal::Var(self.parameter()?));
            } else if self.eat_dot("reg") {
                let ty = self.ty()?;
                let pos = self.pos();
                let name = self.name("a register name")?;
                out.push(RawFormal::Reg(RawReg { ty, elements: 1, name, count: None, pos }));
            } else {
                return Err(self.expected("`.param` or `.reg`"));
            }
            if !self.eat(b',') {
                self.expect(b')')?;
                return Ok(out);
            }
        }
    }

    /// Threads along up to three axes.
    fn triple(&mut self) -> Result<[u32; 3]> {
        let pos = self.pos();
        let mut out = [self.int32()?, 1, 1];
        for slot in out.iter_mut().skip(1) {
            if !self.eat(b',') {
                break;
            }
            *slot = self.int32()?;
        }
        if out.contains(&0) {
            return Err(pos.error("a block has at least one thread along every axis"));
        }
        Ok(out)
    }
}
