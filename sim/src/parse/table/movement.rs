//! Data movement (PTX 9.7.9).

use super::row::{Row, table};
use crate::parse::sem;

pub(super) const ROWS: &[Row] = table! {
    "mov" "b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64|pred", "xd x" => sem::mov;
    "mov" "v2 b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64", "d*2 s*2" => sem::mov_vector;
    "mov" "v4 b16|b32|u16|u32|s16|s32|f32", "d*4 s*4" => sem::mov_vector;
    "ld" "weak? global? ca|cg|cs|lu|cv L2::64B|L2::128B|L2::256B? v2|v4? b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64",
        "dv m" => sem::load;
    "ld" "weak? global? \
        L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate? \
        L2::64B|L2::128B|L2::256B? v2|v4? b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64", "dv m" => sem::load;
    "ld" "weak? const|local|param|param::entry|param::func|shared|shared::cta|shared::cluster ca|cg|cs|lu|cv? v2|v4? b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64",
        "dv m" => sem::load;
    "ld" "global ca|cg|cs nc L2::64B|L2::128B|L2::256B? v2|v4? b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64",
        "dv m" => sem::load;
    "ld" "global nc \
        L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate? \
        L2::64B|L2::128B|L2::256B? v2|v4? b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64", "dv m" => sem::load;
    "ld" "global nc? L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate? L2::cache_hint L2::64B|L2::128B|L2::256B? v2|v4? b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64",
        "dv m s:b64" => sem::load;
    "ld" "volatile global? L2::64B|L2::128B|L2::256B? v2|v4? b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64", "dv m" => sem::load;
    "ld" "volatile shared|shared::cta|shared::cluster v2|v4? b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64", "dv m" => sem::load;
    "ld" "relaxed|acquire cta|cluster|gpu|sys global? \
        L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate? \
        L2::64B|L2::128B|L2::256B? v2|v4? b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64", "dv m" => sem::load;
    "ld" "relaxed|acquire cta|cluster|gpu|sys shared|shared::cta|shared::cluster v2|v4? b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64",
        "dv m" => sem::load;
    "ld" "mmio relaxed sys global? b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64", "dv m" => sem::load;
    "ldu" "global? v2|v4? b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64", "dv m" => sem::load;
    "st" "weak? global? wb|cg|cs|wt v2|v4? b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64", "m sv" => sem::store;
    "st" "weak? global? \
        L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate? v2|v4? \
        b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64", "m sv" => sem::store;
    "st" "weak? local|shared|shared::cta|shared::cluster wb|cg|cs|wt? v2|v4? b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64", "m sv" => sem::store;
    "st" "global L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate? L2::cache_hint v2|v4? b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64",
        "m sv s:b64" => sem::store;
    "st" "volatile global|shared|shared::cta|shared::cluster? v2|v4? b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64", "m sv" => sem::store;
    "st" "param|param::func v2|v4? b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64", "m sv" => sem::store;
    "st" "relaxed|release cta|cluster|gpu|sys global? \
        L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate? v2|v4? \
        b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64", "m sv" => sem::store;
    "st" "relaxed|release cta|cluster|gpu|sys shared|shared::cta|shared::cluster v2|v4? b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64",
        "m sv" => sem::store;
    "st" "mmio relaxed sys global? b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64", "m sv" => sem::store;
    "prefetch" "global|local? L1|L2", "m" => sem::nop;
    "prefetch" "global L2::evict_last|L2::evict_normal", "m" => sem::nop;
    "prefetch" "param|const? tensormap", "mg" => sem::nop;
    "prefetchu" "L1", "m" => sem::nop;
    "discard" "global? L2", "m i" => sem::discard;
    "applypriority" "global? L2::evict_normal", "m i" => sem::priority;
    "createpolicy" "fractional L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged \
        L2::evict_first|L2::evict_unchanged? b64", "d s:f32?" => sem::policy;
    "createpolicy" "range global? L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged \
        L2::evict_first|L2::evict_unchanged? b64", "d m s:b32 s:b32" => sem::policy;
    "isspacep" "const|global|local|shared|shared::cta|shared::cluster|param|param::entry", "p s:b64" => sem::isspacep;
    "cvta" "to? const|global|local|shared|shared::cta|shared::cluster|param|param::entry u64", "d s" => sem::cvta;
    "cp" "async ca|cg shared|shared::cta global L2::64B|L2::128B|L2::256B?", "m:shared m:global i s:b32?" => sem::cp_async;
    "cp" "async ca|cg shared|shared::cta global L2::64B|L2::128B|L2::256B?", "m:shared m:global i q" => sem::cp_async_ignore;
    "cp" "async ca|cg shared|shared::cta global L2::cache_hint L2::64B|L2::128B|L2::256B?", "m:shared m:global i s:b64" => sem::cp_async_hint;
    "cp" "async ca|cg shared|shared::cta global L2::cache_hint L2::64B|L2::128B|L2::256B?",
        "m:shared m:global i s:b32 s:b64" => sem::cp_async;
    "cp" "async commit_group", "" => sem::cp_commit;
    "cp" "async wait_group", "i" => sem::cp_wait;
    "cp" "async wait_all", "" => sem::cp_wait;
};
