//! Operands of products that are computed in registers.
//!
//! In `o = mma(p, v, o)` with a register tile `p` and a buffer `v`, `p` is copied to a tile in the layout of the
//! instruction's operand. Slices of the reduction take windows of that tile. If the layouts differ, lanes exchange
//! elements. If they are the same, as for 16-bit operands that were accumulators of `m16n8` products, registers are
//! renamed.
//!
//! ```text
//! copy p -> p_operand
//! for kk in 0..64 step 16 unroll {
//!     copy p_operand[0.., kk..] -> p_frag
//!     copy v[kk.., 0..] -> v_frag
//!     o = mma<m16n8k16>(p_frag, v_frag, o)
//! }
//! ```
//!
//! If lanes repeat each other's elements of an operand (`m8n8k4`, scalar products), a thread would have to hold many times its own elements. Then
//! the operand goes through a buffer. If both operands are in registers, they stay there as long as a thread has room for them. So does an
//! operand that alone would take too many registers.

use super::atoms::accumulator_registers;
use super::operand_buffers;
use crate::Cx;
use crate::analysis::uses::{for_each_ref, place_of};
use crate::analysis::views::{memory_views, plain_var};
use crate::select_mma::k_slices::{declare, declare_beside, insert_at};
use crate::select_mma::operands::{known, operand_name};
use tilec_ir::atoms::{AtomRow, Bit, Fragment, Inputs};
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, Mma, StmtData, ValueDef};
use tilec_ir::target::{REGISTERS_PER_THREAD, WARP};
use tilec_ir::types::{Elem, ElemRef, TileTy};
use tilec_ir::typing::{fixed_shape, operand_shape, resolve_view, type_of};

/// Computes operands that are expressions to register tiles, in front of the product `s`.
pub(super) fn name(k: &mut Kernel, s: Stmt, mma: &mut Mma) {
    let [Some(of_a), Some(of_b)] = [false, true].map(|second| operand_shape(k, mma, second)) else { return };
    for (e, shape) in [(&mut mma.a, of_a), (&mut mma.b, of_b)] {
        if resolve_view(k, *e).is_none() {
            *e = named(k, s, *e, shape);
        }
    }
}

/// A register tile of these extents for the value of an expression, transposed if the whole expression is.
fn named(k: &mut Kernel, s: Stmt, e: Expr, [rows, columns]: [u64; 2]) -> Expr {
    let span = k.expr_spans[e];
    if let ExprData::Transpose(arg) = k.exprs[e] {
        let arg = named(k, s, arg, [columns, rows]);
        return k.expr(ExprData::Transpose(arg), span);
    }
    let elem = type_of(k, e).ok().and_then(|t| known(t.elem())).expect("an operand has an element type");
    let shape = fixed_shape(k, e).unwrap_or_else(|| vec![rows, columns]);
    let name = format!("{}_{}", first_tile(k, e), elem.name());
    // A tile that is computed from buffers belongs to one iteration, so `expand` may double it.
    let tile = match memory_views(k, e).is_empty() {
        true => declare(k, s, &name, elem, &shape, span),
        false => declare_beside(k, s, &name, elem, &shape, span),
    };
    // The copy converts like a cast between floats or between integers.
    let class = |arg: Expr| type_of(k, arg).ok().and_then(|t| known(t.elem())).map(Elem::class);
    let source = match k.exprs[e] {
        ExprData::Cast { arg, .. } if class(arg) == Some(elem.class()) => arg,
        _ => e,
    };
    copy(k, s, source, tile);
    k.value_ref(tile, span)
}

/// The name of the first tile that an expression mentions.
fn first_tile(k: &Kernel, e: Expr) -> String {
    let mut name = None;
    for_each_ref(k, e, &mut |v| {
        let tile = k.tile_ty(v).is_some() || matches!(k.values[v].def, ValueDef::Let);
        name = name.take().or_else(|| tile.then(|| k.values[v].name.clone()));
    });
    name.unwrap_or_else(|| "operand".to_owned())
}

/// Whether the fragments of an `mma.sync` operand (the instruction's first or second) can come from a register tile: no
/// lane repeats another lane's elements.
pub(crate) fn keeps(row: &AtomRow, first: bool) -> bool {
    let variants = if first { row.a } else { row.b };
    row.sums() && variants.iter().all(|f| !f.lane.contains(&Bit::Same))
}

/// An instruction's work in a warp.
pub(super) struct WarpProduct<'r> {
    pub(super) row: &'r AtomRow,
    /// Types of the operands and of the accumulator.
    pub(super) types: (Inputs, Elem),
    /// Whether the text's second operand is the instruction's first.
    pub(super) swap: bool,
    /// Rows, columns and depth, in the instruction's view.
    pub(super) extents: (u64, u64, u64),
}

