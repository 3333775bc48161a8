//! Rule 29: the barriers of `ordered` statements belong to their role, and share no memory with anything else.

use crate::codes;
use crate::diag::Diagnostic;
use crate::kernel::StmtData;
use crate::ordered::{range, turns};
use crate::placement::{BARRIER_BYTES, MAX_BYTES, barrier_range, overlap, ranges};
use crate::verify::context::Cx;

pub(super) fn check(cx: &mut Cx<'_, '_>) {
    let k = cx.k;
    let mut said = Vec::new();
    k.walk(k.body, &mut |k, _, s| {
        said.extend(k.ordered[s].filter(|_| matches!(k.stmts[s], StmtData::Ordered { .. })).map(|turns| (s, turns)));
    });
    if said.is_empty() {
        return;
    }
    let limit = k.schedule.target.map_or(MAX_BYTES, crate::target::Target::smem_per_block);
    let all = turns(k);
    for (s, own) in said {
        let found = all.iter().find(|turn| turn.stmt == s);
        let place = found.and_then(|turn| range(k, turn));
        let own_range = place.map(|range| [range]);
        let meets = |other: &[(u64, u64)]| own_range.is_some_and(|own| overlap(&own, other));
        let value = k.values.keys().find(|&v| meets(&ranges(k, v)) || barrier_range(k, v).is_some_and(|r| meets(&[r])));
        let other = || all.iter().any(|t| t.stmt != s && range(k, t).is_some_and(|r| meets(&[r])));
        let why = match (found, place) {
            (None, _) => {
                "`ordered` has no effect here: the role has no replicas, and no more than one warpgroup".to_owned()
            }
            (Some(turn), _) if turn.warps != own.arrivals => {
                format!("{} warps of each group leave this: `arrivals {}`", turn.warps, turn.warps)
            }
            (_, Some((start, _))) if !start.is_multiple_of(BARRIER_BYTES) => {
                format!("the barriers of this are at {start}, which is not a multiple of {BARRIER_BYTES}")
            }
            (_, Some((_, end))) if end > limit => {
                format!("the barriers of this end at {end}, and a block has {limit} bytes of shared memory")
            }
            _ => match value {
                Some(v) => format!("the barriers of this overlap `{}`", cx.name(v)),
                None if other() => "the barriers of this overlap those of another `ordered` statement".to_owned(),
                None => continue,
            },
        };
        cx.report(Diagnostic::error(codes::BAD_PLACE, k.stmt_spans[s], why).with_note(
            "for each group a barrier, and after them, for each group and ring, a word of 8 bytes; leave `arrivals` and `at` out to have them chosen",
        ));
    }
}
