//! Integers in registers and in memory that are used as indices.
//!
//! An index is expected in ranges of windows, bounds of loops and numbers of signals. An integer scalar there becomes
//! `index(n)`, which the parser inserts (`write_out`), so all other code sees explicit conversions. The integer must be
//! constant: a parameter, a `let`, or an element of a tensor that the kernel does not write. A `var`, or an element of
//! memory that is written, gets a `let` in front of the statement. A `var` that holds an element of such a constant
//! tensor stands for that element, which any thread can read.

use crate::attributes::CopyAttrs;
use crate::entities::{Block, Expr, Stmt, Value};
use crate::kernel::{ExprData, Kernel, Range, StmtData, ValueDef, View};
use crate::names::Parts;
use crate::ops::{Domain, Op};
use crate::types::{Elem, ElemRef, TileTy};
use crate::typing::{Extent, Type, let_init, may_count, resolve_view, type_of};

/// Whether the index `e` depends on an integer in a register or in memory, so that it may have any value.
pub fn is_of_value(k: &Kernel, e: Expr) -> bool {
    has_number(k, e, |start, end| vec![start, end])
}

/// Whether such an integer determines the start of the index `e`. Ends of loops do not count, because they only limit
/// the range.
pub fn begins_at_value(k: &Kernel, e: Expr) -> bool {
    has_number(k, e, |start, _| vec![start])
}

/// Whether an index contains an integer from a register or memory. `of_loop` selects the start or end of a loop, from
/// which its variable is computed.
fn has_number(k: &Kernel, e: Expr, of_loop: impl Fn(Expr, Expr) -> Vec<Expr>) -> bool {
    let mut parts = Parts::of(k, e);
    while let Some(e) = parts.take() {
        match k.exprs[e] {
            ExprData::Index(_) => return true,
            ExprData::Ref(v) if matches!(k.values[v].def, ValueDef::Loop) && parts.once(v) => {
                for s in k.statement_data() {
                    if let StmtData::For { var, start, end, .. } = *s
                        && var == v
                    {
                        of_loop(start, end).into_iter().for_each(|e| parts.also(e));
                    }
                }
            }
            _ => parts.inside(e),
        }
    }
    false
}

/// Whether the kernel writes a tensor.
pub fn is_written(k: &Kernel, tensor: Value) -> bool {
    k.statement_data().any(|s| match s {
        StmtData::Copy { dst, .. } => element_of(k, *dst) == Some(tensor),
        _ => false,
    })
}

/// The tensor of which an expression is an element, or a window.
fn element_of(k: &Kernel, e: Expr) -> Option<Value> {
    resolve_view(k, e).map(|view| view.base).filter(|&base| k.tensor_ty(base).is_some())
}

/// Whether a scalar is the same wherever it is computed: what it reads does not change.
pub fn is_constant(k: &Kernel, e: Expr) -> bool {
    let mut parts = Parts::of(k, e);
    while let Some(e) = parts.take() {
        if !may_be_constant(k, e, &mut parts) {
            return false;
        }
        k.children(e).into_iter().for_each(|c| parts.also(c));
    }
    true
}

/// The same, but without its operands. Elements for which a name stands are included.
fn may_be_constant(k: &Kernel, e: Expr, parts: &mut Parts<'_>) -> bool {
    let base = match &k.exprs[e] {
        ExprData::Ref(v) => Some(*v),
        ExprData::View(view) => Some(view.base),
        ExprData::Reduce { .. }
        | ExprData::Scan { .. }
        | ExprData::Combine(_)
        | ExprData::Part { .. }
        | ExprData::Mma(_)
        | ExprData::Iota { .. }
        | ExprData::Reshape { .. }
        | ExprData::Permute { .. }
        | ExprData::Concat { .. }
        | ExprData::Transpose(_) => return false,
        _ => None,
    };
    base.is_none_or(|v| match k.values[v].def {
        ValueDef::Tensor(_) => !is_written(k, v),
        ValueDef::Let => let_init(k, v).is_some_and(|init| match element_of(k, init) {
            Some(_) => {
                parts.named(v);
                true
            }
            None => matches!(type_of(k, init), Ok(Type::Index | Type::Scalar(_))),
        }),
        ValueDef::Var(_) | ValueDef::Smem(_) | ValueDef::Channel { .. } => false,
        _ => true,
    })
}

