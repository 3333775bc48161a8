//! What elements past the end are, followed through the statements of a kernel.

use super::found::{Along, Found, Past, Taker, limit};
use crate::analysis::facts::Facts;
use crate::analysis::past_end::{Pad, operator};
use crate::analysis::uses::stmt_exprs;
use std::collections::BTreeMap;
use tilec_ir::combining::Combining;
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, Mma, StmtData, ValueDef};
use tilec_ir::loop_ends::meaning;
use tilec_ir::numerics::cast::int_format;

use tilec_ir::ops::{Op, ReduceOp};
use tilec_ir::types::{Elem, ElemRef};
use tilec_ir::typing::{ResolvedView, ViewDim, copy_shape, fixed_shape, resolve_view, same_expr, type_of};

/// A loop's body is looked at so often until what it leaves stays the same.
const ROUNDS: usize = 8;

/// Tiles and buffers, and their dimensions.
type Held = BTreeMap<(Value, usize), Along>;

pub(super) struct Flow<'k> {
    k: &'k Kernel,
    facts: Facts,
    held: Held,
    found: Vec<Found>,
    /// Loops whose bodies are not as they stay: nothing is reported.
    rounds: usize,
}

impl<'k> Flow<'k> {
    /// The reductions of a kernel that take elements past the end in.
    pub(super) fn of(k: &'k Kernel) -> Vec<Found> {
        let mut flow = Flow { k, facts: Facts::new(k), held: Held::new(), found: Vec::new(), rounds: 0 };
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
        self.reach_no_end(cond, true);
        self.block(then);
        let then = std::mem::replace(&mut self.held, before);
        self.reach_no_end(cond, false);
        otherwise.into_iter().for_each(|b| self.block(b));
        if otherwise.is_some() {
            self.join(&then);
            return;
        }
        for (at, along) in then {
            let other = self.held.get(&at).copied();
            // A mask under a condition is where it is needed.
            let masked = along.past.is_some() && along.pad.is_mask();
            self.held.insert(at, other.filter(|_| !masked).map_or(along, |other| other.join(along)));
        }
    }

    /// In a branch on `start + extent <= limit`, windows of that extent have no elements past that limit.
    fn reach_no_end(&mut self, cond: Expr, holds: bool) {
        let k = self.k;
        let ExprData::Op { op, args } = &k.exprs[meaning(k, cond)] else { return };
        let (last, limit) = match (op, holds, &args[..]) {
            (Op::Le, true, &[last, limit]) | (Op::Ge, true, &[limit, last]) => (last, limit),
            (Op::Gt, false, &[last, limit]) | (Op::Lt, false, &[limit, last]) => (last, limit),
            (Op::And, true, _) => return args.iter().for_each(|&part| self.reach_no_end(part, true)),
            (Op::Or, false, _) => return args.iter().for_each(|&part| self.reach_no_end(part, false)),
            _ => return,
        };
        let ExprData::Op { op: Op::Add, args } = &k.exprs[meaning(k, last)] else { return };
        let (start, Some(extent)) = (args[0], k.as_int(args[1])) else { return };
        let same = |a: Expr, b: Expr| same_expr(k, meaning(k, a), meaning(k, b));
        let within = |past: &Past| {
            let view = resolve_view(k, past.window).expect("a window");
            let begins = matches!(view.dims[past.dim].starts(), &[own] if same(own, start));
            begins && past.extent as i64 <= extent && same(past.limit, limit)
        };
        for along in self.held.values_mut().filter(|along| along.past.as_ref().is_some_and(within)) {
            *along = Along::UNKNOWN;
        }
    }

