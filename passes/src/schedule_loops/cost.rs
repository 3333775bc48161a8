//! Cost of the statements of a loop for a warpgroup, in clocks.
//!
//! A warpgroup has one warp in each of the four partitions of a multiprocessor. A partition issues one instruction of a
//! warp per clock. Special functions take eight clocks (16 results per clock and multiprocessor, CUDA C++ Programming
//! Guide, arithmetic throughput). wgmma runs in parallel, at the rate of the card. The figures order a schedule; they
//! do not predict a kernel's time.

use crate::analysis::access_width::{known_elem, tile_shape};
use crate::analysis::wgmma::is_product;
use crate::choose::Card;
use tilec_ir::bits::Bits;
use tilec_ir::combine::{Combine, How, comparisons};
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData};
use tilec_ir::ops::Op;
use tilec_ir::partial_sums::accumulated;
use tilec_ir::target::{SCHEDULERS, WARP, WARPGROUP};
use tilec_ir::types::{Elem, ElemRef};
use tilec_ir::typing::{fixed_shape, product_depth, resolve_view, shape_of_tuples, type_of};

/// Clocks for a special function of a warp.
const SPECIAL: u64 = 8;
/// Instructions for stochastic rounding of a number.
const ROUNDED: u64 = 8;
/// Clocks for a reduction over four lanes: two shuffles.
const ACROSS: u64 = 4 * SPECIAL;
/// Clocks for a load or store of shared memory by a warpgroup, with 16 bytes for each thread.
const SHARED: u64 = 16;
/// Clocks of an operation on a channel or an address.
const STEP: u64 = 8;
/// Clocks from the end of the last wgmma until the waiting warp continues.
pub(crate) const LATENCY: u64 = 60;

/// The cost of a statement.
#[derive(Copy, Clone, Default, Debug)]
pub(crate) struct Cost {
    /// Issue clocks of the warps.
    pub(crate) issue: u64,
    /// The part of them for special function units.
    pub(crate) special: u64,
    /// Clocks of the tensor cores, in parallel.
    pub(crate) tensor: u64,
}

/// The cost of a statement with everything inside it, for one of `groups` warpgroups.
pub(super) fn of(k: &Kernel, card: &Card, s: Stmt, groups: u64) -> Cost {
    if is_product(k, s) {
        return product(k, card, s, groups);
    }
    let mut all = own(k, card, s, groups * u64::from(WARPGROUP * WARP));
    for &inner in k.sub_blocks(s).iter().flat_map(|&b| &k.blocks[b]) {
        let inside = of(k, card, inner, groups);
        all.issue += inside.issue;
        all.special += inside.special;
    }
    all
}

/// The cost of a statement without what is inside it, for a warpgroup of a role with so many warps; `elected`: one lane
/// executes it.
pub(crate) fn of_warps(k: &Kernel, card: &Card, s: Stmt, warps: u32, elected: bool) -> Cost {
    match is_product(k, s) {
        _ if elected => Cost { issue: STEP, ..Cost::default() },
        true => product(k, card, s, u64::from(warps / (WARPGROUP)).max(1)),
        false => own(k, card, s, u64::from(warps * WARP)),
    }
}

/// Issue clocks of each warp for a statement with everything inside it, in a block of `threads` threads.
pub(crate) fn issue_clocks(k: &Kernel, card: &Card, s: Stmt, threads: u64) -> u64 {
    let inside = k.sub_blocks(s).into_iter().flat_map(|b| k.blocks[b].clone());
    own(k, card, s, threads).issue + inside.map(|s| issue_clocks(k, card, s, threads)).sum::<u64>()
}

/// Clocks of a partition's special function units for statements with everything inside them, in a block of `threads`
/// threads.
pub(crate) fn special_clocks(k: &Kernel, card: &Card, stmts: &[Stmt], threads: u64) -> u64 {
    let inside = |s: Stmt| k.sub_blocks(s).iter().map(|&b| special_clocks(k, card, &k.blocks[b], threads)).sum::<u64>();
    let warps = threads.div_ceil(SCHEDULERS * u64::from(WARP));
    stmts.iter().map(|&s| own(k, card, s, threads).special * warps + inside(s)).sum()
}

