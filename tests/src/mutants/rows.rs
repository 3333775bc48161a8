//! The programs of the repository whose mutants are tried, how they are compiled, and the problems.

/// A program of the repository, how it is compiled, and with which sizes it runs.
pub(super) struct Row {
    /// Unique.
    pub(super) name: &'static str,
    /// The file, and after a colon which kernel of several.
    pub(super) path: &'static str,
    /// Target and definitions.
    pub(super) args: &'static str,
    /// Lists of sizes and scalars; `M=1..64/3` is a sweep from 1 to 64 in steps of 3, and a problem for each, which runs
    /// in one of the modes (so does the one of `K=2056..2056/8`), others in all.
    pub(super) runs: &'static [&'static [&'static str]],
}

const GEMM: &str = "examples/gemm.tile";
/// Rows may start anywhere; gaps between rows.
const ODD: &[&str] = &[
    "M=70 N=40 K=29 alpha=2 beta=0 seed=3 A_ld=81 B_ld=47 C_ld=91",
    "M=131 N=72 K=5 alpha=-1 beta=1 seed=4 A_ld=139 B_ld=79 C_ld=141",
    "M=64 N=32 K=16 alpha=1 beta=2 seed=5",
    "M=3 N=393 K=9 beta=0 seed=6",
    "M=1..65/1 N=3 K=20 beta=2",
    "M=2 N=1..33/1 K=20 beta=2",
    "M=2 N=1..33/1 K=12 beta=2",
    "M=2 N=1..17/1 K=5 beta=2",
    "M=3 N=2 K=1..34/1 beta=0",
    // Words that end with the tensor, and tensors that are smaller than what covers one access.
    "M=2..9/1 N=3 K=8 beta=0",
    "M=37 N=3 K=1..17/1 beta=0",
    "M=1 N=3 K=8..15/1 at=8 beta=0",
];
/// Rows start at multiples of eight elements.
const EVEN: &[&str] = &[
    "M=72 N=40 K=56 alpha=2 beta=0 seed=3 A_ld=80 B_ld=64 C_ld=88",
    "M=136 N=72 K=8 alpha=-1 beta=1 seed=4 A_ld=144 B_ld=88 C_ld=152",
    "M=64 N=32 K=64 alpha=1 beta=2 seed=5",
    "M=8 N=392 K=24 beta=0 seed=6",
    "M=8..72/8 N=8 K=24 beta=2",
    "M=8 N=8..40/8 K=24 beta=2",
    "M=8 N=8 K=8..72/8 beta=0",
];
/// Rows start at multiples of four elements.
const FOURS: &[&str] = &[
    "M=68 N=36 K=52 alpha=2 beta=0 seed=3 A_ld=76 B_ld=60 C_ld=84",
    "M=132 N=68 K=4 alpha=-1 beta=1 seed=4 A_ld=140 B_ld=84 C_ld=148",
    "M=64 N=32 K=64 alpha=1 beta=2 seed=5",
    "M=4 N=388 K=20 beta=0 seed=6",
    "M=4..68/4 N=4 K=20 beta=2",
    "M=4 N=4..36/4 K=20 beta=2",
    "M=4 N=4 K=4..68/4 beta=0",
];
/// Half-precision accumulators: small scalars, so that sums stay exact.
const HALF: &[&str] = &[
    "M=72 N=40 K=56 alpha=1 beta=0 seed=3 A_ld=80 B_ld=64 C_ld=88",
    "M=136 N=72 K=8 alpha=-1 beta=1 seed=4 A_ld=144 B_ld=88 C_ld=152",
    "M=8 N=392 K=24 beta=0 seed=6",
    "M=8..72/8 N=8 K=24 beta=2",
    "M=8 N=8..40/8 K=24 beta=2",
    "M=8 N=8 K=8..72/8 beta=0",
];
/// As [`EVEN`], with several steps of 64.
const DEEP: &[&str] = &[
    "M=72 N=40 K=328 alpha=2 beta=0 seed=3 A_ld=336 B_ld=344 C_ld=88",
    "M=136 N=72 K=8 alpha=-1 beta=1 seed=4 A_ld=16 B_ld=24 C_ld=152",
    "M=8 N=392 K=24 beta=0 seed=6 C_ld=16",
    "M=8..72/8 N=8 K=72 beta=2",
    "M=8 N=8..40/8 K=72 beta=2",
    "M=8 N=8 K=8..200/8 beta=0",
];
/// Rows of A start at multiples of eight elements, those of B and C anywhere. This program adds `beta * C` whatever `beta` is: a zero
/// would make NaN of all results, since C starts as NaN then.
const MIXED: &[&str] = &[
    "M=70 N=41 K=56 alpha=2 beta=1 seed=3 A_ld=64 B_ld=47 C_ld=91",
    "M=35 N=72 K=8 alpha=-1 beta=1 seed=4 A_ld=16 B_ld=79 C_ld=81",
    "M=32 N=32 K=64 alpha=1 beta=2 seed=5",
    "M=3 N=197 K=24 beta=1 seed=6",
    "M=1..33/1 N=3 K=24 beta=2",
    "M=2 N=1..33/1 K=24 beta=2",
    "M=2 N=1..33/1 K=56 beta=2",
    // The last row of B in either access of each stage of the prologue, and rows that are all needed in each.
    "M=2 N=1..33/1 K=8 beta=2",
    "M=2 N=1..33/1 K=16 beta=2",
    "M=2 N=1..33/1 K=40 beta=2",
    "M=3 N=75 K=8..120/8 beta=1",
    "M=3 N=1..3/1 K=8 at=8 beta=1",
    "M=3 N=2 K=8..80/8 beta=1",
];
/// Extents without a precondition: rows of `row` operands and columns of `col` ones may be any number.
const ANY_M: &[&str] = &["M=1..65/1 N=8 K=24 beta=2", "M=1..33/1 N=8 K=8 beta=0"];
const ANY_N: &[&str] = &["M=8 N=1..33/1 K=72 beta=2", "M=40 N=1..33/1 K=8 beta=0"];
const ANY_K: &[&str] = &["M=8 N=8 K=1..66/1 beta=0", "M=72 N=40 K=1..19/1 beta=2"];
const MATRIX: &[&str] =
    &["M=131 N=75 A_ld=83 B_ld=139 seed=2", "M=67 N=259 A_ld=263 B_ld=269 seed=3", "M=1..65/1 N=5", "M=5 N=1..129/1"];
const MATRIX_8: &[&str] =
    &["M=136 N=88 A_ld=96 B_ld=144 seed=2", "M=72 N=264 A_ld=272 B_ld=280 seed=3", "M=8..72/8 N=8", "M=8 N=8..136/8"];
/// Only N is a multiple of eight.
const ROWS_8: &[&str] =
    &["M=131 N=88 A_ld=96 B_ld=104 seed=2", "M=70 N=264 A_ld=272 B_ld=280 seed=3", "M=1..33/1 N=8", "M=5 N=8..136/8"];
/// Tiles of 64 x 80.
const PANELS_80: &[&str] = &[
    "M=70 N=88 K=72 seed=3 A_ld=80 B_ld=104 C_ld=120",
    "M=131 N=72 K=8 seed=4 A_ld=16 B_ld=88 C_ld=152",
    "M=64 N=320 K=16 seed=5",
    "M=128 N=80 K=32 seed=6",
    "M=1..65/4 N=8 K=24",
    "M=3 N=8..88/8 K=24",
    "M=3 N=8 K=8..80/8",
    // More tiles than blocks.
    "M=70 N=5288 K=8..24/16",
];

/// All of them.
pub(super) const ROWS: &[Row] = &[
    Row { name: "copy", path: "examples/copy.tile", args: "sm_70", runs: &[ROWS_8] },
    Row { name: "copy-f16-odd", path: "examples/copy.tile", args: "sm_75 -D T=f16 -D ALIGN=1", runs: &[MATRIX] },
    Row { name: "transpose", path: "examples/transpose.tile", args: "sm_70", runs: &[MATRIX_8] },
    Row { name: "transpose-f16", path: "examples/transpose.tile", args: "sm_80 -D T=f16", runs: &[MATRIX_8] },
    Row {
        name: "transpose-odd",
        path: "examples/transpose.tile",
        args: "sm_70 -D ALIGN=1 -D BM=32 -D BN=32",
        runs: &[MATRIX],
    },
    Row {
        name: "transpose-plain",
        path: "examples/transpose.tile",
        args: "sm_70 -D BM=32 -D BN=32 --disable swizzle",
        runs: &[MATRIX_8],
    },
    Row {
        name: "gemm-70",
        path: GEMM,
        args: "sm_70 -D BM=64 -D BN=32 -D BK=16 -D WM=32 -D WN=32",
        runs: &[EVEN, ANY_M],
    },
    Row {
        name: "gemm-70-odd",
        path: GEMM,
        args: "sm_70 -D BM=64 -D BN=32 -D BK=8 -D WM=32 -D WN=32 -D ALIGN=1",
        runs: &[ODD],
    },
    Row {
        name: "gemm-70-single",
        path: GEMM,
        args: "sm_70 -D BM=64 -D BN=32 -D BK=16 -D WM=32 -D WN=32 -D STAGES=1 -D LA=col",
        runs: &[EVEN, ANY_K],
    },
    Row {
        name: "gemm-70-three-f16",
        path: GEMM,
        args: "sm_70 -D BM=64 -D BN=32 -D BK=16 -D WM=32 -D WN=32 -D STAGES=3 -D Acc=f16 -D LB=col",
        runs: &[HALF, ANY_M],
    },
    Row {
        name: "gemm-70-no-swizzle",
        path: GEMM,
        args: "sm_70 -D BM=64 -D BN=32 -D BK=16 -D WM=32 -D WN=32 -D LA=col -D LB=col --disable swizzle",
        runs: &[EVEN],
    },
    Row {
        name: "gemm-70-plain",
        path: GEMM,
        args: "sm_70 -D BM=64 -D BN=32 -D BK=8 -D WM=32 -D WN=32 -D ALIGN=1 --disable all",
        runs: &[ODD],
    },
    Row {
        name: "gemm-70-col",
        path: GEMM,
        args: "sm_70 -D BM=64 -D BN=32 -D BK=16 -D WM=32 -D WN=32 -D LC=col -D Acc=f16",
        runs: &[HALF],
    },
    Row {
        name: "gemm-75",
        path: GEMM,
        args: "sm_75 -D BM=64 -D BN=32 -D BK=16 -D WM=32 -D WN=32",
        runs: &[EVEN, ANY_M],
    },
    Row {
        name: "gemm-75-cols-f16",
        path: GEMM,
        args: "sm_75 -D BM=64 -D BN=32 -D BK=16 -D WM=32 -D WN=32 -D LA=col -D LB=col -D Acc=f16",
        runs: &[HALF],
    },
    Row {
        name: "gemm-80",
        path: GEMM,
        args: "sm_80 -D BM=64 -D BN=32 -D BK=16 -D WM=32 -D WN=32",
        runs: &[EVEN, ANY_M],
    },
    Row {
        name: "gemm-80-bf16-cols",
        path: GEMM,
        args: "sm_80 -D T=bf16 -D BM=64 -D BN=32 -D BK=16 -D WM=32 -D WN=32 -D LA=col -D LB=col -D STAGES=3",
        runs: &[EVEN],
    },
    Row {
        name: "gemm-80-four-f16",
        path: GEMM,
        args: "sm_80 -D BM=64 -D BN=32 -D BK=16 -D WM=32 -D WN=32 -D LA=col -D STAGES=4 -D Acc=f16",
        runs: &[HALF, ANY_K],
    },
    Row {
        name: "gemm-80-deep",
        path: GEMM,
        args: "sm_80 -D BM=64 -D BN=32 -D BK=64 -D WM=32 -D WN=32 -D LB=col -D LC=col -D STAGES=4",
        runs: &[DEEP, ANY_N],
    },
    Row {
        name: "gemm-80-k-warps",
        path: GEMM,
        args: "sm_80 -D T=f32 -D BM=32 -D BN=32 -D BK=16 -D WM=32 -D WN=32 -D KW=2 -D STAGES=3 -D ALIGN=4",
        runs: &[FOURS, ANY_M],
    },
    Row {
        name: "gemm-75-k-warps",
        path: GEMM,
        args: "sm_75 -D BM=32 -D BN=32 -D BK=32 -D WM=32 -D WN=32 -D KW=2 -D LC=col",
        runs: &[DEEP],
    },
    Row {
        name: "gemm-80-mixed",
        path: "tests/files/interp/gemm_mixed.tile",
        args: "sm_80 -D STAGES=3",
        runs: &[MIXED],
    },
    Row {
        name: "gemm-80-odd-single",
        path: GEMM,
        args: "sm_80 -D BM=64 -D BN=32 -D BK=16 -D WM=32 -D WN=32 -D ALIGN=1 -D STAGES=1 -D LB=col",
        runs: &[ODD],
    },
    Row {
        name: "gemm-80-plain",
        path: GEMM,
        args: "sm_80 -D BM=64 -D BN=32 -D BK=16 -D WM=32 -D WN=32 -D ALIGN=1 --disable all",
        runs: &[ODD],
    },
    Row {
        name: "gemm-direct",
        path: "examples/gemm_direct.tile",
        args: "sm_70 -D BM=64 -D BN=32 -D BK=16 -D WM=32 -D WN=32",
        runs: &[EVEN, ANY_M],
    },
    Row {
        name: "gemm-naive",
        path: "examples/gemm_naive.tile",
        args: "sm_70 -D BM=64 -D BN=32 -D WM=32 -D WN=32",
        runs: &[EVEN, ANY_M],
    },
    Row {
        name: "gemm-naive-f32",
        path: "examples/gemm_naive.tile",
        args: "sm_70 -D T=f32 -D BM=32 -D BN=32 -D WM=16 -D WN=32",
        runs: &[EVEN, ANY_M],
    },
    Row {
        name: "batched",
        path: "tests/files/interp/batched.tile",
        args: "sm_70 -D T=f16 -D ALIGN=8",
        runs: &[&[
            "Z=2 M=72 N=72 K=56 A_ld0=4616 A_ld1=64 B_ld0=4488 B_ld1=80 C_ld0=6400 C_ld1=88 seed=3",
            "Z=1 M=8 N=8 K=8 seed=4",
            "Z=1 M=1..33/1 N=8 K=24",
            "Z=1 M=5 N=8..40/8 K=24",
            "Z=1 M=5 N=8 K=8..72/8",
        ]],
    },
    Row {
        name: "batched-f32",
        path: "tests/files/interp/batched.tile",
        args: "sm_70 -D T=f32 -D ALIGN=1",
        runs: &[&[
            "Z=2 M=67 N=69 K=55 A_ld0=4603 A_ld1=64 B_ld0=4489 B_ld1=73 C_ld0=6401 C_ld1=88 seed=3",
            "Z=1 M=1 N=1 K=1 seed=4",
            "Z=1 M=1..33/1 N=3 K=20",
            "Z=1 M=1..33/4 N=3 K=13",
            "Z=1 M=2 N=1..33/1 K=20",
            "Z=1 M=2 N=1..33/1 K=12",
            "Z=1 M=2 N=1..9/1 K=36",
            "Z=1 M=2 N=1..9/1 K=3",
            "Z=1 M=2 N=1..9/1 K=7",
            "Z=1 M=2 N=1..9/1 K=15",
            "Z=1 M=5 N=37 K=1..35/1",
            "Z=1 M=9 N=37 K=18 seed=7",
            "Z=1 M=1 N=1 K=1..20/1 at=4",
            "Z=1 M=37 N=2 K=1..34/1",
        ]],
    },
    Row {
        name: "gemm-batched",
        path: "examples/gemm_batched.tile",
        args: "sm_80 -D BM=64 -D BN=32 -D BK=16 -D WM=32 -D WN=32 -D STAGES=3 -D LB=col",
        runs: &[&[
            "Z=3 M=72 N=40 K=56 alpha=2 beta=1 seed=3 A_ld0=4616 A_ld1=64 B_ld0=2248 B_ld1=56 C_ld0=3600 C_ld1=48",
            "Z=2 M=72 N=72 K=8 beta=0 seed=4 A_ld0=0",
            "Z=1 M=8 N=392 K=24 beta=0 seed=6",
            "Z=2 M=8..72/8 N=8 K=24",
            "Z=1 M=1..33/1 N=8 K=24",
            "Z=2 M=8 N=8..40/8 K=24 beta=1",
            "Z=2 M=8 N=8 K=8..72/8 beta=0",
        ]],
    },
    Row {
        name: "splitk-partial",
        path: "examples/gemm_splitk.tile:partial",
        args: "sm_80 -D BM=64 -D BN=32 -D BK=16 -D WM=32 -D WN=32 -D STAGES=3 -D UNIT=32 -D LA=col",
        runs: &[&[
            "S=3 M=72 N=40 K=215 seed=5 A_ld=80 B_ld=48 W_ld0=4200 W_ld1=56",
            "S=5 M=8 N=392 K=73 seed=6",
            "S=2 M=8..72/8 N=8 K=72",
            "S=2 M=8 N=8..40/8 K=72",
            "S=2 M=8 N=8 K=1..134/7",
            "S=1..6/1 M=8 N=8 K=104",
        ]],
    },
    Row {
        name: "splitk-partial-70",
        path: "examples/gemm_splitk.tile:partial",
        args: "sm_70 -D BM=64 -D BN=32 -D BK=8 -D WM=32 -D WN=32 -D UNIT=16 -D ALIGN=1",
        runs: &[&[
            "S=3 M=69 N=37 K=107 seed=5 A_ld=113 B_ld=41 W_ld0=4201 W_ld1=57",
            "S=5 M=3 N=393 K=29 seed=6",
            "S=2 M=1..65/1 N=3 K=40",
            "S=2 M=3 N=1..33/1 K=40",
            "S=2 M=3 N=2 K=1..67/1",
            "S=1..6/1 M=2 N=3 K=55",
            "S=1 M=3 N=1..17/1 K=16",
            // The last rows of B in the loop.
            "S=1 M=3 N=1..9/1 K=24",
            "S=1 M=3 N=37 K=20..51/1",
            "S=1 M=1 N=3 K=8..15/1 at=8",
        ]],
    },
    Row {
        name: "splitk-reduce",
        path: "examples/gemm_splitk.tile:reduce",
        args: "sm_70 -D RM=8 -D RN=32",
        runs: &[&[
            "S=3 M=21 N=72 alpha=2 beta=1 seed=5 W_ld0=2400 W_ld1=88 C_ld=80",
            "S=1 M=5 N=8 alpha=-1 beta=0 seed=6",
            "S=2 M=1..17/1 N=8 beta=2",
            "S=2 M=3 N=8..72/8 beta=0",
        ]],
    },
    Row {
        name: "conv-80-nchw",
        path: "examples/conv.tile",
        args: "sm_80 -D BM=64 -D BN=32 -D BK=16 -D WM=32 -D WN=32 -D STAGES=3 -D RASTER=8 -D ALIGN=8 -D CALIGN=16 -D NCHW=1",
        runs: &[&[
            "B=2 P=4 Q=10 R=3 S=2 C=16 O=40 xb=1056 xh=176 xw=16 seed=1",
            "B=3 P=2 Q=4 R=1 S=3 C=32 O=8 xb=1088 xh=224 xw=32 seed=2",
            "B=1 P=4 Q=2 R=1 S=1 C=16 O=392 xb=128 xh=32 xw=16 seed=3",
            "B=1 P=4..36/4 Q=2 R=2 S=1 C=16 O=8 xb=1200 xh=32 xw=16",
            "B=1 P=4 Q=2 R=2 S=2 C=16 O=8..40/8 xb=400 xh=64 xw=16",
            "B=1 P=4 Q=2 R=1..3/1 S=2 C=16 O=8 xb=800 xh=96 xw=16",
        ]],
    },
    Row {
        name: "conv-90a",
        path: "examples/conv.tile",
        args: "sm_90a -D BM=64 -D BN=32 -D BK=32 -D WM=64 -D WN=32 -D STAGES=3 -D RASTER=2 -D ALIGN=8 -D CALIGN=16 -D Out=f16",
        runs: &[&[
            // Eight steps in three slots.
            "B=2 P=4 Q=10 R=3 S=5 C=16 O=40 xb=1360 xh=224 xw=16 seed=1",
            "B=3 P=2 Q=4 R=1 S=3 C=32 O=8 xb=1088 xh=224 xw=32 seed=2",
            "B=1 P=4 Q=2 R=1 S=1 C=16 O=392 xb=128 xh=32 xw=16 seed=3",
            // Whole tiles, one row or one column of them.
            "B=1 P=8 Q=8 R=1 S=1 C=32 O=128 xb=2048 xh=256 xw=32 seed=4",
            "B=2 P=8 Q=8 R=1 S=2 C=32 O=32 xb=2304 xh=288 xw=32 seed=5",
            "B=1 P=4..36/4 Q=2 R=2 S=1 C=16 O=8 xb=1200 xh=32 xw=16",
            "B=1 P=4 Q=2 R=2 S=2 C=16 O=8..40/8 xb=400 xh=64 xw=16",
            "B=1 P=4 Q=2 R=1..15/1 S=2 C=16 O=8 xb=904 xh=48 xw=16",
            // More tiles than blocks, of one and of two steps.
            "B=1 P=7 Q=10 R=1..3/2 S=1 C=16 O=2168 xb=1600 xh=160 xw=16",
            "B=1 P=7 Q=10 R=2..4/2 S=1 C=16 O=2168 xb=1600 xh=160 xw=16",
        ]],
    },
    Row {
        name: "ahead",
        path: "tests/files/interp/residue_ahead.tile",
        args: "sm_70",
        runs: &[&["M=72 K=109 A_ld=113 C_ld=37 D_ld=39 seed=2", "M=1..33/1 K=40", "M=32 K=1..100/1"]],
    },
    Row { name: "through-global", path: "tests/files/interp/residue_gb.tile", args: "sm_70", runs: &[] },
    Row {
        name: "two-loops",
        path: "tests/files/interp/residue_two_aligned.tile",
        args: "sm_70",
        runs: &[&[
            "M=70 N=72 K=56 L=104 A_ld=64 B_ld=80 E_ld=120 F_ld=88 C_ld=80 seed=2",
            "M=35 N=40 K=24 L=40 A_ld=32 B_ld=48 E_ld=56 F_ld=56 C_ld=72 seed=3",
            "M=1..33/1 N=8 K=56 L=104",
            "M=1..33/1 N=8 K=8 L=8",
            "M=3 N=8..40/8 K=24 L=40",
            "M=3 N=8..40/8 K=72 L=16",
            "M=37 N=8 K=8..64/8 L=8",
            "M=37 N=8 K=8 L=8..104/8",
        ]],
    },
    Row {
        name: "keep",
        path: "tests/files/interp/residue_keep.tile",
        args: "sm_70",
        runs: &[&["M=100 K=110 A_ld=115 C_ld=37 seed=2", "M=1..50/1 K=40", "M=48 K=1..100/1"]],
    },
    Row {
        name: "gemm-90a",
        path: GEMM,
        args: "sm_90a -D BM=64 -D BN=32 -D BK=64 -D WM=64 -D WN=32 -D STAGES=3 -D RASTER=2 --disable stage-stores",
        runs: &[&[
            "M=70 N=40 K=520 alpha=2 beta=0 seed=3 A_ld=528 B_ld=64 C_ld=88",
            "M=131 N=72 K=8 alpha=-1 beta=1 seed=4 A_ld=16 B_ld=88 C_ld=152",
            // Whole tiles, one row or one column of them.
            "M=64 N=128 K=64 alpha=1 beta=2 seed=5",
            "M=128 N=32 K=128 beta=0 seed=7",
            "M=3 N=168 K=136 beta=0 seed=6",
            "M=1..65/1 N=8 K=72 beta=2",
            "M=3 N=8..72/8 K=72 beta=2",
            "M=3 N=8 K=8..264/8 beta=0",
            // More tiles than blocks.
            "M=70 N=2160 K=72..80/8 beta=0",
        ]],
    },
    Row {
        name: "gemm-90a-groups",
        path: GEMM,
        args: "sm_90a -D T=bf16 -D BM=128 -D BN=16 -D BK=64 -D WM=64 -D WN=16 -D LA=col -D LB=col -D STAGES=2 -D RASTER=2 --disable stage-stores",
        runs: &[&[
            "M=136 N=24 K=328 alpha=2 beta=0 seed=3 A_ld=144 B_ld=336 C_ld=32",
            "M=264 N=40 K=8 alpha=-1 beta=1 seed=4 A_ld=272 B_ld=16 C_ld=48",
            "M=128 N=64 K=64 alpha=1 beta=2 seed=5",
            "M=256 N=16 K=64 beta=0 seed=6",
            "M=8..136/8 N=8 K=72 beta=2",
            "M=8 N=8..40/8 K=72 beta=2",
            "M=8 N=8 K=8..200/8 beta=0",
            "M=136 N=1080 K=72..80/8 beta=0",
        ]],
    },
    Row {
        name: "gemm-90a-bytes",
        path: GEMM,
        args: "sm_90a -D T=i8 -D Acc=i32 -D BM=64 -D BN=16 -D BK=32 -D WM=64 -D WN=16 -D LB=col -D STAGES=2 -D RASTER=2 -D ALIGN=16 --disable stage-stores",
        runs: &[&[
            "M=70 N=48 K=176 alpha=2 beta=0 seed=3 A_ld=192 B_ld=208 C_ld=64",
            "M=131 N=32 K=16 alpha=-1 beta=1 seed=4 A_ld=32 B_ld=48 C_ld=48",
            "M=64 N=64 K=64 alpha=1 beta=2 seed=5",
            "M=128 N=16 K=64 beta=0 seed=6",
            "M=1..65/1 N=16 K=48 beta=2",
            "M=3 N=16..48/16 K=48 beta=2",
            "M=3 N=16 K=16..160/16 beta=0",
            "M=70 N=1088 K=48..64/16 beta=0",
        ]],
    },
    Row {
        name: "gemm-90a-fp8",
        path: GEMM,
        args: "sm_90a -D T=e4m3 -D BM=64 -D BN=16 -D BK=64 -D WM=64 -D WN=16 -D LB=col -D STAGES=2 -D RASTER=2 -D ALIGN=16 --disable stage-stores",
        runs: &[&[
            "M=70 N=48 K=336 alpha=2 beta=0 seed=3 C_ld=64",
            "M=131 N=32 K=16 alpha=-1 beta=1 seed=4 C_ld=48",
            "M=64 N=64 K=128 alpha=1 beta=2 seed=5",
            "M=128 N=16 K=192 beta=0 seed=6",
            "M=1..65/1 N=16 K=48 beta=2",
            "M=3 N=16..48/16 K=80 beta=2",
            "M=3 N=16 K=16..528/32 beta=0",
            "M=3 N=16 K=64..512/64 beta=0",
            // More tiles than blocks, whose last steps are in any place of the ring.
            "M=70 N=1088 K=144..272/128 beta=0",
            "M=70 N=1088 K=336..464/128 beta=0",
            "M=70 N=2128 K=16 beta=0",
        ]],
    },
    Row {
        name: "gemm-90a-tf32",
        path: GEMM,
        args: "sm_90a -D T=tf32 -D BM=64 -D BN=8 -D BK=16 -D WM=64 -D WN=8 -D LB=col -D STAGES=4 -D RASTER=2 -D ALIGN=4 --disable stage-stores",
        runs: &[&[
            "M=70 N=12 K=164 alpha=2 beta=0 seed=3 A_ld=172 B_ld=180 C_ld=20",
            "M=131 N=20 K=4 alpha=-1 beta=1 seed=4 A_ld=8 B_ld=12 C_ld=24",
            "M=64 N=32 K=32 alpha=1 beta=2 seed=5",
            "M=128 N=8 K=32 beta=0 seed=6",
            "M=1..65/1 N=4 K=20 beta=2",
            "M=3 N=4..20/4 K=20 beta=2",
            "M=3 N=4 K=4..100/4 beta=0",
            "M=70 N=540 K=20..24/4 beta=0",
        ]],
    },
    Row {
        name: "gemm-90a-registers",
        path: "tests/files/interp/gemm_sm_90a_registers_pending.tile",
        args: "sm_90a -D BM=8 -D BN=64 -D BK=16 -D WM=8 -D WN=64 -D STAGES=3 --disable stage-stores",
        runs: &[&[
            "M=12 N=72 K=164 alpha=2 beta=0 seed=3 A_ld=172 B_ld=180 C_ld=80",
            "M=20 N=132 K=4 alpha=-1 beta=1 seed=4 A_ld=8 B_ld=140 C_ld=136",
            "M=32 N=64 K=32 alpha=1 beta=2 seed=5",
            "M=8 N=64 K=4..64/12 beta=2",
            "M=4 N=4 K=48 beta=0",
            "M=9..16/1 N=4 K=20 beta=0",
            "M=4 N=4..68/4 K=20 beta=2",
            // More tiles than blocks.
            "M=264 N=260 K=4..84/16 beta=0",
            "M=264 N=580 K=20..52/32 beta=0",
            "M=264 N=1100 K=4 beta=0",
        ]],
    },
    Row {
        name: "gemm-90a-cluster",
        path: "tests/files/interp/gemm_sm_90a_cluster.tile",
        args: "sm_90a -D BM=64 -D BN=32 -D BK=64 -D WM=64 -D WN=32 -D STAGES=2 -D RASTER=1 -D CM=2 -D CN=1 --disable stage-stores",
        runs: &[&[
            "M=70 N=40 K=328 alpha=2 beta=0 seed=3 A_ld=336 B_ld=64 C_ld=88",
            "M=131 N=72 K=8 alpha=-1 beta=1 seed=4 A_ld=16 B_ld=88 C_ld=152",
            "M=128 N=64 K=64 alpha=1 beta=2 seed=5",
            "M=64 N=32 K=128 beta=0 seed=7",
            "M=1..129/4 N=8 K=72 beta=2",
            "M=67 N=8..72/8 K=72 beta=2",
            "M=67 N=8 K=8..200/8 beta=0",
            "M=135 N=2160 K=72..80/8 beta=0",
        ]],
    },
    Row {
        // Sums in two parts that take turns, of which one is pending.
        name: "gemm-90a-pending-fp8",
        path: "tests/files/interp/pending_parts_sm_90a.tile",
        args: "sm_90a --disable stage-stores",
        runs: &[&[
            "M=70 N=48 K=336 seed=3 C_ld=64",
            "M=131 N=32 K=16 seed=4 C_ld=48",
            "M=64 N=64 K=128 seed=5",
            "M=128 N=16 K=192 seed=6",
            "M=1..65/4 N=16 K=80",
            "M=3 N=16..48/16 K=80",
            "M=3 N=16 K=16..528/32",
            "M=3 N=16 K=64..512/64",
            // More tiles than blocks, whose last steps are in any place of the ring.
            "M=70 N=1088 K=144..272/128",
            "M=70 N=1088 K=336..464/128",
        ]],
    },
    Row {
        // Operands shared along the rows and the columns of a cluster: masks of some of its blocks.
        name: "gemm-90a-cluster-both",
        path: "tests/files/interp/cluster_both_sm_90a.tile",
        args: "sm_90a --disable stage-stores",
        runs: &[&[
            "M=70 N=40 K=88 seed=3 A_ld=96 B_ld=56 C_ld=56",
            "M=131 N=24 K=8 seed=4 A_ld=16 B_ld=40 C_ld=72",
            "M=128 N=64 K=32 seed=5",
            "M=1..129/16 N=24 K=24",
            "M=67 N=8..40/8 K=24",
            "M=67 N=24 K=8..80/8",
            // More tiles than blocks.
            "M=135 N=536 K=8..24/16",
        ]],
    },
    Row {
        name: "gemm-90a-stream",
        path: "tests/files/interp/gemm_sm_90a_stream_k.tile",
        args: "sm_90a -D BM=64 -D BN=16 -D BK=64 -D WM=64 -D WN=16 -D STAGES=2 -D RASTER=1 -D CM=1 --disable stage-stores",
        runs: &[&[
            "M=70 N=24 K=1160 alpha=2 beta=0 seed=3 A_ld=1168 B_ld=64 C_ld=88",
            "M=131 N=24 K=8 alpha=-1 beta=1 seed=4 A_ld=16 B_ld=88 C_ld=152",
            "M=64 N=16 K=2048 alpha=1 beta=2 seed=5",
            "M=67 N=8 K=8..1100/256 beta=0",
            // A step less than what another block shares, and more steps than the most blocks of a tile share.
            "M=64 N=16 K=960 beta=0",
            "M=67 N=8 K=2568 beta=0",
            // Fewer tiles than blocks, whose shares end anywhere in a tile.
            "M=8 N=544 K=2056..2056/8 beta=0",
            // A round of whole tiles, and what is left over: a few tiles for all blocks, with as many steps as two blocks share and with
            // fewer, as many as have two blocks each, more than that, and nothing.
            "M=67 N=1072 K=1032..1040/8 beta=0",
            "M=67 N=1072 K=520..520/8 beta=0",
            "M=8 N=3168 K=1024..1024/8 beta=0",
            "M=67 N=1664 K=1024..1024/8 beta=0",
            "M=67 N=1056 K=8..16/8 beta=0",
        ]],
    },
    Row {
        name: "turns-90a",
        path: "tests/files/interp/role_replicas_sm_90a.tile",
        args: "sm_90a -D R=2 -D S=3",
        runs: &[&[
            // Several tiles for each replica, one, and none; steps that end anywhere in the ring.
            "M=600 N=64 K=264 seed=3 A_ld=272 B_ld=80 C_ld=72",
            "M=470 N=40 K=64 seed=4",
            "M=330 N=24 K=136 seed=5",
            "M=1..257/64 N=8 K=72",
            "M=67 N=8 K=8..328/64",
            "M=390 N=8..64/8 K=200",
        ]],
    },
    Row {
        // Slots that threads of other roles fill, by stores and by copies whose threads arrive when their own copies
        // have landed.
        name: "filled-90a",
        path: "tests/files/interp/role_fills_stored_sm_90a.tile",
        args: "sm_90a",
        runs: &[&[
            // Nine steps in two and in three slots.
            "M=70 K=520 seed=3 A_ld=528 B_ld=523 C_ld=536 D_ld=541",
            "M=131 K=8 seed=4 A_ld=16 B_ld=13 C_ld=24 D_ld=17",
            "M=64 K=192 seed=5",
            "M=1..65/1 K=72",
            "M=3 K=8..456/8",
        ]],
    },
    Row {
        name: "gemm-90a-stores",
        path: GEMM,
        args: "sm_90a -D BM=64 -D BN=32 -D BK=64 -D WM=64 -D WN=32 -D STAGES=2 -D RASTER=2 -D Out=f16",
        runs: &[&[
            "M=70 N=40 K=328 alpha=2 beta=0 seed=3 A_ld=336 B_ld=64 C_ld=88",
            "M=131 N=72 K=8 alpha=-1 beta=1 seed=4 A_ld=16 B_ld=88 C_ld=152",
            "M=64 N=128 K=64 alpha=1 beta=2 seed=5",
            "M=128 N=32 K=128 beta=0 seed=7",
            "M=1..65/4 N=8 K=72 beta=2",
            "M=3 N=8..72/8 K=72 beta=2",
            "M=3 N=8 K=8..200/8 beta=0",
            "M=70 N=2160 K=72..80/8 beta=0",
        ]],
    },
    Row {
        // C comes through the slots of A.
        name: "gemm-90a-loads",
        path: GEMM,
        args: "sm_90a -D BM=64 -D BN=64 -D BK=32 -D WM=64 -D WN=64 -D STAGES=2 -D RASTER=2 -D Out=f16",
        runs: &[&[
            "M=70 N=72 K=168 alpha=2 beta=1 seed=3 A_ld=176 B_ld=88 C_ld=88",
            "M=131 N=72 K=8 alpha=-1 beta=1 seed=4 A_ld=16 B_ld=88 C_ld=152",
            "M=64 N=128 K=32 alpha=1 beta=2 seed=5",
            "M=128 N=64 K=64 beta=0 seed=7",
            "M=1..65/4 N=8 K=40 beta=2",
            "M=3 N=8..72/8 K=40 beta=2",
            "M=3 N=8 K=8..104/8 beta=2",
            // More tiles than blocks, with C in either slot.
            "M=130 N=3208 K=8 beta=0..2/2",
            "M=130 N=3208 K=40 beta=2",
        ]],
    },
    Row {
        name: "panels-90a",
        path: "tests/files/interp/panels_sm_90a.tile",
        args: "sm_90a --disable stage-stores",
        runs: &[&[
            "M=70 N=264 K=88 seed=3 A_ld=96 B_ld=272 C_ld=280",
            "M=131 N=72 K=8 seed=4 A_ld=16 B_ld=88 C_ld=152",
            "M=64 N=512 K=32 seed=5",
            "M=128 N=128 K=32 seed=6",
            "M=1..65/1 N=8 K=24",
            "M=3 N=8..136/8 K=24",
            "M=3 N=8 K=8..80/8",
            "M=3 N=17032 K=24..32/8",
        ]],
    },
    Row {
        // Columns that are no power of two, of which the last panel of B reaches beyond the tile; registers are stored.
        name: "panels-90a-columns",
        path: "tests/files/interp/panels_sm_90a.tile",
        args: "sm_90a -D BN=80 --disable stage-stores",
        runs: &[PANELS_80],
    },
    Row {
        name: "panels-90a-columns-stores",
        path: "tests/files/interp/panels_sm_90a.tile",
        args: "sm_90a -D BN=80",
        runs: &[PANELS_80],
    },
    Row {
        name: "softmax",
        path: "examples/softmax.tile",
        args: "sm_80 -D BM=4 -D BN=256",
        runs: &[&[
            "M=13 N=600 seed=1 range=2 tolerance=1e-6 X_ld=608 Y_ld=612",
            "M=4 N=256 seed=2 range=2 tolerance=1e-6",
            "M=1..9/1 N=260 range=3 tolerance=1e-6",
            "M=3 N=4..528/4 range=3 tolerance=1e-6",
        ]],
    },
    Row {
        // Rows that begin anywhere, of halves.
        name: "softmax-odd",
        path: "examples/softmax.tile",
        args: "sm_70 -D T=f16 -D BM=2 -D BN=64 -D ALIGN=1",
        runs: &[&[
            "M=7 N=199 seed=1 range=2 tolerance=2e-5 X_ld=211 Y_ld=213",
            "M=2 N=64 seed=2 range=2 tolerance=2e-5",
            "M=1..5/1 N=67 range=3 tolerance=1e-4",
            "M=3 N=1..133/1 range=3 tolerance=1e-3",
            "M=1 N=1..20/1 at=8 range=3 tolerance=1e-3",
        ]],
    },
    Row {
        name: "attention",
        path: "examples/flash_attention.tile",
        args: "sm_90a -D BQ=128 -D BKV=16 -D D=16 -D STAGES=2",
        runs: &[&[
            "Z=2 H=2 L=150 scale_log2=0.125 seed=3 range=3 tolerance=2e-3",
            "Z=1 H=1 L=128 scale_log2=0.125 seed=4 range=3 tolerance=2e-3",
            "Z=1 H=1 L=1..34/1 scale_log2=0.125 range=3 tolerance=2e-3",
            "Z=1 H=2 L=121..132/1 scale_log2=0.125 range=3 tolerance=2e-3",
        ]],
    },
    Row {
        name: "gemm-fused",
        path: "examples/gemm_fused.tile",
        args: "sm_80 -D BM=64 -D BN=32 -D BK=16 -D WM=32 -D WN=32 -D Out=f32",
        runs: &[&[
            "M=72 N=40 K=56 beta=0 seed=3 A_ld=80 B_ld=64 C_ld=88 D_ld=96",
            "M=136 N=72 K=8 beta=1 seed=4 A_ld=144 B_ld=88 C_ld=152 D_ld=160",
            "M=64 N=32 K=64 beta=2 seed=5",
            "M=8 N=392 K=24 beta=0 seed=6",
            "M=1..65/1 N=8 K=24 beta=2",
            "M=8 N=8..40/8 K=24 beta=2",
            "M=8 N=8 K=8..72/8 beta=0",
        ]],
    },
    Row {
        name: "gemm-pointers",
        path: "examples/gemm_pointers.tile",
        args: "sm_80 -D BM=64 -D BN=32 -D BK=16 -D WM=32 -D WN=32 -D STAGES=3 -D LB=col",
        runs: &[&[
            "Z=3 M=72 N=40 K=56 alpha=2 beta=1 seed=3 A_ld=64 B_ld=72 C_ld=48",
            "Z=2 M=72 N=72 K=8 beta=0 seed=4",
            "Z=1 M=8 N=392 K=24 beta=0 seed=6",
            "Z=2 M=8..72/8 N=8 K=24",
            "Z=1 M=1..33/1 N=8 K=24",
            "Z=2 M=8 N=8..40/8 K=24 beta=1",
            "Z=2 M=8 N=8 K=8..72/8 beta=0",
        ]],
    },
    Row {
        name: "gemm-pointers-90a",
        path: "examples/gemm_pointers.tile",
        args: "sm_90a -D BM=64 -D BN=24 -D BK=32 -D WM=64 -D WN=24 -D KW=1 -D STAGES=3 -D RASTER=2",
        runs: &[&[
            // Eight steps in three slots.
            "Z=3 M=72 N=40 K=232 alpha=2 beta=1 seed=3 A_ld=240 B_ld=72 C_ld=48",
            "Z=2 M=72 N=72 K=8 beta=0 seed=4",
            "Z=1 M=8 N=392 K=24 beta=0 seed=6",
            // Whole tiles, one row or one column of them.
            "Z=2 M=64 N=96 K=32 alpha=1 beta=2 seed=5",
            "Z=2 M=128 N=24 K=64 beta=0 seed=7",
            "Z=2 M=8..72/8 N=8 K=24",
            "Z=1 M=1..65/1 N=8 K=40",
            "Z=2 M=8 N=8..40/8 K=24 beta=1",
            "Z=2 M=8 N=8 K=8..232/8 beta=0",
            // More tiles than blocks.
            "Z=3 M=70 N=544 K=64..104/40 beta=0",
        ]],
    },
    Row {
        name: "gemm-explicit",
        path: "examples/gemm_explicit.tile",
        args: "sm_70",
        runs: &[&[
            "M=136 N=136 K=72 alpha=2 beta=0 seed=3 A_ld=80 B_ld=144 C_ld=152",
            "M=131 N=8 K=8 alpha=-1 beta=1 seed=4 A_ld=16 B_ld=24 C_ld=16",
            "M=128 N=128 K=32 beta=2 seed=5",
            "M=8 N=1048 K=8 beta=0 seed=6",
            "M=1..129/1 N=8 K=8 beta=2",
            "M=8..128/40 N=8 K=40 beta=2",
            "M=8 N=8..136/8 K=40 beta=2",
            "M=8 N=8 K=8..136/8 beta=0",
        ]],
    },
];
