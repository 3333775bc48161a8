//! Tests of choices, and of the plausibility of predictions. `tests/src/choices.rs` compiles every choice with the
//! whole compiler.

use super::*;
use crate::Options;
use crate::tile_scheduler::cluster::{Sharing, Sums};
use tilec_ir::diag::Sink;
use tilec_ir::kernel::{Kernel, ValueDef};
use tilec_ir::target::Target;

const GEMM: &str = include_str!("../../../examples/gemm.tile");

fn options(target: Target, defines: &str, sizes: &[(&str, i64)]) -> Options {
    let mut options = Options::new(target);
    let pairs = defines.split(',').filter_map(|d| d.split_once('='));
    options.defines = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    options.sizes = sizes.iter().map(|(name, x)| ((*name).to_owned(), *x)).collect();
    options
}

fn chosen(source: &str, options: &Options, enabled: bool) -> (Kernel, Sink) {
    let mut sink = Sink::new();
    let mut k = tilec_ir::parser::parse(source, &mut sink).expect("it parses").kernels.remove(0);
    let mut cx = Cx { enabled, ..Cx::new(options, "choose", &mut sink) };
    // Errors are in the sink.
    let _ = run(&mut k, &mut cx);
    (k, sink)
}

fn value(k: &Kernel, name: &str) -> Option<i64> {
    let p = k.const_params.iter().copied().find(|&p| k.values[p].name == name)?;
    match &k.values[p].def {
        ValueDef::ConstParam(param) => match param.default {
            Some(ConstValue::Int(x)) => Some(x),
            _ => None,
        },
        _ => None,
    }
}

/// BM, BN, BK, WM, WN, KW, STAGES of `gemm.tile`.
fn gemm(target: Target, card: Option<&str>, defines: &str, size: [i64; 3]) -> [i64; 7] {
    let mut options = options(target, defines, &[("M", size[0]), ("N", size[1]), ("K", size[2])]);
    options.card = card.map(|name| Card::from_name(name).expect("a card"));
    let (k, sink) = chosen(GEMM, &options, true);
    assert_eq!(sink.error_count(), 0, "{:#?}", sink.diagnostics());
    ["BM", "BN", "BK", "WM", "WN", "KW", "STAGES"].map(|name| value(&k, name).expect(name))
}

/// CUTLASS's tiles for Volta, and kernels that were (nearly) the fastest measured on an H200 (docs/performance.md).
/// `fit.rs` has the error of the model for all measurements.
#[test]
fn what_was_measured_to_be_best_is_chosen() {
    let large = [4096; 3];
    for size in [large, [8192; 3]] {
        // CUTLASS uses 128x128 and 256x128 for both.
        for target in [Target::Sm70, Target::Sm75] {
            let [bm, bn, bk, wm, wn, groups, stages] = gemm(target, None, "", size);
            assert!([128 * 128, 256 * 128].contains(&(bm * bn)));
            assert_eq!([bk, wm, wn, groups, stages], [32, 64, 64, 1, 2]);
        }
        for (target, card) in [(Target::Sm80, Some("h200")), (Target::Sm90, None)] {
            let [bm, bn, bk, wm, wn, groups, stages] = gemm(target, card, "", size);
            assert_eq!([bm * bn, bk, wm, wn, groups], [256 * 128, 64, 64, 64, 1]);
            assert!(stages >= 3);
            let [bm, bn, _, wm, wn, groups, _] = gemm(target, card, "Acc=f16", size);
            assert_eq!([bm, bn, wm * wn, groups], [256, 256, 64 * 128, 1]);
        }
        assert_eq!(gemm(Target::Sm90, None, "T=f64,Acc=f64,ALIGN=2", size)[..5], [128, 128, 16, 32, 64]);
    }
    for n in [192, 256] {
        let [bm, bn, bk, _, _, groups, _] = gemm(Target::Sm90, None, "T=f32,ALIGN=4", [n, n, 1024]);
        assert_eq!([bm, bn, bk, groups], [16, 32, 64, 4], "{n}");
    }
}

