//! Whether and how a loop can be pipelined.

use super::fills::{ahead, branched, converted, fill, leading, plain};
use super::general_loops;
use crate::Cx;
use crate::analysis::access_width::{known_elem, tile_shape};
use crate::analysis::product_loops::{accumulator, outlives};
use crate::analysis::uses::{all_stmts, for_each_ref, mentions, place_of, stmt_exprs};
use crate::pipeline::loop_plan::{Fill, Plan, Slice};
use crate::place_shared::{Needs, TrialChannel};
use crate::refusal::Refused;
use crate::rewrite::{Map, Subst, clone_stmt};
use crate::single_stage::Depth;
use tilec_ir::cluster::room;
use tilec_ir::codes;
use tilec_ir::diag::Diagnostic;
use tilec_ir::entities::{Stmt, Value};
use tilec_ir::kernel::{Kernel, StmtData, ValueDef};
use tilec_ir::typing::resolve_view;

/// Slots at most.
pub(super) const MAX_SLOTS: u64 = 16;
/// Default number of slots if tiles pass through registers.
pub(super) const STAGED_SLOTS: u64 = 2;
/// Default number of slots for asynchronous copies, to cover the latency of global memory.
pub(super) const DIRECT_SLOTS: u64 = 4;

/// Most slices of the reduction that are unrolled, so that the text stays readable and within limits.
const MAX_SLICES: i64 = 128;

/// The reason why a loop is not pipelined.
pub(super) enum NotPipelined {
    /// It cannot be, or gains nothing.
    For(Refused),
    /// The schedule requests something impossible.
    Wrong(Box<Diagnostic>),
}

impl From<Refused> for NotPipelined {
    fn from(why: Refused) -> NotPipelined {
        NotPipelined::For(why)
    }
}

/// `Ok(None)`: the loop fills no buffer, so there is nothing to report.
pub(super) fn plan(k: &mut Kernel, cx: &Cx<'_>, at: Stmt) -> Result<Option<Plan>, NotPipelined> {
    match planned(k, cx, at, ahead) {
        // There may be room for only the copies at the start of the body, or for only those that compute nothing.
        Err(NotPipelined::For(refused)) => {
            for split in [leading, plain] {
                if let Ok(Some(plan)) = planned(k, cx, at, split) {
                    return Ok(Some(plan));
                }
            }
            Err(NotPipelined::For(refused))
        }
        planned => planned,
    }
}

