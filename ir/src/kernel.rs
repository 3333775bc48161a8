//! The IR: kernels as plain tables over entity ids.
//!
//! A kernel is structured: a [`Block`] is a list of statements, statements own expression trees, loops and branches own
//! blocks. There are two kinds of named entities: *immutable* ones (parameters, sizes, grid indices, loop variables,
//! `let`) and *places* (register variables, shared-memory buffers, channels). Expressions are pure; only statements
//! have effects. An expression that reads a place sees the value that the last preceding statement in program order
//! stored there.
//!
//! The same tables represent the program from the source text to the last text before PTX. Passes fill in what is
//! absent (layouts, atoms, access widths, channels) and never need anything that the text form cannot express.
//!
//! Invariants, checked by [`crate::verify`]: an [`Expr`] has one parent; a [`Stmt`] is in one block; a value is
//! declared by the kernel header or by exactly one statement, which comes before every use in the same or an enclosing
//! block.

mod analysis_cache;
mod build;
mod table;
mod visit;

use crate::atoms::Atom;
pub use crate::attributes::{ChannelOp, CopyAttrs, SignalOp, StmtPlan};
use crate::demands::Demand;
use crate::diag::Span;
use crate::entities::{Block, Expr, Stmt, Value};
use crate::fix_locations::FixLocation;
pub use crate::mechanism::Mechanism;
use crate::ops::{Op, ReduceOp};
use crate::reshape::Numbered;
use crate::space::Space;
use crate::target::Target;
use crate::tuples::Combine;
use crate::types::{ArrivalCounts, Elem, ElemRef, Lanes, Order, OrderedBarriers, Place, TableTy, TensorTy, TileTy};
use analysis_cache::Known;
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{PrimaryMap, SecondaryMap};
pub use table::Table;

/// A file: kernels in source order, and programs that launch several of them.
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// The kernels.
    pub kernels: Vec<Kernel>,
    /// The sequences.
    pub sequences: Vec<Sequence>,
}

/// A program of several kernels, launched one after the other. They share parameters of the same name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sequence {
    /// Its name, different from all kernels.
    pub name: String,
    /// Span of the name.
    pub name_span: Span,
    /// The kernels by name, in launch order, and where the names are written.
    pub launches: Vec<(String, Span)>,
}

/// A kernel.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Entry name, `[A-Za-z_][A-Za-z0-9_]{0,63}`.
    pub name: String,
    /// Span of the name.
    pub name_span: Span,
    /// Named things.
    pub values: Table<Value, ValueData>,
    /// Expression nodes.
    pub exprs: Table<Expr, ExprData>,
    /// Statements.
    pub stmts: Table<Stmt, StmtData>,
    /// Blocks.
    pub blocks: PrimaryMap<Block, Vec<Stmt>>,
    /// Source spans of expressions.
    pub expr_spans: SecondaryMap<Expr, Span>,
    /// Source spans of statements.
    pub stmt_spans: SecondaryMap<Stmt, Span>,
    /// The schedule of statements (role, stage, cycle), once decided.
    pub plans: SecondaryMap<Stmt, StmtPlan>,
    /// Arrival counts of the mbarriers of channels between roles, once decided.
    pub handovers: SecondaryMap<Value, Option<ArrivalCounts>>,
    /// For a `publish` in a role, once decided: the bytes that TMA loads bring to the slot of each of its channels;
    /// empty: none.
    pub expects: SecondaryMap<Stmt, Vec<u64>>,
    /// Which threads execute a statement, if not all do, once decided.
    pub lanes: SecondaryMap<Stmt, Option<Lanes>>,
    /// `recompute`, once decided. For a branch: values that only it needs are computed in it. For a loop: values known
    /// before it are recomputed after it.
    pub recomputed: SecondaryMap<Stmt, bool>,
    /// The barriers of an `ordered` statement, once decided.
    pub ordered: SecondaryMap<Stmt, Option<OrderedBarriers>>,
    /// Addresses of buffers and channels in shared memory, once decided.
    pub shared_places: SecondaryMap<Value, Option<Place>>,
    /// Compile-time parameters, in order. Empty once specialised.
    pub const_params: Vec<Value>,
    /// Parameters of the header, in order: tensors and scalars, which are passed at the launch, and tables.
    pub params: Vec<Value>,
    /// Run-time sizes (names first used in tensor shapes), in order of first mention.
    pub sizes: Vec<Value>,
    /// Run-time strides, in order of first mention.
    pub strides: Vec<Value>,
    /// Preconditions: Boolean expressions over compile-time parameters, sizes and strides.
    pub requires: Vec<Expr>,
    /// Demands on the compiled code (`require`).
    pub demands: Vec<Demand>,
    /// Grid axes.
    pub grid: Vec<GridAxis>,
    /// The schedule.
    pub schedule: Schedule,
    /// Spans of optional words of the source with the blanks in front: items of the schedule, attributes of copies, `unroll`.
    pub clauses: Vec<(String, Span)>,
    /// Further source positions at which fixes are inserted, in the order of their ends.
    pub fix_locations: Vec<(FixLocation, Span)>,
    /// The body.
    pub body: Block,
    /// The statement that declares each `let`.
    lets: SecondaryMap<Value, PackedOption<Stmt>>,
    /// Whether an integer in a register or in memory counts as an index without `index(n)`: so while the parser expands forms.
    pub(crate) numbers_count: bool,
    /// Cached results, valid as long as the tables do not change.
    pub(crate) known: Known,
}

