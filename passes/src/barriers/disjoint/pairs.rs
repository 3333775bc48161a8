//! Whether two threads may access the same element of a tensor.
//!
//! They do not if the windows are disjoint. Nor do they if both windows have the same register layout and begin at a
//! distance that is a multiple of their extents: then an element in both windows has the same place in both tiles, and
//! belongs to the same thread.

use super::statement_paths::{commute, exclusive, is_marked_apart, loops};
use super::windows::{Window, Windows};
use crate::analysis::uses::path_to;
use crate::analysis::views::{accessed_views, memory_views, moved_shape, plain_var};
use crate::barriers::hazard_kind::Kind;
use tilec_ir::deferred_lets::Deferred;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData};
use tilec_ir::layout::RegLayout;
use tilec_ir::names::Parts;
use tilec_ir::tensor_store::tensor_store;
use tilec_ir::typing::{ResolvedView, layout_of};

/// State of queries about pairs of statements of a kernel.
pub(in crate::barriers) struct Pairs<'k> {
    all: Windows<'k>,
    deferred: Deferred,
}

/// A window that a statement accesses, and the tensor's dimensions of its tile, in the tile's order.
struct WindowAccess {
    window: Window,
    kept: Vec<usize>,
}

impl<'k> Pairs<'k> {
    pub(in crate::barriers) fn new(k: &'k Kernel) -> Pairs<'k> {
        Pairs { all: Windows::new(k, None), deferred: Deferred::of(k) }
    }

    /// Whether `later` may access an element of a tensor that other threads accessed by `earlier`, or by itself in a
    /// previous iteration, in an order that matters.
    pub(in crate::barriers) fn may_conflict(&mut self, tensor: Value, kind: Kind, [earlier, later]: [Stmt; 2]) -> bool {
        let k = self.all.k();
        let (x, y) = (path_to(k, earlier), path_to(k, later));
        if earlier != later && exclusive(k, &x, &y) {
            return false;
        }
        let parting = x.iter().zip(&y).position(|(p, q)| p != q).unwrap_or(x.len());
        // Only one side of a branch runs in an iteration, and a statement runs once.
        let in_front = x.get(parting).zip(y.get(parting)).is_some_and(|(p, q)| p.0 == q.0 && p.1 < q.1);
        let common = loops(k, &x[..parting]);
        if common.is_empty() && !in_front {
            return false;
        }
        let combined = commute(k, earlier, later);
        let apart = [earlier, later].into_iter().any(|s| is_marked_apart(k, s));
        if (combined || apart) && kind == Kind::WriteAfterWrite {
            return false;
        }
        let windows = self.touched(earlier, tensor, kind != Kind::WriteAfterRead, combined).zip(self.touched(
            later,
            tensor,
            kind != Kind::ReadAfterWrite,
            combined,
        ));
        let Some((before, behind)) = windows else { return true };
        let alike = self.same_distribution(kind, [earlier, later]);
        before.iter().any(|p| {
            behind.iter().any(|q| {
                let (alike, windows) = (alike && p.kept == q.kept, [&p.window, &q.window]);
                let all = &mut self.all;
                let mut apart = (0..common.len()).all(|i| {
                    all.differ_in(common[i], &common[..i], windows) || alike && all.congruent(&common[..i], windows)
                });
                apart &= !in_front
                    || all.disjoint_in_iteration(&common, windows)
                    || alike && all.congruent(&common, windows);
                !apart
            })
        })
    }

    /// The windows of a tensor to which a copy stores, or from which it loads; `None`: the statement is no copy, or a
    /// window is not known. `combined`: without copies that combine in memory.
    fn touched(&mut self, s: Stmt, tensor: Value, stores: bool, combined: bool) -> Option<Vec<WindowAccess>> {
        let k = self.all.k();
        let StmtData::Copy { src, dst, ref attrs } = k.stmts[s] else { return None };
        let mut views = if stores { memory_views(k, dst) } else { accessed_views(k, &self.deferred, src) };
        if !stores && !combined && attrs.combined_by_threads() {
            views.extend(memory_views(k, dst));
        }
        let shape = moved_shape(k, src, dst);
        let own = views.into_iter().filter(|view| view.base == tensor);
        own.map(|view: ResolvedView| Some(WindowAccess { window: self.all.of(&view, &shape)?, kept: view.base_dims() }))
            .collect()
    }

    /// Whether two statements distribute their tiles over threads in the same way. One of several threads with the same
    /// element stores it, but all of them load it.
    fn same_distribution(&self, kind: Kind, [earlier, later]: [Stmt; 2]) -> bool {
        let k = self.all.k();
        if [earlier, later].into_iter().any(|s| tensor_store(k, s).is_some()) {
            return false;
        }
        if earlier == later {
            return kind == Kind::WriteAfterWrite
                || self.loaded(earlier).is_some_and(|own| own.is_none_or(|l| !l.is_replicated()));
        }
        let deal = |s, stores: bool| if stores { stored(k, s) } else { self.loaded(s).flatten() };
        let deals = deal(earlier, kind != Kind::WriteAfterRead).zip(deal(later, kind != Kind::ReadAfterWrite));
        deals.is_some_and(|(a, b)| a == b && (kind == Kind::WriteAfterWrite || !a.is_replicated()))
    }

    /// The layout in which threads load a copy's source: a register layout, or the distribution of the copy. The outer
    /// `None`: a thread loads other elements than those that it moves.
    fn loaded(&self, s: Stmt) -> Option<Option<RegLayout>> {
        let k = self.all.k();
        let StmtData::Copy { src, dst, .. } = k.stmts[s] else { return None };
        if !self.element_by_element(src) {
            return None;
        }
        match plain_var(k, dst) {
            Some(v) => Some(k.tile_ty(v)?.reg_layout.clone()),
            None => Some(layout_of(k, src)),
        }
    }

    /// Whether element `i` of a tile is computed from elements `i` of its operands.
    fn element_by_element(&self, e: Expr) -> bool {
        let k = self.all.k();
        let mut parts = Parts::of(k, e);
        while let Some(e) = parts.take() {
            match k.exprs[e] {
                ExprData::Ref(v) if self.deferred.init(v).is_some() => parts.named(v),
                ExprData::Op { .. } | ExprData::Cast { .. } | ExprData::Bits { .. } | ExprData::Round { .. } => {
                    parts.inside(e);
                }
                ExprData::Ref(_) | ExprData::View(_) | ExprData::Int(_) | ExprData::Float(_) => {}
                _ => return false,
            }
        }
        true
    }
}

/// The layout in which threads store a copy's tile.
fn stored(k: &Kernel, s: Stmt) -> Option<RegLayout> {
    match k.stmts[s] {
        StmtData::Copy { src, .. } => layout_of(k, src),
        _ => None,
    }
}
