//! The op table: every operator of the language, a row each.
//!
//! A row gives the variant, its token in the text form, how it is written, its arity and the domain it computes over.
//! Parser, printer, verifier, interpreter and lowering all read this table; there is no second list of ops. To add one:
//! add a row here, then follow the compiler through the exhaustive matches (`typing`, `interp`, the PTX lowering).

use std::collections::HashMap;
use std::sync::LazyLock;

/// How an operator is written.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Form {
    /// `a + b` with a binding strength; larger binds tighter. All infix operators associate to the left.
    Infix(u8),
    /// `-a`, `!a`, `~a`: binds tighter than every infix operator.
    Prefix,
    /// `max(a, b)`.
    Call,
}

/// What an operator computes over.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Domain {
    /// Index arithmetic (exact integers), scalars and tiles of any numeric element type.
    Numeric,
    /// Index arithmetic, scalars and tiles of integers.
    Integer,
    /// Floating-point scalars and tiles only.
    Float,
    /// Numeric operands, Boolean result.
    Compare,
    /// Boolean operands and result.
    Logic,
    /// Boolean first operand, two numeric ones of one type.
    Select,
}

macro_rules! ops {
    ($($(#[doc = $doc:literal])+ $variant:ident $token:literal $form:expr, $arity:literal $domain:ident;)+) => {
        /// An operator on scalars and, element by element, on tiles.
        #[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Op { $($(#[doc = $doc])+ $variant,)+ }

        impl Op {
            /// Every operator, in table order.
            pub const ALL: &'static [Op] = &[$(Op::$variant,)+];

            /// The token of the text form.
            pub fn token(self) -> &'static str {
                match self { $(Op::$variant => $token,)+ }
            }

            /// How it is written.
            pub fn form(self) -> Form {
                use Form::{Call, Infix, Prefix};
                let _ = (Call, Prefix, Infix(0));
                match self { $(Op::$variant => $form,)+ }
            }

            /// Number of operands.
            pub fn arity(self) -> usize {
                match self { $(Op::$variant => $arity,)+ }
            }

            /// What it computes over.
            pub fn domain(self) -> Domain {
                match self { $(Op::$variant => Domain::$domain,)+ }
            }

            /// One paragraph for people, as in this table.
            pub fn doc(self) -> &'static str {
                match self { $(Op::$variant => concat!($($doc, "\n"),+),)+ }
            }
        }
    };
}

