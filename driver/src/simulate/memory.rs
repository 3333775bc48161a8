//! The tensors of a launch in the simulator's memory.
//!
//! Every tensor has an allocation of its own that ends with its last element, at an odd multiple of the alignment that the
//! contract asks for, so that no larger one holds by chance; so has every part of an array of pointers, the last part first,
//! and the array itself. What must not be read was never written, and reading it is a report: the gaps between the rows of
//! a tensor that is only read, and what lies in front of it. In a tensor that is written those are poison and are compared
//! afterwards, and so are the elements if it is only written. A tensor that is to stand on another one has the other's place.

use crate::bind::{ADDRESS_BYTES, Number, TensorPlan};
use crate::clock::Clock;
use crate::contract::{Contract, ParamKind, Scratch, TensorMapParam};
use crate::data::{self, POISON};
use crate::program::{BoundProgram, Temporary};
use crate::run::Aliases;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Span};
use tilec_ir::types::Elem;
use tilec_sim::{Device, Report};

/// What `cuMemAlloc` and the simulator align to; and no better.
const ALLOCATION: u64 = 256;

/// Of scratch memory, which is no one's tensor: more than any access asks for.
const SCRATCH_ALIGN: u64 = 128;

/// The memory of a launch.
pub(super) struct Memory {
    pub(super) device: Device,
    /// The tensors, in the order of the plans.
    pub(super) tensors: Vec<Placed>,
}

/// A tensor in it.
pub(super) struct Placed {
    /// Its parts: one, but of an array of pointers.
    pub(super) parts: Vec<Area>,
    /// The addresses of the parts, if it is an array of pointers.
    pub(super) table: Option<Area>,
    /// The kernel may change it, under whatever name.
    written: bool,
    /// Bytes of a part, from its first element to the end.
    bytes: usize,
    /// The tensor as it was handed over, with its guard.
    before: Vec<u8>,
}

/// An allocation with something in it.
#[derive(Copy, Clone)]
pub(super) struct Area {
    /// Address of the allocation.
    pub(super) address: u64,
    /// Bytes in front of what the kernel is told of.
    head: usize,
}

impl Area {
    /// Room for `bytes` bytes at an odd multiple of `align`.
    fn new(device: &mut Device, bytes: usize, align: u64) -> Result<Area, Box<Report>> {
        let head = if align < ALLOCATION { align } else { align - ALLOCATION } as usize;
        Ok(Area { address: device.alloc((head + bytes) as u64)?, head })
    }

    /// The address that the kernel is told.
    pub(super) fn base(&self) -> u64 {
        self.address + self.head as u64
    }
}

impl Placed {
    /// What is passed: the address of element 0, or that of the array of addresses.
    fn argument(&self) -> u64 {
        self.table.as_ref().or(self.parts.first()).map_or(0, Area::base)
    }
}

/// For every byte of a tensor whether it belongs to an element; of those for which there is no time for `more`, nobody knows.
fn inside(plan: &TensorPlan, bytes: usize, mut more: impl FnMut() -> bool) -> Vec<bool> {
    let size = plan.elem.bytes() as usize;
    let mut inside = vec![false; bytes];
    plan.while_each(|_, offset| {
        inside[offset * size..(offset + 1) * size].fill(true);
        more()
    });
    inside
}

/// The maximal ranges of elements without a gap.
fn runs(inside: &[bool]) -> Vec<std::ops::Range<usize>> {
    let mut out: Vec<std::ops::Range<usize>> = Vec::new();
    let mut start = None;
    for (i, is) in inside.iter().chain([&false]).enumerate() {
        match (is, start) {
            (true, None) => start = Some(i),
            (false, Some(from)) => {
                out.push(from..i);
                start = None;
            }
            _ => {}
        }
    }
    out
}

impl Memory {
    /// Places `tensors` (with their guards) as the contract wants them.
    pub(super) fn new(
        launches: &[&Contract],
        bound: &BoundProgram,
        tensors: &[Vec<u8>],
        aliases: &Aliases,
        temporaries: &[Temporary],
        clock: &mut Clock,
    ) -> Result<Memory, Box<Report>> {
        let mut memory = Memory { device: Device::new(), tensors: Vec::new() };
        for (plan, before) in bound.tensors.iter().zip(tensors) {
            let aligns = launches.iter().filter_map(|c| c.param(&plan.name)?.kind.tensor()).map(|t| u64::from(t.align));
            let align = aligns.max().unwrap_or(1);
            let written = plan.access.writes() || aliases.values().any(|under| *under == plan.name);
            let bytes = usize::try_from(plan.part_span() * u64::from(plan.elem.bytes())).unwrap_or(usize::MAX);
            let mut placed = Placed { parts: Vec::new(), table: None, written, bytes, before: before.clone() };
            if !aliases.contains_key(&plan.name) {
                let empty = temporaries.iter().any(|t| t.name == plan.name);
                memory.place(plan, &mut placed, align, empty, clock)?;
            }
            memory.tensors.push(placed);
        }
        for (over, under) in aliases {
            let at = |name: &str| bound.tensors.iter().position(|t| t.name == name);
            if let (Some(over), Some(under)) = (at(over), at(under)) {
                let (parts, table) = (memory.tensors[under].parts.clone(), memory.tensors[under].table);
                memory.tensors[over] = Placed { parts, table, before: tensors[over].clone(), ..memory.tensors[over] };
            }
        }
        Ok(memory)
    }

