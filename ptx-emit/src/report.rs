//! The emitter's report: access widths and their reasons, shared-memory wavefronts, instruction counts.

use std::collections::BTreeMap;
use std::fmt;
use tilec_ir::bits::Bits;
use tilec_ir::diag::{Span, counted};
use tilec_ir::entities::Stmt;
use tilec_ir::layout::hardware::{Descriptor, Exchange};

/// The report of one kernel.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Report {
    /// Every copy, in program order.
    pub copies: Vec<CopyReport>,
    /// Every kind of shared-memory access, in program order.
    pub shared: Vec<SharedReport>,
    /// Shared memory of a block, bytes.
    pub smem_bytes: u64,
    /// The buffers and channels in it.
    pub tiles: Vec<TileReport>,
    /// The mbarriers in it.
    pub mbarriers: Vec<MbarrierReport>,
    /// Barriers of all blocks of a cluster, in program order: what each is for.
    pub cluster_barriers: Vec<ClusterBarrier>,
    /// Copies by TMA, in program order.
    pub boxes: Vec<BoxReport>,
    /// Operands of wgmma products in shared memory, in program order.
    pub operands: Vec<OperandReport>,
    /// Products, in program order.
    pub mma: Vec<MmaReport>,
    /// Slots of the deepest channel; 1: not pipelined.
    pub stages: u32,
    /// Block-wide barriers in the text of the kernel.
    pub barriers: u32,
    /// Of these, those inside of loops.
    pub barriers_in_loop: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Registers per thread that the kernel is estimated to need.
    pub estimated_registers: u32,
    /// A lower bound of the half issue slots that a statement's instructions take in a warp per execution. The
    /// assembler fuses some instructions.
    pub half_slots: BTreeMap<Stmt, u32>,
    /// A lower bound of the additions, products and multiply-adds of f32 among them.
    pub f32_arithmetic: BTreeMap<Stmt, u32>,
}

/// A copy.
#[derive(Clone, PartialEq, Debug)]
pub struct CopyReport {
    /// Source place.
    pub span: Span,
    /// The source, as text.
    pub src: String,
    /// The destination, as text.
    pub dst: String,
    /// Bytes of one global access of a thread; 0: none.
    pub global_bytes: u32,
    /// Bytes of one shared access of a thread; 0: none.
    pub shared_bytes: u32,
    /// Accesses per thread.
    pub accesses: u32,
    /// Share of the bytes of the global sectors touched by one full warp access that are used, 0 to 1.
    pub sector_use: f64,
    /// The same, if runs of a dimension of several modes are as long as the window.
    pub sector_use_of_runs: f64,
    /// Sectors that it touches.
    pub sectors: u32,
    /// The tensor; empty: none.
    pub tensor: String,
    /// For the first access to global memory, for each lane of a warp: its row, numbered in order, and the byte of the
    /// row at which its access begins. Rows begin at multiples of a sector.
    pub lanes: Vec<(u64, u64)>,
    /// Adjacent elements of the window are gathered: each counts a sector of its own.
    pub gathered: bool,
    /// It accesses one element, as large as it can be.
    pub single: bool,
    /// What kept the access from being 16 bytes wide; empty if it is.
    pub why: String,
    /// In the innermost loop.
    pub in_loop: bool,
}

/// Where a buffer or a channel is in shared memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TileReport {
    /// Buffer or channel.
    pub name: String,
    /// Its first byte, in its first slot.
    pub offset: u64,
    /// Bytes of one slot.
    pub bytes: u64,
    /// Slots; 1 for a buffer.
    pub slots: u64,
    /// Bytes from one slot to the next.
    pub stride: u64,
}

/// Adjacent mbarriers of one kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MbarrierReport {
    /// What completes a phase of them, and who waits for it.
    pub kind: MbarrierKind,
    /// The first byte of the first one.
    pub offset: u64,
    /// How many there are, of 8 bytes each.
    pub count: u64,
}

/// What an mbarrier is for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MbarrierKind {
    /// A slot of these channels is full: `wait` waits for the arrivals, and for the bytes of TMA loads.
    Full {
        /// The channels that share the slots.
        channels: Vec<String>,
        /// Slots of each.
        slots: u64,
        /// Arrivals of a phase.
        arrivals: u64,
    },
    /// A slot of these channels is empty: `acquire` waits for the arrivals.
    Empty {
        /// The channels that share the slots.
        channels: Vec<String>,
        /// Slots of each.
        slots: u64,
        /// Arrivals of a phase.
        arrivals: u64,
    },
    /// It is the turn of the next replica of a role at an `ordered` statement.
    Turn {
        /// Arrivals of the replica whose turn is over.
        arrivals: u64,
    },
    /// All blocks of the cluster have stored their partial results of rows.
    PartialRows {
        /// Bytes of a phase.
        bytes: u64,
    },
    /// A block of the cluster has passed its tile to the last one.
    PassedTile {
        /// The distributed shared memory.
        memory: String,
        /// Bytes of a phase.
        bytes: u64,
    },
}

impl fmt::Display for MbarrierKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |channels: &[String], slots: u64, arrivals: u64| {
            let names: Vec<String> = channels.iter().map(|name| format!("`{name}`")).collect();
            format!("{}, {}: {}", names.join(", "), number(slots, "slot"), number(arrivals, "arrival"))
        };
        match self {
            MbarrierKind::Full { channels, slots, arrivals } => write!(
                f,
                "`full` of {} and the bytes of TMA loads complete a phase; `wait` waits for it",
                of(channels, *slots, *arrivals)
            ),
            MbarrierKind::Empty { channels, slots, arrivals } => {
                write!(f, "`empty` of {} complete a phase; `acquire` waits for it", of(channels, *slots, *arrivals))
            }
            MbarrierKind::Turn { arrivals } => write!(
                f,
                "`ordered`: {} of the replica whose turn is over complete a phase; the next replica waits for it",
                number(*arrivals, "arrival")
            ),
            MbarrierKind::PartialRows { bytes } => write!(
                f,
                "partial results of rows: {} that the blocks of the cluster store complete a phase; the barrier of the statement waits for it",
                number(*bytes, "byte")
            ),
            MbarrierKind::PassedTile { memory, bytes } => write!(
                f,
                "tiles of `{memory}` that blocks of the cluster pass to the last one: `signal` and {} of `st.async` complete the phase; `await` waits for it",
                number(*bytes, "byte")
            ),
        }
    }
}

