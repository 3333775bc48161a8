//! Calls (PTX 7.1, 9.7.12.5): the body of the function is where it is called.
//!
//! Arguments and results in `.param` space share the memory of the caller's variable, which is in the stack of the thread;
//! register parameters are moves. `ret` is a branch to the end of the body. A function that calls itself, and a call
//! through a pointer, are refused by name.

use super::context::Cx;
use super::scope::{Reg, Scope, Var};
use crate::parse::error::Result;
use crate::parse::lex::Pos;
use crate::parse::raw::{RawArg, RawFormal, RawFunc, RawInst, RawStmt};
use crate::program::types::{R, SINK, Space, TRUE, Ty};
use crate::program::{Access, Addr, Area, Base, Op};
use std::collections::HashMap;

/// Calls may nest this deep.
const MAX_DEPTH: usize = 48;

/// Finds the name of the function among the operands of a call.
fn callee<'a>(raw: &RawInst<'a>) -> Result<(&'a str, Pos)> {
    let mut names = raw.args.iter().filter_map(|a| match a {
        RawArg::Name(name, pos) => Some((*name, *pos)),
        _ => None,
    });
    match (names.next(), names.next()) {
        (Some(found), None) => Ok(found),
        (Some((name, pos)), Some(_)) => Err(pos.limit(format!("`{name}`: calls through a pointer are not supported"))),
        (None, _) => Err(raw.pos.error("`call` needs the name of a function")),
    }
}

