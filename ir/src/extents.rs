//! Upper bounds of sizes, and of values computed from them: from the launch contract, and from preconditions that bound
//! products.

use crate::entities::{Expr, Value};
use crate::index::{self, Interval};
use crate::kernel::{ExprData, Kernel, StmtData, ValueDef};
use crate::loop_ends::meaning;
use crate::numerics::cast;
use crate::ops::Op;
use crate::types::{Elem, ElemRef};
use crate::typing::{ResolvedView, ViewDim, factor_list, factors, let_init, positive, same_expr, type_of};
use crate::zero_sizes::zero_sizes;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

/// Largest run-time extent: leaves room for a tile past the end in 31 bits.
pub const MAX_SIZE: i128 = (1 << 31) - (1 << 16);

/// Largest run-time stride, in elements.
pub const MAX_STRIDE: i128 = 1 << 40;

/// Blocks along the first axis of a launch at most, and along the others (CUDA programming guide, "Technical Specifications
/// per Compute Capability").
pub const MAX_BLOCKS_X: i128 = i32::MAX as i128;
/// Along the others.
pub const MAX_BLOCKS_YZ: i128 = 65_535;

/// Columns of blocks that are walked together; 1: none.
#[must_use]
pub fn raster(k: &Kernel) -> i64 {
    let g = k.schedule.raster.and_then(|e| k.as_int(e)).unwrap_or(1);
    if k.grid.len() >= 2 { g.clamp(1, 1024) } else { 1 }
}

/// A product of which the launch contract demands that it is at most so much, and of which each factor is at least 1.
pub struct Extent {
    /// The product of its literals.
    pub literal: i128,
    /// The texts of its other factors, sorted.
    pub others: Vec<String>,
    /// The bound.
    pub most: i128,
}

impl Extent {
    /// The bound of the product that `e` is.
    #[must_use]
    pub fn of(k: &Kernel, e: Expr, most: i128) -> Extent {
        let (literal, others) = factors(k, &[e]);
        Extent { literal, others, most }
    }

    /// Every extent of a tensor that is computed from others.
    #[must_use]
    pub fn all(k: &Kernel) -> Vec<Extent> {
        let shapes = k.params.iter().filter_map(|&v| k.tensor_ty(v)).flat_map(|t| t.shape.iter().copied());
        let computed = shapes.filter(|&e| matches!(k.exprs[e], ExprData::Op { op: Op::Mul, .. }));
        computed.map(|e| Extent::of(k, e, MAX_SIZE)).collect()
    }

    /// The bounds that the launch contract guarantees: from preconditions (`where Z * H <= 65535`), and as extents of
    /// the grid, in which an axis may count columns in groups of `raster`.
    #[must_use]
    pub fn promised(k: &Kernel) -> Vec<Extent> {
        let columns = MAX_BLOCKS_YZ * i128::from(raster(k));
        let blocks = k.grid.iter().map(|axis| axis.extent).zip([MAX_BLOCKS_X, columns, MAX_BLOCKS_YZ]);
        let mut found: Vec<Extent> =
            blocks.filter(|&(e, _)| positive(k, e)).map(|(e, most)| Extent::of(k, e, most)).collect();
        let mut work = k.requires.clone();
        while let Some(e) = work.pop() {
            let ExprData::Op { op, args } = &k.exprs[e] else { continue };
            let (product, most) = match (op, &args[..]) {
                (Op::And, _) => {
                    work.extend(args);
                    continue;
                }
                (Op::Le, &[x, n]) => (x, k.as_int(n)),
                (Op::Lt, &[x, n]) => (x, k.as_int(n).and_then(|n| n.checked_sub(1))),
                (Op::Ge, &[n, x]) => (x, k.as_int(n)),
                (Op::Gt, &[n, x]) => (x, k.as_int(n).and_then(|n| n.checked_sub(1))),
                (Op::Eq, &[x, n]) => (x, k.as_int(n)),
                _ => continue,
            };
            if let Some(most) = most.filter(|_| bounds_parts(k, product)) {
                found.push(Extent::of(k, product, i128::from(most)));
            }
        }
        found
    }

