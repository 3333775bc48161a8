//! The ends of windows that begin at a loop variable.
//!
//! In the body of `for k in a..b step s`, a window of a tensor written `k..` is a tile of the range `a..b`, so it ends
//! at `b`. Elements at and beyond `b` read as zero and are not written, whatever the extent of the tile is. The result
//! of a loop over tiles therefore does not depend on their size. `k..e` ends at `e` instead, and `k..inf` only at the
//! end of the tensor.
//!
//! The parser makes these ends explicit (`write_out`), so that all other code sees explicit ends. A window gets no end
//! if the loop's end is at or beyond that of the tensor. The printer writes `inf` where the parser would add an end
//! ([`implied`]).

use crate::entities::{Expr, Value};
use crate::kernel::{ExprData, Kernel, Range, StmtData, ValueDef, View};
use crate::ops::Op;
use crate::typing::{ResolvedView, ViewDim, let_init, resolve_view, same_product};

/// The loops of a kernel: their variables and ends.
#[derive(Debug, Default)]
pub struct LoopEnds(Vec<(Value, Expr)>);

impl LoopEnds {
    /// Those of `k`.
    pub fn of(k: &Kernel) -> LoopEnds {
        let mut loops = Vec::new();
        k.walk(k.body, &mut |k, _, s| {
            if let StmtData::For { var, end, .. } = k.stmts[s] {
                loops.push((var, end));
            }
        });
        LoopEnds(loops)
    }

    /// Where the loop of a variable ends.
    pub fn end(&self, var: Value) -> Option<Expr> {
        self.0.iter().find(|(v, _)| *v == var).map(|&(_, end)| end)
    }
}

/// The loop variable that an index is, by its own name or that of a `let`.
pub fn loop_variable(k: &Kernel, e: Expr) -> Option<Value> {
    match &k.exprs[e] {
        ExprData::Ref(v) => match k.values[*v].def {
            ValueDef::Loop => Some(*v),
            ValueDef::Let => loop_variable(k, let_init(k, *v)?),
            _ => None,
        },
        ExprData::Op { op, args } => match (op, args.as_slice()) {
            (Op::Add | Op::Sub, &[a, b]) if k.as_int(b) == Some(0) => loop_variable(k, a),
            (Op::Mul | Op::Div, &[a, b]) if k.as_int(b) == Some(1) => loop_variable(k, a),
            (Op::Add, &[a, b]) if k.as_int(a) == Some(0) => loop_variable(k, b),
            (Op::Mul, &[a, b]) if k.as_int(a) == Some(1) => loop_variable(k, b),
            _ => None,
        },
        _ => None,
    }
}

/// The definition of an index, with names of index values resolved.
pub fn meaning(k: &Kernel, e: Expr) -> Expr {
    let mut e = e;
    while let ExprData::Ref(v) = k.exprs[e]
        && let Some(init) = let_init(k, v)
    {
        e = init;
    }
    e
}

/// Operators through which [`covers`] looks.
const DEPTH: usize = 8;

/// Whether the index `e` is at least `extent`, as the text of both shows.
pub fn covers(k: &Kernel, e: Expr, extent: Expr) -> bool {
    covers_within(k, e, extent, DEPTH)
}

fn covers_within(k: &Kernel, e: Expr, extent: Expr, depth: usize) -> bool {
    let (e, extent) = (meaning(k, e), meaning(k, extent));
    if same_product(k, e, extent) || k.as_int(e).zip(k.as_int(extent)).is_some_and(|(e, n)| e >= n) {
        return true;
    }
    let (ExprData::Op { op, args }, Some(depth)) = (&k.exprs[e], depth.checked_sub(1)) else { return false };
    let &[a, b] = args.as_slice() else { return false };
    let covers = |e: Expr| covers_within(k, e, extent, depth);
    let at_least_zero = |e: Expr| k.as_int(e).is_some_and(|x| x >= 0);
    match op {
        Op::Add => at_least_zero(b) && covers(a) || at_least_zero(a) && covers(b),
        Op::Max => covers(a) || covers(b),
        Op::Min => covers(a) && covers(b),
        // `ceildiv(n, c) * c`
        Op::Mul => [(a, b), (b, a)].into_iter().any(|(count, size)| match &k.exprs[meaning(k, count)] {
            ExprData::Op { op: Op::CeilDiv, args } => {
                same_product(k, args[1], size) && covers_within(k, args[0], extent, depth)
            }
            _ => false,
        }),
        _ => false,
    }
}

