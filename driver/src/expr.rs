//! Expressions of the launch contract: grid extents, shapes, strides and preconditions.
//!
//! ```text
//! condition  = conjunction { "||" conjunction }
//! conjunction = comparison { "&&" comparison }
//! comparison = sum [ ("==" | "!=" | "<" | "<=" | ">" | ">=") sum ]
//! sum        = product { ("+" | "-") product }
//! product    = unary { ("*" | "/" | "%") unary }
//! unary      = { "-" | "!" } primary
//! primary    = integer | name | function "(" condition { "," condition } ")" | "(" condition ")"
//! function   = "ceildiv" | "min" | "max"
//! ```
//!
//! Integers are exact in `i128` and every operation is checked. `/` truncates towards zero and `%` has the sign of the
//! dividend; `ceildiv` rounds the exact quotient up. `&&` and `||` skip their right side where the left one decides, so
//! `K == 0 || N % K == 0` is safe. Integers and conditions are different kinds and are told apart while parsing; a
//! comparison does not chain.
//!
//! The text comes from a file that anyone may have written. Nesting is bounded by [`MAX_DEPTH`]; a chain of operators of
//! one precedence is one node, so a long flat expression needs no deep recursion either. Nothing here panics.

use thiserror::Error;

/// Deepest nesting of parentheses, calls and prefix operators.
pub const MAX_DEPTH: u32 = 64;

/// Why an expression was refused or has no value. Offsets are in bytes from the start of the expression.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ExprError {
    /// Something else stands where an operand, a name or a bracket must.
    #[error("found {found}, expected {expected}, at offset {at}")]
    Unexpected {
        /// Where.
        at: usize,
        /// What stands there.
        found: String,
        /// What the grammar wants.
        expected: &'static str,
    },
    /// A complete expression is followed by more text.
    #[error("found {found} after the end of the expression, at offset {at}")]
    Trailing {
        /// Where the rest starts.
        at: usize,
        /// What it starts with.
        found: String,
    },
    /// A condition where an integer belongs, or the reverse.
    #[error("found {found}, expected {expected}, at offset {at}")]
    Kind {
        /// Where the operand starts.
        at: usize,
        /// Its kind.
        found: Kind,
        /// The kind it must have.
        expected: Kind,
    },
    /// A function got the wrong number of arguments.
    #[error("`{function}` takes {expected}, found {found}, at offset {at}")]
    Arguments {
        /// Where the call starts.
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
        /// Where the level begins that is one too many.
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
        /// Where the operator is.
        at: usize,
        /// Which one.
        operator: &'static str,
    },
    /// A value outside `i128`.
    #[error("the value of `{operator}` is out of range, at offset {at}")]
    Overflow {
        /// Where the operator or literal is.
        at: usize,
        /// The operator, or `integer`.
        operator: &'static str,
    },
}

/// What an expression yields.
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
    root: Node,
    kind: Kind,
}

impl Expr {
    /// Parses the whole of `text`.
    pub fn parse(text: &str) -> Result<Self, ExprError> {
        let mut parser = Parser { text, at: 0, depth: 0 };
        let (root, kind) = parser.condition()?;
        match parser.peek() {
            "" => Ok(Self { root, kind }),
            found => Err(ExprError::Trailing { at: parser.at, found: quoted(found) }),
        }
    }

    /// Whether this is an integer or a condition.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The value of an integer expression. Fails on a condition.
    pub fn integer(&self, lookup: &dyn Fn(&str) -> Option<i128>) -> Result<i128, ExprError> {
        want(0, self.kind, Kind::Integer)?;
        self.root.eval(lookup)
    }

    /// Whether a condition holds. Fails on an integer.
    pub fn condition(&self, lookup: &dyn Fn(&str) -> Option<i128>) -> Result<bool, ExprError> {
        want(0, self.kind, Kind::Condition)?;
        Ok(self.root.eval(lookup)? != 0)
    }
}

/// Parses and evaluates an integer expression.
pub fn integer(text: &str, lookup: &dyn Fn(&str) -> Option<i128>) -> Result<i128, ExprError> {
    Expr::parse(text)?.integer(lookup)
}

/// Parses a condition and says whether it holds.
pub fn condition(text: &str, lookup: &dyn Fn(&str) -> Option<i128>) -> Result<bool, ExprError> {
    Expr::parse(text)?.condition(lookup)
}

