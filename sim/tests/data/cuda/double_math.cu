// Double precision: quotients, roots, remainders, rounding, conversions, and a cubic root by Newton's iteration. Products that
// feed a sum are rounded by name (`mul.rn`): ptxas may contract a plain `mul.f64` with the sum to an fma (PTX ISA, `mul`).
extern "C" __global__ void double_math(const double *a, const double *b, double *out, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    double x = a[t], y = b[t], r = x;
    out[t * 8] = x / y;
    out[t * 8 + 1] = sqrt(fabs(x));
    out[t * 8 + 2] = fma(x, y, -1.5);
    out[t * 8 + 3] = floor(x * 8) + trunc(y * 8);
    out[t * 8 + 4] = (double)(float)x + (double)(long long)(y * 1e6);
    out[t * 8 + 5] = fmin(x, y) - fmax(x, 0.25);
    for (int i = 0; i < 8; i++) r = r - (__dmul_rn(__dmul_rn(r, r), r) - fabs(x)) / (3 * r * r + 1e-9);
    out[t * 8 + 6] = r;
    out[t * 8 + 7] = x * y + __hiloint2double(__double2hiint(x), __double2loint(y));
}