/// Three warpgroups each have 64 of 192 rows and all columns, as many as need no spills; the depth is one panel.
#[test]
fn three_warpgroups_have_their_rows() {
    for (defines, size) in
        [("BM=192,Out=f16", [1536; 3]), ("BM=192", [4104; 3]), ("BM=192,T=tf32,ALIGN=4,LB=col", [2048; 3])]
    {
        let [bm, bn, bk, wm, wn, groups, _] = gemm(Target::Sm90a, None, defines, size);
        let bytes = if defines.contains("tf32") { 4 } else { 2 };
        assert_eq!([bm, bk * bytes, wm, wn, groups], [192, 128, 64, bn, 1], "{defines}");
        assert!(bn <= 176, "{defines}: {bn} columns");
    }
    assert_eq!(gemm(Target::Sm90a, None, "BM=192,BN=192,Out=f16", [3072; 3])[..5], [192, 192, 64, 64, 192]);
    // Even rounds of 132 blocks: 22 x 24 tiles.
    assert_eq!(gemm(Target::Sm90a, Some("h200"), "Out=f16", [4104; 3])[..5], [192, 176, 64, 64, 176]);
}

/// The loop of a slice has as many iterations as the slice has tiles; a single slice is the whole reduction.
#[test]
fn slices_are_as_long_as_they_are() {
    const SPLITK: &str = include_str!("../../../examples/gemm_splitk.tile");
    let splitk = |size: [i64; 3], slices: i64| {
        let sizes = [("M", size[0]), ("N", size[1]), ("K", size[2]), ("S", slices)];
        let (k, sink) = chosen(SPLITK, &options(Target::Sm80, "", &sizes), true);
        assert_eq!(sink.error_count(), 0, "{:#?}", sink.diagnostics());
        ["BM", "BN", "BK", "WM", "WN", "KW", "STAGES"].map(|name| value(&k, name).expect(name))
    };
    for size in [[256, 256, 16384], [8192; 3]] {
        let [[m, n, k, ..], [rows, columns, depth, ..]] = [splitk(size, 1), gemm(Target::Sm80, None, "", size)];
        assert_eq!([m * n, k], [rows * columns, depth], "{size:?}");
    }
    // Slices allow larger tiles to fill the multiprocessors than a K in one piece.
    let [[m, n, ..], [rows, columns, ..]] = [1, 16].map(|slices| splitk([256, 256, 16384], slices));
    assert!(rows * columns > m * n, "{rows} x {columns}, {m} x {n}");
}

#[test]
fn what_is_given_is_kept() {
    for (given, name, x) in
        [("BM=32", "BM", 32), ("STAGES=5", "STAGES", 5), ("WN=16", "WN", 16), ("RASTER=3", "RASTER", 3)]
    {
        let (k, sink) = chosen(GEMM, &options(Target::Sm80, given, &[]), true);
        assert_eq!(sink.error_count(), 0, "{given}");
        assert_eq!(value(&k, name), Some(x), "{given}");
    }
}

#[test]
fn small_problems_get_small_tiles() {
    let area = |size: [i64; 3]| {
        let [bm, bn, ..] = gemm(Target::Sm80, None, "", size);
        bm * bn
    };
    assert!(area([256; 3]) < area([1024; 3]) && area([1024; 3]) < area([8192; 3]));
    // Rows outside the output are not computed.
    assert_eq!(gemm(Target::Sm80, None, "", [16, 4096, 4096])[0], 16);
}

#[test]
fn plain_values_when_switched_off() {
    let (k, sink) = chosen(GEMM, &options(Target::Sm80, "", &[]), false);
    assert!(sink.diagnostics().is_empty());
    let names = ["BM", "BN", "BK", "WM", "WN", "KW", "STAGES", "RASTER"];
    assert_eq!(names.map(|name| value(&k, name)), [64, 64, 32, 32, 32, 1, 1, 1].map(Some));
    let (k, _) = chosen(GEMM, &options(Target::Sm80, "BM=16", &[]), false);
    assert_eq!(["BM", "WM"].map(|name| value(&k, name)), [16, 16].map(Some));
}

#[test]
fn kernels_without_products_are_chosen_for_too() {
    let copy = "kernel c<T: type = f32, BM = auto, BN = auto>(A: gmem T[M, N], B: gmem T[M, N]) where N % 8 == 0, A_ld % 8 == 0, \
                B_ld % 8 == 0 grid (i: ceildiv(M, BM), j: ceildiv(N, BN)) { let t = reg T[BM, BN] = copy A[i * BM.., j * BN..] \
                copy t -> B[i * BM.., j * BN..] }";
    for (target, defines) in [(Target::Sm70, ""), (Target::Sm80, "T=f16"), (Target::Sm90, "BM=1")] {
        let (k, sink) = chosen(copy, &options(target, defines, &[]), true);
        assert_eq!(sink.error_count(), 0);
        let [bm, bn] = ["BM", "BN"].map(|name| value(&k, name).expect(name));
        // Enough elements for several outstanding accesses in each thread, and rows of whole lines.
        assert!((512..=16384).contains(&(bm * bn)) && bn >= 32, "{bm}x{bn}");
    }
    let vector = "kernel v<B = auto>(X: gmem f32[N], Y: gmem f32[N]) where N % 4 == 0 grid (b: ceildiv(N, B)) { \
                  let x = reg f32[B] = copy X[b * B..] copy 2.0 * x -> Y[b * B..] }";
    let (k, _) = chosen(vector, &options(Target::Sm80, "", &[]), true);
    assert!((512..=8192).contains(&value(&k, "B").expect("chosen")));
}

