//! Implicit tiles: of copies between windows, and of windows that are reduced.
//!
//! A window takes its extents from a tile in the same expression. If there is none, the windows must give the extents,
//! each at least once: `copy 2.0 * X[i * BM..+BM, j * BN..+BN] + Y[i * BM.., j * BN..] -> Z[i * BM.., j * BN..]`. This
//! is short for a register tile of these extents, into which the first window with all dimensions is loaded.
//! `write_out` inserts it in front of the statement. Operands of reductions and scans, and named windows, are such
//! tiles, too. If a tile gives the extents, a window may give the same.

use super::fill_values;
use super::window_notes::{Dim, Notes, RangeNote, Window, leaves, window};
use crate::attributes::CopyAttrs;
use crate::codes;
use crate::diag::{Diagnostic, Span, counted};
use crate::entities::{Expr, Stmt, Value};
use crate::kernel::{ExprData, Kernel, Mechanism, Range, StmtData, ValueDef};
use crate::print::print_expr;
use crate::types::{ElemRef, TileTy};
use crate::typing::{Extent, Type, join_extent, register_tile, shape_text, type_of};
use std::collections::BTreeSet;

/// What to write for a window of one element that is combined with larger ones.
const ONE_ELEMENT: &str = "an index and `_` in its place repeat the one element: `x[i.., d, _]`";

/// Writes out the tiles; returns what is wrong with what windows say. There is an error about the `failed` ones already.
pub(super) fn write_out(k: &mut Kernel, notes: &mut Notes, failed: &BTreeSet<Expr>) -> Vec<Diagnostic> {
    let mut writer = Writer { windowed: with_windows(k), notes, failed, used: BTreeSet::new(), wrong: Vec::new() };
    k.replace_statements(k.body, &mut |k, s, out| {
        writer.statement(k, s, out);
        out.push(s);
    });
    let named: BTreeSet<Expr> = k
        .statement_data()
        .filter_map(|s| if let StmtData::Let { init, .. } = s { Some(untransposed(k, *init)) } else { None })
        .collect();
    for (&e, said) in &*writer.notes {
        if said.iter().any(|said| said.extent.is_some()) && !writer.used.contains(&e) && !named.contains(&e) {
            let message = "this window says how many elements it has where something else does";
            let d = Diagnostic::error(codes::BAD_VIEW, k.expr_spans[e], message)
                .with_note("leave the extent out: `i..+n` is for copies, and for operands of reductions");
            writer.wrong.push(d.with_left_out(said.iter().find_map(|said| said.written)));
        }
    }
    writer.wrong
}

/// What `e` transposes, if it does.
fn untransposed(k: &Kernel, mut e: Expr) -> Expr {
    while let ExprData::Transpose(arg) = k.exprs[e] {
        e = arg;
    }
    e
}

struct Writer<'n> {
    notes: &'n mut Notes,
    failed: &'n BTreeSet<Expr>,
    /// Names of what is computed that have windows.
    windowed: BTreeSet<Value>,
    /// The windows whose notes have been looked at.
    used: BTreeSet<Expr>,
    wrong: Vec<Diagnostic>,
}

/// The operands that are combined element by element.
struct Parts {
    /// Windows that have no extents of their own.
    windows: Vec<(Expr, Window)>,
    /// Windows that `iota` counts in. Nothing of them is read.
    counted: Vec<(Expr, Window)>,
    /// Extents of a tile among them, of the most dimensions.
    tile: Option<Vec<Extent>>,
    /// The tiles among them.
    tiles: Vec<Expr>,
}

impl Parts {
    /// Everything that may say extents.
    fn all(&self) -> Vec<(Expr, Window)> {
        self.windows.iter().chain(&self.counted).cloned().collect()
    }
}

