//! Element types, tile types and where tiles live.

use crate::entities::{Expr, Value};
use crate::layout::{RegLayout, SmemLayout};
use crate::literal::Literal;
use crate::ops::ReduceOp;
pub use tilec_core::elem::{Elem, ElemClass};

/// An element type, or a compile-time parameter that will become one.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ElemRef {
    /// Known.
    Known(Elem),
    /// The value of a compile-time type parameter.
    Param(Value),
}

/// Which dimension is contiguous.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Order {
    /// The last dimension is contiguous.
    Row,
    /// The last but one is contiguous: matrices by columns, in batches too.
    Col,
}

impl Order {
    /// The name of the text form.
    pub fn name(self) -> &'static str {
        match self {
            Order::Row => "row",
            Order::Col => "col",
        }
    }

    /// The contiguous dimension of a tile of `rank` dimensions.
    pub fn contiguous_dim(self, rank: usize) -> usize {
        match self {
            Order::Row => rank.saturating_sub(1),
            Order::Col => rank.saturating_sub(2),
        }
    }

    /// The order of the transposed tile.
    pub fn flipped(self) -> Order {
        match self {
            Order::Row => Order::Col,
            Order::Col => Order::Row,
        }
    }
}

/// An order, or a compile-time parameter that will become one.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum OrderRef {
    /// Known.
    Known(Order),
    /// The value of a compile-time layout parameter.
    Param(Value),
}

/// The maximal number of elements of a tile: more than any shared memory or register file holds.
pub const MAX_ELEMENTS: u64 = 1 << 20;

/// The declared type of a register or shared-memory tile.
#[derive(Clone, PartialEq, Debug)]
pub struct TileTy {
    /// Element type.
    pub elem: ElemRef,
    /// Extents: compile-time expressions; integer literals once specialised. Rank 0 is a scalar.
    pub shape: Vec<Expr>,
    /// For shared memory: the contiguous dimension the natural layout has.
    pub order: Option<Order>,
    /// For registers: which thread holds which element. `None` until decided.
    pub reg_layout: Option<RegLayout>,
    /// For registers: lanes hold partial results of elements, which are not combined yet.
    pub partial: Option<Partial>,
    /// For shared memory: where each element is. `None` until decided.
    pub smem_layout: Option<SmemLayout>,
}

impl TileTy {
    /// A register tile of these extents: compile-time expressions.
    pub fn registers(elem: ElemRef, shape: Vec<Expr>, layout: Option<RegLayout>) -> TileTy {
        TileTy { elem, shape, order: None, reg_layout: layout, partial: None, smem_layout: None }
    }
}

/// A table in constant memory, of one dimension.
#[derive(Clone, PartialEq, Debug)]
pub struct TableTy {
    /// Element type.
    pub elem: ElemRef,
    /// Its elements.
    pub values: Vec<Literal>,
}

/// How lanes hold partial results of the elements of a register tile.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Partial {
    /// The operator that combines them.
    pub op: ReduceOp,
    /// Bits of a lane's number: lanes that differ only in these have partial results of one element. In ascending order.
    pub lanes: Vec<u32>,
}

/// How the strides of a global tensor are given.
#[derive(Clone, PartialEq, Debug)]
pub enum Strides {
    /// One dimension is contiguous, the others have run-time strides: the values in [`TensorTy::ld`].
    Ordered(OrderRef),
    /// Given per dimension.
    Explicit(Vec<DimStride>),
}

/// The stride of a dimension, in elements.
#[derive(Clone, PartialEq, Debug)]
pub enum DimStride {
    /// The same from each index to the next.
    One(Expr),
    /// The dimension has several modes, outermost first: an index counts them like the digits of a number, the last one
    /// fastest, and the offset is the sum of digits times strides. The dimension's extent in [`TensorTy::shape`] is the
    /// product of theirs.
    Modes(Vec<Mode>),
}

/// A mode of a dimension.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Mode {
    /// Its extent.
    pub extent: Expr,
    /// Its stride, in elements.
    pub stride: Expr,
}

impl DimStride {
    /// The expressions in it.
    pub fn exprs(&self) -> Vec<Expr> {
        match self {
            DimStride::One(e) => vec![*e],
            DimStride::Modes(modes) => modes.iter().flat_map(|m| [m.extent, m.stride]).collect(),
        }
    }

