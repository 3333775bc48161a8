/* Bundles: kernels for several targets in one file (docs/bundle.md), launched by their launch tables. */
#ifndef TILEC_BUNDLE
#define TILEC_BUNDLE 1

/* Most tensors, values, launches and parameters that a launch table has. */
#define TILEC_BUNDLE_TENSORS 32
#define TILEC_BUNDLE_VALUES 96
#define TILEC_BUNDLE_LAUNCHES 32
#define TILEC_BUNDLE_PARAMS 96
/* Operands of an expression that are worked on at one time. */
#define TILEC_BUNDLE_DEPTH 64
/* The memory behind a tensor has an unknown length. */
#define TILEC_UNKNOWN UINT64_MAX

/* What is loaded of a bundle, in the context that was current. Many threads may launch from it. */
typedef struct tilec_bundle {
    unsigned char *data; /* the file */
    uint64_t bytes;
    const unsigned char *table; /* the launch table of the target that was taken */
    uint64_t table_bytes;
    char target[17];
    CUmodule module;
    CUfunction *functions;
    uint32_t entries;
} tilec_bundle;

/* A tensor that is given. Strides are in elements; `bytes` counts from the address to the end of the memory. */
typedef struct tilec_bundle_tensor {
    const char *name;
    const char *type; /* "f16", "bf16", "f32", "e4m3", "i32", ..: as docs/language.md calls them */
    CUdeviceptr address;
    uint64_t bytes;
    int rank; /* dimensions, those of all modes counted */
    int64_t shape[TILEC_MODES];
    int64_t strides[TILEC_MODES];
} tilec_bundle_tensor;

typedef enum tilec_number { TILEC_INTEGER, TILEC_UNSIGNED, TILEC_REAL } tilec_number;

/* A scalar, or a size or stride that no tensor has. Of e4m3, e5m2, e2m1 and ue8m0 the bits are given, as an integer. */
typedef struct tilec_bundle_value {
    const char *name;
    tilec_number kind;
    int64_t integer;
    uint64_t large;
    double real;
} tilec_bundle_value;

/* The arguments of a launch. Scratch memory as tilec_bundle_scratch says. */
typedef struct tilec_bundle_args {
    const tilec_bundle_tensor *tensors;
    int tensor_count;
    const tilec_bundle_value *values;
    int value_count;
    CUdeviceptr workspace;
    size_t workspace_bytes;
    CUdeviceptr signals; /* zero before the first launch */
    size_t signals_bytes;
} tilec_bundle_args;

/* A packed tensor in row-major order; its shape follows as int64_t. */
static inline tilec_bundle_tensor tilec_bundle_packed(const char *name, const char *type, CUdeviceptr address, int rank, const int64_t *shape)
{
    tilec_bundle_tensor made;
    int64_t step = 1;
    int i;
    memset(&made, 0, sizeof made);
    made.name = name;
    made.type = type;
    made.address = address;
    made.bytes = TILEC_UNKNOWN;
    made.rank = rank < 0 || rank > TILEC_MODES ? -1 : rank;
    for (i = made.rank - 1; i >= 0; i--) {
        made.shape[i] = shape[i];
        made.strides[i] = step;
        step = shape[i] > 1 && step <= INT64_MAX / shape[i] ? step * shape[i] : step;
    }
    return made;
}

static inline tilec_bundle_value tilec_bundle_integer(const char *name, int64_t x)
{
    tilec_bundle_value made = {name, TILEC_INTEGER, x, 0, 0.0};
    return made;
}

static inline tilec_bundle_value tilec_bundle_unsigned(const char *name, uint64_t x)
{
    tilec_bundle_value made = {name, TILEC_UNSIGNED, 0, x, 0.0};
    return made;
}

static inline tilec_bundle_value tilec_bundle_real(const char *name, double x)
{
    tilec_bundle_value made = {name, TILEC_REAL, 0, 0, x};
    return made;
}

/* Where texts of messages go. */
typedef struct tilec_message {
    char *text;
    size_t bytes;
} tilec_message;

/* A message, and the code of its kind. */
static inline int tilec_refuse(tilec_message *message, tilec_kind kind, const char *who, const char *what, const char *more, size_t more_bytes)
{
    if (message->text != NULL && message->bytes > 0)
        snprintf(message->text, message->bytes, "%s: %s%.*s", who, what, (int)more_bytes, more);
    return -(int)kind;
}

/* What is read one behind the other; what is not there is 0, and sets `bad`. */
typedef struct tilec_cursor {
    const unsigned char *at;
    const unsigned char *end;
    int bad;
} tilec_cursor;

static inline uint64_t tilec_read(tilec_cursor *c, int bytes)
{
    uint64_t x = 0;
    int i;
    if (c->end - c->at < bytes) {
        c->bad = 1;
        c->at = c->end;
        return 0;
    }
    for (i = bytes - 1; i >= 0; i--)
        x = x << 8 | c->at[i];
    c->at += bytes;
    return x;
}

static inline uint32_t tilec_word(tilec_cursor *c)
{
    return (uint32_t)tilec_read(c, 4);
}

static inline int64_t tilec_long(tilec_cursor *c)
{
    uint64_t x = tilec_read(c, 8);
    int64_t y;
    memcpy(&y, &x, sizeof y);
    return y;
}

/* A number that must be less than `most`. */
static inline uint32_t tilec_below(tilec_cursor *c, uint32_t most)
{
    uint32_t x = tilec_word(c);
    if (x < most)
        return x;
    c->bad = 1;
    c->at = c->end;
    return 0;
}

static inline void tilec_pass(tilec_cursor *c, uint64_t bytes)
{
    if ((uint64_t)(c->end - c->at) < bytes) {
        c->bad = 1;
        c->at = c->end;
    } else {
        c->at += bytes;
    }
}

/* A text without a zero behind it. */
typedef struct tilec_text {
    const char *text;
    uint32_t bytes;
} tilec_text;

static inline tilec_text tilec_text_of(tilec_cursor *c)
{
    tilec_text made;
    made.bytes = tilec_word(c);
    made.text = (const char *)c->at;
    tilec_pass(c, made.bytes);
    if (c->bad)
        made.bytes = 0;
    return made;
}

