//! Names, labels and calls: a [`RawModule`] to a [`Program`].
//!
//! A register gets its slot when it is first mentioned, so declarations cost nothing. Each instruction is looked up in
//! the table; a row whose modifiers match and whose operands resolve says what the instruction does. A called function
//! stands where it is called, with registers, stack and labels of its own (see [`call`]), so that a kernel is one piece of
//! code.

mod call;
mod copies;
mod guesses;
mod module;
mod names;
mod operand;
mod polls;
mod shared;

use super::ParseError;
use super::lex::Pos;
use super::raw::{RawAddress, RawEntry, RawFunc, RawInst, RawModule, RawStmt, RawValue, RawVar};
use super::table::needs::{self, Need};
use super::table::{self, Mods, limits, order};
use crate::program::types::{R, Space, Spot, TRUE};
use crate::program::{Bank, Entry, Inst, Mention, ModuleVar, Op, Placed, Program};
use module::{place, variables};
use names::{Reg, Scope, Var};
use shared::SharedLayout;
use std::collections::HashMap;

pub(crate) use module::decode;
pub(crate) use operand::Arg;

type Result<T> = std::result::Result<T, ParseError>;

/// Upper limits of one module, so that hostile text cannot ask for much memory.
const MAX_INSTS: usize = 1 << 18;
const MAX_SHARED: u64 = 1 << 20;
/// Shared variables of a kernel: what any device has without asking for more at the launch.
const MAX_STATIC_SHARED: u64 = 48 << 10;
const MAX_LOCAL: u64 = 1 << 20;
/// Parameters of a kernel, from PTX 8.1 on and before.
const MAX_PARAM: u64 = 32_764;
const MAX_PARAM_BEFORE: u64 = 4352;
const MAX_CONST: u64 = 64 << 10;
const MAX_GLOBAL: u64 = 1 << 30;

