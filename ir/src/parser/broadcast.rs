//! Operands of different rank: `x + v` with `x: reg f32[64, 32]` and `v: reg f32[32]`, and `v[_, ..]`, `scale[.., _]`.
//!
//! Operands of an operator align at their last dimensions, like windows of tensors ([`super::broadcast_vectors`]). An
//! operand of lower rank is broadcast along the missing dimensions. `_` in a window of a register tile or a buffer is a
//! dimension of extent 1 at that place. Both are short for a register tile with these dimensions:
//!
//! ```text
//! var v_widened = reg f32[1, 32]
//! copy v -> v_widened[0, 0..]
//! .. x + v_widened ..
//! ```
//!
//! If layouts allow it, this tile is in the registers of `v`. `write_out` inserts it in front of the statement; for a
//! copy to `v[_, ..]`, after it. Reshaped tiles, `reshape(x, [16, 4])`, and `concat(a, b, 1)` become such tiles, too.
//! So does a named window of a register tile or a buffer with explicit extents: `let low = x[.., 0..+16]`.

mod concat;
mod looked_up;
mod tile_operands;

use super::fill_values;
use super::implicit_tiles::with_windows;
use super::window_notes::{Notes, RangeNote, leaves, window};
use crate::attributes::CopyAttrs;
use crate::codes;
use crate::diag::Diagnostic;
use crate::entities::{Expr, Stmt, Value};
use crate::kernel::{ExprData, Kernel, Range, StmtData, ValueDef, View};
use crate::space::Space;
use crate::types::{ElemRef, TileTy};
use crate::typing::{Extent, Type, resolve_view, type_of};
use std::collections::BTreeSet;

/// Writes out the tiles; returns what cannot be.
pub(super) fn write_out(k: &mut Kernel, notes: &mut Notes) -> Vec<Diagnostic> {
    let windowed = with_windows(k);
    let mut writer =
        Writer { windowed, notes, front: Vec::new(), named: Vec::new(), target: None, load: None, wrong: Vec::new() };
    k.replace_statements(k.body, &mut |k, s, out| {
        let behind = writer.statement(k, s);
        writer.named.clear();
        out.append(&mut writer.front);
        out.push(s);
        out.extend(behind);
    });
    writer.wrong
}

/// Whether windows of `v` may have additional dimensions of extent 1: a register tile, a buffer, or a name of a tile.
pub(super) fn takes_dimensions(k: &Kernel, v: Value) -> bool {
    match k.values[v].def {
        ValueDef::Var(_) | ValueDef::Smem(_) | ValueDef::Channel { .. } => true,
        ValueDef::Let => {
            let init = k.let_init(v);
            matches!(init.map(|init| type_of(k, init)), Some(Ok(Type::Tile(_))))
        }
        _ => false,
    }
}

struct Writer<'n> {
    /// Names of what is computed that have windows.
    windowed: BTreeSet<Value>,
    notes: &'n mut Notes,
    /// What is in front of the statement.
    front: Vec<Stmt>,
    /// What has been given dimensions in front of it: the expression as it was, how many, and the tile.
    named: Vec<(ExprData, usize, Value)>,
    /// The extents of the tile that the statement sets, for its expression.
    target: Option<Vec<Extent>>,
    /// For a copy with `fill` or `when`, how the windows of tensors in it are loaded.
    load: Option<CopyAttrs>,
    wrong: Vec<Diagnostic>,
}

