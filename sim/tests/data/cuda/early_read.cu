// Wrong: an asynchronous copy is read behind a barrier but before the wait for it.
// target: sm_80
extern "C" __global__ void early_read(const int *a, int *out, int n) {
    __shared__ int s[256];
    int t = threadIdx.x;
    unsigned d = (unsigned)__cvta_generic_to_shared(&s[t]);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(d), "l"(a + t));
    asm volatile("cp.async.commit_group;");
    __syncthreads();
    out[t] = s[t];
    asm volatile("cp.async.wait_group 0;" ::: "memory");
}