/// Inserts the conversions of integers in registers and in memory to indices.
pub(crate) fn write_out(k: &mut Kernel) {
    Writer { k, before: Vec::new(), register_elements: Vec::new() }.block_of_body();
}

/// Converts the integers in `e` to indices, so that index arithmetic does not wrap around.
pub(crate) fn of_indices(k: &mut Kernel, e: Expr) {
    match k.exprs[e].clone() {
        ExprData::Int(_) | ExprData::Float(_) | ExprData::Index(_) => {}
        ExprData::Op { op: Op::Select, args } => args[1..].iter().for_each(|&arg| of_indices(k, arg)),
        ExprData::Op { op, args } if matches!(op.domain(), Domain::Numeric | Domain::Integer) => {
            args.into_iter().for_each(|arg| of_indices(k, arg));
        }
        own => {
            if is_number(k, e) {
                let arg = k.expr(own, k.expr_spans[e]);
                k.exprs[e] = ExprData::Index(arg);
            }
        }
    }
}

/// Whether `e` is one number of an integer type, in a register or in memory.
fn is_number(k: &Kernel, e: Expr) -> bool {
    match type_of(k, e) {
        Ok(Type::Scalar(elem)) => may_count(k, elem),
        Ok(Type::View(view)) => view.rank == 0 && may_count(k, view.elem),
        _ => false,
    }
}

struct Writer<'k> {
    k: &'k mut Kernel,
    /// What goes in front of the statement.
    before: Vec<Stmt>,
    /// The element that a register variable holds here.
    register_elements: Vec<(Value, Expr)>,
}

