//! Matrix products of cuBLAS, as a performance reference: `libcublasLt`, opened at run time like the driver.
//!
//! Signatures and constants are from the cuBLAS 13.0 documentation, "Using the cuBLASLt API", and its header; they are
//! unchanged since CUDA 11.4. Status codes stay integers, because a newer library may have more of them.

use super::{Buffer, Stream};
use crate::contract::encode::encode;
use crate::cuda::context::{Context, CudaError};
use crate::cuda::device::Device;
use libloading::Library;
use std::ffi::{c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;
use tilec_core::elem::Elem;

/// Scratch memory that a product may use. What PyTorch gives cuBLAS on Hopper.
const WORKSPACE_BYTES: usize = 32 << 20;

/// Why there is no cuBLAS.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CublasError {
    /// None of the candidate files can be opened as a library.
    #[error("no cuBLAS library: the loader found none of {} names (set TILEC_CUBLAS to the directory of libcublasLt)", .tried.len())]
    NoLibrary {
        /// The candidates, in order.
        tried: Vec<PathBuf>,
    },
    /// The library lacks a function.
    #[error("`{}` has no `{symbol}`", .library.display())]
    MissingSymbol {
        /// The library.
        library: PathBuf,
        /// The function.
        symbol: &'static str,
    },
    /// The library or the driver refused.
    #[error(transparent)]
    Cuda(#[from] CudaError),
}

type Handle = *mut c_void;

macro_rules! cublas_api {
    ($( $name:ident($($arg:ty),*) -> $result:ty; )*) => {
        /// Functions of the library under the names of its symbols.
        #[expect(non_snake_case, reason = "the names of the library's symbols")]
        struct Api { $( $name: unsafe extern "C" fn($($arg),*) -> $result, )* }

        impl Api {
            fn load(library: &'static Library, path: &Path) -> Result<Self, CublasError> {
                Ok(Self { $(
                    $name: {
                        let symbol = concat!(stringify!($name), "\0");
                        // SAFETY: the signature is that of the library's header, with enumerations as the integers they are
                        // in C and opaque handles as pointers. The library is never closed.
                        *unsafe { library.get(symbol.as_bytes()) }.map_err(|_| CublasError::MissingSymbol {
                            library: path.to_owned(),
                            symbol: stringify!($name),
                        })?
                    },
                )* })
            }
        }
    };
}

cublas_api! {
    cublasLtGetVersion() -> usize;
    cublasLtCreate(*mut Handle) -> u32;
    cublasLtDestroy(Handle) -> u32;
    cublasLtMatmulDescCreate(*mut Handle, u32, u32) -> u32;
    cublasLtMatmulDescSetAttribute(Handle, u32, *const c_void, usize) -> u32;
    cublasLtMatmulDescDestroy(Handle) -> u32;
    cublasLtMatrixLayoutCreate(*mut Handle, u32, u64, u64, i64) -> u32;
    cublasLtMatrixLayoutSetAttribute(Handle, u32, *const c_void, usize) -> u32;
    cublasLtMatrixLayoutDestroy(Handle) -> u32;
    cublasLtMatmulPreferenceCreate(*mut Handle) -> u32;
    cublasLtMatmulPreferenceSetAttribute(Handle, u32, *const c_void, usize) -> u32;
    cublasLtMatmulPreferenceDestroy(Handle) -> u32;
    cublasLtMatmulAlgoGetHeuristic(
        Handle, Handle, Handle, Handle, Handle, Handle, Handle, c_int, *mut Choice, *mut c_int
    ) -> u32;
    cublasLtMatmul(
        Handle, Handle, *const c_void, *const c_void, Handle, *const c_void, Handle, *const c_void, *const c_void,
        Handle, *mut c_void, Handle, *const [u64; 8], *mut c_void, usize, *mut c_void
    ) -> u32;
}

impl Api {
    /// The first of `candidates` that can be opened, and its file.
    fn open(candidates: &[PathBuf]) -> Result<(Self, PathBuf), CublasError> {
        // SAFETY: opening a library runs its initialisers; these names are those of cuBLAS, or given by the user.
        let open = |path: &PathBuf| Some((unsafe { Library::new(path) }.ok()?, path.clone()));
        let Some((library, path)) = candidates.iter().find_map(open) else {
            return Err(CublasError::NoLibrary { tried: candidates.to_vec() });
        };
        // Closing it would remove the code of its threads and exit handlers.
        let library: &'static Library = Box::leak(Box::new(library));
        Ok((Api::load(library, &path)?, path))
    }

    /// `13.0.2`.
    fn version(&self) -> String {
        // SAFETY: takes nothing, returns a number: major * 10000 + minor * 100 + patch.
        let v = unsafe { (self.cublasLtGetVersion)() };
        format!("{}.{}.{}", v / 10_000, v / 100 % 100, v % 100)
    }
}

/// `cublasLtMatmulHeuristicResult_t`.
#[repr(C)]
#[derive(Copy, Clone, Default)]
struct Choice {
    algo: [u64; 8],
    workspace_bytes: usize,
    state: u32,
    waves: f32,
    reserved: [c_int; 4],
}

/// `cublasLtMatmulDescAttributes_t`, `cublasLtMatrixLayoutAttribute_t` and `cublasLtMatmulPreferenceAttributes_t`.
const DESC_TRANSA: u32 = 3;
const DESC_TRANSB: u32 = 4;
const LAYOUT_BATCH_COUNT: u32 = 5;
const LAYOUT_BATCH_OFFSET: u32 = 6;
const PREF_MAX_WORKSPACE_BYTES: u32 = 1;
const PREF_MIN_ALIGNMENT: [u32; 4] = [5, 6, 7, 8];

/// Element type of a matrix.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "the names of the element types")]
pub enum MatType {
    F16,
    BF16,
    F32,
    F64,
    I8,
    I32,
    E4M3,
    E5M2,
}

impl MatType {
    /// The storage type of `elem`; tf32 is stored in 32 bits.
    pub fn of(elem: Elem) -> Option<MatType> {
        match elem {
            Elem::F16 => Some(MatType::F16),
            Elem::BF16 => Some(MatType::BF16),
            Elem::F32 | Elem::TF32 => Some(MatType::F32),
            Elem::F64 => Some(MatType::F64),
            Elem::I8 => Some(MatType::I8),
            Elem::I32 => Some(MatType::I32),
            Elem::E4M3 => Some(MatType::E4M3),
            Elem::E5M2 => Some(MatType::E5M2),
            Elem::E2M1
            | Elem::UE8M0
            | Elem::U8
            | Elem::I4
            | Elem::U4
            | Elem::I16
            | Elem::U16
            | Elem::U32
            | Elem::I64
            | Elem::U64
            | Elem::Bool => None,
        }
    }

    /// `cudaDataType_t`.
    fn code(self) -> u32 {
        match self {
            MatType::F32 => 0,
            MatType::F64 => 1,
            MatType::F16 => 2,
            MatType::I8 => 3,
            MatType::I32 => 10,
            MatType::BF16 => 14,
            MatType::E4M3 => 28,
            MatType::E5M2 => 29,
        }
    }

    fn bytes(self) -> u64 {
        match self {
            MatType::I8 | MatType::E4M3 | MatType::E5M2 => 1,
            MatType::F16 | MatType::BF16 => 2,
            MatType::F32 | MatType::I32 => 4,
            MatType::F64 => 8,
        }
    }
}

/// The type of accumulators.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Compute {
    /// In f16.
    F16,
    /// In f32, factors as they are.
    F32,
    /// In f32, factors rounded to tf32.
    Tf32,
    /// In f64.
    F64,
    /// In 32-bit integers.
    I32,
}

