//! Everything that `choose` chooses compiles: every target, type and operand order, over sizes of every kind.

use crate::kinds::assembled;
use crate::programs::Test;
use tilec::{CompileOptions, Target};

/// The program.
const GEMM: (&str, &str) = ("gemm.tile", include_str!("../../examples/gemm.tile"));
/// Its relatives, with a size more: they are tried with some of its cases.
const RELATIVES: [(&str, &str); 3] = [
    ("gemm_batched.tile", include_str!("../../examples/gemm_batched.tile")),
    ("gemm_pointers.tile", include_str!("../../examples/gemm_pointers.tile")),
    ("gemm_splitk.tile", include_str!("../../examples/gemm_splitk.tile")),
];

/// Types, as definitions, and the first target that has fast products of them.
const TYPES: &[(&str, Target)] = &[
    ("T=f16", Target::Sm70),
    ("T=f16,Acc=f16", Target::Sm70),
    ("T=f32,ALIGN=4", Target::Sm70),
    ("T=f64,Acc=f64,ALIGN=2", Target::Sm70),
    ("T=i8,Acc=i32,ALIGN=16", Target::Sm70),
    ("T=bf16", Target::Sm80),
    ("T=tf32,ALIGN=4", Target::Sm80),
    ("T=e4m3,ALIGN=16", Target::Sm89),
    ("T=f16,ALIGN=1", Target::Sm70),
    ("T=f32,ALIGN=1", Target::Sm70),
];

/// Operand orders, that of C last.
const ORDERS: [&str; 5] = ["LA=row,LB=row", "LA=row,LB=col", "LA=col,LB=row", "LA=col,LB=col", "LA=row,LB=row,LC=col"];

/// M, N and K: small, square, long, thin, deep, odd.
const SIZES: [[i64; 3]; 9] = [
    [1, 1, 1],
    [128, 128, 128],
    [512, 512, 512],
    [1000, 1000, 1000],
    [4096, 4096, 4096],
    [16, 4096, 4096],
    [8192, 64, 256],
    [64, 64, 65536],
    [16384, 16384, 1024],
];

/// One in this many programs is assembled.
const ASSEMBLED: usize = 17;

/// One test for each target, and one for the cards.
pub fn tests() -> Vec<Test> {
    let one = |target: Target| -> Test { (format!("choices/{}", target.name()), Box::new(move || all(target))) };
    let rasters: Test = ("choices/rasters".to_owned(), Box::new(rasters));
    Target::ALL.iter().map(|&target| one(target)).chain([rasters]).collect()
}

/// Every raster width with one tile, in clusters and with shared tiles. TMA stores to C, which is also loaded, are
/// proved with any folded constants.
fn rasters() -> Result<(), String> {
    let mut wrong = Vec::new();
    for more in ["", " cluster (2, 1)", " cluster (1, 2)", " cluster (2, 2)", " stream_k 1", " stage_stores 1"] {
        for program in std::iter::once(&GEMM).chain(&RELATIVES) {
            // TMA does not store to pointers; blocks do not share the tiles of split products.
            let refused = match program.0 {
                "gemm_pointers.tile" => more.contains("stage_stores"),
                "gemm_splitk.tile" => more.contains("stream_k"),
                _ => false,
            };
            if refused {
                continue;
            }
            let source = program.1.replace("raster RASTER", &format!("raster RASTER{more}"));
            for raster in [1, 2, 4, 8] {
                let defines = format!("Out=f16,BM=128,BN=128,BK=64,WM=64,WN=128,KW=1,STAGES=4,RASTER={raster}");
                let options = CompileOptions {
                    source_name: program.0.to_owned(),
                    target: Target::Sm90a,
                    defines: defines
                        .split(',')
                        .filter_map(|d| d.split_once('='))
                        .map(|(n, v)| (n.into(), v.into()))
                        .collect(),
                    ..CompileOptions::default()
                };
                let done = tilec::compile(&source, &options);
                wrong.extend(done.err().map(|e| format!("{} with {defines}{more}: {e}", program.0)));
            }
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// Compiles for all sizes, with types and orders in rotation, and assembles a sample: no spills, no local memory.
fn all(target: Target) -> Result<(), String> {
    let mut wrong = Vec::new();
    let mut tried = 0;
    for (t, (types, _)) in TYPES.iter().filter(|(_, first)| target >= *first).enumerate() {
        for (s, size) in SIZES.iter().enumerate() {
            // Each type is combined with each size in one order; all orders occur.
            let order = ORDERS[(t + s) % ORDERS.len()];
            let what = format!("{} {types},{order} for {size:?}", target.name());
            let assembled = tried % ASSEMBLED == 0;
            tried += 1;
            let relative = RELATIVES.get(tried % 8);
            for program in std::iter::once(&GEMM).chain(relative) {
                let done = one(program, target, &format!("{types},{order}"), *size, assembled);
                wrong.extend(done.err().map(|e| format!("{} for {what}: {e}", program.0)));
            }
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

fn one(
    (name, source): &(&str, &str),
    target: Target,
    defines: &str,
    size: [i64; 3],
    assembled: bool,
) -> Result<(), String> {
    let pairs = defines.split(',').filter_map(|d| d.split_once('='));
    let more = match *name {
        "gemm.tile" => None,
        "gemm_splitk.tile" => Some(("S", 8)),
        _ => Some(("Z", 3)),
    };
    let sizes = ["M", "N", "K"].into_iter().zip(size).chain(more).map(|(name, x)| (name.to_owned(), x)).collect();
    let options = CompileOptions {
        source_name: (*name).to_owned(),
        target,
        defines: pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        sizes: vec![sizes],
        // Some have operands with odd rows; whether a launch accepts them is not tested here.
        refuse_sizes: false,
        ..CompileOptions::default()
    };
    let done = tilec::compile(source, &options).map_err(|e| e.to_string())?;
    if assembled {
        assembled::lint("choices", &done.ptx, target)?;
    }
    Ok(())
}
