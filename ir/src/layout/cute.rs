//! CuTe layouts: nested `shape:stride`, a function from coordinates to offsets.
//!
//! A layout pairs an integer tuple of extents with a congruent tuple of strides. A linear index walks
//! the leaves with the first fastest (colexicographic order); the offset is the sum of coordinate
//! times stride. Algebra lives in `cute_algebra`, text in `cute_text`.
//!
//! Invariants, checked once in [`CuteLayout::new`]: shape and stride are congruent, tuples are not
//! empty, nesting is at most [`MAX_DEPTH`], extents are at least 1, and size and cosize fit an `i64`.
//! Evaluation therefore cannot overflow.

use std::fmt;

/// Deepest nesting of an integer tuple.
pub const MAX_DEPTH: usize = 32;

/// A non-negative integer or a nested tuple of them.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub enum IntTuple {
    /// A leaf.
    Int(u64),
    /// A tuple of one or more parts.
    Tuple(Vec<IntTuple>),
}

impl IntTuple {
    /// The leaves, left to right.
    pub fn leaves(&self) -> Vec<u64> {
        let mut out = Vec::new();
        self.push_leaves(&mut out);
        out
    }

    fn push_leaves(&self, out: &mut Vec<u64>) {
        match self {
            IntTuple::Int(x) => out.push(*x),
            IntTuple::Tuple(parts) => parts.iter().for_each(|p| p.push_leaves(out)),
        }
    }

    /// A tuple of the same form.
    fn map(&self, of: &impl Fn(u64) -> u64) -> IntTuple {
        match self {
            IntTuple::Int(x) => IntTuple::Int(of(*x)),
            IntTuple::Tuple(parts) => IntTuple::Tuple(parts.iter().map(|p| p.map(of)).collect()),
        }
    }

    /// Nesting depth: 0 for an integer.
    pub fn depth(&self) -> usize {
        match self {
            IntTuple::Int(_) => 0,
            IntTuple::Tuple(parts) => 1 + parts.iter().map(IntTuple::depth).max().unwrap_or(0),
        }
    }

    /// The top-level parts; an integer is its own only part.
    pub fn modes(&self) -> &[IntTuple] {
        match self {
            IntTuple::Int(_) => std::slice::from_ref(self),
            IntTuple::Tuple(parts) => parts,
        }
    }

    fn congruent(&self, other: &IntTuple) -> bool {
        match (self, other) {
            (IntTuple::Int(_), IntTuple::Int(_)) => true,
            (IntTuple::Tuple(a), IntTuple::Tuple(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(x, y)| x.congruent(y))
            }
            _ => false,
        }
    }

    fn has_empty_tuple(&self) -> bool {
        match self {
            IntTuple::Int(_) => false,
            IntTuple::Tuple(parts) => parts.is_empty() || parts.iter().any(IntTuple::has_empty_tuple),
        }
    }
}

impl fmt::Display for IntTuple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IntTuple::Int(x) => write!(f, "{x}"),
            IntTuple::Tuple(parts) => {
                for (i, p) in parts.iter().enumerate() {
                    write!(f, "{}{p}", if i == 0 { "(" } else { "," })?;
                }
                f.write_str(")")
            }
        }
    }
}

/// Why a layout, or an operation on layouts, does not exist: one lower-case sentence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LayoutError {
    /// The reason, in words.
    pub message: String,
    /// The supported spelling, if it is known.
    pub instead: Option<String>,
}

impl LayoutError {
    pub(crate) fn new(message: impl Into<String>) -> LayoutError {
        LayoutError { message: message.into(), instead: None }
    }
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for LayoutError {}

/// A mistake in the text of a layout.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LayoutParseError {
    /// Byte offset into the parsed text.
    pub offset: usize,
    /// What was expected or is wrong, in words.
    pub message: String,
    /// The supported spelling, if it is known.
    pub instead: Option<String>,
    /// Where the text ends, if it reads as a layout and is none.
    pub end: Option<usize>,
}

impl LayoutParseError {
    /// A mistake at a byte.
    pub(crate) fn new(offset: usize, message: impl Into<String>) -> LayoutParseError {
        LayoutParseError { offset, message: message.into(), instead: None, end: None }
    }

    /// Text that reads as a layout, and is none.
    pub(crate) fn no_layout((offset, end): (usize, Option<usize>), e: LayoutError) -> LayoutParseError {
        LayoutParseError { offset, message: e.message, instead: e.instead, end }
    }
}

impl fmt::Display for LayoutParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at byte {})", self.message, self.offset)
    }
}

impl std::error::Error for LayoutParseError {}

/// A layout `shape:stride`.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct CuteLayout {
    shape: IntTuple,
    stride: IntTuple,
}

