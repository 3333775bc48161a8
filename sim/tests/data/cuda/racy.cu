// Wrong: neighbours are read without a barrier.
extern "C" __global__ void racy(const int *a, int *out, int n) {
    __shared__ int s[256];
    int t = threadIdx.x;
    s[t] = t < n ? a[t] : 0;
    out[t] = s[(t + 32) % 256];
}
