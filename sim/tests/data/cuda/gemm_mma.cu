// C = A B, f16 to f32, both row-major, multiples of 32, 32 and 32: ldmatrix (B transposed) and m16n8k16, unpadded rows of
// 64 bytes in shared memory, so with bank conflicts.
// target: sm_80
typedef unsigned u32;

extern "C" __global__ void gemm_mma(const uint4 *a, const uint4 *b, float *c, int n, int k) {
    __shared__ __align__(16) uint4 ta[32][4], tb[32][4];
    int t = threadIdx.x, lane = t % 32, warp = t / 32, wy = warp / 2 * 16, wx = warp % 2 * 16;
    float sum[2][4] = {};
    for (int l = 0; l < k; l += 32) {
        ta[t / 4][t % 4] = a[((blockIdx.y * 32 + t / 4) * k + l) / 8 + t % 4];
        tb[t / 4][t % 4] = b[((l + t / 4) * n + blockIdx.x * 32) / 8 + t % 4];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 2; i++) {
            u32 fa[4], fb[4];
            u32 pa = (u32)__cvta_generic_to_shared(&ta[wy + lane % 16][i * 2 + lane / 16]);
            u32 pb = (u32)__cvta_generic_to_shared(&tb[i * 16 + lane % 16][wx / 8 + lane / 16]);
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                         : "=r"(fa[0]), "=r"(fa[1]), "=r"(fa[2]), "=r"(fa[3]) : "r"(pa) : "memory");
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                         : "=r"(fb[0]), "=r"(fb[1]), "=r"(fb[2]), "=r"(fb[3]) : "r"(pb) : "memory");
#pragma unroll
            for (int j = 0; j < 2; j++)
                asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
                             "{%8, %9}, {%0, %1, %2, %3};"
                             : "+f"(sum[j][0]), "+f"(sum[j][1]), "+f"(sum[j][2]), "+f"(sum[j][3])
                             : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[2 * j]), "r"(fb[2 * j + 1]));
        }
        __syncthreads();
    }
    int row = blockIdx.y * 32 + wy + lane / 4, col = blockIdx.x * 32 + wx + lane % 4 * 2;
#pragma unroll
    for (int j = 0; j < 2; j++) {
        *(float2 *)&c[row * n + col + j * 8] = make_float2(sum[j][0], sum[j][1]);
        *(float2 *)&c[(row + 8) * n + col + j * 8] = make_float2(sum[j][2], sum[j][3]);
    }
}
