//! `place-shared`: assigns addresses in shared memory to buffers and channels.
//!
//! ```text
//! let a = channel f16[64, 32] slots 4 at 0 stride 8192
//! let c = smem f32[64, 64] at 0
//! ```
//!
//! Needs: layouts, channels, and the final order of statements. Decides: the address of each buffer and channel that has none. Buffers that are not live at
//! the same time ([`live_ranges`]) share bytes if the barrier that this costs is outside of loops. Small buffers, and those in loops, share only if the block has not enough memory otherwise.
//! The declaration of a buffer that shares bytes moves to the start of its live range, so that the prover sees the reuse.
//! Switched off: only buffers with `over` share bytes.
//!
//! [`bytes`] returns the memory of a kernel with additional channels, for passes that need to know how many slots fit.

mod live_ranges;
mod plan;
mod stores;

pub(crate) use plan::TrialChannel;

use crate::analysis::access_width::slots_of;
use crate::tensor_copies::slot_bytes;
use crate::{Cx, Options};
use plan::{Buffers, PartialReuse, Plan, Planner, Sharing};
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported};
use tilec_ir::entities::{Block, Value};
use tilec_ir::handover::ring;
use tilec_ir::kernel::{Kernel, StmtData};
use tilec_ir::ordered;
use tilec_ir::placement;

pub(crate) const NAME: &str = "place-shared";

pub(crate) fn run(k: &mut Kernel, cx: &mut Cx<'_>) -> Result<(), Reported> {
    let limit = tilec_ir::cluster::room(k, cx.options.target);
    let buffers = Buffers::of(k);
    let plan = match Planner::new(&buffers, &[]) {
        Ok(planner) if cx.enabled => fitting(&planner, limit),
        Ok(planner) => planner.plan(Sharing::Nothing),
        Err(PartialReuse(v)) => return Err(torn(k, cx, v)),
    };
    if plan.bytes > limit {
        return Err(too_large(k, cx, plan.bytes));
    }
    let mut lists: Vec<(Block, tilec_ir::entities::Stmt, Value)> = Vec::new();
    for &(v, life) in plan.shared.iter().filter(|(v, _)| k.shared_places[*v].is_none()) {
        lists.push((life.block, k.blocks[life.block][life.from], v));
    }
    for (v, place) in plan.places {
        k.shared_places[v].get_or_insert(place);
    }
    let bytes = place_barriers(k);
    if bytes > limit {
        return Err(too_large(k, cx, bytes));
    }
    let names: Vec<String> = lists.iter().map(|&(_, _, v)| format!("`{}`", k.values[v].name)).collect();
    for (block, first, v) in lists {
        declare_in_front(k, v, block, first);
    }
    if !names.is_empty() {
        let message = format!("{} share {} bytes: not all of them are live at once", names.join(", "), plan.bytes);
        cx.remark(k.name_span, message);
    }
    Ok(())
}

/// Places the mbarriers of channels between roles after everything else, in the order of the text, and then those of
/// `ordered` statements. Returns their end.
fn place_barriers(k: &mut Kernel) -> u64 {
    let mut channels: Vec<Value> = Vec::new();
    k.walk(k.body, &mut |k, _, s| {
        if let StmtData::Alloc { value, .. } = k.stmts[s] {
            channels.extend(k.handovers[value].map(|_| value));
        }
    });
    let mut used = ordered::end(k);
    for v in channels {
        if k.shared_places[v].is_none_or(|place| place.barriers.is_some()) {
            continue;
        }
        for w in ring(k, v) {
            k.shared_places[w].iter_mut().for_each(|place| place.barriers = Some(used));
        }
        used += 2 * placement::BARRIER_BYTES * slots_of(k, v);
    }
    for turn in ordered::turns(k) {
        if let Some(turns) = k.ordered[turn.stmt].as_mut().filter(|turns| turns.at.is_none()) {
            turns.at = Some(used);
            used += turn.bytes();
        }
    }
    used
}

/// Memory needs of a kernel's buffers, for a pass that compares several sets of channels.
pub(crate) struct Needs<'k> {
    buffers: Buffers<'k>,
    shares: bool,
}

