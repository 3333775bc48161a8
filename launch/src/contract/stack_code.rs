//! Expressions in the form that launches evaluate: names are numbers of slots, operands are on a stack, and `&&`, `||` and
//! `select` are jumps. What the operators mean is still [`tilec_core::index`] alone; only the walk over the tree is gone.

use super::expr::{Expr, ExprError, Kind, What};
use tilec_core::index::{self, Scalar};
use tilec_core::ops::Op;

/// Operands that most expressions never have at a time; the stack of others is allocated.
const USUAL_DEPTH: usize = 16;

/// An expression over slots.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Flat {
    code: Vec<Inst>,
    /// Most operands on the stack.
    depth: usize,
    kind: Kind,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Inst {
    Int(i64),
    Slot(usize),
    Unary(Op),
    Binary(Op),
    /// Jumps to an instruction if the top of the stack has this value, and keeps it; otherwise drops it.
    Decided(bool, usize),
    /// Drops the top; to an instruction if it does not hold.
    Unless(usize),
    Jump(usize),
}

/// The continuation after the code of an operand.
#[derive(Copy, Clone)]
enum After {
    Nothing,
    /// The right side, unless the left one is this.
    Right(bool),
    /// The value if the condition holds.
    Then,
    /// The value if it does not.
    Else,
}

impl Expr {
    /// The expression over the slots that `slot` gives for its names.
    ///
    /// # Errors
    /// A name has no slot.
    pub fn flatten(&self, slot: impl Fn(&str) -> Option<usize>) -> Result<Flat, ExprError> {
        let mut after = vec![After::Nothing; self.parts().len()];
        for part in self.parts() {
            match &part.what {
                What::Op(Op::And, args) => after[args[0]] = After::Right(false),
                What::Op(Op::Or, args) => after[args[0]] = After::Right(true),
                What::Op(Op::Select, args) => (after[args[0]], after[args[1]]) = (After::Then, After::Else),
                What::Op(..) | What::Name(_) | What::Literal(_) => {}
            }
        }
        // Operands precede their operators, so the parts in order are the code.
        let (mut code, mut open) = (Vec::new(), vec![Vec::new(); self.parts().len()]);
        let (mut height, mut depth) = (0usize, 0);
        for (at, part) in self.parts().iter().enumerate() {
            match &part.what {
                What::Literal(x) => code.push(Inst::Int(*x)),
                What::Name(name) => {
                    let slot = slot(name).ok_or_else(|| ExprError::UnknownName { name: name.clone() })?;
                    code.push(Inst::Slot(slot));
                }
                What::Op(Op::And | Op::Or, args) => patch(&mut code, &open[args[0]], 0),
                What::Op(Op::Select, args) => {
                    // The jump after the first value ends here; the conditional jump goes to after that jump.
                    let ends: Vec<usize> = open[args[1]].clone();
                    let begin = ends.first().map_or(code.len(), |jump| jump + 1);
                    for &unless in &open[args[0]] {
                        code[unless] = Inst::Unless(begin);
                    }
                    patch(&mut code, &ends, 0);
                }
                What::Op(op, args) if args.len() == 1 => code.push(Inst::Unary(*op)),
                What::Op(op, _) => code.push(Inst::Binary(*op)),
            }
            height = match &part.what {
                What::Literal(_) | What::Name(_) => height + 1,
                // Jumps have taken one operand of the two, or two of the three.
                What::Op(Op::And | Op::Or | Op::Select, _) => height,
                What::Op(_, args) => height + 1 - args.len(),
            };
            depth = depth.max(height);
            match after[at] {
                After::Nothing => continue,
                After::Right(decided) => code.push(Inst::Decided(decided, 0)),
                After::Then => code.push(Inst::Unless(0)),
                After::Else => code.push(Inst::Jump(0)),
            }
            height -= 1;
            open[at].push(code.len() - 1);
        }
        Ok(Flat { code, depth, kind: self.kind() })
    }
}

/// Has jumps go to the end of the code.
fn patch(code: &mut [Inst], jumps: &[usize], beyond: usize) {
    let end = code.len() + beyond;
    for &jump in jumps {
        match &mut code[jump] {
            Inst::Decided(_, to) | Inst::Unless(to) | Inst::Jump(to) => *to = end,
            Inst::Int(_) | Inst::Slot(_) | Inst::Unary(_) | Inst::Binary(_) => unreachable!("only jumps are open"),
        }
    }
}

impl Flat {
    /// The value, or `None` where there is none: a division by zero, or a result beyond 64 bits. Conditions are 0 or 1.
    pub fn eval(&self, slots: &[Option<i64>]) -> Option<i64> {
        if self.depth <= USUAL_DEPTH {
            self.eval_on(&mut [0; USUAL_DEPTH], slots)
        } else {
            self.eval_on(&mut vec![0; self.depth], slots)
        }
    }

    /// Whether a condition holds; one without a value does not.
    pub fn holds(&self, slots: &[Option<i64>]) -> bool {
        self.kind == Kind::Condition && self.eval(slots) == Some(1)
    }

    /// Most operands on the stack.
    #[cfg(any(feature = "cuda", feature = "sim"))]
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// Whether it is a condition, whose value is 0 or 1.
    #[cfg(any(feature = "cuda", feature = "sim"))]
    pub(crate) fn is_condition(&self) -> bool {
        self.kind == Kind::Condition
    }

