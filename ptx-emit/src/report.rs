//! What the emitter did, as data: access widths and why, shared-memory wavefronts, instruction counts.

use tilec_ir::diag::Span;

/// The report of one kernel.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Report {
    /// Every copy, in program order.
    pub copies: Vec<CopyReport>,
    /// Every kind of shared-memory access, in program order.
    pub shared: Vec<SharedReport>,
    /// Shared memory of a block, bytes.
    pub smem_bytes: u64,
    /// What lies where in it.
    pub tiles: Vec<TileReport>,
    /// Products, in program order.
    pub mma: Vec<MmaReport>,
    /// Slots of the deepest channel; 1: not pipelined.
    pub stages: u32,
    /// Block-wide barriers in the text of the kernel, and in its innermost loops.
    pub barriers: u32,
    /// Barriers in one trip of the main loop.
    pub barriers_in_loop: u32,
    /// Registers per thread that the kernel is estimated to need.
    pub estimated_registers: u32,
}

/// A copy.
#[derive(Clone, PartialEq, Debug)]
pub struct CopyReport {
    /// Source place.
    pub span: Span,
    /// What is read, as text.
    pub src: String,
    /// What is written, as text.
    pub dst: String,
    /// Bytes of one global access of a thread; 0: none.
    pub global_bytes: u32,
    /// Bytes of one shared access of a thread; 0: none.
    pub shared_bytes: u32,
    /// Accesses per thread.
    pub accesses: u32,
    /// Share of the bytes of the global sectors touched by one full warp access that are used, 0 to 1.
    pub sector_use: f64,
    /// The tensor; empty: none.
    pub tensor: String,
    /// Of an access to global memory, lane by lane of a warp, for its first one: which of the rows it is in, counted as they come, and the byte of the
    /// row where it begins, with rows that begin at multiples of a sector.
    pub lanes: Vec<(u64, u64)>,
    /// What kept the access from being 16 bytes wide; empty if it is.
    pub why: String,
    /// In the innermost loop.
    pub in_loop: bool,
}

/// Where a buffer or a channel lies in shared memory.
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

/// A shared-memory access by a warp.
#[derive(Clone, PartialEq, Debug)]
pub struct SharedReport {
    /// Source place.
    pub span: Span,
    /// Buffer or channel.
    pub buffer: String,
    /// Store (as against load).
    pub store: bool,
    /// Bytes per thread.
    pub access_bytes: u32,
    /// Wavefronts that a conflict-free access of this width takes.
    pub ideal_wavefronts: u32,
    /// Wavefronts that it takes.
    pub wavefronts: u32,
    /// What each bit of the lane's number adds (xor) to the byte address.
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

/// A product.
#[derive(Clone, PartialEq, Debug)]
pub struct MmaReport {
    /// Source place.
    pub span: Span,
    /// Atom.
    pub atom: String,
    /// Instructions per warp.
    pub per_warp: u32,
    /// Groups of warps that share the reduction.
    pub k_warps: u32,
    /// Products that are summed up before the sum is added to an accumulator, if not all of a reduction.
    pub promoted: Option<u64>,
    /// In the innermost loop.
    pub in_loop: bool,
}
