//! Checks that written stages and cycles respect the dependences.

use super::modulo::Loop;
use crate::Cx;
use crate::analysis::access_width::slots_of;
use crate::graph::{Dep, DepReason};
use tilec_ir::entities::{Block, Stmt, Value};
use tilec_ir::kernel::{ChannelOp, Kernel, Slot, StmtData, ValueDef};
use tilec_ir::typing::resolve_view;

/// The first two statements whose dependence written stages and cycles violate: both, the value and the kind of
/// dependence.
pub(crate) fn broken(k: &Kernel, cx: &Cx<'_>, body: Block) -> Option<(Stmt, Stmt, Value, DepReason)> {
    let l = Loop::new(k, cx, body);
    let at = |i: usize| {
        let plan = k.plans[l.graph.stmts[i]];
        (plan.stage.unwrap_or(0), plan.cycle.unwrap_or(0))
    };
    let fill = l.fills().into_iter().find(|&(a, b, ..)| (at(a), a) >= (at(b), b));
    let fill = fill.map(|(a, b, value, why)| (l.graph.stmts[a], l.graph.stmts[b], value, why));
    fill.or_else(|| {
        l.edges().find_map(|(a, b, d)| {
            if l.relaxed(a, b, d) || a == b {
                return None;
            }
            let ((sa, ca), (sb, cb)) = (at(a), at(b));
            let distance = l.until_filled_again(a, b, d).unwrap_or(d.distance);
            let (first, second) = ((sa, ca, a), (sb + distance, cb, b));
            (first >= second).then(|| (l.graph.stmts[a], l.graph.stmts[b], d.value, d.reason))
        })
    })
}

impl Loop<'_> {
    /// A fill is after the `acquire` of its slot and in front of the `publish`: pairs in this order, the channel, and
    /// why.
    fn fills(&self) -> Vec<(usize, usize, Value, DepReason)> {
        let k = self.k;
        let mut found = Vec::new();
        for (i, &s) in self.graph.stmts.iter().enumerate() {
            let StmtData::Copy { dst, .. } = k.stmts[s] else { continue };
            let Some(to) = resolve_view(k, dst).filter(|v| v.slot == Some(Slot::Put)).map(|v| v.base) else { continue };
            for j in 0..self.graph.stmts.len() {
                match self.channel(j) {
                    Some((ChannelOp::Acquire, channels)) if channels.contains(&to) && j < i => {
                        found.push((j, i, to, DepReason::Anti));
                    }
                    Some((ChannelOp::Publish, channels)) if channels.contains(&to) && j > i => {
                        found.push((i, j, to, DepReason::Flow));
                    }
                    _ => {}
                }
            }
        }
        found
    }

    /// The number of iterations after which a slot that a statement reads is filled again by another one.
    fn until_filled_again(&self, a: usize, b: usize, d: Dep) -> Option<u32> {
        let is_channel = matches!(self.k.values[d.value].def, ValueDef::Channel { .. });
        let fills = |i: usize| matches!(self.channel(i), Some((ChannelOp::Acquire | ChannelOp::Publish, _)));
        let between = is_channel && d.distance > 0 && !fills(a) && fills(b);
        between.then(|| u32::try_from(slots_of(self.k, d.value)).expect("a few slots"))
    }
}
