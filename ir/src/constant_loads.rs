//! Loads that a producer may issue before the launch waits for those in front of it.

use crate::entities::{Block, Stmt, Value};
use crate::kernel::{ChannelOp, Kernel, StmtData};
use crate::typing::resolve_view;

/// The TMA loads of constant tensors in a role. All slots of the role are published in one block, so that its steps are counted alike.
pub struct ConstantLoads {
    /// The copies, of boxes that only the own block loads.
    pub copies: Vec<Stmt>,
    /// The `publish` that ends a step.
    pub ends_step: Stmt,
    /// All channels that are published.
    pub channels: Vec<Value>,
}

impl ConstantLoads {
    /// Those of a role's body; `None`: there are none, or slots are published in several places.
    #[must_use]
    pub fn of(k: &Kernel, body: Block) -> Option<ConstantLoads> {
        let (mut copies, mut publishes) = (Vec::new(), Vec::new());
        k.walk(body, &mut |k, block, s| match &k.stmts[s] {
            StmtData::Copy { src, attrs, .. } if attrs.is_tensor() && !attrs.is_multicast() => {
                let tensor = resolve_view(k, *src).and_then(|view| k.tensor_ty(view.base));
                if tensor.is_some_and(|t| t.constant) {
                    copies.push((block, s));
                }
            }
            StmtData::Channel { op: ChannelOp::Publish, channels, .. } => publishes.push((block, s, channels.clone())),
            _ => {}
        });
        let &(block, ends_step, _) = publishes.last()?;
        let together = publishes.iter().all(|p| p.0 == block) && copies.iter().all(|c| c.0 == block);
        let channels = publishes.into_iter().flat_map(|p| p.2).collect();
        let copies: Vec<Stmt> = copies.into_iter().map(|(_, s)| s).collect();
        (together && !copies.is_empty()).then_some(ConstantLoads { copies, ends_step, channels })
    }
}
