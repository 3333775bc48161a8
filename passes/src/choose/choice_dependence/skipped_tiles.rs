//! Branches that skip tiles which would store nothing: `if j * BN < length { .. copy acc -> C[.., j * BN..length] }`.
//!
//! The number of skipped tiles depends on the tile size if `length` is a number from memory, and the tiles cover its
//! maximum. The result does not: a tile that begins at or after the length has no element in front of it. So such a
//! branch may affect the outside only by stores to windows that begin with the tile and end at that length.

use super::{Chosen, Depends};
use crate::analysis::uses::{all_stmts, mentions, stmt_exprs};
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, StmtData};
use tilec_ir::loop_ends::meaning;
use tilec_ir::ops::Op;
use tilec_ir::typing::{ViewDim, resolve_view, same_expr};

/// The start of a tile, and the end of its elements.
type Begins = (Expr, Expr);

impl Depends<'_> {
    /// The choice that decides whether a branch runs, unless the branch only skips tiles that store nothing.
    pub(super) fn decides(&self, cond: Expr, then: Block, otherwise: Option<Block>) -> Option<Chosen> {
        let chosen = self.unpromised(cond)?;
        let mut tiles = Vec::new();
        let known = otherwise.is_none() && self.tiles_of(cond, &mut tiles);
        let own = of_branch(self.k, then);
        let harmless = || tiles.iter().all(|&tile| stores_within(self.k, then, tile, &mut own.clone()));
        (!(known && harmless())).then_some(chosen)
    }

    /// Adds the tiles that a condition compares with their ends; false: the condition depends on a choice in another
    /// way, too.
    fn tiles_of(&self, cond: Expr, tiles: &mut Vec<Begins>) -> bool {
        let k = self.k;
        if self.unpromised(cond).is_none() {
            return true;
        }
        let ExprData::Op { op, args } = &k.exprs[meaning(k, cond)] else { return false };
        let (start, end) = match (op, &args[..]) {
            (Op::And, _) => return args.iter().all(|&part| self.tiles_of(part, tiles)),
            (Op::Lt, &[start, end]) | (Op::Gt, &[end, start]) => (start, end),
            _ => return false,
        };
        tiles.push((start, end));
        self.of(end).is_none()
    }
}

/// Variables and buffers that are declared in front of the branch `then` in the same block, and used only in it: they
/// might be declared inside.
fn of_branch(k: &Kernel, then: Block) -> Vec<Value> {
    let mut beside = Vec::new();
    k.walk(k.body, &mut |k, block, s| {
        if matches!(k.stmts[s], StmtData::If { then: own, .. } if own == then) {
            beside.clone_from(&k.blocks[block]);
        }
    });
    let declared = |s: &Stmt| match k.stmts[*s] {
        StmtData::Var { value, .. } | StmtData::Alloc { value, .. } => Some(value),
        _ => None,
    };
    let within = all_stmts(k, then);
    let outside = all_stmts(k, k.body).into_iter().filter(|s| !within.contains(s));
    let outside: Vec<Stmt> = outside.collect();
    let mentioned = |v: Value| {
        outside.iter().any(|&s| {
            let held = match &k.stmts[s] {
                StmtData::Assign { dst, .. } => *dst == v,
                StmtData::Alloc { over, .. } => over.contains(&v),
                _ => false,
            };
            held || stmt_exprs(k, s).into_iter().any(|e| mentions(k, e, v))
        })
    };
    beside.iter().filter_map(declared).filter(|&v| !mentioned(v)).collect()
}

/// Whether the only outside effects of a block are stores to windows that begin and end with the tile; `own`: variables
/// and buffers that are declared in it.
fn stores_within(k: &Kernel, block: Block, tile: Begins, own: &mut Vec<Value>) -> bool {
    k.blocks[block].iter().all(|&s| match k.stmts[s] {
        StmtData::Var { value, .. } | StmtData::Alloc { value, .. } => {
            own.push(value);
            true
        }
        StmtData::Let { .. } | StmtData::Barrier | StmtData::Fence => true,
        StmtData::Assign { dst, .. } => own.contains(&dst),
        StmtData::Copy { dst, attrs: CopyAttrs { old: None, .. }, .. } => {
            let Some(view) = resolve_view(k, dst) else { return false };
            own.contains(&view.base)
                || k.tensor_ty(view.base).is_some() && view.dims.iter().any(|dim| is_within(k, dim, tile))
        }
        StmtData::For { body, .. } => stores_within(k, body, tile, own),
        StmtData::If { then, otherwise, .. } => {
            stores_within(k, then, tile, own) && otherwise.is_none_or(|b| stores_within(k, b, tile, own))
        }
        _ => false,
    })
}

/// Whether a window is empty along a dimension if the tile begins past its end.
fn is_within(k: &Kernel, dim: &ViewDim, (start, end): Begins) -> bool {
    let ViewDim::From { starts, end: Some(own) } = dim else { return false };
    let same = |a: Expr, b: Expr| same_expr(k, a, b) || same_expr(k, meaning(k, a), meaning(k, b));
    let ends = |own: Expr| same(own, end);
    let own_ends = ends(*own)
        || matches!(&k.exprs[meaning(k, *own)], ExprData::Op { op: Op::Min, args } if args.iter().any(|&e| ends(e)));
    matches!(starts.as_slice(), &[own] if same(own, start)) && own_ends
}
