// A double-buffered copy: out[i][t] = a[i][t ^ 1] + 1 for n rows of 128 values of 16 bytes.
// target: sm_80
extern "C" __global__ void ring(const float4 *a, float4 *out, int n) {
    __shared__ __align__(16) float4 slots[2][128];
    int t = threadIdx.x;
    auto fetch = [&](int slot, int i) {
        unsigned d = (unsigned)__cvta_generic_to_shared(&slots[slot][t]);
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(d), "l"(a + i * 128 + t));
        asm volatile("cp.async.commit_group;");
    };
    fetch(0, 0);
    for (int i = 0; i < n; i++) {
        if (i + 1 < n) fetch((i + 1) & 1, i + 1);
        else asm volatile("cp.async.commit_group;");
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();
        float4 v = slots[i & 1][t ^ 1];
        v.x += 1;
        out[i * 128 + t] = v;
        __syncthreads();
    }
}
