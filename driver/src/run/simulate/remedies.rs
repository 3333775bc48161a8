//! Remedies for reports of the simulator, chosen by the report's cause, not by its kind alone.

use std::borrow::Cow;
use tilec_sim::{Allowance, Cause, Memory as Space, Place, Report, ReportKind};

const MORE_FUEL: &str = "`--fuel N` gives each block more instructions";

const WRITE_FIRST: &str = "some thread must write it first, with a barrier between";

/// How to permit a violation on which shipped compilers rely.
pub(super) fn allowance(report: &Report) -> Option<String> {
    let allowance = match report.cause {
        Some(Cause::CopyProxy) if report.kind == ReportKind::Race => Allowance::CopyProxy,
        _ => return None,
    };
    let name = allowance.name();
    Some(format!("`--allow {name}` makes it a warning, because some compilers rely on it (docs/launch-contract.md)"))
}

/// The remedy for a report.
pub(super) fn way_out(report: &Report, from_tile: bool) -> Option<Cow<'static, str>> {
    match report.kind {
        ReportKind::Race if !from_tile => race(report),
        _ => other_way_out(report, from_tile).map(Cow::Borrowed),
    }
}

fn other_way_out(report: &Report, from_tile: bool) -> Option<&'static str> {
    if from_tile {
        return match report.kind {
            ReportKind::Race if report.other_block.is_some() => Some(
                "blocks run in any order: no element may be written by one block and accessed by another: begin the window at every index of \
                     the grid, use an atomic copy (`add` after the copy), or let one block loop over what the blocks share",
            ),
            ReportKind::OutOfBounds => Some(
                "a dimension that `check` leaves out is not tested: test it, or keep the promise in `where`; if the program \
                 does neither, this is a bug of tilec",
            ),
            ReportKind::Race => Some(
                "if the program has overlapping windows of a tensor, indices that store a row twice, or strides that give two elements one address, that is the race; if not, the compiler should have ordered the two accesses: it is a bug of tilec, please report it",
            ),
            ReportKind::Uninitialised | ReportKind::Undefined => Some(
                "give every register tile and buffer a value on every path that reads it; if the program does, it is a bug of tilec, \
                 please report it",
            ),
            ReportKind::Fuel => Some(MORE_FUEL),
            ReportKind::Launch | ReportKind::Cancelled => None,
            _ => {
                Some("the compiler should have proved that this cannot happen: it is a bug of tilec, please report it")
            }
        };
    }
    match report.kind {
        ReportKind::OutOfBounds => Some("check the predicate that should have disabled this access, and its address"),
        ReportKind::ReadOnly => Some(
            "`access` in the launch contract says which tensors the kernel writes; it never writes the addresses in an array of pointers",
        ),
        ReportKind::Misaligned => Some(match report.memory {
            Some(Space::Shared | Space::Local) => "check how the address is computed, and the `.align` of the variable",
            _ => {
                "check how the address is computed; if it is the start of a tensor in global memory, its `align` in the \
                 launch contract is too small for this access"
            }
        }),
        ReportKind::Uninitialised => Some(WRITE_FIRST),
        ReportKind::Undefined if report.cause == Some(Cause::Unwritten) => Some(WRITE_FIRST),
        ReportKind::Undefined => Some("give the register a value on every path to this instruction"),
        ReportKind::Divergence => Some(match report.cause {
            Some(Cause::LanesExited) => "let all lanes of the warp stay until after this instruction",
            Some(Cause::UniformBranch) => "leave `.uni` out, or branch uniformly in the warp",
            Some(Cause::Warpgroup) => "let the four warps of a group take the same path through `wgmma` and its waits",
            Some(Cause::LanesDiffer) => "compute this operand from values that are the same in all lanes",
            _ => "move the instruction out of the branch, or branch uniformly in the warp",
        }),
        ReportKind::Deadlock => Some(match report.cause {
            Some(Cause::Flag) => {
                "another thread must set the flag, and its block must be resident at the same time as the waiting one"
            }
            Some(Cause::Phase) => {
                "a phase ends with the last of the arrivals that `mbarrier.init` counts and the last of the bytes that `expect_tx` \
                 announces; a wait must name the phase, or its parity, that ends next"
            }
            Some(Cause::Cluster) => "every thread of the cluster must arrive, or exit",
            Some(Cause::Registers) => "warps must release registers by `setmaxnreg.dec` before others can get them",
            Some(Cause::Membermask) => "every lane of the membermask must reach this instruction, with the same mask",
            _ => "every thread that a barrier counts must arrive",
        }),
        ReportKind::Fuel => Some(MORE_FUEL),
        ReportKind::Launch | ReportKind::Cancelled | ReportKind::Trap | ReportKind::Invalid | ReportKind::Race => None,
    }
}

