//! Windows of register tiles.
//!
//! If the position of a window is known, it is a subset of each thread's registers, if the layouts match: `copy x[0..,
//! 32..] -> y`, `copy y -> x[0.., 32..]`. If such a window is part of an expression, it becomes a tile
//! ([`of_their_own`]). Layouts are inferred for it, so that no data moves if that is cheapest
//! ([`super::graph::Relation::Window`]). Registers cannot be indexed at run time, so a tile with a window at an unknown
//! position goes through a buffer:
//!
//! ```text
//! let x_windows = smem f32[64, 64]
//! copy x -> x_windows                         // in front of the loops that do not change it
//! .. x_windows[i.., 0..] ..
//! ```
//!
//! and back again if the window is written. Windows that would split threads' parts take the same way, once layouts are known ([`through_memory`]).

use super::cost;
use super::exchange::{order, place, still_holds};
use super::log2_shape;
use super::materialise::tile;
use super::storage_types::{in_memory, loaded, stored};
use super::window_starts::places;
use crate::Cx;
use crate::analysis::uses::{all_stmts, place_of};
use crate::analysis::views::{accessed_views, copy_shape, goes_to_registers, plain_var, register_window as window};
use tilec_ir::deferred_lets::Deferred;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::layout::RegLayout;
use tilec_ir::tile_bounds::OF_WINDOWS;
use tilec_ir::types::ElemRef;
use tilec_ir::typing::{ResolvedView, fixed_shape, resolve_view, window_of_registers_at};

/// Bits of a register.
const WORD: u32 = 32;

/// Moves windows in expressions, and values that are stored to windows, to tiles of their own. Tiles with windows at
/// unknown positions go to buffers.
pub(super) fn of_their_own(k: &mut Kernel, cx: &mut Cx<'_>) {
    let mut work = Work { buffers: Vec::new(), any: false };
    for s in all_stmts(k, k.body) {
        match k.stmts[s].clone() {
            StmtData::Copy { src, dst, attrs } => work.copy(k, cx, s, (src, dst), attrs),
            StmtData::Assign { dst: value, src } | StmtData::Var { value, init: Some(src) } => {
                let shape = k.tile_ty(value).and_then(|ty| k.const_shape(&ty.shape));
                shape.iter().for_each(|shape| work.expression(k, cx, s, src, shape));
            }
            StmtData::Let { init, .. } => {
                fixed_shape(k, init).iter().for_each(|shape| work.expression(k, cx, s, init, shape));
            }
            _ => {}
        }
    }
}

/// Makes copies to and from windows go through memory if the window is no set of registers of the same threads. The
/// result says whether there were any.
pub(super) fn through_memory(k: &mut Kernel, cx: &mut Cx<'_>) -> bool {
    let mut work = Work { buffers: Vec::new(), any: false };
    for s in all_stmts(k, k.body) {
        let StmtData::Copy { src, dst, .. } = k.stmts[s] else { continue };
        let (from, to) = (window(k, src), window(k, dst));
        let Some(shape) = copy_shape(k, src, dst).filter(|_| from.is_some() || to.is_some()) else { continue };
        let [of_src, of_dst] = [src, dst].map(|e| layout(k, s, e, &shape));
        let in_memory = resolve_view(k, src).is_some_and(|view| view.space(k).is_memory());
        match (&of_src, &of_dst) {
            (Some(from), Some(to)) if !cost::through_memory(from, to) => continue,
            // A computed or loaded value gets the layout of the window.
            (None, Some(_)) if from.is_none() && (in_memory || plain_var(k, src).is_none()) => continue,
            _ => {}
        }
        if from.is_some() {
            work.read(k, cx, s, src);
        }
        if to.is_some() && of_dst.is_none() {
            work.write(k, cx, s);
        } else if from.is_none()
            && let Some(value) = plain_var(k, src)
        {
            // A whole tile in another layout.
            work.read_of(k, cx, s, src, value);
        }
    }
    for &(_, buffer, _) in &work.buffers {
        order(k, buffer);
    }
    work.any
}

/// The layout of this side of a copy between register tiles; `None` if threads have no whole part of the window.
fn layout(k: &Kernel, s: Stmt, e: Expr, shape: &[u64]) -> Option<RegLayout> {
    let Some(mut view) = window(k, e) else {
        return plain_var(k, e).and_then(|v| k.tile_ty(v)?.reg_layout.clone());
    };
    let transposed = std::mem::take(&mut view.transposed);
    let own: Vec<u64> = if transposed { shape.iter().rev().copied().collect() } else { shape.to_vec() };
    let per = match k.tile_ty(view.base)?.elem {
        ElemRef::Known(elem) => (WORD / elem.bits().max(1)).max(1) as usize,
        ElemRef::Param(_) => return None,
    };
    let mut found = None;
    for starts in places(k, s, &view)? {
        let (layout, registers) = window_of_registers_at(k, &view, &starts, &own)?;
        // Elements that share a register must stay together, and so must a thread's only register.
        let held = k.tile_ty(view.base)?.reg_layout.as_ref().map_or(0, |layout| 1usize << layout.value_bits());
        let whole = |word: &[usize]| {
            word.len() == per.min(held)
                && word[0].is_multiple_of(per)
                && word.iter().enumerate().all(|(i, &v)| v == word[0] + i)
        };
        if per > 1 && !registers.chunks(per).all(whole) {
            return None;
        }
        found = Some(layout);
    }
    found.and_then(|layout| if transposed { layout.transposed(*log2_shape(&own).first()?) } else { Some(layout) })
}

