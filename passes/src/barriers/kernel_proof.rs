//! The proof of a whole kernel: for the threads of a block, or for roles and the threads of each.

use super::disjoint::stored_twice;
use super::prove::prove_block;
use super::roles::check;
use tilec_ir::codes;
use tilec_ir::diag::Diagnostic;
use tilec_ir::kernel::{Kernel, StmtData, ValueDef};

/// Checks that shared memory is free of races and that channels are used in order, for every trip count.
///
/// Errors are [`codes::HAZARD`], with both statements and the trip counts of the path. A warning with that code says
/// that the check was given up. For a kernel with roles, the order of channel operations is proved. Compile-time
/// parameters must be bound.
pub fn prove(k: &Kernel) -> Vec<Diagnostic> {
    let mut roles = false;
    let mut unbound = None;
    k.walk(k.body, &mut |k, _, s| match &k.stmts[s] {
        StmtData::Role { .. } => roles = true,
        StmtData::Alloc { value, .. } => {
            if let ValueDef::Channel { slots, .. } = &k.values[*value].def
                && !k.as_int(*slots).is_some_and(|n| (1..=i64::from(u32::MAX)).contains(&n))
            {
                unbound = unbound.or(Some((*value, s)));
            }
        }
        _ => {}
    });
    if let Some((v, s)) = unbound {
        let message =
            format!("the number of slots of `{}` is not a positive number: its use is not checked", k.values[v].name);
        return vec![Diagnostic::error(codes::HAZARD, k.stmt_spans[s], message)];
    }
    let mut found = if roles { check(k) } else { prove_block(k) };
    if !roles {
        found.extend(stored_twice(k));
    }
    found.extend(super::fences::prove(k));
    found
}
