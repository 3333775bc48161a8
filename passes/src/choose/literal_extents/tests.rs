use super::*;
use tilec_ir::diag::Sink;
use tilec_ir::parser::parse;
use tilec_ir::target::Target;

/// The numbers that are free: value, texts of the places in their lines, tiles, and what has to be a multiple.
fn of(source: &str) -> Vec<(i64, usize, String, Vec<String>)> {
    let mut sink = Sink::new();
    let module = parse(source, &mut sink).expect("it parses");
    let all = literal_extents(&module.kernels[0], &Options::new(Target::Sm80));
    all.into_iter()
        .map(|own| {
            let is_there = |span: &Span| source[span.start as usize..span.end as usize] == own.value.to_string();
            assert!(own.places.iter().all(is_there), "{own:?}");
            let tiles: Vec<String> = own.tiles.iter().map(|(name, d)| format!("{name}.{d}")).collect();
            (own.value, own.places.len(), tiles.join(" "), own.multiples)
        })
        .collect()
}

fn number(value: i64, places: usize, tiles: &str, multiples: &[&str]) -> (i64, usize, String, Vec<String>) {
    (value, places, tiles.to_owned(), multiples.iter().map(|&of| of.to_owned()).collect())
}

/// Equal numbers of different dimensions are different extents.
#[test]
fn numbers_that_have_to_agree_are_one() {
    let product = "kernel g(A: gmem f16[M, K], B: gmem f16[K, N], C: gmem f32[M, N]) grid (i: ceildiv(M, 16), j: ceildiv(N, 16)) {
        let a = smem f16[16, 16] let b = smem f16[16, 16] var acc = reg f32[16, 16] = 0.0
        for k in 0..K step 16 { copy A[i * 16.., k..] -> a copy B[k.., j * 16..] -> b acc = mma(a, b, acc) }
        copy acc -> C[i * 16.., j * 16..] }";
    assert_eq!(
        of(product),
        [number(16, 5, "a.0 acc.0", &[]), number(16, 3, "a.1 b.0", &[]), number(16, 5, "b.1 acc.1", &[])]
    );
}

/// The number of elements of a window, `..+n`, is one of them. Zeros past an end do not count in a sum, and do in an extreme.
#[test]
fn elements_past_an_end_ask_for_multiples() {
    let rows = |op: &str, reduce: &str, begin: &str| {
        of(&format!(
            "kernel r(X: gmem f32[M, N], S: gmem f32[M]) grid (i: M) {{ var m = reg f32[32] = {begin}
             for j in 0..N step 32 {{ m = {op} }} copy {reduce}(m, 0) -> S[i..+1] }}"
        ))
    };
    assert_eq!(rows("m + X[i, j..+32]", "sum", "0.0"), [number(32, 3, "m.0", &[])]);
    assert_eq!(rows("max(m, X[i, j..+32])", "maximum", "-inf"), [number(32, 3, "m.0", &["N"])]);
    // What each element begins with, and what it collects, would count in more of them.
    assert_eq!(rows("m + X[i, j..+32]", "sum", "1.0"), []);
    assert_eq!(rows("m + X[i, j..+32]", "maximum", "0.0"), []);
}

/// Windows that do not move by their extent, written layouts, and groups that results are for prescribe it.
#[test]
fn what_results_depend_on_is_not_free() {
    let stencil = "kernel s(X: gmem f32[N], Y: gmem f32[N]) grid (i: ceildiv(N, 64)) {
        var x = reg f32[128] copy X[i * 64..] -> x copy x -> Y[i * 64..] }";
    assert_eq!(of(stencil), []);
    let whole = "kernel w(X: gmem f32[N, 64], Y: gmem f32[N, 64]) grid (i: N) {
        var x = reg f32[1, 64] copy X[i.., ..] -> x copy x * 2.0 -> Y[i.., ..] }";
    assert_eq!(of(whole), []);
    let laid_out = "kernel l(X: gmem f32[N], Y: gmem f32[N]) grid (i: ceildiv(N, 64)) {
        let x = smem f32[64] layout (64):(1) copy X[i * 64..] -> x copy x -> Y[i * 64..] }";
    assert_eq!(of(laid_out), []);
    let groups = "kernel q(X: gmem f32[N], S: gmem f32[G]) grid (g: ceildiv(N, 32)) {
        var x = reg f32[32] copy X[g * 32..] -> x copy maximum(x, 0) -> S[g..+1] }";
    assert_eq!(of(groups), []);
    let numbered = "kernel i(X: gmem i32[N]) grid (i: ceildiv(N, 64)) {
        var x = reg i32[64] = 0 copy x + iota(x, 0) -> X[i * 64..] }";
    assert_eq!(of(numbered), []);
}

/// A loop over parts of a tile covers all of it.
#[test]
fn parts_of_tiles_cover_them() {
    let parts = |end: u32| {
        of(&format!(
            "kernel p(A: gmem f16[M, K], B: gmem f16[K, N], C: gmem f32[M, N]) grid (i: ceildiv(M, 64), j: ceildiv(N, 64)) {{
             let a = smem f16[64, 32] let b = smem f16[32, 64] var acc = reg f32[64, 64] = 0.0
             for k in 0..K step 32 {{ copy A[i * 64.., k..] -> a copy B[k.., j * 64..] -> b
             for kk in 0..{end} step 16 {{ acc = mma(a[.., kk..kk + 16], b[kk..kk + 16, ..], acc) }} }}
             copy acc -> C[i * 64.., j * 64..] }}"
        ))
    };
    let depth = |end: u32| parts(end).into_iter().find(|(value, ..)| *value == 32);
    assert!(depth(32).is_none_or(|(_, places, ..)| places == 4), "{:?}", parts(32));
    assert_eq!(depth(16), None);
}
