//! The layout of a register tile.
//!
//! It numbers the elements of a tile in column-major order (dimension 0 fastest). In a tile of extents `2^d0 x 2^d1`,
//! the coordinate in dimension 0 is in the low `d0` bits of the linear index. [`RegLayout`] maps a hardware position to
//! an element, [`super::SmemLayout`] an element to an address. Their composition gives the address that each thread
//! accesses, and every proof starts from it.

use super::convert::{cute_to_f2, f2_to_cute};
use super::cute::{CuteLayout, LayoutError};
use super::f2::{F2Map, MAX_BITS, mask};

/// Where the elements of a register tile live.
///
/// Value bits (register index within a thread) and thread bits (lane bits 0 to 4, then warp bits)
/// each contribute to the column-major linear index of an element. A zero thread column is a broadcast:
/// threads that differ in that bit hold the same element.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct RegLayout {
    value: F2Map,
    thread: F2Map,
}

impl RegLayout {
    /// The layout with these columns; `None` if one does not fit `out_bits`, or more than 63 bits.
    pub fn new(value: Vec<u64>, thread: Vec<u64>, out_bits: u32) -> Option<RegLayout> {
        if value.len() + thread.len() > MAX_BITS as usize {
            return None;
        }
        Some(RegLayout { value: F2Map::new(value, out_bits)?, thread: F2Map::new(thread, out_bits)? })
    }

    /// Value bits to linear-index bits.
    pub fn value(&self) -> &F2Map {
        &self.value
    }

    /// Thread bits to linear-index bits.
    pub fn thread(&self) -> &F2Map {
        &self.thread
    }

    /// log2 of the elements a thread holds.
    pub fn value_bits(&self) -> u32 {
        self.value.in_bits()
    }

    /// log2 of the number of threads.
    pub fn thread_bits(&self) -> u32 {
        self.thread.in_bits()
    }

    /// log2 of the number of elements of the tile.
    pub fn out_bits(&self) -> u32 {
        self.value.out_bits()
    }

    /// Contribution of value bit `i`; zero past the last.
    pub fn value_col(&self, i: u32) -> u64 {
        self.value.col(i)
    }

    /// Contribution of thread bit `i`; zero past the last.
    pub fn thread_col(&self, i: u32) -> u64 {
        self.thread.col(i)
    }

    /// Linear index of the element in register `value` of `thread`.
    pub fn at(&self, thread: u64, value: u64) -> u64 {
        self.thread.apply(thread) ^ self.value.apply(value)
    }

    /// [`RegLayout::at`] split into one coordinate per dimension of `2^dim_bits[i]`.
    pub fn coords(&self, thread: u64, value: u64, dim_bits: &[u32]) -> Vec<u64> {
        split_coords(self.at(thread, value), dim_bits)
    }

    /// The map of all inputs, thread bits low and value bits above them.
    pub fn map(&self) -> F2Map {
        self.thread.concat_inputs(&self.value).expect("both halves share out_bits within 63 bits")
    }

    /// The layout in which a tile of extents `2^small[i]`, each that of this tile or 1, is repeated to this tile's extents
    /// `2^dim_bits[i]`: a thread holds the elements that its elements here are combined with, each once. `None` if the
    /// extents do not fit.
    pub fn repeated(&self, dim_bits: &[u32], small: &[u32]) -> Option<RegLayout> {
        let value = self.value.cols().iter().map(|&c| drop_dims(c, dim_bits, small)).collect::<Option<Vec<u64>>>()?;
        let thread = self.thread.cols().iter().map(|&c| drop_dims(c, dim_bits, small)).collect::<Option<_>>()?;
        RegLayout::new(value.into_iter().filter(|&c| c != 0).collect(), thread, small.iter().sum())
    }

    /// The layout of a tile along dimension `dim` of this one alone: [`RegLayout::repeated`] along all others.
    pub fn alone(&self, dim_bits: &[u32], dim: usize) -> Option<RegLayout> {
        let own: Vec<u32> = dim_bits.iter().enumerate().map(|(d, &bits)| if d == dim { bits } else { 0 }).collect();
        self.repeated(dim_bits, &own)
    }

