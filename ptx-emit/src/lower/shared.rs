//! Shared memory: addresses of buffers and slots, and addresses inside them.
//!
//! All buffers are in one block of shared memory ([`super::placement`] has their addresses). Channels that are always
//! operated together share a *ring*: slot `i` of each is in one contiguous stage, so one register has the ring index.
//! An address is `((thread part + slot offset) ^ constant) + immediate`. The thread part is the layout applied to the
//! lane and warp bits. A register index contributes a constant. Its bits are added as the instruction's immediate if no
//! thread bit can reach them, and XORed in if the swizzle mixes them.

use super::ranged_ints::Int;
use super::rings::{Position, Ring};
use super::state::Lower;
use super::window_ends::end_of;
use super::windows::{AddedDim, Coordinate, Half, Panels, SharedWindow, place_of};
use crate::inst::{AddrBase, Class, Operand, Reg};
use crate::ops::Op as P;
use tilec_ir::bits::Bits;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported};
use tilec_ir::entities::{Stmt, Value};
use tilec_ir::kernel::{ChannelOp, Slot};
use tilec_ir::layout::{RegLayout, SmemLayout};
use tilec_ir::ops::Op as IrOp;
use tilec_ir::placement::ROW_ALIGN;
use tilec_ir::types::Elem;
use tilec_ir::typing::{ResolvedView, ViewDim};

/// Contributions of threads and of the window's start to addresses in a buffer.
struct Parts {
    thread: Int,
    panel: Int,
    /// Address bits that the thread part can set.
    reach: u64,
    base: u64,
    half: Half,
    carried: Vec<AddedDim>,
}

impl Parts {
    /// A dimension whose coordinates are added up.
    fn add(&mut self, dim: AddedDim, size: Bits) {
        self.reach |= dim.places.iter().fold(0, |reach, &p| reach | size.byte_with(p));
        self.carried.push(dim);
    }
}

/// The place in a buffer of an element with this coordinate along dimension `d`, and zero along the others.
fn place_along(smem: &SmemLayout, d: usize, coordinate: u64) -> u64 {
    let mut coords = vec![0; smem.dim_bits().len()];
    coords[d] = coordinate;
    smem.place(&coords)
}

/// The bits of a window's column-major index that belong to dimension `w`.
fn along(window: &[u32], w: usize) -> u64 {
    ((1u64 << window[w]) - 1) << window[..w].iter().sum::<u32>()
}

