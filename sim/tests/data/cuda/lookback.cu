// Inclusive scan in one launch: a block takes what the blocks before it have published, their sums or, where one has it already, the
// sum of everything up to there (decoupled look-back). `state` begins as zeros.
extern "C" __global__ void lookback(const int *in, int *out, volatile int *state, int *sums, int *totals, int n) {
    __shared__ int warps[4];
    __shared__ int before;
    int t = threadIdx.x, b = blockIdx.x, i = b * blockDim.x + t;
    int v = i < n ? in[i] : 0;
    for (int o = 1; o < 32; o *= 2) {
        int x = __shfl_up_sync(~0u, v, o);
        if (t % 32 >= o) v += x;
    }
    if (t % 32 == 31) warps[t / 32] = v;
    __syncthreads();
    for (int w = 0; w < t / 32; w++) v += warps[w];
    if (t == blockDim.x - 1) {
        int sum = 0;
        if (b > 0) {
            sums[b] = v;
            __threadfence();
            state[b] = 1;
            for (int p = b - 1;; p--) {
                int s;
                do s = state[p]; while (s == 0);
                __threadfence();
                if (s == 2) {
                    sum += totals[p];
                    break;
                }
                sum += sums[p];
            }
        }
        totals[b] = sum + v;
        __threadfence();
        state[b] = 2;
        before = sum;
    }
    __syncthreads();
    if (i < n) out[i] = v + before;
}
