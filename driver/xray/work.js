// Which lines of PTX and of machine code do the work of a statement, and which only prepare it.

// From what is wanted most: products, copies of tiles, accesses to memory, other arithmetic of floats.
const WORK = {
  ptx: [
    /\b(wgmma\.mma_async|tcgen05\.mma|mma\.sync|wmma\.mma)/,
    /\b(cp\.async\.bulk\.(tensor|shared|global)|cp\.async\.c[ag]|cp\.reduce\.async)/,
    /\b(ldmatrix|stmatrix|ld\.(global|shared|volatile)|st\.(global|shared)|ld\.acquire|st\.release|atom|red\.)/,
    /\b(fma|ex2|lg2|tanh|rcp|rsqrt|sqrt|shfl|(add|mul|sub|max|min)\.(\w+\.)*(f16|bf16|f32|f64)|cvt)/,
  ],
  sass: [
    /\b([HIDQ]GMMA|[HIDQ]MMA|BMMA|UTC\w*MMA)/,
    /\b(UTMALDG|UTMASTG|UTMAREDG|UBLKCP|LDGSTS)/,
    /\b(LDSM|STSM|LDG|STG|LDS|STS|ATOM|ATOMS|ATOMG|RED)\b/,
    /\b(FFMA|HFMA2|DFMA|MUFU|SHFL|FADD|FMUL|FMNMX|HADD2|HMUL2|DADD|DMUL|F2F|F2FP)\b/,
  ],
};

// How much a line does: more is more.
export function work(column, text) {
  const kinds = WORK[column] || [];
  const at = kinds.findIndex((kind) => kind.test(text));
  return at < 0 ? 0 : kinds.length - at;
}