ops! {
    /// Sum.
    Add "+" Infix(10), 2 Numeric;
    /// Difference.
    Sub "-" Infix(10), 2 Numeric;
    /// Product.
    Mul "*" Infix(11), 2 Numeric;
    /// Quotient: rounds toward minus infinity for integers, correctly rounded for floating point.
    Div "/" Infix(11), 2 Numeric;
    /// Remainder of the flooring division: `a - (a / b) * b`.
    Rem "%" Infix(11), 2 Integer;
    /// `a / b` rounded toward plus infinity.
    CeilDiv "ceildiv" Call, 2 Integer;
    /// `a * 2^b`, of elements without the bits that leave the register.
    Shl "<<" Infix(9), 2 Integer;
    /// `a / 2^b`, rounded toward minus infinity.
    Shr ">>" Infix(9), 2 Integer;
    /// Bits that are set in both.
    BitAnd "&" Infix(8), 2 Integer;
    /// Bits that are set in one of both.
    BitXor "^" Infix(7), 2 Integer;
    /// Bits that are set in either.
    BitOr "|" Infix(6), 2 Integer;
    /// All bits the other way.
    BitNot "~" Prefix, 1 Integer;
    /// How many bits are set.
    Popcount "popcount" Call, 1 Integer;
    /// The upper half of the product of integers, which has twice as many bits as their register: 32 of 64, and 64 of 128.
    MulHigh "mul_high" Call, 2 Integer;
    /// `permute_bytes(a, b, s)`: four bytes of the eight of two words, those of `a` first; each of the lower four hexadecimal digits of `s` names one,
    /// and one above 7 takes its sign alone, eight times.
    PermuteBytes "permute_bytes" Call, 3 Integer;
    /// `random(seed, place)`: a word of the random sequence of a seed (Philox4x32-10), as u32.
    Random "random" Call, 2 Integer;
    /// The smaller operand; a NaN operand loses.
    Min "min" Call, 2 Numeric;
    /// The larger operand; a NaN operand loses.
    Max "max" Call, 2 Numeric;
    /// `a * b + c`, rounded once.
    Fma "fma" Call, 3 Float;
    /// `a` to the power of `b`, as IEEE 754 defines it.
    Pow "pow" Call, 2 Float;
    /// Negation.
    Neg "-" Prefix, 1 Numeric;
    /// Absolute value.
    Abs "abs" Call, 1 Numeric;
    /// Two to the power of the operand.
    Exp2 "exp2" Call, 1 Float;
    /// Natural exponential.
    Exp "exp" Call, 1 Float;
    /// Base-two logarithm.
    Log2 "log2" Call, 1 Float;
    /// Natural logarithm.
    Log "log" Call, 1 Float;
    /// Square root.
    Sqrt "sqrt" Call, 1 Float;
    /// Reciprocal square root.
    Rsqrt "rsqrt" Call, 1 Float;
    /// Hyperbolic tangent.
    Tanh "tanh" Call, 1 Float;
    /// Hyperbolic tangent: one instruction from sm_75 on, relative error 2^-11; elsewhere computed, absolute error 2^-22.
    FastTanh "fast_tanh" Call, 1 Float;
    /// Error function, 2/sqrt(pi) times the integral of exp(-t^2) from 0: within 2 units in the last place of f32.
    Erf "erf" Call, 1 Float;
    /// The largest whole number that is not above the operand.
    Floor "floor" Call, 1 Float;
    /// The smallest whole number that is not below the operand.
    Ceil "ceil" Call, 1 Float;
    /// The nearest whole number; of two the even one.
    Round "round" Call, 1 Float;
    /// Sine, of any number in radians: within 2 units in the last place of f32.
    Sin "sin" Call, 1 Float;
    /// Cosine, of any number in radians: within 2 units in the last place of f32.
    Cos "cos" Call, 1 Float;
    /// Equal.
    Eq "==" Infix(4), 2 Compare;
    /// Not equal.
    Ne "!=" Infix(4), 2 Compare;
    /// Less than.
    Lt "<" Infix(5), 2 Compare;
    /// At most.
    Le "<=" Infix(5), 2 Compare;
    /// Greater than.
    Gt ">" Infix(5), 2 Compare;
    /// At least.
    Ge ">=" Infix(5), 2 Compare;
    /// Both.
    And "&&" Infix(3), 2 Logic;
    /// Either.
    Or "||" Infix(2), 2 Logic;
    /// Negation of a Boolean.
    Not "!" Prefix, 1 Logic;
    /// `select(c, a, b)`: `a` where `c` holds, else `b`.
    Select "select" Call, 3 Select;
}

impl Op {
    /// Whether it is a function of one real number.
    pub fn is_function(self) -> bool {
        self.domain() == Domain::Float && self.arity() == 1
    }

    /// The infix operator written with `token`.
    pub fn from_infix(token: &str) -> Option<Op> {
        Op::ALL.iter().copied().find(|op| matches!(op.form(), Form::Infix(_)) && op.token() == token)
    }

    /// The operator written as a call of `name`.
    pub fn from_call(name: &str) -> Option<Op> {
        static CALLS: LazyLock<HashMap<&str, Op>> = LazyLock::new(|| {
            let calls = Op::ALL.iter().filter(|op| op.form() == Form::Call);
            calls.map(|op| (op.token(), *op)).collect()
        });
        CALLS.get(name).copied()
    }
}

