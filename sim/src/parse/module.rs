//! Modules and their directives (PTX 4.3, 5, 11): tokens to a [`RawModule`]. Bodies are in [`super::statement`].
//!
//! Two tokens of lookahead, no recursion but in constant expressions, whose depth is bounded. What carries no meaning for execution
//! (`.loc`, `.pragma`, debug sections) is read and dropped by name; any other directive is an error.

use super::cursor::Parser;
use super::error::Result;
use super::lex::{Pos, Tok};
use super::raw::{RawEntry, RawFunc, RawModule};
use super::table::needs;

/// Reads a whole module.
pub(crate) fn parse_module(text: &str) -> Result<RawModule<'_>> {
    Parser::new(text)?.module()
}

impl<'a> Parser<'a> {
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
