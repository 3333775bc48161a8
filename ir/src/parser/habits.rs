//! Functions of NumPy and PyTorch that the language writes in another way.

/// What is written instead.
pub(super) fn instead(function: &str) -> Option<&'static str> {
    Some(match function {
        "mean" => "`sum(x, 1) / N`: an extent is a number of expressions",
        "nanmax" => "`maximum(x, 1)`",
        "amax" => "`maximum(x, 1)`, in which NaN loses",
        "nanmin" => "`minimum(x, 1)`",
        "amin" => "`minimum(x, 1)`, in which NaN loses",
        "prod" => "`product(x, 1)`",
        "sigmoid" => "`1.0 / (1.0 + exp(-x))`",
        "log1p" => "`log(1.0 + x)`, which rounds small `x` away",
        "expm1" => "`exp(x) - 1.0`, which rounds small `x` away",
        "relu" => "`max(x, 0.0)`",
        "clip" | "clamp" => "`min(max(x, least), most)`",
        "square" => "`x * x`",
        "power" => "`pow(x, y)`",
        "matmul" | "dot" => "`mma(a, b, c)`, which adds a product of tiles to `c`",
        "astype" => "`cast<f16>(x)`",
        _ => return None,
    })
}
