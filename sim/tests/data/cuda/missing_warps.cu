// Wrong: a named barrier waits for more warps than come.
extern "C" __global__ void missing_warps(const int *a, int *out, int n) {
    int t = threadIdx.x;
    if (t < 96) asm volatile("bar.sync 1, 128;" ::: "memory");
    out[t] = a[t];
}