/// With a fixed choice, a larger problem takes longer.
#[test]
fn predictions_grow_with_the_problem() {
    for (target, defines) in [
        (Target::Sm70, ""),
        (Target::Sm80, "BM=128,BN=128,BK=32,WM=64,WN=64"),
        (Target::Sm90, ""),
        (Target::Sm90, "T=f32,ALIGN=4"),
        (Target::Sm89, "T=e4m3,ALIGN=16,LB=col"),
    ] {
        let options = options(target, defines, &[]);
        let (k, _) = chosen(GEMM, &options, true);
        let predictor = Predictor::new(&k, &options).expect("it can be predicted");
        let seconds = |m: i64, n: i64, k: i64| {
            let sizes = [("M", m), ("N", n), ("K", k)].map(|(name, x)| (name.to_owned(), x));
            predictor.seconds(&sizes).expect("it can be predicted")
        };
        for i in 5..13 {
            for j in 5..13 {
                let (x, y) = (1 << i, 1 << j);
                let here = seconds(x, y, 1024);
                assert!(here.is_finite() && here > 0.0);
                for more in [seconds(2 * x, y, 1024), seconds(x, 2 * y, 1024), seconds(x, y, 2048)] {
                    assert!(more >= here * 0.999, "{target:?} {defines} {x}x{y}: {here} then {more}");
                }
            }
        }
    }
}

/// The work of a block with a part of a reduction counts, for any part.
#[test]
fn parts_of_a_reduction_count() {
    let source = include_str!("../../../examples/gemm_splitk.tile");
    let predicted = |slices: i64| {
        let options = options(Target::Sm80, "", &[("M", 4096), ("N", 4096), ("K", 4096), ("S", slices)]);
        let (k, _) = chosen(source, &options, true);
        Predictor::new(&k, &options).and_then(|p| p.predict()).expect("a prediction").seconds
    };
    let whole = predicted(1);
    // 137 billion multiply-adds take an A100 at least 0.44 ms.
    assert!(whole > 4.4e-4 && whole < 2e-3, "{whole}");
    assert!((0.9..1.5).contains(&(predicted(4) / whole)), "{}", predicted(4) / whole);
}

/// Ping-pong warpgroups have whole tiles. They hide the time of storing, and gain more if the reduction is shorter.
#[test]
fn warpgroups_in_turns_have_whole_tiles() {
    let source = GEMM.replace("promote PROMOTE }", "promote PROMOTE ping_pong 1 }");
    assert_ne!(source, GEMM);
    let sizes = |n: i64, k: i64| [("M", n), ("N", n), ("K", k)];
    for (n, depth) in [(8192, 8192), (8192, 512), (1024, 1024)] {
        let (k, sink) = chosen(&source, &options(Target::Sm90a, "Out=f16", &sizes(n, depth)), true);
        assert_eq!(sink.error_count(), 0, "{:#?}", sink.diagnostics());
        let [bm, bn, wm, wn] = ["BM", "BN", "WM", "WN"].map(|name| value(&k, name).expect(name));
        assert_eq!([bm, bn], [wm, wn]);
        assert!(bm * bn <= 128 * 192, "{bm}x{bn}");
    }
    let shared = options(Target::Sm90a, "Out=f16,BM=128,BN=128,WM=64,WN=128", &sizes(4096, 4096));
    assert_eq!(chosen(&source, &shared, true).1.error_count(), 1);
    let gain = |depth: i64| {
        let seconds = |source: &str, tile: &str| {
            let options = options(Target::Sm90a, tile, &sizes(8192, depth));
            let (k, _) = chosen(source, &options, true);
            Predictor::new(&k, &options).and_then(|p| p.predict()).expect("a prediction").seconds
        };
        let turns = seconds(&source, "Out=f16,BM=128,BN=128,WM=128,WN=128");
        seconds(GEMM, "Out=f16,BM=128,BN=128,WM=64,WN=128") / turns
    };
    let (short, long) = (gain(256), gain(8192));
    assert!(short > long && long > 0.9, "{short} {long}");
}

