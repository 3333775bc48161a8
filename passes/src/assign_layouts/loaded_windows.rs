//! Windows of tensors in values that are computed in registers.
//!
//! A copy loads a window in wide accesses. A `let` that is computed where it stands, and the operand of a reduction,
//! would load it element by element. So the window becomes a register tile, which a copy fills in front:
//!
//! ```text
//! var r_tile = reg f16[1, 1024]
//! copy R[i.., 0..] -> r_tile
//! let f = x + r_tile
//! ```
//!
//! Windows that are loaded in single elements anyway remain, and so do those that would take many registers.
//!
//! A copy that computes 4-bit elements of windows loads and stores the same elements at once, and threads store whole
//! bytes. Windows that may begin inside such a group become tiles, too:
//!
//! ```text
//! copy cast<e2m1>(X[i.., j..] * y) -> Z[i.., j..]
//!     ->   copy X[i.., j..] -> x_tile   copy cast<e2m1>(x_tile * y) -> Z[i.., j..]
//! ```

use super::materialise::tile;
use super::threads::Threads;
use crate::analysis::access_width::{elem_of, global_width};
use crate::analysis::facts::Facts;
use crate::analysis::uses::{all_stmts, place_of};
use crate::analysis::views::copy_shape;
use crate::specialize::pad::in_context;
use tilec_ir::deferred_lets::Deferred;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::types::ElemRef;
use tilec_ir::typing::{fixed_shape, resolve_view};

/// Most registers of a thread for the elements of a window: a quarter of what it has.
const MOST: u64 = 64;

/// A window, the statement that reads it, and the extents that are loaded.
#[derive(Clone)]
pub(super) struct Found {
    pub(super) at: Stmt,
    pub(super) window: Expr,
    pub(super) shape: Vec<u64>,
}

/// Loads such windows into tiles. `wide`: also those that would only be loaded element by element.
pub(super) fn into_tiles(k: &mut Kernel, threads: Threads, wide: bool) {
    let mut found = Vec::new();
    let (facts, deferred) = (Facts::new(k), Deferred::of(k));
    for at in all_stmts(k, k.body) {
        let search = Search { k, facts: &facts, at, threads: threads.count() };
        if !wide {
            search.stored_in_bytes(&mut found);
            continue;
        }
        if let StmtData::Let { value, init } = k.stmts[at]
            && deferred.init(value).is_none()
            && resolve_view(k, init).is_none()
            && let Some(shape) = fixed_shape(k, init)
        {
            search.operands(init, &shape, &mut found);
        }
        k.stmts[at].exprs().into_iter().for_each(|e| search.reductions(e, &mut found));
        search.stored_in_bytes(&mut found);
    }
    for Found { at, window, shape } in found {
        load(k, at, window, &shape);
    }
}

/// Fills a tile in front of the statement `at`, and reads it in place of the window.
pub(crate) fn load(k: &mut Kernel, at: Stmt, window: Expr, shape: &[u64]) -> Value {
    let span = k.expr_spans[window];
    let base = resolve_view(k, window).expect("bug: it is a window").base;
    let elem = ElemRef::Known(elem_of(k, base).expect("specialised"));
    let ty = tile(k, at, elem, shape, None);
    let value = k.value(&format!("{}_tile", k.values[base].name.to_lowercase()), span, ValueDef::Var(ty));
    let src = k.expr(k.exprs[window].clone(), span);
    k.exprs[window] = ExprData::Ref(value);
    let dst = k.value_ref(value, span);
    let copy = StmtData::Copy { src, dst, attrs: CopyAttrs::default() };
    let front = [k.stmt(StmtData::Var { value, init: None }, span), k.stmt(copy, span)];
    let (block, index) = place_of(k, at);
    k.blocks[block].splice(index..index, front);
    value
}

struct Search<'k> {
    k: &'k Kernel,
    facts: &'k Facts,
    at: Stmt,
    threads: u64,
}

