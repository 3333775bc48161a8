//! What came with sm_90: clusters, bulk copies (TMA), asynchronous products (PTX 9.7.9.27, 9.7.13, 9.7.15).

use super::Row;
use crate::parse::sem;

/// The shapes of an asynchronous product of floats with this many columns of A.
macro_rules! floats {
    ($k:literal, $types:literal) => {
        concat!(
            "mma_async sync aligned ",
            "m64n8",
            $k,
            "|m64n16",
            $k,
            "|m64n24",
            $k,
            "|m64n32",
            $k,
            "|m64n40",
            $k,
            "|m64n48",
            $k,
            "|m64n56",
            $k,
            "|m64n64",
            $k,
            "|m64n72",
            $k,
            "|m64n80",
            $k,
            "|m64n88",
            $k,
            "|m64n96",
            $k,
            "|m64n104",
            $k,
            "|m64n112",
            $k,
            "|m64n120",
            $k,
            "|m64n128",
            $k,
            "|m64n136",
            $k,
            "|m64n144",
            $k,
            "|m64n152",
            $k,
            "|m64n160",
            $k,
            "|m64n168",
            $k,
            "|m64n176",
            $k,
            "|m64n184",
            $k,
            "|m64n192",
            $k,
            "|m64n200",
            $k,
            "|m64n208",
            $k,
            "|m64n216",
            $k,
            "|m64n224",
            $k,
            "|m64n232",
            $k,
            "|m64n240",
            $k,
            "|m64n248",
            $k,
            "|m64n256",
            $k,
            " ",
            $types
        )
    };
}

const INTEGERS: &str = "mma_async sync aligned m64n8k32|m64n16k32|m64n24k32|m64n32k32|m64n48k32|m64n64k32|m64n80k32|\
    m64n96k32|m64n112k32|m64n128k32|m64n144k32|m64n160k32|m64n176k32|m64n192k32|m64n208k32|m64n224k32|m64n240k32|\
    m64n256k32 satfinite? s32 s8|u8 s8|u8";

