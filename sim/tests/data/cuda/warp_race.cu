// Wrong: lanes of a warp exchange values through shared memory as if they ran in step.
extern "C" __global__ void warp_race(const int *a, int *out, int n) {
    __shared__ int s[256];
    int t = threadIdx.x;
    s[t] = a[t];
    out[t] = s[t ^ 1];
}
