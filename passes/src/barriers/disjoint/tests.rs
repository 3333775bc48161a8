//! Loops over tiles and windows that the proof must recognise, and similar ones that it must refuse.

use super::super::prove;
use tilec_ir::diag::Sink;

/// The diagnostics for a kernel.
fn diagnostics(source: &str) -> Vec<String> {
    let mut sink = Sink::new();
    let parsed = tilec_ir::parser::parse(source, &mut sink);
    let mut kernel = parsed.unwrap_or_else(|_| panic!("{source}\n{:#?}", sink.diagnostics())).kernels.remove(0);
    // As the compiler does in front of this pass.
    crate::specialize::fold(&mut kernel);
    super::super::fences::place(&mut kernel);
    prove(&kernel).into_iter().map(|d| d.message).collect()
}

/// A loop over tiles of 64x64 elements in strips of `g` columns: tensor, grid, bounds and indices.
struct Walk {
    rows: &'static str,
    cols: &'static str,
    grid: &'static str,
    bounds: &'static str,
    g: u32,
    member: [&'static str; 2],
}

const PLAIN: Walk = Walk {
    rows: "ceildiv(M, 64)",
    cols: "ceildiv(N, 64)",
    grid: "min(ceildiv(M, 64) * ceildiv(N, 64), 7)",
    bounds: "cta..min(ceildiv(M, 64) * ceildiv(N, 64), 99) step 7",
    g: 4,
    member: ["", ""],
};

impl Walk {
    fn text(&self) -> String {
        let Walk { rows, cols, bounds, g, member: [row, col], .. } = self;
        let folded = |by: &str| if *g == 1 { by.to_owned() } else { format!("{by} * {g}") };
        let (each, before) = (folded(rows), folded("strip"));
        format!(
            "for tile in {bounds} {{\nlet strip = tile / ({each})\nlet place = tile % ({each})\n\
             let columns = max(1, min({g}, {cols} - {before}))\nlet bm = min(place / columns, {rows} - 1){row}\n\
             let bn = min({before} + place % columns, {cols} - 1){col}\n"
        )
    }

