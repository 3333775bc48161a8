//! A GEMM problem on a GPU, launched from the launch contract and nothing else.
//!
//! Every tensor lies in an allocation of its own, at an address that is a multiple of what the contract asks for and of
//! no more, between guard bytes. Gaps between rows, guards, and C where it is only written start as 0xFF bytes, which is a
//! NaN in every type; afterwards every byte of every tensor is compared.

use crate::cases::Problem;
use crate::number::Format;
use crate::problem::Random;
use std::collections::BTreeMap;
use tilec::Contract;
use tilec::contract::{Dimension, ParamKind, TensorParam};
use tilec::cuda::{Buffer, Device, Function, LaunchArg};
use tilec::expr;
use tilec_ir::types::Elem;

/// Bytes on either side of a tensor.
const GUARD: usize = 256;
/// What poisoned bytes are.
const POISON: u8 = 0xff;

/// A tensor on the host.
struct Matrix {
    format: Format,
    rows: i64,
    cols: i64,
    strides: [i64; 2],
    /// The whole allocation.
    bytes: Vec<u8>,
    /// Where element (0, 0) is.
    base: usize,
}

impl Matrix {
    fn at(&self, i: i64, j: i64) -> usize {
        self.base + (i * self.strides[0] + j * self.strides[1]) as usize * self.format.bytes()
    }

    fn get(&self, i: i64, j: i64) -> f64 {
        self.format.decode(&self.bytes[self.at(i, j)..])
    }

    fn set(&mut self, i: i64, j: i64, x: f64) {
        let at = self.at(i, j);
        self.bytes[at..at + self.format.bytes()].copy_from_slice(&self.format.encode(x));
    }

    /// Integers in every element; returned row by row.
    fn fill(&mut self, random: &mut Random, range: i64) -> Vec<i32> {
        let mut values = Vec::with_capacity((self.rows * self.cols) as usize);
        for i in 0..self.rows {
            for j in 0..self.cols {
                let x = random.between(-range, range);
                self.set(i, j, x as f64);
                values.push(x as i32);
            }
        }
        values
    }
}

/// Runs `problem` and compares.
///
/// # Errors
/// A precondition does not hold, the driver refuses something, or the result is not exact.
pub fn run(device: &Device, function: &Function, contract: &Contract, problem: &Problem) -> Result<(), String> {
    (0..problem.batch).try_for_each(|i| once(device, function, contract, problem, problem.seed ^ i))
}

fn once(device: &Device, function: &Function, contract: &Contract, problem: &Problem, seed: u64) -> Result<(), String> {
    let run = problem.run();
    let lookup = |name: &str| run.integer(name).ok().map(i128::from);
    for text in &contract.requires {
        if !expr::condition(text, &lookup).map_err(|e| format!("`{text}`: {e}"))? {
            return Err(format!("the precondition `{text}` does not hold"));
        }
    }
    let integer = |text: &String| -> Result<i64, String> {
        let value = expr::integer(text, &lookup).map_err(|e| format!("`{text}`: {e}"))?;
        i64::try_from(value).map_err(|e| format!("`{text}`: {e}"))
    };
    let scalar = |name: &str| run.value(name).ok_or_else(|| format!("no value for `{name}`"));
    let mut random = Random(seed);
    let (mut matrices, mut buffers, mut args) = (BTreeMap::new(), Vec::new(), Vec::new());
    let mut values = BTreeMap::new();
    for param in &contract.params {
        let name = param.name.as_str();
        match &param.kind {
            ParamKind::Tensor(TensorParam { elem, align, access, shape, strides, .. }) => {
                let shape = shape.iter().flat_map(Dimension::parts).map(integer).collect::<Result<Vec<_>, _>>()?;
                let strides = strides.iter().flat_map(Dimension::parts).map(integer).collect::<Result<Vec<_>, _>>()?;
                let (&[rows, cols], &[s0, s1]) = (&shape[..], &strides[..]) else {
                    return Err(format!("`{name}` is not a matrix"));
                };
                let format = Format::from_name(elem.name()).ok_or_else(|| format!("`{name}` is {}", elem.name()))?;
                // An odd multiple of the alignment, so that no larger one holds by chance.
                let base = GUARD + if *align < 256 { *align as usize } else { 0 };
                let last = ((rows - 1) * s0 + (cols - 1) * s1 + 1) as usize * format.bytes();
                let bytes = vec![POISON; base + last + GUARD];
                let mut matrix = Matrix { format, rows, cols, strides: [s0, s1], bytes, base };
                if access.reads() && (name != "C" || problem.beta != 0.0) {
                    values.insert(name, matrix.fill(&mut random, problem.range));
                }
                let buffer = device.alloc(matrix.bytes.len()).map_err(|e| e.to_string())?;
                buffer.upload(0, &matrix.bytes).map_err(|e| e.to_string())?;
                let address = buffer.address() + base as u64;
                if !address.is_multiple_of(u64::from(*align)) {
                    return Err(format!("`{name}` is not at a multiple of {align} bytes"));
                }
                args.push(LaunchArg::Ptr(address));
                buffers.push((name, buffer));
                matrices.insert(name, matrix);
            }
            ParamKind::Pointers(_) => return Err(format!("`{name}` is an array of pointers")),
            ParamKind::Size { .. } => {
                args.push(LaunchArg::U32(u32::try_from(run.integer(name)?).map_err(|e| e.to_string())?));
            }
            ParamKind::Stride { .. } => args.push(LaunchArg::I64(run.integer(name)?)),
            ParamKind::Scalar { elem: Elem::F32, .. } => {
                args.push(LaunchArg::F32(scalar(name)? as f32));
            }
            ParamKind::Scalar { elem: Elem::F64, .. } => args.push(LaunchArg::F64(scalar(name)?)),
            ParamKind::Scalar { elem: Elem::I32, .. } => args.push(LaunchArg::I32(scalar(name)? as i32)),
            ParamKind::Scalar { elem, .. } => return Err(format!("`{name}` is a scalar of type {}", elem.name())),
        }
    }
    let mut grid = [0; 3];
    for (extent, text) in grid.iter_mut().zip(&contract.grid) {
        *extent = u32::try_from(integer(text)?).map_err(|e| format!("`{text}`: {e}"))?;
    }
    device.launch(function, grid, contract.block, contract.dynamic_smem_bytes, &args).map_err(|e| e.to_string())?;
    device.synchronize().map_err(|e| e.to_string())?;
    expect(&mut matrices, &values, problem)?;
    buffers.iter().try_for_each(|(name, buffer)| compare(name, &matrices[name], buffer))
}