static inline int tilec_text_is(tilec_text text, const char *name)
{
    return name != NULL && strlen(name) == text.bytes && memcmp(name, text.text, text.bytes) == 0;
}

/* A value of a launch, as integer where it is one, and as the kernel takes it. */
typedef struct tilec_slot {
    int whole;
    int64_t integer;
    uint64_t bits;
} tilec_slot;

/* Works out an expression, and passes over it; what has no value sets `*e`. */
static inline int64_t tilec_code(tilec_cursor *c, const tilec_slot *slots, uint32_t slot_count, int *e)
{
    int64_t stack[TILEC_BUNDLE_DEPTH];
    uint32_t depth = tilec_below(c, TILEC_BUNDLE_DEPTH), count, at = 0, top = 0, steps;
    tilec_cursor code;
    memset(stack, 0, sizeof stack);
    tilec_word(c);
    count = tilec_word(c);
    code = *c;
    tilec_pass(c, (uint64_t)count * 12);
    if (c->bad || depth == 0) {
        *e = 1;
        return 0;
    }
    /* Jumps go forward, so every instruction is worked out at most once. */
    for (steps = 0; at < count && steps <= count; steps++) {
        tilec_cursor now = code;
        uint32_t op;
        int64_t x, a, b;
        now.at = code.at + (uint64_t)at * 12;
        op = tilec_word(&now);
        x = tilec_long(&now);
        at++;
        if (op <= 1) {
            if (top >= depth || (op == 1 && (x < 0 || x >= (int64_t)slot_count || !slots[x].whole))) {
                *e = 1;
                return 0;
            }
            stack[top++] = op == 0 ? x : slots[x].integer;
            continue;
        }
        if (op == 5) {
            at = (uint32_t)x;
            continue;
        }
        if (op == 6)
            continue;
        if (top < (op >= 32 ? 2u : 1u)) {
            *e = 1;
            return 0;
        }
        if (op <= 4) {
            int holds = stack[top - 1] != 0;
            if (op == 4) {
                top--;
                if (!holds)
                    at = (uint32_t)x;
            } else if (holds == (op == 3)) {
                at = (uint32_t)x;
            } else {
                top--;
            }
            continue;
        }
        if (op < 32) {
            a = stack[top - 1];
            switch (op) {
            case 16: a = 1 - a; break;
            case 17: a = ~a; break;
            case 18: a = tilec_neg(a, e); break;
            case 19: a = tilec_abs(a, e); break;
            case 20: a = tilec_popcount(a); break;
            default: *e = 1; break;
            }
            stack[top - 1] = a;
        } else {
            b = stack[--top];
            a = stack[top - 1];
            switch (op) {
            case 32: a = tilec_add(a, b, e); break;
            case 33: a = tilec_sub(a, b, e); break;
            case 34: a = tilec_mul(a, b, e); break;
            case 35: a = tilec_div(a, b, e); break;
            case 36: a = tilec_rem(a, b, e); break;
            case 37: a = tilec_ceildiv(a, b, e); break;
            case 38: a = tilec_shl(a, b, e); break;
            case 39: a = tilec_shr(a, b, e); break;
            case 40: a = tilec_min(a, b); break;
            case 41: a = tilec_max(a, b); break;
            case 42: a = a == b; break;
            case 43: a = a != b; break;
            case 44: a = a < b; break;
            case 45: a = a <= b; break;
            case 46: a = a > b; break;
            case 47: a = a >= b; break;
            case 48: a = a & b; break;
            case 49: a = a | b; break;
            case 50: a = a ^ b; break;
            default: *e = 1; break;
            }
            stack[top - 1] = a;
        }
        if (*e)
            return 0;
    }
    return stack[0];
}

/* A launch that is worked out. */
typedef struct tilec_bundle_one {
    uint32_t entry;
    int64_t grid[3];
    tilec_cursor params; /* behind what decides; block, cluster and the rest stand here */
    unsigned int block[3];
    unsigned int cluster[3];
    int programmatic;
    unsigned int shared;
    CUdeviceptr own[TILEC_BUNDLE_TENSORS];
    uint32_t reasons; /* things that keep it from being launched */
} tilec_bundle_one;

/* What is known while a launch is worked out. */
typedef struct tilec_bundle_state {
    const tilec_bundle *bundle;
    const tilec_bundle_args *args;
    const char *who;
    tilec_message *message;
    uint32_t tensor_count; /* those that are given */
    uint32_t own_count;    /* scratch memory and temporaries, behind them in the list */
    tilec_tensor tensors[TILEC_BUNDLE_TENSORS];
    const char *names[TILEC_BUNDLE_TENSORS];
    int written[TILEC_BUNDLE_TENSORS];
    tilec_cursor dims[TILEC_BUNDLE_TENSORS];
    int given_rank[TILEC_BUNDLE_TENSORS];
    const tilec_bundle_tensor *given[TILEC_BUNDLE_TENSORS];
    uint32_t slot_count;
    tilec_slot slots[TILEC_BUNDLE_VALUES];
    int counts; /* sizes that no tensor has count as 1 where they are not given */
} tilec_bundle_state;

static inline int tilec_damaged(const tilec_bundle_state *s)
{
    return tilec_refuse(s->message, TILEC_TARGET, s->who, "the launch table of the bundle is damaged", "", 0);
}