impl Search<'_> {
    /// The windows in the operands of reductions.
    fn reductions(&self, e: Expr, found: &mut Vec<Found>) {
        let args = match &self.k.exprs[e] {
            ExprData::Reduce { arg, .. } | ExprData::Scan { arg, .. } => vec![*arg],
            ExprData::Combine(combine) => combine.args.to_vec(),
            _ => Vec::new(),
        };
        for arg in args {
            if let Some(shape) = fixed_shape(self.k, arg) {
                self.operands(arg, &shape, found);
            }
        }
        self.k.children(e).into_iter().for_each(|child| self.reductions(child, found));
    }

    /// The windows from which a copy computes elements that share bytes in memory, if they are not as wide as a byte.
    fn stored_in_bytes(&self, found: &mut Vec<Found>) {
        let k = self.k;
        let StmtData::Copy { src, dst, .. } = k.stmts[self.at] else { return };
        let elem = resolve_view(k, dst).filter(|to| to.space(k).is_memory()).and_then(|to| elem_of(k, to.base));
        let Some(least) = elem.map(|elem| elem.per(1)).filter(|&least| least > 1) else { return };
        if resolve_view(k, src).is_some() {
            return;
        }
        let Some(shape) = copy_shape(k, src, dst) else { return };
        let mut windows = Vec::new();
        in_context(k, src, &shape, &mut |window, shape| windows.push((window, shape.to_vec())));
        for (window, shape) in windows {
            let known = found.iter().any(|known| known.window == window);
            if !known
                && let Some((shape, width)) = self.width(window, &shape)
                && width < least
            {
                found.push(Found { at: self.at, window, shape });
            }
        }
    }

    /// The windows among operands that are combined element by element to these extents.
    fn operands(&self, e: Expr, shape: &[u64], found: &mut Vec<Found>) {
        if resolve_view(self.k, e).is_some() {
            let known = found.iter().any(|known| known.window == e);
            found.extend(self.loaded(e, shape).filter(|_| !known));
            return;
        }
        match self.k.exprs[e] {
            ExprData::Op { .. } | ExprData::Cast { .. } | ExprData::Bits { .. } | ExprData::Round { .. } => {
                self.k.children(e).into_iter().for_each(|child| self.operands(child, shape, found));
            }
            _ => {}
        }
    }

    /// The extents in which a window is loaded, if that takes wide accesses and few registers.
    fn loaded(&self, window: Expr, shape: &[u64]) -> Option<Found> {
        let (shape, width) = self.width(window, shape)?;
        let elements = shape.iter().product::<u64>();
        let base = resolve_view(self.k, window)?.base;
        let registers = elem_of(self.k, base)?.size().words(elements.div_ceil(self.threads));
        (width > 1 && registers <= MOST).then_some(Found { at: self.at, window, shape })
    }

    /// The extents in which a window of a tensor is loaded, and the elements of an access.
    fn width(&self, window: Expr, shape: &[u64]) -> Option<(Vec<u64>, u32)> {
        let shape = extents(self.k, window, shape)?;
        let width = global_width(self.k, self.facts, &resolve_view(self.k, window)?, &shape).elems;
        Some((shape, width))
    }
}

/// The extents in which a window of a tensor is loaded that is combined with a tile of extents `shape`; `None`: it is
/// none, or its rows are gathered.
pub(crate) fn extents(k: &Kernel, window: Expr, shape: &[u64]) -> Option<Vec<u64>> {
    let view = resolve_view(k, window)?;
    let (tensor, dims) = (k.tensor_ty(view.base)?, view.base_dims());
    if dims.len() != shape.len() || view.is_gathered() {
        return None;
    }
    // A dimension that a vector lacks has one element and no end.
    Some(dims.iter().zip(shape).map(|(d, &n)| if tensor.repeats.contains(d) { 1 } else { n }).collect())
}
