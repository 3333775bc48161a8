//! Remedies for rejected launches, in words that apply to Rust, Python and C.

/// For a tensor whose elements have another order than its type.
pub const OTHER_ORDER: &str = "a kernel takes another order if the type says `col`, has a `layout` parameter, or names all strides (`strides (a, b)`)";

/// Of a size of 0.
pub fn takes_zero(size: &str) -> String {
    format!("a kernel with `where {size} >= 0` takes it")
}

/// The message if no variant fits: the nearest one, and why it is not launched.
pub fn no_variant(nearest: &str, why: &str) -> String {
    format!("no variant fits; `{nearest}` came nearest: {why}")
}
