//! Rules 4 to 17, a broken program each.

use super::errors;
use pretty_assertions::assert_eq;

/// Checks that a program breaks exactly these rules, at these places: `CODE text`.
fn breaks(source: &str, expected: &[(&str, &str)]) {
    let found = errors(source);
    let expected: Vec<String> = expected.iter().map(|(code, at)| format!("{code} at `{at}`")).collect();
    let short: Vec<String> = found.iter().map(|f| f[..f.find("`: ").unwrap() + 1].to_owned()).collect();
    assert_eq!(short, expected, "{source}\n{found:#?}");
}

/// As [`breaks`], for the statements of a body in a kernel with one of everything.
fn body(statements: &str, expected: &[(&str, &str)]) {
    let source = format!(
        "kernel t<BM = 64>(A: gmem f16[M, K], B: gmem f32[M, K], V: gmem f32[K], alpha: f32 = 1.0, n: i32 = 1)
            where K % 8 == 0 grid (g: M) schedule {{ threads 128 }} {{
            let a = smem f16[64, 32]
            let b = smem f32[64, 32]
            let ring = channel f16[64, 32] slots 2
            var r = reg f16[64, 32] = 0.0
            var acc = reg f32[64, 32] = 0.0
            var x = reg f32[] = 0.0
            {statements}
        }}"
    );
    breaks(&source, expected);
}

/// A kernel without statements of its own but names of memory.
fn block(statements: &str, expected: &[(&str, &str)]) {
    let source = format!(
        "kernel t(A: gmem f16[M, K]) where K % 8 == 0 grid (g: M) schedule {{ threads 128 }} {{
            let ring = channel f16[64, 32] slots 2
            {statements}
        }}"
    );
    breaks(&source, expected);
}

#[test]
fn tensors() {
    breaks("kernel t(A: gmem f32[M, N, K, L, P, Q]) {}", &[("E0234", "A")]);
    breaks("kernel t(A: gmem f32[]) {}", &[("E0234", "A")]);
    breaks("kernel t(A: gmem bool[M]) {}", &[("E0234", "A")]);
    breaks("kernel t(A: gmem f32[0, M]) {}", &[("E0234", "0")]);
    breaks("kernel t(A: gmem f32[M - 1, 4294967296]) {}", &[("E0234", "4294967296")]);
    breaks("kernel t(A: gmem f32[M / 2.5]) {}", &[("E0227", "M / 2.5")]);
    breaks("kernel t(A: gmem f32[M, N] strides (-1, 1)) {}", &[("E0234", "-1")]);
    breaks("kernel t(A: gmem f32[M, N] align 24) {}", &[("E0234", "A")]);
    breaks("kernel t(A: gmem f32[M] pointers) {}", &[("E0234", "A")]);
    breaks("kernel t(A: gmem f32[M, N] strides (lda, 1) align 32) {}", &[]);
}

#[test]
fn scalars() {
    breaks("kernel t(n: i32 = 1.5) {}", &[("E0235", "1.5")]);
    breaks("kernel t(n: i32 = -1, x: f32 = 2, y: f64 = -inf) {}", &[]);
}

#[test]
fn preconditions_and_grid() {
    breaks("kernel t(A: gmem f32[M]) where M % 8 {}", &[("E0236", "M % 8")]);
    breaks("kernel t(A: gmem f32[M], x: f32) where x > 0.0 {}", &[("E0233", "x")]);
    breaks("kernel t(A: gmem f32[M], x: f32) grid (g: x) {}", &[("E0227", "x")]);
    breaks("kernel t(A: gmem f32[M]) grid (g: 0) {}", &[("E0237", "0")]);
    breaks("kernel t(A: gmem f32[M]) grid (a: M, b: M, c: M, d: M) {}", &[("E0237", "d")]);
}

