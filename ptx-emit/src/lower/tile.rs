//! A register tile: the registers of a thread's elements.

use super::dims::Dims;
use crate::inst::{Class, Reg};
use tilec_ir::entities::Value;
use tilec_ir::layout::{RegLayout, UsedRegisters};
use tilec_ir::types::Elem;

/// A register tile: `2^value_bits` elements per thread, of which some may be beyond its extents.
#[derive(Clone, Debug)]
pub(super) struct Tile {
    pub(super) elem: Elem,
    pub(super) layout: RegLayout,
    pub(super) dim_bits: Dims,
    /// Registers of all elements; those of absent elements are never accessed.
    pub(super) regs: Vec<Reg>,
    pub(super) used: UsedRegisters,
    /// Elements per register: two of 16 bits, four of 8 bits or eight of 4 bits, selected by the low value bits, lowest
    /// first. 1 if elements are wider, or if a thread has one element. A thread with fewer elements fills part of a
    /// register. 4-bit elements that are loaded byte by byte: two.
    pub(super) per_register: usize,
}

impl Tile {
    /// Elements per thread, including absent ones.
    pub(super) fn len(&self) -> usize {
        1 << self.layout.value_bits()
    }

    /// The elements of a thread.
    pub(super) fn elements(&self) -> Vec<usize> {
        (0..self.len()).filter(|&v| self.used.has(v)).collect()
    }

    /// Whether a register has elements, in some or all of its parts.
    pub(super) fn has_register(&self, i: usize) -> bool {
        (0..self.per_register).any(|part| self.used.has(i * self.per_register + part))
    }

    /// The indices of registers that have elements.
    pub(super) fn registers(&self) -> impl Iterator<Item = usize> {
        (0..self.regs.len()).filter(|&i| self.has_register(i))
    }

    /// Whether registers hold several elements.
    pub(super) fn packed(&self) -> bool {
        self.per_register > 1
    }

    /// Where 8-bit element `v` is: a register, and a byte of it.
    pub(super) fn byte_of(&self, v: usize) -> (Reg, usize) {
        (self.regs[v / self.per_register], v % self.per_register)
    }

    /// Where 4-bit element `v` is: a register, and which of its elements.
    pub(super) fn nibble_of(&self, v: usize) -> (Reg, usize) {
        (self.regs[v / self.per_register], v % self.per_register)
    }

    /// The window with extents `shape` at `starts`: some of the registers. `None` if threads have no whole part of it,
    /// or if it would split registers.
    pub(super) fn window(&self, starts: &[u64], shape: &[u64]) -> Option<Tile> {
        let dim_bits = Dims::of(shape);
        let (layout, registers) = self.layout.window(&self.dim_bits, starts, &dim_bits)?;
        let per = self.per_register;
        // A thread's part of a small tile may be less than a register.
        let per_word = per.min(1 << self.layout.value_bits());
        let whole = registers.chunks(per).all(|word| {
            word.len() == per_word
                && word[0].is_multiple_of(per)
                && word.iter().enumerate().all(|(i, &v)| v == word[0] + i)
        });
        let held = UsedRegisters::of(&layout, dim_bits.extents())?;
        let regs = registers.chunks(per).map(|word| self.regs[word[0] / per]).collect();
        whole.then_some(Tile { elem: self.elem, layout, dim_bits, used: held, regs, per_register: per })
    }

    /// The same registers as a tile of two dimensions seen transposed.
    pub(super) fn transposed(self) -> Option<Tile> {
        let &[rows, columns] = self.dim_bits.extents() else { return None };
        let layout = self.layout.transposed(self.dim_bits[0])?;
        let dim_bits = Dims::of(&[columns, rows]);
        let held = UsedRegisters::of(&layout, dim_bits.extents())?;
        Some(Tile { layout, dim_bits, used: held, ..self })
    }

    /// The same registers as a tile with its dimensions in another order.
    pub(super) fn permuted(self, order: &[u32]) -> Option<Tile> {
        let extents: Vec<u64> = order.iter().map(|&axis| self.dim_bits.extents()[axis as usize]).collect();
        let layout = self.layout.permuted(&self.dim_bits, order)?;
        let dim_bits = Dims::of(&extents);
        let held = UsedRegisters::of(&layout, dim_bits.extents())?;
        Some(Tile { layout, dim_bits, used: held, ..self })
    }

