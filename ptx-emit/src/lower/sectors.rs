//! Sectors of global memory that the lanes of a warp touch with one access.
//!
//! Elements are in *runs*. Along dimensions with a known stride, elements of a run are that far apart. Each coordinate
//! along other dimensions begins another run, which is taken to be aligned to a sector. Of a dimension with several modes, runs are as long as the
//! last one surely is. The start of the window in its
//! sector is used as far as it is known. Otherwise the start with the lowest sector use counts. Lanes past the end of
//! the tile, of the window or of the tensor access nothing.

use super::state::Lower;
use super::windows::{Access, Window};
use std::collections::{BTreeMap, BTreeSet};
use tilec_ir::entities::Value;
use tilec_ir::kernel::{ExprData, ValueDef};
use tilec_ir::progression::progression;
use tilec_ir::target::{SECTOR_BYTES, WARP};
use tilec_ir::types::{Elem, GivenStride};
use tilec_ir::typing::{ResolvedView, ViewDim};

/// The sectors of one access.
pub(super) struct AccessSectors {
    /// Bytes that lanes access, divided by the bytes of the touched sectors.
    pub(super) used: f64,
    /// The same, if runs of dimensions of several modes are as long as the window.
    pub(super) used_of_runs: f64,
    pub(super) sectors: u32,
    /// For each lane, the run and the byte in it at which its access begins; empty: not known.
    pub(super) lanes: Vec<(u64, u64)>,
    /// Adjacent elements of the window are gathered: memory decides where they are.
    pub(super) gathered: bool,
}

/// A dimension of a window.
struct Along {
    shift: u32,
    mask: u64,
    /// Distance of adjacent coordinates in memory, in elements; `None`: each coordinate begins a run.
    stride: Option<i64>,
    /// Coordinates after which another run begins, if a dimension has several modes.
    run: Option<u64>,
    /// Coordinates that some block accesses.
    inside: std::ops::Range<i128>,
}

/// The position of an element: its run, and its index in the run.
type Place = (Vec<u64>, i64);

