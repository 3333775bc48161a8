//! Launches whose counts are compared: kernels of the corpus that the assembler translates access by access, and our own
//! products with and without swizzled layouts.

use super::metrics::Group;
use crate::corpus::{self, Agreement, Case, Expect, Output, Param};
use crate::number::Format;
use crate::problem::Random;
use std::borrow::Cow;
use tilec::contract::{Access, ParamKind, TensorParam};
use tilec::{CompileOptions, Target, expr};

/// A launch, and the counts that machine code is known not to share with the PTX it came from.
pub struct Counted {
    /// What to launch.
    pub case: Case,
    /// Groups of counts that differ, each with the reason.
    pub apart: Vec<(Group, &'static str)>,
    /// Copies fill lines of shared memory from several lines of the source, in many warps at once: the wavefronts that they take
    /// depend on when the parts arrive.
    pub gathers: bool,
}

/// Cases of the corpus, by name.
const CORPUS: &[&str] = &[
    "access shared_u8 stride 1 shift 0",
    "access shared_u8 stride 8 shift 7",
    "access shared_u16 stride 1 shift 0",
    "access shared_u16 stride 32 shift 31",
    "access shared_u32 stride 1 shift 0",
    "access shared_u32 stride 2 shift 1",
    "access shared_u32 stride 3 shift 2",
    "access shared_u32 stride 8 shift 7",
    "access shared_u32 stride 32 shift 31",
    "access shared_u64 stride 1 shift 0",
    "access shared_u64 stride 2 shift 1",
    "access shared_u64 stride 3 shift 2",
    "access shared_u64 stride 32 shift 31",
    "access shared_u128 stride 1 shift 0",
    "access shared_u128 stride 2 shift 1",
    "access shared_u128 stride 3 shift 2",
    "access shared_u128 stride 32 shift 31",
    "access global_u8 stride 1 shift 0",
    "access global_u8 stride 1 shift 3",
    "access global_u8 stride 32 shift 0",
    "access global_u32 stride 1 shift 0",
    "access global_u32 stride 1 shift 3",
    "access global_u32 stride 2 shift 0",
    "access global_u32 stride 5 shift 1",
    "access global_u32 stride 32 shift 0",
    "access global_u128 stride 1 shift 0",
    "access global_u128 stride 1 shift 3",
    "access global_u128 stride 5 shift 1",
    "access global_store stride 1 shift 0",
    "access global_store stride 1 shift 3",
    "access global_store stride 5 shift 1",
    "access global_store stride 32 shift 0",
    "ldmatrix pitch 16",
    "ldmatrix pitch 32",
    "ldmatrix pitch 64",
    "ldmatrix pitch 80",
    "ldmatrix pitch 128",
    "transpose 96",
    "transpose_xor 96",
    "transpose_plain 96",
    "bitonic",
    "stencil",
    "scan",
    "ring 11",
    "gemm_blocked 128x64x40",
    "gemm_tiled 64x64x64",
    "gemm_wmma 64x96x96 integers",
    "gemm_mma 64x32x192 integers",
    "gemm_pipeline 64x128x224 integers",
];

/// All cases whose names start so: one question about a cost each.
const PROBES: &[&str] = &["copies ", "loads "];

/// Definitions of `examples/gemm.tile` for sm_80: registers and `cp.async`, in every depth, width, order and accumulator.
const PRODUCTS: &[&[(&str, &str)]] = &[
    &[("STAGES", "3")],
    &[("STAGES", "4")],
    &[("STAGES", "3"), ("BK", "64")],
    &[("STAGES", "4"), ("BK", "64"), ("BM", "64"), ("BN", "64"), ("WM", "32"), ("WN", "32")],
    &[("Acc", "f16"), ("Scale", "f32")],
    &[("STAGES", "4"), ("Acc", "f16"), ("Scale", "f32")],
    &[("STAGES", "4"), ("LA", "col")],
    &[("STAGES", "4"), ("LB", "col")],
    &[("STAGES", "4"), ("LA", "col"), ("LB", "col")],
    &[("STAGES", "4"), ("LC", "col")],
    &[("LA", "col"), ("LB", "col")],
    &[("STAGES", "4"), ("BM", "64"), ("BN", "64"), ("WM", "32"), ("WN", "32"), ("T", "bf16")],
];

/// The hardware reconverges lanes at `BSYNC`, which the assembler places after the loop and the branch.
const DIVERGED: &str =
    "the simulator joins lanes that a branch parted at the next barrier or exit, the machine code behind the branch";
/// The one pattern of the probes that no rule explains: 60 wavefronts besides those that write zeros, expected 32.
const SAME_SOURCE: &str = "not modelled: several lanes that copy the same 16 bytes";
/// Holds for all code for sm_70.
const EMULATED: &str = "Hopper has no m8n8k4 of f16: ptxas emulates it, without tensor cores";

/// Effects of ptxas on single kernels when it assembles them for Hopper, as seen in the machine code.
const APART: &[(&str, Group, &str)] = &[
    ("gemm_tiled", Group::SharedLoads, "ptxas joins four loads of the unrolled row into one of 16 bytes"),
    ("gemm_wmma", Group::SharedLoads, "wmma.load becomes ldmatrix"),
    ("gemm_wmma", Group::MatrixLoads, "wmma.load becomes ldmatrix"),
    ("stencil", Group::GlobalLoads, DIVERGED),
    ("stencil", Group::SharedStores, DIVERGED),
    ("stencil", Group::GlobalStores, DIVERGED),
    ("gemm.tile sm_70", Group::Products, EMULATED),
    ("copies copy16 one source", Group::CopyWrites, SAME_SOURCE),
];

/// Probes whose loops over shared memory some lanes leave a turn before others.
const UNEVEN: &[&str] = &[
    "copies copy16 destination off by 32",
    "copies copy16 first sector split",
    "copies copy16_ca rows apart",
    "copies copy8 a column",
    "copies copy4 a column",
];

/// Launches of [`Counted::gathers`]: rows of 64 bytes, many warps. (The probes have one warp each and agree.)
const GATHERS: &[&str] = &["gemm_pipeline", "gemm.tile sm_80"];

/// All launches.
///
/// # Errors
/// A case is not in the corpus, or one of our products does not compile.
pub fn launches() -> Result<Vec<Counted>, String> {
    let mut cases = Vec::new();
    let all = corpus::all();
    for name in CORPUS {
        let case = all.iter().find(|c| c.name == *name).ok_or_else(|| format!("no case `{name}` in the corpus"))?;
        cases.push(case.clone());
    }
    for target in [Target::Sm70, Target::Sm75, Target::Sm80] {
        for disabled in [None, Some("swizzle")] {
            cases.push(product(target, disabled, &[])?);
        }
    }
    for defines in PRODUCTS {
        cases.push(product(Target::Sm80, None, defines)?);
    }
    cases.extend(all.iter().filter(|c| PROBES.iter().any(|start| c.name.starts_with(start))).cloned());
    let counted = |case: Case| {
        let is = |start: &&str| case.name.starts_with(*start);
        let mut apart: Vec<_> = APART.iter().filter(|a| is(&a.0)).map(|a| (a.1, a.2)).collect();
        if UNEVEN.iter().any(is) {
            apart.extend([Group::SharedLoads, Group::SharedStores, Group::GlobalStores].map(|g| (g, DIVERGED)));
        }
        Counted { apart, gathers: GATHERS.iter().any(is), case }
    };
    Ok(cases.into_iter().map(counted).collect())
}

/// `examples/gemm.tile` for a target, 128 x 128 x 128, perhaps without a pass, with definitions.
fn product(target: Target, disabled: Option<&str>, defines: &[(&str, &str)]) -> Result<Case, String> {
    const SIZE: usize = 128;
    // The schedule that was measured, not the one the model would choose today.
    const SCHEDULE: [(&str, &str); 8] = [
        ("BM", "128"),
        ("BN", "128"),
        ("BK", "32"),
        ("WM", "64"),
        ("WN", "64"),
        ("KW", "1"),
        ("STAGES", "2"),
        ("RASTER", "8"),
    ];
    let rest = SCHEDULE.iter().filter(|(name, _)| !defines.iter().any(|(n, _)| n == name));
    let all = defines.iter().chain(rest);
    let options = CompileOptions {
        source_name: crate::cases::NAME.to_owned(),
        target,
        defines: all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        disabled: disabled.iter().map(|pass| (*pass).to_owned()).collect(),
        ..CompileOptions::default()
    };
    let compiled = tilec::compile(crate::cases::GEMM, &options).map_err(|e| e.to_string())?;
    let contract = compiled.contracts().into_iter().next().ok_or("no kernel")?;
    let packed = |name: &str| match name {
        "M" | "N" | "K" | "A_ld" | "B_ld" | "C_ld" => Some(SIZE as i64),
        _ => None,
    };
    let column = |name: &str| defines.contains(&(name, "col"));
    let [a_col, b_col, c_col] = ["LA", "LB", "LC"].map(column);
    let mut random = Random(1);
    let mut matrices: Vec<Vec<i64>> = Vec::new();
    let (mut params, mut outputs) = (Vec::new(), Vec::new());
    for param in &contract.params {
        params.push(match &param.kind {
            ParamKind::Tensor(TensorParam { elem, access, .. })
            | ParamKind::Pointers(TensorParam { elem, access, .. }) => {
                let format = Format::from_name(elem.name()).ok_or_else(|| format!("`{}`: {elem:?}", param.name))?;
                if matches!(access, Access::Read) {
                    let values: Vec<i64> = (0..SIZE * SIZE).map(|_| random.between(-4, 4)).collect();
                    let bytes = values.iter().flat_map(|v| format.encode(*v as f64)).collect();
                    matrices.push(values);
                    Param::In(bytes)
                } else {
                    let [a, b] = &matrices[..] else { return Err("the output is not the third tensor".to_owned()) };
                    let place = |row: usize, column: usize, by_column| {
                        if by_column { column * SIZE + row } else { row * SIZE + column }
                    };
                    let term = |row, column, l| a[place(row, l, a_col)] * b[place(l, column, b_col)];
                    let at = |i: usize| {
                        let (row, column) = if c_col { (i % SIZE, i / SIZE) } else { (i / SIZE, i % SIZE) };
                        (0..SIZE).map(|l| term(row, column, l)).sum::<i64>()
                    };
                    let bytes: Vec<u8> = (0..SIZE * SIZE).flat_map(|i| format.encode(at(i) as f64)).collect();
                    let before = vec![0; bytes.len()];
                    outputs.push(Output::Bits(bytes));
                    Param::Out(before)
                }
            }
            ParamKind::TensorMap(_) => return Err(format!("`{}`: tensor maps are not counted", param.name)),
            ParamKind::Size { .. } => Param::Value((SIZE as u32).to_le_bytes().to_vec()),
            ParamKind::Stride { .. } => Param::Value((SIZE as i64).to_le_bytes().to_vec()),
            ParamKind::Scalar { default, .. } => {
                Param::Value((default.map_or(1.0, |x| x.to_f64()) as f32).to_le_bytes().to_vec())
            }
        });
    }
    let mut grid = [0; 3];
    for (extent, text) in grid.iter_mut().zip(&contract.grid) {
        let value = expr::integer(text, &packed).map_err(|e| format!("`{text}`: {e}"))?;
        *extent = u32::try_from(value).map_err(|e| format!("`{text}`: {e}"))?;
    }
    let without = disabled.map(|pass| format!(" without {pass}")).unwrap_or_default();
    let with: String = defines.iter().map(|(name, value)| format!(" {name}={value}")).collect();
    Ok(Case {
        name: format!("gemm.tile {}{without}{with}", target.name()),
        ptx: compiled.ptx.clone().into(),
        entry: Cow::Owned(contract.entry.clone()),
        grid,
        block: contract.block,
        dynamic: contract.dynamic_smem_bytes,
        params,
        expect: Expect::Outputs(outputs),
        agreement: Agreement::Bits,
    })
}
