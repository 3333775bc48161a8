//! Constant expressions (PTX 4.5): literals, `WARP_SZ`, the operators of C, casts to `.s64` and `.u64`.
//!
//! Integers have 64 bits and are signed unless the literal has `U` or does not fit; floats are double. Result types are
//! those of ptxas 12.9. `%` and `~` give unsigned numbers, comparisons, `!`, `&&` and `
//! ` signed ones. Shifts and `?:` have the type of the value that they return; other operators are unsigned as soon as
//! one operand is. Shifts use six bits of their distance. Every part is evaluated, so that a division by zero is always
//! an error.

use super::cursor::Parser;
use super::error::Result;
use super::lex::{Pos, Tok};

/// Parentheses, prefixes and `?:` within each other.
const MAX_DEPTH: usize = 64;

/// The value of an expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    Signed(i64),
    Unsigned(u64),
    Float(f64),
}

impl Value {
    /// The bits of an integer.
    pub(super) fn integer(self, pos: Pos) -> Result<u64> {
        match self {
            Value::Signed(v) => Ok(v as u64),
            Value::Unsigned(v) => Ok(v),
            Value::Float(_) => Err(pos.error("expected an integer, found a float")),
        }
    }

    fn with(self, bits: u64) -> Value {
        if let Value::Unsigned(_) = self { Value::Unsigned(bits) } else { Value::Signed(bits as i64) }
    }
}

/// Binary operators; those further down bind tighter.
const LEVELS: &[&[&str]] = &[
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<", "<=", ">", ">="],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

/// A prefix of an operand.
enum Prefix {
    Plus,
    Minus,
    Complement,
    Not,
    Signed,
    Unsigned,
}

fn truth(b: bool) -> Value {
    Value::Signed(i64::from(b))
}

impl<'a> Parser<'a> {
    /// A constant expression that is an integer, as its bits.
    pub(super) fn integer(&mut self) -> Result<u64> {
        let pos = self.pos();
        self.constant()?.integer(pos)
    }

    /// Whether a constant expression starts here, and not a register, a variable or a bit pattern (`0f...`), which is none.
    pub(super) fn at_constant(&self) -> bool {
        let named = || matches!(self.toks.get(self.at + 1), Some((Tok::Name(name), _)) if *name != "WARP_SZ");
        match self.peek() {
            Tok::Int(_) | Tok::Uint(_) | Tok::F64(_) | Tok::Name("WARP_SZ") | Tok::Punct(b'(' | b'+' | b'~') => true,
            Tok::Punct(b'-' | b'!') => !named(),
            _ => false,
        }
    }

    /// A constant expression.
    pub(super) fn constant(&mut self) -> Result<Value> {
        self.conditional(0)
    }

    fn conditional(&mut self, depth: usize) -> Result<Value> {
        let pos = self.pos();
        let condition = self.binary(0, depth)?;
        if !self.eat(b'?') {
            return Ok(condition);
        }
        let condition = condition.integer(pos)?;
        let depth = self.deeper(depth)?;
        let branch = |p: &mut Self| {
            let pos = p.pos();
            let value = p.conditional(depth)?;
            value.integer(pos).map(|_| value)
        };
        let yes = branch(self)?;
        self.expect(b':')?;
        let no = branch(self)?;
        Ok(if condition != 0 { yes } else { no })
    }

    fn deeper(&self, depth: usize) -> Result<usize> {
        if depth < MAX_DEPTH { Ok(depth + 1) } else { Err(self.pos().error("this expression is nested too deeply")) }
    }

    /// The operator of a level here.
    fn operator(&self, level: usize) -> Option<&'static str> {
        LEVELS[level].iter().copied().find(|op| match self.peek() {
            Tok::Op(found) => found == *op,
            Tok::Punct(c) => op.as_bytes() == [c],
            _ => false,
        })
    }

    fn binary(&mut self, level: usize, depth: usize) -> Result<Value> {
        if level == LEVELS.len() {
            return self.prefixed(depth);
        }
        let mut left = self.binary(level + 1, depth)?;
        while let Some(op) = self.operator(level) {
            let pos = self.pos();
            self.bump();
            let right = self.binary(level + 1, depth)?;
            left = apply(op, left, right, pos)?;
        }
        Ok(left)
    }

    fn prefixed(&mut self, depth: usize) -> Result<Value> {
        let mut prefixes = Vec::new();
        loop {
            let pos = self.pos();
            let prefix = match (self.peek(), self.toks.get(self.at + 1).map(|t| t.0)) {
                (Tok::Punct(b'+'), _) => Prefix::Plus,
                (Tok::Punct(b'-'), _) => Prefix::Minus,
                (Tok::Punct(b'~'), _) => Prefix::Complement,
                (Tok::Punct(b'!'), _) => Prefix::Not,
                (Tok::Punct(b'('), Some(Tok::Dot(word))) => {
                    self.bump();
                    self.bump();
                    let cast = match word {
                        "s64" => Prefix::Signed,
                        "u64" => Prefix::Unsigned,
                        _ => return Err(pos.error(format!("a constant is cast to `.s64` or `.u64`, not to `.{word}`"))),
                    };
                    if !self.is(b')') {
                        return Err(self.expected("`)`"));
                    }
                    cast
                }
                _ => break,
            };
            self.bump();
            prefixes.push((prefix, pos));
        }
        let mut value = self.primary(depth)?;
        for (prefix, pos) in prefixes.into_iter().rev() {
            value = match (prefix, value) {
                (Prefix::Plus, value) => value,
                (Prefix::Minus, Value::Float(v)) => Value::Float(-v),
                (Prefix::Minus, value) => value.with(value.integer(pos)?.wrapping_neg()),
                (Prefix::Complement, value) => Value::Unsigned(!value.integer(pos)?),
                (Prefix::Not, value) => truth(value.integer(pos)? == 0),
                (Prefix::Signed, value) => Value::Signed(value.integer(pos)? as i64),
                (Prefix::Unsigned, value) => Value::Unsigned(value.integer(pos)?),
            };
        }
        Ok(value)
    }

    fn primary(&mut self, depth: usize) -> Result<Value> {
        let pos = self.pos();
        match self.bump() {
            Tok::Int(v) => Ok(Value::Signed(v as i64)),
            Tok::Uint(v) => Ok(Value::Unsigned(v)),
            Tok::F64(v) => Ok(Value::Float(f64::from_bits(v))),
            Tok::Name("WARP_SZ") => Ok(Value::Signed(32)),
            Tok::Punct(b'(') => {
                let depth = self.deeper(depth)?;
                let value = self.conditional(depth)?;
                self.expect(b')')?;
                Ok(value)
            }
            Tok::F32(_) => Err(pos.error(
                "a bit pattern (`0f`) cannot be part of an expression: in expressions floats are decimal or `0d`",
            )),
            other => Err(pos.error(format!("expected a constant, found {}", other.show()))),
        }
    }
}

