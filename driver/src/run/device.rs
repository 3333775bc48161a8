//! A launch on the first CUDA device, in the process that was started for it.

use super::child::{Job, Launched, Refused};
use crate::bind::bind;
use crate::cuda::{Buffer, CudaError, Device, Event};
use crate::loaded::{LaunchError, LoadedKernel};

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
    let bound = bind(&job.contract, &job.args).map_err(LaunchError::Bind)?;
    let device = Device::open(0)?;
    let kernel = LoadedKernel::load(&device, &job.ptx, &job.contract)?;
    let buffers: Vec<Buffer> = tensors
        .iter()
        .map(|bytes| {
            let buffer = device.alloc(bytes.len())?;
            buffer.upload(0, bytes)?;
            Ok(buffer)
        })
        .collect::<Result<_, CudaError>>()?;
    let named: Vec<(&str, &Buffer)> = bound.tensors.iter().map(|t| t.name.as_str()).zip(&buffers).collect();
    kernel.launch(&job.args, &named)?;
    device.synchronize()?;
    for (buffer, bytes) in buffers.iter().zip(tensors.iter_mut()) {
        buffer.download(0, bytes)?;
    }
    let (start, stop): (Event, Event) = (device.event()?, device.event()?);
    let mut times_ms = Vec::new();
    for _ in 0..job.repeat {
        device.default_stream().record(&start)?;
        kernel.launch(&job.args, &named)?;
        device.default_stream().record(&stop)?;
        times_ms.push(stop.elapsed_ms_since(&start)?);
    }
    device.synchronize()?;
    let properties = device.properties();
    let (major, minor) = properties.compute_capability;
    Ok(Launched { device: properties.name.clone(), cc: major * 10 + minor, times_ms })
}
