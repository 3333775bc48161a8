//! Printing and parsing lose nothing.

use super::{SAMPLES, parsed};
use crate::diag::Span;
use crate::entities::Expr;
use crate::kernel::{ExprData, Kernel, StmtData, ValueDef};
use crate::ops::{Form, Op};
use crate::print::{print, print_expr, print_module};
use crate::random_tests::repeat;
use crate::structural_equality::{same, same_module};
use pretty_assertions::assert_eq;

#[test]
fn samples_survive_printing() {
    for (name, source) in SAMPLES {
        let module = parsed(source);
        let text = print_module(&module);
        let again = parsed(&text);
        assert_eq!(same_module(&module, &again), Ok(()), "{name}:\n{text}");
        assert_eq!(print_module(&again), text, "{name}");
    }
}

#[test]
fn lowered_form_is_canonical() {
    let source = SAMPLES[3].1;
    let without_comment = &source[source.find("kernel").unwrap()..];
    let text = print_module(&parsed(source));
    // Layouts are normalised by their own printer: compare what is before them.
    let lines = |text: &str| -> Vec<String> {
        let end = |line: &str| line.find(" layout ").or(line.find(" threads (")).unwrap_or(line.len());
        text.lines().map(|line| line[..end(line)].to_owned()).collect()
    };
    assert_eq!(lines(&text), lines(without_comment));
}

#[test]
fn long_headers_wrap_by_group() {
    let text = print_module(&parsed(SAMPLES[0].1));
    let expected = "\
kernel gemm<T: f16 | bf16 | tf32 | f32 | f64 | i8 | u8 | e4m3 | e5m2 = f16, TB: type = T,
            Acc: f32 | f16 | f64 | i32 = f32, Out: type = Acc, Scale: f32 | f16 | f64 | i32 = Acc,
            LA: layout = row, LB: layout = row, LC: layout = row,
            BM = auto, BN = auto, BK = auto, WM = auto, WN = auto, KW = auto, STAGES = auto, RASTER = auto,
            PROMOTE = 128, ALIGN = 8, ALIGN_A = ALIGN, ALIGN_B = ALIGN, ALIGN_C = ALIGN>(
    A: gmem T[M, K] LA multiple ALIGN_A, B: gmem TB[K, N] LB multiple ALIGN_B, C: gmem Out[M, N] LC multiple ALIGN_C,
    alpha: Scale = 1, beta: Scale = 0)
    grid (bm: ceildiv(M, BM), bn: ceildiv(N, BN))
    schedule { warp_tile (WM, WN) k_warps KW stages STAGES raster RASTER promote PROMOTE }
{
";
    assert_eq!(&text[..expected.len()], expected);
}

#[test]
fn names_in_disjoint_blocks_become_unique() {
    let module = parsed(SAMPLES[4].1);
    let mut names: Vec<&str> = module.kernels[0].values.values().map(|v| v.name.as_str()).collect();
    names.sort_unstable();
    let before = names.len();
    names.dedup();
    assert_eq!(names.len(), before);
}

#[test]
fn implicit_names_of_tensors() {
    let module = parsed(
        "kernel k(A: gmem f16[M, K], B: gmem f16[K, M, M] col, C: gmem f16[M], D: gmem f16[M, K] strides (s, 1)) {}",
    );
    let k = &module.kernels[0];
    let names = |list: &[crate::entities::Value]| list.iter().map(|&v| k.values[v].name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&k.sizes), ["M", "K"]);
    assert_eq!(names(&k.strides), ["A_ld", "B_ld0", "B_ld1", "s"]);
}

#[test]
fn sugar_makes_a_variable_and_a_copy() {
    let module = parsed("kernel k(A: gmem f16[M]) { let x = reg f16[8] = copy A[0..] vec 8 }");
    let k = &module.kernels[0];
    let stmts = &k.blocks[k.body];
    assert!(matches!(k.stmts[stmts[0]], StmtData::Var { init: None, .. }));
    assert!(matches!(&k.stmts[stmts[1]], StmtData::Copy { attrs, .. } if attrs.vec == Some(8)));
    assert_eq!(print(k), "kernel k(A: gmem f16[M] row)\n{\n    var x = reg f16[8]\n    copy A[0..] -> x vec 8\n}\n");
}

