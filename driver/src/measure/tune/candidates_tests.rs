//! The written schedule compiles to the measured code, for every example with a choice.

use super::*;
use crate::compile;
use pretty_assertions::assert_eq;
use tilec_ir::target::Target;

fn options(target: Target, defines: &str) -> CompileOptions {
    let pairs = defines.split(',').filter_map(|d| d.split_once('='));
    let defines = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    CompileOptions { target, defines, source_name: "x.tile".to_owned(), ..CompileOptions::default() }
}

fn args(text: &str) -> Args {
    let one = |item: &str| {
        let (name, x) = item.split_once('=').expect("NAME=VALUE");
        (name.to_owned(), crate::Number::Int(x.parse().expect("a number")))
    };
    text.split(' ').map(one).collect()
}

const EXAMPLES: &[(&str, &str)] = &[
    (include_str!("../../../../examples/gemm.tile"), "M=256 N=1280 K=512"),
    (include_str!("../../../../examples/gemm_fused.tile"), "M=512 N=512 K=256"),
    (include_str!("../../../../examples/gemm_batched.tile"), "Z=3 M=256 N=256 K=128"),
    (include_str!("../../../../examples/gemm_pointers.tile"), "Z=3 M=256 N=256 K=128"),
    (include_str!("../../../../examples/gemm_mixed.tile"), "M=512 N=512 K=512"),
    (include_str!("../../../../examples/gemm_splitk.tile"), "M=128 N=128 K=4096 S=4"),
    (include_str!("../../../../examples/conv.tile"), "B=2 P=8 Q=8 R=3 S=3 C=64 O=64 xb=6400 xh=640 xw=64"),
];

/// The first candidate is what `--for` compiles, others are what `-D` gives. The text alone gives the same code.
#[test]
fn what_is_written_is_what_is_measured() {
    for (source, sizes) in EXAMPLES {
        for target in [Target::Sm90a, Target::Sm80, Target::Sm70] {
            let options = options(target, "Out=f16");
            let args = args(sizes);
            let mut space = match Space::new(source, &options, None, &args) {
                Ok(space) => space,
                // Not every example is for every target.
                Err(_) if compile(source, &options).is_err() => continue,
                Err(d) => panic!("{}: {d}", target.name()),
            };
            let place = format!("{} {sizes}", target.name());
            let own = CompileOptions { sizes: vec![space.sizes().clone()], ..options.clone() };
            let own = compile(source, &own).expect("it compiles");
            let plain = CompileOptions { target, ..CompileOptions::default() };
            let made = space.compile_candidate(0).unwrap_or_else(|why| panic!("{place}: {why}"));
            let again = compile(&made.text, &plain).expect("it compiles");
            assert_eq!(code_only(&again.ptx), code_only(&own.ptx), "{place}");
            // Positions in the text equal those in the source: no line was added.
            assert_eq!(made.text.lines().count(), source.lines().count());
            let count = space.list.len();
            for index in [1, count / 2, count - 1] {
                let candidate = space.list[index].clone();
                let Ok(made) = space.compile_candidate(index) else { continue };
                let again = compile(&made.text, &plain).expect("it compiles");
                assert_eq!(code_only(&again.ptx), code_only(&made.built.compiled.ptx), "{place}: {candidate}");
                let setting = &space.list[index].settings[0];
                if candidate.settings.len() > 1 || !setting.items().is_empty() {
                    continue;
                }
                let mut given = options.clone();
                given.defines.extend(candidate.settings[0].values.iter().map(|(n, x)| (n.clone(), x.to_string())));
                let given = compile(source, &given).expect("it compiles");
                assert_eq!(code_only(&again.ptx), code_only(&given.ptx), "{place}: {candidate}");
            }
        }
    }
}

/// TMA stores silently, and does not where every block computes one tile.
#[test]
fn who_stores_is_written_where_sizes_decided_it() {
    let fixed = "Out=f16,BM=64,BN=64,WM=64,WN=64,BK=128,KW=1,STAGES=4";
    let (source, options) = (EXAMPLES[0].0, options(Target::Sm90a, fixed));
    let sizes = args("M=512 N=512 K=512");
    let mut space = Space::new(source, &options, None, &sizes).expect("it compiles");
    assert_eq!(space.list[0].settings[0].stage_stores, Some(false));
    let text = space.compile_candidate(0).map(|m| m.text.clone()).expect("it compiles");
    assert!(text.contains(" stage_stores 0 }"), "{text}");
    let more = space.variations(0);
    assert!(more.iter().any(|&i| space.list[i].settings[0].stage_stores == Some(true)));
}

