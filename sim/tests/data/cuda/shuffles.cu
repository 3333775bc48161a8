// Reductions by shuffle: butterfly of f32, downward of f64 (two words), segments of 8 lanes, rotation, broadcast.
extern "C" __global__ void shuffles(const float *a, float *out, double *wide) {
    int t = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    float v = a[t], s = v, m = v;
    double d = v;
    for (int o = 16; o; o >>= 1) {
        s += __shfl_xor_sync(~0u, s, o);
        d += __shfl_down_sync(~0u, d, o);
    }
    for (int o = 4; o; o >>= 1) m = fmaxf(m, __shfl_down_sync(~0u, m, o, 8));
    float turned = __shfl_sync(~0u, v, lane + 1), first = __shfl_sync(~0u, v, 3, 16), before = __shfl_up_sync(~0u, v, 5);
    out[t * 4] = s;
    out[t * 4 + 1] = m;
    out[t * 4 + 2] = turned - first;
    out[t * 4 + 3] = before;
    if (!lane) wide[t / 32] = d;
}