    /// The layout of the window of extents `2^bits[i]` that starts at `start[i]` of this tile of extents `2^dim_bits[i]`: with it the registers, value indices here, of those
    /// there. `None` if the window divides what threads divide, or does not fit. Where it does not start at a multiple of its extent, a thread must have all elements along
    /// that dimension.
    pub fn window(&self, dim_bits: &[u32], start: &[u64], bits: &[u32]) -> Option<(RegLayout, Vec<usize>)> {
        if start.len() != dim_bits.len() || bits.len() != dim_bits.len() {
            return None;
        }
        let (mut inside, mut first, mut base) = (0u64, 0u64, 0);
        // Dimensions along which elements of the window differ in other bits than those of their places in it: where these begin, and where the window does.
        let mut shifted: Vec<(u32, u32, u64)> = Vec::new();
        for ((&all, &at), &part) in dim_bits.iter().zip(start).zip(bits) {
            let fits = part <= all && at.checked_add(1 << part).is_some_and(|end| end <= 1 << all);
            if !fits {
                return None;
            }
            if at & mask(part) == 0 {
                first |= at << base;
            } else if self.owns(base, all) {
                shifted.push((base, all, at));
            } else {
                return None;
            }
            inside |= mask(part) << base;
            base += all;
        }
        // Columns of the window, without the bits that others have in between.
        let narrowed = |column: u64| {
            let (mut out, mut from, mut to) = (0, 0, 0);
            for (&all, &part) in dim_bits.iter().zip(bits) {
                out |= (column >> from & mask(part)) << to;
                from += all;
                to += part;
            }
            out
        };
        let within = |c: u64| c & !inside == 0;
        if !self.thread.cols().iter().all(|&c| within(c)) {
            return None;
        }
        let (kept, chosen): (Vec<u32>, Vec<u32>) = (0..self.value_bits()).partition(|&i| within(self.value_col(i)));
        if chosen.iter().any(|&i| self.value_col(i) & inside != 0) {
            return None;
        }
        let spread = |x: usize, bits: &[u32]| bits.iter().enumerate().fold(0usize, |a, (i, &b)| a | (x >> i & 1) << b);
        let fixed = (0..1usize << chosen.len()).map(|x| spread(x, &chosen)).find(|&v| self.at(0, v as u64) == first)?;
        let moved = |register: usize| {
            let element = self.at(0, register as u64);
            let apart = shifted.iter().fold(element, |e, &(base, all, at)| {
                let own = e >> base & mask(all);
                e & !(mask(all) << base) | (own + at) << base
            });
            // Bits along these dimensions are columns of their own.
            (0..self.value_bits())
                .filter(|&i| (apart ^ element) & self.value_col(i) != 0)
                .fold(register, |r, i| r ^ 1 << i)
        };
        let registers = (0..1usize << kept.len()).map(|x| moved(fixed | spread(x, &kept))).collect();
        let value = kept.iter().map(|&i| narrowed(self.value_col(i))).collect();
        let thread = self.thread.cols().iter().map(|&c| narrowed(c)).collect();
        Some((RegLayout::new(value, thread, bits.iter().sum())?, registers))
    }

    /// Whether a thread has all elements along a dimension whose bits are these of an element, each bit in a column of its own.
    pub fn owns(&self, first: u32, bits: u32) -> bool {
        let along = mask(bits) << first;
        let apart = self.value.cols().iter().all(|&c| c & along == 0 || c.is_power_of_two());
        let found = self.value.cols().iter().fold(0, |all, &c| all | c & along);
        apart && found == along && self.thread.cols().iter().all(|&c| c & along == 0)
    }

    /// The layout of a tile of extents `2^dim_bits[i]` of which this layout, of extents `2^bits[i]`, is that of every
    /// [`window`](RegLayout::window): a thread has the windows one after the other. `None` if the extents do not fit.
    pub fn of_windows(&self, bits: &[u32], dim_bits: &[u32]) -> Option<RegLayout> {
        let fits = bits.len() == dim_bits.len() && bits.iter().zip(dim_bits).all(|(part, all)| part <= all);
        if !fits || bits.iter().sum::<u32>() != self.out_bits() {
            return None;
        }
        let widened = |column: &u64| {
            let (mut out, mut from, mut to) = (0, 0, 0);
            for (&part, &all) in bits.iter().zip(dim_bits) {
                out |= (column >> from & mask(part)) << to;
                from += part;
                to += all;
            }
            out
        };
        let mut value: Vec<u64> = self.value.cols().iter().map(widened).collect();
        let mut base = 0;
        for (&part, &all) in bits.iter().zip(dim_bits) {
            value.extend((part..all).map(|bit| 1u64 << (base + bit)));
            base += all;
        }
        RegLayout::new(value, self.thread.cols().iter().map(widened).collect(), base)
    }

    /// The layout of the same elements of a tile of two dimensions, the first of extent `2^first`, seen transposed.
    pub fn transposed(&self, first: u32) -> Option<RegLayout> {
        let second = self.out_bits().checked_sub(first)?;
        let flipped = |column: &u64| column >> first | (column & mask(first)) << second;
        let [value, thread] = [&self.value, &self.thread].map(|map| map.cols().iter().map(flipped).collect());
        RegLayout::new(value, thread, self.out_bits())
    }