    /// The instructions as numbers, as the launch table of a bundle has them: an operation, and an operand or 0.
    #[cfg(any(feature = "cuda", feature = "sim"))]
    pub(crate) fn encoded(&self) -> Vec<(u32, i64)> {
        let one = |inst: &Inst| match inst {
            Inst::Int(x) => (0, *x),
            Inst::Slot(slot) => (1, *slot as i64),
            Inst::Decided(decided, to) => (2 + u32::from(*decided), *to as i64),
            Inst::Unless(to) => (4, *to as i64),
            Inst::Jump(to) => (5, *to as i64),
            // Of one operand.
            Inst::Unary(Op::Min | Op::Max) => (6, 0),
            Inst::Unary(op) | Inst::Binary(op) => (operation(*op), 0),
        };
        self.code.iter().map(one).collect()
    }

    /// The slot, if the expression is nothing but a name.
    pub fn slot(&self) -> Option<usize> {
        match self.code.as_slice() {
            [Inst::Slot(slot)] => Some(*slot),
            _ => None,
        }
    }

    fn eval_on(&self, stack: &mut [i64], slots: &[Option<i64>]) -> Option<i64> {
        let value = |scalar: Scalar| match scalar {
            Scalar::Int(x) => x,
            Scalar::Truth(x) => i64::from(x),
        };
        let (mut at, mut top) = (0, 0);
        while let Some(inst) = self.code.get(at) {
            at += 1;
            match inst {
                Inst::Int(x) => {
                    stack[top] = *x;
                    top += 1;
                }
                Inst::Slot(slot) => {
                    stack[top] = (*slots.get(*slot)?)?;
                    top += 1;
                }
                Inst::Unary(Op::Not) => stack[top - 1] = 1 - stack[top - 1],
                Inst::Unary(op) => stack[top - 1] = value(index::unary(*op, stack[top - 1]).ok()?),
                Inst::Binary(op) => {
                    top -= 1;
                    stack[top - 1] = value(index::binary(*op, stack[top - 1], stack[top]).ok()?);
                }
                Inst::Decided(decided, to) if (stack[top - 1] != 0) == *decided => at = *to,
                Inst::Decided(..) => top -= 1,
                Inst::Unless(to) => {
                    top -= 1;
                    if stack[top] == 0 {
                        at = *to;
                    }
                }
                Inst::Jump(to) => at = *to,
            }
        }
        Some(stack[0])
    }
}

/// The number of an operator in launch tables.
#[cfg(any(feature = "cuda", feature = "sim"))]
fn operation(op: Op) -> u32 {
    match op {
        Op::Not => 16,
        Op::BitNot => 17,
        Op::Neg => 18,
        Op::Abs => 19,
        Op::Popcount => 20,
        Op::Add => 32,
        Op::Sub => 33,
        Op::Mul => 34,
        Op::Div => 35,
        Op::Rem => 36,
        Op::CeilDiv => 37,
        Op::Shl => 38,
        Op::Shr => 39,
        Op::Min => 40,
        Op::Max => 41,
        Op::Eq => 42,
        Op::Ne => 43,
        Op::Lt => 44,
        Op::Le => 45,
        Op::Gt => 46,
        Op::Ge => 47,
        Op::BitAnd => 48,
        Op::BitOr => 49,
        Op::BitXor => 50,
        other => unreachable!("`{}` is no operator of contracts", other.token()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    const NAMES: [&str; 4] = ["M", "N", "K", "S"];

    #[test]
    fn flat_expressions_have_the_values_of_trees() {
        let texts = [
            "M",
            "7",
            "-M",
            "1 - (M - 5) / 4",
            "M % N",
            "ceildiv(M * N, K)",
            "min(M, N, K, 3)",
            "max(S)",
            "abs(M - N)",
            "K % 8 == 0",
            "M * N >= 40 && K < 5 || S == 1",
            "K == 0 || N % K == 0",
            "K != 0 && N / K > 1",
            "!(M < N)",
            "select(M < N, M / K, N - S)",
            "select(K == 0 || M / K > 2, select(N > 1, 5, 6), M * 2) + 1",
            "S >= (N - 1) * K + M || K >= (M - 1) * S + N || M == 1 || N == 1",
            "M * 4611686018427387904",
            "((((M + N) * (K - S)) + 3) << 2) & 12 | popcount(S) ^ ~M",
            "M + (N + (K + (S + (M + (N + (K + (S + (M + (N + (K + (S + (M + (N + (K + (S + (M + 1))))))))))))))))",
        ];
        for text in texts {
            let tree = Expr::parse(text).expect(text);
            let flat = tree.flatten(|name| NAMES.iter().position(|n| *n == name)).expect(text);
            for case in 0..625i64 {
                let slots = [case % 5, case / 5 % 5, case / 25 % 5, case / 125 % 5].map(|x| Some(3 * x - 4));
                let lookup = |name: &str| NAMES.iter().position(|n| *n == name).and_then(|i| slots[i]);
                let expected = match tree.kind() {
                    Kind::Integer => tree.integer(&lookup).ok(),
                    Kind::Condition => tree.condition(&lookup).ok().map(i64::from),
                };
                assert_eq!(flat.eval(&slots), expected, "{text} with {slots:?}");
            }
        }
        assert!(Expr::parse("X + 1").expect("an expression").flatten(|_| None).is_err());
    }
}
