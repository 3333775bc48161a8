//! Shared-memory layouts of TMA and `wgmma`: rows of 32, 64 or 128 bytes, whose 16-byte chunks
//! are permuted by bits of the row. TMA also writes rows of up to 256 elements without a swizzle.
//!
//! Both units compute a *plain* address and then XOR bits of it. So a layout is one of theirs if undoing the
//! XOR leaves columns of the form that the unit adds up. Everything here is such a comparison of columns; no layout is
//! recognised by its text.
//!
//! Facts: PTX ISA 9.7.15.5.1 (matrix descriptors), 5.5.7 (swizzling modes of tensor maps). Addresses count from a multiple of
//! 1024 bytes, the longest period of a mode.

use super::F2Map;
use super::extents::{is_whole, shape_bits};
use super::smem::{Pitch, SmemLayout};
use crate::bits::Bits;
pub use tilec_core::hardware::Exchange;

/// Addresses that count bits are those that count bytes, shifted by this.
const BYTE_LOG2: u32 = 3;

/// Bits of the row that exchange pieces at most.
const ROW_BITS: u32 = 3;

/// [`Exchange::apply`] of an address that counts bits.
fn apply_bits(exchange: Exchange, address: u64) -> u64 {
    exchange.apply(address >> BYTE_LOG2) << BYTE_LOG2 | address & ((1 << BYTE_LOG2) - 1)
}

/// Number of bits, of a bit address, that are within a row.
fn row_log2(exchange: Exchange) -> u32 {
    exchange.row_bytes().ilog2() + BYTE_LOG2
}

/// The longest rows of panels for `count` elements along the contiguous dimension. `exact`: that make them up, as those of a tile that is stored must; else
/// the last panel may reach beyond the tile, for a copy takes as long for a short row as for a long one. `None` if they are shorter than 32 bytes.
pub fn rows(count: u64, elem: Bits, exact: bool) -> Option<Exchange> {
    let longest = elem.bytes_of(count).checked_next_power_of_two()?;
    let fits = |x: &Exchange| if exact { elem.makes_up(count, x.row_bytes()) } else { x.row_bytes() <= longest };
    Exchange::ALL.into_iter().find(fits)
}

/// The layout of a tile in panels of the longest rows along `contiguous` ([`rows`]): what both units move without
/// conflicts. A tile of fewer rows than the eight after which an exchange repeats has plain rows, where TMA takes them.
/// Panels of other than a power of two of rows follow one another as they end. Panels of a tile that is stored
/// (`exact`), whose addresses threads compute, are instead cut into pieces of as many rows as divide them. The pieces
/// follow one another as the panels do: products could not read them. `None` if rows are shorter than 32 bytes, there
/// would be gaps, or panels would begin at no multiples of [`PANEL_BYTES`].
pub fn panels(shape: &[u64], contiguous: usize, elem: Bits, exact: bool) -> Option<SmemLayout> {
    if let Some(plain) = plain_rows(shape, contiguous, elem) {
        return Some(plain);
    }
    let whole = panels_of(shape, contiguous, elem, exact, Odd::Linear);
    whole.or_else(|| panels_of(shape, contiguous, elem, exact, if exact { Odd::Cut } else { Odd::Pitch }))
}

/// The layout of few rows one after the other, or of one that ends anywhere.
fn plain_rows(shape: &[u64], contiguous: usize, elem: Bits) -> Option<SmemLayout> {
    let others = shape.iter().enumerate().filter(|&(d, _)| d != contiguous);
    let rows = others.map(|(_, &n)| n).product::<u64>();
    let few = rows < 1 << ROW_BITS;
    let row = shape.get(contiguous)?;
    let whole = (is_whole(shape) || rows == 1) && elem.makes_up(*row, 16) && *row <= 1 << BOX_BITS;
    let mut order = vec![contiguous];
    order.extend((0..shape.len()).rev().filter(|&d| d != contiguous));
    let layout = SmemLayout::natural(&shape_bits(shape), &order)?;
    (few && whole).then_some(layout)
}

/// The layout of several panels if the number of rows is not a power of two.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Odd {
    /// There are none.
    Linear,
    /// Pieces of as many rows as divide them.
    Cut,
    /// Panels in sequence, each beginning where the previous one ends.
    Pitch,
}

