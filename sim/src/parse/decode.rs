//! Names, labels and operand forms: a [`RawModule`] to a [`Program`].
//!
//! A register gets its slot when it is first mentioned, so declarations cost nothing. Each instruction is looked up in
//! the table; a row whose modifiers match and whose operands resolve says what the instruction does.

use std::collections::HashMap;

use super::ParseError;
use super::lex::Pos;
use super::raw::{RawArg, RawEntry, RawInst, RawModule, RawStmt, RawVar, Space, Ty};
use super::table::{self, Mods};
use crate::program::{Addr, Base, Entry, Inst, ModuleVar, Op, Placed, Program, R, SINK, Special, TRUE};

type Result<T> = std::result::Result<T, ParseError>;

/// Upper limits of one module, so that hostile text cannot ask for much memory.
const MAX_INSTS: usize = 1 << 20;
const MAX_SLOTS: usize = 1 << 16;
const MAX_SHARED: u64 = 1 << 20;
const MAX_LOCAL: u64 = 1 << 20;
const MAX_PARAM: u64 = 1 << 15;
const MAX_GLOBAL: u64 = 1 << 30;

/// A resolved operand.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Arg {
    /// A slot of the 32 or 64-bit file; which one follows from the type in the table.
    Slot(R),
    /// A predicate and whether it is negated.
    Pred(R, bool),
    /// Destination and predicate of `d|p`, setp's `p|q`.
    Two(R, R),
    /// Slots of a vector, and whether they are of the 64-bit file.
    Many(Vec<R>, bool),
    Addr(Addr),
    Int(u64),
    Labels(Vec<u32>),
    /// An optional operand that is not there.
    Absent,
}

#[derive(Clone, Copy)]
struct Reg {
    ty: Ty,
    count: Option<u32>,
    id: u32,
}

/// A variable: its offset in its space, or its address.
#[derive(Clone, Copy)]
struct Var {
    at: u64,
}

#[derive(Default)]
struct Scope<'a> {
    id: u32,
    regs: HashMap<&'a str, Reg>,
    vars: HashMap<&'a str, Var>,
}

