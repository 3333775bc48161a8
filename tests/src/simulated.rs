//! A compiled program on the simulator: the PTX text and the launch contract, and nothing else of the compiler.
//!
//! Each tensor has an allocation of its own, at an odd multiple of the alignment that the contract requires. The multiple
//! depends on the seed and the tensor. With `at=8`, all tensors are at the eighth multiple. The simulator reports
//!
//! * accesses around a tensor, and to gaps between its elements; if the contract allows loads of gaps, these contain NaN;
//! * loads of elements that the kernel only writes, before it has written them;
//! * stores to tensors that the kernel only reads.

use crate::golden;
use crate::number::Format;
use crate::problem::{self, GAP, Run, Tensor};
use std::collections::BTreeMap;
use std::fmt;
use tilec::contract::{Dimension, LaunchFile, Param, ParamKind, Scratch, TensorMapParam, TensorParam};
use tilec::{Args, Compiled, Contract, expr};
use tilec_ir::types::Elem;
use tilec_sim::{Counters, Device, Landing, Launch, Options, Order, Program, Report};

/// Multiples of this are where allocations begin.
const ALLOCATION: usize = 256;
/// What the gaps of tensors are full of that are read together with them: NaN in all types that have it.
const NO_NUMBER: u8 = 0xff;
/// Instructions that compiled programs may contain and the simulator does not know yet: part of its message, and the reason.
/// A program that needs one is skipped with a line that says so.
const GAPS: &[(&str, &str)] = &[];

/// A program ready to run.
pub struct Executable {
    program: Program,
    /// Whether it has copies or products whose landing is somebody's choice.
    asynchronous: bool,
    /// What is launched, in order.
    launches: Vec<Contract>,
    /// Temporaries between kernels: unwritten at the start.
    temporaries: Vec<String>,
}

/// Why a launch did not do what it should.
#[derive(Debug)]
pub enum Failure {
    /// There could be no launch: the problem does not fit the contract.
    Launch(String),
    /// The simulator reports something.
    Report(Box<Report>),
    /// Memory is not as it should be afterwards.
    Memory(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Report(report) => write!(f, "{report}"),
            Failure::Launch(text) | Failure::Memory(text) => f.write_str(text),
        }
    }
}

impl From<String> for Failure {
    fn from(text: String) -> Failure {
        Failure::Launch(text)
    }
}

/// A tensor in memory of the device.
struct Placed<'a> {
    meant: &'a Tensor,
    format: Format,
    /// Where its parts are: one, but of an array of pointers.
    parts: Vec<u64>,
    /// Elements of a part, gaps included.
    span: usize,
}

/// How a tensor is placed.
struct Place {
    elem: Elem,
    align: u32,
    /// It is written first: its elements are nothing yet.
    empty: bool,
    /// What is between its elements is read, and must not matter.
    reads_gaps: bool,
    /// Which multiple of the alignment it is at.
    multiple: usize,
}

/// What the texts of a contract mean in a run.
struct Terms<'a> {
    contract: &'a Contract,
    run: &'a Run,
}

impl Terms<'_> {
    fn value(&self, name: &str) -> Option<i64> {
        let packed = || match &self.contract.param(name)?.kind {
            ParamKind::Stride { packed: Some(text), .. } => expr::integer(text, &|n| self.run.integer(n).ok()).ok(),
            _ => None,
        };
        self.run.integer(name).ok().or_else(packed)
    }

    fn integer(&self, text: &str) -> Result<i64, String> {
        expr::integer(text, &|name| self.value(name)).map_err(|e| format!("`{text}`: {e}"))
    }

    /// Demands the preconditions.
    fn check(&self) -> Result<(), Failure> {
        for text in &self.contract.requires {
            if !expr::condition(text, &|name| self.value(name)).map_err(|e| format!("`{text}`: {e}"))? {
                return Err(Failure::Launch(format!("the precondition `{text}` does not hold")));
            }
        }
        Ok(())
    }
}

