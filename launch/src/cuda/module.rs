//! Modules and their functions.

use super::image::Image;
use super::table::Api;
use crate::cuda::context::{Context, CudaError, text_until_zero};
use cudarc::driver::sys::{self, CUfunction_attribute as Attribute, CUjit_option as JitOption};
use std::ffi::{CString, c_void};
use std::sync::Arc;

/// Size of each log buffer for messages of the assembler.
const LOG_BYTES: usize = 64 << 10;

/// Machine code on a device, unloaded when it and the last of its functions are dropped.
pub struct Module {
    handle: Arc<Handle>,
    log: String,
}

struct Handle {
    context: Arc<Context>,
    module: sys::CUmodule,
}

impl Module {
    pub(super) fn load(context: &Arc<Context>, image: Image) -> Result<Self, CudaError> {
        let mut errors = vec![0u8; LOG_BYTES];
        let mut infos = vec![0u8; LOG_BYTES];
        // Integers travel in the place of pointers.
        let integer = |value: usize| std::ptr::without_provenance_mut::<c_void>(value);
        let mut options = [
            JitOption::CU_JIT_ERROR_LOG_BUFFER,
            JitOption::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
            JitOption::CU_JIT_INFO_LOG_BUFFER,
            JitOption::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
            JitOption::CU_JIT_LOG_VERBOSE,
        ];
        let mut values: [*mut c_void; 5] =
            [errors.as_mut_ptr().cast(), integer(LOG_BYTES), infos.as_mut_ptr().cast(), integer(LOG_BYTES), integer(1)];
        let mut module = std::ptr::null_mut();
        let mut code = 0;
        context.with(|api| {
            // SAFETY: the image is one that `image` checked; as many options as values; each log has the size announced.
            code = unsafe {
                (api.cuModuleLoadDataEx)(
                    &mut module,
                    image.as_ptr(),
                    options.len() as u32,
                    options.as_mut_ptr(),
                    values.as_mut_ptr(),
                )
            };
            Ok(())
        })?;
        if code != 0 {
            let log = text_until_zero(&errors).trim_end().to_owned();
            return Err(CudaError::Jit { code, name: context.api.name(code), log });
        }
        let handle = Arc::new(Handle { context: Arc::clone(context), module });
        Ok(Self { handle, log: text_until_zero(&infos).trim_end().to_owned() })
    }

    /// The assembler's messages about a module that it accepted: registers and spills per function, warnings. Empty if
    /// the code came from the driver's cache.
    pub fn log(&self) -> &str {
        &self.log
    }

    /// Looks up an entry by name.
    pub fn function(&self, name: &str) -> Result<Function, CudaError> {
        let symbol = CString::new(name).map_err(|_| CudaError::refused("an entry name with a zero byte"))?;
        let context = &self.handle.context;
        let mut function = std::ptr::null_mut();
        context.with(|api| {
            // SAFETY: `function` is a valid place for a handle, the module is loaded, the name is zero-terminated.
            let code = unsafe { (api.cuModuleGetFunction)(&mut function, self.handle.module, symbol.as_ptr()) };
            if code == sys::CUresult::CUDA_ERROR_NOT_FOUND as u32 {
                return Err(CudaError::refused(format!("the module has no entry `{name}`")));
            }
            api.check("cuModuleGetFunction", code)?;
            let param_bytes = param_bytes(api, function)?;
            let attributes = FunctionAttributes::read(api, function)?;
            let module = Arc::clone(&self.handle);
            Ok(Function { module, function, name: name.to_owned(), attributes, param_bytes })
        })
    }
}

// SAFETY: a handle of the driver, which may be used from any thread and from several: see [`Context`].
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Drop for Handle {
    fn drop(&mut self) {
        let _ = self.context.with(|api| {
            // A kernel of the module may still run.
            // SAFETY: a context is current.
            let _ = unsafe { (api.cuCtxSynchronize)() };
            // SAFETY: the module was loaded once and is unloaded once.
            api.check("cuModuleUnload", unsafe { (api.cuModuleUnload)(self.module) })
        });
    }
}