impl Writer<'_> {
    /// Returns what is after the statement.
    fn statement(&mut self, k: &mut Kernel, s: Stmt) -> Vec<Stmt> {
        self.target = target_extents(k, s);
        match k.stmts[s].clone() {
            StmtData::Let { value, init } if self.named_window(k, s, value, init) => {}
            StmtData::Let { value, init }
                if matches!(
                    k.exprs[init],
                    ExprData::Reshape { .. } | ExprData::Permute { .. } | ExprData::Concat { .. }
                ) =>
            {
                self.aligned(k, &[init]);
                self.named_shape(k, s, value, init);
            }
            StmtData::Let { value, init } => {
                self.aligned(k, &[init]);
                self.named_tile(k, s, value, init);
            }
            StmtData::Var { init: Some(init), .. } => self.aligned(k, &[init]),
            StmtData::Assign { src, .. } => self.aligned(k, &[src]),
            // As it is written out.
            StmtData::Copy { src, dst, .. } if is_reshaped(k, src, dst) => {}
            StmtData::Copy { src, dst, attrs } => {
                let said = attrs.fill.is_some() || attrs.when.is_some();
                self.load = said.then(|| fill_values::load(k, &attrs));
                let read = self.load.is_some() && fill_values::reads_tensors(k, src);
                self.aligned(k, &[src]);
                if self.load.take().is_some() && read && !fill_values::reads_tensors(k, src) {
                    loaded_before(k, s, dst);
                }
                self.numbers(k, dst);
                self.single(k, s, dst);
                return self.stored(k, s, dst);
            }
            _ => {}
        }
        Vec::new()
    }

    /// A name of a tile in another shape is that tile.
    fn named_shape(&mut self, k: &mut Kernel, s: Stmt, value: Value, init: Expr) {
        let ExprData::Ref(own) = k.exprs[init] else { return };
        let Some(last) = self.front.pop() else { return };
        k.values[value].def = std::mem::replace(&mut k.values[own].def, ValueDef::Let);
        for s in self.front.iter().copied().chain([last]) {
            let to = match &mut k.stmts[s] {
                StmtData::Var { value: v, .. } if *v == own => {
                    *v = value;
                    continue;
                }
                StmtData::Copy { dst, .. } => *dst,
                _ => continue,
            };
            match &mut k.exprs[to] {
                ExprData::Ref(v) if *v == own => *v = value,
                ExprData::View(view) if view.base == own => view.base = value,
                _ => {}
            }
        }
        k.stmts[s] = k.stmts[last].clone();
    }

    /// `reshape(x, [16, 4])` and `concat(a, b, 1)`: tiles of their own.
    fn in_shape(&mut self, k: &mut Kernel, e: Expr, beside: &[Option<Extent>]) {
        let args: Vec<Expr> = match &k.exprs[e] {
            ExprData::Reshape { arg, .. } | ExprData::Permute { arg, .. } => vec![*arg],
            ExprData::Concat { args, .. } => args.clone(),
            _ => return,
        };
        let mut parts = Vec::new();
        args.iter().for_each(|&arg| leaves(k, arg, &mut parts));
        // Dimensions in another order have the same extents.
        let mut known = vec![None; beside.len()];
        if let ExprData::Permute { order, .. } = &k.exprs[e]
            && order.len() == beside.len()
            && order.iter().all(|&axis| (axis as usize) < known.len())
        {
            order.iter().zip(beside).for_each(|(&axis, &n)| known[axis as usize] = n);
        }
        for part in parts {
            self.tile_of_window(k, part, &known);
        }
        match k.exprs[e].clone() {
            ExprData::Reshape { arg, shape, numbered } => {
                let moved = |arg| ExprData::Reshape { arg, shape, numbered };
                self.rearranged(k, e, arg, "reshaped", moved);
            }
            ExprData::Permute { arg, order } => {
                self.rearranged(k, e, arg, "permuted", |arg| ExprData::Permute { arg, order });
            }
            ExprData::Concat { args, axis } => {
                if let Some(value) = self.joined(k, e, &args, axis as usize) {
                    k.exprs[e] = ExprData::Ref(value);
                }
            }
            _ => {}
        }
    }

    /// A tile whose elements are those of `arg` in other places.
    fn rearranged(&mut self, k: &mut Kernel, e: Expr, arg: Expr, name: &str, moved: impl FnOnce(Expr) -> ExprData) {
        // For the verifier to say.
        let Ok(Type::Tile(ty)) = type_of(k, e) else { return };
        let whole = ty.shape.iter().map(|&n| extent(k, n, e)).collect();
        let arg = match k.exprs[arg] {
            ExprData::Ref(v) if matches!(k.values[v].def, ValueDef::Var(_)) => arg,
            _ => {
                let Ok(Type::Tile(own)) = type_of(k, arg) else { return };
                let own_shape = own.shape.iter().map(|&n| extent(k, n, arg)).collect();
                self.filled(k, "part", TileTy::registers(own.elem, own_shape, None), arg)
            }
        };
        let src = k.expr(moved(arg), k.expr_spans[e]);
        let named = self.filled(k, name, TileTy::registers(ty.elem, whole, None), src);
        k.exprs[e] = k.exprs[named].clone();
    }

    /// A window with explicit extents, or with those in `known`, is a tile if it is reshaped.
    fn tile_of_window(&mut self, k: &mut Kernel, e: Expr, known: &[Option<Extent>]) {
        let (Some(window), Ok(ty @ Type::View(_))) = (window(k, self.notes, e), type_of(k, e)) else { return };
        let extents = match &k.exprs[e] {
            ExprData::View(view) if takes_dimensions(k, view.base) => {
                let said = self.notes.get(&e).cloned().unwrap_or_else(|| vec![RangeNote::default(); view.ranges.len()]);
                given_extents(k, view, &said, &ty)
            }
            _ if window.dims.len() == known.len() => {
                window.dims.iter().zip(known).map(|(dim, &known)| dim.given_extent().or(known)).collect()
            }
            _ => window.dims.iter().map(|dim| dim.extent).collect(),
        };
        let Some(extents) = extents.filter(|n| !n.is_empty() && !window.dims.iter().any(|dim| dim.repeats)) else {
            return;
        };
        let Some(elem) = ty.elem() else { return };
        let shape = extents.into_iter().map(|n| extent(k, n, e)).collect();
        let src = k.expr(k.exprs[e].clone(), k.expr_spans[e]);
        if let Some(said) = self.notes.remove(&e) {
            self.notes.insert(src, said);
        }
        let named = self.filled(k, "part", TileTy::registers(elem, shape, None), src);
        if let (Some(load), Space::Gmem) = (&self.load, space_of(&ty))
            && let Some(&s) = self.front.last()
            && let StmtData::Copy { attrs, .. } = &mut k.stmts[s]
        {
            *attrs = load.clone();
        }
        k.exprs[e] = k.exprs[named].clone();
    }

    /// A tile that is filled with `src` in front of the statement.
    fn filled(&mut self, k: &mut Kernel, name: &str, ty: TileTy, src: Expr) -> Expr {
        let span = k.expr_spans[src];
        let value = k.value(name, span, ValueDef::Var(ty));
        let dst = k.value_ref(value, span);
        self.front.push(k.stmt(StmtData::Var { value, init: None }, span));
        self.front.push(k.stmt(StmtData::Copy { src, dst, attrs: CopyAttrs::default() }, span));
        k.value_ref(value, span)
    }

    /// `let low = x[.., 0..+16]`: a window of a register tile or a buffer with explicit extents is a separate tile; so
    /// is its transposition.
    fn named_window(&mut self, k: &mut Kernel, s: Stmt, value: Value, init: Expr) -> bool {
        let (window, transposed) = untransposed(k, init);
        let ExprData::View(view) = k.exprs[window].clone() else { return false };
        let said = self.notes.get(&window).cloned().unwrap_or_else(|| vec![RangeNote::default(); view.ranges.len()]);
        let Ok(ty @ Type::View(_)) = type_of(k, window) else { return false };
        let (Some(elem), Some(mut extents)) = (ty.elem(), given_extents(k, &view, &said, &ty)) else { return false };
        let wrong = extents.is_empty() || window != init && extents.len() != 2;
        if !takes_dimensions(k, view.base) || said.iter().any(|said| said.repeats) || wrong {
            return false;
        }
        self.notes.remove(&window);
        if transposed {
            extents.reverse();
        }
        let span = k.stmt_spans[s];
        let shape = extents.into_iter().map(|n| extent(k, n, init)).collect();
        k.values[value].def = ValueDef::Var(TileTy::registers(elem, shape, None));
        self.front.push(k.stmt(StmtData::Var { value, init: None }, span));
        let dst = k.value_ref(value, span);
        k.stmts[s] = StmtData::Copy { src: init, dst, attrs: CopyAttrs::default() };
        true
    }

    /// Gives what is combined element by element as many dimensions as any of it has.
    fn aligned(&mut self, k: &mut Kernel, all: &[Expr]) {
        let mut found = Vec::new();
        all.iter().for_each(|&e| leaves(k, e, &mut found));
        let target = self.target.take();
        for &e in &found {
            self.inside(k, e);
            self.with_dimensions(k, e);
        }
        let beside: Vec<Option<Extent>> = match (target, found.iter().find_map(|&e| tile_extents(k, e))) {
            (Some(target), _) => target.into_iter().map(Some).collect(),
            (None, Some(tile)) => tile.into_iter().map(Some).collect(),
            (None, None) => Vec::new(),
        };
        found.iter().for_each(|&e| self.in_shape(k, e, &beside));
        let types: Vec<Option<Type>> = found.iter().map(|&e| type_of(k, e).ok()).collect();
        let most = types.iter().flatten().map(Type::rank).max().unwrap_or(0);
        if types.iter().flatten().all(|ty| matches!(ty.rank(), 0) || ty.rank() == most) {
            return;
        }
        let beside = extents_of(k, self.notes, &found, &types, most);
        for (&e, ty) in found.iter().zip(&types) {
            let Some(ty) = ty.as_ref().filter(|ty| (1..most).contains(&ty.rank())) else { continue };
            if space_of(ty) == Space::Gmem {
                continue;
            }
            let lacks = most - ty.rank();
            let said = window(k, self.notes, e).into_iter().flat_map(|window| window.dims).map(|dim| dim.extent);
            let mut beside = beside[lacks..].to_vec();
            said.zip(&mut beside).filter(|(said, _)| said.is_some()).for_each(|(said, n)| *n = said);
            if let Some(own) = own_extents(k, e, ty, &beside) {
                self.notes.remove(&e);
                let mut shape = vec![Extent::Known(1); lacks];
                shape.extend(own);
                let places = (0..most).map(|d| d >= lacks).collect::<Vec<_>>();
                self.tile_of(k, e, (ty, &shape), &places);
            }
        }
    }

    /// The same of what is inside of a part: what is reduced, multiplied, or names a shape.
    fn inside(&mut self, k: &mut Kernel, e: Expr) {
        match k.exprs[e].clone() {
            ExprData::Combine(combine) => self.aligned(k, &combine.args),
            ExprData::View(_) => self.numbers(k, e),
            ExprData::Ref(_) => {}
            ExprData::Reshape { arg, .. } | ExprData::Permute { arg, .. } => self.aligned(k, &[arg]),
            ExprData::Mma(m) => {
                [m.a, m.b, m.c].into_iter().for_each(|child| self.aligned(k, &[child]));
                self.operands(k, &m);
            }
            _ => k.children(e).into_iter().for_each(|child| self.aligned(k, &[child])),
        }
    }

    /// `v[_, ..]`: a tile with additional dimensions for each `_`.
    fn with_dimensions(&mut self, k: &mut Kernel, e: Expr) {
        if let Some(indices) = self.indices_of_vector(k, e) {
            return self.looked_up(k, e, indices);
        }
        let Some((view, said)) = self.repeats(k, e) else { return };
        let whole = without(k, &view, &said);
        let span = k.expr_spans[e];
        let own = k.expr(whole, span);
        let ty = match type_of(k, own) {
            Ok(ty) if ty.rank() > 0 => ty,
            Ok(_) => {
                let message = "a single element broadcasts without `_`";
                let d = Diagnostic::error(codes::BAD_VIEW, span, message);
                self.wrong.push(d.with_note("copy it to a scalar: `var f = reg f32[]`, `copy s[i] -> f`"));
                return;
            }
            // For the verifier to say.
            Err(_) => return k.exprs[e] = k.exprs[own].clone(),
        };
        let Some(extents) = given_extents(k, &view, &said, &ty) else {
            let message = "this window has no extents";
            let d = Diagnostic::error(codes::BAD_VIEW, span, message);
            self.wrong.push(d.with_note("next to `_` it is all of a tile, `v[_, ..]`, or says it: `v[_, i..+16]`"));
            return;
        };
        let mut extents = extents.into_iter();
        let places: Vec<bool> = tile_dims(&view, &said);
        let shape: Vec<Extent> = places
            .iter()
            .map(|&own| if own { extents.next().unwrap_or(Extent::Known(1)) } else { Extent::Known(1) })
            .collect();
        k.exprs[e] = k.exprs[own].clone();
        self.tile_of(k, e, (&ty, &shape), &places);
    }

    /// The window `e`, if it has dimensions that its tile lacks.
    fn repeats(&mut self, k: &Kernel, e: Expr) -> Option<(View, Vec<RangeNote>)> {
        let view = match &k.exprs[e] {
            ExprData::View(view) if takes_dimensions(k, view.base) => view.clone(),
            _ => return None,
        };
        self.notes.get(&e).filter(|said| said.iter().any(|said| said.repeats))?;
        self.notes.remove(&e).map(|said| (view, said))
    }

    /// Replaces `e` by a register tile of this shape, with the dimensions of `e` at `places`.
    fn tile_of(&mut self, k: &mut Kernel, e: Expr, (ty, shape): (&Type, &[Extent]), places: &[bool]) {
        let span = k.expr_spans[e];
        let code = places.iter().fold(1, |code, &own| code << 1 | usize::from(own));
        let own = k.exprs[e].clone();
        let value = match self.named.iter().find(|(data, dims, _)| *data == own && *dims == code) {
            Some(&(_, _, value)) => value,
            None => {
                let elem = ty.elem().expect("a tile has elements");
                let value = widened(k, e, elem, shape);
                let mut src = k.expr(own.clone(), span);
                if let Type::View(_) = ty {
                    src = self.loaded(k, src, elem, (shape, places));
                }
                let dst = slice(k, value, places, e);
                self.front.push(k.stmt(StmtData::Var { value, init: None }, span));
                self.front.push(k.stmt(StmtData::Copy { src, dst, attrs: CopyAttrs::default() }, span));
                self.named.push((own, code, value));
                value
            }
        };
        k.exprs[e] = ExprData::Ref(value);
    }

    /// A tile that holds the window `src`, which has no extents of its own.
    fn loaded(&mut self, k: &mut Kernel, src: Expr, elem: ElemRef, (shape, places): (&[Extent], &[bool])) -> Expr {
        let span = k.expr_spans[src];
        let own: Vec<Extent> = shape.iter().zip(places).filter(|&(_, &own)| own).map(|(&n, _)| n).collect();
        let shape = own.into_iter().map(|n| extent(k, n, src)).collect();
        let value = k.value("part", span, ValueDef::Var(TileTy::registers(elem, shape, None)));
        let dst = k.value_ref(value, span);
        self.front.push(k.stmt(StmtData::Var { value, init: None }, span));
        self.front.push(k.stmt(StmtData::Copy { src, dst, attrs: CopyAttrs::default() }, span));
        k.value_ref(value, span)
    }

    /// A copy to `v[_, ..]` goes to a tile with these dimensions, and from there to `v`.
    fn stored(&mut self, k: &mut Kernel, s: Stmt, dst: Expr) -> Vec<Stmt> {
        if let Some(indices) = self.indices_of_vector(k, dst) {
            self.scattered(k, s, indices);
            return Vec::new();
        }
        let Some((view, said)) = self.repeats(k, dst) else { return Vec::new() };
        let span = k.expr_spans[dst];
        let own = without(k, &view, &said);
        let to = k.expr(own, span);
        let (Ok(ty), ValueDef::Var(_) | ValueDef::Smem(_) | ValueDef::Channel { .. }) =
            (type_of(k, to), &k.values[view.base].def)
        else {
            return Vec::new();
        };
        let (Some(elem), Some(extents)) = (ty.elem(), given_extents(k, &view, &said, &ty)) else { return Vec::new() };
        let places = tile_dims(&view, &said);
        let mut extents = extents.into_iter();
        let shape: Vec<Extent> = places
            .iter()
            .map(|&own| if own { extents.next().unwrap_or(Extent::Known(1)) } else { Extent::Known(1) })
            .collect();
        let value = widened(k, dst, elem, &shape);
        let whole = k.value_ref(value, span);
        if let StmtData::Copy { dst, .. } = &mut k.stmts[s] {
            *dst = whole;
        }
        self.front.push(k.stmt(StmtData::Var { value, init: None }, span));
        let src = slice(k, value, &places, dst);
        vec![k.stmt(StmtData::Copy { src, dst: to, attrs: CopyAttrs::default() }, span)]
    }
}

