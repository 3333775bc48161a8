//! Syntax of Python, NumPy, PyTorch and C that users write by habit, and the equivalent in the language.

use crate::codes;
use crate::diag::{Diagnostic, Span};
use crate::entities::Expr;
use crate::functions;
use crate::kernel::ExprData;
use crate::lexer::Tok;
use crate::ops::{Op, ReduceOp};
use crate::parser::reader::{Parsed, Parser};

/// The equivalent of a function.
pub(super) fn instead(function: &str) -> Option<&'static str> {
    Some(match function {
        "mean" => "`sum(x, 1) / N`: an extent is a number of expressions",
        "nanmax" => "`maximum(x, 1)`",
        "amax" => "`maximum(x, 1)`, in which NaN loses",
        "nanmin" => "`minimum(x, 1)`",
        "amin" => "`minimum(x, 1)`, in which NaN loses",
        "prod" => "`product(x, 1)`",
        "sigmoid" => "`1.0 / (1.0 + exp(-x))`",
        "log1p" => "`log(1.0 + x)`, which rounds small `x` away",
        "expm1" => "`exp(x) - 1.0`, which rounds small `x` away",
        "relu" => "`max(x, 0.0)`",
        "clip" | "clamp" => "`min(max(x, least), most)`",
        "square" => "`x * x`",
        "power" => "`pow(x, y)`",
        "matmul" | "dot" => "`mma(a, b, c)`, which adds a product of tiles to `c`",
        "astype" => "`cast<f16>(x)`",
        "range" => "`for i in 0..N step 32`",
        "arange" => "`iota(x, 1)`: the places of the elements of `x` along a dimension",
        "zeros" | "zeros_like" | "ones" | "full" | "empty" => "`var t = reg f32[16, 64] = 0.0`",
        "softmax" => "`let e = exp(x - maximum(x, 1))` and `e / sum(e, 1)`",
        "silu" => "`x / (1.0 + exp(-x))`",
        "gelu" => "`0.5 * x * (1.0 + erf(x * 0.70710678))`",
        "isnan" => "`x != x`",
        "load" | "store" => "`copy A[i.., j..] -> t` and `copy t -> C[i.., j..]`",
        _ => return None,
    })
}

/// Functions of the same operands that have another name here.
pub(super) fn renamed(function: &str) -> Option<&'static str> {
    Some(match function {
        "where" => "select",
        "absolute" | "fabs" => "abs",
        "fmax" | "fmaxf" => "max",
        "fmin" | "fminf" => "min",
        "expf" => "exp",
        "sqrtf" => "sqrt",
        "cdiv" => "ceildiv",
        "cumsum" => "scan_sum",
        "cumprod" => "scan_product",
        _ => return None,
    })
}

/// Whether a name is a module of functions, as in `np.exp(x)`.
pub(super) fn is_module(name: &str) -> bool {
    ["np", "numpy", "jnp", "cp", "torch", "math", "tl", "F"].contains(&name)
}

/// The equivalent of a method or a field of `x`, and a fix if there is one.
pub(super) fn of_method(method: &str, x: &str) -> Option<(String, Option<String>)> {
    let function = match method {
        "T" | "mT" => return Some((format!("it is written `transpose({x})`"), Some(format!("transpose({x})")))),
        "shape" | "size" => {
            return Some(("extents have names, in the shape of a tensor: `X: gmem f16[M, N]`".into(), None));
        }
        "to" | "astype" | "type" | "half" => return Some((format!("a conversion is written `cast<f16>({x})`"), None)),
        "float" => return Some((format!("a conversion is written `cast<f32>({x})`"), None)),
        "max" | "amax" => "maximum",
        "min" | "amin" => "minimum",
        "prod" => "product",
        _ if functions::all().iter().any(|f| f.name == method) => method,
        _ => return None,
    };
    let operands = if ReduceOp::from_token(function).is_some() { ", 1" } else { "" };
    Some((format!("there are no methods: write `{function}({x}{operands})`"), None))
}

/// The equivalent of a name that Python and NumPy have, and a fix.
pub(super) fn of_name(name: &str) -> Option<(&'static str, Option<&'static str>)> {
    Some(match name {
        "True" => ("a condition is a comparison; this one always holds: `(1 == 1)`", Some("(1 == 1)")),
        "False" => ("a condition is a comparison; this one never holds: `(1 == 0)`", Some("(1 == 0)")),
        "None" | "newaxis" => {
            ("a dimension that something lacks is written `_`: `bias[_, j..]`, `scale[i.., _]`", None)
        }
        "pi" => ("it is written `3.14159265358979`", Some("3.14159265358979")),
        "Inf" | "infinity" => ("it is written `inf`", Some("inf")),
        "NaN" => ("it is written `nan`", Some("nan")),
        _ => return None,
    })
}

