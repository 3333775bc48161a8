//! Layout conversion of accumulators before they are stored.
//!
//! An accumulator's fragment layout is the instruction's. Storing it directly may use narrow accesses: for m8n8k4 with
//! f32 accumulation a thread owns pairs of neighbouring columns, and its neighbour in lane bit 1 owns the next pair.
//! Here the lane bit that carries a wanted column bit trades places with a register bit: one `shfl.bfly` per pair of
//! registers. The register bit given away is the next column bit if there is one, so that the lanes of one store cover
//! whole sectors. (volta884.md section 4 describes the exchange; the choice of the bit makes every sector of a store
//! full.) A store with a written `vec` or `threads` stays as it is written.

use super::broadcast::only_loaded;
use super::materialise;
use crate::Cx;
use crate::analysis::access_width::{elem_of, global_width, window_contiguous_dim};
use crate::analysis::distribution::owned_run;
use crate::analysis::facts::Facts;
use crate::analysis::uses::{all_stmts, path_to};
use crate::analysis::views::for_each_tile;
use std::collections::BTreeSet;
use tilec_ir::deferred_lets::Deferred;
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::layout::RegLayout;
use tilec_ir::tensor_store::tensor_store;
use tilec_ir::types::{ElemRef, TileTy};
use tilec_ir::typing::{fixed_shape, layout_of, let_init, resolve_view};

/// Inserts copies to other layouts where they make stores wider. Tiles with an `open` layout that are only loaded for
/// the same store lose their layout, which is inferred again.
pub(super) fn relayout(k: &mut Kernel, cx: &mut Cx<'_>, open: &[Value]) {
    let mut done: Vec<Relaid> = Vec::new();
    let deferred = Deferred::of(k);
    for s in all_stmts(k, k.body) {
        let StmtData::Copy { src, dst, ref attrs } = k.stmts[s] else { continue };
        // A written width or layout is the author's decision about this store.
        if attrs.vec.is_some() || attrs.threads.is_some() || attrs.is_fragment() {
            continue;
        }
        // Reductions in memory combine one or two elements at a time, so wider accesses do not help.
        if attrs.reduce.is_some() {
            continue;
        }
        let Some(wanted) = wanted_bits(k, src, dst) else { continue };
        let Some(shape) = fixed_shape(k, src) else { continue };
        let (mut vars, mut named, mut lets) = (Vec::new(), false, Vec::new());
        for_each_tile(k, &deferred, src, &mut |v| {
            if deferred.init(v).is_some() {
                lets.push(v);
                return;
            }
            // A tile that `let` names keeps the layout in which it was computed.
            named |= let_init(k, v).is_some_and(|init| crate::analysis::views::has_registers(k, init));
            // Smaller tiles are broadcast, and follow.
            let whole = |t: &TileTy| !t.shape.is_empty() && k.const_shape(&t.shape).is_none_or(|s| s == shape);
            if matches!(&k.values[v].def, ValueDef::Var(t) if whole(t)) && !vars.contains(&v) {
                vars.push(v);
            }
        });
        // One tile is exchanged; tiles that are only loaded can be loaded in the new layout. If there are several,
        // their combined value is exchanged.
        let (loaded, computed): (Vec<Value>, Vec<Value>) =
            vars.iter().partition(|&&v| open.contains(&v) && only_loaded(k, v));
        let (var, loaded) = match (&computed[..], &vars[..]) {
            (&[var], _) if !named => (var, loaded),
            (_, &[var]) if !named => (var, Vec::new()),
            _ if named || computed.len() > 1 => {
                whole(k, cx, s, &wanted);
                continue;
            }
            _ => continue,
        };
        let Some(layout) = k.tile_ty(var).and_then(|t| t.reg_layout.clone()) else { continue };
        let Some(better) = exchange(&layout, &shape, &wanted).filter(|_| !stores_lines(k, dst, &layout, &shape)) else {
            continue;
        };
        // Numbers per row that were computed keep their layout.
        if !super::row_vectors::still_match(k, &deferred, src, &shape, &better) {
            continue;
        }
        let place = in_front_of(k, place(k, s, var), s, &lets);
        let reuse =
            done.iter().find(|r| r.var == var && r.layout == better && unchanged_since(k, r, place)).map(|r| r.out);
        let out = match reuse {
            Some(out) => out,
            None => {
                let (out, filled) = insert(k, s, place, var, better.clone());
                cx.remark(
                    k.stmt_spans[s],
                    format!("`{}` is exchanged between lanes so that stores are wide", k.values[var].name),
                );
                done.push(Relaid { var, layout: better, out, filled });
                out
            }
        };
        replace(k, &deferred, src, var, out);
        for v in loaded {
            if let Some(tile) = k.tile_ty_mut(v) {
                tile.reg_layout = None;
            }
        }
    }
}

