//! The `auto` parameters of a kernel, and the use of each.

use super::work::product_shapes;
use crate::Cx;
use crate::analysis::uses::mentions;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported};
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ConstKind, ConstValue, Kernel, ValueDef};

/// A parameter to choose.
#[derive(Copy, Clone, Debug)]
pub(super) struct Auto {
    pub(super) value: Value,
    pub(super) role: Role,
    /// The author promises that results do not depend on it.
    pub(super) promised: bool,
}

/// The use of an `auto` parameter, in the order in which values are tried.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Role {
    /// Rows of a product.
    Rows,
    /// Columns of a product.
    Cols,
    /// Number of groups of warps that share the reduction.
    Groups,
    /// Rows of a warp tile.
    WarpRows,
    /// Columns of a warp tile.
    WarpCols,
    /// Depth of a product.
    Depth,
    /// An extent of a tile that is no product's operand or result.
    Extent,
    /// Threads of a block.
    Threads,
    /// Slots of channels.
    Stages,
    /// Adjacent columns of blocks.
    Raster,
}

impl Role {
    /// The plain value.
    pub(super) fn plain(self) -> i64 {
        match self {
            Role::Rows | Role::Cols | Role::Extent => 64,
            Role::Depth | Role::WarpRows | Role::WarpCols => 32,
            Role::Groups | Role::Stages | Role::Raster => 1,
            Role::Threads => 128,
        }
    }
}

/// The value of a compile-time parameter, if no other value is given.
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

/// Gives a parameter a default.
pub(super) fn set(k: &mut Kernel, p: Value, value: ConstValue) {
    if let ValueDef::ConstParam(param) = &mut k.values[p].def {
        param.default = Some(value);
    }
}

/// Whether every parameter has a value or is `auto`.
pub(super) fn bound(k: &Kernel) -> bool {
    k.const_params.iter().all(|&p| matches!(&k.values[p].def, ValueDef::ConstParam(param) if param.default.is_some()))
}

/// The `auto` parameters, with their uses.
pub(super) fn autos(k: &Kernel, cx: &mut Cx<'_>) -> Result<Vec<Auto>, Reported> {
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
                         value with {} or in the source",
                        cx.options.caller.define(name)
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

/// The use of a parameter; the first known use counts.
pub(super) fn role(k: &Kernel, p: Value) -> Option<Role> {
    let used = |e: Option<Expr>| e.is_some_and(|e| mentions(k, e, p));
    for [rows, cols, depth] in product_shapes(k) {
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

/// Reports sizes of the options that the kernel does not have.
pub(super) fn known_sizes(k: &Kernel, cx: &mut Cx<'_>) -> Result<(), Reported> {
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
