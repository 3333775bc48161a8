//! A GEMM problem on a GPU, launched from the launch contracts and nothing else.
//!
//! Every tensor is in an allocation of its own, at an address that is a multiple of what the contract requests and of
//! no more, between guard bytes. Gaps between rows, guards, and C where it is only written start as 0xFF bytes, which is a
//! NaN in every type; afterwards every byte of every tensor is compared.

use crate::cases::Problem;
use crate::number::Format;
use crate::problem::{Random, Run};
use std::collections::BTreeMap;
use tilec::contract::{Dimension, LaunchFile, ParamKind, TensorParam};
use tilec::cuda::{Buffer, Device, Function, LaunchArg, Shape};
use tilec::loaded_kernel::tensor_map;
use tilec::{Args, Compiled, Contract, expr};
use tilec_ir::types::Elem;

/// Bytes on either side of a tensor.
const GUARD: usize = 256;
/// The value of poisoned bytes.
const POISON: u8 = 0xff;

/// A tensor on the host.
struct Matrix {
    format: Format,
    /// One, but of a batch.
    count: i64,
    rows: i64,
    cols: i64,
    /// From matrix to matrix, row to row, column to column.
    strides: [i64; 3],
    /// The whole allocation.
    bytes: Vec<u8>,
    /// Where element (0, 0) is.
    base: usize,
}

impl Matrix {
    fn at(&self, [z, i, j]: [i64; 3]) -> usize {
        let [matrix, row, col] = self.strides;
        self.base + (z * matrix + i * row + j * col) as usize * self.format.bytes()
    }

    /// Indices of all elements, matrix by matrix and row by row.
    fn indices(&self) -> impl Iterator<Item = [i64; 3]> + use<> {
        let (count, rows, cols) = (self.count, self.rows, self.cols);
        (0..count).flat_map(move |z| (0..rows).flat_map(move |i| (0..cols).map(move |j| [z, i, j])))
    }

    fn get(&self, at: [i64; 3]) -> f64 {
        self.format.decode(&self.bytes[self.at(at)..])
    }

    fn set(&mut self, at: [i64; 3], x: f64) {
        let at = self.at(at);
        self.bytes[at..at + self.format.bytes()].copy_from_slice(&self.format.encode(x));
    }

    /// Integers in every element, which the format holds; returned in order.
    fn fill(&mut self, random: &mut Random, range: i64) -> Vec<i32> {
        let mut values = Vec::with_capacity((self.count * self.rows * self.cols) as usize);
        for at in self.indices() {
            let x = random.between(-range, range);
            let x = if self.format.holds(x as f64) { x } else { x.abs() };
            self.set(at, x as f64);
            values.push(x as i32);
        }
        values
    }
}

/// A program on the device: its launches in order, and its temporaries.
pub struct Loaded {
    launches: Vec<(Contract, Function)>,
    temporaries: Vec<String>,
}

impl Loaded {
    /// Loads a compiled file. The contracts pass through JSON, so that nothing outside it is used.
    ///
    /// # Errors
    /// If the driver refuses it, or it has not exactly one kernel or sequence.
    pub fn new(device: &Device, compiled: &Compiled) -> Result<Loaded, String> {
        let file = LaunchFile::from_json(&compiled.launch_json()).map_err(|e| e.to_string())?;
        let (contracts, temporaries) = match (file.programs.as_slice(), file.kernels.as_slice()) {
            ([], [one]) => (vec![one.clone()], Vec::new()),
            ([program], _) => {
                let launches = file.launches(&program.name, &Args::new());
                let launches = launches.ok().flatten().ok_or("a kernel is missing")?;
                let temporaries = program.temporaries.iter().map(|t| t.name.clone()).collect();
                (launches.into_iter().cloned().collect(), temporaries)
            }
            _ => return Err("not one kernel or sequence".to_owned()),
        };
        let module = device.load_ptx(&compiled.ptx).map_err(|e| e.to_string())?;
        let mut launches = Vec::new();
        for contract in contracts {
            let function = module.function(&contract.entry).map_err(|e| e.to_string())?;
            if contract.dynamic_smem_bytes > 48 * 1024 {
                function.set_max_dynamic_smem(contract.dynamic_smem_bytes).map_err(|e| e.to_string())?;
            }
            if contract.has_large_clusters() {
                function.allow_large_clusters().map_err(|e| e.to_string())?;
            }
            launches.push((contract, function));
        }
        Ok(Loaded { launches, temporaries })
    }
}

