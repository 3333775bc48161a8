//! Copies of a loop that can run ahead: buffer, window, and mechanism.

use super::general_loops;
use super::loop_plan::Fill;
use crate::Cx;
use crate::analysis::access_width::{known_elem, window_contiguous_dim};
use crate::producer_fills::computed;
use crate::refusal::Refused;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::target::is_asynchronous_access;
use tilec_ir::typing::{ResolvedView, resolve_view};

/// Splits statements into copies that fill buffers which no statement in front of them uses, and the others. Such
/// copies may move in front of the others.
pub(super) fn ahead(k: &Kernel, cx: &Cx<'_>, stmts: &[Stmt]) -> (Vec<Fill>, Vec<Stmt>) {
    let (mut fills, mut others): (Vec<Fill>, Vec<Stmt>) = (Vec::new(), Vec::new());
    for &s in stmts {
        match fill(k, cx, s) {
            Some(fill) if !others.iter().any(|&t| general_loops::uses(k, t, fill.buffer)) => fills.push(fill),
            _ => others.push(s),
        }
    }
    (fills, others)
}

/// [`ahead`] for copies without computation, because computed tiles pass through registers.
pub(super) fn plain(k: &Kernel, cx: &Cx<'_>, stmts: &[Stmt]) -> (Vec<Fill>, Vec<Stmt>) {
    let (fills, others) = ahead(k, cx, stmts);
    let computed: Vec<Value> = fills.iter().filter(|f| f.computed.is_some()).map(|f| f.buffer).collect();
    if computed.is_empty() {
        return (fills, others);
    }
    let into = |s: Stmt| matches!(k.stmts[s], StmtData::Copy { dst, .. } if matches!(k.exprs[dst], ExprData::Ref(v) if computed.contains(&v)));
    let others = stmts.iter().copied().filter(|&s| others.contains(&s) || into(s)).collect();
    (fills.into_iter().filter(|f| f.computed.is_none()).collect(), others)
}

/// Splits off the copies at the start of a body.
pub(super) fn leading(k: &Kernel, cx: &Cx<'_>, stmts: &[Stmt]) -> (Vec<Fill>, Vec<Stmt>) {
    let fills: Vec<Fill> = stmts.iter().map_while(|&s| fill(k, cx, s)).collect();
    let others = stmts[fills.len()..].to_vec();
    (fills, others)
}

/// A copy to a whole buffer, from a window of global memory or from an elementwise expression of one.
pub(super) fn fill(k: &Kernel, cx: &Cx<'_>, s: Stmt) -> Option<Fill> {
    let StmtData::Copy { src, dst, attrs } = &k.stmts[s] else { return None };
    let ExprData::Ref(buffer) = k.exprs[*dst] else { return None };
    // An atomic copy needs what was there.
    (matches!(k.values[buffer].def, ValueDef::Smem(_)) && attrs.reduce.is_none()).then_some(())?;
    let window = sole_window(k, *src)?;
    let computed = (window != *src).then_some(*src);
    if computed.is_some() && attrs.unaligned().is_some() {
        return None;
    }
    let view = resolve_view(k, window)?;
    let direct = cx.options.target.has_asynchronous_copies().then(|| match computed {
        None => direct(k, &view, buffer, attrs),
        Some(_) => {
            let why = format!("`{}` is computed from loaded values", k.values[buffer].name);
            Err(Refused::from(why)
                .help("copy the tile unchanged, and compute when it is read into registers, or after that"))
        }
    });
    let (direct, refused) = (matches!(direct, Some(Ok(()))), direct.and_then(Result::err));
    Some(Fill { buffer, src: window, computed, attrs: attrs.clone(), span: k.stmt_spans[s], direct, refused })
}

/// The only window of a tensor in an elementwise expression whose other operands are constant in the kernel; or the
/// expression itself.
fn sole_window(k: &Kernel, e: Expr) -> Option<Expr> {
    let mut found = Vec::new();
    let plain = windows(k, e, &mut found);
    let &[only] = found.as_slice() else { return None };
    (plain && resolve_view(k, only).is_some_and(|view| k.tensor_ty(view.base).is_some())).then_some(only)
}

/// Collects the windows in an expression. The result says whether the rest is elementwise and does not depend on
/// computed values.
fn windows(k: &Kernel, e: Expr, found: &mut Vec<Expr>) -> bool {
    if resolve_view(k, e).is_some() {
        found.push(e);
        return true;
    }
    match &k.exprs[e] {
        ExprData::Int(_) | ExprData::Float(_) | ExprData::Index(_) => true,
        ExprData::Ref(_) => computed(k, e).is_none(),
        ExprData::Op { args, .. } => args.iter().all(|&arg| windows(k, arg, found)),
        ExprData::Cast { arg, .. } => windows(k, *arg, found),
        ExprData::Lookup { index, .. } => windows(k, *index, found),
        _ => false,
    }
}

/// The buffer that a copy fills with values computed from windows of global memory.
pub(super) fn converted(k: &Kernel, s: Stmt) -> Option<Value> {
    let StmtData::Copy { src, dst, ref attrs } = k.stmts[s] else { return None };
    let ExprData::Ref(buffer) = k.exprs[dst] else { return None };
    // An atomic copy needs what was there.
    let fills = resolve_view(k, src).is_none() && attrs.reduce.is_none();
    let computes = fills && matches!(k.values[buffer].def, ValueDef::Smem(_));
    computes.then_some(buffer)
}

/// Why `cp.async` cannot do the copy. `Ok`: accesses have its widths, and elements are not converted or transposed.
fn direct(k: &Kernel, from: &ResolvedView, buffer: Value, attrs: &CopyAttrs) -> Result<(), Refused> {
    let width = attrs.vec.unwrap_or(1);
    let transposed = window_contiguous_dim(k, from) != crate::analysis::contiguous_dim::smem_contiguous(k, buffer);
    let (name, from, to) = (&k.values[from.base].name, known_elem(k, from.base), known_elem(k, buffer));
    let help = &format!("store `{name}` in the order in which the product reads it");
    if from != to {
        return Err(format!("the copy of `{name}` converts").into());
    }
    if attrs.fill.is_some() {
        return Err(Refused::by_request(format!("elements outside the bounds of `{name}` are not zero (`fill`)")));
    }
    if attrs.reduce.is_some() || attrs.when.is_some() {
        return Err(format!("the copy of `{name}` has attributes").into());
    }
    // `vectorize` has reported why accesses are narrow.
    if attrs.unaligned().is_some() {
        return Err(Refused::by_request(format!(
            "`{name}` may be unaligned, so it is loaded as aligned words that are shifted"
        )));
    }
    if !is_asynchronous_access(from.size(), width) {
        let why = format!("`{name}` is copied {} byte(s) at a time", from.bytes_of(width.into()));
        let turned = format!("{why}, because the copy transposes it");
        return Err(if transposed { Refused::from(turned).help(help) } else { Refused::by_request(why) });
    }
    match transposed && width > 1 {
        false => Ok(()),
        true => Err(Refused::from(format!("the copy transposes `{name}`")).help(help)),
    }
}

/// A copy that fills a buffer on a side of a branch among these statements.
pub(super) fn branched(k: &Kernel, cx: &Cx<'_>, stmts: &[Stmt]) -> Option<Fill> {
    stmts.iter().filter(|&&s| matches!(k.stmts[s], StmtData::If { .. })).find_map(|&s| {
        k.sub_blocks(s).into_iter().find_map(|b| {
            let inside = &k.blocks[b];
            inside.iter().find_map(|&s| fill(k, cx, s)).or_else(|| branched(k, cx, inside))
        })
    })
}
