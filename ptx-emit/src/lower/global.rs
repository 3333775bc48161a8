//! Global memory: addresses and bounds of windows of tensors.
//!
//! The address of an element is `base + Σ (start + coordinate) · stride`. The part that depends on the thread is one
//! 64-bit pointer. The part that depends on the register index is an immediate along dimensions with a literal stride.
//! Along the others it is a chain of additions of a loop-invariant step. In a loop that moves the window, the pointer
//! is *induced*: computed in front of the loop and advanced by a constant at its end. Along a dimension of several
//! modes (`modes`) this holds within blocks of neighbours that are known to be in one mode. Each block that a thread
//! reaches has its own pointer. So has each part of a tile along coordinate bits that both the thread and the register
//! index set.
//!
//! Bounds are compared as unsigned numbers, so an index below zero is out of bounds, too. Comparisons that do not
//! depend on the loop are done in front of it and packed into a bit mask, because a thread has only 8 predicate
//! registers.

use super::ranged_ints::{Int, Repr};
use super::state::Lower;
use super::windows::{GlobalWindow, WORD, WindowDim};
use crate::inst::{Class, Operand, Reg, Special};
use crate::ops::Op as P;
use std::collections::{BTreeMap, BTreeSet};
use tilec_ir::diag::Reported;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::index_values::is_of_value;
use tilec_ir::kernel::{ExprData, Kernel};
use tilec_ir::layout::RegLayout;
use tilec_ir::ops::Op;
use tilec_ir::types::GivenStride;
use tilec_ir::typing::{ResolvedView, Type, ViewDim, let_init, type_of};

/// Immediate offsets stay below this: the instruction has a signed 24-bit offset.
const REACH: i64 = 1 << 22;

/// Bytes of an address in an array of pointers.
const ADDRESS_BYTES: i64 = 8;