fn panels_of(shape: &[u64], contiguous: usize, elem: Bits, exact: bool, odd: Odd) -> Option<SmemLayout> {
    let shift = elem.log2();
    let dim_bits = &shape_bits(shape)[..];
    let extent = *dim_bits.get(contiguous)?;
    let exchange = rows(shape[contiguous], elem, exact)?;
    let inner = row_log2(exchange) - shift;
    let others: Vec<usize> = (0..dim_bits.len()).rev().filter(|&d| d != contiguous).collect();
    // Bits of the plain element offset, from the lowest: (dimension, bit).
    let mut order: Vec<(usize, u32)> = (0..inner).map(|b| (contiguous, b)).collect();
    let divided = |d: usize| if odd == Odd::Cut { shape[d].trailing_zeros().min(dim_bits[d]) } else { dim_bits[d] };
    order.extend(others.iter().flat_map(|&d| (0..divided(d)).map(move |b| (d, b))));
    order.extend((inner..extent).map(|b| (contiguous, b)));
    order.extend(others.iter().flat_map(|&d| (divided(d)..dim_bits[d]).map(move |b| (d, b))));
    let mut cols = Vec::new();
    for (d, &bits) in dim_bits.iter().enumerate() {
        for b in 0..bits {
            let at = order.iter().position(|&x| x == (d, b))?;
            cols.push(apply_bits(exchange, 1u64 << (at as u32 + shift)) >> shift);
        }
    }
    let layout = SmemLayout::new(F2Map::from_cols(cols)?, dim_bits.to_vec())?;
    let row = 1 << inner;
    let layout = match odd {
        Odd::Linear | Odd::Cut => layout,
        Odd::Pitch => {
            let rows = others.iter().map(|&d| shape[d]).product::<u64>();
            let bit = inner + others.iter().map(|&d| dim_bits[d]).sum::<u32>();
            layout
                .with_pitch(Pitch { bit, stride: rows * row })
                .filter(|_| ((rows * row) << shift).is_multiple_of(PANEL_BYTES << BYTE_LOG2))?
        }
    };
    let whole = shape.iter().enumerate().map(|(d, &n)| if d == contiguous { n.next_multiple_of(row) } else { n });
    (layout.span(shape)? <= whole.product()).then_some(layout)
}

/// Rows in which the exchange of pieces repeats itself: panels and boxes begin at multiples of them.
pub const PERIOD: u64 = 8;

/// Bytes of which panels begin at multiples: the longest period of an exchange.
pub const PANEL_BYTES: u64 = PERIOD * 128;

/// The box of one TMA copy, and the positions of a tile's copies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Boxes {
    /// How its pieces are exchanged.
    pub exchange: Exchange,
    /// The tile's dimensions in the order in which the box is written, the contiguous one first.
    pub dims: Vec<usize>,
    /// Extents of the box along `dims`.
    pub extents: Vec<u64>,
    /// Where each box begins, as coordinates of the tile, and its byte offset.
    pub places: Vec<(Vec<u64>, u64)>,
    /// The last of them reach beyond the tile.
    pub beyond: bool,
}

/// Elements that a box has at most along a dimension (`cuTensorMapEncodeTiled`).
const BOX_BITS: u32 = 8;

/// How copies of boxes fill a tile of these extents. `None` if they cannot.
pub fn boxes(layout: &SmemLayout, shape: &[u64], elem: Bits) -> Option<Boxes> {
    // With few rows, several tiles share a swizzle period and would be swizzled differently.
    let exchanged = || Exchange::ALL.into_iter().find_map(|x| boxes_with(layout, shape, elem, x));
    plain_box(layout, shape, elem).or_else(exchanged)
}

/// The box of a tile in plain rows.
fn plain_box(layout: &SmemLayout, shape: &[u64], elem: Bits) -> Option<Boxes> {
    let (contiguous, plain) = (0..shape.len()).find_map(|d| Some((d, plain_rows(shape, d, elem)?)))?;
    if plain != *layout {
        return None;
    }
    let mut dims = vec![contiguous];
    dims.extend((0..shape.len()).rev().filter(|&d| d != contiguous));
    let extents = dims.iter().map(|&d| shape[d]).collect();
    Some(Boxes { exchange: Exchange::Plain, dims, extents, places: vec![(vec![0; shape.len()], 0)], beyond: false })
}