/// Blocks share tiles if this is faster for the sizes, and the text has the decision.
#[test]
fn shared_tiles_are_written_where_sizes_decided_them() {
    let fixed = "Out=f16,BM=64,BN=128,WM=64,WN=64,BK=64,KW=1,STAGES=8";
    let (source, options) = (EXAMPLES[0].0, options(Target::Sm90a, fixed));
    let sizes = args("M=64 N=4096 K=14336");
    let mut space = Space::new(source, &options, None, &sizes).expect("it compiles");
    assert_eq!(space.list[0].settings[0].stream_k, Some(true));
    let text = space.compile_candidate(0).map(|m| m.text.clone()).expect("it compiles");
    assert!(text.contains("stream_k 1"), "{text}");
}

/// Without a written decision, clusters compute tiles of 128x256 if the sizes are not known, but not if there are three
/// tiles. The text has the decision for the given sizes.
#[test]
fn clusters_are_written_where_sizes_decided_them() {
    let (source, options) = (EXAMPLES[0].0, options(Target::Sm90a, "BM=128,BN=256,WM=64,WN=256,BK=64,KW=1,RASTER=1"));
    let sizes = args("M=384 N=256 K=512");
    let mut space = Space::new(source, &options, None, &sizes).expect("it compiles");
    assert_eq!(space.list[0].settings[0].cluster, Some([1, 1]));
    let (own, text) = space.compile_candidate(0).map(|m| (m.code.clone(), m.text.clone())).expect("it compiles");
    assert!(text.contains(" cluster (1, 1) }"), "{text}");
    let more = space.variations(0);
    assert!(more.iter().all(|&i| i == 0 || space.list[i] != space.list[0]));
    let clusters: Vec<Option<[i64; 2]>> = more.iter().map(|&i| space.list[i].settings[0].cluster).collect();
    assert!(clusters.contains(&Some([2, 1])), "{clusters:?}");
    let different = more.into_iter().filter(|&i| i != 0);
    for i in different.collect::<Vec<_>>() {
        assert_ne!(space.compile_candidate(i).map(|m| m.code.clone()).expect("it compiles"), own, "{}", space.list[i]);
    }
}

#[test]
fn what_cannot_be_tuned_is_said() {
    let space = |source: &str, defines: &str, sizes: &str| {
        Space::new(source, &options(Target::Sm80, defines), None, &args(sizes)).map(|s| s.list.len())
    };
    let all = "BM=64,BN=64,BK=32,WM=32,WN=32,KW=1,STAGES=2,RASTER=1";
    let said = space(EXAMPLES[0].0, all, "M=64 N=64 K=64").expect_err("nothing is left").to_string();
    assert!(said.contains("E0617") && said.contains("nothing is left to choose for `gemm`"), "{said}");
    let said = space(EXAMPLES[0].0, "BM=63", "M=64 N=64 K=64").expect_err("no warp tile divides it").to_string();
    assert!(said.contains("E0617") && said.contains("no values of `BN`, "), "{said}");
    let said = space(EXAMPLES[0].0, "Q=1", "M=64 N=64 K=64").expect_err("no such parameter").to_string();
    assert!(said.contains("`Q`"), "{said}");
}

#[test]
fn code_is_what_is_left_without_comments_and_places() {
    let ptx = "// a for sm_70, compiled by tilec from a.tile\n.version 6.0\n.file 1 \"a.tile\"\n\t.loc\t1 2 3\n\tret; // bye\n\n";
    assert_eq!(code_only(ptx), ".version 6.0\nret;\n");
}

/// If operands are copied to aligned rows, or transposed, for these sizes, the tuned source has the copies; otherwise
/// it disables them.
#[test]
fn copies_to_aligned_rows_are_written() {
    let source = EXAMPLES[0].0;
    for (defines, sizes, says) in [
        ("ALIGN_B=1,ALIGN_C=1", "M=2048 N=2048 K=2048", "sequence gemm { gemm_align_B, gemm_aligned }"),
        ("ALIGN_B=1,ALIGN_C=1", "M=16 N=512 K=64", " align_rows 0 "),
        ("T=e4m3,ALIGN=16", "M=4096 N=4096 K=4096", "sequence gemm { gemm_reorder_B, gemm_aligned }"),
    ] {
        let options = options(Target::Sm90a, defines);
        let mut space = Space::new(source, &options, None, &args(sizes)).unwrap_or_else(|d| panic!("{sizes}: {d}"));
        let own = CompileOptions { sizes: vec![space.sizes().clone()], ..options };
        let own = compile(source, &own).expect("it compiles");
        let text = space.compile_candidate(0).map(|m| m.text.clone()).expect("it compiles");
        assert!(text.contains(says), "{text}");
        let plain = CompileOptions { target: Target::Sm90a, ..CompileOptions::default() };
        let again = compile(&text, &plain).unwrap_or_else(|d| panic!("{sizes}: {d}"));
        assert_eq!(code_only(&again.ptx), code_only(&own.ptx), "{sizes}");
    }
}