impl Lower<'_> {
    /// The stride of a tensor's dimension in elements; for several modes, that of the innermost.
    pub(super) fn stride(&mut self, tensor: Value, dim: usize) -> Result<Int, Reported> {
        match self.k.tensor_ty(tensor).cloned().expect("only tensors have strides").given_stride(dim) {
            Some(GivenStride::Written(stride)) => match stride.strides().last() {
                Some(&e) => self.stride_value(e),
                None => Ok(Int::constant(1)),
            },
            Some(GivenStride::Leading(v)) => Ok(self.ints[v].expect("strides are parameters")),
            Some(GivenStride::Contiguous) => Ok(Int::constant(1)),
            // The part's own address is the base, so its index adds nothing.
            Some(GivenStride::Pointer | GivenStride::Repeats) => Ok(Int::constant(0)),
            None => unreachable!("specialised, and dimensions are counted"),
        }
    }

    /// The base address of a window: that of the tensor, or for an array of pointers the one that the window's first
    /// index selects.
    pub(super) fn base(&mut self, view: &ResolvedView) -> Result<Reg, Reported> {
        let table = self.pointers[view.base].expect("every tensor has a pointer");
        if !self.k.tensor_ty(view.base).is_some_and(|t| t.pointers) {
            return Ok(table);
        }
        let Some(&ViewDim::Fixed(e)) = view.dims.first() else {
            return Err(self.unsupported_at(self.k.name_span, "a window of several parts of an array of pointers"));
        };
        let (mut index, mut exists) = (self.index(e)?, None);
        if is_of_value(self.k, e) {
            // An index out of range accesses nothing; it is clamped so that the address load is valid.
            let first = self.k.tensor_ty(view.base).expect("a tensor").shape[0];
            let parts = self.index(first)?;
            // There may be no address to load.
            exists = if parts.lo < 1 { self.unsigned_less(index, parts) } else { None };
            index = self.cut_off(index, parts);
        }
        let slot = match index.as_const().filter(|i| (0..REACH / ADDRESS_BYTES).contains(i)) {
            Some(i) => Operand::at(table, i * ADDRESS_BYTES),
            None => {
                let bytes = self.as64(index);
                let bytes = self.emit.pure(Class::B64, P::ShlB64, [bytes, Operand::Imm(ADDRESS_BYTES.ilog2().into())]);
                Operand::at(self.emit.pure(Class::B64, P::AddS64, [table.into(), bytes.into()]), 0)
            }
        };
        // If the index is always in range, the load may be hoisted; else it must stay after the branch that guards it.
        let (load, cast) = (P::LdGlobalNcB64, P::CvtaToGlobalU64);
        Ok(if is_of_value(self.k, e) || self.inside_extent(view, 0, e) {
            let generic = self.emit.pure_load_if(exists, Class::B64, load, slot);
            self.emit.pure(Class::B64, cast, [generic.into()])
        } else {
            let generic = self.emit.def(Class::B64, load, [slot]);
            self.emit.def(Class::B64, cast, [generic.into()])
        })
    }

    /// Prepares access to a window through `layout`, a distribution of the tile `window` (log2 extents).
    pub(super) fn global_window(
        &mut self,
        view: &ResolvedView,
        layout: &RegLayout,
        window: &[u32],
        check: Option<&[u32]>,
    ) -> Result<GlobalWindow, Reported> {
        let mut w = self.unplaced_window(view, layout, window, check)?;
        if w.dims.iter().all(|d| d.blocks == 0) {
            self.block_pointer(&mut w, &vec![0; window.len()])?;
        }
        Ok(w)
    }

    /// [`Self::global_window`] without pointers.
    pub(super) fn unplaced_window(
        &mut self,
        view: &ResolvedView,
        layout: &RegLayout,
        window: &[u32],
        check: Option<&[u32]>,
    ) -> Result<GlobalWindow, Reported> {
        let tensor = view.base;
        let own = self.elem(tensor).expect("specialised").size().whole_bytes();
        let (bytes, halves) = (own.map_or(1, i64::from), own.is_none());
        let tid = self.tid();
        let kept = view.base_dims();
        let mut dims = Vec::new();
        let mut shift = 0;
        for (w, &d) in kept.iter().enumerate() {
            let bits = window[w];
            let mask = (1u64 << bits) - 1;
            let cols: Vec<u64> = (0..layout.thread_bits()).map(|i| layout.thread_col(i) >> shift & mask).collect();
            let reach = cols.iter().fold(0, |a, c| a | c);
            let thread = self.linear_map(tid, &cols);
            let rows = self.rows(view, w, layout, window)?;
            let start = self.window_start(view, d)?;
            let first = self.sum(view, start, thread)?;
            let stride = self.stride(tensor, d)?;
            // Coordinate bits that both thread and register index set do not add up. So each such part has its own
            // pointer.
            let value = layout.value().cols().iter().fold(0, |a, c| a | c >> shift & mask);
            let blocks = match &rows {
                Some(rows) if rows.by_element => 0,
                Some(_) => mask,
                None => self.blocks(view, d, mask) | reach & value,
            };
            let extent = self.k.tensor_ty(tensor).map(|t| t.shape[d]).expect("a tensor");
            let mut limit = self.index(extent)?;
            if let ViewDim::From { end: Some(end), .. } = view.dims[d] {
                let end = self.index(end)?;
                limit = match self.int_op(Op::Min, limit, end) {
                    Some(limit) => limit,
                    None => return Err(self.unsupported_at(self.k.name_span, "a window that may end so far out")),
                };
            }
            let checked = check.is_none_or(|c| c.contains(&(w as u32)));
            let thread_reg = match thread.repr {
                Repr::R32(r) => Some(r),
                _ => None,
            };
            dims.push(WindowDim {
                dim: d,
                stride,
                blocks,
                cols,
                first,
                reach,
                thread: thread_reg,
                start,
                limit,
                checked,
                bits,
                shift,
                rows,
            });
            shift += bits;
        }
        let (pointers, chain) = (Vec::new(), Vec::new());
        Ok(GlobalWindow { view: view.clone(), pointers, dims, bytes, halves, chain, rounded: false, shift: None })
    }

    /// The bits of a coordinate that are block numbers; `mask` has the bits of the window's coordinates.
    fn blocks(&self, view: &ResolvedView, d: usize, mask: u64) -> u64 {
        let block = self.facts.block(self.k, view.base, d);
        let aligned = view.dims[d].starts().iter().map(|&e| self.facts.divisor(self.k, e)).min();
        if self.k.tensor_ty(view.base).is_some_and(|t| t.modes(d).is_some()) {
            mask & !(block.min(aligned.unwrap_or(block)) - 1)
        } else {
            0
        }
    }

    /// The pointer to the thread's first element in the block with these coordinates.
    pub(super) fn block_pointer(&mut self, w: &mut GlobalWindow, blocks: &[u64]) -> Result<Reg, Reported> {
        if let Some((_, reg)) = w.pointers.iter().find(|(b, _)| b == blocks) {
            return Ok(*reg);
        }
        let mut reg = self.window_pointer(w, blocks)?;
        if !self.loops.is_empty() && w.is_warp_uniform() {
            reg = self.of_lane(reg);
        }
        w.pointers.push((blocks.to_vec(), reg));
        Ok(reg)
    }

    fn window_start(&mut self, view: &ResolvedView, d: usize) -> Result<Int, Reported> {
        let mut start = Int::constant(0);
        if matches!(view.dims[d], ViewDim::Gather(_)) {
            return Ok(start);
        }
        for &e in view.dims[d].starts() {
            let x = self.index(e)?;
            start = match self.int_op(Op::Add, start, x) {
                Some(s) => s,
                None => return Err(self.too_far_out(e)),
            };
        }
        Ok(start)
    }

    /// The pointer to the thread's first element; induced if the innermost loop moves the window.
    fn window_pointer(&mut self, w: &mut GlobalWindow, blocks: &[u64]) -> Result<Reg, Reported> {
        let (view, bytes) = (&w.view.clone(), w.bytes);
        let mut base = self.base(view)?;
        if w.halves {
            base = self.emit.pure(Class::B64, P::ShlB64, [base.into(), Operand::Imm(1)]);
        }
        let Some(moving) = self.loops.last().filter(|l| l.steady).map(|l| (l.var, l.depth, l.start, l.step)) else {
            return self.first_pointer(w, base, blocks);
        };
        let (var, depth, loop_start, step) = moving;
        let rows = w.dims.iter().filter_map(|d| d.rows.as_ref()).filter(|rows| !rows.by_element);
        let rows = rows.map(|rows| self.depth_of_rows(rows)).max().unwrap_or(0);
        if self.emit.depth_of(base).max(rows) >= depth {
            return self.first_pointer(w, base, blocks);
        }
        // Bytes the window moves per unit of the loop variable.
        let mut per_unit = Int::constant(0);
        let (mut moves, mut whole) = (false, true);
        for (d, dim) in view.dims.iter().enumerate() {
            let mut coefficient = 0i64;
            for &e in dim.starts() {
                match self.coefficient(e, var) {
                    Some(c) => match coefficient.checked_add(c) {
                        Some(sum) => coefficient = sum,
                        None => return self.first_pointer(w, base, blocks),
                    },
                    None => return self.first_pointer(w, base, blocks),
                }
            }
            if coefficient != 0 {
                // The distance of elements changes from mode to mode.
                if self.k.tensor_ty(view.base).is_some_and(|t| t.modes(d).is_some()) {
                    return self.first_pointer(w, base, blocks);
                }
                moves = true;
                let stride = self.stride(view.base, d)?;
                let scaled =
                    coefficient.checked_mul(bytes).and_then(|c| self.int_op(Op::Mul, stride, Int::constant(c)));
                let literal = stride.as_const().unwrap_or(1).wrapping_mul(coefficient).wrapping_mul(bytes);
                whole &= literal.wrapping_mul(step) % WORD == 0;
                let Some(sum) = scaled.and_then(|s| self.int_op(Op::Add, per_unit, s)) else {
                    return self.first_pointer(w, base, blocks);
                };
                per_unit = sum;
            }
        }
        // A rounded pointer cannot be induced if its rounding differs between iterations. A branch that keeps its pure
        // instructions computes nothing in front of the loop.
        if !moves || w.rounded && !whole || self.emit.keeps() {
            return self.first_pointer(w, base, blocks);
        }
        let Some(advance) = self.int_op(Op::Mul, per_unit, Int::constant(step)) else {
            return self.first_pointer(w, base, blocks);
        };
        // The pointer for the loop's first iteration.
        let saved = self.ints[var];
        self.ints[var] = Some(loop_start);
        // Names in the loop that depend on its variable have another value there.
        let mut named = Vec::new();
        for e in view.dims.iter().flat_map(ViewDim::starts) {
            self.forget_named(*e, var, &mut named);
        }
        let initial = self.first_pointer(w, base, blocks);
        named.into_iter().rev().for_each(|(v, int)| self.ints[v] = int);
        self.ints[var] = saved;
        let initial = initial?;
        // Two windows may begin at one place and advance by different steps.
        let key = format!("{initial:?} {:?}", advance.repr);
        if let Some(l) = self.loops.last()
            && let Some((_, reg, _)) = l.induced.iter().find(|(k, ..)| *k == key)
        {
            return Ok(*reg);
        }
        let reg = self.emit.reg_at(Class::B64, depth, true);
        self.emit.item_at(
            depth - 1,
            crate::module::Item::Inst(crate::inst::Inst::new(P::MovB64, None, vec![reg.into(), initial.into()])),
        );
        let advance = self.as64(advance);
        if let Some(l) = self.loops.last_mut() {
            l.induced.push((key, reg, advance));
        }
        Ok(reg)
    }

    /// The same address in a form that the assembler does not know to be uniform. The assembler moves a load from a
    /// uniform address to a uniform register (`R2UR`, ptxas 12.9 and 13) as soon as it arrives. Then the warp waits for
    /// it, even if the value is first used in the next iteration.
    fn of_lane(&mut self, pointer: Reg) -> Reg {
        // No lane mask of lower lanes has bit 31, so `none` is 0.
        let lower = self.emit.pure(Class::B32, P::MovSpecialU32, [Operand::Special(Special::LanemaskLt)]);
        let none = self.emit.pure(Class::B32, P::ShrU32, [lower.into(), Operand::Imm(31)]);
        let none = self.emit.pure(Class::B64, P::CvtU64U32, [none.into()]);
        self.emit.def(Class::B64, P::AddS64, [pointer.into(), none.into()])
    }

    /// Removes the values of names in an index that depend on `var`, and keeps them in `taken`. The result says whether
    /// the index depends on `var`.
    fn forget_named(&mut self, e: Expr, var: Value, taken: &mut Vec<(Value, Option<Int>)>) -> bool {
        let k = self.k;
        fn has(k: &Kernel, e: Expr, var: Value, with: &BTreeSet<Value>) -> bool {
            matches!(k.exprs[e], ExprData::Ref(v) if v == var || with.contains(&v))
                || k.children(e).into_iter().any(|child| has(k, child, var, with))
        }
        let mut with = BTreeSet::new();
        for (v, init) in k.names_below(e, |_| false) {
            if has(k, init, var, &with) {
                with.insert(v);
                taken.push((v, self.ints[v].take()));
            }
        }
        has(k, e, var, &with)
    }

    /// The pointer to the thread's first element in a block, rounded down if the window requires it.
    fn first_pointer(&mut self, w: &mut GlobalWindow, base: Reg, blocks: &[u64]) -> Result<Reg, Reported> {
        let exact = self.pointer_of(w, base, blocks)?;
        if !w.rounded {
            return Ok(exact);
        }
        let low = self.emit.pure(Class::B32, P::CvtU32U64, [exact.into()]);
        w.shift = Some(self.emit.pure(Class::B32, P::AndB32, [low.into(), Operand::Imm(WORD - 1)]));
        Ok(self.emit.pure(Class::B64, P::AndB64, [exact.into(), Operand::Imm(-WORD)]))
    }

    /// `base + bytes · Σ index · stride` of the thread's first element in a block, with dropped dimensions.
    fn pointer_of(&mut self, w: &GlobalWindow, base: Reg, blocks: &[u64]) -> Result<Reg, Reported> {
        let (view, bytes) = (&w.view, w.bytes);
        let base = self.first_of_padded(view.base, base, bytes)?;
        // The terms of each dimension.
        let mut terms: Vec<Vec<(Int, Int)>> = Vec::new();
        let mut several = false;
        for (dim, &block) in w.dims.iter().zip(blocks).filter(|(dim, _)| !dim.is_by_element()) {
            let start = self.window_start(view, dim.dim)?;
            if let Some(rows) = &dim.rows {
                let row = rows.of(block << dim.shift);
                if self.k.tensor_ty(view.base).is_some_and(|t| t.modes(dim.dim).is_some()) {
                    several = true;
                    terms.push(self.digits(view.base, dim.dim, row)?);
                } else {
                    terms.push(vec![(row, dim.stride)]);
                }
                continue;
            }
            if self.k.tensor_ty(view.base).is_some_and(|t| t.modes(dim.dim).is_some()) {
                several = true;
                let (within, number) = self.thread_part(dim, block);
                let index = self.sum(view, start, number)?;
                let mut own = self.digits(view.base, dim.dim, index)?;
                own.push((within, dim.stride));
                terms.push(own);
                continue;
            }
            let thread = match dim.thread {
                Some(r) if block != 0 => {
                    let x = self.emit.pure(Class::B32, P::XorB32, [r.into(), Operand::Imm(block as i64)]);
                    Int::r32(x, 0, i128::from(dim.reach | block))
                }
                Some(r) => Int::r32(r, 0, i128::from(dim.reach)),
                None => Int::constant(0),
            };
            terms.push(vec![(self.sum(view, start, thread)?, dim.stride)]);
        }
        for (d, dim) in view.dims.iter().enumerate() {
            if matches!(dim, ViewDim::Fixed(_)) {
                let index = self.window_start(view, d)?;
                if self.k.tensor_ty(view.base).is_some_and(|t| t.modes(d).is_some()) {
                    several = true;
                    terms.push(self.digits(view.base, d, index)?);
                    continue;
                }
                let stride = self.stride(view.base, d)?;
                terms.push(vec![(index, stride)]);
            }
        }
        if several {
            return Ok(self.pointer_by_depth(base, &terms, bytes));
        }
        let mut offset: Option<Reg> = None;
        for (index, stride) in terms.into_iter().flatten() {
            if index.as_const() == Some(0) || stride.as_const() == Some(0) {
                continue;
            }
            let product = match (index.as_const(), stride.as_const()) {
                (_, Some(1)) => self.as64(index),
                (Some(1), _) => self.as64(stride),
                _ => {
                    let (a, b) = (self.as64(index), self.as64(stride));
                    let (a, b) = if matches!(a, Operand::Imm(_)) { (b, a) } else { (a, b) };
                    self.emit.pure(Class::B64, P::MulLoS64, [a, b]).into()
                }
            };
            offset = Some(match (offset, product) {
                (None, Operand::Reg(r)) => r,
                (None, other) => self.emit.pure(Class::B64, P::MovB64, [other]),
                (Some(o), p) => self.emit.pure(Class::B64, P::AddS64, [o.into(), p]),
            });
        }
        let Some(offset) = offset else { return Ok(base) };
        let shift = Operand::Imm(i64::from(bytes.trailing_zeros()));
        let scaled = if bytes == 1 { offset } else { self.emit.pure(Class::B64, P::ShlB64, [offset.into(), shift]) };
        Ok(self.emit.pure(Class::B64, P::AddS64, [base.into(), scaled.into()]))
    }

    /// The literal coefficient of `var` in an index expression; `None` if it is not of the form `c · var + rest`.
    pub(super) fn coefficient(&self, e: Expr, var: Value) -> Option<i64> {
        self.k.by_names(e, |e, known| self.coefficient_in(e, var, known))
    }

    /// Like [`Self::coefficient`], with known coefficients of names in the expression.
    fn coefficient_in(&self, e: Expr, var: Value, known: &BTreeMap<Value, Option<i64>>) -> Option<i64> {
        match &self.k.exprs[e] {
            ExprData::Int(_) => Some(0),
            ExprData::Ref(v) if *v == var => Some(1),
            ExprData::Ref(v) => known.get(v).copied().unwrap_or(Some(0)),
            ExprData::Op { op, args } => {
                let mut parts = Vec::new();
                for &a in args {
                    parts.push(self.coefficient_in(a, var, known)?);
                }
                match (op, &parts[..]) {
                    (Op::Add, [a, b]) => a.checked_add(*b),
                    (Op::Sub, [a, b]) => a.checked_sub(*b),
                    (Op::Neg, [a]) => a.checked_neg(),
                    (Op::Mul, [a, 0]) => a.checked_mul(self.k.as_int(args[1]).or((*a == 0).then_some(0))?),
                    (Op::Mul, [0, b]) => b.checked_mul(self.k.as_int(args[0])?),
                    _ => parts.iter().all(|&p| p == 0).then_some(0),
                }
            }
            // An index that is tested.
            ExprData::Index(arg) if type_of(self.k, *arg) == Ok(Type::Index) => self.coefficient_in(*arg, var, known),
            // A number that is computed in front of the loop is constant in it.
            ExprData::Index(arg) => (self.depth_of_number(*arg)? < self.loops.last()?.depth).then_some(0),
            _ => Some(0),
        }
    }

    /// The depth at which the number of an index is available, if it is in a register.
    fn depth_of_number(&self, e: Expr) -> Option<usize> {
        let reg = match self.k.exprs[e] {
            ExprData::Ref(v) => match self.scalars[v] {
                Some(reg) => reg,
                None => return self.depth_of_number(let_init(self.k, v)?),
            },
            ExprData::Cast { arg, .. } | ExprData::Bits { arg, .. } => return self.depth_of_number(arg),
            _ => self.elements[e]?,
        };
        Some(self.emit.depth_of(reg))
    }

    /// The address of the element with register index `v`, or of the byte that it shares.
    ///
    /// # Errors
    /// A coordinate may not fit 64 bits.
    pub(super) fn global_address(
        &mut self,
        w: &mut GlobalWindow,
        layout: &RegLayout,
        v: usize,
    ) -> Result<Operand, Reported> {
        let (reg, rest) = self.global_place(w, layout, v)?;
        if !w.halves {
            return Ok(Operand::at(reg, rest));
        }
        let byte = self.emit.pure(Class::B64, P::ShrU64, [reg.into(), Operand::Imm(1)]);
        Ok(Operand::at(byte, rest / 2))
    }

    /// For 4-bit elements: the bit in its byte at which the element with register index `v` begins (0 or 4).
    ///
    /// # Errors
    /// As those of [`Lower::global_address`].
    pub(super) fn global_half(
        &mut self,
        w: &mut GlobalWindow,
        layout: &RegLayout,
        v: usize,
    ) -> Result<Operand, Reported> {
        let (reg, _) = self.global_place(w, layout, v)?;
        let low = self.emit.pure(Class::B32, P::CvtU32U64, [reg.into()]);
        Ok(self.bit_of_half(low).into())
    }

    /// 4 for an odd number, 0 for an even one.
    pub(super) fn bit_of_half(&mut self, number: Reg) -> Reg {
        let odd = self.emit.pure(Class::B32, P::AndB32, [number.into(), Operand::Imm(1)]);
        self.emit.pure(Class::B32, P::ShlB32, [odd.into(), Operand::Imm(2)])
    }

    /// The place of the element with register index `v`: a pointer and an offset, in bytes or an even number of half
    /// bytes.
    fn global_place(&mut self, w: &mut GlobalWindow, layout: &RegLayout, v: usize) -> Result<(Reg, i64), Reported> {
        let index = layout.at(0, v as u64);
        let mut immediate = 0i64;
        let mut runtime: Vec<u64> = Vec::new();
        let mut blocks: Vec<u64> = Vec::new();
        for dim in &w.dims {
            let c = index >> dim.shift & ((1 << dim.bits) - 1);
            blocks.push(c & dim.blocks);
            let c = if dim.is_by_element() { 0 } else { c & !dim.blocks };
            match dim.stride.as_const() {
                Some(s) => {
                    immediate += c as i64 * s * w.bytes;
                    runtime.push(0);
                }
                None => runtime.push(c),
            }
        }
        let pointer = self.block_pointer(w, &blocks)?;
        let (mut reg, mut rest) = (self.chained(w, pointer, &blocks, &runtime), immediate);
        reg = self.own_place(w, index, reg)?;
        if rest >= REACH {
            reg = self.emit.pure(Class::B64, P::AddS64, [reg.into(), Operand::Imm(rest)]);
            rest = 0;
        }
        if w.halves && rest % 2 != 0 {
            reg = self.emit.pure(Class::B64, P::AddS64, [reg.into(), Operand::Imm(1)]);
            rest -= 1;
        }
        Ok((reg, rest))
    }

    /// The place of the element at `place` in a window: `reg`, moved along the dimensions in which each element has its own index.
    pub(super) fn own_place(&mut self, w: &GlobalWindow, place: u64, mut reg: Reg) -> Result<Reg, Reported> {
        let tensor = w.view.base;
        for (dim, rows) in
            w.dims.iter().filter_map(|dim| Some((dim, dim.rows.as_ref().filter(|rows| rows.by_element)?)))
        {
            let index = rows.of(place);
            let terms = match self.k.tensor_ty(tensor).is_some_and(|t| t.modes(dim.dim).is_some()) {
                true => self.digits(tensor, dim.dim, index)?,
                false => vec![(index, dim.stride)],
            };
            for (index, stride) in terms {
                reg = self.moved(reg, index, stride, w.bytes);
            }
        }
        Ok(reg)
    }

    /// A pointer moved by `index * stride` elements of so many bytes.
    fn moved(&mut self, pointer: Reg, index: Int, stride: Int, bytes: i64) -> Reg {
        let step = stride.as_const().and_then(|stride| stride.checked_mul(bytes));
        if step == Some(0) {
            return pointer;
        }
        if let (Repr::R32(index), Some(step)) = (index.repr, step.filter(|&step| i32::try_from(step).is_ok())) {
            return self.emit.pure(Class::B64, P::MadWideS32, [index.into(), Operand::Imm(step), pointer.into()]);
        }
        let (index, stride) = (self.as64(index), self.as64(stride));
        let stride: Operand = match stride {
            Operand::Imm(n) => Operand::Imm(n.wrapping_mul(bytes)),
            stride if bytes == 1 => stride,
            stride => {
                self.emit.pure(Class::B64, P::ShlB64, [stride, Operand::Imm(bytes.trailing_zeros().into())]).into()
            }
        };
        let (a, b) = if matches!(index, Operand::Imm(_)) { (stride, index) } else { (index, stride) };
        self.emit.pure(Class::B64, P::MadLoS64, [a, b, pointer.into()])
    }

    /// The pointer moved by register coordinates along run-time strides. It starts from the last pointer if only one
    /// coordinate grew, so that evenly spaced rows share one step.
    fn chained(&mut self, w: &mut GlobalWindow, pointer: Reg, blocks: &[u64], coords: &[u64]) -> Reg {
        if coords.iter().all(|&c| c == 0) {
            return pointer;
        }
        if let Some((.., reg)) = w.chain.iter().find(|(b, c, _)| b == blocks && c == coords) {
            return *reg;
        }
        let zero = vec![0u64; coords.len()];
        let last = w.chain.iter().rev().find(|(b, ..)| b == blocks);
        let (from, mut reg) = last.map_or((zero, pointer), |(_, c, r)| (c.clone(), *r));
        for (i, (&to, &at)) in coords.iter().zip(&from).enumerate() {
            if to == at {
                continue;
            }
            let delta = (to as i64 - at as i64) * w.bytes;
            let stride = w.dims[i].stride;
            let step = self.int_op(Op::Mul, stride, Int::constant(delta));
            let step = match step {
                Some(s) => self.as64(s),
                // Strides are below 2^40 and tiles below 2^20, so this does not happen; pointers wrap.
                None => {
                    let s = self.as64(stride);
                    self.emit.pure(Class::B64, P::MulLoS64, [s, Operand::Imm(delta)]).into()
                }
            };
            reg = self.emit.pure(Class::B64, P::AddS64, [reg.into(), step]);
        }
        w.chain.push((blocks.to_vec(), coords.to_vec(), reg));
        reg
    }

    /// The predicates of groups (by their first register index): their elements are inside the bounds; `None`: always.
    /// All are false if `when` is false.
    ///
    /// # Errors
    /// A coordinate may not fit 64 bits.
    pub(super) fn bounds(
        &mut self,
        view: &ResolvedView,
        w: &GlobalWindow,
        layout: &RegLayout,
        firsts: &[usize],
        when: Option<Reg>,
    ) -> Result<Vec<Option<Reg>>, Reported> {
        let named = self.named_inside(view)?;
        let when = self.emit.and(when, named);
        let mut out = Vec::with_capacity(firsts.len());
        for &v in firsts {
            let index = layout.at(0, v as u64);
            let mut all = None;
            for dim in w.dims.iter().filter(|d| d.checked) {
                let c = index >> dim.shift & ((1 << dim.bits) - 1);
                let coordinate = match dim.thread {
                    _ if let Some(rows) = &dim.rows => rows.of(index),
                    // Bits that both the thread and the register index set are combined by XOR.
                    Some(t) if dim.reach & c != 0 => {
                        let x = self.emit.pure(Class::B32, P::XorB32, [t.into(), Operand::Imm(c as i64)]);
                        let x = Int::r32(x, 0, i128::from(dim.reach | c));
                        self.sum(view, dim.start, x)?
                    }
                    _ => self.sum(view, dim.first, Int::constant(c as i64))?,
                };
                let inside = self.unsigned_less(coordinate, dim.limit);
                all = self.emit.and(all, inside);
            }
            let on_lines = self.on_lines(view, w, index)?;
            all = self.emit.and(all, on_lines);
            out.push(all);
        }
        Ok(self.pack(out, when))
    }

    /// Packs loop-invariant predicates into one register, to be tested where they are used. `when` clears all bits if
    /// it is false.
    pub(super) fn pack(&mut self, preds: Vec<Option<Reg>>, when: Option<Reg>) -> Vec<Option<Reg>> {
        let both = |emit: &mut super::emit::Emit, p| emit.and(p, when);
        let Some(l) = self.loops.last() else { return preds.into_iter().map(|p| both(&mut self.emit, p)).collect() };
        let depth = l.depth;
        let mut distinct: Vec<Reg> = Vec::new();
        for p in preds.iter().flatten() {
            if self.emit.depth_of(*p) < depth && !distinct.contains(p) {
                distinct.push(*p);
            }
        }
        if distinct.len() < 2 {
            return preds.into_iter().map(|p| both(&mut self.emit, p)).collect();
        }
        let mut tested: Vec<Reg> = Vec::new();
        for chunk in distinct.chunks(32) {
            let mut mask: Option<Reg> = None;
            for (i, &p) in chunk.iter().enumerate() {
                let bit = Operand::Imm(1i64 << i);
                let bit = self.emit.pure(Class::B32, P::SelpB32, [bit, Operand::Imm(0), p.into()]);
                mask = Some(match mask {
                    None => bit,
                    Some(m) => self.emit.pure(Class::B32, P::OrB32, [m.into(), bit.into()]),
                });
            }
            let Some(mask) = mask else { continue };
            let mask = match when {
                Some(p) => self.emit.def(Class::B32, P::SelpB32, [mask.into(), Operand::Imm(0), p.into()]),
                None => mask,
            };
            for i in 0..chunk.len() {
                let bit = self.emit.def(Class::B32, P::AndB32, [mask.into(), Operand::Imm(1i64 << i)]);
                tested.push(self.emit.def(Class::Pred, P::SetpNeS32, [bit.into(), Operand::Imm(0)]));
            }
        }
        preds
            .into_iter()
            .map(|p| match p {
                Some(p) => match distinct.iter().position(|&d| d == p) {
                    Some(i) => Some(tested[i]),
                    None => both(&mut self.emit, Some(p)),
                },
                None => when,
            })
            .collect()
    }
}
