//! What a conversion makes of numbers beyond the range of its destination.

/// The other modifiers of a conversion to a narrow float (`cvt.frnd2{.relu}{.satfinite}`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Clamp {
    /// `.relu`: negative results and -0 become +0.
    pub relu: bool,
    /// `.satfinite`: beyond the largest finite number, infinity included, comes that number.
    pub satfinite: bool,
}
