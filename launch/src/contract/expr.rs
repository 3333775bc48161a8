//! Expressions of the launch contract: grid extents, shapes, strides and preconditions.
//!
//! ```text
//! condition  = conjunction { "||" conjunction }
//! conjunction = comparison { "&&" comparison }
//! comparison = any [ ("==" | "!=" | "<" | "<=" | ">" | ">=") any ]
//! any        = either { "|" either }
//! either     = both { "^" both }
//! both       = shift { "&" shift }
//! shift      = sum { ("<<" | ">>") sum }
//! sum        = product { ("+" | "-") product }
//! product    = unary { ("*" | "/" | "%") unary }
//! unary      = { "-" | "!" | "~" } primary
//! primary    = integer | name | function "(" condition { "," condition } ")" | "(" condition ")"
//! function   = "ceildiv" | "min" | "max" | "abs" | "popcount" | "select"
//! ```
//!
//! What the operators mean is index arithmetic as in programs ([`tilec_core::index`]): integers of 64 bits, `/` and `%` that round
//! toward minus infinity, and an error where a result does not fit. `&&`, `||` and `select` evaluate only what decides, so
//! `K == 0 || N % K == 0` is safe. Integers and conditions are different kinds and are told apart while parsing; a
//! comparison does not chain.
//!
//! The text comes from a file that anyone may have written. Nesting is bounded by [`MAX_DEPTH`]; chains of operators of
//! one precedence lean to the left, which the evaluator walks without recursion. Nothing here panics.

use std::cmp::Reverse;
use std::sync::LazyLock;
use thiserror::Error;
use tilec_core::index::{self, Node, Scalar, Stop, Tree, Undefined};
use tilec_core::ops::{Form, Op};

/// Deepest nesting of parentheses, calls and prefix operators.
pub const MAX_DEPTH: u32 = 64;

/// Why an expression was refused or has no value. Offsets are in bytes from the start of the expression.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ExprError {
    /// Something else is where an operand, a name or a bracket must.
    #[error("found {found}, expected {expected}, at offset {at}")]
    Unexpected {
        /// Where.
        at: usize,
        /// What is there.
        found: String,
        /// The expected token.
        expected: &'static str,
    },
    /// A complete expression is followed by more text.
    #[error("found {found} after the end of the expression, at offset {at}")]
    Trailing {
        /// Byte offset of the unparsed rest.
        at: usize,
        /// What it starts with.
        found: String,
    },
    /// A condition where an integer belongs, or the reverse.
    #[error("found {found}, expected {expected}, at offset {at}")]
    Kind {
        /// Byte offset of the operand.
        at: usize,
        /// Its kind.
        found: Kind,
        /// The kind it must have.
        expected: Kind,
    },
    /// A function got the wrong number of arguments.
    #[error("`{function}` takes {expected}, found {found}, at offset {at}")]
    Arguments {
        /// Byte offset of the call.
        at: usize,
        /// The function.
        function: &'static str,
        /// The number it takes, in words.
        expected: &'static str,
        /// The number given.
        found: usize,
    },
    /// Nesting beyond [`MAX_DEPTH`].
    #[error("nested deeper than {MAX_DEPTH} levels, at offset {at}")]
    TooDeep {
        /// Byte offset of the level that exceeds the limit.
        at: usize,
    },
    /// A name that the caller has no value for.
    #[error("no value for the name `{name}`")]
    UnknownName {
        /// The name.
        name: String,
    },
    /// `/`, `%` or `ceildiv` by zero.
    #[error("division by zero in `{operator}`, at offset {at}")]
    DivisionByZero {
        /// Byte offset of the operator.
        at: usize,
        /// Which one.
        operator: &'static str,
    },
    /// A shift by less than nothing.
    #[error("shift by a negative number of bits in `{operator}`, at offset {at}")]
    NegativeShift {
        /// Byte offset of the operator.
        at: usize,
        /// Which one.
        operator: &'static str,
    },
    /// A value that does not fit 64 bits.
    #[error("the value of `{operator}` is out of range, at offset {at}")]
    Overflow {
        /// Byte offset of the operator or literal.
        at: usize,
        /// The operator, or `integer`.
        operator: &'static str,
    },
}

