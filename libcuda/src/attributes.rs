//! Attributes of the device and of functions, by the numbers of `cuda.h`.

use crate::code::{Code, Failure};
use tilec_core::hardware::{MAX_BLOCK, MAX_GRID, SMEM_WITHOUT_OPTIN};
use tilec_ir::target::{MAX_THREADS, REGISTERS_PER_SM, Target, WARP};
use tilec_sim::Program;
use tilec_sim::occupancy::MULTIPROCESSORS;

/// Bytes of device memory that are reported: the simulator's allocation limit.
pub(crate) const MEMORY: u64 = 8 << 30;

/// An attribute of a device (`CUdevice_attribute`).
pub(crate) fn of_device(target: Target, attribute: i32) -> Result<i32, Failure> {
    let whole = |n: u64| Ok(i32::try_from(n).unwrap_or(i32::MAX));
    match attribute {
        // Threads of a block, along each of its axes, and blocks along each axis of the grid.
        1 => whole(u64::from(MAX_THREADS)),
        2..=4 => whole(u64::from(MAX_BLOCK[attribute as usize - 2])),
        5..=7 => whole(MAX_GRID[attribute as usize - 5].unsigned_abs()),
        // Shared memory of a block without permission, constant memory, threads of a warp, registers of a block.
        8 => whole(u64::from(SMEM_WITHOUT_OPTIN)),
        9 => whole(64 << 10),
        10 => whole(u64::from(WARP)),
        12 | 82 => whole(u64::from(REGISTERS_PER_SM)),
        // Clock in kHz: the simulator has none.
        13 | 36 => Ok(1),
        16 => whole(u64::from(MULTIPROCESSORS)),
        // Alignment of textures. There are no copy engines, no time limit, no integrated device.
        14 => Ok(512),
        15 | 17 | 18 | 32 | 35 | 40 => Ok(0),
        // Mapped host memory and one address space with the host: none. Kernels side by side.
        19 | 41 => Ok(0),
        31 => Ok(1),
        // Compute mode, ECC, PCI numbers.
        20 | 33 | 34 | 50 => Ok(0),
        37 => Ok(5120),
        38 => whole(50 << 20),
        39 => whole(u64::from(target.warps_per_sm() * WARP)),
        75 => whole(u64::from(target.cc() / 10)),
        76 => whole(u64::from(target.cc() % 10)),
        81 => whole(target.smem_per_sm()),
        // Managed memory, multi-GPU board, cooperative launches: none.
        83..=85 | 95 | 96 => Ok(0),
        97 => whole(target.smem_per_block()),
        106 => whole(u64::from(target.ctas_per_sm())),
        111 => whole(target.smem_reserved()),
        // Memory pools, clusters, tensor maps.
        115 => Ok(1),
        120 => Ok(i32::from(target.has_clusters())),
        127 => Ok(i32::from(target.has_tensor_copies())),
        _ => Err(Failure::new(Code::NotSupported, format!("the device attribute {attribute} is not known"))),
    }
}

/// An attribute of a function (`CUfunction_attribute`). `dynamic` is the dynamic shared memory that launches may request.
pub(crate) fn of_function(
    program: &Program,
    entry: &str,
    target: Target,
    dynamic: u32,
    attribute: i32,
) -> Result<i32, Failure> {
    let (major, minor) = program.version();
    match attribute {
        0 => Ok(MAX_THREADS as i32),
        1 => Ok(program.static_shared(entry).and_then(|bytes| i32::try_from(bytes).ok()).unwrap_or(0)),
        // Constant and local memory: the assembler decides on them, and there is none.
        2 | 3 => Ok(0),
        // Registers: not known without the assembler; the most that a thread may have.
        4 => Ok(tilec_ir::target::REGISTERS_PER_THREAD as i32),
        5 => Ok((major * 10 + minor) as i32),
        6 => Ok(target.cc() as i32),
        7 => Ok(0),
        8 => Ok(dynamic as i32),
        9 => Ok(-1),
        _ => Err(Failure::new(Code::NotSupported, format!("the function attribute {attribute} is not known"))),
    }
}
