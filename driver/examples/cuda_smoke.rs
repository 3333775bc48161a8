//! Tries the driver API on the first device: properties, assembling, arguments, a launch, timing, and refusals.
//!
//! ```text
//! $ cargo run --release -p tilec --example cuda_smoke
//! device 0: NVIDIA H200, sm_90, 132 SMs at 1980 MHz, ...
//! ok
//! ```
//!
//! Prints `ok` and exits with 0, or prints the error and exits with 1. Adds two vectors of random numbers and compares
//! every element; then checks that what must be refused is.

#[cfg(feature = "cuda")]
mod smoke {
    use tilec::cuda::{CudaError, Device, LaunchArg, Shape};

    fn shape(grid: [u32; 3], block: [u32; 3], dynamic_smem: u32) -> Shape {
        Shape { grid, block, dynamic_smem, cluster: [1; 3], programmatic: false }
    }

    const PTX: &str = "
.version 6.0
.target sm_70
.address_size 64

.visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n, .param .f32 scale)
{
    .reg .pred %p<2>;
    .reg .f32 %f<5>;
    .reg .b32 %r<6>;
    .reg .b64 %rd<8>;

    ld.param.u64 %rd1, [a];
    ld.param.u64 %rd2, [b];
    ld.param.u64 %rd3, [c];
    ld.param.u32 %r1, [n];
    ld.param.f32 %f4, [scale];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.u32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p1, %r5, %r1;
    @%p1 bra DONE;
    cvta.to.global.u64 %rd1, %rd1;
    cvta.to.global.u64 %rd2, %rd2;
    cvta.to.global.u64 %rd3, %rd3;
    mul.wide.u32 %rd4, %r5, 4;
    add.u64 %rd5, %rd1, %rd4;
    add.u64 %rd6, %rd2, %rd4;
    add.u64 %rd7, %rd3, %rd4;
    ld.global.f32 %f1, [%rd5];
    ld.global.f32 %f2, [%rd6];
    fma.rn.f32 %f3, %f2, %f4, %f1;
    st.global.f32 [%rd7], %f3;
DONE:
    ret;
}
";

    type Failure = Box<dyn std::error::Error>;

    pub(crate) fn run() -> Result<(), Failure> {
        let device = Device::open(0)?;
        let p = device.properties().clone();
        println!(
            "device 0: {}, sm_{}{}, {} SMs at {} MHz, {} MiB, {} bytes of shared memory per block, driver CUDA {}.{}",
            p.name,
            p.compute_capability.0,
            p.compute_capability.1,
            p.sm_count,
            p.clock_khz / 1000,
            p.total_memory_bytes >> 20,
            p.max_shared_bytes_optin,
            p.driver_version.0,
            p.driver_version.1
        );

        let module = device.load_ptx(PTX)?;
        println!("assembler: {}", if module.log().is_empty() { "(silent)" } else { module.log() });
        let add = module.function("add")?;
        println!("{}: {:?}", add.name(), add.attributes());

        let n: u32 = 1_000_003;
        let (a, b) = (random(1, n), random(2, n));
        let (da, db) = (upload(&device, &a)?, upload(&device, &b)?);
        let dc = device.alloc(4 * n as usize)?;
        dc.fill(0xff)?;
        let args = [da.arg(), db.arg(), dc.arg(), LaunchArg::U32(n), LaunchArg::F32(0.75)];
        let grid = [n.div_ceil(256), 1, 1];
        let (start, end) = (device.event()?, device.event()?);
        let stream = device.stream()?;
        stream.record(&start)?;
        stream.launch(&add, &shape(grid, [256, 1, 1], 0), &args)?;
        stream.record(&end)?;
        println!("{:.4} ms", end.elapsed_ms_since(&start)?);
        device.synchronize()?;

        let mut bytes = vec![0; dc.bytes()];
        dc.download(0, &mut bytes)?;
        for (i, (chunk, (a, b))) in bytes.chunks_exact(4).zip(a.iter().zip(&b)).enumerate() {
            let found = f32::from_ne_bytes(chunk.try_into()?);
            let expected = b.mul_add(0.75, *a);
            if found.to_bits() != expected.to_bits() {
                return Err(format!("element {i} is {found}, expected {expected}").into());
            }
        }

        // Opting in to all the shared memory there is, and no more.
        add.set_max_dynamic_smem(p.max_shared_bytes_optin)?;
        device.launch(&add, &shape([1, 1, 1], [32, 1, 1], p.max_shared_bytes_optin), &args)?;
        device.synchronize()?;
        must_fail(
            "one byte more",
            device.launch(&add, &shape([1, 1, 1], [32, 1, 1], p.max_shared_bytes_optin + 1), &args),
        )?;
        must_fail("too many threads", device.launch(&add, &shape([1, 1, 1], [1024, 2, 1], 0), &args))?;
        must_fail("an empty grid", device.launch(&add, &shape([1, 0, 1], [32, 1, 1], 0), &args))?;
        if p.driver_version >= (12, 4) {
            must_fail("an argument short", device.launch(&add, &shape(grid, [256, 1, 1], 0), &args[..4]))?;
            let wide = [args[0], args[1], args[2], LaunchArg::U64(1), args[4]];
            must_fail("an argument too wide", device.launch(&add, &shape(grid, [256, 1, 1], 0), &wide))?;
        }
        must_fail("an unknown entry", module.function("sub").map(drop))?;
        must_fail("too much memory", device.alloc(usize::MAX / 2).map(drop))?;
        must_fail("an unknown device", Device::open(10_000).map(drop))?;
        let broken = device.load_ptx(&PTX.replace("fma.rn.f32", "fma.rn.f33")).map(drop);
        if !matches!(&broken, Err(CudaError::Jit { log, .. }) if log.contains("line")) {
            return Err(format!("the assembler's complaint is lost: {broken:?}").into());
        }
        must_fail("broken PTX", broken)?;
        Ok(())
    }

    fn must_fail(what: &str, result: Result<(), CudaError>) -> Result<(), Failure> {
        match result {
            Ok(()) => Err(format!("{what} was not refused").into()),
            Err(error) => {
                println!("refused {what}: {error}");
                Ok(())
            }
        }
    }

    fn upload(device: &Device, values: &[f32]) -> Result<tilec::cuda::Buffer, CudaError> {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        let buffer = device.alloc(bytes.len())?;
        buffer.upload(0, &bytes)?;
        Ok(buffer)
    }

    /// A linear congruential sequence in [-1, 1).
    fn random(seed: u32, n: u32) -> Vec<f32> {
        let mut state = seed;
        let step = |_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        };
        (0..n).map(step).collect()
    }
}

#[cfg(feature = "cuda")]
fn main() -> std::process::ExitCode {
    match smoke::run() {
        Ok(()) => {
            println!("ok");
            std::process::ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}

#[cfg(not(feature = "cuda"))]
fn main() {
    eprintln!("error: built without the feature `cuda`");
}