/// The type of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A number.
    Integer,
    /// Something that holds or not.
    Condition,
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Integer => "an integer",
            Self::Condition => "a condition",
        })
    }
}

/// A parsed expression. The values of its names come from a closure when it is evaluated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expr {
    /// Operands precede their operators; the last part is the whole expression.
    parts: Vec<Part>,
    kind: Kind,
}

/// A part of an expression, and where it is in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    at: usize,
    pub(super) what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum What {
    Literal(i64),
    Name(String),
    Op(Op, Vec<usize>),
}

impl Expr {
    /// Parses the whole of `text`.
    pub fn parse(text: &str) -> Result<Self, ExprError> {
        let mut parser = Parser { text, at: 0, depth: 0, parts: Vec::new(), operator: None };
        let (root, kind) = parser.condition()?;
        match parser.peek() {
            "" => {
                // Brackets around a whole name what is inside them.
                parser.parts.truncate(root + 1);
                Ok(Self { parts: parser.parts, kind })
            }
            found => Err(ExprError::Trailing { at: parser.at, found: quoted(found) }),
        }
    }

    /// Its parts: operands precede their operators, the whole expression is last.
    pub(super) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The names in it.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match &part.what {
            What::Name(name) => Some(name.as_str()),
            What::Literal(_) | What::Op(..) => None,
        })
    }

    /// Whether this is an integer or a condition.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The value of an integer expression. Fails on a condition.
    pub fn integer(&self, lookup: &dyn Fn(&str) -> Option<i64>) -> Result<i64, ExprError> {
        want(0, self.kind, Kind::Integer)?;
        Ok(self.eval(lookup)?.int().expect("the parser tells integers from conditions"))
    }

    /// Whether a condition holds. Fails on an integer.
    pub fn condition(&self, lookup: &dyn Fn(&str) -> Option<i64>) -> Result<bool, ExprError> {
        want(0, self.kind, Kind::Condition)?;
        Ok(self.eval(lookup)?.truth().expect("the parser tells integers from conditions"))
    }

    /// Folds the expression bottom-up: from numbers, names, and operators with the results of their operands.
    pub fn build<T: Clone>(
        &self,
        number: &dyn Fn(i64) -> T,
        name: &dyn Fn(&str) -> T,
        operation: &dyn Fn(Op, &[T]) -> T,
    ) -> T {
        let mut made: Vec<T> = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            let next = match &part.what {
                What::Literal(x) => number(*x),
                What::Name(text) => name(text),
                What::Op(op, args) => operation(*op, &args.iter().map(|&i| made[i].clone()).collect::<Vec<T>>()),
            };
            made.push(next);
        }
        made.pop().expect("an expression has parts, and the last one is the whole")
    }

    fn eval(&self, lookup: &dyn Fn(&str) -> Option<i64>) -> Result<Scalar, ExprError> {
        let whole = self.parts.len() - 1;
        index::eval(&Valued { parts: &self.parts, lookup }, whole).map_err(|stop| match stop {
            Stop::Open(part) => match &self.parts[part].what {
                What::Name(name) => ExprError::UnknownName { name: name.clone() },
                What::Literal(_) | What::Op(..) => unreachable!("only names are looked up"),
            },
            Stop::Undefined(part, why) => {
                let at = self.parts[part].at;
                match why {
                    Undefined::Overflow(op) => ExprError::Overflow { at, operator: op.token() },
                    Undefined::ZeroDivisor(op) => ExprError::DivisionByZero { at, operator: op.token() },
                    Undefined::NegativeShift(op) => ExprError::NegativeShift { at, operator: op.token() },
                    Undefined::NotIndex(op) => unreachable!("the parser has checked the operands of `{}`", op.token()),
                }
            }
        })
    }
}