/// Names of what is computed that windows are taken of, and nothing is stored to.
pub(super) fn with_windows(k: &Kernel) -> BTreeSet<Value> {
    let base = |e: Expr| match &k.exprs[e] {
        ExprData::View(view) => Some(view.base),
        _ => None,
    };
    let computed = |v: Value| {
        let init = k.let_init(v).filter(|_| matches!(k.values[v].def, ValueDef::Let));
        let of_place = |e: Expr| matches!(k.exprs[e], ExprData::View(_) | ExprData::Ref(_) | ExprData::Transpose(_));
        // A name of a window is none of a tile; all of a place, transposed or not, is one.
        let is_tile = |e: Expr| !of_place(e) || matches!(type_of(k, e), Ok(Type::Tile(_)));
        init.is_some_and(|init| is_tile(init) && !matches!(k.exprs[init], ExprData::Combine(_)))
    };
    let mut found: BTreeSet<Value> = k.exprs.keys().filter_map(base).filter(|&v| computed(v)).collect();
    for s in k.statement_data() {
        if let StmtData::Copy { dst, .. } = *s
            && let Some(v) = base(dst)
        {
            found.remove(&v);
        }
    }
    found
}

impl Writer<'_> {
    /// Appends the statements that precede `s` to `front`.
    fn statement(&mut self, k: &mut Kernel, s: Stmt, front: &mut Vec<Stmt>) {
        for e in k.stmts[s].exprs() {
            self.reduced(k, e, front);
        }
        match k.stmts[s].clone() {
            StmtData::Copy { src, dst, attrs } => self.copy(k, s, (src, dst), &attrs, front),
            StmtData::Assign { dst: value, src } | StmtData::Var { value, init: Some(src) } => {
                let parts = self.parts(k, src);
                if let Some(ty) = k.tile_ty(value) {
                    let shape: Vec<Extent> = ty.shape.iter().map(|&n| Extent::of(k, n)).collect();
                    self.agree(k, &parts, &shape);
                    let assigned = matches!(k.stmts[s], StmtData::Assign { .. });
                    let like = assigned.then(|| k.value_ref(value, k.expr_spans[src]));
                    self.count_in(k, &parts, &shape, like);
                }
                // Nothing else has places that `iota` could count.
                if parts.windows.is_empty() && parts.tiles.is_empty() {
                    self.tile_among(k, src, front);
                }
            }
            // A name of a window is none of a tile; what is computed of windows is one.
            StmtData::Let { value, init } => {
                if matches!(
                    k.exprs[init],
                    ExprData::Op { .. }
                        | ExprData::Cast { .. }
                        | ExprData::Bits { .. }
                        | ExprData::Round { .. }
                        | ExprData::Iota { .. }
                ) {
                    self.tile_among(k, init, front);
                }
                // A name that has windows is a register tile.
                if self.windowed.contains(&value)
                    && let Some(tile) = register_tile(k, init)
                {
                    k.values[value].def = ValueDef::Var(tile);
                    k.stmts[s] = StmtData::Var { value, init: Some(init) };
                }
            }
            _ => {}
        }
    }

    /// The window that `e` is, if it has extents.
    fn window(&self, k: &Kernel, e: Expr) -> Option<Window> {
        window(k, self.notes, e).filter(|window| !matches!(k.values[window.base].def, ValueDef::Let))
    }

    fn parts(&mut self, k: &Kernel, e: Expr) -> Parts {
        let mut found = Vec::new();
        leaves(k, e, &mut found);
        let mut parts = Parts { windows: Vec::new(), counted: Vec::new(), tile: None, tiles: Vec::new() };
        for e in found {
            if let Some(window) = self.window(k, e) {
                parts.windows.push((e, window));
            } else if let ExprData::Iota { like, .. } = k.exprs[e]
                && let Some(window) = self.window(k, like)
            {
                parts.counted.push((like, window));
            } else if let Ok(Type::Tile(t)) = type_of(k, e) {
                parts.tiles.push(e);
                parts.tile = match parts.tile.take() {
                    Some(tile) if tile.len() > t.shape.len() => Some(tile),
                    // A row is broadcast to a matrix. The type rules check compatibility.
                    Some(tile) if tile.len() == t.shape.len() => {
                        let joined = tile.iter().zip(&t.shape).map(|(&a, &b)| join_extent(k, a, b).unwrap_or(a));
                        Some(joined.collect())
                    }
                    _ => Some(t.shape),
                };
            }
        }
        parts
    }

    /// Has `iota` count in a tile of these extents instead of a window of as many dimensions: in `like`, or in one among the parts.
    fn count_in(&self, k: &mut Kernel, parts: &Parts, extents: &[Extent], like: Option<Expr>) {
        if parts.counted.is_empty() {
            return;
        }
        let has_all = |e: Expr| match type_of(k, e) {
            Ok(Type::Tile(t)) => {
                let same = |(a, &b): (&Extent, &Extent)| a.same(k, b) == Some(true);
                t.shape.len() == extents.len() && t.shape.iter().zip(extents).all(same)
            }
            _ => false,
        };
        let among = parts.tiles.iter().copied().find(|&e| has_all(e));
        let Some(like) = like.filter(|&e| has_all(e)).or(among) else { return };
        for (e, _) in parts
            .counted
            .iter()
            .filter(|(_, window)| window.dims.len() == extents.len() && window.dims.iter().all(|dim| !dim.repeats))
        {
            let own = k.copy_expr(like);
            k.exprs[*e] = k.exprs[own].clone();
        }
    }

    /// The extents that windows give must equal those of the other operands.
    fn agree(&mut self, k: &Kernel, parts: &Parts, tile: &[Extent]) {
        for (_, window) in &parts.all() {
            self.used.extend(&window.from);
            let dims = window.dims.iter().rev().zip(tile.iter().rev());
            for (own, written, &n) in dims.filter_map(|(dim, n)| Some((dim.extent?, dim.written, n))) {
                if own.same(k, n) != Some(true) {
                    let (note, left_out) = match own.known() {
                        Some(1) => (ONE_ELEMENT, None),
                        _ => ("leave the extent out: a window has as many elements as the other tile", written),
                    };
                    let (own, n) = (shape_text(k, &[own]), shape_text(k, &[n]));
                    let message = format!("this window has {own} elements, the tile on the other side {n}");
                    let span = window.from.first().map_or(Span::default(), |&e| k.expr_spans[e]);
                    let d = Diagnostic::error(codes::SHAPE_MISMATCH, span, message).with_note(note);
                    self.wrong.push(d.with_left_out(left_out));
                }
            }
        }
    }

    /// The extents that windows give, with those already known; `None` if they contradict.
    fn extents(
        &mut self,
        k: &Kernel,
        windows: &[(Expr, Window)],
        mut extents: Vec<Option<Extent>>,
        span: Span,
    ) -> Option<Vec<Option<Extent>>> {
        let rank = extents.len();
        for (_, window) in windows {
            let front = rank.checked_sub(window.dims.len())?;
            self.used.extend(&window.from);
            for (all, dim) in extents[front..].iter_mut().zip(&window.dims) {
                match (*all, dim.given_extent()) {
                    (Some(a), Some(b)) if a.same(k, b) != Some(true) => {
                        let note = match [a, b].into_iter().any(|n| n.known() == Some(1)) {
                            true => ONE_ELEMENT,
                            false => "one of them says it for all: leave the other extent out",
                        };
                        let (a, b) = (shape_text(k, &[a]), shape_text(k, &[b]));
                        let message = format!("windows that are combined say {a} and {b} elements");
                        self.wrong.push(Diagnostic::error(codes::SHAPE_MISMATCH, span, message).with_note(note));
                        // There is an error about these windows already.
                        self.used.extend(windows.iter().flat_map(|(_, window)| &window.from));
                        return None;
                    }
                    (None, Some(n)) => *all = Some(n),
                    _ => {}
                }
            }
        }
        // A window of a whole buffer or register tile has its extents, if no other extents are given.
        for (_, window) in windows {
            let front = rank.checked_sub(window.dims.len())?;
            for (all, dim) in extents[front..].iter_mut().zip(&window.dims) {
                *all = all.or(dim.all.filter(|_| !dim.repeats));
            }
        }
        Some(extents)
    }

    fn copy(&mut self, k: &mut Kernel, s: Stmt, (src, dst): (Expr, Expr), attrs: &CopyAttrs, front: &mut Vec<Stmt>) {
        let span = k.stmt_spans[s];
        let mut parts = self.parts(k, src);
        let Some(to) = self.window(k, dst) else {
            if let Ok(Type::Tile(t)) = type_of(k, dst) {
                self.agree(k, &parts, &t.shape);
                self.count_in(k, &parts, &t.shape, Some(dst));
                // A broadcast operand has no extents, but a window next to it has all.
                let repeats = parts.tile.as_ref().is_some_and(|tile| is_narrower(tile, &t.shape));
                if let Some(loaded) =
                    whole(&parts.windows, t.shape.len()).filter(|_| repeats && *attrs == CopyAttrs::default())
                {
                    front.extend(self.tile_of(k, loaded, &t.shape, CopyAttrs::default(), span));
                }
            }
            return;
        };
        let rank = to.dims.len();
        if let Some((e, window)) = parts.all().iter().find(|(_, window)| window.dims.len() > rank) {
            self.wrong.push(too_few(k, (*e, window.dims.len()), (dst, rank)));
            self.used.extend(parts.all().iter().flat_map(|(_, window)| &window.from).chain(&to.from));
            return;
        }
        let tile = parts.tile.take();
        let is_larger =
            |tile: &Vec<Extent>| larger(&to, tile) || parts.all().iter().any(|(_, window)| larger(window, tile));
        // A variable whose elements go where one index of a row says has all of them already.
        let is_variable = matches!(k.exprs[src], ExprData::Ref(v) if matches!(k.values[v].def, ValueDef::Var(_)));
        let by_index = |dim: &Dim| dim.extent.is_none() && dim.gathered.is_some_and(|n| n.known() == Some(1));
        let has_all = is_variable && parts.all().is_empty() && to.dims.iter().any(by_index);
        let has_all = has_all && to.dims.iter().all(|dim| dim.extent.is_none());
        if let Some(tile) = tile.as_ref().filter(|&tile| has_all || !is_larger(tile)) {
            parts.windows.push((dst, to));
            self.agree(k, &parts, tile);
            self.count_in(k, &parts, tile, None);
            return;
        }
        let elem = k.values[to.base].def.elem();
        parts.windows.insert(0, (dst, to));
        let only_windows = tile.is_none();
        let known = tile.map_or_else(|| vec![None; rank], |tile| without_repeats(&tile));
        let (Some(given), Some(elem)) = (self.extents(k, &parts.all(), known, span), elem) else { return };
        let Some(extents) = given.iter().copied().collect::<Option<Vec<Extent>>>() else {
            if only_windows && !parts.windows.iter().any(|(_, window)| window.is_among(self.failed)) {
                self.wrong.extend(partly_given(k, self.notes, &parts.windows, &given));
            }
            return;
        };
        if rank == 0 {
            return;
        }
        parts.windows.remove(0);
        if let Some(loaded) = whole(&parts.windows, rank) {
            let load = loading(k, attrs, loaded, loaded == src);
            front.extend(self.tile_of(k, loaded, &extents, load, span));
            self.count_in(k, &parts, &extents, Some(loaded));
            let mut store = attrs.clone();
            if loaded == src {
                store.fill = None;
                if matches!(store.mechanism, Mechanism::Words { .. }) {
                    store.mechanism = Mechanism::Registers;
                }
            }
            k.stmts[s] = StmtData::Copy { src, dst, attrs: store };
            return;
        }
        // Nothing has all of the elements: numbers, and what repeats.
        let shape = shape(k, &extents, span);
        let value = k.value("tile", span, ValueDef::Var(TileTy::registers(elem, shape, None)));
        let tile = k.value_ref(value, span);
        self.count_in(k, &parts, &extents, Some(tile));
        if parts.windows.is_empty() && parts.counted.is_empty() {
            front.push(k.stmt(StmtData::Var { value, init: Some(src) }, span));
        } else {
            front.push(k.stmt(StmtData::Var { value, init: None }, span));
            let attrs = loading(k, attrs, src, false);
            front.push(k.stmt(StmtData::Copy { src, dst: tile, attrs }, span));
        }
        let src = k.value_ref(value, span);
        k.stmts[s] = StmtData::Copy { src, dst, attrs: attrs.clone() };
    }

    /// Windows that are reduced or scanned inside of `e` are tiles.
    fn reduced(&mut self, k: &mut Kernel, e: Expr, front: &mut Vec<Stmt>) {
        for child in k.children(e) {
            self.reduced(k, child, front);
        }
        match &k.exprs[e] {
            ExprData::Reduce { arg, .. } | ExprData::Scan { arg, .. } => {
                let arg = *arg;
                self.tile_among(k, arg, front);
            }
            ExprData::Combine(combine) => {
                for arg in combine.args.clone() {
                    self.tile_among(k, arg, front);
                }
            }
            // What is computed is transposed as a whole. The transpose of a window is a window.
            &ExprData::Transpose(arg) if self.window(k, arg).is_none() => {
                self.tile_among(k, arg, front);
                self.placed(k, arg, front);
            }
            _ => {}
        }
    }

    /// Gathered windows, and windows with a step, become separate tiles next to a tile: copies load them.
    fn placed(&mut self, k: &mut Kernel, arg: Expr, front: &mut Vec<Stmt>) {
        let parts = self.parts(k, arg);
        let Some(tile) = &parts.tile else { return };
        let steps = |said: &Vec<RangeNote>| said.iter().any(|said| said.step.is_some());
        for (e, window) in &parts.windows {
            let gathers = window.dims.iter().any(|dim| dim.gathered.is_some());
            if !gathers && !self.notes.get(e).is_some_and(steps) || window.dims.len() != tile.len() {
                continue;
            }
            let own = window.dims.iter().zip(tile);
            let extents: Vec<Extent> = own
                .map(|(dim, &n)| if dim.repeats { Extent::Known(1) } else { dim.given_extent().unwrap_or(n) })
                .collect();
            front.extend(self.tile_of(k, *e, &extents, CopyAttrs::default(), k.expr_spans[*e]));
        }
    }

    /// If no part of `arg` gives extents, a window among the parts becomes a tile that does.
    fn tile_among(&mut self, k: &mut Kernel, arg: Expr, front: &mut Vec<Stmt>) {
        let parts = self.parts(k, arg);
        let rank = parts.all().iter().map(|(_, window)| window.dims.len()).max().unwrap_or(0);
        let known = match &parts.tile {
            Some(tile) if !parts.all().iter().any(|(_, window)| larger(window, tile)) => {
                self.agree(k, &parts, tile);
                self.count_in(k, &parts, tile, None);
                return;
            }
            Some(tile) => without_repeats(tile),
            None => vec![None; rank],
        };
        let span = k.expr_spans[arg];
        let extents = self.extents(k, &parts.all(), known, span).map(|all| all.into_iter().collect());
        let Some(extents): Option<Vec<Extent>> = extents.flatten() else { return };
        if let Some(loaded) = whole(&parts.windows, rank).filter(|_| rank > 0) {
            front.extend(self.tile_of(k, loaded, &extents, CopyAttrs::default(), span));
            self.count_in(k, &parts, &extents, Some(loaded));
        } else if let Some(like) = whole(&parts.counted, rank).filter(|_| rank > 0) {
            // Its elements are places alone.
            let shape = shape(k, &extents, span);
            let tile = TileTy::registers(type_of_window(k, like), shape, None);
            let value = k.value("tile", span, ValueDef::Var(tile));
            let zero = k.int(0, span);
            front.push(k.stmt(StmtData::Var { value, init: Some(zero) }, span));
            let like = k.value_ref(value, span);
            self.count_in(k, &parts, &extents, Some(like));
        }
    }

    /// Has the window `e` be a register tile, and returns what declares and loads that.
    fn tile_of(&mut self, k: &mut Kernel, e: Expr, extents: &[Extent], attrs: CopyAttrs, span: Span) -> [Stmt; 2] {
        let (load, src) = tile_of_window(k, self.notes, e, "tile", extents, attrs, span);
        if self.notes.contains_key(&src) {
            self.used.insert(src);
        }
        load
    }
}

