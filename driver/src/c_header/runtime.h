/* What all headers share that tilec makes; included once, whichever header comes first. */
#ifndef TILEC_RUNTIME
#define TILEC_RUNTIME 1

/* Every call of the driver is written TILEC_CU(cuLaunchKernel)(..). A program that opens the driver while it runs defines this in front of
   the first of these headers, as a member of its own table of functions; docs/c.md has one. */
#ifndef TILEC_CU
#define TILEC_CU(function) function
#endif

/* As a stride: the stride of a tensor without gaps. */
#define TILEC_PACKED INT64_MIN
/* Most modes of all dimensions of a tensor together. */
#define TILEC_MODES 16
/* Scratch memory begins at multiples of this. */
#define TILEC_SCRATCH_ALIGN 256

/* What a code means: 0 is success, a positive one is a CUresult, and negative ones are of these kinds. */
typedef enum tilec_kind {
    TILEC_SUCCESS,
    TILEC_DRIVER,     /* the driver refused a call */
    TILEC_VALUE,      /* a size, stride or scalar that the kernel does not take */
    TILEC_REQUIRES,   /* a precondition that does not hold */
    TILEC_GRID,       /* more blocks than a grid has, or a tensor beyond 2^63 elements */
    TILEC_EXPRESSION, /* an expression overflows, or divides by zero */
    TILEC_ADDRESS,    /* an address that is null, or no multiple of what it must be */
    TILEC_OVERLAP,    /* memory that is written overlaps that of another tensor */
    TILEC_SCRATCH,    /* scratch memory is absent, too small, or not aligned */
    TILEC_TARGET      /* no PTX in the header runs on the device, or nothing is loaded */
} tilec_kind;

typedef struct tilec_note {
    tilec_kind kind;
    const char *text;
} tilec_note;

/* An entry of a module. */
typedef struct tilec_entry {
    const char *name;
    int dynamic_shared;
    int large_cluster;
} tilec_entry;

/* A tensor of a launch: strides in elements. */
typedef struct tilec_tensor {
    CUdeviceptr address;
    uint64_t bytes;
    int bits; /* of an element */
    int modes;
    int64_t shape[TILEC_MODES];
    int64_t strides[TILEC_MODES];
} tilec_tensor;

/* Memory of which launches take pieces. */
typedef struct tilec_memory {
    CUdeviceptr base;
    uint64_t used;
    uint64_t bytes;
} tilec_memory;

/* What is done with a launch. */
typedef enum tilec_step { TILEC_MEASURE, TILEC_COUNT, TILEC_CHECK, TILEC_LAUNCH } tilec_step;

typedef struct tilec_room {
    tilec_step step;
    tilec_memory workspace;
    tilec_memory signals;
    int clusters; /* that run at one time, where they are counted; 0: there is nothing to launch */
    int counts;   /* things that keep a variant from being launched are counted, and nothing is launched */
    int reasons;  /* how many there are */
    int reason;   /* the code of the first */
} tilec_room;

/* Integer arithmetic of launch contracts: 64 bits, division floors. What has no value sets `*e`. */

static inline int64_t tilec_add(int64_t a, int64_t b, int *e)
{
    if (b > 0 ? a > INT64_MAX - b : a < INT64_MIN - b) {
        *e = 1;
        return 0;
    }
    return a + b;
}

static inline int64_t tilec_sub(int64_t a, int64_t b, int *e)
{
    if (b < 0 ? a > INT64_MAX + b : a < INT64_MIN + b) {
        *e = 1;
        return 0;
    }
    return a - b;
}

static inline int64_t tilec_mul(int64_t a, int64_t b, int *e)
{
    int over;
    if (a == 0 || b == 0)
        return 0;
    if (a > 0)
        over = b > 0 ? a > INT64_MAX / b : b < INT64_MIN / a;
    else
        over = b > 0 ? a < INT64_MIN / b : a < INT64_MAX / b;
    if (over) {
        *e = 1;
        return 0;
    }
    return a * b;
}

static inline int64_t tilec_neg(int64_t a, int *e)
{
    return tilec_sub(0, a, e);
}

