// Wrong: a neighbour's value comes back from global memory without a barrier.
extern "C" __global__ void global_race(const int *a, int *out, int n) {
    int t = threadIdx.x;
    out[t] = a[t];
    int v = ((volatile int *)out)[(t + 32) % n];
    out[t + n] = v;
}
