// Plain accesses whose counts are known: loads and stores of each width at a given stride, shared and global.
template <typename T> __device__ void shared(const T *a, T *out, int stride, int shift) {
    extern __shared__ unsigned char bytes[];
    T *s = (T *)bytes;
    int t = threadIdx.x;
    s[t * stride + shift] = a[t];
    __syncthreads();
    out[t] = s[(t ^ 1) * stride + shift];
}

extern "C" __global__ void shared_u8(const unsigned char *a, unsigned char *out, int stride, int shift) {
    shared(a, out, stride, shift);
}
extern "C" __global__ void shared_u16(const unsigned short *a, unsigned short *out, int stride, int shift) {
    shared(a, out, stride, shift);
}
extern "C" __global__ void shared_u32(const unsigned *a, unsigned *out, int stride, int shift) {
    shared(a, out, stride, shift);
}
extern "C" __global__ void shared_u64(const uint2 *a, uint2 *out, int stride, int shift) { shared(a, out, stride, shift); }
extern "C" __global__ void shared_u128(const uint4 *a, uint4 *out, int stride, int shift) {
    shared(a, out, stride, shift);
}

template <typename T> __device__ void global(const T *a, T *out, int stride, int shift) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    out[t] = a[t * stride + shift];
}

extern "C" __global__ void global_u8(const unsigned char *a, unsigned char *out, int stride, int shift) {
    global(a, out, stride, shift);
}
extern "C" __global__ void global_u32(const unsigned *a, unsigned *out, int stride, int shift) {
    global(a, out, stride, shift);
}
extern "C" __global__ void global_u128(const uint4 *a, uint4 *out, int stride, int shift) {
    global(a, out, stride, shift);
}
extern "C" __global__ void global_store(const unsigned *a, unsigned *out, int stride, int shift) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    out[t * stride + shift] = a[t];
}
