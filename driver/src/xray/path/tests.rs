//! Ways of elements of whole programs.

use super::*;
use crate::compile::{CompileOptions, compile};
use tilec_ir::target::Target;

const GEMM: &str = include_str!("../../../../examples/gemm.tile");

/// As answers about elements compile programs.
pub(super) fn options(target: Target) -> CompileOptions {
    CompileOptions { target, keep_places: true, report_accesses: true, ..CompileOptions::default() }
}

fn called(name: &str, coords: &[u64]) -> Element {
    Element { kernel: None, name: name.to_owned(), coords: coords.iter().map(|&n| Coord::Number(n)).collect() }
}

fn steps(target: Target, name: &str, coords: &[u64]) -> Vec<Step> {
    let program = compile(GEMM, &options(target)).expect("compiles");
    path(&program, &called(name, coords)).expect("a way").steps
}

/// Against the layouts by hand: row 3 of 128 bytes, whose 16-byte pieces are exchanged by the row: element 5 is in piece 0, which is at 3.
#[test]
fn an_element_is_followed_to_the_product() {
    let way = steps(Target::Sm90a, "A", &[131, 69]);
    let kinds: Vec<&str> = way.iter().map(|s| s.at).collect();
    assert_eq!(
        kinds,
        ["global memory", "copy", "shared memory", "product", "registers", "copy", "registers", "result", "result"],
        "{way:?}"
    );
    assert!(way[1].text.contains("bm = 1, k = 64") && way[1].text.contains("TMA"), "{way:?}");
    assert_eq!(way[2].what, "a[3, 5]");
    assert!(way[2].text.starts_with(&format!("byte {}", 3 * 128 + 3 * 16 + 10)), "{way:?}");
    assert!(way[2].text.contains("bank 14"), "{way:?}");
    assert!(way[7].what.starts_with("C[131, bn * "), "{way:?}");
}

#[test]
fn fragments_are_on_the_way_where_threads_load_them() {
    let way = steps(Target::Sm80, "B", &[17, 9]);
    let fragments = way.iter().filter(|s| s.at == "registers" && s.what.starts_with("b_frag")).count();
    assert!(fragments >= 1 && way.iter().any(|s| s.text.contains("cp.async")), "{way:?}");
}

/// A result leads back through the epilogue to the product, and to the row and the column that it is made of.
#[test]
fn a_result_is_followed_back() {
    for target in [Target::Sm80, Target::Sm90a] {
        let way = steps(target, "C", &[3, 5]);
        let has = |at: &str, what: &str| way.iter().any(|s| s.at == at && s.what == what);
        let stores = way.iter().filter(|s| s.at == "result" && s.text.starts_with("at bm = 0, bn = 0: "));
        assert_eq!(stores.count(), 2, "{way:?}");
        let product = way.iter().find(|s| s.at == "product" && s.what.ends_with("acc)")).expect("a product");
        assert!(has("registers", "acc[3, 5]") && product.text.starts_with("row 3 of `a"), "{way:?}");
        assert!(product.text.contains(" with column 5 of `b"), "{way:?}");
        assert!(has("shared memory", "a[3, ..]") && has("shared memory", "b[.., 5]"), "{way:?}");
        assert!(has("global memory", "A[3, k..]") && has("global memory", "B[k.., 5]"), "{way:?}");
        // `beta * C`.
        assert_eq!(way.iter().filter(|s| s.what == "C[3, 5]" && s.at == "global memory").count(), 2, "{way:?}");
    }
}

/// Through shared memory, and through what is computed in registers, to the element that is stored; where a sum begins, the way ends.
#[test]
fn ways_end_where_the_element_is_stored() {
    let of = |source: &str, target, name: &str, coords: &[u64]| {
        path(&compile(source, &options(target)).expect("compiles"), &called(name, coords)).expect("a way")
    };
    let kinds = |path: &Path| path.steps.iter().map(|s| s.at).collect::<Vec<_>>();
    let way = of(include_str!("../../../../examples/transpose.tile"), Target::Sm80, "A", &[67, 5]);
    assert_eq!(kinds(&way), ["global memory", "copy", "shared memory", "result"], "{way:?}");
    assert_eq!(way.steps[3].what, "B[5, 67]", "{way:?}");
    assert!(way.links.iter().flatten().all(|link| !link.back), "{way:?}");
    let way = of(include_str!("../../../../examples/transpose.tile"), Target::Sm80, "B", &[5, 67]);
    assert_eq!(way.steps.last().map(|s| &*s.what), Some("A[67, 5]"), "{way:?}");
    assert!(way.links.iter().flatten().all(|link| link.back), "{way:?}");
    // Of two loops that read it, the second one stores what is made of it.
    let way = of(include_str!("../../../../examples/softmax.tile"), Target::Sm80, "X", &[3, 5]);
    let end = way.steps.iter().position(|s| s.at == "result" && s.what == "Y[3, 5]").expect("stored");
    let from = way.links[end].expect("a tile").step;
    assert!(way.steps[from].text.contains("j_1 = 0"), "{way:?}");
    assert!(way.steps.iter().any(|s| s.at == "reduction" && s.what.starts_with("sum(exp2(")), "{way:?}");
    // From a product through numbers of its sums into the next one, and to the result.
    let way = of(include_str!("../../../../examples/attention.tile"), Target::Sm90a, "K", &[0, 0, 3, 5]);
    assert_eq!(way.steps.iter().filter(|s| s.at == "product").count(), 2, "{way:?}");
    assert!(way.steps.iter().any(|s| s.at == "result" && s.what.starts_with("O[0, 0, ")), "{way:?}");
}

