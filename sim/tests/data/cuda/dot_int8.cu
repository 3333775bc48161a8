// Matrix times vector in signed bytes, four at a time, a row each warp; and unsigned in the second half of the output.
extern "C" __global__ void dot_int8(const int *a, const int *x, int *out, int rows, int words) {
    int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32, s = 0;
    unsigned u = 0;
    if (row >= rows) return;
    for (int i = lane; i < words; i += 32) {
        s = __dp4a(a[row * words + i], x[i], s);
        u = __dp4a((unsigned)a[row * words + i], (unsigned)x[i], u);
    }
    for (int o = 16; o; o >>= 1) {
        s += __shfl_xor_sync(~0u, s, o);
        u += __shfl_xor_sync(~0u, u, o);
    }
    if (!lane) {
        out[row] = s;
        out[rows + row] = (int)u;
    }
}
