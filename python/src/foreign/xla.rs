//! Calls of XLA: the typed foreign function interface (`xla/ffi/api/c_api.h`, versions 0.1 to 0.3).
//!
//! A structure begins with its size, and later versions add fields at the end: a field that is beyond the size is not there. XLA
//! owns all that a call frame points to, for the time of the call.

use crate::dtype::Dtype;
use crate::xla::{self, Attribute, Buffer, Failure, Frame, Platform};
use pyo3::prelude::*;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::offset_of;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

/// The version whose structures these are: the first. Later ones add fields, and take handlers of the first (XLA keeps a version for a
/// year at least).
const MAJOR: c_int = 0;
const MINOR: c_int = 1;

/// `XLA_FFI_Extension_Metadata`.
const METADATA: c_int = 1;
/// `XLA_FFI_ExecutionStage_EXECUTE`.
const EXECUTE: c_int = 3;
/// `XLA_FFI_ArgType_BUFFER` and `XLA_FFI_RetType_BUFFER`.
const BUFFER: c_int = 1;
/// `XLA_FFI_AttrType_SCALAR` and `XLA_FFI_AttrType_STRING`.
const SCALAR: c_int = 3;
const STRING: c_int = 4;
/// `XLA_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE`.
const COMMAND_BUFFERS: u32 = 1;

/// The head of every structure.
#[repr(C)]
#[derive(Clone, Copy)]
struct Head {
    size: usize,
    extension: *mut Extension,
}

#[repr(C)]
struct Extension {
    size: usize,
    kind: c_int,
    next: *mut Extension,
}

#[repr(C)]
struct Version {
    head: Head,
    major: c_int,
    minor: c_int,
}

#[repr(C)]
struct Metadata {
    size: usize,
    version: Version,
    traits: u32,
}

#[repr(C)]
struct MetadataExtension {
    base: Extension,
    metadata: *mut Metadata,
}

#[repr(C)]
struct ErrorArgs {
    head: Head,
    message: *const c_char,
    code: c_int,
}

#[repr(C)]
struct MessageArgs {
    head: Head,
    error: *mut Error,
    message: *const c_char,
}

#[repr(C)]
struct DestroyArgs {
    head: Head,
    error: *mut Error,
}

#[repr(C)]
struct StreamArgs {
    head: Head,
    context: *mut c_void,
    stream: *mut c_void,
}

#[repr(C)]
struct OrdinalArgs {
    head: Head,
    context: *mut c_void,
    ordinal: i32,
}

/// An error of XLA: XLA allocates it, and the receiver destroys it.
#[repr(C)]
pub(super) struct Error {
    opaque: [u8; 0],
}

type Function<T> = Option<unsafe extern "C" fn(*mut T) -> *mut Error>;
/// A function that does not fail.
type Procedure<T> = Option<unsafe extern "C" fn(*mut T)>;

#[repr(C)]
struct Api {
    head: Head,
    version: Version,
    internal: *const c_void,
    error_create: Function<ErrorArgs>,
    error_message: Procedure<MessageArgs>,
    error_destroy: Procedure<DestroyArgs>,
    handler_register: *const c_void,
    stream_get: Function<StreamArgs>,
    /// From `TypeId_Register` to `RunId_Get`.
    more: [*const c_void; 12],
    ordinal_get: Function<OrdinalArgs>,
}

/// Arguments or results.
#[repr(C)]
struct Values {
    head: Head,
    count: i64,
    kinds: *const c_int,
    values: *const *const BufferOf,
}

#[repr(C)]
struct BufferOf {
    head: Head,
    dtype: c_int,
    data: *mut c_void,
    rank: i64,
    dims: *const i64,
}

#[repr(C)]
struct Attributes {
    head: Head,
    count: i64,
    kinds: *const c_int,
    names: *const *const Span,
    values: *const *const c_void,
}

#[repr(C)]
struct Span {
    start: *const c_char,
    length: usize,
}

#[repr(C)]
struct Scalar {
    dtype: c_int,
    value: *const c_void,
}

#[repr(C)]
pub(super) struct CallFrame {
    head: Head,
    api: *const Api,
    context: *mut c_void,
    stage: c_int,
    args: Values,
    results: Values,
    attributes: Attributes,
}

/// Whether a structure of this size has the field that ends there.
macro_rules! has {
    ($head:expr, $of:ty, $field:ident : $ty:ty) => {
        $head.size >= offset_of!($of, $field) + size_of::<$ty>()
    };
}

/// The handlers, as capsules that XLA takes: of the host, and of CUDA for kernels that may be captured and that may not.
pub(crate) fn handlers(py: Python<'_>) -> PyResult<[Py<PyAny>; 3]> {
    let capsule = |handler: unsafe extern "C" fn(*mut CallFrame) -> *mut Error| -> PyResult<Py<PyAny>> {
        // SAFETY: a function is never freed; the capsule has no name and no destructor.
        unsafe {
            Py::from_owned_ptr_or_err(py, pyo3::ffi::PyCapsule_New(handler as *mut c_void, std::ptr::null(), None))
        }
    };
    Ok([capsule(on_host)?, capsule(on_cuda)?, capsule(on_cuda_uncaptured)?])
}

