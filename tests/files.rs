//! File tests.
fn main() {}
