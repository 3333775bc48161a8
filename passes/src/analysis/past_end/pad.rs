//! Bounds of numbers, for elements past the end of a range.

use tilec_ir::ops::ReduceOp;

/// Numbers of larger size are taken to be masks, not elements; the largest f16 is 65504.
pub(crate) const BEYOND: f64 = 6.0e4;

/// Most elements of a dimension.
const MOST_ELEMENTS: f64 = 2_147_483_648.0;

/// What is known about the elements past the end of the range; conditions are 0 or 1.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(crate) enum Pad {
    Number(Number),
    /// Possibly infinite or NaN.
    Any,
    /// NaN.
    NotANumber,
}

/// A number within bounds.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(crate) struct Number {
    pub(crate) lo: f64,
    pub(crate) hi: f64,
    /// No element is smaller.
    pub(crate) least: bool,
    /// No element is larger.
    pub(crate) largest: bool,
}

/// A computed bound: exact if 8 significand bits hold it, as in bf16, else with room for rounding; `by`: 1 for upper,
/// -1 for lower bounds.
fn bound(x: f64, by: f64) -> f64 {
    if x.is_nan() {
        return by * f64::INFINITY;
    }
    let bits = || (x / x.abs().log2().floor().exp2() * 128.0).fract() == 0.0 && (1.0e-4..=256.0).contains(&x.abs());
    if x.is_infinite() || x == 0.0 || bits() { x } else { x + by * x.abs() / 64.0 }
}

impl Number {
    fn of(lo: f64, hi: f64) -> Number {
        Number { lo: bound(lo, -1.0), hi: bound(hi, 1.0), least: false, largest: false }
    }

    fn literal(x: f64) -> Number {
        Number { lo: x, hi: x, least: true, largest: true }
    }

    fn is(self, x: f64) -> bool {
        self.lo == x && self.hi == x
    }

    fn is_far(self) -> bool {
        self.hi <= -BEYOND || self.lo >= BEYOND
    }

    /// The number is the same for all elements.
    fn is_fixed(self) -> bool {
        self.least && self.largest
    }

    fn like(self, other: Number) -> Number {
        Number { least: other.least, largest: other.largest, ..self }
    }

    fn negated(self) -> Number {
        Number { lo: -self.hi, hi: -self.lo, least: self.largest, largest: self.least }
    }

    /// Widened by the possible rounding error.
    fn outward(self) -> Number {
        Number { lo: bound(self.lo, -1.0), hi: bound(self.hi, 1.0), ..self }
    }

    /// Only known to be beyond [`BEYOND`], with its sign.
    fn far(self) -> Number {
        let (lo, hi) = if self.hi < 0.0 { (f64::NEG_INFINITY, -BEYOND) } else { (BEYOND, f64::INFINITY) };
        Number { lo, hi, ..self }
    }

    fn times(self, by: Number) -> Number {
        let (of, with) = (self.outward(), by.outward());
        let ends = [of.lo * with.lo, of.lo * with.hi, of.hi * with.lo, of.hi * with.hi];
        let ends = ends.map(|x| if x.is_nan() { 0.0 } else { x });
        let product = Number::of(
            ends.into_iter().fold(f64::INFINITY, f64::min),
            ends.into_iter().fold(f64::NEG_INFINITY, f64::max),
        );
        // Factors of masks are taken to be positive, and not to shrink the mask below `BEYOND`.
        let product = match by.is_fixed() && self.is_far() && !product.is_far() {
            true if by.hi < 0.0 => self.negated().far(),
            true => self.far(),
            false => product,
        };
        match by {
            _ if by.is_fixed() && by.lo >= 0.0 => product.like(self),
            _ if by.is_fixed() && by.hi <= 0.0 => product.like(self.negated()),
            _ => Number { least: self.least && by.least && self.lo >= 0.0 && by.lo >= 0.0, ..product },
        }
    }

    fn larger(self, other: Number) -> Number {
        let (lo, hi) = (self.lo.max(other.lo), self.hi.max(other.hi));
        // If the other operand's smallest element is at least `hi`, no result is smaller than it.
        let bounded = |by: Number| by.least && hi <= by.lo;
        let least = self.least && other.least || bounded(self) || bounded(other);
        Number { lo, hi, least, largest: self.largest && other.largest }
    }

    fn hull(self, other: Number) -> Number {
        Number { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi), least: false, largest: false }
    }

    /// Bounds of a condition's truth value.
    fn truth(self) -> (f64, f64) {
        (self.lo.clamp(0.0, 1.0), self.hi.clamp(0.0, 1.0))
    }
}