    /// Whether this bounds the product of `literal` and `others`: its factors include these, and each factor is at
    /// least 1.
    #[must_use]
    pub fn covers(&self, literal: i128, others: &[String]) -> bool {
        let mut mine = self.others.iter();
        // Both are sorted.
        (0..=self.literal).contains(&literal) && others.iter().all(|o| mine.any(|m| m == o))
    }
}

/// The smallest bound of a product with these factors.
#[must_use]
pub fn least(bounds: &[Extent], (literal, others): (i128, &[String])) -> Option<i128> {
    bounds.iter().filter(|x| x.covers(literal, others)).map(|x| x.most).min()
}

/// Whether a bound of `e` bounds a product: each factor is at least 1, or it is the only one.
fn bounds_parts(k: &Kernel, e: Expr) -> bool {
    positive(k, e) || matches!(factors(k, &[e]), (1, others) if others.len() == 1)
}

/// The upper bound that preconditions give for an index.
#[must_use]
pub fn promised(k: &Kernel, bounds: &[Extent], e: Expr) -> Option<i128> {
    if bounds.is_empty() || !bounds_parts(k, e) {
        return None;
    }
    let (literal, others) = factors(k, &[e]);
    if others.is_empty() { None } else { least(bounds, (literal, &others)) }
}

/// Maximum number of names that are resolved to find bounds by products.
const NAMES: u32 = 64;

/// A product of a literal and what is at least 1.
struct Product {
    literal: i128,
    parts: Vec<Expr>,
}

impl Product {
    /// The product divided by a literal and some of its factors, rounded up.
    fn divided(mut self, k: &Kernel, by: i128, parts: &[Expr]) -> Option<Product> {
        for &part in parts {
            let part = unclamped(k, part);
            let at = self.parts.iter().position(|&own| same_expr(k, unclamped(k, own), part))?;
            self.parts.swap_remove(at);
        }
        Some(Product { literal: Interval::of(Op::CeilDiv, point(self.literal), point(by))?.hi, ..self })
    }
}

/// What `max(1, x)` and `max(0, x)` of a positive `x` are.
fn unclamped(k: &Kernel, e: Expr) -> Expr {
    let e = meaning(k, e);
    let ExprData::Op { op: Op::Max, args } = &k.exprs[e] else { return e };
    let idle = |e: Expr| k.as_int(e).is_some_and(|x| x <= 1);
    match args[..] {
        [a, b] if idle(a) && positive(k, b) => meaning(k, b),
        [a, b] if idle(b) && positive(k, a) => meaning(k, a),
        _ => e,
    }
}

fn point(x: i128) -> Interval {
    Interval::new(x, x)
}

/// The values of an index given by an integer scalar.
#[must_use]
pub fn of_value(k: &Kernel, scalar: Expr) -> Option<Interval> {
    match type_of(k, scalar).ok()?.elem()? {
        ElemRef::Known(elem) => of_elem(elem),
        ElemRef::Param(_) => None,
    }
}

/// The values of an index given by an integer type.
#[must_use]
pub fn of_elem(elem: Elem) -> Option<Interval> {
    let format = cast::int_format(elem)?;
    let end = |x: i128| i128::from(index::of_value(x));
    Some(Interval::new(end(format.min()), end(format.max())))
}

/// The values of indices over all admissible launches.
pub struct Ranges<'k> {
    k: &'k Kernel,
    /// Starts, ends and steps of loops.
    loops: BTreeMap<Value, (Expr, Expr, i64)>,
    bounds: Vec<Extent>,
    zeros: Vec<Value>,
    /// Ranges of names, cached.
    names: RefCell<BTreeMap<Value, Option<Interval>>>,
}

