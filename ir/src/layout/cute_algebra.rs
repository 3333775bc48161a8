//! Algebra of CuTe layouts: coalesce, composition, complement, division, product, inverses.
//!
//! Layouts are treated as mixed-radix digit maps. Where CuTe states divisibility conditions the
//! conditions are checked and a failure says which one; what is returned holds at every coordinate.

use super::cute::{CuteLayout, IntTuple, LayoutError, small};

/// An `(extent, stride)` pair.
type Mode = (u64, u64);

impl CuteLayout {
    /// The same function of the linear index with the fewest modes: unit extents dropped, adjacent
    /// modes merged where the second continues the first. At most one level deep.
    pub fn coalesce(&self) -> CuteLayout {
        flat(&merged(&self.leaves()))
    }

    /// [`CuteLayout::coalesce`] of every top-level mode on its own; the rank stays.
    pub fn coalesce_modes(&self) -> CuteLayout {
        if self.depth() == 0 {
            return self.clone();
        }
        let modes: Vec<CuteLayout> = (0..self.rank()).filter_map(|i| self.mode(i)).map(|m| m.coalesce()).collect();
        CuteLayout::concat(&modes).expect("coalescing keeps sizes")
    }

    /// The layout `r` with `r(c) = self(inner(c))` for every coordinate `c` of `inner`, nested at
    /// least as `inner` is.
    ///
    /// # Errors
    /// `inner` reaches past the size of `self`. Or an extent or stride does not divide the other where a mode
    /// of `inner` crosses modes of `self`. Or modes of `inner` together carry across one.
    pub fn composition(&self, inner: &CuteLayout) -> Result<CuteLayout, LayoutError> {
        if inner.cosize() > self.size() {
            return Err(LayoutError::new(format!(
                "{inner} reaches index {}, past the size {} of {self}",
                inner.cosize() - 1,
                self.size()
            )));
        }
        let outer = merged(&self.leaves());
        // `reach[j]`: sum over the leaves of `inner` of the largest digit each puts in mode `j`.
        let mut reach = vec![0u64; outer.len()];
        let result = compose_tuple(&outer, inner, &mut reach)?;
        for (r, (s, d)) in reach.iter().zip(&outer) {
            if r >= s {
                return Err(LayoutError::new(format!("modes of {inner} together carry out of mode {s}:{d} of {self}")));
            }
        }
        Ok(result)
    }

    /// The layout that enumerates what `self` leaves out of `0..cosize`: the two together are one to one,
    /// and cover `0..cosize` (rounded up to what `self` repeats over).
    ///
    /// # Errors
    /// If `self` has a broadcast mode, or a stride is not a multiple of what is below it.
    pub fn complement(&self, cosize: u64) -> Result<CuteLayout, LayoutError> {
        let mut modes: Vec<Mode> = self.leaves().into_iter().filter(|m| m.0 > 1).collect();
        modes.sort_by_key(|m| m.1);
        let mut out = Vec::new();
        let mut current = 1u64;
        for (s, d) in modes {
            if d == 0 || d % current != 0 {
                return Err(LayoutError::new(format!(
                    "{self} has no complement: stride {d} is not a positive multiple of {current}"
                )));
            }
            out.push((d / current, current));
            current = small(s.checked_mul(d))?;
        }
        out.push((cosize.max(1).div_ceil(current), current));
        CuteLayout::from_pairs(&merged(&out))
    }

    /// `self` split by `tile`: mode 0 is `self` within a tile, mode 1 walks the tiles.
    ///
    /// # Errors
    /// If `tile` has no complement in the size of `self`, or a composition does not exist.
    pub fn logical_divide(&self, tile: &CuteLayout) -> Result<CuteLayout, LayoutError> {
        let rest = tile.complement(self.size())?;
        self.composition(&CuteLayout::concat(&[tile.clone(), rest])?)
    }

    /// `self` repeated as `tiler` arranges: mode 0 is `self`, mode 1 places the copies side by side.
    ///
    /// # Errors
    /// If `self` has no complement large enough, or a composition does not exist.
    pub fn logical_product(&self, tiler: &CuteLayout) -> Result<CuteLayout, LayoutError> {
        let room = small(self.size().checked_mul(tiler.cosize()))?;
        let copies = self.complement(room)?.composition(tiler)?;
        CuteLayout::concat(&[self.clone(), copies])
    }

