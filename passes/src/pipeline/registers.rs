//! Register tiles that a loop loads for its next iteration.
//!
//! ```text
//! for m in s..e {                            var x = reg bf16[1, 4096]
//!     var x = reg bf16[1, 4096]              copy X[s, ..] -> x when s < e
//!     copy X[m, ..] -> x                     for m in s..e {
//!     ..                                         var x_next = reg bf16[1, 4096]
//! }                                              copy X[m + 1, ..] -> x_next when m + 1 < e
//!                                                ..
//!                                                x = x_next
//!                                            }
//! ```
//!
//! In a loop whose warps synchronise at barriers, all warps of a block wait for its loads, and load nothing while they
//! reduce. If a tile is read only in front of the first exchange, it is loaded again right after that, without a second
//! tile.

use super::general_loops::{can_be_written_out, expand_names, without_names};
use crate::analysis::access_width::known_elem;
use crate::analysis::uses::{all_stmts, for_each_ref, stmt_exprs};
use crate::analysis::views::plain_var;
use crate::producer_fills::computed;
use tilec_ir::deferred_lets::Deferred;
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::index_values::is_written;
use tilec_ir::kernel::{CopyAttrs, Kernel, StmtData, ValueDef};
use tilec_ir::modified_values::changes;
use tilec_ir::ops::Op;
use tilec_ir::typing::resolve_view;

/// Most registers of a thread for second tiles.
const SECOND: u64 = 32;

/// A tile that is loaded once in an iteration.
struct Load {
    tile: Value,
    /// Its declaration, and the copy that fills it.
    declared: Stmt,
    copy: Stmt,
    src: Expr,
    attrs: CopyAttrs,
    /// The last statement that reads it, if an exchange follows: there it is loaded again.
    last: Option<Stmt>,
}

/// Makes a loop load register tiles for the next iteration, if possible, and returns a message.
pub(super) fn run(k: &mut Kernel, at: Stmt) -> Option<String> {
    let StmtData::For { var, start, end, step, cond: None, next: None, unroll: false, body } = k.stmts[at] else {
        return None;
    };
    let meets = k.blocks[body].iter().any(|&s| matches!(k.stmts[s], StmtData::Alloc { .. }));
    let by_hand = k.schedule.stages.and_then(|e| k.as_int(e)) == Some(1)
        || all_stmts(k, k.body).into_iter().any(|s| matches!(k.stmts[s], StmtData::Role { .. }));
    if !meets || by_hand {
        return None;
    }
    let mut loads: Vec<Load> = k.blocks[body].iter().filter_map(|&s| Load::of(k, body, s, at)).collect();
    let names = without_names(k, &k.blocks[body]).0;
    loads.retain(|load| can_be_written_out(k, load.src, &names));
    let mut second = 0;
    loads.retain(|load| {
        let registers = if load.last.is_some() { 0 } else { load.registers(k) };
        let fits = second + registers <= SECOND;
        second += if fits { registers } else { 0 };
        fits
    });
    if loads.is_empty() {
        return None;
    }
    let span = k.stmt_spans[at];
    let mut first = Vec::new();
    for load in &loads {
        let index = |k: &mut Kernel, next: bool| match next {
            true => {
                let (i, by) = (k.value_ref(var, span), k.copy_expr(step));
                k.binary(Op::Add, i, by, span)
            }
            false => k.copy_expr(start),
        };
        let copy = |k: &mut Kernel, to: Value, next: bool| {
            let src = expand_names(k, load.src, &names);
            let src = k.clone_expr(src, &mut |k, v| (v == var).then(|| index(k, next)));
            let (i, end) = (index(k, next), k.copy_expr(end));
            let when = Some(k.binary(Op::Lt, i, end, span));
            let dst = k.value_ref(to, span);
            k.stmt(
                StmtData::Copy { src, dst, attrs: CopyAttrs { when, ..load.attrs.clone() } },
                k.stmt_spans[load.copy],
            )
        };
        first.push(load.declared);
        first.push(copy(k, load.tile, false));
        let mut list = std::mem::take(&mut k.blocks[body]);
        list.retain(|&s| s != load.declared);
        let here = list.iter().position(|&s| s == load.copy).expect("the copy stands in the body");
        if let Some(last) = load.last {
            list.remove(here);
            let behind = list.iter().position(|&s| s == last).expect("what reads it stands in the body") + 1;
            list.insert(behind, copy(k, load.tile, true));
        } else {
            let data = k.values[load.tile].clone();
            let next = k.value(&format!("{}_next", data.name), data.span, data.def);
            let declared = k.stmt(StmtData::Var { value: next, init: None }, span);
            list.splice(here..=here, [declared, copy(k, next, true)]);
            let src = k.value_ref(next, span);
            list.push(k.stmt(StmtData::Assign { dst: load.tile, src }, span));
        }
        k.blocks[body] = list;
    }
    let (block, index) = crate::analysis::uses::place_of(k, at);
    k.blocks[block].splice(index..index, first);
    let tiles: Vec<String> = loads.iter().map(|load| format!("`{}`", k.values[load.tile].name)).collect();
    Some(format!("{} loaded into registers an iteration ahead", tiles.join(", ")))
}