impl Pad {
    pub(crate) const ZERO: Pad = Pad::Number(Number { lo: 0.0, hi: 0.0, least: false, largest: false });
    /// A finite number of unknown value.
    pub(crate) const UNKNOWN: Pad =
        Pad::Number(Number { lo: f64::NEG_INFINITY, hi: f64::INFINITY, least: false, largest: false });
    /// A position of an element.
    pub(crate) const POSITION: Pad = Pad::Number(Number { lo: 0.0, hi: MOST_ELEMENTS, least: false, largest: false });
    /// A number of unknown value that is the same for all elements.
    pub(crate) const FIXED: Pad =
        Pad::Number(Number { lo: f64::NEG_INFINITY, hi: f64::INFINITY, least: true, largest: true });

    pub(crate) fn literal(x: f64) -> Pad {
        if x.is_nan() { Pad::NotANumber } else { Pad::Number(Number::literal(x)) }
    }

    /// A number from `lo` to `hi` that is the same for all elements.
    pub(crate) fn fixed((lo, hi): (f64, f64)) -> Pad {
        Pad::Number(Number { lo, hi, least: true, largest: true })
    }

    /// A fill value, whose comparison with other elements is unknown.
    pub(crate) fn fill(x: f64) -> Pad {
        if x.is_nan() {
            Pad::NotANumber
        } else {
            Pad::Number(Number { least: false, largest: false, ..Number::literal(x) })
        }
    }

    /// A condition that holds for all such elements, or for none.
    pub(crate) fn always(holds: bool) -> Pad {
        Pad::condition(holds, holds)
    }

    fn condition(lo: bool, hi: bool) -> Pad {
        Pad::Number(Number { least: !hi, largest: lo, ..Number::of(f64::from(lo), f64::from(hi)) })
    }

    /// A factor: positive if nothing else is known about it.
    pub(crate) fn positive(self) -> Pad {
        match self {
            Pad::Number(x) if x.lo == f64::NEG_INFINITY && x.hi == f64::INFINITY => {
                Pad::Number(Number { lo: 0.0, ..x })
            }
            _ => self,
        }
    }

    pub(crate) fn is_zero(self) -> bool {
        matches!(self, Pad::Number(x) if x.is(0.0))
    }

    pub(crate) fn is_low(self) -> bool {
        matches!(self, Pad::Number(x) if x.hi <= -BEYOND)
    }

    /// Whether such elements are masked: they are zero, or beyond every other element.
    pub(crate) fn is_mask(self) -> bool {
        self.is_zero() || matches!(self, Pad::Number(x) if x.is_far())
    }

    /// Whether it is known to be above zero.
    pub(crate) fn is_positive(self) -> bool {
        self.negated().is_negative()
    }

    /// Adds the comparison with the other elements, which are from `lo` to `hi`.
    pub(crate) fn within(self, (lo, hi): (f64, f64)) -> Pad {
        match self {
            Pad::Number(x) => {
                Pad::Number(Number { least: x.least || x.hi <= lo, largest: x.largest || x.lo >= hi, ..x })
            }
            Pad::Any | Pad::NotANumber => Pad::Any,
        }
    }

    /// Whether it is known to be below zero.
    pub(crate) fn is_negative(self) -> bool {
        matches!(self, Pad::Number(x) if x.hi < 0.0)
    }

    /// Whether such elements do not change a reduction.
    pub(crate) fn is_neutral(self, op: ReduceOp) -> bool {
        match op {
            ReduceOp::Sum => self.is_zero(),
            // Of equal elements the first wins, and it is not past the end.
            ReduceOp::Maximum | ReduceOp::ArgMax => self.is_low() || matches!(self, Pad::Number(x) if x.least),
            ReduceOp::Minimum | ReduceOp::ArgMin => self.negated().is_neutral(ReduceOp::Maximum),
            ReduceOp::Product => matches!(self, Pad::Number(x) if x.is(1.0)),
            ReduceOp::Any => self.truth() == (0.0, 0.0),
            ReduceOp::All => self.truth() == (1.0, 1.0),
        }
    }

    /// The join of both, as after a variable number of iterations; bounds that differ are widened.
    pub(crate) fn join(self, other: Pad) -> Pad {
        match (self, other) {
            (a, b) if a == b => a,
            (Pad::Number(a), Pad::Number(b)) => {
                let lo = if a.lo == b.lo { a.lo } else { at_least(a.lo.min(b.lo)) };
                let hi = if a.hi == b.hi { a.hi } else { -at_least(-a.hi.max(b.hi)) };
                let (least, largest) = (a.least && b.least && a.lo == b.lo && a.hi == b.hi, false);
                Pad::Number(Number { lo, hi, least, largest })
            }
            _ => Pad::Any,
        }
    }

