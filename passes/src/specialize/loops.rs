//! Loops over products of sizes, such as those of a persistent grid: a precondition keeps their variables below 2^31.
//!
//! ```text
//! for tile in cta..ceildiv(M, 128) * ceildiv(N, 128) step 132     // where ceildiv(M, 128) * ceildiv(N, 128) <= 2147418112
//! ```
//!
//! The launch contract bounds each size, and the extent of each dimension of a tensor, but not a product of two sizes. Bounds that follow from other conditions need no precondition.

use crate::analysis::index_operands::{can_be_spelled_out, of_sizes, spelled_out};
use std::collections::BTreeSet;
use tilec_ir::entities::Expr;
use tilec_ir::extents::{MAX_SIZE, Ranges};
use tilec_ir::kernel::{ENDLESS, ExprData, Kernel, StmtData};
use tilec_ir::loop_ends::meaning;
use tilec_ir::ops::Op;

/// The longest step of a loop with a 31-bit counter.
const LONGEST: i64 = 1 << 30;

/// Adds the preconditions.
pub(super) fn bound(k: &mut Kernel) {
    let mut ends = Vec::new();
    k.walk(k.body, &mut |k, _, s| {
        if let StmtData::For { end, step, .. } = k.stmts[s]
            && k.as_int(end) != Some(ENDLESS)
        {
            // Loops with longer steps have 64-bit counters.
            let step = k.as_int(step).filter(|step| (1..=LONGEST).contains(step)).unwrap_or(1);
            ends.push((end, i64::try_from(MAX_SIZE).map_or(i64::MAX, |most| most.min(i64::from(i32::MAX) - step))));
        }
    });
    for (end, most) in ends {
        // The precondition of one loop may be enough for the next.
        let mut found = Vec::new();
        beyond(&Ranges::new(k), k, end, most, &mut BTreeSet::new(), &mut found);
        // If an expression is too long for a precondition, lowering reports that it may overflow.
        // So it does for a number.
        let of_a_launch = |&e: &Expr| can_be_spelled_out(k, e) && k.as_int(e).is_none();
        for e in found.into_iter().filter(of_a_launch).collect::<Vec<_>>() {
            let span = k.expr_spans[end];
            let (all, most) = (spelled_out(k, e), k.int(most, span));
            let within = k.binary(Op::Le, all, most, span);
            k.requires.push(within);
        }
    }
}

/// Subexpressions of sizes that may exceed `most`, so that `e` may.
fn beyond(ranges: &Ranges<'_>, k: &Kernel, e: Expr, most: i64, seen: &mut BTreeSet<Expr>, found: &mut Vec<Expr>) {
    let meant = meaning(k, e);
    if ranges.of(e).is_none_or(|x| x.hi <= i128::from(most)) || !seen.insert(meant) {
        return;
    }
    match &k.exprs[meant] {
        _ if of_sizes(k, meant) => found.push(meant),
        ExprData::Op { op, args } => match args.iter().find(|&&a| *op == Op::Min && of_sizes(k, meaning(k, a))) {
            Some(&a) => found.push(meaning(k, a)),
            None => args.iter().for_each(|&a| beyond(ranges, k, a, most, seen, found)),
        },
        _ => {}
    }
}
