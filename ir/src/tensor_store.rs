//! TMA stores: `copy s -> C[i.., j..] tma` has TMA move a buffer to a window of a tensor.
//!
//! It reads the buffer at any time up to `await s, 0`. So do wgmma products, of the buffers that they multiply, up to the `await` of their sums.

use crate::entities::{Stmt, Value};
use crate::kernel::{ExprData, Kernel, StmtData, ValueDef};
use crate::typing::resolve_view;

/// The buffer and the tensor of a statement, if it is a TMA store.
pub fn tensor_store(k: &Kernel, s: Stmt) -> Option<(Value, Value)> {
    let StmtData::Copy { src, dst, attrs } = &k.stmts[s] else { return None };
    let (from, to) = attrs.is_tensor().then(|| resolve_view(k, *src).zip(resolve_view(k, *dst)))??;
    let buffer = matches!(k.values[from.base].def, ValueDef::Smem(_));
    (buffer && k.tensor_ty(to.base).is_some()).then_some((from.base, to.base))
}

/// Whether TMA stores read `buffer`.
pub fn is_stored(k: &Kernel, buffer: Value) -> bool {
    k.statements().into_iter().any(|s| tensor_store(k, s).is_some_and(|(b, _)| b == buffer))
}

/// The buffers, other than slots of channels, that a statement multiplies by an instruction that reads them asynchronously.
pub fn multiplied(k: &Kernel, s: Stmt) -> Vec<Value> {
    let StmtData::Assign { src, .. } = k.stmts[s] else { return Vec::new() };
    let ExprData::Mma(mma) = k.exprs[src] else { return Vec::new() };
    if !mma.atom.is_some_and(|a| a.row().asynchronous()) {
        return Vec::new();
    }
    let bases = [mma.a, mma.b].into_iter().filter_map(|e| resolve_view(k, e)).map(|view| view.base);
    bases.filter(|&v| matches!(k.values[v].def, ValueDef::Smem(_))).collect()
}

/// Whether a buffer is read through the asynchronous proxy, which sees what threads write only after a fence.
pub fn read_asynchronously(k: &Kernel, buffer: Value) -> bool {
    is_stored(k, buffer) || k.statements().into_iter().any(|s| multiplied(k, s).contains(&buffer))
}
