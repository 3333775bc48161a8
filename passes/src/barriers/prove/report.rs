//! Messages for failed proofs.

use super::FaultKind;
use std::collections::BTreeMap;
use tilec_ir::codes;
use tilec_ir::diag::Diagnostic;
use tilec_ir::entities::{Stmt, Value};
use tilec_ir::kernel::{Kernel, StmtData, StmtPlan};
use tilec_ir::memory_reuse::Overlays;

/// A violation of a rule by a statement.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    /// The buffer or channel.
    pub(super) value: Value,
    /// The slot, if it concerns a slot of a channel.
    pub(super) slot: Option<u32>,
    /// Which rule.
    pub(super) rule: FaultKind,
    /// The other statement.
    pub(super) other: Option<Stmt>,
}

/// The error for a fault of `s`.
pub(super) fn report(k: &Kernel, s: Stmt, fault: &Fault, trace: &Trace) -> Diagnostic {
    let name = &k.values[fault.value].name;
    let cell = match fault.slot {
        Some(n) => format!("slot {n} of `{name}`"),
        None => format!("`{name}`"),
    };
    let FaultText(message, label, way_out) = words(k, fault, name, &cell);
    let mut d = Diagnostic::error(codes::HAZARD, k.stmt_spans[s], message);
    if let Some(other) = fault.other {
        d = d.with_place(k.stmt_spans[other], label);
    }
    let path = path(k, trace);
    if !path.is_empty() {
        d = d.with_note(format!("this happens {path}"));
    }
    if !way_out.is_empty() {
        d = d.with_note(way_out);
    }
    if fault.rule == FaultKind::NeverAwaited {
        return d.with_fix_around(k.stmt_spans[s], "", format!("\nawait {name}, 0"));
    }
    match missing(fault.rule, name).filter(|_| k.plans[s] == StmtPlan::default()) {
        Some(statement) => d.with_fix_around(k.stmt_spans[s], format!("{statement}\n"), ""),
        None => d,
    }
}

/// The statement to insert in front of the faulty one, if that is the way out.
fn missing(why: FaultKind, name: &str) -> Option<String> {
    match why {
        FaultKind::ReadAfterWrite | FaultKind::WriteAfterRead | FaultKind::WriteAfterWrite => {
            Some("barrier".to_owned())
        }
        FaultKind::InFlight | FaultKind::WrittenInFlight | FaultKind::TakenInFlight | FaultKind::NotWaited => {
            Some(format!("wait {name}"))
        }
        FaultKind::NotAcquired => Some(format!("acquire {name}")),
        FaultKind::WrittenWhileStored => Some(format!("await {name}, 0\nbarrier")),
        FaultKind::TakenWhileStored => Some(format!("await {name}, 0")),
        _ => None,
    }
}

