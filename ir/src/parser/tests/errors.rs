//! Every error code of the text form, with its place; several per run; no echoes.

use super::{errors, parsed, shown};
use crate::codes;
use pretty_assertions::assert_eq;

/// A kernel with `body`.
fn body(text: &str) -> String {
    format!("kernel k(A: gmem f16[M, K], alpha: f32) grid (i: M) {{ {text} }}")
}

fn all(source: &str) -> Vec<String> {
    errors(source).iter().map(|d| shown(source, d)).collect()
}

#[track_caller]
fn one(source: &str, expected: &str) {
    assert_eq!(all(source), [expected], "{source}");
}

#[test]
fn a_byte_order_mark_in_front_is_skipped() {
    assert!(crate::parser::parse("\u{feff}kernel k() {}", &mut crate::diag::Sink::new()).is_ok());
    one("\u{feff}kernel k(A: gmem f17[M]) {}", "E0204 no element type is called `f17` at `f17`");
}

#[test]
fn bad_characters_and_numbers() {
    one(&body("let x = 1 $ "), "E0101 `$` is not a character of the language at `$`");
    one(&body("let x = 1 \u{feff}"), "E0101 U+FEFF is not a character of the language at `\u{feff}`");
    one(&body("let x = 1 \u{a0}"), "E0101 U+00A0 is not a character of the language at `\u{a0}`");
    one(&body("let x = 12ab"), "E0101 `12ab` is not a number at `12ab`");
    one(&body("let x = 0xg"), "E0101 `0xg` is not a number at `0xg`");
    one(
        &body("let x = 99999999999999999999"),
        "E0101 the integer `99999999999999999999` does not fit 64 bits at `99999999999999999999`",
    );
    one(
        &body("let x = 18446744073709551616"),
        "E0101 the integer `18446744073709551616` does not fit 64 bits at `18446744073709551616`",
    );
    one(&body("let x = 1e999"), "E0101 the number `1e999` is too large for a 64-bit float at `1e999`");
    one(
        &body("let x = sum(A, 5000000000)"),
        "E0101 5000000000 is too large for the number of a dimension at `5000000000`",
    );
    one(
        &format!("kernel {}() {{}}", "k".repeat(65)),
        &format!("E0101 the kernel's name has 65 characters, at most 64 are allowed at `{}`", "k".repeat(65)),
    );
}

#[test]
fn expected_something_else() {
    one("", "E0102 expected `kernel`, found the end of the file at ``");
    one(&body("let = 1"), "E0102 expected a name to declare, found `=` at `=`");
    one(&body("copy A[0..] > A"), "E0102 expected `->`, found `}` at `}`");
    one(&body("let x = 1;"), "E0102 expected a statement or `}`, found `;` at `;`");
    one(&body("copy 1 -> 2"), "E0102 a copy goes to a view or a tile, not a value at `2`");
    one(&body("A[0] = 1"), "E0102 expected `=` after `A`, found `[` at `[`");
    one(&body("for k in 0, 4 { barrier }"), "E0102 expected `..`, found `,` at `,`");
    one(&body("var x = 1"), "E0102 expected `reg`, found the number `1` at `1`");
    one(&body("let c = channel f16[8]"), "E0102 expected `slots`, found `}` at `}`");
    one("kernel k<BM>() {}", "E0102 expected `=` or `:`, found `>` at `>`");
    one("kernel k<BM = M>() {}", "E0102 expected a number, found `M` at `M`");
    one("kernel k(x: reg f16) {}", "E0102 expected `gmem`, `dsmem`, `const` or an element type, found `reg` at `reg`");
    one("kernel k() { for i in 0..4 { barrier ", "E0102 expected a statement or `}`, found the end of the file at ``");
}

#[test]
fn bounds() {
    let deep = |n: usize| body(&format!("let x = {}1{}", "(".repeat(n), ")".repeat(n)));
    super::parsed(&deep(60));
    one(&deep(100), "E0103 this is nested more than 64 levels deep at `(`");
    let chain = |n: usize| body(&format!("let x = 1{}", " + 1".repeat(n)));
    super::parsed(&chain(63));
    assert_eq!(errors(&chain(64))[0].code, codes::TOO_DEEP);
    assert_eq!(errors(&body(&format!("let x = {}alpha", "-".repeat(100))))[0].code, codes::TOO_DEEP);
    let blocks = |n: usize| body(&format!("{}{}", "if alpha == 0 { ".repeat(n), "}".repeat(n)));
    super::parsed(&blocks(62));
    assert_eq!(errors(&blocks(100))[0].code, codes::TOO_DEEP);
    let layout = body(&format!("let x = smem f16[8] layout {}1", "(".repeat(1000)));
    assert_eq!(errors(&layout)[0].code, codes::BAD_LAYOUT);

    super::parsed(&body(&"barrier ".repeat(4096)));
    one(&body(&"barrier ".repeat(5000)), "E0104 the kernel has more than 4096 statements at `barrier`");
    assert_eq!(errors(&" ".repeat((1 << 20) + 1))[0].code, codes::TOO_LARGE);
}