/// The equivalent of a word that begins a statement in other languages.
pub(super) fn of_statement(word: &str) -> Option<&'static str> {
    Some(match word {
        "assert" => "conditions on sizes are in the header of the kernel: `where N % 8 == 0`",
        "return" => "a kernel returns nothing: `copy x -> Y[i.., j..]` stores a result",
        "def" => "a kernel is `kernel name(X: gmem f32[M, N], Y: gmem f32[M, N]) grid (i: M) { .. }`",
        _ => return None,
    })
}

/// Types under the names of C, NumPy and PyTorch.
const TYPES: &[(&str, &str)] = &[
    ("float", "f32"),
    ("float32", "f32"),
    ("double", "f64"),
    ("float64", "f64"),
    ("half", "f16"),
    ("float16", "f16"),
    ("__half", "f16"),
    ("bfloat16", "bf16"),
    ("__nv_bfloat16", "bf16"),
    ("float8_e4m3fn", "e4m3"),
    ("float8_e5m2", "e5m2"),
    ("char", "i8"),
    ("int8", "i8"),
    ("uint8", "u8"),
    ("short", "i16"),
    ("int16", "i16"),
    ("uint16", "u16"),
    ("int", "i32"),
    ("int32", "i32"),
    ("unsigned", "u32"),
    ("uint", "u32"),
    ("uint32", "u32"),
    ("long", "i64"),
    ("int64", "i64"),
    ("uint64", "u64"),
    ("bool_", "bool"),
];

/// The type that is called so elsewhere.
pub(super) fn of_type(name: &str) -> Option<&'static str> {
    TYPES.iter().find(|(theirs, _)| *theirs == name).map(|(_, ours)| *ours)
}

impl Parser<'_, '_> {
    /// At `np.` of `np.exp(x)`: what is after it is what is meant.
    pub(super) fn at_module(&self) -> bool {
        let Tok::Word(name) = self.peek() else { return false };
        is_module(name)
            && !self.names_value(name)
            && self.peek_at(1) == Tok::Sign(".")
            && matches!(self.peek_at(2), Tok::Word(_))
    }

    /// Says that functions and types are in no module, and goes past its name.
    pub(super) fn skip_module(&mut self) {
        let (start, name) = (self.bump().span, self.bump());
        let module = start.to(name.span);
        let message =
            format!("expected an expression, found `{}`", &self.source[start.start as usize..module.end as usize]);
        let d = Diagnostic::error(codes::EXPECTED, module, message);
        let d = d.with_note("functions and types have no module prefix: `exp(x)`, `f32`");
        // These words mean something else here than there.
        self.error(match self.peek() {
            Tok::Word("max" | "min" | "maximum" | "minimum" | "amax" | "amin") => d.with_note(
                "`max(x, y)` is the larger of two, element by element, and `maximum(x, 1)` the largest of each row",
            ),
            _ => d.with_fix(module, ""),
        });
    }

    /// `and` or `or` between conditions.
    pub(super) fn at_spelt_operator(&self) -> Option<Op> {
        let (Tok::Word(word), false) = (self.peek(), self.peek_at(1) == Tok::Sign("=")) else { return None };
        let op = match word {
            "and" => Op::And,
            "or" => Op::Or,
            _ => return None,
        };
        Some(op).filter(|_| !self.names_value(word))
    }

    /// Reports the spelling of an operator that was written as a word.
    pub(super) fn spelt_operator(&mut self, op: Op) {
        let d = self.expected_here("an operator");
        let span = self.span();
        let d = Diagnostic { notes: Vec::new(), ..d };
        self.error(d.with_note(format!("it is written `{}`", op.token())).with_fix(span, op.token()));
    }

    /// At `not x`.
    pub(super) fn at_not(&self) -> bool {
        self.at_word("not") && !self.names_value("not") && matches!(self.peek_at(1), Tok::Word(_) | Tok::Sign("("))
    }

    /// Says how a condition is negated. `not` applies to a whole comparison, and `!` to what is right after it.
    pub(super) fn spelt_not(&mut self) {
        let span = self.span();
        let d = self.expected_here("an expression");
        let d = Diagnostic { notes: Vec::new(), fix: None, ..d }.with_note("it is written `!(..)`");
        let next = self.tokens.get(self.pos + 1).map_or(span, |token| token.span);
        let encloses = self.peek_at(1) == Tok::Sign("(");
        self.error(if encloses { d.with_fix(Span { start: span.start, end: next.start }, "!") } else { d });
    }

