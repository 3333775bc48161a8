//! The memory ranges of a tensor's elements; bytes outside all ranges are gaps.
//!
//! Sorted by stride, dimensions that step no further than the span of all below them form one range; every index of the
//! other dimensions has its own range. The work is therefore proportional to the rows, not to the elements, and no map
//! of all bytes is needed.

use crate::bind::TensorPlan;
use std::ops::Range;

/// The ranges of a part of a tensor, in elements from the part's element 0 on. Where strides interleave they need not rise, and
/// where elements share addresses ranges may overlap.
#[derive(Clone, Debug)]
pub struct Runs {
    /// Elements of each.
    len: u64,
    /// Extents and strides of the dimensions that step from one to the next, the largest stride first.
    steps: Vec<(u64, u64)>,
    index: Vec<u64>,
    done: bool,
}

impl TensorPlan {
    /// The ranges that hold the elements of a part: all parts are alike.
    pub fn runs(&self) -> Runs {
        let all = self.shape.iter().copied().zip(self.strides.iter().copied()).skip(usize::from(self.pointers));
        let mut steps: Vec<(u64, u64)> = all.filter(|&(extent, stride)| extent > 1 && stride > 0).collect();
        steps.sort_unstable_by_key(|&(extent, stride)| (std::cmp::Reverse(stride), extent));
        let mut len = 1u64;
        while let Some((extent, stride)) = steps.pop_if(|(_, stride)| *stride <= len) {
            len = len.saturating_add(stride.saturating_mul(extent - 1));
        }
        Runs { len, index: vec![0; steps.len()], steps, done: self.count() == 0 }
    }
}

impl Runs {
    /// Whether there may be something between the ranges.
    pub fn leave_gaps(&self) -> bool {
        !self.steps.is_empty()
    }

    /// Number of elements of all ranges; an element in several ranges counts for each.
    pub fn elements(&self) -> u64 {
        self.steps.iter().fold(self.len, |n, (extent, _)| n.saturating_mul(*extent))
    }
}

impl Iterator for Runs {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        if self.done {
            return None;
        }
        let first: u64 = self.index.iter().zip(&self.steps).map(|(i, (_, stride))| i * stride).sum();
        let turned = self.index.iter_mut().zip(&self.steps).rev().find_map(|(i, (extent, _))| {
            *i = (*i + 1) % extent;
            (*i != 0).then_some(())
        });
        self.done = turned.is_none();
        let within = |x: u64| usize::try_from(x).expect("the tensor is in memory");
        Some(within(first)..within(first + self.len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Access;
    use tilec_core::elem::Elem;

    fn plan(shape: &[u64], strides: &[u64]) -> TensorPlan {
        let reach = |(n, s): (&u64, &u64)| (n - 1) * s;
        TensorPlan {
            name: "A".to_owned(),
            elem: Elem::F16,
            access: Access::Read,
            shape: shape.to_vec(),
            strides: strides.to_vec(),
            modes: vec![1; shape.len()],
            span: shape.iter().zip(strides).map(reach).sum::<u64>() + 1,
            pointers: false,
            reads_gaps: false,
        }
    }

    #[test]
    fn runs_hold_the_elements_and_nothing_else() {
        let cases: [(&[u64], &[u64], usize); 12] = [
            (&[3, 4], &[4, 1], 1),
            (&[3, 4], &[1, 3], 1),
            (&[3, 4], &[6, 1], 3),
            (&[3, 4], &[1, 5], 4),
            (&[3, 4], &[0, 1], 1),
            (&[3, 4], &[0, 2], 4),
            (&[1, 1], &[7, 9], 1),
            // Windows that overlap, with and without room between their rows.
            (&[2, 3, 3], &[5, 1, 1], 1),
            (&[2, 3, 3], &[9, 1, 1], 2),
            // Strides that interleave.
            (&[3, 3], &[5, 3], 9),
            (&[2, 2, 3, 2, 2], &[100, 40, 9, 4, 1], 24),
            (&[2, 3, 4], &[20, 4, 1], 2),
        ];
        for (shape, strides, count) in cases {
            let plan = plan(shape, strides);
            let mut inside = vec![false; plan.span as usize];
            plan.for_each(|_, offset| inside[offset] = true);
            let mut held = vec![false; inside.len()];
            let runs: Vec<_> = plan.runs().collect();
            runs.iter().for_each(|run| held[run.clone()].fill(true));
            assert_eq!((held, runs.len()), (inside, count), "{shape:?} {strides:?}");
            assert_eq!(plan.runs().leave_gaps(), count > 1);
            assert_eq!(plan.runs().elements(), runs.iter().map(|run| run.len() as u64).sum::<u64>());
        }
    }

    #[test]
    fn parts_of_an_array_of_pointers_are_alike() {
        let part = plan(&[3, 4], &[6, 1]);
        let (shape, strides, modes) = (vec![5, 3, 4], vec![16, 6, 1], vec![1; 3]);
        let array = TensorPlan { shape, strides, modes, span: 80, pointers: true, ..part.clone() };
        assert_eq!(array.runs().collect::<Vec<_>>(), part.runs().collect::<Vec<_>>());
    }
}