unsafe extern "C" fn on_host(frame: *mut CallFrame) -> *mut Error {
    // SAFETY: XLA's frame of this call.
    unsafe { handle(frame, Platform::Host, 0) }
}

unsafe extern "C" fn on_cuda(frame: *mut CallFrame) -> *mut Error {
    // SAFETY: XLA's frame of this call.
    unsafe { handle(frame, Platform::Cuda, COMMAND_BUFFERS) }
}

unsafe extern "C" fn on_cuda_uncaptured(frame: *mut CallFrame) -> *mut Error {
    // SAFETY: XLA's frame of this call.
    unsafe { handle(frame, Platform::Cuda, 0) }
}

/// Says what the handler is, or makes the call. No panic crosses into XLA.
///
/// # Safety
/// A frame that XLA made for this call.
unsafe fn handle(frame: *mut CallFrame, platform: Platform, traits: u32) -> *mut Error {
    // SAFETY: by the caller's promise, here and below: what the frame points to lives for the call.
    let Some(frame) = (unsafe { frame.as_ref() }) else { return null_mut() };
    // SAFETY: the chain of extensions.
    if unsafe { describe(frame, traits) } {
        return null_mut();
    }
    // SAFETY: the frame of a call.
    let called = || unsafe { read(frame, platform) }.and_then(|read| read.map_or(Ok(()), |f| xla::call(platform, f)));
    let outcome = catch_unwind(AssertUnwindSafe(called));
    match outcome.unwrap_or_else(|_| Err(Failure::internal("a bug of tilec: the launcher panicked"))) {
        Ok(()) => null_mut(),
        // SAFETY: the functions of the frame.
        Err(failure) => unsafe { error(frame, &failure) },
    }
}

/// Answers XLA's query when a handler is registered; `false` if it is no query.
unsafe fn describe(frame: &CallFrame, traits: u32) -> bool {
    let mut next = frame.head.extension;
    // SAFETY: a chain that ends with null; an extension of this kind is the larger structure.
    while let Some(extension) = unsafe { next.as_ref() } {
        if extension.kind == METADATA {
            // SAFETY: as above; XLA gives the place to write to.
            if let Some(metadata) = unsafe { (*next.cast::<MetadataExtension>()).metadata.as_mut() } {
                (metadata.version.major, metadata.version.minor) = (MAJOR, MINOR);
                metadata.traits = traits;
            }
            return true;
        }
        next = extension.next;
    }
    false
}

/// An error of XLA.
unsafe fn error(frame: &CallFrame, failure: &Failure) -> *mut Error {
    let text: Vec<u8> = failure.text.bytes().filter(|b| *b != 0).collect();
    let text = CString::new(text).unwrap_or_default();
    let head = Head { size: offset_of!(ErrorArgs, code) + size_of::<c_int>(), extension: null_mut() };
    let mut args = ErrorArgs { head, message: text.as_ptr(), code: failure.code };
    // SAFETY: the table of the frame.
    let Some(make) = unsafe { frame.api.as_ref() }.and_then(|api| api.error_create) else {
        // Returning no error would mean success, with uninitialised results.
        eprintln!("tilec: {}", failure.text);
        std::process::abort();
    };
    // SAFETY: XLA copies the text.
    unsafe { make(&mut args) }
}

/// Reads a frame; `None` at a stage that needs no work.
unsafe fn read(frame: &CallFrame, platform: Platform) -> Result<Option<Frame>, Failure> {
    let whole = has!(frame.head, CallFrame, attributes: Attributes);
    // SAFETY: the table of the frame.
    let api = unsafe { frame.api.as_ref() };
    let Some(api) = api.filter(|api| whole && api.version.major == MAJOR) else {
        return Err(Failure::internal("this XLA has another interface for calls"));
    };
    if frame.stage != EXECUTE {
        return Ok(None);
    }
    // SAFETY: arrays of as many entries as there are values; all are of this call.
    let (operands, results) = unsafe { (buffers(&frame.args)?, buffers(&frame.results)?) };
    // SAFETY: as above.
    let attributes = unsafe { attributes(&frame.attributes)? };
    let (mut stream, mut device) = (0, -1);
    if platform == Platform::Cuda {
        // SAFETY: the context of this call.
        (stream, device) = unsafe { place(api, frame.context)? };
    }
    Ok(Some(Frame { operands, results, attributes, stream, device }))
}