/* The names of tensors, and the arguments that are given for them. */
static inline int tilec_bundle_names(tilec_bundle_state *s, tilec_cursor *c, int own)
{
    uint32_t i, j, n = tilec_below(c, TILEC_BUNDLE_TENSORS + 1 - (own ? s->tensor_count : 0)), first = own ? s->tensor_count : 0;
    for (i = first; i < first + n; i++) {
        tilec_text name = tilec_text_of(c), type;
        uint32_t rank;
        s->written[i] = tilec_word(c) != 0;
        type = tilec_text_of(c);
        s->tensors[i].bits = (int)tilec_word(c);
        rank = tilec_below(c, TILEC_MODES + 1);
        s->tensors[i].modes = (int)rank;
        s->dims[i] = *c;
        for (j = 0; j < 2 * rank && !c->bad; j++) {
            tilec_below(c, TILEC_BUNDLE_DEPTH);
            tilec_word(c);
            tilec_pass(c, (uint64_t)tilec_word(c) * 12);
        }
        if (c->bad)
            return tilec_damaged(s);
        s->given[i] = NULL;
        if (own)
            continue;
        for (j = 0; j < (uint32_t)s->args->tensor_count; j++)
            if (tilec_text_is(name, s->args->tensors[j].name))
                s->given[i] = &s->args->tensors[j];
        if (s->given[i] == NULL)
            return tilec_refuse(s->message, TILEC_VALUE, s->who, "no tensor is given for ", name.text, name.bytes);
        s->names[i] = s->given[i]->name;
        if (!tilec_text_is(type, s->given[i]->type))
            return tilec_refuse(s->message, TILEC_VALUE, s->names[i], "it must have elements of type ", type.text, type.bytes);
        if (s->given[i]->rank != (int)rank)
            return tilec_refuse(s->message, TILEC_VALUE, s->names[i], "it has another number of dimensions than the kernel takes", "", 0);
        for (j = 0; j < rank; j++)
            if (s->given[i]->shape[j] < 0 || s->given[i]->strides[j] < 0)
                return tilec_refuse(s->message, TILEC_VALUE, s->names[i], "an extent or stride is negative", "", 0);
        s->tensors[i].address = s->given[i]->address;
    }
    if (own)
        s->own_count = n;
    else
        s->tensor_count = n;
    return 0;
}

/* Whether a real number is a whole one of 64 bits. */
static inline int tilec_whole(double x, int64_t *to)
{
    if (!(x >= -9223372036854775808.0 && x < 9223372036854775808.0))
        return 0;
    *to = (int64_t)x;
    return (double)*to == x;
}

/* A value that is given, in the type of the kernel. */
static inline int tilec_bundle_given(tilec_slot *slot, const tilec_bundle_value *value, tilec_text type, int is_float, int64_t least, uint64_t most)
{
    double real = value->kind == TILEC_REAL ? value->real : value->kind == TILEC_UNSIGNED ? (double)value->large : (double)value->integer;
    slot->whole = 1;
    if (value->kind == TILEC_REAL)
        slot->whole = tilec_whole(value->real, &slot->integer);
    else if (value->kind == TILEC_INTEGER)
        slot->integer = value->integer;
    else if (value->large <= (uint64_t)INT64_MAX)
        slot->integer = (int64_t)value->large;
    else
        slot->whole = 0;
    if (!is_float) {
        uint64_t bits = value->kind == TILEC_UNSIGNED ? value->large : (uint64_t)slot->integer;
        if (!slot->whole && value->kind != TILEC_UNSIGNED)
            return 0;
        if (slot->whole ? (slot->integer < least || (slot->integer >= 0 && (uint64_t)slot->integer > most)) : bits > most)
            return 0;
        slot->bits = tilec_text_is(type, "i4") ? bits & 15 : bits;
    } else if (tilec_text_is(type, "f64")) {
        memcpy(&slot->bits, &real, sizeof real);
    } else if (tilec_text_is(type, "f32")) {
        slot->bits = tilec_float_bits((float)real);
    } else if (tilec_text_is(type, "tf32")) {
        slot->bits = tilec_tf32((float)real);
    } else if (tilec_text_is(type, "f16")) {
        slot->bits = tilec_f16((float)real);
    } else if (tilec_text_is(type, "bf16")) {
        slot->bits = tilec_bf16((float)real);
    } else {
        if (!slot->whole || slot->integer < 0 || slot->integer > 255)
            return 0;
        slot->bits = (uint64_t)slot->integer;
    }
    return 1;
}

/* Sizes, strides and scalars: first those that do not follow from others. */
static inline int tilec_bundle_values(tilec_bundle_state *s, tilec_cursor *c)
{
    tilec_cursor begin;
    uint32_t i, j, strides;
    s->slot_count = tilec_below(c, TILEC_BUNDLE_VALUES + 1);
    memset(s->slots, 0, sizeof s->slots);
    begin = *c;
    for (strides = 0; strides < 2; strides++) {
        *c = begin;
        for (i = 0; i < s->slot_count && !c->bad; i++) {
            tilec_text name = tilec_text_of(c), type;
            uint32_t kind = tilec_word(c), is_float, places;
            uint64_t most;
            int64_t least, found = 0;
            int known = 0, steps = 0, e = 0, now;
            tilec_slot slot = {0, 0, 0};
            const tilec_bundle_value *given = NULL;
            type = tilec_text_of(c);
            is_float = tilec_word(c);
            least = tilec_long(c);
            most = (uint64_t)tilec_long(c);
            now = (kind == 1) == (strides == 1);
            places = tilec_word(c);
            for (j = 0; j < places && !c->bad; j++) {
                uint32_t tensor = tilec_below(c, s->tensor_count), dim = tilec_below(c, TILEC_MODES);
                const tilec_bundle_tensor *of = c->bad ? NULL : s->given[tensor];
                if (of == NULL || (int)dim >= of->rank)
                    return tilec_damaged(s);
                /* A stride over one element says nothing. */
                if (kind == 1 ? (!known || (!steps && of->shape[dim] != 1)) : !known) {
                    found = kind == 1 ? of->strides[dim] : of->shape[dim];
                    steps = of->shape[dim] != 1;
                    known = 1;
                }
            }
            if (tilec_word(c) != 0) {
                int64_t packed = tilec_code(c, s->slots, s->slot_count, &e);
                if (now && !(known && steps)) {
                    if (e)
                        return tilec_refuse(s->message, TILEC_EXPRESSION, s->who, "an expression overflows or divides by zero: the stride ", name.text, name.bytes);
                    found = packed;
                    known = 1;
                }
            }
            if (tilec_word(c) != 0) {
                slot.bits = (uint64_t)tilec_long(c);
                slot.whole = tilec_word(c) != 0;
                slot.integer = tilec_long(c);
                known = 2;
            }
            if (!now)
                continue;
            for (j = 0; j < (uint32_t)s->args->value_count; j++)
                if (tilec_text_is(name, s->args->values[j].name))
                    given = &s->args->values[j];
            if (given != NULL && places > 0)
                return tilec_refuse(s->message, TILEC_VALUE, s->who, "it follows from the tensors, and is not given: ", name.text, name.bytes);
            if (given != NULL) {
                if (!tilec_bundle_given(&slot, given, type, is_float != 0, least, most))
                    return tilec_refuse(s->message, TILEC_VALUE, s->who, "a value that the kernel does not take: ", name.text, name.bytes);
            } else if (known == 0 && s->counts && kind == 0) {
                slot.whole = 1;
            } else if (known == 1) {
                slot.whole = 1;
                slot.integer = found;
                slot.bits = (uint64_t)found;
            } else if (!known) {
                return tilec_refuse(s->message, TILEC_VALUE, s->who, "no value is given for ", name.text, name.bytes);
            }
            if ((kind == 0 && (!slot.whole || slot.integer < 0 || slot.integer > INT32_MAX)) || (kind == 1 && (!slot.whole || slot.integer < 0)))
                return tilec_refuse(s->message, TILEC_VALUE, s->who, "a value that the kernel does not take: ", name.text, name.bytes);
            if (s->counts && kind == 0 && places == 0 && slot.integer == 0)
                slot.integer = 1;
            s->slots[i] = slot;
        }
    }
    return c->bad ? tilec_damaged(s) : 0;
}

