//! Tables in constant memory: rule 5.

use crate::codes;
use crate::diag::{Diagnostic, Span};
use crate::fix_locations::FixLocation;
use crate::kernel::ValueDef;
use crate::literal::Literal;
use crate::numerics::cast::int_format;
use crate::types::{Elem, ElemClass, ElemRef, TableTy};
use crate::verify::context::Cx;

/// Bytes of constant memory that a module may have (PTX ISA 5.1.3).
const MAX_BYTES: u64 = 64 << 10;

/// Bytes of an element in the type in which threads compute with it.
fn element_bytes(elem: Elem) -> u64 {
    if elem == Elem::F64 { 8 } else { 4 }
}

/// Checks a single table.
pub(super) fn check(cx: &mut Cx<'_, '_>, name: &str, span: Span, t: &TableTy) {
    let k = cx.k;
    let mut bad = |message: String, note: &str| {
        cx.report(Diagnostic::error(codes::BAD_TABLE, span, message).with_note(note));
    };
    if t.values.is_empty() {
        return bad(format!("table `{name}` has no elements"), "write its numbers: `= (0.0, 0.5, 1.0, 2.0)`");
    }
    // A parameter's value is checked once it is known.
    let ElemRef::Known(elem) = t.elem else { return };
    if elem.class() == ElemClass::Bool || elem.is_wide() {
        bad(format!("a table of {}", elem.name()), "tables hold floats, and whole numbers of up to 32 bits");
    } else if let Some(i) = t.values.iter().position(|x| x.value(elem).is_none()) {
        let message = format!("element {i} of table `{name}` is not a number of type {}", elem.name());
        let note = "fractions are rounded to nearest, but stay finite; integers are in the range of their type";
        let d = Diagnostic::error(codes::BAD_TABLE, span, message).with_note(note);
        let near = match (int_format(elem), t.values[i]) {
            (Some(format), Literal::Int(x)) => Some(x.clamp(format.min(), format.max())),
            _ => None,
        };
        cx.report(match near.zip(k.spots_behind(span, FixLocation::Element).nth(i)) {
            Some((near, at)) => d.with_fix(at, near.to_string()),
            None => d,
        });
    }
}

/// The bytes of all tables of a kernel.
pub(super) fn total_size(cx: &mut Cx<'_, '_>) {
    let k = cx.k;
    let mut bytes = 0;
    for &v in &k.params {
        let ValueDef::Table(t) = &k.values[v].def else { continue };
        let ElemRef::Known(elem) = t.elem else { continue };
        // Followed by a zero.
        bytes += (t.values.len() as u64 + 1) * element_bytes(elem);
        if bytes > MAX_BYTES {
            let message = format!("the tables up to `{}` take {bytes} bytes", k.values[v].name);
            let d = Diagnostic::error(codes::BAD_TABLE, k.values[v].span, message);
            cx.report(d.with_note(format!("constant memory has {MAX_BYTES}; larger tables are tensors")));
            return;
        }
    }
}