/// Everything open at once still fits a small stack.
#[test]
fn deepest_programs_fit_a_small_stack() {
    let run = || {
        let source = body(&format!(
            "{}let x = {}1{} {}",
            "if alpha == 0 { ".repeat(30),
            "max(1, -(".repeat(15),
            "))".repeat(15),
            "}".repeat(30)
        ));
        let module = super::parsed(&source);
        let text = crate::print::print_module(&module);
        assert_eq!(crate::structural_equality::same_module(&module, &super::parsed(&text)), Ok(()));
        let deep = body(&format!("let x = {}1{}", "max(1, ".repeat(60), ")".repeat(60)));
        crate::print::print_module(&super::parsed(&deep));
        let views = format!("let x = {}0{}", "A[cast<f32>(".repeat(30), ")]".repeat(30));
        crate::print::print_module(&super::parsed(&body(&views)));
        errors(&body(&"if alpha == 0 { } else ".repeat(5000)));
        errors(&body(&format!("let x = {}", "sum(-(".repeat(5000))));
    };
    std::thread::Builder::new().stack_size(512 << 10).spawn(run).unwrap().join().unwrap();
}

#[test]
fn comments_and_layouts() {
    one("kernel k() {} /* /* */", "E0105 this comment is never closed at `/*`");
    let found = errors(&body("let a = smem f16[8] layout (8 let b = 1"));
    assert_eq!((found.len(), found[0].code), (1, codes::BAD_LAYOUT));
    let found = errors(&body("let a = reg f16[8] layout 3 = copy A[0..] vec 8 let b = a"));
    assert_eq!((found.len(), found[0].code), (1, codes::BAD_LAYOUT));
    let found = errors(&body("var a = reg f16[8] layout (8,2):(1) barrier"));
    assert_eq!((found.len(), found[0].code), (1, codes::BAD_LAYOUT));
}

#[test]
fn kernels_may_have_the_names_of_functions() {
    for name in ["add", "sum", "max", "copy", "random", "transpose"] {
        assert_eq!(parsed(&format!("kernel {name}() {{}}")).kernels[0].name, name);
    }
    let found = errors("kernel row() {}");
    let edit = found[0].fix.as_ref().expect("an edit");
    assert_eq!((edit.text.as_str(), edit.span), ("row_kernel", found[0].span));
}

#[test]
fn words_clauses_and_counts() {
    one(&body("let row = 1"), "E0107 expected a name to declare, found the reserved word `row` at `row`");
    one("kernel row() {}", "E0107 expected the name of the kernel, found the reserved word `row` at `row`");
    one("kernel k() where 1 == 1 where 2 == 2 {}", "E0108 `where` is written twice at `where`");
    one("kernel k() schedule { stages 2 stages 3 } {}", "E0108 `stages` is written twice at `stages`");
    one(&body("copy A -> A vec 8 vec 4"), "E0108 `vec` is written twice at `vec`");
    one(&body("let x = max(1, 2, 3)"), "E0109 `max` takes 2 operands, found 3 at `max(1, 2, 3)`");
    one(&body("let x = exp2()"), "E0109 `exp2` takes 1 operands, found 0 at `exp2()`");
    one(&body("let x = mma(A, A)"), "E0109 `mma` takes 3 operands, found 2 at `mma(A, A)`");
    one("kernel k(A: gmem f16[M, K] strides (1)) {}", "E0109 1 stride for 2 dimensions at `strides (1)`");
    one("kernel k() schedule { stage 2 } {}", "E0110 no schedule item is called `stage` at `stage`");
}

