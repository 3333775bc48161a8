//! Placement of variables in a state space.

use crate::parse::error::Result;
use crate::parse::raw::{RawStmt, RawVar};

/// The address of a variable placed after `at`, in a space of `limit` bytes.
pub(super) fn place(at: &mut u64, var: &RawVar<'_>, limit: u64) -> Result<u64> {
    let bytes = var.bytes.unwrap_or(0);
    let start = at.checked_next_multiple_of(var.align);
    let end = start.and_then(|s| s.checked_add(bytes)).filter(|e| *e <= limit);
    match (start, end) {
        (Some(start), Some(end)) => {
            *at = end;
            Ok(start)
        }
        _ => Err(var.pos.error(format!("`{}` does not fit: the limit of its space is {limit} bytes", var.name))),
    }
}

/// The number of a target: 90 of `sm_90a`.
pub(super) fn target_number(target: &str) -> u32 {
    let digits = target.trim_start_matches("sm_").trim_end_matches(|c: char| c.is_ascii_alphabetic());
    digits.parse().unwrap_or(u32::MAX)
}

/// The variables declared in a body.
pub(super) fn variables<'b, 'a>(body: &'b [RawStmt<'a>]) -> impl Iterator<Item = &'b RawVar<'a>> {
    body.iter().filter_map(|s| match s {
        RawStmt::Var(var) => Some(var),
        _ => None,
    })
}
