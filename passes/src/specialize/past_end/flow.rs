//! Values of elements past the end, followed through the statements of a kernel.

use super::found::{Along, Consumer, Past, TaintedExpr, places};
use crate::analysis::facts::Facts;
use crate::analysis::inequalities::{Given, Inequalities, Outside};
use crate::analysis::past_end::{Pad, bounds, operator};
use crate::analysis::uses::stmt_exprs;
use crate::analysis::views::memory_views;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use tilec_ir::atomics::Combining;
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, Mma, StmtData, ValueDef};
use tilec_ir::loop_ends::meaning;
use tilec_ir::ops::{Op, ReduceOp};
use tilec_ir::types::{Elem, ElemRef};
use tilec_ir::typing::{ResolvedView, Type, ViewDim, copy_shape, fixed_shape, product_depth, resolve_view, type_of};

/// Most passes over a loop body until its state no longer changes.
const ROUNDS: usize = 8;

/// State of tiles and buffers, by dimension.
type TileStates = BTreeMap<(Value, usize), Along>;

/// Results of comparisons along dimensions for the followed elements.
type Comparisons = BTreeMap<(Op, [Expr; 2], u32), Option<bool>>;

pub(super) struct Flow<'f, 'k> {
    k: &'k Kernel,
    known: &'f Inequalities<'k>,
    facts: &'f Facts,
    /// The followed elements.
    outside: &'f Outside,
    compared: RefCell<Comparisons>,
    /// Conditions that hold here.
    conditions: Vec<Given>,
    /// Whether these exclude such elements.
    never: bool,
    held: TileStates,
    clamped: BTreeSet<Expr>,
    found: Vec<TaintedExpr>,
    /// Number of enclosing loops whose state may still change: then nothing is reported.
    rounds: usize,
}

impl<'f, 'k> Flow<'f, 'k> {
    /// The reductions of a kernel that include such elements.
    pub(super) fn of(known: &'f Inequalities<'k>, facts: &'f Facts, outside: &'f Outside) -> Vec<TaintedExpr> {
        let k = known.kernel();
        let mut flow = Flow {
            k,
            known,
            facts,
            outside,
            compared: RefCell::default(),
            conditions: Vec::new(),
            never: false,
            held: TileStates::new(),
            clamped: BTreeSet::new(),
            found: Vec::new(),
            rounds: 0,
        };
        flow.block(k.body);
        flow.found
    }

    fn block(&mut self, b: Block) {
        let k = self.k;
        k.blocks[b].iter().for_each(|&s| self.stmt(s));
    }

    fn stmt(&mut self, s: Stmt) {
        let k = self.k;
        if self.rounds == 0 {
            stmt_exprs(k, s).into_iter().for_each(|e| self.visit(e));
        }
        match k.stmts[s] {
            StmtData::Let { value, init } if resolve_view(k, init).is_none_or(|view| !view.space(k).has_bounds()) => {
                self.assign(value, init, fixed_shape(k, init));
            }
            StmtData::Var { value, init: Some(init) } => self.assign(value, init, self.own_shape(value)),
            StmtData::Var { value, init: None } | StmtData::Alloc { value, .. } => {
                self.held.retain(|&(v, _), _| v != value);
            }
            StmtData::Assign { dst, src } => self.assign(dst, src, self.own_shape(dst)),
            StmtData::Copy { src, dst, ref attrs } if !attrs.is_prefetch() => self.copy(src, dst, attrs),
            StmtData::For { body, .. } => self.repeated(body),
            StmtData::If { cond, then, otherwise } => self.branches(cond, then, otherwise),
            StmtData::Ordered { body } | StmtData::Role { body, .. } => self.block(body),
            _ => {}
        }
    }

