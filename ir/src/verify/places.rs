//! Rule 26: places in shared memory are aligned, and slots of a channel lie apart.

use crate::codes;
use crate::diag::Diagnostic;
use crate::kernel::{StmtData, ValueDef};
use crate::placement::{MAX_BYTES, alignment, ranges, tile_bytes};
use crate::types::Place;
use crate::verify::cx::Cx;

pub(super) fn check(cx: &mut Cx<'_, '_>) {
    let k = cx.k;
    let mut declared = Vec::new();
    k.walk(k.body, &mut |k, _, s| {
        if let StmtData::Alloc { value, .. } = k.stmts[s] {
            declared.extend(k.places[value].map(|place| (s, value, place)));
        }
    });
    if declared.is_empty() {
        return;
    }
    let align = alignment(k);
    let limit = k.schedule.target.map_or(MAX_BYTES, crate::target::Target::smem_per_block);
    for (s, v, Place { offset, stride }) in declared {
        let name = cx.name(v);
        let channel = matches!(k.values[v].def, ValueDef::Channel { .. });
        let bytes = tile_bytes(k, v);
        let why = if stride.is_some() != channel {
            "a channel has a stride, and nothing else has".to_owned()
        } else if !offset.is_multiple_of(align) {
            format!("`{name}` lies at {offset}, which is no multiple of {align}")
        } else if let Some(stride) = stride.filter(|n| !n.is_multiple_of(align)) {
            format!("slots of `{name}` are {stride} bytes apart, which is no multiple of {align}")
        } else if let (Some(stride), Some(bytes)) = (stride, bytes.filter(|&b| stride.is_some_and(|n| n < b))) {
            format!("slots of `{name}` are {stride} bytes apart, and have {bytes} bytes each")
        } else if let Some(&(_, end)) = ranges(k, v).last().filter(|r| r.1 > limit) {
            format!("`{name}` ends at {end}, and a block has {limit} bytes of shared memory")
        } else {
            continue;
        };
        cx.report(Diagnostic::error(codes::BAD_PLACE, k.stmt_spans[s], why).with_note(
            "places are multiples of 128 bytes, and of 1024 in kernels with tensor copies or products of warpgroups; leave `at` out to have one chosen",
        ));
    }
}
