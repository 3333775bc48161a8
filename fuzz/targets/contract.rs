//! `tilec_tests::fuzz::targets::contract` for libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tilec_tests::fuzz::targets::contract(data));