fn boxes_with(layout: &SmemLayout, shape: &[u64], elem: Bits, exchange: Exchange) -> Option<Boxes> {
    let rank = layout.dim_bits().len();
    // Addresses count bits.
    let (row, shift) = (row_log2(exchange), elem.log2());
    let plain = |d: usize, b: usize| apply_bits(exchange, layout.dim_cols(d)[b] << shift);
    let has = |d: usize, b: usize, at: u32| b < layout.dim_bits()[d] as usize && plain(d, b) == 1u64 << at;
    let contiguous = (0..rank).find(|&d| has(d, 0, shift))?;
    let inner = (row - shift) as usize;
    if !(0..inner).all(|b| has(contiguous, b, shift + b as u32)) {
        return None;
    }
    let (mut dims, mut bits) = (vec![contiguous], vec![inner as u32]);
    let mut at = row;
    while let Some(d) = (0..rank).find(|d| !dims.contains(d) && has(*d, 0, at)) {
        // Several boxes are alike, so their extent divides that of the tile.
        let most = if shape[d] > 1 << BOX_BITS { shape[d].trailing_zeros().min(BOX_BITS) } else { BOX_BITS };
        let run = (0..layout.dim_bits()[d].min(most)).take_while(|&b| has(d, b as usize, at + b)).count() as u32;
        dims.push(d);
        bits.push(run);
        at += run;
        // The elements that follow in memory belong to another box.
        if run < layout.dim_bits()[d] {
            break;
        }
    }
    // Dimensions that the box does not extend along.
    for d in (0..rank).filter(|d| !dims.contains(d)).collect::<Vec<_>>() {
        dims.push(d);
        bits.push(0);
    }
    let mut places = vec![(vec![0u64; rank], 0u64)];
    for (i, &d) in dims.iter().enumerate() {
        for b in bits[i]..layout.dim_bits()[d] {
            let column = plain(d, b as usize);
            // A box starts a new row, and does not change the swizzle of rows.
            if !column.is_power_of_two() || column < 1u64 << at {
                return None;
            }
            let more: Vec<_> = places
                .iter()
                .map(|(start, offset)| {
                    let mut start = start.clone();
                    start[d] |= 1 << b;
                    (start, offset | column)
                })
                .collect();
            places.extend(more);
        }
    }
    // Panels begin at multiples of the period, below which pieces are exchanged.
    for (_, offset) in &mut places {
        *offset = elem.byte_at(layout.address(*offset >> shift));
    }
    // A box that spans a dimension ends with it, but rows are whole.
    let extent = |(i, (&d, &b)): (usize, (&usize, &u32))| if i == 0 { 1 << b } else { shape[d].min(1 << b) };
    let extents: Vec<u64> = dims.iter().zip(&bits).enumerate().map(extent).collect();
    let whole = |(&d, &n): (&usize, &u64)| shape[d].is_multiple_of(n);
    if !dims.iter().zip(&extents).skip(1).all(whole) {
        return None;
    }
    let beyond = !whole((&contiguous, &extents[0]));
    places.retain(|(start, _)| start.iter().zip(shape).all(|(at, n)| at < n));
    let period = PERIOD * exchange.row_bytes();
    let whole = places.iter().all(|(_, offset)| offset % period == 0);
    (whole && layout.is_bijective()).then_some(Boxes { exchange, dims, extents, places, beyond })
}

/// Bytes of memory for a tile of these extents: whole boxes, if some extend beyond it. Saturates at the maximum.
pub fn tile_bytes(layout: Option<&SmemLayout>, shape: &[u64], elem: Bits) -> u64 {
    let layout = layout.filter(|_| !is_whole(shape));
    let filled = layout.and_then(|l| boxes(l, shape, elem)).map(|b| b.bytes(elem));
    let span = layout.and_then(|l| l.span(shape)).map(|n| elem.bytes_of(n));
    filled.max(span).unwrap_or_else(|| elem.bytes_of(shape.iter().copied().fold(1, u64::saturating_mul)))
}

impl Boxes {
    /// Rows of each box that one of `blocks` blocks loads if they share the tile; `None`: the parts are not whole
    /// swizzle periods.
    pub fn shared_rows(&self, blocks: u64) -> Option<u64> {
        self.extents.get(1).filter(|rows| rows.is_multiple_of(PERIOD * blocks)).map(|rows| rows / blocks)
    }

    /// Bytes that all of them bring, which is what they take in memory.
    pub fn bytes(&self, elem: Bits) -> u64 {
        elem.bytes_of(self.places.len() as u64 * self.extents.iter().product::<u64>())
    }
}

/// How `wgmma` reads an operand from shared memory: the fields of its descriptor but for the address.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Descriptor {
    /// How pieces are exchanged.
    pub exchange: Exchange,
    /// Elements are contiguous along rows (of A) or columns (of B), not along the reduction.
    pub transposed: bool,
    /// Leading-dimension byte offset.
    pub leading: u64,
    /// Stride-dimension byte offset.
    pub stride: u64,
}

impl Descriptor {
    /// The constant part of the descriptor.
    pub fn bits(&self) -> u64 {
        let field = |bytes: u64| bytes >> 4 & 0x3fff;
        field(self.leading) << 16 | field(self.stride) << 32 | self.exchange.descriptor_code() << 62
    }

