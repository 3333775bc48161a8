//! The layout of a tile in shared memory.
//!
//! Within a panel it is a linear map over bits. Panels may have any distance ([`Pitch`]): they form the strided outer
//! loop for an extent that is not a power of two, so that no memory is reserved for missing elements.

use super::convert::{f2_to_cute, swizzled_to_f2};
use super::cute::{CuteLayout, LayoutError};
use super::f2::{F2Map, MAX_BITS, bit_len, mask};
use super::swizzle::Swizzle;

/// Where an element of a shared-memory tile lives: coordinate bits (column-major, dimension 0 first)
/// to bits of a *place*, and the place to an element offset.
///
/// A place is the offset itself, unless the layout has a [`Pitch`]: then its upper bits count panels.
///
/// Invariant: the map has as many output bits as its columns need, and `dim_bits` add up to its
/// input bits.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct SmemLayout {
    map: F2Map,
    dim_bits: Vec<u32>,
    pitch: Option<Pitch>,
}

/// Panels at a distance that is not a power of two, the one mode of a layout that is not linear over bits. For 176 rows
/// of 128 bytes, the next panel begins 22528 bytes further.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
pub struct Pitch {
    /// Bits of a place from this one on count panels.
    pub bit: u32,
    /// Elements from one panel to the next; fewer than `2^bit`.
    pub stride: u64,
}

impl SmemLayout {
    /// The layout with this map; `None` if `dim_bits` is empty or does not add up to its input bits.
    pub fn new(map: F2Map, dim_bits: Vec<u32>) -> Option<SmemLayout> {
        let total = dim_bits.iter().try_fold(0u32, |a, &b| a.checked_add(b))?;
        if total != map.in_bits() || dim_bits.is_empty() {
            return None;
        }
        Some(SmemLayout { map: F2Map::from_cols(map.cols().to_vec())?, dim_bits, pitch: None })
    }

    /// The same places with panels at a distance of their own. `None` if there is one already, or columns mix panels with what is inside them.
    pub fn with_pitch(self, pitch: Pitch) -> Option<SmemLayout> {
        let fits = pitch.bit < MAX_BITS && (1..1 << pitch.bit).contains(&pitch.stride);
        let panels = self.offset_bits().checked_sub(pitch.bit).filter(|&panels| panels > 0)?;
        let small = pitch.stride.checked_shl(panels).is_some_and(|n| n >> panels == pitch.stride);
        let apart = |c: &u64| c >> pitch.bit == 0 || c & mask(pitch.bit) == 0;
        let pure = self.pitch.is_none() && self.map.cols().iter().all(apart);
        (fits && small && pure).then_some(SmemLayout { pitch: Some(pitch), ..self })
    }

    /// The distance of panels, if it is not a power of two.
    pub fn pitch(&self) -> Option<Pitch> {
        self.pitch
    }

    /// The offset of a place.
    pub fn address(&self, place: u64) -> u64 {
        match self.pitch {
            Some(Pitch { bit, stride }) => (place & mask(bit)) + (place >> bit) * stride,
            None => place,
        }
    }

    /// Dense storage with the dimensions in the given order, fastest first.
    ///
    /// `None` if `order` is not a permutation of the dimensions or there are more than 63 bits.
    pub fn natural(dim_bits: &[u32], order: &[usize]) -> Option<SmemLayout> {
        if order.len() != dim_bits.len() {
            return None;
        }
        let mut starts = vec![None; dim_bits.len()];
        let mut next = 0u32;
        for &d in order {
            let slot = starts.get_mut(d)?;
            if slot.replace(next).is_some() {
                return None;
            }
            next = next.checked_add(dim_bits[d]).filter(|&n| n <= MAX_BITS)?;
        }
        let mut cols = Vec::new();
        for (start, &bits) in starts.iter().zip(dim_bits) {
            let start = (*start)?;
            cols.extend((0..bits).map(|i| 1u64 << (start + i)));
        }
        SmemLayout::new(F2Map::new(cols, next)?, dim_bits.to_vec())
    }

    /// Column-major linear-index bits to bits of a place.
    pub fn map(&self) -> &F2Map {
        &self.map
    }

    /// log2 of each extent.
    pub fn dim_bits(&self) -> &[u32] {
        &self.dim_bits
    }

    /// The extents.
    pub fn dims(&self) -> Vec<u64> {
        self.dim_bits.iter().map(|b| 1 << b).collect()
    }

    /// log2 of the places.
    pub fn offset_bits(&self) -> u32 {
        self.map.out_bits()
    }

    /// Element offset of the element at `coords`. Coordinates wrap at the extents; missing ones are 0.
    pub fn offset(&self, coords: &[u64]) -> u64 {
        self.address(self.place(coords))
    }

