//! Proves that TMA stores overlap neither one another nor the loads of another role.
//!
//! The completion of a TMA store to global memory cannot be observed. So no other store of the block may write an
//! element that a TMA store writes, unless both use the same atomic operator. Another role may load elements that a
//! role stores if no load comes after the store of an element that it loads:
//!
//! * both are on different sides of a condition that is decided once; or
//! * both loop over tiles ([`tile_loops`]) in the same order, and access only their own tiles, as do other blocks. The
//!   storing role waits for a slot in which the loaded tile has arrived, before the store.

mod pairs;
mod statement_paths;
mod tile_loops;
mod value_numbers;
mod windows;

use crate::analysis::uses::{all_stmts, path_to};
pub(super) use pairs::Pairs;
use statement_paths::{Step, commute, exclusive, loops};
pub(super) use statement_paths::{exclusive_statements, is_marked_apart};
use tilec_ir::codes;
use tilec_ir::diag::Diagnostic;
use tilec_ir::entities::{Stmt, Value};
use tilec_ir::kernel::{ChannelOp, Kernel, StmtData, ValueDef};
use tilec_ir::tensor_store::tensor_store;
use tilec_ir::typing::{fixed_shape, resolve_view};
use value_numbers::Forms;
use windows::{Window, Windows};

/// Pairs of TMA stores that are compared.
const PAIRS: u32 = 4096;

/// Whether `load` in one role never loads an element after `store`, a TMA store in another role, has stored it.
pub(super) fn never_loads_stored(k: &Kernel, load: Stmt, store: Stmt) -> bool {
    let (a, b) = (path_to(k, load), path_to(k, store));
    exclusive(k, &a, &b) || store_waits_for_load(k, (load, &a), (store, &b)).unwrap_or(false)
}

/// Reports TMA stores that may write the same element, from two statements or from one in several iterations.
pub(super) fn stored_twice(k: &Kernel) -> Vec<Diagnostic> {
    let stores: Vec<(Stmt, Value)> =
        all_stmts(k, k.body).into_iter().filter_map(|s| Some((s, tensor_store(k, s)?.1))).collect();
    let mut found: Vec<Diagnostic> = Vec::new();
    let mut reported = Vec::new();
    let mut left = PAIRS;
    let mut all = Windows::new(k, None);
    for (i, &(s, tensor)) in stores.iter().enumerate() {
        if reported.contains(&tensor) {
            continue;
        }
        let meets = |&&(other, t): &&(Stmt, Value)| {
            left = left.saturating_sub(1);
            t == tensor && !commute(k, other, s) && (left == 0 || !once(&mut all, other, s).unwrap_or(false))
        };
        let Some(other) = stores[..=i].iter().find(meets) else { continue };
        reported.push(tensor);
        let name = &k.values[tensor].name;
        let (message, place) = if other.0 == s {
            (format!("TMA stores to `{name}` may overlap: this one in two iterations"), None)
        } else {
            (format!("TMA stores to `{name}` may overlap: this one and another"), Some(k.stmt_spans[other.0]))
        };
        let mut d = Diagnostic::error(codes::HAZARD, k.stmt_spans[s], message);
        if let Some(span) = place {
            d = d.with_place(span, "the other one");
        }
        found.push(d.with_note("two TMA stores are not ordered: `await` waits until the buffer is read, not until the data is written").with_note(
            "store every element once: windows must advance by at least their extents from iteration to iteration, and be disjoint within one",
        ));
    }
    found
}

/// Tiles of a grid whose stores may write the same elements.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum StoredTwice {
    /// One tile has two.
    InOneTile,
    /// Two tiles have them.
    ByTwoTiles,
}

/// Why a persistent grid over these tiles may not use TMA stores, by the check of [`stored_twice`]; `None`: all stores
/// write different elements.
pub(crate) fn stored_twice_by_tiles(k: &Kernel, stores: &[Stmt]) -> Option<StoredTwice> {
    let mut all = Windows::new(k, None);
    let mut pairs = stores.iter().enumerate().flat_map(|(i, &a)| stores[..=i].iter().map(move |&b| (a, b)));
    pairs.find_map(|(a, b)| {
        if commute(k, a, b) {
            return None;
        }
        let windows = stored_window(&mut all, a).zip(stored_window(&mut all, b));
        let in_one = a == b
            || exclusive_statements(k, a, b)
            || windows.as_ref().is_some_and(|(p, q)| all.disjoint_in_iteration(&[], [p, q]));
        let by_two = windows.is_some_and(|(p, q)| all.tiles_differ([&p, &q]));
        let found = if in_one { StoredTwice::ByTwoTiles } else { StoredTwice::InOneTile };
        (!in_one || !by_two).then_some(found)
    })
}