/// The windows of tensors in the copy `s` to `dst` are loaded before it: its bounds are those of the destination.
fn loaded_before(k: &mut Kernel, s: Stmt, dst: Expr) {
    let stores = resolve_view(k, dst).is_some_and(|view| view.space(k).has_bounds());
    if let StmtData::Copy { attrs, .. } = &mut k.stmts[s] {
        (attrs.fill, attrs.when) = (None, attrs.when.filter(|_| stores));
    }
}

/// The extents of the register tile that a statement sets.
fn target_extents(k: &Kernel, s: Stmt) -> Option<Vec<Extent>> {
    match k.stmts[s] {
        StmtData::Copy { dst, .. } => tile_extents(k, dst),
        StmtData::Assign { dst: value, .. } | StmtData::Var { value, .. } => {
            Some(k.tile_ty(value)?.shape.iter().map(|&n| Extent::of(k, n)).collect())
        }
        _ => None,
    }
}

/// The extents of a tile.
fn tile_extents(k: &Kernel, e: Expr) -> Option<Vec<Extent>> {
    match type_of(k, e) {
        Ok(Type::Tile(t)) => Some(t.shape),
        _ => None,
    }
}

/// What `e` is without the transposes around it, and whether their number is odd.
fn untransposed(k: &Kernel, mut e: Expr) -> (Expr, bool) {
    let mut transposed = false;
    while let ExprData::Transpose(arg) = k.exprs[e] {
        (e, transposed) = (arg, !transposed);
    }
    (e, transposed)
}