/// The cost of a statement without what is inside.
fn own(k: &Kernel, card: &Card, s: Stmt, threads: u64) -> Cost {
    let lanes = card.f32_clocks() as u64;
    let expression = |e: Expr| {
        let more = if lanes > 1 { (lanes - 1) * of_f32(k, e, threads) } else { 0 };
        Cost { issue: arithmetic(k, e, threads) + more, special: special(k, e, threads), tensor: 0 }
    };
    match &k.stmts[s] {
        StmtData::Assign { dst, src } => {
            let all = expression(*src);
            Cost { issue: all.issue - in_parts(k, *dst, *src), ..all }
        }
        StmtData::Let { init, .. } => expression(*init),
        StmtData::Var { init, .. } => init.map_or(Cost::default(), expression),
        StmtData::Copy { src, dst, .. } => {
            let all = expression(*src);
            Cost { issue: all.issue + moved(k, *src, threads) + moved(k, *dst, threads), ..all }
        }
        _ => Cost { issue: STEP, ..Cost::default() },
    }
}

fn product(k: &Kernel, card: &Card, s: Stmt, groups: u64) -> Cost {
    let StmtData::Assign { dst, src } = k.stmts[s] else { unreachable!("a product is assigned") };
    let ExprData::Mma(mma) = k.exprs[src] else { unreachable!("a product is assigned") };
    let elements = tile_shape(k, dst).iter().product::<u64>();
    let depth = product_depth(k, &mma).expect("an operand has extents");
    let read = resolve_view(k, mma.b).expect("an operand of wgmma is a tile").base;
    let rate = tensor_rate(card, known_elem(k, read).size());
    let steps = depth / u64::from(mma.atom.map_or(16, |a| a.row().k)).max(1);
    Cost { issue: STEP * steps.max(1), special: 0, tensor: elements * depth / groups / rate }
}

/// Multiply-adds per clock by wgmma on all tensor cores of a multiprocessor, for this element size: twice as many for 8
/// bits, half for 32.
pub(crate) fn tensor_rate(card: &Card, elem: Bits) -> u64 {
    ((card.warpgroups * 2.0) as u64 * 8 / u64::from(elem.get())).max(1)
}

/// Whether an operator uses the special function units.
fn is_special(op: Op) -> bool {
    op.is_function() || matches!(op, Op::Div | Op::Pow | Op::Random)
}

/// The number of tuple combinations in a thread.
fn combinations(k: &Kernel, combine: &Combine, threads: u64) -> u64 {
    let shape = shape_of_tuples(k, combine).unwrap_or_default();
    let each = shape.iter().product::<u64>().div_ceil(threads);
    let bits = shape.get(combine.axis as usize).map_or(1, |n| u64::from(n.next_power_of_two().ilog2()));
    match combine.operation {
        How::Reduce { .. } => each + u64::from(WARP.ilog2()),
        How::Scan { .. } => each * bits,
        How::Sort { steps: None } => each * u64::from(comparisons(bits as u32)),
        How::Sort { steps: Some((from, to)) } => each * u64::from(to - from),
    }
}

/// The cost of combining tuples and of computing their components, times the number of executions.
fn of_tuples(k: &Kernel, combine: &Combine, threads: u64, cost: fn(&Kernel, Expr, u64) -> u64) -> u64 {
    let once: u64 = combine.body(k).into_iter().map(|e| cost(k, e, threads)).sum();
    once * combinations(k, combine, threads) + combine.args.iter().map(|&e| cost(k, e, threads)).sum::<u64>()
}

