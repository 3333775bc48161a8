//! The expected driver calls, from the library's own evaluation of the contract.

use super::problems::{Problem, contracts};
use std::fmt::Write as _;
use tilec::c_header::Image;
use tilec::contract::{Contract, ParamKind, Scratch};
use tilec::cuda::{LaunchArg, TensorMap};
use tilec::expr;
use tilec::loaded_kernel::launch_args;
use tilec::program::bind_program;
use tilec_ir::layout::hardware::Exchange;
use tilec_ir::types::Elem;

/// Where scratch memory begins.
pub(super) const WORKSPACE: u64 = 0x7000_0000_0000_0000;
/// Where words that are zero begin.
pub(super) const SIGNALS: u64 = 0x7100_0000_0000_0000;
/// Bytes that pieces of scratch memory are a multiple of.
const PIECE: u64 = 256;
/// Dynamic shared memory that needs no permission.
const UNRAISED: u32 = 49_152;

/// Bytes of a parameter.
pub(super) fn param_bytes(kind: &ParamKind) -> u64 {
    match kind {
        ParamKind::Tensor(_) | ParamKind::Pointers(_) | ParamKind::Stride { .. } => 8,
        ParamKind::TensorMap(_) => 128,
        ParamKind::Size { .. } => 4,
        ParamKind::Scalar { elem, .. } => elem.bytes_of(1),
    }
}

/// The addresses of a kernel's or program's tensors, far apart.
pub(super) fn addresses(image: &Image<'_>, name: &str) -> Vec<(String, u64)> {
    let mut all: Vec<(String, u64)> = Vec::new();
    for param in contracts(image, name).iter().flat_map(|c| &c.params).filter(|p| p.kind.tensor().is_some()) {
        if all.iter().all(|(known, _)| *known != param.name) {
            all.push((param.name.clone(), (all.len() as u64 + 1) << 48));
        }
    }
    all
}

/// A piece of scratch memory.
fn take(used: &mut u64, base: u64, bytes: u64) -> u64 {
    let at = base + *used;
    *used += bytes.next_multiple_of(PIECE);
    at
}

/// All that is written down when the problems of an image are launched.
///
/// # Errors
/// The launch file is none.
pub(super) fn calls(image: &Image<'_>, problems: &[Problem]) -> Result<String, String> {
    let mut out = format!("cc {}\n", image.target.cc());
    let hash = image
        .ptx
        .bytes()
        .fold(14_695_981_039_346_656_037u64, |hash, b| (hash ^ u64::from(b)).wrapping_mul(1_099_511_628_211));
    let _ = writeln!(out, "load {hash:016x}");
    for contract in &image.file.kernels {
        if contract.dynamic_smem_bytes > UNRAISED {
            let _ = writeln!(out, "attribute {} 8 {}", contract.entry, contract.dynamic_smem_bytes);
        }
        if contract.has_large_clusters() {
            let _ = writeln!(out, "attribute {} 14 1", contract.entry);
        }
    }
    for problem in problems {
        out.push_str(&problem_calls(image, problem)?);
    }
    out.push_str("unload\n");
    Ok(out)
}

fn problem_calls(image: &Image<'_>, problem: &Problem) -> Result<String, String> {
    let Problem { name, args } = problem;
    let launches = image.file.launches(name, args).map_err(|e| format!("{e:?}"))?;
    let launches: Vec<&Contract> = launches.ok_or_else(|| format!("there is no `{name}`"))?;
    let Ok(bound) = bind_program(&launches, args) else { return Ok("refused\n".to_owned()) };
    let addresses = addresses(image, name);
    let mut at: Vec<(String, u64)> = addresses;
    let (mut workspace, mut signals) = (0, 0);
    if let Some(program) = image.file.programs.iter().find(|p| p.name == *name) {
        let value = |name: &str| bound.values.get(name).and_then(|v| v.to_i64());
        for temporary in &program.temporaries {
            let bytes = expr::integer(&temporary.bytes, &value).map_err(|e| e.to_string())?;
            set(&mut at, &temporary.name, take(&mut workspace, WORKSPACE, bytes.max(0).unsigned_abs()));
        }
    }
    let mut out = String::new();
    for (contract, own) in launches.iter().zip(&bound.launches).filter(|(_, own)| own.has_blocks()) {
        for (scratch, plan) in &own.scratch {
            let address = match scratch {
                Scratch::Elements => take(&mut workspace, WORKSPACE, plan.bytes()),
                Scratch::Signals => take(&mut signals, SIGNALS, plan.bytes()),
            };
            set(&mut at, &plan.name, address);
        }
        let address = |name: &str| at.iter().find(|(n, _)| n == name).map_or(0, |(_, at)| *at);
        launch(contract, own.grid, &launch_args(contract, own, address), &mut out);
    }
    let scratch = has_scratch(image, name);
    let scratch = if scratch { format!("scratch {workspace} {signals}\n") } else { String::new() };
    Ok(format!("{scratch}{out}fine\n"))
}

