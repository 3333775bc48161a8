//! Products that could use wgmma by their types and extents, but do not.

use super::operands::{acc_shape, known};
use super::tiles::WgmmaQuery;
use super::warpgroup::{self, WgmmaForm};
use crate::Cx;
use crate::refusal::Refused;
use crate::specialize::odd_extents;
use tilec_ir::atoms::Inputs;
use tilec_ir::diag::Reported;
use tilec_ir::entities::Stmt;
use tilec_ir::kernel::{ExprData, Kernel, StmtData};
use tilec_ir::missed_paths::FastPath;
use tilec_ir::target::Target;
use tilec_ir::typing::{product_depth, type_of};

/// The message for a single product.
pub(super) const ONE: &str = "no wgmma product";

/// Reports why products do not use wgmma: a loss, if they could and nothing else was requested.
pub(super) fn report_missed(k: &Kernel, cx: &mut Cx<'_>, what: &str, refused: &Refused, products: &[Stmt]) {
    let target = cx.options.target;
    let mut at = products.to_vec();
    at.retain(|&s| could_be(k, target, s));
    let refused = refused.clone().or_at(k.stmt_spans[products[0]]);
    refused.report(k, cx, what, (FastPath::Wgmma, at));
}

/// Whether wgmma supports the types and extents of a product.
fn could_be(k: &Kernel, target: Target, s: Stmt) -> bool {
    let StmtData::Assign { dst: acc, src } = k.stmts[s] else { unreachable!("a product is assigned") };
    let ExprData::Mma(mma) = k.exprs[src] else { unreachable!("it is a product") };
    let (Some((rows, cols)), Some(sum)) = (acc_shape(k, acc), warpgroup::acc_elem(k, acc)) else { return false };
    let elem = |e| type_of(k, e).ok().and_then(|ty| known(ty.elem()));
    let (Some(a), Some(b)) = (elem(mma.a), elem(mma.b)) else { return false };
    let depth = product_depth(k, &mma);
    let atom = warpgroup::atom(target, (Inputs { a, b }, sum));
    let (Some(depth), Some(atom)) = (depth, atom) else { return false };
    let way = WgmmaForm { swap: mma.swap, registers: false };
    let block = (rows, cols, depth);
    let wanted = WgmmaQuery {
        atom,
        form: way,
        fixed: false,
        written: false,
        block,
        acc: sum,
        scheduled: None,
        promoted: None,
        reduced: &[],
    };
    mma.atom.is_none() && wanted.is_possible()
}

/// Refuses extents that are no powers of two without wgmma, with the reason why there is no wgmma.
pub(super) fn refuse_odd_extents(k: &Kernel, cx: &mut Cx<'_>, why: &str) -> Result<(), Reported> {
    let mut result = Ok(());
    for d in odd_extents(k) {
        let note = format!(
            "`wgmma` may have 192 rows, and {}, but is not used here: {why}",
            crate::analysis::wgmma::COLUMN_COUNTS
        );
        result = Err(cx.report(d.with_note(note)));
    }
    result
}