/// The variables of two loops, if the loops have the same iterations.
fn run_alike(forms: &mut Forms<'_>, a: Stmt, b: Stmt) -> Option<(Value, Value)> {
    let k = forms.k;
    // The number of iterations of a conditional loop depends on more than its bounds.
    let (
        &StmtData::For { var, start, end, step, cond: None, .. },
        &StmtData::For { var: other, start: s, end: e, step: t, cond: None, .. },
    ) = (&k.stmts[a], &k.stmts[b])
    else {
        return None;
    };
    [(start, s), (end, e), (step, t)].into_iter().all(|(a, b)| forms.of(a) == forms.of(b)).then_some((var, other))
}

/// Whether load and store both access the current tile of their role, and the store waits for the load.
fn store_waits_for_load(k: &Kernel, (load, a): (Stmt, &[Step]), (store, b): (Stmt, &[Step])) -> Option<bool> {
    let StmtData::Copy { src, dst, attrs } = &k.stmts[load] else { unreachable!("what loads a tensor is a copy") };
    let slot = resolve_view(k, *dst).filter(|v| matches!(k.values[v.base].def, ValueDef::Channel { .. }))?;
    let (&x, &y) = loops(k, a).first().zip(loops(k, b).first())?;
    let same = run_alike(&mut Forms::new(k, None), x, y)?;
    let mut all = Windows::new(k, Some(same));
    let from = all.window(*src, &fixed_shape(k, *dst)?)?;
    let to = stored_window(&mut all, store)?;
    let apart = all.differ_in(x, &[], [&from, &to]) && all.blocks_differ(x, [&from, &to]);
    Some(attrs.is_tensor() && apart && waits_in_front(k, y, slot.base, store))
}

/// The window that a TMA store writes.
fn stored_window(all: &mut Windows<'_>, store: Stmt) -> Option<Window> {
    let StmtData::Copy { src, dst, .. } = all.k().stmts[store] else { unreachable!("a TMA store is a copy") };
    let shape = fixed_shape(all.k(), src)?;
    all.window(dst, &shape)
}

/// Whether two statements, or one, never store an element twice.
fn once(all: &mut Windows<'_>, a: Stmt, b: Stmt) -> Option<bool> {
    let k = all.k();
    if is_marked_apart(k, a) || is_marked_apart(k, b) {
        return Some(true);
    }
    let (x, y) = (path_to(k, a), path_to(k, b));
    if a != b && exclusive(k, &x, &y) {
        return Some(true);
    }
    // Where the ways part.
    let parting = x.iter().zip(&y).position(|(p, q)| p != q).unwrap_or(x.len());
    let mut common: Vec<(Stmt, Stmt)> = loops(k, &x[..parting]).into_iter().map(|s| (s, s)).collect();
    let mut same = None;
    if parting == 0 {
        // Two roles, whose loops may have the same iterations.
        let outer = loops(k, &x).into_iter().zip(loops(k, &y)).next();
        same = outer.and_then(|(p, q)| run_alike(&mut all.forms, p, q));
        common.extend(outer.filter(|_| same.is_some()));
    }
    let mut renamed = same.map(|same| Windows::new(k, Some(same)));
    let all = renamed.as_mut().unwrap_or(all);
    let (p, q) = (&stored_window(all, a)?, &stored_window(all, b)?);
    let mut outer = Vec::new();
    for (s, _) in common {
        if !all.differ_in(s, &outer, [p, q]) {
            return Some(false);
        }
        outer.push(s);
    }
    // In one iteration of all common loops.
    let branches = |path: &[Step]| path.get(parting).map(|step| step.0);
    let sides = parting > 0
        && x.get(parting - 1).is_some_and(|&(b, i)| matches!(k.stmts[k.blocks[b][i]], StmtData::If { .. }))
        && branches(&x) != branches(&y);
    Some(a == b || sides || all.disjoint_in_iteration(&outer, [p, q]))
}

/// Whether all waits for a channel in a loop are in front of a statement.
fn waits_in_front(k: &Kernel, at: Stmt, channel: Value, before: Stmt) -> bool {
    let StmtData::For { body, .. } = k.stmts[at] else { unreachable!("it is a loop") };
    let (mut waits, mut passed, mut ok) = (false, false, true);
    k.walk(body, &mut |k, _, s| {
        passed |= s == before;
        if let StmtData::Channel { op: ChannelOp::Wait, channels, .. } = &k.stmts[s]
            && channels.contains(&channel)
        {
            waits = true;
            ok &= !passed;
        }
    });
    waits && ok
}

#[cfg(test)]
mod tests;