/// An expression with the values of its names.
struct Valued<'e> {
    parts: &'e [Part],
    lookup: &'e dyn Fn(&str) -> Option<i64>,
}

impl Tree for Valued<'_> {
    type Node = usize;

    fn node(&self, at: usize) -> Node<'_, usize> {
        match &self.parts[at].what {
            What::Literal(x) => Node::Int(*x),
            What::Name(_) => Node::Leaf,
            What::Op(op, args) => Node::Op(*op, args),
        }
    }

    fn leaf(&self, at: usize) -> Option<i64> {
        match &self.parts[at].what {
            What::Name(name) => (self.lookup)(name),
            What::Literal(_) | What::Op(..) => None,
        }
    }
}

/// Parses and evaluates an integer expression.
pub fn integer(text: &str, lookup: &dyn Fn(&str) -> Option<i64>) -> Result<i64, ExprError> {
    Expr::parse(text)?.integer(lookup)
}

/// Parses a condition and evaluates it.
pub fn condition(text: &str, lookup: &dyn Fn(&str) -> Option<i64>) -> Result<bool, ExprError> {
    Expr::parse(text)?.condition(lookup)
}

/// The operators of a precedence, from the loosest.
const OR: &[Op] = &[Op::Or];
const AND: &[Op] = &[Op::And];
const COMPARE: &[Op] = &[Op::Eq, Op::Ne, Op::Le, Op::Ge, Op::Lt, Op::Gt];
/// The same for operators on integers.
const INTEGERS: &[&[Op]] = &[
    &[Op::BitOr],
    &[Op::BitXor],
    &[Op::BitAnd],
    &[Op::Shl, Op::Shr],
    &[Op::Add, Op::Sub],
    &[Op::Mul, Op::Div, Op::Rem],
];

/// The operators that are written as calls.
const FUNCTIONS: &[Op] = &[Op::CeilDiv, Op::Min, Op::Max, Op::Abs, Op::Popcount, Op::Select];

struct Parser<'a> {
    text: &'a str,
    /// Offset of the next byte, always on a character boundary.
    at: usize,
    depth: u32,
    parts: Vec<Part>,
    /// The operator that is at an offset, if there is one.
    operator: Option<(usize, Option<Op>)>,
}

/// The infix operators with their tokens, long ones first: `||` before `|`.
static INFIX: LazyLock<Vec<(&str, Op)>> = LazyLock::new(|| {
    let infix = Op::ALL.iter().filter(|op| matches!(op.form(), Form::Infix(_)));
    let mut infix: Vec<(&str, Op)> = infix.map(|op| (op.token(), *op)).collect();
    infix.sort_by_key(|(token, _)| Reverse(token.len()));
    infix
});

/// The operator that a text begins with.
fn operator(text: &str) -> Option<Op> {
    // Most operands are followed by a bracket, a comma or the end.
    if matches!(text.as_bytes(), [] | [b')' | b',', ..]) {
        return None;
    }
    INFIX.iter().find(|(token, _)| text.starts_with(token)).map(|(_, op)| *op)
}

/// The number of a part, and its kind.
type Parsed = Result<(usize, Kind), ExprError>;

