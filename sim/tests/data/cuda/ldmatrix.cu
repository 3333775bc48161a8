// ldmatrix x4 and x1 of rows at a given pitch in bytes: each lane stores what it got. The copy into shared memory is
// asynchronous, 16 bytes a thread.
// target: sm_80
typedef unsigned u32;

extern "C" __global__ void ldmatrix(const uint4 *a, uint4 *out, u32 *single, int pitch) {
    extern __shared__ __align__(16) unsigned char rows[];
    int t = threadIdx.x, warp = t / 32;
    u32 base = (u32)__cvta_generic_to_shared(rows), mine = base + t * pitch, x, y, z, w;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(mine), "l"(a + t));
    asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    // Another warp's rows.
    u32 from = base + (t ^ 32) * pitch;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x), "=r"(y), "=r"(z), "=r"(w) : "r"(from) : "memory");
    out[t] = make_uint4(x, y, z, w);
    from = base + ((warp ^ 1) * 32 + t % 8 * 4) * pitch;
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(x) : "r"(from) : "memory");
    single[t] = x;
}