/// What a barrier of all blocks of a cluster is for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ClusterBarrier {
    /// All blocks have begun.
    Begun,
    /// The mbarriers of all blocks are initialised.
    Initialised,
    /// All blocks have begun, before the first store to another block.
    BegunBeforeStore,
    /// Mbarriers are initialised, before tiles are stored to another block.
    InitialisedBeforeTiles,
    /// A `barrier` of the source or of a pass: all blocks have stored what the others load.
    Stored,
    /// No block ends while others may store to its memory.
    EndOfStores,
    /// No block ends while others may load into its slots.
    EndOfLoads,
}

impl fmt::Display for ClusterBarrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ClusterBarrier::Begun => "at the start: all blocks have begun",
            ClusterBarrier::Initialised => "at the start: the mbarriers of all blocks are initialised",
            ClusterBarrier::BegunBeforeStore => "before the first store to another block: all blocks have begun",
            ClusterBarrier::InitialisedBeforeTiles => {
                "before tiles are stored to another block: its mbarriers are initialised"
            }
            ClusterBarrier::Stored => "`barrier`: all blocks have stored what the others load",
            ClusterBarrier::EndOfStores => "at the end: no block leaves while others may store to its memory",
            ClusterBarrier::EndOfLoads => "at the end: no block leaves while others may load into its slots",
        })
    }
}

/// A number of things, in words.
fn number(n: u64, what: &str) -> String {
    counted(usize::try_from(n).unwrap_or(usize::MAX), what)
}

/// A shared-memory access by a warp.
#[derive(Clone, PartialEq, Debug)]
pub struct SharedReport {
    /// Source place.
    pub span: Span,
    /// The statement; `None`: of a report that was put together by hand.
    pub stmt: Option<Stmt>,
    /// Accesses of a thread.
    pub accesses: u32,
    /// Buffer or channel.
    pub buffer: String,
    /// A store; else a load.
    pub store: bool,
    /// Bytes per thread.
    pub access_bytes: u32,
    /// Wavefronts that a conflict-free access of this width takes.
    pub ideal_wavefronts: u32,
    /// Wavefronts that it takes.
    pub wavefronts: u32,
    /// XOR contribution of each bit of the lane number to the byte address.
    pub lanes: Vec<u64>,
    /// Indices in registers name the elements: `wavefronts` are the least, and `lanes` is empty.
    pub by_index: bool,
    /// In the innermost loop.
    pub in_loop: bool,
}

impl SharedReport {
    /// Extra wavefronts of one access.
    pub fn conflicts(&self) -> u32 {
        self.wavefronts.saturating_sub(self.ideal_wavefronts)
    }

    /// Extra wavefronts of all accesses of a warp.
    pub fn all_conflicts(&self) -> u32 {
        self.accesses.saturating_mul(self.conflicts())
    }
}

/// A copy by TMA: what a box moves, and where the boxes of a tile are.
#[derive(Clone, PartialEq, Debug)]
pub struct BoxReport {
    /// Source place.
    pub span: Span,
    /// The tensor.
    pub tensor: String,
    /// Buffer or channel.
    pub buffer: String,
    /// A store; else a load.
    pub store: bool,
    /// Size of an element.
    pub elem: Bits,
    /// Extents of a box in elements, contiguous dimension first. For a tile that blocks share: of one block's part.
    pub extents: Vec<u64>,
    /// The swizzle mode.
    pub exchange: Exchange,
    /// For each box of the tile: its first element, by the tile's dimensions, and its first byte in the tile.
    pub places: Vec<(Vec<u64>, u64)>,
    /// Blocks of the cluster that each request a part of every box; 1: the block requests all of it.
    pub blocks: u64,
}

/// An operand in shared memory of a wgmma product.
#[derive(Clone, PartialEq, Debug)]
pub struct OperandReport {
    /// Source place.
    pub span: Span,
    /// Whether it is the instruction's B, whose lines are columns; else it is A, whose lines are rows.
    pub second: bool,
    /// Buffer or channel.
    pub buffer: String,
    /// Atom.
    pub atom: String,
    /// Size of an element.
    pub elem: Bits,
    /// Its descriptor.
    pub descriptor: Descriptor,
    /// Lines and reduction extent of one instruction, in elements.
    pub extents: (u64, u64),
    /// Bytes that each step along the reduction adds to the descriptor's address.
    pub steps: Vec<u64>,
    /// Bytes that each repetition along the lines adds.
    pub repeats: Vec<u64>,
    /// Bytes that each bit of the warpgroup's number adds.
    pub groups: Vec<u64>,
}

/// A product.
#[derive(Clone, PartialEq, Debug)]
pub struct MmaReport {
    /// Source place.
    pub span: Span,
    /// Atom.
    pub atom: String,
    /// Instructions per warp.
    pub per_warp: u32,
    /// Number of warp groups that share the reduction.
    pub k_warps: u32,
    /// Products in a partial sum before it is added to the accumulator; `None`: the whole reduction.
    pub promoted: Option<u64>,
    /// In the innermost loop.
    pub in_loop: bool,
}
