//! Bounds of windows of tiles in shared memory and registers: accesses to these are not checked at run time.

use crate::codes;
use crate::diag::{Diagnostic, Span, counted};
use crate::entities::Value;
use crate::index::Interval;
use crate::kernel::{Kernel, ValueDef};

/// The end of the name of a buffer through which windows of a register tile go.
pub const OF_WINDOWS: &str = "_windows";

/// The name of a tile in the program.
fn written_name(k: &Kernel, tile: Value) -> &str {
    let name = &k.values[tile].name;
    let of = name.strip_suffix(OF_WINDOWS).filter(|of| k.values.values().any(|value| value.name == **of));
    of.unwrap_or(name)
}

/// A window along one dimension of a tile, in elements.
#[derive(Copy, Clone, Debug)]
pub struct Reach {
    /// The least and the greatest start.
    pub start: Interval,
    /// Elements of the window.
    pub extent: u64,
    /// Where the window ends at the latest, if it has an end of its own.
    pub end: Option<i128>,
}

impl Reach {
    /// E0704, if the window may have an element in front of dimension `d` of `tile`, or past its `own` elements.
    pub fn error(self, k: &Kernel, (tile, d): (Value, usize), own: i128, at: Span) -> Option<Diagnostic> {
        let Interval { lo: first, hi: last } = self.start;
        let extent = i128::from(self.extent);
        let past = last + extent;
        let end = self.end.map_or(past, |end| end.min(past));
        if first >= 0 && end <= own {
            return None;
        }
        let leaves = if first == last && end == past { "leaves" } else { "may leave" };
        let (from, to) = if first < 0 { (first, first + extent) } else { (last, end) };
        let name = written_name(k, tile);
        let unknown = first <= i128::from(i32::MIN) || last >= i128::from(i32::MAX) - 1;
        let message = if unknown {
            let elements = counted(usize::try_from(self.extent).unwrap_or(usize::MAX), "element");
            format!(
                "a window of {elements} that begins at any number may leave `{name}`, whose dimension {d} has extent {own}"
            )
        } else {
            format!("a window from {from} to {to} {leaves} `{name}`, whose dimension {d} has extent {own}")
        };
        let memory = match k.values[tile].def {
            _ if name != k.values[tile].name => "tiles have",
            ValueDef::Var(_) => "registers have",
            _ => "shared memory has",
        };
        let error = Diagnostic::error(codes::OUT_OF_BOUNDS, at, message);
        let error = error.with_note(format!("{memory} no bounds checks: the window must be inside"));
        let last = own - extent;
        Some(match unknown && last >= 0 {
            true => error.with_note(format!("bound where it begins: `max(0, min(.., {last}))`")),
            false => error,
        })
    }
}
