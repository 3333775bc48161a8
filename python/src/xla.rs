//! Kernels inside of programs of XLA, which `jax.jit` makes: calls by name, on threads of XLA, without the interpreter.

use crate::array::Array;
use crate::compiled::Program;
use crate::dtype::Dtype;
use crate::launcher::Launcher;
use crate::plan::Refusal;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tilec::Number;
use tilec::contract::ParamKind;
use tilec_launch::contract::hash::hash;

/// Attributes of a call besides the values of scalars and sizes. Names of a program have no dot.
const KERNEL: &str = "tilec.kernel";
const OPERANDS: &str = "tilec.operands";
const RESULTS: &str = "tilec.results";

/// Codes of XLA for an error.
const INVALID_ARGUMENT: c_int = 3;
const NOT_FOUND: c_int = 5;
const INTERNAL: c_int = 13;

/// Where a call runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Platform {
    /// On the simulator.
    Host,
    Cuda,
}

/// Memory that XLA gives: row-major.
pub(crate) struct Buffer {
    /// `XLA_FFI_DataType`.
    pub(crate) dtype: c_int,
    pub(crate) address: u64,
    pub(crate) shape: Vec<i64>,
}

/// A value that was known when the program was made.
pub(crate) enum Attribute {
    Int(i64),
    Float(f64),
    /// A number beyond 63 bits, too, which has no other form.
    Text(String),
}

/// A call.
pub(crate) struct Frame {
    pub(crate) operands: Vec<Buffer>,
    pub(crate) results: Vec<Buffer>,
    pub(crate) attributes: Vec<(String, Attribute)>,
    pub(crate) stream: u64,
    pub(crate) device: i32,
}

/// Why a call fails.
pub(crate) struct Failure {
    pub(crate) code: c_int,
    pub(crate) text: String,
}

impl Failure {
    /// An error caused by neither the user nor the kernel.
    pub(crate) fn internal(text: &str) -> Failure {
        Failure { code: INTERNAL, text: text.to_owned() }
    }

    fn invalid(text: String) -> Failure {
        Failure { code: INVALID_ARGUMENT, text }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        let code = match refusal {
            Refusal::Driver(_) => INTERNAL,
            Refusal::Contract(_) | Refusal::Program(_) | Refusal::Simulation(_) => INVALID_ARGUMENT,
        };
        Failure { code, text: refusal.text() }
    }
}

/// The element type of a code of XLA. Those of four bits come as bytes.
pub(crate) fn dtype(code: c_int) -> Option<Dtype> {
    Some(match code {
        1 => Dtype::Bool,
        2 => Dtype::I8,
        3 => Dtype::I16,
        4 => Dtype::I32,
        5 => Dtype::I64,
        6 => Dtype::U8,
        7 => Dtype::U16,
        8 => Dtype::U32,
        9 => Dtype::U64,
        10 => Dtype::F16,
        11 => Dtype::F32,
        12 => Dtype::F64,
        16 => Dtype::BF16,
        19 => Dtype::E5M2,
        20 => Dtype::E4M3,
        33 => Dtype::E8M0,
        _ => return None,
    })
}

type Shared = BTreeMap<String, Arc<Mutex<Launcher>>>;

/// The kernels that XLA programs may call, by identity. They are never freed: nothing tells when a program is
/// destroyed.
fn shared() -> MutexGuard<'static, Shared> {
    static SHARED: Mutex<Shared> = Mutex::new(BTreeMap::new());
    SHARED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn lock(launcher: &Mutex<Launcher>) -> MutexGuard<'_, Launcher> {
    launcher.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a kernel known to programs of XLA, and gives the name under which they call it. It depends on the code alone: a program
