//! What a value is to a loop over tiles of a range, and how operators combine that.

use tilec_ir::entities::{Expr, Value};
use tilec_ir::ops::{Op, ReduceOp};

/// What a value of one iteration is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Zero,
    /// It is the same in every iteration.
    Fixed,
    /// Where the tile begins, and a number that does not change; `negative`: minus that.
    Begin {
        negative: bool,
    },
    /// The numbers of the tile's elements along a dimension, and a number that does not change.
    Number {
        axis: u32,
        negative: bool,
    },
    /// An element for each position, along the dimensions of these bits.
    Each {
        axes: u32,
        pad: Pad,
    },
    /// The tile's part of a sum or an extreme.
    Part(ReduceOp),
    /// What a variable held at the end of the iteration before.
    Old(Value),
    /// That, and parts of this tile; an extreme as this expression computes it.
    Grown(Value, ReduceOp, Option<Expr>),
    /// Elements and extremes, added: what an exponential is taken of (`scaled`).
    Exponent(u32),
    /// What was summed before is multiplied by this, for the extreme has grown.
    Factor(Scale),
    /// Exponentials of the tile's elements against the extreme, and what they are multiplied by; along no dimension: a part of their sum.
    Share {
        axes: u32,
        pad: Pad,
        scale: Scale,
    },
    /// What a variable held at the end of the iteration before, times the factor, and shares of this tile.
    Scaled(Value, Scale),
    /// Whether an extreme is still what it began with.
    Guard,
    /// Something else; `carried`: it depends on what an earlier iteration left.
    Other {
        carried: bool,
    },
}

/// What exponentials are divided by: that of an extreme, multiplied by what `by` counts.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Scale {
    pub(super) extreme: Value,
    /// This expression computes the extreme.
    pub(super) last: Expr,
    pub(super) by: u32,
}

/// What elements are whose positions are behind the end of the range.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Pad {
    Zero,
    /// Zero, and no other element is less.
    Least,
    /// So low that another element is the largest.
    Low,
    High,
    /// Their positions, or less by what does not change.
    Behind,
    /// The same, negative.
    Before,
    Finite,
    /// Infinite, or no number.
    Any,
}

impl Pad {
    pub(super) fn is_zero(self) -> bool {
        matches!(self, Pad::Zero | Pad::Least)
    }

    /// What both are.
    fn join(self, other: Pad) -> Pad {
        match (self, other) {
            (a, b) if a == b => a,
            (Pad::Any, _) | (_, Pad::Any) => Pad::Any,
            (a, b) if a.is_zero() && b.is_zero() => Pad::Zero,
            _ => Pad::Finite,
        }
    }

    fn negated(self) -> Pad {
        match self {
            Pad::Zero | Pad::Least => Pad::Zero,
            Pad::Low => Pad::High,
            Pad::High => Pad::Low,
            Pad::Behind => Pad::Before,
            Pad::Before => Pad::Behind,
            Pad::Any => Pad::Any,
            Pad::Finite => Pad::Finite,
        }
    }

    fn plus(self, other: Pad) -> Pad {
        match (self, other) {
            (Pad::Any, _) | (_, Pad::Any) | (Pad::Low, Pad::High) | (Pad::High, Pad::Low) => Pad::Any,
            (far @ (Pad::Low | Pad::High), _) | (_, far @ (Pad::Low | Pad::High)) => far,
            (Pad::Least, Pad::Least) => Pad::Least,
            (x, y) if x.is_zero() && y.is_zero() => Pad::Zero,
            _ => Pad::Finite,
        }
    }

    fn times(self, other: Pad, same: bool) -> Pad {
        match (self, other) {
            (x, _) if same && x.is_zero() => Pad::Least,
            (Pad::Any, _) | (_, Pad::Any) => Pad::Any,
            (Pad::Least, Pad::Least) => Pad::Least,
            // What is masked may be infinite.
            (Pad::Low | Pad::High, y) | (y, Pad::Low | Pad::High) if y.is_zero() => Pad::Any,
            (x, y) if x.is_zero() || y.is_zero() => Pad::Zero,
            _ => Pad::Finite,
        }
    }

    /// Whether such elements make no difference.
    pub(super) fn is_neutral(self, op: ReduceOp) -> bool {
        match op {
            ReduceOp::Sum => self.is_zero(),
            ReduceOp::Maximum => matches!(self, Pad::Low | Pad::Least),
            ReduceOp::Minimum => self == Pad::High,
        }
    }
}

impl Kind {
    /// Whether an earlier iteration has a say in it.
    pub(super) fn is_carried(self) -> bool {
        match self {
            Kind::Old(_) | Kind::Grown(..) | Kind::Scaled(..) | Kind::Exponent(_) | Kind::Factor(_) => true,
            Kind::Share { .. } | Kind::Guard => true,
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
            Kind::Zero => Pad::Zero,
            _ => Pad::Finite,
        }
    }

