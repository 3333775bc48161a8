//! Rows: warp exchange, synchronisation, control flow and matrix instructions.

macro_rules! warp_rows {
    ([$($done:tt)*] $next:ident $($rest:ident)*) => { $next! { [$($done)*

        "9.7.9.6" V6_0 Sync [B32] [B32, B32I, B32I, B32I] "value of another lane: source, lane operand, clamp and segment mask, member mask" {
            ShflSyncBflyB32 "shfl.sync.bfly.b32", ShflSyncIdxB32 "shfl.sync.idx.b32",
            ShflSyncUpB32 "shfl.sync.up.b32", ShflSyncDownB32 "shfl.sync.down.b32",
        }
        "9.7.13.9" V6_0 Sync [P] [PN, B32I] "vote of the lanes of a member mask" {
            VoteSyncAllPred "vote.sync.all.pred", VoteSyncAnyPred "vote.sync.any.pred",
            VoteSyncUniPred "vote.sync.uni.pred",
        }
        "9.7.13.9" V6_0 Sync [B32] [PN, B32I] "mask of the lanes whose predicate holds" {
            VoteSyncBallotB32 "vote.sync.ballot.b32",
        }
        "9.7.13.12" V7_0_SM80 Sync [B32] [B32, B32I] "reduction over the lanes of a member mask" {
            ReduxSyncAddS32 "redux.sync.add.s32", ReduxSyncMaxS32 "redux.sync.max.s32",
            ReduxSyncMinS32 "redux.sync.min.s32",
        }
        "9.7.13.11" V6_2 Sync [B32] [] "mask of the lanes that run together" { Activemask "activemask.b32" }

        "9.7.13.1" V6_0 Sync [] [range(0, 15)] "barrier of all threads of the block" { BarSync "bar.sync" }
        "9.7.13.1" V6_0 Sync [] [range(0, 15), range(32, 1024)] "barrier of this many threads of the block" {
            BarSyncCount "bar.sync", BarArriveCount "bar.arrive",
        }
        "9.7.13.2" V6_0 Sync [] [B32I] "barrier of the lanes of a member mask" { BarWarpSync "bar.warp.sync" }
        "9.7.13.4" V6_0 Sync [] [] "memory fence" {
            MembarCta "membar.cta", MembarGl "membar.gl",
            FenceAcqRelCta "fence.acq_rel.cta", FenceAcqRelGpu "fence.acq_rel.gpu", FenceScGpu "fence.sc.gpu",
        }
        "9.7.13.4" V8_0_SM90 Sync [] [] "orders generic accesses with those of the asynchronous proxy" {
            FenceProxyAsync "fence.proxy.async", FenceProxyAsyncSharedCta "fence.proxy.async.shared::cta",
        }
        "9.7.13.15" V7_0_SM80 Sync [] [shared(8), B32I] "readies an mbarrier for this many arrivals" {
            MbarrierInit "mbarrier.init.shared.b64",
        }
        "9.7.13.15" V7_0_SM80 Sync [] [shared(8)] "gives an mbarrier's memory back" {
            MbarrierInval "mbarrier.inval.shared.b64",
        }
        "9.7.13.15" V7_0_SM80 Sync [B64] [shared(8)] "arrives at an mbarrier" {
            MbarrierArrive "mbarrier.arrive.shared.b64",
        }
        "9.7.13.15" V7_0_SM80 Sync [] [shared(8)] "arrives at an mbarrier when the thread's asynchronous copies so far are there" {
            CpAsyncMbarrierArriveNoinc "cp.async.mbarrier.arrive.noinc.shared.b64",
        }
        "9.7.13.15" V8_0_SM90 Sync [B64] [shared(8), B32I] "arrives at an mbarrier and expects this many bytes" {
            MbarrierArriveExpectTx "mbarrier.arrive.expect_tx.shared.b64",
        }
        "9.7.13.15" V8_0_SM90 Sync [] [SINK, shared(8)] "arrives at an mbarrier of a block of the cluster" {
            MbarrierArriveCluster "mbarrier.arrive.shared::cluster.b64",
        }
        "9.7.13.15" V8_0_SM90 Sync [] [SINK, shared(8), B32I] "arrives at an mbarrier of a block of the cluster and expects this many bytes" {
            MbarrierArriveExpectTxCluster "mbarrier.arrive.expect_tx.shared::cluster.b64",
        }
        "9.7.9.23" V7_8_SM90 Pure [B32] [B32, B32I] "the shared address of the same place in another block of the cluster" {
            MapaSharedCluster "mapa.shared::cluster.u32",
        }
        "9.7.13.3" V8_0_SM90 Sync [] [] "barrier of the threads of a cluster, in two halves" {
            BarrierClusterArrive "barrier.cluster.arrive.release", BarrierClusterWait "barrier.cluster.wait.acquire",
            BarrierClusterArriveAligned "barrier.cluster.arrive.release.aligned",
            BarrierClusterArriveRelaxedAligned "barrier.cluster.arrive.relaxed.aligned", BarrierClusterWaitAligned "barrier.cluster.wait.acquire.aligned",
        }
        "9.7.13.13" V7_8_SM90 Sync [] [] "lets the grids that depend on this one begin; waits for those that this one depends on" {
            GriddepcontrolLaunchDependents "griddepcontrol.launch_dependents", GriddepcontrolWait "griddepcontrol.wait",
        }
        "9.7.13.15" V7_1_SM80 Sync [P] [shared(8), B32I] "whether the phase of this parity is complete" {
            MbarrierTestWaitParity "mbarrier.test_wait.parity.shared.b64",
        }
        "9.7.13.15" V7_8_SM90 Sync [P] [shared(8), B32I] "whether the phase of this parity is complete; may sleep" {
            MbarrierTryWaitParity "mbarrier.try_wait.parity.shared.b64",
        }
        "9.7.19.2" V6_2 Sync [] [B32I] "sleep of about this many nanoseconds" { NanosleepU32 "nanosleep.u32" }

        "9.7.12.3" V6_0 Control [] [LABEL] "branch; `.uni` promises that all lanes go the same way" {
            Bra "bra", BraUni "bra.uni",
        }
        "9.7.12.6-7" V6_0 Control [] [] "end of the thread" { Ret "ret", Exit "exit" }
        "9.7.19.4" V6_0 Control [] [] "abort of the kernel" { Trap "trap" }

        "9.7.14.5.1" V6_4 Pure [vec(4, B32)] [vec(2, B32), vec(2, B32), vec(4, B32)] "four 8x8x4 products, f16 in and out" {
            MmaM8n8k4RowRowF16 "mma.sync.aligned.m8n8k4.row.row.f16.f16.f16.f16",
            MmaM8n8k4RowColF16 "mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16",
            MmaM8n8k4ColRowF16 "mma.sync.aligned.m8n8k4.col.row.f16.f16.f16.f16",
            MmaM8n8k4ColColF16 "mma.sync.aligned.m8n8k4.col.col.f16.f16.f16.f16",
        }
        "9.7.14.5.1" V6_4 Pure [vec(8, F32)] [vec(2, B32), vec(2, B32), vec(8, F32)] "four 8x8x4 products, f16 in and f32 out" {
            MmaM8n8k4RowRowF32 "mma.sync.aligned.m8n8k4.row.row.f32.f16.f16.f32",
            MmaM8n8k4RowColF32 "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32",
            MmaM8n8k4ColRowF32 "mma.sync.aligned.m8n8k4.col.row.f32.f16.f16.f32",
            MmaM8n8k4ColColF32 "mma.sync.aligned.m8n8k4.col.col.f32.f16.f16.f32",
        }
        "9.7.14.5.1" V6_4 Pure [vec(8, F32)] [vec(2, B32), vec(2, B32), vec(4, B32)] "four 8x8x4 products, f16 in, f16 addend, f32 out" {
            MmaM8n8k4RowRowF32F16 "mma.sync.aligned.m8n8k4.row.row.f32.f16.f16.f16",
            MmaM8n8k4RowColF32F16 "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f16",
            MmaM8n8k4ColRowF32F16 "mma.sync.aligned.m8n8k4.col.row.f32.f16.f16.f16",
            MmaM8n8k4ColColF32F16 "mma.sync.aligned.m8n8k4.col.col.f32.f16.f16.f16",
        }
        "9.7.14.5" V6_5_SM75 Pure [vec(2, B32)] [vec(2, B32), vec(1, B32), vec(2, B32)] "16x8x8 product, f16 in and out" {
            MmaM16n8k8F16 "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16",
        }
        "9.7.14.5" V6_5_SM75 Pure [vec(4, F32)] [vec(2, B32), vec(1, B32), vec(4, F32)] "16x8x8 product, f16 in and f32 out" {
            MmaM16n8k8F32 "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32",
        }
        "9.7.14.5" V7_0_SM80 Pure [vec(2, B32)] [vec(4, B32), vec(2, B32), vec(2, B32)] "16x8x16 product, f16 in and out" {
            MmaM16n8k16F16 "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16",
        }
        "9.7.14.5" V7_0_SM80 Pure [vec(4, F32)] [vec(4, B32), vec(2, B32), vec(4, F32)] "16x8x16 product, 16-bit floats in and f32 out" {
            MmaM16n8k16F32 "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
            MmaM16n8k16Bf16F32 "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
        }
        "9.7.14.5" V7_0_SM80 Pure [vec(4, F32)] [vec(4, B32), vec(2, B32), vec(4, F32)] "16x8x8 product, tf32 in and f32 out" {
            MmaM16n8k8Tf32F32 "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
        }
        "9.7.14.5" V8_4_SM89 Pure [vec(4, F32)] [vec(4, B32), vec(2, B32), vec(4, F32)] "16x8x32 product, fp8 in and f32 out" {
            MmaM16n8k32E4m3F32 "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32",
            MmaM16n8k32E5m2F32 "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32",
            MmaM16n8k32E4m3E5m2F32 "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32",
            MmaM16n8k32E5m2E4m3F32 "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e4m3.f32",
        }
        "9.7.14.5" V8_7_SM89 Pure [vec(2, B32)] [vec(4, B32), vec(2, B32), vec(2, B32)] "16x8x32 product, fp8 in and f16 out" {
            MmaM16n8k32E4m3F16 "mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e4m3.f16",
            MmaM16n8k32E5m2F16 "mma.sync.aligned.m16n8k32.row.col.f16.e5m2.e5m2.f16",
            MmaM16n8k32E4m3E5m2F16 "mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e5m2.f16",
            MmaM16n8k32E5m2E4m3F16 "mma.sync.aligned.m16n8k32.row.col.f16.e5m2.e4m3.f16",
        }
        "9.7.14.5" V7_0_SM80 Pure [vec(2, F64)] [vec(1, F64), vec(1, F64), vec(2, F64)] "8x8x4 product, f64 in and out" {
            MmaM8n8k4F64 "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64",
        }
        "9.7.14.5" V7_8_SM90 Pure [vec(4, F64)] [vec(2, F64), vec(1, F64), vec(4, F64)] "16x8x4 product, f64 in and out" {
            MmaM16n8k4F64 "mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64",
        }
        "9.7.14.5" V7_8_SM90 Pure [vec(4, F64)] [vec(4, F64), vec(2, F64), vec(4, F64)] "16x8x8 product, f64 in and out" {
            MmaM16n8k8F64 "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64",
        }
        "9.7.14.5" V7_8_SM90 Pure [vec(4, F64)] [vec(8, F64), vec(4, F64), vec(4, F64)] "16x8x16 product, f64 in and out" {
            MmaM16n8k16F64 "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64",
        }
        "9.7.14.5" V7_0_SM80 Pure [vec(4, B32)] [vec(4, B32), vec(2, B32), vec(4, B32)] "16x8x32 product, bytes in and s32 out" {
            MmaM16n8k32S8S32 "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32",
            MmaM16n8k32U8S32 "mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32",
            MmaM16n8k32S8U8S32 "mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32",
            MmaM16n8k32U8S8S32 "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32",
        }
        "9.7.14.5" V6_5_SM75 Pure [vec(2, B32)] [vec(1, B32), vec(1, B32), vec(2, B32)] "8x8x16 product, bytes in and s32 out" {
            MmaM8n8k16S8S32 "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32",
            MmaM8n8k16U8S32 "mma.sync.aligned.m8n8k16.row.col.s32.u8.u8.s32",
            MmaM8n8k16S8U8S32 "mma.sync.aligned.m8n8k16.row.col.s32.s8.u8.s32",
            MmaM8n8k16U8S8S32 "mma.sync.aligned.m8n8k16.row.col.s32.u8.s8.s32",
        }
        "9.7.14.5.15" V6_5_SM75 Read [vec(1, B32)] [shared(16)] "one 8x8 matrix of 16-bit elements; each lane's address is a row" {
            LdmatrixX1 "ldmatrix.sync.aligned.m8n8.x1.shared.b16",
            LdmatrixX1Trans "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16",
        }
        "9.7.14.5.15" V6_5_SM75 Read [vec(2, B32)] [shared(16)] "two 8x8 matrices of 16-bit elements; each lane's address is a row" {
            LdmatrixX2 "ldmatrix.sync.aligned.m8n8.x2.shared.b16",
            LdmatrixX2Trans "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16",
        }
        "9.7.14.5.15" V6_5_SM75 Read [vec(4, B32)] [shared(16)] "four 8x8 matrices of 16-bit elements; each lane's address is a row" {
            LdmatrixX4 "ldmatrix.sync.aligned.m8n8.x4.shared.b16",
            LdmatrixX4Trans "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16",
        }
        "9.7.14.5.16" V7_8_SM90 Write [] [shared(16), vec(1, B32)] "one 8x8 matrix of 16-bit elements to shared memory; each lane's address is a row" {
            StmatrixX1 "stmatrix.sync.aligned.m8n8.x1.shared.b16",
            StmatrixX1Trans "stmatrix.sync.aligned.m8n8.x1.trans.shared.b16",
        }
        "9.7.14.5.16" V7_8_SM90 Write [] [shared(16), vec(2, B32)] "two 8x8 matrices of 16-bit elements to shared memory; each lane's address is a row" {
            StmatrixX2 "stmatrix.sync.aligned.m8n8.x2.shared.b16",
            StmatrixX2Trans "stmatrix.sync.aligned.m8n8.x2.trans.shared.b16",
        }
        "9.7.14.5.16" V7_8_SM90 Write [] [shared(16), vec(4, B32)] "four 8x8 matrices of 16-bit elements to shared memory; each lane's address is a row" {
            StmatrixX4 "stmatrix.sync.aligned.m8n8.x4.shared.b16",
            StmatrixX4Trans "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16",
        }
        "9.7.19.5" V8_0_SM90A Sync [] [one_of(&REGISTER_COUNTS)] "the warpgroup's registers, of each thread; waits until there are so many" {
            SetmaxnregInc "setmaxnreg.inc.sync.aligned.u32", SetmaxnregDec "setmaxnreg.dec.sync.aligned.u32",
        }
        "9.7.13.13" V8_0_SM90 Sync [ELECTED] [B32I] "elects one lane of a member mask" { ElectSync "elect.sync" }
        "9.7.13.15" V8_0_SM90 Sync [] [] "shows initialised mbarriers to the cluster and to the asynchronous proxy" {
            FenceMbarrierInit "fence.mbarrier_init.release.cluster",
        }
    ] $($rest)* } };
}