    /// The place of the element at `coords`, as [`SmemLayout::offset`]: linear in bits of the coordinates.
    pub fn place(&self, coords: &[u64]) -> u64 {
        let (mut index, mut at) = (0, 0);
        for (&c, &bits) in coords.iter().zip(&self.dim_bits) {
            index |= (c & mask(bits)).checked_shl(at).unwrap_or(0);
            at += bits;
        }
        self.map.apply(index)
    }

    /// Columns of places of dimension `dim`, one per coordinate bit; empty for a dimension there is not.
    pub fn dim_cols(&self, dim: usize) -> &[u64] {
        let Some(&bits) = self.dim_bits.get(dim) else {
            return &[];
        };
        let start = self.dim_bits[..dim].iter().sum::<u32>() as usize;
        &self.map.cols()[start..start + bits as usize]
    }

    /// Whether elements and the places `0..2^n` correspond one to one.
    pub fn is_bijective(&self) -> bool {
        self.map.is_bijective()
    }

    /// From a CuTe layout with one top-level mode per dimension, its offsets optionally swizzled. One mode may have a stride that is not a power of two: it
    /// counts panels.
    ///
    /// # Errors
    /// If the layout is not F2-linear but for that mode.
    pub fn from_cute(swizzle: Option<Swizzle>, layout: &CuteLayout) -> Result<SmemLayout, LayoutError> {
        let linear = |layout: &CuteLayout| {
            let map = swizzled_to_f2(swizzle, layout)?;
            let modes = (0..layout.rank()).filter_map(|i| layout.mode(i));
            let dim_bits = modes.map(|m| m.size().trailing_zeros()).collect();
            SmemLayout::new(map, dim_bits).ok_or_else(|| LayoutError::new("layout has no dimensions"))
        };
        let whole = linear(layout);
        // An addition with carries is not linear over bits, unless the mode that causes them counts panels.
        let (Err(e), Some((pitch, places))) = (&whole, pitch_of(layout)) else { return whole };
        if let Some(pitched) = linear(&places).ok().and_then(|l| l.with_pitch(pitch)) {
            return Ok(pitched);
        }
        // Rows with some elements between them are the habit of CUDA against bank conflicts.
        let bits = layout.map_strides(&|s| if s == pitch.stride { 1 << (bit_len(s) - 1) } else { s });
        match bits.filter(|bits| linear(bits).is_ok()) {
            Some(bits) => Err(LayoutError {
                message: format!(
                    "the stride {} of {layout} is that of padded rows, and strides inside of a tile are powers of two",
                    pitch.stride
                ),
                instead: Some(format!(
                    "conflicts are avoided by a swizzle, and not by padding: leave `layout` out, and the pass `swizzle` chooses one, or write one after `{bits}`"
                )),
            }),
            None => Err(e.clone()),
        }
    }

    /// The canonical CuTe form, if there is one with at most one swizzle.
    pub fn to_cute(&self) -> Option<(Option<Swizzle>, CuteLayout)> {
        let (swizzle, places) = f2_to_cute(&self.map, &self.dim_bits)?;
        let Some(pitch) = self.pitch else { return Some((swizzle, places)) };
        let panels = |stride: u64| stride >> pitch.bit;
        let layout = places.map_strides(&|s| if panels(s) > 0 { panels(s) * pitch.stride } else { s })?;
        let exact = SmemLayout::from_cute(swizzle, &layout).as_ref() == Ok(self);
        exact.then_some((swizzle, layout))
    }

    /// The layout with offset bit `slot_bit` replaced by its xor with offset bit `from_bit`: an elementary
    /// F2 matrix after this layout. `None` if the bits are equal or past 62, or panels have a pitch.
    pub fn xor_term(&self, slot_bit: u32, from_bit: u32) -> Option<SmemLayout> {
        if self.pitch.is_some() || slot_bit == from_bit || slot_bit >= MAX_BITS || from_bit >= MAX_BITS {
            return None;
        }
        let cols = self.map.cols().iter().map(|c| c ^ (c >> from_bit & 1) << slot_bit).collect();
        SmemLayout::new(F2Map::from_cols(cols)?, self.dim_bits.clone())
    }
}

/// The one mode of a layout whose stride is not a power of two, as the distance of panels after everything else, and the layout of places.
fn pitch_of(layout: &CuteLayout) -> Option<(Pitch, CuteLayout)> {
    let mut odd = layout.leaves().into_iter().filter(|&(s, d)| s > 1 && d > 0 && !d.is_power_of_two());
    let ((_, stride), None) = (odd.next()?, odd.next()) else { return None };
    let last = |(s, d): (u64, u64)| (s - 1) * d;
    let others = layout.leaves().into_iter().filter(|&(_, d)| d != stride).map(last).fold(0, |a, b| a | b);
    let bit = bit_len(others);
    let places = layout.map_strides(&|s| if s == stride { 1 << bit } else { s })?;
    Some((Pitch { bit, stride }, places))
}