impl Compute {
    /// `cublasComputeType_t`.
    fn code(self) -> u32 {
        match self {
            Compute::F16 => 64,
            Compute::F32 => 68,
            Compute::F64 => 70,
            Compute::I32 => 72,
            Compute::Tf32 => 77,
        }
    }

    /// The type of the scalars.
    fn scale(self) -> (MatType, Elem) {
        match self {
            Compute::F16 => (MatType::F16, Elem::F16),
            Compute::F32 | Compute::Tf32 => (MatType::F32, Elem::F32),
            Compute::F64 => (MatType::F64, Elem::F64),
            Compute::I32 => (MatType::I32, Elem::I32),
        }
    }
}

/// A matrix in memory: columns of contiguous elements.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Matrix {
    /// Element type.
    pub ty: MatType,
    /// Whether the matrix in memory is the transpose.
    pub transposed: bool,
    /// Elements from one column in memory to the next.
    pub ld: u64,
    /// Elements from one matrix of a batch to the next.
    pub apart: u64,
}

/// `d = alpha * a * b + beta * d`, `d` with contiguous columns.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Product {
    /// Rows of `a` and `d`.
    pub rows: u64,
    /// Columns of `b` and `d`.
    pub cols: u64,
    /// Columns of `a`, rows of `b`.
    pub depth: u64,
    /// Left factor.
    pub a: Matrix,
    /// Right factor.
    pub b: Matrix,
    /// Result; not transposed.
    pub d: Matrix,
    /// Products of a batch.
    pub batches: u64,
    /// Accumulation.
    pub compute: Compute,
    /// Alignment in bytes that the addresses of all matrices have.
    pub align: u32,
}

