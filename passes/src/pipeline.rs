//! `pipeline`: turns shared-memory buffers that a loop fills and reads into channels, and schedules the statements of the loop.
//!
//! A loop whose body copies tiles from global memory into buffers and then multiplies them is software-pipelined:
//! each buffer becomes a channel of `stages` slots, tiles are loaded ahead, and fragments are double-buffered across slices
//! and across iterations. If the target has asynchronous copies (`cp.async`) and a copy can use them, it goes
//! directly into its slot. If no copy can, tiles pass through registers ([`iteration`]). A modulo schedule decides the order of statements ([`modulo`]). The results
//! are stages and cycles, from which `expand` makes prologue, steady state and drain.
//!
//! In a loop with other statements these keep their order, and only its copies run ahead ([`general_loops`]). If loops use the same buffer,
//! each gets its own ([`buffer_renaming`]). A loop whose warps exchange parts of rows loads its register tiles ahead ([`registers`]).
//!
//! Needs: layouts and widths; `expand`. Declines, with a remark, if copies cannot run ahead, if one stage is requested, or
//! if the slots do not fit. Switched off: nothing.

mod buffer_renaming;
mod expected_mechanism;
mod fills;
mod general_loops;
mod iteration;
mod loop_plan;
mod modulo;
mod plan;
mod registers;
mod scheduled_loops;
mod tile_statements;
mod unit_rates;

use crate::Cx;
use crate::analysis::{unit_usage as beside, uses::all_stmts};
use crate::assign_layouts::Threads;
use crate::pipeline::loop_plan::Plan;
use crate::refusal::Refused;
use crate::schedule_loops::special_clocks;
pub(crate) use expected_mechanism::{NAME, asynchronous};
use plan::NotPipelined;
use tile_statements::{Build, Lane};
use tilec_ir::diag::Reported;
use tilec_ir::entities::{Stmt, Value};
use tilec_ir::iteration_time::IterationTime;
use tilec_ir::kernel::{Kernel, StmtData, StmtPlan};
use tilec_ir::missed_paths::FastPath;
pub(crate) use unit_rates::{product_clocks, shared_clocks};

/// Most slots of a loop's buffers.
pub const MAX_SLOTS: u64 = plan::MAX_SLOTS;

/// Default number of slots of a loop's buffers, also for `choose`. `direct`: copies are asynchronous.
pub(crate) fn usual_slots(direct: bool, multiplies_only: bool) -> u64 {
    match (direct, multiplies_only) {
        (true, true) => plan::DIRECT_SLOTS,
        (true, false) => general_loops::SLOTS,
        (false, _) => plan::STAGED_SLOTS,
    }
}

pub(crate) fn run(k: &mut Kernel, cx: &mut Cx<'_>) -> Result<(), Reported> {
    if !cx.enabled || !cx.options.expands() {
        return Ok(());
    }
    for s in all_stmts(k, k.body) {
        if let StmtData::For { unroll: false, body, .. } = k.stmts[s] {
            if k.blocks[body].iter().any(|&s| k.plans[s].stage.is_some()) {
                scheduled_loops::remark(k, cx, s, body);
                continue;
            }
            // A buffer that other statements use cannot be a channel: the loop gets its own, if that suffices.
            let own = with_own_buffers(k, cx, s);
            if let Some(Ok((own, plan, message))) = own {
                *k = own;
                cx.remark(k.stmt_spans[s], message);
                apply(k, cx, &plan);
                continue;
            }
            match plan::plan(k, cx, s) {
                Ok(Some(plan)) => {
                    let plan = loaded_ahead(k, cx, s).unwrap_or(plan);
                    apply(k, cx, &plan);
                }
                Ok(None) => {
                    if let Some(message) = registers::run(k, s) {
                        cx.remark(k.stmt_spans[s], message);
                    }
                }
                Err(NotPipelined::For(refused)) => {
                    // With its own buffers, the loop may be refused for another reason.
                    let refused = own.and_then(Result::err).unwrap_or(refused);
                    refused.report(k, cx, "loop not pipelined", (FastPath::Ahead, vec![s]));
                }
                Err(NotPipelined::Wrong(d)) => return Err(cx.report(*d)),
            }
        }
    }
    Ok(())
}

/// The kernel with separate buffers for a loop, or for each of several tiles of an iteration, if the loop can be
/// pipelined then, with a message; or why it cannot even then. `None`: the loop has separate buffers already.
fn with_own_buffers(k: &Kernel, cx: &Cx<'_>, s: Stmt) -> Option<Result<(Kernel, Plan, String), Refused>> {
    let names = |k: &Kernel, list: &[Value]| {
        list.iter().map(|&v| format!("`{}`", k.values[v].name)).collect::<Vec<_>>().join(", ")
    };
    let shared = buffer_renaming::shared(k, s);
    let mut own = k.clone();
    let others: Vec<Value> = shared.iter().map(|&v| buffer_renaming::separate(&mut own, s, v)).collect();
    let mut again = Vec::new();
    while let Some((v, stmts)) = buffer_renaming::filled_again(&own, s) {
        again.push(v);
        buffer_renaming::instead(&mut own, s, v, stmts);
    }
    let mut said = Vec::new();
    if !shared.is_empty() {
        let (others, shared) = (names(&own, &others), names(k, &shared));
        said.push(format!("this loop has buffers of its own, {others}, for {shared}, which other statements use"));
    }
    if !again.is_empty() {
        again.reverse();
        again.dedup();
        said.push(format!("each tile that is copied into {} has a buffer of its own", names(&own, &again)));
    }
    if said.is_empty() {
        return None;
    }
    match plan::plan(&mut own, cx, s) {
        Ok(Some(plan)) => Some(Ok((own, plan, said.join("; ")))),
        Err(NotPipelined::For(refused)) => Some(Err(refused)),
        Ok(None) | Err(NotPipelined::Wrong(_)) => None,
    }
}