impl<'k> Needs<'k> {
    /// If the pass is switched off, nothing shares bytes.
    pub(crate) fn of(k: &'k Kernel, options: &Options) -> Needs<'k> {
        Needs { buffers: Buffers::of(k), shares: options.is_on(NAME) }
    }

    /// Bytes of shared memory of the kernel with these channels, for a block limit of `limit`.
    pub(crate) fn bytes(&self, limit: u64, supposed: &[TrialChannel]) -> u64 {
        let plan = |planner: &Planner<'_>| match self.shares {
            true => fitting(planner, limit),
            false => planner.plan(Sharing::Nothing),
        };
        // Such kernels are refused later, so the result does not matter.
        Planner::new(&self.buffers, supposed).map_or(0, |planner| plan(&planner).bytes)
    }
}

/// Bytes of shared memory of the kernel with these channels, for a block limit of `limit`.
pub(crate) fn bytes(k: &Kernel, options: &Options, limit: u64, supposed: &[TrialChannel]) -> u64 {
    Needs::of(k, options).bytes(limit, supposed)
}

/// The plan with the fewest barriers in loops that fits.
fn fitting(planner: &Planner<'_>, limit: u64) -> Plan {
    let tighter = |plan: Plan, sharing| match plan.bytes <= limit {
        true => plan,
        false => Some(planner.plan(sharing)).filter(|other| other.bytes < plan.bytes).unwrap_or(plan),
    };
    [Sharing::Once, Sharing::InLoops].into_iter().fold(planner.plan(Sharing::Large), tighter)
}

fn too_large(k: &Kernel, cx: &mut Cx<'_>, bytes: u64) -> Reported {
    let target = cx.options.target;
    let mut buffers: Vec<Value> = Vec::new();
    k.walk(k.body, &mut |k, _, s| {
        if let StmtData::Alloc { value, .. } = k.stmts[s] {
            buffers.push(value);
        }
    });
    let mut d = Diagnostic::error(
        codes::SMEM_LIMIT,
        buffers.first().map_or(k.name_span, |&v| k.values[v].span),
        format!(
            "the kernel needs {bytes} bytes of shared memory, a block of {} has {}",
            target.name(),
            tilec_ir::cluster::room(k, target)
        ),
    );
    for &v in &buffers {
        let slots = placement::slots(k, v).unwrap_or(1);
        d = d.with_place(k.values[v].span, format!("{slots} x {} bytes", slot_bytes(k, v)));
    }
    let d = d.with_note("use smaller tiles or fewer stages");
    cx.report(
        d.with_left_out(
            k.schedule_item("stages").filter(|_| buffers.iter().any(|&v| placement::slots(k, v).is_some())),
        ),
    )
}

fn torn(k: &Kernel, cx: &mut Cx<'_>, v: Value) -> Reported {
    let (name, span) = (&k.values[v].name, k.values[v].span);
    let message = format!(
        "`{name}` reuses the memory of only some of the buffers or channels that other statements use together"
    );
    let d = Diagnostic::error(codes::UNFIT, span, message);
    cx.report(d.with_note("name all channels of the ring, and the same buffers every time"))
}

/// Moves the declaration of `v` in front of a statement of `block`.
fn declare_in_front(k: &mut Kernel, v: Value, block: Block, first: tilec_ir::entities::Stmt) {
    let declares =
        |k: &Kernel, s| matches!(&k.stmts[s], StmtData::Alloc { value, over } if *value == v && over.is_empty());
    let mut found = None;
    k.walk(k.body, &mut |k, b, s| found = found.or(declares(k, s).then_some((b, s))));
    // A buffer over others is declared where it reuses their memory.
    let Some((outer, alloc)) = found else { return };
    k.blocks[outer].retain(|&s| s != alloc);
    let Some(to) = k.blocks[block].iter().position(|&s| s == first) else {
        panic!("bug in pass `{NAME}`: the life of `{}` begins nowhere", k.values[v].name)
    };
    k.blocks[block].insert(to, alloc);
}
