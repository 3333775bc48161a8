//! Tests without a GPU. `examples/cuda_smoke.rs` covers the rest on a machine with one.

use super::launch::{Arguments, Limits, check_arguments};
use super::*;
use pretty_assertions::assert_eq;

fn refusal(result: Result<(), CudaError>) -> String {
    match result {
        Ok(()) => "accepted".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn opening_a_device_that_cannot_be_there_is_an_error() {
    // With a driver: no such device. Without one: the libraries that were tried.
    for ordinal in [u32::MAX, 1 << 31, 100_000] {
        match Device::open(ordinal) {
            Err(error @ CudaError::NoLibrary { .. }) => assert!(error.to_string().contains("cuda"), "{error}"),
            Err(CudaError::NoDevice { ordinal: asked, .. }) => assert_eq!(asked, ordinal),
            Err(CudaError::Driver { call: "cuInit", .. }) => {}
            Err(error) => panic!("{error}"),
            Ok(_) => panic!("device {ordinal} exists"),
        }
    }
}

#[test]
fn messages_say_what_to_look_at() {
    let names = ["libcuda.so", "libcuda64.so", "libcuda.so.1", "libnvcuda.so"].map(str::to_owned);
    let missing = CudaError::NoLibrary { looked_for: names.to_vec() };
    assert_eq!(
        missing.to_string(),
        "no CUDA driver library: the loader found neither libcuda.so nor libcuda.so.1 (nor any of 2 other spellings)"
    );
    let jit = CudaError::Jit { code: 218, name: "CUDA_ERROR_INVALID_PTX".to_owned(), log: "line 3: bad".to_owned() };
    assert_eq!(jit.to_string(), "the driver refused the module: CUDA_ERROR_INVALID_PTX (218)\nline 3: bad");
    let jit = CudaError::Jit { code: 209, name: "CUDA_ERROR_NO_BINARY_FOR_GPU".to_owned(), log: String::new() };
    assert_eq!(jit.to_string(), "the driver refused the module: CUDA_ERROR_NO_BINARY_FOR_GPU (209)");
}

fn v100() -> Properties {
    Properties {
        name: "V100".to_owned(),
        compute_capability: (7, 0),
        driver_version: (12, 9),
        sm_count: 80,
        clock_khz: 1_530_000,
        total_memory_bytes: 16 << 30,
        l2_bytes: 6 << 20,
        memory_clock_khz: 877_000,
        memory_bus_bits: 4096,
        max_shared_bytes_optin: 98_304,
        max_threads_per_block: 1024,
        max_block: [1024, 1024, 64],
        max_grid: [i32::MAX as u32, 65_535, 65_535],
    }
}

#[test]
fn launches_beyond_a_limit_are_refused_with_the_limit() {
    let device = v100();
    let function = FunctionAttributes {
        registers: 168,
        local_bytes: 0,
        static_shared_bytes: 1024,
        const_bytes: 0,
        max_threads_per_block: 384,
    };
    let limits = Limits { device: &device, function, max_dynamic_smem: 65_536 };
    let rows = [
        ([1, 1, 1], [1, 1, 1], 0, "accepted"),
        ([i32::MAX as u32, 65_535, 65_535], [128, 3, 1], 65_536, "accepted"),
        ([0, 1, 1], [1, 1, 1], 0, "grid extent x is 0, expected 1 to 2147483647"),
        ([1, 65_536, 1], [1, 1, 1], 0, "grid extent y is 65536, expected 1 to 65535"),
        ([1, 1, u32::MAX], [1, 1, 1], 0, "grid extent z is 4294967295, expected 1 to 65535"),
        ([1, 1, 1], [0, 1, 1], 0, "block extent x is 0, expected 1 to 1024"),
        ([1, 1, 1], [1, 1, 65], 0, "block extent z is 65, expected 1 to 64"),
        ([1, 1, 1], [1024, 1024, 64], 0, "a block of 67108864 threads is over the device's limit of 1024"),
        (
            [1, 1, 1],
            [385, 1, 1],
            0,
            "a block of 385 threads is over the function's limit of 384 (168 registers per thread)",
        ),
        (
            [1, 1, 1],
            [1, 1, 1],
            98_304,
            "99328 bytes of shared memory (1024 static, 98304 dynamic) are over the device's limit of 98304 per block",
        ),
        (
            [1, 1, 1],
            [1, 1, 1],
            u32::MAX,
            "4294968319 bytes of shared memory (1024 static, 4294967295 dynamic) are over the device's limit of 98304 \
             per block",
        ),
        (
            [1, 1, 1],
            [1, 1, 1],
            65_537,
            "65537 bytes of dynamic shared memory are over the 65536 the function is set to allow; raise them with \
             `set_max_dynamic_smem`",
        ),
    ];
    for (grid, block, dynamic_smem, expected) in rows {
        assert_eq!(refusal(limits.check(grid, block, dynamic_smem)), expected);
    }
}

#[test]
fn arguments_must_be_the_parameters_in_number_and_size() {
    let args = [LaunchArg::Ptr(1), LaunchArg::U32(2), LaunchArg::F16(3)];
    let rows: [(&[usize], &str); 4] = [
        (&[8, 4, 2], "accepted"),
        (&[8, 4], "`k` takes 2 parameters, found 3 arguments"),
        (&[8, 8, 2], "parameter 1 of `k` has 8 bytes, found U32(2) of 4"),
        (&[8, 4, 1], "parameter 2 of `k` has 1 bytes, found F16(3) of 2"),
    ];
    for (param_bytes, expected) in rows {
        assert_eq!(refusal(check_arguments("k", param_bytes, &args)), expected);
    }
}

#[test]
fn arguments_lie_behind_their_addresses() {
    let args = [
        (LaunchArg::Ptr(0x0102_0304_0506_0708), 0x0102_0304_0506_0708u64.to_ne_bytes().to_vec()),
        (LaunchArg::U8(0xfe), vec![0xfe]),
        (LaunchArg::I8(-2), vec![0xfe]),
        (LaunchArg::U16(0x1234), 0x1234u16.to_ne_bytes().to_vec()),
        (LaunchArg::F16(0x3c00), 0x3c00u16.to_ne_bytes().to_vec()),
        (LaunchArg::Bf16(0x3f80), 0x3f80u16.to_ne_bytes().to_vec()),
        (LaunchArg::U32(7), 7u32.to_ne_bytes().to_vec()),
        (LaunchArg::I32(-7), (-7i32).to_ne_bytes().to_vec()),
        (LaunchArg::F32(1.5), 1.5f32.to_ne_bytes().to_vec()),
        (LaunchArg::U64(9), 9u64.to_ne_bytes().to_vec()),
        (LaunchArg::I64(-9), (-9i64).to_ne_bytes().to_vec()),
        (LaunchArg::F64(2.5), 2.5f64.to_ne_bytes().to_vec()),
    ];
    for (arg, bytes) in &args {
        assert_eq!(arg.bytes(), bytes.len(), "{arg:?}");
        assert_eq!(arg.word()[..bytes.len()], bytes[..], "{arg:?}");
    }
    let list: Vec<LaunchArg> = args.iter().map(|(arg, _)| *arg).collect();
    for sizes_known in [true, false] {
        let mut arguments = Arguments::new(&list, &[], sizes_known);
        let addresses = arguments.addresses();
        assert!(if sizes_known { addresses.len() == list.len() } else { addresses.len() >= 32_764 });
        for ((arg, bytes), address) in args.iter().zip(&addresses) {
            // SAFETY: the word after each address belongs to `arguments`, which is alive and not borrowed.
            let word = unsafe { address.cast::<[u8; 8]>().read() };
            assert_eq!(word[..bytes.len()], bytes[..], "{arg:?}");
        }
        if let Some(beyond) = addresses.get(list.len()) {
            // SAFETY: this many bytes are after the address of an argument that was not given.
            let rest = unsafe { beyond.cast::<[u8; 32_764]>().read() };
            assert!(rest.iter().all(|byte| *byte == 0));
        }
    }
    assert!(Arguments::new(&[], &[], true).addresses().is_empty());
    assert!(Arguments::new(&[], &[], false).addresses().len() >= 32_764);
}

#[test]
fn ranges_outside_a_buffer_are_refused() {
    for (offset, len, fits) in [
        (0, 0, true),
        (0, 10, true),
        (10, 0, true),
        (4, 6, true),
        (4, 7, false),
        (11, 0, false),
        (usize::MAX, 2, false),
    ] {
        assert_eq!(memory::check_range(offset, len, 10).is_ok(), fits, "{offset} {len}");
    }
}

#[test]
fn text_that_the_driver_would_not_read_as_ptx_is_refused() {
    assert!(image::ptx(".version 6.0\r\n\t.target sm_70 // µ\n").is_ok());
    for text in ["", " \n", "\u{7f}ELF\u{2}\u{1}", ".version 6.0\0.target", "\u{1b}[0m"] {
        assert!(matches!(image::ptx(text), Err(CudaError::Refused { .. })), "{text:?}");
    }
}

/// The smallest file that passes: a header, one section header and one byte of contents.
fn cubin() -> Vec<u8> {
    let mut bytes = vec![0u8; 64 + 64 + 1];
    bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
    bytes[18..20].copy_from_slice(&190u16.to_le_bytes());
    bytes[40..48].copy_from_slice(&64u64.to_le_bytes()); // section table
    bytes[58..60].copy_from_slice(&64u16.to_le_bytes());
    bytes[60..62].copy_from_slice(&1u16.to_le_bytes());
    bytes[64 + 24..64 + 32].copy_from_slice(&128u64.to_le_bytes()); // contents
    bytes[64 + 32..64 + 40].copy_from_slice(&1u64.to_le_bytes());
    bytes
}

#[test]
fn a_cubin_that_announces_more_than_it_has_is_refused() {
    let whole = cubin();
    assert!(image::cubin(&whole).is_ok());
    for end in 0..whole.len() {
        assert!(matches!(image::cubin(&whole[..end]), Err(CudaError::Refused { .. })), "{end}");
    }
    // Every header byte set to the extremes: an answer, never a panic; offsets and sizes are bounded.
    for at in 0..128 {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] = value;
            let accepted = image::cubin(&bytes).is_ok();
            let in_offset_or_size = (40..48).contains(&at) || (88..104).contains(&at);
            if in_offset_or_size && value >= 0x80 && bytes != whole {
                assert!(!accepted, "byte {at} = {value:#x}");
            }
        }
    }
}