/// Conditions evaluate to 0 or 1; the kinds were checked by the parser.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Node {
    Literal(i128),
    Name(String),
    Negate(usize, Box<Node>),
    Not(Box<Node>),
    /// Left-associative operators of one precedence, each with its offset.
    Chain(Box<Node>, Vec<(Op, usize, Node)>),
    Call(Function, usize, Vec<Node>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Op {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    And,
    Or,
}

/// Spelling and operator, a row per precedence from the loosest. Longer spellings come first.
const OR: &[(&str, Op)] = &[("||", Op::Or)];
const AND: &[(&str, Op)] = &[("&&", Op::And)];
const COMPARE: &[(&str, Op)] =
    &[("==", Op::Eq), ("!=", Op::Ne), ("<=", Op::Le), (">=", Op::Ge), ("<", Op::Lt), (">", Op::Gt)];
const SUM: &[(&str, Op)] = &[("+", Op::Add), ("-", Op::Sub)];
const PRODUCT: &[(&str, Op)] = &[("*", Op::Mul), ("/", Op::Div), ("%", Op::Rem)];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Function {
    CeilDiv,
    Min,
    Max,
}

const FUNCTIONS: &[(&str, Function)] =
    &[("ceildiv", Function::CeilDiv), ("min", Function::Min), ("max", Function::Max)];

impl Node {
    fn eval(&self, lookup: &dyn Fn(&str) -> Option<i128>) -> Result<i128, ExprError> {
        match self {
            Self::Literal(value) => Ok(*value),
            Self::Name(name) => lookup(name).ok_or_else(|| ExprError::UnknownName { name: name.clone() }),
            Self::Negate(at, operand) => {
                operand.eval(lookup)?.checked_neg().ok_or(ExprError::Overflow { at: *at, operator: "-" })
            }
            Self::Not(operand) => Ok(i128::from(operand.eval(lookup)? == 0)),
            Self::Chain(first, rest) => {
                let mut value = first.eval(lookup)?;
                for (op, at, operand) in rest {
                    value = match (op, value) {
                        (Op::And, 0) => 0,
                        (Op::Or, 1..) => 1,
                        _ => apply(*op, *at, value, operand.eval(lookup)?)?,
                    };
                }
                Ok(value)
            }
            Self::Call(function, at, arguments) => call(*function, *at, arguments, lookup),
        }
    }
}

fn apply(op: Op, at: usize, a: i128, b: i128) -> Result<i128, ExprError> {
    let checked = |value: Option<i128>, operator| value.ok_or(ExprError::Overflow { at, operator });
    let nonzero = |operator| if b == 0 { Err(ExprError::DivisionByZero { at, operator }) } else { Ok(()) };
    match op {
        Op::Add => checked(a.checked_add(b), "+"),
        Op::Sub => checked(a.checked_sub(b), "-"),
        Op::Mul => checked(a.checked_mul(b), "*"),
        Op::Div => nonzero("/").and_then(|()| checked(a.checked_div(b), "/")),
        // The remainder of `i128::MIN % -1` is 0, although the quotient overflows.
        Op::Rem => nonzero("%").map(|()| a.wrapping_rem(b)),
        Op::Eq => Ok(i128::from(a == b)),
        Op::Ne => Ok(i128::from(a != b)),
        Op::Lt => Ok(i128::from(a < b)),
        Op::Le => Ok(i128::from(a <= b)),
        Op::Gt => Ok(i128::from(a > b)),
        Op::Ge => Ok(i128::from(a >= b)),
        // The left side did not decide.
        Op::And | Op::Or => Ok(b),
    }
}

fn call(
    function: Function,
    at: usize,
    arguments: &[Node],
    lookup: &dyn Fn(&str) -> Option<i128>,
) -> Result<i128, ExprError> {
    let values = arguments.iter().map(|node| node.eval(lookup)).collect::<Result<Vec<_>, _>>()?;
    match function {
        Function::CeilDiv => {
            // The parser counted the arguments.
            let (a, b) = (values[0], values[1]);
            if b == 0 {
                return Err(ExprError::DivisionByZero { at, operator: "ceildiv" });
            }
            let quotient = a.checked_div(b).ok_or(ExprError::Overflow { at, operator: "ceildiv" })?;
            // Truncation already rounds a negative quotient up. The quotient is far from the ends of
            // the range where there is a remainder, since then |b| > 1.
            let inexact = a.wrapping_rem(b) != 0 && (a < 0) == (b < 0);
            Ok(quotient + i128::from(inexact))
        }
        Function::Min => Ok(values.into_iter().fold(i128::MAX, i128::min)),
        Function::Max => Ok(values.into_iter().fold(i128::MIN, i128::max)),
    }
}

struct Parser<'a> {
    text: &'a str,
    /// Offset of the next byte, always on a character boundary.
    at: usize,
    depth: u32,
}

type Parsed = Result<(Node, Kind), ExprError>;

impl<'a> Parser<'a> {
    /// The rest of the text after white space, which is consumed.
    fn peek(&mut self) -> &'a str {
        let rest = self.text.get(self.at..).unwrap_or("");
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

