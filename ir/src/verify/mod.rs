//! The verifier: what every kernel fulfils, before and after every pass.

use crate::diag::{Reported, Sink};
use crate::entities::Expr;
use crate::kernel::{Kernel, StmtData};
use crate::typing::Types;

/// Reports every violation of the rules of this module.
///
/// # Errors
/// If there was one.
pub fn verify(k: &Kernel, sink: &mut Sink) -> Result<(), Reported> {
    let before = sink.error_count();
    let types = Types::new(k);
    let mut roots: Vec<Expr> = Vec::new();
    k.walk(k.body, &mut |k, _, s| match &k.stmts[s] {
        StmtData::Let { init, .. } => roots.push(*init),
        StmtData::Var { init, .. } => roots.extend(*init),
        StmtData::Assign { src, .. } => roots.push(*src),
        StmtData::Copy { src, dst, .. } => roots.extend([*src, *dst]),
        StmtData::For { start, end, step, .. } => roots.extend([*start, *end, *step]),
        StmtData::If { cond, .. } => roots.push(*cond),
        StmtData::Alloc { .. }
        | StmtData::Channel { .. }
        | StmtData::Barrier
        | StmtData::Await { .. }
        | StmtData::Role { .. } => {}
    });
    for e in roots {
        if let Err(error) = types.type_of(e) {
            sink.push(error.into());
        }
    }
    if sink.error_count() == before { Ok(()) } else { sink.check() }
}