/// Splits a body into copies that run ahead, and other statements.
type Split = fn(&Kernel, &Cx<'_>, &[Stmt]) -> (Vec<Fill>, Vec<Stmt>);

/// Refuses copies whose windows would be too long after the loop's names are expanded.
fn can_be_ahead(k: &Kernel, fills: &[Fill], names: &[Stmt]) -> Result<(), NotPipelined> {
    for fill in fills {
        let mut written = [Some(fill.src), fill.computed, fill.attrs.when].into_iter().flatten();
        if !written.all(|e| general_loops::can_be_written_out(k, e, names)) {
            let why = format!(
                "`{}` is loaded from where too many names say, which would be written out for another iteration",
                k.values[fill.buffer].name
            );
            let help = "have fewer names of the loop stand for the place, or compute them in front of the loop";
            return Err(Refused::at(fill.span, why).help(help).into());
        }
    }
    Ok(())
}

fn planned(k: &mut Kernel, cx: &Cx<'_>, at: Stmt, split: Split) -> Result<Option<Plan>, NotPipelined> {
    let StmtData::For { var, body, cond, .. } = k.stmts[at] else { unreachable!("a loop is planned") };
    let (names, stmts) = general_loops::without_names(k, &k.blocks[body]);
    let (mut fills, others) = split(k, cx, &stmts);
    can_be_ahead(k, &fills, &names)?;
    for fill in &mut fills {
        fill.src = general_loops::expand_names(k, fill.src, &names);
        fill.computed = fill.computed.map(|e| general_loops::expand_names(k, e, &names));
        fill.attrs.when = fill.attrs.when.map(|e| general_loops::expand_names(k, e, &names));
    }
    if fills.is_empty() {
        if let Some((s, v)) = stmts.first().and_then(|&s| Some((s, converted(k, s)?))) {
            let name = &k.values[v].name;
            let why = format!(
                "`{name}` is computed between the load and shared memory, by threads that wait for their loads"
            );
            let help = "copy the tile unchanged, and convert it when it is read into registers, or after that";
            return Err(Refused::at(k.stmt_spans[s], why).help(help).into());
        }
        let at = |fill: Fill, why: &str| Refused::at(fill.span, format!("`{}` is {why}", k.values[fill.buffer].name));
        return match stmts.iter().find_map(|&s| fill(k, cx, s)) {
            Some(fill) => {
                let help = "copy in front of what uses the buffer in the body of the loop";
                Err(at(fill, "filled after statements that use its previous tile").help(help).into())
            }
            None => match branched(k, cx, &stmts) {
                Some(fill) => {
                    let help = "copy in front of the branch: elements outside a tensor read as zero";
                    Err(at(fill, "filled on one side of a branch").help(help).into())
                }
                None => Ok(None),
            },
        };
    }
    if cond.is_some() {
        let why = "whether it goes on is known only after an iteration (`while`)".to_owned();
        return Err(Refused::at(k.stmt_spans[at], why).into());
    }
    fills.iter().try_for_each(|fill| general_loops::steady(k, fill, at))?;
    let mut rest = general_loops::used_names(k, &names, &others);
    rest.extend(&others);
    once(k, &fills, at)?;
    let slices = check_rest(k, &rest, var, at).and_then(|()| slices(k, &rest));
    // A tile past the end of the loop is loaded, too, and products need it to be zero.
    if let Some(fill) = fills.iter().find(|f| f.attrs.fill.is_some()).filter(|_| slices.is_ok()) {
        let name = &k.values[fill.buffer].name;
        let why =
            format!("elements outside the bounds are not zero in `{name}` (`fill`), and products need them to be");
        return Err(Refused::at(fill.span, why).into());
    }
    if slices.is_err() {
        general_loops::check(k, &fills, &rest)?;
    }
    let default = match fills.iter().any(|f| f.direct) {
        true if slices.is_ok() || multiplies_only(k, &rest) => DIRECT_SLOTS,
        true => general_loops::SLOTS,
        false => STAGED_SLOTS,
    };
    let per_slot: u64 = fills.iter().map(|f| tile_bytes(k, f.buffer)).sum();
    let stages = match scheduled(k, cx, &fills, at)? {
        Some(stages) => stages,
        None => match fitting(k, cx, &fills, (default, at)) {
            1 => {
                let limit = room(k, cx.options.target);
                let beside = "and the other buffers, exceed";
                let why = format!("two slots of {per_slot} bytes, {beside} the {limit} bytes of shared memory");
                return Err(Refused::room(why).into());
            }
            stages => stages,
        },
    };
    let (slices, rest) = match slices {
        Ok(slices) => (slices, Vec::new()),
        Err(_) => (Vec::new(), rest),
    };
    let mut fragments = Vec::new();
    for slice in &slices {
        for &s in &slice.loads {
            if let StmtData::Copy { dst, .. } = k.stmts[s]
                && let Some(v) = crate::analysis::views::plain_var(k, dst)
                && !fragments.contains(&v)
            {
                fragments.push(v);
            }
        }
    }
    let even = slices.len() % 2 == 0 && rest.is_empty();
    let place = place_of(k, at);
    Ok(Some(Plan {
        at,
        place,
        stages,
        fills,
        slices,
        rest,
        fragments: if even { fragments } else { Vec::new() },
        double_buffered: even,
        bytes: per_slot * stages,
    }))
}

/// The stages in the schedule.
fn scheduled(k: &Kernel, cx: &Cx<'_>, fills: &[Fill], at: Stmt) -> Result<Option<u64>, NotPipelined> {
    let Some((e, asked)) = k.schedule.stages.and_then(|e| Some((e, k.as_int(e)?))) else { return Ok(None) };
    match u64::try_from(asked) {
        Ok(1) => {
            let why = "the schedule says `stages 1`";
            Err(match &cx.options.depth {
                Some(Depth::NoGain(text)) => Refused::by_request(format!("{why}, and {text}")),
                Some(Depth::Write(text)) => Refused::by_request(why).help(text),
                None => Refused::by_request(why).help("write `stages 2` or more, or leave `stages` out"),
            }
            .into())
        }
        Ok(n) if (2..=MAX_SLOTS).contains(&n) => Ok(Some(n)),
        _ => {
            let most = fitting(k, cx, fills, (MAX_SLOTS, at));
            let message = format!("{asked} stages: a loop has 1 to {MAX_SLOTS}");
            let names: Vec<String> = fills.iter().map(|f| format!("`{}`", k.values[f.buffer].name)).collect();
            let note =
                format!("shared memory has room for {most} slot(s) of {}: write `stages {most}`", names.join(", "));
            let d = Diagnostic::error(codes::BAD_SCHEDULE, k.expr_spans[e], message);
            let d = d.with_note(note).with_fix_of_item(k.schedule_item("stages"), format!("stages {most}"));
            Err(NotPipelined::Wrong(Box::new(d)))
        }
    }
}

/// The largest number of slots up to `most` that fits in shared memory; at least one.
fn fitting(k: &Kernel, cx: &Cx<'_>, fills: &[Fill], (most, at): (u64, Stmt)) -> u64 {
    let limit = room(k, cx.options.target);
    let needs = Needs::of(k, cx.options);
    (2..=most).rev().find(|&n| with_slots(&needs, fills, (n, limit), at) <= limit).unwrap_or(1)
}

/// Bytes of shared memory of the kernel with this number of slots for the loop's buffers.
fn with_slots(needs: &Needs<'_>, fills: &[Fill], (slots, limit): (u64, u64), at: Stmt) -> u64 {
    let supposed: Vec<TrialChannel> =
        fills.iter().map(|f| TrialChannel { value: f.buffer, slots, within: Some(at) }).collect();
    needs.bytes(limit, &supposed)
}

fn tile_bytes(k: &Kernel, buffer: Value) -> u64 {
    known_elem(k, buffer).bytes_of(tile_shape(k, buffer).iter().product())
}

/// Checks that each buffer is filled by one copy, and used only in the loop.
fn once(k: &Kernel, fills: &[Fill], at: Stmt) -> Result<(), Refused> {
    let buffers: Vec<Value> = fills.iter().map(|f| f.buffer).collect();
    if let Some(&b) = buffers.iter().find(|&&b| k.shared_places[b].is_some()) {
        return Err(Refused::by_request(format!(
            "the place of `{}` in shared memory is written (`at`)",
            k.values[b].name
        )));
    }
    for (i, &b) in buffers.iter().enumerate() {
        if buffers[..i].contains(&b) {
            return Err(Refused::at(fills[i].span, format!("`{}` is filled twice", k.values[b].name)));
        }
    }
    let body = crate::analysis::uses::loop_body(k, at).into_iter().flat_map(|b| all_stmts(k, b)).collect::<Vec<_>>();
    for s in all_stmts(k, k.body) {
        if body.contains(&s) {
            continue;
        }
        let mut outside = None;
        for e in stmt_exprs(k, s) {
            for_each_ref(k, e, &mut |v| outside = outside.or(buffers.contains(&v).then_some(v)));
        }
        if let StmtData::Await { value, .. } = k.stmts[s] {
            outside = outside.or(buffers.contains(&value).then_some(value));
        }
        if let Some(v) = outside {
            let why = format!("`{}` is also used outside the loop", k.values[v].name);
            return Err(Refused::at(k.stmt_spans[s], why).help("copy into another buffer there"));
        }
    }
    Ok(())
}

/// Whether statements are only products and their loads, so that an iteration is short.
fn multiplies_only(k: &Kernel, rest: &[Stmt]) -> bool {
    rest.iter().all(|&s| match &k.stmts[s] {
        StmtData::Copy { .. } | StmtData::Let { .. } => true,
        StmtData::For { body, unroll: true, .. } => multiplies_only(k, &k.blocks[*body]),
        _ => is_product(k, s),
    })
}

fn check_rest(k: &Kernel, rest: &[Stmt], var: Value, at: Stmt) -> Result<(), String> {
    let inside: Vec<Stmt> = rest
        .iter()
        .flat_map(|&s| std::iter::once(s).chain(k.sub_blocks(s).into_iter().flat_map(|b| all_stmts(k, b))))
        .collect();
    for &s in &inside {
        if stmt_exprs(k, s).into_iter().any(|e| mentions(k, e, var)) {
            return Err(format!("what follows the copies uses `{}`", k.values[var].name));
        }
        match &k.stmts[s] {
            StmtData::Copy { dst, .. } => {
                let Some(view) = resolve_view(k, *dst) else {
                    return Err("it writes to something other than a variable or window".into());
                };
                if !matches!(k.values[view.base].def, ValueDef::Var(_)) {
                    return Err(format!("it also writes `{}`", k.values[view.base].name));
                }
            }
            StmtData::Assign { .. } | StmtData::For { .. } => {}
            StmtData::Let { .. }
            | StmtData::Var { .. }
            | StmtData::Alloc { .. }
            | StmtData::If { .. }
            | StmtData::Channel { .. }
            | StmtData::Barrier
            | StmtData::Fence
            | StmtData::Await { .. }
            | StmtData::Signal { .. }
            | StmtData::Ordered { .. }
            | StmtData::Role { .. } => return Err("its body has more than copies and products".into()),
        }
    }
    // Register tiles keep the values of the last iteration after the loop, too.
    if let Some(v) = crate::analysis::uses::loop_body(k, at).and_then(|body| outlives(k, body)) {
        return Err(format!("`{}` is also used outside the loop", k.values[v].name));
    }
    Ok(())
}

/// The slices of the reduction: one unrolled loop of loads and products, or straight-line code.
fn slices(k: &mut Kernel, rest: &[Stmt]) -> Result<Vec<Slice>, String> {
    let split = |k: &Kernel, stmts: Vec<Stmt>| {
        let loads = stmts.iter().take_while(|&&s| matches!(k.stmts[s], StmtData::Copy { .. })).count();
        let products = stmts[loads..].to_vec();
        if products.iter().all(|&s| is_product(k, s)) {
            Ok(Slice { loads: stmts[..loads].to_vec(), products })
        } else {
            Err("its body has more than copies and products".to_owned())
        }
    };
    let [only] = rest else { return Ok(vec![split(k, rest.to_vec())?]) };
    let StmtData::For { var, start, end, step, cond: None, unroll: true, body, .. } = k.stmts[*only] else {
        return Ok(vec![split(k, rest.to_vec())?]);
    };
    let (Some(start), Some(end), Some(step)) = (k.as_int(start), k.as_int(end), k.as_int(step)) else {
        return Err("the slice loop has no literal bounds".into());
    };
    let span = k.stmt_spans[*only];
    let slices = i128::from(end) - i128::from(start);
    if step < 1 || slices > i128::from(MAX_SLICES) * i128::from(step) {
        return Err(format!("it has more than {MAX_SLICES} slices"));
    }
    let mut out = Vec::new();
    let mut at = start;
    if at >= end {
        return Err("it has no slices".into());
    }
    while at < end {
        let index = k.int(at, span);
        let mut map = Map(vec![(var, Subst::Expr(index))]);
        let stmts: Vec<Stmt> = k.blocks[body].clone().into_iter().map(|s| clone_stmt(k, s, &mut map)).collect();
        out.push(split(k, stmts)?);
        at = at.saturating_add(step);
    }
    Ok(out)
}

/// Whether a statement is a product, which a tile of zeros does not change.
fn is_product(k: &Kernel, s: Stmt) -> bool {
    accumulator(k, s).is_some()
}