    /// What a value is that is the one or the other, by something that does not change.
    pub(super) fn join(self, other: Kind) -> Kind {
        match (self, other) {
            (a, b) if a == b => a,
            (Kind::Old(v), grown @ (Kind::Grown(w, ..) | Kind::Scaled(w, _)))
            | (grown @ (Kind::Grown(w, ..) | Kind::Scaled(w, _)), Kind::Old(v))
                if v == w =>
            {
                grown
            }
            (Kind::Grown(v, a, _), Kind::Grown(w, b, _)) if v == w && a == b => Kind::Grown(v, a, None),
            (Kind::Zero, part @ Kind::Part(ReduceOp::Sum)) | (part @ Kind::Part(ReduceOp::Sum), Kind::Zero) => part,
            (a, b) if a.is_fixed() && b.is_fixed() => Kind::Fixed,
            (a, b) => elementwise(&[a, b], a.pad().join(b.pad())),
        }
    }

    /// A matrix seen transposed.
    pub(super) fn transposed(self) -> Kind {
        match self {
            Kind::Each { axes, pad } => Kind::Each { axes: (axes & 1) << 1 | axes >> 1 & 1, pad },
            Kind::Share { axes, pad, scale } => Kind::Share { axes: (axes & 1) << 1 | axes >> 1 & 1, pad, scale },
            Kind::Number { axis, negative } => Kind::Number { axis: 1 - axis.min(1), negative },
            Kind::Zero | Kind::Fixed | Kind::Part(_) => self,
            _ => mixed(&[self]),
        }
    }
}

/// A value of which nothing is known but who has a say in it.
pub(super) fn mixed(kinds: &[Kind]) -> Kind {
    Kind::Other { carried: kinds.iter().any(|kind| kind.is_carried()) }
}

/// Any function of elements, which is `pad` behind the end.
pub(super) fn elementwise(kinds: &[Kind], pad: Pad) -> Kind {
    let mut all = None;
    for &kind in kinds {
        match kind {
            Kind::Zero | Kind::Fixed => {}
            Kind::Each { axes, .. } if all.is_none_or(|all| all == axes) => all = Some(axes),
            _ => return mixed(kinds),
        }
    }
    all.map_or(Kind::Fixed, |axes| Kind::Each { axes, pad })
}

pub(super) fn negated(a: Kind) -> Kind {
    let pad = a.pad().negated();
    match a {
        Kind::Zero | Kind::Fixed | Kind::Part(ReduceOp::Sum) => a,
        Kind::Part(ReduceOp::Maximum) => Kind::Part(ReduceOp::Minimum),
        Kind::Part(ReduceOp::Minimum) => Kind::Part(ReduceOp::Maximum),
        Kind::Begin { negative } => Kind::Begin { negative: !negative },
        Kind::Number { axis, negative } => Kind::Number { axis, negative: !negative },
        Kind::Share { axes, scale, .. } => Kind::Share { axes, pad, scale },
        _ => elementwise(&[a], pad),
    }
}

const SUM: ReduceOp = ReduceOp::Sum;

pub(super) fn sum(a: Kind, b: Kind) -> Kind {
    ordered_sum(a, b).or_else(|| ordered_sum(b, a)).unwrap_or_else(|| elementwise(&[a, b], a.pad().plus(b.pad())))
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
        // The largest of sums with one number is the sum with the largest.
        (Kind::Part(op), Kind::Fixed) if op != SUM => a,
        (Kind::Begin { .. } | Kind::Number { .. }, Kind::Fixed) => a,
        (Kind::Each { pad: Pad::Behind | Pad::Before, .. }, Kind::Fixed) => a,
        (Kind::Begin { negative: false }, Kind::Number { axis, negative: false }) => {
            Kind::Each { axes: 1 << axis, pad: Pad::Behind }
        }
        (Kind::Begin { negative: true }, Kind::Number { axis, negative: true }) => {
            Kind::Each { axes: 1 << axis, pad: Pad::Before }
        }
        _ => return None,
    })
}

/// A product of elements; `same`: of a value with itself.
pub(super) fn product(a: Kind, b: Kind, same: bool) -> Kind {
    let pad = a.pad().times(b.pad(), same);
    ordered_product(a, b).or_else(|| ordered_product(b, a)).unwrap_or_else(|| elementwise(&[a, b], pad))
}

fn ordered_product(a: Kind, b: Kind) -> Option<Kind> {
    Some(match (a, b) {
        (Kind::Zero, Kind::Zero | Kind::Fixed | Kind::Factor(_)) => Kind::Zero,
        (Kind::Part(_) | Kind::Share { axes: 0, .. }, Kind::Zero | Kind::Fixed) => a,
        (Kind::Old(v), Kind::Factor(scale)) => Kind::Scaled(v, scale),
        // Numbers that scale elements are taken to be positive, unless they are written.
        (Kind::Each { pad: Pad::Low | Pad::High, .. }, Kind::Fixed) => a,
        (Kind::Share { axes, pad, scale }, Kind::Fixed) => Kind::Share { axes, pad, scale },
        (Kind::Share { axes, pad, scale }, Kind::Each { axes: others, pad: by }) if axes == others => {
            Kind::Share { axes, pad: pad.times(by, false), scale }
        }
        _ => return None,
    })
}

