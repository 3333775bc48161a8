//! Arrays of other libraries: where they are, and what is in them.
//!
//! | library | protocol |
//! |---|---|
//! | PyTorch | the DLPack C exchange API (2.10 and later), else its own methods |
//! | CuPy, Numba | the CUDA array interface |
//! | NumPy | its array interface |
//! | others, such as JAX | DLPack |

use crate::dtype::Dtype;
use crate::foreign::{Borrowed, Exchange, lent};
use crate::hash::ByWords;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyTuple};
use std::collections::HashMap;

/// How an object of a type is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Library {
    Torch,
    CudaInterface,
    Numpy,
    Dlpack,
}

impl Library {
    /// How a user of the library makes an array with contiguous rows.
    pub(crate) fn packed(self) -> &'static str {
        match self {
            Library::Torch => "`.contiguous()` makes one",
            Library::Numpy => "`np.ascontiguousarray(..)` makes one",
            Library::CudaInterface => "`cupy.ascontiguousarray(..)` makes one",
            Library::Dlpack => "a row-major copy is one",
        }
    }
}

/// An array. Numbers of dimensions are appended to a list that the caller has, so that a call allocates nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Array {
    pub(crate) address: u64,
    /// The device, or -1 for the host.
    pub(crate) device: i32,
    pub(crate) dtype: Dtype,
    pub(crate) rank: usize,
    pub(crate) readonly: bool,
    pub(crate) library: Library,
    /// The stream that has written it, of arrays that say so.
    pub(crate) stream: Option<u64>,
}

impl Array {
    /// An array of another library, given by its address; its strides are those of contiguous rows.
    pub(crate) fn packed(address: u64, device: i32, dtype: Dtype, shape: &[i64], readonly: bool) -> Array {
        Array { address, device, dtype, rank: shape.len(), readonly, library: Library::Dlpack, stream: None }
    }

    fn lent(lent: &Borrowed, dtype: Dtype, library: Library) -> Option<Array> {
        let device = match lent.device_type {
            1 | 3 => -1,
            2 | 13 => lent.device,
            _ => return None,
        };
        let Borrowed { address, rank, .. } = *lent;
        // Memory exported in this form is writable.
        Some(Array { address, device, dtype, rank, readonly: false, library, stream: None })
    }
}

/// Cached types and PyTorch element types, by the addresses of these objects, to which references are held.
#[derive(Default)]
pub(crate) struct Seen {
    libraries: HashMap<usize, (Library, Option<Exchange>, Py<PyAny>), ByWords>,
    dtypes: HashMap<usize, (Dtype, Py<PyAny>), ByWords>,
    /// The functions of PyTorch, once a tensor was read by them.
    pub(crate) torch: Option<Exchange>,
}

impl Seen {
    /// The library of an object, and its functions of the exchange API.
    fn library(&mut self, object: &Bound<'_, PyAny>) -> PyResult<(Library, Option<Exchange>)> {
        let ty = object.get_type();
        let key = ty.as_ptr() as usize;
        if let Some((library, exchange, _)) = self.libraries.get(&key) {
            return Ok((*library, *exchange));
        }
        let has = |name: &str| object.hasattr(name).unwrap_or(false);
        let library = if has("data_ptr") && has("get_device") && has("stride") {
            Library::Torch
        } else if has("__array_interface__") {
            Library::Numpy
        } else if has("__cuda_array_interface__") {
            Library::CudaInterface
        } else if has("__dlpack__") {
            Library::Dlpack
        } else {
            let name = ty.name()?;
            return Err(PyTypeError::new_err(format!(
                "expected an array of PyTorch, CuPy, JAX or NumPy, or another object with DLPack; found `{name}`"
            )));
        };
        // Other classes that are tensors too (of `torch.compile`, say) have no memory to speak of.
        let plain = matches!((ty.module()?.to_cow()?.as_ref(), ty.name()?.to_cow()?.as_ref()), ("torch", "Tensor"))
            || (library == Library::Torch && ty.name()?.to_cow()? == "Parameter");
        let exchange = if plain { Exchange::of(&ty) } else { None };
        self.libraries.insert(key, (library, exchange, ty.into_any().unbind()));
        Ok((library, exchange))
    }