/// An open library with scratch memory on a device.
pub struct Cublas {
    api: Arc<Api>,
    context: Arc<Context>,
    handle: Handle,
    workspace: Buffer,
    path: PathBuf,
}

impl Cublas {
    /// Opens the first of `candidates` (file names for the loader, or paths) that can be opened.
    ///
    /// # Errors
    /// There is none, it is no cuBLAS, or it cannot use the device.
    pub fn open(device: &Device, candidates: &[PathBuf]) -> Result<Cublas, CublasError> {
        let (api, path) = Api::open(candidates)?;
        let api = Arc::new(api);
        let context = Arc::clone(&device.context);
        let mut handle = std::ptr::null_mut();
        context.with(|_| {
            // SAFETY: `handle` is a valid place for a handle; the context is current.
            check("cublasLtCreate", unsafe { (api.cublasLtCreate)(&mut handle) })
        })?;
        // From here on the value releases the handle.
        let workspace = device.alloc(0)?;
        let mut made = Cublas { api, context, handle, workspace, path };
        made.workspace = device.alloc(WORKSPACE_BYTES)?;
        Ok(made)
    }

    /// Version and file of the library that [`open`](Cublas::open) takes; it needs no device.
    ///
    /// # Errors
    /// There is none, or it is no cuBLAS.
    pub fn installed(candidates: &[PathBuf]) -> Result<(String, PathBuf), CublasError> {
        Api::open(candidates).map(|(api, path)| (api.version(), path))
    }

    /// `13.0.2`.
    pub fn version(&self) -> String {
        self.api.version()
    }

