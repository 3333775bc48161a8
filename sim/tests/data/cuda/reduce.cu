// Sum of n floats to out[0]: shuffles in the warp, shared memory between warps, one atomic for each block.
extern "C" __global__ void reduce(const float *a, float *out, int n) {
    extern __shared__ float partial[];
    int t = threadIdx.x;
    float s = 0;
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) s += a[i];
    for (int o = 16; o; o >>= 1) s += __shfl_down_sync(0xffffffff, s, o);
    if ((t & 31) == 0) partial[t >> 5] = s;
    __syncthreads();
    if (t < 32) {
        s = t < (blockDim.x >> 5) ? partial[t] : 0;
        for (int o = 16; o; o >>= 1) s += __shfl_xor_sync(0xffffffff, s, o);
        if (t == 0) atomicAdd(out, s);
    }
}
