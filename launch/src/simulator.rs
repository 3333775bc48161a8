//! The tensors of a launch in the simulator's memory.
//!
//! Every tensor has its own allocation, from its first to its last element. It begins at an odd multiple of the
//! alignment that the contract requests, so that it has no larger alignment by chance. The same holds for every part of
//! an array of pointers, the last part first, and for the array itself. A tensor that aliases another one has the
//! other's allocation.
//!
//! Forbidden accesses are reported when they happen. Gaps between elements may be neither stored to nor loaded, except
//! for loads of a tensor with `reads_gaps`. These gaps are defined: a kernel that loads whole words of unaligned rows
//! shifts the elements out of them. A word that is half in a gap is then no error, and reporting its register as half
//! undefined would be a false report. Elements of a tensor that is written first are undefined until then, and a launch
//! cannot store to a tensor that its contract only reads.

use crate::bind::{ADDRESS_BYTES, TensorPlan};
use crate::contract::encode::{bytes_of, encode_number, get, word};
use crate::contract::number::Number;
use crate::contract::{Contract, ParamKind, Scratch, TensorMapParam};
use crate::program::{Aliases, BoundProgram};
use tilec_core::elem::Elem;
use tilec_sim::{Device, Generation, Report};

/// The alignment of `cuMemAlloc` and of the simulator's allocations, exactly.
const ALLOCATION: u64 = 256;

/// Alignment of scratch memory: more than any access needs.
const SCRATCH_ALIGN: u64 = 128;

/// The byte that fills unwritten memory: all bits set is NaN in every floating-point format.
pub const POISON: u8 = 0xFF;

/// Bytes that are filled or copied between two checks of the clock.
pub const PIECE: usize = 1 << 20;

/// Default limit of warp instructions per block: about half a minute on one core, and a thousand times what a block of
/// a large matrix product needs.
pub const FUEL: u64 = 1 << 28;

/// The deadline while tensors are placed.
pub trait Watch {
    /// Called at the beginning of a phase, with its number of elements.
    fn begin(&mut self, what: String, total: u64);

    /// Counts elements. Whether there is time for more.
    fn more_of(&mut self, elements: usize) -> bool;
}

/// The generation of a target; `None` if the simulator does not support it.
pub fn generation(target: &str) -> Option<Generation> {
    let digits = target.strip_prefix("sm_")?.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let sm: u32 = digits.parse().ok()?;
    // Before Volta there were no matrix instructions; other arithmetic is the same.
    if sm < 70 { Some(Generation::Volta) } else { Generation::of_sm(sm) }
}

/// Clusters of a kernel that the simulated device runs at the same time: a multiprocessor, of which there are 4, has one block.
pub fn max_active_clusters(contract: &Contract) -> u32 {
    tilec_sim::occupancy::max_active_clusters(contract.cluster)
}

/// The memory of a launch.
pub struct Memory {
    /// The simulated device that owns it.
    pub device: Device,
    /// The tensors, in the order of the plans.
    pub tensors: Vec<Placed>,
}

/// A tensor in it.
pub struct Placed {
    /// The addresses of its parts: one, but of an array of pointers.
    pub parts: Vec<u64>,
    /// The address of the array of these, if it is an array of pointers.
    pub table: Option<u64>,
    /// The tensor that it is on.
    under: Option<String>,
    /// Bytes of a part, from its first element to the end.
    bytes: usize,
    /// The tensor as given, with its guard.
    before: Vec<u8>,
}

impl Placed {
    /// The argument: the address of element 0, or that of the array of addresses.
    pub fn argument(&self) -> u64 {
        self.table.as_ref().or(self.parts.first()).copied().unwrap_or(0)
    }
}

/// Room for `bytes` bytes at an odd multiple of `align`.
fn room(device: &mut Device, bytes: usize, align: u64) -> Result<u64, Box<Report>> {
    let head = if align < ALLOCATION { align } else { align - ALLOCATION };
    device.alloc_behind(head, bytes as u64)
}