impl<'a> Parser<'a> {
    /// The rest of the text after white space, which is consumed.
    fn peek(&mut self) -> &'a str {
        let rest = self.text.get(self.at..).unwrap_or("");
        // Every rule looks here, and in most cases there is nothing to skip.
        if rest.as_bytes().first().is_none_or(u8::is_ascii_graphic) {
            return rest;
        }
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        trimmed
    }

    fn maybe(&mut self, token: &str) -> bool {
        let found = self.peek().starts_with(token);
        self.at += if found { token.len() } else { 0 };
        found
    }

    fn expect(&mut self, token: &str, expected: &'static str) -> Result<(), ExprError> {
        if self.maybe(token) { Ok(()) } else { Err(self.unexpected(expected)) }
    }

    fn unexpected(&mut self, expected: &'static str) -> ExprError {
        let found = quoted(self.peek());
        ExprError::Unexpected { at: self.at, found, expected }
    }

    fn maybe_op(&mut self, row: &[Op]) -> Option<Op> {
        let text = self.peek();
        // Every row of operators has the operator here.
        let op = match self.operator {
            Some((at, op)) if at == self.at => op,
            _ => operator(text),
        };
        self.operator = Some((self.at, op));
        op.filter(|op| row.contains(op) && self.maybe(op.token()))
    }

    fn part(&mut self, at: usize, what: What) -> usize {
        self.parts.push(Part { at, what });
        self.parts.len() - 1
    }

    /// `operand { op operand }` over the operators of `row`, all of the kind `operands`.
    fn chain(
        &mut self,
        row: &[Op],
        operands: Kind,
        yields: Kind,
        mut operand: impl FnMut(&mut Self) -> Parsed,
    ) -> Parsed {
        self.peek();
        let start = self.at;
        let (mut value, mut kind) = operand(self)?;
        let mut first = true;
        loop {
            self.peek();
            let op_at = self.at;
            let Some(op) = self.maybe_op(row) else { return Ok((value, kind)) };
            if first {
                want(start, kind, operands)?;
            }
            self.peek();
            let operand_at = self.at;
            let (right, right_kind) = operand(self)?;
            want(operand_at, right_kind, operands)?;
            (value, kind, first) = (self.part(op_at, What::Op(op, vec![value, right])), yields, false);
            if operands != yields {
                // A comparison does not chain.
                return Ok((value, kind));
            }
        }
    }

    fn condition(&mut self) -> Parsed {
        self.chain(OR, Kind::Condition, Kind::Condition, Self::conjunction)
    }

    fn conjunction(&mut self) -> Parsed {
        self.chain(AND, Kind::Condition, Kind::Condition, Self::comparison)
    }

    fn comparison(&mut self) -> Parsed {
        self.chain(COMPARE, Kind::Integer, Kind::Condition, |p| p.integers(INTEGERS))
    }

    /// Operands of the tightest operators, joined by these, from the loosest.
    fn integers(&mut self, rows: &[&[Op]]) -> Parsed {
        match rows {
            [] => self.unary(),
            [row, tighter @ ..] => self.chain(row, Kind::Integer, Kind::Integer, |p| p.integers(tighter)),
        }
    }

    /// Every recursion passes here, so here the depth is counted.
    fn unary(&mut self) -> Parsed {
        self.peek();
        if self.depth == MAX_DEPTH {
            return Err(ExprError::TooDeep { at: self.at });
        }
        self.depth += 1;
        let parsed = self.unary_at_depth();
        self.depth -= 1;
        parsed
    }

    fn unary_at_depth(&mut self) -> Parsed {
        let at = self.at;
        if self.maybe("-") {
            // The least number of 64 bits is the negative of none.
            if self.peek().starts_with(|c: char| c.is_ascii_digit()) {
                return self.literal("-");
            }
            let (operand, kind) = self.unary()?;
            want(at + 1, kind, Kind::Integer)?;
            return Ok((self.part(at, What::Op(Op::Neg, vec![operand])), Kind::Integer));
        }
        if self.maybe("~") {
            let (operand, kind) = self.unary()?;
            want(at + 1, kind, Kind::Integer)?;
            return Ok((self.part(at, What::Op(Op::BitNot, vec![operand])), Kind::Integer));
        }
        if !self.peek().starts_with("!=") && self.maybe("!") {
            let (operand, kind) = self.unary()?;
            want(at + 1, kind, Kind::Condition)?;
            return Ok((self.part(at, What::Op(Op::Not, vec![operand])), Kind::Condition));
        }
        self.primary()
    }

    /// A word of digits.
    fn literal(&mut self, sign: &str) -> Parsed {
        let rest = self.peek();
        let at = self.at;
        let word = &rest[..word_length(rest)];
        if !word.bytes().all(|b| b.is_ascii_digit()) {
            return Err(self.unexpected("an integer, a name or `(`"));
        }
        let value = format!("{sign}{word}").parse();
        let value = value.map_err(|_| ExprError::Overflow { at, operator: "integer" })?;
        self.at += word.len();
        Ok((self.part(at, What::Literal(value)), Kind::Integer))
    }

    fn primary(&mut self) -> Parsed {
        let rest = self.peek();
        let at = self.at;
        if self.maybe("(") {
            let inner = self.condition()?;
            self.expect(")", "`)`")?;
            return Ok(inner);
        }
        let word = &rest[..word_length(rest)];
        match word.as_bytes() {
            [b'0'..=b'9', ..] => self.literal(""),
            [b'a'..=b'z' | b'A'..=b'Z' | b'_', ..] => {
                self.at += word.len();
                if !self.peek().starts_with('(') {
                    return Ok((self.part(at, What::Name(word.to_owned())), Kind::Integer));
                }
                match FUNCTIONS.iter().find(|op| op.token() == word) {
                    Some(&function) => self.call(at, function),
                    None => Err(ExprError::Unexpected {
                        at,
                        found: quoted(word),
                        expected: "`ceildiv`, `min`, `max`, `abs`, `popcount` or `select`",
                    }),
                }
            }
            _ => Err(self.unexpected("an integer, a name or `(`")),
        }
    }

    fn call(&mut self, at: usize, function: Op) -> Parsed {
        self.expect("(", "`(`")?;
        let mut arguments = Vec::new();
        if !self.peek().starts_with(')') {
            loop {
                let start = self.at;
                let (argument, kind) = self.condition()?;
                let chooses = function == Op::Select && arguments.is_empty();
                want(start, kind, if chooses { Kind::Condition } else { Kind::Integer })?;
                arguments.push(argument);
                if !self.maybe(",") {
                    break;
                }
                self.peek();
            }
        }
        self.expect(")", "`,` or `)`")?;
        let several = matches!(function, Op::Min | Op::Max);
        let (fits, expected) = match function.arity() {
            _ if several => (!arguments.is_empty(), "at least 1 argument"),
            1 => (arguments.len() == 1, "1 argument"),
            2 => (arguments.len() == 2, "2 arguments"),
            n => (arguments.len() == n, "3 arguments"),
        };
        if !fits {
            let found = arguments.len();
            return Err(ExprError::Arguments { at, function: function.token(), expected, found });
        }
        if !several {
            return Ok((self.part(at, What::Op(function, arguments)), Kind::Integer));
        }
        let mut value = arguments[0];
        for &argument in &arguments[1..] {
            value = self.part(at, What::Op(function, vec![value, argument]));
        }
        Ok((value, Kind::Integer))
    }
}

/// The length of the word at the start of a text.
fn word_length(text: &str) -> usize {
    text.bytes().position(|b| !(b.is_ascii_alphanumeric() || b == b'_')).unwrap_or(text.len())
}

fn want(at: usize, found: Kind, expected: Kind) -> Result<(), ExprError> {
    if found == expected { Ok(()) } else { Err(ExprError::Kind { at, found, expected }) }
}

/// The first character or word of `rest`, for a message; control characters are escaped.
fn quoted(rest: &str) -> String {
    let end = word_length(rest);
    match rest.chars().next() {
        None => "the end".to_owned(),
        Some(c) if end == 0 => format!("`{}`", c.escape_debug()),
        Some(_) if end > 40 => format!("`{}...`", &rest[..40]),
        Some(_) => format!("`{}`", &rest[..end]),
    }
}

#[cfg(test)]
#[path = "expr_tests.rs"]
mod tests;