    pub(crate) fn negated(self) -> Pad {
        match self {
            Pad::Number(x) => Pad::Number(x.negated()),
            Pad::Any | Pad::NotANumber => Pad::Any,
        }
    }

    fn numbers(self, other: Pad, of: impl Fn(Number, Number) -> Pad) -> Pad {
        match (self, other) {
            (Pad::Number(a), Pad::Number(b)) => of(a, b),
            _ => Pad::Any,
        }
    }

    /// The result of arithmetic: NaN if an operand is.
    fn arithmetic(self, other: Pad, of: impl Fn(Number, Number) -> Pad) -> Pad {
        if self == Pad::NotANumber || other == Pad::NotANumber { Pad::NotANumber } else { self.numbers(other, of) }
    }

    pub(crate) fn plus(self, other: Pad) -> Pad {
        self.arithmetic(other, |a, b| {
            let sum = match (a.is_far(), b.is_far()) {
                (true, true) if (a.lo < 0.0) != (b.lo < 0.0) => return Pad::Any,
                (true, _) => a.far(),
                (_, true) => b.far(),
                _ => {
                    let (x, y) = (a.outward(), b.outward());
                    Number::of(x.lo + y.lo, x.hi + y.hi)
                }
            };
            Pad::Number(Number { least: a.least && b.least, largest: a.largest && b.largest, ..sum })
        })
    }

    /// The product; `same`: of a value with itself.
    pub(crate) fn times(self, other: Pad, same: bool) -> Pad {
        self.arithmetic(other, |a, b| {
            if same && a.is(0.0) {
                return Pad::Number(Number { least: true, ..a });
            }
            // A mask may be infinite, and zero times infinity is NaN.
            if a.is(0.0) && b.is_far() || b.is(0.0) && a.is_far() {
                return Pad::Any;
            }
            Pad::Number(if a.is_fixed() && !b.is_fixed() { b.times(a) } else { a.times(b) })
        })
    }

    pub(crate) fn divided_by(self, other: Pad) -> Pad {
        self.arithmetic(other, |a, b| match b {
            _ if b.is(0.0) => Pad::Any,
            _ if b.lo > 0.0 || b.hi < 0.0 => {
                let fixed = b.is_fixed();
                let inverse = Number { lo: 1.0 / b.hi, hi: 1.0 / b.lo, least: fixed, largest: fixed };
                let quotient = a.times(inverse.outward());
                // The dividend is the smallest and not negative, and the divisor is positive.
                let least = quotient.least || a.is(0.0) && a.least && b.least && b.lo > 0.0;
                Pad::Number(Number { least, ..quotient })
            }
            _ if b.is_fixed() && b.lo == 0.0 => Pad::Number(a.times(b)),
            _ if b.is_fixed() && a.is_far() => Pad::Number(a.far()),
            _ if a.is(0.0) => Pad::ZERO,
            _ => Pad::UNKNOWN,
        })
    }

    pub(crate) fn larger(self, other: Pad) -> Pad {
        self.numbers(other, |a, b| Pad::Number(a.larger(b)))
    }

    pub(crate) fn smaller(self, other: Pad) -> Pad {
        self.negated().larger(other.negated()).negated()
    }

    /// `a < b`, or `a <= b` if `or_equal`.
    pub(crate) fn less(self, other: Pad, or_equal: bool) -> Pad {
        match (self, other) {
            (Pad::NotANumber, _) | (_, Pad::NotANumber) => Pad::always(false),
            (Pad::Any, _) | (_, Pad::Any) => Pad::condition(false, true),
            (Pad::Number(a), Pad::Number(b)) => {
                let surely = if or_equal { a.hi <= b.lo } else { a.hi < b.lo };
                let never = if or_equal { a.lo > b.hi } else { a.lo >= b.hi };
                Pad::condition(surely, !never)
            }
        }
    }

    /// `a == b`.
    pub(crate) fn equal(self, other: Pad) -> Pad {
        match (self, other) {
            (Pad::Number(a), Pad::Number(b)) => {
                Pad::condition(a.lo == a.hi && b.is(a.lo), a.lo <= b.hi && b.lo <= a.hi)
            }
            (Pad::NotANumber, _) | (_, Pad::NotANumber) => Pad::always(false),
            _ => Pad::condition(false, true),
        }
    }