/* The largest integer that is at most the quotient. */
static inline int64_t tilec_div(int64_t a, int64_t b, int *e)
{
    if (b == 0 || (a == INT64_MIN && b == -1)) {
        *e = 1;
        return 0;
    }
    return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

/* The least integer that is at least the quotient. */
static inline int64_t tilec_ceildiv(int64_t a, int64_t b, int *e)
{
    if (b == 0 || (a == INT64_MIN && b == -1)) {
        *e = 1;
        return 0;
    }
    return a / b + ((a % b != 0 && (a < 0) == (b < 0)) ? 1 : 0);
}

/* What a floored quotient leaves: it has the sign of `b`. */
static inline int64_t tilec_rem(int64_t a, int64_t b, int *e)
{
    int64_t rest;
    if (b == 0) {
        *e = 1;
        return 0;
    }
    if (b == -1)
        return 0;
    rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static inline int64_t tilec_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t tilec_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline int64_t tilec_abs(int64_t a, int *e)
{
    return a < 0 ? tilec_neg(a, e) : a;
}

static inline int64_t tilec_shl(int64_t a, int64_t b, int *e)
{
    if (b < 0 || (a != 0 && b > 63)) {
        *e = 1;
        return 0;
    }
    if (a == 0)
        return 0;
    if (b == 63) {
        if (a != -1)
            *e = 1;
        return INT64_MIN;
    }
    return tilec_mul(a, (int64_t)1 << b, e);
}

static inline int64_t tilec_shr(int64_t a, int64_t b, int *e)
{
    if (b < 0) {
        *e = 1;
        return 0;
    }
    if (b > 62)
        return a < 0 ? -1 : 0;
    return tilec_div(a, (int64_t)1 << b, e);
}

static inline int64_t tilec_popcount(int64_t a)
{
    uint64_t rest = (uint64_t)a;
    int64_t count = 0;
    for (; rest != 0; rest &= rest - 1)
        count++;
    return count;
}

/* A scalar of 64 bits without a sign in an expression. */
static inline int64_t tilec_unsigned(uint64_t a, int *e)
{
    if (a > (uint64_t)INT64_MAX) {
        *e = 1;
        return 0;
    }
    return (int64_t)a;
}

/* Scalars of kernels in formats that C has no types for; rounded to nearest, ties to even. */

static inline uint32_t tilec_float_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline uint16_t tilec_bf16(float x)
{
    uint32_t bits = tilec_float_bits(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return 0x7fff;
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

static inline uint32_t tilec_tf32(float x)
{
    uint32_t bits = tilec_float_bits(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return 0x7fffe000u;
    return (bits + 0xfffu + ((bits >> 13) & 1u)) & ~(uint32_t)0x1fff;
}

static inline uint16_t tilec_f16(float x)
{
    uint32_t bits = tilec_float_bits(x), sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
    uint32_t exponent = magnitude >> 23, mantissa, shift;
    if (magnitude > 0x7f800000u)
        return 0x7fff;
    if (magnitude >= 0x477ff000u) /* 65520 and more */
        return (uint16_t)(sign | 0x7c00u);
    if (exponent >= 113) { /* normal: the exponent counts from 15 instead of 127 */
        magnitude -= (uint32_t)112 << 23;
        return (uint16_t)(sign | ((magnitude + 0xfffu + ((magnitude >> 13) & 1u)) >> 13));
    }
    if (exponent < 102)
        return (uint16_t)sign;
    mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    shift = 126 - exponent;
    return (uint16_t)(sign | ((mantissa + (((uint32_t)1 << (shift - 1)) - 1) + ((mantissa >> shift) & 1u)) >> shift));
}

/* Sets the bytes from the first element to the last, of `bits` bits each; 0 if there are too many or a number is negative. */
static inline int tilec_extent(tilec_tensor *t, int bits)
{
    int e = 0, i, none = 0;
    int64_t last = 0, reach = 0;
    t->bits = bits;
    for (i = 0; i < t->modes; i++) {
        if (t->shape[i] < 0 || t->strides[i] < 0)
            return 0;
        none |= t->shape[i] == 0;
        reach = tilec_add(reach, tilec_mul(t->shape[i], t->strides[i], &e), &e);
    }
    for (i = 0; i < t->modes && !none; i++)
        last = tilec_add(last, tilec_mul(t->shape[i] - 1, t->strides[i], &e), &e);
    last = tilec_mul(tilec_add(last, 1, &e), bits, &e);
    t->bytes = none ? 0 : ((uint64_t)last + 7) / 8;
    return !e;
}

/* The largest stride, and the bytes that the other dimensions reach. Returns 0 if rows begin inside of a byte. */
static inline int tilec_rows(const tilec_tensor *t, uint64_t *step, uint64_t *own)
{
    int i, outer = -1;
    uint64_t reach = 1;
    for (i = 0; i < t->modes; i++)
        if (t->shape[i] > 1 && (outer < 0 || t->strides[i] >= t->strides[outer]))
            outer = i;
    if (outer < 0)
        return 0;
    /* Both fit, as they do for the whole tensor. */
    *step = (uint64_t)t->strides[outer] * (uint64_t)t->bits;
    if (*step == 0 || *step % 8 != 0)
        return 0;
    *step /= 8;
    for (i = 0; i < t->modes; i++)
        if (i != outer)
            reach += (uint64_t)(t->shape[i] - 1) * (uint64_t)t->strides[i];
    *own = (reach * (uint64_t)t->bits + 7) / 8;
    return 1;
}

/* Whether two tensors may share a byte. Windows of one larger tensor with adjacent rows do not. Others may if their ranges from the
   first to the last element overlap. */
static inline int tilec_meet(const tilec_tensor *a, const tilec_tensor *b)
{
    const tilec_tensor *low = a->address <= b->address ? a : b, *high = a->address <= b->address ? b : a;
    uint64_t gap = high->address - low->address, step, own, other, its, begin;
    if (low->bytes == 0 || high->bytes == 0 || gap >= low->bytes)
        return 0;
    if (!tilec_rows(low, &step, &own) || !tilec_rows(high, &other, &its) || step != other)
        return 1;
    begin = gap % step;
    return begin < own || begin + its > step;
}

/* Whether both have the same address, extents and strides, and elements with distinct addresses. Then they may be the same tensor. */
static inline int tilec_alike(const tilec_tensor *a, const tilec_tensor *b)
{
    int done[TILEC_MODES] = {0}, i, least, e = 0;
    int64_t reach = 0;
    if (a->address != b->address || a->modes != b->modes)
        return 0;
    for (i = 0; i < a->modes; i++)
        if (a->shape[i] != b->shape[i] || a->strides[i] != b->strides[i])
            return 0;
    for (;;) {
        least = -1;
        for (i = 0; i < a->modes; i++)
            if (!done[i] && a->shape[i] > 1 && (least < 0 || a->strides[i] < a->strides[least]))
                least = i;
        if (least < 0)
            return !e;
        if (a->strides[least] <= reach)
            return 0;
        reach = tilec_add(reach, tilec_mul(a->shape[least] - 1, a->strides[least], &e), &e);
        done[least] = 1;
    }
}

/* Whether a refusal ends a launch: not where reasons are counted. */
static inline int tilec_refused(tilec_room *room, int code)
{
    if (!room->counts)
        return 1;
    if (room->reasons++ == 0)
        room->reason = code;
    return 0;
}

/* Begins to count the reasons against a variant, in the state before it. */
static inline void tilec_count_reasons(tilec_room *room, const tilec_room *before)
{
    *room = *before;
    room->step = before->step <= TILEC_COUNT ? TILEC_MEASURE : TILEC_CHECK;
    room->counts = 1;
}

/* The next piece of scratch memory. */
static inline CUdeviceptr tilec_take(tilec_memory *memory, uint64_t bytes)
{
    CUdeviceptr at = memory->base + memory->used;
    memory->used += (bytes + TILEC_SCRATCH_ALIGN - 1) / TILEC_SCRATCH_ALIGN * TILEC_SCRATCH_ALIGN;
    return at;
}

/* Whether what was taken is there. */
static inline int tilec_fits(const tilec_room *room, const tilec_memory *memory)
{
    if (room->step <= TILEC_COUNT || memory->used == 0)
        return 1;
    return memory->base != 0 && memory->base % TILEC_SCRATCH_ALIGN == 0 && memory->used <= memory->bytes;
}

/* Where pieces are counted, and not used. */
static inline tilec_room tilec_room_of(tilec_step step, CUdeviceptr workspace, size_t workspace_bytes, CUdeviceptr signals, size_t signals_bytes)
{
    tilec_room room;
    memset(&room, 0, sizeof room);
    room.step = step;
    room.workspace.base = workspace;
    room.workspace.bytes = workspace_bytes;
    room.signals.base = signals;
    room.signals.bytes = signals_bytes;
    return room;
}

/* Adds a name and a value to a text, which is cut off where it is full. */
static inline void tilec_say(char *text, size_t text_bytes, const char *before, const char *name, const char *value)
{
    size_t used = strlen(text);
    if (used < text_bytes)
        snprintf(text + used, text_bytes - used, "%s%s = %s", before, name, value);
}

static inline void tilec_say_integer(char *text, size_t text_bytes, const char *before, const char *name, int64_t x)
{
    char number[32];
    snprintf(number, sizeof number, "%lld", (long long)x);
    tilec_say(text, text_bytes, before, name, number);
}

static inline void tilec_say_unsigned(char *text, size_t text_bytes, const char *before, const char *name, uint64_t x)
{
    char number[32];
    snprintf(number, sizeof number, "%llu", (unsigned long long)x);
    tilec_say(text, text_bytes, before, name, number);
}

static inline void tilec_say_stride(char *text, size_t text_bytes, const char *before, const char *name, int64_t x)
{
    if (x == TILEC_PACKED)
        tilec_say(text, text_bytes, before, name, "packed");
    else
        tilec_say_integer(text, text_bytes, before, name, x);
}

static inline void tilec_say_real(char *text, size_t text_bytes, const char *before, const char *name, double x)
{
    char number[40];
    snprintf(number, sizeof number, "%.9g", x);
    tilec_say(text, text_bytes, before, name, number);
}

/* Closes the parenthesis of the values, where there is room. */
static inline void tilec_end(char *text, size_t text_bytes)
{
    size_t used = strlen(text);
    if (used + 1 < text_bytes) {
        text[used] = ')';
        text[used + 1] = 0;
    }
}

static inline int tilec_launch(CUfunction function, const int64_t grid[3], const unsigned int block[3], unsigned int shared, CUstream stream, void **params)
{
    return (int)TILEC_CU(cuLaunchKernel)(function, (unsigned int)grid[0], (unsigned int)grid[1], (unsigned int)grid[2], block[0], block[1], block[2], shared, stream, params, NULL);
}

/* Blocks that the device of the current context runs at one time. */
static inline int tilec_active_blocks(CUfunction function, const unsigned int block[3], unsigned int shared, int *count)
{
    CUdevice device;
    int multiprocessors = 0;
    int code = (int)TILEC_CU(cuCtxGetDevice)(&device);
    if (code == 0)
        code = (int)TILEC_CU(cuDeviceGetAttribute)(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
    if (code == 0)
        code = (int)TILEC_CU(cuOccupancyMaxActiveBlocksPerMultiprocessor)(count, function, (int)(block[0] * block[1] * block[2]), shared);
    *count *= multiprocessors;
    return code != 0 || *count > 0 ? code : (int)CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
}

/* Has the driver assemble PTX, which is in pieces, and gets the entries. */
static inline int tilec_load(CUmodule *module, CUfunction *functions, const char *const *pieces, const tilec_entry *entries, int count, char *log, size_t log_bytes)
{
    size_t bytes = 1;
    char *text, *end;
    CUresult code;
    CUjit_option options[2] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[2];
    int i;
    for (i = 0; pieces[i] != NULL; i++)
        bytes += strlen(pieces[i]);
    text = (char *)malloc(bytes);
    if (text == NULL)
        return (int)CUDA_ERROR_OUT_OF_MEMORY;
    end = text;
    for (i = 0; pieces[i] != NULL; i++) {
        memcpy(end, pieces[i], strlen(pieces[i]));
        end += strlen(pieces[i]);
    }
    *end = 0;
    if (log == NULL)
        log_bytes = 0;
    values[0] = log;
    values[1] = (void *)(uintptr_t)log_bytes;
    if (log_bytes > 0)
        log[0] = 0;
    code = TILEC_CU(cuModuleLoadDataEx)(module, text, log_bytes > 0 ? 2 : 0, options, values);
    free(text);
    if (code != CUDA_SUCCESS)
        return (int)code;
    for (i = 0; i < count && code == CUDA_SUCCESS; i++) {
        code = TILEC_CU(cuModuleGetFunction)(&functions[i], *module, entries[i].name);
        if (code == CUDA_SUCCESS && entries[i].dynamic_shared > 49152)
            code = TILEC_CU(cuFuncSetAttribute)(functions[i], CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, entries[i].dynamic_shared);
        if (code == CUDA_SUCCESS && entries[i].large_cluster)
            code = TILEC_CU(cuFuncSetAttribute)(functions[i], (CUfunction_attribute)14, 1);
    }
    if (code != CUDA_SUCCESS)
        TILEC_CU(cuModuleUnload)(*module);
    return (int)code;
}

#endif
