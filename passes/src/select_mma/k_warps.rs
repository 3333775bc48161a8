//! `k_warps`: the warps of a block share the reduction of a product.
//!
//! A small output tile gives a block few warps, each with a long chain of products. With `k_warps 4` there are four
//! times as many: every group of warps computes the whole output tile from a slice of each tile of the reduction
//! (CUTLASS calls it sliced-K). The accumulator becomes a tile of three dimensions, the first of which is the slice.
//! All threads add the partial sums after the loop, in order:
//!
//! ```text
//! var acc_slices = reg f32[4, 32, 64] = 0
//! for k in 0..K step 32 { .. acc_slices = mma(a, b, acc_slices) }
//! let acc_exchange = smem f32[4, 32, 64] over a, b
//! copy acc_slices -> acc_exchange
//! var acc_slice = reg f32[32, 64]
//! var acc = reg f32[32, 64] = 0
//! for s in 0..4 unroll {
//!     copy acc_exchange[s, 0.., 0..] -> acc_slice
//!     acc = acc + acc_slice
//! }
//! ```
//!
//! The exchange reuses the memory of the multiplied tiles, which are dead then.
//!
//! The statements that follow use `acc` as before, in any layout: it need not be a fragment.

use crate::Cx;
use crate::analysis::uses::{all_stmts, for_each_ref, mentions, path_to, stmt_exprs};
use crate::select_mma::k_slices::insert_at;
use crate::select_mma::operands::{acc_shape, known};
use tilec_ir::atoms::Inputs;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported, Span};
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, Mma, Range, StmtData, ValueDef, View};
use tilec_ir::ops::Op;
use tilec_ir::target::Target;
use tilec_ir::types::{Elem, ElemRef, TileTy};

/// A position in a block.
type Place = (Block, usize);

/// The number of groups of warps that share the reduction of the products of `acc`, which is the number of partial
/// sums.
pub(super) fn groups(k: &Kernel, acc: Value) -> u64 {
    match k.tile_ty(acc).and_then(|t| k.const_shape(&t.shape)).as_deref() {
        Some(&[slices, _, _]) => slices.max(1),
        _ => 1,
    }
}

/// Gives every accumulator of products a partial sum for each slice, if the schedule demands it. Returns the new
/// accumulators, whose products are still to be sliced, each with the original accumulator.
pub(super) fn cut(k: &mut Kernel, cx: &mut Cx<'_>) -> Result<Vec<(Value, Value)>, Reported> {
    let mut made = Vec::new();
    let Some(e) = k.schedule.k_warps else { return Ok(made) };
    let groups = k.as_int(e).expect("specialised");
    if groups <= 1 {
        return Ok(made);
    }
    if let Some(s) = k.statements().into_iter().find(|&s| k.plans[s].stage.is_some()) {
        let message = "`k_warps` in a kernel whose loops have stages: the sum over the slices has none";
        let d = Diagnostic::error(codes::BAD_SCHEDULE, k.expr_spans[e], message);
        let d = d.with_place(k.stmt_spans[s], "this statement has a stage");
        let d = d.with_note("leave `k_warps` out, or leave the stages to the compiler");
        return Err(cx.report(d.with_left_out(k.schedule_item("k_warps"))));
    }
    for s in all_stmts(k, k.body) {
        let Some((acc, _)) = product(k, s) else { continue };
        let Some(tile) = k.tile_ty(acc) else { continue };
        let (Some(shape), Some(elem)) = (acc_shape(k, acc), known(Some(tile.elem))) else { continue };
        if tile.shape.len() != 2 || tile.reg_layout.is_some() {
            continue;
        }
        let at = region(k, s, acc);
        let whole = k.blocks[at.0][at.1];
        let all: Vec<Stmt> =
            within(k, whole).into_iter().filter(|&s| product(k, s).is_some_and(|p| p.0 == acc)).collect();
        let name = k.values[acc].name.clone();
        let span = k.stmt_spans[s];
        let slices = Slices { groups, shape, elem, span };
        let sums = slices.sums(k, &name);
        for s in all {
            retarget(k, s, sums);
        }
        let over = slices.add_up(k, at, acc, sums);
        made.push((sums, acc));
        let place = if over.is_empty() {
            format!("{} bytes of shared memory", slices.bytes())
        } else {
            let names: Vec<String> = over.iter().map(|&v| format!("`{}`", k.values[v].name)).collect();
            format!("the memory of {}", names.join(", "))
        };
        let each =
            if matches!(k.stmts[whole], StmtData::For { unroll: false, .. }) { "" } else { ", for each product" };
        cx.remark(
            k.expr_spans[e],
            format!(
                "sliced-K: the reduction of `{name}` is divided into {groups} slices, each with its own warps; their sums are added in {place}{each}"
            ),
        );
    }
    Ok(made)
}

