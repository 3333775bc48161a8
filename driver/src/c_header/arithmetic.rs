//! Expressions of the contract as C.

use crate::contract::expr::{Expr, ExprError};
use tilec_ir::ops::Op;

/// A C expression with the value of `text`. `name` translates names. An expression without a value sets `e`, an `int`
/// of the function.
///
/// # Errors
/// `text` is not an expression.
pub(super) fn expression(text: &str, name: &dyn Fn(&str) -> String) -> Result<String, ExprError> {
    Ok(Expr::parse(text)?.build(&literal, name, &operation))
}

fn literal(x: i64) -> String {
    match x {
        // A minus is an operator in C, and this number the negative of none.
        i64::MIN => "INT64_MIN".to_owned(),
        x if i32::try_from(x).is_ok() => x.to_string(),
        x if x < 0 => format!("(-INT64_C({}))", x.unsigned_abs()),
        x => format!("INT64_C({x})"),
    }
}

fn operation(op: Op, args: &[String]) -> String {
    let infix = |token: &str| format!("({})", args.join(&format!(" {token} ")));
    // Calls with more than two arguments are nested: the first two become one.
    let call = |name: &str, checked: bool| {
        let end = if checked { ", &e" } else { "" };
        match args {
            [] => unreachable!("an operator has operands"),
            [one] => format!("tilec_{name}({one}{end})"),
            [first, rest @ ..] => {
                rest.iter().fold(first.clone(), |all, next| format!("tilec_{name}({all}, {next}{end})"))
            }
        }
    };
    match op {
        Op::Or => infix("||"),
        Op::And => infix("&&"),
        Op::Eq => infix("=="),
        Op::Ne => infix("!="),
        Op::Lt => infix("<"),
        Op::Le => infix("<="),
        Op::Gt => infix(">"),
        Op::Ge => infix(">="),
        Op::BitAnd => infix("&"),
        Op::BitOr => infix("|"),
        Op::BitXor => infix("^"),
        Op::Not => format!("(!{})", args[0]),
        Op::BitNot => format!("(~(int64_t){})", args[0]),
        Op::Select => format!("({} ? {} : {})", args[0], args[1], args[2]),
        Op::Add => call("add", true),
        Op::Sub => call("sub", true),
        Op::Mul => call("mul", true),
        Op::Div => call("div", true),
        Op::Rem => call("rem", true),
        Op::CeilDiv => call("ceildiv", true),
        Op::Shl => call("shl", true),
        Op::Shr => call("shr", true),
        Op::Neg => call("neg", true),
        Op::Abs => call("abs", true),
        Op::Min => call("min", false),
        Op::Max => call("max", false),
        Op::Popcount => call("popcount", false),
        other => unreachable!("`{}` is no operator of contracts", other.token()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_are_calls_that_check() {
        let c = |text: &str| expression(text, &|name| format!("v->{name}")).expect("it is one");
        assert_eq!(c("ceildiv(M, 128) * -N"), "tilec_mul(tilec_ceildiv(v->M, 128, &e), tilec_neg(v->N, &e), &e)");
        assert_eq!(
            c("min(a, b, 3) >= 1 && !(a == 2)"),
            "((tilec_min(tilec_min(v->a, v->b), 3) >= 1) && (!(v->a == 2)))"
        );
        assert_eq!(
            c("select(a > 4294967296, ~a, -9223372036854775808)"),
            "((v->a > INT64_C(4294967296)) ? (~(int64_t)v->a) : INT64_MIN)"
        );
    }
}