/// No prediction is faster than the card's arithmetic or its memory.
#[test]
fn predictions_keep_within_the_card() {
    for &target in Target::ALL {
        for n in [512, 4096, 8192] {
            let options = options(target, "", &[("M", n), ("N", n), ("K", n)]);
            let (k, _) = chosen(GEMM, &options, true);
            let prediction = Predictor::new(&k, &options).and_then(|p| p.predict()).expect("it can be predicted");
            let card = Card::of(target);
            let products = if target.has_tensor_copies() { card.warpgroups } else { card.rates.half_f32 };
            let rate = 2.0 * products * f64::from(card.sms) * card.clock * 1e9;
            assert!(prediction.flops / prediction.seconds < rate, "{prediction}");
            // Padding of tiles counts as operations.
            let exact = 2.0 * (n as f64).powi(3);
            assert!((1.0..1.1).contains(&(prediction.flops / exact)), "{prediction}");
            let bytes = (n * n * (2 + 2 + 4)) as f64;
            assert!(bytes / prediction.seconds < card.dram * 1e9, "{prediction}");
        }
    }
}

/// Combinations outside the search take longer than those inside: the bound is below every prediction, also if blocks
/// share tiles. (The search asserts this for each combination.)
#[test]
fn bounds_are_below_predictions() {
    for (target, defines) in
        [(Target::Sm80, ""), (Target::Sm90a, "T=bf16,Out=bf16,LB=col"), (Target::Sm90a, "T=e4m3,ALIGN=16")]
    {
        for size in [[279, 3072, 24576], [512, 1280, 8192], [4, 4608, 8192], [4096, 4096, 4096], [8192, 8192, 512]] {
            let mut options = options(target, defines, &[("M", size[0]), ("N", size[1]), ("K", size[2])]);
            options.card = Card::from_name("H200").filter(|_| target == Target::Sm90a);
            let mut sink = Sink::new();
            let mut k = tilec_ir::parser::parse(GEMM, &mut sink).expect("it parses").kernels.remove(0);
            let mut cx = Cx { enabled: true, ..Cx::new(&options, "choose", &mut sink) };
            for p in k.const_params.clone() {
                if let Some(value) = given(&k, &cx, p) {
                    set(&mut k, p, value);
                }
            }
            let autos = autos(&k, &mut cx).expect("there are some");
            assert!(
                Space::new(&k, &options, &autos)
                    .is_ok_and(|space| single_product::SingleProduct::of(&space).legal() > 10),
                "{size:?}"
            );
        }
    }
}

/// Loops whose rows do not cross lines, and which have clusters along both axes.
const PLAIN: Sharing = Sharing { sums: Sums::Plain, across: false, open: [true; 2] };
const SCALED: Sharing = Sharing { sums: Sums::Scaled, ..PLAIN };

/// Few rows are divided into tiles that they fill, with pairs of blocks if these share tiles along the reduction.
#[test]
fn few_rows_fill_their_tiles() {
    for rows in [80, 207, 279] {
        let [bm, bn, ..] = gemm(Target::Sm90a, Some("H200"), "T=bf16,Out=bf16,LB=col", [rows, 3072, 24576]);
        let tiles = (rows + bm - 1) / bm;
        assert!(tiles * bm - rows < 64, "{rows}: {bm}x{bn}");
    }
    let card = Card::from_name("H200").expect("a card");
    let along = |tile, counts| crate::tile_scheduler::cluster::choose(tile, PLAIN, counts, card);
    assert_eq!(along((128, 128), [Some(4), Some(10)]), [2, 1]);
    assert_eq!(along((128, 128), [Some(3), Some(10)]), [1, 1], "no tile is computed twice");
    assert_eq!(along((64, 64), [Some(4), Some(10)]), [1, 1]);
    assert_eq!(along((128, 128), [Some(40), Some(40)]), [1, 1]);
    assert_eq!(along((128, 256), [Some(40), Some(40)]), [2, 1]);
}

