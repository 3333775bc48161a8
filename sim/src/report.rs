//! What the simulator says when a program is wrong: one error, with both sides where there are two.

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
    /// A load of shared, local or global memory that nobody wrote.
    Uninitialised,
    /// A value that depends on an undefined register reaches memory, an address or a branch.
    Undefined,
    /// Two accesses to one word that nothing orders, one of them a write.
    Race,
    /// Part of a warp reaches an instruction that needs all of it.
    Divergence,
    /// Nobody can continue.
    Deadlock,
    /// The instruction budget is spent.
    Fuel,
    /// Ended from outside, through [`Progress::cancel`](crate::Progress::cancel).
    Cancelled,
    /// `trap`.
    Trap,
    /// An instruction used against its rules (barrier number, membermask, byte counts).
    Invalid,
}

/// What is after a report, where errors of one kind have different ways out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Race: nothing makes one of the threads wait for the other.
    Unordered,
    /// Race: the other thread has exited, and was at none of the barriers that came after.
    Exited,
    /// Race: nobody has waited for a copy of `cp.async`, or others do not know of it.
    CopyPending,
    /// Race: the thread has not seen the phase end of the mbarrier that counts a bulk copy.
    LoadPending,
    /// Race: nobody has waited for the group of a bulk copy from shared memory.
    StorePending,
    /// Race: the warp has not waited for an asynchronous product.
    ProductPending,
    /// Race: ordered, but no `wgmma.fence` is in front of a product.
    ProductFence,
    /// Race: ordered, but no `fence.proxy.async` is in between.
    ProxyFence,
    /// Race: as before, where `cp.async` wrote and a product reads. [`Allowance::CopyProxy`] lets it pass.
    CopyProxy,
    /// Race: no fence publishes the initialisation of an mbarrier.
    InitFence,
    /// Race: lanes of a warp count on running in step.
    Lockstep,
    /// Race: with a grid in front of this one.
    GridWait,
    /// Undefined value: an element of a vector load that nobody wrote.
    Unwritten,
    /// Divergence: lanes have exited in front of an instruction of the whole warp.
    LanesExited,
    /// Divergence: a branch marked uniform.
    UniformBranch,
    /// Divergence: the four warps of a group must execute its products alike.
    Warpgroup,
    /// Divergence: an operand that lanes must share.
    LanesDiffer,
    /// Deadlock: a flag in memory.
    Flag,
    /// Deadlock: the phase of an mbarrier.
    Phase,
    /// Deadlock: the barrier of the cluster.
    Cluster,
    /// Deadlock: registers for `setmaxnreg`.
    Registers,
    /// Deadlock: lanes of a membermask.
    Membermask,
}

/// An error that a run may be told to let pass: the PTX ISA has a rule, shipped compilers break it, and the hardware that they
/// are used on is seen to do what they expect. What passes is listed in [`Counters::allowed`](crate::Counters::allowed).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Allowance {
    /// `wgmma` reads shared memory that `cp.async` wrote, ordered, without a `fence.proxy.async` in between ([`Cause::CopyProxy`]).
    CopyProxy,
}

impl Allowance {
    /// All of them.
    pub const ALL: [Allowance; 1] = [Allowance::CopyProxy];

    /// The name that requests it.
    pub fn name(self) -> &'static str {
        match self {
            Allowance::CopyProxy => "cp-async-proxy",
        }
    }

    /// What it lets pass, and why a rule says otherwise.
    pub fn doc(self) -> &'static str {
        match self {
            Allowance::CopyProxy => {
                "`wgmma` reads shared memory through the async proxy. Data that `cp.async` wrote needs a `fence.proxy.async` between its wait and \
                 the product (PTX ISA, \"Async proxy\"). Compilers that are shipped leave the fence out, Triton's attention for one."
            }
        }
    }

    /// The errors that it lets pass.
    pub fn cause(self) -> Cause {
        match self {
            Allowance::CopyProxy => Cause::CopyProxy,
        }
    }
}

/// Which memory an address is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Of the block, or of the blocks of its cluster one after the other.
    Shared,
    /// Of the thread.
    Local,
    /// Of the device.
    Global,
}

/// Where an instruction stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Line in the PTX text, from 1.
    pub ptx_line: u32,
    /// Its first column there and the one after its end, from 1; far away if it ends in another line.
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
    /// What is after it, where that is more than the kind.
    pub cause: Option<Cause>,
    /// What happened, in words.
    pub message: String,
    /// The instruction at fault, if it is one.
    pub place: Option<Place>,
    /// The other side of a race.
    pub other: Option<Place>,
    /// The block of the other side, if it is another one.
    pub other_block: Option<[u32; 3]>,
    /// Block (x, y, z).
    pub block: [u32; 3],
    /// Address: an offset in shared or local memory, else a generic address.
    pub address: Option<u64>,
    /// The memory that it is in, where that does not follow from the instruction alone.
    pub memory: Option<Memory>,
}

impl Report {
    /// An error that belongs to no instruction.
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
