//! What an instruction does, with its operands resolved to slots.

use super::*;

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
    /// Acquire, release or volatile: never part of a data race with its like.
    pub(crate) strong: bool,
    /// Acquire or release: it orders other accesses without a fence.
    pub(crate) ordered: bool,
}

/// What an atomic does to the word.
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
}

/// `atom` or `red`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Atom {
    pub(crate) op: AtomOp,
    pub(crate) signed: bool,
    pub(crate) area: Area,
    pub(crate) addr: Addr,
    pub(crate) size: u8,
    pub(crate) dst: R,
    pub(crate) src: R,
    /// The new value of `cas`, whose `src` is the expected one.
    pub(crate) src2: R,
    /// Acquire or release: it orders other accesses without a fence.
    pub(crate) ordered: bool,
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

/// A number known at decode time or read from a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bar {
    /// Barrier number, a slot.
    pub(crate) id: R,
    /// Threads, a slot; `None`: all of the block.
    pub(crate) count: Option<R>,
    /// Whether the warp waits.
    pub(crate) wait: bool,
    /// Whether a warp must come as a whole.
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
    /// Through the first-level cache (`.ca`).
    pub(crate) cached: bool,
    /// Nothing in the program says that `src_size` is zero or all: see `parse::decode::copies`.
    pub(crate) partial: bool,
}

/// One decoded operation. Lane-wise arithmetic is a function over whole slots, chosen when decoding; the letters give the
/// widths of destination and sources (`W` 32-bit slot, `L` 64-bit slot).
#[derive(Clone, Debug)]
#[expect(clippy::upper_case_acronyms, reason = "a letter for each operand")]
pub(crate) enum Op {
    WW {
        f: fn(&mut L32, &L32),
        d: R,
        a: R,
    },
    WWW {
        f: fn(&mut L32, &L32, &L32),
        d: R,
        a: R,
        b: R,
    },
    WWWW {
        f: fn(&mut L32, &L32, &L32, &L32),
        d: R,
        a: R,
        b: R,
        c: R,
    },
    Wwwww {
        f: fn(&mut L32, [&L32; 4]),
        d: R,
        s: [R; 4],
    },
    LL {
        f: fn(&mut L64, &L64),
        d: R,
        a: R,
    },
    LLL {
        f: fn(&mut L64, &L64, &L64),
        d: R,
        a: R,
        b: R,
    },
    LLLL {
        f: fn(&mut L64, &L64, &L64, &L64),
        d: R,
        a: R,
        b: R,
        c: R,
    },
    LW {
        f: fn(&mut L64, &L32),
        d: R,
        a: R,
    },
    WL {
        f: fn(&mut L32, &L64),
        d: R,
        a: R,
    },
    LWW {
        f: fn(&mut L64, &L32, &L32),
        d: R,
        a: R,
        b: R,
    },
    LLW {
        f: fn(&mut L64, &L64, &L32),
        d: R,
        a: R,
        b: R,
    },
    LLWW {
        f: fn(&mut L64, &L64, &L32, &L32),
        d: R,
        a: R,
        b: R,
        c: R,
    },
    LWWL {
        f: fn(&mut L64, &L32, &L32, &L64),
        d: R,
        a: R,
        b: R,
        c: R,
    },
    /// As `WWW`, with the upper half of the result cleared.
    Low {
        f: fn(&mut L32, &L32, &L32),
        d: R,
        a: R,
        b: R,
    },
    Mov32 {
        d: R,
        a: R,
    },
    Mov64 {
        d: R,
        a: R,
    },
    Lop3 {
        d: R,
        a: R,
        b: R,
        c: R,
        lut: u8,
    },
    /// Add or subtract with carry; the carry is a predicate slot.
    Carry32 {
        d: R,
        a: R,
        b: R,
        carry: R,
        sub: bool,
        take: bool,
        give: bool,
    },
    SetW {
        f: fn(&L32, &L32) -> u32,
        p: R,
        q: R,
        a: R,
        b: R,
        with: Option<(BoolOp, R, bool)>,
    },
    SetL {
        f: fn(&L64, &L64) -> u32,
        p: R,
        q: R,
        a: R,
        b: R,
        with: Option<(BoolOp, R, bool)>,
    },
    /// A comparison as an all-ones or 1.0 word (`set`).
    SetWord {
        f: fn(&L32, &L32) -> u32,
        d: R,
        a: R,
        b: R,
        yes: u32,
    },
    SelW {
        d: R,
        a: R,
        b: R,
        p: R,
        neg: bool,
    },
    SelL {
        d: R,
        a: R,
        b: R,
        p: R,
        neg: bool,
    },
    Pred {
        f: fn(u32, u32) -> u32,
        d: R,
        a: R,
        b: R,
    },
    /// An operation described rather than compiled; see [`Map`].
    Map {
        map: Map,
        d: R,
        wide: bool,
        a: R,
        b: R,
        from_wide: bool,
    },
    /// Insert `a[0]` into `a[1]` at bit `at[0]`, `at[1]` bits of it.
    Bfi64 {
        d: R,
        a: [R; 2],
        at: [R; 2],
    },
    /// Two halves to a word.
    Pack16 {
        d: R,
        a: [R; 2],
    },
    Unpack16 {
        d: [R; 2],
        a: R,
    },
    /// Two words to a 64-bit slot.
    Pack32 {
        d: R,
        a: [R; 2],
    },
    Unpack32 {
        d: [R; 2],
        a: R,
    },
    /// Four halves to a 64-bit slot.
    Pack64 {
        d: R,
        a: [R; 4],
    },
    Unpack64 {
        d: [R; 4],
        a: R,
    },
    Ld(Access),
    St(Access),
    Atom(Box<Atom>),
    CpAsync(Box<CpAsync>),
    CpCommit,
    /// `None`: `wait_all`.
    CpWait(Option<u32>),
    MBar(Box<MBar>),
    PendingCount {
        d: R,
        state: R,
    },
    Shfl {
        mode: Shfl,
        d: R,
        p: R,
        a: R,
        b: R,
        c: R,
        mask: R,
    },
    Vote {
        what: Vote,
        d: R,
        p: R,
        neg: bool,
        mask: R,
    },
    MatchAny {
        d: R,
        a: R,
        wide: bool,
        mask: R,
    },
    MatchAll {
        d: R,
        p: R,
        a: R,
        wide: bool,
        mask: R,
    },
    ActiveMask {
        d: R,
    },
    Redux {
        op: AtomOp,
        signed: bool,
        d: R,
        a: R,
        mask: R,
    },
    Bar(Box<Bar>),
    BarWarp {
        mask: R,
    },
    Fence {
        /// Its scope is the block: it says nothing to others.
        block_only: bool,
    },
    Mma(Box<Mma>),
    WmmaMove(Box<wmma::Move>),
    WmmaMma(Box<wmma::Product>),
    LdMatrix {
        addr: Addr,
        area: Area,
        n: u8,
        trans: bool,
        d: [R; 4],
    },
    MovMatrix {
        d: R,
        a: R,
    },
    Clock {
        d: R,
        wide: bool,
    },
    IsSpace {
        space: Space,
        p: R,
        a: R,
    },
    Bra {
        target: u32,
        uni: bool,
    },
    BraIndexed {
        index: R,
        targets: Box<[u32]>,
    },
    Exit,
    Trap,
    Nop,
}

/// How `setp` joins its comparison with a predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BoolOp {
    And,
    Or,
    Xor,
}
