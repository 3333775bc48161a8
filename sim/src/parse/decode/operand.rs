//! Operands: names, literals and brackets as written to slots, addresses and labels.

use super::arg::Arg;
use super::context::Cx;
use super::names::special;
use super::scope::{FIELDS, VECTORS, Var};
use crate::parse::error::Result;
use crate::parse::lex::Pos;
use crate::parse::modifiers::Mods;
use crate::parse::raw::{RawArg, RawInst};
use crate::parse::table::limits;
use crate::program::types::{LOCAL_WINDOW, PARAM_WINDOW, R, SHARED_WINDOW, SINK, Space, TRUE, Ty};
use crate::program::{Addr, Area, Base, Special};

/// The name of an operand kind in messages.
fn describe(kind: &str) -> &'static str {
    match kind {
        "p" | "pq" => "a predicate register",
        "q" => "a predicate",
        "m" => "an address in brackets",
        "" => "`_`",
        "l" => "a label",
        "i" => "an integer constant",
        "dm" => "a register with the part of it that is replaced",
        _ => "something else",
    }
}

/// Whether a register may hold a loaded or stored value: wider than it, but for floats (PTX 9.4.1, Tables 27 and 28).
fn holds(reg: Ty, ty: Ty) -> bool {
    ty.agrees(reg)
        && (reg.bytes() == ty.bytes() || !matches!(reg, Ty::F32 | Ty::F64) || !matches!(ty, Ty::F32 | Ty::F64))
}

fn name_of<'a>(arg: &RawArg<'a>) -> &'a str {
    match arg {
        RawArg::Name(name, _) => name,
        _ => "",
    }
}

/// Whether a register of a type may take the address of a variable.
fn check_address(ty: Ty, var: Var, pos: Pos) -> Result<()> {
    let global = matches!(var.space, Space::Global | Space::Const);
    match ty {
        Ty::B64 | Ty::U64 | Ty::S64 => Ok(()),
        Ty::B32 | Ty::U32 | Ty::S32 if !global => Ok(()),
        _ => Err(pos.error(format!("an address in {:?} memory does not fit {ty:?}", var.space))),
    }
}

