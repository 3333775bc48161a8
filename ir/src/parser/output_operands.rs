//! Operands of a copy that are other windows of the tensor that it writes: `copy y + X[1..] -> X[..]`.
//!
//! A copy reads all of its operands before it writes, but each thread stores its elements as soon as it has them. If the
//! window that is read is the one that is written, no other thread reads these elements. Any other window of that tensor
//! becomes a register tile, which a statement of its own loads in front of the copy:
//!
//! ```text
//! var X_first = reg f32[128]
//! copy X[1..] -> X_first
//! copy y + X_first -> X[..]
//! ```
//!
//! So barriers can order the loads before the stores. Windows that a named value reads are loaded at its `let`.

use super::implicit_tiles::{loading, tile_of_window};
use super::window_notes::{Notes, leaves, window};
use crate::attributes::CopyAttrs;
use crate::entities::{Expr, Stmt, Value};
use crate::kernel::{ExprData, Kernel, Range, StmtData, ValueDef, View};
use crate::typing::{Extent, Type, join_extent, let_init, same_expr, type_of};
use std::collections::{BTreeMap, BTreeSet};

/// Writes out the tiles.
pub(super) fn write_out(k: &mut Kernel, notes: &mut Notes) {
    let mut racing: BTreeMap<Stmt, Racing> = BTreeMap::new();
    let mut lets: BTreeMap<Value, Stmt> = BTreeMap::new();
    k.walk(k.body, &mut |k, _, s| match &k.stmts[s] {
        StmtData::Let { value, .. } => {
            lets.insert(*value, s);
        }
        StmtData::Copy { src, dst, attrs } => {
            for to in [Some(*dst), attrs.old].into_iter().flatten() {
                let search = Search { notes, lets: &lets, written: to, combines: attrs.reduce.is_some() };
                search.operands(k, s, (*src, false), &mut racing);
            }
        }
        _ => {}
    });
    if racing.is_empty() {
        return;
    }
    k.replace_statements(k.body, &mut |k, s, out| {
        for (&e, inside) in racing.get(&s).into_iter().flatten() {
            out.extend(load(k, notes, s, e, inside).into_iter().flatten());
        }
        out.push(s);
    });
}

/// Windows that are loaded in front of a statement, each with the transposed operands around it, the innermost last.
type Racing = BTreeMap<Expr, Vec<Expr>>;

/// Declares and loads the tile of a window that the statement `s` reads. `None`: no operand has extents, which is an error
/// of its own (E0225).
fn load(k: &mut Kernel, notes: &mut Notes, s: Stmt, e: Expr, inside: &[Expr]) -> Option<[Stmt; 2]> {
    let (whole, attrs) = match &k.stmts[s] {
        StmtData::Copy { src, attrs, .. } => (*src, Some(attrs.clone())),
        StmtData::Let { init, .. } => (*init, None),
        _ => return None,
    };
    let tile = inside.iter().fold(extents_of(k, notes, whole), |around, &arg| {
        let transposed = |mut tile: Vec<Extent>| {
            let last = tile.len().checked_sub(2)?;
            tile[last..].reverse();
            Some(tile)
        };
        extents_of(k, notes, arg).or_else(|| transposed(around?))
    })?;
    let window = window(k, notes, e).filter(|window| window.dims.len() == tile.len())?;
    let own = window.dims.iter().zip(&tile);
    let extents: Vec<Extent> =
        own.map(|(dim, &n)| if dim.repeats { Extent::Known(1) } else { dim.given_extent().unwrap_or(n) }).collect();
    // A written width is that of the store.
    let attrs = attrs.map_or_else(CopyAttrs::default, |attrs| CopyAttrs { vec: None, ..loading(k, &attrs, e, false) });
    let name = format!("{}_first", k.values[window.base].name);
    let (load, _) = tile_of_window(k, notes, e, &name, &extents, attrs, k.expr_spans[e]);
    Some(load)
}

/// The extents of what is computed, of the tiles among its operands. Gathered windows have no types yet.
fn extents_of(k: &Kernel, notes: &Notes, e: Expr) -> Option<Vec<Extent>> {
    if let Ok(ty) = type_of(k, e) {
        return if let Type::Tile(tile) = ty { Some(tile.shape) } else { None };
    }
    let mut found = Vec::new();
    leaves(k, e, &mut found);
    let own = |&leaf: &Expr| match k.exprs[leaf] {
        _ if window(k, notes, leaf).is_some() => None,
        ExprData::Ref(v) if matches!(k.values[v].def, ValueDef::Let) => extents_of(k, notes, let_init(k, v)?),
        _ if leaf == e => None,
        _ => extents_of(k, notes, leaf),
    };
    found.iter().filter_map(own).fold(None, |all, tile| match all {
        Some(all) if all.len() > tile.len() => Some(all),
        Some(all) if all.len() == tile.len() => {
            Some(all.iter().zip(&tile).map(|(&a, &b)| join_extent(k, a, b).unwrap_or(a)).collect())
        }
        _ => Some(tile),
    })
}

/// Ranges of a window, each with its step.
type Stepped = Vec<(Range, Option<Expr>)>;

