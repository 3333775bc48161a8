//! Kernels as Python has them: called with arrays, they launch.

use crate::array::{Library, Seen, records_gradient};
use crate::compiled::{self, CompilerOutput, Program};
use crate::interface::{Interface, Slot};
use crate::launcher::{Call, Launcher};
use crate::plan::Refusal;
use crate::simulated::Simulation;
use crate::{errors, simulated, streams, xla};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyFloatMethods, PyString, PyTuple};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tilec::Number;

/// A kernel, or a program of several. Any number of threads may call it at once.
#[pyclass(module = "tilec._tilec", frozen)]
pub(crate) struct Kernel {
    #[pyo3(get)]
    name: String,
    program: Arc<Program>,
    interface: Interface,
    /// Not in use now: a call takes one out while it reads its arguments, which runs code of Python.
    readers: Mutex<Vec<Reader>>,
    /// No code of Python runs while this is locked: a thread that has the interpreter waits for no other one that wants it.
    launcher: Mutex<Launcher>,
}

/// The argument reader of a call, reused.
#[derive(Default)]
struct Reader {
    seen: Seen,
    call: Call,
}

/// The work of a call after the interpreter lock is released.
enum Step {
    Done,
    Simulate(Simulation),
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A number of Python.
pub(crate) fn number(value: &Bound<'_, PyAny>) -> PyResult<Number> {
    // Floats come first: extracting another type from one would raise an exception.
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

/// The error of an argument that is not a number, or not one of the accepted ones.
fn no_number(name: &str, value: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
    let py = value.py();
    let found = value.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
    match error.is_instance_of::<PyTypeError>(py) {
        true => PyTypeError::new_err(format!("`{name}` must be a number; found `{found}`")),
        false => PyValueError::new_err(format!("`{name}`: {}", error.value(py))),
    }
}

/// Why a tensor of PyTorch is not written.
fn in_place(name: &str) -> Refusal {
    Refusal::Contract(format!(
        "`{name}` is written and requires a gradient, which a launch does not record: `register` makes an operator of the kernel; `{name}.detach()` is written without"
    ))
}

impl Kernel {
    /// The kernel called `name` of a program; the only one where there is no name.
    pub(crate) fn new(program: Arc<Program>, name: Option<&str>) -> PyResult<Kernel> {
        let launcher = Launcher::new(Arc::clone(&program), name).map_err(PyValueError::new_err)?;
        let (name, interface) = (launcher.name.clone(), launcher.interface.clone());
        Ok(Kernel { name, program, interface, readers: Mutex::default(), launcher: Mutex::new(launcher) })
    }

    /// Reads the arguments of a call.
    fn read(&self, reader: &mut Reader, args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let Reader { seen, call } = reader;
        call.clear();
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
            call.stream = Some(streams::given(&stream)?);
        }
        for (i, slot) in self.interface.slots.iter().enumerate() {
            let by_name = named(slot.name(), &mut used)?;
            let given = match (i < args.len(), by_name) {
                (true, None) => Some(args.get_item(i)?),
                (true, Some(_)) => return Err(PyTypeError::new_err(format!("`{}` is given twice", slot.name()))),
                (false, by_name) => by_name,
            };
            match (slot, given) {
                (Slot::Tensor(tensor), Some(object)) => {
                    let Call { shape, strides, arrays, stream, .. } = call;
                    let read = seen.read(&object, *stream, shape, strides);
                    let array = read.map_err(|e| errors::of_argument(&tensor.name, args.py(), e))?;
                    if tensor.writes && array.library == Library::Torch && records_gradient(&object)? {
                        return Err(errors::refusal(args.py(), in_place(&tensor.name)));
                    }
                    arrays.push(array);
                }
                (Slot::Scalar { name, .. }, Some(value)) => {
                    let read = number(&value).map_err(|e| no_number(name, &value, e));
                    call.scalars.push(Some(read?));
                }
                (Slot::Scalar { default: Some(_), .. }, None) => call.scalars.push(None),
                (_, None) => {
                    // A misspelt keyword is the likely reason.
                    if let Some(wrong) = kwargs.and_then(|kwargs| self.unknown(kwargs)) {
                        return Err(wrong);
                    }
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
                let read = value.extract().map_err(|e| no_number(name, &value, e));
                call.sizes.push((i, read?));
            }
        }
        let unused = kwargs.filter(|kwargs| kwargs.len() > used);
        unused.and_then(|kwargs| self.unknown(kwargs)).map_or(Ok(()), Err)
    }

    /// The error of a keyword that is no argument, if there is one.
    fn unknown(&self, kwargs: &Bound<'_, PyDict>) -> Option<PyErr> {
        let known = |name: &str| {
            name == "stream"
                || self.interface.slots.iter().any(|s| s.name() == name)
                || self.interface.sizes.iter().any(|s| s == name)
        };
        let name = kwargs.keys().iter().map(|k| k.to_string()).find(|name| !known(name))?;
        Some(PyTypeError::new_err(format!(
            "`{}` takes no `{name}`; it takes {}, and the sizes and strides {}",
            self.name,
            self.signature(),
            self.interface.sizes.join(", ")
        )))
    }

    /// Names of what may be given by position.
    fn signature(&self) -> String {
        self.interface.slots.iter().map(Slot::name).collect::<Vec<_>>().join(", ")
    }

    /// Reads the arguments of a call, and launches on their device; a simulation is left to do.
    fn begin(
        &self,
        py: Python<'_>,
        reader: &mut Reader,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Step> {
        self.read(reader, args, kwargs)?;
        let Reader { seen, call } = reader;
        call.fill_key();
        let device = call.device(&self.interface).map_err(PyValueError::new_err)?;
        let number = match call.stream {
            _ if device < 0 => 0,
            Some(stream) => stream,
            None => streams::current(py, call.arrays[0].library, seen.torch, device)?,
        };
        let mut launcher = lock(&self.launcher);
        std::mem::swap(&mut launcher.call, call);
        let step = if device < 0 {
            launcher.simulation().map(|made| made.map_or(Step::Done, Step::Simulate))
        } else {
            launcher.launch(device, number).map(|()| Step::Done)
        };
        std::mem::swap(&mut launcher.call, call);
        drop(launcher);
        step.map_err(|r| errors::refusal(py, r))
    }

    /// The compilation result of the program.
    fn made(&self, what: &str) -> PyResult<&CompilerOutput> {
        let none = || PyValueError::new_err(format!("`{}` comes from a bundle, which has no {what}", self.name));
        self.program.made.as_ref().ok_or_else(none)
    }
}

#[pymethods]
impl Kernel {
    /// Launches the kernel on arrays: on their device and the current stream, or on the simulator where they are on the host.
    #[pyo3(signature = (*args, **kwargs))]
    fn __call__(&self, py: Python<'_>, args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let mut reader = lock(&self.readers).pop().unwrap_or_default();
        let step = self.begin(py, &mut reader, args, kwargs);
        lock(&self.readers).push(reader);
        match step? {
            Step::Done => Ok(()),
            Step::Simulate(simulation) => simulated::run(py, simulation),
        }
    }

    /// Clusters that the arrays' device runs at the same time, for a launch with these arguments.
    #[pyo3(signature = (*args, **kwargs))]
    fn max_active_clusters(&self, args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<u32> {
        let mut reader = lock(&self.readers).pop().unwrap_or_default();
        let read = self.read(&mut reader, args, kwargs);
        let found = read.and_then(|()| {
            let call = &mut reader.call;
            call.fill_key();
            let device = call.device(&self.interface).map_err(PyValueError::new_err)?;
            let mut launcher = lock(&self.launcher);
            std::mem::swap(&mut launcher.call, call);
            let found = launcher.max_active_clusters(device);
            std::mem::swap(&mut launcher.call, call);
            drop(launcher);
            found.map_err(|r| errors::refusal(args.py(), r))
        });
        lock(&self.readers).push(reader);
        found
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
        let page = tilec::xray::xray(&made.source, &made.options, &tilec::xray::PageOptions::default())
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

    /// Makes the kernel known to programs of XLA: the name under which they call it, and whether its launches need memory.
    fn share(&self) -> PyResult<(String, bool)> {
        let program = &self.program;
        let key = xla::share(program, &self.name).map_err(PyTypeError::new_err)?;
        Ok((key, xla::needs_memory(program)))
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

/// Libraries whose streams are requested.
impl Library {
    pub(crate) fn has_streams(self) -> bool {
        matches!(self, Library::Torch | Library::CudaInterface)
    }
}