/* Extents and strides as the kernel has them, which those of the tensors that are given must be. */
static inline int tilec_bundle_shapes(tilec_bundle_state *s)
{
    uint32_t i;
    int j;
    for (i = 0; i < s->tensor_count + s->own_count; i++) {
        tilec_tensor *t = &s->tensors[i];
        tilec_cursor c = s->dims[i];
        const tilec_bundle_tensor *given = s->given[i];
        int e = 0;
        for (j = 0; j < t->modes; j++) {
            t->shape[j] = tilec_code(&c, s->slots, s->slot_count, &e);
            t->strides[j] = tilec_code(&c, s->slots, s->slot_count, &e);
            if (given == NULL)
                continue;
            if (e || t->shape[j] != given->shape[j])
                return tilec_refuse(s->message, TILEC_VALUE, s->names[i], "an extent is not what the kernel and the other tensors say", "", 0);
            if (given->shape[j] > 1 && t->strides[j] != given->strides[j])
                return tilec_refuse(s->message, TILEC_VALUE, s->names[i], "a stride is not what the kernel and the other tensors say", "", 0);
        }
        if (given == NULL) {
            /* A launch without blocks needs none of it. */
            if (e || !tilec_extent(t, t->bits))
                t->bytes = UINT64_MAX;
            continue;
        }
        if (!tilec_extent(t, t->bits))
            return tilec_refuse(s->message, TILEC_GRID, s->names[i], "it is too large", "", 0);
        if (given->bytes != TILEC_UNKNOWN && given->bytes < t->bytes)
            return tilec_refuse(s->message, TILEC_VALUE, s->names[i], "its memory is shorter than its shape and strides say", "", 0);
    }
    return 0;
}

/* How many conditions do not hold; they are passed over, and the text of the first that does not hold goes to `failed`. */
static inline uint32_t tilec_bundle_conditions(const tilec_bundle_state *s, tilec_cursor *c, tilec_text *failed)
{
    uint32_t i, n = tilec_word(c), broken = 0;
    for (i = 0; i < n && !c->bad; i++) {
        int e = 0, holds = tilec_code(c, s->slots, s->slot_count, &e) == 1 && !e;
        tilec_text text = tilec_text_of(c);
        if (!holds && broken++ == 0)
            *failed = text;
    }
    return broken;
}

/* Works out one case. 1: it is launched; 0: it has no blocks; a code: it is not the one, and `one` counts the reasons, of which the first is
   written if `speaks`. The scratch memory that it takes is counted. */
static inline int tilec_bundle_case(tilec_bundle_state *s, tilec_cursor *c, tilec_bundle_one *one, tilec_room *room, int speaks)
{
    tilec_text failed = {"", 0};
    tilec_cursor grid;
    uint32_t i, n, required;
    int code = 0, nothing = 0, limits = 1;
    tilec_message unread = {NULL, 0}, *message = speaks ? s->message : &unread;
    one->entry = tilec_below(c, s->bundle->entries);
    for (i = 0; i < 3; i++)
        one->block[i] = tilec_word(c);
    for (i = 0; i < 3; i++)
        one->cluster[i] = tilec_word(c);
    one->programmatic = tilec_word(c) != 0;
    one->shared = tilec_word(c);
    one->reasons = tilec_bundle_conditions(s, c, &failed);
    if (one->reasons != 0)
        code = tilec_refuse(message, TILEC_REQUIRES, s->who, "requires ", failed.text, failed.bytes);
    required = tilec_bundle_conditions(s, c, &failed);
    grid = *c;
    for (i = 0; i < 3; i++) {
        static const int64_t most[3] = {TILEC_GRID_X, TILEC_GRID_Y, TILEC_GRID_Z};
        int e = 0;
        one->grid[i] = tilec_code(&grid, s->slots, s->slot_count, &e);
        nothing |= !e && one->grid[i] == 0;
        limits &= !e && one->grid[i] >= 1 && one->grid[i] <= most[i];
    }
    *c = grid;
    n = tilec_word(c);
    for (i = 0; i < n && !c->bad; i++) {
        uint32_t slot = tilec_below(c, s->slot_count);
        if (nothing || s->slots[slot].integer >= 1)
            continue;
        one->reasons++;
        if (code == 0)
            code = tilec_refuse(message, TILEC_VALUE, s->who, "a size is 0: a kernel with `where SIZE >= 0` takes it", "", 0);
    }
    n = tilec_word(c);
    for (i = 0; i < n && !c->bad; i++) {
        uint32_t tensor = tilec_below(c, s->tensor_count), align = tilec_word(c);
        if (c->bad || align == 0)
            return tilec_damaged(s);
        if (nothing || s->tensors[tensor].address % align == 0)
            continue;
        one->reasons++;
        if (code == 0)
            code = tilec_refuse(message, TILEC_ADDRESS, s->names[tensor], "its address is not aligned as the kernel wants", "", 0);
    }
    one->reasons += nothing ? 0 : required + (uint32_t)!limits;
    if (code == 0 && !nothing && required != 0)
        code = tilec_refuse(message, TILEC_REQUIRES, s->who, "requires ", failed.text, failed.bytes);
    if (code == 0 && !nothing && !limits)
        code = tilec_refuse(message, TILEC_GRID, s->who, "an axis of the grid has too many blocks, or none", "", 0);
    n = tilec_word(c);
    for (i = 0; i < n && !c->bad; i++) {
        uint32_t own = tilec_below(c, s->own_count);
        int signals = tilec_word(c) != 0, e = 0;
        int64_t bytes = tilec_code(c, s->slots, s->slot_count, &e);
        if (c->bad || code != 0 || nothing)
            continue;
        if (e || bytes < 0)
            return tilec_refuse(s->message, TILEC_EXPRESSION, s->who, "scratch memory is too large", "", 0);
        one->own[own] = tilec_take(signals ? &room->signals : &room->workspace, (uint64_t)bytes);
    }
    one->params = *c;
    if (c->bad)
        return tilec_damaged(s);
    return code != 0 ? code : !nothing;
}

