//! The state of decoding one kernel.

use super::place::{place, target_number};
use super::scope::{Scope, Var};
use crate::parse::error::Result;
use crate::parse::lex::Pos;
use crate::parse::raw::{RawEntry, RawFunc, RawModule, RawVar};
use crate::parse::table::needs::{BASE, Need};
use crate::program::types::{R, Spot};
use crate::program::{Bank, Entry, Inst, Mention, Op};
use std::collections::HashMap;

/// Upper limits of one kernel, so that hostile text cannot request much memory.
const MAX_INSTS: usize = 1 << 18;
const MAX_LOCAL: u64 = 1 << 20;

/// State while one kernel is decoded.
pub(crate) struct Cx<'a, 'm> {
    pub(super) module: &'m HashMap<&'a str, Var>,
    pub(super) funcs: &'m HashMap<&'a str, &'m RawFunc<'a>>,
    pub(super) kernels: &'m [RawEntry<'a>],
    /// Addresses of variables in function bodies, by the position of their declaration: one instance for all inlined
    /// copies.
    pub(super) statics: HashMap<Pos, u64>,
    /// Names of dynamic shared memory.
    pub(super) dynamic: HashMap<&'a str, u64>,
    pub(super) scopes: Vec<Scope<'a>>,
    pub(super) next_scope: u32,
    /// Labels of a scope, as indices into `label_at`.
    pub(super) labels: HashMap<(u32, &'a str), u32>,
    /// Instructions that labels are at.
    pub(super) label_at: Vec<u32>,
    pub(super) targets: HashMap<(u32, &'a str), Vec<u32>>,
    pub(super) slots: HashMap<(u32, u32), R>,
    pub(super) decls: u32,
    /// Their names and elements, by number from 1 on.
    pub(super) declared: Vec<(&'a str, u32)>,
    pub(super) c32: HashMap<u32, R>,
    pub(super) c64: HashMap<u64, R>,
    pub(super) entry: Entry,
    pub(super) names: HashMap<String, u32>,
    pub(super) carry: Option<R>,
    /// 64-bit slots with addresses of shared variables.
    pub(super) wide_shared: HashMap<u64, R>,
    /// Registers that the current instruction names, and whether the operand being resolved is a destination.
    pub(super) mentioned: Vec<Mention>,
    pub(super) written: bool,
    /// Those that asynchronous products name.
    pub(super) wgmma_registers: Vec<R>,
    pub(super) opcode: &'a str,
    /// Whether the last address names a parameter of a call, which is in the stack of its thread.
    pub(super) stack_param: bool,
    /// The target of `ret` in a function.
    pub(super) returns: Vec<u32>,
    /// Version and target of the module.
    pub(super) has: Need,
    /// Version and target that the operands of the current instruction need, beyond those of its words.
    pub(super) need: Need,
}

impl<'a, 'm> Cx<'a, 'm> {
    /// The state before the first statement of a kernel, whose head `entry` is.
    pub(super) fn new(
        module: &'m HashMap<&'a str, Var>,
        funcs: &'m HashMap<&'a str, &'m RawFunc<'a>>,
        raw: &'m RawModule<'a>,
        statics: HashMap<Pos, u64>,
        entry: Entry,
    ) -> Cx<'a, 'm> {
        Cx {
            module,
            funcs,
            kernels: &raw.entries,
            statics,
            dynamic: HashMap::new(),
            scopes: vec![Scope::default()],
            next_scope: 0,
            labels: HashMap::new(),
            label_at: Vec::new(),
            targets: HashMap::new(),
            slots: HashMap::new(),
            decls: 0,
            declared: Vec::new(),
            c32: HashMap::new(),
            c64: HashMap::new(),
            entry,
            names: HashMap::new(),
            carry: None,
            wide_shared: HashMap::new(),
            mentioned: Vec::new(),
            written: false,
            wgmma_registers: Vec::new(),
            opcode: "",
            stack_param: false,
            returns: Vec::new(),
            has: Need { version: raw.version, target: target_number(raw.target), specific: raw.target.ends_with('a') },
            need: BASE,
        }
    }

    pub(super) fn define(&mut self, var: &RawVar<'a>, at: Var) -> Result<()> {
        if self.scope().regs.contains_key(var.name) {
            return Err(var.pos.error(format!("`{}` is the name of a register already", var.name)));
        }
        match self.scope().vars.insert(var.name, at) {
            None => Ok(()),
            Some(_) => Err(var.pos.error(format!("`{}` is defined twice", var.name))),
        }
    }

    pub(super) fn scope(&mut self) -> &mut Scope<'a> {
        if self.scopes.is_empty() {
            self.scopes.push(Scope::default());
        }
        self.scopes.last_mut().expect("there is one")
    }

    /// Room in the stack of a thread.
    pub(super) fn stack(&mut self, var: &RawVar<'a>) -> Result<u64> {
        place(&mut self.entry.local_bytes, var, MAX_LOCAL)
    }

    pub(super) fn new_label(&mut self) -> u32 {
        self.label_at.push(0);
        u32::try_from(self.label_at.len() - 1).unwrap_or(u32::MAX)
    }

    pub(super) fn land(&mut self, label: u32) {
        self.label_at[label as usize] = u32::try_from(self.entry.code.len()).unwrap_or(u32::MAX);
    }

    pub(super) fn name(&mut self, name: String) -> u32 {
        if let Some(&n) = self.names.get(&name) {
            return n;
        }
        let n = u32::try_from(self.entry.names.len()).unwrap_or(u32::MAX);
        self.names.insert(name.clone(), n);
        self.entry.names.push(name);
        n
    }

    pub(super) fn emit(&mut self, op: Op, (guard, flip): (R, u32), name: String, spot: Spot) -> Result<()> {
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

    /// Says that the kernel has asynchronous products, whose registers are watched.
    pub(crate) fn uses_wgmma(&mut self) {
        let words = self.mentioned.iter().filter(|m| m.bank == Bank::Words);
        self.wgmma_registers.extend(words.map(|m| m.slot));
    }

    /// Whether a kernel or a function has this name.
    pub(super) fn is_code(&self, name: &str) -> bool {
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

    /// Requires this version and target for the current operands.
    pub(crate) fn require(&mut self, version: (u32, u32), target: u32) {
        self.need = self.need.and(Need { version, target, specific: false });
    }

    /// Whether the address of the instruction being decoded names a parameter of a call.
    pub(crate) fn stack_param(&self) -> bool {
        self.stack_param
    }
}
