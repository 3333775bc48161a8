//! The tensors of a launch in the simulator's memory.
//!
//! Every tensor has an allocation of its own that ends with its last element, at an odd multiple of the alignment that the
//! contract asks for, so that no larger one holds by chance. What must not be read was never written, and reading it is a
//! report: the gaps between the rows of a tensor that is only read, and what lies in front of it. In a tensor that is
//! written those are poison and are compared afterwards, and so are the elements if it is only written.

use super::Scene;
use crate::bind::{Bound, Number, TensorPlan};
use crate::contract::{Contract, ParamKind};
use crate::data::{self, POISON};
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Span};
use tilec_ir::types::Elem;
use tilec_sim::{Device, Report};

/// What `cuMemAlloc` and the simulator align to; and no better.
const ALLOCATION: u64 = 256;

/// The memory of a launch.
pub(super) struct Memory {
    pub(super) device: Device,
    /// The tensors, in the order of the plans.
    pub(super) tensors: Vec<Placed>,
}

/// A tensor in it.
pub(super) struct Placed {
    /// Address of the allocation.
    pub(super) address: u64,
    /// Bytes in front of element 0.
    pub(super) head: usize,
    /// Bytes from there to the end.
    bytes: usize,
    /// The tensor as it was handed over, with its guard.
    before: Vec<u8>,
}

impl Placed {
    /// Address of element 0.
    pub(super) fn base(&self) -> u64 {
        self.address + self.head as u64
    }
}

/// For every byte of a tensor whether it belongs to an element.
fn inside(plan: &TensorPlan, bytes: usize) -> Vec<bool> {
    let size = plan.elem.bytes() as usize;
    let mut inside = vec![false; bytes];
    plan.for_each(|_, offset| inside[offset * size..(offset + 1) * size].fill(true));
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
    pub(super) fn new(contract: &Contract, bound: &Bound, tensors: &[Vec<u8>]) -> Result<Memory, Box<Report>> {
        let mut memory = Memory { device: Device::new(), tensors: Vec::new() };
        for (plan, before) in bound.tensors.iter().zip(tensors) {
            let align = match contract.param(&plan.name).map(|p| &p.kind) {
                Some(ParamKind::Tensor { align, .. }) => u64::from(*align),
                _ => 1,
            };
            let head = if align < ALLOCATION { align } else { align - ALLOCATION } as usize;
            let bytes = plan.bytes() as usize;
            let address = memory.device.alloc((head + bytes) as u64)?;
            let base = address + head as u64;
            if plan.access.writes() {
                memory.device.upload(address, &vec![POISON; head])?;
                memory.device.upload(base, &before[..bytes])?;
            } else {
                for run in runs(&inside(plan, bytes)) {
                    memory.device.upload(base + run.start as u64, &before[run])?;
                }
            }
            memory.tensors.push(Placed { address, head, bytes, before: before.clone() });
        }
        Ok(memory)
    }

    /// The tensors after the launch, guards unchanged.
    ///
    /// # Errors
    /// Memory was written that is not the kernel's to write.
    pub(super) fn finish(self, scene: &Scene<'_>) -> Result<Vec<Vec<u8>>, Box<Diagnostic>> {
        let mut out = Vec::new();
        for (plan, placed) in scene.bound.tensors.iter().zip(self.tensors) {
            let Placed { address, head, bytes, before } = placed;
            let after = self
                .device
                .download(address, head + bytes)
                .map_err(|r| Box::new(Diagnostic::error(codes::SIM_LAUNCH, Span::default(), r.to_string())))?;
            let inside = inside(plan, bytes);
            let writable = |i: usize| plan.access.writes() && inside[i];
            // What was never written reads as zero.
            let old = |i: usize| if plan.access.writes() || inside[i] { before[i] } else { 0 };
            let front = if plan.access.writes() { POISON } else { 0 };
            let stray = (0..head)
                .find(|&i| after[i] != front)
                .map(|i| i as i64 - head as i64)
                .or_else(|| (0..bytes).find(|&i| !writable(i) && after[head + i] != old(i)).map(|i| i as i64));
            if let Some(stray) = stray {
                return Err(super::report::stray(plan, stray));
            }
            let mut tensor = before;
            for run in runs(&inside) {
                tensor[run.clone()].copy_from_slice(&after[head..][run]);
            }
            out.push(tensor);
        }
        Ok(out)
    }
}

/// The parameters in order, each as the bytes of its type.
pub(super) fn parameters(contract: &Contract, bound: &Bound, memory: &Memory) -> Vec<Vec<u8>> {
    let value = |name: &str| bound.values.get(name).copied().unwrap_or(Number::Int(0));
    let whole = |name: &str| value(name).to_i64().unwrap_or(0);
    let address = |name: &str| {
        let at = bound.tensors.iter().position(|t| t.name == name);
        at.and_then(|i| memory.tensors.get(i)).map_or(0, Placed::base)
    };
    contract
        .params
        .iter()
        .map(|p| match &p.kind {
            ParamKind::Tensor { .. } => address(&p.name).to_le_bytes().to_vec(),
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
pub(super) fn difference(bound: &Bound, early: &[Vec<u8>], late: &[Vec<u8>]) -> Option<String> {
    for ((plan, early), late) in bound.tensors.iter().zip(early).zip(late) {
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
    use crate::bind::{Args, bind};
    use crate::contract::Access;
    use crate::launch_file::contracts;

    /// No larger alignment than the one asked for holds, and the allocation ends with the last element.
    #[test]
    fn tensors_lie_at_odd_multiples_of_their_alignment() {
        for align in [1u64, 2, 4, 8, 16, 128, 256, 512, 4096] {
            let json = format!(
                r#"{{"entry": "k", "block": 1, "grid": 1,
                "params": [{{"name": "a", "type": "f32", "shape": [2, 3], "strides": [4, 1], "align": {align}, "access": "read"}}]}}"#
            );
            let contract = contracts(&json, "").expect("a description").remove(0);
            let bound = bind(&contract, &Args::new()).expect("no arguments");
            assert_eq!(bound.tensors[0].access, Access::Read);
            let memory = Memory::new(&contract, &bound, &[data::poisoned(&bound.tensors[0])]).expect("small");
            let base = memory.tensors[0].base();
            assert_eq!((base % align, base / align % 2), (0, 1), "{align}: {base:#x}");
            assert_eq!(parameters(&contract, &bound, &memory), [base.to_le_bytes()]);
            assert!(memory.device.download(base, 28).is_ok() && memory.device.download(base, 29).is_err());
        }
    }

    #[test]
    fn runs_are_maximal() {
        assert_eq!(runs(&[true, true, false, false, true]), [0..2, 4..5]);
        assert!(runs(&[]).is_empty());
    }
}