fn apply(op: &str, a: Value, b: Value, pos: Pos) -> Result<Value> {
    let zero = || pos.error("division by zero in a constant expression");
    let (x, y) = match (a, b) {
        (Value::Float(x), Value::Float(y)) => {
            return Ok(match op {
                "+" => Value::Float(x + y),
                "-" => Value::Float(x - y),
                "*" => Value::Float(x * y),
                "/" if y == 0.0 => return Err(zero()),
                "/" => Value::Float(x / y),
                "<" => truth(x < y),
                "<=" => truth(x <= y),
                ">" => truth(x > y),
                ">=" => truth(x >= y),
                "==" => truth(x == y),
                "!=" => truth(x != y),
                _ => return Err(pos.error(format!("`{op}` takes integers"))),
            });
        }
        (Value::Float(_), _) | (_, Value::Float(_)) => {
            return Err(pos.error(format!("`{op}` has an integer on one side and a float on the other")));
        }
        _ => (a.integer(pos)?, b.integer(pos)?),
    };
    let (s, t) = (x as i64, y as i64);
    let unsigned = matches!(a, Value::Unsigned(_)) || matches!(b, Value::Unsigned(_));
    let common = |bits: u64| if unsigned { Value::Unsigned(bits) } else { Value::Signed(bits as i64) };
    let less = if unsigned { x < y } else { s < t };
    Ok(match op {
        "||" => truth(x != 0 || y != 0),
        "&&" => truth(x != 0 && y != 0),
        "|" => common(x | y),
        "^" => common(x ^ y),
        "&" => common(x & y),
        "==" => truth(x == y),
        "!=" => truth(x != y),
        "<" => truth(less),
        "<=" => truth(less || x == y),
        ">" => truth(!less && x != y),
        ">=" => truth(!less),
        "<<" => a.with(x << (y & 63)),
        ">>" if matches!(a, Value::Signed(_)) => Value::Signed(s >> (y & 63)),
        ">>" => Value::Unsigned(x >> (y & 63)),
        "+" => common(x.wrapping_add(y)),
        "-" => common(x.wrapping_sub(y)),
        "*" => common(x.wrapping_mul(y)),
        "/" | "%" if y == 0 => return Err(zero()),
        "/" if unsigned => Value::Unsigned(x / y),
        "/" => Value::Signed(s.wrapping_div(t)),
        "%" => Value::Unsigned(x % y),
        _ => return Err(pos.error(format!("unknown operator `{op}`"))),
    })
}

#[cfg(test)]
mod tests {
    use super::super::lex::lex;
    use super::*;