/// Resource usage of a function, as assembled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionAttributes {
    /// Registers per thread.
    pub registers: u32,
    /// Local memory per thread in bytes: spills and stack.
    pub local_bytes: u32,
    /// Static shared memory per block in bytes.
    pub static_shared_bytes: u32,
    /// Constant memory in bytes.
    pub const_bytes: u32,
    /// Threads per block with these registers.
    pub max_threads_per_block: u32,
}

impl FunctionAttributes {
    fn read(api: &Api, function: sys::CUfunction) -> Result<Self, CudaError> {
        Ok(Self {
            registers: attribute(api, function, Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            local_bytes: attribute(api, function, Attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
            static_shared_bytes: attribute(api, function, Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
            const_bytes: attribute(api, function, Attribute::CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES)?,
            max_threads_per_block: attribute(api, function, Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        })
    }
}

fn attribute(api: &Api, function: sys::CUfunction, attribute: Attribute) -> Result<u32, CudaError> {
    let mut value = 0;
    // SAFETY: `value` is a valid place for an int, `function` is one of a loaded module.
    api.check("cuFuncGetAttribute", unsafe { (api.cuFuncGetAttribute)(&mut value, attribute, function) })?;
    Ok(value.max(0).unsigned_abs())
}

/// Sizes of the parameters in bytes, in order, or `None` where the driver is older than CUDA 12.4 and cannot tell.
fn param_bytes(api: &Api, function: sys::CUfunction) -> Result<Option<Vec<usize>>, CudaError> {
    let Some(get_info) = api.cuFuncGetParamInfo else { return Ok(None) };
    let mut sizes = Vec::new();
    loop {
        let (mut offset, mut size) = (0, 0);
        // SAFETY: both are valid places for a size, `function` is one of a loaded module.
        let code = unsafe { get_info(function, sizes.len(), &mut offset, &mut size) };
        if code == sys::CUresult::CUDA_ERROR_INVALID_VALUE as u32 {
            // The documented answer to an index past the last parameter.
            return Ok(Some(sizes));
        }
        api.check("cuFuncGetParamInfo", code)?;
        sizes.push(size);
    }
}

/// An entry of a module.
pub struct Function {
    module: Arc<Handle>,
    function: sys::CUfunction,
    name: String,
    attributes: FunctionAttributes,
    param_bytes: Option<Vec<usize>>,
}

// SAFETY: a handle of the driver, which may be used from any thread and from several: see [`Context`].
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

impl Function {
    /// The entry's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Registers, memory and thread limit.
    pub fn attributes(&self) -> FunctionAttributes {
        self.attributes
    }

    /// Allows blocks of this function up to `bytes` of dynamic shared memory. Needed once above 48 KiB less the
    /// static shared memory. The driver refuses what the device does not have.
    pub fn set_max_dynamic_smem(&self, bytes: u32) -> Result<(), CudaError> {
        let value = i32::try_from(bytes)
            .map_err(|_| CudaError::refused(format!("{bytes} bytes of dynamic shared memory are beyond any device")))?;
        let attribute = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        self.context().with(|api| {
            // SAFETY: the function is one of a loaded module.
            api.check("cuFuncSetAttribute", unsafe { (api.cuFuncSetAttribute)(self.function, attribute, value) })
        })
    }

    /// The dynamic shared memory that blocks may use with the current attributes, in bytes.
    pub fn max_dynamic_smem(&self) -> Result<u32, CudaError> {
        let asked = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        self.context().with(|api| attribute(api, self.function, asked))
    }

    /// Allows clusters of more than 8 blocks. The driver refuses what the device does not have.
    pub fn allow_large_clusters(&self) -> Result<(), CudaError> {
        let attribute = Attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED;
        self.context().with(|api| {
            // SAFETY: the function is one of a loaded module.
            api.check("cuFuncSetAttribute", unsafe { (api.cuFuncSetAttribute)(self.function, attribute, 1) })
        })
    }

    pub(super) fn context(&self) -> &Arc<Context> {
        &self.module.context
    }

    pub(super) fn handle(&self) -> sys::CUfunction {
        self.function
    }

    pub(super) fn param_bytes(&self) -> Option<&[usize]> {
        self.param_bytes.as_deref()
    }
}
