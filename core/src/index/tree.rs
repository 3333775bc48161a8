//! Values of whole expressions, wherever they are kept.
//!
//! `&&`, `||` and `select` evaluate what decides and nothing else, from the left, so `K == 0 || N % K == 0` always has a value.
//! Of a tree that is not known in all its parts ([`Tree::partial`]) more can be decided: an operand that is open may be passed
//! over where the other one decides alone.
//!
//! Long chains (`1 + 1 + ..`) lean to the left; that side is walked in a loop, so recursion is as deep as brackets are nested.

use super::{Scalar, Undefined, binary, is_zero, unary};
use crate::ops::Op;

/// A part of an expression.
#[derive(Copy, Clone, Debug)]
pub enum Node<'t, N> {
    /// A literal.
    Int(i64),
    /// A name, or another leaf whose value the tree may know.
    Leaf,
    /// An operator and its operands.
    Op(Op, &'t [N]),
}

/// The storage of an expression.
pub trait Tree {
    /// Names a part.
    type Node: Copy;

    /// What is there.
    fn node(&self, at: Self::Node) -> Node<'_, Self::Node>;

    /// The value of a leaf; `None`: open.
    fn leaf(&self, at: Self::Node) -> Option<i64>;

    /// Whether leaves may be open because they will be known later, so that what does not depend on them is decided already.
    fn partial(&self) -> bool {
        false
    }
}

/// Why an expression has no value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Stop<N> {
    /// A leaf without a value.
    Open(N),
    /// An operation without one.
    Undefined(N, Undefined),
}

/// The value of an expression.
///
/// # Errors
/// The first leaf or operation that has no value, in the order of evaluation.
pub fn eval<T: Tree>(tree: &T, at: T::Node) -> Result<Scalar, Stop<T::Node>> {
    let Node::Op(op, &[a, b]) = tree.node(at) else { return start(tree, at) };
    if !matches!(tree.node(a), Node::Op(_, &[_, _])) {
        return join(tree, (at, op), start(tree, a), b);
    }
    let mut chain = vec![(at, op, b)];
    let mut first = a;
    while let Node::Op(op, &[a, b]) = tree.node(first) {
        chain.push((first, op, b));
        first = a;
    }
    let mut value = start(tree, first);
    for (at, op, right) in chain.into_iter().rev() {
        value = join(tree, (at, op), value, right);
    }
    value
}

/// The value of what is no binary operation.
fn start<T: Tree>(tree: &T, at: T::Node) -> Result<Scalar, Stop<T::Node>> {
    let (op, args) = match tree.node(at) {
        Node::Int(x) => return Ok(Scalar::Int(x)),
        Node::Leaf => return tree.leaf(at).map(Scalar::Int).ok_or(Stop::Open(at)),
        Node::Op(op, args) => (op, args),
    };
    let undefined = |why| Stop::Undefined(at, why);
    match (op, args) {
        (Op::Select, &[cond, a, b]) => match eval(tree, cond)? {
            Scalar::Truth(holds) => eval(tree, if holds { a } else { b }),
            Scalar::Int(_) => Err(undefined(Undefined::NotIndex(op))),
        },
        (_, &[a]) => match (op, eval(tree, a)?) {
            (Op::Not, Scalar::Truth(x)) => Ok(Scalar::Truth(!x)),
            (_, Scalar::Int(x)) => unary(op, x).map_err(undefined),
            _ => Err(undefined(Undefined::NotIndex(op))),
        },
        _ => Err(undefined(Undefined::NotIndex(op))),
    }
}

/// `left op right`, of which the left side is evaluated already.
fn join<T: Tree>(
    tree: &T,
    (at, op): (T::Node, Op),
    left: Result<Scalar, Stop<T::Node>>,
    right: T::Node,
) -> Result<Scalar, Stop<T::Node>> {
    let left = match left {
        Ok(left) => left,
        Err(Stop::Open(leaf)) if tree.partial() => {
            let decided = match (op, eval(tree, right)?) {
                (Op::And, Scalar::Truth(false)) => Some(Scalar::Truth(false)),
                (Op::Or, Scalar::Truth(true)) => Some(Scalar::Truth(true)),
                (_, Scalar::Int(x)) if is_zero(op, [None, Some(x)]) => Some(Scalar::Int(0)),
                _ => None,
            };
            return decided.ok_or(Stop::Open(leaf));
        }
        Err(stop) => return Err(stop),
    };
    let undefined = |why| Err(Stop::Undefined(at, why));
    match (op, left) {
        (Op::And, Scalar::Truth(false)) | (Op::Or, Scalar::Truth(true)) => return Ok(left),
        (Op::And | Op::Or, Scalar::Int(_)) => return undefined(Undefined::NotIndex(op)),
        _ => {}
    }
    match (left, eval(tree, right)?) {
        (Scalar::Int(a), Scalar::Int(b)) => binary(op, a, b).or_else(undefined),
        // The left side did not decide.
        (Scalar::Truth(_), decided @ Scalar::Truth(_)) if matches!(op, Op::And | Op::Or) => Ok(decided),
        _ => undefined(Undefined::NotIndex(op)),
    }
}

/// The integer that an expression is, if it has a value.
pub fn int<T: Tree>(tree: &T, at: T::Node) -> Option<i64> {
    eval(tree, at).ok()?.int()
}

/// The truth value that an expression is, if it has one.
pub fn truth<T: Tree>(tree: &T, at: T::Node) -> Option<bool> {
    eval(tree, at).ok()?.truth()
}