/* Passes over the parameters of a case, or works them out and launches. */
static inline int tilec_bundle_params(tilec_bundle_state *s, tilec_cursor *c, const tilec_bundle_one *one, int launch, CUstream stream)
{
    uint32_t i, j, n = tilec_below(c, TILEC_BUNDLE_PARAMS + 1), map_count = 0;
    uint64_t words[TILEC_BUNDLE_PARAMS];
    void *params[TILEC_BUNDLE_PARAMS + 1];
#if CUDA_VERSION >= 12000
    tilec_map_room maps[8];
#endif
    for (i = 0; i < n && !c->bad; i++) {
        uint32_t kind = tilec_word(c), at;
        params[i] = &words[i];
        if (kind <= 1) {
            int own = tilec_word(c) != 0;
            at = tilec_below(c, own ? s->own_count : s->tensor_count);
            words[i] = own ? one->own[at] : s->tensors[at].address;
            at += own ? s->tensor_count : 0;
            if (kind == 1) {
                uint32_t head[4], lists[4][5], corner;
                int64_t corners[2][3] = {{0, 0, 0}, {0, 0, 0}};
                int im2col, e = 0;
                for (j = 0; j < 4; j++)
                    head[j] = tilec_word(c);
                for (j = 0; j < 20; j++)
                    lists[j / 5][j % 5] = tilec_word(c);
                im2col = tilec_word(c) != 0;
                for (j = 0; j < 2 && im2col; j++) {
                    uint32_t count = tilec_below(c, 4);
                    for (corner = 0; corner < count && !c->bad; corner++)
                        corners[j][corner] = tilec_code(c, s->slots, s->slot_count, &e);
                }
                if (c->bad || head[2] < 1 || head[2] > 5 || (head[3] > 0 && head[3] + 1 >= head[2]))
                    return tilec_damaged(s);
                if (!launch)
                    continue;
                if (e)
                    return tilec_refuse(s->message, TILEC_EXPRESSION, s->who, "a corner of a tensor map overflows or divides by zero", "", 0);
                if (map_count == 8)
                    return tilec_refuse(s->message, TILEC_TARGET, s->who, "more than eight tensor maps", "", 0);
#if CUDA_VERSION >= 12000
                {
                    tilec_tensor of = s->tensors[at];
                    tilec_map map;
                    int code;
                    memset(&map, 0, sizeof map);
                    of.address = (CUdeviceptr)words[i];
                    map.bits = of.bits;
                    map.type = (CUtensorMapDataType)head[0];
                    map.swizzle = (CUtensorMapSwizzle)head[1];
                    map.rank = (int)head[2];
                    map.ended = (int)head[3];
                    for (j = 0; j < 5; j++) {
                        if (j < head[2] && (lists[0][j] > TILEC_MODES || lists[1][j] > TILEC_MODES || (int)(lists[0][j] + lists[1][j]) > of.modes))
                            return tilec_damaged(s);
                        map.first[j] = (int)lists[0][j];
                        map.modes[j] = (int)lists[1][j];
                        map.box[j] = lists[2][j];
                        map.steps[j] = lists[3][j];
                    }
                    params[i] = tilec_map_at(&maps[map_count++]);
                    code = im2col ? tilec_encode_im2col((CUtensorMap *)params[i], &map, &of, corners[0], corners[1]) : tilec_encode((CUtensorMap *)params[i], &map, &of);
                    if (code != 0)
                        return code;
                }
#else
                return tilec_refuse(s->message, TILEC_TARGET, s->who, "it takes tensor maps, which the cuda.h of CUDA 12.0 has", "", 0);
#endif
            }
            continue;
        }
        if (kind > 4)
            return tilec_damaged(s);
        at = tilec_below(c, s->slot_count);
        words[i] = s->slots[at].bits;
        if (kind == 4)
            tilec_word(c);
    }
    if (c->bad)
        return tilec_damaged(s);
    if (!launch)
        return 0;
    if (one->programmatic || one->cluster[0] * one->cluster[1] * one->cluster[2] > 1) {
#if CUDA_VERSION >= 11080
        return tilec_launch_with(s->bundle->functions[one->entry], one->grid, one->block, one->shared, stream, one->cluster, one->programmatic, params);
#else
        return tilec_refuse(s->message, TILEC_TARGET, s->who, "it is launched in clusters, which the cuda.h of CUDA 11.8 has", "", 0);
#endif
    }
    return tilec_launch(s->bundle->functions[one->entry], one->grid, one->block, one->shared, stream, params);
}

/* The record of a name in the launch table. */
static inline int tilec_bundle_find(const tilec_bundle *b, const char *name, tilec_message *message, tilec_cursor *c)
{
    uint32_t i, n;
    tilec_cursor all;
    all.at = b->table;
    all.end = b->table + b->table_bytes;
    all.bad = 0;
    tilec_word(&all);
    n = tilec_word(&all);
    for (i = 0; i < n && !all.bad; i++) {
        tilec_text_of(&all);
        tilec_pass(&all, 8);
    }
    n = tilec_word(&all);
    for (i = 0; i < n && !all.bad; i++) {
        tilec_text of = tilec_text_of(&all);
        uint32_t bytes = tilec_word(&all);
        *c = all;
        tilec_pass(&all, bytes);
        if (all.bad || !tilec_text_is(of, name))
            continue;
        c->end = c->at + bytes;
        if (tilec_word(c) != 0)
            return 0;
        of = tilec_text_of(c);
        return tilec_refuse(message, TILEC_TARGET, name, "it has no launch table: ", of.text, of.bytes);
    }
    return tilec_refuse(message, TILEC_TARGET, name, "the bundle has no kernel of that name for ", b->target, strlen(b->target));
}

