// Sorts 512 unsigned keys in each block, bitonic in shared memory.
extern "C" __global__ void bitonic(const unsigned *a, unsigned *out) {
    __shared__ unsigned s[512];
    int t = threadIdx.x;
    s[t] = a[blockIdx.x * 512 + t];
    s[t + 256] = a[blockIdx.x * 512 + t + 256];
    for (int size = 2; size <= 512; size <<= 1)
        for (int step = size / 2; step; step >>= 1) {
            __syncthreads();
            int i = t / step * step * 2 + t % step, j = i + step;
            unsigned x = s[i], y = s[j];
            if ((x > y) == !(i & size)) {
                s[i] = y;
                s[j] = x;
            }
        }
    __syncthreads();
    out[blockIdx.x * 512 + t] = s[t];
    out[blockIdx.x * 512 + t + 256] = s[t + 256];
}
