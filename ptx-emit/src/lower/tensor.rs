//! Copies by TMA (`cp.async.bulk.tensor`, PTX ISA 9.7.9.27).
//!
//! A copy moves boxes of the tensor to a slot or from a buffer. A *tensor map* describes the tensor: a kernel parameter
//! of 128 bytes, which the host encodes from the launch contract. Box and swizzle mode follow from the layout of the
//! tile. One lane requests all boxes of the tile; their bytes count at the `full` barrier of the slot. Stores are a
//! bulk group of that lane, which waits until the buffer is read.

use super::ranged_ints::Int;
use super::state::{Lower, Map};
use crate::inst::{Class, Operand, Reg};
use crate::launch::TensorMap;
use crate::module::ParamTy;
use crate::ops::Op as P;
use crate::report::BoxReport;
use tilec_ir::cluster::Uniform;
use tilec_ir::diag::Reported;
use tilec_ir::entities::{Expr, Stmt};
use tilec_ir::extents::MAX_SIZE;
use tilec_ir::kernel::{ExprData, Kernel, StmtData};
use tilec_ir::layout::hardware::{PERIOD, boxes};
use tilec_ir::ops::Op;
use tilec_ir::padded::{Im2col, im2col};
use tilec_ir::tensor_store::tensor_store;
use tilec_ir::typing::{ResolvedView, ViewDim, resolve_view};
use tilec_ir::window_ends::own_end;

/// The im2col load for this number of pixel dimensions.
fn im2col_op(dims: usize, to_all: bool) -> P {
    match (dims, to_all) {
        (1, false) => P::CpAsyncBulkTensor3dIm2col,
        (2, false) => P::CpAsyncBulkTensor4dIm2col,
        (_, false) => P::CpAsyncBulkTensor5dIm2col,
        (1, true) => P::CpAsyncBulkTensor3dIm2colMulticast,
        (2, true) => P::CpAsyncBulkTensor4dIm2colMulticast,
        (_, true) => P::CpAsyncBulkTensor5dIm2colMulticast,
    }
}

/// Bytes and alignment of a tensor map.
const MAP_BYTES: u32 = 128;
const MAP_ALIGN: u32 = 64;

/// The window of the tensor, and the tile, of a TMA copy.
pub(super) fn sides(k: &Kernel, s: Stmt) -> Option<(ResolvedView, ResolvedView)> {
    let StmtData::Copy { src, dst, attrs } = &k.stmts[s] else { return None };
    let (from, to) = attrs.is_tensor().then(|| resolve_view(k, *src).zip(resolve_view(k, *dst)))??;
    Some(if tensor_store(k, s).is_some() { (to, from) } else { (from, to) })
}