/// A grid axis: its index value and its extent.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct GridAxis {
    /// The index, `0..extent` ([`ValueDef::Grid`]).
    pub index: Value,
    /// The extent: an integer expression over sizes.
    pub extent: Expr,
}

/// A named thing.
#[derive(Clone, Debug)]
pub struct ValueData {
    /// Its name, unique within the kernel.
    pub name: String,
    /// Span of its declaration; for what the compiler makes, that of the code for which it is made.
    pub span: Span,
    /// What it is.
    pub def: ValueDef,
    /// Whether the source declares it by a name; otherwise the compiler made it.
    pub declared: bool,
    /// For padded tiles: the extents before, and what they are now.
    pub padded: Vec<(u64, u64)>,
}

/// The kind of a named entity.
#[derive(Clone, Debug)]
pub enum ValueDef {
    /// A compile-time parameter.
    ConstParam(ConstParam),
    /// A run-time extent, less than 2^31: 0 where a precondition says so (`where K == 0`), else at least 1.
    Size,
    /// A run-time stride in elements, at least 0.
    Stride,
    /// A global tensor.
    Tensor(TensorTy),
    /// A run-time scalar and its default.
    Scalar {
        /// Element type.
        elem: ElemRef,
        /// Default value: a literal, possibly negated.
        default: Option<Expr>,
    },
    /// A table of numbers in constant memory.
    Table(TableTy),
    /// A grid index.
    Grid,
    /// A loop variable.
    Loop,
    /// An immutable value; its type is that of the initialiser.
    Let,
    /// A mutable register tile.
    Var(TileTy),
    /// A shared-memory buffer.
    Smem(TileTy),
    /// A component of one of the two tuples of a combination: a number ([`Combine`]).
    Element {
        /// The type of the computation.
        elem: ElemRef,
    },
    /// A `let` in the body of a combination.
    Local(Expr),
    /// A ring of shared-memory slots. A producer executes `acquire`, fills `name.put`, and executes `publish`; a consumer executes
    /// `wait`, reads `name.get`, and executes `release`. Slots are consumed in the order in which they were published.
    Channel {
        /// The type of one slot.
        tile: TileTy,
        /// Number of slots: a compile-time expression.
        slots: Expr,
    },
}

impl ValueDef {
    /// The type of its elements, if it declares one.
    pub fn elem(&self) -> Option<ElemRef> {
        match self {
            ValueDef::Tensor(t) => Some(t.elem),
            ValueDef::Var(t) | ValueDef::Smem(t) | ValueDef::Channel { tile: t, .. } => Some(t.elem),
            ValueDef::Scalar { elem, .. } | ValueDef::Element { elem } => Some(*elem),
            ValueDef::Table(t) => Some(t.elem),
            _ => None,
        }
    }