/// Whether a copy is of a register variable in another shape to another variable, as the parser writes it out.
fn is_reshaped(k: &Kernel, src: Expr, dst: Expr) -> bool {
    let variable = |e: Expr| matches!(k.exprs[e], ExprData::Ref(v) if matches!(k.values[v].def, ValueDef::Var(_)));
    let written = |e: Expr| match &k.exprs[e] {
        ExprData::Reshape { numbered: Some(_), .. } => true,
        ExprData::Reshape { arg, numbered: None, .. } | ExprData::Permute { arg, .. } => variable(*arg),
        _ => false,
    };
    written(src) && variable(dst)
}

/// A register tile for `e`.
fn widened(k: &mut Kernel, e: Expr, elem: ElemRef, shape: &[Extent]) -> Value {
    let span = k.expr_spans[e];
    let name = match &k.exprs[e] {
        ExprData::Ref(v) | ExprData::View(View { base: v, .. }) => format!("{}_widened", k.values[*v].name),
        _ => "widened".to_owned(),
    };
    let shape = shape.iter().map(|n| extent(k, *n, e)).collect();
    k.value(&name, span, ValueDef::Var(TileTy::registers(elem, shape, None)))
}

fn extent(k: &mut Kernel, n: Extent, at: Expr) -> Expr {
    match n {
        Extent::Known(n) => k.int(n as i64, k.expr_spans[at]),
        Extent::Sym(e) => k.copy_expr(e),
    }
}

