//! Indices in registers, and register tiles of indices that gather or scatter elements.
//!
//! Along a gathered dimension, every element has its own index, in the thread that moves the element: the tile of
//! indices has the layout of the copy without its other dimensions. If no loop around the copy changes an index, its
//! addresses and comparisons are computed in front of these loops.

use super::ranged_ints::{Int, Repr};
use super::state::Lower;
use super::windows::Rows;
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;
use tilec_ir::diag::Reported;
use tilec_ir::entities::Value;
use tilec_ir::extents::of_elem;
use tilec_ir::kernel::{ExprData, StmtData};
use tilec_ir::layout::RegLayout;
use tilec_ir::modified_values::changes;
use tilec_ir::ops::Op;
use tilec_ir::types::Elem;
use tilec_ir::typing::ResolvedView;

impl Lower<'_> {
    /// The index in an immutable integer register, clamped to 32 bits.
    pub(super) fn whole_number(&mut self, reg: Reg, elem: Elem) -> Int {
        let range = of_elem(elem).expect("bug: an index is made of an integer, which is verified");
        match elem {
            Elem::U32 => {
                let most = Operand::Imm(i64::from(i32::MAX));
                Int::r32(self.emit.pure(Class::B32, P::MinU32, [reg.into(), most]), range.lo, range.hi)
            }
            Elem::U64 => {
                let most = Operand::Imm(i64::from(i32::MAX));
                let within = self.emit.pure(Class::B64, P::MinU64, [reg.into(), most]);
                Int::r32(self.emit.pure(Class::B32, P::CvtU32U64, [within.into()]), range.lo, range.hi)
            }
            Elem::I64 => {
                let all = Int { repr: Repr::R64(reg), lo: i128::from(i64::MIN), hi: i128::from(i64::MAX) };
                let ends = [(Op::Min, range.hi), (Op::Max, range.lo)];
                let within = ends.into_iter().fold(all, |x, (op, end)| {
                    self.int_op(op, x, Int::constant(end as i64)).expect("one of two numbers of 64 bits is one")
                });
                Int::r32(self.in32(within), range.lo, range.hi)
            }
            _ => Int::r32(reg, range.lo, range.hi),
        }
    }

    /// The indices of a thread's elements along dimension `d` of a window's tensor, which is dimension `w` of the
    /// window; `None`: they are consecutive.
    pub(super) fn rows(
        &mut self,
        view: &ResolvedView,
        w: usize,
        layout: &RegLayout,
        window: &[u32],
    ) -> Result<Option<Rows>, Reported> {
        let Some((_, e)) = view.gathered_dims().into_iter().find(|&(at, _)| at == w) else { return Ok(None) };
        let ExprData::Ref(v) = self.k.exprs[e] else { panic!("bug: rows are gathered by what is no variable") };
        let tile = self.tiles[v].clone().expect("bug: a tile of indices is declared in front of its use");
        let by_element = view.is_by_element(self.k, w, e);
        // Log2 extents of the window along the dimensions on which an index depends.
        let own: Vec<u32> = match by_element {
            true => tile.dim_bits.to_vec(),
            false => window.iter().enumerate().map(|(d, &bits)| if d == w { bits } else { 0 }).collect(),
        };
        let wanted = layout.repeated(window, &own);
        if wanted.is_none_or(|wanted| wanted.thread() != tile.layout.thread()) {
            return Err(self.unfit(e, "a tile of indices that other threads hold than those that move their elements"));
        }
        let places = Places::of(window, &own);
        let mut rows = Rows { by: places.by, indices: Vec::new(), by_element };
        for i in 0..1usize << layout.value_bits() {
            let c = layout.at(0, i as u64) & rows.by;
            if rows.indices.iter().any(|(known, _)| *known == c) {
                continue;
            }
            // If the extent is no power of two, some elements do not exist.
            let place = places.packed(c);
            let held = tile.elements().into_iter().find(|&i| tile.layout.at(0, i as u64) == place);
            let Some(i) = held else { continue };
            let reg = if tile.elem.bits() < 32 { self.get(&tile, i) } else { tile.regs[i] };
            let reg = self.immutable_register(v, reg);
            let index = self.whole_number(reg, tile.elem);
            rows.indices.push((c, index));
        }
        Ok(Some(rows))
    }

    /// The value of a tile's register in an immutable one. It is copied in front of the surrounding loops that do not
    /// change the tile.
    fn immutable_register(&mut self, v: Value, reg: Reg) -> Reg {
        let own = self.emit.depth_of(reg);
        let inner = self.loops.iter().rev().take_while(|l| l.depth > own && !self.changed_in_loop(l.var, v)).count();
        match self.loops.len().checked_sub(inner).filter(|_| inner > 0 && !self.emit.keeps()) {
            Some(outermost) => self.emit.immutable_copy_at(self.loops[outermost].depth - 1, reg),
            None => self.emit.immutable_copy(reg),
        }
    }

    /// Whether the loop over a variable changes a tile.
    fn changed_in_loop(&self, var: Value, tile: Value) -> bool {
        let k = self.k;
        k.statements()
            .into_iter()
            .any(|s| matches!(k.stmts[s], StmtData::For { var: own, .. } if own == var) && changes(k, s, tile))
    }

    /// The loop depth at which the indices of a window are known.
    pub(super) fn depth_of_rows(&self, rows: &Rows) -> usize {
        let depth = |int: &Int| match int.repr {
            Repr::R32(r) | Repr::R64(r) => self.emit.depth_of(r),
            Repr::Const(_) => 0,
        };
        rows.indices.iter().map(|(_, int)| depth(int)).max().unwrap_or(0)
    }
}

/// Places of elements in a window, and in a tile that has some of its dimensions.
struct Places {
    /// The bits of these dimensions in the window's index of an element.
    by: u64,
    /// For each dimension its first bit there, and how many bits the tile has.
    parts: Vec<(u32, u32)>,
}

impl Places {
    /// `own`: log2 extents of the tile, 0 along dimensions that it does not have.
    fn of(window: &[u32], own: &[u32]) -> Places {
        let mut shift = 0;
        let mut places = Places { by: 0, parts: Vec::new() };
        for (&bits, &part) in window.iter().zip(own) {
            places.by |= ((1 << part) - 1) << shift;
            places.parts.push((shift, part));
            shift += bits;
        }
        places
    }

    /// The place in the tile of an element of the window.
    fn packed(&self, place: u64) -> u64 {
        let add = |(sum, to): (u64, u32), &(shift, bits): &(u32, u32)| {
            (sum | (place >> shift & ((1 << bits) - 1)) << to, to + bits)
        };
        self.parts.iter().fold((0, 0), add).0
    }
}
