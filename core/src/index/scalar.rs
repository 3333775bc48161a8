//! Operators on integers.

use crate::numerics::IntFormat;
use crate::ops::Op;
use std::fmt;

/// The value of an expression over indices.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Scalar {
    /// An integer.
    Int(i64),
    /// A truth value.
    Truth(bool),
}

impl Scalar {
    /// The integer, if it is one.
    pub fn int(self) -> Option<i64> {
        match self {
            Scalar::Int(x) => Some(x),
            Scalar::Truth(_) => None,
        }
    }

    /// The truth value, if it is one.
    pub fn truth(self) -> Option<bool> {
        match self {
            Scalar::Truth(x) => Some(x),
            Scalar::Int(_) => None,
        }
    }
}

/// The index of an integer scalar: a 32-bit number. Larger values are outside of every tensor, and so is the nearest
/// 32-bit number, to which they are clamped.
pub fn of_value(x: i128) -> i64 {
    i64::try_from(IntFormat::S32.saturate(x)).expect("32 bits fit 64")
}

/// Why an operation has no value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Undefined {
    /// The result does not fit 64 bits.
    Overflow(Op),
    /// A division by zero.
    ZeroDivisor(Op),
    /// A shift by less than nothing.
    NegativeShift(Op),
    /// The operator is not one of index arithmetic, or its operands are not what it takes.
    NotIndex(Op),
}

impl fmt::Display for Undefined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Undefined::Overflow(op) => write!(f, "the result of `{}` does not fit 64 bits", op.token()),
            Undefined::ZeroDivisor(op) => write!(f, "division by zero in `{}`", op.token()),
            Undefined::NegativeShift(op) => write!(f, "shift by a negative number of bits in `{}`", op.token()),
            Undefined::NotIndex(op) => write!(f, "`{}` is not index arithmetic here", op.token()),
        }
    }
}

/// `a op b` of integers beyond 64 bits: what [`binary`] narrows, modular arithmetic wraps, and intervals are made of.
///
/// # Errors
/// A division by zero, or a shift by less than 0. A result that does not fit 128 bits (never for operands of
/// 64). An operator that gives no integer.
pub fn exact(op: Op, a: i128, b: i128) -> Result<i128, Undefined> {
    let overflow = Undefined::Overflow(op);
    let divides = matches!(op, Op::Div | Op::Rem | Op::CeilDiv);
    if divides && b == 0 {
        return Err(Undefined::ZeroDivisor(op));
    }
    match op {
        Op::Add => a.checked_add(b),
        Op::Sub => a.checked_sub(b),
        Op::Mul => a.checked_mul(b),
        Op::Min => Some(a.min(b)),
        Op::Max => Some(a.max(b)),
        Op::Div | Op::CeilDiv => {
            let quotient = a.checked_div(b).ok_or(overflow)?;
            // Truncation has rounded up what is negative, and down what is not.
            let (inexact, negative) = (a.wrapping_rem(b) != 0, (a < 0) != (b < 0));
            Some(match op {
                Op::Div => quotient - i128::from(inexact && negative),
                _ => quotient + i128::from(inexact && !negative),
            })
        }
        Op::Rem => {
            let rest = a.wrapping_rem(b);
            Some(if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest })
        }
        Op::BitAnd => Some(a & b),
        Op::BitOr => Some(a | b),
        Op::BitXor => Some(a ^ b),
        Op::Shl | Op::Shr if b < 0 => return Err(Undefined::NegativeShift(op)),
        // All that is beyond a sign and 126 bits gives what these give.
        Op::Shr => Some(a >> b.min(127)),
        Op::Shl if a == 0 => Some(0),
        Op::Shl => (b <= 126).then(|| 1i128 << b).and_then(|factor| a.checked_mul(factor)),
        // Unary, of truth values or of fractions.
        _ => return Err(Undefined::NotIndex(op)),
    }
    .ok_or(overflow)
}

/// `op a` beyond 64 bits, as [`exact`].
///
/// # Errors
/// As those of [`exact`].
pub fn exact_unary(op: Op, a: i128) -> Result<i128, Undefined> {
    match op {
        Op::Neg => a.checked_neg().ok_or(Undefined::Overflow(op)),
        Op::Abs => a.checked_abs().ok_or(Undefined::Overflow(op)),
        Op::BitNot => Ok(!a),
        // Of the 64 bits of an index.
        Op::Popcount => Ok(i128::from((a as i64).count_ones())),
        _ => Err(Undefined::NotIndex(op)),
    }
}

/// Whether the comparison `a op b` holds; `None` if `op` is no comparison.
pub fn compare<T: PartialOrd>(op: Op, a: &T, b: &T) -> Option<bool> {
    Some(match op {
        Op::Eq => a == b,
        Op::Ne => a != b,
        Op::Lt => a < b,
        Op::Le => a <= b,
        Op::Gt => a > b,
        Op::Ge => a >= b,
        _ => return None,
    })
}

/// `a op b`.
///
/// # Errors
/// It has no value.
pub fn binary(op: Op, a: i64, b: i64) -> Result<Scalar, Undefined> {
    if let Some(holds) = compare(op, &a, &b) {
        return Ok(Scalar::Truth(holds));
    }
    narrow(op, exact(op, i128::from(a), i128::from(b))?)
}

/// `op a`.
///
/// # Errors
/// It has no value.
pub fn unary(op: Op, a: i64) -> Result<Scalar, Undefined> {
    narrow(op, exact_unary(op, i128::from(a))?)
}

fn narrow(op: Op, x: i128) -> Result<Scalar, Undefined> {
    i64::try_from(x).map(Scalar::Int).map_err(|_| Undefined::Overflow(op))
}

/// The operand that an operation returns unchanged, by its number, of operands some of which are known.
pub fn unchanged(op: Op, operands: [Option<i64>; 2]) -> Option<usize> {
    match (op, operands) {
        (Op::Add | Op::BitOr | Op::BitXor, [Some(0), _]) | (Op::Mul, [Some(1), _]) => Some(1),
        (Op::BitAnd, [Some(-1), _]) => Some(1),
        (Op::BitOr | Op::BitXor, [_, Some(0)]) | (Op::BitAnd, [_, Some(-1)]) => Some(0),
        (Op::Add | Op::Sub | Op::Shl | Op::Shr, [_, Some(0)]) | (Op::Mul | Op::Div | Op::CeilDiv, [_, Some(1)]) => {
            Some(0)
        }
        _ => None,
    }
}

/// Whether an operation is 0 for any value of the unknown operand.
pub fn is_zero(op: Op, operands: [Option<i64>; 2]) -> bool {
    matches!((op, operands), (Op::Mul | Op::BitAnd, [Some(0), _] | [_, Some(0)]) | (Op::Rem, [_, Some(1 | -1)]))
}

/// How often a loop from `start` to before `end` runs; `None` if its step is not at least 1.
pub fn trips(start: i64, end: i64, step: i64) -> Option<u64> {
    let length = (i128::from(end) - i128::from(start)).max(0);
    let trips = exact(Op::CeilDiv, length, i128::from(step)).ok().filter(|_| step >= 1)?;
    Some(u64::try_from(trips).expect("at most the span of 64 bits"))
}
