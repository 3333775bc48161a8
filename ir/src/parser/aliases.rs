//! Names of buffers, transposed or not, that have windows: `let v = transpose(s)`, `copy v[8.., ..] -> x`.
//!
//! Such a name stands for what the buffer holds at the `let`. If nothing is stored to the buffer up to the last use of
//! the name, its windows are windows of the buffer itself. `write_out` writes them as such: `copy transpose(s[.., 8..])
//! -> x`. So no element moves. Otherwise the name becomes a register tile ([`super::implicit_tiles`]). Windows of a
//! register variable are written the same way if it is not transposed.

use super::window_notes::Notes;
use crate::entities::{Block, Expr, Stmt, Value};
use crate::kernel::{ExprData, Kernel, Range, Slot, StmtData, ValueDef, View};
use crate::typing::resolve_view;
use std::collections::{BTreeMap, BTreeSet};

/// Has windows of names be windows of what is named.
pub(super) fn write_out(k: &mut Kernel, notes: &mut Notes) {
    let mut views: BTreeMap<Value, Vec<Expr>> = BTreeMap::new();
    for (e, data) in k.exprs.iter() {
        if let ExprData::View(view) = data
            && matches!(k.values[view.base].def, ValueDef::Let)
        {
            views.entry(view.base).or_default().push(e);
        }
    }
    if views.is_empty() {
        return;
    }
    let mut stored: BTreeSet<Value> = BTreeSet::new();
    for s in k.statement_data() {
        if let StmtData::Copy { dst, .. } = *s
            && let ExprData::View(view) = &k.exprs[dst]
        {
            stored.insert(view.base);
        }
    }
    let mut found = Vec::new();
    blocks(k, k.body, &mut |k, block| {
        for (at, &s) in k.blocks[block].iter().enumerate() {
            if let StmtData::Let { value, init } = k.stmts[s]
                && let Some(own) = views.get(&value).filter(|_| !stored.contains(&value))
                && let Some(place) = Named::of(k, init)
                && own.iter().all(|&e| place.has(k, notes, e))
                && place.keeps(k, value, &k.blocks[block][at + 1..])
            {
                found.push((value, place, own.clone()));
            }
        }
    });
    for (_, place, views) in &found {
        views.iter().for_each(|&e| place.write(k, notes, e));
    }
    // Names that had windows alone are read by nothing now.
    let mut read = BTreeSet::new();
    k.statement_data().flat_map(StmtData::exprs).for_each(|e| names(k, e, &mut read));
    let unread: BTreeSet<Value> = found.iter().map(|&(value, ..)| value).filter(|v| !read.contains(v)).collect();
    for stmts in k.blocks.values_mut() {
        stmts.retain(|&s| !matches!(k.stmts[s], StmtData::Let { value, .. } if unread.contains(&value)));
    }
}

fn blocks(k: &Kernel, block: Block, f: &mut impl FnMut(&Kernel, Block)) {
    f(k, block);
    for &s in &k.blocks[block] {
        k.sub_blocks(s).into_iter().for_each(|b| blocks(k, b, f));
    }
}

/// The definition of a name: a whole buffer, slot or register variable.
struct Named {
    base: Value,
    slot: Option<Slot>,
    transposed: bool,
}

impl Named {
    fn of(k: &Kernel, init: Expr) -> Option<Named> {
        let (mut e, mut transposed) = (init, false);
        while let ExprData::Transpose(arg) = k.exprs[e] {
            (e, transposed) = (arg, !transposed);
        }
        let (base, slot) = match &k.exprs[e] {
            ExprData::Ref(v) => (*v, None),
            ExprData::View(view) if view.ranges.is_empty() => (view.base, view.slot),
            _ => return None,
        };
        let rank = k.tile_ty(base)?.shape.len();
        let named = match k.values[base].def {
            ValueDef::Smem(_) => true,
            ValueDef::Channel { .. } => slot.is_some(),
            // Its elements move between threads: once, not for each window.
            ValueDef::Var(_) => !transposed,
            _ => false,
        };
        (named && rank > 0 && (rank == 2 || !transposed)).then_some(Named { base, slot, transposed })
    }

    /// Whether the window `e` of the name is one of the place.
    fn has(&self, k: &Kernel, notes: &Notes, e: Expr) -> bool {
        let ExprData::View(view) = &k.exprs[e] else { return false };
        let rank = k.tile_ty(self.base).map_or(0, |ty| ty.shape.len());
        let repeats = notes.get(&e).is_some_and(|said| said.iter().any(|said| said.repeats));
        view.slot.is_none() && view.ranges.len() == rank && !(repeats && self.transposed)
    }

    /// Whether the place does not change in `rest`, which follows the name, up to the last statement that uses `name`.
    fn keeps(&self, k: &Kernel, name: Value, rest: &[Stmt]) -> bool {
        let uses = |s: Stmt| {
            let mut read = BTreeSet::new();
            k.stmts[s].exprs().into_iter().for_each(|e| names(k, e, &mut read));
            read.contains(&name)
        };
        let last = rest.iter().rposition(|&s| statements(k, s).into_iter().any(uses));
        let until = last.map_or(0, |last| last + 1);
        !rest[..until].iter().any(|&s| statements(k, s).into_iter().any(|s| self.changes(k, s)))
    }

    fn changes(&self, k: &Kernel, s: Stmt) -> bool {
        let is_place = |e: Expr| resolve_view(k, e).is_some_and(|view| view.base == self.base);
        match &k.stmts[s] {
            StmtData::Assign { dst, .. } => *dst == self.base,
            StmtData::Copy { dst, attrs, .. } => is_place(*dst) || attrs.old.is_some_and(is_place),
            // It may reuse the memory.
            StmtData::Alloc { value, over } => {
                over.contains(&self.base) || k.shared_places[*value].is_some() && k.shared_places[self.base].is_some()
            }
            StmtData::Channel { channels, .. } => channels.contains(&self.base),
            _ => false,
        }
    }

    /// Writes the window `e` of the name as one of the place.
    fn write(&self, k: &mut Kernel, notes: &mut Notes, e: Expr) {
        let ExprData::View(view) = k.exprs[e].clone() else { unreachable!("windows were collected") };
        let mut ranges = view.ranges;
        let mut said = notes.remove(&e);
        if self.transposed {
            ranges.reverse();
            said.iter_mut().for_each(|said| said.reverse());
        }
        let kept = ranges.iter().filter(|range| !matches!(range, Range::At(_))).count();
        let window = ExprData::View(View { base: self.base, slot: self.slot, ranges });
        let own = if self.transposed && kept == 2 {
            let own = k.expr(window, k.expr_spans[e]);
            k.exprs[e] = ExprData::Transpose(own);
            own
        } else {
            k.exprs[e] = window;
            e
        };
        said.into_iter().for_each(|said| _ = notes.insert(own, said));
    }
}

/// A statement, and those inside of it.
fn statements(k: &Kernel, s: Stmt) -> Vec<Stmt> {
    let mut found = vec![s];
    let mut at = 0;
    while let Some(&s) = found.get(at) {
        found.extend(k.sub_blocks(s).into_iter().flat_map(|b| k.blocks[b].iter().copied()));
        at += 1;
    }
    found
}

/// The names that an expression reads.
fn names(k: &Kernel, e: Expr, read: &mut BTreeSet<Value>) {
    if let ExprData::Ref(v) | ExprData::View(View { base: v, .. }) = k.exprs[e] {
        read.insert(v);
    }
    k.children(e).into_iter().for_each(|child| names(k, child, read));
}