/// Has the window `e` be a register tile; returns what declares and loads that, and the window that is loaded.
pub(super) fn tile_of_window(
    k: &mut Kernel,
    notes: &mut Notes,
    e: Expr,
    name: &str,
    extents: &[Extent],
    attrs: CopyAttrs,
    span: Span,
) -> ([Stmt; 2], Expr) {
    let elem = type_of_window(k, e);
    let shape = shape(k, extents, span);
    let value = k.value(name, span, ValueDef::Var(TileTy::registers(elem, shape, None)));
    let src = k.exprs[e].clone();
    let src = k.expr(src, k.expr_spans[e]);
    if let Some(said) = notes.remove(&e) {
        notes.insert(src, said);
    }
    let dst = k.value_ref(value, span);
    k.exprs[e] = ExprData::Ref(value);
    ([k.stmt(StmtData::Var { value, init: None }, span), k.stmt(StmtData::Copy { src, dst, attrs }, span)], src)
}

/// The message for a window that is stored to a window of lower rank.
fn too_few(k: &Kernel, (src, from): (Expr, usize), (dst, rank): (Expr, usize)) -> Diagnostic {
    let message = format!("{} are stored into a window of {}", counted(from, "dimension"), counted(rank, "dimension"));
    Diagnostic::error(codes::SHAPE_MISMATCH, k.expr_spans[dst], message)
        .with_label(format!("has {}", counted(rank, "dimension")))
        .with_place(k.expr_spans[src], format!("has {}", counted(from, "dimension")))
        .with_note("an index in place of a range leaves a dimension out: `A[i, j..]`")
}