/// Sums with factors gain from pairs with smaller tiles that share the larger operand.
#[test]
fn scaled_sums_gain_from_pairs() {
    let card = Card::from_name("H200").expect("a card");
    let along = |tile, counts| crate::tile_scheduler::cluster::choose(tile, SCALED, counts, card);
    assert_eq!(along((128, 128), [Some(32), Some(32)]), [2, 1]);
    assert_eq!(along((192, 128), [Some(43), Some(64)]), [1, 2]);
    assert_eq!(along((128, 128), [Some(7), Some(32)]), [1, 1], "no tile is computed twice");
    assert_eq!(along((128, 64), [Some(32), Some(64)]), [1, 1]);
    let rows_only = Sharing { open: [true, false], ..SCALED };
    let along = |of, tile| crate::tile_scheduler::cluster::choose(tile, of, [Some(43), Some(64)], card);
    assert_eq!(along(rows_only, (192, 128)), [2, 1], "the smaller operand, if a surplus tile would read outside");
    assert_eq!(along(rows_only, (256, 64)), [1, 1], "the smaller operand is too small");
    assert_eq!(along(Sharing { open: [false, false], ..SCALED }, (192, 128)), [1, 1]);
    let across = Sharing { across: true, ..rows_only };
    assert_eq!(along(across, (192, 128)), [2, 1], "rows that cross lines");
}

/// If all tiles are computed at once, pairs of blocks share the larger operand. An even number of up to eight blocks
/// must load each part of it.
#[test]
fn pairs_share_the_larger_operand() {
    let card = Card::from_name("H200").expect("a card");
    let along =
        |tile, down, right| crate::tile_scheduler::cluster::choose(tile, PLAIN, [Some(down), Some(right)], card);
    assert_eq!(along((64, 80), 4, 32), [2, 1]);
    assert_eq!(along((64, 80), 32, 4), [1, 2], "the other way about");
    assert_eq!(along((64, 80), 3, 40), [1, 1], "no tile is computed twice");
    assert_eq!(along((64, 80), 10, 12), [1, 1], "too many take each part");
    assert_eq!(along((64, 80), 4, 34), [1, 1], "more tiles than multiprocessors");
    assert_eq!(along((152, 64), 2, 4), [1, 1], "each block would load 76 rows, no multiple of 8");
    assert_eq!(along((160, 64), 2, 4), [1, 2]);
    assert_eq!(crate::tile_scheduler::cluster::choose((64, 80), PLAIN, [None, None], card), [1, 1]);
}

#[test]
fn misuse_is_said() {
    let said = |source: &str, defines: &str| -> Vec<&'static str> {
        let (_, sink) = chosen(source, &options(Target::Sm80, defines, &[("M", 64)]), true);
        let errors = sink.diagnostics().iter().filter(|d| d.severity == tilec_ir::diag::Severity::Error);
        errors.map(|d| d.code.0).collect()
    };
    let unused = "kernel k<N0 = auto>(A: gmem f32[M]) where M % N0 == 0 { }";
    assert_eq!(said(unused, ""), ["E0430"]);
    assert_eq!(said(unused, "N0=2"), [""; 0]);
    assert_eq!(said("kernel k(A: gmem f32[L]) { }", ""), ["E0432"]);
    // The schedule's expression of the parameter is the number of stages.
    let times = |n: u32| GEMM.replace("stages STAGES", &format!("stages (STAGES * {n})"));
    assert_eq!(said(&times(2), ""), [""; 0]);
    assert_eq!(said(&times(1 << 30), ""), ["E0431"]);
    // 512 x 512 tiles in warp tiles of 16 x 16 exceed 1024 threads.
    assert_eq!(said(GEMM, "BM=512,BN=512,WM=16,WN=16"), ["E0431"]);
}