#[test]
fn habits_of_numpy_are_answered() {
    let notes = |text: &str| errors(&body(text)).iter().flat_map(|d| d.notes.clone()).collect::<Vec<_>>();
    let let_or_var = "`let` begins a name whose value stays, `var` one that is assigned again";
    assert_eq!(notes("a = A[i.., 0..+8] b = a"), [let_or_var, let_or_var]);
    assert_eq!(notes("var total = reg f32[8] totel = total"), ["did you mean `total`?"]);
    let fix = errors(&body("a = A[i.., 0..+8] copy a -> A"))[0].fix.clone().expect("`let` is put in front");
    let front = u32::try_from(body("").len() - 2).expect("a short text");
    assert_eq!((fix.text.as_str(), fix.span.start, fix.span.end), ("let ", front, front));
    assert_eq!(notes("let x = mean(alpha)"), ["it is written `sum(x, 1) / N`: an extent is a number of expressions"]);
    assert_eq!(notes("let x = log1p(alpha)"), ["it is written `log(1.0 + x)`, which rounds small `x` away"]);
}

/// A name that is misspelt in front of `=` is not begun anew: the program would compile, and assign nothing.
#[test]
fn misspelt_assignments_begin_nothing() {
    let fix = |text: &str| {
        let text = body(text);
        let d = errors(&text).remove(0);
        d.fix.map(|f| (text[f.span.start as usize..f.span.end as usize].to_owned(), f.text))
    };
    let replaced = |from: &str, to: &str| Some((from.to_owned(), to.to_owned()));
    assert_eq!(fix("var acc = reg f32[8] = 0.0 ac = acc + 1.0"), replaced("ac", "acc"));
    assert_eq!(fix("var acc = reg f32[8] = 0.0 Acc = acc + 1.0 copy Acc -> A"), replaced("Acc", "acc"));
    // Nobody reads it, or it is assigned twice: `let` would not mend it.
    assert_eq!(fix("var acc = reg f32[8] = 0.0 abc = acc + 1.0"), None);
    assert_eq!(fix("other = alpha other = other + 1 copy other -> A"), None);
    // The similar name cannot be assigned.
    assert_eq!(fix("let total = alpha totals = total"), None);
    assert_eq!(fix("let total = alpha totals = total copy totals -> A"), replaced("", "let "));
    assert_eq!(fix("other = alpha copy other -> A"), replaced("", "let "));
}

#[test]
fn misspelt_words_are_replaced_by_words() {
    for (text, wrong, meant) in [
        ("lt a = alpha + 1 copy a -> A", "lt", "let"),
        ("ver a = reg f32[8] = 0.0 copy a -> A", "ver", "var"),
        ("var a = rge f32[8] = 0.0", "rge", "reg"),
        ("var a = rg f32[8] = 0.0", "rg", "reg"),
        ("var a = f32[8] = 0.0", "", "reg "),
        ("cpoy A -> A", "cpoy", "copy"),
        ("fi alpha == 1 { }", "fi", "if"),
        ("fro k in 0..8 { }", "fro", "for"),
    ] {
        let source = body(text);
        let found = errors(&source);
        assert_eq!(found.len(), 1, "{text}: {found:#?}");
        let fix = found[0].fix.clone().unwrap_or_else(|| panic!("{text}: {found:#?}"));
        assert_eq!((&source[fix.span.start as usize..fix.span.end as usize], &fix.text[..]), (wrong, meant), "{text}");
    }
    let found = errors(&body("int a = alpha copy a -> A"));
    assert!(found.len() == 1 && found[0].fix.is_none() && found[0].notes[0].starts_with("`let` begins"), "{found:#?}");
    assert_eq!(errors("kernl k() {}")[0].notes, ["did you mean `kernel`?"]);
}

/// A clause word at the wrong position is not reported as misspelt.
#[test]
fn words_in_another_place_are_said_to_be_so() {
    for (source, place) in [
        ("kernel k(A: gmem f16[M] align 16 multiple 8) {}", "after the shape of a tensor"),
        ("kernel k(A: gmem f16[M], alpha: f32 multiple 8) {}", "after the shape of a tensor"),
        ("kernel k(A: gmem f16[M where M > 1) {}", "between the parameters"),
        (&body("for k in 0..4 unroll step 2 { }"), "after the range"),
        (&body("unroll for k in 0..4 { }"), "after the range"),
        (&body("role load registers 40 warps 4 { }"), "in the head of a role"),
    ] {
        let found = errors(source);
        let notes = &found[0].notes;
        assert!(notes.iter().any(|note| note.contains(place)), "{source}: {found:#?}");
        assert!(
            found.iter().all(|d| d.notes.iter().all(|note| !note.contains("did you mean"))),
            "{source}: {found:#?}"
        );
    }
}