/// The stream of a call and its device.
unsafe fn place(api: &Api, context: *mut c_void) -> Result<(u64, i32), Failure> {
    let old = || Failure::internal("this XLA does not say the device of a call: jaxlib 0.6 does");
    if !has!(api.head, Api, ordinal_get: Function<OrdinalArgs>) {
        return Err(old());
    }
    let (Some(stream_get), Some(ordinal_get)) = (api.stream_get, api.ordinal_get) else { return Err(old()) };
    let head = |size| Head { size, extension: null_mut() };
    let mut stream = StreamArgs { head: head(size_of::<StreamArgs>()), context, stream: null_mut() };
    let size = offset_of!(OrdinalArgs, ordinal) + size_of::<i32>();
    let mut ordinal = OrdinalArgs { head: head(size), context, ordinal: 0 };
    // SAFETY: functions of XLA, with their structures.
    unsafe {
        refused(api, stream_get(&mut stream), "stream")?;
        refused(api, ordinal_get(&mut ordinal), "device")?;
    }
    Ok((stream.stream as u64, ordinal.ordinal))
}

/// An error that a function of XLA returned, read and ended; null is none.
unsafe fn refused(api: &Api, error: *mut Error, what: &str) -> Result<(), Failure> {
    if error.is_null() {
        return Ok(());
    }
    let head = |size| Head { size, extension: null_mut() };
    let mut message = MessageArgs { head: head(size_of::<MessageArgs>()), error, message: std::ptr::null() };
    let mut text = String::new();
    // SAFETY: functions of XLA, with their structures; the text lives as long as the error.
    unsafe {
        if let Some(get) = api.error_message {
            get(&mut message);
        }
        if !message.message.is_null() {
            text = CStr::from_ptr(message.message).to_string_lossy().into_owned();
        }
        if let Some(destroy) = api.error_destroy {
            destroy(&mut DestroyArgs { head: head(size_of::<DestroyArgs>()), error });
        }
    }
    Err(Failure::internal(&format!("XLA did not say the {what} of a call: {text}")))
}

/// The entries of an array of XLA.
unsafe fn entries<'a, T>(start: *const T, count: i64) -> &'a [T] {
    match usize::try_from(count) {
        // SAFETY: the caller has the array, of that length, for the call.
        Ok(count) if count > 0 && !start.is_null() => unsafe { std::slice::from_raw_parts(start, count) },
        _ => &[],
    }
}

unsafe fn buffers(of: &Values) -> Result<Vec<Buffer>, Failure> {
    let no_buffer = || Failure::internal("a value that is no buffer");
    // SAFETY: arrays of the frame, of this length.
    let (kinds, values) = unsafe { (entries(of.kinds, of.count), entries(of.values, of.count)) };
    let one = |(kind, value): (&c_int, &*const BufferOf)| -> Result<Buffer, Failure> {
        // SAFETY: an entry of the kind of buffers points to one.
        let value = unsafe { value.as_ref() }.filter(|_| *kind == BUFFER).ok_or_else(no_buffer)?;
        // SAFETY: as many extents as there are dimensions.
        let shape = unsafe { entries(value.dims, value.rank) }.to_vec();
        Ok(Buffer { dtype: value.dtype, address: value.data as u64, shape })
    };
    kinds.iter().zip(values).map(one).collect()
}

unsafe fn attributes(of: &Attributes) -> Result<Vec<(String, Attribute)>, Failure> {
    // SAFETY: arrays of the frame, of this length.
    let (kinds, names, values) =
        unsafe { (entries(of.kinds, of.count), entries(of.names, of.count), entries(of.values, of.count)) };
    let mut all = Vec::new();
    for ((kind, name), value) in kinds.iter().zip(names).zip(values) {
        // SAFETY: a name is a span.
        let name = unsafe { text(name.cast()) };
        let value = match *kind {
            // SAFETY: an attribute of that kind points to a span.
            STRING => Attribute::Text(unsafe { text((*value).cast()) }),
            // SAFETY: an attribute of that kind points to a scalar.
            SCALAR => unsafe { scalar((*value).cast(), &name)? },
            _ => return Err(Failure::internal(&format!("the attribute `{name}` is neither a number nor a text"))),
        };
        all.push((name, value));
    }
    Ok(all)
}

unsafe fn text(span: *const Span) -> String {
    // SAFETY: a span of as many bytes as it says.
    let bytes = unsafe { span.as_ref().map_or(&[][..], |s| entries(s.start.cast::<u8>(), s.length as i64)) };
    String::from_utf8_lossy(bytes).into_owned()
}

unsafe fn scalar(scalar: *const Scalar, name: &str) -> Result<Attribute, Failure> {
    let unknown = || Failure::internal(&format!("the attribute `{name}` is no number of 64 bits"));
    // SAFETY: a scalar points to a value of its type.
    let scalar = unsafe { scalar.as_ref() }.filter(|s| !s.value.is_null()).ok_or_else(unknown)?;
    // SAFETY: as above.
    unsafe {
        match xla::dtype(scalar.dtype) {
            Some(Dtype::I64) => Ok(Attribute::Int(*scalar.value.cast())),
            Some(Dtype::F64) => Ok(Attribute::Float(*scalar.value.cast())),
            _ => Err(unknown()),
        }
    }
}
