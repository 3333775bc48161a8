/* A driver without a device, as a shared library: what opens libcuda.so.1 finds a card of compute capability TEST_CC (80), whose
   launches do nothing. With TEST_CALLS=FILE, launches, maps and what orders streams are written there, a line each.

       gcc -shared -fPIC -O2 -o libcuda.so.1 tests/c/libcuda.c */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int code;
enum { FINE = 0, INVALID = 1, NOT_FOUND = 500, MOST = 128 };

typedef struct function {
    char name[128];
    int count;
    size_t sizes[MOST];
} function;

typedef struct module {
    char *text;
    function *functions[64];
    int count;
} module;

static FILE *calls(void)
{
    static FILE *file;
    static int asked;
    if (!asked && getenv("TEST_CALLS") != NULL)
        file = fopen(getenv("TEST_CALLS"), "w");
    asked = 1;
    return file;
}

#define SAY(...) \
    do { \
        FILE *to = calls(); \
        if (to != NULL) { \
            fprintf(to, __VA_ARGS__); \
            fflush(to); \
        } \
    } while (0)

static int cc(void)
{
    const char *text = getenv("TEST_CC");
    return text == NULL ? 80 : atoi(text);
}

static __thread void *current;
static char context;
static uint64_t next_address = 0x7f0000000000ull;

code cuInit(unsigned flags) { return flags == 0 ? FINE : INVALID; }
code cuDriverGetVersion(int *version) { *version = 12090; return FINE; }
code cuDeviceGetCount(int *count) { *count = 2; return FINE; }
code cuDeviceGet(int *device, int ordinal) { *device = ordinal; return FINE; }
code cuDeviceGetName(char *name, int bytes, int device) { (void)device; snprintf(name, (size_t)bytes, "no card"); return FINE; }
code cuDeviceTotalMem_v2(size_t *bytes, int device) { (void)device; *bytes = (size_t)1 << 34; return FINE; }

code cuDeviceGetAttribute(int *value, int attribute, int device)
{
    (void)device;
    switch (attribute) {
    case 75: *value = cc() / 10; break;
    case 76: *value = cc() % 10; break;
    case 1: *value = 1024; break;
    case 2: case 3: *value = 1024; break;
    case 4: *value = 64; break;
    case 5: *value = 2147483647; break;
    case 6: case 7: *value = 65535; break;
    case 16: *value = 7; break;
    case 97: *value = 232448; break;
    default: *value = 1; break;
    }
    return FINE;
}

code cuDevicePrimaryCtxRetain(void **to, int device) { (void)device; *to = &context; return FINE; }
code cuDevicePrimaryCtxRelease_v2(int device) { (void)device; return FINE; }
code cuCtxPushCurrent_v2(void *to) { current = to; return FINE; }
code cuCtxPopCurrent_v2(void **to) { *to = current; return FINE; }
code cuCtxSetCurrent(void *to) { current = to; return FINE; }
code cuCtxGetCurrent(void **to) { *to = current; return FINE; }
code cuCtxGetDevice(int *device) { *device = 0; return FINE; }
code cuCtxSynchronize(void) { return FINE; }

/* The bytes of a parameter, from `.param .u64 name` or `.param .align 64 .b8 name[128]` on. */
static size_t param_bytes(const char *text)
{
    const char *end = strpbrk(text, ",)"), *bits, *many;
    size_t bytes = 0;
    for (bits = text; bits < end; bits++)
        if (*bits == '.' && strchr("usbf", bits[1]) != NULL && bits[2] >= '0' && bits[2] <= '9') {
            bytes = (size_t)atoi(bits + 2) / 8;
            break;
        }
    many = strchr(text, '[');
    return many != NULL && many < end ? bytes * (size_t)atoi(many + 1) : bytes;
}

code cuModuleLoadDataEx(void **to, const void *image, unsigned count, int *options, void **values)
{
    module *made = (module *)calloc(1, sizeof *made);
    (void)count;
    (void)options;
    (void)values;
    made->text = strdup(memcmp(image, "\177ELF", 4) == 0 ? "" : (const char *)image);
    SAY("load %s\n", made->text[0] == 0 ? "cubin" : "ptx");
    *to = made;
    return FINE;
}

code cuModuleUnload(void *of) { (void)of; return FINE; }

code cuModuleGetFunction(void **to, void *of, const char *name)
{
    module *from = (module *)of;
    function *made = (function *)calloc(1, sizeof *made);
    char entry[160];
    const char *at, *end;
    snprintf(entry, sizeof entry, ".entry %s(", name);
    snprintf(made->name, sizeof made->name, "%s", name);
    at = strstr(from->text, entry);
    if (at == NULL && from->text[0] != 0)
        return NOT_FOUND;
    for (end = at == NULL ? NULL : strchr(at, ')'); at != NULL && (at = strstr(at, ".param")) != NULL && at < end; at += 6)
        made->sizes[made->count++] = param_bytes(at);
    *to = made;
    return FINE;
}

code cuFuncGetParamInfo(void *of, size_t index, size_t *offset, size_t *bytes)
{
    function *from = (function *)of;
    if (index >= (size_t)from->count)
        return INVALID;
    *offset = 0;
    *bytes = from->sizes[index];
    return FINE;
}

code cuFuncGetAttribute(int *value, int attribute, void *of)
{
    (void)of;
    *value = attribute == 8 ? 232448 : attribute == 0 ? 1024 : 0;
    return FINE;
}

/* Three blocks a multiprocessor, of which there are 7; five clusters. */
code cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *of, int threads, size_t shared)
{
    SAY("blocks %s %d %d\n", ((function *)of)->name, threads, (int)shared);
    *blocks = 3;
    return FINE;
}