    /// Makes room for a tensor and fills it; if it is `empty`, all but its elements.
    fn place(
        &mut self,
        plan: &TensorPlan,
        placed: &mut Placed,
        align: u64,
        empty: bool,
        clock: &mut Clock,
    ) -> Result<(), Box<Report>> {
        let bytes = placed.bytes;
        clock.begin(format!("placing `{}`", plan.name), plan.count());
        let inside = inside(plan, bytes * plan.parts() as usize, || clock.more());
        for part in (0..plan.parts() as usize).rev() {
            let area = Area::new(&mut self.device, bytes, align)?;
            let from = part * bytes;
            if placed.written {
                self.device.upload(area.address, &vec![POISON; area.head])?;
            }
            if placed.written && !empty {
                self.device.upload(area.base(), &placed.before[from..from + bytes])?;
            } else {
                // Gaps that are read must not matter: they are no numbers.
                if plan.reads_gaps && !placed.written {
                    self.device.upload(area.base(), &vec![POISON; bytes])?;
                }
                // Gaps of what is written, elements of what is not.
                let wanted: Vec<bool> = inside[from..from + bytes].iter().map(|is| *is != placed.written).collect();
                for run in runs(&wanted) {
                    let data = &placed.before[from + run.start..from + run.end];
                    self.device.upload(area.base() + run.start as u64, data)?;
                }
            }
            placed.parts.push(area);
        }
        placed.parts.reverse();
        if plan.pointers {
            let addresses: Vec<u8> = placed.parts.iter().flat_map(|part| part.base().to_le_bytes()).collect();
            let table = Area::new(&mut self.device, addresses.len(), ADDRESS_BYTES)?;
            self.device.upload(table.base(), &addresses)?;
            placed.table = Some(table);
        }
        Ok(())
    }

    /// Room for the scratch memory of a launch.
    pub(super) fn scratch(&mut self, wanted: &[(Scratch, TensorPlan)]) -> Result<Vec<(String, Area)>, Box<Report>> {
        let mut made = Vec::new();
        for (scratch, plan) in wanted {
            let bytes = usize::try_from(plan.bytes()).unwrap_or(usize::MAX);
            let area = Area::new(&mut self.device, bytes, SCRATCH_ALIGN)?;
            if *scratch == Scratch::Signals {
                self.device.upload(area.base(), &vec![0; bytes])?;
            }
            made.push((plan.name.clone(), area));
        }
        Ok(made)
    }

    /// A signal that a launch has left up, in words.
    pub(super) fn left_up(&self, wanted: &[(Scratch, TensorPlan)], made: &[(String, Area)]) -> Option<String> {
        for ((scratch, plan), (name, area)) in wanted.iter().zip(made) {
            let bytes = usize::try_from(plan.bytes()).unwrap_or(0);
            let after = self.device.download(area.base(), bytes).ok().filter(|_| *scratch == Scratch::Signals);
            let up = after.and_then(|bytes| bytes.iter().position(|&b| b != 0));
            if let Some(at) = up {
                return Some(format!(
                    "`{name}[{}]` is left up: the next launch would take it for one of its own",
                    at / 4
                ));
            }
        }
        None
    }