/// An error for windows that are copied to one another (the first is stored to), and give extents along some dimensions only.
fn partly_given(k: &Kernel, notes: &Notes, windows: &[(Expr, Window)], given: &[Option<Extent>]) -> Option<Diagnostic> {
    let (rank, missing) = (given.len(), given.iter().position(Option::is_none)?);
    windows.iter().flat_map(|(_, window)| &window.dims).find(|dim| dim.extent.is_some())?;
    let (stored, read) = windows.split_first()?;
    let open = read.iter().chain([stored]).find_map(|(e, window)| {
        let d = (missing + window.dims.len()).checked_sub(rank)?;
        open_range(k, notes, *e, window, d)
    });
    let message = format!("the {} dimension of this copy has no extent", ordinal(missing));
    let span = open.as_ref().map_or(k.expr_spans[stored.0], |(span, _)| *span);
    let written = open.map_or_else(|| "0..".to_owned(), |(_, start)| format!("{start}.."));
    let note =
        format!("each dimension needs an extent in one of the windows: write `{written}+128` here for 128 elements");
    Some(Diagnostic::error(codes::NO_EXTENTS, span, message).with_note(note))
}

/// The range of a window's dimension that has a start alone, and the text of that start: nothing for `..`.
pub(super) fn open_range(k: &Kernel, notes: &Notes, e: Expr, window: &Window, d: usize) -> Option<(Span, String)> {
    let ExprData::View(view) = &k.exprs[e] else { return None };
    if window.from != [e] || view.ranges.iter().any(|range| matches!(range, Range::Gather(_))) {
        return None;
    }
    // An index leaves its dimension out.
    let mut ranges = view.ranges.iter().enumerate().filter(|(_, range)| matches!(range, Range::From { .. }));
    let (at, &Range::From { start, end: None }) = ranges.nth(d)? else { return None };
    let open = match notes.get(&e) {
        Some(said) => said[at].open?,
        // A window without notes has starts and ends alone.
        None => Span { start: k.expr_spans[start].start, end: k.expr_spans[start].end + 2 },
    };
    let bare = open.end - open.start <= 2;
    Some((open, if bare { String::new() } else { print_expr(k, start) }))
}