macro_rules! reductions {
    ($($(#[doc = $doc:literal])+ $variant:ident $token:literal;)+) => {
        /// How a reduction combines elements.
        #[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum ReduceOp { $($(#[doc = $doc])+ $variant,)+ }

        impl ReduceOp {
            /// Every reduction, in table order.
            pub const ALL: &'static [ReduceOp] = &[$(ReduceOp::$variant,)+];

            /// The name of the text form.
            pub fn token(self) -> &'static str {
                match self { $(ReduceOp::$variant => $token,)+ }
            }

            /// One paragraph for people, as in this table.
            pub fn doc(self) -> &'static str {
                match self { $(ReduceOp::$variant => concat!($($doc, "\n"),+),)+ }
            }
        }
    };
}

reductions! {
    /// Sum of the elements.
    Sum "sum";
    /// Largest element; a NaN loses against any number.
    Maximum "maximum";
    /// Smallest element; a NaN loses against any number.
    Minimum "minimum";
    /// Product of the elements.
    Product "product";
    /// Whether a condition holds for some element.
    Any "any";
    /// Whether a condition holds for all elements.
    All "all";
    /// Index of the largest element, as an i32: of several the least; that of the first NaN, if there is one.
    ArgMax "argmax";
    /// Index of the smallest element, as an i32: of several the least; that of the first NaN, if there is one.
    ArgMin "argmin";
}

impl ReduceOp {
    /// The reduction called `name`.
    pub fn from_token(name: &str) -> Option<ReduceOp> {
        ReduceOp::ALL.iter().copied().find(|op| op.token() == name)
    }

    /// The operator that makes one of two elements; none where it takes their places as well.
    pub fn operator(self) -> Option<Op> {
        match self {
            ReduceOp::Sum => Some(Op::Add),
            ReduceOp::Maximum => Some(Op::Max),
            ReduceOp::Minimum => Some(Op::Min),
            ReduceOp::Product => Some(Op::Mul),
            ReduceOp::Any => Some(Op::Or),
            ReduceOp::All => Some(Op::And),
            ReduceOp::ArgMax | ReduceOp::ArgMin => None,
        }
    }

    /// The name of the scan: `scan_sum(x, axis)` has at each place the sum up to there.
    pub fn scan_token(self) -> Option<&'static str> {
        match self {
            ReduceOp::Sum => Some("scan_sum"),
            ReduceOp::Product => Some("scan_product"),
            ReduceOp::Maximum => Some("scan_maximum"),
            ReduceOp::Minimum => Some("scan_minimum"),
            ReduceOp::Any | ReduceOp::All | ReduceOp::ArgMax | ReduceOp::ArgMin => None,
        }
    }

    /// The reduction whose scan is called `name`.
    pub fn from_scan_token(name: &str) -> Option<ReduceOp> {
        ReduceOp::ALL.iter().copied().find(|op| op.scan_token() == Some(name))
    }

    /// Whether it takes conditions, and gives one.
    pub fn is_of_truths(self) -> bool {
        matches!(self, ReduceOp::Any | ReduceOp::All)
    }

    /// Whether it gives the index of an element.
    pub fn is_place(self) -> bool {
        matches!(self, ReduceOp::ArgMax | ReduceOp::ArgMin)
    }

    /// Whether it gives one of the elements.
    pub fn is_extreme(self) -> bool {
        matches!(self, ReduceOp::Maximum | ReduceOp::Minimum)
    }

    /// Whether lanes may each keep a part of what a loop combines by it (`partial sum (0, 1)`).
    pub fn has_partials(self) -> bool {
        self == ReduceOp::Sum || self.is_extreme()
    }

    /// Whether the word cannot be a name. A word in front of `(` is a function anyway.
    pub fn is_reserved(self) -> bool {
        self.has_partials()
    }
}