/// The dimensions of `value` at `places`, and the start of the others.
fn slice(k: &mut Kernel, value: Value, places: &[bool], at: Expr) -> Expr {
    let span = k.expr_spans[at];
    let range = |k: &mut Kernel, &own: &bool| {
        let start = k.int(0, span);
        if own { Range::From { start, end: None } } else { Range::At(start) }
    };
    let ranges = places.iter().map(|own| range(k, own)).collect();
    k.expr(ExprData::View(View { base: value, slot: None, ranges }), span)
}

/// A window without the dimensions that its tile lacks: all of the tile, if it has no other ranges.
fn without(k: &Kernel, view: &View, said: &[RangeNote]) -> ExprData {
    let own: Vec<Range> =
        view.ranges.iter().zip(said).filter(|(_, said)| !said.repeats).map(|(range, _)| *range).collect();
    let all = own.iter().all(|range| matches!(*range, Range::From { start, end: None } if k.as_int(start) == Some(0)));
    let whole = all && own.len() == rank_of(k, view.base);
    match view.slot {
        None if whole => ExprData::Ref(view.base),
        Some(_) if whole => ExprData::View(View { ranges: Vec::new(), ..view.clone() }),
        _ => ExprData::View(View { ranges: own, ..view.clone() }),
    }
}

