//! Where something is in a tile: a run of elements along each dimension.

use std::fmt;

/// Elements along a dimension, from one to before another.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Run {
    pub(super) from: u64,
    pub(super) to: u64,
}

/// A run along each dimension.
pub(super) type Spot = Vec<Run>;

impl Run {
    pub(super) fn one(at: u64) -> Run {
        Run { from: at, to: at + 1 }
    }

    pub(super) fn all(extent: u64) -> Run {
        Run { from: 0, to: extent }
    }

    pub(super) fn only(self) -> Option<u64> {
        (self.from + 1 == self.to).then_some(self.from)
    }

    pub(super) fn is_empty(self) -> bool {
        self.from >= self.to
    }

    pub(super) fn meet(self, other: Run) -> Run {
        Run { from: self.from.max(other.from), to: self.to.min(other.to) }
    }

    pub(super) fn contains(self, other: Run) -> bool {
        self.from <= other.from && other.to <= self.to
    }

    /// As text, of a dimension of this extent: `3`, `..`, `2..5`.
    pub(super) fn text(self, extent: u64) -> String {
        match self.only() {
            Some(at) => at.to_string(),
            None if self.from == 0 && self.to >= extent => "..".to_owned(),
            None if self.to >= extent => format!("{}..", self.from),
            None => format!("{}..{}", self.from, self.to),
        }
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(u64::MAX))
    }
}

/// One element.
pub(super) fn at(coords: &[u64]) -> Spot {
    coords.iter().map(|&n| Run::one(n)).collect()
}

/// All elements of a tile of this shape.
pub(super) fn whole(shape: &[u64]) -> Spot {
    shape.iter().map(|&n| Run::all(n)).collect()
}

pub(super) fn contains(spot: &[Run], other: &[Run]) -> bool {
    spot.len() == other.len() && spot.iter().zip(other).all(|(a, b)| a.contains(*b))
}

/// The first element.
pub(super) fn first(spot: &[Run]) -> Vec<u64> {
    spot.iter().map(|run| run.from).collect()
}

pub(super) fn is_one(spot: &[Run]) -> bool {
    spot.iter().all(|run| run.only().is_some())
}

/// `m[3, ..]`.
pub(super) fn in_words(name: &str, spot: &[Run], shape: &[u64]) -> String {
    let extent = |d: usize| shape.get(d).copied().unwrap_or(u64::MAX);
    let dims: Vec<String> = spot.iter().enumerate().map(|(d, run)| run.text(extent(d))).collect();
    if dims.is_empty() { name.to_owned() } else { format!("{name}[{}]", dims.join(", ")) }
}

/// Where an element of an operand is wanted: operands align at their last dimensions, and repeat where they have one element and the others more.
pub(super) fn spread(spot: &[Run], own: Option<&[u64]>, shape: Option<&[u64]>) -> Spot {
    let Some(shape) = shape else { return spot.to_vec() };
    let front = shape.len().saturating_sub(spot.len());
    let mut out: Spot = shape[..front].iter().map(|&n| Run::all(n)).collect();
    for (d, run) in spot.iter().enumerate() {
        let wide = shape.get(front + d).copied().unwrap_or(1);
        let one = own.and_then(|own| own.get(d)) == Some(&1);
        out.push(if one && wide > 1 { Run::all(wide) } else { *run });
    }
    out
}

/// The elements of an operand that are combined with those at `spot`.
pub(super) fn beside(spot: &[Run], own: &[u64]) -> Spot {
    let behind = spot.len().saturating_sub(own.len());
    let run = |(run, &n): (&Run, &u64)| if n == 1 { Run::all(1) } else { *run };
    spot[behind..].iter().zip(own).map(run).collect()
}

/// The elements with these numbers in row-major order, in another shape.
pub(super) fn reshaped(spot: &[Run], from: &[u64], to: &[u64]) -> Spot {
    if !is_one(spot) || from.len() != spot.len() {
        return whole(to);
    }
    let mut linear = spot.iter().zip(from).fold(0, |all, (run, n)| all * n + run.from);
    let mut out = Vec::new();
    for &n in to.iter().rev() {
        out.push(Run::one(linear % n.max(1)));
        linear /= n.max(1);
    }
    out.reverse();
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spots_read_as_windows() {
        let spot = vec![Run::one(3), Run { from: 5, to: 256 }, Run { from: 0, to: 4 }, Run { from: 1, to: 4 }];
        assert_eq!(in_words("x", &spot, &[8, 256, 4, 16]), "x[3, 5.., .., 1..4]");
        assert_eq!(in_words("n", &[], &[]), "n");
    }

    #[test]
    fn operands_align_at_their_last_dimensions() {
        let row = [Run::one(3), Run::one(0)];
        assert_eq!(spread(&row, Some(&[8, 1]), Some(&[8, 64])), [Run::one(3), Run::all(64)]);
        assert_eq!(spread(&[Run::one(5)], Some(&[64]), Some(&[8, 64])), [Run::all(8), Run::one(5)]);
        assert_eq!(beside(&[Run::one(3), Run::one(9)], &[8, 1]), [Run::one(3), Run::all(1)]);
        assert_eq!(beside(&[Run::one(3), Run::one(9)], &[64]), [Run::one(9)]);
        assert_eq!(reshaped(&at(&[3, 5]), &[8, 16], &[2, 64]), at(&[0, 53]));
    }
}