    /// The strides in it.
    pub fn strides(&self) -> Vec<Expr> {
        match self {
            DimStride::One(e) => vec![*e],
            DimStride::Modes(modes) => modes.iter().map(|m| m.stride).collect(),
        }
    }
}

/// The purpose of memory that is neither input nor result.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Scratch {
    /// Elements that blocks exchange; undefined at first.
    Elements,
    /// Signals between blocks, all 0 before a launch and after it: `signal s[i]`, `await s[i]`.
    Signals,
    /// Distributed shared memory: each cluster has such tiles in the shared memory of its last block, and a signal for each entry of the first dimension.
    Cluster,
}

impl Scratch {
    /// What the host provides: words after the type of a tensor in global memory.
    pub const OF_HOST: &'static [(Scratch, &'static str)] =
        &[(Scratch::Elements, "scratch"), (Scratch::Signals, "signals")];

    /// Whether `signal` and `await` take it.
    pub fn has_signals(self) -> bool {
        matches!(self, Scratch::Signals | Scratch::Cluster)
    }

    /// Whether threads may read and write elements.
    pub fn has_elements(self) -> bool {
        matches!(self, Scratch::Elements | Scratch::Cluster)
    }
}

/// Lines of memory with padding around them (`padded (h: H behind P)`): elements are at places along a stride that modes step by. What is in front of place 0, or from
/// `extent` on, reads as zero.
///
/// Modes whose strides have `stride` as a factor step along these lines: `n * h` by `n` lines. The factors are those of the strides as
/// they are written, so they survive changes of the modes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Padded {
    /// A run-time stride, in elements: of one line from the next.
    pub stride: Value,
    /// Lines in memory.
    pub extent: Expr,
    /// Lines of padding in front of them: the first element of all modes is at line `-behind`.
    pub behind: Expr,
}

/// The type of a global tensor parameter.
#[derive(Clone, PartialEq, Debug)]
pub struct TensorTy {
    /// Element type.
    pub elem: ElemRef,
    /// Extents: run-time sizes or expressions of them and of compile-time parameters. Of a dimension of several modes, the
    /// product of their extents.
    pub shape: Vec<Expr>,
    /// The dimensions along which the tensor broadcasts. They have stride 0 and no end, and the launch contract does not
    /// contain them. Ascending; their extents are [`MAX_SIZE`](crate::extents::MAX_SIZE).
    pub repeats: Vec<usize>,
    /// Strides of the others.
    pub strides: Strides,
    /// Padding along a run-time stride: see [`Padded`]. Such a tensor is only read.
    pub padded: Vec<Padded>,
    /// With [`Strides::Ordered`]: the run-time strides of the non-contiguous dimensions, in dimension order. A rank-2
    /// tensor `A` has one, named `A_ld` (the leading dimension); rank `n` has `A_ld0 …`.
    pub ld: Vec<Value>,
    /// The first dimension counts parts of the tensor (matrices of a batch) at arbitrary addresses: the parameter is the
    /// address of an array of their addresses. That dimension has no stride, and a window has a single index there.
    pub pointers: bool,
    /// Memory that is neither input nor result. The host provides it, unless it is that of a cluster.
    pub scratch: Option<Scratch>,
    /// Minimal alignment in bytes of the address, or of each of them; `None`: what
    /// the widest access needs.
    pub align: Option<u32>,
    /// `multiple n`, a compile-time expression: the extent of the contiguous dimension and all other strides are multiples
    /// of `n`, so that aligned groups of `n` elements are inside the tensor or outside. `None` once specialised, when
    /// preconditions say it.
    pub multiple: Option<Expr>,
    /// Launches that may still run when one of this kernel begins do not write it. So it may be loaded before the kernel waits for them.
    pub constant: bool,
}

impl TensorTy {
    /// Whether it is distributed shared memory, which no caller provides.
    pub fn is_of_cluster(&self) -> bool {
        self.scratch == Some(Scratch::Cluster)
    }

    /// The modes of a dimension that has several, outermost first.
    pub fn modes(&self, dim: usize) -> Option<&[Mode]> {
        match self.given_stride(dim)? {
            GivenStride::Written(DimStride::Modes(modes)) => Some(modes),
            _ => None,
        }
    }

