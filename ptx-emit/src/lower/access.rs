//! Accesses to windows of memory: their width, predicate and address.

use super::dims::Dims;
use super::ranged_ints::Int;
use super::state::Lower;
use super::store_distribution::LaneStores;
use super::tile::{Filled, Held, groups};
use super::windows::{Access, FragmentWindow, Window};
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;
use tilec_ir::diag::Reported;
use tilec_ir::entities::Expr;
use tilec_ir::kernel::CopyAttrs;
use tilec_ir::layout::{RegLayout, UsedRegisters};
use tilec_ir::ops::Op as IrOp;
use tilec_ir::space::Space;
use tilec_ir::target::WARP;
use tilec_ir::types::Elem;
use tilec_ir::typing::{ResolvedView, ViewDim};

/// Bytes of an access to scratch memory.
pub(super) const FRAGMENT_BYTES: u32 = 16;

impl Lower<'_> {
    /// Prepares accesses of `vec` elements to a window of memory. A thread accesses global memory only if `only` holds.
    pub(super) fn access(
        &mut self,
        e: Expr,
        view: &ResolvedView,
        layout: &RegLayout,
        dim_bits: &Dims,
        attrs: &CopyAttrs,
        only: Option<Reg>,
    ) -> Result<Access, Reported> {
        let space = view.space(self.k);
        if space.in_registers() {
            return Err(self.unsupported(e, "a window of a register tile"));
        }
        let Some(elem) = self.elem(view.base) else { return Err(self.unsupported(e, "this element type")) };
        if view.base_dims().len() != dim_bits.len() {
            return Err(self.unsupported(e, "a window whose rank differs from the tile's"));
        }
        if attrs.is_fragment() && space.has_bounds() {
            return self.fragment_access(e, view, layout, dim_bits, elem);
        }
        let log2 = attrs.vec.unwrap_or(1).max(1).ilog2();
        let dim = self.contiguous(view).unwrap_or(0);
        let Some(mut groups) = groups(layout, dim_bits, dim, log2) else {
            return Err(self.unfit(e, "an access wider than the run of elements that a thread owns"));
        };
        let held = self.held(attrs, layout, dim_bits);
        if !held.is_empty() {
            groups.retain(|group| group.iter().any(|&v| held[v].is_none()));
        }
        let (window, preds) = if space.has_bounds() {
            let w = self.global_window(view, layout, dim_bits, attrs.check.as_deref())?;
            let firsts: Vec<usize> = groups.iter().map(|g| g[0]).collect();
            let when = attrs.when.map(|cond| self.condition(cond)).transpose()?;
            let when = self.emit.and(when, only);
            let preds = self.bounds(view, &w, layout, &firsts, when)?;
            (Window::Global(w), preds)
        } else {
            let w = self.shared_window(view, layout, dim_bits, elem)?;
            let firsts: Vec<usize> = groups.iter().map(|g| g[0]).collect();
            let preds = self.shared_bounds(view, layout, (dim_bits, &w), &firsts)?;
            (Window::Shared(w), preds)
        };
        let fill = match attrs.fill.filter(|_| space.has_bounds()) {
            Some(fill) => match fill.bits(elem) {
                Some(pattern) => Some(Filled { pattern, bits: elem.bits() }),
                None => return Err(self.unsupported(e, "a number that the tensor's type does not have")),
            },
            None => None,
        };
        Ok(Access { window, space, layout: layout.clone(), dim_bits: dim_bits.clone(), groups, preds, held, fill })
    }

    ///
    /// # Errors
    /// A coordinate may not fit 64 bits.
    pub(super) fn address(&mut self, access: &mut Access, v: usize) -> Result<Operand, Reported> {
        match &mut access.window {
            Window::Global(w) => self.global_address(w, &access.layout, v),
            Window::Shared(w) => Ok(self.shared_address(w, v)),
            Window::Fragment(w) => {
                // The access that covers `v`: `firsts` has the first elements in ascending order.
                let place = w.firsts.partition_point(|&first| first <= v).saturating_sub(1);
                Ok(Operand::at(w.base, place as i64 * w.step))
            }
        }
    }

    /// For 4-bit elements: the bit in its byte at which element `v` begins (0 or 4).
    ///
    /// # Errors
    /// A coordinate may not fit 64 bits.
    pub(super) fn half_of(&mut self, access: &mut Access, v: usize) -> Result<Operand, Reported> {
        match &mut access.window {
            Window::Global(w) => self.global_half(w, &access.layout, v),
            Window::Shared(w) => Ok(self.shared_half(w, v)),
            Window::Fragment(_) => panic!("bug: accesses to scratch memory are of whole registers"),
        }
    }

    /// Access to a tile of scratch memory, 16 bytes at a time.
    fn fragment_access(
        &mut self,
        e: Expr,
        view: &ResolvedView,
        layout: &RegLayout,
        dim_bits: &Dims,
        elem: Elem,
    ) -> Result<Access, Reported> {
        let count = 1usize << layout.value_bits();
        let width = count.min(elem.per(FRAGMENT_BYTES) as usize);
        let bytes = elem.bytes_of(width as u64);
        let whole = self.thread_bits == layout.thread_bits() && self.replica_predicate(layout).is_none();
        let known = self.fragments[view.base].get_or_insert_with(|| layout.clone()) == layout;
        let Some(&ViewDim::Fixed(index)) = view.dims.first().filter(|_| whole && known && bytes >= 4) else {
            return Err(
                self.unfit(e, "a tile of scratch memory that threads hold in different layouts, or not all of them")
            );
        };
        let tid = self.tid();
        let own = self.emit.pure(Class::B32, P::ShlB32, [tid.into(), Operand::Imm(i64::from(bytes.ilog2()))]);
        let (base, space) = match self.cluster_place(view.base) {
            Some(place) => {
                // The mbarrier counts the bytes of a whole tile: fewer would be waited for forever.
                let bytes = elem.bytes_of(dim_bits.extents().iter().product());
                assert_eq!(bytes, place.bytes, "bug: a part of a tile of distributed shared memory");
                let at = self.entry_address((view.base, place), (place.offset, place.bytes), index)?;
                (self.emit.pure(Class::B32, P::AddS32, [at.into(), own.into()]), Space::Smem)
            }
            None => {
                let base = self.base(view)?;
                let elements: u64 = dim_bits.extents().iter().product();
                let tile = elem.bytes_of(elements) as i64;
                let index = self.index(index)?;
                let Some(offset) = self.int_op(IrOp::Mul, index, Int::constant(tile)) else {
                    return Err(self.too_far_out(e));
                };
                let offset = self.as64(offset);
                let at = self.emit.pure(Class::B64, P::AddS64, [base.into(), offset]);
                let own = self.emit.pure(Class::B64, P::CvtU64U32, [own.into()]);
                (self.emit.pure(Class::B64, P::AddS64, [at.into(), own.into()]), Space::Gmem)
            }
        };
        let Some(threads) = layout.threads(dim_bits.extents()) else {
            return Err(self.unfit(e, "a tile of scratch memory whose registers differ between threads"));
        };
        let step = (bytes * threads) as i64;
        let groups: Vec<Vec<usize>> = (0..count).step_by(width).map(|v| (v..v + width).collect()).collect();
        let Some(groups) = UsedRegisters::of(layout, dim_bits.extents()).and_then(|held| held.groups(groups)) else {
            return Err(self.unfit(e, "accesses of 16 bytes that go past the end of the tile"));
        };
        let preds = vec![None; groups.len()];
        let firsts = groups.iter().map(|g| g[0]).collect();
        let window = Window::Fragment(FragmentWindow { base, firsts, step });
        let (layout, dim_bits) = (layout.clone(), dim_bits.clone());
        Ok(Access { window, space, layout, dim_bits, groups, preds, held: Held::new(), fill: None })
    }

    /// The dimension of a window along which its memory is contiguous.
    pub(super) fn contiguous(&mut self, view: &ResolvedView) -> Option<usize> {
        let kept = view.base_dims();
        if let Some(layout) = self.k.tile_ty(view.base).and_then(|t| t.smem_layout.as_ref()) {
            return kept.iter().position(|&d| layout.dim_cols(d).first() == Some(&1));
        }
        let rank = self.k.tensor_ty(view.base)?.shape.len();
        let dim = (0..rank).rev().find(|&d| matches!(self.stride(view.base, d), Ok(s) if s.as_const() == Some(1)))?;
        kept.iter().position(|&d| d == dim)
    }

    /// The predicate of threads that store elements of a layout; `None`: all. One of several threads with the same
    /// element stores it. For stores to the memory of several blocks, lanes with the same elements store to one block
    /// each, or to one block of every group.
    pub(super) fn storing_threads(&mut self, layout: &RegLayout, space: Space, attrs: &CopyAttrs) -> Option<Reg> {
        self.lane_stores = None;
        let replicas = replica_bits(layout);
        if self.ctas() == 1 || space != Space::Smem || attrs.old.is_some() {
            return self.without_bits(replicas);
        }
        let lanes: Vec<u32> =
            (0..WARP.ilog2()).filter(|i| replicas >> i & 1 == 1).take(self.ctas().ilog2() as usize).collect();
        if lanes.is_empty() {
            return self.without_bits(replicas);
        }
        let mut ranks = vec![0; WARP.ilog2() as usize];
        lanes.iter().enumerate().for_each(|(bit, &lane)| ranks[lane as usize] = 1 << bit);
        let tid = self.tid();
        let first = self.linear_map(tid, &ranks);
        let first = self.in32(first);
        self.lane_stores = Some(LaneStores { first, blocks: 1 << lanes.len() });
        self.without_bits(lanes.iter().fold(replicas, |mask, lane| mask & !(1 << lane)))
    }

    /// The predicate by which one of several threads with the same element stores it.
    pub(super) fn replica_predicate(&mut self, layout: &RegLayout) -> Option<Reg> {
        self.without_bits(replica_bits(layout))
    }

    /// The predicate of threads whose number has none of these bits; `None`: all threads.
    pub(super) fn without_bits(&mut self, mask: i64) -> Option<Reg> {
        if mask == 0 {
            return None;
        }
        let tid = self.tid();
        let bits = self.emit.pure(Class::B32, P::AndB32, [tid.into(), Operand::Imm(mask)]);
        Some(self.emit.pure(Class::Pred, P::SetpEqS32, [bits.into(), Operand::Imm(0)]))
    }
}

/// Bits of the thread's number in which threads with the same elements differ.
pub(super) fn replica_bits(layout: &RegLayout) -> i64 {
    (0..layout.thread_bits()).filter(|&i| layout.thread_col(i) == 0).fold(0, |mask, i| mask | 1 << i)
}
