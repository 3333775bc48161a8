//! Windows of memory in lowering: the parts of their addresses, and the groups of elements of an access.

use super::dims::Dims;
use super::ranged_ints::Int;
use super::tile::{Filled, Held, Tile};
use crate::inst::{Operand, Reg};
use tilec_ir::bits::Bits;
use tilec_ir::entities::Value;
use tilec_ir::layout::{RegLayout, SmemLayout};
use tilec_ir::space::Space;
use tilec_ir::target::WARP;
use tilec_ir::typing::ResolvedView;

/// Bytes of an aligned word in unaligned accesses.
pub(super) const WORD: i64 = 16;

/// A window of a tensor, as one thread accesses it.
pub(super) struct GlobalWindow {
    pub(super) view: ResolvedView,
    /// Pointers to the thread's first element in each block, by the block bits of the register coordinates
    /// ([`WindowDim::blocks`]).
    pub(super) pointers: Vec<(Vec<u64>, Reg)>,
    /// Per kept dimension, in window order.
    pub(super) dims: Vec<WindowDim>,
    /// Bytes of an element; 1 for 4-bit elements, whose pointers count half bytes.
    pub(super) bytes: i64,
    pub(super) halves: bool,
    /// Pointers for register coordinates along run-time strides, in order of creation; each is derived from the pointer
    /// of its block.
    pub(super) chain: Vec<(Vec<u64>, Vec<u64>, Reg)>,
    /// Pointers are rounded down to multiples of [`WORD`]. Rows of a thread must be multiples of it apart.
    pub(super) rounded: bool,
    /// The bytes by which the last pointer was rounded down.
    pub(super) shift: Option<Reg>,
}

impl GlobalWindow {
    /// Whether all lanes of a warp access the same elements of a tile; a single number is not a tile.
    pub(super) fn is_warp_uniform(&self) -> bool {
        let same = |d: &WindowDim| d.rows.is_none() && d.cols.iter().take(WARP.ilog2() as usize).all(|&bits| bits == 0);
        !self.dims.is_empty() && self.dims.iter().all(same)
    }
}

pub(super) struct WindowDim {
    /// The tensor's dimension.
    pub(super) dim: usize,
    /// Stride in elements; for several modes, that of the innermost.
    pub(super) stride: Int,
    /// Coordinate bits that are block numbers. Within a block the stride holds, and each bit belongs to threads or to
    /// registers. 0: one block.
    pub(super) blocks: u64,
    /// Index of the thread's first element along the dimension.
    pub(super) first: Int,
    /// The coordinate bits that each bit of the thread's index sets.
    pub(super) cols: Vec<u64>,
    /// Coordinate bits the thread part can set.
    pub(super) reach: u64,
    pub(super) thread: Option<Reg>,
    pub(super) start: Int,
    /// Exclusive upper bound, and whether it is checked.
    pub(super) limit: Int,
    pub(super) checked: bool,
    pub(super) bits: u32,
    pub(super) shift: u32,
    /// Indices of gathered elements instead of those from `start` on; each register coordinate is a block, unless each element has its
    /// own index.
    pub(super) rows: Option<Rows>,
}

impl WindowDim {
    /// Whether each element has its own index along the dimension.
    pub(super) fn is_by_element(&self) -> bool {
        self.rows.as_ref().is_some_and(|rows| rows.by_element)
    }
}

/// The indices of a thread's elements along a dimension.
pub(super) struct Rows {
    /// The register coordinates on which they depend: bits of the index of an element in the window.
    pub(super) by: u64,
    /// The indices, by these coordinates.
    pub(super) indices: Vec<(u64, Int)>,
    /// Each element has its own: it is added to the place of the element with index 0 along the dimension.
    pub(super) by_element: bool,
}

impl Rows {
    /// The index of the element at `place` in the window, as the coordinates of a thread's registers have it.
    pub(super) fn of(&self, place: u64) -> Int {
        let own = self.indices.iter().find(|(c, _)| *c == place & self.by);
        own.expect("bug: a thread holds no index of an element that it moves").1
    }
}

/// A run-time loop that is being built.
pub(super) struct LoopState {
    pub(super) var: Value,
    /// Depth of the loop's frame.
    pub(super) depth: usize,
    pub(super) start: Int,
    pub(super) step: i64,
    /// Whether the variable advances by the step: numbers from a counter do not.
    pub(super) steady: bool,
    /// Pointers that move with the loop: key, register, bytes per iteration.
    pub(super) induced: Vec<(String, Reg, Operand)>,
}

/// Addresses of one window.
pub(super) struct SharedWindow {
    pub(super) root: Option<Reg>,
    pub(super) thread: Option<Reg>,
    pub(super) slot: Option<Reg>,
    /// Address bits that the thread part can set.
    pub(super) reach: u64,
    /// Byte contribution of each value bit.
    pub(super) value_cols: Vec<u64>,
    /// For 4-bit elements, the half of the byte.
    pub(super) half: Half,
    /// Byte contribution of the window's start.
    pub(super) base: u64,
    /// Where the buffer is.
    pub(super) offset: u64,
    pub(super) panels: Panels,
    pub(super) xored: Vec<(u64, Reg)>,
    /// Log2 extents of the window.
    pub(super) bits: Vec<u32>,
    /// The size of an element.
    pub(super) size: Bits,
    /// Dimensions with an unaligned start: coordinates are added with carries, not combined by a linear map of the
    /// window's bits.
    pub(super) carried: Vec<AddedDim>,
    /// Addresses already computed in windows with such dimensions, by register coordinates along them and the XORed
    /// constant.
    pub(super) added: Vec<(Vec<u64>, u64, Reg)>,
}

