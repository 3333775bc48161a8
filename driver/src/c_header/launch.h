/* Launches of clusters, and launches that begin while the one in front of them ends (CUDA 11.8 and later). */
#ifndef TILEC_RUNTIME_LAUNCH
#define TILEC_RUNTIME_LAUNCH 1

/* Clusters that the device of the current context runs at one time. */
static inline int tilec_active_clusters(CUfunction function, const unsigned int block[3], unsigned int shared, const unsigned int cluster[3], int *count)
{
    CUlaunchConfig config;
    CUlaunchAttribute attribute;
    int code;
    if (cluster[0] * cluster[1] * cluster[2] == 1)
        return tilec_active_blocks(function, block, shared, count);
    memset(&config, 0, sizeof config);
    memset(&attribute, 0, sizeof attribute);
    config.gridDimX = cluster[0];
    config.gridDimY = cluster[1];
    config.gridDimZ = cluster[2];
    config.blockDimX = block[0];
    config.blockDimY = block[1];
    config.blockDimZ = block[2];
    config.sharedMemBytes = shared;
    config.attrs = &attribute;
    config.numAttrs = 1;
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim.x = cluster[0];
    attribute.value.clusterDim.y = cluster[1];
    attribute.value.clusterDim.z = cluster[2];
    code = (int)TILEC_CU(cuOccupancyMaxActiveClusters)(count, function, &config);
    return code != 0 || *count > 0 ? code : (int)CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
}

static inline int tilec_launch_with(CUfunction function, const int64_t grid[3], const unsigned int block[3], unsigned int shared, CUstream stream, const unsigned int cluster[3], int programmatic, void **params)
{
    CUlaunchConfig config;
    CUlaunchAttribute attributes[2];
    memset(&config, 0, sizeof config);
    memset(attributes, 0, sizeof attributes);
    config.gridDimX = (unsigned int)grid[0];
    config.gridDimY = (unsigned int)grid[1];
    config.gridDimZ = (unsigned int)grid[2];
    config.blockDimX = block[0];
    config.blockDimY = block[1];
    config.blockDimZ = block[2];
    config.sharedMemBytes = shared;
    config.hStream = stream;
    config.attrs = attributes;
    if (cluster[0] * cluster[1] * cluster[2] > 1) {
        attributes[config.numAttrs].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        attributes[config.numAttrs].value.clusterDim.x = cluster[0];
        attributes[config.numAttrs].value.clusterDim.y = cluster[1];
        attributes[config.numAttrs].value.clusterDim.z = cluster[2];
        config.numAttrs++;
    }
    if (programmatic) {
        attributes[config.numAttrs].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
        attributes[config.numAttrs].value.programmaticStreamSerializationAllowed = 1;
        config.numAttrs++;
    }
    return (int)TILEC_CU(cuLaunchKernelEx)(&config, function, params, NULL);
}

#endif
