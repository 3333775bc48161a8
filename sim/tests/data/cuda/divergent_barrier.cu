// Wrong: some threads of a warp wait at the first barrier while the others wait at the second.
extern "C" __global__ void divergent_barrier(const int *a, int *out, int n) {
    int t = threadIdx.x;
    if (a[t] >= t) {
        __syncthreads();
        out[t] = a[t];
    }
    __syncthreads();
    out[t ^ 1] += 1;
}