/// What a copy reads of the tensor that it writes.
struct Search<'a> {
    notes: &'a Notes,
    /// Where names are declared.
    lets: &'a BTreeMap<Value, Stmt>,
    /// The window that is written.
    written: Expr,
    /// Whether elements are combined in memory: several threads may then write one.
    combines: bool,
}

impl Search<'_> {
    /// Notes the windows among the operands of `e` that other threads may write, by the statement that contains them.
    /// `flipped`: the value of `e` is transposed before it is written.
    fn operands(&self, k: &Kernel, s: Stmt, (e, flipped): (Expr, bool), racing: &mut BTreeMap<Stmt, Racing>) {
        let Some(to) = window(k, self.notes, self.written).filter(|to| k.tensor_ty(to.base).is_some()) else { return };
        let (mut open, mut seen) = (vec![(s, e, flipped, Vec::new())], BTreeSet::new());
        while let Some((s, e, flipped, inside)) = open.pop() {
            let mut found = Vec::new();
            leaves(k, e, &mut found);
            for leaf in found {
                if let Some(from) = window(k, self.notes, leaf) {
                    if from.base == to.base && !from.dims.is_empty() && !self.is_written(k, (leaf, flipped)) {
                        racing.entry(s).or_default().insert(leaf, inside.clone());
                    }
                } else if let ExprData::Ref(v) = k.exprs[leaf]
                    && let (Some(&at), Some(init)) = (self.lets.get(&v), let_init(k, v))
                    && seen.insert((v, flipped))
                {
                    open.push((at, init, flipped, Vec::new()));
                } else if let ExprData::Transpose(arg) = k.exprs[leaf] {
                    let around = inside.iter().copied().chain([arg]);
                    open.push((s, arg, !flipped, around.collect()));
                }
            }
        }
    }

    /// Whether the elements of the window `e` are those that are written, at the same places. `flipped`: after they are
    /// transposed.
    fn is_written(&self, k: &Kernel, (e, flipped): (Expr, bool)) -> bool {
        let (Some((from, named, turned)), Some((to, also_named, also_turned))) = (place(k, e), place(k, self.written))
        else {
            return false;
        };
        if (turned != also_turned) != flipped {
            return false;
        }
        let (a, b) = (self.ranges(k, from), self.ranges(k, to));
        let whole = |ranges: &[(Range, Option<Expr>)]| {
            ranges.iter().all(|(range, step)| {
                step.is_none() && matches!(*range, Range::From { start, .. } if k.as_int(start) == Some(0))
            })
        };
        let (Some((base, a)), Some((other, b))) = (a, b) else { return false };
        if base != other {
            return false;
        }
        if whole(&a) && whole(&b) {
            return true;
        }
        // A name stands for what its ranges were where it was declared.
        let same = |a: Expr, b: Expr| same_expr(k, a, b) && !((named || also_named) && reads_variable(k, a));
        a.len() == b.len()
            && a.iter().zip(&b).all(|((a, step), (b, other))| {
                let apart = match (step, other) {
                    (None, None) => true,
                    (Some(step), Some(other)) => same(*step, *other),
                    _ => false,
                };
                apart
                    && match (*a, *b) {
                        (Range::From { start: a, .. }, Range::From { start: b, .. }) => same(a, b),
                        (Range::At(a), Range::At(b)) | (Range::Gather(a), Range::Gather(b)) => {
                            // Two of its numbers may be equal.
                            let several = self.combines && matches!(type_of(k, a), Ok(Type::Tile(_)));
                            same(a, b) && !several
                        }
                        _ => false,
                    }
            })
    }

    /// The ranges of a window of what has this name, with their steps; all of it has none.
    fn ranges(&self, k: &Kernel, e: Expr) -> Option<(Value, Stepped)> {
        match &k.exprs[e] {
            ExprData::Ref(v) => Some((*v, Vec::new())),
            ExprData::View(View { base, slot: None, ranges }) => {
                let said = self.notes.get(&e);
                let step = |d: usize| said.and_then(|said| said[d].step);
                Some((*base, ranges.iter().enumerate().map(|(d, range)| (*range, step(d))).collect()))
            }
            _ => None,
        }
    }
}

/// The window or tensor that `e` is or stands for, whether as a name, and whether transposed.
fn place(k: &Kernel, e: Expr) -> Option<(Expr, bool, bool)> {
    let (mut at, mut named, mut turned) = (e, false, false);
    loop {
        match k.exprs[at] {
            ExprData::Ref(v) if matches!(k.values[v].def, ValueDef::Let) => (at, named) = (let_init(k, v)?, true),
            ExprData::Transpose(arg) => (at, turned) = (arg, !turned),
            ExprData::Ref(_) | ExprData::View(_) => return Some((at, named, turned)),
            _ => return None,
        }
    }
}

/// Whether an index is computed of a register variable.
fn reads_variable(k: &Kernel, e: Expr) -> bool {
    match k.exprs[e] {
        ExprData::Ref(v) if matches!(k.values[v].def, ValueDef::Var(_)) => true,
        _ => k.children(e).into_iter().any(|child| reads_variable(k, child)),
    }
}
