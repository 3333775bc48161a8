// Rows of n values to mean 0 and variance 1, then scaled and shifted; a warp for each row.
extern "C" __global__ void layernorm(const float *a, const float *scale, const float *shift, float *out, int rows, int n) {
    int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    a += row * n;
    float s = 0, q = 0;
    for (int i = lane; i < n; i += 32) s += a[i];
    for (int o = 16; o; o >>= 1) s += __shfl_xor_sync(~0u, s, o);
    float mean = s / n;
    for (int i = lane; i < n; i += 32) q = fmaf(a[i] - mean, a[i] - mean, q);
    for (int o = 16; o; o >>= 1) q += __shfl_xor_sync(~0u, q, o);
    float r = 1 / sqrtf(q / n + 1e-5f);
    for (int i = lane; i < n; i += 32) out[row * n + i] = fmaf((a[i] - mean) * r, scale[i], shift[i]);
}
