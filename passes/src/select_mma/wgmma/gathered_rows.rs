//! Row indices of gathered operands, which producer warps load as well.

use crate::analysis::uses::{all_stmts, mentions, path_to, stmt_exprs};
use crate::producer_fills;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData, ValueDef};

/// Makes the producer load the indices by which one of its copies gathers: to the existing tiles, if these have no
/// other use, or to tiles of its own.
pub(super) fn numbers_of_producer(k: &mut Kernel, fill: Stmt) {
    let StmtData::Copy { src, .. } = k.stmts[fill] else { unreachable!("a feed is a copy") };
    let mut seen: Vec<Value> = Vec::new();
    for rows in producer_fills::index_tiles(k, src) {
        if !seen.contains(&rows) {
            seen.push(rows);
            tile_of_producer(k, fill, (src, rows));
        }
    }
}

fn tile_of_producer(k: &mut Kernel, fill: Stmt, (src, rows): (Expr, Value)) {
    let load =
        producer_fills::numbers(k, fill, rows).expect("bug: a feed gathers by numbers that the producer cannot load");
    let declaration = all_stmts(k, k.body)
        .into_iter()
        .find(|&s| matches!(k.stmts[s], StmtData::Var { value, .. } if value == rows))
        .expect("bug: a register variable is declared");
    let uses = |s: &Stmt| stmt_exprs(k, *s).into_iter().any(|e| mentions(k, e, rows));
    if all_stmts(k, k.body).iter().filter(|s| uses(s)).all(|&s| s == fill || s == load) {
        for s in [declaration, load] {
            k.plans[s].producer = true;
        }
        return;
    }
    let span = k.stmt_spans[load];
    let ValueDef::Var(tile) = k.values[rows].def.clone() else { unreachable!("rows are gathered by a variable") };
    let own = k.value(&format!("{}_produced", k.values[rows].name), span, ValueDef::Var(tile));
    let StmtData::Copy { src: from, attrs, .. } = k.stmts[load].clone() else { unreachable!("it is a copy") };
    let (from, to) = (k.copy_expr(from), k.value_ref(own, span));
    let stmts = [StmtData::Var { value: own, init: None }, StmtData::Copy { src: from, dst: to, attrs }];
    let stmts = stmts.map(|data| k.stmt(data, span));
    for s in stmts {
        k.plans[s].producer = true;
    }
    let &(block, index) = path_to(k, load).last().expect("a path ends at its statement");
    k.blocks[block].splice(index + 1..index + 1, stmts);
    rename(k, src, rows, own);
}

/// Replaces one name by another in an expression.
fn rename(k: &mut Kernel, e: Expr, from: Value, to: Value) {
    if k.exprs[e] == ExprData::Ref(from) {
        k.exprs[e] = ExprData::Ref(to);
    }
    for child in k.children(e) {
        rename(k, child, from, to);
    }
}
