// C = A B, f16 to f32, A row-major, B column-major, sizes that are multiples of 32, 32 and 16: a 16 x 16 tile each warp, operands
// through padded shared memory.
#include <mma.h>
using namespace nvcuda;

extern "C" __global__ void gemm_wmma(const half *a, const half *b, float *c, int n, int k) {
    __shared__ __align__(32) half ta[32][24], tb[32][24];
    int t = threadIdx.x, warp = t / 32, wy = warp / 2 * 16, wx = warp % 2 * 16;
    a += blockIdx.y * 32 * k;
    b += blockIdx.x * 32 * k;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int l = 0; l < k; l += 16) {
        // 128 threads move 2 x 32 rows of 16 values, 8 bytes each time.
        *(uint2 *)&ta[t / 4][t % 4 * 4] = *(const uint2 *)&a[t / 4 * k + l + t % 4 * 4];
        *(uint2 *)&tb[t / 4][t % 4 * 4] = *(const uint2 *)&b[t / 4 * k + l + t % 4 * 4];
        __syncthreads();
        wmma::load_matrix_sync(fa, &ta[wy][0], 24);
        wmma::load_matrix_sync(fb, &tb[wx][0], 24);
        wmma::mma_sync(sum, fa, fb, sum);
        __syncthreads();
    }
    wmma::store_matrix_sync(c + (blockIdx.y * 32 + wy) * n + blockIdx.x * 32 + wx, sum, n, wmma::mem_row_major);
}
