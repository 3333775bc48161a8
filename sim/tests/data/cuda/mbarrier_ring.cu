// A ring of four slots between one producing warp and three consuming ones, n rows of 96 vectors, ordered by mbarriers alone:
// asynchronous copies arrive at `full`, consumers at `empty`. out[i][c] = a[i][95 - c].
// target: sm_80
typedef unsigned u32;
const int SLOTS = 4;

__device__ u32 shared_address(const void *p) { return (u32)__cvta_generic_to_shared(p); }

__device__ void wait(u32 barrier, u32 parity) {
    u32 done;
    do {
        asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
    } while (!done);
}

extern "C" __global__ void mbarrier_ring(const uint4 *a, uint4 *out, int n) {
    __shared__ __align__(16) uint4 slots[SLOTS][96];
    __shared__ __align__(8) unsigned long long full[SLOTS], empty[SLOTS];
    int t = threadIdx.x;
    if (t == 0)
        for (int i = 0; i < SLOTS; i++) {
            asm volatile("mbarrier.init.shared.b64 [%0], 32;" ::"r"(shared_address(&full[i])) : "memory");
            asm volatile("mbarrier.init.shared.b64 [%0], 96;" ::"r"(shared_address(&empty[i])) : "memory");
        }
    __syncthreads();
    if (t < 32) {
#pragma unroll 1
        for (int i = 0; i < n; i++) {
            int s = i % SLOTS;
            if (i >= SLOTS) wait(shared_address(&empty[s]), i / SLOTS - 1 & 1);
            for (int j = t; j < 96; j += 32)
                asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(&slots[s][j])),
                             "l"(a + i * 96 + j) : "memory");
            asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(shared_address(&full[s])) : "memory");
        }
        asm volatile("cp.async.wait_all;" ::: "memory");
    } else {
#pragma unroll 1
        for (int i = 0; i < n; i++) {
            int s = i % SLOTS, c = t - 32;
            wait(shared_address(&full[s]), i / SLOTS & 1);
            uint4 v = slots[s][95 - c];
            asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(shared_address(&empty[s]))
                         : "memory");
            out[i * 96 + c] = v;
        }
    }
}
