//! Kernels as Python has them: called with arrays, they launch.

use crate::array::{Array, Library, Seen};
use crate::compiled::{self, Made, Program};
use crate::devices::Loaded;
use crate::foreign::stream;
use crate::hash::ByWords;
use crate::interface::{Interface, Slot, in_elements, infer, misfit};
use crate::plan::{Bound as BoundLaunch, Plan, Refusal, Rooms, aligned, bound};
use crate::{errors, simulated, streams};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyFloatMethods, PyString, PyTuple};
use std::collections::HashMap;
use std::sync::Arc;
use tilec::bind::zeros;
use tilec::{Args, Number};

/// Launches that are remembered, by shapes and values.
const PLANS: usize = 1024;

/// A kernel, or a program of several.
#[pyclass(module = "tilec._tilec")]
pub(crate) struct Kernel {
    program: Arc<Program>,
    #[pyo3(get)]
    name: String,
    interface: Interface,
    names: Vec<String>,
    seen: Seen,
    call: Call,
    plans: HashMap<Vec<u64>, Plan, ByWords>,
    /// By device.
    loaded: HashMap<i32, Arc<Loaded>>,
    rooms: Rooms,
    /// The same kernel for sizes that are 0, which needs other code.
    for_zeros: HashMap<Vec<String>, Py<Kernel>>,
}

/// What one call gives, kept to be filled again.
#[derive(Default)]
struct Call {
    arrays: Vec<Array>,
    shape: Vec<i64>,
    strides: Vec<i64>,
    addresses: Vec<u64>,
    scalars: Vec<Option<Number>>,
    sizes: Vec<(usize, i64)>,
    stream: Option<u64>,
    key: Vec<u64>,
}

impl Call {
    fn clear(&mut self) {
        self.arrays.clear();
        self.shape.clear();
        self.strides.clear();
        self.addresses.clear();
        self.scalars.clear();
        self.sizes.clear();
        self.stream = None;
        self.key.clear();
    }

    /// All that a plan depends on: element types, devices, alignments, shapes, strides, and values.
    fn fill_key(&mut self) {
        for array in &self.arrays {
            let class = array.address.trailing_zeros().min(8);
            self.key.push(
                u64::from(array.dtype as u8)
                    | u64::from(class) << 8
                    | (array.rank as u64) << 16
                    | u64::from(array.device.cast_unsigned()) << 32,
            );
            self.addresses.push(array.address);
        }
        self.key.extend(self.shape.iter().chain(&self.strides).map(|n| n.cast_unsigned()));
        for scalar in &self.scalars {
            let (kind, bits) = match scalar {
                None => (0, 0),
                Some(Number::Int(x)) => (1, x.cast_unsigned()),
                Some(Number::Large(x)) => (2, *x),
                Some(Number::Float(x)) => (3, x.to_bits()),
            };
            self.key.extend([kind, bits]);
        }
        for (index, value) in &self.sizes {
            self.key.extend([*index as u64, value.cast_unsigned()]);
        }
    }

    /// Shape and strides of each array.
    fn extents(&self) -> Vec<(Vec<i64>, Vec<i64>)> {
        let mut at = 0;
        let one = |array: &Array| {
            let range = at..at + array.rank;
            at = range.end;
            (self.shape[range.clone()].to_vec(), self.strides[range].to_vec())
        };
        self.arrays.iter().map(one).collect()
    }
}

/// A number of Python.
fn number(value: &Bound<'_, PyAny>) -> PyResult<Number> {
    // Whatever is asked to be another number makes an exception first.
    if let Ok(x) = value.downcast::<PyFloat>() {
        return Ok(Number::Float(x.value()));
    }
    if let Ok(x) = value.extract::<i64>() {
        return Ok(Number::Int(x));
    }
    if let Ok(x) = value.extract::<u64>() {
        return Ok(Number::Large(x));
    }
    value.extract::<f64>().map(Number::Float)
}