    fn branches(&mut self, cond: Expr, then: Block, otherwise: Option<Block>) {
        let before = self.held.clone();
        let none = self.branch((cond, true), Some(then));
        let then = std::mem::replace(&mut self.held, before);
        let none_otherwise = self.branch((cond, false), otherwise);
        // If one side of a branch excludes such elements, only the other side matters.
        if none_otherwise && !none {
            self.held = then;
        } else if otherwise.is_some() && !none {
            self.join(&then);
        } else if !none {
            for (at, along) in then {
                let other = self.held.get(&at).copied();
                // A mask under an unknown condition is assumed to be applied where it is needed.
                let masked = along.past.is_some() && along.pad.is_mask() && !self.known.is_known(cond);
                self.held.insert(at, other.filter(|_| !masked).map_or(along, |other| other.join(along)));
            }
        }
    }

    /// Analyses a branch. The result says whether its condition excludes such elements.
    fn branch(&mut self, given: Given, block: Option<Block>) -> bool {
        let outer = self.never;
        self.conditions.push(given);
        self.never = outer || self.known.is_never(self.outside, &self.conditions);
        let none = self.never;
        if none {
            let held = self.held.values_mut().filter(|along| along.past.is_some());
            held.for_each(|along| *along = Along::UNKNOWN);
        }
        block.into_iter().for_each(|b| self.block(b));
        self.conditions.pop();
        self.never = outer;
        none && !outer
    }

    fn join(&mut self, other: &TileStates) {
        for (&at, &along) in other {
            self.held.entry(at).and_modify(|own| *own = own.join(along)).or_insert(along);
        }
    }

    fn repeated(&mut self, body: Block) {
        self.rounds += 1;
        let stays = (0..ROUNDS).any(|_| {
            let before = self.held.clone();
            self.block(body);
            self.join(&before);
            self.held == before
        });
        self.rounds -= 1;
        if !stays {
            self.held.values_mut().for_each(|along| *along = Along::UNKNOWN);
        }
        if self.rounds == 0 {
            let before = self.held.clone();
            self.block(body);
            self.join(&before);
        }
    }

    fn own_shape(&self, v: Value) -> Option<Vec<u64>> {
        self.k.tile_ty(v).and_then(|tile| self.k.const_shape(&tile.shape))
    }

    fn assign(&mut self, v: Value, e: Expr, shape: Option<Vec<u64>>) {
        let Some(shape) = shape else { return };
        let found: Vec<Along> = (0..shape.len()).map(|axis| self.along(e, &shape, axis)).collect();
        self.held.extend(found.into_iter().enumerate().map(|(axis, along)| ((v, axis), along)));
    }

    fn copy(&mut self, src: Expr, dst: Expr, attrs: &CopyAttrs) {
        let k = self.k;
        let (Some(view), Some(shape)) = (resolve_view(k, dst), copy_shape(k, src, dst)) else { return };
        let kept = view.base_dims();
        if view.space(k).has_bounds() {
            self.scatter(src, &view, &shape, attrs);
            return;
        }
        if kept.len() != shape.len() {
            return;
        }
        let whole = view.dims.iter().all(|dim| matches!(dim, ViewDim::From { starts, end: None } if starts.is_empty()));
        for (axis, &d) in kept.iter().enumerate() {
            let mut along = self.along(src, &shape, axis);
            if let (Some(past), Some(fill)) = (&mut along.past, attrs.fill.filter(|fill| !fill.is_zero())) {
                past.filled = true;
                along.pad = fill.value(Elem::F64).map_or(Pad::UNKNOWN, Pad::fill);
            }
            let stays = !whole || attrs.keep || attrs.reduce.is_some() || attrs.when.is_some();
            let before = self.held.get(&(view.base, d)).filter(|_| stays);
            let joined = before.map_or(along, |before| before.join(along));
            self.held.insert((view.base, d), joined);
        }
    }

