//! The executable form of a module: names are resolved to register slots, modifiers to functions, labels to indices.
//!
//! Each warp has three register files: 32-bit slots (which also hold 8 and 16-bit values, zero-extended), 64-bit slots
//! and predicates (one bit per lane). Immediates and special registers are slots too, filled when a warp starts, so
//! that every source operand is read the same way. Slot 0 of each file is a sink; predicate 1 is true in every lane.

pub(crate) mod bulk;
pub(crate) mod convert;
pub(crate) mod lanewise;
pub(crate) mod mbarrier;
pub(crate) mod mma;
mod op;
mod operand;
pub(crate) mod types;
pub(crate) mod wgmma;
pub(crate) mod wmma;

pub(crate) use op::*;
pub(crate) use operand::*;
pub(crate) use types::*;

use crate::program::bulk::{Bulk, Remote};
use crate::program::convert::Map;
use crate::program::lanewise::Function;
use crate::program::mbarrier::MBar;
use crate::program::mma::Mma;
use crate::program::types::{R, Space};
use crate::program::wgmma::Wgmma;
use std::collections::HashMap;

/// An address further from a variable than this is not attributed to it.
const FAR: u64 = 1 << 32;

/// One instruction.
#[derive(Clone, Debug)]
pub(crate) struct Inst {
    pub(crate) op: Op,
    /// Predicate slot of the guard.
    pub(crate) guard: R,
    /// All ones to negate the guard.
    pub(crate) flip: u32,
    /// Line in the PTX text.
    pub(crate) line: u32,
    /// `.loc`: file number and line, zero if none.
    pub(crate) loc: (u32, u32),
    /// Opcode as written, for reports.
    pub(crate) name: u32,
}

/// One of the three register files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Bank {
    Words,
    Longs,
    Predicates,
}

/// A register that an instruction names, including its guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mention {
    pub(crate) slot: R,
    pub(crate) bank: Bank,
    /// It is a destination.
    pub(crate) written: bool,
}

/// A variable placed in shared, local or parameter memory.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

/// A kernel ready to run.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) params: Vec<Placed>,
    pub(crate) param_bytes: u64,
    pub(crate) max_threads: Option<[u32; 3]>,
    pub(crate) required_threads: Option<[u32; 3]>,
    /// `.minnctapersm`, `.maxnreg`.
    pub(crate) min_blocks: Option<u32>,
    pub(crate) max_registers: Option<u32>,
    /// `.reqnctapercluster`, `.explicitcluster`, `.maxclusterrank`.
    pub(crate) cluster: Option<[u32; 3]>,
    pub(crate) explicit_cluster: bool,
    pub(crate) max_cluster_rank: Option<u32>,
    /// Bytes of static shared memory, including the gaps between its variables.
    pub(crate) shared_bytes: u64,
    /// The same without the gaps, as on a device.
    pub(crate) static_bytes: u64,
    /// First byte and end of each gap, in order.
    pub(crate) gaps: Vec<(u64, u64)>,
    /// Its shared variables; dynamic ones have size 0 here, the launch gives theirs.
    pub(crate) shared_vars: Vec<(String, Placed)>,
    /// Bytes of local memory of a thread.
    pub(crate) local_bytes: u64,
    pub(crate) code: Vec<Inst>,
    /// [`Spot::columns`] of each instruction.
    pub(crate) columns: Vec<[u32; 2]>,
    /// Opcodes with modifiers, indexed by [`Inst::name`].
    pub(crate) names: Vec<String>,
    /// Slots in the three files.
    pub(crate) n32: usize,
    pub(crate) n64: usize,
    pub(crate) npred: usize,
    /// Immediates.
    pub(crate) const32: Vec<(R, u32)>,
    pub(crate) const64: Vec<(R, u64)>,
    pub(crate) specials: Vec<(R, Special)>,
    /// The predicate `%is_explicit_cluster`.
    pub(crate) clustered: Option<R>,
    /// 64-bit slots that hold the address of a byte of the block's shared memory, in the shared or generic space.
    pub(crate) shared64: Vec<(R, u64)>,
    /// Whether its blocks may wait for each other.
    pub(crate) waits: bool,
    /// Whether results may depend on the order of blocks: a block observes what others wrote, or atomics sum floats.
    pub(crate) ordered: bool,
    /// Whether it uses the async proxy: bulk copies or wgmma.
    pub(crate) beside: bool,
    /// Whether it has asynchronous copies of any kind: such kernels are executed with every `Landing`.
    pub(crate) copies: bool,
    /// For each instruction, the named 32-bit slots that are also operands of wgmma.
    pub(crate) touches: Vec<Box<[R]>>,
    /// The registers that each instruction names, with their names in the text.
    pub(crate) mentions: Vec<Box<[Mention]>>,
    pub(crate) registers: HashMap<(Bank, R), String>,
}

