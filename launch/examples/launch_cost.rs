//! Host time of a launch: `Kernel::launch` (checks, tensor maps, the call) compared with the driver call alone with the
//! same parameters, and `Kernel::check` alone. `scripts/gpu_launch.sh` runs it.
//!
//!     launch_cost BUNDLE KERNEL TENSORS VALUES NAME=N ..       tensors `A:M,K;B:K,N;C:M,N`, values `alpha,beta` or `-`

use std::collections::BTreeMap;
use std::time::Instant;
use tilec_launch::bind::bind;
use tilec_launch::cuda::{LaunchArg, Ready, Shape};
use tilec_launch::element::{F16, F32};
use tilec_launch::loaded_kernel::launch_args;
use tilec_launch::program::bind_program;
use tilec_launch::{Args, Argument, Bundle, Device, Elem, Kernel, LaunchError, Module, Number, StreamRef, TensorMut};

/// Launches between two waits: fewer than the driver's queue holds.
const BATCH: usize = 256;
/// Batches of each, alternately.
const ROUNDS: usize = 60;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [bundle, name, tensors, values, sizes @ ..] = args.as_slice() else {
        return Err("usage: launch_cost BUNDLE KERNEL TENSORS VALUES NAME=N ..".into());
    };
    let bundle = Bundle::from_bytes(&std::fs::read(bundle)?)?;
    let device = Device::cuda(0)?;
    let module = Module::load(&device, &bundle)?;
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    for size in sizes {
        let (name, n) = size.split_once('=').ok_or("NAME=N")?;
        numbers.insert(name, n.parse()?);
    }
    let mut names = Vec::new();
    let mut shapes = Vec::new();
    for tensor in tensors.split(';') {
        let (name, dims) = tensor.split_once(':').ok_or("TENSOR:SIZE,SIZE")?;
        names.push(name);
        let dims: Vec<&str> = dims.split(',').collect();
        let [rows, columns] = dims[..] else { return Err("tensors have two dimensions here".into()) };
        shapes.push([numbers[rows], numbers[columns]]);
    }
    let values: Vec<&str> = values.split(',').filter(|v| *v != "-").collect();
    let kernel = Kernel::load(&module, name, &names, &values)?;
    measure(&device, &module, &bundle, &kernel, &names, &shapes, &numbers, values.len())?;
    Ok(())
}

/// A tensor of the type that the contract says.
fn argument(elem: Elem, address: u64, bytes: usize, shape: [usize; 2]) -> Result<Argument<'static>, LaunchError> {
    match elem {
        Elem::F16 => Ok(TensorMut::<F16, 2>::at(address, bytes, shape).argument()),
        Elem::F32 => Ok(TensorMut::<F32, 2>::at(address, bytes, shape).argument()),
        other => Err(LaunchError::Misfit(format!("no tensors of {} here", other.name()))),
    }
}

#[expect(clippy::too_many_arguments, reason = "what the command line says")]
fn measure(
    device: &Device,
    module: &Module,
    bundle: &Bundle,
    kernel: &Kernel,
    names: &[&str],
    shapes: &[[usize; 2]],
    numbers: &BTreeMap<&str, usize>,
    n_values: usize,
) -> Result<(), Box<dyn std::error::Error>> {
    let cuda = device.as_cuda().ok_or("no GPU")?;
    let file = module.launch_file();
    let elem = |name: &str| file.kernels.iter().find_map(|c| Some(c.param(name)?.kind.tensor()?.elem));
    let mut buffers = Vec::new();
    for (name, shape) in names.iter().zip(shapes) {
        let elem = elem(name).ok_or("no such tensor")?;
        let bytes = elem.bytes_of((shape[0] * shape[1]) as u64) as usize;
        let buffer = cuda.alloc(bytes)?;
        buffer.upload(0, &vec![0; bytes])?;
        buffers.push((elem, buffer, *shape));
    }
    let address = |name: &str| names.iter().position(|n| *n == name).map_or(0, |i| buffers[i].1.address());
    let mut arguments = buffers
        .iter()
        .map(|(elem, buffer, shape)| argument(*elem, buffer.address(), buffer.bytes(), *shape))
        .collect::<Result<Vec<_>, _>>()?;
    let passed = vec![None; n_values];
    let entries = kernel.check(&passed, &arguments)?;
    let [entry] = entries[..] else { return Err("one launch of one kernel is measured".into()) };
    let contract = file.contract(entry).ok_or("no such entry")?;
    let takes = |name: &str| contract.param(name).is_some_and(|p| p.kind.is_value());
    let args: Args =
        numbers.iter().filter(|(n, _)| takes(n)).map(|(n, x)| ((*n).to_owned(), Number::Int(*x as i64))).collect();
    let bound = bind(contract, &args).map_err(|e| format!("{e:?}"))?;
    let ptx = std::str::from_utf8(bundle.image(device.compute_capability())?.ptx)?;
    let raw = cuda.load_ptx(ptx)?;
    let function = raw.function(entry)?;
    if contract.dynamic_smem_bytes > 48 << 10 {
        function.set_max_dynamic_smem(contract.dynamic_smem_bytes)?;
    }
    let shape = Shape::of(contract, bound.grid);
    let list = launch_args(contract, &bound, address);
    let bytes: Vec<usize> = list.iter().map(LaunchArg::bytes).collect();
    let ready = Ready::new(cuda, function, &shape, &bytes)?;
    let mut words = Vec::new();
    for arg in &list {
        match arg {
            LaunchArg::Ptr(x) => words.push(*x),
            LaunchArg::U32(x) => words.push(u64::from(*x)),
            LaunchArg::I64(x) => words.push(x.cast_unsigned()),
            LaunchArg::F32(x) => words.push(u64::from(x.to_bits())),
            LaunchArg::TensorMap(map) => words.extend(cuda.encode(map)?),
            other => return Err(format!("no {other:?} here").into()),
        }
    }
    let (mut bare, mut whole, mut checks, mut binds) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        bare.push(time(cuda, || Ok(ready.launch(StreamRef::DEFAULT, bound.grid, &mut words)?))?);
        whole.push(time(cuda, || kernel.launch(StreamRef::DEFAULT, &passed, &mut arguments))?);
        checks.push(time(cuda, || kernel.check(&passed, &arguments).map(|_| ()))?);
        binds.push(time(cuda, || bind_program(&[contract], &args).map(|_| ()).map_err(LaunchError::Bind))?);
    }
    let [bare, whole, checks, binds] = [bare, whole, checks, binds].map(median);
    println!(
        "{entry} ({}): bare call {bare:.2} us, Kernel::launch {whole:.2} us, {:.2} us more; Kernel::check {checks:.2} us; bind {binds:.2} us",
        module.target(),
        whole - bare
    );
    Ok(())
}

/// Microseconds of one call, of a batch between two waits.
fn time(
    device: &tilec_launch::cuda::Device,
    mut call: impl FnMut() -> Result<(), LaunchError>,
) -> Result<f64, LaunchError> {
    device.synchronize()?;
    let begin = Instant::now();
    for _ in 0..BATCH {
        call()?;
    }
    let took = begin.elapsed();
    device.synchronize()?;
    Ok(took.as_secs_f64() * 1e6 / BATCH as f64)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