    fn maybe_op(&mut self, row: &[(&str, Op)]) -> Option<Op> {
        row.iter().find(|(spelling, _)| self.maybe(spelling)).map(|(_, op)| *op)
    }

    /// `operand { op operand }` over the operators of `row`, all of the kind `operands`.
    fn chain(
        &mut self,
        row: &[(&str, Op)],
        operands: Kind,
        yields: Kind,
        mut operand: impl FnMut(&mut Self) -> Parsed,
    ) -> Parsed {
        self.peek();
        let start = self.at;
        let (first, kind) = operand(self)?;
        let mut rest = Vec::new();
        loop {
            self.peek();
            let op_at = self.at;
            let Some(op) = self.maybe_op(row) else { break };
            if rest.is_empty() {
                want(start, kind, operands)?;
            }
            self.peek();
            let operand_at = self.at;
            let (node, kind) = operand(self)?;
            want(operand_at, kind, operands)?;
            rest.push((op, op_at, node));
            if operands != yields {
                // A comparison does not chain.
                break;
            }
        }
        if rest.is_empty() { Ok((first, kind)) } else { Ok((Node::Chain(Box::new(first), rest), yields)) }
    }

    fn condition(&mut self) -> Parsed {
        self.chain(OR, Kind::Condition, Kind::Condition, Self::conjunction)
    }

    fn conjunction(&mut self) -> Parsed {
        self.chain(AND, Kind::Condition, Kind::Condition, Self::comparison)
    }

    fn comparison(&mut self) -> Parsed {
        self.chain(COMPARE, Kind::Integer, Kind::Condition, Self::sum)
    }

    fn sum(&mut self) -> Parsed {
        self.chain(SUM, Kind::Integer, Kind::Integer, Self::product)
    }

    fn product(&mut self) -> Parsed {
        self.chain(PRODUCT, Kind::Integer, Kind::Integer, Self::unary)
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
            let (node, kind) = self.unary()?;
            want(at + 1, kind, Kind::Integer)?;
            return Ok((Node::Negate(at, Box::new(node)), Kind::Integer));
        }
        if !self.peek().starts_with("!=") && self.maybe("!") {
            let (node, kind) = self.unary()?;
            want(at + 1, kind, Kind::Condition)?;
            return Ok((Node::Not(Box::new(node)), Kind::Condition));
        }
        self.primary()
    }

    fn primary(&mut self) -> Parsed {
        let rest = self.peek();
        let at = self.at;
        if self.maybe("(") {
            let inner = self.condition()?;
            self.expect(")", "`)`")?;
            return Ok(inner);
        }
        let length = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let word = &rest[..length];
        match word.as_bytes() {
            [b'0'..=b'9', ..] if word.bytes().all(|b| b.is_ascii_digit()) => {
                let value = word.parse().map_err(|_| ExprError::Overflow { at, operator: "integer" })?;
                self.at += length;
                Ok((Node::Literal(value), Kind::Integer))
            }
            [b'a'..=b'z' | b'A'..=b'Z' | b'_', ..] => {
                self.at += length;
                if !self.peek().starts_with('(') {
                    return Ok((Node::Name(word.to_owned()), Kind::Integer));
                }
                match FUNCTIONS.iter().find(|(name, _)| *name == word) {
                    Some(&(name, function)) => self.call(at, name, function),
                    None => {
                        Err(ExprError::Unexpected { at, found: quoted(word), expected: "`ceildiv`, `min` or `max`" })
                    }
                }
            }
            _ => Err(self.unexpected("an integer, a name or `(`")),
        }
    }

    fn call(&mut self, at: usize, name: &'static str, function: Function) -> Parsed {
        self.expect("(", "`(`")?;
        let mut arguments = Vec::new();
        if !self.peek().starts_with(')') {
            loop {
                let start = self.at;
                let (node, kind) = self.condition()?;
                want(start, kind, Kind::Integer)?;
                arguments.push(node);
                if !self.maybe(",") {
                    break;
                }
                self.peek();
            }
        }
        self.expect(")", "`,` or `)`")?;
        let (fits, expected) = match function {
            Function::CeilDiv => (arguments.len() == 2, "2 arguments"),
            Function::Min | Function::Max => (!arguments.is_empty(), "at least 1 argument"),
        };
        if !fits {
            return Err(ExprError::Arguments { at, function: name, expected, found: arguments.len() });
        }
        Ok((Node::Call(function, at, arguments), Kind::Integer))
    }
}

fn want(at: usize, found: Kind, expected: Kind) -> Result<(), ExprError> {
    if found == expected { Ok(()) } else { Err(ExprError::Kind { at, found, expected }) }
}

/// The first character or word of `rest`, for a message; control characters are escaped.
fn quoted(rest: &str) -> String {
    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
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