/* Clusters of a case that the device of the current context runs at one time. */
static inline int tilec_bundle_active(const tilec_bundle *b, const tilec_bundle_one *one, int *clusters)
{
    if (one->cluster[0] * one->cluster[1] * one->cluster[2] == 1)
        return tilec_active_blocks(b->functions[one->entry], one->block, one->shared, clusters);
#if CUDA_VERSION >= 11080
    return tilec_active_clusters(b->functions[one->entry], one->block, one->shared, one->cluster, clusters);
#else
    return (int)CUDA_ERROR_NOT_SUPPORTED;
#endif
}

/* Works a launch out, and does with it what `room` says. */
static inline int tilec_bundle_run(const tilec_bundle *b, const char *name, CUstream stream, const tilec_bundle_args *args, tilec_room *room, tilec_message *message)
{
    tilec_bundle_one ones[TILEC_BUNDLE_LAUNCHES];
    int launched[TILEC_BUNDLE_LAUNCHES], any = 0, code;
    CUdeviceptr own[TILEC_BUNDLE_TENSORS];
    tilec_bundle_state s;
    tilec_cursor c, aliases, temporaries;
    uint32_t i, j, n, steps = 0, shared;
    memset(&s, 0, sizeof s);
    s.counts = room->step == TILEC_COUNT;
    memset(own, 0, sizeof own);
    s.bundle = b;
    s.args = args;
    s.who = name;
    s.message = message;
    if (b->table == NULL)
        return tilec_refuse(message, TILEC_TARGET, name, "no bundle is open", "", 0);
    code = tilec_bundle_find(b, name, message, &c);
    shared = code == 0 ? tilec_word(&c) : 0;
    if (code == 0)
        code = tilec_bundle_names(&s, &c, 0);
    if (code == 0)
        code = tilec_bundle_names(&s, &c, 1);
    if (code == 0)
        code = tilec_bundle_values(&s, &c);
    if (code == 0)
        code = tilec_bundle_shapes(&s);
    if (code != 0)
        return code;
    aliases = c;
    n = tilec_word(&c);
    for (i = 0; i < n && !c.bad; i++) {
        tilec_word(&c);
        tilec_pass(&c, (uint64_t)tilec_word(&c) * 4);
    }
    temporaries = c;
    n = tilec_word(&c);
    for (i = 0; i < n && !c.bad; i++) {
        int e = 0;
        tilec_below(&c, s.own_count);
        tilec_code(&c, s.slots, s.slot_count, &e);
    }
    /* Whether anything is launched is known before memory is handed out. */
    for (j = 0; j < 2; j++) {
        tilec_cursor cases = c;
        if (j == 1) {
            if (!any)
                return 0;
            n = tilec_word(&temporaries);
            for (i = 0; i < n && !temporaries.bad; i++) {
                int e = 0;
                uint32_t at = tilec_below(&temporaries, s.own_count);
                int64_t bytes = tilec_code(&temporaries, s.slots, s.slot_count, &e);
                if (e || bytes < 0)
                    return tilec_refuse(message, TILEC_EXPRESSION, name, "a temporary is too large", "", 0);
                own[at] = tilec_take(&room->workspace, (uint64_t)bytes);
            }
        }
        steps = tilec_below(&cases, TILEC_BUNDLE_LAUNCHES + 1);
        for (i = 0; i < steps && !cases.bad; i++) {
            uint32_t k, count = tilec_word(&cases), fewest = UINT32_MAX;
            tilec_cursor nearest = cases;
            launched[i] = -1;
            code = 0;
            for (k = 0; k < count && !cases.bad; k++) {
                tilec_bundle_one one;
                tilec_room before = *room;
                tilec_cursor begin = cases;
                memset(&one, 0, sizeof one);
                memcpy(one.own, own, sizeof own);
                code = tilec_bundle_case(&s, &cases, &one, room, 0);
                /* Of several that are as near it is the last, which promises least. */
                if (code < 0 && one.reasons <= fewest) {
                    fewest = one.reasons;
                    nearest = begin;
                }
                if (j == 0 || launched[i] >= 0 || code < 0)
                    *room = before;
                if (code >= 0 && launched[i] < 0) {
                    launched[i] = code;
                    any |= code;
                    ones[i] = one;
                }
                if (tilec_bundle_params(&s, &cases, &one, 0, stream) != 0)
                    return tilec_damaged(&s);
            }
            if (launched[i] < 0) {
                tilec_bundle_one one;
                memset(&one, 0, sizeof one);
                code = cases.bad || count == 0 ? 0 : tilec_bundle_case(&s, &nearest, &one, room, 1);
                return code < 0 ? code : tilec_damaged(&s);
            }
        }
        if (cases.bad)
            return tilec_damaged(&s);
    }
    if (!tilec_fits(room, &room->workspace))
        return tilec_refuse(message, TILEC_SCRATCH, name, "`workspace` is absent, too small, or no multiple of 256", "", 0);
    if (!tilec_fits(room, &room->signals))
        return tilec_refuse(message, TILEC_SCRATCH, name, "`signals` is absent, too small, or no multiple of 256", "", 0);
    if (room->step == TILEC_MEASURE)
        return 0;
    if (room->step == TILEC_COUNT) {
        if (shared >= steps)
            return tilec_damaged(&s);
        code = launched[shared] ? tilec_bundle_active(b, &ones[shared], &room->clusters) : 0;
        if (code != 0)
            tilec_refuse(message, TILEC_DRIVER, name, "the driver does not say how many clusters run at one time", "", 0);
        return code;
    }
    n = tilec_word(&aliases);
    for (i = 0; i < n && !aliases.bad; i++) {
        uint32_t over = tilec_below(&aliases, s.tensor_count), count = tilec_word(&aliases), under, k;
        tilec_cursor list = aliases;
        tilec_pass(&aliases, (uint64_t)count * 4);
        for (under = 0; under < s.tensor_count && !aliases.bad; under++) {
            int allowed = 0;
            tilec_cursor these = list;
            for (k = 0; k < count; k++)
                allowed |= tilec_word(&these) == under;
            if (under != over && tilec_meet(&s.tensors[over], &s.tensors[under]) && !(allowed && tilec_alike(&s.tensors[over], &s.tensors[under])))
                return tilec_refuse(message, TILEC_OVERLAP, s.names[over], "it is written, and shares memory with ", s.names[under], strlen(s.names[under]));
        }
    }
    for (i = 0; i < s.tensor_count; i++)
        if (s.tensors[i].address == 0 && s.tensors[i].bytes != 0)
            return tilec_refuse(message, TILEC_ADDRESS, s.names[i], "its address is null", "", 0);
    for (i = 0; i < steps; i++) {
        if (!launched[i])
            continue;
        c = ones[i].params;
        code = tilec_bundle_params(&s, &c, &ones[i], 1, stream);
        if (code > 0)
            tilec_refuse(message, TILEC_DRIVER, name, "the driver refuses the launch", "", 0);
        if (code != 0)
            return code;
    }
    return 0;
}

