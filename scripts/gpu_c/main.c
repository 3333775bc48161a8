/* Kernels from C on a GPU, through the headers that tilec makes and out of bundles: against sums on the host, over several sizes.
   Arguments: the bundles of gemm and gemm_splitk; `small`, for the simulator. */
#include "gemm.h"
#include "gemm_splitk.h"
#include "softmax.h"
#include "tilec_bundle.h"

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

/* The product, launched out of a bundle. */
static int bundled(const tilec_bundle *bundle, CUdeviceptr A, CUdeviceptr B, CUdeviceptr C, int M, int N, int K, int S, CUdeviceptr *W)
{
    const char *name = S == 0 ? "gemm" : "gemm_splitk";
    char said[4096] = "";
    const int64_t a[] = {M, K}, b[] = {K, N}, c[] = {M, N};
    const tilec_bundle_value parts = tilec_bundle_integer("S", S);
    tilec_bundle_tensor tensors[3];
    tilec_bundle_args args;
    int code;
    memset(&args, 0, sizeof args);
    tensors[0] = tilec_bundle_packed("A", "f16", A, 2, a);
    tensors[1] = tilec_bundle_packed("B", "f16", B, 2, b);
    tensors[2] = tilec_bundle_packed("C", "f32", C, 2, c);
    args.tensors = tensors;
    args.tensor_count = 3;
    args.values = &parts;
    args.value_count = S == 0 ? 0 : 1;
    code = tilec_bundle_scratch(bundle, name, &args, &args.workspace_bytes, &args.signals_bytes, said, sizeof said);
    if (code == 0)
        code = (int)cuMemAlloc(W, args.workspace_bytes + 1);
    args.workspace = *W;
    if (code == 0)
        code = tilec_bundle_launch(bundle, name, NULL, &args, said, sizeof said);
    if (code != 0)
        printf("%s (%d)\n", said, code);
    return code;
}

static int product(int M, int N, int K, int S, const gemm_kernels *k, const gemm_splitk_kernels *ks, const tilec_bundle *bundle)
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
    if (bundle != NULL) {
        code = bundled(bundle, A, B, C, M, N, K, S, &W);
    } else if (S == 0) {
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
    printf("%s%s M=%d N=%d K=%d: %lu of %lu elements differ\n", S == 0 ? "gemm" : "gemm_splitk", bundle != NULL ? " out of a bundle" : "", M, N, K, (unsigned long)wrong, (unsigned long)(m * n));
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

int main(int count, char **names)
{
    CUdevice device;
    CUcontext context;
    gemm_kernels k;
    gemm_splitk_kernels ks;
    softmax_kernels kr;
    gemm_args refused;
    tilec_bundle bundles[2];
    const tilec_bundle *none = NULL;
    int from;
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
    if (count < 3 || tilec_bundle_open(&bundles[0], names[1], log, sizeof log) != 0 || tilec_bundle_open(&bundles[1], names[2], log, sizeof log) != 0) {
        printf("bundles: %s\n", log);
        return 1;
    }
    for (from = 0; from < 2 && count == 4; from++) {
        failed |= product(136, 72, 136, 0, &k, &ks, from ? &bundles[0] : none);
        failed |= product(1, 8, 8, 0, &k, &ks, from ? &bundles[0] : none);
        failed |= product(72, 40, 136, 4, &k, &ks, from ? &bundles[1] : none);
    }
    for (from = 0; from < 2 && count == 3; from++) {
        failed |= product(512, 256, 128, 0, &k, &ks, from ? &bundles[0] : none);
        failed |= product(1000, 264, 520, 0, &k, &ks, from ? &bundles[0] : none);
        failed |= product(1, 8, 8, 0, &k, &ks, from ? &bundles[0] : none);
        failed |= product(72, 40, 520, 4, &k, &ks, from ? &bundles[1] : none);
        failed |= product(256, 128, 2048, 8, &k, &ks, from ? &bundles[1] : none);
    }
    if (count == 3)
        failed |= rows(17, 4096, &kr);
    failed |= rows(3, 128, &kr);
    refused = gemm_make(0x1000, 0x1000000, 0x2000000, 8, 7, 8);
    code = gemm_launch(&k, NULL, &refused);
    failed |= gemm_kernels_kind(code) != TILEC_REQUIRES;
    printf("K=7: %s\n", gemm_kernels_message(code));
    printf(failed ? "FAILED\n" : "all equal\n");
    return failed;
}