impl Kernel {
    /// The kernel called `name` of a program; the only one where there is no name.
    pub(crate) fn new(program: Arc<Program>, name: Option<&str>) -> PyResult<Kernel> {
        let names = program.file.names();
        let name = match (name, program.file.only()) {
            (Some(name), _) if names.contains(&name) => name.to_owned(),
            (None, Some(only)) => only.to_owned(),
            (Some(name), _) => {
                return Err(PyValueError::new_err(format!(
                    "the file has no kernel `{name}`; it has {}",
                    names.join(", ")
                )));
            }
            (None, None) => {
                return Err(PyValueError::new_err(format!(
                    "the file has several kernels: kernel=\"NAME\" names one of {}",
                    names.join(", ")
                )));
            }
        };
        let interface = Interface::new(&program.file, &name);
        let names = interface.tensors().map(|t| t.name.clone()).collect();
        Ok(Kernel {
            program,
            name,
            interface,
            names,
            seen: Seen::default(),
            call: Call::default(),
            plans: HashMap::default(),
            loaded: HashMap::new(),
            rooms: Rooms::new(),
            for_zeros: HashMap::new(),
        })
    }

    /// Reads the arguments of a call into `self.call`.
    fn read(&mut self, args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        self.call.clear();
        if args.len() > self.interface.slots.len() {
            let (found, most) = (args.len(), self.interface.slots.len());
            return Err(PyTypeError::new_err(format!(
                "`{}` takes at most {most} arguments by position ({}), found {found}",
                self.name,
                self.signature()
            )));
        }
        let mut used = 0;
        let named = |name: &str, used: &mut usize| -> PyResult<Option<Bound<'_, PyAny>>> {
            let found = match kwargs {
                Some(kwargs) if !kwargs.is_empty() => kwargs.get_item(name)?,
                _ => None,
            };
            *used += usize::from(found.is_some());
            Ok(found)
        };
        if let Some(stream) = named("stream", &mut used)? {
            self.call.stream = Some(streams::given(&stream)?);
        }
        for (i, slot) in self.interface.slots.iter().enumerate() {
            let by_name = named(slot.name(), &mut used)?;
            let given = match (i < args.len(), by_name) {
                (true, None) => Some(args.get_item(i)?),
                (true, Some(_)) => return Err(PyTypeError::new_err(format!("`{}` is given twice", slot.name()))),
                (false, by_name) => by_name,
            };
            match (slot, given) {
                (Slot::Tensor(_), Some(object)) => {
                    let Call { shape, strides, arrays, stream, .. } = &mut self.call;
                    arrays.push(self.seen.read(&object, *stream, shape, strides)?);
                }
                (Slot::Scalar { .. }, Some(value)) => self.call.scalars.push(Some(number(&value)?)),
                (Slot::Scalar { default: Some(_), .. }, None) => self.call.scalars.push(None),
                (_, None) => {
                    return Err(PyTypeError::new_err(format!(
                        "`{}` is missing: `{}` takes {}",
                        slot.name(),
                        self.name,
                        self.signature()
                    )));
                }
            }
        }
        for (i, name) in self.interface.sizes.iter().enumerate() {
            if let Some(value) = named(name, &mut used)? {
                self.call.sizes.push((i, value.extract()?));
            }
        }
        match kwargs {
            Some(kwargs) if kwargs.len() > used => Err(self.unknown(kwargs)),
            _ => Ok(()),
        }
    }

    fn unknown(&self, kwargs: &Bound<'_, PyDict>) -> PyErr {
        let known = |name: &str| {
            name == "stream"
                || self.interface.slots.iter().any(|s| s.name() == name)
                || self.interface.sizes.iter().any(|s| s == name)
        };
        let name = kwargs.keys().iter().map(|k| k.to_string()).find(|name| !known(name)).unwrap_or_default();
        PyTypeError::new_err(format!(
            "`{}` takes no `{name}`; it takes {}, and the sizes and strides {}",
            self.name,
            self.signature(),
            self.interface.sizes.join(", ")
        ))
    }

    /// Names of what may be given by position.
    fn signature(&self) -> String {
        self.interface.slots.iter().map(Slot::name).collect::<Vec<_>>().join(", ")
    }

    /// The values of sizes, strides and scalars, of arrays that fit them in type and rank.
    fn values(&self) -> Result<Args, String> {
        let mut values = Args::new();
        for (index, value) in &self.call.sizes {
            values.insert(self.interface.sizes[*index].clone(), Number::Int(*value));
        }
        let extents = self.call.extents();
        for ((tensor, array), (shape, strides)) in self.interface.tensors().zip(&self.call.arrays).zip(&extents) {
            let holds = if tensor.pointers { array.dtype.bytes() == 8 } else { array.dtype.holds(tensor.elem) };
            if !holds {
                return Err(format!("`{}` has elements {}, found {:?}", tensor.name, tensor.elem.name(), array.dtype));
            }
            let (shape, strides) = if tensor.pointers {
                (shape.clone(), strides.clone())
            } else {
                in_elements(tensor.elem, shape, strides)
            };
            if let Some(stride) = strides.iter().find(|s| **s < 0) {
                return Err(format!("`{}` has a stride of {stride}; kernels take no negative ones", tensor.name));
            }
            infer(tensor, &shape, &strides, &mut values)?;
        }
        let scalars = self.interface.slots.iter().filter_map(|slot| match slot {
            Slot::Scalar { name, default, .. } => Some((name, default)),
            Slot::Tensor(_) => None,
        });
        for ((name, default), given) in scalars.zip(&self.call.scalars) {
            if let Some(value) = given.or(*default) {
                values.insert(name.clone(), value);
            }
        }
        Ok(values)
    }

    /// The launches for the arrays of the call, which fit in shape and alignment.
    fn bound(&self, values: &Args) -> Result<BoundLaunch<'_>, Refusal> {
        let of =
            bound(&self.program.file, &self.name, values, |c| aligned(c, &self.names, &self.call.addresses).is_ok())?;
        for ((tensor, array), (shape, strides)) in
            self.interface.tensors().zip(&self.call.arrays).zip(self.call.extents())
        {
            let Some(plan) = of.bound.tensor(&tensor.name).filter(|_| !tensor.pointers) else { continue };
            let (shape, strides) = in_elements(tensor.elem, &shape, &strides);
            if let Some(what) = misfit(tensor, (&plan.shape, &plan.strides), &shape, &strides) {
                return Err(Refusal::Contract(what));
            }
            if tensor.writes && array.readonly {
                return Err(Refusal::Contract(format!("`{}` is written, and the array is read-only", tensor.name)));
            }
        }
        if of.bound.launches.iter().any(|l| l.has_blocks()) {
            for contract in &of.launches {
                aligned(contract, &self.names, &self.call.addresses).map_err(Refusal::Contract)?;
            }
        }
        Ok(of)
    }

    /// The plan for the call.
    fn plan(&mut self, device: i32, values: &Args) -> Result<Plan, Refusal> {
        if !self.loaded.contains_key(&device) {
            let Program { target, ptx, cubin, file, .. } = &*self.program;
            let loaded = Loaded::new(device, target.name(), (ptx, cubin.as_deref()), file)?;
            self.loaded.insert(device, Arc::new(loaded));
        }
        let of = self.bound(values)?;
        Plan::new(&self.program.file, (&self.name, &self.names), &of, &self.loaded[&device])
    }

    /// What the compiler said of the program.
    fn made(&self, what: &str) -> PyResult<&Made> {
        let none = || PyValueError::new_err(format!("`{}` is out of a bundle, which has no {what}", self.name));
        self.program.made.as_ref().ok_or_else(none)
    }

    /// The device of all arrays; -1 is the host.
    fn device(&self) -> PyResult<i32> {
        let Some(first) = self.call.arrays.first() else {
            return Err(PyTypeError::new_err("a kernel without tensors has no device"));
        };
        let other = self.call.arrays.iter().position(|a| a.device != first.device);
        let place = |device: i32| if device < 0 { "the host".to_owned() } else { format!("device {device}") };
        match other {
            None => Ok(first.device),
            Some(i) => Err(PyValueError::new_err(format!(
                "`{}` is on {} and `{}` on {}",
                self.names[0],
                place(first.device),
                self.names[i],
                place(self.call.arrays[i].device)
            ))),
        }
    }

    /// The sizes that are 0 and need another kernel.
    fn zeros(&self, values: &Args) -> Vec<String> {
        match self.program.file.launches(&self.name, values) {
            Ok(Some(launches)) => zeros(&launches, values),
            _ => Vec::new(),
        }
    }
}

