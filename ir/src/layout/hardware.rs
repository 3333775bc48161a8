//! Shared-memory layouts that the tensor memory accelerator and `wgmma` know: rows of 32, 64 or 128 bytes, whose pieces of 16 bytes
//! are exchanged by bits of the row. The accelerator also writes rows of up to 256 elements one after the other, as they are.
//!
//! Both units compute a *plain* address and exchange bits of it afterwards, so a layout is one of theirs if undoing the
//! exchange leaves columns of the form that the unit adds up. Everything here is such a comparison of columns; no layout is
//! recognised by its text.
//!
//! Facts: PTX ISA 9.7.15.5.1 (matrix descriptors), 5.5.7 (swizzling modes of tensor maps). Addresses count from a multiple of
//! 1024 bytes, the longest period of a mode.

use super::F2Map;
use super::extents::{is_whole, shape_bits};
use super::smem::{Pitch, SmemLayout};

/// How pieces of 16 bytes are exchanged.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Exchange {
    /// Rows of 32 bytes.
    Bytes32,
    /// Rows of 64 bytes.
    Bytes64,
    /// Rows of 128 bytes.
    Bytes128,
    /// Rows of any multiple of 16 bytes, which stay as they are. Products of warpgroups do not read them.
    Plain,
}

/// Address bits of the piece of 16 bytes, and of the row that exchanges it, start here.
const PIECE_BIT: u32 = 4;
const ROW_BIT: u32 = 7;
/// Bits of the row that exchange pieces at most.
const ROW_BITS: u32 = 3;

impl Exchange {
    /// Those with rows of one length, widest first.
    pub const ALL: [Exchange; 3] = [Exchange::Bytes128, Exchange::Bytes64, Exchange::Bytes32];

    /// Bytes of a row; of plain ones the least.
    pub fn row_bytes(self) -> u64 {
        match self {
            Exchange::Plain => 16,
            Exchange::Bytes32 => 32,
            Exchange::Bytes64 => 64,
            Exchange::Bytes128 => 128,
        }
    }

    /// The name of the launch contract.
    pub fn name(self) -> &'static str {
        match self {
            Exchange::Bytes32 => "32B",
            Exchange::Bytes64 => "64B",
            Exchange::Bytes128 => "128B",
            Exchange::Plain => "none",
        }
    }

    /// The mode called `name`.
    pub fn from_name(name: &str) -> Option<Exchange> {
        Exchange::ALL.into_iter().chain([Exchange::Plain]).find(|x| x.name() == name)
    }

    /// Bits 62 and 63 of a matrix descriptor.
    pub fn descriptor_code(self) -> u64 {
        match self {
            Exchange::Bytes128 => 1,
            Exchange::Bytes64 => 2,
            Exchange::Bytes32 => 3,
            Exchange::Plain => 0,
        }
    }

    /// From a plain byte address to where the byte is, and back: it is its own inverse.
    pub fn apply(self, address: u64) -> u64 {
        if self == Exchange::Plain {
            return address;
        }
        let pieces = self.row_bytes() / 16 - 1;
        address ^ (address >> (ROW_BIT - PIECE_BIT) & (pieces << PIECE_BIT))
    }
}

/// The longest rows of panels for `bytes` along the contiguous dimension. `exact`: that make them up, as those of a tile that is stored must; else
/// the last panel may reach beyond the tile, for a copy takes as long for a short row as for a long one. `None` if they are shorter than 32 bytes.
pub fn rows(bytes: u64, exact: bool) -> Option<Exchange> {
    let longest = bytes.checked_next_power_of_two()?;
    let fits = |x: &Exchange| if exact { bytes.is_multiple_of(x.row_bytes()) } else { x.row_bytes() <= longest };
    Exchange::ALL.into_iter().find(fits)
}

/// The layout of a tile in panels of the longest rows along `contiguous` ([`rows`]): what both units move without conflicts. A tile of fewer rows than
/// the eight after which an exchange repeats has plain rows, where the accelerator takes them. Panels of other than a
/// power of two of rows follow one another as they end. Those of a tile that is stored (`exact`), whose addresses threads compute, are cut into
/// pieces of as many rows as divide them instead, which follow one another as the panels do: products could not read them. `None` if rows are
/// shorter than 32 bytes, there would be gaps, or panels would begin at no multiples of [`PANEL_BYTES`].
pub fn panels(shape: &[u64], contiguous: usize, elem_bytes: u32, exact: bool) -> Option<SmemLayout> {
    if let Some(plain) = plain_rows(shape, contiguous, elem_bytes) {
        return Some(plain);
    }
    let whole = panels_of(shape, contiguous, elem_bytes, exact, Odd::Linear);
    whole.or_else(|| panels_of(shape, contiguous, elem_bytes, exact, if exact { Odd::Cut } else { Odd::Pitch }))
}

