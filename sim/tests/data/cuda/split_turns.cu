// Sums of columns, whose rows are split among blocks: they add their parts to the result in turn, by a semaphore for each
// column of blocks, so that the order of the additions is always the same. Semaphores begin and end as zeros.
// target: sm_80
extern "C" __global__ void split_turns(const float *a, float *out, int *turns, int rows, int cols) {
    int col = blockIdx.x * blockDim.x + threadIdx.x, part = blockIdx.y, parts = gridDim.y;
    int *turn = turns + blockIdx.x;
    float sum = 0;
    for (int r = part; r < rows; r += parts)
        if (col < cols) sum += a[r * cols + col];
    int now = -1;
    do {
        if (threadIdx.x == 0) asm volatile("ld.global.acquire.gpu.b32 %0, [%1];" : "=r"(now) : "l"(turn) : "memory");
    } while (__syncthreads_and(threadIdx.x == 0 ? now != part : 1));
    if (col < cols) out[col] = part == 0 ? sum : out[col] + sum;
    __syncthreads();
    if (threadIdx.x == 0)
        asm volatile("st.global.release.gpu.b32 [%0], %1;" ::"l"(turn), "r"(part + 1 == parts ? 0 : part + 1) : "memory");
}
