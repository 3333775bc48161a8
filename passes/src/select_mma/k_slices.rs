//! Fragment tiles of a product, and the loop over slices of its reduction.

use crate::analysis::uses::{path_to, place_of};
use tilec_ir::diag::Span;
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, Mma, Range, StmtData, ValueDef, View};
use tilec_ir::types::{Elem, ElemRef, TileTy};

/// Turns the product `s` into a loop over slices of depth `depth` of a reduction of `extent`, which copies fragments
/// and multiplies them.
pub(crate) fn in_slices(
    k: &mut Kernel,
    s: Stmt,
    (acc, mma): (Value, Mma),
    fragments: [Value; 2],
    (extent, depth): (u64, u64),
) {
    let span = match k.stmts[s] {
        StmtData::Assign { src, .. } => k.expr_spans[src],
        _ => k.stmt_spans[s],
    };
    let kk = k.value("kk", span, ValueDef::Loop);
    let mut stmts = Vec::new();
    for (fragment, operand, dim) in [(fragments[0], mma.a, 1), (fragments[1], mma.b, 0)] {
        let (src, dst) = (slice(k, operand, dim, kk, span), k.value_ref(fragment, span));
        stmts.push(k.stmt(StmtData::Copy { src, dst, attrs: CopyAttrs::default() }, span));
    }
    let [a, b] = fragments.map(|f| k.value_ref(f, span));
    let c = k.value_ref(acc, span);
    let product = k.expr(ExprData::Mma(Mma { a, b, c, ..mma }), span);
    stmts.push(k.stmt(StmtData::Assign { dst: acc, src: product }, k.stmt_spans[s]));
    let body = k.block(stmts);
    let [start, end, step] = [0, extent, depth].map(|n| k.int(n as i64, span));
    k.stmts[s] = StmtData::For { var: kk, start, end, step, cond: None, next: None, unroll: true, body };
}

/// Declares a register tile in front of the outermost statement around `at`.
pub(crate) fn declare(k: &mut Kernel, at: Stmt, name: &str, elem: Elem, shape: &[u64], span: Span) -> Value {
    let (value, decl) = tile(k, name, elem, shape, span);
    insert_before_outermost(k, at, decl);
    value
}

/// Declares a register tile directly in front of `at`.
pub(crate) fn declare_beside(k: &mut Kernel, at: Stmt, name: &str, elem: Elem, shape: &[u64], span: Span) -> Value {
    let (value, decl) = tile(k, name, elem, shape, span);
    let place = place_of(k, at);
    insert_at(k, place, vec![decl]);
    value
}

fn tile(k: &mut Kernel, name: &str, elem: Elem, shape: &[u64], span: Span) -> (Value, Stmt) {
    let shape = shape.iter().map(|&x| k.int(x as i64, span)).collect();
    let value = k.value(name, span, ValueDef::Var(TileTy::registers(ElemRef::Known(elem), shape, None)));
    (value, k.stmt(StmtData::Var { value, init: None }, span))
}

/// Inserts statements at a position of a block.
pub(crate) fn insert_at(k: &mut Kernel, (block, index): (Block, usize), new: Vec<Stmt>) {
    k.blocks[block].splice(index..index, new);
}

/// Inserts a statement in front of the outermost statement around `at` (inside its role, if it has one).
pub(crate) fn insert_before_outermost(k: &mut Kernel, at: Stmt, new: Stmt) {
    let path = path_to(k, at);
    let place = path.iter().copied().find(|&(b, i)| !matches!(k.stmts[k.blocks[b][i]], StmtData::Role { .. }));
    match place {
        Some((block, index)) => k.blocks[block].insert(index, new),
        None => k.blocks[k.body].push(new),
    }
}

/// The window of `e` that begins at `kk` along dimension `dim`.
pub(crate) fn slice(k: &mut Kernel, e: Expr, dim: usize, kk: Value, span: Span) -> Expr {
    match k.exprs[e].clone() {
        ExprData::Transpose(inner) => {
            let inner = slice(k, inner, 1 - dim, kk, span);
            k.expr(ExprData::Transpose(inner), span)
        }
        ExprData::View(View { base, slot, ranges }) if !ranges.is_empty() => {
            let mut kept = 0;
            let ranges = ranges
                .into_iter()
                .map(|r| match r {
                    Range::At(e) => Range::At(e),
                    Range::Gather(_) => panic!("bug: an operand of a product is gathered"),
                    Range::From { start, end } => {
                        let hit = kept == dim;
                        kept += 1;
                        if hit {
                            let r = k.value_ref(kk, span);
                            Range::From { start: k.binary(tilec_ir::ops::Op::Add, start, r, span), end }
                        } else {
                            Range::From { start, end }
                        }
                    }
                })
                .collect();
            k.expr(ExprData::View(View { base, slot, ranges }), span)
        }
        ExprData::View(View { base, slot, .. }) => window(k, base, slot, dim, kk, span),
        ExprData::Ref(base) => window(k, base, None, dim, kk, span),
        _ => e,
    }
}

pub(crate) fn window(
    k: &mut Kernel,
    base: Value,
    slot: Option<tilec_ir::kernel::Slot>,
    dim: usize,
    kk: Value,
    span: Span,
) -> Expr {
    let ranges = (0..2)
        .map(|d| {
            let start = if d == dim { k.value_ref(kk, span) } else { k.int(0, span) };
            Range::From { start, end: None }
        })
        .collect();
    k.expr(ExprData::View(View { base, slot, ranges }), span)
}