/// Exchanges the combined value of several tiles with one layout: the value in the stored type, directly in front of
/// the store.
fn whole(k: &mut Kernel, cx: &mut Cx<'_>, at: Stmt, wanted: &(usize, Vec<u64>)) {
    let StmtData::Copy { src, dst, .. } = k.stmts[at] else { unreachable!("it is a store") };
    let Some((shape, layout)) = fixed_shape(k, src).zip(layout_of(k, src)) else { return };
    let Some(better) = exchange(&layout, &shape, wanted).filter(|_| !stores_lines(k, dst, &layout, &shape)) else {
        return;
    };
    let Some(elem) = resolve_view(k, dst).and_then(|view| elem_of(k, view.base)) else { return };
    let span = k.stmt_spans[at];
    let name = match &k.exprs[src] {
        ExprData::Ref(v) => format!("{}_out", k.values[*v].name),
        _ => "stored".to_owned(),
    };
    let tile = materialise::tile(k, at, ElemRef::Known(elem), &shape, Some(better));
    let out = k.value(&name, span, ValueDef::Var(tile));
    let decl = k.stmt(StmtData::Var { value: out, init: None }, span);
    let to = k.value_ref(out, span);
    let fill = k.stmt(StmtData::Copy { src, dst: to, attrs: CopyAttrs::default() }, span);
    let stored = k.value_ref(out, span);
    let StmtData::Copy { src, .. } = &mut k.stmts[at] else { unreachable!("it is a store") };
    *src = stored;
    let &(block, index) = path_to(k, at).last().expect("a path ends at its statement");
    k.blocks[block].splice(index..index, [decl, fill]);
    cx.remark(span, format!("`{name}` is exchanged between lanes so that stores are wide"));
}

/// The column-major index bits that one wide access to the destination should own, lowest first, and then the next
/// bits.
fn wanted_bits(k: &Kernel, src: Expr, dst: Expr) -> Option<(usize, Vec<u64>)> {
    let view = resolve_view(k, dst)?;
    k.tensor_ty(view.base)?;
    let shape = fixed_shape(k, src)?;
    let facts = Facts::new(k);
    let width = global_width(k, &facts, &view, &shape).elems;
    let dim = window_contiguous_dim(k, &view)?;
    let bits = super::log2_shape(&shape);
    let base: u32 = bits[..dim].iter().sum();
    let all = (0..bits[dim]).map(|b| 1u64 << (base + b)).collect();
    Some((width.ilog2() as usize, all))
}

/// Whether warps already store whole cache lines: then wider stores are not worth an exchange.
fn stores_lines(k: &Kernel, dst: Expr, layout: &RegLayout, shape: &[u64]) -> bool {
    let found = (|| {
        let view = resolve_view(k, dst)?;
        let dim = window_contiguous_dim(k, &view)?;
        let elem = elem_of(k, view.base)?.size();
        let width = u64::from(global_width(k, &Facts::new(k), &view, shape).elems);
        let run = width.min(1 << owned_run(layout, &super::log2_shape(shape), dim));
        Some(super::cost::covers_lines(layout, shape, dim, run, elem))
    })();
    found.unwrap_or(false)
}

/// The layout in which a thread owns the first `count` bits of the run, or as many of them as possible; `None` if it
/// already does.
fn exchange(layout: &RegLayout, shape: &[u64], (count, run): &(usize, Vec<u64>)) -> Option<RegLayout> {
    let owned = |n: usize| (0..layout.value_bits()).filter(|&i| run[..n].contains(&layout.value_col(i))).count() == n;
    (1..=*count).rev().take_while(|&n| !owned(n)).find_map(|n| exchange_bits(layout, shape, n, run))
}

/// The layout in which a thread owns the first `count` bits of the run; `None` if it cannot.
fn exchange_bits(layout: &RegLayout, shape: &[u64], count: usize, run: &[u64]) -> Option<RegLayout> {
    let mut value: Vec<u64> = (0..layout.value_bits()).map(|i| layout.value_col(i)).collect();
    let mut thread: Vec<u64> = (0..layout.thread_bits()).map(|i| layout.thread_col(i)).collect();
    for &bit in &run[..count] {
        if value.contains(&bit) {
            continue;
        }
        let lane = thread.iter().take(5).position(|&c| c == bit)?;
        let spare = |c: &u64| !run[..count].contains(c);
        let given = run[count..]
            .iter()
            .find_map(|next| value.iter().position(|c| c == next))
            .or_else(|| value.iter().position(spare))?;
        std::mem::swap(&mut value[given], &mut thread[lane]);
    }
    // All threads must still have the same number of elements.
    RegLayout::new(value, thread, layout.out_bits()).filter(|found| found.is_even(shape))
}

