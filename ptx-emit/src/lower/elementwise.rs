//! Elementwise expressions on register tiles, scalars and windows of memory.
//!
//! Values are computed group by group, a group being the elements that one access of the destination covers, so that
//! operands in memory are loaded as wide as the result is stored and few registers are live.
//! 16-bit floats are computed in f32 and rounded where they are stored or cast.

use super::Lower;
use super::copy::Access;
use super::dims::Dims;
use super::reduce::Reduced;
use super::repeated::Repeated;
use super::tiles::{Tile, compute_class};
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;
use std::cell::RefCell;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported};
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{CopyAttrs, ExprData, ValueDef};
use tilec_ir::layout::{RegLayout, drop_dims};
use tilec_ir::ops::{Domain, Op};
use tilec_ir::types::{Elem, ElemRef};
use tilec_ir::typing::{Type, resolve_view, type_of};

/// What an expression is, as far as evaluation cares.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An exact integer.
    Index,
    /// A number, or numbers, computed in this class.
    Number(Class),
}

/// The distribution an expression is computed in.
#[derive(Clone)]
pub(super) struct Scope {
    pub(super) layout: RegLayout,
    pub(super) dim_bits: Dims,
}

/// The memory operands of an expression, and the distribution.
pub(super) struct Operands {
    scope: Scope,
    windows: Vec<(Expr, Access, Elem)>,
    /// The current group.
    group: Vec<usize>,
    /// Elements of the current group of each window.
    loaded: Vec<(Expr, Vec<Reg>)>,
    preds: Vec<Vec<Option<Reg>>>,
    /// Windows read as a whole before the first group.
    tiles: Vec<(Expr, Tile)>,
    /// Reductions, computed before the first group.
    reduced: Vec<(Expr, Reduced)>,
    /// Deferred `let`s, each after those that it names.
    deferred: Vec<(Value, Expr)>,
    /// Elements of the current group of each of them.
    named: Vec<(Value, Vec<Reg>)>,
    /// Parts that several elements take.
    repeated: RefCell<Repeated>,
}

impl Operands {
    fn new(scope: Scope) -> Operands {
        Operands {
            scope,
            windows: Vec::new(),
            group: Vec::new(),
            loaded: Vec::new(),
            preds: Vec::new(),
            tiles: Vec::new(),
            reduced: Vec::new(),
            deferred: Vec::new(),
            named: Vec::new(),
            repeated: RefCell::default(),
        }
    }

    /// Takes out the windows whose accesses cover other elements than those of the destination: of another order in memory.
    pub(super) fn take_unlike(&mut self, groups: &[Vec<usize>]) -> Vec<(Expr, Elem)> {
        let mut out = Vec::new();
        for i in (0..self.windows.len()).rev().filter(|&i| self.windows[i].1.groups != groups).collect::<Vec<_>>() {
            let (e, _, elem) = self.windows.remove(i);
            self.preds.remove(i);
            out.push((e, elem));
        }
        out
    }

    /// Of the registers of the current group those of some of its elements.
    fn of_group(&self, regs: &[Reg], elements: &[usize]) -> Vec<Reg> {
        if elements == self.group {
            return regs.to_vec();
        }
        let at = |v: &usize| self.group.iter().position(|w| w == v);
        let own = elements.iter().filter_map(|v| regs.get(at(v)?).copied()).collect::<Vec<_>>();
        assert!(own.len() == elements.len(), "bug: elements outside of their group");
        own
    }

    /// Whether a window of memory is among them.
    pub(super) fn reads_memory(&self) -> bool {
        !self.windows.is_empty()
    }

    /// Gives such a window's elements.
    pub(super) fn provide(&mut self, e: Expr, tile: Tile) {
        self.tiles.push((e, tile));
    }
}

