//! The order in which roles run: the producer of a channel before its consumer, independent of the order in the text.

use crate::entities::{Stmt, Value};
use crate::kernel::{ChannelOp, Kernel, StmtData};

/// The statements of a block in execution order: the next role is the first that waits for no other. If all roles wait
/// for others, the first in the text runs, and the interpreter reports what it waits for.
pub(super) fn in_order(k: &Kernel, list: &[Stmt]) -> Vec<Stmt> {
    let is_role = |s: &Stmt| matches!(k.stmts[*s], StmtData::Role { .. });
    let Some(first) = list.iter().position(is_role) else { return list.to_vec() };
    let count = list[first..].iter().take_while(|s| is_role(s)).count();
    let mut order = list[..first].to_vec();
    let mut left = list[first..first + count].to_vec();
    while !left.is_empty() {
        let waits = |s: Stmt| {
            let wanted = channels(k, s, ChannelOp::Wait);
            let others = left.iter().filter(|&&t| t != s);
            others.flat_map(|&t| channels(k, t, ChannelOp::Publish)).any(|v| wanted.contains(&v))
        };
        let next = left.iter().position(|&s| !waits(s)).unwrap_or(0);
        order.push(left.remove(next));
    }
    order.extend_from_slice(&list[first + count..]);
    order
}

/// The channels with which a role does `wanted`.
fn channels(k: &Kernel, role: Stmt, wanted: ChannelOp) -> Vec<Value> {
    let mut found = Vec::new();
    for b in k.sub_blocks(role) {
        k.walk(b, &mut |k, _, s| {
            if let StmtData::Channel { op, channels, .. } = &k.stmts[s]
                && *op == wanted
            {
                found.extend_from_slice(channels);
            }
        });
    }
    found
}