impl<'k> Ranges<'k> {
    /// Uses only the bounds of sizes and strides.
    #[must_use]
    pub fn of_sizes(k: &'k Kernel) -> Ranges<'k> {
        Ranges { k, loops: BTreeMap::new(), bounds: Vec::new(), zeros: zero_sizes(k), names: RefCell::default() }
    }

    /// Uses the bounds of sizes and strides, preconditions, and loop bounds.
    #[must_use]
    pub fn new(k: &'k Kernel) -> Ranges<'k> {
        let mut loops = BTreeMap::new();
        k.walk(k.body, &mut |k, _, s| {
            if let StmtData::For { var, start, end, step, ref next, .. } = k.stmts[s] {
                let step = k.as_int(step).filter(|_| next.is_none()).unwrap_or(1);
                loops.insert(var, (start, end, step));
            }
        });
        let bounds = [Extent::all(k), Extent::promised(k)].into_iter().flatten().collect();
        Ranges { k, loops, bounds, zeros: zero_sizes(k), names: RefCell::default() }
    }

    /// The range of an index; `None` if it is not known.
    #[must_use]
    pub fn of(&self, e: Expr) -> Option<Interval> {
        let k = self.k;
        match &k.exprs[e] {
            ExprData::Int(x) => Some(Interval::new(i128::from(*x), i128::from(*x))),
            ExprData::Ref(v) => match k.values[*v].def {
                ValueDef::Size if self.zeros.contains(v) => Some(Interval::new(0, 0)),
                ValueDef::Size => Some(self.promised(e, 1, MAX_SIZE)),
                ValueDef::Stride => Some(self.promised(e, 0, MAX_STRIDE)),
                ValueDef::Let => self.of_name(*v),
                ValueDef::Grid => {
                    let axis = k.grid.iter().position(|axis| axis.index == *v)?;
                    let most = if axis == 0 { MAX_BLOCKS_X } else { MAX_BLOCKS_YZ * i128::from(raster(k)) };
                    Some(Interval::new(0, (self.of(k.grid[axis].extent)?.hi.min(most) - 1).max(0)))
                }
                ValueDef::Loop => {
                    let known = self.names.borrow().get(v).copied();
                    known.unwrap_or_else(|| {
                        let found = self.of_loop(*v);
                        self.names.borrow_mut().insert(*v, found);
                        found
                    })
                }
                _ => None,
            },
            ExprData::Index(arg) => of_value(k, *arg).or_else(|| self.of(*arg)),
            ExprData::Op { op: Op::Select, args } => {
                let (a, b) = (self.of(*args.get(1)?)?, self.of(*args.get(2)?)?);
                Some(Interval::new(a.lo.min(b.lo), a.hi.max(b.hi)))
            }
            ExprData::Op { op, args } => {
                let range = Interval::of(*op, self.of(*args.first()?)?, self.of(*args.get(1)?)?)?;
                Some(match self.upper_bound(e) {
                    Some(most) => Interval::new(range.lo.min(most), range.hi.min(most)),
                    None => range,
                })
            }
            _ => None,
        }
    }

    /// The values of the variable of a loop.
    fn of_loop(&self, v: Value) -> Option<Interval> {
        let &(start, end, step) = self.loops.get(&v)?;
        Some(Interval::of_loop(self.of(start)?, self.of(end)?, i128::from(step)))
    }

    /// The range of a name's definition. The result is cached for each name.
    fn of_name(&self, v: Value) -> Option<Interval> {
        let known = |v: Value| self.names.borrow().get(&v).copied();
        if let Some(found) = known(v) {
            return found;
        }
        let init = let_init(self.k, v)?;
        for (v, init) in self.k.names_below(init, |v| known(v).is_some()).into_iter().chain([(v, init)]) {
            let found = self.of(init);
            self.names.borrow_mut().insert(v, found);
        }
        known(v).flatten()
    }

    /// The range of a size or stride within `least..=most`, narrowed by preconditions.
    fn promised(&self, e: Expr, least: i128, most: i128) -> Interval {
        let most = promised(self.k, &self.bounds, e).map_or(most, |bound| bound.clamp(least, most));
        Interval::new(least, most)
    }

    /// An upper bound of an operation that does not follow from the ranges of its operands: from a precondition, or
    /// because it divides something that is below a product by factors of that product.
    #[must_use]
    pub fn upper_bound(&self, e: Expr) -> Option<i128> {
        let own = promised(self.k, &self.bounds, e);
        let quotient = match &self.k.exprs[e] {
            ExprData::Op { op: Op::Div, .. } => {
                self.below(e, &Cell::new(NAMES)).into_iter().filter_map(|p| self.largest(&p)).min()
            }
            _ => None,
        };
        own.into_iter().chain(quotient.map(|x| x - 1)).min()
    }

    /// Products that bound an index: the end of its loop, the extent of its axis, a divisor; for a quotient, these
    /// divided.
    fn below(&self, e: Expr, left: &Cell<u32>) -> Vec<Product> {
        let k = self.k;
        match &k.exprs[e] {
            ExprData::Ref(v) => match k.values[*v].def {
                ValueDef::Let => self.lookup_bounded(*v, left).map_or_else(Vec::new, |init| self.below(init, left)),
                ValueDef::Loop => self.loops.get(v).map_or_else(Vec::new, |&(_, end, _)| self.not_above(end, left)),
                ValueDef::Grid => {
                    let axis = k.grid.iter().find(|axis| axis.index == *v);
                    axis.map_or_else(Vec::new, |axis| self.not_above(axis.extent, left))
                }
                _ => Vec::new(),
            },
            ExprData::Op { op: Op::Rem, args } if positive(k, args[1]) => self.not_above(args[1], left),
            ExprData::Op { op: Op::Div, args } if positive(k, args[1]) => {
                let (by, parts) = factor_list(k, &[args[1]]);
                self.below(args[0], left).into_iter().filter_map(|p| p.divided(k, by, &parts)).collect()
            }
            ExprData::Op { op: Op::Min, args } => args.iter().flat_map(|&a| self.below(a, left)).collect(),
            _ => Vec::new(),
        }
    }

    /// Whether an index is known to be less than an extent: by its range, by the end of its loop or axis, or as a
    /// remainder or quotient.
    #[must_use]
    pub fn is_below(&self, index: Expr, extent: Expr) -> bool {
        let k = self.k;
        if let (Some(index), Some(extent)) = (self.of(index), self.of(extent))
            && index.hi < extent.lo
        {
            return true;
        }
        let (literal, parts) = factor_list(k, &[extent]);
        let within = |bound: Product| {
            let mut rest = parts.clone();
            let found = bound.parts.iter().all(|&part| {
                let at = rest.iter().position(|&own| same_expr(k, meaning(k, own), meaning(k, part)));
                at.map(|at| rest.swap_remove(at)).is_some()
            });
            found && bound.literal <= literal
        };
        positive(k, extent) && self.below(index, &Cell::new(NAMES)).into_iter().any(within)
    }

    /// The definition of a name, until the limit of lookups is reached.
    fn lookup_bounded(&self, v: Value, left: &Cell<u32>) -> Option<Expr> {
        left.set(left.get().checked_sub(1)?);
        let_init(self.k, v)
    }

    /// Products that an end is at most.
    fn not_above(&self, end: Expr, left: &Cell<u32>) -> Vec<Product> {
        let k = self.k;
        match &k.exprs[end] {
            ExprData::Ref(v) if let_init(k, *v).is_some() => {
                self.lookup_bounded(*v, left).map_or_else(Vec::new, |init| self.not_above(init, left))
            }
            ExprData::Op { op: Op::Min, args } => args.iter().flat_map(|&a| self.not_above(a, left)).collect(),
            ExprData::Op { op: Op::Sub, args } if k.as_int(args[1]).is_some_and(|x| x >= 0) => {
                self.not_above(args[0], left)
            }
            _ if positive(k, end) => {
                let (literal, parts) = factor_list(k, &[end]);
                vec![Product { literal, parts }]
            }
            _ => Vec::new(),
        }
    }

    /// The largest value of a product of sizes.
    fn largest(&self, p: &Product) -> Option<i128> {
        let most = |e: &Expr| Some(self.of(*e)?.hi);
        p.parts.iter().try_fold(p.literal, |all, e| all.checked_mul(most(e)?))
    }
}

/// Whether a window may begin before the tensor in some dimension.
#[must_use]
pub fn begins_in_front(k: &Kernel, window: &ResolvedView) -> bool {
    let ranges = Ranges::new(k);
    let least = |e: &Expr| ranges.of(*e).map(|range| range.lo);
    let sum = |dim: &ViewDim| dim.starts().iter().map(least).sum::<Option<i128>>();
    window.dims.iter().any(|dim| !matches!(dim, ViewDim::Fixed(_)) && sum(dim).is_none_or(|lo| lo < 0))
}