/// Initialises a tile without contents, because the parts outside a window go through the buffer, too.
fn begin(k: &mut Kernel, value: Value) {
    let declared = all_stmts(k, k.body)
        .into_iter()
        .find(|&s| matches!(k.stmts[s], StmtData::Var { value: v, init: None } if v == value));
    if let Some(s) = declared {
        let zero = k.int(0, k.stmt_spans[s]);
        k.stmts[s] = StmtData::Var { value, init: Some(zero) };
    }
}

struct Work {
    /// Tiles, their buffers, and the statements that store them there.
    buffers: Vec<(Value, Value, Stmt)>,
    /// Whether a buffer was used.
    any: bool,
}

impl Work {
    fn copy(&mut self, k: &mut Kernel, cx: &mut Cx<'_>, s: Stmt, (src, dst): (Expr, Expr), attrs: CopyAttrs) {
        let Some(shape) = copy_shape(k, src, dst) else { return };
        let known = |k: &Kernel, view: &ResolvedView| places(k, s, view).is_some();
        let moved = goes_to_registers(k, dst) && window(k, src).is_some_and(|view| known(k, &view));
        if !moved {
            self.expression(k, cx, s, src, &shape);
        }
        let Some(view) = window(k, dst) else { return };
        let laid_out = k.tile_ty(view.base).is_some_and(|tile| tile.reg_layout.is_some());
        let is_known = known(k, &view);
        let loaded = resolve_view(k, src).is_some_and(|view| view.space(k).is_memory());
        if is_known && (moved || laid_out || loaded || plain_var(k, src).is_some()) {
            return;
        }
        // A tile with the type of the copied tile.
        let elem = k.tile_ty(view.base).expect("it has windows").elem;
        let span = k.stmt_spans[s];
        let ty = tile(k, s, elem, &shape, None);
        let name = format!("{}_window", k.values[view.base].name);
        let v = k.value(&name, span, ValueDef::Var(ty));
        let mut front = vec![k.stmt(StmtData::Var { value: v, init: None }, span)];
        // Elements that the bounds mask out.
        let bounded = || accessed_views(k, &Deferred::of(k), src).iter().any(|view| view.space(k).has_bounds());
        if attrs.keep && bounded() {
            let (held, into) = (k.copy_expr(dst), k.value_ref(v, span));
            front.push(k.stmt(StmtData::Copy { src: held, dst: into, attrs: CopyAttrs::default() }, span));
        }
        let into = k.value_ref(v, span);
        front.push(k.stmt(StmtData::Copy { src, dst: into, attrs }, span));
        let from = k.value_ref(v, span);
        k.stmts[s] = StmtData::Copy { src: from, dst, attrs: CopyAttrs::default() };
        let inserted = front.clone();
        self.insert(k, s, front);
        for s in inserted {
            if let StmtData::Copy { src, .. } = k.stmts[s]
                && window(k, src).is_some()
                && !is_known
            {
                self.read(k, cx, s, src);
            }
        }
        if !is_known {
            self.write(k, cx, s);
        }
    }

    /// Handles the windows in an expression with these extents.
    fn expression(&mut self, k: &mut Kernel, cx: &mut Cx<'_>, s: Stmt, e: Expr, shape: &[u64]) {
        if let Some(view) = window(k, e) {
            return match places(k, s, &view) {
                Some(_) => self.part(k, s, e, &view, shape),
                None => self.read(k, cx, s, e),
            };
        }
        match k.exprs[e] {
            ExprData::Reduce { arg, .. } | ExprData::Scan { arg, .. } => {
                fixed_shape(k, arg).iter().for_each(|shape| self.expression(k, cx, s, arg, shape));
            }
            ExprData::Op { .. }
            | ExprData::Cast { .. }
            | ExprData::Bits { .. }
            | ExprData::Round { .. }
            | ExprData::Lookup { .. }
            | ExprData::Transpose(_) => {
                let own: Vec<u64> = match k.exprs[e] {
                    ExprData::Transpose(_) => shape.iter().rev().copied().collect(),
                    _ => shape.to_vec(),
                };
                k.children(e).into_iter().for_each(|child| self.expression(k, cx, s, child, &own));
            }
            _ => {}
        }
    }