/// Parses `text` as an expression over `a`, `b`.
fn reparse(text: &str) -> (Kernel, Expr) {
    let kernel = parsed(&format!("kernel k(a: f32, b: f32) {{ let x = {text} }}")).kernels.remove(0);
    let StmtData::Let { init, .. } = kernel.stmts[kernel.blocks[kernel.body][0]] else { panic!("not a let") };
    (kernel, init)
}

#[test]
fn minimal_parentheses() {
    for (source, printed) in [
        ("(a * b) + a", "a * b + a"),
        ("a * (b + a)", "a * (b + a)"),
        ("(a - b) - a", "a - b - a"),
        ("a - (b - a)", "a - (b - a)"),
        ("-(a + b)", "-(a + b)"),
        ("(-a) * b", "-a * b"),
        ("(- 1)", "-1"),
        ("-(1)", "-(1)"),
        ("- - a", "--a"),
        ("a - -1", "a - -1"),
        ("(a < b) == (b < a)", "a < b == b < a"),
        ("a < (b == a)", "a < (b == a)"),
        ("(a || b) && a", "(a || b) && a"),
        ("max((a), ((b + 1)))", "max(a, b + 1)"),
        ("1e30 + 1E-7 + 100000000000000000000.0", "1e30 + 1e-7 + 1e20"),
    ] {
        let (k, e) = reparse(source);
        assert_eq!(print_expr(&k, e), printed, "{source}");
    }
}

/// Random trees of operators and literals.
fn tree(u: &mut arbitrary::Unstructured<'_>, k: &mut Kernel, depth: u32) -> arbitrary::Result<Expr> {
    let none = Span::default();
    if depth == 0 || u.ratio(1, 4)? {
        let values: Vec<_> = k.params.clone();
        return Ok(match u.int_in_range(0..=2)? {
            0 => k.int(u.arbitrary()?, none),
            1 => {
                let x: f64 = u.arbitrary()?;
                let x = if x.is_nan() { f64::NAN } else { x };
                k.expr(ExprData::Float(x.to_bits()), none)
            }
            _ => k.value_ref(values[u.choose_index(values.len())?], none),
        });
    }
    let op = *u.choose(Op::ALL)?;
    let args = (0..op.arity()).map(|_| tree(u, k, depth - 1)).collect::<arbitrary::Result<Vec<_>>>()?;
    Ok(k.expr(ExprData::Op { op, args }, none))
}

#[test]
fn random_expressions_survive_printing() {
    repeat(400, 1 << 12, |u| {
        let mut k = parsed("kernel k(a: f32, b: f32) {}").kernels.remove(0);
        let init = tree(u, &mut k, 5)?;
        let value = k.value("x", Span::default(), ValueDef::Let);
        let stmt = k.stmt(StmtData::Let { value, init }, Span::default());
        let body = k.body;
        k.blocks[body].push(stmt);
        let text = print(&k);
        assert_eq!(same(&k, &parsed(&text).kernels[0]), Ok(()), "{text}");
        Ok(())
    });
}

#[test]
fn spans_cover_their_text() {
    let source = "kernel k(a: f32, b: f32) { let x = a + max(a, -2) * (b - 1) }";
    let module = parsed(source);
    let k = &module.kernels[0];
    let text = |span: Span| &source[span.start as usize..span.end as usize];
    let stmt = k.blocks[k.body][0];
    assert_eq!(text(k.stmt_spans[stmt]), "let x = a + max(a, -2) * (b - 1)");
    let StmtData::Let { init, .. } = k.stmts[stmt] else { panic!("not a let") };
    let mut found: Vec<&str> = Vec::new();
    let mut work = vec![init];
    while let Some(e) = work.pop() {
        found.push(text(k.expr_spans[e]));
        work.extend(k.children(e));
    }
    found.sort_unstable();
    let expected = ["-2", "1", "a", "a", "a + max(a, -2) * (b - 1", "b", "b - 1", "max(a, -2)", "max(a, -2) * (b - 1"];
    assert_eq!(found, expected);
    assert!(Op::ALL.iter().any(|op| op.form() == Form::Call));
}
