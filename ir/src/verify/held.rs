//! Rule 36: elements that a copy takes from another tile are those of its window.

use crate::attributes::HeldElements;
use crate::codes;
use crate::diag::Diagnostic;
use crate::entities::{Block, Stmt};
use crate::held_elements::{PlainLoad, is_only_read};
use crate::kernel::{ExprData, Kernel, StmtData};
use crate::verify::context::Cx;

pub(super) fn check(cx: &mut Cx<'_, '_>) {
    let k = cx.k;
    let mut found: Vec<(Block, Stmt)> = Vec::new();
    k.walk(k.body, &mut |_, block, s| {
        if matches!(&k.stmts[s], StmtData::Copy { attrs, .. } if !attrs.held.is_empty()) {
            found.push((block, s));
        }
    });
    for (block, s) in found {
        let StmtData::Copy { attrs, .. } = &k.stmts[s] else { continue };
        if let Some(why) = attrs.held.iter().find_map(|held| refused(k, block, s, held)) {
            let span = k.stmt_spans[s];
            let d = Diagnostic::error(codes::BAD_COPY, span, why).with_note(
                "`copy X[i - 1.., 0..] -> up held x (-1, 0)` follows `copy X[i.., 0..] -> x`, with tiles of one type and layout; without `held` all elements are loaded",
            );
            cx.report(d.with_left_out(k.clause(span, "held")));
        }
    }
}

/// Why a copy cannot take elements from this tile.
fn refused(k: &Kernel, block: Block, s: Stmt, held: &HeldElements) -> Option<String> {
    let ExprData::Ref(tile) = k.exprs[held.tile] else { return Some("`held` names a register tile".to_owned()) };
    let name = &k.values[tile].name;
    let Some(own) = PlainLoad::of(k, s) else {
        return Some("`held` is for copies that load a window of a tensor into a register tile as it is".to_owned());
    };
    if !is_only_read(k, own.view.base) {
        return Some(format!("`held`: the kernel writes `{}`", k.values[own.view.base].name));
    }
    let to = k.blocks[block].iter().position(|&other| other == s)?;
    let before = (0..to).rev().find_map(|at| {
        let load = PlainLoad::of(k, k.blocks[block][at]).filter(|load| load.tile == tile)?;
        Some((at, load))
    });
    let Some((from, before)) = before else { return Some(format!("no copy before this one loads all of `{name}`")) };
    if !before.lasts(k, block, from, to) {
        return Some(format!("`{name}`, or where its window begins, changes before this copy"));
    }
    let alike = k.tile_ty(tile).zip(k.tile_ty(own.tile)).is_some_and(|(a, b)| {
        let shapes = k.const_shape(&a.shape).zip(k.const_shape(&b.shape));
        a.elem == b.elem
            && a.reg_layout.is_some()
            && a.reg_layout == b.reg_layout
            && shapes.is_some_and(|(a, b)| a == b)
    });
    if !alike {
        return Some(format!("`{name}` and `{}` have no common layout", k.values[own.tile].name));
    }
    match own.offset_in(k, &before) {
        Some(offset) if offset == held.offset => None,
        Some(offset) => {
            let numbers: Vec<String> = offset.iter().map(ToString::to_string).collect();
            Some(format!("the elements are at ({}) from those of `{name}`", numbers.join(", ")))
        }
        None => Some(format!("where the elements are in `{name}` is not known before the launch")),
    }
}