    fn value(text: &str) -> std::result::Result<Value, String> {
        let toks = lex(text).map_err(|e| e.message)?;
        let mut parser = Parser { toks, at: 0, loc: (0, 0) };
        let value = parser.constant().map_err(|e| e.message)?;
        if parser.peek() == Tok::End { Ok(value) } else { Err(format!("then {}", parser.peek().show())) }
    }

    /// The values that ptxas 12.9 stores in a `.u64` with such an initial value.
    #[test]
    fn values_are_those_of_the_assembler() {
        for (text, want) in [
            ("-1 >> 1", u64::MAX),
            ("-1U >> 1", u64::MAX >> 1),
            ("(.u64)-1 >> 1", u64::MAX >> 1),
            ("-7 / 2", -3i64 as u64),
            ("-7U / 2", 0x7fff_ffff_ffff_fffc),
            ("-7 % 3", 0),
            ("5 % -3", 5),
            ("-5 % 3U", 2),
            ("1 << 70", 64),
            ("1 << 64", 1),
            ("1 << -1", 1 << 63),
            ("-8 >> 70", u64::MAX),
            ("0x8000000000000000 > 1", 1),
            ("-1 < 1U", 0),
            ("-1 < 1", 1),
            ("-1 == -1U", 1),
            ("!3", 0),
            ("!!3", 1),
            ("~0", u64::MAX),
            ("(~0) < 0", 0),
            ("(!0U) - 2 < 0", 1),
            ("(1U << 3) - 9 < 0", 0),
            ("(1 << 3U) - 9 < 0", 1),
            ("(3U < 2) - 1 < 0", 1),
            ("(7 % 4) - 8 < 0", 0),
            ("(1|2) - 9 < 0", 1),
            ("(1|2U) - 9 < 0", 0),
            ("(1||3U) - 9 < 0", 1),
            ("(0 ? 1U : -1) < 0", 1),
            ("(1 ? 1U : 1) - 2 < 0", 0),
            ("0 ? 5 : 6 ? 7 : 8", 7),
            ("1 ? 0 ? 1 : 2 : 3", 2),
            ("1 | 2 ^ 3 & 4", 3),
            ("1 + 2 << 3", 24),
            ("1 << 2 + 3", 32),
            ("1 == 1 & 2", 0),
            ("3 - 2 - 1", 0),
            ("100 / 10 / 5", 2),
            ("-9223372036854775808 / -1", 0),
            ("-9223372036854775808 % -1", 1 << 63),
            ("(.s64)-1U < 0", 1),
            ("(.s64)(1U) + 1 - 3 < 0", 1),
            ("-+-3", 3),
            ("-~3", 4),
            ("3--2", 5),
            ("(WARP_SZ + 1) % 4", 1),
            ("WARP_SZ - 33 < 0", 1),
            ("1.5 - 1.0 < 1.0", 1),
            (".5 < 1.0", 1),
            ("1e3 < 2.0", 0),
            ("077U + 0x10 + 0b11", 82),
        ] {
            let found = value(text).and_then(|v| v.integer(Pos::default()).map_err(|e| e.message));
            assert_eq!(found, Ok(want), "{text}");
        }
    }

    #[test]
    fn what_is_no_constant_is_named() {
        for (text, says) in [
            ("7 / 0", "division by zero"),
            ("0 && 1/0", "division by zero"),
            ("1.0 / 0.0", "division by zero"),
            ("2.0 + 3", "an integer on one side"),
            ("1.0 && 1", "an integer on one side"),
            ("1.0 << 2.0", "`<<` takes integers"),
            ("1.0 ? 1 : 2", "expected an integer"),
            ("1 ? 1.0 : 2.0", "expected an integer"),
            ("~1.0", "expected an integer"),
            ("(.u32)7", "cast to `.s64` or `.u64`, not to `.u32`"),
            ("-0f3F800000", "a bit pattern (`0f`) cannot be part of an expression"),
            ("3 > = 2", "expected a constant, found `=`"),
            ("7%2", "then `%2`"),
            ("(3", "expected `)`"),
            ("1 ? 2", "expected `:`"),
        ] {
            let error = value(text).expect_err(text);
            assert!(error.contains(says), "{text}: {error}");
        }
        let deep = |open: &str, n: usize, close: &str| value(&(open.repeat(n) + "1" + &close.repeat(n)));
        assert_eq!(deep("(", 60, ")"), Ok(Value::Signed(1)));
        assert_eq!(deep("-", 100_000, ""), Ok(Value::Signed(1)));
        assert!(deep("(", 100_000, ")").is_err_and(|e| e.contains("too deeply")));
        assert!(deep("1 ? ", 100_000, " : 2").is_err_and(|e| e.contains("too deeply")));
    }
}