#[test]
fn schedules() {
    breaks("kernel t() schedule { threads 100 } {}", &[("E0238", "100")]);
    breaks("kernel t() schedule { threads 2048 } {}", &[("E0238", "2048")]);
    breaks("kernel t() schedule { warp_tile (0, 64) stages 0 } {}", &[("E0238", "0"), ("E0238", "0")]);
    let cluster = |text: &str, expected: &[(&str, &str)]| {
        breaks(&format!("kernel t() grid (i: 64, j: 64) schedule {{ cluster {text} }} {{}}"), expected);
    };
    for fits in ["(1)", "(2)", "(1, 2)", "(2, 4)", "(8, 1)"] {
        cluster(fits, &[]);
    }
    for (odd, first) in
        [("(3)", "3"), ("(3, 1)", "3"), ("(3, 3)", "3"), ("(4, 8)", "4"), ("(5, 5)", "5"), ("(4, 4)", "4")]
    {
        cluster(odd, &[("E0238", first)]);
    }
    cluster("(16, 1)", &[("E0238", "16")]);
    cluster("(1, 9223372036854775807)", &[("E0238", "9223372036854775807")]);
    // As many axes as the grid has.
    cluster("(1, 1, 2)", &[("E0238", "2")]);
    breaks("kernel t() schedule { cluster (1, 1, 1, 1) } {}", &[("E0238", "1")]);
    breaks("kernel t<C: int>() grid (i: C) schedule { cluster (C) } {}", &[]);
    breaks("kernel t(A: gmem f32[M]) schedule { stages M } {}", &[("E0233", "M")]);
}

#[test]
fn tiles() {
    body("var t = reg f32[0, 4]", &[("E0234", "0")]);
    body("var t = reg f32[M]", &[("E0233", "M")]);
    body("let t = smem f16[65536, 65536]", &[("E0234", "t")]);
    body("let t = smem f16[4611686018427387904, 4611686018427387904]", &[("E0234", "t")]);
    body("var t = reg f32[1, 1, 1, 1, 1, 1]", &[("E0234", "t")]);
    body("let t = smem f32[]", &[("E0234", "t")]);
    body("let t = smem bool[8]", &[("E0234", "t")]);
    body("let t = channel f16[8, 8] slots 0", &[("E0241", "0")]);
}

#[test]
fn lets() {
    body("let w = a[0.., 8..]", &[("E0226", "a[0.., 8..]")]);
    body("let w = alpha * A", &[("E0225", "alpha * A")]);
    body("let w = A[0.., 8..]\nlet q = w[1.., 0]", &[("E0226", "w[1.., 0]")]);
    body("let w = A[0.., 8..]\nlet q = w[1.., 0..]\ncopy q -> r", &[]);
}

#[test]
fn an_error_in_a_let_is_reported_once() {
    body("let w = acc % 2\nacc = w + w\nacc = w", &[("E0222", "acc")]);
}

#[test]
fn assignments() {
    body("alpha = 1.0", &[("E0231", "alpha = 1.0")]);
    body("let c = alpha\nc = 2.0", &[("E0231", "c = 2.0")]);
    body("a = r", &[("E0231", "a = r")]);
    body("acc = a[0, 0..]", &[("E0221", "a[0, 0..]")]);
    body("acc = transpose(acc)", &[("E0221", "transpose(acc)")]);
    body("x = acc", &[("E0221", "acc")]);
    body("x = g < M", &[("E0220", "g < M")]);
    body("acc = n * 2", &[("E0220", "n * 2")]);
    body("acc = sum(acc, 1)\nacc = 3\nx = alpha\nacc = B[g.., 0..]", &[]);
}

#[test]
fn copies() {
    body("copy A[g.., 0..] -> B[g.., 0..]", &[("E0225", "copy A[g.., 0..] -> B[g.., 0..]")]);
    body("copy alpha -> B[g.., 0..]", &[("E0225", "copy alpha -> B[g.., 0..]")]);
    body("copy A[g, 0] -> B[g, 0]\ncopy B[g, 0] -> x\ncopy 0.0 -> a", &[]);
    body("copy V[0..] -> acc", &[("E0221", "copy V[0..] -> acc")]);
    body("copy acc -> x", &[("E0221", "copy acc -> x")]);
    body("copy transpose(a) -> r", &[("E0221", "copy transpose(a) -> r")]);
    body("copy acc > 0.0 -> B[g.., 0..]", &[("E0220", "acc > 0.0")]);
    body("let v = acc\ncopy acc -> v", &[("E0231", "v")]);
    body("copy r -> alpha", &[("E0231", "alpha")]);
    body("copy r -> ring", &[("E0229", "ring")]);
    body("copy r -> A.put", &[("E0226", "A.put")]);
}