/// The functions that a body calls, directly or not, callers first; an error if one calls itself.
pub(super) fn reachable<'m, 'a>(
    body: &[RawStmt<'a>],
    funcs: &HashMap<&'a str, &'m RawFunc<'a>>,
) -> Result<Vec<&'m RawFunc<'a>>> {
    let calls = |body: &[RawStmt<'a>]| -> Result<Vec<(&'a str, Pos)>> {
        let calls = body.iter().filter_map(|s| match s {
            RawStmt::Inst(inst) if inst.op == "call" => Some(callee(inst)),
            _ => None,
        });
        calls.collect()
    };
    let mut found: Vec<&'m RawFunc<'a>> = Vec::new();
    // Depth first; a function is on the path while its own calls are looked at.
    let mut path: Vec<&str> = Vec::new();
    let mut todo: Vec<Option<(&str, Pos)>> = calls(body)?.into_iter().rev().map(Some).collect();
    while let Some(next) = todo.pop() {
        let Some((name, pos)) = next else {
            path.pop();
            continue;
        };
        if path.contains(&name) {
            return Err(pos.limit(format!("`{name}` calls itself: recursion is not supported")));
        }
        let Some(func) = funcs.get(name) else { return Err(pos.error(format!("unknown function `{name}`"))) };
        if path.len() >= MAX_DEPTH {
            return Err(pos.limit(format!("calls nest deeper than {MAX_DEPTH}")));
        }
        if found.iter().any(|f| f.name == name) {
            // Seen on another path: its own calls contain no caller of it, or that would have been found then.
            continue;
        }
        found.push(func);
        path.push(name);
        todo.push(None);
        if let Some(body) = &func.body {
            todo.extend(calls(body)?.into_iter().rev().map(Some));
        }
    }
    Ok(found)
}

/// The location of a function's parameter.
#[derive(Clone, Copy)]
enum Formal {
    Stack { at: u64, bytes: u64 },
    Slot(Ty, R),
}

/// A call whose body comes next.
pub(super) struct ActiveCall<'a, 'm> {
    pub(super) body: &'m [RawStmt<'a>],
    /// Copies after the body: to the operand, from the formal result.
    back: Vec<(RawArg<'a>, Formal)>,
    /// The scopes of the caller.
    outside: Vec<Scope<'a>>,
    /// The target of `ret`, and the target for lanes that do not call.
    ret: u32,
    end: u32,
}

impl<'a, 'm> Cx<'a, 'm> {
    /// Emits a call up to the body of the function, if it has one: the body and [`Cx::leave`] come after.
    pub(super) fn enter(&mut self, raw: &RawInst<'a>) -> Result<Option<ActiveCall<'a, 'm>>> {
        if !matches!(raw.words.as_slice(), [] | ["uni"]) {
            return Err(raw.pos.error("`call` takes no modifier but `.uni`"));
        }
        let (name, pos) = callee(raw)?;
        let func = *self.funcs.get(name).ok_or_else(|| pos.error(format!("unknown function `{name}`")))?;
        let list = |arg: Option<&'_ RawArg<'a>>| match arg {
            Some(RawArg::List(items, _)) => items.clone(),
            _ => Vec::new(),
        };
        let at = raw.args.iter().position(|a| matches!(a, RawArg::Name(..))).unwrap_or(0);
        let (results, arguments) = (list(raw.args[..at].first()), list(raw.args.get(at + 1)));
        if at > 1
            || raw.args.len() > at + 2
            || results.len() != func.results.len()
            || arguments.len() != func.params.len()
        {
            let (want, got) = (func.params.len(), arguments.len());
            let (back, given) = (func.results.len(), results.len());
            let message =
                format!("`{name}` takes {want} arguments and gives {back} results, here are {got} and {given}");
            return Err(raw.pos.error(message));
        }
        let guard = self.guard(raw)?;
        let Some(body) = &func.body else {
            if matches!(name, "__assertfail" | "vprintf") {
                return self.library(raw, guard, func, &arguments, &results).map(|()| None);
            }
            if func.noreturn {
                return self.emit(Op::Trap, guard, raw.name(), raw.spot()).map(|()| None);
            }
            return Err(pos.limit(format!("`{name}` has no body here: linking is not supported")));
        };
        if self.returns.len() >= MAX_DEPTH {
            return Err(pos.limit(format!("calls nest deeper than {MAX_DEPTH}")));
        }
        let end = self.new_label();
        if raw.guard.is_some() {
            let skip = Op::Bra { target: end, uni: raw.words.contains(&"uni") };
            self.emit(skip, (guard.0, !guard.1), raw.name(), raw.spot())?;
        } else {
            self.emit(Op::Nop, guard, raw.name(), raw.spot())?;
        }
        // Operands mean what they mean to the caller; formals are defined in a scope of the function's own.
        let mut inside = Scope::default();
        for (formal, actual) in func.params.iter().zip(&arguments) {
            let to = self.formal(formal, actual, &mut inside)?;
            self.pass(raw, to, actual)?;
        }
        let mut back = Vec::new();
        for (formal, actual) in func.results.iter().zip(results) {
            let from = self.formal(formal, &actual, &mut inside)?;
            back.push((actual, from));
        }
        let outside = std::mem::replace(&mut self.scopes, vec![inside]);
        let ret = self.new_label();
        self.returns.push(ret);
        Ok(Some(ActiveCall { body, back, outside, ret, end }))
    }

    /// Ends the inlined body of a function.
    pub(super) fn leave(&mut self, raw: &RawInst<'a>, entered: ActiveCall<'a, 'm>) -> Result<()> {
        let ActiveCall { back, outside, ret, end, .. } = entered;
        self.land(ret);
        self.returns.pop();
        self.scopes = outside;
        for (actual, from) in back {
            self.give(raw, from, &actual)?;
        }
        self.land(end);
        Ok(())
    }

    /// A function that the driver links in: a failed assertion ends the launch with its message; `vprintf` prints nothing here
    /// and gives zero.
    fn library(
        &mut self,
        raw: &RawInst<'a>,
        guard: (R, u32),
        func: &RawFunc<'a>,
        arguments: &[RawArg<'a>],
        results: &[RawArg<'a>],
    ) -> Result<()> {
        let end = self.new_label();
        if raw.guard.is_some() {
            let skip = Op::Bra { target: end, uni: raw.words.contains(&"uni") };
            self.emit(skip, (guard.0, !guard.1), raw.name(), raw.spot())?;
        }
        let mut inside = Scope::default();
        let mut at = Vec::new();
        for (formal, actual) in func.params.iter().zip(arguments) {
            let to = self.formal(formal, actual, &mut inside)?;
            self.pass(raw, to, actual)?;
            if let Formal::Stack { at: place, .. } = to {
                at.push(Addr { base: Base::None, offset: place as i64 });
            }
        }
        if func.name == "vprintf" {
            for (formal, actual) in func.results.iter().zip(results) {
                let from = self.formal(formal, actual, &mut inside)?;
                let a = self.constant(false, 0, raw.pos)?;
                match from {
                    Formal::Stack { at, bytes: 4 } => self.emit_call(raw, Op::St(stack_access(at, 4, a)))?,
                    Formal::Slot(Ty::B32 | Ty::U32 | Ty::S32, d) => self.emit_call(raw, Op::Mov32 { d, a })?,
                    _ => return Err(raw.pos.error("`vprintf` gives 32 bits")),
                }
                self.give(raw, from, actual)?;
            }
            self.emit_call(raw, Op::Nop)?;
            self.land(end);
            return Ok(());
        }
        let [message, file, line, function, ..] = at.as_slice() else {
            return Err(raw.pos.error("`__assertfail` takes a message, a file, a line, a function and a size"));
        };
        let op = Op::Assert(Box::new([*message, *file, *line, *function]));
        self.emit_call(raw, op)?;
        self.land(end);
        Ok(())
    }

    /// The variable of the caller that an operand of a call names, if it is one.
    fn actual_var(&self, actual: &RawArg<'a>) -> Option<Var> {
        match actual {
            RawArg::Name(name, _) if self.find(name).is_none() => self.var(name).filter(|v| v.stack.is_some()),
            _ => None,
        }
    }

    /// Defines a formal parameter.
    fn formal(&mut self, formal: &RawFormal<'a>, actual: &RawArg<'a>, inside: &mut Scope<'a>) -> Result<Formal> {
        let twice = |name: &str, pos: Pos| pos.error(format!("`{name}` is defined twice"));
        match formal {
            RawFormal::Var(var) => {
                let bytes = var.bytes.unwrap_or(0);
                let at = match self.actual_var(actual) {
                    Some(shared) => shared.at,
                    None => self.stack(var)?,
                };
                if let Some(declared) = self.actual_var(actual).and_then(|v| v.stack)
                    && declared != bytes
                {
                    let message = format!("this argument has {declared} bytes, the parameter `{}` {bytes}", var.name);
                    return Err(actual.pos().error(message));
                }
                match inside.vars.insert(var.name, Var { at, space: Space::Param, stack: Some(bytes) }) {
                    None => Ok(Formal::Stack { at, bytes }),
                    Some(_) => Err(twice(var.name, var.pos)),
                }
            }
            RawFormal::Reg(reg) => {
                self.decls += 1;
                let declared = Reg { ty: reg.ty, elements: 1, count: None, id: self.decls };
                self.declared.push((reg.name, 1));
                let slot = self.slot(declared, 0, reg.pos)?;
                match inside.regs.insert(reg.name, declared) {
                    None => Ok(Formal::Slot(reg.ty, slot)),
                    Some(_) => Err(twice(reg.name, reg.pos)),
                }
            }
        }
    }

    /// The argument moves to the parameter, unless they share memory.
    fn pass(&mut self, raw: &RawInst<'a>, to: Formal, actual: &RawArg<'a>) -> Result<()> {
        match (to, self.actual_var(actual)) {
            (Formal::Stack { .. }, Some(_)) => Ok(()),
            (Formal::Stack { at, bytes }, None) => {
                let ty = word(bytes, actual.pos())?;
                let slot = self.source(ty, actual)?;
                self.emit_call(raw, Op::St(stack_access(at, bytes, slot)))
            }
            (Formal::Slot(ty, slot), Some(var)) => {
                self.mention(ty, slot, true);
                self.emit_call(raw, Op::Ld(stack_access(var.at, u64::from(ty.bytes()), slot)))
            }
            (Formal::Slot(ty, d), None) => {
                let a = self.source(ty, actual)?;
                self.mention(ty, d, true);
                self.emit_call(raw, moved(ty, d, a))
            }
        }
    }

    /// The result moves to its operand, unless they share memory.
    fn give(&mut self, raw: &RawInst<'a>, from: Formal, actual: &RawArg<'a>) -> Result<()> {
        match (from, self.actual_var(actual)) {
            (Formal::Stack { .. }, Some(_)) => Ok(()),
            (Formal::Stack { at, bytes }, None) => {
                let ty = word(bytes, actual.pos())?;
                let slot = self.result(ty, actual)?;
                self.emit_call(raw, Op::Ld(stack_access(at, bytes, slot)))
            }
            (Formal::Slot(ty, slot), Some(var)) => {
                self.mention(ty, slot, false);
                self.emit_call(raw, Op::St(stack_access(var.at, u64::from(ty.bytes()), slot)))
            }
            (Formal::Slot(ty, a), None) => {
                self.mention(ty, a, false);
                let d = self.result(ty, actual)?;
                self.emit_call(raw, moved(ty, d, a))
            }
        }
    }

    /// The register that a result goes to.
    fn result(&mut self, ty: Ty, actual: &RawArg<'a>) -> Result<R> {
        self.written = true;
        let slot = self.dest(ty, actual);
        self.written = false;
        slot
    }

    fn emit_call(&mut self, raw: &RawInst<'a>, op: Op) -> Result<()> {
        self.emit(op, (TRUE, 0), raw.name(), raw.spot())
    }
}

/// The untyped word of a size.
fn word(bytes: u64, pos: Pos) -> Result<Ty> {
    match bytes {
        1 => Ok(Ty::B8),
        2 => Ok(Ty::B16),
        4 => Ok(Ty::B32),
        8 => Ok(Ty::B64),
        _ => Err(pos.error("an array is passed as a variable in `.param`")),
    }
}

fn moved(ty: Ty, d: R, a: R) -> Op {
    match ty {
        Ty::Pred => Op::Pred { f: |x, _| x, d, a, b: a },
        _ if ty.bytes() == 8 => Op::Mov64 { d, a },
        _ => Op::Mov32 { d, a },
    }
}

fn stack_access(at: u64, bytes: u64, slot: R) -> Access {
    Access {
        area: Area::In(Space::Local),
        addr: Addr { base: Base::None, offset: at as i64 },
        size: bytes as u8,
        n: 1,
        signed: false,
        wide: bytes == 8,
        regs: [slot, SINK, SINK, SINK],
        order: crate::program::Semantics::default(),
    }
}
