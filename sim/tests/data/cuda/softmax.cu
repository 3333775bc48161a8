// Softmax of rows of n values.
extern "C" __global__ void softmax(const float *a, float *out, int n) {
    __shared__ float part[32];
    int t = threadIdx.x;
    const float *row = a + blockIdx.x * (long long)n;
    float m = -3e38f, s = 0;
    for (int i = t; i < n; i += blockDim.x) m = fmaxf(m, row[i]);
    for (int o = 16; o; o >>= 1) m = fmaxf(m, __shfl_xor_sync(~0u, m, o));
    if (!(t & 31)) part[t >> 5] = m;
    __syncthreads();
    m = part[0];
    for (int i = 1; i < blockDim.x / 32; i++) m = fmaxf(m, part[i]);
    __syncthreads();
    for (int i = t; i < n; i += blockDim.x) s += __expf(row[i] - m);
    for (int o = 16; o; o >>= 1) s += __shfl_xor_sync(~0u, s, o);
    if (!(t & 31)) part[t >> 5] = s;
    __syncthreads();
    s = 0;
    for (int i = 0; i < blockDim.x / 32; i++) s += part[i];
    for (int i = t; i < n; i += blockDim.x) out[blockIdx.x * (long long)n + i] = expf(row[i] - m) / s;
}