fn ordinal(d: usize) -> &'static str {
    ["first", "second", "third", "fourth", "fifth"].get(d).copied().unwrap_or("last")
}

/// Whether a window gives its extent along a dimension along which the tile next to it has extent 1. A given extent of
/// 1 is written out, too, because the text without it would be an error ([`super::inferred_extents`]).
fn larger(window: &Window, tile: &[Extent]) -> bool {
    let mut dims = window.dims.iter().zip(tile);
    window.dims.len() == tile.len()
        && dims.any(|(dim, n)| n.known() == Some(1) && !dim.repeats && dim.given_extent().is_some())
}

/// Whether a tile has one element along a dimension of which another has several.
fn is_narrower(tile: &[Extent], than: &[Extent]) -> bool {
    let mut dims = tile.iter().zip(than);
    tile.len() == than.len() && dims.any(|(a, b)| a.known() == Some(1) && b.known() != Some(1))
}

/// The extents of a tile, but for those along which it repeats.
fn without_repeats(tile: &[Extent]) -> Vec<Option<Extent>> {
    tile.iter().map(|&n| Some(n).filter(|n| n.known() != Some(1))).collect()
}

/// The first window that has all dimensions.
fn whole(windows: &[(Expr, Window)], rank: usize) -> Option<Expr> {
    let full = |window: &Window| window.dims.len() == rank && window.dims.iter().all(|dim| !dim.repeats);
    windows.iter().find(|(_, window)| full(window)).map(|&(e, _)| e)
}

