//! Products without tensor cores: the target, or the types of the same size, with which they have some.

use super::code::Code;
use super::way_out::{By, WayOut};
use tilec_ir::atoms::{Atom, Inputs};
use tilec_ir::entities::Expr;
use tilec_ir::kernel::{ExprData, Kernel, Mma, StmtData};
use tilec_ir::target::Target;
use tilec_ir::types::{Elem, ElemRef};
use tilec_ir::typing::type_of;

/// The products of a kernel.
pub(crate) fn products(k: &Kernel) -> Vec<&Mma> {
    let of = |s| match k.stmts[s] {
        StmtData::Assign { src, .. } => match &k.exprs[src] {
            ExprData::Mma(mma) => Some(mma),
            _ => None,
        },
        _ => None,
    };
    k.statements().into_iter().filter_map(of).collect()
}

/// The element type of an expression.
fn elem(k: &Kernel, e: Expr) -> Option<Elem> {
    match type_of(k, e).ok()?.elem()? {
        ElemRef::Known(elem) => Some(elem),
        ElemRef::Param(_) => None,
    }
}

/// The first target whose tensor cores have these types.
fn first(inputs: Inputs, acc: Elem) -> Option<Target> {
    let rows = Atom::all().map(Atom::row).filter(|row| row.tensor_core && row.types_for(inputs, acc).is_some());
    rows.map(|row| row.first).min_by_key(|target| target.cc())
}

/// What has products run on tensor cores.
pub(super) fn ways_out(code: &Code<'_>) -> Vec<WayOut> {
    let k = code.tile.specialized;
    let mut ways: Vec<WayOut> = Vec::new();
    for mma in products(k) {
        let (Some(a), Some(b), Some(acc)) = (elem(k, mma.a), elem(k, mma.b), elem(k, mma.c)) else { continue };
        let way = match first(Inputs { a, b }, acc) {
            Some(target) if code.tile.target.at_least(target) => None,
            Some(target) => Some(WayOut::by_hand(format!(
                "compile for {} or later: its tensor cores have products of {}",
                target.name(),
                Inputs { a, b }
            ))),
            None => other_type(code.tile.target, (a, b), acc),
        };
        ways.extend(way.filter(|way| !ways.contains(way)));
    }
    ways
}

/// Inputs of another type of the same size that tensor cores have.
fn other_type(target: Target, (a, b): (Elem, Elem), acc: Elem) -> Option<WayOut> {
    let fits = |other: &Elem| *other != a && other.bits() == a.bits() && other.is_float() && a.is_float();
    let other = Elem::ALL.iter().copied().filter(fits).find_map(|to| Some((to, first(Inputs { a: to, b: to }, acc)?)));
    let (to, from_on) = other.filter(|_| a == b)?;
    let (was, is) = (a.name(), to.name());
    let text = format!(
        "declare the operands as `{is}` in place of `{was}`, tensors and buffers: products of {is} run on tensor cores from {} on, and round their operands to {is}",
        from_on.name()
    );
    Some(match target.at_least(from_on) {
        true => WayOut::new(text, By::Elements(a, to)),
        false => WayOut::by_hand(text),
    })
}
