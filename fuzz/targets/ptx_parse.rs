//! `tilec_tests::fuzz::targets::ptx_parse` for libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tilec_tests::fuzz::targets::ptx_parse(data));