    /// The same, to be bound.
    pub fn elem_mut(&mut self) -> Option<&mut ElemRef> {
        match self {
            ValueDef::Tensor(t) => Some(&mut t.elem),
            ValueDef::Var(t) | ValueDef::Smem(t) | ValueDef::Channel { tile: t, .. } => Some(&mut t.elem),
            ValueDef::Scalar { elem, .. } | ValueDef::Element { elem } => Some(elem),
            ValueDef::Table(t) => Some(&mut t.elem),
            _ => None,
        }
    }

    /// The memory space of its elements; values are in registers.
    pub fn space(&self) -> Space {
        match self {
            ValueDef::Tensor(_) => Space::Gmem,
            ValueDef::Smem(_) | ValueDef::Channel { .. } => Space::Smem,
            ValueDef::Table(_) => Space::Const,
            _ => Space::Reg,
        }
    }
}

/// A compile-time parameter.
#[derive(Clone, Debug)]
pub struct ConstParam {
    /// What it ranges over.
    pub kind: ConstKind,
    /// Default.
    pub default: Option<ConstValue>,
}

/// The kind of a compile-time parameter.
#[derive(Clone, PartialEq, Debug)]
pub enum ConstKind {
    /// Integers.
    Int,
    /// One of these element types; empty: any element type.
    Elem(Vec<Elem>),
    /// `row` or `col`.
    Order,
}

/// The value of a compile-time parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConstValue {
    /// An integer.
    Int(i64),
    /// An element type.
    Elem(Elem),
    /// An order.
    Order(Order),
    /// The value of an earlier parameter of the same kind; in defaults only: `Out: f32 | f16 = Acc`.
    Same(Value),
    /// An integer that the compiler chooses; in defaults only: `BM = auto`.
    Auto {
        /// The source promises that results do not depend on it: `BQ = auto promised`.
        promised: bool,
    },
}

impl ConstValue {
    /// The value as it is written; `None`: it is that of another parameter, or not chosen yet.
    pub fn text(self) -> Option<String> {
        match self {
            ConstValue::Int(x) => Some(x.to_string()),
            ConstValue::Elem(elem) => Some(elem.name().to_owned()),
            ConstValue::Order(order) => Some(order.name().to_owned()),
            ConstValue::Same(_) | ConstValue::Auto { .. } => None,
        }
    }
}

/// The schedule. The compiler chooses absent items.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    /// The target the decisions in this text were made for; the command line must agree.
    pub target: Option<Target>,
    /// Rows and columns of the output that one warp computes: `warp_tile (64, 64)`.
    pub warp_tile: Option<(Expr, Expr)>,
    /// Groups of warps that share the reduction of a product: each sums a slice of every tile of it: `k_warps 4`.
    pub k_warps: Option<Expr>,
    /// Threads per block: `threads 128`.
    pub threads: Option<Expr>,
    /// Blocks of a cluster that share the elements of tiles: `ctas 4`. Layouts count the threads of all of them.
    pub ctas: Option<Expr>,
    /// Shared-memory stages of pipelined loops: `stages 2`.
    pub stages: Option<Expr>,
    /// Rasterisation: the number of adjacent columns of tiles in a strip: `raster 8`.
    pub raster: Option<Expr>,
    /// Promotion: products in a partial sum of 8-bit floats before it is added to the accumulator in f32; 0: all of
    /// the reduction: `promote 128`.
    pub promote: Option<Expr>,
    /// Whether the wgmma products of a step stay pending while those of the next step are issued; 0 or 1: `pending 1`.
    pub pending: Option<Expr>,
    /// Whether two warpgroups compute tiles of a block alternately, instead of sharing each; 0 or 1: `ping_pong 1`.
    pub ping_pong: Option<Expr>,
    /// Blocks that should fit one multiprocessor at once: `min_ctas 2`.
    pub min_ctas: Option<Expr>,
    /// Whether a preceding kernel copies operands whose rows are not multiples of 16 bytes into tensors whose rows are;
    /// 0 or 1: `align_rows 1`.
    pub align_rows: Option<Expr>,
    /// Whether results of wgmma are stored by TMA, from a buffer; 0 or 1: `stage_stores 1`.
    pub stage_stores: Option<Expr>,
    /// Whether blocks of a persistent grid share tiles along the reduction (stream-K); 0 or 1: `stream_k 1`.
    pub stream_k: Option<Expr>,
    /// How many blocks of a cluster share each tile along the reduction; they add their sums through distributed shared
    /// memory: `split_k 2`.
    pub split_k: Option<Expr>,
    /// Whether blocks of a persistent grid take their tiles from a counter; 0 or 1: `queue 1`.
    pub queue: Option<Expr>,
    /// Programmatic dependent launch: `overlap 1` waits before accesses to global memory. With `overlap 2` the
    /// producer waits in front of its first load; with `overlap 2 + n` it first prefetches the loads of the first n steps of a short loop.
    pub overlap: Option<Expr>,
    /// Thread blocks per cluster and grid axis: `cluster (2, 1)`.
    pub cluster: Vec<Expr>,
    /// Span of the whole clause, if written.
    pub span: Span,
}