    /// The bytes that the unit adds to the descriptor's address for an element of an instruction, before pieces are exchanged: of line `line` (a row of A,
    /// a column of B), `depth` along the reduction. They are those of whole bytes.
    pub fn plain(&self, elem: Bits, line: u64, depth: u64) -> u64 {
        let row = self.exchange.row_bytes();
        if self.transposed {
            let at = elem.bytes_of(line);
            return at / row * self.leading + at % row + depth / PERIOD * self.stride + depth % PERIOD * row;
        }
        line / PERIOD * self.stride + line % PERIOD * row + elem.bytes_of(depth)
    }
}

/// The descriptor of an operand of `2^outer_bits` rows (columns) along dimension `outer` and `2^k_bits` elements along dimension
/// `k` of a tile. `None` if the unit cannot read it from where it is.
pub fn descriptor(
    layout: &SmemLayout,
    elem: Bits,
    (outer, outer_bits): (usize, u32),
    (k, k_bits): (usize, u32),
) -> Option<Descriptor> {
    let shift = elem.log2();
    Exchange::ALL.into_iter().find_map(|exchange| {
        // Addresses count bits.
        let row = row_log2(exchange);
        let column = |d: usize, b: u32| {
            let &col = layout.dim_cols(d).get(b as usize)?;
            Some(apply_bits(exchange, layout.address(col) << shift))
        };
        let is = |d: usize, b: u32, at: u64| column(d, b) == Some(at);
        // Columns that double from a first one on; that one, or what is requested where there is none.
        let doubling = |d: usize, from: u32, to: u32, absent: u64| {
            if from >= to {
                return Some(absent);
            }
            let first = column(d, from)?;
            (from..to).all(|b| is(d, b, first << (b - from))).then_some(first)
        };
        let along = |d: usize, bits: u32| (0..bits).all(|b| is(d, b, 1 << (shift + b)));
        let rows = |d: usize, bits: u32| (0..bits).all(|b| is(d, b, 1 << (row + b)));
        let group = PERIOD << row;
        if layout.pitch().is_some_and(|p| !(p.stride << shift).is_multiple_of(group)) {
            return None;
        }
        if k_bits + shift <= row && along(k, k_bits) && rows(outer, outer_bits.min(3)) {
            let stride = doubling(outer, 3, outer_bits, group)? >> BYTE_LOG2;
            return Some(Descriptor { exchange, transposed: false, leading: 16, stride });
        }
        let inner = (row - shift).min(outer_bits);
        if elem.get() == 16 && along(outer, inner) && rows(k, k_bits.min(3)) {
            let leading = doubling(outer, inner, outer_bits, 16 << BYTE_LOG2)? >> BYTE_LOG2;
            let stride = doubling(k, 3, k_bits, group)? >> BYTE_LOG2;
            return Some(Descriptor { exchange, transposed: true, leading, stride });
        }
        None
    })
}

impl Descriptor {
    /// Whether the unit reads elements of a window of a tile that begins at `start`: those of an instruction, `lines` by `depth` of them, from each of its
    /// places. `along`: the tile's dimension that is the reduction; `extents`: of the window, (lines, depth).
    #[must_use]
    pub fn reads_window(
        &self,
        layout: &SmemLayout,
        elem: Bits,
        along: usize,
        start: [u64; 2],
        (extents, [lines, depth]): ([u64; 2], [u64; 2]),
    ) -> bool {
        let plain = |line: u64, inner: u64| {
            let at = if along == 1 { [line, inner] } else { [inner, line] };
            plain_offset(layout, elem, self.exchange, &[start[0] + at[0], start[1] + at[1]])
        };
        let instruction = |line: u64, inner: u64| {
            let first = plain(line, inner);
            let read = |x: u64, y: u64| plain(line + x, inner + y) == first + self.plain(elem, x, y);
            (0..lines.min(extents[0] - line)).all(|x| read(x, 0) && read(x, depth - 1))
                && (0..depth).all(|y| read(0, y))
        };
        // Bits of the address within a period exchange pieces. So a window begins with one, and within a row only as the steps of a reduction do.
        let inside = plain(0, 0) % (PERIOD * self.exchange.row_bytes());
        let within_row = !self.transposed && inside < self.exchange.row_bytes();
        let aligned = inside == 0 || within_row && inside.is_multiple_of(elem.bytes_of(depth));
        let starts = (0..extents[0]).step_by(lines as usize);
        aligned
            && starts
                .into_iter()
                .all(|line| (0..extents[1]).step_by(depth as usize).all(|inner| instruction(line, inner)))
    }
}

/// The plain byte offset of an element, which a descriptor's address counts.
pub fn plain_offset(layout: &SmemLayout, elem: Bits, exchange: Exchange, coords: &[u64]) -> u64 {
    exchange.apply(elem.byte_at(layout.offset(coords)))
}