impl Lower<'_> {
    /// Prepares the windows of memory that an expression reads; where `only` does not hold, a thread reads nothing from
    /// global memory.
    pub(super) fn operands(
        &mut self,
        e: Expr,
        scope: &Scope,
        attrs: &CopyAttrs,
        only: Option<Reg>,
    ) -> Result<Operands, Reported> {
        let mut out = Operands::new(scope.clone());
        self.find_windows(e, attrs, only, &mut out)?;
        Ok(out)
    }

    fn find_windows(
        &mut self,
        e: Expr,
        attrs: &CopyAttrs,
        only: Option<Reg>,
        out: &mut Operands,
    ) -> Result<(), Reported> {
        let is_tile = matches!(self.k.exprs[e], ExprData::Ref(v) if self.tiles[v].is_some());
        if !is_tile && let Some(view) = resolve_view(self.k, e) {
            let Some(elem) = self.elem(view.base) else { return Err(self.unsupported(e, "this element type")) };
            let access = self.access(e, &view, &out.scope.layout, &out.scope.dim_bits, attrs, only)?;
            out.preds.push(access.predicates());
            out.windows.push((e, access, elem));
            return Ok(());
        }
        // Of what it counts along only the extents are wanted.
        if matches!(self.k.exprs[e], ExprData::Iota { .. }) {
            return Ok(());
        }
        if matches!(self.k.exprs[e], ExprData::Reduce { .. }) {
            let reduced = self.reduce(e)?;
            out.reduced.push((e, reduced));
            return Ok(());
        }
        if let ExprData::Ref(v) = self.k.exprs[e]
            && let Some(init) = self.deferred.init(v)
            && out.deferred.iter().all(|(w, _)| *w != v)
        {
            self.find_windows(init, attrs, only, out)?;
            out.deferred.push((v, init));
        }
        for child in self.k.children(e) {
            self.find_windows(child, attrs, only, out)?;
        }
        Ok(())
    }

    /// The elements of group `g`, in the class the expression's type is computed in.
    pub(super) fn compute_group(
        &mut self,
        e: Expr,
        operands: &mut Operands,
        g: usize,
        group: &[usize],
    ) -> Result<Vec<Reg>, Reported> {
        operands.group = group.to_vec();
        operands.loaded.clear();
        for i in 0..operands.windows.len() {
            let pred = operands.preds[i][g];
            let (expr, access, elem) = &mut operands.windows[i];
            let (expr, elem) = (*expr, *elem);
            if access.groups.get(g).is_none_or(|own| own != group) {
                return Err(
                    self.unsupported(expr, "operands that are contiguous along different dimensions, this wide")
                );
            }
            let regs = self.load_group(expr, access, elem, group, pred)?;
            operands.loaded.push((expr, regs));
        }
        operands.named.clear();
        for i in 0..operands.deferred.len() {
            let (v, init) = operands.deferred[i];
            if matches!(type_of(self.k, init), Ok(Type::Tile(t)) if t.elem == ElemRef::Known(Elem::Bool)) {
                continue;
            }
            let class = self.class_of_expr(init)?;
            let regs = self.eval(init, operands, group, class)?;
            operands.named.push((v, regs));
        }
        let class = self.class_of_expr(e)?;
        self.eval(e, operands, group, class)
    }

    /// The class an expression is computed in.
    fn class_of_expr(&mut self, e: Expr) -> Result<Class, Reported> {
        Ok(match self.kind_of(e)? {
            Kind::Index => Class::F32,
            Kind::Number(class) => class,
        })
    }

    /// The element type of an expression that has one.
    pub(super) fn elem_of_expr(&self, e: Expr) -> Option<Elem> {
        match type_of(self.k, e).ok()?.elem() {
            Some(ElemRef::Known(elem)) => Some(elem),
            _ => None,
        }
    }

    /// What an expression is, looked up once: expressions are evaluated once per group of elements.
    pub(super) fn kind_of(&mut self, e: Expr) -> Result<Kind, Reported> {
        if let Some(kind) = self.kinds[e] {
            return Ok(kind);
        }
        let kind = match type_of(self.k, e) {
            Ok(Type::Index) => Kind::Index,
            Ok(t) => Kind::Number(match t.elem() {
                Some(ElemRef::Known(elem)) => compute_class(elem),
                _ => Class::F32,
            }),
            Err(d) => return Err(self.sink.report(*d.0)),
        };
        self.kinds[e] = Some(kind);
        Ok(kind)
    }

    /// `tile = e`.
    pub(super) fn assign_elementwise(&mut self, at: Expr, tile: &Tile, e: Expr) -> Result<(), Reported> {
        self.copy_elementwise(at, tile, e, &CopyAttrs::default())
    }

    /// `copy e -> tile`: windows in `e` are read as wide as the copy says.
    pub(super) fn copy_elementwise(
        &mut self,
        at: Expr,
        tile: &Tile,
        e: Expr,
        attrs: &CopyAttrs,
    ) -> Result<(), Reported> {
        if let ExprData::Ref(v) = self.k.exprs[e]
            && let Some(other) = self.tiles[v].clone().filter(|other| other.same_shape(tile))
        {
            // As they are: an infinity of e5m2 would not survive a conversion.
            for i in tile.registers() {
                self.mov(tile.regs[i], other.regs[i]);
            }
            return Ok(());
        }
        let scope = Scope { layout: tile.layout.clone(), dim_bits: tile.dim_bits.clone() };
        let mut operands = self.operands(e, &scope, attrs, None)?;
        let mut values = Vec::new();
        let groups = match operands.windows.first() {
            Some((_, access, _)) => access.groups.clone(),
            None => tile.elements().into_iter().map(|v| vec![v]).collect(),
        };
        let from = self.elem_of_expr(e);
        for (g, group) in groups.iter().enumerate() {
            let xs = self.compute_group(e, &mut operands, g, group)?;
            values.extend(group.iter().zip(xs).map(|(&v, x)| (v, self.wide_enough(x, from, tile.elem))));
        }
        self.set_computed(at, tile, &values)
    }

    fn eval(&mut self, e: Expr, operands: &Operands, group: &[usize], class: Class) -> Result<Vec<Reg>, Reported> {
        if let Some((_, regs)) = operands.loaded.iter().find(|(x, _)| *x == e) {
            return Ok(operands.of_group(regs, group).into_iter().map(|r| self.convert(r, class)).collect());
        }
        if let Some((_, tile)) = operands.tiles.iter().find(|(x, _)| *x == e) {
            return Ok(group
                .iter()
                .map(|&v| {
                    let x = self.get(tile, v);
                    self.convert(x, class)
                })
                .collect());
        }
        match self.k.exprs[e].clone() {
            ExprData::Int(_) => self.eval_index(e, group, class),
            ExprData::Float(bits) => Ok(vec![self.literal(f64::from_bits(bits), class); group.len()]),
            ExprData::Ref(v) => self.eval_ref(e, v, operands, group, class),
            ExprData::Cast { elem: ElemRef::Known(elem), arg } => {
                let inner = self.class_of_expr(arg)?;
                let xs = self.eval(arg, operands, group, inner)?;
                let from = self.elem_of_expr(arg);
                let mut out = Vec::new();
                for x in xs {
                    let x = self.wide_enough(x, from, elem);
                    let Some(raw) = self.narrow(x, elem) else { return Err(self.unsupported(e, "this conversion")) };
                    let wide = self.widen(raw, elem);
                    out.push(self.convert(wide, class));
                }
                Ok(out)
            }
            ExprData::Iota { axis, .. } => {
                let mut out = Vec::new();
                for &v in group {
                    let index = self.coordinate(&operands.scope, axis as usize, v);
                    let r = self.in32(index);
                    out.push(self.convert(r, class));
                }
                Ok(out)
            }
            ExprData::Lookup { table, index } => {
                let own = match self.kind_of(index)? {
                    Kind::Index => Class::B32,
                    Kind::Number(class) => class,
                };
                let at = self.eval(index, operands, group, own)?;
                let bytes = self.elem_of_expr(index).is_some_and(|elem| elem == Elem::U8);
                let xs = at.into_iter().map(|at| self.element(table, at, bytes)).collect::<Vec<_>>();
                Ok(xs.into_iter().map(|x| self.convert(x, class)).collect())
            }
            ExprData::Op { op, args } => match op.domain() {
                Domain::Select => {
                    let conds = self.eval_bool(args[0], operands, group)?;
                    let (a, b) =
                        (self.eval(args[1], operands, group, class)?, self.eval(args[2], operands, group, class)?);
                    Ok((0..group.len()).map(|i| self.choose(conds[i], a[i], b[i])).collect())
                }
                Domain::Integer => self.eval_index(e, group, class),
                Domain::Numeric | Domain::Float => self.eval_repeated(e, (op, &args), operands, group, class),
                Domain::Compare | Domain::Logic => Err(self.unsupported(e, "a truth value used as a number")),
            },
            ExprData::Cast { .. } => Err(self.unsupported(e, "this cast")),
            ExprData::Reduce { .. } => self.eval_reduced(e, operands, group, class),
            ExprData::Transpose(_) => Err(self.unsupported(e, "transposed register tiles")),
            ExprData::Mma(_) => Err(self.unsupported(e, "a product inside an expression")),
            ExprData::View(_) => Err(self.unsupported(e, "this window")),
        }
    }

    /// A numeric operation; what is the same for several elements is computed once.
    fn eval_repeated(
        &mut self,
        e: Expr,
        (op, args): (Op, &[Expr]),
        operands: &Operands,
        group: &[usize],
        class: Class,
    ) -> Result<Vec<Reg>, Reported> {
        let places = operands.repeated.borrow_mut().places(self.k, e, &operands.scope, group);
        let Some(places) = places else { return self.eval_numeric(e, (op, args), operands, group, class) };
        let known = |place: u64| operands.repeated.borrow().get(e, place, class);
        let mut missing: Vec<(u64, usize)> = Vec::new();
        for (&place, &v) in places.iter().zip(group) {
            if known(place).is_none() && missing.iter().all(|(p, _)| *p != place) {
                missing.push((place, v));
            }
        }
        let elements: Vec<usize> = missing.iter().map(|(_, v)| *v).collect();
        if !elements.is_empty() {
            let regs = self.eval_numeric(e, (op, args), operands, &elements, class)?;
            for ((place, _), reg) in missing.into_iter().zip(regs) {
                operands.repeated.borrow_mut().set(e, place, class, reg);
            }
        }
        let found: Option<Vec<Reg>> = places.into_iter().map(known).collect();
        Ok(found.unwrap_or_else(|| panic!("bug: a part of an expression was computed at no place")))
    }

    fn eval_numeric(
        &mut self,
        e: Expr,
        (op, args): (Op, &[Expr]),
        operands: &Operands,
        group: &[usize],
        class: Class,
    ) -> Result<Vec<Reg>, Reported> {
        if self.kind_of(e)? == Kind::Index {
            return self.eval_index(e, group, class);
        }
        let mut parts = Vec::new();
        for &a in args {
            parts.push(self.eval(a, operands, group, class)?);
        }
        let unsigned = class == Class::B32 && self.elem_of_expr(e) == Some(Elem::U32);
        let mut out = Vec::new();
        for i in 0..group.len() {
            let xs: Vec<Reg> = parts.iter().map(|p| p[i]).collect();
            if unsigned && op == Op::Abs {
                out.push(xs[0]);
                continue;
            }
            match self.arithmetic(op, (class, unsigned), &xs) {
                Some(r) => out.push(r),
                None if class == Class::F64 => {
                    let f = op.token();
                    let way = format!("`{f}` of f64: f32 has it, `cast<f64>({f}(cast<f32>(x)))`");
                    return Err(self.unsupported(e, &way));
                }
                None => return Err(self.unsupported(e, "this operator on elements of this type")),
            }
        }
        Ok(out)
    }

    fn eval_ref(
        &mut self,
        e: Expr,
        v: Value,
        operands: &Operands,
        group: &[usize],
        class: Class,
    ) -> Result<Vec<Reg>, Reported> {
        if let Some(tile) = self.tiles[v].clone() {
            if tile.dim_bits.is_empty() {
                let x = self.get(&tile, 0);
                let x = self.convert(x, class);
                return Ok(vec![x; group.len()]);
            }
            if tile.layout != operands.scope.layout {
                let Some(elements) = repeated_elements((&tile.layout, &tile.dim_bits), &operands.scope, group) else {
                    return Err(self.different_layouts(e, v, &tile, operands));
                };
                return Ok(elements
                    .into_iter()
                    .map(|i| {
                        let x = self.get(&tile, i);
                        self.convert(x, class)
                    })
                    .collect());
            }
            return Ok(self.get_all(&tile, group).into_iter().map(|x| self.convert(x, class)).collect());
        }
        if let Some((_, regs)) = operands.named.iter().find(|(w, _)| *w == v) {
            return Ok(operands.of_group(regs, group).into_iter().map(|r| self.convert(r, class)).collect());
        }
        if let Some(r) = self.scalars[v] {
            let x = self.convert(r, class);
            return Ok(vec![x; group.len()]);
        }
        if self.ints[v].is_some() {
            return self.eval_index(e, group, class);
        }
        if let (ValueDef::Let, Some(init)) = (&self.k.values[v].def, tilec_ir::typing::let_init(self.k, v)) {
            return self.eval(init, operands, group, class);
        }
        Err(self.unsupported(e, "this value"))
    }

    /// Refuses a tile that threads hold in another way than what it is combined with.
    fn different_layouts(&mut self, e: Expr, v: Value, tile: &Tile, operands: &Operands) -> Reported {
        let name = &self.k.values[v].name;
        let message = format!(
            "not compiled to PTX for {} yet: `{name}` has the layout {}, and is combined with tiles in the layout {}",
            self.target.name(),
            tile.layout,
            operands.scope.layout
        );
        let d = Diagnostic::error(codes::NOT_LOWERED, self.k.expr_spans[e], message)
            .with_place(self.k.values[v].span, format!("`{name}` gets its layout here"))
            .with_note(format!(
                "copy it to a tile without a layout, which takes the other one: `var y = reg ..`, `copy {name} -> y`"
            ));
        self.sink.report(d)
    }

    /// A reduction's part of a group.
    fn eval_reduced(
        &mut self,
        e: Expr,
        operands: &Operands,
        group: &[usize],
        class: Class,
    ) -> Result<Vec<Reg>, Reported> {
        let found = operands.reduced.iter().find(|(x, _)| *x == e);
        let regs: Option<Vec<Reg>> = found.and_then(|(_, r)| {
            let elements = repeated_elements((&r.layout, &r.dim_bits), &operands.scope, group)?;
            elements.into_iter().map(|i| *r.regs.get(i)?).collect()
        });
        match regs {
            Some(regs) => Ok(regs.into_iter().map(|r| self.convert(r, class)).collect()),
            None => {
                Err(self.unsupported(e, "a reduction beside a tile of another layout than the one that is reduced"))
            }
        }
    }

    fn eval_index(&mut self, e: Expr, group: &[usize], class: Class) -> Result<Vec<Reg>, Reported> {
        let x = self.index(e)?;
        let narrow = super::index::fits32(x.lo, x.hi);
        if class == Class::B32 && !narrow {
            return Err(self.unsupported(e, "an index beyond 31 bits beside 32-bit elements"));
        }
        if let Some(c) = x.as_const() {
            return Ok(vec![self.int_literal(c, class); group.len()]);
        }
        let r = if narrow { self.in32(x) } else { self.in64(x) };
        let r = self.convert(r, class);
        Ok(vec![r; group.len()])
    }

    /// `a` where `cond` holds, else `b`, both of one class.
    pub(super) fn choose(&mut self, cond: Reg, a: Reg, b: Reg) -> Reg {
        let class = self.emit.func.regs[a];
        let select = match class {
            Class::F32 => P::SelpF32,
            Class::F64 => P::SelpF64,
            Class::B64 => P::SelpB64,
            _ => P::SelpB32,
        };
        self.emit.pure(class, select, [a.into(), b.into(), cond.into()])
    }

    /// The coordinate along `axis` of the element with register index `v`.
    fn coordinate(&mut self, scope: &Scope, axis: usize, v: usize) -> super::index::Int {
        let shift: u32 = scope.dim_bits[..axis].iter().sum();
        let mask = (1u64 << scope.dim_bits[axis]) - 1;
        let cols: Vec<u64> =
            (0..scope.layout.thread_bits()).map(|i| scope.layout.thread_col(i) >> shift & mask).collect();
        let tid = self.tid();
        let thread = self.linear_map(tid, &cols);
        let c = scope.layout.at(0, v as u64) >> shift & mask;
        match thread.as_const() {
            Some(_) => super::index::Int::constant(c as i64),
            None => {
                let t = self.in32(thread);
                let x = self.emit.pure(Class::B32, P::XorB32, [t.into(), Operand::Imm(c as i64)]);
                super::index::Int::r32(x, 0, i128::from(mask))
            }
        }
    }

    /// An integer, exactly where the class can hold it.
    fn int_literal(&mut self, x: i64, class: Class) -> Reg {
        match class {
            Class::B32 | Class::B64 => {
                let mov = if class == Class::B32 { P::MovB32 } else { P::MovB64 };
                self.emit.pure(class, mov, [Operand::Imm(x)])
            }
            _ => self.literal(x as f64, class),
        }
    }

    pub(super) fn literal(&mut self, x: f64, class: Class) -> Reg {
        match class {
            Class::F64 => self.emit.pure(class, P::MovF64, [Operand::F64(x)]),
            Class::B32 => self.emit.pure(class, P::MovB32, [Operand::Imm(x as i64)]),
            Class::B64 => self.emit.pure(class, P::MovB64, [Operand::Imm(x as i64)]),
            _ => self.emit.pure(Class::F32, P::MovF32, [Operand::F32(x as f32)]),
        }
    }

    /// Between the classes that numbers are computed in.
    fn convert(&mut self, x: Reg, to: Class) -> Reg {
        let from = self.emit.func.regs[x];
        let op = match (from, to) {
            (a, b) if a == b => return x,
            (Class::F32, Class::F64) => P::CvtF64F32,
            (Class::F64, Class::F32) => P::CvtRnF32F64,
            (Class::B32, Class::F32) => P::CvtRnF32S32,
            (Class::B32, Class::F64) => P::CvtRnF64S32,
            (Class::B64, Class::F32) => P::CvtRnF32S64,
            (Class::B64, Class::F64) => P::CvtRnF64S64,
            (Class::B32, Class::B64) => P::CvtS64S32,
            (Class::B64, Class::B32) => P::CvtS32S64,
            _ => return x,
        };
        self.emit.pure(to, op, [x.into()])
    }

    fn arithmetic(&mut self, op: Op, (class, unsigned): (Class, bool), xs: &[Reg]) -> Option<Reg> {
        let srcs: Vec<Operand> = xs.iter().map(|&r| r.into()).collect();
        let instr = match (op, class) {
            (Op::Exp, Class::F32) => {
                let log2e = self.literal(std::f64::consts::LOG2_E, class);
                let scaled = self.emit.pure(class, P::MulF32, [xs[0].into(), log2e.into()]);
                return Some(self.emit.pure(class, P::Ex2ApproxFtzF32, [scaled.into()]));
            }
            (Op::Log, Class::F32) => {
                let ln2 = self.literal(std::f64::consts::LN_2, class);
                let log2 = self.emit.pure(class, P::Lg2ApproxF32, srcs);
                return Some(self.emit.pure(class, P::MulF32, [log2.into(), ln2.into()]));
            }
            (Op::Erf, Class::F32) => return Some(self.erf(xs[0])),
            (Op::FastTanh, Class::F32) if self.target.has_tanh() => P::TanhApproxF32,
            (Op::Tanh | Op::FastTanh, Class::F32) => {
                // 1 - 2 / (2^(2x·log2 e) + 1): right at both infinities. Where `.ftz` changes a power or a reciprocal the result is 1 or -1.
                let factor = self.literal(2.0 * std::f64::consts::LOG2_E, class);
                let scaled = self.emit.pure(class, P::MulF32, [xs[0].into(), factor.into()]);
                let power = self.emit.pure(class, P::Ex2ApproxFtzF32, [scaled.into()]);
                let (one, twice) = (self.literal(1.0, class), self.literal(-2.0, class));
                let below = self.emit.pure(class, P::AddF32, [power.into(), one.into()]);
                let part = self.emit.pure(class, P::RcpApproxFtzF32, [below.into()]);
                return Some(self.emit.pure(class, P::FmaRnF32, [part.into(), twice.into(), one.into()]));
            }
            _ => instruction(op, (class, unsigned))?,
        };
        Some(self.emit.pure(class, instr, srcs))
    }

    /// Truth values of a group.
    fn eval_bool(&mut self, e: Expr, operands: &Operands, group: &[usize]) -> Result<Vec<Reg>, Reported> {
        if let Some(init) = self.deferred.named(self.k, e) {
            return self.eval_bool(init, operands, group);
        }
        let ExprData::Op { op, args } = self.k.exprs[e].clone() else {
            return Err(self.unsupported(e, "this condition"));
        };
        let mut out = Vec::new();
        match op.domain() {
            Domain::Logic => {
                let mut parts = Vec::new();
                for &a in &args {
                    parts.push(self.eval_bool(a, operands, group)?);
                }
                for i in 0..group.len() {
                    let srcs: Vec<Operand> = parts.iter().map(|p| p[i].into()).collect();
                    let instr = match op {
                        Op::And => P::AndPred,
                        Op::Or => P::OrPred,
                        _ => P::NotPred,
                    };
                    out.push(self.emit.pure(Class::Pred, instr, srcs));
                }
            }
            Domain::Compare => {
                if self.kind_of(args[0])? == Kind::Index && self.kind_of(args[1])? == Kind::Index {
                    let (a, b) = (self.index(args[0])?, self.index(args[1])?);
                    return Ok(vec![self.int_compare(op, a, b); group.len()]);
                }
                if let &[a, b] = &args[..]
                    && let Some(found) = self.compare_counted(op, [a, b], &operands.scope, group)?
                {
                    return Ok(found);
                }
                let mut class = self.class_of_expr(args[0])?;
                let other = self.class_of_expr(args[1])?;
                if self.kind_of(args[0])? == Kind::Index {
                    class = other;
                }
                let (a, b) = (self.eval(args[0], operands, group, class)?, self.eval(args[1], operands, group, class)?);
                let unsigned = class == Class::B32 && args.iter().any(|&x| self.elem_of_expr(x) == Some(Elem::U32));
                for i in 0..group.len() {
                    match compare_op(op, (class, unsigned)) {
                        Some(instr) => out.push(self.emit.pure(Class::Pred, instr, [a[i].into(), b[i].into()])),
                        None => return Err(self.unsupported(e, "this comparison")),
                    }
                }
            }
            _ => return Err(self.unsupported(e, "this condition")),
        }
        Ok(out)
    }

    /// A condition that is the same in all threads.
    pub(super) fn condition(&mut self, e: Expr) -> Result<Reg, Reported> {
        let ExprData::Op { op, args } = self.k.exprs[e].clone() else {
            return Err(self.unsupported(e, "this condition"));
        };
        let indices = op.domain() == Domain::Compare
            && self.kind_of(args[0])? == Kind::Index
            && self.kind_of(args[1])? == Kind::Index;
        if indices {
            let (a, b) = (self.index(args[0])?, self.index(args[1])?);
            return Ok(self.int_compare(op, a, b));
        }
        if op.domain() == Domain::Logic {
            let mut parts = Vec::new();
            for &a in &args {
                parts.push(Operand::Reg(self.condition(a)?));
            }
            let instr = match op {
                Op::And => P::AndPred,
                Op::Or => P::OrPred,
                _ => P::NotPred,
            };
            return Ok(self.emit.pure(Class::Pred, instr, parts));
        }
        let scope = Scope {
            layout: RegLayout::new(Vec::new(), vec![0; self.thread_bits as usize], 0).expect("a scalar's layout"),
            dim_bits: Dims::of(&[]),
        };
        let operands = Operands::new(scope);
        Ok(self.eval_bool(e, &operands, &[0])?[0])
    }

    /// A scalar expression in its class.
    pub(super) fn scalar(&mut self, e: Expr) -> Result<Reg, Reported> {
        let scope = Scope {
            layout: RegLayout::new(Vec::new(), vec![0; self.thread_bits as usize], 0).expect("a scalar's layout"),
            dim_bits: Dims::of(&[]),
        };
        let operands = Operands::new(scope);
        let class = self.class_of_expr(e)?;
        Ok(self.eval(e, &operands, &[0], class)?[0])
    }
}

