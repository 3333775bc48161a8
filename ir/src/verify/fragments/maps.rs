//! Operands of products as linear maps over bits, and the proof of the statements about them.

use crate::atoms::{Bit, Fragment};
use crate::entities::{Expr, Value};
use crate::kernel::{ExprData, Kernel};
use crate::layout::RegLayout;
use crate::verify::layouts::{MAX_BITS, dim_bits};

/// Lane bits of a warp.
pub(super) const LANE_BITS: u32 = 5;

/// An operand as a matrix: its columns split into an outer (row or column of C) and a reduction part, or, for C, into rows
/// and columns of the instruction.
pub(super) struct Operand {
    pub(super) name: String,
    pub(super) layout: RegLayout,
    /// Bits of the tile's dimension 0: the split of a column-major index.
    pub(super) low_bits: u32,
    /// The first coordinate (`m` for A and C, `k` for B) is dimension 1 of the tile.
    pub(super) flipped: bool,
    /// log2 extents, first coordinate first.
    pub(super) bits: [u32; 2],
    /// log2 of the number of slices, if the accumulator has slices: the lowest bits of its index.
    pub(super) slice_bits: u32,
}

impl Operand {
    pub(super) fn new(k: &Kernel, e: Expr, flipped: bool) -> Option<Operand> {
        let v: Value = match &k.exprs[e] {
            ExprData::Ref(v) => *v,
            ExprData::View(v) if v.ranges.is_empty() => v.base,
            _ => return None,
        };
        let tile = k.tile_ty(v)?;
        let layout = tile.reg_layout.clone()?;
        let bits = dim_bits(k, tile)?;
        let (slice_bits, low, high) = match bits[..] {
            [low, high] => (0, low, high),
            [slices, low, high] => (slices, low, high),
            _ => return None,
        };
        let all = slice_bits.saturating_add(low).saturating_add(high);
        if layout.out_bits() != all || all > MAX_BITS {
            return None;
        }
        let bits = if flipped { [high, low] } else { [low, high] };
        Some(Operand { name: k.values[v].name.clone(), layout, low_bits: low, flipped, bits, slice_bits })
    }

    /// A column as first and second coordinate.
    pub(super) fn split(&self, column: u64) -> [u64; 2] {
        let column = column >> self.slice_bits;
        let (low, high) = (column & ((1u64 << self.low_bits) - 1), column >> self.low_bits);
        if self.flipped { [high, low] } else { [low, high] }
    }

    /// The slice that a column of the accumulator moves to.
    pub(super) fn slice(&self, column: u64) -> u64 {
        column & ((1u64 << self.slice_bits) - 1)
    }

    /// Columns of the value bits past the atom's own.
    pub(super) fn repeats(&self, fragment: &Fragment) -> Vec<[u64; 2]> {
        let own = fragment.value.len() as u32;
        (own..self.layout.value_bits()).map(|i| self.split(self.layout.value_col(i))).collect()
    }

    /// Column of a warp bit; zero where the layout has no such bit.
    pub(super) fn warp(&self, i: u32) -> [u64; 2] {
        self.split(self.layout.thread_col(LANE_BITS + i))
    }

    /// What a warp bit adds to the index of the slice.
    pub(super) fn warp_slice(&self, i: u32) -> u64 {
        self.slice(self.layout.thread_col(LANE_BITS + i))
    }

    /// The first value or lane bit that moves to another slice.
    pub(super) fn slice_in_a_warp(&self) -> Option<String> {
        let values = (0..self.layout.value_bits()).map(|i| ("value", i, self.layout.value_col(i)));
        let lanes = (0..LANE_BITS).map(|i| ("lane", i, self.layout.thread_col(i)));
        let moves = values.chain(lanes).find(|&(_, _, column)| self.slice(column) != 0);
        moves.map(|(kind, i, _)| {
            format!("{kind} bit {i} of `{}` moves to another slice of the reduction: a warp sums one slice", self.name)
        })
    }
}

/// The maps `rho`, `nu` and `kappa` as far as they are known.
pub(super) struct Maps {
    pub(super) m: Vec<Option<u64>>,
    pub(super) n: Vec<Option<u64>>,
    pub(super) k: Vec<Option<u64>>,
}

/// A failed proof: the number of statements that held before, and the statement that does not hold.
pub(super) type Failure = (usize, String);

/// Statement 3: `operand` holds the row (column) to which a value bit of the accumulator moves.
pub(super) fn check_operand_bits(
    span: &[u64],
    to: [u64; 2],
    (c, bit): (&Operand, usize),
    (operand, what): (&Operand, &str),
) -> Result<(), String> {
    if in_span(span, pack(to)) {
        return Ok(());
    }
    Err(format!("value bit {bit} of `{}` moves to other {what}, which `{}` does not hold", c.name, operand.name))
}

/// Statement 4: a warp bit moves `operand` to the row (column) to which it moves the accumulator.
pub(super) fn check_warp_bits(
    span: &[u64],
    w: u32,
    operand: &Operand,
    (c, wanted): (&Operand, [u64; 2]),
) -> Result<(), String> {
    if in_span(span, pack(operand.warp(w)) ^ pack(wanted)) {
        return Ok(());
    }
    let (operand, c, bit) = (&operand.name, &c.name, w + LANE_BITS);
    Err(format!("warp bit {w} (thread bit {bit}) moves `{operand}` and `{c}` to different elements"))
}

