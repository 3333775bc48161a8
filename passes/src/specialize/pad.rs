//! Extents that no instruction of warps has: tiles of 80 columns, say, become tiles of 128.
//!
//! Warps share tiles out by powers of two, where warpgroups have columns of any multiple of 8. A program means the same in the next larger tile where all of
//! its windows begin at the first element of a dimension of just that extent: what is beyond reads as zero, adds nothing to a product, and is not written.
//!
//! Needs: literal extents. Decides: extents of tiles. Where a tile means something else when it is larger, it stays, and the reason is part of the error.

use crate::Cx;
use crate::analysis::uses::{all_stmts, stmt_exprs};
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::ops::{Op, ReduceOp};
use tilec_ir::typing::{ResolvedView, ViewDim, fixed_shape, let_init, resolve_view};

/// Makes extents that are no powers of two larger, where there is no wgmma, and says so. Gives back why they stay, if they do.
pub(crate) fn extents(k: &mut Kernel, cx: &mut Cx<'_>) -> Option<String> {
    match enlarge(k) {
        Ok(larger) => {
            for (v, from, to) in larger {
                let (span, name) = (k.values[v].span, &k.values[v].name);
                cx.remark(span, format!("`{name}` has {to} elements for {from}: warps share out powers of two"));
            }
            None
        }
        Err(why) => Some(why),
    }
}

/// The same without a word: which tiles have become larger, from what to what.
pub(crate) fn enlarge(k: &mut Kernel) -> Result<Vec<(Value, u64, u64)>, String> {
    let mut odd: Vec<u64> = Vec::new();
    for data in k.values.values() {
        let (ValueDef::Var(t) | ValueDef::Smem(t)) = &data.def else { continue };
        odd.extend(k.const_shape(&t.shape).into_iter().flatten().filter(|n| !n.is_power_of_two()));
    }
    odd.sort_unstable();
    odd.dedup();
    if let Some(why) = odd.iter().find_map(|&n| in_the_way(k, n)) {
        return Err(why);
    }
    let mut larger = Vec::new();
    for v in k.values.keys().collect::<Vec<_>>() {
        let Some(shape) = k.tile_ty(v).and_then(|tile| k.const_shape(&tile.shape)) else { continue };
        for (d, n) in shape.into_iter().enumerate().filter(|(_, n)| odd.contains(n)) {
            let to = n.next_power_of_two();
            let whole = k.int(to as i64, k.values[v].span);
            k.tile_ty_mut(v).expect("it is a tile").shape[d] = whole;
            larger.push((v, n, to));
        }
    }
    Ok(larger)
}

/// Why tiles of extent `n` cannot be larger.
fn in_the_way(k: &Kernel, n: u64) -> Option<String> {
    for (_, data) in k.values.iter() {
        let (ValueDef::Var(t) | ValueDef::Smem(t)) = &data.def else { continue };
        let own = k.const_shape(&t.shape).is_some_and(|shape| shape.contains(&n));
        if own && (t.reg_layout.is_some() || t.smem_layout.is_some()) {
            return Some(format!("the layout of `{}` is written", data.name));
        }
    }
    for s in all_stmts(k, k.body) {
        if let StmtData::Copy { src, dst, attrs } = &k.stmts[s]
            && let Some(why) = copied(k, n, (*src, *dst), attrs)
        {
            return Some(why);
        }
        for e in stmt_exprs(k, s) {
            if let Some(why) = computed(k, n, e) {
                return Some(why);
            }
        }
    }
    None
}

/// The same of a copy: its windows are of whole dimensions.
fn copied(k: &Kernel, n: u64, (src, dst): (Expr, Expr), attrs: &CopyAttrs) -> Option<String> {
    let shape = fixed_shape(k, dst).or_else(|| fixed_shape(k, src)).filter(|shape| shape.contains(&n))?;
    if attrs.fill.is_some() || attrs.threads.is_some() {
        return Some("how a tile is copied is written (`fill`, `threads`)".to_owned());
    }
    for view in [resolve_view(k, src), resolve_view(k, dst)].into_iter().flatten() {
        let kept = view.kept();
        let own = kept.iter().enumerate().filter(|&(w, _)| shape.get(w) == Some(&n));
        if let Some(why) = own.map(|(_, &d)| d).find_map(|d| window(k, n, &view, d)) {
            return Some(why);
        }
    }
    None
}