impl Writer<'_> {
    fn block_of_body(&mut self) {
        self.block(self.k.body);
    }

    fn block(&mut self, b: Block) {
        let outside = self.register_elements.len();
        let mut out = Vec::new();
        for s in self.k.blocks[b].clone() {
            self.statement(s);
            for &new in &self.before {
                self.k.plans[new] = self.k.plans[s];
            }
            out.append(&mut self.before);
            out.push(s);
            for inner in self.k.sub_blocks(s) {
                self.block(inner);
            }
            self.register_elements.extend(copied_element(self.k, s));
        }
        self.register_elements.truncate(outside);
        self.k.blocks[b] = out;
    }

    fn statement(&mut self, s: Stmt) {
        for e in self.k.stmts[s].exprs() {
            self.ranges(e);
        }
        match self.k.stmts[s].clone() {
            StmtData::For { start, end, step, cond, .. } => {
                [start, end, step].into_iter().for_each(|e| self.index(e));
                cond.into_iter().for_each(|cond| self.loop_condition(cond));
            }
            StmtData::Signal { index, .. } => self.index(index),
            // What is computed of elements has no type of their own.
            StmtData::Let { init, .. } if self.is_number(init) && self.is_of_elements(init) => self.index(init),
            StmtData::If { cond, .. } => self.truth(cond),
            StmtData::Copy { attrs: CopyAttrs { when: Some(when), .. }, .. } => self.truth(when),
            _ => {}
        }
    }

    /// The indices inside an expression.
    fn ranges(&mut self, e: Expr) {
        for c in self.k.children(e) {
            self.ranges(c);
        }
        match self.k.exprs[e].clone() {
            ExprData::View(mut view) => {
                for range in &mut view.ranges {
                    match *range {
                        Range::At(at) if self.is_tile_of_numbers(at) => *range = Range::Gather(self.in_variable(at)),
                        Range::At(at) => self.index(at),
                        Range::From { start, end } => {
                            [Some(start), end].into_iter().flatten().for_each(|e| self.index(e))
                        }
                        Range::Gather(_) => {}
                    }
                }
                if !matches!(&self.k.exprs[e], ExprData::View(own) if *own == view) {
                    self.k.exprs[e] = ExprData::View(view);
                }
            }
            ExprData::Index(arg) => self.make_constant(e, arg),
            _ => {}
        }
    }

    /// Whether `e` is a tile of integers, each of which is an index.
    fn is_tile_of_numbers(&self, e: Expr) -> bool {
        matches!(type_of(self.k, e), Ok(Type::Tile(t)) if t.space.in_registers() && may_count(self.k, t.elem))
    }

    /// A tile of integers as a register variable, which threads hold wherever it is used.
    fn in_variable(&mut self, e: Expr) -> Expr {
        if matches!(self.k.exprs[e], ExprData::Ref(v) if matches!(self.k.values[v].def, ValueDef::Var(_))) {
            return e;
        }
        let span = self.k.expr_spans[e];
        let Ok(Type::Tile(tile)) = type_of(self.k, e) else { unreachable!("a tile of integers") };
        let extent = |k: &mut Kernel, n: Extent| match n {
            Extent::Known(n) => k.int(n as i64, span),
            Extent::Sym(e) => k.copy_expr(e),
        };
        let shape = tile.shape.into_iter().map(|n| extent(self.k, n)).collect();
        let ty = TileTy::registers(tile.elem, shape, None);
        let name = match self.k.exprs[e] {
            ExprData::Ref(v) => format!("{}_now", self.k.values[v].name),
            _ => "rows".to_owned(),
        };
        let value = self.k.value(&name, span, ValueDef::Var(ty));
        self.before.push(self.k.stmt(StmtData::Var { value, init: Some(e) }, span));
        self.k.value_ref(value, span)
    }

    /// What is where an index is wanted.
    fn index(&mut self, e: Expr) {
        match self.k.exprs[e].clone() {
            ExprData::Int(_) | ExprData::Float(_) | ExprData::Index(_) => {}
            ExprData::Op { op: Op::Select, args } => {
                self.condition(args[0]);
                args[1..].iter().for_each(|&arg| self.index(arg));
            }
            ExprData::Op { op, args } if matches!(op.domain(), Domain::Numeric | Domain::Integer) => {
                args.into_iter().for_each(|arg| self.index(arg));
            }
            _ => {
                if self.is_number(e) {
                    let arg = self.k.exprs[e].clone();
                    let arg = self.k.expr(arg, self.k.expr_spans[e]);
                    self.k.exprs[e] = ExprData::Index(arg);
                    self.make_constant(e, arg);
                }
            }
        }
    }

    /// The condition of a statement. Tiles with one truth value are numbers there, which are compared with 0.
    fn truth(&mut self, e: Expr) {
        if let ExprData::Op { op, args } = self.k.exprs[e].clone()
            && op.domain() == Domain::Logic
        {
            return args.into_iter().for_each(|arg| self.truth(arg));
        }
        if let Some(truth) = self.single_truth(e) {
            let span = self.k.expr_spans[e];
            let [one, zero, none] = [1, 0, 0].map(|n| self.k.int(n, span));
            let number = self.k.expr(ExprData::Op { op: Op::Select, args: [truth, one, zero].to_vec() }, span);
            self.k.exprs[e] = ExprData::Op { op: Op::Ne, args: [number, none].to_vec() };
        }
        self.condition(e);
    }

    /// A comparison of an index with an integer compares indices. So does a comparison of constant elements, because
    /// any thread can read them.
    fn condition(&mut self, e: Expr) {
        let ExprData::Op { op, args } = self.k.exprs[e].clone() else { return };
        match (op.domain(), &args[..]) {
            (Domain::Logic, _) => args.into_iter().for_each(|arg| self.condition(arg)),
            (Domain::Compare, &[a, b]) => {
                let index = |this: &Self, e| type_of(this.k, e) == Ok(Type::Index) && this.k.as_int(e).is_none();
                let mixed = [(a, b), (b, a)].into_iter().any(|(a, b)| index(self, a) && self.is_number(b));
                let settled = |e| self.k.as_int(e).is_some() || self.is_constant_memory(e);
                if mixed || settled(a) && settled(b) && [a, b].into_iter().any(|e| self.is_constant_memory(e)) {
                    [a, b].into_iter().for_each(|e| self.index(e));
                } else {
                    [a, b].into_iter().for_each(|e| self.element(e));
                }
            }
            _ => {}
        }
    }

    /// The element of a tile of truth values that has one, such as `any(x > 0.0, 0)` or `sum(x, 0) > 3.0`: a copy of
    /// `e`, or an element of a variable in front.
    fn single_truth(&mut self, e: Expr) -> Option<Expr> {
        let span = self.k.expr_spans[e];
        let ty = type_of(self.k, e).ok()?;
        if ty.elem() != Some(ElemRef::Known(Elem::Bool)) || ty == Type::Bool {
            return None;
        }
        let is_operation = matches!(self.k.exprs[e], ExprData::Op { .. });
        match ty {
            Type::View(view) if view.rank == 0 && !is_operation => {
                let own = self.k.exprs[e].clone();
                Some(self.k.expr(own, span))
            }
            Type::Tile(tile) if tile.shape.iter().all(|n| *n == Extent::Known(1)) => {
                let own = self.k.exprs[e].clone();
                let init = self.k.expr(own, span);
                let shape: Vec<Expr> = tile.shape.iter().map(|_| self.k.int(1, span)).collect();
                let ranges = tile.shape.iter().map(|_| Range::At(self.k.int(0, span))).collect();
                let ty = TileTy::registers(tile.elem, shape, None);
                let base = self.k.value("truth", span, ValueDef::Var(ty));
                self.before.push(self.k.stmt(StmtData::Var { value: base, init: Some(init) }, span));
                Some(self.k.expr(ExprData::View(View { base, slot: None, ranges }), span))
            }
            _ => None,
        }
    }

    /// The same for the condition of a `while` loop. Values that may change between iterations stay integers, and so
    /// does an index next to them.
    fn loop_condition(&mut self, e: Expr) {
        let ExprData::Op { op, args } = self.k.exprs[e].clone() else { return };
        match (op.domain(), &args[..]) {
            (Domain::Logic, _) => args.into_iter().for_each(|arg| self.loop_condition(arg)),
            (Domain::Compare, &[a, b]) => {
                let index = |this: &Self, e| type_of(this.k, e) == Ok(Type::Index) && this.k.as_int(e).is_none();
                let fixed = |this: &Self, e: Expr| match this.k.exprs[e] {
                    ExprData::Ref(v) if this.register_elements.iter().any(|(held, _)| *held == v) => true,
                    _ => is_constant(this.k, e),
                };
                if [(a, b), (b, a)].into_iter().any(|(a, b)| index(self, a) && self.is_number(b) && fixed(self, b)) {
                    [a, b].into_iter().for_each(|e| self.index(e));
                } else {
                    [a, b]
                        .into_iter()
                        .filter(|&e| is_constant(self.k, e))
                        .collect::<Vec<_>>()
                        .into_iter()
                        .for_each(|e| self.element(e));
                }
            }
            _ => {}
        }
    }

    /// Loads an element that a comparison of numbers reads.
    fn element(&mut self, e: Expr) {
        if matches!(type_of(self.k, e), Ok(Type::View(view)) if view.rank == 0) {
            let arg = self.k.exprs[e].clone();
            let arg = self.k.expr(arg, self.k.expr_spans[e]);
            let held = self.loaded(arg);
            self.k.exprs[e] = ExprData::Ref(held);
        }
    }

    fn is_number(&self, e: Expr) -> bool {
        is_number(self.k, e)
    }

    /// Whether `e` is computed of elements in memory.
    fn is_of_elements(&self, e: Expr) -> bool {
        let computed = matches!(&self.k.exprs[e], ExprData::Op { op, .. } if matches!(op.domain(), Domain::Numeric | Domain::Integer));
        computed && matches!(type_of(self.k, e), Ok(Type::View(_)))
    }

    /// Whether `e` is, or is computed from, elements of memory that do not change. (A value with a type may wrap
    /// around, but an index may not.)
    fn is_constant_memory(&self, e: Expr) -> bool {
        self.is_number(e) && matches!(type_of(self.k, e), Ok(Type::View(_))) && is_constant(self.k, e)
    }

    /// Rewrites `e`, which is `index(arg)`, in terms of constant values.
    fn make_constant(&mut self, e: Expr, arg: Expr) {
        let k = &mut *self.k;
        if is_constant(k, arg) {
            // The element for which a name stands.
            if let ExprData::Ref(v) = k.exprs[arg]
                && let Some(init) = let_init(k, v).filter(|&init| element_of(k, init).is_some())
            {
                let element = k.copy_expr(init);
                k.exprs[e] = ExprData::Index(element);
            }
            return;
        }
        let span = k.expr_spans[arg];
        if let ExprData::Ref(v) = k.exprs[arg]
            && let Some(&(_, element)) = self.register_elements.iter().rev().find(|(held, _)| *held == v)
        {
            let element = k.copy_expr(element);
            k.exprs[e] = ExprData::Index(element);
            return;
        }
        let init = match type_of(k, arg) {
            Ok(Type::Scalar(_)) => arg,
            Ok(Type::View(_)) => {
                let held = self.loaded(arg);
                self.k.value_ref(held, span)
            }
            // For the verifier to say.
            _ => return,
        };
        let name = self.name_of(init);
        let value = self.k.value(&name, span, ValueDef::Let);
        self.before.push(self.k.stmt(StmtData::Let { value, init }, span));
        let arg = self.k.value_ref(value, span);
        self.k.exprs[e] = ExprData::Index(arg);
    }

    /// A register variable that holds the element `e`.
    fn loaded(&mut self, e: Expr) -> Value {
        let span = self.k.expr_spans[e];
        let elem =
            type_of(self.k, e).ok().and_then(|t| t.elem()).unwrap_or_else(|| panic!("bug: an element has a type"));
        let name = self.name_of(e);
        let value = self.k.value(&name, span, ValueDef::Var(TileTy::registers(elem, Vec::new(), None)));
        let dst = self.k.value_ref(value, span);
        let copy = StmtData::Copy { src: e, dst, attrs: CopyAttrs::default() };
        for s in [StmtData::Var { value, init: None }, copy] {
            self.before.push(self.k.stmt(s, span));
        }
        value
    }

    /// What is read by `e`, as a part of a name.
    fn name_of(&self, e: Expr) -> String {
        match &self.k.exprs[e] {
            ExprData::Ref(v) => format!("{}_now", self.k.values[*v].name),
            ExprData::View(view) => format!("{}_at", self.k.values[view.base].name),
            _ => "number".to_owned(),
        }
    }
}