/// Runs `problem` and compares.
///
/// # Errors
/// A precondition does not hold, the driver refuses something, or the result is not exact.
pub fn run(device: &Device, program: &Loaded, problem: &Problem) -> Result<(), String> {
    let run = problem.run();
    let mut state = State {
        device,
        problem,
        random: Random(problem.seed),
        program,
        matrices: BTreeMap::new(),
        buffers: BTreeMap::new(),
        values: BTreeMap::new(),
    };
    for (contract, function) in &program.launches {
        state.launch(contract, function, &run)?;
    }
    device.synchronize().map_err(|e| e.to_string())?;
    expect(&mut state.matrices, &state.values, problem)?;
    let kept = state.buffers.iter().filter(|(name, _)| !program.temporaries.contains(name));
    kept.into_iter().try_for_each(|(name, buffer)| compare(name, &state.matrices[name], buffer))
}

/// A run in progress.
struct State<'a> {
    device: &'a Device,
    problem: &'a Problem,
    random: Random,
    program: &'a Loaded,
    matrices: BTreeMap<String, Matrix>,
    buffers: BTreeMap<String, Buffer>,
    /// The elements of what is read.
    values: BTreeMap<String, Vec<i32>>,
}

impl State<'_> {
    fn launch(&mut self, contract: &Contract, function: &Function, run: &Run) -> Result<(), String> {
        let packed = |name: &str| match &contract.param(name)?.kind {
            ParamKind::Stride { packed: Some(text), .. } => expr::integer(text, &|n| run.integer(n).ok()).ok(),
            _ => None,
        };
        let lookup = |name: &str| run.integer(name).ok().or_else(|| packed(name));
        for text in &contract.requires {
            if !expr::condition(text, &lookup).map_err(|e| format!("`{text}`: {e}"))? {
                return Err(format!("the precondition `{text}` does not hold"));
            }
        }
        let integer =
            |text: &str| -> Result<i64, String> { expr::integer(text, &lookup).map_err(|e| format!("`{text}`: {e}")) };
        let scalar = |name: &str| run.value(name).ok_or_else(|| format!("no value for `{name}`"));
        let mut args = Vec::new();
        for param in &contract.params {
            let name = param.name.as_str();
            args.push(match &param.kind {
                ParamKind::Tensor(of) => LaunchArg::Ptr(self.place(name, of, &integer)?),
                ParamKind::Pointers(_) => return Err(format!("`{name}` is an array of pointers")),
                ParamKind::TensorMap(map) => {
                    let of = contract.param(&map.tensor).and_then(|p| p.kind.tensor());
                    let of = of.ok_or_else(|| format!("`{name}` is a map of no tensor"))?;
                    let list = |l: &[Dimension]| {
                        l.iter().flat_map(Dimension::parts).map(|text| integer(text)).collect::<Result<Vec<_>, _>>()
                    };
                    let (shape, strides) = (list(&of.shape)?, list(&of.strides)?);
                    let number = |list: &[i64], d: usize| list.get(d).map_or(0, |&x| x.unsigned_abs());
                    let described = map.of_tensor(
                        of.elem,
                        |d| number(&shape, d),
                        |d| number(&strides, d),
                        |text| integer(text).unwrap_or(i64::MAX),
                    );
                    LaunchArg::TensorMap(tensor_map(&described, self.place(&map.tensor, of, &integer)?))
                }
                ParamKind::Size { .. } => LaunchArg::U32(u32::try_from(run.integer(name)?).map_err(|e| e.to_string())?),
                ParamKind::Stride { .. } => LaunchArg::I64(integer(name)?),
                ParamKind::Scalar { elem: Elem::F32, .. } => LaunchArg::F32(scalar(name)? as f32),
                ParamKind::Scalar { elem: Elem::F64, .. } => LaunchArg::F64(scalar(name)?),
                ParamKind::Scalar { elem: Elem::I32, .. } => LaunchArg::I32(scalar(name)? as i32),
                ParamKind::Scalar { elem, .. } => {
                    return Err(format!("`{name}` is a scalar of type {}", elem.name()));
                }
            });
        }
        let mut grid = [0; 3];
        for (extent, text) in grid.iter_mut().zip(&contract.grid) {
            *extent = u32::try_from(integer(text)?).map_err(|e| format!("`{text}`: {e}"))?;
        }
        let shape = Shape::of(contract, grid);
        let launched = self.device.launch(function, &shape, &args);
        launched.map_err(|e| e.to_string())
    }

    /// The address of a tensor, which is made where no kernel before had it.
    fn place(
        &mut self,
        name: &str,
        of: &TensorParam,
        integer: &dyn Fn(&str) -> Result<i64, String>,
    ) -> Result<u64, String> {
        let TensorParam { elem, access, shape, strides, .. } = of;
        let launches = self.program.launches.iter();
        let align = launches.filter_map(|(c, _)| c.param(name)?.kind.tensor()).map(|t| t.align).max().unwrap_or(1);
        if !self.buffers.contains_key(name) {
            let list = |l: &[Dimension]| {
                l.iter().flat_map(Dimension::parts).map(|text| integer(text)).collect::<Result<Vec<_>, _>>()
            };
            let (count, rows, cols, strides) = match (&list(shape)?[..], &list(strides)?[..]) {
                (&[rows, cols], &[s0, s1]) => (1, rows, cols, [0, s0, s1]),
                (&[count, rows, cols], &[s0, s1, s2]) => (count, rows, cols, [s0, s1, s2]),
                _ => return Err(format!("`{name}` is neither a matrix nor a batch of them")),
            };
            let format = Format::from_name(elem.name()).ok_or_else(|| format!("`{name}` is {}", elem.name()))?;
            // An odd multiple of the alignment that some kernel requests, so that no larger one holds by chance.
            let base = GUARD + if align < 256 { align as usize } else { 0 };
            let last = [count, rows, cols].iter().zip(strides).map(|(n, stride)| (n - 1) * stride).sum::<i64>() + 1;
            let bytes = vec![POISON; base + last as usize * format.bytes() + GUARD];
            let mut matrix = Matrix { format, count, rows, cols, strides, bytes, base };
            let handed_on = self.program.temporaries.iter().any(|t| t == name);
            if access.reads() && !handed_on && (name != "C" || self.problem.beta != 0.0) {
                self.values.insert(name.to_owned(), matrix.fill(&mut self.random, self.problem.range));
            }
            let buffer = self.device.alloc(matrix.bytes.len()).map_err(|e| e.to_string())?;
            buffer.upload(0, &matrix.bytes).map_err(|e| e.to_string())?;
            self.buffers.insert(name.to_owned(), buffer);
            self.matrices.insert(name.to_owned(), matrix);
        }
        let address = self.buffers[name].address() + self.matrices[name].base as u64;
        if address.is_multiple_of(u64::from(align)) {
            Ok(address)
        } else {
            Err(format!("`{name}` is not at a multiple of {align} bytes"))
        }
    }
}