/// The least depth of a slice of a reduction of `k_extent`. Scalar products may have slices of any depth, but slicing
/// must not prevent the use of tensor cores.
pub(crate) fn least_depth(
    target: Target,
    tensor_cores: bool,
    (inputs, acc): (Inputs, Elem),
    (wm, wn, k_extent): (u64, u64, u64),
) -> u64 {
    let depths =
        crate::select_mma::atoms::tensor_cores(target, inputs, acc, (wm, wn)).map(|a| 1u64 << a.row().log2_shape.2);
    let least = depths.filter(|&d| tensor_cores && d <= k_extent).min();
    // Nor may it lose `dp4a`, unless scalar products are used anyway.
    let best = || crate::select_mma::atoms::best_atom(target, tensor_cores, (inputs, acc), (wm, wn, k_extent));
    least.or_else(|| best().map(|a| 1 << a.row().log2_shape.2)).unwrap_or(1)
}

/// The depth of a slice of a reduction of `k_extent` for `groups` groups: at least that of an instruction.
pub(super) fn depth(
    k: &Kernel,
    cx: &mut Cx<'_>,
    span: Span,
    (inputs, acc): (Inputs, Elem),
    (wm, wn, k_extent): (u64, u64, u64),
    groups: u64,
) -> Result<u64, Reported> {
    let depth = k_extent / groups;
    let least = least_depth(cx.options.target, cx.enabled, (inputs, acc), (wm, wn, k_extent));
    if depth >= least {
        return Ok(depth);
    }
    let message = format!(
        "a reduction tile of {k_extent} in {groups} slices: {depth} each, and the product of {inputs} and {} takes {least} at a time",
        acc.name()
    );
    let e = k.schedule.k_warps.map_or(span, |e| k.expr_spans[e]);
    Err(cx.report(
        Diagnostic::error(codes::K_WARPS, e, message)
            .with_place(span, "this product")
            .with_note(format!("use a reduction tile of {} or more, or `k_warps {}`", least * groups, k_extent / least))
            .with_fix_of_item(k.schedule_item("k_warps"), format!("k_warps {}", k_extent / least)),
    ))
}

/// The accumulator of an accumulating product, and the product.
fn product(k: &Kernel, s: Stmt) -> Option<(Value, Mma)> {
    let StmtData::Assign { dst, src } = k.stmts[s] else { return None };
    let ExprData::Mma(mma) = k.exprs[src] else { return None };
    matches!(k.exprs[mma.c], ExprData::Ref(v) if v == dst).then_some((dst, mma))
}

/// A statement and what is inside it.
fn within(k: &Kernel, s: Stmt) -> Vec<Stmt> {
    std::iter::once(s).chain(k.sub_blocks(s).into_iter().flat_map(|b| all_stmts(k, b))).collect()
}

/// The outermost statement around the product `s` in which `acc` only accumulates products.
fn region(k: &Kernel, s: Stmt, acc: Value) -> Place {
    let path = path_to(k, s);
    let accumulates =
        |&(block, index): &Place| within(k, k.blocks[block][index]).into_iter().all(|s| accumulates(k, s, acc));
    path.iter().rev().copied().take_while(accumulates).last().expect("the product itself accumulates")
}

/// Whether a statement itself does not access `acc`, or only adds a product to it.
fn accumulates(k: &Kernel, s: Stmt, acc: Value) -> bool {
    if let Some((dst, mma)) = product(k, s)
        && dst == acc
    {
        return !mentions(k, mma.a, acc) && !mentions(k, mma.b, acc);
    }
    match k.stmts[s] {
        StmtData::Var { value, .. } if value == acc => false,
        StmtData::Assign { dst, .. } if dst == acc => false,
        StmtData::Await { .. } | StmtData::Signal { .. } | StmtData::Ordered { .. } | StmtData::Role { .. } => false,
        _ => !stmt_exprs(k, s).into_iter().any(|e| mentions(k, e, acc)),
    }
}

/// Makes the product accumulate in `sums`.
fn retarget(k: &mut Kernel, s: Stmt, sums: Value) {
    let StmtData::Assign { src, .. } = k.stmts[s] else { unreachable!("a product is assigned") };
    let ExprData::Mma(mma) = k.exprs[src] else { unreachable!("a product is assigned") };
    let c = k.value_ref(sums, k.expr_spans[mma.c]);
    k.exprs[src] = ExprData::Mma(Mma { c, ..mma });
    k.stmts[s] = StmtData::Assign { dst: sums, src };
}

/// A cut accumulator.
struct Slices {
    groups: i64,
    shape: (u64, u64),
    elem: Elem,
    span: Span,
}

impl Slices {
    /// The tile type of all partial sums (`all`), or of one.
    fn tile(&self, k: &mut Kernel, all: bool) -> TileTy {
        let extents = [self.groups, self.shape.0 as i64, self.shape.1 as i64];
        let shape = extents[usize::from(!all)..].iter().map(|&x| k.int(x, self.span)).collect();
        TileTy {
            elem: ElemRef::Known(self.elem),
            shape,
            order: None,
            reg_layout: None,
            partial: None,
            smem_layout: None,
        }
    }

    /// Bytes of all sums.
    fn bytes(&self) -> u64 {
        self.elem.bytes_of(self.groups.unsigned_abs() * self.shape.0 * self.shape.1)
    }

