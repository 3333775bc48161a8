//! Extents of tiles that the source has as numbers: which of the numbers belong together, and whether results depend on
//! them.
//!
//! Such a number is a compile-time parameter without a name. Whether another value computes the same is decided as for
//! parameters: the kernel with a parameter in place of the numbers is checked.

mod agreement;
#[cfg(test)]
mod tests;

use super::free_parameters::is_free;
use super::parameters::{Role, role};
use crate::Options;
use agreement::{Agreement, Class, Key, is_derived};
use tilec_ir::diag::Span;
use tilec_ir::entities::Value;
use tilec_ir::kernel::{ConstKind, ConstParam, ConstValue, ExprData, Kernel, ValueDef};
use tilec_ir::ops::Op;
use tilec_ir::print::print_expr;
use tilec_ir::typing::same_expr;

/// The name of the parameter.
const PARAMETER: &str = "extent";

/// An extent that the source has as a number, in one or more places: another number there computes the same.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LiteralExtent {
    /// The number.
    pub value: i64,
    /// Its places in the source.
    pub places: Vec<Span>,
    /// The names of the tiles that have it, each with its dimension.
    pub tiles: Vec<(String, usize)>,
    /// What has to be a multiple of it, as text: otherwise elements past an end change results.
    pub multiples: Vec<String>,
    /// What it is used for.
    pub role: Option<Role>,
}

/// The extents of a kernel (as parsed) that another number could be given.
pub fn literal_extents(k: &Kernel, options: &Options) -> Vec<LiteralExtent> {
    Agreement::of(k).classes().into_iter().filter_map(|class| free(k, options, &class)).collect()
}

fn free(k: &Kernel, options: &Options, class: &Class) -> Option<LiteralExtent> {
    let value = value(k, class)?;
    let (named, parameter) = with_parameter(k, class, value);
    let role = role(&named, parameter);
    let mut multiples = Vec::new();
    if !is_free(&named, options, parameter) {
        let mut whole = named;
        for &covered in &class.covered {
            let known = |&e: &_| same_expr(k, e, covered);
            if k.as_int(covered).is_none() && !class.covered.iter().take_while(|&&e| e != covered).any(known) {
                divides(&mut whole, parameter, covered);
                multiples.push(print_expr(k, covered));
            }
        }
        if multiples.is_empty() || !is_free(&whole, options, parameter) {
            return None;
        }
    }
    let tiles: Vec<(String, usize)> = class
        .keys
        .iter()
        .filter_map(|key| match *key {
            // Tiles that the parser makes have no name in the source.
            Key::Tile(v, d) if k.tile_ty(v).is_none_or(|tile| is_derived(k, tile.shape[d])) => None,
            Key::Tile(v, d) => Some((k.values[v].name.clone(), d)),
            Key::Number(_) | Key::Window(..) => None,
        })
        .collect();
    let mut places = class.places.clone();
    places.sort_unstable_by_key(|span| span.start);
    Some(LiteralExtent { value, places, tiles, multiples, role })
}

/// The value of the numbers; `None`: they are not the same.
fn value(k: &Kernel, class: &Class) -> Option<i64> {
    let of = |span: &Span| k.exprs.iter().find(|(e, _)| k.expr_spans[*e] == *span).and_then(|(e, _)| k.as_int(e));
    let values: Option<Vec<i64>> = class.places.iter().map(of).collect();
    let values = values?;
    let first = *values.first()?;
    (first > 1 && values.iter().all(|&n| n == first)).then_some(first)
}

/// The kernel with a parameter in place of the numbers.
fn with_parameter(k: &Kernel, class: &Class, value: i64) -> (Kernel, Value) {
    let mut named = k.clone();
    let param = ConstParam { kind: ConstKind::Int, default: Some(ConstValue::Int(value)) };
    let span = class.places.first().copied().unwrap_or_default();
    let parameter = named.value(PARAMETER, span, ValueDef::ConstParam(param));
    named.const_params.push(parameter);
    for e in k.exprs.keys() {
        if matches!(k.exprs[e], ExprData::Int(_)) && class.places.contains(&k.expr_spans[e]) {
            named.exprs[e] = ExprData::Ref(parameter);
        }
    }
    for key in &class.keys {
        let Key::Tile(v, d) = *key else { continue };
        if k.tile_ty(v).is_some_and(|tile| is_derived(k, tile.shape[d])) {
            let own = named.value_ref(parameter, Span::default());
            if let Some(tile) = named.tile_ty_mut(v) {
                tile.shape[d] = own;
            }
        }
    }
    (named, parameter)
}

/// Adds the precondition that something is a multiple of a parameter.
fn divides(k: &mut Kernel, parameter: Value, covered: tilec_ir::entities::Expr) {
    let span = Span::default();
    let (of, by, zero) = (k.copy_expr(covered), k.value_ref(parameter, span), k.int(0, span));
    let rest = k.expr(ExprData::Op { op: Op::Rem, args: vec![of, by] }, span);
    let holds = k.expr(ExprData::Op { op: Op::Eq, args: vec![rest, zero] }, span);
    k.requires.push(holds);
}
