// Every kind of atomic on few words: sums, extremes, bits, counters, exchange, and a maximum of floats by compare and swap.
extern "C" __global__ void atomics(const int *a, unsigned *out, float *sum, unsigned long long *wide, int n) {
    __shared__ unsigned high;
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0) high = 0;
    __syncthreads();
    if (t < n) {
        int v = a[t];
        atomicAdd(&sum[0], (float)v);
        float f = v * 0.5f, old = __uint_as_float(*(volatile unsigned *)&sum[1]);
        while (f > old) {
            unsigned seen = atomicCAS((unsigned *)&sum[1], __float_as_uint(old), __float_as_uint(f));
            if (seen == __float_as_uint(old)) break;
            old = __uint_as_float(seen);
        }
        atomicMax((int *)&out[0], v);
        atomicMin((int *)&out[1], v);
        atomicOr(&out[2], 1u << (v & 31));
        atomicAnd(&out[3], ~(1u << (v & 31)));
        atomicXor(&out[4], v);
        atomicInc(&out[5], 99);
        atomicDec(&out[6], 41);
        atomicSub(&out[7], v);
        atomicAdd(&wide[0], (unsigned long long)v * v);
        atomicMax(&wide[1], (unsigned long long)(unsigned)v << 20);
        atomicMax(&high, v & 0xffff);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicMax(&out[8], high);
        atomicExch(&out[9], 77u);
    }
}