/// Clocks of the special function units for an expression.
fn special(k: &Kernel, e: Expr, threads: u64) -> u64 {
    if let ExprData::Combine(combine) = &k.exprs[e] {
        return of_tuples(k, combine, threads, special);
    }
    let own = match &k.exprs[e] {
        ExprData::Op { op, .. } if is_special(*op) => {
            fixed_shape(k, e).map_or(1, |s| s.iter().product::<u64>()).div_ceil(threads) * SPECIAL
        }
        ExprData::Iota { .. } => return 0,
        _ => 0,
    };
    own + k.children(e).into_iter().map(|c| special(k, c, threads)).sum::<u64>()
}

/// Instructions for an expression on tiles.
fn arithmetic(k: &Kernel, e: Expr, threads: u64) -> u64 {
    let elements = fixed_shape(k, e).map_or(1, |s| s.iter().product::<u64>());
    let each = elements.div_ceil(threads);
    let own = match &k.exprs[e] {
        ExprData::Op { op, .. } if is_special(*op) => SPECIAL,
        ExprData::Op { .. } => 1,
        ExprData::Cast { .. } => 1,
        ExprData::Round { .. } => ROUNDED,
        ExprData::Reduce { arg, .. } => {
            let of = fixed_shape(k, *arg).map_or(1, |s| s.iter().product::<u64>()).div_ceil(threads);
            return of + ACROSS + arithmetic(k, *arg, threads);
        }
        // One combination for every bit of an element's index.
        ExprData::Scan { axis, .. } => fixed_shape(k, e)
            .and_then(|shape| Some(u64::from(shape.get(*axis as usize)?.next_power_of_two().ilog2())))
            .unwrap_or(1),
        ExprData::Combine(combine) => return of_tuples(k, combine, threads, arithmetic),
        ExprData::Iota { .. } => return 0,
        _ => 0,
    };
    own * each + k.children(e).into_iter().map(|c| arithmetic(k, c, threads)).sum::<u64>()
}

/// Additions and products of f32 in an expression on tiles. A product that an addition takes is part of it.
fn of_f32(k: &Kernel, e: Expr, threads: u64) -> u64 {
    if let ExprData::Combine(combine) = &k.exprs[e] {
        return of_tuples(k, combine, threads, of_f32);
    }
    let is_f32 = |e: Expr| type_of(k, e).is_ok_and(|ty| ty.elem() == Some(ElemRef::Known(Elem::F32)));
    let is_product = |e: &Expr| matches!(k.exprs[*e], ExprData::Op { op: Op::Mul, .. });
    let elements = fixed_shape(k, e).map_or(1, |s| s.iter().product::<u64>());
    let own = match &k.exprs[e] {
        ExprData::Op { op: Op::Add | Op::Sub, args } if is_f32(e) && args.iter().any(is_product) => 0,
        ExprData::Op { op: Op::Add | Op::Sub | Op::Mul, .. } if is_f32(e) => elements.div_ceil(threads),
        ExprData::Iota { .. } => return 0,
        _ => 0,
    };
    own + k.children(e).into_iter().map(|c| of_f32(k, c, threads)).sum::<u64>()
}

/// Instructions that reductions of an expression save if lanes keep partial results.
fn in_parts(k: &Kernel, dst: Value, src: Expr) -> u64 {
    let partial = k.tile_ty(dst).and_then(|t| t.partial.as_ref());
    let own = partial
        .map(|p| accumulated(k, dst, p.op, src).expect("bug: a tile of parts is accumulated, which is verified"));
    own.map_or(0, |own| own.len() as u64 * ACROSS)
}

/// Clocks for reading or writing a tile in memory.
fn moved(k: &Kernel, e: Expr, threads: u64) -> u64 {
    let Some(view) = resolve_view(k, e) else { return 0 };
    let elem = known_elem(k, view.base);
    let elements = fixed_shape(k, e).map_or(1, |s| s.iter().product::<u64>());
    match &k.values[view.base].def {
        tilec_ir::kernel::ValueDef::Var(_) => elements.div_ceil(threads) / 2,
        _ => elem.bytes_of(elements).div_ceil(threads * 16) * SHARED,
    }
}
