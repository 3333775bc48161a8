// Wrong: a float2 at an odd multiple of four bytes.
extern "C" __global__ void misaligned(const float *a, float *out, int n) {
    int t = threadIdx.x;
    if (t * 2 + 2 < n) {
        float2 v = *(const float2 *)&a[t * 2 + 1];
        out[t] = v.x + v.y;
    }
}