/// that was compiled by another process and kept calls the same kernel, or none.
///
/// # Errors
/// The kernel takes arrays of addresses, which are none of XLA's arrays.
pub(crate) fn share(program: &Arc<Program>, name: &str) -> Result<String, String> {
    let launcher = Launcher::new(Arc::clone(program), Some(name))?;
    if let Some(tensor) = launcher.interface.tensors().find(|t| t.pointers) {
        return Err(format!("`{}` is an array of addresses, and arrays of JAX have none", tensor.name));
    }
    let source = program.made.as_ref().map_or("", |made| &made.source);
    let key = hash(&[name, program.target.name(), &program.ptx, &program.file.to_json(), source]);
    // Threads have the floating-point environment of the one that makes them: this one, and not XLA's.
    simulator();
    shared().entry(key.clone()).or_insert_with(|| Arc::new(Mutex::new(launcher)));
    Ok(key)
}

/// Whether launches of a program need memory of their own, which a graph that is captured cannot make.
pub(crate) fn needs_memory(program: &Program) -> bool {
    let scratch = |kind: &ParamKind| matches!(kind, ParamKind::Tensor(tensor) if tensor.scratch.is_some());
    program.file.programs.iter().any(|p| !p.temporaries.is_empty())
        || program.file.kernels.iter().any(|k| k.params.iter().any(|p| scratch(&p.kind)))
}

/// Fills the call of a launcher: tensors by name with their types and shapes, and numbers by name.
fn fill(launcher: &mut Launcher, mut tensors: Tensors, numbers: &[(String, Number)]) -> Result<(), String> {
    let Launcher { call, interface, .. } = launcher;
    call.clear();
    for tensor in interface.tensors() {
        let found = tensors.iter().position(|(name, ..)| *name == tensor.name);
        let (_, array, shape) = tensors.swap_remove(found.ok_or_else(|| format!("`{}` is missing", tensor.name))?);
        let mut step = 1;
        let mut strides: Vec<i64> = shape.iter().rev().map(|n| (step, step *= n).0).collect();
        strides.reverse();
        call.arrays.push(array);
        call.shape.extend(shape);
        call.strides.extend(strides);
    }
    let value = |name: &str| numbers.iter().find(|(known, _)| known == name).map(|(_, number)| *number);
    for slot in &interface.slots {
        if let crate::interface::Slot::Scalar { name, default, .. } = slot {
            let given = value(name);
            if given.or(*default).is_none() {
                return Err(format!("`{name}` is missing"));
            }
            call.scalars.push(given);
        }
    }
    for (i, name) in interface.sizes.iter().enumerate() {
        if let Some(number) = value(name) {
            call.sizes.push((i, number.to_i64().ok_or_else(|| format!("`{name}` is a size, and no whole number"))?));
        }
    }
    call.fill_key();
    Ok(())
}

/// Tensors by name.
type Tensors = Vec<(String, Array, Vec<i64>)>;

/// Compares types, shapes and values with the contract of a shared kernel, when a program of XLA is made, and loads its code on devices:
/// a call may come while a graph is captured, when nothing is loaded.
///
/// # Errors
/// What a call would be refused for, but for what depends on addresses.
pub(crate) fn prepare(
    key: &str,
    tensors: Vec<(String, Dtype, Vec<i64>)>,
    numbers: &[(String, Number)],
    devices: &[i32],
) -> Result<(), Refusal> {
    let launcher = find(key).ok_or_else(|| Refusal::Contract(format!("there is no shared kernel {key}")))?;
    let launcher = &mut *lock(&launcher);
    let all = tensors.into_iter().map(|(name, dtype, shape)| (name, Array::packed(0, -1, dtype, &shape, false), shape));
    fill(launcher, all.collect(), numbers).map_err(Refusal::Contract)?;
    launcher.prepare(devices)
}

fn find(key: &str) -> Option<Arc<Mutex<Launcher>>> {
    shared().get(key).cloned()
}

