//! Compiles `kernels/*.tile` for the generations that multiply bf16.

use tilec_build::{Build, Settings};

fn main() {
    let heads = || Settings::new().define("D", "128");
    let rows = || Settings::new().variant("BN=1024/2048/4096/8192");
    Build::new("../candle/kernels")
        .targets(&["sm_80", "sm_90a"])
        .file("attention", heads())
        .file("attention_backward", heads())
        .file("rms_norm", rows())
        .file("rms_norm_backward", rows())
        .compile();
}