code cuFuncSetAttribute(void *of, int attribute, int value) { (void)of; (void)attribute; (void)value; return FINE; }

code cuMemAlloc_v2(uint64_t *to, size_t bytes)
{
    *to = next_address;
    next_address += (bytes + 511) / 512 * 512;
    return FINE;
}

code cuMemFree_v2(uint64_t at) { (void)at; return FINE; }
code cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes) { (void)to; (void)from; (void)bytes; return FINE; }
code cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) { (void)from; memset(to, 0, bytes); return FINE; }
code cuMemsetD8_v2(uint64_t to, unsigned char byte, size_t bytes) { (void)to; (void)byte; (void)bytes; return FINE; }

static code launched(function *of, const unsigned *grid, unsigned cluster, void *stream, void **params)
{
    int i;
    if (calls() == NULL)
        return FINE;
    SAY("launch %s %u %u %u cluster %u stream %lx:", of->name, grid[0], grid[1], grid[2], cluster, (unsigned long)(uintptr_t)stream);
    for (i = 0; i < of->count; i++) {
        uint64_t word = 0;
        memcpy(&word, params[i], of->sizes[i] < 8 ? of->sizes[i] : 8);
        SAY(" %llx", (unsigned long long)word);
    }
    SAY("\n");
    return FINE;
}

code cuLaunchKernel(void *of, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream, void **params, void **extra)
{
    const unsigned grid[3] = {x, y, z};
    (void)bx;
    (void)by;
    (void)bz;
    (void)shared;
    (void)extra;
    return launched((function *)of, grid, 1, stream, params);
}

typedef struct attribute {
    int id;
    char pad[4];
    union {
        char bytes[64];
        unsigned cluster[3];
    } value;
} attribute;

typedef struct config {
    unsigned grid[3], block[3], shared;
    void *stream;
    attribute *attributes;
    unsigned count;
} config;

code cuOccupancyMaxActiveClusters(int *clusters, void *of, const config *how)
{
    const unsigned *cluster = how->attributes[0].value.cluster;
    SAY("clusters %s %u %u %u\n", ((function *)of)->name, how->block[0], how->shared, cluster[0] * cluster[1] * cluster[2]);
    *clusters = 5;
    return FINE;
}

code cuLaunchKernelEx(const config *how, void *of, void **params, void **extra)
{
    unsigned cluster = 1, i;
    (void)extra;
    for (i = 0; i < how->count; i++)
        if (how->attributes[i].id == 4)
            cluster = how->attributes[i].value.cluster[0];
    return launched((function *)of, how->grid, cluster, how->stream, params);
}

static code encoded(void *to, void *address)
{
    memset(to, 0, 128);
    memcpy(to, &address, sizeof address);
    SAY("map at %lx\n", (unsigned long)(uintptr_t)address);
    return FINE;
}

code cuTensorMapEncodeTiled(void *to, int type, unsigned rank, void *address) { (void)type; (void)rank; return encoded(to, address); }
code cuTensorMapEncodeIm2col(void *to, int type, unsigned rank, void *address) { (void)type; (void)rank; return encoded(to, address); }

code cuStreamCreate(void **to, unsigned flags) { (void)flags; *to = malloc(1); return FINE; }
code cuStreamDestroy_v2(void *stream) { free(stream); return FINE; }
code cuStreamSynchronize(void *stream) { (void)stream; return FINE; }
code cuStreamIsCapturing(void *stream, int *status) { (void)stream; *status = getenv("TEST_CAPTURING") != NULL; return FINE; }
code cuEventCreate(void **to, unsigned flags) { (void)flags; *to = malloc(1); return FINE; }
code cuEventDestroy_v2(void *event) { free(event); return FINE; }
code cuEventRecord(void *event, void *stream) { (void)event; SAY("record on %lx\n", (unsigned long)(uintptr_t)stream); return FINE; }
code cuEventSynchronize(void *event) { (void)event; return FINE; }
code cuEventElapsedTime(float *to, void *from, void *until) { (void)from; (void)until; *to = 1.0f; return FINE; }
code cuStreamWaitEvent(void *stream, void *event, unsigned flags) { (void)event; (void)flags; SAY("%lx waits\n", (unsigned long)(uintptr_t)stream); return FINE; }
code cuStreamBeginCapture_v2(void *stream, int mode) { (void)stream; (void)mode; return FINE; }
code cuStreamEndCapture(void *stream, void **graph) { (void)stream; *graph = malloc(1); return FINE; }
code cuGraphInstantiateWithFlags(void **to, void *graph, unsigned long long flags) { (void)graph; (void)flags; *to = malloc(1); return FINE; }
code cuGraphUpload(void *graph, void *stream) { (void)graph; (void)stream; return FINE; }
code cuGraphLaunch(void *graph, void *stream) { (void)graph; (void)stream; return FINE; }
code cuGraphExecDestroy(void *graph) { free(graph); return FINE; }
code cuGraphDestroy(void *graph) { free(graph); return FINE; }

/* Addresses from 0x2000000000 on are of device 1, and others of device 0; those below 0x10000 are unknown. */
code cuPointerGetAttribute(void *to, int attribute, uint64_t address)
{
    if (attribute != 9 || address < 0x10000)
        return INVALID;
    *(int *)to = address >= 0x2000000000ull && address < 0x3000000000ull;
    return FINE;
}

code cuGetErrorName(int error, const char **text) { *text = error == 0 ? "CUDA_SUCCESS" : "CUDA_ERROR"; return FINE; }
code cuGetErrorString(int error, const char **text) { *text = error == 0 ? "no error" : "an error"; return FINE; }