#[test]
fn every_target_has_a_card() {
    for &target in Target::ALL {
        assert_eq!(Card::of(target).cc, target.cc());
    }
    assert!(CARDS.iter().all(|c| c.l2 / f64::from(c.sms) <= 64.0 && Card::from_name(c.name).is_some()));
    assert!(Card::from_name("h200").is_some() && Card::from_name("GTX").is_none());
}
/// A rule for the choices of several sizes: each of these sizes gets its own choice, every size gets a variant, and at
/// no size is the loss against the best variant large.
#[test]
fn rules_cover_every_size_and_lose_little() {
    let sets: [&[[i64; 3]]; 4] = [
        &[[4096; 3], [512; 3]],
        &[[8192; 3], [1024; 3], [256; 3]],
        &[[4096; 3], [16, 4096, 4096], [128, 4096, 4096]],
        &[[64, 8192, 1024], [8192, 64, 1024], [2048; 3], [512; 3]],
    ];
    let named =
        |size: [i64; 3]| ["M", "N", "K"].into_iter().zip(size).map(|(n, x)| (n.to_owned(), x)).collect::<Vec<_>>();
    for (target, defines) in [(Target::Sm70, ""), (Target::Sm80, ""), (Target::Sm90, "T=f32,ALIGN=4")] {
        for set in sets {
            let mut variants: Vec<(Kernel, Options)> = Vec::new();
            for &size in set {
                let mut options = options(target, defines, &[]);
                options.sizes = named(size);
                let (k, _) = chosen(GEMM, &options, true);
                let text = tilec_ir::print::print(&k);
                if !variants.iter().any(|(other, _)| tilec_ir::print::print(other) == text) {
                    variants.push((k, options));
                }
            }
            let predictors: Vec<Predictor<'_>> =
                variants.iter().map(|(k, o)| Predictor::new(k, o).expect("it can be predicted")).collect();
            let given: Vec<_> = set.iter().map(|&size| named(size)).collect();
            let rule = rule(&variants[0].0, &predictors, &given);
            assert!(rule.last().is_some_and(|b| b.when.is_empty()), "{rule:?}");
            assert!(rule.iter().rev().skip(1).all(|b| !b.when.is_empty()), "{rule:?}");
            let loss = |sizes: &[(String, i64)]| {
                let value = |w: &AtLeast| -> i64 {
                    w.sizes.iter().map(|n| sizes.iter().find(|(m, _)| m == n).map_or(1, |(_, x)| *x)).product()
                };
                let taken =
                    rule.iter().find(|b| b.when.iter().all(|w| value(w) >= w.value)).expect("it covers every size");
                let time = |p: &Predictor<'_>| p.seconds(sizes).expect("it can be predicted");
                let best = predictors.iter().map(time).fold(f64::INFINITY, f64::min);
                time(&predictors[taken.variant]) / best - 1.0
            };
            for sizes in &given {
                assert!(loss(sizes) < 0.01, "{target:?} {sizes:?}: {:.3}\n{rule:?}", loss(sizes));
            }
            let (mut sum, mut count) = (0.0, 0);
            for (i, j, l) in (4..14).flat_map(|i| (4..14).flat_map(move |j| (6..14).map(move |l| (i, j, l)))) {
                sum += loss(&named([1 << i, 1 << j, 1 << l]));
                count += 1;
            }
            // The average over sizes far beyond those given, most of them with small extents.
            assert!(sum / f64::from(count) < 0.25, "{target:?} {set:?}: {:.3}\n{rule:?}", sum / f64::from(count));
        }
    }
}

/// The order of candidates in a search: the choice first, then by prediction, without duplicates.
#[test]
fn candidates_come_in_the_order_of_the_prediction() {
    for (target, defines, size) in [
        (Target::Sm90a, "", [4096, 4096, 4096]),
        (Target::Sm80, "BK=32", [512, 512, 512]),
        (Target::Sm70, "T=f32,ALIGN=4", [64, 4096, 1024]),
    ] {
        let options = options(target, defines, &[("M", size[0]), ("N", size[1]), ("K", size[2])]);
        let mut sink = Sink::new();
        let k = tilec_ir::parser::parse(GEMM, &mut sink).expect("it parses").kernels.remove(0);
        let found =
            candidates(&k, &options, 2.0, &mut sink).expect("it is legal").expect("there are `auto` parameters");
        let choice = apply(&mut k.clone(), &options, &mut sink).expect("it is legal").expect("something was chosen");
        let all = &found.ranked;
        assert_eq!(all[0], Ranked { values: choice.values, seconds: choice.prediction.seconds });
        assert!(all[1..].is_sorted_by(|a, b| a.seconds <= b.seconds), "{target:?}");
        assert!(all.len() > 30 && all.iter().all(|c| c.seconds <= 2.0 * all[0].seconds), "{}", all.len());
        for (i, one) in all.iter().enumerate() {
            assert!(!all[..i].iter().any(|other| other.values == one.values), "{one:?}");
            assert_eq!(one.values.iter().any(|(name, _)| name == "BK"), defines != "BK=32");
        }
        let names: Vec<&str> = found.further.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["STAGES", "RASTER"]);
    }
    let given = options(Target::Sm80, "BM=64,BN=64,BK=32,WM=32,WN=32,KW=1,STAGES=2,RASTER=1", &[]);
    let mut sink = Sink::new();
    let k = tilec_ir::parser::parse(GEMM, &mut sink).expect("it parses").kernels.remove(0);
    assert_eq!(candidates(&k, &given, 2.0, &mut sink), Ok(None));
}