/// How to wait for an asynchronous operation. Which side of a race comes first is chance, except within one thread: the
/// text is the same for both orders.
fn wait(cause: Cause, one_thread: bool) -> Cow<'static, str> {
    let (what, how, then) = match cause {
        Cause::CopyPending => (
            "copy",
            "`cp.async.wait_group` or `cp.async.wait_all`, by the thread that copies",
            ", and a `bar.sync` after it",
        ),
        Cause::StorePending => (
            "copy",
            "`cp.async.bulk.commit_group` and `cp.async.bulk.wait_group` (with `.read` if only its source is used again), by the thread \
             that copies",
            ", and a `bar.sync` after it",
        ),
        Cause::ProductPending => (
            "product",
            "`wgmma.commit_group` and `wgmma.wait_group`, by its warps",
            ", and a barrier after it if another warp accesses",
        ),
        _ => ("copy", "`mbarrier.try_wait`, until the phase of the mbarrier that counts it has ended", ""),
    };
    let text = format!("wait in front of the access for the {what}: {how}");
    match one_thread {
        true => text.into(),
        false => {
            let other = "if the access must come first, put a `bar.sync` or an mbarrier between the two";
            format!("{text}{then}; {other}").into()
        }
    }
}

/// The remedy for a race.
fn race(report: &Report) -> Option<Cow<'static, str>> {
    let text = match report.cause {
        _ if report.other_block.is_some() => {
            "blocks run in any order and no barrier orders them: give each its own elements, use atomics, or let one set a flag after \
             a fence and the other read it before one"
        }
        _ if is_one_write(report) => {
            "several threads wrote to one address by one instruction; only lanes of one warp may do so, with the same value: let one \
             thread write, or use an atomic; a `bar.sync` helps only if the two writes are in different iterations of a loop"
        }
        Some(cause @ (Cause::CopyPending | Cause::LoadPending | Cause::StorePending | Cause::ProductPending)) => {
            return Some(wait(cause, is_one_thread(report)));
        }
        Some(Cause::ProductFence) => {
            "put a `wgmma.fence` in front of the product, after the instructions that use its registers"
        }
        Some(Cause::ProxyFence) => {
            "put a `fence.proxy.async` after the ordinary write, in front of the barrier or arrival that orders it before the other access"
        }
        Some(Cause::CopyProxy) => {
            "put a `fence.proxy.async` after the `cp.async.wait_group`, in front of the barrier that orders it before the other access"
        }
        Some(Cause::InitFence) => {
            "put a `fence.mbarrier_init.release.cluster`, or `fence.proxy.async`, after `mbarrier.init`, in front of the barrier that \
             orders it before the other accesses"
        }
        Some(Cause::Lockstep) => {
            "put `bar.warp.sync` (`__syncwarp()`) between reading and writing, and between writing and reading, or exchange values by \
             `shfl.sync`"
        }
        Some(Cause::GridWait) => "put a `griddepcontrol.wait` in front of the first access to global memory",
        Some(Cause::Exited) => {
            "let the other thread stay until a barrier that both reach: later barriers do not order its accesses before it exits"
        }
        _ if report.place.as_ref().is_some_and(ends_block) => {
            "let all blocks of the cluster synchronise before the end: `barrier.cluster.arrive` after the access, `barrier.cluster.wait` \
             in front of `ret`"
        }
        _ => {
            "put a `bar.sync` between the two, or let the first thread arrive at an mbarrier for which the other waits"
        }
    };
    Some(text.into())
}

/// Whether both sides of a race are of one thread.
pub(super) fn is_one_thread(report: &Report) -> bool {
    match (&report.place, &report.other) {
        (Some(this), Some(other)) => report.other_block.is_none() && this.thread == other.thread,
        _ => true,
    }
}

/// Whether the two sides of a race are ordered, and the message names what else is missing.
pub(super) fn is_ordered(report: &Report) -> bool {
    matches!(report.cause, Some(Cause::ProxyFence | Cause::CopyProxy | Cause::InitFence | Cause::Lockstep))
}

/// Whether a thread ends with the instruction, and its block with it.
pub(super) fn ends_block(place: &Place) -> bool {
    access(&place.instruction) == "end of the block"
}

/// Whether both sides of a race are writes of one instruction.
fn is_one_write(report: &Report) -> bool {
    match (&report.place, &report.other) {
        (Some(this), Some(other)) => {
            (this.ptx_line, this.columns) == (other.ptx_line, other.columns)
                && matches!(access(&this.instruction), "write" | "asynchronous copy")
                && !is_one_thread(report)
        }
        _ => false,
    }
}

/// The access of an opcode, as a noun.
pub(crate) fn access(instruction: &str) -> &'static str {
    let mut words = instruction.split('.');
    match words.next().unwrap_or("") {
        "mbarrier" => match words.next().unwrap_or("") {
            "init" => "initialisation of an mbarrier",
            "inval" => "invalidation of an mbarrier",
            "arrive" | "arrive_drop" => "arrival at an mbarrier",
            "test_wait" | "try_wait" => "wait at an mbarrier",
            _ => "operation on an mbarrier",
        },
        "ld" | "ldmatrix" | "ldu" => "read",
        "st" => "write",
        "cp" => "asynchronous copy",
        "atom" | "red" => "atomic update",
        "wgmma" => "wgmma product",
        "ret" | "exit" => "end of the block",
        _ => "access",
    }
}
