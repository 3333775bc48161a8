//! The CUDA driver, for callers who have a context and a stream of their own, and may be on any thread.

use cudarc::driver::sys;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;
use tilec::cuda::{PROMOTE_TO_128, TensorMap};

/// Room for what the driver's assembler says.
const LOG_BYTES: usize = 16 << 10;

type Handle = *mut c_void;

macro_rules! functions {
    ($($field:ident $symbol:literal ($($ty:ty),*);)+) => {
        /// The functions in use.
        struct Table {
            _library: libloading::Library,
            $($field: unsafe extern "C" fn($($ty),*) -> c_int,)+
        }

        impl Table {
            fn open() -> Result<Table, String> {
                let open = |name: &str| {
                    // SAFETY: the driver's library runs nothing of ours when it is loaded.
                    unsafe { libloading::Library::new(name) }
                };
                let library = open("libcuda.so.1").or_else(|_| open("libcuda.so")).or_else(|_| open("nvcuda.dll"));
                let library = library.map_err(|_| "no CUDA driver is installed (libcuda.so.1)".to_owned())?;
                $(
                    // SAFETY: the driver API manual declares the function so.
                    let $field = *unsafe { library.get::<unsafe extern "C" fn($($ty),*) -> c_int>($symbol) }
                        .map_err(|_| format!("the CUDA driver is too old: it has no {}", String::from_utf8_lossy(&$symbol[..$symbol.len() - 1])))?;
                )+
                Ok(Table { _library: library, $($field,)+ })
            }
        }
    };
}

functions! {
    init b"cuInit\0" (c_uint);
    error_string b"cuGetErrorString\0" (c_int, *mut *const c_char);
    context b"cuCtxGetCurrent\0" (*mut Handle);
    set_context b"cuCtxSetCurrent\0" (Handle);
    synchronize b"cuCtxSynchronize\0" ();
    primary b"cuDevicePrimaryCtxRetain\0" (*mut Handle, c_int);
    device_count b"cuDeviceGetCount\0" (*mut c_int);
    device_attribute b"cuDeviceGetAttribute\0" (*mut c_int, c_int, c_int);
    load b"cuModuleLoadDataEx\0" (*mut Handle, *const c_void, c_uint, *mut c_int, *mut *mut c_void);
    function b"cuModuleGetFunction\0" (*mut Handle, Handle, *const c_char);
    set_attribute b"cuFuncSetAttribute\0" (Handle, c_int, c_int);
    launch b"cuLaunchKernel\0" (Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut *mut c_void, *mut *mut c_void);
    allocate b"cuMemAlloc_v2\0" (*mut u64, usize);
    clear b"cuMemsetD8_v2\0" (u64, u8, usize);
    capturing b"cuStreamIsCapturing\0" (Handle, *mut c_int);
}

/// Functions of later drivers.
struct Later {
    launch:
        Option<unsafe extern "C" fn(*const sys::CUlaunchConfig, Handle, *mut *mut c_void, *mut *mut c_void) -> c_int>,
    tiled: Option<Tiled>,
    im2col: Option<Im2col>,
}

type Tiled = unsafe extern "C" fn(
    *mut c_void,
    c_uint,
    c_uint,
    *mut c_void,
    *const u64,
    *const u64,
    *const u32,
    *const u32,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
) -> c_int;
type Im2col = unsafe extern "C" fn(
    *mut c_void,
    c_uint,
    c_uint,
    *mut c_void,
    *const u64,
    *const u64,
    *const c_int,
    *const c_int,
    c_uint,
    c_uint,
    *const u32,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
) -> c_int;

/// The driver, opened once in a process.
pub(crate) struct Driver {
    table: Table,
    later: Later,
}

/// A parameter: a number in its first bytes, or a tensor map.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
pub(crate) struct Block(pub(crate) [u64; 16]);

/// An entry of a loaded module, which stays loaded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Function(usize);

/// Memory of a device, which stays: a captured graph may have its address.
pub(crate) struct DeviceMemory {
    pub(crate) address: u64,
    pub(crate) bytes: u64,
}

/// How an entry is launched.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared: u32,
    pub(crate) cluster: [u32; 3],
    pub(crate) programmatic: bool,
}

