//! `tilec_tests::fuzz::targets::compile` for libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tilec_tests::fuzz::targets::compile(data));
