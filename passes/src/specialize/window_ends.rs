//! Removes ends of windows that cut nothing off.
//!
//! A window that begins at a loop variable ends with its loop (`tilec_ir::loop_ends`). If the range is known to be whole tiles, or the tensor
//! ends with the loop, the end is not needed. The window is then a full tile, which TMA copies and wide accesses can move.

use crate::analysis::bounds::whole_tiles;
use crate::analysis::facts::Facts;
use crate::analysis::uses::all_stmts;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ExprData, Kernel, Range, StmtData};
use tilec_ir::loop_ends::{covers, loop_variable};
use tilec_ir::ops::Op;
use tilec_ir::typing::{copy_shape, fixed_shape, resolve_view, same_expr};

/// Removes the ends of windows that no launch needs. A pass that replaces a loop variable by a value calls this, too,
/// because a single iteration may allow more.
pub(crate) fn drop_idle(k: &mut Kernel) {
    let ends = |e: &ExprData| matches!(e, ExprData::View(v) if v.ranges.iter().any(|r| matches!(r, Range::From { end: Some(_), .. })));
    if !k.exprs.values().any(ends) {
        return;
    }
    let mut idle: Vec<(Expr, usize)> = Vec::new();
    let facts = Facts::new(k);
    let loops: Vec<(Value, [Expr; 3])> = all_stmts(k, k.body)
        .into_iter()
        .filter_map(|s| match k.stmts[s] {
            StmtData::For { var, start, end, step, .. } => Some((var, [start, end, step])),
            _ => None,
        })
        .collect();
    let ends = Ends { k, facts: &facts, loops: &loops };
    for s in all_stmts(k, k.body) {
        match k.stmts[s] {
            StmtData::Copy { src, dst, .. } => {
                let shape = copy_shape(k, src, dst);
                ends.visit(src, shape.as_deref(), &mut idle);
                ends.visit(dst, shape.as_deref(), &mut idle);
            }
            StmtData::Assign { dst, src } => {
                let shape = k.tile_ty(dst).and_then(|t| k.const_shape(&t.shape));
                ends.visit(src, shape.as_deref(), &mut idle);
            }
            StmtData::Let { init, .. } => ends.visit(init, fixed_shape(k, init).as_deref(), &mut idle),
            _ => {}
        }
    }
    for (e, d) in idle {
        if let ExprData::View(view) = &mut k.exprs[e]
            && let Some(Range::From { end, .. }) = view.ranges.get_mut(d)
        {
            *end = None;
        }
    }
}

struct Ends<'a> {
    k: &'a Kernel,
    facts: &'a Facts,
    loops: &'a [(Value, [Expr; 3])],
}

impl Ends<'_> {
    /// Finds the windows in an expression with elements of a tile of this shape.
    fn visit(&self, e: Expr, shape: Option<&[u64]>, idle: &mut Vec<(Expr, usize)>) {
        let k = self.k;
        match &k.exprs[e] {
            ExprData::View(_) => self.window(e, shape, idle),
            ExprData::Op { .. } | ExprData::Cast { .. } | ExprData::Bits { .. } | ExprData::Round { .. } => {
                k.children(e).into_iter().for_each(|arg| self.visit(arg, shape, idle));
            }
            ExprData::Transpose(arg) => {
                let turned: Option<Vec<u64>> = shape.map(|s| s.iter().rev().copied().collect());
                self.visit(*arg, turned.as_deref(), idle);
            }
            _ => k.children(e).into_iter().for_each(|child| self.visit(child, None, idle)),
        }
    }

    fn window(&self, e: Expr, shape: Option<&[u64]>, idle: &mut Vec<(Expr, usize)>) {
        let k = self.k;
        let ExprData::View(view) = &k.exprs[e] else { return };
        let Some(resolved) = resolve_view(k, e) else { return };
        let Some(tensor) = k.tensor_ty(resolved.base) else { return };
        // The dimensions of the window are those of its base with ranges, in this order.
        let kept = resolved.base_dims();
        let shape = shape.filter(|shape| shape.len() == kept.len());
        let ranges = view.ranges.iter().enumerate().filter(|(_, r)| !matches!(r, Range::At(_)));
        for (w, (d, range)) in ranges.enumerate() {
            let (&Range::From { start, end: Some(end) }, Some(&dim)) = (range, kept.get(w)) else { continue };
            let extent = tensor.shape[dim];
            let tile = shape.map(|shape| shape[w]);
            if covers(k, end, extent) || tile.is_some_and(|tile| self.past_tile(start, end, tile, extent)) {
                idle.push((e, d));
            }
        }
    }

    /// Whether `end` is at or past the end of a tile from `start` on, if the tensor continues there.
    fn past_tile(&self, start: Expr, end: Expr, tile: u64, extent: Expr) -> bool {
        let k = self.k;
        let far = |distance: i64| u64::try_from(distance).is_ok_and(|distance| distance >= tile);
        if let ExprData::Op { op: Op::Add, args } = &k.exprs[end]
            && same_expr(k, args[0], start)
            && k.as_int(args[1]).is_some_and(far)
        {
            return true;
        }
        if let (Some(start), Some(end)) = (k.as_int(start), k.as_int(end)) {
            return end.checked_sub(start).is_some_and(far);
        }
        let own = loop_variable(k, start).and_then(|var| self.loops.iter().find(|(v, _)| *v == var));
        own.is_some_and(|&(_, range)| whole_tiles(k, self.facts, range, end, (tile, extent)))
    }
}