/// State while one kernel is decoded.
pub(crate) struct Cx<'a, 'm> {
    module: &'m HashMap<&'a str, Var>,
    scopes: Vec<Scope<'a>>,
    labels: HashMap<(u32, &'a str), u32>,
    targets: HashMap<&'a str, Vec<u32>>,
    slots: HashMap<(u32, u32), R>,
    decls: u32,
    c32: HashMap<u32, R>,
    c64: HashMap<u64, R>,
    entry: Entry,
    names: HashMap<String, u32>,
    carry: Option<R>,
    opcode: &'a str,
}

fn place(at: &mut u64, var: &RawVar<'_>, limit: u64) -> Result<u64> {
    let bytes = var.bytes.unwrap_or(0);
    let start = at.checked_next_multiple_of(var.align);
    let end = start.and_then(|s| s.checked_add(bytes)).filter(|e| *e <= limit);
    match (start, end) {
        (Some(start), Some(end)) => {
            *at = end;
            Ok(start)
        }
        _ => Err(var.pos.error(format!("`{}` does not fit: the limit of its space is {limit} bytes", var.name))),
    }
}

/// Decodes a module.
pub(crate) fn decode(raw: &RawModule<'_>) -> Result<Program> {
    let mut program = Program {
        version: raw.version,
        target: raw.target.to_owned(),
        files: raw.files.iter().map(|(n, s)| (*n, (*s).to_owned())).collect(),
        vars: Vec::new(),
        entries: Vec::new(),
    };
    let mut symbols = HashMap::new();
    let mut shared = 0;
    let mut total = 0u64;
    for var in &raw.vars {
        let at = match var.space {
            Space::Shared if var.bytes.is_none() => continue,
            Space::Shared => place(&mut shared, var, MAX_SHARED)?,
            _ => {
                let bytes = var.bytes.unwrap_or(0);
                total = total.saturating_add(bytes);
                if total > MAX_GLOBAL {
                    return Err(var.pos.error("the variables of the module are too large"));
                }
                let address = crate::memory::module_address(program.vars.len());
                let constant = var.space == Space::Const;
                program.vars.push(ModuleVar { address, bytes, init: var.init.clone(), constant });
                address
            }
        };
        if symbols.insert(var.name, Var { at }).is_some() {
            return Err(var.pos.error(format!("`{}` is defined twice", var.name)));
        }
    }
    for entry in &raw.entries {
        let decoded = decode_entry(raw, entry, &symbols, shared, &mut program.vars)?;
        program.entries.push(decoded);
    }
    Ok(program)
}

fn decode_entry<'a>(
    raw: &RawModule<'a>,
    from: &RawEntry<'a>,
    module: &HashMap<&'a str, Var>,
    shared: u64,
    vars: &mut Vec<ModuleVar>,
) -> Result<Entry> {
    let entry = Entry {
        name: from.name.to_owned(),
        params: Vec::new(),
        param_bytes: 0,
        max_threads: from.max_threads,
        required_threads: from.required_threads,
        shared_bytes: shared,
        shared_vars: Vec::new(),
        local_bytes: 0,
        code: Vec::new(),
        names: Vec::new(),
        n32: 1,
        n64: 1,
        npred: 2,
        const32: Vec::new(),
        const64: Vec::new(),
        specials: Vec::new(),
    };
    let mut cx = Cx {
        module,
        scopes: vec![Scope::default()],
        labels: HashMap::new(),
        targets: HashMap::new(),
        slots: HashMap::new(),
        decls: 0,
        c32: HashMap::new(),
        c64: HashMap::new(),
        entry,
        names: HashMap::new(),
        carry: None,
        opcode: "",
    };
    let mut at = 0;
    for param in &from.params {
        let offset = place(&mut at, param, MAX_PARAM)?;
        cx.entry.params.push(Placed { offset, bytes: param.bytes.unwrap_or(0) });
        cx.define(param, offset)?;
    }
    cx.entry.param_bytes = at;
    // Dynamic shared memory follows the static part, at the largest alignment any of its names asks for (PTX 5.4.3).
    let statics = cx.collect(from)?;
    cx.entry.shared_bytes = statics;
    for var in raw.vars.iter().filter(|v| v.space == Space::Shared && v.bytes.is_none()) {
        cx.entry.shared_bytes = cx.entry.shared_bytes.next_multiple_of(var.align);
    }
    let dynamic = cx.entry.shared_bytes;
    for var in raw.vars.iter().filter(|v| v.space == Space::Shared && v.bytes.is_none()) {
        cx.define(var, dynamic)?;
    }
    cx.body(from, shared, vars)?;
    cx.entry.shared_vars.extend(raw.vars.iter().filter(|v| v.space == Space::Shared).filter_map(|v| {
        let offset = v.bytes.map_or(Some(dynamic), |_| module.get(v.name).map(|s| s.at))?;
        Some((v.name.to_owned(), Placed { offset, bytes: v.bytes.unwrap_or(0) }))
    }));
    if cx.entry.code.len() > MAX_INSTS {
        return Err(Pos { line: 1, col: 1 }.error("the kernel has too many instructions"));
    }
    // Falling off the end of a kernel is a return.
    let line = cx.entry.code.last().map_or(0, |i| i.line);
    let name = cx.name("ret".to_owned());
    cx.entry.code.push(Inst { op: Op::Exit, guard: TRUE, flip: 0, line, loc: (0, 0), name });
    Ok(cx.entry)
}