    /// Reads an array; shape and strides (in elements) go to the lists.
    pub(crate) fn read(
        &mut self,
        object: &Bound<'_, PyAny>,
        stream: Option<u64>,
        shape: &mut Vec<i64>,
        strides: &mut Vec<i64>,
    ) -> PyResult<Array> {
        let (library, exchange) = self.library(object)?;
        if let Some(exchange) = exchange {
            let (dims, steps) = (shape.len(), strides.len());
            let read = exchange.read(object, shape, strides);
            let array =
                read.and_then(|lent| Array::lent(&lent, Dtype::of_dlpack(lent.code, lent.bits)?, Library::Torch));
            if let Some(array) = array {
                self.torch = Some(exchange);
                return Ok(array);
            }
            shape.truncate(dims);
            strides.truncate(steps);
        }
        match library {
            Library::Torch => self.torch(object, shape, strides),
            Library::CudaInterface => {
                interface(object, "__cuda_array_interface__", Library::CudaInterface, shape, strides)
            }
            Library::Numpy => interface(object, "__array_interface__", Library::Numpy, shape, strides),
            Library::Dlpack => dlpack(object, stream, shape, strides),
        }
    }

    fn torch(&mut self, tensor: &Bound<'_, PyAny>, shape: &mut Vec<i64>, strides: &mut Vec<i64>) -> PyResult<Array> {
        let py = tensor.py();
        let address = tensor.call_method0(intern!(py, "data_ptr")).map_err(|error| sparse(tensor).unwrap_or(error))?;
        let address: u64 = address.extract()?;
        let sizes = tensor.getattr(intern!(py, "shape"))?;
        let rank = numbers(&sizes, shape)?;
        numbers(&tensor.call_method0(intern!(py, "stride"))?, strides)?;
        let dtype = tensor.getattr(intern!(py, "dtype"))?;
        let key = dtype.as_ptr() as usize;
        let dtype = match self.dtypes.get(&key) {
            Some((known, _)) => *known,
            None => {
                let name = dtype.str()?.to_string();
                let known = Dtype::named(&name).ok_or_else(|| unknown(&name))?;
                self.dtypes.insert(key, (known, dtype.unbind()));
                known
            }
        };
        // Other devices have numbers too, and tensors without memory (`meta`) an address of 0.
        let is = |name| -> PyResult<bool> { tensor.getattr(name)?.extract() };
        let device: i32 = match is(intern!(py, "is_cuda"))? {
            true => tensor.call_method0(intern!(py, "get_device"))?.extract()?,
            false if is(intern!(py, "is_cpu"))? => -1,
            false => {
                let device = tensor.getattr(intern!(py, "device"))?.str()?.to_string();
                return Err(PyTypeError::new_err(format!(
                    "a tensor on `{device}`: kernels take those of CUDA and of the host"
                )));
            }
        };
        Ok(Array { address, device, dtype, rank, readonly: false, library: Library::Torch, stream: None })
    }
}

/// The error of a tensor of PyTorch that is not dense, if that is what a tensor is.
fn sparse(tensor: &Bound<'_, PyAny>) -> Option<PyErr> {
    let layout = tensor.getattr("layout").ok()?.str().ok()?.to_string();
    (layout != "torch.strided").then(|| {
        PyTypeError::new_err(format!("a tensor of layout {layout}: kernels take dense ones, which `.to_dense()` makes"))
    })
}

/// Whether PyTorch records gradients for what is done to a tensor.
pub(crate) fn records_gradient(tensor: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = tensor.py();
    match tensor.getattr(intern!(py, "requires_grad")) {
        Ok(requires) if requires.extract()? => py.import("torch")?.call_method0("is_grad_enabled")?.extract(),
        _ => Ok(false),
    }
}

fn unknown(name: &str) -> PyErr {
    PyTypeError::new_err(format!("no kernel takes elements of type {name}"))
}

/// Appends the numbers of a tuple, and returns their count.
fn numbers(tuple: &Bound<'_, PyAny>, to: &mut Vec<i64>) -> PyResult<usize> {
    let tuple = tuple.downcast::<PyTuple>()?;
    for item in tuple.iter() {
        to.push(item.extract()?);
    }
    Ok(tuple.len())
}

