//! Error reports of the simulator: one error, with both accesses for a race.

use std::fmt;

/// The kind of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReportKind {
    /// The launch does not fit the kernel: block, shared memory, parameters.
    Launch,
    /// An access outside every allocation, array or window, or to a gap between elements.
    OutOfBounds,
    /// A store to memory that the launch only reads.
    ReadOnly,
    /// An address that is not a multiple of the access size.
    Misaligned,
    /// A load of shared, local or global memory that was never written.
    Uninitialised,
    /// A value computed from an undefined register is stored, used as an address, or decides a branch.
    Undefined,
    /// Two unordered accesses to one word, at least one of them a write.
    Race,
    /// Only part of a warp reaches an instruction that needs all of it.
    Divergence,
    /// Nobody can continue.
    Deadlock,
    /// The instruction budget is exhausted.
    Fuel,
    /// Cancelled by another thread through [`Progress::cancel`](crate::Progress::cancel).
    Cancelled,
    /// `trap`.
    Trap,
    /// An instruction used against its rules (barrier number, membermask, byte counts).
    Invalid,
}

/// The cause of an error, where errors of one kind have different remedies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Race: no synchronisation orders the two threads.
    Unordered,
    /// Race: the other thread has exited and took part in none of the later barriers.
    Exited,
    /// Race: a `cp.async` was not waited for, or the wait is not ordered before the access.
    CopyPending,
    /// Race: the thread has not observed the end of the mbarrier phase that counts a bulk copy.
    LoadPending,
    /// Race: the bulk group of a copy from shared memory was not waited for.
    StorePending,
    /// Race: the warp has not waited for a wgmma.
    ProductPending,
    /// Race: ordered, but no `wgmma.fence` precedes a wgmma.
    ProductFence,
    /// Race: ordered, but without a `fence.proxy.async` in between.
    ProxyFence,
    /// Race: as `ProxyFence`, where `cp.async` wrote and a wgmma reads. [`Allowance::CopyProxy`] permits it.
    CopyProxy,
    /// Race: no fence publishes the initialisation of an mbarrier.
    InitFence,
    /// Race: the code relies on the lanes of a warp running in lockstep.
    Lockstep,
    /// Race: with the preceding grid, without a `griddepcontrol.wait`.
    GridWait,
    /// Undefined value: an element of a vector load that was never written.
    Unwritten,
    /// Divergence: lanes exited before an instruction that needs the whole warp.
    LanesExited,
    /// Divergence: a branch marked uniform.
    UniformBranch,
    /// Divergence: the four warps of a warpgroup must execute wgmma together.
    Warpgroup,
    /// Divergence: an operand that must be the same in all lanes.
    LanesDiffer,
    /// Deadlock: waits for a flag in memory.
    Flag,
    /// Deadlock: waits for the phase of an mbarrier.
    Phase,
    /// Deadlock: waits at the barrier of the cluster.
    Cluster,
    /// Deadlock: waits for registers at `setmaxnreg`.
    Registers,
    /// Deadlock: waits for lanes of a membermask.
    Membermask,
}

/// An error that a run may permit: shipped compilers break a rule of the PTX ISA, and the hardware is observed to do
/// what they expect. Permitted errors are listed in [`Counters::allowed`](crate::Counters::allowed).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Allowance {
    /// `wgmma` reads shared memory that `cp.async` wrote, ordered, without a `fence.proxy.async` in between ([`Cause::CopyProxy`]).
    CopyProxy,
}

impl Allowance {
    /// All of them.
    pub const ALL: [Allowance; 1] = [Allowance::CopyProxy];

    /// The name that selects it in options.
    pub fn name(self) -> &'static str {
        match self {
            Allowance::CopyProxy => "cp-async-proxy",
        }
    }

    /// What it permits, and why a rule forbids it.
    pub fn doc(self) -> &'static str {
        match self {
            Allowance::CopyProxy => {
                "`wgmma` reads shared memory through the async proxy. Data that `cp.async` wrote needs a `fence.proxy.async` between its wait and \
                 the product (PTX ISA, \"Async proxy\"). Compilers that are shipped leave the fence out, Triton's attention for one."
            }
        }
    }

    /// The cause of the errors that it permits.
    pub fn cause(self) -> Cause {
        match self {
            Allowance::CopyProxy => Cause::CopyProxy,
        }
    }
}

/// Which memory an address is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Shared memory of the block; in a cluster, of its blocks one after the other.
    Shared,
    /// Of the thread.
    Local,
    /// Of the device.
    Global,
}

/// The position of an instruction and the thread that executed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Line in the PTX text, from 1.
    pub ptx_line: u32,
    /// Its first column there and the one after its end, from 1; a large number if it ends in another line.
    pub columns: [u32; 2],
    /// Opcode with its modifiers.
    pub instruction: String,
    /// File and line of `.loc`.
    pub source: Option<(String, u32)>,
    /// Index of the thread in its block (x, y, z).
    pub thread: [u32; 3],
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.thread;
        write!(f, "`{}` at PTX line {}", self.instruction, self.ptx_line)?;
        if let Some((file, line)) = &self.source {
            write!(f, " ({file}:{line})")?;
        }
        write!(f, " by thread ({x}, {y}, {z})")
    }
}

/// An error of an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// What kind of error.
    pub kind: ReportKind,
    /// The cause, where the kind has several.
    pub cause: Option<Cause>,
    /// What happened, in words.
    pub message: String,
    /// The instruction that failed, if it is one.
    pub place: Option<Place>,
    /// The other side of a race.
    pub other: Option<Place>,
    /// The block of the other side, if it is another one.
    pub other_block: Option<[u32; 3]>,
    /// Block (x, y, z).
    pub block: [u32; 3],
    /// Address: an offset in shared or local memory, else a generic address.
    pub address: Option<u64>,
    /// The memory space, where the instruction alone does not determine it.
    pub memory: Option<Memory>,
}

impl Report {
    /// An error without an instruction.
    pub(crate) fn launch(message: impl Into<String>) -> Box<Report> {
        Box::new(Report {
            kind: ReportKind::Launch,
            cause: None,
            message: message.into(),
            place: None,
            other: None,
            other_block: None,
            block: [0; 3],
            address: None,
            memory: None,
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            ReportKind::Launch => "launch",
            ReportKind::OutOfBounds => "out of bounds",
            ReportKind::ReadOnly => "read only",
            ReportKind::Misaligned => "misaligned",
            ReportKind::Uninitialised => "uninitialised",
            ReportKind::Undefined => "undefined value",
            ReportKind::Race => "race",
            ReportKind::Divergence => "divergence",
            ReportKind::Deadlock => "deadlock",
            ReportKind::Fuel => "out of fuel",
            ReportKind::Cancelled => "cancelled",
            ReportKind::Trap => "trap",
            ReportKind::Invalid => "invalid",
        };
        write!(f, "{kind}: {}", self.message)?;
        if let Some(place) = &self.place {
            let [x, y, z] = self.block;
            write!(f, "\n  {place} of block ({x}, {y}, {z})")?;
        }
        if let Some(other) = &self.other {
            write!(f, "\n  against {other}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Report {}
