//! Bounds of what index arithmetic can give.

use super::exact;
use crate::ops::Op;

/// The integers from `lo` to `hi`. Bounds may exceed 64 bits; callers check if they need narrower ones.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Interval {
    /// The least.
    pub lo: i128,
    /// The greatest.
    pub hi: i128,
}

impl Interval {
    /// The integers from `lo` to `hi`.
    pub fn new(lo: i128, hi: i128) -> Interval {
        Interval { lo, hi }
    }

    /// From the first to the last multiple of a positive `n` in it: empty (`lo` above `hi`) where there is none.
    pub fn multiples_of(self, n: u64) -> Interval {
        let n = i128::from(n);
        let multiple = |op, x| exact(op, x, n).map_or(x, |times| times.saturating_mul(n));
        Interval { lo: multiple(Op::CeilDiv, self.lo), hi: multiple(Op::Div, self.hi) }
    }

    /// The values of the variable of a loop between bounds in these intervals. From a known start on, they are whole
    /// steps apart.
    pub fn of_loop(start: Interval, end: Interval, step: i128) -> Interval {
        let most = (end.hi - 1).max(start.lo);
        let hi = if start.lo == start.hi && step > 0 { most - (most - start.lo) % step } else { most };
        Interval::new(start.lo, hi)
    }

    /// What `a op b` can be for operands in these intervals; `None` where a divisor may be below 1 or a shift below 0, or `op` gives no integer.
    /// Bounds beyond 128 bits are cut there.
    pub fn of(op: Op, a: Interval, b: Interval) -> Option<Interval> {
        match op {
            // Each of these operators is monotonic in each operand, so the extremes are at corners.
            Op::Add | Op::Sub | Op::Mul | Op::Min | Op::Max => {}
            Op::Div | Op::CeilDiv if b.lo > 0 => {}
            Op::Shl | Op::Shr if b.lo >= 0 => {}
            Op::BitAnd | Op::BitOr | Op::BitXor => return Some(Interval::of_bits(op, a, b)),
            Op::Rem if b.lo > 0 => {
                let below = b.hi - 1;
                return Some(Interval::new(0, if a.lo >= 0 { a.hi.min(below) } else { below }));
            }
            _ => return None,
        }
        let corner = |x: i128, y: i128| {
            let negative = match op {
                Op::Mul => (x < 0) != (y < 0),
                _ => x < 0,
            };
            exact(op, x, y).unwrap_or(if negative { i128::MIN } else { i128::MAX })
        };
        let corners = [corner(a.lo, b.lo), corner(a.lo, b.hi), corner(a.hi, b.lo), corner(a.hi, b.hi)];
        let (lo, hi) = corners.iter().fold((i128::MAX, i128::MIN), |(lo, hi), &x| (lo.min(x), hi.max(x)));
        Some(Interval { lo, hi })
    }

    /// What `a op b` can be, of the operators on bits.
    fn of_bits(op: Op, a: Interval, b: Interval) -> Interval {
        // This number of bits besides the sign holds every value of both.
        let bits = |x: i128| i128::BITS - (if x < 0 { !x } else { x }).leading_zeros();
        let all = |x: Interval| bits(x.lo).max(bits(x.hi));
        let ones = |n: u32| if n >= 127 { i128::MAX } else { (1 << n) - 1 };
        let most = ones(all(a).max(all(b)));
        match (op, a.lo >= 0, b.lo >= 0) {
            (Op::BitAnd, true, true) => Interval::new(0, a.hi.min(b.hi)),
            // Of a number with a sign all bits may be set.
            (Op::BitAnd, true, false) => Interval::new(0, a.hi),
            (Op::BitAnd, false, true) => Interval::new(0, b.hi),
            (Op::BitOr, true, true) => Interval::new(a.lo.max(b.lo), most),
            (_, true, true) => Interval::new(0, most),
            _ => Interval::new(!most, most),
        }
    }

    /// What `op a` can be; `None` if `op` gives no integer.
    pub fn of_one(op: Op, a: Interval) -> Option<Interval> {
        match op {
            Op::BitNot => Some(Interval::new(!a.hi, !a.lo)),
            Op::Popcount => Some(Interval::new(0, 64)),
            _ => None,
        }
    }
}