/// The same of a window along a dimension in which the tile has `n` elements.
fn window(k: &Kernel, n: u64, view: &ResolvedView, d: usize) -> Option<String> {
    let name = &k.values[view.base].name;
    let first = |e: &Expr| k.as_int(*e) == Some(0);
    let begins = matches!(&view.dims[d], ViewDim::From { starts, end: None } if starts.iter().all(first));
    let extent = k.tensor_ty(view.base).map(|tensor| tensor.shape.get(d).and_then(|&e| k.as_int(e)));
    let all = extent.is_none_or(|extent| extent.and_then(|x| u64::try_from(x).ok()) == Some(n));
    let why = || format!("a window of `{name}` is not all {n} elements of a dimension that has so many");
    (!(begins && all)).then(why)
}

/// The same of an expression.
fn computed(k: &Kernel, n: u64, e: Expr) -> Option<String> {
    match &k.exprs[e] {
        ExprData::Reduce { arg, axis, op, .. } => {
            let over = fixed_shape(k, *arg).is_some_and(|shape| shape.get(*axis as usize) == Some(&n));
            if over && !(*op == ReduceOp::Sum && zero(k, *arg)) {
                return Some(format!("a reduction runs over {n} elements, and what is beyond them would count"));
            }
        }
        ExprData::Mma(mma) => {
            let along = |e: Expr, d: usize| fixed_shape(k, e).is_some_and(|shape| shape.get(d) == Some(&n));
            if (along(mma.a, 1) || along(mma.b, 0)) && !(zero(k, mma.a) && zero(k, mma.b)) {
                return Some(format!("a product sums {n} elements of an operand that is computed"));
            }
        }
        _ => {}
    }
    k.children(e).into_iter().find_map(|e| computed(k, n, e))
}

/// Magnitudes that every type of elements has, so that zero times such a number is zero.
const FINITE: f64 = 448.0;

/// Whether an expression is zero where the tiles that it is made of are beyond their tensors.
fn zero(k: &Kernel, e: Expr) -> bool {
    zero_within(k, e, &mut Vec::new())
}

/// The same; of the tiles in `asked` it is known, or being found out.
fn zero_within(k: &Kernel, e: Expr, asked: &mut Vec<Value>) -> bool {
    let literal = |e: Expr| match k.exprs[e] {
        ExprData::Int(x) => Some(x as f64),
        ExprData::Float(bits) => Some(f64::from_bits(bits)),
        _ => None,
    };
    match &k.exprs[e] {
        _ if literal(e).is_some() => literal(e) == Some(0.0),
        ExprData::Cast { arg, .. } => zero_within(k, *arg, asked),
        ExprData::Op { op: Op::Mul, args } => {
            let factor = |e: Expr| literal(e).is_some_and(|x| x.abs() <= FINITE);
            args.iter().any(|&arg| literal(arg).is_none())
                && args.iter().all(|&arg| factor(arg) || zero_within(k, arg, asked))
        }
        ExprData::Op { op: Op::Add | Op::Sub | Op::Neg | Op::Max | Op::Min, args } => {
            args.iter().all(|&arg| zero_within(k, arg, asked))
        }
        ExprData::Ref(v) if let_init(k, *v).is_some_and(|init| resolve_view(k, init).is_none()) => {
            let_init(k, *v).is_some_and(|init| zero_within(k, init, asked))
        }
        _ => resolve_view(k, e).is_some_and(|view| k.tensor_ty(view.base).is_some() || filled(k, view.base, asked)),
    }
}

/// Whether nothing but copies of what is zero beyond the tensors fills a tile.
fn filled(k: &Kernel, v: Value, asked: &mut Vec<Value>) -> bool {
    if asked.contains(&v) {
        return true;
    }
    asked.push(v);
    all_stmts(k, k.body).into_iter().all(|s| match k.stmts[s] {
        StmtData::Copy { src, dst, .. } => {
            resolve_view(k, dst).is_none_or(|to| to.base != v) || zero_within(k, src, asked)
        }
        StmtData::Assign { dst, .. } => dst != v,
        StmtData::Var { value, init } => value != v || init.is_none(),
        _ => true,
    })
}
