//! Accesses of statements to shared memory, collected once for the dataflow analysis.

use crate::analysis::uses::stmt_exprs;
use cranelift_entity::SecondaryMap;
use tilec_ir::atomics::Combining;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, Slot, StmtData, ValueDef};
use tilec_ir::typing::{let_init, resolve_view};

/// The threads whose accesses the barriers order.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Scope {
    /// All threads of the block.
    Block,
    /// Those of a role: its buffers. Slots have mbarriers.
    Role,
}

/// An access to shared memory.
#[derive(Copy, Clone, Debug)]
pub(super) struct Access {
    pub(super) value: Value,
    pub(super) slot: Option<Slot>,
    pub(super) how: How,
    /// An asynchronous write, which lands later.
    pub(super) flying: bool,
}

/// What an access does to elements.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum How {
    Read,
    Write,
    /// An atomic operation of threads. Those with one operator commute.
    Combine(Combining),
}

/// The accesses of each statement, without those of its blocks.
pub(super) struct Accesses {
    pub(super) scope: Scope,
    of: SecondaryMap<Stmt, Vec<Access>>,
}

impl Accesses {
    pub(super) fn of(k: &Kernel, scope: Scope) -> Accesses {
        let mut of = SecondaryMap::with_capacity(k.stmts.len());
        k.walk(k.body, &mut |k, _, s| of[s] = accesses(k, scope, s));
        Accesses { scope, of }
    }

    pub(super) fn of_stmt(&self, s: Stmt) -> &[Access] {
        &self.of[s]
    }
}

fn accesses(k: &Kernel, scope: Scope, s: Stmt) -> Vec<Access> {
    let mut out = Vec::new();
    if let StmtData::Copy { src, dst, attrs } = &k.stmts[s] {
        reads(k, *src, &mut out);
        let mut place = *dst;
        while let ExprData::Transpose(arg) = k.exprs[place] {
            place = arg;
        }
        if let Some(old) = attrs.old.and_then(|e| resolve_view(k, e)) {
            push(k, old.base, None, How::Write, &mut out);
        }
        let base = match &k.exprs[place] {
            ExprData::Ref(v) => Some((*v, None)),
            ExprData::View(view) => Some((view.base, view.slot)),
            _ => None,
        };
        if let Some((value, slot)) = base {
            let how = attrs.reduce.filter(|_| attrs.is_by_threads()).map_or(How::Write, How::Combine);
            push(k, value, slot, how, &mut out);
            if let Some(last) = out.last_mut().filter(|_| attrs.is_asynchronous()) {
                last.flying = true;
            }
        }
    } else if !names_a_window(k, s) {
        for e in stmt_exprs(k, s) {
            reads(k, e, &mut out);
        }
    }
    if scope == Scope::Role {
        out.retain(|a| matches!(k.values[a.value].def, ValueDef::Smem(_)));
    }
    out
}

/// Whether a statement only names a window.
fn names_a_window(k: &Kernel, s: Stmt) -> bool {
    matches!(k.stmts[s], StmtData::Let { init, .. } if resolve_view(k, init).is_some())
}

fn reads(k: &Kernel, e: Expr, out: &mut Vec<Access>) {
    match &k.exprs[e] {
        ExprData::Ref(v) => push(k, *v, None, How::Read, out),
        ExprData::View(view) => push(k, view.base, view.slot, How::Read, out),
        ExprData::Iota { .. } => return,
        _ => {}
    }
    for child in k.children(e) {
        reads(k, child, out);
    }
}

fn push(k: &Kernel, value: Value, slot: Option<Slot>, how: How, out: &mut Vec<Access>) {
    match k.values[value].def {
        ValueDef::Smem(_) => out.push(Access { value, slot: None, how, flying: false }),
        ValueDef::Channel { .. } => {
            let slot = slot.unwrap_or(if how == How::Read { Slot::Get } else { Slot::Put });
            out.push(Access { value, slot: Some(slot), how, flying: false });
        }
        ValueDef::Let => {
            let view = let_init(k, value).and_then(|e| resolve_view(k, e));
            if let Some(view) = view.filter(|v| v.base != value) {
                push(k, view.base, view.slot, how, out);
            }
        }
        _ => {}
    }
}