/// Puts into C what it must become.
fn expect(
    matrices: &mut BTreeMap<&str, Matrix>,
    values: &BTreeMap<&str, Vec<i32>>,
    problem: &Problem,
) -> Result<(), String> {
    let (Some(a), Some(b)) = (values.get("A"), values.get("B")) else {
        return Err("the contract has no inputs A and B".to_owned());
    };
    let old = values.get("C");
    let c = matrices.get_mut("C").ok_or("the contract has no output C")?;
    let [m, n, k] = problem.size.map(|x| x as usize);
    for i in 0..m {
        let mut sums = vec![0i32; n];
        for l in 0..k {
            let x = a[i * k + l];
            sums.iter_mut().zip(&b[l * n..]).for_each(|(sum, y)| *sum += x * y);
        }
        for (j, sum) in sums.into_iter().enumerate() {
            let before = old.map_or(0.0, |old| f64::from(old[i * n + j]));
            let x = problem.alpha * f64::from(sum) + problem.beta * before;
            // What integers cannot hold is clamped.
            let x = if matches!(c.format, Format::Int { .. }) { c.format.stored(x) } else { x };
            if !c.format.holds(x) || !problem.program.acc.holds(f64::from(sum)) {
                return Err(format!("the case is not exact: C({i}, {j}) = {x}"));
            }
            c.set(i as i64, j as i64, x);
        }
    }
    Ok(())
}

fn compare(name: &str, expected: &Matrix, buffer: &Buffer) -> Result<(), String> {
    let mut bytes = vec![0; expected.bytes.len()];
    buffer.download(0, &mut bytes).map_err(|e| e.to_string())?;
    if bytes == expected.bytes {
        return Ok(());
    }
    let actual = Matrix { bytes, ..*expected };
    let mut bad = 0;
    let mut first = None;
    for i in 0..expected.rows {
        for j in 0..expected.cols {
            let (want, got) = (expected.get(i, j), actual.get(i, j));
            // A zero may have either sign.
            if want != got && !(want.is_nan() && got.is_nan()) {
                bad += 1;
                first = first.or(Some((i, j, want, got)));
            }
        }
    }
    if let Some((i, j, want, got)) = first {
        let count = expected.rows * expected.cols;
        return Err(format!("{name}({i}, {j}) is {got}, expected {want}; {bad} of {count} elements differ"));
    }
    // Not an element: a gap or a guard, unless all that differs is the sign of zeros.
    let mut inside = vec![false; expected.bytes.len()];
    for i in 0..expected.rows {
        for j in 0..expected.cols {
            let at = expected.at(i, j);
            inside[at..at + expected.format.bytes()].fill(true);
        }
    }
    match (0..inside.len()).find(|&b| !inside[b] && actual.bytes[b] != expected.bytes[b]) {
        None => Ok(()),
        Some(byte) => {
            let offset = byte as i64 - expected.base as i64;
            Err(format!("{name}: memory that is no element was written, {offset} bytes after element (0, 0)"))
        }
    }
}
