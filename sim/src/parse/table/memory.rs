//! Atomics (PTX 9.7.13.5, 9.7.13.6).

use super::row::{Row, table};
use crate::parse::sem;

pub(super) const ROWS: &[Row] = table! {
    "atom" "relaxed|acquire|release|acq_rel? cta|cluster|gpu|sys? global|shared|shared::cta|shared::cluster? add u32|s32|u64|f32|f64",
        "d_ m s" => sem::atom;
    "atom" "relaxed|acquire|release|acq_rel? cta|cluster|gpu|sys? global|shared|shared::cta|shared::cluster? add noftz f16|f16x2|bf16|bf16x2",
        "d_ m s" => sem::atom;
    "atom" "relaxed|acquire|release|acq_rel? cta|cluster|gpu|sys? global|shared|shared::cta|shared::cluster? min|max u32|s32|u64|s64",
        "d_ m s" => sem::atom;
    "atom" "relaxed|acquire|release|acq_rel? cta|cluster|gpu|sys? global|shared|shared::cta|shared::cluster? inc|dec u32",
        "d_ m s" => sem::atom;
    "atom" "relaxed|acquire|release|acq_rel? cta|cluster|gpu|sys? global|shared|shared::cta|shared::cluster? and|or|xor|exch b32|b64",
        "d_ m s" => sem::atom;
    "atom" "relaxed|acquire|release|acq_rel? cta|cluster|gpu|sys? global|shared|shared::cta|shared::cluster? cas b16|b32|b64",
        "d_ m s s" => sem::atom;
    "atom" "relaxed|acquire|release|acq_rel? cta|cluster|gpu|sys? global add L2::cache_hint u32|s32|u64|f32|f64",
        "d_ m s s:b64" => sem::atom;
    "atom" "relaxed|acquire|release|acq_rel? cta|cluster|gpu|sys? global add noftz L2::cache_hint f16|f16x2|bf16|bf16x2",
        "d_ m s s:b64" => sem::atom;
    "atom" "relaxed|acquire|release|acq_rel? cta|cluster|gpu|sys? global min|max L2::cache_hint u32|s32|u64|s64",
        "d_ m s s:b64" => sem::atom;
    "atom" "relaxed|acquire|release|acq_rel? cta|cluster|gpu|sys? global inc|dec L2::cache_hint u32",
        "d_ m s s:b64" => sem::atom;
    "atom" "relaxed|acquire|release|acq_rel? cta|cluster|gpu|sys? global and|or|xor|exch L2::cache_hint b32|b64",
        "d_ m s s:b64" => sem::atom;
    "atom" "relaxed|acquire|release|acq_rel? cta|cluster|gpu|sys? global? add v2 f32", "d*2 m s*2" => sem::atom;
    "atom" "relaxed|acquire|release|acq_rel? cta|cluster|gpu|sys? global? add v4 f32", "d*4 m s*4" => sem::atom;
    "atom" "relaxed|acquire|release|acq_rel? cta|cluster|gpu|sys? global? add|min|max noftz v2 f16|bf16|f16x2|bf16x2", "d*2 m s*2" => sem::atom;
    "atom" "relaxed|acquire|release|acq_rel? cta|cluster|gpu|sys? global? add|min|max noftz v4 f16|bf16|f16x2|bf16x2", "d*4 m s*4" => sem::atom;
    "atom" "relaxed|acquire|release|acq_rel? cta|cluster|gpu|sys? global? add|min|max noftz v8 f16|bf16", "d*8 m s*8" => sem::atom;
    "atom" "relaxed|acquire|release|acq_rel? cta|cluster|gpu|sys? global add L2::cache_hint v2 f32", "d*2 m s*2 s:b64" => sem::atom;
    "atom" "relaxed|acquire|release|acq_rel? cta|cluster|gpu|sys? global add L2::cache_hint v4 f32", "d*4 m s*4 s:b64" => sem::atom;
    "atom" "relaxed|acquire|release|acq_rel? cta|cluster|gpu|sys? global add|min|max noftz L2::cache_hint v2 f16|bf16|f16x2|bf16x2", "d*2 m s*2 s:b64" => sem::atom;
    "atom" "relaxed|acquire|release|acq_rel? cta|cluster|gpu|sys? global add|min|max noftz L2::cache_hint v4 f16|bf16|f16x2|bf16x2", "d*4 m s*4 s:b64" => sem::atom;
    "atom" "relaxed|acquire|release|acq_rel? cta|cluster|gpu|sys? global add|min|max noftz L2::cache_hint v8 f16|bf16", "d*8 m s*8 s:b64" => sem::atom;
    "red" "relaxed|release? cta|cluster|gpu|sys? global|shared|shared::cta|shared::cluster? add u32|s32|u64|f32|f64",
        "m s" => sem::red;
    "red" "relaxed|release? cta|cluster|gpu|sys? global|shared|shared::cta|shared::cluster? add noftz f16|f16x2|bf16|bf16x2",
        "m s" => sem::red;
    "red" "relaxed|release? cta|cluster|gpu|sys? global|shared|shared::cta|shared::cluster? min|max u32|s32|u64|s64",
        "m s" => sem::red;
    "red" "relaxed|release? cta|cluster|gpu|sys? global|shared|shared::cta|shared::cluster? inc|dec u32",
        "m s" => sem::red;
    "red" "relaxed|release? cta|cluster|gpu|sys? global|shared|shared::cta|shared::cluster? and|or|xor b32|b64",
        "m s" => sem::red;
    "red" "relaxed|release? cta|cluster|gpu|sys? global add L2::cache_hint u32|s32|u64|f32|f64",
        "m s s:b64" => sem::red;
    "red" "relaxed|release? cta|cluster|gpu|sys? global add noftz L2::cache_hint f16|f16x2|bf16|bf16x2",
        "m s s:b64" => sem::red;
    "red" "relaxed|release? cta|cluster|gpu|sys? global min|max L2::cache_hint u32|s32|u64|s64",
        "m s s:b64" => sem::red;
    "red" "relaxed|release? cta|cluster|gpu|sys? global inc|dec L2::cache_hint u32",
        "m s s:b64" => sem::red;
    "red" "relaxed|release? cta|cluster|gpu|sys? global and|or|xor L2::cache_hint b32|b64",
        "m s s:b64" => sem::red;
    "red" "relaxed|release? cta|cluster|gpu|sys? global? add v2 f32", "m s*2" => sem::red;
    "red" "relaxed|release? cta|cluster|gpu|sys? global? add v4 f32", "m s*4" => sem::red;
    "red" "relaxed|release? cta|cluster|gpu|sys? global? add|min|max noftz v2 f16|bf16|f16x2|bf16x2", "m s*2" => sem::red;
    "red" "relaxed|release? cta|cluster|gpu|sys? global? add|min|max noftz v4 f16|bf16|f16x2|bf16x2", "m s*4" => sem::red;
    "red" "relaxed|release? cta|cluster|gpu|sys? global? add|min|max noftz v8 f16|bf16", "m s*8" => sem::red;
    "red" "relaxed|release? cta|cluster|gpu|sys? global add L2::cache_hint v2 f32", "m s*2 s:b64" => sem::red;
    "red" "relaxed|release? cta|cluster|gpu|sys? global add L2::cache_hint v4 f32", "m s*4 s:b64" => sem::red;
    "red" "relaxed|release? cta|cluster|gpu|sys? global add|min|max noftz L2::cache_hint v2 f16|bf16|f16x2|bf16x2", "m s*2 s:b64" => sem::red;
    "red" "relaxed|release? cta|cluster|gpu|sys? global add|min|max noftz L2::cache_hint v4 f16|bf16|f16x2|bf16x2", "m s*4 s:b64" => sem::red;
    "red" "relaxed|release? cta|cluster|gpu|sys? global add|min|max noftz L2::cache_hint v8 f16|bf16", "m s*8 s:b64" => sem::red;
};
