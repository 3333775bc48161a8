// out = softmax(q k^T) v for one head of 32 columns, a query each warp, keys in blocks of 32, the maximum moving along.
extern "C" __global__ void online_softmax(const float *q, const float *k, const float *v, float *out, int keys) {
    __shared__ float tk[32][33], tv[32][33];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, query = blockIdx.x * (blockDim.x / 32) + warp;
    float mine = q[query * 32 + lane], m = -1e30f, sum = 0, acc = 0;
    for (int start = 0; start < keys; start += 32) {
        for (int i = warp; i < 32; i += blockDim.x / 32) {
            tk[i][lane] = start + i < keys ? k[(start + i) * 32 + lane] : 0;
            tv[i][lane] = start + i < keys ? v[(start + i) * 32 + lane] : 0;
        }
        __syncthreads();
        float s = 0;
        for (int i = 0; i < 32; i++) s = fmaf(__shfl_sync(~0u, mine, i), tk[lane][i], s);
        s = start + lane < keys ? s * 0.25f : -1e30f;
        float top = s;
        for (int o = 16; o; o >>= 1) top = fmaxf(top, __shfl_xor_sync(~0u, top, o));
        top = fmaxf(top, m);
        float p = exp2f((s - top) * 1.44269504f), fade = exp2f((m - top) * 1.44269504f), part = p;
        for (int o = 16; o; o >>= 1) part += __shfl_xor_sync(~0u, part, o);
        sum = sum * fade + part;
        acc *= fade;
        m = top;
        for (int i = 0; i < 32; i++) acc = fmaf(__shfl_sync(~0u, p, i), tv[i][lane], acc);
        __syncthreads();
    }
    out[query * 32 + lane] = acc / sum;
}
