/* Tensor maps (CUDA 12.0 and later). */
#ifndef TILEC_RUNTIME_MAPS
#define TILEC_RUNTIME_MAPS 1

/* What of a tensor map follows from the program. */
typedef struct tilec_map {
    int bits; /* of an element */
    CUtensorMapDataType type;
    CUtensorMapSwizzle swizzle;
    int rank;
    /* Of each dimension the first of its modes, and how many there are. */
    int first[5];
    int modes[5];
    /* The place, behind the first, of a dimension that is there twice, for windows with an end of their own: with the extent of the box, and behind all others, of one element
       more than the tensor has. The map begins a box in front of the tensor. 0: there is none. */
    int ended;
    cuuint32_t box[5];
    cuuint32_t steps[5];
} tilec_map;

/* Memory for a tensor map at a multiple of 64 bytes. C99 has no alignment of its own. */
typedef struct tilec_map_room {
    cuuint64_t words[24];
} tilec_map_room;

static inline CUtensorMap *tilec_map_at(tilec_map_room *room)
{
    return (CUtensorMap *)(((uintptr_t)room->words + 63) & ~(uintptr_t)63);
}

/* Extents, and strides in bytes without the first, from the contiguous dimension on. Returns where the map begins. */
static inline void *tilec_map_sizes(const tilec_map *map, const tilec_tensor *t, cuuint64_t *extents, cuuint64_t *strides)
{
    int i, j;
    for (i = 0; i < map->rank - (map->ended > 0); i++) {
        uint64_t extent = 1, stride = 0, left = 1;
        for (j = map->first[i] + map->modes[i] - 1; j >= map->first[i]; j--) {
            uint64_t n = (uint64_t)t->shape[j];
            extent *= n;
            if (n > 0) {
                stride += left % n * (uint64_t)t->strides[j];
                left /= n;
            }
        }
        stride = (stride * (uint64_t)map->bits + 7) / 8;
        if (extent == 1) { /* it has no neighbours, but a stride there must be */
            stride = stride < 16 ? 16 : stride;
            stride = (stride + 15) / 16 * 16;
        }
        extents[i] = extent;
        if (i > 0)
            strides[i - 1] = stride;
    }
    if (map->bits < 8)
        extents[0] = (extents[0] * (uint64_t)map->bits + 7) / 8;
    if (map->ended == 0)
        return (void *)(uintptr_t)t->address;
    extents[map->rank - 1] = extents[map->ended] + 1;
    strides[map->rank - 2] = strides[map->ended - 1];
    extents[map->ended] = map->box[map->ended];
    return (void *)(uintptr_t)(t->address - map->box[map->ended] * strides[map->ended - 1]);
}

static inline int tilec_encode(CUtensorMap *to, const tilec_map *map, const tilec_tensor *t)
{
    cuuint64_t extents[5] = {1, 1, 1, 1, 1}, strides[5] = {0, 0, 0, 0, 0};
    void *begin = tilec_map_sizes(map, t, extents, strides);
    return (int)TILEC_CU(cuTensorMapEncodeTiled)(to, map->type, (cuuint32_t)map->rank, begin, extents, strides, map->box, map->steps, CU_TENSOR_MAP_INTERLEAVE_NONE, map->swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

static inline int tilec_corner(int64_t x)
{
    return x < INT32_MIN ? INT32_MIN : x > INT32_MAX ? INT32_MAX : (int)x;
}

/* Of pixels: `box` has channels and pixels of a copy. */
static inline int tilec_encode_im2col(CUtensorMap *to, const tilec_map *map, const tilec_tensor *t, const int64_t lower[3], const int64_t upper[3])
{
    cuuint64_t extents[5] = {1, 1, 1, 1, 1}, strides[5] = {0, 0, 0, 0, 0};
    void *begin;
    int low[3], high[3], i;
    for (i = 0; i < 3; i++) {
        low[i] = tilec_corner(lower[i]);
        high[i] = tilec_corner(upper[i]);
    }
    begin = tilec_map_sizes(map, t, extents, strides);
    return (int)TILEC_CU(cuTensorMapEncodeIm2col)(to, map->type, (cuuint32_t)map->rank, begin, extents, strides, low, high, map->box[0], map->box[1], map->steps, CU_TENSOR_MAP_INTERLEAVE_NONE, map->swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

#endif