    /// At `**`.
    pub(super) fn at_power(&self) -> bool {
        self.at_sign("*") && self.peek_at(1) == Tok::Sign("*")
    }

    /// `x ** y`, of which `x` was read and begins at `start`.
    pub(super) fn power(&mut self, x: Expr, start: Span) -> Parsed<Expr> {
        let of_x = self.since(start);
        let sign = self.bump().span.to(self.bump().span);
        let from = self.span();
        let y = self.unary()?;
        let of_y = self.since(from);
        let [text_x, text_y] = [of_x, of_y].map(|s| &self.source[s.start as usize..s.end as usize]);
        let squared = self.kernel.as_int(y) == Some(2) && !text_x.contains(|c: char| !c.is_alphanumeric() && c != '_');
        let written = if squared { format!("({text_x} * {text_x})") } else { format!("pow({text_x}, {text_y})") };
        let d = Diagnostic::error(codes::EXPECTED, sign, "expected an operator, found `**`");
        let d = d.with_note("powers are written `pow(x, y)`, and a square `x * x`");
        // The sign in `-x ** y` applies to the whole power, and `x ** y ** z` computes the last power first.
        let other = text_x.starts_with('-') || self.at_power() || text_x.contains("**");
        self.error(if other { d } else { d.with_fix(of_x.to(of_y), written) });
        self.node(ExprData::Op { op: Op::Pow, args: vec![x, y] }, of_x.to(of_y))
    }

    /// `:`, `a:`, `:b`, `a:b` in a window, of which `a` was read and begins at `here`.
    pub(super) fn slice(&mut self, start: Expr, here: Span) -> Parsed<Option<Expr>> {
        let colon = self.span();
        let open = colon == here;
        let d = self.expected_here("`..`");
        self.bump();
        let ends = |p: &Self| p.at_sign(",") || p.at_sign("]") || p.at_sign(":");
        let text = |p: &Self, from: Span| p.source[from.start as usize..p.last_span().end as usize].to_owned();
        let (mut end, mut of_end) = (None, String::new());
        if !ends(self) {
            let from = self.span();
            end = Some(self.expr()?);
            of_end = text(self, from);
        }
        let d = d.with_note("`i..+n` are `n` elements from `i` on, `..+n` the first `n`, and `..` all");
        let whole = self.since(here);
        let steps = self.at_sign(":");
        if steps {
            self.bump();
            if !ends(self) {
                self.expr()?;
            }
            let d = d.with_note("every second element is `i..+n step 2`");
            self.error(d);
            return Ok(end);
        }
        let zero = open || self.kernel.as_int(start) == Some(0);
        let written = match (end.is_some(), zero) {
            (false, true) => Some("..".to_owned()),
            (false, false) => Some(format!("{}..", self.source[here.start as usize..colon.start as usize].trim_end())),
            (true, true) => Some(format!("..+{of_end}")),
            (true, false) => None,
        };
        self.error(match written {
            Some(written) => d.with_fix(whole, written),
            None => d,
        });
        Ok(end)
    }

    /// In front of the number of a dimension: what Python writes there, `axis=1` or `-1`.
    pub(super) fn named_axis(&mut self) -> Parsed<()> {
        const COUNTED: &str = "dimensions are counted from 0: `sum(x, 1)` has one element for each row";
        if let Tok::Word("axis" | "dim") = self.peek()
            && self.peek_at(1) == Tok::Sign("=")
        {
            let named = self.bump().span.to(self.bump().span);
            let d = Diagnostic::error(codes::EXPECTED, named, "a dimension is given by its number alone");
            let end = self.span().start;
            self.error(d.with_note(COUNTED).with_fix(Span { end, ..named }, ""));
        }
        if self.at_sign("-") {
            return Err(self.expected_with_note("the number of a dimension", COUNTED));
        }
        Ok(())
    }

    /// Skips `keepdim=True` after the dimension of a reduction, and reports that it is not needed.
    pub(super) fn skip_keepdim(&mut self, comma: Span) -> bool {
        if !matches!(self.peek(), Tok::Word("keepdim" | "keepdims")) || self.peek_at(1) != Tok::Sign("=") {
            return false;
        }
        let d = self.expected_here("`)`").with_note("the dimension stays, with one element: leave this out");
        self.pos += 2;
        let end = self.bump().span.end;
        self.error(d.with_fix(Span { start: comma.start, end }, ""));
        true
    }
}