/// The end of a loop that ends only by its condition: `for turn in 0..inf while c`. It is the largest index.
pub const ENDLESS: i64 = i64::MAX - 1;

/// Which slot of a channel a view means.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Slot {
    /// The acquired, not yet published slot: `a.put`.
    Put,
    /// The oldest waited-for, not yet released slot: `a.get`.
    Get,
}

/// One dimension of a view.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Range {
    /// A single index; the dimension disappears: `A[b, ..]`.
    At(Expr),
    /// `start..end`: elements at and past `end` (if given) and past the extent of the base read as zero and are not
    /// written. The number of elements is that of the tile on the other side.
    From {
        /// First element.
        start: Expr,
        /// One past the last element that exists.
        end: Option<Expr>,
    },
    /// Gathered elements, at the indices in a register tile of integers: `A[idx, k..]`. The tile has one dimension, or with the dimensions
    /// of the window an index for each element. Elements outside the extent of the base read as zero and are
    /// not written.
    Gather(Expr),
}

/// A window of a tensor, a buffer or a register tile.
#[derive(Clone, PartialEq, Debug)]
pub struct View {
    /// A tensor, buffer, channel, register variable, or a `let` that names a view.
    pub base: Value,
    /// The slot, for channels.
    pub slot: Option<Slot>,
    /// A range per dimension; empty: all of it.
    pub ranges: Vec<Range>,
}

/// The totals of segments of a row that is scanned.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Totals {
    /// The bits of an element's index that select the segment: the highest ones.
    pub parts: u32,
    /// A tile with an element for each segment.
    pub tile: Expr,
}

