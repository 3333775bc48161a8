//! `choose`: values for the compile-time parameters that are `auto`.
//!
//! What a parameter is used for says which values it may have: extents of a product's tiles, of warp tiles, of other tiles;
//! stages; rasterisation; threads. All combinations of powers of two are held against the rules that later passes have, and
//! for what is left the model (`choose::model`) predicts the time on the card that stands for the target, for the sizes that
//! `--for` names or large ones. The fastest is taken. Parameters that the command line gives keep their values, and the rest is
//! chosen around them.
//!
//! Needs: parsed IR. Leaves: every parameter with a value as its default: what was chosen, and what the command line gave. Switched
//! off: tiles of 64 x 64 x 32 in warps of 32 x 32, one stage, no rasterisation, no `k_warps`; 64 along each dimension of other
//! tiles.

mod asked;
mod block;
mod cards;
mod depends;
#[cfg(test)]
mod fit;
mod independent;
mod model;
mod other;
mod predict;
mod ranked;
mod rule;
mod search;
mod several;
#[cfg(test)]
mod tests;
mod whole;
mod work;

pub use cards::{CARDS, Card, Rates};
pub use model::Terms;
pub(crate) use model::sharing;
pub use other::with_other_values;
pub use predict::{Choice, Lost, Prediction, Predictor, RunnerUp};
pub use ranked::{Candidates, Ranked, candidates};
pub use rule::{AtLeast, Branch, rule};

use crate::analysis::uses::mentions;
use crate::specialize::given;
use crate::{Cx, Options};
use block::Illegal;
use search::{Auto, Search};
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported, Sink};
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ConstKind, ConstValue, Kernel, ValueDef};

/// What an `auto` parameter is used for, in the order in which values are tried.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// Rows of a product.
    Rows,
    /// Columns of a product.
    Cols,
    /// Groups of warps that share the reduction.
    Groups,
    /// Rows of a warp tile.
    WarpRows,
    /// Columns of a warp tile.
    WarpCols,
    /// Depth of a product.
    Depth,
    /// An extent of a tile that no product has.
    Extent,
    Threads,
    Stages,
    Raster,
}

impl Role {
    /// The plain value.
    fn plain(self) -> i64 {
        match self {
            Role::Rows | Role::Cols | Role::Extent => 64,
            Role::Depth | Role::WarpRows | Role::WarpCols => 32,
            Role::Groups | Role::Stages | Role::Raster => 1,
            Role::Threads => 128,
        }
    }
}

pub(crate) fn run(k: &mut Kernel, cx: &mut Cx<'_>) -> Result<(), Reported> {
    decide(k, cx).map(|_| ())
}

/// The pass alone: afterwards it has nothing left to do. Gives back what it chose and why, if the model decided something.
///
/// # Errors
/// `Err` means that the sink holds at least one error.
pub fn apply(k: &mut Kernel, options: &Options, sink: &mut Sink) -> Result<Option<Choice>, Reported> {
    let enabled = options.is_on(NAME);
    decide(k, &mut Cx { options, enabled, pass: NAME, sink })
}

/// A copy of a kernel with stand-ins for what is to be chosen, specialised: what it does not depend on what is chosen is true of it.
///
/// # Errors
/// It cannot be specialised.
pub(crate) fn sketch(k: &Kernel, options: &Options) -> Result<Kernel, Reported> {
    let mut sink = Sink::new();
    let options = Options { defines: Vec::new(), sizes: Vec::new(), ..options.clone() };
    let mut cx = Cx { options: &options, enabled: true, pass: "specialize", sink: &mut sink };
    let mut k = k.clone();
    for auto in autos(&k, &mut cx)? {
        set(&mut k, auto.value, ConstValue::Int(auto.role.plain()));
    }
    crate::specialize::run(&mut k, &mut cx)?;
    Ok(k)
}

/// The value of a compile-time parameter, where nothing else is given.
pub(crate) fn value(k: &Kernel, p: Value) -> Option<ConstValue> {
    match &k.values[p].def {
        ValueDef::ConstParam(param) => match param.default? {
            ConstValue::Same(earlier) => value(k, earlier),
            value => Some(value),
        },
        _ => None,
    }
}

/// The name of the pass.
pub const NAME: &str = "choose";

fn decide(k: &mut Kernel, cx: &mut Cx<'_>) -> Result<Option<Choice>, Reported> {
    known_sizes(k, cx)?;
    for p in k.const_params.clone() {
        if let Some(value) = given(k, cx, p) {
            set(k, p, value);
        }
    }
    let autos = autos(k, cx)?;
    if autos.is_empty() || !bound(k) {
        // What has no value is for `specialize` to say.
        return Ok(None);
    }
    independent::check(k, cx, &autos)?;
    depends::check(k, cx, &autos)?;
    let mut reason = None;
    let found = Search::new(k, cx.options, &autos).and_then(|s| if cx.enabled { s.best() } else { s.plain() });
    let values: Vec<(Value, i64)> = match found {
        Ok(found) => {
            if let Some(choice) = &found.choice {
                cx.remark_note(k.name_span, choice.to_string(), choice.note());
            }
            if found.crowded && cx.enabled {
                let message = "no candidate leaves a thread registers for its tiles and the addresses beside them: the assembler may spill";
                cx.warn(Diagnostic::warning(codes::SPILLED, k.name_span, message));
            }
            reason = found.choice;
            found.values
        }
        Err(search::Failed::Opaque(why)) => {
            if cx.enabled {
                cx.remark(k.name_span, format!("nothing can be predicted, so plain values are taken: {why}"));
            }
            plain(&autos)
        }
        // What the user gave is wrong in itself; with any other values `specialize` will say where.
        Err(search::Failed::NoneLegal(Illegal::Extent | Illegal::Precondition)) => plain(&autos),
        Err(search::Failed::NoneLegal(why)) => return Err(none_legal(k, cx, &autos, why.why())),
        Err(search::Failed::Refused(why)) => return Err(none_legal(k, cx, &autos, &why)),
    };
    for (p, value) in values {
        set(k, p, ConstValue::Int(value));
    }
    independent::name_chosen(k, cx, &autos)?;
    Ok(reason)
}

