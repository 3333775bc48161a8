// Arithmetic of half2 and bfloat162: eight results of each pair of words.
// target: sm_80
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void half_math(const half2 *a, const half2 *b, half2 *h, const __nv_bfloat162 *c,
                                     const __nv_bfloat162 *d, __nv_bfloat162 *f, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    half2 x = a[t], y = b[t];
    h[t * 8] = __hadd2(x, y);
    h[t * 8 + 1] = __hmul2(x, y);
    h[t * 8 + 2] = __hfma2(x, y, __float2half2_rn(0.75f));
    h[t * 8 + 3] = __hmax2(x, y);
    h[t * 8 + 4] = __hmin2(__hneg2(x), __habs2(y));
    h[t * 8 + 5] = __hsub2_sat(x, y);
    h[t * 8 + 6] = __hgt2(x, y);
    h[t * 8 + 7] = __floats2half2_rn(__low2float(x) / 3, __high2float(y) * 1e-4f);
    __nv_bfloat162 u = c[t], v = d[t];
    f[t * 8] = __hadd2(u, v);
    f[t * 8 + 1] = __hmul2(u, v);
    f[t * 8 + 2] = __hfma2(u, v, u);
    f[t * 8 + 3] = __hmax2(u, v);
    f[t * 8 + 4] = __hmin2(__hneg2(u), __habs2(v));
    f[t * 8 + 5] = __hsub2(u, v);
    f[t * 8 + 6] = __hgt2(u, v);
    f[t * 8 + 7] = __floats2bfloat162_rn(__low2float(u) / 3, __high2float(v) * 1e-4f);
}