/// A variable of the module in global or constant memory, with its first bytes.
#[derive(Clone, Debug)]
pub(crate) struct ModuleVar {
    pub(crate) name: String,
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    /// Nonzero initial bytes, with their offsets.
    pub(crate) init: Vec<(u64, Vec<u8>)>,
    pub(crate) constant: bool,
}

/// A parsed and decoded module.
#[derive(Clone, Debug)]
pub struct Program {
    pub(crate) version: (u32, u32),
    pub(crate) target: String,
    pub(crate) files: Vec<(u32, String)>,
    pub(crate) vars: Vec<ModuleVar>,
    pub(crate) entries: Vec<Entry>,
}

impl Program {
    /// The PTX version the module requests: major and minor.
    pub fn version(&self) -> (u32, u32) {
        self.version
    }

    /// The `.target` of the module, such as `sm_70`.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// The kernels in order of the text.
    pub fn entries(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|e| e.name.as_str())
    }

    /// Sizes in bytes of the parameters of a kernel.
    pub fn params(&self, entry: &str) -> Option<Vec<u64>> {
        self.entry(entry).map(|e| e.params.iter().map(|p| p.bytes).collect())
    }

    /// First byte and size of each parameter of a kernel in its parameter memory.
    pub fn param_places(&self, entry: &str) -> Option<Vec<(u64, u64)>> {
        self.entry(entry).map(|e| e.params.iter().map(|p| (p.offset, p.bytes)).collect())
    }

    /// Bytes of a kernel's static shared memory.
    pub fn static_shared(&self, entry: &str) -> Option<u64> {
        self.entry(entry).map(|e| e.static_bytes)
    }

    /// The variable that holds byte `offset` of a kernel's shared memory, and the offset within it. Static variables
    /// are found at their own offsets; a dynamic one (`.extern .shared`) holds everything from its start on.
    pub fn shared_variable(&self, entry: &str, offset: u64) -> Option<(&str, u64)> {
        let mut vars = self.entry(entry)?.shared_vars.iter();
        let holds = |v: &Placed| offset >= v.offset && (v.bytes == 0 || offset - v.offset < v.bytes);
        let (name, var) = vars.find(|(_, v)| holds(v))?;
        Some((name, offset - var.offset))
    }

    /// The variable of `.global` or `.const` memory that is nearest to an address, its bytes, and the address's
    /// distance from its first byte; `None` if it is far from all of them.
    pub fn global_variable(&self, address: u64) -> Option<(&str, u64, i64)> {
        let apart = |var: &ModuleVar| address.abs_diff(var.address).min(address.abs_diff(var.address + var.bytes));
        let var = self.vars.iter().min_by_key(|var| apart(var)).filter(|var| apart(var) <= FAR)?;
        Some((&var.name, var.bytes, address.wrapping_sub(var.address) as i64))
    }

    pub(crate) fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|e| e.name == name)
    }

    /// Name and line of a `.loc`, if the instruction has one.
    pub(crate) fn source(&self, loc: (u32, u32)) -> Option<(String, u32)> {
        let (_, name) = self.files.iter().find(|(n, _)| *n == loc.0 && loc.0 != 0)?;
        Some((name.clone(), loc.1))
    }
}