/// The window of a tensor that `base` names, if it does.
fn tensor_of(k: &Kernel, base: Value) -> Option<ResolvedView> {
    match &k.values[base].def {
        ValueDef::Tensor(t) => Some(ResolvedView {
            base,
            slot: None,
            dims: vec![ViewDim::From { starts: Vec::new(), end: None }; t.shape.len()],
            transposed: false,
        }),
        ValueDef::Let => resolve_view(k, let_init(k, base)?).filter(|view| k.tensor_ty(view.base).is_some()),
        _ => None,
    }
}

/// The end that range `d` of a window has if none is written: that of the loop at whose variable it begins, where the tensor may go on there.
pub fn implied(k: &Kernel, loops: &LoopEnds, view: &View, d: usize) -> Option<Expr> {
    let Range::From { start, .. } = *view.ranges.get(d)? else { return None };
    let end = loops.end(loop_variable(k, start)?)?;
    let tensor = tensor_of(k, view.base)?;
    let &dim = tensor.base_dims().get(d)?;
    let &extent = k.tensor_ty(tensor.base)?.shape.get(dim)?;
    (!covers(k, end, extent)).then_some(end)
}

/// Writes out the ends of windows that begin at loop variables, and leaves out those that are `inf`.
pub(crate) fn write_out(k: &mut Kernel) {
    let loops = LoopEnds::of(k);
    for e in k.exprs.keys().collect::<Vec<Expr>>() {
        let ExprData::View(view) = &k.exprs[e] else { continue };
        let mut view = view.clone();
        let ends: Vec<Option<Expr>> = (0..view.ranges.len())
            .map(|d| match view.ranges[d] {
                Range::From { end: None, .. } => implied(k, &loops, &view, d),
                _ => None,
            })
            .collect();
        for (range, implied) in view.ranges.iter_mut().zip(&ends) {
            let Range::From { end, .. } = range else { continue };
            *end = match (*end, implied) {
                (Some(written), _) => (!is_infinite(k, written)).then_some(written),
                (None, implied) => implied.map(|implied| k.copy_expr(implied)),
            };
        }
        k.exprs[e] = ExprData::View(view.clone());
        if ends.iter().any(Option::is_some) && resolve_view(k, e).is_none() {
            on_tensor(k, e, &view);
        }
    }
}

/// Whether the end of a range is `inf`.
pub(crate) fn is_infinite(k: &Kernel, e: Expr) -> bool {
    matches!(k.exprs[e], ExprData::Float(bits) if f64::from_bits(bits) == f64::INFINITY)
}

/// A window of a named window that begins past its beginning: as one of the tensor, in whose coordinates its end is a sum.
fn on_tensor(k: &mut Kernel, e: Expr, view: &View) {
    let Some(outer) = tensor_of(k, view.base) else { return };
    let kept = outer.base_dims();
    if kept.len() != view.ranges.len() {
        return; // For the verifier to say.
    }
    let span = k.expr_spans[e];
    let mut ranges = Vec::new();
    for (d, dim) in outer.dims.iter().enumerate() {
        let (starts, outer_end) = match dim {
            ViewDim::Fixed(at) => {
                ranges.push(Range::At(k.copy_expr(*at)));
                continue;
            }
            ViewDim::From { starts, end } => (starts, *end),
            ViewDim::Gather(_) => return, // For the verifier to say.
        };
        let moved = |k: &mut Kernel, by: Expr| {
            let by = k.copy_expr(by);
            starts.iter().rev().fold(by, |sum, &start| {
                let start = k.copy_expr(start);
                k.binary(Op::Add, start, sum, span)
            })
        };
        let inner = kept.iter().position(|&kept| kept == d).expect("a dimension with a range is kept");
        ranges.push(match view.ranges[inner] {
            Range::At(at) => Range::At(moved(k, at)),
            Range::Gather(at) if starts.is_empty() && outer_end.is_none() => Range::Gather(k.copy_expr(at)),
            Range::Gather(_) => return,
            Range::From { start, end } => {
                let start = moved(k, start);
                let outer_end = outer_end.map(|end| k.copy_expr(end));
                let end = match (end.map(|end| moved(k, end)), outer_end) {
                    (Some(a), Some(b)) => Some(k.binary(Op::Min, a, b, span)),
                    (a, b) => a.or(b),
                };
                Range::From { start, end }
            }
        });
    }
    let window = ExprData::View(View { base: outer.base, slot: None, ranges });
    k.exprs[e] = match outer.transposed && !view.ranges.iter().any(|r| matches!(r, Range::At(_))) {
        true => ExprData::Transpose(k.expr(window, span)),
        false => window,
    };
}
