#!/usr/bin/env bash
# Kernels from C on a GPU: writes the headers and bundles of examples, builds a program with them, and runs it.
#
#   scripts/gpu_c.sh        TILEC=path/of/tilec  CUDA=/usr/local/cuda
set -euo pipefail
cd "$(dirname "$0")/.."
tilec=${TILEC:-target/release/tilec}
cuda=${CUDA:-/usr/local/cuda}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
for name in gemm gemm_splitk softmax; do
    "$tilec" examples/$name.tile --targets sm_70,sm_80,sm_90a -o "$dir/$name.h"
    "$tilec" examples/$name.tile --targets sm_70,sm_80,sm_90a -o "$dir/$name.tilec"
done
"$tilec" bundle-header -o "$dir/tilec_bundle.h"
gcc -std=c99 -O2 -Wall -Wextra -pedantic -I "$dir" -isystem "$cuda/include" scripts/gpu_c/main.c -o "$dir/main" -L "$cuda/lib64/stubs" -lcuda -lm
# As C++ against CUDA's own declarations.
g++ -std=c++11 -O0 -Wall -Wextra -pedantic -fsyntax-only -x c++ -I "$dir" -isystem "$cuda/include" scripts/gpu_c/main.c
"$dir/main" "$dir/gemm.tilec" "$dir/gemm_splitk.tilec"
