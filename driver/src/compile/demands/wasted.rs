//! What accesses leave unused of the sectors that they touch, as a share of what a launch uses.

use super::code::Code;
use crate::compile::attribution;
use tilec_ir::target::SECTOR_BYTES;
use tilec_passes::choose::{Kept, Place, Prediction, launched, runs};
use tilec_ptx::report::CopyReport;

/// The bytes that an access moves and does not use, relative to the bytes that all accesses of a launch use. `None`: the
/// traffic is not predicted.
pub(super) fn share(code: &Code<'_>, c: &CopyReport) -> Option<f64> {
    let prediction = code.tile.prediction.filter(|p| p.unknown.is_none())?;
    let global = || prediction.places.iter().filter(|place| place.global);
    let is_own = |place: &&Place| place.span == c.span && place.of == c.tensor;
    let own = global().filter(is_own).map(|place| place.bytes).reduce(|all, bytes| all + bytes);
    let used = own.or_else(|| by_code(code, prediction, c))?;
    let all: f64 = global().map(|place| place.bytes).sum();
    // What the next iterations use of a sector is not unused.
    let kept = |place: &Place| place.kept != Kept::Nowhere;
    let times = match global().find(is_own) {
        Some(place) if kept(place) => 1.0,
        Some(place) => 1.0 / attribution::used(c, place),
        None => 1.0 / c.sector_use,
    };
    (c.sector_use > 0.0 && all > 0.0).then(|| used * (times - 1.0) / all)
}

/// The bytes of a launch that the accesses of all warps use: windows in expressions are no copies of the model.
fn by_code(code: &Code<'_>, p: &Prediction, c: &CopyReport) -> Option<f64> {
    let k = code.tile.kernel;
    let all = runs(k, &p.sizes);
    let own = all.iter().filter(|(s, _)| k.stmt_spans[**s] == c.span).map(|(_, runs)| runs.warps);
    let warps = own.reduce(f64::max)?;
    let bytes = f64::from(c.accesses) * f64::from(c.sectors * SECTOR_BYTES) * c.sector_use;
    Some(launched(k, &p.sizes)? * warps * bytes)
}