/// Makes a pipelined loop load register tiles ahead, too, such as the scale of a row whose elements pass through shared
/// memory. Returns the loop's new plan, if there is any.
fn loaded_ahead(k: &mut Kernel, cx: &mut Cx<'_>, s: Stmt) -> Option<Plan> {
    let mut ahead = k.clone();
    let message = registers::run(&mut ahead, s)?;
    let plan = plan::plan(&mut ahead, cx, s).ok()??;
    *k = ahead;
    cx.remark(k.stmt_spans[s], message);
    Some(plan)
}

fn apply(k: &mut Kernel, cx: &mut Cx<'_>, plan: &Plan) {
    let span = k.stmt_spans[plan.at];
    let (schedule, units) = (unit_rates::of(k, cx, plan), unit_rates::units(k, cx, plan));
    let mut decls = Vec::new();
    let lanes: Vec<Lane> = plan.fills.iter().map(|fill| Lane::new(k, fill, plan.stages, &mut decls)).collect();
    let channels: Vec<Value> = lanes.iter().map(|l| l.channel).collect();
    let mut build = Build { k, lanes, channels, span };
    // Second buffers for the fragments that slices load.
    let mut pairs: Vec<(Value, Value)> = Vec::new();
    for &f in &plan.fragments {
        pairs.push((f, build.twin(f, &mut decls)));
    }
    let timed = iteration::timed(&mut build, plan, &pairs, &schedule);
    let k = build.k;
    for (cycle, timed) in (0..).zip(&timed) {
        k.plans[timed.stmt] = StmtPlan { stage: Some(timed.stage), cycle: Some(cycle), ..k.plans[timed.stmt] };
    }
    k.plans[plan.at].open = plan.open();
    let list = k.block(iteration::written(&timed));
    let StmtData::For { body, .. } = &mut k.stmts[plan.at] else { unreachable!("a loop is planned") };
    *body = list;
    let timed_body = list;
    let names: Vec<String> = plan.fills.iter().map(|f| format!("`{}`", k.values[f.buffer].name)).collect();
    // In an outer loop with stages, the declarations belong to the stage of this loop.
    let StmtPlan { stage, cycle, .. } = k.plans[plan.at];
    for &s in &decls {
        k.plans[s] = StmtPlan { stage, cycle, ..StmtPlan::default() };
    }
    let (block, index) = plan.place;
    k.blocks[block].splice(index..index, decls);
    let through: Vec<&str> = plan.fills.iter().filter(|f| !f.direct).map(|f| &*k.values[f.buffer].name).collect();
    let how = match (through.is_empty(), plan.direct()) {
        (true, _) => "asynchronous copies".to_owned(),
        (false, true) => format!("asynchronous copies; through registers: {}", through.join(", ")),
        (false, false) => "through registers".to_owned(),
    };
    for (fill, refused) in plan.fills.iter().filter_map(|f| Some((f, f.refused.clone()?))) {
        let what = format!("no asynchronous copy fills `{}`", k.values[fill.buffer].name);
        refused.or_at(fill.span).report(k, cx, &what, (FastPath::Asynchronous, vec![plan.at]));
    }
    let (slots, bytes) = (plan.stages, plan.bytes);
    let fragments = if plan.double_buffered { "double-buffered" } else { "loaded per slice" };
    let become_channels = match names.as_slice() {
        [one] => format!("{one} becomes a channel"),
        _ => format!("{} become channels", names.join(", ")),
    };
    cx.remark(
        span,
        format!(
            "{become_channels} of {slots} slots (`stages {slots}`), {bytes} bytes of shared memory ({how}); fragments {fragments}"
        ),
    );
    let [(first, most), ref rest @ ..] = units;
    let rest = rest.map(|(unit, clocks)| format!("{unit} {clocks}"));
    let message = format!("an iteration of a block takes about {most} clocks, bound by {first} ({})", rest.join(", "));
    let mut beside = beside::unmodelled_clocks(k, cx.options.usual_card(), timed_body);
    let special = special_clocks(k, cx.options.usual_card(), &k.blocks[timed_body], Threads::of(k).count());
    beside.extend(Some(("special functions", special)).filter(|&(_, n)| n > 0));
    let units = units.to_vec();
    cx.pace(
        span,
        message,
        IterationTime {
            body: timed_body,
            variable: k.loop_variable(timed_body).map_or_else(Default::default, |v| k.values[v].span),
            clocks: most,
            in_clocks: false,
            units,
            unmodelled: beside,
        },
    );
}
