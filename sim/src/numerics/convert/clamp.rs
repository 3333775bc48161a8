//! Results of conversions beyond the range of the destination.

/// The other modifiers of a conversion to a narrow float (`cvt.frnd2{.relu}{.satfinite}`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Clamp {
    /// `.relu`: negative results and -0 become +0.
    pub relu: bool,
    /// `.satfinite`: numbers beyond the largest finite number, including infinity, become that number.
    pub satfinite: bool,
}