    pub(crate) fn both(self, other: Pad) -> Pad {
        let ((lo, hi), (other_lo, other_hi)) = (self.truth(), other.truth());
        Pad::Number(Number::of(lo.min(other_lo), hi.min(other_hi)))
    }

    pub(crate) fn not(self) -> Pad {
        let (lo, hi) = self.truth();
        Pad::Number(Number::of(1.0 - hi, 1.0 - lo))
    }

    fn truth(self) -> (f64, f64) {
        match self {
            Pad::Number(x) => x.truth(),
            _ => (0.0, 1.0),
        }
    }

    /// The selection by this condition.
    pub(crate) fn select(self, then: Pad, otherwise: Pad) -> Pad {
        let (chosen, other) = match self.truth() {
            (1.0, _) => (then, otherwise),
            (_, 0.0) => (otherwise, then),
            _ => return then.numbers(otherwise, |a, b| Pad::Number(a.hull(b))),
        };
        // Other elements may come from either operand, so a comparison must hold for both.
        match (chosen, other) {
            (Pad::Number(x), Pad::Number(y)) => Pad::Number(Number {
                least: x.least && y.least && x.hi <= y.lo,
                largest: x.largest && y.largest && x.lo >= y.hi,
                ..x
            }),
            (Pad::Number(x), _) => Pad::Number(Number { least: false, largest: false, ..x }),
            _ => chosen,
        }
    }

    /// A monotonically increasing function.
    pub(crate) fn growing(self, f: impl Fn(f64) -> f64) -> Pad {
        match self {
            Pad::Number(x) => {
                let y = x.outward();
                Pad::Number(Number::of(f(y.lo), f(y.hi)).like(x))
            }
            Pad::Any | Pad::NotANumber => Pad::Any,
        }
    }

    /// Sine or cosine, which is NaN for an infinity.
    pub(crate) fn turning(self, f: impl Fn(f64) -> f64) -> Pad {
        match self {
            Pad::Number(x) if x.lo == x.hi => Pad::Number(Number::of(f(x.lo), f(x.lo)).like(x)),
            Pad::Number(x) if x.lo.is_finite() && x.hi.is_finite() => Pad::Number(Number::of(-1.0, 1.0)),
            _ => Pad::Any,
        }
    }

    pub(crate) fn exponential(self, f: impl Fn(f64) -> f64) -> Pad {
        match self {
            // The result for a mask is 0, and no result is smaller.
            Pad::Number(x) if self.is_low() => {
                Pad::Number(Number { lo: 0.0, hi: 0.0, least: true, largest: x.largest })
            }
            _ => self.growing(f),
        }
    }

    pub(crate) fn absolute(self) -> Pad {
        match self {
            Pad::Number(x) if x.is(0.0) => Pad::Number(Number { least: true, ..x }),
            Pad::Number(x) if x.lo >= 0.0 => self,
            Pad::Number(x) if x.hi <= 0.0 => {
                Pad::Number(Number { least: x.is_fixed(), largest: x.is_fixed(), ..x.negated() })
            }
            Pad::Number(x) => Pad::Number(Number { lo: 0.0, hi: x.hi.max(-x.lo), least: false, largest: false }),
            Pad::Any | Pad::NotANumber => Pad::Any,
        }
    }

    /// A function of positive numbers; other operands may give infinity or NaN.
    pub(crate) fn of_positive(self, f: impl Fn(f64) -> f64) -> Pad {
        match self {
            Pad::Number(x) if x.lo > 0.0 => self.growing(f),
            _ => Pad::Any,
        }
    }

    /// The reduction of several such elements; rows within the range reduce the same number of elements.
    pub(crate) fn reduced(self, op: ReduceOp) -> Pad {
        match op {
            ReduceOp::Sum => self.summed(),
            _ if op.is_extreme() || op.is_of_truths() => self,
            ReduceOp::Product if self.is_zero() || self.is_neutral(op) => self,
            _ => Pad::UNKNOWN,
        }
    }

    fn summed(self) -> Pad {
        match self {
            Pad::Number(x) if x.is(0.0) => self,
            Pad::Number(x) if x.is_far() => Pad::Number(x.far()),
            Pad::Number(x) => Pad::Number(Number { lo: at_least(x.lo), hi: -at_least(-x.hi), ..x }),
            Pad::Any | Pad::NotANumber => Pad::Any,
        }
    }
}

/// The largest value among minus infinity, 0 and `BEYOND` that is a lower bound of `x`.
fn at_least(x: f64) -> f64 {
    match x {
        _ if x >= BEYOND => BEYOND,
        _ if x >= 0.0 => 0.0,
        _ => f64::NEG_INFINITY,
    }
}
