//! Tensor stores: `copy s -> C[i.., j..] tma` has the tensor memory accelerator move a buffer to a window of a tensor.
//!
//! It reads the buffer at any time up to `await s, 0`.

use crate::entities::{Stmt, Value};
use crate::kernel::{Kernel, StmtData, ValueDef};
use crate::typing::resolve_view;

/// The buffer and the tensor of a statement, if it is a tensor store.
pub fn tensor_store(k: &Kernel, s: Stmt) -> Option<(Value, Value)> {
    let StmtData::Copy { src, dst, attrs } = &k.stmts[s] else { return None };
    let (from, to) = attrs.is_tensor().then(|| resolve_view(k, *src).zip(resolve_view(k, *dst)))??;
    let buffer = matches!(k.values[from.base].def, ValueDef::Smem(_));
    (buffer && k.tensor_ty(to.base).is_some()).then_some((from.base, to.base))
}

/// Whether tensor stores read `buffer`.
pub fn is_stored(k: &Kernel, buffer: Value) -> bool {
    k.stmts.keys().any(|s| tensor_store(k, s).is_some_and(|(b, _)| b == buffer))
}
