// Asynchronous copies of one warp between places that a table gives: byte offsets of source and destination for every lane, and
// the bytes it reads; a lane with a negative destination copies nothing. Then shared memory is stored.
// target: sm_80
struct Where {
    int from, to, bytes, unused;
};

#define COPIES(NAME, KIND, SIZE)                                                                                       \
    extern "C" __global__ void NAME(const char *a, const Where *table, unsigned *out, int words) {                     \
        extern __shared__ __align__(128) unsigned slots[];                                                             \
        int t = threadIdx.x;                                                                                           \
        for (int i = t; i < words; i += 32) slots[i] = 7;                                                              \
        __syncthreads();                                                                                               \
        Where w = table[t];                                                                                            \
        if (w.to >= 0)                                                                                                 \
            asm volatile("cp.async." KIND ".shared.global [%0], [%1], " SIZE ", %2;" ::"r"(                            \
                             (unsigned)__cvta_generic_to_shared(slots) + w.to),                                        \
                         "l"(a + w.from), "r"(w.bytes));                                                               \
        asm volatile("cp.async.commit_group;");                                                                        \
        asm volatile("cp.async.wait_group 0;" ::: "memory");                                                           \
        __syncthreads();                                                                                               \
        for (int i = t; i < words; i += 32) out[i] = slots[i];                                                         \
    }

COPIES(copy16, "cg", "16")
COPIES(copy16_ca, "ca", "16")
COPIES(copy8, "ca", "8")
COPIES(copy4, "ca", "4")

// Without the size of the source: what most code has.
extern "C" __global__ void copy16_whole(const char *a, const Where *table, unsigned *out, int words) {
    extern __shared__ __align__(128) unsigned slots[];
    int t = threadIdx.x;
    for (int i = t; i < words; i += 32) slots[i] = 7;
    __syncthreads();
    Where w = table[t];
    if (w.to >= 0)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                         (unsigned)__cvta_generic_to_shared(slots) + w.to), "l"(a + w.from));
    asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    for (int i = t; i < words; i += 32) out[i] = slots[i];
}