/// If all copies of a tensor are known, only the sectors that they request count.
#[test]
fn what_is_not_read_is_not_counted() {
    let options = options(Target::Sm80, "", &[("M", 4096), ("N", 8192), ("V", 50_000)]);
    let header =
        "X: gmem f32[M, N] multiple 8, Y: gmem f32[M, 8] multiple 8) grid (i: ceildiv(M, 32)) schedule { threads 128 }";
    // The body, and the bytes read from X: 8 of 8192 columns, one column, all, and all of them twice in a loop.
    for (body, bytes) in [
        ("var x = reg f32[32, 8] copy X[i * 32.., 0..] -> x copy x -> Y[i * 32.., 0..]", 4096 * 32),
        ("var x = reg f32[32, 1] copy X[i * 32.., 0..] -> x copy x -> Y[i * 32.., 0..]", 4096 * 32),
        (
            "var x = reg f32[32, 8] = 0.0 for j in 0..N step 8 { copy x + X[i * 32.., j..] -> x } copy x -> Y[i * 32.., 0..]",
            4096 * 8192 * 4,
        ),
        (
            "var x = reg f32[32, 8] = 0.0 for t in 0..2 { for j in 0..N step 8 { var y = reg f32[32, 8] copy X[i * 32.., j..] -> y x = x + y } } \
             copy x -> Y[i * 32.., 0..]",
            4096 * 8192 * 4,
        ),
    ] {
        let (k, _) = chosen(&format!("kernel f({header} {{ {body} }}"), &options, true);
        let prediction = Predictor::new(&k, &options).and_then(|p| p.predict()).expect("it can be predicted");
        assert_eq!(prediction.least_bytes, f64::from(bytes + 4096 * 8 * 4), "{body}");
    }
    // The number of gathered rows is that of the index tensor.
    let gathered = "kernel g(rows: gmem i32[M], W: gmem f32[V, 1024] multiple 4, Y: gmem f32[M, 1024] multiple 4) grid (i: ceildiv(M, 4)) {
        var at = reg i32[4]
        copy rows[i * 4..] -> at
        var x = reg f32[4, 1024]
        copy W[at, ..] -> x
        copy x -> Y[i * 4.., ..]
    }";
    let (k, _) = chosen(gathered, &options, true);
    let prediction = Predictor::new(&k, &options).and_then(|p| p.predict()).expect("it can be predicted");
    assert_eq!(prediction.least_bytes, f64::from(4096 * 4 + 2 * 4096 * 1024 * 4));
}

/// A copy counts with its executions, and with the part of its window that is inside of the tensor.
#[test]
fn copies_are_counted_as_they_run() {
    let of = |source: &str, sizes: &[(&str, i64)]| {
        let options = options(Target::Sm90a, "", sizes);
        let (k, _) = chosen(source, &options, true);
        Predictor::new(&k, &options).and_then(|p| p.predict()).expect("it can be predicted")
    };
    let product = "kernel g(A: gmem f16[M, K] multiple 8, B: gmem f16[K, N] multiple 8, C: gmem f16[M, N] multiple 8) \
                   grid (i: ceildiv(M, 128), j: ceildiv(N, 128)) { let a = smem f16[128, 64] let b = smem f16[64, 128] \
                   var acc = reg f32[128, 128] = 0.0 for k in 0..K step 64 { copy A[i * 128.., k..] -> a copy B[k.., j * 128..] -> b \
                   acc = mma(a, b, acc) } copy cast<f16>(acc) -> C[i * 128.., j * 128..] }";
    let p = of(product, &[("M", 8192), ("N", 8192), ("K", 8192)]);
    let moved: Vec<_> =
        p.places.iter().filter(|place| place.global).map(|place| (&place.of[..], place.bytes)).collect();
    let (blocks, operand) = (4096.0, 8192.0 * 128.0 * 2.0);
    assert_eq!(moved, [("C", blocks * 128.0 * 128.0 * 2.0), ("A", blocks * operand), ("B", blocks * operand)]);
    let rows = |columns: i64| {
        let source = "kernel r<BN = 4096>(X: gmem f32[M, N] multiple 4, Y: gmem f32[M, N] multiple 4) where N <= BN grid (i: M) { \
                      var x = reg f32[1, BN] copy X[i..+1, 0..] -> x copy x * 2.0 -> Y[i..+1, 0..] }";
        of(source, &[("M", 4096), ("N", columns)])
    };
    assert_eq!(rows(2052).bytes, rows(2052).least_bytes);
    assert!(rows(2052).seconds < 0.7 * rows(4096).seconds);
    let chain = "kernel c(X: gmem f32[M, 128] multiple 4, n: gmem i32[1], Y: gmem f32[M, 128] multiple 4) grid (i: M) { \
                 var at = reg i32[] copy n[0] -> at var x = reg f32[1, 128] var s = reg f32[1, 128] = 0.0 \
                 while at > 0 { copy X[i..+1, 0..] -> x s = s + x at = at - 1 } copy s -> Y[i..+1, 0..] }";
    assert!(of(chain, &[("M", 4096)]).unknown.is_some());
    assert_eq!(rows(4096).unknown, None);
    let newton = "kernel c(X: gmem f32[M, 128] multiple 4, n: gmem i32[1], Y: gmem f32[M, 128] multiple 4) grid (i: M) { \
                  var at = reg i32[] copy n[0] -> at var x = reg f32[1, 128] copy X[i..+1, 0..] -> x \
                  while at > 0 { x = x * x at = at - 1 } copy x -> Y[i..+1, 0..] }";
    assert_eq!(of(newton, &[("M", 4096)]).unknown.map(|of| of.moves), Some(false));
}