    /// A scatter: index elements past the end of their tensor are 0, which is a valid index.
    fn scatter(&mut self, src: Expr, view: &ResolvedView, shape: &[u64], attrs: &CopyAttrs) {
        if self.rounds > 0 || attrs.when.is_some() {
            return;
        }
        let indices = view.gathered_dims();
        for &(w, index) in &indices {
            let Some(own) = fixed_shape(self.k, index) else { continue };
            for axis in 0..own.len() {
                let along = self.along(index, &own, axis);
                // One index outside of its extent is enough: then nothing is stored.
                let excluded = |other: Expr| {
                    fixed_shape(self.k, other).as_ref() == Some(&own) && self.along(other, &own, axis).pad.is_negative()
                };
                if indices.iter().any(|&(_, other)| excluded(other)) {
                    continue;
                }
                let stored = || self.along(src, shape, if own.len() == shape.len() { axis } else { w });
                let harmless = || attrs.reduce == Some(Combining::Add) && stored().pad.is_zero();
                if let Some(past) = along.past.filter(|_| !harmless()) {
                    self.found.push(TaintedExpr { at: index, taker: Consumer::Scatter { axis: axis as u32 }, past });
                }
            }
        }
    }

    /// The elements of `e` along a dimension, as a tile of these extents. Of an expression of several windows alone, which may end at different
    /// places, the analysis does not follow such elements.
    fn along(&self, e: Expr, shape: &[u64], axis: usize) -> Along {
        let along = self.elements(e, shape, axis);
        let lost = is_of_windows(self.k, e) && memory_views(self.k, e).len() > 1;
        if lost { Along { past: None, ..along } } else { along }
    }

    fn elements(&self, e: Expr, shape: &[u64], axis: usize) -> Along {
        let k = self.k;
        if let Some(view) =
            resolve_view(k, e).filter(|view| view.space(k).has_bounds() || k.tile_ty(view.base).is_some())
        {
            return self.window(e, &view, shape, axis);
        }
        let own = fixed_shape(k, e);
        let literal = |x: f64| Along { pad: Pad::literal(x), past: None };
        match &k.exprs[e] {
            ExprData::Int(x) => literal(*x as f64),
            ExprData::Float(bits) => literal(f64::from_bits(*bits)),
            ExprData::Iota { axis: along, .. } if *along as usize == axis => Along { pad: Pad::POSITION, past: None },
            ExprData::Ref(v) if matches!(k.values[*v].def, ValueDef::Size | ValueDef::Grid) => {
                Along { pad: self.known.range(e).map_or(Pad::FIXED.positive(), Pad::fixed), past: None }
            }
            // A scalar, or a dimension with one element, is broadcast.
            _ if own.as_ref().map_or_else(|| !is_of_windows(k, e), |own| own.get(axis).is_none_or(|&n| n == 1)) => {
                Along::FIXED
            }
            ExprData::Iota { .. } => Along::FIXED,
            ExprData::Ref(v) => self.held.get(&(*v, axis)).copied().unwrap_or(Along::UNKNOWN),
            ExprData::Op { op, args } => {
                let operands: Vec<Along> = args.iter().map(|&arg| self.along(arg, shape, axis)).collect();
                let pads: Vec<Pad> = operands.iter().map(|along| along.pad).collect();
                let compared = |op: Op, sides: [Expr; 2]| self.compare(op, sides, axis);
                Along {
                    pad: operator(k, *op, args, &pads, &compared),
                    past: operands.iter().find_map(|along| along.past),
                }
            }
            ExprData::Cast { elem, arg } => {
                let along = self.along(*arg, shape, axis);
                let rounds = matches!(elem, ElemRef::Known(elem) if !elem.is_float());
                Along { pad: if rounds { along.pad.growing(f64::round_ties_even) } else { along.pad }, ..along }
            }
            ExprData::Bits { arg, .. } => {
                let along = self.along(*arg, shape, axis);
                Along { pad: if along.pad.is_zero() { Pad::ZERO } else { Pad::UNKNOWN }, ..along }
            }
            ExprData::Round { arg, .. } | ExprData::Lookup { index: arg, .. } => {
                Along { pad: Pad::UNKNOWN, ..self.along(*arg, shape, axis) }
            }
            ExprData::Reduce { op, parts: 0, arg, .. } => {
                let along = self.of_own_shape(*arg, axis);
                Along { pad: along.pad.reduced(*op), ..along }
            }
            ExprData::Scan { arg, .. } => Along { pad: Pad::UNKNOWN, ..self.of_own_shape(*arg, axis) },
            ExprData::Transpose(arg) if axis < 2 => self.of_own_shape(*arg, 1 - axis),
            ExprData::Mma(product) => self.product(product, axis),
            _ => Along::UNKNOWN,
        }
    }