impl Driver {
    /// The driver of this machine.
    ///
    /// # Errors
    /// There is none, or it does not start.
    pub(crate) fn get() -> Result<&'static Driver, String> {
        static DRIVER: OnceLock<Result<Driver, String>> = OnceLock::new();
        DRIVER.get_or_init(Driver::open).as_ref().map_err(Clone::clone)
    }

    fn open() -> Result<Driver, String> {
        let table = Table::open()?;
        let library = &table._library;
        // SAFETY: as those of the table.
        let later = unsafe {
            Later {
                launch: library.get(b"cuLaunchKernelEx\0").ok().map(|f| *f),
                tiled: library.get(b"cuTensorMapEncodeTiled\0").ok().map(|f| *f),
                im2col: library.get(b"cuTensorMapEncodeIm2col\0").ok().map(|f| *f),
            }
        };
        let driver = Driver { table, later };
        // SAFETY: it takes flags, which are zero.
        driver.check("cuInit", unsafe { (driver.table.init)(0) })?;
        Ok(driver)
    }

    fn check(&self, call: &str, code: c_int) -> Result<(), String> {
        if code == 0 {
            return Ok(());
        }
        let mut text = std::ptr::null();
        // SAFETY: a place for an address, which is that of a string of the driver, or stays null.
        let said = unsafe {
            (self.table.error_string)(code, &mut text);
            if text.is_null() { None } else { Some(CStr::from_ptr(text).to_string_lossy().into_owned()) }
        };
        Err(format!("{call}: {} (error {code})", said.unwrap_or_else(|| "unknown error".to_owned())))
    }

    /// Devices.
    pub(crate) fn devices(&self) -> Result<i32, String> {
        let mut count = 0;
        // SAFETY: a place for an int.
        self.check("cuDeviceGetCount", unsafe { (self.table.device_count)(&mut count) })?;
        Ok(count)
    }

    /// Compute capability times ten.
    pub(crate) fn capability(&self, device: i32) -> Result<u32, String> {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: places for ints; CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR.
        unsafe {
            self.check("cuDeviceGetAttribute", (self.table.device_attribute)(&mut major, 75, device))?;
            self.check("cuDeviceGetAttribute", (self.table.device_attribute)(&mut minor, 76, device))?;
        }
        Ok((10 * major + minor).unsigned_abs())
    }

    /// The calling thread's context.
    pub(crate) fn current(&self) -> usize {
        let mut context = std::ptr::null_mut();
        // SAFETY: a place for a handle; what fails leaves it null.
        let _ = unsafe { (self.table.context)(&mut context) };
        context as usize
    }

    /// Makes a device's primary context, which every library shares, that of the calling thread.
    pub(crate) fn enter(&self, device: i32) -> Result<usize, String> {
        let mut context = std::ptr::null_mut();
        // SAFETY: a place for a handle; the context is retained for as long as the process lives.
        unsafe {
            self.check("cuDevicePrimaryCtxRetain", (self.table.primary)(&mut context, device))?;
            self.check("cuCtxSetCurrent", (self.table.set_context)(context))?;
        }
        Ok(context as usize)
    }

    /// Makes a context that [`Driver::enter`] gave that of the calling thread.
    pub(crate) fn reenter(&self, context: usize) -> Result<(), String> {
        // SAFETY: primary contexts stay.
        self.check("cuCtxSetCurrent", unsafe { (self.table.set_context)(context as Handle) })
    }

    /// Has the driver assemble PTX in the current context and gets entries, with their bytes of dynamic shared memory and whether clusters are large.
    pub(crate) fn load(&self, ptx: &str, entries: &[(&str, u32, bool)]) -> Result<Vec<Function>, String> {
        let text = CString::new(ptx).map_err(|_| "PTX with a zero byte".to_owned())?;
        let mut log = vec![0u8; LOG_BYTES];
        let mut options = [5, 6];
        let mut values: [*mut c_void; 2] = [log.as_mut_ptr().cast(), std::ptr::without_provenance_mut(LOG_BYTES)];
        let mut module = std::ptr::null_mut();
        // SAFETY: a string with its zero, and a log of the size that is announced.
        let code = unsafe {
            (self.table.load)(&mut module, text.as_ptr().cast(), 2, options.as_mut_ptr(), values.as_mut_ptr())
        };
        if let Err(error) = self.check("cuModuleLoadDataEx", code) {
            let end = log.iter().position(|b| *b == 0).unwrap_or(log.len());
            return Err(format!("{error}\n{}", String::from_utf8_lossy(&log[..end]).trim_end()));
        }
        let mut all = Vec::new();
        for (name, shared, large) in entries {
            let symbol = CString::new(*name).map_err(|_| "an entry with a zero byte".to_owned())?;
            let mut function = std::ptr::null_mut();
            // SAFETY: a place for a handle, a loaded module and a string; attributes 8 and 14 are numbers.
            unsafe {
                self.check("cuModuleGetFunction", (self.table.function)(&mut function, module, symbol.as_ptr()))?;
                if *shared > 49_152 {
                    self.check("cuFuncSetAttribute", (self.table.set_attribute)(function, 8, *shared as c_int))?;
                }
                if *large {
                    self.check("cuFuncSetAttribute", (self.table.set_attribute)(function, 14, 1))?;
                }
            }
            all.push(Function(function as usize));
        }
        Ok(all)
    }

    /// Whether a graph is being captured from the stream.
    pub(crate) fn is_capturing(&self, stream: u64) -> bool {
        let mut status = 0;
        // SAFETY: a place for an int; a stream of the caller.
        let code = unsafe { (self.table.capturing)(stream as Handle, &mut status) };
        code != 0 || status != 0
    }

    /// Memory of the current context, zero.
    pub(crate) fn zeros(&self, bytes: u64) -> Result<DeviceMemory, String> {
        let mut address = 0;
        // SAFETY: a place for an address; then memory of that size, which nobody uses before it is clear.
        unsafe {
            self.check("cuMemAlloc", (self.table.allocate)(&mut address, bytes.max(1) as usize))?;
            self.check("cuMemsetD8", (self.table.clear)(address, 0, bytes.max(1) as usize))?;
            self.check("cuCtxSynchronize", (self.table.synchronize)())?;
        }
        Ok(DeviceMemory { address, bytes })
    }

    /// Queues a launch; `params` are those of the entry, in order, each in a block of its own.
    pub(crate) fn launch(
        &self,
        function: Function,
        shape: &Shape,
        stream: u64,
        params: &[Block],
    ) -> Result<(), String> {
        const STACK: usize = 64;
        let address = |block: &Block| (&raw const *block).cast_mut().cast::<c_void>();
        let mut few = [std::ptr::null_mut(); STACK];
        let mut many = Vec::new();
        let pointers = if params.len() <= STACK {
            few.iter_mut().zip(params).for_each(|(to, block)| *to = address(block));
            few.as_mut_ptr()
        } else {
            many.extend(params.iter().map(address));
            many.as_mut_ptr()
        };
        let Shape { grid, block, shared, cluster, programmatic } = *shape;
        let (function, stream) = (function.0 as Handle, stream as Handle);
        let clustered = cluster != [1, 1, 1];
        if let (true, Some(launch)) = (clustered || programmatic, self.later.launch) {
            // SAFETY: integers, pointers and enumerations that have a zero.
            let mut attributes: [sys::CUlaunchAttribute; 2] = unsafe { std::mem::zeroed() };
            let mut count = 0;
            if clustered {
                attributes[count].id = sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
                attributes[count].value.clusterDim =
                    sys::CUlaunchAttributeValue_union__bindgen_ty_1 { x: cluster[0], y: cluster[1], z: cluster[2] };
                count += 1;
            }
            if programmatic {
                attributes[count].id = sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
                attributes[count].value.programmaticStreamSerializationAllowed = 1;
                count += 1;
            }
            let config = sys::CUlaunchConfig {
                gridDimX: grid[0],
                gridDimY: grid[1],
                gridDimZ: grid[2],
                blockDimX: block[0],
                blockDimY: block[1],
                blockDimZ: block[2],
                sharedMemBytes: shared,
                hStream: stream.cast(),
                attrs: attributes.as_mut_ptr(),
                numAttrs: count as c_uint,
            };
            // SAFETY: the configuration, its attributes and the parameters live until the driver returns; the entry takes as many, of these sizes.
            let code = unsafe { launch(&config, function, pointers, std::ptr::null_mut()) };
            return self.check("cuLaunchKernelEx", code);
        }
        // SAFETY: as above.
        let code = unsafe {
            (self.table.launch)(
                function,
                grid[0],
                grid[1],
                grid[2],
                block[0],
                block[1],
                block[2],
                shared,
                stream,
                pointers,
                std::ptr::null_mut(),
            )
        };
        self.check("cuLaunchKernel", code)
    }

    /// Has the driver encode a tensor map.
    pub(crate) fn encode(&self, map: &TensorMap) -> Result<Block, String> {
        let old = || "this driver knows no tensor maps: they came with CUDA 12.0".to_owned();
        let mut out = Block([0; 16]);
        let to = (&raw mut out).cast::<c_void>();
        let unknown = || format!("a tensor map of elements of {}, which no map has", map.elem.name());
        let (data_type, swizzle) = (map.data_type().ok_or_else(unknown)?, map.swizzle_code());
        let at = map.begin() as *mut c_void;
        let (extents, strides) = (map.extents.as_ptr(), map.strides[1..].as_ptr());
        let code = match &map.pixels {
            // SAFETY, of both: 128 bytes at a multiple of 64, and arrays of as many numbers as the rank says, which is at most five.
            None => unsafe {
                let encode = self.later.tiled.ok_or_else(old)?;
                encode(
                    to,
                    data_type,
                    map.rank,
                    at,
                    extents,
                    strides,
                    map.box_extents.as_ptr(),
                    map.steps.as_ptr(),
                    0,
                    swizzle,
                    PROMOTE_TO_128,
                    0,
                )
            },
            Some(pixels) => unsafe {
                let encode = self.later.im2col.ok_or_else(old)?;
                let (lower, upper) = (pixels.lower.as_ptr(), pixels.upper.as_ptr());
                let (channels, count) = (map.box_extents[0], pixels.count);
                encode(
                    to,
                    data_type,
                    map.rank,
                    at,
                    extents,
                    strides,
                    lower,
                    upper,
                    channels,
                    count,
                    map.steps.as_ptr(),
                    0,
                    swizzle,
                    PROMOTE_TO_128,
                    0,
                )
            },
        };
        self.check("cuTensorMapEncode", code)?;
        Ok(out)
    }
}
