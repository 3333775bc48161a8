//! Roles with replicas, which execute the iterations of a loop alternately ([`tilec_ir::roles`]).
//!
//! The proof for one role that runs all iterations covers each replica. With several replicas, an iteration runs at the same time as the next ones, except for
//! its `ordered` statements: each begins after the previous replica has left the same one. So nothing waits for what comes later in the order of a single
//! role, which has no deadlock. Data that two iterations share is accessed in order if
//!
//! * all waits for slots of a channel are in one `ordered` statement. The ring index is passed on after the last wait: no slot is waited for
//!   before the slots in front of it are full, because an mbarrier distinguishes phases only by their parity;
//! * a buffer is used in one `ordered` statement, at whose end no TMA store still reads it;
//! * no register is written that an iteration reads from a previous one, and no signal is awaited whose order is that of iterations.

use crate::analysis::uses::all_stmts;
use crate::barriers::prove::uses::buffer_uses;
use std::collections::BTreeMap;
use tilec_ir::codes;
use tilec_ir::diag::Diagnostic;
use tilec_ir::entities::{Block, Stmt, Value};
use tilec_ir::kernel::{ChannelOp, Kernel, StmtData, ValueDef};
use tilec_ir::roles::{distributed_loop, replicas};
use tilec_ir::tensor_store::tensor_store;
use tilec_ir::typing::resolve_view;

/// Reports faults in the `ordered` statements of replicas.
pub(super) fn check(k: &Kernel, role: Stmt, body: Block, found: &mut Vec<Diagnostic>) {
    if replicas(k, role) == Some(1) {
        return;
    }
    let inner = distributed_loop(k, body).map(|turns| &k.stmts[turns]);
    let Some(StmtData::For { body, .. }) = inner else {
        found.push(fault(k, role, "a role with replicas that is not one loop".to_owned()));
        return;
    };
    let mut turns = Turns { k, own: declared(k, *body), used: BTreeMap::new(), found };
    for &s in &k.blocks[*body] {
        let part = matches!(k.stmts[s], StmtData::Ordered { .. }).then_some(s);
        turns.stmt(s, part);
        for b in k.sub_blocks(s) {
            all_stmts(k, b).into_iter().for_each(|s| turns.stmt(s, part));
        }
        if let StmtData::Ordered { body } = k.stmts[s] {
            turns.stored(body);
        }
    }
}

fn fault(k: &Kernel, s: Stmt, message: String) -> Diagnostic {
    Diagnostic::error(codes::HAZARD, k.stmt_spans[s], message).with_note(
        "replicas run concurrently, except for what is `ordered`: slots are waited for in one such statement, a buffer is used in one, and stores out \
         of it are awaited there",
    )
}

/// Registers that are declared under a block.
fn declared(k: &Kernel, block: Block) -> Vec<Value> {
    let value = |s| match k.stmts[s] {
        StmtData::Var { value, .. } => Some(value),
        _ => None,
    };
    all_stmts(k, block).into_iter().filter_map(value).collect()
}

struct Turns<'a> {
    k: &'a Kernel,
    /// Registers that an iteration declares.
    own: Vec<Value>,
    /// The `ordered` statement in which each channel is waited for and each buffer is used, and its first use there.
    used: BTreeMap<Value, (Option<Stmt>, Stmt)>,
    found: &'a mut Vec<Diagnostic>,
}

impl Turns<'_> {
    /// Checks a statement; `part`: the `ordered` statement that contains it.
    fn stmt(&mut self, s: Stmt, part: Option<Stmt>) {
        let k = self.k;
        for v in buffer_uses(k, s) {
            self.uses(s, part, v);
        }
        match &k.stmts[s] {
            StmtData::Channel { op, channels, .. } => match op {
                ChannelOp::Wait => channels.iter().for_each(|&v| self.uses(s, part, v)),
                ChannelOp::Release => {}
                ChannelOp::Acquire | ChannelOp::Publish => {
                    self.found.push(fault(k, s, "replicas of a role fill no channels".to_owned()));
                }
            },
            StmtData::Await { value, .. } if matches!(k.values[*value].def, ValueDef::Smem(_)) => {
                self.uses(s, part, *value);
            }
            StmtData::Alloc { value, .. } => self.uses(s, part, *value),
            StmtData::Signal { .. } => {
                self.found.push(fault(k, s, "replicas of a role have no signals".to_owned()));
            }
            StmtData::Assign { dst, .. } => self.writes(s, *dst),
            StmtData::Copy { dst, .. } => {
                if let Some(view) = resolve_view(k, *dst) {
                    self.writes(s, view.base);
                }
            }
            _ => {}
        }
    }

    fn uses(&mut self, s: Stmt, part: Option<Stmt>, v: Value) {
        let k = self.k;
        let name = &k.values[v].name;
        let &mut (first, earlier) = self.used.entry(v).or_insert((part, s));
        let channel = matches!(k.values[v].def, ValueDef::Channel { .. });
        let what = if channel { format!("slots of `{name}` are waited for") } else { format!("`{name}` is used") };
        if part.is_none() {
            self.found.push(fault(k, s, format!("{what} outside `ordered`, by replicas that run concurrently")));
        } else if part != first {
            let message = format!("{what} in two `ordered` statements, which replicas are in at once");
            self.found.push(fault(k, s, message).with_place(k.stmt_spans[earlier], "and here"));
        }
    }

    fn writes(&mut self, s: Stmt, v: Value) {
        let k = self.k;
        if matches!(k.values[v].def, ValueDef::Var(_)) && !self.own.contains(&v) {
            let message = format!("`{}` is written for other iterations, which other replicas run", k.values[v].name);
            self.found.push(fault(k, s, message).with_place(k.values[v].span, "declared outside the loop"));
        }
    }

    /// Checks that TMA stores in an `ordered` statement have read their buffers at its end.
    fn stored(&mut self, body: Block) {
        let k = self.k;
        let mut open = None;
        for &s in &k.blocks[body] {
            let inner = k.sub_blocks(s).into_iter().flat_map(|b| all_stmts(k, b));
            if let Some(store) = std::iter::once(s).chain(inner).find(|&s| tensor_store(k, s).is_some()) {
                open = Some(store);
            }
            if matches!(k.stmts[s], StmtData::Await { value, pending: 0, .. } if matches!(k.values[value].def, ValueDef::Smem(_)))
            {
                open = None;
            }
        }
        if let Some(store) = open {
            let message = "a buffer is handed to the next replica while a TMA store reads it".to_owned();
            self.found.push(fault(k, store, message));
        }
    }
}