    /// A kernel whose roles load and store each tile of a tensor in such loops.
    fn in_place(&self, tensor: &str) -> String {
        let load = "acquire a\ncopy C[bm * 64.., bn * 64..] -> a.put tma\npublish a\n";
        let store =
            "wait a\nawait s, 0\nbarrier\ncopy a.get -> s\nrelease a\nbarrier\ncopy s -> C[bm * 64.., bn * 64..] tma\n";
        format!(
            "kernel t(C: gmem f16[{tensor}] multiple 8) grid (cta: {})\n{{\nlet a = channel f16[64, 64] slots 2\nlet s = smem f16[64, 64]\n\
             role producer warps 4 {{\n{walk}{load}}}\n}}\nrole consumer warps 4 {{\n{walk}{store}}}\nawait s, 0\n}}\n}}\n",
            self.grid,
            walk = self.text(),
        )
    }
}

const SOUND: [(&str, Walk); 7] = [
    ("M, N", PLAIN),
    ("M, N", Walk { g: 1, ..PLAIN }),
    // One column of tiles, one row, and both constant.
    ("M, 64", Walk { cols: "1", grid: "min(ceildiv(M, 64), 7)", bounds: "cta..ceildiv(M, 64) step 7", g: 1, ..PLAIN }),
    ("64, N", Walk { rows: "1", grid: "min(ceildiv(N, 64), 7)", bounds: "cta..ceildiv(N, 64) step 7", g: 1, ..PLAIN }),
    ("512, 256", Walk { rows: "8", cols: "4", grid: "7", bounds: "cta..32 step 7", g: 2, ..PLAIN }),
    // Clusters along rows, and along both dimensions.
    (
        "M, N",
        Walk {
            rows: "ceildiv(ceildiv(M, 64), 2)",
            grid: "min(ceildiv(ceildiv(M, 64), 2) * ceildiv(N, 64), 7) * 2",
            bounds: "cta / 2..ceildiv(ceildiv(M, 64), 2) * ceildiv(N, 64) step 7",
            member: [" * 2 + cta % 2", ""],
            g: 1,
            ..PLAIN
        },
    ),
    (
        "M, N",
        Walk {
            rows: "ceildiv(ceildiv(M, 64), 2)",
            cols: "ceildiv(ceildiv(N, 64), 2)",
            grid: "min(ceildiv(ceildiv(M, 64), 2) * ceildiv(ceildiv(N, 64), 2), 7) * 4",
            bounds: "cta / 4..ceildiv(ceildiv(M, 64), 2) * ceildiv(ceildiv(N, 64), 2) step 7",
            member: [" * 2 + cta % 4 % 2", " * 2 + cta % 4 / 2"],
            g: 2,
        },
    ),
];

#[test]
fn every_tile_is_stored_once_however_the_indices_are_folded() {
    for (tensor, walk) in &SOUND {
        assert_eq!(diagnostics(&walk.in_place(tensor)), Vec::<String>::new(), "{}", walk.in_place(tensor));
    }
}

#[test]
fn tiles_dealt_out_from_both_ends_are_stored_once() {
    let front = "unit / 14 * 7 + unit % 7";
    let dealt = format!(
        "for unit in cta..min(ceildiv(M, 64) * ceildiv(N, 64), 99) step 7 {{\nlet tile = select(unit / 7 % 2 == 0, {front}, \
         max(0, min(ceildiv(M, 64) * ceildiv(N, 64), 99) - 1 - ({front})))\n"
    );
    let right = PLAIN.in_place("M, N").replace(&format!("for tile in {} {{\n", PLAIN.bounds), &dealt);
    assert!(right.contains(&dealt));
    assert_eq!(diagnostics(&right), Vec::<String>::new(), "{right}");
    for (old, new) in [
        ("% 2 == 0", "% 3 == 0"),
        ("unit / 14 * 7", "unit / 14 * 6"),
        ("unit % 7", "unit % 6"),
        ("99) - 1 - (", "99) - 2 - ("),
        ("cta..min(", "cta..1 + min("),
        ("step 7", "step 5"),
    ] {
        let changed = right.replace(old, new);
        assert_ne!(right, changed, "{old}");
        assert!(
            diagnostics(&changed).iter().any(|m| m.contains("may overlap") || m.contains("may not have arrived")),
            "{changed}"
        );
    }
}

#[test]
fn tiles_of_two_iterations_or_blocks_that_are_one_are_found() {
    let wrong: [(usize, &str, &str); 19] = [
        // Of one block.
        (0, "strip * 4 + place % columns", "place % columns"),
        (0, "place / columns", "place / 2"),
        (0, "max(1, min(4, ceildiv(N, 64) - strip * 4))", "max(1, min(8, ceildiv(N, 64) - strip * 4))"),
        (0, "tile % (ceildiv(M, 64) * 4)", "tile % (ceildiv(N, 64) * 4)"),
        (0, "C[bm * 64", "C[bm * 32"),
        (0, "C[bm * 64.., bn * 64..]", "C[bm * 64.., bm * 64..]"),
        (0, "cta..min(ceildiv(M, 64) * ceildiv(N, 64), 99)", "cta..min(ceildiv(M, 64) * ceildiv(N, 32), 99)"),
        (1, "min(strip + place % columns", "min(place % columns"),
        (1, "let strip = tile / (ceildiv(M, 64))", "let strip = tile / (ceildiv(M, 64) * 2)"),
        (1, "min(1, ceildiv(N, 64) - strip)", "min(2, ceildiv(N, 64) - strip)"),
        (1, "let place = tile % (ceildiv(M, 64))", "let place = tile % 3"),
        (2, "let strip = tile / (ceildiv(M, 64))", "let strip = tile / 2"),
        (4, "cta..32 step 7", "cta..33 step 7"),
        // Two blocks overlap: the step is less than the number of blocks, all start at 0, or blocks of a cluster share
        // a tile.
        (0, "step 7", "step 6"),
        (0, "in cta..", "in 0.."),
        (4, "(cta: 7)", "(cta: 8)"),
        (5, " * 2 + cta % 2", " * 2 + cta % 2 / 2"),
        (5, "cta / 2..", "cta / 3.."),
        (6, "cta % 4 / 2", "cta % 4 % 2"),
    ];
    for (number, old, new) in wrong {
        let (tensor, walk) = &SOUND[number];
        let right = walk.in_place(tensor);
        let changed = right.replace(old, new);
        assert_ne!(right, changed, "{old}");
        let found = diagnostics(&changed);
        assert!(
            found.iter().any(|m| m.contains("may not have arrived") || m.contains("may overlap")),
            "{changed}\n{found:#?}"
        );
    }
}

/// The diagnostics for these stores from two buffers.
fn stored(body: &str) -> Vec<String> {
    diagnostics(&format!(
        "kernel t(A: gmem f16[M, N] multiple 8, C: gmem f16[M, N] multiple 8, D: gmem f16[Z, M, N] multiple 8, beta: f32 = 0.0) grid (i: ceildiv(M, 64))\n{{\n\
         let s = smem f16[64, 32]\nlet t = smem f16[64, 32]\ncopy A[0.., 0..] -> s\ncopy A[0.., 0..] -> t\nbarrier\n{body}\n\
         await s, 0\n}}\n"
    ))
}

#[test]
fn tensor_stores_of_a_block_lie_apart() {
    let apart = [
        "copy s -> C[i * 64.., 0..] tma\ncopy t -> C[i * 64.., 32..] tma",
        "for j in 0..N step 32 {\ncopy s -> C[i * 64.., j..] tma\n}",
        "for j in 0..N step 64 {\ncopy s -> C[i * 64.., j..] tma\nlet next = j + 32\ncopy t -> C[i * 64.., next..] tma\n}",
        // Parts of adjacent tiles, between literals.
        "for j in 0..N step 128 {\nfor part in 0..128 step 32 {\ncopy s -> C[i * 64.., j + part..] tma\n}\n}",
        "for j in 0..N {\nfor part in 0..4 {\ncopy s -> C[i * 64.., j * 128 + part * 32..] tma\n}\n}",
        "for z in 0..Z {\nfor j in 0..N step 32 {\ncopy s -> D[z, i * 64.., j..] tma\n}\n}",
        // One or the other.
        "if beta == 0.0 {\ncopy s -> C[i * 64.., 0..] tma\n} else {\ncopy t -> C[i * 64.., 0..] tma\n}",
        "for j in 0..N step 32 {\nif j > 64 {\ncopy s -> C[i * 64.., j..] tma\n} else {\ncopy t -> C[i * 64.., j..] tma\n}\n}",
        // Two tensors.
        "copy s -> C[i * 64.., 0..] tma\ncopy t -> D[0, i * 64.., 0..] tma",
    ];
    for body in apart {
        assert_eq!(stored(body), Vec::<String>::new(), "{body}");
    }
    let meet = [
        "copy s -> C[i * 64.., 0..] tma\ncopy t -> C[i * 64.., 16..] tma",
        "copy s -> C[i * 64.., 0..] tma\nawait s, 0\ncopy s -> C[i * 64.., 0..] tma",
        "for j in 0..N step 32 {\ncopy s -> C[i * 64.., 0..] tma\n}",
        "for j in 0..N step 16 {\ncopy s -> C[i * 64.., j..] tma\n}",
        "for j in 0..N step 32 {\ncopy s -> C[i * 64.., j..] tma\ncopy t -> C[i * 64.., j + 32..] tma\n}",
        "for j in 0..N step 96 {\nfor part in 0..128 step 32 {\ncopy s -> C[i * 64.., j + part..] tma\n}\n}",
        "for j in 0..N {\nfor part in 0..5 {\ncopy s -> C[i * 64.., j * 128 + part * 32..] tma\n}\n}",
        "for z in 0..Z {\nfor j in 0..N step 32 {\ncopy s -> D[0, i * 64.., j..] tma\n}\n}",
        "for j in 0..N step 32 {\ncopy s -> C[i * 64.., j..] tma\n}\nfor j in 0..N step 32 {\ncopy t -> C[i * 64.., j..] tma\n}",
        "for j in 0..N step 32 {\nif j > 64 {\ncopy s -> C[i * 64.., 0..] tma\n} else {\ncopy t -> C[i * 64.., j..] tma\n}\n}",
        "for j in 0..N step 32 {\ncopy s -> C[i * 64.., j % 64..] tma\n}",
        "for j in 0..N step 32 {\ncopy s -> C[i * 64.., j / 2..] tma\n}",
        "if beta == 0.0 {\ncopy s -> C[i * 64.., 0..] tma\n}\nif beta == 1.0 {\ncopy t -> C[i * 64.., 0..] tma\n}",
    ];
    for body in meet {
        let found = stored(body);
        assert!(found.iter().any(|m| m.contains("TMA stores to `") && m.contains("may overlap")), "{body}\n{found:#?}");
    }
}

/// A loop that stores a tile of a batch in every iteration.
fn batch(tensor: &str, window: &str, end: &str) -> Vec<String> {
    diagnostics(&format!(
        "kernel t(C: gmem f16[{tensor}, 64, 64] multiple 8, V: gmem f16[Z, H, W])\n{{\nlet s = smem f16[64, 64]\nfor z in 0..{end} {{\nawait s, 0\n\
         copy s -> C[{window}, 0.., 0..] tma\n}}\nawait s, 0\n}}\n"
    ))
}

/// Quotient and remainder by one positive number determine an index.
#[test]
fn quotients_and_remainders_tell_an_index() {
    for (tensor, window, end) in [
        ("Z, H", "z / H, z % H", "Z * H"),
        ("H, Z", "z % H, z / H", "Z * H"),
        ("Z, 4", "z / 4, z % 4", "Z * 4"),
        ("Z, H, W", "z / (H * W), z / W % H, z % W", "Z * H * W"),
        ("Z, H, W", "z / (W * H), z / W % H, z % W", "Z * H * W"),
        ("Z, H, W", "z / W / H, z / W % H, z % W", "Z * H * W"),
    ] {
        let met = batch(tensor, window, end);
        assert!(met.iter().all(|m| !m.contains("may overlap")), "{window}: {met:?}");
    }
    for (tensor, window) in [
        ("Z, H", "z / H, z % Z"),
        ("Z, H", "z % Z, z % H"),
        ("Z, H", "z / H, 0"),
        ("Z, H", "z / (H - W), z % (H - W)"),
        ("Z, H, W", "z / (H * H), z / W % H, z % W"),
        ("Z, H, W", "z / (H * W), z % H, z % W"),
    ] {
        let met = batch(tensor, window, "Z * H * W");
        assert!(met.iter().any(|m| m.contains("may overlap")), "{window}: {met:?}");
    }
}
