//! Errors about the machine's limits name the values that were chosen for `auto` parameters.

use super::variants::listed;
use tilec_ir::codes;
use tilec_ir::diag::{Code, Severity, Sink};
use tilec_ir::kernel::ConstValue;
use tilec_passes::caller::Caller;

/// Errors that other values of parameters may avoid.
const OF_VALUES: [Code; 8] = [
    codes::TILE_EXTENT,
    codes::NO_ATOM,
    codes::WARP_TILE,
    codes::THREADS,
    codes::NO_LAYOUT,
    codes::SMEM_LIMIT,
    codes::TOO_MANY_REGISTERS,
    codes::REGISTER_LIMIT,
];

/// Adds the chosen values to such errors.
pub(super) fn name_in_errors(sink: Sink, chosen: &[(String, ConstValue)], caller: Caller) -> Sink {
    let mut named = Sink::new();
    for mut d in sink.into_diagnostics() {
        if d.severity == Severity::Error && OF_VALUES.contains(&d.code) && !chosen.is_empty() {
            d = d.with_note(format!(
                "`auto` chose {}: give other values with {}; the rest is chosen around them",
                listed(chosen),
                caller.defines()
            ));
        }
        named.push(d);
    }
    named
}
