// C = A B, f32, row-major, any sizes: 16 x 16 tiles in shared memory, zeros outside.
extern "C" __global__ void gemm_tiled(const float *a, const float *b, float *c, int m, int n, int k) {
    __shared__ float ta[16][16], tb[16][16];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
    float sum = 0;
    for (int l = 0; l < k; l += 16) {
        ta[y][x] = row < m && l + x < k ? a[row * k + l + x] : 0;
        tb[y][x] = col < n && l + y < k ? b[(l + y) * n + col] : 0;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 16; i++) sum = fmaf(ta[y][i], tb[i][x], sum);
        __syncthreads();
    }
    if (row < m && col < n) c[row * n + col] = sum;
}
