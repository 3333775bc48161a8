/* A driver that writes down what it is asked for, a line for each call. A test program says the parameters of its entries. */
#include "driver.h"

#include <stdio.h>
#include <string.h>

int test_cc = 70;

struct CUmod_st {
    int loaded;
};

static struct CUmod_st module_of_all;
static int maps_made;

CUresult cuGetErrorString(CUresult error, const char **text)
{
    *text = error == CUDA_SUCCESS ? "no error" : "an error";
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    *device = 0;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    (void)device;
    *value = attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT ? 7 : attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? test_cc / 10 : test_cc % 10;
    return CUDA_SUCCESS;
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count, CUjit_option *options, void **values)
{
    uint64_t hash = 14695981039346656037ull;
    const unsigned char *text = (const unsigned char *)image;
    (void)count;
    (void)options;
    (void)values;
    for (; *text != 0; text++)
        hash = (hash ^ *text) * 1099511628211ull;
    printf("load %016llx\n", (unsigned long long)hash);
    *module = &module_of_all;
    return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module)
{
    printf("unload\n");
    return module == &module_of_all ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    int i;
    (void)module;
    for (i = 0; test_entries[i].name != NULL; i++) {
        if (test_entries[i].cc == test_cc && strcmp(test_entries[i].name, name) == 0) {
            *function = (CUfunction)(uintptr_t)&test_entries[i];
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_NOT_FOUND;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    printf("attribute %s %d %d\n", ((const test_entry *)(const void *)function)->name, (int)attribute, value);
    return CUDA_SUCCESS;
}

/* Three blocks a multiprocessor; five clusters. */
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int threads, size_t shared)
{
    printf("blocks %s %d %d\n", ((const test_entry *)(const void *)function)->name, threads, (int)shared);
    *blocks = 3;
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveClusters(int *clusters, CUfunction function, const CUlaunchConfig *config)
{
    const char *name = ((const test_entry *)(const void *)function)->name;
    printf("clusters %s %u %u %u\n", name, config->blockDimX, config->sharedMemBytes, config->attrs[0].value.clusterDim.x);
    *clusters = 5;
    return CUDA_SUCCESS;
}

static CUresult launch(CUfunction function, const unsigned int *numbers, const unsigned int *cluster, int programmatic, void **params)
{
    const test_entry *entry = (const test_entry *)(const void *)function;
    int i, j;
    printf("launch %s", entry->name);
    for (i = 0; i < 7; i++)
        printf(" %u", numbers[i]);
    printf(" cluster %u %u %u programmatic %d:", cluster[0], cluster[1], cluster[2], programmatic);
    for (i = 0; entry->sizes[i] != 0; i++) {
        const unsigned char *bytes = (const unsigned char *)params[i];
        printf(" ");
        if (entry->sizes[i] == 128) {
            cuuint64_t words[16];
            memcpy(words, bytes, sizeof words);
            if ((uintptr_t)bytes % 64 != 0)
                printf("misaligned");
            printf("map%d", (int)words[0]);
            continue;
        }
        for (j = 0; j < entry->sizes[i]; j++)
            printf("%02x", bytes[j]);
    }
    printf("\n");
    maps_made = 0;
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared, CUstream stream, void **params, void **extra)
{
    const unsigned int numbers[7] = {grid_x, grid_y, grid_z, block_x, block_y, block_z, shared}, one[3] = {1, 1, 1};
    (void)stream;
    (void)extra;
    return launch(function, numbers, one, 0, params);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **params, void **extra)
{
    const unsigned int numbers[7] = {config->gridDimX, config->gridDimY, config->gridDimZ, config->blockDimX, config->blockDimY, config->blockDimZ, config->sharedMemBytes};
    unsigned int cluster[3] = {1, 1, 1}, i;
    int programmatic = 0;
    (void)extra;
    for (i = 0; i < config->numAttrs; i++) {
        const CUlaunchAttribute *attribute = &config->attrs[i];
        if (attribute->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
            cluster[0] = attribute->value.clusterDim.x;
            cluster[1] = attribute->value.clusterDim.y;
            cluster[2] = attribute->value.clusterDim.z;
        } else {
            programmatic = attribute->value.programmaticStreamSerializationAllowed;
        }
    }
    return launch(function, numbers, cluster, programmatic, params);
}

static void list64(const char *name, const cuuint64_t *numbers, unsigned int count)
{
    unsigned int i;
    printf(" %s", name);
    for (i = 0; i < count; i++)
        printf(" %llu", (unsigned long long)numbers[i]);
}

static void list32(const char *name, const cuuint32_t *numbers, unsigned int count)
{
    unsigned int i;
    printf(" %s", name);
    for (i = 0; i < count; i++)
        printf(" %u", numbers[i]);
}

static void made(CUtensorMap *map)
{
    memset(map, 0, sizeof *map);
    map->opaque[0] = (cuuint64_t)maps_made++;
    printf("\n");
}

CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address, const cuuint64_t *extents, const cuuint64_t *strides, const cuuint32_t *box, const cuuint32_t *steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
    printf("tiled %d at %llx", (int)type, (unsigned long long)(uintptr_t)address);
    list64("extents", extents, rank);
    list64("strides", strides, rank - 1);
    list32("box", box, rank);
    list32("steps", steps, rank);
    printf(" modes %d %d %d %d", (int)interleave, (int)swizzle, (int)promotion, (int)fill);
    made(map);
    return CUDA_SUCCESS;
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address, const cuuint64_t *extents, const cuuint64_t *strides, const int *lower, const int *upper, cuuint32_t channels, cuuint32_t pixels, const cuuint32_t *steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
    unsigned int i;
    printf("im2col %d at %llx", (int)type, (unsigned long long)(uintptr_t)address);
    list64("extents", extents, rank);
    list64("strides", strides, rank - 1);
    printf(" corners");
    for (i = 0; i + 2 < rank; i++)
        printf(" %d %d", lower[i], upper[i]);
    printf(" of %u %u", channels, pixels);
    list32("steps", steps, rank);
    printf(" modes %d %d %d %d", (int)interleave, (int)swizzle, (int)promotion, (int)fill);
    made(map);
    return CUDA_SUCCESS;
}
