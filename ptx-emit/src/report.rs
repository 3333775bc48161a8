//! The emitter's report: access widths and their reasons, shared-memory wavefronts, instruction counts.

use std::collections::BTreeMap;
use tilec_ir::bits::Bits;
use tilec_ir::diag::Span;
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
    pub cluster_barriers: Vec<String>,
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
    pub what: String,
    /// The first byte of the first one.
    pub offset: u64,
    /// How many there are, of 8 bytes each.
    pub count: u64,
}

/// A shared-memory access by a warp.
#[derive(Clone, PartialEq, Debug)]
pub struct SharedReport {
    /// Source place.
    pub span: Span,
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
    /// In the innermost loop.
    pub in_loop: bool,
}

impl SharedReport {
    /// Extra wavefronts.
    pub fn conflicts(&self) -> u32 {
        self.wavefronts.saturating_sub(self.ideal_wavefronts)
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