/// Tiles that hang over edges multiply what is no element: along rows, columns and the reduction, and where a window is wider than a tensor.
#[test]
fn padding_is_the_work_beyond_the_edges() {
    let of = |source: &str, sizes: &[(&str, i64)]| {
        let options = options(Target::Sm80, "", sizes);
        let (k, _) = chosen(source, &options, true);
        Predictor::new(&k, &options).and_then(|p| p.predict()).expect("it can be predicted").padding
    };
    let product = "kernel g<BM = 128>(A: gmem f16[P, M, K] multiple 8, B: gmem f16[P, K, N] multiple 8, C: gmem f32[P, M, N] multiple 8) \
                   grid (p: P, i: ceildiv(M, BM), j: ceildiv(N, 128)) { let a = smem f16[BM, 64] let b = smem f16[64, 128] \
                   var acc = reg f32[BM, 128] = 0.0 for k in 0..K step 64 { copy A[p, i * BM.., k..] -> a copy B[p, k.., j * 128..] -> b \
                   acc = mma(a, b, acc) } copy acc -> C[p, i * BM.., j * 128..] }";
    let whole = of(product, &[("P", 3), ("M", 1024), ("N", 1024), ("K", 1024)]);
    assert_eq!((whole.share, whole.of_products, whole.edges.len()), (0.0, true, 0));
    let p = of(product, &[("P", 3), ("M", 1000), ("N", 1024), ("K", 96)]);
    assert!((p.share - (1.0 - 1000.0 / 1024.0 * 0.75)).abs() < 1e-9, "{p:?}");
    let edges: Vec<_> = p.edges.iter().map(|e| (e.index.as_deref(), e.tile, e.windows, e.size)).collect();
    assert_eq!(edges, [(Some("k"), 64, 2, 96), (Some("i"), 128, 8, 1000)]);
    assert_eq!(p.edges[1].parameter.as_deref(), Some("BM"));
    // A window that does not move: the depth of one product, the columns of another.
    let heads = "kernel a(Q: gmem f16[M, D] multiple 8, K: gmem f16[N, D] multiple 8, O: gmem f32[M, N] multiple 4) \
                 grid (i: ceildiv(M, 64), j: ceildiv(N, 64)) { let q = smem f16[64, 128] let k = smem f16[64, 128] \
                 var s = reg f32[64, 64] = 0.0 copy Q[i * 64.., 0..] -> q copy K[j * 64.., 0..] -> k \
                 s = mma(q, transpose(k), s) copy s -> O[i * 64.., j * 64..] }";
    let p = of(heads, &[("M", 4096), ("N", 4096), ("D", 80)]);
    assert!((p.share - 48.0 / 128.0).abs() < 1e-9, "{p:?}");
    let copies = "kernel c(X: gmem f32[M] multiple 4, Y: gmem f32[M] multiple 4) grid (i: ceildiv(M, 256)) { \
                  copy X[i * 256..] * 2.0 -> Y[i * 256..+256] }";
    let p = of(copies, &[("M", 384)]);
    assert!((p.share - 0.25).abs() < 1e-9 && !p.of_products, "{p:?}");
}
