//! The statements of a body. That of a called function is where it is called.

use super::context::Cx;
use super::scope::{Reg, Scope, Var};
use crate::parse::error::Result;
use crate::parse::raw::RawStmt;
use crate::program::types::Space;

impl<'a> Cx<'a, '_> {
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
    pub(super) fn body(&mut self, body: &[RawStmt<'a>]) -> Result<()> {
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
                RawStmt::Inst(inst) if inst.op == "call" => {
                    if let Some(entered) = self.enter(inst)? {
                        self.body(entered.body)?;
                        self.leave(inst, entered)?;
                    }
                }
                RawStmt::Inst(inst) => self.inst(inst)?,
            }
        }
        Ok(())
    }
}
