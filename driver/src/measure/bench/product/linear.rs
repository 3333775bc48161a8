//! The stored value of a kernel as a linear combination.

use super::form::Coefficient;

/// `acc * accumulator + out * C + constant`.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Linear {
    pub(super) acc: Option<Coefficient>,
    pub(super) out: Option<Coefficient>,
    pub(super) constant: Option<Coefficient>,
}

impl Linear {
    pub(super) fn as_constant(&self) -> Option<&Coefficient> {
        if self.acc.is_none() && self.out.is_none() { self.constant.as_ref() } else { None }
    }

    pub(super) fn scaled(&self, c: &Coefficient) -> Linear {
        let scale = |part: &Option<Coefficient>| part.as_ref().map(|p| p.times(c));
        Linear { acc: scale(&self.acc), out: scale(&self.out), constant: scale(&self.constant) }
    }

    /// The sum, unless the same thing is on both sides.
    pub(super) fn plus(&self, other: &Linear) -> Option<Linear> {
        let one = |a: &Option<Coefficient>, b: &Option<Coefficient>| match (a, b) {
            (Some(_), Some(_)) => None,
            (a, b) => Some(a.clone().or_else(|| b.clone())),
        };
        Some(Linear {
            acc: one(&self.acc, &other.acc)?,
            out: one(&self.out, &other.out)?,
            constant: one(&self.constant, &other.constant)?,
        })
    }
}
