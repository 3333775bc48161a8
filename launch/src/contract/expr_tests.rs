use super::*;
use pretty_assertions::assert_eq;

fn sizes(name: &str) -> Option<i64> {
    match name {
        "M" => Some(520),
        "N" => Some(264),
        "K" => Some(136),
        "zero" => Some(0),
        "huge" => Some(i64::MAX),
        _ => None,
    }
}

fn int(text: &str) -> Result<i64, ExprError> {
    integer(text, &sizes)
}

fn cond(text: &str) -> Result<bool, ExprError> {
    condition(text, &sizes)
}

fn message(text: &str) -> String {
    match Expr::parse(text).and_then(|e| e.eval(&sizes)) {
        Ok(Scalar::Int(value)) => format!("value {value}"),
        Ok(Scalar::Truth(value)) => format!("value {value}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn operators_on_bits_bind_as_in_programs() {
    let value = |text: &str| integer(text, &|name| (name == "N").then_some(12));
    for (text, want) in [
        ("1 | 2 ^ 3 & 2 << 1 + 1", 3),
        ("N >> 1 << 2", 24),
        ("~N & 0 - 1", -13),
        ("popcount(N) | 8", 10),
        ("-5 >> 1", -3),
    ] {
        assert_eq!(value(text), Ok(want), "{text}");
    }
    assert_eq!(condition("N & 4 == 4 && N | 1 != 12 || N < 1", &|_| Some(12)), Ok(true));
    assert_eq!(value("1 << N - 13"), Err(ExprError::NegativeShift { at: 2, operator: "<<" }));
    assert_eq!(value("1 << 63"), Err(ExprError::Overflow { at: 2, operator: "<<" }));
}

#[test]
fn integers_have_the_usual_precedence() {
    let rows = [
        ("0", 0),
        ("007", 7),
        (" 1 + 2*3 ", 7),
        ("(1+2)*3", 9),
        ("10 - 4 - 3", 3),
        ("100 / 7 / 2", 7),
        ("2 * 7 % 4", 2),
        ("-7 / 2", -4),
        ("-7 % 2", 1),
        ("7 / -2", -4),
        ("7 % -2", -1),
        ("1 - (4 - 5) / 4", 2),
        ("(4 - 5) % 4", 3),
        ("-9223372036854775808", i64::MIN),
        ("- 9223372036854775808 + 1", i64::MIN + 1),
        ("abs(4 - 9)", 5),
        ("select(M > 500, 1, 1 / zero)", 1),
        ("- -5", 5),
        ("3--2", 5),
        ("ceildiv(M, 128)", 5),
        ("ceildiv(N,128) * ceildiv(M , 128)", 15),
        ("ceildiv(-7, 2)", -3),
        ("ceildiv(-7, -2)", 4),
        ("ceildiv(7, -2)", -3),
        ("ceildiv(8, 2)", 4),
        ("min(3, M, -1)", -1),
        ("max(K)", 136),
        ("max(1, min(M, 65535))", 520),
        ("min_", i64::MIN),
    ];
    for (text, expected) in rows {
        let lookup = |name: &str| if name == "min_" { Some(i64::MIN) } else { sizes(name) };
        assert_eq!(integer(text, &lookup), Ok(expected), "{text}");
    }
}

#[test]
fn division_agrees_with_exact_arithmetic() {
    for a in -20i64..=20 {
        for b in (-6i64..=6).filter(|b| *b != 0) {
            let lookup = |name: &str| Some(if name == "a" { a } else { b });
            let ceil = (a as f64 / b as f64).ceil() as i64;
            assert_eq!(integer("ceildiv(a, b)", &lookup), Ok(ceil), "{a} {b}");
            assert_eq!(integer("a / b * b + a % b", &lookup), Ok(a), "{a} {b}");
        }
    }
}

#[test]
fn conditions_hold_or_not() {
    let rows = [
        ("M % 8 == 0", true),
        ("M % 16 != 8", false),
        ("K < N", true),
        ("K <= 136 && K >= 136", true),
        ("K > 136 || N > 263", true),
        ("!(K > 136)", true),
        ("!!(K==136)", true),
        ("1 == 1 || 1 == 2 && 1 == 2", true),
        ("(1 == 1 || 1 == 2) && 1 == 2", false),
        // The left side decides, so the right one is not evaluated.
        ("zero == 0 || N % zero == 0", true),
        ("zero != 0 && N % zero == 0", false),
        ("1 == 2 && missing == 0 || 2 == 2", true),
    ];
    for (text, expected) in rows {
        assert_eq!(cond(text), Ok(expected), "{text}");
    }
}

#[test]
fn refusals_say_what_was_found_and_where() {
    let rows = [
        ("", "found the end, expected an integer, a name or `(`, at offset 0"),
        ("1 +", "found the end, expected an integer, a name or `(`, at offset 3"),
        ("(1", "found the end, expected `)`, at offset 2"),
        ("1 2", "found `2` after the end of the expression, at offset 2"),
        ("M; rm", "found `;` after the end of the expression, at offset 1"),
        ("12ab", "found `12ab`, expected an integer, a name or `(`, at offset 0"),
        ("1.5", "found `.` after the end of the expression, at offset 1"),
        ("\u{1F980}", "found `\u{1F980}`, expected an integer, a name or `(`, at offset 0"),
        ("M\0", "found `\\0` after the end of the expression, at offset 1"),
        ("M = 1", "found `=` after the end of the expression, at offset 2"),
        ("0 < M < 9", "found `<` after the end of the expression, at offset 6"),
        ("M && 1 == 1", "found an integer, expected a condition, at offset 0"),
        ("1 + (M == 1)", "found a condition, expected an integer, at offset 4"),
        ("!M", "found an integer, expected a condition, at offset 1"),
        ("min(M == 1)", "found a condition, expected an integer, at offset 4"),
        ("system(1)", "found `system`, expected `ceildiv`, `min`, `max`, `abs`, `popcount` or `select`, at offset 0"),
        ("ceildiv(1)", "`ceildiv` takes 2 arguments, found 1, at offset 0"),
        ("min()", "`min` takes at least 1 argument, found 0, at offset 0"),
        ("min(1,)", "found `)`, expected an integer, a name or `(`, at offset 6"),
        ("nope + 1", "no value for the name `nope`"),
        ("1 / zero", "division by zero in `/`, at offset 2"),
        ("1 % 0", "division by zero in `%`, at offset 2"),
        ("ceildiv(1, 0)", "division by zero in `ceildiv`, at offset 0"),
        ("huge + 1", "the value of `+` is out of range, at offset 5"),
        ("huge * huge", "the value of `*` is out of range, at offset 5"),
        ("-huge - 2", "the value of `-` is out of range, at offset 6"),
        ("(-huge - 1) / -1", "the value of `/` is out of range, at offset 12"),
        ("ceildiv(-huge - 1, -1)", "the value of `ceildiv` is out of range, at offset 0"),
        ("-(-huge - 1)", "the value of `-` is out of range, at offset 0"),
        ("(-huge - 1) % -1", "value 0"),
        ("999999999999999999999999999999999999999999", "the value of `integer` is out of range, at offset 0"),
    ];
    for (text, expected) in rows {
        assert_eq!(message(text), expected, "{text}");
    }
    assert!(matches!(int("M == 1"), Err(ExprError::Kind { .. })));
    assert!(matches!(cond("M"), Err(ExprError::Kind { .. })));
}

/// On a small stack, so that a missing depth check is a crash and not luck.
#[test]
fn hostile_texts_neither_overflow_the_stack_nor_panic() {
    let run = || {
        for (open, close) in [("(", ")"), ("-", ""), ("- ", ""), ("!", ""), ("min(", ")"), ("min(1,(", "))")] {
            for n in [100_000usize, 65, 70] {
                let text = format!("{}1{}", open.repeat(n), close.repeat(n));
                assert!(matches!(Expr::parse(&text), Err(ExprError::TooDeep { .. })), "{open} {n}");
            }
            let unclosed = open.repeat(100_000);
            assert!(Expr::parse(&unclosed).is_err());
        }
        let limit = MAX_DEPTH as usize - 1;
        let nested = format!("{}1{}", "(".repeat(limit), ")".repeat(limit));
        assert_eq!(integer(&nested, &sizes), Ok(1));
        let flat = format!("0{}", " + 1".repeat(200_000));
        assert_eq!(integer(&flat, &sizes), Ok(200_000));
        let flat = format!("1 == 1{}", " && 1 == 1".repeat(100_000));
        assert_eq!(condition(&flat, &sizes), Ok(true));
    };
    // Frames of code that is not optimised are several times as large.
    let stack = if cfg!(debug_assertions) { 2 << 20 } else { 512 << 10 };
    let thread = std::thread::Builder::new().stack_size(stack).spawn(run).unwrap();
    thread.join().unwrap();
}

/// All texts over a small alphabet up to a length: parsing ends, in a value or in an error.
#[test]
fn every_short_text_ends_in_a_value_or_an_error() {
    let alphabet = ["1", "M", "(", ")", "-", "!", "=", "<", "&&", "|", "/", ",", "min(", " ", "é"];
    let mut texts = vec![String::new()];
    for _ in 0..4 {
        texts = texts.iter().flat_map(|t| alphabet.iter().map(move |a| format!("{t}{a}"))).collect();
        for text in &texts {
            assert!(!message(text).is_empty());
        }
    }
}