#[pymethods]
impl Kernel {
    /// Launches the kernel on arrays: on their device and the current stream, or on the simulator where they are on the host.
    #[pyo3(signature = (*args, **kwargs))]
    fn __call__(slf: &Bound<'_, Self>, args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let py = slf.py();
        let mut this = slf.try_borrow_mut()?;
        this.read(args, kwargs)?;
        this.call.fill_key();
        let device = this.device()?;
        if device >= 0 {
            let library = this.call.arrays[0].library;
            let number = match this.call.stream {
                Some(stream) => stream,
                None => streams::current(py, library, this.seen.torch, device)?,
            };
            let Kernel { plans, call, rooms, .. } = &mut *this;
            if let Some(plan) = plans.get_mut(&call.key) {
                return launch(plan, call, number, rooms).map_err(|r| errors::refusal(py, r));
            }
            let values = this.values().map_err(|e| errors::launch(py, e))?;
            if !this.zeros(&values).is_empty() {
                return call_for_zeros(this, slf, &values, args, kwargs);
            }
            let mut plan = this.plan(device, &values).map_err(|r| errors::refusal(py, r))?;
            let Kernel { plans, call, rooms, .. } = &mut *this;
            launch(&mut plan, call, number, rooms).map_err(|r| errors::refusal(py, r))?;
            if plans.len() >= PLANS {
                plans.clear();
            }
            plans.insert(call.key.clone(), plan);
            return Ok(());
        }
        let values = this.values().map_err(|e| errors::launch(py, e))?;
        if !this.zeros(&values).is_empty() {
            return call_for_zeros(this, slf, &values, args, kwargs);
        }
        let of = this.bound(&values).map_err(|r| errors::refusal(py, r))?;
        simulated::run(py, &this.program, &of, &values, &this.names, &this.call.addresses)
    }