impl Load {
    /// The load of a statement in the loop `at`, if it can run ahead.
    fn of(k: &Kernel, body: Block, copy: Stmt, at: Stmt) -> Option<Load> {
        let StmtData::Copy { src, dst, attrs } = &k.stmts[copy] else { return None };
        let tile = plain_var(k, *dst)?;
        let view = resolve_view(k, *src).filter(|view| k.tensor_ty(view.base).is_some() && !view.is_gathered())?;
        let decided = attrs.when.is_some() || attrs.keep || !attrs.held.is_empty();
        if is_written(k, view.base) || decided || !attrs.is_by_threads() {
            return None;
        }
        // Its window depends on the iteration, but not on values that threads compute.
        let indices = k.children(*src);
        if indices.into_iter().any(|e| computed(k, e).is_some()) {
            return None;
        }
        let list = &k.blocks[body];
        let declared = list
            .iter()
            .copied()
            .find(|&s| matches!(k.stmts[s], StmtData::Var { value, init: None } if value == tile))?;
        let others = || list.iter().copied().filter(|&s| s != copy && s != declared);
        // A load that takes elements from the tile is one of the same iteration.
        let held = |s: Stmt| match &k.stmts[s] {
            StmtData::Copy { attrs, .. } => attrs.held.iter().any(|held| plain_var(k, held.tile) == Some(tile)),
            _ => false,
        };
        if others().any(|s| changes(k, s, tile) || held(s))
            || matches!(k.stmts[at], StmtData::For { var, .. } if var == tile)
        {
            return None;
        }
        let deferred = Deferred::of(k);
        let mut of_tile = vec![tile];
        let (mut last, mut exchange) = (None, None);
        for (i, s) in list.iter().copied().enumerate().filter(|&(_, s)| s != copy && s != declared) {
            if matches!(k.stmts[s], StmtData::Alloc { .. }) {
                exchange = exchange.or(Some(i));
            }
            if !reads(k, s, &of_tile) {
                continue;
            }
            match k.stmts[s] {
                StmtData::Let { value, .. } if deferred.init(value).is_some() => of_tile.push(value),
                _ => last = Some((i, s)),
            }
        }
        let (at_last, last) = last?;
        let early = exchange.is_some_and(|exchange| at_last < exchange);
        Some(Load { tile, declared, copy, src: *src, attrs: attrs.clone(), last: early.then_some(last) })
    }

    /// Registers of a thread for the tile.
    fn registers(&self, k: &Kernel) -> u64 {
        let ValueDef::Var(ty) = &k.values[self.tile].def else { unreachable!("a tile is a variable") };
        let layout = ty.reg_layout.as_ref().expect("tiles have layouts by now");
        known_elem(k, self.tile).bytes_of(1 << layout.value_bits()).div_ceil(4)
    }
}

/// Whether a statement, or one inside it, names one of these values.
fn reads(k: &Kernel, s: Stmt, of: &[Value]) -> bool {
    let mut found = false;
    for e in stmt_exprs(k, s) {
        for_each_ref(k, e, &mut |v| found |= of.contains(&v));
    }
    found || k.sub_blocks(s).into_iter().any(|b| k.blocks[b].iter().any(|&s| reads(k, s, of)))
}
