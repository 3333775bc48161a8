//! Whether two tensors share memory.

use tilec_core::elem::Elem;

/// The memory of a tensor.
#[derive(Copy, Clone, Debug)]
pub struct Place<'a> {
    /// The address of its first element, bytes.
    pub address: u64,
    /// The type of its elements.
    pub elem: Elem,
    /// Extents of its dimensions.
    pub shape: &'a [u64],
    /// Their strides, in elements.
    pub strides: &'a [u64],
}

impl Place<'_> {
    /// Elements from the first to the last, over the dimensions that `takes` accepts; `None`: there are none.
    fn reach(&self, takes: impl Fn(usize) -> bool) -> Option<u64> {
        let mut last = 0u64;
        for (dim, (&n, &stride)) in self.shape.iter().zip(self.strides).enumerate() {
            let steps = n.checked_sub(1)?;
            last = last.saturating_add(if takes(dim) { steps.saturating_mul(stride) } else { 0 });
        }
        Some(last.saturating_add(1))
    }

    /// Bytes from the first element to the last.
    fn bytes(&self) -> Option<u64> {
        self.reach(|_| true).map(|n| self.elem.bytes_of(n))
    }

    /// The largest stride, and the span of the other dimensions, both in bytes.
    fn rows(&self) -> Option<(u64, u64)> {
        let dims = (0..self.shape.len()).filter(|&dim| self.shape[dim] > 1);
        let outer = dims.max_by_key(|&dim| self.strides[dim])?;
        let bits = self.strides[outer].checked_mul(u64::from(self.elem.bits()))?;
        let step = (bits > 0 && bits % 8 == 0).then_some(bits / 8)?;
        Some((step, self.elem.bytes_of(self.reach(|dim| dim != outer)?)))
    }
}

/// Whether two tensors may share a byte. Windows side by side in the rows of one larger tensor do not; other tensors do
/// if their spans from first to last element overlap.
pub fn may_overlap(one: &Place<'_>, other: &Place<'_>) -> bool {
    let (low, high) = if one.address <= other.address { (one, other) } else { (other, one) };
    // Nothing is shared with a tensor without elements.
    let (Some(span), Some(_)) = (low.bytes(), high.bytes()) else { return false };
    let gap = high.address - low.address;
    if gap >= span {
        return false;
    }
    match (low.rows(), high.rows()) {
        (Some((step, own)), Some((same, its))) if step == same => {
            let begin = gap % step;
            begin < own || begin.saturating_add(its) > step
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at<'a>(address: u64, shape: &'a [u64], strides: &'a [u64]) -> Place<'a> {
        Place { address, elem: Elem::F16, shape, strides }
    }

    /// Bytes that both have, one by one.
    fn shared(one: &Place<'_>, other: &Place<'_>) -> bool {
        let all = |p: &Place<'_>| {
            let mut bytes = std::collections::BTreeSet::new();
            for i in 0..p.shape[0] {
                for j in 0..p.shape[1] {
                    let first = p.address + 2 * (i * p.strides[0] + j * p.strides[1]);
                    bytes.extend([first, first + 1]);
                }
            }
            bytes
        };
        !all(one).is_disjoint(&all(other))
    }

    #[test]
    fn nothing_that_is_shared_is_missed() {
        let layouts: [(&[u64], &[u64]); 7] = [
            (&[4, 8], &[16, 1]),
            (&[4, 8], &[8, 1]),
            (&[8, 4], &[1, 16]),
            (&[3, 5], &[0, 1]),
            (&[4, 1], &[16, 1]),
            (&[1, 8], &[16, 1]),
            (&[0, 8], &[16, 1]),
        ];
        for (a, b) in layouts.iter().flat_map(|a| layouts.iter().map(move |b| (a, b))) {
            for gap in (0..160).step_by(2) {
                let (one, other) = (at(1000, a.0, a.1), at(1000 + gap, b.0, b.1));
                assert!(may_overlap(&one, &other) || !shared(&one, &other), "{one:?} {other:?}");
                assert_eq!(may_overlap(&one, &other), may_overlap(&other, &one));
            }
        }
    }

    #[test]
    fn halves_of_rows_are_apart() {
        let (shape, strides) = (&[4, 8][..], &[16, 1][..]);
        assert!(!may_overlap(&at(0, shape, strides), &at(16, shape, strides)));
        assert!(may_overlap(&at(0, shape, strides), &at(14, shape, strides)), "a column of both");
        assert!(may_overlap(&at(0, shape, strides), &at(18, shape, strides)), "into the next row");
        assert!(!may_overlap(&at(0, shape, strides), &at(0, &[0, 8], strides)), "no elements");
        assert!(may_overlap(&at(0, shape, strides), &at(0, &[4, 8], &[0, 0])), "a broadcast inside");
    }
}
