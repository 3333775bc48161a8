//! `hand-over`: the arrival counts of the mbarriers of a channel between roles, and the bytes that they expect.
//!
//! ```text
//! let a = channel f16[64, 64] slots 4 full 1 empty 4
//! role producer warps 4 elected { .. publish a expect 8192 .. }
//! ordered arrivals 4 { .. }
//! ```
//!
//! Needs: roles, and the mechanisms of their copies. Decides: the counts of each channel and `ordered` statement that has
//! none, by the rules of `tilec_ir::handover` and `tilec_ir::ordered`; and
//! which statements one lane executes for all, by `tilec_ir::lanes`. Cannot be switched
//! off, because roles would not wait without barriers.

use crate::Cx;
use tilec_ir::diag::Reported;
use tilec_ir::diag::counted;
use tilec_ir::entities::Value;
use tilec_ir::handover::{expected, handover, ring};
use tilec_ir::kernel::{Kernel, ValueDef};
use tilec_ir::lanes::lanes;
use tilec_ir::ordered::turns;
use tilec_ir::types::ArrivalCounts;
use tilec_ir::types::OrderedBarriers;

pub(crate) const NAME: &str = "hand-over";

pub(crate) fn run(k: &mut Kernel, cx: &mut Cx<'_>) -> Result<(), Reported> {
    let channels = k.values.iter().filter(|(_, data)| matches!(data.def, ValueDef::Channel { .. }));
    let silent: Vec<Value> = channels.map(|(v, _)| v).filter(|&v| k.handovers[v].is_none()).collect();
    for v in silent {
        k.handovers[v] = handover(k, v, &ring(k, v));
        if let Some(ArrivalCounts { full, empty }) = k.handovers[v] {
            let (name, [full, empty]) = (&k.values[v].name, [full, empty].map(|n| counted(n as usize, "arrival")));
            cx.remark(k.values[v].span, format!("a slot of `{name}` is full after {full}, and empty after {empty}"));
        }
    }
    for (s, bytes) in expected(k) {
        if k.expects[s].is_empty() {
            k.expects[s] = bytes;
        }
    }
    for (s, lanes) in lanes(k) {
        k.lanes[s].get_or_insert(lanes);
    }
    for turn in turns(k) {
        k.ordered[turn.stmt].get_or_insert(OrderedBarriers { arrivals: turn.warps, at: None });
    }
    Ok(())
}