/// An expression node.
#[derive(Clone, PartialEq, Debug)]
pub enum ExprData {
    /// An integer literal: an index, or a number of the type of its context.
    Int(i64),
    /// A floating-point literal, as the bits of an f64.
    Float(u64),
    /// The value of a scalar, or the whole content of a place.
    Ref(Value),
    /// An operator.
    Op {
        /// Which.
        op: Op,
        /// Operands, `op.arity()` of them.
        args: Vec<Expr>,
    },
    /// Conversion, rounded to nearest even: `cast<f16>(x)`.
    Cast {
        /// To this type.
        elem: ElemRef,
        /// The operand.
        arg: Expr,
    },
    /// The same bits as a number of another type of the same size: `bitcast<u32>(x)`. The operand is first rounded to its own type.
    Bits {
        /// The type of the result.
        elem: ElemRef,
        /// The operand.
        arg: Expr,
    },
    /// Conversion with stochastic rounding by a random word of 32 bits: `round_random<bf16>(x, w)`.
    Round {
        /// To this type.
        elem: ElemRef,
        /// The operand.
        arg: Expr,
        /// The words.
        word: Expr,
    },
    /// An integer scalar as an index: `index(n)`. The parser adds it wherever an integer scalar is used as an index ([`crate::index_values`]).
    Index(Expr),
    /// Reduction along an axis, which the result has with extent 1: `sum(x, 1)`; or with an element for each part: `sum(x, 1, parts (7, 8))`.
    Reduce {
        /// How.
        op: ReduceOp,
        /// Along which dimension.
        axis: u32,
        /// Elements whose indices along the dimension differ in these bits are in different parts; 0: there is one
        /// part.
        parts: u32,
        /// The operand.
        arg: Expr,
    },
    /// Inclusive scan along an axis: `scan_sum(x, 1)`; exclusive scan: `scan_sum(x, 1, exclusive)`; with the
    /// totals of the segments of a row: `scan_sum(x, 1, parts (7, 8) totals t)`.
    Scan {
        /// How.
        op: ReduceOp,
        /// Along which dimension.
        axis: u32,
        /// An exclusive scan.
        exclusive: bool,
        /// The totals of segments of the row.
        totals: Option<Totals>,
        /// The operand.
        arg: Expr,
    },
    /// Tuples of elements reduced, scanned or sorted along an axis, with a combination of the program; a `let` names the result.
    Combine(Box<Combine>),
    /// A component of tuples: `s.0`.
    Part {
        /// The name of a `let` of tuples.
        of: Expr,
        /// Which.
        index: u32,
    },
    /// A rank-2 tile transposed: `transpose(x)`.
    Transpose(Expr),
    /// A tile with its dimensions in another order: dimension `d` of the result is dimension `order[d]` of the operand. It is copied from
    /// a register variable to another, like a reshaped tile.
    Permute {
        /// The tile.
        arg: Expr,
        /// Each dimension of the operand once.
        order: Vec<u32>,
    },
    /// The same elements in row-major order in another shape: `reshape(x, [16, 4, 8])`. The operand is a register variable, and the
    /// expression the source of a copy to another one, in the form that the parser makes.
    Reshape {
        /// The operand.
        arg: Expr,
        /// Extents: compile-time expressions.
        shape: Vec<Expr>,
        /// The mapping of a buffer's elements to those of the tile, set by passes.
        numbered: Option<Box<Numbered>>,
    },
    /// Tiles joined along an axis: `concat(a, b, 1)`. The parser expands it to copies to windows of a register variable.
    Concat {
        /// The tiles, two at least.
        args: Vec<Expr>,
        /// Along which dimension.
        axis: u32,
    },
    /// The index along an axis, as an i32 tile of the shape of `like`: `iota(x, 1)`.
    Iota {
        /// Along which dimension.
        axis: u32,
        /// Gives the shape; its elements are not read.
        like: Expr,
    },
    /// The elements of a table at the indices in a tile or a scalar: `t[x]`; zero outside of it.
    Lookup {
        /// A [`ValueDef::Table`].
        table: Value,
        /// Which.
        index: Expr,
    },
    /// Matrix product `a · b + c`.
    Mma(Mma),
    /// A window.
    View(View),
}

/// A matrix product.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Mma {
    /// The instruction that computes it: `mma<m8n8k4>(a, b, c)`; `None` until selected.
    pub atom: Option<Atom>,
    /// The instruction computes the transposed product: its A operand is our `b` transposed: `mma<m8n8k4, swap>`.
    pub swap: bool,
    /// `[M, K]` tile.
    pub a: Expr,
    /// `[K, N]` tile.
    pub b: Expr,
    /// `[M, N]` accumulator; or `[S, M, N]`: the reduction is cut into `S` slices of `K / S`, each with its own sum.
    pub c: Expr,
}

/// A loop of a role that takes all tiles but the first from a counter:
/// `for tile in cta..tiles step 132 next turns from drawn`.
///
/// The next number is the step plus the old value of a counter in memory. The counter is incremented atomically and
/// wraps to 0 after the last number before the loop's end. The role that publishes slots of `channel` takes a number
/// for each slot and stores it there. The role that waits for the slots reads it when it releases them, so both run
/// over the same numbers. Each block continues until its number is beyond the end. There are as many blocks as the step
/// or the number of tiles, so all blocks together increment the counter once for each number, and it ends at 0.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Next {
    /// A channel of `u32[1]` that passes the numbers.
    pub channel: Value,
    /// The counter: a tensor of signals, of one.
    pub counter: Value,
}