    /// Declares the accumulator of the partial sums.
    fn sums(&self, k: &mut Kernel, name: &str) -> Value {
        let ty = self.tile(k, true);
        k.value(&format!("{name}_slices"), self.span, ValueDef::Var(ty))
    }

    /// Inserts the zeroed partial sums in front of the statement at `place`, and after it the code that adds them to
    /// `acc`. Returns the buffers whose memory the exchange reuses; empty: it has its own memory.
    fn add_up(&self, k: &mut Kernel, (block, mut index): Place, acc: Value, sums: Value) -> Vec<Value> {
        let span = self.span;
        let name = k.values[acc].name.clone();
        let (all, one) = (self.tile(k, true), self.tile(k, false));
        let exchange = k.value(&format!("{name}_exchange"), span, ValueDef::Smem(all));
        let slice = k.value(&format!("{name}_slice"), span, ValueDef::Var(one));
        let s = k.value("s", span, ValueDef::Loop);
        let body = {
            let mut ranges = vec![Range::At(k.value_ref(s, span))];
            for _ in 0..2 {
                ranges.push(Range::From { start: k.int(0, span), end: None });
            }
            let from = k.expr(ExprData::View(View { base: exchange, slot: None, ranges }), span);
            let to = k.value_ref(slice, span);
            let read = k.stmt(StmtData::Copy { src: from, dst: to, attrs: CopyAttrs::default() }, span);
            let (so_far, next) = (k.value_ref(acc, span), k.value_ref(slice, span));
            let sum = k.binary(Op::Add, so_far, next, span);
            let add = k.stmt(StmtData::Assign { dst: acc, src: sum }, span);
            k.block(vec![read, add])
        };
        let (start, end, step) = (k.int(0, span), k.int(self.groups, span), k.int(1, span));
        let (from, to) = (k.value_ref(sums, span), k.value_ref(exchange, span));
        let zero = k.int(0, span);
        let before = k.stmt(StmtData::Var { value: sums, init: Some(zero) }, span);
        let over = spent(k, (block, index));
        let mut after = vec![
            k.stmt(StmtData::Alloc { value: exchange, over: over.clone() }, span),
            k.stmt(StmtData::Copy { src: from, dst: to, attrs: CopyAttrs::default() }, span),
            k.stmt(StmtData::Var { value: slice, init: None }, span),
        ];
        // The registers of `acc` are needed only from here on.
        if let Some(declared) = late_declaration(k, (block, index), acc) {
            after.push(k.blocks[block].remove(declared));
            index -= 1;
        }
        after
            .push(k.stmt(StmtData::For { var: s, start, end, step, cond: None, next: None, unroll: true, body }, span));
        insert_at(k, (block, index + 1), after);
        insert_at(k, (block, index), vec![before]);
        over
    }
}

/// The buffers that only the statement at `place` uses, if it uses no others and they are declared in front of it in
/// its block: their memory is free after it.
fn spent(k: &Kernel, (block, index): Place) -> Vec<Value> {
    let whole = within(k, k.blocks[block][index]);
    let mut used = Vec::new();
    for e in whole.iter().flat_map(|&s| stmt_exprs(k, s)) {
        for_each_ref(k, e, &mut |v| {
            if k.values[v].def.space().is_of_block() && !used.contains(&v) {
                used.push(v);
            }
        });
    }
    // Channels are written by the author, and may hold later tiles.
    let channels = whole.iter().any(|&s| matches!(k.stmts[s], StmtData::Channel { .. }));
    let outside = |v: Value| {
        let mentions_it = |s: Stmt| stmt_exprs(k, s).into_iter().any(|e| mentions(k, e, v));
        all_stmts(k, k.body).into_iter().any(|s| !whole.contains(&s) && mentions_it(s))
    };
    let declared = |v: Value| {
        k.blocks[block][..index]
            .iter()
            .any(|&s| matches!(&k.stmts[s], StmtData::Alloc { value, over } if *value == v && over.is_empty()))
    };
    used.sort_unstable();
    if channels || used.iter().any(|&v| outside(v) || !declared(v)) { Vec::new() } else { used }
}

/// The declaration of `acc`, if it can move after the statement at `place`: it is in the same block, with a literal
/// value, and not used in between.
fn late_declaration(k: &Kernel, (block, index): Place, acc: Value) -> Option<usize> {
    let stmts = &k.blocks[block][..index];
    let declared = stmts.iter().position(|&s| matches!(k.stmts[s], StmtData::Var { value, .. } if value == acc))?;
    let literal = |e: &Expr| matches!(k.exprs[*e], ExprData::Int(_) | ExprData::Float(_));
    let StmtData::Var { init, .. } = &k.stmts[stmts[declared]] else { unreachable!("found above") };
    let untouched =
        |&s: &Stmt| within(k, s).into_iter().all(|s| !stmt_exprs(k, s).into_iter().any(|e| mentions(k, e, acc)));
    (init.iter().all(literal) && stmts[declared + 1..].iter().all(untouched)).then_some(declared)
}