impl Lower<'_> {
    /// Parameters for the tensor maps, after all others.
    pub(super) fn tensor_maps(&mut self) -> Result<(), Reported> {
        let k = self.k;
        let mut copies = Vec::new();
        k.walk(k.body, &mut |_, _, s| copies.push(s));
        for s in copies {
            let Some((from, to)) = sides(k, s) else { continue };
            let StmtData::Copy { src, .. } = k.stmts[s] else { continue };
            if !self.target.has_tensor_copies() {
                return Err(self.lacks(src, "TMA copies (`tma`); sm_90a has them. Without `tma` threads copy"));
            }
            let Some(map) = self.box_of(s, &from, &to) else {
                let what = match self.narrow_share(s, &to) {
                    Some((lines, blocks)) => format!(
                        "a copy that {blocks} blocks of a cluster share, of {lines} rows or columns: each takes a multiple of {PERIOD}; use a larger \
                         tile or a smaller cluster"
                    ),
                    None => "a TMA copy between this layout and this tensor, which no boxes make up".to_owned(),
                };
                return Err(self.unfit(src, &what));
            };
            if self.maps.iter().any(|m| m.is(&map)) {
                continue;
            }
            let n = self.maps.iter().filter(|m| m.tensor == from.base).count();
            let number = if n == 0 { String::new() } else { (n + 1).to_string() };
            let name = format!("{}_{}_map{number}", k.name, k.values[from.base].name);
            let param = self.param(name, ParamTy::Bytes(MAP_BYTES), Some(MAP_ALIGN));
            self.maps.push(Map { param, ..map });
        }
        Ok(())
    }

    /// The addresses of the tensor maps.
    pub(super) fn map_addresses(&mut self) -> Vec<Reg> {
        (0..self.maps.len()).map(|i| self.map_address(self.maps[i].param)).collect()
    }

    /// Rows of a box, and the number of blocks that cannot share it because their parts would be too small.
    fn narrow_share(&self, s: Stmt, to: &ResolvedView) -> Option<(u64, u64)> {
        let layout = self.k.tile_ty(to.base)?.smem_layout.as_ref()?;
        let shape = self.k.tile_ty(to.base).and_then(|t| self.k.const_shape(&t.shape))?;
        let boxes = boxes(layout, &shape, self.elem(to.base)?.size())?;
        let blocks = self.sharing(self.multicasts(s)?);
        let lines = *boxes.extents.get(1)?;
        boxes.shared_rows(blocks).is_none().then_some((lines, blocks))
    }

    /// The map that a copy needs, without a parameter: the tensor's dimensions from the contiguous one on, the box
    /// along them, and the places of boxes in the tile. For a multicast copy, the box is one block's part.
    fn box_of(&self, s: Stmt, from: &ResolvedView, to: &ResolvedView) -> Option<Map> {
        let elem = self.elem(to.base)?;
        let layout = self.k.tile_ty(to.base)?.smem_layout.as_ref()?;
        let shape = self.k.tile_ty(to.base).and_then(|t| self.k.const_shape(&t.shape))?;
        let boxes = boxes(layout, &shape, elem.size())?;
        if boxes.beyond && tensor_store(self.k, s).is_some() {
            return None;
        }
        let kept = from.base_dims();
        if kept.len() != boxes.dims.len() || from.transposed {
            return None;
        }
        let mut dims: Vec<usize> = boxes.dims.iter().map(|&d| kept[d]).collect();
        let mut extents = boxes.extents.clone();
        if let Some(apart) = self.multicasts(s) {
            extents[1] = boxes.shared_rows(self.sharing(apart))?;
        }
        for d in (0..from.dims.len()).rev().filter(|d| !kept.contains(d)) {
            dims.push(d);
            extents.push(1);
        }
        // In im2col mode a box has a window's channels, and pixels; the other places of the window may be indexed.
        if !self.padded(from.base).is_empty() {
            im2col(self.k, from.base).ok().filter(|of| dims.len() >= 2 && dims[..2] == [of.window, of.pixels])?;
        }
        let ended = own_end(self.k, from).ok()?;
        let map = Map { tensor: from.base, extents, dims, boxes, ended, param: 0 };
        (tilec_ir::facts::contiguous_dim(self.k, from.base) == map.dims.first().copied()).then_some(map)
    }

    /// For a copy that several blocks of the cluster share: the bits of a block's rank that select different windows.
    pub(super) fn multicasts(&self, s: Stmt) -> Option<u32> {
        let StmtData::Copy { src, ref attrs, .. } = self.k.stmts[s] else { return None };
        let view = resolve_view(self.k, src).filter(|_| attrs.is_multicast() && self.cluster_blocks() > 1)?;
        Some(Uniform::new(self.k).window(&view))
    }

    /// The number of blocks that share a window.
    fn sharing(&self, apart: u32) -> u64 {
        u64::from(self.cluster_blocks() >> apart.count_ones())
    }

    /// The block's number among those that share its window.
    fn sharer(&mut self, apart: u32) -> Reg {
        let rank = self.cluster_rank();
        if apart == 0 {
            return rank;
        }
        let mut columns = Vec::new();
        let mut next = 0;
        for bit in 0..self.cluster_blocks().ilog2() {
            let shared = apart >> bit & 1 == 0;
            columns.push(if shared { 1 << next } else { 0 });
            next += u32::from(shared);
        }
        let part = self.linear_map(rank, &columns);
        self.in32(part)
    }

    /// The multicast mask: a bit for each block of the cluster that shares the window.
    fn sharers(&mut self, apart: u32) -> Operand {
        let blocks = self.cluster_blocks();
        let first = (0..blocks).filter(|rank| rank & apart == 0).fold(0, |mask, rank| mask | 1i64 << rank);
        if apart == 0 {
            return Operand::Imm(first);
        }
        let rank = self.cluster_rank();
        let row = self.emit.pure(Class::B32, P::AndB32, [rank.into(), Operand::Imm(i64::from(apart))]);
        let first = self.emit.pure(Class::B32, P::MovB32, [Operand::Imm(first)]);
        let mask = self.emit.pure(Class::B32, P::ShlB32, [first.into(), row.into()]);
        self.emit.pure(Class::B16, P::CvtU16U32, [mask.into()]).into()
    }

    fn map_address(&mut self, param: u32) -> Reg {
        let own = self.emit.pure(Class::B64, P::MovParamU64, [Operand::ParamSym(param)]);
        self.emit.pure(Class::B64, P::CvtaParamU64, [own.into()])
    }

    /// The map of a TMA copy.
    fn map_of(&self, s: Stmt, window: &ResolvedView, tile: &ResolvedView) -> Option<Map> {
        let own = self.box_of(s, window, tile)?;
        // Copies of one tensor with equal boxes share a map, regardless of the number of boxes in their tiles.
        let param = self.maps.iter().find(|m| m.is(&own))?.param;
        Some(Map { param, ..own })
    }

    /// First coordinates of the window, in the order of the tensor's dimensions.
    pub(super) fn tensor_starts(&mut self, window: &ResolvedView) -> Result<Vec<Int>, Reported> {
        let mut starts = Vec::new();
        for dim in &window.dims {
            let mut sum = Int::constant(0);
            for &e in dim.starts() {
                let x = self.index(e)?;
                let Some(more) = self.int_op(Op::Add, sum, x) else {
                    return Err(self.too_far_out(e));
                };
                sum = more;
            }
            if matches!(dim, ViewDim::From { end: Some(_), .. }) {
                // Windows with an end of their own do not begin below zero (`own_end`), so the difference to their end
                // fits 32 bits.
                sum.lo = sum.lo.max(0);
            }
            starts.push(self.within_31_bits(sum));
        }
        Ok(starts)
    }

    /// The start of a window, clamped to 31 bits: beyond that range all of it is outside the tensor anyway.
    fn within_31_bits(&mut self, start: Int) -> Int {
        if super::ranged_ints::fits32(start.lo, start.hi) {
            return start;
        }
        let bounds = [(Op::Min, MAX_SIZE), (Op::Max, -MAX_SIZE)];
        bounds.into_iter().fold(start, |x, (op, bound)| {
            let bound = Int::constant(bound as i64);
            self.int_op(op, x, bound).expect("the smaller of two numbers of 63 bits is one")
        })
    }

    /// The end of a window that ends inside its tensor, along the dimension that its map has twice.
    pub(super) fn own_end_of(&mut self, map: &Map, window: &ResolvedView) -> Result<Option<Int>, Reported> {
        let Some(d) = map.ended else { return Ok(None) };
        let ViewDim::From { end: Some(end), .. } = window.dims[d] else { unreachable!("bug: a window without an end") };
        let extent = self.k.tensor_ty(window.base).map(|t| t.shape[d]).expect("a tensor");
        let (of_window, of_tensor) = (self.index(end)?, self.index(extent)?);
        let least = self.int_op(Op::Min, of_window, of_tensor);
        match least.and_then(|end| self.int_op(Op::Max, end, Int::constant(0))) {
            Some(end) => Ok(Some(end)),
            None => Err(self.unsupported(end, "a window that may end beyond 63 bits")),
        }
    }

    /// A box of the tensor, `start` elements into the window. Its rows end in front of `end`, if given.
    pub(super) fn tensor_box(
        &mut self,
        map: &Map,
        window: &ResolvedView,
        (starts, end): (&[Int], Option<Int>),
        start: &[u64],
    ) -> Operand {
        let kept = window.base_dims();
        let per_byte = self.elem(window.base).expect("specialised").per(1);
        let mut at = Vec::new();
        let mut behind = None;
        for (i, &d) in map.dims.iter().enumerate() {
            let more = kept.iter().position(|&x| x == d).map_or(0, |i| start[i]);
            let more = Int::constant(more as i64);
            let x = self.int_op(Op::Add, starts[d], more);
            let mut x = x.expect("a coordinate of 31 bits and a box fit 63");
            if i == 0 && per_byte > 1 {
                // Windows of such tensors begin at multiples of 16 bytes (pass `tensor_copies`).
                let unit = Int::constant(i64::from(per_byte));
                x = self.int_op(Op::Div, x, unit).expect("a quotient is no larger");
            }
            if let Some(end) = end.filter(|_| map.ended == Some(d)) {
                // Rows of the box in front of the end. If the box begins after the end, the number is negative, and all
                // of it is outside.
                let rows = Int::constant(map.extents[i] as i64);
                x = self.pinned(x);
                let mut op = |op, a, b| self.int_op(op, a, b).expect("coordinates of 32 bits and a box fit 63");
                let left = op(Op::Sub, end, x);
                let left = op(Op::Min, left, rows);
                let inside = op(Op::Max, left, Int::constant(0));
                let last = op(Op::Add, x, inside);
                x = op(Op::Sub, rows, inside);
                behind = Some(self.in32(last));
            }
            at.push(self.in32(x));
        }
        at.extend(behind);
        let map = self.map_address(map.param);
        Operand::Tensor { map, at }
    }

    /// A coordinate, copied to a register here, so that nothing computed from it is hoisted. The coordinates of a
    /// peeled iteration would occupy registers throughout the loop in front of it, and a producer warp has few.
    fn pinned(&mut self, x: Int) -> Int {
        if x.as_const().is_some() {
            return x;
        }
        let reg = self.in32(x);
        Int::r32(self.emit.def(Class::B32, P::MovB32, [reg.into()]), x.lo, x.hi)
    }

    /// A box of pixels of an image, `start` elements into the window: its first pixel, and the offset within the
    /// windows.
    fn pixel_box(
        &mut self,
        src: Expr,
        of: &Im2col,
        (map, window): (&Map, &ResolvedView),
        starts: &[Int],
        start: &[u64],
    ) -> Result<(Operand, Operand), Reported> {
        let kept = window.base_dims();
        let index = |cx: &mut Self, d: usize| {
            let more = kept.iter().position(|&x| x == d).map_or(0, |i| start[i]);
            let x = cx.int_op(Op::Add, starts[d], Int::constant(more as i64));
            let x = x.expect("a coordinate of 31 bits and a box fit 63");
            if x.lo < 0 {
                let what = "a TMA copy of pixels that may begin in front of the first; write `async` after the copy";
                return Err(cx.unfit(src, what));
            }
            match cx.k.tensor_ty(window.base).is_some_and(|t| t.modes(d).is_some()) {
                true => cx.digits(window.base, d, x),
                false => Ok(vec![(x, Int::constant(1))]),
            }
        };
        let (mut places, pixels) = (index(self, of.window)?, index(self, of.pixels)?);
        if of.places != of.window {
            places.extend(index(self, of.places)?);
        }
        let padded = self.padded(window.base);
        let mut at = vec![self.in32(places[0].0)];
        for (i, p) in padded.iter().enumerate().rev() {
            let digit = pixels[padded.len() - 1 - i].0;
            let line = self.bounded_product(digit, Int::constant(of.steps[i].into()), super::padded::MAX_LINES.into());
            let front = self.lines_in_front(p)?;
            let line = self.line_op(Op::Sub, line, front);
            at.push(self.in32(line));
        }
        at.push(self.in32(pixels[padded.len()].0));
        // Offsets within the window, outermost first, for dimensions that move by lines.
        let moved: Vec<usize> = self.steps(window.base, of.places).into_iter().flatten().map(|s| s.of).collect();
        let mut offsets = Vec::new();
        for i in (0..padded.len()).rev() {
            let offset = match (&of.offsets[i], moved.iter().rev().position(|&m| m == i)) {
                (Some(step), Some(nth)) => {
                    let per = self.lines_of_step(step)?;
                    self.bounded_product(places[1 + nth].0, per, i128::from(u16::MAX))
                }
                _ => Int::constant(0),
            };
            let narrow = self.in32(offset);
            offsets.push(self.emit.pure(Class::B16, P::CvtU16U32, [narrow.into()]));
        }
        let map = self.map_address(map.param);
        Ok((Operand::Tensor { map, at }, Operand::Vec(offsets)))
    }

    /// The window of the tensor, the tile, and the map of a TMA copy.
    pub(super) fn mapped_sides(&mut self, s: Stmt, src: Expr) -> Result<(ResolvedView, ResolvedView, Map), Reported> {
        let found = sides(self.k, s).and_then(|(from, to)| {
            let map = self.map_of(s, &from, &to)?;
            Some((from, to, map))
        });
        let found = found.ok_or_else(|| self.unsupported(src, "this TMA copy"))?;
        self.report_boxes(s, &found);
        Ok(found)
    }

    fn report_boxes(&mut self, s: Stmt, (window, tile, map): &(ResolvedView, ResolvedView, Map)) {
        if !self.report_accesses {
            return;
        }
        let named = |v: &ResolvedView| self.k.values[v.base].name.clone();
        self.report.boxes.push(BoxReport {
            span: self.k.stmt_spans[s],
            tensor: named(window),
            buffer: named(tile),
            store: tensor_store(self.k, s).is_some(),
            elem: self.elem(tile.base).expect("specialised").size(),
            extents: map.extents[..map.boxes.dims.len()].to_vec(),
            exchange: map.boxes.exchange,
            places: map.boxes.places.clone(),
            blocks: self.multicasts(s).map_or(1, |apart| self.sharing(apart)),
        });
    }

    /// Issues the TMA loads of a tile's boxes.
    pub(super) fn load_tensor(&mut self, s: Stmt, src: Expr) -> Result<(), Reported> {
        let StmtData::Copy { dst, .. } = self.k.stmts[s] else {
            return Err(self.unsupported(src, "this TMA copy"));
        };
        let (from, to, map) = self.mapped_sides(s, src)?;
        let (Some(placed), ExprData::View(_)) = (self.placed[to.base], &self.k.exprs[dst]) else {
            return Err(self.unfit(src, "a TMA copy into other than a slot"));
        };
        let ring = placed.ring.map(|r| (r, self.rings[r].clone()));
        let Some((r, ring, turn)) = ring.and_then(|(r, ring)| ring.put_turn.map(|turn| (r, ring, turn))) else {
            return Err(self.unfit(src, "a TMA copy outside of a role"));
        };
        let elem = self.elem(to.base).expect("specialised");
        // The bytes of all parts count, whichever block requests them.
        self.rings[r].filling += map.boxes.bytes(elem.size());
        let mut starts = self.tensor_starts(&from)?;
        let slot = match ring.put {
            super::rings::Position::Reg(r) => r,
            super::rings::Position::Slot(_) => return Err(self.unfit(src, "a TMA copy outside of a role")),
        };
        let base = self.emit.pure(Class::B32, P::MovSharedU32, [Operand::SharedSym(0)]);
        let mut root = self.emit.def(Class::B32, P::AddS32, [base.into(), slot.into()]);
        let multicasts = self.multicasts(s);
        if let Some(apart) = multicasts {
            // The block's own part of every box.
            let (rows, bytes) = (map.extents[1] as i64, map.boxes.exchange.row_bytes() as i64);
            let rank = self.sharer(apart);
            let first = self.emit.pure(Class::B32, P::MulLoS32, [rank.into(), Operand::Imm(rows)]);
            let skip = self.emit.pure(Class::B32, P::MulLoS32, [rank.into(), Operand::Imm(rows * bytes)]);
            root = self.emit.def(Class::B32, P::AddS32, [root.into(), skip.into()]);
            let last = i128::from(rows) * i128::from(self.sharing(apart) - 1);
            let first = super::ranged_ints::Int { repr: super::ranged_ints::Repr::R32(first), lo: 0, hi: last };
            let Some(sum) = self.int_op(Op::Add, starts[map.dims[1]], first) else {
                return Err(self.too_far_out(src));
            };
            starts[map.dims[1]] = sum;
        }
        let op = [
            P::CpAsyncBulkTensor1d,
            P::CpAsyncBulkTensor2d,
            P::CpAsyncBulkTensor3d,
            P::CpAsyncBulkTensor4d,
            P::CpAsyncBulkTensor5d,
        ];
        let to_all = [
            P::CpAsyncBulkTensor1dMulticast,
            P::CpAsyncBulkTensor2dMulticast,
            P::CpAsyncBulkTensor3dMulticast,
            P::CpAsyncBulkTensor4dMulticast,
            P::CpAsyncBulkTensor5dMulticast,
        ];
        let im2col = im2col(self.k, from.base).ok();
        let op = match &im2col {
            Some(of) => im2col_op(of.steps.len(), multicasts.is_some()),
            None if multicasts.is_some() => to_all[map.rank() - 1],
            None => op[map.rank() - 1],
        };
        let end = self.own_end_of(&map, &from)?;
        let sharers = multicasts.map(|apart| self.sharers(apart));
        let asks = self.unless_early(s).or(self.elected_guard(s));
        for (start, offset) in &map.boxes.places {
            let to = Operand::at(root, (placed.offset + offset) as i64);
            let mut operands = vec![to];
            match &im2col {
                Some(of) => {
                    let (tensor, offsets) = self.pixel_box(src, of, (&map, &from), &starts, start)?;
                    operands.extend([tensor, Operand::at(turn.barrier, 0), offsets]);
                }
                None => {
                    operands
                        .extend([self.tensor_box(&map, &from, (&starts, end), start), Operand::at(turn.barrier, 0)]);
                }
            }
            operands.extend(sharers.clone());
            self.emit.push_if(asks, op, operands);
        }
        Ok(())
    }

    /// The maps for the launch contract.
    pub(super) fn map_params(&self) -> Vec<(String, TensorMap)> {
        let place = |m: &Map, dim: usize| m.dims.iter().position(|&d| d == dim).expect("a dimension of the map") as u32;
        self.maps
            .iter()
            .map(|m| {
                let prefix = format!("{}_", self.k.name);
                let name = self.emit.func.params[m.param as usize].name.clone();
                let name = name.strip_prefix(&prefix).unwrap_or(&name).to_owned();
                let of = im2col(self.k, m.tensor).ok();
                let map = TensorMap {
                    tensor: self.k.values[m.tensor].name.clone(),
                    dims: match &of {
                        Some(of) => of.memory.clone(),
                        None => m.dims.iter().map(|&d| d as u32).collect(),
                    },
                    extents: m.extents.iter().map(|&x| x as u32).collect(),
                    exchange: m.boxes.exchange,
                    ended: m.ended.map(|d| place(m, d)),
                    im2col: of.map(|of| super::padded::corners(self.k, m.tensor, &of)),
                };
                (name, map)
            })
            .collect()
    }
}