/// The register indices of the elements of a tile with extents of 1 that the elements of a group are combined with; `None` if
/// the thread does not hold them.
fn repeated_elements((layout, bits): (&RegLayout, &[u32]), scope: &Scope, group: &[usize]) -> Option<Vec<usize>> {
    if scope.layout.repeated(&scope.dim_bits, bits)?.thread() != layout.thread() {
        return None;
    }
    group
        .iter()
        .map(|&v| {
            let index = drop_dims(scope.layout.at(0, v as u64), &scope.dim_bits, bits)?;
            (0..1usize << layout.value_bits()).find(|&i| layout.at(0, i as u64) == index)
        })
        .collect()
}

/// The instruction that an operator on numbers is, where it is one on every target; words without signs differ from those with in some.
pub(super) fn instruction(op: Op, (class, unsigned): (Class, bool)) -> Option<P> {
    Some(match (op, class) {
        (Op::Add, Class::F32) => P::AddF32,
        (Op::Add, Class::F64) => P::AddF64,
        (Op::Add, Class::B32) => P::AddS32,
        (Op::Add, Class::B64) => P::AddS64,
        (Op::Sub, Class::F32) => P::SubF32,
        (Op::Sub, Class::F64) => P::SubF64,
        (Op::Sub, Class::B32) => P::SubS32,
        (Op::Sub, Class::B64) => P::SubS64,
        (Op::Mul, Class::F32) => P::MulF32,
        (Op::Mul, Class::F64) => P::MulF64,
        (Op::Mul, Class::B32) => P::MulLoS32,
        (Op::Mul, Class::B64) => P::MulLoS64,
        (Op::Fma, Class::F32) => P::FmaRnF32,
        (Op::Fma, Class::F64) => P::FmaRnF64,
        (Op::Div, Class::F32) => P::DivRnF32,
        (Op::Div, Class::F64) => P::DivRnF64,
        (Op::Min, Class::F32) => P::MinF32,
        (Op::Min, Class::F64) => P::MinF64,
        (Op::Min, Class::B32) if unsigned => P::MinU32,
        (Op::Min, Class::B32) => P::MinS32,
        (Op::Min, Class::B64) => P::MinS64,
        (Op::Max, Class::F32) => P::MaxF32,
        (Op::Max, Class::F64) => P::MaxF64,
        (Op::Max, Class::B32) if unsigned => P::MaxU32,
        (Op::Max, Class::B32) => P::MaxS32,
        (Op::Max, Class::B64) => P::MaxS64,
        (Op::Neg, Class::F32) => P::NegF32,
        (Op::Neg, Class::F64) => P::NegF64,
        (Op::Neg, Class::B32) => P::NegS32,
        (Op::Neg, Class::B64) => P::NegS64,
        (Op::Abs, Class::F32) => P::AbsF32,
        (Op::Abs, Class::F64) => P::AbsF64,
        (Op::Abs, Class::B32) => P::AbsS32,
        (Op::Abs, Class::B64) => P::AbsS64,
        (Op::Exp2, Class::F32) => P::Ex2ApproxFtzF32,
        (Op::Log2, Class::F32) => P::Lg2ApproxF32,
        (Op::Sqrt, Class::F32) => P::SqrtRnF32,
        (Op::Sqrt, Class::F64) => P::SqrtRnF64,
        (Op::Rsqrt, Class::F32) => P::RsqrtApproxF32,
        _ => return None,
    })
}

