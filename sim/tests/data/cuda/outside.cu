// Wrong: the last thread reads one element too many.
extern "C" __global__ void outside(const int *a, int *out, int n) {
    int t = threadIdx.x;
    if (t < n) out[t] = a[t + 1];
}