    /// The file that was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Asks for up to `most` ways to compute `product`, best guess first.
    ///
    /// # Errors
    /// cuBLAS cannot compute it.
    pub fn plan(&self, product: Product, most: usize) -> Result<Matmul<'_>, CudaError> {
        let mut plan = Matmul {
            cublas: self,
            product,
            desc: std::ptr::null_mut(),
            layouts: [std::ptr::null_mut(); 3],
            choices: Vec::new(),
        };
        self.context.with(|_| {
            self.describe(&mut plan)?;
            plan.choices = self.choices(&plan, most)?;
            Ok(())
        })?;
        Ok(plan)
    }

    /// Makes the handles that describe the product of a plan.
    fn describe(&self, plan: &mut Matmul<'_>) -> Result<(), CudaError> {
        let api = &self.api;
        let Product { rows, cols, depth, a, b, d, batches, compute, .. } = plan.product;
        let batches = i32::try_from(batches).map_err(|_| CudaError::refused("a batch beyond 2^31"))?;
        // SAFETY: `desc` is a valid place for a handle.
        check("cublasLtMatmulDescCreate", unsafe {
            (api.cublasLtMatmulDescCreate)(&mut plan.desc, compute.code(), compute.scale().0.code())
        })?;
        for (attribute, transposed) in [(DESC_TRANSA, a.transposed), (DESC_TRANSB, b.transposed)] {
            let operation = i32::from(transposed);
            // SAFETY: the attribute is an `int32_t`, copied at once.
            check("cublasLtMatmulDescSetAttribute", unsafe {
                (api.cublasLtMatmulDescSetAttribute)(plan.desc, attribute, (&raw const operation).cast(), 4)
            })?;
        }
        for (layout, matrix, r, c) in
            [(0, a, rows, depth), (1, b, depth, cols), (2, d, rows, cols)].map(|(i, m, r, c)| (i, m, r, c))
        {
            let (r, c) = if matrix.transposed { (c, r) } else { (r, c) };
            let ld = i64::try_from(matrix.ld).map_err(|_| CudaError::refused("a stride beyond 2^63"))?;
            // SAFETY: the place is valid for a handle.
            check("cublasLtMatrixLayoutCreate", unsafe {
                (api.cublasLtMatrixLayoutCreate)(&mut plan.layouts[layout], matrix.ty.code(), r, c, ld)
            })?;
            if batches == 1 {
                continue;
            }
            let apart = i64::try_from(matrix.apart).map_err(|_| CudaError::refused("a stride beyond 2^63"))?;
            // SAFETY: the layout is alive; the attribute is an `int32_t`, copied at once.
            check("cublasLtMatrixLayoutSetAttribute", unsafe {
                let value = (&raw const batches).cast();
                (api.cublasLtMatrixLayoutSetAttribute)(plan.layouts[layout], LAYOUT_BATCH_COUNT, value, 4)
            })?;
            // SAFETY: the layout is alive; the attribute is an `int64_t`, copied at once.
            check("cublasLtMatrixLayoutSetAttribute", unsafe {
                let value = (&raw const apart).cast();
                (api.cublasLtMatrixLayoutSetAttribute)(plan.layouts[layout], LAYOUT_BATCH_OFFSET, value, 8)
            })?;
        }
        Ok(())
    }

    /// Up to `most` algorithms for a plan, best guess first.
    fn choices(&self, plan: &Matmul<'_>, most: usize) -> Result<Vec<Choice>, CudaError> {
        let (api, align) = (&self.api, plan.product.align);
        let mut preference = std::ptr::null_mut();
        // SAFETY: the place is valid for a handle.
        check("cublasLtMatmulPreferenceCreate", unsafe { (api.cublasLtMatmulPreferenceCreate)(&mut preference) })?;
        let workspace = WORKSPACE_BYTES as u64;
        // SAFETY: the attribute is a `uint64_t`, copied at once.
        let mut code = unsafe {
            (api.cublasLtMatmulPreferenceSetAttribute)(
                preference,
                PREF_MAX_WORKSPACE_BYTES,
                (&raw const workspace).cast(),
                8,
            )
        };
        for attribute in PREF_MIN_ALIGNMENT {
            if code == 0 {
                // SAFETY: the attribute is a `uint32_t`, copied at once.
                code = unsafe {
                    (api.cublasLtMatmulPreferenceSetAttribute)(preference, attribute, (&raw const align).cast(), 4)
                };
            }
        }
        let mut found = vec![Choice::default(); most.max(1)];
        let mut count = 0;
        if code == 0 {
            let [la, lb, ld] = plan.layouts;
            // SAFETY: all handles are alive; there is room for as many results as are requested.
            code = unsafe {
                (api.cublasLtMatmulAlgoGetHeuristic)(
                    self.handle,
                    plan.desc,
                    la,
                    lb,
                    ld,
                    ld,
                    preference,
                    c_int::try_from(found.len()).unwrap_or(1),
                    found.as_mut_ptr(),
                    &mut count,
                )
            };
        }
        // SAFETY: made once, destroyed once.
        unsafe { (api.cublasLtMatmulPreferenceDestroy)(preference) };
        check("cublasLtMatmulAlgoGetHeuristic", code)?;
        found.truncate(usize::try_from(count).unwrap_or(0));
        found.retain(|choice| choice.state == 0 && choice.workspace_bytes <= WORKSPACE_BYTES);
        if found.is_empty() {
            return Err(CudaError::refused("cuBLAS has no algorithm for this product"));
        }
        Ok(found)
    }
}

impl Drop for Cublas {
    fn drop(&mut self) {
        let _ = self.context.with(|_| {
            // SAFETY: made once, destroyed once.
            check("cublasLtDestroy", unsafe { (self.api.cublasLtDestroy)(self.handle) })
        });
    }
}

/// A product that was planned.
pub struct Matmul<'c> {
    cublas: &'c Cublas,
    product: Product,
    desc: Handle,
    layouts: [Handle; 3],
    choices: Vec<Choice>,
}

/// A matrix on the device.
#[derive(Copy, Clone)]
pub struct At<'b> {
    /// The memory it is in.
    pub buffer: &'b Buffer,
    /// Its first byte there.
    pub offset: usize,
}

