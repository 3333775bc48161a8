//! Modules, functions and launches.

use super::context::current;
use super::stream::check;
use super::{Answer, answer, list, put, text};
use crate::attributes;
use crate::code::{Code, Failure};
use crate::launch::Request;
use crate::state::shared as with;
use std::ffi::{c_char, c_int, c_uint, c_void};
use tilec_sim::occupancy::MULTIPROCESSORS;

/// `CU_JIT_ERROR_LOG_BUFFER` and its size.
const ERROR_LOG: c_uint = 5;
const ERROR_LOG_BYTES: c_uint = 6;
/// `CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION` and `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`.
const CLUSTER: u32 = 4;
/// `CU_LAUNCH_ATTRIBUTE_COOPERATIVE`.
const COOPERATIVE: u32 = 2;
const PROGRAMMATIC: u32 = 6;
/// `CU_LAUNCH_PARAM_END`, `CU_LAUNCH_PARAM_BUFFER_POINTER`, `CU_LAUNCH_PARAM_BUFFER_SIZE`.
const END: usize = 0;
const BUFFER: usize = 1;
const BUFFER_BYTES: usize = 2;

/// `CUlaunchAttribute`: a number, and 64 bytes that start at a multiple of 8.
#[derive(Clone, Copy)]
#[repr(C)]
struct Attribute {
    id: u32,
    _gap: u32,
    value: [u32; 16],
}

/// `CUlaunchConfig`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Config {
    grid: [u32; 3],
    block: [u32; 3],
    dynamic: u32,
    stream: u64,
    attributes: *const Attribute,
    count: u32,
}

/// The PTX of an image, which is text that ends with a zero.
unsafe fn ptx(image: *const c_void) -> Result<String, Failure> {
    let machine: [&[u8]; 2] = [b"\x7fELF", &[0x50, 0xed, 0x55, 0xba]];
    let mut is_machine = false;
    for magic in machine {
        // Byte by byte: text may end in front of the fourth.
        let mut same = true;
        for (i, byte) in magic.iter().enumerate() {
            // SAFETY: those in front are no zeros, so the image goes on.
            same = same && unsafe { list(image.cast::<u8>().wrapping_add(i), 1)? }[0] == *byte;
        }
        is_machine |= same;
    }
    if is_machine {
        return Err(Failure::new(Code::NoBinary, "the image is machine code: the simulator executes PTX alone"));
    }
    // SAFETY: what is no binary is text that ends with a zero.
    unsafe { text(image.cast()) }
}