/// The layout of few rows one after the other.
fn plain_rows(shape: &[u64], contiguous: usize, elem_bytes: u32) -> Option<SmemLayout> {
    let others = shape.iter().enumerate().filter(|&(d, _)| d != contiguous);
    let few = others.map(|(_, &n)| n).product::<u64>() < 1 << ROW_BITS;
    let row = shape.get(contiguous)?;
    let whole = is_whole(shape) && (row * u64::from(elem_bytes)).is_multiple_of(16) && *row <= 1 << BOX_BITS;
    let mut order = vec![contiguous];
    order.extend((0..shape.len()).rev().filter(|&d| d != contiguous));
    let layout = SmemLayout::natural(&shape_bits(shape), &order)?;
    (few && whole).then_some(layout)
}

/// What becomes of several panels of rows whose number is no power of two.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Odd {
    /// There are none.
    Linear,
    /// Pieces of as many rows as divide them.
    Cut,
    /// Panels that follow one another as they end.
    Pitch,
}

fn panels_of(shape: &[u64], contiguous: usize, elem_bytes: u32, exact: bool, odd: Odd) -> Option<SmemLayout> {
    let elem = elem_bytes.ilog2();
    let dim_bits = &shape_bits(shape)[..];
    let extent = *dim_bits.get(contiguous)?;
    let exchange = rows(shape[contiguous] * u64::from(elem_bytes), exact)?;
    let inner = exchange.row_bytes().ilog2() - elem;
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
            cols.push(exchange.apply(1u64 << (at as u32 + elem)) >> elem);
        }
    }
    let layout = SmemLayout::new(F2Map::from_cols(cols)?, dim_bits.to_vec())?;
    let row = exchange.row_bytes() / u64::from(elem_bytes);
    let layout = match odd {
        Odd::Linear | Odd::Cut => layout,
        Odd::Pitch => {
            let rows = others.iter().map(|&d| shape[d]).product::<u64>();
            let bit = inner + others.iter().map(|&d| dim_bits[d]).sum::<u32>();
            layout
                .with_pitch(Pitch { bit, stride: rows * row })
                .filter(|_| ((rows * row) << elem).is_multiple_of(PANEL_BYTES))?
        }
    };
    let whole = shape.iter().enumerate().map(|(d, &n)| if d == contiguous { n.next_multiple_of(row) } else { n });
    (layout.span(shape)? <= whole.product()).then_some(layout)
}

/// Rows in which the exchange of pieces repeats itself: panels and boxes begin at multiples of them.
pub const PERIOD: u64 = 8;

/// Bytes of which panels begin at multiples: the longest period of an exchange.
pub const PANEL_BYTES: u64 = PERIOD * 128;

/// What one copy of the tensor memory accelerator moves, and where the copies of a tile are.
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
pub fn boxes(layout: &SmemLayout, shape: &[u64], elem_bytes: u32) -> Option<Boxes> {
    // Of few rows several tiles lie in the period of an exchange, which would treat them differently.
    let exchanged = || Exchange::ALL.into_iter().find_map(|x| boxes_with(layout, shape, elem_bytes.ilog2(), x));
    plain_box(layout, shape, elem_bytes).or_else(exchanged)
}

/// The box of a tile in plain rows.
fn plain_box(layout: &SmemLayout, shape: &[u64], elem_bytes: u32) -> Option<Boxes> {
    let (contiguous, plain) = (0..shape.len()).find_map(|d| Some((d, plain_rows(shape, d, elem_bytes)?)))?;
    if plain != *layout {
        return None;
    }
    let mut dims = vec![contiguous];
    dims.extend((0..shape.len()).rev().filter(|&d| d != contiguous));
    let extents = dims.iter().map(|&d| shape[d]).collect();
    Some(Boxes { exchange: Exchange::Plain, dims, extents, places: vec![(vec![0; shape.len()], 0)], beyond: false })
}