fn set(at: &mut [(String, u64)], name: &str, address: u64) {
    at.iter_mut().filter(|(n, _)| n == name).for_each(|(_, to)| *to = address);
}

/// Whether the header requests scratch memory for this kernel or program.
pub(super) fn has_scratch(image: &Image<'_>, name: &str) -> bool {
    let temporaries = image.file.programs.iter().any(|p| p.name == name && !p.temporaries.is_empty());
    let own = |c: &&Contract| c.params.iter().any(|p| p.kind.tensor().is_some_and(|t| t.scratch.is_some()));
    temporaries || contracts(image, name).iter().any(own)
}

/// The lines of one launch.
fn launch(contract: &Contract, grid: [u32; 3], args: &[LaunchArg], out: &mut String) {
    let (mut line, mut maps) = (format!("launch {}", contract.entry), 0);
    for n in grid.iter().chain(&contract.block).chain([&contract.dynamic_smem_bytes]) {
        let _ = write!(line, " {n}");
    }
    let [x, y, z] = contract.cluster;
    let _ = write!(line, " cluster {x} {y} {z} programmatic {}:", u8::from(contract.programmatic));
    for arg in args {
        let bytes = match *arg {
            LaunchArg::Ptr(x) | LaunchArg::U64(x) => x.to_le_bytes().to_vec(),
            LaunchArg::I64(x) => x.to_le_bytes().to_vec(),
            LaunchArg::F64(x) => x.to_le_bytes().to_vec(),
            LaunchArg::U32(x) => x.to_le_bytes().to_vec(),
            LaunchArg::I32(x) => x.to_le_bytes().to_vec(),
            LaunchArg::F32(x) => x.to_le_bytes().to_vec(),
            LaunchArg::U16(x) | LaunchArg::F16(x) | LaunchArg::Bf16(x) => x.to_le_bytes().to_vec(),
            LaunchArg::U8(x) => vec![x],
            LaunchArg::I8(x) => x.to_le_bytes().to_vec(),
            LaunchArg::TensorMap(ref map) => {
                out.push_str(&encoded(map));
                let _ = write!(line, " map{maps}");
                maps += 1;
                continue;
            }
        };
        line.push(' ');
        bytes.iter().for_each(|b| _ = write!(line, "{b:02x}"));
    }
    let _ = writeln!(out, "{line}");
}

/// The line of a tensor map. The codes are those of the driver API manual, section "Tensor Map Object Management".
fn encoded(map: &TensorMap) -> String {
    let code = match map.elem {
        Elem::U16 | Elem::I16 => 1,
        Elem::U32 => 2,
        Elem::I32 => 3,
        Elem::U64 => 4,
        Elem::I64 => 5,
        Elem::F16 => 6,
        Elem::F32 | Elem::TF32 => 7,
        Elem::F64 => 8,
        Elem::BF16 => 9,
        Elem::U8 | Elem::I8 | Elem::E4M3 | Elem::E5M2 | Elem::E2M1 | Elem::UE8M0 | Elem::I4 | Elem::U4 | Elem::Bool => {
            0
        }
    };
    let rank = map.rank as usize;
    let list = |name: &str, numbers: Vec<String>| format!(" {name} {}", numbers.join(" "));
    let long = |numbers: &[u64]| numbers.iter().map(u64::to_string).collect::<Vec<_>>();
    let short = |numbers: &[u32]| numbers.iter().map(u32::to_string).collect::<Vec<_>>();
    let swizzle = match map.swizzle {
        Exchange::Plain => 0,
        Exchange::Bytes32 => 1,
        Exchange::Bytes64 => 2,
        Exchange::Bytes128 => 3,
    };
    let kind = if map.pixels.is_some() { "im2col" } else { "tiled" };
    let mut out = format!("{kind} {code} at {:x}", map.begin());
    out += &list("extents", long(&map.extents[..rank]));
    out += &list("strides", long(&map.strides[1..rank]));
    match &map.pixels {
        None => out += &list("box", short(&map.box_extents[..rank])),
        Some(pixels) => {
            let corners = pixels.lower.iter().zip(&pixels.upper).take(rank - 2).map(|(l, u)| format!("{l} {u}"));
            out += &list("corners", corners.collect());
            let _ = write!(out, " of {} {}", map.box_extents[0], pixels.count);
        }
    }
    out += &list("steps", short(&map.steps[..rank]));
    let _ = writeln!(out, " modes 0 {swizzle} 2 0");
    out
}