/// A tile in its new layout.
struct Relaid {
    var: Value,
    layout: RegLayout,
    out: Value,
    /// The copy that fills it.
    filled: Stmt,
}

/// A position in a block.
type Place = (Block, usize);

/// Where the tile `var` is exchanged for the copy `at`: in front of branches around the copy, as far out as `var` is
/// declared and holds the stored value. Not in front of a branch that stores through a buffer.
fn place(k: &Kernel, at: Stmt, var: Value) -> Place {
    let path = path_to(k, at);
    let mut steps = path.iter().rev().copied();
    let mut place = steps.next().expect("a path ends at its statement");
    for step in steps {
        let (block, index) = step;
        let branch = k.blocks[block][index];
        if !matches!(k.stmts[branch], StmtData::If { .. }) || writes(k, branch, var) || stages(k, branch) {
            break;
        }
        place = step;
    }
    place
}

/// Whether a statement inside `branch` is a TMA store.
fn stages(k: &Kernel, branch: Stmt) -> bool {
    k.sub_blocks(branch).into_iter().flat_map(|b| all_stmts(k, b)).any(|s| tensor_store(k, s).is_some())
}

/// Whether a statement, or one inside it, declares or changes `var`.
fn writes(k: &Kernel, s: Stmt, var: Value) -> bool {
    let mut found = false;
    let mut see = |k: &Kernel, s: Stmt| {
        found |= match k.stmts[s] {
            StmtData::Var { value, .. } => value == var,
            StmtData::Assign { dst, .. } => dst == var,
            StmtData::Copy { dst, .. } => resolve_view(k, dst).is_some_and(|view| view.base == var),
            _ => false,
        };
    };
    see(k, s);
    for block in k.sub_blocks(s) {
        k.walk(block, &mut |k, _, s| see(k, s));
    }
    found
}

/// Whether the exchanged tile is declared at `place`, and still has the contents of `var`.
fn unchanged_since(k: &Kernel, relaid: &Relaid, (block, index): Place) -> bool {
    let stmts = &k.blocks[block];
    let Some(from) = stmts.iter().position(|&s| s == relaid.filled) else { return false };
    from < index && stmts[from..index].iter().all(|&s| !writes(k, s, relaid.var))
}

/// Declares a tile in the new layout, and fills it at `place`.
fn insert(k: &mut Kernel, at: Stmt, place: Place, var: Value, layout: RegLayout) -> (Value, Stmt) {
    let span = k.stmt_spans[at];
    let name = format!("{}_out", k.values[var].name);
    let mut tile = k.tile_ty(var).cloned().expect("a register tile");
    tile.shape = tile.shape.iter().map(|&e| k.copy_expr(e)).collect();
    tile.reg_layout = Some(layout);
    let out = k.value(&name, span, ValueDef::Var(tile));
    let decl = k.stmt(StmtData::Var { value: out, init: None }, span);
    let (from, to) = (k.value_ref(var, span), k.value_ref(out, span));
    let copy = k.stmt(StmtData::Copy { src: from, dst: to, attrs: CopyAttrs::default() }, span);
    k.blocks[place.0].splice(place.1..place.1, [decl, copy]);
    (out, copy)
}

/// `place`, or in front of the first of these `let`s if that is earlier: all are in blocks around the copy `at`.
fn in_front_of(k: &Kernel, place: Place, at: Stmt, lets: &[Value]) -> Place {
    let path = path_to(k, at);
    for &(block, index) in &path {
        let declares = |s: &Stmt| matches!(k.stmts[*s], StmtData::Let { value, .. } if lets.contains(&value));
        if block == place.0 {
            let first = k.blocks[block].iter().position(declares);
            return (block, first.map_or(place.1, |first| first.min(place.1)));
        }
        if let Some(first) = k.blocks[block][..index].iter().position(declares) {
            return (block, first);
        }
    }
    place
}

/// Replaces references to `from` in `e` by `to`, in place, and in the deferred `let`s that it names.
fn replace(k: &mut Kernel, deferred: &Deferred, e: Expr, from: Value, to: Value) {
    let mut named = BTreeSet::new();
    let mut rest = vec![e];
    while let Some(e) = rest.pop() {
        if let ExprData::Ref(v) = k.exprs[e] {
            rest.extend(deferred.init(v).filter(|_| named.insert(v)));
            if v == from {
                k.exprs[e] = ExprData::Ref(to);
            }
        }
        rest.extend(k.children(e));
    }
}
