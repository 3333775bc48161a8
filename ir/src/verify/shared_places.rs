//! Rules 26 and 27: addresses in shared memory are aligned, slots of a channel do not overlap, and the barriers of a
//! channel match its roles.

use crate::codes;
use crate::diag::Diagnostic;
use crate::entities::{Stmt, Value};
use crate::fix_locations::FixLocation;
use crate::handover::{expected, handover, ring};
use crate::kernel::{ChannelOp, StmtData, ValueDef};
use crate::placement::{BARRIER_BYTES, MAX_BYTES, alignment, barrier_range, overlap, ranges, tile_bytes};
use crate::types::{ArrivalCounts, Place};
use crate::verify::context::Cx;

pub(super) fn check(cx: &mut Cx<'_, '_>) {
    let k = cx.k;
    let mut declared = Vec::new();
    k.walk(k.body, &mut |k, _, s| {
        if let StmtData::Alloc { value, .. } = k.stmts[s] {
            declared.extend(k.shared_places[value].map(|place| (s, value, place)));
        }
    });
    if declared.is_empty() {
        return;
    }
    let align = alignment(k);
    let limit = k.schedule.target.map_or(MAX_BYTES, crate::target::Target::smem_per_block);
    for &(s, v, Place { offset, stride, .. }) in &declared {
        let name = cx.name(v);
        let channel = matches!(k.values[v].def, ValueDef::Channel { .. });
        let bytes = tile_bytes(k, v);
        let why = if stride.is_some() != channel {
            "a channel has a stride, and nothing else has".to_owned()
        } else if !offset.is_multiple_of(align) {
            format!("`{name}` is at {offset}, which is not a multiple of {align}")
        } else if let Some(stride) = stride.filter(|n| !n.is_multiple_of(align)) {
            format!("slots of `{name}` are {stride} bytes apart, which is not a multiple of {align}")
        } else if let (Some(stride), Some(bytes)) = (stride, bytes.filter(|&b| stride.is_some_and(|n| n < b))) {
            format!("slots of `{name}` are {stride} bytes apart, and have {bytes} bytes each")
        } else if let Some(&(_, end)) = ranges(k, v).last().filter(|r| r.1 > limit) {
            format!("`{name}` ends at {end}, and a block has {limit} bytes of shared memory")
        } else {
            continue;
        };
        cx.report(Diagnostic::error(codes::BAD_PLACE, k.stmt_spans[s], why).with_note(
            "places are multiples of 128 bytes, and of 1024 in kernels with TMA copies or wgmma products; leave `at` out to have one chosen",
        ).with_left_out(k.spot(k.stmt_spans[s], FixLocation::Place)));
    }
    for &(s, v, _) in &declared {
        barriers(cx, s, v, limit);
    }
    if declared.iter().any(|(_, _, place)| place.barriers.is_some()) {
        bytes(cx);
    }
}

/// Rule 28: a `publish` expects the bytes of the TMA copies.
fn bytes(cx: &mut Cx<'_, '_>) {
    let k = cx.k;
    let expected = expected(k);
    let mut published = Vec::new();
    k.walk(k.body, &mut |k, _, s| {
        published.extend(matches!(k.stmts[s], StmtData::Channel { op: ChannelOp::Publish, .. }).then_some(s));
    });
    for s in published {
        let needed = expected.get(&s).map_or(&[][..], Vec::as_slice);
        if k.expects[s] == needed {
            continue;
        }
        let list: Vec<String> = needed.iter().map(u64::to_string).collect();
        let why = match needed {
            [] => "no TMA copies transfer the bytes that this expects".to_owned(),
            _ => format!("TMA copies transfer `expect {}` bytes to these slots", list.join(", ")),
        };
        cx.report(Diagnostic::error(codes::BAD_PLACE, k.stmt_spans[s], why).with_note(
            "a number for each channel: the bytes of the TMA copies into its slot since `acquire`; leave places and counts out to have them chosen",
        ));
    }
}

/// Rule 27: the barriers of a channel match the roles that fill and empty it, and share no memory with anything else.
fn barriers(cx: &mut Cx<'_, '_>, s: Stmt, v: Value, limit: u64) {
    let k = cx.k;
    let Some((start, end)) = barrier_range(k, v) else { return };
    let ring = ring(k, v);
    let needed = handover(k, v, &ring);
    let own = [(start, end)];
    let slots = k.values.keys().find(|&w| overlap(&own, &ranges(k, w)));
    let others =
        || k.values.keys().find(|w| !ring.contains(w) && barrier_range(k, *w).is_some_and(|r| overlap(&own, &[r])));
    let name = cx.name(v);
    let why = if !start.is_multiple_of(BARRIER_BYTES) {
        format!("the barriers of `{name}` are at {start}, which is not a multiple of {BARRIER_BYTES}")
    } else if end > limit {
        format!("the barriers of `{name}` end at {end}, and a block has {limit} bytes of shared memory")
    } else if let Some(w) = slots.or_else(others) {
        format!("the barriers of `{name}` overlap `{}`", cx.name(w))
    } else if ring.iter().any(|&w| barrier_range(k, w) != Some((start, end))) {
        format!("`{name}` is operated together with channels whose barriers are elsewhere")
    } else if k.handovers[v] != needed {
        match needed {
            Some(ArrivalCounts { full, empty }) => {
                format!("what fills and releases `{name}` makes it `full {full} empty {empty}`")
            }
            None => format!("`{name}` is not handed over between roles, and has barriers"),
        }
    } else {
        return;
    };
    cx.report(Diagnostic::error(codes::BAD_PLACE, k.stmt_spans[s], why).with_note(
        "`full` counts who fills a slot, `empty` the warps that release it; leave them out to have them counted",
    ));
}
