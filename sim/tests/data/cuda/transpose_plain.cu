// Transpose of an n x n matrix, n a multiple of 32, through a tile whose columns lie in one bank each.
extern "C" __global__ void transpose_plain(const float *a, float *out, int n) {
    __shared__ float tile[32][32];
    int tx = threadIdx.x, ty = threadIdx.y, x = blockIdx.x * 32, y = blockIdx.y * 32;
    for (int j = ty; j < 32; j += 8) tile[j][tx] = a[(y + j) * n + x + tx];
    __syncthreads();
    for (int j = ty; j < 32; j += 8) out[(x + j) * n + y + tx] = tile[tx][j];
}