#[test]
fn copy_attributes() {
    body("copy A[g.., 0..] -> a vec 3", &[("E0243", "copy A[g.., 0..] -> a vec 3")]);
    body("copy A[g.., 0..] -> a vec 16", &[("E0243", "copy A[g.., 0..] -> a vec 16")]);
    body("copy r -> b vec 8", &[("E0243", "copy r -> b vec 8")]);
    body("copy A[g.., 0..] -> a vec 8\ncopy acc -> r vec 32", &[]);
    body("copy A[g.., 0..] -> a keep", &[("E0243", "copy A[g.., 0..] -> a keep")]);
    body("copy A[g.., 0..] -> r keep", &[]);
    body("copy acc -> acc add", &[("E0243", "copy acc -> acc add")]);
    body("copy acc -> B[g.., 0..] add", &[]);
    body("copy A[g.., 0..] -> a check (2)", &[("E0243", "copy A[g.., 0..] -> a check (2)")]);
    body("copy A[g.., 0..] -> a check (1, 1)", &[("E0243", "copy A[g.., 0..] -> a check (1, 1)")]);
    body("copy r -> a check (0)", &[("E0243", "copy r -> a check (0)")]);
    body(
        "copy A[g.., 0..] -> r threads (128,16):(1,128)",
        &[("E0243", "copy A[g.., 0..] -> r threads (128,16):(1,128)")],
    );
    body("copy A[g.., 0..] -> a threads (128,16):(1,128)", &[]);
}

#[test]
fn loops() {
    body("for i in 0..K step 0 {}", &[("E0239", "0")]);
    body("for i in 0..K step -4 {}", &[("E0239", "-4")]);
    body("for i in 0..alpha {}", &[("E0227", "alpha")]);
    body("for i in 0..K unroll {}", &[("E0239", "K")]);
    body("for i in 0..BM unroll {}", &[]);
    body("for i in 0..64 unroll { for j in 0..64 unroll {} }", &[]);
    body("for i in 0..64 unroll { for j in 0..65 unroll {} }", &[("E0239", "for j in 0..65 unroll {}")]);
    body(
        "for i in -9223372036854775807..9223372036854775807 unroll {}",
        &[("E0239", "for i in -9223372036854775807..9223372036854775807 unroll {}")],
    );
}

#[test]
fn conditions() {
    body("if alpha {}", &[("E0240", "alpha")]);
    body("if acc > 0.0 {}", &[("E0240", "acc > 0.0")]);
    body("if g < M && alpha == 0.0 {}", &[]);
}

#[test]
fn channels() {
    body("acquire a", &[("E0241", "acquire a")]);
    body("wait ring, ring", &[("E0241", "wait ring, ring")]);
    body("await ring, 0", &[("E0231", "await ring, 0")]);
    body("await A, 0", &[("E0231", "await A, 0")]);
    body("await a, 0\nawait acc, 0\nacquire ring\npublish ring", &[]);
}

