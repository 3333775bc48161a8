//! The reader of bundles for C: one header for all bundles.

use super::file::{CASTS, CASTS_END, LAUNCH, MAPS, RUNTIME};
use super::text::comment;
use std::fmt::Write as _;
use tilec_launch::bind::MAX_GRID;

/// C source that reads a bundle and launches by its launch tables.
const BUNDLE: &str = include_str!("bundle.h");

/// The header `tilec_bundle.h`. What checks and launches is that of the headers of kernels.
pub fn bundle_reader() -> String {
    let mut out = comment(&format!(
        "Launches kernels out of bundles, made by tilec {}. C99 and C++11; needs cuda.h, and -lcuda to link.",
        env!("CARGO_PKG_VERSION")
    ));
    let _ = write!(out, "\n#ifndef TILEC_BUNDLE_H\n#define TILEC_BUNDLE_H 1\n\n{CASTS}\n#include <cuda.h>\n");
    for name in ["stddef", "stdint", "stdio", "stdlib", "string"] {
        let _ = writeln!(out, "#include <{name}.h>");
    }
    let _ = writeln!(out, "\n{RUNTIME}");
    let _ = writeln!(out, "#if CUDA_VERSION >= 11080\n{LAUNCH}#endif\n");
    let _ = writeln!(out, "#if CUDA_VERSION >= 12000\n{MAPS}#endif\n");
    for (axis, most) in ["X", "Y", "Z"].iter().zip(MAX_GRID) {
        let _ = writeln!(out, "#define TILEC_GRID_{axis} {most}");
    }
    let _ = write!(out, "\n{BUNDLE}\n{CASTS_END}\n#endif\n");
    out
}