    /// The launch contract, as JSON.
    #[getter]
    fn contract_json(&self) -> String {
        self.program.file.to_json()
    }

    /// The PTX.
    #[getter]
    fn ptx(&self) -> &str {
        &self.program.ptx
    }

    /// What the compiler did, as JSON.
    #[getter]
    fn report_json(&self) -> PyResult<&str> {
        Ok(&self.made("report")?.report)
    }

    /// The program after all passes: what was decided, as text of the language.
    #[getter]
    fn tile(&self) -> PyResult<&str> {
        Ok(&self.made("program")?.tile)
    }

    /// The program as it was written.
    #[getter]
    fn source(&self) -> PyResult<&str> {
        Ok(&self.made("source")?.source)
    }

    /// The target.
    #[getter]
    fn target(&self) -> &'static str {
        self.program.target.name()
    }

    /// Warnings of the compiler, drawn as the command draws them.
    #[getter]
    fn warnings(&self) -> &str {
        self.program.made.as_ref().map_or("", |made| &made.warnings)
    }

    /// Fast paths that were not taken, and why.
    #[getter]
    fn remarks(&self) -> &str {
        self.program.made.as_ref().map_or("", |made| &made.remarks)
    }

    /// A C header with all kernels of the file, for this target.
    #[getter]
    fn c_header(&self) -> PyResult<String> {
        let Program { name, target, ptx, file, .. } = &*self.program;
        let image = tilec::c_header::Image { target: *target, ptx, file };
        tilec::c_header::header(name, &[image]).map_err(|e| PyValueError::new_err(e.to_string()))
    }

    /// A page that shows the kernel (HTML).
    fn xray_html(&self, py: Python<'_>) -> PyResult<String> {
        let made = self.made("source")?;
        let page = tilec::xray::xray(&made.source, &made.options, &tilec::xray::More::default())
            .map_err(|d| compiled::error(py, &d))?;
        Ok(page.to_html())
    }

    /// What is taken by position: name, element type, `read`, `write` or `read_write` (of a scalar: `scalar`), shape as expressions, default.
    fn parameters(&self, py: Python<'_>) -> PyResult<Vec<Py<PyDict>>> {
        let one = |slot: &Slot| -> PyResult<Py<PyDict>> {
            let dict = PyDict::new(py);
            dict.set_item("name", slot.name())?;
            match slot {
                Slot::Tensor(tensor) => {
                    let access = match (tensor.reads, tensor.writes) {
                        (true, true) => "read_write",
                        (false, true) => "write",
                        _ => "read",
                    };
                    dict.set_item("type", tensor.elem.name())?;
                    dict.set_item("access", access)?;
                    dict.set_item("shape", tensor.shape.clone())?;
                }
                Slot::Scalar { elem, default, .. } => {
                    dict.set_item("type", elem.name())?;
                    dict.set_item("access", "scalar")?;
                    match default {
                        None => {}
                        Some(Number::Int(x)) => dict.set_item("default", *x)?,
                        Some(Number::Large(x)) => dict.set_item("default", *x)?,
                        Some(Number::Float(x)) => dict.set_item("default", *x)?,
                    }
                }
            }
            Ok(dict.unbind())
        };
        self.interface.slots.iter().map(one).collect()
    }

    /// Names of sizes and strides.
    #[getter]
    fn sizes(&self) -> Vec<String> {
        self.interface.sizes.clone()
    }

    fn __repr__<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        let target = self.program.target.name();
        PyString::new(py, &format!("<tilec kernel {}({}) for {target}>", self.name, self.signature()))
    }
}

