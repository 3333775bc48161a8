//! The lattice of the analysis: how a value depends on tiles, and how operators combine kinds.

use crate::analysis::past_end::Pad;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::ops::ReduceOp;

/// The kind of a value in one iteration.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(super) enum Kind {
    Zero,
    /// Equal in every iteration.
    Fixed,
    /// The start of the tile plus an invariant number; `negative`: the negated sum.
    Begin {
        negative: bool,
    },
    /// A number for each group of positions, for the group that contains the tile: `scale[k / G]`.
    Group,
    /// The positions of the tile's elements along a dimension, plus an invariant number.
    Number {
        axis: u32,
        negative: bool,
    },
    /// An element for each position, along the dimensions in this mask.
    Each {
        axes: u32,
        pad: Pad,
    },
    /// The tile's part of a sum or extreme.
    Part(ReduceOp),
    /// The value of a variable at the end of the previous iteration.
    Old(Value),
    /// The old value combined with parts of this tile; for an extreme, where it was computed last, if that is one
    /// place.
    Grown(Value, ReduceOp, Option<Last>),
    /// The old value, each element combined with the tile's element at its place along a dimension (`spread`).
    Spread {
        of: Value,
        op: ReduceOp,
        axis: u32,
    },
    /// An extreme, with its initial value replaced by another number; only for exponents.
    Safe(Value, Option<Last>),
    /// A sum of elements and extremes, as the argument of an exponential (`scaled`).
    Exponent(u32),
    /// The quotient of exponentials of an extreme's old and new value, by which a sum is rescaled when the extreme has
    /// grown.
    Factor {
        extreme: Value,
        up: Option<Last>,
        down: Option<Last>,
        by: u32,
    },
    /// Exponentials of the tile's elements relative to the extreme, with their scale. Without dimensions: a part of
    /// their sum.
    Share {
        axes: u32,
        pad: Pad,
        scale: Scale,
    },
    /// The old value of a variable times the factor, plus shares of this tile.
    Scaled(Value, Scale),
    /// A test whether an extreme still has its initial value, which it has if the condition equals `untouched`.
    Guard {
        extreme: Value,
        last: Option<Last>,
        untouched: bool,
    },
    /// Any other value; `carried`: it depends on earlier iterations.
    Other {
        carried: bool,
    },
}

/// Where an extreme was computed.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Last {
    /// By this expression.
    Computed(Expr),
    /// It was computed inside or before this statement, or left unchanged.
    Joined(Stmt),
}

/// The scale of exponentials: the extreme to which they are relative, with the factors `by`; `negative`: multiplied
/// instead of divided.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Scale {
    pub(super) extreme: Value,
    pub(super) last: Last,
    pub(super) by: u32,
    pub(super) negative: bool,
}

impl Kind {
    /// Whether it depends on an earlier iteration.
    pub(super) fn is_carried(self) -> bool {
        match self {
            Kind::Old(_) | Kind::Grown(..) | Kind::Scaled(..) | Kind::Exponent(_) | Kind::Factor { .. } => true,
            Kind::Safe(..) | Kind::Share { .. } | Kind::Guard { .. } | Kind::Spread { .. } => true,
            Kind::Other { carried } => carried,
            _ => false,
        }
    }

    pub(super) fn is_fixed(self) -> bool {
        matches!(self, Kind::Zero | Kind::Fixed)
    }

    pub(super) fn pad(self) -> Pad {
        match self {
            Kind::Each { pad, .. } | Kind::Share { pad, .. } => pad,
            Kind::Zero => Pad::literal(0.0),
            Kind::Fixed => Pad::FIXED,
            _ => Pad::UNKNOWN,
        }
    }

    /// The join of two kinds, selected by an invariant condition.
    pub(super) fn join(self, other: Kind) -> Kind {
        match (self, other) {
            (a, b) if a == b => a,
            // Sums of exponentials are joined together with their extreme (`join`).
            (Kind::Old(v), Kind::Grown(w, op, _)) | (Kind::Grown(w, op, _), Kind::Old(v)) if v == w => {
                Kind::Grown(w, op, None)
            }
            (Kind::Grown(v, a, _), Kind::Grown(w, b, _)) if v == w && a == b => Kind::Grown(v, a, None),
            (Kind::Old(v), kind @ Kind::Spread { of, .. }) | (kind @ Kind::Spread { of, .. }, Kind::Old(v))
                if v == of =>
            {
                kind
            }
            (Kind::Zero, part @ Kind::Part(ReduceOp::Sum)) | (part @ Kind::Part(ReduceOp::Sum), Kind::Zero) => part,
            (a, b) if a.is_fixed() && b.is_fixed() => Kind::Fixed,
            (a, b) => elementwise(&[a, b], a.pad().join(b.pad())),
        }
    }