    /// The layout of the same elements of a tile of extents `2^bits[i]`, whose dimension `d` is then dimension `order[d]`. `None` if these are
    /// not its dimensions.
    pub fn permuted(&self, bits: &[u32], order: &[u32]) -> Option<RegLayout> {
        if bits.iter().sum::<u32>() != self.out_bits() || bits.len() != order.len() {
            return None;
        }
        let base = |axis: u32| bits[..axis as usize].iter().sum::<u32>();
        // Which bit of the operand's index each bit of the result's is.
        let from: Vec<u32> = order.iter().flat_map(|&axis| base(axis)..base(axis) + bits[axis as usize]).collect();
        let moved =
            |column: &u64| from.iter().enumerate().fold(0u64, |all, (to, from)| all | (column >> from & 1) << to);
        let [value, thread] = [&self.value, &self.thread].map(|map| map.cols().iter().map(moved).collect());
        RegLayout::new(value, thread, self.out_bits())
    }

    /// The layout of the same elements, in row-major order, of a tile of extents `2^to[i]` for this one of `2^from[i]`. `None` if these are not as many.
    pub fn reshaped(&self, from: &[u32], to: &[u32]) -> Option<RegLayout> {
        if from.iter().sum::<u32>() != self.out_bits() || to.iter().sum::<u32>() != self.out_bits() {
            return None;
        }
        // Where each bit of the row-major number of an element is in its column-major one.
        let places = |bits: &[u32]| {
            let mut found: Vec<u32> = Vec::new();
            for d in (0..bits.len()).rev() {
                let base: u32 = bits[..d].iter().sum();
                found.extend(base..base + bits[d]);
            }
            found
        };
        let (old, new) = (places(from), places(to));
        let moved =
            |column: &u64| old.iter().zip(&new).fold(0u64, |all, (&from, &to)| all | (column >> from & 1) << to);
        let [value, thread] = [&self.value, &self.thread].map(|map| map.cols().iter().map(moved).collect());
        RegLayout::new(value, thread, self.out_bits())
    }

    /// Whether every element of the tile is held by some thread.
    pub fn covers_tile(&self) -> bool {
        self.map().is_surjective()
    }

    /// Whether some element is held more than once.
    pub fn is_replicated(&self) -> bool {
        !self.map().is_injective()
    }

    /// Whether the registers of one thread hold different elements.
    pub fn is_injective_per_thread(&self) -> bool {
        self.value.is_injective()
    }

    /// From a rank-2 CuTe layout `(threads, values):(..)` over the tile's linear index.
    ///
    /// The tile has as many bits as the largest index needs.
    ///
    /// # Errors
    /// If the rank is not 2 or the layout is not F2-linear.
    pub fn from_cute(layout: &CuteLayout) -> Result<RegLayout, LayoutError> {
        let (Some(thr), Some(_), 2) = (layout.mode(0), layout.mode(1), layout.rank()) else {
            return Err(LayoutError::new(format!(
                "a register layout has two modes, (threads, values); {layout} has {}",
                layout.rank()
            )));
        };
        let map = cute_to_f2(layout)?;
        let n = thr.size().trailing_zeros();
        let value = map.select_inputs(n..map.in_bits());
        Ok(RegLayout { value, thread: map.select_inputs(0..n) })
    }

    /// The CuTe form `(threads, values):(..)`, if it exists and [`RegLayout::from_cute`] returns
    /// exactly this layout.
    pub fn to_cute(&self) -> Option<CuteLayout> {
        let map = self.map();
        let (swizzle, layout) = f2_to_cute(&map, &[self.thread_bits(), self.value_bits()])?;
        let exact = swizzle.is_none() && Self::from_cute(&layout).as_ref() == Ok(self);
        exact.then_some(layout)
    }
}

/// The column-major index of the element of a tile of extents `2^small[i]` that is repeated at `index` of one of extents
/// `2^dim_bits[i]`: dimensions of extent 1 have no bits. `None` if the extents do not fit.
pub fn drop_dims(index: u64, dim_bits: &[u32], small: &[u32]) -> Option<u64> {
    if dim_bits.len() != small.len() {
        return None;
    }
    let (mut from, mut to, mut out) = (0, 0, 0);
    for (&bits, &kept) in dim_bits.iter().zip(small) {
        if kept != 0 && kept != bits {
            return None;
        }
        out |= (index >> from & mask(kept)) << to;
        from += bits;
        to += kept;
    }
    Some(out)
}

/// A column-major linear index as one coordinate per dimension.
fn split_coords(index: u64, dim_bits: &[u32]) -> Vec<u64> {
    let mut rest = index;
    let mut out = Vec::with_capacity(dim_bits.len());
    for &bits in dim_bits {
        out.push(rest & mask(bits));
        rest = rest.checked_shr(bits).unwrap_or(0);
    }
    out
}
