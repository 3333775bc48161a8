// C = A B, f32, row-major, sizes that are multiples of 64, 64 and 8: each thread a block of 4 x 4 in registers, float4 moves.
extern "C" __global__ void __launch_bounds__(256) gemm_blocked(const float *a, const float *b, float *c, int n, int k) {
    __shared__ __align__(16) float ta[8][64], tb[8][64];
    int t = threadIdx.x, tx = t % 16, ty = t / 16;
    a += blockIdx.y * 64 * k;
    b += blockIdx.x * 64;
    float sum[4][4] = {};
    for (int l = 0; l < k; l += 8) {
        if (t < 128) {
            // A is stored transposed, so that a thread's four rows are one vector.
            float4 v = *(const float4 *)&a[t / 2 * k + l + t % 2 * 4];
            int i = t % 2 * 4;
            ta[i][t / 2] = v.x;
            ta[i + 1][t / 2] = v.y;
            ta[i + 2][t / 2] = v.z;
            ta[i + 3][t / 2] = v.w;
        } else {
            int u = t - 128;
            *(float4 *)&tb[u / 16][u % 16 * 4] = *(const float4 *)&b[(l + u / 16) * n + u % 16 * 4];
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 8; i++) {
            float4 va = *(const float4 *)&ta[i][ty * 4], vb = *(const float4 *)&tb[i][tx * 4];
            float ra[4] = {va.x, va.y, va.z, va.w}, rb[4] = {vb.x, vb.y, vb.z, vb.w};
#pragma unroll
            for (int y = 0; y < 4; y++)
#pragma unroll
                for (int x = 0; x < 4; x++) sum[y][x] = fmaf(ra[y], rb[x], sum[y][x]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int y = 0; y < 4; y++)
        *(float4 *)&c[(blockIdx.y * 64 + ty * 4 + y) * n + blockIdx.x * 64 + tx * 4] =
            make_float4(sum[y][0], sum[y][1], sum[y][2], sum[y][3]);
}