fn none_legal(k: &Kernel, cx: &mut Cx<'_>, autos: &[Auto], why: &str) -> Reported {
    let names: Vec<String> = autos.iter().map(|a| format!("`{}`", k.values[a.value].name)).collect();
    let message = format!("no value of {} is legal with the others", names.join(", "));
    let d = Diagnostic::error(codes::NO_CHOICE, k.values[autos[0].value].span, message);
    cx.report(
        d.with_note(format!("of the candidate that got furthest: {why}")).with_note(
            "give other values with `-D NAME=VALUE`: what is given is kept, and the rest is chosen around it",
        ),
    )
}

fn plain(autos: &[Auto]) -> Vec<(Value, i64)> {
    autos.iter().map(|a| (a.value, a.role.plain())).collect()
}

/// Gives a parameter a default.
fn set(k: &mut Kernel, p: Value, value: ConstValue) {
    if let ValueDef::ConstParam(param) = &mut k.values[p].def {
        param.default = Some(value);
    }
}

/// Whether every parameter has a value or is `auto`.
fn bound(k: &Kernel) -> bool {
    k.const_params.iter().all(|&p| matches!(&k.values[p].def, ValueDef::ConstParam(param) if param.default.is_some()))
}

/// The parameters to choose, with what they are used for.
fn autos(k: &Kernel, cx: &mut Cx<'_>) -> Result<Vec<Auto>, Reported> {
    let (mut found, mut failed) = (Vec::new(), None);
    for &p in &k.const_params {
        let ValueDef::ConstParam(param) = &k.values[p].def else { continue };
        let Some(ConstValue::Auto { promised }) = param.default else { continue };
        if param.kind != ConstKind::Int {
            continue;
        }
        match role(k, p) {
            Some(role) => found.push(Auto { value: p, role, promised }),
            None => {
                let name = &k.values[p].name;
                let message = format!("`{name}` is `auto`, and used for nothing that can be chosen");
                failed = Some(cx.report(
                    Diagnostic::error(codes::CANNOT_CHOOSE, k.values[p].span, message).with_note(format!(
                        "extents of tiles, `warp_tile`, `k_warps`, `stages`, `raster` and `threads` can be chosen; give `{name}` a \
                         value with `-D {name}=...` or in the source"
                    )),
                ));
            }
        }
    }
    match failed {
        Some(reported) => Err(reported),
        None => Ok(found),
    }
}

/// What a parameter is used for; the first of its uses that is known counts.
fn role(k: &Kernel, p: Value) -> Option<Role> {
    let used = |e: Option<Expr>| e.is_some_and(|e| mentions(k, e, p));
    for [rows, cols, depth] in work::product_shapes(k) {
        for (e, role) in [(rows, Role::Rows), (cols, Role::Cols), (depth, Role::Depth)] {
            if used(e) {
                return Some(role);
            }
        }
    }
    let s = &k.schedule;
    let items = [
        (s.warp_tile.map(|t| t.0), Role::WarpRows),
        (s.warp_tile.map(|t| t.1), Role::WarpCols),
        (s.k_warps, Role::Groups),
        (s.stages, Role::Stages),
        (s.raster, Role::Raster),
        (s.threads, Role::Threads),
    ];
    if let Some((_, role)) = items.into_iter().find(|(e, _)| used(*e)) {
        return Some(role);
    }
    let tiles = k.values.keys().filter_map(|v| k.tile_ty(v));
    tiles.flat_map(|t| &t.shape).any(|&e| used(Some(e))).then_some(Role::Extent)
}

/// Sizes of the options that the kernel does not have.
fn known_sizes(k: &Kernel, cx: &mut Cx<'_>) -> Result<(), Reported> {
    let has = |name: &str| k.sizes.iter().any(|&v| k.values[v].name == name);
    let unknown: Vec<String> =
        cx.options.sizes.iter().filter(|(name, _)| !has(name)).map(|(name, _)| name.clone()).collect();
    let mut result = Ok(());
    for name in unknown {
        let names: Vec<String> = k.sizes.iter().map(|&v| format!("`{}`", k.values[v].name)).collect();
        let message = format!("kernel `{}` has no size `{name}` to be chosen for", k.name);
        let d = Diagnostic::error(codes::UNKNOWN_SIZE, k.name_span, message);
        result = Err(cx.report(match names.is_empty() {
            true => d.with_note("it has none"),
            false => d.with_note(format!("it has {}", names.join(", "))),
        }));
    }
    result
}