/// Rows that memory names: forwards it says so, backwards the tile that names them is followed.
#[test]
fn gathers_and_loops_that_stop_are_said() {
    let source = "kernel k(A: gmem f32[M, N] multiple 4, P: gmem i32[M], C: gmem f32[M, N] multiple 4) grid (i: ceildiv(M, 64)) {\n\
                  var rows = reg i32[64]\nvar x = reg f32[64, 64]\nvar s = reg f32[64, 64] = 0.0\n\
                  copy P[i * 64..] -> rows\n\
                  for j in 0..N step 64 while i < 4 {\ncopy A[rows, j..] -> x\ns = s + x\ncopy C[i * 64.., j..] -> x\ns = s + x\n}\n\
                  copy s -> C[i * 64.., 0..]\n}\n";
    let program = compile(source, &options(CompileOptions::default().target)).expect("compiles");
    let way = path(&program, &called("A", &[3, 5])).expect("a way").steps;
    assert!(way.iter().any(|s| s.text.starts_with("gathered: wherever `rows` names 3")), "{way:?}");
    let way = path(&program, &called("C", &[3, 69])).expect("a way").steps;
    assert!(way.iter().any(|s| s.text.contains("j = 64 (if its `while` lets the loop come so far)")), "{way:?}");
    let way = path(&program, &called("C", &[3, 5])).expect("a way").steps;
    assert!(way.iter().any(|s| s.what.starts_with("A[rows[3], ")), "{way:?}");
    assert!(way.iter().any(|s| s.what == "rows[3]") && way.iter().any(|s| s.what == "P[3]"), "{way:?}");
}

/// Transposed copies, copies of a window into a part of a tile, scattered rows, rows that are counted, names, and dimensions of one element.
#[test]
fn copies_of_every_kind_are_followed() {
    let source = "kernel k(A: gmem f32[N] multiple 8, P: gmem i32[M] multiple 8, X: gmem f32[M, N] multiple 8, B: gmem f32[M, N] multiple 8, R: gmem f32[M], C: gmem f32[M, N]) grid (i: ceildiv(M, 64)) {\n\
                  var v = reg f32[64]\ncopy A[0..] -> v\nvar rows = reg i32[64]\ncopy P[i * 64..] -> rows\n\
                  var x = reg f32[64, 64]\ncopy X[i * 64.., 0..] -> x\nlet y = x * 2.0 + v\ncopy y -> B[rows, 0..]\n\
                  let s = smem f32[64, 64]\ncopy x -> s\nvar u = reg f32[64, 64]\ncopy transpose(s) -> u\ncopy u -> B[i * 64.., 64..]\n\
                  copy sum(x, 1) -> R[i * 64.., _]\nlet c = C[i * 64.., 0..]\ncopy y -> c\n\
                  var z = reg f32[64, 64]\ncopy X[i * 128.. step 2, 128..] -> z\ncopy z -> C[i * 64.., 64..]\n}\n";
    let program = compile(source, &options(Target::Sm80)).expect("compiles");
    let way = |name: &str, coords: &[u64]| path(&program, &called(name, coords)).expect("a way").steps;
    let has = |way: &[Step], at: &str, what: &str| way.iter().any(|s| s.at == at && s.what == what);
    let transposed = way("X", &[3, 5]);
    assert!(has(&transposed, "registers", "u[5, 3]") && has(&transposed, "result", "B[5, 67]"), "{transposed:?}");
    assert!(has(&transposed, "result", "B[rows[3], 5]"), "{transposed:?}");
    let scattered = way("B", &[3, 5]);
    assert!(
        scattered.iter().any(|s| s.at == "result" && s.text.contains("scattered: wherever `rows` names 3")),
        "{scattered:?}"
    );
    assert!(
        has(&scattered, "global memory", "X[i * 64.., 5]") && has(&scattered, "global memory", "P[i * 64..]"),
        "{scattered:?}"
    );
    let widened = way("v", &[40]);
    assert!(has(&widened, "registers", "v_widened[0, 40]"), "{widened:?}");
    assert!(widened.iter().any(|s| s.at == "result" && s.what.starts_with("C[")), "{widened:?}");
    // `R` is of one dimension as it is declared.
    assert_eq!(way("R", &[3]), way("R", &[3, 0]));
    assert!(way("R", &[3]).iter().any(|s| s.at == "result"));
    let named = way("y", &[3, 5]);
    assert!(has(&named, "computed", "y[3, 5]") && has(&named, "registers", "x[3, 5]"), "{named:?}");
    assert!(has(&named, "result", "B[rows[3], 5]") && has(&named, "registers", "v_widened[0, 5]"), "{named:?}");
    let window = way("c", &[3, 5]);
    assert!(
        window[0].at == "window" && window[0].text.contains("C[3, 5]") && has(&window, "registers", "x[3, 5]"),
        "{window:?}"
    );
    let counted = way("X", &[134, 130]);
    assert!(has(&counted, "registers", "z[3, 2]") && has(&counted, "result", "C[67, 66]"), "{counted:?}");
    assert!(!way("X", &[135, 130]).iter().any(|s| s.what.starts_with("z[")));
    assert!(path(&program, &called("y", &[64, 0])).is_err_and(|e| e.contains("has none at [64, 0]")));
}

#[test]
fn what_is_not_there_is_said() {
    let program = compile(GEMM, &options(CompileOptions::default().target)).expect("compiles");
    assert!(path(&program, &called("nothing", &[0])).is_err_and(|e| e.contains("`A`")));
    assert!(path(&program, &called("A", &[0])).is_err_and(|e| e.contains("2 dimensions")));
    assert!(path(&program, &called("acc", &[1 << 20, 0])).is_err());
}