impl Lower<'_> {
    /// The first access of a full warp.
    pub(super) fn touched(&mut self, view: &ResolvedView, access: &Access, bytes: u32) -> AccessSectors {
        let mut dims = self.along(view, access);
        let sure = self.with_runs(view, access, bytes, &dims);
        if dims.iter().all(|d| d.run.is_none()) {
            return sure;
        }
        dims.iter_mut().for_each(|d| d.run = None);
        AccessSectors { used_of_runs: self.with_runs(view, access, bytes, &dims).used, ..sure }
    }

    /// The same, with runs of these lengths.
    fn with_runs(&mut self, view: &ResolvedView, access: &Access, bytes: u32, dims: &[Along]) -> AccessSectors {
        let used = f64::from(bytes) / f64::from(SECTOR_BYTES);
        let alone = AccessSectors { used, used_of_runs: used, sectors: WARP, lanes: Vec::new(), gathered: false };
        let Some(elem) = self.elem(view.base) else { return alone };
        let Some(first) = access.groups.first() else {
            return AccessSectors { used: 1.0, used_of_runs: 1.0, sectors: 1, ..alone };
        };
        let rows = |d: usize| matches!(view.dims[view.base_dims()[d]], ViewDim::Gather(_));
        let gathered = view.gathers_by_element(self.k)
            || self.contiguous(view).is_some_and(|d| dims[d].stride.is_none() && rows(d));
        let place = |index: u64| -> Option<Place> {
            let (mut run, mut at) = (Vec::new(), 0i64);
            for d in dims {
                let c = index >> d.shift & d.mask;
                if !d.inside.contains(&i128::from(c)) {
                    return None;
                }
                match (d.stride, d.run) {
                    (Some(stride), Some(length)) => {
                        run.push(c / length);
                        at += stride * (c % length) as i64;
                    }
                    (Some(stride), None) => at += stride * c as i64,
                    (None, _) => run.push(c),
                }
            }
            Some((run, at))
        };
        let all: Vec<Vec<Place>> = (0..u64::from(WARP))
            .map(|lane| first.iter().filter_map(|&v| place(access.layout.at(lane, v as u64))).collect())
            .collect();
        let elements: BTreeSet<&Place> = all.iter().flatten().collect();
        let Some(per) = Some(i64::from(elem.per(SECTOR_BYTES))).filter(|_| !elements.is_empty()) else {
            return AccessSectors { used: 1.0, used_of_runs: 1.0, sectors: 0, ..alone };
        };
        let sectors = |start: i64| -> usize {
            let of = |place: &&Place| (place.0.clone(), (place.1 + start).div_euclid(per));
            elements.iter().map(of).collect::<BTreeSet<_>>().len()
        };
        let (first_start, apart) = self.start_in_sector(view, per as u64);
        let starts = (first_start as i64..per).step_by(apart as usize);
        let (start, sectors) = starts
            .map(|start| (start, sectors(start)))
            .max_by_key(|&(start, n)| (n, -start))
            .expect("bug: a residue is less than what it is of");
        let used = elem.size().traffic(elements.len() as f64) / (sectors as f64 * f64::from(SECTOR_BYTES));
        AccessSectors { used, used_of_runs: used, sectors: sectors as u32, lanes: lanes(&all, start, elem), gathered }
    }

    fn along(&self, view: &ResolvedView, access: &Access) -> Vec<Along> {
        let mut shift = 0;
        let mut all = Vec::new();
        let by_element = view.gathers_by_element(self.k);
        for (w, &d) in view.base_dims().iter().enumerate() {
            let bits = access.dim_bits[w];
            let mut inside = 0..i128::from(access.dim_bits.extents()[w]);
            if let Window::Global(window) = &access.window
                && let Some(own) = window.dims.get(w).filter(|own| own.rows.is_none())
            {
                // Bounds that hold for some block, usually the first one.
                inside.start = inside.start.max(-own.start.hi);
                inside.end = inside.end.min(own.limit.hi - own.start.lo);
            }
            let stride = self.fixed_stride(view, d).and_then(|stride| match view.dims[d] {
                ViewDim::Gather(rows) => {
                    let ExprData::Ref(v) = self.k.exprs[rows] else { return None };
                    stride.checked_mul(progression(self.k, v)?.step)
                }
                ViewDim::From { .. } | ViewDim::Fixed(_) => Some(stride),
            });
            // Elements with indices of their own are far apart, and those that these indices name.
            let stride = stride.filter(|_| !by_element);
            let run = if stride.is_none() && !by_element { self.run_of_modes(view, d, 1 << bits) } else { None };
            all.push(Along { shift, mask: (1u64 << bits) - 1, stride: stride.or(run.map(|_| 1)), run, inside });
            shift += bits;
        }
        all
    }

    /// Coordinates of a window that surely are adjacent in memory, along a dimension whose last mode is contiguous: the
    /// greatest power of two up to `most` that divides the mode's extent and the start of the window.
    fn run_of_modes(&self, view: &ResolvedView, d: usize, most: u64) -> Option<u64> {
        let last = self.k.tensor_ty(view.base)?.modes(d)?.last()?;
        if self.k.as_int(last.stride) != Some(1) {
            return None;
        }
        let ViewDim::From { starts, .. } = &view.dims[d] else { return None };
        let none = |_: Value| false;
        let divides = |e| match self.facts.residue(self.k, e, most, &none) {
            (0, n) => n,
            (other, n) => n.min(1 << other.trailing_zeros()),
        };
        Some(starts.iter().map(|&e| divides(e)).fold(divides(last.extent), u64::min))
    }

    /// The stride of a dimension in elements, if it is a constant.
    fn fixed_stride(&self, view: &ResolvedView, d: usize) -> Option<i64> {
        match self.k.tensor_ty(view.base)?.given_stride(d)? {
            GivenStride::Contiguous => Some(1),
            GivenStride::Repeats => Some(0),
            GivenStride::Written(stride) => match stride.strides()[..] {
                [one] => self.k.as_int(one),
                _ => None,
            },
            GivenStride::Leading(_) | GivenStride::Pointer => None,
        }
    }

    /// The start of the window in a sector of `per` elements, as residue and modulus: `(a, m)` means `a` plus a
    /// multiple of `m`.
    fn start_in_sector(&self, view: &ResolvedView, per: u64) -> (u64, u64) {
        let add = |(a, m): (u64, u64), (b, o): (u64, u64)| {
            let common = m.min(o);
            ((a + b) % common, common)
        };
        let times = |(a, m): (u64, u64), by: i64| {
            let by = by.rem_euclid(per as i64) as u64;
            // Both are powers of two, and so is the common divisor.
            let apart = match by {
                0 => per,
                by => (m << by.trailing_zeros()).min(per),
            };
            (a * by % apart, apart)
        };
        let mut at = (0, per);
        for (d, dim) in view.dims.iter().enumerate() {
            let Some(stride) = self.fixed_stride(view, d) else { continue };
            // Rows are taken to begin at multiples of a sector, so sizes are such multiples.
            let sizes = |v: Value| matches!(self.k.values[v].def, ValueDef::Size | ValueDef::Stride);
            let own = |e| self.facts.residue(self.k, e, per, &sizes);
            let start = match dim {
                ViewDim::Fixed(e) => own(*e),
                ViewDim::From { starts, .. } => starts.iter().fold((0, per), |sum, &e| add(sum, own(e))),
                ViewDim::Gather(rows) => {
                    let ExprData::Ref(v) = self.k.exprs[*rows] else { continue };
                    let Some(p) = progression(self.k, v) else { continue };
                    let constant = (p.constant.rem_euclid(per as i64) as u64, per);
                    p.terms.iter().fold(constant, |sum, &(e, by)| add(sum, times(own(e), by)))
                }
            };
            at = add(at, times(start, stride));
        }
        at
    }
}

/// Most sectors in one row of the picture.
const SHOWN: i64 = 32;

/// For each lane the row and the byte in it at which its access begins; a lane that accesses nothing repeats the
/// previous lane's entry. A row is a run, from the first sector that any run touches. A long run takes several rows.
fn lanes(all: &[Vec<Place>], start: i64, elem: Elem) -> Vec<(u64, u64)> {
    let firsts: Vec<Option<&Place>> = all.iter().map(|own| own.iter().min()).collect();
    let begins = firsts.iter().flatten().map(|p| p.1).min().unwrap_or(0);
    let per = i64::from(elem.per(SECTOR_BYTES));
    let origin = (begins + start).div_euclid(per) * per - start;
    let place = |(run, at): &Place| {
        let behind = at - origin;
        ((run.clone(), behind / (SHOWN * per)), (behind % (SHOWN * per)) as u64)
    };
    let places: Vec<_> = firsts.into_iter().map(|first| first.map(place)).collect();
    let mut rows: BTreeMap<_, u64> = places.iter().flatten().map(|(row, _)| (row, 0)).collect();
    rows.values_mut().zip(0..).for_each(|(number, n)| *number = n);
    let mut out: Vec<(u64, u64)> = Vec::new();
    for place in &places {
        let own = place.as_ref().map(|(row, along)| (rows[row], elem.bytes_of(*along)));
        out.extend(own.or_else(|| out.last().copied()));
    }
    out
}