#[test]
fn names() {
    one(&body("let x = y"), "E0201 `y` is not declared here at `y`");
    one("kernel k() grid (i: 4) where i < 4 {}", "E0201 `i` is not declared here at `i`");
    one("kernel k() grid (i: 4) schedule { stages i } {}", "E0201 `i` is not declared here at `i`");
    one(&body("let x = x"), "E0201 `x` is not declared here at `x`");
    one(&body("if alpha == 0 { let x = 1 } let z = x"), "E0201 `x` is not declared here at `x`");
    one(&body("y = 1"), "E0201 `y` is not declared here at `y`");
    one(&body("wait y"), "E0201 `y` is not declared here at `y`");
    one(&body("let alpha = 1"), "E0202 the name `alpha` is declared twice at `alpha`");
    one(&body("for i in 0..4 { barrier }"), "E0202 the name `i` is declared twice at `i`");
    one("kernel k() {} kernel k() {}", "E0202 the kernel `k` is declared twice at `k`");
    one("kernel k(A: gmem f16[M, K], A_ld: i32) {}", "E0202 the name `A_ld` is declared twice at `A_ld`");
    one("kernel k<T: f16 | f16>() {}", "E0202 the type `f16` is listed twice at `f16`");
    one(&body("let x = sine(1)"), "E0203 no function is called `sine` at `sine`");
    one(&body("var x = reg f17[8]"), "E0204 no element type is called `f17` at `f17`");
    one("kernel k<T: f17>() {}", "E0204 no element type is called `f17` at `f17`");
    one(&body("var x = reg alpha[8]"), "E0205 expected an element type, but `alpha` is a value at `alpha`");
    one("kernel k<L = 1>(A: gmem f16[M] L) {}", "E0205 expected a layout, but `L` is an integer at `L`");
    one("kernel k() schedule { target sm_71 } {}", "E0206 no target is called `sm_71` at `sm_71`");
    one(&body("let x = mma<m8>(A, A, A)"), "E0207 no atom is called `m8` at `m8`");
    one("kernel k<T: f16 | bf16 = f32>() {}", "E0208 the default `f32` is not one of the types allowed here at `f32`");
}

#[test]
fn suggestions_and_places() {
    let source = body("var accumulator = reg f32[] = 0.0 acumulator = 1.0");
    let d = &errors(&source)[0];
    assert_eq!(d.notes, ["did you mean `accumulator`?"]);
    assert_eq!(&source[d.labels[0].span.start as usize..d.labels[0].span.end as usize], "accumulator");
    let source = body("let x = 1 let x = 2");
    let d = &errors(&source)[0];
    assert!(d.labels[0].span < d.span);
    for word in ["maxx", "maks"] {
        assert_eq!(errors(&body(&format!("let x = {word}(1, 2)")))[0].notes, ["did you mean `max`?"], "{word}");
    }
}

#[test]
fn several_errors_per_run_and_no_echoes() {
    let source = "
kernel a(A: gmem f61[M, K], x f32, B: gmem f16[K, N]) {
    let y = max(1 2)
    let z = y + x + M + N
    copy A[0.., 0..] -> nowhere vec
    for k in 0..K stepp 4 { let w = ( }
    copy nowhere -> B[0.., w..]
}
kernel b() { let c = }
kernel d() where { }
";
    assert_eq!(
        all(source),
        [
            "E0204 no element type is called `f61` at `f61`",
            "E0102 expected `:`, found `f32` at `f32`",
            "E0102 expected `,` or `)`, found the number `2` at `2`",
            "E0102 expected an integer literal (elements per access), found `for` at `for`",
            "E0102 expected `step`, `while`, `next`, `unroll` or `{`, found `stepp` at `stepp`",
            "E0102 expected an expression, found `}` at `}`",
            "E0102 expected an expression, found `}` at `}`",
            "E0102 expected an expression, found `{` at `{`",
        ]
    );
}

/// Each code of this part of the table is triggered by this file.
#[test]
fn every_code_is_tested() {
    let this = include_str!("errors.rs");
    for (code, title, text) in codes::ALL {
        if code.0 < "E0220" {
            let by_name = match code.0 {
                "E0103" => "codes::TOO_DEEP",
                "E0106" => "codes::BAD_LAYOUT",
                other => other,
            };
            assert!(this.contains(by_name), "{code} {title}: {text}");
        }
    }
}
