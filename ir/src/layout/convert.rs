//! Conversions between CuTe notation and F2-linear maps, both exact.
//!
//! A CuTe layout with power-of-two extents sends index bit `i` of a mode of stride `d` to `d << i` and *adds* the
//! contributions. It is F2-linear exactly when no addition carries, that is when no two columns share a set bit: then
//! sum and xor agree everywhere. The other way, a map is `shape:stride` exactly when its columns are disjoint. It is
//! `swizzle ∘ shape:stride` exactly when they are disjoint after undoing the swizzle, which is its own inverse.

use super::cute::{CuteLayout, IntTuple, LayoutError};
use super::f2::{F2Map, bit_len};
use super::swizzle::Swizzle;

/// The map from linear-index bits to offset bits; as many output bits as the largest offset needs.
///
/// # Errors
/// If an extent is not a power of two or two bits of the index contribute to the same offset bit.
pub fn cute_to_f2(layout: &CuteLayout) -> Result<F2Map, LayoutError> {
    let mut cols: Vec<u64> = Vec::new();
    let mut used = 0u64;
    for (s, d) in layout.leaves() {
        if !s.is_power_of_two() {
            return Err(LayoutError::new(format!("extent {s} of {layout} is not a power of two")));
        }
        for i in 0..s.trailing_zeros() {
            // No overflow: `(s - 1) * d` fits an i64, hence so does `d << i` for `i < log2(s)`.
            let col = d << i;
            if used & col != 0 {
                return Err(LayoutError::new(format!(
                    "additions carry in {layout}: mode {s}:{d} overlaps an offset bit already in use"
                )));
            }
            used |= col;
            cols.push(col);
        }
    }
    F2Map::new(cols, bit_len(used)).ok_or_else(|| LayoutError::new("layout has more than 63 bits"))
}

/// The map of `layout` followed by an optional swizzle of its offsets.
///
/// # Errors
/// As [`cute_to_f2`].
pub fn swizzled_to_f2(swizzle: Option<Swizzle>, layout: &CuteLayout) -> Result<F2Map, LayoutError> {
    let map = cute_to_f2(layout)?;
    let Some(s) = swizzle else { return Ok(map) };
    let cols = map.cols().iter().map(|&c| s.apply(c)).collect();
    F2Map::from_cols(cols).ok_or_else(|| LayoutError::new("swizzle reaches past 63 bits"))
}

/// The CuTe form of `map` with one top-level mode per entry of `split` (the input bits of each mode,
/// lowest first), and the swizzle it needs if any.
///
/// Canonical: each mode is coalesced, a mode of no bits is `1:0`, a swizzle is used only if there is no
/// plain form, and then the first in order of `(B, M, S)`. `None` if `split` does not add up to the
/// input bits, or no single swizzle with a shape and stride has exactly this map.
pub fn f2_to_cute(map: &F2Map, split: &[u32]) -> Option<(Option<Swizzle>, CuteLayout)> {
    let total = split.iter().try_fold(0u32, |a, &b| a.checked_add(b))?;
    if total != map.in_bits() || split.is_empty() {
        return None;
    }
    if disjoint(map.cols().iter().copied()) {
        return Some((None, modes(map.cols(), split)?));
    }
    let bits = map.out_bits();
    for b in 1..=bits / 2 {
        for m in 0..=bits - 2 * b {
            for s in b..=bits - b - m {
                let swizzle = Swizzle::new(b, m, s as i32)?;
                if disjoint(map.cols().iter().map(|&c| swizzle.apply(c))) {
                    let cols: Vec<u64> = map.cols().iter().map(|&c| swizzle.apply(c)).collect();
                    return Some((Some(swizzle), modes(&cols, split)?));
                }
            }
        }
    }
    None
}

/// Whether no two of the columns share a set bit.
pub(crate) fn disjoint(cols: impl Iterator<Item = u64>) -> bool {
    let mut used = 0;
    for c in cols {
        if used & c != 0 {
            return false;
        }
        used |= c;
    }
    true
}

/// `shape:stride` with the given disjoint columns, a coalesced mode per entry of `split`.
fn modes(cols: &[u64], split: &[u32]) -> Option<CuteLayout> {
    let mut rest = cols;
    let mut out = Vec::new();
    for &bits in split {
        let (mode, after) = rest.split_at_checked(bits as usize)?;
        out.push(coalesced(mode)?);
        rest = after;
    }
    let (shape, stride) = out.into_iter().map(|l| (l.shape().clone(), l.stride().clone())).unzip();
    CuteLayout::new(IntTuple::Tuple(shape), IntTuple::Tuple(stride)).ok()
}

/// One mode of the given columns: runs that double merge into one extent.
fn coalesced(cols: &[u64]) -> Option<CuteLayout> {
    let mut pairs: Vec<(u64, u64)> = Vec::new();
    for &c in cols {
        match pairs.last_mut() {
            Some((s, d)) if d.checked_mul(*s) == Some(c) => *s *= 2,
            _ => pairs.push((2, c)),
        }
    }
    if pairs.is_empty() {
        pairs.push((1, 0));
    }
    CuteLayout::from_pairs(&pairs).ok()
}