impl<'a> Cx<'a, '_> {
    /// Resolves operands by the row's pattern; see `Row::args` of the table.
    pub(super) fn args(&mut self, pattern: &str, mods: &Mods<'_>, raw: &RawInst<'a>) -> Result<Vec<Arg>> {
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
        self.written = want.starts_with(['d', 'p']) || want.starts_with("wd") || want.starts_with("xd");
        let found = self.operand(want, mods, arg);
        self.written = false;
        found
    }

    fn operand(&mut self, want: &str, mods: &Mods<'_>, arg: &RawArg<'a>) -> Result<Arg> {
        let (kind, ty) = match want.split_once(':') {
            Some((kind, "U")) => (kind, mods.first_type()),
            Some((kind, "W")) => (kind, mods.wide_type()),
            Some((kind, name)) => (kind, Ty::from_word(name)),
            None => (want, mods.last_type()),
        };
        let sink = kind.ends_with('_');
        let kind = kind.trim_end_matches('_');
        let takes_vectors =
            matches!(kind, "dv" | "sv" | "x" | "xd") || kind.starts_with("d*") || kind.starts_with("s*");
        // Special registers are vectors to `mov.v4` of words alone.
        let words = (self.opcode, kind) == ("mov", "s*4") && matches!(ty, Some(Ty::B32 | Ty::U32 | Ty::S32));
        let takes_vectors = takes_vectors && (words || !matches!(arg, RawArg::Name(name, _) if VECTORS.contains(name)));
        if takes_vectors && let Some(elements) = self.elements(arg) {
            return self.operand(want, mods, &elements);
        }
        let typed = || ty.ok_or_else(|| arg.pos().error("this instruction lacks a type"));
        match (kind, arg) {
            ("", RawArg::Sink(_)) => Ok(Arg::Absent),
            ("d", RawArg::Sink(pos)) if !sink => Err(pos.error("this result cannot be thrown away")),
            ("dp", RawArg::Pair(first, ..)) if !sink && matches!(**first, RawArg::Sink(_)) => {
                Err(first.pos().error("this result cannot be thrown away"))
            }
            ("d", _) => self.dest(typed()?, arg).map(Arg::Slot),
            ("dm", RawArg::Dotted(name, ..)) if self.find(name).is_some_and(|(r, _)| r.elements == 1) => {
                self.part(true, arg)
            }
            ("ds" | "ss", _) => self.part(kind == "ds", arg),
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
            ("m", RawArg::Memory(base, offset, pos)) => {
                let area = match want.split_once(':') {
                    Some((_, "shared")) => Area::In(Space::Shared),
                    Some((_, "cluster")) => Area::In(Space::Cluster),
                    Some((_, "global")) => Area::In(Space::Global),
                    _ => mods.area(),
                };
                self.address(area, *base, *offset, *pos).map(Arg::Addr)
            }
            // A map of a tensor, whose generic address it is whatever the modifiers say.
            ("mg", RawArg::Memory(base, offset, pos)) => self.map_address(*base, *offset, *pos).map(Arg::Addr),
            ("mt", RawArg::Tensor(map, offset, at, pos)) => {
                let map = match self.var(map) {
                    Some(var) if var.space == Space::Param => self.address(Area::Generic, Some(map), *offset, *pos)?,
                    _ => self.map_address(Some(map), *offset, *pos)?,
                };
                let at: Result<Vec<R>> = at.iter().map(|c| self.source(Ty::S32, c)).collect();
                Ok(Arg::Tensor(map, at?))
            }
            ("wd", _) => {
                let (ty, n) = mods.accumulators(arg.pos())?;
                self.fixed(ty, n, true, arg)
            }
            ("dv" | "sv", _) => self.vector(typed()?, mods.vector(), kind == "dv", arg),
            ("l", RawArg::Name(name, pos)) => Ok(Arg::Labels(vec![self.label(name, *pos)?])),
            ("t", RawArg::Name(name, pos)) => {
                match self.scopes.iter().rev().find_map(|s| self.targets.get(&(s.id, name))) {
                    Some(targets) => Ok(Arg::Labels(targets.clone())),
                    None => Err(pos.error(format!("unknown list of branch targets `{name}`"))),
                }
            }
            ("i", RawArg::Int(v, _)) => Ok(Arg::Int(*v)),
            ("xd", RawArg::Name(..) | RawArg::Dotted(..)) if typed()? != Ty::Pred => {
                self.dest(typed()?, arg).map(Arg::Slot)
            }
            ("xd", RawArg::Name(name, pos)) => Ok(Arg::Pred(self.pred(name, *pos)?, false)),
            ("x", _) | ("xd", RawArg::Vector(..)) => self.mov_arg(typed()?, kind == "xd", arg),
            _ => {
                if let Some(n) = kind.strip_prefix("d*").or_else(|| kind.strip_prefix("s*")) {
                    let n: usize = n.parse().map_err(|_| arg.pos().error("unreadable table row"))?;
                    return self.fixed(typed()?, n, kind.starts_with('d'), arg);
                }
                Err(arg.pos().error(format!("this operand must be {}", describe(kind))))
            }
        }
    }

    /// A vector register as a list of its elements.
    fn elements(&self, arg: &RawArg<'a>) -> Option<RawArg<'a>> {
        let RawArg::Name(name, pos) = arg else { return None };
        if let Some(name) = VECTORS.iter().find(|n| *n == name) {
            return Some(RawArg::Vector(FIELDS.map(|field| RawArg::Dotted(name, field[0], *pos)).to_vec(), *pos));
        }
        let (reg, _) = self.find(name).filter(|(reg, _)| reg.elements > 1)?;
        let fields = FIELDS.iter().take(reg.elements as usize);
        Some(RawArg::Vector(fields.map(|field| RawArg::Dotted(name, field[0], *pos)).collect(), *pos))
    }

    /// The address of a map of a tensor: generic, or the name of a parameter.
    fn map_address(&mut self, base: Option<&'a str>, offset: i64, pos: Pos) -> Result<Addr> {
        // The assembler takes 32 bits here, as it does nowhere else.
        if let Some((reg, index)) = base.and_then(|name| self.find(name))
            && matches!(reg.ty, Ty::B32 | Ty::U32 | Ty::S32)
        {
            return Ok(Addr { base: Base::R32(self.slot(reg, index, pos)?), offset });
        }
        match base.and_then(|name| self.var(name)) {
            Some(var) if var.space == Space::Param => {
                let at = offset.wrapping_add_unsigned(PARAM_WINDOW + var.at);
                Ok(Addr { base: Base::None, offset: at })
            }
            _ => self.address(Area::Generic, base, offset, pos),
        }
    }

    /// The address of a variable plus an offset in bytes.
    fn variable(&mut self, wide: bool, var: Var, offset: i64, pos: Pos) -> Result<R> {
        let at = var.at.wrapping_add_signed(offset);
        if var.space == Space::Shared { self.shared_address(wide, at, pos) } else { self.constant(wide, at, pos) }
    }

    fn fixed(&mut self, ty: Ty, n: usize, dest: bool, arg: &RawArg<'a>) -> Result<Arg> {
        let items = match arg {
            RawArg::Vector(items, _) if items.len() == n => items.as_slice(),
            _ => return Err(arg.pos().error(format!("expected a vector of {n} registers"))),
        };
        if items.iter().all(|item| matches!(item, RawArg::Sink(_))) {
            return Err(arg.pos().error("a vector needs a register"));
        }
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
        if items.len() > 1 && items.iter().all(|item| matches!(item, RawArg::Sink(_))) {
            return Err(arg.pos().error("a vector needs a register"));
        }
        let mut wide = None;
        let mut slots = Vec::new();
        let mut first: Option<Ty> = None;
        for item in items {
            let (reg, pos) = match item {
                RawArg::Name(name, pos) => (self.scalar(name, *pos)?, *pos),
                RawArg::Dotted(name, field, pos) => (self.element(name, field, *pos)?, *pos),
                other => (None, other.pos()),
            };
            let is_wide = match reg {
                Some((reg, _)) if reg.ty.bytes() >= ty.bytes() => {
                    if !holds(reg.ty, ty) {
                        return Err(pos.error(format!("a {:?} register cannot hold {ty:?}", reg.ty)));
                    }
                    let first = *first.get_or_insert(reg.ty);
                    if first.bytes() != reg.ty.bytes() || !first.agrees(reg.ty) {
                        return Err(pos.error(format!("the vector mixes {first:?} and {:?} registers", reg.ty)));
                    }
                    reg.ty.bytes() == 8
                }
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
                (None, RawArg::Sink(_)) if dest && n > 1 => SINK,
                (None, RawArg::Name(..)) if !dest && special(name_of(item)).is_none() => {
                    return Err(pos.error("this operand must be a register or a constant"));
                }
                (None, _) if !dest => self.source(ty, item)?,
                _ => return Err(pos.error("expected a register")),
            });
        }
        Ok(Arg::Many(slots, wide == Some(true)))
    }

    pub(super) fn pred_dest(&mut self, arg: &RawArg<'a>) -> Result<R> {
        match arg {
            RawArg::Sink(_) => Ok(SINK),
            RawArg::Name(name, pos) => self.pred(name, *pos),
            other => Err(other.pos().error("expected a predicate")),
        }
    }

    pub(super) fn dest(&mut self, ty: Ty, arg: &RawArg<'a>) -> Result<R> {
        match arg {
            RawArg::Sink(_) => Ok(SINK),
            RawArg::Name(name, pos) => {
                self.register(ty, name, *pos)?.ok_or_else(|| pos.error(format!("unknown register `{name}`")))
            }
            RawArg::Dotted(name, field, pos) => match self.element(name, field, *pos)? {
                Some(found) => self.typed(ty, found, name, *pos),
                None => Err(pos.error(format!("`{name}` is no vector of registers"))),
            },
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
                if *name == "%gridid" && wide {
                    return self.constant(true, 0, *pos);
                }
                if let Some(special) = special(name) {
                    match *name {
                        "%cluster_ctarank" | "%cluster_nctarank" => self.require((7, 8), 90),
                        "%aggr_smem_size" => self.require((8, 1), 90),
                        _ => {}
                    }
                    return self.special(special, wide, *pos);
                }
                match self.var(name) {
                    Some(var) => {
                        check_address(ty, var, *pos)?;
                        self.variable(wide, var, 0, *pos)
                    }
                    None if self.is_code(name) => Err(pos.error(format!(
                        "`{name}` cannot be read here: it is code, and calls through a pointer are not executed"
                    ))),
                    None => Err(match limits::of_register(name) {
                        Some(why) => pos.limit(format!("`{name}` cannot be read here: {why}")),
                        None => pos.error(format!("unknown name `{name}`")),
                    }),
                }
            }
            RawArg::Sum(name, offset, pos) => match self.var(name) {
                Some(var) => {
                    check_address(ty, var, *pos)?;
                    self.variable(wide, var, *offset, *pos)
                }
                None => Err(pos.error(format!("`{name}` is no variable"))),
            },
            RawArg::Dotted(name, field, pos) => {
                if let Some(found) = self.element(name, field, *pos)? {
                    return self.typed(ty, found, name, *pos);
                }
                let axis = FIELDS.iter().position(|names| names.contains(field)).map(|axis| axis as u8);
                let Some(axis) = axis.filter(|_| VECTORS.contains(name)) else {
                    return Err(pos.error(format!("`{name}.{field}` is no special register")));
                };
                if name.contains("cluster") {
                    self.require((7, 8), 90);
                }
                let special = match *name {
                    // The fourth element is always zero (PTX 10.1).
                    _ if axis == 3 => Special::Zero,
                    "%tid" => Special::Tid(axis),
                    "%ntid" => Special::NTid(axis),
                    "%ctaid" => Special::CtaId(axis),
                    "%nctaid" => Special::NCtaId(axis),
                    "%clusterid" => Special::ClusterId(axis),
                    "%nclusterid" => Special::NClusterId(axis),
                    "%cluster_ctaid" => Special::ClusterCtaId(axis),
                    "%cluster_nctaid" => Special::ClusterNCtaId(axis),
                    _ => return Err(pos.error(format!("`{name}.{field}` is no special register"))),
                };
                self.special(special, wide, *pos)
            }
            RawArg::Int(v, pos) => {
                let bits = ty.bytes() * 8;
                if matches!(ty, Ty::F32 | Ty::F64 | Ty::F16 | Ty::F16x2) {
                    return Err(pos.error("an integer where a float is needed"));
                }
                // The assembler cuts what does not fit.
                self.constant(wide, if bits >= 64 { *v } else { *v & ((1 << bits) - 1) }, *pos)
            }
            RawArg::F32(v, pos) if ty == Ty::F32 || ty == Ty::B32 => self.constant(false, u64::from(*v), *pos),
            RawArg::F64(v, pos) if ty == Ty::F64 || ty == Ty::B64 => self.constant(true, *v, *pos),
            RawArg::F64(v, pos) if ty == Ty::F32 => {
                self.constant(false, u64::from((f64::from_bits(*v) as f32).to_bits()), *pos)
            }
            RawArg::F32(v, pos) if ty == Ty::F64 => self.constant(true, f64::from(f32::from_bits(*v)).to_bits(), *pos),
            other => Err(other.pos().error(format!("this cannot be a source of type {ty:?}"))),
        }
    }

    /// An operand of a video instruction: a word, perhaps negated, perhaps with a selector of a part.
    fn part(&mut self, dest: bool, arg: &RawArg<'a>) -> Result<Arg> {
        let (name, selector, negate, pos) = match arg {
            RawArg::Dotted(name, field, pos) if self.find(name).is_some_and(|(r, _)| r.elements == 1) => {
                (*name, *field, false, *pos)
            }
            RawArg::Negated(name, field, pos) if !dest => (*name, *field, true, *pos),
            _ => {
                let slot = if dest { self.dest(Ty::U32, arg)? } else { self.source(Ty::U32, arg)? };
                return Ok(Arg::Part { slot, selector: String::new(), negate: false });
            }
        };
        match self.register(Ty::U32, name, pos)? {
            Some(slot) => Ok(Arg::Part { slot, selector: selector.to_owned(), negate }),
            None => Err(pos.error(format!("unknown register `{name}`"))),
        }
    }

    fn address(&mut self, area: Area, base: Option<&'a str>, offset: i64, pos: Pos) -> Result<Addr> {
        let Some(name) = base else {
            if area != Area::In(Space::Local) {
                return Err(pos.error("only local memory takes an address that is a number"));
            }
            return Ok(Addr { base: Base::None, offset });
        };
        if let Some((reg, index)) = self.scalar(name, pos)? {
            let slot = self.slot(reg, index, pos)?;
            let base = match reg.ty {
                Ty::B32 | Ty::U32 | Ty::S32 => Base::R32(slot),
                Ty::B64 | Ty::U64 | Ty::S64 => Base::R64(slot),
                _ => return Err(pos.error(format!("`{name}` is {:?}, no address", reg.ty))),
            };
            // `ldmatrix` and `stmatrix` without a space take 32 bits all the same.
            let narrow = matches!(base, Base::R32(_)) && !matches!(self.opcode(), "ldmatrix" | "stmatrix");
            if narrow && matches!(area, Area::Generic | Area::In(Space::Global)) {
                let what = if area == Area::Generic { "a generic" } else { "a global" };
                return Err(pos.error(format!("`{name}` has 32 bits: {what} address has 64")));
            }
            return Ok(Addr { base, offset });
        }
        let Some(var) = self.var(name) else { return Err(pos.error(format!("unknown name `{name}`"))) };
        let window = match area {
            Area::In(space) if space == var.space => 0,
            Area::In(Space::Cluster) if var.space == Space::Shared => 0,
            Area::In(space) => {
                return Err(
                    pos.error(format!("`{name}` is in {:?} memory, the instruction accesses {space:?}", var.space))
                );
            }
            Area::Generic => match var.space {
                Space::Shared | Space::Cluster => SHARED_WINDOW,
                Space::Local => LOCAL_WINDOW,
                Space::Global => 0,
                Space::Param | Space::Const => {
                    return Err(
                        pos.error(format!("`{name}` is in {:?} memory, which the instruction must name", var.space))
                    );
                }
            },
        };
        if self.opcode() == "st" && var.space == Space::Param && var.stack.is_none() {
            return Err(pos.error(format!("`{name}` is a parameter of the kernel, which cannot be written")));
        }
        if var.space == Space::Shared {
            let base = match window {
                0 => Base::R32(self.shared_address(false, 0, pos)?),
                _ => Base::R64(self.shared_address(true, window, pos)?),
            };
            return Ok(Addr { base, offset: offset.wrapping_add_unsigned(var.at) });
        }
        self.stack_param |= var.stack.is_some();
        Ok(Addr { base: Base::None, offset: offset.wrapping_add_unsigned(var.at.wrapping_add(window)) })
    }

    /// `mov` takes vectors on either side, as well as plain operands and predicates.
    fn mov_arg(&mut self, ty: Ty, dest: bool, arg: &RawArg<'a>) -> Result<Arg> {
        match arg {
            RawArg::Vector(_, pos) if !matches!(ty, Ty::B16 | Ty::B32 | Ty::B64 | Ty::B128) => {
                Err(pos.error(format!("only untyped registers are packed, not {ty:?}")))
            }
            RawArg::Vector(items, pos) if items.iter().all(|item| matches!(item, RawArg::Sink(_))) => {
                Err(pos.error("a vector needs a register"))
            }
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
                        item if dest => self.dest(piece, item)?,
                        item => self.source(piece, item)?,
                    });
                }
                Ok(Arg::Many(slots, false))
            }
            RawArg::Name("%is_explicit_cluster", pos) if ty == Ty::Pred => {
                self.require((7, 8), 90);
                Ok(Arg::Pred(self.explicit_cluster(*pos)?, false))
            }
            RawArg::Name(name, pos) if ty == Ty::Pred => Ok(Arg::Pred(self.pred(name, *pos)?, false)),
            RawArg::Int(v, _) if ty == Ty::Pred => Ok(Arg::Pred(TRUE, *v == 0)),
            RawArg::Not(name, pos) if ty == Ty::Pred => Ok(Arg::Pred(self.pred(name, *pos)?, true)),
            RawArg::Name("%clock" | "%clock_hi" | "%globaltimer_lo" | "%globaltimer_hi", _) => Ok(Arg::Int(32)),
            RawArg::Name("%clock64" | "%globaltimer", _) => Ok(Arg::Int(64)),
            _ => self.source(ty, arg).map(Arg::Slot),
        }
    }
}
