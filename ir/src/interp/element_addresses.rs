//! Addresses of the elements along a dimension of a tensor.

/// The strides of a dimension.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum DimSteps {
    /// Everywhere the same.
    One(i64),
    /// Extents and strides of the modes, outermost first.
    Modes(Vec<(i64, i64)>),
}

impl DimSteps {
    /// The address of an index, which is not below 0.
    pub(super) fn offset(&self, index: i64) -> i128 {
        match self {
            DimSteps::One(stride) => i128::from(index) * i128::from(*stride),
            DimSteps::Modes(modes) => {
                let mut left = index;
                let mut offset = 0;
                for (i, &(extent, stride)) in modes.iter().enumerate().rev() {
                    // The outermost digit is what is left.
                    let digit = if i == 0 { left } else { left % extent.max(1) };
                    left /= extent.max(1);
                    offset += i128::from(digit) * i128::from(stride);
                }
                offset
            }
        }
    }

    /// The address of the last of `extent` indices.
    pub(super) fn reach(&self, extent: i64) -> i64 {
        let last = |extent: i64, stride: i64| (extent - 1).saturating_mul(stride);
        match self {
            DimSteps::One(stride) => last(extent, *stride),
            DimSteps::Modes(modes) => modes.iter().fold(0, |sum: i64, &(n, s)| sum.saturating_add(last(n, s))),
        }
    }

    /// Whether all strides are multiples of `n`. For the contiguous dimension, `contiguous` is its extent: then the
    /// extents of its innermost modes, and the strides of the others, must be multiples.
    pub(super) fn in_groups(&self, n: i64, contiguous: Option<i64>) -> bool {
        match (self, contiguous) {
            (DimSteps::One(stride), _) => contiguous.unwrap_or(*stride) % n == 0,
            (DimSteps::Modes(modes), None) => modes.iter().all(|&(_, stride)| stride % n == 0),
            (DimSteps::Modes(modes), Some(_)) => {
                let (mut run, mut ended) = (1i64, false);
                for &(extent, stride) in modes.iter().rev().filter(|(extent, _)| *extent != 1) {
                    ended |= stride != run;
                    if !ended {
                        run = run.saturating_mul(extent);
                    } else if stride % n != 0 {
                        return false;
                    }
                }
                run % n == 0
            }
        }
    }

    /// No extent or stride is below 0.
    pub(super) fn is_valid(&self) -> bool {
        match self {
            DimSteps::One(stride) => *stride >= 0,
            DimSteps::Modes(modes) => modes.iter().all(|&(extent, stride)| extent >= 1 && stride >= 0),
        }
    }
}
