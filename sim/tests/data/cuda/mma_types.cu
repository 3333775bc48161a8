// One warp, one product each of bf16, tf32, int8 and f64 operands: fragments as the manual lays them out, values from memory.
// target: sm_80
typedef unsigned u32;

extern "C" __global__ void mma_types(const u32 *a, const u32 *b, float *out, int *outi, const double *ad, const double *bd, double *outd) {
    int lane = threadIdx.x, g = lane / 4, q = lane % 4;
    u32 fa[4], fb[2];
    float c[4] = {1, 2, 3, 4};
    // bf16, A 16 x 16 and B 8 x 16: eight words a row.
    for (int i = 0; i < 4; i++) fa[i] = a[(g + i % 2 * 8) * 8 + q + i / 2 * 4];
    for (int i = 0; i < 2; i++) fb[i] = b[g * 8 + q + i * 4];
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));
    for (int i = 0; i < 4; i++) out[(g + i / 2 * 8) * 8 + q * 2 + i % 2] = c[i];
    // tf32, A 16 x 8 and B 8 x 8, the same words; the accumulators go on.
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));
    for (int i = 0; i < 4; i++) out[128 + (g + i / 2 * 8) * 8 + q * 2 + i % 2] = c[i];
    // int8, A 16 x 32 and B 8 x 32, the same words again.
    int s[4] = {-7, 5, 3, 0};
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+r"(s[0]), "+r"(s[1]), "+r"(s[2]), "+r"(s[3])
                 : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));
    for (int i = 0; i < 4; i++) outi[(g + i / 2 * 8) * 8 + q * 2 + i % 2] = s[i];
    // f64, 8 x 8 x 4.
    double d0 = 0.5, d1 = -0.25;
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                 : "+d"(d0), "+d"(d1) : "d"(ad[g * 4 + q]), "d"(bd[g * 4 + q]));
    outd[g * 8 + q * 2] = d0;
    outd[g * 8 + q * 2 + 1] = d1;
}
