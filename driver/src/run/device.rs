//! A launch from the contract, on the first CUDA device.

use super::child::{Job, Launched, Refused};
use crate::bind::{Bound, Number, bind};
use crate::contract::{Contract, ParamKind};
use crate::cuda::{Buffer, CudaError, Device, Event, LaunchArg};
use crate::data::encode;
use tilec_ir::types::Elem;

/// The arguments of a launch in parameter order; `address` gives the device address of a tensor by name.
pub fn launch_args(contract: &Contract, bound: &Bound, address: impl Fn(&str) -> u64) -> Vec<LaunchArg> {
    let value = |name: &str| bound.values.get(name).copied().unwrap_or(Number::Int(0));
    contract
        .params
        .iter()
        .map(|param| match &param.kind {
            ParamKind::Tensor { .. } => LaunchArg::Ptr(address(&param.name)),
            ParamKind::Size { .. } => {
                let size = value(&param.name).to_i64().and_then(|i| u32::try_from(i).ok());
                LaunchArg::U32(size.expect("binding checked the range"))
            }
            ParamKind::Stride { .. } => {
                LaunchArg::I64(value(&param.name).to_i64().expect("binding checked that it is whole"))
            }
            ParamKind::Scalar { elem, .. } => scalar(*elem, value(&param.name)),
        })
        .collect()
}

fn scalar(elem: Elem, value: Number) -> LaunchArg {
    let whole = value.to_i64().unwrap_or(0);
    // The narrowing casts below keep the bits of the encoding, which has that width.
    let bits = encode(elem, value.to_f64());
    match elem {
        Elem::F16 => LaunchArg::F16(bits as u16),
        Elem::BF16 => LaunchArg::Bf16(bits as u16),
        Elem::F32 | Elem::TF32 => LaunchArg::F32(f32::from_bits(bits as u32)),
        Elem::F64 => LaunchArg::F64(value.to_f64()),
        Elem::I8 => LaunchArg::I8(whole as i8),
        Elem::U8 | Elem::Bool | Elem::E4M3 | Elem::E5M2 => LaunchArg::U8(bits as u8),
        Elem::I32 => LaunchArg::I32(whole as i32),
        Elem::U32 => LaunchArg::U32(whole as u32),
        Elem::I64 => LaunchArg::I64(whole),
    }
}

/// Does a job on the first device.
pub(super) fn work(job: &Job, tensors: &mut [Vec<u8>]) -> Result<Launched, Refused> {
    let bound = bind(&job.contract, &job.args).map_err(|errors| Refused {
        no_device: false,
        reason: errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
    })?;
    run(job, &bound, tensors).map_err(|e| Refused {
        no_device: matches!(
            e,
            CudaError::NoLibrary { .. } | CudaError::MissingSymbol { .. } | CudaError::NoDevice { .. }
        ),
        reason: e.to_string(),
    })
}

fn run(job: &Job, bound: &Bound, tensors: &mut [Vec<u8>]) -> Result<Launched, CudaError> {
    let contract = &job.contract;
    let device = Device::open(0)?;
    let module = device.load_ptx(&job.ptx)?;
    let function = module.function(&contract.entry)?;
    if contract.dynamic_smem_bytes > 48 << 10 {
        function.set_max_dynamic_smem(contract.dynamic_smem_bytes)?;
    }
    let buffers: Vec<Buffer> = tensors
        .iter()
        .map(|bytes| {
            let buffer = device.alloc(bytes.len())?;
            buffer.upload(0, bytes)?;
            Ok(buffer)
        })
        .collect::<Result<_, CudaError>>()?;
    let address = |name: &str| {
        let index = bound.tensors.iter().position(|t| t.name == name);
        index.and_then(|i| buffers.get(i)).map_or(0, Buffer::address)
    };
    let args = launch_args(contract, bound, address);
    let launch = || device.launch(&function, bound.grid, contract.block, contract.dynamic_smem_bytes, &args);
    launch()?;
    device.synchronize()?;
    for (buffer, bytes) in buffers.iter().zip(tensors.iter_mut()) {
        buffer.download(0, bytes)?;
    }
    let (start, stop): (Event, Event) = (device.event()?, device.event()?);
    let mut times_ms = Vec::new();
    for _ in 0..job.repeat {
        device.default_stream().record(&start)?;
        launch()?;
        device.default_stream().record(&stop)?;
        times_ms.push(stop.elapsed_ms_since(&start)?);
    }
    device.synchronize()?;
    let properties = device.properties();
    let (major, minor) = properties.compute_capability;
    Ok(Launched { device: properties.name.clone(), cc: major * 10 + minor, times_ms })
}