/// A dimension of a buffer whose coordinates are added up, because they share no fixed bits with the rest of an address.
pub(super) struct AddedDim {
    /// The dimension of the window.
    pub(super) dim: usize,
    pub(super) coordinate: Coordinate,
    /// What each value bit contributes to the window's part of the coordinate.
    pub(super) value_cols: Vec<u64>,
    /// The address bits of each bit of a coordinate in the buffer.
    pub(super) places: Vec<u64>,
}

/// A coordinate in a buffer.
pub(super) enum Coordinate {
    /// A window that starts at no multiple of its extent: where it starts, and the thread's part of the coordinate in the
    /// window.
    Unaligned { start: Int, thread: Int },
    /// The elements are gathered or scattered along the dimension.
    Indices(Rows),
}

impl AddedDim {
    /// The part of the coordinate in the window that register index `v` determines, or the place of its index.
    pub(super) fn own(&self, v: usize) -> u64 {
        self.value_cols.iter().enumerate().filter(|(i, _)| v >> i & 1 == 1).fold(0, |own, (_, col)| own ^ col)
    }
}

/// The half of a byte that a 4-bit element has: the thread's part, and the contributions of the window's start and the
/// value bits.
pub(super) struct Half {
    pub(super) thread: Int,
    pub(super) base: u64,
    pub(super) value_cols: Vec<u64>,
}

impl SharedWindow {
    /// Log2 extents of the window.
    pub(super) fn bits(&self) -> &[u32] {
        &self.bits
    }
}

/// Panels of a buffer at a distance in bytes that is no power of two.
#[derive(Copy, Clone)]
pub(super) struct Panels {
    /// Address bits that are panel numbers; 0 if all addresses are linear.
    pub(super) counted: u64,
    pub(super) stride: u64,
}

impl Panels {
    pub(super) fn of(smem: &SmemLayout, elem: Bits) -> Panels {
        let bytes = |count: u64| elem.byte_at(count);
        let pitch = smem.pitch().map(|p| Panels { counted: !(bytes(1 << p.bit) - 1), stride: bytes(p.stride) });
        pitch.unwrap_or(Panels { counted: 0, stride: 0 })
    }

    /// The contribution of columns of places inside a panel.
    pub(super) fn inside(&self, columns: &[u64]) -> Vec<u64> {
        columns.iter().map(|c| c & !self.counted).collect()
    }

    /// The contribution of columns of places to the panel number.
    pub(super) fn numbers(&self, columns: &[u64]) -> Vec<u64> {
        columns.iter().map(|c| self.number(c & self.counted)).collect()
    }

    pub(super) fn number(&self, place: u64) -> u64 {
        place.checked_shr(self.counted.trailing_zeros()).unwrap_or(0)
    }

    /// The byte offset of the panel of a place.
    pub(super) fn bytes(&self, place: u64) -> u64 {
        self.number(place) * self.stride
    }
}

/// The place of a column-major window index; `kept`: the buffer's dimension of each of the window's.
pub(super) fn place_of(smem: &SmemLayout, index: u64, window: &[u32], kept: &[usize]) -> u64 {
    let mut coords = vec![0; smem.dim_bits().len()];
    let mut rest = index;
    for (&bits, &d) in window.iter().zip(kept) {
        coords[d] = rest & ((1u64 << bits) - 1);
        rest >>= bits;
    }
    smem.place(&coords)
}

/// Byte contributions of the five lane bits, for the report.
pub(super) fn lane_bytes(
    smem: &SmemLayout,
    layout: &RegLayout,
    window: &[u32],
    kept: &[usize],
    elem: Bits,
) -> Vec<u64> {
    (0..5).map(|i| elem.byte_with(place_of(smem, layout.thread_col(i), window, kept))).collect()
}

/// One side of a copy in memory, ready for access.
pub(super) enum Window {
    Global(GlobalWindow),
    Shared(SharedWindow),
    Fragment(FragmentWindow),
}

/// A tile of scratch memory in the order of registers: for each access, the registers of all threads are adjacent.
pub(super) struct FragmentWindow {
    /// The address of the thread's first registers.
    pub(super) base: Reg,
    /// The first element of each access, and the distance of accesses in bytes.
    pub(super) firsts: Vec<usize>,
    pub(super) step: i64,
}

/// A memory window with the groups of register indices that one access covers.
pub(super) struct Access {
    pub(super) window: Window,
    pub(super) space: Space,
    pub(super) layout: RegLayout,
    pub(super) dim_bits: Dims,
    pub(super) groups: Vec<Vec<usize>>,
    pub(super) preds: Vec<Option<Reg>>,
    /// The elements that a thread holds: no access is made for groups of such elements.
    pub(super) held: Held,
    /// The value of elements outside the bounds; `None`: zero.
    pub(super) fill: Option<Filled>,
}

impl Access {
    /// An access to global memory whose predicates the caller computes.
    pub(super) fn global(w: GlobalWindow, tile: &Tile, groups: Vec<Vec<usize>>) -> Access {
        let (layout, dim_bits) = (tile.layout.clone(), tile.dim_bits.clone());
        Access {
            window: Window::Global(w),
            space: Space::Gmem,
            layout,
            dim_bits,
            groups,
            preds: Vec::new(),
            held: Held::new(),
            fill: None,
        }
    }

    /// The predicate of each group.
    pub(super) fn predicates(&self) -> Vec<Option<Reg>> {
        self.preds.clone()
    }
}
