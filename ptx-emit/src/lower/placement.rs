//! Shared memory of a block: buffers and slots at the offsets that the IR says, then the barriers of channels.

use super::rings::{Barriers, Placed, Position, Ring};
use super::state::Lower;
use crate::report::TileReport;
use tilec_ir::entities::{Block, Value};
use tilec_ir::handover::{Fill, ring};
use tilec_ir::kernel::{ChannelOp, Kernel, StmtData};
use tilec_ir::ordered::{self, passes_ring_state};
use tilec_ir::placement;
use tilec_ir::types::{ArrivalCounts, Place};

/// Most slots of a channel that are held at once in a block. Iterations and branches leave the number `held` unchanged,
/// which is updated.
fn most_held_slots(k: &Kernel, block: Block, channel: Value, held: &mut u32) -> u32 {
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
                    most = most.max(most_held_slots(k, b, channel, held));
                }
            }
        }
        most = most.max(*held);
    }
    most
}

impl Lower<'_> {
    /// Finds the rings of channels, and declares the block of shared memory.
    pub(super) fn place_shared(&mut self) {
        let k = self.k;
        // In the order of the text, not of value numbers, so that the printed program gives the same result.
        let mut buffers: Vec<Value> = Vec::new();
        k.walk(k.body, &mut |k, _, s| {
            if let StmtData::Alloc { value, .. } = k.stmts[s] {
                buffers.push(value);
            }
        });
        for &v in &buffers {
            if self.placed[v].is_some() {
                continue;
            }
            match self.place(v).stride {
                None => self.place_one(v, None),
                Some(_) => self.place_ring(v),
            }
        }
        self.place_turns();
        let used = self.place_counted(ordered::end(k));
        let used = self.place_cluster_memory(used);
        let limit = self.target.smem_per_block();
        assert!(used <= limit, "bug: places end at {used}, a block has {limit} bytes of shared memory");
        self.smem_bytes = used;
        if used > 0 {
            let dynamic = used > 48 * 1024;
            let decl = crate::module::SharedDecl {
                name: format!("{}_smem", self.k.name),
                align: placement::alignment(k) as u32,
                bytes: used as u32,
                dynamic,
            };
            self.emit.func.shared.push(decl);
        }
    }

    pub(super) fn place(&self, v: Value) -> Place {
        self.k.shared_places[v]
            .unwrap_or_else(|| panic!("bug: `{}` has no place in shared memory", self.k.values[v].name))
    }

    fn place_one(&mut self, v: Value, ring: Option<usize>) {
        let Place { offset, stride, .. } = self.place(v);
        self.placed[v] = Some(Placed { offset, ring });
        let (name, bytes) = (self.k.values[v].name.clone(), self.bytes(v));
        let (slots, stride) = (placement::slots(self.k, v).unwrap_or(1), stride.unwrap_or(bytes));
        self.report.tiles.push(TileReport { name, offset, bytes, slots, stride });
    }

    fn barriers(&self, v: Value, ArrivalCounts { full, empty, .. }: ArrivalCounts) -> Barriers {
        let place = self.place(v).barriers;
        let offset = place.unwrap_or_else(|| panic!("bug: the barriers of `{}` have no place", self.k.values[v].name));
        Barriers { offset, full, empty }
    }

    /// Bytes of a buffer or slot.
    pub(super) fn bytes(&self, v: Value) -> u64 {
        placement::tile_bytes(self.k, v).unwrap_or_else(|| panic!("bug: `{}` has no extents", self.k.values[v].name))
    }

    /// Places the ring of channels that share the stages of `v`.
    fn place_ring(&mut self, v: Value) {
        let stride = self.place(v).stride.unwrap_or_else(|| panic!("bug: a channel without a stride"));
        let slots = placement::slots(self.k, v).unwrap_or_else(|| panic!("bug: a channel without slots"));
        let channels = ring(self.k, v);
        let number = self.rings.len();
        for &m in &channels {
            self.place_one(m, Some(number));
        }
        let fill = Fill::of(self.k, &channels);
        let holds_several = channels
            .iter()
            .any(|&c| most_held_slots(self.k, self.k.body, c, &mut 0) > 1 || passes_ring_state(self.k, c));
        self.rings.push(Ring {
            channels,
            slots,
            stride,
            put: Position::Slot(0),
            // Each `wait` advances it, also the first.
            get: Position::Slot(if holds_several { slots - 1 } else { 0 }),
            holds_several,
            oldest: None,
            barriers: self.k.handovers[v].map(|handover| self.barriers(v, handover)),
            fill,
            filling: 0,
            read: false,
            put_turn: None,
            drained: false,
            get_turn: None,
        });
    }
}