    /// Every expression of the type.
    pub fn exprs(&self) -> Vec<Expr> {
        let mut all = self.shape.clone();
        if let Strides::Explicit(list) = &self.strides {
            all.extend(list.iter().flat_map(DimStride::exprs));
        }
        all.extend(self.padded.iter().flat_map(|p| [p.extent, p.behind]));
        all.extend(self.multiple);
        all
    }

    /// Dimensions in front of those that have strides: 1 for an array of pointers.
    pub fn unstrided(&self) -> usize {
        usize::from(self.pointers)
    }

    /// The dimensions that have strides of their own, in order.
    pub fn strided(&self) -> Vec<usize> {
        (self.unstrided()..self.shape.len()).filter(|d| !self.repeats.contains(d)).collect()
    }

    /// The contiguous dimension of a tensor in this order.
    pub fn contiguous_dim(&self, order: Order) -> usize {
        let strided = self.strided();
        strided.get(order.contiguous_dim(strided.len())).copied().unwrap_or(self.unstrided())
    }

    /// Where the stride of a dimension comes from; `None` if the order is still a parameter, or there is no such dimension.
    pub fn given_stride(&self, dim: usize) -> Option<GivenStride<'_>> {
        if dim < self.unstrided() {
            return Some(GivenStride::Pointer);
        }
        if self.repeats.contains(&dim) {
            return Some(GivenStride::Repeats);
        }
        let own = self.strided().iter().position(|&d| d == dim)?;
        match &self.strides {
            Strides::Explicit(list) => list.get(own).map(GivenStride::Written),
            Strides::Ordered(OrderRef::Known(order)) => {
                let contiguous = self.contiguous_dim(*order);
                if dim == contiguous {
                    return Some(GivenStride::Contiguous);
                }
                let index = if dim > contiguous { own - 1 } else { own };
                self.ld.get(index).copied().map(GivenStride::Leading)
            }
            Strides::Ordered(OrderRef::Param(_)) => None,
        }
    }

    /// The dimensions that are inside dimension `dim` when a tensor of this order is packed.
    pub fn inner_dims(&self, order: Order, dim: usize) -> Vec<usize> {
        let (rank, contiguous) = (self.shape.len(), self.contiguous_dim(order));
        match dim {
            d if d == contiguous => Vec::new(),
            // By columns, the last dimension is outside of the last but one.
            d if d > contiguous => vec![contiguous],
            d => (d + 1..rank).filter(|d| !self.repeats.contains(d)).collect(),
        }
    }
}

/// Where the stride of a dimension of a tensor comes from.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum GivenStride<'a> {
    /// Elements along the dimension are adjacent in memory.
    Contiguous,
    /// A run-time stride of the tensor's own.
    Leading(Value),
    /// The text.
    Written(&'a DimStride),
    /// The dimension broadcasts: 0.
    Repeats,
    /// None: each index has its own address ([`TensorTy::pointers`]).
    Pointer,
}

/// The place of a buffer, or of a channel's slots.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// Bytes from the start of the block's shared memory to the buffer or the first slot.
    pub offset: u64,
    /// Bytes from one slot of a channel to the next; `None` for a buffer.
    pub stride: Option<u64>,
    /// Where the mbarriers of a channel of roles are, which it shares with those that are operated together with it: the `full` ones of all slots, then the
    /// `empty` ones.
    pub barriers: Option<u64>,
}

/// Which of the threads that reach a statement execute it; see [`crate::lanes`].
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Lanes {
    /// One lane of the first warp: `elected`.
    Elected,
    /// For a loop, each thread executes some iterations: `spread`.
    Spread,
    /// For a multiplication of a tile, warps in which a lane has a factor other than 1: `changing`.
    Changing,
}

/// The barriers of an `ordered` statement; see [`crate::ordered`].
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct OrderedBarriers {
    /// Arrivals that complete a phase of each barrier.
    pub arrivals: u32,
    /// Where its barriers are in shared memory, followed by the words with ring indices; `None` until placed.
    pub at: Option<u64>,
}

/// Arrival counts of a channel between roles; see [`crate::handover`].
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ArrivalCounts {
    /// Arrivals that complete a phase of the `full` barrier of a slot.
    pub full: u32,
    /// Arrivals that complete a phase of the `empty` barrier.
    pub empty: u32,
}
