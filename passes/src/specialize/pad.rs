//! Pads extents that are not powers of two: tiles of 80 columns become tiles of 128.
//!
//! Threads divide tiles by powers of two (but wgmma has columns of any multiple of 8). The padded program has the same
//! meaning. Windows of tensors end where the tile did (`X[i * 80..i * 80 + 80]`, unless the dimension has just that
//! extent). So elements beyond read as zero, add nothing to a product, and are not written. Windows of buffers and
//! register tiles end there, too. Numbers of gathered rows are -1 beyond it. Operands of reductions are masked beyond
//! by the neutral value (`maximum(select(iota(x, 1) < 80, x, -inf), 1)`), and tuples beyond are not combined. Computed
//! operands of products are masked by zero. A tile that copies fill in part is initialised with zero.
//!
//! Needs: literal extents. Decides: extents of tiles. If a padded tile would change the result, the extent stays, and
//! the error has the reason.

mod extent;
mod operands;
mod rows;
pub(crate) mod small_products;
mod tuples;
mod zeros;

use self::extent::Extent;
use super::zero_init;
use crate::Cx;
use crate::analysis::uses::{all_stmts, stmt_exprs};
use crate::analysis::views::copy_shape;
use crate::analysis::wgmma::{COLUMNS, is_columns};
use tilec_ir::diag::Span;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, Range, StmtData, ValueDef};
use tilec_ir::ops::{Op, ReduceOp};
use tilec_ir::target::Target;
use tilec_ir::types::{Elem, ElemRef};
use tilec_ir::typing::{ResolvedView, ViewDim, fixed_shape, let_init, operand_shape, resolve_view, type_of};
use zeros::zero;

/// Which tiles may be padded.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(crate) enum Windows {
    /// Those whose windows of tensors cover whole dimensions.
    Whole,
    /// All: windows of tensors get ends, too.
    Any,
}

/// Why tiles are not padded.
pub(crate) struct Unpadded {
    pub(crate) why: String,
    /// Whether zeros in the padding would change a result, even if the source is padded by hand.
    pub(crate) counts: bool,
    /// The expression that is the reason, if it is not the tile.
    at: Option<Span>,
}

/// Pads extents that are no powers of two, except those in `stay`, with a remark. Returns why others are not padded, if
/// any.
pub(crate) fn extents(k: &mut Kernel, cx: &mut Cx<'_>, windows: Windows, stay: &[u64]) -> Option<Unpadded> {
    match enlarge(k, windows, stay) {
        Ok(larger) => {
            for (v, from, to) in larger {
                let (span, name) = (k.values[v].span, &k.values[v].name);
                cx.remark(
                    span,
                    format!(
                        "`{name}` is padded from {from} to {to} elements: extents of tiles that threads or warps divide are powers of two"
                    ),
                );
            }
            None
        }
        Err(why) => Some(why),
    }
}