/// Places addresses and queues, behind what writes the arrays on streams of their own.
fn launch(plan: &mut Plan, call: &Call, number: u64, rooms: &mut Rooms) -> Result<(), Refusal> {
    for other in call.arrays.iter().filter_map(|array| array.stream).filter(|other| !streams::same(*other, number)) {
        plan.loaded.device.order(stream(number), stream(other))?;
    }
    plan.place(&call.addresses)?;
    plan.launch(number, rooms)
}

/// Calls the kernel that is compiled for these sizes being 0.
fn call_for_zeros(
    mut this: PyRefMut<'_, Kernel>,
    slf: &Bound<'_, Kernel>,
    values: &Args,
    args: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
) -> PyResult<()> {
    let py = slf.py();
    let zeros = this.zeros(values);
    let Some(made) = &this.program.made else {
        let (name, list) = (&this.name, zeros.join(","));
        let text = format!(
            "`{list}` is 0, which needs code of its own, and a bundle has none: compile `{name}` with --zero {list}"
        );
        return Err(errors::launch(py, text));
    };
    if !this.for_zeros.contains_key(&zeros) {
        let mut options = made.options.clone();
        options.zeros.clone_from(&zeros);
        let program = Program::new(made.source.clone(), options).map_err(|d| compiled::error(py, &d))?;
        let kernel = Py::new(py, Kernel::new(Arc::new(program), Some(&this.name))?)?;
        this.for_zeros.insert(zeros.clone(), kernel);
    }
    let kernel = this.for_zeros[&zeros].clone_ref(py);
    drop(this);
    kernel.bind(py).call(args, kwargs).map(|_| ())
}

/// Libraries whose streams are asked for.
impl Library {
    pub(crate) fn has_streams(self) -> bool {
        matches!(self, Library::Torch | Library::CudaInterface)
    }
}
