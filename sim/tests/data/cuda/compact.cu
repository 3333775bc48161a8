// The non-negative values in their order: four a thread, positions from a scan of warps over a scan of threads.
extern "C" __global__ void compact(const int4 *a, int *out, int *count, int n) {
    __shared__ int sums[8];
    int t = threadIdx.x, lane = t % 32, warp = t / 32, base = 0;
    for (int start = 0; start < n; start += blockDim.x) {
        int4 v = start + t < n ? a[start + t] : make_int4(-1, -1, -1, -1);
        int mine = (v.x >= 0) + (v.y >= 0) + (v.z >= 0) + (v.w >= 0), to = mine;
        for (int o = 1; o < 32; o <<= 1) {
            int u = __shfl_up_sync(~0u, to, o);
            if (lane >= o) to += u;
        }
        if (lane == 31) sums[warp] = to;
        __syncthreads();
        if (t < 8) {
            int s = t < blockDim.x / 32 ? sums[t] : 0;
            for (int o = 1; o < 8; o <<= 1) {
                int u = __shfl_up_sync(0xff, s, o);
                if (t >= o) s += u;
            }
            sums[t] = s;
        }
        __syncthreads();
        to += base - mine + (warp ? sums[warp - 1] : 0);
        base += sums[7];
        if (v.x >= 0) out[to++] = v.x;
        if (v.y >= 0) out[to++] = v.y;
        if (v.z >= 0) out[to++] = v.z;
        if (v.w >= 0) out[to++] = v.w;
        __syncthreads();
    }
    if (!t) *count = base;
}