/// Of the dimensions that a window has, which are its tile's.
fn tile_dims(view: &View, said: &[RangeNote]) -> Vec<bool> {
    let all = view.ranges.iter().zip(said);
    all.filter(|(range, said)| said.repeats || matches!(range, Range::From { .. }))
        .map(|(_, said)| !said.repeats)
        .collect()
}

fn rank_of(k: &Kernel, v: Value) -> usize {
    match &k.values[v].def {
        ValueDef::Let => k.let_init(v).and_then(|init| type_of(k, init).ok()).map_or(0, |ty| ty.rank()),
        _ => k.tile_ty(v).map_or(0, |t| t.shape.len()),
    }
}

/// The extents of a window next to `_` along its own dimensions: given, or those of the tile; `None`: unknown.
fn given_extents(k: &Kernel, view: &View, said: &[RangeNote], ty: &Type) -> Option<Vec<Extent>> {
    if let Type::Tile(t) = ty {
        return Some(t.shape.clone());
    }
    let shape: Vec<Extent> = k.tile_ty(view.base)?.shape.iter().map(|&n| Extent::of(k, n)).collect();
    let own = view.ranges.iter().zip(said).filter(|(_, said)| !said.repeats);
    let extents = own.zip(shape).filter_map(|((range, said), n)| match *range {
        Range::From { start, end: None } => Some(match said.extent {
            Some(extent) => Some(Extent::of(k, extent)),
            None => (k.as_int(start) == Some(0)).then_some(n),
        }),
        Range::From { .. } => Some(None),
        Range::At(_) | Range::Gather(_) => None,
    });
    extents.collect()
}

