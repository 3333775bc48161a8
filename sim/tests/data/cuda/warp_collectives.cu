// Warp-wide integer reductions, votes and matches; results of thread t at out[t * 8].
// target: sm_80
extern "C" __global__ void warp_collectives(const unsigned *a, unsigned *out, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned all = __ballot_sync(~0u, t < n);
    if (t >= n) return;
    unsigned v = a[t], lane = threadIdx.x % 32;
    out[t * 8] = __reduce_add_sync(all, v);
    out[t * 8 + 1] = __reduce_min_sync(all, (int)v);
    out[t * 8 + 2] = __reduce_max_sync(all, v) ^ __reduce_xor_sync(all, v) & __reduce_or_sync(all, v);
    out[t * 8 + 3] = __match_any_sync(all, v % 5);
    int same;
    unsigned equal = __match_all_sync(all, v / 4096, &same);
    out[t * 8 + 4] = equal * 2 + same;
    out[t * 8 + 5] = __ballot_sync(all, v & 1) + (__all_sync(all, v < 4096) << 1) + __any_sync(all, v == 7);
    // Only some lanes take part; each side of the branch is a warp operation of its own.
    if (lane & 1) out[t * 8 + 6] = __shfl_xor_sync(all & 0xaaaaaaaa, v, 0);
    else out[t * 8 + 6] = __reduce_add_sync(all & 0x55555555, v);
    out[t * 8 + 7] = __popc(__match_any_sync(all, v & 1));
}