/// How a copy with these attributes loads the tile of `src`, which is all of what it copies (`alone`) or a part of that.
pub(super) fn loading(k: &mut Kernel, attrs: &CopyAttrs, src: Expr, alone: bool) -> CopyAttrs {
    // Only tensors have bounds.
    let bounded = fill_values::reads_tensors(k, src);
    let mechanism = match attrs.mechanism {
        words @ Mechanism::Words { .. } if alone => words,
        _ => Mechanism::Registers,
    };
    CopyAttrs {
        vec: attrs.vec,
        check: attrs.check.clone().filter(|_| bounded),
        when: attrs.when.filter(|_| bounded).map(|when| k.copy_expr(when)),
        fill: attrs.fill.filter(|_| alone),
        mechanism,
        ..CopyAttrs::default()
    }
}

fn shape(k: &mut Kernel, extents: &[Extent], span: Span) -> Vec<Expr> {
    let extent = |n: &Extent| match *n {
        Extent::Known(n) => k.int(n as i64, span),
        Extent::Sym(e) => k.copy_expr(e),
    };
    extents.iter().map(extent).collect()
}

fn type_of_window(k: &Kernel, e: Expr) -> ElemRef {
    let base = match &k.exprs[e] {
        ExprData::Transpose(arg) => return type_of_window(k, *arg),
        ExprData::Ref(v) => *v,
        ExprData::View(view) => view.base,
        _ => unreachable!("a window is a name or a view"),
    };
    match k.values[base].def {
        ValueDef::Let => type_of_window(k, k.let_init(base).expect("a name of a window has one")),
        ref def => def.elem().expect("what has windows has elements"),
    }
}