    /// The tensors after the launch, guards unchanged.
    ///
    /// # Errors
    /// Memory was written that is not the kernel's to write.
    pub(super) fn finish(self, plans: &[TensorPlan]) -> Result<Vec<Vec<u8>>, Box<Diagnostic>> {
        let download = |address: u64, bytes: usize| {
            let error = |r: Box<Report>| Box::new(Diagnostic::error(codes::SIM_LAUNCH, Span::default(), r.to_string()));
            self.device.download(address, bytes).map_err(error)
        };
        let mut out = Vec::new();
        for (plan, placed) in plans.iter().zip(&self.tensors) {
            let Placed { written, bytes, before, .. } = placed;
            let (written, bytes) = (*written, *bytes);
            let inside = inside(plan, bytes * placed.parts.len(), || true);
            let mut tensor = before.clone();
            for (i, part) in placed.parts.iter().enumerate() {
                let after = download(part.address, part.head + bytes)?;
                let from = i * bytes;
                let inside = &inside[from..from + bytes];
                // What was never written reads as zero; gaps that are read hold no numbers.
                let gap = if plan.reads_gaps { POISON } else { 0 };
                let old = |at: usize| if written || inside[at] { before[from + at] } else { gap };
                let front = if written { POISON } else { 0 };
                let stray = (0..part.head).find(|&at| after[at] != front).map(|at| at as i64 - part.head as i64);
                let changed = |at: &usize| !(written && inside[*at]) && after[part.head + at] != old(*at);
                if let Some(stray) = stray.or_else(|| (0..bytes).find(changed).map(|at| at as i64)) {
                    return Err(super::report::stray(plan, i as u64, stray));
                }
                for run in runs(inside) {
                    tensor[from + run.start..from + run.end].copy_from_slice(&after[part.head..][run]);
                }
            }
            if let Some(table) = &placed.table {
                let addresses: Vec<u8> = placed.parts.iter().flat_map(|part| part.base().to_le_bytes()).collect();
                if download(table.base(), addresses.len())? != addresses {
                    return Err(super::report::stray_address(plan));
                }
            }
            out.push(tensor);
        }
        Ok(out)
    }
}

/// A tensor map as the simulator has it.
fn tensor_map(map: &TensorMapParam, bound: &BoundProgram, address: u64) -> Vec<u8> {
    bound.tensor(&map.tensor).map_or_else(Vec::new, |plan| map.describe(plan).encode_for_simulator(address))
}

/// The parameters in order, each as the bytes of its type.
pub(super) fn parameters(
    contract: &Contract,
    bound: &BoundProgram,
    memory: &Memory,
    scratch: &[(String, Area)],
) -> Vec<Vec<u8>> {
    let value = |name: &str| bound.values.get(name).copied().unwrap_or(Number::Int(0));
    let whole = |name: &str| value(name).to_i64().unwrap_or(0);
    let address = |name: &str| {
        let at = bound.tensors.iter().position(|t| t.name == name);
        let own = || scratch.iter().find(|(own, _)| own == name).map_or(0, |(_, area)| area.base());
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
                    _ => data::encode(*elem, value(&p.name).to_f64()).to_le_bytes(),
                };
                bits[..elem.bytes() as usize].to_vec()
            }
        })
        .collect()
}

/// The first element in which two results differ, in words.
pub(super) fn difference(plans: &[TensorPlan], early: &[Vec<u8>], late: &[Vec<u8>]) -> Option<String> {
    for ((plan, early), late) in plans.iter().zip(early).zip(late) {
        let size = plan.elem.bytes() as usize;
        let mut found = None;
        plan.for_each(|index, offset| {
            let range = offset * size..(offset + 1) * size;
            if found.is_none() && early[range.clone()] != late[range] {
                let index: Vec<String> = index.iter().map(u64::to_string).collect();
                let (e, l) = (data::get(plan.elem, early, offset), data::get(plan.elem, late, offset));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bind::Args;
    use crate::contract::Access;
    use crate::launch_file::contracts;
    use crate::program::bind_program;

    /// No larger alignment than the one asked for holds, and the allocation ends with the last element.
    #[test]
    fn tensors_lie_at_odd_multiples_of_their_alignment() {
        for align in [1u64, 2, 4, 8, 16, 128, 256, 512, 4096] {
            let json = format!(
                r#"{{"entry": "k", "block": 1, "grid": 1,
                "params": [{{"name": "a", "type": "f32", "shape": [2, 3], "strides": [4, 1], "align": {align}, "access": "read"}}]}}"#
            );
            let contract = contracts(&json, "").expect("a description").kernels.remove(0);
            let bound = bind_program(&[&contract], &Args::new()).expect("no arguments");
            assert_eq!(bound.tensors[0].access, Access::Read);
            let mut clock = Clock::new(std::time::Duration::from_secs(3600), false);
            let tensors = [data::poisoned(&bound.tensors[0])];
            let memory = Memory::new(&[&contract], &bound, &tensors, &Aliases::new(), &[], &mut clock);
            let memory = memory.expect("small");
            let base = memory.tensors[0].argument();
            assert_eq!((base % align, base / align % 2), (0, 1), "{align}: {base:#x}");
            assert_eq!(parameters(&contract, &bound, &memory, &[]), [base.to_le_bytes()]);
            assert!(memory.device.download(base, 28).is_ok() && memory.device.download(base, 29).is_err());
        }
    }

    #[test]
    fn runs_are_maximal() {
        assert_eq!(runs(&[true, true, false, false, true]), [0..2, 4..5]);
        assert!(runs(&[]).is_empty());
    }
}