#[test]
fn roles() {
    let one = "role one warps 4 {\n}\n";
    block(&format!("{one}barrier\nrole two warps 4 {{}}"), &[("E0242", "role two warps 4 {}")]);
    block(&format!("{one}role one warps 4 {{}}"), &[("E0242", "role one warps 4 {}")]);
    block("if g < M { role one warps 4 {} }", &[("E0242", "role one warps 4 {}")]);
    block("role one warps 0 {}", &[("E0242", "0")]);
    block("role one warps 20 {}\nrole two warps 20 {}", &[("E0242", "20")]);
    block("role one warps 4 registers 20 {}", &[("E0242", "20"), ("E0242", "20")]);
    block(&format!("barrier\n{one}role two warps 8 registers 208 {{}}\nbarrier"), &[("E0242", "208")]);
    block("role one warps 4 registers 40 {}\nrole two warps 8 registers 232 {}", &[]);
    // Half a warpgroup cannot give registers away, nor one that begins in the middle of another.
    block("role one warps 2 registers 40 {}", &[("E0242", "40")]);
    block("role one warps 2 {}\nrole two warps 4 registers 40 {}", &[("E0242", "40")]);
    // A multiprocessor has 65536: 168 for each of 384 threads.
    block("role one warps 4 registers 48 {}\nrole two warps 8 registers 240 {}", &[("E0242", "240")]);
    block("role one warps 4 registers 24 {}\nrole two warps 8 registers 240 {}", &[]);
    block("role one warps 4 {}\nrole two warps 8 registers 176 {}", &[("E0242", "176")]);
    // Replicas take the iterations of one loop alternately, and have warps each.
    let turns = "for t in 0..M { ordered { barrier } ordered { } }";
    block(&format!("role one warps 4 replicas 2 {{ let last = M - 1\n{turns} }}"), &[]);
    block(&format!("role one warps 4 replicas 0 {{ {turns} }}"), &[("E0242", "0")]);
    block(&format!("role one warps 12 replicas 3 {{ {turns} }}"), &[("E0242", "12")]);
    let given =
        |n| format!("role one warps 4 registers 40 {{}}\nrole two warps 4 replicas 2 registers {n} {{ {turns} }}");
    block(&given(232), &[]);
    block(&given(240), &[("E0242", "240")]);
    let no_loop = "role one warps 4 replicas 2 { barrier }";
    block(no_loop, &[("E0242", no_loop)]);
    let two = "role one warps 4 replicas 2 { for t in 0..M {}\nfor t in 0..M {} }";
    block(two, &[("E0242", two)]);
    let laid_out = "role one warps 4 replicas 2 { for t in 0..4 unroll {} }";
    block(laid_out, &[("E0242", laid_out)]);
    // What is done in order is in their loop, and is done in each iteration.
    block("role one warps 4 replicas 2 { for t in 0..M { if t < 3 { ordered {} } } }", &[("E0242", "ordered {}")]);
    block("role one warps 4 { for t in 0..M { ordered {} } }", &[("E0242", "ordered {}")]);
    block("ordered {}", &[("E0242", "ordered {}")]);
    // No thread would execute other statements next to them.
    let copy = "copy A[0.., 0..] -> ring.put";
    for text in [format!("{copy}\n{one}"), format!("{one}{copy}"), format!("barrier\n{one}let n = M - 1\n{copy}")] {
        block(&text, &[("E0242", copy)]);
    }
    let made = "var r = reg f16[64, 32] = 0.0";
    block(&format!("{made}\n{one}"), &[("E0242", made)]);
    let multiplied = "for k in 0..K {}";
    block(&format!("{multiplied}\n{one}"), &[("E0242", multiplied)]);
}

/// Loads of two windows, with what is between them and the attribute of the second.
fn held(between: &str, attribute: &str, expected: &[(&str, &str)]) {
    let source = format!(
        "kernel t(X: gmem f32[M, N], Y: gmem f32[M, N]) grid (g: M) schedule {{ threads 32 }} {{
            var x = reg f32[2, 32] layout (32,2):(2,1)
            var y = reg f32[2, 32] layout (32,2):(2,1)
            var z = reg f32[2, 32] layout (32,2):(2,1) = 0.0
            var w = reg f32[2, 32] layout (32,2):(1,32)
            var at = reg i32[] = 0
            copy X[g * 2.., 0..] -> x
            {between}
            copy X[g * 2 + 1.., 0..] -> y {attribute}
            copy y + x -> Y[g * 2.., 0..]
        }}"
    );
    breaks(&source, expected);
}

#[test]
fn held_elements() {
    let copy = "copy X[g * 2 + 1.., 0..] -> y";
    let bad = |attribute: &str| vec![("E0243".to_owned(), format!("{copy} {attribute}"))];
    let refused = |between: &str, attribute: &str| {
        let expected = bad(attribute);
        let expected: Vec<(&str, &str)> = expected.iter().map(|(code, at)| (code.as_str(), at.as_str())).collect();
        held(between, attribute, &expected);
    };
    held("", "held x (1, 0)", &[]);
    held("let s = x * 2.0", "held x (1, 0)", &[]);
    held("copy X[g * 2 + 2.., 1..] -> z", "held x (1, 0), z (-1, -1)", &[]);
    // Another distance, and another rank.
    refused("", "held x (-1, 0)");
    refused("", "held x (1)");
    // Tiles that were not loaded, are loaded otherwise, or have changed since.
    refused("", "held z (1, 0)");
    refused("copy X[g * 2.., 0..] -> w", "held w (1, 0)");
    refused("copy X[g * 2.., 0..] -> z fill 1.0", "held z (1, 0)");
    refused("copy X[at.., 0..] -> z", "held z (1, 0)");
    refused("copy X[g * 2.., ..31] -> z", "held z (1, 0)");
    refused("copy Y[g * 2.., 0..] -> z", "held z (1, 0)");
    refused("x = x + 1.0", "held x (1, 0)");
    // The loads may not be of a tensor that the kernel writes, or conditional.
    refused("copy z -> X[g * 2.., 0..]", "held x (1, 0)");
    refused("", "when at > 0 held x (1, 0)");
}