impl<'a> Cx<'a, '_> {
    fn define(&mut self, var: &RawVar<'a>, at: u64) -> Result<()> {
        let scope = self.scopes.last_mut().expect("the outermost scope is never closed");
        match scope.vars.insert(var.name, Var { at }) {
            None => Ok(()),
            Some(_) => Err(var.pos.error(format!("`{}` is defined twice", var.name))),
        }
    }

    /// Labels to instruction indices, and the size of static shared memory.
    fn collect(&mut self, from: &RawEntry<'a>) -> Result<u64> {
        let mut at = self.entry.shared_bytes;
        let (mut pc, mut stack, mut next) = (0u32, vec![0u32], 0u32);
        for stmt in &from.body {
            match stmt {
                RawStmt::Open => {
                    next += 1;
                    stack.push(next);
                }
                RawStmt::Close => {
                    stack.pop();
                }
                RawStmt::Inst(_) => pc += 1,
                RawStmt::Label(name, pos) => {
                    let scope = stack.last().copied().unwrap_or(0);
                    if self.labels.insert((scope, name), pc).is_some() {
                        return Err(pos.error(format!("label `{name}` is defined twice")));
                    }
                }
                RawStmt::Var(var) if var.space == Space::Shared => {
                    place(&mut at, var, MAX_SHARED)?;
                }
                RawStmt::Var(_) | RawStmt::Reg(_) | RawStmt::Targets(..) => {}
            }
        }
        Ok(at)
    }

    fn body(&mut self, from: &RawEntry<'a>, shared: u64, vars: &mut Vec<ModuleVar>) -> Result<()> {
        let mut shared_at = shared;
        let mut local_at = 0;
        let mut next = 0;
        for stmt in &from.body {
            match stmt {
                RawStmt::Open => {
                    next += 1;
                    self.scopes.push(Scope { id: next, ..Scope::default() });
                }
                RawStmt::Close => {
                    self.scopes.pop();
                }
                RawStmt::Label(..) => {}
                RawStmt::Targets(name, targets, pos) => {
                    let found: Result<Vec<u32>> = targets.iter().map(|(l, p)| self.label(l, *p)).collect();
                    if self.targets.insert(name, found?).is_some() {
                        return Err(pos.error(format!("label `{name}` is defined twice")));
                    }
                }
                RawStmt::Reg(reg) => {
                    self.decls += 1;
                    let id = self.decls;
                    let scope = self.scopes.last_mut().expect("the outermost scope is never closed");
                    if scope.regs.insert(reg.name, Reg { ty: reg.ty, count: reg.count, id }).is_some() {
                        return Err(reg.pos.error(format!("register `{}` is declared twice", reg.name)));
                    }
                }
                RawStmt::Var(var) => match var.space {
                    Space::Shared => {
                        let offset = place(&mut shared_at, var, MAX_SHARED)?;
                        self.define(var, offset)?;
                        let placed = Placed { offset, bytes: var.bytes.unwrap_or(0) };
                        self.entry.shared_vars.push((var.name.to_owned(), placed));
                    }
                    Space::Local => {
                        let offset = place(&mut local_at, var, MAX_LOCAL)?;
                        self.entry.local_bytes = local_at;
                        self.define(var, offset)?;
                    }
                    _ => {
                        let address = crate::memory::module_address(vars.len());
                        let constant = var.space == Space::Const;
                        vars.push(ModuleVar {
                            address,
                            bytes: var.bytes.unwrap_or(0),
                            init: var.init.clone(),
                            constant,
                        });
                        self.define(var, address)?;
                    }
                },
                RawStmt::Inst(inst) => {
                    let decoded = self.inst(inst)?;
                    self.entry.code.push(decoded);
                }
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

    fn inst(&mut self, raw: &RawInst<'a>) -> Result<Inst> {
        let (guard, flip) = match raw.guard {
            None => (TRUE, 0),
            Some((name, negate, pos)) => (self.pred(name, pos)?, if negate { u32::MAX } else { 0 }),
        };
        let op = self.op(raw)?;
        let mut name = raw.op.to_owned();
        for word in &raw.words {
            name.push('.');
            name.push_str(word);
        }
        let name = self.name(name);
        Ok(Inst { op, guard, flip, line: raw.pos.line, loc: raw.loc, name })
    }

    fn op(&mut self, raw: &RawInst<'a>) -> Result<Op> {
        self.opcode = raw.op;
        let mut known = false;
        let mut furthest = 0;
        let mut failure = None;
        for row in table::rows(raw.op) {
            known = true;
            match table::matches(row.mods, &raw.words) {
                Err(n) => furthest = furthest.max(n),
                Ok(()) => {
                    let mods = Mods { words: &raw.words, pos: raw.pos };
                    match self.args(row.args, &mods, raw).and_then(|args| (row.sem)(self, &mods, &args)) {
                        Ok(op) => return Ok(op),
                        Err(e) => failure = Some(failure.unwrap_or(e)),
                    }
                }
            }
        }
        if let Some(failure) = failure {
            return Err(failure);
        }
        let shown = raw.words.iter().map(|w| format!(".{w}")).collect::<String>();
        Err(raw.pos.error(match raw.words.get(furthest) {
            _ if !known => format!("unknown instruction `{}{shown}`", raw.op),
            Some(word) => format!("`.{word}` does not fit here: no such form of `{}{shown}`", raw.op),
            None => format!("`{}{shown}` lacks a modifier", raw.op),
        }))
    }

    /// Resolves operands by the row's pattern; see [`table::Row::args`].
    fn args(&mut self, pattern: &str, mods: &Mods<'_>, raw: &RawInst<'a>) -> Result<Vec<Arg>> {
        let mut out = Vec::new();
        let mut given = raw.args.iter();
        for want in pattern.split_ascii_whitespace() {
            let (want, optional) = want.strip_suffix('?').map_or((want, false), |w| (w, true));
            match given.next() {
                None if optional => out.push(Arg::Absent),
                None => return Err(raw.pos.error(format!("`{}` lacks an operand", raw.op))),
                Some(arg) => out.push(self.arg(want, mods, arg)?),
            }
        }
        match given.next() {
            None => Ok(out),
            Some(extra) => Err(extra.pos().error(format!("`{}` takes fewer operands", raw.op))),
        }
    }

    fn arg(&mut self, want: &str, mods: &Mods<'_>, arg: &RawArg<'a>) -> Result<Arg> {
        let (kind, ty) = match want.split_once(':') {
            Some((kind, "U")) => (kind, mods.first_type()),
            Some((kind, "W")) => (kind, mods.wide_type()),
            Some((kind, name)) => (kind, Ty::from_word(name)),
            None => (want, mods.last_type()),
        };
        let typed = || ty.ok_or_else(|| arg.pos().error("this instruction lacks a type"));
        match (kind, arg) {
            ("d", _) => self.dest(typed()?, arg).map(Arg::Slot),
            ("s", _) => self.source(typed()?, arg).map(Arg::Slot),
            ("p", RawArg::Name(name, pos)) => Ok(Arg::Pred(self.pred(name, *pos)?, false)),
            ("p" | "pq", RawArg::Sink(_)) => Ok(Arg::Pred(SINK, false)),
            ("q", RawArg::Name(name, pos)) => Ok(Arg::Pred(self.pred(name, *pos)?, false)),
            ("q", RawArg::Not(name, pos)) => Ok(Arg::Pred(self.pred(name, *pos)?, true)),
            ("q", RawArg::Int(v, _)) => Ok(Arg::Pred(TRUE, *v == 0)),
            ("pq", RawArg::Pair(a, b, _)) => Ok(Arg::Two(self.pred_dest(a)?, self.pred_dest(b)?)),
            ("pq", RawArg::Name(name, pos)) => Ok(Arg::Two(self.pred(name, *pos)?, SINK)),
            ("dp", RawArg::Pair(a, b, _)) => Ok(Arg::Two(self.dest(typed()?, a)?, self.pred_dest(b)?)),
            ("dp", _) => Ok(Arg::Two(self.dest(typed()?, arg)?, SINK)),
            ("m", RawArg::Memory(base, offset, pos)) => self.address(*base, *offset, *pos).map(Arg::Addr),
            ("dv" | "sv", _) => self.vector(typed()?, mods.vector(), kind == "dv", arg),
            ("l", RawArg::Name(name, pos)) => Ok(Arg::Labels(vec![self.label(name, *pos)?])),
            ("t", RawArg::Name(name, pos)) => match self.targets.get(name) {
                Some(targets) => Ok(Arg::Labels(targets.clone())),
                None => Err(pos.error(format!("unknown list of branch targets `{name}`"))),
            },
            ("i", RawArg::Int(v, _)) => Ok(Arg::Int(*v)),
            ("xd", RawArg::Name(..) | RawArg::Sink(_)) if typed()? != Ty::Pred => {
                self.dest(typed()?, arg).map(Arg::Slot)
            }
            ("xd", RawArg::Name(name, pos)) => Ok(Arg::Pred(self.pred(name, *pos)?, false)),
            ("x", _) | ("xd", RawArg::Vector(..)) => self.mov_arg(typed()?, arg),
            _ => {
                if let Some(n) = kind.strip_prefix("d*").or_else(|| kind.strip_prefix("s*")) {
                    let n: usize = n.parse().map_err(|_| arg.pos().error("unreadable table row"))?;
                    return self.fixed(typed()?, n, kind.starts_with('d'), arg);
                }
                Err(arg.pos().error(format!("this operand must be {}", table::describe(kind))))
            }
        }
    }

    fn fixed(&mut self, ty: Ty, n: usize, dest: bool, arg: &RawArg<'a>) -> Result<Arg> {
        let items = match arg {
            RawArg::Vector(items, _) if items.len() == n => items.as_slice(),
            _ if n == 1 => std::slice::from_ref(arg),
            _ => return Err(arg.pos().error(format!("expected a vector of {n} registers"))),
        };
        let slots: Result<Vec<R>> =
            items.iter().map(|a| if dest { self.dest(ty, a) } else { self.source(ty, a) }).collect();
        Ok(Arg::Many(slots?, ty.bytes() == 8))
    }

    /// Registers of a load or store, which may be wider than the type (PTX 9.4.1).
    fn vector(&mut self, ty: Ty, n: usize, dest: bool, arg: &RawArg<'a>) -> Result<Arg> {
        let items = match arg {
            RawArg::Vector(items, _) if items.len() == n => items.as_slice(),
            RawArg::Vector(..) => return Err(arg.pos().error(format!("expected {n} registers"))),
            _ if n == 1 => std::slice::from_ref(arg),
            _ => return Err(arg.pos().error(format!("expected a vector of {n} registers"))),
        };
        let mut wide = None;
        let mut slots = Vec::new();
        for item in items {
            let (reg, pos) = match item {
                RawArg::Name(name, pos) => (self.find(name), *pos),
                other => (None, other.pos()),
            };
            let is_wide = match reg {
                Some((reg, _)) if reg.ty.bytes() >= ty.bytes() => reg.ty.bytes() == 8,
                Some((reg, _)) => {
                    return Err(pos.error(format!("a {:?} register is too small for {ty:?}", reg.ty)));
                }
                None => ty.bytes() == 8,
            };
            if *wide.get_or_insert(is_wide) != is_wide {
                return Err(pos.error("the registers of a vector differ in size"));
            }
            slots.push(match (reg, item) {
                (Some((reg, index)), _) => self.slot(reg, index, pos)?,
                (None, RawArg::Sink(_)) if dest => SINK,
                (None, _) if !dest => self.source(ty, item)?,
                _ => return Err(pos.error("expected a register")),
            });
        }
        Ok(Arg::Many(slots, wide == Some(true)))
    }

    /// The register a name stands for, with its number in a range.
    fn find(&self, name: &str) -> Option<(Reg, u32)> {
        for scope in self.scopes.iter().rev() {
            if let Some(&reg) = scope.regs.get(name)
                && reg.count.is_none()
            {
                return Some((reg, 0));
            }
            let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
            for split in name.len() - digits..name.len() {
                let (prefix, number) = name.split_at(split);
                if let Some(&reg) = scope.regs.get(prefix)
                    && let (Some(count), Ok(n)) = (reg.count, number.parse::<u32>())
                    && n < count
                    && (number.len() == 1 || !number.starts_with('0'))
                {
                    return Some((reg, n));
                }
            }
        }
        None
    }

    fn slot(&mut self, reg: Reg, index: u32, pos: Pos) -> Result<R> {
        if let Some(&slot) = self.slots.get(&(reg.id, index)) {
            return Ok(slot);
        }
        let file = match reg.ty.bytes() {
            0 => &mut self.entry.npred,
            8 => &mut self.entry.n64,
            16 => return Err(pos.error("128-bit registers are not supported")),
            _ => &mut self.entry.n32,
        };
        let slot = fresh(file, pos)?;
        self.slots.insert((reg.id, index), slot);
        Ok(slot)
    }

    fn pred_dest(&mut self, arg: &RawArg<'a>) -> Result<R> {
        match arg {
            RawArg::Sink(_) => Ok(SINK),
            RawArg::Name(name, pos) => self.pred(name, *pos),
            other => Err(other.pos().error("expected a predicate")),
        }
    }

    fn pred(&mut self, name: &str, pos: Pos) -> Result<R> {
        match self.find(name) {
            Some((reg, index)) if reg.ty == Ty::Pred => self.slot(reg, index, pos),
            Some((reg, _)) => Err(pos.error(format!("`{name}` is {:?}, expected a predicate", reg.ty))),
            None => Err(pos.error(format!("unknown register `{name}`"))),
        }
    }

    fn register(&mut self, ty: Ty, name: &str, pos: Pos) -> Result<Option<R>> {
        let Some((reg, index)) = self.find(name) else { return Ok(None) };
        if reg.ty.bytes() != ty.bytes() && !(ty.bytes() == 1 && reg.ty.bytes() <= 4) || !ty.agrees(reg.ty) {
            return Err(pos.error(format!("`{name}` is {:?}, the instruction works on {ty:?}", reg.ty)));
        }
        self.slot(reg, index, pos).map(Some)
    }

    fn dest(&mut self, ty: Ty, arg: &RawArg<'a>) -> Result<R> {
        match arg {
            RawArg::Sink(_) => Ok(SINK),
            RawArg::Name(name, pos) => {
                self.register(ty, name, *pos)?.ok_or_else(|| pos.error(format!("unknown register `{name}`")))
            }
            other => Err(other.pos().error("the destination must be a register")),
        }
    }

    /// A source: register, special register, immediate or the address of a variable.
    pub(crate) fn source(&mut self, ty: Ty, arg: &RawArg<'a>) -> Result<R> {
        let wide = ty.bytes() == 8;
        match arg {
            RawArg::Name(name, pos) => {
                if let Some(slot) = self.register(ty, name, *pos)? {
                    return Ok(slot);
                }
                if let Some(special) = special(name) {
                    return self.special(special, wide, *pos);
                }
                match self.var(name) {
                    Some(var) if ty.bytes() >= 4 => self.constant(wide, var.at, *pos),
                    Some(_) => Err(pos.error("an address needs 32 or 64 bits")),
                    None if *name == "WARP_SZ" => self.constant(wide, 32, *pos),
                    None => Err(pos.error(format!("unknown name `{name}`"))),
                }
            }
            RawArg::Sum(name, offset, pos) => match self.var(name) {
                Some(var) if ty.bytes() >= 4 => self.constant(wide, var.at.wrapping_add_signed(*offset), *pos),
                _ => Err(pos.error(format!("`{name}` is no variable"))),
            },
            RawArg::Dotted(name, field, pos) => {
                let axis = match *field {
                    "x" => 0,
                    "y" => 1,
                    "z" => 2,
                    _ => return Err(pos.error(format!("`{name}.{field}` is no special register"))),
                };
                let special = match *name {
                    "%tid" => Special::Tid(axis),
                    "%ntid" => Special::NTid(axis),
                    "%ctaid" => Special::CtaId(axis),
                    "%nctaid" => Special::NCtaId(axis),
                    "%clusterid" => Special::CtaId(axis),
                    _ => return Err(pos.error(format!("`{name}.{field}` is no special register"))),
                };
                self.special(special, wide, *pos)
            }
            RawArg::Int(v, pos) => {
                let bits = ty.bytes() * 8;
                if matches!(ty, Ty::F32 | Ty::F64 | Ty::F16 | Ty::F16x2) {
                    return Err(pos.error("an integer where a float is needed"));
                }
                let extended = if bits >= 64 { *v } else { ((*v << (64 - bits)) as i64 >> (64 - bits)) as u64 };
                let cut = if bits >= 64 { *v } else { *v & ((1 << bits) - 1) };
                if *v != cut && *v != extended {
                    return Err(pos.error(format!("{:#x} does not fit {bits} bits", *v)));
                }
                self.constant(wide, cut, *pos)
            }
            RawArg::F32(v, pos) if ty == Ty::F32 || ty == Ty::B32 => self.constant(false, u64::from(*v), *pos),
            RawArg::F64(v, pos) if ty == Ty::F64 || ty == Ty::B64 => self.constant(true, *v, *pos),
            RawArg::F64(v, pos) if ty == Ty::F32 => {
                self.constant(false, u64::from((f64::from_bits(*v) as f32).to_bits()), *pos)
            }
            other => Err(other.pos().error(format!("this cannot be a source of type {ty:?}"))),
        }
    }

    fn special(&mut self, special: Special, wide: bool, pos: Pos) -> Result<R> {
        if wide {
            return Err(pos.error("a special register has 32 bits"));
        }
        if let Some(&(slot, _)) = self.entry.specials.iter().find(|(_, s)| *s == special) {
            return Ok(slot);
        }
        let slot = fresh(&mut self.entry.n32, pos)?;
        self.entry.specials.push((slot, special));
        Ok(slot)
    }

    /// A slot that holds `value` in every lane.
    pub(crate) fn constant(&mut self, wide: bool, value: u64, pos: Pos) -> Result<R> {
        if wide {
            if let Some(&slot) = self.c64.get(&value) {
                return Ok(slot);
            }
            let slot = fresh(&mut self.entry.n64, pos)?;
            self.c64.insert(value, slot);
            self.entry.const64.push((slot, value));
            return Ok(slot);
        }
        let value = value as u32;
        if let Some(&slot) = self.c32.get(&value) {
            return Ok(slot);
        }
        let slot = fresh(&mut self.entry.n32, pos)?;
        self.c32.insert(value, slot);
        self.entry.const32.push((slot, value));
        Ok(slot)
    }

    /// The opcode being decoded.
    pub(crate) fn opcode(&self) -> &'a str {
        self.opcode
    }

    /// The predicate that holds the carry of `add.cc` and kin.
    pub(crate) fn carry(&mut self, pos: Pos) -> Result<R> {
        match self.carry {
            Some(slot) => Ok(slot),
            None => {
                let slot = fresh(&mut self.entry.npred, pos)?;
                self.carry = Some(slot);
                Ok(slot)
            }
        }
    }

    fn var(&self, name: &str) -> Option<Var> {
        let local = self.scopes.iter().rev().find_map(|s| s.vars.get(name));
        local.or_else(|| self.module.get(name)).copied()
    }

    fn address(&mut self, base: Option<&'a str>, offset: i64, pos: Pos) -> Result<Addr> {
        let Some(name) = base else { return Ok(Addr { base: Base::None, offset }) };
        if let Some((reg, index)) = self.find(name) {
            let slot = self.slot(reg, index, pos)?;
            let base = match reg.ty.bytes() {
                4 => Base::R32(slot),
                8 => Base::R64(slot),
                _ => return Err(pos.error(format!("`{name}` is {:?}, no address", reg.ty))),
            };
            return Ok(Addr { base, offset });
        }
        match self.var(name) {
            Some(var) => Ok(Addr { base: Base::None, offset: offset.wrapping_add_unsigned(var.at) }),
            None => Err(pos.error(format!("unknown name `{name}`"))),
        }
    }

    fn label(&self, name: &str, pos: Pos) -> Result<u32> {
        let found = self.scopes.iter().rev().find_map(|s| self.labels.get(&(s.id, name)));
        found.copied().ok_or_else(|| pos.error(format!("unknown label `{name}`")))
    }

    /// `mov` takes vectors on either side, as well as plain operands and predicates.
    fn mov_arg(&mut self, ty: Ty, arg: &RawArg<'a>) -> Result<Arg> {
        match arg {
            RawArg::Vector(items, pos) => {
                let part = ty.bytes() / u32::try_from(items.len()).unwrap_or(u32::MAX).max(1);
                let piece = match part {
                    1 => Ty::B8,
                    2 => Ty::B16,
                    4 => Ty::B32,
                    _ => return Err(pos.error("no register has the size of these parts")),
                };
                let mut slots = Vec::new();
                for item in items {
                    slots.push(match item {
                        RawArg::Sink(_) => SINK,
                        item => self.source(piece, item)?,
                    });
                }
                Ok(Arg::Many(slots, false))
            }
            RawArg::Name(name, pos) if ty == Ty::Pred => Ok(Arg::Pred(self.pred(name, *pos)?, false)),
            RawArg::Int(v, _) if ty == Ty::Pred => Ok(Arg::Pred(TRUE, *v == 0)),
            RawArg::Name("%clock" | "%clock_hi", _) => Ok(Arg::Int(32)),
            RawArg::Name("%clock64" | "%globaltimer", _) => Ok(Arg::Int(64)),
            _ => self.source(ty, arg).map(Arg::Slot),
        }
    }
}

fn fresh(file: &mut usize, pos: Pos) -> Result<R> {
    if *file >= MAX_SLOTS {
        return Err(pos.error("the kernel uses too many registers"));
    }
    *file += 1;
    Ok(u32::try_from(*file - 1).expect("the limit is far below 32 bits"))
}

fn special(name: &str) -> Option<Special> {
    Some(match name {
        "%laneid" => Special::LaneId,
        "%warpid" => Special::WarpId,
        "%nwarpid" => Special::NWarpId,
        "%lanemask_eq" => Special::LaneMaskEq,
        "%lanemask_lt" => Special::LaneMaskLt,
        "%lanemask_le" => Special::LaneMaskLe,
        "%lanemask_gt" => Special::LaneMaskGt,
        "%lanemask_ge" => Special::LaneMaskGe,
        "%dynamic_smem_size" => Special::DynamicSharedBytes,
        "%total_smem_size" => Special::TotalSharedBytes,
        "%smid" | "%gridid" | "%cluster_ctarank" => Special::Zero,
        "%nsmid" | "%cluster_nctarank" => Special::One,
        _ => return None,
    })
}
