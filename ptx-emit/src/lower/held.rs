//! Loads of windows of which a thread already holds elements (`held x (-1, 0)`).

use super::dims::Dims;
use super::state::Lower;
use super::tile::{Held, Tile};
use crate::inst::{Class, Reg};
use tilec_ir::entities::Value;
use tilec_ir::kernel::{CopyAttrs, ExprData};
use tilec_ir::layout::RegLayout;

impl Lower<'_> {
    /// The elements of a window that a thread with this layout holds; nothing if it loads all of them.
    pub(super) fn held(&self, attrs: &CopyAttrs, layout: &RegLayout, dim_bits: &Dims) -> Held {
        let mut all: Held = Vec::new();
        for held in &attrs.held {
            let ExprData::Ref(tile) = self.k.exprs[held.tile] else { panic!("bug: elements are held by tiles") };
            let own = layout.held(dim_bits.extents(), &held.offset);
            all.resize(own.len(), None);
            for (place, from) in all.iter_mut().zip(own) {
                *place = place.or(from.map(|v| (tile, v)));
            }
        }
        all
    }

    /// Sets elements of a tile to those that the thread holds in others.
    pub(super) fn take(&mut self, tile: &Tile, elements: &[usize], held: &Held) {
        let mut values: Vec<(usize, Reg)> = Vec::new();
        let mut rest = elements;
        while let [v, tail @ ..] = rest {
            let (from, w) = held[*v].expect("bug: it is held");
            let other = self.tiles[from].clone().expect("bug: it was loaded before");
            // Both halves of a register are those of another.
            let next = tail
                .first()
                .filter(|&&next| tile.per_register == 2 && v.is_multiple_of(2) && next == v + 1 && w.is_multiple_of(2));
            if next.is_some_and(|&next| held[next] == Some((from, w + 1))) && tile.elem.bits() == 16 {
                self.mov(tile.regs[v / 2], other.regs[w / 2]);
                rest = &tail[1..];
                continue;
            }
            values.push((*v, self.raw(&other, w)));
            rest = tail;
        }
        self.set_raw(tile, &values);
    }

    /// A half of a pair that the thread holds.
    pub(super) fn held_half(&mut self, (from, w): (Value, usize)) -> Reg {
        let other = self.tiles[from].clone().expect("bug: it was loaded before");
        let r = self.raw(&other, w);
        debug_assert_eq!(self.emit.func.regs[r], Class::B16, "a half has 16 bits");
        r
    }
}
