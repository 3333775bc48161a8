//! Atomic operations on memory: how often a launch combines with the same elements, and what would combine less often.

use super::loop_copies::depends_on;
use super::way_out::WayOut;
use tilec_ir::diag::Span;
use tilec_ir::entities::Value;
use tilec_ir::kernel::{Kernel, StmtData};
use tilec_ir::typing::{ViewDim, resolve_view};
use tilec_passes::choose::{Combined, Place, Prediction};

/// Operations on an element from which on it is said how often there are.
const OFTEN: f64 = 1.5;
/// How often an element may pass between memory and the cache.
const AGAIN: f64 = 1.01;

/// The copies with atomic operations, most in front.
fn all(p: &Prediction) -> Vec<(&Place, Combined)> {
    let mut all: Vec<_> = p.places.iter().filter_map(|place| Some((place, place.combined?))).collect();
    all.sort_by(|a, b| b.0.bytes.total_cmp(&a.0.bytes));
    all
}

/// `32 times the same elements`.
pub(crate) fn often(combined: Combined) -> Option<String> {
    let same = combined.same.filter(|&n| n > OFTEN)?;
    Some(format!("{same:.0} times the same elements"))
}

/// The copies, each with its atomic operations.
pub(crate) fn places(p: &Prediction) -> Vec<(Span, String)> {
    let text = |(place, combined): (&Place, Combined)| {
        let (of, bytes) = (&place.of, place.bytes);
        let text = match combined.same {
            Some(same) if same > OFTEN => {
                format!(
                    "{same:.0} atomic operations on each element of `{of}`, which follow each other; {bytes:.0} bytes in all"
                )
            }
            Some(_) => format!("atomic operations on {bytes:.0} bytes of `{of}`"),
            None => format!("atomic operations on {bytes:.0} bytes of `{of}`, in elements that data say"),
        };
        (place.span, text)
    };
    all(p).into_iter().map(text).collect()
}

/// What combines less often.
pub(crate) fn ways_out(p: &Prediction) -> Vec<WayOut> {
    let text = |(place, combined): (&Place, Combined)| match combined.same {
        Some(same) if same > OFTEN => Some(format!(
            "combine more of `{}` in a block first (larger windows, a loop, a reduction in registers or shared memory), and store it with one `copy .. add`",
            place.of
        )),
        Some(_) => None,
        None => Some(format!(
            "if elements of `{}` are often the same, combine them in shared memory first (`let s = smem ..`, `copy .. -> s[..] add`), and store `s` once",
            place.of
        )),
    };
    let mut ways: Vec<WayOut> = all(p).into_iter().filter_map(text).map(WayOut::by_hand).collect();
    ways.dedup();
    ways
}

/// Stores to which several blocks along an axis of the grid add, although the launch has enough blocks without it.
pub(super) fn added_together(k: &Kernel, p: &Prediction) -> Vec<(Span, String, String)> {
    let mut out = Vec::new();
    k.walk(k.body, &mut |k, _, s| {
        let StmtData::Copy { dst, attrs, .. } = &k.stmts[s] else { return };
        let Some(view) = resolve_view(k, *dst).filter(|view| attrs.reduce.is_some() && k.tensor_ty(view.base).is_some())
        else {
            return;
        };
        let reads = |v: Value| view.dims.iter().flat_map(ViewDim::starts).any(|&e| depends_on(k, e, v));
        for axis in k.grid.iter().filter(|axis| !reads(axis.index)) {
            let Some(count) = k.as_int(axis.extent).filter(|&n| n > 1) else { continue };
            let waves = p.waves / count as f64;
            if waves < 1.0 {
                continue;
            }
            let (index, tensor) = (&k.values[axis.index].name, &k.values[view.base].name);
            out.push((
                k.stmt_spans[s],
                format!("{count} blocks along `{index}` add to the same elements of `{tensor}`"),
                format!(
                    "fewer blocks along `{index}`: without it the launch still has {waves:.1} waves, and stores `{tensor}` once"
                ),
            ));
        }
    });
    out
}

/// Tensors that pass between memory and the cache again for each operation on an element, because the cache does not hold
/// them until the next one; and what has them pass less often.
pub(crate) fn again(p: &Prediction) -> (Vec<String>, Vec<WayOut>) {
    let (mut notes, mut ways) = (Vec::new(), Vec::new());
    for (place, combined) in all(p) {
        let Some(times) = combined.same.map(|same| same * combined.missed).filter(|&times| times > AGAIN) else {
            continue;
        };
        let of = &place.of;
        notes.push(format!(
            "`{of}` is read and written {times:.0} times: between two operations on an element more is moved than the second-level cache holds"
        ));
        ways.push(WayOut::by_hand(format!(
            "blocks that combine with the same elements of `{of}` one after the other: the axis of the grid along which they differ in front of the others"
        )));
        ways.push(WayOut::by_hand(format!(
            "fewer blocks that combine with the same elements of `{of}`, each with a longer loop"
        )));
    }
    notes.dedup();
    (notes, ways)
}
