//! Warpgroup products (wgmma): their operands and column counts.

use crate::analysis::uses::all_stmts;
use crate::analysis::views::memory_views;
use tilec_ir::entities::Expr;
use tilec_ir::entities::{Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::typing::resolve_view;

/// Whether producer warps execute some statements of the kernel: then `expand` makes roles.
pub(crate) fn is_scheduled(k: &Kernel) -> bool {
    all_stmts(k, k.body).into_iter().any(|s| k.plans[s].producer)
}

/// Whether a statement is a wgmma.
pub(crate) fn is_product(k: &Kernel, s: Stmt) -> bool {
    let StmtData::Assign { src, .. } = k.stmts[s] else { return false };
    matches!(k.exprs[src], ExprData::Mma(m) if m.atom.is_some_and(|a| a.row().asynchronous()))
}

/// Whether some product of a kernel is a wgmma.
pub(crate) fn multiplies(k: &Kernel) -> bool {
    all_stmts(k, k.body).into_iter().any(|s| is_product(k, s))
}

/// Whether a wgmma reads a buffer, directly or through registers that are copied from it.
pub(crate) fn read_by_warpgroups(k: &Kernel, v: Value) -> bool {
    all_stmts(k, k.body).into_iter().any(|s| {
        let StmtData::Assign { src, .. } = k.stmts[s] else { return false };
        let ExprData::Mma(mma) = k.exprs[src] else { return false };
        let asynchronous = mma.atom.is_some_and(|a| a.row().asynchronous());
        let of = |e: Expr| resolve_view(k, e).is_some_and(|view| view.base == v || is_copied(k, v, view.base));
        asynchronous && [mma.a, mma.b].into_iter().any(of)
    })
}

/// Whether a register tile is copied from a buffer.
pub(crate) fn is_copied(k: &Kernel, buffer: Value, tile: Value) -> bool {
    let from = |e: Expr| memory_views(k, e).iter().any(|view| view.base == buffer);
    let to = |e: Expr| resolve_view(k, e).is_some_and(|view| view.base == tile);
    let copies = |s: &StmtData| matches!(s, StmtData::Copy { src, dst, .. } if from(*src) && to(*dst));
    matches!(k.values[tile].def, ValueDef::Var(_)) && k.statement_data().any(copies)
}

/// How many there may be, in words.
pub(crate) const COLUMN_COUNTS: &str = "a multiple of 8 columns up to 256 (i8 and u8 above 32: of 16)";

/// Whether a wgmma of some type has this number of columns.
pub(crate) fn is_columns(n: u64) -> bool {
    n > 0 && n <= COLUMNS && (n.is_power_of_two() || n.is_multiple_of(COLUMN_UNIT))
}

/// Most columns of an instruction.
pub(crate) const COLUMNS: u64 = 256;

/// A column count that is no power of two must be a multiple of this.
pub(crate) const COLUMN_UNIT: u64 = 8;

/// Bytes of an operand along the reduction of an instruction, of every type (PTX ISA, "wgmma": shapes).
pub(crate) const DEPTH_BYTES: u32 = 32;

/// Rows of an instruction.
pub(crate) const ROWS: u64 = 64;

/// Rows of a tile of three warpgroups. Five warpgroups would have too few registers each.
pub(crate) const THREE: u64 = 3 * ROWS;

/// Whether warpgroups can divide this number of rows.
pub(crate) fn is_rows(n: u64) -> bool {
    n.is_power_of_two() || n == THREE
}

/// Elements of shared memory that the instructions of a product of these rows, columns and depth read. Each has 64 rows,
/// which may be in registers, and all columns. `in_memory`: whether the first and the second operand are in shared memory;
/// if only the first is, the instructions compute the transposed product.
pub(crate) fn elements_read([rows, cols, depth]: [f64; 3], in_memory: [bool; 2]) -> f64 {
    let (rows, cols) = if in_memory[1] { (rows, cols) } else { (cols, rows) };
    let of_one = ROWS as f64;
    let own = if in_memory == [true; 2] { of_one } else { 0.0 };
    rows / of_one * (own + cols) * depth
}