impl Executable {
    /// Parses what the compiler wrote; the contract goes through its JSON. `None`: the simulator has a known gap.
    ///
    /// # Errors
    /// The simulator does not understand the PTX, or there is not one kernel or sequence.
    pub fn new(name: &str, compiled: &Compiled) -> Result<Option<Executable>, String> {
        let file = LaunchFile::from_json(&compiled.launch_json()).map_err(|e| e.to_string())?;
        let (launches, temporaries) = match (file.programs.as_slice(), file.kernels.as_slice()) {
            ([], [one]) => (vec![one.clone()], Vec::new()),
            ([program], _) => {
                let launches = file.launches(&program.name, &Args::new());
                let launches = launches.ok().flatten().ok_or("a kernel is missing")?;
                let temporaries = program.temporaries.iter().map(|t| t.name.clone()).collect();
                (launches.into_iter().cloned().collect(), temporaries)
            }
            _ => return Err("not one kernel or sequence".to_owned()),
        };
        match Program::parse(&compiled.ptx) {
            Ok(program) => {
                // `cp.async`, bulk and TMA copies among them, `cp.reduce.async`, `wgmma.mma_async`.
                let asynchronous = compiled.ptx.contains("async");
                Ok(Some(Executable { program, asynchronous, launches, temporaries }))
            }
            Err(e) => {
                let message = e.to_string();
                let Some((_, why)) = GAPS.iter().find(|(part, _)| message.contains(part)) else {
                    return Err(format!("the simulator: {message}"));
                };
                golden::skip(&format!("{name} on the simulator"), why);
                Ok(None)
            }
        }
    }

    /// A parsed program and its contract.
    pub(crate) fn of(program: Program, contract: Contract) -> Executable {
        Executable { program, asynchronous: true, launches: vec![contract], temporaries: Vec::new() }
    }

    /// Launches on `before` and demands `after`, in the modes that matter, or in one `half` of them.
    ///
    /// # Errors
    /// A precondition does not hold, the simulator reports something, or memory is not exactly `after`.
    pub fn check(&self, run: &Run, before: &[Tensor], after: &[Tensor], half: Option<usize>) -> Result<(), String> {
        // Nothing may depend on the order of warps and blocks, nor on when copies land.
        const MODES: [(Landing, Order); 4] = [
            (Landing::Early, Order::Forward),
            (Landing::Latest, Order::Reverse),
            (Landing::Late, Order::Seeded),
            (Landing::LateReads, Order::Forward),
        ];
        // Where nothing lands the last is the first.
        let modes = if self.asynchronous { 4 } else { 3 };
        for (i, (landing, order)) in MODES.into_iter().take(modes).enumerate() {
            if half.is_some_and(|half| half != i / 2) {
                continue;
            }
            let seed = run.seed.rotate_left(i as u32) ^ i as u64;
            let options = Options { landing, order, seed, fuel: 1 << 26, ..Options::default() };
            self.launch(run, before, after, &options).map_err(|e| format!("{order:?}, copies {landing:?}: {e}"))?;
        }
        Ok(())
    }

    /// Launches on `before` and demands `after`.
    ///
    /// # Errors
    /// See [`Failure`].
    pub(crate) fn launch(
        &self,
        run: &Run,
        before: &[Tensor],
        after: &[Tensor],
        options: &Options,
    ) -> Result<Counters, Failure> {
        let mut device = Device::new();
        let mut placed: Vec<Placed<'_>> = Vec::new();
        let mut counters = None;
        for contract in &self.launches {
            counters = Some(self.one(&mut device, &mut placed, contract, run, before, options)?);
        }
        for placed in &placed {
            let expected = after.iter().find(|t| t.name == placed.meant.name);
            let expected = expected.ok_or_else(|| "a tensor went missing".to_owned())?;
            placed.compare(&device, expected, run.tolerance).map_err(Failure::Memory)?;
        }
        counters.ok_or_else(|| Failure::Launch("there is nothing to launch".to_owned()))
    }