/// A statement.
#[derive(Clone, PartialEq, Debug)]
pub enum StmtData {
    /// `let x = e`: an immutable scalar or register tile, or a name for a view of global memory.
    Let {
        /// The declared value ([`ValueDef::Let`]).
        value: Value,
        /// Its value.
        init: Expr,
    },
    /// `var x = reg T[..] = e`: a mutable register tile; without initialiser its content is undefined until written.
    Var {
        /// The declared value ([`ValueDef::Var`]).
        value: Value,
        /// Its first value.
        init: Option<Expr>,
    },
    /// `let a = smem T[..]` or `let a = channel T[..] slots n`.
    Alloc {
        /// The declared value ([`ValueDef::Smem`] or [`ValueDef::Channel`]).
        value: Value,
        /// Buffers and channels whose memory it reuses; their contents are lost: `let a = smem T[..] over b, c`.
        over: Vec<Value>,
    },
    /// `x = e` for a register variable.
    Assign {
        /// The variable.
        dst: Value,
        /// Its new value.
        src: Expr,
    },
    /// `copy e -> place`: moves between memories; element types convert by rounding to nearest even.
    Copy {
        /// A view, a place or an elementwise expression.
        src: Expr,
        /// A view or a place.
        dst: Expr,
        /// How.
        attrs: CopyAttrs,
    },
    /// `for k in start..end step s while c { .. }`: ascending, `step` at least 1.
    For {
        /// The loop variable.
        var: Value,
        /// First value.
        start: Expr,
        /// Upper bound, excluded.
        end: Expr,
        /// Step.
        step: Expr,
        /// The condition that is tested in front of each iteration; the same in all threads of the block: `while c`.
        cond: Option<Expr>,
        /// All numbers but the first come from a counter: `next turns from drawn`.
        next: Option<Next>,
        /// The loop is unrolled completely; bounds must be compile-time.
        unroll: bool,
        /// The body.
        body: Block,
    },
    /// `if c { .. } else { .. }` on a condition that is the same in all threads of the block.
    If {
        /// The condition.
        cond: Expr,
        /// If it holds.
        then: Block,
        /// If it does not.
        otherwise: Option<Block>,
    },
    /// A channel operation on several channels at once.
    Channel {
        /// Which operation.
        op: ChannelOp,
        /// On these channels.
        channels: Vec<Value>,
        /// For `wait`: how many of the thread's most recent groups of asynchronous copies may still be pending (a
        /// `publish` closes a group); `None`: none.
        pending: Option<u32>,
    },
    /// All threads of the block (or of the role) wait for each other; shared memory written before is visible after.
    Barrier,
    /// `fence async`: orders the thread's writes to shared memory before accesses of TMA and wgmma, which go
    /// through the async proxy.
    Fence,
    /// `await acc, n`: at most `n` of the asynchronous products that target `acc` are still running. `await s, n`: all but the last `n`
    /// TMA stores of the role have read their buffers, `s` among them.
    Await {
        /// The accumulator or buffer.
        value: Value,
        /// How many may still be pending.
        pending: u32,
        /// Register tiles that are computed before the wait: otherwise the assembler may move their computation after it,
        /// and nothing overlaps with the products: `await o, 0 after l, m`.
        after: Vec<Value>,
    },
    /// `signal s[i]`, `await s[i]`: blocks of one launch exchange data through scratch memory. A block waits only for those of
    /// lower index in the grid, which start first.
    Signal {
        /// What is done.
        op: SignalOp,
        /// A tensor of signals.
        signals: Value,
        /// Which of them.
        index: Expr,
    },
    /// `ordered { .. }`: statements of a loop of a role with replicas that are executed one after the other, in the order of the
    /// iterations.
    Ordered {
        /// What they do.
        body: Block,
    },
    /// `role NAME warps n replicas m registers r { .. }`: adjacent roles run side by side, each on its own warps.
    Role {
        /// Name, for people and profilers.
        name: String,
        /// Warps of this role; of each replica.
        warps: Expr,
        /// The number of groups of warps that execute the iterations of its loop alternately; `None`: one group.
        replicas: Option<Expr>,
        /// Registers per thread of this role.
        registers: Option<Expr>,
        /// What it does.
        body: Block,
    },
}