    fn of_own_shape(&self, e: Expr, axis: usize) -> Along {
        fixed_shape(self.k, e).map_or(Along::UNKNOWN, |shape| self.along(e, &shape, axis))
    }

    /// The operands of a product along its reduction, if they are matrices.
    fn summed(&self, product: &Mma) -> Option<[Along; 2]> {
        let [rows, columns] = fixed_shape(self.k, product.c)?[..] else { return None };
        let depth = product_depth(self.k, product)?;
        Some([self.along(product.a, &[rows, depth], 1), self.along(product.b, &[depth, columns], 0)])
    }

    fn product(&self, product: &Mma, axis: usize) -> Along {
        let k = self.k;
        let Some(&[rows, columns]) = fixed_shape(k, product.c).as_deref() else { return Along::UNKNOWN };
        let operand = if axis == 0 { product.a } else { product.b };
        let (added, of) = (self.along(product.c, &[rows, columns], axis), self.of_own_shape(operand, axis));
        // Zero rows of an operand give zero rows of the result.
        let pad = if of.pad.is_zero() { Pad::ZERO } else { Pad::UNKNOWN };
        Along { pad: pad.plus(added.pad), past: of.past.or(added.past) }
    }

    fn window(&self, e: Expr, view: &ResolvedView, shape: &[u64], axis: usize) -> Along {
        let k = self.k;
        let kept = view.base_dims();
        let Some(&d) = kept.get(axis).filter(|_| kept.len() == shape.len()) else { return Along::FIXED };
        let Some(tensor) = k.tensor_ty(view.base) else {
            let one = self.own_shape(view.base).is_some_and(|own| own.get(d) == Some(&1));
            let held = || self.held.get(&(view.base, d)).copied().unwrap_or(Along::UNKNOWN);
            return if one { Along::FIXED } else { held() };
        };
        if shape[axis] == 1 || tensor.repeats.contains(&d) {
            return Along::FIXED;
        }
        // The positions of elements come from memory.
        if matches!(view.dims[d], ViewDim::Gather(_)) || tensor.scratch.is_some() {
            return Along::UNKNOWN;
        }
        if self.never {
            return Along::UNKNOWN;
        }
        let places = places(self.known, self.facts, view, d, shape[axis]);
        // A tile that holds windows with the same end one after the other has such elements of each.
        let is_outside = |of: &Outside| of.ends_like(self.outside) || self.known.is_outside(self.outside, of);
        let Some(end) = places.into_iter().find(|place| is_outside(&place.outside)) else { return Along::UNKNOWN };
        let past = Past { window: e, dim: d, extent: shape[axis], end: end.end, filled: false };
        Along { pad: Pad::ZERO, past: (end.outside == *self.outside).then_some(past) }
    }

    /// The result of a comparison for the followed elements.
    fn compare(&self, op: Op, sides: [Expr; 2], axis: usize) -> Option<bool> {
        let key = (op, sides, axis as u32);
        if let Some(&found) = self.compared.borrow().get(&key) {
            return found;
        }
        let found = self.known.compared(op, sides, self.outside, axis as u32);
        self.compared.borrow_mut().insert(key, found);
        found
    }

