//! Habits from Python and C: the suggested fix, and no other message.

use super::{errors, parsed};

/// A kernel with a line.
fn typed(line: &str) -> String {
    format!(
        "kernel k<BN = 64>(X: gmem f32[M, N], Y: gmem f32[M, N]) grid (i: M) {{
    let x = X[i..+1, 0..+BN]
    {line}
    copy x -> Y[i.., 0..]
}}"
    )
}

#[test]
fn habits_are_mended() {
    for (wrong, right) in [
        ("let y = where(x > 0.0, x, 0.0)", "let y = select(x > 0.0, x, 0.0)"),
        ("let y = x / x ** 2 + x", "let y = x / (x * x) + x"),
        ("let y = (x + 1.0) ** x", "let y = pow((x + 1.0), x)"),
        ("let y = X[i, 0:BN] + x", "let y = X[i, ..+BN] + x"),
        ("let y = X[i, :BN] + x", "let y = X[i, ..+BN] + x"),
        ("let y = X[i.., :] + x", "let y = X[i.., ..] + x"),
        ("let y = X[i:, 0..] + x", "let y = X[i.., 0..] + x"),
        ("let y = x * 2.0 # and = more", "let y = x * 2.0 // and = more"),
        ("let y = sum(x, axis=1)", "let y = sum(x, 1)"),
        ("let y = scan_sum(x, dim = 1)", "let y = scan_sum(x, 1)"),
        ("let y = sum(x, 1, keepdims=True)", "let y = sum(x, 1)"),
        ("let y = np.exp(x)", "let y = exp(x)"),
        ("let y = cast<torch.f16>(x)", "let y = cast<f16>(x)"),
        ("let y = select(x > 0.0 and x < 1.0, x, 0.0)", "let y = select(x > 0.0 && x < 1.0, x, 0.0)"),
        ("let y = select(x > 0.0 or x < 1.0, x, 0.0)", "let y = select(x > 0.0 || x < 1.0, x, 0.0)"),
        ("let y = select(not (x > 0.0), x, 0.0)", "let y = select(!(x > 0.0), x, 0.0)"),
        ("let y = select(True, x, 0.0)", "let y = select((1 == 1), x, 0.0)"),
        ("let y = cast<float32>(x)", "let y = cast<f32>(x)"),
        ("let y = f16(x)", "let y = cast<f16>(x)"),
        ("let y = float(x)", "let y = cast<f32>(x)"),
        ("let y = x.T", "let y = transpose(x)"),
        ("let y = x + 1e-5f", "let y = x + 1e-5"),
    ] {
        let (wrong, right) = (typed(wrong), typed(right));
        let found = errors(&wrong);
        assert_eq!(found.len(), 1, "{wrong}: {found:#?}");
        let fix = found[0].fix.clone().unwrap_or_else(|| panic!("{wrong}: {found:#?}"));
        let (start, end) = (fix.span.start as usize, fix.span.end as usize);
        assert_eq!(format!("{}{}{}", &wrong[..start], fix.new_text(&wrong), &wrong[end..]), right);
        parsed(&right);
    }
}

#[test]
fn habits_are_answered() {
    for (line, note) in [
        (
            "let y = X[i, i * BN:(i + 1) * BN]",
            "`i..+n` are `n` elements from `i` on, `..+n` the first `n`, and `..` all",
        ),
        ("let y = x[None, 0..]", "a dimension that something lacks is written `_`: `bias[_, j..]`, `scale[i.., _]`"),
        ("let y = maximum(x, -1)", "dimensions are counted from 0: `sum(x, 1)` has one element for each row"),
        ("let y = x.sum(1)", "there are no methods: write `sum(x, 1)`"),
        ("let y = x.to(f16)", "a conversion is written `cast<f16>(x)`"),
        ("let y = x @ x", "a product of tiles is written `acc = mma(a, b, acc)`"),
        ("let y = x if i > 0 else x", "an expression chooses by `select(c, a, b)`: `a` where `c` holds, else `b`"),
        ("let y: f32 = x", "the type follows from the value: `let y = x`, or converted `let y = cast<f32>(x)`"),
        ("assert N > 0", "conditions on sizes are in the header of the kernel: `where N % 8 == 0`"),
        ("return", "a kernel returns nothing: `copy x -> Y[i.., j..]` stores a result"),
        ("let y = range(0, N)", "it is written `for i in 0..N step 32`"),
    ] {
        let found = errors(&typed(line));
        assert_eq!(found.len(), 1, "{line}: {found:#?}");
        assert_eq!(found[0].notes, [note], "{line}");
    }
}

/// These words are names where they are declared, and beginnings of statements where they are assigned.
#[test]
fn words_of_python_may_be_names() {
    parsed(&typed("let and = x\n    let not = and + x\n    let np = not"));
    parsed(&typed("var or = reg f32[1, BN] = 0.0\n    let y = x\n    or = y"));
}

/// Text whose meaning differs from Python's is not changed: a reduction in place of a maximum of two, left-associative
/// powers.
#[test]
fn what_means_something_else_here_is_not_mended() {
    for line in ["let y = np.maximum(x, 0.0)", "let y = tl.max(x, 0)", "let y = x ** x ** 2"] {
        let found = errors(&typed(line));
        assert!(!found.is_empty() && found[0].fix.is_none(), "{line}: {found:#?}");
    }
}
