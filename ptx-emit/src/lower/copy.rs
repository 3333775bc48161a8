//! Copies: between global memory, shared memory and registers.
//!
//! Every copy moves elements through a register distribution, so there are two halves: loading a window into a tile, and
//! storing values into a window. A copy between two memories loads all of its elements before it stores the first.

use super::Lower;
use super::accesses::{guard, load_op, store_op, vector};
use super::bytes::Pairs;
use super::dims::Dims;
use super::elementwise::Scope;
use super::index::Int;
use super::tiles::{Tile, class_of, groups};
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;
use crate::report::{CopyReport, SharedReport};
use tilec_ir::diag::Reported;
use tilec_ir::entities::{Expr, Stmt};
use tilec_ir::kernel::{CopyAttrs, ExprData, StmtData};
use tilec_ir::layout::{Held, RegLayout, wavefronts_by_rank};
use tilec_ir::ops::Op as IrOp;
use tilec_ir::space::Space;
use tilec_ir::types::{Elem, ElemRef};
use tilec_ir::typing::{ResolvedView, ViewDim, fixed_shape, layout_of, resolve_view};

/// Bytes of an access to scratch memory.
const FRAGMENT_BYTES: u32 = 16;

/// Of a row and a column that are combined neither says which thread has which element.
pub(super) const NO_WHOLE_TILE: &str =
    "a tile that meets no register tile of its extents; add it to one (`var t = reg ..`)";

/// One side of a copy in memory, ready for access.
pub(super) enum Window {
    Global(super::global::GlobalWindow),
    Shared(super::shared::SharedWindow),
    Fragment(FragmentWindow),
}

/// A tile of scratch memory whose elements lie as registers do: what each thread holds in the same ones stands together.
pub(super) struct FragmentWindow {
    /// Where the thread's first registers are.
    base: Reg,
    /// The first element of each access, and bytes from one to the next.
    firsts: Vec<usize>,
    step: i64,
}

/// A memory window with the groups of register indices that one access covers.
pub(super) struct Access {
    pub(super) window: Window,
    pub(super) space: Space,
    pub(super) layout: RegLayout,
    pub(super) dim_bits: Dims,
    pub(super) groups: Vec<Vec<usize>>,
    pub(super) preds: Vec<Option<Reg>>,
    /// What elements outside the bounds read as; `None`: zero.
    pub(super) fill: Option<Filled>,
}

/// An element outside the bounds.
#[derive(Copy, Clone)]
pub(super) struct Filled {
    pub(super) pattern: u64,
    /// Bits of the part of a register that it takes.
    pub(super) bits: u32,
}

impl Access {
    /// An access to global memory whose predicates are somebody else's.
    pub(super) fn global(w: super::global::GlobalWindow, tile: &Tile, groups: Vec<Vec<usize>>) -> Access {
        let (layout, dim_bits) = (tile.layout.clone(), tile.dim_bits.clone());
        Access {
            window: Window::Global(w),
            space: Space::Gmem,
            layout,
            dim_bits,
            groups,
            preds: Vec::new(),
            fill: None,
        }
    }

    /// The predicate of each group.
    pub(super) fn predicates(&self) -> Vec<Option<Reg>> {
        self.preds.clone()
    }
}