    /// Finds the reductions in an expression that include elements past the end.
    fn visit(&mut self, e: Expr) {
        let k = self.k;
        if let ExprData::Op { op, args } = &k.exprs[e] {
            self.clamped.extend(clamped(k, *op, args));
        }
        k.children(e).into_iter().for_each(|child| self.visit(child));
        match &k.exprs[e] {
            &ExprData::Reduce { op, axis, arg, .. } => {
                let along = self.of_own_shape(arg, axis as usize);
                let pad = stored_as(k, arg).and_then(bounds).map_or(along.pad, |all| along.pad.within(all));
                let neutral = || pad.is_neutral(op) || self.clamped.contains(&e) && pad.is_zero();
                if let Some(past) = along.past.filter(|_| !neutral()) {
                    self.found.push(TaintedExpr { at: e, taker: Consumer::Reduction { op, axis, arg }, past });
                }
            }
            ExprData::Mma(product) => {
                let Some([a, b]) = self.summed(product) else { return };
                let vanish = a.pad.times(b.pad, false).is_zero();
                if let Some(past) = a.past.or(b.past).filter(|_| !vanish) {
                    self.found.push(TaintedExpr { at: e, taker: Consumer::Product, past });
                }
            }
            ExprData::Op { op: Op::Div, args } => {
                if let Some(past) = number(k, args[1]).and_then(|by| self.averaged(args[0], by)) {
                    self.found.push(TaintedExpr { at: e, taker: Consumer::Mean, past });
                }
            }
            ExprData::Op { op: Op::Mul, args } => {
                let by = |sum: Expr, factor: Expr| self.averaged(sum, 1.0 / number(k, factor)?);
                if let Some(past) = by(args[0], args[1]).or_else(|| by(args[1], args[0])) {
                    self.found.push(TaintedExpr { at: e, taker: Consumer::Mean, past });
                }
            }
            _ => {}
        }
    }

    /// Whether the sum of a tile with elements past the end is divided by the extent of the tile.
    fn averaged(&self, sum: Expr, by: f64) -> Option<Past> {
        let k = self.k;
        match k.exprs[meaning(k, sum)] {
            ExprData::Cast { arg, .. } => self.averaged(arg, by),
            ExprData::Reduce { op: ReduceOp::Sum, axis, arg, .. } => {
                let extent = *fixed_shape(k, arg)?.get(axis as usize)?;
                self.of_own_shape(arg, axis as usize).past.filter(|_| by == extent as f64)
            }
            _ => None,
        }
    }
}

/// Whether an expression is of windows alone, which have as many elements as it is read with.
fn is_of_windows(k: &Kernel, e: Expr) -> bool {
    matches!(type_of(k, e), Ok(ty @ Type::View(_)) if ty.rank() > 0)
}

/// The value of a literal, or of an expression of literals.
fn number(k: &Kernel, e: Expr) -> Option<f64> {
    match &k.exprs[meaning(k, e)] {
        ExprData::Int(x) => Some(*x as f64),
        ExprData::Float(bits) => Some(f64::from_bits(*bits)),
        ExprData::Cast { arg, .. } => number(k, *arg),
        ExprData::Op { op: Op::Div, args } => Some(number(k, args[0])? / number(k, args[1])?),
        _ => None,
    }
}

/// The element type whose numbers an expression has, before conversions to wider types.
fn stored_as(k: &Kernel, e: Expr) -> Option<Elem> {
    let own = match type_of(k, e).ok()?.elem()? {
        ElemRef::Known(elem) => elem,
        ElemRef::Param(_) => return None,
    };
    let before = match k.exprs[e] {
        ExprData::Cast { arg, .. } => stored_as(k, arg),
        ExprData::Ref(v) => k.let_init(v).and_then(|init| stored_as(k, init)),
        _ => None,
    };
    // A wider type has all numbers of a narrower one.
    Some(before.filter(|before| before.bits() < own.bits()).unwrap_or(own))
}

/// The operand of an extreme with 0, such as `max(maximum(x, 0), 0.0)`: elements that are 0 do not change it.
fn clamped(k: &Kernel, op: Op, args: &[Expr]) -> Option<Expr> {
    let wanted = match op {
        Op::Max => ReduceOp::Maximum,
        Op::Min => ReduceOp::Minimum,
        _ => return None,
    };
    let is_zero = |e: Expr| match k.exprs[e] {
        ExprData::Int(x) => x == 0,
        ExprData::Float(bits) => f64::from_bits(bits) == 0.0,
        _ => false,
    };
    let own = |&e: &Expr| matches!(k.exprs[e], ExprData::Reduce { op, .. } if op == wanted);
    args.iter().copied().find(own).filter(|_| args.iter().any(|&e| is_zero(e)))
}
