//! Rows: loads, stores, atomics and asynchronous copies.
//!
//! A vector access must be aligned to its whole size (PTX ISA 6.4.1); [`crate::check`] checks what is constant.

macro_rules! memory_rows {
    ([$($done:tt)*] $next:ident $($rest:ident)*) => { $next! { [$($done)*

        "9.7.9.8" V6_0 Read [B32] [param(1)] "byte parameter, zero-extended" { LdParamU8 "ld.param.u8" }
        "9.7.9.8" V6_0 Read [B16] [param(2)] "16-bit parameter" { LdParamB16 "ld.param.b16" }
        "9.7.9.8" V6_0 Read [B32] [param(4)] "32-bit parameter" { LdParamB32 "ld.param.b32", LdParamU32 "ld.param.u32" }
        "9.7.9.8" V6_0 Read [B64] [param(8)] "64-bit parameter" { LdParamB64 "ld.param.b64", LdParamU64 "ld.param.u64" }
        "9.7.9.8" V6_0 Read [F32] [param(4)] "f32 parameter" { LdParamF32 "ld.param.f32" }
        "9.7.9.8" V6_0 Read [F64] [param(8)] "f64 parameter" { LdParamF64 "ld.param.f64" }

        "9.7.9.8-9" V6_0 Read [B32] [global(1)] "byte from global memory, extended" {
            LdGlobalU8 "ld.global.u8", LdGlobalNcU8 "ld.global.nc.u8",
            LdGlobalS8 "ld.global.s8", LdGlobalNcS8 "ld.global.nc.s8",
        }
        "9.7.9.8-9" V6_0 Read [B16] [global(2)] "load from global memory" {
            LdGlobalB16 "ld.global.b16", LdGlobalNcB16 "ld.global.nc.b16",
        }
        "9.7.9.8-9" V6_0 Read [B32] [global(4)] "load from global memory" {
            LdGlobalB32 "ld.global.b32", LdGlobalNcB32 "ld.global.nc.b32",
        }
        "9.7.9.8-9" V6_0 Read [B64] [global(8)] "load from global memory" {
            LdGlobalB64 "ld.global.b64", LdGlobalNcB64 "ld.global.nc.b64",
        }
        "9.7.9.8-9" V6_0 Read [F32] [global(4)] "load from global memory" {
            LdGlobalF32 "ld.global.f32", LdGlobalNcF32 "ld.global.nc.f32",
        }
        "9.7.9.8-9" V6_0 Read [F64] [global(8)] "load from global memory" {
            LdGlobalF64 "ld.global.f64", LdGlobalNcF64 "ld.global.nc.f64",
        }
        "9.7.9.8-9" V6_0 Read [vec(2, B16)] [global(4)] "load from global memory" {
            LdGlobalV2B16 "ld.global.v2.b16", LdGlobalNcV2B16 "ld.global.nc.v2.b16",
        }
        "9.7.9.8-9" V6_0 Read [vec(4, B16)] [global(8)] "load from global memory" {
            LdGlobalV4B16 "ld.global.v4.b16", LdGlobalNcV4B16 "ld.global.nc.v4.b16",
        }
        "9.7.9.8-9" V6_0 Read [vec(2, B32)] [global(8)] "load from global memory" {
            LdGlobalV2B32 "ld.global.v2.b32", LdGlobalNcV2B32 "ld.global.nc.v2.b32",
        }
        "9.7.9.8-9" V6_0 Read [vec(4, B32)] [global(16)] "load from global memory" {
            LdGlobalV4B32 "ld.global.v4.b32", LdGlobalNcV4B32 "ld.global.nc.v4.b32",
        }
        "9.7.9.8-9" V6_0 Read [vec(2, B64)] [global(16)] "load from global memory" {
            LdGlobalV2B64 "ld.global.v2.b64", LdGlobalNcV2B64 "ld.global.nc.v2.b64",
        }
        "9.7.9.8-9" V6_0 Read [vec(2, F32)] [global(8)] "load from global memory" {
            LdGlobalV2F32 "ld.global.v2.f32", LdGlobalNcV2F32 "ld.global.nc.v2.f32",
        }
        "9.7.9.8-9" V6_0 Read [vec(4, F32)] [global(16)] "load from global memory" {
            LdGlobalV4F32 "ld.global.v4.f32", LdGlobalNcV4F32 "ld.global.nc.v4.f32",
        }
        "9.7.9.8-9" V6_0 Read [vec(2, F64)] [global(16)] "load from global memory" {
            LdGlobalV2F64 "ld.global.v2.f64", LdGlobalNcV2F64 "ld.global.nc.v2.f64",
        }

        "9.7.9.8" V6_0 Read [B32] [shared(1)] "byte from shared memory, extended" {
            LdSharedU8 "ld.shared.u8", LdSharedS8 "ld.shared.s8",
        }
        "9.7.9.8" V6_0 Read [B16] [shared(2)] "load from shared memory" { LdSharedB16 "ld.shared.b16" }
        "9.7.9.8" V6_0 Read [B32] [shared(4)] "load from shared memory" { LdSharedB32 "ld.shared.b32" }
        "9.7.9.8" V6_0 Read [B64] [shared(8)] "load from shared memory" { LdSharedB64 "ld.shared.b64" }
        "9.7.9.8" V6_0 Read [F32] [shared(4)] "load from shared memory" { LdSharedF32 "ld.shared.f32" }
        "9.7.9.8" V6_0 Read [F64] [shared(8)] "load from shared memory" { LdSharedF64 "ld.shared.f64" }
        "9.7.9.8" V6_0 Read [vec(2, B16)] [shared(4)] "load from shared memory" { LdSharedV2B16 "ld.shared.v2.b16" }
        "9.7.9.8" V6_0 Read [vec(4, B16)] [shared(8)] "load from shared memory" { LdSharedV4B16 "ld.shared.v4.b16" }
        "9.7.9.8" V6_0 Read [vec(2, B32)] [shared(8)] "load from shared memory" { LdSharedV2B32 "ld.shared.v2.b32" }
        "9.7.9.8" V6_0 Read [vec(4, B32)] [shared(16)] "load from shared memory" { LdSharedV4B32 "ld.shared.v4.b32" }
        "9.7.9.8" V6_0 Read [vec(2, B64)] [shared(16)] "load from shared memory" { LdSharedV2B64 "ld.shared.v2.b64" }
        "9.7.9.8" V6_0 Read [vec(2, F32)] [shared(8)] "load from shared memory" { LdSharedV2F32 "ld.shared.v2.f32" }
        "9.7.9.8" V6_0 Read [vec(4, F32)] [shared(16)] "load from shared memory" { LdSharedV4F32 "ld.shared.v4.f32" }
        "9.7.9.8" V6_0 Read [vec(2, F64)] [shared(16)] "load from shared memory" { LdSharedV2F64 "ld.shared.v2.f64" }

        "9.7.9.8" V6_0 Read [B32] [constant(4)] "load from constant memory" { LdConstB32 "ld.const.b32" }
        "9.7.9.8" V6_0 Read [F32] [constant(4)] "load from constant memory" { LdConstF32 "ld.const.f32" }
        "9.7.9.8" V6_0 Read [F64] [constant(8)] "load from constant memory" { LdConstF64 "ld.const.f64" }
        "9.7.9.3" V6_0 Pure [B64] [CONST_SYM] "address of a table in constant memory" { MovConstU64 "mov.u64" }

        "9.7.9.11" V6_0 Write [] [global(1), B32] "low byte to global memory" { StGlobalU8 "st.global.u8" }
        "9.7.9.11" V6_0 Write [] [global(2), B16] "store to global memory" { StGlobalB16 "st.global.b16" }
        "9.7.9.11" V6_0 Write [] [global(4), B32] "store to global memory" { StGlobalB32 "st.global.b32" }
        "9.7.9.11" V6_0 Write [] [global(8), B64] "store to global memory" { StGlobalB64 "st.global.b64" }
        "9.7.9.11" V6_0 Write [] [global(4), F32] "store to global memory" { StGlobalF32 "st.global.f32" }
        "9.7.9.11" V6_0 Write [] [global(8), F64] "store to global memory" { StGlobalF64 "st.global.f64" }
        "9.7.9.11" V6_0 Write [] [global(4), vec(2, B16)] "store to global memory" { StGlobalV2B16 "st.global.v2.b16" }
        "9.7.9.11" V6_0 Write [] [global(8), vec(4, B16)] "store to global memory" { StGlobalV4B16 "st.global.v4.b16" }
        "9.7.9.11" V6_0 Write [] [global(8), vec(2, B32)] "store to global memory" { StGlobalV2B32 "st.global.v2.b32" }
        "9.7.9.11" V6_0 Write [] [global(16), vec(4, B32)] "store to global memory" { StGlobalV4B32 "st.global.v4.b32" }
        "9.7.9.11" V6_0 Write [] [global(16), vec(2, B64)] "store to global memory" { StGlobalV2B64 "st.global.v2.b64" }
        "9.7.9.11" V6_0 Write [] [global(8), vec(2, F32)] "store to global memory" { StGlobalV2F32 "st.global.v2.f32" }
        "9.7.9.11" V6_0 Write [] [global(16), vec(4, F32)] "store to global memory" { StGlobalV4F32 "st.global.v4.f32" }
        "9.7.9.11" V6_0 Write [] [global(16), vec(2, F64)] "store to global memory" { StGlobalV2F64 "st.global.v2.f64" }

        "9.7.9.11" V6_0 Write [] [shared(1), B32] "low byte to shared memory" { StSharedU8 "st.shared.u8" }
        "9.7.9.11" V6_0 Write [] [shared(2), B16] "store to shared memory" { StSharedB16 "st.shared.b16" }
        "9.7.9.11" V6_0 Write [] [shared(4), B32] "store to shared memory" { StSharedB32 "st.shared.b32" }
        "9.7.9.11" V6_0 Write [] [shared(8), B64] "store to shared memory" { StSharedB64 "st.shared.b64" }
        "9.7.9.11" V6_0 Write [] [shared(4), F32] "store to shared memory" { StSharedF32 "st.shared.f32" }
        "9.7.9.11" V6_0 Write [] [shared(8), F64] "store to shared memory" { StSharedF64 "st.shared.f64" }
        "9.7.9.11" V6_0 Write [] [shared(4), vec(2, B16)] "store to shared memory" { StSharedV2B16 "st.shared.v2.b16" }
        "9.7.9.11" V6_0 Write [] [shared(8), vec(4, B16)] "store to shared memory" { StSharedV4B16 "st.shared.v4.b16" }
        "9.7.9.11" V6_0 Write [] [shared(8), vec(2, B32)] "store to shared memory" { StSharedV2B32 "st.shared.v2.b32" }
        "9.7.9.11" V6_0 Write [] [shared(16), vec(4, B32)] "store to shared memory" { StSharedV4B32 "st.shared.v4.b32" }
        "9.7.9.11" V6_0 Write [] [shared(16), vec(2, B64)] "store to shared memory" { StSharedV2B64 "st.shared.v2.b64" }
        "9.7.9.11" V6_0 Write [] [shared(8), vec(2, F32)] "store to shared memory" { StSharedV2F32 "st.shared.v2.f32" }
        "9.7.9.11" V6_0 Write [] [shared(16), vec(4, F32)] "store to shared memory" { StSharedV4F32 "st.shared.v4.f32" }
        "9.7.9.11" V6_0 Write [] [shared(16), vec(2, F64)] "store to shared memory" { StSharedV2F64 "st.shared.v2.f64" }

        "9.7.9.11" V7_8_SM90 Write [] [shared(1), B32] "low byte to the shared memory of a block of the cluster" { StClusterU8 "st.shared::cluster.u8" }
        "9.7.9.11" V7_8_SM90 Write [] [shared(2), B16] "store to the shared memory of a block of the cluster" { StClusterB16 "st.shared::cluster.b16" }
        "9.7.9.11" V7_8_SM90 Write [] [shared(4), B32] "store to the shared memory of a block of the cluster" { StClusterB32 "st.shared::cluster.b32" }
        "9.7.9.11" V7_8_SM90 Write [] [shared(8), B64] "store to the shared memory of a block of the cluster" { StClusterB64 "st.shared::cluster.b64" }
        "9.7.9.11" V7_8_SM90 Write [] [shared(4), F32] "store to the shared memory of a block of the cluster" { StClusterF32 "st.shared::cluster.f32" }
        "9.7.9.11" V7_8_SM90 Write [] [shared(8), F64] "store to the shared memory of a block of the cluster" { StClusterF64 "st.shared::cluster.f64" }
        "9.7.9.11" V7_8_SM90 Write [] [shared(8), vec(2, B32)] "store to the shared memory of a block of the cluster" { StClusterV2B32 "st.shared::cluster.v2.b32" }
        "9.7.9.11" V7_8_SM90 Write [] [shared(16), vec(4, B32)] "store to the shared memory of a block of the cluster" { StClusterV4B32 "st.shared::cluster.v4.b32" }
        "9.7.9.11" V7_8_SM90 Write [] [shared(16), vec(2, B64)] "store to the shared memory of a block of the cluster" { StClusterV2B64 "st.shared::cluster.v2.b64" }
        "9.7.9.11" V7_8_SM90 Write [] [shared(8), vec(2, F32)] "store to the shared memory of a block of the cluster" { StClusterV2F32 "st.shared::cluster.v2.f32" }
        "9.7.9.11" V7_8_SM90 Write [] [shared(16), vec(4, F32)] "store to the shared memory of a block of the cluster" { StClusterV4F32 "st.shared::cluster.v4.f32" }
        "9.7.9.11" V7_8_SM90 Write [] [shared(16), vec(2, F64)] "store to the shared memory of a block of the cluster" { StClusterV2F64 "st.shared::cluster.v2.f64" }
        "9.7.9.12" V8_1_SM90 Sync [] [shared(4), B32, shared(8)] "store to the shared memory of a block of the cluster, counted by an mbarrier there" {
            StAsyncB32 "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32",
        }
        "9.7.9.12" V8_1_SM90 Sync [] [shared(8), vec(2, B32), shared(8)] "store to the shared memory of a block of the cluster, counted by an mbarrier there" {
            StAsyncV2B32 "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32",
        }
        "9.7.9.12" V8_1_SM90 Sync [] [shared(16), vec(4, B32), shared(8)] "store to the shared memory of a block of the cluster, counted by an mbarrier there" {
            StAsyncV4B32 "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32",
        }
        "9.7.9.12" V8_1_SM90 Sync [] [shared(4), F32, shared(8)] "store to the shared memory of a block of the cluster, counted by an mbarrier there" {
            StAsyncF32 "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.f32",
        }
        "9.7.9.12" V8_1_SM90 Sync [] [shared(8), vec(2, F32), shared(8)] "store to the shared memory of a block of the cluster, counted by an mbarrier there" {
            StAsyncV2F32 "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.f32",
        }
        "9.7.9.12" V8_1_SM90 Sync [] [shared(16), vec(4, F32), shared(8)] "store to the shared memory of a block of the cluster, counted by an mbarrier there" {
            StAsyncV4F32 "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32",
        }
        "9.7.9.12" V8_1_SM90 Sync [] [shared(8), B64, shared(8)] "store to the shared memory of a block of the cluster, counted by an mbarrier there" {
            StAsyncB64 "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b64",
        }
        "9.7.9.12" V8_1_SM90 Sync [] [shared(16), vec(2, B64), shared(8)] "store to the shared memory of a block of the cluster, counted by an mbarrier there" {
            StAsyncV2B64 "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b64",
        }
        "9.7.9.12" V8_1_SM90 Sync [] [shared(8), F64, shared(8)] "store to the shared memory of a block of the cluster, counted by an mbarrier there" {
            StAsyncF64 "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.f64",
        }
        "9.7.9.12" V8_1_SM90 Sync [] [shared(16), vec(2, F64), shared(8)] "store to the shared memory of a block of the cluster, counted by an mbarrier there" {
            StAsyncV2F64 "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.f64",
        }

        "9.7.9.8" V6_0 Sync [B32] [global(4)] "load that other blocks' stores order with" {
            LdAcquireGpuGlobalU32 "ld.acquire.gpu.global.u32", LdRelaxedGpuGlobalU32 "ld.relaxed.gpu.global.u32",
        }
        "9.7.9.11" V6_0 Sync [] [global(4), B32] "store that other blocks' loads order with" {
            StReleaseGpuGlobalU32 "st.release.gpu.global.u32", StRelaxedGpuGlobalU32 "st.relaxed.gpu.global.u32",
        }

        "9.7.13.5" V6_0 ReadWrite [B32] [global(4), B32I] "atomic update, old value returned" {
            AtomGlobalAddU32 "atom.global.add.u32", AtomGlobalMaxS32 "atom.global.max.s32",
            AtomGlobalMinS32 "atom.global.min.s32", AtomGlobalExchB32 "atom.global.exch.b32",
            AtomGlobalMaxU32 "atom.global.max.u32", AtomGlobalMinU32 "atom.global.min.u32",
            AtomGlobalIncU32 "atom.global.inc.u32",
        }
        "9.7.13.5" V6_0 ReadWrite [B64] [global(8), B64I] "atomic update, old value returned" {
            AtomGlobalAddU64 "atom.global.add.u64", AtomGlobalMinS64 "atom.global.min.s64", AtomGlobalMaxS64 "atom.global.max.s64",
            AtomGlobalMinU64 "atom.global.min.u64", AtomGlobalMaxU64 "atom.global.max.u64", AtomGlobalExchB64 "atom.global.exch.b64",
        }
        "9.7.13.5" V6_0 ReadWrite [B32] [global(4), B32I, B32I] "compare with `b`, if equal store `c`; old value returned" {
            AtomGlobalCasB32 "atom.global.cas.b32",
        }
        "9.7.13.5" V6_0 ReadWrite [F32] [global(4), F32] "atomic sum, old value returned" {
            AtomGlobalAddF32 "atom.global.add.f32",
        }
        "9.7.13.5" V6_0 ReadWrite [F64] [global(8), F64] "atomic sum, old value returned" {
            AtomGlobalAddF64 "atom.global.add.f64",
        }
        "9.7.13.5" V6_2 ReadWrite [B32] [global(4), B32] "atomic sums of two f16, old values returned" {
            AtomGlobalAddNoftzF16x2 "atom.global.add.noftz.f16x2",
        }
        "9.7.13.5" V6_3 ReadWrite [B16] [global(2), B16] "atomic sum of f16, old value returned" {
            AtomGlobalAddNoftzF16 "atom.global.add.noftz.f16",
        }
        "9.7.13.5" V7_8_SM90 ReadWrite [B16] [global(2), B16] "atomic sum of bf16, old value returned" {
            AtomGlobalAddNoftzBf16 "atom.global.add.noftz.bf16",
        }
        "9.7.13.5" V6_0 ReadWrite [B32] [shared(4), B32I] "atomic sum in shared memory, old value returned" {
            AtomSharedAddU32 "atom.shared.add.u32",
        }
        "9.7.13.5" V6_0 ReadWrite [B32] [shared(4), B32I] "atomic update in shared memory, old value returned" {
            AtomSharedMinS32 "atom.shared.min.s32", AtomSharedMaxS32 "atom.shared.max.s32", AtomSharedMinU32 "atom.shared.min.u32",
            AtomSharedMaxU32 "atom.shared.max.u32", AtomSharedExchB32 "atom.shared.exch.b32",
        }
        "9.7.13.5" V6_0 ReadWrite [B64] [shared(8), B64I] "atomic update in shared memory, old value returned" {
            AtomSharedAddU64 "atom.shared.add.u64", AtomSharedMinS64 "atom.shared.min.s64", AtomSharedMaxS64 "atom.shared.max.s64",
            AtomSharedMinU64 "atom.shared.min.u64", AtomSharedMaxU64 "atom.shared.max.u64", AtomSharedExchB64 "atom.shared.exch.b64",
        }
        "9.7.13.5" V6_0 ReadWrite [F32] [shared(4), F32] "atomic sum in shared memory, old value returned" {
            AtomSharedAddF32 "atom.shared.add.f32",
        }
        "9.7.13.5" V6_0 ReadWrite [F64] [shared(8), F64] "atomic sum in shared memory, old value returned" {
            AtomSharedAddF64 "atom.shared.add.f64",
        }
        "9.7.13.5" V6_3 ReadWrite [B16] [shared(2), B16] "atomic sum of f16 in shared memory, old value returned" {
            AtomSharedAddNoftzF16 "atom.shared.add.noftz.f16",
        }
        "9.7.13.5" V7_8_SM90 ReadWrite [B16] [shared(2), B16] "atomic sum of bf16 in shared memory, old value returned" {
            AtomSharedAddNoftzBf16 "atom.shared.add.noftz.bf16",
        }
        "9.7.13.6" V6_0 ReadWrite [] [global(4), B32I] "atomic update" {
            RedGlobalAddU32 "red.global.add.u32", RedGlobalMaxS32 "red.global.max.s32",
            RedGlobalMinS32 "red.global.min.s32", RedGlobalMaxU32 "red.global.max.u32",
            RedGlobalMinU32 "red.global.min.u32",
        }
        "9.7.13.6" V6_0 Sync [] [global(4), B32I] "atomic sum that publishes earlier stores" {
            RedReleaseGpuGlobalAddU32 "red.release.gpu.global.add.u32",
        }
        "9.7.13.6" V6_0 ReadWrite [] [global(8), B64I] "atomic update" {
            RedGlobalAddU64 "red.global.add.u64", RedGlobalMinS64 "red.global.min.s64", RedGlobalMaxS64 "red.global.max.s64",
            RedGlobalMinU64 "red.global.min.u64", RedGlobalMaxU64 "red.global.max.u64",
        }
        "9.7.13.6" V6_0 ReadWrite [] [global(4), F32] "atomic sum" { RedGlobalAddF32 "red.global.add.f32" }
        "9.7.13.6" V6_0 ReadWrite [] [global(8), F64] "atomic sum" { RedGlobalAddF64 "red.global.add.f64" }
        "9.7.13.6" V6_2 ReadWrite [] [global(4), B32] "atomic sums of two f16" {
            RedGlobalAddNoftzF16x2 "red.global.add.noftz.f16x2",
        }
        "9.7.13.6" V6_3 ReadWrite [] [global(2), B16] "atomic sum of f16" {
            RedGlobalAddNoftzF16 "red.global.add.noftz.f16",
        }
        "9.7.13.6" V7_8_SM90 ReadWrite [] [global(2), B16] "atomic sum of bf16" {
            RedGlobalAddNoftzBf16 "red.global.add.noftz.bf16",
        }
        "9.7.13.6" V7_8_SM90 ReadWrite [] [global(4), B32] "atomic sums of two bf16" {
            RedGlobalAddNoftzBf16x2 "red.global.add.noftz.bf16x2",
        }
        "9.7.13.6" V8_1_SM90 ReadWrite [] [global(16), vec(4, F32)] "atomic sums of four f32" {
            RedGlobalAddV4F32 "red.global.add.v4.f32",
        }
        "9.7.13.6" V8_1_SM90 ReadWrite [] [global(8), vec(2, F32)] "atomic sums of two f32" {
            RedGlobalAddV2F32 "red.global.add.v2.f32",
        }
        "9.7.13.6" V8_1_SM90 ReadWrite [] [global(8), vec(2, B32)] "atomic sums of two pairs of halves" {
            RedGlobalAddNoftzV2F16x2 "red.global.add.noftz.v2.f16x2", RedGlobalAddNoftzV2Bf16x2 "red.global.add.noftz.v2.bf16x2",
        }
        "9.7.13.6" V8_1_SM90 ReadWrite [] [global(16), vec(4, B32)] "atomic sums of four pairs of halves" {
            RedGlobalAddNoftzV4F16x2 "red.global.add.noftz.v4.f16x2", RedGlobalAddNoftzV4Bf16x2 "red.global.add.noftz.v4.bf16x2",
        }
        "9.7.13.6" V6_0 ReadWrite [] [shared(4), B32I] "atomic sum in shared memory" { RedSharedAddU32 "red.shared.add.u32" }
        "9.7.13.6" V6_0 ReadWrite [] [shared(4), F32] "atomic sum in shared memory" { RedSharedAddF32 "red.shared.add.f32" }
        "9.7.13.6" V6_0 ReadWrite [] [shared(8), F64] "atomic sum in shared memory" { RedSharedAddF64 "red.shared.add.f64" }
        "9.7.13.6" V6_0 ReadWrite [] [shared(4), B32I] "atomic update in shared memory" {
            RedSharedMinS32 "red.shared.min.s32", RedSharedMaxS32 "red.shared.max.s32", RedSharedMinU32 "red.shared.min.u32",
            RedSharedMaxU32 "red.shared.max.u32",
        }
        "9.7.13.6" V6_0 ReadWrite [] [shared(8), B64I] "atomic update in shared memory" {
            RedSharedAddU64 "red.shared.add.u64", RedSharedMinS64 "red.shared.min.s64", RedSharedMaxS64 "red.shared.max.s64",
            RedSharedMinU64 "red.shared.min.u64", RedSharedMaxU64 "red.shared.max.u64",
        }
        "9.7.13.6" V6_3 ReadWrite [] [shared(2), B16] "atomic sum of f16 in shared memory" {
            RedSharedAddNoftzF16 "red.shared.add.noftz.f16",
        }
        "9.7.13.6" V7_8_SM90 ReadWrite [] [shared(2), B16] "atomic sum of bf16 in shared memory" {
            RedSharedAddNoftzBf16 "red.shared.add.noftz.bf16",
        }

        "9.7.9.15" V6_0 Read [] [global(1)] "asks the second-level cache for a line" { PrefetchGlobalL2 "prefetch.global.L2" }
        "9.7.9.25" V7_0_SM80 Write [] [shared(4), global(4), one_of(&[4])] "asynchronous copy" { CpAsyncCa4 "cp.async.ca.shared.global" }
        "9.7.9.25" V7_0_SM80 Write [] [shared(8), global(8), one_of(&[8])] "asynchronous copy" { CpAsyncCa8 "cp.async.ca.shared.global" }
        "9.7.9.25" V7_0_SM80 Write [] [shared(16), global(16), one_of(&[16])] "asynchronous copy" {
            CpAsyncCa16 "cp.async.ca.shared.global", CpAsyncCg16 "cp.async.cg.shared.global",
        }
        "9.7.9.25" V7_0_SM80 Write [] [shared(4), global(4), one_of(&[4]), B32I] "asynchronous copy of the last operand's bytes, zeros after them" {
            CpAsyncCaZfill4 "cp.async.ca.shared.global",
        }
        "9.7.9.25" V7_0_SM80 Write [] [shared(8), global(8), one_of(&[8]), B32I] "asynchronous copy of the last operand's bytes, zeros after them" {
            CpAsyncCaZfill8 "cp.async.ca.shared.global",
        }
        "9.7.9.25" V7_0_SM80 Write [] [shared(16), global(16), one_of(&[16]), B32I] "asynchronous copy of the last operand's bytes, zeros after them" {
            CpAsyncCaZfill16 "cp.async.ca.shared.global", CpAsyncCgZfill16 "cp.async.cg.shared.global",
        }
        "9.7.9.25" V7_0_SM80 Sync [] [] "closes a group of the thread's copies, or waits for all of them" {
            CpAsyncCommitGroup "cp.async.commit_group", CpAsyncWaitAll "cp.async.wait_all",
        }
        "9.7.9.25" V7_0_SM80 Sync [] [range(0, 255)] "waits until at most this many of the thread's groups are pending" {
            CpAsyncWaitGroup "cp.async.wait_group",
        }
        "9.7.9.27" V8_0_SM90 Sync [] [shared(128), tensor(1), shared(8)] "asynchronous copy of a box of a tensor; its bytes count at an mbarrier" {
            CpAsyncBulkTensor1d "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes",
        }
        "9.7.9.27" V8_0_SM90 Sync [] [shared(128), tensor(2), shared(8)] "asynchronous copy of a box of a tensor; its bytes count at an mbarrier" {
            CpAsyncBulkTensor2d "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes",
        }
        "9.7.9.27" V8_0_SM90 Sync [] [shared(128), tensor(3), shared(8)] "asynchronous copy of a box of a tensor; its bytes count at an mbarrier" {
            CpAsyncBulkTensor3d "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes",
        }
        "9.7.9.27" V8_0_SM90 Sync [] [shared(128), tensor(4), shared(8)] "asynchronous copy of a box of a tensor; its bytes count at an mbarrier" {
            CpAsyncBulkTensor4d "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes",
        }
        "9.7.9.27" V8_0_SM90 Sync [] [shared(128), tensor(5), shared(8)] "asynchronous copy of a box of a tensor; its bytes count at an mbarrier" {
            CpAsyncBulkTensor5d "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes",
        }
        "9.7.9.27" V8_0_SM90 Sync [] [shared(128), tensor(1), shared(8), B16I] "the same, to the blocks of the cluster that the last operand's bits name" {
            CpAsyncBulkTensor1dMulticast "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster",
        }
        "9.7.9.27" V8_0_SM90 Sync [] [shared(128), tensor(2), shared(8), B16I] "the same, to the blocks of the cluster that the last operand's bits name" {
            CpAsyncBulkTensor2dMulticast "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster",
        }
        "9.7.9.27" V8_0_SM90 Sync [] [shared(128), tensor(3), shared(8), B16I] "the same, to the blocks of the cluster that the last operand's bits name" {
            CpAsyncBulkTensor3dMulticast "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster",
        }
        "9.7.9.27" V8_0_SM90 Sync [] [shared(128), tensor(4), shared(8), B16I] "the same, to the blocks of the cluster that the last operand's bits name" {
            CpAsyncBulkTensor4dMulticast "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster",
        }
        "9.7.9.27" V8_0_SM90 Sync [] [shared(128), tensor(5), shared(8), B16I] "the same, to the blocks of the cluster that the last operand's bits name" {
            CpAsyncBulkTensor5dMulticast "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster",
        }
        "9.7.9.27" V8_0_SM90 Sync [] [shared(128), tensor(3), shared(8), vec(1, B16)] "asynchronous copy of pixels of images, moved by the offsets in the last operand; their bytes count at an mbarrier" {
            CpAsyncBulkTensor3dIm2col "cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes",
        }
        "9.7.9.27" V8_0_SM90 Sync [] [shared(128), tensor(3), shared(8), vec(1, B16), B16I] "the same, to the blocks of the cluster that the last operand's bits name" {
            CpAsyncBulkTensor3dIm2colMulticast "cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes.multicast::cluster",
        }
        "9.7.9.27" V8_0_SM90 Sync [] [shared(128), tensor(4), shared(8), vec(2, B16)] "asynchronous copy of pixels of images, moved by the offsets in the last operand; their bytes count at an mbarrier" {
            CpAsyncBulkTensor4dIm2col "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes",
        }
        "9.7.9.27" V8_0_SM90 Sync [] [shared(128), tensor(4), shared(8), vec(2, B16), B16I] "the same, to the blocks of the cluster that the last operand's bits name" {
            CpAsyncBulkTensor4dIm2colMulticast "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes.multicast::cluster",
        }
        "9.7.9.27" V8_0_SM90 Sync [] [shared(128), tensor(5), shared(8), vec(3, B16)] "asynchronous copy of pixels of images, moved by the offsets in the last operand; their bytes count at an mbarrier" {
            CpAsyncBulkTensor5dIm2col "cp.async.bulk.tensor.5d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes",
        }
        "9.7.9.27" V8_0_SM90 Sync [] [shared(128), tensor(5), shared(8), vec(3, B16), B16I] "the same, to the blocks of the cluster that the last operand's bits name" {
            CpAsyncBulkTensor5dIm2colMulticast "cp.async.bulk.tensor.5d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes.multicast::cluster",
        }
        "9.7.9.27" V8_0_SM90 Read [] [tensor(1)] "asks the second-level cache for a box of a tensor" {
            CpAsyncBulkPrefetchTensor1d "cp.async.bulk.prefetch.tensor.1d.L2.global.tile",
        }
        "9.7.9.27" V8_0_SM90 Read [] [tensor(2)] "asks the second-level cache for a box of a tensor" {
            CpAsyncBulkPrefetchTensor2d "cp.async.bulk.prefetch.tensor.2d.L2.global.tile",
        }
        "9.7.9.27" V8_0_SM90 Read [] [tensor(3)] "asks the second-level cache for a box of a tensor" {
            CpAsyncBulkPrefetchTensor3d "cp.async.bulk.prefetch.tensor.3d.L2.global.tile",
        }
        "9.7.9.27" V8_0_SM90 Read [] [tensor(4)] "asks the second-level cache for a box of a tensor" {
            CpAsyncBulkPrefetchTensor4d "cp.async.bulk.prefetch.tensor.4d.L2.global.tile",
        }
        "9.7.9.27" V8_0_SM90 Read [] [tensor(5)] "asks the second-level cache for a box of a tensor" {
            CpAsyncBulkPrefetchTensor5d "cp.async.bulk.prefetch.tensor.5d.L2.global.tile",
        }
        "9.7.9.27" V8_0_SM90 Sync [] [tensor(1), shared(128)] "asynchronous copy to a box of a tensor, of a group of the thread" {
            CpAsyncBulkTensorStore1d "cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group",
        }
        "9.7.9.27" V8_0_SM90 Sync [] [tensor(2), shared(128)] "asynchronous copy to a box of a tensor, of a group of the thread" {
            CpAsyncBulkTensorStore2d "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group",
        }
        "9.7.9.27" V8_0_SM90 Sync [] [tensor(3), shared(128)] "asynchronous copy to a box of a tensor, of a group of the thread" {
            CpAsyncBulkTensorStore3d "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group",
        }
        "9.7.9.27" V8_0_SM90 Sync [] [tensor(4), shared(128)] "asynchronous copy to a box of a tensor, of a group of the thread" {
            CpAsyncBulkTensorStore4d "cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group",
        }
        "9.7.9.27" V8_0_SM90 Sync [] [tensor(5), shared(128)] "asynchronous copy to a box of a tensor, of a group of the thread" {
            CpAsyncBulkTensorStore5d "cp.async.bulk.tensor.5d.global.shared::cta.tile.bulk_group",
        }
        "9.7.9.27" V8_0_SM90 Sync [] [tensor(1), shared(128)] "combines a box of a tensor with shared memory, of a group of the thread" {
            CpReduceAsyncBulkTensorAdd1d "cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.tile.bulk_group",
            CpReduceAsyncBulkTensorMin1d "cp.reduce.async.bulk.tensor.1d.global.shared::cta.min.tile.bulk_group",
            CpReduceAsyncBulkTensorMax1d "cp.reduce.async.bulk.tensor.1d.global.shared::cta.max.tile.bulk_group",
        }
        "9.7.9.27" V8_0_SM90 Sync [] [tensor(2), shared(128)] "combines a box of a tensor with shared memory, of a group of the thread" {
            CpReduceAsyncBulkTensorAdd2d "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group",
            CpReduceAsyncBulkTensorMin2d "cp.reduce.async.bulk.tensor.2d.global.shared::cta.min.tile.bulk_group",
            CpReduceAsyncBulkTensorMax2d "cp.reduce.async.bulk.tensor.2d.global.shared::cta.max.tile.bulk_group",
        }
        "9.7.9.27" V8_0_SM90 Sync [] [tensor(3), shared(128)] "combines a box of a tensor with shared memory, of a group of the thread" {
            CpReduceAsyncBulkTensorAdd3d "cp.reduce.async.bulk.tensor.3d.global.shared::cta.add.tile.bulk_group",
            CpReduceAsyncBulkTensorMin3d "cp.reduce.async.bulk.tensor.3d.global.shared::cta.min.tile.bulk_group",
            CpReduceAsyncBulkTensorMax3d "cp.reduce.async.bulk.tensor.3d.global.shared::cta.max.tile.bulk_group",
        }
        "9.7.9.27" V8_0_SM90 Sync [] [tensor(4), shared(128)] "combines a box of a tensor with shared memory, of a group of the thread" {
            CpReduceAsyncBulkTensorAdd4d "cp.reduce.async.bulk.tensor.4d.global.shared::cta.add.tile.bulk_group",
            CpReduceAsyncBulkTensorMin4d "cp.reduce.async.bulk.tensor.4d.global.shared::cta.min.tile.bulk_group",
            CpReduceAsyncBulkTensorMax4d "cp.reduce.async.bulk.tensor.4d.global.shared::cta.max.tile.bulk_group",
        }
        "9.7.9.27" V8_0_SM90 Sync [] [tensor(5), shared(128)] "combines a box of a tensor with shared memory, of a group of the thread" {
            CpReduceAsyncBulkTensorAdd5d "cp.reduce.async.bulk.tensor.5d.global.shared::cta.add.tile.bulk_group",
            CpReduceAsyncBulkTensorMin5d "cp.reduce.async.bulk.tensor.5d.global.shared::cta.min.tile.bulk_group",
            CpReduceAsyncBulkTensorMax5d "cp.reduce.async.bulk.tensor.5d.global.shared::cta.max.tile.bulk_group",
        }
        "9.7.9.27" V8_0_SM90 Sync [] [] "closes a group of the thread's bulk copies" {
            CpAsyncBulkCommitGroup "cp.async.bulk.commit_group",
        }
        "9.7.9.27" V8_0_SM90 Sync [] [range(0, 255)] "waits until at most this many of the thread's bulk groups have not read their source" {
            CpAsyncBulkWaitGroupRead "cp.async.bulk.wait_group.read",
        }
        "9.7.9.27" V8_0_SM90 Read [] [TENSOR_MAP] "prefetches a tensor map" { PrefetchTensormap "prefetch.tensormap" }
        "9.7.9.7" V6_0 Pure [B64] [PARAM_SYM] "address of a parameter in its own space" { MovParamU64 "mov.b64" }
        "9.7.9.20" V7_7 Pure [B64] [B64] "generic address of a parameter" { CvtaParamU64 "cvta.param.u64" }
    ] $($rest)* } };
}