/// Makes a call of a program of XLA.
pub(crate) fn call(platform: Platform, frame: Frame) -> Result<(), Failure> {
    let text = |name: &str| -> Result<&str, Failure> {
        let found = frame.attributes.iter().find(|(known, _)| known == name);
        match found {
            Some((_, Attribute::Text(text))) => Ok(text),
            _ => Err(Failure::internal(&format!("a call without the attribute `{name}`"))),
        }
    };
    let key = text(KERNEL)?;
    let launcher = find(key).ok_or_else(|| Failure {
        code: NOT_FOUND,
        text: format!("this process has no kernel {key}: compile it and call tilec.jax.call before the program runs"),
    })?;
    let names = |name: &str| -> Result<Vec<&str>, Failure> {
        Ok(text(name)?.split(',').filter(|name| !name.is_empty()).collect())
    };
    let (operands, results) = (names(OPERANDS)?, names(RESULTS)?);
    if operands.len() != frame.operands.len() || results.len() != frame.results.len() {
        return Err(Failure::internal("a call with other arrays than its attributes say"));
    }
    let mut tensors = Tensors::new();
    for (name, buffer) in results.iter().zip(&frame.results) {
        tensors.push(((*name).to_owned(), array(name, buffer, frame.device, false)?, buffer.shape.clone()));
    }
    for (name, buffer) in operands.iter().zip(&frame.operands) {
        // A tensor modified in place is an operand and a result.
        match tensors.iter().find(|(known, ..)| known == name) {
            None => tensors.push(((*name).to_owned(), array(name, buffer, frame.device, true)?, buffer.shape.clone())),
            Some((_, result, _)) if result.address == buffer.address => {}
            Some(_) => return Err(Failure::internal(&format!("XLA gave `{name}` two places"))),
        }
    }
    let number = |(name, value): &(String, Attribute)| {
        let number = match value {
            Attribute::Int(x) => Number::Int(*x),
            Attribute::Float(x) => Number::Float(*x),
            Attribute::Text(text) => Number::Large(text.parse().ok()?),
        };
        Some((name.clone(), number))
    };
    let numbers: Vec<(String, Number)> = frame.attributes.iter().filter_map(number).collect();
    let mut launcher = lock(&launcher);
    fill(&mut launcher, tensors, &numbers).map_err(Failure::invalid)?;
    if platform == Platform::Cuda {
        return Ok(launcher.launch(frame.device, frame.stream)?);
    }
    let simulation = launcher.simulation()?;
    // Other calls of the kernel go on meanwhile.
    drop(launcher);
    let Some(mut simulation) = simulation else { return Ok(()) };
    let (to, from) = channel();
    let stop = Arc::new(AtomicBool::new(false));
    let work = move || drop(to.send(simulation.run(&stop).map(|after| simulation.write(&after))));
    drop(simulator().send(Box::new(work)));
    // A simulation that panics sends nothing.
    Ok(from.recv().map_err(|_| Failure::internal("a bug of tilec: the simulator panicked"))??)
}

/// A thread that starts a thread for each piece of work.
///
/// XLA's threads flush denormal numbers to zero, which would change what the simulator computes.
fn simulator() -> &'static Sender<Box<dyn FnOnce() + Send>> {
    static SIMULATOR: OnceLock<Sender<Box<dyn FnOnce() + Send>>> = OnceLock::new();
    SIMULATOR.get_or_init(|| {
        let (to, from) = channel::<Box<dyn FnOnce() + Send>>();
        std::thread::spawn(move || from.into_iter().for_each(|work| drop(std::thread::spawn(work))));
        to
    })
}

fn array(name: &str, buffer: &Buffer, device: i32, readonly: bool) -> Result<Array, Failure> {
    let unknown =
        || Failure::invalid(format!("`{name}` has elements of XLA's type {}, which no kernel takes", buffer.dtype));
    let dtype = dtype(buffer.dtype).ok_or_else(unknown)?;
    Ok(Array::packed(buffer.address, device, dtype, &buffer.shape, readonly))
}
