/* The gradients of a root mean square norm: as many clusters share the rows as run at one time. Prints that number, and how far the
   gradient of W is from that of one cluster. */
#include "rms_norm_backward.h"
#include "tilec_bundle.h"
#include <math.h>
#include <stdio.h>

#define ROWS 9
#define COLUMNS 52

static float X[ROWS * COLUMNS], Y[ROWS * COLUMNS], W[COLUMNS], alone[COLUMNS], shared[COLUMNS];

static void driver(CUresult code)
{
    if (code == CUDA_SUCCESS)
        return;
    fprintf(stderr, "driver: %d\n", (int)code);
    exit(1);
}

static CUdeviceptr memory(const void *from, size_t bytes)
{
    CUdeviceptr to;
    driver(cuMemAlloc(&to, bytes));
    driver(cuMemcpyHtoD(to, from, bytes));
    return to;
}

/* The gradient of W with so many clusters. */
static void gradient(const rms_norm_backward_kernels *k, rms_norm_backward_args args, int clusters, float *to)
{
    size_t workspace, signals;
    int code;
    char text[400];
    args.S = clusters;
    code = rms_norm_backward_scratch(k, &args, &workspace, &signals);
    if (code == 0) {
        driver(cuMemAlloc(&args.workspace, workspace));
        args.workspace_bytes = workspace;
        code = rms_norm_backward_launch(k, NULL, &args);
    }
    if (code != 0) {
        puts(rms_norm_backward_explain(code, &args, text, sizeof text));
        exit(1);
    }
    driver(cuMemcpyDtoH(to, args.dW, sizeof W));
}

/* The same number by the bundle; `size` is S, and -1 where it is not given. */
static int by_bundle(const char *path, const rms_norm_backward_args *args, int size)
{
    tilec_bundle b;
    char message[400] = "";
    const int64_t matrix[] = {ROWS, COLUMNS}, row[] = {COLUMNS};
    const tilec_bundle_tensor tensors[] = {
        tilec_bundle_packed("X", "f32", args->X, 2, matrix),
        tilec_bundle_packed("dY", "f32", args->dY, 2, matrix),
        tilec_bundle_packed("W", "f32", args->W, 1, row),
        tilec_bundle_packed("dX", "f32", args->dX, 2, matrix),
        tilec_bundle_packed("dW", "f32", args->dW, 1, row),
    };
    const tilec_bundle_value values[] = {tilec_bundle_integer("S", size)};
    const tilec_bundle_args all = {tensors, 5, values, size >= 0, 0, 0, 0, 0};
    int clusters = -1, code = tilec_bundle_open(&b, path, message, sizeof message);
    if (code == 0)
        code = tilec_bundle_max_active_clusters(&b, "rms_norm_backward", &all, &clusters, message, sizeof message);
    if (code != 0)
        printf("bundle: %s (%d)\n", message, code);
    tilec_bundle_close(&b);
    return clusters;
}

int main(int count, char **arguments)
{
    rms_norm_backward_kernels k;
    rms_norm_backward_args args;
    CUdevice device;
    CUcontext context;
    int i, clusters, again;
    double off = 0.0;
    for (i = 0; i < ROWS * COLUMNS; i++) {
        X[i] = (float)(i * 7 % 5) - 2.0f;
        Y[i] = (float)(i % 3) - 1.0f;
    }
    for (i = 0; i < COLUMNS; i++)
        W[i] = 1.0f;
    driver(cuInit(0));
    driver(cuDeviceGet(&device, 0));
    driver(cuDevicePrimaryCtxRetain(&context, device));
    driver(cuCtxSetCurrent(context));
    args = rms_norm_backward_make(memory(X, sizeof X), memory(Y, sizeof Y), memory(W, sizeof W), memory(X, sizeof X), ROWS, COLUMNS, 0, memory(W, sizeof W));
    memset(&k, 0, sizeof k);
    if (rms_norm_backward_kernels_kind(rms_norm_backward_max_active_clusters(&k, &args, &clusters)) != TILEC_TARGET)
        puts("nothing is loaded");
    if (rms_norm_backward_kernels_load(&k, NULL, 0) != 0 || rms_norm_backward_max_active_clusters(&k, &args, &clusters) != 0)
        return 1;
    args.S = 64;
    if (rms_norm_backward_max_active_clusters(&k, &args, &again) != 0 || again != clusters)
        puts("it depends on what was chosen");
    for (i = -1; i < 3; i++)
        if (count > 1 && by_bundle(arguments[1], &args, i) != clusters)
            puts("bundles have another number");
    gradient(&k, args, 1, alone);
    gradient(&k, args, clusters, shared);
    for (i = 0; i < COLUMNS; i++)
        off = fmax(off, fabs((double)alone[i] - (double)shared[i]));
    args.N = 129;
    if (rms_norm_backward_kernels_kind(rms_norm_backward_max_active_clusters(&k, &args, &again)) != TILEC_REQUIRES)
        puts("rows that are too long");
    printf("%d clusters, %s\n", clusters, off < 1e-4 ? "equal" : "not equal");
    return 0;
}
