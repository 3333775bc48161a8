/* Mistakes of a program, and what the driver that runs on the simulator answers. */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failed;

#define EXPECT(call, wanted)                                                            \
    do {                                                                                \
        int got_ = (int)(call);                                                         \
        if (got_ != (wanted)) {                                                         \
            printf("line %d: %s is %d, not %d\n", __LINE__, #call, got_, (int)(wanted)); \
            failed = 1;                                                                 \
        }                                                                               \
    } while (0)

/* Stores 7 to element `i`. */
static const char STORE[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry store(.param .u64 p, .param .u32 i)\n"
    "{\n"
    "    .reg .b64 %rd<4>;\n    .reg .b32 %r<3>;\n"
    "    ld.param.u64 %rd0, [p];\n    ld.param.u32 %r0, [i];\n"
    "    mul.wide.u32 %rd1, %r0, 4;\n    add.s64 %rd2, %rd0, %rd1;\n"
    "    mov.u32 %r1, 7;\n    st.global.u32 [%rd2], %r1;\n    ret;\n"
    "}\n";

static CUdeviceptr kept;

/* What destructors do when a program ends: contexts of its threads may be gone by then. */
static void at_the_end(void)
{
    int code = (int)cuMemFree(kept);
    printf(code == 0 || code == 4 ? "fine\n" : "cuMemFree at the end is %d\n", code);
    fflush(stdout);
}

int main(void)
{
    CUdevice device;
    CUcontext context, primary;
    CUmodule module, other;
    CUfunction store;
    CUstream stream;
    CUdeviceptr memory, more;
    CUlaunchConfig config;
    CUlaunchAttribute cluster;
    unsigned int words[4] = {0}, at = 3;
    unsigned char buffer[12];
    size_t bytes = sizeof buffer;
    int count = 0, value = 0;
    const char *text;
    char newer[sizeof STORE + 8];
    void *params[2], *extra[5];
    params[0] = &memory;
    params[1] = &at;

    EXPECT(cuDeviceGetCount(&count), 3);
    EXPECT(cuInit(1), 1);
    EXPECT(cuInit(0), 0);
    EXPECT(cuDeviceGetCount(&count), 0);
    EXPECT(count, 1);
    EXPECT(cuDeviceGet(&device, 1), 101);
    EXPECT(cuDeviceGet(&device, 0), 0);
    EXPECT(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device), 0);
    EXPECT(value, 8);
    EXPECT(cuMemAlloc(&memory, 16), 201);
    EXPECT(cuDevicePrimaryCtxRetain(&primary, device), 0);
    EXPECT(cuCtxDestroy(primary), 201);
    EXPECT(cuCtxCreate(&context, 0, device), 0);

    /* Modules. */
    EXPECT(cuModuleLoadData(&other, "no PTX"), 218);
    EXPECT(cuModuleLoadData(&other, ""), 218);
    EXPECT(cuModuleLoadData(&other, "\177ELF machine code"), 209);
    strcpy(newer, STORE);
    memcpy(strstr(newer, "sm_80\n"), "sm_90a", 6);
    EXPECT(cuModuleLoadData(&other, newer), 209);
    EXPECT(cuModuleLoadData(&module, STORE), 0);
    EXPECT(cuModuleGetFunction(&store, module, "nothing"), 500);
    EXPECT(cuModuleGetFunction(&store, module, "store"), 0);

    /* Memory. */
    EXPECT(cuMemAlloc(&memory, 0), 1);
    EXPECT(cuMemAlloc(&memory, 16), 0);
    EXPECT(cuMemAlloc(&more, 16), 0);
    EXPECT(cuMemFree(more), 0);
    EXPECT(cuMemFree(more), 1);
    EXPECT(cuMemcpyHtoD(memory, words, 17), 1);
    EXPECT(cuMemsetD32(memory, 5, 4), 0);

    /* Launches: an address for each parameter, and a buffer with all of them. */
    EXPECT(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL), 0);
    memcpy(buffer, &memory, 8);
    at = 1;
    memcpy(buffer + 8, &at, 4);
    extra[0] = (void *)1, extra[1] = buffer, extra[2] = (void *)2, extra[3] = &bytes, extra[4] = NULL;
    EXPECT(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra), 0);
    EXPECT(cuMemcpyDtoH(words, memory, 16), 0);
    EXPECT(words[0] == 5 && words[1] == 7 && words[2] == 5 && words[3] == 7, 1);
    EXPECT(cuLaunchKernel(store, 0, 1, 1, 1, 1, 1, 0, NULL, params, NULL), 1);
    EXPECT(cuLaunchKernel(store, 1, 1, 1, 2048, 1, 1, 0, NULL, params, NULL), 1);
    EXPECT(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 65536, NULL, params, NULL), 1);
    EXPECT(cuFuncSetAttribute(store, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1 << 20), 1);
    EXPECT(cuFuncSetAttribute(store, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 65536), 0);
    EXPECT(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 65536, NULL, params, NULL), 0);
    EXPECT(cuLaunchKernel((CUfunction)0x10, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL), 400);

    /* How many run at one time: one on each of four multiprocessors, where it fits. */
    EXPECT(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, store, 128, 65536), 0);
    EXPECT(value, 1);
    EXPECT(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, store, 128, 65537), 0);
    EXPECT(value, 0);
    EXPECT(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, store, 2048, 0), 0);
    EXPECT(value, 0);
    EXPECT(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, store, -1, 0), 1);
    EXPECT(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device), 0);
    EXPECT(value, 4);
    memset(&config, 0, sizeof config);
    config.blockDimX = config.blockDimY = config.blockDimZ = 1;
    EXPECT(cuOccupancyMaxActiveClusters(&value, store, &config), 0);
    EXPECT(value, 4);
    memset(&cluster, 0, sizeof cluster);
    cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    cluster.value.clusterDim.x = 2;
    cluster.value.clusterDim.y = cluster.value.clusterDim.z = 1;
    config.attrs = &cluster;
    config.numAttrs = 1;
    EXPECT(cuOccupancyMaxActiveClusters(&value, store, &config), 1); /* sm_80 has none */

    /* Streams. */
    EXPECT(cuStreamCreate(&stream, 0), 0);
    EXPECT(cuStreamSynchronize(stream), 0);
    EXPECT(cuStreamDestroy(stream), 0);
    EXPECT(cuStreamSynchronize(stream), 400);
    EXPECT(cuEventElapsedTime(NULL, NULL, NULL), 801);
    EXPECT(cuEventElapsedTime_v2(NULL, NULL, NULL), 801);

    /* An error of a kernel, after which the device is of no use. */
    at = 4;
    EXPECT(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL), 700);
    EXPECT(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text), 0);
    EXPECT(strcmp(text, "CUDA_ERROR_ILLEGAL_ADDRESS"), 0);
    EXPECT(cuGetErrorString(CUDA_ERROR_INVALID_VALUE, &text), 0);
    EXPECT(strcmp(text, "invalid argument"), 0);
    EXPECT(cuCtxSynchronize(), 700);
    EXPECT(cuMemAlloc(&more, 16), 700);
    EXPECT(cuModuleUnload(module), 0);
    EXPECT(cuModuleUnload(module), 400);
    EXPECT(cuCtxSetCurrent(primary), 0);
    EXPECT(cuCtxDestroy(context), 0);
    EXPECT(cuCtxDestroy(context), 400);
    kept = memory;
    atexit(at_the_end);
    return failed;
}