    /// Copies the window `e` at a known position to a tile in front of the statement.
    fn part(&mut self, k: &mut Kernel, s: Stmt, e: Expr, view: &ResolvedView, shape: &[u64]) {
        let span = k.expr_spans[e];
        let elem = k.tile_ty(view.base).expect("it has windows").elem;
        let ty = tile(k, s, elem, shape, None);
        let name = format!("{}_part", k.values[view.base].name);
        let v = k.value(&name, span, ValueDef::Var(ty));
        let src = k.expr(k.exprs[e].clone(), span);
        k.exprs[e] = ExprData::Ref(v);
        let dst = k.value_ref(v, span);
        let copy = StmtData::Copy { src, dst, attrs: CopyAttrs::default() };
        let front = vec![k.stmt(StmtData::Var { value: v, init: None }, span), k.stmt(copy, span)];
        self.insert(k, s, front);
    }

    /// Replaces the window `e` by a window of a buffer that holds the tile.
    fn read(&mut self, k: &mut Kernel, cx: &mut Cx<'_>, s: Stmt, e: Expr) {
        let value = window(k, e).expect("bug: it is a window").base;
        self.read_of(k, cx, s, e, value);
    }

    /// [`Self::read`] for a window of `value`, or all of it.
    fn read_of(&mut self, k: &mut Kernel, cx: &mut Cx<'_>, s: Stmt, e: Expr, value: Value) {
        let elem = k.tile_ty(value).expect("a register tile").elem;
        let buffer = self.buffer(k, cx, s, value);
        let own = k.expr(k.exprs[e].clone(), k.expr_spans[e]);
        let of = match k.exprs[own] {
            ExprData::Transpose(arg) => arg,
            _ => own,
        };
        match &mut k.exprs[of] {
            ExprData::View(view) => view.base = buffer,
            ExprData::Ref(v) => *v = buffer,
            _ => panic!("bug: a window of a register tile is a view"),
        }
        let read = loaded(k, elem, own);
        k.exprs[e] = k.exprs[read].clone();
    }

    /// Makes the copy `s` write to a buffer that holds the tile, and copies the tile back from there.
    fn write(&mut self, k: &mut Kernel, cx: &mut Cx<'_>, s: Stmt) {
        let StmtData::Copy { src, dst, attrs } = k.stmts[s].clone() else { panic!("bug: it is a copy") };
        let value = window(k, dst).expect("bug: it goes to a window").base;
        let elem = k.tile_ty(value).expect("a register tile").elem;
        begin(k, value);
        let buffer = self.buffer(k, cx, s, value);
        let ExprData::View(view) = &mut k.exprs[dst] else { panic!("bug: it goes to a window") };
        view.base = buffer;
        let src = stored(k, elem, src);
        k.stmts[s] = StmtData::Copy { src, dst, attrs };
        let span = k.stmt_spans[s];
        let (all, whole) = (k.value_ref(buffer, span), k.value_ref(value, span));
        let back = loaded(k, elem, all);
        let back = k.stmt(StmtData::Copy { src: back, dst: whole, attrs: CopyAttrs::default() }, span);
        let (block, index) = place_of(k, s);
        k.blocks[block].insert(index + 1, back);
        // The buffer has the tile's contents here, but a later change of the tile would not reach it.
        self.buffers.retain(|&(v, ..)| v != value);
    }

    /// A buffer that holds a tile in front of `s`.
    fn buffer(&mut self, k: &mut Kernel, cx: &mut Cx<'_>, s: Stmt, value: Value) -> Value {
        self.any = true;
        let at = place(k, s, value);
        let known = self.buffers.iter().find(|&&(v, _, filled)| v == value && still_holds(k, filled, value, at));
        if let Some(&(_, buffer, _)) = known {
            return buffer;
        }
        let span = k.stmt_spans[s];
        let ty = k.tile_ty(value).expect("a register tile");
        let (elem, shape) = (ty.elem, k.const_shape(&ty.shape).expect("specialised"));
        let ty = tile(k, s, in_memory(elem), &shape, None);
        let name = format!("{}{OF_WINDOWS}", k.values[value].name);
        let buffer = k.value(&name, span, ValueDef::Smem(ty));
        let (from, into) = (k.value_ref(value, span), k.value_ref(buffer, span));
        let src = stored(k, elem, from);
        let stmts = [
            k.stmt(StmtData::Alloc { value: buffer, over: Vec::new() }, span),
            k.stmt(StmtData::Copy { src, dst: into, attrs: CopyAttrs::default() }, span),
        ];
        k.blocks[at.0].splice(at.1..at.1, stmts);
        self.buffers.push((value, buffer, stmts[1]));
        let message = format!("`{}` goes through shared memory for its windows", k.values[value].name);
        cx.remark_note(
            span,
            message,
            "a window at a place that is known is in registers, if threads have a whole part of it",
        );
        buffer
    }

    /// Inserts statements in front of another one.
    fn insert(&mut self, k: &mut Kernel, s: Stmt, stmts: Vec<Stmt>) {
        let (block, index) = place_of(k, s);
        k.blocks[block].splice(index..index, stmts);
    }
}