    fn join(&mut self, other: &Held) {
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
        let kept = view.kept();
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

    /// A store to where integers say: those past the end of their tensor are 0, which is an element.
    fn scatter(&mut self, src: Expr, view: &ResolvedView, shape: &[u64], attrs: &CopyAttrs) {
        if self.rounds > 0 || attrs.when.is_some() {
            return;
        }
        for (w, index) in view.gathered() {
            let Some(own) = fixed_shape(self.k, index) else { continue };
            for axis in 0..own.len() {
                let along = self.along(index, &own, axis);
                let stored = || self.along(src, shape, if own.len() == shape.len() { axis } else { w });
                let harmless = || attrs.reduce == Some(Combining::Add) && stored().pad.is_zero();
                if let Some(past) = along.past.filter(|_| !along.pad.is_negative() && !harmless()) {
                    self.found.push(Found { at: index, taker: Taker::Scatter, past });
                }
            }
        }
    }

    /// The elements of `e` along a dimension, as a tile of these extents.
    fn along(&self, e: Expr, shape: &[u64], axis: usize) -> Along {
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
            ExprData::Iota { axis: along, .. } if *along as usize == axis => {
                Along { pad: Pad::Position { negative: false }, past: None }
            }
            ExprData::Ref(v) if matches!(k.values[*v].def, ValueDef::Size | ValueDef::Grid) => {
                Along { pad: Pad::FIXED.positive(), past: None }
            }
            // A number repeats, and so does what has one element.
            _ if own.as_ref().is_none_or(|own| own.get(axis).is_none_or(|&n| n == 1)) => Along::FIXED,
            ExprData::Iota { .. } => Along::FIXED,
            ExprData::Ref(v) => self.held.get(&(*v, axis)).copied().unwrap_or(Along::UNKNOWN),
            ExprData::Op { op, args } => {
                let operands: Vec<Along> = args.iter().map(|&arg| self.along(arg, shape, axis)).collect();
                let pads: Vec<Pad> = operands.iter().map(|along| along.pad).collect();
                Along { pad: operator(k, *op, args, &pads), past: operands.iter().find_map(|along| along.past) }
            }
            ExprData::Cast { elem, arg } => {
                let along = self.along(*arg, shape, axis);
                let rounds = matches!(elem, ElemRef::Known(elem) if !elem.is_float());
                let pad = if rounds { along.pad.growing(f64::round_ties_even) } else { along.pad };
                // Positions stay such.
                Along { pad: if matches!(along.pad, Pad::Position { .. }) { along.pad } else { pad }, ..along }
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
        let [a, b] = [fixed_shape(self.k, product.a), fixed_shape(self.k, product.b)];
        let depth = a.map(|a| a.get(1).copied()).or_else(|| b.map(|b| b.first().copied()))??;
        Some([self.along(product.a, &[rows, depth], 1), self.along(product.b, &[depth, columns], 0)])
    }

    fn product(&self, product: &Mma, axis: usize) -> Along {
        let k = self.k;
        let Some(&[rows, columns]) = fixed_shape(k, product.c).as_deref() else { return Along::UNKNOWN };
        let operand = if axis == 0 { product.a } else { product.b };
        let (added, of) = (self.along(product.c, &[rows, columns], axis), self.of_own_shape(operand, axis));
        // Rows of zeros make rows of zeros.
        let pad = if of.pad.is_zero() { Pad::ZERO } else { Pad::UNKNOWN };
        Along { pad: pad.plus(added.pad), past: of.past.or(added.past) }
    }

    fn window(&self, e: Expr, view: &ResolvedView, shape: &[u64], axis: usize) -> Along {
        let k = self.k;
        let kept = view.kept();
        let Some(&d) = kept.get(axis).filter(|_| kept.len() == shape.len()) else { return Along::FIXED };
        let Some(tensor) = k.tensor_ty(view.base) else {
            let one = self.own_shape(view.base).is_some_and(|own| own.get(d) == Some(&1));
            let held = || self.held.get(&(view.base, d)).copied().unwrap_or(Along::UNKNOWN);
            return if one { Along::FIXED } else { held() };
        };
        if shape[axis] == 1 || tensor.repeats.contains(&d) {
            return Along::FIXED;
        }
        // Elements are where integers say.
        if matches!(view.dims[d], ViewDim::Gather(_)) || tensor.scratch.is_some() {
            return Along::UNKNOWN;
        }
        let Some(limit) = limit(k, &self.facts, view, d, shape[axis]) else { return Along::UNKNOWN };
        Along { pad: Pad::ZERO, past: Some(Past { window: e, dim: d, extent: shape[axis], limit, filled: false }) }
    }

    /// Finds the reductions in an expression that take elements past the end in.
    fn visit(&mut self, e: Expr) {
        let k = self.k;
        k.children(e).into_iter().for_each(|child| self.visit(child));
        match &k.exprs[e] {
            &ExprData::Reduce { op, axis, arg, .. } => {
                let along = self.of_own_shape(arg, axis as usize);
                // Of numbers without signs none is less than zero.
                let unsigned = || is_unsigned(k, arg) && along.pad.absolute().is_neutral(op);
                if let Some(past) = along.past.filter(|_| !along.pad.is_neutral(op) && !unsigned()) {
                    self.found.push(Found { at: e, taker: Taker::Reduction { op, axis, arg }, past });
                }
            }
            ExprData::Mma(product) => {
                let Some([a, b]) = self.summed(product) else { return };
                let vanish = a.pad.times(b.pad, false).is_zero();
                if let Some(past) = a.past.or(b.past).filter(|_| !vanish) {
                    self.found.push(Found { at: e, taker: Taker::Product, past });
                }
            }
            ExprData::Op { op: Op::Div, args } => {
                if let Some(past) = self.averaged(args[0], args[1]) {
                    self.found.push(Found { at: e, taker: Taker::Mean, past });
                }
            }
            _ => {}
        }
    }

    /// Whether a sum of a tile with elements past the end is divided by the number of all elements of the tile.
    fn averaged(&self, sum: Expr, by: Expr) -> Option<Past> {
        let k = self.k;
        let number = match k.exprs[meaning(k, by)] {
            ExprData::Int(x) => x as f64,
            ExprData::Float(bits) => f64::from_bits(bits),
            ExprData::Cast { arg, .. } => return self.averaged(sum, arg),
            _ => return None,
        };
        match k.exprs[meaning(k, sum)] {
            ExprData::Cast { arg, .. } => self.averaged(arg, by),
            ExprData::Reduce { op: ReduceOp::Sum, axis, arg, .. } => {
                let extent = *fixed_shape(k, arg)?.get(axis as usize)?;
                self.of_own_shape(arg, axis as usize).past.filter(|_| number == extent as f64)
            }
            _ => None,
        }
    }
}

fn is_unsigned(k: &Kernel, e: Expr) -> bool {
    match type_of(k, e).ok().and_then(|ty| ty.elem()) {
        Some(ElemRef::Known(elem)) => int_format(elem).is_some_and(|format| format.min() == 0),
        _ => false,
    }
}
