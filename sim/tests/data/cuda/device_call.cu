// A device function that is not inlined, called in divergent code with a pointer to the caller's stack.
__device__ __noinline__ int collatz(int n, int *longest) {
    int steps = 0;
    while (n != 1) {
        n = n & 1 ? 3 * n + 1 : n / 2;
        steps++;
        if (n > *longest) *longest = n;
    }
    return steps;
}

extern "C" __global__ void device_call(const int *a, int *out, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    int top = 0, v = a[t];
    out[t * 2] = v & 1 ? collatz(v, &top) : -collatz(v + 1, &top);
    out[t * 2 + 1] = top;
}