impl Memory {
    /// Allocates `tensors` (with their guards) as the contract requires, aligned to `least` bytes.
    pub fn new(
        launches: &[&Contract],
        bound: &BoundProgram,
        tensors: &[Vec<u8>],
        aliases: &Aliases,
        least: u32,
        clock: &mut dyn Watch,
    ) -> Result<Memory, Box<Report>> {
        let mut memory = Memory { device: Device::new(), tensors: Vec::new() };
        for (plan, before) in bound.tensors.iter().zip(tensors) {
            let aligns = launches.iter().filter_map(|c| c.param(&plan.name)?.kind.tensor()).map(|t| u64::from(t.align));
            let align = aligns.max().unwrap_or(1).max(u64::from(least));
            let bytes = usize::try_from(plan.elem.bytes_of(plan.part_span())).unwrap_or(usize::MAX);
            let under = aliases.get(&plan.name).cloned();
            let mut placed = Placed { parts: Vec::new(), table: None, under, bytes, before: before.clone() };
            if placed.under.is_none() {
                let stands_here = |t: &&TensorPlan| t.name == plan.name || aliases.get(&t.name) == Some(&plan.name);
                let reads_gaps = bound.tensors.iter().filter(stands_here).any(|t| t.reads_gaps);
                memory.place(plan, &mut placed, align, reads_gaps, clock)?;
            }
            memory.tensors.push(placed);
        }
        for (over, under) in aliases {
            let at = |name: &str| bound.tensors.iter().position(|t| t.name == name);
            if let (Some(over), Some(under)) = (at(over), at(under)) {
                let (parts, table) = (memory.tensors[under].parts.clone(), memory.tensors[under].table);
                (memory.tensors[over].parts, memory.tensors[over].table) = (parts, table);
            }
        }
        Ok(memory)
    }

    /// Makes room for a tensor and fills it.
    fn place(
        &mut self,
        plan: &TensorPlan,
        placed: &mut Placed,
        align: u64,
        reads_gaps: bool,
        clock: &mut dyn Watch,
    ) -> Result<(), Box<Report>> {
        let bytes = placed.bytes;
        let (parts, device) = (plan.parts() as usize, &mut self.device);
        clock.begin(format!("placing `{}`", plan.name), plan.runs().elements().saturating_mul(plan.parts()));
        for part in (0..parts).rev() {
            let address = room(device, bytes, align)?;
            let own = &placed.before[part * bytes..(part + 1) * bytes];
            if plan.runs().leave_gaps() {
                device.make_gap(address, bytes)?;
                for at in (0..bytes).step_by(PIECE).filter(|_| reads_gaps) {
                    device.upload(address + at as u64, &vec![POISON; PIECE.min(bytes - at)])?;
                }
            }
            'runs: for run in plan.runs() {
                let range = bytes_of(plan.elem, run);
                let (first, run) = (range.start, &own[range]);
                device.fill_gap(address + first as u64, run.len())?;
                for (i, piece) in run.chunks(PIECE).enumerate() {
                    let at = address + (first + i * PIECE) as u64;
                    device.upload(at, piece)?;
                    // The old contents appear in the results where nothing is written.
                    if !plan.access.reads() {
                        device.forget(at, piece.len())?;
                    }
                    if !clock.more_of(plan.elem.per(piece.len() as u32) as usize) {
                        break 'runs;
                    }
                }
            }
            placed.parts.push(address);
        }
        placed.parts.reverse();
        if plan.pointers {
            let addresses: Vec<u8> = placed.parts.iter().flat_map(|part| part.to_le_bytes()).collect();
            let table = room(device, addresses.len(), ADDRESS_BYTES)?;
            device.upload(table, &addresses)?;
            device.set_read_only(table, true)?;
            placed.table = Some(table);
        }
        Ok(())
    }

    /// Allows a launch to write only the tensors that its contract declares as written.
    pub fn permit(&mut self, contract: &Contract, plans: &[TensorPlan]) -> Result<(), Box<Report>> {
        let written =
            |name: &str| contract.param(name).and_then(|p| p.kind.tensor()).is_some_and(|t| t.access.writes());
        for (plan, placed) in plans.iter().zip(&self.tensors).filter(|(_, placed)| placed.under.is_none()) {
            let mut over = plans.iter().zip(&self.tensors).filter(|(_, p)| p.under.as_ref() == Some(&plan.name));
            let read_only = !written(&plan.name) && !over.any(|(plan, _)| written(&plan.name));
            let constant = contract.param(&plan.name).and_then(|p| p.kind.tensor()).is_some_and(|t| t.constant);
            for part in &placed.parts {
                self.device.set_read_only(*part, read_only)?;
                self.device.set_unchanging(*part, constant && read_only)?;
            }
        }
        Ok(())
    }

    /// Room for the scratch memory of a launch.
    pub fn scratch(&mut self, wanted: &[(Scratch, TensorPlan)]) -> Result<Vec<(String, u64)>, Box<Report>> {
        let mut made = Vec::new();
        for (scratch, plan) in wanted {
            let bytes = usize::try_from(plan.bytes()).unwrap_or(usize::MAX);
            let address = room(&mut self.device, bytes, SCRATCH_ALIGN)?;
            if *scratch == Scratch::Signals {
                self.device.upload(address, &vec![0; bytes])?;
            }
            made.push((plan.name.clone(), address));
        }
        Ok(made)
    }

    /// A signal that a launch has left up, in words.
    pub fn left_up(&self, wanted: &[(Scratch, TensorPlan)], made: &[(String, u64)]) -> Option<String> {
        for ((scratch, plan), (name, address)) in wanted.iter().zip(made) {
            let bytes = usize::try_from(plan.bytes()).unwrap_or(0);
            let after = self.device.download(*address, bytes).ok().filter(|_| *scratch == Scratch::Signals);
            let up = after.and_then(|bytes| bytes.iter().position(|&b| b != 0));
            if let Some(at) = up {
                return Some(format!("`{name}[{}]` is still set: the next launch would take it for its own", at / 4));
            }
        }
        None
    }

    /// The tensors after the launches; only elements can have changed.
    ///
    /// # Errors
    /// None, if the plans are those of the tensors.
    pub fn finish(self, plans: &[TensorPlan]) -> Result<Vec<Vec<u8>>, Box<Report>> {
        let mut out = Vec::new();
        for (plan, placed) in plans.iter().zip(self.tensors) {
            let mut tensor = placed.before;
            for (part, address) in tensor.chunks_mut(placed.bytes).zip(&placed.parts) {
                for run in plan.runs() {
                    let bytes = bytes_of(plan.elem, run);
                    let after = self.device.download(address + bytes.start as u64, bytes.len())?;
                    part[bytes].copy_from_slice(&after);
                }
            }
            out.push(tensor);
        }
        Ok(out)
    }
}