fn compare_op(op: Op, (class, unsigned): (Class, bool)) -> Option<P> {
    Some(match (op, class) {
        (Op::Eq, Class::F32) => P::SetpEqF32,
        (Op::Ne, Class::F32) => P::SetpNeuF32,
        (Op::Lt, Class::F32) => P::SetpLtF32,
        (Op::Le, Class::F32) => P::SetpLeF32,
        (Op::Gt, Class::F32) => P::SetpGtF32,
        (Op::Ge, Class::F32) => P::SetpGeF32,
        (Op::Eq, Class::F64) => P::SetpEqF64,
        (Op::Ne, Class::F64) => P::SetpNeuF64,
        (Op::Lt, Class::F64) => P::SetpLtF64,
        (Op::Le, Class::F64) => P::SetpLeF64,
        (Op::Gt, Class::F64) => P::SetpGtF64,
        (Op::Ge, Class::F64) => P::SetpGeF64,
        (Op::Lt, Class::B32) if unsigned => P::SetpLtU32,
        (Op::Le, Class::B32) if unsigned => P::SetpLeU32,
        (Op::Gt, Class::B32) if unsigned => P::SetpGtU32,
        (Op::Ge, Class::B32) if unsigned => P::SetpGeU32,
        (Op::Eq, Class::B32) => P::SetpEqS32,
        (Op::Ne, Class::B32) => P::SetpNeS32,
        (Op::Lt, Class::B32) => P::SetpLtS32,
        (Op::Le, Class::B32) => P::SetpLeS32,
        (Op::Gt, Class::B32) => P::SetpGtS32,
        (Op::Ge, Class::B32) => P::SetpGeS32,
        (Op::Eq, Class::B64) => P::SetpEqS64,
        (Op::Ne, Class::B64) => P::SetpNeS64,
        (Op::Lt, Class::B64) => P::SetpLtS64,
        (Op::Le, Class::B64) => P::SetpLeS64,
        (Op::Gt, Class::B64) => P::SetpGtS64,
        (Op::Ge, Class::B64) => P::SetpGeS64,
        _ => return None,
    })
}