const fn product(mods: &'static str, args: &'static str) -> Row {
    Row { op: "wgmma", mods, args, sem: sem::wgmma }
}

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    // 9.7.15 asynchronous products: A in shared memory, A in registers.
    product(floats!("k16", "f32 f16 f16"), "wd s:b64 s:b64 q i i i i"),
    product(floats!("k16", "f32 f16 f16"), "wd s*4:f16x2 s:b64 q i i i"),
    product(floats!("k16", "f16 f16 f16"), "wd s:b64 s:b64 q i i i i"),
    product(floats!("k16", "f16 f16 f16"), "wd s*4:f16x2 s:b64 q i i i"),
    product(floats!("k16", "f32 bf16 bf16"), "wd s:b64 s:b64 q i i i i"),
    product(floats!("k16", "f32 bf16 bf16"), "wd s*4:bf16x2 s:b64 q i i i"),
    product(floats!("k8", "f32 tf32 tf32"), "wd s:b64 s:b64 q i i"),
    product(floats!("k8", "f32 tf32 tf32"), "wd s*4:tf32 s:b64 q i i"),
    product(floats!("k32", "f16|f32 e4m3|e5m2 e4m3|e5m2"), "wd s:b64 s:b64 q i i"),
    product(floats!("k32", "f16|f32 e4m3|e5m2 e4m3|e5m2"), "wd s*4:f16x2 s:b64 q i i"),
    product(INTEGERS, "wd s:b64 s:b64 q"),
    product(INTEGERS, "wd s*4:b32 s:b64 q"),
    Row { op: "wgmma", mods: "fence sync aligned", args: "", sem: sem::wgmma_fence },
    Row { op: "wgmma", mods: "commit_group sync aligned", args: "", sem: sem::wgmma_commit },
    Row { op: "wgmma", mods: "wait_group sync aligned", args: "i", sem: sem::wgmma_wait },
    Row { op: "setmaxnreg", mods: "inc|dec sync aligned u32", args: "i", sem: sem::max_registers },
    // 9.7.9.27 bulk copies: of tensors, of bytes.
    Row { op: "cp", mods: "async bulk tensor 1d|2d|3d|4d|5d shared::cluster|shared::cta global tile? mbarrier::complete_tx::bytes",
        args: "m:cluster mt m:shared", sem: sem::bulk_load },
    Row { op: "cp", mods: "async bulk tensor 1d|2d|3d|4d|5d shared::cluster|shared::cta global tile? mbarrier::complete_tx::bytes \
        L2::cache_hint", args: "m:cluster mt m:shared s:b64", sem: sem::bulk_load },
    Row { op: "cp", mods: "async bulk tensor 1d|2d|3d|4d|5d shared::cluster global tile? mbarrier::complete_tx::bytes \
        multicast::cluster", args: "m:cluster mt m:shared s:b16", sem: sem::bulk_load },
    Row { op: "cp", mods: "async bulk tensor 1d|2d|3d|4d|5d shared::cluster global tile? mbarrier::complete_tx::bytes \
        multicast::cluster L2::cache_hint", args: "m:cluster mt m:shared s:b16 s:b64", sem: sem::bulk_load },
    Row { op: "cp", mods: "async bulk tensor 1d|2d|3d|4d|5d global shared::cta tile? bulk_group", args: "mt m:shared",
        sem: sem::bulk_store },
    Row { op: "cp", mods: "async bulk tensor 1d|2d|3d|4d|5d global shared::cta tile? bulk_group L2::cache_hint",
        args: "mt m:shared s:b64", sem: sem::bulk_store },
    Row { op: "cp", mods: "reduce async bulk tensor 1d|2d|3d|4d|5d global shared::cta add|min|max|inc|dec|and|or|xor tile? \
        bulk_group", args: "mt m:shared", sem: sem::bulk_store },
    Row { op: "cp", mods: "reduce async bulk tensor 1d|2d|3d|4d|5d global shared::cta add|min|max|inc|dec|and|or|xor tile? \
        bulk_group L2::cache_hint", args: "mt m:shared s:b64", sem: sem::bulk_store },
    Row { op: "cp", mods: "async bulk prefetch tensor 1d|2d|3d|4d|5d L2 global tile?", args: "mt", sem: sem::bulk_prefetch },
    Row { op: "cp", mods: "async bulk prefetch tensor 1d|2d|3d|4d|5d L2 global tile? L2::cache_hint", args: "mt s:b64",
        sem: sem::bulk_prefetch },
    Row { op: "cp", mods: "async bulk shared::cluster|shared::cta global mbarrier::complete_tx::bytes",
        args: "m:cluster m:global s:b32 m:shared", sem: sem::bulk_load },
    Row { op: "cp", mods: "async bulk shared::cluster|shared::cta global mbarrier::complete_tx::bytes L2::cache_hint",
        args: "m:cluster m:global s:b32 m:shared s:b64", sem: sem::bulk_load },
    Row { op: "cp", mods: "async bulk shared::cluster global mbarrier::complete_tx::bytes multicast::cluster",
        args: "m:cluster m:global s:b32 m:shared s:b16", sem: sem::bulk_load },
    Row { op: "cp", mods: "async bulk shared::cluster global mbarrier::complete_tx::bytes multicast::cluster L2::cache_hint",
        args: "m:cluster m:global s:b32 m:shared s:b16 s:b64", sem: sem::bulk_load },
    Row { op: "cp", mods: "async bulk shared::cluster shared::cta mbarrier::complete_tx::bytes",
        args: "m:cluster m:shared s:b32 m:cluster", sem: sem::bulk_between },
    Row { op: "cp", mods: "async bulk global shared::cta bulk_group", args: "m:global m:shared s:b32", sem: sem::bulk_store },
    Row { op: "cp", mods: "async bulk global shared::cta bulk_group L2::cache_hint", args: "m:global m:shared s:b32 s:b64",
        sem: sem::bulk_store },
    Row { op: "cp", mods: "reduce async bulk global shared::cta bulk_group add u32|s32|u64|f32|f64", args: "m:global m:shared s:b32",
        sem: sem::bulk_store },
    Row { op: "cp", mods: "reduce async bulk global shared::cta bulk_group add noftz f16|bf16", args: "m:global m:shared s:b32",
        sem: sem::bulk_store },
    Row { op: "cp", mods: "reduce async bulk global shared::cta bulk_group min|max u32|s32|u64|s64|f16|bf16",
        args: "m:global m:shared s:b32", sem: sem::bulk_store },
    Row { op: "cp", mods: "reduce async bulk global shared::cta bulk_group inc|dec u32", args: "m:global m:shared s:b32",
        sem: sem::bulk_store },
    Row { op: "cp", mods: "reduce async bulk global shared::cta bulk_group and|or|xor b32|b64", args: "m:global m:shared s:b32",
        sem: sem::bulk_store },
    Row { op: "cp", mods: "async bulk prefetch L2 global", args: "m:global s:b32", sem: sem::bulk_prefetch },
    Row { op: "cp", mods: "async bulk prefetch L2 global L2::cache_hint", args: "m:global s:b32 s:b64", sem: sem::bulk_prefetch },
    Row { op: "cp", mods: "async bulk commit_group", args: "", sem: sem::bulk_commit },
    Row { op: "cp", mods: "async bulk wait_group read?", args: "i", sem: sem::bulk_wait },
    Row { op: "fence", mods: "proxy tensormap::generic release cta|cluster|gpu|sys", args: "", sem: sem::nop },
    Row { op: "fence", mods: "proxy tensormap::generic acquire cta|cluster|gpu|sys", args: "mg i", sem: sem::map_fence },
    // 9.7.13.4 the barrier of a cluster; 9.7.9.23 addresses in other blocks of it.
    Row { op: "barrier", mods: "cluster arrive release|relaxed? aligned?", args: "", sem: sem::cluster_arrive },
    Row { op: "barrier", mods: "cluster wait acquire? aligned?", args: "", sem: sem::cluster_wait },
    Row { op: "mapa", mods: "shared::cluster? u32", args: "d s s:b32", sem: sem::mapa },
    Row { op: "mapa", mods: "shared::cluster? u64", args: "d s s:b32", sem: sem::mapa },
    Row { op: "getctarank", mods: "shared::cluster? u32", args: "d:b32 s", sem: sem::ctarank },
    Row { op: "getctarank", mods: "shared::cluster? u64", args: "d:b32 s", sem: sem::ctarank },
];
