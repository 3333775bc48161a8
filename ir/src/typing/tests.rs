//! Typing rules, on snippets: each expression is the initialiser of the last `let` of a body.

use super::{Type, Types, ViewDim, copy_shape, fixed_shape, let_init, resolve_view, type_of};
use crate::diag::Sink;
use crate::entities::Expr;
use crate::kernel::{Kernel, StmtData};
use crate::parser::parse;
use pretty_assertions::assert_eq;

const HEAD: &str = "kernel t<T: f16 | bf16 = f16, Acc: f32 | f16 = f32, BM = 64>(
    A: gmem f16[M, K], B: gmem T[K, N] col, D: gmem f64[M, N], V: gmem f32[N], Q: gmem f16[Z, M, K],
    alpha: f32 = 1.0, beta: f64 = 0.0, flag: bool = 0, n: i32 = 1) grid (g: M) {
    let a = smem f16[64, 32]
    let b = smem f16[32, 128]
    let ring = channel f16[64, 32] slots 2
    var acc = reg f32[64, 128] = 0.0
    var h = reg f16[64, 128] = 0.0
    var cv = reg f32[64, 1] = 0.0
    var i = reg i32[64, 128] = 0
    var p = reg Acc[BM, 128] = 0.0
    var t = reg T[BM, 128] = 0.0
    let w = A[g.., 3..]
    let tw = transpose(w)
";

fn kernel(expr: &str) -> Kernel {
    let source = format!("{HEAD}    let x = {expr}\n}}\n");
    let mut sink = Sink::new();
    let mut module = parse(&source, &mut sink).unwrap_or_else(|_| panic!("{expr}: {:?}", sink.diagnostics()));
    module.kernels.remove(0)
}

fn last(k: &Kernel) -> Expr {
    let s = *k.blocks[k.body].last().unwrap();
    match k.stmts[s] {
        StmtData::Let { init, .. } => init,
        // A product that has a name is written out.
        StmtData::Assign { src, .. } => src,
        _ => panic!("the last statement is a `let`, or what became of it"),
    }
}

fn described(expr: &str) -> String {
    let k = kernel(expr);
    match type_of(&k, last(&k)) {
        Ok(t) => t.describe(&k),
        Err(e) => format!("{}: {}", e.0.code, e.0.message),
    }
}

#[test]
fn types_follow_the_rules() {
    for (expr, ty) in [
        ("3", "an index"),
        ("ceildiv(M, 64) * K - A_ld", "an index"),
        ("1.5 * 2", "a number"),
        ("g < M && flag", "bool"),
        ("alpha", "f32"),
        ("alpha * 2", "f32"),
        ("alpha * beta", "f64"),
        ("n + g", "i32"),
        ("a", "smem f16[64, 32]"),
        ("transpose(a)", "smem f16[32, 64]"),
        ("ring.get", "smem f16[64, 32]"),
        ("ring.get[0.., 8..]", "a rank-2 window of f16"),
        ("acc", "reg f32[64, 128]"),
        ("acc * alpha + 1", "reg f32[64, 128]"),
        ("h + acc", "reg f32[64, 128]"),
        ("h * 2.5", "reg f16[64, 128]"),
        ("acc - cv", "reg f32[64, 128]"),
        ("cv + acc", "reg f32[64, 128]"),
        ("acc * beta", "reg f64[64, 128]"),
        ("sum(acc, 1)", "reg f32[64, 1]"),
        ("maximum(acc, 0)", "reg f32[1, 128]"),
        ("iota(acc, 1)", "reg i32[64, 128]"),
        ("g + iota(acc, 1) < N", "reg bool[64, 128]"),
        ("select(i < 3, acc, -1.0)", "reg f32[64, 128]"),
        ("select(flag, 1, 2)", "an index"),
        ("select(i < 3, 1, 2)", "reg i32[64, 128]"),
        ("cast<f16>(acc)", "reg f16[64, 128]"),
        ("cast<f32>(g)", "f32"),
        ("cast<f16>(flag)", "f16"),
        ("A", "a rank-2 window of f16"),
        ("Q[g, 0.., 3..]", "a rank-2 window of f16"),
        ("Q[g, 0, 3..]", "a rank-1 window of f16"),
        ("w", "a rank-2 window of f16"),
        ("tw[0.., 1..]", "a rank-2 window of f16"),
        ("D * acc", "reg f64[64, 128]"),
        // A vector repeats along the rows.
        ("acc + V", "reg f32[64, 128]"),
        ("D + V", "a rank-2 window of f64"),
        ("alpha * w", "a rank-2 window of f32"),
        ("alpha * p", "reg f32[BM, 128]"),
        ("t * 2.0", "reg T[BM, 128]"),
        ("mma(a, b, acc)", "reg f32[64, 128]"),
        ("mma(transpose(A[0.., 0..]), b, acc)", "reg f32[64, 128]"),
        ("mma(ring.get, B, acc)", "reg f32[64, 128]"),
    ] {
        assert_eq!(described(expr), ty, "type of `{expr}`");
    }
}

#[test]
fn errors_name_the_rule() {
    for (expr, code) in [
        ("acc + i", "E0220"),
        ("i + 1.5", "E0220"),
        ("acc + transpose(acc)", "E0221"),
        ("acc % 2", "E0222"),
        ("sqrt(i)", "E0222"),
        ("exp2(g)", "E0222"),
        ("flag + 1", "E0222"),
        ("acc && flag", "E0222"),
        ("select(acc, 1, 2)", "E0222"),
        ("sum(alpha, 0)", "E0222"),
        ("transpose(V)", "E0222"),
        ("mma(a, D, acc)", "E0223"),
        ("mma(a, b, i)", "E0223"),
        ("mma(b, a, acc)", "E0224"),
        ("mma(a, transpose(b), acc)", "E0224"),
        ("mma(a, b, transpose(acc))", "E0224"),
        ("mma(a, b, w)", "E0224"),
        ("mma(a, V, acc)", "E0224"),
        ("mma(w, B, acc)", "E0225"),
        ("sum(w, 0)", "E0225"),
        ("iota(A, 0)", "E0225"),
        ("A[0..]", "E0226"),
        ("w[0.., 0.., 0..]", "E0226"),
        ("A[alpha.., 0..]", "E0227"),
        ("A[i.., 0..]", "E0227"),
        ("A[0..1.5, 0..]", "E0227"),
        ("sum(acc, 2)", "E0228"),
        ("iota(acc, 5)", "E0228"),
    ] {
        let found = described(expr);
        assert_eq!(found.get(..5), Some(code), "`{expr}`: {found}");
    }
}

#[test]
fn a_let_of_memory_is_a_register_tile() {
    let k = kernel("acc");
    let x = k.values.keys().find(|&v| k.values[v].name == "x").unwrap();
    assert_eq!(let_init(&k, x), Some(last(&k)));
    let mut k = kernel("a");
    let x = k.values.keys().find(|&v| k.values[v].name == "x").unwrap();
    let e = k.value_ref(x, crate::diag::Span::default());
    assert_eq!(type_of(&k, e).unwrap().describe(&k), "reg f16[64, 32]");
    assert_eq!(resolve_view(&k, e), None);
}

#[test]
fn windows_compose() {
    let text = |expr: &str| {
        let k = kernel(expr);
        resolve_view(&k, last(&k)).map(|v| {
            let dims: Vec<String> = v
                .dims
                .iter()
                .map(|d| match d {
                    ViewDim::Fixed(e) => format!("@{}", crate::print::print_expr(&k, *e)),
                    ViewDim::Gather(e) => format!("[{}]", crate::print::print_expr(&k, *e)),
                    ViewDim::From { starts, end } => {
                        let starts: Vec<_> = starts.iter().map(|&e| crate::print::print_expr(&k, e)).collect();
                        let end = end.map_or(String::new(), |e| crate::print::print_expr(&k, e));
                        format!("{}..{end}", starts.join("+"))
                    }
                })
                .collect();
            format!("{}[{}]{}", k.values[v.base].name, dims.join(", "), if v.transposed { "^T" } else { "" })
        })
    };
    assert_eq!(text("A").as_deref(), Some("A[.., ..]"));
    assert_eq!(text("w").as_deref(), Some("A[g.., 3..]"));
    assert_eq!(text("w[1.., 2..]").as_deref(), Some("A[g+1.., 3+2..]"));
    assert_eq!(text("tw").as_deref(), Some("A[g.., 3..]^T"));
    assert_eq!(text("tw[1.., 2..]").as_deref(), Some("A[g+2.., 3+1..]^T"), "ranges count in the window's order");
    assert_eq!(text("transpose(tw)").as_deref(), Some("A[g.., 3..]"));
    assert_eq!(text("Q[g, 0..5, 3..]").as_deref(), Some("Q[@g, 0..5, 3..]"));
    assert_eq!(text("w[1.., 2]"), None, "needs the sum 3 + 2");
    assert_eq!(text("w[1.., 2..9]"), None, "needs the sum 3 + 9");
    assert_eq!(text("ring.put").as_deref(), Some("ring[.., ..]"));
    assert_eq!(text("acc + 1.0"), None);
    assert_eq!(text("alpha"), None);
}

#[test]
fn extents_come_from_the_side_that_has_some() {
    let shape = |expr: &str| {
        let k = kernel(expr);
        fixed_shape(&k, last(&k))
    };
    assert_eq!(shape("acc * 2.0"), Some(vec![64, 128]));
    assert_eq!(shape("a"), Some(vec![64, 32]));
    assert_eq!(shape("w"), None);
    assert_eq!(shape("alpha"), None);
    assert_eq!(shape("p"), None, "BM is not bound");
    let mut k = kernel("alpha * acc");
    let (src, span) = (last(&k), crate::diag::Span::default());
    let d = k.values.keys().find(|&v| k.values[v].name == "D").unwrap();
    let dst = k.value_ref(d, span);
    assert_eq!(copy_shape(&k, src, dst), Some(vec![64, 128]));
    assert_eq!(copy_shape(&k, dst, dst), None);
}

#[test]
fn doubling_lets_cost_linear_time() {
    let mut source = format!("{HEAD}    let x0 = acc + acc\n");
    for i in 1..1000 {
        source += &format!("    let x{i} = x{} + x{}\n", i - 1, i - 1);
    }
    source += "}\n";
    let k = parse(&source, &mut Sink::new()).unwrap().kernels.remove(0);
    assert!(matches!(Types::new(&k).type_of(last(&k)), Ok(Type::Tile(_))));
}
