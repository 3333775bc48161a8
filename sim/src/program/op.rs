//! What an instruction does, with its operands resolved to slots.

use std::sync::Arc;

use super::*;
use crate::race::Scope;

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
    Mov32 {
        d: R,
        a: R,
    },
    Mov64 {
        d: R,
        a: R,
    },
    /// Simultaneous moves: destinations and sources.
    MovVector {
        pairs: Box<[(R, R)]>,
        wide: bool,
    },
    Lop3 {
        d: R,
        a: R,
        b: R,
        c: R,
        lut: u8,
    },
    /// Extended-precision arithmetic.
    Carry(Box<Carry>),
    /// An operation on up to three operands described rather than compiled.
    Lanewise(Box<Lanewise>),
    /// The result of another operation, `all` or zero, combined with a predicate (`set` with `.and`, `.or`, `.xor`).
    Joined {
        inner: Box<Op>,
        d: R,
        /// The result where the comparison holds.
        all: u32,
        with: (BoolOp, R, bool),
    },
    /// `setp` on pairs: one predicate for each half.
    SetPair {
        f: [fn(&L32, &L32) -> u32; 2],
        d: [R; 2],
        a: R,
        b: R,
        with: Option<(BoolOp, R, bool)>,
    },
    /// `lop3` with a predicate that says whether any bit is set.
    Lop3Test(Box<Lop3Test>),
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
    /// A comparison as a word, all ones or 1.0 (`set`).
    SetWord {
        f: Relation,
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
    /// An operation interpreted lane by lane; see [`Map`].
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
    /// The bytes of a word.
    Unpack8 {
        d: [R; 4],
        a: R,
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
    /// Elects one of the member lanes, and sets a predicate in that lane.
    Elect {
        d: R,
        p: R,
        mask: R,
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
        scope: Scope,
        acquire: bool,
        release: bool,
    },
    /// `fence.proxy.async`, of global memory alone or of all; `init`: `fence.mbarrier_init`.
    ProxyFence {
        init: bool,
        global: bool,
    },
    Bulk(Box<Bulk>),
    /// `st.async`, `red.async`.
    Remote(Box<Remote>),
    BulkCommit,
    BulkWait {
        n: u32,
        /// Waits only until the sources have been read; else until the copies are complete.
        read: bool,
    },
    Wgmma(Arc<Wgmma>),
    WgmmaFence,
    WgmmaCommit,
    WgmmaWait(u32),
    MaxRegisters {
        inc: bool,
        n: u32,
    },
    ClusterArrive {
        relaxed: bool,
        aligned: bool,
    },
    ClusterWait {
        aligned: bool,
    },
    /// The address of the same byte in another block of the cluster.
    Mapa {
        d: R,
        a: R,
        rank: R,
        wide: bool,
        generic: bool,
    },
    CtaRank {
        d: R,
        a: R,
        wide: bool,
        generic: bool,
    },
    Mma(Box<Mma>),
    WmmaMove(Box<wmma::Move>),
    WmmaMma(Box<wmma::Product>),
    LdMatrix {
        addr: Addr,
        area: Area,
        n: u8,
        trans: bool,
        /// Whether the addresses of lanes without a row must be valid too.
        strict: bool,
        d: [R; 4],
    },
    StMatrix {
        addr: Addr,
        area: Area,
        n: u8,
        trans: bool,
        s: [R; 4],
    },
    MovMatrix {
        d: R,
        a: R,
    },
    /// Makes the 128 bytes at an address undefined.
    Discard {
        addr: Addr,
        area: Area,
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
    /// A failed assertion: addresses of its message, file, line and function.
    Assert(Box<[Addr; 4]>),
    Nop,
    /// `griddepcontrol.wait`.
    GridWait,
}