impl Lower<'_> {
    pub(super) fn copy(&mut self, s: Stmt, src: Expr, dst: Expr, attrs: &CopyAttrs) -> Result<(), Reported> {
        if attrs.is_tensor() {
            return self.copy_tensor(s, src);
        }
        // Registers to registers: a different layout of the same elements.
        if let Some(to) = self.tile_of(dst)
            && let Some(mut from) = self.named_registers(src, to.dim_bits.extents())?
        {
            if let ExprData::Ref(v) = self.k.exprs[src]
                && let Some(partial) = self.k.tile_ty(v).and_then(|t| t.partial.clone())
            {
                from = self.put_together(src, &from, &partial)?;
            }
            return self.relayout(dst, &from, &to);
        }
        let Some(to) = resolve_view(self.k, dst) else { return Err(self.unsupported(dst, "this destination")) };
        if to.space(self.k).in_registers() {
            let window = match (self.tile_of(dst), self.copy_shape(src, dst)) {
                (None, Some(shape)) => self.window_of_tile(&to, &shape)?,
                (tile, _) => tile,
            };
            let Some(tile) = window else {
                return Err(self.unsupported(dst, "this window of a register tile as a destination"));
            };
            if let Some(from) = resolve_view(self.k, src).filter(|v| v.space(self.k).is_memory()) {
                if attrs.is_prefetch() {
                    return self.prefetch(src, &from, &tile, attrs);
                }
                if attrs.unaligned().is_some()
                    && let ExprData::Ref(value) = self.k.exprs[dst]
                {
                    return self.load_runs((s, src), &from, &tile, attrs, None, Some(value)).map(drop);
                }
                return self.load(s, src, &from, &tile, attrs, None);
            }
            let value = self.without_cast(src, Some(tile.elem));
            return self.copy_elementwise(dst, &tile, value, attrs);
        }
        let Some(shape) = self.copy_shape(src, dst) else {
            return Err(self.unsupported(src, "a copy without extents"));
        };
        let bits = Dims::of(&shape);
        let layout = match &attrs.threads {
            Some(l) => l.clone(),
            None => match layout_of(self.k, src) {
                Some(l) => l,
                None => return Err(self.without_layout(src, "a copy without a thread layout")),
            },
        };
        if layout.out_bits() != bits.iter().sum() {
            return Err(self.unsupported(src, NO_WHOLE_TILE));
        }
        if let Some(from) = resolve_view(self.k, src).filter(|v| v.space(self.k).is_memory()) {
            if attrs.is_asynchronous() {
                return self.copy_asynchronously(s, (src, &from), (dst, &to), &layout, &bits, attrs);
            }
            // Memory to memory, through registers.
            let Some(elem) = self.elem(from.base) else { return Err(self.unsupported(src, "this element type")) };
            let Some(tile) = self.new_tile(elem, layout, bits, true) else {
                return Err(self.unsupported(src, "elements of this type in registers"));
            };
            let only = if to.space(self.k).has_bounds() { self.replica_predicate(&tile.layout) } else { None };
            if attrs.unaligned().is_some() {
                let runs = self.load_runs((s, src), &from, &tile, attrs, only, None)?;
                self.settle(&runs);
            } else {
                self.load(s, src, &from, &tile, attrs, only)?;
            }
            return self.store(s, dst, &to, &Source::Tile(&tile), attrs);
        }
        let scope = Scope { layout, dim_bits: bits };
        let value = self.without_cast(src, self.elem(to.base));
        self.store(s, dst, &to, &Source::Elementwise(value, &scope), attrs)
    }

    /// What is converted to `to`: a copy converts to the type of its destination by itself.
    fn without_cast(&self, mut e: Expr, to: Option<Elem>) -> Expr {
        while let ExprData::Cast { elem: ElemRef::Known(elem), arg } = self.k.exprs[e]
            && Some(elem) == to
        {
            e = arg;
        }
        e
    }

    /// The extents of the tile a copy moves: those of a whole tile on either side, else those of the expression.
    pub(super) fn copy_shape(&self, src: Expr, dst: Expr) -> Option<Vec<u64>> {
        let whole = |e: Expr| matches!(self.k.exprs[e], ExprData::Ref(_)).then(|| fixed_shape(self.k, e)).flatten();
        whole(dst).or_else(|| fixed_shape(self.k, src)).or_else(|| fixed_shape(self.k, dst))
    }

    /// The register tile that `e` names as a whole.
    pub(super) fn tile_of(&self, e: Expr) -> Option<Tile> {
        match self.k.exprs[e] {
            ExprData::Ref(v) => self.tiles[v].clone(),
            _ => None,
        }
    }

    /// The registers that `e` names: of a whole tile, or of a window of these extents of one, as it is or transposed.
    fn named_registers(&mut self, e: Expr, shape: &[u64]) -> Result<Option<Tile>, Reported> {
        if let Some(tile) = self.tile_of(e) {
            return Ok(Some(tile));
        }
        let view = resolve_view(self.k, e).filter(|v| v.space(self.k).in_registers());
        match (view, shape) {
            (Some(view), &[rows, columns]) if view.transposed => {
                Ok(self.window_of_tile(&view, &[columns, rows])?.and_then(Tile::transposed))
            }
            (Some(view), _) => self.window_of_tile(&view, shape),
            (None, _) => Ok(None),
        }
    }

    /// A window of a register tile whose place is known: some of its registers. Variables of unrolled loops are known.
    fn window_of_tile(&mut self, view: &ResolvedView, shape: &[u64]) -> Result<Option<Tile>, Reported> {
        let mut starts = Vec::new();
        for dim in &view.dims {
            let ViewDim::From { starts: parts, end: None } = dim else { return Ok(None) };
            let mut start = Some(0u64);
            for &part in parts {
                let at = self.index(part)?.as_const().and_then(|at| u64::try_from(at).ok());
                start = start.zip(at).and_then(|(sum, at)| sum.checked_add(at));
            }
            starts.extend(start);
        }
        // A place that is not known leaves fewer of them than there are dimensions.
        Ok(self.tiles[view.base].as_ref().and_then(|tile| tile.window(&starts, shape)))
    }

    /// Prepares a window of memory for access with `vec` elements at a time. Where `only` does not hold, a thread does not
    /// access global memory.
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
        if view.kept().len() != dim_bits.len() {
            return Err(self.unsupported(e, "a window whose rank differs from the tile's"));
        }
        if attrs.is_fragment() && space.has_bounds() {
            return self.fragment_access(e, view, layout, dim_bits, elem);
        }
        let log2 = attrs.vec.unwrap_or(1).max(1).ilog2();
        let dim = self.contiguous(view).unwrap_or(0);
        let Some(groups) = groups(layout, dim_bits, dim, log2) else {
            return Err(self.unsupported(e, "an access wider than the run of elements that a thread owns"));
        };
        let (window, preds) = if space.has_bounds() {
            let w = self.global_window(view, layout, dim_bits, attrs.check.as_deref())?;
            let firsts: Vec<usize> = groups.iter().map(|g| g[0]).collect();
            let when = attrs.when.map(|cond| self.condition(cond)).transpose()?;
            let when = self.emit.and(when, only);
            let preds = self.bounds(view, &w, layout, &firsts, when)?;
            (Window::Global(w), preds)
        } else {
            let w = self.shared_window(view, layout, dim_bits, elem)?;
            (Window::Shared(w), vec![None; groups.len()])
        };
        let fill = match attrs.fill.filter(|_| space.has_bounds()) {
            Some(fill) => match fill.bits(elem) {
                Some(pattern) => Some(Filled { pattern, bits: elem.bits() }),
                None => return Err(self.unsupported(e, "a number that the tensor's type does not have")),
            },
            None => None,
        };
        Ok(Access { window, space, layout: layout.clone(), dim_bits: dim_bits.clone(), groups, preds, fill })
    }

    ///
    /// # Errors
    /// A coordinate may not fit 64 bits.
    pub(super) fn address(&mut self, access: &mut Access, v: usize) -> Result<Operand, Reported> {
        match &mut access.window {
            Window::Global(w) => self.global_address(w, &access.layout, v),
            Window::Shared(w) => Ok(self.shared_address(w, v)),
            Window::Fragment(w) => {
                // The access that covers it: their first elements go up.
                let place = w.firsts.partition_point(|&first| first <= v).saturating_sub(1);
                Ok(Operand::at(w.base, place as i64 * w.step))
            }
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
        let width = count.min((FRAGMENT_BYTES / elem.bytes()) as usize);
        let bytes = width as u64 * u64::from(elem.bytes());
        let whole = self.thread_bits == layout.thread_bits() && self.replica_predicate(layout).is_none();
        let known = self.fragments[view.base].get_or_insert_with(|| layout.clone()) == layout;
        let Some(&ViewDim::Fixed(index)) = view.dims.first().filter(|_| whole && known && bytes >= 4) else {
            return Err(self.unsupported(
                e,
                "a tile of scratch memory that threads hold in different layouts, or not all of them",
            ));
        };
        let base = self.base(view)?;
        let elements: u64 = dim_bits.extents().iter().product();
        let tile = (elements * u64::from(elem.bytes())) as i64;
        let index = self.index(index)?;
        let Some(offset) = self.int_op(IrOp::Mul, index, Int::constant(tile)) else {
            return Err(self.unsupported(e, "so much scratch memory"));
        };
        let offset = self.as64(offset);
        let at = self.emit.pure(Class::B64, P::AddS64, [base.into(), offset]);
        let tid = self.tid();
        let own = self.emit.pure(Class::B32, P::ShlB32, [tid.into(), Operand::Imm(i64::from(bytes.ilog2()))]);
        let own = self.emit.pure(Class::B64, P::CvtU64U32, [own.into()]);
        let base = self.emit.pure(Class::B64, P::AddS64, [at.into(), own.into()]);
        let Some(threads) = layout.threads(dim_bits.extents()) else {
            return Err(self.unsupported(e, "a tile of scratch memory of which threads have different registers"));
        };
        let step = (bytes * threads) as i64;
        let groups: Vec<Vec<usize>> = (0..count).step_by(width).map(|v| (v..v + width).collect()).collect();
        let Some(groups) = Held::of(layout, dim_bits.extents()).and_then(|held| held.groups(groups)) else {
            return Err(self.unsupported(e, "accesses of 16 bytes to elements of which some are beyond the tile"));
        };
        let preds = vec![None; groups.len()];
        let firsts = groups.iter().map(|g| g[0]).collect();
        let window = Window::Fragment(FragmentWindow { base, firsts, step });
        let (layout, dim_bits) = (layout.clone(), dim_bits.clone());
        Ok(Access { window, space: Space::Gmem, layout, dim_bits, groups, preds, fill: None })
    }

    /// The dimension of a window along which its memory is contiguous.
    pub(super) fn contiguous(&mut self, view: &ResolvedView) -> Option<usize> {
        let kept = view.kept();
        if let Some(layout) = self.k.tile_ty(view.base).and_then(|t| t.smem_layout.as_ref()) {
            return kept.iter().position(|&d| layout.dim_cols(d).first() == Some(&1));
        }
        let rank = self.k.tensor_ty(view.base)?.shape.len();
        let dim = (0..rank).rev().find(|&d| matches!(self.stride(view.base, d), Ok(s) if s.as_const() == Some(1)))?;
        kept.iter().position(|&d| d == dim)
    }

    /// Asks the second-level cache for the lines in which the runs of a thread begin.
    fn prefetch(&mut self, src: Expr, from: &ResolvedView, tile: &Tile, attrs: &CopyAttrs) -> Result<(), Reported> {
        let layout = attrs.threads.as_ref().unwrap_or(&tile.layout);
        let Some(dim) = self.contiguous(from) else {
            return Err(self.unsupported(src, "a prefetch without a contiguous dimension"));
        };
        let owned = (0..=tile.dim_bits[dim]).rev().find_map(|log2| groups(layout, &tile.dim_bits, dim, log2));
        let runs = owned.expect("an element is a run");
        let mut w = self.global_window(from, layout, &tile.dim_bits, attrs.check.as_deref())?;
        let firsts: Vec<usize> = runs.iter().map(|g| g[0]).collect();
        let when = attrs.when.map(|cond| self.condition(cond)).transpose()?;
        let replicas = self.replica_predicate(layout);
        let when = self.emit.and(when, replicas);
        let preds = self.bounds(from, &w, layout, &firsts, when)?;
        for (&v, pred) in firsts.iter().zip(preds) {
            let address = self.global_address(&mut w, layout, v)?;
            self.emit.push_if(guard(pred), P::PrefetchGlobalL2, [address]);
        }
        Ok(())
    }

    /// Loads a window into a tile, converting if the element types differ; `only`: see [`Lower::access`].
    fn load(
        &mut self,
        s: Stmt,
        src: Expr,
        from: &ResolvedView,
        tile: &Tile,
        attrs: &CopyAttrs,
        only: Option<Reg>,
    ) -> Result<(), Reported> {
        let Some(elem) = self.elem(from.base) else { return Err(self.unsupported(src, "this element type")) };
        if class_of(elem).is_none() {
            return Err(self.unsupported(src, "elements of this type in registers"));
        }
        if attrs.is_matrix() {
            return self.load_matrices(s, src, from, tile, attrs);
        }
        let mut access = self.access(src, from, &tile.layout, &tile.dim_bits, attrs, only)?;
        self.report_copy(s, src, from, &access, elem, attrs, false);
        if elem == tile.elem {
            let groups = std::mem::take(&mut access.groups);
            let preds = access.preds.clone();
            if elem.bits() == 8 {
                return self.load_bytes(src, &mut access, &groups, &preds, tile, attrs.keep);
            }
            if tile.packed() && attrs.vec.unwrap_or(1) == 1 {
                return self.load_halves(&mut access, &groups, &preds, tile, attrs.keep);
            }
            if !groups.iter().all(|g| self.registers_of(tile, g).is_some()) {
                return self.load_across(src, &mut access, &groups, &preds, tile, attrs.keep);
            }
            for (group, pred) in groups.iter().zip(preds) {
                let regs = self.registers_of(tile, group).expect("asked above");
                let class = self.emit.func.regs[regs[0]];
                let Some(op) = load_op(access.space, class, regs.len()) else {
                    return Err(self.unsupported(src, "an access of this width"));
                };
                let address = self.address(&mut access, group[0])?;
                if pred.is_some() && !attrs.keep {
                    for &r in &regs {
                        self.fill_reg(r, access.fill);
                    }
                }
                self.emit.push_if(guard(pred), op, [vector(regs), address]);
            }
            return Ok(());
        }
        // Load as stored, then convert.
        let raw = self.new_tile(elem, tile.layout.clone(), tile.dim_bits.clone(), true);
        let Some(raw) = raw else { return Err(self.unsupported(src, "elements of this type in registers")) };
        // What is masked is chosen away below.
        self.load(s, src, from, &raw, &CopyAttrs { keep: false, ..attrs.clone() }, only)?;
        let mut values = Vec::new();
        for v in tile.elements() {
            let x = self.get(&raw, v);
            let x = self.wide_enough(x, Some(elem), tile.elem);
            let Some(r) = self.narrow(x, tile.elem) else { return Err(self.unsupported(src, "this conversion")) };
            let masked = access.groups.iter().zip(&access.preds).find(|(group, _)| group.contains(&v));
            let r = match masked.and_then(|(_, pred)| *pred).filter(|_| attrs.keep) {
                None => r,
                Some(inside) => {
                    let new = self.widen(r, tile.elem);
                    let old = self.get(tile, v);
                    let kept = self.choose(inside, new, old);
                    // It is a number of the type, which this does not round again.
                    let Some(r) = self.narrow(kept, tile.elem) else {
                        return Err(self.unsupported(src, "this conversion"));
                    };
                    r
                }
            };
            values.push((v, r));
        }
        self.set_raw(tile, &values);
        Ok(())
    }

    /// 16-bit loads into a packed tile: both halves, then the pair.
    fn load_halves(
        &mut self,
        access: &mut Access,
        groups: &[Vec<usize>],
        preds: &[Option<Reg>],
        tile: &Tile,
        keep: bool,
    ) -> Result<(), Reported> {
        let op = if access.space.has_bounds() { P::LdGlobalB16 } else { P::LdSharedB16 };
        for pair in tile.registers() {
            // Of extents that are no power of two a register may hold one element.
            let halves: Vec<usize> = [2 * pair, 2 * pair + 1].into_iter().filter(|&v| tile.held.has(v)).collect();
            let mut regs: Vec<Reg> = [0, 1].map(|_| self.emit.mutable(Class::B16)).to_vec();
            if keep {
                self.emit.push(P::UnpackB32B16, [Operand::Vec(regs.clone()), tile.regs[pair].into()]);
            }
            for &v in &halves {
                let r = regs[v % 2];
                let at = groups.iter().position(|g| g[0] == v).expect("groups of one element cover the tile");
                let address = self.address(access, v)?;
                if preds[at].is_some() && !keep {
                    self.fill_reg(r, access.fill);
                }
                self.emit.push_if(guard(preds[at]), op, [r.into(), address]);
            }
            if let [alone] = halves[..] {
                regs[1 - alone % 2] = regs[alone % 2];
            }
            self.emit.push(P::PackB32B16, [tile.regs[pair].into(), Operand::Vec(regs)]);
        }
        Ok(())
    }

    /// Loads whose neighbours in memory do not share a register of the packed tile: whole accesses into registers of
    /// their own, then the halves are paired as the tile wants them.
    fn load_across(
        &mut self,
        src: Expr,
        access: &mut Access,
        groups: &[Vec<usize>],
        preds: &[Option<Reg>],
        tile: &Tile,
        keep: bool,
    ) -> Result<(), Reported> {
        let mut values = Vec::new();
        for (group, &pred) in groups.iter().zip(preds) {
            let regs: Vec<Reg> = (0..group.len() / 2).map(|_| self.emit.mutable(Class::B32)).collect();
            let Some(op) = load_op(access.space, Class::B32, regs.len()) else {
                return Err(self.unsupported(src, "an access of this width"));
            };
            for (&r, pair) in regs.iter().zip(group.chunks(2)).filter(|_| pred.is_some()) {
                if keep {
                    let halves = pair.iter().map(|&v| self.raw(tile, v)).collect();
                    self.emit.push(P::PackB32B16, [r.into(), Operand::Vec(halves)]);
                } else {
                    self.fill_reg(r, access.fill);
                }
            }
            let address = self.address(access, group[0])?;
            self.emit.push_if(guard(pred), op, [vector(regs.clone()), address]);
            for (&r, pair) in regs.iter().zip(group.chunks(2)) {
                let halves = vec![self.emit.reg(Class::B16), self.emit.reg(Class::B16)];
                self.emit.push(P::UnpackB32B16, [Operand::Vec(halves.clone()), r.into()]);
                values.extend(pair.iter().copied().zip(halves));
            }
        }
        self.set_raw(tile, &values);
        Ok(())
    }

    /// The registers that hold a group, in address order; `None` if neighbours in memory are parts of different registers.
    pub(super) fn registers_of(&self, tile: &Tile, group: &[usize]) -> Option<Vec<Reg>> {
        if !tile.packed() {
            return Some(group.iter().map(|&v| tile.regs[v]).collect());
        }
        let per = tile.per_register;
        let whole = |part: &[usize]| {
            part.len() == per && part[0].is_multiple_of(per) && part.iter().enumerate().all(|(i, &v)| v == part[0] + i)
        };
        group.chunks(per).map(|part| whole(part).then(|| tile.regs[part[0] / per])).collect()
    }

    /// Loads one group of a window into fresh registers of the computed class.
    pub(super) fn load_group(
        &mut self,
        e: Expr,
        access: &mut Access,
        elem: Elem,
        group: &[usize],
        pred: Option<Reg>,
    ) -> Result<Vec<Reg>, Reported> {
        if elem.bits() == 8 {
            return self.load_byte_group(e, access, elem, group, pred);
        }
        let Some(class) = class_of(elem) else { return Err(self.unsupported(e, "elements of this type in registers")) };
        let packed = class == Class::B16 && group.len() > 1;
        let (class, n) = if packed { (Class::B32, group.len() / 2) } else { (class, group.len()) };
        let regs: Vec<Reg> = (0..n).map(|_| self.emit.mutable(class)).collect();
        let Some(op) = load_op(access.space, class, n) else {
            return Err(self.unsupported(e, "an access of this width"));
        };
        if pred.is_some() {
            for &r in &regs {
                self.fill_reg(r, access.fill);
            }
        }
        let address = self.address(access, group[0])?;
        self.emit.push_if(guard(pred), op, [vector(regs.clone()), address]);
        let mut out = Vec::with_capacity(group.len());
        for i in 0..group.len() {
            let raw = if packed {
                let (lo, hi) = (self.emit.reg(Class::B16), self.emit.reg(Class::B16));
                self.emit.push(P::UnpackB32B16, [Operand::Vec(vec![lo, hi]), regs[i / 2].into()]);
                if i % 2 == 0 { lo } else { hi }
            } else {
                regs[i]
            };
            out.push(self.widen(raw, elem));
        }
        Ok(out)
    }

    /// Stores values into a window, group by group.
    fn store(
        &mut self,
        s: Stmt,
        dst: Expr,
        to: &ResolvedView,
        source: &Source<'_>,
        attrs: &CopyAttrs,
    ) -> Result<(), Reported> {
        let Some(elem) = self.elem(to.base) else { return Err(self.unsupported(dst, "this element type")) };
        if class_of(elem).is_none() {
            return Err(self.unsupported(dst, "elements of this type in registers"));
        }
        if attrs.is_matrix() {
            return self.store_matrices(s, dst, to, source, attrs);
        }
        let combine = attrs.reduce.map(|op| self.combining(dst, op, elem)).transpose()?;
        let (layout, dim_bits) = match source {
            Source::Tile(t) => (t.layout.clone(), t.dim_bits.clone()),
            Source::Elementwise(_, scope) => (scope.layout.clone(), scope.dim_bits.clone()),
        };
        let mut access = self.access(dst, to, &layout, &dim_bits, attrs, None)?;
        self.report_copy(s, dst, to, &access, elem, attrs, true);
        let replicas = self.replica_predicate(&layout);
        // An operand may be what is written: threads that do not write an element must not read it while another does.
        let only = if access.space.has_bounds() { replicas } else { None };
        let mut operands = match source {
            Source::Elementwise(e, scope) => Some(self.operands(*e, scope, attrs, only)?),
            Source::Tile(_) => None,
        };
        if let Some(operands) = &mut operands {
            for (e, elem) in operands.take_unlike(&access.groups) {
                let Some(view) = resolve_view(self.k, e) else { return Err(self.unsupported(e, "this window")) };
                let Some(tile) = self.new_tile(elem, layout.clone(), dim_bits.clone(), true) else {
                    return Err(self.unsupported(e, "elements of this type in registers"));
                };
                self.load(s, e, &view, &tile, &CopyAttrs { keep: false, ..attrs.clone() }, only)?;
                operands.provide(e, tile);
            }
        }
        let computed_in = match source {
            Source::Elementwise(e, _) => self.elem_of_expr(*e),
            Source::Tile(_) => None,
        };
        let mut pairs = Pairs::default();
        let groups = std::mem::take(&mut access.groups);
        let preds = access.preds.clone();
        for (g, (group, pred)) in groups.iter().zip(preds).enumerate() {
            let same = match source {
                Source::Tile(t) => Some((*t).clone()),
                Source::Elementwise(e, _) => self.tile_of(*e),
            }
            .filter(|t| t.elem == elem);
            if elem.bits() == 8 {
                let bytes: Vec<(Reg, usize)> = match (same, source, &mut operands) {
                    (Some(t), ..) => group.iter().map(|&v| t.byte_of(v)).collect(),
                    (None, Source::Elementwise(e, _), Some(operands)) => {
                        let computed = self.compute_group(*e, operands, g, group)?;
                        self.narrow_all(dst, computed, (computed_in, elem))?.into_iter().map(|r| (r, 0)).collect()
                    }
                    (None, Source::Tile(t), _) => {
                        let computed = group.iter().map(|&v| self.get(t, v)).collect();
                        self.narrow_all(dst, computed, (Some(t.elem), elem))?.into_iter().map(|r| (r, 0)).collect()
                    }
                    (None, Source::Elementwise(..), None) => Vec::new(),
                };
                let address = self.address(&mut access, group[0])?;
                let pred = self.emit.and(pred, replicas);
                self.store_bytes(dst, access.space, address, &bytes, pred, &mut pairs)?;
                continue;
            }
            let regs = match same.as_ref().and_then(|t| self.registers_of(t, group)) {
                Some(regs) => regs,
                None => {
                    let raw = match (same, source, &mut operands) {
                        (Some(t), ..) if group.len() == 1 => vec![self.half_to_store(&t, group[0])],
                        (Some(t), ..) => group.iter().map(|&v| self.raw(&t, v)).collect(),
                        (None, Source::Elementwise(e, _), Some(operands)) => {
                            let computed = self.compute_group(*e, operands, g, group)?;
                            self.narrow_words(dst, computed, (computed_in, elem))?
                        }
                        (None, Source::Tile(t), _) => {
                            let computed = group.iter().map(|&v| self.get(t, v)).collect();
                            self.narrow_words(dst, computed, (Some(t.elem), elem))?
                        }
                        (None, Source::Elementwise(..), None) => Vec::new(),
                    };
                    if raw.len() > 1 { self.packed(raw) } else { raw }
                }
            };
            let class = self.emit.func.regs[regs[0]];
            let op = match &combine {
                Some(combine) => combine.op(group.len()),
                None => store_op(access.space, class, regs.len()),
            };
            let Some(op) = op else { return Err(self.unsupported(dst, "an access of this width")) };
            let address = self.address(&mut access, group[0])?;
            let pred = self.emit.and(pred, replicas);
            self.emit.push_if(guard(pred), op, [address, vector(regs)]);
        }
        Ok(())
    }

    /// A half of a packed register for a 16-bit store, which takes the low half of a register: an upper one is shifted down
    /// (taken apart, ptxas keeps more registers live).
    fn half_to_store(&mut self, tile: &Tile, v: usize) -> Reg {
        if v.is_multiple_of(2) || !tile.packed() {
            return self.raw(tile, v);
        }
        let low = self.emit.def(Class::B32, P::ShrU32, [tile.regs[v / 2].into(), Operand::Imm(16)]);
        let (half, rest) = (self.emit.reg(Class::B16), self.emit.reg(Class::B16));
        self.emit.push(P::UnpackB32B16, [Operand::Vec(vec![half, rest]), low.into()]);
        half
    }

    /// Of several threads that hold the same element one stores it.
    pub(super) fn replica_predicate(&mut self, layout: &RegLayout) -> Option<Reg> {
        let mut mask = 0i64;
        for i in 0..layout.thread_bits() {
            if layout.thread_col(i) == 0 {
                mask |= 1 << i;
            }
        }
        if mask == 0 {
            return None;
        }
        let tid = self.tid();
        let bits = self.emit.pure(Class::B32, P::AndB32, [tid.into(), Operand::Imm(mask)]);
        Some(self.emit.pure(Class::Pred, P::SetpEqS32, [bits.into(), Operand::Imm(0)]))
    }

    #[expect(clippy::too_many_arguments, reason = "the facts of one row of the report")]
    pub(super) fn report_copy(
        &mut self,
        s: Stmt,
        e: Expr,
        view: &ResolvedView,
        access: &Access,
        elem: Elem,
        attrs: &CopyAttrs,
        store: bool,
    ) {
        if !self.report_accesses {
            return;
        }
        let bytes = attrs.vec.unwrap_or(1) * elem.bytes();
        let in_loop = !self.loops.is_empty();
        let span = self.k.stmt_spans[s];
        let global = access.space.has_bounds();
        let (src, dst) = match self.k.stmts[s] {
            StmtData::Copy { src, dst, .. } => {
                (tilec_ir::print::print_expr(self.k, src), tilec_ir::print::print_expr(self.k, dst))
            }
            _ => (tilec_ir::print::print_expr(self.k, e), String::new()),
        };
        let sector_use = if global { self.sector_use(view, access, bytes) } else { 1.0 };
        self.report.copies.push(CopyReport {
            span,
            src,
            dst,
            global_bytes: if global { bytes } else { 0 },
            shared_bytes: if global { 0 } else { bytes },
            accesses: access.groups.len() as u32,
            sector_use,
            why: String::new(),
            in_loop,
        });
        if !global
            && let Some(smem) = self.k.tile_ty(view.base).and_then(|t| t.smem_layout.clone())
            && let Some(window) = self.window_bits(access, view)
        {
            let lanes =
                super::shared::lane_bytes(&smem, &access.layout, &window, &view.kept(), u64::from(elem.bytes()));
            let w = wavefronts_by_rank(&lanes, bytes);
            self.report.shared.push(SharedReport {
                span,
                buffer: self.k.values[view.base].name.clone(),
                store,
                access_bytes: bytes,
                ideal_wavefronts: w.phases,
                wavefronts: w.wavefronts,
                in_loop,
            });
        }
    }

    fn window_bits(&self, access: &Access, view: &ResolvedView) -> Option<Vec<u32>> {
        match &access.window {
            Window::Shared(w) => Some(w.bits().to_vec()),
            Window::Global(_) | Window::Fragment(_) => {
                let _ = view;
                None
            }
        }
    }

    /// Used bytes over bytes of touched 32-byte sectors, for the first access of a full warp with the rows packed as
    /// aligned runs.
    fn sector_use(&mut self, view: &ResolvedView, access: &Access, bytes: u32) -> f64 {
        let Some(dim) = self.contiguous(view) else { return f64::from(bytes) / 32.0 };
        let Some(elem) = self.elem(view.base) else { return 1.0 };
        let Some(first) = access.groups.first() else { return 1.0 };
        let shift: u32 = access.dim_bits[..dim].iter().sum();
        let mask = (1u64 << access.dim_bits[dim]) - 1;
        let mut sectors = std::collections::BTreeSet::new();
        let mut touched = std::collections::BTreeSet::new();
        for lane in 0..32u64 {
            for &v in first {
                let index = access.layout.at(lane, v as u64);
                let along = (index >> shift & mask) * u64::from(elem.bytes());
                let row = index & !(mask << shift);
                sectors.insert((row, along / 32));
                touched.insert((row, along));
            }
        }
        (touched.len() as f64 * f64::from(elem.bytes())) / (sectors.len() as f64 * 32.0)
    }

    /// Copies a register tile to another, of any layout that threads of a warp can exchange.
    fn relayout(&mut self, dst: Expr, from: &Tile, to: &Tile) -> Result<(), Reported> {
        if from.same_shape(to) {
            for i in to.registers() {
                self.mov(to.regs[i], from.regs[i]);
            }
            return Ok(());
        }
        if from.elem == to.elem {
            return super::relayout::exchange(self, dst, from, to);
        }
        if from.layout == to.layout {
            return self.converted(dst, from, to);
        }
        // The narrower of the two types moves.
        let first = from.elem.bits() <= to.elem.bits();
        let (elem, layout) = if first { (from.elem, &to.layout) } else { (to.elem, &from.layout) };
        let Some(between) = self.new_tile(elem, layout.clone(), to.dim_bits.clone(), true) else {
            return Err(self.unsupported(dst, "elements of this type in registers"));
        };
        if first {
            super::relayout::exchange(self, dst, from, &between)?;
            return self.converted(dst, &between, to);
        }
        self.converted(dst, from, &between)?;
        super::relayout::exchange(self, dst, &between, to)
    }

    /// Fills `to` with the elements of `from`, which has the same layout, converted.
    fn converted(&mut self, dst: Expr, from: &Tile, to: &Tile) -> Result<(), Reported> {
        let mut values = Vec::new();
        for v in to.elements() {
            let x = self.get(from, v);
            values.push((v, self.wide_enough(x, Some(from.elem), to.elem)));
        }
        self.set_computed(dst, to, &values)
    }
}

/// Where stored values come from.
pub(super) enum Source<'a> {
    Tile(&'a Tile),
    Elementwise(Expr, &'a Scope),
}