impl WarpProduct<'_> {
    /// Which operands in registers (the text's first and second) go through a buffer: those of which lanes repeat
    /// elements, unless a thread has room for both, and those that would take too many registers of a thread.
    pub(super) fn in_buffers(&self, in_registers: [bool; 2]) -> [InBuffer; 2] {
        let sides = if self.swap { [1, 0] } else { [0, 1] };
        let words = [0, 1].map(|operand| if in_registers[operand] { self.words(sides[operand]) } else { 0 });
        let sums = accumulator_registers(self.extents.0, self.extents.1, self.types.1.size());
        let keeps = sides.map(|side| keeps(self.row, side == 0));
        let both = in_registers == [true, true] && words[0] + words[1] + sums <= u64::from(MAX_OPERANDS);
        let mut found = [0, 1].map(|operand| match in_registers[operand] && !both && !keeps[operand] {
            true => InBuffer::Repeated,
            false => InBuffer::No,
        });
        // The larger one first.
        let order = if words[0] > words[1] { [0, 1] } else { [1, 0] };
        for operand in order {
            let held: u64 = (0..2).filter(|&own| found[own] == InBuffer::No).map(|own| words[own]).sum();
            if found[operand] == InBuffer::No && words[operand] > 0 && held + sums > u64::from(MOST_HELD) {
                found[operand] = InBuffer::Crowded(words[operand]);
            }
        }
        found
    }

    /// Registers of a thread for one of the instruction's operands over the whole depth.
    fn words(&self, side: usize) -> u64 {
        let ((inputs, _), (rows, columns, depth)) = (self.types, self.extents);
        let elems = if self.swap { [inputs.b, inputs.a] } else { [inputs.a, inputs.b] };
        let (fragments, lines) = if side == 0 { (self.row.a, rows) } else { (self.row.b, columns) };
        let repeated = |f: &Fragment| f.lane.iter().filter(|bit| **bit == Bit::Same).count();
        let repeats = 1u64 << fragments.iter().map(repeated).max().unwrap_or(0);
        let elements = lines.saturating_mul(depth).saturating_mul(repeats) / u64::from(WARP);
        elems[side].size().bytes_of(elements) / 4
    }
}

/// Why an operand goes through a buffer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum InBuffer {
    /// It stays in registers.
    No,
    /// Several lanes hold the same element.
    Repeated,
    /// It would take so many registers of a thread.
    Crowded(u64),
}

/// Registers of a thread for both operands and the sums of a product, if lanes repeat elements; the others are
/// addresses and copies.
const MAX_OPERANDS: u32 = REGISTERS_PER_THREAD / 4 * 3;
/// The same if they do not.
const MOST_HELD: u32 = REGISTERS_PER_THREAD - 28;

/// The register tile `e` as source of fragments for the product `s`: a tile in registers, or a buffer.
pub(super) fn operand(k: &mut Kernel, cx: &mut Cx<'_>, s: Stmt, e: Expr, elem: Elem, buffered: InBuffer) -> Expr {
    let keeps = buffered == InBuffer::No;
    let span = k.expr_spans[e];
    let name = operand_name(k, e);
    let inner = match k.exprs[e] {
        ExprData::Transpose(inner) if !keeps => inner,
        _ => e,
    };
    let shape = fixed_shape(k, inner).expect("the verifier gives a register tile extents");
    let to = if keeps {
        declare(k, s, &format!("{name}_operand"), elem, &shape, span)
    } else {
        let why = match buffered {
            InBuffer::Crowded(words) => format!("its fragments would take {words} registers of each thread"),
            _ => "in its fragment several lanes hold the same element".to_owned(),
        };
        cx.remark(span, format!("`{name}` is multiplied from shared memory: {why}"));
        buffer(k, s, &format!("{name}_shared"), elem, &shape)
    };
    let threads = k.schedule.threads.and_then(|e| k.as_int(e)).map_or(1, i64::unsigned_abs);
    let filled = !keeps && plain_var(k, inner).is_some_and(|tile| operand_buffers::fill(k, s, (tile, to), threads));
    if !filled {
        copy(k, s, inner, to);
    }
    let named = k.value_ref(to, span);
    if inner == e { named } else { k.expr(ExprData::Transpose(named), span) }
}

/// Declares a buffer in front of the outermost statement around `s`.
fn buffer(k: &mut Kernel, s: Stmt, name: &str, elem: Elem, shape: &[u64]) -> Value {
    let span = k.stmt_spans[s];
    let shape = shape.iter().map(|&x| k.int(x as i64, span)).collect();
    let ty = TileTy::registers(ElemRef::Known(elem), shape, None);
    let value = k.value(name, span, ValueDef::Smem(ty));
    let decl = k.stmt(StmtData::Alloc { value, over: Vec::new() }, span);
    crate::select_mma::k_slices::insert_before_outermost(k, s, decl);
    value
}

/// Copies `e` to a tile, in front of the statement `s`.
fn copy(k: &mut Kernel, s: Stmt, e: Expr, to: Value) {
    let dst = k.value_ref(to, k.expr_spans[e]);
    let copy = k.stmt(StmtData::Copy { src: e, dst, attrs: CopyAttrs::default() }, k.expr_spans[e]);
    let place = place_of(k, s);
    insert_at(k, place, vec![copy]);
}

/// Whether an operand of a product is computed, not read from memory.
pub(super) fn computed(k: &Kernel, e: Expr) -> bool {
    resolve_view(k, e).is_none_or(|v| v.space(k).in_registers())
}
