/* Kernels from C on a GPU, through the headers that tilec makes: against sums on the host, over several sizes. */
#include "gemm.h"
#include "gemm_splitk.h"
#include "softmax.h"

#include <math.h>
#include <stdio.h>

#define CHECK(call)                                                        \
    do {                                                                   \
        CUresult code_ = (call);                                           \
        if (code_ != CUDA_SUCCESS) {                                       \
            const char *text_ = "?";                                       \
            cuGetErrorString(code_, &text_);                               \
            printf("%s: %s\n", #call, text_);                              \
            return 1;                                                      \
        }                                                                  \
    } while (0)

/* Whole numbers from -4 to 4: every sum is exact. */
static int draw(unsigned int *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (int)((*state >> 16) % 9) - 4;
}

static uint16_t half_of(int x)
{
    static const uint16_t table[5] = {0x0000, 0x3c00, 0x4000, 0x4200, 0x4400};
    return (uint16_t)(x < 0 ? 0x8000 | table[-x] : table[x]);
}

static int product(int M, int N, int K, int S, const gemm_kernels *k, const gemm_splitk_kernels *ks)
{
    size_t m = (size_t)M, n = (size_t)N, kk = (size_t)K, i, j, l, wrong = 0, w = 0, s = 0;
    int *a = (int *)malloc(m * kk * sizeof(int)), *b = (int *)malloc(kk * n * sizeof(int));
    uint16_t *ah = (uint16_t *)malloc(m * kk * 2), *bh = (uint16_t *)malloc(kk * n * 2);
    float *c = (float *)malloc(m * n * 4);
    CUdeviceptr A, B, C, W = 0;
    unsigned int state = (unsigned int)(M * 31 + N * 7 + K);
    int code;
    for (i = 0; i < m * kk; i++)
        ah[i] = half_of(a[i] = draw(&state));
    for (i = 0; i < kk * n; i++)
        bh[i] = half_of(b[i] = draw(&state));
    CHECK(cuMemAlloc(&A, m * kk * 2));
    CHECK(cuMemAlloc(&B, kk * n * 2));
    CHECK(cuMemAlloc(&C, m * n * 4));
    CHECK(cuMemcpyHtoD(A, ah, m * kk * 2));
    CHECK(cuMemcpyHtoD(B, bh, kk * n * 2));
    CHECK(cuMemsetD8(C, 0xff, m * n * 4));
    if (S == 0) {
        gemm_args args = gemm_make(A, B, C, M, K, N);
        code = gemm_launch(k, NULL, &args);
        if (code != 0)
            printf("%s\n", gemm_kernels_message(code));
    } else {
        gemm_splitk_args args = gemm_splitk_make(A, B, M, K, N, S, C);
        code = gemm_splitk_scratch(ks, &args, &w, &s);
        if (code == 0) {
            CHECK(cuMemAlloc(&W, w + 1));
            args.workspace = W;
            args.workspace_bytes = w;
            code = gemm_splitk_launch(ks, NULL, &args);
        }
        if (code != 0)
            printf("%s\n", gemm_splitk_kernels_message(code));
    }
    if (code != 0)
        return 1;
    CHECK(cuCtxSynchronize());
    CHECK(cuMemcpyDtoH(c, C, m * n * 4));
    for (i = 0; i < m; i++)
        for (j = 0; j < n; j++) {
            long sum = 0;
            for (l = 0; l < kk; l++)
                sum += (long)a[i * kk + l] * b[l * n + j];
            wrong += c[i * n + j] != (float)sum;
        }
    printf("%s M=%d N=%d K=%d: %lu of %lu elements differ\n", S == 0 ? "gemm" : "gemm_splitk", M, N, K, (unsigned long)wrong, (unsigned long)(m * n));
    cuMemFree(A);
    cuMemFree(B);
    cuMemFree(C);
    if (W != 0)
        cuMemFree(W);
    free(a);
    free(b);
    free(ah);
    free(bh);
    free(c);
    return wrong != 0;
}

static int rows(int M, int N, const softmax_kernels *k)
{
    size_t m = (size_t)M, n = (size_t)N, i, j, wrong = 0;
    float *x = (float *)malloc(m * n * 4), *y = (float *)malloc(m * n * 4);
    CUdeviceptr X, Y;
    unsigned int state = 5;
    softmax_args args;
    int code;
    for (i = 0; i < m * n; i++)
        x[i] = (float)draw(&state) / 2;
    CHECK(cuMemAlloc(&X, m * n * 4));
    CHECK(cuMemAlloc(&Y, m * n * 4));
    CHECK(cuMemcpyHtoD(X, x, m * n * 4));
    CHECK(cuMemsetD8(Y, 0xff, m * n * 4));
    args = softmax_make(X, Y, M, N);
    code = softmax_launch(k, NULL, &args);
    if (code != 0) {
        printf("%s\n", softmax_kernels_message(code));
        return 1;
    }
    CHECK(cuCtxSynchronize());
    CHECK(cuMemcpyDtoH(y, Y, m * n * 4));
    for (i = 0; i < m; i++) {
        double sum = 0;
        for (j = 0; j < n; j++)
            sum += exp(x[i * n + j]);
        for (j = 0; j < n; j++)
            wrong += !(fabs(y[i * n + j] - exp(x[i * n + j]) / sum) <= 1e-6);
    }
    printf("softmax M=%d N=%d: %lu of %lu elements differ\n", M, N, (unsigned long)wrong, (unsigned long)(m * n));
    cuMemFree(X);
    cuMemFree(Y);
    free(x);
    free(y);
    return wrong != 0;
}

int main(void)
{
    CUdevice device;
    CUcontext context;
    gemm_kernels k;
    gemm_splitk_kernels ks;
    softmax_kernels kr;
    gemm_args refused;
    char log[4096];
    int code, failed = 0;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    if ((code = gemm_kernels_load(&k, log, sizeof log)) != 0 || (code = gemm_splitk_kernels_load(&ks, log, sizeof log)) != 0 || (code = softmax_kernels_load(&kr, log, sizeof log)) != 0) {
        printf("load: %s\n%s\n", gemm_kernels_message(code), log);
        return 1;
    }
    failed |= product(512, 256, 128, 0, &k, &ks);
    failed |= product(1000, 264, 520, 0, &k, &ks);
    failed |= product(1, 8, 8, 0, &k, &ks);
    failed |= product(72, 40, 520, 4, &k, &ks);
    failed |= product(256, 128, 2048, 8, &k, &ks);
    failed |= rows(17, 4096, &kr);
    failed |= rows(3, 128, &kr);
    refused = gemm_make(0x1000, 0x1000000, 0x2000000, 8, 7, 8);
    code = gemm_launch(&k, NULL, &refused);
    failed |= gemm_kernels_kind(code) != TILEC_REQUIRES;
    printf("K=7: %s\n", gemm_kernels_message(code));
    printf(failed ? "FAILED\n" : "all equal\n");
    return failed;
}