/* Queues a kernel or program of the bundle on a stream; does not wait. 0; a CUresult; or the negative of a tilec_kind, for which
   nothing was launched and `message`, which may be null, has a sentence. */
static inline int tilec_bundle_launch(const tilec_bundle *b, const char *name, CUstream stream, const tilec_bundle_args *args, char *message, size_t message_bytes)
{
    tilec_message to;
    tilec_room room = tilec_room_of(TILEC_LAUNCH, args->workspace, args->workspace_bytes, args->signals, args->signals_bytes);
    to.text = message;
    to.bytes = message_bytes;
    return tilec_bundle_run(b, name, stream, args, &room, &to);
}

/* Bytes of scratch memory for a launch with these arguments. */
static inline int tilec_bundle_scratch(const tilec_bundle *b, const char *name, const tilec_bundle_args *args, size_t *workspace_bytes, size_t *signals_bytes, char *message, size_t message_bytes)
{
    tilec_message to;
    tilec_room room = tilec_room_of(TILEC_MEASURE, TILEC_SCRATCH_ALIGN, 0, TILEC_SCRATCH_ALIGN, 0);
    int code;
    to.text = message;
    to.bytes = message_bytes;
    code = tilec_bundle_run(b, name, NULL, args, &room, &to);
    *workspace_bytes = (size_t)room.workspace.used;
    *signals_bytes = (size_t)room.signals.used;
    return code;
}

/* Clusters that the device of the current context runs at one time, for a launch with these arguments; 1 where there is nothing to launch. A
   block without a cluster is a cluster of one. Sizes that no tensor has count as 1 where they are not given, or are 0. */
static inline int tilec_bundle_max_active_clusters(const tilec_bundle *b, const char *name, const tilec_bundle_args *args, int *clusters, char *message, size_t message_bytes)
{
    tilec_message to;
    tilec_room room = tilec_room_of(TILEC_COUNT, 0, 0, 0, 0);
    int code;
    to.text = message;
    to.bytes = message_bytes;
    code = tilec_bundle_run(b, name, NULL, args, &room, &to);
    *clusters = room.clusters > 0 ? room.clusters : 1;
    return code;
}

/* Unloads the code, and frees the file. */
static inline int tilec_bundle_close(tilec_bundle *b)
{
    int code = b->module == NULL ? 0 : (int)TILEC_CU(cuModuleUnload)(b->module);
    free(b->functions);
    free(b->data);
    memset(b, 0, sizeof *b);
    return code;
}

/* The number of an architecture, and whether it has a letter; 0: it is none. */
static inline int tilec_architecture(const char *target, int *letter)
{
    int number = 0, i = 3;
    *letter = 0;
    if (strncmp(target, "sm_", 3) != 0)
        return 0;
    for (; target[i] >= '0' && target[i] <= '9' && i < 6; i++)
        number = 10 * number + (target[i] - '0');
    if (target[i] >= 'a' && target[i] <= 'z') {
        *letter = 1;
        i++;
    }
    return target[i] == 0 && number >= 10 ? number : 0;
}

/* A payload of a kind for a target; the rows were looked at. */
static inline const unsigned char *tilec_payload(const tilec_bundle *b, uint32_t kind, const char *target, uint64_t *bytes)
{
    tilec_cursor c;
    uint32_t row, rows;
    c.at = b->data + 12;
    c.end = b->data + b->bytes;
    c.bad = 0;
    rows = tilec_word(&c);
    for (row = 0; row < rows; row++) {
        char of[17] = {0};
        uint32_t found;
        uint64_t offset;
        c.at = b->data + 40 + (uint64_t)row * 40;
        found = tilec_word(&c);
        memcpy(of, c.at + 4, 16);
        c.at += 20;
        offset = tilec_read(&c, 8);
        *bytes = tilec_read(&c, 8);
        if (found == kind && strcmp(of, target) == 0)
            return b->data + offset;
    }
    return NULL;
}

