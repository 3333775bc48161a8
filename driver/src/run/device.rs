//! A launch on the first CUDA device, in the child process.

use super::child::{Job, Launched, Refused};
use crate::contract::Contract;
use crate::cuda::{Buffer, CudaError, Device, Event};
use crate::run::bind::TensorPlan;
use crate::run::data::{GUARD_BYTES, POISON};
use crate::run::loaded_kernel::LoadedProgram;
use crate::run::program::bind_program;
use tilec_launch::LaunchError;

/// A tensor on the device.
enum Placed {
    /// With its guard.
    Whole(Buffer),
    /// Parts with a guard each, and the array of their addresses.
    Parts(Vec<Buffer>, Buffer),
}

impl Placed {
    /// Allocates a tensor and fills it; the parts of an array of pointers are separate allocations.
    fn new(device: &Device, plan: &TensorPlan, bytes: &[u8]) -> Result<Placed, CudaError> {
        if !plan.pointers {
            let buffer = device.alloc(bytes.len())?;
            buffer.upload(0, bytes)?;
            return Ok(Placed::Whole(buffer));
        }
        let mut parts = Vec::new();
        // The last part first: addresses that grow evenly would hold by chance.
        for part in ranges(plan).into_iter().rev() {
            let buffer = device.alloc(part.len() + GUARD_BYTES)?;
            buffer.upload(0, &bytes[part.clone()])?;
            buffer.upload(part.len(), &[POISON; GUARD_BYTES])?;
            parts.push(buffer);
        }
        parts.reverse();
        let addresses: Vec<u8> = parts.iter().flat_map(|part| part.address().to_le_bytes()).collect();
        let table = device.alloc(addresses.len())?;
        table.upload(0, &addresses)?;
        Ok(Placed::Parts(parts, table))
    }

    /// The buffer whose address is the kernel argument.
    fn argument(&self) -> &Buffer {
        match self {
            Placed::Whole(buffer) | Placed::Parts(_, buffer) => buffer,
        }
    }

    /// Reads the tensor back. A guard of a part that was written to becomes that of the whole.
    fn download(&self, plan: &TensorPlan, bytes: &mut [u8]) -> Result<(), CudaError> {
        let parts = match self {
            Placed::Whole(buffer) => return buffer.download(0, bytes),
            Placed::Parts(parts, _) => parts,
        };
        let end = bytes.len() - GUARD_BYTES;
        for (part, buffer) in ranges(plan).into_iter().zip(parts) {
            let mut guard = [0; GUARD_BYTES];
            buffer.download(part.len(), &mut guard)?;
            buffer.download(0, &mut bytes[part])?;
            if guard != [POISON; GUARD_BYTES] {
                bytes[end..].copy_from_slice(&guard);
            }
        }
        Ok(())
    }
}

/// The bytes of each part in the tensor on the host.
fn ranges(plan: &TensorPlan) -> Vec<std::ops::Range<usize>> {
    let bytes = plan.elem.bytes_of(plan.part_span()) as usize;
    (0..plan.parts() as usize).map(|part| part * bytes..(part + 1) * bytes).collect()
}

/// Does a job on the first device.
pub(super) fn work(job: &Job, tensors: &mut [Vec<u8>]) -> Result<Launched, Refused> {
    run(job, tensors).map_err(|e| Refused {
        no_device: matches!(
            e,
            LaunchError::Cuda(
                CudaError::NoLibrary { .. } | CudaError::MissingSymbol { .. } | CudaError::NoDevice { .. }
            )
        ),
        reason: e.to_string(),
    })
}

fn run(job: &Job, tensors: &mut [Vec<u8>]) -> Result<Launched, LaunchError> {
    let launches: Vec<&Contract> = job.launches.iter().collect();
    let bound = bind_program(&launches, &job.args).map_err(LaunchError::Bind)?;
    let device = Device::open(0)?;
    let program = LoadedProgram::load(&device, &job.ptx, &launches)?;
    let placed: Vec<Placed> = bound
        .tensors
        .iter()
        .zip(&*tensors)
        .map(|(plan, bytes)| Placed::new(&device, plan, bytes))
        .collect::<Result<_, CudaError>>()?;
    let at = |name: &str| {
        let name = job.aliases.get(name).map_or(name, String::as_str);
        bound.tensors.iter().position(|t| t.name == name).map(|i| &placed[i])
    };
    let named: Vec<(&str, &Buffer)> =
        bound.tensors.iter().filter_map(|t| Some((t.name.as_str(), at(&t.name)?.argument()))).collect();
    program.launch(&job.args, &named)?;
    device.synchronize()?;
    for (plan, bytes) in bound.tensors.iter().zip(tensors.iter_mut()) {
        if let Some(placed) = at(&plan.name) {
            placed.download(plan, bytes)?;
        }
    }
    let (start, stop): (Event, Event) = (device.event()?, device.event()?);
    let mut times_ms = Vec::new();
    for _ in 0..job.repeat {
        device.default_stream().record(&start)?;
        program.launch(&job.args, &named)?;
        device.default_stream().record(&stop)?;
        times_ms.push(stop.elapsed_ms_since(&start)?);
    }
    device.synchronize()?;
    let properties = device.properties();
    let (major, minor) = properties.compute_capability;
    Ok(Launched { device: properties.name.clone(), cc: major * 10 + minor, times_ms })
}