/// Statement 1 for one operand, whose coordinate `k_along` is the reduction.
pub(super) fn one_operand(
    o: &Operand,
    fragment: &Fragment,
    k_along: usize,
    maps: &mut Maps,
    facts: &mut usize,
) -> Result<(), Failure> {
    if (o.layout.value_bits() as usize) < fragment.value.len() {
        let why = format!(
            "a thread holds {} elements of `{}`, the instruction wants {}",
            1u64 << o.layout.value_bits(),
            o.name,
            1u64 << fragment.value.len()
        );
        return Err((*facts, why));
    }
    let values = fragment.value.iter().enumerate().map(|(i, &bit)| ("value", i, bit, o.layout.value_col(i as u32)));
    let lanes = fragment.lane.iter().enumerate().map(|(i, &bit)| ("lane", i, bit, o.layout.thread_col(i as u32)));
    for (kind, i, bit, column) in values.chain(lanes) {
        let at = o.split(column);
        // Which of the operand's two coordinates the bit is along.
        let (map, index, along, letter) = match bit {
            Bit::M(j) => (&mut maps.m, j, 0, 'm'),
            Bit::N(j) => (&mut maps.n, j, 1, 'n'),
            Bit::K(j) => (&mut maps.k, j, k_along, 'k'),
            Bit::Same => {
                if column != 0 {
                    let why = format!(
                        "{kind} bit {i} of `{}` reaches other elements, the instruction wants the same in both",
                        o.name
                    );
                    return Err((*facts, why));
                }
                *facts += 1;
                continue;
            }
        };
        if at[1 - along] != 0 {
            let why = format!(
                "{kind} bit {i} of `{}` is bit {index} of the instruction's {letter}, and moves along the other dimension",
                o.name
            );
            return Err((*facts, why));
        }
        let Some(slot) = map.get_mut(usize::from(index)) else {
            return Err((*facts, format!("the atom has no bit {index} of {letter}")));
        };
        match *slot {
            None => *slot = Some(at[along]),
            Some(known) if known == at[along] => {}
            Some(known) => {
                let why = format!(
                    "{kind} bit {i} of `{}` is bit {index} of the instruction's {letter} and moves by {}, another operand's by {known}",
                    o.name, at[along]
                );
                return Err((*facts, why));
            }
        }
        *facts += 1;
    }
    Ok(())
}

/// Statement 2.
pub(super) fn reduction(
    a: &Operand,
    b: &Operand,
    ra: &[[u64; 2]],
    rb: &[[u64; 2]],
    maps: &Maps,
    deep: u32,
) -> Result<(), String> {
    let kappa: Vec<u64> = maps.k.iter().map(|k| k.unwrap_or(0)).collect();
    let steps = kappa.iter().copied().chain(ra.iter().map(|r| r[1])).chain(rb.iter().map(|r| r[0]));
    if steps.fold(0, |all, k| all | k) >> deep != 0 {
        return Err(format!(
            "a warp's registers of `{}` and `{}` go past the 2^{deep} steps of a slice of the reduction",
            a.name, b.name
        ));
    }
    // Offsets along k that repetitions of A (of B) reach without leaving their row (column).
    let pure_a = pure(ra.iter().map(|&[m, k]| [m, k]));
    let pure_b = pure(rb.iter().map(|&[k, n]| [n, k]));
    let (rank_a, rank_b) = (pure_a.len(), pure_b.len());
    let common = rank_a + rank_b - basis(pure_a.iter().chain(&pure_b).copied()).len();
    if common < rank_a.max(rank_b) {
        return Err(format!("the registers of `{}` and `{}` step through the reduction differently", a.name, b.name));
    }
    let all = basis(kappa.iter().copied().chain(pure_a.iter().copied())).len();
    let extent = deep as usize;
    if all < extent {
        return Err(format!("only 2^{all} of the 2^{extent} steps of the reduction are reached"));
    }
    if kappa.len() + common > extent {
        return Err(format!(
            "the registers of `{}` and `{}` hold steps of the reduction more than once",
            a.name, b.name
        ));
    }
    Ok(())
}

/// The second coordinates that combinations of the pairs reach with the first coordinate 0, as a basis.
pub(super) fn pure(pairs: impl Iterator<Item = [u64; 2]>) -> Vec<u64> {
    // The first coordinate on top: echelon form eliminates it first.
    basis(pairs.map(|[first, second]| pack([second, first]))).into_iter().filter(|&v| v >> 32 == 0).collect()
}

/// Two coordinates in one word; extents of tiles are far below 2^32.
pub(super) fn pack([first, second]: [u64; 2]) -> u64 {
    second << 32 | first & 0xffff_ffff
}

/// A basis of the span, with distinct leading bits.
pub(super) fn basis(vectors: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut basis: Vec<u64> = Vec::new();
    for v in vectors {
        let v = reduce(&basis, v);
        if v != 0 {
            basis.push(v);
            basis.sort_unstable_by(|a, b| b.cmp(a));
        }
    }
    basis
}

/// `v`, reduced by the basis, leading bits first.
pub(super) fn reduce(basis: &[u64], mut v: u64) -> u64 {
    for &b in basis {
        v = v.min(v ^ b);
    }
    v
}

pub(super) fn in_span(basis: &[u64], v: u64) -> bool {
    reduce(basis, v) == 0
}