fn boxes_with(layout: &SmemLayout, shape: &[u64], elem: u32, exchange: Exchange) -> Option<Boxes> {
    let rank = layout.dim_bits().len();
    let row = exchange.row_bytes().ilog2();
    let plain = |d: usize, b: usize| exchange.apply(layout.dim_cols(d)[b] << elem);
    let has = |d: usize, b: usize, at: u32| b < layout.dim_bits()[d] as usize && plain(d, b) == 1u64 << at;
    let contiguous = (0..rank).find(|&d| has(d, 0, elem))?;
    let inner = (row - elem) as usize;
    if !(0..inner).all(|b| has(contiguous, b, elem + b as u32)) {
        return None;
    }
    let (mut dims, mut bits) = (vec![contiguous], vec![inner as u32]);
    let mut at = row;
    while let Some(d) = (0..rank).find(|d| !dims.contains(d) && has(*d, 0, at)) {
        let run = (0..layout.dim_bits()[d].min(BOX_BITS)).take_while(|&b| has(d, b as usize, at + b)).count() as u32;
        dims.push(d);
        bits.push(run);
        at += run;
        // What follows in memory is another box.
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
            // A box starts a row of its own, and does not change how rows are exchanged.
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
        *offset = layout.address(*offset >> elem) << elem;
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

/// Bytes of memory that a tile of these extents takes: those of whole boxes, where some reach beyond it. More than memory has are as many as a number holds.
pub fn tile_bytes(layout: Option<&SmemLayout>, shape: &[u64], elem_bytes: u32) -> u64 {
    let layout = layout.filter(|_| !is_whole(shape));
    let filled = layout.and_then(|l| boxes(l, shape, elem_bytes)).map(|b| b.bytes(elem_bytes));
    let span = layout.and_then(|l| l.span(shape)).map(|n| n * u64::from(elem_bytes));
    filled.max(span).unwrap_or_else(|| shape.iter().fold(u64::from(elem_bytes), |bytes, &n| bytes.saturating_mul(n)))
}

impl Boxes {
    /// Bytes that all of them bring, which is what they take in memory.
    pub fn bytes(&self, elem_bytes: u32) -> u64 {
        self.places.len() as u64 * self.extents.iter().product::<u64>() * u64::from(elem_bytes)
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
}

/// The descriptor of an operand of `2^outer_bits` rows (columns) along dimension `outer` and `2^k_bits` elements along dimension
/// `k` of a tile. `None` if the unit cannot read it from where it is.
pub fn descriptor(
    layout: &SmemLayout,
    elem_bytes: u32,
    (outer, outer_bits): (usize, u32),
    (k, k_bits): (usize, u32),
) -> Option<Descriptor> {
    let elem = elem_bytes.ilog2();
    Exchange::ALL.into_iter().find_map(|exchange| {
        let row = exchange.row_bytes().ilog2();
        let column = |d: usize, b: u32| {
            let &col = layout.dim_cols(d).get(b as usize)?;
            Some(exchange.apply(layout.address(col) << elem))
        };
        let is = |d: usize, b: u32, at: u64| column(d, b) == Some(at);
        // Columns that double from a first one on; that one, or what is asked for where there is none.
        let doubling = |d: usize, from: u32, to: u32, absent: u64| {
            if from >= to {
                return Some(absent);
            }
            let first = column(d, from)?;
            (from..to).all(|b| is(d, b, first << (b - from))).then_some(first)
        };
        let along = |d: usize, bits: u32| (0..bits).all(|b| is(d, b, 1 << (elem + b)));
        let rows = |d: usize, bits: u32| (0..bits).all(|b| is(d, b, 1 << (row + b)));
        let group = PERIOD * exchange.row_bytes();
        if layout.pitch().is_some_and(|p| !(p.stride << elem).is_multiple_of(group)) {
            return None;
        }
        if k_bits + elem <= row && along(k, k_bits) && rows(outer, outer_bits.min(3)) {
            let stride = doubling(outer, 3, outer_bits, group)?;
            return Some(Descriptor { exchange, transposed: false, leading: 16, stride });
        }
        let inner = (row - elem).min(outer_bits);
        if elem_bytes == 2 && along(outer, inner) && rows(k, k_bits.min(3)) {
            let leading = doubling(outer, inner, outer_bits, 16)?;
            let stride = doubling(k, 3, k_bits, group)?;
            return Some(Descriptor { exchange, transposed: true, leading, stride });
        }
        None
    })
}

/// The plain byte offset of an element, which a descriptor's address counts.
pub fn plain_offset(layout: &SmemLayout, elem_bytes: u32, exchange: Exchange, coords: &[u64]) -> u64 {
    exchange.apply(layout.offset(coords) * u64::from(elem_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tile of 16-bit elements whose rows of `columns` are contiguous.
    fn tile(rows: u32, columns: u32) -> SmemLayout {
        panels(&[1 << rows, 1 << columns], 1, 2, true).expect("a layout")
    }

    /// Element by element: the box's bytes lie where the accelerator puts them.
    #[test]
    fn boxes_cover_the_tile_where_the_unit_writes() {
        for (rows, columns, contiguous, bytes) in [
            (128, 64, 1, 2),
            (64, 256, 1, 2),
            (64, 256, 0, 2),
            (128, 16, 1, 2),
            (32, 32, 0, 4),
            (256, 128, 1, 1),
            (8, 64, 1, 2),
            (64, 160, 1, 2),
            (64, 176, 1, 2),
            (160, 64, 1, 2),
            (192, 32, 0, 4),
            (72, 32, 1, 4),
            (64, 48, 1, 2),
        ] {
            for exact in [true, false] {
                assert_boxes([rows, columns], contiguous, bytes, exact);
            }
        }
        // Panels of 192 rows or columns, and of 96, in pieces of 64, and of 32.
        for (rows, columns, contiguous, bytes) in
            [(192, 128, 1, 2), (192, 256, 1, 4), (128, 192, 0, 2), (96, 256, 1, 1)]
        {
            assert_boxes([rows, columns], contiguous, bytes, true);
            assert_boxes([rows, columns], contiguous, bytes, false);
        }
        // Panels of whatever multiple of eight rows.
        for (rows, columns, contiguous, bytes) in
            [(176, 128, 1, 2), (80, 80, 1, 2), (96, 96, 1, 2), (160, 256, 1, 2), (192, 176, 0, 2), (176, 192, 1, 1)]
        {
            assert_boxes([rows, columns], contiguous, bytes, false);
        }
    }

    fn assert_boxes(shape: [u64; 2], contiguous: usize, bytes: u32, exact: bool) {
        let layout = panels(&shape, contiguous, bytes, exact).expect("a layout");
        let boxes = boxes(&layout, &shape, bytes).expect("boxes");
        let inside = |coords: &[u64]| coords.iter().zip(&shape).all(|(at, n)| at < n);
        let mut seen = 0;
        for (start, offset) in &boxes.places {
            for i in 0..boxes.extents.iter().product::<u64>() {
                let (mut coords, mut rest) = (start.clone(), i);
                for (&d, &extent) in boxes.dims.iter().zip(&boxes.extents) {
                    coords[d] += rest % extent;
                    rest /= extent;
                }
                let written = boxes.exchange.apply(offset + i * u64::from(bytes));
                assert_eq!(layout.offset(&coords) * u64::from(bytes), written, "{coords:?}");
                seen += u64::from(inside(&coords));
                assert!(inside(&coords) || boxes.beyond, "{coords:?}");
                assert!(written < boxes.bytes(bytes), "{coords:?}");
            }
        }
        assert_eq!(seen, shape.iter().product::<u64>());
        let row = shape[contiguous] * u64::from(bytes);
        assert_eq!(boxes.beyond, !exact && !row.is_multiple_of(row.next_power_of_two().min(128)));
        assert!(boxes.bytes(bytes) >= layout.span(&shape).expect("its extents") * u64::from(bytes));
    }

    /// Few rows lie one after the other, since an exchange repeats after eight.
    #[test]
    fn few_rows_are_plain() {
        for (shape, contiguous) in [([64, 1], 0), ([1, 256], 1), ([32, 1], 0), ([4, 64], 1)] {
            assert_boxes(shape, contiguous, 4, false);
            let layout = panels(&shape, contiguous, 4, false).expect("a layout");
            assert_eq!(boxes(&layout, &shape, 4).map(|b| (b.exchange, b.places.len())), Some((Exchange::Plain, 1)));
            assert_eq!(descriptor(&layout, 4, (contiguous, 5), (1 - contiguous, 0)), None);
        }
        // Eight rows are exchanged; a box has 256 elements of a row at most.
        let eight = panels(&[8, 64], 1, 4, false).expect("a layout");
        assert_eq!(boxes(&eight, &[8, 64], 4).map(|b| b.exchange), Some(Exchange::Bytes128));
        assert!(panels(&[1, 512], 1, 4, false).is_none_or(|l| boxes(&l, &[1, 512], 4).is_none()));
    }

    /// Element by element: the operand lies where the manual's canonical layouts say.
    #[test]
    fn descriptors_reach_the_elements() {
        // Along the reduction: 128 rows, 64 deep.
        let a = tile(7, 6);
        let d = descriptor(&a, 2, (0, 6), (1, 4)).expect("a descriptor");
        assert_eq!((d.transposed, d.stride, d.exchange), (false, 1024, Exchange::Bytes128));
        for (m, k) in (0..64).flat_map(|m| (0..16).map(move |k| (m, k))) {
            let start = plain_offset(&a, 2, d.exchange, &[64, 32]);
            let at = d.exchange.apply(start + m % 8 * 128 + m / 8 * d.stride + k * 2);
            assert_eq!(a.offset(&[64 + m, 32 + k]) * 2, at);
        }
        // Across it: 64 deep, 256 columns in four panels.
        let b = tile(6, 8);
        let d = descriptor(&b, 2, (1, 8), (0, 4)).expect("a descriptor");
        assert_eq!((d.transposed, d.leading, d.stride), (true, 64 * 128, 1024));
        for (k, n) in (0..16).flat_map(|k| (0..256).map(move |n| (k, n))) {
            let start = plain_offset(&b, 2, d.exchange, &[16, 0]);
            let at = start + n % 64 * 2 + n / 64 * d.leading + k % 8 * 128 + k / 8 * d.stride;
            assert_eq!(b.offset(&[16 + k, n]) * 2, d.exchange.apply(at));
        }
        // Bytes are not transposed.
        let bytes = panels(&[64, 256], 1, 1, true).expect("a layout");
        assert_eq!(descriptor(&bytes, 1, (1, 8), (0, 5)), None);
    }

    /// Element by element: an operand in panels of any number of rows lies where the descriptors of its steps say.
    #[test]
    fn descriptors_reach_panels_of_any_rows() {
        // Along the reduction, and across it.
        for (rows, columns, bytes, k_bits) in [
            (176, 128, 2, 4),
            (160, 256, 2, 4),
            (80, 80, 2, 4),
            (96, 96, 2, 4),
            (192, 48, 2, 4),
            (176, 192, 1, 5),
            (160, 64, 2, 4),
        ] {
            for k in [0, 1].into_iter().filter(|&k| k == 1 || bytes == 2) {
                assert_descriptor([rows, columns], k, bytes, k_bits);
            }
        }
        // Panels that do not begin at multiples of the period.
        let odd = super::super::parse_smem_layout("(32,(64,2)):(64,(1,1600)) swizzle<3,3,3>").expect("a layout");
        assert_eq!((descriptor(&odd, 2, (0, 5), (1, 4)), boxes(&odd, &[25, 128], 2)), (None, None));
    }

    /// Rows are contiguous; dimension `k` is the reduction.
    fn assert_descriptor(shape: [u64; 2], k: usize, bytes: u32, k_bits: u32) {
        let layout = panels(&shape, 1, bytes, false).expect("a layout");
        let outer = shape[1 - k];
        let d =
            descriptor(&layout, bytes, (1 - k, super::super::extent_bits(outer)), (k, k_bits)).expect("a descriptor");
        assert_eq!(d.transposed, k == 0);
        let at = |o: u64, i: u64| if k == 1 { [o, i] } else { [i, o] };
        let (row, bytes) = (d.exchange.row_bytes(), u64::from(bytes));
        for step in (0..shape[k]).step_by(1 << k_bits) {
            let start = plain_offset(&layout, bytes as u32, d.exchange, &at(0, step));
            for (o, i) in (0..outer).flat_map(|o| (0..1 << k_bits).map(move |i| (o, i))) {
                // Facts: PTX ISA 9.7.15.5.1, canonical layouts.
                let inside = match d.transposed {
                    false => o % 8 * row + o / 8 * d.stride + i * bytes,
                    true => {
                        let line = row / bytes;
                        o % line * bytes + o / line * d.leading + i % 8 * row + i / 8 * d.stride
                    }
                };
                assert_eq!(
                    layout.offset(&at(o, step + i)) * bytes,
                    d.exchange.apply(start + inside),
                    "{shape:?} {o} {i}"
                );
            }
        }
    }

    #[test]
    fn other_layouts_are_not_theirs() {
        let natural = SmemLayout::natural(&[7, 6], &[0, 1]).expect("a layout");
        assert_eq!((boxes(&natural, &[128, 64], 2), descriptor(&natural, 2, (0, 6), (1, 4))), (None, None));
        let cute = super::super::parse_smem_layout("(128,64):(64,1) swizzle<3,3,4>").expect("a layout");
        assert_eq!(descriptor(&cute, 2, (0, 6), (1, 4)), None);
    }
}
