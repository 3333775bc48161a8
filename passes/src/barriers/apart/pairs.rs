//! Whether two threads may access the same element of a tensor.
//!
//! They do not if the windows are disjoint. Nor do they if both windows are distributed over the threads in the same way and begin at a distance that is a multiple of their extents:
//! then an element in both windows has the same place in both tiles, and belongs to the same thread.

use super::ways::{commute, exclusive, is_apart, loops};
use super::windows::{Window, Windows};
use crate::analysis::uses::path_to;
use crate::analysis::views::{accessed_views, memory_views, moved_shape, plain_var};
use crate::barriers::kind::Kind;
use tilec_ir::deferred::Deferred;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData};
use tilec_ir::layout::RegLayout;
use tilec_ir::names::Parts;
use tilec_ir::tensor_store::tensor_store;
use tilec_ir::typing::{ResolvedView, layout_of};

/// What is asked about pairs of statements of a kernel.
pub(in crate::barriers) struct Pairs<'k> {
    all: Windows<'k>,
    deferred: Deferred,
}

/// A window that a statement touches, and the dimensions of the tensor that its tile has, in the tile's order.
struct Touched {
    window: Window,
    kept: Vec<usize>,
}

impl<'k> Pairs<'k> {
    pub(in crate::barriers) fn new(k: &'k Kernel) -> Pairs<'k> {
        Pairs { all: Windows::new(k, None), deferred: Deferred::of(k) }
    }

    /// Whether `later` may come to an element of a tensor that other threads have touched by `earlier`, or by itself in an iteration before,
    /// in an order that matters.
    pub(in crate::barriers) fn meet(&mut self, tensor: Value, kind: Kind, [earlier, later]: [Stmt; 2]) -> bool {
        let k = self.all.k();
        let (x, y) = (path_to(k, earlier), path_to(k, later));
        if earlier != later && exclusive(k, &x, &y) {
            return false;
        }
        let parting = x.iter().zip(&y).position(|(p, q)| p != q).unwrap_or(x.len());
        // Of two sides of a branch one is done in an iteration, and a statement once.
        let in_front = x.get(parting).zip(y.get(parting)).is_some_and(|(p, q)| p.0 == q.0 && p.1 < q.1);
        let common = loops(k, &x[..parting]);
        if common.is_empty() && !in_front {
            return false;
        }
        let combined = commute(k, earlier, later);
        let apart = [earlier, later].into_iter().any(|s| is_apart(k, s));
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
        let alike = self.dealt_alike(kind, [earlier, later]);
        before.iter().any(|p| {
            behind.iter().any(|q| {
                let (alike, windows) = (alike && p.kept == q.kept, [&p.window, &q.window]);
                let all = &mut self.all;
                let mut apart = (0..common.len()).all(|i| {
                    all.differ_in(common[i], &common[..i], windows) || alike && all.congruent(&common[..i], windows)
                });
                apart &= !in_front || all.beside(&common, windows) || alike && all.congruent(&common, windows);
                !apart
            })
        })
    }

    /// The windows of a tensor that a copy stores to, or those that it loads; `None`: another statement does, or one that is not known.
    /// `combined`: without what memory combines by itself.
    fn touched(&mut self, s: Stmt, tensor: Value, stores: bool, combined: bool) -> Option<Vec<Touched>> {
        let k = self.all.k();
        let StmtData::Copy { src, dst, ref attrs } = k.stmts[s] else { return None };
        let mut views = if stores { memory_views(k, dst) } else { accessed_views(k, &self.deferred, src) };
        if !stores && !combined && attrs.combined_by_threads() {
            views.extend(memory_views(k, dst));
        }
        let shape = moved_shape(k, src, dst);
        let own = views.into_iter().filter(|view| view.base == tensor);
        own.map(|view: ResolvedView| Some(Touched { window: self.all.of(&view, &shape)?, kept: view.kept() })).collect()
    }

    /// Whether two statements deal their tiles out to the threads in the same way. Of threads that hold the same element one stores it, and all of them
    /// load it.
    fn dealt_alike(&self, kind: Kind, [earlier, later]: [Stmt; 2]) -> bool {
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

    /// How the threads have what a copy loads, if each loads the elements that it moves: by a layout, or as the copy is distributed.
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

    /// Whether element `i` of a tile is made of the elements `i` of what it names.
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

/// How the threads have what a copy stores.
fn stored(k: &Kernel, s: Stmt) -> Option<RegLayout> {
    match k.stmts[s] {
        StmtData::Copy { src, .. } => layout_of(k, src),
        _ => None,
    }
}
