//! Compiles `kernels/*.tile`.

fn main() {
    tilec_build::Build::new("kernels").targets(&["sm_70", "sm_80", "sm_90a"]).compile();
}
