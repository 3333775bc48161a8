// Wrong: the last warp's part of the array is read and was never written.
extern "C" __global__ void unwritten(const int *a, int *out, int n) {
    __shared__ int s[256];
    int t = threadIdx.x;
    if (t < 224) s[t] = a[t];
    __syncthreads();
    out[t] = s[255 - t];
}