/// The text of a fault: the message, the label of the other statement, and a way out.
struct FaultText(String, &'static str, String);

fn words(k: &Kernel, fault: &Fault, name: &str, cell: &str) -> FaultText {
    let found =
        race(fault.rule, name, cell).or_else(|| turn(fault.rule, name, cell)).or_else(|| store(fault.rule, name, cell));
    found.unwrap_or_else(|| absent(k, fault, cell))
}

/// Races of threads with other threads or with asynchronous copies.
fn race(why: FaultKind, name: &str, cell: &str) -> Option<FaultText> {
    Some(match why {
        FaultKind::ReadAfterWrite => FaultText(
            format!("{cell} is read while other threads may still be writing it"),
            "written here",
            "a `barrier` is needed between the two".to_owned(),
        ),
        FaultKind::WriteAfterRead => FaultText(
            format!("{cell} is overwritten while other threads may still be reading it"),
            "read here",
            "a `barrier` is needed between the two".to_owned(),
        ),
        FaultKind::WriteAfterWrite => FaultText(
            format!("{cell} is written twice, and other threads may still be writing it the first time"),
            "first written here",
            "a `barrier` is needed between the two".to_owned(),
        ),
        FaultKind::InFlight => FaultText(
            format!("{cell} is read while asynchronous copies into it may be in flight"),
            "copied here",
            format!(
                "`wait {name}` waits until they have completed; with `pending n` the last n groups may still be in flight"
            ),
        ),
        FaultKind::WrittenInFlight => FaultText(
            format!("{cell} is written while asynchronous copies into it may be in flight"),
            "copied here",
            format!(
                "`wait {name}` waits until they have completed; with `pending n` the last n groups may still be in flight"
            ),
        ),
        FaultKind::TakenInFlight => FaultText(
            format!("the memory of {cell} is reused while asynchronous copies into it may be in flight"),
            "copied here",
            format!("`wait {name}` waits until they have completed"),
        ),
        _ => return None,
    })
}

/// Channel operations in the wrong order.
fn turn(why: FaultKind, name: &str, cell: &str) -> Option<FaultText> {
    Some(match why {
        FaultKind::AcquiredTwice => FaultText(
            format!("`{name}` is acquired twice: its last slot is not published yet"),
            "first acquired here",
            format!("one slot is filled at a time: `publish {name}` comes before the next `acquire {name}`"),
        ),
        FaultKind::NoneFree => FaultText(
            format!("every slot of `{name}` is in use: {cell} would be overwritten while it is live"),
            "the slot was acquired here and is not released",
            format!("`release {name}` frees the oldest slot that was waited for"),
        ),
        FaultKind::NotAcquired => FaultText(
            format!("no slot of `{name}` is acquired here"),
            "",
            format!("`acquire {name}` comes first; `publish {name}` ends the use of `{name}.put`"),
        ),
        FaultKind::NonePublished => FaultText(
            format!("this would wait forever (deadlock): no slot of `{name}` is published"),
            "this slot is acquired, but not published",
            format!("a slot becomes available by `acquire {name}`, a copy to `{name}.put`, and `publish {name}`"),
        ),
        FaultKind::NotWaited => FaultText(
            format!("no slot of `{name}` was waited for here"),
            "",
            format!("`wait {name}` comes first; `release {name}` ends the use of `{name}.get`"),
        ),
        FaultKind::NeverPublished => FaultText(
            format!("{cell} is acquired and never published"),
            "",
            format!("`publish {name}` hands the slot to the consumer"),
        ),
        _ => return None,
    })
}

/// TMA stores that were not awaited.
fn store(why: FaultKind, name: &str, cell: &str) -> Option<FaultText> {
    Some(match why {
        FaultKind::WrittenWhileStored => FaultText(
            format!("{cell} is overwritten while a TMA store may still be reading it"),
            "stored here",
            format!("`await {name}, 0` waits until it is read; a `barrier` then tells the other threads"),
        ),
        FaultKind::TakenWhileStored => FaultText(
            format!("the memory of {cell} is reused while a TMA store may still be reading it"),
            "stored here",
            format!("`await {name}, 0` waits until it is read"),
        ),
        FaultKind::NeverAwaited => FaultText(
            format!("a TMA store may still be reading {cell} when its threads end"),
            "",
            format!("`await {name}, 0` at the end waits until it is read"),
        ),
        FaultKind::UsedAfterStore => FaultText(
            format!("{cell} is used after a TMA store to it, which may not have arrived"),
            "stored here",
            "only the end of the kernel waits for the data of a TMA store: store to a tensor that the kernel uses in no other way"
                .to_owned(),
        ),
        FaultKind::StoredTwice => FaultText(
            format!("a TMA store to {cell}, which other copies of the same threads store to"),
            "stored here",
            "nothing orders the two: write all of the tensor by TMA stores, or nothing".to_owned(),
        ),
        _ => return None,
    })
}

/// Reads and uses of something that is not there.
fn absent(k: &Kernel, fault: &Fault, cell: &str) -> FaultText {
    if fault.rule == FaultKind::Unwritten {
        return FaultText(
            format!("{cell} is read before anything is written to it"),
            "",
            "on this path no `copy` fills it first".to_owned(),
        );
    }
    assert!(fault.rule == FaultKind::NotAllocated, "bug: no words for {:?}", fault.rule);
    match reusing_buffer(k, fault.value) {
        Some(by) => FaultText(
            format!("{cell} is used after `{by}` reused its memory"),
            "",
            "declare it again to use it again".to_owned(),
        ),
        None => FaultText(format!("{cell} is used where it is not declared"), "", String::new()),
    }
}

/// The buffer that reuses the memory of `value`.
fn reusing_buffer(k: &Kernel, value: Value) -> Option<&str> {
    let overlays = Overlays::of(k);
    let over = overlays.iter().find(|(_, over)| over.contains(&value)).map(|(by, _)| by);
    let by = over.or_else(|| overlays.sharing(value).first().copied())?;
    Some(&k.values[by].name)
}

/// Describes the path of the execution.
fn path(k: &Kernel, trace: &Trace) -> String {
    let mut parts = Vec::new();
    for (&s, &n) in &trace.trips {
        if let StmtData::For { var, unroll, .. } = k.stmts[s] {
            let plural = if n == 1 { "" } else { "s" };
            let copies = if unroll { " unrolled" } else { "" };
            parts.push(format!("after {n} iteration{plural} of the{copies} loop over `{}`", k.values[var].name));
        }
    }
    for (&s, &taken) in &trace.branches {
        if let StmtData::If { cond, .. } = k.stmts[s] {
            let holds = if taken { "holds" } else { "does not hold" };
            parts.push(format!("if `{}` {holds}", tilec_ir::print::print_expr(k, cond)));
        }
    }
    parts.join(", ")
}

/// The path to a state, for the message. For equal states, the first one's path is kept.
#[derive(Clone, Default, Debug)]
pub(super) struct Trace {
    /// Last write and last read of a cell.
    pub(super) last: BTreeMap<(Value, Option<u32>), Last>,
    /// Last `acquire` of a slot.
    pub(super) acquired: BTreeMap<(Value, u32), Stmt>,
    /// Iterations of loops completed.
    pub(super) trips: BTreeMap<Stmt, u64>,
    /// Branches last taken.
    pub(super) branches: BTreeMap<Stmt, bool>,
}

/// The last write and the last read.
pub(super) type Last = (Option<Stmt>, Option<Stmt>);
