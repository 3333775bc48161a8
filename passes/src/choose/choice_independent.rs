//! Errors that do not depend on a choice: types, given extents, products that the target lacks. They are reported
//! before the search, with the names in the source, because the search only knows machine limits.

use super::parameters::{Auto, set};
use crate::Cx;
use crate::narrow_products::ANY_TILE;
use crate::select_mma::{available, best_atom};
use crate::specialize::{bad_extents, fold, pad, substitute};
use tilec_ir::atoms::Inputs;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported, Sink};
use tilec_ir::entities::Value;
use tilec_ir::kernel::{ConstParam, ConstValue, ExprData, Kernel, ValueDef};
use tilec_ir::types::ElemRef;
use tilec_ir::typing::type_of;

/// The known values of parameters.
fn values(k: &Kernel) -> Vec<(Value, ConstValue)> {
    let mut known: Vec<(Value, ConstValue)> = Vec::new();
    for &p in &k.const_params {
        let ValueDef::ConstParam(ConstParam { default: Some(value), .. }) = k.values[p].def else { continue };
        match value {
            ConstValue::Auto { .. } => {}
            ConstValue::Same(earlier) => {
                let of = known.iter().find(|(q, _)| *q == earlier).map(|(_, value)| *value);
                known.extend(of.map(|value| (p, value)));
            }
            value => known.push((p, value)),
        }
    }
    known
}

/// A copy of the kernel with the known values bound.
pub(super) fn bound(k: &Kernel) -> Kernel {
    let mut k = k.clone();
    let values = values(&k);
    substitute(&mut k, &values);
    fold(&mut k);
    k
}

/// Reports errors that occur for any choice.
pub(super) fn check(k: &Kernel, cx: &mut Cx<'_>, autos: &[Auto]) -> Result<(), Reported> {
    let larger = made_larger(k, cx, autos);
    let k = bound(k);
    debug_assert!(!autos.is_empty(), "there is something to choose");
    cx.verify(&k)?;
    let mut result = Ok(());
    let stay = pad::of_products(&k, cx.options.target);
    let extents = if larger { Vec::new() } else { bad_extents(&k, cx.options.target, &stay) };
    for d in extents.into_iter().chain(no_product(&k, cx)) {
        result = Err(cx.report(d));
    }
    result
}

/// Reports extents that exceed the limits of a tile for any choice, because they are multiples of parameters.
fn made_larger(k: &Kernel, cx: &Cx<'_>, autos: &[Auto]) -> bool {
    let mut whole = k.clone();
    for auto in autos {
        set(&mut whole, auto.value, ConstValue::Int(auto.role.plain()));
    }
    let mut whole = bound(&whole);
    let stay = pad::of_products(&whole, cx.options.target);
    pad::enlarge(&mut whole, pad::Windows::Any, &stay).is_ok()
}

/// Products that no instruction of the target can compute.
fn no_product(k: &Kernel, cx: &Cx<'_>) -> Vec<Diagnostic> {
    let target = cx.options.target;
    let known = |e| match type_of(k, e).ok().and_then(|t| t.elem()) {
        Some(ElemRef::Known(elem)) => Some(elem),
        _ => None,
    };
    let mut wrong = Vec::new();
    for e in
        crate::analysis::uses::all_stmts(k, k.body).into_iter().flat_map(|s| crate::analysis::uses::stmt_exprs(k, s))
    {
        let ExprData::Mma(m) = &k.exprs[e] else { continue };
        let (Some(a), Some(b), Some(acc), None) = (known(m.a), known(m.b), known(m.c), m.atom) else { continue };
        let inputs = Inputs { a, b };
        if best_atom(target, cx.enabled, (inputs, acc), ANY_TILE).is_none() {
            let message =
                format!("no product of {inputs} inputs with {} accumulation on {}", acc.name(), target.name());
            wrong.push(Diagnostic::error(codes::NO_ATOM, k.expr_spans[e], message).with_note(available(target)));
        }
    }
    wrong
}

/// Reports errors that occur only for the chosen values, with parameter names instead of their values.
pub(super) fn name_chosen(k: &Kernel, cx: &mut Cx<'_>, autos: &[Auto]) -> Result<(), Reported> {
    let mut sink = Sink::new();
    let Err(reported) = tilec_ir::verify::verify(&bound(k), &mut sink) else { return Ok(()) };
    let values = values(k);
    for mut d in sink.into_diagnostics() {
        let mentioned = |x: i64| d.message.split(|c: char| !c.is_ascii_digit()).any(|word| word == x.to_string());
        let chosen: Vec<String> = autos
            .iter()
            .filter_map(|auto| match values.iter().find(|(p, _)| *p == auto.value) {
                Some((p, ConstValue::Int(x))) if mentioned(*x) => Some(format!("`{}` = {x}", k.values[*p].name)),
                _ => None,
            })
            .collect();
        if !chosen.is_empty() {
            let note = format!(
                "chosen: {}; extents that must be equal are one parameter, or one is the other's default",
                chosen.join(", ")
            );
            d = d.with_note(note);
        }
        cx.sink.push(d);
    }
    Err(reported)
}
