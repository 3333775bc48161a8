// C = A B, f16 to f32, A row-major, B column-major, multiples of 64, 64 and 32: cp.async in four stages, rows swizzled by xor,
// ldmatrix and m16n8k16; copies beyond the end of k read nothing and write zeros.
// target: sm_80
typedef unsigned u32;
const int STAGES = 4;

__device__ u32 shared_address(const void *p) { return (u32)__cvta_generic_to_shared(p); }

extern "C" __global__ void __launch_bounds__(128) gemm_pipeline(const uint4 *a, const uint4 *b, float *c, int n, int k) {
    extern __shared__ uint4 slots[];  // [STAGES][2][64 rows][4 vectors]
    int t = threadIdx.x, lane = t % 32, warp = t / 32, wy = warp / 2 * 32, wx = warp % 2 * 32;
    // Two rows of 64 bytes share a line of 128: rows 2 apart must differ in the slot.
    auto at = [&](int stage, int operand, int row, int v) {
        return &slots[((stage * 2 + operand) * 64 + row) * 4 + (v ^ (row >> 1 & 3))];
    };
    auto fetch = [&](int tile) {
        int inside = tile * 32 < k ? 16 : 0;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            int row = t / 4 + i * 32, v = t % 4, from = (tile * 32 < k ? tile * 32 : 0) / 8 + v;
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                             shared_address(at(tile % STAGES, 0, row, v))),
                         "l"(a + (blockIdx.y * 64 + row) * (k / 8) + from), "r"(inside));
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                             shared_address(at(tile % STAGES, 1, row, v))),
                         "l"(b + (blockIdx.x * 64 + row) * (k / 8) + from), "r"(inside));
        }
        asm volatile("cp.async.commit_group;");
    };
    float sum[2][4][4] = {};
    for (int i = 0; i < STAGES - 1; i++) fetch(i);
    for (int tile = 0; tile * 32 < k; tile++) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
        __syncthreads();
        fetch(tile + STAGES - 1);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            u32 fa[2][4], fb[2][4];
#pragma unroll
            for (int j = 0; j < 2; j++) {
                int row = wy + j * 16 + lane % 16, v = i * 2 + lane / 16;
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                             : "=r"(fa[j][0]), "=r"(fa[j][1]), "=r"(fa[j][2]), "=r"(fa[j][3])
                             : "r"(shared_address(at(tile % STAGES, 0, row, v))) : "memory");
                row = wx + j * 16 + lane % 8 + lane / 16 * 8, v = i * 2 + lane / 8 % 2;
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                             : "=r"(fb[j][0]), "=r"(fb[j][1]), "=r"(fb[j][2]), "=r"(fb[j][3])
                             : "r"(shared_address(at(tile % STAGES, 1, row, v))) : "memory");
            }
#pragma unroll
            for (int y = 0; y < 2; y++)
#pragma unroll
                for (int x = 0; x < 4; x++)
                    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
                                 "{%8, %9}, {%0, %1, %2, %3};"
                                 : "+f"(sum[y][x][0]), "+f"(sum[y][x][1]), "+f"(sum[y][x][2]), "+f"(sum[y][x][3])
                                 : "r"(fa[y][0]), "r"(fa[y][1]), "r"(fa[y][2]), "r"(fa[y][3]),
                                   "r"(fb[x / 2][x % 2 * 2]), "r"(fb[x / 2][x % 2 * 2 + 1]));
        }
    }
#pragma unroll
    for (int y = 0; y < 2; y++)
#pragma unroll
        for (int x = 0; x < 4; x++) {
            int row = blockIdx.y * 64 + wy + y * 16 + lane / 4, col = blockIdx.x * 64 + wx + x * 8 + lane % 4 * 2;
            *(float2 *)&c[row * n + col] = make_float2(sum[y][x][0], sum[y][x][1]);
            *(float2 *)&c[(row + 8) * n + col] = make_float2(sum[y][x][2], sum[y][x][3]);
        }
}