unsafe fn load(to: *mut u64, text: &str, log: Option<(*mut u8, usize)>) -> Result<(), Failure> {
    current()?;
    match with(|state| state.alive()?.load(text)) {
        // SAFETY: the driver's contract: a handle may be written there.
        Ok(module) => unsafe { put(to, module) },
        Err(failure) => {
            if let (Some((at, room)), Some(message)) = (log.filter(|(at, n)| !at.is_null() && *n > 0), &failure.message)
            {
                for (i, byte) in message.bytes().take(room - 1).chain([0]).enumerate() {
                    // SAFETY: the caller said that so many bytes may be written there.
                    unsafe { put(at.wrapping_add(i), byte)? };
                }
            }
            Err(failure)
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleLoad(to: *mut u64, path: *const c_char) -> Answer {
    answer("cuModuleLoad", || {
        // SAFETY: the driver's contract.
        let path = unsafe { text(path)? };
        let file = std::fs::read(&path).map_err(|e| Failure::new(Code::FileNotFound, format!("{path}: {e}")))?;
        let image = std::ffi::CString::new(file).map_err(|_| {
            Failure::new(Code::NoBinary, format!("{path} is machine code: the simulator executes PTX alone"))
        })?;
        // SAFETY: as above.
        unsafe { load(to, &image.to_string_lossy(), None) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleLoadData(to: *mut u64, image: *const c_void) -> Answer {
    // SAFETY: as above.
    answer("cuModuleLoadData", || unsafe { load(to, &ptx(image)?, None) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleLoadDataEx(
    to: *mut u64,
    image: *const c_void,
    count: c_uint,
    options: *const c_uint,
    values: *const *mut c_void,
) -> Answer {
    answer("cuModuleLoadDataEx", || {
        // SAFETY: the driver's contract: there are so many options and values.
        let (options, values) = unsafe { (list(options, count as usize)?, list(values, count as usize)?) };
        let value = |option| options.iter().position(|o| *o == option).map(|i| values[i]);
        let log = value(ERROR_LOG).zip(value(ERROR_LOG_BYTES)).map(|(at, bytes)| (at.cast::<u8>(), bytes as usize));
        // SAFETY: as above.
        unsafe { load(to, &ptx(image)?, log) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuModuleUnload(module: u64) -> Answer {
    answer("cuModuleUnload", || with(|state| state.unload(module)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleGetFunction(to: *mut u64, module: u64, name: *const c_char) -> Answer {
    answer("cuModuleGetFunction", || {
        // SAFETY: as above.
        let name = unsafe { text(name)? };
        let function = with(|state| state.function(module, &name))?;
        // SAFETY: as above.
        unsafe { put(to, function) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuFuncGetParamInfo(function: u64, index: usize, offset: *mut usize, bytes: *mut usize) -> Answer {
    answer("cuFuncGetParamInfo", || {
        let place = with(|state| {
            let function = state.function_of(function)?;
            Ok(function.program.param_places(&function.entry).and_then(|places| places.get(index).copied()))
        })?;
        // A host queries parameters until there are no more.
        let (at, n) = place.ok_or(Code::InvalidValue)?;
        // SAFETY: as above; the size may be null.
        unsafe {
            put(offset, at as usize)?;
            if bytes.is_null() { Ok(()) } else { put(bytes, n as usize) }
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuFuncGetAttribute(value: *mut c_int, attribute: c_int, function: u64) -> Answer {
    answer("cuFuncGetAttribute", || {
        let found = with(|state| {
            let f = state.function_of(function)?;
            attributes::of_function(&f.program, &f.entry, state.settings.target, f.dynamic, attribute)
        })?;
        // SAFETY: as above.
        unsafe { put(value, found) }
    })
}

/// 8 is the dynamic shared memory. What only makes kernels faster or allows more is accepted: carveout (9), clusters of other sizes (14), the order of
/// clusters (15). Sizes of clusters (10 to 13) come with a launch.
#[unsafe(no_mangle)]
extern "C" fn cuFuncSetAttribute(function: u64, attribute: c_int, value: c_int) -> Answer {
    answer("cuFuncSetAttribute", || {
        with(|state| match attribute {
            8 => state.set_dynamic(function, value),
            9 | 14 | 15 => state.function_of(function).map(|_| ()),
            10..=13 => Err(Failure::new(Code::NotSupported, "say the size of clusters in the launch")),
            other => Err(Failure::new(Code::InvalidValue, format!("the function attribute {other} cannot be set"))),
        })
    })
}

/// The parameters of a launch: an address for each, or one buffer with all of them.
unsafe fn parameters(
    function: u64,
    params: *const *const c_void,
    extra: *const *const c_void,
) -> Result<Vec<Vec<u8>>, Failure> {
    let places = with(|state| {
        let f = state.function_of(function)?;
        Ok(f.program.param_places(&f.entry).unwrap_or_default())
    })?;
    if extra.is_null() {
        // SAFETY: the driver's contract: an address for each parameter, with as many bytes as it has.
        let addresses = unsafe { list(params, places.len())? };
        return addresses
            .iter()
            .zip(&places)
            .map(|(at, (_, n))| unsafe { list(at.cast::<u8>(), *n as usize) })
            .collect();
    }
    let (mut buffer, mut bytes) = (std::ptr::null::<u8>(), 0);
    for pair in 0..2 {
        // SAFETY: the driver's contract: pairs of a number and a value, and 0 at the end.
        let key = unsafe { list(extra.wrapping_add(2 * pair), 1)? };
        if key[0] as usize == END {
            break;
        }
        // SAFETY: as above.
        let value = unsafe { list(extra.wrapping_add(2 * pair + 1), 1)? };
        match key[0] as usize {
            BUFFER => buffer = value[0].cast(),
            // SAFETY: the size is passed by address.
            BUFFER_BYTES => bytes = unsafe { list(value[0].cast::<usize>(), 1)? }[0],
            _ => return Err(Code::InvalidValue.into()),
        }
    }
    // SAFETY: the caller said that so many bytes may be read there.
    let all = unsafe { list(buffer, bytes)? };
    let part = |(at, n): &(u64, u64)| all.get(*at as usize..(*at + *n) as usize).map(<[u8]>::to_vec);
    places.iter().map(part).collect::<Option<_>>().ok_or_else(|| {
        Failure::new(Code::InvalidValue, format!("the buffer of parameters has {bytes} bytes, which are too few"))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuLaunchKernel(
    function: u64,
    x: c_uint,
    y: c_uint,
    z: c_uint,
    bx: c_uint,
    by: c_uint,
    bz: c_uint,
    dynamic: c_uint,
    stream: u64,
    params: *const *const c_void,
    extra: *const *const c_void,
) -> Answer {
    answer("cuLaunchKernel", || {
        check(stream)?;
        // SAFETY: the caller's addresses are passed on.
        let params = unsafe { parameters(function, params, extra)? };
        let (grid, block) = ([x, y, z], [bx, by, bz]);
        with(|state| state.launch(&Request { function, grid, block, dynamic, params, ..Request::default() }))
    })
}

/// Blocks of a function that a multiprocessor runs at the same time.
unsafe fn active_blocks(to: *mut c_int, function: u64, threads: c_int, dynamic: usize) -> Result<(), Failure> {
    let wrong = |_| Code::InvalidValue;
    let block = [u32::try_from(threads).map_err(wrong)?, 1, 1];
    let dynamic = u32::try_from(dynamic).map_err(wrong)?;
    let all = with(|state| state.max_active_clusters(&Request { function, block, dynamic, ..Request::default() }))?;
    // SAFETY: the driver's contract: a number may be written there.
    unsafe { put(to, all.div_ceil(MULTIPROCESSORS) as c_int) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
    to: *mut c_int,
    function: u64,
    threads: c_int,
    dynamic: usize,
) -> Answer {
    // SAFETY: as above.
    answer("cuOccupancyMaxActiveBlocksPerMultiprocessor", || unsafe { active_blocks(to, function, threads, dynamic) })
}

/// The flag is about caches.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    to: *mut c_int,
    function: u64,
    threads: c_int,
    dynamic: usize,
    _flags: c_uint,
) -> Answer {
    let call = "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags";
    // SAFETY: as above.
    answer(call, || unsafe { active_blocks(to, function, threads, dynamic) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuOccupancyMaxActiveClusters(to: *mut c_int, function: u64, config: *const Config) -> Answer {
    answer("cuOccupancyMaxActiveClusters", || {
        // SAFETY: the driver's contract: one configuration, with so many attributes.
        let (config, attributes) = unsafe { configuration(config)? };
        let (block, dynamic, cluster) = (config.block, config.dynamic, cluster(&attributes));
        let request = Request { function, block, dynamic, cluster, ..Request::default() };
        let all = with(|state| state.max_active_clusters(&request))?;
        // SAFETY: as above.
        unsafe { put(to, all as c_int) }
    })
}

/// A configuration, and its attributes.
unsafe fn configuration(config: *const Config) -> Result<(Config, Vec<Attribute>), Failure> {
    // SAFETY: the driver's contract: one configuration, with so many attributes.
    let config = unsafe { list(config, 1)? }[0];
    // SAFETY: as above.
    Ok((config, unsafe { list(config.attributes, config.count as usize)? }))
}

/// The value of an attribute.
fn value(attributes: &[Attribute], id: u32) -> Option<[u32; 16]> {
    attributes.iter().rev().find(|a| a.id == id).map(|a| a.value)
}

/// The blocks of a cluster, if the launch has clusters.
fn cluster(attributes: &[Attribute]) -> Option<[u32; 3]> {
    value(attributes, CLUSTER).map(|v| [v[0], v[1], v[2]]).filter(|c| *c != [1, 1, 1])
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuLaunchKernelEx(
    config: *const Config,
    function: u64,
    params: *const *const c_void,
    extra: *const *const c_void,
) -> Answer {
    answer("cuLaunchKernelEx", || {
        // SAFETY: as above.
        let (config, attributes) = unsafe { configuration(config)? };
        check(config.stream)?;
        if value(&attributes, COOPERATIVE).is_some_and(|v| v[0] != 0) {
            return Err(Failure::new(Code::NotSupported, "the simulator has no cooperative launches"));
        }
        let request = Request {
            function,
            grid: config.grid,
            block: config.block,
            dynamic: config.dynamic,
            cluster: cluster(&attributes),
            programmatic: value(&attributes, PROGRAMMATIC).is_some_and(|v| v[0] != 0),
            // SAFETY: the caller's addresses are passed on.
            params: unsafe { parameters(function, params, extra)? },
        };
        with(|state| state.launch(&request))
    })
}