    /// The largest `r` with `self(r(i)) = i` for all `i` below its size (1 if no stride is 1).
    pub fn right_inverse(&self) -> CuteLayout {
        let modes = merged(&self.leaves());
        // `(extent, stride, linear index of the mode's unit step)`, smallest stride first.
        let mut below = 1u64;
        let mut steps: Vec<(u64, u64, u64)> = Vec::new();
        for (s, d) in modes {
            steps.push((s, d, below));
            below *= s;
        }
        steps.sort_by_key(|m| m.1);
        let mut out: Vec<Mode> = Vec::new();
        let mut current = 1;
        for (s, d, step) in steps {
            if s > 1 && d == current {
                out.push((s, step));
                current *= s;
            }
        }
        flat(&merged(&out))
    }

    /// The `l` with `l(self(i)) = i` for all `i`; its size covers every offset of `self`.
    ///
    /// # Errors
    /// If `self` is not one to one, or leaves gaps that no layout skips.
    pub fn left_inverse(&self) -> Result<CuteLayout, LayoutError> {
        let filled = CuteLayout::concat(&[self.clone(), self.complement(1)?])?;
        Ok(filled.right_inverse())
    }
}

/// Drops unit extents and merges a mode that continues the one before; never empty.
fn merged(modes: &[Mode]) -> Vec<Mode> {
    let mut out: Vec<Mode> = Vec::new();
    for &(s, d) in modes.iter().filter(|m| m.0 > 1) {
        match out.last_mut() {
            Some((s0, d0)) if d0.checked_mul(*s0) == Some(d) => *s0 *= s,
            _ => out.push((s, d)),
        }
    }
    if out.is_empty() {
        out.push((1, 0));
    }
    out
}

/// The one-level layout of modes that came from a valid layout.
fn flat(modes: &[Mode]) -> CuteLayout {
    CuteLayout::from_pairs(modes).expect("regrouping the modes of a layout keeps it valid")
}

/// Composes leaf by leaf, keeping the nesting of `inner`.
fn compose_tuple(outer: &[Mode], inner: &CuteLayout, reach: &mut [u64]) -> Result<CuteLayout, LayoutError> {
    match (inner.shape(), inner.stride()) {
        (IntTuple::Int(s), IntTuple::Int(d)) => compose_leaf(outer, (*s, *d), reach),
        _ => {
            let modes = (0..inner.rank())
                .filter_map(|i| inner.mode(i))
                .map(|m| compose_tuple(outer, &m, reach))
                .collect::<Result<Vec<_>, _>>()?;
            CuteLayout::concat(&modes)
        }
    }
}

/// `outer` after the single mode `s:d`, walking the digits of `outer` from the lowest.
fn compose_leaf(outer: &[Mode], (s, d): Mode, reach: &mut [u64]) -> Result<CuteLayout, LayoutError> {
    let (mut extent, mut step) = (s, d);
    let mut out: Vec<Mode> = Vec::new();
    for (j, &(os, od)) in outer.iter().enumerate() {
        if extent == 1 || step == 0 {
            break;
        }
        let fits = (extent - 1).checked_mul(step).is_some_and(|last| last < os);
        if !fits && step % os == 0 {
            step /= os;
            continue;
        }
        // Steps taken inside this digit before it wraps.
        let taken = if fits { extent } else { os / step.min(os) };
        if !fits && (os % step != 0 || extent % taken != 0) {
            return Err(LayoutError::new(format!(
                "mode {s}:{d} does not divide mode {os}:{od}: {step} steps and extent {extent} against {os}"
            )));
        }
        reach[j] = reach[j].saturating_add((taken - 1) * step);
        if taken > 1 {
            out.push((taken, small(step.checked_mul(od))?));
        }
        extent /= taken;
        step = 1;
    }
    if extent > 1 {
        // Only a broadcast is left: the caller has checked that the range ends within `outer`.
        out.push((extent, 0));
    }
    CuteLayout::from_pairs(&merged(&out))
}
