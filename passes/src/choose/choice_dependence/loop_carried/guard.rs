//! Guards that test whether an extreme still has its initial value, and `select`.
//!
//! While all elements so far are masked, exponentials relative to the extreme are NaN.
//! `select(m > -inf, exp(m - m_new), 0.0)` and `select(m_new == -inf, 0.0, m_new)` replace them. This changes nothing,
//! because sums are zero while the extreme has its initial value.

use super::dependence_kind::{Kind, elementwise};
use super::tiles::{Tiles, literal};
use crate::analysis::past_end::Pad;
use tilec_ir::entities::Expr;
use tilec_ir::ops::{Op, ReduceOp};

impl Tiles<'_> {
    /// The kind of a comparison between an extreme and its initial value, or the infinity of that side.
    pub(super) fn guard(&mut self, op: Op, [a, b]: [Kind; 2], [x, y]: [Expr; 2]) -> Option<Kind> {
        let mirrored = match op {
            Op::Lt => Op::Gt,
            Op::Le => Op::Ge,
            Op::Gt => Op::Lt,
            Op::Ge => Op::Le,
            same => same,
        };
        let of = |kind| match kind {
            Kind::Old(v) => Some((v, None, None)),
            Kind::Grown(v, own @ (ReduceOp::Maximum | ReduceOp::Minimum), Some(last)) => {
                Some((v, Some(own), Some(last)))
            }
            _ => None,
        };
        let ((extreme, own, last), op, number) = match (of(a), of(b)) {
            (Some(extreme), None) => (extreme, op, literal(self.k, y)?),
            (None, Some(extreme)) => (extreme, mirrored, literal(self.k, x)?),
            _ => return None,
        };
        let begins_there = self.begins_with.get(&extreme) == Some(&number);
        let side = if number < 0.0 { ReduceOp::Maximum } else { ReduceOp::Minimum };
        let own = own.unwrap_or(side);
        if !(begins_there && number != 0.0 || number.is_infinite() && own == side) {
            return None;
        }
        let untouched = match (op, own) {
            (Op::Eq, _) | (Op::Le, ReduceOp::Maximum) | (Op::Ge, ReduceOp::Minimum) => true,
            (Op::Ne, _) | (Op::Gt, ReduceOp::Maximum) | (Op::Lt, ReduceOp::Minimum) => false,
            _ => return None,
        };
        self.guarded.insert((extreme, own == ReduceOp::Maximum));
        Some(Kind::Guard { extreme, last, untouched })
    }

    /// `select(c, a, b)`, which is `pad` past the end.
    pub(super) fn selected(&self, [c, a, b]: [Kind; 3], [x, y]: [Expr; 2], pad: Pad) -> Kind {
        if let Kind::Guard { extreme, last, untouched } = c {
            let ((began, e), other) = if untouched { ((a, x), b) } else { ((b, y), a) };
            let number = literal(self.k, e);
            return match other {
                Kind::Grown(v, ReduceOp::Maximum | ReduceOp::Minimum, own @ Some(_))
                    if (v, own) == (extreme, last) && began.is_fixed() =>
                {
                    Kind::Safe(v, own)
                }
                Kind::Old(v) if v == extreme && last.is_none() && began.is_fixed() => Kind::Safe(v, None),
                // The factor does not matter: the sum is zero, or becomes zero.
                Kind::Factor { extreme: v, .. } if v == extreme && (number == Some(0.0) || number == Some(1.0)) => {
                    other
                }
                Kind::Share { scale, .. }
                    if scale.extreme == extreme && Some(scale.last) == last && began == Kind::Zero =>
                {
                    other
                }
                _ => elementwise(&[c, a, b], c.pad()),
            };
        }
        if c.is_fixed() {
            return a.join(b);
        }
        match (c, a, b) {
            (Kind::Each { axes: own, .. }, Kind::Share { axes, scale, .. }, Kind::Zero)
            | (Kind::Each { axes: own, .. }, Kind::Zero, Kind::Share { axes, scale, .. })
                if own == axes =>
            {
                Kind::Share { axes, pad, scale }
            }
            _ => elementwise(&[c, a, b], pad),
        }
    }
}
