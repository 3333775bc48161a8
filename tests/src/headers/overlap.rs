//! Whether two tensors overlap: headers and the library must agree.

use super::folder::{Folder, exists};
use crate::golden;
use std::fmt::Write as _;
use tilec::overlap::{Place, may_overlap};
use tilec_ir::types::Elem;

/// Element types: of bytes, of several, and of less than one.
const ELEMS: [Elem; 3] = [Elem::F16, Elem::U8, Elem::U4];
/// Shapes and strides, by rank.
const LAYOUTS: [(&[u64], &[u64]); 11] = [
    (&[4, 8], &[16, 1]),
    (&[4, 8], &[8, 1]),
    (&[8, 4], &[1, 16]),
    (&[3, 5], &[0, 1]),
    (&[4, 1], &[16, 1]),
    (&[1, 8], &[999, 1]),
    (&[0, 8], &[16, 1]),
    (&[2, 3, 4], &[48, 16, 1]),
    (&[3, 3], &[5, 1]),
    (&[7], &[1]),
    (&[], &[]),
];

/// All pairs of layouts, at small distances.
///
/// # Errors
/// The header gives another answer for a pair.
pub(super) fn check() -> Result<(), String> {
    if !exists("gcc") {
        golden::skip("C headers", "there is no gcc");
        return Ok(());
    }
    let (mut expected, mut rows) = (String::new(), String::new());
    let numbers = |list: &[u64]| list.iter().map(u64::to_string).chain(["0".to_owned()]).collect::<Vec<_>>().join(", ");
    for elem in ELEMS {
        for (one, other) in LAYOUTS.iter().flat_map(|a| LAYOUTS.iter().map(move |b| (a, b))) {
            for gap in [0, 1, 2, 7, 8, 9, 14, 15, 16, 18, 24, 31, 32, 48, 63, 80, 130] {
                let place = |at, (shape, strides): (&'static [u64], &'static [u64])| Place {
                    address: at,
                    elem,
                    shape,
                    strides,
                };
                let meet = may_overlap(&place(4096, *one), &place(4096 + gap, *other));
                let _ = writeln!(expected, "{}", u8::from(meet));
                let of = |(shape, strides): (&[u64], &[u64])| {
                    format!("{}, {{{}}}, {{{}}}", shape.len(), numbers(shape), numbers(strides))
                };
                let _ = writeln!(rows, "    {{{}, {gap}, {}, {}}},", elem.bits(), of(*one), of(*other));
            }
        }
    }
    let main = format!(
        "#include \"driver.h\"\n#include \"tilec_bundle.h\"\n#include <stdio.h>\n
const test_entry test_entries[] = {{{{0, NULL, NULL}}}};
static const struct {{ int bits; uint64_t gap; int modes; int64_t shape[4]; int64_t strides[4]; int modes2; int64_t shape2[4]; int64_t strides2[4]; }} rows[] = {{
{rows}}};
int main(void)
{{
    size_t i;
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {{
        tilec_tensor a, b;
        memset(&a, 0, sizeof a);
        memset(&b, 0, sizeof b);
        a.address = 4096;
        b.address = 4096 + rows[i].gap;
        a.modes = rows[i].modes;
        b.modes = rows[i].modes2;
        memcpy(a.shape, rows[i].shape, sizeof rows[i].shape);
        memcpy(b.shape, rows[i].shape2, sizeof rows[i].shape);
        memcpy(a.strides, rows[i].strides, sizeof rows[i].strides);
        memcpy(b.strides, rows[i].strides2, sizeof rows[i].strides);
        if (!tilec_extent(&a, rows[i].bits) || !tilec_extent(&b, rows[i].bits))
            return 1;
        printf(\"%d\\n\", tilec_meet(&a, &b));
        if (tilec_meet(&a, &b) != tilec_meet(&b, &a))
            return 2;
    }}
    return 0;
}}
"
    );
    let folder = Folder::new("overlap")?;
    folder.write("tilec_bundle.h", &tilec::c_header::bundle_reader())?;
    let found = folder.run_c(&folder.write("main.c", &main)?, None)?;
    if found != expected {
        return Err(golden::differs(&expected, &found));
    }
    Ok(())
}