/* Looks at everything in the file that is read later, and gives the target that a device takes. */
static inline int tilec_bundle_check(tilec_bundle *b, int cc, tilec_message *message)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325), at, bytes;
    uint32_t row, rows, version;
    tilec_cursor c;
    int best = 0, best_letter = 0;
    c.at = b->data;
    c.end = b->data + b->bytes;
    c.bad = 0;
    if (b->bytes < 40 || memcmp(b->data, "TILECBDL", 8) != 0)
        return tilec_refuse(message, TILEC_TARGET, "bundle", "it does not begin as one", "", 0);
    c.at += 8;
    version = tilec_word(&c);
    rows = tilec_word(&c);
    for (at = 40; at < b->bytes; at++)
        hash = (hash ^ b->data[at]) * UINT64_C(0x100000001b3);
    if (version != 1)
        return tilec_refuse(message, TILEC_TARGET, "bundle", "it has a version that this reader does not know", "", 0);
    if (tilec_read(&c, 8) != hash || tilec_read(&c, 8) != b->bytes || rows > (b->bytes - 40) / 40)
        return tilec_refuse(message, TILEC_TARGET, "bundle", "it is damaged, or cut off", "", 0);
    for (row = 0; row < rows; row++) {
        char target[17] = {0};
        uint32_t kind;
        uint64_t offset, size;
        int number, letter;
        c.at = b->data + 40 + (uint64_t)row * 40;
        kind = tilec_word(&c);
        memcpy(target, c.at + 4, 16);
        c.at += 20;
        offset = tilec_read(&c, 8);
        size = tilec_read(&c, 8);
        if (offset > b->bytes || size > b->bytes - offset)
            return tilec_refuse(message, TILEC_TARGET, "bundle", "a payload is not inside of the file", "", 0);
        number = tilec_architecture(target, &letter);
        if (kind != 2 || number == 0 || !(letter ? number == cc : number <= cc))
            continue;
        if (number > best || (number == best && letter >= best_letter)) {
            best = number;
            best_letter = letter;
            memcpy(b->target, target, sizeof target);
        }
    }
    if (best == 0)
        return tilec_refuse(message, TILEC_TARGET, "bundle", "it has nothing that the device runs", "", 0);
    b->table = tilec_payload(b, 4, b->target, &bytes);
    b->table_bytes = bytes;
    if (b->table == NULL)
        return tilec_refuse(message, TILEC_TARGET, "bundle", "it has no launch table, being of an older tilec, for ", b->target, strlen(b->target));
    c.at = b->table;
    c.end = b->table + bytes;
    if (tilec_word(&c) != 1)
        return tilec_refuse(message, TILEC_TARGET, "bundle", "its launch table has a version that this reader does not know", "", 0);
    b->entries = tilec_word(&c);
    return 0;
}

/* Loads the image, and gets the entries. */
static inline int tilec_bundle_load(tilec_bundle *b, int cc, tilec_message *message)
{
    uint64_t bytes = 0;
    int letter, number = tilec_architecture(b->target, &letter);
    const unsigned char *image = number / 10 == cc / 10 ? tilec_payload(b, 3, b->target, &bytes) : NULL;
    unsigned char *text = NULL;
    CUresult code;
    CUjit_option options[2] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[2];
    tilec_cursor c;
    uint32_t i;
    if (image == NULL)
        image = tilec_payload(b, 2, b->target, &bytes);
    text = (unsigned char *)malloc((size_t)bytes + 1);
    b->functions = (CUfunction *)calloc((size_t)b->entries + 1, sizeof(CUfunction));
    if (text == NULL || b->functions == NULL || image == NULL) {
        free(text);
        return (int)CUDA_ERROR_OUT_OF_MEMORY;
    }
    memcpy(text, image, (size_t)bytes);
    text[bytes] = 0;
    if (message->text == NULL)
        message->bytes = 0;
    values[0] = message->text;
    values[1] = (void *)(uintptr_t)message->bytes;
    if (message->bytes > 0)
        message->text[0] = 0;
    code = TILEC_CU(cuModuleLoadDataEx)(&b->module, text, message->bytes > 0 ? 2 : 0, options, values);
    free(text);
    c.at = b->table + 8;
    c.end = b->table + b->table_bytes;
    c.bad = 0;
    for (i = 0; i < b->entries && code == CUDA_SUCCESS; i++) {
        char name[256];
        tilec_text of = tilec_text_of(&c);
        uint32_t shared = tilec_word(&c), large = tilec_word(&c);
        if (c.bad || of.bytes >= sizeof name)
            return tilec_refuse(message, TILEC_TARGET, "bundle", "its launch table is damaged", "", 0);
        memcpy(name, of.text, of.bytes);
        name[of.bytes] = 0;
        code = TILEC_CU(cuModuleGetFunction)(&b->functions[i], b->module, name);
        if (code == CUDA_SUCCESS && shared > 49152)
            code = TILEC_CU(cuFuncSetAttribute)(b->functions[i], CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)shared);
        if (code == CUDA_SUCCESS && large)
            code = TILEC_CU(cuFuncSetAttribute)(b->functions[i], (CUfunction_attribute)14, 1);
    }
    return (int)code;
}

/* Takes a bundle out of memory, which is copied, for the device of the current context. */
static inline int tilec_bundle_of(tilec_bundle *b, const void *data, size_t bytes, char *message, size_t message_bytes)
{
    CUdevice device;
    int major = 0, minor = 0, code;
    tilec_message to;
    to.text = message;
    to.bytes = message_bytes;
    memset(b, 0, sizeof *b);
    code = (int)TILEC_CU(cuCtxGetDevice)(&device);
    if (code == 0)
        code = (int)TILEC_CU(cuDeviceGetAttribute)(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    if (code == 0)
        code = (int)TILEC_CU(cuDeviceGetAttribute)(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
    if (code != 0)
        return code;
    b->data = (unsigned char *)malloc(bytes + 1);
    if (b->data == NULL)
        return (int)CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(b->data, data, bytes);
    b->bytes = bytes;
    code = tilec_bundle_check(b, 10 * major + minor, &to);
    if (code == 0)
        code = tilec_bundle_load(b, 10 * major + minor, &to);
    if (code != 0)
        tilec_bundle_close(b);
    return code;
}

/* Opens a bundle for the device of the current context. What the driver's assembler says of it goes to `message` too. */
static inline int tilec_bundle_open(tilec_bundle *b, const char *path, char *message, size_t message_bytes)
{
    tilec_message to;
    FILE *file = fopen(path, "rb");
    unsigned char *data = NULL, *more;
    size_t bytes = 0, room = 0, got = 0;
    int code;
    to.text = message;
    to.bytes = message_bytes;
    memset(b, 0, sizeof *b);
    if (file == NULL)
        return tilec_refuse(&to, TILEC_TARGET, path, "it cannot be opened", "", 0);
    do {
        bytes += got;
        if (bytes == room) {
            room = room == 0 ? 65536 : 2 * room;
            more = (unsigned char *)realloc(data, room);
            if (more == NULL) {
                free(data);
                fclose(file);
                return (int)CUDA_ERROR_OUT_OF_MEMORY;
            }
            data = more;
        }
        got = fread(data + bytes, 1, room - bytes, file);
    } while (got > 0);
    code = ferror(file) ? tilec_refuse(&to, TILEC_TARGET, path, "it cannot be read", "", 0) : tilec_bundle_of(b, data, bytes, message, message_bytes);
    fclose(file);
    free(data);
    return code;
}

#endif