impl CuteLayout {
    /// The layout `shape:stride`.
    ///
    /// # Errors
    /// If the tuples are not congruent, empty, too deep, an extent is zero, or a size overflows.
    pub fn new(shape: IntTuple, stride: IntTuple) -> Result<CuteLayout, LayoutError> {
        if shape.depth() > MAX_DEPTH || stride.depth() > MAX_DEPTH {
            return Err(LayoutError::new(format!("layout nested deeper than {MAX_DEPTH}")));
        }
        if shape.has_empty_tuple() {
            return Err(LayoutError::new("empty tuple in a layout"));
        }
        if !shape.congruent(&stride) {
            return Err(LayoutError::new(format!("shape {shape} and stride {stride} are not nested alike")));
        }
        let l = CuteLayout { shape, stride };
        let (mut size, mut last) = (1u64, 0u64);
        for (s, d) in l.leaves() {
            if s == 0 {
                return Err(LayoutError::new("extent 0 in a layout"));
            }
            size = small(size.checked_mul(s))?;
            last = small((s - 1).checked_mul(d).and_then(|x| x.checked_add(last)))?;
        }
        small(last.checked_add(1))?;
        Ok(l)
    }

    /// A one-level layout from `(extent, stride)` pairs; a single pair gives an integer mode.
    ///
    /// # Errors
    /// As [`CuteLayout::new`].
    pub fn from_pairs(pairs: &[(u64, u64)]) -> Result<CuteLayout, LayoutError> {
        if let [(s, d)] = pairs {
            return CuteLayout::new(IntTuple::Int(*s), IntTuple::Int(*d));
        }
        let shape = pairs.iter().map(|p| IntTuple::Int(p.0)).collect();
        let stride = pairs.iter().map(|p| IntTuple::Int(p.1)).collect();
        CuteLayout::new(IntTuple::Tuple(shape), IntTuple::Tuple(stride))
    }

    /// The layout whose top-level modes are the given layouts.
    ///
    /// # Errors
    /// As [`CuteLayout::new`].
    pub fn concat(modes: &[CuteLayout]) -> Result<CuteLayout, LayoutError> {
        let shape = modes.iter().map(|m| m.shape.clone()).collect();
        let stride = modes.iter().map(|m| m.stride.clone()).collect();
        CuteLayout::new(IntTuple::Tuple(shape), IntTuple::Tuple(stride))
    }

    /// The extents.
    pub fn shape(&self) -> &IntTuple {
        &self.shape
    }

    /// The strides, nested as the shape.
    pub fn stride(&self) -> &IntTuple {
        &self.stride
    }

    /// `(extent, stride)` of every leaf, fastest first.
    pub fn leaves(&self) -> Vec<(u64, u64)> {
        self.shape.leaves().into_iter().zip(self.stride.leaves()).collect()
    }

    /// The same extents with other strides; `None` if a size overflows.
    pub fn map_strides(&self, of: &impl Fn(u64) -> u64) -> Option<CuteLayout> {
        CuteLayout::new(self.shape.clone(), self.stride.map(of)).ok()
    }

    /// Number of coordinates.
    pub fn size(&self) -> u64 {
        self.shape.leaves().iter().product()
    }

    /// One more than the largest offset.
    pub fn cosize(&self) -> u64 {
        1 + self.leaves().iter().map(|(s, d)| (s - 1) * d).sum::<u64>()
    }

    /// Number of top-level modes; 1 for an integer.
    pub fn rank(&self) -> usize {
        self.shape.modes().len()
    }

    /// Nesting depth; 0 for an integer.
    pub fn depth(&self) -> usize {
        self.shape.depth()
    }

    /// Top-level mode `i` as a layout.
    pub fn mode(&self, i: usize) -> Option<CuteLayout> {
        let shape = self.shape.modes().get(i)?.clone();
        let stride = self.stride.modes().get(i)?.clone();
        Some(CuteLayout { shape, stride })
    }

    /// The offset at linear index `i` (first leaf fastest); `None` at or past the size.
    pub fn at(&self, i: u64) -> Option<u64> {
        let (mut rest, mut offset) = (i, 0);
        for (s, d) in self.leaves() {
            offset += rest % s * d;
            rest /= s;
        }
        (rest == 0).then_some(offset)
    }

    /// The offset at one linear coordinate per top-level mode; `None` if one is out of range.
    pub fn at_coords(&self, coords: &[u64]) -> Option<u64> {
        if coords.len() != self.rank() {
            return None;
        }
        coords.iter().enumerate().map(|(i, &c)| self.mode(i)?.at(c)).sum()
    }

    /// The offset at a nested coordinate; an integer where the shape has a tuple is a linear index
    /// into it. `None` if out of range or nested deeper than the shape.
    pub fn at_coord(&self, coord: &IntTuple) -> Option<u64> {
        match coord {
            IntTuple::Int(i) => self.at(*i),
            IntTuple::Tuple(parts) => {
                let tuple = matches!(self.shape, IntTuple::Tuple(_));
                if !tuple || parts.len() != self.rank() {
                    return None;
                }
                parts.iter().enumerate().map(|(i, c)| self.mode(i)?.at_coord(c)).sum()
            }
        }
    }
}

impl fmt::Display for CuteLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.shape, self.stride)
    }
}

/// The value if it exists and fits an `i64`.
pub(crate) fn small(x: Option<u64>) -> Result<u64, LayoutError> {
    x.filter(|&x| i64::try_from(x).is_ok()).ok_or_else(|| LayoutError::new("layout size overflows 63 bits"))
}