    /// Launches one kernel; `placed`: the tensors that there are already.
    fn one<'a>(
        &self,
        device: &mut Device,
        placed: &mut Vec<Placed<'a>>,
        contract: &Contract,
        run: &Run,
        before: &'a [Tensor],
        options: &Options,
    ) -> Result<Counters, Failure> {
        let terms = Terms { contract, run };
        terms.check()?;
        let (mut params, mut signals) = (Vec::new(), Vec::new());
        for param in &contract.params {
            let name = param.name.as_str();
            params.push(match &param.kind {
                ParamKind::Tensor(TensorParam { scratch: Some(scratch), elem, shape, strides, .. }) => {
                    let list = |l: &[Dimension]| {
                        l.iter()
                            .flat_map(Dimension::parts)
                            .map(|text| terms.integer(text))
                            .collect::<Result<Vec<_>, _>>()
                    };
                    let steps = list(shape)?.into_iter().zip(list(strides)?).map(|(n, stride)| (n - 1) * stride);
                    let bytes = elem.bytes_of((steps.sum::<i64>() + 1).unsigned_abs());
                    let at = device.alloc(bytes).map_err(|e| e.to_string())?;
                    if *scratch == Scratch::Signals {
                        device.upload(at, &vec![0; bytes as usize]).map_err(|e| e.to_string())?;
                        signals.push((name, at, bytes as usize));
                    }
                    at.to_le_bytes().to_vec()
                }
                ParamKind::Tensor(of) | ParamKind::Pointers(of) => {
                    self.tensor(device, placed, &terms, (param, of), before)?.to_le_bytes().to_vec()
                }
                ParamKind::TensorMap(map) => {
                    encoded(placed, contract, (name, map), |text| terms.integer(text).unwrap_or(i64::MAX))?
                }
                ParamKind::Size { .. } => {
                    u32::try_from(terms.integer(name)?).map_err(|e| format!("`{name}`: {e}"))?.to_le_bytes().to_vec()
                }
                ParamKind::Stride { .. } => terms.integer(name)?.to_le_bytes().to_vec(),
                ParamKind::Scalar { elem, default } => {
                    let value = run
                        .value(name)
                        .or(default.map(|x| x.to_f64()))
                        .ok_or_else(|| format!("no value for `{name}`"))?;
                    match elem {
                        Elem::I32 => (value as i32).to_le_bytes().to_vec(),
                        Elem::U32 => (value as u32).to_le_bytes().to_vec(),
                        _ => format_of(name, *elem)?.encode(value),
                    }
                }
            });
        }
        let mut grid = [0; 3];
        for (extent, text) in grid.iter_mut().zip(&contract.grid) {
            *extent = u32::try_from(terms.integer(text)?).map_err(|e| format!("`{text}`: {e}"))?;
        }
        for placed in &*placed {
            let tensor = contract.param(&placed.meant.name).and_then(|p| p.kind.tensor());
            let (writes, constant) = (tensor.map(|t| t.access.writes()), tensor.is_some_and(|t| t.constant));
            for part in &placed.parts {
                device.set_read_only(*part, writes != Some(true)).map_err(|e| e.to_string())?;
                device.set_unchanging(*part, constant).map_err(|e| e.to_string())?;
            }
        }
        let entry = contract.entry.clone();
        let launch = Launch { entry, grid, block: contract.block, dynamic_smem: contract.dynamic_smem_bytes, params };
        let options = Options { programmatic: contract.programmatic, ..options.clone() };
        let counters = device.run(&self.program, &launch, &options).map_err(Failure::Report)?;
        for (name, at, bytes) in signals {
            let after = device.download(at, bytes).map_err(|e| e.to_string())?;
            if let Some(up) = after.iter().position(|&b| b != 0) {
                return Err(Failure::Memory(format!("`{name}[{}]` is left up", up / 4)));
            }
        }
        Ok(counters)
    }

    /// The address that is passed for a tensor, which is placed if it has not been.
    fn tensor<'a>(
        &self,
        device: &mut Device,
        placed: &mut Vec<Placed<'a>>,
        terms: &Terms<'_>,
        (param, of): (&Param, &TensorParam),
        before: &'a [Tensor],
    ) -> Result<u64, Failure> {
        let name = param.name.as_str();
        let tensor = before.iter().find(|t| t.name == name).ok_or_else(|| format!("no tensor `{name}`"))?;
        let list = |l: &[Dimension]| {
            l.iter().flat_map(Dimension::parts).map(|text| terms.integer(text)).collect::<Result<Vec<_>, _>>()
        };
        let front = usize::from(matches!(param.kind, ParamKind::Pointers(_)));
        if (list(&of.shape)?, list(&of.strides)?) != (tensor.shape.clone(), tensor.strides[front..].to_vec()) {
            let text = format!("the contract has another shape or other strides of `{name}`");
            return Err(Failure::Launch(text));
        }
        let parts = if front == 0 { 1 } else { tensor.shape[0] as usize };
        if placed.iter().all(|p| p.meant.name != name) {
            let mut uses = self.launches.iter().filter_map(|c| c.param(name)?.kind.tensor());
            let align = uses.clone().map(|t| t.align).max().unwrap_or(1);
            let empty = uses.clone().next().is_some_and(|t| !t.access.reads());
            let reads_gaps = uses.any(|t| t.reads_gaps);
            let odd = (terms.run.seed as usize).wrapping_add(placed.len()) % 4 * 2 + 1;
            let multiple = terms.run.at.unwrap_or(odd);
            let of = Place { elem: of.elem, align, empty, reads_gaps, multiple };
            placed.push(Placed::new(device, tensor, &of, parts)?);
        }
        let at = placed.iter().find(|p| p.meant.name == name).ok_or("a tensor went missing".to_owned())?;
        let address = if front == 0 { at.parts[0] } else { table(device, &at.parts)? };
        Ok(address)
    }

    /// Whether the tensor is only written, so that its elements can start as NaN.
    pub fn only_writes(&self, tensor: &str) -> bool {
        let mut uses = self.launches.iter().filter_map(|c| c.param(tensor)?.kind.tensor()).peekable();
        uses.peek().is_some() && uses.all(|t| !t.access.reads())
    }

    /// Whether the tensor is handed from one kernel to the next.
    pub fn hands_on(&self, tensor: &str) -> bool {
        self.temporaries.iter().any(|t| t == tensor)
    }
}