/// The element that a copy leaves in a register variable, if nothing else writes that, and the element does not change.
fn copied_element(k: &mut Kernel, s: Stmt) -> Option<(Value, Expr)> {
    let StmtData::Copy { src, dst, ref attrs } = k.stmts[s] else { return None };
    let ExprData::Ref(v) = k.exprs[dst] else { return None };
    let ValueDef::Var(ref tile) = k.values[v].def else { return None };
    let plain = *attrs == CopyAttrs::default() && tile.shape.is_empty();
    let written = |s: &StmtData| match s {
        StmtData::Assign { dst, .. } => *dst == v,
        StmtData::Copy { dst, .. } => matches!(k.exprs[*dst], ExprData::Ref(w) if w == v),
        _ => false,
    };
    let elem = tile.elem;
    let from = resolve_view(k, src).filter(|view| k.tensor_ty(view.base).is_some())?;
    let once = k.statement_data().filter(|s| written(s)).count() == 1;
    if !plain || !once || !from.base_dims().is_empty() || !is_constant(k, src) {
        return None;
    }
    let same = k.values[from.base].def.elem() == Some(elem);
    let number = |elem: ElemRef| may_count(k, elem);
    if !number(elem) || !k.values[from.base].def.elem().is_some_and(number) {
        return None;
    }
    let span = k.expr_spans[src];
    let element = k.copy_expr(src);
    Some((v, if same { element } else { k.expr(ExprData::Cast { elem, arg: element }, span) }))
}