/// Puts into C what it must become.
fn expect(
    matrices: &mut BTreeMap<String, Matrix>,
    values: &BTreeMap<String, Vec<i32>>,
    problem: &Problem,
) -> Result<(), String> {
    let (Some(a), Some(b)) = (values.get("A"), values.get("B")) else {
        return Err("the contract has no inputs A and B".to_owned());
    };
    let old = values.get("C");
    let c = matrices.get_mut("C").ok_or("the contract has no output C")?;
    let [m, n, k] = problem.size.map(|x| x as usize);
    // Rows of all matrices of a batch.
    for row in 0..c.count as usize * m {
        let (z, i) = (row / m, row % m);
        let (a, b) = (&a[row * k..], &b[z * k * n..]);
        let mut sums = vec![0i32; n];
        for l in 0..k {
            let x = a[l];
            sums.iter_mut().zip(&b[l * n..]).for_each(|(sum, y)| *sum += x * y);
        }
        for (j, sum) in sums.into_iter().enumerate() {
            let before = old.map_or(0.0, |old| f64::from(old[row * n + j]));
            let x = problem.alpha * f64::from(sum) + problem.beta * before;
            // Integers and 8-bit floats are rounded and clamped once; the value before is exact.
            let narrow = matches!(c.format, Format::Int { .. } | Format::E4M3 | Format::E5M2);
            let x = if narrow && Format::F32.holds(x) { c.format.stored(x) } else { x };
            if !c.format.holds(x) || !problem.program.acc.holds(f64::from(sum)) {
                return Err(format!("the case is not exact: C({i}, {j}) = {x}"));
            }
            c.set([z as i64, i as i64, j as i64], x);
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
    for at in expected.indices() {
        let (want, got) = (expected.get(at), actual.get(at));
        // A zero may have either sign.
        if want != got && !(want.is_nan() && got.is_nan()) {
            bad += 1;
            first = first.or(Some((at, want, got)));
        }
    }
    if let Some(([z, i, j], want, got)) = first {
        let total = expected.count * expected.rows * expected.cols;
        let matrix = if expected.count > 1 { format!("{z}, ") } else { String::new() };
        return Err(format!("{name}({matrix}{i}, {j}) is {got}, expected {want}; {bad} of {total} elements differ"));
    }
    // Not an element: a gap or a guard, unless all that differs is the sign of zeros.
    let mut inside = vec![false; expected.bytes.len()];
    for at in expected.indices() {
        let at = expected.at(at);
        inside[at..at + expected.format.bytes()].fill(true);
    }
    match (0..inside.len()).find(|&b| !inside[b] && actual.bytes[b] != expected.bytes[b]) {
        None => Ok(()),
        Some(byte) => {
            let offset = byte as i64 - expected.base as i64;
            Err(format!("{name}: memory that is no element was written, {offset} bytes after the first"))
        }
    }
}