pub(super) fn quotient(a: Kind, b: Kind) -> Kind {
    let pad = match (a.pad(), b.pad()) {
        (Pad::Any, _) | (_, Pad::Any | Pad::Zero | Pad::Least) => Pad::Any,
        (x, _) if x.is_zero() => Pad::Zero,
        (x @ (Pad::Low | Pad::High), _) if b == Kind::Fixed => x,
        _ => Pad::Finite,
    };
    match (a, b) {
        (Kind::Part(_) | Kind::Share { axes: 0, .. }, Kind::Fixed) => a,
        (Kind::Share { axes, scale, .. }, Kind::Fixed) => Kind::Share { axes, pad, scale },
        (Kind::Share { axes, scale, .. }, Kind::Each { axes: others, .. }) if axes == others => {
            Kind::Share { axes, pad, scale }
        }
        _ => elementwise(&[a, b], pad),
    }
}

/// The larger, or the smaller, of two, which `e` computes.
pub(super) fn extreme(op: ReduceOp, a: Kind, b: Kind, e: Expr) -> Kind {
    let one = |a: Kind, b: Kind| {
        let more = b.is_fixed() || b == Kind::Part(op);
        match a {
            Kind::Old(v) if more => Some(Kind::Grown(v, op, Some(e))),
            Kind::Grown(v, own, _) if more && own == op => Some(Kind::Grown(v, op, Some(e))),
            Kind::Part(own) if more && own == op => Some(a),
            _ => None,
        }
    };
    let least = if op == ReduceOp::Maximum { Pad::Low } else { Pad::High };
    let pad = match (a.pad(), b.pad()) {
        (x, y) if x.is_zero() && y.is_zero() || x == least && y.is_zero() || x.is_zero() && y == least => {
            let zero = x == Pad::Least || y == Pad::Least || a == Kind::Zero || b == Kind::Zero;
            if op == ReduceOp::Maximum && zero { Pad::Least } else { Pad::Zero }
        }
        (x, y) if x == least => y,
        (x, y) if y == least => x,
        (x, y) => x.join(y),
    };
    one(a, b).or_else(|| one(b, a)).unwrap_or_else(|| elementwise(&[a, b], pad))
}

/// A function of one number.
pub(super) fn function(op: Op, a: Kind) -> Kind {
    let pad = match (op, a.pad()) {
        (_, Pad::Any) => Pad::Any,
        (Op::Exp | Op::Exp2, Pad::Low) => Pad::Least,
        (Op::Abs | Op::Sqrt, pad) if pad.is_zero() => Pad::Least,
        (Op::Tanh | Op::FastTanh | Op::Erf, pad) if pad.is_zero() => pad,
        (Op::Log | Op::Log2 | Op::Rsqrt, _) => Pad::Any,
        _ => Pad::Finite,
    };
    elementwise(&[a], pad)
}

/// A matrix product without what it is added to; `padded`: there may be positions behind the end.
pub(super) fn matrix_product(a: Kind, b: Kind, padded: bool) -> Kind {
    let axes = |kind: Kind| match kind {
        Kind::Zero | Kind::Fixed => Some(0),
        Kind::Each { axes, .. } | Kind::Share { axes, .. } => Some(axes),
        _ => None,
    };
    let (Some(of_a), Some(of_b)) = (axes(a), axes(b)) else {
        return match (a, b) {
            (Kind::Part(SUM), fixed) | (fixed, Kind::Part(SUM)) if fixed.is_fixed() => Kind::Part(SUM),
            _ => mixed(&[a, b]),
        };
    };
    let vanishes = a.pad().times(b.pad(), false).is_zero() || !padded;
    let zero = |kind: Kind| if kind.pad().is_zero() { Pad::Zero } else { Pad::Finite };
    match (a, b) {
        (Kind::Share { axes: 0b10, scale, .. }, Kind::Each { axes: 0b01, .. })
        | (Kind::Each { axes: 0b10, .. }, Kind::Share { axes: 0b01, scale, .. })
            if vanishes =>
        {
            Kind::Share { axes: 0, pad: Pad::Zero, scale }
        }
        (Kind::Share { .. }, _) | (_, Kind::Share { .. }) => mixed(&[a, b]),
        _ => match (of_a, of_b) {
            (0, 0) => Kind::Fixed,
            (0b10, 0b01) if vanishes => Kind::Part(SUM),
            (0b01, 0) => Kind::Each { axes: 0b01, pad: zero(a) },
            (0, 0b10) => Kind::Each { axes: 0b10, pad: zero(b) },
            _ => mixed(&[a, b]),
        },
    }
}