/// The bytes that are passed for a map of a tensor.
fn encoded(
    placed: &[Placed<'_>],
    contract: &Contract,
    (name, map): (&str, &TensorMapParam),
    integer: impl Fn(&str) -> i64,
) -> Result<Vec<u8>, Failure> {
    let of = placed.iter().find(|p| p.meant.name == map.tensor);
    let (Some(of), Some(tensor)) = (of, contract.param(&map.tensor).and_then(|p| p.kind.tensor())) else {
        return Err(Failure::Launch(format!("`{name}` is a map of no tensor")));
    };
    let address = of.parts[0];
    let number = |list: &[i64], d: usize| list.get(d).map_or(0, |&x| x.unsigned_abs());
    let (shape, strides) = (&of.meant.shape, &of.meant.strides);
    let described = map.of_tensor(tensor.elem, |d| number(shape, d), |d| number(strides, d), integer);
    Ok(described.encode_for_simulator(address))
}

fn format_of(name: &str, elem: Elem) -> Result<Format, String> {
    Format::from_name(elem.name()).ok_or_else(|| format!("`{name}` is {}, which the tests cannot encode", elem.name()))
}

/// Puts addresses into memory, at an odd multiple of their size; no kernel changes them.
fn table(device: &mut Device, addresses: &[u64]) -> Result<u64, String> {
    let bytes: Vec<u8> = addresses.iter().flat_map(|a| a.to_le_bytes()).collect();
    let at = device.alloc_behind(8, bytes.len() as u64).map_err(|e| e.to_string())?;
    device.upload(at, &bytes).map_err(|e| e.to_string())?;
    device.set_read_only(at, true).map_err(|e| e.to_string())?;
    Ok(at)
}

impl<'a> Placed<'a> {
    /// Parts are in allocations of their own, the last at the lowest address.
    fn new(device: &mut Device, tensor: &'a Tensor, of: &Place, parts: usize) -> Result<Placed<'a>, String> {
        let format = format_of(&tensor.name, of.elem)?;
        let span = tensor.data.len() / parts.max(1);
        let mut placed = Placed { meant: tensor, format, parts: Vec::new(), span };
        for part in (0..parts).rev() {
            let part = placed.part(device, part, of).map_err(|e| e.to_string())?;
            placed.parts.push(part);
        }
        placed.parts.reverse();
        Ok(placed)
    }

    fn part(&self, device: &mut Device, part: usize, of: &Place) -> Result<u64, Box<Report>> {
        let (size, shared, align) = (self.format.bytes(), self.format.to_a_byte(), of.align as usize);
        let bytes = (self.span * size).div_ceil(shared);
        // An odd multiple of the alignment, so that no larger one holds by chance.
        let head = if align < ALLOCATION { align * of.multiple } else { align - ALLOCATION };
        let address = device.alloc_behind(head as u64, bytes as u64)?;
        device.make_gap(address, bytes)?;
        if of.reads_gaps {
            device.upload(address, &vec![NO_NUMBER; bytes])?;
        }
        // Combines elements that share a byte; an element without a neighbour is combined with zero.
        let mut places: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
        for a in self.addresses(part) {
            let index = a - part * self.span;
            let own = self.format.encode(self.meant.data[a]);
            match places.get_mut(&(index / shared * size)) {
                Some(byte) => byte[0] |= own[0] << (index % shared * 4),
                None => {
                    let shift = index % shared * 4;
                    let own = own.into_iter().map(|byte| if shared > 1 { byte << shift } else { byte });
                    places.insert(index / shared * size, own.collect());
                }
            }
        }
        for (at, encoded) in places {
            let at = address + at as u64;
            device.fill_gap(at, size)?;
            device.upload(at, &encoded)?;
            if of.empty {
                device.forget(at, size)?;
            }
        }
        Ok(address)
    }

    /// The addresses of the elements of a part, in the tensor as a whole.
    fn addresses(&self, part: usize) -> impl Iterator<Item = usize> {
        let range = part * self.span..(part + 1) * self.span;
        self.meant.addresses().filter(move |a| range.contains(a))
    }

    fn compare(&self, device: &Device, expected: &Tensor, tolerance: f64) -> Result<(), String> {
        let (size, shared) = (self.format.bytes(), self.format.to_a_byte());
        let mut actual = Tensor { data: vec![GAP; expected.data.len()], ..expected.clone() };
        for (i, part) in self.parts.iter().enumerate() {
            let bytes = device.download(*part, (self.span * size).div_ceil(shared)).map_err(|e| e.to_string())?;
            for a in self.addresses(i) {
                if tolerance == 0.0 && !self.format.holds(expected.data[a]) && !expected.data[a].is_nan() {
                    return Err(format!("the case is not exact: `{}` would hold {}", expected.name, expected.data[a]));
                }
                let index = a - i * self.span;
                let own = &bytes[index / shared * size..];
                actual.data[a] = match index % shared {
                    0 => self.format.decode(own),
                    half => self.format.decode(&[own[0] >> (4 * half)]),
                };
            }
        }
        problem::same_within(tolerance, std::slice::from_ref(expected), &[actual])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilec::{CompileOptions, Target};

    #[test]
    fn copies_and_products_that_land_are_told_from_the_text() {
        let source = "examples/gemm.tile";
        let text = std::fs::read_to_string(crate::root().join(source)).unwrap();
        let asynchronous = |target: Target, all: bool| {
            let mut options = CompileOptions { target, ..CompileOptions::default() };
            if !all {
                crate::options::disable_all(&mut options);
            }
            let done = tilec::compile(&text, &options).unwrap();
            Executable::new(source, &done).unwrap().unwrap().asynchronous
        };
        assert!(asynchronous(Target::Sm80, true) && asynchronous(Target::Sm90a, true));
        assert!(!asynchronous(Target::Sm70, true) && !asynchronous(Target::Sm80, false));
    }
}
