//! The text form of versions.

/// A PTX version as `.version` writes it.
pub fn decimal_version((major, minor): (u8, u8)) -> String {
    format!("{major}.{minor}")
}