    /// The kind of the transposed matrix.
    pub(super) fn transposed(self) -> Kind {
        match self {
            Kind::Each { axes, pad } => Kind::Each { axes: (axes & 1) << 1 | axes >> 1 & 1, pad },
            Kind::Share { axes, pad, scale } => Kind::Share { axes: (axes & 1) << 1 | axes >> 1 & 1, pad, scale },
            Kind::Number { axis, negative } => Kind::Number { axis: 1 - axis.min(1), negative },
            Kind::Zero | Kind::Fixed | Kind::Group | Kind::Part(_) => self,
            _ => mixed(&[self]),
        }
    }
}

/// An unknown value that depends on these.
pub(super) fn mixed(kinds: &[Kind]) -> Kind {
    Kind::Other { carried: kinds.iter().any(|kind| kind.is_carried()) }
}

/// An elementwise function, which is `pad` past the end.
pub(super) fn elementwise(kinds: &[Kind], pad: Pad) -> Kind {
    let mut all = None;
    for &kind in kinds {
        match kind {
            Kind::Zero | Kind::Fixed | Kind::Group => {}
            Kind::Each { axes, .. } if all.is_none_or(|all| all == axes) => all = Some(axes),
            _ => return mixed(kinds),
        }
    }
    let alone = if kinds.contains(&Kind::Group) { Kind::Group } else { Kind::Fixed };
    all.map_or(alone, |axes| Kind::Each { axes, pad })
}

pub(super) fn negated(a: Kind) -> Kind {
    let pad = a.pad().negated();
    match a {
        Kind::Zero | Kind::Fixed | Kind::Group | Kind::Part(ReduceOp::Sum) => a,
        Kind::Part(ReduceOp::Maximum) => Kind::Part(ReduceOp::Minimum),
        Kind::Part(ReduceOp::Minimum) => Kind::Part(ReduceOp::Maximum),
        Kind::Begin { negative } => Kind::Begin { negative: !negative },
        Kind::Number { axis, negative } => Kind::Number { axis, negative: !negative },
        Kind::Share { axes, scale, .. } => Kind::Share { axes, pad, scale },
        _ => elementwise(&[a], pad),
    }
}

const SUM: ReduceOp = ReduceOp::Sum;

/// A sum of elements, which is `pad` past the end.
pub(super) fn sum(a: Kind, b: Kind, pad: Pad) -> Kind {
    ordered_sum(a, b).or_else(|| ordered_sum(b, a)).unwrap_or_else(|| elementwise(&[a, b], pad))
}

fn ordered_sum(a: Kind, b: Kind) -> Option<Kind> {
    Some(match (a, b) {
        (_, Kind::Zero) => a,
        (Kind::Part(SUM), Kind::Part(SUM)) => a,
        (Kind::Old(v) | Kind::Grown(v, SUM, _), Kind::Part(SUM)) => Kind::Grown(v, SUM, None),
        (Kind::Scaled(_, own), Kind::Share { axes: 0, scale, .. }) if own == scale => a,
        (Kind::Share { axes, pad: x, scale }, Kind::Share { axes: others, pad: y, scale: other })
            if axes == others && scale == other =>
        {
            Kind::Share { axes, pad: x.plus(y), scale }
        }
        // The maximum of sums with an invariant number is the sum with the maximum.
        (Kind::Part(op), Kind::Fixed) if op != SUM => a,
        (Kind::Begin { .. } | Kind::Number { .. }, Kind::Fixed) => a,
        (Kind::Begin { negative: false }, Kind::Number { axis, negative: false }) => {
            Kind::Each { axes: 1 << axis, pad: Pad::POSITION }
        }
        (Kind::Begin { negative: true }, Kind::Number { axis, negative: true }) => {
            Kind::Each { axes: 1 << axis, pad: Pad::POSITION.negated() }
        }
        _ => return None,
    })
}

/// A product of elements, which is `pad` past the end.
pub(super) fn product(a: Kind, b: Kind, pad: Pad) -> Kind {
    ordered_product(a, b, pad).or_else(|| ordered_product(b, a, pad)).unwrap_or_else(|| elementwise(&[a, b], pad))
}

fn ordered_product(a: Kind, b: Kind, pad: Pad) -> Option<Kind> {
    Some(match (a, b) {
        (Kind::Zero, Kind::Zero | Kind::Fixed | Kind::Factor { .. }) => Kind::Zero,
        (Kind::Part(_) | Kind::Share { axes: 0, .. }, Kind::Zero | Kind::Fixed) => a,
        // All elements of the tile are in one group.
        (Kind::Part(SUM), Kind::Group) => a,
        (Kind::Old(_) | Kind::Scaled(..), Kind::Factor { extreme, up, down, by }) => {
            rescaled(a, extreme, [up, down], by)?
        }
        (Kind::Share { axes, scale, .. }, Kind::Fixed) => Kind::Share { axes, pad, scale },
        (Kind::Share { axes, scale, .. }, Kind::Each { axes: others, .. }) if axes == others => {
            Kind::Share { axes, pad, scale }
        }
        _ => return None,
    })
}

