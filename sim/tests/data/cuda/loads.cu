// Loads of 8 and 16 bytes of shared memory by one warp from places that a table gives, by index, some of them shared by lanes;
// a lane with a negative index loads nothing.
template <typename T> __device__ void loads(const T *a, const int *table, T *out, int n) {
    extern __shared__ __align__(128) unsigned char bytes[];
    T *slots = (T *)bytes;
    int t = threadIdx.x;
    for (int i = t; i < n; i += 32) slots[i] = a[i];
    __syncthreads();
    int at = table[t];
    if (at >= 0) out[t] = slots[at];
}

extern "C" __global__ void load8(const uint2 *a, const int *table, uint2 *out, int n) { loads(a, table, out, n); }
extern "C" __global__ void load16(const uint4 *a, const int *table, uint4 *out, int n) { loads(a, table, out, n); }
