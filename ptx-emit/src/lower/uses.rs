//! Which tensors a kernel reads and writes.

use crate::launch::Access;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData, ValueDef, View};

/// Whether an expression has a window of the tensor in it, under a name or not.
pub(super) fn reads(k: &Kernel, e: Expr, tensor: Value) -> bool {
    if let ExprData::Ref(v) | ExprData::View(View { base: v, .. }) = k.exprs[e] {
        match k.values[v].def {
            ValueDef::Let => return k.let_init(v).is_some_and(|init| reads(k, init, tensor)),
            // Indices are of no tensor.
            _ => return v == tensor,
        }
    }
    k.children(e).into_iter().any(|c| reads(k, c, tensor))
}

/// What a kernel does with a tensor.
pub(super) struct Uses {
    pub(super) read: bool,
    pub(super) write: bool,
}

pub(super) fn uses(k: &Kernel, tensor: Value) -> Uses {
    let (mut read, mut written) = (false, false);
    k.walk(k.body, &mut |k, _, s| match &k.stmts[s] {
        StmtData::Copy { src, dst, attrs } => {
            read |= reads(k, *src, tensor) || (attrs.reduce.is_some() && reads(k, *dst, tensor));
            written |= reads(k, *dst, tensor);
        }
        StmtData::Assign { src, .. } => read |= reads(k, *src, tensor),
        StmtData::Var { init: Some(e), .. } => read |= reads(k, *e, tensor),
        StmtData::Signal { signals, .. } if *signals == tensor => (read, written) = (true, true),
        _ => {}
    });
    Uses { read, write: written }
}

pub(super) fn access(k: &Kernel, tensor: Value) -> Access {
    match uses(k, tensor) {
        Uses { read: true, write: true } => Access::ReadWrite,
        Uses { read: false, write: true } => Access::Write,
        Uses { write: false, .. } => Access::Read,
    }
}