/// Extents of products that may use wgmma, and so need not be powers of two: tiles with these extents are not padded.
pub(crate) fn of_products(k: &Kernel, target: Target) -> Vec<u64> {
    fn add(k: &Kernel, e: Expr, found: &mut Vec<u64>) {
        if let ExprData::Mma(mma) = k.exprs[e] {
            let shapes = [mma.a, mma.b, mma.c].into_iter().filter_map(|e| fixed_shape(k, e));
            // Extents above the columns of an instruction are no columns; padding them would be wasteful, so they are
            // refused.
            found.extend(shapes.flatten().filter(|&n| !n.is_power_of_two() && (is_columns(n) || n > COLUMNS)));
        }
        k.children(e).into_iter().for_each(|child| add(k, child, found));
    }
    let mut found = Vec::new();
    if target.has_tensor_copies() {
        all_stmts(k, k.body).into_iter().flat_map(|s| stmt_exprs(k, s)).for_each(|e| add(k, e, &mut found));
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Whether a tile has an extent that is no power of two.
pub(crate) fn has_odd_extents(k: &Kernel) -> bool {
    !odd_extents(k, &[]).is_empty()
}

/// Extents that are no powers of two, except those in `stay`.
fn odd_extents(k: &Kernel, stay: &[u64]) -> Vec<u64> {
    let mut odd: Vec<u64> = Vec::new();
    for data in k.values.values() {
        let (ValueDef::Var(t) | ValueDef::Smem(t)) = &data.def else { continue };
        let own = k.const_shape(&t.shape).into_iter().flatten();
        odd.extend(own.filter(|n| !n.is_power_of_two() && !stay.contains(n)));
    }
    odd.sort_unstable();
    odd.dedup();
    odd
}

/// [`extents`] without messages: the padded tiles, with old and new extent.
pub(crate) fn enlarge(k: &mut Kernel, windows: Windows, stay: &[u64]) -> Result<Vec<(Value, u64, u64)>, Unpadded> {
    let odd: Vec<Extent> = odd_extents(k, stay).into_iter().map(Extent::odd).collect();
    enlarge_to(k, windows, &odd)
}

/// [`enlarge`], of these extents.
fn enlarge_to(k: &mut Kernel, windows: Windows, extents: &[Extent]) -> Result<Vec<(Value, u64, u64)>, Unpadded> {
    let odd: Vec<u64> = extents.iter().map(|n| n.own).collect();
    if windows == Windows::Any {
        operands::as_tiles(k, &odd);
    }
    if let Some(why) = extents.iter().find_map(|&n| why_not_padded(k, n, windows)) {
        return Err(why);
    }
    rows::stay_within_buffers(k, extents);
    extents.iter().for_each(|&n| cut_off(k, n));
    for v in zero_init::filled_in_parts(k, &odd) {
        zero_init::as_zero(k, v);
    }
    odd.iter().for_each(|&n| drop_checks(k, n));
    let mut larger = Vec::new();
    for v in k.values.keys().collect::<Vec<_>>() {
        let Some(shape) = k.tile_ty(v).and_then(|tile| k.const_shape(&tile.shape)) else { continue };
        for (d, own) in shape.into_iter().enumerate() {
            let Some(&Extent { count, to, .. }) = extents.iter().find(|n| n.own == own) else { continue };
            let whole = k.int(to as i64, k.values[v].span);
            k.tile_ty_mut(v).expect("it is a tile").shape[d] = whole;
            k.values[v].padded.push((count, to));
            larger.push((v, count, to));
        }
    }
    super::reshaped::follow(k);
    Ok(larger)
}

/// Removes written `check` attributes, which hold for `n` elements only. The compiler derives the checks of padded
/// tiles.
fn drop_checks(k: &mut Kernel, n: u64) {
    for s in all_stmts(k, k.body) {
        let StmtData::Copy { src, dst, .. } = k.stmts[s] else { continue };
        let grows = copy_shape(k, src, dst).is_some_and(|shape| shape.contains(&n));
        if let StmtData::Copy { attrs, .. } = &mut k.stmts[s]
            && grows
        {
            attrs.check = None;
        }
    }
}

/// Why tiles of extent `n` cannot be padded.
fn why_not_padded(k: &Kernel, n: Extent, windows: Windows) -> Option<Unpadded> {
    let other = |why: String| Unpadded { why, counts: false, at: None };
    for (_, data) in k.values.iter() {
        let (ValueDef::Var(t) | ValueDef::Smem(t)) = &data.def else { continue };
        let own = k.const_shape(&t.shape).is_some_and(|shape| shape.contains(&n.own));
        if own && (t.reg_layout.is_some() || t.smem_layout.is_some()) {
            return Some(other(format!("the layout of `{}` is written", data.name)));
        }
    }
    for s in all_stmts(k, k.body) {
        if let StmtData::Copy { src, dst, attrs } = &k.stmts[s]
            && let Some(why) = copied(k, n.own, (*src, *dst), attrs, windows)
        {
            return Some(other(why));
        }
        for e in stmt_exprs(k, s) {
            if let Some(why) = computed(k, n.own, e, windows) {
                return Some(Unpadded { why, counts: true, at: Some(k.expr_spans[e]) });
            }
        }
        if let Some(why) =
            windows_of(k, s).into_iter().find_map(|(e, shape)| window_prevents_padding(k, n, e, &shape, windows))
        {
            return Some(other(why));
        }
    }
    None
}

/// The same of a copy.
fn copied(k: &Kernel, n: u64, (src, dst): (Expr, Expr), attrs: &CopyAttrs, windows: Windows) -> Option<String> {
    copy_shape(k, src, dst).filter(|shape| shape.contains(&n))?;
    if attrs.threads.is_some() || windows == Windows::Whole && attrs.fill.is_some() {
        return Some("how a tile is copied is written (`fill`, `threads`)".to_owned());
    }
    None
}

/// Why a window with the elements of a tile of these extents prevents padding.
fn window_prevents_padding(k: &Kernel, n: Extent, e: Expr, shape: &[u64], windows: Windows) -> Option<String> {
    let view = resolve_view(k, e)?;
    let dims = view.base_dims();
    let own = dims.iter().enumerate().filter(|&(w, _)| shape.get(w) == Some(&n.own));
    own.map(|(_, &d)| d).find_map(|d| window(k, n, (e, &view), d, windows))
}

/// Why a window prevents padding along a dimension in which the tile has `n` elements.
fn window(k: &Kernel, n: Extent, (e, view): (Expr, &ResolvedView), d: usize, windows: Windows) -> Option<String> {
    let name = &k.values[view.base].name;
    if is_whole(k, n, view, d) {
        return None;
    }
    if windows == Windows::Whole && k.tensor_ty(view.base).is_some() {
        return Some(format!("a window of `{name}` is not all {} elements of a dimension that has so many", n.count));
    }
    let can_end = match view.dims[d] {
        ViewDim::From { .. } => true,
        ViewDim::Gather(rows) => {
            let w = view.base_dims().iter().position(|&own| own == d);
            w.is_some_and(|w| rows::counts(k, n.own, (view, w), rows))
        }
        _ => false,
    } && direct(k, e).is_some_and(|e| matches!(k.exprs[e], ExprData::View(_)));
    (!can_end).then(|| format!("a window of {} elements of `{name}` cannot end past them", n.count))
}

/// Whether a window begins at the first element of a dimension and covers all of it.
fn is_whole(k: &Kernel, n: Extent, view: &ResolvedView, d: usize) -> bool {
    let first = |e: &Expr| k.as_int(*e) == Some(0);
    let begins = matches!(&view.dims[d], ViewDim::From { starts, end: None } if starts.iter().all(first));
    let Some(tensor) = k.tensor_ty(view.base) else {
        // A larger buffer has contents that the tile does not cover. A buffer with one element along the dimension is
        // broadcast.
        let own = k.tile_ty(view.base).and_then(|tile| k.const_shape(&tile.shape));
        let own = own.filter(|shape| shape.len() == view.dims.len()).map(|shape| shape[d]);
        return begins && own.is_none_or(|own| own == n.own || own == 1);
    };
    // A broadcast dimension has any number of elements.
    let extent = tensor.shape.get(d).and_then(|&e| k.as_int(e)).and_then(|x| u64::try_from(x).ok());
    tensor.repeats.contains(&d) || begins && extent == Some(n.count)
}

/// The expression with the ranges of the window `e`: itself, the operand of a transposition, or the value of a name;
/// `None`: it is a window of another window.
pub(super) fn direct(k: &Kernel, e: Expr) -> Option<Expr> {
    match &k.exprs[e] {
        ExprData::Transpose(arg) => direct(k, *arg),
        ExprData::Ref(v) if matches!(k.values[*v].def, ValueDef::Let) => direct(k, let_init(k, *v)?),
        ExprData::View(view) => (!matches!(k.values[view.base].def, ValueDef::Let)).then_some(e),
        ExprData::Ref(_) => Some(e),
        _ => None,
    }
}

/// Calls `f` for the windows in an elementwise expression on tiles of these extents, and in reductions of them.
pub(crate) fn in_context(k: &Kernel, e: Expr, shape: &[u64], f: &mut dyn FnMut(Expr, &[u64])) {
    match k.exprs[e] {
        _ if resolve_view(k, e).is_some_and(|view| view.base_dims().len() == shape.len()) => f(e, shape),
        ExprData::Reduce { arg, .. } | ExprData::Scan { arg, .. } => {
            fixed_shape(k, arg).iter().for_each(|shape| in_context(k, arg, shape, f));
        }
        ExprData::Transpose(arg) => {
            let reversed: Vec<u64> = shape.iter().rev().copied().collect();
            in_context(k, arg, &reversed, f);
        }
        ExprData::Op { .. }
        | ExprData::Cast { .. }
        | ExprData::Bits { .. }
        | ExprData::Round { .. }
        | ExprData::Lookup { .. } => {
            k.children(e).into_iter().for_each(|child| in_context(k, child, shape, f));
        }
        _ => {}
    }
}

/// Calls `f` for the windows among the operands of products in an expression.
fn operand_windows(k: &Kernel, e: Expr, f: &mut dyn FnMut(Expr, &[u64])) {
    k.children(e).into_iter().for_each(|child| operand_windows(k, child, f));
    let ExprData::Mma(mma) = k.exprs[e] else { return };
    for (operand, second) in [(mma.a, false), (mma.b, true)] {
        operand_shape(k, &mma, second).iter().for_each(|shape| in_context(k, operand, shape, f));
    }
}

/// The windows in a statement, each with the extents of the tile with which it is combined.
pub(super) fn windows_of(k: &Kernel, s: Stmt) -> Vec<(Expr, Vec<u64>)> {
    let mut found = Vec::new();
    let mut add = |e: Expr, shape: &[u64]| in_context(k, e, shape, &mut |e, shape| found.push((e, shape.to_vec())));
    match k.stmts[s] {
        StmtData::Copy { src, dst, .. } => {
            if let Some(shape) = copy_shape(k, src, dst) {
                add(src, &shape);
                add(dst, &shape);
            }
        }
        StmtData::Assign { dst: value, src } | StmtData::Var { value, init: Some(src) } => {
            if let Some(shape) = k.tile_ty(value).and_then(|ty| k.const_shape(&ty.shape)) {
                add(src, &shape);
            }
        }
        StmtData::Let { init, .. } => {
            if let Some(shape) = fixed_shape(k, init) {
                add(init, &shape);
            }
        }
        _ => {}
    }
    for e in stmt_exprs(k, s) {
        operand_windows(k, e, &mut |e, shape| found.push((e, shape.to_vec())));
    }
    found
}

/// Makes windows of `n` elements end after them, and operands of reductions along `n` neutral in the padding.
fn cut_off(k: &mut Kernel, n: Extent) {
    let (mut windows, mut reduced, mut summed) = (Vec::new(), Vec::new(), Vec::new());
    for s in all_stmts(k, k.body) {
        windows.extend(windows_of(k, s).into_iter().map(|window| (s, window)));
        stmt_exprs(k, s).into_iter().for_each(|e| reductions(k, e, &mut reduced));
        stmt_exprs(k, s).into_iter().for_each(|e| factors(k, n.own, e, &mut summed));
    }
    // Of the contents as they are: masks come after all questions.
    summed.retain(|&(e, axis)| !zero(k, e, Some(axis)));
    for (s, (e, shape)) in windows {
        end(k, n, s, (e, &shape));
    }
    for e in reduced {
        match k.exprs[e] {
            ExprData::Combine(_) => tuples::without(k, n, e),
            _ => neutral(k, n, e),
        }
    }
    for (e, axis) in summed {
        cut_neutrally(k, n.count, (e, axis as u32), ReduceOp::Sum);
    }
}

/// Operands of products that sum `n` elements, with the dimension of the sum: inside of conversions and
/// transpositions, which leave zeros as they are.
fn factors(k: &Kernel, n: u64, e: Expr, found: &mut Vec<(Expr, usize)>) {
    k.children(e).into_iter().for_each(|child| factors(k, n, child, found));
    let ExprData::Mma(mma) = &k.exprs[e] else { return };
    for (mut at, mut axis) in [(mma.a, 1), (mma.b, 0)] {
        if fixed_shape(k, at).is_none_or(|shape| shape.get(axis) != Some(&n)) {
            continue;
        }
        loop {
            (at, axis) = match k.exprs[at] {
                ExprData::Cast { arg, .. } => (arg, axis),
                ExprData::Transpose(arg) => (arg, 1 - axis),
                _ => break,
            };
        }
        found.push((at, axis));
    }
}

/// The reductions in an expression, inner ones first.
fn reductions(k: &Kernel, e: Expr, found: &mut Vec<Expr>) {
    k.children(e).into_iter().for_each(|child| reductions(k, child, found));
    if matches!(k.exprs[e], ExprData::Reduce { .. } | ExprData::Combine(_)) {
        found.push(e);
    }
}

/// Makes the window `e` of the statement `s` end after `n` elements along the dimensions in which it has `n`.
fn end(k: &mut Kernel, n: Extent, s: Stmt, (e, shape): (Expr, &[u64])) {
    let Some(view) = resolve_view(k, e) else { return };
    let kept = view.base_dims();
    let dims: Vec<usize> = kept
        .iter()
        .enumerate()
        .filter(|&(w, &d)| shape.get(w) == Some(&n.own) && !is_whole(k, n, &view, d))
        .map(|(_, &d)| d)
        .collect();
    let repeated = stored_by_index(k, n.own, s, (e, &view), shape);
    if dims.is_empty() && repeated.is_empty() {
        return;
    }
    // A name may also be a window of another tile.
    if let Some(own) = spelled_out(k, e) {
        k.exprs[e] = k.exprs[own].clone();
    }
    let at = direct(k, e).expect("bug: a window that cannot end is in the way");
    let span = k.expr_spans[at];
    let ExprData::View(mut of) = k.exprs[at].clone() else { panic!("bug: all of a tensor is in the way") };
    for d in dims {
        if of.ranges.is_empty() {
            let zero = |k: &mut Kernel| Range::From { start: k.int(0, span), end: None };
            of.ranges = (0..view.dims.len()).map(|_| zero(k)).collect();
        }
        let (start, end) = match of.ranges[d] {
            Range::From { start, end } => (start, end),
            Range::Gather(rows) => {
                let w = kept.iter().position(|&own| own == d).expect("it is a dimension of the window");
                let axis = rows::axis(k, n.own, (&view, w), rows);
                of.ranges[d] = Range::Gather(rows::ended(k, n.count, s, axis, rows));
                continue;
            }
            Range::At(_) => panic!("bug: a single element has no extent"),
        };
        let first = k.copy_expr(start);
        let count = k.int(n.count as i64, span);
        let behind = k.binary(Op::Add, first, count, span);
        let end = match end {
            Some(end) => k.binary(Op::Min, end, behind, span),
            None => behind,
        };
        of.ranges[d] = Range::From { start, end: Some(end) };
    }
    for (d, axis) in repeated {
        let Range::Gather(rows) = of.ranges[d] else { unreachable!("it is gathered") };
        of.ranges[d] = Range::Gather(rows::ended(k, n.count, s, Some(axis), rows));
    }
    k.exprs[at] = ExprData::View(of);
}

/// If the statement stores to the window `e`, its gathered dimensions with an index for each element, and the dimensions
/// of `n` elements that the tensor repeats: no bound of the tensor is along these, so the indices name nothing there.
fn stored_by_index(
    k: &Kernel,
    n: u64,
    s: Stmt,
    (e, view): (Expr, &ResolvedView),
    shape: &[u64],
) -> Vec<(usize, usize)> {
    let is_stored = matches!(k.stmts[s], StmtData::Copy { dst, .. } if dst == e);
    let Some(tensor) = k.tensor_ty(view.base).filter(|_| is_stored) else { return Vec::new() };
    let kept = view.base_dims();
    let repeated = |w: &usize| shape.get(*w) == Some(&n) && tensor.repeats.contains(&kept[*w]);
    let Some((w, _)) = view.gathered_dims().into_iter().find(|&(w, numbers)| view.is_by_element(k, w, numbers)) else {
        return Vec::new();
    };
    (0..kept.len()).filter(repeated).map(|axis| (kept[w], axis)).collect()
}

/// A copy of a named window with names expanded, transposed like the name or its uses; `None`: there is no name.
fn spelled_out(k: &mut Kernel, e: Expr) -> Option<Expr> {
    match k.exprs[e] {
        ExprData::Transpose(arg) => {
            let arg = spelled_out(k, arg)?;
            Some(k.expr(ExprData::Transpose(arg), k.expr_spans[e]))
        }
        ExprData::Ref(v) => {
            let init = let_init(k, v)?;
            Some(spelled_out(k, init).unwrap_or_else(|| k.copy_expr(init)))
        }
        _ => None,
    }
}

/// Makes the operand of the reduction `e` neutral beyond `n` elements.
fn neutral(k: &mut Kernel, n: Extent, e: Expr) {
    let ExprData::Reduce { op, axis, arg, .. } = k.exprs[e] else { panic!("bug: it is a reduction") };
    let along = |k: &Kernel| fixed_shape(k, arg).is_some_and(|shape| shape.get(axis as usize) == Some(&n.own));
    if !along(k) || op == ReduceOp::Sum && zero(k, arg, Some(axis as usize)) {
        return;
    }
    cut_neutrally(k, n.count, (arg, axis), op);
}

/// Makes `arg` neutral for `op` beyond `n` elements of a dimension.
fn cut_neutrally(k: &mut Kernel, n: u64, (arg, axis): (Expr, u32), op: ReduceOp) {
    let span = k.expr_spans[arg];
    let elem = type_of(k, arg).ok().and_then(|ty| ty.elem());
    let own = k.expr(k.exprs[arg].clone(), span);
    let like = tuples::tile_like(k, arg).unwrap_or(own);
    let like = k.copy_expr(like);
    let place = k.expr(ExprData::Iota { axis, like }, span);
    let count = k.int(n as i64, span);
    let operator = |k: &mut Kernel, op: Op, args: Vec<Expr>| k.expr(ExprData::Op { op, args }, span);
    let whole = match (op, ignored_by(op, elem).or_else(|| neutral_of(op, elem))) {
        (ReduceOp::All, _) => {
            let beyond = operator(k, Op::Ge, vec![place, count]);
            operator(k, Op::Or, vec![own, beyond])
        }
        (ReduceOp::Any, _) => {
            let within = operator(k, Op::Lt, vec![place, count]);
            operator(k, Op::And, vec![own, within])
        }
        (_, Some(number)) => {
            let within = operator(k, Op::Lt, vec![place, count]);
            let number = k.expr(number, span);
            operator(k, Op::Select, vec![within, own, number])
        }
        (_, None) => panic!("bug: what no number leaves as it is is in the way"),
    };
    k.exprs[arg] = k.exprs[whole].clone();
}

/// NaN for extremes of floats, which ignore it: an infinity would be the extreme of a row of NaN.
fn ignored_by(op: ReduceOp, elem: Option<ElemRef>) -> Option<ExprData> {
    let extreme = matches!(op, ReduceOp::Maximum | ReduceOp::Minimum);
    let has_nan = matches!(elem, Some(ElemRef::Known(elem)) if elem.is_float() && elem != Elem::E2M1);
    (extreme && has_nan).then(|| ExprData::Float(f64::NAN.to_bits()))
}

/// The neutral number of a reduction of this element type; `None`: it cannot be written.
pub(super) fn neutral_of(op: ReduceOp, elem: Option<ElemRef>) -> Option<ExprData> {
    let Some(ElemRef::Known(elem)) = elem else { return None };
    let float = |x: f64| ExprData::Float(x.to_bits());
    let greatest = matches!(op, ReduceOp::Minimum | ReduceOp::ArgMin);
    match op {
        ReduceOp::Sum => Some(if elem.is_float() { float(0.0) } else { ExprData::Int(0) }),
        ReduceOp::Product => Some(if elem.is_float() { float(1.0) } else { ExprData::Int(1) }),
        ReduceOp::Any | ReduceOp::All => Some(ExprData::Int(0)),
        _ if elem.is_float() => Some(float(if greatest { f64::INFINITY } else { f64::NEG_INFINITY })),
        _ if elem == Elem::I64 => Some(ExprData::Int(if greatest { i64::MAX } else { i64::MIN })),
        // Literals are signed, so the largest u64 is written as -1.
        _ if elem == Elem::U64 => Some(ExprData::Int(if greatest { -1 } else { 0 })),
        _ if elem == Elem::U32 => Some(ExprData::Int(if greatest { i64::from(u32::MAX) } else { 0 })),
        _ => Some(ExprData::Int(i64::from(if greatest { i32::MAX } else { i32::MIN }))),
    }
}

/// Why an expression prevents padding.
fn computed(k: &Kernel, n: u64, e: Expr, windows: Windows) -> Option<String> {
    match &k.exprs[e] {
        ExprData::Reduce { arg, axis, op, .. } => {
            let over = fixed_shape(k, *arg).is_some_and(|shape| shape.get(*axis as usize) == Some(&n));
            let elem = type_of(k, *arg).ok().and_then(|ty| ty.elem());
            let counts = windows == Windows::Whole || neutral_of(*op, elem).is_none();
            if over && counts && !(*op == ReduceOp::Sum && zero(k, *arg, Some(*axis as usize))) {
                return Some(format!(
                    "a reduction runs over {n} elements, and elements beyond them would change the result"
                ));
            }
        }
        ExprData::Combine(combine) if windows == Windows::Whole && tuples::counts(k, n, combine) => {
            let word = combine.operation.word();
            return Some(format!(
                "a `{word}` runs over {n} elements, and elements beyond them would change the result"
            ));
        }
        ExprData::Mma(mma) => {
            let along = |e: Expr, d: usize| fixed_shape(k, e).is_some_and(|shape| shape.get(d) == Some(&n));
            // What is computed can be zero beyond: `select(iota(x, 1) < 80, x, 0.0)`.
            let adds_nothing = |e: Expr, d: usize| windows == Windows::Any && along(e, d) || zero(k, e, Some(d));
            if (along(mma.a, 1) || along(mma.b, 0)) && !(adds_nothing(mma.a, 1) && adds_nothing(mma.b, 0)) {
                return Some(format!("a product sums {n} elements of an operand that is computed"));
            }
        }
        _ => {}
    }
    k.children(e).into_iter().find_map(|e| computed(k, n, e, windows))
}
