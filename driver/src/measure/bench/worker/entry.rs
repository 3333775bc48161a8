//! Programs with the arguments of a job, grouped by the tensors that they take.

use super::super::blas::{self, Call};
use super::super::device_tensors::{self, Placed};
use super::super::measure::Sets;
use super::super::product::AccElem;
use super::super::protocol::Program;
use crate::cuda::{CudaError, Device};
use crate::run::bind::TensorPlan;
use crate::run::loaded_kernel::LoadedProgram;
use crate::run::program::BoundProgram;

/// A program with this job's arguments.
pub(super) struct Entry<'d> {
    /// Index in the job.
    pub(super) place: usize,
    pub(super) program: &'d Program,
    pub(super) kernels: &'d LoadedProgram<'d>,
    pub(super) bound: BoundProgram,
    pub(super) call: Option<Call>,
}

/// Programs that take the same tensors, and these tensors on the device.
pub(super) struct Group {
    pub(super) tensors: Vec<TensorPlan>,
    pub(super) placed: Vec<Placed>,
    pub(super) sets: Sets,
    pub(super) members: Vec<usize>,
}

impl Group {
    pub(super) fn address(&self, name: &str, set: usize) -> u64 {
        let tensor = self.tensors.iter().position(|t| t.name == name);
        tensor.map_or(0, |i| self.placed[i].argument(set))
    }
}

impl Entry<'_> {
    /// Bytes of the tensors that it takes and gives, each moved once.
    pub(super) fn traffic(&self) -> f64 {
        let asked_for = |t: &&TensorPlan| !self.program.temporaries.contains(&t.name);
        self.bound.tensors.iter().filter(asked_for).map(|t| blas::traffic(t, self.call.as_ref())).sum()
    }

    /// Whether its accumulators are f16.
    pub(super) fn half_sums(&self) -> bool {
        self.program.product.as_ref().is_some_and(|p| p.acc == AccElem::F16)
    }
}

impl Group {
    /// A tensor of a set, for cuBLAS.
    pub(super) fn at(&self, name: &str, set: usize) -> Result<crate::cuda::At<'_>, CudaError> {
        let tensor = self.tensors.iter().position(|t| t.name == name);
        let i = tensor.ok_or_else(|| CudaError::Refused { what: format!("no tensor `{name}`") })?;
        Ok(self.placed[i].at(set))
    }
}

/// Groups the programs by the tensors they take, and allocates these.
pub(super) fn groups(device: &Device, entries: &[Entry<'_>]) -> Result<Vec<Group>, CudaError> {
    let mut kinds: Vec<(Vec<TensorPlan>, Vec<usize>)> = Vec::new();
    for (i, entry) in entries.iter().enumerate() {
        match kinds.iter_mut().find(|(tensors, _)| *tensors == entry.bound.tensors) {
            Some((_, members)) => members.push(i),
            None => kinds.push((entry.bound.tensors.clone(), vec![i])),
        }
    }
    let properties = device.properties();
    let share = properties.total_memory_bytes / 10 * 8 / kinds.len().max(1);
    kinds
        .into_iter()
        .map(|(tensors, members)| {
            let bytes = tensors.iter().map(|t| device_tensors::set_bytes(t).unwrap_or(usize::MAX));
            let set = bytes.fold(0usize, usize::saturating_add);
            if set.saturating_mul(2) > share {
                let message = format!("two sets of tensors of {set} bytes do not fit the memory of the device");
                return Err(CudaError::Refused { what: message });
            }
            let sets = Sets::past_cache(set, properties.l2_bytes, share);
            let placed =
                tensors.iter().map(|plan| Placed::new(device, plan, sets.count as usize)).collect::<Result<_, _>>()?;
            Ok(Group { tensors, placed, sets, members })
        })
        .collect()
}
