//! Where buffers and channels lie in the block's shared memory.
//!
//! One after the other in the order of the text, the slots of channels that are operated together as a ring. A buffer over
//! others begins where the first of them does; all that it is over lies together, with room for it.

use super::Lower;
use super::mbarriers::{BARRIER_BYTES, Barriers};
use super::replicas::handed_on;
use super::shared::{BLOCK_ALIGN, Placed, Position, Ring};
use crate::report::TileReport;
use std::collections::BTreeMap;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported};
use tilec_ir::entities::{Block, Value};
use tilec_ir::kernel::{ChannelOp, Kernel, StmtData, ValueDef};
use tilec_ir::layout::hardware;
use tilec_ir::overlay::Overlays;
use tilec_ir::types::Elem;

/// Bytes that a tile takes.
pub(super) fn tile_bytes(k: &Kernel, v: Value, elem: Elem) -> u64 {
    let Some(tile) = k.tile_ty(v) else { return 0 };
    let shape = k.const_shape(&tile.shape);
    shape.map_or(0, |shape| hardware::tile_bytes(tile.smem_layout.as_ref(), &shape, elem.bytes()))
}

/// Slots of a channel that are held at once, at most. Iterations and branches leave as many held as they find: `held`, which is moved on.
fn held_at_once(k: &Kernel, block: Block, channel: Value, held: &mut u32) -> u32 {
    let mut most = *held;
    for &s in &k.blocks[block] {
        match &k.stmts[s] {
            StmtData::Channel { op, channels, .. } if channels.contains(&channel) => match op {
                ChannelOp::Wait => *held += 1,
                ChannelOp::Release => *held = held.saturating_sub(1),
                ChannelOp::Acquire | ChannelOp::Publish => {}
            },
            _ => {
                let before = *held;
                for b in k.sub_blocks(s) {
                    *held = before;
                    most = most.max(held_at_once(k, b, channel, held));
                }
            }
        }
        most = most.max(*held);
    }
    most
}

/// Alignment of what tensor copies fill: the period in which rows of 128 bytes exchange their pieces.
const TENSOR_ALIGN: u64 = 1024;