fn space_of(ty: &Type) -> Space {
    match ty {
        Type::View(v) => v.space,
        Type::Tile(t) => t.space,
        _ => Space::Reg,
    }
}

/// The extents that operands of up to `rank` dimensions say: of each dimension the first that is not 1.
fn extents_of(k: &Kernel, notes: &Notes, all: &[Expr], types: &[Option<Type>], rank: usize) -> Vec<Option<Extent>> {
    let mut extents: Vec<Option<Extent>> = vec![None; rank];
    for (&e, ty) in all.iter().zip(types) {
        let own: Vec<Option<Extent>> = match ty {
            Some(Type::Tile(t)) => t.shape.iter().copied().map(Some).collect(),
            Some(Type::View(_)) => match window(k, notes, e) {
                Some(window) => window.dims.iter().map(|dim| dim.extent).collect(),
                None => continue,
            },
            _ => continue,
        };
        let lacks = rank - own.len();
        for (all, n) in extents[lacks..].iter_mut().zip(own) {
            if n.is_some() && all.is_none_or(|all| all.known() == Some(1)) {
                *all = n;
            }
        }
    }
    extents
}

/// The extents of an operand. A window has those of the other operand, except where its tile has a single element.
fn own_extents(k: &Kernel, e: Expr, ty: &Type, beside: &[Option<Extent>]) -> Option<Vec<Extent>> {
    match ty {
        Type::Tile(t) => Some(t.shape.clone()),
        Type::View(_) => {
            let view = resolve_view(k, e)?;
            let shape: Vec<Extent> = k.tile_ty(view.base)?.shape.iter().map(|&n| Extent::of(k, n)).collect();
            let one = |&d: &usize| shape[d].known() == Some(1);
            view.base_dims().iter().zip(beside).map(|(d, n)| if one(d) { Some(Extent::Known(1)) } else { *n }).collect()
        }
        _ => None,
    }
}