impl Matmul<'_> {
    /// Number of ways to compute it.
    pub fn choices(&self) -> usize {
        self.choices.len()
    }

    /// Queues the product on `stream`, with algorithm `choice`.
    ///
    /// # Errors
    /// If a matrix is not in its buffer, there is no such choice, or the library refuses.
    pub fn launch(
        &self,
        stream: &Stream,
        choice: usize,
        (alpha, beta): (f64, f64),
        [a, b, d]: [At<'_>; 3],
    ) -> Result<(), CudaError> {
        let Some(choice) = self.choices.get(choice) else {
            return Err(CudaError::refused(format!("there are {} choices", self.choices.len())));
        };
        let Product { rows, cols, depth, batches, compute, .. } = self.product;
        let a = address(a, self.product.a, rows, depth, batches)?;
        let b = address(b, self.product.b, depth, cols, batches)?;
        let d = address(d, self.product.d, rows, cols, batches)?;
        let scale = compute.scale().1;
        let (alpha, beta) = (encode(scale, alpha), encode(scale, beta));
        let [la, lb, ld] = self.layouts;
        let api = &self.cublas.api;
        self.cublas.context.with(|_| {
            // SAFETY: all handles are alive. The scalars have the type that the descriptor announces, in the first bytes of
            // a little-endian word. The matrices are in their buffers, the workspace has the size that was announced.
            check("cublasLtMatmul", unsafe {
                (api.cublasLtMatmul)(
                    self.cublas.handle,
                    self.desc,
                    (&raw const alpha).cast(),
                    a.cast_const(),
                    la,
                    b.cast_const(),
                    lb,
                    (&raw const beta).cast(),
                    d.cast_const(),
                    ld,
                    d,
                    ld,
                    &raw const choice.algo,
                    device_pointer(self.cublas.workspace.address()),
                    WORKSPACE_BYTES,
                    stream.handle().cast(),
                )
            })
        })
    }
}

impl Drop for Matmul<'_> {
    fn drop(&mut self) {
        let api = &self.cublas.api;
        for layout in self.layouts.into_iter().filter(|l| !l.is_null()) {
            // SAFETY: made once, destroyed once.
            unsafe { (api.cublasLtMatrixLayoutDestroy)(layout) };
        }
        if !self.desc.is_null() {
            // SAFETY: made once, destroyed once.
            unsafe { (api.cublasLtMatmulDescDestroy)(self.desc) };
        }
    }
}

/// The address of the first of `batches` matrices of `rows` by `cols`, if they are in their buffer.
fn address(at: At<'_>, matrix: Matrix, rows: u64, cols: u64, batches: u64) -> Result<*mut c_void, CudaError> {
    let (rows, cols) = if matrix.transposed { (cols, rows) } else { (rows, cols) };
    let last = batches.saturating_sub(1).checked_mul(matrix.apart);
    let elements = cols.saturating_sub(1).checked_mul(matrix.ld).and_then(|x| x.checked_add(rows));
    let elements = elements.zip(last).and_then(|(x, last)| x.checked_add(last));
    let bytes = elements.and_then(|x| x.checked_mul(matrix.ty.bytes())).and_then(|x| usize::try_from(x).ok());
    let bytes = bytes.ok_or_else(|| CudaError::refused("a matrix beyond 2^64 bytes"))?;
    super::memory::check_range(at.offset, bytes, at.buffer.bytes())?;
    Ok(device_pointer(at.buffer.address() + at.offset as u64))
}

/// A device address in the place of a pointer: the host never follows it.
fn device_pointer(address: u64) -> *mut c_void {
    std::ptr::without_provenance_mut(usize::try_from(address).unwrap_or(0))
}

/// Turns a status into an error with its name (`cublasStatus_t`).
fn check(call: &'static str, status: u32) -> Result<(), CudaError> {
    let name = match status {
        0 => return Ok(()),
        1 => "CUBLAS_STATUS_NOT_INITIALIZED",
        3 => "CUBLAS_STATUS_ALLOC_FAILED",
        7 => "CUBLAS_STATUS_INVALID_VALUE",
        8 => "CUBLAS_STATUS_ARCH_MISMATCH",
        11 => "CUBLAS_STATUS_MAPPING_ERROR",
        13 => "CUBLAS_STATUS_EXECUTION_FAILED",
        14 => "CUBLAS_STATUS_INTERNAL_ERROR",
        15 => "CUBLAS_STATUS_NOT_SUPPORTED",
        16 => "CUBLAS_STATUS_LICENSE_ERROR",
        _ => "an unknown status",
    };
    Err(CudaError::refused(format!("{call}: {name} ({status})")))
}