/// A sum of exponentials relative to the extreme `up`, rescaled to `down`.
fn rescaled(a: Kind, extreme: Value, [up, down]: [Option<Last>; 2], by: u32) -> Option<Kind> {
    let (v, scale) = match (a, up, down) {
        (Kind::Old(v), None, Some(last)) => (v, Scale { extreme, last, by, negative: false }),
        (Kind::Old(v), Some(last), None) => (v, Scale { extreme, last, by, negative: true }),
        (Kind::Scaled(v, scale), Some(up), Some(down)) => {
            let (from, last) = if scale.negative { (down, up) } else { (up, down) };
            if scale != (Scale { extreme, last: from, by, negative: scale.negative }) {
                return None;
            }
            (v, Scale { last, ..scale })
        }
        _ => return None,
    };
    Some(Kind::Scaled(v, scale))
}

pub(super) fn quotient(a: Kind, b: Kind, pad: Pad) -> Kind {
    match (a, b) {
        (Kind::Part(_) | Kind::Share { axes: 0, .. }, Kind::Fixed) => a,
        (Kind::Part(SUM), Kind::Group) => a,
        (Kind::Share { axes, scale, .. }, Kind::Fixed) => Kind::Share { axes, pad, scale },
        (Kind::Share { axes, scale, .. }, Kind::Each { axes: others, .. }) if axes == others => {
            Kind::Share { axes, pad, scale }
        }
        (_, Kind::Factor { extreme, up, down, by }) => {
            product(a, Kind::Factor { extreme, up: down, down: up, by }, pad)
        }
        _ => elementwise(&[a, b], pad),
    }
}

/// The maximum or minimum of two values, computed by `e`; `pad` past the end.
pub(super) fn extreme(op: ReduceOp, [a, b]: [Kind; 2], pad: Pad, e: Expr) -> Kind {
    let last = Some(Last::Computed(e));
    let one = |a: Kind, b: Kind| {
        let more = b.is_fixed() || b == Kind::Part(op);
        match a {
            Kind::Old(v) if more => Some(Kind::Grown(v, op, last)),
            Kind::Grown(v, own, _) if more && own == op => Some(Kind::Grown(v, op, last)),
            Kind::Part(own) if more && own == op => Some(a),
            _ => None,
        }
    };
    one(a, b).or_else(|| one(b, a)).unwrap_or_else(|| elementwise(&[a, b], pad))
}

/// A matrix product without its addend. `padded`: there may be positions past the end. `along`: the reduction is over
/// the elements of the tile.
pub(super) fn matrix_product(a: Kind, b: Kind, padded: bool, along: bool) -> Kind {
    let axes = |kind: Kind| match kind {
        Kind::Zero | Kind::Fixed => Some(0),
        Kind::Each { axes, .. } | Kind::Share { axes, .. } => Some(axes),
        _ => None,
    };
    let (Some(of_a), Some(of_b)) = (axes(a), axes(b)) else {
        return match (a, b) {
            (Kind::Part(SUM), fixed) | (fixed, Kind::Part(SUM)) if fixed.is_fixed() && !along => Kind::Part(SUM),
            _ => mixed(&[a, b]),
        };
    };
    let vanishes = a.pad().times(b.pad(), false).is_zero() || !padded;
    let zero = |kind: Kind| if kind.pad().is_zero() { Pad::ZERO } else { Pad::UNKNOWN };
    match (a, b) {
        (Kind::Share { axes: 0b10, scale, .. }, Kind::Each { axes: 0b01, .. })
        | (Kind::Each { axes: 0b10, .. }, Kind::Share { axes: 0b01, scale, .. })
            if vanishes =>
        {
            Kind::Share { axes: 0, pad: Pad::ZERO, scale }
        }
        (Kind::Share { .. }, _) | (_, Kind::Share { .. }) => mixed(&[a, b]),
        _ => match (of_a, of_b) {
            (0, 0) if a == Kind::Zero || b == Kind::Zero => Kind::Zero,
            (0b10, 0b01) if vanishes => Kind::Part(SUM),
            // The number of terms would depend on the choice.
            _ if along => mixed(&[a, b]),
            (0, 0) => Kind::Fixed,
            (0b01, 0) => Kind::Each { axes: 0b01, pad: zero(a) },
            (0, 0b10) => Kind::Each { axes: 0b10, pad: zero(b) },
            _ => mixed(&[a, b]),
        },
    }
}