impl Lower<'_> {
    /// A channel operation. Publishing advances the put position; releasing (or waiting, [`Ring::several`]) advances
    /// the get position.
    pub(super) fn channel_op(
        &mut self,
        s: Stmt,
        op: ChannelOp,
        channels: &[Value],
        pending: Option<u32>,
    ) -> Result<(), Reported> {
        if self.part.is_none() && channels.iter().any(|&c| self.k.fills_asynchronously(c)) {
            match op {
                ChannelOp::Publish => self.emit.push(P::CpAsyncCommitGroup, []),
                ChannelOp::Wait => {
                    let pending = Operand::Imm(i64::from(pending.unwrap_or(0)));
                    self.emit.push(P::CpAsyncWaitGroup, [pending]);
                }
                ChannelOp::Acquire | ChannelOp::Release => {}
            }
        }
        for r in self.rings_of(channels) {
            if op == ChannelOp::Wait && self.rings[r].holds_several {
                let ring = self.rings[r].clone();
                self.rings[r].get = self.advance(&ring, ring.get, ring.get_turn);
            }
            let ring = self.rings[r].clone();
            if op == ChannelOp::Publish && ring.barriers.is_some() {
                self.check_filled(s, channels, &ring)?;
            }
            let expects = op == ChannelOp::Publish && ring.barriers.is_some() && ring.fill.tensor;
            let asks = if expects { self.elected_guard(s) } else { None };
            self.number_before(op, r)?;
            let ring = self.rings[r].clone();
            self.operate(op, &ring, asks);
            self.number_behind(op, r);
            match op {
                ChannelOp::Publish => {
                    self.rings[r].put = self.advance(&ring, ring.put, ring.put_turn);
                    self.rings[r].filling = 0;
                }
                ChannelOp::Release => {
                    if !ring.holds_several {
                        self.rings[r].get = self.advance(&ring, ring.get, ring.get_turn);
                    }
                    self.rings[r].read = false;
                }
                ChannelOp::Acquire | ChannelOp::Wait => {}
            }
        }
        if op == ChannelOp::Publish {
            self.count_early_step(s);
        }
        Ok(())
    }

    /// Checks that the bytes that the text expects are those of the TMA loads since the slot was acquired.
    fn check_filled(&mut self, s: Stmt, channels: &[Value], ring: &Ring) -> Result<(), Reported> {
        let said = channels.iter().zip(&self.k.expects[s]).filter(|(c, _)| ring.channels.contains(c));
        if ring.filling == said.map(|(_, bytes)| bytes).sum::<u64>() {
            return Ok(());
        }
        let span = self.k.stmt_spans[s];
        Err(self.unfit_at(span, "a slot whose TMA copies are issued in some branches or iterations only"))
    }

    /// The shared-memory side of an access: addresses of value groups of a window moved through `layout`.
    pub(super) fn shared_window(
        &mut self,
        view: &ResolvedView,
        layout: &RegLayout,
        window: &[u32],
        elem: Elem,
    ) -> Result<SharedWindow, Reported> {
        let k = self.k;
        let v = view.base;
        let smem = k.tile_ty(v).and_then(|t| t.smem_layout.clone()).expect("the swizzle pass lays out every buffer");
        let Some(placed) = self.placed[v] else { return Err(self.bug_no_place(v)) };
        // A linear map from the window's column-major index to byte offsets.
        let size = elem.size();
        let kept = view.base_dims();
        let panels = Panels::of(&smem, elem.size());
        let bits_along = |d: usize| kept.iter().position(|&k| k == d).map_or(0, |w| window[w]);
        let starts = view.dims.iter().enumerate().map(|(d, dim)| self.starts_aligned(dim, bits_along(d)));
        let aligned = starts.collect::<Result<Vec<bool>, _>>()?;
        let is_carried = |d: usize| !aligned[d];
        // Along carried dimensions, coordinates are added, so the window's bits have no fixed places there.
        let fixed = (0..window.len()).filter(|&w| !is_carried(kept[w])).fold(0u64, |mask, w| mask | along(window, w));
        let place = |index: u64| place_of(&smem, index & fixed, window, &kept);
        let thread_places: Vec<u64> = (0..layout.thread_bits()).map(|i| place(layout.thread_col(i))).collect();
        let value_places: Vec<u64> = (0..layout.value_bits()).map(|i| place(layout.value_col(i))).collect();
        let to_bytes = |places: &[u64]| places.iter().map(|&p| size.byte_with(p)).collect::<Vec<u64>>();
        let (thread_cols, value_cols) = (to_bytes(&thread_places), to_bytes(&value_places));
        let tid = self.tid();
        let shared = u64::from(size.whole_bytes().is_none());
        let odd = |places: &[u64]| places.iter().map(|p| p & shared).collect::<Vec<u64>>();
        let mut parts = Parts {
            thread: self.linear_map(tid, &panels.inside(&thread_cols)),
            panel: self.linear_map(tid, &panels.numbers(&thread_cols)),
            reach: thread_cols.iter().fold(0u64, |a, c| a | c),
            base: 0,
            half: Half { thread: self.linear_map(tid, &odd(&thread_places)), base: 0, value_cols: odd(&value_places) },
            carried: Vec::new(),
        };
        for (d, dim) in view.dims.iter().enumerate() {
            let bits = bits_along(d);
            let at = |start: u64| place_along(&smem, d, start);
            let places = |from: u32| -> Vec<u64> {
                (0..smem.dim_bits()[d]).map(|bit| if bit < from { 0 } else { at(1 << bit) }).collect()
            };
            let window_dim = || kept.iter().position(|&k| k == d).expect("a single index is a multiple of one");
            let start = match dim {
                ViewDim::Gather(_) => {
                    let gathered = self.gathered(view, window_dim(), (layout, window), places(0))?;
                    parts.add(gathered, size);
                    continue;
                }
                _ => self.shared_start(view, dim, d, bits)?,
            };
            match start.as_const() {
                _ if is_carried(d) => {
                    parts.add(self.carried(start, layout, (window, window_dim()), places(0)), size);
                }
                Some(start) => {
                    parts.base ^= size.byte_with(at(start as u64));
                    parts.half.base ^= at(start as u64) & shared;
                }
                // The start contributes address bits that the window's coordinates do not use.
                None => self.add_start(&mut parts, start, &places(bits), size, &panels),
            }
        }
        let Parts { thread, panel, reach, base, half, carried } = parts;
        let (slot, constant) = self.slot_of(view, placed.ring);
        // Panel numbers are added, so threads and their registers must use different bits of them.
        if (base | value_cols.iter().fold(0, |a, c| a | c)) & reach & panels.counted != 0 {
            return Err(self.mixed_panels(v));
        }
        let slot = self.slot_and_panel_offset(slot, panel, &panels);
        // The address register before the xor: thread part plus slot.
        let root = match (thread.as_const(), slot) {
            (Some(_), None) => None,
            (Some(_), Some(s)) => Some(s),
            (None, None) => Some(self.in32(thread)),
            (None, Some(s)) => {
                let t = self.in32(thread);
                Some(self.emit.def(Class::B32, P::AddS32, [t.into(), s.into()]))
            }
        };
        let root = root.map(|root| self.with_block_base(root));
        let thread = thread.as_const().is_none().then(|| self.in32(thread));
        Ok(SharedWindow {
            root,
            thread,
            slot,
            reach,
            value_cols,
            half,
            base,
            offset: placed.offset + constant,
            panels,
            xored: Vec::new(),
            bits: window.to_vec(),
            size,
            carried,
            added: Vec::new(),
        })
    }

    /// One element of a buffer, by its coordinates.
    pub(super) fn shared_element(&mut self, v: Value, at: &[Int], elem: Elem) -> Result<SharedWindow, Reported> {
        let smem =
            self.k.tile_ty(v).and_then(|t| t.smem_layout.clone()).expect("the swizzle pass lays out every buffer");
        let Some(placed) = self.placed[v] else { return Err(self.bug_no_place(v)) };
        let size = elem.size();
        let mut carried = Vec::new();
        for (d, &start) in at.iter().enumerate() {
            let places = (0..smem.dim_bits()[d]).map(|bit| place_along(&smem, d, 1 << bit)).collect();
            carried.push(AddedDim {
                dim: d,
                coordinate: Coordinate::Unaligned { start, thread: Int::constant(0) },
                value_cols: Vec::new(),
                places,
            });
        }
        Ok(SharedWindow {
            root: None,
            thread: None,
            slot: self.double_buffer_offset(v),
            reach: carried.iter().flat_map(|c| &c.places).fold(0, |all, &p| all | size.byte_with(p)),
            value_cols: Vec::new(),
            half: Half { thread: Int::constant(0), base: 0, value_cols: Vec::new() },
            base: 0,
            offset: placed.offset,
            panels: Panels::of(&smem, size),
            xored: Vec::new(),
            bits: Vec::new(),
            size,
            carried,
            added: Vec::new(),
        })
    }

    /// Dimension `w` of a window whose start there is no multiple of its extent.
    fn carried(&mut self, start: Int, layout: &RegLayout, (window, w): (&[u32], usize), places: Vec<u64>) -> AddedDim {
        let (mask, shift) = (along(window, w), window[..w].iter().sum::<u32>());
        let of = |columns: &[u64]| columns.iter().map(|&c| (c & mask) >> shift).collect::<Vec<u64>>();
        let tid = self.tid();
        let thread = self.linear_map(tid, &of(layout.thread().cols()));
        AddedDim {
            dim: w,
            coordinate: Coordinate::Unaligned { start, thread },
            value_cols: of(layout.value().cols()),
            places,
        }
    }

    /// Dimension `w` of a window along which elements are gathered or scattered.
    fn gathered(
        &mut self,
        view: &ResolvedView,
        w: usize,
        (layout, window): (&RegLayout, &[u32]),
        places: Vec<u64>,
    ) -> Result<AddedDim, Reported> {
        let rows = self.rows(view, w, layout, window)?.expect("a gathered dimension has indices");
        let value_cols = layout.value().cols().iter().map(|c| c & rows.by).collect();
        Ok(AddedDim { dim: w, coordinate: Coordinate::Indices(rows), value_cols, places })
    }

    /// Adds the contribution of a window's start, whose bits have these places.
    fn add_start(&mut self, parts: &mut Parts, start: Int, places: &[u64], size: Bits, panels: &Panels) {
        let shared = u64::from(size.whole_bytes().is_none());
        let columns: Vec<u64> = places.iter().map(|&p| size.byte_with(p)).collect();
        let odd: Vec<u64> = places.iter().map(|p| p & shared).collect();
        let index = self.in32(start);
        let odd_part = self.linear_map(index, &odd);
        parts.half.thread = self.xor(parts.half.thread, odd_part);
        let part = self.linear_map(index, &panels.inside(&columns));
        let number = self.linear_map(index, &panels.numbers(&columns));
        parts.reach |= columns.iter().fold(0, |a, c| a | c);
        parts.thread = self.xor(parts.thread, part);
        parts.panel = self.xor(parts.panel, number);
    }

    /// The offset of the slot of a ring's channel, or of the current copy of a double-buffered buffer: a register or a
    /// constant.
    fn slot_of(&mut self, view: &ResolvedView, ring: Option<usize>) -> (Option<Reg>, u64) {
        let Some(r) = ring else { return (self.double_buffer_offset(view.base), 0) };
        self.rings[r].read |= view.slot != Some(Slot::Put);
        let ring = &self.rings[r];
        match if view.slot == Some(Slot::Put) { ring.put } else { ring.get } {
            Position::Slot(i) => (None, i * ring.stride),
            Position::Reg(reg) => (Some(reg), 0),
        }
    }

    /// The sum of slot offset and the thread's panel offset, which are both multiples of `BLOCK_ALIGN`.
    fn slot_and_panel_offset(&mut self, slot: Option<Reg>, panel: Int, panels: &Panels) -> Option<Reg> {
        if panel.as_const() == Some(0) {
            return slot;
        }
        let number = self.in32(panel);
        let skip = self.emit.pure(Class::B32, P::MulLoS32, [number.into(), Operand::Imm(panels.stride as i64)]);
        Some(match slot {
            Some(slot) => self.emit.def(Class::B32, P::AddS32, [slot.into(), skip.into()]),
            None => skip,
        })
    }

    /// Whether a window starts at a multiple of its extent, so that start and window share no index bits.
    fn starts_aligned(&mut self, dim: &ViewDim, bits: u32) -> Result<bool, Reported> {
        if matches!(dim, ViewDim::Gather(_)) {
            return Ok(false);
        }
        let extent = 1u64 << bits;
        for &e in dim.starts() {
            let known = self.facts.divisor(self.k, e).is_multiple_of(extent)
                || self.index(e)?.as_const().is_some_and(|x| x.unsigned_abs().is_multiple_of(extent));
            if !known {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The start of a window along dimension `d`, in which it takes the lowest `bits` of the index.
    fn shared_start(&mut self, view: &ResolvedView, dim: &ViewDim, d: usize, bits: u32) -> Result<Int, Reported> {
        let tile = self.k.tile_ty(view.base).and_then(|t| self.k.const_shape(&t.shape));
        let tile = i128::from(tile.expect("specialised")[d]);
        let extent = 1u64 << bits;
        let (mut start, mut aligned) = (Int::constant(0), true);
        for &e in dim.starts() {
            aligned &= match self.index(e)?.as_const() {
                Some(x) => x.unsigned_abs().is_multiple_of(extent),
                None => self.facts.divisor(self.k, e).is_multiple_of(extent),
            };
            start = match self.index(e).map(|x| self.int_op(IrOp::Add, start, x))? {
                Some(sum) => sum,
                None => return Err(self.too_far_out(e)),
            };
        }
        match dim.starts().last().copied().or_else(|| end_of(dim)) {
            Some(at) => self.check_inside(view, d, (start, at, aligned), extent, tile),
            None => Ok(start),
        }
    }

    fn bug_no_place(&mut self, v: Value) -> Reported {
        let span = self.k.values[v].span;
        self.sink.report(Diagnostic::error(codes::NOT_LOWERED, span, "this buffer has no element type or extents"))
    }

    fn mixed_panels(&mut self, v: Value) -> Reported {
        let (span, name) = (self.k.values[v].span, &self.k.values[v].name);
        let message = format!("threads and their registers tell panels of `{name}` apart by the same bits");
        let note =
            "leave the layouts of copies to and from this buffer out, or give it an extent that is a power of two";
        self.sink.report(Diagnostic::error(codes::UNFIT, span, message).with_note(note))
    }

    /// Adds the base of the block's shared array, because `root` is relative to it.
    fn with_block_base(&mut self, root: Reg) -> Reg {
        let base = self.emit.pure(Class::B32, P::MovSharedU32, [Operand::SharedSym(0)]);
        self.add_pure_if_possible(root, base)
    }

    fn add_pure_if_possible(&mut self, a: Reg, b: Reg) -> Reg {
        self.emit.pure(Class::B32, P::AddS32, [a.into(), b.into()])
    }

    /// The address of the element(s) at value index `v`.
    pub(super) fn shared_address(&mut self, w: &mut SharedWindow, v: usize) -> Operand {
        let mut c = w.base;
        for (i, col) in w.value_cols.iter().enumerate() {
            if v >> i & 1 == 1 {
                c ^= col;
            }
        }
        if !w.carried.is_empty() {
            return self.added_address(w, c, v);
        }
        let (c, panel) = (c & !w.panels.counted, c & w.panels.counted);
        let mixed = c & w.reach;
        let plain = (c & !w.reach) + w.panels.bytes(panel) + w.offset;
        let Some(root) = w.root else {
            return Operand::Addr { base: AddrBase::Shared(0), offset: (plain + mixed) as i64 };
        };
        let reg = match w.xored.iter().find(|(m, _)| *m == mixed) {
            Some((_, reg)) => *reg,
            None if mixed == 0 => root,
            None => {
                let mask = Operand::Imm(mixed as i64);
                // Slots and buffers start at multiples of ROW_ALIGN, so adding them changes no lower bit.
                let reg = match (w.thread, w.slot) {
                    (Some(t), slot) if mixed >= ROW_ALIGN => {
                        let x = self.emit.pure(Class::B32, P::XorB32, [t.into(), mask]);
                        let x = slot.map_or(x, |s| self.emit.def(Class::B32, P::AddS32, [x.into(), s.into()]));
                        self.with_block_base(x)
                    }
                    _ => self.emit.pure(Class::B32, P::XorB32, [root.into(), mask]),
                };
                w.xored.push((mixed, reg));
                reg
            }
        };
        Operand::at(reg, plain as i64)
    }

    /// The coordinate in the buffer of the element at value index `v`, along a dimension with an unaligned start or with
    /// indices.
    fn carried_coordinate(&mut self, carried: &AddedDim, v: usize) -> Reg {
        let own = carried.own(v);
        let (start, thread) = match &carried.coordinate {
            Coordinate::Unaligned { start, thread } => (*start, *thread),
            Coordinate::Indices(rows) => return self.in32(rows.of(own)),
        };
        let within = match thread.as_const() {
            Some(thread) => Int::constant(thread ^ own as i64),
            None => {
                let thread = self.in32(thread);
                let x = self.emit.pure(Class::B32, P::XorB32, [thread.into(), Operand::Imm(own as i64)]);
                Int::r32(x, 0, i128::from(u32::MAX >> 1))
            }
        };
        let (start, within) = (self.in32(start), self.in32(within));
        self.emit.pure(Class::B32, P::AddS32, [start.into(), within.into()])
    }

    /// The address of an element of a window with unaligned starts; `c` is the contribution of the other dimensions and
    /// the register index.
    fn added_address(&mut self, w: &mut SharedWindow, c: u64, v: usize) -> Operand {
        let (mixed, plain) = (c & w.reach, (c & !w.reach & !w.panels.counted) + w.offset);
        let panels = w.panels.bytes(c & !w.reach & w.panels.counted);
        let own: Vec<u64> = w.carried.iter().map(|carried| carried.own(v)).collect();
        if let Some((.., reg)) = w.added.iter().find(|(at, m, _)| *at == own && *m == mixed) {
            return Operand::at(*reg, (plain + panels) as i64);
        }
        let (size, panels_of) = (w.size, w.panels);
        let mut place = w.thread.unwrap_or_else(|| self.emit.pure(Class::B32, P::MovB32, [Operand::Imm(0)]));
        if mixed != 0 {
            place = self.emit.pure(Class::B32, P::XorB32, [place.into(), Operand::Imm(mixed as i64)]);
        }
        for i in 0..w.carried.len() {
            let at = self.carried_coordinate(&w.carried[i], v);
            let columns: Vec<u64> = w.carried[i].places.iter().map(|&p| size.byte_with(p)).collect();
            let part = self.linear_map(at, &panels_of.inside(&columns));
            let part = self.in32(part);
            place = self.emit.pure(Class::B32, P::XorB32, [place.into(), part.into()]);
            // At most one dimension counts panels.
            let number = self.linear_map(at, &panels_of.numbers(&columns));
            if let Some(skip) = self.slot_and_panel_offset(None, number, &panels_of) {
                place = self.emit.pure(Class::B32, P::AddS32, [place.into(), skip.into()]);
            }
        }
        if let Some(slot) = w.slot {
            place = self.emit.def(Class::B32, P::AddS32, [place.into(), slot.into()]);
        }
        let reg = self.with_block_base(place);
        w.added.push((own, mixed, reg));
        Operand::at(reg, (plain + panels) as i64)
    }

    /// For 4-bit elements: the bit in its byte at which the element with value index `v` begins.
    pub(super) fn shared_half(&mut self, w: &SharedWindow, v: usize) -> Operand {
        let half = &w.half;
        let own = |i: usize| half.value_cols[i] & (v >> i & 1) as u64;
        let odd = (0..half.value_cols.len()).fold(half.base, |odd, i| odd ^ own(i));
        if !w.carried.is_empty() {
            let shared = u64::from(w.size.whole_bytes().is_none());
            let mut number = self.in32(half.thread);
            for carried in &w.carried {
                let at = self.carried_coordinate(carried, v);
                let places: Vec<u64> = carried.places.iter().map(|p| p & shared).collect();
                let part = self.linear_map(at, &places);
                let part = self.in32(part);
                number = self.emit.pure(Class::B32, P::XorB32, [number.into(), part.into()]);
            }
            if odd != 0 {
                number = self.emit.pure(Class::B32, P::XorB32, [number.into(), Operand::Imm(1)]);
            }
            return self.bit_of_half(number).into();
        }
        match half.thread.as_const() {
            Some(thread) => Operand::Imm(4 * i64::from((thread as u64 ^ odd) & 1 == 1)),
            None => {
                let number = self.in32(half.thread);
                let number = match odd {
                    0 => number,
                    _ => self.emit.pure(Class::B32, P::XorB32, [number.into(), Operand::Imm(1)]),
                };
                self.bit_of_half(number).into()
            }
        }
    }

    /// After the statements of a role that fills rings: waits until all blocks have released the last fills. After
    /// that, other blocks do not access this block's memory; its own warps have waited for what was copied there.
    pub(super) fn drain_multicasts(&mut self) {
        for r in 0..self.rings.len() {
            let ring = self.rings[r].clone();
            if ring.put_turn.is_none() || ring.drained || !self.is_multicast(&ring) {
                continue;
            }
            self.emit.comment("no block leaves while others may release slots of it");
            for i in 0..ring.slots {
                if i > 0 {
                    self.rings[r].put = self.advance(&ring, self.rings[r].put, ring.put_turn);
                }
                self.operate(ChannelOp::Acquire, &ring, None);
            }
            self.rings[r].drained = true;
        }
    }
}