/// An array by one of the array interfaces, which are alike.
fn interface(
    object: &Bound<'_, PyAny>,
    name: &str,
    library: Library,
    shape: &mut Vec<i64>,
    strides: &mut Vec<i64>,
) -> PyResult<Array> {
    let described = object.getattr(name)?;
    let described = described.downcast::<PyDict>()?;
    let field = |name: &str| -> PyResult<Bound<'_, PyAny>> {
        described.get_item(name)?.ok_or_else(|| PyValueError::new_err(format!("an array interface without `{name}`")))
    };
    let typestr: String = field("typestr")?.extract()?;
    let dtype = match Dtype::of_typestr(&typestr) {
        Some(dtype) => dtype,
        // Types of ml_dtypes have no letters of their own.
        None => {
            let name = object.getattr("dtype")?.str()?.to_string();
            Dtype::named(&name).ok_or_else(|| unknown(&name))?
        }
    };
    let (address, readonly): (u64, bool) = field("data")?.extract()?;
    let first = shape.len();
    let rank = numbers(&field("shape")?, shape)?;
    match described.get_item("strides")? {
        Some(given) if !given.is_none() => {
            let from = strides.len();
            numbers(&given, strides)?;
            for stride in &mut strides[from..] {
                if *stride % dtype.bytes() != 0 {
                    return Err(PyValueError::new_err("an array whose strides are no multiples of its elements"));
                }
                *stride /= dtype.bytes();
            }
        }
        _ => {
            let mut stride = 1;
            let mut packed: Vec<i64> = shape[first..].iter().rev().map(|n| (stride, stride *= n).0).collect();
            packed.reverse();
            strides.extend(packed);
        }
    }
    let (mut device, mut stream) = (-1, None);
    if library == Library::CudaInterface {
        device = device_of(object, address)?;
        if let Some(given) = described.get_item("stream")?.filter(|s| !s.is_none()) {
            stream = Some(given.extract()?);
        }
    }
    Ok(Array { address, device, dtype, rank, readonly, library, stream })
}

/// The device of an array of the CUDA array interface, which does not name it. The driver knows it from the address.
fn device_of(object: &Bound<'_, PyAny>, address: u64) -> PyResult<i32> {
    let said = || object.getattr("device").and_then(|d| d.getattr("id")).and_then(|id| id.extract());
    if address == 0 {
        // An array without elements.
        return Ok(said().unwrap_or(0));
    }
    let found =
        tilec::cuda::Device::of_address(address).map_err(|e| crate::errors::cuda(object.py(), e.to_string()))?;
    let found = found.and_then(|ordinal| i32::try_from(ordinal).ok());
    found.ok_or_else(|| PyValueError::new_err(format!("an array at {address:#x}, where the driver knows no memory")))
}

fn dlpack(
    object: &Bound<'_, PyAny>,
    stream: Option<u64>,
    shape: &mut Vec<i64>,
    strides: &mut Vec<i64>,
) -> PyResult<Array> {
    let py = object.py();
    let (kind, _): (i32, i32) = object.call_method0("__dlpack_device__")?.extract()?;
    let capsule = match kind {
        2 => {
            let arguments = PyDict::new(py);
            // 1 is the legacy default stream; 0 is invalid in this protocol.
            arguments.set_item("stream", stream.filter(|s| *s != 0).unwrap_or(1))?;
            object.call_method("__dlpack__", (), Some(&arguments))?
        }
        _ => object.call_method0("__dlpack__")?,
    };
    let capsule = capsule.downcast::<PyCapsule>()?;
    let refused = || PyTypeError::new_err("a DLPack capsule of another version");
    let lent = lent(capsule, shape, strides).ok_or_else(refused)?;
    let unknown = || unknown(&format!("{} bits (DLPack code {})", lent.bits, lent.code));
    let dtype = Dtype::of_dlpack(lent.code, lent.bits).ok_or_else(unknown)?;
    let elsewhere = || PyTypeError::new_err(format!("an array on a device of DLPack type {}", lent.device_type));
    Array::lent(&lent, dtype, Library::Dlpack).ok_or_else(elsewhere)
}