/// A tensor map as the simulator has it.
fn tensor_map(map: &TensorMapParam, bound: &BoundProgram, address: u64) -> Vec<u8> {
    let value = |name: &str| bound.values.get(name).and_then(|v| v.to_i64());
    bound.tensor(&map.tensor).map_or_else(Vec::new, |plan| map.describe(plan, value).encode_for_simulator(address))
}

/// The parameters in order, each as the bytes of its type.
pub fn parameters(
    contract: &Contract,
    bound: &BoundProgram,
    memory: &Memory,
    scratch: &[(String, u64)],
) -> Vec<Vec<u8>> {
    let value = |name: &str| bound.values.get(name).copied().unwrap_or(Number::Int(0));
    let whole = |name: &str| value(name).to_i64().unwrap_or(0);
    let address = |name: &str| {
        let at = bound.tensors.iter().position(|t| t.name == name);
        let own = || scratch.iter().find(|(own, _)| own == name).map_or(0, |(_, address)| *address);
        at.and_then(|i| memory.tensors.get(i)).map_or_else(own, Placed::argument)
    };
    contract
        .params
        .iter()
        .map(|p| match &p.kind {
            ParamKind::TensorMap(map) => tensor_map(map, bound, address(&map.tensor)),
            ParamKind::Tensor(_) | ParamKind::Pointers(_) => address(&p.name).to_le_bytes().to_vec(),
            ParamKind::Size { .. } => whole(&p.name).to_le_bytes()[..4].to_vec(),
            ParamKind::Stride { .. } => whole(&p.name).to_le_bytes().to_vec(),
            ParamKind::Scalar { elem, .. } => {
                let bits = match elem {
                    // Through f64 large ones would be rounded.
                    Elem::I64 => whole(&p.name).to_le_bytes(),
                    _ => encode_number(*elem, value(&p.name)).to_le_bytes(),
                };
                bits[..elem.bytes_of(1) as usize].to_vec()
            }
        })
        .collect()
}

/// The first element in which two results differ, in words.
pub fn difference(plans: &[TensorPlan], early: &[Vec<u8>], late: &[Vec<u8>]) -> Option<String> {
    for ((plan, early), late) in plans.iter().zip(early).zip(late) {
        let mut found = None;
        plan.for_each(|index, offset| {
            if found.is_none() && word(plan.elem, early, offset) != word(plan.elem, late, offset) {
                let index: Vec<String> = index.iter().map(u64::to_string).collect();
                let (e, l) = (get(plan.elem, early, offset), get(plan.elem, late, offset));
                found = Some(format!(
                    "`{}[{}]` is {e} when asynchronous copies land early, and {l} when they land later",
                    plan.name,
                    index.join(", ")
                ));
            }
        });
        if found.is_some() {
            return found;
        }
    }
    None
}