    /// The same registers as a tile of another shape with the same row-major order of elements.
    pub(super) fn reshaped(self, shape: &[u64]) -> Option<Tile> {
        let dim_bits = Dims::of(shape);
        let layout = self.layout.reshaped(&self.dim_bits, &dim_bits)?;
        let held = UsedRegisters::of(&layout, dim_bits.extents())?;
        Some(Tile { layout, dim_bits, used: held, ..self })
    }

    /// Whether another tile has the same layout and packing.
    pub(super) fn same_shape(&self, other: &Tile) -> bool {
        self.elem == other.elem && self.layout == other.layout && self.per_register == other.per_register
    }
}

/// For each element that a thread holds already, the tile and the number of the element there.
pub(super) type Held = Vec<Option<(Value, usize)>>;

/// The register class of a single element; 8-bit and 4-bit elements are the low part of a 32-bit register.
pub(super) fn class_of(elem: Elem) -> Option<Class> {
    match elem {
        Elem::F16 | Elem::BF16 | Elem::I16 | Elem::U16 => Some(Class::B16),
        Elem::F32 => Some(Class::F32),
        Elem::F64 => Some(Class::F64),
        Elem::I32 | Elem::U32 | Elem::TF32 => Some(Class::B32),
        Elem::E4M3 | Elem::E5M2 | Elem::E2M1 | Elem::UE8M0 | Elem::I8 | Elem::U8 | Elem::I4 | Elem::U4 => {
            Some(Class::B32)
        }
        Elem::I64 | Elem::U64 => Some(Class::B64),
        Elem::Bool => None,
    }
}

/// The class in which elements of a type are computed.
pub(super) fn compute_class(elem: Elem) -> Class {
    match elem {
        Elem::F64 => Class::F64,
        Elem::I32 | Elem::U32 | Elem::I16 | Elem::U16 | Elem::I8 | Elem::U8 | Elem::I4 | Elem::U4 => Class::B32,
        Elem::I64 | Elem::U64 => Class::B64,
        _ => Class::F32,
    }
}

/// Whether elements of a type are computed as unsigned words. Narrower unsigned types fit signed words.
pub(super) fn is_unsigned(elem: Elem, class: Class) -> bool {
    matches!((elem, class), (Elem::U32, Class::B32) | (Elem::U64, Class::B64))
}

/// The groups of value indices that an access of `2^log2` neighbours along `dim` covers, each in address order. `None`
/// if there are none, or some would reach beyond the tile.
pub(super) fn groups(layout: &RegLayout, dim_bits: &Dims, dim: usize, log2: u32) -> Option<Vec<Vec<usize>>> {
    let base: u32 = dim_bits[..dim].iter().sum();
    let mut inner = Vec::new();
    for b in 0..log2 {
        inner.push((0..layout.value_bits()).find(|&i| layout.value_col(i) == 1u64 << (base + b))?);
    }
    let outer: Vec<u32> = (0..layout.value_bits()).filter(|i| !inner.contains(i)).collect();
    let spread = |x: usize, bits: &[u32]| bits.iter().enumerate().fold(0usize, |a, (j, &b)| a | ((x >> j & 1) << b));
    let all = (0..1usize << outer.len())
        .map(|o| (0..1usize << inner.len()).map(|i| spread(o, &outer) | spread(i, &inner)).collect())
        .collect();
    UsedRegisters::of(layout, dim_bits.extents())?.groups(all)
}

/// The fill value of elements outside the bounds.
#[derive(Copy, Clone)]
pub(super) struct Filled {
    pub(super) pattern: u64,
    /// Bits of a register that the element takes.
    pub(super) bits: u32,
}

/// The instruction that places a bf16 in the upper half of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `mov.b32` of two 16-bit registers.
    Pack,
    /// `shl.b32` of the lower element, `and.b32` of the upper one.
    Shift,
    /// `prmt.b32`.
    Permute,
}

impl Form {
    /// The form of the next statement.
    pub(super) fn next(self) -> Form {
        match self {
            Form::Pack => Form::Shift,
            Form::Shift => Form::Permute,
            Form::Permute => Form::Pack,
        }
    }
}
