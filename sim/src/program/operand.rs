//! Parts of decoded instructions: addresses, accesses, and the operations of atomics, votes and barriers.

use super::*;
use crate::race::Strength;

/// A special register (PTX 10) whose value a warp knows when it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Special {
    Tid(u8),
    NTid(u8),
    CtaId(u8),
    NCtaId(u8),
    LaneId,
    WarpId,
    NWarpId,
    LaneMaskEq,
    LaneMaskLt,
    LaneMaskLe,
    LaneMaskGt,
    LaneMaskGe,
    DynamicSharedBytes,
    TotalSharedBytes,
    /// Of clusters: index and number in the grid, of blocks in the cluster.
    ClusterId(u8),
    NClusterId(u8),
    ClusterCtaId(u8),
    ClusterNCtaId(u8),
    ClusterRank,
    ClusterSize,
    /// The address of this byte of the block's shared memory.
    SharedAt(u32),
    Zero,
    One,
}

/// The base of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    /// The offset alone.
    None,
    /// A 32-bit slot, zero-extended.
    R32(R),
    /// A 64-bit slot.
    R64(R),
}

/// `[base + offset]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Addr {
    pub(crate) base: Base,
    pub(crate) offset: i64,
}

/// The state space an access names; `Generic` is resolved lane by lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Area {
    Generic,
    In(Space),
}

/// The memory-model semantics of an access (PTX ISA 8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Semantics {
    pub(crate) strength: Strength,
    /// Acquire: orders what others released before what follows, without a fence.
    pub(crate) acquire: bool,
    /// Release: publishes what was done before, without a fence.
    pub(crate) release: bool,
    /// A load past L1 (`.cg`): what it observes is acquired at a later barrier, too.
    pub(crate) uncached: bool,
    /// The plain load of a compare-and-swap loop's first guess: treated as a relaxed load that acquires nothing.
    pub(crate) guess: bool,
    /// A load in a polling loop.
    pub(crate) polls: bool,
    /// May read a flag that other blocks will write, and is repeated.
    pub(crate) waits: bool,
    /// A load of data that is constant while the kernel runs (`.nc`).
    pub(crate) constant: bool,
}

impl Semantics {
    /// Whether other blocks may wait for what the access writes.
    pub(crate) fn is_signal(&self) -> bool {
        self.strength == Strength::Wide && !self.guess
    }
}

/// Load or store of a vector of 1, 2 or 4 elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) area: Area,
    pub(crate) addr: Addr,
    /// Bytes of an element.
    pub(crate) size: u8,
    /// Elements.
    pub(crate) n: u8,
    /// Loads of small signed elements extend the sign.
    pub(crate) signed: bool,
    /// Whether the registers are 64-bit slots.
    pub(crate) wide: bool,
    pub(crate) regs: [R; 4],
    pub(crate) order: Semantics,
}

/// The operation of an atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the variants are PTX's own operation names")]
pub(crate) enum AtomOp {
    Add,
    Inc,
    Dec,
    Min,
    Max,
    And,
    Or,
    Xor,
    Exch,
    Cas,
    AddF32,
    AddF64,
    AddF16x2,
    AddF16,
    AddBF16,
    AddBF16x2,
    /// Minimum or maximum of halves: one or two per register.
    MinF16,
    MaxF16,
    MinF16x2,
    MaxF16x2,
    MinBF16,
    MaxBF16,
    MinBF16x2,
    MaxBF16x2,
}

/// Maximum number of elements of a vector atomic.
pub(crate) const VECTOR: usize = 8;

/// `atom` or `red`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Atom {
    pub(crate) op: AtomOp,
    pub(crate) signed: bool,
    pub(crate) area: Area,
    pub(crate) addr: Addr,
    /// Bytes of an element.
    pub(crate) size: u8,
    /// Number of elements, each updated atomically by itself; more than one only in global memory.
    pub(crate) n: u8,
    /// Destinations of the old values, per element; `SINK`: none.
    pub(crate) dst: [R; VECTOR],
    pub(crate) src: [R; VECTOR],
    /// The new value of `cas`, whose `src` is the expected one.
    pub(crate) src2: R,
    pub(crate) order: Semantics,
}

impl Atom {
    /// Whether the old value is used.
    pub(crate) fn returns(&self) -> bool {
        self.dst.iter().any(|&d| d != SINK)
    }
}

/// How `shfl` finds the lane to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shfl {
    Up,
    Down,
    Bfly,
    Idx,
}

/// What `vote` and `bar.red` compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vote {
    All,
    Any,
    Uni,
    Ballot,
    Popc,
}

/// A barrier; its number is known at decode time or read from a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bar {
    /// Slot of the barrier number.
    pub(crate) id: R,
    /// Slot of the number of threads; `None`: all threads of the block.
    pub(crate) count: Option<R>,
    /// Whether the warp waits.
    pub(crate) wait: bool,
    /// Whether all lanes of a warp must execute it together.
    pub(crate) aligned: bool,
    /// `red`: what, source predicate, negated, destination.
    pub(crate) red: Option<(Vote, R, bool, R)>,
}

/// A copy of `cp.async`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CpAsync {
    pub(crate) dst: Addr,
    pub(crate) src: Addr,
    pub(crate) size: u8,
    /// Bytes to read, a slot; the rest is zero-filled.
    pub(crate) src_size: Option<R>,
    /// A predicate: when true nothing is read.
    pub(crate) ignore: Option<(R, bool)>,
    /// Through L1 (`.ca`).
    pub(crate) cached: bool,
    /// `src_size` is not known to be zero or the full size: see `parse::decode::copies`.
    pub(crate) partial: bool,
}

/// How `setp` combines its comparison with a predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BoolOp {
    And,
    Or,
    Xor,
}

/// What extended-precision arithmetic computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CarryKind {
    Add,
    Sub,
    /// The upper or lower half of a product, then a sum.
    Mad {
        hi: bool,
        signed: bool,
    },
}

/// An instruction with carry; the carry is a predicate slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Carry {
    pub(crate) kind: CarryKind,
    /// 64 bits, not 32.
    pub(crate) wide: bool,
    pub(crate) d: R,
    /// Sources; the last one is the addend of a product.
    pub(crate) s: [R; 3],
    pub(crate) carry: R,
    /// Whether the instruction reads the carry, and whether it writes it.
    pub(crate) take: bool,
    pub(crate) give: bool,
}

/// An operation described by [`Function`], with its slots; each flag says whether the slot has 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lanewise {
    pub(crate) f: Function,
    pub(crate) d: (R, bool),
    pub(crate) s: [(R, bool); 3],
}

/// `lop3.BoolOp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lop3Test {
    pub(crate) d: R,
    pub(crate) p: R,
    pub(crate) s: [R; 3],
    pub(crate) lut: u8,
    pub(crate) with: (BoolOp, R, bool),
}

/// A comparison of whole slots: returns the mask of lanes for which it holds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Relation {
    Words(fn(&L32, &L32) -> u32),
    Longs(fn(&L64, &L64) -> u32),
}
