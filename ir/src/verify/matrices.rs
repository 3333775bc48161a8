//! Copies of 8x8 matrices (`matrix`): part of rule 13.

use crate::codes;
use crate::diag::Diagnostic;
use crate::entities::{Expr, Stmt};
use crate::kernel::{CopyAttrs, Mechanism};
use crate::space::Space;
use crate::types::{Elem, ElemRef};
use crate::verify::context::Cx;

/// Bits of an element that `stmatrix` writes.
const STORED_BITS: u32 = 16;

/// `ldmatrix` (PTX ISA 9.7.14.5.15) reads rows of 16 bytes of shared memory into registers of 32 bits, `stmatrix` (9.7.14.5.16) writes
/// pairs of 16 bits. Which layouts fit is decided where layouts are.
pub(super) fn check(
    cx: &mut Cx<'_, '_>,
    s: Stmt,
    src: Expr,
    dst: Expr,
    attrs: &CopyAttrs,
    to: Space,
    sources: &[(Expr, Space)],
) {
    let k = cx.k;
    let elems = [src, dst].map(|e| cx.types.type_of(e).ok().and_then(|t| t.elem()));
    let from = cx.types.resolve_view(src).map(|from| from.space(k));
    let mut bad = |message: String, note: &str| {
        cx.report(Diagnostic::error(codes::BAD_COPY, k.stmt_spans[s], message).with_note(note));
    };
    let plain = CopyAttrs { mechanism: Mechanism::Registers, vec: None, ..attrs.clone() };
    if plain != CopyAttrs::default() {
        bad(
            "`matrix` can be combined only with `vec`".to_owned(),
            "the instruction says which thread moves what, whole rows at a time, without bounds",
        );
        return;
    }
    let loads = to.in_registers() && from.is_some_and(Space::is_of_block);
    let stores = to.is_of_block() && !sources.is_empty() && sources.iter().all(|&(_, space)| space.in_registers());
    if !loads && !stores {
        bad(
            "`matrix` is for copies between shared memory and registers".to_owned(),
            "it reads a window of shared memory into a register tile, or writes one to it: `copy a[0.., kk..] -> f matrix`",
        );
        return;
    }
    let [Some(ElemRef::Known(from)), Some(ElemRef::Known(into))] = elems else { return };
    if loads && from != into {
        bad(
            format!("`matrix` cannot convert {} to {}", from.name(), into.name()),
            "copy without `matrix`, which converts in registers",
        );
    } else if loads && from.bits() > STORED_BITS && from != Elem::TF32 {
        bad(
            format!("`matrix` does not load elements of {}", from.name()),
            "its rows are of 8, 16 bits or tf32; without `matrix` each thread loads its own elements",
        );
    } else if stores && into.bits() != STORED_BITS {
        bad(
            format!("`matrix` does not store elements of {}", into.name()),
            "it stores elements of 16 bits; without `matrix` each thread stores its own elements",
        );
    }
}
