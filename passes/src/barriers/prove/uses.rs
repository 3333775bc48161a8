//! Accesses of statements to shared memory, for the proof.

use crate::analysis::distribution::copy_layout;
use tilec_ir::atomics::Combining;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, Slot, StmtData, ValueDef, View};
use tilec_ir::names::Parts;
use tilec_ir::typing::resolve_view;

/// A use of shared memory by a statement.
pub(super) struct Use {
    /// A buffer or channel.
    pub(super) value: Value,
    /// For channels, the slot.
    pub(super) slot: Option<Slot>,
    /// Otherwise a read.
    pub(super) write: bool,
    /// A write that is an atomic operation of threads, which needs what was there.
    pub(super) combines: Option<Combining>,
    /// An asynchronous write, which lands later.
    pub(super) flying: bool,
    /// Every thread accesses only elements that it also accesses in the statement's other uses of this kind.
    pub(super) own: bool,
}

/// The uses of shared memory by a statement itself, reads before writes.
pub(super) fn uses(k: &Kernel, s: Stmt) -> Vec<Use> {
    let mut out = Vec::new();
    match &k.stmts[s] {
        StmtData::Let { init, .. } | StmtData::Var { init: Some(init), .. } => reads(k, *init, false, &mut out),
        StmtData::Assign { src, .. } => reads(k, *src, false, &mut out),
        StmtData::If { cond, .. } => reads(k, *cond, false, &mut out),
        StmtData::Copy { src, dst, attrs } => {
            // An element of several threads is written by one while another reads it.
            let once = !copy_layout(k, *src, *dst, attrs).is_some_and(|layout| layout.is_replicated());
            reads(k, *src, once, &mut out);
            if let Some(old) = attrs.old.and_then(|e| resolve_view(k, e)) {
                out.push(Use { value: old.base, slot: None, write: true, combines: None, flying: false, own: false });
            }
            let mut whole = Vec::new();
            reads(k, *dst, true, &mut whole);
            out.extend(whole.into_iter().take(1).map(|u| Use {
                write: true,
                combines: attrs.reduce.filter(|_| attrs.is_by_threads()),
                flying: attrs.is_asynchronous(),
                slot: u.slot.map(|_| written_slot(k, *dst)),
                ..u
            }));
        }
        StmtData::Var { init: None, .. }
        | StmtData::Alloc { .. }
        | StmtData::For { .. }
        | StmtData::Channel { .. }
        | StmtData::Barrier
        | StmtData::Fence
        | StmtData::Await { .. }
        | StmtData::Signal { .. }
        | StmtData::Ordered { .. }
        | StmtData::Role { .. } => {}
    }
    out
}

/// A channel that is named without its slot as a destination is being filled.
fn written_slot(k: &Kernel, dst: Expr) -> Slot {
    match &k.exprs[dst] {
        ExprData::View(view) => view.slot.unwrap_or(Slot::Put),
        ExprData::Transpose(arg) => written_slot(k, *arg),
        _ => Slot::Put,
    }
}

/// Collects reads. `own`: element `i` of the result depends only on element `i` of the operand.
fn reads(k: &Kernel, e: Expr, own: bool, out: &mut Vec<Use>) {
    let (named, ranges) = match &k.exprs[e] {
        ExprData::Ref(v) => (Some((*v, None)), 0),
        ExprData::View(view) => (Some((view.base, view.slot)), view.ranges.len()),
        ExprData::Iota { .. } => return,
        _ => (None, 0),
    };
    if let Some((value, slot)) = named {
        let own = own && ranges == 0;
        match k.values[value].def {
            ValueDef::Smem(_) => out.push(Use { value, slot: None, write: false, combines: None, flying: false, own }),
            ValueDef::Channel { .. } => {
                out.push(Use {
                    value,
                    slot: Some(slot.unwrap_or(Slot::Get)),
                    write: false,
                    combines: None,
                    flying: false,
                    own,
                });
            }
            _ => {}
        }
    }
    let own = own
        && matches!(
            k.exprs[e],
            ExprData::Op { .. } | ExprData::Cast { .. } | ExprData::Bits { .. } | ExprData::Round { .. }
        );
    for child in k.children(e) {
        reads(k, child, own, out);
    }
}

/// The accesses of a statement itself to tensors in global memory.
#[derive(Default)]
pub(crate) struct TensorAccesses {
    pub(crate) loads: Vec<Value>,
    pub(crate) stores: Vec<Value>,
}

/// The tensors that a statement itself loads from and stores to, directly or through a name.
pub(crate) fn tensors(k: &Kernel, s: Stmt) -> TensorAccesses {
    let mut touches = TensorAccesses::default();
    match &k.stmts[s] {
        StmtData::Copy { src, dst, attrs } => {
            tensors_in(k, *src, &mut touches.loads);
            tensors_in(k, *dst, &mut touches.stores);
            if attrs.combined_by_threads() {
                tensors_in(k, *dst, &mut touches.loads);
            }
        }
        // A name for a window does not load it.
        StmtData::Let { init, .. } if resolve_view(k, *init).is_some() => {}
        _ => {
            for e in crate::analysis::uses::stmt_exprs(k, s) {
                tensors_in(k, e, &mut touches.loads);
            }
        }
    }
    touches
}

fn tensors_in(k: &Kernel, e: Expr, out: &mut Vec<Value>) {
    let mut parts = Parts::of(k, e);
    while let Some(e) = parts.take() {
        match k.exprs[e] {
            ExprData::Iota { .. } => continue,
            // Elements of index tables are never written.
            ExprData::Index(_) => continue,
            ExprData::Ref(v) | ExprData::View(View { base: v, .. }) => match k.values[v].def {
                ValueDef::Tensor(_) => out.push(v),
                ValueDef::Let => parts.named(v),
                _ => {}
            },
            _ => {}
        }
        parts.inside(e);
    }
}

/// The slots of channels that a statement itself accesses.
pub(crate) fn slot_uses(k: &Kernel, s: Stmt) -> Vec<(Value, Slot)> {
    uses(k, s).into_iter().filter_map(|u| Some((u.value, u.slot?))).collect()
}

/// The buffers that a statement itself accesses.
pub(crate) fn buffer_uses(k: &Kernel, s: Stmt) -> Vec<Value> {
    uses(k, s).into_iter().filter(|u| u.slot.is_none()).map(|u| u.value).collect()
}

/// The tensors that a statement itself accesses.
pub(crate) fn tensor_uses(k: &Kernel, s: Stmt) -> Vec<Value> {
    let found = tensors(k, s);
    [found.loads, found.stores].concat()
}
