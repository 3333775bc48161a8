//! Which tensors a kernel reads and writes.

use crate::launch::Access;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData, ValueDef, View};
use tilec_ir::names::Parts;

/// Whether an expression contains a window of the tensor, directly or through a name.
pub(super) fn reads(k: &Kernel, e: Expr, tensor: Value) -> bool {
    let mut parts = Parts::of(k, e);
    while let Some(e) = parts.take() {
        match k.exprs[e] {
            // Indices contain no window of a tensor.
            ExprData::Ref(v) | ExprData::View(View { base: v, .. }) => match k.values[v].def {
                ValueDef::Let => parts.named(v),
                _ if v == tensor => return true,
                _ => {}
            },
            _ => parts.inside(e),
        }
    }
    false
}

/// How a kernel uses a tensor.
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