impl Lower<'_> {
    /// Places every buffer; declares the block of shared memory.
    pub(super) fn place_shared(&mut self) -> Result<(), Reported> {
        // The order of the text, not of the values' numbers: the printed program places them alike.
        let mut buffers: Vec<Value> = Vec::new();
        self.k.walk(self.k.body, &mut |k, _, s| {
            if let StmtData::Alloc { value, .. } = k.stmts[s] {
                buffers.push(value);
            }
        });
        let overlays = Overlays::of(self.k);
        // What lies where the same buffers lie.
        let mut above: BTreeMap<&[Value], Vec<Value>> = BTreeMap::new();
        for (v, over) in overlays.iter() {
            above.entry(over).or_default().push(v);
        }
        let mut used = 0u64;
        for &v in buffers.iter().filter(|&&v| overlays.over(v).is_empty()) {
            if self.placed[v].is_some() {
                continue;
            }
            let mut sets = above.iter().filter(|(over, _)| over.contains(&v));
            let Some((&over, top)) = sets.next() else {
                used = self.place_one(v, &buffers, used);
                continue;
            };
            let start = used;
            for &below in buffers.iter().filter(|b| over.contains(b)) {
                if self.placed[below].is_none() {
                    used = self.place_one(below, &buffers, used);
                }
            }
            // The slots of a ring alternate: taking some of its channels would take parts of the others.
            let parts = |ring: usize| self.rings[ring].channels.iter().any(|c| !over.contains(c));
            let torn = over.iter().filter_map(|&b| self.placed[b]?.ring).any(parts);
            let earlier = over.iter().filter_map(|&b| self.placed[b]).any(|p| p.offset < start);
            if torn || earlier || sets.next().is_some() {
                let d = Diagnostic::error(
                    codes::NOT_LOWERED,
                    self.k.values[top[0]].span,
                    format!(
                        "`{}` is over a part of what is operated, or taken over, together",
                        self.k.values[top[0]].name
                    ),
                );
                return Err(self
                    .sink
                    .report(d.with_note("name all channels of the ring, and the same buffers every time")));
            }
            for &v in top {
                used = used.max(self.place_one(v, &buffers, start));
            }
        }
        used = self.place_barriers(used);
        self.check_limit(&buffers, used)?;
        self.smem_bytes = used;
        if used > 0 {
            let dynamic = used > 48 * 1024;
            let decl = crate::module::SharedDecl {
                name: format!("{}_smem", self.k.name),
                align: self.alignment() as u32,
                bytes: used as u32,
                dynamic,
            };
            self.emit.func.shared.push(decl);
        }
        Ok(())
    }

    /// Places a buffer, or the ring of a channel, at `start`; returns where it ends.
    fn place_one(&mut self, v: Value, buffers: &[Value], start: u64) -> u64 {
        let Some(elem) = self.elem(v) else { return start };
        let ValueDef::Channel { slots, .. } = self.k.values[v].def else {
            self.placed[v] = Some(Placed { offset: start, ring: None });
            let (name, bytes) = (self.k.values[v].name.clone(), tile_bytes(self.k, v, elem));
            self.report.tiles.push(TileReport { name, offset: start, bytes, slots: 1, stride: bytes });
            return start + self.align(bytes);
        };
        let slots = self.k.as_int(slots).and_then(|x| u64::try_from(x).ok()).unwrap_or(1).max(1);
        let channels = self.together(v, buffers);
        let ring = self.rings.len();
        let mut stage = 0;
        let first = self.report.tiles.len();
        for &m in &channels {
            let Some(elem) = self.elem(m) else { continue };
            self.placed[m] = Some(Placed { offset: start + stage, ring: Some(ring) });
            let (name, bytes) = (self.k.values[m].name.clone(), tile_bytes(self.k, m, elem));
            self.report.tiles.push(TileReport { name, offset: start + stage, bytes, slots, stride: 0 });
            stage += self.align(bytes);
        }
        self.report.tiles[first..].iter_mut().for_each(|t| t.stride = stage);
        let fill = self.fill_of(&channels);
        let several =
            channels.iter().any(|&c| held_at_once(self.k, self.k.body, c, &mut 0) > 1 || handed_on(self.k, c));
        self.rings.push(Ring {
            channels,
            slots,
            stride: stage,
            put: Position::Slot(0),
            // Moved on by each `wait`, also the first.
            get: Position::Slot(if several { slots - 1 } else { 0 }),
            several,
            oldest: None,
            barriers: fill.any().then_some(Barriers { offset: 0 }),
            fill,
            filling: 0,
            read: false,
            put_turn: None,
            drained: false,
            get_turn: None,
        });
        start + stage * slots
    }

    /// Alignment of buffers and slots.
    fn alignment(&self) -> u64 {
        let tensor = self.k.stmts.values().any(|s| matches!(s, StmtData::Copy { attrs, .. } if attrs.is_tensor()));
        // The rows that both exchange repeat at this distance; products of warpgroups tell them by their addresses, whoever has written them.
        if tensor || self.multiplies_by_warpgroups() { TENSOR_ALIGN } else { BLOCK_ALIGN }
    }

    fn align(&self, bytes: u64) -> u64 {
        bytes.next_multiple_of(self.alignment())
    }

    /// Barriers of the rings that roles hand over, behind all buffers.
    fn place_barriers(&mut self, mut used: u64) -> u64 {
        for ring in &mut self.rings {
            if let Some(barriers) = &mut ring.barriers {
                barriers.offset = used;
                used += 2 * ring.slots * BARRIER_BYTES;
            }
        }
        self.place_turns(used)
    }

    fn check_limit(&mut self, buffers: &[Value], used: u64) -> Result<(), Reported> {
        let limit = self.target.smem_per_block();
        if used <= limit {
            return Ok(());
        }
        let mut d = Diagnostic::error(
            codes::SMEM_LIMIT,
            buffers.first().map_or(self.k.name_span, |&v| self.k.values[v].span),
            format!("the kernel needs {used} bytes of shared memory, a block of {} has {limit}", self.target.name()),
        );
        for &v in buffers {
            if let Some(elem) = self.elem(v) {
                let bytes = tile_bytes(self.k, v, elem);
                let slots = self.placed[v].and_then(|p| p.ring).map_or(1, |r| self.rings[r].slots);
                d = d.with_place(self.k.values[v].span, format!("{slots} x {bytes} bytes"));
            }
        }
        Err(self.sink.report(d.with_note("use smaller tiles or fewer stages")))
    }

    /// The channels that appear in exactly the same channel operations as `v`.
    fn together(&self, v: Value, buffers: &[Value]) -> Vec<Value> {
        let mut sets: Vec<Vec<Value>> = Vec::new();
        self.k.walk(self.k.body, &mut |k, _, s| {
            if let StmtData::Channel { channels, .. } = &k.stmts[s] {
                sets.push(channels.clone());
            }
        });
        let slots = |w: Value| match self.k.values[w].def {
            ValueDef::Channel { slots, .. } => self.k.as_int(slots),
            _ => None,
        };
        buffers
            .iter()
            .copied()
            .filter(|&w| {
                w == v
                    || (slots(w).is_some()
                        && slots(w) == slots(v)
                        && sets.iter().all(|s| s.contains(&v) == s.contains(&w)))
            })
            .collect()
    }
}
