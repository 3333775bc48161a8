// Inclusive prefix sums of up to 256 integers.
extern "C" __global__ void scan(const int *a, int *out, int n) {
    __shared__ int sums[32];
    int t = threadIdx.x, lane = t & 31;
    int v = t < n ? a[t] : 0;
    for (int o = 1; o < 32; o <<= 1) {
        int u = __shfl_up_sync(~0u, v, o);
        if (lane >= o) v += u;
    }
    if (lane == 31) sums[t >> 5] = v;
    __syncthreads();
    if (t < 32) {
        int x = t < (blockDim.x >> 5) ? sums[t] : 0;
        for (int o = 1; o < 32; o <<= 1) {
            int u = __shfl_up_sync(~0u, x, o);
            if (t >= o) x += u;
        }
        sums[t] = x;
    }
    __syncthreads();
    if (t >= 32) v += sums[(t >> 5) - 1];
    if (t < n) out[t] = v;
}