/// State while one kernel is decoded.
pub(crate) struct Cx<'a, 'm> {
    module: &'m HashMap<&'a str, Var>,
    funcs: &'m HashMap<&'a str, &'m RawFunc<'a>>,
    kernels: &'m [RawEntry<'a>],
    /// Variables of bodies that exist once, whoever runs the body: where they are, by the place of their declaration.
    statics: HashMap<Pos, u64>,
    /// Names of dynamic shared memory.
    dynamic: HashMap<&'a str, u64>,
    scopes: Vec<Scope<'a>>,
    next_scope: u32,
    /// Labels of a scope, as indices into `label_at`.
    labels: HashMap<(u32, &'a str), u32>,
    /// Instructions that labels stand at.
    label_at: Vec<u32>,
    targets: HashMap<(u32, &'a str), Vec<u32>>,
    slots: HashMap<(u32, u32), R>,
    decls: u32,
    /// Their names and elements, by number from 1 on.
    declared: Vec<(&'a str, u32)>,
    c32: HashMap<u32, R>,
    c64: HashMap<u64, R>,
    entry: Entry,
    names: HashMap<String, u32>,
    carry: Option<R>,
    /// 64-bit slots with addresses of shared variables.
    wide_shared: HashMap<u64, R>,
    /// Registers that the instruction at hand names, and whether the operand being resolved is a destination.
    mentioned: Vec<Mention>,
    written: bool,
    /// Those that asynchronous products name.
    wgmma_registers: Vec<R>,
    opcode: &'a str,
    /// Whether the last address names a parameter of a call, which is in the stack of its thread.
    stack_param: bool,
    /// What `ret` branches to, in a function.
    returns: Vec<u32>,
    /// Version and target of the module.
    has: Need,
    /// What the operands of the instruction at hand need, beyond what its words do.
    need: Need,
}

impl<'a> Cx<'a, '_> {
    fn define(&mut self, var: &RawVar<'a>, at: Var) -> Result<()> {
        if self.scope().regs.contains_key(var.name) {
            return Err(var.pos.error(format!("`{}` is the name of a register already", var.name)));
        }
        match self.scope().vars.insert(var.name, at) {
            None => Ok(()),
            Some(_) => Err(var.pos.error(format!("`{}` is defined twice", var.name))),
        }
    }

    fn scope(&mut self) -> &mut Scope<'a> {
        if self.scopes.is_empty() {
            self.scopes.push(Scope::default());
        }
        self.scopes.last_mut().expect("there is one")
    }

    /// Room in the stack of a thread.
    fn stack(&mut self, var: &RawVar<'a>) -> Result<u64> {
        place(&mut self.entry.local_bytes, var, MAX_LOCAL)
    }

    fn new_label(&mut self) -> u32 {
        self.label_at.push(0);
        u32::try_from(self.label_at.len() - 1).unwrap_or(u32::MAX)
    }

    fn land(&mut self, label: u32) {
        self.label_at[label as usize] = u32::try_from(self.entry.code.len()).unwrap_or(u32::MAX);
    }

    /// Gives the labels of a body to its scopes; the number of the first scope.
    fn collect(&mut self, body: &[RawStmt<'a>]) -> Result<u32> {
        let base = self.next_scope;
        let mut stack = vec![base];
        self.next_scope += 1;
        for stmt in body {
            match stmt {
                RawStmt::Open => {
                    stack.push(self.next_scope);
                    self.next_scope += 1;
                }
                RawStmt::Close => {
                    stack.pop();
                }
                RawStmt::Label(name, pos) => {
                    let scope = stack.last().copied().unwrap_or(base);
                    let label = self.new_label();
                    if self.labels.insert((scope, name), label).is_some() {
                        return Err(pos.error(format!("label `{name}` is defined twice")));
                    }
                }
                _ => {}
            }
        }
        Ok(base)
    }

    /// The statements of a body, in the scope that is open.
    fn body(&mut self, body: &[RawStmt<'a>]) -> Result<()> {
        let base = self.collect(body)?;
        let mut next = base;
        self.scope().id = base;
        for stmt in body {
            match stmt {
                RawStmt::Open => {
                    next += 1;
                    self.scopes.push(Scope { id: next, ..Scope::default() });
                }
                RawStmt::Close => {
                    self.scopes.pop();
                }
                RawStmt::Label(name, pos) => {
                    let id = self.scope().id;
                    match self.labels.get(&(id, name)) {
                        Some(&label) => self.land(label),
                        None => return Err(pos.error(format!("unknown label `{name}`"))),
                    }
                }
                RawStmt::Targets(name, targets, pos) => {
                    let found: Result<Vec<u32>> = targets.iter().map(|(l, p)| self.label(l, *p)).collect();
                    let id = self.scope().id;
                    if self.targets.insert((id, name), found?).is_some() {
                        return Err(pos.error(format!("label `{name}` is defined twice")));
                    }
                }
                RawStmt::Reg(reg) => {
                    self.decls += 1;
                    let id = self.decls;
                    let declared = Reg { ty: reg.ty, elements: reg.elements, count: reg.count, id };
                    self.declared.push((reg.name, reg.elements));
                    let scope = self.scope();
                    if scope.declares(reg) {
                        return Err(reg.pos.error(format!("register `{}` is declared twice", reg.name)));
                    }
                    scope.plain_numbered |= reg.count.is_none() && reg.name.ends_with(|c: char| c.is_ascii_digit());
                    scope.regs.insert(reg.name, declared);
                }
                RawStmt::Var(var) => {
                    let at = match var.space {
                        Space::Local => Var { at: self.stack(var)?, space: Space::Local, stack: None },
                        Space::Param => {
                            Var { at: self.stack(var)?, space: Space::Param, stack: Some(var.bytes.unwrap_or(0)) }
                        }
                        space => match self.statics.get(&var.pos) {
                            Some(&at) => Var { at, space, stack: None },
                            None => return Err(var.pos.error(format!("`{}` has no place", var.name))),
                        },
                    };
                    self.define(var, at)?;
                }
                RawStmt::Inst(inst) if inst.op == "call" => self.call(inst)?,
                RawStmt::Inst(inst) => self.inst(inst)?,
            }
        }
        Ok(())
    }

    fn name(&mut self, name: String) -> u32 {
        if let Some(&n) = self.names.get(&name) {
            return n;
        }
        let n = u32::try_from(self.entry.names.len()).unwrap_or(u32::MAX);
        self.names.insert(name.clone(), n);
        self.entry.names.push(name);
        n
    }

    fn emit(&mut self, op: Op, (guard, flip): (R, u32), name: String, spot: Spot) -> Result<()> {
        let Spot { line, columns, loc } = spot;
        if self.entry.code.len() >= MAX_INSTS {
            return Err(Pos { line, col: 1 }.limit("the kernel has too many instructions"));
        }
        let name = self.name(name);
        self.entry.code.push(Inst { op, guard, flip, line, loc, name });
        self.entry.columns.push(columns);
        self.entry.mentions.push(std::mem::take(&mut self.mentioned).into_boxed_slice());
        Ok(())
    }

    fn guard(&mut self, raw: &RawInst<'a>) -> Result<(R, u32)> {
        Ok(match raw.guard {
            None => (TRUE, 0),
            Some((name, negate, pos)) => (self.pred(name, pos)?, if negate { u32::MAX } else { 0 }),
        })
    }

    fn inst(&mut self, raw: &RawInst<'a>) -> Result<()> {
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

    /// Says that the kernel has asynchronous products, whose registers are watched.
    pub(crate) fn uses_wgmma(&mut self) {
        let words = self.mentioned.iter().filter(|m| m.bank == Bank::Words);
        self.wgmma_registers.extend(words.map(|m| m.slot));
    }

    /// Whether a kernel or a function has this name.
    fn is_code(&self, name: &str) -> bool {
        self.funcs.contains_key(name) || self.kernels.iter().any(|k| k.name == name)
    }

    /// Whether a special register is kept in this slot.
    pub(crate) fn is_special(&self, slot: R) -> bool {
        self.entry.specials.iter().any(|(r, _)| *r == slot)
    }

    /// The opcode being decoded.
    pub(crate) fn opcode(&self) -> &'a str {
        self.opcode
    }

    /// 80 for `sm_80`.
    pub(crate) fn target(&self) -> u32 {
        self.has.target
    }

    /// Says that the operands at hand need this version and target.
    pub(crate) fn require(&mut self, version: (u32, u32), target: u32) {
        self.need = self.need.and(Need { version, target, specific: false });
    }

    /// Whether the address of the instruction being decoded names a parameter of a call.
    pub(crate) fn stack_param(&self) -> bool {
        self.stack_param
    }
}
