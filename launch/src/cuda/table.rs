//! The driver's functions, looked up by name once.
//!
//! cudarc's own wrappers would panic on a missing symbol and return a Rust enum, for which a result code that a newer
//! driver invents is undefined behaviour. The table takes cudarc's types, returns plain integers, and has the compiler
//! compare each signature with cudarc's. It opens the library itself, since cudarc may be built to link it: candle has it so.

use crate::cuda::context::{CudaError, text_until_zero};
use cudarc::driver::sys;
use libloading::Library;
use std::ffi::{CStr, c_char, c_int, c_uchar, c_uint, c_ulonglong, c_void};
use std::sync::OnceLock;

/// The names of the driver's library.
const LIBRARIES: &[&str] = if cfg!(windows) { &["nvcuda.dll"] } else { &["libcuda.so.1", "libcuda.so"] };

macro_rules! driver_api {
    (
        required { $( $name:ident($($arg:ty),*); )* }
        optional { $( $opt:ident($($opt_arg:ty),*); )* }
        own_types { $( $own:ident($($own_arg:ty),*); )* }
        optional_own_types { $( $late:ident($($late_arg:ty),*); )* }
    ) => {
        /// Addresses of the driver's functions, under the names of its symbols. Each returns a `CUresult`.
        #[expect(non_snake_case, reason = "the names of the driver's symbols")]
        pub(super) struct Api {
            $( pub(super) $name: unsafe extern "C" fn($($arg),*) -> u32, )*
            $( pub(super) $opt: Option<unsafe extern "C" fn($($opt_arg),*) -> u32>, )*
            $( pub(super) $own: unsafe extern "C" fn($($own_arg),*) -> u32, )*
            $( pub(super) $late: Option<unsafe extern "C" fn($($late_arg),*) -> u32>, )*
        }

        // Tests compile only if the argument lists above are those of cudarc's bindings. If another crate makes cudarc
        // link the driver, its bindings have another type.
        $( #[cfg(test)] const _: unsafe fn($($arg),*) -> sys::CUresult = sys::$name; )*
        $( #[cfg(test)] const _: unsafe fn($($opt_arg),*) -> sys::CUresult = sys::$opt; )*

        impl Api {
            fn load() -> Result<Self, CudaError> {
                // SAFETY: opening a library runs its initialisers; the CUDA driver's are meant for that.
                let opened = LIBRARIES.iter().find_map(|name| unsafe { Library::new(*name) }.ok());
                let Some(library) = opened else {
                    let looked_for = LIBRARIES.iter().map(|name| (*name).to_owned()).collect();
                    return Err(CudaError::NoLibrary { looked_for });
                };
                // It is never closed: the table outlives everything.
                let library: &'static Library = Box::leak(Box::new(library));
                Ok(Self {
                    $( $name: {
                        let symbol = concat!(stringify!($name), "\0");
                        // SAFETY: the symbol has the signature of the field, which is that of cudarc's binding;
                        // `CUresult` has the representation of u32. The library is never closed.
                        *unsafe { library.get(symbol.as_bytes()) }
                            .map_err(|_| CudaError::MissingSymbol { symbol: stringify!($name) })?
                    }, )*
                    $( $opt: {
                        let symbol = concat!(stringify!($opt), "\0");
                        // SAFETY: as for the required symbols.
                        unsafe { library.get(symbol.as_bytes()) }.ok().map(|address| *address)
                    }, )*
                    $( $own: {
                        let symbol = concat!(stringify!($own), "\0");
                        // SAFETY: the symbol has the signature of the field, by the driver API manual, with
                        // enumerations passed as the integers they are in C.
                        *unsafe { library.get(symbol.as_bytes()) }
                            .map_err(|_| CudaError::MissingSymbol { symbol: stringify!($own) })?
                    }, )*
                    $( $late: {
                        let symbol = concat!(stringify!($late), "\0");
                        // SAFETY: the symbol has the signature of the field, by the driver API manual, with enumerations
                        // passed as the integers they are in C.
                        unsafe { library.get(symbol.as_bytes()) }.ok().map(|f| *f)
                    }, )*
                })
            }
        }
    };
}

driver_api! {
    // All of these are in every driver since CUDA 11.4.
    required {
        cuInit(c_uint);
        cuDriverGetVersion(*mut c_int);
        cuDeviceGetCount(*mut c_int);
        cuDeviceGet(*mut sys::CUdevice, c_int);
        cuDeviceGetName(*mut c_char, c_int, sys::CUdevice);
        cuDeviceGetAttribute(*mut c_int, sys::CUdevice_attribute, sys::CUdevice);
        cuDeviceTotalMem_v2(*mut usize, sys::CUdevice);
        cuDevicePrimaryCtxRetain(*mut sys::CUcontext, sys::CUdevice);
        cuDevicePrimaryCtxRelease_v2(sys::CUdevice);
        cuCtxPushCurrent_v2(sys::CUcontext);
        cuCtxPopCurrent_v2(*mut sys::CUcontext);
        cuCtxGetCurrent(*mut sys::CUcontext);
        cuCtxSynchronize();
        cuModuleLoadDataEx(*mut sys::CUmodule, *const c_void, c_uint, *mut sys::CUjit_option, *mut *mut c_void);
        cuModuleUnload(sys::CUmodule);
        cuModuleGetFunction(*mut sys::CUfunction, sys::CUmodule, *const c_char);
        cuFuncGetAttribute(*mut c_int, sys::CUfunction_attribute, sys::CUfunction);
        cuFuncSetAttribute(sys::CUfunction, sys::CUfunction_attribute, c_int);
        cuOccupancyMaxActiveBlocksPerMultiprocessor(*mut c_int, sys::CUfunction, c_int, usize);
        cuMemAlloc_v2(*mut sys::CUdeviceptr, usize);
        cuMemFree_v2(sys::CUdeviceptr);
        cuMemcpyHtoD_v2(sys::CUdeviceptr, *const c_void, usize);
        cuMemcpyDtoH_v2(*mut c_void, sys::CUdeviceptr, usize);
        cuMemsetD8_v2(sys::CUdeviceptr, c_uchar, usize);
        cuLaunchKernel(
            sys::CUfunction, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, sys::CUstream, *mut *mut c_void,
            *mut *mut c_void
        );
        cuStreamCreate(*mut sys::CUstream, c_uint);
        cuStreamDestroy_v2(sys::CUstream);
        cuStreamSynchronize(sys::CUstream);
        cuEventCreate(*mut sys::CUevent, c_uint);
        cuEventDestroy_v2(sys::CUevent);
        cuEventRecord(sys::CUevent, sys::CUstream);
        cuEventSynchronize(sys::CUevent);
        cuEventElapsedTime(*mut f32, sys::CUevent, sys::CUevent);
        cuStreamWaitEvent(sys::CUstream, sys::CUevent, c_uint);
        cuStreamBeginCapture_v2(sys::CUstream, sys::CUstreamCaptureMode);
        cuStreamEndCapture(sys::CUstream, *mut sys::CUgraph);
        cuGraphInstantiateWithFlags(*mut sys::CUgraphExec, sys::CUgraph, c_ulonglong);
        cuGraphUpload(sys::CUgraphExec, sys::CUstream);
        cuGraphLaunch(sys::CUgraphExec, sys::CUstream);
        cuGraphExecDestroy(sys::CUgraphExec);
        cuGraphDestroy(sys::CUgraph);
    }
    optional {
        // CUDA 12.4, driver R550.
        cuFuncGetParamInfo(sys::CUfunction, usize, *mut usize, *mut usize);
    }
    // cudarc passes result codes and states as its enums; any integer may come out of the driver and go back in.
    own_types {
        cuGetErrorName(u32, *mut *const c_char);
        cuGetErrorString(u32, *mut *const c_char);
        cuPointerGetAttribute(*mut c_void, c_uint, sys::CUdeviceptr);
        cuStreamIsCapturing(sys::CUstream, *mut c_int);
    }
    // CUDA 11.8 and 12.0; enumerations as integers.
    optional_own_types {
        cuLaunchKernelEx(*const sys::CUlaunchConfig, sys::CUfunction, *mut *mut c_void, *mut *mut c_void);
        cuOccupancyMaxActiveClusters(*mut c_int, sys::CUfunction, *const sys::CUlaunchConfig);
        cuTensorMapEncodeTiled(
            *mut c_void, c_uint, c_uint, *mut c_void, *const u64, *const u64, *const c_uint, *const c_uint, c_uint, c_uint,
            c_uint, c_uint
        );
        cuTensorMapEncodeIm2col(
            *mut c_void, c_uint, c_uint, *mut c_void, *const u64, *const u64, *const c_int, *const c_int, c_uint, c_uint,
            *const c_uint, c_uint, c_uint, c_uint, c_uint
        );
    }
}

impl Api {
    /// The table, loaded on first use. A failure is remembered.
    pub(super) fn get() -> Result<&'static Self, CudaError> {
        static API: OnceLock<Result<Api, CudaError>> = OnceLock::new();
        API.get_or_init(Self::load).as_ref().map_err(Clone::clone)
    }

    /// Turns the result of `call` into an error with the driver's words.
    pub(super) fn check(&self, call: &'static str, code: u32) -> Result<(), CudaError> {
        if code == sys::CUresult::CUDA_SUCCESS as u32 {
            return Ok(());
        }
        let text = self.words(self.cuGetErrorString, code).unwrap_or_else(|| "no description".to_owned());
        Err(CudaError::Driver { call, code, name: self.name(code), text })
    }

    /// The name of a result code.
    pub(super) fn name(&self, code: u32) -> String {
        self.words(self.cuGetErrorName, code).unwrap_or_else(|| "unknown CUDA error".to_owned())
    }

    fn words(&self, function: unsafe extern "C" fn(u32, *mut *const c_char) -> u32, code: u32) -> Option<String> {
        let mut text = std::ptr::null();
        // SAFETY: `text` is a valid place for a pointer; an unknown code is an error and sets it to null.
        let result = unsafe { function(code, &mut text) };
        if result != 0 || text.is_null() {
            return None;
        }
        // SAFETY: on success the driver returns a zero-terminated string of its own that is never freed.
        Some(text_until_zero(unsafe { CStr::from_ptr(text) }.to_bytes()))
    }
}
